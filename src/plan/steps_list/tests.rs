//! How Steps lines are read and edited.

use proptest::prelude::*;

use super::*;

fn plan() -> PlanId {
    PlanId::new("p")
}

fn listed(body: &str) -> Vec<Listed> {
    read(&plan(), &markdown::outline(body))
}

fn number(text: &str) -> StepNumber {
    text.parse().expect("it is a number")
}

fn step(text: &str) -> StepId {
    references::read_item(&plan(), text).expect("it is a step")
}

#[track_caller]
fn check_read(lines: &str, expected: &[(&str, &str)]) {
    let body = format!("# P\n\n## Steps\n{lines}\n## Else\n- step-9: not here\n");
    let found: Vec<_> = listed(&body).into_iter().map(|it| (it.number.to_string(), it.title)).collect();
    let expected: Vec<_> = expected.iter().map(|(n, it)| ((*n).to_owned(), (*it).to_owned())).collect();
    assert_eq!(found, expected, "{lines}");
}

#[test]
fn lines_are_read_in_all_their_forms() {
    for (line, title) in [
        ("- step-1: Set up", "Set up"),
        ("- [x] step-1: Create (depends: step-0)", "Create"),
        ("* [step-1](step-1.md): Link", "Link"),
        ("* [step-1](step-1.md#tasks): Link", "Link"),
        ("* [Titled link](step-1.md)", "Titled link"),
        ("* [Titled link](./step-1.md#step-2)", "Titled link"),
        ("* [step-1: Two](./step-1.md)", "Two"),
        ("+ [Step 1: Two](step-1.md) (depends: 0)", "Two"),
        ("1. **step-1** – Bold", "Bold"),
        ("1) **step-1: Bold**", "Bold"),
        ("- **step-1:** Bold", "Bold"),
        ("- **step-1: Bold** and more", "Bold and more"),
        ("- **[step-1](step-1.md)**: Link", "Link"),
        ("- `step-1` Code", "Code"),
        ("- `step-1` – Code", "Code"),
        ("- step-1.md: File", "File"),
        ("- Step 1: One", "One"),
        ("- Step 1 - One", "One"),
        ("- **Step 1**: One", "One"),
        ("- STEP-1: One", "One"),
        ("- step-1 One", "One"),
        ("- step-1. One", "One"),
        ("- step-1: .gitignore and **bold**", ".gitignore and **bold**"),
        ("- step-1", ""),
        ("- step-1: One (depends: step-0) (optional)", "One (optional)"),
        ("- **step-1: One (depends: step-0)**", "One"),
    ] {
        check_read(&format!("{line}\n"), &[("1", title)]);
    }
    check_read("- a remark\n- step-x\n- Step 2 must be reviewed\n- step-3b: no\n- stepping 4\n", &[]);
}

#[test]
fn indented_lists_and_lists_below_phases_count() {
    check_read("\n  - step-1: A\n  - step-2: B\n", &[("1", "A"), ("2", "B")]);
    check_read("   1. step-1: A\n   2. step-2: B\n", &[("1", "A"), ("2", "B")]);
    check_read("- Phase A\n  - step-1: A\n- Phase B\n  - [ ] step-2: B\n", &[("1", "A"), ("2", "B")]);
    check_read("- step-1: A\n  - step-0 must be done\n- step-2: B\n", &[("1", "A"), ("2", "B")]);
    check_read("- a\n  - b\n    - step-1: too deep\n", &[]);
}

#[track_caller]
fn check_problems(line: &str, expected: &[(u32, &str)]) {
    let file = format!("---\nstatus: active\n---\n## Steps\n- step-0: A\n{line}\n");
    let body = &file["---\nstatus: active\n---\n".len()..];
    let mut line = listed(body).pop().expect("there is a line");
    line.locate("p/plan.md", &Lines::of(file.as_bytes()), file.len() - body.len());
    let found: Vec<_> = line.problems.iter().map(|it| (it.column, it.message.as_str())).collect();
    assert_eq!(found, expected);
    assert!(line.problems.iter().all(|it| (it.line, it.path.as_str()) == (6, "p/plan.md")));
}

#[test]
fn a_dependency_that_is_no_step_is_a_problem() {
    check_problems("- step-1: B (depends: step-0, `none`)", &[]);
    check_problems(
        "- step-1: B (depends: step-0, stpe-1)",
        &[(31, "the dependency `stpe-1` in the Steps list is not a step")],
    );
    check_problems(
        "- [ ] step-4: B (depends: step-1..step-3) (optional)",
        &[(27, "the dependency `step-1..step-3` in the Steps list is not a step")],
    );
    check_problems(
        "- step-1: B (depends: step-0",
        &[(13, "the parenthesis of the dependencies is not closed")],
    );
}

#[track_caller]
fn check_depends(line: &str, title: &str, expected: &[&str]) {
    for line in [line.to_owned(), line.replace('\n', "\r\n")] {
        let lines = listed(&format!("## Steps\n- step-0: Z\n{line}\n- step-9: Y\n"));
        assert_eq!(lines.len(), 3, "{line}");
        assert_eq!(lines[1].title, title, "{line}");
        let expected: Vec<_> = expected.iter().map(|it| step(it)).collect();
        assert_eq!(lines[1].depends.clone().unwrap_or_default(), expected, "{line}");
    }
}

#[test]
fn dependencies_are_read_over_the_end_of_a_line() {
    check_depends("- step-3: C (depends: step-0,\n  step-1)", "C", &["0", "1"]);
    check_depends("- step-3: C (depends: step-0 and\nstep-1,\n  step-2) more", "C", &["0", "1", "2"]);
    check_depends("- [ ] step-3: C\n  (depends: `step-0`)", "C", &["0"]);
    check_depends("- step-3: C (depends:\n  step-0) more\n  (depends on step-1)", "C", &["0", "1"]);
    check_depends("- step-3: C (depends on\n  step-0)", "C", &["0"]);
    // Text outside of the item's paragraph is not read, and an unclosed parenthesis ends at the end of its line.
    check_depends("- step-3: C\n\n  (depends: step-0)", "C", &[]);
    check_depends("- step-3: C\n  - (depends: step-0)", "C", &[]);
    check_depends("- step-3: C (depends: step-0\n  and more", "C", &["0"]);
}

#[track_caller]
fn check_insert(list: &str, (n, title): (&str, &str), depends: &[&str], expected: &str) {
    let depends: Vec<_> = depends.iter().map(|it| step(it)).collect();
    let file = format!("## Steps\n{list}");
    let after = with_step(&plan(), file.as_bytes(), &number(n), title, &depends);
    assert_eq!(String::from_utf8_lossy(&after), format!("## Steps\n{expected}"));
}

#[test]
fn a_line_is_added_in_its_neighbours_style() {
    let added = |line: &str, expected: &str| {
        check_insert(&format!("{line}\n\nend\n"), ("2", "B"), &[], &format!("{line}\n{expected}\n\nend\n"));
    };
    added("- step-1: A", "- step-2: B");
    added("- step-1 - A", "- step-2 - B");
    added("- step-1 – A (depends: step-0) (optional)", "- step-2 – B");
    added("* [x] `step-1` — A", "* [ ] `step-2` — B");
    added("- step-1.md: A", "- step-2.md: B");
    added("- **step-1: A**", "- **step-2: B**");
    added("- **step-1: A (depends: step-0)**", "- **step-2: B**");
    added("- **step-1:** A", "- **step-2:** B");
    added("- **step-1** A", "- **step-2** B");
    added("- [step-1: A](./step-1.md)", "- [step-2: B](./step-2.md)");
    added("- [Step 1: A](step-1.md)", "- [Step 2: B](step-2.md)");
    added("- [A](step-1.md)", "- [B](step-2.md)");
    added("- [step-1](step-1.md): A", "- [step-2](step-2.md): B");
    added("- Step 1: A", "- Step 2: B");
    added("- step-1", "- step-2: B");
    added("  - step-1: A\n    more", "  - step-2: B");
    added("- Phase\n  - step-1: A", "  - step-2: B");
    added("1. step-1: A", "2. step-2: B");
    added("1. step-0: Z\n1. step-1: A", "1. step-2: B");
    added("- step-0: Z\n\n- step-1: A", "\n- step-2: B");
}

#[test]
fn a_line_is_added_in_its_place() {
    check_insert("- step-0: A\n- step-2: C\n", ("1", "B"), &[], "- step-0: A\n- step-1: B\n- step-2: C\n");
    check_insert("- step-1: A\n", ("0", "Z"), &[], "- step-0: Z\n- step-1: A\n");
    check_insert(
        "- step-1: A\n\n- step-2: B\n",
        ("0", "Z"),
        &[],
        "- step-0: Z\n\n- step-1: A\n\n- step-2: B\n",
    );
    check_insert("- [A](step-1.md)", ("2", "B"), &[], "- [A](step-1.md)\n- [B](step-2.md)");
    check_insert("* [x] step-0: A\r\n", ("1", "B"), &[], "* [x] step-0: A\r\n* [ ] step-1: B\r\n");
    check_insert("- step-1: A\n", ("1", "B"), &[], "- step-1: A\n");
    check_insert(
        "1. step-1: A\n",
        ("2", "B"),
        &["1", "q:3"],
        "1. step-1: A\n2. step-2: B (depends: step-1, q:3)\n",
    );
    check_insert("- [A](step-1.md)\n", ("2", "B ](x"), &[], "- [A](step-1.md)\n- step-2: B ](x\n");
    check_insert("no list\n", ("2", "B"), &[], "no list\n");
}

#[track_caller]
fn check_move(list: &str, (from, to): (&str, &str), expected: &str) {
    let file = format!("## Steps\n{list}");
    let after = with_moved(&plan(), file.as_bytes(), &number(from), &number(to));
    assert_eq!(String::from_utf8_lossy(&after), format!("## Steps\n{expected}"));
}

#[test]
fn a_line_moves_as_a_whole_and_keeps_its_bytes() {
    check_move(
        "- step-1:  One,  as *written* (depends: step-0) (!)\n  - sub of step-1\n\n  more\n- step-2: B (depends: step-1)\n- x\n",
        ("1", "3"),
        "- step-2: B (depends: step-3)\n- step-3:  One,  as *written* (depends: step-0) (!)\n  - sub of step-1\n\n  more\n- x\n",
    );
    check_move(
        "- [x] [step-1](./step-1.md): A\r\n- [ ] [step-2](step-2.md): B (depends: `step-1`, 0)\r\n",
        ("1", "2.5"),
        "- [ ] [step-2](step-2.md): B (depends: `step-2.5`, 0)\r\n- [x] [step-2.5](./step-2.5.md): A\r\n",
    );
    check_move(
        "- step-1: A\n- step-2: B\n- step-3: C\n",
        ("2", "2.5"),
        "- step-1: A\n- step-2.5: B\n- step-3: C\n",
    );
    check_move("- step-1: A\n- step-2: B", ("2", "0"), "- step-0: B\n- step-1: A");
    check_move("- step-1: A\n- step-2: B", ("1", "3"), "- step-2: B\n- step-3: A");
    check_move("- step-1: A\n\n- step-2: B\n\nend\n", ("1", "3"), "- step-2: B\n\n- step-3: A\n\nend\n");
    check_move(
        "- Phase A\n  - step-1: A\n    - sub\n- Phase B\n  - step-2: B\n- step-3: C\n",
        ("1", "4"),
        "- Phase A\n- Phase B\n  - step-2: B\n- step-3: C\n- step-4: A\n  - sub\n",
    );
    check_move("- step-2: B (depends: step-1)\n", ("1", "5"), "- step-2: B (depends: step-5)\n");
}

#[track_caller]
fn check_remove(list: &str, n: &str, heirs: &[&str], (expected, lost): (&str, &str)) {
    let heirs: Vec<_> = heirs.iter().map(|it| step(it)).collect();
    let file = format!("## Steps\n{list}");
    let (after, removed) = without_step(&plan(), file.as_bytes(), &number(n), &heirs);
    assert_eq!(String::from_utf8_lossy(&after), format!("## Steps\n{expected}"));
    assert_eq!(removed, lost);
}

#[test]
fn a_line_is_removed_with_its_line_ending_and_returned() {
    check_remove("- step-0: A\n- step-1: B\n\nend\n", "1", &[], ("- step-0: A\n\nend\n", "- step-1: B\n"));
    check_remove("- step-0: A\n- step-1: B", "1", &[], ("- step-0: A", "- step-1: B"));
    check_remove(
        "- step-0: A\r\n  more\r\n- step-1: B\r\n",
        "0",
        &[],
        ("- step-1: B\r\n", "- step-0: A\r\n  more\r\n"),
    );
    check_remove(
        "- step-0: A\n\n- step-1: B\n\n- step-2: C\n",
        "0",
        &[],
        ("- step-1: B\n\n- step-2: C\n", "- step-0: A\n"),
    );
    check_remove("- step-0: A\n\n- step-1: B\n\nend\n", "1", &[], ("- step-0: A\n\nend\n", "- step-1: B\n"));
}

#[test]
fn steps_that_waited_for_a_removed_line_wait_for_its_heirs() {
    let removed = |line: &str, heirs: &[&str], expected: &str| {
        let (list, after) = (format!("- step-2: X\n{line}\n"), format!("{expected}\n"));
        check_remove(&list, "2", heirs, (&after, "- step-2: X\n"));
    };
    removed("- step-3: A (depends: step-2)", &["1"], "- step-3: A (depends: step-1)");
    removed("- step-3: A (depends: step-2) (optional)", &[], "- step-3: A (optional)");
    removed("- step-3: A (depends: 1, `2`)", &["0", "1"], "- step-3: A (depends: 1, `0`)");
    removed("- step-3: A (depends on step-1 and step-2)", &["1"], "- step-3: A (depends on step-1)");
    removed("- step-3: A (depends: 2, 0)", &["3"], "- step-3: A (depends: 0)");
    removed("- step-3: A (depends: p:2, foo)", &["q:4"], "- step-3: A (depends: q:4, foo)");
    removed("- step-3: A (depends: 2) (depends: 2)", &["1"], "- step-3: A (depends: 1)");
}

#[test]
fn lines_of_other_plans_follow_too() {
    let file = "---\ntitle: x\n---\n## Steps\n- step-1: A (depends: q:2)\n- step-2: B (depends: 1)\n";
    let after = relinked(&plan(), file.as_bytes(), &step("q:2"), &[step("q:2.5")]);
    assert_eq!(String::from_utf8_lossy(&after), file.replace("q:2", "q:2.5"));
}

#[test]
fn blanks_at_the_end_of_a_line_stay_in_it() {
    let list = "- step-1: A  \n- step-3: C\t\n";
    check_insert(list, ("2", "B"), &[], "- step-1: A  \n- step-2: B\n- step-3: C\t\n");
    check_insert(list, ("4", "D"), &[], "- step-1: A  \n- step-3: C\t\n- step-4: D\n");
}

#[test]
fn wrapped_dependencies_keep_their_lines() {
    let file = "## Steps\n- step-1: A\n- step-2: B\n- step-3: C (depends: step-1,\n  step-2)\n  and more\n";
    let moved = with_moved(&plan(), file.as_bytes(), &number("2"), &number("2.5"));
    assert_eq!(String::from_utf8_lossy(&moved), file.replace("step-2", "step-2.5"));
    let (removed, _) = without_step(&plan(), file.as_bytes(), &number("2"), &[]);
    let expected = "## Steps\n- step-1: A\n- step-3: C (depends: step-1)\n  and more\n";
    assert_eq!(String::from_utf8_lossy(&removed), expected);
    let (removed, _) = without_step(&plan(), file.as_bytes(), &number("1"), &[]);
    let expected = "## Steps\n- step-2: B\n- step-3: C (depends: step-2)\n  and more\n";
    assert_eq!(String::from_utf8_lossy(&removed), expected);
    let alone = "## Steps\n- step-1: A\n- step-3: C\n  (depends: step-1)\n- step-4: D\n";
    let (removed, _) = without_step(&plan(), alone.as_bytes(), &number("1"), &[]);
    assert_eq!(String::from_utf8_lossy(&removed), "## Steps\n- step-3: C\n- step-4: D\n");
}

fn any_list() -> impl Strategy<Value = String> {
    let pieces = [
        "- ",
        "1. ",
        "[x] ",
        "step-1",
        "step-2",
        "Step 3",
        "](step-2.md)",
        "[",
        "]",
        "(",
        ")",
        "**",
        "`",
        ": ",
        " – ",
        "(depends: ",
        "(depends on ",
        ", ",
        " and ",
        "none",
        "é",
        "\n",
        "\n\n",
        "\r\n",
        "  ",
        "    ",
        "q:1",
        "x",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn whatever_a_list_holds_only_its_own_lines_go(list in any_list()) {
        let file = format!("## Steps\n{list}");
        let names = |text: &str| -> Vec<_> { listed(text).into_iter().map(|it| (it.number, it.title)).collect() };
        let (after, removed) = without_step(&plan(), file.as_bytes(), &number("1"), &[]);
        let (mut kept, found) = (names(&file), names(&String::from_utf8_lossy(&after)));
        kept.retain(|(it, _)| *it != number("1"));
        prop_assert_eq!(removed.is_empty(), kept.len() == names(&file).len());
        prop_assert_eq!(found, kept);
    }

    #[test]
    fn a_line_that_is_moved_or_added_is_read_back(list in any_list()) {
        let file = format!("## Steps\n- step-0: first\n{list}");
        let titles = |file: &[u8], n: &str| -> Vec<String> {
            let lines = listed(&String::from_utf8_lossy(file));
            lines.into_iter().filter(|it| it.number == number(n)).map(|it| it.title).collect()
        };
        let added = with_step(&plan(), file.as_bytes(), &number("0.5"), "Between", &[]);
        prop_assert_eq!(titles(&added, "0.5"), ["Between"]);
        let before = titles(file.as_bytes(), "2");
        let moved = with_moved(&plan(), file.as_bytes(), &number("2"), &number("0.5"));
        let after = titles(&moved, "0.5");
        prop_assert_eq!(after.first(), before.first());
    }
}

#[test]
fn a_ticked_box_stays_although_the_whole_item_is_replaced() {
    let changed = |is_unticked| {
        // The title ends with a dependency, so no small change is read back as intended.
        let file = "## Steps\n- [x] step-1: One\n  more\n";
        let after = with_changed_line(
            &plan(),
            file.as_bytes(),
            &number("1"),
            "See (depends: step-2)",
            (None, is_unticked),
        );
        String::from_utf8(after).expect("it is text")
    };
    assert_eq!(changed(false), "## Steps\n- [x] step-1: See (depends: step-2)\n");
    assert_eq!(changed(true), "## Steps\n- [ ] step-1: See (depends: step-2)\n");
}
