//! One plan with all that an answer about it alone can depend on, read from the files.
//!
//! That is less than opening the index would cost: other directories are read only where a dependency leads there.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::all;
use super::files::read_plan;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::leases::Leases;
use crate::index::Key;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, PlanKind};
use crate::plan::plans::{self, Plans};
use crate::plan::read::Bodies;

/// More plans than this are taken from the index.
const MANY: usize = 64;

/// Loads a plan, and what its steps wait for, directly or through others; of a program, all plans.
///
/// What is said of the plan and its steps, problems included, is the same from here as from all plans. Of the other
/// plans it may be less.
pub(crate) fn some(context: &Context, id: &PlanId) -> Result<Plans, Error> {
    let mut around = Around { context, keys: keys(context), loaded: BTreeSet::new(), plans: Vec::new() };
    around.load_spellings(id);
    let own = |plans: &[Plan]| plans.iter().filter(|it| it.id == *id).cloned().collect::<Vec<_>>();
    let targets = own(&around.plans);
    if targets.iter().any(|it| it.kind == PlanKind::Program) {
        return all(context);
    }
    for program in targets.iter().filter_map(|it| it.program.as_ref()) {
        around.load(program);
    }
    let mut open: Vec<StepId> =
        targets.into_iter().flat_map(|it| it.steps).flat_map(|it| it.depends).collect();
    let mut seen = HashSet::new();
    while let Some(id) = open.pop() {
        around.load(&id.plan);
        if around.plans.len() > MANY {
            return all(context);
        }
        for plan in around.plans.iter().filter(|it| it.id == id.plan) {
            open.extend(
                plan.find(&id).iter().flat_map(|it| &it.depends).filter(|it| !seen.contains(*it)).cloned(),
            );
        }
        seen.insert(id);
    }
    Ok(Leases::of(context).tell(Plans::judged(around.plans)))
}

/// Every directory that may be a plan, by name alone.
fn keys(context: &Context) -> Vec<Key> {
    let of = |directory: &str, is_archived| {
        let names = context.plans.names(Path::new(directory)).into_iter();
        names.filter(|it| PlanId::is_plan_name(it)).map(move |name| Key { is_archived, name })
    };
    of("", false).chain(of("_archive", true)).collect()
}

struct Around<'a> {
    context: &'a Context,
    keys: Vec<Key>,
    loaded: BTreeSet<Key>,
    plans: Vec<Plan>,
}

impl Around<'_> {
    /// Loads the plans of this id, the live and the archived one.
    fn load(&mut self, id: &PlanId) {
        self.load_if(&|name| {
            let is_ascii = name.is_ascii() && id.as_str().is_ascii();
            name == id.as_str() || (!is_ascii && PlanId::new(name) == *id)
        });
    }

    /// Loads the plans whose names some systems take for this one, too.
    fn load_spellings(&mut self, id: &PlanId) {
        let folded = plans::folded_name(id.as_str());
        self.load_if(&|name| {
            let is_ascii = name.is_ascii() && id.as_str().is_ascii();
            name.eq_ignore_ascii_case(id.as_str()) || (!is_ascii && plans::folded_name(name) == folded)
        });
    }

    fn load_if(&mut self, is_wanted: &dyn Fn(&str) -> bool) {
        for key in self.keys.iter().filter(|it| is_wanted(&it.name)) {
            if self.loaded.insert(key.clone()) {
                self.plans.extend(read_plan(self.context, key, Bodies::Drop));
            }
        }
    }
}
