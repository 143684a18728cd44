//! `status`: what needs attention, what is in progress, what is ready, what was finished.

mod elsewhere;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{PlanShape, Reason, StepShape, Views, held, value, with};
use crate::api::{attention, staleness};
use crate::plan::claims::InForce;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Problem, Severity};
use crate::plan::rules;
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Status, StepStatus};
use crate::store::interrupted::{self, Interrupted};
use crate::store::load::{self, LoadQuery, Loaded};
use crate::store::problems;
use crate::store::project_saves;

pub use crate::api::requests::StatusRequest;
pub use elsewhere::OnBranch;

#[derive(Debug, Clone)]
pub struct Attention {
    pub reason: Reason,
    pub step: StepShape,
    /// For an overdue step, the end of the due day. Otherwise, the same time as in a [`Standing`] without `held`. `None`:
    /// the time is not known, the step is faulty, or it only waits for a confirmation.
    pub since: Option<Time>,
    /// The last attempt's outcome and the first line of its notes.
    pub last: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Finished {
    pub step: StepShape,
    /// The time of the attempt that closed the step, or else the modification time of the step's file.
    pub at: Time,
    /// The author of the attempt that closed the step.
    pub by: Option<String>,
}

/// The number of steps in each part of a report, including the steps that the report leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub attention: usize,
    pub in_progress: usize,
    pub ready: usize,
    pub finished: usize,
}

/// A step, and since when it has been in its state.
#[derive(Debug, Clone)]
pub struct Standing {
    pub step: StepShape,
    /// If `held` is given, the time when that claim was made. Otherwise, the time depends on the state of the step:
    /// - pending: since when it has waited
    /// - closed: when it was closed
    /// - with a lapsed claim: when the claim was made
    /// - all others: the last activity
    pub since: Option<Time>,
    /// The claim that is in force, if the step's file does not show it. Such a claim was made in another working tree or on
    /// another machine, or the file has lost it.
    pub held: Option<InForce>,
    /// The number of other ready steps of the plan. Set only in [`StatusReport::ready`]; 0 elsewhere.
    pub more_ready: usize,
}

#[derive(Debug, Clone)]
pub struct StatusReport {
    pub plans: Vec<PlanShape>,
    pub attention: Vec<Attention>,
    pub in_progress: Vec<Standing>,
    /// Each active plan's next step, most urgent first.
    pub ready: Vec<Standing>,
    /// Completed in the last `days` days, newest first.
    pub finished: Vec<Finished>,
    pub totals: Totals,
    pub n_errors: usize,
    pub n_warnings: usize,
    /// The paths of preserved texts that no other file contains, for example of a save that raced with a write, and of
    /// foreign `.planwatch` directories that an earlier release moved aside.
    pub kept: Vec<String>,
    pub interrupted: Option<Interrupted>,
    pub days: u32,
    /// The steps with another status on unmerged branches. `None`: these were not requested.
    pub branches: Option<Vec<OnBranch>>,
}

impl Standing {
    fn to_json(&self) -> Value {
        let mut object = with(&self.step, json!({"since": self.since.map(Time::whole_seconds)}));
        if let Some(in_force) = &self.held {
            object["held"] = held(in_force);
        }
        object
    }
}

impl StatusReport {
    /// How many of the plans are drafts, which are not worked on yet.
    pub fn n_drafts(&self) -> usize {
        self.plans.iter().filter(|it| is_draft(it)).count()
    }

    /// The number of closed steps and of all steps of the plans that `is_counted` accepts. The steps of a program include
    /// those of its plans, so these plans are left out.
    pub fn n_steps(&self, is_counted: fn(&PlanShape) -> bool) -> (usize, usize) {
        let counted = || self.plans.iter().filter(|it| is_counted(it));
        let ids: HashSet<_> = counted().map(|it| it.id.as_str()).collect();
        let is_in_program = |it: &PlanShape| it.program.as_ref().is_some_and(|it| ids.contains(it.as_str()));
        let steps = counted().filter(|it| !is_in_program(it));
        steps.fold((0, 0), |(closed, total), it| {
            (closed + it.steps_completed + it.steps_skipped, total + it.steps_total)
        })
    }

    pub fn to_json(&self) -> Value {
        let attention = self.attention.iter().map(|it| {
            json!({"reason": it.reason.word(), "since": it.since.map(Time::whole_seconds), "last": it.last, "step": value(&it.step)})
        });
        let standing = |of: &[Standing]| of.iter().map(Standing::to_json).collect::<Vec<_>>();
        let finished = self
            .finished
            .iter()
            .map(|it| with(&it.step, json!({"finished_at": it.at.whole_seconds(), "finished_by": it.by})));
        let mut object = json!({
            "plans": value(&self.plans),
            "open_plans": self.plans.len() - self.n_drafts(),
            "drafts": self.n_drafts(),
            "attention": attention.collect::<Vec<_>>(),
            "in_progress": standing(&self.in_progress),
            "ready": standing(&self.ready),
            "finished": finished.collect::<Vec<_>>(),
            "problems": {"errors": self.n_errors, "warnings": self.n_warnings},
            "kept": self.kept,
            "days": self.days,
        });
        if let Some(interrupted) = &self.interrupted {
            object["interrupted"] = value(interrupted);
        }
        if let Some(branches) = &self.branches {
            object["branches"] = value(branches);
        }
        object
    }
}

pub fn is_draft(plan: &PlanShape) -> bool {
    plan.status == PlanStatus::Draft.word()
}

pub fn status(context: &Context, request: &StatusRequest) -> Result<StatusReport, Error> {
    with_most(context, request, usize::MAX)
}

/// Like [`status`], but describes at most `most` steps in each of three parts: the steps that need attention, the ready
/// steps and the finished steps.
pub fn with_most(context: &Context, request: &StatusRequest, most: usize) -> Result<StatusReport, Error> {
    let Loaded { plans, problems: beside, .. } = LoadQuery::all().with_other_problems().load(context)?;
    let views = Views::of(context, &plans);
    let days = request.days.unwrap_or(context.config.stale_days());
    let active: Vec<_> = plans.live().filter(|it| it.status.is(PlanStatus::Active)).collect();
    let working = |it: &Step| {
        it.standing().is(StepStatus::InProgress)
            && !it.is_unverified()
            && !rules::is_lapsed(&plans, it, context.now)
    };
    let (n_errors, n_warnings) = count_problems(context, &plans, beside);
    let open: Vec<_> = plans.live().filter(|it| is_open(it)).collect();
    let in_progress: Vec<_> = steps(&active)
        .filter(|(_, it)| working(it) || held_beside(&plans, it).is_some())
        .map(|(plan, it)| standing(&views, plan, it))
        .collect();
    let candidates = rules::candidates(&plans, context.now);
    let ready: Vec<_> = candidates.iter().map(|it| (it.plan, it.step)).collect();
    let (attention, n_attention) = needing_attention(&views, &active, days, most);
    let (finished, n_finished) = finished(&views, days, most);
    let totals = Totals {
        attention: n_attention,
        in_progress: in_progress.len(),
        ready: ready.len(),
        finished: n_finished,
    };
    let report = StatusReport {
        plans: load::map(&open, |it| views.plan(it)),
        attention,
        in_progress,
        ready: load::map(first(&ready, most), |(plan, it)| Standing {
            more_ready: more_ready(&views, plan, it),
            ..standing(&views, plan, it)
        }),
        finished,
        totals,
        n_errors,
        n_warnings,
        kept: kept(context),
        interrupted: interrupted::find(context),
        days,
        branches: request.branches.then(|| elsewhere::on_branches(context, &plans)).transpose()?,
    };
    load::drop_in_background(plans);
    Ok(report)
}

/// The paths for [`StatusReport::kept`], relative to the plans directory. Those of the project's saves are absolute if the
/// plans directory is outside the project.
fn kept(context: &Context) -> Vec<String> {
    let of_plans = context.plans.kept().into_iter().map(|it| it.kept.to_string_lossy().into_owned());
    of_plans.chain(project_saves::kept(context)).collect()
}

fn standing(views: &Views<'_>, plan: &Plan, step: &Step) -> Standing {
    let (since, held) = match held_beside(views.plans, step) {
        Some((held, at)) => (at, Some(held)),
        None => (staleness::since(views.plans, plan, step, views.now), None),
    };
    Standing { step: views.step(plan, step), since, held, more_ready: 0 }
}

/// How many other steps of a plan are ready. Steps with a lapsed claim do not count: they are listed under attention.
fn more_ready(views: &Views<'_>, plan: &Plan, step: &Step) -> usize {
    let is_other = |it: &&Step| it.id != step.id && it.status.is(StepStatus::Pending);
    let others = plan.steps.iter().filter(is_other);
    others.filter(|it| rules::is_ready(views.plans, plan, it, views.now)).count()
}

/// The claim in force that the step's file does not show, and when it was made.
fn held_beside(plans: &Plans, step: &Step) -> Option<(InForce, Option<Time>)> {
    let held = plans.claims().holder(step)?;
    let in_force = InForce::of(held)?;
    Some((in_force, held.at))
}

fn is_open(plan: &Plan) -> bool {
    let (status, _) = plan.shown_status();
    !status.known().is_some_and(|it| matches!(it, PlanStatus::Completed | PlanStatus::Abandoned))
}

fn steps<'a>(plans: &'a [&'a Plan]) -> impl Iterator<Item = (&'a Plan, &'a Step)> {
    plans.iter().flat_map(|plan| plan.steps.iter().map(|it| (*plan, it)))
}

fn first<T>(all: &[T], most: usize) -> &[T] {
    &all[..all.len().min(most)]
}

/// The first `most` steps that need attention, and the number of all of them.
fn needing_attention(views: &Views<'_>, active: &[&Plan], days: u32, most: usize) -> (Vec<Attention>, usize) {
    let mut found: Vec<_> = load::map(active, |it| reasons(views, it, days)).into_iter().flatten().collect();
    found.sort_by_key(|((reason, _), ..)| *reason);
    let shown = load::map(first(&found, most), |((reason, since), plan, step)| Attention {
        reason: *reason,
        step: views.step(plan, step),
        since: *since,
        last: last_attempt(step),
    });
    (shown, found.len())
}

type Found<'a> = ((Reason, Option<Time>), &'a Plan, &'a Step);

fn reasons<'a>(views: &Views<'_>, plan: &'a Plan, days: u32) -> Vec<Found<'a>> {
    let seconds = i64::from(days) * 86_400;
    let reason = |it: &Step| attention::of_step(views.plans, plan, it, views.now, seconds);
    plan.steps.iter().filter_map(|it| Some((reason(it)?, plan, it))).collect()
}

fn last_attempt(step: &Step) -> Option<String> {
    let last = step.attempts.last()?;
    let parts = [last.outcome.as_deref(), last.notes.as_deref().and_then(|it| it.lines().next())];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

/// The steps that were completed in the last `days` days, newest first and at most `most`, and the number of all of them.
fn finished(views: &Views<'_>, days: u32, most: usize) -> (Vec<Finished>, usize) {
    let is_recent = |at: &Time| views.now.seconds_since(*at) <= i64::from(days) * 86_400;
    let all = views.plans.live().flat_map(|plan| plan.steps.iter().map(move |it| (plan, it)));
    let mut found: Vec<_> = all
        .filter(|(_, it)| it.standing().is(StepStatus::Completed))
        .filter_map(|(plan, it)| Some((it.closed_at().filter(is_recent)?, plan, it)))
        .collect();
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.id.cmp(&b.2.id)));
    let by = |step: &Step| step.closing_attempt().and_then(|it| it.by.clone());
    let shown = first(&found, most).iter().map(|(at, plan, it)| Finished {
        step: views.step(plan, it),
        at: *at,
        by: by(it),
    });
    (shown.collect(), found.len())
}

/// The numbers of errors and warnings in the configuration and in [`problems::all`]. `beside` contains the problems that
/// belong to no plan.
fn count_problems(context: &Context, plans: &Plans, beside: Vec<Problem>) -> (usize, usize) {
    let all = problems::all(context, plans, beside);
    let all = all.iter().chain(&context.here.config_problems);
    let (errors, warnings): (Vec<_>, Vec<_>) = all.partition(|it| it.severity() == Severity::Error);
    (errors.len(), warnings.len())
}
