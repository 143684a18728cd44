//! What planwatch reads of a Markdown body: headings, sections, list items and task boxes, with byte ranges.
//!
//! CommonMark with GFM tables and task lists, by pulldown-cmark. Nothing here knows what a plan is, and nothing
//! is ever rendered back: edits of bodies are made on the source by their byte ranges.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A heading that stands at the top level, not in a quotation or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// The source between the marks, trimmed: emphasis and code marks stay as written.
    pub text: String,
    /// The whole heading with its marks.
    pub span: Range<usize>,
}

/// An item of a top-level list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// From the list mark to the end of the item with its children.
    pub span: Range<usize>,
    /// The source of the item's first line behind the list mark and a task box.
    pub text: String,
    /// The item's task box, if it has one: whether it is ticked.
    pub ticked: Option<bool>,
}

/// A task box anywhere in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskBox {
    pub at: usize,
    pub ticked: bool,
}

/// What one pass over a body finds, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    pub headings: Vec<Heading>,
    pub items: Vec<Item>,
    pub tasks: Vec<TaskBox>,
    /// The first paragraph behind the first heading of level 1 (of the body, if it has none), as plain text.
    pub description: Option<String>,
    /// Fenced and indented code; its lines are text, never structure.
    pub code: Vec<Range<usize>>,
    len: usize,
}

/// Reads the structure of a body in one pass.
pub fn outline(body: &str) -> Outline {
    let mut builder =
        Builder { body, outline: Outline { len: body.len(), ..Outline::default() }, ..Builder::new(body) };
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for (event, span) in Parser::new_ext(body, options).into_offset_iter() {
        builder.take(&event, span);
    }
    builder.outline
}

impl Outline {
    /// Returns the text of the first heading of level 1.
    pub fn title(&self) -> Option<&str> {
        self.headings.iter().find(|it| it.level == 1).map(|it| it.text.as_str())
    }

    /// Returns the range behind the first heading of level 2 or 3 that `is_wanted` accepts, up to the next heading
    /// of the same or a higher level.
    pub fn section(&self, is_wanted: impl Fn(&str) -> bool) -> Option<Range<usize>> {
        let found = self.headings.iter().position(|it| matches!(it.level, 2 | 3) && is_wanted(&it.text))?;
        let heading = &self.headings[found];
        let end = self.headings[found + 1..].iter().find(|it| it.level <= heading.level);
        Some(heading.span.end..end.map_or(self.len, |it| it.span.start))
    }

    /// Counts the task boxes in a range: ticked ones, and all.
    pub fn tasks_in(&self, range: &Range<usize>) -> (usize, usize) {
        let inside = self.tasks.iter().filter(|it| range.contains(&it.at));
        inside.fold((0, 0), |(done, all), it| (done + usize::from(it.ticked), all + 1))
    }

    /// Returns whether a byte lies in code.
    pub fn is_code(&self, at: usize) -> bool {
        let next = self.code.partition_point(|it| it.end <= at);
        self.code.get(next).is_some_and(|it| it.contains(&at))
    }
}

struct Builder<'a> {
    body: &'a str,
    outline: Outline,
    /// Open blocks around the present event; a heading counts at depth 0 only.
    depth: usize,
    heading: Option<(u8, Range<usize>, Option<Range<usize>>)>,
    paragraph: Option<String>,
    item: Option<Item>,
}

impl<'a> Builder<'a> {
    fn new(body: &'a str) -> Self {
        Self { body, outline: Outline::default(), depth: 0, heading: None, paragraph: None, item: None }
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
        match tag {
            Tag::Heading { level, .. } if self.depth == 0 => {
                self.heading = Some((level_of(*level), span, None));
            }
            Tag::Paragraph if self.depth == 0 && self.wants_description() => {
                self.paragraph = Some(String::new());
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.outline.code.push(span);
            }
            Tag::List(_) | Tag::BlockQuote(_) | Tag::Table(_) | Tag::HtmlBlock => self.depth += 1,
            Tag::Item if self.depth == 1 => {
                self.item =
                    Some(Item { text: first_line_of_item(&self.body[span.clone()]), span, ticked: None });
            }
            Tag::Item => {}
            _ => self.inline("", span),
        }
    }

    fn end(&mut self, tag: TagEnd) {
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
            TagEnd::Item if self.depth == 1 => self.outline.items.extend(self.item.take()),
            _ => {}
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
    }

    fn task(&mut self, at: usize, ticked: bool) {
        self.outline.tasks.push(TaskBox { at, ticked });
        let Some(item) = &mut self.item else { return };
        if item.ticked.is_none() && self.depth == 1 {
            item.ticked = Some(ticked);
            item.text = item.text.get(3..).unwrap_or_default().trim_start().to_owned();
        }
    }
}

/// Returns the first line of an item's source behind its list mark.
fn first_line_of_item(source: &str) -> String {
    let line = source.lines().next().unwrap_or_default();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.get(digits + 1..).unwrap_or_default().trim().to_owned()
}

fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
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
    fn items_are_read_by_their_first_line() {
        let text = "- step-1: Create (depends: step-0)\n  more\n- [x] two\n1. three\n";
        let texts: Vec<_> = outline(text).items.into_iter().map(|it| (it.text, it.ticked)).collect();
        assert_eq!(
            texts,
            [
                ("step-1: Create (depends: step-0)".to_owned(), None),
                ("two".to_owned(), Some(true)),
                ("three".to_owned(), None)
            ]
        );
    }

    #[test]
    fn code_is_not_structure() {
        let text = "a\n\n```\n<<<<<<< x\n```\nb\n";
        let outline = outline(text);
        assert!(outline.is_code(text.find("<<<").expect("it is there")));
        assert!(!outline.is_code(0));
    }
}
