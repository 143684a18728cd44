//! The value of a claim's record, as JSON. It comes from other machines, so all of it is checked.

use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::time::Time;
use crate::plan::words::StepStatus;

/// The longest record, in bytes.
pub(crate) const LONGEST: usize = 4096;

/// The longest text field of a record, in characters.
const LONGEST_TEXT: usize = 200;

/// The bounds of [`Record::ttl`], in seconds.
pub(crate) const SHORTEST_TTL: i64 = 5 * 60;
pub(crate) const LONGEST_TTL: i64 = 24 * 60 * 60;

const VERSION: u32 = 1;

/// Whether the work is going on, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Claimed,
    Completed,
    Failed,
    Blocked,
    Skipped,
}

impl State {
    /// The state after the work ended with this status; `None` if it has not ended.
    pub(crate) fn of(status: StepStatus) -> Option<Self> {
        match status {
            StepStatus::Completed => Some(Self::Completed),
            StepStatus::Failed => Some(Self::Failed),
            StepStatus::Blocked => Some(Self::Blocked),
            StepStatus::Skipped => Some(Self::Skipped),
            StepStatus::Pending | StepStatus::InProgress => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
        }
    }

    pub(crate) fn has_ended(self) -> bool {
        self != Self::Claimed
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    v: u32,
    pub(crate) plan: String,
    /// The number, in its canonical form.
    pub(crate) step: String,
    /// The claim's id, as in the step's file.
    pub(crate) id: String,
    pub(crate) by: String,
    pub(crate) host: String,
    /// `refs/heads/…`; `None` for a detached HEAD, and for a name that is too long.
    pub(crate) branch: Option<String>,
    /// When this value was written, by the clock of the machine that wrote it. Used for display only.
    pub(crate) at: Time,
    /// After how many seconds the record lapses if it is not renewed.
    pub(crate) ttl: i64,
    /// A running process renews the claim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_renewed: bool,
    pub(crate) nonce: String,
    pub(crate) state: State,
    /// The step's id in its owner's working tree, if the step was moved after it was claimed. The record under the
    /// earlier id reserves the step in clones that do not have the move yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved_to: Option<String>,
}

/// The content of a new record.
pub(crate) struct NewRecord<'a> {
    pub(crate) step: &'a StepId,
    pub(crate) id: &'a str,
    pub(crate) by: &'a str,
    pub(crate) host: &'a str,
    pub(crate) branch: Option<&'a str>,
    pub(crate) at: Time,
    pub(crate) ttl: i64,
    pub(crate) is_renewed: bool,
    pub(crate) nonce: u128,
    pub(crate) state: State,
}

impl Record {
    pub(crate) fn new(new: &NewRecord<'_>) -> Self {
        Self {
            v: VERSION,
            plan: new.step.plan.to_string(),
            step: new.step.number.to_string(),
            id: new.id.to_owned(),
            by: shortened(new.by),
            host: shortened(new.host),
            branch: branch_of(new.branch),
            at: new.at.whole_seconds(),
            ttl: new.ttl.clamp(SHORTEST_TTL, LONGEST_TTL),
            is_renewed: new.is_renewed,
            nonce: format!("{:032x}", new.nonce),
            state: new.state,
            moved_to: None,
        }
    }

    /// The same claim in another state, or with a later time.
    pub(crate) fn again(&self, state: State, at: Time, nonce: u128) -> Self {
        Self { at: at.whole_seconds(), nonce: format!("{nonce:032x}"), state, ..self.clone() }
    }

    /// The same record with another branch.
    pub(crate) fn on(self, branch: Option<&str>) -> Self {
        Self { branch: branch_of(branch), ..self }
    }

    /// The record of the same claim for the id `step`. `now` is the step's present id, which differs if `step` is an
    /// earlier id.
    pub(crate) fn of_step(self, step: &StepId, now: &StepId) -> Self {
        let moved_to = (step != now).then(|| now.to_string());
        Self { plan: step.plan.to_string(), step: step.number.to_string(), moved_to, ..self }
    }

    pub(crate) fn body(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a value of the record `name`. `None` if the value is not valid, or was written in a later version of the
    /// format.
    pub(crate) fn read(name: &Name, body: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(body).ok().filter(|_| body.len() <= LONGEST)?;
        let texts = [&record.plan, &record.by, &record.host];
        let is_word = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric());
        let is_branch = |it: &String| it.starts_with("refs/heads/") && is_text(it) && is_ref(it);
        let is_good = record.v == VERSION
            && texts.iter().all(|it| is_text(it))
            && PlanId::is_plan_name(&record.plan)
            && is_word(&record.id)
            && record.id.len() <= 16
            && is_word(&record.nonce)
            && record.nonce.len() == 32
            && record.branch.as_ref().is_none_or(is_branch)
            && record.moved_to.as_ref().is_none_or(|it| is_text(it) && read_step_id(it).is_some())
            && record.step_id().is_some_and(|it| name.is_of(&it));
        is_good.then(|| Self { ttl: record.ttl.clamp(SHORTEST_TTL, LONGEST_TTL), ..record })
    }

    pub(crate) fn step_id(&self) -> Option<StepId> {
        let number = self.step.parse().ok()?;
        let id = StepId { plan: PlanId::new(&self.plan), number };
        // planwatch writes only canonical numbers.
        (id.number.to_string() == self.step).then_some(id)
    }

    /// The branch without `refs/heads/`.
    pub(crate) fn short_branch(&self) -> Option<&str> {
        self.branch.as_deref().map(|it| it.trim_start_matches("refs/heads/"))
    }
}

fn branch_of(name: Option<&str>) -> Option<String> {
    name.map(str::to_owned).filter(|it| is_text(it))
}

/// Whether a text can be shown on one line.
fn is_text(text: &str) -> bool {
    text.chars().take(LONGEST_TEXT + 1).count() <= LONGEST_TEXT && !text.chars().any(char::is_control)
}

/// A first check of a ref's name; git checks the rest.
fn is_ref(text: &str) -> bool {
    !text.contains([' ', '~', '^', ':', '?', '*', '[', '\\']) && !text.contains("..") && !text.contains("@{")
}

fn shortened(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::id::read_step_id;

    fn sample() -> Record {
        Record::new(&NewRecord {
            step: &read_step_id("auth:2.50").unwrap(),
            id: "h4f09a21",
            by: "ann\n\u{1b}[31m",
            host: "laptop",
            branch: Some("refs/heads/main"),
            at: "2026-11-21T12:00:00.5Z".parse().unwrap(),
            ttl: 1,
            is_renewed: true,
            nonce: 7,
            state: State::Claimed,
        })
    }

    fn read(body: &str) -> Option<Record> {
        Record::read(&Name::of("plans", &read_step_id("auth:2.5").unwrap()), body)
    }

    #[test]
    fn what_is_written_is_read() {
        let record = sample();
        assert_eq!((record.by.as_str(), record.ttl, record.step.as_str()), ("ann[31m", SHORTEST_TTL, "2.5"));
        assert_eq!(read(&record.body()), Some(record.clone()));
        let later = record.again(State::Completed, record.at, 8);
        assert_ne!(later.body(), record.body());
        assert_eq!(read(&later.body()).unwrap().state, State::Completed);
    }

    #[test]
    fn records_of_others_are_checked() {
        let change = |key: &str, value: Value| {
            let mut object: Value = serde_json::from_str(&sample().body()).unwrap();
            object[key] = value;
            object.to_string()
        };
        let refused = [
            change("v", json!(2)),
            change("plan", json!("../auth")),
            change("plan", json!("other")),
            change("step", json!("2.50")),
            change("step", json!("1")),
            change("id", json!("a b")),
            change("id", json!("")),
            change("by", json!("a\u{1b}[2J")),
            change("by", json!("x".repeat(201))),
            change("host", json!("a\nb")),
            change("branch", json!("main")),
            change("branch", json!("refs/heads/a..b")),
            change("branch", json!("refs/heads/-x y")),
            change("nonce", json!("é".repeat(16))),
            // 32 bytes; the middle is inside a character.
            change("nonce", json!(format!("a{}b", "é".repeat(15)))),
            change("nonce", json!(format!("{}{}", "0".repeat(16), "é".repeat(8)))),
            change("nonce", json!("7")),
            change("state", json!("won")),
            change("at", json!("yesterday")),
            change("at", json!("-000005-01-01T00:00:00Z")),
            change("ttl", json!("1h")),
            "[]".to_owned(),
            String::new(),
            format!("{}{}", sample().body(), " ".repeat(LONGEST)),
        ];
        for body in refused {
            assert_eq!(read(&body), None, "{body}");
        }
        for (ttl, bounded) in [(-1, SHORTEST_TTL), (1_000_000, LONGEST_TTL), (3600, 3600)] {
            assert_eq!(read(&change("ttl", json!(ttl))).unwrap().ttl, bounded);
        }
        assert!(read(&change("more", json!("is allowed"))).is_some());
    }
}
