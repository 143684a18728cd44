//! How many open steps wait for a step.

use std::collections::HashSet;

use crate::plan::id::StepId;
use crate::plan::model::Order;
use crate::plan::plans::{Finder, Plans};

/// Which open steps wait for a step, directly or through others. Steps are stored as indices, because there are many.
pub(super) struct Waiting<'a> {
    finder: Finder<'a>,
    /// For each step, the index in `dependants` at which the steps that wait for it begin. The last entry is the length
    /// of `dependants`.
    firsts: Vec<usize>,
    dependants: Vec<usize>,
}

impl<'a> Waiting<'a> {
    pub(super) fn of(plans: &'a Plans) -> Self {
        let finder = Finder::of(plans);
        let mut pairs = Vec::new();
        for (plan, own) in finder.live() {
            for step in plan.steps.iter().filter(|it| !it.depends.is_empty() && !it.is_closed()) {
                let Some(waiting) = finder.node(plan, own, &step.id) else { continue };
                let on = step.depends.iter().filter_map(|it| finder.node(plan, own, it));
                pairs.extend(on.map(|on| (on, waiting)));
            }
            let in_order = plan.steps.iter().filter(|it| plan.order == Order::Sequential && !it.is_closed());
            pairs.extend(in_order.filter_map(|step| {
                let before = &plan.before(step)?.id;
                Some((finder.node(plan, own, before)?, finder.node(plan, own, &step.id)?))
            }));
        }
        let mut n_nodes = finder.len();
        for (plan, runs) in finder.runs(n_nodes) {
            n_nodes += runs.n_inner();
            pairs.extend(runs.inner().flat_map(|(parent, children)| children.map(|it| (it, parent))));
            for step in plan.steps.iter().filter(|it| !it.ranges.is_empty() && !it.is_closed()) {
                let Some(waiting) = finder.find(&step.id) else { continue };
                let held = step.ranges.iter().flat_map(|it| runs.of(&plan.places_in(it)));
                pairs.extend(held.map(|on| (on, waiting)));
            }
        }
        let mut firsts = vec![0; n_nodes + 1];
        for (on, _) in &pairs {
            firsts[on + 1] += 1;
        }
        for at in 1..firsts.len() {
            firsts[at] += firsts[at - 1];
        }
        let (mut free, mut dependants) = (firsts.clone(), vec![0; pairs.len()]);
        for (on, waiting) in pairs {
            dependants[free[on]] = waiting;
            free[on] += 1;
        }
        Self { finder, firsts, dependants }
    }

    pub(super) fn count(&self, step: &StepId) -> usize {
        let (mut seen, mut work) = (HashSet::new(), Vec::from_iter(self.finder.find(step)));
        while let Some(on) = work.pop() {
            let waiting = &self.dependants[self.firsts[on]..self.firsts[on + 1]];
            work.extend(waiting.iter().filter(|it| seen.insert(**it)));
        }
        // An inner node of a segment tree (`Runs`) is not a step.
        seen.iter().filter(|it| **it < self.finder.len()).count()
    }
}
