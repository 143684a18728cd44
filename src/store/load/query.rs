//! A query for plans: the scope, the index check, and which claims to add.

use super::plan_scope;
use super::refresh::{Fresh, IndexCheck, Refresh, Wanted};
use super::settled::{self, DecisionFiles, Files};
use super::step_scope::{self, Overlay};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::index::Generation;
use crate::plan::id::{PlanId, StepId};
use crate::plan::plans::Plans;
use crate::plan::problem::Problem;
use crate::plan::summary::PlanSummaries;
use crate::store::leases::Leases;

/// Which plans are loaded, how the index is checked, and whether claims are added.
///
/// The plans are always those that the files contain now. A narrow scope costs less and gives the same answers about
/// the plan or step that it names.
#[derive(Clone, Copy)]
pub(crate) struct LoadQuery<'a, S = Scope<'a>> {
    scope: S,
    check: IndexCheck,
    claims: ClaimView,
    settled: Option<DecisionFiles<'a>>,
}

#[derive(Clone, Copy)]
pub(crate) struct All;

#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    All,
    Plan { id: &'a PlanId, with_dependents: bool },
    PlanAndNamed(&'a PlanId),
    Step(&'a StepId, Option<Overlay<'a>>),
}

/// Which claims are added to the steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimView {
    /// Only those in the files.
    None,
    /// Also those in the claim records of this machine and of the registry.
    Recorded,
    /// Like `Recorded`, but a step whose claim is unconfirmed usually counts as free (see
    /// [`Leases::annotate_optimistically`]). The caller must check the step again under the lock.
    Optimistic,
}

pub(crate) struct Loaded<P = Plans> {
    pub(crate) plans: P,
    /// Problems that belong to no plan: broken links, unreadable directories, special files. Complete only
    /// after a [scan](LoadQuery::scan) of all plans, or if [all problems](LoadQuery::with_other_problems)
    /// were asked for.
    pub(crate) problems: Vec<Problem>,
    /// The commit of the index that contains exactly these plans, if there is one.
    pub(crate) commit: Option<Generation>,
}

impl<'a> From<All> for Scope<'a> {
    fn from(_: All) -> Self {
        Self::All
    }
}

impl LoadQuery<'_, All> {
    /// All plans, live and archived, with the recorded claims and with every problem between plans.
    pub(crate) fn all() -> Self {
        Self::new(All, ClaimView::Recorded)
    }

    /// Loads the plans without most fields of their steps; see [`PlanSummaries`].
    pub(crate) fn load_summaries(&self, context: &Context) -> Loaded<PlanSummaries> {
        let leases = self.leases(context);
        let fresh = Refresh::new(Wanted::Summaries, self.check).run(context);
        let Fresh { summaries, problems, commit, .. } = fresh;
        let plans = PlanSummaries::judged(summaries).map(|it| self.with_claims(leases.as_ref(), it));
        Loaded { plans, problems, commit }
    }
}

impl<'a> LoadQuery<'a> {
    /// A plan, and the steps that its steps wait for, directly or through others. If the plan is a program, all plans
    /// are loaded. Recorded claims are added.
    ///
    /// The plan and its steps, including problems, are the same as when all plans are loaded. Other plans may be
    /// missing, and their problems may be wrong. The plan's own texts are included, unless all plans had to be loaded.
    pub(crate) fn plan(id: &'a PlanId) -> Self {
        Self::new(Scope::Plan { id, with_dependents: false }, ClaimView::Recorded)
    }

    /// Like [`Self::plan`], and every live plan with a step that waits for a step of this plan.
    pub(crate) fn plan_and_dependents(id: &'a PlanId) -> Self {
        Self::new(Scope::Plan { id, with_dependents: true }, ClaimView::Recorded)
    }

    /// A plan with its texts, and the plans that its steps and its `program` key name; without recorded claims.
    ///
    /// Problems that only all plans together show are left out.
    pub(crate) fn plan_and_named(id: &'a PlanId) -> Self {
        Self::new(Scope::PlanAndNamed(id), ClaimView::None)
    }

    /// A step, its plan's own file, and those steps of the same plan on which the step depends, directly or through others;
    /// without recorded claims. Other plans that these steps name, and the plan's program, are loaded whole.
    ///
    /// The step, including problems, is the same as when the whole plan is loaded, with one exception: cycles that lead
    /// through other plans or through the order of a sequential plan are not found. If there is no such step, the whole plan
    /// is loaded.
    pub(crate) fn step(id: &'a StepId) -> Self {
        Self::new(Scope::Step(id, None), ClaimView::None)
    }

    /// Like [`Self::step`], with these bytes instead of those in the step's file.
    pub(crate) fn step_with(id: &'a StepId, own: Overlay<'a>) -> Self {
        Self::new(Scope::Step(id, Some(own)), ClaimView::None)
    }
}

impl<'a, S: Copy + Into<Scope<'a>>> LoadQuery<'a, S> {
    fn new(scope: S, claims: ClaimView) -> Self {
        Self { scope, check: IndexCheck::Attested, claims, settled: None }
    }

    /// For callers that load often: if only a few plans have changed, they are not written into the index.
    pub(crate) fn lazily(self) -> Self {
        Self { check: IndexCheck::Lazy, ..self }
    }

    /// Compares all files with the index, even if a daemon attests the index, so that every [problem](Loaded::problems)
    /// is found.
    pub(crate) fn scan(self) -> Self {
        Self { check: IndexCheck::Scan, ..self }
    }

    /// Finds every [problem](Loaded::problems). Compares all files with the index, unless a daemon attests that all
    /// problems are in the index.
    pub(crate) fn with_other_problems(self) -> Self {
        Self { check: IndexCheck::AttestedComplete, ..self }
    }

    /// Uses `commit`, which the daemon has already named as the current commit of the index. `None` if it named none.
    pub(crate) fn attested_by(self, commit: Option<Generation>) -> Self {
        Self { check: IndexCheck::AttestedBy(commit), ..self }
    }

    /// Leaves out the recorded claims.
    pub(crate) fn without_claims(self) -> Self {
        Self { claims: ClaimView::None, ..self }
    }

    /// Treats a step whose claim is unconfirmed as free, as [`Leases::annotate_optimistically`] does. The caller must check
    /// the step again under the lock.
    pub(crate) fn with_unfinished_claims_free(self) -> Self {
        Self { claims: ClaimView::Optimistic, ..self }
    }

    /// Makes [`Self::load`] fail while one of these files, on which a decision depends, is being saved.
    pub(crate) fn settled(self, files: DecisionFiles<'a>) -> Self {
        Self { settled: Some(files), ..self }
    }

    pub(crate) fn load(&self, context: &Context) -> Result<Loaded, Error> {
        match self.settled {
            Some(files) => {
                settled::settled(context, || self.load_now(context), |it| Files::of(&it.plans, files))
            }
            None => self.load_now(context),
        }
    }

    fn load_now(&self, context: &Context) -> Result<Loaded, Error> {
        let leases = self.leases(context);
        let plans = match self.scope.into() {
            Scope::All => {
                let fresh = Refresh::new(Wanted::Plans, self.check).run(context);
                let Fresh { plans, problems, commit, .. } = fresh;
                let plans = self.with_claims(leases.as_ref(), Plans::judged(plans));
                return Ok(Loaded { plans, problems, commit });
            }
            Scope::Plan { id, with_dependents } => plan_scope::load(context, id, with_dependents, self.check),
            Scope::PlanAndNamed(id) => step_scope::load_plan(context, id)?,
            Scope::Step(id, own) => step_scope::load(context, id, own)?,
        };
        Ok(Loaded { plans: self.with_claims(leases.as_ref(), plans), problems: Vec::new(), commit: None })
    }

    fn leases<'b>(&self, context: &'b Context) -> Option<Leases<'b>> {
        (self.claims != ClaimView::None).then(|| Leases::of(context))
    }

    fn with_claims(&self, leases: Option<&Leases<'_>>, plans: Plans) -> Plans {
        match (leases, self.claims) {
            (Some(leases), ClaimView::Recorded) => leases.annotate(plans),
            (Some(leases), ClaimView::Optimistic) => leases.annotate_optimistically(plans),
            _ => plans,
        }
    }
}
