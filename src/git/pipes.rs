//! Reads and writes the pipes of one git process in one thread.
//!
//! All three pipes are served together, so that neither side waits for the other forever.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How many of the last bytes of standard error are stored.
const MAX_STDERR: usize = 16 << 10;

/// The longest pause between two checks of whether a process has ended, after it closed its output.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Pipes {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The bytes for standard input; the first `n_written` of them are already written.
    input: Vec<u8>,
    n_written: usize,
    /// Whether standard input is closed when everything is written.
    is_last_input: bool,
    stderr_tail: Vec<u8>,
    deadline: Instant,
    limit: Duration,
    /// Whether the time limit starts again with each output on standard output or standard error.
    is_silence_limit: bool,
    has_ended: bool,
}

/// The result of one call of [`Pipes::turn`].
enum Turn {
    Output(usize),
    Ended,
    Other,
}

impl Pipes {
    pub(super) fn start(command: &mut Command, limit: Duration, is_silence_limit: bool) -> io::Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut pipes = Self {
            child,
            stdin,
            stdout,
            stderr,
            input: Vec::new(),
            n_written: 0,
            is_last_input: false,
            stderr_tail: Vec::new(),
            deadline: Instant::now() + limit,
            limit,
            is_silence_limit,
            has_ended: false,
        };
        // If this fails, dropping `pipes` ends the process.
        pipes.do_not_block()?;
        Ok(pipes)
    }

    fn do_not_block(&mut self) -> io::Result<()> {
        for fd in [self.stdin.as_ref().map(AsFd::as_fd), self.stdout.as_ref().map(AsFd::as_fd)] {
            fd.map_or(Ok(()), |it| rustix::io::ioctl_fionbio(it, true))?;
        }
        self.stderr.as_ref().map_or(Ok(()), |it| rustix::io::ioctl_fionbio(it, true))?;
        Ok(())
    }

    /// Adds bytes to standard input. They are written while output is read.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.n_written == self.input.len() {
            self.input.clear();
            self.n_written = 0;
        }
        self.input.extend_from_slice(bytes);
        self.begin_part();
    }

    /// Restarts the time limit, because the caller may have been busy since the last read.
    pub(super) fn begin_part(&mut self) {
        self.deadline = Instant::now() + self.limit;
    }

    fn note_progress(&mut self) {
        if self.is_silence_limit {
            self.begin_part();
        }
    }

    /// Closes standard input as soon as all bytes are written.
    pub(super) fn end_input(&mut self) {
        self.is_last_input = true;
        // Writes what fits into the pipe before the first wait for output.
        self.write();
    }

    /// Reads some output; 0 at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.turn(buffer)? {
                Turn::Output(n) => return Ok(n),
                Turn::Ended => return Ok(0),
                Turn::Other => {}
            }
        }
    }

    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<Turn> {
        if self.stdout.is_none() {
            return Ok(Turn::Ended);
        }
        let (can_write, can_read, can_read_stderr) = self.wait()?;
        if can_read_stderr {
            self.read_stderr();
        }
        if can_write {
            self.write();
        }
        let Some(stdout) = self.stdout.as_mut().filter(|_| can_read) else { return Ok(Turn::Other) };
        match stdout.read(buffer) {
            Ok(0) if !buffer.is_empty() => {
                self.stdout = None;
                Ok(Turn::Ended)
            }
            Ok(n) => {
                self.note_progress();
                Ok(Turn::Output(n))
            }
            Err(error) if is_passing(&error) => Ok(Turn::Other),
            Err(error) => Err(error),
        }
    }

    /// Waits until a pipe is ready. Returns whether standard input, standard output and standard error are ready.
    fn wait(&self) -> io::Result<(bool, bool, bool)> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let stdin = self.stdin.as_ref().filter(|_| self.n_written < self.input.len());
        let stdin = stdin.map(|it| PollFd::new(it, PollFlags::OUT));
        let stdout = self.stdout.as_ref().map(|it| PollFd::new(it, PollFlags::IN));
        let stderr = self.stderr.as_ref().map(|it| PollFd::new(it, PollFlags::IN));
        let (has_stdin, has_stdout) = (stdin.is_some(), stdout.is_some());
        let mut fds: Vec<_> = [stdin, stdout, stderr].into_iter().flatten().collect();
        let left = Timespec::try_from(left).ok();
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|it| !it.revents().is_empty());
        let mut next = |is_there: bool| is_there && ready.next().unwrap_or_default();
        Ok((next(has_stdin), next(has_stdout), next(true)))
    }

    fn write(&mut self) {
        let Some(stdin) = self.stdin.as_mut() else { return };
        match stdin.write(&self.input[self.n_written..]) {
            Ok(n) => self.n_written += n,
            Err(error) if is_passing(&error) => {}
            // The process does not read its input any more; its exit code says why.
            Err(_) => {
                self.n_written = self.input.len();
                self.stdin = None;
            }
        }
        if self.is_last_input && self.n_written == self.input.len() {
            self.stdin = None;
        }
    }

    fn read_stderr(&mut self) {
        let Some(stderr) = self.stderr.as_mut() else { return };
        let mut part = [0; 4096];
        match stderr.read(&mut part) {
            Ok(0) => self.stderr = None,
            Ok(n) => {
                self.stderr_tail.extend_from_slice(&part[..n]);
                let surplus = self.stderr_tail.len().saturating_sub(MAX_STDERR);
                self.stderr_tail.drain(..surplus);
                self.note_progress();
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.stderr = None,
        }
    }

    /// Waits until the process ends. Its output must have been read to the end.
    pub(super) fn end(mut self) -> io::Result<(ExitStatus, String)> {
        self.stdin = None;
        let mut pause = Duration::from_micros(100);
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() >= self.deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.read_stderr();
        };
        self.has_ended = true;
        // A process that git left behind may keep the pipe open, so this does not wait until the pipe is closed. All that
        // git wrote can be read now.
        let mut n_before = usize::MAX;
        while self.stderr.is_some()
            && self.stderr_tail.len() != n_before
            && self.stderr_tail.len() < MAX_STDERR
        {
            n_before = self.stderr_tail.len();
            self.read_stderr();
        }
        Ok((status, String::from_utf8_lossy(&self.stderr_tail).into_owned()))
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        if !self.has_ended {
            // Errors are ignored: the process may have ended already.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
