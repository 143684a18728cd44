//! Navigation between references and their targets: definition, references, links, highlights.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use super::catalog::PlanEntry;
use super::documents::{Document, Documents};
use super::positions::Encoding;
use super::protocol::{Answer, Position};
use super::references::{self, Form, Named, Target};
use super::tree::{DIRECTORIES_OUTSIDE_PLANS, PlanFile, Role, Tree};
use super::uri;
use crate::api::context::Context;
use crate::plan::id::StepId;
use crate::text::front_matter;
use crate::text::markdown;

/// The path of a target's file, relative to the plans directory. If a step has no file, it is the path of the plan's file.
fn file_of(tree: &mut Tree, file: &PlanFile, target: &Target) -> Option<String> {
    if let Some(key) = &file.key
        && let Ok(judged) = tree.judged(key)
    {
        match target {
            Target::Plan(id) => {
                if let Some(plan) = judged.plans.get(id) {
                    return Some(plan.path.clone());
                }
            }
            Target::Step(id) => {
                if let Some(step) = judged.plans.step(id) {
                    let plan = judged.plans.get(&id.plan).map(|it| it.path.clone());
                    return if step.has_file() { Some(step.path.clone()) } else { plan };
                }
            }
        }
    }
    let catalog = tree.catalog.as_ref()?;
    match target {
        Target::Plan(id) => catalog.get(id).map(|it| it.path.to_string()),
        Target::Step(id) => {
            let (plan, step) = catalog.step(id)?;
            Some(if step.has_file { plan.step_path(step) } else { plan.path.to_string() })
        }
    }
}

/// The text of a file: the open text if the file is open, otherwise the text on disk.
fn document_of(tree: &Tree, documents: &Documents, relative: &str, encoding: Encoding) -> Option<Document> {
    let open = tree.open_path(relative).and_then(|it| documents.at(it)).cloned();
    open.or_else(|| saved_document(&tree.context().ok()?, tree, relative, encoding))
}

fn saved_document(context: &Context, tree: &Tree, relative: &str, encoding: Encoding) -> Option<Document> {
    let bytes = context.plans.read(Path::new(relative)).ok()?.bytes;
    let (path, text) = (tree.root.join(relative), String::from_utf8(bytes).ok()?);
    Some(Document::new(uri::of_path(&path), path, 0, text, encoding))
}

/// The first heading of level 1. If there is none, the first line of the file.
pub(super) fn heading(text: &str) -> Range<usize> {
    let start = front_matter::split(text.as_bytes()).body_start();
    let outline = markdown::sections(&text[start..]);
    let Some(heading) = outline.headings.iter().find(|it| it.level == 1) else {
        return 0..text.find(['\r', '\n']).unwrap_or(text.len());
    };
    let line = &text[start + heading.span.start..start + heading.span.end];
    let len = line.find(['\r', '\n']).unwrap_or(line.len());
    start + heading.span.start..start + heading.span.start + len
}

fn location(document: &Document, range: &Range<usize>) -> Value {
    json!({"uri": document.uri, "range": document.range(range)})
}

/// The target at an offset, and the range of text that names it. In the range of [`heading`], the target is the file's own
/// plan or step, unless a reference is there.
pub(super) fn target_at(document: &Document, file: &PlanFile, at: usize) -> Option<(Target, Range<usize>)> {
    let named = references::all(&document.text, file);
    if let Some(it) = references::at(&named, at) {
        return Some((it.target.clone(), it.range.clone()));
    }
    let heading = heading(&document.text);
    if !(heading.start..=heading.end).contains(&at) {
        return None;
    }
    let own = match &file.role {
        Role::Plan => Target::Plan(file.plan()?),
        Role::Step(_) => Target::Step(file.step()?),
        Role::OutsidePlans => return None,
    };
    Some((own, heading))
}

pub(super) fn definition(
    tree: &mut Tree,
    documents: &Documents,
    document: &Document,
    file: &PlanFile,
    (position, encoding): (Position, Encoding),
) -> Answer {
    let Some((target, _)) = target_at(document, file, document.offset(position)) else {
        return Ok(Value::Null);
    };
    let Some(relative) = file_of(tree, file, &target) else { return Ok(Value::Null) };
    let Some(found) = document_of(tree, documents, &relative, encoding) else { return Ok(Value::Null) };
    let line = match &target {
        Target::Step(id) => listed_line(&found, &relative, id),
        Target::Plan(_) => None,
    };
    let range = line.unwrap_or_else(|| heading(&found.text));
    Ok(location(&found, &range))
}

/// The line of a step in the Steps list. `None` if the step is not listed, or the file is not a `plan.md`.
fn listed_line(document: &Document, relative: &str, id: &StepId) -> Option<Range<usize>> {
    let (key, name) = super::catalog::place(Path::new(relative))?;
    if name != crate::plan::file_name::PLAN_FILE {
        return None;
    }
    let file = PlanFile { relative: relative.to_owned(), role: Role::Plan, key: Some(key) };
    let named = references::all(&document.text, &file);
    let is_own = |it: &&Named| it.form == Form::Listed && it.target == Target::Step(id.clone());
    let found = named.iter().find(is_own)?;
    Some(document.line(document.line_of(found.range.start)))
}

/// The references to a target. If the target is a plan, references to its steps are included. The function searches the
/// target's plan, the plans that `Catalog::affected_by` lists, open files, and files that belong to no plan. The search ends
/// early when `is_stopped` returns true.
pub(super) fn all_names(
    tree: &Tree,
    documents: &Documents,
    target: &Target,
    encoding: Encoding,
    is_stopped: &dyn Fn() -> bool,
) -> Vec<(Document, Vec<Named>)> {
    let plan = match target {
        Target::Step(id) => &id.plan,
        Target::Plan(id) => id,
    };
    let mut files = Vec::new();
    if let Some(catalog) = &tree.catalog {
        let affected = catalog.affected_by(plan);
        let own = catalog.get(plan);
        let plans = own.into_iter().chain(affected.iter().filter_map(|it| catalog.at(it)));
        files.extend(plans.flat_map(files_of));
    }
    files.extend(tree.open_files().map(|(_, file)| file.relative.clone()));
    let open: HashMap<_, _> = tree.open_files().map(|(path, file)| (file.relative.as_str(), path)).collect();
    // All files share one context. A plan can have hundreds of files, and making a context costs more than reading one.
    let Ok(context) = tree.context() else { return Vec::new() };
    files.extend(files_outside_plans(&context));
    files.sort_unstable();
    files.dedup();
    let mut found = Vec::new();
    for relative in files {
        if is_stopped() {
            break;
        }
        let typed = open.get(relative.as_str()).and_then(|it| documents.at(it)).cloned();
        let document = typed.or_else(|| saved_document(&context, tree, &relative, encoding));
        let (Some(document), Some(file)) = (document, PlanFile::at(Path::new(&relative))) else { continue };
        let mut named = references::all(&document.text, &file);
        named.retain(|it| it.target == *target || is_step_of(&it.target, target));
        if !named.is_empty() {
            found.push((document, named));
        }
    }
    found
}

/// The paths of decisions, insights, scripts and prompts, which can name any plan.
fn files_outside_plans(context: &Context) -> Vec<String> {
    let of = |directory: &&str| {
        let names = context.plans.names(Path::new(directory.trim_end_matches('/'))).into_iter();
        let names = names.filter(|it| it.ends_with(".md") && !it.starts_with('.'));
        names.map(|it| format!("{directory}{it}")).collect::<Vec<_>>()
    };
    DIRECTORIES_OUTSIDE_PLANS.iter().flat_map(of).collect()
}

/// Whether `named` is a step of the plan `target`.
fn is_step_of(named: &Target, target: &Target) -> bool {
    matches!((named, target), (Target::Step(step), Target::Plan(plan)) if step.plan == *plan)
}

fn files_of(plan: &PlanEntry) -> Vec<String> {
    let steps = plan.steps.iter().filter(|it| it.has_file).map(|it| plan.step_path(it));
    std::iter::once(plan.path.to_string()).chain(steps).collect()
}

pub(super) fn references(
    tree: &mut Tree,
    documents: &Documents,
    (document, file): (&Document, &PlanFile),
    (position, encoding): (Position, Encoding),
    has_declaration: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Answer {
    let Some((target, _)) = target_at(document, file, document.offset(position)) else {
        return Ok(Value::Null);
    };
    let mut found = Vec::new();
    for (document, named) in all_names(tree, documents, &target, encoding, is_stopped) {
        // In a plan's own files, a step can be named by its number alone. Such a name is not a reference to the plan.
        let is_wanted =
            |it: &&Named| it.target == target || document.text[it.range.clone()].contains(plan_name(&target));
        let is_wanted = |it: &&Named| is_wanted(it) && (has_declaration || it.form != Form::Id);
        found.extend(named.iter().filter(is_wanted).map(|it| location(&document, &it.range)));
    }
    if has_declaration
        && let Some(own) = file_of(tree, file, &target)
        && let Some(own) = document_of(tree, documents, &own, encoding)
    {
        found.insert(0, location(&own, &heading(&own.text)));
    }
    Ok(found.into())
}

fn plan_name(target: &Target) -> &str {
    match target {
        Target::Step(id) => id.plan.as_str(),
        Target::Plan(id) => id.as_str(),
    }
}

pub(super) fn highlights(document: &Document, file: &PlanFile, position: Position) -> Answer {
    let at = document.offset(position);
    let named = references::all(&document.text, file);
    let Some(target) = references::at(&named, at).map(|it| it.target.clone()) else { return Ok(Value::Null) };
    let same = named.iter().filter(|it| it.target == target);
    Ok(same.map(|it| json!({"range": document.range(&it.range), "kind": 2})).collect())
}

pub(super) fn links(tree: &mut Tree, document: &Document, file: &PlanFile) -> Answer {
    let mut links = Vec::new();
    for named in references::all(&document.text, file).iter().filter(|it| it.form != Form::Id) {
        if let Some(relative) = file_of(tree, file, &named.target) {
            let target = uri::of_path(&tree.root.join(&relative));
            let tooltip = title(tree, &named.target).unwrap_or(relative);
            links.push(json!({"range": document.range(&named.range), "target": target, "tooltip": tooltip}));
        }
    }
    Ok(links.into())
}

fn title(tree: &Tree, target: &Target) -> Option<String> {
    let catalog = tree.catalog.as_ref()?;
    match target {
        Target::Step(id) => catalog.step(id).map(|(_, step)| step.title.to_string()),
        Target::Plan(id) => catalog.get(id).map(|it| it.title.to_string()),
    }
}
