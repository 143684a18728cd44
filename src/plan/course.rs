//! The statuses of a step over time, from the records in its file. Commits are used only where the file records nothing.

use serde::Serialize;

use crate::plan::records::{Attempt, Claim};
use crate::plan::time::Time;
use crate::plan::words::{Status, StepStatus};

/// A time during which a step had one status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    pub status: String,
    pub from: Time,
    /// `None`: the step still has the status.
    pub to: Option<Time>,
}

/// What a step's file records.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    pub status: &'a str,
    pub created_at: Option<Time>,
    pub claim: Option<&'a Claim>,
    pub attempts: &'a [Attempt],
}

/// A status that a commit shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub status: String,
    pub at: Time,
    /// Whether the file states the time; otherwise `at` is the time of the commit.
    pub is_recorded: bool,
}

/// The duration of an attempt in seconds. `None`: it is not recorded, or is not between half a second and 366 days.
pub fn seconds(attempt: &Attempt) -> Option<i64> {
    let seconds = attempt.more.get("seconds").and_then(serde_json::Value::as_f64)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is at most 366 days")]
    (0.5..=31_622_400.0).contains(&seconds).then(|| seconds.round() as i64)
}

/// The status that a step has after an attempt, if the outcome determines it.
fn status_after(outcome: &str) -> Option<StepStatus> {
    Some(match outcome {
        "claimed" | "started" => StepStatus::InProgress,
        "completed" | "done" | "ok" => StepStatus::Completed,
        "failed" => StepStatus::Failed,
        "blocked" => StepStatus::Blocked,
        "skipped" => StepStatus::Skipped,
        "released" | "reopened" | "interrupted" | "expired" => StepStatus::Pending,
        _ => return None,
    })
}

/// Returns the statuses of a step in chronological order, without a gap. The last one is the present status, unless no record
/// says when it began and `seen` is empty. `seen` is in the order of the commits, oldest first.
pub fn spans(records: &Records<'_>, seen: &[Seen]) -> Vec<Span> {
    let mut course = Course(recorded(records));
    course.0.sort_by_key(|it| it.0);
    let mut low: Option<Time> = None;
    for (nth, it) in seen.iter().enumerate() {
        // A status began no later than the recorded times of the statuses that follow it in the history.
        let later = seen[nth + 1..].iter().filter(|it| it.is_recorded).map(|it| it.at).min();
        let before = later.filter(|most| *most < it.at);
        let at = before.unwrap_or(it.at);
        let at = low.map_or(at, |low| at.max(low));
        course.add(at, before.is_some(), it);
        low = Some(at);
    }
    course.spans(records.status, seen.last().map(|it| it.at))
}

fn recorded(records: &Records<'_>) -> Vec<(Time, String)> {
    let word = |it: StepStatus| it.word().to_owned();
    let mut points: Vec<_> =
        records.created_at.map(|it| (it, word(StepStatus::Pending))).into_iter().collect();
    let mut before = StepStatus::Pending;
    for attempt in records.attempts {
        let Some(at) = attempt.at else { continue };
        let after = status_after(attempt.outcome.as_deref().unwrap_or_default());
        if let Some(seconds) = seconds(attempt) {
            points.push((at.plus_seconds(-seconds), word(StepStatus::InProgress)));
            points.push((at, word(after.unwrap_or(before))));
        } else if let Some(after) = after {
            points.push((at, word(after)));
        }
        before = after.unwrap_or(before);
    }
    let is_held = records.status == StepStatus::InProgress.word();
    let claimed = records.claim.filter(|_| is_held).and_then(|it| it.at);
    points.extend(claimed.map(|it| (it, word(StepStatus::InProgress))));
    points
}

/// Statuses with the times at which they began, in the order of these times.
struct Course(Vec<(Time, String)>);

impl Course {
    /// Adds the status that a commit shows, unless the step already has this status at that time. If `is_before`, the status
    /// comes before others with the same time.
    fn add(&mut self, at: Time, is_before: bool, seen: &Seen) {
        let place = self.0.partition_point(|it| it.0 < at || it.0 == at && !is_before);
        if place.checked_sub(1).is_none_or(|it| self.0[it].1 != seen.status) {
            self.0.insert(place, (at, seen.status.clone()));
        }
    }

    /// `now` is the present status. `last` is the time of the last status that a commit shows.
    fn spans(self, now: &str, last: Option<Time>) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for (from, status) in self.0 {
            match spans.last_mut() {
                Some(last) if last.status == status => continue,
                Some(last) => last.to = Some(from),
                None => {}
            }
            spans.push(Span { status, from, to: None });
        }
        // If the last span has another status than the present one, no record says when the present status began. Its
        // span then begins at `last`, or at the start of the last span if that is later. Without `last`, the last span is
        // left out.
        if let Some(open) = spans.pop_if(|it| it.status != now)
            && let Some(last) = last
        {
            let from = last.max(open.from);
            spans.push(Span { to: Some(from), ..open });
            spans.push(Span { status: now.to_owned(), from, to: None });
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(day: u32) -> Time {
        format!("2026-10-{day:02}T00:00:00Z").parse().unwrap()
    }

    fn attempt(day: u32, outcome: &str) -> Attempt {
        Attempt { at: Some(time(day)), outcome: Some(outcome.to_owned()), ..Attempt::default() }
    }

    fn seen(day: u32, status: &str) -> Seen {
        Seen { status: status.to_owned(), at: time(day), is_recorded: false }
    }

    #[track_caller]
    fn check(status: &str, created: Option<u32>, attempts: &[Attempt], seen: &[Seen], expected: &str) {
        let created_at = created.map(time);
        let spans = spans(&Records { status, created_at, claim: None, attempts }, seen);
        let day = |it: Time| it.to_string()[8..10].to_owned();
        let shown = spans
            .iter()
            .map(|it| format!("{} {}-{}", it.status, day(it.from), it.to.map(day).unwrap_or_default()));
        assert_eq!(shown.collect::<Vec<_>>().join(", "), expected);
    }

    #[test]
    fn a_recorded_attempt_comes_before_the_time_of_a_commit() {
        let done = [attempt(12, "failed"), attempt(14, "completed")];
        let late = [seen(26, "completed")];
        check("completed", Some(10), &done, &late, "pending 10-12, failed 12-14, completed 14-");
        check("completed", None, &done, &late, "failed 12-14, completed 14-");
        check("completed", None, &done, &[], "failed 12-14, completed 14-");
        check("completed", None, &done, &[seen(11, "pending")], "pending 11-12, failed 12-14, completed 14-");
        // The commit that shows `pending` has a later time than the attempt that follows it in the history.
        let after = Seen { is_recorded: true, ..seen(14, "completed") };
        check("completed", None, &done[1..], &[seen(20, "pending"), after], "pending 14-14, completed 14-");
    }

    #[test]
    fn commits_give_the_times_that_are_not_recorded() {
        let git = [seen(11, "pending"), seen(13, "in_progress"), seen(15, "completed")];
        check("completed", None, &[], &git, "pending 11-13, in_progress 13-15, completed 15-");
        check("completed", Some(10), &[], &[seen(26, "completed")], "pending 10-26, completed 26-");
        let partial = [attempt(14, "partial")];
        check("completed", None, &partial, &[seen(26, "completed")], "completed 26-");
        check("pending", None, &[attempt(14, "failed")], &[seen(26, "pending")], "failed 14-26, pending 26-");
        check("skipped", None, &[], &git, "pending 11-13, in_progress 13-15, completed 15-15, skipped 15-");
        // The author dates of commits may be out of order.
        let back = [seen(15, "pending"), seen(12, "failed")];
        check("failed", None, &[], &back, "pending 15-15, failed 15-");
    }

    #[test]
    fn an_end_that_is_not_recorded_is_not_drawn() {
        check("completed", Some(10), &[], &[], "");
        check("completed", Some(10), &[attempt(12, "started")], &[], "pending 10-12");
        check("pending", Some(10), &[], &[], "pending 10-");
    }

    #[test]
    fn the_seconds_of_an_attempt_say_when_it_began() {
        let mut run = attempt(14, "verify failed");
        run.more.insert("seconds".to_owned(), 86_400.into());
        let ended = [attempt(12, "failed"), run.clone(), attempt(16, "completed")];
        check("completed", None, &ended, &[], "failed 12-13, in_progress 13-14, failed 14-16, completed 16-");
        check("pending", Some(11), &[run], &[], "pending 11-13, in_progress 13-14, pending 14-");
    }
}
