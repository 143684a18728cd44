//! Finds the steps that the prose of a Dependencies section names: single steps, lists, ranges, and phrases such as "all
//! previous steps".

use std::collections::HashSet;
use std::ops::Range;

use super::{number_at, plan_before};
use crate::plan::id::{PlanId, StepId};
use crate::plan::ranges::{MOST_SPELLED_OUT, StepRange};
use crate::plan::step_number::StepNumber;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// Without duplicates. If `says_all` is true, the earlier steps of the plan come first; of more than
    /// [`MOST_SPELLED_OUT`] earlier steps, only the first and the last one are included.
    pub(super) steps: Vec<StepId>,
    /// The ranges that would add too many steps to `steps`. Such a range adds only its two ends to `steps`. Here it is
    /// limited to the earlier steps of the plan, and joined with ranges that overlap or touch it.
    pub(super) ranges: Vec<StepRange>,
    /// Whether the text says "all previous steps". If a step is later inserted before this one, such a text names it, too.
    pub(super) says_all: bool,
}

impl Mentions {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && !self.says_all
    }
}

/// Finds the steps that the text of `step` names. `numbers` are the numbers of all steps of the plan, sorted. A range
/// means its two ends and all `numbers` between them.
///
/// The time is linear in the length of the text and the number of steps found. Every step of a plan can name all other
/// steps, so ranges add at most [`MOST_SPELLED_OUT`] steps and their ends.
pub(super) fn find(step: &StepId, text: &str, numbers: &[StepNumber]) -> Mentions {
    let folded = text.to_ascii_lowercase();
    let mut finder = Finder {
        step,
        text,
        folded: &folded,
        numbers,
        seen: HashSet::new(),
        steps: Vec::new(),
        ranges: Vec::new(),
        n_spelled_out: 0,
    };
    let mut from = 0;
    for (at, word) in folded.match_indices("step") {
        if at >= from
            && let Some(plan) = plan_before(&step.plan, &text[..at])
        {
            from = finder.list_after(&plan, at, at + word.len()).unwrap_or(from);
        }
    }
    finder.bare_lists();
    let said = PREVIOUS.iter().flat_map(|word| folded.match_indices(word));
    let said: Vec<Before> = said.filter_map(|(at, word)| before(&folded, at, at + word.len())).collect();
    let says_all = said.contains(&Before::All) || finder.names_all_above();
    if said.contains(&Before::One) {
        let earlier = numbers.partition_point(|it| *it < step.number);
        let last = earlier.checked_sub(1).map(|it| numbers[it].clone());
        finder.add(&step.plan, &last.unwrap_or_else(|| step.number.clone()));
    }
    let (mut steps, mut ranges) = (finder.steps, finder.ranges);
    let earlier = &numbers[..numbers.partition_point(|it| *it < step.number)];
    if says_all {
        ranges.clear();
        let is_among = |it: &StepId| it.plan == step.plan && earlier.binary_search(&it.number).is_ok();
        steps.retain(|it| !is_among(it));
        let id = |it: &StepNumber| StepId { plan: step.plan.clone(), number: it.clone() };
        if earlier.len() > MOST_SPELLED_OUT {
            steps.splice(0..0, earlier.first().into_iter().chain(earlier.last()).map(id));
            ranges.push(0..earlier.len());
        } else {
            steps.splice(0..0, earlier.iter().map(id));
        }
    }
    let ranges = merged(ranges, earlier.len()).into_iter();
    let ranges =
        ranges.map(|it| StepRange { first: numbers[it.start].clone(), last: numbers[it.end - 1].clone() });
    Mentions { steps, ranges: ranges.collect(), says_all }
}

/// Limits the ranges to indices below `end`, sorts them, and joins those that overlap or touch.
fn merged(mut ranges: Vec<Range<usize>>, end: usize) -> Vec<Range<usize>> {
    ranges.sort_by_key(|it| it.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges.into_iter().map(|it| it.start..it.end.min(end)).filter(|it| !it.is_empty()) {
        match merged.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged
}

/// Words for what comes before a step.
const PREVIOUS: [&str; 4] = ["previous", "preceding", "prior", "earlier"];

/// Words that may precede the numbers in a line that otherwise contains only numbers.
const INTRODUCTIONS: &str = "depends on, depends, requires, needs, waits for, waiting for, after, blocked by, \
                             dependencies, dependency, prerequisites, prerequisite";

/// What words such as "previous step" mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    All,
    One,
}

/// Determines from the text around a word such as "previous" whether it means all earlier steps ("all previous steps")
/// or only the step directly before ("the previous step"). Returns `None` for other text, such as "no previous step".
fn before(folded: &str, start: usize, end: usize) -> Option<Before> {
    let is_word_before = folded[..start].chars().next_back().is_some_and(char::is_alphanumeric);
    let noun = folded[end..].trim_start().strip_prefix("step").filter(|_| !is_word_before)?;
    let rest = noun.strip_prefix('s');
    let is_plural = rest.is_some();
    let rest = rest.unwrap_or(noun);
    let is_word_behind = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    // "the previous steps 1-3" means only the steps 1 to 3.
    let is_numbered = rest.trim_start_matches([' ', '-', '#']).starts_with(|c: char| c.is_ascii_digit());
    if is_word_behind || is_numbered || folded[end..].starts_with("step") || is_denied(&folded[..start]) {
        return None;
    }
    let is_all =
        clause(&folded[..start]).rev().find(|it| !matches!(*it, "the" | "of" | "other" | "its" | "these"));
    let is_all = is_all.is_some_and(|it| matches!(it, "all" | "every" | "each" | "any" | "both"));
    Some(if is_all || is_plural { Before::All } else { Before::One })
}

/// Removes blanks and at most one line end from the beginning of a text. If an empty line follows, the line end stays.
fn trimmed(text: &str) -> &str {
    let blank = [' ', '\t', '\r', '\u{a0}'];
    let rest = text.trim_start_matches(blank);
    let next = rest.strip_prefix('\n').map(|it| it.trim_start_matches(blank));
    next.filter(|it| !it.starts_with('\n')).unwrap_or(rest)
}

/// Returns the words of the last clause of a text. Only the last 200 bytes are read, because this function is called
/// for many positions in a text.
fn clause(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    const MOST: usize = 200;
    let from = (text.len().saturating_sub(MOST)..).find(|it| text.is_char_boundary(*it)).unwrap_or(0);
    let text = &text[from..];
    let start = text.rfind(['.', ',', ';', ':', '!', '?', '|']).map_or(0, |it| it + 1);
    let start = text.rfind("\n\n").map_or(start, |it| start.max(it));
    text[start..].split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|it| !it.is_empty())
}

fn is_denied(text: &str) -> bool {
    let denies = |it: &str| {
        matches!(
            it,
            "no" | "not" | "none" | "never" | "nor" | "neither" | "without" | "independent" | "independently"
        ) || it.ends_with("n't")
    };
    clause(text).any(denies)
}

struct Finder<'a> {
    step: &'a StepId,
    text: &'a str,
    /// `text` with ASCII letters in lower case; byte offsets are the same in both.
    folded: &'a str,
    numbers: &'a [StepNumber],
    seen: HashSet<StepId>,
    steps: Vec<StepId>,
    /// Ranges of indices in `numbers`.
    ranges: Vec<Range<usize>>,
    /// How many steps were added one by one because a range contains them.
    n_spelled_out: usize,
}

impl Finder<'_> {
    fn add(&mut self, plan: &PlanId, number: &StepNumber) {
        let id = StepId { plan: plan.clone(), number: number.clone() };
        if !self.seen.contains(&id) {
            self.seen.insert(id.clone());
            self.steps.push(id);
        }
    }

    /// Reads the numbers after the word "step", which is at `start..end`. Returns the offset at which the numbers end.
    fn list_after(&mut self, plan: &PlanId, start: usize, end: usize) -> Option<usize> {
        let rest = &self.folded[end..];
        let behind = rest.strip_prefix('s').map_or(rest, |it| it.strip_prefix(':').unwrap_or(it));
        let number = match behind.strip_prefix('-') {
            Some(number) => number,
            None => trimmed(behind).trim_start_matches(['#', '*', '_']),
        };
        let at = self.folded.len() - number.len();
        // `step-1` is a name even if more characters follow its number. In other forms, the number must be at the end
        // of the word.
        let is_name = &self.folded[start..at] == "step-";
        let gap = &behind[..behind.len() - number.len()];
        // At the beginning of the next line, a number with a point, such as `1.`, is a list mark.
        let is_mark = gap.contains('\n')
            && number.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['.', ')']);
        if gap.is_empty() || is_mark { None } else { self.list(plan, at, is_name) }
    }

    /// Reads a list of numbers and ranges that begins at `at`. Returns the offset at which the list ends.
    fn list(&mut self, plan: &PlanId, at: usize, is_name: bool) -> Option<usize> {
        let (first, mut end) = self.number(at, is_name)?;
        self.add(plan, &first);
        // The end of a range cannot begin another one: `1-3-5` and `2026-11-21` are not two ranges.
        let mut begin = Some(first);
        loop {
            let range = begin.take().and_then(|it| Some((it, self.number_after(end, &RANGE)?)));
            if let Some((first, (number, to))) = range {
                self.range(plan, &first, &number);
                end = to;
            } else if let Some((number, to)) = self.number_after(end, &AND) {
                self.add(plan, &number);
                (begin, end) = (Some(number), to);
            } else {
                return Some(end);
            }
        }
    }

    /// Adds the steps of a range, except the first, which the caller has added. If the range is in another plan, does not
    /// ascend or has too many steps, only its last step is added. A range with too many steps is added to `ranges`.
    fn range(&mut self, plan: &PlanId, first: &StepNumber, last: &StepNumber) {
        if *plan == self.step.plan && first < last {
            let from = self.numbers.partition_point(|it| it < first);
            let to = self.numbers.partition_point(|it| it <= last).max(from);
            if self.n_spelled_out + (to - from) > MOST_SPELLED_OUT {
                self.ranges.push(from..to);
            } else {
                self.n_spelled_out += to - from;
                for number in &self.numbers[from..to] {
                    self.add(plan, number);
                }
            }
        }
        self.add(plan, last);
    }

    fn number(&self, at: usize, is_name: bool) -> Option<(StepNumber, usize)> {
        let digits = number_at(&self.text[at..]);
        let end = at + digits.len();
        let behind = &self.text[end..];
        let goes_on = behind.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '%' | '_'))
            || behind.strip_prefix('.').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()));
        digits.parse().ok().filter(|_| is_name || !goes_on).map(|it| (it, end))
    }

    /// Reads the number after one of `words`. The word "step" may precede the number: `, 2`, `and step 2`, `–3`.
    fn number_after(&self, at: usize, words: &[&str]) -> Option<(StepNumber, usize)> {
        let rest = self.folded[at..].trim_start_matches(['`', '*', '_']);
        let beside = rest.trim_start_matches([' ', '\t', '\u{a0}']);
        // On the next line, the separator must be a word: a character such as `-` at the beginning is a list mark.
        let rest = if trimmed(rest).starts_with(char::is_alphabetic) { trimmed(rest) } else { beside };
        let after = words.iter().find_map(|word| {
            let after = rest.strip_prefix(word)?;
            let is_whole = !word.ends_with(char::is_alphabetic) || after.starts_with(char::is_whitespace);
            is_whole.then_some(after)
        })?;
        let after = trimmed(after).trim_start_matches(['`', '*', '_']);
        let named = after.strip_prefix("steps").or_else(|| after.strip_prefix("step"));
        let is_name = after.starts_with("step-");
        let number =
            named.unwrap_or(after).trim_start_matches([' ', '\u{a0}', '\n', '-', '#', '*', '_', '`']);
        if named.is_none() && number.len() != after.len() {
            return None;
        }
        self.number(self.folded.len() - number.len(), is_name)
    }

    /// Reads the lines that contain only numbers, such as `1, 2 and 4`, also after an introduction: `Depends on: 1-3`.
    fn bare_lists(&mut self) {
        let text = self.folded;
        for line in text.split('\n') {
            let start = line.as_ptr() as usize - text.as_ptr() as usize;
            let mut rest = line.trim_start_matches([' ', '\t', '-', '*', '+', '_', '>']);
            let words = INTRODUCTIONS.split(", ").find_map(|it| rest.strip_prefix(it));
            rest = words.unwrap_or(rest).trim_start_matches([' ', ':', '*', '_', '#']);
            let at = start + line.len() - rest.len();
            let (n_known, n_ranges) = (self.steps.len(), self.ranges.len());
            let Some(end) = self.list(&self.step.plan.clone(), at, false) else { continue };
            // If other words follow on the line where the list ends, the numbers are not dependencies.
            let more = text[end..].split('\n').next().unwrap_or_default();
            if more.contains(char::is_alphanumeric) {
                self.ranges.truncate(n_ranges);
                for id in self.steps.drain(n_known..) {
                    self.seen.remove(&id);
                }
            }
        }
    }

    /// Whether the text says "all steps above", "every step before this one" or similar.
    fn names_all_above(&self) -> bool {
        let above = |(at, word): (usize, &str)| {
            let rest = self.folded[at + word.len()..].trim_start_matches('s').trim_start();
            let is_above = ["above", "before this", "before it", "prior to this", "preceding this"]
                .iter()
                .any(|it| rest.strip_prefix(it).is_some_and(|it| !it.starts_with(char::is_alphanumeric)));
            let all = clause(&self.folded[..at]).rev().find(|it| !matches!(*it, "the" | "of"));
            is_above && matches!(all, Some("all" | "every" | "each")) && !is_denied(&self.folded[..at])
        };
        self.folded.match_indices("step").any(above)
    }
}

/// Separators between the two numbers of a range.
const RANGE: [&str; 9] = ["-", "–", "—", "‒", "...", "..", "…", "through", "to"];

/// Separators between the numbers of a list.
const AND: [&str; 9] = [", and", ", or", ",", ";", "&", "+", "and", "or", "as well as"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::read_step_id;

    fn numbers() -> Vec<StepNumber> {
        ["0", "1", "1.5", "2", "3", "4", "6", "7"].iter().map(|it| it.parse().expect("a number")).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let step = read_step_id("p:6").expect("it is a step");
        let found = find(&step, text, &numbers()).steps;
        let found: Vec<_> = found.iter().map(|it| it.to_string().replace("p:", "")).collect();
        assert_eq!(found, expected, "{text}");
    }

    const ALL: [&str; 6] = ["0", "1", "1.5", "2", "3", "4"];

    #[test]
    fn all_that_comes_before_is_named_in_many_words() {
        for text in [
            "Requires all previous steps",
            "Requires **all previous steps** to be completed.",
            "every preceding step",
            "All prior steps must be done.",
            "Depends on each earlier step",
            "All of the previous\nsteps",
            "The previous steps.",
            "needs all the other preceding steps",
            "Previous steps",
            "All steps above",
            "every step before this one",
            "step-1 and all previous steps",
        ] {
            check(text, &ALL);
        }
        check("all previous steps and other:step-9", &[&ALL[..], &["other:9"]].concat());
        check("the previous step", &["4"]);
        check("Requires previous step's tables", &["4"]);
        check("the preceding step and step 1", &["1", "4"]);
    }

    #[test]
    fn steps_that_are_not_needed_and_other_words_are_not_named() {
        for text in [
            "no previous steps",
            "does not need the previous step",
            "independent of all prior steps",
            "all previous phases",
            "all previous work, stepping back",
            "the prior steppe",
            "a substep 1",
            "in 3 steps",
            "Python 3 and Node 18",
            "takes 2 to 3 days",
            "3 services",
            "2026-11-21",
            "step by step",
            "step 2nd",
            "all steps",
            "1. the schema",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn lists_and_ranges_are_read() {
        for (text, expected) in [
            ("Step 2", &["2"][..]),
            ("step 2.", &["2"]),
            ("step #2 (the schema)", &["2"]),
            ("- Step 1: the schema\n- Step 2: the routes", &["1", "2"]),
            ("step 2 and 3", &["2", "3"]),
            ("steps 1, 2 and 4", &["1", "2", "4"]),
            ("steps 1, 2, and 4.", &["1", "2", "4"]),
            ("Steps: 1 & 2; step-3", &["1", "2", "3"]),
            ("step 1 and\nstep 2", &["1", "2"]),
            ("Steps 1–3", &["1", "1.5", "2", "3"]),
            ("steps 1-3, 0", &["1", "1.5", "2", "3", "0"]),
            ("steps 1 through 3", &["1", "1.5", "2", "3"]),
            ("steps 1 to 3", &["1", "1.5", "2", "3"]),
            ("step-1 to step-3", &["1", "1.5", "2", "3"]),
            ("`step-1`–`step-3`", &["1", "1.5", "2", "3"]),
            ("step-2..step-4", &["2", "3", "4"]),
            ("steps 3-5", &["3", "4", "5"]),
            ("steps 4-99", &["4", "6", "7", "99"]),
            ("steps 3-1", &["3", "1"]),
            ("1 through 3", &["1", "1.5", "2", "3"]),
            ("1-3", &["1", "1.5", "2", "3"]),
            ("- 1, 2 and 4", &["1", "2", "4"]),
            ("Depends on: 1, 2", &["1", "2"]),
            ("Requires 2.", &["2"]),
            ("other:step-1 and p/step-2", &["other:1", "2"]),
            ("step-1-create-tables", &["1"]),
            ("step 2.5 and 2.5", &["2.5"]),
        ] {
            check(text, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_nothing_is_named_twice(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "step", "steps", "Step-", "1", "2.5", "3", "-", "–", " ", "\n", ",", " and ", " to ", "all ", "previous ",
                    "ß", "İ", "p:", "(", ")", "`", "**", ".", "999999999", "none",
                ]),
                0..24,
            ),
        ) {
            let step = read_step_id("p:6").expect("it is a step");
            let found = find(&step, &words.concat(), &numbers()).steps;
            let unique: HashSet<_> = found.iter().collect();
            proptest::prop_assert_eq!(unique.len(), found.len());
        }
    }
}
