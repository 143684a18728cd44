//! The state of all handlers; operations run in blocking threads.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{Semaphore, watch};

use crate::api::context::Context;
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::feed::Feed;
use crate::serve::http::connections;
use crate::serve::http::etag::IfMatch;
use crate::serve::http::idempotency::{InFlight, KEY};
use crate::serve::http::problem::Problem;
use crate::serve::http::token::Token;

/// How long a request may take, including the transfer of its body.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The maximum number of open event streams.
pub(super) const MOST_STREAMS: usize = 64;

/// The state of all handlers; clones share it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// What the handlers share.
pub struct Inner {
    pub(in crate::serve) contexts: ContextFactory,
    pub(in crate::serve) feed: Feed,
    /// If `None`, every process that reaches the loopback address has access.
    pub(in crate::serve) token: Option<Token>,
    pub(in crate::serve) address: SocketAddr,
    pub(in crate::serve) streams: Arc<Semaphore>,
    pub(super) in_flight: InFlight,
    /// Becomes true when the server ends.
    pub(in crate::serve) is_ending: watch::Receiver<bool>,
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    pub(super) fn new(
        contexts: ContextFactory,
        feed: Feed,
        token: Option<Token>,
        address: SocketAddr,
        is_ending: watch::Receiver<bool>,
    ) -> Self {
        let (streams, in_flight) = (Arc::new(Semaphore::new(MOST_STREAMS)), InFlight::default());
        Self(Arc::new(Inner { contexts, feed, token, address, streams, in_flight, is_ending }))
    }

    /// Runs an operation in a blocking thread and returns its result.
    ///
    /// Work that has begun is finished even if the client disconnects.
    pub(in crate::serve) async fn ask<T: Send + 'static, E: Into<Problem>>(
        &self,
        work: impl FnOnce(&Context) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem> {
        self.ask_if(IfMatch::default(), work).await
    }

    /// Like [`Self::ask`], but if the request names etags in `If-Match`, a change is made only if the file has one of them.
    pub(in crate::serve) async fn ask_if<T: Send + 'static, E: Into<Problem>>(
        &self,
        condition: IfMatch,
        work: impl FnOnce(&Context) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem> {
        let _busy = connections::busy();
        let contexts = Arc::clone(&self.contexts);
        let key = KEY.try_with(Arc::clone).ok();
        let answer = move || {
            let context = Context { key, expected: condition.0, ..contexts()? };
            work(&context).map_err(|it| it.into().with_kept(&context.kept))
        };
        let done = tokio::task::spawn_blocking(answer).await;
        // The operation panicked. The panic message on stderr says where.
        done.unwrap_or_else(|_| Err(Problem::internal()))
    }
}

/// The answer to a request that takes too long; its work is still completed.
pub(super) fn too_slow() -> Problem {
    let detail = "the request took longer than 30 seconds; it still runs, so its changes may still appear";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "time-limit", detail).retry_after(1)
}
