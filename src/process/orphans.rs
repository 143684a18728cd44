//! Ends processes that a killed run left running. They are found by the claim in their environment.
//!
//! This module reads `/proc`, which only Linux has. A run can be killed after it has started a process and before it has
//! recorded the process. After `exec`, such a process has the claim in its environment. Before `exec`, it is a copy of
//! the run and holds the lock of the run's log, which `exec` releases.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpgid, getpgrp};

use super::worker::{LOOK_AGAIN, end_group};

/// The longest time that a process is expected to need from `fork` to `exec`.
const STARTING: Duration = Duration::from_secs(1);

/// How much of an environment is read, in bytes.
const LIMIT: u64 = 4 << 20;

/// Ends the process groups of a claim's workers and of its `verify` commands. If `group` is given, other groups of workers
/// are not ended. This process's own group is never ended.
pub(super) fn end(claim: &str, group: Option<Pid>, grace: Duration) {
    let own = getpgrp();
    let group_of = |it| getpgid(Some(it)).ok();
    let working = with("PLANWATCH_CLAIM", claim).into_iter().filter_map(group_of);
    let working = working.filter(|it| group.is_none_or(|group| group == *it));
    let mut groups: Vec<_> =
        working.chain(with("PLANWATCH_VERIFY", claim).into_iter().filter_map(group_of)).collect();
    groups.retain(|it| *it != own);
    groups.sort_unstable_by_key(|it| it.as_raw_nonzero());
    groups.dedup();
    groups.into_iter().for_each(|it| end_group(it, grace));
}

/// Starts a process that writes to the log, and locks the log meanwhile. Another process that has waited for the lock
/// therefore sees the started process after its `exec` or, if the start failed, not at all.
pub(super) fn while_starting<T>(log: &File, start: impl FnOnce() -> T) -> T {
    // On a file system without locks, this fails, and `wait_for_start` cannot wait until the new process has started.
    let is_locked = log.try_lock().is_ok();
    let started = start();
    if is_locked {
        log.unlock().ok();
    }
    started
}

/// Waits while a process that writes to the log is being started, but at most for [`STARTING`].
pub(super) fn wait_for_start(log: &File) {
    let begun = Instant::now();
    while matches!(log.try_lock(), Err(TryLockError::WouldBlock)) && begun.elapsed() < STARTING {
        thread::sleep(LOOK_AGAIN);
    }
    log.unlock().ok();
}

/// The processes that have the claim in this environment variable, as far as this user can read their environments.
fn with(name: &str, claim: &str) -> Vec<Pid> {
    let entry = format!("{name}={claim}");
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = all.flatten().filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let mut environment = Vec::new();
        let file = File::open(format!("/proc/{pid}/environ"));
        let read = file.and_then(|it| it.take(LIMIT).read_to_end(&mut environment));
        read.is_ok() && environment.split(|it| *it == 0).any(|it| it == entry.as_bytes())
    };
    names.filter(has).filter_map(Pid::from_raw).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the test starts what is to be ended")]

    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::ops::run::Workers;
    use crate::process::worker::Processes;

    fn worker(claim: &str) -> Child {
        sleeping("PLANWATCH_CLAIM", claim)
    }

    fn sleeping(name: &str, claim: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env(name, claim).process_group(0);
        let child = command.spawn().expect("sleep starts");
        // The parent continues slightly before Linux shows the child's environment.
        while !group(&child).is_some_and(|it| with(name, claim).contains(&it)) {
            thread::yield_now();
        }
        child
    }

    fn group(of: &Child) -> Option<Pid> {
        i32::try_from(of.id()).ok().and_then(Pid::from_raw)
    }

    #[test]
    fn what_is_being_started_is_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let open = || File::create(home.path().join("log")).unwrap();
        // Holds the lock as a copy of the run does before `exec`.
        let starting = open();
        starting.lock().unwrap();
        let (log, is_started) = (open(), AtomicBool::new(false));
        let (begin, begun) = mpsc::channel();
        let ended = thread::scope(|scope| {
            let is_started = &is_started;
            let worker = scope.spawn(move || {
                begun.recv().unwrap();
                let mut worker = worker("h0000003");
                is_started.store(true, Ordering::SeqCst);
                drop(starting);
                worker.wait().unwrap()
            });
            begin.send(()).unwrap();
            wait_for_start(&log);
            assert!(is_started.load(Ordering::SeqCst), "the start was not waited for");
            Processes::default().end_left("h0000003", None, Some(&log));
            worker.join().unwrap()
        });
        assert_eq!(ended.signal(), Some(15));
    }

    #[test]
    fn the_log_is_locked_while_a_process_is_started() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let (log, other) = (File::create(&path).unwrap(), File::open(&path));
        let other = other.unwrap();
        let is_locked = || matches!(other.try_lock(), Err(TryLockError::WouldBlock));
        assert!(while_starting(&log, is_locked));
        assert!(!is_locked());
    }

    #[test]
    fn only_processes_of_the_claim_are_ended() {
        let (mut mine, mut also, mut other) = (worker("h0000001"), worker("h0000001"), worker("h0000002"));
        let mut check = sleeping("PLANWATCH_VERIFY", "h0000001");
        // The processes are not reaped yet, so they stay in their groups as zombies.
        end("h0000001", group(&mine), Duration::from_millis(1));
        assert_eq!(mine.wait().unwrap().signal(), Some(15));
        assert_eq!(
            check.wait().unwrap().signal(),
            Some(15),
            "a `verify` command has a process group of its own"
        );
        assert!(also.try_wait().unwrap().is_none());
        end("h0000001", None, Duration::from_millis(1));
        assert_eq!(also.wait().unwrap().signal(), Some(15));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
