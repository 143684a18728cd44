//! The project around the plans: the few files in it that a user asks planwatch to write.
//!
//! They belong to the user and may be open in an editor. A file atomically replaces exactly the version that was read;
//! a version saved meanwhile stays. There is no lock and no journal; each file is complete at any time. Symbolic links
//! are followed inside the project, and never out of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{Disk, FileKind, Open, Rename};
use super::fs_ops::{is, is_missing_call, make_dirs, rename_new};
use super::queries::read_file;

/// The root of a project, without symbolic links.
#[derive(Debug)]
pub struct Project {
    disk: Arc<dyn Disk>,
    root: PathBuf,
}

impl Project {
    pub fn open(disk: Arc<dyn Disk>, root: &Path) -> Result<Self, DiskError> {
        let root = disk.canonical(root).map_err(|error| DiskError::reading(root, error))?;
        Ok(Self { disk, root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a path relative to the root, without symbolic links; the file need not exist.
    pub fn place(&self, relative: &Path) -> Result<PathBuf, DiskError> {
        let path = self.root.join(relative);
        let leads_out = || DiskError::LeadsOutOfProject { path: path.clone() };
        let real = self.real(&path)?;
        let inside = real.strip_prefix(&self.root).map_err(|_| leads_out())?;
        let is_git = inside.components().any(|it| it.as_os_str() == ".git");
        if is_git { Err(leads_out()) } else { Ok(inside.to_path_buf()) }
    }

    fn real(&self, path: &Path) -> Result<PathBuf, DiskError> {
        match self.disk.canonical(path) {
            Ok(real) => Ok(real),
            Err(error) if is(&error, Errno::NOENT) => {
                match (self.disk.lstat(path), path.parent(), path.file_name()) {
                    // The name exists and leads to nothing.
                    (Ok(_), ..) => Err(DiskError::LeadsOutOfProject { path: path.to_path_buf() }),
                    (Err(_), Some(parent), Some(name)) => Ok(self.real(parent)?.join(name)),
                    _ => Err(DiskError::reading(path, error)),
                }
            }
            Err(error) => Err(DiskError::reading(path, error)),
        }
    }

    /// Reads a file; `None` if it does not exist.
    pub fn read(&self, relative: &Path) -> Result<Option<Vec<u8>>, DiskError> {
        let path = self.root.join(self.place(relative)?);
        match read_file(&*self.disk, &path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(DiskError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn is_dir(&self, relative: &Path) -> bool {
        let path = self.place(relative).map(|it| self.root.join(it));
        path.is_ok_and(|it| self.disk.lstat(&it).is_ok_and(|it| it.kind == FileKind::Dir))
    }

    /// Replaces the version that was read, or creates the file.
    ///
    /// Missing directories are created. A text saved meanwhile stays, and the error is [`DiskError::FileChanged`].
    pub fn put(&self, relative: &Path, before: Option<&[u8]>, after: &[u8]) -> Result<(), DiskError> {
        let path = self.root.join(self.place(relative)?);
        let parent = path.parent().unwrap_or(&self.root);
        let failed = |error| DiskError::writing(&path, error);
        make_dirs(&*self.disk, parent, 0o777).map_err(failed)?;
        let draft = self.draft_beside(&path).map_err(failed)?;
        let put =
            self.write_draft(&path, &draft, before, after).map_err(failed).and_then(|()| match before {
                None => match rename_new(&*self.disk, &draft, &path) {
                    Err(error) if is(&error, Errno::EXIST) => Err(changed(&path)),
                    other => other.map_err(failed),
                },
                Some(before) => self.exchange(&path, &draft, before),
            });
        if let Err(error) = put {
            self.disk.remove(&draft).ok();
            return Err(error);
        }
        self.disk.sync_dir(parent).map_err(failed)
    }

    /// Removes a file if it still is the version that was read.
    pub fn remove(&self, relative: &Path, before: &[u8]) -> Result<(), DiskError> {
        let path = self.root.join(self.place(relative)?);
        let failed = |error| DiskError::writing(&path, error);
        let aside = self.draft_beside(&path).map_err(failed)?;
        // Compared under a name that no editor saves to.
        rename_new(&*self.disk, &path, &aside).map_err(failed)?;
        if self.holds(&aside, before) {
            self.disk.remove(&aside).map_err(failed)?;
            return self.disk.sync_dir(path.parent().unwrap_or(&self.root)).map_err(failed);
        }
        rename_new(&*self.disk, &aside, &path).map_err(failed)?;
        Err(changed(&path))
    }

    /// Creates a directory and its parents.
    pub fn make_dir(&self, relative: &Path) -> Result<(), DiskError> {
        let path = self.root.join(self.place(relative)?);
        make_dirs(&*self.disk, &path, 0o777).map_err(|error| DiskError::writing(&path, error))
    }

    /// Removes a directory if it is empty; returns whether it is gone.
    pub fn remove_empty_dir(&self, relative: &Path) -> bool {
        self.place(relative).is_ok_and(|it| self.disk.remove_dir(&self.root.join(it)).is_ok())
    }

    fn draft_beside(&self, path: &Path) -> io::Result<PathBuf> {
        let mut random = [0; 8];
        self.disk.random(&mut random)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(path.with_file_name(format!(".{name}.planwatch-{:016x}", u64::from_le_bytes(random))))
    }

    fn write_draft(&self, path: &Path, draft: &Path, before: Option<&[u8]>, after: &[u8]) -> io::Result<()> {
        let file = self.disk.open(draft, Open::New(0o666))?;
        file.write(after)?;
        if before.is_some() {
            file.dress(&self.disk.lstat(path)?, path)?;
        }
        file.sync()
    }

    /// Exchanges draft and file, and compares what came out.
    fn exchange(&self, path: &Path, draft: &Path, before: &[u8]) -> Result<(), DiskError> {
        let failed = |error| DiskError::writing(path, error);
        if !self.holds(path, before) {
            return Err(changed(path));
        }
        match self.disk.rename(draft, path, Rename::Exchange) {
            // Without the call a save at this moment would be lost, which cannot be avoided here.
            Err(error) if is_missing_call(&error) => {
                return self.disk.rename(draft, path, Rename::Replace).map_err(failed);
            }
            other => other.map_err(failed)?,
        }
        if !self.holds(draft, before) {
            self.disk.rename(draft, path, Rename::Exchange).map_err(failed)?;
            return Err(changed(path));
        }
        self.disk.remove(draft).map_err(failed)
    }

    fn holds(&self, path: &Path, bytes: &[u8]) -> bool {
        read_file(&*self.disk, path).is_ok_and(|it| it == bytes)
    }
}

fn changed(path: &Path) -> DiskError {
    DiskError::FileChanged { path: path.to_path_buf() }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and read their own files")]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::disk::RealDisk;

    fn place() -> (tempfile::TempDir, Project) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("shop/.git")).unwrap();
        let project = Project::open(Arc::new(RealDisk), &top.path().join("shop")).unwrap();
        (top, project)
    }

    #[test]
    fn a_file_is_created_replaced_and_removed_only_as_it_was_read() {
        let (_top, project) = place();
        let path = Path::new("a/b/c.md");
        project.put(path, None, b"1").unwrap();
        assert!(matches!(project.put(path, None, b"2"), Err(DiskError::FileChanged { .. })));
        assert!(matches!(project.put(path, Some(b"0"), b"2"), Err(DiskError::FileChanged { .. })));
        assert_eq!(project.read(path).unwrap().as_deref(), Some(&b"1"[..]));
        let real = project.root().join(path);
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
        project.put(path, Some(b"1"), b"2").unwrap();
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(matches!(project.remove(path, b"1"), Err(DiskError::FileChanged { .. })));
        assert_eq!(project.read(path).unwrap().as_deref(), Some(&b"2"[..]));
        project.remove(path, b"2").unwrap();
        assert_eq!(project.read(path).unwrap(), None);
        assert_eq!(std::fs::read_dir(project.root().join("a/b")).unwrap().count(), 0);
        assert!(!project.remove_empty_dir(Path::new("a")) && project.remove_empty_dir(Path::new("a/b")));
    }

    #[test]
    fn links_are_followed_only_inside() {
        let (top, project) = place();
        let root = project.root().to_path_buf();
        std::fs::write(root.join("AGENTS.md"), "a").unwrap();
        std::fs::write(top.path().join("other"), "x").unwrap();
        for (link, to) in [
            ("CLAUDE.md", "AGENTS.md"),
            ("out.md", "../other"),
            ("none.md", "nowhere"),
            ("hook", ".git/hook"),
            (".cursor", ".."),
            ("git", ".git"),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        assert_eq!(project.place(Path::new("CLAUDE.md")).unwrap(), Path::new("AGENTS.md"));
        project.put(Path::new("CLAUDE.md"), Some(b"a"), b"b").unwrap();
        assert!(root.join("CLAUDE.md").is_symlink());
        assert_eq!(std::fs::read(root.join("AGENTS.md")).unwrap(), b"b");
        for path in ["out.md", "none.md", "hook", ".cursor/mcp.json", "git/hook"] {
            let refused = project.put(Path::new(path), None, b"b");
            assert!(matches!(refused, Err(DiskError::LeadsOutOfProject { .. })), "{path}: {refused:?}");
        }
        assert_eq!(std::fs::read(top.path().join("other")).unwrap(), b"x");
    }
}
