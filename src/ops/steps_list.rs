//! Inserts a Steps list into a plan that has none, with a line for each of its steps.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::plan::plans::Plans;
use crate::plan::{read, steps_list as list};
use crate::store::decision::Decision;
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{load, resolve};

#[derive(Debug, Clone, Default)]
pub struct StepsListRequest {
    pub plan: String,
    pub mode: Mode,
}

/// Writes a line for each step, with what it depends on. A plan that has a list stays as it is.
pub fn insert(context: &Context, request: &StepsListRequest) -> Result<ChangeReport, Error> {
    let id = resolve::plan(context, &request.plan)?;
    let mut writing = Transaction::begin(context, "steps-list", request.mode)?;
    let plan = load::settled_plan(context, &id)?;
    transaction::check_live(&plan)?;
    transaction::check_writable(context, &plan.problems)?;
    if plan.etag.is_none() {
        return Err(Error::failed(
            "not-found",
            format!("`{id}` has no plan.md"),
            "`planwatch check --fix` makes one",
        ));
    }
    precondition::check_plan(context, &Plans::new(vec![plan.clone()]), &plan)?;
    let decided: Decision<_, _> = writing.change(&plan.path, &|bytes| {
        let content = read::Content::new(bytes.to_vec(), context.now);
        let now = read::read_plan_again(&plan, content, &context.config.words);
        transaction::check_writable(context, &now.problems)?;
        let lines = plan.steps.iter().map(|it| (&it.id.number, it.title.as_str(), it.depends_for_line()));
        Ok(Decision::Write(list::with_list(&id, bytes, lines), ()))
    })?;
    let Decision::Write(applied, ()) = decided;
    let did = if applied.was_written { "Steps list inserted" } else { "already there" };
    let plans = Plans::new(vec![plan.clone()]);
    let shape = value(&Views::of(context, &plans).plan(&plan));
    let mut report = ChangeReport::new("steps-list", request.mode);
    let changed = Changed::new(context, &id, (&plan.title, &plan.path), did, shape);
    report.changes.push(Changed { was_written: applied.was_written, ..changed });
    report.diff = writing.diff;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[track_caller]
    fn check(plan: &str, expected: &str) {
        let machine = Machine::with(&[
            ("/plans/p/plan.md", plan),
            ("/plans/p/step-1.md", "# One\n"),
            ("/plans/p/step-2.md", "---\ndepends: [1, \"q:3\"]\n---\n# Two\n"),
        ]);
        let context = Context::on_model(&machine);
        insert(&context, &StepsListRequest { plan: "p".to_owned(), mode: Mode::Write }).unwrap();
        let now = context.plans.read("p/plan.md".as_ref()).unwrap().bytes;
        assert_eq!(String::from_utf8(now).unwrap(), expected);
    }

    #[test]
    fn a_plan_without_a_list_gets_one() {
        let lines = "- step-1: One\n- step-2: Two (depends: step-1, q:3)\n";
        check("# P\n", &format!("# P\n\n## Steps\n\n{lines}"));
        check("# P", &format!("# P\n\n## Steps\n\n{lines}"));
        check("# P\n\n## Steps\n\n## Notes\n", &format!("# P\n\n## Steps\n\n{lines}\n## Notes\n"));
        let intro = "# P\n\n## Steps\n\nIn this order.  \nReally.\n";
        check(intro, &format!("{intro}\n{lines}"));
        check(intro.trim_end(), &format!("{intro}\n{}", lines.trim_end()));
        check(&format!("{intro}\n### More\n"), &format!("{intro}\n{lines}\n### More\n"));
        check("# P\r\n", &format!("# P\n\n## Steps\n\n{lines}").replace('\n', "\r\n"));
        let has_one = "# P\n## Steps\n- step-1: Own words\n";
        check(has_one, has_one);
    }
}
