//! What lies around each plan: other spellings of its name, and the plans that wait for it.
//!
//! So that a question about one plan is answered without reading the names of all. Learnt from the index, which was
//! compared with the files just then; later a plan that an event told of is read from its files when somebody asks.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::context::Context;
use crate::index::Key;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::folded_name;
use crate::serve::ipc::protocol;
use crate::store::load;

/// More names than this, that are not ASCII, are not told; who asks then lists the directory.
const MOST_ODD: usize = 256;

/// A plan's directory, and the other plans that its steps wait for.
pub(crate) struct Named {
    key: Key,
    named: Box<[PlanId]>,
}

#[derive(Default)]
pub(crate) struct Around {
    plans: BTreeMap<Key, Box<[PlanId]>>,
    /// By folded name.
    spellings: BTreeMap<String, BTreeSet<Key>>,
    odd: BTreeSet<Key>,
    /// Live plans, by those that they wait for.
    waiting: BTreeMap<PlanId, BTreeSet<Key>>,
    /// Names of directories that changed since they were read.
    behind: BTreeSet<String>,
}

impl Named {
    pub(crate) fn by(plan: &Plan) -> Self {
        let mut named: Vec<_> = plan.steps.iter().flat_map(|it| &it.depends).map(|it| &it.plan).collect();
        named.retain(|it| !plan.is_archived && **it != plan.id);
        named.sort();
        named.dedup();
        let key = Key { is_archived: plan.is_archived, name: plan.id.as_str().to_owned() };
        Self { key, named: named.into_iter().cloned().collect() }
    }
}

impl Around {
    pub(crate) fn of(all: Vec<Named>) -> Self {
        let mut around = Self::default();
        all.into_iter().for_each(|it| around.put(it));
        around
    }

    /// Notes that directories of these names, live or archived, have to be read again.
    pub(crate) fn fall_behind(&mut self, names: &[String]) {
        self.behind.extend(names.iter().cloned());
    }

    /// Says what lies around a plan; none if that would be too much to say.
    pub(crate) fn told(&mut self, context: &Context, id: &PlanId) -> Option<protocol::Around> {
        for name in std::mem::take(&mut self.behind) {
            for key in [false, true].map(|is_archived| Key { is_archived, name: name.clone() }) {
                self.take_out(&key);
                if let Some(plan) = load::in_directory(context, &key) {
                    self.put(Named::by(&plan));
                }
            }
        }
        if self.odd.len() > MOST_ODD {
            return None;
        }
        let keys =
            |of: &mut dyn Iterator<Item = &Key>| of.map(|it| (it.is_archived, it.name.clone())).collect();
        Some(protocol::Around {
            spellings: keys(&mut self.spellings.get(&folded_name(id.as_str())).into_iter().flatten()),
            odd: keys(&mut self.odd.iter()),
            waiting: keys(&mut self.waiting.get(id).into_iter().flatten()),
        })
    }

    fn put(&mut self, Named { key, named }: Named) {
        self.spellings.entry(folded_name(&key.name)).or_default().insert(key.clone());
        if !key.name.is_ascii() {
            self.odd.insert(key.clone());
        }
        for id in &named {
            self.waiting.entry(id.clone()).or_default().insert(key.clone());
        }
        self.plans.insert(key, named);
    }

    fn take_out(&mut self, key: &Key) {
        let Some(named) = self.plans.remove(key) else { return };
        if let Some(spelled) = self.spellings.get_mut(&folded_name(&key.name)) {
            spelled.remove(key);
        }
        self.odd.remove(key);
        for id in named {
            if let Some(waiting) = self.waiting.get_mut(&id) {
                waiting.remove(key);
            }
        }
    }
}
