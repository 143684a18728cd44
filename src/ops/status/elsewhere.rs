//! Steps whose status on an unmerged branch differs from the files here.

use std::collections::HashMap;

use serde::Serialize;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::time::Time;
use crate::store::branches::{Elsewhere, unmerged_steps};

#[derive(Debug, Clone, Serialize)]
pub struct OnBranch {
    pub id: String,
    pub title: String,
    /// The status here.
    pub here: String,
    /// The status on the branch.
    pub there: String,
    /// The newest local branch with this version of the step's file, or else the newest remote branch with this version.
    pub branch: String,
    /// The number of other branches with the same file.
    pub more: usize,
    /// The time of the last attempt on the branch, if the attempt has a time and the files here lack the attempt. Otherwise,
    /// the time of the branch's last commit.
    pub at: Option<Time>,
    pub by: String,
}

/// Steps whose status differs, newest first.
pub(super) fn on_branches(context: &Context, plans: &Plans) -> Result<Vec<OnBranch>, Error> {
    let found = unmerged_steps(context)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let known = by_identity(plans);
    let mut said: Vec<_> = found.iter().filter_map(|it| on_branch(meant(plans, &known, it)?, it)).collect();
    said.sort_unstable_by(|a, b| b.at.cmp(&a.at).then_with(|| (&a.id, &a.branch).cmp(&(&b.id, &b.branch))));
    Ok(said)
}

/// The steps of live plans by identity. `None`: several steps have this identity.
type Known<'a> = HashMap<(Time, &'a str), Option<&'a Step>>;

fn by_identity(plans: &Plans) -> Known<'_> {
    let mut known = Known::new();
    for step in plans.live().flat_map(|it| &it.steps) {
        if let Some(identity) = step.identity() {
            known.entry(identity).and_modify(|it| *it = None).or_insert(Some(step));
        }
    }
    known
}

/// The step here that a branch has under the same or another id, or in a plan with another name.
fn meant<'a>(plans: &'a Plans, known: &Known<'a>, there: &Elsewhere) -> Option<&'a Step> {
    let named = plans.step(&there.id);
    let Some(identity) = there.step.identity() else { return named };
    if named.is_some_and(|it| it.identity().is_none_or(|it| it == identity)) {
        return named;
    }
    match known.get(&identity) {
        Some(found) => *found,
        // The branch, or someone here, changed the title.
        None => named.filter(|it| it.created_at == there.step.created_at),
    }
}

fn on_branch(here: &Step, there: &Elsewhere) -> Option<OnBranch> {
    let step = &there.step;
    if step.is_faulty() || step.status.word() == here.status.word() {
        return None;
    }
    let is_local = |it: &&crate::git::Branch| it.name.starts_with("refs/heads/");
    let branch = there.branches.iter().find(is_local).or_else(|| there.branches.first())?;
    // An attempt that the files here contain, too, does not explain the different status.
    let attempt = step.attempts.last().filter(|it| !here.attempts.contains(it));
    let tip = Time::from_nanoseconds(i128::from(branch.at) * 1_000_000_000);
    Some(OnBranch {
        id: here.id.to_string(),
        title: here.title.clone(),
        here: here.status.word().to_owned(),
        there: step.status.word().to_owned(),
        branch: branch.short().to_owned(),
        more: there.branches.len() - 1,
        at: Some(attempt.and_then(|it| it.at).unwrap_or(tip).whole_seconds()),
        by: attempt.and_then(|it| it.by.clone()).unwrap_or_else(|| branch.author.clone()),
    })
}
