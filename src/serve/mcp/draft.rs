//! The tool that drafts a plan from a conversation in several passes. The calling agent answers the prompt of each pass.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::ops::draft::turns::{self, BeginRequest};
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};

pub(super) fn tools() -> Vec<Tool> {
    let refine = Tool::new(
        ("refine_draft", "Refine a draft"),
        Effect::Adds,
        "Drafts a plan from a conversation. Start with `plan` and `conversation`; send your answer to each `prompt` as \
         `output`, with the returned `draft`, until no `prompt` comes back. Then call add_step, and update_plan with \
         status active.",
        "state pass:int passes:int draft? focus? prompt? plan? path? change? why?",
        refine_draft,
    );
    vec![refine.without(|_| Without::Makes)]
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Refine {
    /// Id of a draft, or title of a new one
    plan: Option<String>,
    conversation: Option<String>,
    /// Maximum
    passes: Option<u32>,
    /// From the last answer
    draft: Option<String>,
    /// The whole text, or CONVERGED
    output: Option<String>,
}

/// A prompt contains at most this many bytes of the conversation.
const CONVERSATION: usize = 100_000;

fn refine_draft(call: &Call, asked: Refine) -> Result<Value, Refusal> {
    let context = &call.context;
    let turn = match asked {
        Refine { draft: Some(draft), output: Some(output), .. } => turns::answer(context, &draft, &output)?,
        Refine { plan: Some(name), conversation: Some(conversation), passes, draft: None, .. } => {
            turns::begin(context, &BeginRequest { name, conversation, passes, limit: CONVERSATION })?
        }
        _ => {
            let hint = "start with `plan` and `conversation`, continue with `draft` and `output`";
            return Err(Refusal::usage("the call neither starts a draft nor answers a prompt", hint));
        }
    };
    Ok(result::pick(&turn.to_json(), "state pass passes draft? focus? prompt? plan? path? change? why?"))
}
