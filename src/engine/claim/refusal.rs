//! Why a step that was named is not handed out.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::shape::shown_path;
use crate::engine::update;
use crate::plan::claims::Holding;
use crate::plan::model::{Plan, Step};
use crate::plan::moves::Verb;
use crate::plan::plans::Plans;
use crate::plan::problem::{Problem, Severity};
use crate::plan::rules::Obstacle;
use crate::plan::words::StepStatus;
use crate::text::typed::shell_word;

/// Says what stands against a step, as the first thing to be done about it.
pub(super) fn against(
    context: &Context,
    (plans, plan, step): (&Plans, &Plan, &Step),
    obstacles: &[Obstacle],
) -> Error {
    let id = step.id.to_string();
    let of_problem = |it: &Problem| {
        let path = shown_path(&context.root_name(), &it.path);
        Error::File { problem: Box::new(Problem { path, ..it.clone() }) }
    };
    let first_error =
        |all: &[Problem]| all.iter().find(|it| it.severity() == Severity::Error).map(of_problem);
    let conflict = |message: String, hint: String| Error::Conflict { code: "not-allowed", message, hint };
    let told = obstacles.iter().find_map(|it| match it {
        Obstacle::Claimed { by } => Some(held(plans, step, by.as_deref())),
        Obstacle::PlanClosed => {
            let message = format!("`{}` is {}; it hands out nothing", plan.id, plan.status.word());
            Some(conflict(message, format!("`planwatch start {}` makes it active", shell_word(&plan.id))))
        }
        Obstacle::PlanFaulty => first_error(&plan.problems),
        Obstacle::Faulty { .. } => first_error(&step.problems),
        Obstacle::Status(word) if step.is_unverified() => {
            let hint = format!("`planwatch run {}` verifies it; `planwatch done {id_word}` believes it, `planwatch reopen {id_word}` does not", shell_word(&plan.id), id_word = shell_word(&id));
            Some(conflict(format!("`{id}` is {word}"), hint))
        }
        Obstacle::Status(word) => {
            let hint = format!("`planwatch reopen {id_word}` makes it pending again", id_word = shell_word(&id));
            Some(conflict(format!("`{id}` is {word}; `claim` takes pending steps"), hint))
        }
        _ => None,
    });
    let told = told.or_else(|| update::refusal(context, (plans, plan, step), Verb::Start));
    told.unwrap_or_else(|| {
        let hint = format!("`planwatch show {id_word}` tells of it", id_word = shell_word(&id));
        conflict(format!("`{id}` has no file of its own, or is not ready"), hint)
    })
}

/// Who has the step: by its file, or by what is recorded beside it.
pub(crate) fn held(plans: &Plans, step: &Step, by: Option<&str>) -> Error {
    let id = step.id.to_string();
    let by = by.map(str::to_owned);
    match plans.claims().holder(step).map(|it| &it.holding) {
        Some(Holding::Elsewhere { worktree, is_gone: true }) => {
            let by = by.unwrap_or_else(|| "somebody".to_owned());
            let message = format!("`{id}` is claimed by {by} in {worktree}, which is gone");
            let hint =
                format!("`planwatch release {id_word} --force` ends that claim", id_word = shell_word(&id));
            Error::Conflict { code: "claimed", message, hint }
        }
        Some(Holding::Elsewhere { worktree, .. }) => {
            let by = by.unwrap_or_else(|| "somebody".to_owned());
            Error::Held { id, by: format!("{by} in the working tree {worktree}") }
        }
        Some(Holding::Closed { branch }) => {
            let branch =
                branch.as_deref().map_or("another branch", |it| it.trim_start_matches("refs/heads/"));
            let message = format!("`{id}` was closed on {branch}, which is not merged here");
            let hint = "merge it, or use --force, which is recorded".to_owned();
            Error::Conflict { code: "claimed", message, hint }
        }
        _ if step.claim.is_none() && step.status.is(StepStatus::InProgress) => {
            let message = format!("`{id}` is in progress without a claim: somebody started it");
            let hint = format!("`planwatch release {id_word}` puts it back", id_word = shell_word(&id));
            Error::Conflict { code: "claimed", message, hint }
        }
        _ => {
            let claim = step.claim.as_ref().map(|it| format!("the claim {}", it.id));
            Error::Held { id, by: by.or(claim).unwrap_or_else(|| "somebody".to_owned()) }
        }
    }
}
