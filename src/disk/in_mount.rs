//! Creates and removes files in a plan directory that is a mount point or is below one.
//!
//! Files cannot be renamed between such a directory and `displaced/`. A new file is therefore created under a temporary
//! name in the same directory and then renamed. A file that is to be removed is first renamed to a temporary name. It
//! cannot be moved to `displaced/` and examined later. So where the system has leases, it is removed only if no program
//! has it open for writing.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::displaced::{Kept, KeptWhy, dir, kept_name};
use super::error::DiskError;
use super::file_system::{DiskFile, FileKind, Lease, Open};
use super::fs_ops::{Safe, is, read_own, rename_new, write_new};
use super::journal::FileOp;
use super::names::{NamedPath, RUNTIME};
use super::write_lock::Locked;

/// The temporary name of a new file, in the directory of `path`.
fn draft_of(path: &Path, id: u64) -> PathBuf {
    path.with_file_name(format!("{RUNTIME}-{id:016x}.new"))
}

/// The temporary name of a file to remove, in the directory of `path`.
fn aside_of(path: &Path, id: u64) -> PathBuf {
    path.with_file_name(format!("{RUNTIME}-{id:016x}.old"))
}

/// Whether a rename failed because its two names are on different mounts.
pub(super) fn is_elsewhere(error: &std::io::Error) -> bool {
    is(error, Errno::XDEV)
}

impl Locked<'_> {
    /// Creates a file that does not exist. Syncs its content, but not its name.
    pub(super) fn create_near(
        &self,
        path: &Path,
        id: u64,
        bytes: &[u8],
    ) -> Result<Box<dyn DiskFile>, DiskError> {
        let (disk, draft) = (&*self.plans.disk, draft_of(path, id));
        let made = disk.open(&draft, Open::New(0o666)).and_then(|file| {
            file.write(bytes)?;
            file.sync()?;
            rename_new(disk, &draft, path)?;
            Ok(file)
        });
        made.map_err(|error| {
            disk.remove(&draft).ok();
            DiskError::writing(path, error)
        })
    }

    /// Removes a file if it contains exactly `bytes`; otherwise the file stays. If a lease shows that a program has it
    /// open for writing, or the file cannot be opened, the error is [`DiskError::InUse`].
    pub(super) fn remove_near(&self, path: &Path, id: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let (disk, aside) = (&*self.plans.disk, aside_of(path, id));
        let failed = |error| DiskError::writing(path, error);
        rename_new(disk, path, &aside).map_err(failed)?;
        // The lease lasts until the file is removed.
        let held = self.without_writers(&aside);
        let is_open = !matches!(held, Some((_, Lease::Taken | Lease::Unsupported)));
        if !is_open && self.holds(&aside, bytes) {
            return disk.remove(&aside).map_err(failed);
        }
        rename_new(disk, &aside, path).map_err(failed)?;
        if is_open { Err(DiskError::InUse { path: path.to_path_buf() }) } else { Ok(()) }
    }

    pub(super) fn keep_copy(&mut self, id: u64, path: &NamedPath, at: &Path) -> Result<(), DiskError> {
        let disk = &*self.plans.disk;
        let failed = |error| DiskError::writing(at, error);
        let text = read_own(disk, at, u64::MAX).map_err(failed)?;
        let text = text.ok_or_else(|| DiskError::FileChanged { path: at.to_path_buf() })?;
        let kept = dir(self.plans).join(kept_name(KeptWhy::Overtaken, id, path));
        // The copy may exist from an earlier attempt.
        if !self.holds(&kept, &text) {
            write_new(disk, &kept, 0o600, &text, Safe::Yes).map_err(failed)?;
        }
        self.remove_near(at, id, &text)?;
        if disk.lstat(at).is_ok() {
            return Err(DiskError::FileChanged { path: at.to_path_buf() });
        }
        let kept = kept.strip_prefix(&self.plans.root).unwrap_or(&kept).to_path_buf();
        self.kept.push(Kept { path: path.shown(), kept, why: KeptWhy::Overtaken });
        Ok(())
    }

    /// Removes the temporary files of a process that was killed while it created or removed a file with these bytes.
    pub(super) fn clear_near(&self, path: &Path, id: u64, bytes: &[u8]) {
        let (disk, aside) = (&*self.plans.disk, aside_of(path, id));
        disk.remove(&draft_of(path, id)).ok();
        if self.holds(&aside, bytes) {
            disk.remove(&aside).ok();
        } else {
            // If `aside` exists, another program has written into it, so it gets its old name back.
            rename_new(disk, &aside, path).ok();
        }
    }

    /// Rejects an operation that would rename a file to another mount, or would rename a mount point.
    pub(super) fn refuse_mounted(&self, op: &FileOp) -> Result<(), DiskError> {
        let (disk, root) = (&*self.plans.disk, &self.plans.root);
        let (path, to) = match op {
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
                (root.join(from), root.join(to))
            }
            FileOp::Discard { path, .. } => (root.join(path), dir(self.plans)),
            FileOp::Create { .. } | FileOp::Change { .. } => return Ok(()),
        };
        // An earlier operation of the batch may create the file.
        let Ok(kind) = disk.lstat(&path).map(|it| it.kind) else { return Ok(()) };
        let nearest = |path: &Path| path.ancestors().skip(1).find_map(|it| disk.mount(it).ok());
        let mount = nearest(&path);
        let is_mount_point = kind == FileKind::Dir && disk.mount(&path).ok() != mount;
        if is_mount_point || nearest(&to) != mount { Err(DiskError::Mounted { path, to }) } else { Ok(()) }
    }
}
