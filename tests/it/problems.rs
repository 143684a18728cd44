//! Every problem that `check` can report, except those in [`ELSEWHERE`], with its place, each in the smallest directory that
//! has it.
#![expect(clippy::disallowed_methods, reason = "tests create files")]

use std::cell::RefCell;
use std::collections::BTreeSet;

use planwatch::plan::problem::Code;

use crate::support::Place;

/// Codes that depend on changed decisions, claims or git's history. Other tests cover them.
const ELSEWHERE: [Code; 6] = [
    Code::DecisionRewritten,
    Code::TakenBack,
    Code::ChangedAfterRemoval,
    Code::NotChecked,
    Code::EndedNowhere,
    Code::NameNotUtf8,
];

/// The codes reported so far, and the differences from the expected problems.
#[derive(Default)]
struct Seen {
    codes: RefCell<BTreeSet<Code>>,
    wrong: RefCell<String>,
}

impl Seen {
    /// Checks that these files have exactly these problems, as `path:line:column: code`.
    #[track_caller]
    fn check(&self, files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        self.check_bytes(&files, expected);
    }

    #[track_caller]
    fn check_bytes(&self, files: &[(&str, &[u8])], expected: &[&str]) {
        let place = Place::new();
        for (path, bytes) in files {
            place.write(&format!("plans/{path}"), bytes);
        }
        self.check_place(&place, expected);
    }

    #[track_caller]
    fn check_place(&self, place: &Place, expected: &[&str]) {
        let by_index = place.run("check --json");
        let found = problems(&by_index.json());
        if found != expected {
            let line = std::panic::Location::caller().line();
            let wrong = format!(
                "line {line}:\n  expected {expected:#?}\n  found {found:#?}\n{}\n",
                place.run("check").stdout
            );
            self.wrong.borrow_mut().push_str(&wrong);
        }
        let by_files = place.run("check --json --no-index");
        assert_eq!((by_files.code, &by_files.stdout), (by_index.code, &by_index.stdout), "with --no-index");
        let codes =
            expected.iter().filter_map(|it| Code::from_text(it.rsplit(' ').next().unwrap_or_default()));
        self.codes.borrow_mut().extend(codes);
    }
}

/// `path:line:column: code` of each problem. Also checks the other fields.
fn problems(answer: &serde_json::Value) -> Vec<String> {
    let line = |it: &serde_json::Value| {
        let text = |key: &str| it[key].as_str().unwrap_or_else(|| panic!("no {key} in {it}"));
        assert!(!text("message").is_empty() && !text("message").ends_with('.'), "{it}");
        assert!(!text("hint").is_empty(), "{it}");
        let code = Code::from_text(text("code")).expect("it is a known code");
        assert_eq!(it["severity"], serde_json::json!(code.severity()), "{it}");
        format!("{}:{}:{}: {}", text("path"), it["line"], it["column"], code.text())
    };
    answer["problems"].as_array().expect("it is a list").iter().map(line).collect()
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let seen = Seen::default();
    errors_of_files(&seen);
    errors_of_kinds(&seen);
    error_of_permission(&seen);
    errors_in_doubt(&seen);
    warnings_of_names(&seen);
    warnings_of_contents(&seen);
    warning_of_the_configuration(&seen);
    let all: BTreeSet<_> = Code::ALL.iter().copied().filter(|it| !ELSEWHERE.contains(it)).collect();
    assert_eq!(*seen.codes.borrow(), all);
    assert!(seen.wrong.borrow().is_empty(), "{}", seen.wrong.borrow());
}

fn warning_of_the_configuration(seen: &Seen) {
    seen.check(
        &[PLAN, ("../planwatch.toml", "by = \"ann\"\nstale_day = 3\n")],
        &["planwatch.toml:2:1: unknown-key"],
    );
}

const PLAN: (&str, &str) = ("a/plan.md", "# A\n");

fn errors_of_files(seen: &Seen) {
    let plan = (PLAN.0, PLAN.1.as_bytes());
    seen.check_bytes(&[plan, ("a/step-1.md", b"# One\n\nmoth\xe9r\n")], &["plans/a/step-1.md:3:5: not-utf8"]);
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nstatus: done\n# One\n")],
        &["plans/a/step-1.md:1:1: front-matter-unclosed"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nstatus: [\n---\n")],
        &["plans/a/step-1.md:2:9: front-matter-invalid"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\r\nid: a:1\r\ntitle: a: b\r\n---\r\n")],
        &["plans/a/step-1.md:3:9: front-matter-invalid"],
    );
    seen.check(&[PLAN, ("a/step-1.md", "---\n- a\n- b\n---\n")], &["plans/a/step-1.md:2:1: not-a-mapping"]);
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nphase: x\nphase: y\n---\n")],
        &["plans/a/step-1.md:3:1: duplicate-key"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\n<<<<<<< ours\nphase: x\n=======\nphase: y\n>>>>>>> theirs\n---\n")],
        &["plans/a/step-1.md:2:1: conflict-markers"],
    );
    let long = format!("---\ntitle: {}\n---\n", "x".repeat(1 << 20));
    seen.check(&[PLAN, ("a/step-1.md", &long)], &["plans/a/step-1.md:2:1048577: too-large"]);
    seen.check(&[PLAN, ("a/step-1.md", &"x\n".repeat(3 << 20))], &["plans/a/step-1.md:1:1: too-large"]);
    // A problem never hides another file.
    seen.check(
        &[("a/plan.md", "---\n[\n---\n"), ("a/step-1.md", "---\n[\n---\n"), ("b/step-1.md", "# One\n")],
        &[
            "plans/a/plan.md:2:1: front-matter-invalid",
            "plans/a/step-1.md:2:1: front-matter-invalid",
            "plans/b/plan.md:1:1: missing-plan-file",
        ],
    );
}

/// Names of steps that are not regular files.
fn errors_of_kinds(seen: &Seen) {
    let place = Place::new();
    place.write("outside.md", "# Outside\n");
    place.write("plans/a/plan.md", "# A\n");
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(to, place.file(name)).expect("links can be made");
    let _socket =
        std::os::unix::net::UnixListener::bind(place.file("plans/a/step-1.md")).expect("sockets can be made");
    link("../../outside.md", "plans/a/step-2.md");
    link("step-3.md", "plans/a/step-3.md");
    link("plan.md", "plans/a/step-4.md");
    std::fs::create_dir(place.file("plans/a/step-5.md")).expect("directories can be made");
    seen.check_place(
        &place,
        &[
            "plans/a/step-1.md:1:1: not-a-file",
            "plans/a/step-2.md:1:1: not-a-file",
            "plans/a/step-3.md:1:1: not-a-file",
            "plans/a/step-5.md:1:1: not-a-file",
        ],
    );
}

/// This problem cannot be tested as root, who may read every file.
fn error_of_permission(seen: &Seen) {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("plans/a/plan.md", "# A\n");
    place.write("plans/a/step-1.md", "# One\n");
    let path = place.file("plans/a/step-1.md");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("it is ours");
    if std::fs::read(&path).is_ok() {
        seen.codes.borrow_mut().insert(Code::Unreadable);
    } else {
        seen.check_place(&place, &["plans/a/step-1.md:1:1: unreadable"]);
    }
}

fn errors_in_doubt(seen: &Seen) {
    seen.check(
        &[PLAN, ("a/step-1.md", "# One\n"), ("a/step-01.md", "# One\n")],
        &["plans/a/step-01.md:1:1: duplicate-step-number", "plans/a/step-1.md:1:1: duplicate-step-number"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nstatus: penidng\n---\n")],
        &["plans/a/step-1.md:2:9: unknown-status"],
    );
    seen.check(&[("a/plan.md", "---\nstatus: actve\n---\n# A\n")], &["plans/a/plan.md:2:9: unknown-status"]);
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nid: a:1\ndepends: [2, b:3]\n---\n"), ("a/step-2.md", "# Two\n")],
        &["plans/a/step-1.md:3:14: dependency-missing"],
    );
    seen.check(
        &[
            PLAN,
            ("a/step-1.md", "---\ndepends: [3]\n---\n"),
            ("a/step-2.md", "---\ndepends: [1]\n---\n"),
            ("a/step-3.md", "---\ndepends:\n  - 2\n---\n"),
        ],
        &[
            "plans/a/step-1.md:2:11: dependency-cycle",
            "plans/a/step-2.md:2:11: dependency-cycle",
            "plans/a/step-3.md:3:5: dependency-cycle",
        ],
    );
    let sequential = ("a/plan.md", "---\norder: sequential\n---\n# A\n");
    seen.check(
        &[sequential, ("a/step-1.md", "---\ndepends: [3]\n---\n"), ("a/step-2.md", ""), ("a/step-3.md", "")],
        &[
            "plans/a/step-1.md:2:11: dependency-cycle",
            "plans/a/step-2.md:1:1: dependency-cycle",
            "plans/a/step-3.md:1:1: dependency-cycle",
        ],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nattempts: none\n---\n")],
        &["plans/a/step-1.md:2:11: wrong-type"],
    );
    seen.check(
        &[("a/plan.md", "---\ntags: [house]\npriority: 3\n---\n# A\n")],
        &["plans/a/plan.md:3:11: unknown-word"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nstatus: pending\ndue: next week\n---\n# One\n")],
        &["plans/a/step-1.md:3:6: invalid-date"],
    );
    // Two wrong keys are two problems.
    seen.check(
        &[PLAN, ("a/step-1.md", "---\ncreated_at: soon\npriority: urgent\n---\n")],
        &["plans/a/step-1.md:2:13: wrong-type", "plans/a/step-1.md:3:11: unknown-word"],
    );
}

fn warnings_of_names(seen: &Seen) {
    let one = ("a/step-1.md", "# One\n");
    for name in ["step_2.md", "Step-2.MD", "step-2b.md", "step 2.md", "step2.md"] {
        seen.check(
            &[PLAN, one, (&format!("a/{name}"), "# Two\n")],
            &[&format!("plans/a/{name}:1:1: looks-like-a-step")],
        );
    }
    seen.check(
        &[PLAN, one, ("a/step-1.10.md", "# Ten\n")],
        &["plans/a/step-1.10.md:1:1: looks-like-a-version"],
    );
    seen.check(&[one], &["plans/a/plan.md:1:1: missing-plan-file"]);
    seen.check(&[PLAN, one, ("a/b/step-1.md", "# One\n")], &["plans/a/b:1:1: nested-plan"]);
    let place = Place::new();
    place.write("plans/a/plan.md", PLAN.1);
    place.write("plans/a/step-1.md", "# One\n");
    seen.check_place(&place, &[]);
    // Added and removed links are detected although the text stays the same.
    let (file, link) = (place.file("plans/a/step-1.md"), place.file("link.md"));
    std::fs::hard_link(&file, &link).expect("it can be linked");
    seen.check_place(&place, &["plans/a/step-1.md:1:1: hard-linked"]);
    std::fs::remove_file(&link).expect("it can be removed");
    seen.check_place(&place, &[]);
    // Names that look the same, and are the same in some file systems.
    if cfg!(target_os = "linux") {
        seen.check(
            &[("caf\u{e9}/plan.md", "# A\n"), ("cafe\u{301}/plan.md", "# A\n")],
            &["plans/cafe\u{301}/plan.md:1:1: name-clash", "plans/caf\u{e9}/plan.md:1:1: name-clash"],
        );
    }
    seen.check(
        &[("a/plan.md", "---\nprogram: year\n---\n# A\n")],
        &["plans/a/plan.md:2:10: program-missing"],
    );
}

fn warnings_of_contents(seen: &Seen) {
    seen.check(
        &[
            PLAN,
            ("a/step-1.md", "# One\n"),
            ("a/step-2.md", "---\nstatus: completed\ndepends: [1]\n---\n# Two\n"),
        ],
        &["plans/a/step-2.md:1:1: waits-for-open"],
    );
    let phases = "---\nconfirm_phases:\n  - build\n  - 'bild' # why\n---\n# A\n";
    seen.check(
        &[("a/plan.md", phases), ("a/step-1.md", "---\nphase: build\n---\n# One\n")],
        &["plans/a/plan.md:4:5: phase-missing"],
    );
    // A range of more than 100 steps is not expanded into single dependencies.
    let text = |n: u32| if n == 60 { "# Open\n" } else { "---\nstatus: completed\n---\n# S\n" };
    let mut files: Vec<_> = (1..=120).map(|n| (format!("a/step-{n}.md"), text(n))).collect();
    let last = "---\nstatus: completed\n---\n# Last\n\n## Dependencies\n\nSteps 1-120\n";
    files.extend([("a/plan.md".to_owned(), PLAN.1), ("a/step-200.md".to_owned(), last)]);
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    seen.check(&files, &["plans/a/step-200.md:1:1: waits-for-open"]);
    let twice = "---\nstatus: pending\nattempts:\n  - at: 2026-01-01T00:00:00Z\n    by: bob\n    outcome: expired\n    \
                 notes: claimed twice\n---\n# One\n";
    seen.check(&[PLAN, ("a/step-1.md", twice)], &["plans/a/step-1.md:1:1: claimed-twice"]);
    let (one, two) = (("a/step-1.md", "# One\n"), ("a/step-2.md", "# Two\n"));
    seen.check(&[PLAN, ("a/step-1.md", "---\nid: b:1\n---\n")], &["plans/a/step-1.md:2:5: id-differs"]);
    seen.check(
        &[("a/plan.md", "# A\n\n## Steps\n\n- step-1: One\n- step-3: Three\n"), one],
        &["plans/a/plan.md:6:3: missing-step-file"],
    );
    seen.check(
        &[
            ("a/plan.md", "# A\n\n## Steps\n\n- step-1: One\n- step-2: Two (depends: step-1)\n"),
            one,
            ("a/step-2.md", "---\ndepends: []\n---\n"),
        ],
        &["plans/a/step-2.md:2:10: dependencies-disagree"],
    );
    seen.check(
        &[("a/plan.md", "# A\n\n## Steps\n\n- step-1: One\n- step-2: Two (depends: step-1)\n- step-3: Three (depends: step-2)\n"), one, two, ("a/step-3.md", "# Three\n\n## Dependencies\n\nstep-1\n")],
        &["plans/a/step-3.md:4:1: dependencies-disagree"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "# One\n\n## Dependencies\n\nThe schema must be there.\n")],
        &["plans/a/step-1.md:4:1: dependencies-unclear"],
    );
    seen.check(
        &[
            PLAN,
            (
                "a/step-1.md",
                "---\nstatus: done\nclaim: {id: h4f09a21, by: bob, at: 2026-11-20T09:00:00Z}\n---\n",
            ),
        ],
        &["plans/a/step-1.md:3:8: stale-claim"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nattempts:\n  - at: 2027-01-01\n    outcome: won\n---\n")],
        &["plans/a/step-1.md:3:9: time-in-future"],
    );
    seen.check(
        &[PLAN, ("a/step-1.md", "---\nstatus: wip\nclaim: {id: \"h4f09a21\", at: 2027-01-01}\n---\n")],
        &["plans/a/step-1.md:3:29: time-in-future"],
    );
    seen.check(
        &[
            PLAN,
            ("_prompts/step.pmt", "Do {{title}}.\n{{#if claim}}\n{{titel}}{{/if}}"),
            ("_prompts/stp.pmt", ""),
        ],
        &["plans/_prompts/step.pmt:3:1: prompt-invalid", "plans/_prompts/stp.pmt:1:1: prompt-invalid"],
    );
}

#[test]
fn an_unknown_step_is_reported_with_the_number_of_existing_ones() {
    let place = Place::new();
    for n in 1..=60 {
        place.write(&format!("plans/p/step-{n}.md"), "# Step\n");
    }
    let refused = |verb: &str| {
        let failed = place.run(verb);
        let error: serde_json::Value = serde_json::from_str(&failed.stderr).expect("it is JSON");
        (failed.code, error["error"]["details"].clone())
    };
    let (code, shown) = refused("show p:99 --json");
    assert_eq!(
        (code, refused("squash p 2 99 --title T --json").1["more"].clone()),
        (3, shown["more"].clone())
    );
    assert!(shown["more"].as_u64().is_some_and(|it| it > 0), "{shown}");
}
