//! Checks a change of status before it is requested. If the model shows that the operation would refuse the change, the
//! board refuses it before the user types a reason. Before a key changes the status of a plan, the board asks for
//! confirmation.

use planwatch::api::error::Error;
use planwatch::ops::update;
use planwatch::plan::model::{PlanKind, StatusSource};
use planwatch::plan::transitions::Verb;

use super::engine::{self, Request};
use super::keys::Effect;
use super::model::{Model, Severity};
use super::prompt::Prompt;
use crate::failure::Failure;
use crate::screens::count;

/// Handles a key for a change of status: shows a refusal, opens a prompt, or returns the request.
pub(super) fn of_move(model: &mut Model, request: Request, verb: Verb) -> Option<Effect> {
    let is_plan = model.plan_id.as_ref() == Some(&request.id);
    let refused = if is_plan { plan_refusal(model, verb) } else { step_refusal(model, &request.id, verb) };
    if let Some(error) = refused {
        model.message = Some((Severity::Error, engine::sentence(&Failure::of(&error))));
        return None;
    }
    match verb {
        Verb::Fail | Verb::Block => model.ask_words(request),
        // If the plan has the status already, there is no question: the operation reports that nothing changes.
        _ if is_plan && !is_already(model, verb) => model.prompt = Some(plan_question(model, request, verb)),
        _ => return Some(Effect::Request(request)),
    }
    None
}

/// Checks only the moves that ask for a reason. The operation checks the others.
fn step_refusal(model: &Model, id: &str, verb: Verb) -> Option<Error> {
    let step = model.steps().iter().find(|it| it.id == id)?;
    matches!(verb, Verb::Fail | Verb::Block)
        .then(|| update::step_not_allowed(step, verb, &model.by))
        .flatten()
}

fn plan_refusal(model: &Model, verb: Verb) -> Option<Error> {
    let plan = model.selected_plan()?;
    // The steps of a program's plans are not read here. So only the operation checks whether a program has open steps.
    let open = model.steps().iter().filter(|it| !matches!(it.status.as_str(), "completed" | "skipped"));
    let open: Vec<_> = open.map(|it| format!("{} ({})", it.id, it.status)).collect();
    update::plan_not_allowed(plan, verb, if plan.kind == PlanKind::Program { &[] } else { &open })
}

fn is_already(model: &Model, verb: Verb) -> bool {
    let of_file = model.selected_plan().filter(|it| it.status_source == StatusSource::File);
    of_file.is_some_and(|it| {
        matches!(
            (verb, it.status.as_str()),
            (Verb::Start | Verb::Reopen, "active") | (Verb::Done, "completed") | (Verb::Skip, "abandoned")
        )
    })
}

fn plan_question(model: &Model, request: Request, verb: Verb) -> Prompt {
    let plan = model.selected_plan();
    let open = plan.map_or(0, |it| it.steps_total - it.steps_completed - it.steps_skipped);
    let open = if open == 0 { String::new() } else { format!(", {}", count(open, "open step")) };
    let (word, does) = match verb {
        Verb::Skip => ("abandon", "abandons"),
        Verb::Done => ("complete", "completes"),
        Verb::Reopen => ("reopen", "reopens"),
        _ => ("activate", "activates"),
    };
    let label = format!("{word} the plan {}{open}?", request.id);
    Prompt::question(label, format!("Enter {does} it, Esc cancels"), request)
}

/// The keys of the board for the commands that a hint names.
pub(super) fn keys_of(hint: &str) -> String {
    let named = [
        ("reopen", "r reopens it"),
        ("start", "s starts it"),
        ("confirm", "y confirms it"),
        ("claim", "c claims it"),
    ];
    let found = named.iter().filter(|(verb, _)| hint.contains(&format!("`planwatch {verb} ")));
    found.map(|(_, key)| format!(" · {key}")).collect()
}
