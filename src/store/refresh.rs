//! Brings the index up to date with the files, for the daemon.

use std::collections::BTreeSet;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::index::{Generation, Index, Key};
use crate::plan::id::PlanId;
use crate::store::load::refresh::open_index;
use crate::store::load::{Fresh, IndexCheck, Refresh, Wanted};

/// What a refresh found.
#[derive(Debug)]
pub struct Refreshed {
    /// Plans whose rows were written anew or removed, sorted; a live and an archived one of a name are one here.
    pub changed: Vec<PlanId>,
    /// The commit that the index was compared in.
    pub before: Option<Generation>,
    /// The commit that holds just what was found, the same one if nothing changed; none if it could not be written, or if
    /// another process wrote meanwhile.
    pub generation: Option<Generation>,
    /// The open index, for the next refresh: opening it takes longer than comparing a plan.
    pub index: Option<Index>,
}

/// Brings the index up to date with all files.
///
/// Plans are compared as they are read from their own files; what changes between plans alone, as a dependency that is
/// no longer there, is a change of neither.
pub fn refresh(context: &Context) -> Result<Refreshed, Error> {
    Ok(refreshed(Refresh::new(Wanted::Nothing, IndexCheck::Scan).run(context)))
}

/// Brings the index up to date with the files of these plan directories, given by name, live and archived.
///
/// `kept` is the index of an earlier refresh, if there was one.
pub fn refresh_plans(context: &Context, names: &[String], kept: Option<Index>) -> Result<Refreshed, Error> {
    let mut keys = BTreeSet::new();
    for name in names.iter().filter(|it| PlanId::is_plan_name(it)) {
        keys.extend([false, true].map(|is_archived| Key { is_archived, name: name.clone() }));
    }
    let still_usable = |mut it: Index| it.ready().is_ok().then_some(it);
    let index = kept.and_then(still_usable).or_else(|| open_index(context));
    let keys: Vec<_> = keys.into_iter().collect();
    Ok(refreshed(Refresh::of_plans(&keys).run_in(context, index)))
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
