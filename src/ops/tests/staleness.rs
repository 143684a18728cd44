//! Tests which steps need attention because they are overdue, or because nothing has been recorded for them for a while.

use crate::api::context::Context;
use crate::disk::model::Machine;
use crate::ops::status::{self, StatusRequest};

/// Checks which reasons for attention `status` reports for a plan with this first step. `now` is a day and time in November
/// 2026.
#[track_caller]
fn check(plan: &str, step: &str, now: &str, expected: &[&str]) {
    let plan = format!("status: {plan}");
    let other = "status: completed\nattempts:\n  - {at: 2026-11-03T12:00:00Z, outcome: completed}";
    let unsaid = "status: completed\nattempts:\n  - {at: 2026-11-03T12:00:00Z, outcome: blocked}";
    check_files(&plan, &[("p/step-1", step), ("q/step-1", other), ("q/step-2", unsaid)], now, expected);
}

/// Like [`check`], with all steps given.
#[track_caller]
fn check_files(plan: &str, steps: &[(&str, &str)], now: &str, expected: &[&str]) {
    let mut files = vec![("/plans/p/plan.md".to_owned(), format!("---\n{plan}\n---\n# P\n"))];
    files
        .extend(steps.iter().map(|(at, it)| (format!("/plans/{at}.md"), format!("---\n{it}\n---\n# One\n"))));
    let files: Vec<_> = files.iter().map(|(at, text)| (at.as_str(), text.as_str())).collect();
    let machine = Machine::with(&files);
    let now = format!("2026-11-{now}").parse().unwrap();
    let context = Context { now, ..Context::on_model(&machine) };
    let report = status::status(&context, &StatusRequest::default()).unwrap();
    let said = |it: &status::Attention| match it.since {
        Some(since) => format!("{} since {since}", it.reason.word()),
        None => it.reason.word().to_owned(),
    };
    assert_eq!(report.attention.iter().map(said).collect::<Vec<_>>(), expected, "{plan} {steps:?}");
}

#[test]
fn a_step_is_overdue_after_the_end_of_its_due_day() {
    let due = |rest: &str| format!("due: 2026-11-05\n{rest}");
    let over = ["overdue since 2026-11-06T00:00:00Z"];
    check("active", &due(MADE), "05T23:59:59Z", &[]);
    check("active", &due(MADE), "06T00:00:00Z", &over);
    check("active", &due("status: in_progress"), "07T12:00:00Z", &over);
    check("active", &due("depends: [\"q:9\"]"), "07T12:00:00Z", &["faulty"]);
    check("active", &due("status: completed"), "20T12:00:00Z", &[]);
    check("draft", &due(MADE), "20T12:00:00Z", &[]);
    check("active", &format!("due: soon\n{MADE}"), "06T12:00:00Z", &[]);
}

#[test]
fn an_overdue_plan_is_reported_at_its_first_open_step_without_a_due_day() {
    let steps = [
        ("p/step-1", "status: completed"),
        ("p/step-2", "due: 2026-12-01\ncreated_at: 2026-11-04T12:00:00Z"),
        ("p/step-3", "created_at: 2026-11-04T12:00:00Z"),
        ("p/step-4", "created_at: 2026-11-04T12:00:00Z"),
    ];
    check_files("due: 2026-11-05", &steps, "05T12:00:00Z", &[]);
    check_files("due: 2026-11-05", &steps, "06T12:00:00Z", &["overdue since 2026-11-06T00:00:00Z"]);
}

const MADE: &str = "created_at: 2026-11-01T12:00:00Z";

#[test]
fn a_step_is_stale_after_more_than_seven_days_without_a_new_attempt() {
    let of_first = ["stale since 2026-11-01T12:00:00Z"];
    check("active", MADE, "08T12:00:00Z", &[]);
    check("active", MADE, "08T12:00:01Z", &of_first);
    check("active", MADE, "09T12:00:00Z", &of_first);
    let tried = format!(
        "status: in_progress\n{MADE}\nattempts:\n  - {{at: 2026-11-04T12:00:00Z, outcome: no answer}}"
    );
    check("active", &tried, "11T12:00:00Z", &[]);
    check("active", &tried, "12T12:00:00Z", &["stale since 2026-11-04T12:00:00Z"]);
}

#[test]
fn pending_counts_from_the_last_dependency_and_the_last_reopening() {
    let waited = format!("{MADE}\ndepends: [\"q:1\"]");
    check("active", &waited, "10T12:00:00Z", &[]);
    check("active", &waited, "10T12:00:01Z", &["stale since 2026-11-03T12:00:00Z"]);
    let reopened = format!("{MADE}\nattempts:\n  - {{at: 2026-11-05T12:00:00Z, outcome: reopened}}");
    check("active", &reopened, "12T12:00:00Z", &[]);
    check("active", &reopened, "12T12:00:01Z", &["stale since 2026-11-05T12:00:00Z"]);
}

/// The reason for a step that is stale since the modification time of the model's files.
const WRITTEN: &str = "stale since 1970-01-01T00:16:40Z";

#[test]
fn a_note_takes_no_ready_step_off_the_list() {
    let note = "notes:\n  - {at: 2026-11-09T12:00:00Z, type: info, text: Still to do}";
    check("active", &format!("{MADE}\n{note}"), "10T12:00:00Z", &["stale since 2026-11-01T12:00:00Z"]);
    check("active", note, "10T12:00:00Z", &[WRITTEN]);
}

#[test]
fn an_attempt_begins_the_time_of_a_ready_step_anew() {
    let tried = format!("{MADE}\nattempts:\n  - {{at: 2026-11-04T12:00:00Z, outcome: partial}}");
    check("active", &tried, "11T12:00:00Z", &[]);
    check("active", &tried, "11T12:00:01Z", &["stale since 2026-11-04T12:00:00Z"]);
}

#[test]
fn in_progress_counts_from_the_last_activity() {
    let busy = |rest: &str| format!("status: in_progress\n{MADE}\n{rest}");
    check("active", &busy(""), "02T12:00:00Z", &[WRITTEN]);
    let note = "notes:\n  - {at: 2026-11-04T12:00:00Z, type: info, text: Half of it}";
    check("active", &busy(note), "11T12:00:00Z", &[]);
    check("active", &busy(note), "11T12:00:01Z", &["stale since 2026-11-04T12:00:00Z"]);
}

#[test]
fn an_attempt_in_the_past_does_not_hide_later_records() {
    let old = "attempts:\n  - {at: 2026-10-01T12:00:00Z, outcome: no answer";
    let later = format!("status: in_progress\n{old}, recorded_at: 2026-11-04T12:00:00Z}}");
    check("active", &later, "11T12:00:00Z", &[]);
    check("active", &later, "11T12:00:01Z", &["stale since 2026-11-04T12:00:00Z"]);
    let made = format!("status: in_progress\n{MADE}\n{old}}}");
    check("active", &made, "08T12:00:00Z", &[]);
    check("active", &made, "08T12:00:01Z", &["stale since 2026-11-01T12:00:00Z"]);
    let claim = "claim: {id: \"h4f09a21\", by: ann, at: 2026-11-05T12:00:00Z}";
    let claimed = format!("status: in_progress\n{claim}\n{old}}}");
    check("active", &claimed, "05T12:00:01Z", &[]);
}

#[test]
fn a_dependency_that_does_not_say_when_it_was_closed_was_closed_when_its_file_was_written() {
    check("active", "depends: [\"q:2\"]", "10T12:00:00Z", &[WRITTEN]);
    check(
        "active",
        &format!("{MADE}\ndepends: [\"q:2\"]"),
        "10T12:00:00Z",
        &["stale since 2026-11-01T12:00:00Z"],
    );
}

#[test]
fn in_a_sequential_plan_the_step_before_is_a_dependency() {
    let done = "status: completed\nattempts:\n  - {at: 2026-11-05T12:00:00Z, outcome: completed}";
    let steps = [("p/step-1", done), ("p/step-2", MADE)];
    check_files("order: sequential", &steps, "12T12:00:00Z", &[]);
    check_files("order: sequential", &steps, "12T12:00:01Z", &["stale since 2026-11-05T12:00:00Z"]);
    check_files("status: active", &steps, "12T12:00:01Z", &["stale since 2026-11-01T12:00:00Z"]);
}

#[test]
fn closed_or_waiting_steps_are_never_stale() {
    for plan in ["draft", "abandoned", "completed"] {
        check(plan, MADE, "20T12:00:00Z", &[]);
    }
    check("active", &format!("status: completed\n{MADE}"), "20T12:00:00Z", &[]);
    check("active", &format!("status: skipped\n{MADE}"), "20T12:00:00Z", &[]);
    check("active", &format!("{MADE}\nconfirm: required"), "20T12:00:00Z", &["to confirm"]);
}
