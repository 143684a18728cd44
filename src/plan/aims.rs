//! The goals and success criteria in the front matter of a plan, and the boxes that some of them have.

use crate::text::front_matter;
use crate::text::line_index;
use crate::text::yaml::{self, View};

/// A goal or a success criterion of the front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aim {
    /// Without its box.
    pub text: String,
    pub mark: Option<Mark>,
}

/// The box before an aim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub ticked: bool,
    /// The number (from 1) and text of the box's line; `None` if the line has several boxes, or the item is not a
    /// quoted text.
    pub place: Option<(usize, String)>,
}

/// The lists of a plan's front matter whose items may have boxes.
const LISTS: [&str; 2] = ["goals", "success_criteria"];

/// The items of a list in the front matter of a plan's file. An item such as `"[x] text"` has a box.
pub fn aims(file: &[u8], list: &str) -> Vec<Aim> {
    let Some(matter) = Matter::of(file) else { return Vec::new() };
    let all = boxes(file);
    let line_of = |at: usize| line_index::place(file, at).line;
    let is_alone = |line: u32| all.iter().filter(|it| line_of(**it) == line).count() == 1;
    let aim = |(text, at): (String, Option<usize>)| {
        let Some((ticked, rest)) = box_of(&text) else { return Aim { text, mark: None } };
        let line = at.map(line_of).filter(|it| is_alone(*it));
        let place = line.and_then(|it| Some((it as usize, line_index::line_text(file, it)?)));
        Aim { text: rest.to_owned(), mark: Some(Mark { ticked, place }) }
    };
    matter.boxes(list).into_iter().map(aim).collect()
}

/// The byte offset of each box's `[` in the file. Boxes in items that are not quoted are left out.
pub(crate) fn boxes(file: &[u8]) -> Vec<usize> {
    let matter = Matter::of(file);
    let lists = matter.iter().flat_map(|it| LISTS.iter().flat_map(|list| it.boxes(list)));
    lists.filter_map(|it| it.1).collect()
}

/// Splits a text after its leading box. Returns whether the box is ticked, and the rest. `None`: there is no box.
fn box_of(text: &str) -> Option<(bool, &str)> {
    let open = text.strip_prefix("[ ] ").map(|it| (false, it));
    open.or_else(|| text.strip_prefix("[x] ").or_else(|| text.strip_prefix("[X] ")).map(|it| (true, it)))
}

/// The front matter of a file, and the byte offset at which its YAML begins.
struct Matter {
    tree: yaml::Tree,
    begin: usize,
}

impl Matter {
    fn of(file: &[u8]) -> Option<Self> {
        let text = front_matter::split(file).yaml().map(std::str::from_utf8)?.ok()?;
        let begin = text.as_ptr() as usize - file.as_ptr() as usize;
        Some(Self { tree: yaml::parse(text).ok()?, begin })
    }

    /// The texts of a list, each with the byte offset of its box in the file, if [`Self::bracket`] finds one.
    fn boxes(&self, list: &str) -> Vec<(String, Option<usize>)> {
        let Some((_, items)) = self.tree.root().find_entry(list) else { return Vec::new() };
        let texts = items.items().filter_map(|it| Some((it.text()?.to_owned(), self.bracket(it))));
        texts.collect()
    }

    /// The byte offset of an item's `[` in the file. `None`: the item has no box, or it is not a quoted text but, for
    /// example, a block scalar or an alias.
    fn bracket(&self, item: View<'_>) -> Option<usize> {
        box_of(item.text()?)?;
        let span = item.span();
        let quoted = self.tree.source().get(span.clone())?;
        let is_plain = quoted.starts_with("\"[") || quoted.starts_with("'[");
        (is_plain && !item.is_alias()).then_some(self.begin + span.start + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_item_may_have_a_box_which_has_a_place_if_it_is_alone_in_its_line() {
        let file = "---\ngoals:\n  - \"[ ] fast\" # why\n  - '[x] small'\n  - plain\n  - |-\n    [ ] block\nsuccess_criteria: [\"[ ] a\", \"[X] b\"]\n---\n";
        let found = |list: &str| {
            let mark = |it: Aim| (it.text, it.mark.map(|it| (it.ticked, it.place)));
            aims(file.as_bytes(), list).into_iter().map(mark).collect::<Vec<_>>()
        };
        let named = |text: &str, mark| (text.to_owned(), mark);
        let at = |line: usize, text: &str| Some((line, text.to_owned()));
        assert_eq!(
            found("goals"),
            [
                named("fast", Some((false, at(3, "  - \"[ ] fast\" # why")))),
                named("small", Some((true, at(4, "  - '[x] small'")))),
                named("plain", None),
                named("block", Some((false, None))),
            ]
        );
        let alone = [named("a", Some((false, None))), named("b", Some((true, None)))];
        assert_eq!(found("success_criteria"), alone);
        assert_eq!(aims(b"---\ngoals: text\n---\n", "goals"), []);
        assert_eq!(aims(b"no front matter", "goals"), []);
    }
}
