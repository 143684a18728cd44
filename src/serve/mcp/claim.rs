//! The tool that claims a step.

use serde_json::{Value, json};

use crate::ops::claim::{self, ClaimRequest};
use crate::ops::show::{self, ShowRequest};
use crate::plan::time::Time;
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::schema::{Object, read, take};
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};

pub(super) fn tools() -> Vec<Tool> {
    let claim = Tool::of::<ClaimRequest>(
        ("claim_next_step", "Claim the next step"),
        Effect::Adds,
        "Claims the next ready step exclusively. Pass claim.id to update_step.",
        (
            "plan:str?(A plan or step, e.g. auth:2; default: all plans) worker=by(Your name, if not the client's) \
             lease_seconds:int?(Default: that of planwatch.toml or 1800; update_step renews the lease)",
            "state why step:task? claim:obj?",
        ),
        claim_next_step,
    );
    // If there is no plans directory, no step is ready. So the call claims nothing and does not create the directory.
    vec![claim.without(|_| Without::Looks)]
}

fn claim_next_step(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let plan: Option<String> = take(&mut given, "plan")?;
    let lease: Option<u32> = take(&mut given, "lease_seconds")?;
    if lease == Some(0) {
        return Err(Refusal::usage("a lease of 0 seconds is over at once", "leave lease_seconds out"));
    }
    let (lease, is_renewed) = (lease.map(i64::from), call.renews);
    let asked = ClaimRequest { lease, is_renewed, ..read(given)? };
    let request = |target: Option<String>| ClaimRequest { target, ..asked.clone() };
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
            object["why"] = "all ready steps are being claimed or saved; call again".into();
        }
        return Ok(object);
    };
    let id = step["id"].as_str().unwrap_or_default().to_owned();
    // The claim is valid even if the step's text cannot be read.
    if let Ok(shown) = show::show(context, &ShowRequest { id, ..ShowRequest::default() }) {
        step["body"] = shown.to_json()["body"].clone();
    }
    object["step"] = result::step(&step);
    object["claim"] = json!({"id": claim.id});
    if let Some(until) = claim.until {
        object["claim"]["until"] = json!(Time::whole_seconds(until));
    }
    if let Some(until) = report.until_elsewhere {
        object["claim"]["until_elsewhere"] = json!(Time::whole_seconds(until));
    }
    Ok(object)
}
