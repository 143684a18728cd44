//! Records of a claimed step under its former numbers.
//!
//! A record's name depends on its step's number. If a working tree renumbers a claimed step, other working trees still
//! have the step under its old number. Therefore a file `<key>.was` next to the records is written for the old number. This
//! file has an entry for each claim on a step that had the number. The entry says which record has the claim. In some
//! working trees another step may have the old number by now. In these trees the entry does not count.
//!
//! An entry is written before the record is written under its new name, and the entry counts only while that record has
//! the same claim. If a renumbering is killed, the claim therefore remains in force under the old number, or under both
//! numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::locked::{Ended, Locked, bytes_of, if_recorded};
use super::log::{self, Closed};
use super::{Leases, Record};
use crate::api::context::Context;
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::store::load;

/// The suffix of the files with the entries of a number.
pub(super) const FORMER: &str = ".was";

/// The name of the file with the entries of a key.
pub(super) fn former(key: &str) -> String {
    format!("{key}{FORMER}")
}

/// An entry for a number that a claimed step has or had, and that differs from the number of its record. If the step was
/// removed, the entry is for the record's own number, and contains the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Was {
    pub(super) step: String,
    /// The step's file under this number, relative to the plans directory.
    pub(super) file: String,
    pub(super) claim: String,
    /// The step whose record has the claim.
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) same: Same,
    /// The record itself, if the step was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) record: Option<Box<Record>>,
}

/// What distinguishes the claimed step from another step that later got the claimed step's old number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Same {
    pub(super) title: String,
    /// The working tree where the step or its plan was renamed, or where the step was removed.
    pub(super) moved_in: PathBuf,
}

#[derive(Debug, Clone)]
pub(crate) struct Move<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) step: &'a Step,
    pub(crate) to: StepId,
    pub(crate) file: String,
}

pub(super) struct LocatedRecord {
    pub(super) key: String,
    pub(super) record: Record,
    /// Whether the record is part of an entry, because its step was removed.
    is_gone: bool,
}

impl LocatedRecord {
    /// The record of a step under its own key.
    pub(super) fn own(key: String, record: Record) -> Self {
        Self { key, record, is_gone: false }
    }

    /// Whether this record remains when a new record is written under `key`.
    pub(super) fn remains_after_write(&self, key: &str) -> bool {
        self.is_gone || self.key != key
    }
}

impl Leases<'_> {
    /// Whether `step`, a step of this tree, is the one on which the claim was made. `same` describes the claimed step.
    ///
    /// If the claim's id is in the claim line or the attempts of `step`, the result is true. If the id is only in another
    /// step of the plan, the result is false. If it is in no step, the title decides. In the tree that renumbered the step,
    /// a different title means a different step. In other trees the title may have been edited, so a different title counts
    /// as an edit if no other step of the plan has the recorded title.
    pub(super) fn is_same(&self, plan: &Plan, step: &Step, claim: &str, same: &Same) -> bool {
        let others = || plan.steps.iter().filter(|it| it.id != step.id);
        if step.names_claim(claim) {
            return true;
        }
        if others().any(|it| it.names_claim(claim)) {
            return false;
        }
        let is_here = same.moved_in == self.root;
        step.title == same.title || !is_here && others().all(|it| it.title != same.title)
    }

    /// Reads a file of entries. For each entry that counts in these plans, returns the record of the claim, with the
    /// step's id in this tree.
    pub(super) fn held_formerly(
        &self,
        plans: &Plans,
        name: &str,
        bytes: &[u8],
        record_of: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Vec<Record> {
        let entries: Vec<Was> = serde_json::from_slice(bytes).unwrap_or_default();
        let mut held = Vec::new();
        for was in entries {
            let Some(id) = read_step_id(&was.step).filter(|it| former(&self.key(it)) == name) else {
                continue;
            };
            let plan = plans.get(&id.plan).filter(|it| !it.is_archived);
            let step = plan.and_then(|it| Some((it, it.find(&id)?)));
            if !step.is_some_and(|(plan, step)| self.is_same(plan, step, &was.claim, &was.same)) {
                continue;
            }
            let found = read_step_id(&was.to).and_then(|to| {
                let key = self.key(&to);
                let record = record_of(&key).and_then(|it| serde_json::from_slice::<Record>(&it).ok());
                record.filter(|it| it.claim == was.claim).or_else(|| {
                    let entries = record_of(&former(&key))?;
                    gone(&serde_json::from_slice::<Vec<Was>>(&entries).ok()?, &was.claim)
                })
            });
            held.extend(found.map(|it| Record { step: was.step, ..it }));
        }
        held
    }
}

fn gone(entries: &[Was], claim: &str) -> Option<Record> {
    entries.iter().find(|it| it.claim == claim)?.record.as_deref().cloned()
}

impl Locked<'_> {
    /// Finds the record of a claim on a step, under the step's own number or another one. The step's file need not contain
    /// the claim any more.
    pub(super) fn found(&self, step: &Step) -> Option<LocatedRecord> {
        self.found_in(step, None)
    }

    /// Like [`Self::found`]. `plan` is the plan that contains the step. If it is `None`, the plan is read from the files
    /// when it is needed.
    fn found_in(&self, step: &Step, plan: Option<&Plan>) -> Option<LocatedRecord> {
        let key = self.leases.key(&step.id);
        let own = self.get(&key).map(|record| LocatedRecord::own(key.clone(), record));
        let claim = step.claim.as_ref().map(|it| &it.id);
        if own.as_ref().is_some_and(|it| claim.is_some_and(|claim| *claim == it.record.claim)) {
            return own;
        }
        let entries = self.entries(&key);
        if entries.is_empty() {
            return own;
        }
        let plan = plan.cloned().or_else(|| self.plan_of(&step.id));
        let is_same = |it: &&Was| {
            claim == Some(&it.claim)
                || plan.as_ref().is_some_and(|plan| self.leases.is_same(plan, step, &it.claim, &it.same))
        };
        let mut named = entries.iter().filter(is_same).filter_map(|it| self.target(it));
        named.next().or(own)
    }

    /// Like [`Self::found`], for the step that has this id in the files now.
    pub(super) fn found_by_id(&self, id: &StepId) -> Option<LocatedRecord> {
        let key = self.leases.key(id);
        let own = || self.get(&key).map(|record| LocatedRecord::own(key.clone(), record));
        if self.entries(&key).is_empty() {
            return own();
        }
        let plan = self.plan_of(id);
        let step = plan.as_ref().and_then(|it| Some((it, it.find(id)?)));
        step.map_or_else(own, |(plan, step)| self.found_in(step, Some(plan)))
    }

    /// Reads the plan of a step from the files; `None` if it is missing or archived.
    pub(super) fn plan_of(&self, id: &StepId) -> Option<Plan> {
        load::one_plan(self.leases.context, &id.plan).ok().flatten().filter(|it| !it.is_archived)
    }

    fn entries(&self, key: &str) -> Vec<Was> {
        let bytes = self.records.as_ref().and_then(|it| it.records().get(&former(key)));
        bytes.and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default()
    }

    fn target(&self, was: &Was) -> Option<LocatedRecord> {
        let key = self.leases.key(&read_step_id(&was.to)?);
        if let Some(record) = self.get(&key).filter(|it| it.claim == was.claim) {
            return Some(LocatedRecord::own(key, record));
        }
        let record = gone(&self.entries(&key), &was.claim)?;
        Some(LocatedRecord { key, record, is_gone: true })
    }

    /// Adds an entry to the file of its number. Drops an earlier entry of the same claim, and the entries of ended claims.
    pub(super) fn remember(&self, was: Was) -> std::io::Result<()> {
        let (Some(records), Some(id)) = (&self.records, read_step_id(&was.step)) else { return Ok(()) };
        let key = self.leases.key(&id);
        let is_needed = |it: &Was| {
            let is_over =
                |it: &LocatedRecord| it.is_gone && log::is_past(self.leases.context.now, it.record.until);
            it.claim != was.claim && self.target(it).is_some_and(|it| !is_over(&it))
        };
        let mut entries: Vec<_> = self.entries(&key).into_iter().filter(is_needed).collect();
        entries.push(was);
        records.put(&former(&key), &bytes_of(&entries))
    }

    fn drop_entry(&self, key: &str, claim: &str) {
        let Some(records) = &self.records else { return };
        let mut entries = self.entries(key);
        let before = entries.len();
        entries.retain(|it| it.claim != claim);
        if entries.is_empty() && before > 0 {
            records.remove(&former(key)).ok();
        } else if entries.len() < before {
            records.put(&former(key), &bytes_of(&entries)).ok();
        }
    }

    /// The keys of the other numbers that the record's step has or had.
    fn other_keys<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = String> + 'a {
        record.was.iter().filter_map(|it| read_step_id(it)).map(|it| self.leases.key(&it))
    }

    /// Ends a claim under all numbers of its step, and removes its record.
    pub(super) fn end(&self, found: &LocatedRecord, ended: Ended) {
        self.close(&found.key, &found.record, ended);
        self.remove(found);
    }

    /// Removes a record, and its entries under other numbers.
    pub(super) fn remove(&self, found: &LocatedRecord) {
        let Some(records) = &self.records else { return };
        match found.is_gone {
            true => self.drop_entry(&found.key, &found.record.claim),
            false => drop(records.remove(&found.key)),
        }
        self.other_keys(&found.record).for_each(|it| self.drop_entry(&it, &found.record.claim));
    }

    /// The lines of the log that record the end of a claim under all numbers of its step.
    pub(super) fn closed_under_all(&self, record: &Record, closed: Closed) -> Vec<Closed> {
        let keys: Vec<_> = [closed.key.clone()].into_iter().chain(self.other_keys(record)).collect();
        let also = |own: &str| keys.iter().filter(|it| *it != own).cloned().collect::<Vec<_>>();
        let others = keys[1..].iter().filter_map(|key| {
            let was = self.entries(key).into_iter().find(|it| it.claim == record.claim)?;
            let (key, also) = (key.clone(), also(key));
            let (file, same) = (Some(was.file), Some(was.same));
            Some(Closed { key, step: was.step, file, same, also, ..closed.clone() })
        });
        let mut lines: Vec<_> = others.collect();
        lines.push(Closed { also: also(&closed.key), ..closed });
        lines
    }

    /// Copies the entries of the previous claim to the claim that took over the step.
    pub(super) fn inherit(&self, key: &str, id: &StepId, before: &Record) {
        let (Some(records), Some(record)) = (&self.records, self.get(key)) else { return };
        let numbers = before.was.iter().chain([&before.step]).filter(|it| **it != record.step);
        let numbers: BTreeSet<_> = numbers.cloned().collect();
        let mut files = BTreeMap::from([(before.step.clone(), before.file.clone())]);
        let mut same = None;
        for number in before.was.iter().filter_map(|it| read_step_id(it)) {
            let was = self.entries(&self.leases.key(&number)).into_iter();
            for was in was.filter(|it| it.claim == before.claim) {
                files.insert(was.step, was.file);
                same = Some(was.same);
            }
        }
        let Some(same) = same else { return };
        for step in &numbers {
            let file = files.get(step).cloned().unwrap_or_default();
            let (claim, to) = (record.claim.clone(), id.to_string());
            self.remember(Was { step: step.clone(), file, claim, to, same: same.clone(), record: None }).ok();
        }
        records.put(key, &bytes_of(&Record { was: numbers.into_iter().collect(), ..record })).ok();
    }

    /// Moves records to the new numbers of their steps, all at once, because two steps may swap numbers.
    pub(super) fn moved(&self, moves: &[Move<'_>]) {
        let Some(records) = &self.records else { return };
        let here = self.leases.root.clone();
        let mut new = Vec::new();
        for Move { plan, step, to, file } in moves {
            let same = Same { title: step.title.clone(), moved_in: here.clone() };
            self.log_moved(&step.id, Some((to, file)), &same);
            let Some(found) = self.found_in(step, Some(plan)).filter(|it| !it.is_gone) else { continue };
            let (from, to) = (step.id.to_string(), to.to_string());
            let mut record = found.record.clone();
            let mut was: BTreeSet<_> =
                record.was.iter().cloned().chain([from.clone(), record.step.clone()]).collect();
            // The record of another tree's claim stays under the number that the step has there.
            let is_here = record.place.worktree == here;
            if is_here {
                (record.step, record.file) = (to.clone(), file.clone());
            }
            was.insert(to.clone());
            was.remove(&record.step);
            record.was = was.into_iter().collect();
            new.push((found, record, same, (from, step.path.clone()), (to, file.clone())));
        }
        for (found, record, same, from, to) in &new {
            for number in &record.was {
                let files = [from, to, &(found.record.step.clone(), found.record.file.clone())];
                let file = files.iter().find(|it| it.0 == *number).map(|it| it.1.clone());
                let had =
                    read_step_id(number).map(|it| self.entries(&self.leases.key(&it))).unwrap_or_default();
                let had = had.into_iter().find(|it| it.claim == record.claim);
                let (file, same) = match (file, had) {
                    (_, Some(had)) => (had.file, had.same),
                    (file, None) => (file.unwrap_or_default(), same.clone()),
                };
                let (step, claim, to) = (number.clone(), record.claim.clone(), record.step.clone());
                self.remember(Was { step, file, claim, to, same, record: None }).ok();
            }
        }
        let mut written = BTreeSet::new();
        for (found, record, ..) in &new {
            let key = read_step_id(&record.step).map_or_else(|| found.key.clone(), |it| self.leases.key(&it));
            if records.put(&key, &bytes_of(record)).is_ok() {
                self.drop_entry(&key, &record.claim);
                written.insert(key);
            } else {
                // The record stays under its earlier number.
                written.insert(found.key.clone());
            }
        }
        for (found, ..) in new.iter().filter(|it| !written.contains(&it.0.key)) {
            records.remove(&found.key).ok();
        }
    }

    /// Adds `same`, which identifies the step, to the log lines of the old number. If there is a new number, copies the
    /// lines to it.
    fn log_moved(&self, from: &StepId, to: Option<(&StepId, &String)>, same: &Same) {
        let from = self.leases.key(from);
        let lines = self.lines(&from);
        let new_key = to.map(|(to, _)| self.leases.key(to));
        self.relog(&from, |it| {
            let mut also = it.also;
            also.extend(new_key.clone().filter(|new| *new != from && !also.contains(new)));
            Some(Closed { same: it.same.or_else(|| Some(same.clone())), also, ..it })
        });
        let Some((to, file)) = to else { return };
        let key = self.leases.key(to);
        let has: Vec<_> = self.lines(&key).into_iter().map(|it| it.claim).collect();
        for closed in lines.into_iter().filter(|it| !has.contains(&it.claim)) {
            let also = closed.also.iter().chain([&from]).filter(|it| **it != key).cloned().collect();
            let (step, file, same) = (to.to_string(), Some(file.clone()), Some(same.clone()));
            self.log(&Closed { key: key.clone(), step, file, same, also, ..closed });
        }
    }

    /// Called when a step is removed in this tree. A claim that was made here is moved from its record into an entry, so
    /// that it stays in force in the trees that still have the step. The record of a claim of another tree stays if that
    /// tree still exists.
    fn removed(&self, plan: &Plan, step: &Step) {
        let here = &self.leases.root;
        let same = Same { title: step.title.clone(), moved_in: here.clone() };
        self.log_moved(&step.id, None, &same);
        let found = self.found_in(step, Some(plan));
        let Some(found) = found.filter(|it| !it.is_gone && it.record.place.worktree == *here) else {
            return self.forget(&step.id);
        };
        let LocatedRecord { record, key, .. } = &found;
        let (step, file) = (record.step.clone(), record.file.clone());
        let (claim, to) = (record.claim.clone(), step.clone());
        let was = Was { step, file, claim, to, same, record: Some(Box::new(record.clone())) };
        if self.remember(was).is_ok() {
            self.records.as_ref().map(|it| it.remove(key));
        }
    }

    pub(super) fn replace(&self, found: &LocatedRecord) -> std::io::Result<()> {
        let Some(records) = &self.records else { return Ok(()) };
        if !found.is_gone {
            return records.put(&found.key, &bytes_of(&found.record));
        }
        let mut entries = self.entries(&found.key);
        for was in entries.iter_mut().filter(|it| it.claim == found.record.claim) {
            was.record = Some(Box::new(found.record.clone()));
        }
        records.put(&former(&found.key), &bytes_of(&entries))
    }

    /// Whether this tree may end the claim: the claim was made here, or its working tree or its step was removed.
    pub(super) fn is_ours(&self, found: &LocatedRecord) -> bool {
        let place = &found.record.place;
        found.is_gone || place.worktree == self.leases.root || self.leases.is_removed(place)
    }
}

pub(crate) fn moved(context: &Context, moves: &[Move<'_>]) {
    let is_recorded = |it: &Leases<'_>| moves.iter().any(|moved| it.has_anything(&moved.step.id));
    if_recorded(&Leases::of(context), is_recorded, |it| it.moved(moves));
}

/// Called after a step was removed by `remove --force`, `squash` or `replace`. The step's claim stays in force in working
/// trees that still have the step.
pub(crate) fn removed(context: &Context, plan: &Plan, step: &Step) {
    if_recorded(&Leases::of(context), |it| it.has_anything(&step.id), |it| it.removed(plan, step));
}
