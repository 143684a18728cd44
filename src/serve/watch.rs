//! Tells every change of a plans directory as it happens; reads only.
//!
//! Events of the file system are hints: whatever they say, all plans are looked at again, and what differs from the
//! look before is told. So an event may be lost or doubled, a change may not. No thread wakes while nothing happens.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use notify::event::{CreateKind, EventKind};
use notify::{RecursiveMode, Watcher};

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::plan::plans::Plans;
use crate::serve::changes::{self, Event};

/// How long files must be quiet before they are looked at, so that a save is seen whole.
const SETTLE: Duration = Duration::from_millis(40);

/// A directory that is being filled all the time is looked at all the same.
const LONGEST_SETTLE: usize = 10;

/// After a change, and while something looks half-written, one more look follows.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// How often is looked where the system tells nothing of changes.
const POLL: Duration = Duration::from_secs(2);

/// What the file system said.
enum Hint {
    Changed,
    /// The watcher has lost events or cannot see a part of the tree: look from time to time.
    Blind,
}

/// Who is told, and when to stop.
pub trait Listener {
    /// Called once, when every later change is going to be seen.
    fn ready(&mut self, plans: usize, steps: usize) -> ControlFlow<()>;
    fn event(&mut self, event: &Event) -> ControlFlow<()>;
    /// The system tells nothing of changes here; the directory is looked at every two seconds.
    fn polling(&mut self, why: &str);
}

/// Watches until the listener breaks off. `context` is asked for each look, because the time passes.
pub fn watch(context: &dyn Fn() -> Result<Context, Error>, listener: &mut dyn Listener) -> Result<(), Error> {
    let first = context()?;
    let (sender, hints) = mpsc::channel();
    // The watch is on before the first look, so that nothing falls between them.
    let watcher = start(first.plans.root(), &sender);
    let mut rhythm = match &watcher {
        Ok(_) => Rhythm::OnEvents,
        Err(error) => {
            listener.polling(&error.to_string());
            Rhythm::Polling
        }
    };
    let mut known = load::all(&first)?;
    let steps = known.live().map(|it| it.steps.len()).sum();
    if listener.ready(known.live().count(), steps).is_break() {
        return Ok(());
    }
    let mut again = false;
    loop {
        match wait(&hints, rhythm, again) {
            Hint::Changed => {}
            Hint::Blind if rhythm == Rhythm::OnEvents => {
                listener.polling("the system lost track of some directories");
                rhythm = Rhythm::Polling;
            }
            Hint::Blind => {}
        }
        let now = context()?;
        let seen = load::all(&now)?;
        let is_second = again;
        let (settled, unsettled) = hold_back(&known, seen, is_second);
        let events = changes::between(&known, &settled, now.now, &now.root_name());
        known = settled;
        again = !events.is_empty() || unsettled;
        for event in &events {
            if listener.event(event).is_break() {
                return Ok(());
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rhythm {
    OnEvents,
    Polling,
}

/// Waits for a hint, then for quiet; with `again` no longer than for the second look.
fn wait(hints: &Receiver<Hint>, rhythm: Rhythm, again: bool) -> Hint {
    let patience = match (again, rhythm) {
        (true, _) => Some(SECOND_LOOK),
        (false, Rhythm::Polling) => Some(POLL),
        (false, Rhythm::OnEvents) => None,
    };
    let first = match patience {
        Some(time) => hints.recv_timeout(time),
        None => hints.recv().map_err(|_| RecvTimeoutError::Disconnected),
    };
    let mut hint = first.unwrap_or(Hint::Changed);
    for _ in 0..LONGEST_SETTLE {
        match hints.recv_timeout(SETTLE) {
            Ok(Hint::Blind) => hint = Hint::Blind,
            Ok(Hint::Changed) => {}
            Err(_) => break,
        }
        while let Ok(more) = hints.try_recv() {
            if matches!(more, Hint::Blind) {
                hint = more;
            }
        }
    }
    hint
}

/// Keeps what was known of steps that look half-written or gone, until a second look says the same.
fn hold_back(known: &Plans, seen: Plans, is_second: bool) -> (Plans, bool) {
    if is_second {
        return (seen, false);
    }
    let mut unsettled = false;
    let mut plans = seen.into_vec();
    for plan in plans.iter_mut().filter(|it| !it.is_archived) {
        let Some(old) = known.get(&plan.id) else { continue };
        for step in old.steps.iter().filter(|it| it.has_file()) {
            match plan.steps.iter_mut().find(|it| it.path == step.path) {
                Some(now) if now.problems.iter().all(|it| !it.code.refuses_writing()) => {}
                Some(now) => {
                    unsettled |= *now != *step;
                    now.clone_from(step);
                }
                None => {
                    unsettled = true;
                    plan.steps.push(step.clone());
                }
            }
        }
        plan.steps.sort_by(|a, b| a.id.number.cmp(&b.id.number).then_with(|| a.path.cmp(&b.path)));
    }
    let gone = known.live().filter(|old| !plans.iter().any(|it| !it.is_archived && it.id == old.id));
    let gone: Vec<_> = gone.cloned().collect();
    unsettled |= !gone.is_empty();
    plans.extend(gone);
    (Plans::new(plans), unsettled)
}

fn start(root: &Path, hints: &Sender<Hint>) -> notify::Result<notify::RecommendedWatcher> {
    let hints = hints.clone();
    let root_path = root.to_path_buf();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Some(hint) = hint_of(&root_path, event) {
            // The receiver is gone only when the watch has ended.
            hints.send(hint).ok();
        }
    })?;
    watcher.watch(root, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// Reading is no change, and neither is what planwatch writes for itself.
fn hint_of(root: &Path, event: notify::Result<notify::Event>) -> Option<Hint> {
    let Ok(event) = event else { return Some(Hint::Blind) };
    if event.need_rescan() {
        return Some(Hint::Changed);
    }
    let is_own = |path: &Path| path.strip_prefix(root).is_ok_and(|it| it.starts_with(".planwatch"));
    let is_close_write = matches!(event.kind, EventKind::Access(kind) if kind == notify::event::AccessKind::Close(notify::event::AccessMode::Write));
    match event.kind {
        EventKind::Access(_) if !is_close_write => None,
        EventKind::Create(CreateKind::Folder) => Some(Hint::Changed),
        _ if !event.paths.is_empty() && event.paths.iter().all(|it| is_own(it)) => None,
        _ => Some(Hint::Changed),
    }
}
