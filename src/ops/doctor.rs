//! `doctor`: diagnoses the setup. It repairs only two things: the index, and an interrupted change of the project's files,
//! such as one by `init`. On request, it discards an unfinished change of the plans.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::daemon::{DaemonStatus, Freshness};
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::disk::{Discarded, Kept, RealDisk, Unfinished, read_file, watch_limit};
use crate::store::leases::{Leases, NotShared};
use crate::store::load::{self, IndexState};
use crate::store::project_saves;
use crate::store::transaction::{self, path_of};

#[derive(Debug, Clone, Default)]
pub struct DoctorRequest {
    pub reindex: bool,
    /// The id of an unfinished change to discard.
    pub discard: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ok,
    /// It works, but not as well as it could.
    Note,
    /// The user should act.
    Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub value: String,
    /// What to do, or what the consequence is; may be empty.
    pub hint: String,
}

#[derive(Debug, Clone)]
pub struct DoctorReport {
    pub checks: Vec<Check>,
    pub discarded: Option<DiscardReport>,
}

/// The result of discarding an unfinished change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiscardReport {
    pub id: String,
    pub verb: String,
    pub at: String,
    /// The whole intended change as a diff. The part that was already made stays.
    pub diff: String,
    /// The paths of the stored texts. A text of the change is stored if its file does not contain it.
    pub kept: Vec<String>,
}

impl DoctorReport {
    pub fn to_json(&self) -> Value {
        json!({"checks": self.checks, "problems": self.n_problems(), "discarded": self.discarded})
    }

    pub fn n_problems(&self) -> usize {
        self.checks.iter().filter(|it| it.state == State::Problem).count()
    }

    /// 6 if there are problems.
    pub fn exit_code(&self) -> u8 {
        if self.n_problems() > 0 { 6 } else { 0 }
    }
}

pub fn examine(context: &Context, request: &DoctorRequest) -> Result<DoctorReport, Error> {
    if request.reindex {
        load::reindex(context)?;
    }
    let discarded = request.discard.as_deref().map(|id| discard(context, id)).transpose()?;
    let left = project_saves::settle(context);
    let checks = vec![
        ok("plans directory", context.plans.root().display().to_string()),
        config(context),
        trust(context),
        file_system(context),
        exchange(context),
        leases(context),
        case(context),
        lock(context),
        index(context),
        daemon(context),
        watches(context),
        kept(context, &left.kept),
        unfinished(context, left.interrupted),
        worktrees(context),
        claims(context),
    ];
    Ok(DoctorReport { checks, discarded })
}

fn check(name: &'static str, state: State, value: impl Into<String>, hint: impl Into<String>) -> Check {
    Check { name, state, value: value.into(), hint: hint.into() }
}

fn ok(name: &'static str, value: impl Into<String>) -> Check {
    check(name, State::Ok, value, "")
}

fn config(context: &Context) -> Check {
    let name = "configuration";
    let n_problems = context.here.config_problems.len();
    match context.here.config_file.as_ref().map(|it| (it, n_problems)) {
        None => ok(name, "none"),
        Some((path, 0)) => ok(name, path.display().to_string()),
        Some((path, n)) => {
            let value = format!("{}, with {n} problem{}", path.display(), if n == 1 { "" } else { "s" });
            check(name, State::Problem, value, "`planwatch check` names them")
        }
    }
}

fn trust(context: &Context) -> Check {
    let name = "state directory";
    match context.plans.runtime_dir() {
        Some(_) if context.plans.has_foreign_state() => {
            let place = shown_path(&context.root_name(), &context.plans.in_state_dir("").to_string_lossy());
            let place = place.trim_end_matches('/');
            let hint = "`.planwatch` belongs to another user or another XDG_STATE_HOME, or came with a repository; undo \
                        data and index are your own, and outside of git also the claim records; the lock is shared";
            check(name, State::Note, place, hint)
        }
        Some(_) => ok(name, "`.planwatch` was made on this machine"),
        None if context.plans.has_key() && !context.plans.is_bare() => {
            let hint = "the next change creates a directory for this user in `.planwatch/by` or `.planwatch.by`, \
                        or reports why it cannot";
            check(
                name,
                State::Note,
                "`.planwatch` came from another user or machine, or cannot be created",
                hint,
            )
        }
        None if context.plans.is_bare() => ok(name, "none, as there is no plan yet"),
        None => {
            let hint = "undo, the index on disk and `watch --detach` do not work; set XDG_STATE_HOME to a writable \
                        directory of your own";
            let value =
                "the state home cannot be used, and planwatch needs it to recognize your `.planwatch`";
            check(name, State::Problem, value, hint)
        }
    }
}

fn file_system(context: &Context) -> Check {
    let found = context.plans.file_system();
    let name = "file system";
    if found.is_remote {
        let hint = "other machines can write here unnoticed, so `watch` checks for changes every two seconds";
        return check(name, State::Note, found.name, hint);
    }
    ok(name, found.name)
}

fn exchange(context: &Context) -> Check {
    let hint =
        "a save at the same instant as a write can be lost; local file systems do not have this problem";
    tried("atomic exchange", context.plans.abilities().exchange, "works", ("missing", hint))
}

fn leases(context: &Context) -> Check {
    let hint = "a save into a file with several hard links, or at a mount point, can be lost if it happens at the \
                same instant as a write; replaced versions are kept for an hour instead of a minute";
    tried("leases on files", context.plans.abilities().leases, "work", ("missing", hint))
}

fn case(context: &Context) -> Check {
    let differs = context.plans.abilities().ignores_case.map(|it| !it);
    let hint = "plans whose names differ only in case are one directory here";
    tried("upper and lower case", differs, "different", ("the same", hint))
}

/// Whether the file system has an ability; `can` is none if the ability was not tested.
fn tried(name: &'static str, can: Option<bool>, yes: &str, (no, hint): (&str, &str)) -> Check {
    match can {
        Some(true) => ok(name, yes),
        Some(false) => check(name, State::Note, no, hint),
        None => check(name, State::Note, "not tried", "the test needs `.planwatch`"),
    }
}

fn lock(context: &Context) -> Check {
    let name = "lock";
    match context.plans.is_being_written() {
        Some(false) => ok(name, "free"),
        Some(true) => check(name, State::Note, "held", "another process writes at this moment"),
        None => {
            check(name, State::Problem, "cannot be taken", "without a lock, two processes can write at once")
        }
    }
}

fn index(context: &Context) -> Check {
    let name = "index";
    let (state, size) = load::index_state(context);
    let size = size.map(|it| format!(", {} KiB", it.div_ceil(1024))).unwrap_or_default();
    let version = crate::index::VERSION;
    let own = context.plans.state_dir();
    let elsewhere = context.plans.index_dir().filter(|it| *it != own);
    let place = elsewhere.map(|it| format!(", in {}", it.display())).unwrap_or_default();
    match state {
        IndexState::Current => ok(name, format!("version {version}{size}, current{place}")),
        IndexState::Outdated { n_plans } => {
            let plans = if n_plans == 1 { "plan" } else { "plans" };
            let value = format!("version {version}{size}, was behind the files of {n_plans} {plans}{place}");
            check(name, State::Ok, value, "it has been brought up to date")
        }
        IndexState::Missing => ok(name, format!("version {version}, made just now{place}")),
        IndexState::Bare => ok(name, "none, as there is no plan yet"),
        IndexState::Unusable => {
            let hint = "every command reads all files; `planwatch list` says why";
            check(name, State::Problem, "cannot be used", hint)
        }
    }
}

fn daemon(context: &Context) -> Check {
    let name = "watching process";
    let fact = match &context.freshness {
        Freshness::Attested(daemon) => daemon.daemon(),
        Freshness::Unknown => DaemonStatus::None,
    };
    let (pid, since, release, polling, http) = match &fact {
        DaemonStatus::None => {
            return check(name, State::Ok, "none", "`planwatch watch --detach` starts one; it is not needed");
        }
        DaemonStatus::Unreachable { why, hint } => return check(name, State::Problem, why, hint),
        DaemonStatus::Silent { pid } => {
            let value = pid.map_or_else(|| "one".to_owned(), |it| it.to_string());
            let pid = pid.map_or_else(|| "PID".to_owned(), |it| it.to_string());
            let hint = format!(
                "every command waits a second for it; `kill -CONT {pid}` resumes it if it was stopped, \
                 `kill -KILL {pid}` ends it"
            );
            return check(name, State::Problem, format!("{value}, which does not answer"), hint);
        }
        DaemonStatus::Running { pid, since, release, polling, http } => (pid, since, release, polling, http),
    };
    let own = env!("CARGO_PKG_VERSION");
    let http = http.as_ref().map(|it| format!(", answers on {it}")).unwrap_or_default();
    let value = format!("{pid}, since {since}{http}");
    match polling {
        Some(why) => {
            check(name, State::Note, value, format!("it checks for changes every two seconds: {why}"))
        }
        None if release != own => {
            let hint = format!("it is of release {release}, this is {own}: stop and start it");
            check(name, State::Note, value, hint)
        }
        None => ok(name, value),
    }
}

/// The check is a problem if the number reaches the limit. From half the limit on it is a note, because other programs use
/// watches, too.
fn watches(context: &Context) -> Check {
    let name = "watched directories";
    let n = context.plans.n_directories();
    let limit = watch_limit();
    let wanted = limit.map_or(0, |it| it.saturating_mul(2)).max(524_288);
    let hint = format!("raise the limit: sysctl fs.inotify.max_user_watches={wanted}");
    match limit {
        None => ok(name, format!("{n}")),
        Some(limit) if n >= limit => {
            check(name, State::Problem, format!("{n}, and the limit is {limit}"), hint)
        }
        Some(limit) if n * 2 >= limit => check(name, State::Note, format!("{n} of {limit}"), hint),
        Some(limit) => ok(name, format!("{n} of {limit}")),
    }
}

/// The stored versions of plan files and, in `of_project`, those of files that `init` or similar commands changed.
fn kept(context: &Context, of_project: &[Kept]) -> Check {
    let name = "stored versions";
    let kept = context.plans.kept();
    if kept.is_empty() && of_project.is_empty() {
        return ok(name, "none");
    }
    let root = context.root_name();
    let shown = |it: &Kept| {
        let (kept, path) = (it.kept.to_string_lossy(), it.path.to_string_lossy());
        format!("{} of {} ({})", shown_path(&root, &kept), shown_path(&root, &path), it.why.word())
    };
    let from_root = |it: &Kept| format!("{} of {} ({})", it.kept.display(), it.path.display(), it.why.word());
    let all = kept.iter().map(shown).chain(of_project.iter().map(from_root));
    let value = all.collect::<Vec<_>>().join("; ");
    let hint =
        "compare each with its file, copy what is missing into the file, then remove the stored version";
    check(name, State::Problem, value, hint)
}

/// The unfinished changes: one of the project's files, which `of_project` describes, and those of plans.
fn unfinished(context: &Context, of_project: Option<String>) -> Check {
    let name = "unfinished changes";
    let hint =
        "`planwatch init` completes or undoes the change of the project's files, or says what prevents that";
    let of_project = of_project.map(|it| (it, hint.to_owned()));
    let found: Vec<_> = of_project.into_iter().chain(unfinished_of_plans(context)).collect();
    if found.is_empty() {
        return ok(name, "none");
    }
    let (values, hints): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let hints: Vec<_> = hints.into_iter().filter(|it| !it.is_empty()).collect();
    check(name, State::Problem, values.join("; "), hints.join("; "))
}

/// Changes of plans that another user, or the same user with another state directory, left unfinished, with a hint.
fn unfinished_of_plans(context: &Context) -> Option<(String, String)> {
    let found = match context.plans.unfinished() {
        Ok(found) if found.is_empty() => return None,
        Ok(found) => found,
        Err(error) => return Some((error.to_string(), error.hint().unwrap_or_default())),
    };
    let root = context.root_name();
    let shown = |it: &Unfinished| {
        let journal = shown_path(&root, &it.journal.to_string_lossy());
        let mut files: Vec<_> =
            it.ops.iter().map(|op| shown_path(&root, &path_of(op).to_string_lossy())).collect();
        files.sort_unstable();
        files.dedup();
        format!("{}: `{}` of {} in {journal}, on {}", it.id, it.verb, it.at, files.join(", "))
    };
    let value = found.iter().map(shown).collect::<Vec<_>>().join("; ");
    let hint = "these files of plans cannot be changed until the change is completed or rolled back; the next command that \
                writes does that, if it is run by the user who began the change, with the same XDG_STATE_HOME, in the \
                same container; `planwatch doctor --discard-journal ID` shows and discards the change";
    Some((value, hint.to_owned()))
}

fn discard(context: &Context, id: &str) -> Result<DiscardReport, Error> {
    let mut locked = transaction::lock(context, "doctor")?;
    let Some(Discarded { unfinished, kept }) = locked.discard_unfinished(id)? else {
        return Err(Error::NotFound { what: "unfinished change", name: id.to_owned(), nearest: None });
    };
    let root = context.root_name();
    Ok(DiscardReport {
        diff: unfinished.ops.iter().map(|it| transaction::describe(&root, it)).collect(),
        kept: kept.iter().map(|it| shown_path(&root, &it.kept.to_string_lossy())).collect(),
        id: unfinished.id,
        verb: unfinished.verb,
        at: unfinished.at,
    })
}

fn worktrees(context: &Context) -> Check {
    let name = "git worktrees";
    let Some(repository) = &context.here.repository else { return ok(name, "no repository") };
    let n = common_directory(repository).map_or(0, |it| n_entries(&it.join("worktrees"))) + 1;
    ok(name, n.to_string())
}

fn claims(context: &Context) -> Check {
    let name = "claims";
    match Leases::of(context).not_shared() {
        None => ok(name, "every working tree of a repository sees them"),
        Some(NotShared { path, why, is_missed }) => {
            let value = format!("claims-not-shared: {path} cannot be written: {why}");
            let hint = "`claim` refuses, because other working trees would not see the claim; make the directory writable";
            let other = "another working tree would not see claims made here";
            let (state, hint) = if is_missed { (State::Problem, hint) } else { (State::Note, other) };
            check(name, state, value, hint)
        }
    }
}

/// The `.git` directory. In a linked worktree, `.git` is a file that leads to the `.git` directory of the main repository.
fn common_directory(repository: &Path) -> Option<PathBuf> {
    let git = repository.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = String::from_utf8(read_file(&RealDisk, &git).ok()?).ok()?;
    let own = repository.join(text.strip_prefix("gitdir:")?.trim());
    let common = String::from_utf8(read_file(&RealDisk, &own.join("commondir")).ok()?).ok()?;
    Some(own.join(common.trim()))
}

fn n_entries(directory: &Path) -> usize {
    directory.read_dir().map_or(0, |it| it.flatten().count())
}
