//! What only the resolution of a merge did: the difference between what git would have merged and the commit.

use std::collections::HashMap;
use std::rc::Rc;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::history::{Change, FileChange, Version, changes};
use crate::store::history::commits::{Versions, place};
use crate::store::history::repository::{LogCommit, RawChange, Repository};

/// Returns the changes of those merges that have any of their own, by commit. A git before 2.35 cannot say.
pub(super) fn resolutions(
    context: &Context,
    repository: &Repository,
    commits: &[LogCommit],
) -> Result<HashMap<String, Vec<Change>>, Error> {
    let merges: Vec<String> =
        commits.iter().filter(|it| it.parents.len() == 2).map(|it| it.oid.clone()).collect();
    let mut found = HashMap::new();
    for merge in repository.remerges(&merges)? {
        let mut files = Vec::new();
        for raw in merge.files.iter().filter(|it| place(repository, it).is_some()) {
            files.extend(remerged(context, repository, &merge.oid, raw)?);
        }
        let (clean, conflicts): (Vec<_>, Vec<_>) = files.into_iter().partition(|it| !is_conflict(it));
        let mut own = changes(&clean);
        own.extend(settled(context, repository, &merge, &conflicts)?);
        found.insert(merge.oid, own);
    }
    Ok(found)
}

/// The file as git would have merged it, and as it is in the merge.
fn remerged(
    context: &Context,
    repository: &Repository,
    merge: &str,
    raw: &RawChange,
) -> Result<Option<FileChange>, Error> {
    let Some((place, path)) = place(repository, raw) else { return Ok(None) };
    let read = |bytes| Rc::new(Version::read(&place, &path, bytes, &context.config.words));
    let old = raw.old.as_ref().map(|_| repository.remerged(merge, &raw.path)).transpose()?;
    let new = repository.blobs(raw.new.iter().cloned().collect()).next().transpose()?;
    let (old, new) = (old.map(read), new.map(read));
    Ok(Some(FileChange { place: place.clone(), path: path.clone(), old, new }))
}

fn is_conflict(file: &FileChange) -> bool {
    file.old.as_ref().is_some_and(|it| it.unreadable().is_some())
}

/// What the resolution of a conflict did that neither side had done: the changes that it shows against both.
fn settled(
    context: &Context,
    repository: &Repository,
    merge: &LogCommit,
    conflicts: &[FileChange],
) -> Result<Vec<Change>, Error> {
    let [ours, theirs] = &merge.parents[..] else { return Ok(Vec::new()) };
    if conflicts.is_empty() {
        return Ok(Vec::new());
    }
    let paths: Vec<String> = conflicts.iter().map(|it| repository.outside(&it.path)).collect();
    let against = |parent: &str| {
        let raw = repository.raw_between(parent, &merge.oid, &paths)?;
        let files = Versions::new(context, repository, raw.iter()).of(&raw)?;
        Ok::<_, Error>(changes(&files))
    };
    let (ours, theirs) = (against(ours)?, against(theirs)?);
    // The state before differs from side to side.
    let is_same = |a: &Change, b: &Change| {
        let result = |it: &Change| Change { from: None, lines: None, keys: Vec::new(), ..it.clone() };
        result(a) == result(b)
    };
    Ok(ours.into_iter().filter(|it| theirs.iter().any(|other| is_same(it, other))).collect())
}
