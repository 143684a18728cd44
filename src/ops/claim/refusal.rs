//! Why a named step cannot be claimed.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Problem, Severity};
use crate::plan::rules::Obstacle;
use crate::plan::transitions::Verb;
use crate::store::{fencing, plan_status, step_moves, transaction};
use crate::text::typed::shell_word;

/// The error for a step with these obstacles, with a hint about what to do.
pub(super) fn against(
    context: &Context,
    (plans, plan, step): (&Plans, &Plan, &Step),
    obstacles: &[Obstacle],
) -> Error {
    let id = step.id.to_string();
    let first_error = |all: &[Problem]| {
        let error = all.iter().find(|it| it.severity() == Severity::Error);
        error.map(|it| transaction::file_error(context, it))
    };
    let conflict = |message: String, hint: String| Error::conflict("not-allowed", message, hint);
    let told = obstacles.iter().find_map(|it| match it {
        Obstacle::Claimed { by } => Some(fencing::held_by(plans, step, by.as_deref())),
        Obstacle::PlanClosed => {
            let message = format!("`{}` is {}; its steps cannot be claimed", plan.id, plan.status.word());
            let verb = if plan_status::is_over(plan) { "reopen" } else { "start" };
            Some(conflict(message, format!("`planwatch {verb} {}` makes it active", shell_word(&plan.id))))
        }
        Obstacle::PlanFaulty => first_error(&plan.problems),
        Obstacle::Faulty { .. } => first_error(&step.problems),
        Obstacle::Status(word) if step.is_unverified() => {
            let hint = format!("`planwatch run {}` verifies it; `planwatch done {id_word}` accepts it without verification, `planwatch reopen {id_word}` reopens it", shell_word(&plan.id), id_word = shell_word(&id));
            Some(conflict(format!("`{id}` is {word}"), hint))
        }
        Obstacle::Status(word) => {
            let hint = format!("`planwatch reopen {}` makes it pending again", shell_word(&id));
            Some(conflict(format!("`{id}` is {word}; only pending steps can be claimed"), hint))
        }
        _ => None,
    });
    let told = told.or_else(|| step_moves::refusal(context, (plans, plan, step), Verb::Start));
    told.unwrap_or_else(|| {
        let hint = format!("`planwatch show {}` shows it", shell_word(&id));
        conflict(format!("`{id}` has no file of its own, or is not ready"), hint)
    })
}
