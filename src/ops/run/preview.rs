//! `run --dry-run`: shows the first step of a run, and what the step's process would get. `PATH` is left out, and
//! placeholders stand for the id of the claim and the file of the prompt.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::agents::{self, PROMPT_VARIABLE, PromptBy};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::trust;
use crate::ops::claim::{self, Task};
use crate::ops::run::{RunRequest, environment, trees};
use crate::plan::rules;
use crate::store::leases::Leases;
use crate::store::load::{self, LoadQuery};
use crate::store::prompt;
use crate::store::resolve;
use crate::store::verify;

#[derive(Debug, Clone)]
pub struct Preview {
    pub plan: String,
    /// `None`: no step can be begun.
    pub step: Option<String>,
    pub title: String,
    pub why: String,
    /// The step would only be verified.
    pub is_verify: bool,
    pub command: String,
    pub directory: String,
    pub environment: Vec<(String, String)>,
    pub timeout: Duration,
    pub idle: Option<Duration>,
    pub max_attempts: u32,
    /// How the agent's options were checked, and for which version of the agent.
    pub checked: Option<&'static str>,
    pub verify: Vec<String>,
    /// What has to be trusted first, as arguments of `planwatch trust`.
    pub untrusted: Vec<String>,
    pub prompt: String,
    pub notes: Vec<String>,
}

impl Preview {
    pub fn to_json(&self) -> Value {
        let environment: serde_json::Map<_, _> =
            self.environment.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        json!({
            "plan": self.plan, "step": self.step, "title": self.title, "why": self.why, "verify_only": self.is_verify,
            "command": self.command, "directory": self.directory, "environment": environment,
            "timeout": self.timeout.as_secs(), "idle": self.idle.map(|it| it.as_secs()),
            "max_attempts": self.max_attempts, "checked": self.checked, "verify": self.verify,
            "untrusted": self.untrusted, "prompt": self.prompt, "notes": self.notes,
        })
    }
}

/// Makes the preview. No plan file is written, and neither the agent nor a `verify` command is started.
pub fn preview(context: &Context, request: &RunRequest) -> Result<Preview, Error> {
    let id = resolve::plan(context, &request.plan)?;
    if request.has_worktrees {
        trees::check(context)?;
    }
    let wanted = claim::wanted(context, &id)?;
    let first = wanted.first().map(|it| &it.id);
    let of = first.map_or(&id, |it| &it.plan);
    let plans = Leases::of(context).annotate_optimistically(LoadQuery::plan(of).load(context)?.plans);
    let plan = plans.get(of).ok_or_else(|| load::missing(context, of))?;
    let step = first.and_then(|it| plan.find(it));
    let task = step.and_then(|it| claim::task(context, &plans, plan, it));
    let mut untrusted: Vec<_> = agents::subject_now(context, &request.agent).into_iter().collect();
    untrusted.extend(step.and_then(|it| verify::subject(context, it)));
    untrusted.retain(|it| !trust::may_run(context, it, &request.trust_hashes));
    let claim = "CLAIM";
    let values = |it| prompt::step_values(context, plan, it, Some(claim));
    let values = step.filter(|_| task == Some(Task::Work)).map(values);
    let rendered = values.map(|it| prompt::render(context, "step", &it)).transpose()?;
    let step_id = step.map(|it| it.id.to_string());
    let names = environment(context, request, step_id.as_deref().unwrap_or_default(), of.as_str(), claim);
    // The file of the prompt is made when the worker starts.
    let is_by_file = task == Some(Task::Work) && request.agent.prompt == PromptBy::File;
    let by_file = is_by_file.then(|| (PROMPT_VARIABLE.into(), "PROMPT".into()));
    let shown = names.iter().filter(|(name, _)| name != "PATH").chain(&by_file);
    let shown =
        shown.map(|(name, it)| (name.to_string_lossy().into_owned(), it.to_string_lossy().into_owned()));
    let place = request.has_worktrees.then(|| "the step would get a git worktree of its own".to_owned());
    let next = rules::next(&plans, plan, context.now);
    let why = match (step, task) {
        (Some(_), Some(Task::Verify)) => "the run that worked on it died before verifying it".to_owned(),
        (Some(step), _) if rules::is_ready(&plans, plan, step, context.now) => {
            rules::why_ready(&plans, plan, step, context.now)
        }
        (Some(_), _) => "it may be tried again".to_owned(),
        (None, _) => next.why,
    };
    Ok(Preview {
        plan: id.to_string(),
        step: step_id,
        title: step.map(|it| it.title.clone()).unwrap_or_default(),
        why,
        is_verify: task == Some(Task::Verify),
        command: request.agent.command.shown(),
        directory: context.here.root.to_string_lossy().into_owned(),
        environment: shown.collect(),
        timeout: request.timeout(),
        idle: request.idle(),
        max_attempts: request.max_attempts.unwrap_or(context.config.max_attempts()),
        checked: request.agent.checked,
        verify: step.map(|it| it.verify.iter().map(|it| it.run.clone()).collect()).unwrap_or_default(),
        untrusted: untrusted.into_iter().map(|it| it.name).collect(),
        prompt: rendered.as_ref().map(|it| it.text.clone()).unwrap_or_default(),
        notes: rendered.map(|it| it.notes).unwrap_or_default().into_iter().chain(place).collect(),
    })
}
