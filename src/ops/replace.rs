//! `replace PLAN --file F`: replaces the steps of a plan with the steps of a list.
//!
//! A step that the list names keeps its file and its history. If the list gives it another status, that is a transition
//! by the table in [`crate::plan::transitions`], with the checks of the corresponding verb. The order of the list becomes
//! the order of the steps. Open steps that the list does not name are removed: their files move to
//! `_archive/<plan>/removed-<time>/`. Closed steps that the list does not name stay, because they are the plan's history.
//! Steps that waited for a removed step then wait for the new steps in its position and for its dependencies.

mod files;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::plan::file_name;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::Problem;
use crate::plan::step_items::{self, Dependency, NotSteps, Places, StepItem};
use crate::plan::step_number::StepNumber;
use crate::plan::transitions::Verb;
use crate::plan::words::Stated;
use crate::store::fencing::{Caller, Owner};
use crate::store::relink::{self, Gone, Orphans};
use crate::store::sync::ending::{self, Fences, StatusChange, StatusMove};
use crate::store::sync::{foreign, moved};
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{branches, cycles, leases, load, plan_status, removed, resolve};

pub use crate::api::requests::ReplaceRequest;

/// Replaces the steps of a plan with those of a list. After a crash, either the whole change has been made, or none of it.
pub fn replace(context: &Context, request: &ReplaceRequest) -> Result<ChangeReport, Error> {
    replaced(context, request).map_err(Error::without_claim_option)
}

fn replaced(context: &Context, request: &ReplaceRequest) -> Result<ChangeReport, Error> {
    let id = resolve::plan(context, &request.plan)?;
    foreign::refresh(context, request.mode);
    let elsewhere = branches::numbers_elsewhere(context, &id, !request.ignores_branches);
    let mut done = Done::default();
    let change = match request.mode == Mode::Write && ending::has_records(context, &id) {
        true => Some(StatusChange::allowed(tried(context, request, (&id, &elsewhere))?.statuses)),
        false => None,
    };
    let report = ending::fenced(context, change.as_ref(), |fences| {
        let (report, is) = write(context, request, (&id, &elsewhere), fences)?;
        done = is;
        Ok(report)
    })?;
    if request.mode == Mode::Write {
        moved::moved(context, &done.moves);
    }
    Ok(report)
}

/// The changes that other machines must see: new statuses and new numbers of existing steps.
#[derive(Debug, Default)]
struct Done {
    statuses: Vec<StatusMove>,
    moves: Vec<(StepId, StepId)>,
}

/// A dry run before the change. It fails if the list is refused. So no claim record in the shared registry is ended for a
/// refused list.
fn tried(
    context: &Context,
    request: &ReplaceRequest,
    of: (&PlanId, &BTreeSet<StepNumber>),
) -> Result<Done, Error> {
    let request = ReplaceRequest { mode: Mode::DryRun, ..request.clone() };
    write(context, &request, of, &Fences::default()).map(|it| it.1)
}

fn write(
    context: &Context,
    request: &ReplaceRequest,
    (id, elsewhere): (&PlanId, &BTreeSet<StepNumber>),
    fences: &Fences,
) -> Result<(ChangeReport, Done), Error> {
    let mut writing = Transaction::begin(context, "replace", request.mode)?;
    let ((plans, troubles), plan) = load::settled_all(context, id)?;
    transaction::check_live(&plan)?;
    transaction::check_writable(context, &plan.problems)?;
    precondition::check_plan(context, &plans, &plan)?;
    refuse_doubled(&plan)?;
    let (items, has_more) = items(context, &plan, request)?;
    let places =
        step_items::places(&plan, &items, elsewhere).map_err(|it| unreadable(request, &it.to_string()))?;
    let wanted = Wanted::new(context, &plans, &plan, (&items, &places), request, fences)?;
    wanted.check_free(request)?;
    let left = wanted.left(&troubles);
    left.allow(context, request.force)?;
    let mut made = files::make(&wanted, &left, request.force, None)?;
    if let Some(goal) = wanted.goal(&made) {
        made = files::make(&wanted, &left, request.force, Some(&goal))?;
    }
    wanted.refuse_cycle(&made)?;
    let (after, changes) = wanted.after(&made);
    if !made.ops.is_empty() {
        writing.batch("replace", made.ops)?;
    }
    if request.mode == Mode::Write {
        wanted.keep_records(&after, request.force);
    }
    let mut report = ChangeReport::new("replace", request.mode);
    report.changes = changes;
    report.diff = std::mem::take(&mut writing.diff);
    report.hints = made.hints;
    report.hints.extend(left.hint());
    report.not_repointed = left.names();
    report.hints.extend(has_more.then(|| "the text around the list was left out".to_owned()));
    report.hints.extend(plan_status::hint_for_closed(&plan));
    Ok((report, wanted.done()))
}

/// The steps of the list, and whether there is text around them.
fn items(context: &Context, plan: &Plan, request: &ReplaceRequest) -> Result<(Vec<StepItem>, bool), Error> {
    let words = &context.config.words;
    let read = match is_yaml(request) {
        true => step_items::read_yaml(plan, &request.list, words).map(|it| (it, false)),
        false => step_items::read(plan, &request.list, words),
    };
    read.map_err(|error| match error {
        NotSteps::At { .. } => invalid(request, format!("{}:{error}", request.shown)),
        NotSteps::None | NotSteps::Item { .. } => unreadable(request, &error.to_string()),
    })
}

fn is_yaml(request: &ReplaceRequest) -> bool {
    let ending = Path::new(&request.shown).extension();
    ending.is_some_and(|it| it.eq_ignore_ascii_case("yaml") || it.eq_ignore_ascii_case("yml"))
}

fn unreadable(request: &ReplaceRequest, reason: &str) -> Error {
    invalid(request, format!("{}: {reason}", request.shown))
}

fn invalid(request: &ReplaceRequest, message: String) -> Error {
    let hint = match is_yaml(request) {
        true => "write a YAML list of titles, or of mappings with the fields that `list --json` has",
        false => {
            "write a Markdown list of steps, or a JSON array of titles or of objects as `list --json` has them"
        }
    };
    Error::failed("list-invalid", message, hint)
}

fn refuse_doubled(plan: &Plan) -> Result<(), Error> {
    let Some(step) = plan.steps.iter().find(|it| plan.is_doubled(it)) else { return Ok(()) };
    let hint = "rename one of them first";
    Err(Error::failed("duplicate-step-number", format!("two files have the number {}", step.id.number), hint))
}

/// A list, with the existing step and the number of each item.
struct Wanted<'a> {
    context: &'a Context,
    plans: &'a Plans,
    plan: &'a Plan,
    items: &'a [StepItem],
    places: &'a Places,
    /// The dependencies of each item. `None`: the list does not state them.
    depends: Vec<Option<Vec<StepId>>>,
    /// The steps that are removed or get another number, with their replacements.
    gone: Vec<Gone>,
    by: Option<&'a str>,
    created_by: Option<&'a str>,
    fences: &'a Fences,
}

impl<'a> Wanted<'a> {
    fn new(
        context: &'a Context,
        plans: &'a Plans,
        plan: &'a Plan,
        (items, places): (&'a [StepItem], &'a Places),
        request: &'a ReplaceRequest,
        fences: &'a Fences,
    ) -> Result<Self, Error> {
        let by = request.by.as_deref();
        let created_by = request.created_by.as_deref().or(by);
        let (depends, gone) = (Vec::new(), Vec::new());
        let mut wanted = Self { context, plans, plan, items, places, depends, gone, by, created_by, fences };
        wanted.depends = wanted.resolved(request)?;
        wanted.gone = wanted.with_heirs();
        Ok(wanted)
    }

    fn id(&self, item: usize) -> StepId {
        StepId { plan: self.plan.id.clone(), number: self.places.numbers[item].clone() }
    }

    /// The existing step of an item. `None`: the item is a new step.
    fn step(&self, item: usize) -> Option<&'a Step> {
        self.places.steps[item].map(|it| &self.plan.steps[it])
    }

    /// The verb that gives an existing step the status in the list. `None`: the item is a new step, the list states no
    /// status, or the step already has that status.
    fn verb(&self, item: usize) -> Option<Verb> {
        let (step, status) = (self.step(item)?, self.items[item].status?);
        (!step.standing().is(status)).then(|| Verb::giving(status))
    }

    /// The plans with the statuses of the list. The changes of status are checked against these plans, so that one list
    /// can complete a step together with its dependencies. `None`: the list changes no status.
    fn goal(&self, made: &files::Made) -> Option<Plans> {
        let verbs: Vec<_> =
            (0..self.items.len()).filter_map(|it| Some((self.id(it), self.verb(it)?))).collect();
        if verbs.is_empty() {
            return None;
        }
        let claims = self.plans.claims().clone();
        let mut plans = self.with_plan(&made.plan);
        let own = plans.iter_mut().find(|it| !it.is_archived && it.id == self.plan.id)?;
        for (id, verb) in verbs {
            let Some(step) = own.steps.iter_mut().find(|it| it.id == id) else { continue };
            step.status = Stated::Known(verb.target());
            step.claim = step.claim.take().filter(|_| verb == Verb::Start);
        }
        Some(Plans::judged(plans).with_claims(claims))
    }

    fn item_of(&self, step: &Step) -> Option<usize> {
        let nth = self.plan.steps.iter().position(|it| it.path == step.path);
        nth.and_then(|nth| self.places.steps.iter().position(|it| *it == Some(nth)))
    }

    /// Open steps that no item names.
    fn removed(&self) -> impl Iterator<Item = &'a Step> {
        let is_named = |nth: usize| self.places.steps.contains(&Some(nth));
        let steps = self.plan.steps.iter().enumerate();
        steps.filter(move |(nth, it)| !is_named(*nth) && !it.is_closed()).map(|(_, it)| it)
    }

    fn resolved(&self, request: &ReplaceRequest) -> Result<Vec<Option<Vec<StepId>>>, Error> {
        let goes: BTreeSet<&StepId> = self.removed().map(|it| &it.id).collect();
        let one = |nth: usize, dependency: &Dependency| match dependency {
            Dependency::Item(item) => Ok(self.id(*item)),
            Dependency::Either(id, item) => {
                let step = self.plan.find(id);
                let named = step.and_then(|it| self.item_of(it)).map(|it| self.id(it));
                let stays = step.filter(|it| it.is_closed()).map(|_| id.clone());
                Ok(named.or(stays).unwrap_or_else(|| self.id(*item)))
            }
            Dependency::Step(id) => {
                // If the list names the step, the dependency gets the step's new id.
                let named = self.plan.find(id).filter(|_| id.plan == self.plan.id);
                if let Some(item) = named.and_then(|it| self.item_of(it)) {
                    return Ok(self.id(item));
                }
                if goes.contains(id) || self.plans.step(id).is_none() {
                    let reason = format!("item {}: `{id}` does not exist, or the list removes it", nth + 1);
                    return Err(unreadable(request, &reason));
                }
                Ok(id.clone())
            }
        };
        let all = |(nth, item): (usize, &StepItem)| {
            let depends = item.depends.as_ref();
            depends.map(|it| it.iter().map(|it| one(nth, it)).collect::<Result<Vec<_>, _>>()).transpose()
        };
        self.items.iter().enumerate().map(all).collect()
    }

    /// The replacements of each step that is moved or removed. A moved step is replaced by its new id. A removed step is
    /// replaced by its dependencies and by the new steps in its position ([`Self::ends_around`]).
    fn with_heirs(&self) -> Vec<Gone> {
        let mut gone = Vec::new();
        for item in 0..self.items.len() {
            let Some(step) = self.step(item).filter(|it| it.id != self.id(item)) else { continue };
            gone.push(Gone::moved(step.id.clone(), self.id(item)));
        }
        for step in self.removed() {
            let mut heirs = Vec::new();
            let unclear = self.heirs_of(step, &mut heirs, &mut BTreeSet::new());
            gone.push(Gone::removed(step.id.clone(), heirs, unclear));
        }
        gone
    }

    /// Adds the replacements of a removed step to `heirs`. If some may be missing, because a problem in a file hides
    /// dependencies, returns that problem.
    fn heirs_of(
        &self,
        step: &'a Step,
        heirs: &mut Vec<StepId>,
        seen: &mut BTreeSet<StepId>,
    ) -> Option<&'a Problem> {
        let mut left = vec![step];
        let mut unclear = None;
        let mut add = |id: StepId| {
            if !heirs.contains(&id) {
                heirs.push(id);
            }
        };
        self.ends_around(step).for_each(&mut add);
        while let Some(step) = left.pop() {
            unclear = unclear.or_else(|| step.unclear_dependencies());
            for id in &self.plan.spelled_out(step) {
                if !seen.insert(id.clone()) {
                    continue;
                }
                let own = self.plan.find(id).filter(|_| id.plan == self.plan.id);
                match own {
                    Some(own) => match self.item_of(own) {
                        Some(item) => add(self.id(item)),
                        None if own.is_closed() => add(id.clone()),
                        None => left.push(own),
                    },
                    None => add(id.clone()),
                }
            }
        }
        unclear
    }

    /// The steps whose `depends` cannot be updated. A step whose dependencies the list states is left out, because its
    /// `depends` is written anew.
    fn left(&self, troubles: &[Problem]) -> Orphans {
        let is_said = |it: &usize| self.depends[*it].is_some();
        let said = (0..self.items.len()).filter(is_said).filter_map(|it| Some(self.step(it)?.id.clone()));
        Orphans::of(self.context, (self.plans, troubles), &self.gone, &said.collect::<Vec<_>>())
    }

    /// The new steps in the position of a removed step. In the list, they are between two existing steps that keep their
    /// numbers: the nearest one before the removed step, and the nearest one after it. A new step is left out if another of
    /// these new steps depends on it.
    fn ends_around(&self, step: &Step) -> impl Iterator<Item = StepId> {
        let number = &step.id.number;
        let stays = |item: usize| self.step(item).is_some_and(|it| it.id == self.id(item));
        let kept: Vec<_> = (0..self.items.len()).filter(|it| stays(*it)).collect();
        let before = kept.iter().rfind(|it| self.places.numbers[**it] < *number);
        let behind = kept.iter().find(|it| self.places.numbers[**it] > *number);
        let range = before.map_or(0, |it| it + 1)..behind.copied().unwrap_or(self.items.len());
        let new: Vec<usize> = range.filter(|it| self.step(*it).is_none()).collect();
        let is_needed =
            |id: &StepId| new.iter().any(|it| self.depends[*it].as_ref().is_some_and(|it| it.contains(id)));
        let ends: Vec<_> = new.iter().map(|it| self.id(*it)).filter(|it| !is_needed(it)).collect();
        ends.into_iter()
    }

    /// Without `--force`, refuses to remove or renumber a step that another worker or another clone has claimed, or that
    /// is in progress without a claim.
    fn check_free(&self, request: &ReplaceRequest) -> Result<(), Error> {
        foreign::refuse_live(self.context, self.gone.iter().map(|it| &it.id), request.force)?;
        for gone in &self.gone {
            let Some(step) = self.plan.find(&gone.id) else { continue };
            // The file of a removed step is only moved, so problems that prevent an edit do not matter there.
            if self.item_of(step).is_some() {
                transaction::check_writable(self.context, &step.problems)?;
            }
            let who = self.caller(step, request.force);
            if removed::refuse_worked_on(self.plans, step, &who)? == Owner::Late {
                let (id, claim) = (step.id.to_string(), who.claim.or(who.lost).unwrap_or_default());
                return Err(Error::ClaimLost { id, claim });
            }
        }
        Ok(())
    }

    fn caller(&self, step: &Step, force: bool) -> Caller {
        self.fences.caller(&step.id, Caller::of(self.context, &step.id, self.by, None, force))
    }

    fn done(&self) -> Done {
        let mut done = Done::default();
        for (item, step) in (0..self.items.len()).filter_map(|it| Some((it, self.step(it)?))) {
            let (step, to) = (step.id.clone(), self.id(item));
            if let Some(verb) = self.verb(item) {
                let (step, to, status) = (step.clone(), to.clone(), verb.target());
                done.statuses.push(StatusMove { step, status, to });
            }
            if step != to {
                done.moves.push((step, to));
            }
        }
        done
    }

    /// Moves the claim records of moved steps, and updates the records of steps with a new status. The claim of a removed
    /// step remains valid only in other working trees that still have the step.
    fn keep_records(&self, after: &Plans, is_forced: bool) {
        let mut moves = Vec::new();
        for step in self.gone.iter().filter_map(|it| self.plan.find(&it.id)) {
            match self.item_of(step) {
                Some(item) => {
                    let (to, file) = (self.id(item), self.path(item));
                    moves.push(leases::Move { plan: self.plan, step, to, file });
                }
                None => leases::removed(self.context, self.plan, step),
            }
        }
        leases::moved(self.context, &moves);
        for item in (0..self.items.len()).filter(|it| self.verb(*it).is_some()) {
            if let Some((before, now)) = self.step(item).zip(after.step(&self.id(item))) {
                let ends_others = is_forced && before.status != now.status;
                let effect = leases::Effect { ends_others, ..leases::Effect::default() };
                leases::changed(&leases::Leases::of(self.context), before, now, effect);
            }
        }
    }

    /// Refuses a list that makes a step wait for itself, unless the step already waited for itself before.
    fn refuse_cycle(&self, made: &files::Made) -> Result<(), Error> {
        let item_at = |id: &StepId| (0..self.items.len()).find(|it| self.id(*it) == *id);
        let had = |id: &StepId| match item_at(id) {
            Some(item) => self.step(item).is_some_and(|it| cycles::has(self.plans, &it.id)),
            None => cycles::has(self.plans, id),
        };
        let hint = match self.items.iter().any(|it| it.depends.is_some()) {
            true => "remove one of these dependencies",
            false => "add the dependencies of each step to the list",
        };
        cycles::refuse_new(self.with_plan(&made.plan), had, hint)
    }

    /// All plans as they are after the change, and what happened to each step.
    fn after(&self, made: &files::Made) -> (Plans, Vec<Changed>) {
        let own = &made.plan;
        let plans = Plans::judged(self.with_plan(own)).with_claims(self.plans.claims().clone());
        let views = Views::of(self.context, &plans);
        let written: BTreeSet<_> =
            made.ops.iter().map(|it| transaction::path_of(it).to_string_lossy()).collect();
        let mut changes = Vec::new();
        for step in self.removed() {
            let change = self.changed(step, "removed", Value::Null);
            changes.push(Changed { path: step.path.clone(), ..change });
        }
        for step in self.left_out() {
            let Some(now) = plans.step(&step.id) else { continue };
            let mut change = self.changed(now, "kept", value(&views.step(own, now)));
            change.status = Some(now.status.word().to_owned());
            change.was_written = false;
            changes.push(change);
        }
        for item in 0..self.items.len() {
            let id = self.id(item);
            let Some(step) = plans.step(&id) else { continue };
            let (old, verb) = (self.step(item), self.verb(item));
            let did = match (old, verb) {
                (None, _) => "added".to_owned(),
                (Some(old), _) if old.id != id => format!("moved from {}", old.id.number),
                (Some(_), Some(verb)) => verb.outcome().to_owned(),
                (Some(_), None) => "changed".to_owned(),
            };
            let mut change = self.changed(step, &did, value(&views.step(own, step)));
            change.was = old.filter(|_| verb.is_some()).map(|it| it.status.word().to_owned());
            change.status = Some(step.status.word().to_owned());
            change.was_written = did != "changed" || written.contains(step.path.as_str());
            changes.push(change);
        }
        (plans, changes)
    }

    /// Closed steps that no item names. They stay.
    fn left_out(&self) -> impl Iterator<Item = &'a Step> {
        self.plan.steps.iter().filter(|it| it.is_closed() && self.item_of(it).is_none())
    }

    /// All plans, with `own` instead of the old version of the plan. In the other live plans, dependencies on removed and
    /// moved steps are replaced.
    fn with_plan(&self, own: &Plan) -> Vec<Plan> {
        let mut all = self.plans.clone().into_vec();
        for plan in all.iter_mut().filter(|it| !it.is_archived) {
            match plan.id == own.id {
                true => plan.clone_from(own),
                false => plan.steps.iter_mut().for_each(|it| *it = self.followed(it)),
            }
        }
        all
    }

    /// A copy of a step whose dependencies on removed and moved steps are replaced.
    fn followed(&self, step: &Step) -> Step {
        Step { depends: relink::followed_depends(step, &self.gone), ..step.clone() }
    }

    fn changed(&self, step: &Step, did: impl Into<String>, now: Value) -> Changed {
        Changed::new(self.context, &step.id, (&step.title, &step.path), did, now)
    }

    fn path(&self, item: usize) -> String {
        let id = self.id(item);
        match self.step(item).or_else(|| self.plan.find(&id)).filter(|it| it.id == id) {
            Some(step) => step.path.clone(),
            None => {
                let directory = self.plan.path.trim_end_matches(file_name::PLAN_FILE);
                format!("{directory}{}", file_name::step_file(&id.number))
            }
        }
    }
}

#[cfg(test)]
mod tests;
