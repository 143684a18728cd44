//! Changes one step: loads it, decides on the change, edits its file, and reports the result.

use std::borrow::Cow;
use std::ops::Range;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::plan::change::{self, NewAttempt, NewNote, NewStep};
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::references;
use crate::plan::words::StepStatus;
use crate::store::decision::Decision;
use crate::store::idempotency;
use crate::store::leases::{self, Leases};
use crate::store::load::{self, DecisionFiles, LoadQuery, Overlay};
use crate::store::resolve::{self, NamedStep};
use crate::store::transaction::{self, Applied, Changed, Transaction};
use crate::text::header_edit::Change;
use crate::text::yaml::Tree;
use crate::text::{front_matter, markdown};

#[derive(Debug, Default)]
pub(crate) struct StepUpdate {
    /// Not written if the step already has it.
    pub(crate) status: Option<StepStatus>,
    pub(crate) removes_claim: bool,
    /// Other keys, in the order in which they are to be written.
    pub(crate) keys: Vec<Change>,
    /// The new text below the heading.
    pub(crate) text: Option<String>,
    /// Replaces single bytes of the file, the marks in the boxes of tasks: their offsets, and the new bytes.
    pub(crate) marks: Vec<(usize, u8)>,
    pub(crate) notes: Vec<NewNote>,
    pub(crate) attempts: Vec<NewAttempt>,
    /// The owner of the claim makes the update, so the lease is renewed.
    pub(crate) renews: bool,
    /// Ends a claim that is only in the claim records; the file has no `claim`.
    pub(crate) ends_record: bool,
    /// Ends the claim of another owner (`--force`), even if another working tree made it.
    pub(crate) ends_others: bool,
    /// The update comes from `claim`: it makes a claim, or marks a step with too many tries as failed. For such an
    /// update, `src/ops/claim.rs` records the answer for the request's key.
    pub(crate) is_claim: bool,
    /// An error that is returned after the other changes are written.
    pub(crate) refusal: Option<Error>,
    /// What was done, for people.
    pub(crate) did: String,
}

/// The input of a decision: a step, and the plans as they are when the step's file holds `bytes`.
#[derive(Clone, Copy)]
pub(crate) struct Current<'a> {
    pub(crate) plans: &'a Plans,
    pub(crate) plan: &'a Plan,
    pub(crate) step: &'a Step,
    /// For a step without a file, the bytes with which the file would be created.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Current<'a> {
    /// All plans, the plan and the step: the arguments of the functions that check a step.
    pub(crate) fn placed(self) -> (&'a Plans, &'a Plan, &'a Step) {
        (self.plans, self.plan, self.step)
    }
}

pub(crate) type DecideStep<'a, T, L> = &'a dyn Fn(Current<'_>) -> Result<Decision<StepUpdate, T, L>, Error>;

impl StepUpdate {
    fn with_attempts_for_notes(&self) -> Self {
        let attempt = |it: &NewNote| {
            let notes = Some(it.text.clone());
            NewAttempt { notes, ..NewAttempt::new(it.at, &it.by, "late result") }
        };
        Self { attempts: self.notes.iter().map(attempt).collect(), ..Self::default() }
    }

    /// The edits of the front matter. `step` is the step as it is now.
    pub(crate) fn changes(&self, step: &Step) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.status.filter(|it| !step.status.is(*it)).map(change::set_status));
        // A claim that is no longer valid, for example on a pending step, is removed by the next write.
        changes.extend((self.removes_claim || step.has_void_claim()).then(|| change::remove("claim")));
        changes.extend(self.keys.iter().cloned());
        changes.extend(self.notes.iter().map(NewNote::change));
        changes.extend(self.attempts.iter().map(NewAttempt::change));
        changes
    }
}

/// Decides from the current file, edits it, and reports the changed step.
///
/// If another program saves in between, `decide` runs again on the saved text, unless that text already contains the
/// change. The step's claim record is updated too.
pub(crate) fn update(
    context: &Context,
    writing: &mut Transaction<'_>,
    named: &NamedStep,
    decide: &dyn Fn(Current<'_>) -> Result<StepUpdate, Error>,
) -> Result<Changed, Error> {
    let decide = |now: Current<'_>| decide(now).map(|update| Decision::Write(update, ()));
    let decided: Decision<_> = update_with(context, writing, named, &decide)?;
    let Decision::Write(done, ()) = decided;
    Ok(done.changed)
}

/// Like [`update`], for decisions that also return a value, or that can leave the file unchanged.
pub(crate) fn update_with<T, L>(
    context: &Context,
    writing: &mut Transaction<'_>,
    named: &NamedStep,
    decide: DecideStep<'_, T, L>,
) -> Result<Decision<Done, T, L>, Error> {
    let is_dry_run = writing.is_dry_run();
    let leases = Leases::of(context);
    let annotate = |plans| leases.annotate_for(plans, &named.id);
    write(context, writing, named, &annotate, decide)?.try_map(|made, value| {
        let done = made.into_done(context)?;
        if !is_dry_run {
            note_claim(&leases, context, &done);
        }
        Ok((done, value))
    })
}

fn note_claim(leases: &Leases<'_>, context: &Context, done: &Done) {
    if done.ends_record {
        leases::forget(context, &done.after.id);
    } else {
        let Done { renews, ends_others, ends_claim, .. } = *done;
        let effect = leases::Effect { renews, ends_others, ends_claim };
        leases::changed(leases, &done.before, &done.after, effect);
    }
}

pub(crate) struct Done {
    pub(crate) changed: Changed,
    pub(crate) before: Step,
    pub(crate) after: Step,
    renews: bool,
    ends_record: bool,
    ends_others: bool,
    ends_claim: bool,
}

/// Like [`update_with`], but without the update of the claim's record and without the report. [`Made::into_done`] makes
/// the report, and needs no lock. `annotate` adds the recorded claims to the loaded plans.
pub(crate) fn write<T, L>(
    context: &Context,
    writing: &mut Transaction<'_>,
    named: &NamedStep,
    annotate: &dyn Fn(Plans) -> Plans,
    decide: DecideStep<'_, T, L>,
) -> Result<Decision<Made, T, L>, Error> {
    let id = &named.id.plan;
    let files = DecisionFiles::Step(&named.id);
    let plans = annotate(LoadQuery::step(&named.id).settled(files).load(context)?.plans);
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    transaction::check_live(plan)?;
    let step = resolve::one_step(context, plan, named)?;
    transaction::check_writable(context, &step.problems)?;
    let decide = |now: Current<'_>| {
        precondition::check_step(context, now.plans, now.plan, now.step)?;
        decide(now)?.try_map(|update, value| {
            let (after, outcome) = Outcome::of(now.step, update, now.bytes)?;
            record_key(context, (&plans, step), &outcome, &after);
            Ok((after, (outcome, value)))
        })
    };
    let decided = if step.has_file() {
        writing.change(&step.path, &|bytes| {
            let settle = |query: &LoadQuery<'_>| Ok(query.settled(files).load(context)?.plans);
            let plans = as_it_is(context, &plans, step, bytes, &settle)?;
            let (plan, step) = resolve::same_file(&plans, step)?;
            decide(Current { plans: &plans, plan, step, bytes })
        })?
    } else {
        let bytes = &missing_file(step, context);
        decide(Current { plans: &plans, plan, step, bytes })?.try_map(|bytes, outcome| {
            writing.create_listed(&step.path, &bytes)?;
            Ok::<_, Error>((Applied { bytes, was_written: true }, outcome))
        })?
    };
    let step = step.clone();
    decided.try_map(|applied, (mut outcome, value)| match outcome.update.refusal.take() {
        Some(error) => Err(error),
        None => Ok((Made { plans, step, outcome, applied }, value)),
    })
}

/// The result of `write`: a change that was made, or found not to be needed. In a dry run, nothing was written.
pub(crate) struct Made {
    /// The plans as they were loaded, before the change.
    plans: Plans,
    step: Step,
    outcome: Outcome,
    applied: Applied,
}

impl Made {
    /// The path of the step's file, and a hash of its content after the change.
    pub(crate) fn file(&self) -> (String, String) {
        (self.step.path.clone(), read::etag(&self.applied.bytes))
    }

    /// The report of the change, and the step as it was read from the new content of its file.
    pub(crate) fn into_done(self, context: &Context) -> Result<Done, Error> {
        let Self { plans, step, outcome, applied } = self;
        let (changed, after) =
            as_changed(context, (&plans, &step), &outcome, &applied.bytes, applied.was_written)?;
        let Outcome { before, update } = outcome;
        let StepUpdate { renews, ends_record, ends_others, removes_claim: ends_claim, .. } = update;
        Ok(Done { changed, before, after, renews, ends_record, ends_others, ends_claim })
    }
}

/// The change of a step, and the step as parsed from these bytes of its file.
fn as_changed(
    context: &Context,
    (plans, step): (&Plans, &Step),
    outcome: &Outcome,
    after: &[u8],
    was_written: bool,
) -> Result<(Changed, Step), Error> {
    // The plans are only shown here, so it does not matter whether another program is saving a file.
    let plans = as_it_is(context, plans, step, after, &|query| Ok(query.load(context)?.plans))?;
    let (plan, now) = resolve::same_file(&plans, step)?;
    let (was, status) = (Some(outcome.before.status.word().to_owned()), Some(now.status.word().to_owned()));
    let (did, shape) = (&outcome.update.did, value(&Views::of(context, &plans).step(plan, now)));
    let changed = Changed::new(context, &step.id, (&now.title, &step.path), did, shape);
    Ok((Changed { was_written, was, status, ..changed }, now.clone()))
}

/// Records the answer for the request's key, except for a claim, whose answer `src/ops/claim.rs` records. If the
/// request is refused and only a note is written, no answer is recorded.
fn record_key(context: &Context, of: (&Plans, &Step), outcome: &Outcome, after: &[u8]) {
    if outcome.update.refusal.is_some() {
        idempotency::exclude_next_change(context);
    } else if !outcome.update.is_claim {
        idempotency::record(context, || {
            as_changed(context, of, outcome, after, true).map(|it| it.0).into_iter().collect()
        });
    }
}

struct Outcome {
    before: Step,
    update: StepUpdate,
}

impl Outcome {
    fn of(step: &Step, update: StepUpdate, bytes: &[u8]) -> Result<(Vec<u8>, Self), Error> {
        let mut marked = Cow::Borrowed(bytes);
        for (at, mark) in &update.marks {
            if let Some(byte) = marked.to_mut().get_mut(*at) {
                *byte = *mark;
            }
        }
        let bytes = &*marked;
        let edit =
            |update: &StepUpdate| transaction::edit(&step.path, bytes, &update.changes(step), STEP_KEYS);
        let after = match edit(&update) {
            // If no note can be added, for example because `notes` is a text, a late result is recorded as an attempt.
            Err(_) if update.refusal.is_some() => edit(&update.with_attempts_for_notes())?,
            edited => edited?,
        };
        let after = match update.text.as_ref().filter(|_| update.refusal.is_none()) {
            Some(text) => with_text(&after, text),
            None => after,
        };
        Ok((after, Self { before: step.clone(), update }))
    }
}

/// The loaded plans, but with these bytes in the step's file. `through` loads plans that were not loaded before.
fn as_it_is<'a>(
    context: &Context,
    plans: &'a Plans,
    step: &Step,
    bytes: &[u8],
    through: &dyn Fn(&LoadQuery<'_>) -> Result<Plans, Error>,
) -> Result<Cow<'a, Plans>, Error> {
    let etag = read::etag(bytes);
    if step.etag.as_deref() == Some(etag.as_str()) {
        return Ok(Cow::Borrowed(plans));
    }
    let (plan, _) = resolve::same_file(plans, step)?;
    let content = read::Content { bytes: bytes.to_vec(), etag, modified: context.now };
    let mut now = read::read_step_of(plan, &step.id, &step.path, content, &context.config.words);
    transaction::check_writable(context, &now.problems)?;
    // Only the steps that this one waited for before were loaded. If its dependencies may have changed, more steps are
    // loaded.
    if now.depends != step.depends
        || !now.ranges.is_empty()
        || now.ranges != step.ranges
        || references::say_all(&step.id, bytes)
    {
        let own = Overlay { path: &step.path, bytes };
        let around = through(&LoadQuery::step_with(&step.id, own))?;
        return Ok(Cow::Owned(around.with_claims(plans.claims().clone())));
    }
    // Problems that concern several files are copied from the loaded step, because the change does not affect them.
    let is_shared = |it: &&Problem| Plans::is_between_files(it) || it.code == Code::DuplicateStepNumber;
    now.problems.extend(step.problems.iter().filter(is_shared).cloned());
    let mut all = plans.clone().into_vec();
    let own = all.iter_mut().flat_map(|it| &mut it.steps).filter(|it| it.path == step.path);
    own.for_each(|it| it.clone_from(&now));
    Ok(Cow::Owned(Plans::new(all).with_claims(plans.claims().clone())))
}

/// The file of a step that exists only in the Steps list.
pub(crate) fn missing_file(step: &Step, context: &Context) -> Vec<u8> {
    let new = NewStep { title: step.title.clone(), ..NewStep::default() };
    new_file(&new, &step.id, context).unwrap_or_default()
}

/// The keys of a text's own front matter. If it cannot be parsed, returns none; the edit then reports the error.
pub(crate) fn own_keys(file: &[u8]) -> Vec<String> {
    let Some(tree) = Tree::of_file(file) else { return Vec::new() };
    tree.root().entries().filter_map(|(key, _)| key.text().map(|it| it.to_owned())).collect()
}

pub(crate) fn new_file(new: &NewStep, id: &StepId, context: &Context) -> Result<Vec<u8>, Error> {
    let (body, says_title) = new.body();
    let mut changes = new.changes(id, says_title, context.now);
    if new.keeps_own {
        let own = own_keys(body.as_bytes());
        changes.retain(|it| it.key() == "id" || !own.iter().any(|key| key == it.key()));
    }
    transaction::edit(&format!("{}/step-{}.md", id.plan, id.number), body.as_bytes(), &changes, STEP_KEYS)
}

/// The range from the start of the first heading of level 1 to the start of the line below it; `0..0` if there is none.
pub(crate) fn heading_lines(body: &str) -> Range<usize> {
    let outline = markdown::sections(body);
    outline.headings.iter().find(|it| it.level == 1).map_or(0..0, |it| {
        let end = it.span.start + body[it.span.clone()].trim_end().len();
        it.span.start..body[end..].find('\n').map_or(body.len(), |it| end + it + 1)
    })
}

/// The file with another text below its heading. The new text gets the file's line endings.
pub(crate) fn with_text(file: &[u8], text: &str) -> Vec<u8> {
    let start = front_matter::split(file).body_start();
    let body = String::from_utf8_lossy(&file[start..]);
    let eol = if body.contains("\r\n") { "\r\n" } else { "\n" };
    let kept = heading_lines(&body).end;
    if body[kept..].trim_matches(['\r', '\n']).replace("\r\n", "\n") == text {
        return file.to_vec();
    }
    let heading = body[..kept].trim_end();
    let between = if heading.is_empty() { String::new() } else { format!("{heading}{eol}{eol}") };
    [&file[..start], between.as_bytes(), text.replace('\n', eol).as_bytes(), eol.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_replaces_what_is_below_the_first_heading() {
        for (file, expected) in [
            ("---\nid: 1\n---\n# One\n\nold\n", "---\nid: 1\n---\n# One\n\nnew\n"),
            ("# One\r\nold\r\n", "# One\r\n\r\nnew\r\n"),
            ("One\n===\nold\n", "One\n===\n\nnew\n"),
            ("old\n", "new\n"),
            ("", "new\n"),
            ("# One", "# One\n\nnew\n"),
            // A line in a code block is no heading.
            ("```sh\n# a comment\nmake\n```\n", "new\n"),
            ("```sh\n# a comment\n```\n\n# One\nold\n", "```sh\n# a comment\n```\n\n# One\n\nnew\n"),
        ] {
            assert_eq!(String::from_utf8(with_text(file.as_bytes(), "new")).unwrap(), expected, "{file:?}");
        }
        assert_eq!(with_text(b"# One\n\nnew\n\n\n", "new"), b"# One\n\nnew\n\n\n", "unchanged");
    }
}
