mod law;

use proptest::prelude::*;

use super::*;
use crate::plan::read::{PLAN_KEYS, STEP_KEYS};
use crate::text::{header_edit, word_loss};

/// Each step as `number status title | phase < depends`.
fn shown(text: &str) -> Vec<String> {
    let (plan, _) = convert("a.md", text, &Words::default());
    let value = |draft: &Draft, key: &str| {
        let change = draft.changes.iter().find(|it| it.key() == key)?;
        let Change::Set { value, .. } = change else { return None };
        Some(
            format!("{value:?}")
                .replace("Text(", "")
                .replace("Word(", "")
                .replace(['"', ')', '(', '[', ']'], ""),
        )
    };
    let one = |(number, draft): &(StepNumber, Draft)| {
        let heading = draft.text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let title = value(draft, "title").unwrap_or(heading);
        let mut line = format!("{number} {} {title}", value(draft, "status").unwrap_or_default());
        line.extend(value(draft, "phase").map(|it| format!(" | {it}")));
        line.extend(value(draft, "depends").map(|it| format!(" < {}", it.replace("List", ""))));
        line
    };
    plan.steps.iter().map(one).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(shown(text), expected, "{text}");
}

#[test]
fn each_shape_gives_its_steps() {
    check("# P\n## Step 1: A\nx\n## Step 2: B (depends: step-1)\n", &["1 pending A", "2 pending B < 1"]);
    check("# P\n## 1. A\nx\n### more\n## 2. B ✅\n", &["1 pending A", "2 completed B"]);
    check("# P\n## Steps\n- step-0: A\n- step-1: B (depends: step-0)\n", &["0 pending A", "1 pending B < 0"]);
    check(
        "# P\n## Phase 1: X\n- [x] A\n## Phase 2: Y\n- [ ] B\n",
        &["1 completed A | Phase 1: X", "2 pending B | Phase 2: Y"],
    );
    check("# P\n## Phase 1: X\ntext\n## Phase 2: Y (done)\n", &["1 pending X", "2 completed Y"]);
    check("# P\n## Phase 1\n### 1. A\n### 2. B\n", &["1 pending A | Phase 1", "2 pending B | Phase 1"]);
    check(
        "# P\n## Phase 1: X\n### Task 1: A\n## Phase 2: Next steps\n### Task 2: B\n",
        &["1 pending A | Phase 1: X", "2 pending B | Phase 2: Next steps"],
    );
    check(
        "# P\n## 1. Set up\n- [ ] 1.1 A\n- [x] 1.2 B\n",
        &["1.1 pending A | 1. Set up", "1.2 completed B | 1. Set up"],
    );
    check("# P\n## Set up\n- [ ] A\n\n## Acceptance\n- [ ] not this\n", &["1 pending A | Set up"]);
    check("1. A\n2. **Bees**: more\n", &["1 pending A", "2 pending Bees"]);
    check("# P\n\nOnly text.\n", &[]);
}

#[test]
fn numbers_of_the_author_stay_where_they_are_in_order() {
    check("## Task 0: A\n## Task 2.5: B\n", &["0 pending A", "2.5 pending B"]);
    check("## Task 1.9: A\n## Task 1.10: B\n**Depends on:** Task 1.9\n", &["1 pending A", "2 pending B < 1"]);
    check("## Task 2: A\n## Task 1: B\n", &["1 pending A", "2 pending B"]);
}

#[test]
fn code_and_comments_say_nothing() {
    for code in [
        "```\n{}\n```",
        "~~~\n{}\n~~~",
        "    {}",
        "- x\n\n      {}",
        "`{}`",
        "<!-- {} -->",
        "<!--\n{}\n-->",
        "<pre>\n{}\n</pre>",
        "<code>{}</code>",
        "> ```\n> {}\n> ```",
    ] {
        for line in [
            "status: done",
            "Status: blocked",
            "Depends on: Task 1",
            "- [x] y",
            "## Task 3: y",
            "(depends: step-1)",
        ] {
            let code = code.replace("{}", line);
            check(&format!("# P\n## Task 1: A\n## Task 2: B\n\n{code}\n"), &["1 pending A", "2 pending B"]);
            let item = code.replace('\n', "\n  ");
            check(&format!("- [ ] A\n- [ ] B\n\n  {item}\n"), &["1 pending A", "2 pending B"]);
        }
    }
    check(
        "## Task 1: A\n## Task 2: B `(depends: step-1)`\n",
        &["1 pending A", "2 pending B `depends: step-1`"],
    );
    check("## Acceptance\n```\nx\n```\n## W\n```\nCriteria:\n```\n- [ ] A\n", &["1 pending A | W"]);
}

#[test]
fn a_value_in_code_is_a_value() {
    check(
        "## Task 1: A\n**Status:** `done`\n## Task 2: B (depends: `step-1`)\n## Task 3: C\nDepends on: `Task 2`\n",
        &["1 completed A", "2 pending B < 1", "3 pending C < 2"],
    );
    check("## Task 1: A\nStatus: `done` is what it answers\n## Task 2: B\n", &["1 pending A", "2 pending B"]);
}

#[test]
fn code_spans_of_headings_stay() {
    check("## Task 1: `a` works\n## Task 2: Use `b`\n", &["1 pending `a` works", "2 pending Use `b`"]);
    check("## 1. `a ** b` (done)\n## 2. **Use `c`**\n", &["1 completed `a ** b`", "2 pending Use `c`"]);
    check(
        "## Phase 1: `x`\n- [ ] **Use `a`**: more\n- [ ] `b`\n",
        &["1 pending Use `a` | Phase 1: `x`", "2 pending `b` | Phase 1: `x`"],
    );
}

#[test]
fn dependencies_mean_steps_whatever_the_form() {
    check(
        "## Phase 1: X\n- [ ] A\n- [ ] B (depends: step-1)\n## Phase 2: Y\nDepends on: Phase 1\n",
        &["1 pending A | Phase 1: X", "2 pending B | Phase 1: X < 1", "3 pending Y < 1, 2"],
    );
    check("- [ ] T001 A\n- [ ] T002 B (depends on T001)\n", &["1 pending T001 A", "2 pending T002 B < 1"]);
    check("## Tasks\n3. A\n4. B (depends: step-3)\n", &["3 pending A", "4 pending B < 3"]);
    check(
        "## Task 1: A\n## Task 2: B\n## Task 3: C\nDepends on: Tasks 1-2\n",
        &["1 pending A", "2 pending B", "3 pending C < 1, 2"],
    );
    check("## Task 1: A\n## Task 2: B\n**Dependencies:**\n\n- Task 1\n", &["1 pending A", "2 pending B < 1"]);
    check("## Task 1: A\n## Task 2: B\n### Dependencies\n- Task 1\n", &["1 pending A", "2 pending B < 1"]);
    check(
        "## Task 1: A\n## Task 2: B\nStatus: done | Depends on: Task 1\n",
        &["1 pending A", "2 completed B < 1"],
    );
    check("- [ ] A\n- [ ] B\n  Status: blocked\n  Depends on: A\n", &["1 pending A", "2 blocked B < 1"]);
    check("## Task 1: A\n## Task 2: B (depends: other:1)\n", &["1 pending A", "2 pending B < other:1"]);
}

#[track_caller]
fn unmapped(text: &str, expected: &[(u32, &str)]) {
    let (_, found) = convert("a.md", text, &Words::default());
    let found: Vec<_> = found.iter().filter_map(|it| Some((it.line?, it.text.as_str()))).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn statements_without_a_field_are_listed() {
    unmapped("## Task 1: A\n## Task 2: B (depends: step-9)\n", &[(2, "step-9")]);
    unmapped("---\na: b\n---\n## Task 1: A\nDepends on: Task 1, Docker\n", &[(5, "Task 1"), (5, "Docker")]);
    unmapped("## Task 1: A\nStatus: wobbly\n", &[(2, "Status: wobbly")]);
    unmapped("## Task 1: A (done)\nStatus: blocked\n", &[(2, "Status: blocked")]);
    unmapped("# P\nStatus: draft\n## Task 1: A\n", &[(2, "Status: draft")]);
    unmapped(
        "# P\n## Phase 1: X (done)\nDepends on: Phase 0\n- [ ] A\n",
        &[(3, "Depends on: Phase 0"), (2, "Phase 1: X (done)")],
    );
    unmapped("# P\n## Phase 1\n- [x] A\n## Phase 2\n### Task 1: B\n", &[(3, "- [x] A")]);
    unmapped("# P\n## Phase 1\n- [ ] A\n- B\n  more\n\nText:\n\n- C\n", &[(4, "- B\n  more")]);
    unmapped("# P\n## Steps\n1. A\n- B\n\n## Other\n- C\n", &[]);
    unmapped("## Task 1: A\nThis depends on Task 2.\n## Task 2: B\n", &[(2, "This depends on Task 2.")]);
    unmapped("## Task 1: A\n| Task | Status |\n|---|---|\n| A | done |\n", &[(2, "| Task | Status |")]);
    unmapped("## Task 1: A\n## Task 1: B\n## Task 2: C\nDepends on: Task 1\n", &[(4, "Task 1")]);
    unmapped("# P\n## Task 1: A\n## Dependencies\n- Docker\n", &[]);
}

fn block() -> impl Strategy<Value = String> {
    let line = "[a-z]{1,6}( [a-z*`#|~<>:.()-]{1,7}){0,4}";
    prop_oneof![
        line.prop_map(|it| format!("{it}\n\n")),
        (1_usize..5, line).prop_map(|(n, it)| format!("{} {it}\n\n", "#".repeat(n))),
        (1_usize..5, 0..12_u8, line).prop_map(|(n, k, it)| format!("{} Task {k}: {it}\n\n", "#".repeat(n))),
        (1_usize..4, 0..5_u8).prop_map(|(n, k)| format!("{} Phase {k}\n\n", "#".repeat(n))),
        ("[-*+]|1\\.", "\\[[ x~!-]\\] |", line, line)
            .prop_map(|(m, b, x, y)| format!("{m} {b}{x}\n  - [x] {y}\n")),
        line.prop_map(|it| format!("```\n# {it}\n- [ ] {it}\n```\n\n")),
        Just("---\n".to_owned()),
        Just("## Steps\n- step-1: one\n- step-2: two (depends: step-1)\n\n".to_owned()),
        line.prop_map(|it| format!("> - [ ] {it}\n\t{it}\r\n")),
    ]
}

proptest! {
    #[test]
    fn no_word_is_lost(blocks in prop::collection::vec(block(), 0..14)) {
        let text: String = blocks.concat();
        let (plan, unmapped) = convert("a.md", &text, &Words::default());
        let edit = |draft: &Draft, order| {
            let bytes = header_edit::edit(draft.text.as_bytes(), &draft.changes, order).expect("it can be edited");
            word_loss::text_of(&bytes)
        };
        let mut kept: Vec<_> = plan.plan.iter().map(|it| edit(it, PLAN_KEYS)).collect();
        kept.extend(plan.steps.iter().map(|(number, it)| format!("{number}\n{}", edit(it, STEP_KEYS))));
        kept.extend(unmapped.into_iter().map(|it| it.text));
        let lost = word_loss::lost(&word_loss::text_of(text.as_bytes()), kept.iter().map(String::as_str));
        prop_assert!(lost.is_empty(), "{lost:?}\n{kept:#?}");
    }

    #[test]
    fn nothing_panics(text in any::<String>()) {
        convert("a.md", &text, &Words::default());
        convert("a.md", &format!("## Task 1: {text}\n- [ ] {text}\n1. {text}"), &Words::default());
    }
}

#[test]
fn indented_code_below_a_box_stays_code() {
    for (text, expected) in [
        ("- [ ] one\n\n      let a = 1;\n\n        b\n", "# one\n\n    let a = 1;\n\n      b\n"),
        ("- [ ] one\n\n   Prose.\n\n      code\n", "# one\n\n Prose.\n\n    code\n"),
        ("1. [ ] one\n\n       code\n", "# one\n\n    code\n"),
        ("- [ ] one\n\n\t  code\n", "# one\n\n    code\n"),
        ("- [ ] one\n\n\t\tcode\n", "# one\n\n      code\n"),
        ("  - [ ] one\n\n        code\n", "# one\n\n    code\n"),
        // Without indented code, all indentation is removed.
        ("- [ ] one\n\n    Prose.\n", "# one\n\nProse.\n"),
        ("- [ ] one\n\n  ```\n  code\n  ```\n", "# one\n\n```\ncode\n```\n"),
    ] {
        let (plan, _) = convert("plan.md", &format!("# P\n\n{text}"), &Words::default());
        assert_eq!(plan.steps[0].1.text, expected, "{text}");
    }
}
