//! Reading files that are no plans yet: one file, or a directory with all below it.

use std::path::{Path, PathBuf};

use super::error::DiskError;
use super::file_system::FileKind;
use super::plans_dir::{FILE_LIMIT, PlansDir};
use super::reach::{Origin, Reach};

/// No store of plans holds more.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 8;
const MAX_BYTES: usize = 256 << 20;

/// A file, with its path below what was named; that of a single file is its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideFile {
    pub relative: String,
    pub bytes: Vec<u8>,
}

/// What was read of a file or a directory.
#[derive(Debug, Default)]
pub struct OutsideFiles {
    pub files: Vec<OutsideFile>,
    /// Files and directories inside of the directory that could not be read, with their paths below it.
    pub unread: Vec<(String, DiskError)>,
}

impl PlansDir {
    /// What paths outside of the plans may name, in this repository or from it.
    pub fn reach(&self, repository: &Path) -> Reach<'_> {
        Reach::of(&*self.disk, repository, self.state_home.as_deref())
    }
}

/// What a walk has found so far.
struct Found<'a> {
    is_wanted: &'a dyn Fn(&str) -> bool,
    read: OutsideFiles,
    n_bytes: usize,
}

impl Reach<'_> {
    /// Reads a file, or all files of a directory that `is_wanted` accepts by their path; sorted by path.
    ///
    /// A file or a directory below that cannot be read, or is too large, is one of [`OutsideFiles::unread`].
    /// Follows symbolic links to what was named, as far as its origin allows that, and none inside of it. Hidden
    /// directories are left out unless `is_wanted` accepts their path with a `/` behind it. Only the user may name a
    /// directory.
    pub fn read_all(
        &self,
        path: &Path,
        origin: Origin,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<OutsideFiles, DiskError> {
        let real = self.find(path, origin)?;
        let kind = self.disk.lstat(&real).map_err(|error| DiskError::reading(path, error))?.kind;
        if kind != FileKind::Dir || origin == Origin::Elsewhere {
            let relative = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            let file = OutsideFile { relative, bytes: self.read_found(&real, path, FILE_LIMIT)? };
            return Ok(OutsideFiles { files: vec![file], unread: Vec::new() });
        }
        let mut found = Found { is_wanted, read: OutsideFiles::default(), n_bytes: 0 };
        self.read_below(&real, "", 0, &mut found)?;
        let OutsideFiles { mut files, mut unread } = found.read;
        files.sort_by(|a, b| a.relative.cmp(&b.relative));
        unread.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(OutsideFiles { files, unread })
    }

    fn read_below(
        &self,
        directory: &Path,
        relative: &str,
        depth: usize,
        found: &mut Found<'_>,
    ) -> Result<(), DiskError> {
        let names = match self.disk.list(directory) {
            Ok(names) => names,
            Err(error) => {
                let error = DiskError::reading(directory, error);
                if depth == 0 {
                    return Err(error);
                }
                found.read.unread.push((relative.to_owned(), error));
                return Ok(());
            }
        };
        for (name, stat) in names {
            let (Some(name), Ok(stat)) = (name.to_str(), stat) else { continue };
            let inner = if relative.is_empty() { name.to_owned() } else { format!("{relative}/{name}") };
            let path: PathBuf = directory.join(name);
            match stat.kind {
                FileKind::Dir => {
                    let is_hidden = name.starts_with('.') || name == "node_modules";
                    if depth < MAX_DEPTH && (!is_hidden || (found.is_wanted)(&format!("{inner}/"))) {
                        self.read_below(&path, &inner, depth + 1, found)?;
                    }
                }
                FileKind::File if (found.is_wanted)(&inner) && found.read.files.len() < MAX_FILES => {
                    let bytes = match self.read_found(&path, &path, FILE_LIMIT) {
                        Ok(bytes) => bytes,
                        Err(error) => {
                            found.read.unread.push((inner, error));
                            continue;
                        }
                    };
                    found.n_bytes += bytes.len();
                    if found.n_bytes > MAX_BYTES {
                        let (len, limit) = (found.n_bytes as u64, MAX_BYTES as u64);
                        return Err(DiskError::TooLarge { path: directory.to_path_buf(), len, limit });
                    }
                    found.read.files.push(OutsideFile { relative: inner, bytes });
                }
                _ => {}
            }
        }
        Ok(())
    }
}
