//! Finds the names of steps in statements about dependencies, and the steps that these names mean.

use std::ops::Range;

use super::label::{self, Rank};
use crate::plan::id::{PlanId, StepId};
use crate::plan::references;
use crate::plan::step_number::StepNumber;

/// A dependency, as the source names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) name: Name,
    /// Its text in the source.
    pub(super) text: String,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// A number, with the rank of the word before it: `Task 1`, `Phase 2`, or `3` without a word.
    Number(Rank, String),
    /// All numbers from the first to the second, inclusive.
    Range(Rank, String, String),
    /// A name such as `T001`, the id of a todo, or a title.
    Text(String),
    Elsewhere(StepId),
}

pub(super) struct Called<'a> {
    pub(super) label: Option<&'a (Rank, String)>,
    pub(super) id: Option<&'a str>,
    pub(super) title: &'a str,
    pub(super) phase: Option<&'a str>,
    pub(super) number: &'a StepNumber,
}

/// The reasons why a dependency was not mapped.
pub(super) const NO_STEP: &str = "this dependency names no step of the source";
pub(super) const SEVERAL: &str = "this dependency names several steps";
pub(super) const ITSELF: &str = "a step cannot wait for itself";

const KEYS: &str =
    "depends on, depends, dependencies, dependency, blocked by, requires, waits for, prerequisites";

pub(super) fn is_key(text: &str) -> bool {
    let key = text.trim_matches([':', '*', '_', ' ']).to_lowercase();
    KEYS.split(", ").any(|it| it == key)
}

/// The value of a line that begins with words such as "depends on", without a colon: `Depends on Task 1`.
pub(super) fn begun(line: &str) -> Option<&str> {
    ["depends on ", "blocked by ", "waits for "].iter().find_map(|it| {
        let head = line.get(..it.len())?;
        head.eq_ignore_ascii_case(it).then(|| &line[it.len()..])
    })
}

/// Whether a sentence has words such as "depends on", followed by the name of a step or a phase.
pub(super) fn in_sentence(line: &str) -> bool {
    let lower = line.to_lowercase();
    let verbs =
        ["depends on", "depend on", "dependent on", "blocked by", "waits for", "wait for", "requires"];
    verbs.iter().filter_map(|it| lower.find(it).map(|at| at + it.len())).any(|at| {
        let waits = lower.get(at..).map(|it| read(it, 0)).unwrap_or_default();
        waits.iter().any(
            |it| matches!(&it.name, Name::Number(rank, _) | Name::Range(rank, ..) if *rank != Rank::Bare),
        )
    })
}

/// Reads a list of dependencies. `value` comes from a text whose code and comments [`label::visible`] has masked. `at` is
/// the byte position of the list in the body.
///
/// A text between commas in which no name is found becomes a [`Name::Text`].
pub(super) fn read(value: &str, at: usize) -> Vec<Wait> {
    let mut waits = Vec::new();
    // After `Phase 1,` a number without a word is the number of a phase. After `node 20,` it is not the number of a step.
    let mut before = Some(Rank::Bare);
    for span in segments(value) {
        let text = value[span.clone()].trim_matches(|c: char| c.is_whitespace() || "*_`.()[]|".contains(c));
        if text.is_empty() || means_none(text) {
            continue;
        }
        let at = at + span.start + value[span.clone()].find(text).unwrap_or(0);
        let wait = |name| Wait { name, text: text.to_owned(), at };
        let is_number = text.parse::<StepNumber>().is_ok() || range(text).is_some();
        let (names, rank) = match before {
            None if is_number => (Vec::new(), None),
            _ => names(text, before.unwrap_or(Rank::Bare)),
        };
        before = rank;
        if names.is_empty() {
            waits.push(wait(Name::Text(text.to_owned())));
        }
        waits.extend(names.into_iter().map(wait));
    }
    waits
}

/// Finds each `(depends: …)` of a text, with the dependencies in it.
pub(super) fn groups(text: &str) -> Vec<(Range<usize>, Vec<Wait>)> {
    let own = own();
    let names = |item: references::Named| {
        let whole = &text[item.span.clone()];
        let wait = |name| Wait { name, text: whole.to_owned(), at: item.span.start };
        match item.step {
            Some(id) if id.plan == own => vec![wait(Name::Number(Rank::Bare, id.number.to_string()))],
            Some(id) => vec![wait(Name::Elsewhere(id))],
            None => read(whole, item.span.start),
        }
    };
    let groups = references::groups(&own, text).into_iter();
    groups.map(|it| (it.span, it.items.into_iter().flat_map(names).collect())).collect()
}

/// A name for the imported plan that cannot occur in a source.
fn own() -> PlanId {
    PlanId::new("\u{1}")
}

fn means_none(text: &str) -> bool {
    let text = text.to_lowercase();
    ["none", "nothing", "n/a", "na", "-", "–", "—", "nil", "no dependencies", "[]"].contains(&text.as_str())
}

/// The parts between separators such as `,` and ` and `. Separators in parentheses are ignored.
fn segments(value: &str) -> Vec<Range<usize>> {
    let lower = value.to_ascii_lowercase();
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    let mut skip = 0;
    for (at, c) in lower.char_indices() {
        match c {
            _ if at < skip => continue,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_and = [" and ", " und ", " e ", " y "].iter().find(|it| lower[at..].starts_with(*it));
        let len = match (c, is_and) {
            _ if depth > 0 => continue,
            (',' | ';' | '&' | '+', _) => 1,
            (_, Some(word)) => word.len() - 1,
            _ => continue,
        };
        found.push(from..at);
        from = at + len;
        skip = from;
    }
    found.push(from.min(value.len())..value.len());
    found
}

/// Returns the names in one part, and the rank that a number without a word has in the next part. `None`: in the next part,
/// such a number is not the number of a step.
fn names(text: &str, before: Rank) -> (Vec<Name>, Option<Rank>) {
    let mut names = Vec::new();
    let (mut rank, mut is_known) = (before, true);
    let mut rest = text;
    let has_words = text.chars().any(char::is_alphabetic);
    let mut named = None;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let number = number_at(rest);
        if !number.is_empty() {
            let (name, len) = number_or_range(rest, rank);
            let is_cut = !rest[len..].starts_with(|c: char| c.is_alphanumeric());
            let is_meant = is_cut && is_known && (named.is_some() || !has_words);
            names.extend(is_meant.then_some(name));
            rest = &rest[len..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let word = rest[..letters].to_lowercase();
        if let Some(of) = label::rank_of(word.trim_end_matches('s')) {
            (rank, named, is_known) = (of, Some(of), true);
            rest = &rest[letters..];
        } else if let Some(id) = label::id(rest) {
            let own = rest.find(id).unwrap_or(0) + id.len();
            names.push(Name::Text(id.to_owned()));
            rest = &rest[own..];
        } else if matches!(word.as_str(), "to" | "through" | "bis" | "no" | "nr") {
            rest = &rest[end..];
        } else {
            (named, is_known) = (None, false);
            rest = &rest[end.max(letters)..];
        }
    }
    let rank = if names.is_empty() && has_words { None } else { Some(named.unwrap_or(rank)) };
    (names, rank)
}

fn number_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Reads a number such as `3`, or a range such as `1-3`, `1 to 3` or `1..step-3`, at the start of a text. The second value
/// is its length in bytes.
fn number_or_range(text: &str, rank: Rank) -> (Name, usize) {
    let first = number_at(text);
    let behind = &text[first.len()..];
    let to = ["..", "-", "–", "—", "…", "to ", "through ", "bis "];
    let trimmed = behind.trim_start();
    let last = to.iter().find_map(|it| {
        let rest = trimmed.strip_prefix(it)?.trim_start();
        let word = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(0);
        let is_word =
            word == 0 || label::rank_of(rest[..word].to_lowercase().trim_end_matches('s')).is_some();
        let rest = rest[word..].trim_start_matches(['-', ' ', '#']);
        let last = number_at(rest);
        (is_word && !last.is_empty()).then(|| (last, text.len() - rest.len() + last.len()))
    });
    match last {
        Some((last, len)) => (Name::Range(rank, first.to_owned(), last.to_owned()), len),
        None => (Name::Number(rank, first.to_owned()), first.len()),
    }
}

/// The first and the last number of a text that consists of one range.
fn range(text: &str) -> Option<(String, String)> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    match number_or_range(text, Rank::Bare) {
        (Name::Range(_, from, to), len) if is_number && len == text.len() => Some((from, to)),
        _ => None,
    }
}

/// The steps that a name means, as indices of `all`; `nth` is the step that waits.
pub(super) fn meant(name: &Name, nth: usize, all: &[Called<'_>]) -> Result<Vec<usize>, &'static str> {
    let found = match name {
        Name::Number(rank, number) => by_number(*rank, number, nth, all)?,
        Name::Range(rank, from, to) => by_range(*rank, from, to, all),
        Name::Text(text) => one_of(by_text(text, all))?,
        Name::Elsewhere(_) => Vec::new(),
    };
    match found.as_slice() {
        [] => Err(NO_STEP),
        [only] if *only == nth => Err(ITSELF),
        _ => Ok(found.into_iter().filter(|it| *it != nth).collect()),
    }
}

fn one_of(found: Vec<usize>) -> Result<Vec<usize>, &'static str> {
    if found.len() > 1 { Err(SEVERAL) } else { Ok(found) }
}

fn where_is(all: &[Called<'_>], is_it: impl Fn(&Called<'_>) -> bool) -> Vec<usize> {
    (0..all.len()).filter(|it| is_it(&all[*it])).collect()
}

fn by_number(rank: Rank, number: &str, nth: usize, all: &[Called<'_>]) -> Result<Vec<usize>, &'static str> {
    let is_labelled = |it: &Called<'_>, is_phase: bool| {
        it.label.is_some_and(|label| label.1 == number && (label.0 == Rank::Phase) == is_phase)
    };
    let in_phase = || {
        let is_it = |it: label::Label<'_>| it.rank != Rank::Step && it.number == number;
        where_is(all, |it| it.phase.and_then(label::label).is_some_and(is_it))
    };
    let phases = || Some(where_is(all, |it| is_labelled(it, true))).filter(|it| !it.is_empty());
    if rank == Rank::Phase {
        // The name of a phase that was split into steps means all these steps.
        return Ok(phases().unwrap_or_else(in_phase));
    }
    let labelled = where_is(all, |it| is_labelled(it, false));
    let near: Vec<_> = labelled.iter().copied().filter(|it| all[*it].phase == all[nth].phase).collect();
    if let ([_, _, ..], [only]) = (labelled.as_slice(), near.as_slice()) {
        return Ok(vec![*only]);
    }
    if !labelled.is_empty() {
        return one_of(labelled);
    }
    // A step that the author did not number, or numbered as a phase, is found by the number that the import assigns.
    let is_free = |it: &Called<'_>| it.label.is_none_or(|it| it.0 == Rank::Phase);
    let given = where_is(all, |it| is_free(it) && it.number.to_string() == number);
    let has_only_phases = all.iter().all(|it| it.label.is_some_and(|it| it.0 == Rank::Phase));
    match phases() {
        Some(found) if has_only_phases || given.is_empty() => one_of(found),
        _ => one_of(given),
    }
}

fn by_range(rank: Rank, from: &str, to: &str, all: &[Called<'_>]) -> Vec<usize> {
    let (Ok(from), Ok(to)) = (from.parse::<StepNumber>(), to.parse::<StepNumber>()) else {
        return Vec::new();
    };
    let is_inside = |number: &str| number.parse::<StepNumber>().is_ok_and(|it| from <= it && it <= to);
    let is_phase = |it: label::Label<'_>| it.rank == Rank::Phase && is_inside(it.number);
    let is_meant = |it: &Called<'_>| match it.label {
        Some((Rank::Phase, number)) => rank != Rank::Step && is_inside(number),
        Some((_, number)) if rank != Rank::Phase => is_inside(number),
        _ if rank == Rank::Phase => it.phase.and_then(label::label).is_some_and(is_phase),
        _ => is_inside(&it.number.to_string()),
    };
    where_is(all, is_meant)
}

fn by_text(text: &str, all: &[Called<'_>]) -> Vec<usize> {
    let is_label = |it: &Called<'_>| it.label.is_some_and(|it| it.1 == text);
    let is_id = |it: &Called<'_>| it.id.is_some_and(|it| it.eq_ignore_ascii_case(text));
    let is_title = |it: &Called<'_>| it.title.eq_ignore_ascii_case(text);
    let ways: [&dyn Fn(&Called<'_>) -> bool; 3] = [&is_label, &is_id, &is_title];
    ways.iter().map(|way| where_is(all, way)).find(|it| !it.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each name as `word number`, as the id of a step of another plan, or otherwise in quotes.
    fn shown(waits: &[Wait]) -> Vec<String> {
        let word = |it: &Rank| match it {
            Rank::Step => "step ",
            Rank::Phase => "phase ",
            Rank::Bare => "",
        };
        let one = |it: &Wait| match &it.name {
            Name::Number(rank, number) => format!("{}{number}", word(rank)),
            Name::Range(rank, from, to) => format!("{}{from}-{to}", word(rank)),
            Name::Text(text) => format!("{text:?}"),
            Name::Elsewhere(id) => id.to_string(),
        };
        waits.iter().map(one).collect()
    }

    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        assert_eq!(shown(&read(value, 0)), expected, "{value}");
    }

    #[test]
    fn each_part_of_a_list_is_a_name() {
        check("Task 1, 2 and Step 3.5", &["step 1", "step 2", "step 3.5"]);
        check("1, 2", &["1", "2"]);
        check("Phase 1, 2", &["phase 1", "phase 2"]);
        check("Tasks 1-3; step-5", &["step 1-3", "step 5"]);
        check("step-1..step-3", &["step 1-3"]);
        check("Task 1 to 3", &["step 1-3"]);
        check("Task 1 (for the 2 tables)", &["step 1"]);
        check("Task 1: Make the 2 tables", &["step 1"]);
        check("T001, FEAT-2", &["\"T001\"", "\"FEAT-2\""]);
        check("the schema, Task 2", &["\"the schema\"", "step 2"]);
        check("node 20, 22", &["\"node 20\"", "\"22\""]);
        check("None", &[]);
        check(" n/a ", &[]);
    }

    #[test]
    fn parentheses_name_steps_of_this_and_of_other_plans() {
        let found = groups("A (depends: step-1, other:3, Task 4) (b) (depends on T001)");
        let waits: Vec<_> = found.into_iter().flat_map(|it| it.1).collect();
        assert_eq!(shown(&waits), ["1", "other:3", "step 4", "\"T001\""]);
        assert_eq!(waits[0].at, 12);
    }

    #[test]
    fn a_sentence_names_a_step() {
        assert!(in_sentence("This depends on Task 3."));
        assert!(!in_sentence("This depends on 3 things."));
        assert!(!in_sentence("Task 3 is first."));
    }
}
