//! Reads what commits did: their blobs are read in one stream, each once, and compared while the next ones arrive.

use std::collections::HashMap;
use std::rc::Rc;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::history::{Change, FileChange, Place, Version, changes};
use crate::plan::time::Time;
use crate::store::history::repository::{Blobs, LogCommit, RawChange, Repository, unexpected};
use crate::store::history::{Commit, merges};

/// Reads commits in the order in which they are given.
pub(super) fn read(
    context: &Context,
    repository: &Repository,
    found: Vec<LogCommit>,
) -> Result<Vec<Commit>, Error> {
    let is_cut = |it: &LogCommit| repository.boundaries().contains(&it.oid);
    let found: Vec<_> = found.into_iter().filter(|it| !is_cut(it)).collect();
    let mut resolved = merges::resolutions(context, repository, &found)?;
    let mut versions = Versions::new(context, repository, found.iter().flat_map(|it| &it.files));
    let mut commits = Vec::with_capacity(found.len());
    for commit in found {
        let mut files = versions.of(&commit.files)?;
        for file in &mut files {
            repair(context, repository, &commit, file)?;
        }
        let own = if commit.parents.len() > 1 { resolved.remove(&commit.oid) } else { Some(changes(&files)) };
        commits.push(named(commit, own.unwrap_or_default()));
    }
    Ok(commits)
}

fn named(commit: LogCommit, changes: Vec<Change>) -> Commit {
    let at = Some(Time::from_nanoseconds(i128::from(commit.at) * 1_000_000_000));
    Commit { at, oid: commit.oid, author: commit.author, subject: commit.subject, changes }
}

/// A file that becomes readable again is compared with its last readable version, so that nothing is lost between.
fn repair(
    context: &Context,
    repository: &Repository,
    commit: &LogCommit,
    file: &mut FileChange,
) -> Result<(), Error> {
    let is_broken = |it: &Option<Rc<Version>>| it.as_ref().is_some_and(|it| it.unreadable().is_some());
    if !is_broken(&file.old) || file.new.is_none() || is_broken(&file.new) {
        return Ok(());
    }
    let Some(parent) = commit.parents.first() else { return Ok(()) };
    for bytes in repository.versions_before(parent, &file.path)? {
        let version = Version::read(&file.place, &file.path, bytes, &context.config.words);
        if version.unreadable().is_none() {
            file.old = Some(Rc::new(version));
            break;
        }
    }
    Ok(())
}

/// The versions of files, in the order in which changes need them.
pub(super) struct Versions<'a> {
    context: &'a Context,
    repository: &'a Repository,
    blobs: Blobs,
    /// What the next blobs are, the next one last.
    expected: Vec<Key>,
    /// How often each version is still needed, and the version once it has arrived.
    needed: HashMap<Key, (usize, Option<Rc<Version>>)>,
}

/// A blob, and the path that says how it is read.
type Key = (String, String);

impl<'a> Versions<'a> {
    pub(super) fn new<'c>(
        context: &'a Context,
        repository: &'a Repository,
        files: impl Iterator<Item = &'c RawChange>,
    ) -> Self {
        let mut needed: HashMap<Key, (usize, Option<Rc<Version>>)> = HashMap::new();
        let mut expected = Vec::new();
        for file in files.filter(|it| place(repository, it).is_some()) {
            for oid in [&file.old, &file.new].into_iter().flatten() {
                let key = (oid.clone(), file.path.clone());
                let entry = needed.entry(key.clone()).or_default();
                if entry.0 == 0 {
                    expected.push(key);
                }
                entry.0 += 1;
            }
        }
        let oids = expected.iter().map(|it| it.0.clone()).collect();
        expected.reverse();
        let blobs = repository.blobs(oids);
        Self { context, repository, blobs, expected, needed }
    }

    /// The files of one change, with both versions.
    pub(super) fn of(&mut self, files: &[RawChange]) -> Result<Vec<FileChange>, Error> {
        let mut found = Vec::new();
        for file in files {
            let Some((place, path)) = place(self.repository, file) else { continue };
            let mut version = |oid: &Option<String>| {
                let key = oid.clone().map(|it| (it, file.path.clone()));
                key.map(|it| self.version(&it, &place)).transpose()
            };
            let (old, new) = (version(&file.old)?, version(&file.new)?);
            if old.is_some() || new.is_some() {
                found.push(FileChange { path, place, old, new });
            }
        }
        Ok(found)
    }

    fn version(&mut self, key: &Key, place: &Place) -> Result<Rc<Version>, Error> {
        loop {
            if let Some((left, Some(version))) = self.needed.get_mut(key) {
                let version = Rc::clone(version);
                *left -= 1;
                if *left == 0 {
                    self.needed.remove(key);
                }
                return Ok(version);
            }
            let next = self.expected.pop().zip(self.blobs.next());
            let Some((next, bytes)) = next else {
                return Err(unexpected("its output ended early".to_owned()).into());
            };
            // The stream is in the order of need, so this is nearly always the version that is asked for.
            let path = self.repository.inside(&next.1).unwrap_or_default();
            let own = if next == *key { Some(place.clone()) } else { Place::of(&path) };
            let Some(own) = own else { continue };
            let bytes = bytes?;
            let version = Rc::new(Version::read(&own, &path, bytes, &self.context.config.words));
            if let Some(entry) = self.needed.get_mut(&next) {
                entry.1 = Some(version);
            }
        }
    }
}

/// What a file of the repository is, and its path below the plans directory.
pub(super) fn place(repository: &Repository, file: &RawChange) -> Option<(Place, String)> {
    let path = repository.inside(&file.path)?;
    Some((Place::of(&path)?, path))
}
