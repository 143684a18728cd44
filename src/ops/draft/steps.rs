//! The steps that fulfill the requirements: a list in memory, which becomes the plan's steps when it is finished.

use std::path::Path;

use serde_json::{Value, json};

use super::document::{beside, body};
use super::passes::{self, Work};
use super::{DraftReport, DraftRequest, Kept, State};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::ops::replace::{self, ReplaceRequest};
use crate::plan::model::Plan;
use crate::plan::step_items;
use crate::store::load;
use crate::store::transaction::Mode;
use crate::text::placeholders::one_line;
use crate::text::typed::shell_word;

/// The name, without `.md`, of a file in the plan's directory. If the list does not become the plan's steps, it is stored in
/// this file. Diffs of the list show this name, too.
const NAME: &str = "draft-steps";

pub(super) struct Steps {
    plan: Plan,
    requirements: String,
    words: crate::plan::words::Words,
    text: Option<String>,
    passes: u32,
    by: Option<String>,
}

pub(super) fn begin(context: &Context, request: &DraftRequest, plan: Plan) -> Result<Steps, Error> {
    if Kept::of(&plan).is_incomplete {
        let message = format!("the draft `{}` is not finished", plan.id);
        let hint = format!("`planwatch draft {} --continue` continues it", shell_word(&plan.id));
        return Err(Error::conflict("draft-incomplete", message, hint));
    }
    let requirements = body(&context.plans.read(Path::new(&plan.path))?.bytes);
    if requirements.lines().all(|it| it.trim().is_empty() || it.starts_with("# ")) {
        let hint = format!("`planwatch edit {}`", shell_word(&plan.id));
        return Err(Error::failed("draft-empty", format!("`{}` contains no requirements", plan.id), hint));
    }
    let (passes, by) = (passes::at_most(request.passes), request.by.clone());
    Ok(Steps { plan, requirements, words: context.config.words.clone(), text: None, passes, by })
}

impl Steps {
    /// Whether the plan's text or one of its steps was changed since the passes began.
    fn is_edited(&self, context: &Context) -> Result<bool, Error> {
        let now = load::one_plan(context, &self.plan.id)?;
        let marks =
            |it: &Plan| (it.etag.clone(), it.steps.iter().map(|it| it.etag.clone()).collect::<Vec<_>>());
        Ok(now.as_ref().map(marks) != Some(marks(&self.plan)))
    }

    fn request(&self, list: &str, mode: Mode) -> ReplaceRequest {
        ReplaceRequest {
            plan: self.plan.id.to_string(),
            list: list.to_owned(),
            shown: "the agent's list".to_owned(),
            by: self.by.clone(),
            mode,
            ..ReplaceRequest::default()
        }
    }
}

impl Work for Steps {
    fn first(&self) -> u32 {
        1
    }

    fn passes(&self) -> u32 {
        self.passes
    }

    fn text(&self) -> Option<String> {
        None
    }

    fn prompt(&self, _pass: u32) -> &'static str {
        "draft-steps"
    }

    fn values(&self) -> Value {
        json!({"title": one_line(&self.plan.title), "requirements": self.requirements})
    }

    fn accepted(&self, context: &Context, answer: &str) -> Result<String, String> {
        let unread = |it: &str| format!("the answer is not a list of steps: {it}");
        step_items::read(&self.plan, answer, &self.words).map_err(|it| unread(&it.to_string()))?;
        // Any other error, such as a claimed step, is not the agent's mistake.
        match replace::replace(context, &self.request(answer, Mode::DryRun)) {
            Err(error) if error.code() == "list-invalid" => Err(error.to_string()),
            _ => Ok(answer.to_owned()),
        }
    }

    /// Stores the text only in memory: if each pass wrote steps, it would replace the files of the previous pass.
    fn keep(
        &mut self,
        context: &Context,
        _pass: u32,
        text: &str,
        is_last: bool,
    ) -> Result<Option<String>, Error> {
        if is_last && self.is_edited(context)? {
            return Ok(None);
        }
        self.text = Some(text.to_owned());
        Ok(Some(shown_path(&context.root_name(), &format!("{}/{NAME}.md", self.plan.id))))
    }

    fn put_beside(&mut self, context: &Context, _pass: u32, text: &str) -> Result<String, Error> {
        beside(context, &self.plan.id, NAME, text)
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn report(&mut self, context: &Context, state: State, pass: u32) -> Result<DraftReport, Error> {
        let path = Some(shown_path(&context.root_name(), &self.plan.path));
        let (plan, passes) = (Some(self.plan.id.to_string()), self.passes);
        let mut report = DraftReport { state, plan, path, pass, passes, kept: None, steps: None };
        let Some(text) = self.text.clone() else { return Ok(report) };
        if report.is_incomplete() {
            report.kept = match &report.state {
                State::Edited { beside: Some(beside) } => Some(beside.clone()),
                _ => Some(beside(context, &self.plan.id, NAME, &text)?),
            };
            return Ok(report);
        }
        match replace::replace(context, &self.request(&text, Mode::Write)) {
            Ok(steps) => report.steps = Some(steps),
            Err(error) => {
                // The result of all passes must not be lost if the steps cannot be replaced.
                let kept = beside(context, &self.plan.id, NAME, &text)?;
                report.state = State::Incomplete { why: super::Why::Failed(error.to_string()) };
                report.kept = Some(kept);
            }
        }
        Ok(report)
    }

    fn place(&self, context: &Context) -> (String, String) {
        (self.plan.id.to_string(), shown_path(&context.root_name(), &self.plan.path))
    }
}
