//! Runs one change for each of several ids, under one lock.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::store::idempotency;
use crate::store::transaction::{ChangeReport, Changed, Mode, Refused, Transaction};

pub(crate) fn change_one_by_one(
    context: &Context,
    verb: &'static str,
    ids: &[String],
    mode: Mode,
    mut change: impl FnMut(&mut Transaction<'_>, &str) -> Result<Changed, Error>,
) -> Result<ChangeReport, Error> {
    if ids.is_empty() {
        return Err(Error::usage("which step?", format!("name it, as in `planwatch {verb} 1`")));
    }
    if ids.len() > 1 && context.key.is_some() {
        return Err(Error::usage("a key belongs to one change", "name one step or plan for each key"));
    }
    if let Some(report) = idempotency::repeated(context, verb) {
        return Ok(report);
    }
    let root = context.root_name();
    let mut report = ChangeReport::new(verb, mode);
    let mut writing = Transaction::begin(context, verb, mode)?;
    for id in ids {
        let done = change(&mut writing, id).map_err(|it| it.below(&root));
        // A refused change can still write something, such as the note of a late result. A dry run shows this with the
        // refusal.
        let is_shown = mode == Mode::DryRun && !writing.diff.is_empty();
        match done {
            Ok(changed) => report.changes.push(changed),
            Err(error) if ids.len() == 1 && !is_shown => return Err(error),
            Err(error) => report.refused.push(Refused { id: id.clone(), error }),
        }
    }
    report.diff = std::mem::take(&mut writing.diff);
    report.hints = std::mem::take(&mut writing.hints);
    report.not_repointed = std::mem::take(&mut writing.not_repointed);
    Ok(report)
}
