//! Tests of the rules of editing, one table for each rule. Property tests with random files are in
//! `tests/it/edit_laws.rs`.

use super::*;
use crate::text::scalar;

const ORDER: [&str; 7] = ["id", "status", "claim", "title", "depends", "notes", "attempts"];

#[track_caller]
fn check(before: &str, change: Change, after: &str) {
    checks(before, &[change], after);
}

#[track_caller]
fn checks(before: &str, changes: &[Change], after: &str) {
    let result = edit(before.as_bytes(), changes, &ORDER).unwrap_or_else(|it| panic!("{}: {it}", it.code));
    let result = String::from_utf8(result).expect("UTF-8");
    assert_eq!(result.escape_debug().to_string(), after.escape_debug().to_string());
}

#[track_caller]
fn refuses(before: &str, change: Change, code: &str, at: usize) {
    let error = edit(before.as_bytes(), &[change], &ORDER).expect_err("refused");
    assert_eq!((error.code, error.at), (code, at), "{error}");
    assert!(!error.by_hand.is_empty() && !error.reason.is_empty());
}

fn text(value: &str) -> NewValue {
    NewValue::Text(value.to_owned())
}

fn word(value: &str) -> NewValue {
    NewValue::Word(value.to_owned())
}

fn set(key: &str, value: NewValue) -> Change {
    Change::Set { key: key.to_owned(), value }
}

fn append(key: &str, item: NewValue) -> Change {
    Change::Append { key: key.to_owned(), item }
}

fn remove(key: &str) -> Change {
    Change::Remove { key: key.to_owned() }
}

fn set_item(key: &str, index: usize, value: NewValue) -> Change {
    Change::SetItem { key: key.to_owned(), index, value }
}

fn remove_item(key: &str, index: usize) -> Change {
    Change::RemoveItem { key: key.to_owned(), index }
}

fn typed(value: &str) -> NewValue {
    NewValue::Yaml(value.to_owned())
}

fn texts(values: &[&str]) -> NewValue {
    NewValue::List(values.iter().map(|it| text(it)).collect())
}

fn attempt() -> NewValue {
    NewValue::Map(vec![("at".to_owned(), word("2026-11-21T09:14:03Z")), ("notes".to_owned(), text("a\nb"))])
}

fn claim() -> NewValue {
    let at = ("at".to_owned(), word("2026-11-21T09:14:03Z"));
    NewValue::FlowMap(vec![("id".to_owned(), text("h4f09a21")), ("by".to_owned(), text("name")), at])
}

#[test]
fn a_claim_is_one_line_and_a_status_is_one_line() {
    checks(
        "---\ntitle: x\nstatus: pending  # c\n---\n",
        &[set("status", word("in_progress")), set("claim", claim())],
        "---\ntitle: x\nstatus: in_progress  # c\nclaim: {id: \"h4f09a21\", by: \"name\", at: 2026-11-21T09:14:03Z}\n---\n",
    );
    checks(
        "---\nstatus: in_progress\nclaim: {id: \"h4f09a21\"} # c\nowner: x\n---\n",
        &[set("status", word("pending")), remove("claim"), append("attempts", attempt())],
        "---\nstatus: pending\nowner: x\nattempts:\n  - at: 2026-11-21T09:14:03Z\n    notes: |-\n      a\n      b\n---\n",
    );
}

#[test]
fn the_style_of_a_scalar_stays() {
    check("---\na: 'x'\n---\n", set("a", text("it's")), "---\na: 'it''s'\n---\n");
    check("---\na: 'x'\n---\n", set("a", text("b\nc")), "---\na: \"b\\nc\"\n---\n");
    check("---\na: \"x\"\n---\n", set("a", word("done")), "---\na: \"done\"\n---\n");
    check("---\na: \"5\"\n---\n", set("a", word("6")), "---\na: 6\n---\n");
    check(
        "---\na: | # h\n  x\n  y\n\nb: 1\n---\n",
        set("a", text("p\nq")),
        "---\na: |- # h\n  p\n  q\n\nb: 1\n---\n",
    );
    check("---\na: >\n    x\nb: 1\n---\n", set("a", text("one")), "---\na: |-\n    one\nb: 1\n---\n");
    check("---\na: | # h\n  x\nb: 1\n---\n", set("a", text("")), "---\na: \"\" # h\nb: 1\n---\n");
}

#[test]
fn text_around_a_value_stays() {
    check(
        "---\nstatus:\n  # why\n  pending # c\n---\n",
        set("status", word("done")),
        "---\nstatus:\n  # why\n  done # c\n---\n",
    );
    check("---\nstatus: # c\nb: 1\n---\n", set("status", word("done")), "---\nstatus: done # c\nb: 1\n---\n");
    check("---\nstatus: &a !!str x\n---\n", set("status", word("done")), "---\nstatus: &a !!str done\n---\n");
    check("---\nstatus: !t x\n---\n", set("status", text("z")), "---\nstatus: !t z\n---\n");
    check("---\nn: !!int \"5\"\n---\n", set("n", text("x")), "---\nn: \"x\"\n---\n");
    check(
        "---\na: &s x\nstatus: *s # c\n---\n",
        set("status", word("y")),
        "---\na: &s x\nstatus: y # c\n---\n",
    );
    check("---\nn: 'x'# c\n---\n", set("n", word("5")), "---\nn: 5 # c\n---\n");
    check("---\n? status\n: x\n---\n", set("status", word("y")), "---\n? status\n: y\n---\n");
}

#[test]
fn an_edit_without_a_change_writes_nothing() {
    for (file, change) in [
        ("---\na: \"x\" # c\n---\n", set("a", text("x"))),
        ("---\na: ~\n---\n", set("a", word("null"))),
        ("---\na: [x, 'y']\n---\n", set("a", texts(&["x", "y"]))),
        ("---\na:\n- x\n-   y\n---\n", set("a", typed("[x, y]"))),
        ("---\nm: &m {a: x}\n<<: *m\n---\n", set("a", text("x"))),
        ("---\na: 1\n---\n", remove("b")),
        ("# no front matter\n", remove("b")),
        ("", remove("b")),
    ] {
        check(file, change, file);
    }
    assert_eq!(edit(b"---\nunclosed", &[], &ORDER).as_deref(), Ok(&b"---\nunclosed"[..]));
}

#[test]
fn a_new_key_goes_where_the_table_says() {
    let file = "---\nstatus: x # c\n  # below\nowner: me\nattempts:\n- a\n---\n";
    check(
        file,
        set("claim", text("y")),
        "---\nstatus: x # c\n  # below\nclaim: \"y\"\nowner: me\nattempts:\n- a\n---\n",
    );
    check(file, set("id", text("p:1")), &file.replace("---\nstatus", "---\nid: p:1\nstatus"));
    check(file, set("zzz", text("b")), &file.replace("attempts", "zzz: b\nattempts"));
    check(
        "---\n# head\n\n# about\ntitle: x\n---\n",
        set("status", word("y")),
        "---\n# head\n\nstatus: y\n# about\ntitle: x\n---\n",
    );
    check(
        "---\no: 1\n# about\ntitle: x\n---\n",
        set("status", word("y")),
        "---\no: 1\nstatus: y\n# about\ntitle: x\n---\n",
    );
    check(
        "---\nattempts:\n- a\nstatus: x\n---\n",
        set("claim", word("y")),
        "---\nclaim: y\nattempts:\n- a\nstatus: x\n---\n",
    );
    check(
        "---\nx: 1\nattempts: []\n---\n",
        set("notes", texts(&["n"])),
        "---\nx: 1\nnotes:\n  - \"n\"\nattempts: []\n---\n",
    );
    check("---\n  a: 1\n---\n", set("status", word("y")), "---\n  a: 1\n  status: y\n---\n");
}

#[test]
fn line_endings_are_those_of_the_line_before() {
    check("---\r\na: 1\r\n---\r\n", set("b", word("y")), "---\r\na: 1\r\nb: y\r\n---\r\n");
    check("---\r\n---\r\n", set("b", word("y")), "---\r\nb: y\r\n---\r\n");
    check(
        "---\r\na: 1\nb:\r\n  - x\n---\r\n",
        append("b", text("z")),
        "---\r\na: 1\nb:\r\n  - x\n  - z\n---\r\n",
    );
    check("---\r\na: x\r\n---\r\n", set("b", text("1\n2")), "---\r\na: x\r\nb: |-\r\n  1\r\n  2\r\n---\r\n");
}

#[test]
fn a_file_without_front_matter_gets_one() {
    check("# Step\n", set("status", word("x")), "---\nstatus: x\n---\n# Step\n");
    check(
        "\u{feff}# Step\r\nx\n",
        set("status", word("x")),
        "\u{feff}---\r\nstatus: x\r\n---\r\n# Step\r\nx\n",
    );
    check("", append("notes", text("x")), "---\nnotes:\n  - x\n---\n");
    checks("x", &[set("title", text("t")), set("status", word("s"))], "---\nstatus: s\ntitle: t\n---\nx");
}

#[test]
fn a_list_keeps_its_shape() {
    check("---\na: [x, y] # c\n---\n", append("a", text("z, 1")), "---\na: [x, y, \"z, 1\"] # c\n---\n");
    check("---\na: [\n  x,\n  y\n]\n---\n", append("a", text("z")), "---\na: [\n  x,\n  y,\n  z\n]\n---\n");
    check("---\na: [\n  x, # c\n]\n---\n", append("a", text("z")), "---\na: [\n  x, # c\n  z,\n]\n---\n");
    check("---\na: [] # c\nb: 1\n---\n", append("a", text("z")), "---\na: # c\n  - z\nb: 1\n---\n");
    check("---\na: ~ # c\n---\n", append("a", text("z")), "---\na: # c\n  - z\n---\n");
    check("---\na: !!null ~\n---\n", append("a", text("z")), "---\na:\n  - z\n---\n");
    check("---\na:\n    -   x\n---\n", append("a", text("z")), "---\na:\n    -   x\n    -   z\n---\n");
    check(
        "---\na:\n  -\n    k: v\n---\n",
        append("a", attempt()),
        "---\na:\n  -\n    k: v\n  -\n    at: 2026-11-21T09:14:03Z\n    notes: |-\n      a\n      b\n---\n",
    );
    check("---\na:\n- x\nb: ~\n---\n", append("b", text("z")), "---\na:\n- x\nb:\n- z\n---\n");
    check(
        "---\na:\n  - |+\n    x\n\n# c\n---\n",
        append("a", text("z")),
        "---\na:\n  - |+\n    x\n\n  - z\n# c\n---\n",
    );
    check(
        "---\n{a: [], b: 1}\n---\n",
        append("a", attempt()),
        "---\n{a: [{at: 2026-11-21T09:14:03Z, notes: \"a\\nb\"}], b: 1}\n---\n",
    );
}

#[test]
fn setting_a_list_changes_the_items_that_differ() {
    let file = "---\na:\n  - x # 1\n  - \"y\" # 2\n  - z # 3\n---\n";
    check(file, set("a", texts(&["x", "q", "z"])), &file.replace("\"y\"", "\"q\""));
    check(file, set("a", texts(&["x", "z"])), &file.replace("  - \"y\" # 2\n", ""));
    check(file, set("a", texts(&["x", "y", "z", "w"])), &file.replace("# 3\n", "# 3\n  - w\n"));
    check(file, set("a", texts(&[])), "---\na: []\n---\n");
    check(
        "---\na: [1, 2.5] # c\n---\n",
        set("a", NewValue::List(vec![word("1"), word("3")])),
        "---\na: [1, 3] # c\n---\n",
    );
    check(
        "---\na: x # c\nb: 1\n---\n",
        set("a", texts(&["p", "q"])),
        "---\na: # c\n  - p\n  - q\nb: 1\n---\n",
    );
}

#[test]
fn comments_stay_with_their_items() {
    let file = "---\na:\n  # all\n\n  - x # 1\n    # more on x\n\n  # on y\n  - \"y\"\n  -   z # 3\n  # end\nb: 1\n---\n";
    let moved = |items: &[&str], after: &str| check(file, set("a", texts(items)), after);
    moved(&["y", "z"], &file.replace("  - x # 1\n", ""));
    let appended = file.replace("# end\n", "# end\n  -   w\n");
    moved(&["z", "w"], &appended.replace("  - x # 1\n", "").replace("  - \"y\"\n", ""));
    moved(&["x", "z"], &file.replace("  - \"y\"\n", ""));
    moved(&["w", "x", "y", "z"], &file.replace("  - x", "  - w\n  - x"));
    moved(&["x", "w", "y", "z"], &file.replace("on x\n", "on x\n  - w\n"));
}

#[test]
fn an_item_that_moves_takes_its_comments_along() {
    let file = "---\na:\n  - x # 1\n    # more on x\n\n  # on y\n  - \"y\"\n  -   z # 3\nb: 1\n---\n";
    check(
        file,
        set("a", texts(&["y", "z", "x"])),
        "---\na:\n\n  # on y\n  - \"y\"\n  -   z # 3\n  - x # 1\n    # more on x\nb: 1\n---\n",
    );
    check(
        file,
        set("a", texts(&["z", "w", "x", "y"])),
        "---\na:\n  -   z # 3\n  - w\n  - x # 1\n    # more on x\n\n  # on y\n  - \"y\"\nb: 1\n---\n",
    );
    check("---\na: [x, 'y', z] # c\n---\n", set("a", texts(&["y", "x"])), "---\na: ['y', x] # c\n---\n");
    check(
        "---\na: [\n  x, # 1\n  # on y\n  y # 2\n]\n---\n",
        set("a", texts(&["y", "x", "z"])),
        "---\na: [\n  # on y\n  y, # 2\n  x, # 1\n  z\n]\n---\n",
    );
}

#[test]
fn a_list_without_items_keeps_comment_lines() {
    let file = "---\na: # c\n  # on x\n  - x # 1\n  # on y\n  - y\n  # end\nb: 1\n---\n";
    let after = "---\na: [] # c\n  # on x\n  # on y\n  # end\nb: 1\n---\n";
    check(file, set("a", texts(&[])), after);
    check(file, set("a", typed("[]")), after);
    checks(file, &[remove_item("a", 0), remove_item("a", 0)], after);
    check(
        "---\na: [\n  x, # 1\n  # on y\n  y\n]\n---\n",
        set("a", texts(&[])),
        "---\na: [\n  # on y\n]\n---\n",
    );
    check("---\na: [\n  x, # 1\n  y\n]\n---\n", set("a", texts(&[])), "---\na: []\n---\n");
}

#[test]
fn a_typed_list_changes_the_items_that_differ() {
    let file = "---\na:\n- x # 1\n- 'y' # 2\n---\n";
    check(file, set("a", typed("[y, \"z\"]")), "---\na:\n- 'y' # 2\n- \"z\"\n---\n");
    check(
        file,
        set("a", typed("- x\n- y\n- k: v\n  l: w\n")),
        &file.replace("# 2\n", "# 2\n- k: v\n  l: w\n"),
    );
    check(file, set("a", typed("[x, {k: v}]")), &file.replace("'y'", "{k: v}"));
    check("---\na: [1, 2] # c\n---\n", set("a", typed("- 2\n- k: v\n")), "---\na: [2, {k: v}] # c\n---\n");
    check(file, set("a", typed("- y # new\n- x\n")), "---\na:\n- y # new\n- x\n---\n");
}

#[test]
fn a_list_in_brackets_keeps_its_lines() {
    let file = "---\na: [\n  x, # 1\n  # on y\n  y,\n  z # 3\n] # c\n---\n";
    let becomes = |items: &[&str], after: &str| check(file, set("a", texts(items)), after);
    becomes(&["x", "z"], &file.replace("  y,\n", ""));
    becomes(&["x", "y"], &file.replace("y,\n  z # 3", "y"));
    becomes(&["x", "q", "z"], &file.replace("  y,", "  q,"));
    becomes(&["x", "y", "w", "z"], &file.replace("y,", "y,\n  w,"));
    becomes(&["x", "y", "z", "w"], &file.replace("z # 3", "z, # 3\n  w"));
    check(file, append("a", text("w")), &file.replace("z # 3", "z, # 3\n  w"));
    check(file, remove_item("a", 2), &file.replace("y,\n  z # 3", "y"));
    check(file, remove_item("a", 0), &file.replace("  x, # 1\n", ""));
    check(
        "---\na: [x, y, # 1\n  z]\n---\n",
        set("a", texts(&["x", "z", "w"])),
        "---\na: [x, # 1\n  z, w]\n---\n",
    );
    check("---\na: [x, y,\n  z]\n---\n", set("a", texts(&["x", "y", "q"])), "---\na: [x, y,\n  q]\n---\n");
}

#[test]
fn items_are_replaced_and_removed() {
    check(
        "---\na:\n- x\n- k: v\n  l: w # c\n---\n",
        set_item("a", 1, text("z")),
        "---\na:\n- x\n- z # c\n---\n",
    );
    check(
        "---\na:\n- x # c\n-\n---\n",
        set_item("a", 1, attempt()),
        "---\na:\n- x # c\n- at: 2026-11-21T09:14:03Z\n  notes: |-\n    a\n    b\n---\n",
    );
    check(
        "---\na:\n- !t\n---\n",
        set_item("a", 0, attempt()),
        "---\na:\n- at: 2026-11-21T09:14:03Z\n  notes: |-\n    a\n    b\n---\n",
    );
    check("---\na: [x, {k: v}]\n---\n", set_item("a", 1, text("z")), "---\na: [x, z]\n---\n");
    check("---\na:\n- x # c\n\n- z\n---\n", remove_item("a", 0), "---\na:\n\n- z\n---\n");
    check("---\na: # c\n- x # d\nb: 1\n---\n", remove_item("a", 0), "---\na: [] # c\nb: 1\n---\n");
    check("---\na: [x,]\n---\n", remove_item("a", 0), "---\na: []\n---\n");
    check("---\na: [x, y , z]\n---\n", remove_item("a", 1), "---\na: [x, z]\n---\n");
    check("---\na: [\n  x, # c\n  y, # d\n]\n---\n", remove_item("a", 1), "---\na: [\n  x, # c\n]\n---\n");
}

#[test]
fn removing_takes_the_lines_of_the_key_and_no_comment() {
    check("---\n# a\na: 1 # c\n# b\nb: 2\n---\n", remove("a"), "---\n# a\n# b\nb: 2\n---\n");
    check("---\na:\n- x\n\n# b\nb: |\n t\n\n---\n", remove("b"), "---\na:\n- x\n\n# b\n\n---\n");
    check("---\na: |+\n  x\n\nb: 1\n\n# c\n---\n", remove("b"), "---\na: |+\n  x\n\n# c\n---\n");
    check("---\na: 1\n---\n", remove("a"), "---\n---\n");
    check("---\n{a: 1, b: 2, c: 3}\n---\n", remove("b"), "---\n{a: 1, c: 3}\n---\n");
    check("---\n{a: 1, b: 2}\n---\n", remove("b"), "---\n{a: 1}\n---\n");
    check("---\n{a: 1}\n---\n", remove("a"), "---\n{}\n---\n");
}

#[test]
fn typed_values_stay_as_typed() {
    check("---\na: x # c\n---\n", set("a", typed(" [p, {q: r}] # d\n")), "---\na: [p, {q: r}] # c\n---\n");
    check(
        "---\nb: 1\n---\n",
        set("a", typed("k: v # c\nl:\n- 1\n")),
        "---\nb: 1\na:\n  k: v # c\n  l:\n  - 1\n---\n",
    );
    check(
        "---\r\nb: 1\r\n---\r\n",
        set("a", typed("- x\n- y: |\n    t\n")),
        "---\r\nb: 1\r\na:\r\n  - x\r\n  - y: |\r\n      t\r\n---\r\n",
    );
    check(
        "---\na: x # c\nb: 1\n---\n",
        set("a", typed("|\n p\n q\n")),
        "---\na: | # c\n  p\n  q\nb: 1\n---\n",
    );
    check("---\nb: 1\n---\n", set("a", typed("")), "---\nb: 1\na: ~\n---\n");
    check("---\na: [x]\n---\n", append("a", typed("- p\n- q\n")), "---\na: [x, [p, q]]\n---\n");
    refuses("---\na: 1\n---\n", set("a", typed("[x")), "value-invalid", 0);
    refuses("---\na: 1\n---\n", set("a", typed("a: 1\n--- # x\nb: 2")), "value-invalid", 0);
}

#[test]
fn uncertain_edits_are_refused() {
    let status = || set("status", word("x"));
    refuses("---\nstatus: &s y\nb: *s\n---\n", status(), "anchor-in-use", 12);
    refuses("---\na: &l [y]\nb: *l\n---\n", append("a", text("z")), "anchor-in-use", 7);
    refuses("---\na: &l [y]\nb: *l\n---\n", append("b", text("z")), "alias", 17);
    refuses("---\na: &l [y]\nb: *l\n---\n", remove("a"), "anchor-in-use", 7);
    refuses("---\nm: &m {a: [x]}\n<<: *m\n---\n", append("a", text("z")), "alias", 4);
    refuses("---\nm: &m {a: [x]}\n<<: *m\n---\n", remove("a"), "alias", 4);
    refuses("---\na: text\n---\n", append("a", text("z")), "wrong-type", 7);
    refuses("---\na: {}\n---\n", append("a", text("z")), "wrong-type", 7);
    refuses("---\na: [x]\n---\n", set_item("a", 1, text("z")), "no-such-item", 7);
    refuses("---\nstatus: 1\nb: 1\nstatus: 2\n---\n", status(), "duplicate-key", 19);
    refuses("---\nstatus: 1\n", status(), "front-matter-unclosed", 0);
    refuses("---\n- a\n---\n", status(), "not-a-mapping", 4);
    refuses("---\na: [1\n---\n", status(), "front-matter-invalid", 7);
    refuses("---\n<<<<<<< HEAD\na: 1\n---\n", status(), "conflict-markers", 4);
    refuses("<<<<<<< HEAD\n---\na: 1\n---\n", status(), "conflict-markers", 0);
    refuses("---\na: 1\n--- # x\nb: 1\n---\n", status(), "front-matter-invalid", 9);
    refuses("---\rstatus: x\r---\r", status(), "front-matter-unclosed", 0);
    refuses("---\n? status\n---\n", status(), "layout", 6);
    refuses("---\nstatus: y\rb: 1\n---\n", status(), "layout", 13);
    refuses("---\na: 1\n... # end\n---\n", status(), "front-matter-invalid", 4);
    refuses("---\n&a\nstatus: y\n---\n", remove("status"), "layout", 4);
}

#[test]
fn a_json_value_is_set_over_many_lines() {
    let value = serde_json::json!({"a": [null, [], {}, [-1.5024920540636636e+102]], "õ\u{8d}#": {}, "": "1"});
    check(
        "---\nb: 1\n---\n",
        set("a", NewValue::of_json(&value)),
        "---\nb: 1\na:\n  a:\n    - null\n    - []\n    - {}\n    - - -1.5024920540636636e+102\n  \"õ\\x8D#\": {}\n  \"\": \"1\"\n---\n",
    );
}

#[test]
fn a_key_that_some_reader_finds_too_long_is_refused() {
    for (key, times) in [("k", 1001), ("é", 501), ("\u{1}", 250)] {
        let value = serde_json::json!([{ key.repeat(times): 1 }]);
        for value in [
            NewValue::of_json(&value),
            typed(&scalar::json(&value)),
            typed(&format!("- ? {}", scalar::double(&key.repeat(times)))),
        ] {
            let error = edit(b"---\nb: 1\n---\n", &[set("a", value)], &ORDER).expect_err("refused");
            assert_eq!(
                (error.code, error.reason.as_str()),
                ("value-invalid", "a key has more than 1000 bytes as it is written in YAML")
            );
            assert_eq!(error.by_hand, "choose a shorter key, or put the text into a value");
        }
    }
}

#[test]
fn limits_refuse_before_anything_is_written() {
    let big = "x".repeat(crate::text::front_matter::MAX_FRONT_MATTER);
    refuses("---\na: 1\n---\n", set("b", text(&big)), "file-full", 0);
    let body = "x".repeat(crate::text::front_matter::MAX_FILE - 14);
    refuses(&format!("---\na: 1\n---\n{body}"), set("b", text("long enough")), "file-full", 0);
    let error = edit(&[b'x'; 5 << 20], &[set("b", text("y"))], &ORDER).expect_err("refused");
    assert_eq!(error.code, "too-large");
    let error = edit(b"---\na: \xff\n---\n", &[set("b", text("y"))], &ORDER).expect_err("refused");
    assert_eq!((error.code, error.at), ("not-utf8", 7));
    let error = edit(b"\xff\xfe-\0", &[set("b", text("y"))], &ORDER).expect_err("refused");
    assert_eq!(error.code, "not-utf8");
    let kept = edit(b"---\na: 1\n---\n\xff\n", &[set("a", word("2"))], &ORDER);
    assert_eq!(kept.as_deref(), Ok(&b"---\na: 2\n---\n\xff\n"[..]));
}

#[test]
fn help_says_what_to_type() {
    let error =
        edit(b"---\na: &l [y]\nb: *l\n---\n", &[append("a", attempt())], &ORDER).expect_err("refused");
    let expected = "write the value in place of the alias, then add to `a`: `- {at: 2026-11-21T09:14:03Z, notes: \"a\\nb\"}`";
    assert_eq!(error.by_hand, expected);
}

#[test]
fn a_key_added_before_a_last_comma_goes_without_a_trace() {
    for file in ["---\n{\t!\t, }\n---\n", "---\n{a , }\n---\n", "---\n{? , }\n---\n", "---\n{a: , }\n---\n"] {
        let add = Change::Set { key: "id".into(), value: NewValue::Word("x".into()) };
        let after = edit(file.as_bytes(), &[add], &["id", "status"]).unwrap();
        let back = edit(&after, &[Change::Remove { key: "id".into() }], &["id", "status"]).unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), file);
    }
}
