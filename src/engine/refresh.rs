//! The index brought up to date with the files, for whoever answers from it again and again.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load::{self, Fresh, Wanted};
use crate::index::{Generation, Index};
use crate::plan::id::PlanId;

/// What a refresh found.
#[derive(Debug)]
pub struct Refreshed {
    /// Plans whose rows were written anew or removed, sorted; a live and an archived one of a name are one here.
    pub changed: Vec<PlanId>,
    /// The commit that the index shows then; none if it could not be written.
    pub generation: Option<Generation>,
    /// The index, open, for the next look: to open it takes longer than to look at a plan.
    pub index: Option<Index>,
}

/// Brings the index up to date with all files.
///
/// Plans are compared as they are read from their own files; what changes between plans alone, as a dependency that is
/// no longer there, is a change of neither.
pub fn refresh(context: &Context) -> Result<Refreshed, Error> {
    Ok(refreshed(load::looked(context, Wanted::Nothing)))
}

/// Brings the index up to date with the files of these plan directories, given by name, live and archived.
///
/// `kept` is the index of an earlier look, if there was one.
pub fn refresh_plans(context: &Context, names: &[String], kept: Option<Index>) -> Result<Refreshed, Error> {
    Ok(refreshed(load::fresh_of(context, names, kept)))
}

fn refreshed(mut found: Fresh) -> Refreshed {
    let generation = found.index.as_mut().and_then(shown);
    Refreshed { changed: found.changed.into_iter().collect(), generation, index: found.index }
}

/// Returns the commit that an open index shows, if its file still has the name.
pub(crate) fn generation(kept: &mut Index) -> Option<Generation> {
    kept.ready().ok()?;
    shown(kept)
}

fn shown(index: &mut Index) -> Option<Generation> {
    index.snapshot().ok()?.generation().ok()?
}
