//! The type and abilities of a file system, for `doctor` and the watcher.

use std::path::Path;

use super::file_system::{Against, Lease, Open, Rename};
use super::names::RUNTIME;
use super::plans_dir::{PlansDir, lacks_lock};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// The usual name of the type, such as `ext4`, or its number in hexadecimal if no name is known here. `unknown` if
    /// the system does not report the type.
    pub name: String,
    /// Whether other machines can write to it. Their changes may cause no file system events on this machine.
    pub is_remote: bool,
}

/// The results of tests. A field is `None` if its test was not possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Two names can be exchanged atomically, so that no save is lost between a check and a rename.
    pub exchange: Option<bool>,
    /// A lease keeps other programs from opening a file while it is written in place.
    pub leases: Option<bool>,
    /// `STEP-1.md` is the same file as `step-1.md`.
    pub ignores_case: Option<bool>,
}

/// For each type its magic number of `statfs(2)`, its name, and whether other machines can write to it.
#[cfg(target_os = "linux")]
const NAMES: [(u32, &str, bool); 19] = [
    (0xEF53, "ext4", false),
    (0x9123_683E, "btrfs", false),
    (0x5846_5342, "xfs", false),
    (0x0102_1994, "tmpfs", false),
    (0x2FC1_2FC1, "zfs", false),
    (0xF2F5_2010, "f2fs", false),
    (0xCA45_1A4E, "bcachefs", false),
    (0x794C_7630, "overlayfs", false),
    (0x4D44, "vfat", false),
    (0x2011_BAB0, "exfat", false),
    (0x7366_746E, "ntfs3", false),
    (0x6969, "nfs", true),
    (0x517B, "smb", true),
    (0xFF53_4D42, "cifs", true),
    (0xFE53_4D42, "smb2", true),
    (0x0102_1997, "9p", true),
    (0x6573_5546, "fuse", true),
    (0x00C3_6400, "ceph", true),
    (0x5346_414F, "afs", true),
];

/// The maximum number of inotify watches per user; `None` if it cannot be read, for example on macOS.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the kernel's, which is read in one piece or not at all"
)]
pub fn watch_limit() -> Option<usize> {
    std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?.trim().parse().ok()
}

pub(super) fn is_remote(path: &Path) -> bool {
    file_system(path).is_remote
}

impl PlansDir {
    pub fn file_system(&self) -> FileSystem {
        file_system(&self.root)
    }

    /// Tests the abilities in the state directory, which is in the plans directory. All fields are `None` if
    /// [`Self::runtime_dir`] returns no directory.
    pub fn abilities(&self) -> Abilities {
        if self.runtime_dir().is_none() {
            return Abilities::default();
        }
        let own = self.state_dir();
        let try_dir = own.join("try");
        let abilities = self.disk.make_dir(&try_dir, 0o700).is_ok().then(|| self.try_in(&try_dir));
        for name in ["a", "b", "A"] {
            self.disk.remove_dir(&try_dir.join(name)).ok();
        }
        self.disk.remove(&try_dir.join("file")).ok();
        self.disk.remove_dir(&try_dir).ok();
        abilities.unwrap_or_default()
    }

    fn try_in(&self, dir: &Path) -> Abilities {
        let (one, other) = (dir.join("a"), dir.join("b"));
        let made = self.disk.make_dir(&one, 0o700).and_then(|()| self.disk.make_dir(&other, 0o700));
        if made.is_err() {
            return Abilities::default();
        }
        Abilities {
            leases: self.try_lease(&dir.join("file")),
            exchange: Some(self.disk.rename(&one, &other, Rename::Exchange).is_ok()),
            ignores_case: Some(self.disk.lstat(&dir.join("A")).is_ok()),
        }
    }

    /// Whether a lease can be taken. `None` if the file cannot be created, for example because another process tests at the
    /// same time.
    fn try_lease(&self, file: &Path) -> Option<bool> {
        let file = self.disk.open(file, Open::New(0o600)).ok()?;
        Some(file.lease(Against::Everyone) == Lease::Taken)
    }

    /// Whether the write lock is held now, by any process; `None` if unknown.
    pub fn is_being_written(&self) -> Option<bool> {
        let is_held = |path: &Path| self.disk.lock(path, std::time::Duration::ZERO).map(|it| it.is_none());
        let shared = self.root.join(RUNTIME).join(super::runtime::LOCK);
        // `None` if there is no lock file, or if it cannot be opened, for example because it is another user's. If the lock
        // file is locked, the answer is yes. Otherwise the lock on the directory decides.
        let found = self.disk.lstat(&shared).ok().and_then(|_| is_held(&shared).ok());
        match is_held(&self.root) {
            _ if found == Some(true) => found,
            Ok(is_held) => Some(is_held),
            // This file system has no locks on directories, so only `.planwatch/lock` is checked.
            Err(error) if lacks_lock(&error) => found,
            Err(_) => None,
        }
    }
}

#[cfg(target_os = "linux")]
fn file_system(path: &Path) -> FileSystem {
    let Ok(stat) = rustix::fs::statfs(path) else {
        return FileSystem { name: "unknown".to_owned(), is_remote: false };
    };
    // The number has 32 bits, in a field whose width and sign depend on the platform.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let number = stat.f_type as u32;
    match NAMES.iter().find(|(it, ..)| *it == number) {
        Some((_, name, is_remote)) => FileSystem { name: (*name).to_owned(), is_remote: *is_remote },
        None => FileSystem { name: format!("{number:#x}"), is_remote: false },
    }
}

#[cfg(not(target_os = "linux"))]
fn file_system(_path: &Path) -> FileSystem {
    FileSystem { name: "unknown".to_owned(), is_remote: false }
}
