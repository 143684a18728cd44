//! The daemon's end of its socket: takes connections, reads requests, passes them on, sends the answers.
//!
//! A thread for each connection, none of which wakes while nothing is asked. Whoever does not read its events is
//! dropped, and nobody waits for it.

use std::io::{self, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::serve::ipc::protocol::{self, Answer, Ask};
use crate::serve::ipc::socket_path;

/// More connections than this are refused at once.
const MOST: usize = 64;

/// How long a request may take to come, and an answer to go.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an end waits for those who are told of it.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Events that wait for a follower who does not read; one more and it is dropped.
const WAITING: usize = 4096;

/// A request, and where its answers go.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) reply: SyncSender<Answer>,
    /// Ends when everything that was replied has gone out, or cannot.
    pub(crate) is_sent: Receiver<()>,
    /// The other end, of one who asks for a claim.
    pub(crate) peer: Option<UnixStream>,
}

/// Takes requests; false when nobody answers them any more.
type Passing = Arc<dyn Fn(Asked) -> bool + Send + Sync>;

impl Asked {
    /// Says the last word, and waits a moment for it to go out.
    pub(crate) fn close(self, last: Option<Answer>) {
        let Self { reply, is_sent, .. } = self;
        if let Some(last) = last {
            // Who does not read any more needs no last word.
            reply.try_send(last).ok();
        }
        drop(reply);
        is_sent.recv_timeout(LAST_WORD).ok();
    }
}

/// The socket, which is taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket's name.
    identity: (u64, u64),
}

impl Door {
    /// Binds the socket in the place of a dead daemon's; the caller holds the daemon's lock and removed what lay there.
    pub(crate) fn open(state: &Path, path: &Path, pass: Passing) -> io::Result<Self> {
        socket_path::prepare(path, state)?;
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        let taker = listener.try_clone()?;
        std::thread::Builder::new().name("door".to_owned()).spawn(move || take(&taker, &pass))?;
        let identity = identity(path)?;
        Ok(Self { listener, path: path.to_path_buf(), identity })
    }

    /// Returns whether the name still leads here.
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

impl Drop for Door {
    fn drop(&mut self) {
        // Wakes the thread that waits for connections; where it does not, that thread ends with the process.
        rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both).ok();
    }
}

fn take(listener: &UnixListener, pass: &Passing) {
    let open = Arc::new(AtomicUsize::new(0));
    while let Ok((stream, _)) = listener.accept() {
        if !socket_path::is_same_user(&stream) || open.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        let (pass, open) = (Arc::clone(pass), Arc::clone(&open));
        open.fetch_add(1, Ordering::Relaxed);
        let served = std::thread::Builder::new().name("peer".to_owned()).spawn(move || {
            // A peer that breaks off or talks nonsense is its own problem.
            serve(stream, &pass).ok();
            open.fetch_sub(1, Ordering::Relaxed);
        });
        if served.is_err() {
            return;
        }
    }
}

fn serve(mut stream: UnixStream, pass: &Passing) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut requests = BufReader::new(stream.try_clone()?);
    loop {
        let ask = match protocol::read_request(&mut requests) {
            Ok(Some(ask)) => ask,
            Ok(None) => return Ok(()),
            Err(error) => {
                let refused = protocol::answer_line(Answer::Refused { why: error.to_string() });
                return protocol::send(&mut stream, &refused);
            }
        };
        let (reply, answers) =
            sync_channel(if matches!(ask, Ask::Events | Ask::Changes) { WAITING } else { 1 });
        let (_sending, is_sent) = sync_channel(0);
        let peer = if matches!(ask, Ask::Claim(_)) { Some(stream.try_clone()?) } else { None };
        if !pass(Asked { ask, reply, is_sent, peer }) {
            return Ok(());
        }
        pass_on(&mut stream, &answers)?;
    }
}

/// Sends answers until whoever gives them has no more.
fn pass_on(stream: &mut UnixStream, answers: &Receiver<Answer>) -> io::Result<()> {
    for answer in answers {
        protocol::send(stream, &protocol::answer_line(answer))?;
    }
    Ok(())
}
