//! SIGTERM, SIGINT and SIGHUP end the watching in good order.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use planwatch::serve::daemon::api::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signal that came, if any.
pub(super) struct Came(Arc<AtomicI32>);

impl Came {
    /// Somebody's Ctrl-C is told as every shell does; a service that is stopped has done well.
    pub(super) fn exit_code(&self) -> u8 {
        if self.0.load(Ordering::Relaxed) == SIGINT { 130 } else { 0 }
    }
}

/// Listens in a thread of its own; none where the system lets nobody listen, and a signal ends the process as ever.
pub(super) fn stop_at(stopper: Stopper) -> Option<Came> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).ok()?;
    let came = Arc::new(AtomicI32::new(0));
    let note = Arc::clone(&came);
    let listen = move || {
        for signal in signals.forever() {
            let is_first = note.swap(signal, Ordering::Relaxed) == 0;
            // A second one, or one when nothing is watched any more, is not waited for.
            if !stopper.stop() || !is_first {
                std::process::exit(128 + signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).ok()?;
    Some(Came(came))
}
