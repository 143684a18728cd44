//! The connection to a database. A process has one for each URL, with a thread of its own. The connection is opened
//! when it is first needed. After it is lost, it is opened again for the next job, or at once if there are listeners.
//!
//! If the connection breaks during a job, the job is repeated on a new connection. Each change contains the wanted
//! value, so a change that was already made, but whose answer was lost, counts as done. The server limits the time of
//! each statement, so a statement without an answer does not take effect much later.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

use super::address::{Address, Tls, is_untrusted};
use super::{Done, Job, RegistryError, perform};
use crate::api::sync_config::DatabaseLogin;
use crate::disk::Disk;

/// The time limit of a job, including all repetitions.
const LIMIT: Duration = Duration::from_secs(10);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest pause between two attempts to connect when only listeners need the connection. The first pause is
/// [`PAUSE`], and each further pause is twice as long as the one before.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The settings of each session. They are set explicitly, because a server or a role can have other defaults.
const SETTINGS: &str = "set default_transaction_isolation = 'read committed'; set synchronous_commit = on; \
    set statement_timeout = '5s'; set lock_timeout = '2s'; set idle_in_transaction_session_timeout = '10s'";

type Answered = Result<Done, RegistryError>;
type OnChange = Arc<dyn Fn() + Send + Sync>;

enum Message {
    Job(Job, SyncSender<Answered>),
    Listen(String, OnChange),
    /// The connection has ended, or an attempt to connect again is due.
    Lost,
}

pub(super) struct Session {
    messages: UnboundedSender<Message>,
}

/// The sessions of this process, by URL.
static SESSIONS: LazyLock<Mutex<BTreeMap<String, Arc<Session>>>> = LazyLock::new(Mutex::default);

impl Session {
    /// The session for a URL. It connects when it gets its first job or listener.
    pub(super) fn of(url: &str, login: &DatabaseLogin, disk: &dyn Disk) -> Result<Arc<Self>, String> {
        let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(url) {
            return Ok(Arc::clone(session));
        }
        let address = Address::read(url, login, disk)?;
        let session = Arc::new(Self::begin(address).map_err(|it| it.to_string())?);
        sessions.insert(url.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    fn begin(address: Address) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (messages, inbox) = unbounded_channel();
        let own = messages.clone();
        let thread = std::thread::Builder::new().name("postgres".to_owned());
        thread.spawn(move || runtime.block_on(work(address, inbox, own)))?;
        Ok(Self { messages })
    }

    pub(super) fn call(&self, job: Job) -> Answered {
        let (answer, answered) = sync_channel(1);
        let gone = || RegistryError::Local("planwatch's thread for the database has ended".to_owned());
        self.messages.send(Message::Job(job, answer)).map_err(|_| gone())?;
        // Jobs run one after another, so an answer may take longer than the time limit of one job.
        answered.recv_timeout(LIMIT * 3).map_err(|it| match it {
            RecvTimeoutError::Timeout => RegistryError::Unanswered("no answer in 30 seconds".to_owned()),
            RecvTimeoutError::Disconnected => gone(),
        })?
    }

    /// Calls `on_change` at each notification of a channel. Also calls it after each new connection, because
    /// notifications may have been missed before.
    pub(super) fn listen(&self, channel: String, on_change: Box<dyn Fn() + Send + Sync>) {
        self.messages.send(Message::Listen(channel, Arc::from(on_change))).ok();
    }
}

struct Working {
    address: Address,
    own: UnboundedSender<Message>,
    client: Option<Client>,
    channels: BTreeMap<String, OnChange>,
    /// The pause before the next attempt to connect when only listeners need the connection.
    pause: Duration,
}

async fn work(address: Address, mut inbox: UnboundedReceiver<Message>, own: UnboundedSender<Message>) {
    let mut working = Working { address, own, client: None, channels: BTreeMap::new(), pause: PAUSE };
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Job(job, answer) => {
                let done = working.perform(&job).await;
                answer.send(done).ok();
            }
            Message::Listen(channel, on_change) => {
                working.channels.insert(channel, on_change);
                // A connection listens only to the channels that were known when it was opened.
                working.client = None;
                working.stay_connected().await;
            }
            Message::Lost => working.stay_connected().await,
        }
    }
}

impl Working {
    async fn perform(&mut self, job: &Job) -> Answered {
        let end = Instant::now() + LIMIT;
        loop {
            let error = match timeout_at(end, self.attempt(job)).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(_) => silent(job, "no answer in 10 seconds".to_owned()),
            };
            let may_be_repeated =
                matches!(error, RegistryError::Unreachable(_) | RegistryError::Unanswered(_));
            if !may_be_repeated || Instant::now() + PAUSE >= end {
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }

    async fn attempt(&mut self, job: &Job) -> Answered {
        self.connect().await?;
        let Some(client) = self.client.as_mut() else {
            return Err(RegistryError::Unreachable("not connected".to_owned()));
        };
        perform(client, job).await.map_err(|it| read_error(job, &it))
    }

    /// Connects, unless the connection is open already. After a new connection, calls each listener once, because
    /// notifications may have been missed.
    async fn connect(&mut self) -> Result<(), RegistryError> {
        if self.client.as_ref().is_some_and(|it| !it.is_closed()) {
            return Ok(());
        }
        let config = &self.address.config;
        let failed = |it: tokio_postgres::Error| read_error(&Job::Prepare, &it);
        let client = match &self.address.tls {
            Tls::None => {
                let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
                self.follow(connection);
                client
            }
            Tls::Verified(tls) => {
                let (client, connection) = config.connect(tls.clone()).await.map_err(failed)?;
                self.follow(connection);
                client
            }
        };
        client.batch_execute(SETTINGS).await.map_err(failed)?;
        for channel in self.channels.keys() {
            // The names consist of letters, digits and `_`.
            client.batch_execute(&format!("listen {channel}")).await.map_err(failed)?;
        }
        self.client = Some(client);
        self.pause = PAUSE;
        self.channels.values().for_each(|on_change| on_change());
        Ok(())
    }

    /// Drives a connection until it ends, and calls the listener of each notification's channel.
    fn follow<S, T>(&self, mut connection: Connection<S, T>)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (own, channels) = (self.own.clone(), self.channels.clone());
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|it| connection.poll_message(it)).await {
                if let AsyncMessage::Notification(it) = message {
                    channels.get(it.channel()).into_iter().for_each(|on_change| on_change());
                }
            }
            own.send(Message::Lost).ok();
        });
    }

    /// Connects again if there are listeners and the connection is closed.
    async fn stay_connected(&mut self) {
        if self.channels.is_empty() || self.client.as_ref().is_some_and(|it| !it.is_closed()) {
            return;
        }
        if let Ok(Ok(())) = timeout_at(Instant::now() + LIMIT, self.connect()).await {
            return;
        }
        // The pauses grow: a server that restarts is soon available again, but a server that stays down must not be
        // contacted often.
        let (own, pause) = (self.own.clone(), self.pause);
        self.pause = LONGEST_PAUSE.min(pause * 2);
        tokio::spawn(async move {
            sleep(pause).await;
            own.send(Message::Lost).ok();
        });
    }
}

/// The error for a missing answer. A change may have been made, so its error is [`RegistryError::Unanswered`].
fn silent(job: &Job, why: String) -> RegistryError {
    match job {
        Job::Change { .. } => RegistryError::Unanswered(why),
        _ => RegistryError::Unreachable(why),
    }
}

/// Translates an error. The server's text is shown, so it is shortened and control characters are removed.
fn read_error(job: &Job, error: &tokio_postgres::Error) -> RegistryError {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    let text: String = text.chars().filter(|it| !it.is_control()).take(300).collect();
    if is_untrusted(error) {
        return RegistryError::Refused(text);
    }
    let Some(refusal) = error.as_db_error() else { return silent(job, text) };
    match refusal.code() {
        // The server is shutting down, or it terminated the connection. The statement may have been committed.
        &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN => silent(job, text),
        &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::QUERY_CANCELED
        | &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::T_R_DEADLOCK_DETECTED => RegistryError::Unreachable(text),
        &SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME => RegistryError::Refused(
            "the table of planwatch is missing; `planwatch sync init` creates it".to_owned(),
        ),
        _ => RegistryError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::tests::Server;
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn a_job_that_connects_again_calls_the_listeners() {
        let server = Server::start();
        let url = format!("postgres://planwatch@127.0.0.1:{}/postgres", server.port);
        let address = Address::read(&url, &DatabaseLogin::default(), &RealDisk).unwrap();
        let n_calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_calls);
        let on_change: OnChange = Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let channels = BTreeMap::from([("planwatch_test".to_owned(), on_change)]);
        let (own, _inbox) = unbounded_channel();
        let mut working = Working { address, own, client: None, channels, pause: LONGEST_PAUSE };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(working.perform(&Job::Prepare)).unwrap();
        assert_eq!((n_calls.load(Ordering::SeqCst), working.pause), (1, PAUSE));
        // The connection is still open, so no notification was missed.
        runtime.block_on(working.perform(&Job::Prepare)).unwrap();
        assert_eq!(n_calls.load(Ordering::SeqCst), 1);
    }
}
