//! A change of one step, from the file as it is now to the file as it should be.

use std::borrow::Cow;

use crate::engine::claim;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::expected;
use crate::engine::leases::{self, Leases};
use crate::engine::load::{self, Own};
use crate::engine::resolve::{self, NamedStep};
use crate::engine::shape::{Shaper, shown_path, value};
use crate::engine::write::{self, Changed, Writing};
use crate::plan::change::{self, NewAttempt, NewNote, NewStep};
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::words::StepStatus;
use crate::text::header_edit::Change;
use crate::text::{front_matter, yaml};

/// What is to become of a step.
#[derive(Debug, Default)]
pub(crate) struct StepUpdate {
    /// Nothing is written where the step has it already.
    pub(crate) status: Option<StepStatus>,
    pub(crate) removes_claim: bool,
    /// Other keys, in the order in which they are to be written.
    pub(crate) keys: Vec<Change>,
    pub(crate) notes: Vec<NewNote>,
    pub(crate) attempts: Vec<NewAttempt>,
    /// It is the claim's own update, so the lease holds on.
    pub(crate) renews: bool,
    /// The claim that is recorded beside the file ends; the file knows nothing of it.
    pub(crate) ends_record: bool,
    /// It hands a ready step out, and whatever else hangs on the step stays as it was.
    pub(crate) only_claims: bool,
    /// Reported once the rest is written.
    pub(crate) refusal: Option<Error>,
    /// In the past tense, for people.
    pub(crate) did: String,
}

impl StepUpdate {
    fn with_attempts_for_notes(&self) -> Self {
        let attempt = |it: &NewNote| NewAttempt {
            at: it.at,
            by: it.by.clone(),
            outcome: "late result".to_owned(),
            notes: Some(it.text.clone()),
            claim: None,
        };
        Self { attempts: self.notes.iter().map(attempt).collect(), ..Self::default() }
    }

    fn changes(&self, step: &Step) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.status.filter(|it| !step.status.is(*it)).map(change::set_status));
        // A claim under any status but `in_progress` is void, and the next write takes it out.
        changes.extend((self.removes_claim || step.has_void_claim()).then(|| change::remove("claim")));
        changes.extend(self.keys.iter().cloned());
        changes.extend(self.notes.iter().map(NewNote::change));
        changes.extend(self.attempts.iter().map(NewAttempt::change));
        changes
    }
}

/// Decides on the file as it is, edits it, and tells the step as it is then.
///
/// `decide` may run more than once: when somebody saves in between, on what they saved. What became of the step's
/// claim is remembered.
pub(crate) fn update(
    context: &Context,
    writing: &mut Writing<'_>,
    named: &NamedStep,
    decide: &dyn Fn(&Plans, &Plan, &Step) -> Result<StepUpdate, Error>,
) -> Result<Changed, Error> {
    let done = update_under(context, writing, named, &|plans| Leases::of(context).tell(plans), decide)?;
    if !writing.is_dry_run() {
        note_claim(context, &done);
    }
    Ok(done.changed)
}

/// Remembers what an update did to the step's claim.
pub(crate) fn note_claim(context: &Context, done: &Done) {
    if done.ends_record {
        leases::forget(context, &done.after.id);
    } else {
        leases::changed(context, &done.before, &done.after, done.renews);
    }
}

/// An update that was made.
pub(crate) struct Done {
    pub(crate) changed: Changed,
    pub(crate) before: Step,
    pub(crate) after: Step,
    renews: bool,
    ends_record: bool,
}

/// As [`update`], for whoever holds the records of claims; `tell` tells the plans of them.
pub(crate) fn update_under(
    context: &Context,
    writing: &mut Writing<'_>,
    named: &NamedStep,
    tell: &dyn Fn(Plans) -> Plans,
    decide: &dyn Fn(&Plans, &Plan, &Step) -> Result<StepUpdate, Error>,
) -> Result<Done, Error> {
    write_under(context, writing, named, tell, decide)?.told(context)
}

/// As [`update_under`]; what is to be told of it can be made without the locks.
pub(crate) fn write_under(
    context: &Context,
    writing: &mut Writing<'_>,
    named: &NamedStep,
    tell: &dyn Fn(Plans) -> Plans,
    decide: &dyn Fn(&Plans, &Plan, &Step) -> Result<StepUpdate, Error>,
) -> Result<Made, Error> {
    let id = &named.id.plan;
    let plans = tell(load::around(context, &named.id, None)?);
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    write::check_live(plan)?;
    let step = resolve::one_step(context, plan, named)?;
    write::check_writable(context, &step.problems)?;
    let mut outcome = Outcome::before(step);
    let is_written = !writing.is_dry_run();
    let was_written = if step.has_file() {
        writing.change(&step.path, &mut |bytes| {
            let plans = as_it_is(context, &plans, step, bytes)?;
            let (plan, now) = resolve::same_file(&plans, step)?;
            expected::check_step(context, &plans, plan, now)?;
            let update = decide(&plans, plan, now)?;
            let only_claims = update.only_claims && is_written;
            let after = outcome.edit(now, update, bytes)?;
            // Before the file shows it, so that nobody who sees it has to wonder.
            if only_claims {
                claim::note_claimed(context, bytes, &after);
            }
            Ok(after)
        })?
    } else {
        expected::check_step(context, &plans, plan, step)?;
        let file = missing_file(step, context);
        let file = outcome.edit(step, decide(&plans, plan, step)?, &file)?;
        writing.create(&step.path, &file)?;
        true
    };
    match outcome.refusal.take() {
        Some(error) => Err(error),
        None => {
            let step = step.clone();
            Ok(Made { plans, step, outcome, was_written })
        }
    }
}

/// A change that is in the file.
pub(crate) struct Made {
    /// As they were loaded.
    plans: Plans,
    step: Step,
    outcome: Outcome,
    was_written: bool,
}

impl Made {
    /// The path of the step's file, and a hash of what it holds by the change.
    pub(crate) fn file(&self) -> (String, String) {
        (self.step.path.clone(), load::etag(&self.outcome.after))
    }

    /// What was done, with the step as the change left it.
    pub(crate) fn told(self, context: &Context) -> Result<Done, Error> {
        self.outcome.changed(context, &self.plans, &self.step, self.was_written)
    }
}

struct Outcome {
    before: Step,
    did: String,
    renews: bool,
    ends_record: bool,
    refusal: Option<Error>,
    after: Vec<u8>,
}

impl Outcome {
    fn before(step: &Step) -> Self {
        let (did, after) = (String::new(), Vec::new());
        Self { before: step.clone(), did, renews: false, ends_record: false, refusal: None, after }
    }

    fn edit(&mut self, step: &Step, update: StepUpdate, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let edited = write::edit(&step.path, bytes, &update.changes(step), STEP_KEYS);
        self.after = match edited {
            // Where `notes` is a plain text, a late result is kept as an attempt.
            Err(_) if update.refusal.is_some() => {
                write::edit(&step.path, bytes, &update.with_attempts_for_notes().changes(step), STEP_KEYS)?
            }
            edited => edited?,
        };
        self.before = step.clone();
        (self.renews, self.ends_record) = (update.renews, update.ends_record);
        self.refusal = update.refusal;
        self.did = update.did;
        Ok(self.after.clone())
    }

    fn changed(
        self,
        context: &Context,
        plans: &Plans,
        step: &Step,
        was_written: bool,
    ) -> Result<Done, Error> {
        let plans = as_it_is(context, plans, step, &self.after)?;
        let (plan, now) = resolve::same_file(&plans, step)?;
        let root = context.root_name();
        let shaper = Shaper { plans: &plans, now: context.now, root: &root };
        let changed = Changed {
            id: step.id.to_string(),
            title: now.title.clone(),
            path: shown_path(&root, &step.path),
            was_written,
            was: Some(self.before.status.word().to_owned()),
            status: Some(now.status.word().to_owned()),
            did: self.did,
            now: value(&shaper.step(plan, now)),
        };
        let after = now.clone();
        Ok(Done { changed, before: self.before, renews: self.renews, ends_record: self.ends_record, after })
    }
}

/// The plans as they were loaded, but with these bytes in the step's file.
fn as_it_is<'a>(
    context: &Context,
    plans: &'a Plans,
    step: &Step,
    bytes: &[u8],
) -> Result<Cow<'a, Plans>, Error> {
    let etag = load::etag(bytes);
    if step.etag.as_deref() == Some(etag.as_str()) {
        return Ok(Cow::Borrowed(plans));
    }
    let (plan, _) = resolve::same_file(plans, step)?;
    let content = read::Content { bytes: bytes.to_vec(), etag, modified: context.now };
    let mut now = read::read_step_of(plan, &step.id, &step.path, content, &context.config.words);
    write::check_writable(context, &now.problems)?;
    if now.depends != step.depends {
        let around = load::around(context, &step.id, Some(Own { path: &step.path, bytes }))?;
        return Ok(Cow::Owned(around.with_claims(plans.claims().clone())));
    }
    // What only several files together show has not changed with this one.
    let is_shared = |it: &&Problem| Plans::is_between_files(it) || it.code == Code::DuplicateStepNumber;
    now.problems.extend(step.problems.iter().filter(is_shared).cloned());
    let mut all = plans.clone().into_vec();
    let own = all.iter_mut().flat_map(|it| &mut it.steps).filter(|it| it.path == step.path);
    own.for_each(|it| it.clone_from(&now));
    Ok(Cow::Owned(Plans::new(all).with_claims(plans.claims().clone())))
}

/// The file of a step that stands only in the Steps list.
pub(crate) fn missing_file(step: &Step, context: &Context) -> Vec<u8> {
    let new = NewStep { title: step.title.clone(), ..NewStep::default() };
    new_file(&new, &step.id, context).unwrap_or_default()
}

/// The keys that a text's own front matter has; none if it cannot be read, which whoever edits it will say.
pub(crate) fn own_keys(file: &[u8]) -> Vec<String> {
    let yaml = front_matter::split(file).yaml().and_then(|it| std::str::from_utf8(it).ok());
    let Some(tree) = yaml.and_then(|it| yaml::parse(it).ok()) else { return Vec::new() };
    tree.root().entries().filter_map(|(key, _)| key.text().map(|it| it.to_owned())).collect()
}

/// The bytes of a new step's file.
pub(crate) fn new_file(new: &NewStep, id: &StepId, context: &Context) -> Result<Vec<u8>, Error> {
    let (body, says_title) = new.body();
    let mut changes = new.changes(id, says_title, context.now);
    if new.keeps_own {
        let own = own_keys(body.as_bytes());
        changes.retain(|it| it.key() == "id" || !own.iter().any(|key| key == it.key()));
    }
    write::edit(&format!("{}/step-{}.md", id.plan, id.number), body.as_bytes(), &changes, STEP_KEYS)
}
