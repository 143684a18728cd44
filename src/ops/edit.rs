//! `edit`: finds the file that an editor opens, and the file's problems afterwards.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::problem::Problem;
use crate::store::load::{self, LoadQuery};
use crate::store::plan_file;
use crate::store::resolve::{self, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::transaction::{Mode, Transaction};
use crate::text::front_matter;

/// Returns the absolute path of a plan's or step's file. A missing file is created first.
///
/// The lock is not held while an editor runs: what it saves is a person's edit like any other.
pub fn file(context: &Context, id: &str) -> Result<PathBuf, Error> {
    let target = resolve::target(context, id)?;
    let plan = load::existing_plan(context, target.plan())?;
    let relative = match &target {
        Target::Plan(id) => {
            if plan.etag.is_none() {
                let mut writing = Transaction::begin(context, "edit", Mode::Write)?;
                plan_file::update(context, &mut writing, id, &|_, _| Ok(plan_file::PlanUpdate::default()))?;
            }
            plan.path
        }
        Target::Step(named) => {
            let step = resolve::one_step(context, &plan, named)?;
            if !step.has_file() {
                let mut writing = Transaction::begin(context, "edit", Mode::Write)?;
                step_file::update(context, &mut writing, named, &|_| Ok(StepUpdate::default()))?;
            }
            step.path.clone()
        }
    };
    Ok(context.plans.root().join(relative))
}

pub fn problems(context: &Context, id: &str) -> Result<Vec<Problem>, Error> {
    let target = resolve::target(context, id)?;
    let plans = LoadQuery::plan_and_named(target.plan()).load(context)?.plans;
    let plan = plans.get(target.plan()).ok_or_else(|| load::missing(context, target.plan()))?;
    match &target {
        Target::Plan(_) => Ok(plan.problems.clone()),
        Target::Step(named) => Ok(resolve::one_step(context, plan, named)?.problems.clone()),
    }
}

/// The bytes of a file and the ids of planwatch's changes before an editor is opened. They are used to find the changes that
/// planwatch makes while the editor is open.
pub struct Before {
    bytes: Vec<u8>,
    changes: Vec<String>,
}

impl Before {
    pub fn of(context: &Context, file: &Path) -> Self {
        let changes = context.plans.undo_list().into_iter().map(|it| it.id).collect();
        Self { bytes: read(context, file).unwrap_or_default(), changes }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The verbs that changed the file after [`Self::of`] and whose changes the editor has overwritten, oldest first.
    ///
    /// `after` is the file's current text. A change counts as overwritten if it can no longer be undone and the front matter
    /// is the same as before the editor was opened.
    pub fn overwritten(&self, context: &Context, file: &Path, after: &[u8]) -> Vec<String> {
        let header = |it: &[u8]| front_matter::split(it).yaml().map(<[u8]>::to_vec);
        if header(after) != header(&self.bytes) {
            return Vec::new();
        }
        let Ok(path) = file.strip_prefix(context.plans.root()) else { return Vec::new() };
        let list = context.plans.undo_list();
        let since = list.into_iter().filter(|it| !self.changes.contains(&it.id));
        // A change that can still be undone is still in the file.
        let lost = since.filter(|it| it.blocked.is_some() && it.paths.iter().any(|it| it == path));
        let mut verbs: Vec<_> = lost.map(|it| it.verb).collect();
        verbs.reverse();
        verbs
    }
}

/// The content of the file; none if it cannot be read.
pub fn read(context: &Context, file: &Path) -> Option<Vec<u8>> {
    let relative = file.strip_prefix(context.plans.root()).ok()?;
    context.plans.read(relative).ok().map(|it| it.bytes)
}
