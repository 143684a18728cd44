//! Stores records as refs of a git remote. Each push uses `--force-with-lease`, so a ref changes only if it still has
//! the expected value.
//!
//! A value is stored as a blob. Where the host allows only branches, the value is stored as the message of a commit
//! without files. The blob or commit is written into this clone when the value is made, and again before each push,
//! because `git gc` may have removed it in between.
//!
//! Records are fetched into `refs/planwatch/remote/`, which git's default refspecs do not contain. They are not listed
//! with `ls-remote` and a pattern, because the server would send all its refs.

use std::time::Duration;

use super::record::LONGEST;
use super::{Answer, Change, ClaimRegistry, Listed, Name, RegistryError, Revision, Together, Value};
use crate::api::sync_config::Namespace;
use crate::disk::{Disk, RealDisk};
use crate::git::{
    CatFile, Found, Git, GitError, Oid, PushResult, PushedRef, RefChange, RemoteError, is_broken,
};

/// The prefix of the refs of fetched records in this clone.
pub(crate) const LOCAL: &str = "refs/planwatch/remote/";

/// The prefix of the fetched branch's ref in this clone.
pub(crate) const LOCAL_BRANCH: &str = "refs/planwatch/branch/";

/// The maximum number of attempts at a push.
const TRIES: u64 = 3;

/// The largest number of records that a clone reads.
const MOST: usize = 50_000;

pub(crate) struct GitRefs {
    git: Git,
    url: String,
    namespace: Namespace,
    /// The branch that is fetched with the records, without `refs/heads/`.
    branch: Option<String>,
}

impl GitRefs {
    pub(crate) fn new(git: Git, url: String, namespace: Namespace, branch: Option<String>) -> Self {
        Self { git, url, namespace, branch }
    }

    fn full(&self, name: &Name) -> String {
        format!("{}{name}", self.namespace.prefix())
    }

    fn ref_change(&self, change: &Change) -> Result<RefChange, RegistryError> {
        let name = self.full(change.name());
        let (old, new) = match change {
            Change::Create { new, .. } => (None, Some(oid(&new.revision)?)),
            Change::Replace { old, new, .. } => (Some(oid(old)?), Some(oid(&new.revision)?)),
            Change::Delete { old, .. } => (Some(oid(old)?), None),
        };
        Ok(RefChange { name, old, new })
    }

    /// Stores the object of a value in this clone.
    fn write(&self, body: &str) -> Result<Oid, RegistryError> {
        let oid = match self.namespace {
            Namespace::Own | Namespace::Tags => self.git.write_bytes(body.as_bytes()),
            Namespace::Branches => self.git.write_empty_commit(body),
        };
        oid.map_err(|it| local(&it))
    }

    /// Pushes. The push is repeated if it collides with another push, if the result of a ref is missing, or if the
    /// connection of the first attempt breaks. The repetition also shows whether the attempt before it succeeded.
    fn push(&self, changes: &[RefChange], is_atomic: bool) -> Result<Vec<PushResult>, RegistryError> {
        let mut silence = String::new();
        for nth in 0..TRIES {
            pause(nth);
            match self.git.push_refs(&self.url, changes, is_atomic) {
                Ok(pushed) => {
                    let results = results_of(changes, &pushed);
                    let is_final =
                        |it: &PushResult| !matches!(it, PushResult::Contended | PushResult::Unknown);
                    if results.iter().all(is_final) {
                        return Ok(results);
                    }
                    let is_unknown = results.contains(&PushResult::Unknown);
                    silence = "it did not report the result of a ref".to_owned();
                    if nth + 1 == TRIES && !is_unknown {
                        return Ok(results);
                    }
                }
                Err(RemoteError::Silent(text)) if nth == 0 && is_broken(&text) => silence = text,
                Err(RemoteError::Silent(text)) => {
                    silence = text;
                    break;
                }
                Err(RemoteError::Refused(text)) => return Err(RegistryError::Refused(text)),
                Err(RemoteError::NoRef) => return Err(RegistryError::Refused("no such ref".to_owned())),
                Err(RemoteError::Git(error)) => return Err(local(&error)),
            }
        }
        Err(RegistryError::Unanswered(silence))
    }

    fn answer(&self, change: &Change, result: PushResult) -> Result<Answer, RegistryError> {
        Ok(match result {
            PushResult::Done | PushResult::UpToDate => Answer::Done,
            // A server may report a ref as stale because the ref is already deleted.
            PushResult::Stale if matches!(change, Change::Delete { .. }) => {
                let there = self.git.remote_has(&self.url, &[self.full(change.name())]);
                if there.map_err(unreachable)?.contains(&true) { Answer::Lost } else { Answer::Done }
            }
            PushResult::Stale | PushResult::Contended | PushResult::Unknown => Answer::Lost,
            PushResult::NotTried => Answer::NotTried,
            PushResult::Refused(why) => Answer::Refused(why),
        })
    }

    fn refspecs(&self, with_branch: bool) -> Vec<String> {
        let prefix = self.namespace.prefix();
        let mut specs = vec![
            format!("+{prefix}claims/*:{LOCAL}claims/*"),
            // With the star, the fetch also succeeds if the ref does not exist.
            format!("+{prefix}registry*:{LOCAL}registry*"),
        ];
        if let Some(branch) = self.branch.as_ref().filter(|_| with_branch) {
            specs.push(format!("+refs/heads/{branch}:{LOCAL_BRANCH}{branch}"));
        }
        specs
    }

    fn fetch(&self) -> Result<(), RegistryError> {
        match self.git.fetch_refs(&self.url, &self.refspecs(true)) {
            // The remote does not have the branch yet.
            Err(RemoteError::NoRef) if self.branch.is_some() => {
                self.git.fetch_refs(&self.url, &self.refspecs(false)).map_err(unreachable)
            }
            fetched => fetched.map_err(unreachable),
        }
    }

    /// The fetched records; empty if none were ever fetched.
    fn fetched(&self) -> Result<Vec<Listed>, RegistryError> {
        let format = "--format=%(refname)%00%(objectname)%00%(objectsize)";
        let printed = self.git.call(&["for-each-ref", format]).arg(LOCAL).run().map_err(|it| local(&it))?;
        let printed = String::from_utf8_lossy(&printed);
        let found = refs_of(&printed)?;
        let names: Vec<_> =
            found.iter().filter(|it| it.2 <= LONGEST + HEADER).map(|it| it.1.to_string()).collect();
        let mut bodies = Vec::new();
        if !names.is_empty() {
            let mut read = CatFile::open(&self.git).map_err(|it| local(&it))?;
            let each = |_, found| {
                bodies.push(body_of(found));
                Ok(())
            };
            read.read_all(&names, each).map_err(|it| local(&it))?;
        }
        let mut bodies = bodies.into_iter();
        let listed = found.into_iter().map(|(name, oid, size)| Listed {
            name,
            revision: Revision(oid.to_string()),
            body: (size <= LONGEST + HEADER).then(|| bodies.next().flatten()).flatten(),
            standing: None,
        });
        Ok(listed.collect())
    }
}

/// The name, object and object size of each fetched record, from the output of `git for-each-ref`.
fn refs_of(printed: &str) -> Result<Vec<(Name, Oid, usize)>, RegistryError> {
    let mut found = Vec::new();
    for line in printed.lines() {
        let mut fields = line.split('\0');
        let name = fields.next().and_then(|it| Name::read(it.strip_prefix(LOCAL)?));
        let oid = fields.next().and_then(|it| Oid::read(it.as_bytes()));
        let size: usize = fields.next().and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
        found.extend(name.zip(oid).map(|(name, oid)| (name, oid, size)));
    }
    match found.len() > MOST {
        true => Err(RegistryError::Local(format!("the remote has more than {MOST} records of claims"))),
        false => Ok(found),
    }
}

/// How many bytes a commit may have before its message.
const HEADER: usize = 512;

fn body_of(found: Found) -> Option<String> {
    let Found::Object(object) = found else { return None };
    let bytes = match object.kind.as_str() {
        "blob" => object.bytes,
        "commit" => {
            let at = object.bytes.windows(2).position(|it| it == b"\n\n")?;
            object.bytes[at + 2..].to_vec()
        }
        _ => return None,
    };
    String::from_utf8(bytes).ok().filter(|it| it.len() <= LONGEST)
}

/// The result of each change; unknown for a ref that was not reported.
fn results_of(changes: &[RefChange], pushed: &[PushedRef]) -> Vec<PushResult> {
    let of = |change: &RefChange| {
        let found = pushed.iter().find(|it| it.name == change.name);
        found.map_or(PushResult::Unknown, |it| it.result.clone())
    };
    changes.iter().map(of).collect()
}

fn oid(revision: &Revision) -> Result<Oid, RegistryError> {
    Oid::read(revision.0.as_bytes())
        .ok_or_else(|| RegistryError::Local(format!("`{}` is not the name of an object", revision.0)))
}

fn local(error: &GitError) -> RegistryError {
    RegistryError::Local(error.to_string())
}

/// The error of a call that only reads from the remote.
fn unreachable(error: RemoteError) -> RegistryError {
    match error {
        RemoteError::Silent(text) => RegistryError::Unreachable(text),
        RemoteError::Refused(text) => RegistryError::Refused(text),
        RemoteError::NoRef => RegistryError::Refused("a ref is missing".to_owned()),
        RemoteError::Git(error) => local(&error),
    }
}

/// Waits a random time, so that two colliding pushes do not collide again. The maximum grows with each attempt.
fn pause(nth: u64) {
    if nth == 0 {
        return;
    }
    let mut byte = [0];
    RealDisk.random(&mut byte).ok();
    RealDisk.pause(Duration::from_millis(20 + u64::from(byte[0]) * nth));
}

impl ClaimRegistry for GitRefs {
    fn value(&self, body: String, ttl: i64) -> Result<Value, RegistryError> {
        let oid = self.write(&body)?;
        Ok(Value { revision: Revision(oid.to_string()), body, ttl })
    }

    fn change(&self, changes: &[Change], together: Together) -> Result<Vec<Answer>, RegistryError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let refs: Vec<_> = changes.iter().map(|it| self.ref_change(it)).collect::<Result<_, _>>()?;
        // A value may have been made long ago, for a push that failed. No ref of this clone names its object, so
        // `git gc` may have removed the object.
        for change in changes {
            if let Change::Create { new, .. } | Change::Replace { new, .. } = change {
                self.write(&new.body)?;
            }
        }
        let results = self.push(&refs, together == Together::AllOrNone)?;
        changes.iter().zip(results).map(|(change, result)| self.answer(change, result)).collect()
    }

    fn list(&self) -> Result<Vec<Listed>, RegistryError> {
        self.fetch()?;
        self.fetched()
    }

    fn lists_branch(&self) -> bool {
        self.branch.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::git::Call;
    use crate::store::registry::table;

    fn git(directory: &Path, words: &[&str]) {
        Call::new(directory, words).run().unwrap();
    }

    /// A client of the registry, with a clone of its own.
    fn client(top: &Path, name: &str, namespace: Namespace) -> GitRefs {
        git(top, &["init", "-q", name]);
        let repository = Git::at(&top.join(name)).unwrap();
        GitRefs::new(repository, top.join("hub").display().to_string(), namespace, Some("main".to_owned()))
    }

    #[test]
    fn refs_of_a_remote_pass_the_table_in_each_namespace() {
        for namespace in Namespace::ALL {
            let top = tempfile::tempdir().unwrap();
            git(top.path(), &["init", "-q", "--bare", "hub"]);
            let clients = ["a", "b"].map(|it| client(top.path(), it, namespace));
            table::check(&clients[0], &clients[1], true);
        }
    }

    #[test]
    fn too_many_records_are_an_error() {
        let line = |nth| format!("{LOCAL}claims/plans/p/{nth}\0{}\0300\n", "a".repeat(40));
        let printed = |n: usize| (0..n).map(line).collect::<String>();
        assert_eq!(refs_of(&printed(MOST)).unwrap().len(), MOST);
        assert!(matches!(refs_of(&printed(MOST + 1)), Err(RegistryError::Local(_))));
    }

    #[test]
    fn records_that_are_too_long_are_listed_without_their_text() {
        for namespace in Namespace::ALL {
            let top = tempfile::tempdir().unwrap();
            git(top.path(), &["init", "-q", "--bare", "hub"]);
            let client = client(top.path(), "a", namespace);
            let name = Name::read("claims/plans/p/1").unwrap();
            let new = client.value("x".repeat(LONGEST + 1), 600).unwrap();
            client.change_one(Change::Create { name, new: new.clone() }).unwrap();
            let listed = client.list().unwrap();
            assert_eq!((&listed[0].revision, &listed[0].body), (&new.revision, &None), "{namespace:?}");
        }
    }

    #[test]
    fn a_value_is_sent_although_the_clone_was_pruned_meanwhile() {
        for namespace in Namespace::ALL {
            let top = tempfile::tempdir().unwrap();
            git(top.path(), &["init", "-q", "--bare", "hub"]);
            let client = client(top.path(), "a", namespace);
            let name = Name::read("claims/plans/p/1").unwrap();
            let prune = || git(&top.path().join("a"), &["prune", "--expire=now"]);
            let first = client.value("one".to_owned(), 600).unwrap();
            prune();
            let made = client.change_one(Change::Create { name: name.clone(), new: first.clone() });
            assert_eq!(made, Ok(Answer::Done), "{namespace:?}");
            let new = client.value("two".to_owned(), 600).unwrap();
            prune();
            let old = first.revision;
            let made = client.change_one(Change::Replace { name, old, new, is_take_over: false });
            assert_eq!(made, Ok(Answer::Done), "{namespace:?}");
            assert_eq!(client.list().unwrap()[0].body.as_deref(), Some("two"), "{namespace:?}");
        }
    }

    #[test]
    fn a_remote_that_is_not_there_is_unreachable() {
        let top = tempfile::tempdir().unwrap();
        let client = client(top.path(), "a", Namespace::Own);
        assert!(matches!(client.list(), Err(RegistryError::Unreachable(_))));
        let new = client.value("{}".to_owned(), 600).unwrap();
        let name = Name::read("claims/plans/p/1").unwrap();
        let made = client.change_one(Change::Create { name, new });
        assert!(matches!(made, Err(RegistryError::Unanswered(_))), "{made:?}");
    }
}
