//! The floors that `CONTRIBUTING.md` defines: the minimal work for each task, without planwatch.

use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawDir, flock, openat, statat};

use super::corpus::Corpus;

/// The size of a usual file in bytes.
const USUAL: usize = 1_500;

/// How many directories a thread takes at a time.
const SHARE: usize = 16;

/// read2: opens every file and reads every byte, with two threads.
pub(crate) fn read2(corpus: &Corpus) -> f64 {
    each_file(corpus, 2, &|directory, name, buffer| {
        let file =
            openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("it opens");
        let mut total = 0;
        loop {
            let n = rustix::io::read(&file, &mut *buffer).expect("it can be read");
            total += n;
            // A short read is the end of a regular file.
            if n < buffer.len() {
                return total;
            }
        }
    })
}

/// stat1: calls stat on every file, with one thread.
pub(crate) fn stat1(corpus: &Corpus) -> f64 {
    each_file(corpus, 1, &|directory, name, _| {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).expect("it is there");
        usize::try_from(stat.st_size).unwrap_or(0)
    })
}

type Visit = dyn Fn(&OwnedFd, &CStr, &mut [u8]) -> usize + Sync;

/// How many seconds it takes to visit every file of every plan.
fn each_file(corpus: &Corpus, threads: usize, visit: &Visit) -> f64 {
    let started = Instant::now();
    let root = directory(CWD, &corpus.plans);
    let mut plans: Vec<CString> = Vec::new();
    entries(&root, |name, kind| {
        if kind == FileType::Directory && !name.to_bytes().starts_with(b".") {
            plans.push(name.to_owned());
        }
    });
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let (mut buffer, mut total) = (vec![0; 64 << 10], 0);
        loop {
            let from = next.fetch_add(SHARE, Ordering::Relaxed);
            let Some(share) = plans.get(from..plans.len().min(from + SHARE)).filter(|it| !it.is_empty())
            else {
                break;
            };
            for name in share {
                let plan = directory(&root, name.as_c_str());
                entries(&plan, |name, kind| {
                    if kind != FileType::Directory {
                        total += visit(&plan, name, &mut buffer);
                    }
                });
            }
        }
        bytes.fetch_add(total, Ordering::Relaxed);
    };
    match threads {
        1 => work(),
        n => std::thread::scope(|scope| (0..n).for_each(|_| drop(scope.spawn(work)))),
    }
    assert!(bytes.into_inner() > 0, "there are files");
    started.elapsed().as_secs_f64()
}

fn directory(base: impl std::os::fd::AsFd, path: impl rustix::path::Arg) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(base, path, flags, Mode::empty()).expect("it opens")
}

fn entries(directory: &OwnedFd, mut visit: impl FnMut(&CStr, FileType)) {
    let mut buffer = [MaybeUninit::uninit(); 32 << 10];
    let mut reader = RawDir::new(directory, &mut buffer);
    while let Some(entry) = reader.next() {
        let entry = entry.expect("it can be listed");
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            visit(entry.file_name(), entry.file_type());
        }
    }
}

/// Whether a power cut can undo the rename.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Name {
    MayBeLost,
    Synced,
}

/// F: the cost of replacing a file and syncing its bytes.
pub(crate) fn replace(place: &Path, n: usize, name: Name) -> f64 {
    let (path, temporary) = (place.join("floor"), place.join(format!("floor-{n}")));
    let bytes = vec![b'x'; USUAL];
    let started = Instant::now();
    let mut file = File::create(&temporary).expect("it can be made");
    file.write_all(&bytes).expect("it can be written");
    file.sync_all().expect("it can be synced");
    fs::rename(&temporary, &path).expect("it can be renamed");
    if name == Name::Synced {
        File::open(place).and_then(|it| it.sync_all()).expect("it can be synced");
    }
    started.elapsed().as_secs_f64()
}

/// C: one of several resident processes takes the lock and replaces a file once.
pub(crate) fn locked_replace(place: &Path, n: usize) -> f64 {
    let started = Instant::now();
    let lock = OpenOptions::new().create(true).write(true).truncate(false).open(place.join("lock"));
    let lock = lock.expect("it can be opened");
    flock(&lock, FlockOperation::LockExclusive).expect("it can be locked");
    replace(place, n, Name::MayBeLost);
    drop(lock);
    started.elapsed().as_secs_f64()
}

/// E: the minimal time until a write to a file is visible in a database that another thread updates.
pub(crate) struct Echo {
    file: PathBuf,
    database: Connection,
}

impl Echo {
    /// Starts to watch. The thread ends with the process.
    pub(crate) fn begin(place: &Path) -> Self {
        let place = place.join("echo");
        fs::create_dir_all(&place).expect("it can be made");
        let (file, path) = (place.join("file.md"), place.join("database"));
        fs::write(&file, text(0)).expect("it can be written");
        for suffix in ["", "-wal", "-shm"] {
            fs::remove_file(format!("{}{suffix}", path.display())).ok();
        }
        let updated = Connection::open(&path).expect("SQLite opens it");
        let schema = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
            CREATE TABLE step (id INTEGER PRIMARY KEY, status TEXT, body TEXT);
            INSERT INTO step VALUES (1, '0', '');";
        updated.execute_batch(schema).expect("it can be made");
        let queue = inotify::init(CreateFlags::CLOEXEC).expect("inotify");
        inotify::add_watch(&queue, &place, WatchFlags::CLOSE_WRITE).expect("it can be watched");
        let watched = file.clone();
        std::thread::spawn(move || update_on_events(&queue, &watched, &updated));
        Self { file, database: Connection::open(&path).expect("SQLite opens it") }
    }

    /// The seconds from before the write until a query shows it.
    pub(crate) fn seconds(&self, n: usize) -> f64 {
        let (text, wanted) = (text(n), n.to_string());
        let mut query = self.database.prepare_cached("SELECT status FROM step WHERE id = 1").expect("SQL");
        let started = Instant::now();
        let mut file = OpenOptions::new().write(true).open(&self.file).expect("it is there");
        file.write_all(text.as_bytes()).expect("it can be written");
        drop(file);
        while query.query_row([], |row| row.get::<_, String>(0)).expect("a row") != wanted {
            std::thread::yield_now();
        }
        started.elapsed().as_secs_f64()
    }
}

/// Copies the file into the database after each write.
fn update_on_events(queue: &OwnedFd, file: &Path, database: &Connection) {
    let mut buffer = [MaybeUninit::uninit(); 4 << 10];
    let mut events = inotify::Reader::new(queue, &mut buffer);
    let mut update = database.prepare("UPDATE step SET status = ?1, body = ?2 WHERE id = 1").expect("SQL");
    while let Ok(event) = events.next() {
        if event.file_name() != Some(c"file.md") {
            continue;
        }
        let text = fs::read_to_string(file).expect("it is there");
        let status = text.lines().find_map(|it| it.strip_prefix("status: ")).expect("a status").trim();
        update.execute([status, &text]).expect("it can be updated");
    }
}

/// The length is the same for every number, because the text overwrites the old one.
fn text(n: usize) -> String {
    format!("---\nstatus: {n:<8}\n---\n{}", "A line of a usual step.\n".repeat(60))
}

/// Syncs all earlier writes, so that they do not slow the next fsync.
pub(crate) fn quiet_disk(corpus: &Corpus) {
    rustix::fs::syncfs(directory(CWD, &corpus.plans)).expect("it can be synced");
}

/// Waits until the watcher is idle again.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(3));
}
