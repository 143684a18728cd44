//! Interrupted changes of several files: every reading command reports them, and the next writing command completes or
//! undoes them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use planwatch::disk::{Disk, DiskFile, FileOp, Open, PlansDir, RealDisk, Rename, Stat};

use crate::support::{Place, tree};

/// The real disk, until the given number of renames. After that every change fails, as after a kill.
#[derive(Debug)]
struct Dying {
    renames: AtomicI64,
}

impl Dying {
    fn lives(&self) -> io::Result<()> {
        if self.renames.load(Ordering::Relaxed) > 0 { Ok(()) } else { Err(io::Error::other("killed")) }
    }
}

impl Disk for Dying {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        RealDisk.canonical(path)
    }

    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        RealDisk.lstat(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        RealDisk.read_link(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        RealDisk.list(dir)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        RealDisk.names(dir)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        if how != Open::Read {
            self.lives()?;
        }
        RealDisk.open(path, how)
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.lives().and_then(|()| RealDisk.make_dir(path, mode))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.lives().and_then(|()| RealDisk.set_mode(path, mode))
    }

    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        self.lives()?;
        self.renames.fetch_sub(1, Ordering::Relaxed);
        RealDisk.rename(from, to, how)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.lives().and_then(|()| RealDisk.link(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lives().and_then(|()| RealDisk.remove(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.lives().and_then(|()| RealDisk.remove_dir(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.lives().and_then(|()| RealDisk.sync_dir(dir))
    }

    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        RealDisk.lock(path, patience)
    }

    fn now_ns(&self) -> i128 {
        RealDisk.now_ns()
    }

    fn pause(&self, time: Duration) {
        RealDisk.pause(time);
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        RealDisk.random(bytes)
    }
}

fn place() -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "# One\n");
    place.write("plans/p/step-2.md", "# Two\n");
    assert_eq!(place.run("set p priority high").code, 0);
    place
}

/// The plans for a process that is killed after the given number of renames.
fn dying(place: &Place, renames: i64) -> PlansDir {
    let disk = Arc::new(Dying { renames: AtomicI64::new(renames) });
    PlansDir::open(disk, &place.file("plans"), Some(&place.top().join("home/state"))).expect("it is there")
}

/// A change like those of `remove` and `squash`: one file is moved, and another one is changed. The process is killed after
/// the move.
fn squash(place: &Place) {
    let plans = dying(place, 1);
    let path = PathBuf::from;
    let ops = vec![
        FileOp::Rename { from: path("p/step-2.md"), to: path("_archive/p/removed-1/step-2.md") },
        FileOp::Change {
            path: path("p/step-1.md"),
            before: b"# One\n".to_vec(),
            after: b"# Both\n".to_vec(),
        },
    ];
    let mut locked = plans.lock(&mut || {}).expect("it is free");
    let error = locked.batch("squash", "2026-11-21T11:00:00Z", ops).expect_err("it was killed");
    assert_eq!(error.code(), "unfinished");
    assert!(
        error.to_string().ends_with("and the changes made before the error could not be undone yet"),
        "{error}"
    );
    drop(locked);
    // A process that another test starts at this moment holds the lock, too, until it executes its program.
    while plans.pending().is_none() {
        std::thread::yield_now();
    }
}

const SAID: &str = "`squash` of 2026-11-21T11:00:00Z was interrupted; the next writing command completes or undoes this change; \
                    `planwatch check --fix` does this at once";

#[test]
fn every_reading_command_reports_an_interrupted_change_and_changes_nothing() {
    let place = place();
    assert!(!place.run("status").stdout.contains("interrupted"));
    squash(&place);
    let left = tree(&place.work());
    for words in ["list p", "list", "show p:1", "next p", "search One", "undo --list"] {
        let ran = place.run(words);
        assert_eq!(
            (ran.code, ran.stderr.replace("\n      ", " ")),
            (0, format!("note: {SAID}\n")),
            "{words}"
        );
    }
    let status = place.run("status");
    assert!(status.stdout.contains(SAID) && status.stderr.is_empty(), "{status:?}");
    let interrupted = &place.run("status --json").json()["interrupted"];
    assert_eq!(interrupted["verb"], "squash");
    let paths = ["plans/_archive/p/removed-1/step-2.md", "plans/p/step-1.md", "plans/p/step-2.md"];
    assert_eq!(interrupted["paths"], serde_json::json!(paths));
    assert_eq!(place.run("check").stderr, format!("hint: {SAID}\n"));
    assert_eq!(place.run("check --json").json()["hints"], serde_json::json!([SAID]));
    assert_eq!(tree(&place.work()), left);
    {
        // The process that has the lock may be making the change at this moment.
        let plans = PlansDir::open(Arc::new(RealDisk), &place.file("plans"), None).expect("it is there");
        let _lock = RealDisk.lock(&plans.root().join(".planwatch/lock"), Duration::ZERO).expect("it is free");
        assert!(!place.run("status").stdout.contains("interrupted"));
    }
    let fixed = place.run("check --fix");
    assert!(
        fixed
            .stderr
            .starts_with("note: `squash` of 2026-11-21T11:00:00Z was interrupted and is now complete"),
        "{fixed:?}"
    );
    assert_eq!(place.text("plans/p/step-1.md"), "# Both\n");
    assert_eq!(place.text("plans/_archive/p/removed-1/step-2.md"), "# Two\n");
    assert!(!place.run("status").stdout.contains("interrupted"));
    assert_eq!(place.run("undo").code, 0);
    assert_eq!(place.text("plans/p/step-2.md"), "# Two\n");
    assert!(!place.file("plans/_archive").exists());
}

#[test]
fn an_interrupted_undo_is_completed_and_not_undone() {
    let place = place();
    let before = tree(&place.work());
    assert_eq!(place.run("new Title One Two --quiet").code, 0);
    assert_eq!(place.run("squash title 1 2 --title Both --quiet").code, 0);
    let squashed = tree(&place.work());
    let plans = dying(&place, 1);
    plans.lock(&mut || {}).expect("it is free").undo().expect_err("it was killed");
    assert_ne!(tree(&place.work()), squashed);
    let noted = place.run("note p:1 Hello");
    assert!(noted.stderr.contains("was interrupted and is now complete"), "{noted:?}");
    assert!(!place.file("plans/_archive").exists());
    let verbs = |place: &Place| {
        let list = place.run("undo --list --json").json();
        let changes = list["changes"].as_array().expect("a list").clone();
        changes.iter().map(|it| it["verb"].as_str().expect("a word").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(verbs(&place), ["note", "new", "set"]);
    for left in [&["new", "set"][..], &["set"]] {
        assert_eq!(place.run("undo").code, 0);
        assert_eq!(verbs(&place), left);
    }
    assert_eq!(tree(&place.work()), before);
}
