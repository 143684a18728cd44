//! Compares the meaning of two nodes, which may be in different texts.

use super::{Kind, Style, View};
use std::collections::HashSet;

/// Whether two nodes have the same data: kinds, contents, tags, and order of keys.
///
/// `<<` is compared as an ordinary key. This is stricter than a comparison of the merged entries. Two nodes that are
/// reached through aliases are compared only once, so the work does not grow with the size of the expanded aliases.
pub fn same(left: View<'_>, right: View<'_>) -> bool {
    Comparison::default().same(left, right)
}

/// A series of comparisons between nodes of the same two texts. They share the results for aliases.
#[derive(Default)]
pub(crate) struct Comparison {
    /// Pairs of nodes that were reached through aliases. Their comparison has begun and has found no difference yet.
    seen: HashSet<(u32, u32)>,
}

impl Comparison {
    /// See [`same`]. `MAX_DEPTH` limits the depth of the recursion.
    pub(crate) fn same(&mut self, left: View<'_>, right: View<'_>) -> bool {
        let through_alias = left.style() == Style::Alias || right.style() == Style::Alias;
        let (left, right) = (left.target(), right.target());
        if through_alias && !self.seen.insert((left.id, right.id)) {
            return true;
        }
        if left.kind() != right.kind() || left.tag() != right.tag() || left.len() != right.len() {
            return false;
        }
        match left.kind() {
            Kind::List => left.items().zip(right.items()).all(|(left, right)| self.same(left, right)),
            Kind::Map => left.own_entries().zip(right.own_entries()).all(|(left, right)| {
                is_merge_key(left.0) == is_merge_key(right.0)
                    && self.same(left.0, right.0)
                    && self.same(left.1, right.1)
            }),
            Kind::Null => true,
            Kind::Bool | Kind::Number | Kind::Text => left.content() == right.content(),
        }
    }
}

/// A quoted `<<` is an ordinary key, although its content is the same.
fn is_merge_key(key: View<'_>) -> bool {
    key.style() == Style::Plain && key.text() == Some("<<")
}
