//! The event stream: immediate events, resumption, and its end.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::Place;

use super::client::Server;

const STEP: &str = "plans/fence-repair/step-4.md";

/// A client of the event stream.
struct Viewer {
    stream: BufReader<TcpStream>,
    /// The id of `ready`.
    begun: Option<u64>,
}

/// One event, with its id if it has one.
#[derive(Debug)]
struct Event {
    id: Option<u64>,
    kind: String,
    data: Value,
}

impl Viewer {
    fn follow(server: &Server, last: &str) -> Self {
        let header = if last.is_empty() { String::new() } else { format!("Last-Event-ID: {last}\r\n") };
        let request = server.request("GET", "/api/events", &header, "").replace("Connection: close\r\n", "");
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut viewer = Self { stream: BufReader::new(stream), begun: None };
        let head: Vec<_> = std::iter::from_fn(|| viewer.line()).take_while(|it| !it.is_empty()).collect();
        assert!(
            head[0].contains("200") && head.contains(&"content-type: text/event-stream".to_owned()),
            "{head:?}"
        );
        let ready = viewer.next().expect("it begins");
        assert_eq!(ready.kind, "ready");
        viewer.begun = ready.id;
        viewer
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|it| *it > 0)?;
        Some(line.trim_end().to_owned())
    }

    /// The next event; `None` at the end.
    fn next(&mut self) -> Option<Event> {
        let (mut id, mut kind) = (None, String::new());
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("id", it)) => id = it.parse().ok(),
                Some(("event", it)) => it.clone_into(&mut kind),
                Some(("data", it)) => {
                    let data = serde_json::from_str(it).expect("it is JSON");
                    return Some(Event { id, kind, data });
                }
                // Sizes of chunks, empty lines and comments.
                _ => {}
            }
        }
    }

    #[track_caller]
    fn until(&mut self, kind: &str) -> Event {
        std::iter::from_fn(|| self.next()).find(|it| it.kind == kind).unwrap_or_else(|| panic!("no {kind}"))
    }
}

#[test]
fn a_save_is_reported_at_once_and_after_it_has_settled() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let mut viewer = Viewer::follow(&server, "");
    place.write(STEP, place.text(STEP).replacen("status: pending", "status: blocked", 1));
    let first = viewer.next().expect("an event");
    assert_eq!((first.kind.as_str(), &first.data["plan"]), ("changed", &json!("fence-repair")), "{first:?}");
    // Until the save has settled, the route answers with the old or the new status.
    let now = server.json("GET", "/api/steps/fence-repair:4", &Value::Null);
    assert!(now["status"] == "blocked" || now["status"] == "pending");
    let settled = viewer.until("event");
    assert_eq!((&settled.data["id"], &settled.data["new"]), (&json!("fence-repair:4"), &json!("blocked")));
    assert!(settled.id > first.id, "{settled:?}");
    assert_eq!(server.json("GET", "/api/steps/fence-repair:4", &Value::Null)["status"], "blocked");
}

#[test]
fn a_viewer_resumes_after_its_last_event_or_gets_a_reset() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let mut viewer = Viewer::follow(&server, "");
    server.json("PATCH", "/api/steps/fence-repair:4", &json!({"status": "blocked"}));
    let seen = viewer.until("event");
    drop(viewer);
    server.json("PATCH", "/api/steps/fence-repair:4", &json!({"status": "skipped"}));
    let mut other = Viewer::follow(&server, &seen.id.expect("it has one").to_string());
    let missed = other.until("event");
    assert_eq!(missed.data["new"], "skipped", "{missed:?}");
    for unknown in ["1", "99999999999999999999", "abc", "18446744073709551615"] {
        let mut lost = Viewer::follow(&server, unknown);
        let reset = lost.next().expect("an event");
        assert_eq!((reset.kind.as_str(), lost.begun), ("reset", None), "{unknown}");
        assert!(reset.id >= missed.id, "{unknown}");
    }
}

#[test]
fn a_connection_that_breaks_after_ready_loses_no_event() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let begun = Viewer::follow(&server, "").begun.expect("ready has an id");
    server.json("PATCH", "/api/steps/fence-repair:4", &json!({"status": "blocked"}));
    let mut viewer = Viewer::follow(&server, &begun.to_string());
    assert_eq!(viewer.begun, Some(begun), "`ready` repeats the given id");
    let missed = viewer.until("event");
    assert_eq!((&missed.data["new"], missed.id > Some(begun)), (&json!("blocked"), true));
    // The same after another connection that read only `ready`.
    assert_eq!(Viewer::follow(&server, &begun.to_string()).until("event").id, missed.id);
}

#[test]
fn streams_end_with_the_daemon_and_their_number_is_limited() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let viewers: Vec<_> = (0..64).map(|_| Viewer::follow(&server, "")).collect();
    let refused = server.ask("GET", "/api/events", "", "");
    assert_eq!(refused.problem(), (503, "too-many-streams".to_owned()));
    server.stop(&place);
    for mut viewer in viewers {
        assert!(viewer.next().is_none());
    }
}
