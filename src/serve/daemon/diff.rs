//! Computes events from the difference between a plan's baseline and its files. All functions are pure.

use std::collections::HashSet;
use std::path::Path;

use crate::api::views::shown_path;
use crate::disk::{Left, OwnWrite};
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, Step};
use crate::plan::problem::Problem;
use crate::plan::read;
use crate::plan::records::Attempt;
use crate::plan::time::Time;
use crate::plan::transitions::Verb;
use crate::serve::daemon::baseline::{BaselinePlan, BaselineStep, name_of};
use crate::serve::ipc::event::{Event, Of, Source, What};

/// In [`PlanDiff::held`] and [`Differ::overdue`], this name stands for the whole plan.
const PLAN_FILE: &str = "plan.md";

/// Whether a file may be in the middle of a save. This is possible if the file cannot be parsed or is empty: some editors
/// truncate a file before they write it.
fn is_in_doubt(problems: &[Problem], etag: Option<&str>) -> bool {
    problems.iter().any(|it| it.code.refuses_writing()) || etag == Some(read::etag(b"").as_str())
}

#[derive(Debug, Default)]
pub(crate) struct PlanDiff {
    pub(crate) events: Vec<Event>,
    /// The new baseline. `None` if the plan does not exist, unless its removal is held back.
    pub(crate) baseline: Option<BaselinePlan>,
    /// Files (or `plan.md` for the whole plan) that may be in the middle of a save. Their changes are held back until
    /// they are checked again.
    pub(crate) held: Vec<Box<str>>,
}

/// What all comparisons of one turn share.
pub(crate) struct Differ<'a> {
    pub(crate) now: Time,
    /// The plans directory's name.
    pub(crate) root: &'a str,
    /// The entries of planwatch's write log that are not published yet, newest last.
    pub(crate) own: &'a [OwnWrite],
    /// Files that were held back long enough; their changes are published now.
    pub(crate) overdue: &'a HashSet<&'a str>,
}

impl Differ<'_> {
    /// Compares a plan with its baseline. For an archived plan the caller passes `None` as `new`, so that the plan counts as
    /// removed.
    pub(crate) fn plan(&self, id: &PlanId, old: Option<&BaselinePlan>, new: Option<&Plan>) -> PlanDiff {
        match (old, new) {
            (None, None) => PlanDiff::default(),
            (Some(old), None) if !self.overdue.contains(PLAN_FILE) => {
                PlanDiff { baseline: Some(old.clone()), held: vec![PLAN_FILE.into()], ..PlanDiff::default() }
            }
            (old, new) => self.difference(id, old, new),
        }
    }

    fn difference(&self, id: &PlanId, old: Option<&BaselinePlan>, new: Option<&Plan>) -> PlanDiff {
        let mut diff = PlanDiff { baseline: new.map(BaselinePlan::of), ..PlanDiff::default() };
        let no_steps = (Vec::new(), Vec::new());
        let old_steps = old.map_or(&no_steps.0, |it| &it.steps);
        let new_steps = new.map_or(&no_steps.1, |it| &it.steps);
        let path_of = |name: &str| {
            let path = new.map(|it| it.path.as_str()).or(old.map(|it| &*it.path)).unwrap_or_default();
            format!("{}{name}", path.trim_end_matches(name_of(path)))
        };
        for step in old_steps {
            let now = new_steps.iter().find(|it| name_of(&it.path) == &*step.name);
            // The steps of a removed plan are removed with it, and not held back.
            let is_held = new.is_some() && step.has_file && !self.overdue.contains(&*step.name);
            if now.is_none() && is_held {
                diff.hold(&step.name, Some(step));
            } else if now.is_none() {
                let what = What::Removed { old: step.status.word().to_owned() };
                let path = path_of(&step.name);
                diff.events.push(self.event(what, (id, Some(&step.number)), &step.title, &path, None));
            }
        }
        for step in new_steps {
            self.step(id, old.and_then(|it| it.step(name_of(&step.path))), step, &mut diff);
        }
        self.status(id, old, new, &mut diff);
        diff
    }

    fn step(&self, id: &PlanId, old: Option<&BaselineStep>, new: &Step, diff: &mut PlanDiff) {
        let name = name_of(&new.path);
        let is_in_doubt = is_in_doubt(&new.problems, new.etag.as_deref());
        if is_in_doubt && !self.overdue.contains(name) && old != Some(&BaselineStep::of(new)) {
            return diff.hold(name, old);
        }
        let number = new.id.number.to_string();
        let mut add = |what, writer: Option<&OwnWrite>| {
            let mut event = self.event(what, (id, Some(&number)), &new.title, &new.path, new.etag.as_deref());
            event.source = writer.map_or(event.source, engine);
            diff.events.push(event);
        };
        let Some(old) = old else {
            return add(What::Added { new: new.status.word().to_owned() }, None);
        };
        // Attempts are only appended, so those beyond the old count are new.
        let attempts = new.attempts.get(old.n_attempts as usize..).unwrap_or_default();
        let writers = self.writers(attempts, &new.path);
        for (attempt, writer) in attempts.iter().zip(writers) {
            add(What::Attempt { attempt: Box::new(attempt.clone()) }, writer);
        }
        if old.status != new.status {
            add(What::Status { old: old.status.word().to_owned(), new: new.status.word().to_owned() }, None);
        }
    }

    /// Adds the event of the plan itself. A new plan is reported before its steps. A removed plan, or one with another
    /// status, is reported after them.
    fn status(&self, id: &PlanId, old: Option<&BaselinePlan>, new: Option<&Plan>, diff: &mut PlanDiff) {
        let word = |it: &BaselinePlan| it.status.word().to_owned();
        let is_in_doubt = new.is_some_and(|it| is_in_doubt(&it.problems, it.etag.as_deref()));
        let is_other = old.is_some_and(|it| diff.baseline.as_ref().is_some_and(|now| word(now) != word(it)));
        if is_in_doubt && is_other && !self.overdue.contains(PLAN_FILE) {
            diff.held.push(PLAN_FILE.into());
        }
        if !diff.held.is_empty()
            && let (Some(old), Some(now)) = (old, &mut diff.baseline)
        {
            now.status = old.status.clone();
        }
        let what = match (old, &diff.baseline) {
            (Some(old), Some(new)) if word(old) == word(new) => return,
            (Some(old), Some(new)) => What::Status { old: word(old), new: word(new) },
            (None, Some(new)) => What::Added { new: word(new) },
            (Some(old), None) => What::Removed { old: word(old) },
            (None, None) => return,
        };
        let title = new.map(|it| it.title.as_str()).or(old.map(|it| &*it.title)).unwrap_or_default();
        let path = new.map(|it| it.path.as_str()).or(old.map(|it| &*it.path)).unwrap_or_default();
        let mut event = self.event(what, (id, None), title, path, new.and_then(|it| it.etag.as_deref()));
        // If the write log has no entry for the plan's change, the event takes the source of the last event of a step: that
        // step may have completed the plan.
        if let (Source::Files, Some(step)) = (&event.source, diff.events.last()) {
            event.source = step.source.clone();
        }
        match event.what {
            What::Added { .. } => diff.events.insert(0, event),
            _ => diff.events.push(event),
        }
    }

    fn event(
        &self,
        what: What,
        id: (&PlanId, Option<&str>),
        title: &str,
        path: &str,
        etag: Option<&str>,
    ) -> Event {
        let (plan, number) = id;
        Event {
            what,
            of: if number.is_some() { Of::Step } else { Of::Plan },
            id: number.map_or_else(|| plan.to_string(), |it| format!("{plan}:{it}")),
            plan: plan.to_string(),
            title: title.to_owned(),
            path: shown_path(self.root, path),
            at: self.now,
            source: self.source(path, etag),
        }
    }

    /// Returns the writes that added these attempts, as far as their verbs show it. Since the last comparison, several
    /// commands may have written the file, and each attempt belongs to one of them.
    fn writers(&self, attempts: &[Attempt], path: &str) -> Vec<Option<&OwnWrite>> {
        let mut own = self.own.iter().rev().filter(|it| it.path.to_str() == Some(path)).collect::<Vec<_>>();
        let mut writers: Vec<_> = attempts
            .iter()
            .rev()
            .map(|attempt| {
                let at = own.iter().position(|it| records(it, attempt))?;
                let writer = own[at];
                own.drain(..=at);
                Some(writer)
            })
            .collect();
        writers.reverse();
        writers
    }

    /// Returns the source of a change: planwatch, if the write log has an entry with the current etag, or if the last
    /// entry says that a file was renamed to this path.
    fn source(&self, path: &str, etag: Option<&str>) -> Source {
        let own = || self.own.iter().rev().filter(|it| is_of(it, path));
        let renamed = || own().next().filter(|it| it.left == Left::Renamed && etag.is_some());
        let own = own().find(|it| is_left(&it.left, etag)).or_else(renamed);
        own.map_or(Source::Files, engine)
    }
}

/// Whether the verb of a write records attempts with this outcome.
fn records(write: &OwnWrite, attempt: &Attempt) -> bool {
    let verb = Verb::ALL.into_iter().find(|it| it.word() == write.verb);
    let outcome = attempt.outcome.as_deref();
    verb.is_some_and(|it| outcome == Some(it.outcome()) || outcome == Some("forced"))
}

fn engine(own: &OwnWrite) -> Source {
    Source::Engine { verb: own.verb.clone(), by: own.by.clone() }
}

/// Whether an entry of the write log is about this file. A directory may have been renamed with all its files.
fn is_of(own: &OwnWrite, path: &str) -> bool {
    match own.left {
        Left::Content(_) => own.path.to_str() == Some(path),
        Left::Nothing | Left::Renamed => Path::new(path).starts_with(&own.path),
    }
}

/// Whether a file with this etag, or a missing file, is as a write left it.
pub(crate) fn is_left(left: &Left, etag: Option<&str>) -> bool {
    match (left, etag) {
        (Left::Content(hash), Some(etag)) => etag.get(..16).unwrap_or(etag) == hash,
        (Left::Nothing, None) => true,
        _ => false,
    }
}

impl PlanDiff {
    /// Whether there is a change that the write log does not explain.
    pub(crate) fn has_outside_change(&self) -> bool {
        self.events.iter().any(|it| it.source == Source::Files)
    }

    /// Holds back a step: the new baseline gets the step's old entry, or no entry if the step is new.
    fn hold(&mut self, name: &str, old: Option<&BaselineStep>) {
        self.held.push(name.into());
        let Some(baseline) = &mut self.baseline else { return };
        let at = baseline.steps.iter().position(|it| &*it.name == name);
        match (at, old) {
            (Some(at), Some(old)) => baseline.steps[at] = old.clone(),
            (Some(at), None) => drop(baseline.steps.remove(at)),
            (None, Some(old)) => baseline.steps.push(old.clone()),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `wrote` lists the writes of the step's file, each as the verb and the author. `outcomes` lists the new attempts.
    /// `expected` lists the writes that added them; `-` means that none is known.
    #[track_caller]
    fn check(wrote: &str, outcomes: &str, expected: &str) {
        let write = |(unit, said): (usize, &str)| OwnWrite {
            unit: unit as u64,
            path: "p/step-1.md".into(),
            left: Left::Content(unit.to_string()),
            verb: said.split(' ').next().unwrap_or_default().to_owned(),
            by: said.split(' ').nth(1).unwrap_or_default().to_owned(),
        };
        let own: Vec<_> = wrote.split(", ").enumerate().map(write).collect();
        let attempt = |it: &str| Attempt { outcome: Some(it.to_owned()), ..Attempt::default() };
        let attempts: Vec<_> = outcomes.split(", ").map(attempt).collect();
        let (now, overdue) = ("2026-11-21T12:00:00Z".parse().unwrap(), HashSet::new());
        let differ = Differ { now, root: "plans", own: &own, overdue: &overdue };
        let writers = differ.writers(&attempts, "p/step-1.md");
        let said = |it: &Option<&OwnWrite>| it.map_or("-".to_owned(), |it| format!("{} {}", it.verb, it.by));
        assert_eq!(writers.iter().map(said).collect::<Vec<_>>().join(", "), expected);
        assert_eq!(differ.writers(&attempts, "p/step-2.md").iter().flatten().count(), 0);
    }

    #[test]
    fn each_new_attempt_belongs_to_the_command_that_recorded_it() {
        check("done ann, reopen bob", "completed, reopened", "done ann, reopen bob");
        check(
            "done ann, reopen bob, done cy",
            "completed, reopened, completed",
            "done ann, reopen bob, done cy",
        );
        check("done ann, set bob, done cy, set ann", "completed, completed", "done ann, done cy");
        check("fail ann, claim bob", "failed", "fail ann");
        check("done ann, reopen bob", "forced, reopened", "done ann, reopen bob");
        // The attempts of these verbs can have any outcome.
        check("attempt ann", "failed", "-");
        check("run ann, done bob", "timed out, completed", "-, done bob");
    }
}
