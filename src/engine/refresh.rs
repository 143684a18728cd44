//! The index brought up to date with the files, for whoever answers from it again and again.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::plan::id::PlanId;
use crate::plan::plans::Plans;

/// What a refresh found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// Plans whose rows were written anew or removed, sorted; a live and an archived one of a name are one here.
    pub changed: Vec<PlanId>,
    /// How many plans and steps the index holds now, archived ones too.
    pub plans: usize,
    pub steps: usize,
}

/// Brings the index up to date with all files.
pub fn refresh(context: &Context) -> Result<Refreshed, Error> {
    let before = Plans::new(load::kept(context));
    let after = load::all(context)?;
    let differs = |of: &Plans, than: &Plans| {
        let of = of.iter().filter(|it| than.get(&it.id) != Some(it));
        of.map(|it| it.id.clone()).collect::<Vec<_>>()
    };
    let mut changed = [differs(&before, &after), differs(&after, &before)].concat();
    changed.sort();
    changed.dedup();
    let steps = after.iter().map(|it| it.steps.len()).sum();
    Ok(Refreshed { changed, plans: after.into_vec().len(), steps })
}

/// Brings the index up to date with the files of these plan directories, given by name, live and archived.
pub fn refresh_plans(context: &Context, names: &[String]) -> Result<Refreshed, Error> {
    let mut found = refresh(context)?;
    found.changed.retain(|it| names.iter().any(|name| PlanId::new(name.clone()) == *it));
    Ok(found)
}
