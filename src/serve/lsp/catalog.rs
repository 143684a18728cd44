//! A summary of all plans in a directory, for completion, for symbols, and for the diagnostics of files that are not open.
//!
//! Whole plans would take too much memory in a process that runs as long as the editor. So the catalog contains only parts
//! of each plan, mainly names, titles, statuses, dependencies and problems.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::diagnostics::{self, Related};
use crate::api::context::Context;
use crate::api::daemon::Dependents;
use crate::api::error::Error;
use crate::index::Key;
use crate::plan::file_name;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::{self, Plans};
use crate::plan::problem::Problem;
use crate::plan::rules;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Stated, StepStatus};
use crate::store::load::{LoadQuery, Loaded};
use crate::store::problems;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepEntry {
    pub(super) number: StepNumber,
    pub(super) title: Box<str>,
    pub(super) status: Stated<StepStatus>,
    pub(super) has_file: bool,
    /// The owner of the step's claim, if the claim is in force.
    pub(super) claimed_by: Option<Box<str>>,
    /// The path of the step's file, if that is not the usual one.
    path: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanEntry {
    pub(super) id: PlanId,
    /// The path of `plan.md`, relative to the plans directory.
    pub(super) path: Box<str>,
    pub(super) title: Box<str>,
    /// The status as lists show it.
    pub(super) status: Stated<PlanStatus>,
    pub(super) is_program: bool,
    /// How many steps are ready.
    pub(super) n_ready: usize,
    pub(super) steps: Box<[StepEntry]>,
    /// The other plans that this plan's steps wait for, and its program.
    names: Box<[PlanId]>,
    pub(super) problems: Box<[Problem]>,
    /// The related places of each problem that has any, with the problem's index in `problems`.
    related: Box<[(usize, Box<[Related]>)]>,
}

/// Only the first problems of a plan, up to this number, get related places. For more, the cost would exceed the benefit.
const MOST_WITH_RELATED: usize = 100;

impl PlanEntry {
    pub(super) fn of(plans: &Plans, plan: &Plan, now: Time, problems: Vec<Problem>) -> Self {
        let n_ready = plan.steps.iter().filter(|it| rules::is_ready(plans, plan, it, now)).count();
        let directory = plan.path.trim_end_matches(file_name::PLAN_FILE);
        let step = |it: &Step| {
            let usual = format!("{directory}{}", file_name::step_file(&it.id.number));
            StepEntry {
                number: it.id.number.clone(),
                title: it.title.as_str().into(),
                status: it.standing(),
                has_file: it.has_file(),
                claimed_by: it.claim_in_force().and_then(|it| Some(it.by.as_deref()?.into())),
                path: (it.path != usual).then(|| it.path.as_str().into()),
            }
        };
        let waits = plan.steps.iter().flat_map(|it| &it.depends).map(|it| &it.plan);
        let names: BTreeSet<_> = waits.chain(&plan.program).filter(|it| **it != plan.id).collect();
        let related = problems.iter().take(MOST_WITH_RELATED).enumerate().filter_map(|(nth, it)| {
            let related = diagnostics::related(plans, plan, it);
            (!related.is_empty()).then(|| (nth, related.into()))
        });
        let related = related.collect();
        Self {
            id: plan.id.clone(),
            path: plan.path.as_str().into(),
            title: plan.title.as_str().into(),
            status: plan.shown_status().0,
            is_program: plan.kind == PlanKind::Program,
            n_ready,
            steps: plan.steps.iter().map(step).collect(),
            names: names.into_iter().cloned().collect(),
            problems: problems.into(),
            related,
        }
    }

    /// The places in other files that belong to a problem of this plan.
    pub(super) fn related(&self, problem: &Problem) -> &[Related] {
        let found = self.related.iter().find(|(nth, _)| self.problems[*nth] == *problem);
        found.map_or(&[], |(_, related)| related)
    }

    pub(super) fn step_path(&self, step: &StepEntry) -> String {
        let directory = self.path.trim_end_matches(file_name::PLAN_FILE);
        let usual = || format!("{directory}{}", file_name::step_file(&step.number));
        step.path.as_deref().map_or_else(usual, str::to_owned)
    }

    pub(super) fn step(&self, number: &StepNumber) -> Option<&StepEntry> {
        let at = self.steps.partition_point(|it| it.number < *number);
        self.steps.get(at).filter(|it| it.number == *number)
    }

    pub(super) fn n_closed(&self) -> usize {
        self.steps.iter().filter(|it| it.status.known().is_some_and(StepStatus::is_closed)).count()
    }
}

/// The words that users choose freely in plans, for completion. A word that is no longer used stays until all plans are
/// loaded again.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    pub(super) phases: BTreeSet<String>,
    pub(super) types: BTreeSet<String>,
    pub(super) tags: BTreeSet<String>,
    pub(super) people: BTreeSet<String>,
}

impl Vocabulary {
    fn note(&mut self, plan: &Plan) {
        let mut add = |to: fn(&mut Self) -> &mut BTreeSet<String>, word: &str| {
            if !to(self).contains(word) {
                to(self).insert(word.to_owned());
            }
        };
        for word in plan.tags.iter().chain(plan.steps.iter().flat_map(|it| &it.tags)) {
            add(|it| &mut it.tags, word);
        }
        for word in plan.steps.iter().filter_map(|it| it.phase.as_ref()).chain(&plan.confirm_phases) {
            add(|it| &mut it.phases, word);
        }
        for word in plan.steps.iter().filter_map(|it| it.kind.as_ref()) {
            add(|it| &mut it.types, word);
        }
        let attempts = plan.steps.iter().flat_map(|it| &it.attempts).filter_map(|it| it.by.as_ref());
        let claims = plan.steps.iter().filter_map(|it| it.claim.as_ref()?.by.as_ref());
        for word in plan.steps.iter().filter_map(|it| it.assignee.as_ref()).chain(attempts).chain(claims) {
            add(|it| &mut it.people, word);
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Catalog {
    plans: BTreeMap<Key, PlanEntry>,
    pub(super) words: Vocabulary,
    /// The problems of files that belong to no plan.
    pub(super) problems_outside_plans: Vec<Problem>,
}

/// The plan directory that directly contains a file, and the file's name. `None` if the file is not directly in a plan
/// directory.
pub(super) fn place(relative: &Path) -> Option<(Key, String)> {
    let inside = relative.strip_prefix("_archive");
    let is_archived = inside.is_ok();
    let mut names = inside.unwrap_or(relative).iter();
    let (name, file) = (names.next()?.to_str()?.to_owned(), names.next()?.to_str()?.to_owned());
    (names.next().is_none() && PlanId::is_plan_name(&name)).then_some((Key { is_archived, name }, file))
}

pub(super) fn key_of(plan: &Plan) -> Option<Key> {
    place(Path::new(&plan.path)).map(|it| it.0)
}

impl Catalog {
    /// Reads all plans through the index, as commands do.
    pub(super) fn load(context: &Context) -> Result<Self, Error> {
        let Loaded { plans, problems, .. } = LoadQuery::all().with_other_problems().load(context)?;
        let mut catalog = Self { problems_outside_plans: problems, ..Self::default() };
        for plan in plans.iter() {
            let Some(key) = key_of(plan) else { continue };
            catalog.put(key, (&plans, plan, context.now), problems::of_plan(context, &plans, plan));
        }
        catalog.problems_outside_plans.extend(problems::outside_plans(context));
        Ok(catalog)
    }

    pub(super) fn put(
        &mut self,
        key: Key,
        (plans, plan, now): (&Plans, &Plan, Time),
        mut problems: Vec<Problem>,
    ) {
        problems.sort_unstable();
        problems.dedup();
        self.words.note(plan);
        self.plans.insert(key, PlanEntry::of(plans, plan, now, problems));
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.plans.remove(key);
    }

    pub(super) fn at(&self, key: &Key) -> Option<&PlanEntry> {
        self.plans.get(key)
    }

    /// The plan with this id: the live one if there is one, or else the archived one.
    pub(super) fn get(&self, id: &PlanId) -> Option<&PlanEntry> {
        let exact = |is_archived| self.plans.get(&Key { is_archived, name: id.as_str().to_owned() });
        let same = || self.plans.values().find(|it| it.id == *id);
        // Live plans come first in the map.
        exact(false).or_else(|| if id.as_str().is_ascii() { exact(true) } else { same() })
    }

    pub(super) fn step(&self, id: &StepId) -> Option<(&PlanEntry, &StepEntry)> {
        let plan = self.get(&id.plan)?;
        Some((plan, plan.step(&id.number)?))
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &PlanEntry> {
        self.plans.iter().filter(|(key, _)| !key.is_archived).map(|(_, it)| it)
    }

    /// Like [`Self::live`], with the directory of each.
    pub(super) fn live_with_keys(&self) -> impl Iterator<Item = (&Key, &PlanEntry)> {
        self.plans.iter().filter(|(key, _)| !key.is_archived)
    }

    /// All plans, archived ones last.
    pub(super) fn all(&self) -> impl Iterator<Item = &PlanEntry> {
        self.plans.values()
    }

    /// The problems of all plans, and of files that belong to no plan.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.plans.values().flat_map(|it| &it.problems).chain(&self.problems_outside_plans)
    }

    /// The directories on which an answer about a plan depends, in addition to those that the plan's steps name. Plans that
    /// wait for this plan are left out.
    pub(super) fn dependents(&self, id: &PlanId) -> Dependents {
        let folded = plans::folded_name(id.as_str());
        let is_spelling = |it: &&Key| match it.name.is_ascii() && id.as_str().is_ascii() {
            true => it.name.eq_ignore_ascii_case(id.as_str()),
            false => plans::folded_name(&it.name) == folded,
        };
        let mut spellings: BTreeSet<_> = self.plans.keys().filter(is_spelling).cloned().collect();
        spellings.extend(own_keys(id));
        let odd = self.plans.keys().filter(|it| !it.name.is_ascii()).cloned().collect();
        Dependents { spellings: spellings.into_iter().collect(), odd, waiting: Vec::new() }
    }

    /// The plans whose problems may change with this one: they wait for its steps, have it as their program, or have
    /// the same name in another spelling.
    pub(super) fn affected_by(&self, id: &PlanId) -> Vec<Key> {
        let folded = plans::folded_name(id.as_str());
        let is_affected = |(key, it): &(&Key, &PlanEntry)| {
            it.names.contains(id) || (it.id != *id && plans::folded_name(&key.name) == folded)
        };
        self.plans.iter().filter(is_affected).map(|(key, _)| key.clone()).collect()
    }
}

/// The directories in which a plan with this id can be, if the directory's name is spelled like the id.
pub(super) fn own_keys(id: &PlanId) -> [Key; 2] {
    [false, true].map(|is_archived| Key { is_archived, name: id.as_str().to_owned() })
}

/// The path of a plan's directory, relative to the plans directory.
pub(super) fn directory(key: &Key) -> PathBuf {
    if key.is_archived { Path::new("_archive").join(&key.name) } else { PathBuf::from(&key.name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    fn catalog() -> Catalog {
        let machine = Machine::with(&[
            ("/plans/a/plan.md", "---\ntags: [x]\n---\n# A\n"),
            ("/plans/a/step-1.md", "---\nstatus: done\nphase: early\nassignee: bob\n---\n# One\n"),
            ("/plans/a/step-02.md", "---\ndepends: [\"b:1\"]\n---\n# Two\n"),
            ("/plans/b/plan.md", "# B\n\n## Steps\n- step-1: Listed\n"),
            ("/plans/_archive/c/plan.md", "# C\n"),
            ("/plans/d/plan.md", "---\nstatus: compelted\nprogram: none\n---\n# D\n"),
        ]);
        Catalog::load(&Context::on_model(&machine)).unwrap()
    }

    #[test]
    fn plans_are_held_in_short() {
        let catalog = catalog();
        let a = catalog.get(&PlanId::new("a")).unwrap();
        let paths: Vec<_> = a.steps.iter().map(|it| a.step_path(it)).collect();
        assert_eq!(paths, ["a/step-1.md", "a/step-02.md"]);
        assert_eq!((a.n_closed(), &*a.title), (1, "A"));
        assert_eq!(catalog.live().count(), 3);
        assert!(catalog.get(&PlanId::new("c")).is_some());
        let (_, listed) = catalog.step(&"b:1".parse_id()).unwrap();
        assert!(!listed.has_file && &*listed.title == "Listed");
        assert!(catalog.words.people.contains("bob") && catalog.words.phases.contains("early"));
        let mut codes: Vec<_> = catalog.problems().map(|it| it.code.text()).collect();
        codes.sort_unstable();
        assert_eq!(codes, ["missing-step-file", "program-missing", "unknown-status"]);
    }

    #[test]
    fn a_plan_affects_those_that_name_it() {
        let catalog = catalog();
        let names = |id: &str| {
            let affected = catalog.affected_by(&PlanId::new(id)).into_iter();
            affected.map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names("b"), ["a"]);
        assert_eq!(names("none"), ["d"]);
        assert_eq!(names("A"), ["a"]);
        assert_eq!(names("a"), [""; 0]);
        assert_eq!(catalog.dependents(&PlanId::new("A")).spellings.len(), 3);
    }

    #[test]
    fn a_place_is_directly_in_a_plan() {
        let found = |path: &str| place(Path::new(path)).map(|(key, file)| (key.is_archived, key.name, file));
        assert_eq!(found("a/step-1.md"), Some((false, "a".to_owned(), "step-1.md".to_owned())));
        assert_eq!(found("_archive/a/plan.md"), Some((true, "a".to_owned(), "plan.md".to_owned())));
        for path in ["a", "a/b/plan.md", "_decisions/x.md", "_archive/plan.md", ".planwatch/x/y.md"] {
            assert_eq!(found(path), None, "{path}");
        }
    }

    trait ParseId {
        fn parse_id(&self) -> StepId;
    }

    impl ParseId for str {
        fn parse_id(&self) -> StepId {
            crate::plan::id::read_step_id(self).unwrap()
        }
    }
}
