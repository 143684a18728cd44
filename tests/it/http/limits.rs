//! Slow clients do not block others, and a stop waits for running requests.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use planwatch::disk::{PlansDir, RealDisk};
use serde_json::{Value, json};

use crate::support::{Place, tree};

use super::client::{Server, read_answer};

/// The maximum time for an answer. Even a busy machine is much faster.
const PROMPT: Duration = Duration::from_secs(1);

fn half_open(server: &Server, sent: &str) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).ok();
        stream
    };
    (0..200).map(open).collect()
}

/// The shortest of a few runs, which is least affected by other programs.
fn quickest(mut ask: impl FnMut()) -> Duration {
    let time = |_| {
        let begun = Instant::now();
        ask();
        begun.elapsed()
    };
    (0..5).map(time).min().unwrap_or_default()
}

#[test]
fn two_hundred_half_open_connections_do_not_delay_requests() {
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
        println!("R16: with 200 half-open connections HTTP answers in {http:?}, a command in {cli:?}");
        drop(streams);
    }
    assert_eq!(tree(&place.file("plans")), before);
}

#[test]
fn a_stop_waits_for_the_running_request() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let state = place.top().join("home/state");
    let root: &Path = &place.file("plans");
    let plans = PlansDir::open(Arc::new(RealDisk), root, Some(&state)).expect("it is there");
    let lock = plans.lock(&mut || {}).expect("it is free");
    let mut stream = server.connect();
    let body = json!({"status": "blocked"}).to_string();
    let request =
        server.request("PATCH", "/api/steps/fence-repair:4", "Content-Type: application/json\r\n", &body);
    stream.write_all(request.as_bytes()).expect("it is sent");
    // Once later requests are answered, this one is being processed.
    for _ in 0..3 {
        assert_eq!(server.ask("GET", "/api/plans/fence-repair", "", "").status, 200);
    }
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.stop(&place));
        // The daemon accepts no new connections any more.
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

/// Counts glibc's arenas: regions of 64 MiB, each at a multiple of 64 MiB, whose first part is writable.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn n_arenas(pid: u32) -> usize {
    const SIZE: u64 = 64 << 20;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let region = |line: &str| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let [from, to] = [from, to].map(|it| u64::from_str_radix(it, 16).ok());
        let rights = words.next()?.to_owned();
        words.nth(3).is_none().then_some((from?, to?, rights))
    };
    let regions: Vec<_> = maps.lines().filter_map(region).collect();
    let pairs = regions.iter().zip(regions.iter().skip(1));
    let is_arena = |((from, to, rights), (next, end, rest)): (&(u64, u64, String), &(u64, u64, String))| {
        from % SIZE == 0 && rights == "rw-p" && to == next && rest == "---p" && *end == from + SIZE
    };
    pairs.filter(|(one, next)| is_arena((one, next))).count()
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn threads_do_not_keep_memory_of_answers() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(server.json("GET", "/api/plans", &Value::Null).is_array()));
        }
    });
    assert_eq!(n_arenas(server.pid()), 0);
}
