//! Serves one client over standard input and output. While the client does not read its answers, no more requests are
//! read. After a write to the client has failed, no more calls are started.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::api::error::Error;
use crate::serve::mcp::Planwatch;
use crate::serve::mcp::drain::DrainedTransport;
use crate::serve::mcp::lines::Lines;
use crate::serve::mcp::opening::OpeningTransport;

/// The maximum length of a line in bytes. A longer line is discarded and refused, so that a line without an end does not
/// fill the memory. The limit is far above that of a plan file. So a text that is too long for a file is refused by the
/// tool, whose error gives the reason.
const MAX_LINE: usize = 128 << 20;

/// Serves one client until it disconnects. In the meantime, nothing else may be written to standard output.
///
/// Requests that came before the end of the input are answered.
pub fn stdio(server: Planwatch) -> Result<(), Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|it| failed(&it))?;
    let line = Arc::new(Line::default());
    let server = server.in_order(Arc::clone(&line));
    let served = runtime.block_on(async {
        let input = Input { from: tokio::io::stdin(), line: Arc::clone(&line), has_given_way: false };
        let output = Output { to: tokio::io::stdout(), line: Arc::clone(&line) };
        let is_at_work = {
            let (server, line) = (server.clone(), Arc::clone(&line));
            move || server.is_at_work() && !line.is_stuck()
        };
        let at_end = {
            let server = server.clone();
            move || server.inner.beginnings.end()
        };
        let lines = OpeningTransport::new(Lines::new(input, output, MAX_LINE));
        let transport = DrainedTransport::new(lines, is_at_work, at_end);
        let running = tokio::select! {
            running = server.clone().serve(transport) => running,
            () = line.broken.notified() => return Ok(()),
        };
        match running {
            Ok(running) => {
                tokio::select! {
                    _ = running.waiting() => {}
                    () = line.broken.notified() => server.finish().await,
                }
                Ok(())
            }
            // The client closed the connection without a request.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(_) => Err(Error::Failed {
                code: "protocol",
                message: "the first message must be `initialize` or `server/discover`".to_owned(),
                hint: "an agent starts this command; see `planwatch help mcp`".to_owned(),
            }),
        }
    });
    server.inner.source.stop();
    // A thread that still waits for input must not delay the end.
    runtime.shutdown_background();
    served
}

fn failed(error: &io::Error) -> Error {
    let message = format!("the client cannot be served: {error}");
    Error::Failed { code: "io-error", message, hint: String::new() }
}

/// The state that the reader and the writer share.
#[derive(Default)]
pub(super) struct Line {
    is_broken: AtomicBool,
    broken: Notify,
    /// While an answer is being written, the reader waits, and its waker is stored here.
    stuck: Mutex<Stuck>,
}

#[derive(Default)]
struct Stuck {
    is_stuck: bool,
    reader: Option<Waker>,
}

impl Line {
    /// Whether answers can no longer be written.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Whether the write of an answer is pending, because the client does not read.
    fn is_stuck(&self) -> bool {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner).is_stuck
    }

    fn set_stuck(&self, is_stuck: bool) {
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        stuck.is_stuck = is_stuck;
        if let Some(reader) = stuck.reader.take_if(|_| !is_stuck) {
            reader.wake();
        }
    }

    /// Records the result of a write.
    fn wrote<T>(&self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.set_stuck(done.is_pending());
        if let Poll::Ready(Err(_)) = &done {
            self.is_broken.store(true, Ordering::Relaxed);
            self.broken.notify_one();
        }
        done
    }
}

struct Input<R> {
    from: R,
    line: Arc<Line>,
    /// Whether the reader has yielded since it last read something.
    has_given_way: bool,
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        {
            let mut stuck = self.line.stuck.lock().unwrap_or_else(PoisonError::into_inner);
            if stuck.is_stuck {
                stuck.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        // The reader yields once before each read, so that earlier requests start first and an answer that cannot be
        // written stops the reading. Otherwise requests could arrive faster than they are answered, and fill the
        // memory.
        if !self.has_given_way {
            self.has_given_way = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = Pin::new(&mut self.from).poll_read(cx, to);
        self.has_given_way = read.is_pending();
        read
    }
}

struct Output<W> {
    to: W,
    line: Arc<Line>,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Output<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.to).poll_write(cx, bytes);
        self.line.wrote(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.to).poll_flush(cx);
        self.line.wrote(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.to).poll_shutdown(cx);
        self.line.wrote(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_requests_start_before_more_is_read() {
        let line = Arc::new(Line::default());
        let mut input = Input { from: &b"abcd"[..], line: Arc::clone(&line), has_given_way: false };
        let mut cx = Context::from_waker(Waker::noop());
        let mut read = || {
            let mut bytes = [0; 2];
            let mut buffer = ReadBuf::new(&mut bytes);
            let is_ready = Pin::new(&mut input).poll_read(&mut cx, &mut buffer).is_ready();
            is_ready.then(|| buffer.filled().to_vec())
        };
        assert_eq!([read(), read(), read()], [None, Some(b"ab".to_vec()), None]);
        line.set_stuck(true);
        assert_eq!([read(), read()], [None, None], "an answer is not yet written");
        line.set_stuck(false);
        assert_eq!(read(), Some(b"cd".to_vec()));
    }
}
