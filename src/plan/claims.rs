//! What the claim records on this machine add to the plan files: which claims hold a step, and which have lapsed.
//!
//! `src/store` collects the records, and decides at that moment which recorded claims have lapsed.

use std::collections::HashMap;

use crate::plan::id::StepId;
use crate::plan::model::{Step, StepRun};
use crate::plan::time::Time;
use crate::plan::words::StepStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// The claim's process has ended, or the command that made the claim was interrupted.
    Interrupted,
    /// The claim's lease is over.
    Expired,
}

impl Lapse {
    /// The outcome of the attempt that a take-over records.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Expired => "expired",
        }
    }
}

/// Where a claim was made, and whether its work has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    Here,
    Elsewhere {
        worktree: String,
        /// The directory no longer exists.
        is_gone: bool,
    },
    /// Its step was closed on a branch that still exists.
    Closed {
        branch: Option<String>,
        /// The step was closed in this working tree, on the branch that is checked out. Its file was changed back a moment
        /// ago.
        is_here: bool,
    },
    /// Another machine has the step, according to the registry of shared claims.
    Remote {
        host: String,
        branch: Option<String>,
    },
    /// Another machine has ended its work on the step, and the result is not on the shared branch yet.
    EndedRemote {
        host: String,
        branch: Option<String>,
        /// `completed`, `failed`, `blocked` or `skipped`.
        status: &'static str,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldClaim {
    pub claim: String,
    pub by: Option<String>,
    pub at: Option<Time>,
    pub lapse: Option<Lapse>,
    pub holding: Holding,
    /// When the lease is over; `None`: the claim ends with its process instead, its step was closed, or its record cannot be
    /// read.
    pub until: Option<Time>,
    /// The log of the run that made the claim; `None` if no run did.
    pub log: Option<String>,
}

impl HeldClaim {
    /// If the work under this claim has ended, but the file here does not show that: says how, as in `was closed on other,
    /// which is not merged here`.
    pub fn unmerged_end(&self) -> Option<String> {
        match &self.holding {
            Holding::Closed { is_here: true, .. } => Some(
                "was closed on this branch, and its file was changed back less than a minute ago".to_owned(),
            ),
            Holding::Closed { branch, is_here: false } => {
                let branch =
                    branch.as_deref().map_or("another branch", |it| it.trim_start_matches("refs/heads/"));
                Some(format!("was closed on {branch}, which is not merged here"))
            }
            Holding::EndedRemote { host, branch, status } => {
                let by = self.by.as_deref().unwrap_or("another worker");
                let branch = branch.as_deref().map(|it| format!(" (branch {it})")).unwrap_or_default();
                Some(format!("was {status} by {by} on {host}{branch}, and this work is not merged here"))
            }
            Holding::Here | Holding::Elsewhere { .. } | Holding::Remote { .. } => None,
        }
    }
}

/// A claim that is in force on a step, whether the step's file shows it or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    pub claim: String,
    pub by: Option<String>,
    /// `None`: the claim holds while its process runs, or its end is unknown.
    pub until: Option<Time>,
    /// The other working tree where it was made; `None`: it was made in this one, or on another machine.
    pub worktree: Option<String>,
    /// The other machine where it was made; `None`: this one.
    pub host: Option<String>,
}

impl InForce {
    /// A recorded claim; `None` if its step was closed on another branch or its work ended on another machine.
    pub fn of(held: &HeldClaim) -> Option<Self> {
        let worktree = match &held.holding {
            Holding::Here => None,
            Holding::Elsewhere { worktree, .. } => Some(worktree.clone()),
            Holding::Remote { .. } => None,
            Holding::Closed { .. } | Holding::EndedRemote { .. } => return None,
        };
        let host = match &held.holding {
            Holding::Remote { host, .. } => Some(host.clone()),
            _ => None,
        };
        Some(Self { claim: held.claim.clone(), by: held.by.clone(), until: held.until, worktree, host })
    }
}

/// All claims that are recorded on this machine, by the step that they are for.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    held: HashMap<StepId, Vec<HeldClaim>>,
    /// The ids of claims that ended.
    ended: HashMap<StepId, Vec<String>>,
    /// The maximum number of workers' tries per step; `None`: the caller does not need it.
    limit: Option<usize>,
}

impl Claims {
    pub fn add(&mut self, step: StepId, held: HeldClaim) {
        self.held.entry(step).or_default().push(held);
    }

    /// Remembers that a claim on the step has ended.
    pub fn add_ended(&mut self, step: StepId, claim: String) {
        self.ended.entry(step).or_default().push(claim);
    }

    /// Returns whether this machine knows that the claim was on the step and has ended.
    pub fn has_ended(&self, step: &Step, claim: &str) -> bool {
        self.ended.get(&step.id).is_some_and(|it| it.iter().any(|it| it == claim))
    }

    /// Returns whether a claim other than this one is in force on the step.
    pub fn is_held_by_another(&self, step: &StepId, claim: &str) -> bool {
        self.of(step).iter().any(|it| is_live(it) && it.lapse.is_none() && it.claim != claim)
    }

    /// Returns whether the claim in the step's file is void: another claim has taken the step over, or this machine has
    /// recorded that the claim ended. A checkout or an undo can restore such a claim.
    pub fn is_void(&self, step: &Step) -> bool {
        let is_ended = |claim: &str| {
            self.has_ended(step, claim)
                && !self.of(&step.id).iter().any(|it| is_live(it) && it.claim == claim)
        };
        self.overtaken_by(step).is_some() || step.claim_in_force().is_some_and(|it| is_ended(&it.id))
    }

    /// Returns whether a claim is or was on the step, according to the step's file and this machine's records.
    pub fn is_known(&self, step: &Step, claim: &str) -> bool {
        let late = format!("late result of the claim {claim}: ");
        step.names_claim(claim)
            || self.of(&step.id).iter().any(|it| it.claim == claim)
            || self.has_ended(step, claim)
            || step.notes.iter().any(|it| it.text.starts_with(&late))
    }

    /// Sets the number of tries that [`Self::is_given_up`] compares with.
    pub fn set_limit(&mut self, tries: usize) {
        self.limit = Some(tries);
    }

    /// Returns whether taking over the step would set it to failed: its claim has lapsed, and the work under this claim was
    /// the last try within the limit.
    pub fn is_given_up(&self, step: &Step, now: Time) -> bool {
        self.limit.is_some_and(|it| step.tries() + 1 >= it) && self.lapse(step, now).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.ended.is_empty() && self.limit.is_none()
    }

    pub fn has_record(&self, step: &StepId) -> bool {
        !self.of(step).is_empty()
    }

    fn of(&self, step: &StepId) -> &[HeldClaim] {
        self.held.get(step).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns why the claim in the step's file can be taken over. `None`: the claim is in force, the file contains no
    /// claim, or the step is not in progress.
    ///
    /// If this machine has no record of the claim, or only a record that its work has ended, the claim lapses by its own
    /// time stamp. It lapses earlier if it becomes void ([`Self::is_void`]).
    pub fn lapse(&self, step: &Step, now: Time) -> Option<Lapse> {
        let claim = step.claim.as_ref().filter(|_| step.status.is(StepStatus::InProgress))?;
        match self.of(&step.id).iter().find(|it| is_live(it) && it.claim == claim.id) {
            Some(record) => record.lapse,
            None if self.is_void(step) => Some(Lapse::Expired),
            None => claim.is_lapsed(now).then_some(Lapse::Expired),
        }
    }

    /// Returns the claim that took the step over from the claim in the step's file. The returned claim was made later, in
    /// another working tree, on another branch or on another machine.
    pub fn overtaken_by(&self, step: &Step) -> Option<&HeldClaim> {
        let claim = step.claim.as_ref().filter(|_| step.status.is(StepStatus::InProgress))?;
        let records = self.of(&step.id);
        if records.iter().any(|it| is_live(it) && it.claim == claim.id) {
            return None;
        }
        // Times of different machines are not compared: a claim of the registry counts as later.
        let is_remote =
            |it: &HeldClaim| matches!(it.holding, Holding::Remote { .. } | Holding::EndedRemote { .. });
        let is_later = |it: &&HeldClaim| it.claim != claim.id && (is_remote(it) || it.at >= claim.at);
        records.iter().filter(|it| it.holding != Holding::Here).find(is_later)
    }

    /// Returns the claim that holds a step although the step's file does not contain the claim.
    ///
    /// If the step is closed in its own file, every claim on it has ended.
    pub fn holder(&self, step: &Step) -> Option<&HeldClaim> {
        if step.is_closed() {
            return None;
        }
        let own = step.claim.as_ref().filter(|_| step.standing().is(StepStatus::InProgress));
        let is_own = |it: &HeldClaim| own.is_some_and(|own| own.id == it.claim);
        self.of(&step.id).iter().find(|it| it.lapse.is_none() && !is_own(it))
    }

    /// Returns the claim that is in force on a step, from its file or from a record, and until when it holds.
    pub fn in_force(&self, step: &Step, now: Time) -> Option<InForce> {
        let own = step.claim_in_force().filter(|_| !self.is_void(step));
        if let Some(claim) = own.filter(|_| self.lapse(step, now).is_none()) {
            let record = self.of(&step.id).iter().find(|it| is_live(it) && it.claim == claim.id);
            let until = record.map_or_else(|| claim.lapses_at(), |it| it.until);
            return Some(InForce {
                claim: claim.id.clone(),
                by: claim.by.clone(),
                until,
                worktree: None,
                host: None,
            });
        }
        self.holder(step).and_then(InForce::of)
    }

    /// Returns the claim that holds the step, if it was made in a working tree that has been removed since. Such a claim
    /// holds only until its lease is over.
    pub fn left_behind(&self, step: &Step) -> Option<&HeldClaim> {
        self.holder(step).filter(|it| matches!(it.holding, Holding::Elsewhere { is_gone: true, .. }))
    }

    /// Returns the run that made the claim in the step's file, if it is recorded.
    pub fn run(&self, step: &Step) -> Option<StepRun> {
        let claim = step.claim.as_ref()?;
        let record = self.of(&step.id).iter().find(|it| is_live(it) && it.claim == claim.id)?;
        Some(StepRun { log: record.log.clone()?, is_live: record.lapse.is_none() })
    }

    /// Returns this working tree's claim on a step, if the step's file has lost the claim through a checkout, an undo or a
    /// manual edit.
    pub fn taken_back(&self, step: &Step) -> Option<&HeldClaim> {
        self.holder(step).filter(|it| it.holding == Holding::Here)
    }
}

fn is_live(held: &HeldClaim) -> bool {
    !matches!(held.holding, Holding::Closed { .. } | Holding::EndedRemote { .. })
}
