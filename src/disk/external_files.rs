//! Reading files outside the plans: one file, or a directory recursively.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use walkdir::{DirEntry, WalkDir};

use super::error::DiskError;
use super::file_system::FileKind;
use super::plans_dir::{FILE_LIMIT, PlansDir};
use super::reach::{Origin, Reach};

const MAX_DEPTH: usize = 8;
const MAX_BYTES: usize = 256 << 20;

/// A file that was read. `relative` is its path relative to the named directory, or its name if the file itself was
/// named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideFile {
    pub relative: String,
    pub bytes: Vec<u8>,
}

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

impl Reach<'_> {
    /// Reads a file, or the files below a directory, sorted by path. Below a directory, only the files whose path
    /// `is_wanted` accepts are read. `path` may name a directory only if the user typed it.
    ///
    /// A file below the named directory that cannot be read or is too large is reported in [`OutsideFiles::unread`], and so
    /// is a directory that cannot be listed. Symbolic links in `path` are followed as far as `origin` allows. Links below
    /// the named directory are not followed. Hidden directories and `node_modules` are left out, except if `is_wanted`
    /// accepts their path followed by `/`. Files below more than `MAX_DEPTH` directories are left out, too.
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
        let mut found = OutsideFiles::default();
        let mut n_bytes = 0;
        let is_entered =
            |it: &DirEntry| it.depth() == 0 || !it.file_type().is_dir() || is_entered(it, &real, is_wanted);
        let walk = WalkDir::new(&real).min_depth(1).max_depth(MAX_DEPTH + 1).sort_by_file_name();
        for entry in walk.into_iter().filter_entry(is_entered) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    found.unlisted(&real, error)?;
                    continue;
                }
            };
            let Some(relative) = relative(entry.path(), &real) else { continue };
            if !entry.file_type().is_file() || !is_wanted(&relative) {
                continue;
            }
            // Links are not followed here, because a directory may have been replaced by a link since it was listed.
            match self.read_found(entry.path(), entry.path(), FILE_LIMIT) {
                Err(error) => found.unread.push((relative, error)),
                Ok(bytes) => {
                    n_bytes += bytes.len();
                    if n_bytes > MAX_BYTES {
                        let (len, limit) = (n_bytes as u64, MAX_BYTES as u64);
                        let path = entry.path().parent().unwrap_or(&real).to_path_buf();
                        return Err(DiskError::TooLarge { path, len, limit });
                    }
                    found.files.push(OutsideFile { relative, bytes });
                }
            }
        }
        found.files.sort_unstable_by(|a, b| a.relative.cmp(&b.relative));
        found.unread.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }
}

impl OutsideFiles {
    /// Records a directory that could not be listed. If it is the named directory itself, returns the error.
    fn unlisted(&mut self, root: &Path, error: walkdir::Error) -> Result<(), DiskError> {
        let path = error.path().unwrap_or(root).to_path_buf();
        // Only the error of a loop of symbolic links contains no I/O error, and no links are followed here.
        let Some(cause) = error.into_io_error() else { return Ok(()) };
        let error = DiskError::reading(&path, cause);
        if path == root {
            return Err(error);
        }
        self.unread.extend(relative(&path, root).map(|it| (it, error)));
        Ok(())
    }
}

fn is_entered(directory: &DirEntry, root: &Path, is_wanted: &dyn Fn(&str) -> bool) -> bool {
    let Some(relative) = relative(directory.path(), root) else { return false };
    let name = directory.file_name().as_bytes();
    (!name.starts_with(b".") && name != b"node_modules") || is_wanted(&format!("{relative}/"))
}

/// The path below `root`; `None` if it is not UTF-8.
fn relative(path: &Path, root: &Path) -> Option<String> {
    path.strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files as people do")]

    use std::fs;

    use super::*;
    use crate::disk::RealDisk;

    fn read(top: &Path, is_wanted: &dyn Fn(&str) -> bool) -> (Vec<String>, Vec<(String, &'static str)>) {
        let found = Reach::of(&RealDisk, top, None).read_all(top, Origin::User, is_wanted).unwrap();
        let unread = found.unread.into_iter().map(|it| (it.0, it.1.code()));
        (found.files.into_iter().map(|it| it.relative).collect(), unread.collect())
    }

    #[test]
    fn a_directory_is_read_in_order_down_to_a_depth_and_without_links_and_hidden_directories() {
        let top = tempfile::tempdir().unwrap();
        let deep = format!("{}a.md", "d/".repeat(MAX_DEPTH));
        let deeper = format!("{}a.md", "d/".repeat(MAX_DEPTH + 1));
        let more = ["z.md", "b/a.md", "b.md", ".git/a.md", ".beads/a.md", "node_modules/a.md", "b/c.txt"];
        for path in [deep.as_str(), deeper.as_str()].into_iter().chain(more) {
            let path = top.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("a.md"), "text").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), top.path().join("linked")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("a.md"), top.path().join("linked.md")).unwrap();
        let is_wanted = |it: &str| it.ends_with(".md") || it == ".beads/";
        let expected = [".beads/a.md", "b.md", "b/a.md", &deep, "z.md"].map(str::to_owned).to_vec();
        assert_eq!(read(top.path(), &is_wanted), (expected, Vec::new()));
    }

    #[test]
    fn a_file_that_is_too_large_is_reported_and_the_others_are_read() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("a.md"), "text").unwrap();
        fs::File::create(top.path().join("b.md")).unwrap().set_len(FILE_LIMIT + 1).unwrap();
        let expected = (vec!["a.md".to_owned()], vec![("b.md".to_owned(), "too-large")]);
        assert_eq!(read(top.path(), &|_| true), expected);
    }

    #[test]
    fn a_directory_that_cannot_be_listed_is_reported_unless_it_is_the_named_one() {
        let top = tempfile::tempdir().unwrap();
        let error = |at: &str| {
            let mut walk = WalkDir::new(top.path().join(at)).into_iter();
            walk.next().unwrap().unwrap_err()
        };
        let mut found = OutsideFiles::default();
        found.unlisted(top.path(), error("gone")).unwrap();
        assert_eq!((found.unread.len(), found.unread[0].0.as_str()), (1, "gone"));
        let of_itself = found.unlisted(&top.path().join("gone"), error("gone")).unwrap_err();
        assert_eq!(of_itself.code(), "not-found");
    }
}
