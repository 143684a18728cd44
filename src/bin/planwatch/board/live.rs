//! Follows the changes of the plans: through a process that already watches them, such as the daemon, or else with a
//! watcher in this process.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use planwatch::plan::id::PlanId;
use planwatch::serve::Status;
use planwatch::serve::daemon::api::{End, Inbox, Observer, Stopper};
use planwatch::serve::daemon::event_loop;
use planwatch::serve::ipc::client::Client;
use planwatch::serve::ipc::event::{Event, Notification, Source, What};

use super::event_loop::Input;
use crate::context::{self, Session};

/// The delay between the end of one watcher and the search for the next one.
const BETWEEN: Duration = Duration::from_secs(2);

/// The thread that follows the changes.
pub(crate) struct Following {
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// Stops the watcher of this process.
    stopper: Option<Stopper>,
    is_ended: bool,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // No statement leaves the state half-changed, so a poisoned lock is usable.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn follow(session: Session, plans: PathBuf, inbox: Sender<Input>) -> Following {
    let state = Arc::<Mutex<State>>::default();
    let own = Arc::clone(&state);
    let follow = move || while follow_once(&session, &plans, &inbox, &own).is_some() {};
    let thread = std::thread::Builder::new().name("following".to_owned()).spawn(follow).ok();
    Following { state, thread }
}

impl Drop for Following {
    /// Waits until the watcher of this process has removed its socket. A thread that follows another process is not
    /// waited for.
    fn drop(&mut self) {
        let stopper = {
            let mut state = lock(&self.state);
            state.is_ended = true;
            state.stopper.take()
        };
        if stopper.is_some_and(|it| it.stop()) {
            self.thread.take().map(JoinHandle::join);
        }
    }
}

/// Follows another process that watches or, if there is none, watches in this process. Returns when that watching ends.
/// `None` if the board has ended, the plans are gone, or watching fails.
fn follow_once(session: &Session, plans: &Path, inbox: &Sender<Input>, state: &Mutex<State>) -> Option<()> {
    let look = || Ok(super::quiet(session.look_again(plans)?, inbox));
    let now = look().ok()?;
    if let Some(client) = Client::connect(&now.plans, &context::socket_dirs()) {
        let ready = &mut |_: &Status| send(inbox, Input::Changed);
        client.follow_changes(ready, &mut |it| match it {
            Notification::Event(event) => send(inbox, Input::Event(line(&event))),
            Notification::Changed { .. } => send(inbox, Input::Changed),
        });
    } else {
        let own = Inbox::default().giving_way();
        {
            let mut state = lock(state);
            if state.is_ended {
                return None;
            }
            state.stopper = Some(own.stopper());
        }
        let end = event_loop::watch(&look, &context::socket_dirs(), own, &mut Forwarder(inbox));
        lock(state).stopper = None;
        if matches!(end, Ok(End::Gone | End::BrokenOff | End::Stopped) | Err(_)) {
            return None;
        }
    }
    std::thread::sleep(BETWEEN);
    inbox.send(Input::Changed).ok()
}

fn send(inbox: &Sender<Input>, input: Input) -> ControlFlow<()> {
    inbox.send(input).map_or(ControlFlow::Break(()), ControlFlow::Continue)
}

struct Forwarder<'a>(&'a Sender<Input>);

impl Observer for Forwarder<'_> {
    fn ready(&mut self, _: &Status) -> ControlFlow<()> {
        // Changes before watching began may have been missed.
        send(self.0, Input::Changed)
    }

    fn event(&mut self, event: &Event) -> ControlFlow<()> {
        send(self.0, Input::Event(line(event)))
    }

    fn changed(&mut self, _: Option<&PlanId>) {
        // This fails only if the board has ended; then the next event stops the watcher.
        self.0.send(Input::Changed).ok();
    }

    fn polling(&mut self, _: Option<&str>) {}
}

/// An event in one line.
fn line(event: &Event) -> String {
    let at = event.at.to_string();
    let what = match &event.what {
        What::Status { old, new } => format!("{old} → {new}"),
        What::Added { new } => format!("added, {new}"),
        What::Removed { .. } => "removed".to_owned(),
        What::ClaimedElsewhere => "claimed elsewhere".to_owned(),
        What::ReleasedElsewhere => "released elsewhere".to_owned(),
        What::EndedElsewhere { new } => format!("{new} elsewhere"),
        What::Attempt { attempt } => {
            format!("attempt: {}", attempt.outcome.as_deref().unwrap_or("recorded"))
        }
    };
    let by = match &event.source {
        Source::Files => "",
        Source::Engine { by, .. } | Source::Remote { by, .. } => by,
    };
    let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
    format!("{} {} {}  {what}{by}", at.get(11..19).unwrap_or_default(), event.id, event.title)
}
