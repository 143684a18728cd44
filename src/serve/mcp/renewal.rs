//! Renews the claims of this clone at the registry while the MCP server of an agent runs.
//!
//! A separate thread contacts the registry, so that no call waits for the registry. The thread starts with the first call.
//! At each call, and at least every [`REMOTE_INTERVAL`], it checks which claims are due.

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
    /// Makes the thread check soon, and starts it if it is not running. Does nothing if claims are not shared.
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
            // One check suffices for all calls that were made in the meantime.
            called.try_iter().for_each(drop);
            if let Ok(context) = contexts() {
                // An error is ignored, because the lease lasts for a while and the next check tries again.
                sync::renew(&context).ok();
            }
        }
    });
    sender
}
