//! `workspace/executeCommand`: changes files with the operations of the command line.
//!
//! Commands work on the files, so a command on a file with unsaved text is refused. Each command runs in its own thread,
//! because it may have to wait for the lock of the plans directory.

use lsp_server::{ErrorCode, RequestId};
use serde_json::Value;

use super::documents::Documents;
use super::protocol::{Answer, Failed};
use super::server::{Event, Server};
use super::tree::{PlanFile, Role, Tree};
use super::uri;
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests;
use crate::api::views;
use crate::ops::add::{self, AddRequest};
use crate::ops::check;
use crate::ops::claim::{self, ClaimRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::rename::{self, RenameRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::ops::split::{self, SplitRequest, Task};
use crate::ops::steps_list::{self, StepsListRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::plan::file_name;
use crate::plan::id::{PlanId, read_step_id};
use crate::plan::transitions::Verb;
use crate::store::resolve::{self, Target};
use crate::store::transaction::{ChangeReport, Mode};

pub(super) const NAMES: [&str; 14] = [
    "planwatch.claim",
    "planwatch.start",
    "planwatch.done",
    "planwatch.fail",
    "planwatch.block",
    "planwatch.skip",
    "planwatch.reopen",
    "planwatch.release",
    "planwatch.attempt",
    "planwatch.add",
    "planwatch.insertStepsList",
    "planwatch.splitTask",
    "planwatch.move",
    "planwatch.fix",
];

/// A command and its target.
struct Command {
    name: String,
    /// An id of a plan or step, or the path of its file. If empty, `planwatch.claim` claims the next step of all plans.
    id: String,
    /// The name of the plan's directory; empty if unknown.
    plan: String,
    arguments: Value,
}

impl Command {
    fn text(&self, name: &str) -> Option<String> {
        self.arguments[name].as_str().map(str::to_owned)
    }

    fn needed(&self, name: &'static str) -> Result<String, Failed> {
        let missing = || Failed::new(ErrorCode::InvalidParams, format!("`{}` needs `{name}`", self.name));
        self.text(name).ok_or_else(missing)
    }
}

/// Starts a thread that runs a command and sends the response. Returns an error response if no thread was started.
pub(super) fn execute(
    server: &mut Server,
    id: &RequestId,
    name: &str,
    arguments: &[Value],
) -> Option<Answer> {
    let begun = begin(server, name, arguments).and_then(|(root, context, command)| {
        let (outbox, events, reply_to) = (server.outbox.clone(), server.events.clone(), id.clone());
        let work = move || {
            let answer = context.map_err(Failed::from).and_then(|it| run(&it, &command));
            // The event is sent before the response, because the client requests hints and lenses again when it has
            // the response.
            if !command.plan.is_empty() {
                events.send(Event::Changed { root, plan: command.plan }).ok();
            }
            outbox.reply(&reply_to, answer);
        };
        let failed = || Failed::new(ErrorCode::InternalError, "no thread can be started");
        if server.work(work) { Ok(()) } else { Err(failed()) }
    });
    begun.err().map(Err)
}

type Begun = (std::path::PathBuf, Result<Context, Error>, Command);

fn begin(server: &mut Server, name: &str, arguments: &[Value]) -> Result<Begun, Failed> {
    if !NAMES.contains(&name) {
        return Err(Failed::new(ErrorCode::InvalidParams, format!("there is no command `{name}`")));
    }
    let arguments = arguments.first().cloned().unwrap_or_default();
    let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let documents = &server.documents;
    let path = uri::to_path(&text("uri"));
    let folder = uri::to_path(&text("folder"));
    let (tree, file) = match &path {
        Some(path) => {
            let found = server.trees.iter().find_map(|it| Some((it, it.file(path)?)));
            let (tree, file) = found.ok_or_else(|| {
                Failed::refused("not-found", "the file belongs to no plan", "save it first")
            })?;
            (tree, Some(file))
        }
        None => {
            let is_in = |it: &&Tree| folder.as_ref().is_none_or(|folder| it.root.starts_with(folder));
            let tree = server.trees.iter().find(is_in);
            (tree.ok_or_else(|| Failed::from(Error::NoPlansDir))?, None)
        }
    };
    let needs_plan = matches!(name, "planwatch.add" | "planwatch.insertStepsList");
    let id = match &file {
        Some(file) if needs_plan => plan_of(file),
        // A path is unique even if two files have the same step number.
        Some(file) => tree.root.join(&file.relative).to_string_lossy().into_owned(),
        None => Some(text("id")).filter(|it| !it.is_empty()).unwrap_or_else(|| text("plan")),
    };
    let plan = match &file {
        Some(file) => plan_of(file),
        None => read_step_id(&id).map_or(id.clone(), |it| it.plan.to_string()),
    };
    if id.is_empty() && name != "planwatch.claim" {
        let why = format!("`{name}` needs `uri` or `id`");
        return Err(Failed::new(ErrorCode::InvalidParams, why));
    }
    check_saved(tree, documents, &concerned(tree, (name, &id), &plan, file.filter(|_| !needs_plan)))?;
    let plan = if PlanId::is_plan_name(&plan) { plan } else { String::new() };
    let command = Command { name: name.to_owned(), id, plan, arguments };
    Ok((tree.root.clone(), tree.context(), command))
}

/// The files that must have no unsaved text when a command runs. Other files that the command updates are not checked.
enum Concerned {
    Nothing,
    File(String),
    /// Every file of the plan.
    Plan(String),
}

fn concerned(tree: &Tree, (name, id): (&str, &str), plan: &str, file: Option<PlanFile>) -> Concerned {
    let is_move = name == "planwatch.move";
    match (file, read_step_id(id)) {
        (Some(file), _) if is_move && file.role == Role::Plan => Concerned::Plan(plan.to_owned()),
        (Some(file), _) => Concerned::File(file.relative),
        (None, Some(step)) => {
            let found = tree.catalog.as_ref().and_then(|it| it.step(&step));
            found.map_or(Concerned::Nothing, |(plan, step)| Concerned::File(plan.step_path(step)))
        }
        (None, None) if is_move => Concerned::Plan(plan.to_owned()),
        (None, None) => Concerned::File(format!("{plan}/{}", file_name::PLAN_FILE)),
    }
}

fn plan_of(file: &PlanFile) -> String {
    file.key.as_ref().map(|it| it.name.clone()).unwrap_or_default()
}

/// Refuses a command on a file with unsaved changes, because the file on disk differs from the text in the editor.
fn check_saved(tree: &Tree, documents: &Documents, concerned: &Concerned) -> Result<(), Failed> {
    let Ok(context) = tree.context() else { return Ok(()) };
    for (path, open) in tree.open_files() {
        let is_concerned = match concerned {
            Concerned::Nothing => false,
            Concerned::File(file) => open.relative == *file,
            Concerned::Plan(plan) => plan_of(open) == *plan,
        };
        let Some(document) = documents.at(path).filter(|_| is_concerned) else { continue };
        let saved = context.plans.read(std::path::Path::new(&open.relative));
        if !saved.is_ok_and(|it| document.is_saved_as(&it.bytes)) {
            let message = format!("`{}` has changes that are not saved", open.relative);
            return Err(Failed::refused("unsaved-changes", &message, "save it first"));
        }
    }
    Ok(())
}

fn run(context: &Context, command: &Command) -> Answer {
    let id = command.id.clone();
    let message = command.text("message");
    let by = command.text("by").map(|it| requests::author_name(&it)).transpose()?;
    let report = match command.name.as_str() {
        "planwatch.claim" => {
            let target = Some(id).filter(|it| !it.is_empty());
            let report = claim::claim(context, &ClaimRequest { target, by, ..ClaimRequest::default() })?;
            return Ok(views::envelope("claim", report.to_json()));
        }
        "planwatch.release" => release::release(
            context,
            &ReleaseRequest { ids: vec![id], message, by, ..ReleaseRequest::default() },
        )?,
        "planwatch.attempt" => {
            let outcome = command.needed("outcome")?;
            let request = AttemptRequest { id, outcome, notes: message, by, ..AttemptRequest::default() };
            update::attempt(context, &request)?
        }
        "planwatch.add" => {
            let (title, after) = (command.needed("title")?, command.text("after"));
            add::add(context, &AddRequest { plan: id, title, after, by, ..AddRequest::default() })?
        }
        "planwatch.insertStepsList" => {
            steps_list::insert(context, &StepsListRequest { plan: id, mode: Mode::Write })?
        }
        "planwatch.splitTask" => {
            let line = command.arguments["line"].as_u64().and_then(|it| usize::try_from(it).ok());
            let line = line.map_or(0, |it| it.saturating_add(1));
            split::split(context, &SplitRequest { id, task: Task::Line(line), by, mode: Mode::Write })?
        }
        "planwatch.move" => {
            let to = command.needed("to")?;
            match resolve::target(context, &id)? {
                Target::Plan(_) => {
                    rename::rename(context, &RenameRequest { id, to, force: false, mode: Mode::Write })?
                }
                Target::Step(_) => {
                    let request = RenumberRequest { id, to: Some(to), by, ..RenumberRequest::default() };
                    renumber::renumber(context, &request)?
                }
            }
        }
        "planwatch.fix" => check::fix_one(context, &id, Mode::Write)?,
        name => {
            let word = name.trim_start_matches("planwatch.");
            let verb = Verb::ALL.into_iter().find(|it| it.word() == word);
            let verb = verb.ok_or_else(|| {
                Failed::new(ErrorCode::InvalidParams, format!("there is no command `{name}`"))
            })?;
            update::move_steps(
                context,
                &MoveRequest { verb, ids: vec![id], message, by, ..MoveRequest::default() },
            )?
        }
    };
    Ok(answer(&report))
}

fn answer(report: &ChangeReport) -> Value {
    let mut object = report.to_json();
    object["hints"] = report.hints.clone().into();
    views::envelope("change", object)
}
