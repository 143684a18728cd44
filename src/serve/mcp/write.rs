//! Tools that write plans, steps and notes.

mod plan;
mod step;

use serde_json::Value;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::DiskError;
use crate::ops::import::{self, ImportReport, ImportRequest};
use crate::ops::set::{SetOp, SetRequest};
use crate::serve::hints;
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::tool::{Call, Tool};
use crate::store::transaction::{ChangeReport, Mode};

pub(super) fn tools() -> Vec<Tool> {
    plan::tools().into_iter().chain(step::tools()).collect()
}

/// The `created_by` of the steps that these tools create.
const MAKER: &str = "agent";

/// A request that sets a key of a file.
pub(super) fn set_request(id: &str, key: &str, op: SetOp) -> SetRequest {
    let (id, key) = (id.to_owned(), key.to_owned());
    SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write }
}

/// Imports a document of the repository. Any other document is refused.
pub(super) fn import_document(call: &Call, request: &ImportRequest) -> Result<ImportReport, Refusal> {
    import::import(&call.context, request).map_err(hints::import_again).map_err(|error| match error {
        Error::NotFound { what: "file or directory", .. }
        | Error::Disk(DiskError::OutsideRepository { .. } | DiskError::NotAFile { .. } | DiskError::NotADirectory { .. }) => {
            let hint = "name a file outside .git and .planwatch, by its path from the repository's root; a person can \
                        import others at a terminal";
            Refusal::usage(format!("`{}` is not a document of this repository", request.shown), hint)
        }
        other => other.into(),
    })
}

/// One of the changes that a call makes.
type Change<'a> = Box<dyn Fn(&Context, Mode) -> Result<ChangeReport, Error> + 'a>;

/// Makes changes one after the other. With an etag, the first change is made only if its file has that etag. Several
/// changes are first tried in a dry run; if one of them is refused, none is made.
///
/// The answer is that of the last change, but its `did` names what all changes did, and its `written` is true if any of
/// them wrote.
fn all(call: &Call, etag: Option<&str>, changes: &[Change<'_>]) -> Result<Value, Refusal> {
    let make = |nth: usize, mode| {
        let etag = etag.filter(|_| nth == 0);
        call.part(&nth.to_string(), etag, |context| changes[nth](context, mode))
    };
    if changes.len() > 1 {
        (0..changes.len()).try_for_each(|nth| make(nth, Mode::DryRun).map(drop))?;
    }
    let mut answer: Option<Value> = None;
    for nth in 0..changes.len() {
        let mut done = make(nth, Mode::Write).map_err(|it| answer.iter().fold(it, Refusal::after))?;
        if let Some(before) = &answer {
            let did = format!(
                "{}; {}",
                before["did"].as_str().unwrap_or_default(),
                done["did"].as_str().unwrap_or_default()
            );
            done["did"] = did.into();
            done["written"] = (before["written"] == true || done["written"] == true).into();
        }
        answer = Some(done);
    }
    answer.ok_or_else(|| {
        Refusal::usage("there is nothing to change", "give at least one field in addition to the id")
    })
}
