//! A change of a plan's own file.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::plan::change::{self, NewNote, NewPlan};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::read::{self, PLAN_KEYS};
use crate::plan::words::PlanStatus;
use crate::store::decision::Decision;
use crate::store::idempotency;
use crate::store::load::{self, DecisionFiles, LoadQuery};
use crate::store::step_file;
use crate::store::transaction::{self, Applied, Changed, Transaction};
use crate::text::header_edit::Change;

#[derive(Debug, Default)]
pub(crate) struct PlanUpdate {
    pub(crate) status: Option<PlanStatus>,
    pub(crate) keys: Vec<Change>,
    pub(crate) notes: Vec<NewNote>,
    /// The new text below the heading.
    pub(crate) text: Option<String>,
    /// Replaces single bytes of the file: their offsets, and the new bytes.
    pub(crate) marks: Vec<(usize, u8)>,
    /// What the update did, for people.
    pub(crate) did: String,
}

/// Decides how a plan is changed, from the plan and the bytes of its `plan.md`. If that file is missing, the bytes are
/// empty.
pub(crate) type DecidePlan<'a> = &'a dyn Fn(&Plan, &[u8]) -> Result<PlanUpdate, Error>;

impl PlanUpdate {
    pub(crate) fn changes(&self, plan: &Plan) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.status.filter(|it| !plan.status.is(*it)).map(change::set_status));
        changes.extend(self.keys.iter().cloned());
        changes.extend(self.notes.iter().map(NewNote::change));
        changes
    }
}

/// Decides from the current `plan.md`, edits it, and reports the changed plan.
pub(crate) fn update(
    context: &Context,
    writing: &mut Transaction<'_>,
    id: &PlanId,
    decide: DecidePlan<'_>,
) -> Result<Changed, Error> {
    let plans = LoadQuery::plan_and_named(id).settled(DecisionFiles::PlanFile(id)).load(context)?.plans;
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    transaction::check_live(plan)?;
    transaction::check_writable(context, &plan.problems)?;
    let shown = |it: &Plan| it.shown_status().0.word().to_owned();
    let edit = |now: &Plan, own: &[u8], file: &[u8]| {
        precondition::check_plan(context, &plans, now)?;
        transaction::check_writable(context, &now.problems)?;
        let update = decide(now, own)?;
        let mut after = transaction::edit(&plan.path, file, &update.changes(now), PLAN_KEYS)?;
        if let Some(text) = &update.text {
            after = step_file::with_text(&after, text);
        }
        for (at, mark) in &update.marks {
            if let Some(byte) = after.get_mut(*at) {
                *byte = *mark;
            }
        }
        let outcome = (shown(now), update.did);
        idempotency::record(context, || {
            vec![changed(context, &plans, &read_again(context, plan, &after), outcome.clone(), true)]
        });
        Ok::<_, Error>((after, outcome))
    };
    let (applied, outcome) = if plan.etag.is_some() {
        let decide = |bytes: &[u8]| {
            let (after, outcome) = edit(&read_again(context, plan, bytes), bytes, bytes)?;
            Ok(Decision::Write(after, outcome))
        };
        let decided: Decision<_, _> = writing.change(&plan.path, &decide)?;
        let Decision::Write(applied, outcome) = decided;
        (applied, outcome)
    } else {
        let (bytes, outcome) = edit(plan, &[], &missing_file(plan, context)?)?;
        writing.create(&plan.path, &bytes)?;
        (Applied { bytes, was_written: true }, outcome)
    };
    let now = read_again(context, plan, &applied.bytes);
    Ok(changed(context, &plans, &now, outcome, applied.was_written))
}

fn changed(
    context: &Context,
    plans: &Plans,
    now: &Plan,
    (was, did): (String, String),
    was_written: bool,
) -> Changed {
    let mut all = plans.clone().into_vec();
    for it in all.iter_mut().filter(|it| it.path == now.path) {
        *it = now.clone();
    }
    let plans = Plans::new(all);
    let (was, status) = (Some(was), Some(now.shown_status().0.word().to_owned()));
    let shape = value(&Views::of(context, &plans).plan(now));
    let change = Changed::new(context, &now.id, (&now.title, &now.path), did, shape);
    Changed { was_written, was, status, ..change }
}

fn read_again(context: &Context, plan: &Plan, bytes: &[u8]) -> Plan {
    let content = read::Content::new(bytes.to_vec(), context.now);
    read::read_plan_again(plan, content, &context.config.words)
}

/// The content for a missing `plan.md`, as `planwatch new` writes it.
pub(crate) fn missing_file(plan: &Plan, context: &Context) -> Result<Vec<u8>, Error> {
    let new = NewPlan { title: plan.title.clone(), ..NewPlan::default() };
    transaction::edit(&plan.path, new.body().as_bytes(), &new.changes(context.now), PLAN_KEYS)
}
