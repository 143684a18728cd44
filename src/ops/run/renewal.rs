//! Renews the records of this clone's claims at the registry while the run is active.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::Scope;
use std::time::Duration;

use crate::ops::run::{Event, Surface};
use crate::store::sync::Sync;

/// How often the run checks whether records are due for renewal.
const LOOK: Duration = Duration::from_secs(20);

/// Ends the renewal when it is dropped.
pub(super) struct Renewal {
    _sender: Sender<()>,
}

impl Renewal {
    pub(super) fn begin<'scope>(scope: &'scope Scope<'scope, '_>, surface: &'scope dyn Surface) -> Self {
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || {
            while receiver.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                renew(surface);
            }
        });
        Self { _sender: sender }
    }
}

/// Renews the records that are due. If that fails, the next call tries again; the records stay valid for a while.
fn renew(surface: &dyn Surface) {
    let Ok(context) = surface.context() else { return };
    let Ok(Some(sync)) = Sync::of(&context) else { return };
    let lost = sync.renew_due().unwrap_or_default();
    for own in lost {
        let text = format!("another machine has taken over `{}`", own.step);
        surface.report(&Event::Note { text: &text });
    }
}
