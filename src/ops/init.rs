//! `init`: prepares a project for plans, and configures agents and editors to use planwatch; `--undo` reverses it.
//!
//! In a user's file, `--undo` recognizes the text that `init` added, and removes only that text. This also works in another
//! working tree. Directories that `init` made cannot be recognized, so they are recorded for this user.

mod agents;
mod editors;
mod files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::context::Notice;
use crate::api::error::Error;
use crate::api::workspace::{self, Workspace};
use crate::disk::{Disk, DiskError, FileOp, Project, ProjectReport, UserStore};
use crate::plan::time::Time;
use crate::store::transaction::{self, Mode};
use crate::text::diff;

pub use agents::{AGENTS, Agent, BLOCK, SERVER};
pub use editors::{EDITORS, Editor};
pub use files::{Did, FileReport};

use editors::Setting;
use files::{File, Files};

/// The environment in which `init` runs. `init` does not use the `Context` of the other verbs, because a context needs a
/// plans directory.
pub struct Around<'a> {
    pub disk: Arc<dyn Disk>,
    pub workspace: &'a Workspace,
    /// The repository's root, else the parent of the plans directory, else the working directory.
    pub root: PathBuf,
    pub state_home: Option<PathBuf>,
    pub now: Time,
    pub on_notice: &'a dyn Fn(Notice),
}

#[derive(Debug, Clone, Default)]
pub struct InitRequest {
    /// If `agents` and `editors` are empty, `init` prepares only the plans directory or, with `is_undo`, undoes everything.
    pub agents: Vec<Agent>,
    pub editors: Vec<Editor>,
    pub is_undo: bool,
    pub mode: Mode,
}

#[derive(Debug, Clone)]
pub struct InitReport {
    /// What happened to the plans directory. None if agents or editors were named, or if there is nothing to undo.
    pub plans: Option<FileReport>,
    pub files: Vec<FileReport>,
    /// The commands that the user still has to type, each with its purpose.
    pub commands: Vec<(String, String)>,
    pub begin: Vec<&'static str>,
    pub diff: String,
    pub is_undo: bool,
    pub is_dry_run: bool,
}

impl InitReport {
    pub fn to_json(&self) -> Value {
        let file = |it: &FileReport| json!({"path": it.path, "did": it.did.word(), "why": it.why});
        let command = |(command, why): &(String, String)| json!({"command": command, "why": why});
        json!({
            "undo": self.is_undo,
            "dry_run": self.is_dry_run,
            "plans": self.plans.as_ref().map(file),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "commands": self.commands.iter().map(command).collect::<Vec<_>>(),
            "diff": self.diff,
        })
    }

    /// Whether anything was written or, in a dry run, would be written.
    pub fn is_change(&self) -> bool {
        let is_change = |it: &FileReport| matches!(it.did, Did::Made | Did::Changed | Did::Removed);
        self.files.iter().chain(&self.plans).any(is_change)
    }
}

/// Makes the changes, or reports them in a dry run. Nothing is written if one of the files cannot be written.
pub fn init(around: &Around<'_>, request: &InitRequest) -> Result<InitReport, Error> {
    if !request.is_undo && around.workspace.plans_dir.is_none() {
        workspace::check_place(&*around.disk, around.workspace)?;
    }
    let project = around.project()?;
    if request.mode == Mode::Write {
        around.with_notices(|waiting, report| project.settle(waiting, report))?;
    }
    let is_all = request.agents.is_empty() && request.editors.is_empty();
    let is_all_undone = is_all && request.is_undo;
    let agents: &[Agent] = if is_all_undone { &AGENTS } else { &request.agents };
    let editors: &[Editor] = if is_all_undone { &EDITORS } else { &request.editors };
    let mut files = Files::new(&project);
    for agent in agents {
        plan(&mut files, *agent, request.is_undo)?;
    }
    for editor in editors {
        plan_editor(&mut files, *editor, request.is_undo)?;
    }
    let files = files.into_all();
    let record = Record::of(around, &project);
    let plans = is_all.then(|| plans(around, &record, request.is_undo)).flatten();
    let mut report = InitReport {
        plans,
        files: files.iter().map(File::report).collect(),
        commands: Vec::new(),
        begin: Vec::new(),
        diff: files.iter().map(shown).collect(),
        is_undo: request.is_undo,
        is_dry_run: request.mode == Mode::DryRun,
    };
    if request.is_undo {
        // Files in which there was nothing to undo are not reported.
        report.files.retain(|it| it.did != Did::Nothing);
    } else {
        report.begin =
            agents.iter().map(|it| it.begin()).chain(editors.iter().map(|it| it.begin())).collect();
    }
    // If no agent was named, only agents with reported files get a command.
    let is_there = |it: &Agent| report.files.iter().any(|file| file.path.starts_with(it.place()));
    let told = agents.iter().filter(|it| !request.agents.is_empty() || is_there(it));
    let told = told.filter_map(|it| it.command(request.is_undo));
    report.commands = told.map(|(command, why)| (command.to_owned(), why.to_owned())).collect();
    match (request.mode, request.is_undo) {
        (Mode::DryRun, _) => {}
        (Mode::Write, false) => write(around, &project, &record, (&files, report.plans.as_ref()))?,
        (Mode::Write, true) => {
            take_back(around, &project, &record, (&files, report.plans.as_ref()), is_all)?;
        }
    }
    Ok(report)
}

fn plan(files: &mut Files<'_>, agent: Agent, is_undo: bool) -> Result<(), Error> {
    for (path, text) in agent.files()? {
        if is_undo { files.remove_own(&path)? } else { files.write_own(&path, &text)? }
    }
    if is_undo {
        files.remove_block(agent.instructions(), agent)?;
        agent.settings().map_or(Ok(()), |it| files.remove_entry(it, &SERVER))
    } else {
        files.write_block(agent.instructions(), agent)?;
        agent.settings().map_or(Ok(()), |it| files.write_entry(it, &SERVER))
    }
}

fn plan_editor(files: &mut Files<'_>, editor: Editor, is_undo: bool) -> Result<(), Error> {
    let path = editor.path();
    match (editor.setting(), is_undo) {
        (Setting::Entry(entry), false) => files.write_entry(path, &entry),
        (Setting::Entry(entry), true) => files.remove_entry(path, &entry),
        (Setting::Block(marks, lines), false) => files.write_lines(path, (marks, editor.word(), lines)),
        (Setting::Block(marks, lines), true) => files.remove_lines(path, (marks, editor.word(), lines)),
    }
}

fn shown(file: &File) -> String {
    let path = file.real.to_string_lossy();
    diff::unified(&path, file.before.as_deref(), file.now.as_deref())
}

type Planned<'a> = (&'a [File], Option<&'a FileReport>);

fn write(
    around: &Around<'_>,
    project: &Project,
    record: &Record,
    (files, plans): Planned<'_>,
) -> Result<(), Error> {
    let changed: Vec<_> = files.iter().filter(|it| it.is_changed()).collect();
    let plans = plans.filter(|it| it.did == Did::Made);
    let mut wanted: BTreeSet<_> = changed.iter().flat_map(|it| above(&it.real)).collect();
    let inside = record.plans.join("plan");
    if plans.is_some() {
        wanted.extend(above(&inside));
    }
    // The record is written first, so after a crash it may name a directory that was not made. That does no harm, because
    // `--undo` removes only empty directories.
    let missing: BTreeSet<_> =
        wanted.into_iter().filter(|it| !project.is_dir(it)).map(Path::to_path_buf).collect();
    record.put(&record.directories.iter().chain(&missing).cloned().collect())?;
    if plans.is_some() {
        workspace::make(&around.disk, around.workspace)?;
    }
    let written = around.write(project, "init", &changed);
    if written.is_err() {
        for directory in missing.iter().rev() {
            project.remove_empty_dir(directory);
        }
    }
    written
}

/// The operation that gives a file its planned content. `None`: the file has that content already.
fn operation(file: &File) -> Option<FileOp> {
    let path = file.real.clone();
    match (file.before.clone(), file.now.clone()) {
        (before, now) if before == now => None,
        // If an editor replaced a symbolic link meanwhile, the requested path shows that. The real path would not.
        (Some(before), Some(after)) => Some(FileOp::Change { path: file.path().into(), before, after }),
        (Some(before), None) => Some(FileOp::Discard { path, before }),
        (None, Some(bytes)) => Some(FileOp::Create { path, bytes }),
        (None, None) => None,
    }
}

impl Around<'_> {
    fn project(&self) -> Result<Project, Error> {
        let (disk, plans) = (Arc::clone(&self.disk), self.workspace.plans_dir.as_deref());
        Ok(Project::open(disk, &self.root, self.state_home.as_deref(), plans)?)
    }

    fn write(&self, project: &Project, verb: &str, files: &[&File]) -> Result<(), Error> {
        let ops = files.iter().filter_map(|it| operation(it)).collect();
        let at = self.now.to_string();
        self.with_notices(|waiting, report| project.write((verb, &at), ops, waiting, report))
    }

    /// Calls `act`. Then, even if `act` failed, reports the interrupted change that it recovered and the versions of files
    /// that it kept.
    fn with_notices(
        &self,
        act: impl FnOnce(&mut dyn FnMut(), &mut ProjectReport) -> Result<(), DiskError>,
    ) -> Result<(), Error> {
        let mut report = ProjectReport::default();
        let done = act(&mut || (self.on_notice)(Notice::WaitingForLock), &mut report);
        if let Some(recovered) = &report.recovered {
            (self.on_notice)(transaction::recovered(recovered));
        }
        for it in &report.kept {
            (self.on_notice)(transaction::kept(it));
        }
        Ok(done?)
    }
}

fn take_back(
    around: &Around<'_>,
    project: &Project,
    record: &Record,
    (files, plans): Planned<'_>,
    is_all: bool,
) -> Result<(), Error> {
    let mut empty: BTreeSet<_> =
        record.directories.iter().map(PathBuf::as_path).filter(|it| *it != record.plans).collect();
    let removed = files.iter().filter(|it| it.is_changed() && it.now.is_none());
    empty.extend(removed.flat_map(|it| above(&it.real)));
    around.write(project, "init --undo", &files.iter().collect::<Vec<_>>())?;
    if plans.is_some_and(|it| it.did == Did::Removed) {
        project.remove_empty_dir(&record.plans);
    }
    // The deepest directories come first. If there is a record, directories that it does not name stay.
    for it in empty.iter().rev().filter(|it| !record.is_there || record.directories.contains(**it)) {
        project.remove_empty_dir(it);
    }
    let left: BTreeSet<_> = record.directories.iter().filter(|it| project.is_dir(it)).cloned().collect();
    if is_all && left.is_empty() { record.remove() } else { record.put(&left) }
}

/// The parent directories of a relative path, without the root.
fn above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty())
}

/// The planned change of the plans directory. `init` makes the directory if it is missing. `--undo` removes it if `init` has
/// made it and it is empty.
fn plans(around: &Around<'_>, record: &Record, is_undo: bool) -> Option<FileReport> {
    let there = around.workspace.plans_dir.as_deref();
    let path = below(there.unwrap_or(&around.workspace.would_be), &around.root);
    let report = |did, why| Some(FileReport { path, did, why });
    match (there, is_undo) {
        (Some(_), false) => report(Did::Nothing, None),
        (None, false) => report(Did::Made, None),
        (Some(it), true) if record.directories.contains(&record.plans) => {
            let is_empty = around.disk.names(it).is_ok_and(|it| it.is_empty());
            let why = (!is_empty).then(|| "it is not empty".to_owned());
            report(if is_empty { Did::Removed } else { Did::Kept }, why)
        }
        (_, true) => None,
    }
}

/// Formats a directory for the report: relative to the root, with a slash at the end.
fn below(path: &Path, root: &Path) -> String {
    format!("{}/", path.strip_prefix(root).unwrap_or(path).display())
}

/// The directories that `init` made in this project, as recorded for this user on this machine.
struct Record {
    store: Option<UserStore>,
    name: String,
    is_there: bool,
    directories: BTreeSet<PathBuf>,
    /// The plans directory relative to the root; empty if it is outside of the root.
    plans: PathBuf,
}

impl Record {
    fn of(around: &Around<'_>, project: &Project) -> Self {
        let home = around.state_home.as_deref();
        let store = home.and_then(|it| UserStore::open(&around.disk, it, "init", project.root()));
        let name = blake3::hash(project.root().as_os_str().as_encoded_bytes()).to_hex()[..32].to_owned();
        let read = store.as_ref().and_then(|it| it.read(&name));
        let value: Option<Value> = read.and_then(|it| serde_json::from_slice(&it).ok());
        let named = value.as_ref().and_then(|it| it["directories"].as_array());
        let is_inside = |it: &PathBuf| it.is_relative() && !it.components().any(|it| it.as_os_str() == "..");
        let directories = named.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from);
        let workspace = around.workspace;
        let plans = workspace.plans_dir.as_deref().unwrap_or(&workspace.would_be);
        let plans = plans.strip_prefix(&around.root).map(Path::to_path_buf).unwrap_or_default();
        Self {
            store,
            name,
            is_there: value.is_some(),
            directories: directories.filter(is_inside).collect(),
            plans,
        }
    }

    fn put(&self, directories: &BTreeSet<PathBuf>) -> Result<(), Error> {
        let is_known = self.is_there && *directories == self.directories;
        let Some(store) = self.store.as_ref().filter(|_| !is_known) else { return Ok(()) };
        let named: Vec<_> = directories.iter().map(|it| it.to_string_lossy()).collect();
        Ok(store.put(&self.name, json!({"directories": named}).to_string().as_bytes())?)
    }

    fn remove(&self) -> Result<(), Error> {
        if let Some(store) = &self.store {
            store.remove(&self.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
