//! A hash of the state of a working tree, without one of its directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::disk::{Disk, RealDisk};

use super::call::Call;

/// The hash includes the size and the time of at most this many untracked files, and only the names of the others.
const MAX_UNTRACKED: usize = 10_000;

/// The limit is long, because git may have to read a large tree from the disk.
const LIMIT: Duration = Duration::from_secs(600);

/// Returns a hash of the working tree at `root` as git sees it, except the directory `without`. `None` if git fails,
/// or if `without` is not below `root`.
pub fn fingerprint(root: &Path, without: &Path) -> Option<String> {
    let mut but = b":(exclude,top,literal)".to_vec();
    let relative = without.strip_prefix(root).ok()?;
    but.extend(relative.as_os_str().as_bytes());
    let paths = [OsStr::new("."), OsStr::from_bytes(&but)];
    let status = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"];
    let status = git(root, &status, &paths)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&status);
    // Without a commit there is nothing to compare with.
    if !status.starts_with(b"# branch.oid (initial)") {
        let diff = ["diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"];
        hasher.update(&git(root, &diff, &paths)?);
    }
    let untracked = status.split(|it| *it == 0).filter_map(|it| it.strip_prefix(b"? "));
    for path in untracked.take(MAX_UNTRACKED) {
        let Ok(stat) = RealDisk.lstat(&root.join(OsStr::from_bytes(path))) else { continue };
        hasher.update(path);
        hasher.update(&stat.len.to_le_bytes());
        hasher.update(&stat.mtime_ns.to_le_bytes());
    }
    Some(hasher.finalize().to_hex().to_string())
}

fn git(root: &Path, words: &[&str], paths: &[&OsStr]) -> Option<Vec<u8>> {
    Call::new(root, words).pathspecs(paths).limit(LIMIT).most(usize::MAX).run().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_outside_of_the_plans_counts() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        let plans = root.join("plans");
        std::fs::create_dir(&plans).unwrap();
        assert_eq!(fingerprint(&root, &plans), None);
        let run = |words: &[&str]| drop(Call::new(&root, words).run().unwrap());
        run(&["init", "-q"]);
        let empty = fingerprint(&root, &plans).unwrap();
        std::fs::write(plans.join("plan.md"), "# A\n").unwrap();
        assert_eq!(fingerprint(&root, &plans).unwrap(), empty);
        std::fs::write(root.join("a"), "1").unwrap();
        let untracked = fingerprint(&root, &plans).unwrap();
        assert_ne!(untracked, empty);
        std::fs::write(root.join("a"), "12").unwrap();
        assert_ne!(fingerprint(&root, &plans).unwrap(), untracked);
        run(&["add", "a"]);
        let added = fingerprint(&root, &plans).unwrap();
        let commit = Call::new(&root, &["commit", "-q", "-m", "a"]).config("user.name", "a");
        commit.config("user.email", "a@example.org").run().unwrap();
        let committed = fingerprint(&root, &plans).unwrap();
        assert_ne!(added, committed);
        std::fs::write(root.join("a"), "34").unwrap();
        let changed = fingerprint(&root, &plans).unwrap();
        std::fs::write(root.join("a"), "56").unwrap();
        let other = fingerprint(&root, &plans).unwrap();
        assert!(changed != committed && other != changed);
        std::fs::write(root.join("a"), "12").unwrap();
        assert_eq!(fingerprint(&root, &plans).unwrap(), committed);
    }
}
