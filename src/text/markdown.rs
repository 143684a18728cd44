//! Reads the structure of a Markdown body: headings, sections, list items and task boxes, with byte ranges.
//!
//! pulldown-cmark parses bodies as CommonMark with GFM tables and task lists. This module does not depend on plans, and
//! writes no Markdown except headings: other code edits the source of a body at these byte ranges.

mod destinations;
mod fast_path;
mod masked;

use std::ops::Range;

pub use destinations::destinations;
pub use masked::masked;
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

/// A top-level heading, not in a quotation or list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// The source between the marks, trimmed: emphasis and code marks stay as written.
    pub text: String,
    /// The whole heading with its marks.
    pub span: Range<usize>,
}

/// An item of a top-level list, or of a list directly below such an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// From the list mark to the end of the item with its children.
    pub span: Range<usize>,
    /// Whether it is below another item.
    pub is_nested: bool,
    /// Where `text` begins.
    pub at: usize,
    /// The source of the item's first paragraph after the list mark and task box; it may continue over several lines.
    pub text: String,
    /// Whether the item's task box is ticked; `None` if the item has no task box.
    pub ticked: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskBox {
    pub at: usize,
    pub ticked: bool,
}

/// The structure of a body. All vectors are in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    pub headings: Vec<Heading>,
    pub items: Vec<Item>,
    pub tasks: Vec<TaskBox>,
    /// The plain text of the first paragraph after the first heading of level 1. If there is no such heading, that of the
    /// first paragraph of the body.
    pub description: Option<String>,
    /// Fenced and indented code; its lines are text, never structure.
    pub code: Vec<Range<usize>>,
    len: usize,
}

/// The line of a heading with this text. If the last word of the text consists of `#`, as in `C #`, Markdown would take it
/// for closing marks. Then closing marks are added, so that the word stays in the text.
pub fn heading(level: usize, text: &str) -> String {
    let last = text.trim_end().rsplit([' ', '\t']).next().unwrap_or_default();
    let is_marks = !last.is_empty() && last.bytes().all(|it| it == b'#');
    format!("{} {text}{}", "#".repeat(level), if is_marks { " #" } else { "" })
}

pub fn outline(body: &str) -> Outline {
    fast_path::outline(body, Parts::All).unwrap_or_else(|| parsed(body))
}

/// Like [`outline`], without items and description.
pub fn sections(body: &str) -> Outline {
    fast_path::outline(body, Parts::Sections).unwrap_or_else(|| {
        let all = parsed(body);
        Outline { items: Vec::new(), description: None, ..all }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    All,
    Sections,
}

/// Like [`outline`], but always uses the parser.
fn parsed(body: &str) -> Outline {
    let mut builder = Builder::new(body);
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for (event, span) in Parser::new_ext(body, options).into_offset_iter() {
        builder.take(&event, span);
    }
    builder.outline
}

impl Outline {
    pub fn title(&self) -> Option<&str> {
        self.headings.iter().find(|it| it.level == 1).map(|it| it.text.as_str())
    }

    /// Returns the range after the first heading of level 2 or 3 that `is_wanted` accepts, up to the next heading of
    /// the same or a higher level.
    pub fn section(&self, is_wanted: impl Fn(&str) -> bool) -> Option<Range<usize>> {
        let found = self.headings.iter().position(|it| matches!(it.level, 2 | 3) && is_wanted(&it.text))?;
        let heading = &self.headings[found];
        let end = self.headings[found + 1..].iter().find(|it| it.level <= heading.level);
        Some(heading.span.end..end.map_or(self.len, |it| it.span.start))
    }

    /// Counts the ticked task boxes in a range, and all task boxes in it.
    pub fn tasks_in(&self, range: &Range<usize>) -> (usize, usize) {
        let inside = self.tasks.iter().filter(|it| range.contains(&it.at));
        inside.fold((0, 0), |(done, all), it| (done + usize::from(it.ticked), all + 1))
    }

    pub fn is_code(&self, at: usize) -> bool {
        let next = self.code.partition_point(|it| it.end <= at);
        self.code.get(next).is_some_and(|it| it.contains(&at))
    }
}

#[derive(Default)]
struct Builder<'a> {
    body: &'a str,
    outline: Outline,
    /// The number of open lists, quotations, tables and HTML blocks around the current event. Only headings at depth 0 are
    /// included in the outline.
    depth: usize,
    heading: Option<(u8, Range<usize>, Option<Range<usize>>)>,
    paragraph: Option<String>,
    /// The open items: their indexes in the outline, if they are included there.
    open: Vec<Option<usize>>,
    /// The item whose first paragraph is being read, and the end of that paragraph so far.
    beginning: Option<(usize, usize)>,
}

impl<'a> Builder<'a> {
    fn new(body: &'a str) -> Self {
        Self { body, outline: Outline { len: body.len(), ..Outline::default() }, ..Self::default() }
    }

    fn take(&mut self, event: &Event<'_>, span: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, span),
            Event::End(tag) => self.end(*tag),
            Event::TaskListMarker(ticked) => self.task(span.start, *ticked),
            Event::Text(text) | Event::Code(text) => self.inline(text, span),
            Event::SoftBreak | Event::HardBreak => self.inline(" ", span),
            _ => self.inline("", span),
        }
    }

    fn start(&mut self, tag: &Tag<'_>, span: Range<usize>) {
        let is_inline = matches!(tag, Tag::Paragraph | Tag::Emphasis | Tag::Strong | Tag::Strikethrough)
            || matches!(tag, Tag::Link { .. } | Tag::Image { .. });
        if !is_inline {
            self.end_beginning();
        }
        match tag {
            Tag::Heading { level, .. } if self.depth == 0 => {
                self.heading = Some((*level as u8, span, None));
            }
            Tag::Paragraph if self.depth == 0 && self.wants_description() => {
                self.paragraph = Some(String::new());
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.outline.code.push(span);
            }
            Tag::List(_) | Tag::BlockQuote(_) | Tag::Table(_) | Tag::HtmlBlock => self.depth += 1,
            Tag::Item => self.start_item(span),
            Tag::Paragraph if self.beginning.is_some() => {}
            _ => self.inline("", span),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if matches!(tag, TagEnd::Paragraph | TagEnd::Item) {
            self.end_beginning();
        }
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Paragraph => {
                let text = self.paragraph.take().map(|it| it.trim().to_owned());
                self.outline.description =
                    self.outline.description.take().or(text.filter(|it| !it.is_empty()));
            }
            TagEnd::List(_) | TagEnd::BlockQuote(_) | TagEnd::Table | TagEnd::HtmlBlock => {
                self.depth = self.depth.saturating_sub(1);
            }
            TagEnd::Item => drop(self.open.pop()),
            _ => {}
        }
    }

    /// Items of lists in block quotes, and items below two others, are not included in the outline.
    fn start_item(&mut self, span: Range<usize>) {
        let is_kept = self.open.len() < 2 && self.depth == self.open.len() + 1;
        let nth = is_kept.then_some(self.outline.items.len());
        self.beginning = nth.map(|it| (it, 0));
        self.open.push(nth);
        if is_kept {
            let is_nested = self.depth > 1;
            self.outline.items.push(item(self.body, span, is_nested));
        }
    }

    fn end_heading(&mut self) {
        let Some((level, span, inner)) = self.heading.take() else { return };
        let text = inner.map_or("", |it| &self.body[it]).trim().to_owned();
        if level == 1 && self.outline.title().is_none() {
            self.outline.description = None;
        }
        self.outline.headings.push(Heading { level, text, span });
    }

    fn wants_description(&self) -> bool {
        self.outline.description.is_none()
    }

    fn inline(&mut self, text: &str, span: Range<usize>) {
        if let Some((_, _, inner)) = &mut self.heading {
            *inner = Some(inner.as_ref().map_or(span.clone(), |it| it.start..it.end.max(span.end)));
        }
        if let Some(paragraph) = &mut self.paragraph {
            paragraph.push_str(text);
        }
        if let Some((_, end)) = &mut self.beginning {
            *end = span.end.max(*end);
        }
    }

    /// Extends the item's text to the end of its first paragraph.
    fn end_beginning(&mut self) {
        let Some((nth, end)) = self.beginning.take() else { return };
        let item = &mut self.outline.items[nth];
        if item.at + item.text.len() < end {
            item.text = self.body[item.at..end].trim_end().to_owned();
        }
    }

    fn task(&mut self, at: usize, ticked: bool) {
        self.outline.tasks.push(TaskBox { at, ticked });
        let Some(item) = self.open.last().copied().flatten().map(|it| &mut self.outline.items[it]) else {
            return;
        };
        if item.ticked.is_none() {
            item.ticked = Some(ticked);
            let text = item.text.get(3..).unwrap_or_default().trim_start().to_owned();
            item.at += item.text.len() - text.len();
            item.text = text;
        }
    }
}

/// Makes an item from the parser's span, which may begin with the blanks before the list mark.
fn item(body: &str, span: Range<usize>, is_nested: bool) -> Item {
    let source = &body[span.clone()];
    let start = span.end - source.trim_start_matches([' ', '\t']).len();
    let line = body[start..span.end].lines().next().unwrap_or_default();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let behind = line.get(digits + 1..).unwrap_or_default();
    let at = start + line.len() - behind.trim_start().len();
    Item { span: start..span.end, is_nested, at, text: behind.trim().to_owned(), ticked: None }
}

/// Removes fenced code, code spans, comments, HTML and URLs from a text.
///
/// A `|` is put in place of code and of URLs. A code span stays if `name` returns a name for its content. If `name` returns
/// a name for the target of a link, this name replaces the link.
pub fn prose(text: &str, name: impl Fn(&str) -> Option<String>) -> String {
    // Fenced code, code spans, HTML and links cannot occur without one of these characters.
    if !text.contains(['`', '~', '<', '[']) {
        return without_addresses(text);
    }
    let mut cuts: Vec<(Range<usize>, String)> = Vec::new();
    for (event, span) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let said = match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Some("|".to_owned()),
            Event::Code(code) => name(&code).is_none().then(|| "|".to_owned()),
            Event::Html(_) | Event::InlineHtml(_) => Some(String::new()),
            Event::Start(Tag::Link { dest_url, link_type, .. }) => match link_type {
                LinkType::Autolink => Some("|".to_owned()),
                _ => name(&dest_url),
            },
            _ => None,
        };
        let is_inside = cuts.last().is_some_and(|(cut, _)| span.start < cut.end);
        cuts.extend(said.filter(|_| !is_inside).map(|it| (span, it)));
    }
    let mut said = String::new();
    let mut from = 0;
    for (span, it) in cuts {
        said.push_str(&text[from..span.start]);
        said.push_str(&it);
        from = span.end;
    }
    said.push_str(&text[from..]);
    without_addresses(&said)
}

fn without_addresses(text: &str) -> String {
    let mut said = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let start = rest[..at].trim_end_matches(is_scheme).len();
        let is_end = |c: char| c.is_whitespace() || matches!(c, ')' | '>' | '<' | '"');
        let end = rest[at..].find(is_end).map_or(rest.len(), |it| at + it);
        said.push_str(&rest[..start]);
        said.push('|');
        rest = &rest[end..];
    }
    said.push_str(rest);
    said
}

/// Returns the inline links of a text with their targets, in the order of the text. Bare URLs are not included.
pub fn links(text: &str) -> Vec<(Range<usize>, String)> {
    if !text.contains("](") {
        return Vec::new();
    }
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let link = |(event, span): (Event<'_>, Range<usize>)| match event {
        Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }) => {
            Some((span, dest_url.into_string()))
        }
        _ => None,
    };
    events.filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_keeps_its_marks_and_loses_the_closing_ones() {
        assert_eq!(outline("# Use `a` in *b* ##\n").title(), Some("Use `a` in *b*"));
        assert_eq!(outline("Title\n=====\n").title(), Some("Title"));
        assert_eq!(outline("> # quoted\n\n## two\n").title(), None);
        assert_eq!(outline("```\n# code\n```\n# real\n").title(), Some("real"));
        assert_eq!(outline("# \n").title(), Some(""));
    }

    #[test]
    fn the_description_is_the_first_paragraph_below_the_title() {
        let text = "intro\n\n# T\n\nfirst *one*\nsecond `x`\n\nthird\n";
        assert_eq!(outline(text).description.as_deref(), Some("first one second x"));
        assert_eq!(outline("plain\n\nmore\n").description.as_deref(), Some("plain"));
        assert_eq!(outline("# T\n- item\n").description, None);
    }

    #[test]
    fn a_section_ends_at_a_heading_of_its_level_or_above() {
        let text = "# T\n## Tasks\n- [x] a\n### Sub\n- [ ] b\n## Next\n- [x] c\n";
        let outline = outline(text);
        let tasks = outline.section(|it| it == "Tasks").expect("there is such a section");
        assert_eq!(&text[tasks.clone()], "- [x] a\n### Sub\n- [ ] b\n");
        assert_eq!(outline.tasks_in(&tasks), (1, 2));
        assert_eq!(outline.section(|it| it == "None"), None);
    }

    #[test]
    fn items_are_read_by_their_first_paragraph() {
        let text = "- step-1: Create (depends: step-0,\n  *more*\n  - no\n\n  nor this\n- [x] two\r\n  `2`\r\n\r\n  no\n\n1. three\n   > no\n";
        let texts: Vec<_> = outline(text).items.into_iter().map(|it| (it.text, it.ticked)).collect();
        assert_eq!(
            texts,
            [
                ("step-1: Create (depends: step-0,\n  *more*".to_owned(), None),
                ("no".to_owned(), None),
                ("two\r\n  `2`".to_owned(), Some(true)),
                ("three".to_owned(), None)
            ]
        );
    }

    #[test]
    fn indented_items_and_items_of_items_begin_at_their_marks() {
        let text = "  - one\n  - [ ]  two\n    - three\n      - four\n> - quoted\n";
        let items: Vec<_> = outline(text).items;
        let found: Vec<_> =
            items.iter().map(|it| (it.text.as_str(), it.is_nested, &text[it.at..it.at + 3])).collect();
        assert_eq!(found, [("one", false, "one"), ("two", false, "two"), ("three", true, "thr")]);
        assert!(items.iter().all(|it| text[it.span.start..].starts_with("- ")));
    }

    #[test]
    fn prose_leaves_out_code_comments_and_addresses() {
        let name = |it: &str| it.trim_end_matches(".md").strip_prefix("step-").map(|n| format!("step-{n}"));
        let said = prose("`step-1` `cp a` <!-- x\ny --> http://x/y, <http://z> [z](step-2.md)\n", name);
        assert_eq!(said, "`step-1` |  | | step-2\n");
        assert_eq!(prose("(see http://x/y) z", name), "(see |) z");
        assert_eq!(prose("a\n\n```\ncode\n```\n\nb", name), "a\n\n|\n\nb");
    }

    #[test]
    fn inline_links_are_found_outside_code() {
        let text = "See [one](step-1.md) and `[x](y)`, <http://z>.\n\n    [no](a)\n";
        assert_eq!(links(text), [(4..20, "step-1.md".to_owned())]);
    }

    #[test]
    fn code_is_not_structure() {
        let text = "a\n\n```\n<<<<<<< x\n```\nb\n";
        let outline = outline(text);
        assert!(outline.is_code(text.find("<<<").expect("it is there")));
        assert!(!outline.is_code(0));
    }
}
