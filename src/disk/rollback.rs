//! Undoes a batch.
//!
//! The progress of each operation is determined as in `batch`. Files that other programs have written stay where they
//! are, and files that planwatch removes are moved to `displaced/`. If another program has used the old name of a
//! renamed file again, the file cannot return to that name, and under its new name the step would exist twice.
//! Therefore the renamed file is moved to `displaced/`, too.

use std::path::Path;

use rustix::io::Errno;

use super::batch::Progress;
use super::change::Raced;
use super::displaced::{Kept, KeptWhy, dir, keep, kept_name};
use super::error::DiskError;
use super::file_system::{FileKind, Rename};
use super::fs_ops::{is, is_one_file, make_dirs, read_own, rename_new};
use super::in_mount::is_elsewhere;
use super::journal::{FileOp, Journal, Source};
use super::names::{Content, NamedPath, Origin, VersionName};
use super::write_lock::{Locked, Version};

/// How many names in `displaced/` are tried for one file.
const NAMES: u64 = 100;

impl Locked<'_> {
    /// The files and directories that the operations are about to rename.
    pub(super) fn sources(&self, ops: &[FileOp]) -> Vec<Source> {
        let source = |(n, op): (usize, &FileOp)| {
            let (Some(from), Some(_)) = op.names() else { return None };
            let path = self.plans.root.join(from);
            let stat = self.plans.disk.lstat(&path).ok()?;
            let text = if stat.kind == FileKind::File { self.content(&path) } else { None };
            Some(Source { n: n as u64, ino: stat.ino, text })
        };
        ops.iter().enumerate().filter_map(source).collect()
    }

    fn content(&self, path: &Path) -> Option<Content> {
        read_own(&*self.plans.disk, path, u64::MAX).ok().flatten().map(|it| Content::of(&it))
    }

    /// Fails if the old name of a renamed file exists again at the end of a batch. Then an editor has saved under that
    /// name, and the step would exist twice.
    pub(super) fn check_old_names(&self, ops: &[FileOp]) -> Result<(), DiskError> {
        let renamed = ops.iter().filter_map(|it| it.names().0.zip(it.names().1));
        match renamed.into_iter().find(|(from, to)| self.is_doubled(from, to)) {
            Some((from, _)) => Err(DiskError::FileChanged { path: self.plans.root.join(from) }),
            None => Ok(()),
        }
    }

    /// Whether both names exist and are different files or directories.
    pub(super) fn is_doubled(&self, from: &Path, to: &Path) -> bool {
        let (from, to) = (self.plans.root.join(from), self.plans.root.join(to));
        let disk = &*self.plans.disk;
        disk.lstat(&from).is_ok() && disk.lstat(&to).is_ok() && !is_one_file(disk, &from, &to)
    }

    /// Whether operation `n` has done its rename, given that both names exist now.
    pub(super) fn is_renamed(&self, journal: &Journal, n: usize, from: &Path, to: &Path) -> bool {
        self.is_source(journal, n, to) || !self.is_source(journal, n, from)
    }

    /// Whether `path` leads to the file or directory that operation `n` renames.
    fn is_source(&self, journal: &Journal, n: usize, path: &Path) -> bool {
        let path = self.plans.root.join(path);
        let source = journal.sources.iter().find(|it| it.n == n as u64);
        let ino = self.plans.disk.lstat(&path).ok().map(|it| it.ino);
        let text = Self::renamed_text(journal, n);
        source.is_some_and(|it| Some(it.ino) == ino) || text.is_some() && self.content(&path) == text
    }

    /// The text of the file that operation `n` renames: the text that an earlier operation wrote, or else the text from
    /// before the batch.
    fn renamed_text(journal: &Journal, n: usize) -> Option<Content> {
        let source = || journal.sources.iter().find(|it| it.n == n as u64)?.text;
        put_text(journal, n).or_else(source)
    }

    /// Undoes the operations of a batch, last operation first. The first `n_done` operations are known to be done, and
    /// only the next one may have begun. After a crash the number is not known, and `n_done` is `None`.
    ///
    /// If another program has changed a file since the batch, only the batch's change is removed from that program's text
    /// (see [`without`]). Where this is not possible, the text stays as it is, and the text from before the batch stays in
    /// `displaced/`.
    pub(super) fn back(&mut self, journal: &Journal, n_done: Option<usize>) -> Result<(), DiskError> {
        let n_begun = n_done.map_or(journal.ops.len(), |it| journal.ops.len().min(it + 1));
        for (n, op) in journal.ops.iter().enumerate().take(n_begun).rev() {
            let version = self.version(journal.id, n, op);
            let progress = match n_done {
                Some(_) => self.progress(journal, n, &version),
                None => self.progress_after_crash(journal, n, &version),
            };
            match progress {
                Progress::Done | Progress::Half => self.take_op_back(journal, n, version)?,
                Progress::Doubled | Progress::Impossible => {
                    let Some((from, to)) = op.names().0.zip(op.names().1) else { continue };
                    let is_renamed = match n_done {
                        Some(n_done) => n < n_done || self.is_source(journal, n, to),
                        None => self.is_renamed(journal, n, from, to),
                    };
                    if is_renamed && self.is_doubled(from, to) {
                        // `resolve_recreated` reports the renamed file unless it contains `text`. After a crash, the file
                        // that has the old name now may have been created long after the rename. The renamed file may then
                        // be the only one with the text from before the batch. Therefore, that text is not passed.
                        let text = if n_done.is_some() {
                            Self::renamed_text(journal, n)
                        } else {
                            put_text(journal, n)
                        };
                        self.resolve_recreated(version.name.id, from, to, text)?;
                    }
                }
                Progress::Open => {
                    if let FileOp::Create { path, bytes } = op {
                        self.clear_near(&self.plans.root.join(path), version.name.id, bytes);
                    }
                }
            }
        }
        self.sync_all(&journal.ops)?;
        self.remove_empty(journal.made.iter().rev());
        Ok(())
    }

    /// Removes `to`, because another program has recreated `from`. The entries of a directory are moved back into
    /// `from`; this fails if `from` is not a directory. A file is moved to `displaced/`, and is not reported if it
    /// contains `text`.
    fn resolve_recreated(
        &mut self,
        id: u64,
        from: &Path,
        to: &Path,
        text: Option<Content>,
    ) -> Result<(), DiskError> {
        let (disk, root) = (&*self.plans.disk, &self.plans.root);
        let (old, new) = (root.join(from), root.join(to));
        let kind =
            |path: &Path| disk.lstat(path).map(|it| it.kind).map_err(|it| DiskError::writing(path, it));
        match (kind(&old)?, kind(&new)?) {
            (FileKind::Dir, FileKind::Dir) => self.merge(id, from, to),
            (_, FileKind::Dir) => Err(DiskError::FileChanged { path: old }),
            _ => self.displace(id, from, &new, text),
        }
    }

    /// Moves everything in the directory `to` back into `from`, which another program has recreated.
    fn merge(&mut self, id: u64, from: &Path, to: &Path) -> Result<(), DiskError> {
        let (old, new) = (self.plans.root.join(from), self.plans.root.join(to));
        // The other program may not have synced its directory.
        self.sync_parent(&old)?;
        let names = self.plans.disk.names(&new).map_err(|error| DiskError::reading(&new, error))?;
        for name in names {
            let moved = rename_new(&*self.plans.disk, &new.join(&name), &old.join(&name));
            match moved.map_err(|error| DiskError::writing(&old.join(&name), error)) {
                Err(DiskError::Exists { .. }) => {
                    self.resolve_recreated(id, &from.join(&name), &to.join(&name), None)?;
                }
                other => other?,
            }
        }
        let disk = &*self.plans.disk;
        let synced = disk.sync_dir(&old).and_then(|()| disk.sync_dir(&new));
        synced.and_then(|()| disk.remove_dir(&new)).map_err(|error| DiskError::writing(&new, error))
    }

    /// Moves the file `new`, which cannot return to its old name `from`, to `displaced/`. The file is reported, except
    /// if it contains `text` or the same text as the file that is at `from` now.
    fn displace(&mut self, id: u64, from: &Path, new: &Path, text: Option<Content>) -> Result<(), DiskError> {
        let disk = &*self.plans.disk;
        let failed = |error| DiskError::writing(new, error);
        let displaced = dir(self.plans);
        make_dirs(disk, &displaced, 0o700).map_err(failed)?;
        let path = NamedPath::Whole(from.to_path_buf());
        let holds = self.content(new);
        let is_known =
            holds.is_some() && (holds == text || holds == self.content(&self.plans.root.join(from)));
        // A program that has the file open may still write into it. The version name contains a hash of the present
        // content, so such a write is detected.
        let known = holds.filter(|_| is_known);
        let name = |id| match known {
            Some(base) => {
                VersionName { origin: Origin::Clean, id, base, new: base, path: path.clone() }.encode()
            }
            None => kept_name(KeptWhy::Overtaken, id, &path),
        };
        let mut at = displaced.join(name(id));
        let mut renamed = rename_new(disk, new, &at);
        for id in id + 1..id + NAMES {
            if !renamed.as_ref().is_err_and(|error| is(error, Errno::EXIST)) {
                break;
            }
            at = displaced.join(name(id));
            renamed = rename_new(disk, new, &at);
        }
        if renamed.as_ref().is_err_and(is_elsewhere) {
            return self.keep_copy(id, &path, new);
        }
        renamed.map_err(failed)?;
        if known.is_none() {
            let kept = at.strip_prefix(&self.plans.root).unwrap_or(&at).to_path_buf();
            self.kept.push(Kept { path: path.shown(), kept, why: KeptWhy::Overtaken });
        } else if self.content(&at) != known {
            self.kept.push(keep(disk, &self.plans.root, &at, KeptWhy::Overtaken));
        }
        Ok(())
    }

    fn take_op_back(&mut self, journal: &Journal, n: usize, version: Version) -> Result<(), DiskError> {
        let root = self.plans.root.clone();
        let there = |path: &Path| self.plans.disk.lstat(path).is_ok();
        match &journal.ops[n] {
            FileOp::Create { path, bytes } => {
                let path = root.join(path);
                if self.holds(&path, bytes) {
                    // A program may have the file open, so later writes must be detected, as for a replaced version.
                    let name = VersionName { base: version.name.new, ..version.name.clone() };
                    let taken = dir(self.plans).join(name.encode());
                    // The name exists if undoing the batch was interrupted before.
                    let taken = if there(&taken) { &version.path } else { &taken };
                    match rename_new(&*self.plans.disk, &path, taken) {
                        Err(error) if is_elsewhere(&error) => {
                            self.remove_near(&path, version.name.id, bytes)?;
                        }
                        other => other.map_err(|error| DiskError::writing(&path, error))?,
                    }
                }
            }
            FileOp::Change { path, before, after } => self.take_change_back(path, before, after, version)?,
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
                let old = root.join(from);
                if self.is_parent_gone(journal, from, to) {
                    return self.displace(version.name.id, from, &root.join(to), None);
                }
                // If the batch had finished, its cleanup may have removed the old directory because it was empty.
                self.make_parents(old.parent().unwrap_or(&root), Some(to))?;
                match self.rename_into(&root.join(to), &old) {
                    // Another program has just created a file with the old name.
                    Err(DiskError::Exists { .. }) => {
                        self.resolve_recreated(version.name.id, from, to, put_text(journal, n))?;
                    }
                    other => other?,
                }
            }
            FileOp::Discard { path, .. } => {
                let path = root.join(path);
                if there(&version.path) && !there(&path) {
                    self.rename_into(&version.path, &path)?;
                }
            }
        }
        Ok(())
    }

    /// Whether another program has removed or renamed the directory to which a file would return. A recreated directory
    /// with only this file in it would look like a plan.
    fn is_parent_gone(&self, journal: &Journal, from: &Path, to: &Path) -> bool {
        let root = &self.plans.root;
        let kind = |path: &Path| self.plans.disk.lstat(&root.join(path)).map(|it| it.kind);
        let is_gone = |path: &&Path| kind(path).is_err_and(|error| is(&error, Errno::NOENT));
        let mut gone =
            from.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).take_while(is_gone).peekable();
        // Directories that the batch emptied were removed by the batch itself.
        let is_others = gone.peek().is_some() && !gone.all(|it| journal.emptied.iter().any(|dir| dir == it));
        is_others && kind(to).is_ok_and(|it| it == FileKind::File)
    }

    /// Removes a change from a file if the file still contains it.
    ///
    /// The displaced version is the evidence that the change was made. The version is renamed before the change is
    /// undone, or by the rename that undoes the change. If it were renamed afterwards, a crash in between would leave
    /// the evidence of a change that is no longer in the file.
    fn take_change_back(
        &mut self,
        real: &Path,
        before: &[u8],
        after: &[u8],
        version: Version,
    ) -> Result<(), DiskError> {
        let disk = &*self.plans.disk;
        let path = self.plans.root.join(real);
        let second = self.second_version(&version);
        let evidence = [&version, &second].into_iter().find(|it| disk.lstat(&it.path).is_ok());
        if let Some(evidence) = evidence
            && let Ok(base) = self.plans.read(real)
            && let Some(text) = without(&base.bytes, before, after)
        {
            // An editor has read planwatch's version and has saved a text that it made from that version.
            let name = VersionName { id: version.name.id + 3, ..evidence.name.clone() };
            let moved = dir(self.plans).join(name.encode());
            rename_new(disk, &evidence.path, &moved).map_err(|error| DiskError::writing(&path, error))?;
            if self.put_or_leave(version.name.id + 2, &base, &text).is_err() {
                let left = keep(&*self.plans.disk, &self.plans.root, &moved, KeptWhy::Overtaken);
                self.kept.push(left);
            }
            return Ok(());
        }
        if !self.holds(&path, after) {
            let left = evidence.map(|it| keep(disk, &self.plans.root, &it.path, KeptWhy::Overtaken));
            self.kept.extend(left);
            return Ok(());
        }
        // A file with several hard links, or on another mount, was written in place, so its displaced version is a copy.
        let linked = disk.lstat(&path).is_ok_and(|it| it.nlink > 1);
        let mounted = disk.mount(&path).ok() != disk.mount(&dir(self.plans)).ok();
        let Some(evidence) = evidence.filter(|_| !linked && !mounted) else {
            let name = VersionName { id: version.name.id + 3, ..version.name.clone() };
            rename_new(disk, &version.path, &dir(self.plans).join(name.encode())).ok();
            let base = self.plans.read(real)?;
            return self.put_or_leave(version.name.id + 2, &base, before).map(drop);
        };
        if evidence.path == second.path {
            disk.rename(&second.path, &path, Rename::Replace)
                .map_err(|error| DiskError::writing(&path, error))?;
            return self.sync_parent(&path);
        }
        let (real, text, ours) = (real.to_path_buf(), before.to_vec(), after.to_vec());
        let mut kept: Vec<Kept> = Vec::new();
        let done = self.exchange_back(&Raced { real, theirs: version, text, ours }, &mut kept);
        self.kept.append(&mut kept);
        done
    }
}

/// The text that an earlier operation of the batch wrote to the file that operation `n` renames.
fn put_text(journal: &Journal, n: usize) -> Option<Content> {
    let from = journal.ops[n].names().0;
    journal.ops[..n].iter().rev().find_map(|op| match op {
        FileOp::Change { path, after, .. } if Some(path.as_path()) == from => Some(Content::of(after)),
        _ => None,
    })
}

/// Reverts the change from `before` to `after` in a text that an editor made from `after`. `None` if the text is `after`
/// itself, if the change only removed text, or if the text neither starts with the part of `after` up to the end of the
/// change nor ends with the part from the start of the change.
fn without(text: &[u8], before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    let n_before = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let (old, new) = (&before[n_before..], &after[n_before..]);
    let n_after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    if text == after || new.len() == n_after {
        return None;
    }
    let (head, tail) = (&after[..after.len() - n_after], new);
    if let Some(rest) = text.strip_prefix(head) {
        return Some([&before[..before.len() - n_after], rest].concat());
    }
    text.strip_suffix(tail).map(|rest| [rest, old].concat())
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn a_change_is_taken_out_of_a_text_that_was_made_from_it() {
        let of = |text: &str| {
            let found = without(text.as_bytes(), b"id: 2\nB\n", b"id: 4\nB\n");
            found.map(|it| String::from_utf8(it).unwrap())
        };
        for (text, expected) in [
            ("id: 4\nB\nmore\n", Some("id: 2\nB\nmore\n")),
            ("id: 4\nC\n", Some("id: 2\nC\n")),
            ("# first\nid: 4\nB\n", Some("# first\nid: 2\nB\n")),
            ("id: 2\nB\nmore\n", None),
            ("# first\nid: 4\nB\nmore\n", None),
            ("", None),
            // The text is the changed text itself: the caller restores the whole earlier text.
            ("id: 4\nB\n", None),
        ] {
            assert_eq!(of(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(without(b"a\nc\nmore\n", b"a\nb\nc\n", b"a\nc\n"), None, "no proof of a removal");
    }
}
