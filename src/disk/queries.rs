//! Simple queries of the file system: existence, names, time.

use std::path::{Path, PathBuf};

use super::error::DiskError;
use super::file_system::{Disk, FileKind, Open};
use super::fs_ops::make_dirs;
use super::names::checked;
use super::plans_dir::{FILE_LIMIT, PlansDir};

impl PlansDir {
    /// Whether a path is a directory, or a symbolic link to a directory inside the plans directory.
    pub fn is_dir(&self, relative: &Path) -> bool {
        let is_dir = |it: &Path| self.disk.lstat(&self.root.join(it)).map(|it| it.kind);
        match checked(relative).map(|()| is_dir(relative)) {
            Ok(Ok(FileKind::Symlink)) => {
                self.resolve(relative).is_ok_and(|it| is_dir(&it).is_ok_and(|it| it == FileKind::Dir))
            }
            Ok(found) => found.is_ok_and(|it| it == FileKind::Dir),
            Err(_) => false,
        }
    }

    /// Lists the names in a directory, sorted; the empty path is the plans directory itself.
    ///
    /// Names that are not UTF-8 cannot be a plan's and are left out. An unreadable directory counts as empty.
    pub fn names(&self, relative: &Path) -> Vec<String> {
        let real = if relative.as_os_str().is_empty() { Ok(PathBuf::new()) } else { self.resolve(relative) };
        let found = real.ok().and_then(|it| self.disk.names(&self.root.join(it)).ok()).unwrap_or_default();
        let mut names: Vec<_> = found.into_iter().filter_map(|it| it.into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Like [`Self::names`], but the path must not be empty. `None` if the directory does not exist, and an error if it
    /// cannot be listed.
    pub fn listed(&self, relative: &Path) -> Result<Option<Vec<String>>, DiskError> {
        let path = self.root.join(relative);
        let listed = self.resolve(relative).and_then(|it| {
            self.disk.names(&self.root.join(it)).map_err(|error| DiskError::reading(&path, error))
        });
        let names = match listed {
            Err(DiskError::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let mut names: Vec<_> = names.into_iter().filter_map(|it| it.into_string().ok()).collect();
        names.sort_unstable();
        Ok(Some(names))
    }

    /// The names in a directory that are not UTF-8, for display, sorted. An unreadable directory counts as empty.
    pub fn other_names(&self, relative: &Path) -> Vec<String> {
        let names = self.resolve(relative).ok().and_then(|it| self.disk.names(&self.root.join(it)).ok());
        let others = names.unwrap_or_default().into_iter().filter(|it| it.to_str().is_none());
        let mut others: Vec<_> = others.map(|it| it.to_string_lossy().into_owned()).collect();
        others.sort_unstable();
        others
    }

    /// The machine's clock, in nanoseconds since 1970. A file that was modified at this moment may still change without
    /// getting a new time stamp.
    pub fn now_ns(&self) -> i128 {
        self.disk.now_ns()
    }
}

/// Reads a regular file anywhere, such as a configuration file beside the plans directory.
pub fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, DiskError> {
    let unread = |error| DiskError::reading(path, error);
    let real = disk.canonical(path).map_err(unread)?;
    let file = disk.open(&real, Open::Read).map_err(unread)?;
    let stat = file.stat().map_err(unread)?;
    if stat.kind != FileKind::File {
        return Err(DiskError::NotAFile { path: path.to_path_buf(), kind: stat.kind });
    }
    if stat.len > FILE_LIMIT {
        return Err(DiskError::TooLarge { path: path.to_path_buf(), len: stat.len, limit: FILE_LIMIT });
    }
    file.read(FILE_LIMIT, stat.len).map_err(unread)
}

pub fn make_plans_dir(disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
    make_dirs(disk, path, 0o777).map_err(|error| DiskError::writing(path, error))
}
