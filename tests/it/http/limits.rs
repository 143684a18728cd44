//! Slow clients keep nobody out, and an end waits for who is being answered.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use planwatch::disk::{PlansDir, RealDisk};
use serde_json::{Value, json};

use crate::support::{Place, tree};

use super::client::{Server, read_answer};

/// What the requirement says; a machine that is busy with other tests stays far below it.
const PROMPT: Duration = Duration::from_secs(1);

fn half_open(server: &Server, sent: &str) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).ok();
        stream
    };
    (0..200).map(open).collect()
}

/// The shortest of a few tries: how fast it is when this machine does nothing else for a moment.
fn quickest(mut ask: impl FnMut()) -> Duration {
    let time = |_| {
        let begun = Instant::now();
        ask();
        begun.elapsed()
    };
    (0..5).map(time).min().unwrap_or_default()
}

#[test]
fn two_hundred_half_open_connections_hold_nobody_up() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let port = server.address.port();
    let head = format!("GET /api/plans HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ");
    let body = format!(
        "PATCH /api/steps/fence-repair:4 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    );
    let before = tree(&place.file("plans"));
    for sent in ["", head.as_str(), body.as_str()] {
        let streams = half_open(&server, sent);
        let http = quickest(|| {
            assert_eq!(server.json("GET", "/api/steps/fence-repair:4", &Value::Null)["status"], "pending");
        });
        let cli = quickest(|| assert_eq!(place.run("list fence-repair").code, 0));
        assert!(http < PROMPT && cli < PROMPT, "{http:?} {cli:?}");
        drop(streams);
    }
    assert_eq!(tree(&place.file("plans")), before);
}

#[test]
fn an_end_waits_for_who_is_being_answered() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let state = place.top().join("home/state");
    let root: &Path = &place.file("plans");
    let plans = PlansDir::open(Arc::new(RealDisk), root, Some(&state)).expect("it is there");
    let lock = plans.lock(&mut || {}).expect("nobody has it");
    let mut stream = server.connect();
    let body = json!({"status": "blocked"}).to_string();
    let request =
        server.request("PATCH", "/api/steps/fence-repair:4", "Content-Type: application/json\r\n", &body);
    stream.write_all(request.as_bytes()).expect("it is sent");
    // The request has reached the engine when others behind it are answered.
    for _ in 0..3 {
        assert_eq!(server.ask("GET", "/api/plans/fence-repair", "", "").status, 200);
    }
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.stop(&place));
        // It takes nobody new any more.
        while TcpStream::connect(("127.0.0.1", server.address.port())).is_ok() {
            std::thread::yield_now();
        }
        drop(lock);
        let answer = read_answer(&mut stream);
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("blocked")), "{answer:?}");
        stopping.join().expect("it ends");
    });
    assert!(place.text("plans/fence-repair/step-4.md").contains("status: blocked"));
}
