//! Runs a script in the foreground: its command line is used as it is, and nothing is ever inserted into it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a command's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Stdout,
    /// To standard error, because planwatch prints its own result.
    Stderr,
}

/// Runs a command line with `sh -c` in a directory, and returns its exit code as a shell reports it.
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
