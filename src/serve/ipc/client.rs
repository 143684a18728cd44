//! The client side of the daemon's socket: requests of commands, and the event stream for a second `watch`.
//!
//! The requests of commands have short timeouts, and a failed request is not an error: if no daemon answers, a command
//! continues on its own.

use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use crate::api::daemon::{ClaimReply, DaemonStatus, DelegatedClaim, REPLY_WITHIN};
use crate::api::daemon::{DaemonClient, Dependents};
use crate::disk::PlansDir;
use crate::index::Generation;
use crate::plan::id::PlanId;
use crate::serve::ipc::event::{Event, Notification};
use crate::serve::ipc::protocol::{self, Answer, Opener, Request, Status};
use crate::serve::ipc::socket_path::{self, SocketDirs};

/// How long a command waits for an answer before it continues without the daemon.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How long a daemon may take to end after a stop request.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to the daemon of a plans directory.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

/// Why the event stream of a daemon ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The daemon sent the reason.
    ByDaemon(String),
    /// The stream broke or did not begin. For example, the daemon crashed, or disconnected a client that did not read.
    Broken,
    /// The callback returned `Break`.
    BrokenOff,
}

#[derive(Debug)]
pub enum Holder {
    None,
    /// The socket exists, but the daemon does not answer: it was stopped (`SIGSTOP`) or hangs.
    Silent {
        /// `None` if the system does not report it, or if the daemon accepts no connection.
        pid: Option<u32>,
    },
    Answering(Client, Status),
}

/// Finds out which process watches. A process that does not answer within a second counts as silent.
pub fn holder(plans: &PlansDir, socket_dirs: &SocketDirs) -> Holder {
    holder_at(&plans.state_dir(), socket_dirs)
}

fn holder_at(state: &Path, socket_dirs: &SocketDirs) -> Holder {
    match Client::connected(state, socket_dirs) {
        Ok(mut client) => match client.status() {
            Some(status) => Holder::Answering(client, status),
            // A daemon that ended meanwhile closes the connection.
            None if client.is_closed() => Holder::None,
            None => Holder::Silent { pid: socket_path::peer(&client.stream) },
        },
        // The backlog of the socket is full.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Holder::Silent { pid: None },
        Err(_) => Holder::None,
    }
}

/// The daemon of a plans directory, reached through its socket. It need not be running.
#[derive(Debug, Clone)]
pub struct Daemon {
    /// The directory of planwatch's own state.
    state: PathBuf,
    pub(super) socket_dirs: SocketDirs,
}

impl Daemon {
    pub fn of(plans: &PlansDir, socket_dirs: SocketDirs) -> Self {
        Self { state: plans.state_dir(), socket_dirs }
    }

    fn connect(&self) -> Option<Client> {
        Client::connected(&self.state, &self.socket_dirs).ok()
    }
}

impl DaemonClient for Daemon {
    fn commit(&self) -> Option<Generation> {
        self.connect()?.ask(Request::Sync)?.commit()
    }

    fn complete_commit(&self) -> Option<Generation> {
        self.connect()?.ask(Request::Sync)?.complete_commit()
    }

    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        let answer = self.connect().and_then(|mut it| it.ask(Request::Next));
        answer.map_or((None, None), Answer::commit_and_next)
    }

    fn cache_next(&self, answer: String) {
        let Some(mut client) = self.connect() else { return };
        protocol::send(&mut client.stream, &protocol::request_line(Request::CacheNext(answer))).ok();
    }

    fn daemon(&self) -> DaemonStatus {
        if let Err(it) = socket_path::check(&socket_path::socket(&self.state, &self.socket_dirs), &self.state)
        {
            return DaemonStatus::Unreachable { why: it.to_string(), hint: it.hint() };
        }
        match holder_at(&self.state, &self.socket_dirs) {
            Holder::None => DaemonStatus::None,
            Holder::Silent { pid } => DaemonStatus::Silent { pid },
            Holder::Answering(_, status) => status.into(),
        }
    }

    fn dependents(&self, plan: &PlanId) -> Option<Dependents> {
        self.connect()?.ask(Request::Around(plan.as_str().to_owned()))?.dependents()
    }

    fn claim(&self, delegated: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        let Some(mut client) = self.connect() else { return ClaimReply::Nothing };
        let Some(delegated) = delegated() else { return ClaimReply::Nothing };
        client.stream.set_read_timeout(Some(REPLY_WITHIN)).ok();
        match client.ask(Request::Claim(delegated.clone())) {
            Some(Answer::Claimed { handed }) => handed.map_or(ClaimReply::Nothing, ClaimReply::Claimed),
            // The daemon does not know this request.
            Some(_) => ClaimReply::Nothing,
            None => ClaimReply::Unheard(delegated),
        }
    }
}

impl Client {
    /// Connects; `None` if there is no daemon, or if it cannot be reached.
    pub fn connect(plans: &PlansDir, socket_dirs: &SocketDirs) -> Option<Self> {
        Self::connected(&plans.state_dir(), socket_dirs).ok()
    }

    fn connected(state: &Path, socket_dirs: &SocketDirs) -> io::Result<Self> {
        let path = socket_path::socket(state, socket_dirs);
        socket_path::check(&path, state).map_err(|_| io::ErrorKind::PermissionDenied)?;
        let stream = connect(&path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let answers = BufReader::new(stream.try_clone()?);
        let is_ours = socket_path::is_same_user(&stream);
        is_ours.then_some(Self { stream, answers }).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    /// Whether the other end has closed the connection. A silent daemon has not closed it.
    fn is_closed(&mut self) -> bool {
        let waits =
            |error: io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        self.stream.set_nonblocking(true).is_err()
            || self.answers.fill_buf().map_or_else(|error| !waits(error), <[u8]>::is_empty)
    }

    fn ask(&mut self, request: Request) -> Option<Answer> {
        protocol::send(&mut self.stream, &protocol::request_line(request)).ok()?;
        protocol::read_answer(&mut self.answers).ok()?
    }

    pub fn status(&mut self) -> Option<Status> {
        self.status_after(Request::Status)
    }

    /// A one-time code for the pages; `None` if the daemon does not answer, serves no pages or cannot make a code, or is of
    /// a release without pages.
    pub fn code(&mut self, opener: Opener) -> Option<String> {
        match self.ask(Request::Browser(opener))? {
            Answer::Browser { code } => code,
            _ => None,
        }
    }

    fn status_after(&mut self, request: Request) -> Option<Status> {
        match self.ask(request)? {
            Answer::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Stops the daemon and returns its last status once it has ended; `None` if it does not answer or end in time.
    ///
    /// If watching is only a side job of the process, the process continues with its main job. In that case, this function
    /// does not wait for the end of the process.
    pub fn stop(mut self) -> Option<Status> {
        let status = self.status_after(Request::Stop)?;
        if status.gives_way {
            return Some(status);
        }
        self.stream.set_read_timeout(Some(STOP_TIMEOUT)).ok()?;
        // The stream ends when the process does.
        while let Some(_more) = protocol::read_answer(&mut self.answers).or_else(end_of_stream).ok()? {}
        Some(status)
    }

    /// Calls `ready` once, and then `event` for every event from now on.
    pub fn follow(
        self,
        ready: &mut dyn FnMut(&Status) -> ControlFlow<()>,
        event: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> End {
        self.follow_answers(Request::Events, ready, &mut |answer| match answer {
            Answer::Event { event: json } => {
                Event::from_json(&json).map_or(ControlFlow::Continue(()), |it| event(&it))
            }
            _ => ControlFlow::Continue(()),
        })
    }

    /// Like [`Self::follow`], but `on_message` also gets notices of plans that are still changing.
    pub fn follow_changes(
        self,
        ready: &mut dyn FnMut(&Status) -> ControlFlow<()>,
        on_message: &mut dyn FnMut(Notification) -> ControlFlow<()>,
    ) -> End {
        self.follow_answers(Request::Changes, ready, &mut |answer| match answer {
            Answer::Event { event } => Event::from_json(&event)
                .map_or(ControlFlow::Continue(()), |it| on_message(Notification::Event(Arc::new(it)))),
            Answer::Changed { plan } => on_message(Notification::Changed { plan: plan.map(PlanId::new) }),
            _ => ControlFlow::Continue(()),
        })
    }

    fn follow_answers(
        mut self,
        request: Request,
        ready: &mut dyn FnMut(&Status) -> ControlFlow<()>,
        on_message: &mut dyn FnMut(Answer) -> ControlFlow<()>,
    ) -> End {
        let Some(status) = self.status_after(request) else { return End::Broken };
        if ready(&status).is_break() {
            return End::BrokenOff;
        }
        if self.stream.set_read_timeout(None).is_err() {
            return End::Broken;
        }
        loop {
            let flow = match protocol::read_answer(&mut self.answers) {
                Ok(Some(Answer::End { why })) => return End::ByDaemon(why),
                Ok(Some(answer)) => on_message(answer),
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

/// Connects without blocking: if a daemon is stopped and its backlog is full, connecting could block for ever.
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

    /// Returns a state directory with a socket that no daemon serves.
    fn listening() -> (tempfile::TempDir, SocketDirs, UnixListener) {
        let root = tempfile::tempdir().unwrap();
        let socket_dirs = SocketDirs { runtime: None, temporary: root.path().to_path_buf() };
        let listener = UnixListener::bind(socket_path::socket(root.path(), &socket_dirs)).unwrap();
        (root, socket_dirs, listener)
    }

    #[test]
    fn a_daemon_that_ends_during_a_request_counts_as_none() {
        let (root, socket_dirs, listener) = listening();
        let ending = std::thread::spawn(move || drop(listener.accept().unwrap()));
        assert!(matches!(holder_at(root.path(), &socket_dirs), Holder::None));
        ending.join().unwrap();
        // The listener is closed now.
        assert!(matches!(holder_at(root.path(), &socket_dirs), Holder::None));
    }

    #[test]
    fn a_delegated_claim_without_a_reply_may_have_been_made() {
        let (root, socket_dirs, listener) = listening();
        let daemon = Daemon { state: root.path().to_path_buf(), socket_dirs };
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
                    assert!(matches!(asked, Some(Request::Claim(_))));
                    if let Some(answer) = answer {
                        protocol::send(&mut stream, &protocol::answer_line(answer)).unwrap();
                    }
                });
                daemon.claim(&delegated)
            })
        };
        assert!(matches!(answering(None), ClaimReply::Unheard(_)));
        assert!(matches!(answering(Some(Answer::Claimed { handed: None })), ClaimReply::Nothing));
        // A daemon of another release can refuse the request.
        assert!(matches!(answering(Some(Answer::Refused { why: String::new() })), ClaimReply::Nothing));
        drop(listener);
        assert!(matches!(daemon.claim(&|| panic!("there is no daemon")), ClaimReply::Nothing));
    }

    #[test]
    fn a_daemon_with_a_full_backlog_is_silent() {
        let (root, socket_dirs, listener) = listening();
        rustix::net::listen(&listener, 0).unwrap();
        let path = socket_path::socket(root.path(), &socket_dirs);
        let mut waiting = Vec::new();
        let full = loop {
            match connect(&path) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(matches!(holder_at(root.path(), &socket_dirs), Holder::Silent { pid: None }));
    }
}
