//! Finds the plans that relate to a plan: those with another spelling of its name, and those that depend on it.
//!
//! With this data, a command about one plan need not read the names of all plans. The data is built from the index
//! right after a scan. A plan that changed later is reread from its files on the next request.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::context::Context;
use crate::index::Key;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::folded_name;
use crate::serve::ipc::protocol;
use crate::store::load;

/// If more plans than this have non-ASCII names, the daemon's answer is empty, and the command lists the directory.
const NON_ASCII_LIMIT: usize = 256;

/// A plan's directory and, if the plan is live, the other plans that its steps depend on.
pub(crate) struct PlanReferences {
    key: Key,
    named: Box<[PlanId]>,
}

#[derive(Default)]
pub(crate) struct Dependents {
    plans: BTreeMap<Key, Box<[PlanId]>>,
    /// Live and archived plans, by folded name.
    spellings: BTreeMap<String, BTreeSet<Key>>,
    non_ascii: BTreeSet<Key>,
    /// Live plans, by the plans that they depend on.
    waiting: BTreeMap<PlanId, BTreeSet<Key>>,
    /// Names of directories that changed since they were read.
    stale: BTreeSet<String>,
}

impl PlanReferences {
    pub(crate) fn by(plan: &Plan) -> Self {
        let mut named: Vec<_> = plan.steps.iter().flat_map(|it| &it.depends).map(|it| &it.plan).collect();
        named.retain(|it| !plan.is_archived && **it != plan.id);
        named.sort_unstable();
        named.dedup();
        let key = Key { is_archived: plan.is_archived, name: plan.id.as_str().to_owned() };
        Self { key, named: named.into_iter().cloned().collect() }
    }
}

impl Dependents {
    pub(crate) fn of(all: Vec<PlanReferences>) -> Self {
        let mut dependents = Self::default();
        all.into_iter().for_each(|it| dependents.put(it));
        dependents
    }

    /// Marks directories of these names, live or archived, for rereading.
    pub(crate) fn mark_stale(&mut self, names: &[String]) {
        self.stale.extend(names.iter().cloned());
    }

    /// Returns the directories that an answer about a plan depends on; `None` if more than [`NON_ASCII_LIMIT`] plans have
    /// non-ASCII names.
    pub(crate) fn lookup(&mut self, context: &Context, id: &PlanId) -> Option<protocol::DependentsMessage> {
        for name in std::mem::take(&mut self.stale) {
            for key in [false, true].map(|is_archived| Key { is_archived, name: name.clone() }) {
                self.remove(&key);
                if let Some(plan) = load::in_directory(context, &key) {
                    self.put(PlanReferences::by(&plan));
                }
            }
        }
        if self.non_ascii.len() > NON_ASCII_LIMIT {
            return None;
        }
        let keys =
            |of: &mut dyn Iterator<Item = &Key>| of.map(|it| (it.is_archived, it.name.clone())).collect();
        Some(protocol::DependentsMessage {
            spellings: keys(&mut self.spellings.get(&*folded_name(id.as_str())).into_iter().flatten()),
            odd: keys(&mut self.non_ascii.iter()),
            waiting: keys(&mut self.waiting.get(id).into_iter().flatten()),
        })
    }

    fn put(&mut self, PlanReferences { key, named }: PlanReferences) {
        self.spellings.entry(folded_name(&key.name).into_owned()).or_default().insert(key.clone());
        if !key.name.is_ascii() {
            self.non_ascii.insert(key.clone());
        }
        for id in &named {
            self.waiting.entry(id.clone()).or_default().insert(key.clone());
        }
        self.plans.insert(key, named);
    }

    fn remove(&mut self, key: &Key) {
        let Some(named) = self.plans.remove(key) else { return };
        if let Some(spelled) = self.spellings.get_mut(&*folded_name(&key.name)) {
            spelled.remove(key);
        }
        self.non_ascii.remove(key);
        for id in named {
            if let Some(waiting) = self.waiting.get_mut(&id) {
                waiting.remove(key);
            }
        }
    }
}
