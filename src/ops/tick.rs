//! `tick`: ticks or clears boxes. A box belongs to a goal, to a success criterion, or to a task in the text of a step or plan.
//! One character of the file changes for each box.

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
use crate::store::task_boxes;
use crate::store::transaction::{ChangeReport, Mode, Transaction};

#[derive(Debug, Clone)]
pub struct TickRequest {
    pub id: String,
    pub boxes: Boxes,
    pub ticked: bool,
    pub by: Option<String>,
    pub mode: Mode,
}

#[derive(Debug, Clone)]
pub enum Boxes {
    /// The only box of a line that was shown.
    Shown {
        /// The number of the line in the file, from 1.
        line: usize,
        /// The hash of the line that was shown, as `page::markdown::line_hash` makes it.
        hash: String,
    },
    /// Numbers, from 1 in the order of the file.
    Numbers(Vec<usize>),
}

/// Ticks or clears all requested boxes; after an error, none is changed. A line that was shown must still be the same. It is
/// no error if a box has the requested state already.
pub fn tick(context: &Context, request: &TickRequest) -> Result<ChangeReport, Error> {
    if matches!(&request.boxes, Boxes::Numbers(numbers) if numbers.is_empty()) {
        return Err(Error::usage("no task is named", "give the numbers of the tasks"));
    }
    let ids = std::slice::from_ref(&request.id);
    let write = |writing: &mut Transaction<'_>, id: &str| match resolve::target(context, id)? {
        Target::Plan(plan) => plan_file::update(context, writing, &plan, &|_, bytes| {
            let marks = marks(bytes, request, true)?;
            Ok(PlanUpdate { did: did(&marks, request.ticked), marks, ..PlanUpdate::default() })
        }),
        Target::Step(step) => {
            let who = Caller::of(context, &step.id, request.by.as_deref(), None, false);
            step_file::update(context, writing, &step, &|now| {
                let marks = marks(now.bytes, request, false)?;
                let renews = fencing::is_owner(now.step, &who);
                let did = did(&marks, request.ticked);
                Ok(StepUpdate { marks, renews, did, ..StepUpdate::default() })
            })
        }
    };
    ending::fenced(context, None, |_| change_one_by_one(context, "tick", ids, request.mode, write))
}

fn did(marks: &[(usize, u8)], ticked: bool) -> String {
    let did = if ticked { "ticked" } else { "cleared" };
    match marks.len() {
        0 | 1 => format!("task {did}"),
        n => format!("{n} tasks {did}"),
    }
}

/// For each box that is to change, the offset of the character between its brackets, in bytes from the start of the file,
/// and the new character.
fn marks(file: &[u8], request: &TickRequest, has_aims: bool) -> Result<Vec<(usize, u8)>, Error> {
    let mut all = if has_aims { aims::boxes(file) } else { Vec::new() };
    all.extend(task_boxes::in_text(file));
    all.sort_unstable();
    let mut opens = match &request.boxes {
        Boxes::Shown { line, hash } => vec![shown(file, &all, (*line, hash), request.ticked)?],
        Boxes::Numbers(numbers) => {
            numbers.iter().map(|it| task_boxes::nth(&all, *it, &request.id)).collect::<Result<Vec<_>, _>>()?
        }
    };
    opens.sort_unstable();
    opens.dedup();
    let changes = |at: &usize| file[*at].is_ascii_whitespace() == request.ticked;
    let mark = if request.ticked { b'x' } else { b' ' };
    Ok(opens.into_iter().map(|open| open + 1).filter(changes).map(|at| (at, mark)).collect())
}

/// The only box of the line, if the line is still the one that was shown.
fn shown(file: &[u8], all: &[usize], (line, hash): (usize, &str), ticked: bool) -> Result<usize, Error> {
    let changed = || {
        let hint = "reload the text: it has changed";
        Error::conflict("task-changed", format!("line {line} is no longer the task that was shown"), hint)
    };
    let mut start = 0;
    let mut lines = file.split_inclusive(|it| *it == b'\n');
    for _ in 1..line {
        start += lines.next().ok_or_else(changed)?.len();
    }
    let text = lines.next().and_then(|it| std::str::from_utf8(it).ok()).ok_or_else(changed)?;
    // If only the box has changed meanwhile, and is in the requested state, the line counts as the same.
    let requested: &[&str] = if ticked { &["[x]", "[X]"] } else { &["[ ]"] };
    let has_been = |shown: &str, now: &str| line_hash(&text.replacen(now, shown, 1)) == hash;
    let has_only_box_changed = requested
        .iter()
        .filter(|now| text.contains(**now))
        .any(|now| ["[ ]", "[x]", "[X]"].iter().any(|shown| has_been(shown, now)));
    if line_hash(text) != hash && !has_only_box_changed {
        return Err(changed());
    }
    let inside: Vec<_> = all.iter().filter(|it| (start..start + text.len()).contains(it)).collect();
    // A line with two boxes is refused, because the request does not say which box it means.
    let [open] = inside[..] else { return Err(changed()) };
    Ok(*open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    const PLAN: &str = "---\nstatus: active\ngoals:\n  - \"[ ] fast\" # why\n  - '[x] small'\n  - plain\nsuccess_criteria: [\"[ ] a\", \"[ ] b\"]\n---\n# P\n\n- [ ] task\n";

    fn of(boxes: Boxes, ticked: bool) -> TickRequest {
        TickRequest { id: "p".to_owned(), boxes, ticked, by: None, mode: Mode::Write }
    }

    #[test]
    fn boxes_are_numbered_in_the_order_of_the_file_and_change_all_or_none() {
        let machine = Machine::with(&[("/plans/p/plan.md", PLAN)]);
        let context = Context::on_model(&machine);
        let now = || String::from_utf8(context.plans.read("p/plan.md".as_ref()).unwrap().bytes).unwrap();
        for numbers in [vec![0], vec![1, 6], vec![5, 0]] {
            assert_eq!(tick(&context, &of(Boxes::Numbers(numbers), true)).unwrap_err().code(), "no-task");
        }
        assert_eq!(tick(&context, &of(Boxes::Numbers(Vec::new()), true)).unwrap_err().code(), "usage");
        assert_eq!(now(), PLAN);
        let report = tick(&context, &of(Boxes::Numbers(vec![1, 4, 5]), true)).unwrap();
        assert_eq!(report.changes[0].did, "3 tasks ticked");
        let expected =
            PLAN.replace("[ ] fast", "[x] fast").replace("[ ] b", "[x] b").replace("[ ] task", "[x] task");
        assert_eq!(now(), expected);
        let again = tick(&context, &of(Boxes::Numbers(vec![1, 4, 2]), true)).unwrap();
        assert!(!again.changes[0].was_written);
        let report = tick(&context, &of(Boxes::Numbers(vec![4, 4]), false)).unwrap();
        assert_eq!(report.changes[0].did, "task cleared", "it was named twice");
        assert_eq!(now(), expected.replace("[x] b", "[ ] b"));
    }

    #[test]
    fn a_box_of_a_goal_or_of_the_text_changes_by_one_character() {
        let machine = Machine::with(&[("/plans/p/plan.md", PLAN)]);
        let context = Context::on_model(&machine);
        let ask = |line: usize, ticked: bool| {
            let text = PLAN.lines().nth(line - 1).unwrap_or_default();
            let boxes = Boxes::Shown { line, hash: line_hash(text) };
            tick(&context, &of(boxes, ticked)).map(|_| ())
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
                let boxes = Boxes::Shown { line: 3, hash: line_hash(&format!("- {shown} task")) };
                tick(&context, &of(boxes, ticked)).map(|_| ())
            };
            ask(true).expect("it is ticked already");
            assert_eq!(ask(false).unwrap_err().code(), "task-changed", "{shown} {now}");
            assert_eq!(context.plans.read("p/plan.md".as_ref()).unwrap().bytes, text.as_bytes());
        }
    }
}
