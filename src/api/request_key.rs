//! The key of a request that must not be carried out twice, and what is recorded for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::disk::{KeyLock, Keyed};
use crate::plan::time::Time;

const HOUR: i64 = 60 * 60;

/// The hour under which a record is stored: the number of hours since 1970.
pub(crate) fn hour(at: Time) -> i64 {
    at.seconds_since(Time::from_nanoseconds(0)).div_euclid(HOUR)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// A hash of the request that the key belongs to.
    pub request: String,
    pub at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The part of a [`Record`] that describes a change. It is stored together with the change, so it contains only what is
/// known before the write.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    pub(crate) verb: String,
    /// The files that the change created, relative to the plans directory. If it created none, the files that it changed or
    /// renamed.
    pub(crate) paths: Vec<String>,
    /// The changes as the report lists them. If this list is empty, the changed plans and steps are found from `paths`.
    pub(crate) changes: Vec<Value>,
    /// The fields that only the answer of `import` has.
    #[serde(default)]
    pub(crate) import: Map<String, Value>,
    pub(crate) diff: String,
    pub(crate) claim: Option<ClaimMade>,
}

impl Eq for Made {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimMade {
    pub(crate) step: String,
    pub(crate) id: String,
    /// The end of the lease. `None`: the claim is valid as long as its process runs.
    pub(crate) until: Option<Time>,
    pub(crate) why: String,
}

#[derive(Debug)]
pub struct RequestKey {
    pub(crate) name: String,
    pub(crate) request: String,
    at: Time,
    pub(crate) keyed: Keyed,
    /// The change that an earlier request with this key made.
    pub(crate) made: Option<Made>,
    pub(crate) pending: Mutex<PendingChange>,
    is_replayed: AtomicBool,
    is_answer_dropped: AtomicBool,
    pub(crate) is_of_many: AtomicBool,
    /// Other requests with this key wait for this lock.
    _lock: Option<KeyLock>,
}

/// The data for the [`Made`] of the next change.
#[derive(Debug, Default)]
pub(crate) struct PendingChange {
    pub(crate) changes: Vec<Value>,
    pub(crate) import: Map<String, Value>,
    pub(crate) claim: Option<ClaimMade>,
    pub(crate) is_excluded: bool,
}

impl RequestKey {
    /// `name` is a hash of the key, `request` is a hash of the request, and `earlier` is the stored record of the key.
    pub fn new(name: &str, request: &str, at: Time, earlier: Option<Record>) -> Self {
        Self {
            name: name.to_owned(),
            request: request.to_owned(),
            at,
            keyed: Keyed::new(name, hour(at)),
            made: earlier.and_then(|it| it.made),
            pending: Mutex::default(),
            is_replayed: AtomicBool::new(false),
            is_answer_dropped: AtomicBool::new(false),
            is_of_many: AtomicBool::new(false),
            _lock: None,
        }
    }

    /// Stores the lock of the key, which is released at the end of the request.
    #[must_use]
    pub fn locked(self, lock: KeyLock) -> Self {
        Self { _lock: Some(lock), ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn keyed(&self) -> Keyed {
        self.keyed.clone()
    }

    /// The change that an earlier request with this key made. That request ended without storing its answer.
    pub fn made(&self) -> Option<&Made> {
        self.made.as_ref()
    }

    /// Whether the answer describes the change of an earlier request.
    pub fn is_replayed(&self) -> bool {
        self.is_replayed.load(Ordering::Relaxed)
    }

    pub fn replay(&self) {
        self.is_replayed.store(true, Ordering::Relaxed);
    }

    /// Whether the answer is not stored, because the request changed nothing and may succeed the next time.
    pub(crate) fn is_answer_dropped(&self) -> bool {
        self.is_answer_dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn drop_answer(&self) {
        self.is_answer_dropped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn record(&self, pending: PendingChange) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = pending;
    }

    /// Sets the record that is stored for the key when the change is written. No record is stored if the change is not the
    /// requested one, or if the request makes several changes.
    pub(crate) fn prepare_record(&self, verb: &str, paths: Vec<String>, diff: impl FnOnce() -> String) {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.is_excluded || self.is_of_many.load(Ordering::Relaxed) {
            return self.keyed.note(None);
        }
        let (changes, import, claim) =
            (pending.changes.clone(), pending.import.clone(), pending.claim.clone());
        let made = Made { verb: verb.to_owned(), paths, changes, import, diff: diff(), claim };
        let record = Record { request: self.request.clone(), at: self.at, made: Some(made), answer: None };
        self.keyed.note(serde_json::to_vec(&record).ok());
    }
}
