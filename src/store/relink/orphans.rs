//! Steps whose `depends` cannot be updated when a step is renumbered or removed.
//!
//! Their files are not changed. These steps then wait for a missing step, and never become ready by mistake. If there
//! are such steps, or unreadable files may contain some, the change needs force.

use std::path::Path;

use super::Gone;
use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::api::views::shown_path;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::step_number::StepNumber;

/// The steps that cannot be updated, and the first reason.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    steps: Vec<StepId>,
    why: Option<Problem>,
    /// Unreadable files and directories, which may contain other such steps.
    unseen: Vec<String>,
}

impl Orphans {
    /// Finds live steps that wait or may wait for a gone step, and cannot be updated. `rewritten` steps are left out,
    /// because the caller writes their files. `troubles` are about files and directories that could not be read.
    pub(crate) fn of(
        context: &Context,
        (plans, troubles): (&Plans, &[Problem]),
        gone: &[Gone],
        rewritten: &[StepId],
    ) -> Self {
        let mut left = Self::of_own(gone);
        let unlisted = plans.live().flat_map(|it| &it.problems).filter(|it| it.code == Code::Unreadable);
        let unseen: Vec<_> = troubles.iter().filter(|it| !it.path.starts_with('_')).chain(unlisted).collect();
        left.why = left.why.or_else(|| unseen.first().copied().cloned());
        left.unseen = unseen.iter().map(|it| shown_path(&context.root_name(), &it.path)).collect();
        for plan in plans.live() {
            let mut broken =
                plan.problems.iter().filter(|it| it.path == plan.path && it.code.refuses_writing());
            let may_name = || gone.iter().any(|it| may_name(context, (&plan.id, &plan.path), &it.id));
            if let Some(problem) = broken.next().filter(|_| left.why.is_none() && may_name()) {
                left.why = Some(problem.clone());
            }
        }
        let is_other = |it: &&Step| !gone.iter().any(|gone| gone.id == it.id) && !rewritten.contains(&it.id);
        for step in plans.live().flat_map(|it| &it.steps).filter(is_other) {
            if let Some(problem) = why(context, step, gone) {
                left.add(&step.id, problem);
            }
        }
        left
    }

    /// Like [`Self::of`], for a change that requires no update of other steps. If a gone step cannot be read, the
    /// change still needs force, because the step may be claimed.
    pub(crate) fn of_own(gone: &[Gone]) -> Self {
        let mut problems = gone.iter().filter_map(|it| it.unclear.as_ref());
        let why = problems.find(|it| it.code.refuses_writing()).cloned();
        Self { steps: Vec::new(), why, unseen: Vec::new() }
    }

    pub(crate) fn add(&mut self, step: &StepId, why: &Problem) {
        self.why.get_or_insert_with(|| why.clone());
        if !self.has(step) {
            self.steps.push(step.clone());
        }
    }

    pub(crate) fn has(&self, step: &StepId) -> bool {
        self.steps.contains(step)
    }

    /// Refuses the change, unless it is forced.
    pub(crate) fn allow(&self, context: &Context, force: bool) -> Result<(), Error> {
        let Some(problem) = self.why.as_ref().filter(|_| !force) else { return Ok(()) };
        let path = shown_path(&context.root_name(), &problem.path);
        let problem = Box::new(Problem { path, ..problem.clone() });
        Err(Error::NotRelinked { problem, steps: self.names() })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.steps.iter().map(ToString::to_string).collect()
    }

    /// The hint about steps that a person has to update.
    pub(crate) fn hint(&self) -> Option<String> {
        let named = few(&quoted(&self.steps), MOST_NAMED);
        let unseen = few(&self.unseen.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>(), MOST_NAMED);
        match (self.steps.is_empty(), self.unseen.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("`depends` of {named} could not be updated; correct it by hand")),
            (true, false) => Some(format!("{unseen} could not be read; correct `depends` there by hand")),
            (false, false) => {
                Some(format!("`depends` of {named} and in {unseen} could not be updated; correct it by hand"))
            }
        }
    }
}

pub(crate) fn quoted(steps: &[StepId]) -> Vec<String> {
    steps.iter().map(|it| format!("`{it}`")).collect()
}

/// Returns the live steps of other plans that wait for steps of the plan `gone`. Also returns those that cannot be parsed
/// and whose text contains the name of `gone`.
pub(crate) fn waiting_for_plan(context: &Context, plans: &Plans, gone: &PlanId) -> Vec<StepId> {
    let steps = plans.live().filter(|it| it.id != *gone).flat_map(|it| &it.steps);
    let waits =
        |step: &&Step| step.depends.iter().any(|it| it.plan == *gone) || may_name_plan(context, step, gone);
    steps.filter(waits).map(|it| it.id.clone()).collect()
}

/// Whether a step cannot be parsed, and its text contains the plan's name.
pub(crate) fn may_name_plan(context: &Context, step: &Step, plan: &PlanId) -> bool {
    step.unreadable().is_some() && text_of(context, &step.path).is_some_and(|it| has_plan(&it, plan))
}

/// The most steps or plans that a hint names.
pub(crate) const MOST_NAMED: usize = 10;

/// Returns why a step cannot be updated; `None` if it can be updated, or needs no update.
fn why<'a>(context: &Context, step: &'a Step, gone: &'a [Gone]) -> Option<&'a Problem> {
    let own = step.unclear_dependencies();
    let waited: Vec<_> = gone.iter().filter(|it| step.depends_on(&it.id)).collect();
    if !waited.is_empty() {
        return waited.iter().find_map(|it| it.unclear.as_ref()).or(own);
    }
    let problem = step.unreadable()?;
    gone.iter().any(|it| may_name(context, (&step.id.plan, &step.path), &it.id)).then_some(problem)
}

/// Whether a file of `plan` that cannot be parsed may name the step `gone`: the file contains the number of `gone` and,
/// if `gone` belongs to another plan, the name of that plan. A file that cannot be read may contain anything.
fn may_name(context: &Context, (plan, path): (&PlanId, &str), gone: &StepId) -> bool {
    let is_same_plan = *plan == gone.plan;
    let is_named =
        |it: &str| numbers(it).any(|it| it == gone.number) && (is_same_plan || has_plan(it, &gone.plan));
    text_of(context, path).is_none_or(|it| is_named(&it))
}

/// `None` if the file cannot be read.
fn text_of(context: &Context, path: &str) -> Option<String> {
    let file = context.plans.read(Path::new(path)).ok()?;
    Some(String::from_utf8_lossy(&file.bytes).into_owned())
}

fn numbers(text: &str) -> impl Iterator<Item = StepNumber> {
    let runs = text.split(|it: char| !it.is_ascii_digit() && it != '.');
    runs.filter_map(|it| it.trim_matches('.').parse().ok())
}

/// Whether one of the words is the plan's name.
fn has_plan(text: &str, plan: &PlanId) -> bool {
    let mut words = text.split(|it: char| !it.is_alphanumeric() && !matches!(it, '.' | '_' | '-'));
    words.any(|it| !it.is_empty() && PlanId::new(it) == *plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::store::load;

    /// A directory that cannot be listed may hold steps that wait for the removed step.
    #[test]
    fn unreadable_plans_are_named() {
        let machine = Machine::with(&[
            ("/plans/p/plan.md", "# P\n"),
            ("/plans/p/step-1.md", "# One\n"),
            ("/plans/p/step-2.md", "---\ndepends: [1, the schema]\n---\n# Two\n"),
        ]);
        let context = Context::on_model(&machine);
        let ((plans, troubles), own) = load::settled_all(&context, &PlanId::new("p")).unwrap();
        assert!(troubles.is_empty());
        let gone = [Gone::removed(own.steps[0].id.clone(), Vec::new(), None)];
        let locked = Problem::of_file("q", Code::Unreadable, "it cannot be listed", "");
        let hint = |plans: &Plans, troubles: &[Problem]| {
            Orphans::of(&context, (plans, troubles), &gone, &[]).hint().unwrap_or_default()
        };
        let none = Plans::new(Vec::new());
        assert_eq!(hint(&none, &[]), "");
        assert_eq!(hint(&plans, &[]), "`depends` of `p:2` could not be updated; correct it by hand");
        let locked = [locked];
        assert_eq!(hint(&none, &locked), "`plans/q` could not be read; correct `depends` there by hand");
        assert_eq!(
            hint(&plans, &locked),
            "`depends` of `p:2` and in `plans/q` could not be updated; correct it by hand"
        );
    }
}
