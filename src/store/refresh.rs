//! The index brought up to date with the files, for whoever answers from it again and again.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::index::{Generation, Index};
use crate::plan::id::PlanId;
use crate::store::load::{self, Fresh, Wanted};

/// What a refresh found.
#[derive(Debug)]
pub struct Refreshed {
    /// Plans whose rows were written anew or removed, sorted; a live and an archived one of a name are one here.
    pub changed: Vec<PlanId>,
    /// The commit that the index was compared in.
    pub before: Option<Generation>,
    /// The commit of it that holds just what was found, the same one if nothing changed; none if it could not be written, or
    /// if others wrote into it meanwhile.
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

fn refreshed(found: Fresh) -> Refreshed {
    let Fresh { changed, before, commit, index, .. } = found;
    Refreshed { changed: changed.into_iter().collect(), before, generation: commit, index }
}

/// Returns the commit that an open index shows, if its file still has the name.
pub(crate) fn generation(kept: &mut Index) -> Option<Generation> {
    kept.ready().ok()?;
    kept.snapshot().ok()?.generation().ok()?
}
