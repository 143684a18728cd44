//! Runs the processes of a run, each in its own process group and with time limits. Afterwards the whole group is ended.
//!
//! A process gets its prompt as a file, by path or on standard input, so that writing the prompt cannot block. The
//! output of the process and its children goes through one pipe; a thread writes it to the log. The main loop waits for
//! output, the exit, a stop request or a limit, whichever comes first. A child that leaves the group cannot block the
//! loop.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

use crate::api::agents::{AgentCommand, PROMPT_VARIABLE, PromptBy};
use crate::disk::{Process, ProcessState, RealDisk};
use crate::git;
use crate::ops::run::{Ended, ExitKind, Job, WorkerEvent, Workers};
use crate::process::orphans;

/// How long a group has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// How long to read output after the group has ended.
const OUTPUT_AFTER_EXIT: Duration = Duration::from_millis(500);

/// The interval at which to check whether a group has ended.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How many bytes of a process's output are logged and reported.
const LOG_LIMIT: u64 = 16 << 20;

/// How many bytes of the end of the output are retained.
const TAIL: usize = 256 << 10;

/// The number of unprocessed chunks of output after which the process has to wait.
const WAITING: usize = 16;

/// Starts processes, until it is stopped.
#[derive(Debug, Default)]
pub struct Processes {
    stop: Arc<Stop>,
}

/// Stops a run's processes from another thread.
#[derive(Debug, Default)]
pub struct Stop {
    is_stopped: AtomicBool,
    running: Mutex<Vec<SyncSender<Message>>>,
}

impl Processes {
    pub fn stopper(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }
}

impl Stop {
    /// Ends all running processes and prevents new ones.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // A receiver with a full queue is awake, and checks `is_stopped` before it waits.
        running.iter().for_each(|it| drop(it.try_send(Message::Stop)));
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    fn listen(&self, sender: &SyncSender<Message>) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(sender.clone());
    }

    fn forget_gone(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .retain(|it| !matches!(it.try_send(Message::Nothing), Err(mpsc::TrySendError::Disconnected(_))));
    }
}

/// The messages that the loop waits for.
#[derive(Debug)]
enum Message {
    Output(Vec<u8>),
    /// No more output follows.
    Silence,
    /// The first process of the group has ended; it is not reaped yet, so its number is not reused.
    Exited,
    Stop,
    Nothing,
}

impl Workers for Processes {
    fn work(&self, job: &Job<'_>, on_event: &dyn Fn(WorkerEvent<'_>)) -> Ended {
        let without_process = |how| Ended { how, exit_code: None, output: Vec::new() };
        if self.is_stopped() {
            return without_process(ExitKind::Stopped);
        }
        match Running::start(job, &self.stop) {
            Err(error) => without_process(ExitKind::NotStarted(why_not_started(job.command, &error))),
            Ok(mut running) => {
                on_event(WorkerEvent::Started(running.child.id()));
                let how = running.watch(job, &self.stop, on_event);
                let ended = running.end(how, job.command, on_event);
                self.stop.forget_gone();
                ended
            }
        }
    }

    fn end_left(&self, claim: &str, leader: Option<&Process>, log: Option<&File>) {
        let group_of = |it: &Process| i32::try_from(it.pid).ok().and_then(Pid::from_raw);
        let leader = leader.map(|it| (group_of(it), it.state(&RealDisk)));
        let group = match leader {
            Some((Some(group), ProcessState::Running)) => return end_group(group, GRACE),
            // The first process is gone, but its children may remain. If no first process is recorded (`None`), the run
            // may have been killed before it recorded one.
            Some((group @ Some(_), ProcessState::Gone)) => group,
            None => None,
            Some(_) => return,
        };
        log.into_iter().for_each(orphans::wait_for_start);
        orphans::end(claim, group, GRACE);
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    fn tree(&self, root: &Path, without: &Path) -> Option<String> {
        git::fingerprint(root, without)
    }
}

struct Running {
    child: Child,
    group: Pid,
    messages: Receiver<Message>,
    /// Signals the reading thread to stop.
    is_over: Arc<AtomicBool>,
    tail: VecDeque<u8>,
    n_told: u64,
    is_silent: bool,
}

impl Running {
    fn start(job: &Job<'_>, stop: &Stop) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let mut command = command(job)?;
        command.stdout(writer.try_clone()?).stderr(writer);
        let log = job.log.try_clone()?;
        let mut child = orphans::while_starting(job.log, || command.spawn())?;
        // Dropping the command closes its copies of the write ends, so that only the processes have them.
        drop(command);
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            child.kill().ok();
            child.wait().ok();
            return Err(io::Error::other("the process has no number"));
        };
        let (sender, messages) = mpsc::sync_channel(WAITING);
        stop.listen(&sender);
        let is_over = Arc::new(AtomicBool::new(false));
        let reading = (sender.clone(), Arc::clone(&is_over));
        let threads = spawn("output", move || read_all(reader, &log, &reading.0, &reading.1))
            .and_then(|()| spawn("end", move || wait_for(group, &sender)));
        let mut running =
            Self { child, group, messages, is_over, tail: VecDeque::new(), n_told: 0, is_silent: false };
        if let Err(error) = threads {
            running.kill();
            return Err(error);
        }
        Ok(running)
    }

    fn kill(&mut self) {
        kill_process_group(self.group, Signal::KILL).ok();
        self.child.wait().ok();
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Waits for the exit of the first process, or for a reason to end it.
    fn watch(&mut self, job: &Job<'_>, stop: &Stop, on_event: &dyn Fn(WorkerEvent<'_>)) -> ExitKind {
        let begun = Instant::now();
        let mut last = begun;
        loop {
            if stop.is_stopped() {
                return ExitKind::Stopped;
            }
            let now = Instant::now();
            let left = job.timeout.saturating_sub(now - begun);
            let quiet = job.idle.map(|it| it.saturating_sub(now - last));
            if left.is_zero() {
                return ExitKind::TimedOut;
            }
            if quiet.is_some_and(|it| it.is_zero()) {
                return ExitKind::Idle;
            }
            match self.messages.recv_timeout(quiet.map_or(left, |it| it.min(left))) {
                Ok(Message::Exited) => return ExitKind::Exited,
                Ok(Message::Output(bytes)) => {
                    last = Instant::now();
                    self.hear(&bytes, on_event);
                }
                Ok(Message::Silence) => self.is_silent = true,
                Ok(Message::Stop | Message::Nothing) | Err(RecvTimeoutError::Timeout) => {}
                // Both threads have ended, so no message can arrive.
                Err(RecvTimeoutError::Disconnected) => return ExitKind::Exited,
            }
        }
    }

    fn hear(&mut self, bytes: &[u8], on_event: &dyn Fn(WorkerEvent<'_>)) {
        self.tail.extend(bytes);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
        if self.n_told < LOG_LIMIT {
            on_event(WorkerEvent::Output(bytes));
            self.n_told += bytes.len() as u64;
            if self.n_told >= LOG_LIMIT {
                on_event(WorkerEvent::Output(mark(self.n_told).as_bytes()));
            }
        }
    }

    /// Ends the rest of the group, reaps the first process, and reads the remaining output.
    fn end(mut self, how: ExitKind, command: &AgentCommand, on_event: &dyn Fn(WorkerEvent<'_>)) -> Ended {
        if how != ExitKind::Exited {
            kill_process_group(self.group, Signal::TERM).ok();
            if !self.hear_until(GRACE, on_event, |it| matches!(it, Message::Exited)) {
                kill_process_group(self.group, Signal::KILL).ok();
            }
        }
        // The first process is not reaped yet, so the number of its group is not reused.
        kill_process_group(self.group, Signal::TERM).ok();
        let status = self.child.wait();
        end_group(self.group, GRACE);
        if !self.is_silent {
            self.hear_until(OUTPUT_AFTER_EXIT, on_event, |it| matches!(it, Message::Silence));
        }
        self.is_over.store(true, Ordering::SeqCst);
        let exit_code = status.ok().and_then(|it| it.code().or_else(|| it.signal().map(|it| 128 + it)));
        let output = self.tail.into_iter().collect();
        // 126 and 127 are the exit codes of a shell for a command that it cannot start or cannot find.
        let is_line = matches!(command, AgentCommand::Line(_));
        let how = match (how, exit_code) {
            (ExitKind::Exited, Some(code @ (126 | 127))) if is_line => {
                let what = if code == 127 { "find" } else { "start" };
                ExitKind::NotStarted(format!("the shell could not {what} the command (exit code {code})"))
            }
            (how, _) => how,
        };
        Ended { how, exit_code, output }
    }

    /// Processes messages until the expected one; false if it did not arrive in time.
    fn hear_until(
        &mut self,
        time: Duration,
        on_event: &dyn Fn(WorkerEvent<'_>),
        is_it: impl Fn(&Message) -> bool,
    ) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(message) = self.messages.recv_timeout(left) else { return false };
            let is_it = is_it(&message);
            match message {
                Message::Output(bytes) => self.hear(&bytes, on_event),
                Message::Silence => self.is_silent = true,
                Message::Exited | Message::Stop | Message::Nothing => {}
            }
            if is_it {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
        }
    }
}

/// Ends a group whose first process may have been reaped. Returns when the group is gone, at the latest after twice the
/// time `grace`.
pub(super) fn end_group(group: Pid, grace: Duration) {
    kill_process_group(group, Signal::TERM).ok();
    let begun = Instant::now();
    let mut is_killed = false;
    while test_kill_process_group(group).is_ok() {
        if begun.elapsed() >= grace && !std::mem::replace(&mut is_killed, true) {
            kill_process_group(group, Signal::KILL).ok();
        }
        // A zombie that is not reaped stays in its group for ever.
        if begun.elapsed() >= 2 * grace {
            return;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Reads output to its end or until `is_over`, and sends it to the loop. After [`LOG_LIMIT`] bytes, it is no longer
/// written to the log.
fn read_all(mut reader: PipeReader, mut log: &File, sender: &SyncSender<Message>, is_over: &AtomicBool) {
    let mut buffer = vec![0; 16 << 10];
    let mut n_logged: u64 = 0;
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let bytes = &buffer[..n];
        if n_logged < LOG_LIMIT {
            log.write_all(bytes).ok();
            n_logged += n as u64;
            if n_logged >= LOG_LIMIT {
                log.write_all(mark(n_logged).as_bytes()).ok();
            }
        }
        if sender.send(Message::Output(bytes.to_vec())).is_err() {
            break;
        }
    }
    sender.send(Message::Silence).ok();
}

/// The text that takes the place of the output after the first bytes.
fn mark(n_bytes: u64) -> String {
    format!("\n[planwatch: output after the first {n_bytes} bytes is left out]\n")
}

/// Waits for the end of a process without reaping it.
fn wait_for(pid: Pid, sender: &SyncSender<Message>) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
    sender.send(Message::Exited).ok();
}

/// Returns the command with its prompt. The path of a prompt is passed as a word or in a variable, and never inserted into
/// a shell's command line.
fn command(job: &Job<'_>) -> io::Result<Command> {
    let by_file = job.prompt.filter(|(_, by)| *by == PromptBy::File).map(|(path, _)| path);
    let mut command = match job.command {
        AgentCommand::Line(line) => {
            let mut shell = Command::new("sh");
            let line = match by_file {
                Some(_) => line.replace("{prompt}", &format!("\"${PROMPT_VARIABLE}\"")),
                None => line.clone(),
            };
            shell.arg("-c").arg(line);
            shell
        }
        AgentCommand::Words(words) => {
            let path = by_file.map(|it| it.as_os_str().to_owned()).unwrap_or_default();
            let word = |it: &String| if it == "{prompt}" { path.clone() } else { OsString::from(it) };
            let mut words = words.iter().map(word);
            let program = words.next().ok_or_else(|| io::Error::other("the agent's command is empty"))?;
            let mut command = Command::new(program);
            command.args(words);
            command
        }
    };
    let stdin = match job.prompt {
        Some((path, PromptBy::Stdin)) => Stdio::from(File::open(path)?),
        _ => Stdio::null(),
    };
    command.stdin(stdin).current_dir(job.directory).process_group(0);
    if job.is_in_own_tree {
        // These variables would lead git to the user's own working tree.
        for name in git::INHERITED {
            command.env_remove(name);
        }
    }
    command.envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.envs(by_file.map(|it| (PROMPT_VARIABLE, it)));
    Ok(command)
}

fn why_not_started(command: &AgentCommand, error: &io::Error) -> String {
    match command {
        AgentCommand::Words(words) => why_no_program(words, error),
        AgentCommand::Line(_) => error_text(error),
    }
}

/// Names a missing program, because the system's error does not.
pub(super) fn why_no_program(words: &[String], error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        let program = words.first().map_or("", String::as_str);
        return format!("the program `{program}` was not found; is it installed and on the PATH?");
    }
    error_text(error)
}

fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}
