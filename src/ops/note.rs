//! `note`: adds a note to a plan or a step, also to a step that another worker has claimed.

use std::cell::Cell;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::NewNote;
use crate::plan::records::NoteType;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller};
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::resolve::{self, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::sync::ending;
use crate::store::transaction::ChangeReport;

pub use crate::api::requests::NoteRequest;

pub fn note(context: &Context, request: &NoteRequest) -> Result<ChangeReport, Error> {
    if request.text.trim().is_empty() {
        let hint = "give a text, for example `planwatch note auth:2 'ask first'`";
        return Err(Error::usage("the note is empty", hint));
    }
    let kind = request.kind.as_deref().map_or(Some(NoteType::Info), NoteType::read);
    let kind = kind
        .ok_or_else(|| Error::usage("a note is info, warning or instruction", "leave --type out for info"))?;
    let by = request.by.clone().unwrap_or_else(|| context.by.clone());
    let note = NewNote { at: context.now, kind, by, text: request.text.clone() };
    let did = || "noted".to_owned();
    // Any caller may add a note, but only a note by the owner of the step's claim renews the claim.
    let owner = Cell::new(None);
    let report = change_one_by_one(
        context,
        "note",
        std::slice::from_ref(&request.id),
        request.mode,
        |writing, id| match resolve::target(context, id)? {
            Target::Plan(plan) => plan_file::update(context, writing, &plan, &|_, _| {
                Ok(PlanUpdate { notes: vec![note.clone()], did: did(), ..PlanUpdate::default() })
            }),
            Target::Step(step) => {
                let who = Caller::of(context, &step.id, request.by.as_deref(), None, false);
                step_file::update(context, writing, &step, &|now| {
                    let renews = fencing::is_owner(now.step, &who);
                    owner.set(renews.then(|| now.step.id.clone()));
                    Ok(StepUpdate { notes: vec![note.clone()], renews, did: did(), ..StepUpdate::default() })
                })
            }
        },
    )?;
    if let Some(step) = owner.take().filter(|_| !report.is_dry_run) {
        ending::renewed(context, &step);
    }
    Ok(report)
}
