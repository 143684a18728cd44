//! Delegated claims, compared with what each caller would have claimed on its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::between::{STEPS, between, happens};
use super::*;
use crate::api::daemon::{ClaimReply, ClaimedStep, DaemonClient, DelegatedClaim, Freshness};
use crate::disk::Stat;
use crate::index::Generation;
use crate::store::claims::candidates;
use crate::store::claims::daemon_queue::{QueueCache, Since};

fn plans() -> Machine {
    let text =
        |n: usize| format!(step_text!("status: pending\npriority: {}\n"), ["high", "low", "medium"][n % 3]);
    let mut files = vec![("/plans/p/plan.md".to_owned(), "# P\n".to_owned())];
    files.push(("/plans/q/plan.md".to_owned(), "# Q\n".to_owned()));
    for (n, id) in STEPS.iter().enumerate() {
        files.push((format!("/plans/{}.md", id.replace(':', "/step-")), text(n)));
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Machine::with(&files)
}

fn delegated(context: &Context) -> DelegatedClaim {
    DelegatedClaim::of(context, &ClaimRequest::default()).unwrap()
}

/// Makes claims while it is not known which plans changed, so that no queue is cached.
fn together(context: &Context, delegated_claims: &[DelegatedClaim]) -> Vec<Option<ClaimedStep>> {
    ran(context, delegated_claims, &mut QueueCache::default(), &|| None)
}

fn ran(
    context: &Context,
    delegated_claims: &[DelegatedClaim],
    queue_cache: &mut QueueCache,
    since: Since<'_>,
) -> Vec<Option<ClaimedStep>> {
    let claimed = |it| match it {
        ClaimReply::Claimed(claimed) => Some(claimed),
        ClaimReply::Nothing => None,
        ClaimReply::Unheard(_) => panic!("every client gets its reply"),
    };
    claim_together(context, delegated_claims, queue_cache, since, &|_| true)
        .into_iter()
        .map(claimed)
        .collect()
}

fn id_of(claimed: &ClaimedStep) -> String {
    claimed.step["id"].as_str().unwrap().to_owned()
}

fn paths() -> impl Iterator<Item = String> {
    STEPS.iter().map(|it| it.replace(':', "/step-")).chain(["p/plan".into(), "q/plan".into()])
}

fn texts(machine: &Machine) -> BTreeMap<String, Option<String>> {
    paths().map(|it| (it.clone(), machine.text(&format!("/plans/{it}.md")))).collect()
}

/// What the daemon's watcher sees: a save changes the stamp even if the text stays the same.
fn stamps(machine: &Machine) -> BTreeMap<String, Option<Stat>> {
    let plans = machine.plans();
    let stamp = |it: &String| plans.disk().lstat(&plans.root().join(format!("{it}.md"))).ok();
    paths().map(|it| (it.clone(), stamp(&it))).collect()
}

#[test]
fn simultaneous_claims_get_different_steps_and_are_undone_separately() {
    let machine = plans();
    let before = texts(&machine);
    let ann = context(&machine, "ann", 0);
    let delegated_claims: Vec<_> = (0..5).map(|_| delegated(&ann)).collect();
    let claimed = together(&ann, &delegated_claims);
    let mut ids = BTreeSet::new();
    for (claimed, delegated) in claimed.iter().zip(&delegated_claims) {
        let claimed = claimed.as_ref().unwrap();
        assert_eq!(claimed.claim.id, delegated.claim);
        assert_eq!(claimed.claim.until, Some(at(LEASE)));
        let path = claimed.step["path"].as_str().unwrap();
        assert!(machine.text(&format!("/{path}")).unwrap().contains(&delegated.claim), "{path}");
        assert!(claimed.diff.contains(&delegated.claim) && claimed.diff.matches("\n+++ ").count() == 1);
        ids.insert(id_of(claimed));
    }
    assert_eq!(ids.len(), 5);
    let plans = ann.plans;
    for left in (0..5).rev() {
        plans.lock(&mut || {}).unwrap().undo().unwrap();
        let n_claimed = texts(&machine).values().flatten().filter(|it| it.contains("claim:")).count();
        assert_eq!(n_claimed, left);
    }
    assert_eq!(texts(&machine), before);
}

#[track_caller]
fn check_not_begun(change: impl FnOnce(&mut DelegatedClaim)) {
    let machine = plans();
    let (before, ann) = (texts(&machine), context(&machine, "ann", 0));
    let mut delegated_claims = [delegated(&ann)];
    change(&mut delegated_claims[0]);
    assert_eq!(together(&ann, &delegated_claims), [None]);
    assert_eq!(texts(&machine), before);
}

#[test]
fn late_or_foreign_claims_are_refused() {
    check_not_begun(|it| it.begin_before = 0);
    check_not_begun(|it| it.environment.clear());
    check_not_begun(|it| it.at = at(-3));
    check_not_begun(|it| it.at = at(3));
}

#[test]
fn no_step_is_claimed_if_none_is_ready() {
    let machine = Machine::with(&[("/plans/p/plan.md", "# P\n")]);
    let ann = context(&machine, "ann", 0);
    assert_eq!(together(&ann, &[delegated(&ann), delegated(&ann)]), [None, None]);
}

/// A daemon that claims for clients; its replies may be lost.
struct Claiming {
    machine: Machine,
    begins: bool,
    is_heard: bool,
}

impl DaemonClient for Claiming {
    fn commit(&self) -> Option<Generation> {
        None
    }

    fn claim(&self, delegated: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        let delegated = delegated().unwrap();
        let mut claimed = None;
        if self.begins {
            let context = Context { reading: Reading::Index, ..context(&self.machine, "daemon", 0) };
            claimed = together(&context, std::slice::from_ref(&delegated)).remove(0);
        }
        match claimed {
            Some(claimed) if self.is_heard => ClaimReply::Claimed(claimed),
            _ if self.is_heard => ClaimReply::Nothing,
            _ => ClaimReply::Unheard(delegated),
        }
    }
}

#[track_caller]
fn check_one_claim(begins: bool, is_heard: bool) {
    let machine = plans();
    let daemon = Claiming { machine: machine.another_process(), begins, is_heard };
    let freshness = Freshness::Attested(Box::new(daemon));
    let ann = Context { reading: Reading::Index, freshness, ..context(&machine, "ann", 0) };
    let report = claim(&ann, &ClaimRequest { by: Some("bo".to_owned()), ..ClaimRequest::default() }).unwrap();
    let granted = report.claim.unwrap();
    assert_eq!(granted.until.map(Time::whole_seconds), Some(at(LEASE)));
    let claimed: Vec<_> =
        texts(&machine).into_values().flatten().filter(|it| it.contains("claim:")).collect();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert!(claimed[0].contains(&format!("{{id: \"{}\", by: \"bo\"", granted.id)), "{claimed:?}");
    assert_eq!(report.step.unwrap()["id"], "p:1");
}

#[test]
fn a_delegated_claim_is_made_once_even_if_its_reply_is_lost() {
    for begins in [true, false] {
        for is_heard in [true, false] {
            check_one_claim(begins, is_heard);
        }
    }
}

#[test]
fn a_request_that_cannot_be_delegated_is_made_directly() {
    let machine = plans();
    let alone = |request: ClaimRequest, reading| {
        let daemon = |_: &dyn Fn() -> Option<DelegatedClaim>| panic!("the daemon is asked");
        let freshness = Freshness::Attested(Box::new(Asking(daemon)));
        let ann = Context { reading, freshness, ..context(&machine, "ann", 0) };
        claim(&ann, &request).unwrap();
    };
    let usual = ClaimRequest::default;
    alone(usual(), Reading::Files);
    alone(ClaimRequest { force: true, ..usual() }, Reading::Index);
    alone(ClaimRequest { mode: Mode::DryRun, ..usual() }, Reading::Index);
    alone(ClaimRequest { target: Some("p".to_owned()), ..usual() }, Reading::Index);
}

struct Asking<F>(F);

impl<F: Fn(&dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply + Send + Sync> DaemonClient for Asking<F> {
    fn commit(&self) -> Option<Generation> {
        None
    }

    fn claim(&self, delegated: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        (self.0)(delegated)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_cached_queue_gives_the_same_steps_as_a_fresh_load(
        script in prop::collection::vec((between(), 1..4_usize), 1..12)
    ) {
        let (mut machine, mut seconds, mut queue_cache) = (plans(), 0, QueueCache::default());
        let known = Mutex::new(stamps(&machine));
        for (it, n) in &script {
            happens(&mut machine, &mut seconds, it);
            let ann = Context { reading: Reading::Index, ..context(&machine, "ann", seconds) };
            let since = || {
                let (now, mut known) = (stamps(&machine), known.lock().unwrap());
                let changed = now.iter().filter(|(path, stamp)| known.get(*path) != Some(*stamp));
                let names = changed.map(|(path, _)| path.split('/').next().unwrap().to_owned()).collect();
                *known = now;
                Some(names)
            };
            let expected = candidates::look(&ann, None, &HashSet::new()).unwrap();
            let expected: BTreeSet<_> = expected.iter().take(*n).map(|it| it.step.id.to_string()).collect();
            let delegated_claims: Vec<_> = (0..*n).map(|_| delegated(&ann)).collect();
            let claimed = ran(&ann, &delegated_claims, &mut queue_cache, &since);
            let claimed: BTreeSet<_> = claimed.iter().flatten().map(id_of).collect();
            prop_assert_eq!(claimed, expected, "{:?}", it);
        }
    }
}

#[test]
fn a_queue_stays_cached_while_only_claims_change_its_plans() {
    let machine = plans();
    let ann = context(&machine, "ann", 0);
    let since = || Some(BTreeSet::from(["p".to_owned(), "q".to_owned()]));
    let mut queue_cache = QueueCache::default();
    let mut queue =
        || queue_cache.queue(&ann, "x", &since).map(|(queue, is_cached)| (queue.len(), is_cached));
    assert_eq!(queue(), Some((6, false)));
    assert_eq!(queue(), Some((6, true)));
    // The daemon's own claims do not invalidate the queue.
    let claimed = ran(&ann, &[delegated(&ann), delegated(&ann)], &mut queue_cache, &since);
    assert_eq!(claimed.iter().flatten().count(), 2);
    let environment = delegated(&ann).environment;
    let cached =
        queue_cache.queue(&ann, &environment, &since).map(|(queue, is_cached)| (queue.len(), is_cached));
    assert_eq!(cached, Some((4, true)));
    // A claim with a short lease invalidates it.
    let short = ClaimRequest { lease: Some(5), ..ClaimRequest::default() };
    let short = DelegatedClaim::of(&ann, &short).unwrap();
    assert!(ran(&ann, &[short], &mut queue_cache, &since)[0].is_some());
    let cached =
        queue_cache.queue(&ann, &environment, &since).map(|(queue, is_cached)| (queue.len(), is_cached));
    assert_eq!(cached, Some((3, false)));
    // Another environment does not share the queue.
    assert_eq!(queue_cache.queue(&ann, "y", &since).map(|it| it.1), Some(false));
    assert!(queue_cache.queue(&ann, "y", &|| None).is_none());
    assert_eq!(queue_cache.queue(&ann, "y", &since).map(|it| it.1), Some(false));
}

#[test]
fn a_newer_modification_time_invalidates_the_queue() {
    let machine = Machine::with(&[("/plans/a/step-1.md", STEP), ("/plans/b/step-1.md", STEP)]);
    let ann = Context { reading: Reading::Index, ..context(&machine, "ann", 0) };
    let since = || Some(BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    let mut queue_cache = QueueCache::default();
    let mut first = || {
        let (queue, _) = queue_cache.queue(&ann, "x", &since).unwrap();
        let looked = candidates::look(&ann, None, &HashSet::new()).unwrap();
        assert_eq!(queue[0].step.id, looked[0].step.id);
        queue[0].step.id.to_string()
    };
    let older = first();
    // Writing the same text again makes the file newer. Of two steps without a date, the one with the older file comes
    // first.
    let path = ann.plans.root().join(older.replace(":1", "/step-1.md"));
    let file = ann.plans.disk().open(&path, crate::disk::Open::InPlace).unwrap();
    file.write(STEP.as_bytes()).unwrap();
    assert_ne!(first(), older);
}

#[test]
fn no_claim_is_made_for_a_disconnected_client() {
    let machine = plans();
    let (before, ann) = (texts(&machine), context(&machine, "ann", 0));
    let delegated_claims = [delegated(&ann), delegated(&ann)];
    let is_there = |it: &DelegatedClaim| it.claim == delegated_claims[1].claim;
    let ran = claim_together(&ann, &delegated_claims, &mut QueueCache::default(), &|| None, &is_there);
    assert!(matches!(ran[..], [ClaimReply::Nothing, ClaimReply::Claimed(_)]), "{ran:?}");
    let now = texts(&machine);
    assert_eq!(now.iter().zip(&before).filter(|(now, before)| now != before).count(), 1);
}
