//! The differences between two looks at all plans, as events; pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::engine::shape::{envelope, shown_path};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::records::Attempt;
use crate::plan::time::Time;

/// What an event tells.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A plan's or step's status; as it is shown, so that a plan's last step completes it.
    Status {
        old: String,
        new: String,
    },
    /// An attempt was appended.
    Attempt(Box<Attempt>),
    Added {
        status: String,
    },
    Removed {
        status: String,
    },
}

impl What {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Attempt(_) => "attempt",
            Self::Added { .. } => "added",
            Self::Removed { .. } => "removed",
        }
    }
}

/// One change of one plan or step.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When it was seen.
    pub at: Time,
    pub what: What,
    /// A plan's or a step's id.
    pub id: String,
    pub is_plan: bool,
    pub plan: String,
    pub title: String,
    /// With the plans directory's name.
    pub path: String,
}

impl Event {
    pub fn to_json(&self) -> Value {
        let mut fields = json!({
            "event": self.what.word(), "of": if self.is_plan { "plan" } else { "step" },
            "id": self.id, "plan": self.plan, "title": self.title, "path": self.path, "at": self.at, "source": "files",
        });
        let more = match &self.what {
            What::Status { old, new } => json!({"old": old, "new": new}),
            What::Attempt(attempt) => json!({"attempt": attempt}),
            What::Added { status } => json!({"old": null, "new": status}),
            What::Removed { status } => json!({"old": status, "new": null}),
        };
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            fields.extend(more);
        }
        envelope("event", fields)
    }
}

/// Returns what changed from one look to the next, by plan and step number; archived plans are not told of.
pub fn between(before: &Plans, after: &Plans, now: Time, root: &str) -> Vec<Event> {
    let old: BTreeMap<_, _> = before.live().map(|it| (&it.id, it)).collect();
    let new: BTreeMap<_, _> = after.live().map(|it| (&it.id, it)).collect();
    let ids: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let teller = Teller { now, root };
    ids.into_iter().flat_map(|id| teller.plan(old.get(*id).copied(), new.get(*id).copied())).collect()
}

struct Teller<'a> {
    now: Time,
    root: &'a str,
}

impl Teller<'_> {
    fn plan(&self, old: Option<&Plan>, new: Option<&Plan>) -> Vec<Event> {
        let status = |it: &Plan| it.shown_status().0.word().to_owned();
        let what = match (old, new) {
            (Some(old), Some(new)) if status(old) == status(new) => None,
            (Some(old), Some(new)) => Some(What::Status { old: status(old), new: status(new) }),
            (None, Some(new)) => Some(What::Added { status: status(new) }),
            (Some(old), None) => Some(What::Removed { status: status(old) }),
            (None, None) => None,
        };
        let Some(plan) = new.or(old) else { return Vec::new() };
        let id = plan.id.to_string();
        let event = |what| Event {
            at: self.now,
            what,
            id: id.clone(),
            is_plan: true,
            plan: id.clone(),
            title: plan.title.clone(),
            path: shown_path(self.root, &plan.path),
        };
        let mut events = self.steps(old.map_or(&[], |it| &it.steps), new.map_or(&[], |it| &it.steps));
        // A plan comes before its steps and goes, or is complete, after them.
        match what {
            Some(what @ What::Added { .. }) => events.insert(0, event(what)),
            Some(what) => events.push(event(what)),
            None => {}
        }
        events
    }

    fn steps(&self, old: &[Step], new: &[Step]) -> Vec<Event> {
        let by_path =
            |steps: &[Step]| steps.iter().map(|it| (it.path.clone(), it.clone())).collect::<BTreeMap<_, _>>();
        let before = by_path(old);
        let after = by_path(new);
        let gone = old.iter().filter(|it| !after.contains_key(&it.path));
        let mut events: Vec<_> =
            gone.map(|it| self.step(it, What::Removed { status: it.status.word().to_owned() })).collect();
        for step in new {
            match before.get(&step.path) {
                None => events.push(self.step(step, What::Added { status: step.status.word().to_owned() })),
                Some(old) => events.extend(self.step_changes(old, step)),
            }
        }
        events
    }

    fn step_changes(&self, old: &Step, new: &Step) -> Vec<Event> {
        // Attempts are appended, so what is new is what exceeds the old number.
        let attempts = new.attempts.iter().skip(old.attempts.len());
        let mut events: Vec<_> =
            attempts.map(|it| self.step(new, What::Attempt(Box::new(it.clone())))).collect();
        if old.status != new.status {
            let (old, word) = (old.status.word().to_owned(), new.status.word().to_owned());
            events.push(self.step(new, What::Status { old, new: word }));
        }
        events
    }

    fn step(&self, step: &Step, what: What) -> Event {
        Event {
            at: self.now,
            what,
            id: step.id.to_string(),
            is_plan: false,
            plan: step.id.plan.to_string(),
            title: step.title.clone(),
            path: shown_path(self.root, &step.path),
        }
    }
}
