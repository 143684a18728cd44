use std::rc::Rc;

use super::*;
use crate::plan::id::PlanId;
use crate::plan::words::Words;

fn version(path: &str, text: Option<&str>) -> Option<Rc<Version>> {
    let place = Place::of(path).unwrap();
    text.map(|it| Rc::new(Version::read(&place, path, it.as_bytes().to_vec(), &Words::default())))
}

fn file(path: &str, old: Option<&str>, new: Option<&str>) -> FileChange {
    let place = Place::of(path).unwrap();
    FileChange { path: path.to_owned(), place, old: version(path, old), new: version(path, new) }
}

/// Writes a change on one line: its kind, its step or plan, its values, the numbers of changed lines, and the changed keys.
fn line(it: &Change) -> String {
    let of = it.step.clone().or_else(|| it.plan.clone()).unwrap_or_default();
    let values =
        [("from", &it.from), ("to", &it.to), ("by", &it.by), ("outcome", &it.outcome), ("notes", &it.notes)];
    let mut parts = vec![format!("{} {of}", it.what.word())];
    parts.extend(values.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?))));
    parts.extend(it.lines.map(|(added, removed)| format!("+{added} -{removed}")));
    parts.extend((!it.keys.is_empty()).then(|| format!("keys={}", it.keys.join(","))));
    parts.join(" ")
}

#[track_caller]
fn check(files: &[FileChange], expected: &[&str]) {
    let found: Vec<_> = changes(files).iter().map(line).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn check_step(old: &str, new: &str, expected: &[&str]) {
    check(&[file("a/step-1.md", Some(old), Some(new))], expected);
}

#[test]
fn a_path_is_classified_by_its_form() {
    for (path, is_followed) in [
        ("a/plan.md", true),
        ("a/step-2.5.md", true),
        ("_archive/a/step-1.md", true),
        ("_decisions/x.md", true),
        ("_insights/x.md", true),
        ("_decisions/.x.md", false),
        ("_archive/a/removed-1/step-1.md", false),
        ("a/notes.md", false),
        ("a/step-x.md", false),
        (".planwatch/step-1.md", false),
        ("_scripts/build.md", false),
        ("plan.md", false),
        ("", false),
    ] {
        assert_eq!(Place::of(path).is_some(), is_followed, "{path}");
    }
}

#[test]
fn a_claim_an_attempt_and_a_status_are_read_from_the_front_matter() {
    let pending = "---\nstatus: pending\n---\n# One\n";
    let claimed = "---\nstatus: in_progress\nclaim: {id: \"h4f09a21\", by: ann, at: 2026-11-21T09:00:00Z}\n---\n# One\n";
    let done = "---\nstatus: completed\nattempts:\n  - {at: 2026-11-21T10:00:00Z, by: bob, outcome: completed, notes: fine, claim: \"h4f09a21\"}\n---\n# One\n";
    check_step(
        pending,
        claimed,
        &["claim a:1 to=h4f09a21 by=ann", "status a:1 from=pending to=in_progress by=ann"],
    );
    check_step(
        claimed,
        done,
        &[
            "attempt a:1 by=bob outcome=completed notes=fine",
            "status a:1 from=in_progress to=completed by=bob",
        ],
    );
    check_step(claimed, pending, &["released a:1 from=h4f09a21", "status a:1 from=in_progress to=pending"]);
    check_step(pending, &pending.replace('\n', "\r\n"), &[]);
}

#[test]
fn every_other_key_is_named() {
    check_step(
        "---\ndepends: [2, 3]\npriority: low\n---\n# One\ntext\n",
        "---\ndepends: [3, other:1]\npriority: high\ntype: test\nmine: 1\nnotes:\n  - {text: careful}\n---\n# Two\ntext\nmore\n",
        &[
            "note a:1 notes=careful",
            "depends a:1 from=2, 3 to=3, other:1",
            "title a:1 from=One to=Two",
            "text a:1 +2 -1 keys=type,priority,custom",
        ],
    );
}

#[test]
fn a_record_that_was_edited_or_removed_is_named() {
    check_step(
        "---\nattempts:\n  - {by: ann, outcome: failed}\n  - {by: bob, outcome: failed}\n---\n",
        "---\nattempts:\n  - {by: bob, outcome: failed}\n---\n",
        &["text a:1 keys=attempts"],
    );
}

#[test]
fn equal_attempts_are_counted() {
    let one = "---\nattempts:\n  - {outcome: failed}\n---\n";
    let two = "---\nattempts:\n  - {outcome: failed}\n  - {outcome: failed}\n---\n";
    check_step(one, two, &["attempt a:1 outcome=failed"]);
}

#[test]
fn a_new_file_has_its_records_and_a_removed_one_its_status() {
    check(
        &[
            file("a/step-10.md", None, Some("# Ten\n")),
            file(
                "a/step-2.md",
                None,
                Some("---\nstatus: failed\nattempts:\n  - {outcome: failed}\n---\n# Two\n"),
            ),
            file("a/plan.md", None, Some("# A\n")),
            file("b/step-1.md", Some("# One\n"), None),
            file(
                "_decisions/x.md",
                None,
                Some("---\ntopic: db\nby: ann\nplan: a\nstep: \"2\"\n---\n## Decision\nSQLite\n"),
            ),
            file("_insights/y.md", None, Some("---\ntitle: locks\n---\nAre slow.\n")),
        ],
        &[
            "decision a:2 to=db by=ann notes=SQLite",
            "insight  to=locks notes=Are slow.",
            "created a to=active notes=A",
            "created a:2 to=failed notes=Two",
            "attempt a:2 outcome=failed",
            "created a:10 to=pending notes=Ten",
            "removed b:1 from=pending notes=One",
        ],
    );
}

const MADE: &str =
    "---\nid: \"a:ID\"\nstatus: STATUS\ntitle: TITLE\ncreated_at: 2026-11-21T09:00:00Z\n---\nText\n";

fn made(id: &str, status: &str, title: &str) -> String {
    MADE.replace("a:ID", id).replace("STATUS", status).replace("TITLE", title)
}

#[test]
fn steps_that_were_renumbered_keep_their_history() {
    let (two, three) = (made("a:2", "pending", "Two"), made("a:3", "failed", "Three"));
    let (now_three, now_four) = (made("a:3", "completed", "Two"), made("a:4", "failed", "Three"));
    check(
        &[
            file("a/step-2.md", Some(&two), None),
            file("a/step-3.md", Some(&three), Some(&now_three)),
            file("a/step-4.md", None, Some(&now_four)),
        ],
        &["moved a:3 from=a:2 to=a:3", "status a:3 from=pending to=completed", "moved a:4 from=a:3 to=a:4"],
    );
}

#[test]
fn two_steps_that_change_places_are_followed() {
    let (one, two) = (made("a:1", "pending", "One"), made("a:2", "failed", "Two"));
    check(
        &[
            file("a/step-1.md", Some(&one), Some(&made("a:1", "failed", "Two"))),
            file("a/step-2.md", Some(&two), Some(&made("a:2", "pending", "One"))),
        ],
        &["moved a:1 from=a:2 to=a:1", "moved a:2 from=a:1 to=a:2"],
    );
}

#[test]
fn steps_of_one_template_are_not_mistaken_for_each_other() {
    let one = "---\nid: \"a:1\"\nstatus: completed\n---\n# Check\nSame text\n";
    let nine = "---\nid: \"a:9\"\nstatus: pending\n---\n# Check\nSame text\n";
    // Without a time of creation, two files with equal title and body are the same step, which moved.
    check(
        &[file("a/step-1.md", Some(one), None), file("a/step-9.md", None, Some(nine))],
        &["moved a:9 from=a:1 to=a:9", "status a:9 from=completed to=pending"],
    );
    let one = made("a:1", "completed", "Check");
    let nine = made("a:9", "pending", "Check").replace("09:00:00", "10:00:00");
    check(
        &[file("a/step-1.md", Some(&one), None), file("a/step-9.md", None, Some(&nine))],
        &["removed a:1 from=completed notes=Check", "created a:9 to=pending notes=Check"],
    );
}

#[test]
fn an_id_that_was_not_changed_shows_where_a_file_was_moved() {
    let one = "---\nid: \"a:1\"\nstatus: pending\n---\n# One\nText\n";
    check(
        &[
            file("a/step-1.md", Some(one), None),
            file("a/step-5.md", None, Some(&one.replace("Text", "Another text").replace("# One", "# Five"))),
        ],
        &["moved a:5 from=a:1 to=a:5", "title a:5 from=One to=Five", "text a:5 +2 -2"],
    );
}

#[test]
fn a_plan_is_archived_restored_and_renamed_as_a_whole() {
    let (plan, step) = (Some("# A\n"), Some("---\nstatus: pending\n---\n# One\n"));
    let closed = Some("---\nstatus: skipped\n---\n# One\n");
    check(
        &[
            file("a/plan.md", plan, None),
            file("a/step-1.md", step, None),
            file("_archive/a/plan.md", None, plan),
            file("_archive/a/step-1.md", None, closed),
        ],
        &["archived a from=a to=a", "status a:1 from=pending to=skipped"],
    );
    check(
        &[file("_archive/a/step-1.md", step, None), file("a/step-1.md", None, step)],
        &["restored a from=a to=a"],
    );
    let plan = Some("---\ncreated_at: 2026-11-21T09:00:00Z\n---\n# A\n");
    check(
        &[
            file("a/plan.md", plan, None),
            file("a/step-1.md", step, None),
            file("b/plan.md", None, plan),
            file("b/step-1.md", None, step),
            file("b/step-2.md", None, Some("# Two\n")),
        ],
        &["moved b from=a to=b", "created b:2 to=pending notes=Two"],
    );
}

#[test]
fn a_broken_file_is_reported_and_hides_nothing() {
    let (good, broken) = ("---\nstatus: pending\n---\n# One\n", "---\nstatus: [\n---\n# One\n");
    check_step(good, broken, &["text a:1 notes=not readable: front-matter-invalid"]);
    check(
        &[file("a/step-1.md", None, Some(broken)), file("a/step-2.md", None, Some(good))],
        &["created a:1 to=? notes=not readable: front-matter-invalid", "created a:2 to=pending notes=One"],
    );
}

#[test]
fn a_step_is_followed_back_through_its_names() {
    let id = |text: &str| crate::plan::id::read_step_id(text).unwrap();
    let moved = |what, plan: &str, step: Option<&str>, from: &str| {
        let path = format!("{plan}/x.md");
        let place = Place::Plan { id: PlanId::new(plan), is_archived: false };
        let change = Change::of(what, &place, &path);
        Change { step: step.map(str::to_owned), from: Some(from.to_owned()), ..change }
    };
    let mut followed = Followed::step(&id("b:3"));
    followed
        .before(&[moved(What::Moved, "b", Some("b:3"), "b:2"), moved(What::Moved, "b", Some("b:2"), "b:1")]);
    assert!(followed.concerns(&moved(What::Status, "b", Some("b:2"), "pending")));
    assert!(!followed.concerns(&moved(What::Status, "b", Some("b:3"), "pending")));
    followed.before(&[moved(What::Moved, "b", None, "a")]);
    assert!(followed.concerns(&moved(What::Status, "a", Some("a:2"), "pending")));
    assert!(followed.concerns(&moved(What::Archived, "a", None, "a")));
    assert!(!followed.concerns(&moved(What::Status, "a", None, "active")));
}
