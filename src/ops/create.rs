//! `new`: creates a plan and its steps in one atomic change.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::template;
use crate::plan::change::{NewPlan, NewStep};
use crate::plan::file_name::{PLAN_FILE, step_file};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan};
use crate::plan::plans::Plans;
use crate::plan::problem::Code;
use crate::plan::rules;
use crate::plan::step_number::StepNumber;
use crate::store::new_plan::{self, Files};
use crate::store::transaction::{ChangeReport, Transaction};
use crate::store::{idempotency, new_step, program, step_file, typed_words};
use crate::text::typed::shell_word;

pub use crate::api::requests::{NewRequest, StepRequest};

impl StepRequest {
    /// The file's text: the heading, and the text below it. None if there is no text below the heading.
    pub fn body(&self) -> Result<Option<String>, Error> {
        let below = self.text.as_deref().map(|it| new_step::below_heading(&self.title, it)).transpose()?;
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(below.filter(|it| !it.trim().is_empty()).map(|it| format!("# {title}\n\n{it}\n")))
    }
}

/// Creates a plan. Its id is the slug of the title, followed by a number if the slug is taken.
pub fn new(context: &Context, request: &NewRequest) -> Result<ChangeReport, Error> {
    new_plan(context, request)?;
    let mut writing = Transaction::begin(context, "new", request.mode)?;
    let (id, files) = files(context, request)?;
    idempotency::record(context, || vec![new_plan::changed(context, &id, &files)]);
    match program::adoption(context, (request.is_program, &request.children), &id)? {
        adopted if adopted.is_empty() => writing.create_directory(id.as_str(), &files)?,
        adopted => {
            writing.batch("new", new_plan::operations(&id, &files).into_iter().chain(adopted).collect())?;
        }
    }
    let mut report = ChangeReport::new("new", request.mode);
    report.changes.push(new_plan::changed(context, &id, &files));
    report.diff = writing.diff;
    let id_word = shell_word(&id);
    report.hints.push(match files.len() {
        1 => format!("planwatch add {id_word} \"First step\""),
        _ if request.is_draft => format!("planwatch start {id_word}"),
        _ => format!("planwatch next {id_word}"),
    });
    report.hints.extend(hint_for_order(context, new_plan::as_read(context, &id, &files)));
    Ok(report)
}

/// A hint if several steps are ready at once: the order of the steps alone does not make them wait for each other.
fn hint_for_order(context: &Context, plan: Plan) -> Option<String> {
    let plans = Plans::new(vec![plan]);
    let plan = plans.iter().next()?;
    // Other plans are not loaded, so dependencies on their steps cannot be checked.
    if plan.steps.iter().flat_map(|it| &it.depends).any(|it| it.plan != plan.id) {
        return None;
    }
    let ready = plan.steps.iter().filter(|it| rules::is_ready(&plans, plan, it, context.now)).count();
    (ready > 1).then(|| {
        let id = shell_word(&plan.id);
        format!("{ready} steps are ready at once; `planwatch set {id} order sequential` makes each wait for the one before")
    })
}

/// The id and the files of the requested plan.
pub(crate) fn files(context: &Context, request: &NewRequest) -> Result<(PlanId, Files), Error> {
    let plan = new_plan(context, request)?;
    if let Some(body) = &request.body {
        new_plan::refuse_confirmations(context, body)?;
    }
    let id = new_plan::free_id(context, &request.title);
    let mut files = match &request.template {
        Some(name) => template::fill(context, request, name, &id, &plan)?,
        None => {
            let body = request.body.as_deref().unwrap_or_default();
            vec![(PLAN_FILE.to_owned(), new_plan::plan_file(context, &plan, body)?)]
        }
    };
    if request.body.is_some() {
        new_plan::refuse_faulty(&new_plan::as_read(context, &id, &files))?;
    }
    let last = template::last_number(&files);
    let first = last.map_or(Ok(StepNumber::whole(1)), |it| it.successor()).unwrap_or(StepNumber::whole(1));
    let numbers = std::iter::successors(Some(first), |it| it.successor().ok());
    let own = files.len();
    let steps: Vec<_> = numbers.zip(&request.steps).collect();
    for (number, step) in &steps {
        files.push(new_step(context, request, &id, (number, step), Vec::new())?);
    }
    if steps.iter().any(|(_, it)| !it.depends.is_empty()) {
        // All new steps are known now, so the dependencies can be resolved.
        let plan = new_plan::as_read(context, &id, &files);
        for (nth, (number, step)) in steps.iter().enumerate() {
            let depends = new_step::dependencies(context, &plan, &step.depends)?;
            files[own + nth] = new_step(context, request, &id, (number, step), depends)?;
        }
    }
    if request.steps.iter().any(|it| !it.depends.is_empty()) {
        refuse_cycle(&new_plan::as_read(context, &id, &files))?;
    }
    Ok((id, files))
}

fn new_step(
    context: &Context,
    request: &NewRequest,
    plan: &PlanId,
    (number, step): (&StepNumber, &StepRequest),
    depends: Vec<StepId>,
) -> Result<(String, Vec<u8>), Error> {
    let id = StepId { plan: plan.clone(), number: number.clone() };
    let new = NewStep {
        title: step.title.clone(),
        depends,
        touches: step.touches.clone(),
        verify: step.verify.clone(),
        created_by: new_step::maker(context, request.by.as_deref()),
        body: step.body()?,
        ..NewStep::default()
    };
    Ok((step_file(number), step_file::new_file(&new, &id, context)?))
}

/// Refuses a cycle of dependencies among the new steps: its steps would never become ready.
fn refuse_cycle(plan: &Plan) -> Result<(), Error> {
    let plans = Plans::judged(vec![plan.clone()]);
    let steps = plans.get(&plan.id).map(|it| it.steps.as_slice()).unwrap_or_default();
    let mut problems = steps.iter().flat_map(|it| &it.problems);
    let Some(problem) = problems.find(|it| it.code == Code::DependencyCycle) else { return Ok(()) };
    Err(Error::failed(problem.code.text(), format!("refused: {}", problem.message), problem.hint.clone()))
}

fn new_plan(context: &Context, request: &NewRequest) -> Result<NewPlan, Error> {
    if request.title.trim().is_empty() || request.steps.iter().any(|it| it.title.trim().is_empty()) {
        return Err(Error::usage("a title is empty", "give each plan and step a title"));
    }
    if request.template.is_some() && request.body.is_some() {
        return Err(Error::usage("a template and a text contradict each other", "use only one of them"));
    }
    let priority = request.priority.as_deref().map(typed_words::priority);
    let category = request.category.as_deref().map(typed_words::category);
    if let Some(name) = &request.program {
        program::check_program(context, &PlanId::new(name.clone()))?;
        if request.is_program {
            return Err(program::nested(&request.title));
        }
    }
    Ok(NewPlan {
        title: request.title.clone(),
        is_draft: request.is_draft,
        is_program: request.is_program,
        is_sequential: request.is_sequential || context.config.order == Some(Order::Sequential),
        description: request.description.clone(),
        program: request.program.clone(),
        category: category.transpose()?,
        priority: priority.transpose()?,
        tags: request.tags.clone(),
        goals: request.goals.clone(),
        success_criteria: request.criteria.clone(),
    })
}
