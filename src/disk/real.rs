//! Implements [`Disk`] with system calls on the machine's own file systems.
//!
//! Handles the quirks of system calls, and contains no rules about how planwatch changes files. Never opens anything
//! through a symbolic link, and never blocks on a FIFO.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags, fchmod, fchown,
    flock, fsetxattr, fstat, fsync, ftruncate, lgetxattr, linkat, llistxattr, mkdirat, openat, readlinkat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::file_system::{Against, Disk, DiskFile, FileKind, Lease, Open, Rename, Stat};
use super::lease;

#[derive(Debug, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: File,
    at_end: bool,
}

/// The interval between retries of an open that a lease delays, and the longest total wait. By default the kernel
/// breaks a lease after 45 seconds.
const LEASE_POLL: Duration = Duration::from_millis(1);
const LONGEST_LEASE: Duration = Duration::from_secs(50);

impl Disk for RealDisk {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        Ok(stat_of(&statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    #[cfg(target_os = "linux")]
    fn mount(&self, path: &Path) -> io::Result<u64> {
        use rustix::fs::{StatxFlags, statx};
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        match statx(CWD, path, flags, StatxFlags::MNT_ID) {
            Ok(it) if it.stx_mask & StatxFlags::MNT_ID.bits() != 0 => Ok(it.stx_mnt_id),
            // Linux reports mount ids since version 5.8.
            _ => Ok(self.lstat(path)?.dev),
        }
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let target = readlinkat(CWD, path, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        let handle = open_without_links(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut found = Vec::new();
        for name in read_names(&handle)? {
            match statat(&handle, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => found.push((name, Ok(stat_of(&stat)))),
                Err(Errno::NOENT) => {}
                Err(error) => found.push((name, Err(error.into()))),
            }
        }
        Ok(found)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        read_names(&open_without_links(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        // NONBLOCK: opening a FIFO would otherwise block until its other end is opened.
        let (flags, mode) = match how {
            Open::Read => (OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()),
            Open::InPlace => (OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()),
            Open::New(mode) => (OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(mode)),
            Open::Append => {
                let end = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
                (end, Mode::from_raw_mode(0o600))
            }
        };
        let mut waited = Duration::ZERO;
        loop {
            match open_without_links(path, flags, mode) {
                // NONBLOCK makes the kernel return instead of waiting for the end of a lease.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited < LONGEST_LEASE => {
                    std::thread::sleep(LEASE_POLL);
                    waited += LEASE_POLL;
                }
                opened => return Ok(Box::new(RealFile { file: opened?, at_end: how == Open::Append })),
            }
        }
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        Ok(mkdirat(CWD, path, Mode::from_raw_mode(mode))?)
    }

    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        Ok(match how {
            Rename::Exchange => renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE),
            Rename::NoReplace => renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE),
            Rename::Replace => renameat(CWD, from, CWD, to),
        }?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(linkat(CWD, from, CWD, to, AtFlags::empty())?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(unlinkat(CWD, path, AtFlags::empty())?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let handle = open_without_links(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        match fsync(&handle) {
            // Some network file systems lack fsync for directories and do not need it.
            Err(Errno::INVAL) => Ok(()),
            other => Ok(other?),
        }
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let file = open_without_links(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        Ok(fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        let make = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
        let file = match open_without_links(path, make, Mode::from_raw_mode(0o600)) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::ISDIR) => {
                open_without_links(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?
            }
            other => other?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Box::new(RealFile { file, at_end: false }))),
            Err(Errno::WOULDBLOCK) if patience.is_zero() => return Ok(None),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
        wait_for_lock(file, patience)
    }

    fn now_ns(&self) -> i128 {
        let now = clock_gettime(ClockId::Realtime);
        nanoseconds(i128::from(now.tv_sec), i128::from(now.tv_nsec))
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A file to lock, and the channel that returns the file when it is locked.
type Wanted = (File, SyncSender<rustix::io::Result<File>>);

/// Idle threads that can wait for a lock. They are reused, because starting a thread often takes as long as the lock is
/// held.
static IDLE: Mutex<Vec<Sender<Wanted>>> = Mutex::new(Vec::new());

/// Waits in another thread, because `flock` has no time limit. The kernel queues waiters fairly.
///
/// If the wait times out, the thread takes the lock later, finds that the receiver is gone, and releases the lock.
fn wait_for_lock(file: File, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
    let (hand_over, arrival) = mpsc::sync_channel(0);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let waiter = idle.map_or_else(start_waiter, Ok)?;
    let gone = |_| io::Error::other("the thread that waits for the lock has ended");
    waiter.send((file, hand_over)).map_err(gone)?;
    match arrival.recv_timeout(patience) {
        Ok(taken) => Ok(Some(Box::new(RealFile { file: taken?, at_end: false }))),
        Err(_) => Ok(None),
    }
}

fn start_waiter() -> io::Result<Sender<Wanted>> {
    let (waiter, wanted) = mpsc::channel::<Wanted>();
    let own = waiter.clone();
    let wait = move || {
        for (file, hand_over) in wanted {
            let taken = loop {
                match flock(&file, FlockOperation::LockExclusive) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            hand_over.send(taken.map(|()| file)).ok();
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(own.clone());
        }
    };
    std::thread::Builder::new().name("lock".to_string()).spawn(wait)?;
    Ok(waiter)
}

impl DiskFile for RealFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(stat_of(&fstat(&self.file)?))
    }

    fn read(&self, limit: u64, expected: u64) -> io::Result<Vec<u8>> {
        // With room for one more byte than expected, the call that reads everything also detects the end of the file.
        let room = usize::try_from(expected.min(limit)).unwrap_or(0) + 1;
        let mut bytes = vec![0; room];
        let mut filled = 0;
        loop {
            if filled == bytes.len() {
                bytes.resize(filled * 2, 0);
            }
            match self.file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if filled as u64 >= limit || (filled < bytes.len() && filled as u64 == expected) {
                break;
            }
        }
        bytes.truncate(filled.min(usize::try_from(limit).unwrap_or(usize::MAX)));
        Ok(bytes)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self.at_end {
            true => (&self.file).write_all(bytes),
            false => self.file.write_all_at(bytes, 0),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(ftruncate(&self.file, len)?)
    }

    fn copy_attributes_from(&self, like: &Stat, path: &Path) -> io::Result<()> {
        let mine = fstat(&self.file)?;
        if (mine.st_uid, mine.st_gid) != (like.uid, like.gid) {
            // Changing the owner usually needs privileges; a failure is ignored, because saving the text matters more.
            let group = Some(Gid::from_raw(like.gid));
            if fchown(&self.file, Some(Uid::from_raw(like.uid)), group).is_err() {
                fchown(&self.file, None, group).ok();
            }
        }
        copy_attributes(path, &self.file);
        Ok(fchmod(&self.file, Mode::from_raw_mode(like.mode))?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.file)?)
    }

    fn lease(&self, against: Against) -> Lease {
        lease::take(&self.file, against)
    }

    fn release(&self) {
        lease::release(&self.file);
    }
}

/// Copies extended attributes, including access control lists, as far as permitted.
fn copy_attributes(from: &Path, to: &File) {
    let mut list = [0_u8; 4096];
    let Ok(len) = llistxattr(from, &mut list[..]) else { return };
    for name in list[..len].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        let mut value = vec![0_u8; 65536];
        let Ok(len) = lgetxattr(from, name, &mut value[..]) else { continue };
        fsetxattr(to, name, &value[..len], XattrFlags::empty()).ok();
    }
}

/// The size of the buffer for listing a directory, in bytes; enough for the names of a typical directory.
#[cfg(target_os = "linux")]
const NAMES: usize = 8 << 10;

/// Reads from the handle itself, because `rustix::fs::Dir` would open the directory again.
#[cfg(target_os = "linux")]
fn read_names(handle: &File) -> io::Result<Vec<OsString>> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); NAMES];
    let mut entries = rustix::fs::RawDir::new(handle, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        names.extend(name_of(entry?.file_name()));
    }
    Ok(names)
}

#[cfg(not(target_os = "linux"))]
fn read_names(handle: &File) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(handle)? {
        names.extend(name_of(entry?.file_name()));
    }
    Ok(names)
}

/// A listed name; `None` for `.` and `..`.
fn name_of(listed: &std::ffi::CStr) -> Option<OsString> {
    let name = listed.to_bytes();
    (name != b"." && name != b"..").then(|| OsString::from_vec(name.to_vec()))
}

/// Opens a path; fails if it contains a symbolic link.
#[cfg(target_os = "linux")]
fn open_without_links(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    use rustix::fs::{ResolveFlags, openat2};
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, mode, resolve) {
        // Kernels before 5.6 and some sandboxes lack the call.
        Err(Errno::NOSYS | Errno::PERM) => open_part_by_part(path, flags, mode),
        other => Ok(other?.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    open_part_by_part(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode)
}

/// Opens the directories of the path one by one, so that none can be a symbolic link.
fn open_part_by_part(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    let way = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parts: Vec<&OsStr> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let Some((last, parents)) = parts.split_last() else {
        return Ok(openat(CWD, path, flags, mode)?.into());
    };
    let mut at = openat(CWD, "/", way, Mode::empty())?;
    for part in parents {
        at = openat(&at, *part, way, Mode::empty()).map_err(link_on_the_way)?;
    }
    Ok(openat(&at, *last, flags, mode)?.into())
}

/// Treats a component that is not a directory as a link. With `O_DIRECTORY`, the system reports "not a directory" for
/// links, too.
fn link_on_the_way(error: Errno) -> Errno {
    if error == Errno::NOTDIR { Errno::LOOP } else { error }
}

fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    };
    Stat {
        len: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_ns: nanoseconds(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        ctime_ns: nanoseconds(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        ino: stat.st_ino,
        dev: stat.st_dev,
        mode: stat.st_mode & 0o7777,
        nlink: stat.st_nlink,
        kind,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

fn nanoseconds(seconds: i128, nanos: i128) -> i128 {
    seconds * 1_000_000_000 + nanos
}
