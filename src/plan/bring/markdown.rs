//! A Markdown document as a plan: its steps get files of their own, the rest is the plan's text.

use std::ops::Range;

use serde_json::{Map, Value};

use super::label::{self, Label};
use super::pieces::{self, From, Piece, Pieces};
use super::{BroughtPlan, Draft, Unmapped, own, set, set_all_depends, set_metadata};
use crate::plan::change::{set_status, set_text, set_word};
use crate::plan::id::{PlanId, StepId};
use crate::plan::read::CATEGORIES;
use crate::plan::records::Priority;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::plan::words::{PlanStatus, StepStatus, Words};
use crate::text::front_matter::{self, Header};
use crate::text::header_edit::Change;
use crate::text::line_index;
use crate::text::markdown::{self as text_markdown, Outline};
use crate::text::yaml::{self, Kind};
use crate::text::{foreign, placeholders};

/// A title longer than this is a sentence, and cut.
const LONG: usize = 100;

/// A step before it has a number.
struct Found {
    label: Option<String>,
    title: String,
    status: StepStatus,
    phase: Option<String>,
    waits_for: Vec<String>,
    /// Steps of other plans that it waits for.
    elsewhere: Vec<StepId>,
    assignee: Option<String>,
    metadata: Map<String, Value>,
    body: String,
}

/// Maps one document; what it is called counts where it has no title.
pub(super) fn bring(path: &str, text: &str, words: &Words) -> (BroughtPlan, Vec<Unmapped>) {
    let (header, body) = cut(text);
    let outline = text_markdown::outline(body);
    let keys = foreign::keys(text.as_bytes()).unwrap_or_default();
    let mut unmapped = Vec::new();
    let exported = if header.is_empty() { own::find(body, &outline, words) } else { None };
    if let Some(exported) = exported {
        return of_export(path, (text, body), &outline, &exported);
    }
    let todos = todos(&keys, words);
    let pieces = if todos.is_empty() { found_pieces(body, &outline) } else { Pieces::default() };
    let has_todos = !todos.is_empty();
    if has_todos {
        let text = key_words(&keys["todos"]);
        let why = "the names of the keys in which the steps stood";
        unmapped.push(Unmapped { path: path.to_owned(), line: None, why, text: format!("todos {text}") });
    }
    let found = if has_todos { todos } else { steps(body, &outline, &pieces, words) };
    if found.is_empty() {
        let why = "no steps were found, so all of it is the plan's text";
        unmapped.push(Unmapped { path: path.to_owned(), line: None, why, text: String::new() });
    }
    let rest = rest(path, body, &outline, &pieces, &mut unmapped);
    let stem = path.rsplit('/').next().unwrap_or(path);
    let stem = stem.rsplit_once('.').map_or(stem, |it| it.0);
    let own_title = keys.get("title").or_else(|| keys.get("name")).and_then(Value::as_str);
    let title = outline.title().filter(|it| !it.is_empty()).or(own_title).unwrap_or(stem);
    let title = label::clean(title);
    let steps = numbered(found);
    let waits = steps.iter().any(|(_, it)| it.changes.iter().any(|it| it.key() == "depends"));
    let mut changes = header_changes(&header, &keys, words);
    changes.extend(has_todos.then(|| Change::Remove { key: "todos".to_owned() }));
    let is_titled = outline.title().is_some() || keys.get("title").is_some_and(Value::is_string);
    changes.extend((!is_titled).then(|| set_text("title", &title)));
    let has_order = keys.contains_key("order");
    let is_sequential = pieces.are_numbered && !waits && !has_order && steps.len() > 1;
    changes.extend(is_sequential.then(|| set_word("order", "sequential")));
    let plan = Draft { text: format!("{header}{rest}"), changes, is_verbatim: false };
    let steps = in_line_ends_of(text, steps);
    (BroughtPlan { title, plan: Some(plan), steps }, unmapped)
}

/// Maps a document that is one list of steps; the second answer: what stands around the list.
pub(super) fn list(text: &str, words: &Words) -> (Vec<(StepNumber, Draft)>, String) {
    let body = cut(text).1;
    let outline = text_markdown::outline(body);
    let pieces = pieces::all_items(body, &outline);
    let cuts: Vec<_> = pieces.pieces.iter().map(|it| it.span.clone()).collect();
    let around = without(body, 0..body.len(), &cuts);
    (numbered(steps(body, &outline, &pieces, words)), around)
}

/// What `export` printed becomes the plan that it was, but for what a document does not say.
fn of_export(
    path: &str,
    (text, body): (&str, &str),
    outline: &Outline,
    exported: &own::Exported,
) -> (BroughtPlan, Vec<Unmapped>) {
    let mut unmapped = Vec::new();
    let rest = rest(path, body, outline, &exported.pieces, &mut unmapped);
    let (rest, changes, sum) = exported.plan(path, body, &rest);
    unmapped.push(sum);
    let found = exported.pieces.pieces.iter().zip(&exported.states).map(|(piece, state)| {
        let From::Heading(nth) = piece.from else { return None };
        let (number, title) = own::numbered(&outline.headings[nth].text)?;
        let below = raised(body, outline, state.body..piece.span.end, 2);
        Some(Found {
            label: Some(number.to_owned()),
            title: title.to_owned(),
            status: state.status,
            phase: piece.phase.clone(),
            waits_for: state.waits_for.clone(),
            elsewhere: state.elsewhere.clone(),
            assignee: state.assignee.clone(),
            metadata: Map::new(),
            body: format!("# {title}\n\n{}\n", below.trim()).trim_end().to_owned() + "\n",
        })
    });
    let steps = in_line_ends_of(text, numbered(found.flatten().collect()));
    let title = label::clean(outline.title().unwrap_or_default());
    let plan = Draft { text: rest, changes, is_verbatim: false };
    (BroughtPlan { title, plan: Some(plan), steps }, unmapped)
}

/// Cuts a document before its body; what looks like a front matter and is none belongs to the body.
fn cut(text: &str) -> (String, &str) {
    let parts = front_matter::split(text.as_bytes());
    let start = parts.body_start();
    let is_sane = |yaml: &Range<usize>| {
        yaml::parse(&text[yaml.clone()]).is_ok_and(|it| matches!(it.root().kind(), Kind::Map | Kind::Null))
    };
    match &parts.header {
        Header::Present { yaml, .. } if is_sane(yaml) => (text[..start].to_owned(), &text[start..]),
        Header::Absent => (String::new(), &text[start..]),
        // A line in front keeps the marks from being taken for a front matter again.
        _ => ("\n".to_owned(), text.trim_start_matches('\u{feff}')),
    }
}

fn found_pieces(body: &str, outline: &Outline) -> Pieces {
    let plan = PlanId::new("plan");
    let listed = steps_list::read(&plan, outline);
    let section = outline.section(|it| it == "Steps");
    let (Some(section), false) = (section, listed.is_empty()) else { return pieces::find(body, outline) };
    let names = |text: &str| listed.iter().any(|it| text.contains(&format!("step-{}", it.number)));
    let items = outline
        .items
        .iter()
        .enumerate()
        .filter(|(_, it)| !it.is_nested && section.contains(&it.span.start) && names(&it.text));
    let piece = |(nth, item): (usize, &text_markdown::Item)| Piece {
        span: item.span.clone(),
        from: From::Item(nth),
        phase: None,
    };
    Pieces { pieces: items.map(piece).collect(), are_numbered: false, is_own_list: true }
}

/// The steps that an editor's plan keeps in its front matter.
fn todos(keys: &Map<String, Value>, words: &Words) -> Vec<Found> {
    let Some(Value::Array(todos)) = keys.get("todos") else { return Vec::new() };
    let found = todos.iter().map(|it| todo(it, words));
    found.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The keys that have other names in a step.
fn key_words(todos: &Value) -> String {
    let keys = todos.as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(|it| it.keys());
    keys.filter(|it| matches!(it.as_str(), "content" | "dependencies")).map(|it| format!("{it} ")).collect()
}

fn todo(of: &Value, words: &Words) -> Option<Found> {
    let object = of.as_object()?;
    let content = object.get("content").and_then(Value::as_str)?;
    let status = object.get("status").and_then(Value::as_str).unwrap_or("pending");
    let id = object.get("id").and_then(Value::as_str);
    let waits = object.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let mut metadata = object.clone();
    metadata.shift_remove("content");
    metadata.retain(|_, it| it.as_array().is_none_or(|it| !it.is_empty()));
    let (title, body) = titled(content);
    Some(Found {
        label: id.map(str::to_owned),
        title,
        status: words.read(status)?,
        phase: None,
        waits_for: waits.filter_map(Value::as_str).map(str::to_owned).collect(),
        elsewhere: Vec::new(),
        assignee: None,
        metadata,
        body,
    })
}

fn steps(body: &str, outline: &Outline, pieces: &Pieces, words: &Words) -> Vec<Found> {
    let found = pieces.pieces.iter().map(|piece| match piece.from {
        From::Heading(nth) => of_heading(body, outline, piece, nth, words),
        From::Item(nth) => of_item(body, outline, piece, nth, words),
    });
    found.collect()
}

fn of_heading(body: &str, outline: &Outline, piece: &Piece, nth: usize, words: &Words) -> Found {
    let heading = &outline.headings[nth];
    let label = label::label(&heading.text);
    let below = &body[heading.span.end..piece.span.end];
    let (done, all) = outline.tasks_in(&piece.span);
    let ticked = (all > 0 && done == all).then_some(StepStatus::Completed);
    let said = label::status(&heading.text, words).or_else(|| label::stated(below, words));
    let by = usize::from(heading.level.saturating_sub(1));
    let below = raised(body, outline, heading.span.end..piece.span.end, by);
    let waits_for = [waits_in_parentheses(&heading.text), label::waits_for(&below)].concat();
    let title = label.as_ref().map_or(heading.text.as_str(), |it| it.rest);
    let title = without_parentheses(title, &heading.text);
    Found {
        title: label::without_status(&title, words),
        label: label.map(|it| it.number.to_owned()),
        status: said.or(ticked).unwrap_or(StepStatus::Pending),
        phase: piece.phase.clone(),
        waits_for,
        elsewhere: Vec::new(),
        assignee: None,
        metadata: Map::new(),
        body: format!("# {}\n{}", heading.text, without_rule(&below)),
    }
}

/// The text of a step without the line that parted it from the next one.
fn without_rule(text: &str) -> String {
    let end = text.trim_end();
    let end = end.strip_suffix("---").filter(|it| it.ends_with("\n\n")).unwrap_or(end).trim_end();
    format!("{end}\n")
}

/// The headings below a heading go up with it.
fn raised(body: &str, outline: &Outline, range: Range<usize>, by: usize) -> String {
    let mut text = String::new();
    let mut from = range.start;
    for heading in outline.headings.iter().filter(|it| range.contains(&it.span.start)) {
        let marks = &body[heading.span.start..];
        let n_marks = marks.len() - marks.trim_start_matches('#').len();
        text.push_str(&body[from..heading.span.start]);
        from = heading.span.start + n_marks.saturating_sub(2).min(by);
    }
    text + &body[from..range.end]
}

fn of_item(body: &str, outline: &Outline, piece: &Piece, nth: usize, words: &Words) -> Found {
    let item = &outline.items[nth];
    let odd = label::odd_box(&item.text);
    let text = odd.map_or(item.text.as_str(), |it| it.1);
    let ticked = item.ticked.map(|it| if it { StepStatus::Completed } else { StepStatus::Pending });
    let status = odd.map(|it| it.0).or(ticked.filter(|it| *it == StepStatus::Completed));
    let status = status.or_else(|| label::status(text, words)).or(ticked);
    let label = label::label(text);
    let below = dedented(&body[(item.at + item.text.len()).min(item.span.end)..item.span.end]);
    let (title, mut own) = titled(text);
    let title = label::without_status(&title, words);
    if !below.trim().is_empty() {
        let has_boxes = below.lines().any(|it| it.trim_start_matches(['-', '*', '+', ' ']).starts_with('['));
        own.push_str(if has_boxes { "\n## Tasks\n" } else { "\n" });
        own.push_str(below.trim_matches('\n'));
        own.push('\n');
    }
    Found {
        title,
        label: label.as_ref().map(|it: &Label<'_>| it.number.to_owned()),
        status: status.unwrap_or(StepStatus::Pending),
        phase: piece.phase.clone(),
        waits_for: [waits_in_parentheses(text), label::waits_for(&below)].concat(),
        elsewhere: Vec::new(),
        assignee: None,
        metadata: Map::new(),
        body: own,
    }
}

/// The title of an item, and the text with the heading: all words of the item are in it.
fn titled(text: &str) -> (String, String) {
    let line = placeholders::one_line(text);
    let behind = label::label(&line).map_or(line.as_str(), |it| it.rest);
    let bold =
        behind.strip_prefix("**").or_else(|| line.strip_prefix("**")).and_then(|it| it.split_once("**"));
    let title = match bold {
        Some((title, _)) if title.len() > 2 => label::label(title).map_or(title, |it| it.rest),
        _ => behind,
    };
    let title = without_parentheses(title, &line);
    if line.chars().count() <= LONG {
        return (title, format!("# {line}\n"));
    }
    let title = shortened(&title);
    (title.clone(), format!("# {title}\n\n{}\n", text.trim()))
}

/// Cuts a long title at the end of its first sentence, else between words.
fn shortened(title: &str) -> String {
    if title.chars().count() <= LONG {
        return title.to_owned();
    }
    let sentence = title.find(". ").map(|it| &title[..it]).filter(|it| it.chars().count() <= LONG);
    let cut = || {
        let end = title.char_indices().nth(LONG - 1).map_or(title.len(), |it| it.0);
        let end = title[..end].rfind(' ').unwrap_or(end);
        format!("{}…", title[..end].trim_end_matches([',', ';', ':', ' ']))
    };
    sentence.map_or_else(cut, str::to_owned)
}

/// A title without what stands in `(depends: …)`; `whole` where nothing is left.
fn without_parentheses(title: &str, whole: &str) -> String {
    let plan = PlanId::new("plan");
    let mut text = title.to_owned();
    for group in crate::plan::references::groups(&plan, title).into_iter().rev() {
        text.replace_range(group.span, "");
    }
    let text = label::clean(&text);
    if text.is_empty() { label::clean(whole) } else { text }
}

/// The labels in `(depends: …)`.
fn waits_in_parentheses(text: &str) -> Vec<String> {
    let groups = crate::plan::references::groups(&PlanId::new("plan"), text);
    let steps = groups.into_iter().flat_map(|it| it.items).filter_map(|it| it.step);
    steps.map(|it| it.number.to_string()).collect()
}

/// The children of an item as a text of their own.
fn dedented(text: &str) -> String {
    let blank = |it: &&str| !it.trim().is_empty();
    let indent = |it: &str| it.len() - it.trim_start_matches([' ', '\t']).len();
    let lines = text.lines().skip(usize::from(!text.starts_with('\n')));
    let least = lines.clone().filter(blank).map(indent).min().unwrap_or(0);
    let first = text.lines().next().unwrap_or_default().trim();
    let rest: Vec<_> = lines.map(|it| it.get(least..).unwrap_or_default()).collect();
    let rest = rest.join("\n");
    if first.is_empty() { rest } else { format!("{first}\n{rest}") }
}

/// Gives the steps the author's numbers where they are in order, else 1, 2, 3.
fn numbered(found: Vec<Found>) -> Vec<(StepNumber, Draft)> {
    let own: Option<Vec<StepNumber>> =
        found.iter().map(|it| it.label.as_deref().and_then(|it| it.parse().ok())).collect();
    let is_in_order = |all: &Vec<StepNumber>| all.windows(2).all(|it| it[0] < it[1]);
    let numbers =
        own.filter(is_in_order).unwrap_or_else(|| (1..).take(found.len()).map(StepNumber::whole).collect());
    let known: Vec<_> = found.iter().map(|it| it.label.clone()).zip(numbers.iter().cloned()).collect();
    let has_labels = known.iter().any(|(label, _)| label.is_some());
    let meant = |wanted: &String| {
        let by_label = known.iter().find(|(label, _)| label.as_ref() == Some(wanted)).map(|it| &it.1);
        by_label
            .or_else(|| known.iter().map(|it| &it.1).find(|it| !has_labels && it.to_string() == *wanted))
            .cloned()
    };
    let draft = |(it, number): (Found, StepNumber)| {
        let mut depends: Vec<_> = it.waits_for.iter().filter_map(meant).filter(|it| *it != number).collect();
        depends.sort();
        depends.dedup();
        let mut changes = vec![set_status(it.status)];
        let shown = it.body.lines().next().unwrap_or_default().trim_start_matches("# ");
        changes.extend((shown != it.title).then(|| set_text("title", &it.title)));
        changes.extend(set_all_depends(&depends, &it.elsewhere));
        changes.extend(it.assignee.as_ref().map(|it| set_text("assignee", it)));
        changes.extend(it.phase.as_ref().map(|it| set_text("phase", it)));
        changes.extend(set_metadata("todo", &it.metadata));
        (number, Draft { text: it.body, changes, is_verbatim: false })
    };
    found.into_iter().zip(numbers).map(draft).collect()
}

/// The plan's text: the body without its steps, and without headings that only held them.
fn rest(path: &str, body: &str, outline: &Outline, pieces: &Pieces, unmapped: &mut Vec<Unmapped>) -> String {
    if pieces.is_own_list || pieces.pieces.is_empty() {
        return body.to_owned();
    }
    let mut cuts: Vec<Range<usize>> = pieces.pieces.iter().map(|it| it.span.clone()).collect();
    let phases: Vec<_> = pieces.pieces.iter().filter_map(|it| it.phase.as_deref()).collect();
    for (nth, heading) in outline.headings.iter().enumerate().rev() {
        let next = outline.headings[nth + 1..].iter().find(|it| it.level <= heading.level);
        let end = next.map_or(body.len(), |it| it.span.start);
        let is_cut = cuts.iter().any(|it| it.start >= heading.span.start && it.start < end);
        let left: String = without(body, heading.span.end..end, &cuts);
        let is_inside = cuts.iter().any(|it| it.contains(&heading.span.start));
        if heading.level == 1 || !is_cut || is_inside || left.contains(char::is_alphanumeric) {
            continue;
        }
        let is_phase = phases.contains(&label::clean(&heading.text).as_str());
        if !is_phase && !pieces::is_container(&heading.text) {
            continue;
        }
        if !is_phase {
            let line = Some(line_index::place(body.as_bytes(), heading.span.start).line);
            let why = "a heading that only held the steps";
            unmapped.push(Unmapped { path: path.to_owned(), line, why, text: heading.text.clone() });
        }
        cuts.push(heading.span.start..end);
    }
    without(body, 0..body.len(), &cuts)
}

/// A range without the cuts in it; where something was cut, one blank line is left.
fn without(body: &str, range: Range<usize>, cuts: &[Range<usize>]) -> String {
    let mut cuts: Vec<_> = cuts.iter().filter(|it| it.start >= range.start && it.start < range.end).collect();
    cuts.sort_by_key(|it| (it.start, std::cmp::Reverse(it.end)));
    let mut text = String::new();
    let mut from = range.start;
    for cut in cuts.into_iter() {
        if cut.start > from {
            text.push_str(&body[from..cut.start]);
        }
        if cut.end > from {
            let kept = text.trim_end().len();
            text.truncate(kept);
            text.push_str("\n\n");
            from = cut.end;
            from += body[from..].len() - body[from..].trim_start_matches(['\n', '\r']).len();
        }
    }
    text.push_str(body.get(from..range.end).unwrap_or_default());
    let end = text.trim_end().len();
    text.truncate(end);
    text + "\n"
}

/// Keys that mean something else here are kept where nothing is read from them.
fn header_changes(header: &str, keys: &Map<String, Value>, words: &Words) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut moved = Map::new();
    for (key, value) in keys {
        if !is_wrong(key, value, words) {
            continue;
        }
        changes.push(Change::Remove { key: key.clone() });
        moved.insert(key.clone(), value.clone());
    }
    // A mapping of that name stays what it is.
    let has_metadata = keys.get("metadata").is_some_and(Value::is_object);
    if has_metadata && !moved.is_empty() {
        changes.push(set("imported", super::to_value(&Value::Object(moved))));
    } else {
        changes.extend(set_metadata("imported", &moved));
    }
    let has_status = keys.contains_key("status") && !is_wrong("status", &keys["status"], words);
    changes.extend((!has_status || header.is_empty()).then(|| set_status(PlanStatus::Active)));
    changes
}

fn is_wrong(key: &str, value: &Value, words: &Words) -> bool {
    let text = value.as_str();
    let is_texts = || value.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    match key {
        "title" | "description" => text.is_none(),
        "status" => text.and_then(|it| words.read::<PlanStatus>(it)).is_none(),
        "kind" => !matches!(text, Some("plan" | "program")),
        "category" => !text.is_some_and(|it| CATEGORIES.contains(&it)),
        "priority" => text.and_then(Priority::read).is_none(),
        "tags" | "files" | "goals" | "success_criteria" | "confirm_phases" => !is_texts(),
        "order" => !matches!(text, Some("dependencies" | "sequential")),
        "created_at" => text.is_none_or(|it| it.parse::<crate::plan::time::Time>().is_err()),
        "metadata" => !value.is_object(),
        "program" | "confirmations" | "draft" | "notes" => true,
        _ => false,
    }
}

/// A document that has CRLF everywhere gets no other files.
fn in_line_ends_of(text: &str, mut steps: Vec<(StepNumber, Draft)>) -> Vec<(StepNumber, Draft)> {
    let is_crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    for (_, draft) in steps.iter_mut().filter(|_| is_crlf) {
        draft.text = draft.text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    steps
}

#[cfg(test)]
mod tests;
