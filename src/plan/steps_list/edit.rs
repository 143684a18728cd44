//! Edits of a Steps list: adds, moves and removes lines with byte splices of the body.

use std::ops::Range;

use super::{Listed, line};
use crate::plan::id::{PlanId, StepId};
use crate::plan::references::{self, Group, respelled};
use crate::plan::step_number::StepNumber;
use crate::text::markdown;
use crate::text::placeholders::one_line;

/// A range of the body and its replacement.
pub(super) type Splice = (Range<usize>, String);

/// Applies splices, which may be in any order. If two deletions overlap in the gap between two lines, the gap is removed
/// once.
pub(super) fn apply(body: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|(range, _)| (range.start, range.end));
    let mut text = String::with_capacity(body.len());
    let mut from = 0;
    for (range, new) in splices {
        text.push_str(&body[from..range.start.max(from)]);
        text.push_str(&new);
        from = range.end.max(from);
    }
    text.push_str(&body[from..]);
    text
}

pub(super) struct NewLine<'a> {
    pub(super) plan: &'a PlanId,
    pub(super) number: &'a StepNumber,
    pub(super) title: &'a str,
    pub(super) depends: &'a [StepId],
}

/// Adds a line for a new step in the style of the line before it, or of the first line; `None` if the body has no list.
pub(super) fn insertion(body: &str, lines: &[Listed], new: &NewLine<'_>) -> Option<Splice> {
    let before = place_of(lines, None, new.number);
    let model = &lines[before.unwrap_or(0)..].first()?;
    let indent = indent_before(body, model.span.start);
    let mark = &body[model.span.start..model.at];
    let text = format!("{indent}{}{}", next_mark(&unticked(mark), lines, body), restyled(model, new));
    Some(placed(body, lines, before, &text))
}

/// Moves a step's line with its sub-items, and renumbers it. If the line already is in the right position, it is only
/// renumbered.
pub(super) fn moving(body: &str, lines: &[Listed], from: &StepNumber, to: &StepNumber) -> Vec<Splice> {
    let Some(nth) = lines.iter().position(|it| it.number == *from) else { return Vec::new() };
    let line = &lines[nth];
    let before = place_of(lines, Some(nth), to);
    let numbers = numbers(line, to);
    if before == nth.checked_sub(1) {
        return numbers;
    }
    let block = block(body, line);
    let start = block.start;
    let shifted = numbers.into_iter().map(|(it, new)| (it.start - start..it.end - start, new));
    let text = apply(&body[block], shifted.collect());
    let neighbour = before.unwrap_or(0);
    let own_indent = indent_before(body, line.span.start);
    let text = reindented(&text, own_indent, indent_before(body, lines[neighbour].span.start));
    vec![(deletion(body, lines, nth), String::new()), placed(body, lines, before, &text)]
}

fn numbers(line: &Listed, to: &StepNumber) -> Vec<Splice> {
    let absolute = |it: &Range<usize>| line.at + it.start..line.at + it.end;
    line.line.numbers.iter().map(|it| (absolute(it), to.to_string())).collect()
}

/// Returns the index of the line after which a number belongs; `None`: before the first line. The line with the index
/// `without` is ignored.
pub(super) fn place_of(lines: &[Listed], without: Option<usize>, number: &StepNumber) -> Option<usize> {
    let lower = lines.iter().enumerate().filter(|(nth, it)| Some(*nth) != without && it.number < *number);
    lower.max_by(|(_, a), (_, b)| a.number.cmp(&b.number)).map(|(nth, _)| nth)
}

/// Adds a line after `lines[before]`, or before the first line if `before` is `None`. In a loose list, a blank line
/// separates it from its neighbour.
pub(super) fn placed(body: &str, lines: &[Listed], before: Option<usize>, text: &str) -> Splice {
    let neighbour = before.unwrap_or(0);
    let own = block(body, &lines[neighbour]);
    let eol = eol_of(body, own.end);
    let gap = if is_loose(body, lines, neighbour) { eol } else { "" };
    // The neighbour keeps the blanks at the end of its line.
    let end = body.len() - body[own.end..].trim_start_matches([' ', '\t']).len();
    match before {
        Some(_) => (end..end, format!("{eol}{gap}{text}")),
        None => (own.start..own.start, format!("{text}{eol}{gap}")),
    }
}

/// Returns the range of a line with its indentation and children, without the line ending after them.
pub(super) fn block(body: &str, line: &Listed) -> Range<usize> {
    let start = line.span.start - indent_before(body, line.span.start).len();
    start..line.span.start + body[line.span.clone()].trim_end().len()
}

/// Replaces a line and its children by a new line, in the style of the old one. With `is_unticked`, a ticked task box becomes
/// empty.
pub(super) fn rewritten(body: &str, line: &Listed, new: &NewLine<'_>, is_unticked: bool) -> Splice {
    let mark = &body[line.span.start..line.at];
    let mark = if is_unticked { unticked(mark) } else { mark.to_owned() };
    (line.span.start..block(body, line).end, format!("{mark}{}", restyled(line, new)))
}

/// The changes to the line of a step.
pub(super) struct NewText<'a> {
    pub(super) title: &'a str,
    /// `None`: the line's dependencies stay as they are.
    pub(super) depends: Option<&'a [StepId]>,
    /// Whether a ticked task box becomes empty.
    pub(super) is_unticked: bool,
}

/// Changes the title and the dependencies of a line.
///
/// The function first tries to change only these, then to replace the whole first line. It uses the first result that is
/// read back as intended. If neither result is, the whole item is replaced, and the lines below its first line are lost. If
/// `is_unticked` is true, each of these also empties the task box.
pub(super) fn retold(
    plan: &PlanId,
    body: &str,
    lines: &[Listed],
    nth: usize,
    new: &NewText<'_>,
) -> Vec<Splice> {
    let line = &lines[nth];
    let written = line.depends.as_deref().unwrap_or_default();
    let (depends, is_same) = match new.depends {
        Some(depends) => {
            let is_same = depends.len() == written.len() && depends.iter().all(|it| written.contains(it));
            (depends, is_same)
        }
        None => (written, true),
    };
    let named = NewLine { plan, number: &line.number, title: new.title, depends };
    let tick = || {
        let mark = &body[line.span.start..line.at];
        let is_other = new.is_unticked && unticked(mark) != mark;
        is_other.then(|| (line.span.start..line.at, unticked(mark)))
    };
    let is_read = |splices: &[Splice]| {
        let after = apply(body, splices.to_vec());
        let after = super::read(plan, &markdown::outline(&after));
        after.len() == lines.len()
            && after.iter().zip(lines).enumerate().all(|(at, (now, before))| {
                let depends = if at == nth { depends } else { before.depends.as_deref().unwrap_or_default() };
                let is_same_title =
                    if at == nth { now.title == one_line(new.title) } else { now.title == before.title };
                let found = now.depends.as_deref().unwrap_or_default();
                let is_waiting = found.len() == depends.len() && found.iter().all(|it| depends.contains(it));
                now.number == before.number && is_same_title && is_waiting
            })
    };
    let all = |splices: Vec<Splice>| splices.into_iter().chain(tick()).collect::<Vec<_>>();
    let small = all(small_changes(line, &named, is_same));
    if is_read(&small) {
        return small;
    }
    let whole = all(first_line(line, &named));
    if is_read(&whole) {
        return whole;
    }
    vec![rewritten(body, line, &named, new.is_unticked)]
}

/// Changes the title and, unless `keeps_depends` is true, the dependencies. Changes no other text.
fn small_changes(line: &Listed, new: &NewLine<'_>, keeps_depends: bool) -> Vec<Splice> {
    let absolute = |it: &Range<usize>| line.at + it.start..line.at + it.end;
    let mut splices = Vec::new();
    let title = one_line(new.title);
    if title != line.title {
        splices.push((absolute(&line.line.title_span), title));
    }
    if keeps_depends {
        return splices;
    }
    let text = depends_text(new);
    let end = line.at + line.line.end;
    match line.groups.split_first() {
        None => splices.push((end..end, text)),
        Some((first, rest)) => {
            let range = if text.is_empty() { with_blanks(line, first) } else { absolute(&first.span) };
            splices.push((range, text.trim_start().to_owned()));
            splices.extend(rest.iter().map(|it| (with_blanks(line, it), String::new())));
        }
    }
    splices
}

/// Replaces the first line of an item, and removes its dependencies from the lines below.
fn first_line(line: &Listed, new: &NewLine<'_>) -> Vec<Splice> {
    let end = line.text.find(['\r', '\n']).unwrap_or(line.text.len());
    let below = line.groups.iter().filter(|it| it.span.start >= end);
    let mut splices: Vec<Splice> = below.map(|it| (with_blanks(line, it), String::new())).collect();
    splices.push((line.at..line.at + end, restyled(line, new)));
    splices
}

/// The range of a `(depends: …)` in the body, with the blanks before it.
fn with_blanks(line: &Listed, group: &Group) -> Range<usize> {
    line.at + line.text[..group.span.start].trim_end().len()..line.at + group.span.end
}

/// Returns the range to delete for a line: the line, its line ending and, in a loose list, the gap before or after it.
pub(super) fn deletion(body: &str, lines: &[Listed], nth: usize) -> Range<usize> {
    let own = block(body, &lines[nth]);
    let end = own.end + eol_at(body, own.end).len();
    if end == body.len() && !body.ends_with('\n') {
        let start = body[..own.start].trim_end_matches(['\r', '\n']).len();
        return start..end;
    }
    let before = nth.checked_sub(1).map(|it| block(body, &lines[it]).end);
    if let Some(before) = before.filter(|it| is_gap(&body[*it..own.start])) {
        return before + eol_at(body, before).len()..end;
    }
    let next = lines.get(nth + 1).map(|it| block(body, it).start);
    match next.filter(|it| is_gap(&body[own.end..*it])) {
        Some(next) => own.start..next,
        None => own.start..end,
    }
}

/// Whether there is at least one blank line, and nothing else, between two lines.
fn is_gap(between: &str) -> bool {
    between.trim().is_empty() && between.matches('\n').count() > 1
}

fn is_loose(body: &str, lines: &[Listed], nth: usize) -> bool {
    let gap = |first: usize, second: usize| {
        let (first, second) = (lines.get(first)?, lines.get(second)?);
        let between = &body[block(body, first).end..block(body, second).start];
        between.trim().is_empty().then(|| is_gap(between))
    };
    gap(nth, nth + 1).or_else(|| gap(nth.checked_sub(1)?, nth)).unwrap_or(false)
}

/// Returns the rest of the line from a position on, with the line ending; empty at the end of the body.
pub(super) fn eol_at(body: &str, at: usize) -> &str {
    let end = body[at..].find('\n').map_or(body.len(), |it| at + it + 1);
    &body[at..end]
}

/// Returns the line ending for a line that is added next to this position.
fn eol_of(body: &str, at: usize) -> &'static str {
    let own = body[at..].find('\n').map(|it| at + it).or_else(|| body[..at].rfind('\n'));
    if own.is_some_and(|it| body[..it].ends_with('\r')) { "\r\n" } else { "\n" }
}

fn indent_before(body: &str, at: usize) -> &str {
    let start = body[..at].rfind('\n').map_or(0, |it| it + 1);
    let indent = &body[start..at];
    // The first nested item can be on the same line as the item around it.
    if indent.trim().is_empty() { indent } else { "" }
}

fn reindented(block: &str, from: &str, to: &str) -> String {
    if from == to {
        return block.to_owned();
    }
    let line = |it: &str| match it.strip_prefix(from) {
        Some(rest) if !it.trim().is_empty() => format!("{to}{rest}"),
        _ => it.to_owned(),
    };
    block.split_inclusive('\n').map(line).collect()
}

/// Writes the name, title and dependencies of a step in the style of `model`. If the name or the title would be read back
/// differently, the form `step-1: Title` is used.
fn restyled(model: &Listed, new: &NewLine<'_>) -> String {
    let title = one_line(new.title);
    let line = &model.line;
    let mut splices: Vec<_> = line.numbers.iter().map(|it| (it.clone(), new.number.to_string())).collect();
    if *new.number != line.number && !line.fragment.is_empty() {
        splices.push((line.fragment.clone(), String::new()));
    }
    let has_title = !line.title_span.is_empty();
    if has_title {
        splices.push((line.title_span.clone(), title.clone()));
    }
    let mut head = apply(&model.text[..line.end], splices);
    head.push_str(&line.unclosed);
    if !has_title && !title.is_empty() {
        head = format!("{}: {title}", head.trim_end());
    }
    let is_same = |it: &line::Line| it.number == *new.number && it.title == title;
    if !line::read(&head).as_ref().is_some_and(is_same) {
        head = format!("step-{}: {title}", new.number);
    }
    format!("{}{}", head.trim_end(), depends_text(new))
}

fn depends_text(new: &NewLine<'_>) -> String {
    let name =
        |it: &StepId| if it.plan == *new.plan { format!("step-{}", it.number) } else { it.to_string() };
    let names = new.depends.iter().map(name).collect::<Vec<_>>();
    if names.is_empty() { String::new() } else { format!(" (depends: {})", names.join(", ")) }
}

/// A list mark whose task box, if it has one, is empty.
fn unticked(mark: &str) -> String {
    mark.replace("[x]", "[ ]").replace("[X]", "[ ]")
}

/// Returns the list mark of the next line. In an ordered list, it has the next number. If several lines all have the same
/// number, it has that number, too.
fn next_mark(mark: &str, lines: &[Listed], body: &str) -> String {
    let digits = |it: &str| it.bytes().take_while(u8::is_ascii_digit).count();
    let of = |it: &Listed| body[it.span.start..].split_at(digits(&body[it.span.start..])).0;
    let is_counting = lines.len() < 2 || lines.iter().any(|it| of(it) != of(&lines[0]));
    match mark[..digits(mark)].parse::<u64>() {
        Ok(n) if is_counting => format!("{}{}", n.saturating_add(1), &mark[digits(mark)..]),
        _ => mark.to_owned(),
    }
}

/// Replaces a line's dependency on `old` by dependencies on `heirs`. A `(depends: )` that has no items left is removed.
pub(super) fn relinking(plan: &PlanId, line: &Listed, old: &StepId, heirs: &[StepId]) -> Vec<Splice> {
    let own = StepId { plan: plan.clone(), number: line.number.clone() };
    // `old` is left out of `named`: it may be among the heirs, if another step has its number now.
    let named = line.groups.iter().flat_map(|it| &it.items).filter_map(|it| it.step.as_ref());
    let named: Vec<_> = named.filter(|it| *it != old).collect();
    if heirs == std::slice::from_ref(old) {
        return Vec::new();
    }
    let mut heirs: Vec<_> = heirs.iter().filter(|it| **it != own && !named.contains(it)).collect();
    let mut splices = Vec::new();
    for group in line.groups.iter().filter(|it| it.items.iter().any(|it| it.step.as_ref() == Some(old))) {
        splices.extend(relinked_group(plan, line, group, old, &heirs));
        // Only the first group that named the old step names the heirs.
        heirs.clear();
    }
    splices
}

fn relinked_group(
    plan: &PlanId,
    line: &Listed,
    group: &Group,
    old: &StepId,
    heirs: &[&StepId],
) -> Vec<Splice> {
    let is_old = |it: &references::Named| it.step.as_ref() == Some(old);
    let absolute = |it: Range<usize>| line.at + it.start..line.at + it.end;
    let spelled = |it: &references::Named| {
        heirs.iter().map(|new| respelled(plan, &line.text[it.span.clone()], new)).collect::<Vec<_>>()
    };
    let old_at: Vec<_> = (0..group.items.len()).filter(|it| is_old(&group.items[*it])).collect();
    if old_at.len() == 1 && !heirs.is_empty() {
        let item = group.items.iter().filter(|it| is_old(it));
        return item.map(|it| (absolute(it.span.clone()), spelled(it).join(", "))).collect();
    }
    if let ([nth], [], false) = (old_at.as_slice(), heirs, group.items.len() == 1) {
        // The remaining items keep their separators and line breaks.
        let gone = match nth.checked_sub(1) {
            Some(before) => group.items[before].outer.end..group.items[*nth].outer.end,
            None => group.items[0].outer.start..group.items[1].outer.start,
        };
        return vec![(absolute(gone), String::new())];
    }
    let mut is_first = true;
    let mut kept = Vec::new();
    for item in &group.items {
        if !is_old(item) {
            kept.push(line.text[item.outer.clone()].to_owned());
        } else if std::mem::take(&mut is_first) {
            kept.extend(spelled(item));
        }
    }
    if kept.is_empty() {
        let start = line.text[..group.span.start].trim_end().len();
        return vec![(absolute(start..group.span.end), String::new())];
    }
    let ends = group.items.first().zip(group.items.last());
    ends.map(|(a, b)| (absolute(a.outer.start..b.outer.end), kept.join(", "))).into_iter().collect()
}
