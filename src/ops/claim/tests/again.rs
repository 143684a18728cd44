//! A claim that loses a race searches again, so that its answer is consistent with the plans.

use super::*;
use crate::disk::model::When;

const SECOND: &str = "---\nstatus: pending\ndepends: [1]\n---\n# Two\n";

/// What another process does.
#[derive(Debug, Clone, Copy)]
enum Other {
    Claims,
    Completes,
    Releases,
}

impl Other {
    fn acts(self, machine: &Machine, step: &str) {
        let bob = context(machine, "bob", 0);
        let ids = vec![step.to_owned()];
        match self {
            Self::Claims => {
                let named = ClaimRequest { target: Some(step.to_owned()), ..ClaimRequest::default() };
                claim(&bob, &named).ok();
            }
            Self::Completes => {
                let (verb, mode) = (Verb::Done, Mode::Write);
                let request = MoveRequest {
                    is_signed: false,
                    verb,
                    ids,
                    message: None,
                    by: None,
                    claim: None,
                    force: true,
                    mode,
                };
                update::move_steps(&bob, &request).ok();
            }
            Self::Releases => {
                let request = ReleaseRequest { ids, ..ReleaseRequest::default() };
                crate::ops::release::release(&bob, &request).ok();
            }
        }
    }
}

/// Makes ann's claim while another worker acts at the moment `when`, and returns the report.
fn claimed(machine: &Machine, when: When, act: impl Fn(&Machine) + Send + Sync + 'static) -> ClaimReport {
    // The state directory is created beforehand, because its creation needs a lock that the model does not have.
    machine.plans().made_runtime_dir().unwrap();
    let other = machine.another_process();
    let plans = machine.meddled_plans(when, move || act(&other));
    claim(&Context { plans, ..context(machine, "ann", 0) }, &ClaimRequest::default()).unwrap()
}

#[test]
fn a_claim_takes_a_remaining_step_if_others_act_before_the_lock() {
    for (other, second) in [(Other::Claims, STEP), (Other::Completes, STEP), (Other::Completes, SECOND)] {
        let mut claimed_steps = HashSet::new();
        for call in 1..200 {
            let files =
                [("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", STEP), ("/plans/p/step-2.md", second)];
            let machine = Machine::with(&files);
            let report = claimed(&machine, When::Call(call), move |machine| other.acts(machine, "p:1"));
            let Some(step) = report.step else { panic!("{other:?} before call {call}: {}", report.why) };
            claimed_steps.insert(step["id"].to_string());
        }
        assert_eq!(
            claimed_steps.len(),
            2,
            "{other:?} acts before the search, between search and lock, and too late"
        );
    }
}

#[test]
fn a_step_released_during_the_search_is_claimed_or_missed_consistently() {
    let mut states = HashSet::new();
    for call in 1..200 {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", STEP)]);
        Other::Claims.acts(&machine, "p:1");
        let report = claimed(&machine, When::Call(call), |machine| Other::Releases.acts(machine, "p:1"));
        assert_eq!(report.claim.is_some(), report.state == "next", "before call {call}: {}", report.why);
        states.insert(report.state);
    }
    assert_eq!(states.len(), 2, "{states:?}");
}

#[test]
fn a_claim_that_loses_every_race_searches_again_under_the_lock() {
    let mut files = vec![("/plans/p/plan.md".to_owned(), "# P\n".to_owned())];
    for n in 1..10 {
        let depends = if n > 1 { format!("depends: [{}]\n", n - 1) } else { String::new() };
        files
            .push((format!("/plans/p/step-{n}.md"), format!("---\nstatus: pending\n{depends}---\n# Step\n")));
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let machine = Machine::with(&files);
    // Each step that ann finds ready is done before she has the lock.
    let next = std::sync::atomic::AtomicU64::new(1);
    let report = claimed(&machine, When::EachLock, move |machine| {
        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Other::Completes.acts(machine, &format!("p:{n}"));
    });
    assert!(report.claim.is_some(), "{}", report.why);
}
