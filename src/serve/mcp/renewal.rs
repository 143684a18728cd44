//! Renews the claims of this clone at the registry while an agent's server runs.
//!
//! A separate thread contacts the registry, so that no call waits for it. The thread starts with the first call. It
//! checks which claims are due at each call, and at least every [`REMOTE_INTERVAL`].

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::api::context::Context;
use crate::ops::sync;
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::times::REMOTE_INTERVAL;

/// The thread ends when this is dropped.
#[derive(Default)]
pub(super) struct Renewal {
    thread: OnceLock<Sender<()>>,
}

impl Renewal {
    /// Makes the thread check soon. If claims are not shared, there is no thread.
    pub(super) fn look(&self, context: &Context, contexts: &ContextFactory) {
        if context.config.sync.is_some() {
            self.thread.get_or_init(|| begin(Arc::clone(contexts))).send(()).ok();
        }
    }
}

fn begin(contexts: ContextFactory) -> Sender<()> {
    let (sender, called) = mpsc::channel();
    thread::spawn(move || {
        while called.recv_timeout(REMOTE_INTERVAL) != Err(RecvTimeoutError::Disconnected) {
            // All calls that came meanwhile need only one check.
            called.try_iter().for_each(drop);
            if let Ok(context) = contexts() {
                // After an error the lease still holds for a while; the next check tries again.
                sync::renew(&context).ok();
            }
        }
    });
    sender
}
