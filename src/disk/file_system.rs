//! The primitive calls from which all protocols in `disk` are built.
//!
//! Tests implement them with a model of the disk, which can stop a protocol before each call, make the call fail, or
//! let an editor save before the call.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    File,
    Dir,
    Symlink,
    /// A FIFO, a socket or a device. It is never read.
    Other,
}

impl FileKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dir => "directory",
            Self::Symlink => "symbolic link",
            Self::Other => "special file",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat {
    pub len: u64,
    /// Nanoseconds since 1970 by the clock of the file system.
    pub mtime_ns: i128,
    pub ctime_ns: i128,
    pub ino: u64,
    pub dev: u64,
    /// The permission bits, including setuid, setgid and sticky; without the file type.
    pub mode: u32,
    pub nlink: u64,
    pub kind: FileKind,
    pub uid: u32,
    pub gid: u32,
}

impl Stat {
    /// Whether the content of the file may have changed since it had the stat `before`.
    pub(super) fn moved_on(&self, before: &Self) -> bool {
        (self.ino, self.dev, self.len, self.mtime_ns, self.ctime_ns)
            != (before.ino, before.dev, before.len, before.mtime_ns, before.ctime_ns)
    }
}

/// How a file is opened. If any component of the path is a symbolic link, opening fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// For reading, without waiting for a FIFO's writer.
    Read,
    /// For reading, then writing into the existing inode.
    InPlace,
    /// Created with this mode; fails if the name is taken.
    New(u32),
    /// For appending; created if it is missing.
    Append,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// Both names must exist and are exchanged atomically.
    Exchange,
    /// Fails if the new name exists.
    NoReplace,
    Replace,
}

/// The programs that a lease delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Programs that open the file for writing or truncate it. The leased file must be open with [`Open::Read`].
    Writers,
    /// Programs that open the file in any way.
    Everyone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    Taken,
    /// Another program has the file open in a way that the lease would exclude.
    Busy,
    /// The system or the file system has no leases, or the file belongs to another user.
    Unsupported,
}

/// The primitive calls on a file system.
///
/// Paths are absolute. Below the real path of the plans directory, callers must not pass a path in which a component other
/// than the last one is a symbolic link. A call that opens a file or directory fails with `ELOOP` if its path contains a
/// symbolic link. Each change of a name is atomic for other processes. A change is certain to survive a power cut only after
/// `sync_dir` or [`DiskFile::sync`].
pub trait Disk: fmt::Debug + Send + Sync {
    /// Resolves all symbolic links in a path. Every component must exist.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Returns the stat of the name itself; does not follow a symbolic link.
    fn lstat(&self, path: &Path) -> io::Result<Stat>;
    /// Returns a number that identifies the mount of a path. A rename between two mounts fails, even if both belong to
    /// the same file system.
    fn mount(&self, path: &Path) -> io::Result<u64> {
        Ok(self.lstat(path)?.dev)
    }
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// Lists names with their stat, unordered; names that vanish meanwhile are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>>;
    /// Lists names only, unordered.
    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>>;
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()>;
    /// Creates the hard link `to` to the inode of `from`. The name `to` must not exist.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Sets the permission bits of a file or directory, which must be readable. Does not follow a symbolic link.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Takes the exclusive lock on a file or directory; `None` if another process holds it for longer than `patience`.
    ///
    /// A missing file is created. The lock is released when the handle is dropped or the process dies.
    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>>;
    /// The machine's clock, in nanoseconds since 1970.
    fn now_ns(&self) -> i128;
    fn pause(&self, time: Duration);
    fn random(&self, bytes: &mut [u8]) -> io::Result<()>;
}

pub trait DiskFile: fmt::Debug + Send + Sync {
    fn stat(&self) -> io::Result<Stat>;
    /// Reads from the start, at most `limit` bytes. `expected` is the probable length; if it is right, one system call
    /// is enough.
    fn read(&self, limit: u64, expected: u64) -> io::Result<Vec<u8>>;
    /// Writes all bytes, at the start or, for [`Open::Append`], at the end.
    fn write(&self, bytes: &[u8]) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Copies mode, owner and extended attributes of `path`, whose stat is `like`.
    ///
    /// The owner and the attributes are copied as far as permitted. If the mode cannot be set, the call fails.
    fn copy_attributes_from(&self, like: &Stat, path: &Path) -> io::Result<()>;
    /// Makes the bytes of the file durable. Its name becomes durable with `sync_dir`.
    fn sync(&self) -> io::Result<()>;
    /// Requests a lease. Until [`release`](Self::release) or drop, the programs that `against` describes wait when they
    /// open the file.
    ///
    /// If such a program already has the file open, the result is [`Lease::Busy`].
    fn lease(&self, against: Against) -> Lease;
    fn release(&self);
}
