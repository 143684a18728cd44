//! Reads a plan again after a few of its files changed, for example while one of them is edited.
//!
//! Files are compared by their stamps, as with the index; a file whose stamp is too young to be trusted is read. The
//! texts are parsed in [`crate::plan::reread`].

use std::collections::HashMap;

use super::scan::{reader, walk_named};
use super::{LINKED, Meaning, PlanEntry, parallel, source, take};
use crate::api::context::Context;
use crate::index::{Key, Stamp};
use crate::plan::model::Plan;
use crate::plan::read::{self, Bodies, PlanSources, Source};
use crate::plan::reread::{self, File, Files, Kept};

/// What was read of some plans, by their directories.
pub(crate) type KeptPlans = HashMap<Key, KeptPlan>;

/// What was read of a plan.
#[derive(Debug)]
pub(crate) struct KeptPlan {
    bodies: Bodies,
    /// The value of [`reader`] when the plan was read.
    reader: u64,
    files: HashMap<String, Row>,
    kept: Kept,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, Copy)]
struct Row {
    stamp: Stamp,
    /// If true, the file is read again even if its stamp is equal, because an equal stamp does not prove that the file is
    /// unchanged.
    is_in_doubt: bool,
    /// Whether the file has several hard links.
    is_linked: bool,
}

impl KeptPlan {
    /// Stores the steps of the plan again, so that the next reading can reuse them.
    pub(crate) fn take_back(&mut self, plan: Plan) {
        self.kept.take_back(plan);
    }
}

/// Reads a plan. Reuses from `earlier` what was read of files that are unchanged. None if there is no plan in the
/// directory.
pub(super) fn read_again(
    context: &Context,
    key: &Key,
    bodies: Bodies,
    earlier: Option<KeptPlan>,
) -> Option<(Plan, KeptPlan)> {
    // The time is taken before the files are listed, so that no stamp seems older than it is.
    let read_at = i64::try_from(context.plans.now_ns()).unwrap_or(i64::MAX);
    let found = walk_named(context, key).0?.into_found();
    let reader = reader(context);
    let earlier = earlier.filter(|it| it.bodies == bodies && it.reader == reader);
    let (earlier, mut rows) = earlier.map_or_else(|| (None, HashMap::new()), |it| (Some(it.kept), it.files));
    let mut names = PlanSources::default();
    let files = listed(context, &found, &rows, &mut names);
    let entries: HashMap<&str, &PlanEntry> = found.iter().map(|it| (it.path.as_str(), it)).collect();
    let mut read = |path: &str| -> Source {
        let entry = entries[path];
        let (source, hash) = source(context, entry, &mut Vec::new());
        let is_in_doubt = hash.is_empty() || entry.stamp.is_racy(read_at);
        let row = Row { stamp: entry.stamp, is_in_doubt, is_linked: hash.ends_with(LINKED) };
        rows.insert(path.to_owned(), row);
        source
    };
    let map = |steps: &[_], read: read::ReadStep<'_>| parallel::map(steps, read);
    let place = (key.name.as_str(), key.is_archived);
    let how = (&context.config.words, bodies);
    let (mut plan, kept) = reread::read_again(earlier, place, &files, &mut read, map, how);
    rows.retain(|path, _| entries.contains_key(path.as_str()));
    let is_linked = |it: &&PlanEntry| rows.get(&it.path).is_some_and(|it| it.is_linked);
    names.linked = found.iter().filter(is_linked).map(|it| it.path.clone()).collect();
    read::report_names(&mut plan, &names);
    Some((plan, KeptPlan { bodies, reader, files: rows, kept }))
}

/// The files of a plan. Entries that matter only because of their names are added to `names`.
fn listed(
    context: &Context,
    found: &[PlanEntry],
    rows: &HashMap<String, Row>,
    names: &mut PlanSources,
) -> Files {
    let mut files = Files::default();
    for it in found {
        let old = rows.get(&it.path);
        let is_same = old.is_some_and(|old| old.stamp == it.stamp && !old.is_in_doubt);
        let file = File { path: it.path.clone(), is_same };
        match &it.meaning {
            Meaning::Plan => files.plan = Some(file),
            Meaning::Step(number) => files.steps.push((number.clone(), file)),
            Meaning::NearMiss | Meaning::Nested(_) => drop(take(context, it, names)),
        }
    }
    files
}
