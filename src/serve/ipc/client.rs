//! The other end of a daemon's socket: what a command asks, and the events that a second `watch` follows.
//!
//! Nothing here waits long or fails loudly: without a daemon, or with one that does not answer, every command goes its
//! own way.

use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use crate::api::daemon::{ClaimReply, DaemonStatus, DelegatedClaim, REPLY_WITHIN};
use crate::api::daemon::{DaemonClient, Neighbours};
use crate::disk::PlansDir;
use crate::index::Generation;
use crate::plan::id::PlanId;
use crate::serve::ipc::event::Event;
use crate::serve::ipc::event::Told;
use crate::serve::ipc::protocol::{self, Answer, Ask, Status};
use crate::serve::ipc::socket_path::{self, Homes};

/// Beyond this a command looks at the files itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a daemon that was told to end may take.
const END: Duration = Duration::from_secs(20);

/// A connection to the daemon of a plans directory.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

/// How following a daemon's events ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The daemon said why.
    Said(String),
    /// Without a word: it crashed, or does not wait for who does not read.
    Broken,
    /// The one who listened broke off.
    BrokenOff,
}

/// Who watches a plans directory.
#[derive(Debug)]
pub enum Holder {
    Nobody,
    /// A process that takes connections and says nothing: it was stopped (`SIGSTOP`), or hangs.
    Silent {
        /// None where the system does not tell.
        pid: Option<u32>,
    },
    Answering(Client, Status),
}

/// Asks who watches; whoever does not answer in a second is silent.
pub fn holder(plans: &PlansDir, homes: &Homes) -> Holder {
    holder_at(&plans.state_dir(), homes)
}

fn holder_at(state: &Path, homes: &Homes) -> Holder {
    match Client::connected(state, homes) {
        Ok(mut client) => match client.status() {
            Some(status) => Holder::Answering(client, status),
            // One that ended meanwhile closes the connection.
            None if client.is_closed() => Holder::Nobody,
            None => Holder::Silent { pid: socket_path::peer(&client.stream) },
        },
        // As many as may wait do so already.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Holder::Silent { pid: None },
        Err(_) => Holder::Nobody,
    }
}

/// The daemon of a plans directory, if one runs, as those know it who ask through its socket.
#[derive(Debug, Clone)]
pub struct Daemon {
    /// Where the own state is.
    state: PathBuf,
    pub(super) homes: Homes,
}

impl Daemon {
    pub fn of(plans: &PlansDir, homes: Homes) -> Self {
        Self { state: plans.state_dir(), homes }
    }

    fn connect(&self) -> Option<Client> {
        Client::connected(&self.state, &self.homes).ok()
    }
}

impl DaemonClient for Daemon {
    fn commit(&self) -> Option<Generation> {
        match self.connect()?.ask(Ask::Sync)? {
            Answer::Sync { fresh: true, generation } => generation?.parse().ok(),
            _ => None,
        }
    }

    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        let answer = self.connect().and_then(|mut it| it.ask(Ask::Next));
        protocol::commit_and_next(answer)
    }

    fn cache_next(&self, answer: String) {
        let Some(mut client) = self.connect() else { return };
        protocol::send(&mut client.stream, &protocol::request_line(Ask::CacheNext(answer))).ok();
    }

    fn daemon(&self) -> DaemonStatus {
        if let Err(it) = socket_path::check(&socket_path::socket(&self.state, &self.homes), &self.state) {
            return DaemonStatus::Unreachable { why: it.to_string(), hint: it.hint() };
        }
        match holder_at(&self.state, &self.homes) {
            Holder::Nobody => DaemonStatus::None,
            Holder::Silent { pid } => DaemonStatus::Silent { pid },
            Holder::Answering(_, status) => status.into(),
        }
    }

    fn neighbours(&self, plan: &PlanId) -> Option<Neighbours> {
        let ask = Ask::Around(plan.as_str().to_owned());
        match self.connect()?.ask(ask)? {
            Answer::Around { around } => around.map(Neighbours::from),
            _ => None,
        }
    }

    fn claim(&self, delegated: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        let Some(mut client) = self.connect() else { return ClaimReply::Nothing };
        let Some(delegated) = delegated() else { return ClaimReply::Nothing };
        client.stream.set_read_timeout(Some(REPLY_WITHIN)).ok();
        match client.ask(Ask::Claim(delegated.clone())) {
            Some(Answer::Claimed { handed }) => handed.map_or(ClaimReply::Nothing, ClaimReply::Claimed),
            // A daemon that does not know this request.
            Some(_) => ClaimReply::Nothing,
            None => ClaimReply::Unheard(delegated),
        }
    }
}

impl Client {
    /// Connects; none if nobody answers there.
    pub fn connect(plans: &PlansDir, homes: &Homes) -> Option<Self> {
        Self::connected(&plans.state_dir(), homes).ok()
    }

    fn connected(state: &Path, homes: &Homes) -> io::Result<Self> {
        let path = socket_path::socket(state, homes);
        socket_path::check(&path, state).map_err(|_| io::ErrorKind::PermissionDenied)?;
        let stream = connect(&path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let answers = BufReader::new(stream.try_clone()?);
        let is_ours = socket_path::is_same_user(&stream);
        is_ours.then_some(Self { stream, answers }).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    /// Whether the other end has gone; one that says nothing has not.
    fn is_closed(&mut self) -> bool {
        let waits =
            |error: io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        self.stream.set_nonblocking(true).is_err()
            || self.answers.fill_buf().map_or_else(|error| !waits(error), <[u8]>::is_empty)
    }

    fn ask(&mut self, ask: Ask) -> Option<Answer> {
        protocol::send(&mut self.stream, &protocol::request_line(ask)).ok()?;
        protocol::read_answer(&mut self.answers).ok()?
    }

    pub fn status(&mut self) -> Option<Status> {
        self.status_after(Ask::Status)
    }

    fn status_after(&mut self, ask: Ask) -> Option<Status> {
        match self.ask(ask)? {
            Answer::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Ends the daemon and returns how it was, once it is gone; none if it does not go.
    ///
    /// A process that gives way goes on with something else: it is not waited for, and lets go in a moment.
    pub fn stop(mut self) -> Option<Status> {
        let status = self.status_after(Ask::Stop)?;
        if status.gives_way {
            return Some(status);
        }
        self.stream.set_read_timeout(Some(END)).ok()?;
        // The end of the process is the end of the stream.
        while let Some(_more) = protocol::read_answer(&mut self.answers).or_else(end_of_stream).ok()? {}
        Some(status)
    }

    /// Passes on every event from here on; `ready` is called first.
    pub fn follow(
        self,
        ready: &mut dyn FnMut(&Status) -> ControlFlow<()>,
        event: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> End {
        self.follow_answers(Ask::Events, ready, &mut |answer| match answer {
            Answer::Event { event: json } => {
                Event::from_json(&json).map_or(ControlFlow::Continue(()), |it| event(&it))
            }
            _ => ControlFlow::Continue(()),
        })
    }

    /// As [`Self::follow`], with the hints that come before events, for whoever looks again at each.
    pub fn follow_changes(
        self,
        ready: &mut dyn FnMut(&Status) -> ControlFlow<()>,
        told: &mut dyn FnMut(Told) -> ControlFlow<()>,
    ) -> End {
        self.follow_answers(Ask::Changes, ready, &mut |answer| match answer {
            Answer::Event { event } => Event::from_json(&event)
                .map_or(ControlFlow::Continue(()), |it| told(Told::Event(Arc::new(it)))),
            Answer::Changed { plan } => told(Told::Changed { plan: plan.map(PlanId::new) }),
            _ => ControlFlow::Continue(()),
        })
    }

    fn follow_answers(
        mut self,
        ask: Ask,
        ready: &mut dyn FnMut(&Status) -> ControlFlow<()>,
        told: &mut dyn FnMut(Answer) -> ControlFlow<()>,
    ) -> End {
        let Some(status) = self.status_after(ask) else { return End::Broken };
        if ready(&status).is_break() {
            return End::BrokenOff;
        }
        if self.stream.set_read_timeout(None).is_err() {
            return End::Broken;
        }
        loop {
            let flow = match protocol::read_answer(&mut self.answers) {
                Ok(Some(Answer::End { why })) => return End::Said(why),
                Ok(Some(answer)) => told(answer),
                Ok(None) | Err(_) => return End::Broken,
            };
            if flow.is_break() {
                return End::BrokenOff;
            }
        }
    }
}

fn end_of_stream(error: io::Error) -> io::Result<Option<Answer>> {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Ok(None),
        _ => Err(error),
    }
}

/// Connects at once or not at all: to a daemon that was stopped, and has many waiting, it could last for ever.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A directory of own state with a socket in the place of a daemon's.
    fn listening() -> (tempfile::TempDir, Homes, UnixListener) {
        let root = tempfile::tempdir().unwrap();
        let homes = Homes { runtime: None, temporary: root.path().to_path_buf() };
        let listener = UnixListener::bind(socket_path::socket(root.path(), &homes)).unwrap();
        (root, homes, listener)
    }

    #[test]
    fn a_daemon_that_ends_while_it_is_asked_is_nobody() {
        let (root, homes, listener) = listening();
        let ending = std::thread::spawn(move || drop(listener.accept().unwrap()));
        assert!(matches!(holder_at(root.path(), &homes), Holder::Nobody));
        ending.join().unwrap();
        // Nobody listens any more.
        assert!(matches!(holder_at(root.path(), &homes), Holder::Nobody));
    }

    #[test]
    fn an_errand_that_is_not_answered_may_have_been_run() {
        let (root, homes, listener) = listening();
        let daemon = Daemon { state: root.path().to_path_buf(), homes };
        let delegated = serde_json::json!({
            "claim": "k0000001", "by": "ann", "asker": "bo", "lease": 60, "at": "2026-11-21T12:00:00Z",
            "begin_before": 1, "surroundings": "x",
        });
        let delegated = || serde_json::from_value(delegated.clone()).ok();
        let answering = |answer: Option<Answer>| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut stream = listener.accept().unwrap().0;
                    let asked =
                        protocol::read_request(&mut BufReader::new(stream.try_clone().unwrap())).unwrap();
                    assert!(matches!(asked, Some(Ask::Claim(_))));
                    if let Some(answer) = answer {
                        protocol::send(&mut stream, &protocol::answer_line(answer)).unwrap();
                    }
                });
                daemon.claim(&delegated)
            })
        };
        assert!(matches!(answering(None), ClaimReply::Unheard(_)));
        assert!(matches!(answering(Some(Answer::Claimed { handed: None })), ClaimReply::Nothing));
        // One of another release.
        assert!(matches!(answering(Some(Answer::Refused { why: String::new() })), ClaimReply::Nothing));
        drop(listener);
        assert!(matches!(daemon.claim(&|| panic!("there is nobody")), ClaimReply::Nothing));
    }

    #[test]
    fn a_daemon_for_which_no_more_may_wait_is_silent() {
        let (root, homes, listener) = listening();
        rustix::net::listen(&listener, 0).unwrap();
        let path = socket_path::socket(root.path(), &homes);
        let mut waiting = Vec::new();
        let full = loop {
            match connect(&path) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(matches!(holder_at(root.path(), &homes), Holder::Silent { pid: None }));
    }
}
