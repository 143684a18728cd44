//! The protocol of the daemon's socket. Each message is a JSON object on a line of its own. The client sends a request,
//! and the daemon sends the answer or a stream of events.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::daemon::{ClaimedStep, DaemonStatus, DelegatedClaim, Dependents};
use crate::index::{Generation, Key};

/// The version of the protocol. It is increased when an older release would misunderstand a message.
pub(crate) const VERSION: u32 = 1;

/// The maximum number of bytes of a message. A longer message is an error.
const LINE_LIMIT: u64 = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Asks whether the index contains every change that was finished before this request.
    Sync,
    /// Like [`Request::Sync`], and also asks for the cached answer of `next`.
    Next,
    /// An answer of `next` to cache in memory; there is no reply.
    CacheNext(String),
    /// Asks for the directories that an answer about the plan with this id depends on. The reply reflects every change
    /// that was finished before this request.
    Around(String),
    /// Claims the most urgent step for the client.
    Claim(DelegatedClaim),
    Status,
    /// Asks for a one-time code that a browser uses to sign in to the pages.
    Browser(Opener),
    /// Subscribes to events; the first answer is the status.
    Events,
    /// Like [`Request::Events`], and also subscribes to notices of plans that are still changing.
    Changes,
    /// Stops the daemon; the answer is the status, and the stream ends when the daemon does.
    Stop,
}

/// Who opens the pages in a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opener {
    /// The name (`by`) that is recorded for changes made in the pages.
    pub by: String,
    /// Whether the pages refuse changes.
    pub is_read_only: bool,
    /// Whether the opener may confirm steps and phases. A process that works on a step may not.
    pub is_person: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestEnvelope {
    pub(crate) version: u32,
    pub(crate) request: Request,
}

/// Lists of plan directories. Each directory is a pair: whether it is archived, and its name. See
/// `api::daemon::Dependents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DependentsMessage {
    pub(crate) spellings: Vec<(bool, String)>,
    pub(crate) odd: Vec<(bool, String)>,
    pub(crate) waiting: Vec<(bool, String)>,
}

impl From<DependentsMessage> for Dependents {
    fn from(message: DependentsMessage) -> Self {
        let DependentsMessage { spellings, odd, waiting } = message;
        let keys = |of: Vec<(bool, String)>| {
            of.into_iter().map(|(is_archived, name)| Key { is_archived, name }).collect()
        };
        Self { spellings: keys(spellings), odd: keys(odd), waiting: keys(waiting) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub pid: u32,
    pub release: String,
    pub since: String,
    pub plans: usize,
    pub steps: usize,
    /// Why the daemon polls; `None` while the system reports events.
    pub polling: Option<String>,
    /// The number of clients that follow the daemon's events.
    pub followers: usize,
    /// The daemon's HTTP URL, if it has one.
    #[serde(default)]
    pub http: Option<String>,
    /// Whether HTTP requests need no token.
    #[serde(default)]
    pub without_token: bool,
    /// Whether watching is only a side job of this process. If so, it stops watching when another process wants to watch.
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
    /// `generation` is the current commit of the index; `None` if unknown.
    Sync {
        fresh: bool,
        generation: Option<String>,
        /// Whether the index contains all problems. Problems that belong to no plan are never in the index, so this is false
        /// if there may be any.
        #[serde(default)]
        is_complete: bool,
    },
    /// `generation` is the current commit of the index; `None` if unknown. `cached` is the cached answer of `next`, if
    /// there is one.
    Next {
        generation: Option<String>,
        cached: Option<String>,
    },
    /// `around` is `None` if the directories are unknown, or if too many have non-ASCII names.
    Around {
        around: Option<DependentsMessage>,
    },
    /// `handed` is `None` if the client has to claim without the daemon.
    Claimed {
        handed: Option<ClaimedStep>,
    },
    Status(Status),
    /// `code` is `None` if the daemon serves no pages or cannot make a code.
    Browser {
        code: Option<String>,
    },
    Event {
        event: Value,
    },
    /// A plan is changing; `None` means that any plan may be changing.
    Changed {
        plan: Option<String>,
    },
    /// The daemon ends; this is the last message.
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

impl Answer {
    /// The current commit of the index in an answer to [`Request::Sync`].
    pub(crate) fn commit(self) -> Option<Generation> {
        match self {
            Self::Sync { fresh: true, generation, .. } => generation?.parse().ok(),
            _ => None,
        }
    }

    /// Like [`Self::commit`], but also requires that the index contains all problems.
    pub(crate) fn complete_commit(self) -> Option<Generation> {
        let is_complete = matches!(self, Self::Sync { is_complete: true, .. });
        self.commit().filter(|_| is_complete)
    }

    /// The current commit of the index and the cached answer of `next`, in an answer to [`Request::Next`].
    pub(crate) fn commit_and_next(self) -> (Option<Generation>, Option<String>) {
        match self {
            Self::Next { generation, cached } => (generation.and_then(|it| it.parse().ok()), cached),
            _ => (None, None),
        }
    }

    /// The directories in an answer to [`Request::Around`].
    pub(crate) fn dependents(self) -> Option<Dependents> {
        match self {
            Self::Around { around } => around.map(Dependents::from),
            _ => None,
        }
    }
}

pub(crate) fn request_line(request: Request) -> Vec<u8> {
    line(&RequestEnvelope { version: VERSION, request })
}

pub(crate) fn answer_line(answer: Answer) -> Vec<u8> {
    line(&Envelope { version: VERSION, answer })
}

fn line(of: &impl Serialize) -> Vec<u8> {
    // Serialization cannot fail, because all keys of maps are strings.
    let mut bytes = serde_json::to_vec(of).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads one request; `None` at the end of the stream.
pub(crate) fn read_request(from: &mut BufReader<impl Read>) -> io::Result<Option<Request>> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    let request: RequestEnvelope = serde_json::from_slice(&line)?;
    if request.version == VERSION { Ok(Some(request.request)) } else { Err(other_version()) }
}

/// Reads one answer; `None` at the end of the stream.
pub(crate) fn read_answer(from: &mut BufReader<impl Read>) -> io::Result<Option<Answer>> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    let envelope: Envelope = serde_json::from_slice(&line)?;
    if envelope.version == VERSION { Ok(Some(envelope.answer)) } else { Err(other_version()) }
}

fn other_version() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the other side uses another version of the protocol")
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

pub(crate) fn send(to: &mut impl Write, line: &[u8]) -> io::Result<()> {
    to.write_all(line).and_then(|()| to.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let around = Request::Around("Prüfung:1".to_owned());
        let delegated = serde_json::json!({
            "claim": "k0000001", "by": "ann", "asker": "bo", "lease": 60, "at": "2026-11-21T12:00:00Z",
            "begin_before": 1, "surroundings": "x",
        });
        let claim = Request::Claim(serde_json::from_value(delegated).unwrap());
        let cache = Request::CacheNext("{\"at\": 1}".to_owned());
        for request in [
            Request::Sync,
            Request::Next,
            cache,
            around,
            claim,
            Request::Status,
            Request::Browser(Opener { by: "ann".to_owned(), is_read_only: true, is_person: false }),
            Request::Events,
            Request::Changes,
            Request::Stop,
        ] {
            let line = request_line(request.clone());
            assert_eq!(read_request(&mut BufReader::new(line.as_slice())).unwrap(), Some(request));
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
            without_token: true,
            gives_way: false,
        };
        let handed = serde_json::json!({
            "claim": {"id": "k0000001", "until": "2026-11-21T12:00:00Z"}, "step": {"id": "a:1"}, "why": "", "diff": "",
            "notices": ["WaitingForLock"],
        });
        let answers = [
            Answer::Sync { fresh: true, generation: Some("7aa".into()), is_complete: true },
            Answer::Next { generation: Some("7aa".into()), cached: Some("{}".into()) },
            Answer::Around { around: None },
            Answer::Claimed { handed: None },
            Answer::Claimed { handed: Some(serde_json::from_value(handed).unwrap()) },
            Answer::Status(status),
            Answer::Browser { code: Some("aa".into()) },
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
    fn invalid_requests_are_refused() {
        check("{\"version\":2,\"request\":\"sync\"}\n");
        check("{\"version\":1,\"request\":\"delete\"}\n");
        check("{\"version\":1}\n");
        check("GET / HTTP/1.1\r\n");
        check("{\"version\":1,\"request\":\"sync\"}");
        check("\n");
    }
}
