//! Changing a file that other programs edit too.
//!
//! The new version is written to `displaced/` and exchanged atomically with the file. The displaced version is then
//! compared with the text that the edit started from. If another program saved after the file was read, its text is the
//! new base, and the edit runs again on it. No save can be lost unnoticed, because the displaced version itself is
//! compared. Where names cannot be exchanged, `fallback` changes the file; its comments say when a save can be lost.
//! This module does not interpret edits.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::displaced::{Kept, KeptWhy, dir, keep};
use super::error::DiskError;
use super::file_system::{Rename, Stat};
use super::fs_ops::{is, is_missing_call, rename_new};
use super::half_saved::Known;
use super::names::{Content, NamedPath, Origin, VersionName};
use super::plans_dir::Snapshot;
use super::undo::Record;
use super::write_lock::{Done, Draft, Locked, Version, WAIT, WAITS, Written};

/// Makes the new text of a file from its current text.
///
/// The second argument contains the results of earlier runs that were in the file before the current text was saved. An
/// editor may have read such a result, so the current text may already contain the change. The edit returns `None` if the
/// file must stay as it is.
pub type Edit<'a> = dyn FnMut(&[u8], &[Vec<u8>]) -> Option<Vec<u8>> + 'a;

/// An edit is tried at most [`LOOKS`] + `TRIES` times. After that, the other program's save stays in the file. A
/// withdrawal is tried at most `TRIES` times.
const TRIES: usize = 3;

/// After planwatch's version was withdrawn from a file, the edit runs again on at most this many later saves.
const WITHDRAWALS: usize = 8;

/// The number of attempts that use [`SaveCheck::First`]; later attempts use [`SaveCheck::After`].
const LOOKS: usize = 2;

/// When `put` checks for a save of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveCheck {
    /// Before and after the exchange. The check before the exchange is only an optimization. It finds a save that was
    /// made while the draft was written. Without the check, the file would lack that save for a moment.
    First,
    After,
}

#[derive(Debug)]
pub(super) enum Put {
    /// The draft is in the file and durable. It replaced the expected text: the text that it was made from or, after a
    /// race, our earlier version.
    Clean(Draft),
    /// The draft is in the file, but it replaced another text: an editor's save.
    Raced(Raced, Box<Snapshot>),
    /// The file had changed, and no other program has seen our version.
    Stale,
    /// The file was written in place, but another program had renamed its save over it. If the replaced inode still
    /// contained our version, the old text was put back into it. Another program may have read our version.
    Withdrawn,
}

/// A save that is in `displaced/` while planwatch's version is in the file.
#[derive(Debug)]
pub(super) struct Raced {
    pub real: PathBuf,
    pub theirs: Version,
    /// The content of `theirs` when it was displaced.
    pub text: Vec<u8>,
    pub ours: Vec<u8>,
}

impl Locked<'_> {
    /// Runs `edit` on the file's current text and replaces the file with the result.
    ///
    /// If another program saves in between, `edit` runs again on its text. That text may already contain the change,
    /// if the result of an earlier run was in the file for a moment. `edit` must recognize this and return the text
    /// unchanged. If the result is `None` or equals the text, nothing is written. After five attempts, the other
    /// program's text stays and the error is [`DiskError::FileChanged`]. If the file looks truncated by a save in
    /// progress, `edit` does not run on it and the error is [`DiskError::HalfSaved`]. After any error except
    /// [`DiskError::Uncertain`] and [`DiskError::Unfinished`], the file is as its editors saved it.
    pub fn change(&mut self, relative: &Path, edit: &mut Edit<'_>) -> Result<Written, DiskError> {
        if self.is_keyed() {
            return self.change_keyed(relative, edit);
        }
        let mut kept = Vec::new();
        let changed = self.change_until_quiet(relative, edit, &mut kept);
        match changed {
            Ok(written) => Ok(Written { kept, ..written }),
            Err(error) => {
                self.kept.append(&mut kept);
                Err(error)
            }
        }
    }

    fn change_until_quiet(
        &mut self,
        relative: &Path,
        edit: &mut Edit<'_>,
        new_kept: &mut Vec<Kept>,
    ) -> Result<Written, DiskError> {
        let mut base = self.read_for_change(relative)?;
        let mut known = Known::default();
        let mut shown: Vec<Vec<u8>> = Vec::new();
        let mut raced: Option<Raced> = None;
        let (mut puts, mut withdrawals) = (0, 0);
        loop {
            let wanted = self.wanted(&base, edit, puts, known, &shown);
            known.has_read(&base.bytes);
            let new = match wanted {
                Ok(new) => new,
                Err(settled) => {
                    let was_seen = shown.last().cloned();
                    let is_half_saved = matches!(settled, Err(DiskError::HalfSaved { .. }));
                    let is_included = matches!(settled, Ok(Done::Nothing));
                    let later = match raced.take() {
                        // The displaced inode itself is put back, because its editor has it open and is still writing.
                        Some(raced) if is_half_saved => {
                            self.exchange_back(&raced, new_kept)?;
                            None
                        }
                        Some(raced) => {
                            shown.push(raced.ours.clone());
                            self.withdraw(raced, !is_included, new_kept)?
                        }
                        None => None,
                    };
                    match later {
                        Some(later) if withdrawals < WITHDRAWALS => {
                            withdrawals += 1;
                            base = later;
                            continue;
                        }
                        _ => {}
                    }
                    return settled.map(|done| self.unchanged(base, done, was_seen));
                }
            };
            let id = self.fresh_id();
            let check = if puts < LOOKS { SaveCheck::First } else { SaveCheck::After };
            puts += 1;
            match self.put(id, &base, &new, raced.as_ref(), check) {
                Ok(Put::Clean(draft)) if self.still_leads_to(relative, &base.real) => {
                    return Ok(self.replaced(base, new, raced, draft));
                }
                Ok(Put::Clean(draft)) => {
                    let earlier = raced.take();
                    shown.extend(earlier.as_ref().map(|it| it.ours.clone()));
                    shown.push(new.clone());
                    let theirs = earlier.map_or(draft.version, |it| it.theirs);
                    let (real, text) = (base.real, base.bytes);
                    self.withdraw(Raced { real, theirs, text, ours: new }, false, new_kept)?;
                    base = self.read_for_change(relative)?;
                }
                Ok(Put::Raced(next, theirs)) => {
                    // The displaced save was made before `new` was in the file. It may contain our previous version, if
                    // any, but not `new`.
                    known.has_put(&new);
                    let earlier = raced.replace(next);
                    shown.extend(earlier.as_ref().map(|it| it.ours.clone()));
                    self.overtake(earlier, new_kept);
                    base = *theirs;
                }
                Ok(put @ (Put::Stale | Put::Withdrawn)) => {
                    shown.extend(raced.as_ref().map(|it| it.ours.clone()));
                    if matches!(put, Put::Withdrawn) {
                        shown.push(new);
                    }
                    self.overtake(raced.take(), new_kept);
                    base = self.read_for_change(relative)?;
                }
                Err(DiskError::NotFound { .. }) => {
                    shown.extend(raced.as_ref().map(|it| it.ours.clone()));
                    self.overtake(raced.take(), new_kept);
                    base = self.read_for_change(relative)?;
                }
                Err(error) => {
                    if let Some(raced) = raced {
                        self.withdraw(raced, false, new_kept)?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Whether a path still leads to the file that was read. If the path is a symbolic link, an editor that saves by
    /// renaming replaces the link instead of the file.
    pub(super) fn still_leads_to(&self, relative: &Path, real: &Path) -> bool {
        relative == real || self.plans.resolve(relative).is_ok_and(|now| now == real)
    }

    /// Runs the edit and returns the new text. Returns `Err` with the result of the change if the file stays as it is.
    pub(super) fn wanted(
        &self,
        base: &Snapshot,
        edit: &mut Edit<'_>,
        puts: usize,
        known: Known,
        shown: &[Vec<u8>],
    ) -> Result<Vec<u8>, Result<Done, DiskError>> {
        let path = || self.plans.root.join(&base.real);
        if self.is_cut_short(base, known) {
            return Err(Err(DiskError::HalfSaved { path: path() }));
        }
        match edit(&base.bytes, shown) {
            None => Err(Ok(Done::Refused)),
            Some(new) if new == base.bytes => Err(Ok(Done::Nothing)),
            Some(_) if puts == LOOKS + TRIES => Err(Err(DiskError::FileChanged { path: path() })),
            Some(new) => Ok(new),
        }
    }

    fn replaced(&self, base: Snapshot, new: Vec<u8>, raced: Option<Raced>, draft: Draft) -> Written {
        let stat = draft.file.stat().unwrap_or(base.stat);
        let before = match raced {
            Some(raced) => {
                self.record_derived_text(&raced.theirs, Content::of(&base.bytes), Content::of(&new))
            }
            None => draft.version,
        };
        self.record(Record::replaced(&base.real, &before, &new).asked_as(&base.asked));
        Written { path: base.real, done: Done::Replaced, bytes: new, stat, kept: Vec::new() }
    }

    /// Returns the result for a file that stays as it is.
    ///
    /// `was_seen` is planwatch's version, if it was in the file for a moment. An editor may have read that version and saved
    /// a text that includes the change. So if `done` is [`Done::Nothing`], the change is recorded for undo.
    pub(super) fn unchanged(&self, base: Snapshot, done: Done, was_seen: Option<Vec<u8>>) -> Written {
        if let Some(ours) = was_seen.filter(|_| done == Done::Nothing) {
            let path = NamedPath::Whole(base.real.clone());
            let (id, content) = (self.fresh_id(), Content::of(&base.bytes));
            let name = VersionName { origin: Origin::Own, id, base: content, new: Content::of(&ours), path };
            let version = Version { path: dir(self.plans).join(name.encode()), name };
            self.record(Record::replaced(&base.real, &version, &ours).asked_as(&base.asked));
        }
        Written { path: base.real, done, bytes: base.bytes, stat: base.stat, kept: Vec::new() }
    }

    /// Replaces the file with a new version, and examines the displaced version.
    ///
    /// `id` is in the name of the displaced version.
    pub(super) fn put(
        &self,
        id: u64,
        base: &Snapshot,
        new: &[u8],
        raced: Option<&Raced>,
        check: SaveCheck,
    ) -> Result<Put, DiskError> {
        let expected = raced.map_or(&base.bytes, |it| &it.ours);
        if base.stat.nlink > 1 && raced.is_none() {
            return self.write_in_place(id, base, new);
        }
        let draft = self.draft(id, &base.real, Content::of(expected), new, Some(base))?;
        let path = self.plans.root.join(&base.real);
        let stale = || self.plans.disk.lstat(&path).is_ok_and(|now| now.moved_on(&base.stat));
        if check == SaveCheck::First && raced.is_none() && stale() {
            self.plans.disk.remove(&draft.version.path).ok();
            return Ok(Put::Stale);
        }
        let exchanged = if self.plans.lacks_exchange() {
            Err(Errno::NOSYS.into())
        } else {
            self.plans.disk.rename(&draft.version.path, &path, Rename::Exchange)
        };
        match exchanged {
            Ok(()) => self.check(&path, draft, new, base, expected),
            Err(error) if is_missing_call(&error) => {
                self.plans.remember_no_exchange();
                self.check_and_rename(&path, draft, expected)
            }
            Err(error) => {
                self.plans.disk.remove(&draft.version.path).ok();
                if is(&error, Errno::XDEV) || is(&error, Errno::BUSY) {
                    // The file, or its directory, is a mount point.
                    return self.write_in_place(id, base, new);
                }
                Err(DiskError::writing(&path, error))
            }
        }
    }

    /// Makes an exchange durable and classifies the displaced version.
    fn check(
        &self,
        path: &Path,
        draft: Draft,
        new: &[u8],
        base: &Snapshot,
        expected: &[u8],
    ) -> Result<Put, DiskError> {
        let synced = self.sync_parent(path);
        let looked = synced.and_then(|()| self.read_save(&draft.version.path));
        match looked {
            Ok((bytes, _)) if bytes == expected => Ok(Put::Clean(draft)),
            Ok((bytes, stat)) => {
                let real = base.real.clone();
                let raced = Raced {
                    real: real.clone(),
                    theirs: draft.version,
                    text: bytes.clone(),
                    ours: new.to_vec(),
                };
                let asked = base.asked.clone();
                Ok(Put::Raced(raced, Box::new(Snapshot { bytes, stat, real, asked })))
            }
            Err(error) => Err(self.take_back(path, &draft, new, error)),
        }
    }

    /// Reverts an exchange whose result cannot be examined or may not be durable.
    fn take_back(&self, path: &Path, draft: &Draft, new: &[u8], error: DiskError) -> DiskError {
        let disk = &*self.plans.disk;
        if let Err(source) = disk.rename(&draft.version.path, path, Rename::Exchange) {
            let kept = keep(disk, &self.plans.root, &draft.version.path, KeptWhy::Interrupted);
            return DiskError::Uncertain { path: path.to_path_buf(), kept: kept.kept, source };
        }
        self.sync_parent(path).ok();
        // The second exchange displaced either our own version, which is no longer needed, or another program's save that
        // had replaced it. Such a save is preserved.
        if self.read_displaced(&draft.version.path).is_ok_and(|(bytes, _)| bytes == new) {
            self.release(&draft.version, Content::of(new));
        } else {
            keep(disk, &self.plans.root, &draft.version.path, KeptWhy::Overtaken);
        }
        error
    }

    /// Replaces our version in the file with the editor's save that our version displaced.
    ///
    /// A copy of the save is put into the file, and the inode of the save stays in `displaced/`. The reason: an editor may
    /// have read our version and may still save over the file. If the inode itself had the file's name again, such a save
    /// would destroy the only copy of the first save.
    ///
    /// If there is a later save, possibly made from our version, returns the file's content. If `waits` is true, waits
    /// a short time for such a save.
    pub(super) fn withdraw(
        &self,
        mut raced: Raced,
        waits: bool,
        new_kept: &mut Vec<Kept>,
    ) -> Result<Option<Snapshot>, DiskError> {
        let real = raced.real.clone();
        let mut later = None;
        for _ in 0..TRIES {
            let Ok(stat) = self.plans.disk.lstat(&raced.theirs.path) else { break };
            let (bytes, asked) = (raced.text.clone(), real.clone());
            let base = Snapshot { bytes, stat, real: real.clone(), asked };
            match self.put(self.fresh_id(), &base, &raced.text, Some(&raced), SaveCheck::After) {
                Ok(Put::Clean(draft)) => {
                    let content = Content::of(&raced.text);
                    self.record_derived_text(&raced.theirs, content, content);
                    let stat = draft.file.stat().unwrap_or(base.stat);
                    let is_waited_for = waits && later.is_none();
                    return Ok(if is_waited_for { self.next_save(&real, &stat) } else { later });
                }
                Ok(Put::Raced(next, theirs)) => {
                    self.overtake(Some(std::mem::replace(&mut raced, next)), new_kept);
                    later = Some(*theirs);
                }
                // Another program has saved the file, or has renamed it away and is about to save.
                Ok(Put::Stale | Put::Withdrawn) | Err(DiskError::NotFound { .. }) => break,
                Err(_) => return self.exchange_back(&raced, new_kept).map(|()| None),
            }
        }
        self.overtake(Some(raced), new_kept);
        Ok(self.read_for_change(&real).ok())
    }

    /// Waits for a save over the version with the stat `placed`. The time, [`WAITS`] times [`WAIT`], is about what an
    /// editor that has already read the file needs to save it.
    fn next_save(&self, real: &Path, placed: &Stat) -> Option<Snapshot> {
        let path = self.plans.root.join(real);
        for _ in 0..WAITS {
            if self.plans.disk.lstat(&path).is_ok_and(|now| now.moved_on(placed)) {
                return self.read_for_change(real).ok();
            }
            self.plans.disk.pause(WAIT);
        }
        None
    }

    /// Exchanges a displaced version back into the file, in place of our version.
    pub(super) fn exchange_back(&self, raced: &Raced, new_kept: &mut Vec<Kept>) -> Result<(), DiskError> {
        let disk = &*self.plans.disk;
        let path = self.plans.root.join(&raced.real);
        if let Err(source) = disk.rename(&raced.theirs.path, &path, Rename::Exchange) {
            let kept = keep(disk, &self.plans.root, &raced.theirs.path, KeptWhy::Overtaken).kept;
            return Err(DiskError::Uncertain { path, kept, source });
        }
        // An error is ignored. After a power cut, our version may then be in the file again. In that case the other
        // program's version is in `displaced/`, and it is reported.
        self.sync_parent(&path).ok();
        if self.read_displaced(&raced.theirs.path).is_ok_and(|(out, _)| out == raced.ours) {
            self.release(&raced.theirs, Content::of(&raced.ours));
        } else {
            new_kept.push(keep(disk, &self.plans.root, &raced.theirs.path, KeptWhy::Overtaken));
        }
        Ok(())
    }

    /// Preserves a displaced save, because a later save replaced it.
    fn overtake(&self, raced: Option<Raced>, new_kept: &mut Vec<Kept>) {
        if let Some(raced) = raced {
            new_kept.push(keep(&*self.plans.disk, &self.plans.root, &raced.theirs.path, KeptWhy::Overtaken));
        }
    }

    /// Renames a version so that it is marked as planwatch's own text and is not reported.
    fn release(&self, version: &Version, content: Content) {
        let name = VersionName { origin: Origin::Own, base: content, new: content, ..version.name.clone() };
        self.rename_version(version, name);
    }

    /// Renames a displaced save: the new name contains the hash of the text that planwatch made from the save. If another
    /// program then replaces planwatch's text, the save is reported.
    fn record_derived_text(&self, save: &Version, base: Content, new: Content) -> Version {
        self.rename_version(save, VersionName { origin: Origin::Race, base, new, ..save.name.clone() })
    }

    fn rename_version(&self, version: &Version, name: VersionName) -> Version {
        let path = dir(self.plans).join(name.encode());
        // If the rename fails, the text may be reported unnecessarily, but it is not lost.
        rename_new(&*self.plans.disk, &version.path, &path).ok();
        Version { path, name }
    }

    pub(super) fn sync_parent(&self, path: &Path) -> Result<(), DiskError> {
        let parent = path.parent().unwrap_or(&self.plans.root);
        self.plans.disk.sync_dir(parent).map_err(|error| DiskError::writing(path, error))
    }
}
