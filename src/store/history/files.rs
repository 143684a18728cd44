//! Finds the files that differ between two states of the plans. A state is a commit, git's index or the working tree.

use std::rc::Rc;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::history::{FileChange, Version};
use crate::plan::time::Time;
use crate::store::history::repository::Repository;
use crate::store::history::versions::{Versions, place};
use crate::store::load;

/// The two states that are compared. Commits are given by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sides {
    /// A commit and the working tree; `None` if there is no commit yet.
    WorkingTree {
        since: Option<String>,
    },
    /// A commit and what is staged.
    Staged {
        since: Option<String>,
    },
    Commits {
        old: String,
        new: String,
    },
}

/// A file that differs. `saved` is the time of the last save, if the new version is in the working tree.
#[derive(Debug)]
pub(crate) struct Differing {
    pub(crate) change: FileChange,
    pub(crate) saved: Option<Time>,
}

/// Returns the plan files that differ.
pub(crate) fn between(
    context: &Context,
    repository: &Repository,
    sides: &Sides,
) -> Result<Vec<Differing>, Error> {
    let raw = match sides {
        Sides::Commits { old, new } => repository.raw_between(old, new, &[])?,
        Sides::Staged { since } => repository.raw_uncommitted(since.as_deref(), true)?,
        Sides::WorkingTree { since } => return in_working_tree(context, repository, since.as_deref()),
    };
    let files = Versions::new(context, repository).read(&raw)?;
    Ok(files.into_iter().map(|change| Differing { change, saved: None }).collect())
}

/// Reads the new versions from the files, as every verb does.
fn in_working_tree(
    context: &Context,
    repository: &Repository,
    since: Option<&str>,
) -> Result<Vec<Differing>, Error> {
    let mut raw = repository.raw_in_working_tree(since)?;
    // What git reports about the new side is ignored: the files are read below.
    raw.iter_mut().for_each(|it| it.new = None);
    let mut versions = Versions::new(context, repository);
    let asked: Vec<_> = raw.iter().map(|it| versions.ask(std::slice::from_ref(it))).collect();
    let mut found = Vec::new();
    for (file, asked) in raw.iter().zip(asked) {
        let Some((place, path)) = place(repository, file) else { continue };
        let old = versions.get(asked)?.pop().and_then(|it| it.old);
        let content = load::read_source(context, &path).ok();
        let saved = content.as_ref().map(|it| it.modified);
        let new = content.map(|it| Rc::new(Version::read(&place, &path, it.bytes, &context.config.words)));
        if old.is_some() || new.is_some() {
            found.push(Differing { change: FileChange { path, place, old, new }, saved });
        }
    }
    Ok(found)
}
