//! `claim`: gives a ready step to exactly one caller, and renews claims.
//!
//! The candidates are found before the lock is taken. Under the lock each one is checked again against its files, and
//! the first that is still ready is claimed. `store::leases` documents the order of the writes.

mod again;
mod batch;
mod for_run;
mod refusal;
mod renew;
mod shared;

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
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::rules::{self, State};
use crate::plan::time::Time;
use crate::plan::words::StepStatus;
use crate::store::claims::candidates::{self, Ready};
use crate::store::decision::Decision;
use crate::store::leases::{Effect, Leases, Locked, NewRecord, Sharing};
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file::{self, Made, StepUpdate};
use crate::store::sync::state::FileBefore;
use crate::store::transaction::{Mode, Transaction, is_half_saved};
use crate::store::{fencing, idempotency};
use crate::text::count;
use crate::text::typed::shell_word;

pub use crate::api::requests::ClaimRequest;

pub use batch::claim_together;
pub(crate) use for_run::{Begun, RunAsk, RunClaim, Task, claim_for_run, task, wanted};
pub use renew::{RenewRequest, renew};

/// The maximum number of searches for a step. A search is repeated if a step has become ready meanwhile.
const TRIES: usize = 3;

/// The step that was claimed, or why none was.
#[derive(Debug, Clone)]
pub struct ClaimReport {
    /// A state, in the words that `next` uses.
    pub state: &'static str,
    /// The step after the claim, in the JSON form that commands, HTTP and MCP share.
    pub step: Option<Value>,
    pub why: String,
    pub claim: Option<Granted>,
    /// The plan that was searched, or the plan of a step that was named, claimed again or renewed.
    pub plan: Option<String>,
    pub is_dry_run: bool,
    pub diff: String,
    /// Until when other machines respect the claim if nothing renews it. None unless this request stored the claim at the
    /// registry.
    pub until_elsewhere: Option<Time>,
    /// The claim was made on this machine only; other machines do not know it yet.
    pub is_offline: bool,
    /// What the claim wrote, or would write in a dry run. None if no step was claimed, or if another process or an
    /// earlier request made the claim.
    pub(crate) made: Option<MadeHere>,
}

/// A claim that this process wrote into the step's file, or would write in a dry run.
#[derive(Debug, Clone)]
pub(crate) struct MadeHere {
    pub(crate) step: StepId,
    /// The file before the claim. None if it did not exist, or if other files were changed with it, as when an earlier
    /// candidate was set to `failed`.
    pub(crate) file: Option<FileBefore>,
}

impl ClaimReport {
    /// The report of a claim that was made, or that continues.
    fn of(step: Value, why: String, claim: Granted) -> Self {
        let (state, step, claim) = (State::Next.word(), Some(step), Some(claim));
        Self { state, step, why, claim, ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            state: State::Empty.word(),
            step: None,
            why: String::new(),
            claim: None,
            plan: None,
            is_dry_run: false,
            diff: String::new(),
            until_elsewhere: None,
            is_offline: false,
            made: None,
        }
    }

    pub fn to_json(&self) -> Value {
        let claim = self.claim.as_ref().map(|it| {
            let mut claim = json!({"id": it.id, "until": it.until.map(Time::whole_seconds)});
            if let Some(until) = self.until_elsewhere {
                claim["until_elsewhere"] = until.whole_seconds().to_string().into();
            }
            if self.is_offline {
                claim["offline"] = true.into();
            }
            claim
        });
        json!({
            "state": self.state, "step": self.step, "why": self.why, "claim": claim,
            "dry_run": self.is_dry_run, "diff": self.diff,
        })
    }

    /// 7 if no step was claimed, even if the plan is complete.
    pub fn exit_code(&self) -> u8 {
        if self.claim.is_some() { 0 } else { 7 }
    }
}

/// The claim to make, which is the same for every candidate.
struct Ask<'a> {
    context: &'a Context,
    id: String,
    by: &'a str,
    lease: i64,
    process: Option<Process>,
    force: bool,
    /// Steps to leave out, such as those that other machines have claimed.
    skip: &'a HashSet<StepId>,
}

/// A claim that is in the step's file and recorded, or would be in a dry run.
struct Grant {
    made: Made,
    why: String,
}

enum Taken {
    Granted(Box<Grant>),
    /// The step had too many failed or lapsed attempts; its status is now `failed`.
    Failed,
    /// The step is no longer ready, for example because another worker has claimed it.
    Gone,
}

/// Claims the named step, or else the next ready one, and puts it in progress, atomically. Of several concurrent callers,
/// exactly one gets the step.
///
/// If a named step cannot be claimed, the error says why. If no step is named and none is ready, the report says why.
///
/// If no step was claimed, the answer is not stored for the request's key: the same request may get a step later.
pub fn claim(context: &Context, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let report = claim_or_again(context, request)?;
    if let (None, Some(key)) = (&report.claim, &context.key) {
        key.drop_answer();
    }
    Ok(report)
}

fn claim_or_again(context: &Context, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    if let Some(again) = again::claimed(context)? {
        return Ok(again);
    }
    if context.config.sync.is_some() && request.mode == Mode::Write {
        return shared::claim(context, request);
    }
    // If the request has a key, this process makes the claim, because the daemon does not get the key.
    if request.target.is_some() || context.here.plan.is_some() || context.key.is_some() {
        return claim_here(context, request, &HashSet::new());
    }
    match batch::by_another(context, request)? {
        Some(report) => Ok(report),
        None => claim_here(context, request, &HashSet::new()),
    }
}

/// The step or steps that a claim may choose from.
enum Wanted {
    Step(NamedStep),
    /// The next step of a plan, or of all plans.
    Next(Option<PlanId>),
}

fn wanted_by(context: &Context, request: &ClaimRequest) -> Result<Wanted, Error> {
    let target = request.target.as_deref().map(|it| resolve::target(context, it)).transpose()?;
    Ok(match target {
        Some(Target::Step(id)) => Wanted::Step(id),
        Some(Target::Plan(id)) => Wanted::Next(Some(id)),
        None => Wanted::Next(context.here.plan.as_deref().map(|it| resolve::plan(context, it)).transpose()?),
    })
}

fn claim_here(
    context: &Context,
    request: &ClaimRequest,
    skip: &HashSet<StepId>,
) -> Result<ClaimReport, Error> {
    let wanted = wanted_by(context, request)?;
    let ask = ask(context, request, skip)?;
    match wanted {
        Wanted::Step(id) => claim_step(&ask, &id, request),
        Wanted::Next(plan) => claim_next(&ask, plan, request),
    }
}

fn ask<'a>(
    context: &'a Context,
    request: &'a ClaimRequest,
    skip: &'a HashSet<StepId>,
) -> Result<Ask<'a>, Error> {
    let id = match request.mode {
        Mode::Write => fresh_id(context)?,
        // This id is not written to any file; it is fixed, so that the diff is the same each time.
        Mode::DryRun => "g0000000".to_owned(),
    };
    let process = request.pid.map(|it| process(context, it)).transpose()?.flatten();
    let lease = request.lease.unwrap_or(context.config.lease());
    let by = request.by.as_deref().unwrap_or(&context.by);
    Ok(Ask { context, id, by, lease, process, force: request.force, skip })
}

/// Finds the process of a claim. `None` if processes cannot be seen; then the lease applies.
fn process(context: &Context, pid: u32) -> Result<Option<Process>, Error> {
    let disk = context.plans.disk();
    match Process::find(disk, pid) {
        None if Process::can_be_seen(disk) => {
            Err(Error::usage(format!("there is no process {pid}"), "name one that runs, as in --pid $$"))
        }
        found => Ok(found),
    }
}

/// A letter from g to z and seven random hexadecimal digits. The letter is not a hexadecimal digit, so the id cannot be
/// read as a number; it does not look like a name, and cannot be guessed.
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
) -> Result<(Transaction<'a>, Locked<'a>), Error> {
    // Other processes wait for the lock, so everything that does not need it is done before it is taken.
    let leases = Leases::of(context);
    leases.boot();
    let mut writing = Transaction::begin(context, verb, mode)?;
    writing.show_at_end();
    let locked = match mode {
        Mode::Write => Locked::take_at(leases, sharing)?,
        Mode::DryRun => Locked::look_at(leases),
    };
    Ok((writing, locked))
}

/// Claims the first candidate that is still ready under the lock, or reports why no step is ready.
fn claim_next(ask: &Ask<'_>, plan: Option<PlanId>, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let context = ask.context;
    for _ in 0..TRIES {
        if let Some(report) = claim_ready(ask, plan.as_ref(), request)? {
            return Ok(report);
        }
        let report =
            next::next(context, &NextRequest { plan: plan.as_ref().map(PlanId::to_string), most: Some(1) })?;
        // A step has become ready meanwhile, or was released.
        if report.state == State::Next && ask.skip.is_empty() {
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
        why: report.why.clone(),
        plan: report.plan.clone(),
        is_dry_run: request.mode == Mode::DryRun,
        ..ClaimReport::empty()
    }
}

/// Claims the first candidate that is still ready under the lock. Returns none if no step is ready.
fn claim_ready(
    ask: &Ask<'_>,
    plan: Option<&PlanId>,
    request: &ClaimRequest,
) -> Result<Option<ClaimReport>, Error> {
    let mut tried = ask.skip.clone();
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

/// Leaves out the steps that were claimed after they were found and before the lock was taken. Their records show this, so
/// their files need not be read.
fn unclaimed(queue: Vec<Ready>, locked: &Locked<'_>) -> impl Iterator<Item = Ready> {
    queue.into_iter().filter(|it| it.has_lapsed || !locked.has_record(&it.step.id))
}

fn take_first(
    ask: &Ask<'_>,
    writing: &mut Transaction<'_>,
    locked: &Locked<'_>,
    tried: &mut HashSet<StepId>,
    queue: impl Iterator<Item = Ready>,
) -> Result<Option<Grant>, Error> {
    let mut half_saved = None;
    for Ready { step: named, .. } in queue {
        match take(ask, writing, locked, &named, Wish::Ready) {
            Ok(Taken::Granted(grant)) => return Ok(Some(*grant)),
            // Another step can be claimed although this file cannot be written.
            Ok(Taken::Failed | Taken::Gone) | Err(Error::File { .. } | Error::Edit { .. }) => {}
            Err(error) if is_half_saved(&error) => half_saved = Some(error),
            Err(error) => return Err(error),
        }
        tried.insert(named.id);
    }
    // A step is ready, but its file is being saved.
    half_saved.map_or(Ok(None), Err)
}

/// Makes the report after the locks are released.
fn granted(
    ask: &Ask<'_>,
    plan: Option<PlanId>,
    Grant { made, why }: Grant,
    mut writing: Transaction<'_>,
) -> Result<ClaimReport, Error> {
    let shown = writing.cut();
    let file = shown.file_before();
    let (is_dry_run, diff) = (writing.end(), shown.diff(ask.context));
    let done = made.into_done(ask.context)?;
    let (step, made) = (done.changed.now, Some(MadeHere { step: done.after.id, file }));
    let until = ask.process.is_none().then(|| ask.context.now.plus_seconds(ask.lease));
    let claim = Granted { id: ask.id.clone(), until };
    let plan = plan.map(|it| it.to_string());
    Ok(ClaimReport { plan, is_dry_run, diff, made, ..ClaimReport::of(step, why, claim) })
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
            let tries = count(ask.context.config.max_attempts() as usize, "failed or lapsed attempt");
            let message = format!("`{id}` has reached the limit of {tries}");
            let hint = format!(
                "`planwatch show {id_word}` shows them; `planwatch reopen {id_word}` makes it available again",
                id_word = shell_word(&id)
            );
            Err(Error::Conflict { code: "too-many-attempts", message, hint })
        }
    }
}

/// What an obstacle causes. For a step that the caller named: an error, unless the claim is forced. For a candidate: a try
/// with the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Named,
    Ready,
}

fn take(
    ask: &Ask<'_>,
    writing: &mut Transaction<'_>,
    locked: &Locked<'_>,
    named: &NamedStep,
    wish: Wish,
) -> Result<Taken, Error> {
    let context = ask.context;
    let decided = step_file::write(context, writing, named, &|plans| locked.annotate(plans), &|now| {
        let obstacles = rules::obstacles(now.plans, now.plan, now.step, context.now);
        match wish {
            _ if obstacles.is_empty() => {}
            Wish::Ready => return Ok(Decision::Leave(Taken::Gone)),
            Wish::Named if ask.force => {}
            Wish::Named => return Err(refusal::against(context, now.placed(), &obstacles)),
        }
        let update = update_for(ask, now.plans, now.step, !obstacles.is_empty());
        if update.status == Some(StepStatus::Failed) {
            // The request's key belongs to a claim, not to this change.
            idempotency::exclude_next_change(context);
            return Ok(Decision::Write(update, None));
        }
        let why = match obstacles.is_empty() {
            true => rules::why_ready(now.plans, now.plan, now.step, context.now),
            false => format!("forced, although {}", refusal::against(context, now.placed(), &obstacles)),
        };
        prepare(ask, locked, now.step, &why)?;
        Ok(Decision::Write(update, Some(why)))
    });
    let (made, why) = match withdraw_unless_made(locked, named, decided)? {
        Decision::Write(made, why) => (made, why),
        Decision::Leave(taken) => return Ok(taken),
    };
    let Some(why) = why else {
        let done = made.into_done(context)?;
        locked.changed(&done.before, &done.after, Effect::default());
        return Ok(Taken::Failed);
    };
    locked.confirm(&named.id)?;
    Ok(Taken::Granted(Box::new(Grant { made, why })))
}

/// Removes the prepared record of a claim that was not made. After a failed write the file may nevertheless contain the
/// claim, so the record stays.
fn withdraw_unless_made<T, L>(
    locked: &Locked<'_>,
    named: &NamedStep,
    decided: Result<Decision<Made, T, L>, Error>,
) -> Result<Decision<Made, T, L>, Error> {
    let is_kept = match &decided {
        Ok(Decision::Write(..)) => true,
        Ok(Decision::Leave(_)) => false,
        Err(error) => matches!(error, Error::Disk(_)) && !is_half_saved(error),
    };
    if !is_kept {
        locked.withdraw(&named.id);
    }
    decided
}

/// Records the response for the request's key, and prepares the claim's record.
fn prepare(ask: &Ask<'_>, locked: &Locked<'_>, step: &Step, why: &str) -> Result<(), Error> {
    let (by, process, claim) = (ask.by, ask.process.as_ref(), ask.id.as_str());
    let (at, lease) = (ask.context.now, ask.lease);
    let key = ask.context.key.as_deref().map(RequestKey::name);
    idempotency::record_claim(ask.context, || ClaimMade {
        step: step.id.to_string(),
        id: ask.id.clone(),
        until: ask.process.is_none().then(|| at.plus_seconds(lease)),
        why: why.to_owned(),
    });
    locked.prepare(&NewRecord { step, claim, by, at, lease, process, run: None, key })
}

/// The update that a claim makes: the step is in progress for the caller, or failed if too many attempts have failed or
/// lapsed.
fn update_for(ask: &Ask<'_>, plans: &Plans, step: &Step, is_forced: bool) -> StepUpdate {
    let context = ask.context;
    let mut update = StepUpdate { is_claim: true, ..StepUpdate::default() };
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
        let (notes, claim) = (Some("claimed".to_owned()), fencing::ended_claim(step, context.now));
        let forced = NewAttempt::new(context.now, ask.by, "forced");
        update.attempts.push(NewAttempt { notes, claim: claim.filter(|_| lapse.is_none()), ..forced });
    }
    update.status = Some(StepStatus::InProgress);
    update.keys.push(change::set_claim(&ask.id, ask.by, context.now));
    update.did = "claimed".to_owned();
    update
}

#[cfg(test)]
mod tests;
