//! Prompts, which clients show as commands, and the completion of arguments.

use rmcp::ErrorData;
use rmcp::model::{
    CompletionInfo, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

use crate::ops::decide;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::skills;
use crate::plan::words::nearest;
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::tool::Call;

/// The answer to `prompts/list`.
pub(super) fn list() -> Vec<Prompt> {
    let prompt = |it: &skills::Skill| {
        let argument = it.argument.map(|argument| {
            let named = PromptArgument::new("plan").with_description(argument.description);
            vec![named.with_required(argument.is_required)]
        });
        Prompt::new(it.name, Some(it.description()), argument).with_title(it.title)
    };
    skills::ALL.iter().map(prompt).collect()
}

/// A prompt with its text. The plan that the request names need not exist.
pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let wrong = |message: String| ErrorData::invalid_params(message, None);
    let name = &request.name;
    let skill = skills::find(name).ok_or_else(|| {
        let near = nearest(name, skills::ALL.iter().map(|it| it.name));
        let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        wrong(format!("there is no prompt `{}`{near}", super::short(name)))
    })?;
    let mut arguments = request.arguments.clone().unwrap_or_default();
    // The names that other planning programs use for the argument `plan`.
    for other in ["plan_id", "plan_name", "plan-name"] {
        if let Some(plan) = arguments.remove(other).filter(|_| skill.argument.is_some()) {
            arguments.entry("plan").or_insert(plan);
        }
    }
    if let Some(unknown) = arguments.keys().find(|it| *it != "plan" || skill.argument.is_none()) {
        return Err(wrong(format!("the prompt `{name}` has no argument `{}`", super::short(unknown))));
    }
    let plan = arguments.get("plan").and_then(|it| it.as_str()).map(str::trim).filter(|it| !it.is_empty());
    if plan.is_none() && skill.argument.is_some_and(|it| it.is_required) {
        return Err(wrong(format!("the prompt `{name}` needs the argument `plan`")));
    }
    let text = skill.prompt(plan).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(result.with_description(skill.description()))
}

/// Completes an argument: first the values that begin with the typed text, then the other values that contain it. Step
/// numbers are completed from the steps of `plan`.
pub(super) fn complete(
    call: &Call,
    argument: &str,
    typed: &str,
    plan: Option<&str>,
) -> Result<CompletionInfo, Refusal> {
    let all: Vec<String> = match argument {
        "plan" => plans(call)?,
        "n" | "step" => plan.map_or_else(|| Ok(Vec::new()), |plan| numbers(call, plan))?,
        "topic" => decide::topics(&call.context).into_iter().map(|it| it.topic).collect(),
        _ => Vec::new(),
    };
    let typed = typed.to_lowercase();
    let (first, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|it| it.to_lowercase().starts_with(&typed));
    let rest = rest.into_iter().filter(|it| it.to_lowercase().contains(&typed));
    let found: Vec<_> = first.into_iter().chain(rest).collect();
    let total = u32::try_from(found.len()).ok();
    let has_more = found.len() > CompletionInfo::MAX_VALUES;
    let values = found.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let info = CompletionInfo::with_pagination(values, total, has_more);
    info.map_err(|error| Refusal::new("bug", error, "complete it by hand"))
}

/// The plans that are not archived, active and draft ones first.
fn plans(call: &Call) -> Result<Vec<String>, Refusal> {
    let request = ListRequest { all: true, ..ListRequest::default() };
    let ListReport::Plans { plans, .. } = list::list(&call.context, &request)? else { return Ok(Vec::new()) };
    let live = plans.into_iter().filter(|it| !it.archived);
    let (open, over): (Vec<_>, Vec<_>) =
        live.partition(|it| matches!(it.status.as_str(), "active" | "draft"));
    Ok(open.into_iter().chain(over).map(|it| it.id).collect())
}

fn numbers(call: &Call, plan: &str) -> Result<Vec<String>, Refusal> {
    let request = ListRequest { plan: Some(plan.to_owned()), ..ListRequest::default() };
    match list::list(&call.context, &request) {
        Ok(ListReport::Steps { steps, .. }) => Ok(steps.into_iter().map(|it| it.number).collect()),
        Ok(_) => Ok(Vec::new()),
        Err(error) if error.code() == "not-found" => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
