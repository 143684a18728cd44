//! A condition on a change: the file still is what the asker last saw. It is looked at under the lock, on the file's bytes.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::shape::{Shaper, value};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;

/// The etags of which the file has to have one; of a plan that of its `plan.md`.
#[derive(Debug)]
pub struct Expected {
    etags: Vec<String>,
    is_checked: AtomicBool,
}

impl Expected {
    pub fn new(etags: Vec<String>) -> Self {
        Self { etags, is_checked: AtomicBool::new(false) }
    }

    fn is_met(&self, etag: Option<&str>) -> bool {
        self.is_checked.store(true, Ordering::Relaxed);
        etag.is_some_and(|it| self.etags.iter().any(|expected| expected == it))
    }
}

/// Refuses if the step's file is not what was expected, with the step as it is.
pub(crate) fn check_step(context: &Context, plans: &Plans, plan: &Plan, step: &Step) -> Result<(), Error> {
    check(context, &step.id.to_string(), step.etag.as_deref(), |it| value(&it.step(plan, step)), plans)
}

/// Refuses if the plan's file is not what was expected, with the plan as it is.
pub(crate) fn check_plan(context: &Context, plans: &Plans, plan: &Plan) -> Result<(), Error> {
    check(context, plan.id.as_str(), plan.etag.as_deref(), |it| value(&it.plan(plan)), plans)
}

fn check(
    context: &Context,
    id: &str,
    etag: Option<&str>,
    now: impl FnOnce(&Shaper<'_>) -> Value,
    plans: &Plans,
) -> Result<(), Error> {
    if context.expected.as_ref().is_none_or(|it| it.is_met(etag)) {
        return Ok(());
    }
    let root = context.root_name();
    let now = Box::new(now(&Shaper { plans, now: context.now, root: &root }));
    Err(Error::NotExpected { id: id.to_owned(), etag: etag.map(str::to_owned), now })
}

/// Refuses a change that would be made without having looked: not every verb has one file that it is about.
pub(crate) fn check_looked_at(context: &Context) -> Result<(), Error> {
    if context.expected.as_ref().is_none_or(|it| it.is_checked.load(Ordering::Relaxed)) {
        return Ok(());
    }
    Err(Error::usage("this cannot be done on the condition of an etag", "ask without it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::engine::note::{self, NoteRequest};
    use crate::engine::{texts, undo};

    const STEP: &str = "/plans/p/step-1.md";
    const OLD: &str = "---\nstatus: pending\n---\n# One\n";

    fn context(machine: &Machine, expected: Option<Expected>) -> Context {
        Context { expected, ..Context::on_model(machine) }
    }

    /// Whenever an editor saves during a change on a condition: what was changed is what was expected.
    #[test]
    fn nothing_is_written_over_a_save_that_was_not_expected() {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), (STEP, OLD)]);
        let etag = texts::step(&context(&machine, None), "p:1").unwrap().0.etag.unwrap();
        let (mut n_refused, mut n_changed) = (0, 0);
        for call in 1.. {
            let saving = machine.saved_before(call);
            let request =
                NoteRequest { id: "p:1".to_owned(), text: "a word".to_owned(), ..NoteRequest::default() };
            let expected = Expected::new(vec![etag.clone()]);
            let answer = note::note(&context(&saving, Some(expected)), &request);
            if !saving.has_saved() {
                answer.unwrap();
                break;
            }
            let now = saving.text(STEP).unwrap();
            assert!(now.ends_with("token\n"), "call {call}: the save is lost: {now}");
            match answer {
                Err(error) => {
                    assert_eq!((error.code(), now), ("file-changed", format!("{OLD}token\n")), "call {call}");
                    n_refused += 1;
                }
                // The save came after the change, so there is more than that to take back.
                Ok(_) => {
                    let after = saving.after_kill();
                    let undone =
                        undo::undo(&context(&after, None), &undo::UndoRequest::default()).unwrap_err();
                    assert_eq!(undone.code(), "file-changed", "call {call}: the change was made on the save");
                    n_changed += 1;
                }
            }
        }
        assert!(n_refused > 10 && n_changed > 5, "{n_refused} {n_changed}");
    }
}
