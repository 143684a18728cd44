//! Limits the number of connections, so that slow clients cannot exclude others.
//!
//! At the limit, a new connection causes another one to be closed: if possible, one whose client has not sent a complete
//! request head yet; otherwise, one whose request was answered or is still being read. Of several such connections, the
//! one that has been in its state for longest is closed. Event streams, and connections whose request is being worked
//! on, are never closed for a new connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// The maximum number of open connections.
pub(super) const MOST: usize = 160;

tokio::task_local! {
    /// The connection whose request is being answered.
    pub(super) static CONNECTION: Arc<Connection>;
}

/// The state of a connection. Connections in an earlier one of these states are closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doing {
    /// The client has not sent a complete request head yet.
    Nothing,
    /// The body of a request is being read, or a request was answered and the client may send another one.
    Talking,
    /// A request is being worked on, or the connection is an event stream.
    Working,
}

#[derive(Debug)]
pub(in crate::serve) struct Connection {
    /// The local address of this connection.
    pub(in crate::serve) local: SocketAddr,
    state: Mutex<State>,
    clock: Arc<AtomicU64>,
}

#[derive(Debug)]
struct State {
    doing: Doing,
    /// The value of `clock` at the last change of `doing`. Each change of any connection increments `clock`, so the
    /// smallest value is the oldest state.
    since: u64,
    abort: Option<AbortHandle>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Connections {
    open: Arc<Mutex<BTreeMap<u64, Arc<Connection>>>>,
    clock: Arc<AtomicU64>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No statement leaves the state half-changed, so a poisoned lock is usable.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(super) fn set(&self, doing: Doing) {
        let since = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut state = lock(&self.state);
        (state.doing, state.since) = (doing, since);
    }

    /// Whether the client has not sent a complete head yet.
    pub(super) fn is_silent(&self) -> bool {
        self.doing().0 == Doing::Nothing
    }

    fn doing(&self) -> (Doing, u64) {
        let state = lock(&self.state);
        (state.doing, state.since)
    }

    fn end(&self) {
        if let Some(abort) = &lock(&self.state).abort {
            abort.abort();
        }
    }
}

impl Connections {
    /// Admits a connection, closing another one if necessary; `None` if none can be closed.
    pub(super) fn enter(&self, local: SocketAddr) -> Option<(u64, Arc<Connection>)> {
        let mut open = lock(&self.open);
        if open.len() >= MOST {
            let (id, (doing, _)) =
                open.iter().map(|(id, it)| (*id, it.doing())).min_by_key(|(_, doing)| *doing)?;
            if doing == Doing::Working {
                return None;
            }
            if let Some(gone) = open.remove(&id) {
                gone.end();
            }
        }
        let id = self.clock.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State { doing: Doing::Nothing, since: id, abort: None });
        let connection = Arc::new(Connection { local, state, clock: Arc::clone(&self.clock) });
        open.insert(id, Arc::clone(&connection));
        Some((id, connection))
    }

    /// Registers how to close an admitted connection.
    pub(super) fn note(&self, id: u64, abort: AbortHandle) {
        if let Some(it) = lock(&self.open).get(&id) {
            lock(&it.state).abort = Some(abort);
        }
    }

    pub(super) fn leave(&self, id: u64) {
        lock(&self.open).remove(&id);
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Closes the connections whose clients have not sent a complete head yet.
    pub(super) fn end_silent(&self) {
        lock(&self.open).retain(|_, it| {
            let is_silent = it.is_silent();
            if is_silent {
                it.end();
            }
            !is_silent
        });
    }
}

/// Protects the current request's connection from being closed, until this is dropped.
#[derive(Debug)]
pub(in crate::serve) struct Busy(Option<Arc<Connection>>);

/// Marks the current request's connection as worked on.
pub(in crate::serve) fn busy() -> Busy {
    let connection = CONNECTION.try_with(Arc::clone).ok();
    if let Some(it) = &connection {
        it.set(Doing::Working);
    }
    Busy(connection)
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(it) = &self.0 {
            it.set(Doing::Talking);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> (Connections, Vec<(u64, Arc<Connection>)>) {
        let connections = Connections::default();
        let all = (0..MOST).map(|_| enter(&connections).unwrap()).collect();
        (connections, all)
    }

    fn enter(connections: &Connections) -> Option<(u64, Arc<Connection>)> {
        connections.enter(([127, 0, 0, 1], 1).into())
    }

    fn is_open(connections: &Connections, id: u64) -> bool {
        lock(&connections.open).contains_key(&id)
    }

    #[test]
    fn the_longest_silent_connection_is_closed_first() {
        let (connections, all) = full();
        all[0].1.set(Doing::Working);
        all[1].1.set(Doing::Talking);
        assert!(enter(&connections).is_some());
        assert!(!is_open(&connections, all[2].0));
        assert!([0, 1, 3].iter().all(|it| is_open(&connections, all[*it].0)));
    }

    #[test]
    fn the_longest_idle_connection_is_closed_next() {
        let (connections, all) = full();
        all.iter().rev().for_each(|(_, it)| it.set(Doing::Talking));
        all[MOST - 1].1.set(Doing::Talking);
        assert!(enter(&connections).is_some());
        assert!(!is_open(&connections, all[MOST - 2].0));
        assert!(is_open(&connections, all[MOST - 1].0));
    }

    #[test]
    fn busy_connections_are_not_closed() {
        let (connections, all) = full();
        all.iter().for_each(|(_, it)| it.set(Doing::Working));
        assert!(enter(&connections).is_none());
        connections.leave(all[7].0);
        assert!(enter(&connections).is_some());
        assert!(enter(&connections).is_some(), "the newest is the only one that can be spared");
    }
}
