//! One plans directory with two state directories, as in two containers. Other tests here check that other users have no
//! access to the state and to the socket.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and read files")]
#![expect(clippy::unwrap_used, reason = "a failed step of the test is a failed test")]

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use planwatch::disk::{Disk, DiskFile, FileOp, Open, PlansDir, RealDisk, Rename, Stat};

use crate::support::{Place, Ran, lines_of};

/// The binary with another state directory and another path of the plans, as in another container.
fn elsewhere(place: &Place) -> Command {
    let mut command = place.command();
    command.env("XDG_STATE_HOME", place.top().join("home/other"));
    let path = place.top().join("path");
    if !path.exists() {
        symlink(place.work(), &path).ok();
    }
    command.current_dir(path);
    command
}

fn run_elsewhere(place: &Place, line: &str) -> Ran {
    Ran::of(elsewhere(place).args(line.split_whitespace()).output().expect("the binary starts"))
}

fn place_with(steps: usize) -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for n in 1..=steps {
        place.write(&format!("plans/p/step-{n}.md"), format!("# Step {n}\n"));
    }
    place.write("plans/q/plan.md", "# Q\n");
    place.write("plans/q/step-1.md", "# One\n");
    place
}

fn names(path: &Path) -> Vec<String> {
    let names = path.read_dir().unwrap().flatten().map(|it| it.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn eight_claimers_with_two_state_directories_get_different_steps() {
    const STEPS: usize = 24;
    let place = place_with(STEPS);
    let work = |n: usize| {
        let mut claimed = Vec::new();
        loop {
            let mut command = if n.is_multiple_of(2) { place.command() } else { elsewhere(&place) };
            let ran = Ran::of(command.args(["claim", "p", "--json"]).output().unwrap());
            match ran.code {
                0 => claimed.push(ran.json()["step"]["id"].as_str().unwrap().to_owned()),
                7 => return claimed,
                _ => panic!("{ran:?}"),
            }
        }
    };
    let claimed: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|n| scope.spawn(move || work(n))).collect();
        workers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    let steps: HashSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), steps.len()), (STEPS, STEPS), "{claimed:?}");
    // Nothing was moved, and each state directory has its own files.
    assert_eq!(names(&place.file("plans")), [".planwatch", "p", "q"]);
    assert_eq!(names(&place.file("plans/.planwatch/by")).len(), 1);
}

#[test]
fn each_state_directory_has_its_own_undo_index_and_daemon() {
    let place = place_with(2);
    assert_eq!(place.run("done p:1").code, 0);
    assert_eq!(run_elsewhere(&place, "done p:2").code, 0);
    assert_eq!(run_elsewhere(&place, "undo").code, 0);
    assert_eq!(run_elsewhere(&place, "undo").code, 1, "it has no further changes");
    assert_eq!(place.run("list --json").stdout, run_elsewhere(&place, "list --json").stdout);
    assert_eq!(place.run("undo").code, 0);
    assert_eq!(place.text("plans/p/step-1.md"), "# Step 1\n");
    let by = place.file("plans/.planwatch/by");
    let own = by.join(&names(&by)[0]);
    assert!(names(&own).iter().any(|it| it.starts_with("index-v")));
    let doctor = run_elsewhere(&place, "doctor");
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    let at = own.strip_prefix(place.work()).unwrap();
    assert!(doctor.stdout.contains(&format!("state directory       {}", at.display())), "{}", doctor.stdout);
    // There is a daemon for each state directory, and the commands with this directory find it.
    for (run, is_there) in [(true, &own), (false, &place.file("plans/.planwatch"))] {
        let line = |line: &str| if run { run_elsewhere(&place, line) } else { place.run(line) };
        let started = line("watch --detach");
        assert_eq!(started.code, 0, "{started:?}");
        assert!(is_there.join("daemon.sock").exists());
        assert!(line("doctor").stdout.contains("watching process      "), "{:?}", line("doctor"));
    }
    let step = |run: Ran| run.json()["status"].as_str().unwrap().to_owned();
    assert_eq!(place.run("done p:1").code, 0);
    assert_eq!(step(run_elsewhere(&place, "show p:1 --json")), "completed");
    assert_eq!(run_elsewhere(&place, "reopen p:1").code, 0);
    assert_eq!(step(place.run("show p:1 --json")), "pending");
    assert_eq!((place.run("watch --stop").code, run_elsewhere(&place, "watch --stop").code), (0, 0));
}

#[test]
fn git_ignores_the_state() {
    let place = place_with(1);
    let git = |line: &str| {
        let mut command = Command::new("git");
        place.close_environment(&mut command);
        Ran::of(command.args(line.split(' ')).output().unwrap())
    };
    git("init -q").ok();
    // A directory that came with the repository.
    place.write("plans/.planwatch/stamp", "0".repeat(64));
    git("add -Af .").ok();
    git("-c user.name=a -c user.email=a@b commit -q -m all").ok();
    for n in 0..3 {
        assert_eq!(place.run("note q:1 hello").code, 0);
        assert_eq!(run_elsewhere(&place, "note q:1 hello").code, 0);
        assert_eq!(git("status --short -uall").stdout, " M plans/q/step-1.md\n", "{n}");
    }
    assert_eq!(place.text("plans/.planwatch/stamp"), "0".repeat(64));
    assert_eq!(names(&place.file("plans/.planwatch/by")).len(), 2);
}

/// The real disk. Before the rename with this number, counted from 1, the process prints a line and waits to be killed.
#[derive(Debug)]
struct Halting(RealDisk, AtomicU32);

const HALTING: &str = "PLANWATCH_TEST_HALT_IN";

impl Disk for Halting {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.canonical(path)
    }
    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        self.0.lstat(path)
    }
    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.read_link(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        self.0.list(dir)
    }
    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.names(dir)
    }
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        self.0.open(path, how)
    }
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.make_dir(path, mode)
    }
    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 1 {
            io::stdout().write_all(b"half\n")?;
            io::stdin().read_to_end(&mut Vec::new())?;
        }
        self.0.rename(from, to, how)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.set_mode(path, mode)
    }
    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        self.0.lock(path, patience)
    }
    fn now_ns(&self) -> i128 {
        self.0.now_ns()
    }
    fn pause(&self, time: Duration) {
        self.0.pause(time);
    }
    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.random(bytes)
    }
}

/// A place in which a process was killed between the renames of steps 1 and 2 of `p`.
fn half_moved() -> Place {
    let place = place_with(3);
    // The first lock creates directories with renames, which would count.
    assert_eq!(place.run("note q:1 hello").code, 0);
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "shared::a_change_of_a_killed_process_is_completed_with_its_state_directory",
            "--nocapture",
        ])
        .env(HALTING, place.top())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = lines_of(other.stdout.take().unwrap());
    while !output.next().contains("half") {}
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(place.file("plans/p/step-11.md").exists() && place.file("plans/p/step-2.md").exists());
    place
}

/// The other process, with the state directory of [`Place::run`].
fn move_half(top: &Path) {
    let (root, state) = (top.join("project/plans"), top.join("home/state"));
    let disk = Arc::new(Halting(RealDisk, AtomicU32::new(2)));
    let plans = PlansDir::open(disk, &root, Some(&state)).unwrap();
    let path = |n: u32| PathBuf::from(format!("p/step-{n}.md"));
    let ops = [1, 2].map(|n| FileOp::Rename { from: path(n), to: path(n + 10) });
    plans.lock(&mut || {}).unwrap().batch("move", "2026-11-21T12:00:00Z", ops.to_vec()).unwrap();
}

#[test]
fn a_change_of_a_killed_process_is_completed_with_its_state_directory() {
    if let Some(top) = std::env::var_os(HALTING) {
        move_half(Path::new(&top));
        panic!("it should have been killed");
    }
    let place = half_moved();
    for line in ["done p:2", "note p:11 hello", "set p:2 title X"] {
        let refused = run_elsewhere(&place, line);
        assert_eq!(refused.code, 4, "{refused:?}");
        for part in [
            "error[locked]",
            "is part of an unfinished `move`, begun at 2026-11-21T12:00:00Z",
            "--discard-journal ",
        ] {
            assert!(refused.stderr.contains(part), "{line}: {}", refused.stderr);
        }
    }
    for line in ["done p:3", "note q:1 there", "list p", "show p:2"] {
        let ran = run_elsewhere(&place, line);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{line}");
    }
    let doctor = run_elsewhere(&place, "doctor");
    assert!(doctor.code == 6 && doctor.stdout.contains("unfinished changes"), "{}", doctor.stdout);
    // Reading does not complete the change; writing does.
    assert!(place.run("list p").code == 0 && place.file("plans/p/step-2.md").exists());
    let finished = place.run("note q:1 again");
    assert!(finished.code == 0 && finished.stderr.contains("`move` of 2026-11-21T12:00:00Z was interrupted"));
    assert_eq!(names(&place.file("plans/p")), ["plan.md", "step-11.md", "step-12.md", "step-3.md"]);
    let written = run_elsewhere(&place, "note p:12 hello");
    assert_eq!((written.code, written.stderr.as_str()), (0, ""));
    assert_eq!(run_elsewhere(&place, "doctor").code, 0);
}

#[test]
fn a_change_of_a_killed_process_is_discarded_only_by_its_id() {
    let place = half_moved();
    let doctor = run_elsewhere(&place, "doctor --json");
    let checks = doctor.json()["checks"].as_array().unwrap().clone();
    let check = checks.into_iter().find(|it| it["name"] == "unfinished changes").unwrap();
    let value = check["value"].as_str().unwrap();
    let (id, rest) = value.split_once(':').unwrap();
    assert_eq!(
        rest,
        " `move` of 2026-11-21T12:00:00Z in plans/.planwatch/journal, on plans/p/step-11.md, plans/p/step-12.md"
    );
    let unknown = run_elsewhere(&place, "doctor --discard-journal 0000");
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert!(unknown.stderr.contains("there is no unfinished change `0000`"), "{unknown:?}");
    assert_eq!(run_elsewhere(&place, "done p:2").code, 4);
    let discarded = run_elsewhere(&place, &format!("doctor --discard-journal {id}"));
    assert_eq!(discarded.code, 0, "{discarded:?}");
    for part in [
        "rename from plans/p/step-2.md",
        "rename to plans/p/step-12.md",
        "is discarded; the part that was done stays",
    ] {
        assert!(discarded.stdout.contains(part), "{}", discarded.stdout);
    }
    assert_eq!(run_elsewhere(&place, "done p:2").code, 0);
    let after = place.run("note p:2 hello");
    assert_eq!((after.code, after.stderr.as_str()), (0, ""), "there is nothing left to complete");
    assert_eq!(names(&place.file("plans/p")), ["plan.md", "step-11.md", "step-2.md", "step-3.md"]);
}

/// The files and directories below `dir` that other users have access to, with their modes.
fn open_to_others(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in dir.read_dir().unwrap().flatten() {
        let (path, stat) = (entry.path(), entry.metadata().unwrap());
        if stat.mode() & 0o077 != 0 && !stat.is_symlink() {
            found.push(format!("{} {:o}", path.display(), stat.mode() & 0o7777));
        }
        // Stored versions have the modes of the plan files, because they can become these files again.
        if stat.is_dir() && !path.ends_with("displaced") && !path.ends_with("undo") {
            found.extend(open_to_others(&path));
        }
    }
    found
}

#[test]
fn only_the_user_has_access_to_the_state() {
    let place = place_with(3);
    let own = place.file("plans/.planwatch");
    for line in [
        "claim p",
        "search step",
        "done p:2",
        "next",
        "undo",
        "watch --detach --http=127.0.0.1:0",
        "note p:3 x",
    ] {
        let ran = place.run(line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    assert_eq!(run_elsewhere(&place, "claim p").code, 0);
    assert_eq!(place.run("watch --stop").code, 0);
    assert_eq!(own.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(open_to_others(&own), [""; 0]);
    // If the directory has other permissions, the next write corrects them.
    let mut open = vec![own.clone()];
    while let Some(path) = open.pop() {
        let stat = path.symlink_metadata().unwrap();
        let mode = if stat.is_dir() { 0o755 } else { 0o644 };
        if stat.is_dir() && !path.ends_with("by") {
            open.extend(path.read_dir().unwrap().flatten().map(|it| it.path()));
        }
        if !path.ends_with("by") {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
    }
    assert!(place.run("list").code == 0 && own.metadata().unwrap().mode() & 0o777 == 0o755);
    assert_eq!(place.run("note p:3 y").code, 0);
    assert_eq!(own.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(open_to_others(&own), [""; 0]);
}

/// The path of the plans is too long for a socket, so the socket is in the runtime directory.
#[test]
fn an_unsafe_directory_for_sockets_is_refused_with_a_warning() {
    let place = place_with(1);
    let deep = place.work().join("x".repeat(100));
    std::fs::create_dir(&deep).unwrap();
    std::fs::rename(place.file("plans"), deep.join("plans")).unwrap();
    let runtime = place.top().join("run");
    let run = |line: &str| {
        let mut command = place.command();
        command.current_dir(&deep).env("XDG_RUNTIME_DIR", &runtime).args(line.split(' '));
        Ran::of(command.output().unwrap())
    };
    let sockets = runtime.join("planwatch");
    std::fs::create_dir(&runtime).unwrap();
    let elsewhere = place.top().join("elsewhere");
    std::fs::DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
    symlink(&elsewhere, &sockets).unwrap();
    let refused = |why: &str| {
        let warning =
            format!("the directory for sockets `{}` is not used, because it {why}", sockets.display());
        let started = run("watch --detach");
        assert_eq!(started.code, 0, "{started:?}");
        assert!(started.stderr.contains(&format!("warning: {warning}")), "{started:?}");
        let doctor = run("doctor");
        assert!(
            doctor.code == 6 && doctor.stdout.replace("\n                        ", " ").contains(&warning),
            "{doctor:?}"
        );
        assert_eq!(run("list p").code, 0);
        let log = std::fs::read_to_string(deep.join("plans/.planwatch/daemon.log")).unwrap();
        assert!(log.contains(&warning), "{log}");
        assert_eq!(names(&elsewhere), [""; 0]);
        let stop = run("watch --stop");
        assert!(stop.code == 4 && stop.stderr.contains("has no socket"), "{stop:?}");
        let pid = started.stdout.split_whitespace().find_map(|it| it.parse::<u32>().ok()).unwrap();
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    };
    refused("is a symbolic link");
    std::fs::remove_file(&sockets).unwrap();
    std::fs::create_dir(&sockets).unwrap();
    std::fs::set_permissions(&sockets, PermissionsExt::from_mode(0o755)).unwrap();
    refused("has permissions for other users");
    std::fs::set_permissions(&sockets, PermissionsExt::from_mode(0o700)).unwrap();
    let started = run("watch --detach");
    assert_eq!((started.code, started.stderr.as_str()), (0, ""));
    assert_eq!(run("watch --stop").code, 0);
}
