//! Finds what happened to plans between two versions of their files. Commit messages are not read.
//!
//! The functions are pure. The caller reads the versions from git or from the disk.

mod compare;
mod follow;
mod moves;
mod place;
#[cfg(test)]
mod tests;
mod version;

use borsh::{BorshDeserialize, BorshSerialize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::time::Time;

pub use follow::Followed;
pub use moves::{FileChange, changes};
pub use place::Place;
pub use version::Version;

/// What a change is about.
#[derive(
    Debug,
    Clone,
    Copy,
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
pub enum What {
    Created,
    Removed,
    Moved,
    Archived,
    Restored,
    Status,
    Attempt,
    Claim,
    Released,
    Note,
    Depends,
    Title,
    Text,
    Confirmed,
    Decision,
    Insight,
}

impl What {
    pub const ALL: [Self; 16] = [
        Self::Created,
        Self::Removed,
        Self::Moved,
        Self::Archived,
        Self::Restored,
        Self::Status,
        Self::Attempt,
        Self::Claim,
        Self::Released,
        Self::Note,
        Self::Depends,
        Self::Title,
        Self::Text,
        Self::Confirmed,
        Self::Decision,
        Self::Insight,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Removed => "removed",
            Self::Moved => "moved",
            Self::Archived => "archived",
            Self::Restored => "restored",
            Self::Status => "status",
            Self::Attempt => "attempt",
            Self::Claim => "claim",
            Self::Released => "released",
            Self::Note => "note",
            Self::Depends => "depends",
            Self::Title => "title",
            Self::Text => "text",
            Self::Confirmed => "confirmed",
            Self::Decision => "decision",
            Self::Insight => "insight",
        }
    }

    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word().eq_ignore_ascii_case(word.trim()))
    }
}

/// One change of one plan, step, decision or insight.
#[derive(Debug, Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Change {
    pub what: What,
    /// The plan's id after the change; for a removal, its last id.
    pub plan: Option<String>,
    /// The step's full id after the change; for a removal, its last id.
    pub step: Option<String>,
    /// The file, relative to the plans directory.
    pub path: String,
    /// The old status, title, claim, dependencies or id. For a new decision, the id of the decision that it supersedes.
    pub from: Option<String>,
    pub to: Option<String>,
    /// The time of the change, if the file records it.
    pub at: Option<Time>,
    /// Who made the change, if the file records it.
    pub by: Option<String>,
    pub outcome: Option<String>,
    pub notes: Option<String>,
    /// How many lines of the body were added, and how many were removed.
    pub lines: Option<(u64, u64)>,
    /// For [`What::Text`]: the changed keys of the front matter that no other change reports.
    pub keys: Vec<String>,
}

impl Change {
    /// A change with the ids of `place`. The fields for details are empty.
    fn of(what: What, place: &Place, path: &str) -> Self {
        Self {
            what,
            plan: place.plan().map(|it| it.as_str().to_owned()),
            step: place.step().map(|it| it.to_string()),
            path: path.to_owned(),
            from: None,
            to: None,
            at: None,
            by: None,
            outcome: None,
            notes: None,
            lines: None,
            keys: Vec::new(),
        }
    }
}
