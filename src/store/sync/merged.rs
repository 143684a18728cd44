//! Reads the shared branch: which ended records are no longer needed, and which steps are closed there.
//!
//! A record of ended work is needed until the work has arrived on the branch: until a file of the plans
//! directory there contains an attempt of the record's claim. Commits are not compared, because a squash
//! merge or a cherry-pick makes new ones.

use std::collections::HashSet;
use std::path::Path;

use super::Sync;
use super::seen::Seen;
use super::state::OwnRecord;
use crate::api::error::Error;
use crate::git::{CatFile, Found, Git, Oid, RemoteError, read_changes};
use crate::plan::id::StepId;
use crate::plan::merge;
use crate::plan::model::Step;
use crate::plan::read::{self, Content};
use crate::store::registry::git_refs::LOCAL_BRANCH;
use crate::store::registry::record::Record;
use crate::store::registry::{Change, Name};

impl Sync<'_> {
    /// Returns the changes that delete records that are no longer needed:
    /// - ended records whose work is on the branch;
    /// - records under an earlier id whose step has another id on the branch;
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

    /// Returns those of `steps` that are closed on the branch, but neither closed nor reopened in the files here. Also
    /// returns those that were moved or removed on the branch.
    pub(crate) fn closed_elsewhere(&self, steps: &[StepId]) -> Result<HashSet<StepId>, Error> {
        match self.branch()? {
            Some((git, tip)) if !steps.is_empty() => {
                let is_excluded = |there: &Step, here: &Step| here.is_closed() || is_reopened(there, here);
                let mut found = self.closed_on(git, &tip, steps, is_excluded)?;
                found.extend(self.gone_from(git, &tip, steps)?);
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
                    false => path != self.path_in_repository(&id) && step.names_claim(&record.id),
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
        let names = self.names_in(tip, steps);
        let mut texts = self.texts(git, &names)?;
        if texts.iter().any(Option::is_none) && self.is_partial(git)? && self.fetch_missing(git, tip)? {
            texts = self.texts(git, &names)?;
        }
        let mut closed = HashSet::new();
        for (id, bytes) in steps.iter().zip(texts) {
            let Some(there) = bytes.map(|it| self.step(id, &path_of(id), it)) else { continue };
            let here = self.context.plans.read(Path::new(&path_of(id))).ok();
            let here = here.map(|it| self.step(id, &path_of(id), it.bytes));
            if there.is_closed() && !here.is_some_and(|here| is_excluded(&there, &here)) {
                closed.insert(id.clone());
            }
        }
        Ok(closed)
    }

    /// Returns the `steps` that were moved or removed on the branch: the merge base of `HEAD` and the branch has the
    /// step's file, and on the branch the file is missing or contains another step.
    fn gone_from(&self, git: &Git, tip: &Oid, steps: &[StepId]) -> Result<Vec<StepId>, Error> {
        let Some(head) = git.head_commit()? else { return Ok(Vec::new()) };
        let Some(base) = git.merge_base(&head, tip)?.filter(|it| it != tip) else { return Ok(Vec::new()) };
        if self.is_partial(git)? {
            // In a partial clone, a text may seem missing only because it was not fetched.
            self.fetch_missing(git, tip)?;
        }
        let call = git.call(&["diff-tree", "-r", "--raw", "-z", "--no-abbrev", "--no-renames"]);
        let within: Vec<_> = Some(self.state.dir()).filter(|it| !it.is_empty()).into_iter().collect();
        let changes = read_changes(&call.oids([&base, tip]).paths(within).run()?)?;
        let changed: HashSet<_> = changes.into_iter().map(|it| it.path).collect();
        let is_changed = |it: &&StepId| changed.contains(self.path_in_repository(it).as_bytes());
        let steps: Vec<_> = steps.iter().filter(is_changed).cloned().collect();
        let texts = |commit| self.texts(git, &self.names_in(commit, &steps));
        let both = texts(&base)?.into_iter().zip(texts(tip)?);
        let is_gone = |(before, now): (Option<Vec<u8>>, Option<Vec<u8>>)| {
            before.is_some_and(|before| {
                now.is_none_or(|now| before != now && merge::likeness(&before, &now) == 0)
            })
        };
        Ok(steps.iter().zip(both).filter(|it| is_gone(it.1.clone())).map(|it| it.0.clone()).collect())
    }

    /// The names of the files of steps in a commit, as `COMMIT:PATH`.
    fn names_in(&self, commit: &Oid, steps: &[StepId]) -> Vec<Vec<u8>> {
        steps.iter().map(|it| format!("{commit}:{}", self.path_in_repository(it)).into_bytes()).collect()
    }

    fn path_in_repository(&self, step: &StepId) -> String {
        let dir = self.state.dir();
        if dir.is_empty() { path_of(step) } else { format!("{dir}/{}", path_of(step)) }
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

fn path_of(step: &StepId) -> String {
    format!("{}/step-{}.md", step.plan, step.number)
}

/// Whether a step that is closed on the branch was reopened here: it is open here, and has all attempts of the branch's
/// version and more.
fn is_reopened(there: &Step, here: &Step) -> bool {
    !here.is_closed()
        && here.attempts.len() > there.attempts.len()
        && there.attempts.iter().all(|it| here.attempts.contains(it))
}
