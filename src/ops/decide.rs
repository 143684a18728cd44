//! `decide`: records a decision in a file that is never rewritten, or lists decisions, newest first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{codes, shown_path};
use crate::plan::decision::{self, Decision, NewDecision};
use crate::plan::entry::{self, folded};
use crate::plan::read::{Content, Source};
use crate::plan::time::Time;
use crate::plan::words::{near, nearest};
use crate::store::knowledge::{self, Entry};
use crate::store::load::LoadQuery;
use crate::store::transaction::{self, ChangeReport};
use crate::store::{new_step, resolve};
use crate::text::header_edit::Change;
use crate::text::typed::quoted;

pub use crate::api::requests::{DecideRequest, DecisionsRequest};

pub fn decide(context: &Context, request: &DecideRequest) -> Result<ChangeReport, Error> {
    let topic = NewDecision::check_topic(&request.topic)
        .map_err(|hint| Error::usage("the topic is empty or too long", hint))?;
    if request.text.trim().is_empty() {
        return Err(Error::usage("the decision is empty", "give the text of the decision"));
    }
    if request.metadata.as_deref().is_some_and(|it| !new_step::is_mapping(it)) {
        return Err(Error::usage("the metadata is not a YAML mapping", "write it as '{key: value}'"));
    }
    let (plan, step) = knowledge::about(context, request.plan.as_deref(), request.step.as_deref())?;
    if let Some(id) = request.step.as_deref().and_then(|it| resolve::id_of_step(context, it)) {
        resolve::find_step(&LoadQuery::plan(&id.plan).load(context)?.plans, &id)?;
    }
    let supersedes = request.supersedes.as_deref().map(|it| named(context, it)).transpose()?;
    let new = NewDecision {
        topic,
        text: request.text.clone(),
        reasoning: request.because.clone(),
        by: request.by.clone().unwrap_or_else(|| context.by.clone()),
        plan,
        step,
        supersedes: supersedes.map(|it| format!("{it}.md")),
        tags: request.tags.clone(),
        metadata: request.metadata.clone(),
    };
    let make = |path: &str, at: Time| written(context, &new, None, path, at);
    let (directory, instead) = (decision::DIRECTORY, decision::INSTEAD);
    let entry = Entry { verb: "decide", directory, title: &new.topic, instead, make: &make };
    let mut report = knowledge::create(context, &entry, request.mode)?;
    report.hints.push(format!("planwatch decide {}", quoted(&new.topic)));
    Ok(report)
}

/// Returns the file of a decision, and the decision as JSON. `more` is an additional change of the front matter.
///
/// Fails if the text would be parsed differently when it is read back.
pub(crate) fn written(
    context: &Context,
    new: &NewDecision,
    more: Option<Change>,
    path: &str,
    at: Time,
) -> Result<(Vec<u8>, Value), Error> {
    let changes: Vec<_> = new.changes(at).into_iter().chain(more).collect();
    let bytes = transaction::edit(path, new.body().as_bytes(), &changes, decision::KEYS)?;
    let content = Content { bytes: bytes.clone(), etag: String::new(), modified: at };
    let read = decision::read(&Source { path: path.to_owned(), content: Ok(content) });
    if !new.round_trips_as(&read) {
        let hint = "close the code blocks in the text, and pass the reasoning with --because instead of below a heading `Reasoning`";
        return Err(Error::usage("the text would be parsed differently when it is read back", hint));
    }
    Ok((bytes, view(&context.root_name(), &read, &[])))
}

/// Finds the id of a decision by the id itself, the file name, or a unique prefix of the id.
fn named(context: &Context, name: &str) -> Result<String, Error> {
    let wanted = entry::id_of(name);
    let ids: Vec<_> = knowledge::decisions(context).into_iter().map(|it| it.id).collect();
    if ids.iter().any(|it| it == wanted) {
        return Ok(wanted.to_owned());
    }
    match ids.iter().filter(|it| !wanted.is_empty() && it.starts_with(wanted)).collect::<Vec<_>>().as_slice()
    {
        [only] => Ok((*only).clone()),
        [] => {
            let nearest = nearest(wanted, ids.iter().map(String::as_str));
            Err(Error::NotFound { what: "decision", name: name.to_owned(), nearest })
        }
        several => {
            let names = several.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
            let hint = format!("they are {names}");
            Err(Error::usage(format!("`{name}` is the beginning of several ids"), hint))
        }
    }
}

#[derive(Debug, Clone)]
pub struct DecisionsReport {
    /// Newest first.
    pub decisions: Vec<Decision>,
    /// The number of decisions beyond the limit.
    pub n_more: usize,
    /// If the requested topic does not exist: the similar topics, best first.
    pub near: Vec<String>,
    /// For each decision, the decisions that supersede it.
    superseded: BTreeMap<String, Vec<String>>,
    root: String,
}

impl DecisionsReport {
    pub fn to_json(&self) -> Value {
        let view = |it: &Decision| view(&self.root, it, self.superseded_by(&it.id));
        let decisions: Vec<_> = self.decisions.iter().map(view).collect();
        let mut answer = json!({"decisions": decisions, "more": self.n_more});
        if !self.near.is_empty() {
            answer["near"] = self.near.clone().into();
        }
        answer
    }

    /// The first decision as a JSON object; null if there is none.
    pub fn first_to_json(&self) -> Value {
        let first = self.decisions.first();
        first.map(|it| view(&self.root, it, self.superseded_by(&it.id))).unwrap_or_default()
    }

    pub fn superseded_by(&self, id: &str) -> &[String] {
        self.superseded.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn path(&self, decision: &Decision) -> String {
        shown_path(&self.root, &decision.path)
    }
}

/// The maximum number of similar topics that are named if a topic does not exist.
const MOST_NEAR: usize = 5;

pub fn decisions(context: &Context, request: &DecisionsRequest) -> Result<DecisionsReport, Error> {
    let since = request.since.as_deref().map(|it| knowledge::since(it, context.now)).transpose()?;
    let mut found = knowledge::decisions(context);
    let topic = request.topic.as_deref().map(folded);
    let near = topic.as_deref().map_or_else(Vec::new, |topic| near_topics(topic, &found));
    let superseded = superseded(&found);
    let (plan, step) = knowledge::wanted(context, request.plan.as_deref(), request.step.as_deref())?;
    found.retain(|it| {
        topic.as_ref().is_none_or(|topic| folded(&it.topic) == *topic)
            && since.is_none_or(|since| it.decided_at.is_some_and(|at| at >= since))
            && request.tags.iter().all(|tag| it.tags.contains(tag))
            && plan.as_ref().is_none_or(|plan| it.plan.as_ref() == Some(plan))
            && step.as_ref().is_none_or(|step| it.step.as_ref() == Some(step))
    });
    found.reverse();
    let n_more = found.len().saturating_sub(request.limit);
    found.truncate(request.limit);
    Ok(DecisionsReport { decisions: found, n_more, near, superseded, root: context.root_name() })
}

/// The topics similar to `topic`, each as its first decision spells it. Empty if `topic` itself has decisions.
fn near_topics(topic: &str, decisions: &[Decision]) -> Vec<String> {
    let mut written: BTreeMap<String, &str> = BTreeMap::new();
    for it in decisions {
        written.entry(folded(&it.topic)).or_insert(&it.topic);
    }
    if written.contains_key(topic) {
        return Vec::new();
    }
    let found = near(topic, written.keys().map(String::as_str)).into_iter();
    found.filter_map(|it| written.get(&it).map(|it| (*it).to_owned())).take(MOST_NEAR).collect()
}

/// The decision with this id or path, and the decisions that supersede it.
pub(crate) fn one(context: &Context, name: &str) -> Option<DecisionsReport> {
    let wanted = entry::named_in(name, decision::DIRECTORY)?;
    let all = knowledge::decisions(context);
    let superseded = superseded(&all);
    let found = all.into_iter().find(|it| it.id == wanted)?;
    let root = context.root_name();
    Some(DecisionsReport { decisions: vec![found], n_more: 0, near: Vec::new(), superseded, root })
}

/// The decisions about a plan, or only those about one of its steps, newest first. Superseded decisions are left out.
pub(crate) fn standing(context: &Context, plan: &str, step: Option<&str>) -> Vec<Decision> {
    let all = knowledge::decisions(context);
    let superseded = superseded(&all);
    let is_meant = |it: &Decision| {
        it.plan.as_deref() == Some(plan)
            && step.is_none_or(|step| it.step.as_deref() == Some(step))
            && !superseded.contains_key(&it.id)
    };
    all.into_iter().rev().filter(is_meant).collect()
}

/// For each decision, the decisions that supersede it.
fn superseded(all: &[Decision]) -> BTreeMap<String, Vec<String>> {
    let mut superseded: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for decision in all {
        if let Some(old) = &decision.supersedes {
            superseded.entry(old.clone()).or_default().push(decision.id.clone());
        }
    }
    superseded
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// As the first decision spells it.
    pub topic: String,
    pub n_decisions: usize,
    pub last: Option<Time>,
}

impl Topic {
    pub fn to_json(&self) -> Value {
        let last = self.last.map(Time::with_milliseconds);
        json!({"topic": self.topic, "decisions": self.n_decisions, "last": last})
    }
}

pub fn topics_to_json(topics: &[Topic]) -> Value {
    json!({"topics": topics.iter().map(Topic::to_json).collect::<Vec<_>>()})
}

pub fn topics(context: &Context) -> Vec<Topic> {
    let mut topics: BTreeMap<String, Topic> = BTreeMap::new();
    for decision in knowledge::decisions(context) {
        let (topic, last) = (decision.topic, decision.decided_at);
        let entry = topics.entry(folded(&topic)).or_insert(Topic { topic, n_decisions: 0, last });
        entry.n_decisions += 1;
        entry.last = last.or(entry.last);
    }
    topics.into_values().collect()
}

fn view(root: &str, it: &Decision, superseded_by: &[String]) -> Value {
    json!({
        "id": it.id, "topic": it.topic, "decision": it.decision, "reasoning": it.reasoning, "by": it.by,
        "decided_at": it.decided_at.map(Time::with_milliseconds), "plan": it.plan, "step": it.step,
        "supersedes": it.supersedes, "superseded_by": superseded_by, "tags": it.tags, "metadata": it.metadata,
        "custom": it.custom, "path": shown_path(root, &it.path), "problems": codes(&it.problems),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[test]
    fn an_empty_answer_names_near_topics_and_others_have_no_such_key() {
        let report = |near: &[&str]| DecisionsReport {
            decisions: Vec::new(),
            n_more: 0,
            near: near.iter().map(|&it| it.to_owned()).collect(),
            superseded: BTreeMap::new(),
            root: String::new(),
        };
        assert_eq!(report(&["authentication"]).to_json()["near"], json!(["authentication"]));
        assert_eq!(report(&[]).to_json(), json!({"decisions": [], "more": 0}));
    }

    #[test]
    fn a_decision_without_a_time_does_not_hide_the_time_of_an_earlier_one() {
        let files = [
            (
                "/plans/_decisions/1700000000000-a.md",
                "---\ntopic: a\ndecided_at: 2026-11-01T12:00:00Z\n---\n# a\n",
            ),
            ("/plans/_decisions/1800000000000-a.md", "---\ntopic: a\n---\n# a\n"),
        ];
        let found = topics(&Context::on_model(&Machine::with(&files)));
        let [topic] = &found[..] else { panic!("{found:?}") };
        assert_eq!((topic.n_decisions, topic.last.is_some()), (2, true));
    }
}
