//! Compares the order of a partly claimed queue with the order that a new load of all plans gives.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use proptest::prelude::*;

use super::*;

/// The urgency of each plan's steps; a smaller number is more urgent.
type Plans = Vec<Vec<u8>>;

/// The order of [`crate::plan::rules::in_turn`] without the gone steps. Each step is a pair of the plan's index and its own
/// index in the plan.
fn claim_order(plans: &Plans, is_gone: &dyn Fn(&(usize, usize)) -> bool) -> Vec<(usize, usize)> {
    let next = |plan: usize, from: usize| {
        let nth = (from..plans[plan].len()).find(|nth| !is_gone(&(plan, *nth)))?;
        Some(Reverse((plans[plan][nth], plan, nth)))
    };
    let mut first: BinaryHeap<_> = (0..plans.len()).filter_map(|plan| next(plan, 0)).collect();
    let mut all = Vec::new();
    while let Some(Reverse((_, plan, nth))) = first.pop() {
        all.push((plan, nth));
        first.extend(next(plan, nth + 1));
    }
    all
}

fn queued(plans: &Plans, queue: &[(usize, usize)]) -> Vec<QueuedStep> {
    let urgency = |it: &(usize, usize)| (plans[it.0][it.1], it.0);
    let mut by_rank = queue.to_vec();
    by_rank.sort_by_key(urgency);
    let step = |it: &(usize, usize)| {
        let (id, path) = (format!("p{}:{}", it.0, it.1), String::new());
        let rank = by_rank.iter().position(|other| other == it).unwrap();
        QueuedStep { id, path, key: String::new(), plan: it.0, rank }
    };
    queue.iter().map(step).collect()
}

proptest! {
    #[test]
    fn a_partly_claimed_queue_keeps_the_order_of_a_fresh_load(
        plans in prop::collection::vec(prop::collection::vec(0..4_u8, 0..6), 1..6),
        most in 1..20_usize,
        gone in prop::collection::vec(any::<bool>(), 20),
        n_first in 0..20_usize,
    ) {
        let all = claim_order(&plans, &|_| false);
        let queue = &all[..most.min(all.len())];
        let is_whole = queue.len() < most;
        let steps = queued(&plans, queue);
        let rest = |is_gone: &dyn Fn(usize) -> bool| -> (Vec<_>, Vec<_>) {
            let left: Vec<_> = (0..queue.len()).map(|it| !is_gone(it)).collect();
            let taken: HashSet<_> = (0..queue.len()).filter(|it| is_gone(*it)).map(|it| queue[it]).collect();
            let found = in_turn(&steps, &left, is_whole).into_iter().map(|it| queue[it]).collect();
            (found, claim_order(&plans, &|it| taken.contains(it)))
        };
        let (found, expected) = rest(&|it| gone[it]);
        if is_whole {
            prop_assert_eq!(&found, &expected);
        } else {
            prop_assert_eq!(&found[..], &expected[..found.len()]);
        }
        // If the first steps were claimed in order, all others remain in order.
        let (found, _) = rest(&|it| it < n_first);
        prop_assert_eq!(&found[..], &queue[n_first.min(queue.len())..]);
    }
}
