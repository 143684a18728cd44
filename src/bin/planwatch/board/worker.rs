//! A run of an agent that the board starts. Its events become the text that the board shows.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::api::trust::Subject;
use planwatch::ops::run::{self as engine, Event, RunRequest, Surface};
use planwatch::process::worker::{Processes, Stop};
use planwatch::serve::daemon::context_factory::ContextFactory;

use super::engine::sentence;
use super::event_loop::Input;
use crate::failure::Failure;

/// The maximum number of bytes of the output in memory. Longer output is cut to its last 32 KiB.
const MOST_OUTPUT: usize = 64 * 1024;

/// What the board shows of a run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) begun: Instant,
    pub(crate) step: String,
    pub(crate) output: String,
    /// The bytes of an incomplete character at the end of the output. The rest of the character has not arrived yet.
    partial: Vec<u8>,
    pub(crate) cost: Option<f64>,
    /// Why it ended; `None` while it runs.
    pub(crate) end: Option<String>,
    pub(crate) seconds: u64,
}

/// What happened in a run.
#[derive(Debug)]
pub(crate) enum RunEvent {
    Step(String),
    Output(Vec<u8>),
    Cost(f64),
    Line(String),
    End(String),
}

impl Run {
    pub(crate) fn beginning() -> Self {
        let (step, output, partial) = (String::new(), String::new(), Vec::new());
        Self { begun: Instant::now(), step, output, partial, cost: None, end: None, seconds: 0 }
    }

    pub(crate) fn take(&mut self, event: RunEvent) {
        match event {
            RunEvent::Step(step) => self.step = step,
            RunEvent::Output(bytes) => self.decode(&bytes),
            RunEvent::Line(line) => {
                let partial = std::mem::take(&mut self.partial);
                self.output.push_str(&String::from_utf8_lossy(&partial));
                if !self.output.is_empty() && !self.output.ends_with('\n') {
                    self.output.push('\n');
                }
                self.output.push_str(&line);
                self.output.push('\n');
            }
            RunEvent::Cost(cost) => self.cost = Some(self.cost.unwrap_or(0.0) + cost),
            RunEvent::End(why) => {
                self.seconds = self.begun.elapsed().as_secs();
                self.end = Some(why);
            }
        }
        if self.output.len() > MOST_OUTPUT {
            let from = self.output.len() - MOST_OUTPUT / 2;
            let from = (from..self.output.len()).find(|it| self.output.is_char_boundary(*it)).unwrap_or(0);
            self.output.drain(..from);
        }
    }

    /// Appends the text of `bytes`. If they end within a character, the bytes of that character wait for the rest of it.
    fn decode(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let end = self.partial.utf8_chunks().last().map_or(&[][..], |it| it.invalid());
        let is_begun = std::str::from_utf8(end).is_err_and(|it| it.error_len().is_none());
        let waits = if is_begun { end.len() } else { 0 };
        let waiting = self.partial.split_off(self.partial.len() - waits);
        self.output.push_str(&String::from_utf8_lossy(&self.partial));
        self.partial = waiting;
    }

    pub(crate) fn elapsed(&self) -> u64 {
        if self.end.is_some() { self.seconds } else { self.begun.elapsed().as_secs() }
    }
}

/// The thread of a run, and how to stop it.
pub(crate) struct Worker {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn begin(
        request: RunRequest,
        contexts: ContextFactory,
        inbox: Sender<Input>,
    ) -> std::io::Result<Self> {
        let processes = Processes::default();
        let stop = processes.stopper();
        let work = move || {
            let surface = Board { contexts, begun: Instant::now(), inbox: inbox.clone() };
            let end = match engine::run(&request, &surface, &processes) {
                Ok(report) => format!("{}: {}", report.end.word().replace('-', " "), report.why),
                Err(error) => sentence(&Failure::of(&error)),
            };
            inbox.send(Input::Run(RunEvent::End(end))).ok();
        };
        let thread = std::thread::Builder::new().name("run".to_owned()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    pub(crate) fn stop(&self) {
        self.stop.stop();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Worker {
    /// Stops the run and waits for its end, so that no process of an agent outlives the board.
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

struct Board {
    contexts: ContextFactory,
    begun: Instant,
    inbox: Sender<Input>,
}

impl Surface for Board {
    fn context(&self) -> Result<Context, Error> {
        (self.contexts)()
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn report(&self, event: &Event<'_>) {
        let event = match event {
            Event::Started { step, title, attempt, of, .. } => {
                self.inbox.send(Input::Run(RunEvent::Step((*step).to_owned()))).ok();
                RunEvent::Line(format!("▶ {step} {title} (attempt {attempt} of {of})"))
            }
            Event::Output { bytes, .. } => RunEvent::Output(bytes.to_vec()),
            Event::Verifying { step, command } => RunEvent::Line(format!("verifying {step}: {command}")),
            Event::Ended(ended) => {
                if let Some(cost) = ended.cost {
                    self.inbox.send(Input::Run(RunEvent::Cost(cost))).ok();
                }
                let notes = ended.notes.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
                RunEvent::Line(format!("{} {}{notes} ({} s)", ended.step, ended.outcome, ended.seconds))
            }
            Event::Progress { closed, total } => {
                RunEvent::Line(format!("{closed} of {total} steps are closed"))
            }
            Event::Waiting { why } => RunEvent::Line(format!("waiting: {why}")),
            Event::Note { text } => RunEvent::Line((*text).to_owned()),
        };
        self.inbox.send(Input::Run(event)).ok();
    }

    fn may_trust(&self, _: &Subject) -> bool {
        // The board does not ask the user for trust. The error message names what to read, and the command that trusts
        // it. The user can type that command after `:`.
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_be_split_between_two_chunks() {
        let shown = |chunks: &[&[u8]]| {
            let mut run = Run::beginning();
            chunks.iter().for_each(|it| run.take(RunEvent::Output(it.to_vec())));
            run.take(RunEvent::Line("end".to_owned()));
            run.output
        };
        let bytes = "a…é".as_bytes();
        for at in 0..=bytes.len() {
            assert_eq!(shown(&[&bytes[..at], &bytes[at..]]), "a…é\nend\n", "{at}");
        }
        assert_eq!(shown(&[b"a\xff", b"b"]), "a\u{fffd}b\nend\n");
        assert_eq!(shown(&[b"a\xe2\x80"]), "a\u{fffd}\nend\n");
        assert_eq!(shown(&[b"a\xe2", b"b"]), "a\u{fffd}b\nend\n");
    }
}
