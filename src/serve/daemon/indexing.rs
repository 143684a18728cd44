//! Brings the index up to date with what events point to, and marks the plans that may have changes to publish.

use super::event_loop::Daemon;
use crate::api::context::{Context, Reading};
use crate::api::daemon::Freshness;
use crate::api::error::Error;
use crate::index::{Generation, Index};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::serve::daemon::baseline::BaselinePlan;
use crate::serve::daemon::dependents::{Dependents, PlanReferences};
use crate::store::plan_stream;
use crate::store::refresh::{self, Refreshed};

impl Daemon<'_> {
    /// The first scan, which loads the baseline.
    pub(crate) fn load_baseline(&mut self, now: &Context) -> Result<(), Error> {
        self.verified = refresh_index(now, None, None, &mut self.index)?;
        let seen = self.of_each(|it| (it.id.clone(), BaselinePlan::of(it)))?;
        self.baseline = seen.into_iter().collect();
        Ok(())
    }

    /// Indexes what is dirty.
    pub(crate) fn index(&mut self) -> Result<(), Error> {
        if self.dirty.plans.is_empty() && !self.dirty.is_everything {
            return Ok(());
        }
        let now = self.now()?;
        if self.own.is_some() && !self.is_whole(&now) {
            self.restore_soon(&now);
            return Ok(());
        }
        let dirty = std::mem::take(&mut self.dirty);
        let linked: Vec<_> = self.watcher.iter().flat_map(|it| it.linked()).cloned().collect();
        let names: Vec<_> = dirty.plans.into_iter().chain(linked.iter().cloned()).collect();
        let is_everything = dirty.is_everything;
        let names = (!is_everything).then_some(&names);
        self.verified = refresh_index(&now, names, self.verified, &mut self.index)?;
        if let Some(dependents) = &mut self.dependents {
            dependents.mark_stale(&linked);
        }
        let ids = if is_everything { self.differing()? } else { Vec::new() };
        for id in linked.into_iter().map(PlanId::new).chain(ids) {
            self.mark_pending(id);
        }
        Ok(())
    }

    /// The plans that differ from the baseline, whichever process indexed them.
    fn differing(&mut self) -> Result<Vec<PlanId>, Error> {
        let baseline = std::mem::take(&mut self.baseline);
        let seen = self.of_each(|it| {
            let is_unchanged = baseline.get(&it.id).is_some_and(|baseline| *baseline == BaselinePlan::of(it));
            (it.id.clone(), is_unchanged)
        });
        self.baseline = baseline;
        let seen: std::collections::BTreeMap<_, _> = seen?.into_iter().collect();
        let gone = self.baseline.keys().filter(|it| !seen.contains_key(it)).cloned();
        let changed = seen.iter().filter(|(_, is_unchanged)| !**is_unchanged).map(|(id, _)| id.clone());
        Ok(changed.chain(gone).collect())
    }

    /// Calls `make` for every live plan of the index, and rebuilds the dependents.
    fn of_each<T>(&mut self, make: impl Fn(&Plan) -> T) -> Result<Vec<T>, Error> {
        let attested_context = self.attested_context()?;
        let seen = plan_stream::of_each(&attested_context, |it| {
            let made = (!it.is_archived).then(|| make(&it));
            (PlanReferences::by(&it), made)
        })?;
        let (named, made): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        // Another process may have written older rows since the refresh.
        let is_verified =
            self.verified.is_some() && plan_stream::generation(&attested_context) == self.verified;
        self.dependents = is_verified.then(|| Dependents::of(named));
        Ok(made.into_iter().flatten().collect())
    }

    /// The commit of the index; `None` if there is no index.
    pub(crate) fn generation(&mut self, now: &Context) -> Option<Generation> {
        let Some(index) = &mut self.index else { return plan_stream::generation(now) };
        let commit = refresh::generation(index);
        if commit.is_none() {
            // The index file may have been deleted.
            self.index = None;
        }
        commit
    }

    /// A context that trusts the index, which was just brought up to date.
    fn attested_context(&self) -> Result<Context, Error> {
        let verified = self.verified;
        let context = self.fresh_context()?;
        Ok(Context { freshness: Freshness::Attested(Box::new(move || verified)), ..context })
    }
}

/// Refreshes the index and returns its commit if that is baseline to be current.
///
/// After a refresh of single plans it is current only if no other process has written since the last verified commit:
/// an older scan, also in another thread, may have written what it read before the present change. Otherwise
/// everything is scanned.
fn refresh_index(
    now: &Context,
    names: Option<&Vec<String>>,
    verified: Option<Generation>,
    kept: &mut Option<Index>,
) -> Result<Option<Generation>, Error> {
    if now.reading == Reading::Files || now.plans.index_dir().is_none() {
        *kept = None;
        return Ok(None);
    }
    if let (Some(names), Some(verified)) = (names, verified) {
        let Refreshed { before, generation, index, .. } = refresh::refresh_plans(now, names, kept.take())?;
        *kept = index;
        if before == Some(verified) && generation.is_some() {
            return Ok(generation);
        }
    }
    let Refreshed { generation, index, .. } = refresh::refresh(now)?;
    *kept = index;
    Ok(generation)
}
