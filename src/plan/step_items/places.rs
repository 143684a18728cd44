//! Matches the items of a list with a plan's existing steps, and gives each item a number.

use std::collections::{BTreeSet, HashMap};

use super::StepItem;
use crate::plan::model::Plan;
use crate::plan::step_number::{NoRoom, StepNumber};
use crate::text::placeholders::one_line;

/// The existing steps that the items of a list refer to, and the numbers that the items get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// For each item, the index of the existing step that it refers to; `None` for a new step.
    pub(crate) steps: Vec<Option<usize>>,
    /// The number of each item. All numbers are different.
    pub(crate) numbers: Vec<StepNumber>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotPlaced {
    #[error("step-{0} is in the list twice")]
    Twice(StepNumber),
    #[error("step-{later} precedes step-{earlier}")]
    OutOfOrder { earlier: StepNumber, later: StepNumber },
    #[error("there are too few free numbers for the steps of the list")]
    NoRoom(#[from] NoRoom),
}

/// Matches items with existing steps, by number if the item has one, else by title, and gives each item a number.
///
/// As many steps as possible keep their numbers: those of a longest subsequence of the list whose numbers ascend. A
/// closed step that is not in the list keeps its number, too. The other items get whole numbers where there is room, else
/// numbers between two others. The numbers in `elsewhere` are not used, because steps on other branches have them.
pub(crate) fn places(
    plan: &Plan,
    items: &[StepItem],
    elsewhere: &BTreeSet<StepNumber>,
) -> Result<Places, NotPlaced> {
    check_numbers(plan, items)?;
    let steps = matched(plan, items);
    let fixed = fixed(plan, items, &steps);
    let is_named = |nth: usize| steps.contains(&Some(nth));
    let number = |nth: usize| plan.steps[nth].id.number.clone();
    let all = 0..plan.steps.len();
    let stays: BTreeSet<StepNumber> = all.clone().filter(|it| is_named(*it)).map(number).collect();
    let closed: BTreeSet<_> =
        all.clone().filter(|it| !is_named(*it) && plan.steps[*it].is_closed()).map(number).collect();
    let first = u32::from(plan.steps.first().is_none_or(|it| it.id.number != StepNumber::whole(0)));
    let mut taken: BTreeSet<StepNumber> = stays.union(&closed).cloned().collect();
    taken.extend(fixed.iter().flatten().cloned());
    taken.extend(elsewhere.iter().cloned());
    let mut numbers: Vec<StepNumber> = Vec::new();
    while numbers.len() < items.len() {
        if let Some(number) = &fixed[numbers.len()] {
            numbers.push(number.clone());
            continue;
        }
        let start = numbers.len();
        let end = (start..items.len()).find(|it| fixed[*it].is_some()).unwrap_or(items.len());
        let upper = fixed.get(end).and_then(Option::as_ref);
        let before = closed.iter().rfind(|it| upper.is_none_or(|upper| *it < upper));
        let gap = Gap { lower: numbers.last().max(before), upper, first };
        // A file that moves cannot take the name of a file that is moved or removed in the same change.
        let moves = (start..end).any(|it| steps[it].is_some());
        let avoided = match moves {
            true => taken.iter().cloned().chain(all.clone().map(number)).collect(),
            false => taken.clone(),
        };
        let new = gap.numbers(end - start, &avoided)?;
        numbers.extend(new);
    }
    Ok(Places { steps, numbers })
}

/// Checks that no number occurs twice, and that the numbers of new steps ascend. The number of an existing step only
/// identifies the step.
fn check_numbers(plan: &Plan, items: &[StepItem]) -> Result<(), NotPlaced> {
    let mut seen = BTreeSet::new();
    for number in items.iter().filter_map(|it| it.number.as_ref()) {
        if !seen.insert(number) {
            return Err(NotPlaced::Twice(number.clone()));
        }
    }
    let new: Vec<_> = items.iter().filter_map(|it| new_number(plan, it)).collect();
    match new.windows(2).find(|it| it[0] > it[1]) {
        Some(pair) => Err(NotPlaced::OutOfOrder { earlier: pair[1].clone(), later: pair[0].clone() }),
        None => Ok(()),
    }
}

/// Returns the number that the list states for an item, if no existing step has that number.
fn new_number<'a>(plan: &Plan, item: &'a StepItem) -> Option<&'a StepNumber> {
    item.number.as_ref().filter(|it| plan.steps.iter().all(|step| step.id.number != **it))
}

fn matched(plan: &Plan, items: &[StepItem]) -> Vec<Option<usize>> {
    let at = |number: &StepNumber| plan.steps.iter().position(|it| it.id.number == *number);
    let mut found: Vec<Option<usize>> = items.iter().map(|it| it.number.as_ref().and_then(at)).collect();
    let mut by_title: HashMap<String, Vec<usize>> = HashMap::new();
    for nth in (0..plan.steps.len()).rev().filter(|it| !found.contains(&Some(*it))) {
        by_title.entry(folded(&plan.steps[nth].title)).or_default().push(nth);
    }
    for (item, step) in items.iter().zip(&mut found).filter(|(item, _)| item.number.is_none()) {
        *step = by_title.get_mut(&folded(&item.title)).and_then(Vec::pop);
    }
    found
}

fn folded(title: &str) -> String {
    one_line(title).to_lowercase()
}

/// Returns the number of each item; `None` if it is not fixed yet.
///
/// The numbers that the list states for new steps are fixed. Between two items with such numbers, a longest subsequence
/// of existing steps with ascending numbers keeps its numbers.
fn fixed(plan: &Plan, items: &[StepItem], steps: &[Option<usize>]) -> Vec<Option<StepNumber>> {
    let new: Vec<Option<&StepNumber>> = items.iter().map(|it| new_number(plan, it)).collect();
    let mut fixed: Vec<Option<StepNumber>> = new.iter().map(|it| it.cloned()).collect();
    let mut start = 0;
    while start < items.len() {
        let end = (start..items.len()).find(|it| new[*it].is_some()).unwrap_or(items.len());
        let lower = start.checked_sub(1).and_then(|it| new[it]);
        let upper = new.get(end).copied().flatten();
        let known = (start..end).filter_map(|nth| Some((nth, &plan.steps[steps[nth]?].id.number)));
        let known: Vec<_> = known
            // Only the first item can have the number 0.
            .filter(|(nth, it)| *nth == 0 || **it != StepNumber::whole(0))
            .filter(|(_, it)| lower.is_none_or(|lower| *it > lower) && upper.is_none_or(|upper| *it < upper))
            .collect();
        for nth in longest_rising(&known.iter().map(|it| it.1).collect::<Vec<_>>()) {
            fixed[known[nth].0] = Some(known[nth].1.clone());
        }
        start = end + 1;
    }
    fixed
}

/// The indexes of a longest strictly rising subsequence (Fredman, "On computing the length of longest increasing
/// subsequences", 1975): O(n log n).
fn longest_rising<T: Ord>(values: &[T]) -> Vec<usize> {
    // For each length, `ends` contains the index of the smallest value that ends a rising subsequence of that length. For
    // each index, `before` contains the previous index in its subsequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (nth, value) in values.iter().enumerate() {
        let len = ends.partition_point(|it| values[*it] < *value);
        before.push(len.checked_sub(1).map(|it| ends[it]));
        ends.truncate(ends.len().max(len));
        match ends.get_mut(len) {
            Some(end) => *end = nth,
            None => ends.push(nth),
        }
    }
    let mut run: Vec<usize> = std::iter::successors(ends.last().copied(), |it| before[*it]).collect();
    run.reverse();
    run
}

/// The range of numbers for consecutive items that have no number yet.
struct Gap<'a> {
    lower: Option<&'a StepNumber>,
    upper: Option<&'a StepNumber>,
    /// The first number of the plan, 0 or 1.
    first: u32,
}

impl Gap<'_> {
    fn numbers(&self, n: usize, taken: &BTreeSet<StepNumber>) -> Result<Vec<StepNumber>, NoRoom> {
        let first = StepNumber::whole(self.first);
        let mut found = self.whole(self.lower.map_or(Ok(first), StepNumber::successor), n, taken);
        if found.len() < n && self.lower.is_none() {
            found = self.whole(Ok(StepNumber::whole(0)), n, taken);
        }
        if found.len() == n {
            return Ok(found);
        }
        let mut found = Vec::new();
        let zero = StepNumber::whole(0);
        let mut low = match self.lower {
            Some(lower) => lower.clone(),
            None => {
                if self.upper.is_some_and(|it| *it <= zero) {
                    return Err(NoRoom);
                }
                found.extend((!taken.contains(&zero)).then(|| zero.clone()));
                zero
            }
        };
        while found.len() < n {
            let next = taken.iter().chain(self.upper).filter(|it| **it > low).min().ok_or(NoRoom)?;
            low = low.midpoint(next)?;
            found.push(low.clone());
        }
        Ok(found)
    }

    /// Returns at most `n` free whole numbers that are at least `from` and below `upper`.
    fn whole(
        &self,
        from: Result<StepNumber, NoRoom>,
        n: usize,
        taken: &BTreeSet<StepNumber>,
    ) -> Vec<StepNumber> {
        let numbers = std::iter::successors(from.ok(), |it| it.successor().ok());
        let is_below = |it: &StepNumber| self.upper.is_none_or(|upper| it < upper);
        numbers.take_while(is_below).filter(|it| !taken.contains(it)).take(n).collect()
    }
}
