//! A script in the foreground: its command is the script's own line, and nothing is ever put into it.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the floor that the ban on starting processes points to"
)]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a command's own answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// To where planwatch's would go.
    Stdout,
    /// Aside, because planwatch itself has something to answer.
    Stderr,
}

/// Runs a command line as `sh -c` in a directory, and returns its exit code as a shell tells it.
pub fn run(command: &str, directory: &Path, answer: Answer) -> io::Result<u8> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(directory);
    if answer == Answer::Stderr {
        shell.stdout(Stdio::from(io::stderr()));
    }
    let status = shell.status()?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code & 0xff).unwrap_or(1))
}
