//! A spinner on a terminal, for operations that take longer than a second.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::ProgressBar;

/// If the operation takes less time than this, no spinner is shown.
const MOMENT: Duration = Duration::from_secs(1);

/// Dropping this value stops the spinner and clears it from the terminal.
#[derive(Debug)]
pub(crate) struct Spinner(Option<(Sender<()>, JoinHandle<()>)>);

impl Spinner {
    /// Starts a spinner with the message `what`. Does nothing if stderr is not a terminal.
    pub(crate) fn with(what: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let (done, wait) = mpsc::channel();
        let sign = move || {
            if wait.recv_timeout(MOMENT) == Err(RecvTimeoutError::Timeout) {
                let bar = ProgressBar::new_spinner().with_message(what);
                bar.enable_steady_tick(Duration::from_millis(120));
                wait.recv().ok();
                bar.finish_and_clear();
            }
        };
        Self(thread::Builder::new().spawn(sign).ok().map(|it| (done, it)))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((done, sign)) = self.0.take() {
            drop(done);
            sign.join().ok();
        }
    }
}
