//! The server side of the daemon's socket: accepts connections, reads requests, forwards them and sends the answers.
//!
//! Each connection has a thread, which sleeps while there are no requests. A client that does not read its events is
//! disconnected, so that it cannot block the daemon.

use std::io::{self, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::serve::daemon::times::{ACCEPT_AGAIN, CLOSE_TIMEOUT, CONNECTION_TIMEOUT};
use crate::serve::ipc::protocol::{self, Answer, Request};
use crate::serve::ipc::socket_path;

/// The maximum number of open connections. Further connections are closed at once.
const CONNECTION_LIMIT: usize = 64;

/// The maximum number of unsent events per client. A client that exceeds it is disconnected.
const UNSENT_LIMIT: usize = 4096;

/// A request, and the channel for its answers.
#[derive(Debug)]
pub(crate) struct SocketRequest {
    pub(crate) request: Request,
    pub(crate) reply: SyncSender<Answer>,
    /// A channel that is closed when all replies are sent or cannot be sent.
    pub(crate) is_sent: Receiver<()>,
    /// The connection of a client that requests a claim.
    pub(crate) peer: Option<UnixStream>,
}

/// Forwards a request; returns false if the thread that receives requests of this kind has ended.
pub(crate) type Forward = Arc<dyn Fn(SocketRequest) -> bool + Send + Sync>;

impl SocketRequest {
    /// Sends the last answer, and waits at most [`CLOSE_TIMEOUT`] until it is written.
    pub(crate) fn close(self, last: Answer) {
        let Self { reply, is_sent, .. } = self;
        // An error means that the client no longer reads, so it needs no answer.
        reply.try_send(last).ok();
        drop(reply);
        is_sent.recv_timeout(CLOSE_TIMEOUT).ok();
    }
}

/// The listening socket. It is shut down on drop.
#[derive(Debug)]
pub(crate) struct SocketListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket file.
    identity: (u64, u64),
}

impl SocketListener {
    /// Binds the socket. The caller holds the daemon's lock and has removed the socket of a dead daemon.
    pub(crate) fn open(state: &Path, path: &Path, forward: Forward) -> io::Result<Self> {
        socket_path::prepare(path, state)?;
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        let accepting = listener.try_clone()?;
        std::thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || accept(&accepting, &forward))?;
        let identity = identity(path)?;
        Ok(Self { listener, path: path.to_path_buf(), identity })
    }

    /// Returns whether the file at the path is still this socket.
    pub(crate) fn is_there(&self) -> bool {
        identity(&self.path).is_ok_and(|it| it == self.identity)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    path.symlink_metadata().map(|it| (it.dev(), it.ino()))
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        // Wakes the accepting thread. If that fails, the thread ends with the process.
        rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both).ok();
    }
}

fn accept(listener: &UnixListener, forward: &Forward) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The listener was shut down.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // For example, the process has too many open files.
            Err(_) => {
                std::thread::sleep(ACCEPT_AGAIN);
                continue;
            }
        };
        if !socket_path::is_same_user(&stream) || open.load(Ordering::Relaxed) >= CONNECTION_LIMIT {
            continue;
        }
        let (forward, closed) = (Arc::clone(forward), Arc::clone(&open));
        open.fetch_add(1, Ordering::Relaxed);
        let served = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
            // An error concerns this connection only.
            serve(stream, &forward).ok();
            closed.fetch_sub(1, Ordering::Relaxed);
        });
        if served.is_err() {
            // The listener continues: starting a thread may succeed for the next connection.
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve(mut stream: UnixStream, forward: &Forward) -> io::Result<()> {
    stream.set_read_timeout(Some(CONNECTION_TIMEOUT))?;
    stream.set_write_timeout(Some(CONNECTION_TIMEOUT))?;
    let mut requests = BufReader::new(stream.try_clone()?);
    loop {
        let request = match protocol::read_request(&mut requests) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => {
                let refused = protocol::answer_line(Answer::Refused { why: error.to_string() });
                return protocol::send(&mut stream, &refused);
            }
        };
        let (reply, answers) = sync_channel(if matches!(request, Request::Events | Request::Changes) {
            UNSENT_LIMIT
        } else {
            1
        });
        let (_sending, is_sent) = sync_channel(0);
        let peer = if matches!(request, Request::Claim(_)) { Some(stream.try_clone()?) } else { None };
        if !forward(SocketRequest { request, reply, is_sent, peer }) {
            return Ok(());
        }
        send_all(&mut stream, &answers)?;
    }
}

/// Sends answers until the channel closes.
fn send_all(stream: &mut UnixStream, answers: &Receiver<Answer>) -> io::Result<()> {
    for answer in answers {
        protocol::send(stream, &protocol::answer_line(answer))?;
    }
    Ok(())
}
