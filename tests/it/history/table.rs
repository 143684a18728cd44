//! Tests of `log` with two tables: a case for each kind of change, and one for each filter.

use serde_json::Value;

use super::{commit, set, status};
use crate::support::Place;

/// A kind of change, the commands that make it in a repository with a plan of one step, and how `log` reports it.
struct Case {
    /// Commands that prepare the change. They are in one commit.
    before: &'static [&'static str],
    /// Commands that make the change. They are in the next commit.
    does: &'static [&'static str],
    what: &'static str,
    /// The events of that kind: id, from, to, by, outcome and notes.
    events: &'static [&'static str],
    /// The line below the commit.
    line: &'static str,
}

const CASES: [Case; 16] = [
    Case {
        before: &[],
        does: &["add a Two"],
        what: "created",
        events: &["a:2 - pending - - Two"],
        line: "a:2  created: Two",
    },
    Case {
        before: &[],
        does: &["remove a:1 --force"],
        what: "removed",
        events: &["a:1 pending - - - One"],
        line: "a:1  removed: One",
    },
    Case {
        before: &["add a Two"],
        does: &["move a:1 --after a:2"],
        what: "moved",
        events: &["a:3 a:1 a:3 - - -"],
        line: "a:3  moved, was a:1",
    },
    Case {
        before: &[],
        does: &["archive a"],
        what: "archived",
        events: &["a a a - - -"],
        line: "a  archived",
    },
    Case {
        before: &["archive a"],
        does: &["archive a --restore"],
        what: "restored",
        events: &["a a a - - -"],
        line: "a  restored",
    },
    Case {
        before: &[],
        does: &["start a:1"],
        what: "status",
        events: &["a:1 pending in_progress - - -"],
        line: "a:1  pending → in_progress",
    },
    Case {
        before: &[],
        does: &["fail a:1 -m reason"],
        what: "attempt",
        events: &["a:1 - - ann failed reason"],
        line: "a:1  attempt failed: reason  by ann",
    },
    Case {
        before: &[],
        does: &["claim a:1"],
        what: "claim",
        events: &["a:1 - * ann - -"],
        line: "a:1  claimed with id *  by ann",
    },
    Case {
        before: &["claim a:1"],
        does: &["release a:1"],
        what: "released",
        events: &["a:1 * - - - -"],
        line: "a:1  released claim *",
    },
    Case {
        before: &[],
        does: &["note a:1 careful"],
        what: "note",
        events: &["a:1 - - ann - careful"],
        line: "a:1  note: careful  by ann",
    },
    Case {
        before: &["add a Two"],
        does: &["set a:2 depends+=1"],
        what: "depends",
        events: &["a:2 - 1 - - -"],
        line: "a:2  depends on 1, was nothing",
    },
    Case {
        before: &[],
        does: &["set a:1 title Uno"],
        what: "title",
        events: &["a:1 One Uno - - -"],
        line: "a:1  title `Uno`, was `One`",
    },
    Case {
        before: &[],
        does: &["set a:1 tags+=db", "write"],
        what: "text",
        events: &["a:1 - - - - -"],
        line: "a:1  text +1 −1, fields tags",
    },
    Case {
        before: &["confirm"],
        does: &["confirmed"],
        what: "confirmed",
        events: &["a:1 - - bob - fine"],
        line: "a:1  confirmed: fine  by bob",
    },
    Case {
        before: &[],
        does: &["decide queue Use-NATS. --plan a"],
        what: "decision",
        events: &["a - queue ann - Use-NATS."],
        line: "a  decision `queue`: Use-NATS.  by ann",
    },
    Case {
        before: &[],
        does: &["insight Cache It-is-cold. --plan a"],
        what: "insight",
        events: &["a - Cache ann - It-is-cold."],
        line: "a  insight `Cache`: It-is-cold.  by ann",
    },
];

/// Runs a command, or makes one of three edits as a person does in an editor.
fn does(place: &Place, command: &str) {
    match command {
        "write" => set(place, "plans/a/step-1.md", "Text", "More"),
        "confirm" => set(place, "plans/a/step-1.md", "status:", "confirm: required\nstatus:"),
        "confirmed" => {
            set(place, "plans/a/step-1.md", "status:", "confirmed: {by: bob, note: fine}\nstatus:");
        }
        command => place.run(command).ok_code(),
    }
}

/// Replaces ids of claims, which are random.
fn without_claim(text: &str) -> String {
    let is_hex = |it: &str| it.bytes().all(|it| it.is_ascii_hexdigit());
    let is_claim = |it: &str| it.len() == 8 && it.is_ascii() && is_hex(&it[1..]);
    text.split(' ').map(|it| if is_claim(it) { "*" } else { it }).collect::<Vec<_>>().join(" ")
}

fn event(it: &Value) -> String {
    let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
    let id = it["step"].as_str().or(it["plan"].as_str()).unwrap_or("-").to_owned();
    let parts = [id, text("from"), text("to"), text("by"), text("outcome"), text("notes")];
    parts.map(|it| without_claim(&it)).join(" ")
}

#[test]
fn every_kind_of_change_is_reported() {
    let known = planwatch::plan::history::What::ALL.map(planwatch::plan::history::What::word);
    assert_eq!(CASES.each_ref().map(|it| it.what), known);
    for case in CASES {
        let place = super::repository();
        case.before.iter().for_each(|it| does(&place, it));
        commit(&place, 2, "before");
        case.does.iter().for_each(|it| does(&place, it));
        commit(&place, 3, "change");
        let found = super::events(&place, "log HEAD~1..HEAD");
        let kinds: Vec<_> = found.iter().filter(|it| it["what"] == case.what).collect();
        assert_eq!(kinds.iter().map(|it| event(it)).collect::<Vec<_>>(), case.events, "{}", case.what);
        for it in kinds {
            assert_eq!(
                (&it["subject"], &it["author"], &it["plan"]),
                (&"change".into(), &"Ann".into(), &"a".into())
            );
        }
        let only = super::events(&place, &format!("log --what {}", case.what));
        assert!(!only.is_empty() && only.iter().all(|it| it["what"] == case.what), "{only:?}");
        let said = place.run("log HEAD~1..HEAD").ok();
        assert!(said.lines().any(|it| without_claim(it.trim()) == case.line), "{}: {said}", case.what);
    }
}

/// A repository with these commits: one (pending to failed, by bob), two (a note by ann), three (completed by ann).
fn story() -> Place {
    let place = super::repository();
    place.run("fail a:1 -m one --by bob").ok_code();
    commit(&place, 2, "one");
    place.run("note a:1 two").ok_code();
    commit(&place, 3, "two");
    status(&place, "failed", "completed");
    commit(&place, 60, "three");
    place
}

#[test]
fn filters_select_the_matching_events() {
    let place = story();
    let (three, two) = ("three: status a:1 failed completed", "two: note a:1 - -");
    let one = ["one: status a:1 pending failed", "one: attempt a:1 - -"];
    let plan = super::PLAN;
    // An attempt, the status that came with it, and a note have the time of the command. A change that was made by hand has
    // the time of its commit.
    for (line, expected) in [
        ("log --limit 2", vec![three, two]),
        ("log --limit 0", vec![]),
        ("log --what status", vec![three, one[0]]),
        ("log --what attempt,note", vec![two, one[1]]),
        ("log --what note --what title", vec![two]),
        ("log --by bob", vec![one[0], one[1]]),
        ("log --by ann", vec![three, two, one[0], one[1], plan[0], plan[1]]),
        ("log --since 2026-11-20T12:59:00Z", vec![three, two, one[0], one[1]]),
        ("log --since 2026-11-20T13:01:00Z", vec![two, one[0], one[1]]),
        ("log --until 2026-11-20T12:30:00Z", vec![plan[0], plan[1]]),
        ("log --since 1d --until 2026-11-20T13:00:00Z --what status", vec![three]),
        ("log a:1 --what created", vec![plan[0]]),
        ("log a --limit 1", vec![three]),
        ("log HEAD~2..HEAD", vec![three, two]),
        ("log HEAD~3..HEAD~2", vec![one[0], one[1]]),
        ("log a:1 HEAD~2..HEAD~1", vec![two]),
        ("log --rev HEAD~3", vec![plan[0], plan[1]]),
        ("log HEAD~1...HEAD --what status", vec![three]),
        ("log ..HEAD", vec![]),
    ] {
        assert_eq!(super::lines(&place, line), expected, "{line}");
    }
    for (line, code) in [
        ("log --what nothing", 2),
        ("log --since soon", 2),
        ("log b", 3),
        ("log a:9", 3),
        ("log nothing..HEAD", 3),
    ] {
        assert_eq!(place.run(line).code, code, "{line}");
    }
}
