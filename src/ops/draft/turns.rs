//! A draft that gets each answer in a separate call, from an agent that planwatch did not start. Each call passes the
//! answer to one prompt and returns the next prompt. Between two calls the state is in a file in the directory `drafts` of
//! the state directory.
//!
//! Each prompt comes with a handle, which is sent back with the answer. The handle contains the number of the pass, so an
//! answer that is sent twice counts once. An answer replaces the text only if the file is as it was when the prompt was
//! made. After an edit, the call returns a prompt for the same pass, with the edited text.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    AgentOutput, Aim, Answerer, Before, Change, DraftReport, DraftRequest, End, Event, Source, State, Waited,
    Why, document, focus, mark, preview,
};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::plan::read;

/// A request to begin a draft that gets each answer in a separate call.
#[derive(Debug, Clone, Default)]
pub struct BeginRequest {
    /// A name or a title for a new draft, or the id of an existing one.
    pub name: String,
    pub conversation: String,
    pub passes: Option<u32>,
    /// The maximum number of bytes of the conversation that the agent gets.
    pub limit: usize,
}

/// The next prompt, or how the draft ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// `asking`, `edited` (the same pass again, because the text was edited), or the word for how the draft ended.
    pub state: &'static str,
    /// The handle for the next answer; none at the end.
    pub handle: Option<String>,
    pub prompt: Option<String>,
    /// The pass that the prompt is for; without a prompt, the last pass that was made.
    pub pass: u32,
    pub passes: u32,
    pub plan: Option<String>,
    pub path: Option<String>,
    /// What the last pass did to the text.
    pub change: Option<&'static str>,
    /// Notices, or why the draft ended.
    pub why: Option<String>,
}

impl Turn {
    pub fn to_json(&self) -> Value {
        let focus = self.prompt.as_ref().map(|_| focus(self.pass));
        json!({
            "state": self.state, "draft": self.handle, "pass": self.pass, "passes": self.passes, "focus": focus,
            "prompt": self.prompt, "plan": self.plan, "path": self.path, "change": self.change, "why": self.why,
        })
    }
}

/// The state that is stored between two calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Memory {
    name: String,
    conversation: String,
    passes: Option<u32>,
    limit: usize,
    /// None until the first pass has created the plan.
    plan: Option<String>,
    /// The pass whose answer is expected.
    pass: u32,
    #[serde(flatten)]
    before: Before,
    /// The etag of the plan's file when the last prompt was made.
    etag: Option<String>,
}

/// Begins a draft or continues an existing one. Returns the prompt of the next pass if one is left.
pub fn begin(context: &Context, request: &BeginRequest) -> Result<Turn, Error> {
    let mut memory = Memory {
        name: request.name.clone(),
        conversation: request.conversation.clone(),
        passes: request.passes,
        limit: request.limit,
        pass: 1,
        ..Memory::default()
    };
    if let Ok(plan) = super::of_name(context, &request.name) {
        let kept = super::Kept::of(&plan);
        if kept.pass == 0 {
            return Err(super::not_begun(&plan));
        }
        memory.etag = etag(context, plan.id.as_str());
        (memory.plan, memory.pass) = (Some(plan.id.to_string()), kept.pass + 1);
        if kept.is_over(request.passes) {
            return Ok(over(context, &plan.id, &memory, kept.pass));
        }
    }
    let mut bytes = [0; 6];
    context.plans.random(&mut bytes)?;
    let id: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
    ask(context, &id, &memory, "asking", None)
}

/// Uses an answer, and returns the prompt of the next pass if there is one.
pub fn answer(context: &Context, handle: &str, text: &str) -> Result<Turn, Error> {
    let (id, pass) = read_handle(handle)?;
    let Some(mut memory) = remembered(context, id)? else { return Err(unknown(handle)) };
    if memory.pass != pass {
        let why = format!("an answer to pass {pass} was already used");
        return ask(context, id, &memory, "asking", Some(why));
    }
    let now = memory.plan.as_deref().and_then(|it| etag(context, it));
    if memory.plan.is_some() && now != memory.etag {
        memory.etag = now;
        let why = "the text was edited in the meantime; the answer was not used";
        return ask(context, id, &memory, "edited", Some(why.to_owned()));
    }
    let mut once = Once { answer: Some(text.to_owned()) };
    let (mut change, mut unusable) = (None, None);
    let report = super::draft(context, &request(&memory), &mut once, &mut |event| match event {
        Event::Pass { change: made, .. } => change = Some(*made),
        Event::Again { why, .. } => unusable = Some(why.clone()),
        _ => {}
    })?;
    let Some(change) = change else { return not_taken(&report, unusable) };
    memory.before.n_unchanged = if change == Change::Unchanged { memory.before.n_unchanged + 1 } else { 0 };
    memory.plan.clone_from(&report.plan);
    let plan = report.plan.clone().unwrap_or_default();
    memory.etag = etag(context, &plan);
    if let Some(bytes) = bytes(context, &plan) {
        memory.before.left.push(mark(&document::body(&bytes)));
    }
    if report.state != (State::Incomplete { why: Why::Interrupted }) {
        context.plans.remove_draft(id);
        return Ok(Turn { change: Some(change.word()), ..ended(&report) });
    }
    memory.pass = report.pass + 1;
    let turn = ask(context, id, &memory, "asking", None)?;
    Ok(Turn { change: Some(change.word()), ..turn })
}

/// Reports why the answer did not replace the text. The same pass can be answered again, unless the draft was finished
/// meanwhile.
fn not_taken(report: &DraftReport, unusable: Option<String>) -> Result<Turn, Error> {
    match (&report.state, unusable) {
        (State::Incomplete { why: Why::Interrupted | Why::Nothing | Why::Failed(_) }, Some(why)) => {
            let hint = "answer the same prompt again, with the complete text only";
            Err(Error::failed("answer-unusable", format!("the answer cannot be used: {why}"), hint))
        }
        (_, _) => match report.error() {
            Some(error) => Err(error),
            None => Ok(ended(report)),
        },
    }
}

fn ended(report: &DraftReport) -> Turn {
    Turn {
        state: report.word(),
        pass: report.pass,
        passes: report.passes,
        plan: report.plan.clone(),
        path: report.path.clone(),
        why: report.error().map(|it| it.to_string()),
        ..Turn::default()
    }
}

fn over(context: &Context, plan: &PlanId, memory: &Memory, pass: u32) -> Turn {
    let passes = super::passes::at_most(memory.passes);
    let path = crate::api::views::shown_path(&context.root_name(), &format!("{plan}/plan.md"));
    Turn {
        state: "finished",
        pass,
        passes,
        plan: Some(plan.to_string()),
        path: Some(path),
        why: Some("no pass is left; request more passes to continue".to_owned()),
        ..Turn::default()
    }
}

/// Stores the state, and returns the prompt of the next pass.
fn ask(
    context: &Context,
    id: &str,
    memory: &Memory,
    state: &'static str,
    why: Option<String>,
) -> Result<Turn, Error> {
    let Some(preview) = preview(context, &request(memory))? else { return Err(unknown(id)) };
    context.plans.put_draft(id, &serde_json::to_vec(&memory).unwrap_or_default())?;
    let notes = preview.notes.into_iter().chain(why).collect::<Vec<_>>().join("; ");
    Ok(Turn {
        state,
        handle: Some(format!("{id}-{}", memory.pass)),
        prompt: Some(preview.prompt),
        pass: memory.pass,
        passes: preview.passes.last().map_or(memory.pass, |(pass, _)| *pass),
        plan: memory.plan.clone(),
        path: memory.plan.as_ref().map(|_| preview.path),
        change: None,
        why: Some(notes).filter(|it| !it.is_empty()),
    })
}

fn request(memory: &Memory) -> DraftRequest {
    let source = Source { conversation: memory.conversation.clone(), name: "-".to_owned() };
    let (aim, name) = match &memory.plan {
        Some(plan) => (Aim::GoOn, plan.clone()),
        None => (Aim::Requirements, memory.name.clone()),
    };
    // The last hash is that of the text that the last pass left. It does not count as an earlier text.
    let left = memory.before.left.split_last().map(|(_, left)| left.to_vec()).unwrap_or_default();
    let before = Before { left, ..memory.before };
    let (passes, limit) = (memory.passes, memory.limit);
    DraftRequest { name, source: Some(source), aim, passes, limit, by: None, before }
}

/// Answers one prompt. A second prompt gets no answer here: the agent's answer to it comes with the next call.
struct Once {
    answer: Option<String>,
}

impl Answerer for Once {
    fn ask(&mut self, _: &str) -> AgentOutput {
        match self.answer.take() {
            Some(stdout) => AgentOutput { end: End::Exited(0), stdout, stderr: String::new() },
            None => AgentOutput::without_output(End::Interrupted),
        }
    }

    fn wait(&mut self, _: u64) -> Waited {
        Waited::Interrupted
    }
}

fn bytes(context: &Context, plan: &str) -> Option<Vec<u8>> {
    Some(context.plans.read(Path::new(&format!("{plan}/plan.md"))).ok()?.bytes)
}

fn etag(context: &Context, plan: &str) -> Option<String> {
    bytes(context, plan).map(|it| read::etag(&it))
}

fn read_handle(handle: &str) -> Result<(&str, u32), Error> {
    let parts = handle.trim().split_once('-');
    parts.and_then(|(id, pass)| Some((id, pass.parse().ok()?))).ok_or_else(|| unknown(handle))
}

fn unknown(handle: &str) -> Error {
    let shown: String = handle.chars().take(40).collect();
    Error::NotFound { what: "draft", name: shown, nearest: None }
}

fn remembered(context: &Context, id: &str) -> Result<Option<Memory>, Error> {
    // With an invalid id, or a file that cannot be read, the draft counts as unknown.
    let Ok(found) = context.plans.draft(id) else { return Ok(None) };
    Ok(found.and_then(|it| serde_json::from_slice(&it).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    const CONVERSATION: &str = "User: people must sign in.";

    fn begun(machine: &Machine) -> Turn {
        let request = BeginRequest {
            name: "Sign in".to_owned(),
            conversation: CONVERSATION.to_owned(),
            limit: 10_000,
            ..BeginRequest::default()
        };
        begin(&Context::on_model(machine), &request).unwrap()
    }

    #[track_caller]
    fn next(machine: &Machine, turn: &Turn, text: &str) -> Turn {
        answer(&Context::on_model(machine), turn.handle.as_deref().unwrap(), text).unwrap()
    }

    #[test]
    fn two_passes_that_change_nothing_end_it_over_several_calls() {
        let machine = Machine::with(&[("/plans/a/plan.md", "# A\n")]);
        let first = begun(&machine);
        assert_eq!((first.state, first.pass, first.plan.as_deref()), ("asking", 1, None));
        assert!(first.prompt.as_ref().unwrap().contains(CONVERSATION));
        let second = next(&machine, &first, "# Sign in\n\nPeople sign in.");
        assert_eq!((second.pass, second.plan.as_deref(), second.change), (2, Some("sign-in"), Some("made")));
        assert!(second.prompt.as_ref().unwrap().contains("People sign in."));
        let third = next(&machine, &second, "CONVERGED");
        assert_eq!((third.pass, third.change), (3, Some("unchanged")));
        let last = next(&machine, &third, "# Sign in\n\nPeople sign in.");
        assert_eq!((last.state, last.handle, last.pass), ("converged", None, 3));
        let text = machine.text("/plans/sign-in/plan.md").unwrap();
        assert!(
            text.contains("incomplete: false") && text.ends_with("# Sign in\n\nPeople sign in.\n"),
            "{text}"
        );
    }

    #[test]
    fn a_text_that_comes_back_ends_it() {
        let machine = Machine::with(&[("/plans/a/plan.md", "# A\n")]);
        let turn = next(&machine, &begun(&machine), "# One");
        let turn = next(&machine, &turn, "# Two");
        assert_eq!(next(&machine, &turn, "# One").state, "oscillates");
    }

    #[test]
    fn an_answer_that_is_sent_twice_counts_once() {
        let machine = Machine::with(&[("/plans/a/plan.md", "# A\n")]);
        let first = begun(&machine);
        let second = next(&machine, &first, "# One");
        let again = next(&machine, &first, "# One");
        assert_eq!((again.handle, again.prompt, again.pass), (second.handle, second.prompt, 2));
        assert!(again.why.unwrap().contains("already used"));
    }

    #[test]
    fn an_edit_between_two_calls_stays_and_is_asked_about() {
        let machine = Machine::with(&[("/plans/a/plan.md", "# A\n")]);
        let turn = next(&machine, &begun(&machine), "# One");
        let text = machine.text("/plans/sign-in/plan.md").unwrap();
        let edited = text.replace("# One", "# One, by hand");
        machine.save("/plans/sign-in/plan.md", &edited);
        let again = next(&machine, &turn, "# Two");
        assert_eq!((again.state, again.pass), ("edited", 2));
        assert!(again.prompt.as_ref().unwrap().contains("One, by hand"));
        assert_eq!(machine.text("/plans/sign-in/plan.md").unwrap(), edited);
        assert_eq!(next(&machine, &again, "# Two").pass, 3);
    }

    #[test]
    fn an_invalid_answer_can_be_repeated() {
        let machine = Machine::with(&[("/plans/a/plan.md", "# A\n")]);
        let turn = begun(&machine);
        let handle = turn.handle.as_deref().unwrap();
        for text in ["", "<<<<<<< a\nb\n=======\nc\n>>>>>>> d"] {
            let error = answer(&Context::on_model(&machine), handle, text).unwrap_err();
            assert_eq!(error.code(), "answer-unusable", "{text}: {error}");
        }
        assert_eq!(next(&machine, &turn, "# One").pass, 2);
        for unknown in ["", "x", "abc-1", "../../x-1", "abc-one"] {
            assert_eq!(
                answer(&Context::on_model(&machine), unknown, "x").unwrap_err().code(),
                "not-found",
                "{unknown}"
            );
        }
    }
}
