//! What is said over the daemon's socket: one JSON object a line, a request and its answer, or a stream of events.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::daemon::{ClaimedStep, DaemonStatus, DelegatedClaim, Neighbours};
use crate::index::{Generation, Key};

/// Raised when an older partner would misunderstand.
pub(crate) const VERSION: u32 = 1;

/// No line is longer that is meant well.
const LINE_LIMIT: u64 = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Whether every change that was finished before this request is in the index.
    Sync,
    /// As [`Ask::Sync`], with the cached answer of `next`.
    Next,
    /// An answer of `next` to keep in memory; there is no reply.
    CacheNext(String),
    /// What lies around the plan of this id, every change included that was finished before this request.
    Around(String),
    /// Claims the most urgent step for who asks.
    Claim(DelegatedClaim),
    Status,
    /// Every event from here on, after the status.
    Events,
    /// As [`Ask::Events`], and at once which plan is being changed.
    Changes,
    /// End; the answer is the status, and the end of the stream is the daemon's.
    Stop,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) version: u32,
    pub(crate) request: Ask,
}

/// Directories by whether they are archived and by name; see `api::daemon::Neighbours`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Around {
    pub(crate) spellings: Vec<(bool, String)>,
    pub(crate) odd: Vec<(bool, String)>,
    pub(crate) waiting: Vec<(bool, String)>,
}

impl From<Around> for Neighbours {
    fn from(around: Around) -> Self {
        let Around { spellings, odd, waiting } = around;
        let keys = |of: Vec<(bool, String)>| {
            of.into_iter().map(|(is_archived, name)| Key { is_archived, name }).collect()
        };
        Self { spellings: keys(spellings), odd: keys(odd), waiting: keys(waiting) }
    }
}

/// How a daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub pid: u32,
    /// The release that it runs.
    pub release: String,
    pub since: String,
    pub plans: usize,
    pub steps: usize,
    /// Why it looks at everything every two seconds; none while the system tells of changes.
    pub polling: Option<String>,
    /// How many follow its events.
    pub followers: usize,
    /// Where it answers over HTTP, if it does.
    #[serde(default)]
    pub http: Option<String>,
    /// It watches only beside something else that it does, and goes on with that when another process is to watch.
    #[serde(default)]
    pub gives_way: bool,
}

impl From<Status> for DaemonStatus {
    fn from(status: Status) -> Self {
        let Status { pid, since, release, polling, http, .. } = status;
        Self::Running { pid, since, release, polling, http }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The commit of the index that is right; none if nobody can say.
    Sync {
        fresh: bool,
        generation: Option<String>,
    },
    /// The commit of the index that is right, if it is known, and the last answer of `next` that was cached.
    Next {
        generation: Option<String>,
        cached: Option<String>,
    },
    /// None if nobody can say.
    Around {
        around: Option<Around>,
    },
    /// None: whoever asks has to claim alone.
    Claimed {
        handed: Option<ClaimedStep>,
    },
    Status(Status),
    Event {
        event: Value,
    },
    /// Something in this plan is being changed; with none, anything may have been.
    Changed {
        plan: Option<String>,
    },
    /// The daemon ends; nothing comes after this.
    End {
        why: String,
    },
    Refused {
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    version: u32,
    #[serde(flatten)]
    answer: Answer,
}

/// Reads the answer to [`Ask::Next`].
pub(crate) fn commit_and_next(answer: Option<Answer>) -> (Option<Generation>, Option<String>) {
    match answer {
        Some(Answer::Next { generation, cached }) => (generation.and_then(|it| it.parse().ok()), cached),
        _ => (None, None),
    }
}

pub(crate) fn request_line(request: Ask) -> Vec<u8> {
    line(&Request { version: VERSION, request })
}

pub(crate) fn answer_line(answer: Answer) -> Vec<u8> {
    line(&Envelope { version: VERSION, answer })
}

fn line(of: &impl Serialize) -> Vec<u8> {
    // Only maps with keys that are no text cannot be written, and there are none.
    let mut bytes = serde_json::to_vec(of).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads one request; none at the end of the stream.
pub(crate) fn read_request(from: &mut BufReader<impl Read>) -> io::Result<Option<Ask>> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    let request: Request = serde_json::from_slice(&line)?;
    if request.version == VERSION { Ok(Some(request.request)) } else { Err(other_version()) }
}

/// Reads one answer; none at the end of the stream.
pub(crate) fn read_answer(from: &mut BufReader<impl Read>) -> io::Result<Option<Answer>> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    let envelope: Envelope = serde_json::from_slice(&line)?;
    if envelope.version == VERSION { Ok(Some(envelope.answer)) } else { Err(other_version()) }
}

fn other_version() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the other side speaks another version")
}

fn read_line(from: &mut BufReader<impl Read>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(LINE_LIMIT).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends a line whole.
pub(crate) fn send(to: &mut impl Write, line: &[u8]) -> io::Result<()> {
    to.write_all(line).and_then(|()| to.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let around = Ask::Around("Prüfung:1".to_owned());
        let errand = serde_json::json!({
            "claim": "k0000001", "by": "ann", "asker": "bo", "lease": 60, "at": "2026-11-21T12:00:00Z",
            "begin_before": 1, "surroundings": "x",
        });
        let claim = Ask::Claim(serde_json::from_value(errand).unwrap());
        let cache = Ask::CacheNext("{\"at\": 1}".to_owned());
        for ask in
            [Ask::Sync, Ask::Next, cache, around, claim, Ask::Status, Ask::Events, Ask::Changes, Ask::Stop]
        {
            let line = request_line(ask.clone());
            assert_eq!(read_request(&mut BufReader::new(line.as_slice())).unwrap(), Some(ask));
        }
        let status = Status {
            pid: 7,
            release: "1".into(),
            since: "then".into(),
            plans: 1,
            steps: 2,
            polling: None,
            followers: 0,
            http: Some("http://127.0.0.1:4001".into()),
            gives_way: false,
        };
        let handed = serde_json::json!({
            "claim": {"id": "k0000001", "until": "2026-11-21T12:00:00Z"}, "step": {"id": "a:1"}, "why": "", "diff": "",
            "notices": ["WaitingForLock"],
        });
        let answers = [
            Answer::Sync { fresh: true, generation: Some("7aa".into()) },
            Answer::Next { generation: Some("7aa".into()), cached: Some("{}".into()) },
            Answer::Around { around: None },
            Answer::Claimed { handed: None },
            Answer::Claimed { handed: Some(serde_json::from_value(handed).unwrap()) },
            Answer::Status(status),
            Answer::Event { event: serde_json::json!({"id": "a:1"}) },
            Answer::Changed { plan: Some("a".into()) },
            Answer::End { why: "stopped".into() },
        ];
        for answer in answers {
            let line = answer_line(answer.clone());
            assert_eq!(read_answer(&mut BufReader::new(line.as_slice())).unwrap(), Some(answer));
        }
    }

    #[track_caller]
    fn check(line: &str) {
        let read = read_request(&mut BufReader::new(line.as_bytes()));
        assert!(read.is_err(), "{line}: {read:?}");
    }

    #[test]
    fn anything_else_is_refused() {
        check("{\"version\":2,\"request\":\"sync\"}\n");
        check("{\"version\":1,\"request\":\"delete\"}\n");
        check("{\"version\":1}\n");
        check("GET / HTTP/1.1\r\n");
        check("{\"version\":1,\"request\":\"sync\"}");
        check("\n");
    }
}
