//! Tests one law: every statement of a document about a status or a dependency is either in the result or listed as
//! unmapped. A statement in code must not be in the result.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::*;
use crate::text::header_edit::NewValue;

/// The form that the steps have in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `## Task 3: …`
    Tasks,
    /// Task boxes below phases. A phase without task boxes is itself a step.
    Phases,
    /// Task boxes alone.
    Boxes,
}

/// The generated description of one step.
#[derive(Debug, Clone)]
struct Wanted {
    status: Option<(Place, &'static str)>,
    waits: Vec<(Place, usize)>,
    code: Option<(usize, &'static str)>,
    begins_phase: bool,
    has_box: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Title,
    Line,
    Bold,
}

/// A statement of the document, and its line.
#[derive(Debug, Clone)]
struct Claim {
    /// The title of the step.
    of: String,
    line: u32,
    says: Says,
}

#[derive(Debug, Clone)]
enum Says {
    Status(&'static str),
    /// The title of the step that is waited for. `None`: there is no such step.
    Waits(Option<String>),
}

const CODE: [&str; 6] =
    ["```\n{}\n```", "~~~ x\n{}\n~~~", "    {}", "text `{}` text", "<!-- {} -->", "<!--\n\n{}\n-->"];

fn wanted() -> impl Strategy<Value = Wanted> {
    let place = || prop_oneof![Just(Place::Title), Just(Place::Line), Just(Place::Bold)];
    let status = prop::option::of((
        place(),
        prop::sample::select(vec!["done", "blocked", "in progress", "skipped", "wobbly"]),
    ));
    let waits = prop::collection::vec((place(), 0..9_usize), 0..3);
    let decoy = prop::sample::select(vec![
        "status: done",
        "Status: blocked",
        "Depends on: Task 1",
        "(depends: step-2)",
        "- [x] no",
    ]);
    let code = prop::option::of((0..CODE.len(), decoy));
    (status, waits, code, any::<bool>(), any::<bool>()).prop_map(
        |(status, waits, code, begins_phase, has_box)| {
            // An unknown status word in a title would be part of the title.
            let status = status.filter(|it| *it != (Place::Title, "wobbly"));
            Wanted { status, waits, code, begins_phase, has_box }
        },
    )
}

fn title(nth: usize) -> String {
    format!("Word{}", char::from(b'a' + u8::try_from(nth).expect("there are few")))
}

/// Writes the document, and returns it with its statements.
fn written(shape: Shape, all: &[Wanted]) -> (String, Vec<Claim>) {
    let (mut text, mut claims) = (String::from("# The plan\n\n"), Vec::new());
    let n_lines = |text: &str| u32::try_from(text.lines().count()).expect("it is short");
    let word = if shape == Shape::Tasks { "Task " } else { "step-" };
    let mut all = all.to_vec();
    // At least one step has a box. Otherwise the phases would keep their own numbers, which begin at 20, and no dependency
    // would name them.
    all[0].has_box = true;
    let target = |number: usize| (1..=all.len()).contains(&number).then(|| title(number - 1));
    for (nth, it) in all.iter().enumerate() {
        let of = title(nth);
        let is_phase = shape == Shape::Phases && !it.has_box;
        if shape == Shape::Phases && it.has_box && (nth == 0 || it.begins_phase || !all[nth - 1].has_box) {
            text.extend([format!("\n## Phase {}: Part\n\n", 20 + nth)]);
        }
        let (head, indent) = match shape {
            Shape::Tasks => (format!("\n## Task {}: {of}", nth + 1), ""),
            Shape::Phases if is_phase => (format!("\n## Phase {}: {of}", 20 + nth), ""),
            _ => (format!("- [ ] {of}"), "  "),
        };
        text.push_str(&head);
        let line = n_lines(&text);
        let mut claim = |line: u32, says: Says| claims.push(Claim { of: of.clone(), line, says });
        for (_, number) in it.waits.iter().filter(|it| it.0 == Place::Title) {
            text.extend([format!(" (depends: step-{number})")]);
            claim(line, Says::Waits(target(*number)));
        }
        if let Some((Place::Title, status)) = it.status {
            text.extend([format!(" ({status})")]);
            claim(line, Says::Status(status));
        }
        text.push_str("\n\n");
        for (place, number) in it.waits.iter().filter(|it| it.0 != Place::Title) {
            let key = if *place == Place::Bold { "- **Dependencies**:" } else { "Depends on:" };
            text.extend([format!("{indent}{key} {word}{number}\n\n")]);
            claim(n_lines(&text) - 1, Says::Waits(target(*number)));
        }
        if let Some((place, status)) = it.status.filter(|it| it.0 != Place::Title) {
            let key = if place == Place::Bold { "**Status:**" } else { "Status:" };
            text.extend([format!("{indent}{key} {status}\n\n")]);
            claim(n_lines(&text) - 1, Says::Status(status));
        }
        if let Some((code, decoy)) = it.code {
            // Without a paragraph before it, the code may belong to a list item above.
            text.extend([format!("{indent}Text.\n\n")]);
            let code = CODE[code].replace("{}", decoy);
            text.extend(code.lines().map(|it| format!("{indent}{it}\n")));
            text.push('\n');
        }
    }
    (text, claims)
}

/// A step in the result.
#[derive(Debug, Clone)]
struct Made {
    title: String,
    status: StepStatus,
    waits: BTreeSet<String>,
}

fn made(plan: &ImportedPlan) -> Vec<Made> {
    let value = |draft: &Draft, wanted: &str| {
        draft.changes.iter().find_map(|it| match it {
            Change::Set { key, value } if key == wanted => Some(value.clone()),
            _ => None,
        })
    };
    let word = |it: NewValue| match it {
        NewValue::Word(it) | NewValue::Text(it) => it,
        other => panic!("{other:?} is no word"),
    };
    let title = |draft: &Draft| {
        let own = value(draft, "title").map(word);
        own.unwrap_or_else(|| {
            draft.text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned()
        })
    };
    let names: Vec<_> = plan.steps.iter().map(|(number, it)| (number.to_string(), title(it))).collect();
    let name =
        |number: String| names.iter().find(|it| it.0 == number).expect("it waits for a step").1.clone();
    let one = |(_, draft): &(StepNumber, Draft)| {
        let waits = match value(draft, "depends") {
            Some(NewValue::List(all)) => all.into_iter().map(|it| name(word(it))).collect(),
            _ => BTreeSet::new(),
        };
        let status = value(draft, "status").map(word).expect("each step has a status");
        Made { title: title(draft), status: Words::default().read(&status).expect("it is a status"), waits }
    };
    plan.steps.iter().map(one).collect()
}

/// Returns the violations of the law: statements that are neither in the result nor listed as unmapped, and statuses and
/// dependencies in the result that the document does not state.
fn broken(claims: &[Claim], made: &[Made], unmapped: &[Unmapped]) -> Vec<String> {
    let words = Words::default();
    let mut broken = Vec::new();
    for claim in claims {
        let step = made.iter().find(|it| it.title == claim.of);
        let is_there = step.is_some_and(|step| match &claim.says {
            Says::Status(word) => words.read::<StepStatus>(word) == Some(step.status),
            Says::Waits(Some(other)) => step.waits.contains(other),
            Says::Waits(None) => false,
        });
        if !is_there && !unmapped.iter().any(|it| it.line == Some(claim.line)) {
            broken.push(format!("lost: {claim:?}"));
        }
        // A dependency on an existing step must be in the result. Without this check, a mapping that lists everything as
        // unmapped would satisfy the law.
        if let (Says::Waits(Some(other)), false) = (&claim.says, is_there) {
            broken.extend((*other != claim.of).then(|| format!("not mapped: {claim:?}")));
        }
    }
    for step in made {
        let own = || claims.iter().filter(|it| it.of == step.title).map(|it| &it.says);
        let is_said =
            own().any(|it| matches!(it, Says::Status(word) if words.read(word) == Some(step.status)));
        if step.status != StepStatus::Pending && !is_said {
            broken.push(format!("the status of {step:?} is said nowhere"));
        }
        let is_waited = |other: &String| own().any(|it| matches!(it, Says::Waits(Some(it)) if it == other));
        broken.extend(
            step.waits.iter().filter(|it| !is_waited(it)).map(|it| format!("{step:?} waits for {it}")),
        );
    }
    broken
}

proptest! {
    #[test]
    fn nothing_about_status_or_dependencies_is_lost(
        shape in prop_oneof![Just(Shape::Tasks), Just(Shape::Phases), Just(Shape::Boxes)],
        all in prop::collection::vec(wanted(), 2..8),
    ) {
        let (text, claims) = written(shape, &all);
        let (plan, unmapped) = convert("a.md", &text, &Words::default());
        let made = made(&plan);
        prop_assert_eq!(made.len(), all.len(), "{}", text);
        let broken = broken(&claims, &made, &unmapped);
        prop_assert!(broken.is_empty(), "{broken:#?}\n{text}\n{made:#?}\n{unmapped:#?}");
    }
}

#[test]
fn the_law_sees_each_loss() {
    let step = |status, waits| Wanted { status, waits, code: None, begins_phase: false, has_box: true };
    let all = [
        step(Some((Place::Line, "done")), Vec::new()),
        step(Some((Place::Line, "wobbly")), vec![(Place::Title, 1), (Place::Line, 8)]),
    ];
    let (text, claims) = written(Shape::Tasks, &all);
    let (plan, unmapped) = convert("a.md", &text, &Words::default());
    let whole = made(&plan);
    assert_eq!(broken(&claims, &whole, &unmapped), Vec::<String>::new());
    let mut without_status = whole.clone();
    without_status[0].status = StepStatus::Pending;
    let mut without_waits = whole.clone();
    without_waits[1].waits.clear();
    let mut with_more = whole.clone();
    with_more[0].waits.insert(title(1));
    assert_eq!(broken(&claims, &without_status, &unmapped).len(), 1);
    assert_eq!(broken(&claims, &without_waits, &unmapped).len(), 2, "it is neither there nor listed");
    assert_eq!(broken(&claims, &with_more, &unmapped).len(), 1);
    for nth in 0..unmapped.len() {
        let mut without = unmapped.clone();
        without.remove(nth);
        assert_eq!(broken(&claims, &whole, &without).len(), 1, "{:?}", unmapped[nth]);
    }
}
