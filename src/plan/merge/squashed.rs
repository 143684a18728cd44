//! Merges, section by section, the bodies of a step that one side or both squashed with other steps.
//!
//! `squash` puts a new heading above the text of the first step, and the texts of the other steps below that text. So a
//! squashed step consists of sections with headings of level 1. The first of these headings is the step's title.

use std::collections::BTreeMap;

use super::body::one_of;
use crate::text::markdown;

/// Identifies a section by its heading and its position among equal headings.
type Name = (String, usize);

struct Section<'a> {
    name: Name,
    text: &'a str,
    /// The blank lines after the section.
    gap: &'a str,
}

/// The sections of a body. `None`: other text precedes the first section.
fn sections(body: &str) -> Option<Vec<Section<'_>>> {
    let headings = markdown::sections(body).headings.into_iter().filter(|it| it.level == 1);
    let headings: Vec<_> = headings.map(|it| (it.span.start, it.text)).collect();
    let first = headings.first().map_or(body.len(), |it| it.0);
    if !body[..first].trim().is_empty() {
        return None;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let ends = headings.iter().skip(1).map(|it| it.0).chain([body.len()]);
    let section = |((start, heading), end): (&(usize, String), usize)| {
        let count = seen.entry(heading.clone()).or_default();
        *count += 1;
        let whole = &body[*start..end];
        let text = whole.trim_end();
        Section { name: (heading.clone(), *count), text, gap: &whole[text.len()..] }
    };
    Some(headings.iter().zip(ends).map(section).collect())
}

fn text_of<'a>(of: &[Section<'a>], name: &Name) -> Option<&'a str> {
    of.iter().find(|it| it.name == *name).map(|it| it.text)
}

/// If other steps were squashed into the step, returns the bodies of OURS and THEIRS with all sections merged. The two
/// bodies differ at most in their titles.
///
/// `None`: both sides changed the text of the same section, a side that squashed nothing changed the title, or a body does
/// not consist of sections.
pub(super) fn alike([base, ours, theirs]: &[String; 3]) -> Option<[String; 2]> {
    let (common, own, other) = (sections(base)?, sections(ours)?, sections(theirs)?);
    let ([title, own_parts @ ..], [their_title, their_parts @ ..]) = (own.as_slice(), other.as_slice())
    else {
        return None;
    };
    let is_known = |name: &Name, to: &[Section<'_>]| text_of(to, name).is_some();
    let is_plain = |name: &Name, parts: &[Section<'_>], to| parts.is_empty() && !is_known(name, to);
    if is_plain(&title.name, own_parts, &other) || is_plain(&their_title.name, their_parts, &own) {
        return None;
    }
    let names = order(&own, &other);
    let mut merged: Vec<(&Name, &str)> = Vec::new();
    for name in names {
        let [base, ours, theirs] = [&common, &own, &other].map(|it| text_of(it, name));
        merged.extend(one_of(&base, &ours, &theirs)?.map(|it| (name, it)));
    }
    let (title, their_title) = (&title.name, &their_title.name);
    // The titles conflict only if both are new: neither is a section of the other side or of the base.
    let are_two = !is_known(title, &other) && !is_known(their_title, &own);
    if !are_two || is_known(title, &common) || is_known(their_title, &common) {
        let text = joined(&merged, &own, ours);
        return Some([text.clone(), text]);
    }
    let with = |kept: &Name, left: &Name| {
        let (mut first, rest): (Vec<_>, Vec<_>) =
            merged.iter().copied().filter(|it| it.0 != left).partition(|it| it.0 == kept);
        first.extend(rest);
        joined(&first, &own, ours)
    };
    Some([with(title, their_title), with(their_title, title)])
}

/// The sections of OURS in their order. A section that only THEIRS has is inserted before the section that follows it in
/// THEIRS.
fn order<'s>(own: &'s [Section<'_>], other: &'s [Section<'_>]) -> Vec<&'s Name> {
    let mut names: Vec<&Name> = own.iter().map(|it| &it.name).collect();
    let mut next = None;
    for name in other.iter().rev().map(|it| &it.name) {
        if !names.contains(&name) {
            let before = next.and_then(|next| names.iter().position(|it| *it == next));
            names.insert(before.unwrap_or(names.len()), name);
        }
        next = Some(name);
    }
    names
}

/// A body of these sections. Two sections that follow each other in OURS keep the blank lines between them.
fn joined(merged: &[(&Name, &str)], own: &[Section<'_>], ours: &str) -> String {
    let blank = if ours.contains("\r\n") { "\r\n\r\n" } else { "\n\n" };
    let lead = &ours[..ours.len() - ours.trim_start().len()];
    let end = &ours[ours.trim_end().len()..];
    let gap = |name: &Name, next: &Name| {
        let at = own.iter().position(|it| it.name == *name)?;
        own.get(at + 1).filter(|it| it.name == *next).map(|_| own[at].gap)
    };
    let mut text = lead.to_owned();
    for (nth, (name, section)) in merged.iter().enumerate() {
        text.push_str(section);
        text.push_str(merged.get(nth + 1).map_or(end, |(next, _)| gap(name, next).unwrap_or(blank)));
    }
    text
}
