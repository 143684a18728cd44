//! Where an event points to: which plan is to be looked at, or what else it means.

use crate::plan::id::PlanId;

/// Where to look, and what else the events mean.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Look {
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

pub(super) const OWN: &str = ".planwatch";
pub(super) const COOKIES: &str = ".planwatch/cookies";
const ARCHIVE: &str = "_archive";

/// Whose doing a change looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A new file came and the old one went, at once: so planwatch writes, and hardly anybody else.
    Exchanged,
    /// Whoever wrote it has closed it; planwatch does that after the exchange.
    Closed,
    Other,
}

/// What a watching process has in its own directory, and makes again.
pub(super) fn is_needed(name: &str) -> bool {
    matches!(name, "cookies" | "daemon.sock" | "daemon.lock")
}

/// The plan that a path belongs to.
pub(super) fn look_at(path: &str) -> Look {
    let inside = path.strip_prefix(ARCHIVE).and_then(|it| it.strip_prefix('/')).unwrap_or(path);
    let name = inside.split('/').next().unwrap_or_default();
    if PlanId::is_plan_name(name) { Look::Plan(name.to_owned()) } else { Look::Everything }
}
