//! Copies items between the lists of two files.

use super::items::Block;
use super::list::item_end;
use super::page::Page;
use super::render::spaces;
use super::{Change, EditError, NewValue, edit};
use crate::text::yaml::{self, Kind, Style, View};

/// Appends an item to the list of `key` in `file`: the item `nth` of the list of `key` in the file `of`. If the item is on
/// lines of its own in both files, these lines are copied with their comments. Otherwise comments may be lost. If there is
/// no such item, nothing changes.
///
/// # Errors
///
/// As for [`edit`].
pub fn append_from(
    file: &[u8],
    key: &str,
    (of, nth): (&[u8], usize),
    order: &[&str],
) -> Result<Vec<u8>, EditError> {
    let source = Page::open(of.to_vec())?;
    let list = source.root().and_then(|it| it.find_entry(key)).map(|it| it.1);
    let Some(item) = list.and_then(|it| it.items().nth(nth)) else { return Ok(file.to_vec()) };
    let change = Change::Append { key: key.to_owned(), item: NewValue::as_written(item) };
    let appended = edit(file, &[change], order)?;
    Ok(with_lines(&appended, key, &source, nth).unwrap_or(appended))
}

/// Replaces the last item of a list by the lines of an item with the same value. `None` if one of the two items does not
/// have lines of its own, or if the result would have another meaning.
fn with_lines(file: &[u8], key: &str, source: &Page, nth: usize) -> Option<Vec<u8>> {
    let (from, _) = source.sheet()?;
    let from_list = block_list(from.root(), key)?;
    let text = Block::new(&from, from_list).lines(nth).ok().map(|it| &from.text()[it])?;
    let from_column = from.lines.column(from_list.items().nth(nth)?.lead()?);
    let page = Page::open(file.to_vec()).ok()?;
    let (to, start) = page.sheet()?;
    let to_list = block_list(to.root(), key)?;
    let last = to_list.items().last()?;
    let dash = last.lead().filter(|it| to.lines.is_first_on_line(*it))?;
    let eol = to.lines.eol_of(dash);
    let mut lines = String::new();
    for line in text.lines() {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let own = (blanks + to.lines.column(dash)).saturating_sub(from_column);
        let indent = if line.trim().is_empty() { 0 } else { own };
        lines.extend([&spaces(indent), &line[blanks..], eol]);
    }
    let range = start + to.lines.start(dash)..start + to.lines.end(item_end(last));
    let copied = [&file[..range.start], lines.as_bytes(), &file[range.end..]].concat();
    let after = Page::open(copied).ok()?;
    let is_same = yaml::same(after.root()?, to.root());
    is_same.then(|| after.into_bytes())
}

fn block_list<'a>(root: View<'a>, key: &str) -> Option<View<'a>> {
    let (_, list) = root.find_entry(key)?;
    (list.kind() == Kind::List && list.style() == Style::Block).then_some(list)
}
