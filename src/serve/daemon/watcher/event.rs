//! What a file system event means: which plan may have changed, or what else happened.

use crate::disk::PlansDir;
use crate::plan::id::PlanId;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchEvent {
    /// The live or archived plan in the directory of this name may have changed.
    Plan(String),
    /// Anything may have changed: events were lost, or the path belongs to no plan, or its file is in several plans.
    Everything,
    Cookie(String),
    /// planwatch's own directory, or a file in it that the daemon needs, may have been created, deleted or replaced.
    RuntimeFiles,
    /// The plans directory is gone or was replaced.
    Gone,
}

const ARCHIVE: &str = "_archive";

/// How a file was written, which suggests the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// The new file was exchanged with the old one atomically. planwatch writes this way; hardly any other program does.
    Exchanged,
    /// The file was closed after writing. planwatch does this after the exchange.
    Closed,
    Other,
}

/// The location of planwatch's own state, relative to the plans directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RuntimePaths {
    pub(crate) dir: String,
    pub(crate) cookies: String,
}

impl RuntimePaths {
    pub(crate) fn of(plans: &PlansDir) -> Self {
        let shown = |name: &str| plans.in_state_dir(name).to_string_lossy().into_owned();
        let cookies = shown("cookies");
        let dir = cookies.rsplit_once('/').map_or("", |it| it.0).to_owned();
        Self { dir, cookies }
    }

    /// The first component of `dir`: the entry of the plans directory that contains the state.
    pub(crate) fn top(&self) -> &str {
        self.dir.split('/').next().unwrap_or_default()
    }

    /// The parent directory of `dir`, and the name of `dir` in it; `None` if `dir` is directly in the plans directory, as
    /// `.planwatch` is.
    pub(crate) fn among(&self) -> Option<(&str, &str)> {
        self.dir.rsplit_once('/')
    }
}

/// Whether the daemon needs this file and recreates it.
pub(crate) fn is_needed(name: &str) -> bool {
    matches!(name, "cookies" | "daemon.sock" | "daemon.lock")
}

pub(crate) fn event_for(path: &str) -> WatchEvent {
    let inside = path.strip_prefix(ARCHIVE).and_then(|it| it.strip_prefix('/')).unwrap_or(path);
    let name = inside.split('/').next().unwrap_or_default();
    if PlanId::is_plan_name(name) { WatchEvent::Plan(name.to_owned()) } else { WatchEvent::Everything }
}
