//! Reads plans and steps from other branches and working trees of the repository.
//!
//! Nothing is written. A few git processes are enough for any number of branches, and equal trees and files are read
//! once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::Open;
use crate::git::{
    Branch, CatFile, Found, Git, GitError, LogQuery, LogReader, Oid, RawChange, Stream, TreeEntry,
    read_tree_object,
};
use crate::plan::file_name::{FileName, PLAN_FILE, classify};
use crate::plan::id::{PlanId, StepId};
use crate::plan::merge::{self, Identity};
use crate::plan::model::Step;
use crate::plan::read::{self, Content};
use crate::plan::step_number::{NoRoom, StepNumber};
use crate::plan::steps_list;
use crate::store::sync::foreign;
use crate::text::front_matter::MAX_FILE;

/// The step numbers that a plan does not use in this working tree, but that are used for it in another working tree, on an
/// unmerged branch or by a claim of another clone.
///
/// Empty without a repository, or if `is_wanted` is false. If git fails, the numbers of branches are missing.
pub(crate) fn numbers_elsewhere(context: &Context, plan: &PlanId, is_wanted: bool) -> BTreeSet<StepNumber> {
    let Some(worktree) = context.plans.worktree().filter(|_| is_wanted) else { return BTreeSet::new() };
    let disk = context.plans.disk();
    let inside = context.plans.path_in(&worktree);
    let directory = |root: &Path| root.join(&inside).join(plan.as_str());
    let names_in = |root: &Path| disk.names(&directory(root)).unwrap_or_default();
    let roots = context.plans.worktrees(&worktree).unwrap_or_default();
    let numbers_in = |root: &Path| {
        let files = names_in(root);
        let plan_file = disk.open(&directory(root).join(PLAN_FILE), Open::Read);
        let plan_file = plan_file.and_then(|it| it.read(MAX_FILE as u64, 0));
        let listed = plan_file.map(|it| listed(plan, &it)).unwrap_or_default();
        listed.into_iter().chain(files.iter().filter_map(|it| number(it.as_bytes()))).collect::<Vec<_>>()
    };
    // The working trees of runs are skipped, because they contain only copies of the plans.
    let others = roots.iter().filter(|it| **it != worktree.root && !context.plans.is_run_tree(it));
    let mut numbers: BTreeSet<_> = others.flat_map(|it| numbers_in(it)).collect();
    if let Ok(Some(of_branches)) = numbers_of_branches(context, plan) {
        numbers.extend(of_branches);
    }
    numbers.extend(foreign::claimed_numbers(context, plan));
    &numbers - &numbers_in(&worktree.root).into_iter().collect()
}

/// The numbers of the steps in the Steps list of a `plan.md`. Some of these steps may have no file yet.
fn listed(plan: &PlanId, file: &[u8]) -> Vec<StepNumber> {
    steps_list::blocks(plan, read::body(file)).into_iter().map(|it| it.0).collect()
}

fn number(name: &[u8]) -> Option<StepNumber> {
    match classify(std::str::from_utf8(name).ok()?) {
        FileName::Step(number) => Some(number),
        _ => None,
    }
}

fn numbers_of_branches(context: &Context, plan: &PlanId) -> Result<Option<BTreeSet<StepNumber>>, GitError> {
    let (git, head) = Git::with_head(context.plans.root())?;
    let Some(path) = git.relative(context.plans.root()) else { return Ok(None) };
    let path = path.join(plan.as_str());
    let trees = trees_at(&git, &path, &git.unmerged_branches(head.commit.as_ref())?)?;
    let trees: Vec<_> = trees.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect();
    if trees.is_empty() {
        return Ok(None);
    }
    let mut objects = CatFile::open(&git)?;
    let entries = read_trees(&mut objects, &trees)?;
    let mut numbers: BTreeSet<_> = entries.values().flatten().filter_map(|it| number(&it.path)).collect();
    let files = entries.values().flatten().filter(|it| it.path == PLAN_FILE.as_bytes());
    let files: BTreeSet<_> = files.map(|it| it.oid.as_str()).collect();
    objects.read_all(&files.into_iter().collect::<Vec<_>>(), |_, found| {
        numbers.extend(found.blob().iter().flat_map(|it| listed(plan, it)));
        Ok(())
    })?;
    Ok(Some(numbers))
}

/// The tree of a directory in each branch; `None` for branches without the directory.
fn trees_at(git: &Git, path: &Path, branches: &[Branch]) -> Result<Vec<Option<Oid>>, GitError> {
    let name = |it: &Branch| [it.tip.as_str().as_bytes(), b":", path.as_os_str().as_bytes()].concat();
    let names: Vec<_> = branches.iter().map(name).collect();
    let infos = git.object_infos(&names)?;
    Ok(infos.into_iter().map(|it| it.filter(|it| it.kind == "tree").map(|it| it.oid)).collect())
}

fn read_trees(objects: &mut CatFile, trees: &[Oid]) -> Result<HashMap<Oid, Vec<TreeEntry>>, GitError> {
    let mut read = HashMap::new();
    let names: Vec<_> = trees.iter().map(Oid::as_str).collect();
    objects.read_all(&names, |nth, found| {
        if let Found::Object(object) = found {
            let entries = read_tree_object(&object.bytes, trees[nth].as_str().len());
            read.insert(trees[nth].clone(), entries.unwrap_or_default());
        }
        Ok(())
    })?;
    Ok(read)
}

/// A step's file in a branch, written by a commit that is not merged into `HEAD`.
#[derive(Debug, Clone)]
pub(crate) struct Elsewhere {
    pub(crate) id: StepId,
    pub(crate) step: Step,
    /// All branches with this version of the file, newest first.
    pub(crate) branches: Vec<Branch>,
}

/// The versions of step files that unmerged commits wrote, and whose status differs from the status before these commits.
/// Steps that these commits created are included.
pub(crate) fn unmerged_steps(context: &Context) -> Result<Vec<Elsewhere>, Error> {
    let (git, head) = Git::with_head(context.plans.root())?;
    let Some(path) = git.relative(context.plans.root()) else { return Ok(Vec::new()) };
    let branches = git.unmerged_branches(head.commit.as_ref())?;
    if branches.is_empty() {
        return Ok(Vec::new());
    }
    let mut objects = CatFile::open(&git)?;
    let (versions, removed) = versions(&git, &mut objects, (&path, head.commit.as_ref()), &branches)?;
    let steps = read_blobs(&mut objects, versions.iter().map(|it| &it.blob))?;
    let bases = read_blobs(&mut objects, versions.iter().map(|it| &it.base))?;
    // A moved step has a new file. The version before is then among the files that the commits removed. Of several, the oldest
    // one counts, which is the last.
    let removed = read_blobs(&mut objects, removed.iter())?;
    let removed = removed.into_iter().flatten().filter_map(|it| Some((merge::identity(&it)?, it)));
    let removed: BTreeMap<Identity, Vec<u8>> = removed.collect();
    let found = versions.into_iter().zip(steps.iter().zip(&bases)).filter_map(|(version, (step, base))| {
        let step = step.as_ref()?;
        let read = |bytes: &Vec<u8>| {
            let content = Content::new(bytes.clone(), context.now);
            read::read_step_alone(&version.id, &version.path, content, &context.config.words)
        };
        let identity = merge::identity(step);
        let is_moved = base.as_ref().is_none_or(|it| merge::identity(it) != identity);
        let moved = identity.filter(|_| is_moved).and_then(|it| removed.get(&it));
        let (base, step) = (moved.or(base.as_ref()).map(read), read(step));
        let is_new = base.is_none_or(|it| it.status != step.status);
        let branches = version.in_branches.iter().map(|it| branches[*it].clone()).collect();
        is_new.then_some(Elsewhere { id: version.id, step, branches })
    });
    Ok(found.collect())
}

/// The bytes of the blobs; `None` for an object that is missing or not a blob.
fn read_blobs<'a>(
    objects: &mut CatFile,
    of: impl Iterator<Item = &'a Oid>,
) -> Result<Vec<Option<Vec<u8>>>, GitError> {
    let mut read = Vec::new();
    objects.read_all(&of.map(Oid::as_str).collect::<Vec<_>>(), |_, object| {
        read.push(object.blob());
        Ok(())
    })?;
    Ok(read)
}

struct Version {
    id: StepId,
    /// Relative to the plans directory.
    path: String,
    blob: Oid,
    /// The version before the commits that are not merged. The null id if these commits created the file.
    base: Oid,
    in_branches: Vec<usize>,
}

/// The step files that the unmerged commits of the branches wrote, each version once; and the versions of the files that
/// these commits removed, newest first, as they were before the unmerged commits.
fn versions(
    git: &Git,
    objects: &mut CatFile,
    (path, head): (&Path, Option<&Oid>),
    branches: &[Branch],
) -> Result<(Vec<Version>, Vec<Oid>), GitError> {
    // `git log` runs while the trees are read.
    let written = Written::ask(git, path, head, branches)?;
    let of_head = head.cloned().map(|tip| Branch { name: String::new(), tip, at: 0, author: String::new() });
    let all: Vec<_> = branches.iter().cloned().chain(of_head.clone()).collect();
    let mut trees = trees_at(git, path, &all)?;
    let own = of_head.and_then(|_| trees.pop()).flatten();
    let wanted =
        |of: &[Option<Oid>]| of.iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    let tops: Vec<Oid> = wanted(&[&trees[..], std::slice::from_ref(&own)].concat());
    let tops = read_trees(objects, &tops)?;
    let entries = |tree: &Oid, of: &HashMap<Oid, Vec<TreeEntry>>| of.get(tree).cloned().unwrap_or_default();
    let known: HashSet<Oid> = own.iter().flat_map(|it| entries(it, &tops)).map(|it| it.oid).collect();
    // For each tree of a plan's directory that `HEAD` does not have, the branches that have it.
    let mut plans: BTreeMap<(Vec<u8>, Oid), Vec<usize>> = BTreeMap::new();
    for (nth, tree) in trees.iter().enumerate() {
        let differing = tree.iter().flat_map(|it| entries(it, &tops)).filter(|it| it.kind == "tree");
        for plan in differing.filter(|it| !known.contains(&it.oid)) {
            plans.entry((plan.path, plan.oid)).or_default().push(nth);
        }
    }
    if plans.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let directories: BTreeSet<_> = plans.keys().map(|it| it.1.clone()).collect();
    let directories = read_trees(objects, &directories.into_iter().collect::<Vec<_>>())?;
    let (written, removed) = written.read()?;
    let mut versions: BTreeMap<(StepId, Oid), Version> = BTreeMap::new();
    for ((plan, directory), of) in plans {
        let Ok(plan) = std::str::from_utf8(&plan) else { continue };
        if !PlanId::is_plan_name(plan) {
            continue;
        }
        let files = entries(&directory, &directories).into_iter().filter(|it| written.contains_key(&it.oid));
        for file in files {
            let Some(number) = number(&file.path) else { continue };
            let id = StepId { plan: PlanId::new(plan), number };
            let path = format!("{plan}/{}", String::from_utf8_lossy(&file.path));
            let base = begun_with(&written, &file.oid);
            let new =
                || Version { id: id.clone(), path, blob: file.oid.clone(), base, in_branches: Vec::new() };
            let version = versions.entry((id.clone(), file.oid.clone())).or_insert_with(new);
            version.in_branches.extend(&of);
        }
    }
    let mut versions: Vec<_> = versions.into_values().collect();
    // The branches are sorted by time, newest first, so sorting their positions sorts them by time.
    versions.iter_mut().for_each(|it| it.in_branches.sort_unstable());
    // A file that these commits created and removed again, or renamed unchanged, has no earlier version.
    let removed = removed
        .into_iter()
        .map(|it| Some(begun_with(&written, &it)).filter(|it| !it.is_null()).unwrap_or(it));
    Ok((versions, removed.collect()))
}

/// The version of the file before the unmerged commits that led to `version`.
fn begun_with(written: &HashMap<Oid, Oid>, version: &Oid) -> Oid {
    let (mut seen, mut at) = (HashSet::new(), version);
    while let Some(before) = written.get(at).filter(|_| seen.insert(at)) {
        at = before;
    }
    at.clone()
}

/// A running `git log`. It lists the commits of the branches, without those that `HEAD` contains.
struct Written(LogReader<BufReader<Stream>>);

impl Written {
    fn ask(git: &Git, path: &Path, head: Option<&Oid>, branches: &[Branch]) -> Result<Self, GitError> {
        let of = branches.iter().map(|it| it.tip.clone()).collect();
        let not = head.into_iter().cloned().collect();
        git.log(&LogQuery { of, not, paths: vec![path.to_path_buf()], ..LogQuery::default() }).map(Self)
    }

    /// Returns, for each version of a file that these commits wrote, the version before it. A branch that is behind `HEAD`
    /// can also have older versions from `HEAD`'s history. These are not included. Also returns the versions of the step
    /// files that these commits removed, newest first.
    fn read(mut self) -> Result<(HashMap<Oid, Oid>, Vec<Oid>), GitError> {
        let (mut written, mut removed) = (HashMap::new(), Vec::new());
        for entry in self.0.by_ref() {
            let (gone, changed): (Vec<_>, Vec<_>) =
                entry?.changes.into_iter().partition(|it| it.new.is_null());
            // `git log` lists the newest commit first. If several commits wrote the same version, the entry of the oldest
            // commit remains. It contains the version before all of these commits.
            written.extend(changed.into_iter().map(|it| (it.new, it.old)));
            let is_step = |it: &RawChange| it.path.rsplit(|it| *it == b'/').next().and_then(number).is_some();
            removed.extend(gone.into_iter().filter(is_step).map(|it| it.old));
        }
        self.0.into_inner().finish()?;
        Ok((written, removed))
    }
}

/// Returns `first`, or a free number after it if `first` is used elsewhere. `next` is the number of the following step in
/// this working tree, if there is one.
pub(crate) fn free_after(
    first: Result<StepNumber, NoRoom>,
    next: Option<&StepNumber>,
    elsewhere: &BTreeSet<StepNumber>,
) -> Result<StepNumber, NoRoom> {
    let mut number = first?;
    while elsewhere.contains(&number) {
        number = match next {
            Some(next) => number.midpoint(next)?,
            None => number.plus_one()?,
        };
    }
    Ok(number)
}
