//! A transport with one message on each line. It answers invalid messages with errors, so that no client waits for an
//! answer that never comes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::serve::mcp::message::{self, Unread};

/// A transport over two streams of bytes.
///
/// If a read or a write is cancelled in the middle of a line, the next one continues at that place.
pub(super) struct Lines<R, W> {
    from: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
    /// Whether the rest of a line that is too long is being discarded.
    is_skipping: bool,
    has_ended: bool,
    to: Arc<Mutex<Writer<W>>>,
    /// The pending write of the answer to an invalid message.
    answering: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

struct Writer<W> {
    /// `None` after the transport was closed.
    to: Option<W>,
    /// The bytes that are not written yet.
    rest: VecDeque<u8>,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn write(&mut self, line: Vec<u8>) -> io::Result<()> {
        let Some(to) = &mut self.to else { return Err(io::ErrorKind::NotConnected.into()) };
        self.rest.extend(line);
        self.rest.push_back(b'\n');
        while !self.rest.is_empty() {
            if to.write_buf(&mut self.rest).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        to.flush().await
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    /// A line of more than `longest` bytes is refused.
    pub(super) fn new(from: R, to: W, longest: usize) -> Self {
        let to = Writer { to: Some(to), rest: VecDeque::new() };
        Self {
            from: BufReader::new(from),
            line: Vec::new(),
            longest,
            is_skipping: false,
            has_ended: false,
            to: Arc::new(Mutex::new(to)),
            answering: None,
        }
    }

    /// Reads a line into `line`. Returns false if it was too long.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.from.fill_buf().await?;
            self.has_ended = available.is_empty();
            let end = available.iter().position(|it| *it == b'\n');
            let (text, read) =
                (&available[..end.unwrap_or(available.len())], end.map_or(available.len(), |it| it + 1));
            if self.is_skipping || self.line.len() + text.len() > self.longest {
                self.is_skipping = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(text);
            }
            self.from.consume(read);
            if end.is_some() || self.has_ended {
                return Ok(!std::mem::take(&mut self.is_skipping));
            }
        }
    }

    fn answer(&mut self, answer: &Value) {
        let (to, line) = (Arc::clone(&self.to), answer.to_string().into_bytes());
        self.answering = Some(Box::pin(async move { to.lock().await.write(line).await }));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to = Arc::clone(&self.to);
        async move {
            let line = serde_json::to_vec(&message)?;
            to.lock().await.write(line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answering) = &mut self.answering {
                let answered = answering.await;
                self.answering = None;
                answered.ok()?;
            }
            if self.has_ended {
                return None;
            }
            let read = if self.read_line().await.ok()? {
                // Blank lines are ignored, also those that end with CR LF.
                let line = self.line.trim_ascii();
                let read = (!line.is_empty()).then(|| message::read(line));
                self.line.clear();
                read
            } else {
                Some(Err(Unread::too_long(self.longest)))
            };
            match read {
                Some(Ok(message)) => return Some(message),
                Some(Err(unread)) if !unread.is_notification => self.answer(&unread.answer()),
                Some(Err(_)) | None => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.to.lock().await.to.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// The ids of the messages that are received, and the lines that are written.
    fn run(input: &str, longest: usize) -> (Vec<String>, String) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (to, mut out) = tokio::io::duplex(64);
            let mut lines = Lines::new(input.as_bytes(), to, longest);
            let read = async {
                let mut ids = Vec::new();
                while let Some(message) = lines.receive().await {
                    ids.push(message.into_request().map(|it| it.1.to_string()).unwrap_or_default());
                }
                lines.close().await.unwrap();
                ids
            };
            let mut said = String::new();
            let (ids, said_all) = tokio::join!(read, out.read_to_string(&mut said));
            said_all.unwrap();
            (ids, said)
        })
    }

    fn ping(id: u64) -> String {
        json_line(&format!(r#""id":{id},"method":"ping""#))
    }

    fn json_line(inner: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0",{inner}}}"#)
    }

    #[test]
    fn an_invalid_message_is_answered_and_the_next_one_is_read() {
        let input = format!("{}\r\nhello\n \r\n\n{}\n{}\n{{", ping(1), json_line(r#""id":5"#), ping(2));
        let (ids, said) = run(&input, 1000);
        assert_eq!(ids, ["1", "2"]);
        let said: Vec<Value> = said.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let codes: Vec<_> = said.iter().map(|it| (&it["error"]["code"], &it["id"])).collect();
        let codes = serde_json::to_string(&codes).unwrap();
        assert_eq!(codes, "[[-32700,null],[-32600,5],[-32700,null]]");
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_once_and_not_kept() {
        let input = format!("{}\n{}\n{}", "x".repeat(100_000), ping(1), "y".repeat(51));
        let (ids, said) = run(&input, 50);
        assert_eq!(ids, ["1"]);
        assert_eq!(said.matches("the message is longer than 50 bytes").count(), 2, "{said}");
    }

    #[test]
    fn a_last_message_needs_no_end_of_its_line() {
        assert_eq!(run(&ping(9), 100).0, ["9"]);
    }
}
