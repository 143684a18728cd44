//! Routes that make, change and remove plans and steps.

use serde_json::{Value, json};

use super::answers::named;
use super::bodies::{DryBody, SetBody, SplitBody, UnsetBody};
use super::call::{Call, Reply};
use super::route::{MAKING, Route, WRITING, delete, get, post, query, words};
use super::{Problem, pages};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::add::{self, AddRequest};
use crate::ops::archive::{self, ArchiveRequest};
use crate::ops::create::{self, NewRequest};
use crate::ops::remove::{self, RemoveRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::ops::replace::{self, ReplaceRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::split::{self, SplitRequest, Task};
use crate::ops::squash::{self, SquashRequest};
use crate::ops::steps_list::{self, StepsListRequest};
use crate::ops::undo::{self, UndoRequest};
use crate::text::scalar;

pub(crate) fn routes() -> Vec<Route> {
    [making(), fields(), steps(), taking_away()].concat()
}

const PLAN: &[&str] =
    &["get_plan", "show", "list_steps", "add_step", "claim_plan", "archive_plan", "remove_plan"];
const STEP: &[&str] = &["get_step", "show", "start_step", "complete_step", "set_step", "remove_step"];

fn change(route: Route, about: &'static str) -> Route {
    route.about(about).answers(200, named("change")).refuses(WRITING)
}

fn making() -> Vec<Route> {
    let new = json!({"title": "Sign in", "steps": ["Design the schema", "Write the tests"], "dry_run": true});
    let add = json!({"title": "Measure it", "after": "1", "depends": ["1"], "dry_run": true});
    vec![
        change(post("/api/new", "new_plan", "new"), "Make a plan with its steps")
            .body::<NewRequest>(new)
            .answers(201, named("change"))
            .refuses(MAKING)
            .links("id", "/changes/0/id", PLAN)
            .makes_at("/api/plans/")
            .by(new_plan),
        change(post("/api/plans/{id}/add", "add_step", "add"), "Add a step to a plan")
            .body::<AddRequest>(add)
            .answers(201, named("change"))
            .links("id", "/changes/0/id", STEP)
            .makes_at("/api/steps/")
            .by(add_step),
    ]
}

fn fields() -> Vec<Route> {
    let value = json!({"key": "priority", "value": "high", "dry_run": true});
    let key = json!({"key": "assignee", "dry_run": true});
    vec![
        change(post("/api/steps/{id}/set", "set_step", "set"), "Change a field of a step")
            .body::<SetBody>(value.clone())
            .links("id", "/changes/0/id", STEP)
            .by(|context, call| set_field(context, call, call.step()?)),
        change(post("/api/plans/{id}/set", "set_plan", "set"), "Change a field of a plan")
            .body::<SetBody>(value)
            .links("id", "/changes/0/id", PLAN)
            .by(|context, call| set_field(context, call, call.plan()?)),
        change(post("/api/steps/{id}/unset", "unset_step", "unset"), "Remove a field of a step")
            .body::<UnsetBody>(key.clone())
            .links("id", "/changes/0/id", STEP)
            .by(|context, call| unset_field(context, call, call.step()?)),
        change(post("/api/plans/{id}/unset", "unset_plan", "unset"), "Remove a field of a plan")
            .body::<UnsetBody>(key)
            .links("id", "/changes/0/id", PLAN)
            .by(|context, call| unset_field(context, call, call.plan()?)),
    ]
}

fn steps() -> Vec<Route> {
    vec![
        change(post("/api/steps/{id}/move", "move_step", "move"), "Move a step to another place in its plan")
            .body::<RenumberRequest>(json!({"after": "1", "dry_run": true}))
            .links("id", "/changes/0/id", STEP)
            .by(move_step),
        change(
            post("/api/steps/{id}/split", "split_step", "split"),
            "Make a task of a step a step of its own",
        )
        .body::<SplitBody>(json!({"task": 1, "dry_run": true}))
        .answers(201, named("change"))
        .links("id", "/changes/0/id", STEP)
        .makes_at("/api/steps/")
        .by(split_step),
        change(
            post("/api/plans/{id}/steps-list", "write_steps_list", "steps-list"),
            "Write the Steps list of a plan that has none",
        )
        .body::<DryBody>(json!({"dry_run": true}))
        .links("id", "/changes/0/id", PLAN)
        .by(write_steps_list),
        change(post("/api/plans/{id}/squash", "squash_steps", "squash"), "Merge several steps into one")
            .body::<SquashRequest>(json!({"steps": ["1", "2"], "title": "Both at once", "dry_run": true}))
            .links("id", "/changes/0/id", STEP)
            .by(squash_steps),
        change(
            post("/api/plans/{id}/replace", "replace_steps", "replace"),
            "Replace the steps of a plan with those of a list",
        )
        .body::<ReplaceRequest>(
            json!({"steps": ["Design", {"title": "Tests", "depends": ["1"]}], "dry_run": true}),
        )
        .links("id", "/changes/0/id", STEP)
        .by(replace_steps),
    ]
}

fn taking_away() -> Vec<Route> {
    let dry = || json!({"dry_run": true});
    vec![
        change(delete("/api/steps/{id}", "remove_step", "remove"), "Remove a step; undo restores it")
            .asks::<RemoveRequest>(
                &json!({"by": "ann", "claim": "h4f09a21", "force": false, "dry_run": true}),
            )
            .by(|context, call| removed(context, call, call.step()?)),
        change(delete("/api/plans/{id}", "remove_plan", "remove"), "Remove a plan; undo restores it")
            .asks::<RemoveRequest>(
                &json!({"by": "ann", "claim": "h4f09a21", "force": false, "dry_run": true}),
            )
            .takes([query(
                "yes",
                words(&["true"]),
                "Give `yes=true` in the query to remove the plan with all of its steps",
                "true",
            )
            .required()])
            .by(|context, call| removed(context, call, call.plan()?)),
        change(post("/api/plans/{id}/archive", "archive_plan", "archive"), "Archive a plan")
            .body::<DryBody>(dry())
            .links("id", "/changes/0/id", &["show", "restore_plan"])
            .by(|context, call| carried(context, call, false)),
        change(post("/api/plans/{id}/restore", "restore_plan", "restore"), "Restore an archived plan")
            .body::<DryBody>(dry())
            .links("id", "/changes/0/id", PLAN)
            .by(|context, call| carried(context, call, true)),
        get("/api/undo", "list_undo", "undo")
            .about("List the last changes and whether they can be undone, newest first")
            .takes(pages::parameters())
            .does(named("undo-list"), &[], undo_list),
        change(post("/api/undo", "undo", "undo"), "Undo a change, if its files have not changed since")
            .body::<UndoRequest>(dry())
            .refuses(MAKING)
            .by(take_back),
    ]
}

fn new_plan(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::made(&create::new(context, &call.body()?)?))
}

fn add_step(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = AddRequest { plan: call.plan()?, ..call.body()? };
    Ok(Reply::made(&add::add(context, &request)?))
}

fn set_field(context: &Context, call: &Call, id: String) -> Result<Reply, Problem> {
    let SetBody { key, value, op, by, claim, force, mode } = call.body()?;
    let op = match (op.as_deref().unwrap_or("set"), value) {
        (_, Value::Null) => return Err(Error::usage("there is no value", "`unset` removes the field").into()),
        ("set", Value::String(text)) => SetOp::Text(text),
        ("add", Value::String(text)) => SetOp::Add(text),
        ("take", Value::String(text)) => SetOp::Take(text),
        ("set", value) => SetOp::of_json(&value),
        ("add", value) => SetOp::AddYaml(scalar::json(&value)),
        ("take", value) => SetOp::TakeYaml(scalar::json(&value)),
        (other, _) => {
            return Err(Error::usage(format!("unknown action `{other}`"), "`op` is set, add or take").into());
        }
    };
    let request = SetRequest { id, key, op, by, claim, force, mode };
    Ok(Reply::changed(&set::set(context, &request)?))
}

fn unset_field(context: &Context, call: &Call, id: String) -> Result<Reply, Problem> {
    let UnsetBody { key, by, claim, force, mode } = call.body()?;
    let request = SetRequest { id, key, op: SetOp::Unset, by, claim, force, mode };
    Ok(Reply::changed(&set::set(context, &request)?))
}

fn move_step(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = RenumberRequest { id: call.step()?, ..call.body()? };
    Ok(Reply::changed(&renumber::renumber(context, &request)?))
}

fn split_step(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let SplitBody { task, by, mode } = call.body()?;
    let request = SplitRequest { id: call.step()?, task: Task::Number(task), by, mode };
    Ok(Reply::made(&split::split(context, &request)?))
}

fn write_steps_list(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let DryBody { mode } = call.body()?;
    let request = StepsListRequest { plan: call.plan()?, mode };
    Ok(Reply::changed(&steps_list::insert(context, &request)?))
}

fn squash_steps(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = SquashRequest { plan: call.plan()?, ..call.body()? };
    Ok(Reply::changed(&squash::squash(context, &request)?))
}

fn replace_steps(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = ReplaceRequest { plan: call.plan()?, shown: "steps".to_owned(), ..call.body()? };
    Ok(Reply::changed(&replace::replace(context, &request)?))
}

fn removed(context: &Context, call: &Call, id: String) -> Result<Reply, Problem> {
    let is_confirmed = call.text("yes").is_some();
    let request = RemoveRequest { ids: vec![id], is_confirmed, ..call.asked()? };
    Ok(Reply::changed(&remove::remove(context, &request)?))
}

fn carried(context: &Context, call: &Call, restores: bool) -> Result<Reply, Problem> {
    let DryBody { mode } = call.body()?;
    let request = ArchiveRequest { plans: vec![call.plan()?], restores, force: false, mode };
    Ok(Reply::changed(&archive::archive(context, &request)?))
}

fn undo_list(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let reply = Reply::of("undo-list", undo::list_to_json(&undo::undo_list(context)));
    pages::page(call, reply, "changes", Value::to_string)
}

fn take_back(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::changed(&undo::undo(context, &call.body()?)?))
}
