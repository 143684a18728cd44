//! The differences between what was known of a plan and what its files say, as events; pure.

use std::collections::HashSet;

use crate::api::views::shown_path;
use crate::disk::OwnWrite;
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, Step};
use crate::plan::problem::Problem;
use crate::plan::time::Time;
use crate::serve::daemon::baseline::{KnownPlan, KnownStep, name_of};
use crate::serve::ipc::event::{Event, Of, Source, What};
use crate::store::load;

/// The name under which all of a plan is held back.
const PLAN_FILE: &str = "plan.md";

/// A file that cannot be read as what it is may be half-written, and an empty one may be about to be written: editors that
/// save in place empty it first.
fn is_in_doubt(problems: &[Problem], etag: Option<&str>) -> bool {
    problems.iter().any(|it| it.code.refuses_writing()) || etag == Some(load::etag(b"").as_str())
}

/// What a look at a plan comes to.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) events: Vec<Event>,
    /// What is known from here on; none if there is no such plan.
    pub(crate) known: Option<KnownPlan>,
    /// Files, or `plan.md` for all of a plan, that may be a save under way and were held back: one more look is needed.
    pub(crate) held: Vec<Box<str>>,
}

/// What the events of one look have in common.
pub(crate) struct Teller<'a> {
    pub(crate) now: Time,
    /// The plans directory's name.
    pub(crate) root: &'a str,
    /// What planwatch's own log says, newest last.
    pub(crate) own: &'a [OwnWrite],
    /// Files that looked half-written, or gone, for a while: they are told as they are.
    pub(crate) seen_long: &'a HashSet<&'a str>,
}

impl Teller<'_> {
    /// Tells what became of a plan; archived plans count as gone.
    pub(crate) fn plan(&self, id: &PlanId, old: Option<&KnownPlan>, new: Option<&Plan>) -> Told {
        match (old, new) {
            (None, None) => Told::default(),
            (Some(old), None) if !self.seen_long.contains(PLAN_FILE) => {
                Told { known: Some(old.clone()), held: vec![PLAN_FILE.into()], ..Told::default() }
            }
            (old, new) => self.difference(id, old, new),
        }
    }

    fn difference(&self, id: &PlanId, old: Option<&KnownPlan>, new: Option<&Plan>) -> Told {
        let mut told = Told { known: new.map(KnownPlan::of), ..Told::default() };
        let no_steps = (Vec::new(), Vec::new());
        let old_steps = old.map_or(&no_steps.0, |it| &it.steps);
        let new_steps = new.map_or(&no_steps.1, |it| &it.steps);
        let path_of = |name: &str| {
            let path = new.map(|it| it.path.as_str()).or(old.map(|it| &*it.path)).unwrap_or_default();
            format!("{}{name}", path.trim_end_matches(name_of(path)))
        };
        for step in old_steps {
            let now = new_steps.iter().find(|it| name_of(&it.path) == &*step.name);
            // With a plan that is gone, and was for long enough, so are its steps.
            let is_held = new.is_some() && step.has_file && !self.seen_long.contains(&*step.name);
            if now.is_none() && is_held {
                told.hold(&step.name, Some(step));
            } else if now.is_none() {
                let what = What::Removed { old: step.status.word().to_owned() };
                let path = path_of(&step.name);
                told.events.push(self.event(what, (id, Some(&step.number)), &step.title, &path, None));
            }
        }
        for step in new_steps {
            self.step(id, old.and_then(|it| it.step(name_of(&step.path))), step, &mut told);
        }
        self.status(id, old, new, &mut told);
        told
    }

    fn step(&self, id: &PlanId, old: Option<&KnownStep>, new: &Step, told: &mut Told) {
        let name = name_of(&new.path);
        let is_in_doubt = is_in_doubt(&new.problems, new.etag.as_deref());
        if is_in_doubt && !self.seen_long.contains(name) && old != Some(&KnownStep::of(new)) {
            return told.hold(name, old);
        }
        let number = new.id.number.to_string();
        let mut tell = |what| {
            let event = self.event(what, (id, Some(&number)), &new.title, &new.path, new.etag.as_deref());
            told.events.push(event);
        };
        let Some(old) = old else {
            return tell(What::Added { new: new.status.word().to_owned() });
        };
        // Attempts are appended, so what is new is what exceeds the old number.
        for attempt in new.attempts.iter().skip(old.n_attempts as usize) {
            tell(What::Attempt { attempt: Box::new(attempt.clone()) });
        }
        if old.status != new.status {
            tell(What::Status { old: old.status.word().to_owned(), new: new.status.word().to_owned() });
        }
    }

    /// A plan comes before its steps and goes, or is complete, after them.
    fn status(&self, id: &PlanId, old: Option<&KnownPlan>, new: Option<&Plan>, told: &mut Told) {
        let word = |it: &KnownPlan| it.status.word().to_owned();
        let is_in_doubt = new.is_some_and(|it| is_in_doubt(&it.problems, it.etag.as_deref()));
        let is_other = old.is_some_and(|it| told.known.as_ref().is_some_and(|now| word(now) != word(it)));
        if is_in_doubt && is_other && !self.seen_long.contains(PLAN_FILE) {
            told.held.push(PLAN_FILE.into());
        }
        if !told.held.is_empty()
            && let (Some(old), Some(now)) = (old, &mut told.known)
        {
            now.status = old.status.clone();
        }
        let what = match (old, &told.known) {
            (Some(old), Some(new)) if word(old) == word(new) => return,
            (Some(old), Some(new)) => What::Status { old: word(old), new: word(new) },
            (None, Some(new)) => What::Added { new: word(new) },
            (Some(old), None) => What::Removed { old: word(old) },
            (None, None) => return,
        };
        let title = new.map(|it| it.title.as_str()).or(old.map(|it| &*it.title)).unwrap_or_default();
        let path = new.map(|it| it.path.as_str()).or(old.map(|it| &*it.path)).unwrap_or_default();
        let mut event = self.event(what, (id, None), title, path, new.and_then(|it| it.etag.as_deref()));
        // Where its steps complete a plan, the one who closed the last did it.
        if let (Source::Files, Some(step)) = (&event.source, told.events.last()) {
            event.source = step.source.clone();
        }
        match event.what {
            What::Added { .. } => told.events.insert(0, event),
            _ => told.events.push(event),
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

    /// planwatch made a change if it left in the file what is there now.
    fn source(&self, path: &str, etag: Option<&str>) -> Source {
        let left = left(etag);
        let own = self.own.iter().rev();
        let own = own.filter(|it| it.path.to_str() == Some(path)).find(|it| it.left.as_deref() == left);
        own.map_or(Source::Files, |it| Source::Engine { verb: it.verb.clone(), by: it.by.clone() })
    }
}

/// What planwatch's log says of a file with this etag.
pub(crate) fn left(etag: Option<&str>) -> Option<&str> {
    etag.map(|it| it.get(..16).unwrap_or(it))
}

impl Told {
    /// Whether there is a change that planwatch is not known to have made.
    pub(crate) fn is_by_others(&self) -> bool {
        self.events.iter().any(|it| it.source == Source::Files)
    }

    /// Keeps what was known of a step, also that there was none.
    fn hold(&mut self, name: &str, old: Option<&KnownStep>) {
        self.held.push(name.into());
        let Some(known) = &mut self.known else { return };
        let at = known.steps.iter().position(|it| &*it.name == name);
        match (at, old) {
            (Some(at), Some(old)) => known.steps[at] = old.clone(),
            (Some(at), None) => drop(known.steps.remove(at)),
            (None, Some(old)) => known.steps.push(old.clone()),
            (None, None) => {}
        }
    }
}
