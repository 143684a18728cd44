//! `claim`: hands out a step to one asker alone, and renews what was handed out.
//!
//! What is next is asked before the lock; under it each candidate is decided on anew, on the files, and one that is gone
//! gives way to the next. `store::leases` documents the order of the writes.

mod again;
mod batch;
mod for_run;
mod refusal;
mod renew;

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::daemon::Granted;
use crate::api::error::Error;
use crate::api::request_key::{ClaimMade, RequestKey};
use crate::disk::Process;
use crate::ops::next::{self, NextReport, NextRequest};
use crate::plan::change::{self, NewAttempt};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::rules::{self, State};
use crate::plan::time::Time;
use crate::plan::words::StepStatus;
use crate::store::claims::candidates::{self, Ready};
use crate::store::leases::{Leases, Locked, NewRecord, Sharing};
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file::{self, Made, StepUpdate};
use crate::store::transaction::{Mode, Writing, is_half_saved};
use crate::store::{fencing, idempotency};
use crate::text::typed::shell_word;

pub use crate::api::requests::ClaimRequest;

pub use batch::claim_together;
pub(crate) use for_run::{Asked, Begun, RunAsk, Task, claim_for_run, task, wanted};
pub use renew::{RenewRequest, renew};

/// How often nothing was found where something is ready a moment later.
const TRIES: usize = 3;

/// What was handed out, or why nothing was.
#[derive(Debug, Clone)]
pub struct ClaimReport {
    /// As `next` says it.
    pub state: &'static str,
    /// The step as it is then, in the shape of every surface.
    pub step: Option<Value>,
    pub why: String,
    pub claim: Option<Granted>,
    /// The plan that was asked.
    pub plan: Option<String>,
    pub is_dry_run: bool,
    pub diff: String,
}

impl ClaimReport {
    pub fn to_json(&self) -> Value {
        let claim =
            self.claim.as_ref().map(|it| json!({"id": it.id, "until": it.until.map(Time::whole_seconds)}));
        json!({
            "state": self.state, "step": self.step, "why": self.why, "claim": claim,
            "dry_run": self.is_dry_run, "diff": self.diff,
        })
    }

    /// 7 when nothing was handed out, also of a complete plan.
    pub fn exit_code(&self) -> u8 {
        if self.claim.is_some() { 0 } else { 7 }
    }
}

/// Who asks, for how long, and under which id; the same for every candidate.
struct Ask<'a> {
    context: &'a Context,
    id: String,
    by: &'a str,
    lease: i64,
    process: Option<Process>,
    force: bool,
}

/// A step that was handed out, on disk and recorded.
struct Grant {
    made: Made,
    why: String,
}

/// What became of one candidate.
enum Taken {
    Granted(Box<Grant>),
    /// Workers failed on it too often; it is failed now.
    Failed,
    /// Somebody else was faster, or its file changed.
    Gone,
}

/// Hands out a step: `next` and `in_progress` in one act, to one asker however many ask at once.
///
/// A step that was named is refused with the reason; without one the report says why nothing is ready.
pub fn claim(context: &Context, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    if let Some(again) = again::claimed(context)? {
        return Ok(again);
    }
    // A claim with a key is made here, where the key is known.
    if request.target.is_some() || context.here.plan.is_some() || context.key.is_some() {
        return claim_here(context, request);
    }
    match batch::by_another(context, request)? {
        Some(report) => Ok(report),
        None => claim_here(context, request),
    }
}

/// Claims in this process, without the daemon.
fn claim_here(context: &Context, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let target = request.target.as_deref().map(|it| resolve::target(context, it)).transpose()?;
    let ask = ask(context, request)?;
    match target {
        Some(Target::Step(id)) => claim_step(&ask, &id, request),
        Some(Target::Plan(id)) => claim_next(&ask, Some(id), request),
        None => {
            let plan = context.here.plan.as_deref().map(|it| resolve::plan(context, it)).transpose()?;
            claim_next(&ask, plan, request)
        }
    }
}

fn ask<'a>(context: &'a Context, request: &'a ClaimRequest) -> Result<Ask<'a>, Error> {
    let id = match request.mode {
        Mode::Write => fresh_id(context)?,
        // Nobody gets it, and the diff is the same each time.
        Mode::DryRun => "g0000000".to_owned(),
    };
    let process = request.pid.map(|it| process(context, it)).transpose()?.flatten();
    let lease = request.lease.unwrap_or(context.config.lease());
    let by = request.by.as_deref().unwrap_or(&context.by);
    Ok(Ask { context, id, by, lease, process, force: request.force })
}

/// None where processes cannot be seen: then the lease holds.
fn process(context: &Context, pid: u32) -> Result<Option<Process>, Error> {
    let disk = context.plans.disk();
    match Process::find(disk, pid) {
        None if Process::can_be_seen(disk) => {
            Err(Error::usage(format!("there is no process {pid}"), "name one that runs, as in --pid $$"))
        }
        found => Ok(found),
    }
}

/// A letter from g to z and seven hexadecimal digits: nobody's name, no number, and nothing to guess.
fn fresh_id(context: &Context) -> Result<String, Error> {
    let mut bytes = [0; 8];
    context.plans.random(&mut bytes)?;
    let random = u64::from_le_bytes(bytes);
    let letter = (b'g' + u8::try_from(random % 20).unwrap_or(0)) as char;
    Ok(format!("{letter}{:07x}", random >> 36))
}

fn sharing(request: &ClaimRequest) -> Sharing {
    if request.force { Sharing::Waived } else { Sharing::Wanted }
}

fn begin<'a>(
    context: &'a Context,
    verb: &str,
    mode: Mode,
    sharing: Sharing,
) -> Result<(Writing<'a>, Locked<'a>), Error> {
    // Others wait while the lock is held, so all that can be found out without it is.
    let leases = Leases::of(context);
    leases.boot();
    let mut writing = Writing::begin(context, verb, mode)?;
    writing.show_at_end();
    let locked = match mode {
        Mode::Write => Locked::take_at(leases, sharing)?,
        Mode::DryRun => Locked::look_at(leases),
    };
    Ok((writing, locked))
}

/// Takes the first step of a queue that still is ready under the lock, or says why nothing is.
fn claim_next(ask: &Ask<'_>, plan: Option<PlanId>, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let context = ask.context;
    for _ in 0..TRIES {
        if let Some(report) = claim_ready(ask, plan.as_ref(), request)? {
            return Ok(report);
        }
        let report =
            next::next(context, &NextRequest { plan: plan.as_ref().map(PlanId::to_string), most: Some(1) })?;
        // Since the look one has become ready, or been given back.
        if report.state == State::Next {
            continue;
        }
        return Ok(nothing(&report, request));
    }
    let report = next::next(context, &NextRequest { plan: plan.map(|it| it.to_string()), most: Some(1) })?;
    Ok(nothing(&report, request))
}

fn nothing(report: &NextReport, request: &ClaimRequest) -> ClaimReport {
    ClaimReport {
        state: report.state.word(),
        step: None,
        why: report.why.clone(),
        claim: None,
        plan: report.plan.clone(),
        is_dry_run: request.mode == Mode::DryRun,
        diff: String::new(),
    }
}

/// Claims the first candidate that is still ready under the lock; none: nothing is ready.
fn claim_ready(
    ask: &Ask<'_>,
    plan: Option<&PlanId>,
    request: &ClaimRequest,
) -> Result<Option<ClaimReport>, Error> {
    let mut tried = HashSet::new();
    let queue = candidates::look(ask.context, plan, &tried)?;
    if queue.is_empty() {
        return Ok(None);
    }
    let (mut writing, locked) = begin(ask.context, "claim", request.mode, sharing(request))?;
    let mut queue: Vec<_> = unclaimed(queue, &locked).collect();
    loop {
        if let Some(grant) = take_first(ask, &mut writing, &locked, &mut tried, queue.into_iter())? {
            drop(locked);
            return granted(ask, plan.cloned(), grant, writing).map(Some);
        }
        // Other steps may have become ready before the lock was taken.
        queue = candidates::look(ask.context, plan, &tried)?;
        if queue.is_empty() {
            return Ok(None);
        }
    }
}

/// Leaves out the steps that were claimed before the lock was taken: their records show that, without a read of their files.
fn unclaimed(queue: Vec<Ready>, locked: &Locked<'_>) -> impl Iterator<Item = Ready> {
    queue.into_iter().filter(|it| it.has_lapsed || !locked.has_record(&it.step.id))
}

fn take_first(
    ask: &Ask<'_>,
    writing: &mut Writing<'_>,
    locked: &Locked<'_>,
    tried: &mut HashSet<StepId>,
    queue: impl Iterator<Item = Ready>,
) -> Result<Option<Grant>, Error> {
    let mut half_saved = None;
    for Ready { step: named, .. } in queue {
        match take(ask, writing, locked, &named, Wish::Ready) {
            Ok(Taken::Granted(grant)) => return Ok(Some(*grant)),
            // A file that cannot be written hides no other step.
            Ok(Taken::Failed | Taken::Gone) | Err(Error::File { .. } | Error::Edit { .. }) => {}
            Err(error) if is_half_saved(&error) => half_saved = Some(error),
            Err(error) => return Err(error),
        }
        tried.insert(named.id);
    }
    // A step is ready, and only its file stands in the way.
    half_saved.map_or(Ok(None), Err)
}

/// What is told of a claim, once the next one has been let in.
fn granted(
    ask: &Ask<'_>,
    plan: Option<PlanId>,
    Grant { made, why }: Grant,
    mut writing: Writing<'_>,
) -> Result<ClaimReport, Error> {
    let shown = writing.cut();
    let (is_dry_run, diff) = (writing.end(), shown.diff(ask.context));
    let step = made.told(ask.context)?.changed.now;
    let until = ask.process.is_none().then(|| ask.context.now.plus_seconds(ask.lease));
    Ok(ClaimReport {
        state: "next",
        step: Some(step),
        why,
        claim: Some(Granted { id: ask.id.clone(), until }),
        plan: plan.map(|it| it.to_string()),
        is_dry_run,
        diff,
    })
}

fn claim_step(ask: &Ask<'_>, named: &NamedStep, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let id = &named.id;
    let (mut writing, locked) = begin(ask.context, "claim", request.mode, sharing(request))?;
    match take(ask, &mut writing, &locked, named, Wish::Named)? {
        Taken::Granted(grant) => {
            drop(locked);
            granted(ask, Some(id.plan.clone()), *grant, writing)
        }
        Taken::Failed | Taken::Gone => {
            let tries = ask.context.config.max_attempts();
            let message = format!("`{id}` is failed now: {tries} workers began it and did not end it");
            let hint = format!(
                "`planwatch show {id_word}` shows them; `planwatch reopen {id_word}` makes it available again",
                id_word = shell_word(&id)
            );
            Err(Error::Conflict { code: "too-many-attempts", message, hint })
        }
    }
}

/// Whether what stands against a step is told, or the next one is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Named,
    Ready,
}

fn take(
    ask: &Ask<'_>,
    writing: &mut Writing<'_>,
    locked: &Locked<'_>,
    named: &NamedStep,
    wish: Wish,
) -> Result<Taken, Error> {
    let id = &named.id;
    let is_gone = Cell::new(false);
    let decide = |plans: &Plans, plan: &Plan, step: &Step| {
        let obstacles = rules::obstacles(plans, plan, step, ask.context.now);
        is_gone.set(!obstacles.is_empty());
        let is_forced = wish == Wish::Named && ask.force;
        if !obstacles.is_empty() && !is_forced {
            return Err(refusal::against(ask.context, (plans, plan, step), &obstacles));
        }
        let mut update = update_for(ask, plans, step, !obstacles.is_empty());
        update.why = rules::why_ready(plans, plan, step, ask.context.now);
        tell_key(ask, step, &mut update);
        if update.status != Some(StepStatus::Failed) {
            let (by, process) = (ask.by, ask.process.as_ref());
            let (at, lease) = (ask.context.now, ask.lease);
            let key = ask.context.key.as_deref().map(RequestKey::name);
            let claim = ask.id.as_str();
            locked.prepare(&NewRecord { step, claim, by, at, lease, process, run: None, key })?;
        }
        Ok(update)
    };
    let made = step_file::write_under(ask.context, writing, named, &|plans| locked.tell(plans), &decide);
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            // After a failed write the file may have the claim all the same, and its record must stay with it.
            if !matches!(error, Error::Disk(_)) || is_half_saved(&error) {
                locked.withdraw(id);
            }
            let is_next = is_gone.get() && !is_half_saved(&error) && wish == Wish::Ready;
            return if is_next { Ok(Taken::Gone) } else { Err(error) };
        }
    };
    if made.status() == Some(StepStatus::Failed) {
        let done = made.told(ask.context)?;
        locked.changed(&done.before, &done.after, false);
        return Ok(Taken::Failed);
    }
    locked.confirm(id)?;
    let why = made.why().to_owned();
    Ok(Taken::Granted(Box::new(Grant { made, why })))
}

/// Says what a request's key is to hold: the claim. A step that failed too often is not what was asked for.
fn tell_key(ask: &Ask<'_>, step: &Step, update: &mut StepUpdate) {
    update.is_claim = true;
    if update.status == Some(StepStatus::Failed) {
        return idempotency::tell_aside(ask.context);
    }
    idempotency::tell_claim(ask.context, || ClaimMade {
        step: step.id.to_string(),
        id: ask.id.clone(),
        until: ask.process.is_none().then(|| ask.context.now.plus_seconds(ask.lease)),
        why: update.why.clone(),
    });
}

/// What taking the step makes of it: in progress for the asker, or failed, if too many gave up on it.
fn update_for(ask: &Ask<'_>, plans: &Plans, step: &Step, is_forced: bool) -> StepUpdate {
    let context = ask.context;
    let mut update = StepUpdate::default();
    let lapse = plans.claims().lapse(step, context.now);
    if let Some(lapse) = lapse {
        update.attempts.push(fencing::lapsed_attempt(context, step, lapse, ask.by));
        if fencing::is_at_limit(context, step) {
            update.status = Some(StepStatus::Failed);
            update.removes_claim = true;
            return update;
        }
    }
    if is_forced {
        update.attempts.push(NewAttempt {
            at: context.now,
            by: ask.by.to_owned(),
            outcome: "forced".to_owned(),
            notes: Some("claimed".to_owned()),
            claim: fencing::ended_claim(step, context.now).filter(|_| lapse.is_none()),
        });
    }
    update.status = Some(StepStatus::InProgress);
    update.keys.push(change::set_claim(&ask.id, ask.by, context.now));
    update.did = "claimed".to_owned();
    update
}

#[cfg(test)]
mod tests;
