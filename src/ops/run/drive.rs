//! The loop of a run: claims the next step, waits for other workers, and decides when the run is over.

mod ending;
mod hints;
#[cfg(test)]
mod tests;
mod with_trees;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::agents::{self, OF_AGENT};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::api::trust;
use crate::ops::claim::{self, Begun, RunAsk, RunClaim, Task};
use crate::ops::run::attempt::{Attempt as Making, Made};
use crate::ops::run::outcome::{Outcome, Verdict};
use crate::ops::run::renewal::Renewal;
use crate::ops::run::trees::{self, Tree, Trees};
use crate::ops::run::{End, Event, RunReport, RunRequest, Surface, TreesReport, Workers, settle};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::records::Attempt;
use crate::plan::rules;
use crate::plan::words::StepStatus;
use crate::store::leases::Leases;
use crate::store::load::{LoadQuery, Loaded};
use crate::store::{commit, resolve, verify};
use crate::text::count;
use crate::text::typed::shell_word;

use with_trees::Unmerged;

/// How often a waiting run checks again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How often a run that waits for the registry or for other machines checks again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Works on a plan's steps until the run is over. The report says why it ended.
///
/// Errors that occur before the first step are returned at once. After a later error no step is begun, and the error is
/// returned when the steps in progress have ended.
pub fn run(request: &RunRequest, surface: &dyn Surface, workers: &dyn Workers) -> Result<RunReport, Error> {
    let context = surface.context()?;
    let plan = resolve::plan(&context, &request.plan)?;
    let begun = request.has_worktrees.then(|| trees::begin(&context, request)).transpose()?;
    // `held` is the lock of a run with working trees. It is held until the run ends.
    let (trees, held) = begun.unzip();
    let driver = Driver {
        request,
        trees,
        surface,
        workers,
        plan,
        state: Mutex::new(Progress::default()),
        changed: Condvar::new(),
    };
    driver.check_agent(&context)?;
    driver.take_up()?;
    std::thread::scope(|scope| {
        let renewal = context.config.sync.is_some().then(|| Renewal::begin(scope, surface));
        let more: Vec<_> = (1..request.jobs).map(|_| scope.spawn(|| driver.work())).collect();
        driver.work();
        // If a thread panicked, the panic is on stderr, and the next run continues the step.
        more.into_iter().for_each(|it| drop(it.join()));
        drop(renewal);
    });
    driver.end_if_complete();
    let ended = driver.end_trees();
    if let Some((trees, held)) = driver.trees.as_ref().zip(held.as_ref()) {
        trees.forget(held)?;
    }
    driver.into_report(ended)
}

struct Driver<'a> {
    request: &'a RunRequest,
    surface: &'a dyn Surface,
    workers: &'a dyn Workers,
    plan: PlanId,
    /// `None`: the steps are worked on in the user's own working tree.
    trees: Option<Trees>,
    state: Mutex<Progress>,
    /// Is notified when an attempt of this run has ended.
    changed: Condvar,
}

#[derive(Debug)]
struct Halt {
    end: End,
    why: String,
    step: Option<StepId>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The steps with an attempt in progress.
    active: HashSet<StepId>,
    /// Those of them whose result is being written. Until it is known whether the result halts the run, no step is claimed.
    settling: HashSet<StepId>,
    attempts: usize,
    begun: BTreeSet<StepId>,
    closed: BTreeSet<StepId>,
    cost: Option<f64>,
    /// The first step with an attempt whose cost is not known.
    unknown_cost: Option<StepId>,
    /// The last failure of each step, and the fingerprint of the working tree after that failure.
    failures: BTreeMap<StepId, (Outcome, Option<String>)>,
    unmerged: Vec<Unmerged>,
    has_said_waiting: bool,
    halt: Option<Halt>,
    error: Option<Error>,
}

impl Driver<'_> {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_agent(&self, context: &Context) -> Result<(), Error> {
        let Err(subject) = self.agent_may_run(context) else { return Ok(()) };
        if subject.fault.is_some() || !self.surface.may_trust(&subject) {
            return Err(trust::refused(&subject));
        }
        trust::trust(context, &subject, Some(&subject.hash))
    }

    /// Checks that the agent's command and the files it names are trusted as they are now. The error names what has to
    /// be trusted.
    fn agent_may_run(&self, context: &Context) -> Result<(), Box<trust::Subject>> {
        let subject = agents::subject_now(context, &self.request.agent);
        let is_fine = |it: &trust::Subject| trust::may_run(context, it, &self.request.trust_hashes);
        subject.filter(|it| !is_fine(it)).map_or(Ok(()), |it| Err(Box::new(it)))
    }

    /// Works on one step after another; runs in each thread.
    fn work(&self) {
        while let Some(claimed) = self.next() {
            let made = self.attempt(&claimed);
            self.end_attempt(&claimed, made);
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }

    /// Makes an attempt at a claimed step, and writes its result into the step's file.
    fn attempt(&self, claimed: &Claimed) -> Result<(Made, Option<Tree>), Error> {
        let begun = &*claimed.begun;
        let tree = self.tree_for(begun)?;
        let (request, workers, trees) = (self.request, self.workers, self.trees.as_ref());
        let place = trees.zip(tree.as_ref());
        let before_result = || self.hold_claims(begun);
        let made =
            Making { request, surface: self, workers, begun, place, before_result: &before_result }.make()?;
        Ok((made, tree))
    }

    /// No thread claims a step from now until [`Self::end_attempt`]. Called before the result of an attempt is written,
    /// because the step may be claimed again then, although the result may halt the run.
    fn hold_claims(&self, begun: &Begun) {
        self.lock().settling.insert(begun.step.id.clone());
    }

    fn end_attempt(&self, claimed: &Claimed, made: Result<(Made, Option<Tree>), Error>) {
        let begun = &*claimed.begun;
        let confirmed = self.new_confirmation(claimed);
        let left = match &made {
            Ok((made, Some(tree))) => self.leave(begun, tree, &made.verdict),
            _ => Ok(None),
        };
        let mut state = self.lock();
        state.active.remove(&begun.step.id);
        state.settling.remove(&begun.step.id);
        match left {
            Ok(unmerged) => state.unmerged.extend(unmerged),
            Err(error) => fail(&mut state, error),
        }
        match made {
            Ok((made, tree)) => self.take(&mut state, begun, &made, tree.as_ref()),
            Err(error) => fail(&mut state, error),
        }
        if let (Some(what), None) = (confirmed, &state.halt) {
            let why = format!("{what} was confirmed while the run worked on a step; check who confirmed it");
            state.halt = Some(Halt { end: End::ConfirmationNeeded, why, step: None });
        }
    }

    /// Claims the next step. Waits while no step can be begun now but one may be ready later. `None`: the run begins no
    /// further step.
    fn next(&self) -> Option<Claimed> {
        let mut state = self.lock();
        loop {
            if state.halt.is_none() && self.workers.is_stopped() {
                state.halt = Some(halt(End::Interrupted, "the run was stopped"));
            }
            if state.halt.is_some() || state.error.is_some() || self.is_at_limit(&mut state) {
                return None;
            }
            match self.claim(&mut state) {
                Ok(Next::Begun(begun)) => return Some(begun),
                Ok(Next::Wait(why)) => state = self.wait(state, &why, LOOK_AGAIN),
                Ok(Next::WaitLong(why)) => state = self.wait(state, &why, ASK_AGAIN),
                Ok(Next::Again) => {}
                Err(error) => fail(&mut state, error),
            }
        }
    }

    fn wait<'b>(
        &self,
        mut state: MutexGuard<'b, Progress>,
        why: &str,
        time: Duration,
    ) -> MutexGuard<'b, Progress> {
        if state.active.is_empty() && !std::mem::replace(&mut state.has_said_waiting, true) {
            self.surface.report(&Event::Waiting { why });
        }
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_at_limit(&self, state: &mut Progress) -> bool {
        let request = self.request;
        let said = if request.max_time.is_some_and(|it| self.surface.elapsed() >= it) {
            "the run reached its time limit (--max-time)".to_owned()
        } else if let Some((_, cost)) = request.budget.zip(state.cost).filter(|(limit, cost)| cost >= limit) {
            format!("the budget is spent: {cost:.2} US dollars")
        } else if let (Some(_), Some(id)) = (request.budget, &state.unknown_cost) {
            format!("the cost of an attempt at `{id}` is not known, so the budget cannot be checked")
        } else {
            return false;
        };
        state.halt = Some(halt(End::Limit, &said));
        true
    }

    fn claim(&self, state: &mut Progress) -> Result<Next, Error> {
        if !state.settling.is_empty() {
            return Ok(Next::Wait(String::new()));
        }
        let context = self.context()?;
        self.end_orphans(&context);
        let is_full = |step: &Step| {
            let max = self.request.max_steps.unwrap_or(usize::MAX);
            state.begun.len() >= max && !state.begun.contains(&step.id)
        };
        let check = |step: &Step| {
            if is_full(step) {
                Err(full())
            } else {
                self.agent_may_run(&context).map_err(|it| trust::refused(&it))?;
                verify::check(&context, step, &self.request.trust_hashes)
            }
        };
        let ask = RunAsk {
            plan: &self.plan,
            by: self.request.by(),
            lease: self.lease(),
            process: self.request.process.as_ref(),
            // A worker may report its result long before its process ends.
            skip: state.active.clone(),
            check: &check,
        };
        match claim::claim_for_run(&context, &ask) {
            Ok(RunClaim::Begun(begun)) => {
                state.active.insert(begun.step.id.clone());
                state.begun.insert(begun.step.id.clone());
                state.has_said_waiting = false;
                Ok(Next::Begun(Claimed { confirmed: confirmed(&context, &self.plan, &begun), begun }))
            }
            Ok(RunClaim::Failed(id)) => {
                let tries = count(context.config.max_attempts() as usize, "failed or lapsed attempt");
                let why = format!("`{id}` had {tries}");
                state.halt = Some(Halt { end: End::Halted, why, step: Some(id) });
                Ok(Next::Again)
            }
            Ok(RunClaim::Busy) => {
                let why = "a step in progress may change the same files as the next step, or other workers have just \
                           claimed the ready steps";
                Ok(Next::Wait(why.to_owned()))
            }
            Ok(RunClaim::Unreachable(why)) => Ok(Next::WaitLong(why)),
            Ok(RunClaim::Nothing) if !state.active.is_empty() => Ok(Next::Wait(String::new())),
            Ok(RunClaim::Nothing) => self.nothing(&context, state),
            Err(Error::Failed { code: FULL, .. }) => {
                // Steps in progress in this run may still fail and be tried again, but no new step is begun.
                if !state.active.is_empty() {
                    return Ok(Next::Wait(String::new()));
                }
                let n = state.begun.len();
                let were = if n == 1 { "was" } else { "were" };
                let why = format!("{} {were} begun (--max-steps)", count(n, "step"));
                state.halt = Some(halt(End::Limit, &why));
                Ok(Next::Again)
            }
            Err(Error::NotTrusted(subject)) if self.has_trusted(&context, &subject.name)? => Ok(Next::Again),
            Err(error) => Err(error),
        }
    }

    /// Asks a person to trust the commands with this name: a step's `verify` commands, or the agent's command. Returns
    /// whether they are trusted now. The lock of the plans directory is not held meanwhile.
    fn has_trusted(&self, context: &Context, name: &str) -> Result<bool, Error> {
        if name.starts_with(OF_AGENT) {
            return self.check_agent(context).map(|()| true);
        }
        let subjects = verify::named(context, name)?;
        let may_trust = |it: &&trust::Subject| it.fault.is_none() && self.surface.may_trust(it);
        let Some(subject) = subjects.first().filter(may_trust) else {
            return Ok(false);
        };
        trust::trust(context, subject, Some(&subject.hash))?;
        Ok(true)
    }

    /// The lease of the run's claims in seconds. It matters only if other processes cannot check whether this process
    /// runs.
    fn lease(&self) -> i64 {
        let seconds = i64::try_from(self.request.timeout().as_secs()).unwrap_or(i64::from(u32::MAX));
        seconds.saturating_add(30 * 60)
    }

    /// Ends the processes that killed runs have left. Also ends the claims of killed runs on completed steps without
    /// `verify` commands.
    fn end_orphans(&self, context: &Context) {
        let dead = Leases::of(context).runs().into_iter().filter(|(_, is_live)| !is_live);
        for (record, _) in dead {
            // If this fails, it is tried again before the next claim.
            settle::end_void(context, &record, &|it| is_part(it, &self.plan)).ok();
            let Some(run) = record.run else { continue };
            let log = context.plans.kept_run_log(&run.log);
            self.workers.end_left(&record.claim, run.worker.as_ref(), log.as_ref());
        }
    }

    /// A confirmation that appeared while the run worked on the step. Such a confirmation halts the run, because the agent
    /// or a `verify` command may have written it.
    fn new_confirmation(&self, claimed: &Claimed) -> Option<String> {
        let context = self.context().ok()?;
        let now = confirmed(&context, &self.plan, &claimed.begun);
        now.into_iter().find(|it| !claimed.confirmed.contains(it))
    }

    /// Records the cost and the result of an attempt, and reports the attempt. Halts the run if the result requires that.
    fn take(&self, state: &mut Progress, begun: &Begun, made: &Made, tree: Option<&Tree>) {
        let id = made.id(begun);
        let has_run = begun.task == Task::Work && !matches!(made.verdict, Verdict::GiveBack(_));
        state.attempts += usize::from(has_run);
        match made.cost {
            Some(cost) => state.cost = Some(state.cost.unwrap_or(0.0) + cost),
            None if has_run => drop(state.unknown_cost.get_or_insert_with(|| id.clone())),
            None => {}
        }
        if made.step.as_ref().is_some_and(Step::is_closed) {
            state.closed.insert(id.clone());
        }
        self.surface.report(&Event::Ended(&made.ended_step));
        // With `--worktrees`, the plan files are committed once, at the end of the run.
        if self.request.commits && self.trees.is_none() {
            self.commit(id);
        }
        let why = self.halts(state, begun, made, tree);
        if let (Some((end, why)), None) = (why, &state.halt) {
            state.halt = Some(Halt { end, why, step: Some(id.clone()) });
        }
        if let Ok(context) = self.context()
            && let Ok(Loaded { plans, .. }) = LoadQuery::plan(&self.plan).load(&context)
            && let Some(plan) = plans.get(&self.plan)
        {
            let progress = rules::progress(&plans, plan, context.now);
            self.surface.report(&Event::Progress { closed: progress.closed(), total: progress.total });
        }
    }

    /// Commits the step's file; if that fails, the change stays uncommitted and the run continues.
    fn commit(&self, id: &StepId) {
        let names = [id.to_string()];
        let done = self.context().and_then(|it| commit::commit(&it, &names, None, Mode::Write));
        let text = match done {
            Err(error) => format!("`{id}` is not committed: {error}"),
            Ok(report) => match report.left.first() {
                Some(left) => format!("not committed: {}", commit::why_left(&left.path, left.why)),
                None => return,
            },
        };
        self.surface.report(&Event::Note { text: &text });
    }

    fn halts(
        &self,
        state: &mut Progress,
        begun: &Begun,
        made: &Made,
        tree: Option<&Tree>,
    ) -> Option<(End, String)> {
        let id = made.id(begun);
        let halted = |why: String| Some((End::Halted, why));
        let is_failed = made.step.as_ref().is_some_and(|it| it.status.is(StepStatus::Failed));
        let outcome = match &made.verdict {
            Verdict::AsItIs(StepStatus::Completed) if was_forced(begun, made) => {
                return halted(format!("`{id}` was completed with --force, and has not been verified"));
            }
            Verdict::Close | Verdict::AsItIs(StepStatus::Completed | StepStatus::Skipped) => return None,
            // None of these stops the other steps. A step that cannot be merged is reported at the end of the run.
            Verdict::Lost | Verdict::Overtaken | Verdict::Leave | Verdict::Verify | Verdict::NotMerged(_) => {
                return None;
            }
            Verdict::Attempt(Outcome::Interrupted) => return None,
            Verdict::AsItIs(StepStatus::Blocked) => return halted(format!("`{id}` is blocked")),
            Verdict::AsItIs(StepStatus::Failed) => Outcome::Failed,
            Verdict::AsItIs(_) => return halted(format!("`{id}` was released")),
            Verdict::GiveBack(why) => {
                let others = "`--agent NAME` and `--command LINE` start another one";
                return halted(format!("the agent could not be started: {why} ({others})"));
            }
            Verdict::VerifyChanged => {
                let what = "or files that they name, were changed during the attempt";
                return halted(format!("the `verify` commands of `{id}`, {what}"));
            }
            Verdict::Unclear => return halted(format!("the file of `{id}` has an error")),
            Verdict::Attempt(outcome) => *outcome,
        };
        let context = self.context().ok()?;
        let tries = made.step.as_ref().map_or(0, Step::tries);
        let is_over = tries >= context.config.max_attempts() as usize;
        if is_over || is_failed && outcome != Outcome::Failed {
            let times = if tries == 1 { "once".to_owned() } else { format!("{tries} times") };
            return halted(format!("`{id}` was tried {times}; last outcome: {}", outcome.word()));
        }
        let tree = match tree.zip(self.trees.as_ref()) {
            Some((tree, trees)) => self.workers.tree(&tree.path, &trees.plans_in(tree)),
            None => self.workers.tree(&context.here.root, context.plans.root()),
        };
        let before = state.failures.insert(id.clone(), (outcome, tree.clone()));
        let is_same = tree.is_some() && before == Some((outcome, tree));
        is_same.then(|| {
            (
                End::Halted,
                format!(
                    "`{id}` had the same outcome twice ({}), and the last attempt changed no file outside of the plans",
                    outcome.word()
                ),
            )
        })
    }

    /// The step as its file says now. `None`: it cannot be loaded.
    fn now(&self, id: &StepId) -> Option<Step> {
        let loaded = self.context().and_then(|it| LoadQuery::step(id).load(&it)).ok()?;
        loaded.plans.step(id).cloned()
    }

    fn into_report(self, trees: Option<TreesReport>) -> Result<RunReport, Error> {
        let mut state = self.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let Halt { end, why, step } = state
            .halt
            .take()
            .unwrap_or_else(|| halt(End::Halted, "the run's threads ended without a result"));
        let now = step.as_ref().and_then(|it| self.now(it));
        let unmerged = trees.as_ref().and_then(|it| it.unmerged.as_deref());
        let hints = match unmerged {
            Some(branch) => {
                let merge = (format!("git merge {branch}"), "to merge the run's work");
                vec![merge, (format!("planwatch list {}", shell_word(&self.plan)), "to list its steps")]
            }
            None => hints::hints(self.request, &self.plan, end, (step.as_ref(), now.as_ref())),
        };
        Ok(RunReport {
            plan: self.plan.to_string(),
            end,
            why,
            step: step.map(|it| it.to_string()),
            attempts: state.attempts,
            closed: state.closed.len(),
            cost: state.cost,
            hints,
            trees,
        })
    }
}

/// Passes everything on to the surface of the run, but puts the run's `max_attempts` into the context.
impl Surface for Driver<'_> {
    fn context(&self) -> Result<Context, Error> {
        let mut context = self.surface.context()?;
        context.config.max_attempts = self.request.max_attempts.or(context.config.max_attempts);
        Ok(context)
    }

    fn elapsed(&self) -> Duration {
        self.surface.elapsed()
    }

    fn report(&self, event: &Event<'_>) {
        self.surface.report(event);
    }

    fn may_trust(&self, subject: &trust::Subject) -> bool {
        self.surface.may_trust(subject)
    }
}

/// A step that was claimed, and what was confirmed in the run's plans at that time.
struct Claimed {
    begun: Box<Begun>,
    confirmed: Vec<String>,
}

enum Next {
    Begun(Claimed),
    Wait(String),
    /// The run waits for the registry or for other machines. These are checked less often.
    WaitLong(String),
    Again,
}

const FULL: &str = "run-limit";

fn full() -> Error {
    Error::failed(FULL, "no further step is begun", "")
}

/// Whether the run's claim was ended with `--force`, so that the step's `verify` commands did not run.
fn was_forced(begun: &Begun, made: &Made) -> bool {
    let Some(step) = made.step.as_ref().filter(|it| !it.verify.is_empty()) else { return false };
    let is_it = |it: &Attempt| it.is_of_claim(&begun.claim) && it.outcome.as_deref() == Some("forced");
    step.attempts.iter().any(is_it)
}

fn fail(state: &mut Progress, error: Error) {
    state.error.get_or_insert(error);
}

fn halt(end: End, why: &str) -> Halt {
    Halt { end, why: why.to_owned(), step: None }
}

/// Whether a run of the plan `of` includes `plan`: it is the same plan, or one of the program's plans if `of` is a program.
fn is_part(plan: &Plan, of: &PlanId) -> bool {
    plan.id == *of || plan.program.as_ref() == Some(of)
}

/// The names of the steps and phases that are confirmed in the plans of a run.
fn confirmed(context: &Context, run: &PlanId, begun: &Begun) -> Vec<String> {
    let Ok(Loaded { plans, .. }) = LoadQuery::plan(run).load(context) else { return Vec::new() };
    let all = plans.live().filter(|it| is_part(it, run) || it.id == begun.step.id.plan);
    all.flat_map(|plan| {
        let phases = plan.confirmations.iter().filter_map(|it| it.phase.as_ref());
        let phases = phases.map(|it| format!("the phase {it} of `{}`", plan.id));
        let steps = plan.steps.iter().filter(|it| it.confirmed.is_some());
        phases.chain(steps.map(|it| format!("`{}`", it.id))).collect::<Vec<_>>()
    })
    .collect()
}
