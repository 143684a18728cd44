//! `script`: stores, lists and resolves named commands. It starts none of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::trust::{self, Subject};
use crate::api::views::{codes, shown_path};
use crate::disk::{DiskError, FileOp};
use crate::plan::problem::Severity;
use crate::plan::script::{self, NewScript, Script};
use crate::plan::words::nearest;
use crate::plan::{entry, id};
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{knowledge, removed};
use crate::text::typed::shell_word;

pub use crate::api::requests::NewScriptRequest as AddRequest;

/// Adds a script. Its id is the slug of its name.
pub fn add(context: &Context, request: &AddRequest) -> Result<ChangeReport, Error> {
    if request.name.trim().is_empty() || request.command.trim().is_empty() {
        let what = if request.name.trim().is_empty() { "name" } else { "command" };
        let hint = "give both, for example planwatch script add build 'make all'";
        return Err(Error::usage(format!("the script's {what} is empty"), hint));
    }
    if request.command.trim().contains(['\n', '\r']) {
        let hint = "put the lines into a file and run that, or join them with `&&`";
        return Err(Error::usage("the script's command has more than one line", hint));
    }
    let root = &context.here.root;
    let directory = request.directory.as_deref().map(|it| {
        let found = script::inside(root, it).ok_or_else(|| outside(it))?;
        if let Err(DiskError::OutsideRepository { .. }) = context.plans.directory_below(root, &found) {
            return Err(outside(it));
        }
        Ok::<_, Error>(found.to_string_lossy().into_owned())
    });
    let directory = directory.transpose()?.filter(|it| !it.is_empty());
    let (plan, _) = knowledge::wanted(context, request.plan.as_deref(), None)?;
    let id = id::slug(&request.name, &|_| false);
    let path = format!("{}/{id}.md", script::DIRECTORY);
    let new = NewScript {
        name: request.name.clone(),
        command: request.command.clone(),
        directory,
        plan,
        description: request.description.clone(),
        mcp_handle: request.mcp_handle.clone(),
    };
    let bytes = transaction::edit(&path, new.body().as_bytes(), &new.changes(), script::KEYS)?;
    let mut writing = Transaction::begin(context, "script add", request.mode)?;
    let is_taken = context.plans.names(Path::new(script::DIRECTORY)).contains(&format!("{id}.md"));
    let made = if is_taken { Err(taken(&id)) } else { writing.create(&path, &bytes) };
    made.map_err(
        |error| if matches!(error, Error::Disk(DiskError::Exists { .. })) { taken(&id) } else { error },
    )?;
    let mut report = ChangeReport::new("script add", request.mode);
    report.changes.push(Changed::new(context, &id, (&new.name, &path), "added", Value::Null));
    report.diff = writing.diff;
    report.hints.push(format!("planwatch trust {}", shell_word(&id)));
    Ok(report)
}

fn outside(directory: &str) -> Error {
    Error::usage(format!("the directory `{directory}` is outside the repository"), "name one inside it")
}

fn taken(id: &str) -> Error {
    let hint = format!("edit its file, or remove it with `planwatch script remove {}`", shell_word(&id));
    Error::conflict("script-exists", format!("there is a script `{id}` already"), hint)
}

/// Removes a script by moving its file to the archive.
pub fn remove(context: &Context, name: &str, mode: Mode) -> Result<ChangeReport, Error> {
    let mut writing = Transaction::begin(context, "script remove", mode)?;
    let script = one(context, name)?;
    let time = context.now.to_string().replace([':', '-'], "");
    let directory = PathBuf::from("_archive").join(script::DIRECTORY).join(format!("removed-{time}"));
    let to = removed::free_name(context, &directory, &format!("{}.md", script.id));
    writing.batch("script remove", vec![FileOp::Rename { from: PathBuf::from(&script.path), to }])?;
    let mut report = ChangeReport::new("script remove", mode);
    let of = (script.name.as_str(), script.path.as_str());
    report.changes.push(Changed::new(context, &script.id, of, "removed", Value::Null));
    report.diff = writing.diff;
    Ok(report)
}

/// Finds a script by its id, its name or its file.
fn one(context: &Context, name: &str) -> Result<Script, Error> {
    let all = knowledge::scripts(context);
    let wanted = entry::id_of(name);
    let of = |is_it: &dyn Fn(&Script) -> bool| all.iter().find(|it| is_it(it)).cloned();
    let found = of(&|it| it.id == wanted).or_else(|| of(&|it| it.name == name));
    found.ok_or_else(|| {
        let nearest = nearest(wanted, all.iter().map(|it| it.id.as_str()));
        Error::NotFound { what: "script", name: name.to_owned(), nearest }
    })
}

/// The path of a script's file. The file need not exist.
pub fn file_of(context: &Context, name: &str) -> PathBuf {
    let id = one(context, name).map_or_else(|_| entry::id_of(name).to_owned(), |it| it.id);
    context.plans.root().join(script::DIRECTORY).join(format!("{id}.md"))
}

/// A script with everything that is needed to start it.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub script: Script,
    /// The absolute path of `directory`. `None`: it does not exist, is not a directory, or is outside of the repository.
    pub directory_path: Option<PathBuf>,
    /// The file that the first word of the command names, if it is an existing file in the repository.
    pub command_path: Option<PathBuf>,
    pub subject: Subject,
    pub is_trusted: bool,
    root: String,
}

impl Resolved {
    pub fn to_json(&self) -> Value {
        let shown = |it: &Option<PathBuf>| it.as_ref().map(|it| it.to_string_lossy().into_owned());
        let Script { id, name, command, directory, plan, description, mcp_handle, custom, .. } = &self.script;
        json!({
            "id": id, "name": name, "description": description, "command": command, "directory": directory,
            "directory_path": shown(&self.directory_path), "command_path": shown(&self.command_path),
            "plan": plan, "mcp_handle": mcp_handle, "trusted": self.is_trusted, "hash": self.subject.hash,
            "files": self.subject.files, "fault": self.subject.fault, "custom": custom, "path": self.path(),
            "problems": codes(&self.script.problems),
        })
    }

    /// The path of the script's file, beginning with the name of the plans directory.
    pub fn path(&self) -> String {
        shown_path(&self.root, &self.script.path)
    }
}

pub fn list_to_json(scripts: &[Resolved]) -> Value {
    json!({"scripts": scripts.iter().map(Resolved::to_json).collect::<Vec<_>>()})
}

pub fn list(context: &Context, plan: Option<&str>) -> Result<Vec<Resolved>, Error> {
    let (plan, _) = knowledge::wanted(context, plan, None)?;
    let is_meant = |it: &Script| plan.is_none() || it.plan == plan;
    Ok(knowledge::scripts(context).into_iter().filter(is_meant).map(|it| resolved(context, it)).collect())
}

pub fn show(context: &Context, name: &str) -> Result<Resolved, Error> {
    Ok(resolved(context, one(context, name)?))
}

fn resolved(context: &Context, script: Script) -> Resolved {
    let root = &context.here.root;
    let relative = script::inside(root, &script.directory);
    let directory_path = relative.as_ref().and_then(|it| context.plans.directory_below(root, it).ok());
    let command_path = directory_path.as_ref().and_then(|it| program(context, &script.command, it));
    let shown = relative.map(|it| it.to_string_lossy().into_owned()).filter(|it| !it.is_empty());
    let directory = shown.unwrap_or_else(|| ".".to_owned());
    let covered = trust::covered(context, &script.command, &directory, directory_path.as_deref());
    let subject = Subject {
        what: format!("the script `{}`", script.id),
        name: script.id.clone(),
        path: context.plans.root().join(&script.path),
        hash: covered.hash,
        files: covered.files,
        fault: covered.fault,
        command: script.command.clone(),
        directory,
    };
    let is_trusted = trust::is_trusted(context, &subject);
    Resolved { script, directory_path, command_path, subject, is_trusted, root: context.root_name() }
}

/// The file that a command begins with, if it is in the repository.
fn program(context: &Context, command: &str, directory: &Path) -> Option<PathBuf> {
    let path = directory.join(script::program_path(command)?);
    let (parent, name) = (path.parent()?, path.file_name()?);
    let parent = context.plans.directory_below(&context.here.root, parent).ok()?;
    context.plans.is_file_beyond(&parent.join(name)).then(|| parent.join(name))
}

/// A command that may be started now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runnable {
    pub id: String,
    /// One line for a shell, exactly as it is in the script's file. No values are inserted.
    pub command: String,
    /// Absolute.
    pub directory: PathBuf,
}

/// Resolves a script that is to be started, and refuses one that is faulty or not trusted.
pub fn runnable(context: &Context, name: &str, trust_hash: Option<&str>) -> Result<Runnable, Error> {
    let found = show(context, name)?;
    refuse_faulty(context, &found)?;
    let Some(directory) = found.directory_path.clone() else {
        let message = format!("there is no directory `{}` in the repository", found.script.directory);
        let hint = format!("correct `directory` in {}", found.path());
        return Err(Error::Failed { code: "directory-missing", message, hint });
    };
    trust::check(context, &found.subject, trust_hash)?;
    Ok(Runnable { id: found.script.id, command: found.script.command, directory })
}

/// Refuses a script whose file has an error, because it is not certain what would run.
pub fn refuse_faulty(context: &Context, found: &Resolved) -> Result<(), Error> {
    let faulty = found.script.problems.iter().find(|it| it.severity() == Severity::Error);
    faulty.map_or(Ok(()), |it| Err(transaction::file_error(context, it)))
}
