//! The state of all handlers; operations run in blocking threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{Semaphore, watch};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::feed::Feed;
use crate::serve::http::connections;
use crate::serve::http::etag::IfMatch;
use crate::serve::http::idempotency::{InFlight, KEY};
use crate::serve::http::problem::Problem;
use crate::serve::http::token::Token;

/// How long a request may take, its body included.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The limit of event streams.
pub(super) const MOST_STREAMS: usize = 16;

/// The state of all handlers; clones share it.
#[derive(Clone)]
pub(super) struct App(Arc<Inner>);

struct Inner {
    contexts: ContextFactory,
    feed: Feed,
    /// None: every process that reaches the loopback address has access.
    token: Option<Token>,
    address: SocketAddr,
    streams: Arc<Semaphore>,
    in_flight: InFlight,
    /// Becomes true when the server ends.
    is_ending: watch::Receiver<bool>,
}

impl App {
    pub(super) fn new(
        contexts: ContextFactory,
        feed: Feed,
        token: Option<Token>,
        address: SocketAddr,
        is_ending: watch::Receiver<bool>,
    ) -> Self {
        let streams = Arc::new(Semaphore::new(MOST_STREAMS));
        Self(Arc::new(Inner {
            contexts,
            feed,
            token,
            address,
            streams,
            in_flight: InFlight::default(),
            is_ending,
        }))
    }

    pub(super) fn contexts(&self) -> &ContextFactory {
        &self.0.contexts
    }

    pub(super) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    pub(super) fn token(&self) -> Option<&Token> {
        self.0.token.as_ref()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub(super) fn streams(&self) -> &Arc<Semaphore> {
        &self.0.streams
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.0.in_flight
    }

    pub(super) fn is_ending(&self) -> watch::Receiver<bool> {
        self.0.is_ending.clone()
    }

    /// Runs an operation in a blocking thread and returns its result.
    ///
    /// Work that has begun is finished even if the client disconnects.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Context) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        self.ask_or(move |context| work(context).map_err(Problem::from)).await
    }

    /// As [`Self::ask`]; a change is made only if the file is the version that the client last saw.
    pub(super) async fn ask_if<T: Send + 'static>(
        &self,
        condition: IfMatch,
        work: impl FnOnce(&Context) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let expected = condition.expected();
        self.run(move |context| work(&Context { expected, ..context }).map_err(Problem::from)).await
    }

    /// As [`Self::ask`], for work with errors beyond those of operations.
    pub(super) async fn ask_or<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Context) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.run(move |context| work(&context)).await
    }

    /// As [`Self::ask_if`], for work with errors beyond those of operations.
    pub(super) async fn ask_if_or<T: Send + 'static>(
        &self,
        condition: IfMatch,
        work: impl FnOnce(&Context) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let expected = condition.expected();
        self.run(move |context| work(&Context { expected, ..context })).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Context) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let _busy = connections::busy();
        let contexts = Arc::clone(self.contexts());
        let key = KEY.try_with(Arc::clone).ok();
        let answer = move || {
            let context = Context { key, ..contexts()? };
            let kept = context.kept.clone();
            work(context).map_err(|it| it.with_kept(&kept))
        };
        let done = tokio::task::spawn_blocking(answer).await;
        // It panicked: the process's own message says where.
        done.unwrap_or_else(|_| Err(Problem::internal()))
    }
}

/// The answer to a request that takes too long; its work is finished all the same.
pub(super) fn too_slow() -> Problem {
    let detail = "the request took longer than 30 seconds; what it began may still be done";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "time-limit", detail).retry_after(1)
}
