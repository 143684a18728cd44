//! Ctrl-C, SIGTERM and SIGHUP end the processes of a run, which then writes what it knows and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use planwatch::process::worker::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signal that came, if any.
pub(super) struct Came(Arc<AtomicI32>);

impl Came {
    /// The exit code that a shell gives such an end.
    pub(super) fn exit_code(&self) -> Option<u8> {
        let signal = self.0.load(Ordering::SeqCst);
        (signal != 0).then(|| u8::try_from(128 + signal).unwrap_or(130))
    }
}

/// Listens in a thread of its own; a second signal ends this process at once, and the next run repairs it.
pub(super) fn stop_at(stop: Arc<Stop>) -> Came {
    let came = Arc::new(AtomicI32::new(0));
    let Ok(mut signals) = Signals::new([SIGTERM, SIGINT, SIGHUP]) else { return Came(came) };
    let note = Arc::clone(&came);
    let listen = move || {
        for signal in signals.forever() {
            if note.swap(signal, Ordering::SeqCst) != 0 {
                std::process::exit(128 + signal);
            }
            stop.stop();
        }
    };
    // Where there is no thread to be had a signal ends the process as ever.
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).ok();
    Came(came)
}
