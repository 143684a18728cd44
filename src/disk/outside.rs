//! Reading files that are no plans yet, anywhere on the disk: one file, or a directory with all below it.

use std::path::{Path, PathBuf};

use super::calls::FileKind;
use super::error::DiskError;
use super::look::read_file;
use super::plans_dir::PlansDir;

/// No store of plans holds more.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 8;

/// A file, with its path below what was named; that of a single file is its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideFile {
    pub relative: String,
    pub bytes: Vec<u8>,
}

impl PlansDir {
    /// Reads a file, or all files of a directory that `is_wanted` accepts by their path; sorted by path.
    ///
    /// Follows symbolic links to what was named, not inside of it. Hidden directories are left out unless `is_wanted`
    /// accepts their path with a `/` behind it.
    pub fn read_outside(
        &self,
        path: &Path,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<OutsideFile>, DiskError> {
        let real = self.disk.canonical(path).map_err(|error| DiskError::reading(path, error))?;
        let stat = self.disk.lstat(&real).map_err(|error| DiskError::reading(path, error))?;
        if stat.kind != FileKind::Dir {
            let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            return Ok(vec![OutsideFile { relative: name, bytes: read_file(&*self.disk, path)? }]);
        }
        let mut files = Vec::new();
        self.read_below(&real, "", 0, is_wanted, &mut files)?;
        files.sort_by(|a, b| a.relative.cmp(&b.relative));
        Ok(files)
    }

    fn read_below(
        &self,
        directory: &Path,
        relative: &str,
        depth: usize,
        is_wanted: &dyn Fn(&str) -> bool,
        files: &mut Vec<OutsideFile>,
    ) -> Result<(), DiskError> {
        let names = self.disk.list(directory).map_err(|error| DiskError::reading(directory, error))?;
        for (name, stat) in names {
            let (Some(name), Ok(stat)) = (name.to_str(), stat) else { continue };
            let inner = if relative.is_empty() { name.to_owned() } else { format!("{relative}/{name}") };
            let path: PathBuf = directory.join(name);
            match stat.kind {
                FileKind::Dir => {
                    let is_hidden = name.starts_with('.') || name == "node_modules";
                    if depth < MAX_DEPTH && (!is_hidden || is_wanted(&format!("{inner}/"))) {
                        self.read_below(&path, &inner, depth + 1, is_wanted, files)?;
                    }
                }
                FileKind::File if is_wanted(&inner) && files.len() < MAX_FILES => {
                    files.push(OutsideFile { relative: inner, bytes: read_file(&*self.disk, &path)? });
                }
                _ => {}
            }
        }
        Ok(())
    }
}
