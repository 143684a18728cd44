//! The entries of a mapping with its `<<` merges applied.

use super::{Kind, NONE, Style, View};
use std::collections::HashSet;

impl<'a> View<'a> {
    /// The entries of a mapping with `<<` applied. Its own keys take precedence over merged ones, and earlier sources over
    /// later ones.
    ///
    /// Every source is visited once, so the work is bounded by the size of the text.
    pub fn entries(self) -> impl Iterator<Item = (View<'a>, View<'a>)> + use<'a> {
        let merged = if self.target().raw().has_merge { merged_entries(self.target()) } else { Vec::new() };
        self.own_entries().filter(|(key, value)| !key.merges(*value)).chain(merged)
    }

    /// Whether this key is a merge key (`<<`) and `value` can be merged.
    pub(super) fn merges(self, value: Self) -> bool {
        let key = self.raw();
        let is_key = key.style == Style::Plain && key.tag == NONE && self.content() == "<<";
        is_key
            && match value.kind() {
                Kind::Map => true,
                Kind::List => value.items().all(|it| it.kind() == Kind::Map),
                _ => false,
            }
    }
}

fn merged_entries<'a>(map: View<'a>) -> Vec<(View<'a>, View<'a>)> {
    let mut found = Vec::new();
    let mut keys = HashSet::new();
    let mut sources = HashSet::from([map.id]);
    // A stack is used instead of recursion. Sources are visited in the order of the text, depth first.
    let mut stack: Vec<View<'a>> = Vec::new();
    push_sources(map, &mut stack);
    for (key, value) in map.own_entries() {
        if !key.merges(value) {
            keys.insert((key.kind(), key.text()));
        }
    }
    while let Some(source) = stack.pop() {
        let source = source.target();
        if !sources.insert(source.id) {
            continue;
        }
        for (key, value) in source.own_entries() {
            if !key.merges(value) && keys.insert((key.kind(), key.text())) {
                found.push((key, value));
            }
        }
        push_sources(source, &mut stack);
    }
    found
}

fn push_sources<'a>(map: View<'a>, stack: &mut Vec<View<'a>>) {
    if !map.raw().has_merge {
        return;
    }
    let from = stack.len();
    for (_, value) in map.own_entries().filter(|(key, value)| key.merges(*value)) {
        match value.kind() {
            Kind::List => stack.extend(value.items()),
            _ => stack.push(value),
        }
    }
    stack[from..].reverse();
}
