//! Compares two versions of one file.

use crate::plan::history::version::{Read, Version};
use crate::plan::history::{Change, Place, What};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::ranges::StepRange;
use crate::plan::records::{Attempt, Confirmation, Note};
use crate::plan::time::Time;
use crate::text::diff;

/// The names of the fields that differ.
macro_rules! differing {
    ($old:expr, $new:expr, $($field:ident),+ $(,)?) => {
        [$((stringify!($field), $old.$field != $new.$field)),+]
            .into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect::<Vec<String>>()
    };
}

/// Collects the changes of one file.
pub(super) struct Comparison<'a> {
    pub(super) place: &'a Place,
    pub(super) path: &'a str,
    pub(super) found: Vec<Change>,
}

impl Comparison<'_> {
    fn change(&self, what: What) -> Change {
        Change::of(what, self.place, self.path)
    }

    /// Reports a new file, and the attempts, notes, confirmations and claim in it.
    pub(super) fn created(&mut self, new: &Version) {
        let problem = new.unreadable().map(|it| not_readable(it.code.text()));
        let status = new.status().map(str::to_owned);
        let title = Some(new.title().to_owned());
        let (what, plan, step) = match &new.read {
            Read::Plan(_) | Read::Step(_) => (What::Created, None, None),
            Read::Decision(it) => (What::Decision, it.plan.clone(), it.step.clone()),
            Read::Insight(it) => (What::Insight, it.plan.clone(), None),
        };
        let mut change = Change { to: status, at: new.created_at(), ..self.change(what) };
        change.notes = problem.or(title);
        match &new.read {
            Read::Decision(it) => {
                change.to = Some(it.topic.clone());
                change.notes = Some(it.decision.clone());
                change.from.clone_from(&it.supersedes);
                change.by.clone_from(&it.by);
            }
            Read::Insight(it) => {
                change.to = Some(it.title.clone());
                change.notes = Some(it.text.clone());
                change.by.clone_from(&it.by);
            }
            Read::Plan(_) | Read::Step(_) => {}
        }
        if let Some(plan) = plan {
            change.step = step.map(|it| step_id(&plan, &it));
            change.plan = Some(plan);
        }
        self.found.push(change);
        match &new.read {
            Read::Step(step) => {
                self.attempts(&[], &step.attempts);
                self.notes(&[], &step.notes);
                self.confirmed(&[], &confirmations(step));
                let claim = step.claim.as_deref();
                self.found.extend(claim.map(|it| Change {
                    to: Some(it.id.clone()),
                    by: it.by.clone(),
                    at: it.at,
                    ..self.change(What::Claim)
                }));
            }
            Read::Plan(plan) => {
                self.notes(&[], &plan.notes);
                self.confirmed(&[], &plan.confirmations);
            }
            Read::Decision(_) | Read::Insight(_) => {}
        }
    }

    pub(super) fn removed(&mut self, old: &Version) {
        let mut change = self.change(What::Removed);
        change.from = old.status().map(str::to_owned);
        change.notes = Some(old.title().to_owned());
        self.found.push(change);
    }

    pub(super) fn changed(&mut self, old: &Version, new: &Version) {
        if old.bytes() == new.bytes() {
            return;
        }
        if let Some(problem) = new.unreadable() {
            let mut change = self.change(What::Text);
            change.notes = Some(not_readable(problem.code.text()));
            return self.found.push(change);
        }
        let keys = match (&old.read, &new.read) {
            _ if old.unreadable().is_some() => Vec::new(),
            (Read::Step(old), Read::Step(new)) => self.step(old, new),
            (Read::Plan(old), Read::Plan(new)) => self.plan(old, new),
            (Read::Decision(old), Read::Decision(new)) => {
                differing!(old, new, topic, by, decided_at, plan, step, supersedes, tags, metadata, custom)
            }
            (Read::Insight(old), Read::Insight(new)) => {
                differing!(old, new, title, by, at, plan, tags, custom)
            }
            // Unreachable: the [`Place`] determines the kind, and both versions have the same kind of place.
            _ => Vec::new(),
        };
        let lines = diff::line_counts(old.body(), new.body());
        if lines != (0, 0) || !keys.is_empty() {
            let lines = Some(lines).filter(|it| *it != (0, 0));
            self.found.push(Change { lines, keys, ..self.change(What::Text) });
        }
    }

    fn step(&mut self, old: &Step, new: &Step) -> Vec<String> {
        let mut keys = differing!(
            old,
            new,
            phase,
            kind,
            assignee,
            priority,
            due,
            tags,
            created_at,
            created_by,
            needs_confirmation,
            verify,
            touches,
            result,
            metadata,
            custom
        );
        let rename = |(key, name): (&str, &str), keys: &mut Vec<String>| {
            keys.iter_mut().filter(|it| *it == key).for_each(|it| name.clone_into(it));
        };
        rename(("kind", "type"), &mut keys);
        rename(("needs_confirmation", "confirm"), &mut keys);
        self.claim(old, new);
        let is_intact = self.attempts(&old.attempts, &new.attempts);
        if !is_intact {
            keys.push("attempts".to_owned());
        }
        let doer = new_items(&old.attempts, &new.attempts).last().map(|it| (it.by.clone(), it.at));
        let claimed = || {
            let is_new = new.claim.is_some() && new.claim != old.claim;
            new.claim.as_deref().filter(|_| is_new).map(|it| (it.by.clone(), it.at))
        };
        self.status((old.status.word(), new.status.word()), doer.or_else(claimed));
        if !self.notes(&old.notes, &new.notes) {
            keys.push("notes".to_owned());
        }
        if !self.confirmed(&confirmations(old), &confirmations(new)) {
            keys.push("confirmed".to_owned());
        }
        self.depends(old, new);
        self.title(&old.title, &new.title);
        keys
    }

    fn plan(&mut self, old: &Plan, new: &Plan) -> Vec<String> {
        let mut keys = differing!(
            old,
            new,
            kind,
            program,
            category,
            priority,
            due,
            tags,
            files,
            goals,
            success_criteria,
            order,
            confirm_phases,
            draft,
            created_at,
            metadata,
            custom
        );
        self.status((old.status.word(), new.status.word()), None);
        if !self.notes(&old.notes, &new.notes) {
            keys.push("notes".to_owned());
        }
        if !self.confirmed(&old.confirmations, &new.confirmations) {
            keys.push("confirmations".to_owned());
        }
        self.title(&old.title, &new.title);
        keys
    }

    fn status(&mut self, (old, new): (&str, &str), doer: Option<(Option<String>, Option<Time>)>) {
        if old == new {
            return;
        }
        let (by, at) = doer.unwrap_or_default();
        let (from, to) = (Some(old.to_owned()), Some(new.to_owned()));
        self.found.push(Change { from, to, by, at, ..self.change(What::Status) });
    }

    fn title(&mut self, old: &str, new: &str) {
        if old != new {
            let (from, to) = (Some(old.to_owned()), Some(new.to_owned()));
            self.found.push(Change { from, to, ..self.change(What::Title) });
        }
    }

    /// Reports the new attempts, and returns whether all old ones are still there.
    fn attempts(&mut self, old: &[Attempt], new: &[Attempt]) -> bool {
        for it in new_items(old, new) {
            self.found.push(Change {
                at: it.at,
                by: it.by.clone(),
                outcome: it.outcome.clone(),
                notes: it.notes.clone(),
                ..self.change(What::Attempt)
            });
        }
        new_items(new, old).is_empty()
    }

    fn notes(&mut self, old: &[Note], new: &[Note]) -> bool {
        for it in new_items(old, new) {
            self.found.push(Change {
                at: it.at,
                by: it.by.clone(),
                notes: Some(it.text.clone()),
                ..self.change(What::Note)
            });
        }
        new_items(new, old).is_empty()
    }

    fn confirmed(&mut self, old: &[Confirmation], new: &[Confirmation]) -> bool {
        for it in new_items(old, new) {
            self.found.push(Change {
                at: it.at,
                by: it.by.clone(),
                to: it.phase.clone(),
                notes: it.note.clone(),
                ..self.change(What::Confirmed)
            });
        }
        new_items(new, old).is_empty()
    }

    /// Reports a new or changed claim, or the release of a claim. The end of a claim is not a release if the step is
    /// closed, or if a new attempt belongs to the claim.
    fn claim(&mut self, old: &Step, new: &Step) {
        let id = |it: &Step| it.claim.as_ref().map(|it| it.id.clone());
        let (from, to) = (id(old), id(new));
        if from == to {
            return;
        }
        if let Some(claim) = &new.claim {
            let (by, at) = (claim.by.clone(), claim.at);
            return self.found.push(Change { from, to, by, at, ..self.change(What::Claim) });
        }
        let ended = new_items(&old.attempts, &new.attempts);
        let is_released = ended.iter().all(|it| from.as_deref().is_some_and(|id| !it.is_of_claim(id)));
        if is_released && !new.is_closed() {
            // The file does not record who released the claim.
            self.found.push(Change { from, ..self.change(What::Released) });
        }
    }

    fn depends(&mut self, old: &Step, new: &Step) {
        let named = |step: &Step| {
            let range = |it: &StepRange| format!("{}-{}", it.first, it.last);
            let named = step.depends.iter().map(|it| short_id(&step.id.plan, it));
            named.chain(step.ranges.iter().map(range)).collect::<Vec<_>>()
        };
        let sorted = |mut it: Vec<String>| {
            it.sort_unstable();
            it
        };
        let (old, new) = (named(old), named(new));
        if sorted(old.clone()) != sorted(new.clone()) {
            let listed = |it: &[String]| Some(it.join(", ")).filter(|it| !it.is_empty());
            let (from, to) = (listed(&old), listed(&new));
            self.found.push(Change { from, to, ..self.change(What::Depends) });
        }
    }
}

/// Returns the items of `new` that `old` lacks. Equal items are counted: if `new` has two and `old` has one, one item is
/// returned.
fn new_items<'a, T: PartialEq>(old: &[T], new: &'a [T]) -> Vec<&'a T> {
    let n_same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let mut rest: Vec<&T> = old[n_same..].iter().collect();
    let is_new = |it: &&'a T| match rest.iter().position(|old| old == it) {
        Some(at) => {
            rest.swap_remove(at);
            false
        }
        None => true,
    };
    new[n_same..].iter().filter(is_new).collect()
}

fn confirmations(step: &Step) -> Vec<Confirmation> {
    step.confirmed.iter().map(|it| (**it).clone()).collect()
}

fn not_readable(code: &str) -> String {
    format!("not readable: {code}")
}

/// How a file of `plan` names a step: by its number if the step belongs to `plan`, otherwise by its full id.
fn short_id(plan: &PlanId, step: &StepId) -> String {
    if step.plan == *plan { step.number.to_string() } else { step.to_string() }
}

/// The full id of a step. `step` is the name in a decision: a number or a full id.
fn step_id(plan: &str, step: &str) -> String {
    if step.contains([':', '/']) { step.to_owned() } else { format!("{plan}:{step}") }
}
