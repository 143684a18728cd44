//! Tests in which an editor saves a step while `squash` moves the step's file away. Each save must be in a file or be
//! reported.

use super::*;
use crate::disk::model::{Machine, sample};

const PLAN: &str = "# P\n\n## Steps\n";

/// A plan with the steps 0, 1 and `other`. The editor saves step 1. `other` decides whether step 1 is the second or the
/// third step.
fn machine(other: &str) -> Machine {
    let step = |number: &str| format!("---\nstatus: pending\n---\n# Step {number}\n\nText of {number}.\n");
    let other_path = format!("/plans/p/step-{other}.md");
    let machine = Machine::with(&[
        ("/plans/p/plan.md", PLAN),
        ("/plans/p/step-0.md", &step("0")),
        (other_path.as_str(), &step(other)),
        ("/plans/p/step-1.md", "# Step 1\n"),
    ]);
    // This change makes the undo log record the file's length. Without the length, a file that the editor has just
    // truncated would be accepted as a short file.
    let plans = machine.plans();
    let mut locked = plans.lock(&mut || {}).unwrap();
    locked.change(Path::new("p/step-1.md"), &mut |_, _| Some(step("1").into_bytes())).unwrap();
    drop(locked);
    machine
}

/// Squashes the steps and lets the editor finish. Returns whether the squash succeeded, whether the new step contains a
/// save, and whether a save is reported.
#[track_caller]
fn check(other: &str, saving: &Machine, how: &str) -> (bool, bool, bool) {
    let context = Context::on_model(saving);
    let steps = ["0", other, "1"].map(str::to_owned).to_vec();
    let (plan, title) = ("p".to_owned(), "All".to_owned());
    let answer = squash(&context, &SquashRequest { plan, steps, title, ..SquashRequest::default() });
    saving.finish_saves();
    let reported = context.kept.to_json().unwrap_or_default();
    let reported: Vec<_> = reported.as_array().into_iter().flatten().collect();
    let text = |path: &str| saving.text(path).unwrap_or_default();
    let is_reported = |save: &str| {
        reported.iter().any(|it| text(&format!("/plans/{}", it["kept"].as_str().unwrap())).contains(save))
    };
    let is_within = |save: &str| text("/plans/p/step-0.md").contains(save);
    for save in saving.saves() {
        let is_in_place = text("/plans/p/step-1.md").contains(&save);
        let place = format!("{other} {how}: {save} {answer:?} {:?}", saving.tree());
        assert!(is_within(&save) || is_in_place || is_reported(&save), "{place}");
    }
    let saves = saving.saves();
    let any = |is: &dyn Fn(&str) -> bool| saves.iter().any(|it| is(it));
    (answer.is_ok(), any(&is_within), any(&is_reported))
}

#[test]
fn a_save_into_a_step_that_is_moved_is_taken_over_left_or_reported() {
    for other in ["0.5", "2"] {
        let machine = machine(other);
        let quiet = machine.after_kill();
        assert_eq!(check(other, &quiet, "quiet"), (true, false, false));
        let n = quiet.calls();
        let (mut n_done, mut n_refused, mut n_within, mut n_reported) = (0, 0, 0, 0);
        let mut moments = sample(5);
        let mut tally = |(is_done, is_within, is_reported): (bool, bool, bool)| {
            n_done += u32::from(is_done);
            n_refused += u32::from(!is_done);
            n_within += u32::from(is_within);
            n_reported += u32::from(is_reported);
        };
        for call in 1..=n {
            tally(check(other, &machine.saved_before(call), &format!("at {call}")));
            for later in [1, 25].into_iter().filter(|_| moments.takes()) {
                let slow = machine.saved_slowly(call, call + later);
                tally(check(other, &slow, &format!("truncated at {call}, written {later} later")));
                let twice = machine.saved_twice(call, call + later, call + later + 3);
                tally(check(other, &twice, &format!("at {call}, and {later} later")));
            }
        }
        let seen = [n_done, n_refused, n_within, n_reported];
        assert!(seen.iter().all(|it| *it > 0), "{other}: {seen:?}");
    }
}

/// For each call to the disk, squashes the steps once. Another program renames the plan's directory before that call.
#[test]
fn a_plan_that_is_renamed_meanwhile_does_not_come_back_under_its_old_name() {
    for other in ["0.5", "2"] {
        let machine = machine(other);
        let quiet = machine.after_kill();
        check(other, &quiet, "quiet");
        let (mut n_renamed, mut n_reported) = (0, 0);
        for call in 1..=quiet.calls() {
            let renamed = machine.directory_renamed_before(call, "/plans/p", "/plans/q");
            let context = Context::on_model(&renamed);
            let steps = ["0", other, "1"].map(str::to_owned).to_vec();
            let (plan, title) = ("p".to_owned(), "All".to_owned());
            let answer = squash(&context, &SquashRequest { plan, steps, title, ..SquashRequest::default() });
            // If a command could not undo all of its changes, the next command undoes the rest.
            let next = renamed.after_kill();
            drop(next.plans().lock(&mut || {}).unwrap());
            let tree = next.tree();
            let place = format!("{other} at {call}: {answer:?} {tree:?}");
            if !tree.keys().any(|it| it == "/plans/q/step-0.md") {
                continue;
            }
            n_renamed += 1;
            let old: Vec<_> =
                tree.keys().filter(|it| *it == "/plans/p" || it.starts_with("/plans/p/")).collect();
            assert!(old.is_empty(), "{place}");
            let reported = next.plans().kept();
            let kept: Vec<_> = reported
                .iter()
                .filter_map(|it| next.text(&format!("/plans/{}", it.kept.display())))
                .collect();
            for text in ["0", other, "1"].map(|it| format!("Text of {it}.\n")) {
                let is_there = |it: &String| it.contains(&text);
                let is_safe = tree.values().flatten().any(is_there) || kept.iter().any(is_there);
                assert!(is_safe, "{text} {place}");
            }
            n_reported += usize::from(!reported.is_empty());
        }
        assert!(n_renamed > 0 && n_reported > 0, "{other}: {n_renamed} {n_reported}");
    }
}
