//! The context that every verb receives: the plans directory, the time, the caller's name, the configuration, and more.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::config::Config;
use crate::api::daemon::Freshness;
use crate::api::precondition::Expected;
use crate::api::request_key::RequestKey;
use crate::api::sync_config::DatabaseLogin;
use crate::disk::{FileOp, PlansDir};
use crate::plan::problem::Problem;
use crate::plan::time::Time;

/// The context of one request. A long-running surface makes one for each request.
pub struct Context {
    pub plans: PlansDir,
    pub now: Time,
    /// The caller's name, for `by` in attempts and notes.
    pub by: String,
    pub config: Config,
    pub reading: Reading,
    pub freshness: Freshness,
    pub here: Here,
    /// The precondition of a change, if it has one.
    pub expected: Option<Expected>,
    /// The key of a request that must not be carried out twice.
    pub key: Option<Arc<RequestKey>>,
    /// Receives notices as they happen; [`Context::notify`] calls it.
    pub on_notice: Box<dyn Fn(Notice) + Send + Sync>,
    /// Facts that this request's answer needs, such as saves by other programs that raced with writes of planwatch.
    pub kept: KeptSaves,
    /// Collects the file changes of a request, for a caller that makes a dry run and then applies the changes itself.
    pub planned: Option<Planned>,
}

/// The ordered list of file changes. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Planned(Arc<Mutex<Vec<FileOp>>>);

impl Planned {
    pub(crate) fn note(&self, op: FileOp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(op);
    }

    /// Removes and returns the changes that were noted so far.
    pub fn take(&self) -> Vec<FileOp> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text that was preserved because it is in no plan file, usually an editor's save that raced with a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptSave {
    /// The file, relative to the plans directory.
    pub path: String,
    /// The path at which the save is stored, relative to the plans directory.
    pub kept: String,
    /// The reason: `late`, `overtaken` or `interrupted`; see `disk::KeptWhy`.
    pub why: String,
}

/// Facts about a request that its answer needs: the saves that it stored, whether it changed a file, and whether a record
/// for `undo` could not be written. Clones share these facts.
#[derive(Debug, Clone, Default)]
pub struct KeptSaves {
    saves: Arc<Mutex<Vec<KeptSave>>>,
    has_changed: Arc<AtomicBool>,
    is_unrecorded: Arc<AtomicBool>,
}

impl KeptSaves {
    /// A list of `{path, kept, why}`; `None` if nothing was kept.
    pub fn to_json(&self) -> Option<Value> {
        let kept = self.saves.lock().unwrap_or_else(PoisonError::into_inner);
        (!kept.is_empty()).then(|| serde_json::to_value(&*kept).unwrap_or_default())
    }

    /// Calls [`Self::put_into`] if answers of this kind can have the fields that it adds.
    pub fn put_into_answer(&self, kind: &str, object: &mut Value) {
        if ["change", "claim", "import", "init", "git-resolve"].contains(&kind) {
            self.put_into(object);
        }
    }

    /// If saves were kept, adds the list of [`Self::to_json`] to the object as `kept`. If the record for `undo` could not be
    /// written, adds `not_recorded`.
    pub fn put_into(&self, object: &mut Value) {
        let Value::Object(object) = object else { return };
        if let Some(kept) = self.to_json() {
            object.insert("kept".to_owned(), kept);
        }
        if self.is_unrecorded.load(Ordering::Relaxed) {
            object.insert("not_recorded".to_owned(), Value::Bool(true));
        }
    }

    /// Remembers that a file was changed. This stays true if the request fails afterwards.
    pub fn note_change(&self) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    pub fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }

    /// Stores the data of [`Notice::Kept`] and [`Notice::NotRecorded`]. Ignores all other notices.
    pub fn note(&self, notice: &Notice) {
        match notice.clone() {
            Notice::Kept { path, kept, why } => {
                self.saves.lock().unwrap_or_else(PoisonError::into_inner).push(KeptSave { path, kept, why });
            }
            Notice::NotRecorded => self.is_unrecorded.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}

#[cfg(test)]
impl Context {
    /// The context of a test on the model's disk: the caller is ann, the time is noon, and plans are read from the
    /// files.
    pub(crate) fn on_model(machine: &crate::disk::model::Machine) -> Self {
        Self::of(machine.plans())
    }

    /// Like [`Self::on_model`], for any plans directory.
    pub(crate) fn of(plans: PlansDir) -> Self {
        Self {
            plans,
            now: "2026-11-21T12:00:00Z".parse().unwrap(),
            by: "ann".to_owned(),
            config: Config::default(),
            reading: Reading::Files,
            freshness: Freshness::Unknown,
            here: Here::default(),
            expected: None,
            key: None,
            on_notice: Box::new(|_| {}),
            kept: KeptSaves::default(),
            planned: None,
        }
    }
}

/// The source from which read-only verbs load plans: the index or the files. The answers are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Index,
    Files,
}

/// Where the request was made. If the request names no plan, [`Self::plan`] or [`Self::directory`] can select the plan.
#[derive(Debug, Clone, Default)]
pub struct Here {
    /// The absolute working directory.
    pub directory: PathBuf,
    /// The repository's root, or the parent of the plans directory if there is no repository. Scripts run here by default.
    pub root: PathBuf,
    /// The root of the repository around the plans, if they are in one.
    pub repository: Option<PathBuf>,
    /// The configuration file in force, if there is one.
    pub config_file: Option<PathBuf>,
    /// The problems in that file. The path of each problem is only the file's name.
    pub config_problems: Vec<Problem>,
    /// `PLANWATCH_PLAN`.
    pub plan: Option<String>,
    /// `PLANWATCH_STEP`, the full id of the step that this process works on.
    pub step: Option<String>,
    /// `PLANWATCH_CLAIM`, the id of a claim on that step. It is used for no other step.
    pub claim: Option<String>,
    pub database: DatabaseLogin,
}

/// A message to the user that is not an error, for example a line on stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The request has waited for more than a second for a lock that another process holds.
    WaitingForLock,
    /// An index could not be used, for example because it was damaged. It was replaced with a new one.
    IndexRebuilt { why: String },
    /// The index on disk could not be used or updated. This answer uses data in memory instead.
    IndexInMemory { why: String },
    /// A text that is in no plan file was stored at the path `kept`. Usually it is a save that raced with a write of
    /// planwatch.
    Kept { path: String, kept: String, why: String },
    /// A change was made, but its record for `undo` could not be written.
    NotRecorded,
    /// Claims cannot be recorded where other working trees would see them. If there are other working trees, a new claim
    /// without `--force` fails instead, with [`Error::ClaimsNotShared`](crate::api::error::Error::ClaimsNotShared).
    ClaimsNotShared { path: String, why: String },
    /// The registry has not confirmed a claim or the end of a claim. The change is sent to the registry again later.
    Unsettled { step: String, why: String },
    /// Steps with changes of claims that the registry has not confirmed.
    UnsettledClaims { steps: Vec<String> },
    /// A change of several files was interrupted, and stays unfinished.
    Interrupted { what: String },
    /// An unfinished change of several files was finished or undone.
    Recovered { what: String },
}

impl Context {
    /// Passes a notice to `on_notice`, and records in `kept` what the answer has to contain.
    pub fn notify(&self, notice: Notice) {
        self.kept.note(&notice);
        (self.on_notice)(notice);
    }

    /// The last component of the plans directory's path. Paths that are shown to the user begin with it.
    pub fn root_name(&self) -> String {
        self.plans.root().file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
    }
}
