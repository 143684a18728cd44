use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::plan::binary::{decode, encode};
use crate::plan::claims::{Claims, HeldClaim, Holding, Lapse};
use crate::plan::id::read_step_id;
use crate::plan::ranges::StepRange;
use crate::plan::read::{self, Bodies, Content, PlanSources, Source};
use crate::plan::summary::{PlanSummaries, PlanSummary, StoredSummary};
use crate::plan::words::Words;

const NOW: &str = "2026-11-21T12:00:00Z";

fn now() -> Time {
    NOW.parse().expect("a time")
}

fn source(path: String, text: &str) -> Source {
    let modified = "2026-11-01".parse().expect("a time");
    Source { path, content: Ok(Content { bytes: text.into(), etag: "e".to_owned(), modified }) }
}

/// Makes a plan. Each step is given as `number status [depends]` or as `number status key: value`.
fn plan(id: &str, head: &str, steps: &[&str]) -> Plan {
    let step = |line: &&str| {
        let mut words = line.split(' ');
        let (number, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rest = words.collect::<Vec<_>>().join(" ");
        let more = if rest.contains(':') && !rest.starts_with('[') {
            rest
        } else {
            format!("depends: [{}]", rest.trim_matches(['[', ']']))
        };
        let text = format!("---\nstatus: {status}\n{more}\n---\n");
        (number.parse().expect("a number"), source(format!("{id}/step-{number}.md"), &text))
    };
    let plan = Some(source(format!("{id}/plan.md"), &format!("---\n{head}\n---\n")));
    let sources = PlanSources { plan, steps: steps.iter().map(step).collect(), ..PlanSources::default() };
    read::read_plan(&PlanId::new(id), false, &sources, &Words::default(), Bodies::Drop)
}

#[track_caller]
fn check(head: &str, steps: &[&str], state: State, expected: &str) {
    let plans = Plans::judged(vec![plan("p", head, steps)]);
    let plan = plans.iter().next().expect("one plan");
    let found = next(&plans, plan, now());
    let what = found.step.map_or_else(|| found.why.clone(), |it| it.id.number.to_string());
    assert_eq!((found.state, what.as_str()), (state, expected));
}

#[test]
fn the_lowest_numbered_ready_step_is_next() {
    check("status: active", &["1 completed", "2 pending [1]", "3 pending"], State::Next, "2");
    check("status: active", &["1 pending [2]", "2 pending"], State::Next, "2");
    check("status: active", &["1 completed", "1.5 pending [1]", "2 pending"], State::Next, "1.5");
    check("status: active", &["1 skipped", "2 pending [1]"], State::Next, "2");
    check("order: sequential", &["1 pending", "2 pending"], State::Next, "1");
    check("order: sequential", &["1 in_progress", "2 pending"], State::Waiting, "step 1 is in progress");
}

#[test]
fn nothing_ready_has_a_state_and_a_reason() {
    check("status: active", &[], State::Empty, "the plan has no steps");
    check(
        "status: active",
        &["1 completed", "2 skipped"],
        State::Complete,
        "all steps are completed or skipped",
    );
    check("status: draft", &["1 pending"], State::Draft, "the plan is a draft");
    check("status: abandoned", &["1 pending"], State::Abandoned, "the plan is abandoned");
    check("status: completed", &["1 pending"], State::Complete, "the plan is completed");
    check("status: active", &["1 failed", "2 pending [1]"], State::Blocked, "step 1 has failed");
    check("status: active", &["1 pending [9]"], State::Blocked, "step 1 has the problem dependency-missing");
    check(
        "status: active",
        &["1 pending [2]", "2 pending [1]"],
        State::Blocked,
        "step 1 has the problem dependency-cycle; step 2 has the problem dependency-cycle",
    );
    check(
        "order: sequential",
        &["1 pending [2]", "2 pending"],
        State::Blocked,
        "step 1 has the problem dependency-cycle; step 2 has the problem dependency-cycle",
    );
    check(
        "status: active",
        &["1 pending confirm: required"],
        State::Blocked,
        "step 1 waits for a confirmation",
    );
    check("confirm_phases: [x]", &["1 pending phase: x"], State::Blocked, "phase x waits for a confirmation");
    check("status: nope", &["1 pending"], State::Blocked, "plan.md has an error; `check` names it");
    check("status: nope", &[], State::Blocked, "plan.md has an error; `check` names it");
}

#[test]
fn confirmations_open_their_gates() {
    check("status: active", &["1 pending confirm: required\nconfirmed: {by: ann}"], State::Next, "1");
    check(
        "confirm_phases: [x]\nconfirmations:\n  - {phase: x, by: ann}",
        &["1 pending phase: x"],
        State::Next,
        "1",
    );
    check(
        "confirmations:\n  - {phase: x, by: ann}",
        &["1 pending phase: x\nconfirm: required"],
        State::Next,
        "1",
    );
    check(
        "status: active",
        &["1 pending type: user_validation"],
        State::Blocked,
        "step 1 waits for a confirmation",
    );
}

#[test]
fn a_claim_lapses_after_a_day() {
    check(
        "status: active",
        &["1 in_progress claim: {id: h1234567, by: ann, at: 2026-11-21T11:00:00Z}"],
        State::Waiting,
        "step 1 (ann) is in progress",
    );
    check(
        "status: active",
        &["1 in_progress claim: {id: h1234567, by: ann, at: 2026-11-20T11:00:00Z}"],
        State::Next,
        "1",
    );
    check("status: active", &["1 in_progress"], State::Waiting, "step 1 is in progress");
    // Step 2 depends on a blocked step. Its claim has lapsed in the first case, and is in force in the second.
    let claims = ["2026-11-20", "2026-11-21"].map(|day| {
        format!("2 in_progress depends: [1]\nclaim: {{id: h1234567, by: ann, at: {day}T11:00:00Z}}")
    });
    check("status: active", &["1 blocked", &claims[0]], State::Blocked, "step 1 is blocked");
    check("status: active", &["1 blocked", &claims[1]], State::Waiting, "step 2 (ann) is in progress");
}

#[test]
fn dependencies_cross_plans() {
    let of = |status: &str| {
        let plans = Plans::judged(vec![
            plan("a", "status: active", &[&format!("1 {status}")]),
            plan("b", "status: active", &["1 pending [a:1]"]),
        ]);
        let b = plans.get(&PlanId::new("b")).expect("it is there");
        let found = next(&plans, b, now());
        (found.state, found.why)
    };
    assert_eq!(of("completed").0, State::Next);
    assert_eq!(of("pending"), (State::Blocked, "step 1 waits for a:1".to_owned()));
}

#[test]
fn a_plan_counts_as_completed_after_its_last_step_without_a_write() {
    let plans = Plans::new(vec![plan("p", "status: active", &["1 completed"])]);
    let plan = plans.iter().next().expect("one plan");
    let (status, source) = plan.shown_status();
    assert_eq!((status.word(), source), ("completed", crate::plan::model::StatusSource::Steps));
}

#[test]
fn candidates_come_by_priority_then_by_how_many_wait() {
    let plans = Plans::judged(vec![
        plan("few", "status: active", &["1 pending", "2 pending [1]"]),
        plan("many", "status: active", &["1 pending", "2 pending [1]", "3 pending [2]"]),
        plan("in-order", "order: sequential", &["1 pending", "2 pending", "3 pending", "4 pending"]),
        plan("urgent", "priority: critical", &["1 pending"]),
        plan("draft", "status: draft", &["1 pending"]),
        plan("own", "status: active", &["1 pending priority: high"]),
    ]);
    let order: Vec<_> = candidates(&plans, now()).iter().map(|it| it.plan.id.to_string()).collect();
    assert_eq!(order, ["urgent", "own", "in-order", "many", "few"]);
}

#[test]
fn in_turn_is_the_order_in_which_next_names_steps_while_earlier_ones_are_in_progress() {
    let with = |taken: &[String]| {
        let status = |id: &str| if taken.iter().any(|it| it == id) { "in_progress" } else { "pending" };
        let b = [
            format!("1 {} priority: high", status("b:1")),
            format!("2 {} priority: low", status("b:2")),
            format!("3 {} priority: critical", status("b:3")),
            "4 pending [1]".to_owned(),
        ];
        let many =
            |name: &str| (1..=3).map(|it| format!("{it} {}", status(&format!("{name}:{it}")))).collect();
        let of = |name: &str, front: &str, steps: Vec<String>| {
            plan(name, front, &steps.iter().map(String::as_str).collect::<Vec<_>>())
        };
        Plans::judged(vec![
            of("a", "status: active", many("a")),
            of("b", "status: active", b.to_vec()),
            of("c", "priority: high\norder: sequential", many("c")),
            of("d", "status: draft", many("d")),
        ])
    };
    let mut taken = Vec::new();
    while let Some(first) = candidates(&with(&taken), now()).first().map(|it| it.step) {
        taken.push(first.id.to_string());
    }
    let plans = with(&[]);
    let in_turn: Vec<_> = in_turn(&plans, now(), |_| true).map(|it| it.step.id.to_string()).collect();
    assert_eq!(in_turn, taken);
    assert_eq!(taken, ["c:1", "b:1", "a:1", "a:2", "a:3", "b:2", "b:3"]);
}

#[test]
fn a_long_chain_and_a_long_cycle_are_judged_without_recursion() {
    let n = 20_000;
    let chain: Vec<_> =
        (1..=n).map(|it| format!("{it} pending [{}]", if it == 1 { n } else { it - 1 })).collect();
    let plans = Plans::judged(vec![plan(
        "p",
        "status: active",
        &chain.iter().map(String::as_str).collect::<Vec<_>>(),
    )]);
    let plan = plans.iter().next().expect("one plan");
    assert!(plan.steps.iter().all(Step::is_faulty));
}

fn held(claim: &str, lapse: Option<Lapse>, holding: Holding) -> HeldClaim {
    HeldClaim {
        claim: claim.to_owned(),
        by: Some("bob".to_owned()),
        at: None,
        lapse,
        holding,
        until: None,
        log: None,
    }
}

/// Checks the state that `next` reports and the number of problems, for one step and the records of its claims.
#[track_caller]
fn check_held(step: &str, held: &[HeldClaim], state: State, problems: usize) {
    let mut claims = Claims::default();
    for it in held {
        let id = read_step_id("p:1").expect("a step's id");
        claims.add(id, it.clone());
    }
    let plans = Plans::judged(vec![plan("p", "status: active", &[step])]).with_claims(claims);
    // A second call changes nothing.
    let again = plans.claims().clone();
    let plans = plans.with_claims(again);
    let plan = plans.iter().next().expect("one plan");
    assert_eq!(next(&plans, plan, now()).state, state, "{step} {held:?}");
    assert_eq!(plan.steps[0].problems.len(), problems, "{:?}", plan.steps[0].problems);
}

#[test]
fn the_record_of_a_claim_decides_whether_it_holds() {
    use Holding::Here;
    const OLD: &str = "1 in_progress claim: {id: \"k1111111\", by: \"bob\", at: 2026-11-19T12:00:00Z}";
    const NEW: &str = "1 in_progress claim: {id: \"k1111111\", by: \"bob\", at: 2026-11-21T11:59:00Z}";
    let other = || Holding::Elsewhere { worktree: "/other".to_owned(), is_gone: false };
    let closed = || Holding::Closed { branch: Some("refs/heads/x".to_owned()), is_here: false };
    // The file's own claim: a record takes precedence over the time stamp.
    check_held(OLD, &[], State::Next, 0);
    check_held(NEW, &[], State::Waiting, 0);
    check_held(OLD, &[held("k1111111", None, Here)], State::Waiting, 0);
    check_held(NEW, &[held("k1111111", Some(Lapse::Expired), Here)], State::Next, 0);
    check_held(NEW, &[held("k1111111", Some(Lapse::Interrupted), other())], State::Next, 0);
    // A claim that the file does not show.
    check_held("1 pending", &[held("k2222222", None, Here)], State::Waiting, 1);
    check_held("1 pending", &[held("k2222222", None, other())], State::Waiting, 0);
    check_held("1 pending", &[held("k2222222", None, closed())], State::Waiting, 0);
    check_held("1 pending", &[held("k2222222", Some(Lapse::Expired), Here)], State::Next, 0);
    check_held(OLD, &[held("k2222222", None, other())], State::Waiting, 0);
    // A step that is closed in its own file has no claim.
    check_held("1 completed", &[held("k2222222", None, Here)], State::Complete, 0);
    check_held("1 skipped", &[held("k2222222", None, closed())], State::Complete, 0);
}

#[test]
fn a_step_that_was_closed_elsewhere_is_not_said_to_be_in_progress() {
    let of = |holding| HeldClaim { holding, ..held("k2222222", None, Holding::Here) };
    let closed = |is_here| of(Holding::Closed { branch: Some("refs/heads/other".to_owned()), is_here });
    let remote = || Holding::EndedRemote { host: "vm".to_owned(), branch: None, status: "completed" };
    let check = |steps: &[&str], held: &HeldClaim, why: &str| {
        let mut claims = Claims::default();
        claims.add(read_step_id("p:1").expect("a step's id"), held.clone());
        let plans = Plans::judged(vec![plan("p", "status: active", steps)]).with_claims(claims);
        let next = next(&plans, plans.iter().next().expect("one plan"), now());
        assert_eq!((next.state, next.why.as_str()), (State::Waiting, why));
    };
    check(&["1 pending"], &closed(false), "step 1 was closed on other, which is not merged here");
    check(
        &["1 pending"],
        &closed(true),
        "step 1 was closed on this branch, and its file was changed back less than a minute ago",
    );
    check(
        &["1 pending"],
        &of(remote()),
        "step 1 was completed by bob on vm, and this work is not merged here",
    );
    let both = "step 2 is in progress; step 1 was closed on other, which is not merged here";
    check(&["1 pending", "2 in_progress"], &closed(false), both);
}

#[test]
fn only_the_tries_of_workers_count_and_only_since_the_last_reopening() {
    let tried = |outcome: &str, more: &str| format!("{{outcome: {outcome}, {more}}}");
    let check = |attempts: &[String], tries: usize| {
        let line = format!("1 pending attempts: [{}]", attempts.join(", "));
        let plan = plan("p", "status: active", &[line.as_str()]);
        assert_eq!(plan.steps[0].tries(), tries, "{line}");
    };
    let (claim, exit) = ("claim: k1111111", "claim: k1111111, exit_code: 130");
    check(&[tried("expired", claim), tried("interrupted", claim)], 2);
    check(&[tried("expired", "by: ann"), tried("failed", "by: ann"), tried("failed", claim)], 0);
    check(&[tried("failed", exit), tried("timed out", exit), tried("verify failed", exit)], 3);
    // A person stopped the run with Ctrl-C.
    check(&[tried("interrupted", exit)], 0);
    check(&[tried("expired", claim), tried("reopened", "by: ann"), tried("expired", claim)], 1);
}

/// Random plans, made of a few names, numbers and words, so that they often depend on each other.
fn any_plans() -> impl Strategy<Value = Vec<Plan>> {
    let status = select(&["pending", "pending", "completed", "in_progress", "failed", "skipped", "nope"][..]);
    let depend = select(&["1", "2", "3", "2.5", "9", "a:1", "b:2", "b:3", "c:1"][..]);
    let more = select(&["", "confirm: required", "phase: x", "priority: high", "claim: g1234567 by ann"][..]);
    let step = (select(&["1", "2", "2.5", "3"][..]), status, vec(depend, 0..3), more, any::<bool>());
    let heads =
        ["status: active", "status: active\norder: sequential", "confirm_phases: [x]", "status: draft"];
    let plan = (select(&["a", "b", "c"][..]), any::<bool>(), select(heads.to_vec()), vec(step, 0..5));
    vec(plan, 1..5).prop_map(|plans| {
        let mut made = Vec::new();
        for (id, is_archived, head, steps) in plans {
            let step = |(number, status, depends, more, is_noted): &(&str, &str, Vec<&str>, &str, bool)| {
                let noted = if *is_noted { "notes:\n  - {at: 2026-11-20, text: x}\n" } else { "" };
                let depends = depends.join(", ");
                let text =
                    format!("---\nstatus: {status}\ndepends: [{depends}]\n{noted}{more}\n---\n# Title\n");
                (number.parse().expect("a number"), source(format!("{id}/step-{number}.md"), &text))
            };
            let sources = PlanSources {
                plan: Some(source(format!("{id}/plan.md"), &format!("---\n{head}\n---\n"))),
                steps: steps.iter().map(step).collect(),
                ..PlanSources::default()
            };
            let id = PlanId::new(id);
            let plan = read::read_plan(&id, is_archived, &sources, &Words::default(), Bodies::Drop);
            let is_same = |it: &Plan| it.id == id && it.is_archived == is_archived;
            if !made.iter().any(is_same) {
                made.push(plan);
            }
        }
        made
    })
}

/// The results of the queries about all plans.
fn answers(plans: &Plans) -> impl PartialEq + std::fmt::Debug + use<> {
    let of = |it: &Plan| {
        let codes: Vec<_> = it.steps.iter().flat_map(|it| &it.problems).map(|it| it.code).collect();
        let times: Vec<_> = it.steps.iter().map(Step::last_activity).collect();
        let Next { state, why, step, .. } = next(plans, it, now());
        (progress(plans, it, now()), state, why, step.cloned(), codes, times, it.shown_status())
    };
    let candidates = candidates(plans, now());
    let why_first = why_first(&candidates);
    let candidates: Vec<_> = candidates.iter().map(|it| (it.step.clone(), it.why.clone())).collect();
    (plans.iter().map(of).collect::<Vec<_>>(), candidates, why_first)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn summaries_answer_as_whole_plans(plans in any_plans()) {
        let summaries = PlanSummaries::judged(plans.iter().map(Plan::summary).collect());
        prop_assert_eq!(answers(summaries.with_reduced_steps()), answers(&Plans::judged(plans)));
    }
}

/// Gives steps a range of the steps before them. For each step in turn, `left_out` contains how many of these the range
/// leaves out at its start and at its end. A range of fewer than two steps is not set.
fn with_ranges(mut plans: Vec<Plan>, left_out: &[(usize, usize)]) -> Vec<Plan> {
    let mut left_out = left_out.iter();
    // Archived plans get no ranges, because their dependencies may be looked up in a live plan of the same name.
    for plan in plans.iter_mut().filter(|it| !it.is_archived) {
        let numbers: Vec<_> = plan.steps.iter().map(|it| it.id.number.clone()).collect();
        for step in &mut plan.steps {
            let earlier = &numbers[..numbers.partition_point(|it| *it < step.id.number)];
            let Some((from, to)) = left_out.next() else { continue };
            let held = earlier.get(*from..earlier.len().saturating_sub(*to)).unwrap_or_default();
            let [first, .., last] = held else { continue };
            step.ranges = vec![StepRange { first: first.clone(), last: last.clone() }];
        }
    }
    plans
}

fn spelled_out(plans: &[Plan]) -> Vec<Plan> {
    let all = |plan: &Plan| {
        let steps = plan.steps.iter();
        let steps = steps
            .map(|it| Step { depends: plan.spelled_out(it), ranges: Vec::new(), ..it.clone() })
            .collect();
        Plan { steps, ..plan.clone() }
    };
    plans.iter().map(all).collect()
}

/// For each step, whether it is ready, what it waits for, and its problems; also the order in which steps are claimed.
fn readiness(plans: &Plans) -> impl PartialEq + std::fmt::Debug + use<> {
    let of = |plan: &Plan| {
        let step = |it: &Step| {
            let mut open: Vec<_> =
                open_dependencies(plans, plan, it).into_iter().map(|it| format!("{it:?}")).collect();
            open.sort_unstable();
            let codes: Vec<_> = it.problems.iter().map(|it| it.code).collect();
            (is_ready(plans, plan, it, now()), open, codes)
        };
        let next = next(plans, plan, now());
        let steps: Vec<_> = plan.steps.iter().map(step).collect();
        (progress(plans, plan, now()), next.state, next.step.map(|it| it.id.clone()), steps)
    };
    let found = candidates(plans, now());
    let why_first = why_first(&found);
    let found: Vec<_> = found.iter().map(|it| it.step.id.clone()).collect();
    let turns: Vec<_> = in_turn(plans, now(), |_| true).map(|it| it.step.id.clone()).collect();
    (plans.iter().map(of).collect::<Vec<_>>(), found, why_first, turns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn a_range_is_waited_for_as_its_steps_one_by_one(
        plans in any_plans(),
        left_out in vec((0..2usize, 0..2usize), 0..20),
    ) {
        let ranged = with_ranges(plans, &left_out);
        let expected = readiness(&Plans::judged(spelled_out(&ranged)));
        let summaries = PlanSummaries::judged(ranged.iter().map(Plan::summary).collect());
        prop_assert_eq!(&readiness(&Plans::judged(ranged.clone())), &expected);
        prop_assert_eq!(answers(summaries.with_reduced_steps()), answers(&Plans::judged(ranged)));
    }
}

/// Checks which steps of a plan are whole in its summary.
#[track_caller]
fn check_whole(head: &str, steps: &[&str], expected: &[bool]) {
    let whole = plan("p", head, steps);
    assert_eq!(whole.summary(), whole.clone().summarize());
    let summary = whole.summary();
    let is_whole = summary.plan().steps.iter().zip(&whole.steps).map(|(it, whole)| it == whole);
    assert_eq!(is_whole.collect::<Vec<_>>(), expected, "{head} {steps:?}");
}

#[test]
fn a_summary_has_only_claimable_and_claimed_steps_as_a_whole() {
    const ACTIVE: &str = "status: active";
    check_whole(ACTIVE, &["1 pending", "2 completed", "3 in_progress"], &[true, false, false]);
    check_whole(ACTIVE, &["1 pending", "2 pending [1]", "3 pending [b:1]"], &[true, false, true]);
    check_whole(ACTIVE, &["1 skipped", "2 pending [1]", "3 pending [9]"], &[false, true, false]);
    check_whole("order: sequential", &["1 completed", "2 pending", "3 pending"], &[false, true, false]);
    let claimed = "2 in_progress claim: {id: \"k1111111\", by: \"bob\", at: 2026-11-19T12:00:00Z}";
    check_whole(ACTIVE, &["1 completed", claimed], &[false, true]);
    check_whole("status: draft", &["1 pending", claimed], &[false, true]);
    let mut archived = plan("p", ACTIVE, &["1 pending"]);
    archived.is_archived = true;
    assert_ne!(archived.summary().plan().steps, archived.steps);
    // A step that is only a line in the Steps list is never whole.
    let mut listed = plan("p", ACTIVE, &["1 pending"]);
    listed.steps[0].etag = None;
    listed.steps[0].tags = vec!["x".to_owned()];
    assert_ne!(listed.summary().plan().steps, listed.steps);
}

/// A plan of 100 completed steps, each of which depends on the step before it.
fn chain() -> Plan {
    let steps: Vec<_> = (1..=100).map(|n| format!("{n} completed [{}]", n - 1)).collect();
    plan("a-plan-with-a-long-name", "", &steps.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_step_that_is_also_the_one_before_is_named_once() {
    let plan = plan("p", "order: sequential", &["1 pending", "2 pending [1]"]);
    let plans = Plans::new(vec![plan]);
    let plan = plans.iter().next().unwrap();
    let open = open_dependencies(&plans, plan, &plan.steps[1]);
    let (step, status) = (plan.steps[0].id.clone(), Some("pending".to_owned()));
    assert_eq!(open, [Obstacle::Dependency { step, status }]);
}

#[test]
fn a_reduced_step_is_stored_in_few_bytes() {
    let summary = chain().summarize();
    let bytes = encode(&StoredSummary::from(summary.clone()));
    assert!(bytes.len() < 100 * 100, "{}", bytes.len());
    let stored = decode::<PlanSummary>(&bytes).expect("it can be decoded");
    assert_eq!(stored, summary);
}

#[test]
fn the_steps_and_dependencies_of_a_decoded_plan_share_its_name() {
    let plan = decode::<Plan>(&encode(&chain())).expect("it can be decoded");
    let ids = plan.steps.iter().flat_map(|it| it.depends.iter().chain([&it.id]));
    assert!(ids.map(|it| it.plan.as_str().as_ptr()).all(|it| it == plan.id.as_str().as_ptr()));
}

/// Follows the dependencies of a step one by one.
fn waits_for_itself(plans: &Plans, plan: &Plan, step: &Step) -> bool {
    let awaited = |plan: &Plan, step: &Step| {
        let ids = plan.spelled_out(step);
        let before = plan.before(step).filter(|it| !step.is_closed() && !it.is_closed());
        ids.iter()
            .chain(before.map(|it| &it.id))
            .filter_map(|it| plans.get(&it.plan).and_then(|of| Some((of, of.find(it)?))))
            .collect::<Vec<_>>()
    };
    let (mut open, mut seen) = (awaited(plan, step), Vec::new());
    while let Some((of, found)) = open.pop() {
        if std::ptr::eq(found, step) {
            return true;
        }
        if !seen.iter().any(|it| std::ptr::eq(*it, found)) {
            seen.push(found);
            open.extend(awaited(of, found));
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn exactly_the_steps_that_wait_for_themselves_have_this_problem(
        plans in any_plans(),
        left_out in vec((0..2usize, 0..2usize), 0..20),
    ) {
        let plans = Plans::judged(with_ranges(plans, &left_out));
        for (plan, step) in plans.iter().flat_map(|plan| plan.steps.iter().map(move |step| (plan, step))) {
            let has_problem = step.problems.iter().any(|it| it.code == Code::DependencyCycle);
            prop_assert_eq!(has_problem, waits_for_itself(&plans, plan, step), "{}", step.id);
        }
    }
}
