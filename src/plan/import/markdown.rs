//! Imports a Markdown document. Each of its steps becomes a file, and the rest becomes the plan's text.

mod header;
mod titles;

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value};

use super::label::{self, Label, Rank};
use super::pieces::{self, From, Piece, Pieces};
use super::statements::{self, Form, Kind, Statement};
use super::waits::{self, Called, Name, Wait};
use super::{Draft, ImportedPlan, Unmapped, own, set_all_depends, set_metadata};
use crate::plan::change::{set_status, set_text, set_word};
use crate::plan::id::{PlanId, StepId};
use crate::plan::read_step::without_step_prefix;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::plan::time::Day;
use crate::plan::words::{StepStatus, Words};
use crate::text::foreign;
use crate::text::front_matter::{self, Header};
use crate::text::header_edit::Change;
use crate::text::line_index;
use crate::text::markdown::{self as text_markdown, Outline};
use crate::text::yaml::{self, Kind as YamlKind};
use titles::{content_column, dedented, titled, with_code, without_parentheses};

#[derive(Default)]
struct UnnumberedStep {
    /// The number that the author gave to the step, with its rank. For an item of the front matter's `todos`, the item's
    /// `id`.
    label: Option<(Rank, String)>,
    title: String,
    /// `None`: the source states no known status. An open task box does not state a status.
    status: Option<StepStatus>,
    /// The status of the step if `status` is `None`.
    default: StepStatus,
    phase: Option<String>,
    waits: Vec<Wait>,
    due: Option<Day>,
    assignee: Option<String>,
    metadata: Map<String, Value>,
    body: String,
}

impl UnnumberedStep {
    fn new_status(&self) -> StepStatus {
        self.status.unwrap_or(self.default)
    }
}

/// A document, parsed as far as is needed to find its steps.
struct Document<'a> {
    path: &'a str,
    text: &'a str,
    body: &'a str,
    /// The body with its code and comments hidden (`label::visible`). Byte positions are the same as in `body`.
    visible: String,
    outline: Outline,
    statements: Vec<Statement>,
    words: &'a Words,
}

impl<'a> Document<'a> {
    fn new(path: &'a str, text: &'a str, body: &'a str, words: &'a Words) -> Self {
        let outline = text_markdown::outline(body);
        let visible = label::visible(body);
        let statements = statements::find(body, &visible, &outline, words);
        Self { path, text, body, visible, outline, statements, words }
    }

    /// Reports text of the body that was not mapped.
    fn unmapped(&self, at: usize, why: &'static str, text: &str) -> Unmapped {
        let at = self.text.len() - self.body.len() + at;
        let line = Some(line_index::place(self.text.as_bytes(), at).line);
        Unmapped { path: self.path.to_owned(), line, why, text: text.to_owned() }
    }

    fn statements_in(&self, range: &Range<usize>) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(move |it| range.contains(&it.at))
    }
}

/// What an item without a task box is, if other items of the same list have task boxes.
#[derive(Clone, Copy)]
enum Boxless {
    Step,
    Text,
}

/// Maps one document; if it has no title, its file name becomes the title.
pub(super) fn convert(path: &str, text: &str, words: &Words) -> (ImportedPlan, Vec<Unmapped>) {
    mapped(path, text, words, Boxless::Text)
}

/// Maps a document of steps. If some items of a list have task boxes, all items of this list are steps. The second value is
/// the plan's text.
pub(super) fn sections(text: &str, words: &Words) -> (Vec<(StepNumber, Draft)>, String) {
    let (plan, _) = mapped("steps.md", text, words, Boxless::Step);
    (plan.steps, plan.plan.map(|it| it.text).unwrap_or_default())
}

fn mapped(path: &str, text: &str, words: &Words, boxless: Boxless) -> (ImportedPlan, Vec<Unmapped>) {
    let (front, body) = cut(text);
    let of = Document::new(path, text, body, words);
    let keys = foreign::keys(text.as_bytes()).unwrap_or_default();
    let mut unmapped = Vec::new();
    let exported = if front.is_empty() { own::find(body, &of.outline, words) } else { None };
    if let Some(exported) = exported {
        return of_export(&of, &exported);
    }
    let todos = header::todos(&keys, words);
    let has_todos = !todos.is_empty();
    let mut pieces = if has_todos { Pieces::default() } else { found_pieces(&of) };
    add_boxless(&of, &mut pieces, boxless, &mut unmapped);
    if has_todos {
        let text = header::key_words(&keys["todos"]);
        let why = "the names of the keys that contained the steps";
        unmapped.push(Unmapped { path: path.to_owned(), line: None, why, text: format!("todos {text}") });
        let why = "this is not a status of a step";
        let unknown = header::unknown_statuses(&keys["todos"], words);
        unmapped.extend(unknown.map(|text| Unmapped { path: path.to_owned(), line: None, why, text }));
    }
    let found = if has_todos { todos } else { steps(&of, &pieces) };
    // A list that names a step twice does not stay, because its names would not be those of the files.
    pieces.is_own_list &=
        own_numbers(&found).is_some_and(|it| it.iter().collect::<BTreeSet<_>>().len() == it.len());
    if found.is_empty() {
        let why = "no steps were found, so all of it is the plan's text";
        unmapped.push(Unmapped { path: path.to_owned(), line: None, why, text: String::new() });
    }
    unmapped.extend(unused_statements(&of, &pieces, &found));
    let rest = rest(&of, &pieces, &mut unmapped);
    let stem = path.rsplit('/').next().unwrap_or(path);
    let stem = stem.rsplit_once('.').map_or(stem, |it| it.0);
    let own_title = keys.get("title").or_else(|| keys.get("name")).and_then(Value::as_str);
    let outline = &of.outline;
    let title = outline.title().filter(|it| !it.is_empty()).or(own_title).unwrap_or(stem);
    let title = label::clean(title);
    let mut lost = |wait: &Wait, why| unmapped.push(of.unmapped(wait.at, why, &wait.text));
    let steps = numbered(found, pieces.is_own_list, &mut lost);
    let waits = steps.iter().any(|(_, it)| it.changes.iter().any(|it| it.key() == "depends"));
    unmapped.extend(header::moved(path, &keys, words));
    let mut changes = header::changes(&front, &keys, words);
    changes.extend(has_todos.then(|| Change::Remove { key: "todos".to_owned() }));
    let is_titled = outline.title().is_some() || keys.get("title").is_some_and(Value::is_string);
    changes.extend((!is_titled).then(|| set_text("title", &title)));
    let has_order = keys.contains_key("order");
    let is_sequential = pieces.are_numbered && !waits && !has_order && steps.len() > 1;
    changes.extend(is_sequential.then(|| set_word("order", "sequential")));
    let plan = Draft { text: format!("{front}{rest}"), changes, ..Draft::default() };
    let steps = in_line_ends_of(text, steps);
    (ImportedPlan { path: Some(path.to_owned()), title, plan: Some(plan), steps }, unmapped)
}

/// Makes the items without a task box steps, or reports them, if other items of the same list are steps.
fn add_boxless(of: &Document<'_>, pieces: &mut Pieces, boxless: Boxless, unmapped: &mut Vec<Unmapped>) {
    if pieces.is_own_list {
        return;
    }
    let others = pieces::others_in_lists(&of.visible, &of.outline, &pieces.pieces);
    match boxless {
        Boxless::Step => {
            pieces.pieces.extend(others);
            pieces.pieces.sort_by_key(|it| it.span.start);
        }
        Boxless::Text => unmapped.extend(others.into_iter().map(|it| {
            let why = "this item is not a step, because it has no checkbox, unlike other items of its list";
            of.unmapped(it.span.start, why, of.body[it.span].trim_end())
        })),
    }
}

/// Maps a document that is one list of steps. The second value is the text around the list.
pub(super) fn list(text: &str, words: &Words) -> (Vec<(StepNumber, Draft)>, String) {
    let body = cut(text).1;
    let of = Document::new("", text, body, words);
    let pieces = pieces::all_items(&of.visible, &of.outline);
    let cuts: Vec<_> = pieces.pieces.iter().map(|it| it.span.clone()).collect();
    let around = without(body, 0..body.len(), &cuts);
    (numbered(steps(&of, &pieces), false, &mut |_, _| {}), around)
}

/// Maps the output of `export` back to a plan. Data that the output does not contain is lost.
fn of_export(of: &Document<'_>, exported: &own::Exported) -> (ImportedPlan, Vec<Unmapped>) {
    let mut unmapped = Vec::new();
    let rest = rest(of, &exported.pieces, &mut unmapped);
    let (rest, changes, sum) = exported.plan(of.path, of.body, &rest);
    unmapped.push(sum);
    let found = exported.pieces.pieces.iter().zip(&exported.states).map(|(piece, state)| {
        let From::Heading(nth) = piece.from else { return None };
        let (number, title) = own::numbered(&of.outline.headings[nth].text)?;
        let below = raised(of, state.body..piece.span.end, 2);
        let wait = |text: &str, name| Wait { name, text: text.to_owned(), at: piece.span.start };
        let own = state.waits_for.iter().map(|it| wait(it, Name::Number(Rank::Bare, it.clone())));
        let others = state.elsewhere.iter().map(|it| wait(&it.to_string(), Name::Elsewhere(it.clone())));
        Some(UnnumberedStep {
            label: Some((Rank::Bare, number.to_owned())),
            title: title.to_owned(),
            status: Some(state.status),
            phase: piece.phase.clone(),
            waits: own.chain(others).collect(),
            due: state.due,
            assignee: state.assignee.clone(),
            body: format!("# {title}\n\n{}\n", below.trim()).trim_end().to_owned() + "\n",
            ..UnnumberedStep::default()
        })
    });
    let found = found.flatten().collect();
    let mut lost = |wait: &Wait, why| unmapped.push(of.unmapped(wait.at, why, &wait.text));
    let steps = in_line_ends_of(of.text, numbered(found, false, &mut lost));
    let title = label::clean(of.outline.title().unwrap_or_default());
    let plan = Draft { text: rest, changes, ..Draft::default() };
    (ImportedPlan { path: Some(of.path.to_owned()), title, plan: Some(plan), steps }, unmapped)
}

/// Splits a document into front matter and body; an invalid front matter belongs to the body.
fn cut(text: &str) -> (String, &str) {
    let parts = front_matter::split(text.as_bytes());
    let start = parts.body_start();
    let is_sane = |yaml: &Range<usize>| {
        yaml::parse(&text[yaml.clone()])
            .is_ok_and(|it| matches!(it.root().kind(), YamlKind::Map | YamlKind::Null))
    };
    match &parts.header {
        Header::Present { yaml, .. } if is_sane(yaml) => (text[..start].to_owned(), &text[start..]),
        Header::Absent => (String::new(), &text[start..]),
        // An empty line in front keeps the `---` from being read as a front matter again.
        _ => ("\n".to_owned(), text.trim_start_matches('\u{feff}')),
    }
}

fn found_pieces(of: &Document<'_>) -> Pieces {
    let outline = &of.outline;
    let plan = PlanId::new("plan");
    let listed = steps_list::read(&plan, outline);
    let section = outline.section(|it| it == "Steps");
    let (Some(section), false) = (section, listed.is_empty()) else {
        return pieces::find(&of.visible, outline);
    };
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

fn steps(of: &Document<'_>, pieces: &Pieces) -> Vec<UnnumberedStep> {
    let found = pieces.pieces.iter().map(|piece| match piece.from {
        From::Heading(nth) => of_heading(of, piece, nth),
        From::Item(nth) => of_item(of, piece, nth),
    });
    let mut found: Vec<_> = found.collect();
    // If no step has a label, the numbers of a list are used if they ascend. The numbers of `1. 1. 1.` are not used.
    let marks: Vec<_> = pieces.pieces.iter().map(|it| mark(of, it)).collect();
    let is_in_order = marks.iter().all(Option::is_some) && marks.windows(2).all(|it| it[0] < it[1]);
    if is_in_order && found.iter().all(|it| it.label.is_none()) {
        for (step, mark) in found.iter_mut().zip(marks) {
            step.label = mark.map(|it| (Rank::Bare, it.to_string()));
        }
    }
    found
}

fn mark(of: &Document<'_>, piece: &Piece) -> Option<StepNumber> {
    let From::Item(nth) = piece.from else { return None };
    let line = &of.visible[of.outline.items[nth].span.start..];
    let (number, _) = line.split_at(line.find(|c: char| !c.is_ascii_digit())?);
    number.parse().ok()
}

/// The status and the dependencies that a piece states below its first line. A `(depends: …)` also counts in the first
/// line.
fn statements_of(of: &Document<'_>, piece: &Piece) -> (Option<StepStatus>, Vec<Wait>) {
    let first = first_line_end(of, piece);
    let own = || of.statements_in(&piece.span).filter(|it| it.form == Form::Parentheses || it.at >= first);
    let status = own().find_map(|it| match it.kind {
        Kind::Status(status) => status,
        _ => None,
    });
    let waits = own().filter_map(|it| match &it.kind {
        Kind::Waits(waits) => Some(waits.clone()),
        _ => None,
    });
    (status, waits.flatten().collect())
}

fn first_line_end(of: &Document<'_>, piece: &Piece) -> usize {
    match piece.from {
        From::Heading(nth) => of.outline.headings[nth].span.end,
        From::Item(_) => {
            let rest = &of.body[piece.span.clone()];
            let line = rest.len() - rest.trim_start().len();
            rest[line..].find('\n').map_or(piece.span.end, |it| piece.span.start + line + it)
        }
    }
}

/// Reports the statements about statuses and dependencies that were not mapped to a step. Also reports task boxes that are
/// not steps, and statuses of headings that are in no step. The status of a phase is not reported if all its steps have this
/// status, too.
fn unused_statements(of: &Document<'_>, pieces: &Pieces, found: &[UnnumberedStep]) -> Vec<Unmapped> {
    let piece_at = |at: usize| pieces.pieces.iter().position(|it| it.span.contains(&at));
    let mut unmapped = Vec::new();
    for it in &of.statements {
        let piece = piece_at(it.at).filter(|nth| *nth < found.len());
        let is_title = it.form != Form::Parentheses
            && piece.is_some_and(|nth| it.at < first_line_end(of, &pieces.pieces[nth]));
        let why = match (&it.kind, piece) {
            (Kind::Loose, _) => "these words about steps were not read",
            (_, Some(_)) if is_title => "these words are the title of a step",
            (Kind::Waits(_), Some(_)) => continue,
            // Below a heading such as `Dependencies`, many documents list packages, which are not reported.
            (kind @ Kind::Waits(_), None) if it.form == Form::Section && !kind.has_numbers() => continue,
            (Kind::Waits(_), None) => "only a step can wait for others",
            (Kind::Status(Some(status)), Some(nth)) if found[nth].new_status() == *status => continue,
            (Kind::Status(Some(_)), Some(_)) => "the step has another status",
            (Kind::Status(None), Some(_)) => "this is not a status of a step",
            (Kind::Status(_), None) => "this status belongs to no step",
        };
        unmapped.push(of.unmapped(it.at, why, &it.text));
    }
    for nth in pieces::boxes(&of.visible, &of.outline) {
        let item = &of.outline.items[nth];
        if !found.is_empty() && piece_at(item.span.start).is_none() {
            let why = "this task box is not a step, because the steps have another form";
            unmapped.push(of.unmapped(item.span.start, why, of.body[item.span.clone()].trim_end()));
        }
    }
    for heading in of.outline.headings.iter().filter(|it| piece_at(it.span.start).is_none()) {
        let Some(status) = label::status(&heading.text, of.words) else { continue };
        let name = label::clean(&heading.text);
        let mut inside = found.iter().filter(|it| it.phase.as_deref() == Some(name.as_str())).peekable();
        if inside.peek().is_none() || inside.any(|it| it.new_status() != status) {
            let why = "a phase has no status of its own";
            unmapped.push(of.unmapped(heading.span.start, why, &heading.text));
        }
    }
    unmapped
}

fn of_heading(of: &Document<'_>, piece: &Piece, nth: usize) -> UnnumberedStep {
    let heading = &of.outline.headings[nth];
    let label = label::label(&heading.text);
    let (done, all) = of.outline.tasks_in(&piece.span);
    let ticked = (all > 0 && done == all).then_some(StepStatus::Completed);
    let (stated, waits) = statements_of(of, piece);
    let status = label::status(&heading.text, of.words).or(stated);
    let by = usize::from(heading.level.saturating_sub(1));
    let below = raised(of, heading.span.end..piece.span.end, by);
    let title = label.as_ref().map_or(heading.text.as_str(), |it| it.rest);
    let title = without_parentheses(title, &heading.text);
    UnnumberedStep {
        title: label::without_status(&title, of.words),
        label: label.map(|it| (it.rank, it.number.to_owned())),
        status,
        default: ticked.unwrap_or(StepStatus::Pending),
        phase: piece.phase.clone(),
        waits,
        body: format!("# {}\n{}", heading.text, without_rule(&below)),
        ..UnnumberedStep::default()
    }
}

/// The text of a step without the `---` line that separates it from the next step.
fn without_rule(text: &str) -> String {
    let end = text.trim_end();
    let end = end.strip_suffix("---").filter(|it| it.ends_with("\n\n")).unwrap_or(end).trim_end();
    format!("{end}\n")
}

/// Returns a range of the body. Its headings are raised by `by` levels, but not above level 2.
fn raised(of: &Document<'_>, range: Range<usize>, by: usize) -> String {
    let body = of.body;
    let mut text = String::new();
    let mut from = range.start;
    for heading in of.outline.headings.iter().filter(|it| range.contains(&it.span.start)) {
        let marks = &body[heading.span.start..];
        let n_marks = marks.len() - marks.trim_start_matches('#').len();
        text.push_str(&body[from..heading.span.start]);
        from = heading.span.start + n_marks.saturating_sub(2).min(by);
    }
    text + &body[from..range.end]
}

/// The text of an item below its title, without the item's indentation. The title ends at `start`.
fn below_item(of: &Document<'_>, item: &text_markdown::Item, start: usize) -> String {
    let below = start..item.span.end;
    let is_indented = |it: &Range<usize>| {
        let is_fence = |it: &str| it.starts_with("```") || it.starts_with("~~~");
        below.contains(&it.start) && !is_fence(of.body[it.clone()].trim_start())
    };
    if !of.outline.code.iter().any(is_indented) {
        return dedented(&of.body[below]);
    }
    let paragraph = (item.at + item.text.len()).saturating_sub(start);
    with_code(&of.body[below], content_column(of.body, item.span.start), paragraph)
}

fn of_item(of: &Document<'_>, piece: &Piece, nth: usize) -> UnnumberedStep {
    let item = &of.outline.items[nth];
    let odd = label::odd_box(&item.text);
    let text = odd.map_or(item.text.as_str(), |it| it.1);
    let at = item.at + item.text.len() - text.len();
    // A line that states a status or dependencies is not part of the title.
    let lines = text.match_indices('\n').map(|it| it.0 + 1);
    let end = lines.into_iter().find(|it| statements::begins(&text[*it..]));
    let text = text[..end.unwrap_or(text.len())].trim_end();
    let ticked = item.ticked.map(|it| if it { StepStatus::Completed } else { StepStatus::Pending });
    let (stated, waits) = statements_of(of, piece);
    let status = odd.map(|it| it.0).or(ticked.filter(|it| *it == StepStatus::Completed));
    let status = status.or_else(|| label::status(text, of.words)).or(stated);
    let label = label::label(text);
    let start = (at + text.len()).min(item.span.end);
    let below = below_item(of, item, start);
    let (title, mut own) = titled(text);
    let title = label::without_status(&title, of.words);
    if !below.trim().is_empty() {
        let is_box = |it: &str| {
            let it = it.trim_start_matches(['-', '*', '+', ' ']);
            it.starts_with("[ ]") || label::odd_box(it).is_some()
        };
        let has_boxes = of.outline.tasks_in(&(start..item.span.end)).1 > 0
            || of.visible[start..item.span.end].lines().any(is_box);
        own.push_str(if has_boxes { "\n## Tasks\n" } else { "\n" });
        own.push_str(below.trim_matches('\n'));
        own.push('\n');
    }
    UnnumberedStep {
        title,
        label: label.as_ref().map(|it: &Label<'_>| (it.rank, it.number.to_owned())),
        status,
        phase: piece.phase.clone(),
        waits,
        body: own,
        ..UnnumberedStep::default()
    }
}

/// The author's numbers of the steps, if every step has one.
fn own_numbers(found: &[UnnumberedStep]) -> Option<Vec<StepNumber>> {
    found.iter().map(|it| it.label.as_ref().and_then(|it| it.1.parse().ok())).collect()
}

/// Numbers the steps. If every step has an author's number, and these numbers ascend or `keeps_numbers` is true, they are
/// used, otherwise 1, 2, 3 … `lost` is called for each dependency that cannot be resolved. The result is sorted by number.
fn numbered(
    found: Vec<UnnumberedStep>,
    keeps_numbers: bool,
    lost: &mut dyn FnMut(&Wait, &'static str),
) -> Vec<(StepNumber, Draft)> {
    let is_usable = |all: &Vec<StepNumber>| keeps_numbers || all.windows(2).all(|it| it[0] < it[1]);
    let numbers = own_numbers(&found).filter(is_usable);
    let numbers = numbers.unwrap_or_else(|| (1..).take(found.len()).map(StepNumber::whole).collect());
    let waits = resolved(&found, &numbers, lost);
    let draft =
        |((it, number), (own, elsewhere)): ((UnnumberedStep, StepNumber), (Vec<StepNumber>, Vec<StepId>))| {
            let mut changes = vec![set_status(it.new_status())];
            let heading = text_markdown::sections(it.body.lines().next().unwrap_or_default());
            // A step whose heading is `Step 3: Title` has the title `Title`.
            let is_read = heading.title() == Some(&it.title) && without_step_prefix(&it.title) == it.title;
            changes.extend((!is_read).then(|| set_text("title", &it.title)));
            changes.extend(set_all_depends(&own, &elsewhere));
            changes.extend(it.due.map(|it| set_word("due", &it.to_string())));
            changes.extend(it.assignee.as_ref().map(|it| set_text("assignee", it)));
            changes.extend(it.phase.as_ref().map(|it| set_text("phase", it)));
            changes.extend(set_metadata("todo", &it.metadata));
            (
                number,
                Draft { text: it.body, changes, has_own_status: it.status.is_some(), ..Draft::default() },
            )
        };
    let mut steps: Vec<_> = found.into_iter().zip(numbers).zip(waits).map(draft).collect();
    steps.sort_by(|a, b| a.0.cmp(&b.0));
    steps
}

/// The dependencies of each step: the steps of its own plan, sorted, and those of other plans.
fn resolved(
    found: &[UnnumberedStep],
    numbers: &[StepNumber],
    lost: &mut dyn FnMut(&Wait, &'static str),
) -> Vec<(Vec<StepNumber>, Vec<StepId>)> {
    let mut called = Vec::new();
    for (it, number) in found.iter().zip(numbers) {
        let (label, phase) = (it.label.as_ref(), it.phase.as_deref());
        called.push(Called { label, id: label::id(&it.title), title: &it.title, phase, number });
    }
    let of_one = |(nth, it): (usize, &UnnumberedStep)| {
        let (mut own, mut elsewhere) = (Vec::new(), Vec::new());
        for wait in &it.waits {
            match (&wait.name, waits::meant(&wait.name, nth, &called)) {
                (Name::Elsewhere(id), _) if elsewhere.contains(id) => {}
                (Name::Elsewhere(id), _) => elsewhere.push(id.clone()),
                (_, Ok(steps)) => own.extend(steps.into_iter().map(|it| numbers[it].clone())),
                (_, Err(why)) => lost(wait, why),
            }
        }
        own.sort_unstable();
        own.dedup();
        (own, elsewhere)
    };
    found.iter().enumerate().map(of_one).collect()
}

/// The plan's text: the body without its steps, and without the headings that contained only steps. If there are no steps,
/// or they are items of a Steps list, the whole body.
fn rest(of: &Document<'_>, pieces: &Pieces, unmapped: &mut Vec<Unmapped>) -> String {
    let (body, outline) = (of.body, &of.outline);
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
            let why = "a heading that contained only the steps";
            unmapped.push(of.unmapped(heading.span.start, why, &heading.text));
        }
        cuts.push(heading.span.start..end);
    }
    without(body, 0..body.len(), &cuts)
}

/// The text of a range without the cuts; where something was cut, one blank line is left.
fn without(body: &str, range: Range<usize>, cuts: &[Range<usize>]) -> String {
    let mut cuts: Vec<_> = cuts.iter().filter(|it| it.start >= range.start && it.start < range.end).collect();
    cuts.sort_unstable_by_key(|it| (it.start, std::cmp::Reverse(it.end)));
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

/// If all line endings of the document are CRLF, the steps' files get CRLF, too.
fn in_line_ends_of(text: &str, mut steps: Vec<(StepNumber, Draft)>) -> Vec<(StepNumber, Draft)> {
    let is_crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    for (_, draft) in steps.iter_mut().filter(|_| is_crlf) {
        draft.text = draft.text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    steps
}

#[cfg(test)]
mod tests;
