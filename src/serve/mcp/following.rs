//! Live updates: a client that follows a resource is notified when its text changes.
//!
//! An event of the feed is a hint to read what may have changed. A client is notified only of resources whose text differs
//! from the one that was last read here.
//!
//! In a daemon its feed is there. Elsewhere nothing is watched until somebody follows something; from then on a thread
//! follows the process that watches these plans, or watches them itself while there is none.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::engine::context::{Context, Freshness};
use crate::engine::error::Error;
use crate::serve::changes::Event;
use crate::serve::client::Client;
use crate::serve::contexts::Contexts;
use crate::serve::feed::{Feed, Receiver, Told};
use crate::serve::mcp::resources::{self, LIST, Seen};
use crate::serve::place::Homes;
use crate::serve::watch::{self, End, Inbox, Listener, Stopper};
use crate::serve::wire::Status;

/// A save is several events, and is settled soon after the first; one notification is enough for them.
const GATHERING: Duration = Duration::from_millis(60);

/// For how long after a client began to follow something a change of it counts as new without a comparison: it may have been
/// made between the answer to the client and the first reading.
const BEGINNING: Duration = Duration::from_secs(1);

/// How long a thread waits before it looks for a process that watches, when the one before has just ended.
const BETWEEN: Duration = Duration::from_secs(2);

/// Where news come from.
pub(super) enum Source {
    /// Nobody can follow anything.
    None,
    /// This process watches.
    Feed(Feed),
    /// A thread is started when somebody follows something.
    Thread(Arc<Watching>),
}

impl Source {
    pub(super) fn is_there(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// From here on.
    fn subscribe(&self) -> Result<Receiver, ErrorData> {
        let failed = |error: &dyn std::fmt::Display| {
            ErrorData::internal_error(format!("nothing can be followed: {error}"), None)
        };
        match self {
            Self::None => Err(failed(&"nobody watches")),
            Self::Feed(feed) => Ok(feed.subscribe()),
            Self::Thread(watching) => watching.subscribe().map_err(|it| failed(&it)),
        }
    }

    pub(super) fn stop(&self) {
        if let Self::Thread(watching) = self {
            watching.stop();
        }
    }
}

/// What a thread that follows the plans needs, and how it is ended.
pub(super) struct Watching {
    contexts: Contexts,
    homes: Homes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    feed: Option<Feed>,
    /// Of this process's own watching.
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
    is_ended: bool,
}

impl Watching {
    pub(super) fn new(contexts: Contexts, homes: Homes) -> Self {
        Self { contexts, homes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is in it is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The surroundings of whoever watches: nobody else is asked.
    fn look(&self) -> Result<Context, Error> {
        Ok(Context { freshness: Freshness::Unknown, ..(self.contexts)()? })
    }

    fn subscribe(self: &Arc<Self>) -> Result<Receiver, Error> {
        let now = self.look()?.now;
        let mut state = self.state();
        if let Some(feed) = &state.feed {
            return Ok(feed.subscribe());
        }
        let feed = Feed::beginning(now);
        let (receiver, thread) = (feed.subscribe(), Arc::clone(self));
        let told = feed.clone();
        let started =
            std::thread::Builder::new().name("following".to_owned()).spawn(move || thread.run(&told));
        let failed = |error: std::io::Error| {
            let message = format!("no thread can be started: {error}");
            Error::Failed { code: "io-error", message, hint: String::new() }
        };
        state.thread = Some(started.map_err(failed)?);
        state.feed = Some(feed);
        Ok(receiver)
    }

    /// Ends the watching, and waits until its lock is free; who only follows is left alone.
    fn stop(&self) {
        let (stopper, thread) = {
            let mut state = self.state();
            state.is_ended = true;
            (state.stopper.take(), state.thread.take())
        };
        if stopper.is_some_and(|it| it.stop())
            && let Some(thread) = thread
        {
            thread.join().ok();
        }
    }

    /// Follows whoever watches, and watches while nobody does, until the plans are gone or the client is.
    fn run(&self, feed: &Feed) {
        while !self.state().is_ended {
            let Ok(now) = self.look() else { break };
            if let Some(client) = Client::connect(&now.plans, &self.homes) {
                client.follow_changes(
                    &mut |_| {
                        // What happened before somebody watched again nobody has seen.
                        feed.publish(Told::Changed { plan: None });
                        ControlFlow::Continue(())
                    },
                    &mut |told| {
                        feed.publish(told);
                        ControlFlow::Continue(())
                    },
                );
            } else {
                match self.watch(feed) {
                    Ok(End::Gone) | Err(_) => break,
                    // Whoever ended it may want to watch in its place.
                    Ok(_) => {}
                }
            }
            if !self.state().is_ended {
                std::thread::sleep(BETWEEN);
            }
        }
        self.state().feed = None;
    }

    fn watch(&self, feed: &Feed) -> Result<End, Error> {
        let inbox =
            Inbox::default().with_feed(feed.clone()).giving_way().claiming(Arc::clone(&self.contexts));
        {
            let mut state = self.state();
            if state.is_ended {
                return Ok(End::Stopped);
            }
            state.stopper = Some(inbox.stopper());
        }
        let end = watch::watch(&|| self.look(), &self.homes, inbox, &mut Quiet(feed));
        self.state().stopper = None;
        end
    }
}

/// Tells the feed when watching has begun; what it sees goes there by itself.
struct Quiet<'a>(&'a Feed);

impl Listener for Quiet<'_> {
    fn ready(&mut self, _: &Status) -> ControlFlow<()> {
        self.0.publish(Told::Changed { plan: None });
        ControlFlow::Continue(())
    }

    fn event(&mut self, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn polling(&mut self, _: Option<&str>) {}
}

/// What is told within a moment; none: nothing more ever comes.
async fn gathered(receiver: &mut Receiver) -> Option<Vec<Told>> {
    let everything = || Told::Changed { plan: None };
    let mut told = match receiver.recv().await {
        Ok((_, first)) => vec![first],
        Err(RecvError::Lagged(_)) => vec![everything()],
        Err(RecvError::Closed) => return None,
    };
    tokio::time::sleep(GATHERING).await;
    loop {
        match receiver.try_recv() {
            Ok((_, more)) => told.push(more),
            Err(TryRecvError::Lagged(_)) => told.push(everything()),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(told),
        }
    }
}

/// Reads resources in a thread that may wait.
async fn read(contexts: &Contexts, uris: Vec<String>) -> Seen {
    let contexts = Arc::clone(contexts);
    let reading = tokio::task::spawn_blocking(move || match contexts() {
        Ok(context) => resources::seen(&context, uris),
        Err(_) => uris.into_iter().map(|it| (it, None)).collect(),
    });
    reading.await.unwrap_or_default()
}

/// Reads again what may have changed, and returns the URIs of what has.
async fn changed(contexts: &Contexts, seen: &Mutex<Seen>, told: &[Told], is_beginning: bool) -> Vec<String> {
    let touched = |told: &[Told]| resources::touched(lock(seen).keys(), told);
    let may_be = touched(told);
    if may_be.is_empty() {
        return Vec::new();
    }
    let named: Vec<_> =
        told.iter().filter(|it| !matches!(it, Told::Changed { plan: None })).cloned().collect();
    let surely = if is_beginning { touched(&named) } else { BTreeSet::new() };
    let now = read(contexts, may_be.into_iter().collect()).await;
    let mut seen = lock(seen);
    let is_other = |(uri, hash): (String, Option<blake3::Hash>)| {
        // What is followed no more meanwhile has no entry.
        let before = seen.get_mut(&uri)?;
        let is_same = std::mem::replace(before, hash) == hash;
        (!is_same || surely.contains(&uri)).then_some(uri)
    };
    now.into_iter().filter_map(is_other).collect()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in it is whole between any two statements.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one client of the older protocol follows.
#[derive(Default)]
pub(super) struct Followed {
    seen: Mutex<Seen>,
    /// Whether a task tells the client.
    is_told: Mutex<bool>,
}

impl Followed {
    /// Follows one more; the first starts a task that tells the client.
    pub(super) async fn add(
        self: &Arc<Self>,
        source: &Source,
        contexts: &Contexts,
        peer: Peer<RoleServer>,
        uri: String,
    ) -> Result<(), ErrorData> {
        let is_told = std::mem::replace(&mut *lock(&self.is_told), true);
        let mut uris = vec![uri];
        if !is_told {
            let receiver = source.subscribe().inspect_err(|_| *lock(&self.is_told) = false)?;
            uris.push(LIST.to_owned());
            tokio::spawn(Arc::clone(self).tell(receiver, Arc::clone(contexts), peer));
        }
        // The client is answered after this, so whatever changes later is another text.
        let seen = read(contexts, uris).await;
        lock(&self.seen).extend(seen);
        Ok(())
    }

    async fn tell(self: Arc<Self>, mut receiver: Receiver, contexts: Contexts, peer: Peer<RoleServer>) {
        while let Some(told) = gathered(&mut receiver).await {
            for uri in changed(&contexts, &self.seen, &told, false).await {
                let sent = match uri.as_str() {
                    LIST => peer.notify_resource_list_changed().await,
                    _ => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await,
                };
                if sent.is_err() {
                    return;
                }
            }
        }
        // The next one who follows starts anew.
        lock(&self.seen).clear();
        *lock(&self.is_told) = false;
    }

    pub(super) fn remove(&self, uri: &str) {
        lock(&self.seen).remove(uri);
    }
}

/// What of a wish can be followed.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    let uris = requested.resource_subscriptions.iter().flatten().filter(|it| resources::is_uri(it));
    let uris: Vec<_> = uris.cloned().collect();
    accepted.resource_subscriptions = (!uris.is_empty()).then_some(uris);
    accepted
}

/// Tells a client of the newer protocol until it has heard enough.
pub(super) async fn listen(
    source: &Source,
    contexts: &Contexts,
    subscription: SubscriptionContext,
) -> Result<(), ErrorData> {
    let mut receiver = source.subscribe()?;
    let accepted = subscription.accepted();
    let wants_list = accepted.resources_list_changed == Some(true);
    let uris = accepted.resource_subscriptions.iter().flatten().cloned();
    let uris = uris.chain(wants_list.then(|| LIST.to_owned())).collect();
    let sink = subscription.sink().clone();
    let seen = Mutex::new(read(contexts, uris).await);
    let begun = Instant::now();
    loop {
        let told = tokio::select! {
            told = gathered(&mut receiver) => told,
            () = subscription.cancelled() => return Ok(()),
        };
        let Some(told) = told else { return Ok(()) };
        for uri in changed(contexts, &seen, &told, begun.elapsed() < BEGINNING).await {
            let sent = match uri.as_str() {
                LIST => sink.notify_resource_list_changed().await,
                _ => sink.notify_resource_updated(uri).await,
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
}
