//! The messages to the event loop.

use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;

use crate::serve::daemon::listener::SocketRequest;
use crate::serve::daemon::watcher::system::Raw;
use crate::serve::ipc::event::Event;

pub(crate) enum Message {
    /// A batch of file system events.
    Seen(Vec<Raw>),
    Request(SocketRequest),
    /// Asks for the plans that changed since the previous such message; the reply is `None` if they are unknown.
    Changed(SyncSender<Option<BTreeSet<String>>>),
    /// Events about claims of other machines, found in the registry.
    Elsewhere(Vec<Event>),
    Stop,
}
