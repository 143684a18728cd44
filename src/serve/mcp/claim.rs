//! The tool that claims a step.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ops::claim::{self, ClaimRequest};
use crate::ops::show::{self, ShowRequest};
use crate::plan::time::Time;
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::tool::{Call, Effect, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool::new(
        ("claim_next_step", "Claim the next step"),
        Effect::Adds,
        "Claims the next ready step exclusively. Pass claim.id to update_step.",
        "state why step:task? claim:obj?",
        claim_next_step,
    )]
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ClaimNext {
    /// A plan, or one step as auth:2; none: of all plans
    plan: Option<String>,
    /// Your name, if not the client's
    worker: Option<String>,
    /// Else 1800 or planwatch.toml's; your update_step renews it
    lease_seconds: Option<u32>,
}

fn claim_next_step(call: &Call, asked: ClaimNext) -> Result<Value, Refusal> {
    let ClaimNext { plan, worker, lease_seconds } = asked;
    if lease_seconds == Some(0) {
        return Err(Refusal::usage("a lease of 0 seconds is over at once", "leave lease_seconds out"));
    }
    let request = |target: Option<String>| ClaimRequest {
        target,
        by: worker.clone(),
        lease: lease_seconds.map(i64::from),
        ..ClaimRequest::default()
    };
    let context = &call.context;
    let report = match &plan {
        Some(plan) => lookup::plan(call, plan, |id| claim::claim(context, &request(Some(id.to_owned()))))?,
        None => claim::claim(context, &request(None))?,
    };
    let mut object = json!({"state": report.state, "why": report.why});
    let (Some(mut step), Some(claim)) = (report.step, report.claim) else {
        if report.state == "next" {
            // A step was ready, but other claims or saves were faster each time.
            object["state"] = "waiting".into();
            object["why"] = "what is ready is being changed at this moment; call again".into();
        }
        return Ok(object);
    };
    let id = step["id"].as_str().unwrap_or_default().to_owned();
    // The claim is valid even if reading the text fails.
    if let Ok(shown) = show::show(context, &ShowRequest { id, ..ShowRequest::default() }) {
        step["body"] = shown.to_json()["body"].clone();
    }
    object["step"] = result::step(&step);
    object["claim"] = json!({"id": claim.id});
    if let Some(until) = claim.until {
        object["claim"]["until"] = json!(Time::whole_seconds(until));
    }
    Ok(object)
}
