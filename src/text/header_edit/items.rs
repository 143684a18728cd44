//! Changes the items of a list. Each item that stays keeps its bytes and its comments.

use super::list::{self, item_end, refuse_shared};
use super::refusal::LAYOUT;
use super::render::spaces;
use super::sheet::{Reach, Sheet, Splice};
use super::value::typed;
use super::{EditError, NewValue, flow_items, remove, replace};
use crate::text::diff::in_common;
use crate::text::yaml::{self, Kind, Style, View};
use std::ops::Range;

/// The maximum number of pairs of an old and a new item that are compared. Equal items at the start and at the end of both
/// lists do not count. With more pairs, only these equal items are kept; the others are replaced in their order.
const MAX_PAIRS: usize = 250_000;

type Entry<'a> = (View<'a>, View<'a>);

/// Where an item of the new list comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source<'v> {
    /// The item at this index of the old list. All kept and replaced items are in their old order.
    Kept(usize),
    /// The item at this index of the old list moves to another position.
    Moved(usize),
    /// A new value that replaces the item at this index of the old list.
    Replaced(usize, &'v NewValue),
    New(&'v NewValue),
}

impl Source<'_> {
    /// The index of the old item that is kept or replaced; `None` for a moved or new item.
    pub(super) fn fixed(&self) -> Option<usize> {
        match self {
            Self::Kept(nth) | Self::Replaced(nth, _) => Some(*nth),
            Self::Moved(_) | Self::New(_) => None,
        }
    }
}

/// Returns the splices for a `Set` whose old value is a list with items. `None` if the old value is to be replaced as a
/// whole.
pub(super) fn set(
    sheet: &Sheet<'_>,
    entry: Entry<'_>,
    key: &str,
    value: &NewValue,
) -> Result<Option<Vec<Splice>>, EditError> {
    let old = entry.1;
    if sheet.reach == Reach::Whole || old.is_alias() || old.kind() != Kind::List || old.is_empty() {
        return Ok(None);
    }
    let Some(values) = items_of(value) else { return Ok(None) };
    let items: Vec<View<'_>> = old.items().collect();
    let sources = sources(&items, &values);
    refuse_shared(sheet, old, key)?;
    for (nth, item) in items.iter().enumerate() {
        if !sources.contains(&Source::Kept(nth)) {
            sheet.guard_anchors(&item.outer_span())?;
        }
    }
    match old.style() {
        Style::Flow => flow_items::change(sheet, old, &sources).map(Some),
        _ if values.is_empty() => Ok(emptied(sheet, entry)),
        _ => Block::new(sheet, old).change(&sources).map(Some),
    }
}

/// Replaces a block list by `[]`. Comments on lines of their own stay. `None` if an item does not begin on a line of its
/// own, if the list has an anchor or a tag, or if the front matter is written in braces.
pub(super) fn emptied(sheet: &Sheet<'_>, (_, list): Entry<'_>) -> Option<Vec<Splice>> {
    let behind_colon = list.lead()? + 1;
    let dashes: Vec<usize> = list.items().map(View::lead).collect::<Option<_>>()?;
    let is_bare = list.outer_span().start == list.span().start;
    if sheet.is_flow() || !is_bare || !dashes.iter().all(|it| sheet.lines.is_first_on_line(*it)) {
        return None;
    }
    let mut splices = vec![Splice { range: behind_colon..behind_colon, text: " []".to_owned() }];
    splices.extend(dashes.iter().zip(list.items()).map(|(dash, item)| Splice {
        range: remove::lines(sheet, *dash..item_end(item), None),
        text: String::new(),
    }));
    Some(splices)
}

/// The items of a list value. `None` if it is not a list, or if it was typed with aliases or with comments outside of its
/// items.
fn items_of(value: &NewValue) -> Option<Vec<NewValue>> {
    let text = match value {
        NewValue::List(items) => return Some(items.clone()),
        NewValue::Yaml(text) => text,
        _ => return None,
    };
    let tree = typed(text).ok().filter(|it| it.aliases().next().is_none())?;
    let source = tree.source();
    let (mut items, mut at) = (Vec::new(), 0);
    for item in tree.root().items() {
        let Range { start, end } = item.outer_span();
        if source[at..start].contains('#') {
            return None;
        }
        // The first line gets its indentation back, so that it is aligned with the lines below it.
        let column = start - source[..start].rfind('\n').map_or(0, |it| it + 1);
        items.push(NewValue::Yaml(format!("{}{}", spaces(column), &source[start..end])));
        at = end;
    }
    let is_list = tree.root().kind() == Kind::List && !source[at..].contains('#');
    is_list.then_some(items)
}

/// Finds for each new value the old item that equals it or that it replaces.
fn sources<'v>(old: &[View<'_>], new: &'v [NewValue]) -> Vec<Source<'v>> {
    let head = old.iter().zip(new).take_while(|(old, new)| new.matches(**old)).count();
    let rest = old.len().min(new.len()) - head;
    let tails = old.iter().rev().zip(new.iter().rev()).take(rest);
    let tail = tails.take_while(|(old, new)| new.matches(**old)).count();
    let (old_rest, new_rest) = (head..old.len() - tail, head..new.len() - tail);
    let mut found: Vec<Option<Source<'v>>> = vec![None; new.len()];
    (0..head).for_each(|it| found[it] = Some(Source::Kept(it)));
    (1..=tail).for_each(|it| found[new.len() - it] = Some(Source::Kept(old.len() - it)));
    let mut is_used: Vec<bool> = (0..old.len()).map(|it| !old_rest.contains(&it)).collect();
    if old_rest.len() * new_rest.len() <= MAX_PAIRS {
        // Each remaining item gets a number: the index of the first remaining old item that equals it. A new item that
        // equals no such old item gets a number of its own.
        let same_as = |is_it: &dyn Fn(&usize) -> bool| old_rest.clone().find(|it| is_it(it));
        let of_old = |nth: usize| same_as(&|it| yaml::same(old[*it], old[nth])).unwrap_or(nth);
        let of_new = |nth: usize| same_as(&|it| new[nth].matches(old[*it])).unwrap_or(old.len() + nth);
        let olds: Vec<usize> = old_rest.clone().map(of_old).collect();
        let news: Vec<usize> = new_rest.clone().map(of_new).collect();
        for (from, to) in in_common(&olds, &news) {
            found[head + to] = Some(Source::Kept(head + from));
            is_used[head + from] = true;
        }
        for to in new_rest {
            if found[to].is_some() {
                continue;
            }
            let is_free = |from: &usize| !is_used[*from] && olds[*from - head] == news[to - head];
            let Some(from) = old_rest.clone().find(is_free) else { continue };
            found[to] = Some(Source::Moved(from));
            is_used[from] = true;
        }
    }
    pair(&mut found, &mut is_used, new);
    found.into_iter().zip(new).map(|(it, value)| it.unwrap_or(Source::New(value))).collect()
}

/// Lets new values without a source replace unused old items. Between two kept items, the first of these values replaces
/// the first unused old item, the second one the second, and so on.
fn pair<'v>(found: &mut [Option<Source<'v>>], is_used: &mut [bool], new: &'v [NewValue]) {
    let mut from = 0;
    for to in 0..found.len() {
        match &found[to] {
            Some(source) => from = source.fixed().map_or(from, |it| it + 1),
            None => {
                let next = found[to..].iter().find_map(|it| it.as_ref().and_then(Source::fixed));
                let free = (from..next.unwrap_or(is_used.len())).find(|it| !is_used[*it]);
                let Some(free) = free else { continue };
                found[to] = Some(Source::Replaced(free, &new[to]));
                is_used[free] = true;
                from = free + 1;
            }
        }
    }
}

/// A block list whose items are changed.
pub(super) struct Block<'a> {
    sheet: &'a Sheet<'a>,
    list: View<'a>,
    items: Vec<View<'a>>,
}

impl<'a> Block<'a> {
    pub(super) fn new(sheet: &'a Sheet<'a>, list: View<'a>) -> Self {
        Self { sheet, list, items: list.items().collect() }
    }

    /// If an item moves, the comments directly above it move, too, as do the comments directly below it that are indented
    /// deeper. If an item is removed, the comments on lines of their own stay.
    fn change(&self, sources: &[Source<'_>]) -> Result<Vec<Splice>, EditError> {
        let Some(first) = sources.iter().find_map(Source::fixed) else {
            return Err(EditError::new(LAYOUT, self.list.span().start, "no item stays"));
        };
        let mut splices = self.removals(sources)?;
        let mut above = None;
        for source in sources {
            if let Some(nth) = source.fixed() {
                if let (Source::Replaced(_, value), Some(dash)) = (source, self.items[nth].lead()) {
                    splices.extend(replace::item(self.sheet, self.items[nth], dash, value)?);
                }
                above = Some(nth);
                continue;
            }
            let at = above.map_or_else(|| Ok(self.lines(first)?.start), |nth| self.below(nth))?;
            let text = match source {
                Source::Moved(nth) => self.sheet.text()[self.lines(*nth)?].to_owned(),
                Source::New(value) => {
                    list::item_lines(self.sheet, self.items[above.unwrap_or(first)], at, value)?
                }
                Source::Kept(_) | Source::Replaced(..) => continue,
            };
            splices.push(Splice { range: at..at, text });
        }
        Ok(splices)
    }

    /// The splices that delete the removed items and, at their old positions, the moved items.
    fn removals(&self, sources: &[Source<'_>]) -> Result<Vec<Splice>, EditError> {
        let mut splices = Vec::new();
        for (nth, item) in self.items.iter().enumerate() {
            if sources.iter().any(|it| it.fixed() == Some(nth)) {
                continue;
            }
            let range = if sources.contains(&Source::Moved(nth)) {
                self.lines(nth)?
            } else {
                let before = nth.checked_sub(1).and_then(|it| Some((self.items[it], self.items[it].lead()?)));
                remove::lines(self.sheet, own_dash(self.sheet, *item)?..item_end(*item), before)
            };
            splices.push(Splice { range, text: String::new() });
        }
        Ok(splices)
    }

    /// The position at which an item is inserted below the item with the index `nth`.
    fn below(&self, nth: usize) -> Result<usize, EditError> {
        let is_last = nth + 1 == self.items.len();
        if is_last { Ok(list::below_last(self.sheet, self.items[nth])) } else { Ok(self.lines(nth)?.end) }
    }

    /// The lines of an item with its comments.
    pub(super) fn lines(&self, nth: usize) -> Result<Range<usize>, EditError> {
        let lines = self.sheet.lines;
        let own = lines.start(own_dash(self.sheet, self.items[nth])?);
        let floor = match nth.checked_sub(1) {
            Some(before) => self.end(before),
            None => self.list.lead().map_or(own, |it| lines.end(it)),
        };
        Ok(lines.with_comments_above(own, floor)..self.end(nth))
    }

    fn end(&self, nth: usize) -> usize {
        let lines = self.sheet.lines;
        let item = self.items[nth];
        let column = lines.column(item.lead().unwrap_or(item.span().start));
        lines.skip_deeper_comments(lines.end(item_end(item)), column)
    }
}

/// The position of an item's dash. It is an error if a character other than a space precedes the dash on its line.
pub(super) fn own_dash(sheet: &Sheet<'_>, item: View<'_>) -> Result<usize, EditError> {
    let dash = item.lead().unwrap_or(item.outer_span().start);
    let error = || EditError::new(LAYOUT, dash, "a character other than a space precedes the dash");
    sheet.lines.is_first_on_line(dash).then_some(dash).ok_or_else(error)
}
