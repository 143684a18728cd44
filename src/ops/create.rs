//! `new`: a plan and its steps in one go; the directory appears whole.

use std::path::Path;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{Shaper, value};
use crate::disk::FileOp;
use crate::ops::add;
use crate::ops::patch;
use crate::ops::program;
use crate::ops::template;
use crate::ops::upsert;
use crate::plan::change::{NewPlan, NewStep};
use crate::plan::file_name::{PLAN_FILE, step_file};
use crate::plan::id::{self, PlanId, StepId};
use crate::plan::model::{Order, Plan};
use crate::plan::plans::Plans;
use crate::plan::problem::Code;
use crate::plan::read::{self, Bodies, CATEGORIES, Content, PlanSources, Source};
use crate::plan::records::Priority;
use crate::plan::rules;
use crate::plan::step_number::StepNumber;
use crate::store::idempotency;
use crate::store::load;
use crate::store::step_file;
use crate::store::transaction::{ChangeReport, Changed, Mode, Writing};
use crate::text::typed::shell_word;

/// A step of a new plan.
#[derive(Debug, Clone, Default)]
pub struct StepRequest {
    pub title: String,
    /// The text below the heading, or with it.
    pub text: Option<String>,
    /// Steps of the new plan by their numbers, or those of other plans.
    pub depends: Vec<String>,
    pub touches: Vec<String>,
    pub verify: Vec<String>,
}

impl StepRequest {
    /// The file's text: the heading, and what is below it; none: the heading alone.
    pub fn body(&self) -> Result<Option<String>, Error> {
        let below = self.text.as_deref().map(|it| patch::below_heading(&self.title, it)).transpose()?;
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(below.filter(|it| !it.trim().is_empty()).map(|it| format!("# {title}\n\n{it}\n")))
    }
}

impl From<String> for StepRequest {
    /// A step that has only a title.
    fn from(title: String) -> Self {
        Self { title, ..Self::default() }
    }
}

#[derive(Debug, Clone, Default)]
pub struct NewRequest {
    pub title: String,
    /// Numbered from 1.
    pub steps: Vec<StepRequest>,
    pub description: Option<String>,
    pub goals: Vec<String>,
    pub criteria: Vec<String>,
    pub tags: Vec<String>,
    pub category: Option<String>,
    pub priority: Option<String>,
    pub program: Option<String>,
    pub is_program: bool,
    /// Plans that become the children of the new program.
    pub children: Vec<String>,
    pub is_draft: bool,
    /// Each step waits for the one before.
    pub is_sequential: bool,
    pub by: Option<String>,
    /// The template that the plan begins with; the steps above come behind its own.
    pub template: Option<String>,
    /// What is to stand in `plan.md`, with or without front matter. No template then.
    pub body: Option<String>,
    pub mode: Mode,
}

/// Makes a plan; its id is the slug of the title, with a number behind it if that is taken.
pub fn new(context: &Context, request: &NewRequest) -> Result<ChangeReport, Error> {
    new_plan(context, request)?;
    let mut writing = Writing::begin(context, "new", request.mode)?;
    let (id, files) = files(context, request)?;
    idempotency::tell(context, || vec![changed(context, &id, &files)]);
    match program::adoption(context, request, &id)? {
        adopted if adopted.is_empty() => writing.create_directory(id.as_str(), &files)?,
        adopted => {
            writing.batch("new", operations(&id, &files).into_iter().chain(adopted).collect())?;
        }
    }
    let mut report = ChangeReport::new("new", request.mode);
    report.changes.push(changed(context, &id, &files));
    report.diff = writing.diff;
    let id_word = shell_word(&id);
    report.hints.push(match files.len() {
        1 => format!("planwatch add {id_word} \"First step\""),
        _ if request.is_draft => format!("planwatch start {id_word}"),
        _ => format!("planwatch next {id_word}"),
    });
    report.hints.extend(hint_for_order(context, as_read(context, &id, &files)));
    Ok(report)
}

/// Says how many steps are ready at once: a list of steps looks like an order, but is none.
fn hint_for_order(context: &Context, plan: Plan) -> Option<String> {
    let plans = Plans::new(vec![plan]);
    let plan = plans.iter().next()?;
    // Whether a step of another plan is closed is not known here.
    if plan.steps.iter().flat_map(|it| &it.depends).any(|it| it.plan != plan.id) {
        return None;
    }
    let ready = plan.steps.iter().filter(|it| rules::is_ready(&plans, plan, it, context.now)).count();
    (ready > 1).then(|| {
        let id = shell_word(&plan.id);
        format!("{ready} steps are ready at once; `planwatch set {id} order sequential` makes each wait for the one before")
    })
}

/// The operations that make a plan's files.
pub(crate) fn operations(id: &PlanId, files: &[(String, Vec<u8>)]) -> Vec<FileOp> {
    let path = |name: &str| Path::new(id.as_str()).join(name);
    files.iter().map(|(name, bytes)| FileOp::Create { path: path(name), bytes: bytes.clone() }).collect()
}

/// Names with their bytes, `plan.md` first.
pub type Files = Vec<(String, Vec<u8>)>;

/// The files of the plan that is asked for, and the id that it gets.
pub(crate) fn files(context: &Context, request: &NewRequest) -> Result<(PlanId, Files), Error> {
    let plan = new_plan(context, request)?;
    let id = free_id(context, &request.title);
    let mut files = match &request.template {
        Some(name) => template::fill(context, request, name, &id, &plan)?,
        None => {
            let body = request.body.as_deref().unwrap_or_default();
            vec![(PLAN_FILE.to_owned(), upsert::plan_file(context, &plan, body)?)]
        }
    };
    if request.body.is_some() {
        upsert::refuse_faulty(&as_read(context, &id, &files))?;
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
        // Which steps there are is known by now.
        let plan = as_read(context, &id, &files);
        for (nth, (number, step)) in steps.iter().enumerate() {
            let depends = add::dependencies(context, &plan, &step.depends)?;
            files[own + nth] = new_step(context, request, &id, (number, step), depends)?;
        }
    }
    if request.steps.iter().any(|it| !it.depends.is_empty()) {
        refuse_circle(&as_read(context, &id, &files))?;
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
        created_by: add::maker(context, request.by.as_deref()),
        body: step.body()?,
        ..NewStep::default()
    };
    Ok((step_file(number), step_file::new_file(&new, &id, context)?))
}

/// Dependencies among the new steps may close a circle, which would keep them from being ready for good.
fn refuse_circle(plan: &Plan) -> Result<(), Error> {
    let plans = Plans::judged(vec![plan.clone()]);
    let steps = plans.get(&plan.id).map(|it| it.steps.as_slice()).unwrap_or_default();
    let mut problems = steps.iter().flat_map(|it| &it.problems);
    match problems.find(|it| it.code == Code::DependencyCycle) {
        Some(problem) => Err(Error::Failed {
            code: problem.code.text(),
            message: format!("refused: {}", problem.message),
            hint: problem.hint.clone(),
        }),
        None => Ok(()),
    }
}

/// The id that a plan of this title gets.
pub(crate) fn free_id(context: &Context, title: &str) -> PlanId {
    let taken = load::taken_names(context);
    PlanId::new(id::slug(title, &|it| taken.iter().any(|name| name.eq_ignore_ascii_case(it))))
}

fn new_plan(context: &Context, request: &NewRequest) -> Result<NewPlan, Error> {
    if request.title.trim().is_empty() || request.steps.iter().any(|it| it.title.trim().is_empty()) {
        return Err(Error::usage("a title is empty", "give each plan and step a title"));
    }
    if request.template.is_some() && request.body.is_some() {
        return Err(Error::usage("a template and a text contradict each other", "use only one of them"));
    }
    let priority = request.priority.as_deref().map(priority);
    let category = request.category.as_deref().map(category);
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

pub(crate) fn priority(typed: &str) -> Result<Priority, Error> {
    let unknown = || {
        Error::usage(
            format!("the priority `{typed}` is not known"),
            "known words: low, medium, high, critical",
        )
    };
    Priority::read(typed).ok_or_else(unknown)
}

pub(crate) fn category(typed: &str) -> Result<String, Error> {
    let known = CATEGORIES.iter().find(|known| known.eq_ignore_ascii_case(typed));
    let hint = || format!("known words: {}", CATEGORIES.join(", "));
    let unknown = || Error::usage(format!("the category `{typed}` is not known"), hint());
    known.map(|it| (*it).to_owned()).ok_or_else(unknown)
}

/// Tells the new plan as it will be read, also where nothing was written.
pub(crate) fn changed(context: &Context, id: &PlanId, files: &[(String, Vec<u8>)]) -> Changed {
    let plan = as_read(context, id, files);
    let plans = Plans::new(vec![plan.clone()]);
    let root = context.root_name();
    let shaper = Shaper { plans: &plans, now: context.now, root: &root };
    Changed {
        id: id.to_string(),
        title: plan.title.clone(),
        path: shaper.path(id.as_str()),
        was_written: true,
        was: None,
        status: Some(plan.shown_status().0.word().to_owned()),
        did: format!("made with {} file{}", files.len(), if files.len() == 1 { "" } else { "s" }),
        now: value(&shaper.plan(&plan)),
    }
}

pub(crate) fn as_read(context: &Context, id: &PlanId, files: &[(String, Vec<u8>)]) -> Plan {
    let source = |name: &str, bytes: &Vec<u8>| Source {
        path: format!("{id}/{name}"),
        content: Ok(Content { bytes: bytes.clone(), etag: load::etag(bytes), modified: context.now }),
    };
    let mut sources = PlanSources::default();
    for (name, bytes) in files {
        match crate::plan::file_name::classify(name) {
            crate::plan::file_name::FileName::Step(number) => {
                sources.steps.push((number, source(name, bytes)));
            }
            _ => sources.plan = Some(source(name, bytes)),
        }
    }
    let plan = read::read_plan(id, false, &sources, &context.config.words, Bodies::Drop);
    debug_assert!(
        plan.steps.iter().all(|it| it.problems.iter().all(|it| it.code != Code::FrontMatterInvalid))
    );
    plan
}
