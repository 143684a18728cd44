//! Changing a file that others edit too.
//!
//! The new version and the file exchange their names at one instant, and then the version
//! that came out is looked at: had somebody saved after it was read, their text is the new
//! base, and the edit is made again on it. So no check can be too early, and no save is
//! replaced unseen. Knows nothing of what an edit means.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::calls::Rename;
use super::displaced::{Kept, KeptWhy, dir, keep};
use super::error::{ChangeError, DiskError};
use super::locked::{Done, Draft, Locked, Version, Written};
use super::moves::{is, is_missing_call, rename_new};
use super::names::{Content, Origin, VersionName};
use super::plans_dir::Snapshot;
use super::undo::Record;

/// Makes the new text of a file from the one that it holds.
pub type Edit<'a, E> = dyn FnMut(&[u8]) -> Result<Vec<u8>, E> + 'a;

/// How often an edit is made again before the editor wins.
const TRIES: usize = 3;

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
    /// When somebody saves in between, `edit` runs again on their text; after three times
    /// their text stays and the answer is [`DiskError::FileChanged`]. An edit that gives the
    /// same bytes back writes nothing. An error leaves the file as its editors saved it.
    pub fn change<E>(&mut self, relative: &Path, edit: &mut Edit<'_, E>) -> Result<Written, ChangeError<E>> {
        let mut kept = Vec::new();
        let mut raced: Option<Raced> = None;
        let mut base = self.read_for_change(relative)?;
        for n in 0..LOOKS + TRIES {
            let new = match edit(&base.bytes) {
                Ok(new) => new,
                Err(refusal) => {
                    self.withdraw(raced, &mut kept)?;
                    self.news.append(&mut kept);
                    return Err(ChangeError::Refused(refusal));
                }
            };
            if new == base.bytes {
                self.withdraw(raced, &mut kept)?;
                return Ok(unchanged(base, kept));
            }
            let id = self.fresh_id();
            let look = if n < LOOKS { Look::First } else { Look::After };
            match self.put(id, &base, &new, raced.as_ref(), look) {
                Ok(Put::Clean(draft)) => {
                    let stat = draft.file.stat().unwrap_or(base.stat);
                    let before = match raced {
                        Some(raced) => {
                            self.outlive(&raced.theirs, Content::of(&base.bytes), Content::of(&new))
                        }
                        None => draft.version,
                    };
                    self.record(Record::replaced(&base.real, &before, Content::of(&new)));
                    return Ok(Written { path: base.real, done: Done::Replaced, bytes: new, stat, kept });
                }
                Ok(Put::Raced(next, theirs)) => {
                    self.overtake(raced.replace(next), &mut kept);
                    base = theirs;
                }
                Ok(Put::Stale) | Err(DiskError::NotFound { .. }) => {
                    self.overtake(raced.take(), &mut kept);
                    base = self.read_for_change(relative)?;
                }
                Err(error) => {
                    self.withdraw(raced, &mut kept)?;
                    self.news.append(&mut kept);
                    return Err(error.into());
                }
            }
        }
        self.withdraw(raced, &mut kept)?;
        self.news.append(&mut kept);
        Err(DiskError::FileChanged { path: self.plans.root.join(relative) }.into())
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
    /// A copy of it: the inode stays in `displaced/`. Whoever read our version in between may
    /// still save from that, and would take the only copy away.
    pub(super) fn withdraw(&self, raced: Option<Raced>, kept: &mut Vec<Kept>) -> Result<(), DiskError> {
        let Some(mut raced) = raced else { return Ok(()) };
        for _ in 0..TRIES {
            let real = raced.real.clone();
            let Ok(stat) = self.plans.disk.lstat(&raced.theirs.path) else { break };
            let base = Snapshot { bytes: raced.text.clone(), stat, real };
            match self.put(self.fresh_id(), &base, &raced.text, Some(&raced), Look::After) {
                Ok(Put::Clean(_)) => {
                    let content = Content::of(&raced.text);
                    self.outlive(&raced.theirs, content, content);
                    return Ok(());
                }
                Ok(Put::Raced(next, _)) => {
                    self.overtake(Some(std::mem::replace(&mut raced, next)), kept);
                }
                // Renamed away by an editor that is about to save.
                Ok(Put::Stale) | Err(DiskError::NotFound { .. }) => break,
                Err(_) => return self.exchange_back(&raced, kept),
            }
        }
        self.overtake(Some(raced), kept);
        Ok(())
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
        let path = dir(&self.plans.root).join(name.encode());
        // If it fails the text is reported without need, never lost.
        rename_new(&*self.plans.disk, &version.path, &path).ok();
        Version { path, name }
    }

    pub(super) fn sync_parent(&self, path: &Path) -> Result<(), DiskError> {
        let parent = path.parent().unwrap_or(&self.plans.root);
        self.plans.disk.sync_dir(parent).map_err(|error| DiskError::writing(path, error))
    }
}

fn unchanged(base: Snapshot, kept: Vec<Kept>) -> Written {
    Written { path: base.real, done: Done::Nothing, bytes: base.bytes, stat: base.stat, kept }
}
