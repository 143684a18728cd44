//! Reads what commits did. While git still lists commits and prints the files that they changed, the files of commits that
//! were listed earlier are already compared.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::history::{Change, FileChange, Version, changes};
use crate::plan::time::Time;
use crate::store::history::repository::{LogCommit, Repository};
use crate::store::history::versions::Versions;
use crate::store::history::{Commit, merges};

/// How many commits are listed before the first one is compared, so that git's processes and the parsing run at the
/// same time.
const AHEAD: usize = 2_000;

/// Reads commits in the order in which they are given.
pub(super) fn read(
    context: &Context,
    repository: &Repository,
    log: impl Iterator<Item = Result<LogCommit, Error>>,
) -> Result<Vec<Commit>, Error> {
    let mut versions = Versions::new(context, repository);
    let (mut listed, mut merges) = (VecDeque::new(), Vec::new());
    let mut commits = Vec::new();
    let mut compare = |versions: &mut Versions<'_>, (commit, asked)| {
        let mut files = versions.get(asked)?;
        for file in &mut files {
            repair(context, repository, &commit, file)?;
        }
        commits.push(named(commit, changes(&files)));
        Ok::<_, Error>(())
    };
    for commit in log {
        let commit: LogCommit = commit?;
        if repository.boundaries().contains(&commit.oid) {
            continue;
        }
        if commit.parents.len() > 1 {
            merges.push(commit.clone());
        }
        let asked = versions.ask(&commit.files);
        listed.push_back((commit, asked));
        if listed.len() > AHEAD
            && let Some(next) = listed.pop_front()
        {
            compare(&mut versions, next)?;
        }
    }
    for next in listed {
        compare(&mut versions, next)?;
    }
    let mut resolved = merges::resolutions(context, repository, &merges)?;
    if !merges.is_empty() {
        for commit in &mut commits {
            commit.changes.extend(resolved.remove(&commit.oid).unwrap_or_default());
        }
    }
    Ok(commits)
}

fn named(commit: LogCommit, changes: Vec<Change>) -> Commit {
    let at = Some(Time::from_nanoseconds(i128::from(commit.at) * 1_000_000_000));
    Commit { at, oid: commit.oid, author: commit.author, subject: commit.subject, changes }
}

/// A file that becomes readable again is compared with its last readable version, so that no change in between is lost.
fn repair(
    context: &Context,
    repository: &Repository,
    commit: &LogCommit,
    file: &mut FileChange,
) -> Result<(), Error> {
    let is_broken = |it: &Option<Rc<Version>>| it.as_ref().is_some_and(|it| it.unreadable().is_some());
    if !is_broken(&file.old) || file.new.is_none() || is_broken(&file.new) {
        return Ok(());
    }
    let Some(parent) = commit.parents.first() else { return Ok(()) };
    for bytes in repository.versions_before(parent, &file.path)? {
        let version = Version::read(&file.place, &file.path, bytes, &context.config.words);
        if version.unreadable().is_none() {
            file.old = Some(Rc::new(version));
            break;
        }
    }
    Ok(())
}
