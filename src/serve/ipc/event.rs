//! The events that the daemon sends: what changed in a plan or step, and who changed it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::views::envelope;
use crate::plan::id::PlanId;
use crate::plan::records::Attempt;
use crate::plan::time::Time;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The status of a plan or a step has changed. For a plan, this is the displayed status: an active plan counts as
    /// completed when all its steps are closed.
    Status {
        old: String,
        new: String,
    },
    /// An attempt was appended.
    Attempt {
        attempt: Box<Attempt>,
    },
    Added {
        new: String,
    },
    Removed {
        old: String,
    },
    /// Another machine has claimed the step.
    ClaimedElsewhere,
    /// Another machine has released the step, or the claim of that machine has lapsed.
    ReleasedElsewhere,
    /// Another machine has ended its work on the step; the result is not yet merged here.
    EndedElsewhere {
        new: String,
    },
}

impl What {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Attempt { .. } => "attempt",
            Self::Added { .. } => "added",
            Self::Removed { .. } => "removed",
            Self::ClaimedElsewhere => "claimed_elsewhere",
            Self::ReleasedElsewhere => "released_elsewhere",
            Self::EndedElsewhere { .. } => "ended_elsewhere",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Source {
    /// A change of the files by another program.
    Files,
    /// planwatch itself, according to its write log.
    Engine { verb: String, by: String },
    /// Another machine, according to the registry.
    Remote { by: String, host: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    Plan,
    Step,
}

/// One change of one plan or step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(flatten)]
    pub what: What,
    pub of: Of,
    /// The id of the plan or the step.
    pub id: String,
    pub plan: String,
    pub title: String,
    /// Begins with the plans directory's name.
    pub path: String,
    /// When the daemon noticed the change.
    pub at: Time,
    #[serde(flatten)]
    pub source: Source,
}

impl Event {
    pub fn to_json(&self) -> Value {
        let mut fields = json!({
            "event": self.what.word(), "of": self.of, "id": self.id, "plan": self.plan, "title": self.title,
            "path": self.path, "at": self.at, "source": "files",
        });
        let source = match &self.source {
            Source::Files => json!({}),
            Source::Engine { verb, by } => json!({"source": "engine", "verb": verb, "by": by}),
            Source::Remote { by, host } => json!({"source": "remote", "by": by, "host": host}),
        };
        let what = match &self.what {
            What::Status { old, new } => json!({"old": old, "new": new}),
            What::Attempt { attempt } => json!({"attempt": attempt}),
            What::Added { new } => json!({"old": null, "new": new}),
            What::Removed { old } => json!({"old": old, "new": null}),
            What::ClaimedElsewhere | What::ReleasedElsewhere => json!({}),
            What::EndedElsewhere { new } => json!({"new": new}),
        };
        for more in [source, what] {
            if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
                fields.extend(more);
            }
        }
        envelope("event", fields)
    }

    /// Parses an object that [`Self::to_json`] made.
    pub fn from_json(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

/// A message to followers.
#[derive(Debug, Clone, PartialEq)]
pub enum Notification {
    /// A change that has settled, as `watch` prints it.
    Event(Arc<Event>),
    /// A plan is changing. This is sent before the change has settled. `None` means that any plan may be changing.
    Changed { plan: Option<PlanId> },
}

impl Notification {
    /// The kind of its JSON object.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Changed { .. } => "changed",
        }
    }

    /// The JSON object. For an event, it is the one that `watch --json` prints.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Event(event) => event.to_json(),
            Self::Changed { plan } => envelope("changed", json!({"plan": plan.as_ref().map(PlanId::as_str)})),
        }
    }
}
