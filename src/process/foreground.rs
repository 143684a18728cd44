//! Passes the terminal of the board to another planwatch process or to the shell, until the board continues.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, getpgrp, getpid, getsid, kill_current_process_group, kill_process};

/// Runs a program on this terminal until it ends.
pub fn run(program: &Path, words: &[OsString]) -> io::Result<()> {
    Command::new(program).args(words).status().map(drop)
}

/// Whether a shell with job control started this process, so that `fg` can continue it.
pub fn can_stop() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// Stops this process and the others of its job, such as a script that started it, until the shell continues them.
pub fn stop_group() {
    kill_current_process_group(Signal::STOP).ok();
}

/// Stops this process alone, if a shell can continue it.
pub fn stop_self() {
    if can_stop() {
        kill_process(getpid(), Signal::STOP).ok();
    }
}
