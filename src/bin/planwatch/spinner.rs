//! A spinner on a terminal while something takes longer than a moment.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::ProgressBar;

/// Shorter waits need no word.
const MOMENT: Duration = Duration::from_secs(1);

/// Runs until it is dropped; then nothing of it is left on the terminal.
#[derive(Debug)]
pub(crate) struct Patience(Option<(Sender<()>, JoinHandle<()>)>);

impl Patience {
    /// Begins to wait for `what`; where there is no terminal, nothing happens.
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

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some((done, sign)) = self.0.take() {
            drop(done);
            sign.join().ok();
        }
    }
}
