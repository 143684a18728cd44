//! The structured values in plan and step files, such as attempts, notes, claims and confirmations.

use borsh::{BorshDeserialize, BorshSerialize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::binary::{put_json, take_json};
use crate::plan::time::Time;

/// One try at a step; appended, never changed.
#[derive(
    Debug, Clone, Default, PartialEq, Serialize, Deserialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
pub struct Attempt {
    pub at: Option<Time>,
    pub by: Option<String>,
    /// Free text; planwatch itself writes a closed set of words.
    pub outcome: Option<String>,
    pub notes: Option<String>,
    /// Whatever else the item holds: `claim`, `seconds`, `exit_code`, a person's own keys.
    #[serde(flatten)]
    #[borsh(serialize_with = "put_json", deserialize_with = "take_json")]
    pub more: Map<String, Value>,
}

impl Attempt {
    /// The key for the time at which an attempt was recorded, if that was later than the attempt.
    pub const RECORDED_AT: &str = "recorded_at";

    /// When the attempt was made or recorded, whichever is newer.
    pub fn newest(&self) -> Option<Time> {
        let recorded = self.more.get(Self::RECORDED_AT).and_then(Value::as_str);
        self.at.max(recorded.and_then(|it| it.parse().ok()))
    }

    /// The id of the claim that the attempt ended.
    pub fn claim(&self) -> Option<&str> {
        self.more.get("claim").and_then(Value::as_str)
    }

    pub fn is_of_claim(&self, claim: &str) -> bool {
        self.claim() == Some(claim)
    }
}

/// The kind of a note.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    BorshSerialize,
    BorshDeserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum NoteType {
    #[default]
    Info,
    Warning,
    Instruction,
}

impl NoteType {
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Instruction => "instruction",
        }
    }

    pub fn read(word: &str) -> Option<Self> {
        let all = [Self::Info, Self::Warning, Self::Instruction];
        all.into_iter().find(|it| it.word().eq_ignore_ascii_case(word.trim()))
    }
}

/// A remark on a plan or a step; appended, never changed.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
pub struct Note {
    pub at: Option<Time>,
    #[serde(rename = "type")]
    pub kind: NoteType,
    pub by: Option<String>,
    pub text: String,
}

/// The claim of a step, as written in its file.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
pub struct Claim {
    /// The id that `store::fencing` compares with the caller's claim: a letter from g to z, and 7 hexadecimal digits.
    pub id: String,
    pub by: Option<String>,
    pub at: Option<Time>,
}

impl Attempt {
    /// Returns whether the attempt counts as a try of a worker: the worker's run recorded the attempt, or a later takeover
    /// did.
    ///
    /// A person's tries do not count. A run that a person stopped does not count either: its attempt is `interrupted` and
    /// has an exit code.
    pub fn counts_as_try(&self) -> bool {
        let has = |key: &str| self.more.contains_key(key);
        match self.outcome.as_deref() {
            Some("expired" | "timed out" | "no outcome reported" | "verify failed") => has("claim"),
            Some("interrupted") => has("claim") && !has("exit_code"),
            Some("failed") => has("claim") && (has("exit_code") || has("log")),
            _ => false,
        }
    }
}

/// Seconds after which a claim without a local record lapses: 24 hours.
pub const CLAIM_LAPSE: i64 = 86_400;

impl Claim {
    /// Returns when the claim lapses by its own time stamp.
    pub fn lapses_at(&self) -> Option<Time> {
        self.at.map(|it| it.plus_seconds(CLAIM_LAPSE))
    }

    /// Returns whether the claim has lapsed by its own time stamp; one without a readable time stamp never does.
    pub fn is_lapsed(&self, now: Time) -> bool {
        self.at.is_some_and(|at| now.seconds_since(at) >= CLAIM_LAPSE)
    }
}

/// A person's confirmation of a step or a phase.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
pub struct Confirmation {
    /// The phase that is confirmed; `None` for a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub phase: Option<String>,
    pub by: Option<String>,
    pub at: Option<Time>,
    pub note: Option<String>,
}

/// A command that must succeed before a run counts its step as completed.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
pub struct Verify {
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub timeout: Option<String>,
}

/// How urgent something is.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    BorshSerialize,
    BorshDeserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Priority {
    Low,
    #[default]
    Medium,
    High,
    Critical,
}

impl Priority {
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word().eq_ignore_ascii_case(word.trim()))
    }
}
