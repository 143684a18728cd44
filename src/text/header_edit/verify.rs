//! Verifies that an edited file means exactly the old data plus the change.
//!
//! The check does not depend on how edits are made: it compares the meaning of two texts.

use super::refusal::BUG;
use super::{Change, EditError, EntryChange, NewValue};
use crate::text::front_matter;
use crate::text::yaml::{Comparison, Kind, View};

type Entry<'a> = (View<'a>, View<'a>);

/// A file, and the root of its front matter.
type File<'a> = (&'a [u8], Option<View<'a>>);

/// Rejects an edit if the new data is not the old data with exactly this change, or if the body or the byte order mark
/// differs.
pub(super) fn check(old: File<'_>, new: File<'_>, change: &Change) -> Result<(), EditError> {
    let means_it = match (old.1, new.1) {
        (old, Some(new)) => {
            Expected { old: entries(old), new: entries(Some(new)), seen: Comparison::default() }.met(change)
        }
        (_, None) => false,
    };
    let [old_body, new_body] = [old.0, new.0].map(|it| front_matter::split(it).body());
    if means_it && old_body == new_body && begins_alike(old.0, new.0) {
        return Ok(());
    }
    let reason = format!("the edit of `{}` would not have had the intended meaning", change.key());
    Err(EditError::new(BUG, 0, reason))
}

fn begins_alike(old: &[u8], new: &[u8]) -> bool {
    let bom = b"\xEF\xBB\xBF";
    old.starts_with(bom) == new.starts_with(bom)
}

fn entries(root: Option<View<'_>>) -> Vec<Entry<'_>> {
    root.map_or_else(Vec::new, |it| it.own_entries().collect())
}

struct Expected<'a> {
    old: Vec<Entry<'a>>,
    new: Vec<Entry<'a>>,
    seen: Comparison,
}

impl<'a> Expected<'a> {
    fn met(mut self, change: &Change) -> bool {
        let position =
            |entries: &[Entry<'_>]| entries.iter().position(|(it, _)| it.text() == Some(change.key()));
        let (was, is) = (position(&self.old), position(&self.new));
        let old_value = was.map(|it| self.old.remove(it).1);
        let new_value = is.map(|it| self.new.remove(it).1);
        let same_place = was.is_none() || is.is_none() || was == is;
        same_place && self.others_are_same() && self.value_is(change, old_value, new_value)
    }

    fn others_are_same(&mut self) -> bool {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        old.len() == new.len()
            && old
                .iter()
                .zip(&new)
                .all(|(old, new)| self.seen.same(old.0, new.0) && self.seen.same(old.1, new.1))
    }

    fn value_is(&mut self, change: &Change, old: Option<View<'a>>, new: Option<View<'a>>) -> bool {
        let Some(new) = new else { return matches!(change, Change::Remove { .. }) };
        match change {
            Change::Set { value, .. } => value.matches(new),
            Change::Remove { .. } => false,
            Change::SetEntries { entries, .. } => self.entries_are(old, new, entries),
            Change::Append { item, .. } => {
                let count = old.map_or(0, View::len);
                self.items_are(old, new, |nth| if nth == count { Item::New(item) } else { Item::Old(nth) })
                    && new.len() == count + 1
            }
            Change::SetItem { index, value, .. } => {
                self.items_are(old, new, |nth| if nth == *index { Item::New(value) } else { Item::Old(nth) })
                    && old.is_some_and(|it| it.len() == new.len())
            }
            Change::RemoveItem { index, .. } => {
                self.items_are(old, new, |nth| Item::Old(nth + usize::from(nth >= *index)))
                    && old.is_some_and(|it| it.len() == new.len() + 1)
            }
        }
    }

    /// Whether the new mapping has the old entries in their order, with these changes.
    fn entries_are(&mut self, old: Option<View<'a>>, new: View<'a>, changes: &[EntryChange]) -> bool {
        let wanted = |key: View<'_>| changes.iter().find(|it| key.text() == Some(&*it.0)).map(|it| &it.1);
        let old =
            old.filter(|it| it.kind() == Kind::Map).map_or_else(Vec::new, |it| it.own_entries().collect());
        let mut old = old.into_iter().filter(|it| wanted(it.0).is_none());
        let mut n_set = 0;
        let is_fine = |(key, value): Entry<'a>| match wanted(key) {
            Some(wanted) => {
                n_set += 1;
                wanted.as_ref().is_some_and(|it| it.matches(value))
            }
            None => old.next().is_some_and(|it| self.seen.same(it.0, key) && self.seen.same(it.1, value)),
        };
        let are_fine = new.kind() == Kind::Map && new.own_entries().all(is_fine);
        are_fine && n_set == changes.iter().filter(|it| it.1.is_some()).count() && old.next().is_none()
    }

    /// Whether each item of the new list is the one that `expected` returns for its index.
    fn items_are<'v>(
        &mut self,
        old: Option<View<'a>>,
        new: View<'a>,
        expected: impl Fn(usize) -> Item<'v>,
    ) -> bool {
        let old: Vec<View<'a>> = old.map_or_else(Vec::new, |it| it.items().collect());
        new.kind() == Kind::List
            && new.items().enumerate().all(|(nth, item)| match expected(nth) {
                Item::New(value) => value.matches(item),
                Item::Old(nth) => old.get(nth).is_some_and(|it| self.seen.same(*it, item)),
            })
    }
}

enum Item<'v> {
    /// The item at this index of the old list.
    Old(usize),
    New(&'v NewValue),
}
