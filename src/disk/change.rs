//! Changing a file that others edit too.
//!
//! The new version and the file exchange their names at one instant, and then the version
//! that came out is looked at: had somebody saved after it was read, their text is the new
//! base, and the edit is made again on it. So no check can be too early, and no save is
//! replaced unseen. Knows nothing of what an edit means.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::displaced::{Kept, KeptWhy, dir, keep};
use super::error::{ChangeError, DiskError};
use super::file_system::{Rename, Stat};
use super::fs_ops::{is, is_missing_call, rename_new};
use super::half_saved::Known;
use super::names::{Content, NamedPath, Origin, VersionName};
use super::plans_dir::Snapshot;
use super::undo::Record;
use super::write_lock::{Done, Draft, Locked, Version, WAIT, WAITS, Written};

/// Makes the new text of a file from the one that it holds.
pub type Edit<'a, E> = dyn FnMut(&[u8]) -> Result<Vec<u8>, E> + 'a;

/// How often an edit is made again before the editor wins.
const TRIES: usize = 3;

/// How often a save that is found when planwatch's version is taken out of the file is looked at.
const WITHDRAWALS: usize = 8;

/// How often the edit is made again just because a last look, before the exchange, says so.
const LOOKS: usize = 2;

/// When a put looks whether somebody saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Already before the exchange: writing the draft safely takes a while, and a save in that
    /// time is better found before the file shows a version without it. Only a hint.
    First,
    After,
}

/// What putting a draft in place came to.
#[derive(Debug)]
pub(super) enum Put {
    /// The draft is in the file and on disk, and replaced what it was made from.
    Clean(Draft),
    /// It is in the file, but replaced another text: an editor's save.
    Raced(Raced, Snapshot),
    /// The file was seen to have changed before anything was touched.
    Stale,
}

/// A save that lies in `displaced/` while our own version is in the file.
#[derive(Debug)]
pub(super) struct Raced {
    pub real: PathBuf,
    pub theirs: Version,
    /// What `theirs` held when it came out.
    pub text: Vec<u8>,
    pub ours: Vec<u8>,
}

impl Locked<'_> {
    /// Runs `edit` on the file as it is and replaces it with the outcome.
    ///
    /// When another program saves in between, `edit` runs again on its text, which may already hold the outcome of an
    /// earlier run: the editor may have read planwatch's version. `edit` has to recognise that, and give the same
    /// bytes back. An edit that gives the same bytes back writes nothing. After three times the other text stays and the
    /// answer is [`DiskError::FileChanged`]. An error leaves the file as its editors saved it. A file that looks cut short
    /// by a save under way is [`DiskError::HalfSaved`], and `edit` does not run on it.
    pub fn change<E>(&mut self, relative: &Path, edit: &mut Edit<'_, E>) -> Result<Written, ChangeError<E>> {
        if self.is_keyed() {
            return self.change_keyed(relative, edit);
        }
        let mut kept = Vec::new();
        let changed = self.change_until_quiet(relative, edit, &mut kept);
        match changed {
            Ok(written) => Ok(Written { kept, ..written }),
            Err(error) => {
                self.news.append(&mut kept);
                Err(error)
            }
        }
    }

    fn change_until_quiet<E>(
        &mut self,
        relative: &Path,
        edit: &mut Edit<'_, E>,
        kept: &mut Vec<Kept>,
    ) -> Result<Written, ChangeError<E>> {
        let mut base = self.read_for_change(relative)?;
        let mut known = Known::default();
        let mut raced: Option<Raced> = None;
        let (mut puts, mut withdrawals) = (0, 0);
        loop {
            let wanted = self.wanted(&base, edit, puts, known);
            known.has_read(&base.bytes);
            let new = match wanted {
                Ok(Some(new)) => new,
                settled => {
                    let was_seen = raced.as_ref().map(|it| it.ours.clone());
                    let is_half_saved =
                        matches!(settled, Err(ChangeError::Disk(DiskError::HalfSaved { .. })));
                    let later = match raced.take() {
                        // The inode itself goes back: its editor has it open and goes on writing into it.
                        Some(raced) if is_half_saved => {
                            self.exchange_back(&raced, kept)?;
                            None
                        }
                        Some(raced) => self.withdraw(raced, settled.is_err(), kept)?,
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
                    return settled.map(|_| self.unchanged(base, was_seen));
                }
            };
            let id = self.fresh_id();
            let look = if puts < LOOKS { Look::First } else { Look::After };
            puts += 1;
            match self.put(id, &base, &new, raced.as_ref(), look) {
                Ok(Put::Clean(draft)) if self.still_leads_to(relative, &base.real) => {
                    return Ok(self.replaced(base, new, raced, draft));
                }
                Ok(Put::Clean(draft)) => {
                    let theirs = raced.take().map_or(draft.version, |it| it.theirs);
                    let (real, text) = (base.real, base.bytes);
                    self.withdraw(Raced { real, theirs, text, ours: new }, false, kept)?;
                    base = self.read_for_change(relative)?;
                }
                Ok(Put::Raced(next, theirs)) => {
                    known.has_put(&new);
                    self.overtake(raced.replace(next), kept);
                    base = theirs;
                }
                Ok(Put::Stale) | Err(DiskError::NotFound { .. }) => {
                    self.overtake(raced.take(), kept);
                    base = self.read_for_change(relative)?;
                }
                Err(error) => {
                    if let Some(raced) = raced {
                        self.withdraw(raced, false, kept)?;
                    }
                    return Err(error.into());
                }
            }
        }
    }

    /// Whether a path still names the file that it named when it was read. An editor that saves by renaming replaces a
    /// symbolic link, so the file behind the link is no longer the one that the path names.
    pub(super) fn still_leads_to(&self, relative: &Path, real: &Path) -> bool {
        relative == real || self.plans.resolve(relative).is_ok_and(|now| now == real)
    }

    /// The text that the file should hold; `None` if it is the one that it holds.
    pub(super) fn wanted<E>(
        &self,
        base: &Snapshot,
        edit: &mut Edit<'_, E>,
        puts: usize,
        known: Known,
    ) -> Result<Option<Vec<u8>>, ChangeError<E>> {
        let path = || self.plans.root.join(&base.real);
        if self.is_cut_short(base, known) {
            return Err(DiskError::HalfSaved { path: path() }.into());
        }
        let new = edit(&base.bytes).map_err(ChangeError::Refused)?;
        match new == base.bytes {
            true => Ok(None),
            false if puts == LOOKS + TRIES => Err(DiskError::FileChanged { path: path() }.into()),
            false => Ok(Some(new)),
        }
    }

    fn replaced(&self, base: Snapshot, new: Vec<u8>, raced: Option<Raced>, draft: Draft) -> Written {
        let stat = draft.file.stat().unwrap_or(base.stat);
        let before = match raced {
            Some(raced) => self.outlive(&raced.theirs, Content::of(&base.bytes), Content::of(&new)),
            None => draft.version,
        };
        self.record(Record::replaced(&base.real, &before, &new));
        Written { path: base.real, done: Done::Replaced, bytes: new, stat, kept: Vec::new() }
    }

    /// `was_seen` is planwatch's version, if the file held it for a moment: what an editor saved over it may hold the
    /// change, and undo has to know that there was one.
    pub(super) fn unchanged(&self, base: Snapshot, was_seen: Option<Vec<u8>>) -> Written {
        if let Some(ours) = was_seen {
            let path = NamedPath::Whole(base.real.clone());
            let (id, content) = (self.fresh_id(), Content::of(&base.bytes));
            let name = VersionName { origin: Origin::Own, id, base: content, new: Content::of(&ours), path };
            let version = Version { path: dir(self.plans).join(name.encode()), name };
            self.record(Record::replaced(&base.real, &version, &ours));
        }
        Written { path: base.real, done: Done::Nothing, bytes: base.bytes, stat: base.stat, kept: Vec::new() }
    }

    /// Puts a new version in place of the file, and looks at what came out.
    ///
    /// `id` names the version that comes out.
    pub(super) fn put(
        &self,
        id: u64,
        base: &Snapshot,
        new: &[u8],
        raced: Option<&Raced>,
        look: Look,
    ) -> Result<Put, DiskError> {
        let expected = raced.map_or(&base.bytes, |it| &it.ours);
        if base.stat.nlink > 1 && raced.is_none() {
            return self.write_in_place(id, base, new);
        }
        let draft = self.draft(id, &base.real, Content::of(expected), new, Some(base))?;
        let path = self.plans.root.join(&base.real);
        let stale = || self.plans.disk.lstat(&path).is_ok_and(|now| now.moved_on(&base.stat));
        if look == Look::First && raced.is_none() && stale() {
            self.plans.disk.remove(&draft.version.path).ok();
            return Ok(Put::Stale);
        }
        let exchanged = if self.plans.lacks_exchange() {
            Err(Errno::NOSYS.into())
        } else {
            self.plans.disk.rename(&draft.version.path, &path, Rename::Exchange)
        };
        match exchanged {
            Ok(()) => self.look(&path, draft, new, base, expected),
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

    /// Makes an exchange durable and judges what it brought out.
    fn look(
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
                Ok(Put::Raced(raced, Snapshot { bytes, stat, real }))
            }
            Err(error) => Err(self.take_back(path, &draft, new, error)),
        }
    }

    /// Undoes an exchange whose outcome cannot be judged or may not be durable.
    fn take_back(&self, path: &Path, draft: &Draft, new: &[u8], error: DiskError) -> DiskError {
        let disk = &*self.plans.disk;
        if let Err(source) = disk.rename(&draft.version.path, path, Rename::Exchange) {
            let kept = keep(disk, &self.plans.root, &draft.version.path, KeptWhy::Interrupted);
            return DiskError::Uncertain { path: path.to_path_buf(), kept: kept.kept, source };
        }
        self.sync_parent(path).ok();
        // When somebody saved on top of ours meanwhile, that save came out; the next sweep
        // finds it by its content. Our own version is of no use to anybody.
        if self.read_displaced(&draft.version.path).is_ok_and(|(bytes, _)| bytes == new) {
            self.release(&draft.version, Content::of(new));
        } else {
            keep(disk, &self.plans.root, &draft.version.path, KeptWhy::Overtaken);
        }
        error
    }

    /// Puts the text of an editor's latest save back into the file in place of our version.
    ///
    /// A copy of it: the inode stays in `displaced/`. An editor that read our version in between may
    /// still save from that, and would take the only copy away. Returns what the file holds then, if it is another
    /// text: a later save, which may be made from our version. With `waits` such a save is waited for.
    pub(super) fn withdraw(
        &self,
        mut raced: Raced,
        waits: bool,
        kept: &mut Vec<Kept>,
    ) -> Result<Option<Snapshot>, DiskError> {
        let real = raced.real.clone();
        let mut later = None;
        for _ in 0..TRIES {
            let Ok(stat) = self.plans.disk.lstat(&raced.theirs.path) else { break };
            let base = Snapshot { bytes: raced.text.clone(), stat, real: real.clone() };
            match self.put(self.fresh_id(), &base, &raced.text, Some(&raced), Look::After) {
                Ok(Put::Clean(draft)) => {
                    let content = Content::of(&raced.text);
                    self.outlive(&raced.theirs, content, content);
                    let stat = draft.file.stat().unwrap_or(base.stat);
                    let is_waited_for = waits && later.is_none();
                    return Ok(if is_waited_for { self.next_save(&real, &stat) } else { later });
                }
                Ok(Put::Raced(next, theirs)) => {
                    self.overtake(Some(std::mem::replace(&mut raced, next)), kept);
                    later = Some(theirs);
                }
                // Renamed away by an editor that is about to save.
                Ok(Put::Stale) | Err(DiskError::NotFound { .. }) => break,
                Err(_) => return self.exchange_back(&raced, kept).map(|()| None),
            }
        }
        self.overtake(Some(raced), kept);
        Ok(self.read_for_change(&real).ok())
    }

    /// Waits for a save over the version with this stat, for as long as an editor takes that has read the file already.
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

    /// Lets a displaced version and our own change places again.
    pub(super) fn exchange_back(&self, raced: &Raced, kept: &mut Vec<Kept>) -> Result<(), DiskError> {
        let disk = &*self.plans.disk;
        let path = self.plans.root.join(&raced.real);
        if let Err(source) = disk.rename(&raced.theirs.path, &path, Rename::Exchange) {
            let kept = keep(disk, &self.plans.root, &raced.theirs.path, KeptWhy::Overtaken).kept;
            return Err(DiskError::Uncertain { path, kept, source });
        }
        // If this fails, a power cut brings our version back and theirs is reported.
        self.sync_parent(&path).ok();
        if self.read_displaced(&raced.theirs.path).is_ok_and(|(out, _)| out == raced.ours) {
            self.release(&raced.theirs, Content::of(&raced.ours));
        } else {
            kept.push(keep(disk, &self.plans.root, &raced.theirs.path, KeptWhy::Overtaken));
        }
        Ok(())
    }

    /// Keeps a save that another save has overtaken.
    fn overtake(&self, raced: Option<Raced>, kept: &mut Vec<Kept>) {
        if let Some(raced) = raced {
            kept.push(keep(&*self.plans.disk, &self.plans.root, &raced.theirs.path, KeptWhy::Overtaken));
        }
    }

    /// Says in the name of a version that it is planwatch's own text and needs no report.
    fn release(&self, version: &Version, content: Content) {
        let name = VersionName { origin: Origin::Own, base: content, new: content, ..version.name.clone() };
        self.rename_version(version, name);
    }

    /// Says in the name of a save which text was made from it, so that it can be reported
    /// when a third text takes that one's place.
    fn outlive(&self, save: &Version, base: Content, new: Content) -> Version {
        self.rename_version(save, VersionName { origin: Origin::Race, base, new, ..save.name.clone() })
    }

    fn rename_version(&self, version: &Version, name: VersionName) -> Version {
        let path = dir(self.plans).join(name.encode());
        // If it fails the text is reported without need, never lost.
        rename_new(&*self.plans.disk, &version.path, &path).ok();
        Version { path, name }
    }

    pub(super) fn sync_parent(&self, path: &Path) -> Result<(), DiskError> {
        let parent = path.parent().unwrap_or(&self.plans.root);
        self.plans.disk.sync_dir(parent).map_err(|error| DiskError::writing(path, error))
    }
}
