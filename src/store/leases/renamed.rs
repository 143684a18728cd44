//! Plans that were renamed in one working tree, while other working trees may still have them under the old name.
//!
//! The file `renamed` lists the renamings. A claim is recorded under all names of its step's plan, in the same way as a
//! claim on a step that got another number (`former`). The claim therefore holds in every working tree.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::former::{Same, Was};
use super::locked::{Locked, bytes_of, if_recorded};
use super::log::Closed;
use super::{Leases, Move, Record};
use crate::api::context::Context;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};

const RENAMED: &str = "renamed";

/// At most this many renamings are kept; older ones are assumed to be merged everywhere.
const MOST: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Renamed {
    /// The path of the plans directory, relative to its working tree.
    plans: String,
    from: String,
    to: String,
    moved_in: PathBuf,
}

/// Another id of a step, and the working tree where its plan was renamed.
struct OtherId {
    step: StepId,
    moved_in: PathBuf,
}

impl Locked<'_> {
    fn renamings(&self) -> Vec<Renamed> {
        let bytes = self.records.as_ref().and_then(|it| it.records().get(RENAMED));
        bytes.and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default()
    }

    fn renamed(&self, from: &PlanId, to: &PlanId) {
        let Some(records) = &self.records else { return };
        let Leases { plans, root, .. } = &self.leases;
        let new = Renamed {
            plans: plans.clone(),
            from: from.to_string(),
            to: to.to_string(),
            moved_in: root.clone(),
        };
        let mut all: Vec<_> = self.renamings().into_iter().filter(|it| *it != new).collect();
        all.push(new);
        all.drain(..all.len().saturating_sub(MOST));
        records.put(RENAMED, &bytes_of(&all)).ok();
    }

    /// The ids of the step under the other names of its plan.
    fn other_ids(&self, step: &StepId) -> Vec<OtherId> {
        let plans = &self.leases.plans;
        let all: Vec<_> = self.renamings().into_iter().filter(|it| it.plans == *plans).collect();
        let (mut names, mut others) = (vec![step.plan.to_string()], Vec::new());
        let mut nth = 0;
        while let Some(name) = names.get(nth).cloned() {
            nth += 1;
            for it in &all {
                let other = if it.from == name { &it.to } else { &it.from };
                if (it.from == name || it.to == name) && !names.contains(other) {
                    names.push(other.clone());
                    let step = StepId { plan: PlanId::new(other), number: step.number.clone() };
                    others.push(OtherId { step, moved_in: it.moved_in.clone() });
                }
            }
        }
        others
    }

    /// Records a new claim under the other names of its step's plan.
    pub(super) fn hold_under_other_names(&self, key: &str, id: &StepId) {
        let others = self.other_ids(id);
        let Some((records, record)) = self.records.as_ref().zip(self.get(key)) else { return };
        let title = others.first().and_then(|_| self.title_of(id));
        let Some(title) = title else { return };
        let mut was = record.was.clone();
        for OtherId { step, moved_in } in
            others.into_iter().filter(|it| !record.was.contains(&it.step.to_string()))
        {
            let (file, same) = (file_of(&record.file, id, &step), Same { title: title.clone(), moved_in });
            let (step, claim, to) = (step.to_string(), record.claim.clone(), record.step.clone());
            was.push(step.clone());
            self.remember(Was { step, file, claim, to, same, record: None }).ok();
        }
        records.put(key, &bytes_of(&Record { was, ..record })).ok();
    }

    /// The log lines that record the end of work on a step under the other names of its plan.
    pub(super) fn closed_under_other_names(&self, step: &Step, closed: &Closed) -> Vec<Closed> {
        let line = |OtherId { step: other, moved_in }: OtherId| Closed {
            key: self.leases.key(&other),
            step: other.to_string(),
            file: Some(file_of(&step.path, &step.id, &other)),
            same: Some(Same { title: step.title.clone(), moved_in }),
            also: vec![closed.key.clone()],
            ..closed.clone()
        };
        self.other_ids(&step.id).into_iter().map(line).collect()
    }

    fn title_of(&self, id: &StepId) -> Option<String> {
        Some(self.plan_of(id)?.find(id)?.title.clone())
    }
}

fn file_of(file: &str, id: &StepId, other: &StepId) -> String {
    file.strip_prefix(id.plan.as_str()).map_or_else(String::new, |it| format!("{}{it}", other.plan))
}

/// Moves the records of a plan's steps to the plan's new name, and records the renaming.
pub(crate) fn renamed(context: &Context, plan: &Plan, to: &PlanId) {
    let moves = plan.steps.iter().map(|step| {
        let id = StepId { plan: to.clone(), number: step.id.number.clone() };
        let file = file_of(&step.path, &step.id, &id);
        Move { plan, step, to: id, file }
    });
    let moves: Vec<_> = moves.collect();
    let is_known = |it: &Leases<'_>| moves.iter().any(|moved| it.has_anything(&moved.step.id));
    if_recorded(
        &Leases::of(context),
        |it| it.has_other_trees() || is_known(it),
        |it| {
            it.moved(&moves);
            it.renamed(&plan.id, to);
        },
    );
}
