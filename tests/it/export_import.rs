//! A plan that is exported and imported again has the same steps.

use serde_json::Value;

use crate::support::Place;

/// The fields of a plan and of its steps that an exported document contains. Ids of the plan's own steps are without its
/// name.
fn steps(place: &Place, plan: &str) -> Vec<Value> {
    let json = place.run(&format!("show {plan} --json")).json();
    let own = format!("{plan}:");
    let of = |step: &Value| {
        let depends: Vec<_> = step["depends"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|it| it.strip_prefix(&own).unwrap_or(it).to_owned())
            .collect();
        serde_json::json!({
            "number": step["number"], "title": step["title"], "status": step["status"], "depends": depends,
            "phase": step["phase"], "assignee": step["assignee"], "due": step["due"],
        })
    };
    let mut all: Vec<_> = json["steps"].as_array().into_iter().flatten().map(of).collect();
    all.push(serde_json::json!([json["status"], json["priority"], json["order"], json["due"]]));
    all
}

#[track_caller]
fn survives(place: &Place, plan: &str) {
    place.run(&format!("export {plan} --output out.md")).ok();
    place.run("import out.md --as again").ok();
    assert_eq!(steps(place, "again"), steps(place, plan), "{plan}:\n{}", place.text("out.md"));
    assert_eq!(place.run("check").code, 0, "{plan}");
}

#[test]
fn the_example_plans_survive_export_and_import() {
    for plan in
        ["docs-onboarding", "feature-auth", "fence-repair", "ledger-migration", "switch-energy-provider"]
    {
        survives(&Place::with_examples(), plan);
    }
}

#[test]
fn text_that_resembles_structure_survives() {
    let place = Place::new();
    place.write(
        "plans/p/plan.md",
        "---\norder: sequential\npriority: high\ndue: 2026-12-31\n---\n# P\n\n## Context\n\n- [ ] a box\n\n### 1. No step\n\nText.\n",
    );
    place
        .write("plans/p/step-1.md", "---\nstatus: skipped\n---\n# 2026. A year\n\n# Another\n\n- [ ] open\n");
    place
        .write("plans/p/step-2.5.md", "---\nphase: 3. Tests\ndepends: [1, \"q:1\"]\n---\n# Use `x` (done)\n");
    place.write(
        "plans/p/step-10.md",
        "---\nstatus: blocked\ndue: 2026-12-01\nassignee: ruth, tom\n---\n# Ship\n\n## Tasks\n\n- [x] all\n",
    );
    place.write("plans/q/step-1.md", "# Q\n");
    survives(&place, "p");
    let place = Place::new();
    place.write("plans/draft/plan.md", "---\nstatus: draft\n---\n# Draft\n");
    survives(&place, "draft");
}

#[test]
fn titles_that_resemble_marks_of_headings_survive() {
    let place = Place::new();
    place.run_with(&["new", "Port it to C #", "Use F #", "#"]).ok_code();
    place.run_with(&["add", "port-it-to-c", "Learn ## ##"]).ok();
    place.write("list.md", "- [ ] Use F #\n- [ ] #\n- [ ] Learn ## ##\n- [ ] Read C #\n");
    place.run("replace port-it-to-c --file list.md").ok_code();
    place.write("plans/port-it-to-c/step-5.md", "---\ntitle: \"Step 3: x\"\n---\n");
    let titles = ["Use F #", "#", "Learn ## ##", "Read C #", "Step 3: x"];
    let shown = place.run("show port-it-to-c --json").json();
    assert_eq!(shown["title"], "Port it to C #");
    for (step, title) in steps(&place, "port-it-to-c").iter().zip(titles) {
        assert_eq!(step["title"], title);
    }
    assert!(place.text("plans/port-it-to-c/step-1.md").ends_with("\n# Use F # #\n"));
    survives(&place, "port-it-to-c");
    assert_eq!(place.run("show again --json").json()["title"], "Port it to C #");
}

#[test]
fn steps_with_long_ranges_and_steps_with_errors_survive() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for n in 1..=120 {
        place.write(&format!("plans/p/step-{n}.md"), "# A step\n");
    }
    place
        .write("plans/p/step-121.md", "# Range\n\n## Dependencies\n\nSteps 1-120\n\n## Tasks\n\n- [ ] one\n");
    place.write("plans/p/step-122.md", "# All\n\n## Dependencies\n\nRequires all previous steps.\n");
    survives(&place, "p");
    place.write("plans/p/step-123.md", "---\nstatus: [x\n---\n# Faulty\n");
    place.run("export p --output faulty.md").ok_code();
    place.run("import faulty.md --as faulty").ok_code();
    assert!(place.text("plans/faulty/step-123.md").contains("file has an error"));
    let all = place.text("plans/faulty/step-122.md").replace("faulty:", "again:");
    assert_eq!(all, place.text("plans/again/step-122.md"));
}

#[test]
fn a_document_in_a_pipe_is_the_one_of_the_file() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\r\n");
    place.write(
        "plans/p/step-1.md",
        "---\ntitle: \"Hebrew \u{200f} and \u{2028} line\"\n---\nbody \u{200e} x \u{c} form\r\nfeed \u{1b}[31mred\n",
    );
    for form in ["markdown", "adr", "html", "json", "mermaid"] {
        let piped = place.run(&format!("export p --format {form}")).ok();
        place.run(&format!("export p --format {form} --output {form}.out -q")).ok();
        assert_eq!(piped, place.text(&format!("{form}.out")), "{form}");
    }
}

#[test]
fn a_page_depends_only_on_the_files() {
    let place = Place::new();
    place.write("plans/p/plan.md", "---\nstatus: active\n---\n# P\n");
    place.write("plans/p/step-1.md", "# Step 1\n\nDo it.\n");
    // While the run has not settled the step yet, its claim is only in the records of this machine.
    place.write(
        "agent.sh",
        "planwatch done \"$PLANWATCH_STEP\" -q\nplanwatch export p --format html -o here.html -q\ncp -r plans copy\nrm -r copy/.planwatch\n",
    );
    place.run_with(&["run", "p", "--command", "sh ./agent.sh"]).ok_code();
    place.run("--plans copy export p --format html -o there.html").ok_code();
    assert!(place.text("there.html").contains("completed"));
    assert_eq!(place.text("here.html"), place.text("there.html"));
}
