//! Changing a file where names cannot be exchanged.
//!
//! Where the system call that exchanges names is missing (NFS, FUSE), the file is checked a last time and the new
//! version is renamed over it. If the file has several hard links or is a mount point, its text is first copied to
//! `displaced/`. Then the new text is written into the same inode, under a lease if possible.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use super::change::Put;
use super::displaced::{KeptWhy, dir, kept_name};
use super::error::DiskError;
use super::file_system::{Against, Disk, DiskFile, Lease, Open, Rename};
use super::fs_ops::{Safe, is, rename_new, write_new};
use super::names::{Content, NamedPath, Origin, VersionName};
use super::plans_dir::{FILE_LIMIT, Snapshot};
use super::write_lock::{Draft, Locked, Version};

/// The interval between two checks whether another program still has a file open, and the maximum number of waits.
const OPEN_WAIT: Duration = Duration::from_millis(5);
const OPEN_WAITS: usize = 20;

/// An open file, and whether there is a lease on it.
type Leased = (Box<dyn DiskFile>, Lease);

impl Locked<'_> {
    /// Renames a draft over the file if the file still holds the expected text.
    ///
    /// The old inode gets a second name first, so that late writes into it are found. If another program saves by
    /// rename between the check and our rename, its save is lost. `lacks_exchange` reports that this is possible.
    pub(super) fn check_and_rename(
        &self,
        path: &Path,
        draft: Draft,
        expected: &[u8],
    ) -> Result<Put, DiskError> {
        let disk = &*self.plans.disk;
        let Version { path: old, name } = self.second_version(&draft.version);
        let same = self.second_name(path, &old, expected).and_then(|()| self.read_displaced(path));
        let outcome = match same {
            Ok((bytes, _)) if bytes == expected => self.replace(path, &draft, &old),
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(true) => Ok(Put::Clean(Draft { version: Version { path: old, name }, file: draft.file })),
            unplaced => {
                // The second name is removed before the draft. After a crash, a second name without a draft would
                // mean that the file was replaced.
                disk.remove(&old).ok();
                disk.remove(&draft.version.path).ok();
                unplaced.map(|_| Put::Stale)
            }
        }
    }

    /// Returns the second name that the old inode gets where names cannot be exchanged. Its id is that of `version`
    /// plus 1.
    pub(super) fn second_version(&self, version: &Version) -> Version {
        let name = VersionName { id: version.name.id + 1, ..version.name.clone() };
        Version { path: dir(self.plans).join(name.encode()), name }
    }

    fn second_name(&self, path: &Path, old: &Path, expected: &[u8]) -> Result<(), DiskError> {
        let disk = &*self.plans.disk;
        let linked = disk.link(path, old).or_else(|error| {
            if is(&error, Errno::NOENT) {
                return Err(error);
            }
            // Some file systems, such as exFAT, have no hard links. There a copy is made instead of a second name.
            write_new(disk, old, 0o600, expected, Safe::No)
        });
        linked.map_err(|error| DiskError::writing(path, error))
    }

    fn replace(&self, path: &Path, draft: &Draft, old: &Path) -> Result<bool, DiskError> {
        let disk = &*self.plans.disk;
        let failed = |error| DiskError::writing(path, error);
        disk.rename(&draft.version.path, path, Rename::Replace).map_err(failed)?;
        let Err(error) = self.sync_parent(path) else { return Ok(true) };
        match disk.rename(old, path, Rename::Replace) {
            Ok(()) => Err(error),
            Err(source) => {
                Err(DiskError::Uncertain { path: path.to_path_buf(), kept: old.to_path_buf(), source })
            }
        }
    }

    /// Writes into the existing inode, so that the file's other hard links or its mount remain valid.
    ///
    /// Not atomic: after a crash the file may contain a mixture of both texts. The earlier text is then preserved and
    /// reported as [`KeptWhy::Interrupted`]. From the last check until our text is on disk, a lease delays other
    /// programs that open the inode. If the system has no leases or the file belongs to another user, a save in place in
    /// that time can be lost.
    pub(super) fn write_in_place(&self, id: u64, base: &Snapshot, new: &[u8]) -> Result<Put, DiskError> {
        let disk = &*self.plans.disk;
        let path = self.plans.root.join(&base.real);
        let failed = |error| DiskError::writing(&path, error);
        let name = VersionName {
            origin: Origin::Clean,
            id,
            base: Content::of(&base.bytes),
            new: Content::of(new),
            path: NamedPath::Whole(base.real.clone()),
        };
        let displaced = dir(self.plans);
        let copy_name = kept_name(KeptWhy::Interrupted, name.id, &name.path);
        let copy = displaced.join(copy_name);
        write_new(disk, &copy, 0o600, &base.bytes, Safe::Yes).map_err(failed)?;
        let ready = disk.sync_dir(&displaced).map_err(failed);
        let (file, lease) = match ready.and_then(|()| self.open_unchanged(&path, base)) {
            Ok(Some(opened)) => opened,
            other => {
                disk.remove(&copy).ok();
                return other.map(|_| Put::Stale);
            }
        };
        let uncertain = |source| {
            let kept = copy.strip_prefix(&self.plans.root).unwrap_or(&copy).to_path_buf();
            DiskError::Uncertain { path: path.clone(), kept, source }
        };
        match overwrite(&*file, new) {
            Ok(()) if !is_at(disk, &path, &*file) => {
                // Another program renamed its save over the file, so our text is rejected. It must not stay in the
                // inode, because the inode may have other names.
                let is_ours = file.read(FILE_LIMIT + 1, new.len() as u64).is_ok_and(|it| it == new);
                match if is_ours { put_back(&*file, &base.bytes) } else { Ok(()) } {
                    Ok(()) => {
                        disk.remove(&copy).ok();
                        // While there was a lease on the inode, no other program could open it and read our text.
                        Ok(if lease == Lease::Taken { Put::Stale } else { Put::Withdrawn })
                    }
                    Err(source) => Err(uncertain(source)),
                }
            }
            Ok(()) => {
                let old = displaced.join(name.encode());
                file.release();
                // If the rename fails, the copy is reported as interrupted although nothing was lost.
                rename_new(disk, &copy, &old).ok();
                Ok(Put::Clean(Draft { version: Version { path: old, name }, file }))
            }
            Err(source) if put_back(&*file, &base.bytes).is_ok() => {
                disk.remove(&copy).ok();
                Err(failed(source))
            }
            Err(source) => Err(uncertain(source)),
        }
    }

    /// Opens the file, and takes a lease on it if the system has leases. `None` if the content differs from `base`.
    fn open_unchanged(&self, path: &Path, base: &Snapshot) -> Result<Option<Leased>, DiskError> {
        let disk = &*self.plans.disk;
        let failed = |error| DiskError::writing(path, error);
        let file = disk.open(path, Open::InPlace).map_err(failed)?;
        let mut waits = 0;
        let lease = loop {
            match file.lease(Against::Everyone) {
                Lease::Busy => {}
                other => break other,
            }
            if waits == OPEN_WAITS {
                return Err(DiskError::InUse { path: path.to_path_buf() });
            }
            waits += 1;
            disk.pause(OPEN_WAIT);
        };
        let bytes = file.read(FILE_LIMIT + 1, base.stat.len).map_err(failed)?;
        Ok((bytes == base.bytes).then_some((file, lease)))
    }
}

fn is_at(disk: &dyn Disk, path: &Path, file: &dyn DiskFile) -> bool {
    let (Ok(there), Ok(open)) = (disk.lstat(path), file.stat()) else { return false };
    (there.ino, there.dev) == (open.ino, open.dev)
}

/// Restores the earlier text of an inode. Does nothing if the inode no longer has a name.
fn put_back(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    if file.stat().is_ok_and(|it| it.nlink == 0) { Ok(()) } else { overwrite(file, bytes) }
}

fn overwrite(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    file.write(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync()
}
