//! Creating files and directories, each whole or not at all.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::displaced;
use super::error::DiskError;
use super::file_system::Open;
use super::fs_ops::{Safe, is, make_dirs, rename_new, write_new};
use super::in_mount::is_elsewhere;
use super::names::{BUILDING, Content, VersionName, checked};
use super::undo::{ARCHIVE, Record};
use super::write_lock::{Done, Draft, Locked, Written};

impl Locked<'_> {
    /// Creates a file and its missing directories.
    ///
    /// Never replaces anything: if the name is taken, the error is [`DiskError::Exists`].
    pub fn create(&mut self, relative: &Path, bytes: &[u8]) -> Result<Written, DiskError> {
        checked(relative)?;
        let real = self.real_place(relative)?;
        self.check_finished(&real)?;
        if self.is_keyed() {
            return self.create_keyed(real, bytes);
        }
        let path = self.plans.root.join(&real);
        let parent = path.parent().unwrap_or(&self.plans.root);
        let id = self.fresh_id();
        let draft = self.draft(id, &real, Content::NOTHING, bytes, None)?;
        let made = self.make_parents(parent, None).inspect_err(|_| {
            self.plans.disk.remove(&draft.version.path).ok();
        })?;
        let draft = self.place(draft, &path, bytes).inspect_err(|_| self.remove_made_parents(&made))?;
        let done = self.plans.disk.sync_dir(parent).and_then(|()| draft.file.stat());
        match done {
            Ok(stat) => {
                self.record_all(&made, &[Record::created(&real, bytes)]);
                Ok(Written { path: real, done: Done::Created, bytes: bytes.to_vec(), stat, kept: Vec::new() })
            }
            Err(source) => Err(self.uncreate(&path, &draft, (&made, source))),
        }
    }

    pub(super) fn place(&self, draft: Draft, path: &Path, bytes: &[u8]) -> Result<Draft, DiskError> {
        let disk = &*self.plans.disk;
        let placed = rename_new(disk, &draft.version.path, path);
        if placed.is_err() {
            disk.remove(&draft.version.path).ok();
        }
        match placed {
            Err(error) if is_elsewhere(&error) => {
                let file = self.create_near(path, draft.version.name.id, bytes)?;
                Ok(Draft { version: draft.version, file })
            }
            placed => placed.map(|()| draft).map_err(|error| DiskError::writing(path, error)),
        }
    }

    /// Removes a new file whose name may not be durable.
    fn uncreate(
        &self,
        path: &Path,
        draft: &Draft,
        (made, source): (&[PathBuf], std::io::Error),
    ) -> DiskError {
        // Other programs may already have the file open. It is moved to `displaced/` like a replaced text, so that later
        // writes into it are found.
        let name = VersionName { base: draft.version.name.new, ..draft.version.name.clone() };
        let version = displaced::dir(self.plans).join(name.encode());
        match rename_new(&*self.plans.disk, path, &version) {
            Ok(()) => {
                self.remove_made_parents(made);
                DiskError::writing(path, source)
            }
            Err(_) => DiskError::Unsynced { path: path.to_path_buf(), source },
        }
    }

    /// Removes directories that [`Self::make_parents`] created and that are still empty.
    fn remove_made_parents(&self, made: &[PathBuf]) {
        for dir in made.iter().rev() {
            self.plans.disk.remove_dir(&self.plans.root.join(dir)).ok();
        }
    }

    /// Creates a directory with its files. The directory becomes visible only when it is complete. For a request with a key,
    /// however, the files are created one by one in a batch.
    ///
    /// The names must be plain file names. If the directory exists, the error is [`DiskError::Exists`].
    pub fn create_dir_with(&mut self, relative: &Path, files: &[(String, Vec<u8>)]) -> Result<(), DiskError> {
        checked(relative)?;
        let real = self.real_place(relative)?;
        self.check_finished(&real)?;
        let path = self.plans.root.join(&real);
        let parent = path.parent().unwrap_or(&self.plans.root);
        for (name, _) in files {
            if checked(Path::new(name)).is_err() || name.contains('/') {
                return Err(DiskError::BadPath { path: relative.join(name) });
            }
        }
        if self.is_keyed() {
            return self.create_dir_keyed(&real, files);
        }
        let building = self.plans.known_state_dir().join(BUILDING);
        self.clear(&building).map_err(|error| DiskError::writing(&building, error))?;
        let built = self.build(&building, files).map_err(|error| DiskError::writing(&path, error));
        let made = built.and_then(|()| self.make_parents(parent, None)).inspect_err(|_| {
            self.clear(&building).ok();
        })?;
        if let Err(error) = rename_new(&*self.plans.disk, &building, &path) {
            self.clear(&building).ok();
            self.remove_made_parents(&made);
            return Err(DiskError::writing(&path, error));
        }
        match self.plans.disk.sync_dir(parent) {
            Ok(()) => {
                let made = made.into_iter().chain([real.clone()]).collect::<Vec<_>>();
                let created = |(name, bytes): &(String, Vec<u8>)| Record::created(&real.join(name), bytes);
                self.record_all(&made, &files.iter().map(created).collect::<Vec<_>>());
                Ok(())
            }
            Err(source) => match rename_new(&*self.plans.disk, &path, &building) {
                Ok(()) => {
                    self.clear(&building).ok();
                    self.remove_made_parents(&made);
                    Err(DiskError::writing(&path, source))
                }
                Err(_) => Err(DiskError::Unsynced { path, source }),
            },
        }
    }

    fn build(&self, building: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
        let disk = &*self.plans.disk;
        disk.make_dir(building, 0o777)?;
        for (name, bytes) in files {
            write_new(disk, &building.join(name), 0o666, bytes, Safe::Yes)?;
        }
        disk.sync_dir(building)
    }

    /// Removes the directory `building` and its files. Does nothing if it is missing.
    fn clear(&self, building: &Path) -> std::io::Result<()> {
        let disk = &*self.plans.disk;
        let names = match disk.names(building) {
            Err(error) if is(&error, Errno::NOENT) => return Ok(()),
            other => other?,
        };
        for name in names {
            disk.remove(&building.join(name))?;
        }
        disk.remove_dir(building)
    }

    /// Creates `dir` and its missing parents durably, all or none. Returns the created directories, parents first.
    ///
    /// If `from` is given, the new directories get the permissions of the directory that contains `from`. They also get
    /// its owner and attributes, as far as permitted. This way the steps of a private plan stay private. The archive
    /// itself gets the usual permissions, because it belongs to all plans.
    pub(super) fn make_parents(&self, dir: &Path, from: Option<&Path>) -> Result<Vec<PathBuf>, DiskError> {
        let failed = |error| DiskError::writing(dir, error);
        let (mut missing, mut made) = (Vec::new(), Vec::new());
        for above in dir.ancestors().take_while(|it| *it != self.plans.root) {
            match self.plans.disk.lstat(above) {
                Ok(_) => break,
                Err(error) if is(&error, Errno::NOENT) => missing.push(above),
                Err(error) => return Err(failed(error)),
            }
        }
        for dir in missing.iter().rev() {
            let parent = dir.parent().unwrap_or(&self.plans.root);
            made.extend(dir.strip_prefix(&self.plans.root).map(Path::to_path_buf));
            let from =
                from.and_then(Path::parent).filter(|_| !dir.ends_with(ARCHIVE) || parent != self.plans.root);
            let is_made = match from.map(|it| self.plans.root.join(it)) {
                Some(from) => self.make_alike(dir, &from),
                None => make_dirs(&*self.plans.disk, dir, 0o777),
            };
            if let Err(error) = is_made.and_then(|()| self.plans.disk.sync_dir(parent)) {
                self.remove_made_parents(&made);
                return Err(failed(error));
            }
        }
        Ok(made)
    }

    /// Creates a directory with the permissions of `other` and, as far as permitted, its owner and attributes. Its
    /// permissions are never wider than those of `other`.
    fn make_alike(&self, dir: &Path, other: &Path) -> std::io::Result<()> {
        let disk = &*self.plans.disk;
        let like = disk.lstat(other)?;
        make_dirs(disk, dir, like.mode & 0o777)?;
        // An error is ignored, because copying the owner and attributes may need privileges.
        disk.open(dir, Open::Read).and_then(|it| it.copy_attributes_from(&like, other)).ok();
        Ok(())
    }
}
