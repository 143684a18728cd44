//! Makes a new step from a task of a step, directly after that step. The task's text becomes a link to the new step.

use std::path::PathBuf;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::disk::FileOp;
use crate::plan::change::NewStep;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::{file_name, read};
use crate::store::load::{self, DecisionFiles, LoadQuery};
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{branches, new_step, resolve, step_file, steps_list_line, task_boxes};
use crate::text::line_index::Lines;

#[derive(Debug, Clone)]
pub struct SplitRequest {
    pub id: String,
    pub task: Task,
    pub by: Option<String>,
    pub mode: Mode,
}

/// The task that becomes a step.
#[derive(Debug, Clone, Copy)]
pub enum Task {
    /// The line of the task in the step's file, from 1.
    Line(usize),
    /// The number of the task in the step's text, from 1.
    Number(usize),
}

/// Makes the new step and the link to it; after an error, neither is made. The new step gets the dependencies and the phase
/// of the step with the task.
pub fn split(context: &Context, request: &SplitRequest) -> Result<ChangeReport, Error> {
    let named = resolve::step(context, &request.id)?;
    let plan_id = named.id.plan.clone();
    let elsewhere = branches::numbers_elsewhere(context, &plan_id, true);
    let mut writing = Transaction::begin(context, "split", request.mode)?;
    let plans =
        LoadQuery::plan_and_named(&plan_id).settled(DecisionFiles::Plan(&plan_id)).load(context)?.plans;
    let plan = plans.get(&plan_id).ok_or_else(|| load::missing(context, &plan_id))?;
    let step = resolve::one_step(context, plan, &named)?;
    transaction::check_live(plan)?;
    transaction::check_writable(context, &plan.problems)?;
    transaction::check_writable(context, &step.problems)?;
    precondition::check_step(context, &plans, plan, step)?;
    let no_room = |_| {
        Error::failed(
            "no-room",
            format!("there is no room after {}", step.id.number),
            "move the next step first",
        )
    };
    let number = new_step::number_after(plan, &step.id.number, None, &elsewhere)?.map_err(no_room)?;
    let id = StepId { plan: plan.id.clone(), number };
    let path = PathBuf::from(&step.path).with_file_name(file_name::step_file(&id.number));
    let mut new = None;
    writing.batch_on_files("split", &mut || {
        let before = context.plans.read(step.path.as_ref())?.bytes;
        let (title, after) = linked(&before, request, &id)?;
        let made = made(context, (plan, step), &id, (&path, title), request.by.as_deref())?;
        let line = steps_list_line::add(context, plan, &made.0)?;
        let file = FileOp::Create { path: path.clone(), bytes: made.1.clone() };
        new = Some(made.0);
        let change = FileOp::Change { path: PathBuf::from(&step.path), before, after };
        Ok([Some(change), Some(file), line].into_iter().flatten().collect())
    })?;
    let mut report = ChangeReport::new("split", request.mode);
    if let Some(new) = new {
        let shape = value(&Views::of(context, &Plans::new(vec![plan.clone()])).step(plan, &new));
        report.changes.push(Changed::new(
            context,
            &id,
            (&new.title, &new.path),
            format!("split from {}", step.id.number),
            shape,
        ));
    }
    report.diff = writing.diff;
    Ok(report)
}

/// The new step and its file.
fn made(
    context: &Context,
    (plan, step): (&Plan, &Step),
    id: &StepId,
    (path, title): (&std::path::Path, String),
    by: Option<&str>,
) -> Result<(Step, Vec<u8>), Error> {
    let (depends, phase) = (plan.spelled_out(step), step.phase.clone());
    let created_by = new_step::maker(context, by);
    let new = NewStep { title, depends, phase, created_by, ..NewStep::default() };
    let bytes = step_file::new_file(&new, id, context).map_err(|it| it.below(&context.root_name()))?;
    let bytes = new_step::in_line_endings_of(plan, bytes);
    let content = read::Content::new(bytes.clone(), context.now);
    Ok((read::read_step_of(plan, id, &path.to_string_lossy(), content, &context.config.words), bytes))
}

/// Returns the text of the task, and the file in which a link replaces this text.
fn linked(file: &[u8], request: &SplitRequest, to: &StepId) -> Result<(String, Vec<u8>), Error> {
    let tasks = task_boxes::in_text(file);
    let open = match request.task {
        Task::Line(line) => task_in_line(file, &tasks, line)?,
        Task::Number(number) => task_boxes::nth(&tasks, number, &request.id)?,
    };
    // The text of the task begins after its box and ends with the line.
    let end = file[open..].iter().position(|it| *it == b'\n').map_or(file.len(), |it| open + it);
    let text = open + 3..end;
    let said = String::from_utf8_lossy(&file[text.clone()]).into_owned();
    let trimmed = said.trim();
    if trimmed.is_empty() {
        return Err(Error::failed("no-task", "the task has no text", "write what there is to do"));
    }
    if trimmed.contains("](") {
        let hint = "only a task without links can become a step";
        return Err(Error::failed("no-task", format!("the task has a link: {trimmed}"), hint));
    }
    let at = text.start + (said.len() - said.trim_start().len());
    let link = format!("[{trimmed}]({})", file_name::step_file(&to.number));
    let after = [&file[..at], link.as_bytes(), &file[at + trimmed.len()..]].concat();
    Ok((trimmed.to_owned(), after))
}

/// The first of these tasks in the given line of the file. Lines are counted from 1.
fn task_in_line(file: &[u8], tasks: &[usize], line: usize) -> Result<usize, Error> {
    let lines = Lines::of(file);
    let found = tasks.iter().find(|it| lines.place(**it).line as usize == line);
    found.copied().ok_or_else(|| {
        let hint = "place the cursor on a task, as in `- [ ] text`";
        Error::failed("no-task", format!("line {line} is not a task"), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::plan::id::PlanId;
    use crate::store::load;

    fn of(id: &str, line: usize) -> SplitRequest {
        SplitRequest { id: id.to_owned(), task: Task::Line(line), by: None, mode: Mode::Write }
    }

    #[test]
    fn a_task_becomes_a_step_and_stays_as_a_link() {
        let step = "---\ndepends: [1]\n---\n# Two\n\n## Tasks\n\n- [ ] write *it*  \n- [x] done\n";
        let machine = Machine::with(&[
            (
                "/plans/p/plan.md",
                "# P\n\n## Steps\n- step-1: One\n- step-2: Two (depends: step-1)\n- step-3: Three\n",
            ),
            ("/plans/p/step-1.md", "# One\n"),
            ("/plans/p/step-2.md", step),
            ("/plans/p/step-3.md", "# Three\n"),
        ]);
        let context = Context::on_model(&machine);
        let ask = |line: usize| split(&context, &of("p:2", line)).map(|it| it.changes[0].id.clone());
        for line in [0, 1, 4, 7, 99] {
            assert_eq!(ask(line).unwrap_err().code(), "no-task", "{line}");
        }
        assert_eq!(ask(8).unwrap(), "p:2.5");
        let text = |path: &str| String::from_utf8(context.plans.read(path.as_ref()).unwrap().bytes).unwrap();
        assert_eq!(text("p/step-2.md"), step.replace("write *it*", "[write *it*](step-2.5.md)"));
        assert!(text("p/step-2.5.md").contains("# write *it*"), "{}", text("p/step-2.5.md"));
        assert!(text("p/step-2.5.md").contains("depends: [1]") || text("p/step-2.5.md").contains("- 1"));
        assert!(
            text("p/plan.md").contains("- step-2.5: write *it* (depends: step-1)\n- step-3"),
            "{}",
            text("p/plan.md")
        );
        assert_eq!(ask(8).unwrap_err().code(), "no-task", "it is a link now");
    }

    #[test]
    fn the_new_step_waits_for_every_step_of_a_long_range() {
        let last = "# Last\n\n- [ ] write it\n\n## Dependencies\n\nRequires all previous steps\n";
        let step = |n: u32| {
            let text = if n == 120 { last } else { "# Step\n" };
            (format!("/plans/p/step-{n}.md"), text)
        };
        let files: Vec<_> = (1..=120).map(step).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let context = Context::on_model(&Machine::with(&files));
        split(&context, &of("p:120", 3)).unwrap();
        let plan = load::one_plan(&context, &PlanId::new("p")).unwrap().unwrap();
        let [.., old, new] = &plan.steps[..] else { panic!("no steps") };
        assert_eq!(plan.spelled_out(new), plan.spelled_out(old));
    }
}
