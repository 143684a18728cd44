//! `tick`: ticks or clears one box. The box belongs to a goal, to a success criterion, or to a task in the text of a step or
//! plan. One character of the file changes.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::page::markdown::line_hash;
use crate::plan::aims;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller};
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::resolve::{self, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::sync::ending;
use crate::store::transaction::{ChangeReport, Mode, Transaction};
use crate::text::{front_matter, markdown};

#[derive(Debug, Clone, Default)]
pub struct TickRequest {
    pub id: String,
    /// The line of the file, from 1.
    pub line: usize,
    /// The hash of the line that was shown, as `page::markdown::line_hash` makes it.
    pub hash: String,
    pub ticked: bool,
    pub by: Option<String>,
}

/// Ticks or clears the box if its line is still the one that was shown. It is no error if the box has the requested state
/// already.
pub fn tick(context: &Context, request: &TickRequest) -> Result<ChangeReport, Error> {
    let did = if request.ticked { "task ticked" } else { "task cleared" }.to_owned();
    let ids = std::slice::from_ref(&request.id);
    let write = |writing: &mut Transaction<'_>, id: &str| match resolve::target(context, id)? {
        Target::Plan(plan) => plan_file::update(context, writing, &plan, &|_, bytes| {
            let mark = Some(mark(bytes, request, true)?);
            Ok(PlanUpdate { mark, did: did.clone(), ..PlanUpdate::default() })
        }),
        Target::Step(step) => {
            let who = Caller::of(context, &step.id, request.by.as_deref(), None, false);
            step_file::update(context, writing, &step, &|now| {
                let mark = Some(mark(now.bytes, request, false)?);
                let renews = fencing::is_owner(now.step, &who);
                Ok(StepUpdate { mark, renews, did: did.clone(), ..StepUpdate::default() })
            })
        }
    };
    ending::fenced(context, None, |_| change_one_by_one(context, "tick", ids, Mode::Write, write))
}

/// The offset of the character between the box's brackets, in bytes from the start of the file, and the new character.
fn mark(file: &[u8], request: &TickRequest, has_aims: bool) -> Result<(usize, u8), Error> {
    let changed = || {
        let hint = "reload the text: it has changed";
        Error::conflict(
            "task-changed",
            format!("line {} is no longer the task that was shown", request.line),
            hint,
        )
    };
    let mut start = 0;
    let mut lines = file.split_inclusive(|it| *it == b'\n');
    for _ in 1..request.line {
        start += lines.next().ok_or_else(changed)?.len();
    }
    let line = lines.next().and_then(|it| std::str::from_utf8(it).ok()).ok_or_else(changed)?;
    // If only the box has changed meanwhile, and is in the requested state, the line counts as the same.
    let requested: &[&str] = if request.ticked { &["[x]", "[X]"] } else { &["[ ]"] };
    let has_been = |shown: &str, now: &str| line_hash(&line.replacen(now, shown, 1)) == request.hash;
    let has_only_box_changed = requested
        .iter()
        .filter(|now| line.contains(**now))
        .any(|now| ["[ ]", "[x]", "[X]"].iter().any(|shown| has_been(shown, now)));
    if line_hash(line) != request.hash && !has_only_box_changed {
        return Err(changed());
    }
    let body_start = front_matter::split(file).body_start();
    let body = std::str::from_utf8(&file[body_start..]).map_err(|_| changed())?;
    let tasks = markdown::outline(body).tasks;
    let in_lists = if has_aims { aims::boxes(file) } else { Vec::new() };
    let all = in_lists.into_iter().chain(tasks.iter().map(|it| it.at + body_start));
    let inside: Vec<usize> = all.filter(|it| (start..start + line.len()).contains(it)).collect();
    // Each offset is that of the opening bracket. A line with two boxes is refused, because the request does not say which
    // box it means.
    let [open] = inside[..] else { return Err(changed()) };
    match (&file[open..], request.ticked) {
        ([b'[', b'X', b']', ..], true) => Ok((open + 1, b'X')),
        ([b'[', _, b']', ..], is_ticked) => Ok((open + 1, if is_ticked { b'x' } else { b' ' })),
        _ => Err(changed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    const PLAN: &str = "---\nstatus: active\ngoals:\n  - \"[ ] fast\" # why\n  - '[x] small'\n  - plain\nsuccess_criteria: [\"[ ] a\", \"[ ] b\"]\n---\n# P\n\n- [ ] task\n";

    #[test]
    fn a_box_of_a_goal_or_of_the_text_changes_by_one_character() {
        let machine = Machine::with(&[("/plans/p/plan.md", PLAN)]);
        let context = Context::on_model(&machine);
        let ask = |line: usize, ticked: bool| {
            let text = PLAN.lines().nth(line - 1).unwrap_or_default();
            let (id, hash) = ("p".to_owned(), line_hash(text));
            tick(&context, &TickRequest { id, line, hash, ticked, by: None }).map(|_| ())
        };
        let now = || String::from_utf8(context.plans.read("p/plan.md".as_ref()).unwrap().bytes).unwrap();
        ask(4, true).unwrap();
        ask(5, false).unwrap();
        ask(11, true).unwrap();
        ask(4, true).expect("it is ticked already");
        let expected = PLAN
            .replace("[ ] fast", "[x] fast")
            .replace("[x] small", "[ ] small")
            .replace("[ ] task", "[x] task");
        assert_eq!(now(), expected);
        for line in [6, 7, 2, 99] {
            assert_eq!(ask(line, true).unwrap_err().code(), "task-changed", "{line}");
        }
        assert_eq!(now(), expected);
    }

    #[test]
    fn a_box_that_an_editor_ticked_meanwhile_stays_as_it_is() {
        for (shown, now) in [("[ ]", "[X]"), ("[ ]", "[x]"), ("[x]", "[X]"), ("[X]", "[x]")] {
            let text = format!("# P\n\n- {now} task\n");
            let machine = Machine::with(&[("/plans/p/plan.md", &*text)]);
            let context = Context::on_model(&machine);
            let ask = |ticked: bool| {
                let (id, hash) = ("p".to_owned(), line_hash(&format!("- {shown} task")));
                tick(&context, &TickRequest { id, line: 3, hash, ticked, by: None }).map(|_| ())
            };
            ask(true).expect("it is ticked already");
            assert_eq!(ask(false).unwrap_err().code(), "task-changed", "{shown} {now}");
            assert_eq!(context.plans.read("p/plan.md".as_ref()).unwrap().bytes, text.as_bytes());
        }
    }
}
