//! Short texts of the pages: times, statuses, progress.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::api::views::{Awaited, PlanShape, StepShape};
use crate::ops::show::ShownPlan;
use crate::page::look::Look;
use crate::page::text::{isolated, one_line, words};
use crate::plan::records::Priority;
use crate::plan::time::{self, Time};

/// The age of a time, such as `5 min ago`, with the time itself as a tooltip. The script keeps the age current.
pub(super) fn ago(at: Time, now: Time) -> Markup {
    let text = at.whole_seconds().to_string();
    let exact = format!("{} {} UTC", &text[..10], text.get(11..16).unwrap_or_default());
    html! { time datetime=(text) title=(exact) { (age(now.seconds_since(at))) } }
}

fn age(seconds: i64) -> String {
    let unit = |size: i64, word: &str| format!("{} {word} ago", seconds / size);
    match seconds {
        ..0 => "soon".to_owned(),
        0..60 => "just now".to_owned(),
        60..3_600 => unit(60, "min"),
        3_600..86_400 => unit(3_600, "h"),
        86_400..172_800 => "yesterday".to_owned(),
        172_800..5_184_000 => unit(86_400, "days"),
        5_184_000..63_072_000 => unit(2_592_000, "months"),
        _ => unit(31_536_000, "years"),
    }
}

pub(super) fn status(look: Look) -> Markup {
    html! { span class={"status " (look.class())} { span class="mark" aria-hidden="true" { (look.mark()) } (look.words()) } }
}

/// The steps of a plan, and those of other plans that they wait for, by their ids.
pub(super) struct Titles<'a>(HashMap<&'a str, Title<'a>>);

struct Title<'a> {
    of: (&'a str, &'a str, &'a str),
    title: &'a str,
    status: &'a str,
}

impl<'a> Titles<'a> {
    pub(super) fn of(shown: &'a ShownPlan) -> Self {
        let own = shown.steps.iter().map(|it| Title {
            of: (&it.plan, &it.number, &it.id),
            title: &it.title,
            status: &it.status,
        });
        let others = shown.awaited.iter().map(|it| Title {
            of: (&it.plan, &it.number, &it.id),
            title: &it.title,
            status: &it.status,
        });
        Self(own.chain(others).map(|it| (it.of.2, it)).collect())
    }

    /// What a step waits for: the first steps with title and status, and how many more there are.
    pub(super) fn waits(&self, step: &StepShape, most: usize) -> String {
        let one = |it: &Awaited| match it {
            Awaited::Step(id) => match self.0.get(id.to_string().as_str()) {
                Some(it) => named(step, it.of, it.title, it.status),
                None => id.to_string(),
            },
            Awaited::Confirmation => "a person’s confirmation".to_owned(),
        };
        let shown: Vec<_> = step.waits_for.iter().take(most).map(one).collect();
        let more = step.waits_for.len().saturating_sub(most);
        one_line(&if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) })
    }
}

/// Names a step: `step 3: Title (pending)`. A step of another plan is named by its id.
pub(super) fn named(
    of: &StepShape,
    (plan, number, id): (&str, &str, &str),
    title: &str,
    status: &str,
) -> String {
    let name = if plan == of.plan { format!("step {number}") } else { id.to_owned() };
    format!("{name}: {} ({})", one_line(title), words(status))
}

/// The type of a step in words.
pub(super) fn kind(word: &str) -> String {
    match word {
        "user_validation" => "validation by a person".to_owned(),
        other => words(other),
    }
}

/// `1 problem`, `2 problems`.
pub(super) fn count(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

/// The mark of a status without its word. The word is the tooltip and the accessible name.
pub(super) fn mark(look: Look) -> Markup {
    html! { span class={"mark " (look.class())} role="img" aria-label=(look.words()) title=(look.words()) { (look.mark()) } }
}

pub(super) fn plan_status(plan: &PlanShape) -> Markup {
    let class = match plan.status.as_str() {
        "completed" => "is-completed",
        "active" => "is-in-progress",
        "abandoned" => "is-skipped",
        _ => "is-waiting",
    };
    html! { span class={"status " (class)} { (words(&plan.status)) } }
}

/// The number of closed steps out of all steps, as a bar and in figures.
pub(super) fn progress(plan: &PlanShape) -> Markup {
    let closed = plan.steps_completed + plan.steps_skipped;
    html! {
        span class="progress" {
            progress max=(plan.steps_total.max(1)) value=(closed) aria-label={"Progress of " (one_line(&plan.title))} {}
            span class="number" { (closed) "/" (plan.steps_total) }
        }
    }
}

/// How long something took.
pub(super) fn length(seconds: i64, now: Time) -> String {
    time::span(now.plus_seconds(seconds), now)
}

/// Who works on a step: the holder of its claim, else its assignee.
pub(super) fn worker(step: &StepShape) -> Option<&str> {
    let claimed = step.claim.as_ref().and_then(|it| it.by.as_deref());
    claimed.or(step.held_by.as_deref()).or(step.assignee.as_deref())
}

/// The facts below a step's title. The priority of an open step is shown only if it differs from `usual`. On the page of a
/// plan, `usual` is the priority of the plan, which steps inherit.
pub(super) fn facts(step: &StepShape, usual: Priority) -> Markup {
    let is_closed = matches!(step.status.as_str(), "completed" | "skipped");
    html! {
        @if let Some(who) = worker(step) { span class="who" { (isolated(who)) } }
        @if step.tasks_total > 0 {
            span class="fact" title="tasks" { "☑ " (step.tasks_done) "/" (step.tasks_total) }
        }
        @if step.priority != usual && !is_closed {
            span class={"fact priority-" (step.priority.word())} { (step.priority.word()) " priority" }
        }
        @if let Some(due) = step.due { span class="fact" { "due " (due) } }
        @if step.confirm && step.confirmed.is_none() { span class="fact gate" { "to confirm" } }
        @if step.lapsed { span class="fact warn" { "lapsed" } }
        @if step.unverified { span class="fact warn" { "not verified" } }
        @if let Some(phase) = &step.phase { span class="fact phase" { "phase " (isolated(phase)) } }
        @if !step.problems.is_empty() { span class="fact warn" { "problem in the file" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_words() {
        for (seconds, expected) in [
            (-5, "soon"),
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (7_200, "2 h ago"),
            (86_400, "yesterday"),
            (172_800, "2 days ago"),
            (5_184_000, "2 months ago"),
            (63_072_000, "2 years ago"),
        ] {
            assert_eq!(age(seconds), expected);
        }
    }
}
