//! Finds a directory for the index: the state directory (`.planwatch`), or else one in the user's cache directory.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::capabilities::is_remote;
use super::file_system::{FileKind, Open};
use super::fs_ops::make_dirs;
use super::names::RUNTIME;
use super::plans_dir::PlansDir;

impl PlansDir {
    /// Returns the time in nanoseconds since 1970 by the file system's clock, which also sets the stamps of files. It is
    /// read by writing a file, because this machine's clock may differ.
    ///
    /// If no file can be written, returns this machine's clock, or 0 on a remote file system, whose stamps come from another
    /// clock. Every stamp is later than 0, so none is trusted.
    pub fn stamp_ns(&self) -> i128 {
        let unwritten = || if is_remote(&self.root) { 0 } else { self.now_ns() };
        let Some(dir) = self.runtime_dir().filter(|it| is_writable(it)) else { return unwritten() };
        let path = dir.join("clock");
        let open = self.disk.open(&path, Open::InPlace).or_else(|_| self.disk.open(&path, Open::New(0o600)));
        let stamped = open.and_then(|it| it.write(b".").and_then(|()| it.stat()));
        stamped.map_or_else(|_| unwritten(), |it| it.mtime_ns)
    }

    /// Returns the directory for the index: the state directory if it is writable and not on a remote file system, else
    /// a directory in the user's cache directory. It is created if necessary.
    ///
    /// `None` if neither is possible. Also `None` if there is no plan and no `.planwatch`, because the index would be
    /// empty.
    pub fn index_dir(&self) -> Option<PathBuf> {
        if self.is_bare() {
            return None;
        }
        let own = || self.runtime_dir().filter(|it| is_writable(it));
        // With a write-ahead log, SQLite needs shared memory, which other machines cannot access.
        if is_remote(&self.root) { self.cache_dir() } else { own().or_else(|| self.cache_dir()) }
    }

    /// Whether the plans directory contains neither a plan nor `.planwatch`.
    pub fn is_bare(&self) -> bool {
        self.disk.lstat(&self.root.join(RUNTIME)).is_err() && !self.has_plan()
    }

    /// Whether there may be a plan: a directory in the plans directory or in `_archive` contains a file with the name of a
    /// plan's or step's file, or it cannot be listed. A symbolic link cannot be listed.
    pub(super) fn has_plan(&self) -> bool {
        let below = |at: &str| self.directories(Path::new(at));
        let has_file = |at: &str| {
            let names = self.disk.names(&self.root.join(at));
            names.map_or(true, |it| it.iter().any(|name| is_plan_file(&name.to_string_lossy())))
        };
        let top = below("");
        let mut tops = top.names.iter().chain(&top.links);
        let archived = || {
            let inside = below("_archive");
            inside.names.iter().chain(&inside.links).any(|it| has_file(&format!("_archive/{it}")))
        };
        tops.any(|it| has_file(it)) || archived()
    }

    /// Returns a private directory in this user's cache directory. Its name is a hash of the plans directory's path.
    fn cache_dir(&self) -> Option<PathBuf> {
        let home = self.cache_home.as_deref()?;
        make_dirs(&*self.disk, home, 0o700).ok()?;
        // The path of the user's cache directory itself may contain symbolic links.
        let top = self.disk.canonical(home).ok()?.join("planwatch");
        let name = &blake3::hash(self.root.as_os_str().as_bytes()).to_hex()[..24];
        let dir = top.join(name);
        make_dirs(&*self.disk, &dir, 0o700).ok()?;
        let is_ours = [&top, &dir].into_iter().all(|it| self.is_of_this_user(it));
        (is_ours && !is_remote(&dir) && is_writable(&dir)).then_some(dir)
    }

    fn is_of_this_user(&self, dir: &Path) -> bool {
        let user = rustix::process::geteuid().as_raw();
        let found = self.disk.lstat(dir);
        found.is_ok_and(|it| it.kind == FileKind::Dir && it.uid == user && it.mode & 0o077 == 0)
    }
}

/// Whether a name is that of a plan's or step's file. The content is not checked.
fn is_plan_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "plan.md" || (name.starts_with("step") && name.ends_with(".md"))
}

fn is_writable(dir: &Path) -> bool {
    rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
