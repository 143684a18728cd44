//! The index in a long-running process. It stays open between refreshes. The process remembers which commit of the index
//! matches the files.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::context::{Context, Reading};
use crate::api::error::Error;
use crate::index::{Generation, Index, IndexError, Key, Place};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::problem::Code;
use crate::store::load::refresh::open_index;
use crate::store::load::{Fresh, IndexCheck, LoadQuery, Refresh, Wanted};

/// The maximum number of attempts to read all plans from the index while other processes write to it.
const MOST_ATTEMPTS: usize = 4;

/// If more plans than this are refreshed at once, the parsed plans are not stored in memory.
const MOST_PARSED: usize = 256;

#[derive(Debug, Default)]
pub struct LiveIndex {
    /// Opening it takes longer than refreshing a plan, so it stays open until [`Self::close`].
    index: Option<Index>,
    verified: Option<Generation>,
    /// Whether all problems that were found since the last full refresh belong to plans.
    is_complete: bool,
    /// Live plans without bodies, as they were parsed when their rows were written.
    parsed: BTreeMap<PlanId, Plan>,
}

impl LiveIndex {
    /// The commit of the index that contains the files as they were at the last refresh. `None` if there is none, or if
    /// another process wrote to the index during that refresh.
    pub fn verified(&self) -> Option<Generation> {
        self.verified
    }

    /// Whether the verified commit contains every problem. After a problem that belongs to no plan was found, this is false
    /// until the next [full refresh](Self::refresh), even if the problem is solved earlier.
    pub fn is_complete(&self) -> bool {
        self.verified.is_some() && self.is_complete
    }

    /// Brings the index up to date with all files. Returns the plans whose rows were replaced or removed; a live and an
    /// archived plan of the same name count as one.
    ///
    /// Plans are compared by their own files. A new problem between plans, such as a dependency that no longer exists,
    /// is not a change of the plan that has the problem.
    pub fn refresh(&mut self, context: &Context) -> BTreeSet<PlanId> {
        self.forget();
        if context.reading == Reading::Files || context.plans.index_dir().is_none() {
            return BTreeSet::new();
        }
        let Fresh { changed, commit, index, problems, .. } =
            Refresh::new(Wanted::Nothing, IndexCheck::Scan).run(context);
        (self.index, self.verified, self.is_complete) = (index, commit, problems.is_empty());
        changed
    }

    /// Like [`Self::refresh`], only for the directories with these names, live and archived.
    ///
    /// If another process or thread has written to the index since the last verified commit, all files are compared. That
    /// process or thread may have read the files before the present change, and may have written old content.
    pub fn refresh_plans(&mut self, context: &Context, names: &[String]) -> BTreeSet<PlanId> {
        if self.verified.is_none() || context.plans.index_dir().is_none() {
            return self.refresh(context);
        }
        let wanted = if names.len() <= MOST_PARSED { Wanted::Changed } else { Wanted::Nothing };
        let names: BTreeSet<_> = names.iter().filter(|it| PlanId::is_plan_name(it)).collect();
        let key = |(name, is_archived): (&&String, bool)| Key { is_archived, name: (*name).clone() };
        let keys: Vec<_> = names.iter().flat_map(|it| [(it, false), (it, true)].map(key)).collect();
        let still_usable = |mut it: Index| it.ready().is_ok().then_some(it);
        let index = self.index.take().and_then(still_usable).or_else(|| open_index(context));
        let fresh = Refresh::of_plans(&keys, wanted).run_in(context, index);
        if fresh.before != self.verified || fresh.commit.is_none() {
            return &fresh.changed | &self.refresh(context);
        }
        (self.index, self.verified) = (fresh.index, fresh.commit);
        self.is_complete &= fresh.problems.is_empty();
        self.parsed.retain(|id, _| !fresh.changed.contains(id));
        // Archived plans are left out. Directories in another Unicode form are left out, too, because two of them may mean
        // the same plan.
        let is_live = |it: &Plan| it.path.split('/').next() == Some(it.id.as_str());
        let live = fresh.plans.into_iter().filter(is_live);
        self.parsed.extend(live.map(|it| (it.id.clone(), it)));
        fresh.changed
    }

    /// The paths of files with several hard links, in the live plans that [`Self::refresh_plans`] has parsed.
    pub(crate) fn hard_linked(&self) -> Vec<String> {
        let problems = self.parsed.values().flat_map(|it| &it.problems);
        problems.filter(|it| it.code == Code::HardLinked).map(|it| it.path.clone()).collect()
    }

    /// Returns a plan as it was last indexed: the parsed plan, which is removed from memory, or else the plan in the index.
    /// Returns `None` if neither is usable, and `Some(None)` if the index does not contain the plan.
    pub(crate) fn plan(&mut self, id: &PlanId) -> Option<Option<Plan>> {
        if let Some(parsed) = self.parsed.remove(id) {
            return Some(Some(parsed));
        }
        // If the user deleted the index, it must not be created again here, so it counts as unusable.
        let snapshot = self.index.as_mut().filter(|it| it.has_its_name())?.snapshot().ok()?;
        let is_verified = self.verified.is_some() && snapshot.generation().ok()? == self.verified;
        is_verified.then(|| snapshot.load_plan(id).ok()).flatten()
    }

    /// Calls `make` for every plan, live and archived, without bodies and in no particular order.
    ///
    /// Plans are loaded from the index one at a time, so that they are not all in memory. If the index cannot be read, or
    /// other processes keep writing to it, all plans are loaded at once.
    pub(crate) fn each<T>(&mut self, context: &Context, make: impl Fn(&Plan) -> T) -> Result<Vec<T>, Error> {
        for _ in 0..MOST_ATTEMPTS {
            let Some(index) = &mut self.index else { break };
            match each_in(index, self.verified, &make) {
                Ok(Some(made)) => return Ok(made),
                Ok(None) => drop(self.refresh(context)),
                // Loading all plans repairs the index.
                Err(_) => break,
            }
        }
        Ok(LoadQuery::all().load(context)?.plans.iter().map(make).collect())
    }

    /// Returns whether no other process has written to the index since the last refresh.
    pub(crate) fn is_current(&mut self, context: &Context) -> bool {
        self.verified.is_some() && self.commit(context) == self.verified
    }

    fn commit(&mut self, context: &Context) -> Option<Generation> {
        if self.index.is_none() {
            let directory = context.plans.index_dir()?;
            self.index = Index::open(Place::Directory(&directory)).ok().map(|it| it.0);
        }
        let commit =
            self.index.as_mut().and_then(|it| it.ready().and_then(|()| it.snapshot()?.generation()).ok()?);
        if commit.is_none() {
            // The index file may have been deleted.
            self.index = None;
        }
        commit
    }

    /// Closes the index, and drops the parsed plans. The verified commit remains known.
    pub(crate) fn close(&mut self) {
        self.index = None;
        self.parsed.clear();
    }

    /// Closes the index, and forgets which commit was verified.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Reads all plans. `None` if the index is no longer at `commit`: the newer commit may contain the results of an older
/// scan.
fn each_in<T>(
    index: &mut Index,
    commit: Option<Generation>,
    make: &impl Fn(&Plan) -> T,
) -> Result<Option<Vec<T>>, IndexError> {
    let snapshot = index.snapshot()?;
    if snapshot.generation()? != commit {
        return Ok(None);
    }
    let plans = snapshot.heads()?.into_iter().map(|it| snapshot.plan(&it));
    plans.map(|it| it.map(|it| make(&it))).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make plans as people do")]

    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::disk::{PlansDir, RealDisk};

    fn context(home: &Path) -> Context {
        let (root, state) = (home.join("plans"), home.join("state"));
        let plans = PlansDir::open(Arc::new(RealDisk), &root, Some(&state)).unwrap();
        Context { reading: Reading::Index, ..Context::of(plans) }
    }

    #[test]
    fn a_problem_that_belongs_to_no_plan_counts_until_the_next_full_refresh() {
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("plans/b");
        std::fs::create_dir_all(home.path().join("plans/a")).unwrap();
        std::fs::write(home.path().join("plans/a/step-1.md"), "# One\n").unwrap();
        let (context, mut index) = (context(home.path()), LiveIndex::default());
        index.refresh(&context);
        assert!(index.is_complete());
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        index.refresh_plans(&context, &["b".to_owned()]);
        assert!(index.verified().is_some() && !index.is_complete());
        std::fs::remove_file(&link).unwrap();
        index.refresh_plans(&context, &["b".to_owned()]);
        assert!(!index.is_complete(), "whether another one is left is not known");
        index.refresh(&context);
        assert!(index.is_complete());
    }

    #[test]
    fn a_parsed_plan_is_returned_once_without_its_row() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("plans");
        let write = |title: &str| std::fs::write(root.join("a/step-1.md"), format!("# {title}\n")).unwrap();
        std::fs::create_dir_all(root.join("a")).unwrap();
        write("One");
        let context = context(home.path());
        let mut index = LiveIndex::default();
        index.refresh(&context);
        let title = |index: &mut LiveIndex| {
            let plan = index.plan(&PlanId::new("a")).map(|it| it.expect("the plan is there"));
            plan.map(|it| it.steps[0].title.clone())
        };
        assert_eq!(title(&mut index).as_deref(), Some("One"), "from its row");
        write("Another");
        index.refresh_plans(&context, &["a".to_owned()]);
        std::fs::remove_file(context.plans.index_dir().unwrap().join(Index::file_name())).unwrap();
        assert_eq!(title(&mut index).as_deref(), Some("Another"), "as it was parsed");
        assert_eq!(title(&mut index), None, "neither parsed nor a row");
    }
}
