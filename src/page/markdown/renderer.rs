//! The first protection against HTML of the author: raw HTML becomes text, and every element that has an address, an id
//! or a label is made here.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::ops::Range;

use maud::{Markup, html};
use pulldown_cmark::{
    Alignment, BlockQuoteKind, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Tag, TagEnd,
};

use super::{Form, Tasks, line_hash};
use crate::page::address::{self, Target};
use crate::page::text::{one_line, visible};

type Placed<'a> = (Event<'a>, Range<usize>);

pub(super) struct Renderer<'a> {
    body: &'a str,
    form: Form<'a>,
    input: Vec<Placed<'a>>,
    output: Vec<Event<'a>>,
    /// The addresses that the renderer made. The sanitizer accepts them.
    made: HashSet<String>,
    /// For each open link, whether it became an element.
    links: Vec<bool>,
    /// The alignment of the columns of the open table, the column of the next cell, and whether that cell is in the
    /// head.
    table: (Vec<Alignment>, usize, bool),
    in_code: bool,
    footnotes: HashMap<String, usize>,
    headings: HashSet<String>,
    /// The number of line breaks counted so far, and the position up to which they were counted.
    line: (usize, usize),
}

impl<'a> Renderer<'a> {
    pub(super) fn new(body: &'a str, form: Form<'a>, input: Vec<Placed<'a>>) -> Self {
        Self {
            body,
            form,
            input,
            output: Vec::new(),
            made: HashSet::new(),
            links: Vec::new(),
            table: (Vec::new(), 0, false),
            in_code: false,
            footnotes: HashMap::new(),
            headings: HashSet::new(),
            line: (0, 0),
        }
    }

    /// Returns the events from which the HTML is made.
    pub(super) fn events(&mut self) -> Vec<Event<'a>> {
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        while let Some((event, span)) = input.get(at) {
            at = match event {
                Event::Start(Tag::Image { dest_url, title, .. }) => {
                    let (alt, end) = text_until(&input, at, |it| matches!(it, TagEnd::Image));
                    self.image(dest_url, title, &alt);
                    end
                }
                Event::Start(Tag::Heading { level, .. }) => {
                    let (text, _) = text_until(&input, at, |it| matches!(it, TagEnd::Heading(_)));
                    self.heading(*level, &text);
                    at
                }
                Event::TaskListMarker(ticked) => {
                    let (label, _) =
                        text_until(&input, at, |it| matches!(it, TagEnd::Paragraph | TagEnd::Item));
                    self.task(*ticked, span.start, &label);
                    at
                }
                event => {
                    self.event(event.clone());
                    at
                }
            } + 1;
        }
        std::mem::take(&mut self.output)
    }

    pub(super) fn addresses(self) -> HashSet<String> {
        self.made
    }

    fn event(&mut self, event: Event<'a>) {
        let event = match event {
            Event::Start(tag) => return self.start(tag),
            Event::End(tag) => return self.end(tag),
            // Raw HTML is text: `push_html` escapes it.
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Code(text) => Event::Code(shown(text)),
            Event::Text(text) if self.in_code => Event::Text(shown(text)),
            Event::FootnoteReference(name) => return self.footnote_reference(&name),
            other => other,
        };
        self.output.push(event);
    }

    fn start(&mut self, tag: Tag<'a>) {
        match tag {
            Tag::HtmlBlock => self.output.push(Event::Start(Tag::Paragraph)),
            Tag::Link { link_type, dest_url, title, .. } => self.link(link_type, &dest_url, &title),
            Tag::CodeBlock(kind) => {
                self.in_code = true;
                self.output.push(Event::Start(Tag::CodeBlock(language(kind))));
            }
            Tag::BlockQuote(kind) => self.quotation(kind),
            Tag::Table(alignments) => {
                let columns = vec![Alignment::None; alignments.len()];
                self.table = (alignments, 0, false);
                // A wide table can be scrolled, also with the keyboard.
                self.raw("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">");
                self.output.push(Event::Start(Tag::Table(columns)));
            }
            Tag::TableHead => {
                (self.table.1, self.table.2) = (0, true);
                self.output.push(Event::Start(Tag::TableHead));
            }
            Tag::TableRow => {
                self.table.1 = 0;
                self.output.push(Event::Start(Tag::TableRow));
            }
            Tag::TableCell => self.cell(),
            Tag::FootnoteDefinition(name) => {
                let number = self.footnote(&name);
                self.raw(&format!(
                    "<div class=\"footnote\" id=\"{0}fn.{number}\"><sup class=\"footnote-mark\">{number}</sup>",
                    self.form.id_prefix
                ));
            }
            other => self.output.push(Event::Start(other)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::HtmlBlock => self.output.push(Event::End(TagEnd::Paragraph)),
            TagEnd::Link => {
                if self.links.pop() == Some(true) {
                    self.raw("</a>");
                }
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.output.push(Event::End(TagEnd::CodeBlock));
            }
            TagEnd::BlockQuote(_) => self.raw("</blockquote>\n"),
            TagEnd::Heading(level) => {
                let end = format!("</h{}>\n", self.level(level));
                self.raw(&end);
            }
            TagEnd::TableHead => {
                self.table.2 = false;
                self.output.push(Event::End(TagEnd::TableHead));
            }
            TagEnd::TableCell => self.raw(if self.table.2 { "</th>" } else { "</td>" }),
            TagEnd::Table => {
                self.output.push(Event::End(TagEnd::Table));
                self.raw("</div>");
            }
            TagEnd::FootnoteDefinition => self.raw("</div>\n"),
            other => self.output.push(Event::End(other)),
        }
    }

    /// Adds HTML in which every element is complete.
    fn html(&mut self, markup: Markup) {
        self.output.push(Event::InlineHtml(markup.into_string().into()));
    }

    /// Adds a tag that was made here. The caller has escaped any text of the author in it.
    fn raw(&mut self, tag: &str) {
        self.output.push(Event::InlineHtml(tag.to_owned().into()));
    }

    fn level(&self, level: HeadingLevel) -> u8 {
        (level as u8 + self.form.top_heading.max(1) - 1).min(6)
    }

    /// Adds the start tag of a heading. The id is the prefix, followed by the id that the heading would have on GitHub.
    fn heading(&mut self, level: HeadingLevel, text: &str) {
        let base = anchor(text);
        let mut id = base.clone();
        let mut count = 0;
        while !self.headings.insert(id.clone()) {
            count += 1;
            id = format!("{base}-{count}");
        }
        let level = self.level(level);
        let tag = format!("<h{level} id=\"{}{id}\">", self.form.id_prefix);
        self.raw(&tag);
    }

    fn quotation(&mut self, kind: Option<BlockQuoteKind>) {
        let Some(kind) = kind else { return self.raw("<blockquote>\n") };
        let (class, title) = match kind {
            BlockQuoteKind::Note => ("note", "Note"),
            BlockQuoteKind::Tip => ("tip", "Tip"),
            BlockQuoteKind::Important => ("important", "Important"),
            BlockQuoteKind::Warning => ("warning", "Warning"),
            BlockQuoteKind::Caution => ("caution", "Caution"),
        };
        self.raw(&format!(
            "<blockquote class=\"alert alert-{class}\"><p class=\"alert-title\">{title}</p>\n"
        ));
    }

    fn cell(&mut self) {
        let name = if self.table.2 { "th" } else { "td" };
        let class = match self.table.0.get(self.table.1) {
            Some(Alignment::Left) => " class=\"left\"",
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::Right) => " class=\"right\"",
            _ => "",
        };
        self.table.1 += 1;
        self.raw(&format!("<{name}{class}>"));
    }

    fn footnote(&mut self, name: &str) -> usize {
        let next = self.footnotes.len() + 1;
        *self.footnotes.entry(name.to_owned()).or_insert(next)
    }

    fn footnote_reference(&mut self, name: &str) {
        let number = self.footnote(name);
        let address = format!("#{}fn.{number}", self.form.id_prefix);
        self.html(html! { sup.footnote-mark { a href=(address) { (number) } } });
        self.made.insert(address);
    }

    fn link(&mut self, link_type: LinkType, target: &str, title: &str) {
        let target =
            if link_type == LinkType::Email { format!("mailto:{target}") } else { target.to_owned() };
        let is_open = self.links.last() == Some(&true);
        let tag = if is_open { None } else { self.link_tag(&target, title) };
        self.links.push(tag.is_some());
        if let Some(tag) = tag {
            self.raw(&tag);
        }
    }

    /// The start tag of a link; `None` if there is nothing to link to.
    fn link_tag(&mut self, target: &str, title: &str) -> Option<String> {
        let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escaped(title)) };
        let address = match address::read("-", target) {
            Some(Target::Outside(address)) => {
                let rel = "rel=\"noopener noreferrer nofollow\" target=\"_blank\" class=\"outside\"";
                return Some(format!("<a href=\"{}\" {rel}{title}>", escaped(&address)));
            }
            Some(Target::Here(name)) => format!("#{}{name}", self.form.id_prefix),
            _ => self.form.addresses.link(target)?,
        };
        let tag = format!("<a href=\"{}\"{title}>", escaped(&address));
        self.made.insert(address);
        Some(tag)
    }

    fn image(&mut self, target: &str, title: &str, alt: &str) {
        if let Some(address) = self.form.addresses.image(target) {
            let title = Some(title).filter(|it| !it.is_empty());
            self.html(html! { img src=(address) alt=(alt) title=[title]; });
            self.made.insert(address);
            return;
        }
        let text = if alt.trim().is_empty() { "image" } else { alt };
        let is_open = self.links.last() == Some(&true);
        let tag = if is_open { None } else { self.link_tag(target, title) };
        let is_link = tag.is_some();
        if let Some(tag) = tag {
            self.raw(&tag);
        }
        self.output.push(Event::Text(text.to_owned().into()));
        if is_link {
            self.raw("</a>");
        }
    }

    fn task(&mut self, ticked: bool, at: usize, label: &str) {
        let label = if label.trim().is_empty() { "task".to_owned() } else { one_line(label) };
        let (line, hash) = match self.form.tasks {
            Tasks::Plain => (None, None),
            Tasks::Located { first_line } => {
                let line = self.line_of(at);
                let start = self.body[..at].rfind('\n').map_or(0, |it| it + 1);
                let end = self.body[at..].find('\n').map_or(self.body.len(), |it| at + it);
                (Some(first_line + line), Some(line_hash(&self.body[start..end])))
            }
        };
        self.html(html! {
            input.task type="checkbox" checked[ticked] disabled aria-label=(label) data-line=[line] data-hash=[hash];
            " "
        });
    }

    /// The number of line breaks before a position. Positions must be passed in ascending order.
    fn line_of(&mut self, at: usize) -> usize {
        let (lines, from) = self.line;
        let lines = lines + self.body[from..at].bytes().filter(|it| *it == b'\n').count();
        self.line = (lines, at);
        lines
    }
}

/// Returns the text of the events after `from`, and the index of the event at which it ends: the end that `is_end` accepts,
/// or the start of a nested list, quotation or code block.
fn text_until(input: &[Placed<'_>], from: usize, is_end: impl Fn(&TagEnd) -> bool) -> (String, usize) {
    let mut text = String::new();
    for (nth, (event, _)) in input.iter().enumerate().skip(from + 1) {
        match event {
            Event::End(tag) if is_end(tag) => return (text, nth),
            Event::Start(Tag::List(_) | Tag::BlockQuote(_) | Tag::CodeBlock(_)) => return (text, nth),
            Event::Text(it) | Event::Code(it) | Event::Html(it) | Event::InlineHtml(it) => text.push_str(it),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    (text, input.len())
}

/// The name of a heading as GitHub makes it: letters, digits, `-` and `_`.
fn anchor(text: &str) -> String {
    let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let name: String = text.trim().chars().flat_map(char::to_lowercase).filter(is_part).collect();
    name.replace(' ', "-")
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    write!(maud::Escaper::new(&mut out), "{text}").unwrap_or_default();
    out
}

fn shown(text: CowStr<'_>) -> CowStr<'_> {
    match visible(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(shown) => shown.into(),
    }
}

/// The language of a code block is the first word of its info string.
fn language(kind: CodeBlockKind<'_>) -> CodeBlockKind<'_> {
    match kind {
        CodeBlockKind::Fenced(info) => {
            let first = info.split([' ', '\t', ',', '{']).next().unwrap_or_default().to_owned();
            CodeBlockKind::Fenced(first.into())
        }
        CodeBlockKind::Indented => CodeBlockKind::Indented,
    }
}
