//! Completion: keys, words, steps, plans, people, and whole files.
//!
//! The kind of completion is decided from the text alone, before any plan is read, so completion in prose is cheap.

use std::ops::Range;

use serde_json::{Value, json};

use super::anatomy::{self, List, Spot};
use super::catalog::Catalog;
use super::client::Client;
use super::documents::Document;
use super::keys;
use super::protocol::{Answer, Position};
use super::tree::{PlanFile, Role, Tree};
use crate::api::config::Config;
use crate::plan::id::{PlanId, StepId};
use crate::plan::step_number::StepNumber;
use crate::plan::words::{PlanStatus, Status, StepStatus};
use crate::text::scalar::{self, Place};

/// The maximum number of items in a response. If there are more, the client sends another request when the user types
/// more of the word.
const MOST: usize = 200;

// The protocol's kinds of completion items.
const VALUE: u8 = 12;
const PROPERTY: u8 = 10;
const REFERENCE: u8 = 18;
const SNIPPET: u8 = 15;
const CONSTANT: u8 = 21;

struct Item {
    label: String,
    /// The text to insert. If it is empty, the label is inserted.
    text: String,
    detail: String,
    about: String,
    kind: u8,
    /// A text that is compared with the typed word, in addition to the label.
    also: String,
}

impl Item {
    fn new(label: impl Into<String>, kind: u8) -> Self {
        let (text, detail, about, also) = Default::default();
        Self { label: label.into(), text, detail, about, kind, also }
    }

    fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    fn about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    fn written(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

pub(super) fn complete(
    tree: &mut Tree,
    document: &Document,
    file: &PlanFile,
    client: &Client,
    position: Position,
) -> Answer {
    let nothing = || Ok(json!({"isIncomplete": false, "items": []}));
    let at = document.offset(position);
    if file.role == Role::OutsidePlans {
        return nothing();
    }
    let Some(spot) = anatomy::spot(&document.text, at) else { return nothing() };
    let (word, items) = match spot {
        Spot::Empty => (0..document.text.len(), templates(tree, file)),
        Spot::Key { word } => {
            let items = key_items(&document.text, file, &word);
            (word, items)
        }
        Spot::Nested { key, inner, word } => (word, nested(tree, &key, &inner)),
        Spot::Value { key, word, list } => {
            let typed = document.text[word.start..at.clamp(word.start, word.end)].to_owned();
            let items = values(tree, file, &key, (&typed, list));
            (word, items)
        }
        Spot::StepsLine { word } => {
            let typed = document.text[word.clone()].to_owned();
            let items = steps(tree, file, &typed, "step-");
            (word, items)
        }
        Spot::Dependencies { word } => {
            let typed = document.text[word.clone()].to_owned();
            let items = if typed.is_empty() { Vec::new() } else { steps(tree, file, &typed, "step-") };
            (word, items)
        }
    };
    let typed = &document.text[word.start..at.clamp(word.start, word.end)];
    let mut list = list(document, client, &word, typed, items);
    // If not all plans are loaded yet, the client has to request the list again.
    if tree.catalog.is_none() {
        list["isIncomplete"] = true.into();
    }
    Ok(list)
}

fn list(
    document: &Document,
    client: &Client,
    word: &Range<usize>,
    typed: &str,
    mut items: Vec<Item>,
) -> Value {
    // If items can be found by their titles, the list is marked as incomplete. The client then sends another request
    // when the user types more of the word.
    let is_incomplete = items.len() > MOST || items.iter().any(|it| !it.also.is_empty());
    let wanted = typed.to_lowercase();
    if items.len() > MOST {
        let is_near =
            |it: &Item| it.label.to_lowercase().contains(&wanted) || it.also.to_lowercase().contains(&wanted);
        items.retain(|it| wanted.is_empty() || is_near(it));
        items.truncate(MOST);
    }
    let range = document.range(word);
    let one = |(nth, it): (usize, Item)| {
        let text = if it.text.is_empty() { &it.label } else { &it.text };
        let is_snippet = it.kind == SNIPPET && client.has_snippets;
        let text = if is_snippet { text.clone() } else { without_stops(text, it.kind) };
        let mut item = json!({
            "label": it.label,
            "kind": it.kind,
            "sortText": format!("{nth:05}"),
            "insertTextFormat": if is_snippet { 2 } else { 1 },
            "textEdit": {"range": range, "newText": text},
        });
        // `filterText` is set only if it is needed. If an item has one, some clients ignore the range and replace a word
        // that they determine themselves.
        if !it.label.starts_with(typed) && it.also.to_lowercase().contains(&wanted) {
            item["filterText"] = format!("{typed} {}", it.also).into();
        }
        if !it.detail.is_empty() && client.has_label_details {
            item["labelDetails"] = json!({"description": it.detail});
        }
        if !it.detail.is_empty() {
            item["detail"] = it.detail.into();
        }
        if !it.about.is_empty() {
            item["documentation"] = json!({"kind": "markdown", "value": it.about});
        }
        item
    };
    json!({"isIncomplete": is_incomplete, "items": items.into_iter().enumerate().map(one).collect::<Vec<_>>()})
}

/// Replaces each tab stop of a snippet with its default text. Texts of other kinds are returned unchanged.
fn without_stops(text: &str, kind: u8) -> String {
    if kind != SNIPPET {
        return text.to_owned();
    }
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('{') {
            Some(inner) => {
                let end = inner.find('}').unwrap_or(inner.len());
                plain.push_str(inner[..end].split_once(':').map_or("", |it| it.1));
                rest = inner.get(end + 1..).unwrap_or_default();
            }
            None => rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()),
        }
    }
    plain + rest
}

fn key_items(text: &str, file: &PlanFile, word: &Range<usize>) -> Vec<Item> {
    let there: Vec<_> =
        anatomy::keys(text).into_iter().filter(|(_, range)| range != word).map(|it| it.0).collect();
    let has_colon = text[word.end..].starts_with(':');
    let item = |(key, meaning): (&str, &str)| {
        let written = if has_colon { key.to_owned() } else { format!("{key}: ") };
        Item::new(key, PROPERTY).written(written).about(meaning)
    };
    let is_free = |key: &str| !there.iter().any(|it| it == key) && !keys::is_written_by_planwatch(key);
    keys::all(&file.role).into_iter().filter(|it| is_free(it.0)).map(item).collect()
}

fn nested(tree: &Tree, key: &str, inner: &str) -> Vec<Item> {
    match inner {
        // The value is often between braces.
        "by" => people(tree, Place::Flow),
        "outcome" => keys::OUTCOMES.iter().map(|it| Item::new(*it, CONSTANT)).collect(),
        "type" if key == "notes" => {
            ["info", "warning", "instruction"].map(|it| Item::new(it, CONSTANT)).into()
        }
        "at" => now(tree).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn now(tree: &Tree) -> Option<Item> {
    let now = tree.context().ok()?.now.whole_seconds();
    Some(Item::new(now.to_string(), VALUE).detail("now"))
}

/// A name or another text that is a value; quoted if YAML requires it.
fn named(text: &str, place: Place) -> Item {
    Item::new(text, VALUE).written(scalar::inline(text, place))
}

fn people(tree: &Tree, place: Place) -> Vec<Item> {
    let by = tree.context().map(|it| it.by).ok();
    let others = tree.catalog.iter().flat_map(|it| &it.words.people).filter(|it| by.as_ref() != Some(*it));
    by.iter().chain(others).map(|it| named(it, place)).collect()
}

fn values(tree: &mut Tree, file: &PlanFile, key: &str, (typed, list): (&str, List)) -> Vec<Item> {
    let is_in_brackets = list == List::Flow || list == List::No && keys::is_list(key);
    let place = if is_in_brackets { Place::Flow } else { Place::Block };
    // If the key needs a list and no list has been typed, each item is inserted with brackets.
    let bracketed = |items: Vec<Item>| match keys::is_list(key) && list == List::No {
        true => items.into_iter().map(|it| bracketed(it, typed)).collect(),
        false => items,
    };
    let seen = |of: fn(&super::catalog::Vocabulary) -> &std::collections::BTreeSet<String>, tree: &Tree| {
        let words = tree.catalog.iter().flat_map(|it| of(&it.words));
        words.map(|it| named(it, place)).collect::<Vec<_>>()
    };
    match key {
        "status" => statuses(tree, file),
        "depends" => bracketed(steps(tree, file, typed, "")),
        "program" => plans(tree.catalog.as_ref(), file, true),
        "phase" | "confirm_phases" => bracketed(seen(|it| &it.phases, tree)),
        "tags" => bracketed(seen(|it| &it.tags, tree)),
        "assignee" => people(tree, place),
        "type" => {
            let known: Vec<_> = keys::words(key).into_iter().map(|it| Item::new(it, CONSTANT)).collect();
            let is_own = |it: &Item| known.iter().all(|known| known.label != it.label);
            let own: Vec<_> = seen(|it| &it.types, tree).into_iter().filter(is_own).collect();
            known.into_iter().chain(own).collect()
        }
        "due" => {
            let today = now(tree).map(|it| it.label.chars().take(10).collect::<String>());
            today.map(|it| Item::new(it, VALUE).detail("today")).into_iter().collect()
        }
        other => keys::words(other).into_iter().map(|it| Item::new(it, CONSTANT)).collect(),
    }
}

fn bracketed(item: Item, typed: &str) -> Item {
    let text = if item.text.is_empty() { &item.label } else { &item.text };
    let text = if typed.starts_with('[') { text.clone() } else { format!("[{text}]") };
    item.written(text)
}

fn statuses(tree: &Tree, file: &PlanFile) -> Vec<Item> {
    let config = tree.context().map(|it| it.config).unwrap_or_default();
    match file.role {
        Role::Plan => words_of::<PlanStatus>(&config),
        _ => words_of::<StepStatus>(&config),
    }
}

fn words_of<S: Status>(config: &Config) -> Vec<Item> {
    let canonical = S::ALL.iter().map(|it| Item::new(it.word(), CONSTANT));
    let own = config.words.own::<S>().map(|(word, means)| Item::new(word, CONSTANT).detail(means.word()));
    canonical.chain(own).collect()
}

/// First come the steps of the file's own plan: those before the file's step in descending order, then those after it. If
/// the typed word begins with a plan's id and `:` or `/`, the steps of that plan follow. Otherwise, if the word is empty or
/// begins with a letter, the ids of the other plans follow. `before` is the prefix for the step numbers of the file's own
/// plan, such as `step-`.
fn steps(tree: &mut Tree, file: &PlanFile, typed: &str, before: &str) -> Vec<Item> {
    let Some(key) = file.key.clone() else { return Vec::new() };
    let own = file.step();
    let before = if typed.starts_with("step-") { "step-" } else { before };
    let mut items = Vec::new();
    if let Ok(judged) = tree.judged(&key)
        && let Some(plan) = judged.plan()
    {
        let others = plan.steps.iter().filter(|it| own.as_ref() != Some(&it.id));
        let (earlier, later): (Vec<_>, Vec<_>) =
            others.partition(|it| own.as_ref().is_some_and(|own| it.id.number < own.number));
        for step in earlier.into_iter().rev().chain(later) {
            items.push(step_item(format!("{before}{}", step.id.number), &step.title, step.status.word()));
        }
    }
    let Some(catalog) = &tree.catalog else { return items };
    if let Some(plan) = typed.split_once([':', '/']).and_then(|it| catalog.get(&PlanId::new(it.0))) {
        for step in &plan.steps {
            let id = StepId { plan: plan.id.clone(), number: step.number.clone() };
            items.push(step_item(id.to_string(), &step.title, step.status.word()));
        }
    } else if typed.is_empty() || typed.starts_with(|c: char| c.is_alphabetic()) {
        items.extend(plans(Some(catalog), file, false).into_iter().map(|it| {
            let text = format!("{}:", it.label);
            it.written(text)
        }));
    }
    items
}

fn step_item(label: String, title: &str, status: &str) -> Item {
    let also = title.to_owned();
    Item { also, ..Item::new(label, REFERENCE).detail(format!("{title} · {status}")) }
}

fn plans(catalog: Option<&Catalog>, file: &PlanFile, are_programs: bool) -> Vec<Item> {
    let own = file.plan();
    let all = catalog.into_iter().flat_map(Catalog::live);
    let wanted = all.filter(|it| own.as_ref() != Some(&it.id) && (!are_programs || it.is_program));
    wanted
        .map(|it| {
            let detail = format!("{} · {}/{}", it.title, it.n_closed(), it.steps.len());
            Item { also: it.title.to_string(), ..Item::new(it.id.as_str(), REFERENCE).detail(detail) }
        })
        .collect()
}

fn templates(tree: &Tree, file: &PlanFile) -> Vec<Item> {
    match &file.role {
        Role::Plan => {
            let text = "---\nstatus: active\n---\n# ${1:Title}\n\n${2:What it is about.}\n";
            let listed = format!("{text}\n## Steps\n\n- step-1: ${{3:First step}}\n");
            vec![
                Item::new("plan", SNIPPET).written(text).about("A plan with a title and a description."),
                Item::new("plan with steps", SNIPPET).written(listed).about("A plan with a Steps list."),
            ]
        }
        Role::Step(number) => vec![step_template(tree, file, number)],
        Role::OutsidePlans => Vec::new(),
    }
}

fn step_template(tree: &Tree, file: &PlanFile, number: &StepNumber) -> Item {
    let plan = file.key.as_ref().and_then(|it| tree.catalog.as_ref()?.at(it));
    let before = plan.and_then(|it| it.steps.iter().map(|it| &it.number).filter(|it| *it < number).max());
    let depends = before.map(|it| format!("depends: [{it}]\n")).unwrap_or_default();
    let title = plan.and_then(|it| it.step(number)).map(|it| it.title.to_string());
    let title =
        title.filter(|it| !it.is_empty() && !it.contains(['$', '}'])).unwrap_or_else(|| "Title".to_owned());
    let id = file.step().map(|it| format!("id: {it}\n")).unwrap_or_default();
    let text = format!(
        "---\n{id}status: pending\n{depends}---\n# ${{1:{title}}}\n\n## Tasks\n\n- [ ] ${{2:First task}}\n\n## Acceptance\n\n- [ ] ${{3:How to tell that it is done}}\n"
    );
    Item::new("step", SNIPPET).written(text).about("A step with tasks and acceptance criteria.")
}
