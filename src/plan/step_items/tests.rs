use super::*;
use crate::plan::read::{Bodies, Content, PlanSources, Source, read_plan};
use crate::plan::time::Time;

/// A plan of steps given as `number status title`.
fn plan(steps: &[&str]) -> Plan {
    let mut sources = PlanSources::default();
    for step in steps {
        let mut words = step.splitn(3, ' ');
        let (number, status, title) = (words.next(), words.next(), words.next());
        let number: StepNumber = number.and_then(|it| it.parse().ok()).expect("a number");
        let text =
            format!("---\nstatus: {}\n---\n# {}\n", status.expect("a status"), title.expect("a title"));
        let modified = Time::from_nanoseconds(0);
        let content = Content { bytes: text.into_bytes(), etag: String::new(), modified };
        sources
            .steps
            .push((number.clone(), Source { path: format!("p/step-{number}.md"), content: Ok(content) }));
    }
    read_plan(&PlanId::new("p"), false, &sources, &Words::default(), Bodies::Keep)
}

/// Checks the items of a list. Each is given as `number|title|depends`. In `depends`, `#n` is the item with the index n.
#[track_caller]
fn check_read(text: &str, expected: &[&str]) {
    let (items, _) = read(&plan(&["7 completed Seven"]), text, &Words::default()).expect("it is a list");
    let shown = |it: &StepItem| {
        let depends = it.depends.iter().flatten().map(|it| match it {
            Dependency::Item(nth) => format!("#{nth}"),
            Dependency::Step(id) => id.to_string(),
            Dependency::Either(id, nth) => format!("{id}|#{nth}"),
        });
        let number = it.number.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{number}|{}|{}", it.title, depends.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(items.iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn lists_are_read_in_markdown_and_json() {
    check_read("- A\n- B\n", &["|A|", "|B|"]);
    check_read("1. A\n2. B (depends: 1)\n", &["|A|", "|B|#0"]);
    check_read("- [ ] A\n- [x] B\n", &["|A|", "|B|"]);
    check_read("# P\n\n- A\n- [x] B\n* C (depends: 3)\n", &["|A|", "|B|", "|C|#2"]);
    check_read(
        "- A\n- B\n- C\n- D\n- E\n- F\n- G (depends: step-7, step-1)\n",
        &["|A|", "|B|", "|C|", "|D|", "|E|", "|F|", "|G|p:7|#6 #0"],
    );
    check_read("- step-1: A\n- step-2: B (depends: step-1)\n", &["1|A|", "2|B|#0"]);
    check_read("- step-8: A (depends: step-7)\n- step-9: B (depends: q:3)\n", &["8|A|p:7", "9|B|q:3"]);
    check_read("- [step-1](step-1.md): A\n- [step-2](step-2.md): B\n", &["1|A|", "2|B|"]);
    check_read("- step-7\n- [step-7](step-7.md)\n- step-8\n", &["7|Seven|", "7|Seven|", "8|step-8|"]);
    check_read("# Plan\n\n## Step 1: A\n\ntext\n\n## Step 2: B\n", &["|A|", "|B|"]);
    for heading in ["Steps", "Phase 1", "Other"] {
        let text =
            format!("# P\n\n## {heading}\n\n- A\n- [ ] B\n\n  text\n\n- C (depends: 1)\n\nNotes:\n\n* n\n");
        check_read(&text, &["|A|", "|B|", "|C|#0"]);
    }
    check_read("## Steps\n\n- [ ] A\n- B\n\n## Success criteria\n\n- C\n- [ ] D\n", &["|A|", "|B|"]);
    check_read("- A\n- step-9: B (depends: 1)\n", &["|A|", "9|B|p:1"]);
    check_read(r#"["A", "B"]"#, &["|A|", "|B|"]);
    check_read("\u{feff}[\"A\"]", &["|A|"]);
    check_read("\u{feff}[[notes]]\n\n- A\n", &["|A|"]);
    check_read(r#"[{"title": "A", "number": null}, {"title": "B", "step_number": null}]"#, &["|A|", "|B|"]);
    check_read(r#"[{"task": "A"}, {"title": "B", "depends": [1]}]"#, &["|A|", "|B|#0"]);
    check_read(
        r#"{"steps": [{"number": "2.50", "title": "A", "depends": ["p:7"]}, {"number": 3, "title": "B", "depends": [2.5, 7]}]}"#,
        &["2.5|A|p:7", "3|B|#0 p:7"],
    );
}

#[test]
fn what_is_not_a_list_is_reported() {
    for (text, expected) in [
        ("", "it contains no steps"),
        ("[]", "it contains no steps"),
        ("Only text.\n", "it contains no steps"),
        (
            "## Steps\n\n- step-1: A\n- B\n",
            "item 2: it names no step, but other items below `## Steps` do; begin the item with `step-N:`",
        ),
        ("[{]", "1:3: key must be a string"),
        ("[{\"titel\": \"A\"}]", "item 1: `titel` is not a field of a step; did you mean `title`?"),
        ("[\"A\", {\"title\": \" \"}]", "item 2: it has no title"),
        ("[{\"title\": \"A\", \"number\": \"x\"}]", "item 1: `number` is not a step number: \"x\""),
        ("[{\"title\": \"A\", \"depends\": [\"soon\"]}]", "item 1: `depends` names no step: \"soon\""),
        ("[{\"title\": \"A\", \"status\": \"hm\"}]", "item 1: `hm` is not a status of a step"),
        ("[{\"title\": \"A\", \"tags\": \"b\"}]", "item 1: `tags` is not a list of texts"),
    ] {
        let error = read(&plan(&[]), text, &Words::default()).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn yaml_lists_have_the_fields_of_json() {
    let text = "# Steps\nsteps:\n- A\n- number: 2.50\n  title: B # second\n  due: 2026-11-21\n  depends: [1, 'p:7']\n  verify: [make, {run: make, dir: web}]\n  body: |\n    Text.\n";
    let json = r#"{"steps": ["A", {"number": "2.5", "title": "B", "due": "2026-11-21", "depends": [1, "p:7"],
        "verify": ["make", {"run": "make", "dir": "web"}], "body": "Text.\n"}]}"#;
    let (plan, words) = (plan(&["7 completed Seven"]), Words::default());
    let expected = read(&plan, json, &words).expect("it is JSON").0;
    assert_eq!(read_yaml(&plan, text, &words), Ok(expected));
}

#[test]
fn what_is_wrong_in_a_yaml_list_has_its_place() {
    for (text, expected) in [
        ("", "it contains no steps"),
        ("steps: []\n", "it contains no steps"),
        ("A\n", "it contains no steps"),
        ("- A\n- titel: B\n", "2:3: item 2: `titel` is not a field of a step; did you mean `title`?"),
        ("steps:\n  - title: A\n    tags: b\n", "2:5: item 1: `tags` is not a list of texts"),
        ("- title: 42\n", "1:3: item 1: `title` is not a text"),
        ("- title: A\n  title: B\n", "2:3: the key `title` occurs a second time"),
        ("- title: A\n  <<: {due: 2026-11-21}\n", "1:3: item 1: `<<` is not a field of a step"),
    ] {
        let error = read_yaml(&plan(&[]), text, &Words::default()).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

/// Each item of the list is `number title` or `title`. Each result is `number<old number`, or `number` for a new step.
#[track_caller]
fn check_places(steps: &[&str], list: &[&str], expected: &[&str]) {
    check_places_beside(&[], steps, list, expected);
}

/// Like [`check_places`], with steps on other branches that have the numbers `elsewhere`.
#[track_caller]
fn check_places_beside(elsewhere: &[&str], steps: &[&str], list: &[&str], expected: &[&str]) {
    let elsewhere = elsewhere.iter().map(|it| it.parse().unwrap()).collect();
    let plan = plan(steps);
    let item = |it: &&str| {
        let number: Option<StepNumber> = it.split_once(' ').and_then(|it| it.0.parse().ok());
        let title = number.as_ref().map_or(*it, |_| it.split_once(' ').map_or("", |it| it.1)).to_owned();
        StepItem {
            title,
            number,
            text: String::new(),
            keys: Vec::new(),
            status: None,
            notes: Vec::new(),
            depends: None,
        }
    };
    let items: Vec<_> = list.iter().map(item).collect();
    let shown = match places(&plan, &items, &elsewhere) {
        Ok(found) => found
            .numbers
            .iter()
            .zip(&found.steps)
            .map(|(number, step)| match step {
                Some(nth) => format!("{number}<{}", plan.steps[*nth].id.number),
                None => number.to_string(),
            })
            .collect(),
        Err(error) => vec![error.to_string()],
    };
    assert_eq!(shown, expected, "{list:?}");
}

#[test]
fn items_find_their_steps_and_numbers() {
    let abc: &[&str] = &["1 pending A", "2 pending B", "3 pending C"];
    check_places(abc, &["A", "B", "C"], &["1<1", "2<2", "3<3"]);
    check_places(abc, &["x", "y", "z", "w"], &["1", "2", "3", "4"]);
    check_places(abc, &["a ", "x", "C"], &["1<1", "2", "3<3"]);
    check_places(abc, &["A", "x", "y", "C"], &["1<1", "2", "2.5", "3<3"]);
    check_places(abc, &["A", "B", "x", "C", "y"], &["1<1", "2<2", "2.5", "3<3", "4"]);
    check_places(abc, &["x", "A"], &["0", "1<1"]);
    check_places_beside(&["4"], abc, &["A", "B", "C", "x"], &["1<1", "2<2", "3<3", "5"]);
    check_places_beside(&["2.5"], abc, &["A", "B", "x", "C"], &["1<1", "2<2", "2.25", "3<3"]);
    check_places(abc, &["x", "y", "A"], &["0", "0.5", "1<1"]);
    // A step that moves gets a number that no file had.
    check_places(abc, &["C", "A", "B"], &["0<3", "1<1", "2<2"]);
    check_places(abc, &["B", "A"], &["0<2", "1<1"]);
    check_places(&["0 pending A", "1 pending B"], &["x", "y"], &["0", "1"]);
    check_places(&["0 pending A", "1 pending B"], &["B", "A"], &["1<1", "2<0"]);
}

#[test]
fn closed_steps_that_are_not_named_stay_where_they_are() {
    let plan: &[&str] = &["1 completed A", "2 skipped B", "3 pending C", "4 pending D"];
    check_places(plan, &["x", "y", "z"], &["3", "4", "5"]);
    check_places(plan, &["x", "D"], &["3", "4<4"]);
    check_places(plan, &["A", "x"], &["1<1", "3"]);
}

#[test]
fn a_number_in_the_list_wins() {
    let abc: &[&str] = &["1 pending A", "2 pending B", "3 pending C"];
    check_places(abc, &["1 A", "2 New", "9 C"], &["1<1", "2<2", "9"]);
    check_places(abc, &["2 B", "x", "3 C"], &["2<2", "2.5", "3<3"]);
    check_places(abc, &["3 C", "1 A"], &["0<3", "1<1"]);
    check_places(abc, &["9 x", "8 y"], &["step-9 precedes step-8"]);
    check_places(abc, &["1 A", "1 B"], &["step-1 is in the list twice"]);
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_rise_and_are_free(
            old in proptest::collection::btree_map(0_u32..12, (any::<bool>(), 0_u8..6), 0..8),
            new in proptest::collection::vec(0_u8..9, 1..10),
        ) {
            let steps: Vec<_> = old
                .iter()
                .map(|(number, (closed, title))| {
                    format!("{number} {} t{title}", if *closed { "completed" } else { "pending" })
                })
                .collect();
            let plan = plan(&steps.iter().map(String::as_str).collect::<Vec<_>>());
            let item = |it: &u8| StepItem {
                title: format!("t{it}"), number: None, text: String::new(), keys: Vec::new(), status: None, notes: Vec::new(), depends: None,
            };
            let items: Vec<_> = new.iter().map(item).collect();
            let Ok(found) = places(&plan, &items, &Default::default()) else { return Ok(()) };
            prop_assert!(found.numbers.windows(2).all(|it| it[0] < it[1]), "{found:?}");
            for (nth, step) in plan.steps.iter().enumerate() {
                let of = found.steps.iter().position(|it| *it == Some(nth));
                let holder = found.numbers.iter().position(|it| *it == step.id.number);
                // No other item gets the number of a step that stays or moves.
                let stays = of.is_some() || step.is_closed();
                prop_assert!(!stays || holder.is_none() || holder == of, "{found:?}");
            }
        }
    }
}
