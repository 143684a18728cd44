//! Live updates: a client that follows a resource is notified when the resource's text changes.
//!
//! After an event, the resources that may have changed are read. The client is notified only of those whose text differs
//! from the text that was read before. The first read ends before the subscription is acknowledged. So every change that
//! the client makes after the acknowledgement is noticed.
//!
//! A daemon uses its own feed. In another process, nothing is watched before the first subscription, which starts a thread.
//! The thread follows the process that watches these plans, or watches them itself while there is no such process.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::api::context::Context;
use crate::api::daemon::Freshness;
use crate::api::error::Error;
use crate::serve::daemon::api::{End, Inbox, Observer, Stopper};
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::event_loop;
use crate::serve::daemon::feed::{Feed, Receiver};
use crate::serve::ipc::client::Client;
use crate::serve::ipc::event::Event;
use crate::serve::ipc::event::Notification;
use crate::serve::ipc::protocol::Status;
use crate::serve::ipc::socket_path::SocketDirs;
use crate::serve::mcp::resources::{self, LIST, Seen};

/// How long events are collected after the first one. A save causes several events within this time, and one notification
/// is enough for them.
const GATHERING: Duration = Duration::from_millis(60);

/// The maximum number of prepared subscriptions that wait to be served. If there are more, the oldest one is dropped.
/// Clients that disconnect while they subscribe leave prepared subscriptions behind.
const MOST_PREPARED: usize = 64;

/// How long the thread waits after a watcher has ended, in another process or in this one. Then it looks for the next one.
const BETWEEN: Duration = Duration::from_secs(2);

/// The source of change events.
pub(super) enum Source {
    /// Live updates are not available.
    None,
    /// This process watches the plans and publishes the changes to this feed.
    Feed(Feed),
    /// A thread that is started at the first subscription.
    Thread(Arc<Watching>),
}

impl Source {
    pub(super) fn is_there(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Subscribes to the events from now on.
    fn subscribe(&self) -> Result<Receiver, ErrorData> {
        let failed = |error: &dyn std::fmt::Display| {
            ErrorData::internal_error(format!("changes cannot be followed: {error}"), None)
        };
        match self {
            Self::None => Err(failed(&"no daemon watches")),
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

/// A thread that follows the changes of the plans.
pub(super) struct Watching {
    contexts: ContextFactory,
    homes: SocketDirs,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    feed: Option<Feed>,
    /// Stops the watcher of this process.
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
    is_ended: bool,
}

impl Watching {
    pub(super) fn new(contexts: ContextFactory, homes: SocketDirs) -> Self {
        Self { contexts, homes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No statement leaves the state half-changed, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The context for watching, in which no daemon is asked whether the index is current.
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

    /// If this process watches, stops the watcher and waits for the thread, so that the watcher's lock is free afterwards.
    /// A thread that follows another process is not waited for.
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

    /// Follows the watching process, or watches if there is none, until the plans are removed, watching fails, or
    /// [`Self::stop`] is called. While it follows another process, it notices `stop` only when that process ends.
    fn run(&self, feed: &Feed) {
        while !self.state().is_ended {
            let Ok(now) = self.look() else { break };
            if let Some(client) = Client::connect(&now.plans, &self.homes) {
                client.follow_changes(
                    &mut |_| {
                        // Changes that were made before the connection may have been missed.
                        feed.publish(Notification::Changed { plan: None });
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
                    // Another process may have taken over the watching.
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
        let end = event_loop::watch(&|| self.look(), &self.homes, inbox, &mut Quiet(feed));
        self.state().stopper = None;
        end
    }
}

/// Notifies the feed when watching has begun. Events reach the feed without this observer.
struct Quiet<'a>(&'a Feed);

impl Observer for Quiet<'_> {
    fn ready(&mut self, _: &Status) -> ControlFlow<()> {
        self.0.publish(Notification::Changed { plan: None });
        ControlFlow::Continue(())
    }

    fn event(&mut self, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn polling(&mut self, _: Option<&str>) {}
}

/// Waits for a notification, and also returns those that follow within a short time. Returns `None` if the feed has ended.
async fn gathered(receiver: &mut Receiver) -> Option<Vec<Notification>> {
    let everything = || Notification::Changed { plan: None };
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

/// Reads resources on a blocking thread.
async fn read(contexts: &ContextFactory, uris: Vec<String>) -> Seen {
    let contexts = Arc::clone(contexts);
    let reading = tokio::task::spawn_blocking(move || match contexts() {
        Ok(context) => resources::seen(&context, uris),
        Err(_) => unread(uris),
    });
    reading.await.unwrap_or_default()
}

fn unread(uris: Vec<String>) -> Seen {
    uris.into_iter().map(|it| (it, None)).collect()
}

/// Rereads the resources that may have changed, and returns the URIs of those that have.
async fn changed(contexts: &ContextFactory, seen: &mut Seen, told: &[Notification]) -> Vec<String> {
    let may_be = resources::touched(seen.keys(), told);
    if may_be.is_empty() {
        return Vec::new();
    }
    let now = read(contexts, may_be.into_iter().collect()).await;
    let is_other = |(uri, hash): (String, Option<blake3::Hash>)| {
        let before = seen.get_mut(&uri)?;
        (std::mem::replace(before, hash) != hash).then_some(uri)
    };
    now.into_iter().filter_map(is_other).collect()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No statement leaves the state half-changed, so a poisoned lock is usable.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The resources that one client of an older protocol follows.
#[derive(Default)]
pub(super) struct Followed {
    /// Locked while a resource is read and entered here, so that no event in between is lost.
    seen: tokio::sync::Mutex<Seen>,
    /// Whether a task notifies the client.
    is_told: Mutex<bool>,
}

impl Followed {
    /// Follows one more resource. The first call starts a task that notifies the client.
    pub(super) async fn add(
        self: &Arc<Self>,
        source: &Source,
        contexts: &ContextFactory,
        peer: Peer<RoleServer>,
        uri: String,
    ) -> Result<(), ErrorData> {
        let is_told = std::mem::replace(&mut *lock(&self.is_told), true);
        let mut uris = vec![uri];
        if !is_told {
            let receiver = source.subscribe().inspect_err(|_| *lock(&self.is_told) = false)?;
            uris.push(LIST.to_owned());
            tokio::spawn(Arc::clone(self).notify_client(receiver, Arc::clone(contexts), peer));
        }
        // The client is answered after this read, so every change that it makes later differs from the text that was
        // read.
        let mut seen = self.seen.lock().await;
        seen.extend(read(contexts, uris).await);
        Ok(())
    }

    async fn notify_client(
        self: Arc<Self>,
        mut receiver: Receiver,
        contexts: ContextFactory,
        peer: Peer<RoleServer>,
    ) {
        while let Some(told) = gathered(&mut receiver).await {
            let changed = changed(&contexts, &mut *self.seen.lock().await, &told).await;
            for uri in changed {
                let sent = match uri.as_str() {
                    LIST => peer.notify_resource_list_changed().await,
                    _ => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await,
                };
                if sent.is_err() {
                    return;
                }
            }
        }
        // The next subscription starts a new task.
        self.seen.lock().await.clear();
        *lock(&self.is_told) = false;
    }

    pub(super) async fn remove(&self, uri: &str) {
        self.seen.lock().await.remove(uri);
    }
}

/// The part of a request that can be followed.
fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    let uris = requested.resource_subscriptions.iter().flatten().filter(|it| resources::is_uri(it));
    let uris: Vec<_> = uris.cloned().collect();
    accepted.resource_subscriptions = (!uris.is_empty()).then_some(uris);
    accepted
}

/// A subscription of the newer protocol that is not served yet.
struct Prepared {
    receiver: Receiver,
    seen: Seen,
}

/// Prepared subscriptions, each with the id of the task that serves its request.
///
/// The library calls the handler twice for each subscription. The first call returns what is accepted, the second call
/// serves the subscription, and the library sends the acknowledgement between them. The client can change a file as soon
/// as it has the acknowledgement, so the first call reads the resources.
#[derive(Default)]
pub(super) struct Beginnings {
    prepared: Mutex<VecDeque<(Option<tokio::task::Id>, Prepared)>>,
    /// Whether the client's input has ended. When it ends, all subscriptions end.
    has_ended: tokio::sync::watch::Sender<bool>,
}

impl Beginnings {
    /// Reads the requested resources, in this thread, and returns the part of the request that can be followed.
    pub(super) fn accept(
        &self,
        source: &Source,
        contexts: &ContextFactory,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let accepted = accepted(requested);
        let receiver = source.subscribe().ok()?;
        let seen = contexts()
            .map(|it| resources::seen(&it, uris(&accepted)))
            .unwrap_or_else(|_| unread(uris(&accepted)));
        let mut prepared = lock(&self.prepared);
        prepared.push_back((tokio::task::try_id(), Prepared { receiver, seen }));
        if prepared.len() > MOST_PREPARED {
            prepared.pop_front();
        }
        Some(accepted)
    }

    /// Ends all current and later subscriptions.
    pub(super) fn end(&self) {
        self.has_ended.send_replace(true);
    }

    /// The subscription that the current task has prepared.
    fn take(&self) -> Option<Prepared> {
        let mut prepared = lock(&self.prepared);
        let at = prepared.iter().position(|(id, _)| *id == tokio::task::try_id())?;
        prepared.remove(at).map(|(_, it)| it)
    }
}

fn uris(filter: &SubscriptionFilter) -> Vec<String> {
    let wants_list = filter.resources_list_changed == Some(true);
    let uris = filter.resource_subscriptions.iter().flatten().cloned();
    uris.chain(wants_list.then(|| LIST.to_owned())).collect()
}

/// Sends notifications to a client of the newer protocol until it cancels the subscription, its input ends, or the feed
/// ends.
pub(super) async fn listen(
    beginnings: &Beginnings,
    contexts: &ContextFactory,
    subscription: SubscriptionContext,
) -> Result<(), ErrorData> {
    let Some(Prepared { mut receiver, mut seen }) = beginnings.take() else {
        return Err(ErrorData::internal_error("too many clients subscribe at once", None));
    };
    let sink = subscription.sink();
    let notify = async {
        while let Some(told) = gathered(&mut receiver).await {
            for uri in changed(contexts, &mut seen, &told).await {
                let sent = match uri.as_str() {
                    LIST => sink.notify_resource_list_changed().await,
                    _ => sink.notify_resource_updated(uri).await,
                };
                if sent.is_err() {
                    return;
                }
            }
        }
    };
    let mut has_ended = beginnings.has_ended.subscribe();
    // After the input has ended, the library no longer confirms that a notification was sent. `notify` would wait for
    // the confirmation forever, so it is dropped.
    tokio::select! {
        () = notify => {}
        () = subscription.cancelled() => {}
        _ = has_ended.wait_for(|it| *it) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::plan::id::PlanId;
    use crate::serve::mcp::tests::call;

    const STEP: &str = "planwatch:///plans/auth/steps/1";

    /// A client can change a file as soon as its subscription is acknowledged, before the subscription is served.
    #[test]
    fn a_change_between_the_acknowledgement_and_the_first_event_is_notified() {
        let machine = Arc::new(Machine::with(&[
            ("/plans/auth/plan.md", "# Sign in\n"),
            ("/plans/auth/step-1.md", "# Schema\n"),
        ]));
        let contexts: ContextFactory = {
            let machine = Arc::clone(&machine);
            Arc::new(move || Ok(call(&machine).context))
        };
        let feed = Feed::beginning(contexts().unwrap().now);
        let source = Source::Feed(feed.clone());
        let beginnings = Beginnings::default();
        let mut wanted = SubscriptionFilter::new();
        wanted.resource_subscriptions = Some(vec![STEP.to_owned(), "file:///etc/passwd".to_owned()]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let served = tokio::spawn(async move {
                let accepted = beginnings.accept(&source, &contexts, &wanted).unwrap();
                assert_eq!(accepted.resource_subscriptions, Some(vec![STEP.to_owned()]));
                machine.save("/plans/auth/step-1.md", "# Schema of users\n");
                feed.publish(Notification::Changed { plan: Some(PlanId::new("auth")) });
                let Prepared { mut receiver, mut seen } = beginnings.take().unwrap();
                assert!(beginnings.take().is_none(), "each subscription is served once");
                let told = gathered(&mut receiver).await.unwrap();
                assert_eq!(changed(&contexts, &mut seen, &told).await, [STEP]);
                assert!(changed(&contexts, &mut seen, &told).await.is_empty(), "the same text is no change");
            });
            served.await.unwrap();
        });
    }

    #[test]
    fn unserved_subscriptions_are_removed() {
        let machine = Arc::new(Machine::with(&[("/plans/auth/plan.md", "# Sign in\n")]));
        let contexts: ContextFactory = Arc::new(move || Ok(call(&machine).context));
        let source = Source::Feed(Feed::beginning(contexts().unwrap().now));
        let beginnings = Beginnings::default();
        for _ in 0..=MOST_PREPARED {
            beginnings.accept(&source, &contexts, &SubscriptionFilter::new()).unwrap();
        }
        assert_eq!(lock(&beginnings.prepared).len(), MOST_PREPARED);
        assert!(beginnings.accept(&Source::None, &contexts, &SubscriptionFilter::new()).is_none());
    }
}
