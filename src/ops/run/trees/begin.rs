//! Begins a run with working trees: decides whether the run may begin, and whether it continues an earlier run.
//!
//! For each working tree of the user, there is one record for each branch. It contains the id that the branch's runs share,
//! and the commit at which the last run began. A lock next to the record is held as long as a run lives. The system
//! releases the lock when the process ends, even if it is killed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::{HeldRecord, Records};
use crate::git::{Git, GitError, Oid};
use crate::ops::run::RunRequest;
use crate::ops::run::trees::Trees;
use crate::ops::run::trees::names;

/// How long to wait for the lock. After a run was killed, a process that it was starting may hold the lock for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The run's id in the names of its branches.
    run: String,
    root: PathBuf,
    branch: String,
    /// `HEAD` when the last run began.
    base: String,
}

/// The repository and the branch of a run, after the checks of [`place`].
struct Place {
    git: Git,
    head: Oid,
    /// `refs/heads/…`.
    branch: String,
    /// The plans directory, relative to the repository's root. `None`: it is outside the repository.
    plans: Option<PathBuf>,
}

/// Returns an error if a run with working trees is not possible here.
pub(crate) fn check(context: &Context) -> Result<(), Error> {
    place(context).map(drop)
}

fn place(context: &Context) -> Result<Place, Error> {
    let git = Git::at(&context.here.root)?;
    git.require(2, 41, " for `run --worktrees`")?;
    let head = git.head_commit()?.ok_or_else(|| {
        let hint = "commit something first: `git add` and `git commit`";
        Error::conflict(
            "no-commits",
            "`run --worktrees` needs a commit to begin from, and there is none",
            hint,
        )
    })?;
    let branch =
        git.check_may_commit().and_then(|it| git.check_has_identity().map(|()| it)).map_err(refused)?;
    let plans = git.relative(context.plans.root());
    if plans.as_ref().is_some_and(|it| it.as_os_str().is_empty()) {
        let message =
            "the plans directory is the whole repository, so there is nothing else to work on in a worktree";
        return Err(Error::conflict("worktrees-refused", message, "leave out `--worktrees`"));
    }
    Ok(Place { git, head, branch, plans })
}

fn refused(error: GitError) -> Error {
    match error {
        GitError::Refused { why, hint } => {
            let message = format!("`run --worktrees` cannot begin: {why}");
            Error::conflict("worktrees-refused", message, hint)
        }
        other => other.into(),
    }
}

/// Begins a run, or continues the last run of this working tree and branch. The returned record holds the lock, so the
/// caller must keep it until the run has ended.
pub(crate) fn begin(context: &Context, request: &RunRequest) -> Result<(Trees, HeldRecord), Error> {
    let Place { git, head, branch, plans } = place(context)?;
    let records = context.plans.worktree().map(|it| context.plans.run_records(&it));
    let records = records.ok_or_else(|| GitError::NotARepository { path: git.root.display().to_string() })?;
    let key = key(&git, &branch);
    let Some(held) = records.hold(&key, LOCK_TIMEOUT)? else {
        let message = format!("another `run --worktrees` is at work on `{}` here", names::short(&branch));
        return Err(Error::conflict("run-in-progress", message, "wait until it has ended"));
    };
    let state = context.plans.made_runtime_dir().ok_or_else(|| {
        let message = "there is no directory for the worktrees: `.planwatch` cannot be used here";
        Error::failed("no-state-directory", message, "`planwatch doctor` says why")
    })?;
    let record = read(&records, &key);
    let run = record.as_ref().map_or_else(|| fresh_run(context), |it| Ok(it.run.clone()))?;
    begin_main(&git, &run, &head, record.as_ref())?;
    let now =
        Record { run: run.clone(), root: git.root.clone(), branch: branch.clone(), base: head.to_string() };
    let bytes = serde_json::to_vec(&now).unwrap_or_default();
    held.put(&bytes)?;
    let trees = Trees {
        home: state.join("trees").join(&run),
        plans,
        run,
        branch,
        base: head,
        keeps: request.keeps_worktrees,
        search: search(request),
        one: Mutex::new(()),
        git,
    };
    Ok((trees, held))
}

fn key(git: &Git, branch: &str) -> String {
    let both = [git.root.as_os_str().as_encoded_bytes(), b"\0", branch.as_bytes()].concat();
    blake3::hash(&both).to_hex()[..16].to_owned()
}

fn read(records: &Records, key: &str) -> Option<Record> {
    let record: Record = serde_json::from_slice(&records.get(key)?).ok()?;
    // The id becomes part of ref names and paths, so it is checked.
    let is_id =
        !record.run.is_empty() && record.run.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    is_id.then_some(record)
}

/// Makes a random id for a run: a letter from g to z and seven hexadecimal digits.
fn fresh_run(context: &Context) -> Result<String, Error> {
    let mut bytes = [0; 8];
    context.plans.random(&mut bytes)?;
    let random = u64::from_le_bytes(bytes);
    let letter = (b'g' + u8::try_from(random % 20).unwrap_or(0)) as char;
    Ok(format!("{letter}{:07x}", random >> 36))
}

/// The `PATH` in which merge drivers find planwatch.
fn search(request: &RunRequest) -> Option<OsString> {
    request.environment.iter().find(|(name, _)| name == "PATH").map(|(_, it)| it.clone())
}

/// What a run does at its start with its main branch, into which the verified work of its steps is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The branch does not exist, so it is made at `HEAD`.
    Make,
    /// `HEAD` contains all work of the branch, so the branch is moved to `HEAD`.
    Again,
    /// An earlier run was killed, or could not merge the branch into the user's branch. This run continues with the branch.
    GoOn,
    /// The branch has work that `HEAD` does not have, and `HEAD` has moved since. The run is refused.
    Refuse,
}

/// `is_at_base`: `HEAD` is where the earlier run began.
fn start(has_branch: bool, is_in_head: bool, is_at_base: bool) -> Start {
    match (has_branch, is_in_head, is_at_base) {
        (false, ..) => Start::Make,
        (true, true, _) => Start::Again,
        (true, false, true) => Start::GoOn,
        (true, false, false) => Start::Refuse,
    }
}

fn begin_main(git: &Git, run: &str, head: &Oid, record: Option<&Record>) -> Result<(), Error> {
    let name = names::main_of(run);
    let tip = git.find_ref(&name)?;
    let is_in_head = tip.as_ref().map_or(Ok(false), |it| git.is_ancestor(it, head))?;
    let is_at_base = record.is_some_and(|it| it.base == head.as_str());
    match start(tip.is_some(), is_in_head, is_at_base) {
        Start::Make | Start::Again => Ok(git.move_ref(&name, tip.as_ref(), head, "run: begin")?),
        Start::GoOn => Ok(()),
        Start::Refuse => {
            let short = names::short(&name);
            let message =
                format!("`{short}` has work of an earlier run that is not in HEAD, and HEAD has moved");
            let hint =
                format!("`git merge {short}` merges it; `git branch -D {short}` discards it; then run again");
            Err(Error::conflict("run-not-merged", message, hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_work_is_never_dropped_at_the_start() {
        let table = [
            ((false, false, false), Start::Make),
            ((false, false, true), Start::Make),
            ((true, true, false), Start::Again),
            ((true, true, true), Start::Again),
            ((true, false, true), Start::GoOn),
            ((true, false, false), Start::Refuse),
        ];
        for ((has_branch, is_in_head, is_at_base), expected) in table {
            assert_eq!(start(has_branch, is_in_head, is_at_base), expected);
        }
    }
}
