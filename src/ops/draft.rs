//! `draft`: turns a conversation into requirements in several passes, and the requirements into steps.
//!
//! An agent answers the prompt of each pass, and planwatch decides what to do with the answer. The requirements are on disk
//! from the first pass on. A pass replaces their file only if the file has not changed since the previous pass wrote it or,
//! in the first pass of a call, since it was read. So a text that another program saves meanwhile is never replaced. The
//! steps stay in memory until the passes end. Nothing here starts a process: the [`Answerer`] does.

mod conversation;
mod document;
mod passes;
mod reply;
mod steps;
pub mod turns;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::{self, PlanId};
use crate::plan::model::Plan;
use crate::plan::words::PlanStatus;
use crate::store::load;
use crate::store::resolve;
use crate::store::transaction::ChangeReport;

use crate::text::typed::shell_word;
use passes::mark;
pub use passes::{FOCI, focus};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOutput {
    pub end: End,
    pub stdout: String,
    pub stderr: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The exit code, as a shell reports it.
    Exited(i32),
    TimedOut,
    Interrupted,
    TooMuch,
    NotStarted(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    ToTheEnd,
    Interrupted,
}

pub trait Answerer {
    /// Passes a prompt to a new agent, which does not know the earlier prompts.
    fn ask(&mut self, prompt: &str) -> AgentOutput;
    fn wait(&mut self, seconds: u64) -> Waited;
}

impl AgentOutput {
    pub fn without_output(end: End) -> Self {
        Self { end, stdout: String::new(), stderr: String::new() }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The text of the conversation.
    pub conversation: String,
    /// The source to record in the plan: a path relative to the repository's root, or `-`.
    pub name: String,
}

#[derive(Debug, Clone, Default)]
pub struct DraftRequest {
    /// A name or a title for a new draft, or the id of an existing one.
    pub name: String,
    /// None for [`Aim::Steps`].
    pub source: Option<Source>,
    pub aim: Aim,
    pub passes: Option<u32>,
    /// The maximum number of bytes of the conversation that an agent gets.
    pub limit: usize,
    pub by: Option<String>,
    pub before: Before,
}

/// The results of passes of earlier calls, for a draft that gets each answer in a separate call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// How many passes in a row, up to now, changed nothing.
    #[serde(rename = "unchanged")]
    pub n_unchanged: u32,
    /// The short hashes (see `passes::mark`) of earlier texts of the draft.
    pub left: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aim {
    #[default]
    Requirements,
    /// Continues the requirements of an existing draft after its last pass.
    GoOn,
    Steps,
}

/// How many passes have a focus of their own; later ones review everything.
pub const PASSES: u32 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A prompt is about to be sent to an agent.
    Asking { pass: u32, passes: u32, focus: &'static str },
    /// A pass is over. Its result is on disk, or in memory if it is a list of steps.
    Pass {
        pass: u32,
        passes: u32,
        focus: &'static str,
        change: Change,
        added: usize,
        removed: usize,
        diff: String,
    },
    /// The prompt of the same pass is sent again.
    Again { pass: u32, why: String },
    /// The draft waits until the agent's usage limit ends.
    Waiting { pass: u32, seconds: u64 },
    /// A notice, for example that a prompt could not be used or that the conversation was cut.
    Note { text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Made,
    Changed,
    Unchanged,
    /// The answer equals the text of an earlier pass.
    CameBack,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::CameBack => "came back",
        }
    }
}

impl Event {
    pub fn to_json(&self, with_diff: bool) -> Value {
        match self {
            Self::Asking { pass, passes, focus } => {
                json!({"event": "asking", "pass": pass, "passes": passes, "focus": focus})
            }
            Self::Pass { pass, passes, focus, change, added, removed, diff } => {
                let mut event = json!({
                    "event": "pass", "pass": pass, "passes": passes, "focus": focus, "change": change.word(),
                    "added": added, "removed": removed,
                });
                if with_diff {
                    event["diff"] = diff.as_str().into();
                }
                event
            }
            Self::Again { pass, why } => json!({"event": "again", "pass": pass, "why": why}),
            Self::Waiting { pass, seconds } => json!({"event": "waiting", "pass": pass, "seconds": seconds}),
            Self::Note { text } => json!({"event": "note", "why": text}),
        }
    }
}

/// Why the passes ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Two passes in a row changed nothing.
    Converged,
    /// A pass returned the text of an earlier pass.
    Oscillates,
    /// All passes were made.
    Finished,
    /// The draft was edited meanwhile. If the last answer changed the text, `beside` is the path of a file that contains the
    /// answer.
    Edited { beside: Option<String> },
    /// A pass got no usable answer, or the list could not become the plan's steps.
    Incomplete { why: Why },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    TimedOut,
    Nothing,
    Limited { seconds: u64 },
    Failed(String),
    Interrupted,
}

impl Why {
    fn sentence(&self) -> String {
        match self {
            Self::TimedOut => "the agent took too long, twice".to_owned(),
            Self::Nothing => "the agent gave an empty answer three times".to_owned(),
            Self::Limited { seconds } => format!("the agent's usage limit ends in {seconds} s"),
            Self::Failed(why) => why.clone(),
            Self::Interrupted => "it was interrupted".to_owned(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct DraftReport {
    pub state: State,
    /// None if no pass has created the plan yet.
    pub plan: Option<String>,
    /// The path of the draft, beginning with the plans directory's name.
    pub path: Option<String>,
    /// The last pass that was made, by this call or an earlier one.
    pub pass: u32,
    pub passes: u32,
    /// The file with the steps so far, if they did not become the plan's steps.
    pub kept: Option<String>,
    /// The change that replaced the plan's steps, if there was one.
    pub steps: Option<ChangeReport>,
}

impl DraftReport {
    pub fn to_json(&self) -> Value {
        let beside = match &self.state {
            State::Edited { beside } => beside.as_ref().or(self.kept.as_ref()),
            _ => self.kept.as_ref(),
        };
        json!({
            "state": self.word(), "plan": self.plan, "path": self.path, "pass": self.pass, "passes": self.passes,
            "incomplete": self.is_incomplete(), "beside": beside,
            "steps": self.steps.as_ref().map(ChangeReport::to_json),
        })
    }

    pub fn word(&self) -> &'static str {
        match self.state {
            State::Converged => "converged",
            State::Oscillates => "oscillates",
            State::Finished => "finished",
            State::Edited { .. } => "edited",
            State::Incomplete { .. } => "incomplete",
        }
    }

    pub fn is_incomplete(&self) -> bool {
        matches!(self.state, State::Edited { .. } | State::Incomplete { .. })
    }

    /// Why the draft was not finished, as an error; none if it was.
    pub fn error(&self) -> Option<Error> {
        let name = self.plan.clone().unwrap_or_default();
        let (word, kept_word) = (shell_word(&name), self.kept.as_ref().map(shell_word));
        match &self.state {
            State::Edited { beside } => {
                let what = match beside.as_ref().or(self.kept.as_ref()) {
                    Some(beside) => format!("; the answer is in {beside}"),
                    None => ", and the pass had nothing to change".to_owned(),
                };
                let message = format!("`{name}` was edited in the meantime{what}");
                let hint = match (kept_word, beside) {
                    (Some(kept), _) => format!("check it, then run `planwatch replace {word} --file {kept}`"),
                    (None, Some(_)) => {
                        format!("copy what you need from it, then run `planwatch draft {word} --continue`")
                    }
                    (None, None) => format!("`planwatch draft {word} --continue` continues"),
                };
                Some(Error::conflict("draft-edited", message, hint))
            }
            State::Incomplete { why } => {
                let message = match (&self.plan, self.pass) {
                    (Some(_), pass) if pass > 0 => {
                        format!("the draft is incomplete after pass {pass}: {}", why.sentence())
                    }
                    // After no pass, there is a plan only if the passes make its steps.
                    (Some(_), _) => format!("there are no steps yet: {}", why.sentence()),
                    (None, _) => format!("there is no draft yet: {}", why.sentence()),
                };
                let hint = match (&self.plan, kept_word) {
                    (Some(_), Some(kept)) => {
                        format!("`planwatch replace {word} --file {kept}` uses the steps so far")
                    }
                    (Some(_), None) if self.pass > 0 => {
                        format!("`planwatch draft {word} --continue` continues")
                    }
                    _ => "try again".to_owned(),
                };
                let code = if *why == Why::TimedOut { "timed-out" } else { "draft-incomplete" };
                Some(Error::Failed { code, message, hint })
            }
            _ => None,
        }
    }

    pub fn exit_code(&self) -> u8 {
        match &self.state {
            State::Incomplete { why: Why::TimedOut } => 124,
            State::Incomplete { why: Why::Interrupted } => 130,
            _ => self.error().map_or(0, |it| it.exit_code()),
        }
    }
}

/// Makes a draft, continues one, or makes its steps.
///
/// `tell` is called with each event. If the draft cannot begin, an error is returned and no file is created.
pub fn draft(
    context: &Context,
    request: &DraftRequest,
    answerer: &mut dyn Answerer,
    tell: &mut dyn FnMut(&Event),
) -> Result<DraftReport, Error> {
    match begin(context, request)? {
        Begun::Over(report) => Ok(*report),
        Begun::Document(mut work) => passes::run(context, &mut *work, answerer, tell, &request.before),
        Begun::Steps(mut work) => passes::run(context, &mut *work, answerer, tell, &request.before),
    }
}

/// What a draft would do. No agent is started.
#[derive(Debug, Clone)]
pub struct Preview {
    pub plan: String,
    pub path: String,
    /// All passes that are left, each with its focus. The draft may end before the last one.
    pub passes: Vec<(u32, &'static str)>,
    /// The prompt of the first of these passes.
    pub prompt: String,
    pub notes: Vec<String>,
}

impl Preview {
    pub fn to_json(&self) -> Value {
        let pass = |(pass, focus): &(u32, &str)| json!({"pass": pass, "focus": focus});
        json!({
            "state": "dry-run", "plan": self.plan, "path": self.path,
            "passes": self.passes.iter().map(pass).collect::<Vec<_>>(), "prompt": self.prompt, "notes": self.notes,
        })
    }
}

/// The prompt that [`draft`] would send first; none if nothing is left to do.
pub fn preview(context: &Context, request: &DraftRequest) -> Result<Option<Preview>, Error> {
    match begin(context, request)? {
        Begun::Over(_) => Ok(None),
        Begun::Document(work) => passes::preview(context, &*work).map(Some),
        Begun::Steps(work) => passes::preview(context, &*work).map(Some),
    }
}

fn not_begun(plan: &Plan) -> Error {
    let hint = "pass its text as the conversation of a new draft: `planwatch draft NAME --from FILE`";
    Error::conflict("not-a-draft", format!("`{}` was not made by `draft`", plan.id), hint)
}

enum Begun {
    Over(Box<DraftReport>),
    Document(Box<document::Document>),
    Steps(Box<steps::Steps>),
}

fn begin(context: &Context, request: &DraftRequest) -> Result<Begun, Error> {
    if request.passes == Some(0) {
        return Err(Error::usage("a draft needs at least one pass", "--passes must be 1 or more"));
    }
    match request.aim {
        Aim::Requirements => document::new(context, request).map(|it| Begun::Document(Box::new(it))),
        Aim::GoOn => {
            let plan = of_name(context, &request.name)?;
            let state = Kept::of(&plan);
            if state.pass == 0 {
                return Err(not_begun(&plan));
            }
            if state.is_over(request.passes) {
                let passes = passes::at_most(request.passes);
                return Ok(Begun::Over(Box::new(document::over(context, &plan, state.pass, passes))));
            }
            document::go_on(context, request, &plan, state.pass).map(|it| Begun::Document(Box::new(it)))
        }
        Aim::Steps => steps::begin(context, request, of_name(context, &request.name)?)
            .map(|it| Begun::Steps(Box::new(it))),
    }
}

/// The source that a draft records, so that the caller can read the conversation again. None if no pass is left.
pub fn source(context: &Context, name: &str, passes: Option<u32>) -> Result<Option<String>, Error> {
    let state = Kept::of(&of_name(context, name)?);
    Ok((!state.is_over(passes)).then_some(state.source))
}

/// Finds a live plan that is a draft, by its id or by the title that it was made with.
fn of_name(context: &Context, name: &str) -> Result<Plan, Error> {
    let named = PlanId::new(id::slug(name, &|_| false));
    let id = match resolve::plan(context, name) {
        Ok(id) if load::exists(context, &id) => id,
        _ if load::exists(context, &named) => named,
        Ok(id) => id,
        Err(error) => return Err(error),
    };
    let plan = load::existing_plan(context, &id)?;
    crate::store::transaction::check_live(&plan)?;
    crate::store::transaction::check_writable(context, &plan.problems)?;
    if !plan.status.is(PlanStatus::Draft) {
        let hint = format!("`planwatch set {} status draft` makes it one", shell_word(&id));
        return Err(Error::conflict("not-a-draft", format!("`{id}` is not a draft"), hint));
    }
    Ok(plan)
}

/// The values of the key `draft` of a plan.
struct Kept {
    pass: u32,
    is_incomplete: bool,
    source: String,
}

impl Kept {
    /// A finished draft gets further passes only if more passes are requested than were made.
    fn is_over(&self, passes: Option<u32>) -> bool {
        self.pass > 0 && !self.is_incomplete && passes.is_none_or(|it| it <= self.pass)
    }

    fn of(plan: &Plan) -> Self {
        let of = |key: &str| plan.draft.get(key);
        Self {
            pass: of("pass").and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok()).unwrap_or(0),
            is_incomplete: plan.is_incomplete(),
            source: of("source").and_then(Value::as_str).unwrap_or_default().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
