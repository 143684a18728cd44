//! How long a queue is kept, against what a look would find.

use super::*;

/// What happens between two claims.
#[derive(Debug, Clone)]
pub(super) enum Between {
    Nothing,
    /// Somebody claims a step by name.
    Named(&'static str),
    Done(&'static str),
    Release(&'static str),
    /// Its owner says that the claim is over soon.
    Renew(&'static str),
    /// An editor saves a step or a plan.
    Save(&'static str, &'static str),
    /// An editor writes into the file that is there.
    Write(&'static str, &'static str),
    /// A process made a claim and died before this call.
    Dies(u64),
    Wait(i64),
}

pub(super) const STEPS: [&str; 6] = ["p:1", "p:2", "p:3", "q:1", "q:2", "q:3"];

pub(super) fn between() -> impl Strategy<Value = Between> {
    let step = prop::sample::select(STEPS.to_vec());
    let path =
        prop::sample::select(vec!["p/step-1.md", "p/step-3.md", "q/step-1.md", "q/step-2.md", "q/step-3.md"]);
    let text = prop::sample::select(vec![
        step_text!("status: pending\n"),
        step_text!("status: pending\npriority: high\n"),
        step_text!("status: pending\ndepends_on: [\"q:3\"]\n"),
        step_text!("status: skipped\n"),
    ]);
    let plan = prop::sample::select(vec![
        "# Q\n",
        "---\npriority: low\n---\n# Q\n",
        "---\nstatus: draft\n---\n# Q\n",
    ]);
    prop_oneof![
        6 => Just(Between::Nothing),
        2 => step.clone().prop_map(Between::Named),
        2 => step.clone().prop_map(Between::Done),
        2 => step.clone().prop_map(Between::Release),
        2 => step.prop_map(Between::Renew),
        1 => (path.clone(), text.clone()).prop_map(|(path, text)| Between::Save(path, text)),
        1 => (path, text).prop_map(|(path, text)| Between::Write(path, text)),
        1 => plan.prop_map(|text| Between::Save("q/plan.md", text)),
        2 => (1..250_u64).prop_map(Between::Dies),
        1 => (0..3_i64).prop_map(Between::Wait),
        1 => (20..40_i64).prop_map(Between::Wait),
    ]
}

pub(super) fn happens(machine: &mut Machine, seconds: &mut i64, between: &Between) {
    let plans = machine.plans();
    let context = Context { reading: Reading::Index, ..context(machine, "bob", *seconds) };
    match between {
        Between::Nothing => {}
        Between::Named(step) => {
            let request = ClaimRequest { target: Some((*step).to_owned()), ..ClaimRequest::default() };
            claim(&context, &request).ok();
        }
        Between::Done(step) => {
            let request = MoveRequest {
                verb: Verb::Done,
                ids: vec![(*step).to_owned()],
                message: None,
                by: None,
                claim: None,
                force: true,
                mode: Mode::Write,
            };
            update::move_steps(&context, &request).ok();
        }
        Between::Release(step) => {
            let request =
                ReleaseRequest { ids: vec![(*step).to_owned()], force: true, ..ReleaseRequest::default() };
            crate::ops::release::release(&context, &request).ok();
        }
        Between::Renew(step) => {
            let text = machine.text(&format!("/plans/{}.md", step.replace(':', "/step-")));
            let id = text.and_then(|it| Some(it.split_once("claim: {id: \"")?.1[..8].to_owned()));
            let request = id.map(|claim| RenewRequest { claim, lease: Some(5), mode: Mode::Write });
            request.and_then(|it| renew(&context, &it).ok());
        }
        Between::Save(path, text) => {
            let mut edit = |_: &[u8]| Ok::<_, std::convert::Infallible>(text.as_bytes().to_vec());
            plans.lock(&mut || {}).unwrap().change(std::path::Path::new(path), &mut edit).unwrap();
        }
        Between::Write(path, text) => {
            let path = plans.root().join(path);
            let file = plans.disk().open(&path, crate::disk::Open::InPlace).unwrap();
            file.write(text.as_bytes()).unwrap();
            file.set_len(text.len() as u64).unwrap();
        }
        Between::Dies(call) => {
            let dying = machine.dying_before(*call);
            claim(&Context { plans: dying.plans(), ..context }, &ClaimRequest::default()).ok();
            *machine = dying.after_kill();
        }
        Between::Wait(time) => *seconds += time,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_kept_queue_hands_out_what_a_look_would(script in prop::collection::vec(between(), 1..12)) {
        let step = |n: usize| ["high", "low", "medium"][n % 3];
        let mut files = vec![("/plans/p/plan.md".to_owned(), "# P\n".to_owned()), ("/plans/q/plan.md".to_owned(), "# Q\n".to_owned())];
        for (n, id) in STEPS.iter().enumerate() {
            let path = format!("/plans/{}.md", id.replace(':', "/step-"));
            files.push((path, format!(step_text!("status: pending\npriority: {}\n"), step(n))));
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let (mut machine, mut seconds) = (Machine::with(&files), 0);
        for it in &script {
            happens(&mut machine, &mut seconds, it);
            let ann = Context { reading: Reading::Index, ..context(&machine, "ann", seconds) };
            let expected = candidates::look(&ann, None, &HashSet::new()).unwrap();
            let expected = expected.first().map(|it| it.step.id.to_string());
            let report = claim(&ann, &ClaimRequest::default()).unwrap();
            let claimed = report.step.map(|it| it["id"].as_str().unwrap().to_owned());
            prop_assert_eq!(claimed, expected, "{:?}", it);
        }
    }
}

#[test]
fn a_queue_is_kept_as_long_as_only_its_steps_are_claimed() {
    let change = |path: &'static str| Between::Save(path, step_text!("status: pending\ntags: [a]\n"));
    for (between, is_kept) in [
        (Between::Nothing, true),
        (Between::Named("p:2"), true),
        (Between::Named("p:3"), true),
        (Between::Release("p:1"), false),
        (Between::Done("p:1"), false),
        (Between::Done("p:3"), false),
        (change("p/step-1.md"), false),
        (change("p/step-3.md"), false),
        (Between::Write("p/step-3.md", "---\nstatus: pending\n---\n# Stop\n"), false),
        (Between::Save("p/plan.md", "# Q\n"), false),
        (Between::Wait(1), true),
        (Between::Wait(27), true),
        (Between::Wait(28), false),
        (Between::Wait(-3), false),
    ] {
        let (mut machine, asks) = three();
        let ann = asks(&machine, "a", 0);
        check_told(candidates::ask(&ann, Mode::Write), &ann, Some("p:1"));
        let mut seconds = 0;
        happens(&mut machine, &mut seconds, &between);
        let bob = asks(&machine, "b", seconds);
        let source = candidates::source(&bob, candidates::ask(&bob, Mode::Write));
        assert_eq!(matches!(source, Source::Queue(_)), is_kept, "{between:?}");
    }
}

#[test]
fn a_queue_is_kept_while_a_claim_is_being_made_and_not_where_its_maker_died() {
    let mut stands = HashSet::new();
    for call in 1..250 {
        let (mut machine, asks) = three();
        let ann = asks(&machine, "a", 0);
        check_told(candidates::ask(&ann, Mode::Write), &ann, Some("p:1"));
        happens(&mut machine, &mut 0, &Between::Dies(call));
        let eve = asks(&machine, "e", 0);
        let Source::Queue(queue) = candidates::source(&eve, candidates::ask(&eve, Mode::Write)) else {
            continue;
        };
        let first = queue.first().map(|it| (it.step.id.to_string(), it.recorded));
        stands.insert(first.clone());
        let expected = candidates::look(&eve, None, &HashSet::new()).unwrap()[0].step.id.to_string();
        check_told(candidates::ask(&eve, Mode::Write), &eve, Some(&expected));
    }
    let unfinished = Some(("p:2".to_owned(), Recorded::Unfinished));
    assert!(stands.len() == 3 && stands.contains(&unfinished), "{stands:?}");
}

#[test]
fn a_queue_is_not_kept_past_the_end_of_a_lease() {
    for (lease, is_kept) in [(1, false), (2, false), (10, false), (59, false), (60, true)] {
        let target = Some("p:2".to_owned());
        let named = ClaimRequest { target, lease: Some(lease), ..ClaimRequest::default() };
        // After the look a short one leaves no remark, before it one that is soon over stands in the way.
        for is_before in [true, false] {
            let (machine, asks) = three();
            let ann = asks(&machine, "a", 0);
            let bob = asks(&machine, "b", 0);
            if is_before {
                claim(&bob, &named).unwrap();
            }
            check_told(candidates::ask(&ann, Mode::Write), &ann, Some("p:1"));
            if !is_before {
                claim(&bob, &named).unwrap();
            }
            let is_kept = is_kept || is_before && lease > 2;
            // At the last moment but one of a lease that the look saw nothing hangs on it any more.
            let last = if is_kept && is_before { (lease - 3).min(27) } else { 0 };
            for (seconds, is_kept) in [(last, is_kept), (last + 1, is_kept && !is_before)] {
                let bob = asks(&machine, "b", seconds);
                let source = candidates::source(&bob, candidates::ask(&bob, Mode::Write));
                assert_eq!(matches!(source, Source::Queue(_)), is_kept, "{lease} {is_before} {seconds}");
            }
        }
    }
}

#[test]
fn a_claim_that_its_owner_lets_end_soon_ends_the_queue() {
    let files = STEPS.map(|it| (format!("/plans/{}.md", it.replace(':', "/step-")), STEP));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let machine = Machine::with(&files);
    let indexed = |seconds| Context { reading: Reading::Index, ..context(&machine, "ann", seconds) };
    let claimed = |seconds| claim(&indexed(seconds), &ClaimRequest::default()).unwrap();
    let first = claimed(0);
    let request = RenewRequest { claim: first.claim.unwrap().id, lease: Some(5), mode: Mode::Write };
    renew(&indexed(1), &request).unwrap();
    let expected = candidates::look(&indexed(10), None, &HashSet::new()).unwrap();
    let second = claimed(10).step.unwrap();
    assert_eq!(second["id"], expected[0].step.id.to_string());
}
