//! Finds the changes that a merge commit itself made: the differences between git's automatic merge and the merge commit.

use std::collections::HashMap;
use std::rc::Rc;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::history::{Change, FileChange, Version, What, changes};
use crate::store::history::repository::{LogCommit, RawChange, Repository};
use crate::store::history::versions::{Versions, place};

/// Returns the changes that the merges themselves made, by commit. The result need not contain merges without
/// such changes.
pub(super) fn resolutions(
    context: &Context,
    repository: &Repository,
    merges: &[LogCommit],
) -> Result<HashMap<String, Vec<Change>>, Error> {
    let (pairs, octopuses): (Vec<_>, Vec<_>) = merges.iter().partition(|it| it.parents.len() == 2);
    let pairs: Vec<String> = pairs.into_iter().map(|it| it.oid.clone()).collect();
    let mut found = HashMap::new();
    for merge in repository.remerges(&pairs)? {
        let mut files = Vec::new();
        for raw in merge.files.iter().filter(|it| place(repository, it).is_some()) {
            files.extend(remerged(context, repository, &merge.oid, raw)?);
        }
        let (conflicts, clean): (Vec<_>, Vec<_>) = files.into_iter().partition(is_conflict);
        let paths: Vec<_> = conflicts.iter().map(|it| repository.outside(&it.path)).collect();
        let settled = Settled { context, repository, merge: &merge, paths: &paths };
        let mut own = changes(&clean);
        // Git's own merge can contain a moved step twice: at the new path and at the old path. The file at the old path
        // then has a conflict, or the merge commit removed it.
        if !own.is_empty() && (!paths.is_empty() || clean.iter().any(|it| it.new.is_none())) {
            own = settled.without_moved(own)?;
        }
        if !paths.is_empty() {
            own.extend(settled.changes()?);
        }
        found.insert(merge.oid, own);
    }
    // For more than two parents, git does not show its own merge.
    for merge in octopuses {
        let settled = Settled { context, repository, merge, paths: &[] };
        found.insert(merge.oid.clone(), settled.common()?.0);
    }
    Ok(found)
}

/// The file as git would have merged it, and as it is in the merge commit.
fn remerged(
    context: &Context,
    repository: &Repository,
    merge: &str,
    raw: &RawChange,
) -> Result<Option<FileChange>, Error> {
    let Some((place, path)) = place(repository, raw) else { return Ok(None) };
    let read = |bytes| Rc::new(Version::read(&place, &path, bytes, &context.config.words));
    let old = raw.old.as_ref().map(|_| repository.remerged(merge, &raw.path)).transpose()?;
    let new = repository.contents(raw.new.as_slice())?.pop();
    let (old, new) = (old.map(read), new.map(read));
    Ok(Some(FileChange { place: place.clone(), path: path.clone(), old, new }))
}

/// Splits the change of a file into a removal and a creation, if its old and new sides are two steps with the same number.
fn apart(files: Vec<FileChange>) -> Vec<FileChange> {
    let split = |it: FileChange| match it.are_two_steps() {
        true => vec![FileChange { new: None, ..it.clone() }, FileChange { old: None, ..it }],
        false => vec![it],
    };
    files.into_iter().flat_map(split).collect()
}

fn is_conflict(file: &FileChange) -> bool {
    file.old.as_ref().is_some_and(|it| it.unreadable().is_some())
}

/// A merge compared with its parents.
struct Settled<'a> {
    context: &'a Context,
    repository: &'a Repository,
    merge: &'a LogCommit,
    /// The paths of the files that were in conflict. If there are none, all files are compared.
    paths: &'a [String],
}

impl Settled<'_> {
    /// Leaves out the changes that one side made to a step that the other side moved. Git's own merge has these changes
    /// at the old path, so they look like changes of the merge commit.
    fn without_moved(&self, mut own: Vec<Change>) -> Result<Vec<Change>, Error> {
        for parent in &self.merge.parents {
            let since = self.since(parent, &[])?;
            for moved in since.iter().filter(|it| it.what == What::Moved) {
                let had =
                    |it: &Change| !since.iter().any(|other| (it.what, &it.path) == (other.what, &other.path));
                // In git's own merge the step is at its old path, so it appears as created at the new one.
                let is_new = own.iter().any(|it| it.what == What::Created && it.path == moved.path);
                own.retain(|it| {
                    let is_gone = it.what == What::Removed && it.step == moved.from;
                    !is_gone && (it.path != moved.path || !had(it))
                });
                if is_new {
                    own.push(moved.clone());
                }
            }
        }
        Ok(own)
    }

    /// The changes that the resolution of conflicts made: changes that neither side had made, and choices between the
    /// values of the two sides.
    fn changes(&self) -> Result<Vec<Change>, Error> {
        let (mut own, sides) = self.common()?;
        let chosen = sides.into_iter().flatten().filter(|it| matches!(it.what, What::Status | What::Title));
        let chosen: Vec<_> = chosen.filter(|it| !own.iter().any(|own| self.is_same(own, it))).collect();
        if chosen.is_empty() {
            return Ok(own);
        }
        let base = match self.repository.merge_base(&self.merge.parents)? {
            // All files are compared, because a side may have moved the changed file.
            Some(base) => self.since(&base, &[])?,
            None => Vec::new(),
        };
        for change in chosen {
            // `own` can already contain the same change, but with the author and time of an attempt from the other side.
            if own.iter().any(|it| (it.what, &it.path, &it.to) == (change.what, &change.path, &change.to)) {
                continue;
            }
            let before = base.iter().find(|it| (it.what, &it.path) == (change.what, &change.path));
            // If a side's value is still that of the base, the merge only took the other side's value.
            if before.map_or(&change.to, |it| &it.from) != &change.from {
                own.push(Change { by: None, at: None, ..change });
            }
        }
        Ok(own)
    }

    /// The changes that appear relative to all parents, and the changes relative to each parent separately.
    fn common(&self) -> Result<(Vec<Change>, Vec<Vec<Change>>), Error> {
        let sides = self.merge.parents.iter().map(|it| self.since(it, self.paths));
        let sides: Vec<_> = sides.collect::<Result<_, _>>()?;
        let in_all = |it: &&Change| sides.iter().all(|side| side.iter().any(|other| self.is_same(it, other)));
        let common = sides.first().into_iter().flatten().filter(in_all).cloned().collect();
        Ok((common, sides))
    }

    /// The changes of the files `paths` since a commit; of all files if `paths` is empty.
    fn since(&self, commit: &str, paths: &[String]) -> Result<Vec<Change>, Error> {
        let read = |paths: &[String]| {
            let raw = self.repository.raw_between(commit, &self.merge.oid, paths)?;
            Versions::new(self.context, self.repository).read(&raw)
        };
        let some = read(paths)?;
        if paths.is_empty() || !some.iter().any(FileChange::may_be_two_steps) {
            return Ok(changes(&apart(some)));
        }
        // The parent can have another step under this number, and this step under another number. So all files are
        // compared.
        let all = changes(&apart(read(&[])?)).into_iter();
        Ok(all.filter(|it| some.iter().any(|file| file.path == it.path)).collect())
    }

    /// Whether two changes have the same result. The state before the change is ignored, because it differs from side to
    /// side.
    fn is_same(&self, a: &Change, b: &Change) -> bool {
        // If both sides changed a text without a conflict, the lines or keys in which the merge commit differs from one side
        // are not those in which it differs from the other side. The merge commit itself made none of these changes. So,
        // without a conflict, lines and keys must be equal, too.
        let is_conflict = !self.paths.is_empty();
        let result = |it: &Change| {
            let it = Change { from: None, ..it.clone() };
            if is_conflict { Change { lines: None, keys: Vec::new(), ..it } } else { it }
        };
        result(a) == result(b)
    }
}
