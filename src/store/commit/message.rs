//! Builds the message of a commit. It says what happened to plans and steps, according to the old and the new versions of
//! their files.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::git::Git;
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::read::{self, Content};
use crate::store::idempotency::read_path;
use crate::store::removed::ARCHIVE;
use crate::text::typed::escaped;

use super::{Change, old_versions};

/// The longest subject, in characters.
const SUBJECT: usize = 72;

/// The largest number of plans, and of steps, that the trailers name.
const NAMED: usize = 20;

const TEMPLATE: &str = "plan({plan}): {what}";

/// A step before and after the change. Each flag says whether the file is in the archive.
#[derive(Default)]
struct Versions {
    old: Option<(Step, bool)>,
    new: Option<(Step, bool)>,
}

/// What happened to one step's file.
struct StepFact {
    id: StepId,
    /// The id before a move.
    was: Option<StepId>,
    /// `added`, `removed`, `moved`, `archived`, `restored` or `changed`, or the new status, such as `completed`.
    what: String,
    /// The status before and after, if it changed.
    status: Option<(Option<String>, String)>,
    /// The time of the newest attempt that the old version does not have.
    attempt: Option<String>,
}

pub(super) struct Facts {
    plans: BTreeSet<String>,
    steps: Vec<StepFact>,
    /// What happened to a `plan.md`; it is used if no step's file changed.
    plan_file: Option<&'static str>,
    /// Files that belong to no plan, such as decisions: each with its directory without the `_`, and what happened to it.
    others: Vec<(String, &'static str)>,
}

impl Facts {
    pub(super) fn of(context: &Context, git: &Git, changes: &[Change]) -> Result<Self, Error> {
        let old = old_versions(git, changes)?;
        let (mut plans, mut plan_file, mut others) = (BTreeSet::new(), None, Vec::new());
        // If a step's file was moved to another directory, both paths belong to one step.
        let mut versions: BTreeMap<StepId, Versions> = BTreeMap::new();
        for (change, old) in changes.iter().zip(old) {
            let path = change.path.to_string_lossy();
            let Some((plan, step)) = read_path(&path) else { continue };
            if let Some(directory) = plan.as_str().strip_prefix('_') {
                others.push((directory.to_owned(), change.shown("").did));
                continue;
            }
            plans.insert(plan.to_string());
            let Some(id) = step else {
                plan_file = Some(change.shown("").did);
                continue;
            };
            let read = |bytes: Vec<u8>| {
                let content = Content::new(bytes, context.now);
                let step = read::read_step_alone(&id, &path, content, &context.config.words);
                (step, change.path.starts_with(ARCHIVE))
            };
            let of = versions.entry(id.clone()).or_default();
            of.old = old.map(read).or(of.old.take());
            of.new = change.bytes.clone().map(read).or(of.new.take());
        }
        let mut came_from = BTreeMap::new();
        for (from, to) in moves(&versions) {
            let old = versions.remove(&from).and_then(|it| it.old);
            if let Some(of) = versions.get_mut(&to) {
                of.old = old;
                came_from.insert(to, from);
            }
        }
        let fact = |(id, it): (StepId, Versions)| {
            let was = came_from.get(&id).cloned();
            StepFact::of(id, was, &it)
        };
        let steps = versions.into_iter().map(fact).collect();
        Ok(Self { plans, steps, plan_file, others })
    }

    /// The subject, an empty line and the trailers. A `text` that is not blank replaces the subject.
    pub(super) fn message(&self, text: Option<&str>, template: Option<&str>) -> String {
        let head = text.map(str::trim_end).filter(|it| !it.trim().is_empty()).map(str::to_owned);
        let head = head.unwrap_or_else(|| self.subject(template.unwrap_or(TEMPLATE)));
        let trailers: String =
            self.trailers().iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        if trailers.is_empty() { format!("{head}\n") } else { format!("{head}\n\n{trailers}") }
    }

    fn subject(&self, template: &str) -> String {
        let plan = match self.plans.iter().collect::<Vec<_>>()[..] {
            [one] => one.clone(),
            [] => {
                let directories: BTreeSet<_> = self.others.iter().map(|it| it.0.as_str()).collect();
                directories.into_iter().collect::<Vec<_>>().join(", ")
            }
            _ => format!("{} plans", self.plans.len()),
        };
        let step = self.steps.first().filter(|_| self.steps.len() == 1);
        let status = step.and_then(|it| it.status.as_ref()).map_or("", |it| it.1.as_str());
        let number = step.map(|it| it.id.number.to_string()).unwrap_or_default();
        let mut subject = String::new();
        let mut rest = template.lines().next().unwrap_or_default();
        while let Some((before, after)) = rest.split_once('{') {
            subject.push_str(before);
            let values =
                [("plan}", plan.as_str()), ("what}", &self.what()), ("step}", &number), ("status}", status)];
            match values.iter().find(|(name, _)| after.starts_with(name)) {
                Some((name, value)) => {
                    subject.push_str(value);
                    rest = &after[name.len()..];
                }
                None => {
                    subject.push('{');
                    rest = after;
                }
            }
        }
        subject.push_str(rest);
        one_line(&subject, SUBJECT)
    }

    fn what(&self) -> String {
        match &self.steps[..] {
            [] if self.plans.is_empty() => match &self.others[..] {
                [(directory, did)] => format!("{} {did}", directory.strip_suffix('s').unwrap_or(directory)),
                all => {
                    let (n, did) = (all.len(), all.first().map_or("changed", |it| it.1));
                    let did = if all.iter().all(|it| it.1 == did) { did } else { "changed" };
                    format!("{n} files {did}")
                }
            },
            [] => format!("plan {}", self.plan_file.unwrap_or("changed")),
            [step] => step.in_words(),
            steps => {
                let kinds: BTreeSet<_> = steps.iter().map(|it| it.what.as_str()).collect();
                let what = if kinds.len() == 1 { steps[0].what.as_str() } else { "changed" };
                format!("{} steps {what}", steps.len())
            }
        }
    }

    fn trailers(&self) -> Vec<(&'static str, String)> {
        let line = |it: &str| one_line(it, 200);
        let mut trailers: Vec<_> = self.plans.iter().take(NAMED).map(|it| ("Plan", line(it))).collect();
        for step in self.steps.iter().take(NAMED) {
            let status = step.status.as_ref().map(|(was, now)| match was {
                Some(was) => format!("{was} -> {now}"),
                None => now.clone(),
            });
            // If there are several steps, each line names its step.
            let of =
                |text: String| if self.steps.len() > 1 { format!("{} {text}", step.id.number) } else { text };
            trailers.extend(
                [step.was.as_ref(), Some(&step.id)]
                    .into_iter()
                    .flatten()
                    .map(|it| ("Step", line(&it.to_string()))),
            );
            trailers.extend(status.map(|it| ("Status", line(&of(it)))));
            trailers.extend(step.attempt.clone().map(|it| ("Attempt", line(&of(it)))));
        }
        trailers
    }
}

impl StepFact {
    fn of(id: StepId, was: Option<StepId>, Versions { old, new }: &Versions) -> Self {
        let Some((now, is_archived)) = new else {
            return Self { id, was, what: "removed".to_owned(), status: None, attempt: None };
        };
        let is_moved = was.is_some();
        let word = |it: &Step| it.status.word().to_owned();
        let before = old.as_ref().map(|it| word(&it.0));
        let changed = before.as_deref() != Some(&word(now));
        let status = changed.then(|| (before.clone(), word(now)));
        let was_archived = old.as_ref().map(|it| it.1);
        let what = match (&before, changed) {
            _ if was_archived == Some(false) && *is_archived => "archived".to_owned(),
            _ if was_archived == Some(true) && !is_archived => "restored".to_owned(),
            (None, _) if word(now) == "pending" => "added".to_owned(),
            (_, true) => word(now).replace('_', " "),
            _ if is_moved => "moved".to_owned(),
            _ => "changed".to_owned(),
        };
        let old = old.as_ref().map(|it| &it.0);
        let n_before = old.map_or(0, |it| it.attempts.len());
        let newest = now.attempts.iter().skip(n_before).filter_map(|it| it.at).max();
        Self { id, was, what, status, attempt: newest.map(|it| it.to_string()) }
    }

    fn in_words(&self) -> String {
        let number = &self.id.number;
        match &self.was {
            Some(was) if self.what == "moved" && was.number != *number => {
                format!("step {} moved to {number}", was.number)
            }
            _ => format!("step {number} {}", self.what),
        }
    }
}

/// The steps whose file is gone and that are new under another id, each with both ids.
fn moves(versions: &BTreeMap<StepId, Versions>) -> Vec<(StepId, StepId)> {
    let gone = versions.iter().filter(|it| it.1.new.is_none());
    let added: Vec<_> = versions.iter().filter(|it| it.1.old.is_none()).collect();
    let one = |(from, it): (&StepId, &Versions)| {
        let old = it.old.as_ref()?.0.identity()?;
        let is_same = |new: &Step| new.identity() == Some(old);
        let mut alike = added.iter().filter(|it| it.1.new.as_ref().is_some_and(|it| is_same(&it.0)));
        match (alike.next(), alike.next()) {
            (Some((to, _)), None) => Some((from.clone(), (*to).clone())),
            _ => None,
        }
    };
    gone.filter_map(one).collect()
}

/// The text on one line, without control characters, and cut to `most` characters.
fn one_line(text: &str, most: usize) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let text = escaped(&text);
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.into_owned(),
    }
}
