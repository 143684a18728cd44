//! Loads one plan from the files, with everything that an answer about it can depend on.
//!
//! This costs less than opening the index, because other directories are read only if a dependency leads there.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::KeptPlans;
use super::again::read_again;
use super::refresh::{IndexCheck, Refresh, Wanted};
use super::scan::read_plan;
use crate::api::context::{Context, Reading};
use crate::api::daemon::{Dependents, Freshness};
use crate::index::Key;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::plans::{self, Plans};
use crate::plan::read::Bodies;

/// The index is used instead of the files if more live plans than this are looked up, if more plans than this wait for
/// the plan, or if the plan has more files than this and [`IndexCheck::Lazy`] is set.
const MANY: usize = 64;

/// Loads a plan, its program, and what its steps wait for, from the files. If the plan is a program, or if more than
/// [`MANY`] live plans would be looked up, loads all plans.
///
/// If `with_dependents` is set, also loads the plans with steps that wait for this plan. If no daemon names these plans, or
/// if there are more than [`MANY`] of them, loads all plans. With [`IndexCheck::Lazy`], loads all plans from the index if
/// the plan has many files, because this is faster than reading the files.
pub(super) fn load(context: &Context, id: &PlanId, with_dependents: bool, check: IndexCheck) -> Plans {
    if check == IndexCheck::Lazy && context.plans.names(Path::new(id.as_str())).len() > MANY {
        return all(context, check);
    }
    let mut named = dependents(context, id);
    let mut waiting = Vec::new();
    if with_dependents {
        match &mut named {
            Some(it) if it.waiting.len() <= MANY => waiting = std::mem::take(&mut it.waiting),
            _ => return all(context, check),
        }
    }
    let names = named.map_or_else(|| Names::Listed(keys(context)), Names::Given);
    reached(context, id, names, &waiting).unwrap_or_else(|| all(context, check))
}

fn all(context: &Context, check: IndexCheck) -> Plans {
    Plans::judged(Refresh::new(Wanted::Plans, check).run(context).plans)
}

fn dependents(context: &Context, id: &PlanId) -> Option<Dependents> {
    match &context.freshness {
        Freshness::Attested(daemon) if context.reading == Reading::Index => daemon.dependents(id),
        _ => None,
    }
}

/// `None` if the plan is a program, or if too many plans would have to be read.
fn reached(context: &Context, id: &PlanId, names: Names, beside: &[Key]) -> Option<Plans> {
    let mut around = Around { context, names, loaded: BTreeSet::new(), plans: Vec::new(), kept: None };
    around.load_spellings(id);
    if around.plans.iter().any(|it| it.id == *id && it.kind == PlanKind::Program) || !around.follow(id) {
        return None;
    }
    around.load_all(beside.to_vec(), Bodies::Drop);
    Some(Plans::judged(around.plans))
}

/// Like [`load`], for a caller that knows the directories on which an answer depends. A program is loaded without its
/// plans. Once more than 64 live plans have been looked up, including missing ones, no further dependency is followed. At
/// most 64 dependent plans are loaded.
///
/// `kept` contains what earlier calls have read. It is updated.
pub(crate) fn near(
    context: &Context,
    id: &PlanId,
    mut directories: Dependents,
    kept: &mut KeptPlans,
) -> Plans {
    let waiting = std::mem::take(&mut directories.waiting);
    let names = Names::Given(directories);
    let (loaded, plans) = (BTreeSet::new(), Vec::new());
    let mut around = Around { context, names, loaded, plans, kept: Some(kept) };
    around.load_spellings(id);
    around.follow(id);
    around.load_all(waiting.into_iter().take(MANY).collect(), Bodies::Drop);
    let Around { loaded, plans, .. } = around;
    kept.retain(|key, _| loaded.contains(key));
    Plans::judged(plans)
}

/// Finds the steps of plans other than `own` on which `steps` depend. Returns those that `seen` does not contain, and adds
/// them to `seen`.
///
/// With `seen`, each step is followed only once, although many steps may name it. Steps of `own` are left out, because all
/// of them are followed anyway.
fn unseen<'a>(
    seen: &mut HashSet<StepId>,
    own: &PlanId,
    steps: impl Iterator<Item = &'a Step>,
) -> Vec<StepId> {
    let mut new = Vec::new();
    for id in steps.flat_map(|it| &it.depends).filter(|it| it.plan != *own) {
        if !seen.contains(id) {
            seen.insert(id.clone());
            new.push(id.clone());
        }
    }
    new
}

/// Every directory that may be a plan, judging only by its name.
fn keys(context: &Context) -> Vec<Key> {
    let of = |directory: &str, is_archived| {
        let names = context.plans.names(Path::new(directory)).into_iter();
        names.filter(|it| PlanId::is_plan_name(it)).map(move |name| Key { is_archived, name })
    };
    of("", false).chain(of("_archive", true)).collect()
}

/// What is known about the existing directories.
enum Names {
    /// All of them, from a listing.
    Listed(Vec<Key>),
    Given(Dependents),
}

struct Around<'a> {
    context: &'a Context,
    names: Names,
    loaded: BTreeSet<Key>,
    plans: Vec<Plan>,
    /// What was read, so that the next call of [`near`] can reuse it; `None` for other callers.
    kept: Option<&'a mut KeptPlans>,
}

impl Around<'_> {
    /// Loads the plans of this id, the live and the archived one.
    fn load(&mut self, id: &PlanId) {
        let is_wanted = |key: &&Key| {
            let is_ascii = key.name.is_ascii() && id.as_str().is_ascii();
            key.name == id.as_str() || (!is_ascii && PlanId::new(key.name.clone()) == *id)
        };
        let wanted = match &self.names {
            Names::Listed(keys) => keys.iter().filter(is_wanted).cloned().collect(),
            Names::Given(given) => {
                let exact =
                    [false, true].map(|is_archived| Key { is_archived, name: id.as_str().to_owned() });
                let exact = exact.into_iter().filter(|it| PlanId::is_plan_name(&it.name));
                exact.chain(given.odd.iter().filter(is_wanted).cloned()).collect()
            }
        };
        self.load_all(wanted, Bodies::Drop);
    }

    /// Loads the plans whose names equal this id on a file system that ignores case.
    fn load_spellings(&mut self, id: &PlanId) {
        let folded = plans::folded_name(id.as_str());
        let is_wanted = |key: &&Key| {
            let is_ascii = key.name.is_ascii() && id.as_str().is_ascii();
            key.name.eq_ignore_ascii_case(id.as_str())
                || (!is_ascii && plans::folded_name(&key.name) == folded)
        };
        let wanted = match &self.names {
            Names::Listed(keys) => keys.iter().filter(is_wanted).cloned().collect(),
            Names::Given(given) => given.spellings.clone(),
        };
        self.load_all(wanted, Bodies::Keep);
    }

    /// Loads a plan's program, and the plans that the plan's steps wait for. Returns false if there are too many such plans.
    fn follow(&mut self, id: &PlanId) -> bool {
        let own = || self.plans.iter().filter(|it| it.id == *id);
        let (mut seen, mut whole) = (HashSet::new(), HashSet::new());
        let mut open = unseen(&mut seen, id, own().flat_map(|it| &it.steps));
        let programs: Vec<_> = own().filter_map(|it| it.program.clone()).collect();
        for program in &programs {
            self.load(program);
        }
        while let Some(next) = open.pop() {
            self.load(&next.plan);
            if self.loaded.iter().filter(|it| !it.is_archived).count() > MANY {
                return false;
            }
            let plans = || self.plans.iter().filter(|it| it.id == next.plan);
            let steps: Vec<_> = plans().filter_map(|it| it.find(&next)).collect();
            // If a step depends on a long range of steps, or on the steps before it, all steps of its plan are followed, once
            // for each plan.
            let is_sequential = plans().any(|it| it.order == Order::Sequential);
            let has_range = steps.iter().any(|it| !it.ranges.is_empty());
            if (is_sequential || has_range) && whole.insert(next.plan.clone()) {
                open.extend(unseen(&mut seen, id, plans().flat_map(|it| &it.steps)));
            }
            open.extend(unseen(&mut seen, id, steps.into_iter()));
        }
        true
    }

    fn load_all(&mut self, keys: Vec<Key>, bodies: Bodies) {
        for key in keys {
            if !self.loaded.contains(&key) {
                let plan = match &mut self.kept {
                    None => read_plan(self.context, &key, bodies),
                    Some(kept) => {
                        read_again(self.context, &key, bodies, kept.remove(&key)).map(|(plan, it)| {
                            kept.insert(key.clone(), it);
                            plan
                        })
                    }
                };
                self.plans.extend(plan);
                self.loaded.insert(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::store::load::LoadQuery;

    #[test]
    fn fifty_plans_are_followed_although_each_may_be_archived() {
        let step =
            |n: u32| (format!("/plans/p{n}/step-1.md"), format!("---\ndepends: [p{}:1]\n---\n", n + 1));
        let files: Vec<_> =
            (1..50).map(step).chain([("/plans/p50/step-1.md".to_owned(), String::new())]).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let context = Context::on_model(&Machine::with(&files));
        let own = Key { is_archived: false, name: "p1".to_owned() };
        let directories = Dependents { spellings: vec![own], ..Dependents::default() };
        let mut kept = KeptPlans::default();
        let plans = near(&context, &PlanId::new("p1"), directories, &mut kept);
        assert_eq!(plans.iter().count(), 50);
    }

    #[test]
    fn a_step_that_many_steps_name_is_followed_once() {
        let machine = Machine::with(&[
            ("/plans/a/plan.md", "---\nstatus: active\n---\n# A\n"),
            ("/plans/a/step-1.md", "# One\n"),
            ("/plans/a/step-2.md", "---\ndepends: [1]\n---\n# Two\n"),
            ("/plans/a/step-3.md", "---\ndepends: [1, 2]\n---\n# Three\n"),
            ("/plans/a/step-4.md", "---\ndepends: [1, 2, 3]\n---\n# Four\n"),
        ]);
        let plans = LoadQuery::all().load(&Context::on_model(&machine)).expect("the plans can be read").plans;
        let steps = || plans.iter().flat_map(|it| &it.steps);
        let mut seen = HashSet::new();
        let own = PlanId::new("b");
        let mut new: Vec<_> = unseen(&mut seen, &own, steps()).iter().map(ToString::to_string).collect();
        new.sort_unstable();
        assert_eq!(new, ["a:1", "a:2", "a:3"]);
        assert!(unseen(&mut seen, &own, steps()).is_empty());
        assert!(unseen(&mut HashSet::new(), &PlanId::new("a"), steps()).is_empty());
    }
}
