//! The user's own editor on one file.

use std::io;
use std::path::Path;
use std::process::Command;

/// Runs an editor in the foreground and returns whether it succeeded.
///
/// `command` is the user's own, split into words; nothing in it comes from a plan, and no shell is involved.
pub fn run(command: &[String], file: &Path) -> io::Result<bool> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the editor's command is empty"));
    };
    let status = Command::new(program).args(arguments).arg(file).status()?;
    Ok(status.success())
}
