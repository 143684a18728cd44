use proptest::prelude::*;

use super::*;
use crate::plan::words::Words;

/// A simple [`TextMerge`]. If only one side changed a text, the result is that side. Otherwise the result has both texts
/// between conflict markers.
struct Whole;

impl TextMerge for Whole {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<TextMerged> {
        let one = body::one_of(base, ours, theirs);
        Some(one.map_or_else(|| both(ours, theirs), |it| TextMerged { bytes: it.to_vec(), is_clean: true }))
    }
}

pub(super) fn merged(path: &str, base: Option<&str>, ours: &str, theirs: &str) -> Merged {
    let [base, ours, theirs] =
        [base.unwrap_or_default(), ours, theirs].map(str::as_bytes).map(|it| (!it.is_empty()).then_some(it));
    let of = Versions { path, base, ours: ours.unwrap_or_default(), theirs: theirs.unwrap_or_default() };
    merge(of, &Words::default(), &Whole)
}

pub(super) fn text(of: &Merged) -> String {
    String::from_utf8_lossy(&of.bytes).into_owned()
}

pub(super) const STEP: &str = "plans/auth/step-2.md";
pub(super) const PLAN: &str = "plans/auth/plan.md";

#[track_caller]
pub(super) fn clean(path: &str, base: &str, ours: &str, theirs: &str, expected: &str) {
    let got = merged(path, Some(base), ours, theirs);
    assert_eq!(text(&got), expected);
    assert!(got.is_clean);
    let again = merged(path, Some(base), expected, theirs);
    assert_eq!((text(&again).as_str(), again.is_clean), (expected, true), "merged again");
}

pub(super) fn step(header: &str, body: &str) -> String {
    format!("---\nid: auth:2\n{header}---\n# Schema\n{body}")
}

#[test]
fn attempts_of_both_are_kept_in_the_order_of_their_times() {
    let item =
        |at: &str, by: &str| format!("  - at: 2026-01-{at}T00:00:00Z\n    by: {by}\n    outcome: failed\n");
    let of = |items: &[String]| step(&format!("status: pending\nattempts:\n{}", items.concat()), "");
    let (a, b, c, d) = (item("01", "ann"), item("02", "bob"), item("03", "cy # why"), item("04", "dan"));
    clean(
        STEP,
        &of(std::slice::from_ref(&a)),
        &of(&[a.clone(), c.clone()]),
        &of(&[a.clone(), b.clone(), d.clone()]),
        &of(&[a.clone(), b, c, d]),
    );
    let none = step("status: pending\n", "");
    let got = merged(STEP, Some(&none), &of(std::slice::from_ref(&a)), &of(&[item("05", "eve")]));
    assert_eq!(text(&got), of(&[a, item("05", "eve")]));
}

#[test]
fn an_undone_completion_stays_undone_and_its_attempt_stays_if_the_other_side_changed_the_text() {
    let log = "attempts:\n  - at: 2026-01-01T00:00:00Z\n    outcome: completed\n";
    let of =
        |status: &str, log: &str, body: &str| step(&format!("status: {status}\nnotes: look\n{log}"), body);
    let (base, undone) = (of("completed", log, ""), of("pending", "", ""));
    let changed = of("completed", log, "\nMore.\n");
    let both = of("pending", log, "\nMore.\n");
    clean(STEP, &base, &undone, &changed, &both);
    clean(STEP, &base, &changed, &undone, &both);
    clean(STEP, &base, &undone, &base, &undone);
}

#[test]
fn a_step_that_both_squashed_holds_the_parts_of_both() {
    let of = |body: &str| format!("---\nid: auth:2\n---\n\n{body}\n");
    let base = of("# Schema\n\nThe tables.");
    let squashed = |title: &str, parts: &str| of(&format!("# {title}\n\n# Schema\n\nThe tables.\n\n{parts}"));
    let (data, tests, both) = ("# Data\n\nRows.", "# Tests\n\nRun.", "# Data\n\nRows.\n\n# Tests\n\nRun.");
    let cases = [
        (squashed("All", data), squashed("All", tests), Some(squashed("All", both))),
        (squashed("All", data), squashed("All", data), Some(squashed("All", data))),
        (squashed("All", both), squashed("All", data), Some(squashed("All", both))),
        // Squashed twice, on one side or on both, so that an earlier title is a part.
        (squashed("All", both), squashed("All\n\n# Old", tests), Some(squashed("All\n\n# Old", both))),
        (
            squashed("All\n\n# Own", data),
            squashed("All\n\n# Old", tests),
            Some(squashed("All\n\n# Own\n\n# Old", both)),
        ),
        // Two titles are a conflict. Both sides of the conflict have all parts.
        (squashed("One", data), squashed("Two", tests), None),
    ];
    for (ours, theirs, expected) in cases {
        let got = merged(STEP, Some(&base), &ours, &theirs);
        match expected {
            Some(expected) => assert_eq!((text(&got), got.is_clean), (expected, true)),
            None => {
                let picked = markers::pick(&got.bytes, 7).expect("it has markers");
                let sides = [picked.ours, picked.theirs].map(|it| String::from_utf8(it).expect("it is text"));
                assert_eq!(sides, ["One", "Two"].map(|title| squashed(title, both)));
            }
        }
    }
}

#[test]
fn a_step_that_one_side_squashed_after_both_added_it_is_one_step() {
    let of = |status: &str, body: &str| {
        let times = "created_at: 2026-01-01T00:00:00Z";
        format!("---\nid: auth:2\nstatus: {status}\n{times}\n---\n\n{body}\n")
    };
    let (own, parts) = ("# Schema\n\nThe tables.", "# All\n\n# Schema\n\nThe tables.\n\n# Data\n\nRows.");
    let (plain, squashed) = (of("completed", own), of("pending", parts));
    for (ours, theirs) in [(&plain, &squashed), (&squashed, &plain)] {
        let got = merged(STEP, None, ours, theirs);
        assert_eq!((text(&got), got.is_clean), (of("completed", parts), true));
    }
    // The other side added a line to the text that is now a part.
    let got = merged(STEP, Some(&plain), &of("completed", &format!("{own}\nMore.")), &squashed);
    assert_eq!(text(&got), of("pending", &parts.replace("tables.", "tables.\nMore.")));
    let other = of("pending", &parts.replace("# Schema", "# Pages"));
    assert!(merged(STEP, None, &plain, &other).is_other_file);
    let retitled = of("completed", &own.replace("Schema", "Tables"));
    let got = merged(STEP, Some(&plain), &retitled, &squashed);
    let picked = markers::pick(&got.bytes, 7).expect("it has markers");
    assert_eq!([picked.ours, picked.theirs].map(|it| it.ends_with(b"Rows.\n")), [false, true]);
}

#[test]
fn the_completion_of_one_part_does_not_complete_the_squashed_step() {
    let parts = "# All\n\n# Schema\n\nThe tables.\n\n# Data\n\nRows.\n";
    let of = |header: &str, body: &str| format!("---\nid: auth:2\n{header}---\n{body}");
    let own = "# Schema\n\nThe tables.\n";
    let did = "attempts:\n  - at: 2026-01-01T00:00:00Z\n    outcome: completed\n";
    for (before, now, closed) in [("pending", "pending", "completed"), ("pending", "failed", "skipped")] {
        let (base, squashed) =
            (of(&format!("status: {before}\n"), own), of(&format!("status: {now}\n"), parts));
        let other = of(&format!("status: {closed}\n{did}"), own);
        let expected = of(&format!("status: {now}\n{did}"), parts);
        clean(STEP, &base, &squashed, &other, &expected);
        assert_eq!(text(&merged(STEP, Some(&base), &other, &squashed)), expected);
    }
}

#[test]
fn a_step_that_both_squashed_loses_only_the_parts_that_a_person_removed() {
    let of = |parts: &[&str]| {
        let parts: Vec<_> = parts.iter().map(|it| format!("# {it}\n\nAbout it.")).collect();
        format!("---\nid: auth:2\n---\n\n{}\n", parts.join("\n\n"))
    };
    let base = of(&["Both", "Schema", "Tests"]);
    // OURS lacks a part, as after a conflict that a person resolved with the text of one side only.
    let ours = of(&["Own", "Schema", "Data"]);
    let theirs = of(&["All", "Both", "Schema", "Tests", "Pages"]);
    let got = merged(STEP, Some(&base), &ours, &theirs);
    let picked = markers::pick(&got.bytes, 7).expect("it has markers");
    let sides = [picked.ours, picked.theirs].map(|it| String::from_utf8(it).expect("it is text"));
    assert_eq!(sides, ["Own", "All"].map(|title| of(&[title, "Schema", "Data", "Pages"])));
    // Both changed one part: the lines of the whole text are merged.
    let [ours, theirs] = [(&ours, "Our words."), (&theirs, "Their words.")]
        .map(|(it, words)| it.replace("# Schema\n\nAbout it.", &format!("# Schema\n\n{words}")));
    let got = merged(STEP, Some(&base), &ours, &theirs);
    assert!(!got.is_clean && text(&got).contains("Our words.") && text(&got).contains("Their words."));
}

#[test]
fn the_winner_of_the_status_brings_its_claim() {
    let base = step("status: pending\n", "");
    let claimed = step("status: in_progress # now\nclaim: {id: g1, by: ann, at: 2026-01-01T00:00:00Z}\n", "");
    let titled = step("status: pending\ntitle: New\n", "");
    let both = step(
        "status: in_progress # now\nclaim: {id: g1, by: ann, at: 2026-01-01T00:00:00Z}\ntitle: New\n",
        "",
    );
    clean(STEP, &base, &claimed, &titled, &both);
    clean(STEP, &base, &titled, &claimed, &both);
}

#[test]
fn two_words_for_one_status_are_no_conflict() {
    let of = |status: &str| step(&format!("status: {status}\n"), "");
    for (ours, theirs) in [("done", "completed"), ("completed", "done"), ("wip", "in_progress")] {
        clean(STEP, &of("pending"), &of(ours), &of(theirs), &of(ours));
        clean(STEP, &of(theirs), &of(ours), &of(theirs), &of(ours));
        clean(STEP, &of(ours), &of(ours), &of(theirs), &of(theirs));
    }
    let got = merged(STEP, Some(&of("pending")), &of("odd"), &of("strange"));
    assert!(!got.is_clean);
}

#[test]
fn of_two_claims_the_earlier_holds_and_the_other_becomes_an_attempt() {
    let of = |id: &str, by: &str, day: &str| {
        let claim = format!("claim: {{id: {id}, by: {by}, at: 2026-01-{day}T00:00:00Z}}\n");
        step(&format!("status: in_progress\n{claim}"), "")
    };
    let base = step("status: pending\n", "");
    let got = merged(STEP, Some(&base), &of("g2", "ann", "02"), &of("g1", "bob", "01"));
    let attempt = "attempts:\n  - at: 2026-01-02T00:00:00Z\n    by: ann\n    outcome: expired\n    \
                   notes: claimed twice\n    claim: g2\n";
    let expected = of("g1", "bob", "01").replace("---\n# Schema", &format!("{attempt}---\n# Schema"));
    assert_eq!(text(&got), expected);
    let again = merged(STEP, Some(&base), &expected, &of("g1", "bob", "01"));
    assert_eq!(text(&again), expected);
}

#[test]
fn only_a_claim_that_the_other_side_made_counts_as_claimed_twice() {
    let entry = |id: &str, outcome: &str| {
        format!("  - at: 2026-01-01T00:00:00Z\n    by: ann\n    outcome: {outcome}\n    claim: {id}\n")
    };
    let failed = entry("g1", "failed");
    let of = |status: &str, attempts: &[&str]| {
        step(&format!("status: {status}\nattempts:\n{}", attempts.concat()), "")
    };
    let base = of("pending", &[&failed]);
    let claimed = of("in_progress\nclaim: {id: g2, by: bob, at: 2026-01-02T00:00:00Z}", &[&failed]);
    let expired = |note: &str| {
        let first = "  - at: 2026-01-02T00:00:00Z\n    by: bob\n    outcome: expired\n";
        format!("{first}    notes: {note}\n    claim: g2\n")
    };
    // A claim that ended before the branches parted.
    let blocked = of("blocked", &[&failed]);
    let got = merged(STEP, Some(&base), &blocked, &claimed);
    assert_eq!(text(&got), of("blocked", &[&failed, &expired("the step was changed on another branch")]));
    let done = of("completed", &[&failed, &entry("g3", "completed")]);
    let got = merged(STEP, Some(&base), &done, &claimed);
    let both = [&*failed, &entry("g3", "completed"), &expired("claimed twice")];
    assert_eq!(text(&got), of("completed", &both));
}

#[test]
fn sets_honor_additions_and_removals() {
    let of = |items: &str| step(&format!("status: pending\ndepends: {items}\n"), "");
    clean(STEP, &of("[1, 3]"), &of("[1, 3, 4]"), &of("[3, step-1.5]"), &of("[3, 4, step-1.5]"));
    clean(STEP, &of("[1]"), &of("[1, 3]"), &of("[1, step-3]"), &of("[1, 3]"));
}

#[test]
fn a_scalar_that_both_changed_is_the_only_conflict() {
    let of = |title: &str, more: &str| step(&format!("status: pending\ntitle: {title}\n{more}"), "");
    let got = merged(STEP, Some(&of("A", "")), &of("B", "tags: [one]\n"), &of("C", "tags: [two]\n"));
    let conflict = "<<<<<<< ours\ntitle: B\n=======\ntitle: C\n>>>>>>> theirs\n";
    assert_eq!(text(&got), step(&format!("status: pending\n{conflict}tags: [one, two]\n"), ""));
    assert!(!got.is_clean);
}

#[test]
fn unknown_keys_keep_the_text_and_place_of_the_side_that_wrote_them() {
    let base = step("status: pending\ncustom: 1\n", "");
    let ours = step("status: completed\ncustom: 1\n", "");
    let theirs = step("status: pending\n# why\ncustom: >\n  two\n  lines\nmore: {a: 1}\n", "");
    let expected = step("status: completed\n# why\ncustom: >\n  two\n  lines\nmore: {a: 1}\n", "");
    clean(STEP, &base, &ours, &theirs, &expected);
}

#[test]
fn boxes_next_to_each_other_are_ticked_by_both() {
    let of = |a: &str, b: &str, c: &str| {
        step("status: pending\n", &format!("\n## Tasks\n- [{a}] one\n- [{b}] two\n- [{c}] three\n"))
    };
    clean(STEP, &of(" ", " ", "x"), &of("x", " ", "x"), &of(" ", "X", " "), &of("x", "X", " "));
}

#[test]
fn the_steps_list_has_the_items_of_both_in_the_order_of_numbers() {
    let of = |items: &[&str]| {
        let items: String = items.iter().map(|it| format!("- {it}\n")).collect();
        format!("---\nstatus: active\n---\n# Auth\n\n## Steps\n{items}\nText.\n")
    };
    let base = of(&["step-1: A", "step-2: B"]);
    let ours = of(&["step-1: A", "step-2: Two", "step-4: D"]);
    let theirs = of(&["step-1: One", "step-2: B", "step-2.5: B2", "step-3: C"]);
    let expected = of(&["step-1: One", "step-2: Two", "step-2.5: B2", "step-3: C", "step-4: D"]);
    clean(PLAN, &base, &ours, &theirs, &expected);
    clean(PLAN, &base, &of(&["step-2: B"]), &of(&["step-1: A", "step-2: B2"]), &of(&["step-2: B2"]));
}

#[test]
fn a_list_whose_items_one_side_moved_and_the_other_side_removed_keeps_the_moved_ones() {
    let of = |items: &[&str]| {
        let items: String = items.iter().map(|it| format!("- step-{it}\n  Its text.\n")).collect();
        format!("# Auth\n\n## Steps\n\n{items}")
    };
    let (base, removed) = (of(&["1: A", "2: B", "3: C"]), of(&["1: A", "2: B"]));
    let (moved, both) = (of(&["2.5: A", "3: C", "4: B"]), of(&["2.5: A", "4: B"]));
    clean(PLAN, &base, &removed, &moved, &both);
    clean(PLAN, &base, &moved, &removed, &both);
}

#[test]
fn line_ends_of_ours_stay() {
    let base = step("status: pending\ntitle: A\n", "\none\n\ntwo\n");
    let ours = step("status: completed\ntitle: A\n", "\none\n\ntwo\n").replace('\n', "\r\n");
    let theirs = step("status: pending\ntitle: B\n", "\none\n\n2\n");
    let expected = step("status: completed\ntitle: B\n", "\none\n\n2\n").replace('\n', "\r\n");
    clean(STEP, &base, &ours, &theirs, &expected);
}

#[test]
fn another_file_of_the_name_is_a_conflict() {
    let of = |id: &str, status: &str, created: &str| {
        format!("---\nid: auth:{id}\nstatus: {status}\ncreated_at: 2026-01-{created}\n---\n# Same\n")
    };
    let paired =
        merged(STEP, Some(&of("1", "pending", "01")), &of("9", "pending", "02"), &of("1", "completed", "01"));
    assert!(!paired.is_clean && paired.is_other_file);
    let again =
        merged(STEP, Some(&of("2", "pending", "01")), &of("2", "pending", "02"), &of("2", "completed", "01"));
    assert!(!again.is_clean && again.is_other_file);
    let added = merged(STEP, None, &of("2", "pending", "01"), &of("2", "pending", "02"));
    assert!(!added.is_clean && added.is_other_file);
    let moved =
        merged(STEP, Some(&of("1", "pending", "01")), &of("2", "pending", "01"), &of("1", "completed", "01"));
    assert_eq!((text(&moved), moved.is_clean), (of("2", "completed", "01"), true));
    // Steps that one command created differ in the title only.
    let titled = |id: &str, title: &str| of(id, "pending", "01").replace("# Same", title);
    let completed = of("1", "completed", "01");
    for (title, is_other) in
        [("# Other", true), ("# Both\n\n# Same", false), ("# Both\n\n# Other\n\n# Same", true)]
    {
        let base = of("1", "pending", "01");
        let sides = [
            merged(STEP, Some(&base), &titled("2", title), &completed),
            merged(STEP, Some(&base), &completed, &titled("2", title)),
        ];
        assert_eq!(sides.map(|it| (it.is_other_file, it.is_clean)), [(is_other, !is_other); 2], "{title}");
    }
    let picked = merged(STEP, None, &of("2", "pending", "01"), &of("2", "completed", "01"));
    assert_eq!((text(&picked), picked.is_clean), (of("2", "completed", "01"), true));
}

#[test]
fn likeness_needs_more_than_one_time_of_creation() {
    let of = |id: &str, day: &str, body: &str| {
        format!("---\nid: auth:{id}\ncreated_at: 2026-01-{day}T00:00:00Z\n---\n{body}\n")
    };
    let one = of("1", "01", "# One");
    for (other, expected) in [
        (of("1", "01", "# One"), 4),
        (of("5", "01", "# One"), 3),
        (of("1", "01", "# Both\n\n# One"), 2),
        (of("1", "01", "# Two"), 0),
        (of("2", "01", "# Two"), 0),
        (of("1", "02", "# One"), 0),
    ] {
        assert_eq!(likeness(one.as_bytes(), other.as_bytes()), expected, "{other}");
    }
}

#[test]
fn a_second_confirmation_becomes_a_note() {
    let of = |by: &str, day: &str| {
        step(&format!("status: pending\nconfirmed: {{by: {by}, at: 2026-01-{day}T00:00:00Z}}\n"), "")
    };
    let base = step("status: pending\n", "");
    let got = merged(STEP, Some(&base), &of("ann", "02"), &of("bob", "01"));
    let note =
        "notes:\n  - at: 2026-01-02T00:00:00Z\n    type: info\n    by: ann\n    text: also confirmed\n";
    assert_eq!(text(&got), of("bob", "01").replace("---\n# Schema", &format!("{note}---\n# Schema")));
    assert!(got.is_clean);
}

#[test]
fn unreadable_files_are_merged_by_lines_and_lose_nothing() {
    let good = step("status: pending\n", "");
    for bad in [
        "---\na: [\n---\n",
        "---\na: 1\n",
        "---\n<<<<<<< x\na: 1\n=======\n>>>>>>> y\n---\n",
        "---\n{a: 1}\n---\n",
    ] {
        let got = merged(STEP, Some(&good), bad, &step("status: completed\n", ""));
        assert!(!got.is_clean && text(&got).contains(bad) && text(&got).contains("completed"), "{bad}");
    }
    let of = Versions { path: STEP, base: Some(b"\xff"), ours: b"\xfe", theirs: b"a" };
    let got = merge(of, &Words::default(), &Whole);
    assert_eq!((got.bytes.as_slice(), got.is_clean), (&b"\xfe"[..], false));
}

/// A version of a step. All versions have the same id, the same first attempt and the same tasks.
fn version() -> impl Strategy<Value = String> {
    let statuses = ["pending", "in_progress", "completed", "failed", "blocked", "skipped"];
    let log = prop::collection::vec((1..28_u32, "[a-c]"), 0..3);
    let words = prop::collection::vec(prop::sample::select(&["1", "3", "4.5"][..]), 0..3);
    let ticks = prop::collection::vec(any::<bool>(), 3);
    let status = prop::sample::select(statuses.to_vec());
    (status, log, words, ticks, any::<bool>(), prop::option::of(1..4_u32)).prop_map(
        |(status, log, depends, ticks, crlf, claim)| {
            let mut parts = vec![format!("---\nid: auth:2\nstatus: {status}\n")];
            if let Some(claim) = claim {
                parts.push(format!("claim: {{id: g{claim}, by: ann, at: 2026-01-0{claim}T00:00:00Z}}\n"));
            }
            parts.push(format!("depends: [{}]\nattempts:\n", depends.join(", ")));
            parts.push("  - at: 2026-01-01T00:00:00Z\n    outcome: failed\n".to_owned());
            for (day, by) in log {
                parts.push(format!(
                    "  - at: 2026-01-{day:02}T00:00:00Z\n    by: {by}\n    outcome: {status}\n"
                ));
            }
            parts.push("---\n# Schema\n\n".to_owned());
            for (nth, ticked) in ticks.iter().enumerate() {
                parts.push(format!("- [{}] task {nth}\n", if *ticked { "x" } else { " " }));
            }
            let text = parts.concat();
            if crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

pub(super) fn log_of(file: &str) -> Vec<entries::Entry> {
    let tree = Tree::of_file(file.as_bytes()).expect("it is valid");
    entries::read(tree.root().get("attempts")).expect("it is a list")
}

fn status_of(file: &str) -> String {
    Tree::of_file(file.as_bytes())
        .and_then(|it| Some(it.root().get("status")?.text()?.to_owned()))
        .expect("it is there")
}

#[test]
fn only_line_ends_that_are_all_alike_are_converted() {
    for (model, bytes, expected) in [
        ("a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n"),
        ("a\nb\n", "c\r\nd\r\n", "c\nd\n"),
        ("a\nb\n", "c\r\nd\n", "c\r\nd\n"),
        ("a\r\nb\n", "c\nd\n", "c\nd\n"),
        ("a\r\nb\r\n", "c\nd\r\n", "c\nd\r\n"),
        ("a\nb\r\n", "c\r\nd\r\n", "c\r\nd\r\n"),
        ("", "c\r\nd\n", "c\r\nd\n"),
    ] {
        assert_eq!(with_line_ends_of(model.as_bytes(), bytes.as_bytes()), expected.as_bytes());
    }
}

/// Lines that together make readable files, files with doubled keys, and files that cannot be read.
const LINES: [&str; 12] = [
    "status: pending\n",
    "status: completed\n",
    "title: A\n",
    "depends: [1, 2]\n",
    "attempts:\n  - at: 2026-01-01T00:00:00Z\n    outcome: failed\n",
    "  - at: 2026-01-02T00:00:00Z\n    outcome: completed\n",
    "  - one line\n",
    "notes: look\n",
    "---\n# Schema\n",
    "- [ ] one\n",
    "---\n",
    "more: {a: 1}\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_side_that_changed_nothing_changes_nothing(base in version(), other in version()) {
        for (ours, theirs, expected) in [(&other, &other, &other), (&base, &other, &other), (&other, &base, &other)] {
            let got = merged(STEP, Some(&base), ours, theirs);
            prop_assert!(got.is_clean);
            prop_assert_eq!(&text(&got), expected);
        }
    }

    #[test]
    fn every_attempt_of_both_is_in_the_result(base in version(), ours in version(), theirs in version()) {
        let got = merged(STEP, Some(&base), &ours, &theirs);
        prop_assert!(got.is_clean, "{}", text(&got));
        let log = log_of(&text(&got));
        for side in [&ours, &theirs] {
            prop_assert!(entries::missing(&log_of(side), &log).is_empty(), "{}", text(&got));
        }
        prop_assert!([status_of(&ours), status_of(&theirs)].contains(&status_of(&text(&got))));
    }

    #[test]
    fn merging_again_changes_nothing(base in version(), ours in version(), theirs in version()) {
        let once = text(&merged(STEP, Some(&base), &ours, &theirs));
        let again = merged(STEP, Some(&base), &once, &theirs);
        prop_assert_eq!(text(&again), once);
    }

    #[test]
    fn both_ways_mean_the_same(base in version(), ours in version(), theirs in version()) {
        let meaning = |one: &str, other: &str| {
            let file = text(&merged(STEP, Some(&base), one, other)).replace("\r\n", "\n");
            let tree = Tree::of_file(file.as_bytes()).expect("it is valid");
            let list = |key: &str| {
                let mut all: Vec<_> = entries::read(tree.root().get(key)).expect("it is a list");
                all.sort_by_key(|it| it.value.to_string());
                all.iter().map(|it| it.value.to_string()).collect::<Vec<_>>()
            };
            let depends: std::collections::BTreeSet<_> = list("depends").into_iter().collect();
            let claim = tree.root().get("claim").and_then(|it| it.get("id")?.text().map(str::to_owned));
            let body = file.rsplit("---\n").next().unwrap_or_default().to_owned();
            (status_of(&file), claim, list("attempts"), depends, body)
        };
        prop_assert_eq!(meaning(&ours, &theirs), meaning(&theirs, &ours));
    }

    #[test]
    fn additions_of_theirs_leave_every_line_of_ours(base in version(), ours in version(), days in prop::collection::vec(1..28_u32, 1..3)) {
        let eol = if base.contains("\r\n") { "\r\n" } else { "\n" };
        let entry = |day: &u32| format!("  - at: 2026-02-{day:02}T00:00:00Z{eol}    outcome: expired{eol}");
        let added: String = days.iter().map(entry).collect();
        let end = format!("---{eol}# Schema");
        let theirs = base.replacen(&end, &format!("{added}{end}"), 1);
        let result = text(&merged(STEP, Some(&base), &ours, &theirs));
        let mut left = result.split_inclusive('\n');
        for line in ours.split_inclusive('\n') {
            prop_assert!(left.any(|it| it == line), "{line:?} of {ours} is not in {result}");
        }
    }

    #[test]
    fn a_clean_result_can_be_read_and_loses_nothing(lines in prop::collection::vec((0..LINES.len(), 1..8_u8), 0..24)) {
        let side = |bit: u8| -> String {
            let chosen = lines.iter().filter(|(_, sides)| sides & bit != 0).map(|(nth, _)| LINES[*nth]);
            format!("---\n{}", chosen.collect::<String>())
        };
        let [base, ours, theirs] = [side(1), side(2), side(4)];
        let got = merged(STEP, Some(&base), &ours, &theirs);
        let can_be_read = |it: &str| Side::read(STEP, it.as_bytes()).is_some();
        let are_whole = [&base, &ours, &theirs].iter().all(|it| can_be_read(it));
        prop_assert!(!(got.is_clean && are_whole) || can_be_read(&text(&got)), "{}", text(&got));
        // If only one side changed the file, that side is the result, even if it lacks entries of the other side.
        let both_changed = base != ours && base != theirs;
        if got.is_clean && are_whole && both_changed {
            for version in [&ours, &theirs] {
                prop_assert_eq!(lost(version.as_bytes(), &got.bytes), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn no_bytes_make_it_fail(base in ".{0,80}", ours in "(---\n)?.{0,80}", theirs in "(---\n)?[a-z: \n-]{0,80}") {
        let got = merged(PLAN, Some(&base), &ours, &theirs);
        prop_assert!(!got.is_clean || got.bytes == ours.as_bytes() || got.bytes == theirs.as_bytes() || !got.bytes.is_empty());
    }
}

/// No part of a comment is dropped without a conflict, whichever side's value is taken.
#[test]
fn a_comment_that_one_side_changed_is_in_the_result_or_in_conflict() {
    let of = |status: &str, depends: &str, tags: &str| {
        step(&format!("status: {status}\ndepends:\n{depends}tags: {tags}\n"), "")
    };
    let base = of("pending # see 7", "  - 1 # the schema\n", "[db] # short");
    let work = of("completed # see 7", "  - 1 # the schema\n  - 3\n", "[db, web] # short");
    for (status, depends, tags) in [
        ("pending # ask Eve", "  - 1 # the schema\n", "[db] # short"),
        ("pending # see 7", "  - 1 # the schema; ask Bob\n", "[db] # short"),
        ("pending # see 7", "  - 1 # the schema\n", "[db] # only these"),
    ] {
        let commented = of(status, depends, tags);
        for (ours, theirs) in [(&work, &commented), (&commented, &work)] {
            let got = merged(STEP, Some(&base), ours, theirs);
            let text = text(&got);
            let has_both = |part: &str| text.contains(part);
            assert!(["ask", "only these"].into_iter().any(has_both) && has_both("completed"), "{text}");
            assert!(!got.is_clean || has_both("- 3"), "{text}");
        }
    }
}

#[test]
fn a_comment_that_is_already_at_another_place_is_not_lost_either() {
    let of = |status: &str, tags: &str| step(&format!("status: {status}\ntags: {tags}\n"), "");
    let (base, theirs) = (of("pending", "[db] # short"), of("pending # short", "[db] # short"));
    let got = merged(STEP, Some(&base), &of("completed", "[db] # short"), &theirs);
    assert!(!got.is_clean && text(&got).contains("pending # short"), "{}", text(&got));
}

#[test]
fn a_new_file_at_the_place_of_a_removed_one_without_a_time_is_another_file() {
    let of = |created: &str, status: &str, title: &str| {
        format!("---\n{created}status: {status}\n---\n# {title}\n\nText of {title}.\n")
    };
    let (base, done) = (of("", "pending", "Tests"), of("", "completed", "Tests"));
    let time = "created_at: 2026-01-01T00:00:00Z\n";
    for (title, is_other) in [("Hardware", true), ("Tests", false)] {
        let new = of(time, "pending", title);
        for (ours, theirs) in [(&new, &done), (&done, &new)] {
            let got = merged(STEP, Some(&base), ours, theirs);
            assert_eq!((got.is_other_file, got.is_clean), (is_other, !is_other), "{}", text(&got));
        }
    }
}
