//! Lets SIGINT, SIGTERM and SIGHUP end a long command cleanly, and makes SIGXFSZ harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// The last signal that was received, if any.
pub(crate) struct Received(Arc<AtomicI32>);

impl Received {
    /// The exit code that a shell reports for a process that this signal ended. `None` if no signal was received.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let signal = self.0.load(Ordering::SeqCst);
        (signal != 0).then(|| u8::try_from(128 + signal).unwrap_or(130))
    }

    /// The exit code of a service: 130 after Ctrl-C (SIGINT), otherwise 0.
    pub(crate) fn exit_code_of_service(&self) -> u8 {
        if self.0.load(Ordering::SeqCst) == SIGINT { 130 } else { 0 }
    }
}

/// Starts a thread that calls `stop` at each signal; the argument says whether it is the first one. If `stop` returns
/// false, the process exits at once.
///
/// If the handlers cannot be installed, a signal ends the process as usual.
pub(crate) fn stop_at(stop: impl Fn(bool) -> bool + Send + 'static) -> Received {
    let received = Arc::new(AtomicI32::new(0));
    let Ok(mut signals) = Signals::new([SIGTERM, SIGINT, SIGHUP]) else { return Received(received) };
    let note = Arc::clone(&received);
    let listen = move || {
        for signal in signals.forever() {
            let is_first = note.swap(signal, Ordering::SeqCst) == 0;
            if !stop(is_first) {
                std::process::exit(128 + signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).ok();
    Received(received)
}

/// Makes a write that exceeds the limit on file sizes (`ulimit -f`) fail with an error, as on a full disk. Without this,
/// SIGXFSZ would end the process without a message.
pub(crate) fn survive_file_size_limits() {
    signal_hook::flag::register(SIGXFSZ, Arc::<AtomicBool>::default()).ok();
}
