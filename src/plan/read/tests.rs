use std::collections::HashSet;

use super::*;
use crate::plan::words::StepStatus;

fn source(path: &str, text: &str) -> Source {
    let modified = "2026-11-01".parse().expect("a time");
    Source {
        path: path.to_owned(),
        content: Ok(Content { bytes: text.into(), etag: "e".to_owned(), modified }),
    }
}

fn plan_of(plan: &str, steps: &[(&str, &str)]) -> Plan {
    let steps = steps.iter().map(|(number, text)| {
        (number.parse().expect("a number"), source(&format!("p/step-{number}.md"), text))
    });
    let sources = PlanSources {
        plan: Some(source("p/plan.md", plan)),
        steps: steps.collect(),
        ..PlanSources::default()
    };
    read_plan(&PlanId::new("p"), false, &sources, &Words::default(), Bodies::Keep)
}

fn step(text: &str) -> Step {
    plan_of("", &[("5", text)]).steps.remove(0)
}

fn codes(problems: &[Problem]) -> Vec<(&'static str, u32, u32)> {
    problems.iter().map(|it| (it.code.text(), it.line, it.column)).collect()
}

#[track_caller]
fn check_problems(text: &str, expected: &[(&'static str, u32, u32)]) {
    assert_eq!(codes(&step(text).problems), expected, "{text}");
}

#[test]
fn a_plain_file_is_a_step_with_every_default() {
    let step = step("# Step 5: Set up\n\n## Tasks\n- [x] a\n- [ ] b\n\n## Acceptance\n- [x] c\n");
    assert_eq!((step.title.as_str(), step.status.is(StepStatus::Pending)), ("Set up", true));
    assert_eq!((step.tasks_done, step.tasks_total, step.created_by.as_str()), (2, 3, "user"));
    assert_eq!(step.problems, []);
    assert_eq!(step.depends, []);
}

#[test]
fn a_mapping_with_too_large_aliases_is_reported_as_such() {
    let (items, aliases) = (["x"; 100].join(", "), ["*a"; 300].join(", "));
    let step = step(&format!("---\nlist: &a [{items}]\nmetadata: {{all: [{aliases}]}}\n---\n# A\n"));
    let said: Vec<_> = step.problems.iter().map(|it| it.message.as_str()).collect();
    let expected = "`metadata` is not read, because the aliases of the front matter expand to too much data";
    assert_eq!(said, [expected]);
}

#[test]
fn the_dependencies_of_a_step_share_its_own_copy_of_the_name_of_the_plan() {
    let texts: Vec<_> = (1..=50)
        .map(|n| {
            let before: Vec<_> = (1..n).map(|it| it.to_string()).collect();
            (n.to_string(), format!("---\ndepends: [{}]\n---\n", before.join(", ")))
        })
        .collect();
    let texts: Vec<_> = texts.iter().map(|(n, text)| (n.as_str(), text.as_str())).collect();
    let plan = plan_of("", &texts);
    let name = |it: &StepId| it.plan.as_str().as_ptr();
    let names: Vec<_> = plan.steps.iter().map(|it| name(&it.id)).collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 50);
    let named = plan.steps.iter().map(|it| it.depends.iter().filter(|on| name(on) == name(&it.id)).count());
    assert_eq!(named.sum::<usize>(), 50 * 49 / 2);
}

#[test]
fn titles_lose_their_step_prefix_and_nothing_else() {
    for (heading, title) in [
        ("# Step 2: A", "A"),
        ("# step-2.5 – A", "A"),
        ("# Step 2. A", "A"),
        ("# Step 2", "Step 2"),
        ("# Stepping stones: B", "Stepping stones: B"),
        ("# Steps 1 and 2", "Steps 1 and 2"),
        ("text", "step-5"),
    ] {
        assert_eq!(step(heading).title, title, "{heading}");
    }
}

#[test]
fn problems_are_reported_with_their_place() {
    check_problems("---\nstatus: pendng\n---\n", &[("unknown-status", 2, 9)]);
    check_problems("---\nstatus: pending\ntags: a\n---\n", &[("wrong-type", 3, 7)]);
    check_problems("---\nstatus: pending\n", &[("front-matter-unclosed", 1, 1)]);
    check_problems("---\nstatus: a\nstatus: b\n---\n", &[("duplicate-key", 3, 1)]);
    check_problems("---\n- a\n---\n", &[("not-a-mapping", 2, 1)]);
    check_problems("---\na: [\n---\n", &[("front-matter-invalid", 2, 4)]);
    check_problems("a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n", &[("conflict-markers", 2, 1)]);
    check_problems("```\n<<<<<<< ours\n```\n", &[]);
    check_problems("---\nid: p:4\n---\n", &[("id-differs", 2, 5)]);
    check_problems("---\nid: step-5\n---\n", &[]);
    check_problems("---\nclaim: {id: h1234567}\n---\n", &[("stale-claim", 2, 8)]);
    check_problems("---\ndepends: [abc]\n---\n", &[("dependency-missing", 2, 11)]);
    check_problems("# A\n\n## Dependencies\nthe schema\n", &[("dependencies-unclear", 4, 1)]);
    check_problems("---\npriority: urgent\n---\n", &[("unknown-word", 2, 11)]);
    check_problems("---\ndue: next week\n---\n", &[("invalid-date", 2, 6)]);
    check_problems("---\ndue: 2026-02-30\n---\n", &[("invalid-date", 2, 6)]);
    check_problems("---\ndue: [2026-11-21]\n---\n", &[("invalid-date", 2, 6)]);
    check_problems("---\ndue: 2026-11-21\n---\n", &[]);
    check_problems("---\ndue: \"2026-11-21\"\n---\n", &[]);
    check_problems("---\ndue:\n---\n", &[]);
    check_problems("---\npriority: [high]\n---\n", &[("wrong-type", 2, 11)]);
}

#[test]
fn an_unreadable_file_is_a_step_with_an_unknown_status() {
    let step = step("---\nstatus: completed\nstatus: pending\n---\n");
    assert_eq!((step.status.known(), step.is_closed()), (None, false));
}

#[test]
fn bytes_that_are_not_utf8_are_reported_with_their_place() {
    let mut source = source("p/step-1.md", "");
    source.content = source.content.map(|it| Content { bytes: b"---\n---\nab\xFF".to_vec(), ..it });
    let sources = PlanSources { steps: vec![(StepNumber::whole(1), source)], ..PlanSources::default() };
    let plan = read_plan(&PlanId::new("p"), false, &sources, &Words::default(), Bodies::Drop);
    assert_eq!(codes(&plan.steps[0].problems), [("not-utf8", 3, 3)]);
    assert_eq!(codes(&plan.problems), [("missing-plan-file", 1, 1)]);
}

#[test]
fn depends_in_the_front_matter_replaces_the_dependencies_of_the_text() {
    let numbers = |it: &Step| it.depends.iter().map(ToString::to_string).collect::<Vec<_>>();
    let listed = "# P\n\n## Steps\n- step-1: A\n- step-5: B (depends: step-1)\n";
    let of = |text| plan_of(listed, &[("1", ""), ("5", text)]).steps.remove(1);
    assert_eq!(numbers(&of("## Dependencies\nstep-2 and step-1\n")), ["p:1", "p:2"]);
    let own = of("---\ndepends: [1.50, other:3, step-2]\n---\n");
    assert_eq!(numbers(&own), ["p:1.5", "other:3", "p:2"]);
    assert_eq!(codes(&own.problems), [("dependencies-disagree", 2, 10)]);
    assert_eq!(numbers(&of("---\ndepends:\n---\n")), Vec::<String>::new());
    let twice = of("---\ndepends: [2, 1, 2, 3, 1, 3]\n---\n");
    assert_eq!(
        (numbers(&twice), twice.depends_at.len()),
        (vec!["p:2".into(), "p:1".into(), "p:3".into()], 3)
    );
    assert_eq!(numbers(&of("---\ndepends: []\n---\n## Dependencies\nNone\n")), Vec::<String>::new());
}

#[test]
fn a_listed_step_without_a_file_is_there_and_pending() {
    let plan = plan_of("# P\n\n## Steps\n- step-1: A\n- step-2: B (depends: step-1)\n", &[("1", "")]);
    let missing = &plan.steps[1];
    assert_eq!((missing.title.as_str(), missing.has_file(), missing.depends.len()), ("B", false, 1));
    assert_eq!(codes(&missing.problems), [("missing-step-file", 5, 3)]);
}

#[test]
fn two_files_of_one_number_are_both_shown_and_both_faulty() {
    let steps = vec![
        (StepNumber::whole(3), source("p/step-03.md", "")),
        (StepNumber::whole(3), source("p/step-3.0.md", "")),
        (StepNumber::whole(3), source("p/step-3.md", "")),
    ];
    let sources = PlanSources { steps, ..PlanSources::default() };
    let plan = read_plan(&PlanId::new("p"), false, &sources, &Words::default(), Bodies::Drop);
    assert_eq!(plan.steps.len(), 3);
    assert!(plan.steps.iter().all(Step::is_faulty));
}

#[test]
fn a_plans_keys_are_read() {
    let plan = plan_of(
        "---\nstatus: In-Progress\ntags: [a, 2]\ngoals:\n  - one\nown: {x: 1.10}\ncreated_at: 2026-01-02\n---\n# Title `x`\n\nWhat it is.\n",
        &[],
    );
    assert_eq!(plan.status, Stated::Known(PlanStatus::Active));
    assert_eq!((plan.title.as_str(), plan.description.as_deref()), ("Title `x`", Some("What it is.")));
    assert_eq!((plan.tags.join(","), plan.goals.join(",")), ("a,2".to_owned(), "one".to_owned()));
    assert_eq!(plan.custom.keys().collect::<Vec<_>>(), ["own"]);
    assert_eq!(plan.problems, []);
}

#[test]
fn own_words_are_understood() {
    let words = Words::with_own([("in review".to_owned(), "in_progress".to_owned())]);
    let sources = PlanSources {
        steps: vec![(StepNumber::whole(1), source("p/step-1.md", "---\nstatus: In Review\n---\n"))],
        ..PlanSources::default()
    };
    let plan = read_plan(&PlanId::new("p"), false, &sources, &words, Bodies::Drop);
    assert!(plan.steps[0].status.is(StepStatus::InProgress));
}

#[test]
fn a_note_may_be_a_plain_text() {
    assert_eq!(step("---\nnotes: remember\n---\n").notes[0].text, "remember");
    let notes =
        step("---\nnotes:\n  - {at: 2026-01-01, type: warning, by: ann, text: x}\n  - plain\n---\n").notes;
    assert_eq!((notes.len(), notes[0].by.as_deref(), notes[1].text.as_str()), (2, Some("ann"), "plain"));
}

proptest::proptest! {
    /// A file with any bytes can be read, and its problems are on lines of the file.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), head in "(---\n)?(status: [a-z]{0,9}\n)?") {
        let mut all = head.into_bytes();
        all.extend(bytes);
        let lines = all.iter().filter(|it| **it == b'\n').count() + 1;
        let mut source = source("p/step-1.md", "");
        source.content = source.content.map(|it| Content { bytes: all, ..it });
        let sources = PlanSources { plan: Some(source.clone()), steps: vec![(StepNumber::whole(1), source)], ..PlanSources::default() };
        let plan = read_plan(&PlanId::new("p"), false, &sources, &Words::default(), Bodies::Keep);
        let problems = plan.problems.iter().chain(&plan.steps[0].problems);
        for problem in problems {
            proptest::prop_assert!(problem.line as usize <= lines);
        }
    }
}
