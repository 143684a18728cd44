//! A list of steps for a plan: read from Markdown, JSON or YAML, matched with the existing steps, and numbered.

mod json;
mod places;

use crate::plan::id::{PlanId, StepId};
use crate::plan::import::{self, Draft};
use crate::plan::model::Plan;
use crate::plan::references;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::plan::words::{StepStatus, Words};
use crate::text::data::{self, NotData};
use crate::text::header_edit::{Change, NewValue};
use crate::text::line_index::{self, Place};
use crate::text::{markdown, yaml};

pub(crate) use places::{Places, places};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepItem {
    pub(crate) title: String,
    /// The number that the list states for the item, if any.
    pub(crate) number: Option<StepNumber>,
    /// The text below the heading, with LF line ends; empty if there is none.
    pub(crate) text: String,
    /// The item's front matter keys, without `id`, `title` and `depends`. The status in them is used only for a new file.
    pub(crate) keys: Vec<Change>,
    /// The status that the list gives; `None`: an existing step keeps its status.
    pub(crate) status: Option<StepStatus>,
    pub(crate) notes: Vec<String>,
    /// `None`: the list states no dependencies for the item.
    pub(crate) depends: Option<Vec<Dependency>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// Another item of the list, by its index.
    Item(usize),
    /// An existing step.
    Step(StepId),
    /// An existing step. If the list removes that step, the item with this index.
    Either(StepId, usize),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSteps {
    #[error("it contains no steps")]
    None,
    #[error("{line}:{column}: {reason}")]
    At { line: usize, column: usize, reason: String },
    #[error("item {item}: {reason}")]
    Item { item: usize, reason: String },
}

/// Reads a list of steps: as JSON if the text begins with `{` or `[` but not with `[[`, otherwise as Markdown. The
/// second value of the result is whether there is other text around the steps.
pub(crate) fn read(plan: &Plan, text: &str, words: &Words) -> Result<(Vec<StepItem>, bool), NotSteps> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let is_json = start.starts_with(['[', '{']) && !start.starts_with("[[");
    let (items, has_more) = match is_json {
        true => (json::read(plan, text, words)?, false),
        false => of_markdown(plan, text, words)?,
    };
    if items.is_empty() { Err(NotSteps::None) } else { Ok((items, has_more)) }
}

/// Reads a YAML list of titles or of mappings. The mappings have the same fields as the objects in JSON.
pub(crate) fn read_yaml(plan: &Plan, text: &str, words: &Words) -> Result<Vec<StepItem>, NotSteps> {
    let value = data::read(text).map_err(|NotData { place, reason }| at(place, reason))?;
    let items = json::items(plan, &value, words).map_err(|it| with_place(it, text))?;
    if items.is_empty() { Err(NotSteps::None) } else { Ok(items) }
}

/// Adds the item's line and column to an error, because the parsed values have no positions.
fn with_place(error: NotSteps, text: &str) -> NotSteps {
    let NotSteps::Item { item, .. } = error else { return error };
    let Ok(tree) = yaml::parse_node(text) else { return error };
    let list = tree.root().get("steps").unwrap_or(tree.root());
    let Some(found) = list.items().nth(item - 1) else { return error };
    at(line_index::place(text.as_bytes(), found.span().start), error.to_string())
}

fn at(Place { line, column }: Place, reason: String) -> NotSteps {
    NotSteps::At { line: line as usize, column: column as usize, reason }
}

fn of_markdown(plan: &Plan, text: &str, words: &Words) -> Result<(Vec<StepItem>, bool), NotSteps> {
    let (steps, around) = match is_bare(text) {
        true => import::list(text, words),
        false => sectioned(text, words)?,
    };
    let has_more = !steps_are_in(&around) && around.lines().any(|it| !it.trim().is_empty() && !is_title(it));
    let headings =
        steps.iter().map(|(_, it)| it.text.lines().next().unwrap_or_default().trim_start_matches("# "));
    let labels: Vec<Option<StepNumber>> = headings.map(|it| own_name(it).map(|name| name.0)).collect();
    let counted: Vec<StepNumber> = steps.iter().map(|(number, _)| number.clone()).collect();
    let numbers = Numbers { labels, counted };
    let mut items = Vec::new();
    for (nth, (_, draft)) in steps.iter().enumerate() {
        let text = draft.text.replace("\r\n", "\n");
        let (heading, below) = text.split_once('\n').unwrap_or((&text, ""));
        let heading = heading.trim_start_matches("# ");
        let said = draft.changes.iter().find_map(|it| match it {
            Change::Set { key, value: NewValue::Text(title) } if key == "title" => Some(title.clone()),
            _ => None,
        });
        // An item that only names a step does not change the step's title.
        let is_name = own_name(heading).is_some_and(|it| it.1.is_empty());
        let step = numbers.labels[nth]
            .as_ref()
            .filter(|_| is_name)
            .and_then(|it| plan.steps.iter().find(|step| step.id.number == *it));
        let said = step.map(|it| it.title.clone()).or(said);
        let named = |it: &Change| matches!(it.key(), "title" | "depends" | "id");
        items.push(StepItem {
            title: said.unwrap_or_else(|| heading.to_owned()),
            number: numbers.labels[nth].clone(),
            text: below.trim_matches('\n').to_owned(),
            keys: draft.changes.iter().filter(|it| !named(it)).cloned().collect(),
            status: draft.has_own_status.then(|| status_of(&draft.changes, words)).flatten(),
            notes: Vec::new(),
            depends: waits(plan, nth, heading, &draft.changes, &numbers)?,
        });
    }
    Ok((items, has_more))
}

fn status_of(changes: &[Change], words: &Words) -> Option<StepStatus> {
    changes.iter().find_map(|it| match it {
        Change::Set { key, value: NewValue::Word(word) } if key == "status" => words.read(word),
        _ => None,
    })
}

/// Whether the text still contains a Steps list. If so, it is the text of a plan, not text around the steps.
fn steps_are_in(text: &str) -> bool {
    steps_list::names_steps(&PlanId::new("steps"), text)
}

/// Whether a text is a list without sections. Then all items are steps.
fn is_bare(text: &str) -> bool {
    let outline = markdown::outline(text);
    !outline.items.is_empty() && outline.headings.iter().all(|it| it.level == 1)
}

/// Reads a document as `import` does, but all items of a list are steps if some of them are.
fn sectioned(text: &str, words: &Words) -> Result<(Vec<(StepNumber, Draft)>, String), NotSteps> {
    check_own_list(text)?;
    Ok(import::sections(text, words))
}

/// Refuses a Steps list in which only some items name steps, because the other items would be ignored.
fn check_own_list(text: &str) -> Result<(), NotSteps> {
    let outline = markdown::outline(text);
    let listed = steps_list::read(&PlanId::new("steps"), &outline);
    let Some(section) = outline.section(|it| it == "Steps").filter(|_| !listed.is_empty()) else {
        return Ok(());
    };
    let items = outline.items.iter().filter(|it| !it.is_nested && section.contains(&it.span.start));
    let names = |text: &str| listed.iter().any(|it| text.contains(&format!("step-{}", it.number)));
    match items.enumerate().find(|(_, it)| !names(&it.text)) {
        Some((nth, _)) => {
            let reason =
                "it names no step, but other items below `## Steps` do; begin the item with `step-N:`"
                    .to_owned();
            Err(NotSteps::Item { item: nth + 1, reason })
        }
        None => Ok(()),
    }
}

fn is_title(line: &str) -> bool {
    line.starts_with("# ")
}

/// Returns the number in `step-2: …`, which identifies a step, and the text after the name. The number in `2. …` is only a list
/// number.
fn own_name(heading: &str) -> Option<(StepNumber, &str)> {
    let start = heading.trim_start_matches(['[', '*', '`']);
    let (word, rest) = start.split_at_checked("step-".len())?;
    let rest = word.eq_ignore_ascii_case("step-").then_some(rest)?;
    let number = references::number_at(rest);
    let behind = &rest[number.len()..];
    // The name can be the text of a link.
    let target = behind.strip_prefix("](").and_then(|it| it.split_once(')'));
    let behind = target.map_or(behind, |it| it.1).trim_matches([']', '*', '`', ':', ' ']);
    Some((number.parse().ok()?, behind))
}

struct Numbers {
    /// The numbers of items that begin with `step-N`.
    labels: Vec<Option<StepNumber>>,
    /// The numbers that the document gives the items; 1, 2, 3 … if an item has none, or if the numbers do not ascend.
    counted: Vec<StepNumber>,
}

impl Numbers {
    /// The item with this label or, if no item has a label, with this counted number.
    fn item(&self, number: &StepNumber) -> Option<usize> {
        let labelled = self.labels.iter().position(|it| it.as_ref() == Some(number));
        let has_labels = self.labels.iter().any(Option::is_some);
        labelled.or_else(|| self.counted.iter().position(|it| it == number).filter(|_| !has_labels))
    }
}

/// Returns the dependencies of an item: other items or, where no item matches, existing steps. `None` if the document
/// states none for the item.
fn waits(
    plan: &Plan,
    nth: usize,
    heading: &str,
    changes: &[Change],
    numbers: &Numbers,
) -> Result<Option<Vec<Dependency>>, NotSteps> {
    let listed = changes.iter().find_map(|it| match it {
        Change::Set { key, value: NewValue::List(items) } if key == "depends" => Some(items),
        _ => None,
    });
    let mut found: Vec<Dependency> = Vec::new();
    let number = |it: &NewValue| match it {
        NewValue::Word(word) => word.parse::<StepNumber>().ok(),
        _ => None,
    };
    let groups = references::groups(&plan.id, heading);
    let in_groups = |number: &StepNumber| {
        let mut items = groups.iter().flat_map(|it| &it.items).filter_map(|it| it.step.as_ref());
        items.any(|it| it.number == *number)
    };
    for number in listed.into_iter().flatten().filter_map(number).filter(|it| !in_groups(it)) {
        found.extend(numbers.counted.iter().position(|it| *it == number).map(Dependency::Item));
    }
    for item in groups.iter().flat_map(|it| &it.items) {
        let said = &heading[item.span.clone()];
        let Some(step) = &item.step else {
            let reason = format!("`{said}` is not a step; write a step number, or <plan>:<number>");
            return Err(NotSteps::Item { item: nth + 1, reason });
        };
        let own = numbers.item(&step.number).filter(|_| step.plan == plan.id);
        let is_name = said.to_ascii_lowercase().starts_with("step") && plan.find(step).is_some();
        let dependency = match own {
            Some(item) if is_name && numbers.labels[item].is_none() => Dependency::Either(step.clone(), item),
            Some(item) => Dependency::Item(item),
            None => Dependency::Step(step.clone()),
        };
        if !found.contains(&dependency) {
            found.push(dependency);
        }
    }
    Ok((listed.is_some() || !groups.is_empty()).then_some(found))
}

#[cfg(test)]
mod tests;
