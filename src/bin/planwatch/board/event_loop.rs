//! The board's loop: waits for a message, handles all messages that have arrived, and draws once. It wakes up without a
//! message only while a worker is shown.
//!
//! A thread reads the terminal. It waits for an acknowledgement after each batch, so that it does not read the keyboard
//! while an editor does.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::Duration;

use planwatch::ops::edit;
use planwatch::process::{editor, foreground};
use planwatch::serve::daemon::context_factory::ContextFactory;
use planwatch::serve::malloc;
use ratatui::crossterm::event::{self, Event, KeyEventKind, MouseEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::engine::{self, Loaded, ReadRequest, Reply, Request};
use super::keys::{self, Effect};
use super::model::{Model, Severity};
use super::worker::{Run, RunEvent, Worker};
use super::{terminal, view};
use crate::commands::{edit as edit_command, run as run_command};
use crate::context::Session;
use crate::failure::Failure;

/// A message to the loop.
pub(crate) enum Input {
    /// The keys, pasted texts and mouse events since the last batch.
    Typed(Vec<Event>),
    /// The terminal is gone.
    Lost,
    Signal(i32),
    Panic,
    /// Something changed; what is shown may be outdated.
    Changed,
    /// As above, with a line to show.
    Event(String),
    Notice(String),
    Loaded(Box<Loaded>),
    Reply(Reply),
    Run(RunEvent),
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Quit,
    /// The terminal is gone: nothing is written any more.
    Lost,
    Signal(i32),
    Panic,
}

pub(crate) struct Board<'a> {
    pub(crate) session: &'a Session,
    pub(crate) plans: PathBuf,
    pub(crate) contexts: ContextFactory,
    pub(crate) model: Model,
    pub(crate) terminal: terminal::Screen,
    pub(crate) inbox: Sender<Input>,
    pub(crate) messages: Receiver<Input>,
    pub(crate) is_coloured: bool,
    pub(crate) signals: Arc<SignalState>,
}

struct Threads {
    reader: Sender<ReadRequest>,
    actor: Sender<Request>,
    acknowledge: SyncSender<()>,
    /// Events of the terminal that are not handled yet.
    typed: VecDeque<Event>,
    /// What was last requested for the screen.
    asked: ReadRequest,
    worker: Option<Worker>,
}

/// State that the loop and the signal thread share.
#[derive(Default)]
pub(crate) struct SignalState {
    /// Another program has the terminal.
    is_released: AtomicBool,
    /// SIGHUP: the terminal is gone.
    is_lost: AtomicBool,
}

/// Turns signals into messages.
pub(crate) fn signals(inbox: Sender<Input>) -> Arc<SignalState> {
    let state = Arc::<SignalState>::default();
    let Ok(mut signals) = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP]) else { return state };
    let shared = Arc::clone(&state);
    let listen = move || {
        for signal in signals.forever() {
            match signal {
                // The terminal sends SIGINT only while another program uses it, and the signal is meant for that
                // program.
                SIGINT => continue,
                // The other program is stopped by the same signal. If the board continued to run, the shell would wait
                // for the board.
                SIGTSTP if shared.is_released.load(Ordering::SeqCst) => {
                    foreground::stop_self();
                    continue;
                }
                SIGHUP => shared.is_lost.store(true, Ordering::SeqCst),
                _ => {}
            }
            if inbox.send(Input::Signal(signal)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).ok();
    state
}

/// Starts the thread that reads the terminal in batches. The returned sender acknowledges a batch.
fn read(inbox: Sender<Input>) -> SyncSender<()> {
    let (acknowledge, acknowledged) = sync_channel::<()>(1);
    // A movement of the mouse alone does not change the screen.
    let is_motion = |it: &Event| matches!(it, Event::Mouse(mouse) if mouse.kind == MouseEventKind::Moved);
    let read = move || loop {
        let Ok(first) = event::read() else {
            inbox.send(Input::Lost).ok();
            return;
        };
        let mut batch = vec![first];
        while batch.len() < 500 && event::poll(Duration::ZERO).unwrap_or(false) {
            batch.extend(event::read().ok());
        }
        batch.retain(|it| !is_motion(it));
        if batch.is_empty() {
            continue;
        }
        if inbox.send(Input::Typed(batch)).is_err() || acknowledged.recv().is_err() {
            return;
        }
    };
    std::thread::Builder::new().name("keyboard".to_owned()).spawn(read).ok();
    acknowledge
}

impl Board<'_> {
    pub(crate) fn run(mut self) -> End {
        let mut threads = Threads {
            reader: engine::reader(self.contexts.clone(), self.inbox.clone()),
            actor: engine::actor(self.contexts.clone(), self.inbox.clone()),
            acknowledge: read(self.inbox.clone()),
            typed: VecDeque::new(),
            asked: ReadRequest::default(),
            worker: None,
        };
        self.request_reads(&mut threads, true);
        // When the loop ends, dropping this stops the watcher.
        let mut following = None;
        loop {
            if self.draw().is_err() {
                return End::Lost;
            }
            let Some(first) = self.receive(&threads) else { continue };
            let mut next = Some(first);
            while let Some(input) = next {
                // Watching begins after the first read, so that the plans are shown as early as possible. Until then
                // the allocator keeps free memory. Returning it to the system would make the read 1.4 times slower.
                if matches!(input, Input::Loaded(_)) && following.is_none() {
                    malloc::give_back();
                    let (session, inbox) = (self.session.clone(), self.inbox.clone());
                    following = Some(super::live::follow(session, self.plans.clone(), inbox));
                }
                if let Some(end) = self.handle(&mut threads, input) {
                    return end;
                }
                next = self.messages.try_recv().ok();
            }
            self.request_reads(&mut threads, false);
        }
    }

    /// Waits for the next message. While a worker is shown, returns `None` after a second, so that its time and output are
    /// drawn again.
    fn receive(&self, threads: &Threads) -> Option<Input> {
        let is_running = self.model.run.as_ref().is_some_and(|it| it.end.is_none());
        if !is_running && self.model.output.is_none() {
            return self.messages.recv().ok().or(Some(Input::Lost));
        }
        match self.messages.recv_timeout(Duration::from_secs(1)) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Disconnected) => Some(Input::Lost),
            Err(RecvTimeoutError::Timeout) => {
                if self.model.output.is_some() {
                    let step_alone = ReadRequest { plans: false, plan: None, ..threads.asked.clone() };
                    threads.reader.send(step_alone).ok();
                }
                None
            }
        }
    }

    fn draw(&mut self) -> std::io::Result<()> {
        let (model, is_coloured) = (&mut self.model, self.is_coloured);
        self.terminal.draw(|frame| view::draw(model, frame, is_coloured)).map(drop)
    }

    /// Requests what the screen shows if that differs from the last request, or if the last result is outdated.
    fn request_reads(&self, threads: &mut Threads, is_stale: bool) {
        let model = &self.model;
        let own = ReadRequest {
            plans: false,
            all: model.shows_closed,
            plan: model.plan_id.clone(),
            step: model.step_id.clone(),
        };
        if is_stale || own != threads.asked {
            let plans = is_stale || own.all != threads.asked.all;
            // If only another step of the same plan is selected, the plan is not read again.
            let plan = own.plan.clone().filter(|_| plans || own.plan != threads.asked.plan);
            threads.reader.send(ReadRequest { plans, plan, ..own.clone() }).ok();
            threads.asked = own;
        }
    }

    fn handle(&mut self, threads: &mut Threads, input: Input) -> Option<End> {
        match input {
            Input::Typed(batch) => {
                threads.typed.extend(batch);
                return self.take_typed(threads);
            }
            Input::Lost => return Some(End::Lost),
            Input::Panic => return Some(End::Panic),
            Input::Signal(SIGHUP) => return Some(End::Lost),
            Input::Signal(SIGTSTP) => self.suspend(),
            Input::Signal(signal) => return Some(End::Signal(signal)),
            Input::Changed => self.request_reads(threads, true),
            Input::Event(line) => {
                self.model.event = Some(line);
                self.request_reads(threads, true);
            }
            Input::Notice(text) => self.model.message = Some((Severity::Error, text)),
            Input::Loaded(loaded) => {
                self.model.apply_loaded(*loaded);
                if !threads.typed.is_empty() {
                    return self.take_typed(threads);
                }
            }
            Input::Reply(reply) => {
                self.model.apply_reply(reply);
                self.request_reads(threads, true);
            }
            Input::Run(event) => {
                if let Some(run) = &mut self.model.run {
                    run.take(event);
                }
            }
        }
        None
    }

    /// Handles what was typed. Keys typed after a key that opens a plan wait until the plan is read, so that their
    /// effect does not depend on the typing speed.
    fn take_typed(&mut self, threads: &mut Threads) -> Option<End> {
        while !self.model.is_reading()
            && let Some(event) = threads.typed.pop_front()
        {
            if let Some(end) = self.typed(threads, event) {
                return Some(end);
            }
        }
        if threads.typed.is_empty() {
            threads.acknowledge.send(()).ok();
        }
        None
    }

    fn typed(&mut self, threads: &mut Threads, event: Event) -> Option<End> {
        let effect = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => keys::press(&mut self.model, key),
            Event::Mouse(it) => keys::mouse(&mut self.model, it),
            Event::Paste(text) => {
                keys::paste(&mut self.model, &text);
                None
            }
            _ => None,
        };
        match effect? {
            Effect::Quit if threads.worker.as_ref().is_some_and(|it| !it.is_over()) => {
                let text = "an agent is running: X stops it, then q quits".to_owned();
                self.model.message = Some((Severity::Error, text));
            }
            Effect::Quit => return Some(End::Quit),
            Effect::Suspend => self.suspend(),
            Effect::Request(request) => drop(threads.actor.send(request)),
            Effect::Edit(id) => self.edit(threads, &id),
            Effect::Command(words) if words.first().is_some_and(|it| it == "run") => {
                self.begin_run(threads, &words);
            }
            Effect::Command(words) => self.command(threads, &words),
            Effect::StopRun if self.model.run.as_ref().is_some_and(|it| it.end.is_some()) => {
                self.model.run = None;
            }
            Effect::StopRun => threads.worker.iter().for_each(Worker::stop),
            Effect::Mouse(is_on) => drop(terminal::mouse(is_on)),
            Effect::Reload => self.request_reads(threads, true),
        }
        None
    }

    /// Releases the terminal while `what` runs.
    fn without_terminal<T>(&mut self, what: impl FnOnce(&Self) -> T) -> T {
        self.signals.is_released.store(true, Ordering::SeqCst);
        terminal::leave();
        let done = what(self);
        self.signals.is_released.store(false, Ordering::SeqCst);
        // Nothing is written to a terminal that is gone.
        if !self.signals.is_lost.load(Ordering::SeqCst) {
            terminal::enter(self.model.is_mouse_on).ok();
            // The previous content of the screen is unknown now.
            self.terminal.clear().ok();
        }
        done
    }

    fn suspend(&mut self) {
        if foreground::can_stop() {
            self.without_terminal(|_| foreground::stop_group());
        } else {
            let text = "there is no shell to return to".to_owned();
            self.model.message = Some((Severity::Error, text));
        }
    }

    fn edit(&mut self, threads: &mut Threads, id: &str) {
        let file = (self.contexts)().and_then(|context| edit::file(&context, id)).map_err(Failure::from);
        let begun = file.and_then(|file| Ok((edit_command::command()?, file)));
        let said = begun.and_then(|(command, file)| {
            let ended = self.without_terminal(|_| editor::run(&command, &file));
            let name = command.first().cloned().unwrap_or_default();
            match ended {
                Ok(true) => Ok(()),
                Ok(false) => Err(Failure::failed("editor", format!("`{name}` ended with an error"))),
                Err(error) => {
                    Err(Failure::failed("editor", format!("`{name}` could not be started: {error}")))
                }
            }
        });
        let problems = (self.contexts)().and_then(|context| edit::problems(&context, id));
        self.model.message = match (said, problems) {
            (Err(failure), _) => Some((Severity::Error, engine::sentence(&failure))),
            (Ok(()), Ok(found)) if !found.is_empty() => {
                let first = &found[0];
                let rest =
                    if found.len() > 1 { format!(" and {} more", found.len() - 1) } else { String::new() };
                Some((Severity::Error, format!("{}:{}: {}{rest}", first.path, first.line, first.message)))
            }
            _ => None,
        };
        self.request_reads(threads, true);
    }

    /// Runs any verb in a new process. Meanwhile that process has the terminal, and the board does not use it.
    fn command(&mut self, threads: &mut Threads, words: &[String]) {
        let (program, plans) = (std::env::current_exe(), self.plans.clone());
        let ran = self.without_terminal(|board| {
            let all = ["--plans".into(), plans.into_os_string()].into_iter();
            let ran =
                foreground::run(&program?, &all.chain(words.iter().map(Into::into)).collect::<Vec<_>>());
            board.session.output.stderr_line("Enter returns to the board");
            std::io::stdin().read_line(&mut String::new())?;
            ran
        });
        if let Err(error) = ran {
            self.model.message = Some((Severity::Error, format!("planwatch could not be started: {error}")));
        }
        self.request_reads(threads, true);
    }

    fn begin_run(&mut self, threads: &mut Threads, words: &[String]) {
        if threads.worker.as_ref().is_some_and(|it| !it.is_over()) {
            self.model.message = Some((Severity::Error, "an agent is running already".to_owned()));
            return;
        }
        let begun = (self.contexts)().map_err(Failure::from).and_then(|context| {
            let request = run_command::request_of_words(self.session, &context, words)?;
            let failed = |it: std::io::Error| Failure::failed("io-error", it.to_string());
            Worker::begin(request, self.contexts.clone(), self.inbox.clone()).map_err(failed)
        });
        match begun {
            Ok(worker) => {
                threads.worker = Some(worker);
                self.model.run = Some(Run::beginning());
            }
            Err(failure) => self.model.message = Some((Severity::Error, engine::sentence(&failure))),
        }
    }
}
