//! `diff`: reports how plans, steps, decisions and insights differ between two states of the files.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{shown_path, value};
use crate::plan::history::{Change, Followed, Version, What, changes};
use crate::plan::id::PlanId;
use crate::plan::merge;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::store::history::{self, Differing, Repository, Sides};
use crate::store::resolve;
use crate::text::diff::unified;

pub use crate::api::requests::DiffRequest;

/// A value before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Turn {
    pub from: Option<String>,
    pub to: Option<String>,
}

/// An entry that was added: an attempt, a note, a claim or a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    pub at: Option<Time>,
    pub by: Option<String>,
    pub outcome: Option<String>,
    pub notes: Option<String>,
}

/// How one plan, step, decision or insight differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// `plan`, `step`, `decision` or `insight`.
    pub of: &'static str,
    pub id: String,
    pub plan: Option<String>,
    pub title: String,
    /// `created`, `removed`, `moved`, `archived`, `restored` or `changed`.
    pub change: &'static str,
    /// The id before a move, if it was another one.
    pub was: Option<String>,
    pub status: Option<Turn>,
    pub renamed: Option<Turn>,
    pub attempts: Vec<Added>,
    pub notes: Vec<Added>,
    pub claims: Vec<Added>,
    pub confirmations: Vec<Added>,
    /// The claim that ended without an outcome.
    pub released: Option<String>,
    pub depends_added: Vec<String>,
    pub depends_removed: Vec<String>,
    pub lines_added: u64,
    pub lines_removed: u64,
    /// Other keys of the front matter that differ.
    pub keys: Vec<String>,
    /// Why a file cannot be read.
    pub problem: Option<String>,
    pub path: String,
}

/// The two texts of a file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub struct DiffReport {
    /// The commit that is the old state; none if there is no commit yet.
    pub old: Option<String>,
    /// The commit that is the new state; none if the new state is git's index or the working tree.
    pub new: Option<String>,
    pub is_staged: bool,
    pub differences: Vec<Difference>,
    /// The texts of the files; none without `patch`.
    pub files: Option<Vec<FileDiff>>,
}

impl DiffReport {
    pub fn to_json(&self) -> Value {
        let text = |it: &FileDiff| unified(&it.path, it.old.as_deref(), it.new.as_deref());
        let diff = self.files.as_ref().map(|files| files.iter().map(text).collect::<String>());
        json!({
            "from": self.old, "to": self.new, "staged": self.is_staged,
            "differences": value(&self.differences), "diff": diff,
        })
    }
}

/// Whether a word of a command line names a plan. Otherwise it is a revision.
pub fn names_plan(context: &Context, word: &str) -> bool {
    resolve::plan_for_reading(context, word).is_ok()
}

/// Whether a word of a command line names one commit. It may also be the name of a plan.
pub fn names_revision(context: &Context, word: &str) -> Result<bool, Error> {
    Repository::open(context)?.has_revision(word)
}

pub fn diff(context: &Context, request: &DiffRequest) -> Result<DiffReport, Error> {
    let repository = Repository::open(context)?;
    let sides = repository.sides(request.rev.as_deref(), request.staged)?;
    let plan = request.plan.as_deref().map(|it| plan(context, it)).transpose()?;
    let files = history::between(context, &repository, &sides)?;
    let found: Vec<_> = files.iter().map(|it| it.change.clone()).collect();
    let found = changes(&found);
    let followed = plan.as_ref().map(|(id, missing)| {
        // A name that no plan has now may be the earlier name of a plan.
        let is_renamed = |it: &&Change| {
            it.what == What::Moved && it.step.is_none() && it.from.as_deref() == Some(id.as_str())
        };
        let renamed = missing.as_ref().and_then(|_| found.iter().find(is_renamed)?.plan.as_ref());
        renamed.map_or_else(|| Followed::plan(id), |new| Followed::plan(&PlanId::new(new)))
    });
    let is_wanted = |it: &Change| followed.as_ref().is_none_or(|followed| followed.concerns(it));
    let found: Vec<_> = found.into_iter().filter(is_wanted).collect();
    let (old, new) = match sides {
        Sides::Commits { old, new } => (Some(old), Some(new)),
        Sides::Staged { since } | Sides::WorkingTree { since } => (since, None),
    };
    // A plan that does not differ is in both states or in neither.
    if let Some((id, Some(missing))) = plan
        && found.is_empty()
        && !repository.has_plan(old.as_deref(), &id)?
    {
        return Err(missing);
    }
    let texts = request.patch.then(|| texts(context, &files, &found));
    let differences = differences(context, &files, &found);
    Ok(DiffReport { old, new, is_staged: request.staged, differences, files: texts })
}

/// The plan that a name means. If there is no such plan now, it may still be in the states that are compared; the error is
/// for the case that it is in neither.
fn plan(context: &Context, name: &str) -> Result<(PlanId, Option<Error>), Error> {
    match resolve::plan_for_reading(context, name) {
        Ok((id, _)) => Ok((id, None)),
        Err(error) if error.code() == "not-found" && PlanId::is_plan_name(name) => {
            Ok((PlanId::new(name), Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// The differing files of the plans, decisions and insights that have changes.
fn texts(context: &Context, files: &[Differing], found: &[Change]) -> Vec<FileDiff> {
    let root = context.root_name();
    let is_meant = |it: &&Differing| {
        let plan = it.change.place.plan().map(|it| it.as_str());
        found
            .iter()
            .any(|change| change.path == it.change.path || plan.is_some() && change.plan.as_deref() == plan)
    };
    let bytes = |it: &Option<Rc<Version>>| it.as_ref().map(|it| it.bytes().to_vec());
    let file = |it: &Differing| {
        let (old, new) = (bytes(&it.change.old), bytes(&it.change.new));
        // Git may convert line ends in the working tree, so they are no difference.
        let old = match (old, &new) {
            (Some(old), Some(new)) => Some(merge::with_line_ends_of(new, &old)),
            (old, _) => old,
        };
        FileDiff { path: shown_path(&root, &it.change.path), old, new }
    };
    let files = files.iter().filter(is_meant).map(file);
    files.filter(|it| it.old != it.new).collect()
}

fn differences(context: &Context, files: &[Differing], found: &[Change]) -> Vec<Difference> {
    let titles: HashMap<&str, &str> = files
        .iter()
        .filter_map(|it| {
            let version = it.change.new.as_ref().or(it.change.old.as_ref())?;
            Some((it.change.path.as_str(), version.title()))
        })
        .collect();
    let mut by_place: BTreeMap<Order, Difference> = BTreeMap::new();
    for change in found {
        let one = by_place.entry(order(change)).or_insert_with(|| unchanged(context, change, &titles));
        apply(one, change);
    }
    by_place.into_values().collect()
}

/// The sort key: plans by name, each followed by its steps by number; then decisions and insights.
type Order = (bool, String, Option<StepNumber>, String);

fn order(change: &Change) -> Order {
    let is_record = matches!(change.what, What::Decision | What::Insight)
        || ["_decisions/", "_insights/"].iter().any(|it| change.path.starts_with(it));
    let number = change.step.as_deref().and_then(|it| it.rsplit_once(':')).and_then(|it| it.1.parse().ok());
    (is_record, change.plan.clone().unwrap_or_default(), number, change.path.clone())
}

fn unchanged(context: &Context, change: &Change, titles: &HashMap<&str, &str>) -> Difference {
    let of = match (&change.step, change.path.split('/').next()) {
        (_, Some("_decisions")) => "decision",
        (_, Some("_insights")) => "insight",
        (Some(_), _) => "step",
        (None, _) => "plan",
    };
    let name = change.path.rsplit('/').next().unwrap_or_default();
    let record = || name.strip_suffix(".md").unwrap_or(name).to_owned();
    let id = match of {
        "decision" | "insight" => record(),
        _ => change.step.clone().or_else(|| change.plan.clone()).unwrap_or_default(),
    };
    Difference {
        of,
        title: titles.get(change.path.as_str()).map_or_else(|| id.clone(), |it| (*it).to_owned()),
        id,
        plan: change.plan.clone(),
        change: "changed",
        was: None,
        status: None,
        renamed: None,
        attempts: Vec::new(),
        notes: Vec::new(),
        claims: Vec::new(),
        confirmations: Vec::new(),
        released: None,
        depends_added: Vec::new(),
        depends_removed: Vec::new(),
        lines_added: 0,
        lines_removed: 0,
        keys: Vec::new(),
        problem: None,
        path: shown_path(&context.root_name(), &change.path),
    }
}

fn apply(one: &mut Difference, change: &Change) {
    let Change { from, to, .. } = change.clone();
    let added = Added {
        at: change.at,
        by: change.by.clone(),
        outcome: change.outcome.clone(),
        notes: change.notes.clone(),
    };
    match change.what {
        What::Created | What::Removed => {
            one.change = change.what.word();
            one.status = Some(Turn { from, to });
        }
        What::Decision | What::Insight => one.change = What::Created.word(),
        What::Moved | What::Archived | What::Restored => {
            one.change = change.what.word();
            one.was = from.filter(|it| *it != one.id);
        }
        What::Status => one.status = Some(Turn { from, to }),
        What::Title => one.renamed = Some(Turn { from, to }),
        What::Attempt => one.attempts.push(added),
        What::Note => one.notes.push(added),
        What::Claim => one.claims.push(Added { notes: to, ..added }),
        What::Confirmed => one.confirmations.push(added),
        What::Released => one.released = from,
        What::Depends => {
            let listed = |it: Option<String>| -> Vec<String> {
                it.iter().flat_map(|it| it.split(", ")).map(str::to_owned).collect()
            };
            let (old, new) = (listed(from), listed(to));
            one.depends_added = new.iter().filter(|it| !old.contains(it)).cloned().collect();
            one.depends_removed = old.into_iter().filter(|it| !new.contains(it)).collect();
        }
        What::Text => {
            (one.lines_added, one.lines_removed) = change.lines.unwrap_or_default();
            one.keys.clone_from(&change.keys);
            one.problem.clone_from(&change.notes);
        }
    }
}
