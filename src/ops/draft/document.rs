//! A draft's requirements, which are the text of its plan.

use super::conversation::{self, Conversation};
use super::passes::{self, Work};
use super::{DraftReport, DraftRequest, State};

use std::path::Path;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::disk::DiskError;
use crate::plan::change::NewPlan;
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{self, PlanId};
use crate::plan::model::Plan;
use crate::plan::read::PLAN_KEYS;
use crate::store::decision::Decision;
use crate::store::transaction::{self, Mode, Transaction};
use crate::store::{load, new_plan};
use crate::text::header_edit::{Change, NewValue};
use crate::text::placeholders::one_line;
use crate::text::typed::shell_word;
use crate::text::{front_matter, markdown};

pub(super) struct Document {
    /// None until the first pass has created the plan.
    id: Option<PlanId>,
    /// The id that a new plan should get; for an existing draft, its id.
    wanted: PlanId,
    /// Relative to the plans directory.
    path: String,
    title: String,
    conversation: Conversation,
    source: String,
    /// The bytes of the file: as the last pass wrote them or, before the first pass of this call, as they were read. None if
    /// there is no file yet.
    bytes: Option<Vec<u8>>,
    first: u32,
    passes: u32,
}

/// Begins a new draft.
pub(super) fn new(context: &Context, request: &DraftRequest) -> Result<Document, Error> {
    let name = one_line(&request.name);
    if name.is_empty() {
        return Err(Error::usage("the name is empty", "planwatch draft NAME --from CONVERSATION.md"));
    }
    let wanted = PlanId::new(id::slug(&name, &|_| false));
    if load::taken_names(context).iter().any(|it| it.eq_ignore_ascii_case(wanted.as_str())) {
        let hint = format!(
            "`planwatch draft {} --continue` continues a draft; for a new draft, choose another name",
            shell_word(&wanted)
        );
        return Err(Error::conflict("plan-exists", format!("there is a plan `{wanted}` already"), hint));
    }
    let title = if name == wanted.as_str() { title_of(&name) } else { name };
    let path = format!("{wanted}/{PLAN_FILE}");
    let (conversation, source) = conversation(request)?;
    let passes = passes::at_most(request.passes);
    Ok(Document { id: None, wanted, path, title, conversation, source, bytes: None, first: 1, passes })
}

/// Continues an existing draft, with any edits made since the last pass.
pub(super) fn go_on(
    context: &Context,
    request: &DraftRequest,
    plan: &Plan,
    pass: u32,
) -> Result<Document, Error> {
    let (conversation, source) = conversation(request)?;
    let bytes = context.plans.read(Path::new(&plan.path))?.bytes;
    Ok(Document {
        id: Some(plan.id.clone()),
        wanted: plan.id.clone(),
        path: plan.path.clone(),
        title: plan.title.clone(),
        conversation,
        source,
        bytes: Some(bytes),
        first: pass + 1,
        // An incomplete draft needs at least one more pass.
        passes: passes::at_most(request.passes).max(pass + 1),
    })
}

/// The report on a draft that needs no more passes.
pub(super) fn over(context: &Context, plan: &Plan, pass: u32, passes: u32) -> DraftReport {
    let path = Some(shown_path(&context.root_name(), &plan.path));
    let plan = Some(plan.id.to_string());
    DraftReport { state: State::Finished, plan, path, pass, passes, kept: None, steps: None }
}

fn conversation(request: &DraftRequest) -> Result<(Conversation, String), Error> {
    let source = request.source.clone().unwrap_or_default();
    let conversation = conversation::fitted(&source.conversation, request.limit);
    if conversation.text.is_empty() {
        let message = "there is no conversation to make a draft from";
        let hint = "--from FILE reads the conversation from a file, --from - from standard input";
        return Err(Error::failed("conversation-empty", message, hint));
    }
    Ok((conversation, source.name))
}

/// The title for a name, such as `Sign in` for `sign-in`.
fn title_of(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    letters.next().map(|it| it.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl Document {
    fn draft_key(&self, pass: u32, is_last: bool) -> Change {
        let value = NewValue::Map(vec![
            ("pass".to_owned(), NewValue::Word(pass.to_string())),
            ("incomplete".to_owned(), NewValue::Word((!is_last).to_string())),
            ("source".to_owned(), NewValue::Text(self.source.clone())),
        ]);
        Change::Set { key: "draft".to_owned(), value }
    }

    /// Creates the plan in one operation, with the text of the first pass. If the id was taken meanwhile, the plan gets the
    /// next free one.
    fn make(&mut self, context: &Context, pass: u32, text: &str, is_last: bool) -> Result<(), Error> {
        let mut writing = Transaction::begin(context, "draft", Mode::Write)?;
        let mut plan =
            NewPlan { title: self.title.clone(), is_draft: true, ..NewPlan::default() }.changes(context.now);
        plan.push(self.draft_key(pass, is_last));
        let body = format!("{text}\n");
        let id = new_plan::free_id(context, &self.title_or_name());
        let path = format!("{id}/{PLAN_FILE}");
        let bytes = transaction::edit(&path, body.as_bytes(), &plan, PLAN_KEYS)?;
        refuse_unreadable(context, &id, &bytes)?;
        writing.create_directory(id.as_str(), &[(PLAN_FILE.to_owned(), bytes.clone())])?;
        (self.path, self.bytes, self.id) = (path, Some(bytes), Some(id));
        Ok(())
    }

    fn title_or_name(&self) -> String {
        if id::slug(&self.title, &|_| false) == self.wanted.as_str() {
            self.title.clone()
        } else {
            self.wanted.to_string()
        }
    }

    fn id(&self) -> &PlanId {
        self.id.as_ref().unwrap_or(&self.wanted)
    }
}

/// Refuses a file that planwatch could not change later. For example, an answer may contain conflict markers.
fn refuse_unreadable(context: &Context, id: &PlanId, bytes: &[u8]) -> Result<(), Error> {
    let plan = new_plan::as_read(context, id, &[(PLAN_FILE.to_owned(), bytes.to_vec())]);
    transaction::check_writable(context, &plan.problems)
}

/// The text below a front matter, as agents get it: with LF line endings, and without blank lines around it.
pub(super) fn body(bytes: &[u8]) -> String {
    let start = front_matter::split(bytes).body_start();
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).replace("\r\n", "\n");
    text.trim().to_owned()
}

impl Work for Document {
    fn first(&self) -> u32 {
        self.first
    }

    fn passes(&self) -> u32 {
        self.passes
    }

    fn text(&self) -> Option<String> {
        self.bytes.as_deref().map(body).filter(|it| !it.is_empty())
    }

    fn prompt(&self, pass: u32) -> &'static str {
        if pass == 1 { "draft-requirements" } else { "draft-review" }
    }

    fn values(&self) -> Value {
        json!({"title": one_line(&self.title), "conversation": self.conversation.text})
    }

    /// Adds the title if the answer does not begin with one.
    fn accepted(&self, context: &Context, answer: &str) -> Result<String, String> {
        let has_title = answer.starts_with("# ");
        let text = if has_title {
            answer.to_owned()
        } else {
            format!("{}\n\n{answer}", markdown::heading(1, &one_line(&self.title)))
        };
        let file = format!("---\n---\n{text}\n");
        refuse_unreadable(context, self.id(), file.as_bytes())
            .map_err(|it| format!("the answer would make the file faulty: {it}"))?;
        Ok(text)
    }

    fn keep(
        &mut self,
        context: &Context,
        pass: u32,
        text: &str,
        is_last: bool,
    ) -> Result<Option<String>, Error> {
        let Some(expected) = self.bytes.clone() else {
            self.make(context, pass, text, is_last)?;
            return Ok(Some(shown_path(&context.root_name(), &self.path)));
        };
        let edited = transaction::edit(&self.path, &expected, &[self.draft_key(pass, is_last)], PLAN_KEYS)?;
        let start = front_matter::split(&edited).body_start();
        let is_same_text = body(&expected) == text;
        let line_end = if edited[..start].windows(2).any(|it| it == b"\r\n") { "\r\n" } else { "\n" };
        let new_body = format!("{text}\n").replace('\n', line_end);
        let after = if is_same_text { edited } else { [&edited[..start], new_body.as_bytes()].concat() };
        refuse_unreadable(context, self.id(), &after)?;
        let mut writing = Transaction::begin(context, "draft", Mode::Write)?;
        let written = writing.change(&self.path, &|bytes| match bytes == expected {
            true => Ok(Decision::Write(after.clone(), ())),
            false => Ok(Decision::Leave(())),
        });
        match written {
            Ok(Decision::Write(..)) => {
                self.bytes = Some(after);
                Ok(Some(shown_path(&context.root_name(), &self.path)))
            }
            Ok(Decision::Leave(())) => Ok(None),
            // A removed file counts as edited.
            Err(Error::Disk(error)) if error.code() == "not-found" => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put_beside(&mut self, context: &Context, pass: u32, text: &str) -> Result<String, Error> {
        beside(context, self.id(), &format!("draft-pass-{pass}"), text)
    }

    fn notes(&self) -> Vec<String> {
        self.conversation.left_out.clone().into_iter().collect()
    }

    fn report(&mut self, context: &Context, state: State, pass: u32) -> Result<DraftReport, Error> {
        let path = self.id.as_ref().map(|_| shown_path(&context.root_name(), &self.path));
        let (plan, passes) = (self.id.as_ref().map(ToString::to_string), self.passes);
        Ok(DraftReport { state, plan, path, pass, passes, kept: None, steps: None })
    }

    fn place(&self, context: &Context) -> (String, String) {
        (self.id().to_string(), shown_path(&context.root_name(), &self.path))
    }
}

/// Creates a file in a plan's directory under the first free name; returns its path.
pub(super) fn beside(context: &Context, id: &PlanId, name: &str, text: &str) -> Result<String, Error> {
    let mut writing = Transaction::begin(context, "draft", Mode::Write)?;
    let mut n = 1;
    loop {
        let number = if n == 1 { String::new() } else { format!("-{n}") };
        let path = format!("{id}/{name}{number}.md");
        match writing.create(&path, format!("{text}\n").as_bytes()) {
            Ok(()) => return Ok(shown_path(&context.root_name(), &path)),
            Err(Error::Disk(DiskError::Exists { .. })) if n < 1000 => n += 1,
            Err(error) => return Err(error),
        }
    }
}
