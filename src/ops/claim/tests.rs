//! Claims on a machine that can die before each system call, and random interleavings of claims that are compared with a
//! model.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::api::config::Config;
use crate::api::context::Reading;
use crate::disk::model::{Fault, Machine, sample};
use crate::ops::release::ReleaseRequest;
use crate::ops::update::{self, MoveRequest};
use crate::plan::transitions::Verb;
use crate::store::leases::FEW;

/// The text of a step with these lines in the front matter.
///
/// A save that loses more than half of a file is refused as half saved. The text is therefore much longer than what
/// several claims, releases and attempts add to the front matter.
macro_rules! step_text {
    ($keys:literal) => {
        concat!(
            "---\n",
            $keys,
            "---\n# One\n",
            "The first paragraph says what the step is for, and which parts of the program it changes.\n\n",
            "The second paragraph has the details: names of files, the order of the changes, and what to look out for.\n\n",
            "The third paragraph says how to check the result, which tests to run, and which output to expect.\n\n",
            "The last paragraph lists what the step leaves open, and which later steps take that up again.\n\n",
            "None of these paragraphs means anything to planwatch. They only make the file as long as a usual step.\n",
        )
    };
}

mod again;
mod between;
mod burst;
mod together;

const LEASE: i64 = 600;
const DAY: i64 = 86_400;

const STEP: &str = "---\nstatus: pending\n---\n# One\n";
const LAPSED: &str = "---\nstatus: in_progress\nclaim: {id: \"k0000001\", by: \"bob\", at: 2026-11-19T12:00:00Z}\n---\n# One\n";

fn at(seconds: i64) -> Time {
    "2026-11-21T12:00:00Z".parse::<Time>().unwrap().plus_seconds(seconds)
}

fn context(machine: &Machine, by: &str, seconds: i64) -> Context {
    Context {
        now: at(seconds),
        by: by.to_owned(),
        config: Config { lease: Some(LEASE), max_attempts: Some(1_000), ..Config::default() },
        ..Context::on_model(machine)
    }
}

fn claim_at(machine: &Machine, by: &str, seconds: i64) -> Result<ClaimReport, Error> {
    claim(&context(machine, by, seconds), &ClaimRequest::default())
}

/// Kills a claim before each of its system calls, and checks the files that remain. This is done in a plan with one step,
/// and in a plan with so many steps that records are looked up in another way.
fn each_death(step: &str, mut judge: impl FnMut(&Machine, Option<&Granted>)) {
    each_death_beside(0, step, &mut judge);
    each_death_beside(FEW, step, &mut judge);
}

fn each_death_beside(n_later: usize, step: &str, judge: &mut impl FnMut(&Machine, Option<&Granted>)) {
    let later = "---\nstatus: pending\ndepends: [1]\n---\n# Later\n";
    let later: Vec<_> = (2..n_later + 2).map(|it| (format!("/plans/p/step-{it}.md"), later)).collect();
    let mut files = vec![("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", step)];
    files.extend(later.iter().map(|(path, text)| (path.as_str(), *text)));
    let machine = Machine::with(&files);
    let mut deaths = 0;
    for call in 1.. {
        let dying = machine.dying_before(call);
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| claim_at(&dying, "ann", 0)));
        let answer = answer.unwrap_or_else(|_| panic!("the claim panics before call {call}")).ok();
        let granted = answer.and_then(|it| it.claim).filter(|_| !dying.has_died());
        judge(&dying, granted.as_ref());
        if !dying.has_died() {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 30, "{deaths}");
}

fn holds(machine: &Machine, granted: &Granted) -> bool {
    machine
        .text("/plans/p/step-1.md")
        .is_some_and(|it| it.contains(&format!("claim: {{id: \"{}\"", granted.id)))
}

/// Whether the claim has a complete record, as a reported claim has.
fn is_recorded(machine: &Machine) -> bool {
    let leases = machine.plans().own_records();
    leases.is_some_and(|it| it.all(|_| true).iter().any(|(name, _)| !name.ends_with(".new")))
}

#[track_caller]
fn dies(step: &str) {
    each_death(step, |dead, granted| {
        let after = dead.after_kill();
        match granted {
            Some(granted) => {
                assert!(holds(&after, granted));
                assert_eq!(claim_at(&after, "bob", 1).unwrap().claim, None);
            }
            None if is_recorded(&dead.after_kill()) => {
                assert_eq!(claim_at(&after, "bob", 1).unwrap().claim, None);
                assert!(claim_at(&after, "bob", LEASE + 1).unwrap().claim.is_some());
            }
            None => assert!(
                claim_at(&after, "bob", 1).unwrap().claim.is_some(),
                "{:?}",
                after.text("/plans/p/step-1.md")
            ),
        }
    });
}

#[test]
fn a_claim_killed_before_it_is_recorded_frees_the_step() {
    dies(STEP);
}

#[test]
fn a_take_over_killed_before_it_is_recorded_frees_the_step() {
    dies(LAPSED);
}

#[test]
fn a_claim_killed_while_it_replaces_an_unrecorded_one_frees_the_step() {
    let mut tried = 0;
    each_death(STEP, |dead, granted| {
        let first = dead.after_kill();
        let is_in_file = first.text("/plans/p/step-1.md").is_some_and(|it| it.contains("claim: "));
        if granted.is_some() || is_recorded(&first) || !is_in_file {
            return;
        }
        for call in 1.. {
            let dying = first.dying_before(call);
            claim_at(&dying, "bob", 1).ok();
            if !dying.has_died() {
                break;
            }
            let second = dying.after_kill();
            if !is_recorded(&second) {
                assert!(claim_at(&second, "cid", 2).unwrap().claim.is_some(), "killed before call {call}");
                tried += 1;
            }
        }
    });
    assert!(tried > 30, "{tried}");
}

#[test]
fn a_reported_claim_survives_a_power_cut_and_every_other_is_free_after_a_day() {
    // If the claim was reported, all states are checked, otherwise every fifth. `after_power_cut` returns states of three
    // kinds in turn. Five is not a multiple of three, so all kinds occur.
    let mut cuts = sample(5);
    each_death(STEP, |dead, granted| {
        for after in dead.after_power_cut().into_iter().filter(|_| granted.is_some() || cuts.takes()) {
            if let Some(granted) = granted {
                assert!(holds(&after, granted));
                assert_eq!(claim_at(&after, "bob", 1).unwrap().claim, None);
            }
            assert!(claim_at(&after, "bob", DAY + 1).unwrap().claim.is_some());
        }
    });
}

/// One event of a random sequence: the act of a worker or an editor, or the passing of time.
#[derive(Debug, Clone)]
enum Act {
    Claim {
        by: usize,
    },
    /// A worker completes the step that it last claimed, whether it still has the claim or not.
    Done {
        by: usize,
    },
    Release {
        by: usize,
    },
    Renew {
        by: usize,
    },
    /// The worker is killed, and its successor does not know the claim.
    Kill {
        by: usize,
    },
    Wait {
        seconds: i64,
    },
    /// An editor removes the claim from the file and makes the step pending.
    Checkout {
        step: usize,
    },
    ReleaseExpired,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let by = 0..4_usize;
    let act = prop_oneof![
        4 => by.clone().prop_map(|by| Act::Claim { by }),
        2 => by.clone().prop_map(|by| Act::Done { by }),
        1 => by.clone().prop_map(|by| Act::Release { by }),
        1 => by.clone().prop_map(|by| Act::Renew { by }),
        1 => by.prop_map(|by| Act::Kill { by }),
        2 => (1..LEASE).prop_map(|seconds| Act::Wait { seconds }),
        1 => (0..3_usize).prop_map(|step| Act::Checkout { step }),
        1 => Just(Act::ReleaseExpired),
    ];
    prop::collection::vec(act, 1..40)
}

/// What must be true of each step: who has it, until when, and which results were reported.
#[derive(Debug, Default)]
struct Model {
    held: HashMap<String, (String, i64)>,
    done: HashMap<String, String>,
    /// The step and the claim that each worker got last.
    hands: HashMap<usize, (String, String)>,
    results: Vec<(String, String)>,
}

struct Play {
    machine: Machine,
    model: Model,
    now: i64,
}

impl Play {
    fn new() -> Self {
        let files = ["p/step-1", "p/step-2", "p/step-3"].map(|it| format!("/plans/{it}.md"));
        let mut all = vec![("/plans/p/plan.md", "# P\n")];
        all.extend(files.iter().map(|it| (it.as_str(), STEP)));
        Self { machine: Machine::with(&all), model: Model::default(), now: 0 }
    }

    fn context(&self, by: usize) -> Context {
        context(&self.machine, &format!("worker {by}"), self.now)
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Claim { by } => self.claim(*by),
            Act::Done { by } => self.done(*by),
            Act::Release { by } => self.release(*by),
            Act::Renew { by } => self.renew(*by),
            Act::Kill { by } => drop(self.model.hands.remove(by)),
            Act::Wait { seconds } => self.now += seconds,
            Act::Checkout { step } => self.checkout(*step),
            Act::ReleaseExpired => {
                let request = ReleaseRequest { expired: true, ..ReleaseRequest::default() };
                let report = crate::ops::release::release(&self.context(0), &request).unwrap();
                for changed in &report.changes {
                    let (_, until) = self.model.held.remove(&changed.id).unwrap();
                    assert!(until <= self.now, "a live claim was released");
                }
            }
        }
    }

    fn claim(&mut self, by: usize) {
        let report = claim(&self.context(by), &ClaimRequest::default()).unwrap();
        let is_free = |it: &String| self.model.held.get(it).is_none_or(|(_, until)| *until <= self.now);
        let open = ["p:1", "p:2", "p:3"]
            .map(str::to_owned)
            .into_iter()
            .filter(|it| !self.model.done.contains_key(it));
        let free: Vec<_> = open.filter(is_free).collect();
        let Some(granted) = report.claim else {
            assert!(free.is_empty(), "{free:?} are free and were not claimed");
            return;
        };
        let step = report.step.unwrap()["id"].as_str().unwrap().to_owned();
        assert!(free.contains(&step), "{step} has two live owners");
        self.model.held.insert(step.clone(), (granted.id.clone(), self.now + LEASE));
        self.model.hands.insert(by, (step, granted.id));
    }

    /// Whether the worker's claim is the one in the file.
    fn is_in_file(&self, step: &str, claim: &str) -> bool {
        let path = format!("/plans/p/step-{}.md", &step[2..]);
        self.machine.text(&path).is_some_and(|it| it.contains(&format!("claim: {{id: \"{claim}\"")))
    }

    fn done(&mut self, by: usize) {
        let Some((step, id)) = self.model.hands.get(&by).cloned() else { return };
        let result = format!("result {}", self.model.results.len());
        let request = MoveRequest {
            is_signed: false,
            verb: Verb::Done,
            ids: vec![step.clone()],
            message: Some(result.clone()),
            by: None,
            claim: Some(id.clone()),
            force: false,
            mode: Mode::Write,
        };
        let is_in_file = self.is_in_file(&step, &id);
        let answer = update::move_steps(&self.context(by), &request);
        match answer {
            Ok(_) => {
                assert!(is_in_file, "a late result completed the step");
                self.model.held.remove(&step);
                assert_eq!(self.model.done.insert(step.clone(), id), None, "done twice");
                self.model.results.push((step, result));
            }
            Err(error) => {
                assert_eq!(error.code(), "claim-lost");
                assert!(!is_in_file, "the owner was refused");
                // Only the first late result of a claim is recorded, as a note. So the worker forgets the claim.
                self.model.hands.remove(&by);
                self.model.results.push((step, result));
            }
        }
    }

    fn release(&mut self, by: usize) {
        let Some((step, id)) =
            self.model.hands.get(&by).cloned().filter(|(step, id)| self.is_in_file(step, id))
        else {
            return;
        };
        let request =
            ReleaseRequest { ids: vec![step.clone()], claim: Some(id), ..ReleaseRequest::default() };
        crate::ops::release::release(&self.context(by), &request).unwrap();
        self.model.held.remove(&step);
        self.model.hands.remove(&by);
    }

    fn renew(&mut self, by: usize) {
        let Some((step, id)) = self.model.hands.get(&by).cloned() else { return };
        let is_in_file = self.is_in_file(&step, &id);
        let request = RenewRequest { claim: id.clone(), ..RenewRequest::default() };
        match renew(&self.context(by), &request) {
            Ok(_) => {
                assert!(is_in_file);
                self.model.held.insert(step, (id, self.now + LEASE));
            }
            Err(error) => assert_eq!((error.code(), is_in_file), ("claim-lost", false)),
        }
    }

    fn checkout(&mut self, step: usize) {
        let id = format!("p:{}", step + 1);
        if self.model.done.contains_key(&id) {
            return;
        }
        let path = std::path::PathBuf::from(format!("p/step-{}.md", step + 1));
        let plans = self.machine.plans();
        let mut locked = plans.lock(&mut || {}).unwrap();
        let mut edit = |bytes: &[u8], _: &[Vec<u8>]| {
            let text = String::from_utf8_lossy(bytes);
            let lines = text.lines().filter(|it| !it.starts_with("claim:"));
            let text = lines.map(|it| format!("{it}\n")).collect::<String>();
            Some(text.replace("in_progress", "pending").into_bytes())
        };
        locked.change(&path, &mut edit).unwrap();
    }

    fn check_results(&self) {
        for (step, result) in &self.model.results {
            let text = self.machine.text(&format!("/plans/p/step-{}.md", &step[2..])).unwrap();
            assert_eq!(
                text.matches(&format!("{result}\n")).count() + text.matches(&format!("{result}\"")).count(),
                1,
                "{result}: {text}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_gives_a_step_two_live_owners_or_loses_a_result(acts in acts()) {
        let mut play = Play::new();
        for act in &acts {
            play.act(act);
        }
        play.check_results();
    }
}

#[test]
fn claim_ids_have_the_documented_form() {
    let machine = Machine::with(&[("/plans/p/plan.md", "# P\n")]);
    let context = context(&machine, "ann", 0);
    for _ in 0..100 {
        let id = fresh_id(&context).unwrap();
        assert!(id.len() == 8 && ('g'..='z').contains(&id.chars().next().unwrap()), "{id}");
        assert!(id[1..].chars().all(|it| it.is_ascii_hexdigit() && !it.is_ascii_uppercase()), "{id}");
    }
}

#[test]
fn a_claim_without_a_record_is_named_by_its_error_and_does_not_hold() {
    let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", STEP)]);
    let mut named = 0;
    for call in 1..300 {
        let failing = machine.failing_at(call, Fault::Full);
        let Err(Error::Failed { code: "no-space", message, .. }) = claim_at(&failing, "ann", 0) else {
            continue;
        };
        let text = failing.text("/plans/p/step-1.md").unwrap();
        let id = text.split("claim: {id: \"").nth(1).map(|it| &it[..8]);
        assert_eq!(message.contains("is already in the file"), id.is_some(), "{call}: {message}");
        if let Some(id) = id {
            assert!(message.contains(id), "{call}: {message}");
            assert!(claim_at(&failing, "bob", 1).unwrap().claim.is_some(), "{call}");
            named += 1;
        }
    }
    assert!(named > 0);
}
