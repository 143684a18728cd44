//! Reads the shared branch: which ended records are no longer needed, and which steps are closed there.
//!
//! A record of ended work is needed until the work has arrived on the branch: until a file of the plans
//! directory there contains an attempt of the record's claim. Commits are not compared, because a squash
//! merge or a cherry-pick makes new ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::Sync;
use super::seen::Seen;
use super::state::OwnRecord;
use crate::api::error::Error;
use crate::disk;
use crate::git::{CatFile, Found, Git, Oid, RemoteError, read_changes};
use crate::plan::file_name::{FileName, classify, step_file};
use crate::plan::id::{PlanId, StepId};
use crate::plan::merge;
use crate::plan::model::Step;
use crate::plan::read::{self, Content};
use crate::plan::time::Time;
use crate::store::registry::git_refs::LOCAL_BRANCH;
use crate::store::registry::record::{Record, State};
use crate::store::registry::{Change, Name};

/// The number of plans that one git process lists. For more plans, it lists the whole plans directory, because the length of
/// a command line is limited.
const MOST_PLANS: usize = 1000;

/// A change of a step's file on the branch.
struct BranchChange {
    /// The text at the merge base; `None` if the file is new.
    before: Option<Oid>,
    /// The text on the branch; null if the file was removed.
    now: Oid,
}

impl Sync<'_> {
    /// Returns the changes that delete records that are no longer needed:
    /// - ended records whose work is on the branch;
    /// - records of a moved step under its earlier id, if the step has another id on the branch;
    /// - lapsed records whose step is closed on the branch, and was not reopened in the files here.
    ///
    /// A lapse is no reason to delete a record of this clone: without the record, the end of its work would not be fenced.
    pub(crate) fn superfluous(&self, seen: &Seen) -> Result<Vec<Change>, Error> {
        let of_interest = |name: &Name| name.is_in(self.state.dir());
        let all = seen.records.iter().filter(|(name, _)| of_interest(name));
        let records: Vec<_> = all.filter_map(|(name, it)| Some((name, it, it.record.as_ref()?))).collect();
        let ended: Vec<_> = records.iter().filter(|it| it.2.state.has_ended()).collect();
        let is_former = |it: &Record| it.moved_to.is_some() && !it.state.has_ended();
        let former: Vec<_> = records.iter().filter(|it| is_former(it.2)).collect();
        let is_own = |name: &Name, it: &Record| self.state.own_of(name).is_some_and(|own| own.claim == it.id);
        let lapsed = records.iter().filter(|it| it.1.has_lapsed && !is_own(it.0, it.2));
        let lapsed: Vec<_> = lapsed.filter(|it| !is_former(it.2)).collect();
        if ended.is_empty() && former.is_empty() && lapsed.is_empty() {
            return Ok(Vec::new());
        }
        let Some((git, tip)) = self.branch()? else { return Ok(Vec::new()) };
        let claims: Vec<_> = ended.iter().chain(&former).map(|it| it.2).collect();
        let shown = self.shown_on(git, &tip, &claims)?;
        let steps: Vec<_> = lapsed.iter().filter_map(|it| it.2.step_id()).collect();
        let closed = self.closed_on(git, &tip, &steps, is_reopened)?;
        let is_superfluous = |name: &Name, it: &Record| match it.state.has_ended() || is_former(it) {
            true => shown.contains(name),
            false => it.step_id().is_some_and(|it| closed.contains(&it)),
        };
        let chosen = ended.into_iter().chain(former).chain(lapsed).filter(|it| is_superfluous(it.0, it.2));
        Ok(chosen.map(|it| Change::Delete { name: it.0.clone(), old: it.1.revision.clone() }).collect())
    }

    /// Whether the branch contains the end of this record's work, or the move of its step.
    pub(crate) fn is_merged(&self, record: &Record) -> Result<bool, Error> {
        match self.branch()? {
            Some((git, tip)) => Ok(!self.shown_on(git, &tip, &[record])?.is_empty()),
            None => Ok(false),
        }
    }

    /// Whether this is the record of a moved step under an earlier id, and the branch contains the move.
    pub(crate) fn is_moved_on_branch(&self, own: &OwnRecord) -> Result<bool, Error> {
        let record = own.record().filter(|it| it.moved_to.is_some() && !it.state.has_ended());
        record.map_or(Ok(false), |it| self.is_merged(&it))
    }

    /// If a claim is to be stored although the registry has no record of its step, checks whether another claim has ended
    /// the step. The record of that claim was removed when the branch contained its work, so only the branch shows the end.
    /// Returns who ended the step. A record can also be missing because `push --mirror` deleted it. A claim that was made just
    /// now is not checked: its caller has compared the step with the branch already.
    pub(super) fn ended_by_another(&self, own: &OwnRecord, change: &Change) -> Result<Option<String>, Error> {
        let is_known = own.confirmed.is_some() || own.is_offline;
        if !is_known || !matches!(change, Change::Create { .. }) {
            return Ok(None);
        }
        let Some((git, tip)) = self.branch()? else { return Ok(None) };
        let id = own.under.as_ref().unwrap_or(&own.step);
        let text = self.fetched_files_in(git, &tip, std::slice::from_ref(id))?.pop().flatten();
        let there = text.map(|it| self.step(id, &path_of(id), it));
        let has_ended = |it: &Step| it.status.known().and_then(State::of).is_some();
        let there = there.filter(|it| has_ended(it) && !it.has_attempt_of(&own.claim));
        let Some((there, here)) = there.zip(self.step_of(own)?) else { return Ok(None) };
        // If all attempts are known here, the step was reopened before it was claimed.
        let news = there.attempts.iter().rev().find(|it| !here.attempts.contains(it));
        let news = news.filter(|_| may_be_same(&there, &here));
        let branch = self.config.branch.as_deref().unwrap_or_default();
        Ok(news.map(|it| format!("{} (merged into {branch})", it.by.as_deref().unwrap_or("another worker"))))
    }

    /// The step of a record, in the working tree in which it was claimed or ended.
    fn step_of(&self, own: &OwnRecord) -> Result<Option<Step>, Error> {
        let path = path_of(&own.step);
        let there = own.tree.as_ref().filter(|it| **it != self.state.worktree.root).and_then(|tree| {
            let file = tree.join(self.state.dir()).join(&path);
            disk::read_file(self.context.plans.disk(), &file).ok()
        });
        match there {
            Some(bytes) => Ok(Some(self.step(&own.step, &path, bytes))),
            None => self.step_here(&own.step),
        }
    }

    /// Returns those of `steps` that are closed on the branch, but neither closed nor reopened in the files here. Also
    /// returns those that were moved or removed on the branch.
    pub(crate) fn closed_elsewhere(&self, steps: &[StepId]) -> Result<HashSet<StepId>, Error> {
        match self.branch()? {
            Some((git, tip)) if !steps.is_empty() => {
                let mut found = self.closed_on(git, &tip, steps, is_settled_here)?;
                let changes = self.changes_on_branch(git, &tip)?;
                found.extend(self.gone_from(git, &changes, steps)?);
                found.extend(self.closed_before_move(git, &tip, &changes, steps)?);
                Ok(found)
            }
            _ => Ok(HashSet::new()),
        }
    }

    /// The last commit of the fetched branch; `None` if the branch was not fetched.
    fn branch(&self) -> Result<Option<(&Git, Oid)>, Error> {
        let Some(((git, _), branch)) = self.remote.as_ref().zip(self.config.branch.as_ref()) else {
            return Ok(None);
        };
        Ok(git.find_revision(&format!("{LOCAL_BRANCH}{branch}"))?.map(|tip| (git, tip)))
    }

    /// The names of the ended records whose claim has an attempt on the branch, and of the other records whose step has
    /// another id on the branch.
    fn shown_on(&self, git: &Git, tip: &Oid, records: &[&Record]) -> Result<HashSet<Name>, Error> {
        let mut shown = HashSet::new();
        if records.is_empty() {
            return Ok(shown);
        }
        let mut call = git.call(&["grep", "-l", "-z", "-F"]);
        for record in records {
            call = call.arg("-e").arg(&record.id);
        }
        let dir = self.state.dir();
        let within: Vec<_> = Some(dir).filter(|it| !it.is_empty()).into_iter().collect();
        let found = call.oids([tip]).paths(within).output()?;
        if found.code > 1 && self.fetch_missing(git, tip)? {
            // In this partial clone, texts were missing; they have been fetched now.
            return self.shown_on(git, tip, records);
        }
        let names: Vec<_> = found.stdout.split(|it| *it == 0).filter(|it| !it.is_empty()).collect();
        for (name, bytes) in names.iter().zip(self.texts(git, &names)?) {
            let Some(bytes) = bytes else { continue };
            // `git grep` prints the commit before the path.
            let name = String::from_utf8_lossy(name);
            let path = name.split_once(':').map_or(&*name, |it| it.1);
            for record in records {
                let Some(id) = record.step_id() else { continue };
                let step = self.step(&id, path, bytes.clone());
                let is_shown = match record.state.has_ended() {
                    true => step.has_attempt_of(&record.id),
                    false => {
                        self.step_at(path.as_bytes()).as_ref() != Some(&id) && step.names_claim(&record.id)
                    }
                };
                if is_shown {
                    shown.insert(self.state.name_of(&id));
                }
            }
        }
        Ok(shown)
    }

    /// Returns the `steps` that are closed on the branch. `is_excluded` gets the branch's version of a step and the
    /// version in the files here; if it returns true, the step is left out.
    fn closed_on(
        &self,
        git: &Git,
        tip: &Oid,
        steps: &[StepId],
        is_excluded: fn(&Step, &Step) -> bool,
    ) -> Result<HashSet<StepId>, Error> {
        let texts = self.fetched_files_in(git, tip, steps)?;
        let mut closed = HashSet::new();
        for (id, bytes) in steps.iter().zip(texts) {
            let there = bytes.map(|it| self.step(id, &path_of(id), it));
            let Some(there) = there.filter(Step::is_closed) else { continue };
            if !self.step_here(id)?.is_some_and(|here| is_excluded(&there, &here)) {
                closed.insert(id.clone());
            }
        }
        Ok(closed)
    }

    /// The steps' files that the branch has changed since its merge base with `HEAD`.
    fn changes_on_branch(&self, git: &Git, tip: &Oid) -> Result<HashMap<StepId, BranchChange>, Error> {
        let mut changes: HashMap<StepId, BranchChange> = HashMap::new();
        let Some(head) = git.head_commit()? else { return Ok(changes) };
        let Some(base) = git.merge_base(&head, tip)?.filter(|it| it != tip) else { return Ok(changes) };
        if self.is_partial(git)? {
            // In a partial clone, a text may seem missing only because it was not fetched.
            self.fetch_missing(git, tip)?;
        }
        let call = git.call(&["diff-tree", "-r", "--raw", "-z", "--no-abbrev", "--no-renames"]);
        let within: Vec<_> = Some(self.state.dir()).filter(|it| !it.is_empty()).into_iter().collect();
        for it in read_changes(&call.oids([&base, tip]).paths(within).run()?)? {
            let Some(id) = self.step_at(&it.path) else { continue };
            // A file that was only renamed, for example from `step-03.md` to `step-3.md`, has two entries.
            let change =
                changes.entry(id).or_insert_with(|| BranchChange { before: None, now: it.old.null() });
            if it.old_mode != 0 {
                change.before = Some(it.old);
            }
            if it.new_mode != 0 {
                change.now = it.new;
            }
        }
        Ok(changes)
    }

    /// Returns the `steps` that were moved or removed on the branch: the merge base of `HEAD` and the branch has the
    /// step's file, and on the branch the file is missing or contains another step.
    fn gone_from(
        &self,
        git: &Git,
        changes: &HashMap<StepId, BranchChange>,
        steps: &[StepId],
    ) -> Result<Vec<StepId>, Error> {
        let of_step = |id| {
            let BranchChange { before, now } = changes.get(id)?;
            Some((id, before.as_ref().filter(|it| *it != now)?.to_string(), now.to_string()))
        };
        let changed: Vec<_> = steps.iter().filter_map(of_step).collect();
        let before = self.texts(git, &changed.iter().map(|it| &it.1).collect::<Vec<_>>())?;
        let now = self.texts(git, &changed.iter().map(|it| &it.2).collect::<Vec<_>>())?;
        // A file without `id` and `created_at` is recognized by its path and title.
        let is_other = |id: &StepId, before: Vec<u8>, now: Vec<u8>| {
            let is_unlike = merge::likeness(&before, &now) == 0;
            is_unlike && !may_be_same(&self.step(id, &path_of(id), before), &self.step(id, &path_of(id), now))
        };
        let is_gone = |id: &StepId, before: Option<Vec<u8>>, now: Option<Vec<u8>>| {
            before.is_some_and(|before| now.is_none_or(|now| is_other(id, before, now)))
        };
        let texts = changed.iter().zip(before.into_iter().zip(now));
        Ok(texts
            .filter_map(|((id, ..), (before, now))| is_gone(id, before, now).then(|| (*id).clone()))
            .collect())
    }

    /// Returns the `steps` that are closed on the branch under an earlier id: they were moved here, and the branch does not
    /// have the move. Such a step is recognized by its time of creation and its title.
    fn closed_before_move(
        &self,
        git: &Git,
        tip: &Oid,
        changes: &HashMap<StepId, BranchChange>,
        steps: &[StepId],
    ) -> Result<Vec<StepId>, Error> {
        let changed: Vec<_> = changes.iter().filter(|(_, it)| it.before.is_some()).collect();
        let texts = self.texts(git, &changed.iter().map(|(_, it)| it.now.to_string()).collect::<Vec<_>>())?;
        let mut closed = HashMap::new();
        for ((id, _), text) in changed.into_iter().zip(texts) {
            let there = text.map(|it| self.step(id, &path_of(id), it)).filter(Step::is_closed);
            let Some((there, identity)) = there.and_then(|it| identity(&it).map(|of| (it, of))) else {
                continue;
            };
            // Most steps have the same id here.
            if self.step_here(id)?.and_then(|it| self::identity(&it)).as_ref() != Some(&identity) {
                closed.insert(identity, there);
            }
        }
        let mut found = Vec::new();
        for id in steps.iter().filter(|_| !closed.is_empty()) {
            let Some(here) = self.step_here(id)? else { continue };
            let Some((of, there)) = identity(&here).and_then(|it| closed.get_key_value(&it)) else {
                continue;
            };
            // The branch may have two steps that look alike. Then this one was not moved.
            let text = self.files_in(git, tip, std::slice::from_ref(id))?.pop().flatten();
            let is_there =
                text.and_then(|it| identity(&self.step(id, &path_of(id), it))).as_ref() == Some(of);
            if !is_there && !is_settled_here(there, &here) {
                found.push(id.clone());
            }
        }
        Ok(found)
    }

    /// Like [`Self::files_in`]; in a partial clone, fetches missing texts first.
    fn fetched_files_in(
        &self,
        git: &Git,
        tip: &Oid,
        steps: &[StepId],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let texts = self.files_in(git, tip, steps)?;
        if texts.iter().any(Option::is_none) && self.is_partial(git)? && self.fetch_missing(git, tip)? {
            return self.files_in(git, tip, steps);
        }
        Ok(texts)
    }

    /// The files of steps in a commit; `None` for each step without a file.
    fn files_in(&self, git: &Git, commit: &Oid, steps: &[StepId]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let dir = Path::new(self.state.dir());
        let name = |it: &StepId| format!("{commit}:{}", dir.join(path_of(it)).display());
        let mut texts = self.texts(git, &steps.iter().map(name).collect::<Vec<_>>())?;
        let missing: Vec<_> = (0..steps.len()).filter(|it| texts[*it].is_none()).collect();
        if missing.is_empty() {
            return Ok(texts);
        }
        // The file of step 3 can also be called `step-03.md`.
        let plans: BTreeSet<_> = missing.iter().map(|it| dir.join(steps[*it].plan.as_str())).collect();
        let plans = if plans.len() > MOST_PLANS { vec![dir.to_owned()] } else { plans.into_iter().collect() };
        let entries = git.tree_entries(commit, &plans)?.into_iter();
        let named: HashMap<_, _> = entries.filter_map(|it| Some((self.step_at(&it.path)?, it.oid))).collect();
        let found = missing.into_iter().filter_map(|it| Some((it, named.get(&steps[it])?.to_string())));
        let (places, oids): (Vec<_>, Vec<_>) = found.unzip();
        for (place, text) in places.into_iter().zip(self.texts(git, &oids)?) {
            texts[place] = text;
        }
        Ok(texts)
    }

    /// The step whose file has this path, which is relative to the repository.
    fn step_at(&self, path: &[u8]) -> Option<StepId> {
        let path = std::str::from_utf8(path).ok()?;
        let (plan, file) = Path::new(path).strip_prefix(self.state.dir()).ok()?.to_str()?.split_once('/')?;
        match classify(file) {
            FileName::Step(number) => Some(StepId { plan: PlanId::new(plan), number }),
            _ => None,
        }
    }

    fn step_here(&self, id: &StepId) -> Result<Option<Step>, Error> {
        let path = path_of(id);
        match self.context.plans.read(Path::new(&path)) {
            Ok(read) => Ok(Some(self.step(id, &path, read.bytes))),
            // The file has another name, or is missing.
            Err(_) => self.load(id),
        }
    }

    pub(super) fn step(&self, id: &StepId, path: &str, bytes: Vec<u8>) -> Step {
        let content = Content::new(bytes, self.context.now);
        read::read_step_alone(id, path, content, &self.context.config.words)
    }

    fn texts(&self, git: &Git, names: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut texts = Vec::new();
        if !names.is_empty() {
            CatFile::open(git)?.read_all(names, |_, found: Found| {
                texts.push(found.blob());
                Ok(())
            })?;
        }
        Ok(texts)
    }

    fn is_partial(&self, git: &Git) -> Result<bool, Error> {
        Ok(git.config("extensions.partialclone")?.is_some())
    }

    /// Fetches the files of the plans directory that a partial clone lacks, in one call; returns whether any were
    /// fetched.
    fn fetch_missing(&self, git: &Git, tip: &Oid) -> Result<bool, Error> {
        let Some((_, url)) = &self.remote else { return Ok(false) };
        let entries = git.tree_entries(tip, &[self.state.dir()])?;
        let names: Vec<_> = entries.iter().map(|it| it.oid.to_string()).collect();
        let texts = self.texts(git, &names)?;
        let missing = entries.iter().zip(texts).filter(|(_, text)| text.is_none());
        let missing: Vec<_> = missing.map(|(it, _)| it.oid.clone()).collect();
        if missing.is_empty() {
            return Ok(false);
        }
        match git.fetch_objects(url, &missing) {
            Ok(()) => Ok(true),
            Err(RemoteError::Git(error)) => Err(error.into()),
            Err(_) => Ok(false),
        }
    }
}

/// The usual path of a step's file, relative to the plans directory.
fn path_of(step: &StepId) -> String {
    format!("{}/{}", step.plan, step_file(&step.number))
}

/// Whether two texts may be versions of one step, which may have no time of creation.
fn may_be_same(one: &Step, other: &Step) -> bool {
    let is_dated = one.created_at.is_some() && other.created_at.is_some();
    one.title == other.title && (!is_dated || one.created_at == other.created_at)
}

/// Identifies a step even if it gets another number. `None` if it has no time of creation.
fn identity(step: &Step) -> Option<(Time, String)> {
    Some((step.created_at?, step.title.clone()))
}

/// Whether a step that is closed on the branch is closed here, too, or was reopened here.
fn is_settled_here(there: &Step, here: &Step) -> bool {
    here.is_closed() || is_reopened(there, here)
}

/// Whether a step that is closed on the branch was reopened here: it is open here, and has all attempts of the branch's
/// version and more.
fn is_reopened(there: &Step, here: &Step) -> bool {
    !here.is_closed()
        && here.attempts.len() > there.attempts.len()
        && there.attempts.iter().all(|it| here.attempts.contains(it))
}
