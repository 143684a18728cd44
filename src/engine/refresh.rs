//! The index brought up to date with the files, for whoever answers from it again and again.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load::{self, Fresh, Wanted};
use crate::index::Generation;
use crate::plan::id::PlanId;

/// What a refresh found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// Plans whose rows were written anew or removed, sorted; a live and an archived one of a name are one here.
    pub changed: Vec<PlanId>,
    /// The commit that the index shows then; none if it could not be written.
    pub generation: Option<Generation>,
}

/// Brings the index up to date with all files.
///
/// Plans are compared as they are read from their own files; what changes between plans alone, as a dependency that is
/// no longer there, is a change of neither.
pub fn refresh(context: &Context) -> Result<Refreshed, Error> {
    Ok(refreshed(load::looked(context, Wanted::Nothing)))
}

/// Brings the index up to date with the files of these plan directories, given by name, live and archived.
pub fn refresh_plans(context: &Context, names: &[String]) -> Result<Refreshed, Error> {
    Ok(refreshed(load::fresh_of(context, names)))
}

fn refreshed(found: Fresh) -> Refreshed {
    let generation = found.index.and_then(|mut it| it.snapshot().ok()?.generation().ok()?);
    Refreshed { changed: found.changed.into_iter().collect(), generation }
}
