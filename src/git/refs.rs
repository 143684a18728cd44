//! Branches, local and remote-tracking.

use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The full name: `refs/heads/…` or `refs/remotes/…`.
    pub name: String,
    pub tip: Oid,
    /// When its last commit was made, in seconds since 1970.
    pub at: i64,
    /// Who wrote its last commit.
    pub author: String,
}

impl Branch {
    /// The name as people write it: `feature/x`, `origin/feature/x`.
    pub fn short(&self) -> &str {
        let name = &self.name;
        name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/remotes/")).unwrap_or(name)
    }
}

pub(super) const FORMAT: &str =
    "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(symref)%00%(authorname)";

/// Prefixes of planwatch's own branches: those of runs, and those that store claims.
const OWN: [&str; 2] = ["planwatch-run/", "planwatch-claims/"];

/// Reads the output of `for-each-ref` with `FORMAT`. Symbolic references are left out.
pub fn read_branches(bytes: &[u8]) -> Result<Vec<Branch>, GitError> {
    let mut branches = Vec::new();
    for line in bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
        let fields: Vec<_> = line.splitn(5, |it| *it == 0).collect();
        let bad = || GitError::unexpected("for-each-ref", String::from_utf8_lossy(line));
        let [name, tip, at, link, author] = fields[..] else { return Err(bad()) };
        if !link.is_empty() {
            continue;
        }
        // A branch whose name is not UTF-8 cannot be named in JSON.
        let Ok(name) = String::from_utf8(name.to_vec()) else { continue };
        // A reference to an object that is not a commit has no date.
        let at = std::str::from_utf8(at).ok().and_then(|it| it.parse().ok()).unwrap_or_default();
        let author = String::from_utf8_lossy(author).into_owned();
        branches.push(Branch { name, tip: Oid::read(tip).ok_or_else(bad)?, at, author });
    }
    Ok(branches)
}

impl Git {
    /// Lists the local and remote-tracking branches without planwatch's own, newest first. With `head`, only branches with
    /// commits that are not reachable from `head` are listed.
    pub fn unmerged_branches(&self, head: Option<&Oid>) -> Result<Vec<Branch>, GitError> {
        let mut call = self.call(&["for-each-ref", "--sort=-committerdate", FORMAT]);
        if let Some(head) = head {
            call = call.arg("--no-merged").oids([head]);
        }
        let branches = read_branches(&call.arg("refs/heads/").arg("refs/remotes/").run()?)?;
        let is_own = |it: &Branch| {
            let within_remote = it.name.strip_prefix("refs/remotes/").and_then(|it| it.split_once('/'));
            let name = within_remote.map_or_else(|| it.short(), |it| it.1);
            OWN.iter().any(|own| name.starts_with(own))
        };
        Ok(branches.into_iter().filter(|it| !is_own(it)).collect())
    }
}
