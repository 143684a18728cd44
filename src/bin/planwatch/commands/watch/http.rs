//! `watch --http`: the process that watches also answers over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use planwatch::api::address::{DEFAULT, read_address};
use planwatch::api::error::Error;
use planwatch::serve::Status;
use planwatch::serve::daemon::api::{Codes, Inbox};
use planwatch::serve::daemon::feed::Feed;
use planwatch::serve::http::{self, Bound, Serving, Settings};
use planwatch::serve::web::{self, Sessions};

use crate::args::setup::Watch;
use crate::context::{self, Session};
use crate::failure::{self, Failure};

/// HTTP in the process that watches: at first a bound address, and a server once watching has begun.
#[derive(Default)]
pub(super) struct Http {
    bound: Option<(Bound, Settings)>,
    serving: Option<Serving>,
}

/// The address of `--http`, if that is given.
pub(super) fn address(session: &Session, args: &Watch) -> Result<Option<SocketAddr>, Failure> {
    let Some(typed) = &args.http else { return Ok(None) };
    let address = if typed.is_empty() {
        session.workspace()?.config.http_address.unwrap_or(DEFAULT)
    } else {
        let hint = "write it as 127.0.0.1:4001, or only the port";
        read_address(typed).ok_or_else(|| Failure::usage(format!("`{typed}` is not an address"), hint))?
    };
    if args.no_token && !address.ip().is_loopback() {
        let message = format!("other machines reach {address}, so the token is needed");
        return Err(Failure::usage(message, "leave --no-token out, or listen on 127.0.0.1"));
    }
    Ok(Some(address))
}

/// Refuses options that the running process cannot follow: `--http` if the process does not answer over HTTP, and
/// `--new-token` if it does.
pub(super) fn check_running(args: &Watch, status: &Status) -> Result<(), Failure> {
    let cannot = match status.http {
        _ if args.http.is_none() => return Ok(()),
        None => "does not answer over HTTP",
        Some(_) if args.new_token => "keeps its current token",
        Some(_) => return Ok(()),
    };
    Err(in_use(status, cannot))
}

/// Refuses an address or `--no-token` if the running process answers at another address or needs a token. A port of 0, and
/// `--http` without a value, accept any address.
pub(super) fn check_options(
    args: &Watch,
    address: Option<SocketAddr>,
    status: &Status,
) -> Result<(), Failure> {
    let Some(url) = &status.http else { return Ok(()) };
    let is_exact = args.http.as_ref().is_some_and(|it| !it.is_empty());
    let asked = address.filter(|it| is_exact && it.port() != 0);
    if asked.is_some_and(|it| *url != url_of(it)) {
        return Err(in_use(status, &format!("answers on {url}")));
    }
    if args.no_token && !status.without_token {
        return Err(in_use(status, "needs a token for HTTP"));
    }
    Ok(())
}

fn in_use(status: &Status, cannot: &str) -> Failure {
    let message = format!("process {} watches these plans, and {cannot}", status.pid);
    let hint = "end it first: planwatch watch --stop";
    Failure::failed("locked", message).with_hint(hint).with_exit(4)
}

fn url_of(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// The inbox of the watcher, and HTTP if there is an address for it.
pub(super) fn prepare(
    session: &Session,
    plans: &Path,
    args: &Watch,
    address: Option<SocketAddr>,
) -> Result<(Inbox, Http), Failure> {
    let contexts = session.contexts(plans);
    let Some(address) = address else {
        return Ok((Inbox::default().claiming(contexts), Http::default()));
    };
    let bound = http::bind(address).map_err(|error| {
        let why = failure::system(&error);
        let failure = Failure::failed("address-in-use", format!("HTTP cannot listen on {address}: {why}"));
        failure.with_hint("choose another address or port, as in --http 4002")
    })?;
    let feed = Feed::beginning(context::now());
    let (sessions, root) = (Sessions::default(), session.look_again(plans)?.plans.root().to_path_buf());
    let pages = web::pages(sessions.clone(), &root);
    let codes = Codes(Arc::new(move |opener| sessions.code(opener)));
    let inbox = Inbox::default()
        .with_codes(codes)
        .with_feed(feed.clone())
        .with_http(url_of(bound.address()), args.no_token);
    let inbox = inbox.claiming(Arc::clone(&contexts));
    let contexts = inbox.contexts(contexts);
    if !bound.address().ip().is_loopback() {
        let message = "every request needs the token, and nothing is encrypted";
        session.output.note("reachable", &format!("other machines reach {}: {message}", bound.address()));
    }
    session.log_requests();
    let settings =
        Settings { contexts, feed, needs_token: !args.no_token, is_token_new: args.new_token, pages };
    Ok((inbox, Http { bound: Some((bound, settings)), serving: None }))
}

impl Http {
    pub(super) fn start(&mut self) -> Result<(), Error> {
        if let Some((bound, settings)) = self.bound.take() {
            self.serving = Some(bound.serve(settings)?);
        }
        Ok(())
    }

    pub(super) fn serving(&self) -> Option<&Serving> {
        self.serving.as_ref()
    }

    /// Waits for the requests that are being answered.
    pub(super) fn end(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.end();
        }
    }
}
