//! Reads the steps that the `## Steps` list of a plan's body names, and adds, moves and removes lines in the list's style.

mod edit;
mod line;

use std::ops::Range;

use crate::plan::id::{PlanId, StepId};
use crate::plan::problem::{Code, Problem};
use crate::plan::references::{self, Group};
use crate::plan::step_number::StepNumber;
use crate::text::front_matter;
use crate::text::line_index::{Lines, Place};
use crate::text::markdown::{self, Item, Outline};
use crate::text::placeholders::one_line;

use edit::{Splice, apply};
use line::Line;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) number: StepNumber,
    pub(crate) title: String,
    /// `None`: the line states no dependencies.
    pub(crate) depends: Option<Vec<StepId>>,
    /// Dependencies that name no step, and unclosed parentheses; filled by [`Listed::locate`].
    pub(crate) problems: Vec<Problem>,
    /// Where the line's text begins in the file; filled by [`Listed::locate`].
    pub(crate) place: Place,
    /// The item in the body, from its list mark to the end of its children.
    span: Range<usize>,
    /// The text after list mark and task box, including continuation lines.
    text: String,
    /// The offset of `text` in the body.
    at: usize,
    line: Line,
    groups: Vec<Group>,
}

impl Listed {
    /// The ranges of the body in which the number of the line's own step is written.
    pub(crate) fn own_names(&self) -> Vec<Range<usize>> {
        self.line.numbers.iter().map(|it| self.at + it.start..self.at + it.end).collect()
    }

    /// The steps that the line's own step depends on, each with the range of the body that names it.
    pub(crate) fn named(&self) -> Vec<(Range<usize>, StepId)> {
        let in_body = |it: &Range<usize>| self.at + it.start..self.at + it.end;
        let others = self.groups.iter().flat_map(|it| &it.items);
        others.filter_map(|it| Some((in_body(&it.span), it.step.clone()?))).collect()
    }

    /// The whole item, from its list mark to the end of its children, in the body.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Sets `problems` and `place`, with positions in the file. The body begins at the byte `body_at` of the file.
    pub(crate) fn locate(&mut self, path: &str, file: &Lines<'_>, body_at: usize) {
        let report = |at: usize, message: String, hint: &str| {
            let place = file.place(body_at + self.at + at);
            Problem::at(path, place, Code::DependencyMissing, message, hint)
        };
        let mut problems = Vec::new();
        for group in &self.groups {
            for item in group.items.iter().filter(|it| it.step.is_none()) {
                let name = one_line(&self.text[item.span.clone()]);
                let message = format!("the dependency `{name}` in the Steps list is not a step");
                let hint = "write (depends: step-1, step-2), each step by its own name";
                problems.push(report(item.span.start, message, hint));
            }
            if !group.is_closed {
                let message = "the parenthesis of the dependencies is not closed".to_owned();
                problems.push(report(group.span.start, message, "close it with `)`"));
            }
        }
        self.problems = problems;
        self.place = file.place(body_at + self.at);
    }

    /// Whether number, title, dependencies and problems (with the problems' places) are equal.
    pub(crate) fn reads_same(&self, other: &Self) -> bool {
        (&self.number, &self.title, &self.depends, &self.problems)
            == (&other.number, &other.title, &other.depends, &other.problems)
    }
}

pub(crate) fn names_steps(plan: &PlanId, body: &str) -> bool {
    !read(plan, &markdown::outline(body)).is_empty()
}

/// Returns a `plan.md` with a line for this step in its list. The file is unchanged if it has no list, or if the list
/// already names the step.
pub(crate) fn with_step(
    plan: &PlanId,
    file: &[u8],
    number: &StepNumber,
    title: &str,
    depends: &[StepId],
) -> Vec<u8> {
    let start = front_matter::split(file).body_start();
    let body = String::from_utf8_lossy(&file[start..]);
    let is_named = read(plan, &markdown::outline(&body)).iter().any(|it| it.number == *number);
    if is_named { file.to_vec() } else { with_line(plan, file, number, title, depends) }
}

/// Returns a `plan.md` with a list of these steps. The file is unchanged if it already has a list, or if there are no steps.
///
/// The list follows the text below the heading Steps. If there is no such heading, heading and list are added at the end
/// of the file.
pub(crate) fn with_list<'a>(
    plan: &PlanId,
    file: &[u8],
    steps: impl Iterator<Item = (&'a StepNumber, &'a str, &'a [StepId])>,
) -> Vec<u8> {
    let start = front_matter::split(file).body_start();
    let body = String::from_utf8_lossy(&file[start..]);
    let eol = if body.contains("\r\n") { "\r\n" } else { "\n" };
    let outline = markdown::outline(&body);
    let own = |it: &StepId| if it.plan == *plan { format!("step-{}", it.number) } else { it.to_string() };
    let line = |(number, title, depends): (&StepNumber, &str, &[StepId])| {
        let depends = depends.iter().map(own).collect::<Vec<_>>().join(", ");
        let depends = if depends.is_empty() { depends } else { format!(" (depends: {depends})") };
        format!("- step-{number}: {}{depends}{eol}", one_line(title))
    };
    let lines: String = steps.map(line).collect();
    if lines.is_empty() || !read(plan, &outline).is_empty() {
        return file.to_vec();
    }
    let is_steps = |it: &str| it.trim_end_matches(':').eq_ignore_ascii_case("steps");
    let (at, text) = match outline.section(is_steps) {
        Some(section) => match end_of_text(&body, &outline, &section) {
            Some(end) => (end, format!("{eol}{eol}{}", lines.trim_end())),
            None => (section.start, format!("{eol}{lines}")),
        },
        None => {
            let end = if body.is_empty() || body.ends_with('\n') { "" } else { eol };
            (body.len(), format!("{end}{eol}## Steps{eol}{eol}{lines}"))
        }
    };
    [&file[..start], body[..at].as_bytes(), text.as_bytes(), body[at..].as_bytes()].concat()
}

/// Returns the end of the last line of text between a section's heading and the next heading; `None` if there is no text.
fn end_of_text(body: &str, outline: &Outline, section: &Range<usize>) -> Option<usize> {
    let next = outline.headings.iter().map(|it| it.span.start).find(|it| *it >= section.start);
    let text = &body[section.start..next.unwrap_or(section.end).min(section.end)];
    let end = section.start + text.trim_end().len();
    let is_text = !text.trim().is_empty();
    is_text.then(|| end + body[end..].find(['\r', '\n']).unwrap_or(body.len() - end))
}

/// Like [`with_step`], but replaces a line that already names the step.
pub(crate) fn with_line(
    plan: &PlanId,
    file: &[u8],
    number: &StepNumber,
    title: &str,
    depends: &[StepId],
) -> Vec<u8> {
    edited(plan, file, |body, lines| {
        let new = edit::NewLine { plan, number, title, depends };
        let own = lines.iter().find(|it| it.number == *number);
        let splice = own.map(|it| edit::rewritten(body, it, &new, true));
        splice.or_else(|| edit::insertion(body, lines, &new)).into_iter().collect()
    })
}

/// Returns a `plan.md` in which the line of a step has another title and other dependencies. If `depends` is `None`, the
/// line keeps its dependencies. The lines below the step's line usually stay (see `edit::retold`).
pub(crate) fn with_changed_line(
    plan: &PlanId,
    file: &[u8],
    number: &StepNumber,
    title: &str,
    (depends, is_unticked): (Option<&[StepId]>, bool),
) -> Vec<u8> {
    edited(plan, file, |body, lines| {
        let new = edit::NewText { title, depends, is_unticked };
        let nth = lines.iter().position(|it| it.number == *number);
        nth.map(|nth| edit::retold(plan, body, lines, nth, &new)).unwrap_or_default()
    })
}

/// Returns a `plan.md` in which the line of a step states other dependencies, if it states any.
pub(crate) fn with_depends(plan: &PlanId, file: &[u8], number: &StepNumber, depends: &[StepId]) -> Vec<u8> {
    edited(plan, file, |body, lines| {
        let states = |it: &Listed| it.depends.as_ref().is_some_and(|it| !it.is_empty());
        let nth = lines.iter().position(|it| it.number == *number && states(it));
        let retold = |nth: usize| {
            let new = edit::NewText { title: &lines[nth].title, depends: Some(depends), is_unticked: false };
            edit::retold(plan, body, lines, nth, &new)
        };
        nth.map(retold).unwrap_or_default()
    })
}

/// Returns a `plan.md` in which a step's line has another number and is moved to its new place with its children;
/// dependencies on the step are updated.
pub(crate) fn with_moved(plan: &PlanId, file: &[u8], from: &StepNumber, to: &StepNumber) -> Vec<u8> {
    let id = |number: &StepNumber| StepId { plan: plan.clone(), number: number.clone() };
    edited(plan, file, |body, lines| {
        let mut splices = relinkings(plan, lines, &id(from), &[id(to)]);
        splices.extend(edit::moving(body, lines, from, to));
        splices
    })
}

/// Returns a `plan.md` without a step's line, and the removed text. Lines that depended on the step depend on `heirs`
/// instead.
pub(crate) fn without_step(
    plan: &PlanId,
    file: &[u8],
    number: &StepNumber,
    heirs: &[StepId],
) -> (Vec<u8>, String) {
    let old = StepId { plan: plan.clone(), number: number.clone() };
    let mut removed = String::new();
    let file = edited(plan, file, |body, lines| {
        let mut splices = relinkings(plan, lines, &old, heirs);
        splices.extend(deletions(body, lines, number, &mut removed));
        splices
    });
    (file, removed)
}

/// Like [`without_step`], but lines that depend on the step keep that dependency.
pub(crate) fn without_line(plan: &PlanId, file: &[u8], number: &StepNumber) -> (Vec<u8>, String) {
    let mut removed = String::new();
    let file = edited(plan, file, |body, lines| deletions(body, lines, number, &mut removed));
    (file, removed)
}

/// The text of each line of a body's list, with the line's children.
pub(crate) fn blocks(plan: &PlanId, body: &str) -> Vec<(StepNumber, String)> {
    let lines = read(plan, &markdown::outline(body));
    lines.iter().map(|it| (it.number.clone(), body[edit::block(body, it)].to_owned())).collect()
}

/// Returns a body in which `block` replaces the line of a step, or is added as that line. If `block` is `None`, the line
/// is removed.
///
/// Returns `None` if there is a block, but the body has no list.
pub(crate) fn with_block(
    plan: &PlanId,
    body: &str,
    number: &StepNumber,
    block: Option<&str>,
) -> Option<String> {
    let lines = read(plan, &markdown::outline(body));
    let own = lines.iter().position(|it| it.number == *number);
    let splice = match (own, block) {
        (None, None) => return Some(body.to_owned()),
        (Some(nth), None) => (edit::deletion(body, &lines, nth), String::new()),
        (Some(nth), Some(block)) => (edit::block(body, &lines[nth]), block.to_owned()),
        (None, Some(_)) if lines.is_empty() => return None,
        (None, Some(block)) => edit::placed(body, &lines, edit::place_of(&lines, None, number), block),
    };
    Some(apply(body, vec![splice]))
}

fn deletions(body: &str, lines: &[Listed], number: &StepNumber, removed: &mut String) -> Vec<Splice> {
    let mut splices = Vec::new();
    for nth in (0..lines.len()).filter(|it| lines[*it].number == *number) {
        let block = edit::block(body, &lines[nth]);
        removed.push_str(&body[block.clone()]);
        removed.push_str(edit::eol_at(body, block.end));
        splices.push((edit::deletion(body, lines, nth), String::new()));
    }
    splices
}

/// Returns a `plan.md` in which the lines that depended on `old` depend on `heirs` instead.
pub(crate) fn relinked(plan: &PlanId, file: &[u8], old: &StepId, heirs: &[StepId]) -> Vec<u8> {
    edited(plan, file, |_, lines| relinkings(plan, lines, old, heirs))
}

fn edited(plan: &PlanId, file: &[u8], edit: impl FnOnce(&str, &[Listed]) -> Vec<Splice>) -> Vec<u8> {
    let start = front_matter::split(file).body_start();
    let Ok(body) = std::str::from_utf8(&file[start..]) else { return file.to_vec() };
    let splices = edit(body, &read(plan, &markdown::outline(body)));
    [&file[..start], apply(body, splices).as_bytes()].concat()
}

fn relinkings(plan: &PlanId, lines: &[Listed], old: &StepId, heirs: &[StepId]) -> Vec<Splice> {
    let is_other = |it: &&Listed| old.plan != *plan || it.number != old.number;
    lines.iter().filter(is_other).flat_map(|it| edit::relinking(plan, it, old, heirs)).collect()
}

/// Reads the list below the heading Steps. Items that name no step are skipped.
///
/// Nested items are read, too, for example below the name of a phase, but not below an item that names a step.
pub(crate) fn read(plan: &PlanId, outline: &Outline) -> Vec<Listed> {
    let is_steps = |it: &str| it.trim_end_matches(':').eq_ignore_ascii_case("steps");
    let Some(section) = outline.section(is_steps) else { return Vec::new() };
    let inside = outline.items.iter().filter(|it| section.contains(&it.span.start));
    let mut listed: Vec<Listed> = Vec::new();
    for item in inside {
        let is_remark = listed.last().is_some_and(|it| item.is_nested && it.span.contains(&item.span.start));
        if !is_remark {
            listed.extend(read_item(plan, item));
        }
    }
    listed
}

fn read_item(plan: &PlanId, item: &Item) -> Option<Listed> {
    let groups = references::groups(plan, &item.text);
    let first = item.text.lines().next().unwrap_or_default();
    let head = groups.first().map_or(first.len(), |it| it.span.start.min(first.len()));
    let line = line::read(first[..head].trim_end())?;
    let steps = groups.iter().flat_map(|it| &it.items).filter_map(|it| it.step.clone());
    let mut depends: Vec<StepId> = Vec::new();
    for step in steps {
        if !depends.contains(&step) {
            depends.push(step);
        }
    }
    Some(Listed {
        number: line.number.clone(),
        title: title(first, &line, &groups),
        depends: (!groups.is_empty()).then_some(depends),
        problems: Vec::new(),
        place: Place::START,
        span: item.span.clone(),
        text: item.text.clone(),
        at: item.at,
        line,
        groups,
    })
}

/// The title on the first line of an item, including text between and after the dependencies.
fn title(text: &str, line: &Line, groups: &[Group]) -> String {
    let mut title = line.title.clone();
    for (nth, group) in groups.iter().enumerate() {
        let end = groups.get(nth + 1).map_or(text.len(), |it| it.span.start.min(text.len()));
        let more = text.get(group.span.end..end).unwrap_or_default().trim();
        let more = more.strip_prefix(line.unclosed.as_str()).unwrap_or(more).trim();
        if !more.is_empty() {
            title = format!("{title} {more}");
        }
    }
    title.trim().to_owned()
}

#[cfg(test)]
mod tests;
