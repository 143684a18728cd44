//! Starts planwatch itself in the background.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It runs, and printed this line.
    Ready(String),
    /// It ended before it printed anything.
    Failed(Option<i32>),
}

/// Starts a program that outlives this process, and waits until it prints a line; its stderr goes to `log`.
///
/// The program must leave the session and the terminal ([`leave_terminal`]).
pub fn start(program: &Path, arguments: &[OsString], log: File) -> io::Result<Started> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn()?;
    let mut line = String::new();
    if let Some(said) = child.stdout.take() {
        BufReader::new(said).read_line(&mut line)?;
    }
    if line.is_empty() { Ok(Started::Failed(child.wait()?.code())) } else { Ok(Started::Ready(line)) }
}

/// Makes this process the leader of a new session without a terminal, so that closing the terminal does not end it.
///
/// This fails only for the leader of a process group. A process that [`start`] started is not one.
pub fn leave_terminal() {
    rustix::process::setsid().ok();
}

/// Closes standard output, so that no reader waits for more.
pub fn close_output() -> io::Result<()> {
    let nothing = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(())
}
