#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::disk::{PlansDir, Process, RealDisk};
use crate::ops::release::{ReleaseRequest, release};
use crate::ops::run::{Ended, ExitKind, Job, WorkerEvent};

/// The surface of a run of the plans in this directory. It reports nothing.
struct Silent<'a>(&'a Path);

impl Surface for Silent<'_> {
    fn context(&self) -> Result<Context, Error> {
        let (plans, state) = (self.0.join("plans"), self.0.join("state"));
        Ok(Context::of(PlansDir::open(Arc::new(RealDisk), &plans, Some(&state))?))
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn report(&self, _event: &Event<'_>) {}

    fn may_trust(&self, _subject: &trust::Subject) -> bool {
        false
    }
}

/// Its processes end at once, without a report.
struct Idle;

impl Workers for Idle {
    fn work(&self, _job: &Job<'_>, _on_event: &dyn Fn(WorkerEvent<'_>)) -> Ended {
        Ended { how: ExitKind::Exited, exit_code: Some(0), output: Vec::new() }
    }

    fn end_left(&self, _claim: &str, _leader: Option<&Process>, _log: Option<&File>) {}

    fn is_stopped(&self) -> bool {
        false
    }

    fn tree(&self, _root: &Path, _without: &Path) -> Option<String> {
        None
    }
}

fn request() -> RunRequest {
    let agent = agents::Agent { name: "bot".to_owned(), ..agents::of_line("true") };
    RunRequest {
        plan: "p".to_owned(),
        agent,
        by: None,
        jobs: 2,
        max_steps: None,
        max_attempts: None,
        timeout: None,
        idle: None,
        max_time: None,
        budget: None,
        trust_hashes: Vec::new(),
        environment: Vec::new(),
        process: None,
        commits: false,
        has_worktrees: false,
        keeps_worktrees: false,
    }
}

/// Calls `test` with a run of a plan whose steps may change the same files.
fn with_driver(n_steps: usize, test: impl FnOnce(&Driver<'_>)) {
    let home = tempfile::tempdir().unwrap();
    let plan = home.path().join("plans/p");
    std::fs::create_dir_all(&plan).unwrap();
    for n in 1..=n_steps {
        std::fs::write(plan.join(format!("step-{n}.md")), "# Step\n").unwrap();
    }
    let request = request();
    test(&Driver {
        request: &request,
        trees: None,
        surface: &Silent(home.path()),
        workers: &Idle,
        plan: PlanId::new("p"),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
}

fn is_pending(driver: &Driver<'_>, claimed: &Claimed) -> bool {
    driver.now(&claimed.begun.step.id).is_some_and(|it| it.status.is(StepStatus::Pending))
}

fn claim(driver: &Driver<'_>) -> Next {
    driver.claim(&mut driver.lock()).unwrap()
}

#[test]
fn no_step_is_claimed_until_it_is_known_whether_a_result_halts_the_run() {
    with_driver(2, |driver| {
        let Next::Begun(claimed) = claim(driver) else { panic!("both steps are ready") };
        let made = driver.attempt(&claimed);
        assert!(is_pending(driver, &claimed), "the result is written");
        assert!(matches!(claim(driver), Next::Wait(_)), "the result may halt the run");
        driver.end_attempt(&claimed, made);
        assert!(matches!(claim(driver), Next::Begun(_)));
    });
}

#[test]
fn a_step_is_not_begun_again_while_its_process_runs() {
    with_driver(1, |driver| {
        let Next::Begun(claimed) = claim(driver) else { panic!("the step is ready") };
        let (ids, claim_id) = (vec![claimed.begun.step.id.to_string()], Some(claimed.begun.claim.clone()));
        let request = ReleaseRequest { ids, claim: claim_id, ..ReleaseRequest::default() };
        release(&driver.context().unwrap(), &request).unwrap();
        assert!(is_pending(driver, &claimed));
        assert!(matches!(claim(driver), Next::Wait(_)));
    });
}
