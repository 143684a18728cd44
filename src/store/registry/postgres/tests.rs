//! Tests of the registry with a real server, which they start. The programs of PostgreSQL must be installed.
#![expect(clippy::disallowed_methods, reason = "the server is started by the tests alone")]

mod fleet;
mod tls;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use tokio_postgres::error::SqlState;

use super::*;
use crate::disk::RealDisk;
use crate::plan::id::read_step_id;
use crate::store::registry::record::NewRecord;
use crate::store::registry::table;

/// A server with a directory and a port of its own, without passwords.
pub(super) struct Server {
    place: tempfile::TempDir,
    pub(super) port: u16,
    /// The settings on the server's command line, each as `NAME=VALUE`.
    settings: Vec<String>,
    running: Child,
}

fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> =
        versions.map(|it| it.path().join("bin").join(name)).filter(|it| it.exists()).collect();
    found.sort_unstable();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}

/// Runs a program as the user `postgres` if the tests run as root, because PostgreSQL refuses to run as root.
fn as_user(program: &Path) -> Command {
    if !rustix::process::getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

fn run(command: &mut Command) {
    let ran = command.output().expect("PostgreSQL is installed");
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

impl Server {
    pub(super) fn start() -> Self {
        Self::start_with(|_| Vec::new())
    }

    /// Starts a server with the settings that `settings` returns. `settings` gets a directory that belongs to the
    /// server's user, and may create files there that the settings name.
    pub(super) fn start_with(settings: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let place = tempfile::tempdir().unwrap();
        if rustix::process::getuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(place.path()));
        }
        let data = place.path().join("data");
        let options = ["--auth=trust", "--username=planwatch", "--no-sync", "--encoding=UTF8", "-D"];
        run(as_user(&program("initdb")).args(options).arg(&data));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = settings(place.path());
        let running = Self::run_at(place.path(), port, &settings);
        Self { place, port, settings, running }
    }

    fn run_at(place: &Path, port: u16, settings: &[String]) -> Child {
        let mut command = as_user(&program("postgres"));
        command.arg("-D").arg(place.join("data")).arg("-k").arg(place).arg("-p").arg(port.to_string());
        command.args(settings.iter().flat_map(|it| ["-c", it.as_str()]));
        command.args(["-h", "127.0.0.1", "-N", "200"]).stdout(Stdio::null()).stderr(Stdio::null());
        let running = command.spawn().expect("PostgreSQL is installed");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        running
    }

    /// Ends the server at once, as a crash does, and starts it again.
    pub(super) fn restart(&mut self) {
        let id = i32::try_from(self.running.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::QUIT).unwrap();
        self.running.wait().unwrap();
        self.running = Self::run_at(self.place.path(), self.port, &self.settings);
    }

    /// A client. Clients with the same name share a connection.
    pub(super) fn client(&self, name: &str) -> Postgres {
        client_at(self.port, name)
    }

    /// Runs a statement. While the server is starting, tries again.
    pub(super) fn execute(&self, statement: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("host=127.0.0.1 port={} user=planwatch dbname=postgres", self.port);
        runtime.block_on(async {
            let (client, connection) = loop {
                match tokio_postgres::connect(&url, tokio_postgres::NoTls).await {
                    Err(error) if error.code() == Some(&SqlState::CANNOT_CONNECT_NOW) => {}
                    connected => break connected.unwrap(),
                }
            };
            tokio::spawn(connection);
            client.batch_execute(statement).await.unwrap();
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let id = i32::try_from(self.running.id()).ok().and_then(rustix::process::Pid::from_raw);
        id.map(|it| rustix::process::kill_process(it, rustix::process::Signal::QUIT));
        self.running.wait().ok();
    }
}

pub(super) fn client_at(port: u16, name: &str) -> Postgres {
    client_of(&format!("postgres://planwatch@127.0.0.1:{port}/postgres?application_name={name}")).unwrap()
}

fn client_of(url: &str) -> Result<Postgres, String> {
    Postgres::new(url, "0123456789abcdef", &DatabaseLogin::default(), &RealDisk)
}

pub(super) fn name(step: &str) -> Name {
    Name::of("plans", &read_step_id(step).unwrap())
}

fn value(registry: &Postgres, text: &str) -> Value {
    registry.value(format!("{{\"nonce\":\"{text}\"}}"), 3600).unwrap()
}

fn create(registry: &Postgres, step: &str, text: &str) -> Change {
    Change::Create { name: name(step), new: value(registry, text) }
}

#[test]
fn postgresql_passes_the_table_of_registry_rules() {
    let server = Server::start();
    let (one, other) = (server.client("one"), server.client("other"));
    let error = one.list().unwrap_err();
    assert!(matches!(&error, RegistryError::Refused(why) if why.contains("sync init")), "{error:?}");
    one.prepare().unwrap();
    other.prepare().unwrap();
    table::check(&one, &other, true);
    let elsewhere = Postgres { repo: "another".to_owned(), session: Arc::clone(&other.session) };
    table::check(&one, &elsewhere, false);
}

#[test]
fn of_many_clients_one_makes_each_record() {
    let server = Server::start();
    server.client("first").prepare().unwrap();
    let won = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for nth in 0..8 {
            let (server, won) = (&server, &won);
            scope.spawn(move || {
                let client = server.client(&format!("racer-{nth}"));
                for step in 1..=40 {
                    let change = create(&client, &format!("p:{step}"), &format!("{nth}-{step}"));
                    won.fetch_add(
                        usize::from(client.change_one(change).unwrap() == Answer::Done),
                        Ordering::SeqCst,
                    );
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 40);
}

#[test]
fn only_a_lapsed_record_is_taken_over() {
    let server = Server::start();
    let (one, other) = (server.client("holder"), server.client("taker"));
    one.prepare().unwrap();
    let (held, new) = (value(&one, "a"), value(&other, "b"));
    one.change_one(Change::Create { name: name("p:1"), new: held.clone() }).unwrap();
    let take = Change::Replace { name: name("p:1"), old: held.revision, new, is_take_over: true };
    assert_eq!(other.change_one(take.clone()).unwrap(), Answer::Lost);
    let standing = other.list().unwrap()[0].standing.unwrap();
    assert!(!standing.has_lapsed && standing.age < Duration::from_secs(60), "{standing:?}");
    server.execute("update planwatch.record set seen = seen - interval '3601 seconds'");
    let standing = other.list().unwrap()[0].standing.unwrap();
    assert!(standing.has_lapsed && standing.age >= Duration::from_secs(3601), "{standing:?}");
    assert_eq!(other.change_one(take).unwrap(), Answer::Done);
}

#[test]
fn no_acknowledged_claim_is_lost_when_the_server_restarts() {
    // An administrator may choose these settings of the server. If the session did not override them, acknowledged
    // changes would be written to disk seconds later.
    let late =
        ["synchronous_commit=off", "wal_writer_delay=10s", "default_transaction_isolation=serializable"];
    let mut server = Server::start_with(|_| late.map(str::to_owned).to_vec());
    let client = server.client("steady");
    client.prepare().unwrap();
    let (sender, done) = channel();
    let port = server.port;
    let claiming = std::thread::spawn(move || {
        let client = client_at(port, "steady");
        (1..=300).all(|step| {
            let change = create(&client, &format!("p:{step}"), &format!("n{step}"));
            // The session repeats calls that the restart interrupted, so in the end each change has an answer.
            let is_done = client.change_one(change).unwrap() == Answer::Done;
            sender.send(step).unwrap();
            is_done
        })
    });
    for at in [60, 180] {
        while done.recv().unwrap() < at {}
        server.restart();
    }
    assert!(claiming.join().unwrap());
    assert_eq!(client.list().unwrap().len(), 300);
}

/// Starts a relay to a server and returns its port. An armed relay cuts the connection instead of forwarding the
/// server's next answer; then it is no longer armed.
fn relay(port: u16, is_armed: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let is_armed = Arc::clone(&is_armed);
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || {
                let (mut server, mut client, mut bytes) = (server, client, [0; 4096]);
                while let Ok(read @ 1..) = server.read(&mut bytes) {
                    if is_armed.swap(false, Ordering::SeqCst) || client.write_all(&bytes[..read]).is_err() {
                        break;
                    }
                }
                client.shutdown(Shutdown::Both).ok();
                server.shutdown(Shutdown::Both).ok();
            });
        }
    });
    own
}

#[test]
fn a_change_whose_answer_is_lost_is_ones_own() {
    let server = Server::start();
    let is_armed = Arc::new(AtomicBool::new(false));
    let client = client_at(relay(server.port, Arc::clone(&is_armed)), "relayed");
    client.prepare().unwrap();
    for step in 1..=10 {
        let change = create(&client, &format!("p:{step}"), "x");
        is_armed.store(true, Ordering::SeqCst);
        assert_eq!(client.change_one(change.clone()).unwrap(), Answer::Done);
        assert!(!is_armed.load(Ordering::SeqCst), "the relay cut the connection");
        let Change::Create { name, new } = change else { unreachable!() };
        let next = Change::Replace { name, old: new.revision, new: value(&client, "y"), is_take_over: false };
        is_armed.store(true, Ordering::SeqCst);
        assert_eq!(client.change_one(next).unwrap(), Answer::Done);
    }
    assert_eq!(server.client("straight").list().unwrap().len(), 10);
}

#[test]
fn others_hear_of_a_change_at_once() {
    let server = Server::start();
    let (one, other) = (server.client("speaker"), server.client("listener"));
    one.prepare().unwrap();
    let (sender, heard) = channel();
    assert!(other.watch(Box::new(move || {
        sender.send(()).ok();
    })));
    // A client that begins to listen is called once, because it may have missed earlier changes.
    heard.recv().unwrap();
    one.change_one(create(&one, "p:1", "a")).unwrap();
    heard.recv().unwrap();
    let old = value(&one, "a").revision;
    one.change_one(Change::Delete { name: name("p:1"), old }).unwrap();
    heard.recv().unwrap();
}

#[test]
fn claims_and_ends_are_notified_and_renewals_are_not() {
    let value = |state| {
        let new = NewRecord {
            step: &read_step_id("p:1").unwrap(),
            id: "claim1",
            by: "ann",
            host: "here",
            branch: None,
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
            ttl: 3600,
            is_renewed: false,
            nonce: 1,
            state,
        };
        let body = Record::new(&new).body();
        Value { revision: Revision("new".to_owned()), body, ttl: 3600 }
    };
    let (name, old) = (name("p:1"), Revision("old".to_owned()));
    let replace = |state, is_take_over| {
        let (name, old) = (name.clone(), old.clone());
        Change::Replace { name, old, new: value(state), is_take_over }
    };
    let cases = [
        (Change::Create { name: name.clone(), new: value(State::Claimed) }, true),
        (Change::Delete { name: name.clone(), old: old.clone() }, true),
        (replace(State::Claimed, true), true),
        (replace(State::Completed, false), true),
        (replace(State::Claimed, false), false),
    ];
    for (change, expected) in cases {
        assert_eq!(must_notify(&change), expected, "{change:?}");
    }
}
