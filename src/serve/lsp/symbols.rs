//! Document symbols and folding ranges for the parts of a text, and workspace symbols for plans and steps.

use std::collections::HashMap;
use std::ops::Range;

use lsp_server::RequestId;
use serde_json::{Value, json};

use super::anatomy;
use super::client::Client;
use super::documents::Document;
use super::protocol::{Answer, Failed};
use super::queues::Pending;
use super::tree::{PlanFile, Role, Tree};
use super::uri;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list::{self, Listed};
use crate::text::front_matter;
use crate::text::markdown;

/// The maximum number of workspace symbols in a response.
const MOST: usize = 500;

// The protocol's kinds of symbols.
const MODULE: u8 = 2;
const NAMESPACE: u8 = 3;
const STRING: u8 = 15;
const EVENT: u8 = 24;

/// The level of a phase of the Steps list, and of a step without a phase. The level of a step with a phase is one higher.
/// The levels of headings are 1 to 6.
const STEP_LEVEL: u8 = 7;

struct Symbol {
    name: String,
    detail: String,
    kind: u8,
    range: Range<usize>,
    selection: Range<usize>,
    level: u8,
}

impl Symbol {
    fn of_phase(name: &str, range: Range<usize>, selection: Range<usize>, level: u8) -> Self {
        let name = if name.is_empty() { "(no name)" } else { name };
        Self { name: name.to_owned(), detail: "phase".to_owned(), kind: NAMESPACE, range, selection, level }
    }
}

/// The phases of a plan's steps, by step number.
type Phases = HashMap<StepNumber, String>;

/// The phases of the steps of a file's plan, read from the open texts.
fn phases(tree: &mut Tree, file: &PlanFile) -> Phases {
    let judged = file.key.as_ref().and_then(|it| tree.judged(it).ok());
    let steps = judged.and_then(|it| it.plan()).into_iter().flat_map(|it| &it.steps);
    steps.filter_map(|it| Some((it.id.number.clone(), it.phase.clone()?))).collect()
}

/// Symbols for headings with their sections, for the lines of a Steps list, and for phases. In a Steps list, the range of a
/// phase contains the lines of its steps.
fn symbols(document: &Document, file: &PlanFile, phases: &Phases) -> Vec<Symbol> {
    let text = &document.text;
    let start = front_matter::split(text.as_bytes()).body_start();
    let body = &text[start..];
    let outline = markdown::outline(body);
    let mut found = Vec::new();
    for (nth, heading) in outline.headings.iter().enumerate() {
        let end = outline.headings[nth + 1..].iter().find(|it| it.level <= heading.level);
        let end = end.map_or(body.len(), |it| it.span.start);
        let line = body[heading.span.clone()].trim_end_matches(['\r', '\n']).len();
        let name = if heading.text.is_empty() { "(no title)" } else { &heading.text };
        found.push(Symbol {
            name: name.to_owned(),
            detail: String::new(),
            kind: if heading.level == 1 { MODULE } else { STRING },
            range: start + heading.span.start..start + end.max(heading.span.start + line),
            selection: start + heading.span.start..start + heading.span.start + line,
            level: heading.level,
        });
    }
    if let Some(plan) = file.plan().filter(|_| file.role == Role::Plan) {
        let lines = steps_list::read(&plan, &outline);
        found.extend(listed(body, start, &lines, phases));
    }
    found.extend(own_phase(document, file, phases));
    found.sort_by_key(|it| (it.range.start, it.level));
    found
}

/// Symbols for the lines of a Steps list. Consecutive lines with the same phase are children of a symbol of that phase.
fn listed(body: &str, start: usize, lines: &[Listed], phases: &Phases) -> Vec<Symbol> {
    let mut found: Vec<Symbol> = Vec::new();
    // The phase of the previous line, and the index of that phase's symbol.
    let mut open: Option<(&str, usize)> = None;
    for line in lines {
        let span = line.span();
        let end = span.start + body[span.clone()].trim_end().len();
        let first = span.start + body[span.start..end].find(['\r', '\n']).unwrap_or(end - span.start);
        let (range, selection) = (start + span.start..start + end, start + span.start..start + first);
        let phase = phases.get(&line.number).map(String::as_str);
        match (phase, open) {
            (Some(phase), Some((same, nth))) if phase == same => found[nth].range.end = range.end,
            (Some(phase), _) => {
                open = Some((phase, found.len()));
                found.push(Symbol::of_phase(phase, range.clone(), selection.clone(), STEP_LEVEL));
            }
            (None, _) => open = None,
        }
        found.push(Symbol {
            name: format!("{}: {}", line.number, line.title),
            detail: "step".to_owned(),
            kind: EVENT,
            range,
            selection,
            level: STEP_LEVEL + u8::from(phase.is_some()),
        });
    }
    found
}

/// A symbol for the phase of a step's file, at the line with the key `phase`.
fn own_phase(document: &Document, file: &PlanFile, phases: &Phases) -> Option<Symbol> {
    let phase = phases.get(&file.step()?.number)?;
    let (_, key) = anatomy::keys(&document.text).into_iter().find(|it| it.0 == "phase")?;
    let line = document.line(document.line_of(key.start));
    Some(Symbol::of_phase(phase, line.clone(), line, 1))
}

pub(super) fn document_symbols(
    tree: &mut Tree,
    document: &Document,
    file: &PlanFile,
    client: &Client,
) -> Answer {
    let found = symbols(document, file, &phases(tree, file));
    if !client.nests_symbols {
        let flat = |it: &Symbol| {
            let location = json!({"uri": document.uri, "range": document.range(&it.range)});
            json!({"name": it.name, "kind": it.kind, "location": location})
        };
        return Ok(found.iter().map(flat).collect());
    }
    let mut rest = found.as_slice();
    Ok(nested(document, &mut rest, 0).into())
}

/// Removes the symbols at the start of `rest` whose level is greater than `level`, and returns them with their children.
fn nested(document: &Document, rest: &mut &[Symbol], level: u8) -> Vec<Value> {
    let mut found = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        if first.level <= level {
            break;
        }
        *rest = after;
        let children = nested(document, rest, first.level);
        found.push(json!({
            "name": first.name,
            "detail": first.detail,
            "kind": first.kind,
            "range": document.range(&first.range),
            "selectionRange": document.range(&first.selection),
            "children": children,
        }));
    }
    found
}

pub(super) fn folding(tree: &mut Tree, document: &Document, file: &PlanFile) -> Answer {
    let mut found = Vec::new();
    let mut fold = |range: &Range<usize>, kind: &str| {
        let text = document.text[range.clone()].trim_end();
        let (first, last) = (document.line_of(range.start), document.line_of(range.start + text.len()));
        if last > first {
            found.push(json!({"startLine": first, "endLine": last, "kind": kind}));
        }
    };
    if let Some(header) = anatomy::header(&document.text) {
        let closed = front_matter::split(document.text.as_bytes()).body_start();
        fold(&(0..closed.max(header.end)), "region");
        for (first, last) in blocks(document, &header) {
            fold(&(document.line(first).start..document.line(last).end), "region");
        }
    }
    for symbol in symbols(document, file, &phases(tree, file)) {
        fold(&symbol.range, "region");
    }
    Ok(found.into())
}

/// The first and last lines of those keys of a front matter that take more than one line with their values.
fn blocks(document: &Document, header: &Range<usize>) -> Vec<(usize, usize)> {
    let keys = anatomy::keys(&document.text);
    let starts: Vec<_> = keys.iter().map(|(_, range)| document.line_of(range.start)).collect();
    let end = document.line_of(header.end);
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts
        .iter()
        .copied()
        .zip(ends.map(|it| it.saturating_sub(1)))
        .filter(|(first, last)| last > first)
        .collect()
}

/// Plans and steps whose id and title together contain every word of the query. In each plans directory, archived ones come
/// last.
pub(super) fn workspace_symbols(
    (pending, id): (&Pending, &RequestId),
    trees: &[Tree],
    query: &str,
) -> Answer {
    let words: Vec<_> = query.split_whitespace().map(str::to_lowercase).collect();
    let fits = |it: &str| {
        let it = it.to_lowercase();
        words.iter().all(|word| it.contains(word))
    };
    let start = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}});
    let mut found = Vec::new();
    for tree in trees {
        let symbol = |name: String, kind: u8, path: &str, of: &str| {
            let location = json!({"uri": uri::of_path(&tree.root.join(path)), "range": start});
            json!({"name": name, "kind": kind, "location": location, "containerName": of})
        };
        for plan in tree.catalog.iter().flat_map(|it| it.all()) {
            if pending.is_cancelled(id) {
                return Err(Failed::cancelled());
            }
            if fits(&format!("{} {}", plan.id, plan.title)) {
                found.push(symbol(format!("{}: {}", plan.id, plan.title), MODULE, &plan.path, ""));
            }
            for step in &plan.steps {
                if fits(&format!("{}:{} {}", plan.id, step.number, step.title)) {
                    let path = if step.has_file { plan.step_path(step) } else { plan.path.to_string() };
                    let name = format!("{}:{}: {}", plan.id, step.number, step.title);
                    found.push(symbol(name, EVENT, &path, plan.id.as_str()));
                }
            }
            if found.len() >= MOST {
                found.truncate(MOST);
                return Ok(found.into());
            }
        }
    }
    Ok(found.into())
}
