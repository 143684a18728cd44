//! planwatch itself as a process in front of the board.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

/// Runs a program on this terminal until it ends.
pub fn run(program: &Path, words: &[OsString]) -> io::Result<()> {
    Command::new(program).args(words).status().map(drop)
}
