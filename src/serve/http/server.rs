//! The HTTP server. One thread handles the network. When the server ends, this thread waits for requests in progress.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_io_timeout::TimeoutWriter;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;

use crate::api::error::Error;
use crate::disk::PlansDir;
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::feed::Feed;
use crate::serve::http::connections::{CONNECTION, Connection, Connections, Doing};
use crate::serve::http::etag::conditional;
use crate::serve::http::guard::BODY_LIMIT;
use crate::serve::http::idempotency::once;
use crate::serve::http::problem::Problem;
use crate::serve::http::response_layer::finish;
use crate::serve::http::state::App;
use crate::serve::http::token::Token;
use crate::serve::http::{api, connections, guard};
use crate::serve::mcp;

/// The time limit for the head of a connection's first request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// How long an idle connection stays open. Common clients close idle connections after five seconds. The longer time here
/// keeps the server from closing a connection just when the client sends a request.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The time limit for a write: how long a client may leave an answer unread.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// The maximum size of a request's head, in bytes.
const HEAD_SIZE: usize = 16 << 10;

/// How long an ending server waits for requests in progress.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How many requests are worked on at once; others wait.
const WORKERS: usize = 8;

/// How long an idle worker thread stays alive.
const REST: Duration = Duration::from_secs(2);

/// A bound address; requests are not answered yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// Makes the routes of the pages. The pages have their own guard.
#[derive(Clone)]
pub struct Pages(pub Arc<dyn Fn(&App) -> Router + Send + Sync>);

#[derive(Clone)]
pub struct Settings {
    pub contexts: ContextFactory,
    pub feed: Feed,
    /// If false, every process that reaches the loopback address has access. On other addresses, the token is always
    /// needed.
    pub needs_token: bool,
    /// Whether a new token replaces the stored one.
    pub is_token_new: bool,
    pub pages: Pages,
}

#[derive(Debug)]
pub struct Serving {
    thread: Option<JoinHandle<()>>,
    is_ending: watch::Sender<bool>,
    token: Option<(PlansDir, Token)>,
}

/// Binds an address; port 0 selects a free one.
pub fn bind(address: SocketAddr) -> io::Result<Bound> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok(Bound { listener, address })
}

impl Bound {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to answer requests. If requests need a token, first makes sure that a token is stored.
    pub fn serve(self, settings: Settings) -> Result<Serving, Error> {
        let token = if settings.needs_token || !self.address.ip().is_loopback() {
            let plans = (settings.contexts)()?.plans;
            let token = Token::of(&plans, settings.is_token_new)?;
            Some((plans, token))
        } else {
            None
        };
        let (is_ending, ending) = watch::channel(false);
        let secret = token.as_ref().map(|(_, it)| it.clone());
        let (contexts, feed) = (Arc::clone(&settings.contexts), settings.feed.clone());
        let app = App::new(contexts, feed, secret, self.address, ending.clone());
        let begun = runtime().and_then(|runtime| {
            std::thread::Builder::new().name("http".to_owned()).spawn(move || {
                let router = router(&app, &settings.pages);
                runtime.block_on(take(self.listener, router, ending));
                // Remaining work ends on its own, or with the process.
                runtime.shutdown_background();
            })
        });
        let thread = begun.map_err(|error| {
            let message = format!("HTTP cannot be served: {error}");
            Error::Failed { code: "io-error", message, hint: String::new() }
        })?;
        Ok(Serving { thread: Some(thread), is_ending, token })
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WORKERS)
        .thread_keep_alive(REST)
        .build()
}

impl Serving {
    /// Stops accepting connections, and closes open ones after their current request.
    pub fn close(&self) {
        self.is_ending.send_replace(true);
    }

    /// Stores the token again after its file was deleted or changed.
    pub fn put_token(&self) {
        if let Some((plans, token)) = &self.token
            && !plans.token().is_ok_and(|it| it.as_deref() == Some(token.as_str()))
        {
            plans.put_token(token.as_str()).ok();
        }
    }

    /// Ends the server; waits at most ten seconds for requests in progress.
    pub fn end(mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, there is nothing left to end.
            thread.join().ok();
        }
    }
}

/// Combines the routes with the layers that a request passes through. The outermost layer is first.
fn router(app: &App, pages: &Pages) -> Router {
    let layers = ServiceBuilder::new()
        .layer(from_fn(finish))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .layer(RequestBodyLimitLayer::new(usize::try_from(BODY_LIMIT).unwrap_or(usize::MAX)))
        .map_request(|it: hyper::Request<_>| it.map(Body::new))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(app.clone(), once));
    let tools = mcp::service(&app.contexts, &app.feed).layer(from_fn(at_work));
    let api =
        api().layer(from_fn(conditional)).with_state(app.clone()).nest_service("/mcp", tools).layer(layers);
    let around_pages = ServiceBuilder::new()
        .layer(from_fn(finish))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(RequestBodyLimitLayer::new(usize::try_from(BODY_LIMIT).unwrap_or(usize::MAX)))
        .map_request(|it: hyper::Request<_>| it.map(Body::new))
        .layer(DefaultBodyLimit::disable());
    // The pages answer all paths that neither router has.
    (pages.0)(app).route_layer(around_pages).merge(api)
}

/// Keeps a connection open while its MCP request is worked on. Other handlers do this in [`App::ask`].
async fn at_work(request: Request, next: Next) -> Response {
    let _busy = connections::busy();
    next.run(request).await
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    axum::response::IntoResponse::into_response(Problem::internal())
}

async fn take(listener: TcpListener, router: Router, mut ending: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let connections = Connections::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|it| *it) => break,
        };
        match accepted {
            Ok((stream, _)) => enter(stream, &router, &connections, &ending),
            // File descriptors are exhausted, or the peer is gone.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    drop(listener);
    connections.end_silent();
    let begun = Instant::now();
    while !connections.is_empty() && begun.elapsed() < SHUTDOWN_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn enter(
    stream: tokio::net::TcpStream,
    router: &Router,
    connections: &Connections,
    ending: &watch::Receiver<bool>,
) {
    // Answers are small and should not wait to be combined into larger packets.
    stream.set_nodelay(true).ok();
    let Ok(local) = stream.local_addr() else { return };
    let Some((id, connection)) = connections.enter(local) else { return };
    let (router, all, ending) = (router.clone(), connections.clone(), ending.clone());
    let task = tokio::spawn(CONNECTION.scope(Arc::clone(&connection), async move {
        let _leaving = Leaving { id, all };
        speak(stream, router, connection, ending).await;
    }));
    connections.note(id, task.abort_handle());
}

/// Unregisters a connection when it ends.
struct Leaving {
    id: u64,
    all: Connections,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.all.leave(self.id);
    }
}

/// Answers the requests of one connection in order.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    connection: Arc<Connection>,
    mut ending: watch::Receiver<bool>,
) {
    let silent = Arc::clone(&connection);
    let never_speaks = async move {
        tokio::time::sleep(HEAD_LIMIT).await;
        if !silent.is_silent() {
            std::future::pending::<()>().await;
        }
    };
    let service = tower::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        connection.set(Doing::Talking);
        request.extensions_mut().insert(Arc::clone(&connection));
        tower::ServiceExt::oneshot(router.clone(), request)
    });
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(WRITE_LIMIT));
    let speaking = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(KEEP_ALIVE)
        .max_header_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    tokio::pin!(speaking);
    // An error concerns this connection only.
    tokio::select! {
        _ = speaking.as_mut() => return,
        () = never_speaks => return,
        _ = ending.wait_for(|it| *it) => speaking.as_mut().graceful_shutdown(),
    }
    speaking.await.ok();
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Returns how long a connection stays open after the client has sent this text. The runtime's clock is paused, so
    /// the test does not wait.
    fn kept(sent: &str) -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let (mut client, served) = tokio::io::duplex(1 << 12);
            let begun = tokio::time::Instant::now();
            let served = tokio::spawn(serve(served, Router::new()));
            client.write_all(sent.as_bytes()).await.unwrap();
            client.read_to_end(&mut Vec::new()).await.unwrap();
            served.await.unwrap();
            begun.elapsed()
        })
    }

    async fn serve(stream: DuplexStream, router: Router) {
        let connections = Connections::default();
        let (_, connection) = connections.enter(([127, 0, 0, 1], 1).into()).unwrap();
        let (_is_ending, ending) = watch::channel(false);
        speak(stream, router, connection, ending).await;
    }

    #[test]
    fn a_first_head_has_to_come_soon() {
        assert_eq!(kept("").as_secs(), HEAD_LIMIT.as_secs());
        assert_eq!(kept("GET / HTTP/1.1\r\nHost:").as_secs(), HEAD_LIMIT.as_secs());
    }

    #[test]
    fn an_answered_connection_stays_open_for_longer() {
        assert_eq!(kept("GET / HTTP/1.1\r\nHost: a\r\n\r\n").as_secs(), KEEP_ALIVE.as_secs());
        assert_eq!(kept("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /").as_secs(), KEEP_ALIVE.as_secs());
    }
    #[test]
    fn a_client_that_does_not_read_its_answer_is_cut_off() {
        let long = "x".repeat(1 << 20);
        let router = Router::new().route("/", axum::routing::get(move || async move { long }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let (mut client, served) = tokio::io::duplex(1 << 12);
            let served = tokio::spawn(serve(served, router));
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            let begun = tokio::time::Instant::now();
            // A client that reads a little now and then is not cut off.
            for _ in 0..2 {
                tokio::time::sleep(WRITE_LIMIT * 2 / 3).await;
                client.read_exact(&mut [0; 1 << 10]).await.unwrap();
                assert!(!served.is_finished());
            }
            let last = begun.elapsed();
            served.await.unwrap();
            assert_eq!((begun.elapsed() - last).as_secs(), WRITE_LIMIT.as_secs());
        });
    }
}
