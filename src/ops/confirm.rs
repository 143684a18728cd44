//! `confirm`: a person's yes or no to a step, or to a phase of a plan.
//!
//! A required confirmation holds back only workers that respect it. It is not a security boundary, because any program that
//! can write files can write a confirmation. A no to a step revokes an earlier yes and blocks the step. A no to a phase
//! revokes an earlier yes, and the steps of the phase wait for another yes.

use std::collections::BTreeSet;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::{self, NewAttempt, NewConfirmation, NewNote};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::records::NoteType;
use crate::plan::transitions::Verb;
use crate::plan::words::{StepStatus, nearest};
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller};
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::step_moves;
use crate::store::transaction::{ChangeReport, Mode};
use crate::text::header_edit::Change;
use crate::text::typed::{quoted, shell_word};

pub use crate::api::requests::{Answer, ConfirmRequest, Confirmer};

/// Records the answer if it is known to come from a person. Otherwise nothing is written, and the error contains the
/// command that a person has to type. A dry run does not check where the answer comes from.
pub fn confirm(context: &Context, request: &ConfirmRequest) -> Result<ChangeReport, Error> {
    let target = resolve::target(context, &request.id)?;
    if request.mode == Mode::Write
        && (context.here.claim.is_some() || request.confirmer == Confirmer::Unknown)
    {
        return Err(Error::PersonNeeded { command: command(request, &target) });
    }
    change_one_by_one(
        context,
        "confirm",
        std::slice::from_ref(&request.id),
        request.mode,
        |writing, _| match (&target, &request.phase) {
            (Target::Step(step), None) => {
                step_file::update(context, writing, step, &|now| of_step(context, request, now.placed()))
            }
            (Target::Plan(plan), Some(phase)) => {
                plan_file::update(context, writing, plan, &|now, _| of_phase(context, request, now, phase))
            }
            (Target::Step(step), Some(_)) => Err(not_both(step)),
            (Target::Plan(plan), None) => {
                let command = format!("planwatch confirm {} --phase NAME", shell_word(&plan));
                let hint = format!("name a step, or a phase as in `{command}`");
                Err(Error::usage(
                    format!("`{plan}` is a plan; only a step or a phase can be confirmed"),
                    hint,
                ))
            }
        },
    )
}

fn not_both(step: &NamedStep) -> Error {
    let hint = format!("leave --phase out, or name the plan `{}`", step.id.plan);
    Error::usage(format!("`{}` is a step; --phase needs a plan", step.id), hint)
}

fn command(request: &ConfirmRequest, target: &Target) -> String {
    let id = match target {
        Target::Plan(plan) => shell_word(plan),
        Target::Step(step) => shell_word(&step.id),
    };
    let mut words = Vec::new();
    words.extend(request.phase.iter().flat_map(|it| ["--phase".to_owned(), it.clone()]));
    words.extend((request.answer == Answer::No).then(|| "--reject".to_owned()));
    words.extend(request.note.iter().flat_map(|it| ["--note".to_owned(), it.clone()]));
    let words = words.iter().map(|it| format!(" {}", quoted(it)));
    format!("planwatch confirm {id}{}", words.collect::<String>())
}

fn confirmation(context: &Context, request: &ConfirmRequest) -> NewConfirmation {
    let by = request.by.as_ref().unwrap_or(&context.by).clone();
    NewConfirmation { phase: request.phase.clone(), by, at: context.now, note: request.note.clone() }
}

fn of_step(
    context: &Context,
    request: &ConfirmRequest,
    (plans, plan, step): (&Plans, &Plan, &Step),
) -> Result<StepUpdate, Error> {
    if request.answer == Answer::No {
        return rejected_step(context, request, (plans, plan, step));
    }
    if !step.needs_confirmation {
        let by_phase = step.phase.as_ref().filter(|it| plan.confirm_phases.contains(it));
        let hint = match by_phase {
            Some(phase) => {
                format!(
                    "its phase needs one: `planwatch confirm {} --phase {}`",
                    shell_word(&plan.id),
                    quoted(phase)
                )
            }
            None => {
                format!("`planwatch set {} confirm required` requires a confirmation", shell_word(&step.id))
            }
        };
        return Err(Error::usage(format!("`{}` needs no confirmation", step.id), hint));
    }
    if step.confirmed.is_some() {
        return Ok(StepUpdate { did: "already confirmed".to_owned(), ..StepUpdate::default() });
    }
    let keys = vec![confirmation(context, request).of_step()];
    Ok(StepUpdate { keys, did: "confirmed".to_owned(), ..StepUpdate::default() })
}

/// Blocks the step, and adds an attempt that contains the reason.
fn rejected_step(
    context: &Context,
    request: &ConfirmRequest,
    of: (&Plans, &Plan, &Step),
) -> Result<StepUpdate, Error> {
    let step = of.2;
    let who = Caller::of(context, &step.id, request.by.as_deref(), None, false);
    // `confirm` has no `--force`, so the error must not suggest it. The worker's claim has to end first.
    fencing::check(of.0, step, &who).map_err(Error::without_claim_option)?;
    if step_moves::refusal(context, of, Verb::Block).is_some() {
        let message = format!("`{}` is {} and can no longer be rejected", step.id, step.status.word());
        let hint = format!("`planwatch reopen {}` first", shell_word(&step.id));
        return Err(Error::Conflict { code: "not-allowed", message, hint });
    }
    let notes = request.note.as_ref().map_or("rejected".to_owned(), |it| format!("rejected: {it}"));
    let claim = fencing::ended_claim(step, context.now);
    let attempt =
        NewAttempt { notes: Some(notes), claim, ..NewAttempt::new(context.now, &who.by, "blocked") };
    Ok(StepUpdate {
        status: Some(StepStatus::Blocked),
        removes_claim: step.claim.is_some(),
        keys: step.confirmed.iter().map(|_| change::remove("confirmed")).collect(),
        attempts: vec![attempt],
        did: "rejected".to_owned(),
        ..StepUpdate::default()
    })
}

fn of_phase(
    context: &Context,
    request: &ConfirmRequest,
    plan: &Plan,
    phase: &str,
) -> Result<PlanUpdate, Error> {
    check_phase(plan, phase)?;
    let given = |it: &usize| plan.confirmations[*it].phase.as_deref() == Some(phase);
    let given: Vec<_> = (0..plan.confirmations.len()).filter(given).collect();
    let did = |did: &str| format!("{did} the phase {phase}");
    if request.answer == Answer::Yes {
        if !given.is_empty() {
            return Ok(PlanUpdate { did: "already confirmed".to_owned(), ..PlanUpdate::default() });
        }
        let keys = vec![confirmation(context, request).of_phase()];
        return Ok(PlanUpdate { keys, did: did("confirmed"), ..PlanUpdate::default() });
    }
    let take = |index: usize| Change::RemoveItem { key: "confirmations".to_owned(), index };
    let why = request.note.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    let by = request.by.as_ref().unwrap_or(&context.by).clone();
    let text = format!("rejected the phase {phase}{why}");
    let note = NewNote { at: context.now, kind: NoteType::Warning, by, text };
    Ok(PlanUpdate {
        keys: given.into_iter().rev().map(take).collect(),
        notes: vec![note],
        did: did("rejected"),
        ..PlanUpdate::default()
    })
}

/// Refuses an unknown phase, which is probably misspelled. A phase is known if `confirm_phases` names it, or if one of its
/// steps needs a confirmation.
fn check_phase(plan: &Plan, phase: &str) -> Result<(), Error> {
    let of_steps = plan.steps.iter().filter(|it| it.needs_confirmation).filter_map(|it| it.phase.as_ref());
    let known: Vec<_> = plan.confirm_phases.iter().chain(of_steps).map(String::as_str).collect();
    if known.contains(&phase) {
        return Ok(());
    }
    let nearest = nearest(phase, known.iter().copied());
    let known = known.into_iter().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect();
    Err(Error::NoSuchPhase { name: phase.to_owned(), plan: plan.id.to_string(), nearest, known })
}
