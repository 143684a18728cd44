//! A running daemon with HTTP, and raw requests to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Lines, Place, lines_of};

/// Only a process that hangs takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// `planwatch watch --json --http`, killed at the end of the test.
pub(crate) struct Server {
    child: Mutex<Child>,
    pub(crate) address: SocketAddr,
    /// Its output on stderr.
    log: Arc<Mutex<String>>,
    reader: Mutex<Option<std::thread::JoinHandle<()>>>,
    events: Mutex<Lines>,
}

/// An answer, read to the end of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Server {
    /// On a free port, with a token.
    pub(crate) fn start(place: &Place) -> Self {
        Self::start_with(place, &["--http", "0"], "")
    }

    /// On a free port, without a token.
    pub(crate) fn open(place: &Place) -> Self {
        Self::start_with(place, &["--http", "0", "--no-token"], "")
    }

    pub(crate) fn start_with(place: &Place, arguments: &[&str], filter: &str) -> Self {
        Self::of(place.command(), arguments, filter)
    }

    /// `command` is the binary, with its directory and environment.
    pub(crate) fn of(mut command: Command, arguments: &[&str], filter: &str) -> Self {
        command.args(["watch", "--json"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        if !filter.is_empty() {
            command.env("PLANWATCH_LOG", filter);
        }
        let mut child = command.spawn().expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let mut stderr = child.stderr.take().expect("it is piped");
        let into = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
                into.lock().expect("no thread panicked").push_str(&text);
            }
        });
        let mut events = lines_of(child.stdout.take().expect("it is piped"));
        let ready: Value = serde_json::from_str(&events.next()).expect("it is JSON");
        let url = ready["http"].as_str().unwrap_or_else(|| panic!("no address: {ready}"));
        let address: SocketAddr = url.trim_start_matches("http://").parse().expect("an address");
        let (child, reader, events) = (Mutex::new(child), Mutex::new(Some(reader)), Mutex::new(events));
        Self { child, address, log, reader, events }
    }

    /// The next line of its output: an event.
    #[track_caller]
    pub(crate) fn event(&self) -> Value {
        let line = self.events.lock().expect("no thread panicked").next();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.lock().expect("no thread panicked").id()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("no thread panicked").clone()
    }

    /// Stops it with `watch --stop` and waits until it has exited.
    pub(crate) fn stop(&self, place: &Place) {
        let stopped = place.run("watch --stop");
        assert_eq!(stopped.code, 0, "{stopped:?}");
        self.wait();
    }

    /// Kills it at once, and waits until it has exited.
    pub(crate) fn kill(&self) {
        self.child.lock().expect("no thread panicked").kill().expect("it runs");
        self.wait();
    }

    pub(crate) fn wait(&self) {
        self.child.lock().expect("no thread panicked").wait().expect("it ends");
        if let Some(reader) = self.reader.lock().expect("no thread panicked").take() {
            reader.join().expect("it read to the end");
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let port = self.address.port();
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
        stream.set_read_timeout(Some(DEADLINE)).expect("it can be set");
        stream
    }

    /// Sends bytes unchanged, and reads the whole answer.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may refuse a request before it has read all of it.
        stream.write_all(bytes).ok();
        read_answer(&mut stream)
    }

    /// Sends a valid request. `headers` are complete lines.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.raw(self.request(method, path, headers, body).as_bytes())
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let (address, n) = (self.address, body.len());
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {n}\r\n") };
        let host = format!("127.0.0.1:{}", address.port());
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}{headers}\r\n{body}"
        )
    }

    /// As [`Self::ask`], with JSON in the request and the answer.
    #[track_caller]
    pub(crate) fn json(&self, method: &str, path: &str, body: &Value) -> Value {
        self.json_with(method, path, "", body).json()
    }

    pub(crate) fn json_with(&self, method: &str, path: &str, headers: &str, body: &Value) -> Answer {
        let (text, kind) = match body {
            Value::Null => (String::new(), ""),
            body => (body.to_string(), "Content-Type: application/json\r\n"),
        };
        self.ask(method, path, &format!("{kind}{headers}"), &text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child.lock().expect("no thread panicked");
        // It may have exited already.
        child.kill().ok();
        child.wait().ok();
    }
}

pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // If the connection is reset after the answer, the answer was received.
    stream.read_to_end(&mut bytes).ok();
    Answer::read(&bytes)
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Self { status: 0, headers: Vec::new(), body: text };
        };
        let mut lines = head.lines();
        let status = lines.next().and_then(|it| it.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let headers = lines.filter_map(|it| it.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let mut answer = Self { status, headers, body: String::new() };
        let is_chunked = answer.header("transfer-encoding") == Some("chunked");
        answer.body = if is_chunked { unchunked(body) } else { body.to_owned() };
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status and the code of a refusal, which must be in the standard format.
    #[track_caller]
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        let code = problem["code"].as_str().unwrap_or_default().to_owned();
        assert_eq!(problem["type"], format!("urn:planwatch:{code}"), "{problem}");
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
        assert!(problem["instance"].is_string(), "{problem}");
        (self.status, code)
    }
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 {
            break;
        }
        whole.push_str(more.get(..length).unwrap_or(more));
        rest = more.get(length + 2..).unwrap_or_default();
    }
    whole
}
