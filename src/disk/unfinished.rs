//! Finds and discards batches that another user, or the same user with another state home (`XDG_STATE_HOME`), began here and
//! did not finish.
//!
//! The operations in their journals are never carried out, because the journals may have come with a repository. Such a
//! batch may be half done. Therefore the files that it names are not written until its owner finishes it, or a command
//! discards it by its id. A journal of another user that cannot be read is ignored. When the owner finishes that batch,
//! a write that was made meanwhile counts as an edit by another program.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::displaced::{Kept, KeptWhy, dir, kept_name};
use super::error::DiskError;
use super::fs_ops::{Safe, is, read_own, rename_new, write_new};
use super::journal::{JOURNAL, Journal, Unfinished};
use super::names::{NamedPath, checked};
use super::plans_dir::PlansDir;
use super::runtime::{BY, Trust, is_mine, sibling_name};
use super::write_lock::Locked;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    pub unfinished: Unfinished,
    /// Texts of the journal that are not in their files.
    pub kept: Vec<Kept>,
}

impl PlansDir {
    /// Finds unfinished batches of others, as far as their journals can be read.
    pub fn unfinished(&self) -> Result<Vec<Unfinished>, DiskError> {
        let own = self.found_home().filter(|it| it.trust == Trust::Own).map(|it| it.dir);
        let mut found = Vec::new();
        for dir in self.state_dirs()?.iter().filter(|it| own.as_ref() != Some(it)) {
            let path = dir.join(JOURNAL);
            let bytes = self.seen(dir, read_own(&*self.disk, &path, u64::MAX))?.flatten();
            // If the journal is truncated, no operation was begun.
            let Some(journal) = bytes.as_deref().and_then(Journal::decode) else { continue };
            found.push(Unfinished {
                id: format!("{:016x}", journal.id),
                verb: journal.verb,
                at: journal.at,
                journal: path.strip_prefix(&self.root).unwrap_or(&path).to_path_buf(),
                ops: journal.ops,
                number: journal.id,
            });
        }
        found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The directories that may be state directories, for all users and state homes. State directories that cannot be
    /// listed, because the directory above them is private to another user, are left out.
    pub(super) fn state_dirs(&self) -> Result<Vec<PathBuf>, DiskError> {
        let main = self.root.join(self.runtime);
        let mut dirs = vec![main.clone()];
        for above in [main.join(BY), self.root.join(sibling_name(self.runtime))] {
            let names = self.seen(&above, self.disk.names(&above))?.unwrap_or_default();
            dirs.extend(names.into_iter().map(|it| above.join(it)));
        }
        Ok(dirs)
    }

    /// Returns `None` for an error which means that the directory is missing or private to another user.
    fn seen<T>(&self, dir: &Path, found: io::Result<T>) -> Result<Option<T>, DiskError> {
        const NOTHING: [Errno; 3] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
        let is_anothers = || {
            let mut above = dir.ancestors().take_while(|it| *it != self.root);
            above.any(|it| self.disk.lstat(it).is_ok_and(|it| !is_mine(&it)))
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if NOTHING.iter().any(|errno| is(&error, *errno)) => Ok(None),
            Err(error) if is(&error, Errno::ACCESS) && is_anothers() => Ok(None),
            Err(error) => Err(DiskError::reading(dir, error)),
        }
    }
}

impl Locked<'_> {
    /// Rejects a file that is part of another owner's unfinished batch.
    pub(super) fn check_finished(&self, path: &Path) -> Result<(), DiskError> {
        let Some(it) = self.unfinished.iter().find(|it| it.names(path)) else { return Ok(()) };
        let (verb, at, id) = (it.verb.clone(), it.at.clone(), it.id.clone());
        Err(DiskError::BegunElsewhere { path: self.plans.root.join(path), verb, at, id })
    }

    /// Discards the batch with this id that another owner began; `None` if there is none.
    ///
    /// Operations that were done are not undone. Texts of the journal that are not in their files are preserved before
    /// the journal is removed.
    pub fn discard_unfinished(&mut self, id: &str) -> Result<Option<Discarded>, DiskError> {
        let Some(at) = self.unfinished.iter().position(|it| it.id == id) else { return Ok(None) };
        let mut left = self.unfinished.to_vec();
        let unfinished = left.remove(at);
        let kept = self.keep_texts(&unfinished)?;
        let journal = self.plans.root.join(&unfinished.journal);
        let parent = journal.parent().unwrap_or(&self.plans.root);
        let removed = match self.plans.disk.remove(&journal) {
            Err(error) if is(&error, Errno::NOENT) => Ok(()),
            other => other,
        };
        if let Err(error) = removed {
            for it in &kept {
                self.plans.disk.remove(&self.plans.root.join(&it.kept)).ok();
            }
            return Err(DiskError::writing(&journal, error));
        }
        self.plans.disk.sync_dir(parent).map_err(|error| DiskError::writing(&journal, error))?;
        self.unfinished = Arc::new(left);
        Ok(Some(Discarded { unfinished, kept }))
    }

    fn keep_texts(&self, unfinished: &Unfinished) -> Result<Vec<Kept>, DiskError> {
        let (disk, root, dir) = (&*self.plans.disk, &self.plans.root, dir(self.plans));
        let mut kept = Vec::new();
        for (id, path, text) in unfinished.texts() {
            // The journal is not trusted, so its paths are checked.
            let path = if checked(path).is_ok() { path } else { Path::new("unknown") };
            if read_own(disk, &root.join(path), u64::MAX).is_ok_and(|it| it.as_deref() == Some(text)) {
                continue;
            }
            let name = kept_name(KeptWhy::Interrupted, id, &NamedPath::Whole(path.to_path_buf()));
            let at = dir.join(name);
            let draft = dir.join("journal.new");
            disk.remove(&draft).ok();
            let kept_whole =
                write_new(disk, &draft, 0o600, text, Safe::Yes).and_then(|()| rename_new(disk, &draft, &at));
            match kept_whole {
                // An earlier attempt was interrupted after this rename.
                Err(error) if is(&error, Errno::EXIST) => disk.remove(&draft).ok(),
                other => other.map(Some).map_err(|error| DiskError::writing(&at, error))?,
            };
            let kept_at = at.strip_prefix(root).unwrap_or(&at).to_path_buf();
            kept.push(Kept { path: path.to_path_buf(), kept: kept_at, why: KeptWhy::Interrupted });
        }
        disk.sync_dir(&dir).map_err(|error| DiskError::writing(&dir, error))?;
        Ok(kept)
    }
}

#[cfg(test)]
mod tests;
