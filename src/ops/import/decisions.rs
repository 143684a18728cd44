//! Prepares the files of imported decisions as `decide` would create them. The name of a file begins with the time at which
//! the decision was made or, if that is not known, with the present time.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::disk::FileOp;
use crate::ops::decide;
use crate::plan::decision::{self, NewDecision};
use crate::plan::entry;
use crate::plan::id::PlanId;
use crate::plan::import::{ImportedDecision, Unmapped, set_metadata};
use crate::store::transaction::Changed;
use crate::text::header_edit::Change;

/// The files to create, and their entries in the report.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    pub(super) changes: Vec<Changed>,
}

impl Recorded {
    pub(super) fn operations(&self) -> impl Iterator<Item = FileOp> {
        let create =
            |(path, bytes): &(PathBuf, Vec<u8>)| FileOp::Create { path: path.clone(), bytes: bytes.clone() };
        self.files.iter().map(create)
    }
}

/// Prepares the files of decisions; `plan` is the plan that they are about. A decision that cannot be written is added to
/// `unmapped`.
pub(super) fn recorded(
    context: &Context,
    plan: Option<&PlanId>,
    all: &[ImportedDecision],
    unmapped: &mut Vec<Unmapped>,
) -> Recorded {
    let mut made = Recorded::default();
    let mut taken =
        if all.is_empty() { Vec::new() } else { context.plans.names(Path::new(decision::DIRECTORY)) };
    for it in all {
        let mut left = |why| {
            let text = format!("{}\n{}\n{}", it.topic, it.text, it.reasoning.as_deref().unwrap_or_default());
            unmapped.push(Unmapped { path: it.path.clone(), line: None, why, text });
        };
        let Ok(topic) = NewDecision::check_topic(&it.topic) else {
            left("the topic of this decision is empty or too long");
            continue;
        };
        let new = NewDecision {
            topic,
            text: it.text.clone(),
            reasoning: it.reasoning.clone(),
            by: it.by.clone().unwrap_or_else(|| context.by.clone()),
            plan: plan.map(ToString::to_string),
            step: None,
            supersedes: None,
            tags: it.tags.clone(),
            metadata: None,
        };
        let mut at = it.at.unwrap_or(context.now).whole_milliseconds();
        while taken.iter().any(|it| it.starts_with(&at.stamp())) {
            at = at.next_millisecond();
        }
        let name = entry::name(at, &new.topic, decision::INSTEAD);
        let path = format!("{}/{name}.md", decision::DIRECTORY);
        let Ok((bytes, now)) = decide::written(context, &new, set_metadata_of(it), &path, at) else {
            left("this decision would be parsed differently when it is read back");
            continue;
        };
        made.changes.push(Changed::new(context, &name, (&new.topic, &path), "recorded", now));
        taken.push(name);
        made.files.push((PathBuf::from(path), bytes));
    }
    made
}

fn set_metadata_of(decision: &ImportedDecision) -> Option<Change> {
    decision.metadata.iter().next().and_then(|(from, inner)| set_metadata(from, inner.as_object()?))
}
