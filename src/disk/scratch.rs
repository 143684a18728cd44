//! Creates short-lived files for a program that reads its input only from files, and replaces the file in which git
//! expects the result of a merge.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::DiskError;
use super::file_system::{Disk, Rename};
use super::fs_ops::{Safe, write_new};
use super::real::RealDisk;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Hidden files with unique names; dropping this removes them.
#[derive(Debug)]
pub struct ScratchFiles {
    pub paths: Vec<PathBuf>,
}

impl ScratchFiles {
    /// Writes one file for each of the contents into an existing directory.
    pub fn write(directory: &Path, contents: &[&[u8]]) -> io::Result<Self> {
        let mut files = Self { paths: Vec::new() };
        for bytes in contents {
            let path = fresh(directory);
            write_new(&RealDisk, &path, 0o600, bytes, Safe::No)?;
            files.paths.push(path);
        }
        Ok(files)
    }
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            RealDisk.remove(path).ok();
        }
    }
}

fn fresh(directory: &Path) -> PathBuf {
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    directory.join(format!(".planwatch-merge-{}-{nth}", std::process::id()))
}

/// Replaces a temporary file of git. No editor has such a file open.
pub fn replace_temporary(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let new = fresh(path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let put = write_new(&RealDisk, &new, 0o600, bytes, Safe::No);
    let put = put.and_then(|()| RealDisk.rename(&new, path, Rename::Replace));
    put.map_err(|error| {
        RealDisk.remove(&new).ok();
        DiskError::writing(path, error)
    })
}
