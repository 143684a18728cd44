//! A run with working trees: provides the tree of a step, continues what a killed run left, and reports on the trees.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::api::trust;
use crate::ops::claim::{Begun, Task};
use crate::ops::run::attempt;
use crate::ops::run::outcome::Verdict;
use crate::ops::run::settle;
use crate::ops::run::trees::{self, Ended, Gathered, KeptTree, Merged, Tree, Trees};
use crate::ops::run::{End, Event, KeptBranch, TreesReport};
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::words::StepStatus;
use crate::store::leases::Leases;
use crate::store::load::{DecisionFiles, LoadQuery};
use crate::store::transaction::once_saved;
use crate::store::{commit, verify};

use super::{Driver, Halt, Progress, is_part};

/// A step whose work could not be merged, and why.
#[derive(Debug, Clone)]
pub(super) struct Unmerged {
    pub(super) step: StepId,
    pub(super) why: String,
}

impl Driver<'_> {
    fn note(&self, text: &str) {
        self.surface.report(&Event::Note { text });
    }

    /// The working tree of a claimed step. The agent and the `verify` commands must be trusted as they are in this tree. If
    /// they are not, or if the tree cannot be provided, the step is released. `None`: the step uses the user's own working
    /// tree.
    pub(super) fn tree_for(&self, begun: &Begun) -> Result<Option<Tree>, Error> {
        let Some(trees) = &self.trees else { return Ok(None) };
        let provided = self.provide(trees, begun);
        if let Err(error) = &provided {
            self.hold_claims(begun);
            settle::give_back(&self.context_of()?, begun, self.request.by(), &error.to_string())?;
        }
        provided
    }

    fn provide(&self, trees: &Trees, begun: &Begun) -> Result<Option<Tree>, Error> {
        // The step was completed in a run that died. If that run had no worktrees, the step has no branch, and the work
        // to verify is in the user's working tree.
        if begun.task == Task::Verify && !trees.has_branch(&begun.step.id)? {
            return Ok(None);
        }
        let tree = trees.provide(&begun.step.id)?;
        let context = attempt::within(self.context_of()?, Some(&tree));
        self.agent_may_run(&context).map_err(|it| trust::refused(&it))?;
        verify::check(&context, &begun.step, &self.request.trust_hashes)?;
        Ok(Some(tree))
    }

    fn context_of(&self) -> Result<Context, Error> {
        crate::ops::run::Surface::context(self)
    }

    /// Merges the work on completed steps that a killed run left unmerged. Called before the first step is begun.
    pub(super) fn take_up(&self) -> Result<(), Error> {
        let Some(trees) = &self.trees else { return Ok(()) };
        let left = trees.left()?;
        if left.is_empty() {
            return Ok(());
        }
        let context = self.context_of()?;
        // Processes of the killed run may still work in the trees.
        self.end_orphans(&context);
        let load = || LoadQuery::plan(&self.plan).settled(DecisionFiles::Plan(&self.plan)).load(&context);
        let plans = Leases::of(&context).annotate(once_saved(&context, load)?.plans);
        let parts = plans.live().filter(|it| is_part(it, &self.plan));
        for step in parts.flat_map(|it| &it.steps).filter(|it| left.contains(&trees.branch_of(&it.id))) {
            if step.standing().is(StepStatus::Completed) && step.claim_in_force().is_none() {
                self.merge_closed(&context, trees, step)?;
            }
        }
        Ok(())
    }

    /// Merges the work of a step that is closed already. If that is impossible, the step is blocked.
    fn merge_closed(&self, context: &Context, trees: &Trees, step: &Step) -> Result<(), Error> {
        let tree = trees.provide(&step.id)?;
        match self.merged(trees, &tree, step)? {
            None => self.remove(trees, &tree, step),
            Some(why) => {
                settle::block(context, step, self.request.by(), &why)?;
                self.lock().unmerged.push(Unmerged { step: step.id.clone(), why });
            }
        }
        Ok(())
    }

    /// Commits and merges the content of a tree. If it cannot be merged, returns the reason.
    fn merged(&self, trees: &Trees, tree: &Tree, step: &Step) -> Result<Option<String>, Error> {
        match trees.gather(tree, step)? {
            Gathered::Stuck(why) => return Ok(Some(trees.why(tree, &why))),
            Gathered::Ready { left_out } => self.note_left_out(step, tree, &left_out),
        }
        Ok(match trees.merge(tree, step)? {
            Merged::Done => None,
            Merged::Conflict(paths) => Some(trees.why(tree, &trees::conflict(&paths))),
        })
    }

    pub(super) fn note_left_out(&self, step: &Step, tree: &Tree, paths: &[String]) {
        if !paths.is_empty() {
            let (id, paths, branch) = (&step.id, paths.join(", "), &tree.branch);
            self.note(&format!("`{id}`: changes of plan files in `{branch}` are left out: {paths}"));
        }
    }

    fn remove(&self, trees: &Trees, tree: &Tree, step: &Step) {
        let path = trees.shown(&tree.path);
        match trees.remove(tree) {
            Ok(true) => {}
            Ok(false) => self.note(&format!(
                "the worktree of `{}` stays at {path}, because it contains uncommitted files",
                step.id
            )),
            Err(error) => self.note(&format!("the worktree {path} could not be removed: {error}")),
        }
    }

    /// Removes, merges or keeps a tree when its attempt is over. Returns the step if its work could not be merged.
    pub(super) fn leave(
        &self,
        begun: &Begun,
        tree: &Tree,
        verdict: &Verdict,
    ) -> Result<Option<Unmerged>, Error> {
        let Some(trees) = &self.trees else { return Ok(None) };
        let step = &begun.step;
        let unmerged = |why| Unmerged { step: step.id.clone(), why };
        match verdict {
            // The tree is no longer needed: its work is merged, the step was skipped, or nothing was done in the tree.
            Verdict::Close | Verdict::AsItIs(StepStatus::Skipped) | Verdict::GiveBack(_) => {
                self.remove(trees, tree, step);
            }
            Verdict::NotMerged(why) => return Ok(Some(unmerged(why.clone()))),
            // The step was completed without the run's claim: by a person meanwhile, or with `--force`.
            Verdict::AsItIs(StepStatus::Completed) => match self.merged(trees, tree, step)? {
                None => self.remove(trees, tree, step),
                Some(why) => return Ok(Some(unmerged(why))),
            },
            _ => {}
        }
        Ok(None)
    }

    /// Ends a run with working trees: moves the user's branch forward, and reports which branches stay.
    pub(super) fn end_trees(&self) -> Option<TreesReport> {
        let trees = self.trees.as_ref()?;
        let mut report = TreesReport { branch: trees.branch().to_owned(), ..TreesReport::default() };
        let ended = trees.end();
        let mut state = self.lock();
        match ended {
            Ok(Ended::Merged) => report.is_merged = true,
            Ok(Ended::Kept(why)) => {
                report.unmerged = Some(trees.main());
                if state.error.is_some() {
                    self.note(&format!("{why}; the work is in `{}`", trees.main()));
                }
                let why = match &state.halt {
                    Some(Halt { end: End::Complete, .. }) | None => why,
                    Some(halt) => format!("{why}; {}", halt.why),
                };
                let end = match &state.halt {
                    Some(Halt { end: End::Interrupted, .. }) => End::Interrupted,
                    _ => End::Halted,
                };
                state.halt = Some(Halt { end, why, step: None });
            }
            Err(error) => super::fail(&mut state, error),
        }
        halt_unmerged(&mut state);
        let begun: Vec<_> = state.begun.iter().map(ToString::to_string).collect();
        drop(state);
        if report.is_merged && self.request.commits && !begun.is_empty() {
            self.commit_once(&begun);
        }
        let kept = trees.kept().unwrap_or_default();
        report.kept = kept.into_iter().map(|it| shown(trees, it)).collect();
        Some(report)
    }

    /// Commits the plan files of all steps of the run.
    fn commit_once(&self, names: &[String]) {
        let done = self.context_of().and_then(|it| commit::commit(&it, names, None, Mode::Write));
        match done {
            Err(error) => self.note(&format!("the plan files are not committed: {error}")),
            Ok(report) => report.left.iter().for_each(|left| {
                self.note(&format!("not committed: {}", commit::why_left(&left.path, left.why)));
            }),
        }
    }
}

/// Halts the run if a step could not be merged, unless the run has already ended for a worse reason.
fn halt_unmerged(state: &mut Progress) {
    let Some(first) = state.unmerged.first() else { return };
    let is_worse = state.halt.as_ref().is_none_or(|it| matches!(it.end, End::NothingReady | End::Complete));
    if is_worse {
        let why = format!("`{}` is not merged: {}", first.step, first.why);
        state.halt = Some(Halt { end: End::Halted, why, step: Some(first.step.clone()) });
    }
}

fn shown(trees: &Trees, kept: KeptTree) -> KeptBranch {
    KeptBranch { worktree: kept.worktree.map(|it| trees.shown(&it)), branch: kept.branch }
}
