use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::text::header_edit::{Change, NewValue};

/// A task file; `more` is added to its front matter.
fn task(id: &str, more: &str) -> String {
    format!("---\nid: {id}\ntitle: About {id}\nstatus: To Do\n{more}---\n\nText.\n")
}

fn imported(files: &[(&str, &str)]) -> Imported {
    convert("store", files, &Words::default())
}

/// Maps the id of each task to the ids of the tasks that its step waits for.
fn waits(imported: &Imported) -> BTreeMap<String, BTreeSet<String>> {
    let title =
        |text: &str| text.lines().next().unwrap_or_default().trim_start_matches("# About ").to_owned();
    let steps = || imported.plans.iter().flat_map(|it| &it.steps);
    let names: BTreeMap<_, _> = steps().map(|(number, it)| (number.to_string(), title(&it.text))).collect();
    let one = |draft: &Draft| {
        let depends = draft.changes.iter().find(|it| it.key() == "depends");
        let Some(Change::Set { value: NewValue::List(all), .. }) = depends else { return BTreeSet::new() };
        all.iter()
            .map(|it| match it {
                NewValue::Word(it) => names[it].clone(),
                other => panic!("{other:?} is no number"),
            })
            .collect()
    };
    steps().map(|(_, it)| (title(&it.text), one(it))).collect()
}

#[track_caller]
fn check(dependencies: &str, expected: &[&str], listed: &[&str]) {
    let files = [
        ("backlog/tasks/b-1 - One.md", task("BACK-1", "")),
        ("backlog/tasks/b-2.1 - Two.md", task("BACK-2.1", "")),
        ("backlog/archive/tasks/b-1 - Old.md", task("task-1", "")),
        ("backlog/tasks/b-3 - Three.md", task("BACK-3", &format!("dependencies: {dependencies}\n"))),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let imported = imported(&files);
    let expected: BTreeSet<_> = expected.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(waits(&imported)["BACK-3"], expected, "{dependencies}");
    let found: Vec<_> = imported.unmapped.iter().map(|it| (it.text.as_str(), it.line)).collect();
    assert_eq!(found, listed.iter().map(|it| (*it, Some(5))).collect::<Vec<_>>(), "{dependencies}");
}

#[test]
fn dependencies_are_found_whatever_their_spelling() {
    check("[BACK-1, back-2.1]", &["BACK-1", "BACK-2.1"], &[]);
    check("[]", &[], &[]);
    check("[2.1, BACK-002.01]", &["BACK-2.1"], &[]);
    check("BACK-1, BACK-9", &["BACK-1"], &["BACK-9"]);
    check("[task-2.1, task-1]", &["BACK-2.1", "task-1"], &[]);
    check("[BACK-3, draft-1]", &[], &["BACK-3", "draft-1"]);
    check("[\"BACK-1 - One.md\"]", &["BACK-1"], &[]);
}

#[test]
fn milestones_are_phases_and_part_of_the_plan() {
    let files = [
        (
            "backlog/milestones/m-0 - First.md",
            "---\nid: m-0\ntitle: First\n---\n## Description\n\nShip.\n".to_owned(),
        ),
        ("backlog/tasks/t-1 - A.md", task("t-1", "milestone: m-0\n")),
        ("backlog/tasks/t-2 - B.md", task("t-2", "milestone: first\nparent_task_id: t-1\n")),
        ("backlog/tasks/t-3 - C.md", task("t-3", "milestone: Later\nparent_task_id: t-9\n")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let imported = imported(&files);
    let plan = imported.plans[0].plan.as_ref().expect("there is a plan");
    assert_eq!(plan.text, "# store\n\n## Milestones\n\n### First\n\n#### Description\n\nShip.\n");
    let value = |nth: usize, key: &str| {
        let changes = &imported.plans[0].steps[nth].1.changes;
        changes.iter().find(|it| it.key() == key).map(|it| format!("{it:?}")).unwrap_or_default()
    };
    assert!(value(0, "phase").contains("First"));
    assert!(value(1, "phase").contains("About t-1") && value(1, "tags").contains("First"));
    assert!(value(2, "phase").contains("Later"));
    assert_eq!(imported.unmapped.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["t-9"]);
}

#[test]
fn decisions_are_mapped_and_documents_are_listed() {
    let decision = "---\nid: decision-1\ntitle: Use Cards\ndate: 2026-01-02\nstatus: accepted\n---\n## Context\n\nWhy.\n\n## Decision\n\nCards.\n\n### How\n\nSo.\n\n## Consequences\n\nFees.\n";
    let files = [
        ("backlog/decisions/decision-1 - Cards.md", decision),
        ("backlog/decisions/decision-2 - Plain.md", "---\nid: decision-2\ntitle: Plain\n---\n\nOnly text.\n"),
        ("backlog/decisions/decision-3 - Empty.md", "---\nid: decision-3\ntitle: Empty\n---\n"),
        ("backlog/docs/doc-1 - How.md", "---\nid: doc-1\ntitle: How\n---\nText\n"),
    ];
    let imported = imported(&files);
    let [cards, plain] = imported.decisions.as_slice() else { panic!("{:?}", imported.decisions) };
    assert_eq!((cards.topic.as_str(), cards.text.as_str()), ("Use Cards", "Cards.\n\n### How\n\nSo."));
    assert_eq!(cards.reasoning.as_deref(), Some("### Context\n\nWhy.\n\n### Consequences\n\nFees."));
    assert_eq!(cards.tags, ["accepted"]);
    assert_eq!(cards.at.map(|it| it.to_string()).as_deref(), Some("2026-01-02T00:00:00Z"));
    assert_eq!((plain.text.as_str(), plain.reasoning.as_deref()), ("Only text.", None));
    let listed: Vec<_> = imported.unmapped.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(listed, ["backlog/decisions/decision-3 - Empty.md", "backlog/docs/doc-1 - How.md"]);
}

proptest! {
    /// Each dependency is either in the result or in `unmapped`. The result has no other dependencies.
    #[test]
    fn no_dependency_is_lost(all in prop::collection::vec(prop::collection::btree_set(1..12_usize, 0..4), 1..8)) {
        let texts: Vec<_> = all.iter().enumerate().map(|(nth, on)| {
            let list = on.iter().map(|it| format!("  - task-{it}\n")).collect::<String>();
            let list = if on.is_empty() { String::new() } else { format!("dependencies:\n{list}") };
            (format!("backlog/tasks/task-{n} - X.md", n = nth + 1), task(&format!("task-{}", nth + 1), &list))
        }).collect();
        let files: Vec<_> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let imported = imported(&files);
        let waits = waits(&imported);
        for (nth, on) in all.iter().enumerate() {
            let id = format!("task-{}", nth + 1);
            for other in on {
                let name = format!("task-{other}");
                let path = files[nth].0;
                let is_listed = imported.unmapped.iter().any(|it| it.path == path && it.text == name && it.line.is_some());
                let can_be_mapped = *other <= all.len() && *other != nth + 1;
                prop_assert_eq!(waits[&id].contains(&name), can_be_mapped, "{} on {}", id, name);
                prop_assert_eq!(is_listed, !can_be_mapped, "{} on {}", id, name);
            }
            prop_assert!(waits[&id].len() <= on.len());
        }
    }
}
