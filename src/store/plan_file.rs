//! A change of a plan's own file, from what it is now to what it should be.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, shown_path, value};
use crate::plan::change::{self, NewNote, NewPlan};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::read::{self, PLAN_KEYS};
use crate::plan::words::PlanStatus;
use crate::store::decision::Decision;
use crate::store::idempotency;
use crate::store::load::{self, LoadQuery, Rests};
use crate::store::transaction::{self, Applied, Changed, Transaction};
use crate::text::header_edit::Change;

/// What is to become of a plan.
#[derive(Debug, Default)]
pub(crate) struct PlanUpdate {
    pub(crate) status: Option<PlanStatus>,
    pub(crate) keys: Vec<Change>,
    pub(crate) notes: Vec<NewNote>,
    /// In the past tense, for people.
    pub(crate) did: String,
}

/// Decides what becomes of a plan, on its file's bytes; empty if it has no file.
pub(crate) type Decide<'a> = &'a dyn Fn(&Plan, &[u8]) -> Result<PlanUpdate, Error>;

impl PlanUpdate {
    fn changes(&self, plan: &Plan) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.status.filter(|it| !plan.status.is(*it)).map(change::set_status));
        changes.extend(self.keys.iter().cloned());
        changes.extend(self.notes.iter().map(NewNote::change));
        changes
    }
}

/// Decides on `plan.md` as it is, edits it, and reports the plan as it is then.
pub(crate) fn update(
    context: &Context,
    writing: &mut Transaction<'_>,
    id: &PlanId,
    decide: Decide<'_>,
) -> Result<Changed, Error> {
    let plans = LoadQuery::plan_and_named(id).settled(Rests::PlanFile(id)).load(context)?.plans;
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    transaction::check_live(plan)?;
    transaction::check_writable(context, &plan.problems)?;
    let shown = |it: &Plan| it.shown_status().0.word().to_owned();
    let edit = |now: &Plan, own: &[u8], file: &[u8]| {
        precondition::check_plan(context, &plans, now)?;
        transaction::check_writable(context, &now.problems)?;
        let update = decide(now, own)?;
        let after = transaction::edit(&plan.path, file, &update.changes(now), PLAN_KEYS)?;
        let outcome = (shown(now), update.did);
        idempotency::tell(context, || {
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
    let root = context.root_name();
    let views = Views { plans: &plans, now: context.now, root: &root };
    Changed {
        id: now.id.to_string(),
        title: now.title.clone(),
        path: shown_path(&root, &now.path),
        was_written,
        was: Some(was),
        status: Some(now.shown_status().0.word().to_owned()),
        did,
        now: value(&views.plan(now)),
    }
}

fn read_again(context: &Context, plan: &Plan, bytes: &[u8]) -> Plan {
    let content = read::Content::new(bytes.to_vec(), context.now);
    read::read_plan_again(plan, content, &context.config.words)
}

/// A `plan.md` that was missing, as `new` makes it.
pub(crate) fn missing_file(plan: &Plan, context: &Context) -> Result<Vec<u8>, Error> {
    let new = NewPlan { title: plan.title.clone(), ..NewPlan::default() };
    transaction::edit(&plan.path, new.body().as_bytes(), &new.changes(context.now), PLAN_KEYS)
}
