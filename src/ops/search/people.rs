//! Finds the people who are named in steps: workers, assignees, and authors of attempts, notes and confirmations.

use std::collections::BTreeSet;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{StepShape, Views};
use crate::plan::entry::folded;
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::time::Time;
use crate::store::load::LoadQuery;

/// The maximum number of names that a query matches.
const MOST_NAMES: usize = 5;

/// The steps that name one person: first those that the person has claimed, then the others. Both groups begin with the
/// latest.
#[derive(Debug, Clone)]
pub struct Person {
    pub name: String,
    pub steps: Vec<NamedIn>,
    /// The number of steps that name the person, including those that were left out.
    pub total: usize,
}

#[derive(Debug, Clone)]
pub struct NamedIn {
    pub step: StepShape,
    /// The roles of the person in the step, for example `has claimed it`.
    pub roles: Vec<&'static str>,
    /// The latest time of a claim, attempt, note or confirmation with the name.
    pub at: Option<Time>,
}

/// All names in the steps of live plans.
pub fn names(context: &Context) -> Result<BTreeSet<String>, Error> {
    let plans = LoadQuery::all().load(context)?.plans;
    let mut names = BTreeSet::new();
    for step in plans.live().flat_map(|it| &it.steps) {
        for (name, ..) in named(&plans, step) {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// The names that match a query. In such a name, each word of the query is the beginning of a word.
pub fn meant<'a>(query: &str, names: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let wanted = words(query);
    if wanted.is_empty() || query.trim().chars().count() < 2 {
        return Vec::new();
    }
    let is_meant = |name: &&String| {
        let name = words(name);
        wanted.iter().all(|it| name.iter().any(|word| word.starts_with(it.as_str())))
    };
    let mut found: Vec<_> = names.into_iter().filter(is_meant).cloned().collect();
    // Names with exactly the words of the query come first. Among these and among the others, shorter names come first.
    found.sort_by_key(|it| (words(it) != wanted, it.len()));
    found.truncate(MOST_NAMES);
    found
}

/// The steps that name these people, at most `most` for each.
pub fn steps_of(context: &Context, names: &[String], most: usize) -> Result<Vec<Person>, Error> {
    let plans = LoadQuery::all().load(context)?.plans;
    let views = Views::of(context, &plans);
    let mut people = Vec::new();
    for name in names {
        let mut found = Vec::new();
        for plan in plans.live() {
            for step in &plan.steps {
                let own: Vec<_> = named(&plans, step).filter(|it| it.0 == name).collect();
                let at = own.iter().filter_map(|it| it.2).max();
                let mut roles: Vec<_> = own.iter().map(|it| it.1).collect();
                roles.sort_by_key(|it| ROLES.iter().position(|role| role == it));
                roles.dedup();
                if !roles.is_empty() {
                    found.push((roles, at, plan, step));
                }
            }
        }
        found.sort_by(|a, b| (a.0[0] != ROLES[0]).cmp(&(b.0[0] != ROLES[0])).then(b.1.cmp(&a.1)));
        let total = found.len();
        let shown = found.into_iter().take(most);
        let steps = shown
            .map(|(roles, at, plan, step)| NamedIn { step: views.step(plan, step), roles, at })
            .collect();
        people.push(Person { name: name.clone(), steps, total });
    }
    Ok(people)
}

/// The roles, in the order in which they are listed.
const ROLES: [&str; 6] =
    ["has claimed it", "is assigned", "completed it", "tried it", "confirmed it", "wrote a note"];

/// The names in a step, each with its role and time.
fn named<'a>(
    plans: &'a Plans,
    step: &'a Step,
) -> impl Iterator<Item = (&'a str, &'static str, Option<Time>)> {
    let claim = step.claim_in_force().and_then(|it| Some((it.by.as_deref()?, ROLES[0], it.at)));
    let held = plans.claims().holder(step).and_then(|it| Some((it.by.as_deref()?, ROLES[0], it.at)));
    let assignee = step.assignee.as_deref().map(|it| (it, ROLES[1], None));
    let attempts = step.attempts.iter().filter_map(|it| {
        let is_end = it.outcome.as_deref() == Some("completed");
        Some((it.by.as_deref()?, if is_end { ROLES[2] } else { ROLES[3] }, it.at))
    });
    let confirmed = step.confirmed.iter().filter_map(|it| Some((it.by.as_deref()?, ROLES[4], it.at)));
    let notes = step.notes.iter().filter_map(|it| Some((it.by.as_deref()?, ROLES[5], it.at)));
    claim.into_iter().chain(held).chain(assignee).chain(attempts).chain(confirmed).chain(notes)
}

fn words(text: &str) -> Vec<String> {
    folded(text)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let names = ["Ann Lee", "Joanna", "ann", "codex", "Jörg Ann"].map(str::to_owned);
        assert_eq!(meant(query, &names), expected, "{query}");
    }

    #[test]
    fn a_query_means_the_names_with_all_its_words() {
        check("ann", &["ann", "Ann Lee", "Jörg Ann"]);
        check("Lee ann", &["Ann Lee"]);
        check("cod", &["codex"]);
        check("a", &[]);
        check("", &[]);
        check("-", &[]);
        check("nobody", &[]);
    }
}
