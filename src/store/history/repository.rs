//! Reads from git what the history needs.

use std::collections::HashSet;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::git::{self, Call, Found, Git, GitError, LogEntry, LogQuery, LogReader, Oid, Range, Stream};
use crate::plan::id::PlanId;
use crate::store::history::Sides;
use crate::text::front_matter::MAX_FILE;

/// Limits the search for a readable version of a broken file to the last 50 commits that changed the file.
const MOST_VERSIONS: &str = "--max-count=50";

/// The time limit of a whole call that [`Repository::call`] makes. `git show` can take long, because it may have to redo a
/// merge with many conflicts.
const LIMIT: Duration = Duration::from_secs(300);

/// The number of context lines: more than any file has, so that a patch holds the whole file.
const WHOLE_FILE: &str = "-U10000000";

/// Options for diffs, so that the user's configuration has no effect.
const PLAIN: [&str; 4] = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"];

/// A commit, and the files that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogCommit {
    pub(super) oid: String,
    pub(super) parents: Vec<String>,
    /// The author date, in seconds since 1970.
    pub(super) at: i64,
    pub(super) author: String,
    pub(super) subject: String,
    pub(super) files: Vec<RawChange>,
}

/// A file before and after a change, by the ids of its blobs. Symbolic links and submodules count as missing files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawChange {
    /// Relative to the repository's root.
    pub(super) path: String,
    pub(super) old: Option<String>,
    /// Also `None` for a file of the working tree that has no blob yet.
    pub(super) new: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Repository {
    git: Git,
    /// The path of the plans directory, relative to the repository's root: empty, or ending in `/`.
    prefix: String,
    head: Option<Oid>,
    /// The oldest commits of a shallow clone.
    boundaries: Vec<String>,
}

impl Repository {
    pub(crate) fn open(context: &Context) -> Result<Self, Error> {
        let (git, state) = Git::with_head(context.plans.root())?;
        let inside = git.relative(context.plans.root()).unwrap_or_default();
        // If the path is not UTF-8, the prefix matches no path of a file.
        let prefix = inside.to_string_lossy().into_owned();
        let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}/") };
        let head = state.commit;
        let boundaries = match &head {
            Some(head) if state.is_shallow => oids(&git, &["rev-list", "--max-parents=0"], &[head])?,
            _ => Vec::new(),
        };
        Ok(Self { git, prefix, head, boundaries })
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The commit of `HEAD`; `None` on a branch without commits.
    pub(crate) fn head(&self) -> Option<String> {
        self.head.as_ref().map(ToString::to_string)
    }

    /// The oldest commits of a shallow clone; empty in a complete one.
    pub(super) fn boundaries(&self) -> &[String] {
        &self.boundaries
    }

    /// Converts a path in the repository to a path relative to the plans directory. `None` for a path outside of the plans
    /// directory.
    pub(super) fn inside(&self, path: &str) -> Option<String> {
        path.strip_prefix(&self.prefix).map(str::to_owned)
    }

    pub(super) fn outside(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Parses a range of commits: `main..feature`, `main...feature`, or one revision, which includes all its ancestors. In
    /// the result, `^` marks a commit that is excluded with its ancestors.
    pub(super) fn range(&self, text: &str) -> Result<Vec<String>, Error> {
        Ok(match self.git.range(text)? {
            Range::One(one) => vec![one.to_string()],
            Range::Between { from, to } => vec![to.to_string(), format!("^{from}")],
            Range::SinceBase { from, to } => {
                let base = self.git.merge_base(&from, &to)?.map(|it| format!("^{it}"));
                [from.to_string(), to.to_string()].into_iter().chain(base).collect()
            }
        })
    }

    /// Parses the argument of `diff`: none, one revision, or a range of two revisions.
    pub(crate) fn sides(&self, text: Option<&str>, is_staged: bool) -> Result<Sides, Error> {
        let since = match text.map(|it| self.git.range(it)).transpose()? {
            None => self.head(),
            Some(Range::One(one)) => Some(one.to_string()),
            Some(_) if is_staged => {
                let hint = "give one revision, not a range";
                return Err(Error::usage("what is staged is compared with one revision", hint));
            }
            Some(Range::Between { from, to }) => {
                return Ok(Sides::Commits { old: from.to_string(), new: to.to_string() });
            }
            Some(Range::SinceBase { from, to }) => {
                let base = self.git.merge_base(&from, &to)?.unwrap_or(from);
                return Ok(Sides::Commits { old: base.to_string(), new: to.to_string() });
            }
        };
        Ok(if is_staged { Sides::Staged { since } } else { Sides::WorkingTree { since } })
    }

    pub(crate) fn has_revision(&self, text: &str) -> Result<bool, Error> {
        Ok(self.git.find_revision(text)?.is_some())
    }

    /// Whether a commit has a directory for a plan.
    pub(crate) fn has_plan(&self, commit: Option<&str>, plan: &PlanId) -> Result<bool, Error> {
        let Some(commit) = commit else { return Ok(false) };
        let infos = self.git.object_infos(&[format!("{commit}:{}", self.outside(plan.as_str()))])?;
        Ok(infos.iter().flatten().any(|it| it.kind == "tree"))
    }

    /// The plans directory; empty if that is the whole repository.
    fn paths(&self) -> Vec<PathBuf> {
        let path = self.prefix.trim_end_matches('/');
        if path.is_empty() { Vec::new() } else { vec![path.into()] }
    }

    /// The commits of a range that changed files below the plans directory, newest first. Merges whose plans directory
    /// differs from that of at least one parent are included, without their files.
    pub(super) fn log(&self, range: &[String]) -> Result<LogCommits, Error> {
        self.query(range, self.paths(), &["--full-history", "--diff-merges=off"], false)
    }

    /// Like [`Self::log`], for exactly these commits, in the given order.
    pub(super) fn log_of(&self, commits: &[String]) -> Result<LogCommits, Error> {
        self.query(commits, self.paths(), &["--no-walk=unsorted", "--diff-merges=off"], false)
    }

    fn query(
        &self,
        range: &[String],
        paths: Vec<PathBuf>,
        options: &[&'static str],
        merges_by_lines: bool,
    ) -> Result<LogCommits, Error> {
        let (not, of): (Vec<_>, Vec<_>) = range.iter().partition(|it| it.starts_with('^'));
        let oid = |it: &&String| oid(it.trim_start_matches('^'));
        let of = of.iter().map(oid).collect::<Result<_, _>>()?;
        let not = not.iter().map(oid).collect::<Result<_, _>>()?;
        let query = LogQuery { of, not, paths, options: options.to_vec(), merges_by_lines };
        Ok(LogCommits(Some(self.git.log(&query)?)))
    }

    /// The merges whose files differ from the result that git gets when it repeats the merge. Empty with a git before 2.35.
    /// The blobs of that result cannot be read, because git does not store them; see [`Self::remerged`].
    pub(super) fn remerges(&self, merges: &[String]) -> Result<Vec<LogCommit>, Error> {
        if merges.is_empty() || self.git.require(2, 35, "").is_err() {
            return Ok(Vec::new());
        }
        let options = ["--no-walk=unsorted", "--diff-merges=remerge"];
        // Git merges by lines, so that the history does not depend on the merge drivers that a clone has set up.
        let found = self.query(merges, self.paths(), &options, true)?;
        found.filter(|it| it.as_ref().map_or(true, |it| !it.files.is_empty())).collect()
    }

    /// The best common ancestor of the first two commits.
    pub(super) fn merge_base(&self, of: &[String]) -> Result<Option<String>, Error> {
        let [a, b, ..] = of else { return Ok(None) };
        Ok(self.git.merge_base(&oid(a)?, &oid(b)?)?.map(|it| it.to_string()))
    }

    /// The content of a file in the result that git gets when it repeats the merge. It is the old side of a change from
    /// [`Self::remerges`].
    pub(super) fn remerged(&self, merge: &str, path: &str) -> Result<Vec<u8>, Error> {
        let words = ["show", "--diff-merges=remerge", "--format=", "--patch", "--text", WHOLE_FILE];
        let call = self.call(&[&words[..], &PLAIN].concat()).oids([&oid(merge)?]).paths([path]);
        Ok(old_side(&self.git.merging_by_lines(call)?.run()?))
    }

    fn call(&self, words: &[&str]) -> Call {
        self.git.call(words).limit(LIMIT)
    }

    /// All commits of a range, newest first, each with its parents.
    pub(super) fn parents(&self, range: &[String]) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut call = self.call(&["rev-list", "--parents"]);
        for it in range {
            // The range consists of ids that were resolved before; `^` excludes a commit and its ancestors.
            oid(it.trim_start_matches('^'))?;
            call = call.arg(it);
        }
        let printed = call.run()?;
        let line = |line: &str| {
            let mut oids = line.split(' ').map(str::to_owned);
            Some((oids.next()?, oids.collect()))
        };
        Ok(String::from_utf8_lossy(&printed).lines().filter_map(line).collect())
    }

    /// The contents of the blobs, in the order of `oids`.
    pub(super) fn contents(&self, oids: &[String]) -> Result<Vec<Vec<u8>>, Error> {
        let mut contents = Vec::with_capacity(oids.len());
        self.git.objects(oids, |at, found| {
            contents.push(content(&oids[at], found)?);
            Ok(())
        })?;
        Ok(contents)
    }

    /// The versions of a file at a commit and before it, newest first, but at most 50.
    pub(super) fn versions_before(&self, commit: &str, path: &str) -> Result<Vec<Vec<u8>>, Error> {
        let (path, options) = (self.outside(path).into(), ["--diff-merges=off", MOST_VERSIONS]);
        let found = self.query(&[commit.to_owned()], vec![path], &options, false)?;
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let oids: Vec<_> = found.into_iter().flat_map(|it| it.files).filter_map(|it| it.new).collect();
        self.contents(&oids)
    }

    /// The files that differ between two commits. If `paths` is not empty, only the files at these paths.
    pub(super) fn raw_between(
        &self,
        old: &str,
        new: &str,
        paths: &[String],
    ) -> Result<Vec<RawChange>, Error> {
        let words = ["diff-tree", "-r", "--raw", "-z", "--no-abbrev"];
        let call = self.call(&[&words[..], &PLAIN].concat()).oids([&oid(old)?, &oid(new)?]);
        let call = if paths.is_empty() { call.paths(self.paths()) } else { call.paths(paths) };
        Ok(git::read_changes(&call.run()?)?.into_iter().filter_map(raw).collect())
    }

    /// The files that differ between a commit and the index (with `is_staged`) or the working tree. If there is no commit,
    /// the result is all files of the index if `is_staged` is set, and empty otherwise.
    pub(super) fn raw_uncommitted(
        &self,
        since: Option<&str>,
        is_staged: bool,
    ) -> Result<Vec<RawChange>, Error> {
        let staged: &[&str] = if is_staged { &["--cached"] } else { &[] };
        let since = match since {
            Some(commit) => oid(commit)?,
            None if is_staged => self.git.empty_tree()?,
            None => return Ok(Vec::new()),
        };
        let words = ["diff", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all"];
        let call = self.call(&[&words[..], staged, &PLAIN].concat()).oids([&since]).paths(self.paths());
        Ok(git::read_changes(&call.run()?)?.into_iter().filter_map(raw).collect())
    }

    /// The files that differ between a commit and the working tree, including untracked files.
    pub(super) fn raw_in_working_tree(&self, since: Option<&str>) -> Result<Vec<RawChange>, Error> {
        // If there is no commit yet, the files in the index are new, too.
        let cached: &[&str] = if since.is_none() { &["--cached"] } else { &[] };
        let words = ["ls-files", "-z", "--others", "--exclude-standard"];
        // This process runs while `raw_uncommitted` runs another one.
        let untracked = self.call(&[&words[..], cached].concat()).paths(self.paths()).stream()?;
        let mut found = self.raw_uncommitted(since, false)?;
        let known: HashSet<String> = found.iter().map(|it| it.path.clone()).collect();
        let printed = untracked.run()?;
        let paths = printed.split(|it| *it == 0).filter(|it| !it.is_empty());
        let paths = paths.filter_map(|it| String::from_utf8(it.to_vec()).ok());
        let new = paths.filter(|it| !known.contains(it));
        found.extend(new.map(|path| RawChange { path, old: None, new: None }));
        Ok(found)
    }
}

/// Yields commits while git is still listing them.
pub(super) struct LogCommits(Option<LogReader<BufReader<Stream>>>);

impl Iterator for LogCommits {
    type Item = Result<LogCommit, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.0.as_mut()?.next() {
            return Some(entry.map(commit).map_err(Error::from));
        }
        // If git failed, its error is the last item.
        self.0.take()?.into_inner().finish().err().map(|it| Err(it.into()))
    }
}

/// The bytes of a file's blob.
pub(super) fn content(oid: &str, found: Found) -> Result<Vec<u8>, GitError> {
    match found {
        Found::Missing => Err(GitError::NotFetched { oid: oid.to_owned() }),
        // Returns line breaks instead of the content, one byte over the limit, so that the file is reported as too large.
        Found::TooLarge(_) => Ok(vec![b'\n'; MAX_FILE + 1]),
        found => Ok(found.blob().unwrap_or_default()),
    }
}

pub(super) fn unexpected(what: String) -> GitError {
    GitError::Unexpected { command: "cat-file", what }
}

fn oid(text: &str) -> Result<Oid, Error> {
    let wrong = || GitError::Unexpected { command: "rev-parse", what: text.to_owned() };
    Ok(Oid::read(text.as_bytes()).ok_or_else(wrong)?)
}

fn oids(git: &Git, words: &[&str], of: &[&Oid]) -> Result<Vec<String>, Error> {
    let printed = git.call(words).oids(of.iter().copied()).run()?;
    Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
}

fn commit(entry: LogEntry) -> LogCommit {
    LogCommit {
        oid: entry.commit.to_string(),
        parents: entry.parents.iter().map(ToString::to_string).collect(),
        at: entry.authored_at,
        author: entry.author,
        subject: entry.subject,
        files: entry.changes.into_iter().filter_map(raw).collect(),
    }
}

/// Returns `None` for a path that is not UTF-8, because it belongs to no plan.
fn raw(change: git::RawChange) -> Option<RawChange> {
    let path = String::from_utf8(change.path).ok()?;
    let blob = |mode: u32, oid: &Oid| {
        let is_file = mode & 0o170_000 == 0o100_000 && !oid.is_null();
        is_file.then(|| oid.to_string())
    };
    Some(RawChange { path, old: blob(change.old_mode, &change.old), new: blob(change.new_mode, &change.new) })
}

/// The old side of a patch that has the whole file as its context.
fn old_side(patch: &[u8]) -> Vec<u8> {
    let mut old: Vec<u8> = Vec::new();
    let mut is_inside = false;
    let mut is_old = false;
    for line in patch.split_inclusive(|it| *it == b'\n') {
        match line.first() {
            Some(b'@') if !is_inside => is_inside = true,
            Some(b' ' | b'-') if is_inside => {
                old.extend(&line[1..]);
                is_old = true;
            }
            // The line before has no line end.
            Some(b'\\') if is_inside && is_old => drop(old.pop_if(|it| *it == b'\n')),
            _ => is_old = false,
        }
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_side_of_a_patch_is_the_file_before() {
        let patch = b"diff --git a/x b/x\nremerge CONFLICT (content)\n--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n a\n-b\n-@@ c\n+d\n\\ No newline at end of file\n";
        assert_eq!(old_side(patch), b"a\nb\n@@ c\n");
        let patch = b"@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n";
        assert_eq!(old_side(patch), b"a\nb");
        assert_eq!(old_side(b""), b"");
    }
}
