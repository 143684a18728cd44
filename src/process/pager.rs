//! Shows a long text in the user's pager.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Runs a pager over a text and waits until it ends; an error means that it did not start.
///
/// It is not an error if the pager ends before it has read everything. `command` is the user's own, split into words;
/// no shell is involved.
pub fn show(command: &[String], environment: &[(OsString, OsString)], text: &[u8]) -> io::Result<()> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the pager's command is empty"));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().cloned()).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text).ok();
    }
    // The exit code of a pager does not matter.
    child.wait().ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(of: &[&str]) -> Vec<String> {
        of.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn a_pager_gets_the_whole_text_and_its_environment() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seen");
        let environment = [("SEEN".into(), path.clone().into_os_string())];
        let text = "line\n".repeat(100_000);
        show(&words(&["sh", "-c", "cat > \"$SEEN\""]), &environment, text.as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }

    #[test]
    fn a_pager_that_reads_nothing_is_no_error_and_one_that_does_not_start_is() {
        let text = vec![b'a'; 1 << 20];
        show(&words(&["true"]), &[], &text).unwrap();
        assert!(show(&words(&["no-such-pager-here"]), &[], &text).is_err());
        assert!(show(&[], &[], &text).is_err());
    }
}
