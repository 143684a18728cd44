//! Leaves out the edges that other edges imply (transitive reduction), so that a drawing has fewer lines.

use std::collections::BTreeSet;

use super::Graph;

/// Removes each edge for which another path leads from its start to its end, and each edge from a node to itself. If the
/// graph has a cycle of several nodes, only the edges from a node to itself are removed.
pub(super) fn reduce(graph: &mut Graph) {
    graph.edges.retain(|(from, to)| from != to);
    if let Some(edges) = reduced(graph.nodes.len(), &graph.edges) {
        graph.edges = edges;
    }
}

fn reduced(len: usize, edges: &BTreeSet<(usize, usize)>) -> Option<BTreeSet<(usize, usize)>> {
    let mut before = vec![Vec::new(); len];
    let mut after = vec![Vec::new(); len];
    for (from, to) in edges {
        before[*to].push(*from);
        after[*from].push(*to);
    }
    let order = in_order(&before, &after)?;
    let mut rank = vec![0; len];
    for (nth, node) in order.iter().enumerate() {
        rank[*node] = nth;
    }
    let words = len.div_ceil(64);
    // For each node, the set of the nodes from which a path leads to it.
    let mut reached = vec![vec![0_u64; words]; len];
    let mut kept = BTreeSet::new();
    for node in order {
        let mut candidates = before[node].clone();
        // Candidates that come later in `order` are handled first, because a path from an earlier candidate may lead through
        // a later one.
        candidates.sort_by_key(|it| std::cmp::Reverse(rank[*it]));
        for from in candidates {
            if reached[node][from / 64] >> (from % 64) & 1 == 1 {
                continue;
            }
            kept.insert((from, node));
            let through = reached[from].clone();
            for (own, more) in reached[node].iter_mut().zip(through) {
                *own |= more;
            }
            reached[node][from / 64] |= 1 << (from % 64);
        }
    }
    Some(kept)
}

/// The nodes in topological order: each node comes after those that it waits for. `None`: there is a cycle.
fn in_order(before: &[Vec<usize>], after: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..before.len()).filter(|it| open[*it] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        next += 1;
        for to in &after[node] {
            open[*to] -= 1;
            if open[*to] == 0 {
                order.push(*to);
            }
        }
    }
    (order.len() == before.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reach(len: usize, edges: &BTreeSet<(usize, usize)>) -> BTreeSet<(usize, usize)> {
        let mut all = edges.clone();
        for through in 0..len {
            let from: Vec<_> = all.iter().filter(|it| it.1 == through).map(|it| it.0).collect();
            let to: Vec<_> = all.iter().filter(|it| it.0 == through).map(|it| it.1).collect();
            all.extend(from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))));
        }
        all
    }

    proptest! {
        #[test]
        fn a_reduced_graph_reaches_the_same_and_no_edge_is_needless(
            edges in proptest::collection::btree_set((0_usize..12, 0_usize..12), 0..50)
        ) {
            let edges: BTreeSet<_> = edges.into_iter().filter(|(from, to)| from < to).collect();
            let fewer = reduced(12, &edges).expect("there is no cycle");
            prop_assert!(fewer.is_subset(&edges));
            prop_assert_eq!(reach(12, &fewer), reach(12, &edges));
            for edge in &fewer {
                let mut without = fewer.clone();
                without.remove(edge);
                prop_assert!(!reach(12, &without).contains(edge));
            }
        }
    }

    #[test]
    fn cycles_stay() {
        assert_eq!(reduced(2, &[(0, 1), (1, 0)].into()), None);
        assert_eq!(reduced(0, &BTreeSet::new()), Some(BTreeSet::new()));
    }
}
