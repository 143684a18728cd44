//! Sends a prompt to an agent's standard input, and reads the answer from its standard output.
//!
//! The agent's process leads a process group. The whole group is ended with it, so that no process that the agent
//! started continues in the background.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::ops::draft::{AgentOutput, Answerer, End, Waited};
use crate::process::worker::why_no_program;

/// How long a group may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How long to read output after the process has ended, if other processes have its pipe open.
const OUTPUT_AFTER_EXIT: Duration = Duration::from_secs(1);

/// Standard output and standard error.
const STREAMS: usize = 2;

/// The maximum length of an answer, in bytes. A longer answer is an error.
const MOST: usize = 2 << 20;

/// How many bytes of the end of standard error are retained.
const MAX_STDERR: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    pub words: &'static [&'static str],
    /// How its options were verified.
    pub checked: &'static str,
    /// How many bytes of a conversation it accepts.
    pub conversation: usize,
}

/// The known agents, each in a read-only mode.
pub const PRESETS: [Preset; 3] = [
    Preset {
        name: "claude",
        words: &["claude", "-p", "--permission-mode", "plan", "--permission-prompts", "none"],
        checked: "options checked against the help of Claude Code 2.1.330; not tested with a model",
        conversation: 400_000,
    },
    Preset {
        name: "codex",
        words: &["codex", "exec", "--sandbox", "read-only", "--skip-git-repo-check", "-"],
        checked: "options checked against the help of codex-cli 0.169.0; not tested with a model",
        conversation: 400_000,
    },
    Preset {
        name: "gemini",
        words: &["gemini", "--approval-mode", "plan"],
        checked: "options checked against the help of Gemini CLI 0.61.0; not tested with a model",
        conversation: 1_500_000,
    },
];

/// How many bytes of a conversation a custom command gets.
pub const CONVERSATION: usize = 400_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerCommand {
    pub words: Vec<String>,
    pub directory: PathBuf,
    pub timeout: Duration,
}

impl AnswerCommand {
    /// The words that run a user's command line in a shell; nothing is ever inserted into it.
    pub fn of_shell(line: &str) -> Vec<String> {
        ["sh", "-c", line].map(str::to_owned).to_vec()
    }
}

#[derive(PartialEq)]
enum Message {
    Exited,
    /// One of the two output streams has ended.
    StreamEnded,
    TooMuch,
    Stop,
}

/// Stops an [`Agent`], from another thread.
#[derive(Debug, Clone, Default)]
pub struct Stopper(Arc<Mutex<Stopping>>);

#[derive(Debug, Default)]
struct Stopping {
    times: usize,
    listener: Option<Sender<Message>>,
}

impl Stopper {
    /// Ends the current request to the agent and refuses all later ones. A second call skips the grace period.
    pub fn stop(&self) {
        let mut stopping = held(&self.0);
        stopping.times += 1;
        // Between two requests there is no receiver. The next request checks `times` before it starts a process.
        stopping.listener.as_ref().map(|it| it.send(Message::Stop));
    }

    fn listen(&self, listener: Option<Sender<Message>>) -> usize {
        let mut stopping = held(&self.0);
        stopping.listener = listener;
        stopping.times
    }
}

/// An agent, with a new process for each prompt.
#[derive(Debug)]
pub struct Agent {
    pub command: AnswerCommand,
    pub stopper: Stopper,
}

impl Answerer for Agent {
    fn ask(&mut self, prompt: &str) -> AgentOutput {
        let (sender, receiver) = channel();
        if self.stopper.listen(Some(sender.clone())) > 0 {
            return AgentOutput::without_output(End::Interrupted);
        }
        let asked = match start(&self.command) {
            Err(error) => {
                AgentOutput::without_output(End::NotStarted(why_no_program(&self.command.words, &error)))
            }
            Ok(child) => converse(child, prompt, self.command.timeout, &sender, &receiver),
        };
        self.stopper.listen(None);
        asked
    }

    fn wait(&mut self, seconds: u64) -> Waited {
        let (sender, receiver) = channel();
        let times = self.stopper.listen(Some(sender));
        let is_over = times == 0
            && receiver.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout);
        self.stopper.listen(None);
        if is_over { Waited::ToTheEnd } else { Waited::Interrupted }
    }
}

fn start(command: &AnswerCommand) -> io::Result<Child> {
    let Some((program, arguments)) = command.words.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let mut it = Command::new(program);
    it.args(arguments).current_dir(&command.directory).process_group(0);
    it.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

type Kept = Arc<Mutex<Vec<u8>>>;

/// Sends the prompt, reads the answer, and ensures that the whole group has ended.
fn converse(
    mut child: Child,
    prompt: &str,
    timeout: Duration,
    sender: &Sender<Message>,
    receiver: &Receiver<Message>,
) -> AgentOutput {
    let Ok(raw) = i32::try_from(child.id()) else { return AgentOutput::without_output(End::Exited(-1)) };
    let Some(group) = Pid::from_raw(raw) else { return AgentOutput::without_output(End::Exited(-1)) };
    let (out, err) = (Kept::default(), Kept::default());
    let prompt = prompt.to_owned();
    if let Some(mut stdin) = child.stdin.take() {
        // A process that does not read its input is not an error.
        thread::spawn(move || drop(stdin.write_all(prompt.as_bytes())));
    }
    if let Some(stdout) = child.stdout.take() {
        let (kept, sender) = (Arc::clone(&out), sender.clone());
        thread::spawn(move || {
            let is_whole = read(stdout, &kept, |it| it.len() <= MOST);
            let end = if is_whole { Message::StreamEnded } else { Message::TooMuch };
            sender.send(end).ok();
        });
    }
    if let Some(stderr) = child.stderr.take() {
        let (kept, sender) = (Arc::clone(&err), sender.clone());
        thread::spawn(move || {
            read(stderr, &kept, |it| {
                it.drain(..it.len().saturating_sub(MAX_STDERR));
                true
            });
            sender.send(Message::StreamEnded).ok();
        });
    }
    let exited = sender.clone();
    thread::spawn(move || {
        // Waits without reaping, so that the process number is not reused.
        waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok();
        exited.send(Message::Exited).ok();
    });
    let (early, n_ended) = until_exit(group, timeout, receiver);
    kill_process_group(group, Signal::KILL).ok();
    until_heard(n_ended, receiver);
    let status = child.wait();
    let text = |kept: &Kept| String::from_utf8_lossy(&held(kept)).into_owned();
    let (stdout, stderr) = (text(&out), text(&err));
    let exited = || status.map_or(-1, |it| it.code().unwrap_or_else(|| 128 + it.signal().unwrap_or(0)));
    AgentOutput { end: early.unwrap_or_else(|| End::Exited(exited())), stdout, stderr }
}

/// Waits until the process has ended and its output is complete. Returns why it was ended early, and how many of its
/// streams have ended.
fn until_exit(group: Pid, timeout: Duration, receiver: &Receiver<Message>) -> (Option<End>, usize) {
    let mut early = None;
    let mut end = Instant::now() + timeout;
    let (mut has_exited, mut n_ended) = (false, 0);
    while !(has_exited && n_ended == STREAMS) {
        let left = end.saturating_duration_since(Instant::now());
        let message = receiver.recv_timeout(left);
        let why = match message {
            Ok(Message::StreamEnded) => {
                n_ended += 1;
                continue;
            }
            Ok(Message::Exited) => {
                has_exited = true;
                end = Instant::now() + OUTPUT_AFTER_EXIT;
                continue;
            }
            // Another process has the pipe open, or the agent did not end after SIGTERM. The caller kills the group.
            Err(_) if has_exited || early.is_some() => break,
            Ok(Message::Stop) if early.is_some() => break,
            Ok(Message::Stop) => End::Interrupted,
            Ok(Message::TooMuch) => End::TooMuch,
            Err(_) => End::TimedOut,
        };
        n_ended += usize::from(why == End::TooMuch);
        if early.is_none() {
            early = Some(why);
            end = Instant::now() + GRACE;
            kill_process_group(group, Signal::TERM).ok();
        }
    }
    (early, n_ended)
}

/// Waits until the rest of the group's output has been read, so that no partial answer is accepted.
///
/// If a process that left the group has a pipe open, the wait ends after [`GRACE`].
fn until_heard(mut n_ended: usize, receiver: &Receiver<Message>) {
    let end = Instant::now() + GRACE;
    while n_ended < STREAMS {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Message::StreamEnded | Message::TooMuch) => n_ended += 1,
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Reads to the end or to an error, and returns true. Returns false as soon as `fits` returns false for the bytes read so
/// far.
fn read(mut from: impl Read, kept: &Kept, fits: impl Fn(&mut Vec<u8>) -> bool) -> bool {
    let mut part = [0; 8192];
    loop {
        match from.read(&mut part) {
            Ok(n) if n > 0 => {
                let mut kept = held(kept);
                kept.extend_from_slice(&part[..n]);
                if !fits(&mut kept) {
                    return false;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return true,
        }
    }
}

/// A poisoned lock is usable, because no statement leaves the value half-changed.
fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(line: &str, seconds: u64) -> Agent {
        let (words, directory) = (AnswerCommand::of_shell(line), PathBuf::from("/"));
        let command = AnswerCommand { words, directory, timeout: Duration::from_secs(seconds) };
        Agent { command, stopper: Stopper::default() }
    }

    #[track_caller]
    fn check(line: &str, seconds: u64, end: &End, stdout: &str, stderr: &str) {
        let asked = agent(line, seconds).ask("the prompt\n");
        assert_eq!(
            (&asked.end, asked.stdout.as_str(), asked.stderr.as_str()),
            (end, stdout, stderr),
            "{line}"
        );
    }

    #[test]
    fn the_prompt_goes_in_and_the_answer_comes_out() {
        check("cat; echo aside >&2", 60, &End::Exited(0), "the prompt\n", "aside\n");
        check("exit 3", 60, &End::Exited(3), "", "");
        check("kill -9 $$", 60, &End::Exited(137), "", "");
    }

    #[test]
    fn a_timeout_ends_the_whole_process_group() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut agent = agent("sleep 1000 & echo $! >child; echo half; wait", 2);
        agent.command.directory = directory.path().to_owned();
        let asked = agent.ask("");
        assert_eq!((asked.end, asked.stdout.as_str()), (End::TimedOut, "half\n"));
        let child = std::process::Command::new("cat").arg(directory.path().join("child")).output().unwrap();
        let child: i32 = String::from_utf8_lossy(&child.stdout).trim().parse().unwrap();
        let stat = std::process::Command::new("cat").arg(format!("/proc/{child}/stat")).output().unwrap();
        let stat = String::from_utf8_lossy(&stat.stdout).into_owned();
        // The child is gone, or waits to be reaped by its new parent.
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }

    #[test]
    fn a_process_that_stays_behind_with_the_pipe_is_not_waited_for() {
        check("sleep 1000 & echo done", 60, &End::Exited(0), "done\n", "");
    }

    #[test]
    fn endless_output_is_cut_off() {
        let asked = agent("yes", 60).ask("");
        assert!(asked.end == End::TooMuch && asked.stdout.len() <= MOST + 8192, "{}", asked.stdout.len());
    }

    #[test]
    fn a_stopped_agent_gets_no_more_questions() {
        let mut agent = agent("sleep 1000", 60);
        let stopper = agent.stopper.clone();
        let asked = thread::scope(|scope| {
            scope.spawn(move || stopper.stop());
            agent.ask("")
        });
        assert_eq!((asked.end, agent.wait(1000)), (End::Interrupted, Waited::Interrupted));
        assert_eq!(agent.ask("").end, End::Interrupted);
        let mut none = agent;
        none.command.words = vec!["/no/such/program".to_owned()];
        none.stopper = Stopper::default();
        let why = "the program `/no/such/program` was not found; is it installed and on the PATH?";
        assert_eq!(none.ask("").end, End::NotStarted(why.to_owned()));
    }
}
