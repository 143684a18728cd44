//! Brings the index up to what events point to, at once, and notes which plans have something to tell.

use super::event_loop::Daemon;
use crate::api::context::{Context, Reading};
use crate::api::daemon::Freshness;
use crate::api::error::Error;
use crate::index::{Generation, Index};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::serve::daemon::baseline::KnownPlan;
use crate::serve::daemon::dependents::{Around, Named};
use crate::store::plan_stream;
use crate::store::refresh::{self, Refreshed};

impl Daemon<'_> {
    /// The first look: what is known when telling begins.
    pub(crate) fn learn(&mut self, now: &Context) -> Result<(), Error> {
        self.sure = bring_up(now, None, None, &mut self.index)?;
        let seen = self.of_each(|it| (it.id.clone(), KnownPlan::of(it)))?;
        self.known = seen.into_iter().collect();
        Ok(())
    }

    /// Looks at what is dirty.
    pub(crate) fn index(&mut self) -> Result<(), Error> {
        if self.dirty.plans.is_empty() && !self.dirty.is_everything {
            return Ok(());
        }
        let now = self.now()?;
        if self.own.is_some() && !self.is_whole(&now) {
            self.mend_soon(&now);
            return Ok(());
        }
        let dirty = std::mem::take(&mut self.dirty);
        let linked: Vec<_> = self.eyes.iter().flat_map(|it| it.linked()).cloned().collect();
        let names: Vec<_> = dirty.plans.into_iter().chain(linked.iter().cloned()).collect();
        let is_everything = dirty.is_everything;
        let names = (!is_everything).then_some(&names);
        self.sure = bring_up(&now, names, self.sure, &mut self.index)?;
        if let Some(around) = &mut self.around {
            around.fall_behind(&linked);
        }
        let ids = if is_everything { self.differing()? } else { Vec::new() };
        for id in linked.into_iter().map(PlanId::new).chain(ids) {
            self.note(id);
        }
        Ok(())
    }

    /// The plans that are not as they are known, whoever brought them into the index.
    fn differing(&mut self) -> Result<Vec<PlanId>, Error> {
        let known = std::mem::take(&mut self.known);
        let seen = self.of_each(|it| {
            let is_known = known.get(&it.id).is_some_and(|known| *known == KnownPlan::of(it));
            (it.id.clone(), is_known)
        });
        self.known = known;
        let seen: std::collections::BTreeMap<_, _> = seen?.into_iter().collect();
        let gone = self.known.keys().filter(|it| !seen.contains_key(it)).cloned();
        let changed = seen.iter().filter(|(_, is_known)| !**is_known).map(|(id, _)| id.clone());
        Ok(changed.chain(gone).collect())
    }

    /// Makes something of every live plan of the index, and learns what lies around each.
    fn of_each<T>(&mut self, make: impl Fn(&Plan) -> T) -> Result<Vec<T>, Error> {
        let knowing = self.knowing()?;
        let seen = plan_stream::of_each(&knowing, |it| {
            let made = (!it.is_archived).then(|| make(&it));
            (Named::by(&it), made)
        })?;
        let (named, made): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        // Somebody else may have put older rows in since it was brought up.
        let is_sure = self.sure.is_some() && plan_stream::generation(&knowing) == self.sure;
        self.around = is_sure.then(|| Around::of(named));
        Ok(made.into_iter().flatten().collect())
    }

    /// The commit that the index shows; none if there is none.
    pub(crate) fn generation(&mut self, now: &Context) -> Option<Generation> {
        let Some(index) = &mut self.index else { return plan_stream::generation(now) };
        let commit = refresh::generation(index);
        if commit.is_none() {
            // It may have lost its file.
            self.index = None;
        }
        commit
    }

    /// A context that takes the index as it is, because it was brought up just now.
    fn knowing(&self) -> Result<Context, Error> {
        let sure = self.sure;
        let context = self.look_around()?;
        Ok(Context { freshness: Freshness::Attested(Box::new(move || sure)), ..context })
    }
}

/// Refreshes the index and returns the commit that is right from here on, if that is sure.
///
/// Of a few plans it is if nobody wrote since the last one that was sure: an older walk of somebody else's, also of
/// another thread's, may have put in what was read before the change that is looked at now. Then all of it is looked at.
fn bring_up(
    now: &Context,
    names: Option<&Vec<String>>,
    sure: Option<Generation>,
    kept: &mut Option<Index>,
) -> Result<Option<Generation>, Error> {
    if now.reading == Reading::Files || now.plans.index_dir().is_none() {
        *kept = None;
        return Ok(None);
    }
    if let (Some(names), Some(sure)) = (names, sure) {
        let Refreshed { before, generation, index, .. } = refresh::refresh_plans(now, names, kept.take())?;
        *kept = index;
        if before == Some(sure) && generation.is_some() {
            return Ok(generation);
        }
    }
    let Refreshed { generation, index, .. } = refresh::refresh(now)?;
    *kept = index;
    Ok(generation)
}
