//! Stores the user's own small records outside the plans directory, and resolves directories in which commands run.
//!
//! The records are in the user's state directory, where a repository cannot add any.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{Disk, FileKind, Rename};
use super::fs_ops::{Safe, is, make_dirs, read_own, write_new};
use super::plans_dir::PlansDir;
use super::reach::Origin;

/// The size limit of a record, in bytes. Larger records are not read.
const RECORD_LIMIT: u64 = 1 << 20;

/// Write permission for the group and for others.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// Named records of this user on this machine, one file each.
#[derive(Debug)]
pub struct UserStore {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
}

impl PlansDir {
    /// Returns the user's records of this kind. `None` if there is no state directory, or if it is in `repository`,
    /// because records there could come from other people.
    pub fn user_store(&self, kind: &str, repository: &Path) -> Option<UserStore> {
        UserStore::open(&self.disk, self.state_home.as_deref()?, kind, repository)
    }

    /// Resolves a directory of the repository. Fails with [`DiskError::OutsideRepository`] if it leads out of the
    /// repository or into a directory of git or planwatch.
    pub fn directory_below(&self, root: &Path, relative: &Path) -> Result<PathBuf, DiskError> {
        let found = self.reach(root).find(relative, Origin::Elsewhere)?;
        let path = root.join(relative);
        let kind = self.disk.lstat(&found).map_err(|error| DiskError::reading(&path, error))?.kind;
        if kind == FileKind::Dir { Ok(found) } else { Err(DiskError::NotADirectory { path, kind }) }
    }

    /// Returns whether a path is a regular file or a symbolic link. The path of its parent must not contain symbolic
    /// links.
    pub fn is_file_beyond(&self, path: &Path) -> bool {
        self.disk.lstat(path).is_ok_and(|it| matches!(it.kind, FileKind::File | FileKind::Symlink))
    }
}

fn real_of(disk: &dyn Disk, path: &Path) -> PathBuf {
    match (disk.canonical(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real_of(disk, parent).join(name),
        _ => path.to_path_buf(),
    }
}

impl UserStore {
    /// The records of a kind in the user's state directory; `None` if that directory is in `repository`.
    pub fn open(disk: &Arc<dyn Disk>, state_home: &Path, kind: &str, repository: &Path) -> Option<Self> {
        let repository = disk.canonical(repository).unwrap_or_else(|_| repository.to_path_buf());
        let dir = real_of(&**disk, state_home).join("planwatch").join(kind);
        (!dir.starts_with(repository)).then(|| Self { disk: Arc::clone(disk), dir })
    }

    pub fn names(&self) -> Vec<String> {
        let found = self.disk.names(&self.dir).unwrap_or_default();
        let mut names: Vec<_> = found.into_iter().filter_map(|it| it.into_string().ok()).collect();
        names.retain(|it| is_name(it));
        names.sort_unstable();
        names
    }

    /// Reads a record; `None` if it does not exist, cannot be read, or could have been written by another user.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.dir.join(name);
        let is_own = |at: &Path| {
            let stat = self.disk.lstat(at);
            stat.is_ok_and(|it| {
                it.uid == rustix::process::geteuid().as_raw() && it.mode & OTHERS_MAY_WRITE == 0
            })
        };
        let may = is_name(name) && is_own(&self.dir) && is_own(&path);
        may.then(|| read_own(&*self.disk, &path, RECORD_LIMIT).ok().flatten()).flatten()
    }

    /// Creates or replaces a record atomically.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.dir.join(name);
        if !is_name(name) {
            return Err(DiskError::BadPath { path });
        }
        self.placed(&path, bytes).map_err(|error| DiskError::writing(&path, error))
    }

    fn placed(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        make_dirs(&*self.disk, &self.dir, 0o700)?;
        let mut random = [0; 8];
        self.disk.random(&mut random)?;
        let draft = self.dir.join(format!(".draft-{:016x}", u64::from_le_bytes(random)));
        write_new(&*self.disk, &draft, 0o600, bytes, Safe::Yes)?;
        let renamed = self.disk.rename(&draft, path, Rename::Replace);
        if renamed.is_err() {
            self.disk.remove(&draft).ok();
        }
        renamed.and_then(|()| self.disk.sync_dir(&self.dir))
    }

    /// Removes a record; returns whether it existed.
    pub fn remove(&self, name: &str) -> Result<bool, DiskError> {
        let path = self.dir.join(name);
        if !is_name(name) {
            return Err(DiskError::BadPath { path });
        }
        match self.disk.remove(&path) {
            Ok(()) => Ok(true),
            Err(error) if is(&error, Errno::NOENT) => Ok(false),
            Err(error) => Err(DiskError::writing(&path, error)),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::disk::RealDisk;

    fn place() -> (tempfile::TempDir, PlansDir) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("shop/plans")).unwrap();
        let plans = top.path().join("shop/plans");
        let plans = PlansDir::open(Arc::new(RealDisk), &plans, Some(&top.path().join("state"))).unwrap();
        (top, plans)
    }

    #[test]
    fn a_record_is_stored_replaced_and_removed() {
        let (top, plans) = place();
        let store = plans.user_store("trust", &top.path().join("shop")).unwrap();
        assert_eq!((store.names(), store.read("a")), (Vec::new(), None));
        store.put("a", b"1").unwrap();
        store.put("a", b"2").unwrap();
        assert_eq!((store.names(), store.read("a")), (vec!["a".to_owned()], Some(b"2".to_vec())));
        assert_eq!((store.remove("a").unwrap(), store.remove("a").unwrap()), (true, false));
        assert!(store.put("../a", b"").is_err() && store.read("../a").is_none());
    }

    #[test]
    fn files_that_others_can_write_are_ignored() {
        let (top, plans) = place();
        let store = plans.user_store("trust", &top.path().join("shop")).unwrap();
        store.put("a", b"1").unwrap();
        let path = top.path().join("state/planwatch/trust");
        std::fs::set_permissions(path.join("a"), PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(store.read("a"), None);
        store.put("b", b"1").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(store.read("b"), None);
    }

    #[test]
    fn records_in_the_repository_are_ignored() {
        let (top, plans) = place();
        assert!(plans.user_store("trust", top.path()).is_none());
        symlink(top.path().join("shop"), top.path().join("link")).unwrap();
        let state = top.path().join("link/state");
        let plans = PlansDir::open(Arc::new(RealDisk), plans.root(), Some(&state)).unwrap();
        assert!(plans.user_store("trust", &top.path().join("shop")).is_none());
    }

    #[test]
    fn a_directory_that_leads_out_is_refused() {
        let (top, plans) = place();
        let root = top.path().join("shop");
        symlink(top.path(), root.join("out")).unwrap();
        symlink("plans", root.join("in")).unwrap();
        let below = |it: &str| plans.directory_below(&root, Path::new(it));
        assert_eq!(below("in").unwrap(), plans.root());
        assert!(matches!(below("out"), Err(DiskError::OutsideRepository { .. })));
        assert!(matches!(below("none"), Err(DiskError::NotFound { .. })));
        std::fs::File::create(root.join("plans/text")).unwrap();
        let error = below("plans/text").unwrap_err();
        assert_eq!(error.code(), "not-a-directory");
        assert!(error.to_string().ends_with("/plans/text` is a file, not a directory"), "{error}");
    }
}
