//! The precondition of a change: the file has not changed since the caller read it. The precondition is checked under the
//! lock, against the file's current content.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{Views, value};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;

/// The accepted etags. The file must have one of them, or must not exist in the case of [`Self::no_file`]. For a plan, the
/// file is its `plan.md`.
#[derive(Debug)]
pub struct Expected {
    etags: Vec<String>,
    is_for_no_file: bool,
    is_checked: AtomicBool,
}

impl Expected {
    pub fn new(etags: Vec<String>) -> Self {
        Self { etags, is_for_no_file: false, is_checked: AtomicBool::new(false) }
    }

    /// The precondition that the file does not exist.
    pub fn no_file() -> Self {
        Self { is_for_no_file: true, ..Self::new(Vec::new()) }
    }

    fn is_met(&self, etag: Option<&str>) -> bool {
        self.is_checked.store(true, Ordering::Relaxed);
        match etag {
            Some(it) => self.etags.iter().any(|expected| expected == it),
            None => self.is_for_no_file,
        }
    }
}

/// Returns an error if the step's file does not meet the precondition. The error contains the current step.
pub(crate) fn check_step(context: &Context, plans: &Plans, plan: &Plan, step: &Step) -> Result<(), Error> {
    check(context, &step.id.to_string(), step.etag.as_deref(), |it| value(&it.step(plan, step)), plans)
}

/// Returns an error if the plan's file does not meet the precondition. The error contains the current plan.
pub(crate) fn check_plan(context: &Context, plans: &Plans, plan: &Plan) -> Result<(), Error> {
    check(context, plan.id.as_str(), plan.etag.as_deref(), |it| value(&it.plan(plan)), plans)
}

fn check(
    context: &Context,
    id: &str,
    etag: Option<&str>,
    now: impl FnOnce(&Views<'_>) -> Value,
    plans: &Plans,
) -> Result<(), Error> {
    if context.expected.as_ref().is_none_or(|it| it.is_met(etag)) {
        return Ok(());
    }
    let (stale_seconds, root) = (context.config.stale_seconds(), context.root_name());
    let now = Box::new(now(&Views { plans, now: context.now, stale_seconds, root }));
    Err(Error::NotExpected { id: id.to_owned(), etag: etag.map(str::to_owned), now })
}

/// Refuses a request if its verb did not check the precondition. Some verbs cannot check one, because they change several
/// files.
pub(crate) fn check_looked_at(context: &Context) -> Result<(), Error> {
    if context.expected.as_ref().is_none_or(|it| it.is_checked.load(Ordering::Relaxed)) {
        return Ok(());
    }
    Err(not_supported())
}

/// The error for a request with a precondition that its verb does not check.
pub(crate) fn not_supported() -> Error {
    Error::usage("this request cannot have an etag as a condition", "repeat the request without it")
}
