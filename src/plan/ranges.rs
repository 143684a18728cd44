//! Dependencies on ranges of steps, which are stored as ranges if they contain many steps.
//!
//! For example, each step of a plan with 10,000 steps may depend on all previous steps. Stored one by one, these would be
//! 50 million dependencies.

use std::collections::HashSet;
use std::ops::Range;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::step_number::StepNumber;

/// The maximum number of steps that the ranges in a step's text add to its `depends`. A range that would exceed this number
/// is stored as a range. Of such a range, only the ends can be in `depends`, and they are not counted.
pub const MOST_SPELLED_OUT: usize = 100;

/// A dependency on the steps of the same plan from `first` to `last`, both included.
#[derive(Debug, Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StepRange {
    pub first: StepNumber,
    pub last: StepNumber,
}

impl StepRange {
    pub fn has(&self, number: &StepNumber) -> bool {
        self.first <= *number && *number <= self.last
    }
}

impl Step {
    /// Returns whether the step depends on another step, by its id or through a range.
    pub fn depends_on(&self, id: &StepId) -> bool {
        self.depends.contains(id) || self.has_in_range(id)
    }

    /// The dependencies for a line of a Steps list: none if the step has ranges, because a line cannot state a range.
    pub(crate) fn depends_for_line(&self) -> &[StepId] {
        if self.ranges.is_empty() { &self.depends } else { &[] }
    }

    pub(crate) fn has_in_range(&self, id: &StepId) -> bool {
        self.ranges.iter().any(|it| it.has(&id.number)) && id.plan == self.id.plan
    }
}

impl Plan {
    pub(crate) fn places_in(&self, range: &StepRange) -> Range<usize> {
        let first = self.steps.partition_point(|it| it.id.number < range.first);
        first..self.steps.partition_point(|it| it.id.number <= range.last).max(first)
    }

    /// Returns the steps that a step of this plan depends on, each once and with ranges spelled out. This is too slow
    /// to be done for many steps.
    pub fn spelled_out(&self, step: &Step) -> Vec<StepId> {
        let held = step.ranges.iter().flat_map(|it| &self.steps[self.places_in(it)]).map(|it| &it.id);
        let mut known: HashSet<&StepId> = HashSet::new();
        held.chain(&step.depends).filter(|it| known.insert(it)).cloned().collect()
    }

    /// Returns the indices of the steps for which `is_open` holds; `None` if no step has ranges. If two files have the
    /// same number, only the first counts.
    pub(crate) fn open_places(&self, is_open: impl Fn(&Step) -> bool) -> Option<Vec<usize>> {
        if self.steps.iter().all(|it| it.ranges.is_empty()) {
            return None;
        }
        let is_first = |at: usize| at == 0 || self.steps[at - 1].id.number != self.steps[at].id.number;
        Some((0..self.steps.len()).filter(|at| is_first(*at) && is_open(&self.steps[*at])).collect())
    }

    /// Returns those of the sorted indices `places` that are in the ranges of a step.
    pub(crate) fn in_ranges<'a>(&self, step: &Step, places: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        let held: Vec<&[usize]> = step
            .ranges
            .iter()
            .map(|it| {
                let range = self.places_in(it);
                let from = places.partition_point(|it| *it < range.start);
                &places[from..places.partition_point(|it| *it < range.end).max(from)]
            })
            .collect();
        held.into_iter().flatten().copied()
    }
}

/// A segment tree over a plan's steps. With its inner nodes in a graph, a range needs only a few edges.
///
/// Its leaves are the steps; each of the `len - 1` inner nodes has edges to its two children.
pub(crate) struct Runs {
    /// The node of the plan's first step.
    first: usize,
    len: usize,
    /// The number of the first inner node in the graph. In the tree, this node has the number 1.
    inner: usize,
}

impl Runs {
    /// `free` is the first node number that the graph does not use yet; the inner nodes get the numbers from there on.
    pub(crate) fn new(first: usize, len: usize, free: usize) -> Self {
        Self { first, len, inner: free }
    }

    pub(crate) fn n_inner(&self) -> usize {
        self.len.saturating_sub(1)
    }

    fn node(&self, at: usize) -> usize {
        if at >= self.len { self.first + at - self.len } else { self.inner + at - 1 }
    }

    /// The inner nodes, each with its two children.
    pub(crate) fn inner(&self) -> impl Iterator<Item = (usize, [usize; 2])> {
        (1..self.len).map(|at| (self.node(at), [self.node(2 * at), self.node(2 * at + 1)]))
    }

    /// The nodes that together cover exactly the steps with these indices.
    pub(crate) fn of(&self, places: &Range<usize>) -> Vec<usize> {
        let (mut from, mut to) = (places.start + self.len, places.end + self.len);
        let mut nodes = Vec::new();
        while from < to {
            if from % 2 == 1 {
                nodes.push(self.node(from));
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                nodes.push(self.node(to));
            }
            (from, to) = (from / 2, to / 2);
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::PlanId;
    use crate::plan::plans::Plans;
    use crate::plan::problem::Code;
    use crate::plan::read::{self, Bodies, Content, PlanSources, Source};
    use crate::plan::words::Words;

    /// A plan of `n` steps, each with this Dependencies section.
    fn plan(n: u32, section: &str) -> Plan {
        let step = |number: u32| {
            let content = Content {
                bytes: format!("# Step\n\n## Dependencies\n\n{section}\n").into_bytes(),
                etag: "e".to_owned(),
                modified: "2026-11-01".parse().expect("a time"),
            };
            let source = Source { path: format!("p/step-{number}.md"), content: Ok(content) };
            (StepNumber::whole(number), source)
        };
        let sources = PlanSources { steps: (1..=n).map(step).collect(), ..PlanSources::default() };
        read::read_plan(&PlanId::new("p"), false, &sources, &Words::default(), Bodies::Drop)
    }

    #[test]
    fn no_step_has_more_dependencies_by_ranges_than_are_spelled_out() {
        for section in
            ["Requires all previous steps", "steps 1-299", "steps 1-90, steps 50-200 and steps 150-299"]
        {
            let plan = plan(300, section);
            let most = plan.steps.iter().map(|it| it.depends.len()).max().unwrap_or(0);
            assert!(most <= MOST_SPELLED_OUT + 6, "{section}: {most}");
            assert!(plan.steps.iter().all(|it| it.ranges.len() <= 1), "{section}");
            for step in &plan.steps {
                let mut all: Vec<_> = plan.spelled_out(step).into_iter().map(|it| it.number).collect();
                all.sort_unstable();
                let before: Vec<_> = plan.steps.iter().map(|it| it.id.number.clone()).collect();
                let end = before.partition_point(|it| *it < step.id.number).min(299);
                assert_eq!(all, before[..end], "{section}: {}", step.id);
            }
        }
    }

    #[test]
    fn a_circle_through_a_range_is_found() {
        let mut own = plan(300, "Requires all previous steps");
        let back = own.steps[299].id.clone();
        own.steps[4].depends.push(back);
        let judged = Plans::judged(vec![own]);
        let in_circle = |it: &&Step| it.problems.iter().any(|it| it.code == Code::DependencyCycle);
        let found = judged.iter().flat_map(|it| &it.steps).filter(in_circle).map(|it| &it.id.number);
        let expected: Vec<_> = (5..=300).map(StepNumber::whole).collect();
        assert_eq!(found.cloned().collect::<Vec<_>>(), expected);
    }
}
