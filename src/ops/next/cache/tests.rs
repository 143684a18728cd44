#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::api::config::Config;
use crate::api::daemon::DaemonClient;
use crate::disk::{PlansDir, RealDisk};
use crate::ops::claim::{ClaimRequest, claim};
use crate::ops::next::{NextRequest, next};
use crate::ops::release::{ReleaseRequest, release};
use crate::store::load::{IndexCheck, Refresh, Wanted};

fn context(home: &Path, seconds: i64) -> Context {
    let plans = PlansDir::open(Arc::new(RealDisk), &home.join("plans"), Some(&home.join("state"))).unwrap();
    let noon = Context { reading: Reading::Index, ..Context::of(plans) };
    Context { now: noon.now.plus_seconds(seconds), ..noon }
}

thread_local! {
    /// The memory of the test's daemon.
    static MEMORY: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A daemon for the plans in this directory. It brings the index up to date at each request.
struct Watching(PathBuf);

impl DaemonClient for Watching {
    fn commit(&self) -> Option<Generation> {
        let mut index = Refresh::new(Wanted::Nothing, IndexCheck::Scan).run(&context(&self.0, 0)).index?;
        index.snapshot().ok()?.generation().ok()?
    }

    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        (self.commit(), MEMORY.with_borrow(Clone::clone))
    }

    fn cache_next(&self, answer: String) {
        MEMORY.set(Some(answer));
    }
}

/// The context of a request while a daemon runs.
fn watched(home: &Path, seconds: i64) -> Context {
    let daemon = Box::new(Watching(home.to_owned()));
    Context { freshness: Freshness::Attested(daemon), ..context(home, seconds) }
}

fn read() -> Option<Cached> {
    MEMORY.with_borrow(|it| serde_json::from_str(it.as_ref()?).ok())
}

fn asked(context: &Context, most: Option<usize>) -> NextReport {
    next(context, &NextRequest { plan: None, most }).unwrap()
}

fn write(home: &Path, path: &str, text: &str) {
    let path = home.join("plans").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const STEP: &str = "---\nstatus: pending\n---\n# Step\n";

/// Calls `test` with three plans of two steps each; the second step depends on the first.
fn with_plans(test: impl FnOnce(&Path)) {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for plan in ["a", "b", "c"] {
        write(&home, &format!("{plan}/plan.md"), "# Plan\n");
        write(&home, &format!("{plan}/step-1.md"), STEP);
        write(&home, &format!("{plan}/step-2.md"), &STEP.replace("---\n#", "depends: [1]\n---\n#"));
    }
    MEMORY.take();
    test(&home);
}

/// Puts a mark into the cached answer, so that it differs from a new answer.
fn mark() {
    let mut cached = read().unwrap();
    cached.why = "cached".to_owned();
    MEMORY.set(serde_json::to_string(&cached).ok());
}

fn is_cached(context: &Context) -> bool {
    asked(context, Some(FEW)).why == "cached"
}

fn claim_first(context: &Context, lease: i64) {
    let request = ClaimRequest { lease: Some(lease), ..ClaimRequest::default() };
    assert!(claim(context, &request).unwrap().claim.is_some());
}

type Act = fn(&Path) -> Context;

/// What happens after an answer is cached, and whether the cached answer is used afterwards.
const ACTS: &[(&str, Act, bool)] = &[
    ("nothing", |home| watched(home, 0), true),
    ("some time", |home| watched(home, 300), true),
    (
        "a step is done",
        |home| {
            write(home, "b/step-1.md", "---\nstatus: done\n---\n# Step\n");
            watched(home, 1)
        },
        false,
    ),
    (
        "a text of the same length",
        |home| {
            write(home, "b/step-1.md", &STEP.replace("Step", "Stop"));
            watched(home, 1)
        },
        false,
    ),
    (
        "another plan",
        |home| {
            write(home, "d/step-1.md", STEP);
            watched(home, 1)
        },
        false,
    ),
    (
        "a plan goes",
        |home| {
            std::fs::remove_dir_all(home.join("plans/b")).unwrap();
            watched(home, 1)
        },
        false,
    ),
    (
        "a claim",
        |home| {
            claim_first(&context(home, 1), 900);
            watched(home, 2)
        },
        false,
    ),
    (
        "a claim is given back",
        |home| {
            let request =
                ReleaseRequest { ids: vec!["c:1".to_owned()], force: true, ..ReleaseRequest::default() };
            release(&context(home, 1), &request).unwrap();
            watched(home, 2)
        },
        false,
    ),
    (
        "the claim's record goes",
        |home| {
            let leases = home.join("plans/.planwatch/leases");
            let records = std::fs::read_dir(&leases).unwrap().map(|it| it.unwrap().path());
            records.filter(|it| !it.ends_with("lock")).for_each(|it| std::fs::remove_file(it).unwrap());
            watched(home, 1)
        },
        false,
    ),
    (
        "a repository is made around it",
        |home| {
            // In a repository, the records of claims are in its git directory, where all working trees share them.
            std::fs::create_dir_all(home.join(".git/objects")).unwrap();
            std::fs::write(home.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            watched(home, 1)
        },
        false,
    ),
    (
        "another release wrote it",
        |home| {
            MEMORY.with_borrow_mut(|it| *it = it.as_ref().map(|it| it.replace("reader", "reads")));
            watched(home, 1)
        },
        false,
    ),
    ("its lease is over", |home| watched(home, 400), false),
    ("long ago", |home| watched(home, HOLDS), false),
    ("the clock was set back", |home| watched(home, -1), false),
    (
        "fewer tries",
        |home| {
            let config = Config { max_attempts: Some(1), ..Config::default() };
            Context { config, ..watched(home, 1) }
        },
        false,
    ),
    (
        "own words",
        |home| {
            let text = "[words]\n\"in review\" = \"in_progress\"\n";
            let config = Config { words: Config::read("planwatch.toml", text).0.words, ..Config::default() };
            Context { config, ..watched(home, 1) }
        },
        false,
    ),
];

#[test]
fn an_answer_is_cached_until_its_inputs_change() {
    for &(name, act, is_reused) in ACTS {
        with_plans(|home| {
            let request =
                ClaimRequest { target: Some("c:1".to_owned()), lease: Some(400), ..ClaimRequest::default() };
            claim(&context(home, 0), &request).unwrap();
            assert!(!is_cached(&watched(home, 0)), "{name}");
            mark();
            assert!(is_cached(&watched(home, 0)), "{name}");
            let later = act(home);
            assert_eq!(is_cached(&later), is_reused, "{name}");
            let files = Context { reading: Reading::Files, ..context(home, 0) };
            let files = Context { now: later.now, config: later.config.clone(), ..files };
            let (answer, read) = (asked(&later, Some(FEW)).to_json(), asked(&files, None).to_json());
            assert_eq!(answer["step"], read["step"], "{name}");
            assert_eq!(answer["candidates"], read["candidates"], "{name}");
            assert!(is_reused || answer == read, "{name}");
        });
    }
}

#[test]
fn a_cached_answer_equals_the_first_one() {
    with_plans(|home| {
        let custom = "---\nstatus: pending\npriority: high\ntags: [x]\nown: {deep: [1, 2.5, null]}\nattempts:\n  - {at: 2026-01-01T00:00:00Z, by: bo, outcome: failed, notes: no}\n---\n# Step\n";
        write(home, "b/step-1.md", custom);
        (0..FEW).for_each(|n| write(home, &format!("p{n}/step-1.md"), STEP));
        let fresh = asked(&watched(home, 0), Some(FEW));
        assert_eq!(fresh.n_candidates, FEW + 3);
        let mut cached = read().unwrap().report().unwrap();
        assert_eq!(cached.to_json(), fresh.to_json());
        assert_eq!(cached.n_candidates, FEW + 3);
        // The cached answer has only the first candidates, so it is not used for a request for all of them.
        mark();
        assert_ne!(asked(&watched(home, 0), None).why, "cached");
        mark();
        assert!(is_cached(&watched(home, 0)));
        cached = asked(&watched(home, 0), Some(1));
        assert_eq!((cached.candidates.unwrap().len(), cached.n_candidates), (1, FEW + 3));
    });
}

#[test]
fn an_answer_that_depends_on_more_than_files_and_records_is_not_cached() {
    let is_there = || read().is_some();
    with_plans(|home| {
        asked(&context(home, 0), Some(FEW));
        asked(&Context { reading: Reading::Files, ..watched(home, 0) }, Some(FEW));
        asked(&Context { freshness: Freshness::Attested(Box::new(|| None)), ..context(home, 0) }, Some(FEW));
        assert!(!is_there(), "no daemon attests the index");
        let pid = Some(std::process::id());
        claim(&context(home, 0), &ClaimRequest { pid, ..ClaimRequest::default() }).unwrap();
        asked(&watched(home, 0), Some(FEW));
        assert!(!is_there(), "the claim's process may end");
    });
    with_plans(|home| {
        // A claim from another machine lapses a day after its time stamp.
        let claimed = "---\nstatus: in_progress\nclaim: {id: g1234567, by: bo, at: 2026-11-20T12:05:00Z}\n---\n# Step\n";
        write(home, "a/step-1.md", claimed);
        asked(&watched(home, 0), Some(FEW));
        assert!(!is_there(), "it lapses in five minutes");
        asked(&watched(home, 301), Some(FEW));
        assert!(is_there());
    });
}
