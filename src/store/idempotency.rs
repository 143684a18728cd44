//! Requests that carry a key: what was done for a key is recorded with the change, so that it is not done again.
//!
//! Before a change is written, its key is given what the answer needs (`Made`). `disk::keyed` puts that into the journal
//! and, when the change is done, into the record of the key. A surface replaces the record by its whole answer. A request
//! whose key has a record without an answer was interrupted after its change; the answer is made from the record.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::request_key::{Answer, ClaimMade, Made, Record, RequestKey, Told, hour};
use crate::api::views::{Views, shown_path, value};
use crate::disk::{Answers, KeyLock};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, StepId};
use crate::store::load::LoadQuery;
use crate::store::repeat::REPEATED;
use crate::store::transaction::{self, ChangeReport, Changed, Mode};

/// How long a key is remembered, in seconds.
pub const REMEMBERED: i64 = 24 * 60 * 60;

/// How many bytes a key may have.
const LONGEST: usize = 255;

/// How long a command waits for another one with the same key.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says what the next change answers, if the request has a key.
pub(crate) fn tell<'a>(context: &Context, changes: impl FnOnce() -> Vec<Changed> + 'a) {
    if let Some(key) = &context.key {
        let changes = changes().iter().map(Changed::to_json).collect();
        key.tell(Told { changes, ..Told::default() });
    }
}

/// Says what the next change, an import, answers beside the plans.
pub(crate) fn tell_import(context: &Context, import: impl FnOnce() -> Map<String, Value>) {
    if let Some(key) = &context.key {
        key.told.lock().unwrap_or_else(PoisonError::into_inner).import = import();
    }
}

/// Says that the next change is a claim.
pub(crate) fn tell_claim(context: &Context, claim: impl FnOnce() -> ClaimMade) {
    if let Some(key) = &context.key {
        key.tell(Told { claim: Some(claim()), ..Told::default() });
    }
}

/// Says that the next change is not what the request asks for: the key does not belong to it.
pub(crate) fn tell_aside(context: &Context) {
    if let Some(key) = &context.key {
        key.tell(Told { is_aside: true, ..Told::default() });
    }
}

/// Says that the request makes several changes, each of which finds what is left to do: one of them is not the request.
pub(crate) fn tell_many(context: &Context) {
    if let Some(key) = &context.key {
        key.is_of_many.store(true, Ordering::Relaxed);
    }
}

/// Gives the key of the request, if it has one, what its record is to hold.
pub(crate) fn about_to(context: &Context, verb: &str, paths: Vec<String>, diff: impl FnOnce() -> String) {
    if let Some(key) = &context.key {
        key.about_to(verb, paths, diff);
    }
}

/// The name of a key's record.
pub fn name_of(key: &str) -> String {
    blake3::hash(key.as_bytes()).to_hex()[..32].to_owned()
}

fn answers(context: &Context) -> Result<Answers, Error> {
    context.plans.answers().ok_or_else(|| Error::Failed {
        code: "idempotency-unavailable",
        message: "keys cannot be remembered here, because `.planwatch` cannot be used".to_owned(),
        hint: "send the request without a key".to_owned(),
    })
}

fn io_error(error: &std::io::Error) -> Error {
    Error::Failed {
        code: "idempotency-unavailable",
        message: format!("what is remembered of keys cannot be read or written: {error}"),
        hint: "`planwatch doctor` reports the problem with the directory".to_owned(),
    }
}

/// Finds what is remembered of a key. A change that was interrupted is finished, or taken back, before the answer.
pub fn find(context: &Context, name: &str) -> Result<Option<Record>, Error> {
    let answers = answers(context)?;
    let find = || answers.find(name).map_err(|error| io_error(&error));
    let mut bytes = find()?;
    if bytes.is_none() {
        if context.plans.has_journal() {
            drop(transaction::lock(context, "recover")?);
        }
        // Another command may have finished it in between.
        bytes = find()?;
    }
    let Some(bytes) = bytes else { return Ok(None) };
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| io_error(&error.into()))?;
    Ok(Some(record).filter(|it| context.now.seconds_since(it.at) < REMEMBERED))
}

/// Begins a request of the command line, which is carried out once for its key; `request` is all that it asks for.
pub fn begin(context: &Context, key: &str, request: &str) -> Result<RequestKey, Error> {
    begin_or_answer(context, key, request).map(|it| it.0)
}

/// As [`begin`]; the second is the answer of an earlier request with this key, where it was kept.
pub fn begin_or_answer(
    context: &Context,
    key: &str,
    request: &str,
) -> Result<(RequestKey, Option<Answer>), Error> {
    if key.is_empty() || key.len() > LONGEST {
        return Err(Error::usage(format!("a key has 1 to {LONGEST} characters"), "give a shorter one"));
    }
    let (name, request) = (name_of(key), name_of(request));
    // The same command may be running: what it did is known when it has ended.
    let lock = lock(context, &name, PATIENCE)?.ok_or_else(|| Error::Conflict {
        code: "request-in-flight",
        message: "a request with this key is being carried out".to_owned(),
        hint: "send it again later".to_owned(),
    })?;
    let earlier = find(context, &name)?;
    if earlier.as_ref().is_some_and(|it| it.request != request) {
        return Err(Error::Conflict {
            code: "idempotency-key-reused",
            message: "this key belongs to another request".to_owned(),
            hint: "use a new key".to_owned(),
        });
    }
    forget_old(context, &answers(context)?);
    let answer = earlier.as_ref().and_then(|it| it.answer.clone());
    Ok((RequestKey::new(&name, &request, context.now, earlier).locked(lock), answer))
}

/// Takes the lock of a key, by which one request with it at a time is carried out; `None` after `patience`.
pub fn lock(context: &Context, name: &str, patience: Duration) -> Result<Option<KeyLock>, Error> {
    answers(context)?.lock(name, patience).map_err(|it| io_error(&it))
}

/// What an earlier request with the same key did, with the plans and steps as they are now; none if there was none.
pub(crate) fn repeated(context: &Context, verb: &'static str) -> Option<ChangeReport> {
    let key = context.key.as_ref()?;
    let made = key.made().filter(|it| !it.is_claim())?;
    key.replay();
    let found = made.paths.iter().filter_map(|it| made.found(context, it));
    let changes = found.map(|it| Changed { was_written: false, did: REPEATED.to_owned(), ..it }).collect();
    Some(ChangeReport { changes, ..ChangeReport::new(verb, Mode::Write) })
}

/// Remembers an answer in the place of what was recorded with the change; what is older than a day is forgotten.
pub fn keep(context: &Context, name: &str, request: &str, answer: Answer) -> Result<u64, Error> {
    let record = Record { request: request.to_owned(), at: context.now, made: None, answer: Some(answer) };
    let bytes = serde_json::to_vec(&record).unwrap_or_default();
    let answers = answers(context)?;
    answers.put(name, hour(context.now), &bytes).map_err(|error| io_error(&error))?;
    forget_old(context, &answers);
    Ok(bytes.len() as u64)
}

/// As [`keep`], for the request that has begun with this key.
pub fn keep_for(context: &Context, key: &RequestKey, answer: Answer) -> Result<u64, Error> {
    keep(context, &key.name, &key.request, answer)
}

/// How many bytes the records of the last day have.
pub fn bytes(context: &Context) -> Result<u64, Error> {
    let answers = answers(context)?;
    forget_old(context, &answers);
    Ok(answers.bytes())
}

fn forget_old(context: &Context, answers: &Answers) {
    answers.forget_before(hour(context.now.plus_seconds(-REMEMBERED)));
}

/// What a key made, as a report.
impl Made {
    /// The change as a writing verb reports it: with the plans and steps as they were to be, or as they are now where
    /// that was not known before.
    pub fn to_json(&self, context: &Context) -> Value {
        let changes = match self.changes.as_slice() {
            [] => self.paths.iter().filter_map(|it| self.found(context, it)).map(|it| it.to_json()).collect(),
            told => told.to_vec(),
        };
        let Self { verb, diff, .. } = self;
        json!({"verb": verb, "dry_run": false, "changes": changes, "refused": [], "diff": diff})
    }

    /// The report with what an import answers beside its change.
    pub fn imported(&self, mut report: Value) -> Value {
        if let Some(map) = report.as_object_mut() {
            map.extend(self.import.clone());
        }
        report
    }

    pub(crate) fn diff(&self) -> &str {
        &self.diff
    }

    pub(crate) fn is_claim(&self) -> bool {
        self.claim.is_some()
    }

    /// The id of the first plan or step that was made or changed.
    pub fn first_id(&self) -> Option<String> {
        let told = self.changes.first().and_then(|it| it["id"].as_str()).map(str::to_owned);
        told.or_else(|| {
            self.paths.iter().find_map(|it| read_path(it)).map(|(plan, step)| match step {
                Some(step) => step.to_string(),
                None => plan.to_string(),
            })
        })
    }

    fn found(&self, context: &Context, path: &str) -> Option<Changed> {
        let (id, step) = read_path(path)?;
        let plans = LoadQuery::plan(&id).load(context).ok()?.plans;
        let root = context.root_name();
        let views = Views { plans: &plans, now: context.now, root: &root };
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
        Some(Changed {
            id,
            title,
            path: shown_path(&root, path),
            was_written: true,
            was: None,
            status: Some(status).filter(|it| !it.is_empty()),
            did: self.verb.clone(),
            now,
        })
    }
}

/// The plan or step whose file, or whose directory, is at a path.
fn read_path(path: &str) -> Option<(PlanId, Option<StepId>)> {
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

/// The paths that tell what a change made: of new files, or else of all.
pub(crate) fn telling(paths: &[(bool, &Path)]) -> Vec<String> {
    let all = |is_new: bool| {
        let paths = paths.iter().filter(|it| it.0 || !is_new);
        paths.map(|it| it.1.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    Some(all(true)).filter(|it| !it.is_empty()).unwrap_or_else(|| all(false))
}
