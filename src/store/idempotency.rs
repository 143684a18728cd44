//! Requests with a key: the change is recorded under the key, so that it is not made again.
//!
//! Before a change is written, the data for the answer (`Made`) is attached to the request's key. `disk::keyed` puts this
//! data into the journal and, when the change is done, into the record of the key. HTTP and MCP then replace the record
//! with their complete answer. If a request is repeated and its record was not replaced, the answer is made from `Made`.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::request_key::{Answer, ClaimMade, Made, PendingChange, Record, RequestKey, hour};
use crate::api::views::{Views, value, with};
use crate::disk::{Answers, KeyLock};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, StepId};
use crate::store::load::LoadQuery;
use crate::store::repeat::REPEATED;
use crate::store::transaction::{self, ChangeReport, Changed, Mode};

/// How long a key is stored, in seconds.
pub const REMEMBERED: i64 = 24 * 60 * 60;

/// How many bytes a key may have.
const LONGEST: usize = 255;

/// How long a command waits for another one with the same key.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// If the request has a key, sets what is recorded under this key when the next change is written: `changes` returns what
/// the report will list.
pub(crate) fn record<'a>(context: &Context, changes: impl FnOnce() -> Vec<Changed> + 'a) {
    if let Some(key) = &context.key {
        let changes = changes().iter().map(value).collect();
        key.record(PendingChange { changes, ..PendingChange::default() });
    }
}

/// Sets what the answer of an import contains in addition to the plans. Must be called after [`record`], which discards
/// what was set before.
pub(crate) fn record_import(context: &Context, import: impl FnOnce() -> Map<String, Value>) {
    if let Some(key) = &context.key {
        key.pending.lock().unwrap_or_else(PoisonError::into_inner).import = import();
    }
}

/// Records that the next change is a claim.
pub(crate) fn record_claim(context: &Context, claim: impl FnOnce() -> ClaimMade) {
    if let Some(key) = &context.key {
        key.record(PendingChange { claim: Some(claim()), ..PendingChange::default() });
    }
}

/// Marks the next change as different from the requested one, so that it is not recorded under the key.
pub(crate) fn exclude_next_change(context: &Context) {
    if let Some(key) = &context.key {
        key.record(PendingChange { is_excluded: true, ..PendingChange::default() });
    }
}

/// Marks the request as one that makes several changes. None of them is recorded under the request's key, because a single
/// change does not complete the request.
pub(crate) fn record_many(context: &Context) {
    if let Some(key) = &context.key {
        key.is_of_many.store(true, Ordering::Relaxed);
    }
}

/// Returns a key for one change of a request that makes several; `part` identifies the change. If an earlier request with
/// the same key made this change, the returned key contains the change's record. `None` if the request has no key.
pub(crate) fn part(context: &Context, part: &str) -> Result<Option<Arc<RequestKey>>, Error> {
    let Some(key) = &context.key else { return Ok(None) };
    let name = name_of(&format!("{} {part}", key.name));
    let earlier = find(context, &name)?;
    Ok(Some(Arc::new(RequestKey::new(&name, &key.request, context.now, earlier))))
}

/// Sets the content of the key's record, if the request has a key.
pub(crate) fn prepare_record(
    context: &Context,
    verb: &str,
    paths: Vec<String>,
    diff: impl FnOnce() -> String,
) {
    if let Some(key) = &context.key {
        key.prepare_record(verb, paths, diff);
    }
}

pub fn name_of(key: &str) -> String {
    blake3::hash(key.as_bytes()).to_hex()[..32].to_owned()
}

fn answers(context: &Context) -> Result<Answers, Error> {
    context.plans.answers().ok_or_else(|| {
        let message = "keys cannot be stored here, because `.planwatch` cannot be used";
        Error::failed("idempotency-unavailable", message, "send the request without a key")
    })
}

fn io_error(error: &std::io::Error) -> Error {
    let message = format!("the records of idempotency keys cannot be read or written: {error}");
    let hint = "`planwatch doctor` reports the problem with the directory";
    Error::failed("idempotency-unavailable", message, hint)
}

/// Finds the record of a key; `None` if it is missing or older than a day. If no record is found at first, an interrupted
/// change is completed or undone, which may write the record.
pub fn find(context: &Context, name: &str) -> Result<Option<Record>, Error> {
    let answers = answers(context)?;
    let find = || answers.find(name).map_err(|error| io_error(&error));
    let mut bytes = find()?;
    if bytes.is_none() {
        if context.plans.has_journal() {
            drop(transaction::lock(context, "recover")?);
        }
        // Another command may have finished the change since the first look.
        bytes = find()?;
    }
    let Some(bytes) = bytes else { return Ok(None) };
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| io_error(&error.into()))?;
    Ok(Some(record).filter(|it| context.now.seconds_since(it.at) < REMEMBERED))
}

/// Begins a command that has a key: takes the key's lock, and finds what an earlier request with this key did.
///
/// `request` is the whole request as text. A key that belongs to a different request is refused.
pub fn begin(context: &Context, key: &str, request: &str) -> Result<RequestKey, Error> {
    begin_or_answer(context, key, request).map(|it| it.0)
}

/// Like [`begin`]; the second value is the stored answer of an earlier request with this key.
pub fn begin_or_answer(
    context: &Context,
    key: &str,
    request: &str,
) -> Result<(RequestKey, Option<Answer>), Error> {
    if key.is_empty() || key.len() > LONGEST {
        return Err(Error::usage(format!("a key has 1 to {LONGEST} bytes"), "give a key of this length"));
    }
    let (name, request) = (name_of(key), name_of(request));
    // The same command may still be running. Its result is known once the lock is free.
    let lock = lock(context, &name, LOCK_TIMEOUT)?.ok_or_else(|| {
        let message = "a request with this key is being carried out";
        Error::conflict("request-in-flight", message, "send it again later")
    })?;
    let earlier = find(context, &name)?;
    if earlier.as_ref().is_some_and(|it| it.request != request) {
        let hint = "use a new key";
        return Err(Error::conflict("idempotency-key-reused", "this key belongs to another request", hint));
    }
    forget_old(context, &answers(context)?);
    let answer = earlier.as_ref().and_then(|it| it.answer.clone());
    Ok((RequestKey::new(&name, &request, context.now, earlier).locked(lock), answer))
}

/// Takes the lock of a key, so that only one request with this key runs at a time; `None` if the lock is not free
/// within `patience`.
pub fn lock(context: &Context, name: &str, patience: Duration) -> Result<Option<KeyLock>, Error> {
    answers(context)?.lock(name, patience).map_err(|it| io_error(&it))
}

/// Returns the report of a change that an earlier request with the same key made. The report shows the plans and steps as
/// they are now. `None` if no such change is recorded, or if the change was a claim.
pub(crate) fn repeated(context: &Context, verb: &'static str) -> Option<ChangeReport> {
    let key = context.key.as_ref()?;
    let made = key.made().filter(|it| !it.is_claim())?;
    key.replay();
    let found = made.paths.iter().filter_map(|it| made.found(context, it));
    let changes = found.map(|it| Changed { was_written: false, did: REPEATED.to_owned(), ..it }).collect();
    Some(ChangeReport { changes, ..ChangeReport::new(verb, Mode::Write) })
}

/// Stores the answer in place of the record that was written with the change. Drops records that are older than a day.
pub fn keep(context: &Context, name: &str, request: &str, answer: Answer) -> Result<u64, Error> {
    let record = Record { request: request.to_owned(), at: context.now, made: None, answer: Some(answer) };
    let bytes = serde_json::to_vec(&record).unwrap_or_default();
    let answers = answers(context)?;
    answers.put(name, hour(context.now), &bytes).map_err(|error| io_error(&error))?;
    forget_old(context, &answers);
    Ok(bytes.len() as u64)
}

pub fn bytes(context: &Context) -> Result<u64, Error> {
    let answers = answers(context)?;
    forget_old(context, &answers);
    Ok(answers.bytes())
}

fn forget_old(context: &Context, answers: &Answers) {
    answers.forget_before(hour(context.now.plus_seconds(-REMEMBERED)));
}

impl Made {
    /// Returns the change in the form of a writing verb's report. If the plans and steps were not recorded with the change,
    /// the report shows them as they are now.
    pub fn to_json(&self, context: &Context) -> Value {
        let changes = match self.changes.as_slice() {
            [] => self.paths.iter().filter_map(|it| self.found(context, it)).map(|it| value(&it)).collect(),
            recorded => recorded.to_vec(),
        };
        let Self { verb, diff, .. } = self;
        json!({"verb": verb, "dry_run": false, "changes": changes, "refused": [], "diff": diff})
    }

    /// Adds to `report` the fields that only the answer of an import has.
    pub fn imported(&self, report: &Value) -> Value {
        with(report, self.import.clone().into())
    }

    pub(crate) fn diff(&self) -> &str {
        &self.diff
    }

    pub(crate) fn is_claim(&self) -> bool {
        self.claim.is_some()
    }

    /// The id of the first plan or step that was made or changed.
    pub fn first_id(&self) -> Option<String> {
        let recorded = self.changes.first().and_then(|it| it["id"].as_str()).map(str::to_owned);
        recorded.or_else(|| {
            self.paths.iter().find_map(|it| read_path(it)).map(|(plan, step)| match step {
                Some(step) => step.to_string(),
                None => plan.to_string(),
            })
        })
    }

    fn found(&self, context: &Context, path: &str) -> Option<Changed> {
        let (id, step) = read_path(path)?;
        let plans = LoadQuery::plan(&id).load(context).ok()?.plans;
        let views = Views::of(context, &plans);
        let plan = plans.get(&id);
        let step =
            step.map(|it| (it.to_string(), plan.and_then(|plan| plan.steps.iter().find(|at| at.id == it))));
        let (id, title, status, now) = match (step, plan) {
            (Some((id, Some(step))), Some(plan)) => {
                (id, step.title.clone(), step.status.word().to_owned(), value(&views.step(plan, step)))
            }
            (None, Some(plan)) => {
                let status = plan.shown_status().0.word().to_owned();
                (id.to_string(), plan.title.clone(), status, value(&views.plan(plan)))
            }
            (step, _) => {
                let id = step.map_or_else(|| id.to_string(), |it| it.0);
                (id.clone(), id, String::new(), Value::Null)
            }
        };
        let status = Some(status).filter(|it| !it.is_empty());
        Some(Changed { status, ..Changed::new(context, &id, (&title, path), &self.verb, now) })
    }
}

/// Returns the plan, and the step if any, to which a path below the plans directory belongs.
pub(crate) fn read_path(path: &str) -> Option<(PlanId, Option<StepId>)> {
    let mut names: Vec<&str> = path.split('/').collect();
    if names.first() == Some(&"_archive") {
        names.remove(0);
    }
    let plan = PlanId::new(*names.first()?);
    let step = names.get(1).and_then(|it| match file_name::classify(it) {
        FileName::Step(number) => Some(StepId { plan: plan.clone(), number }),
        _ => None,
    });
    Some((plan, step))
}

/// Returns the paths that identify the result of a change: the new files or, if there are none, all files.
pub(crate) fn result_paths(paths: &[(bool, &Path)]) -> Vec<String> {
    let all = |is_new: bool| {
        let paths = paths.iter().filter(|it| it.0 || !is_new);
        paths.map(|it| it.1.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    Some(all(true)).filter(|it| !it.is_empty()).unwrap_or_else(|| all(false))
}
