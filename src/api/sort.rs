//! The requested order of a list of plans or steps, such as `-updated,title`. All surfaces have the same keys.

use std::cmp::Ordering;

use crate::api::error::Error;
use crate::api::views::{PlanShape, StepShape};
use crate::plan::step_number::StepNumber;
use crate::plan::words::{PlanStatus, Status, StepStatus, nearest};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Steps are sorted by their plan, then by their number.
    Id,
    Title,
    /// The order of steps is pending, in progress, completed, failed, blocked, skipped. The order of plans is draft, active,
    /// completed, abandoned.
    Status,
    /// The last activity.
    Updated,
    Created,
    Due,
    /// The lowest first.
    Priority,
}

impl Key {
    pub const ALL: [Self; 7] =
        [Self::Id, Self::Title, Self::Status, Self::Updated, Self::Created, Self::Due, Self::Priority];

    pub fn word(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Title => "title",
            Self::Status => "status",
            Self::Updated => "updated",
            Self::Created => "created",
            Self::Due => "due",
            Self::Priority => "priority",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

/// Sort keys, the most significant first. Without keys, a list keeps its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sort(Vec<(Key, Direction)>);

impl Sort {
    /// Reads `KEY[,KEY]`, where `-KEY` is descending.
    pub fn read(text: &str) -> Result<Self, Error> {
        let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        parts.map(key).collect::<Result<_, _>>().map(Self)
    }

    pub fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Sorts plans. The sort is stable.
    pub fn plans(&self, plans: &mut [PlanShape]) {
        if self.is_given() {
            plans.sort_by(|a, b| self.compare(|key| plan_by(key, a, b)));
        }
    }

    /// Sorts steps. The sort is stable.
    pub fn steps(&self, steps: &mut [StepShape]) {
        if self.is_given() {
            steps.sort_by(|a, b| self.compare(|key| step_by(key, a, b)));
        }
    }

    fn compare(&self, by: impl Fn(Key) -> Compared) -> Ordering {
        let one = |(key, direction): &(Key, Direction)| match (by(*key), direction) {
            (Compared::Values(it), Direction::Descending) => it.reverse(),
            (Compared::Values(it) | Compared::Missing(it), _) => it,
        };
        self.0.iter().map(one).find(|it| it.is_ne()).unwrap_or(Ordering::Equal)
    }
}

fn key(text: &str) -> Result<(Key, Direction), Error> {
    let (name, direction) = match text.strip_prefix('-') {
        Some(name) => (name, Direction::Descending),
        None => (text, Direction::Ascending),
    };
    let found = Key::ALL.into_iter().find(|it| it.word().eq_ignore_ascii_case(name));
    found.map(|it| (it, direction)).ok_or_else(|| {
        let words = Key::ALL.map(Key::word);
        let known = format!("known keys: {}; -KEY reverses the order", words.join(", "));
        let hint = nearest(name, words).map_or(known, |it| format!("did you mean `{it}`?"));
        Error::usage(format!("`{name}` is not a key to sort by"), hint)
    })
}

/// The result of a comparison. A missing value comes last in both directions.
enum Compared {
    Values(Ordering),
    Missing(Ordering),
}

fn present<T: Ord>(a: Option<T>, b: Option<T>) -> Compared {
    match (a, b) {
        (Some(a), Some(b)) => Compared::Values(a.cmp(&b)),
        (a, b) => Compared::Missing(b.is_some().cmp(&a.is_some())),
    }
}

fn plan_by(key: Key, a: &PlanShape, b: &PlanShape) -> Compared {
    match key {
        Key::Id => Compared::Values(a.id.cmp(&b.id)),
        Key::Title => Compared::Values(folded(&a.title).cmp(&folded(&b.title))),
        Key::Status => Compared::Values(rank::<PlanStatus>(&a.status).cmp(&rank::<PlanStatus>(&b.status))),
        Key::Updated => present(a.last_activity, b.last_activity),
        Key::Created => present(a.created_at, b.created_at),
        Key::Due => present(a.due, b.due),
        Key::Priority => Compared::Values(a.priority.cmp(&b.priority)),
    }
}

fn step_by(key: Key, a: &StepShape, b: &StepShape) -> Compared {
    let id = |it: &StepShape| (it.plan.clone(), it.number.parse::<StepNumber>().ok());
    match key {
        Key::Id => Compared::Values(id(a).cmp(&id(b))),
        Key::Title => Compared::Values(folded(&a.title).cmp(&folded(&b.title))),
        Key::Status => Compared::Values(rank::<StepStatus>(&a.status).cmp(&rank::<StepStatus>(&b.status))),
        Key::Updated => present(a.last_activity, b.last_activity),
        Key::Created => present(a.created_at, b.created_at),
        Key::Due => present(a.due, b.due),
        Key::Priority => Compared::Values(a.priority.cmp(&b.priority)),
    }
}

/// Titles are compared without case.
fn folded(text: &str) -> String {
    text.to_lowercase()
}

/// The position of a status among the known ones; for an unknown status, the position after all of them.
fn rank<S: Status>(word: &str) -> usize {
    S::ALL.iter().position(|it| it.word() == word).unwrap_or(S::ALL.len())
}
