//! Validates every recorded answer of the command line's cases with the schemas of answers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use planwatch::api::schema::{self, Answer};
use serde_json::{Value, json};

use crate::json_schema::Schemas;
use crate::support::{read, root};

/// Kinds that only the command line has.
const ELSEWHERE: [&str; 11] = [
    "daemon",
    "draft",
    "draft-event",
    "event",
    "ready",
    "run",
    "run-event",
    "run-preview",
    "script-run",
    "trust",
    "trust-list",
];

fn schemas(is_partial: bool) -> Schemas {
    let parts = schema::parts().into_iter().map(|(name, it)| (name.to_owned(), it));
    Schemas { parts: parts.collect(), is_partial }
}

/// The reason why an answer does not match the schemas of its kind.
fn fault(answer: &Value, is_partial: bool) -> Option<String> {
    let kind = answer["kind"].as_str().unwrap_or_default();
    if ELSEWHERE.contains(&kind) || kind == "trusted-list" {
        return None;
    }
    let of_kind: Vec<_> = schema::answers().into_iter().filter(|it| it.kind == kind).collect();
    let faults = of_kind.iter().map(|it| schemas(is_partial).fault(&it.schema, answer));
    let faults: Option<Vec<_>> = faults.collect();
    faults.map(|it| format!("no answer `{kind}`: {}", it.join("; or ")))
}

fn files(directory: &Path, named: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("it is there").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, named, found),
            path if path.file_name().is_some_and(|it| it == named) => found.push(path),
            _ => {}
        }
    }
}

/// The recorded answers of a case, and whether each has only some of the fields.
fn recorded(cmd: &Path) -> Vec<(Value, bool)> {
    let lines = |file: &str| {
        let path = cmd.with_file_name(file);
        if path.is_file() { read(&path).lines().map(str::to_owned).collect() } else { Vec::new() }
    };
    let is_partial = |it: &str| it.contains("--json=");
    let mut partial = lines("cmd").iter().any(|it| is_partial(it));
    let mut answers = Vec::new();
    for line in lines("stdout") {
        if line.starts_with("$ planwatch ") {
            partial = is_partial(&line);
        }
        let answer =
            serde_json::from_str::<Value>(&line).ok().filter(|it| it.get("schema_version").is_some());
        answers.extend(answer.map(|it| (it, partial)));
    }
    answers
}

#[test]
fn every_recorded_answer_matches_its_schema() {
    let mut cases = Vec::new();
    files(&root().join("tests/cases"), "cmd", &mut cases);
    let mut seen = BTreeSet::new();
    let mut n_whole = 0;
    for cmd in &cases {
        for (answer, is_partial) in recorded(cmd) {
            if let Some(fault) = fault(&answer, is_partial) {
                panic!("{}: {fault}", cmd.display());
            }
            seen.insert(answer["kind"].as_str().unwrap_or_default().to_owned());
            n_whole += usize::from(!is_partial);
        }
    }
    assert!(n_whole > 70, "{n_whole} whole answers");
    let unseen: Vec<_> =
        schema::answers().into_iter().filter(|it| !seen.contains(it.kind)).map(|it| it.name).collect();
    assert!(unseen.is_empty(), "no case has an answer of {unseen:?}");
}

#[test]
fn every_object_is_closed_except_the_users_data() {
    fn open(place: &str, schema: &Value, found: &mut Vec<String>) {
        let Value::Object(words) = schema else { return };
        if words.get("type").is_some_and(|it| it == "object") && words["additionalProperties"] != json!(false)
        {
            found.push(place.rsplit('.').next().unwrap_or_default().to_owned());
        }
        for (name, it) in words.get("properties").and_then(Value::as_object).into_iter().flatten() {
            open(&format!("{place}.{name}"), it, found);
        }
        if let Some(items) = words.get("items") {
            open(place, items, found);
        }
    }
    let mut found = Vec::new();
    schema::parts().iter().for_each(|(name, it)| open(name, it, &mut found));
    schema::answers().iter().for_each(|Answer { name, schema, .. }| open(name, schema, &mut found));
    found.sort();
    found.dedup();
    assert_eq!(found, ["Attempt", "custom", "details", "metadata", "rows"]);
}

#[test]
fn an_answer_that_does_not_match_its_schema_is_detected() {
    let good = json!({"schema_version": 1, "kind": "topic-list", "topics": [{"topic": "a", "decisions": 1, "last": null}]});
    assert_eq!(fault(&good, false), None);
    let mut changed = Vec::new();
    for (pointer, value) in [
        ("/schema_version", json!(2)),
        ("/kind", json!("topics")),
        ("/topics", json!({})),
        ("/topics/0/topic", json!(null)),
        ("/topics/0/decisions", json!(-1)),
        ("/topics/0/decisions", json!(1.5)),
        ("/topics/0", json!({"topic": "a", "decisions": 1})),
        ("/topics/0", json!({"topic": "a", "decisions": 1, "last": null, "more": 1})),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect("it is there") = value;
        changed.push(bad);
    }
    for bad in &changed {
        assert!(fault(bad, false).is_some(), "{bad}");
    }
    assert_eq!(fault(&json!({"schema_version": 1, "kind": "topic-list"}), true), None);
}
