//! Events between two claims, for property tests of the daemon's queue.

use super::*;

#[derive(Debug, Clone)]
pub(super) enum Between {
    Nothing,
    /// Another worker claims a step by name.
    Named(&'static str),
    Done(&'static str),
    Release(&'static str),
    /// The owner renews the claim with a short lease.
    Renew(&'static str),
    /// An editor replaces the file of a step or a plan.
    Save(&'static str, &'static str),
    /// An editor writes into the existing file instead.
    Write(&'static str, &'static str),
    /// A process begins a claim and dies before the system call with this number.
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
                is_signed: false,
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
            let mut edit = |_: &[u8], _: &[Vec<u8>]| Some(text.as_bytes().to_vec());
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
