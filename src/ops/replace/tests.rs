use super::*;
use crate::disk::model::Machine;
use crate::ops::update::{MoveRequest, move_steps};
use crate::plan::words::Status;

/// The status of `a:2`, and further lines of its front matter.
const STATES: [(&str, &str); 7] = [
    ("pending", ""),
    ("in_progress", ""),
    ("in_progress", "claim: {id: \"h4f09a21\", by: \"test\", at: 2026-11-21T11:50:00Z}\n"),
    ("failed", ""),
    ("blocked", "phase: build\n"),
    ("completed", ""),
    ("skipped", ""),
];

fn machine(first: &str, (status, more): (&str, &str)) -> Machine {
    let first = format!("---\nstatus: {first}\n---\n# One\n");
    let second = format!("---\nstatus: {status} # mine\n{more}depends: [1]\n---\n# Two\n");
    Machine::with(&[
        ("/plans/a/plan.md", "# A\n"),
        ("/plans/a/step-1.md", &first),
        ("/plans/a/step-2.md", &second),
    ])
}

fn listed(machine: &Machine, list: &str, force: bool) -> Result<ChangeReport, Error> {
    let (plan, list) = ("a".to_owned(), list.to_owned());
    let by = Some("test".to_owned());
    replace(
        &Context::on_model(machine),
        &ReplaceRequest { plan, list, by, force, ..ReplaceRequest::default() },
    )
}

#[test]
fn a_status_in_the_list_has_the_effect_of_its_verb() {
    for (first, state, verb) in ["completed", "pending"]
        .into_iter()
        .flat_map(|it| STATES.map(|state| (it, state)))
        .flat_map(|(first, state)| Verb::ALL.map(|verb| (first, state, verb)))
    {
        for force in [false, true] {
            let (by_verb, by_list) = (machine(first, state), machine(first, state));
            // For a step that already has the status, a list changes nothing, but a verb may still do something.
            if state.0 == verb.target().word() {
                continue;
            }
            let request = MoveRequest {
                is_signed: false,
                verb,
                ids: vec!["a:2".to_owned()],
                message: None,
                by: Some("test".to_owned()),
                claim: None,
                force,
                mode: Mode::Write,
            };
            let expected = move_steps(&Context::on_model(&by_verb), &request);
            let list = format!("[\"One\", {{\"title\": \"Two\", \"status\": \"{}\"}}]", verb.target().word());
            let found = listed(&by_list, &list, force);
            let what = format!("{first}, {state:?}: {} {force}", verb.word());
            let code =
                |it: &Result<ChangeReport, Error>| it.as_ref().err().map(|it| (it.code(), it.to_string()));
            assert_eq!(code(&found), code(&expected), "{what}");
            assert_eq!(by_list.text("/plans/a/step-2.md"), by_verb.text("/plans/a/step-2.md"), "{what}");
            let Ok(report) = found else { continue };
            let change = report.changes.iter().find(|it| it.id == "a:2").unwrap();
            assert_eq!(change.did, verb.outcome(), "{what}");
            assert_eq!(change.was.as_deref(), Some(state.0), "{what}");
            assert_eq!(change.status.as_deref(), Some(verb.target().word()), "{what}");
        }
    }
}

#[test]
fn one_list_completes_a_step_and_the_steps_that_waited_for_it() {
    let machine = machine("pending", ("pending", ""));
    let list = r#"[{"title": "One", "status": "done"}, {"title": "Two", "status": "done"}]"#;
    listed(&machine, list, false).unwrap();
    assert!(machine.text("/plans/a/step-1.md").unwrap().contains("status: completed\n"));
    assert!(machine.text("/plans/a/step-2.md").unwrap().contains("status: completed # mine\n"));
}

#[test]
fn a_step_stays_as_it_is_where_the_list_gives_no_status() {
    for list in ["- [ ] One\n- [ ] Two\n", "- One\n- Two\n", "## Step 1: One\n\n- [x] a\n\n## Step 2: Two\n"]
    {
        let machine = machine("skipped", ("completed", ""));
        let report = listed(&machine, list, false).unwrap();
        assert!(report.changes.iter().all(|it| it.was.is_none()), "{list}");
        assert!(machine.text("/plans/a/step-2.md").unwrap().contains("status: completed # mine\n"), "{list}");
    }
    let machine = machine("completed", ("pending", ""));
    listed(&machine, "- One\n- [x] Two\n", false).unwrap();
    assert!(machine.text("/plans/a/step-2.md").unwrap().contains("status: completed # mine\n"));
}

#[test]
fn closed_steps_that_the_list_leaves_out_are_named() {
    let machine = machine("completed", ("pending", ""));
    let report = listed(&machine, "- New\n", false).unwrap();
    let reported: Vec<_> =
        report.changes.iter().map(|it| (it.id.as_str(), it.did.as_str(), it.was_written)).collect();
    assert_eq!(reported, [("a:2", "removed", true), ("a:1", "kept", false), ("a:2", "added", true)]);
    let closed = report.changes[1].status.as_deref();
    assert_eq!(closed, Some("completed"));
}

#[test]
fn a_listed_step_without_a_file_gets_one_with_its_status() {
    let plan = "# A\n\n## Steps\n\n- step-1: One\n- step-2: Two\n";
    let machine = Machine::with(&[("/plans/a/plan.md", plan)]);
    listed(&machine, r#"["One", {"title": "Two", "status": "blocked"}]"#, false).unwrap();
    assert!(machine.text("/plans/a/step-2.md").unwrap().contains("status: blocked\n"));
    assert_eq!(machine.text("/plans/a/step-1.md"), None);
}

#[test]
fn text_below_the_line_of_a_step_that_is_moved_and_renamed_is_archived() {
    let machine = Machine::with(&[
        ("/plans/a/plan.md", "# A\n\n## Steps\n- step-1: A\n- step-2: B\n  more text\n- step-3: C\n"),
        ("/plans/a/step-1.md", "# A\n"),
        ("/plans/a/step-2.md", "# B\n"),
        ("/plans/a/step-3.md", "# C\n"),
    ]);
    listed(&machine, "- step-2: B2\n- step-1: A\n- step-3: C\n", false).unwrap();
    let tree = machine.tree();
    let lines = tree.keys().find(|it| it.ends_with("/steps-lines.md")).expect("it is archived");
    assert!(machine.text(lines).unwrap().contains("more text"));
}

#[test]
fn text_below_the_line_of_a_renamed_step_stays() {
    let plan = "# A\n\n## Steps\n- [x] step-1: A\n- **step-2: B** (depends: step-1)\n  more text\n  - below\n\n    a part\n- step-3: C\n";
    let machine = Machine::with(&[
        ("/plans/a/plan.md", plan),
        ("/plans/a/step-1.md", "# A\n"),
        ("/plans/a/step-2.md", "# B\n"),
        ("/plans/a/step-3.md", "---\ndepends: [2]\n---\n# C\n"),
    ]);
    let list = r#"[{"number": 1, "title": "A2"}, {"number": 2, "title": "B2", "depends": []}, {"number": 3, "title": "C", "depends": [1, 2]}]"#;
    listed(&machine, list, false).unwrap();
    let expected = "# A\n\n## Steps\n- [x] step-1: A2\n- **step-2: B2**\n  more text\n  - below\n\n    a part\n- step-3: C (depends: step-1, step-2)\n";
    assert_eq!(machine.text("/plans/a/plan.md").as_deref(), Some(expected));
}

#[test]
fn a_line_waits_for_the_same_steps_as_the_file() {
    for file in ["# C\n", "---\ndepends: [2]\n---\n# C\n"] {
        let machine = Machine::with(&[
            (
                "/plans/a/plan.md",
                "# A\n\n## Steps\n- step-1: A\n- step-2: B\n- step-3: C (depends: step-2)\n",
            ),
            ("/plans/a/step-1.md", "# A\n"),
            ("/plans/a/step-2.md", "---\ndepends: [1]\n---\n# B\n"),
            ("/plans/a/step-3.md", file),
        ]);
        listed(&machine, r#"["A", "New", {"number": 3, "title": "C too"}]"#, false).unwrap();
        let plan = machine.text("/plans/a/plan.md").unwrap();
        assert!(plan.ends_with("- step-2: New\n- step-3: C too (depends: step-2, step-1)\n"), "{plan}");
        let step = machine.text("/plans/a/step-3.md").unwrap();
        assert!(!file.contains("depends") || step.contains("depends: [2, 1]\n"), "{step}");
    }
}

#[test]
fn what_list_prints_changes_nothing() {
    let plan = "# A\n\n## Steps\n- step-1: One  and\n- step-2: Two\n";
    let first = "---\ntitle: One  and\n---\n# One\n\nText.\n";
    let machine = Machine::with(&[
        ("/plans/a/plan.md", plan),
        ("/plans/a/step-1.md", first),
        ("/plans/a/step-2.md", "# Two  words\n"),
    ]);
    let before = machine.tree();
    let list = r##"[{"number": 1, "title": "One  and"}, {"number": "2", "title": "Two  words", "body": "# Two  words\n"}]"##;
    listed(&machine, list, false).unwrap();
    assert_eq!(machine.tree(), before);
}
