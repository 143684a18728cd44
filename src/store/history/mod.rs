//! The history of plans, from the commits of the repository around them.
//!
//! For each commit's id, the index stores what the commit did to the plans, so that the commit is read only once. The order
//! of the commits depends on the branch, so it is read from git again when `HEAD` has moved.

mod commits;
mod files;
mod merges;
mod repository;
mod versions;

use std::collections::{HashMap, HashSet};

use borsh::{BorshDeserialize, BorshSerialize};

use crate::api::context::{Context, Reading};
use crate::api::error::Error;
use crate::index::{self, Commits, Place};
use crate::plan::history::Change;
use crate::plan::time::Time;
use crate::store::load::refresh::opened;

pub(crate) use files::{Differing, Sides, between};
pub(crate) use repository::Repository;

use repository::LogCommit;

/// Increase this number when the code starts to find different changes in the same files.
const VERSION: u32 = 3;

/// What one commit did to the plans.
#[derive(Debug, Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Commit {
    pub(crate) oid: String,
    /// The author date.
    pub(crate) at: Option<Time>,
    pub(crate) author: String,
    pub(crate) subject: String,
    pub(crate) changes: Vec<Change>,
}

/// Commits that changed plans, newest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) commits: Vec<Commit>,
    /// The oldest commits of a shallow clone; what they did is not known.
    pub(crate) begins_at: Vec<String>,
}

/// The order of the commits when `HEAD` was `tip`.
#[derive(Debug, Default, BorshSerialize, BorshDeserialize)]
struct Known {
    tip: String,
    /// Newest first.
    order: Vec<String>,
}

/// Reads the history of `HEAD`, or of a range of commits such as `main..feature`. Returns the newest `most` commits that
/// changed plans. If some commits are not stored, the result can contain more.
///
/// Without a range, what is read is stored. While `HEAD` stays the same, a later call without a range starts neither
/// `git log` nor `git cat-file`, and reads only as many stored commits as it needs. With a range or in a shallow clone,
/// `git log` always runs, and nothing is stored.
pub(crate) fn history(
    context: &Context,
    repository: &Repository,
    range: Option<&str>,
    most: usize,
) -> Result<History, Error> {
    let range = range.map(|it| repository.range(it)).transpose()?;
    let Some(head) = repository.head() else { return Ok(History::default()) };
    let mut cache = open_cache(context);
    let scope = scope(context, repository);
    let stored = cache.as_ref().map(|it| (it, &scope[..]));
    let list = stored.and_then(|(cache, scope)| cache.list(scope).ok()).unwrap_or_default();
    let known = Known::try_from_slice(&list).unwrap_or_default();
    // If there is no stored list, there are no stored commits either.
    let stored = stored.filter(|_| !known.tip.is_empty());
    let mut reader = Reader { context, repository, stored, new: HashMap::new(), most };
    let begins_at = repository.boundaries().to_vec();
    if range.is_some() || !begins_at.is_empty() {
        let order = reader.walk(&range.unwrap_or_else(|| vec![head]))?;
        return Ok(History { commits: reader.commits(&order)?, begins_at });
    }
    let is_current = known.tip == head;
    let order = if is_current { known.order } else { reader.order(known, &head)? };
    let commits = reader.commits(&order)?;
    let data = reader.encoded();
    if let Some(cache) = cache.as_mut().filter(|_| !is_current || !data.is_empty()) {
        let list = borsh::to_vec(&Known { tip: head, order }).unwrap_or_default();
        // What cannot be stored is read again the next time.
        cache.write(&scope, &Commits { list, data }).ok();
    }
    Ok(History { commits, begins_at })
}

fn open_cache(context: &Context) -> Option<index::History> {
    let directory = context.plans.index_dir().filter(|_| context.reading == Reading::Index)?;
    opened(context, index::History::open(Place::Directory(&directory)))
}

/// A hash of what a commit's changes depend on, other than the commit itself.
fn scope(context: &Context, repository: &Repository) -> Vec<u8> {
    let scope = format!("{VERSION} {} {:?}", repository.prefix(), context.config.words);
    blake3::hash(scope.as_bytes()).as_bytes().to_vec()
}

struct Reader<'a> {
    context: &'a Context,
    repository: &'a Repository,
    /// The stored commits, and the scope under which they are stored.
    stored: Option<(&'a index::History, &'a [u8])>,
    new: HashMap<String, Commit>,
    /// The number of commits that are needed.
    most: usize,
}

impl Reader<'_> {
    fn stored(&self, oid: &str) -> Option<Commit> {
        let (cache, scope) = self.stored?;
        Commit::try_from_slice(&cache.commit(scope, oid.as_bytes()).ok()??).ok()
    }

    /// Reads the commits of a range that are not stored yet. Returns the ids of all commits of the range, newest first.
    fn walk(&mut self, range: &[String]) -> Result<Vec<String>, Error> {
        let mut order = Vec::new();
        let log = self.repository.log(range)?;
        self.read(log.inspect(|it| order.extend(it.as_ref().ok().map(|it| it.oid.clone()))))?;
        Ok(order)
    }

    fn read(&mut self, found: impl Iterator<Item = Result<LogCommit, Error>>) -> Result<(), Error> {
        let is_new = |it: &LogCommit| self.stored(&it.oid).is_none();
        let found = found.filter(|it| it.as_ref().map_or(true, is_new));
        for commit in commits::read(self.context, self.repository, found)? {
            self.new.insert(commit.oid.clone(), commit);
        }
        Ok(())
    }

    /// The order of the commits of `head`, based on the known order for another commit.
    fn order(&mut self, known: Known, head: &str) -> Result<Vec<String>, Error> {
        let range = [head.to_owned(), format!("^{}", known.tip)];
        // The other commit may be gone, for example after a rebase.
        let parents = if known.tip.is_empty() { None } else { self.repository.parents(&range).ok() };
        let Some(parents) = parents else { return self.walk(&range[..1]) };
        let mut order = self.walk(&range)?;
        if is_linear(&parents, &known.tip) {
            order.extend(known.order);
            return Ok(order);
        }
        // After a merge, new commits are between the known ones; after a rebase, some known ones are gone.
        let wanted: HashSet<String> = order.into_iter().chain(known.order).collect();
        let all = self.repository.parents(&[head.to_owned()])?;
        Ok(all.into_iter().map(|it| it.0).filter(|it| wanted.contains(it)).collect())
    }

    /// The newest commits in this order that changed something.
    fn commits(&mut self, order: &[String]) -> Result<Vec<Commit>, Error> {
        let mut found: HashMap<&String, Commit> = HashMap::new();
        let (mut missing, mut n_seen) = (Vec::new(), 0);
        for oid in order {
            if found.len() >= self.most {
                break;
            }
            n_seen += 1;
            let commit = self.new.get(oid).cloned().or_else(|| self.stored(oid));
            match commit {
                Some(commit) if commit.changes.is_empty() => {}
                Some(commit) => drop(found.insert(oid, commit)),
                None => missing.push(oid.clone()),
            }
        }
        if !missing.is_empty() {
            self.read(self.repository.log_of(&missing)?)?;
        }
        let commit = |oid: &String| found.remove(oid).or_else(|| self.new.get(oid).cloned());
        Ok(order[..n_seen].iter().filter_map(commit).filter(|it| !it.changes.is_empty()).collect())
    }

    fn encoded(&self) -> HashMap<Vec<u8>, Vec<u8>> {
        let encode = |it: &Commit| Some((it.oid.as_bytes().to_vec(), borsh::to_vec(it).ok()?));
        self.new.values().filter_map(encode).collect()
    }
}

/// Whether these commits form a chain without merges, in which `tip` is the parent of the oldest commit. The newest commit
/// is first, and each comes with its parents.
fn is_linear(commits: &[(String, Vec<String>)], tip: &str) -> bool {
    let next = commits.iter().skip(1).map(|it| it.0.as_str()).chain([tip]);
    !commits.is_empty() && commits.iter().zip(next).all(|(it, next)| it.1.len() == 1 && it.1[0] == next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_commits_is_linear() {
        let commit = |oid: &str, parents: &[&str]| {
            (oid.to_owned(), parents.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
        };
        assert!(is_linear(&[commit("c", &["b"]), commit("b", &["a"])], "a"));
        assert!(!is_linear(&[commit("c", &["b"]), commit("b", &["x"])], "a"));
        assert!(!is_linear(&[commit("c", &["b", "a"]), commit("b", &["a"])], "a"));
        assert!(!is_linear(&[], "a"));
    }
}
