//! Two threads: one reads messages from the client, the other writes messages to the client.
//!
//! Messages are queued in both directions, so the main loop never waits for the client. If the queue to the client
//! contains several messages with the diagnostics of one document, only the last is sent. A cancelled request is marked
//! as soon as the cancellation is read, even while the request is carried out.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsp_server::{Message, Notification, RequestId};
use serde_json::{Value, json};

use super::frames::{self, Frame};
use super::protocol::Answer;

/// How long an ending server waits, at most, until all messages to the client are written.
const LONGEST_FLUSH: Duration = Duration::from_secs(2);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The requests that have no reply yet, with a flag that is true if the request is cancelled.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    ids: Arc<Mutex<HashMap<RequestId, bool>>>,
}

impl Pending {
    fn begin(&self, id: &RequestId) {
        locked(&self.ids).insert(id.clone(), false);
    }

    /// Marks a request as cancelled. An id that is not pending is ignored.
    fn cancel(&self, id: &Value) {
        let Ok(id) = serde_json::from_value::<RequestId>(id.clone()) else { return };
        if let Some(is_cancelled) = locked(&self.ids).get_mut(&id) {
            *is_cancelled = true;
        }
    }

    pub(super) fn is_cancelled(&self, id: &RequestId) -> bool {
        locked(&self.ids).get(id).copied().unwrap_or_default()
    }

    fn end(&self, id: &RequestId) {
        locked(&self.ids).remove(id);
    }
}

/// Starts a thread that reads frames until the input ends or fails. A cancellation only marks its request in `pending`. For
/// each other frame, and for `None` at the end, the thread sends what `event` returns. Fails if no thread can be started.
pub(super) fn read_all<T: Send + 'static>(
    input: impl Read + Send + 'static,
    pending: Pending,
    to: Sender<T>,
    event: impl Fn(Option<Frame>) -> T + Send + 'static,
) -> io::Result<()> {
    let read = move || {
        let mut input = BufReader::new(input);
        while let Ok(Some(frame)) = frames::read(&mut input) {
            match &frame {
                Frame::Message(Message::Request(request)) => pending.begin(&request.id),
                Frame::Message(Message::Notification(Notification { method, params }))
                    if method == "$/cancelRequest" =>
                {
                    pending.cancel(&params["id"]);
                    continue;
                }
                _ => {}
            }
            if to.send(event(Some(frame))).is_err() {
                return;
            }
        }
        to.send(event(None)).ok();
    };
    thread::Builder::new().name("lsp-input".to_owned()).spawn(read).map(drop)
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(Option<String>, Value)>,
    is_writing: bool,
    is_closed: bool,
    is_broken: bool,
}

/// The queue of messages to the client; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    pending: Pending,
}

impl Outbox {
    pub(super) fn new(pending: Pending) -> Self {
        Self { queue: Arc::default(), pending }
    }

    /// Starts the thread that writes. Returns `None` if no thread can be started.
    pub(super) fn write_to(&self, output: impl Write + Send + 'static) -> Option<JoinHandle<()>> {
        let own = self.clone();
        let write = move || own.write_all(&mut BufWriter::new(output));
        thread::Builder::new().name("lsp-output".to_owned()).spawn(write).ok()
    }

    fn write_all(&self, output: &mut impl Write) {
        let (queue, changed) = &*self.queue;
        loop {
            let mut state = locked(queue);
            state.is_writing = false;
            changed.notify_all();
            while state.waiting.is_empty() && !state.is_closed {
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some((_, body)) = state.waiting.pop_front() else { return };
            state.is_writing = true;
            let is_last = state.waiting.is_empty();
            drop(state);
            let written =
                frames::write(output, &body).and_then(|()| if is_last { output.flush() } else { Ok(()) });
            if written.is_err() {
                locked(queue).is_broken = true;
                changed.notify_all();
                return;
            }
        }
    }

    fn put(&self, of: Option<String>, body: Value) {
        let (queue, changed) = &*self.queue;
        let mut state = locked(queue);
        if of.is_some() {
            state.waiting.retain(|(it, _)| *it != of);
        }
        if !state.is_broken {
            state.waiting.push_back((of, body));
        }
        changed.notify_all();
    }

    /// Replies to a request, which is then no longer pending.
    pub(super) fn reply(&self, id: &RequestId, answer: Answer) {
        self.pending.end(id);
        let mut body = json!({"jsonrpc": "2.0", "id": id});
        match answer {
            Ok(result) => body["result"] = result,
            Err(failed) => {
                body["error"] = json!({"code": failed.code, "message": failed.message});
                if let Some(data) = failed.data {
                    body["error"]["data"] = data;
                }
            }
        }
        self.put(None, body);
    }

    /// Answers a broken frame with an error.
    pub(super) fn refuse(&self, id: &Value, code: i32, message: &str) {
        self.put(None, frames::error(id, code, message));
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.put(None, json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends the diagnostics of a document, and removes older diagnostics of this document from the queue.
    pub(super) fn publish(&self, uri: &str, params: &Value) {
        let body = json!({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params});
        self.put(Some(uri.to_owned()), body);
    }

    /// Sends the client a request whose reply is ignored.
    pub(super) fn request(&self, n: u64, method: &str) {
        self.put(None, json!({"jsonrpc": "2.0", "id": format!("planwatch-{n}"), "method": method}));
    }

    /// Closes the queue and waits until all its messages are written, but not longer than [`LONGEST_FLUSH`].
    pub(super) fn finish(&self) {
        let (queue, changed) = &*self.queue;
        let mut state = locked(queue);
        state.is_closed = true;
        changed.notify_all();
        let is_busy = |it: &mut Queue| !it.is_broken && (it.is_writing || !it.waiting.is_empty());
        drop(changed.wait_timeout_while(state, LONGEST_FLUSH, is_busy));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn only_the_last_diagnostics_of_a_document_are_sent() {
        let outbox = Outbox::new(Pending::default());
        outbox.publish("a", &json!(1));
        outbox.publish("b", &json!(2));
        outbox.publish("a", &json!(3));
        outbox.notify("x", &json!(4));
        let waiting =
            locked(&outbox.queue.0).waiting.iter().map(|(_, it)| it["params"].clone()).collect::<Vec<_>>();
        assert_eq!(waiting, [json!(2), json!(3), json!(4)]);
    }

    #[test]
    fn a_cancellation_is_seen_before_its_request_is_carried_out() {
        let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let input = [
            frame(r#"{"id":1,"method":"a"}"#),
            frame(r#"{"id":2,"method":"b"}"#),
            frame(r#"{"method":"$/cancelRequest","params":{"id":1}}"#),
            frame(r#"{"method":"$/cancelRequest","params":{"id":9}}"#),
            frame(r#"{"method":"$/cancelRequest"}"#),
        ];
        let (pending, (sender, receiver)) = (Pending::default(), channel());
        read_all(std::io::Cursor::new(input.concat()), pending.clone(), sender, |it| it.is_some()).unwrap();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [true, true, false]);
        assert!(pending.is_cancelled(&1.into()) && !pending.is_cancelled(&2.into()));
        let outbox = Outbox::new(pending.clone());
        outbox.reply(&1.into(), Ok(json!(null)));
        assert_eq!(locked(&pending.ids).len(), 1);
    }

    #[test]
    fn everything_is_written_before_the_end() {
        let (reader, writer) = std::io::pipe().unwrap();
        let outbox = Outbox::new(Pending::default());
        let thread = outbox.write_to(writer).unwrap();
        for n in 0..100 {
            outbox.notify("x", &json!(n));
        }
        outbox.finish();
        thread.join().unwrap();
        let mut from = BufReader::new(reader);
        let n = std::iter::from_fn(|| frames::read(&mut from).unwrap()).count();
        assert_eq!(n, 100);
    }
}
