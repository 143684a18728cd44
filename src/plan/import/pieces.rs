//! Finds the parts of a document that become steps: labelled headings, items below headings, task boxes, or the items of an
//! ordered list.
//!
//! These forms are tried in this order, and the first one that the document has is used. The rest of the text becomes the
//! plan's text. `markdown.rs` first looks for a Steps list.

use std::collections::BTreeMap;
use std::ops::Range;

use super::label::{self, Label, Rank};
use crate::text::markdown::{Heading, Item, Outline};

/// A part of a body that becomes a step.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) span: Range<usize>,
    pub(super) from: From,
    pub(super) phase: Option<String>,
}

/// The heading or the item from which a piece is made, as an index in the outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    Heading(usize),
    Item(usize),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    pub(super) pieces: Vec<Piece>,
    /// Whether the author numbered the pieces. Numbers imply an order of the steps.
    pub(super) are_numbered: bool,
    /// Whether the pieces are items of a Steps list, which stays in the plan's text.
    pub(super) is_own_list: bool,
}

/// If a heading consists only of these words, its section contains steps.
const CONTAINERS: &str = "tasks task steps step implementation plan list todo todos checklist detailed the \
                          work items breakdown order sequence action actions approach next execution \
                          rollout of and proposed changes";

/// If a heading, or a line such as `Criteria:` above a list, contains one of these texts, the items below it are criteria
/// for the work and not steps.
const MEASURES: &str =
    "accept, criteria, success, definition of done, verif, deliverable, checklist before, dod";

pub(super) fn find(body: &str, outline: &Outline) -> Pieces {
    let of = Document { body, outline };
    let ways: [&dyn Fn() -> Pieces; 6] = [
        &|| of.labelled(Rank::Step),
        &|| of.below_phases(Rank::Phase),
        &|| of.below_phases(Rank::Bare),
        &|| of.items_of_containers(),
        &|| of.boxes(),
        &|| of.only_ordered_list(),
    ];
    ways.iter().map(|way| way()).find(|it| !it.pieces.is_empty()).unwrap_or_default()
}

/// The task boxes of a document, as indices of the outline's items. Nested boxes and criteria for the work are skipped.
pub(super) fn boxes(body: &str, outline: &Outline) -> Vec<usize> {
    let of = Document { body, outline };
    let all = outline.items.iter().enumerate().filter(|(_, it)| !it.is_nested && of.is_box(it));
    all.map(|it| it.0).collect()
}

/// The items without a task box in lists of which other items are pieces. They get the phase of these items. Nested items
/// are skipped.
pub(super) fn others_in_lists(body: &str, outline: &Outline, pieces: &[Piece]) -> Vec<Piece> {
    let of = Document { body, outline };
    let known: BTreeMap<From, &Piece> = pieces.iter().map(|it| (it.from, it)).collect();
    let of_list = |list: &[Piece]| {
        let Some(piece) = list.iter().find_map(|it| known.get(&it.from)) else { return Vec::new() };
        let others = list.iter().filter(|it| !known.contains_key(&it.from));
        others.map(|it| Piece { phase: piece.phase.clone(), ..it.clone() }).collect::<Vec<_>>()
    };
    let is_one_list = |a: &Piece, b: &Piece| {
        let between = body.get(a.span.end..b.span.start).unwrap_or_default();
        let is_ordered = |it: &Piece| of.starts_with_digit(it.span.start);
        between.trim().is_empty() && is_ordered(a) == is_ordered(b)
    };
    of.items(&(0..body.len()), |_| true).chunk_by(is_one_list).flat_map(of_list).collect()
}

/// All items of a document, with or without task boxes. Nested items are skipped.
pub(super) fn all_items(body: &str, outline: &Outline) -> Pieces {
    let pieces = Document { body, outline }.items(&(0..body.len()), |_| true);
    Pieces { pieces, are_numbered: false, is_own_list: false }
}

/// Whether a heading only announces steps, such as `Tasks` or `2. Next steps`. `Phase 2: Next` is the name of a phase.
pub(super) fn is_container(heading: &str) -> bool {
    let label = label::label(heading);
    if label.as_ref().is_some_and(|it| it.rank == Rank::Phase) {
        return false;
    }
    let text = label.map_or(heading, |it| it.rest).to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| CONTAINERS.split(' ').any(|it| it == word))
}

struct Document<'a> {
    body: &'a str,
    outline: &'a Outline,
}

impl Document<'_> {
    fn heading(&self, nth: usize) -> &Heading {
        &self.outline.headings[nth]
    }

    fn label(&self, nth: usize) -> Option<Label<'_>> {
        label::label(&self.outline.headings[nth].text)
    }

    fn section(&self, nth: usize) -> Range<usize> {
        let own = self.heading(nth);
        let next = self.outline.headings[nth + 1..].iter().find(|it| it.level <= own.level);
        own.span.start..next.map_or(self.body.len(), |it| it.span.start)
    }

    /// Returns the headings of a rank at the highest level that has two or more of them. If there is no such level, a
    /// single heading of the rank is returned: the one at the highest level except level 1.
    fn of_rank(&self, rank: Rank, within: Option<&[usize]>) -> Vec<usize> {
        let is_inside =
            |nth: usize| within.is_none_or(|all| all.iter().any(|it| *it != nth && self.contains(*it, nth)));
        let all = (0..self.outline.headings.len())
            .filter(|nth| self.label(*nth).is_some_and(|it| it.rank == rank) && is_inside(*nth));
        let all: Vec<_> = all.collect();
        let at = |level: u8| all.iter().copied().filter(move |it| self.heading(*it).level == level);
        let level = (1..=6).find(|it| at(*it).count() >= 2);
        let level = level.or_else(|| (1..=6).find(|it| *it > 1 && at(*it).count() == 1));
        level.map(|it| at(it).collect()).unwrap_or_default()
    }

    fn contains(&self, outer: usize, inner: usize) -> bool {
        self.section(outer).contains(&self.heading(inner).span.start)
    }

    /// The nearest heading whose section contains the position `at`. Headings that are not above `level`, headings of
    /// level 1 and containers ([`is_container`]) are skipped.
    fn phase_at(&self, at: usize, level: u8) -> Option<String> {
        let above = self.outline.headings.iter().enumerate().filter(|(_, it)| it.span.start < at);
        let around =
            above.filter(|(nth, it)| it.level < level && it.level > 1 && self.section(*nth).contains(&at));
        let mut named = around.filter(|(_, it)| !is_container(&it.text));
        named.next_back().map(|(_, it)| label::clean(&it.text)).filter(|it| !it.is_empty())
    }

    fn headings(&self, all: &[usize]) -> Pieces {
        let piece = |nth: &usize| Piece {
            span: self.section(*nth),
            from: From::Heading(*nth),
            phase: self.phase_at(self.heading(*nth).span.start, self.heading(*nth).level),
        };
        Pieces { pieces: all.iter().map(piece).collect(), are_numbered: true, is_own_list: false }
    }

    fn labelled(&self, rank: Rank) -> Pieces {
        self.headings(&self.of_rank(rank, None))
    }

    /// If phases have two or more numbered headings below them, these headings are the steps. Otherwise the task boxes
    /// below the headings of the rank are the steps, and a heading without task boxes is a step itself.
    ///
    /// A single heading of [`Rank::Bare`] gives no steps.
    fn below_phases(&self, rank: Rank) -> Pieces {
        let phases = self.of_rank(rank, None);
        let inner = self.of_rank(Rank::Bare, Some(&phases));
        if rank == Rank::Phase && inner.len() >= 2 {
            return self.headings(&inner);
        }
        if rank == Rank::Bare && phases.len() < 2 {
            return Pieces::default();
        }
        let mut pieces = Vec::new();
        let mut has_items = false;
        for nth in &phases {
            let section = self.section(*nth);
            let name = label::clean(&self.heading(*nth).text);
            let items = self.items(&section, |it| self.is_box(it));
            if items.is_empty() {
                let phase = self.phase_at(section.start, self.heading(*nth).level);
                pieces.push(Piece { span: section, from: From::Heading(*nth), phase });
                continue;
            }
            has_items = true;
            pieces.extend(items.into_iter().map(|it| Piece { phase: Some(name.clone()), ..it }));
        }
        if !has_items {
            return self.headings(&phases);
        }
        Pieces { pieces, are_numbered: false, is_own_list: false }
    }

    fn is_box(&self, item: &Item) -> bool {
        (item.ticked.is_some() || label::odd_box(&item.text).is_some()) && !self.is_measure(item)
    }

    /// Whether an item belongs to a list of criteria for the work: the label directly above the list, or the nearest heading
    /// above the item, contains one of the `MEASURES`.
    fn is_measure(&self, item: &Item) -> bool {
        let above = &self.body[..item.span.start];
        let is_item = |it: &&str| {
            let it = it.trim_start();
            it.is_empty()
                || it.starts_with(['-', '*', '+']) && !it.starts_with("**")
                || it.starts_with(char::is_numeric)
        };
        let line =
            above.lines().rev().find(|it| !is_item(it) && !it.starts_with([' ', '\t'])).unwrap_or_default();
        let heading = self.outline.headings.iter().rev().find(|it| it.span.end <= item.span.start);
        let says = |text: &str| MEASURES.split(", ").any(|it| text.to_lowercase().contains(it));
        let is_label = line.trim_end().ends_with([':', '*']);
        (is_label && says(line)) || heading.is_some_and(|it| says(&it.text))
    }

    fn items(&self, range: &Range<usize>, is_wanted: impl Fn(&Item) -> bool) -> Vec<Piece> {
        let items = self.outline.items.iter().enumerate();
        let inside = items.filter(|(_, it)| !it.is_nested && range.contains(&it.span.start) && is_wanted(it));
        inside
            .map(|(nth, it)| Piece {
                span: self.line_start(it.span.start)..it.span.end,
                from: From::Item(nth),
                phase: self.phase_at(it.span.start, 7),
            })
            .collect()
    }

    fn line_start(&self, at: usize) -> usize {
        let start = self.body[..at].rfind('\n').map_or(0, |it| it + 1);
        if self.body[start..at].trim().is_empty() { start } else { at }
    }

    fn items_of_containers(&self) -> Pieces {
        let headings = (0..self.outline.headings.len()).filter(|it| self.heading(*it).level > 1);
        for nth in headings.filter(|it| is_container(&self.heading(*it).text)) {
            let section = self.section(nth);
            let mut pieces = self.items(&section, |it| self.is_box(it));
            let is_ordered = pieces.is_empty();
            if is_ordered {
                pieces = self.items(&section, |it| self.is_ordered(it) && !self.is_measure(it));
            }
            if pieces.is_empty() {
                pieces = self.items(&section, |it| !self.is_measure(it));
            }
            if !pieces.is_empty() {
                let own = label::clean(&self.heading(nth).text);
                pieces.iter_mut().for_each(|it| it.phase = it.phase.take().filter(|it| *it != own));
                let are_numbered = is_ordered && self.starts_with_digit(pieces[0].span.start);
                return Pieces { pieces, are_numbered, is_own_list: false };
            }
        }
        Pieces::default()
    }

    fn boxes(&self) -> Pieces {
        let pieces = self.items(&(0..self.body.len()), |it| self.is_box(it));
        Pieces { pieces, are_numbered: false, is_own_list: false }
    }

    fn is_ordered(&self, item: &Item) -> bool {
        self.starts_with_digit(item.span.start)
    }

    fn starts_with_digit(&self, at: usize) -> bool {
        self.body[at..].trim_start().starts_with(|c: char| c.is_ascii_digit())
    }

    /// The items of the document's only ordered list, if it has at least two items. If there are several ordered lists, the
    /// result is empty, because it is not known which one contains the steps.
    fn only_ordered_list(&self) -> Pieces {
        let pieces = self.items(&(0..self.body.len()), |it| self.is_ordered(it) && !self.is_measure(it));
        let starts =
            pieces.iter().filter(|it| self.body[it.span.start..].trim_start().starts_with("1.")).count();
        if pieces.len() < 2 || starts != 1 {
            return Pieces::default();
        }
        Pieces { pieces, are_numbered: true, is_own_list: false }
    }
}
