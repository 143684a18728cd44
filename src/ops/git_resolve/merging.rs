//! The commits of a merge, a rebase or a cherry-pick.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::api::error::Error;
use crate::git::{FileStatus, Found, Git, LogQuery, Oid, RawChange};

pub(super) struct Merging {
    pub(super) ours: Oid,
    pub(super) theirs: Oid,
    /// The commit with which both are compared.
    pub(super) base: Oid,
    /// After a rebase, the texts that its commits wrote to plan files. THEIRS is then the branch before the rebase. A person
    /// may have left out commits of THEIRS on purpose, so what is in none of these texts is not brought back.
    pub(super) replayed: Option<Vec<Vec<u8>>>,
    /// Whether the branch had merge commits before the rebase. A rebase usually leaves them out. Attempts and notes that
    /// only they preserved may then be missing.
    pub(super) has_left_out_merges: bool,
    /// Whether `HEAD` is the result of a cherry-pick. Then THEIRS is `HEAD` and OURS is its parent, so THEIRS contains all
    /// of OURS.
    pub(super) is_picked: bool,
}

/// The last operation, which git has finished.
pub(super) enum Finished {
    None,
    Known(Merging),
    /// The operation is not examined, because these plan files have changes that are neither committed nor staged. The paths
    /// are relative to the repository's root.
    Uncommitted(Vec<PathBuf>),
}

impl Merging {
    fn of(ours: Oid, theirs: Oid, base: Oid) -> Self {
        Self { ours, theirs, base, replayed: None, has_left_out_merges: false, is_picked: false }
    }

    /// The commits of the merge, the rebase or the cherry-pick that is under way.
    pub(super) fn under_way(git: &Git) -> Result<Option<Self>, Error> {
        let Some(ours) = git.head_commit()? else { return Ok(None) };
        if let Some(theirs) = git.find_revision("MERGE_HEAD")? {
            let base = git.merge_base(&ours, &theirs)?;
            return Ok(base.map(|base| Self::of(ours, theirs, base)));
        }
        for name in ["REBASE_HEAD", "CHERRY_PICK_HEAD"] {
            let commits = (git.find_revision(name)?, git.find_revision(&format!("{name}^"))?);
            if let (Some(theirs), Some(base)) = commits {
                return Ok(Some(Self::of(ours, theirs, base)));
            }
        }
        Ok(None)
    }

    /// The commits of a finished operation, even if git found no conflict in it: the rebase that has just ended, or the
    /// merge or cherry-pick that made `HEAD`. None if there is no such operation, if the merge has more than two parents,
    /// or if the sides have no common ancestor. It is not examined if plan files have uncommitted changes, because these may
    /// correct what the operation did.
    pub(super) fn finished(git: &Git, plans: &Path) -> Result<Finished, Error> {
        let rebased = git.last_rebase()?;
        let is_rebase = rebased.is_some();
        let is_picked = !is_rebase && git.is_picked()?;
        let sides = match rebased {
            Some(it) => Some(it),
            None if is_picked => git.find_revision("HEAD^1")?.zip(git.head_commit()?),
            None if git.find_revision("HEAD^3")?.is_some() => None,
            None => git.find_revision("HEAD^1")?.zip(git.find_revision("HEAD^2")?),
        };
        let Some((ours, theirs)) = sides else { return Ok(Finished::None) };
        let Some(base) = git.merge_base(&ours, &theirs)? else { return Ok(Finished::None) };
        let changes = git.status(&[plans])?;
        if !changes.is_empty() {
            // Files that are only staged come from an earlier run of this command, or from a person who corrected the result.
            let left: Vec<_> = changes.iter().filter(|it| !it.is_only_staged()).map(path_of).collect();
            let is_of_plans = !left.is_empty()
                && (is_picked || differ(git, &base, &ours, plans)?)
                && differ(git, &base, &theirs, plans)?;
            return Ok(if is_of_plans { Finished::Uncommitted(left) } else { Finished::None });
        }
        let replayed = is_rebase.then(|| written_since(git, &ours, plans)).transpose()?;
        let has_left_out_merges = is_rebase && has_merges(git, &base, &theirs)?;
        let of = Self::of(ours, theirs, base);
        Ok(Finished::Known(Self { replayed, has_left_out_merges, is_picked, ..of }))
    }
}

fn path_of(it: &FileStatus) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&it.path))
}

/// Whether two commits have different plan files.
fn differ(git: &Git, one: &Oid, other: &Oid, plans: &Path) -> Result<bool, Error> {
    let paths = Some(plans).filter(|it| !it.as_os_str().is_empty());
    let call = git.call(&["diff-tree", "-r", "--quiet"]).oids([one, other]).paths(paths);
    Ok(call.output()?.code == 1)
}

fn has_merges(git: &Git, since: &Oid, until: &Oid) -> Result<bool, Error> {
    let query = LogQuery {
        of: vec![until.clone()],
        not: vec![since.clone()],
        options: vec!["--merges", "--max-count=1"],
        ..LogQuery::default()
    };
    Ok(!git.log(&query)?.all()?.is_empty())
}

/// The texts that the commits after `commit` wrote to plan files.
fn written_since(git: &Git, commit: &Oid, plans: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let query = LogQuery {
        of: git.head_commit()?.into_iter().collect(),
        not: vec![commit.clone()],
        paths: vec![plans.to_path_buf()],
        ..LogQuery::default()
    };
    let changes = git.log(&query)?.all()?.into_iter().flat_map(|it| it.changes);
    let is_file = |it: &RawChange| matches!(it.new_mode, 0o100_644 | 0o100_755) && it.path.ends_with(b".md");
    let blobs: Vec<_> = changes.filter(is_file).map(|it| it.new).collect();
    let names: Vec<_> = blobs.iter().map(Oid::as_str).collect();
    let mut texts = Vec::new();
    git.objects(&names, |_, found: Found| {
        texts.extend(found.blob());
        Ok(())
    })?;
    Ok(texts)
}
