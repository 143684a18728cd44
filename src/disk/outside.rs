//! Reading files outside the plans: one file, or a directory recursively.

use std::path::{Path, PathBuf};

use super::error::DiskError;
use super::file_system::FileKind;
use super::plans_dir::{FILE_LIMIT, PlansDir};
use super::reach::{Origin, Reach};

/// The limit of files in a directory.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 8;
const MAX_BYTES: usize = 256 << 20;

/// A file, with its path relative to what was named; for a single file its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideFile {
    pub relative: String,
    pub bytes: Vec<u8>,
}

/// The result of reading a file or directory.
#[derive(Debug, Default)]
pub struct OutsideFiles {
    pub files: Vec<OutsideFile>,
    /// Files and directories that could not be read, with their relative paths.
    pub unread: Vec<(String, DiskError)>,
}

impl PlansDir {
    /// The rules for paths outside the plans, for this repository.
    pub fn reach(&self, repository: &Path) -> Reach<'_> {
        Reach::of(&*self.disk, repository, self.state_home.as_deref())
    }
}

/// The state of a walk.
struct Walk<'a> {
    is_wanted: &'a dyn Fn(&str) -> bool,
    read: OutsideFiles,
    n_bytes: usize,
}

impl Reach<'_> {
    /// Reads a file, or all files of a directory whose path `is_wanted` accepts; sorted by path.
    ///
    /// A file or directory below that cannot be read, or is too large, is reported in [`OutsideFiles::unread`].
    /// Follows symbolic links to the named path, as far as its origin allows, and none inside it. Hidden directories
    /// are left out unless `is_wanted` accepts their path followed by `/`. Only the user may name a directory.
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
        let mut found = Walk { is_wanted, read: OutsideFiles::default(), n_bytes: 0 };
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
        found: &mut Walk<'_>,
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
