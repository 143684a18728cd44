//! The actions for scripts. None of them runs a script.

use serde_json::{Value, json};

use crate::ops::script::{self, AddRequest, Resolved};
use crate::serve::mcp::result::{self, PAGE, Refusal, page, pick, put};
use crate::serve::mcp::tool::Call;
use crate::store::transaction::Mode;
use crate::text::typed::quoted;

use super::MemoryPlan;

pub(super) fn add(call: &Call, asked: MemoryPlan) -> Result<Value, Refusal> {
    let request = AddRequest {
        name: asked.script_name.unwrap_or_default(),
        command: asked.script_command.unwrap_or_default(),
        directory: asked.script_directory,
        plan: asked.plan_id,
        description: asked.script_description,
        mcp_handle: asked.script_mcp_handle,
        mode: Mode::Write,
    };
    result::changed(script::add(&call.context, &request)?)
}

pub(super) fn list(call: &Call, asked: &MemoryPlan) -> Result<Value, Refusal> {
    let all = script::list(&call.context, asked.plan_id.as_deref())?;
    let shape = |it: &Resolved| {
        let shown =
            "id name description? command directory? directory_path? command_path? plan? trusted path";
        pick(&it.to_json(), shown)
    };
    let from = (asked.limit, asked.cursor.as_deref());
    let page = page(&all, from, PAGE, |_, it| it.script.id.clone(), shape)?;
    let mut object = json!({});
    put(&mut object, "scripts", page);
    Ok(object)
}

/// Returns a script's command and directory, and the command line with which a person runs it.
pub(super) fn resolve(call: &Call, id: &str) -> Result<Value, Refusal> {
    let found = script::show(&call.context, id)?;
    script::refuse_faulty(&call.context, &found)?;
    let mut object = pick(&found.to_json(), "command directory_path? path");
    object["script_name"] = found.script.name.clone().into();
    object["trusted"] = found.is_trusted.into();
    let id = quoted(&found.script.id);
    object["run"] = if found.is_trusted {
        format!("planwatch script run {id}")
    } else {
        format!("a person must trust it first: planwatch trust {id}; then planwatch script run {id}")
    }
    .into();
    Ok(object)
}

pub(super) fn remove(call: &Call, asked: &MemoryPlan) -> Result<Value, Refusal> {
    let id = asked.script_id.as_deref().unwrap_or_default();
    if let Some(plan) = &asked.plan_id
        && let Some(other) =
            script::show(&call.context, id)?.script.plan.filter(|it| it.as_str() != plan.as_str())
    {
        let message = format!("the script `{id}` belongs to the plan `{other}`, not to `{plan}`");
        return Err(Refusal::new(
            "not-found",
            message,
            "repeat the call with that plan, or without `plan_id`",
        ));
    }
    result::changed(script::remove(&call.context, id, Mode::Write)?)
}
