//! `check`: every problem of every file, and `--fix` for those that can be fixed without losing anything.

use std::path::Path;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{self, shown_path};
use crate::disk::read_file;
use crate::plan::change::set_text;
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, Step};
use crate::plan::problem::{Code, Problem, Severity};
use crate::store::changed_after_removal;
use crate::store::idempotency;
use crate::store::load::{self, LoadQuery, Loaded};
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::project_saves;
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::sync::foreign;
use crate::store::transaction::{ChangeReport, Changed, Mode, Refused, Transaction};
use crate::store::{interrupted, problems, program};
use crate::text::line_index;
use crate::text::typed::shell_word;

pub use crate::api::requests::ProblemsRequest;

#[derive(Debug, Clone, Default)]
pub struct CheckRequest {
    pub fix: bool,
    /// Also reports problems that only git's history or the shared claims show.
    pub git: bool,
    pub mode: Mode,
}

#[derive(Debug, Clone)]
pub struct CheckReport {
    /// Sorted by path, line and column.
    pub problems: Vec<Problem>,
    /// The source line of each problem. `None` if there is no such line, and for a problem at the start of a file, which
    /// may concern the whole file.
    pub lines: Vec<Option<String>>,
    pub root: String,
    pub hints: Vec<String>,
    /// What `--fix` did, or would do in a dry run. `problems` contains the problems that remain: in a dry run, all of them.
    pub fixed: Option<ChangeReport>,
    /// The problems of the configuration, with their source lines.
    pub config: Vec<(Problem, Option<String>)>,
}

/// The path as it is shown, the problem, and its source line.
pub type FoundProblem = (String, Problem, Option<String>);

impl CheckReport {
    pub fn to_json(&self) -> Value {
        let shaped = |(path, it, _): &FoundProblem| {
            let shown = Problem { path: path.clone(), ..it.clone() };
            views::problem("", &shown)
        };
        let problems: Vec<_> = self.all().iter().map(shaped).collect();
        let (n_errors, n) = (self.n_errors(), problems.len());
        let fixed = self.fixed.as_ref().map(ChangeReport::to_json);
        json!({"problems": problems, "errors": n_errors, "warnings": n - n_errors, "hints": self.hints, "fixed": fixed})
    }

    /// All problems, including those of the configuration, sorted by shown path, line and column.
    pub fn all(&self) -> Vec<FoundProblem> {
        let shown = |it: &Problem| shown_path(&self.root, &it.path);
        let of_plans = self.problems.iter().zip(&self.lines);
        let of_plans = of_plans.map(|(it, line)| (shown(it), it.clone(), line.clone()));
        let of_config = self.config.iter().map(|(it, line)| (it.path.clone(), it.clone(), line.clone()));
        let mut all: Vec<_> = of_plans.chain(of_config).collect();
        all.sort_by(|(one, a, _), (other, b, _)| {
            (one, a.line, a.column).cmp(&(other, b.line, b.column)).then_with(|| a.cmp(b))
        });
        all
    }

    pub fn n_errors(&self) -> usize {
        let all = self.problems.iter().chain(self.config.iter().map(|(it, _)| it));
        all.filter(|it| it.severity() == Severity::Error).count()
    }

    /// 6 if there are errors, otherwise the exit code of the first refused fix. Warnings alone count as success.
    pub fn exit_code(&self) -> u8 {
        let refused = self.fixed.as_ref().map_or(0, ChangeReport::exit_code);
        if self.n_errors() > 0 { 6 } else { refused }
    }
}

pub fn check(context: &Context, request: &CheckRequest) -> Result<CheckReport, Error> {
    let fixed = request.fix.then(|| fix(context, request.mode)).transpose()?;
    let Loaded { plans, problems: beside, .. } = LoadQuery::all().scan().load(context)?;
    let mut problems = problems::all(context, &plans, beside);
    problems.extend(names_not_utf8(context));
    if request.git {
        problems.extend(changed_after_removal::find(context)?.problems());
        problems.extend(foreign::problems(context, &plans));
    }
    problems.sort_unstable();
    let hints = plans
        .live()
        .filter_map(too_long)
        .chain(kept(context))
        .chain(interrupted::find(context).map(|it| it.sentence()))
        .collect();
    let lines = problems.iter().map(|it| source_line(context, it)).collect();
    Ok(CheckReport { problems, lines, root: context.root_name(), hints, fixed, config: of_config(context) })
}

fn of_config(context: &Context) -> Vec<(Problem, Option<String>)> {
    let here = &context.here;
    let file = here.config_file.as_ref().filter(|_| !here.config_problems.is_empty());
    let bytes = file.and_then(|it| read_file(context.plans.disk(), it).ok()).unwrap_or_default();
    here.config_problems.iter().map(|it| (it.clone(), line_index::line_text(&bytes, it.line))).collect()
}

fn too_long(plan: &Plan) -> Option<String> {
    let (id, n) = (&plan.id, plan.steps.len());
    (n > program::MANY_STEPS).then(|| {
        format!("`{id}` has {n} steps; `planwatch new TITLE --kind program --children {}` makes it part of a program", shell_word(&id))
    })
}

/// A hint about stored texts that are missing from their files.
fn kept(context: &Context) -> Option<String> {
    let n = context.plans.kept().len() + project_saves::kept(context).len();
    match n {
        0 => None,
        1 => Some("1 stored text is missing from its file; `planwatch doctor` lists it".to_owned()),
        n => Some(format!("{n} stored texts are missing from their files; `planwatch doctor` lists them")),
    }
}

/// Reports directories beside the plans, and Markdown files in plans, that are not read because of their names.
fn names_not_utf8(context: &Context) -> Vec<Problem> {
    let problem = |path: &str| {
        let message = "the name is not UTF-8, so it is not read";
        Problem::of_file(path, Code::NameNotUtf8, message, "give it another name")
    };
    let mut found = Vec::new();
    for directory in context.plans.plan_dirs().0 {
        match directory.relative.to_str() {
            None => found.push(problem(&directory.relative.to_string_lossy())),
            Some(path) => {
                let names = context.plans.other_names(&directory.relative).into_iter();
                found.extend(
                    names.filter(|it| it.ends_with(".md")).map(|it| problem(&format!("{path}/{it}"))),
                );
            }
        }
    }
    found
}

fn source_line(context: &Context, problem: &Problem) -> Option<String> {
    let is_at_line = problem.line > 1 || problem.column > 1;
    let bytes = is_at_line.then(|| context.plans.read(Path::new(&problem.path)).ok())??.bytes;
    line_index::line_text(&bytes, problem.line)
}

/// Repairs what is safe to repair: creates missing files, corrects ids, removes stale claims.
fn fix(context: &Context, mode: Mode) -> Result<ChangeReport, Error> {
    let plans = LoadQuery::all().load(context)?.plans;
    let mut report = ChangeReport::new("check --fix", mode);
    idempotency::record_many(context);
    let mut writing = Transaction::begin(context, "check --fix", mode)?;
    for plan in plans.live() {
        let missing_file = plan.problems.iter().any(|it| it.code == Code::MissingPlanFile);
        if missing_file {
            take(&mut report, &plan.id.to_string(), fix_plan(context, &mut writing, &plan.id));
        }
        for step in plan.steps.iter().filter(|it| is_fixable(it)) {
            take(&mut report, &step.id.to_string(), fix_step(context, &mut writing, step));
        }
    }
    report.diff = writing.diff;
    Ok(report)
}

/// Like [`fix`], but only for the file of one plan or step.
pub(crate) fn fix_one(context: &Context, id: &str, mode: Mode) -> Result<ChangeReport, Error> {
    let mut report = ChangeReport::new("check --fix", mode);
    let target = resolve::target(context, id)?;
    let mut writing = Transaction::begin(context, "check --fix", mode)?;
    let changed = match &target {
        Target::Plan(plan) => fix_plan(context, &mut writing, plan)?,
        Target::Step(named) => {
            let plans = LoadQuery::plan_and_named(&named.id.plan).load(context)?.plans;
            let plan = plans.get(&named.id.plan).ok_or_else(|| load::missing(context, &named.id.plan))?;
            fix_step(context, &mut writing, resolve::one_step(context, plan, named)?)?
        }
    };
    report.changes.push(changed);
    report.diff = writing.diff;
    Ok(report)
}

fn take(report: &mut ChangeReport, id: &str, done: Result<Changed, Error>) {
    match done {
        Ok(changed) => report.changes.push(changed),
        Err(error) => report.refused.push(Refused { id: id.to_owned(), error }),
    }
}

fn is_fixable(step: &Step) -> bool {
    let is_refused = step.problems.iter().any(|it| it.code.refuses_writing());
    let is_fixable =
        |it: &Problem| matches!(it.code, Code::MissingStepFile | Code::IdDiffers | Code::StaleClaim);
    !is_refused && step.problems.iter().any(is_fixable)
}

fn fix_plan(context: &Context, writing: &mut Transaction<'_>, id: &PlanId) -> Result<Changed, Error> {
    plan_file::update(context, writing, id, &|plan, _| {
        let (status, did) = (plan.status.known(), "plan.md created".to_owned());
        Ok(PlanUpdate { status, did, ..PlanUpdate::default() })
    })
}

fn fix_step(context: &Context, writing: &mut Transaction<'_>, step: &Step) -> Result<Changed, Error> {
    step_file::update(context, writing, &NamedStep::of(step), &|now| {
        let step = now.step;
        let has = |code: Code| step.problems.iter().any(|it| it.code == code);
        let keys = if has(Code::IdDiffers) { vec![set_text("id", &step.id.to_string())] } else { Vec::new() };
        Ok(StepUpdate { keys, did: "repaired".to_owned(), ..StepUpdate::default() })
    })
}
