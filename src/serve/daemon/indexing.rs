//! Brings the index up to what events point to, at once, and notes which plans have something to tell.

use super::Daemon;
use crate::engine::context::{Context, Freshness, Reading};
use crate::engine::error::Error;
use crate::engine::{outline, refresh};
use crate::index::Generation;
use crate::plan::id::PlanId;
use crate::serve::known::KnownPlan;

/// Others who write into the index at the same time are waited out this often.
const TRIES: usize = 5;

impl Daemon<'_> {
    /// The first look: what is known when telling begins.
    pub(super) fn learn(&mut self, now: &Context) -> Result<(), Error> {
        self.sure = bring_up(now, None, None)?;
        let plans = outline::of_each(&self.knowing()?, |it| {
            (!it.is_archived).then(|| (it.id.clone(), KnownPlan::of(&it)))
        })?;
        self.known = plans.into_iter().flatten().collect();
        Ok(())
    }

    /// Looks at what is dirty.
    pub(super) fn index(&mut self) -> Result<(), Error> {
        let dirty = std::mem::take(&mut self.dirty);
        if dirty.plans.is_empty() && !dirty.is_everything {
            return Ok(());
        }
        let now = (self.context)()?;
        let mut names: Vec<_> = dirty.plans.into_iter().collect();
        names.extend(self.eyes.iter().flat_map(|it| it.linked()).cloned());
        let is_everything = dirty.is_everything;
        self.sure = bring_up(&now, (!is_everything).then_some(&names), self.sure)?;
        let ids = if is_everything { self.differing()? } else { Vec::new() };
        for id in names.into_iter().map(PlanId::new).chain(ids) {
            self.note(id);
        }
        Ok(())
    }

    /// The plans that are not as they are known, whoever brought them into the index.
    fn differing(&self) -> Result<Vec<PlanId>, Error> {
        let seen = outline::of_each(&self.knowing()?, |it| {
            let is_known = self.known.get(&it.id).is_some_and(|known| *known == KnownPlan::of(&it));
            (!it.is_archived).then_some((it.id, is_known))
        })?;
        let seen: std::collections::BTreeMap<_, _> = seen.into_iter().flatten().collect();
        let gone = self.known.keys().filter(|it| !seen.contains_key(it)).cloned();
        let changed = seen.iter().filter(|(_, is_known)| !**is_known).map(|(id, _)| id.clone());
        Ok(changed.chain(gone).collect())
    }

    /// A context that takes the index as it is, because it was brought up just now.
    fn knowing(&self) -> Result<Context, Error> {
        let sure = self.sure;
        let context = (self.context)()?;
        Ok(Context { freshness: Freshness::KnownBy(Box::new(move || sure)), ..context })
    }
}

/// Refreshes the index and returns the commit that is right from here on, if that is sure.
///
/// It is if nobody but this process wrote in between: an older walk of somebody else's may have put in what was read
/// before the change that is looked at now. Then all of it is looked at.
fn bring_up(
    now: &Context,
    names: Option<&Vec<String>>,
    sure: Option<Generation>,
) -> Result<Option<Generation>, Error> {
    if now.reading == Reading::Files {
        return Ok(None);
    }
    if let (Some(names), Some(sure)) = (names, sure) {
        refresh::refresh_plans(now, names)?;
        let after = outline::generation(now);
        if after.is_some_and(|it| it.follows(Some(sure))) {
            return Ok(after);
        }
    }
    for _ in 0..TRIES {
        let before = outline::generation(now);
        refresh::refresh(now)?;
        let after = outline::generation(now);
        if after.is_some_and(|it| it.follows(before)) {
            return Ok(after);
        }
    }
    Ok(None)
}
