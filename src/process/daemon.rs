//! planwatch itself as a process without a terminal.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the floor that the ban on starting processes points to"
)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// How a start came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It runs, and said this line on its standard output.
    Ready(String),
    /// It ended before it said anything.
    Failed(Option<i32>),
}

/// Starts a program that outlives this process, and waits until it says a line; what it says on stderr goes to `log`.
///
/// The program leaves the session and the terminal by itself ([`leave_terminal`]).
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

/// Makes this process the first of a session without a terminal, so that closing one does not end it.
///
/// It fails only for a process that is the first of its group already, which has a session of its own.
pub fn leave_terminal() {
    rustix::process::setsid().ok();
}

/// Lets nobody wait for more on standard output.
pub fn close_output() -> io::Result<()> {
    let nothing = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(())
}
