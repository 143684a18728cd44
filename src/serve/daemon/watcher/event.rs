//! Where an event points to: which plan is to be looked at, or what else it means.

use crate::disk::PlansDir;
use crate::plan::id::PlanId;

/// Where to look, and what else the events mean.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Look {
    /// At a plan, by its directory's name, live and archived.
    Plan(String),
    /// At all of it: events were lost, or what changed is no plan.
    Everything,
    Cookie(String),
    /// At planwatch's own directory, which somebody deleted or replaced, or something in it.
    Own,
    /// The plans directory itself is gone or elsewhere.
    Gone,
}

const ARCHIVE: &str = "_archive";

/// Whose doing a change looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A new file came and the old one went, at once: so planwatch writes, and hardly anybody else.
    Exchanged,
    /// Whoever wrote it has closed it; planwatch does that after the exchange.
    Closed,
    Other,
}

/// Where the own state lies, relative to the plans directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) dir: String,
    pub(crate) cookies: String,
}

impl Own {
    pub(crate) fn of(plans: &PlansDir) -> Self {
        let shown = |name: &str| plans.in_state_dir(name).to_string_lossy().into_owned();
        let cookies = shown("cookies");
        let dir = cookies.rsplit_once('/').map_or("", |it| it.0).to_owned();
        Self { dir, cookies }
    }

    /// The name in the plans directory that all of it is below.
    pub(crate) fn top(&self) -> &str {
        self.dir.split('/').next().unwrap_or_default()
    }

    /// The directory that it lies in among others', and its name there; none where it is `.planwatch` itself.
    pub(crate) fn among(&self) -> Option<(&str, &str)> {
        self.dir.rsplit_once('/')
    }
}

/// What a watching process has in its own directory, and makes again.
pub(crate) fn is_needed(name: &str) -> bool {
    matches!(name, "cookies" | "daemon.sock" | "daemon.lock")
}

/// The plan that a path belongs to.
pub(crate) fn look_at(path: &str) -> Look {
    let inside = path.strip_prefix(ARCHIVE).and_then(|it| it.strip_prefix('/')).unwrap_or(path);
    let name = inside.split('/').next().unwrap_or_default();
    if PlanId::is_plan_name(name) { Look::Plan(name.to_owned()) } else { Look::Everything }
}
