//! The commands that a run suggests when it is over, each with its purpose.

use std::time::Duration;

use crate::api::agents::{AgentCommand, SHELL};
use crate::ops::run::{End, RunRequest};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::Step;
use crate::plan::words::StepStatus;
use crate::text::typed::{quoted, shell_word};

/// `step` is the step at which the run ended, and this step as its file says now.
pub(super) fn hints(
    request: &RunRequest,
    plan: &PlanId,
    end: End,
    step: (Option<&StepId>, Option<&Step>),
) -> Vec<(String, &'static str)> {
    let run = (continuing(request, plan), "to continue");
    let plan = shell_word(plan);
    let list = (format!("planwatch list {plan}"), "to list its steps");
    let of = |verb: &str, what: &'static str| {
        step.0.map(|it| (format!("planwatch {verb} {}", shell_word(it)), what))
    };
    match (end, step) {
        (End::Complete, _) => vec![list],
        (End::Halted, (Some(_), now)) if now.is_some_and(|it| it.unreadable().is_some()) => {
            let check = (format!("planwatch check {plan}"), "to see the error in the file");
            vec![check, run]
        }
        (End::Halted, (Some(_), now)) => {
            let show = of("show", "to see what happened");
            let is_pending = now.is_some_and(|it| it.status.is(StepStatus::Pending));
            let reopen = of("reopen", "to allow new attempts").filter(|_| !is_pending);
            show.into_iter().chain(reopen).chain([run]).collect()
        }
        (End::ConfirmationNeeded, (Some(_), _)) => {
            let show = of("show", "to see what it is about");
            show.into_iter().chain(of("confirm", "to confirm it")).chain([run]).collect()
        }
        (End::NothingReady, _) => {
            vec![list, (format!("planwatch next {plan}"), "to see why nothing is ready")]
        }
        _ => vec![list, run],
    }
}

/// The command line of a run that works on steps in the same way. Limits of the whole run and trust for one run are left out.
fn continuing(request: &RunRequest, plan: &PlanId) -> String {
    let agent = match &request.agent.command {
        AgentCommand::Line(line) if request.agent.name == SHELL => format!("--command {}", quoted(line)),
        _ => format!("--agent {}", quoted(&request.agent.name)),
    };
    let seconds = |it: Duration| format!("{}s", it.as_secs());
    let options = [
        ("--by", request.by.as_deref().map(quoted)),
        ("--jobs", (request.jobs > 1).then(|| request.jobs.to_string())),
        ("--max-attempts", request.max_attempts.map(|it| it.to_string())),
        ("--timeout", request.timeout.map(seconds)),
        ("--idle", request.idle.map(seconds)),
    ];
    let flags = [
        ("--commit", request.commits),
        ("--worktrees", request.has_worktrees),
        ("--keep-worktrees", request.keeps_worktrees),
    ];
    let options = options.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", value?)));
    let flags = flags.into_iter().filter(|it| it.1).map(|(name, _)| format!(" {name}"));
    format!("planwatch run {} {agent}{}", shell_word(plan), options.chain(flags).collect::<String>())
}
