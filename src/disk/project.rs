//! At a user's request, writes a few files of a project that are outside of its plans.
//!
//! These files belong to the user and may be open in an editor. Therefore they are written like plan files: under a lock,
//! and as one batch with a journal. Displaced versions are stored, and are checked later for late writes by an editor. The
//! journal and the versions are in the state directory of the plans, or in a hidden directory of the project. Symbolic links
//! are followed inside the project; a link that leads out of it is an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::displaced::Kept;
use super::error::DiskError;
use super::file_system::{Disk, FileKind};
use super::fs_ops::{is, make_dirs};
use super::half_saved::Saves;
use super::journal::{FileOp, Recovered};
use super::names::DISPLACED;
use super::pending::Pending;
use super::plans_dir::PlansDir;
use super::runtime::{Home, Trust, remove_if_unused};
use super::write_lock::FileRecords;

/// The state directory in the project's root, for projects whose state cannot be in a plans directory.
const HIDDEN: &str = ".planwatch-init";

#[derive(Debug)]
pub struct Project {
    files: PlansDir,
    /// The directory for the project's state in the state directory of its plans; `None` if the state cannot be stored
    /// there.
    place: Option<PathBuf>,
}

/// What a call found or did in addition to its task. Callers report it even if the call failed.
#[derive(Debug, Default)]
pub struct ProjectReport {
    /// The interrupted change that this call finished or undid.
    pub recovered: Option<Recovered>,
    pub kept: Vec<Kept>,
}

/// The earlier lengths of a project's files are not recorded. With an assumed length of one byte, only an empty file
/// counts as half saved.
#[derive(Debug)]
struct NotEmpty;

impl FileRecords for NotEmpty {
    fn length(&self, _relative: &Path) -> Option<u64> {
        Some(1)
    }

    fn is_checked_out(&self, _relative: &Path, _bytes: &[u8]) -> bool {
        false
    }
}

impl Project {
    /// `state_home` is the user's own state directory, and `plans` the plans directory, if there is one.
    pub fn open(
        disk: Arc<dyn Disk>,
        root: &Path,
        state_home: Option<&Path>,
        plans: Option<&Path>,
    ) -> Result<Self, DiskError> {
        let files = PlansDir::open(Arc::clone(&disk), root, state_home)?;
        let plans = plans.and_then(|it| PlansDir::open(disk, it, state_home).ok());
        let place = plans.and_then(|it| place_in(&it, files.root()));
        let home = place.as_deref().and_then(|it| home_at(&*files.disk, it));
        Ok(Self { files: files.of_project(HIDDEN, home), place })
    }

    pub fn root(&self) -> &Path {
        self.files.root()
    }

    /// Resolves the symbolic links of a path. The result is relative to the root. The file need not exist.
    pub fn place(&self, relative: &Path) -> Result<PathBuf, DiskError> {
        let path = self.files.root.join(relative);
        let leads_out = || DiskError::LeadsOutOfProject { path: path.clone() };
        let real = self.real(&path)?;
        let inside = real.strip_prefix(&self.files.root).map_err(|_| leads_out())?;
        let is_git = inside.components().any(|it| it.as_os_str() == ".git");
        if is_git { Err(leads_out()) } else { Ok(inside.to_path_buf()) }
    }

    fn real(&self, path: &Path) -> Result<PathBuf, DiskError> {
        match self.files.disk.canonical(path) {
            Ok(real) => Ok(real),
            Err(error) if is(&error, Errno::NOENT) => {
                match (self.files.disk.lstat(path), path.parent(), path.file_name()) {
                    // The name is a symbolic link that leads to nothing.
                    (Ok(_), ..) => Err(DiskError::LeadsOutOfProject { path: path.to_path_buf() }),
                    (Err(_), Some(parent), Some(name)) => Ok(self.real(parent)?.join(name)),
                    _ => Err(DiskError::reading(path, error)),
                }
            }
            Err(error) => Err(DiskError::reading(path, error)),
        }
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// Fails with [`DiskError::HalfSaved`] if the file is empty and was modified a moment ago.
    pub fn read(&self, relative: &Path) -> Result<Option<Vec<u8>>, DiskError> {
        match self.files.read(&self.place(relative)?) {
            Ok(found) => {
                let saves: Saves<'_> = self.files.saves(&NotEmpty);
                saves.refuse_cut_short(&found)?;
                Ok(Some(found.bytes))
            }
            Err(DiskError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn is_dir(&self, relative: &Path) -> bool {
        let path = self.place(relative).map(|it| self.files.root.join(it));
        path.is_ok_and(|it| self.files.disk.lstat(&it).is_ok_and(|it| it.kind == FileKind::Dir))
    }

    /// Carries out all operations, or none, as [`Locked::batch`](super::Locked::batch) does.
    ///
    /// Fails with [`DiskError::FileChanged`] if a file differs from what its operation expects.
    pub fn write(
        &self,
        (verb, at): (&str, &str),
        ops: Vec<FileOp>,
        waiting: &mut dyn FnMut(),
        report: &mut ProjectReport,
    ) -> Result<(), DiskError> {
        if ops.is_empty() {
            return Ok(());
        }
        if let Some(place) = &self.place
            && make_dirs(&*self.files.disk, &place.join(DISPLACED), 0o700).is_ok()
        {
            self.files.use_home(home_at(&*self.files.disk, place));
        }
        let mut locked = self.files.lock(waiting)?;
        locked.use_records(&NotEmpty);
        let written = locked.batch(verb, at, ops);
        report.kept.append(&mut locked.kept);
        report.recovered = report.recovered.take().or(locked.recovered.take());
        self.remove_if_unused();
        written.map_err(|error| match error {
            DiskError::Exists { path } | DiskError::NotFound { path } => DiskError::FileChanged { path },
            error => error,
        })
    }

    /// Finishes or undoes an interrupted change, and removes displaced versions that are no longer needed.
    ///
    /// Does nothing if there is no state directory.
    pub fn settle(&self, waiting: &mut dyn FnMut(), report: &mut ProjectReport) -> Result<(), DiskError> {
        if self.files.found_home().is_none() {
            return Ok(());
        }
        let mut locked = self.files.lock(waiting)?;
        report.kept.append(&mut locked.kept);
        report.recovered = locked.recovered.take();
        self.remove_if_unused();
        Ok(())
    }

    /// Removes the hidden directory if it contains only what a new one contains. The caller holds the lock.
    fn remove_if_unused(&self) {
        let hidden = self.files.root.join(HIDDEN);
        if self.files.known_state_dir() == hidden {
            remove_if_unused(&*self.files.disk, &hidden);
        }
    }

    /// Lists the stored versions that are in no file of the project, with paths relative to the root. Changes nothing.
    pub fn kept(&self) -> Vec<Kept> {
        if self.files.found_home().is_some() { self.files.kept() } else { Vec::new() }
    }

    /// Like [`PlansDir::pending`].
    pub fn pending(&self) -> Option<Pending> {
        self.files.pending()
    }

    /// Removes a directory if it is empty; returns whether it was removed.
    pub fn remove_empty_dir(&self, relative: &Path) -> bool {
        self.place(relative).is_ok_and(|it| self.files.disk.remove_dir(&self.files.root.join(it)).is_ok())
    }
}

impl PlansDir {
    pub fn project(&self, root: &Path) -> Result<Project, DiskError> {
        let disk = Arc::clone(&self.disk);
        Project::open(disk, root, self.state_home.as_deref(), Some(&self.root))
    }
}

/// The directory for the state of a project, in the state directory of its plans. `None` if that state directory is
/// missing, not verified as this user's own, outside the project, or on another mount. Files cannot be renamed between
/// mounts.
fn place_in(plans: &PlansDir, root: &Path) -> Option<PathBuf> {
    let disk = &*plans.disk;
    let own = plans.found_home().filter(|it| it.trust == Trust::Own && it.dir.starts_with(root))?;
    if disk.mount(&own.dir).ok()? != disk.mount(root).ok()? {
        return None;
    }
    Some(own.dir.join(format!("project-{:x}", disk.lstat(root).ok()?.ino)))
}

fn home_at(disk: &dyn Disk, dir: &Path) -> Option<Home> {
    let stat = disk.lstat(dir).ok().filter(|it| it.kind == FileKind::Dir)?;
    Some(Home { dir: dir.to_path_buf(), ino: stat.ino, trust: Trust::Own })
}

#[cfg(test)]
mod tests;
