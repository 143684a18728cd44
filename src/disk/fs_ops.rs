//! Short sequences of file system calls that several modules need, with fallbacks for file systems that lack a call.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::file_system::{Disk, FileKind, Open, Rename};

/// Whether an error means that the file system lacks the call.
pub(super) fn is_missing_call(error: &io::Error) -> bool {
    // A list is used instead of a pattern, because two of these names stand for the same number on Linux.
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].iter().any(|errno| is(error, *errno))
}

pub(super) fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}

/// Renames a file or directory to a name that must not exist.
///
/// Where the file system has no such rename, a crash can leave a file with both names. Another call with the same
/// arguments then finishes the rename.
pub(super) fn rename_new(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let renamed = match disk.rename(from, to, Rename::NoReplace) {
        Err(error) if is_missing_call(&error) => rename_new_by_hand(disk, from, to),
        other => other,
    };
    match renamed {
        Err(error) if is(&error, Errno::EXIST) && is_one_file(disk, from, to) => disk.remove(from),
        other => other,
    }
}

pub(super) fn is_one_file(disk: &dyn Disk, one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (disk.lstat(one), disk.lstat(other)) else { return false };
    one.kind == FileKind::File && (one.ino, one.dev) == (other.ino, other.dev)
}

/// Renames on NFS and similar systems. Creating a link never replaces anything, so a file is linked to its new name.
/// Anything else is renamed after a check that the name is free.
fn rename_new_by_hand(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    if disk.lstat(from)?.kind == FileKind::File {
        disk.link(from, to)?;
        // If another program saved by rename under the old name in between, its file stays there.
        return if is_one_file(disk, from, to) { disk.remove(from) } else { Ok(()) };
    }
    match disk.lstat(to) {
        Ok(_) => Err(Errno::EXIST.into()),
        Err(error) if is(&error, Errno::NOENT) => disk.rename(from, to, Rename::Replace),
        Err(error) => Err(error),
    }
}

/// Creates a directory and its missing parents. Succeeds if the name exists already, even if it is not a directory.
pub(super) fn make_dirs(disk: &dyn Disk, path: &Path, mode: u32) -> io::Result<()> {
    match disk.make_dir(path, mode) {
        Err(error) if is(&error, Errno::EXIST) => Ok(()),
        Err(error) if is(&error, Errno::NOENT) => {
            let parent = path.parent().ok_or(error)?;
            make_dirs(disk, parent, mode)?;
            match disk.make_dir(path, mode) {
                Err(error) if is(&error, Errno::EXIST) => Ok(()),
                other => other,
            }
        }
        other => other,
    }
}

/// Reads a whole file without waiting for a save in progress; `None` if it is missing, not a regular file or larger
/// than `limit`.
pub(super) fn read_own(disk: &dyn Disk, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, Open::Read) {
        Err(error) if is(&error, Errno::NOENT) || is(&error, Errno::LOOP) || is(&error, Errno::NXIO) => {
            return Ok(None);
        }
        other => other?,
    };
    let stat = file.stat()?;
    if stat.kind != FileKind::File || stat.len > limit {
        return Ok(None);
    }
    Ok(Some(file.read(limit, stat.len)?))
}

/// Removes the oldest files of a directory, so that at most `most` stay.
pub(super) fn remove_oldest(disk: &dyn Disk, dir: &Path, most: usize) -> io::Result<()> {
    let files = disk.list(dir)?.into_iter().filter_map(|(name, stat)| Some((stat.ok()?, name)));
    let files = files.filter(|(it, _)| it.kind == FileKind::File);
    let mut files: Vec<_> = files.map(|(stat, name)| (stat.mtime_ns, name)).collect();
    files.sort_unstable();
    files.truncate(files.len().saturating_sub(most));
    files.into_iter().for_each(|(_, name)| drop(disk.remove(&dir.join(name))));
    Ok(())
}

/// Creates a file with these bytes; removes it again if writing fails.
pub(super) fn write_new(disk: &dyn Disk, path: &Path, mode: u32, bytes: &[u8], safe: Safe) -> io::Result<()> {
    let file = disk.open(path, Open::New(mode))?;
    let done = file.write(bytes).and_then(|()| if safe == Safe::Yes { file.sync() } else { Ok(()) });
    if done.is_err() {
        disk.remove(path).ok();
    }
    done
}

/// Whether the bytes must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Safe {
    Yes,
    No,
}
