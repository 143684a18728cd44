//! The order in which lists of plans and steps are asked for: `-updated,title`. The same keys on every surface.

use std::cmp::Ordering;

use crate::engine::error::Error;
use crate::engine::shape::{PlanShape, StepShape};
use crate::plan::step_number::StepNumber;
use crate::plan::words::{PlanStatus, Status, StepStatus, nearest};

/// What a list can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Of steps their plan, then their number.
    Id,
    Title,
    /// In the order of work: what is not begun comes first, what is closed last.
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

/// Keys, the first of which decides; none leaves a list as it is.
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

    /// Sorts plans; those that are equal stay in their order.
    pub fn plans(&self, plans: &mut [PlanShape]) {
        if self.is_given() {
            plans.sort_by(|a, b| self.compare(|key| plan_by(key, a, b)));
        }
    }

    /// Sorts steps; those that are equal stay in their order.
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

/// Reads one key with its direction.
fn key(text: &str) -> Result<(Key, Direction), Error> {
    let (name, direction) = match text.strip_prefix('-') {
        Some(name) => (name, Direction::Descending),
        None => (text, Direction::Ascending),
    };
    let found = Key::ALL.into_iter().find(|it| it.word().eq_ignore_ascii_case(name));
    found.map(|it| (it, direction)).ok_or_else(|| {
        let words = Key::ALL.map(Key::word);
        let known = format!("known keys: {}; -KEY sorts the other way round", words.join(", "));
        let hint = nearest(name, words).map_or(known, |it| format!("did you mean `{it}`?"));
        Error::usage(format!("`{name}` is no key to sort by"), hint)
    })
}

/// How two values compare. One that is missing comes last in both directions.
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

/// Capital letters are no reason for another place.
fn folded(text: &str) -> String {
    text.to_lowercase()
}

/// The place of a status among its words; one that is not known comes behind them.
fn rank<S: Status>(word: &str) -> usize {
    S::ALL.iter().position(|it| it.word() == word).unwrap_or(S::ALL.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::model::Machine;
    use crate::engine::context::Context;
    use crate::engine::list::{self, ListReport, ListRequest};

    fn context() -> Context {
        let files = [
            (
                "/plans/a/plan.md",
                "---\npriority: high\ndue: 2026-12-01\ncreated_at: 2026-11-02\n---\n# beta\n",
            ),
            ("/plans/b/plan.md", "---\nstatus: draft\n---\n# Alpha\n"),
            ("/plans/c/plan.md", "---\npriority: low\ncreated_at: 2026-11-01\n---\n# gamma\n"),
            ("/plans/c/step-2.md", "---\nstatus: completed\n---\n# X\n"),
            ("/plans/c/step-10.md", "# Y\n"),
        ];
        Context::on_model(&Machine::with(&files))
    }

    #[track_caller]
    fn check(plan: Option<&str>, sort: &str, expected: &str) {
        let sort = Sort::read(sort).unwrap();
        let request = ListRequest { plan: plan.map(str::to_owned), sort, ..ListRequest::default() };
        let found: Vec<_> = match list::list(&context(), &request).unwrap() {
            ListReport::Plans { plans, .. } => plans.into_iter().map(|it| it.id).collect(),
            ListReport::Steps { steps, .. } => steps.into_iter().map(|it| it.id).collect(),
        };
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn keys_decide_one_after_the_other_and_what_is_missing_comes_last() {
        check(None, "", "a b c");
        check(None, "-id", "c b a");
        check(None, "title", "b a c");
        check(None, "-priority", "a b c");
        check(None, "created", "c a b");
        check(None, "-due", "a b c");
        check(None, "-created", "a c b");
        check(None, "status, -id", "b c a");
        check(Some("c"), "id", "c:2 c:10");
        check(Some("c"), "-id", "c:10 c:2");
        check(Some("c"), "status", "c:10 c:2");
    }

    #[test]
    fn an_unknown_key_names_the_known_ones() {
        let error = |text| Sort::read(text).unwrap_err().hint().unwrap_or_default();
        assert_eq!(error("titel"), "did you mean `title`?");
        assert!(error("xyzzy").starts_with("known keys: id, title"), "{}", error("xyzzy"));
    }

    proptest! {
        #[test]
        fn sorting_is_stable_and_the_other_way_round_is_the_other_way_round(
            priorities in proptest::collection::vec(0..4_usize, 1..12),
        ) {
            let words = ["low", "medium", "high", "critical"];
            let files: Vec<_> = (0..).zip(&priorities).map(|(at, it): (usize, _)| {
                (format!("/plans/p{at:02}/plan.md"), format!("---\npriority: {}\n---\n# P\n", words[*it]))
            }).collect();
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let context = Context::on_model(&Machine::with(&files));
            for (text, is_descending) in [("priority", false), ("-priority", true)] {
                let request = ListRequest { sort: Sort::read(text).unwrap(), ..ListRequest::default() };
                let Ok(ListReport::Plans { plans, .. }) = list::list(&context, &request) else { panic!() };
                for pair in plans.windows(2) {
                    let order = if is_descending { pair[1].priority.cmp(&pair[0].priority) } else { pair[0].priority.cmp(&pair[1].priority) };
                    prop_assert!(order.is_lt() || (order.is_eq() && pair[0].id < pair[1].id));
                }
            }
        }
    }
}
