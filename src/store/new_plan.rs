//! A new plan: its id, its files, the operations that create them, and the plan as it will be read.

use std::path::Path;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{Views, value};
use crate::disk::FileOp;
use crate::plan::change::{NewPlan, set_text};
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{self, PlanId};
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::problem::Severity;
use crate::plan::read::{self, Bodies, Content, PLAN_KEYS, PlanSources, Source};
use crate::store::transaction::{self, Changed};
use crate::store::{load, step_file};
use crate::text::{front_matter, markdown};

/// The names and contents of files, `plan.md` first.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// The id that a plan of this title gets.
pub(crate) fn free_id(context: &Context, title: &str) -> PlanId {
    let taken = load::taken_names(context);
    PlanId::new(id::slug(title, &|it| taken.iter().any(|name| name.eq_ignore_ascii_case(it))))
}

pub(crate) fn operations(id: &PlanId, files: &[(String, Vec<u8>)]) -> Vec<FileOp> {
    let path = |name: &str| Path::new(id.as_str()).join(name);
    files.iter().map(|(name, bytes)| FileOp::Create { path: path(name), bytes: bytes.clone() }).collect()
}

/// Reports the new plan as it will be read, also in a dry run.
pub(crate) fn changed(context: &Context, id: &PlanId, files: &[(String, Vec<u8>)]) -> Changed {
    let plan = as_read(context, id, files);
    let plans = Plans::new(vec![plan.clone()]);
    let did = format!("made with {} file{}", files.len(), if files.len() == 1 { "" } else { "s" });
    let (status, now) = (plan.shown_status().0.word().to_owned(), Views::of(context, &plans).plan(&plan));
    let change = Changed::new(context, id, (&plan.title, id.as_str()), did, value(&now));
    Changed { status: Some(status), ..change }
}

pub(crate) fn as_read(context: &Context, id: &PlanId, files: &[(String, Vec<u8>)]) -> Plan {
    let source = |name: &str, bytes: &Vec<u8>| Source {
        path: format!("{id}/{name}"),
        content: Ok(Content::new(bytes.clone(), context.now)),
    };
    let mut sources = PlanSources::default();
    for (name, bytes) in files {
        match crate::plan::file_name::classify(name) {
            crate::plan::file_name::FileName::Step(number) => {
                sources.steps.push((number, source(name, bytes)));
            }
            _ => sources.plan = Some(source(name, bytes)),
        }
    }
    read::read_plan(id, false, &sources, &context.config.words, Bodies::Drop)
}

/// Returns the content of a new `plan.md` with the text `body`. Sets the requested keys, and adds the usual keys of a new
/// plan if the front matter of `body` lacks them. If `body` is blank, the text is made from the title and description.
pub(crate) fn plan_file(context: &Context, new: &NewPlan, body: &str) -> Result<Vec<u8>, Error> {
    if body.trim().is_empty() {
        return transaction::edit(PLAN_FILE, new.body().as_bytes(), &new.changes(context.now), PLAN_KEYS);
    }
    let bytes = with_end(body);
    let own = step_file::own_keys(&bytes);
    let mut changes = new.changes(context.now);
    let has_heading = heading(body).is_some();
    changes.extend((!has_heading).then(|| set_text("title", &new.title)));
    const USUAL: [&str; 4] = ["status", "title", "order", "created_at"];
    changes.retain(|it| !USUAL.contains(&it.key()) || !own.iter().any(|key| key == it.key()));
    changes.extend(new.description.as_ref().map(|it| set_text("description", it)));
    transaction::edit(PLAN_FILE, &bytes, &changes, PLAN_KEYS)
}

pub(crate) fn with_end(text: &str) -> Vec<u8> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}").into_bytes()
}

pub(crate) fn heading(text: &str) -> Option<String> {
    let body = &text[front_matter::split(text.as_bytes()).body_start()..];
    markdown::outline(body).title().filter(|it| !it.is_empty()).map(str::to_owned)
}

/// Refuses the text of a plan's or a step's file if its front matter has a confirmation, because only a person can confirm.
pub(crate) fn refuse_confirmations(context: &Context, text: &str) -> Result<(), Error> {
    let files = [PLAN_FILE, "step-1.md"].map(|name| (name.to_owned(), text.as_bytes().to_vec()));
    let plan = as_read(context, &PlanId::new("text"), &files);
    if plan.confirmations.is_empty() && plan.steps.iter().all(|it| it.confirmed.is_none()) {
        return Ok(());
    }
    let hint =
        "leave out `confirmed` and `confirmations`; a person confirms the step or the phase afterwards";
    Err(Error::failed(
        "confirmation-by-person",
        "only a person can confirm, and this text has a confirmation",
        hint,
    ))
}

pub(crate) fn refuse_faulty(plan: &Plan) -> Result<(), Error> {
    let fault = plan.problems.iter().find(|it| it.severity() == Severity::Error);
    fault.map_or(Ok(()), |it| Err(Error::File { problem: Box::new(it.clone()) }))
}
