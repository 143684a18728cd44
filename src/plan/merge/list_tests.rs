use super::tests::{STEP, clean, log_of, merged, step, text};
use super::*;

#[test]
fn entries_that_a_list_cannot_take_are_a_conflict() {
    let log = "attempts:\n  - at: 2026-01-01T00:00:00Z\n    outcome: completed\n";
    let of = |log: &str, body: &str| step(&format!("status: pending\n{log}"), body);
    let (base, changed) = (of(log, ""), of(log, "\nMore.\n"));
    let conflict =
        |ours: &str, theirs: &str| format!("<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n");
    // A text in place of the list: only the key is in conflict.
    let other = "attempts: none\n";
    let got = merged(STEP, Some(&base), &of(other, ""), &changed);
    assert_eq!((text(&got), got.is_clean), (of(&conflict(other, log), "\nMore.\n"), false));
    let got = merged(STEP, Some(&base), &changed, &of(other, ""));
    assert_eq!((text(&got), got.is_clean), (of(&conflict(log, other), "\nMore.\n"), false));
    // A side without front matter, and a file with an alias. Both files are merged by lines.
    let alias = |log: &str, body: &str| of(&format!("a: &x 1\nb: *x\n{log}"), body);
    for (base, side, changed) in
        [(base, "# Schema\n".to_owned(), changed), (alias(log, ""), alias("", ""), alias(log, "\nMore.\n"))]
    {
        for (ours, theirs) in [(&side, &changed), (&changed, &side)] {
            let got = merged(STEP, Some(&base), ours, theirs);
            let picked = markers::pick(&got.bytes, 7).expect("it has markers");
            assert_eq!([picked.ours, picked.theirs], [ours, theirs].map(|it| it.as_bytes().to_vec()));
            assert!(!got.is_clean);
        }
    }
    // If OURS has a list in brackets, the comment of an entry cannot be written into it. If THEIRS has it, its entries are
    // added to the list of OURS.
    let (noted, brackets) = (log.replace("  - at", "  # why\n  - at"), "attempts: [{outcome: failed}]\n");
    let got = merged(STEP, Some(&of(&noted, "")), &of(brackets, ""), &of(&noted, "\nMore.\n"));
    assert_eq!((text(&got), got.is_clean), (of(&conflict(brackets, &noted), "\nMore.\n"), false));
    let got = merged(STEP, Some(&of(&noted, "")), &of(&noted, "\nMore.\n"), &of(brackets, ""));
    let both = format!("{noted}  - {{outcome: failed}}\n");
    assert_eq!((text(&got), got.is_clean), (of(&both, "\nMore.\n"), true));
}

#[test]
fn items_of_theirs_keep_their_comments() {
    let own = "  - at: 2026-01-02T00:00:00Z # second\n    outcome: failed\n";
    let (first, third) = (own.replace("-02T", "-01T"), own.replace("-02T", "-03T"));
    let theirs = "  # why\n\n  -   at: 2026-01-02T12:00:00Z  # noon\n      # inside\n      outcome: \"no answer\"   # really\n      # below\n";
    let of = |items: &[&str]| step(&format!("status: pending\nattempts:\n{}", items.concat()), "");
    let third = format!("  # about the third\n{third}");
    clean(
        STEP,
        &of(&[&first]),
        &of(&[&first, own, &third]),
        &of(&[&first, theirs]),
        &of(&[&first, own, theirs, &third]),
    );
    // OURS has another indentation and other line endings.
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let flat = |text: &str| {
        text.lines().map(|it| it.strip_prefix("  ").unwrap_or(it).to_owned() + "\n").collect::<String>()
    };
    let (base, ours) = (of(&[&first]), of(&[&flat(&first), &flat(own)]));
    clean(
        STEP,
        &base,
        &crlf(&ours),
        &of(&[&first, theirs]),
        &crlf(&of(&[&flat(&first), &flat(own), &flat(theirs)])),
    );
    // Both begin the list, below a comment that the base has.
    let begun = |items: &str| step(&format!("status: pending\nattempts:\n  # newest last\n{items}"), "");
    clean(STEP, &begun(""), &begun(own), &begun(theirs), &begun(&format!("{own}{theirs}")));
    // A comment above the key.
    let keyed =
        |comment: &str, items: &str| step(&format!("status: pending\n{comment}depends:\n{items}"), "");
    clean(
        STEP,
        &keyed("", "  - 1\n"),
        &keyed("", "  - 1\n  - 3\n"),
        &keyed("# why\n", "  - 1\n  - 4\n"),
        &keyed("# why\n", "  - 1\n  - 3\n  - 4\n"),
    );
    // Sets, with removals on both sides.
    let set = |items: &str| step(&format!("status: pending\ndepends:\n{items}touches: # all\n{items}"), "");
    clean(
        STEP,
        &set("- 1\n# two\n- 2\n- 3\n"),
        &set("- 1\n# two\n- 2 # own\n- 4 # four\n"),
        &set("# more\n- 7 # seven\n- 1\n- 3\n# five\n- 5 # fifth\n  # deeper\n"),
        &set("- 1\n# two\n- 4 # four\n# more\n- 7 # seven\n# five\n- 5 # fifth\n  # deeper\n"),
    );
}

#[test]
fn a_comment_that_a_list_in_brackets_cannot_take_is_a_conflict() {
    let of = |tags: &str| step(&format!("status: pending\ntags: {tags}\n"), "");
    for theirs in [
        "\n  - a\n  # why\n  - c",
        "[\n  a,\n  c, # why\n]",
        "[\n  a,\n  # why\n  c\n]",
        "\n  # why\n  - a\n  - c",
        "[\n  a, # why\n  c\n]",
    ] {
        let got = merged(STEP, Some(&of("[a]")), &of("[a, b]"), &of(theirs));
        assert!(!got.is_clean && text(&got).contains("# why"), "{}", text(&got));
    }
}

#[test]
fn long_lists_are_merged_item_by_item() {
    let times = |nth: usize| format!("2026-01-{:02}T00:{:02}:00Z", 1 + nth / 60, nth % 60);
    let of = |range: std::ops::Range<usize>, by: &str| -> String {
        let attempt = |it| format!("  - at: {}\n    by: {by}\n    outcome: failed\n", times(it));
        let paths: String = range.clone().map(|it| format!("  - {by}/{it}.rs\n")).collect();
        let log: String = range.map(attempt).collect();
        step(&format!("status: pending\ntouches:\n{paths}attempts:\n{log}"), "")
    };
    let base = of(0..500, "ann");
    let got = merged(STEP, Some(&base), &of(250..750, "ann"), &of(0..500, "bob"));
    assert!(got.is_clean);
    let log = log_of(&text(&got));
    assert_eq!(log.len(), 1000);
    assert!(log.is_sorted_by_key(entries::Entry::at));
    assert_eq!(text(&got).matches(".rs").count(), 250 + 500);
}

#[test]
fn in_a_file_with_mixed_line_ends_each_line_keeps_its_own() {
    let of = |status: &str, title: &str, text: &str| {
        format!(
            "---\r\nid: auth:2\nstatus: {status}\r\ntitle: {title}\n---\r\n# Schema\n\none\r\n\n{text}\r\nend\n"
        )
    };
    let base = of("pending", "A", "two");
    let theirs = of("pending", "B", "2\nmore");
    clean(STEP, &base, &of("completed", "A", "two"), &theirs, &of("completed", "B", "2\nmore"));
    // Only OURS has mixed line endings. THEIRS has the same line endings as the base, or other ones.
    let plain = |it: &str| it.replace("\r\n", "\n");
    let (ours, theirs) = (of("completed", "A", "two"), plain(&of("pending", "B", "two")));
    for theirs in [theirs.replace('\n', "\r\n"), theirs] {
        let got = merged(STEP, Some(&plain(&base)), &ours, &theirs);
        assert_eq!((text(&got), got.is_clean), (of("completed", "B", "two"), true));
    }
    // OURS changed the line ending of the first line.
    let start = |it: String| it.replacen("\r\n", "\n", 1);
    let (ours, both) = (start(of("completed", "A", "two")), start(of("completed", "B", "2\r\nmore")));
    clean(STEP, &base, &ours, &of("pending", "B", "2\r\nmore"), &both);
}
