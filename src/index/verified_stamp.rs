//! Records the stamps that the full-text index's file had when it was last verified as a whole.
//!
//! Reading the whole file takes a hundred times as long as a search, so it is read again only if its stamps have changed.
//! If a file was modified just now, the next write may leave the modification time as it is (see freshness.rs). So the
//! modification time is set back before it is recorded; then any write changes it.
//!
//! The record ends with a hash of itself. Without a valid record, the whole file is read.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::index::error::IndexError;
use crate::index::file::{IndexFile, open_own};

/// How far back the time is set, in seconds: more than the resolution of the coarsest time stamps, those of FAT.
const BACK: i64 = 10;

/// Returns whether the file's stamps are the recorded ones. The caller has an open transaction, which excludes other
/// writers.
pub(super) fn is_recorded(file: &IndexFile) -> bool {
    let Some(stamps) = stamps(&file.path()) else { return false };
    recorded(file).is_some_and(|it| it == stamps)
}

/// Records that the file is intact. The caller has an open transaction, which excludes other writers.
///
/// If this fails, the whole file is read again the next time.
pub(super) fn record(file: &IndexFile) {
    let path = file.path();
    if set_back(&path).is_none() {
        return;
    }
    let Some(stamps) = stamps(&path) else { return };
    write(file, &stamps).ok();
}

/// Forces a full read the next time.
pub(super) fn forget(file: &IndexFile) {
    write(file, &[]).ok();
}

fn write(file: &IndexFile, stamps: &[u8]) -> Result<(), IndexError> {
    let unwritable = |source| IndexError::unwritable(file.dir(), source);
    let mut bytes = stamps.to_vec();
    bytes.extend(blake3::hash(stamps).as_bytes());
    // Two processes that write at once may leave an invalid record, which is not used.
    let made = open_own(OpenOptions::new().write(true).truncate(true), &file.named(END));
    made.and_then(|mut it| it.write_all(&bytes)).map_err(unwritable)
}

const END: &str = ".proved";

fn recorded(file: &IndexFile) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(file.named(END)).ok()?.take(1024).read_to_end(&mut bytes).ok()?;
    let (stamps, hash) = bytes.split_at_checked(bytes.len().checked_sub(blake3::OUT_LEN)?)?;
    (blake3::hash(stamps).as_bytes() == hash).then(|| stamps.to_vec())
}

/// A file's stamps as bytes; `None` if there is no file.
pub(super) fn stamps(path: &Path) -> Option<Vec<u8>> {
    let it = std::fs::symlink_metadata(path).ok()?;
    let times = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
    let others = [it.len(), it.ino(), it.dev()];
    let times = times.into_iter().flat_map(i64::to_le_bytes);
    Some(times.chain(others.into_iter().flat_map(u64::to_le_bytes)).collect())
}

/// Sets the modification time by name: opening and closing the file would release SQLite's locks on it.
fn set_back(path: &Path) -> Option<()> {
    let it = std::fs::symlink_metadata(path).ok()?;
    let at = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: at(0, UTIME_OMIT),
        last_modification: at(it.mtime().checked_sub(BACK)?, it.mtime_nsec()),
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).ok()
}
