//! The commits whose changes are merged.

use std::path::Path;

use crate::api::error::Error;
use crate::git::{Git, Oid};

pub(super) struct Merging {
    pub(super) ours: Oid,
    pub(super) theirs: Oid,
    /// What the changes of both count from.
    pub(super) base: Oid,
    /// A person may have left out commits on purpose, so nothing that is missing is brought back.
    pub(super) may_leave_out: bool,
}

impl Merging {
    /// Those of the merge, the rebase or the cherry-pick that is under way.
    pub(super) fn under_way(git: &Git) -> Result<Option<Self>, Error> {
        let Some(ours) = git.head_commit()? else { return Ok(None) };
        if let Some(theirs) = git.find_revision("MERGE_HEAD")? {
            let base = git.merge_base(&ours, &theirs)?;
            return Ok(base.map(|base| Self { ours, theirs, base, may_leave_out: false }));
        }
        for name in ["REBASE_HEAD", "CHERRY_PICK_HEAD"] {
            let commits = (git.find_revision(name)?, git.find_revision(&format!("{name}^"))?);
            if let (Some(theirs), Some(base)) = commits {
                return Ok(Some(Self { ours, theirs, base, may_leave_out: false }));
            }
        }
        Ok(None)
    }

    /// Those of the merge that `HEAD` is, or of the rebase that has just ended, which git may have committed without
    /// a conflict. None if a plan file has changed since: the change may be about what the merge did.
    pub(super) fn finished(git: &Git, plans: &Path) -> Result<Option<Self>, Error> {
        let rebased = git.last_rebase()?;
        let may_leave_out = rebased.is_some();
        let sides = match rebased {
            Some(it) => Some(it),
            None if git.find_revision("HEAD^3")?.is_some() => None,
            None => git.find_revision("HEAD^1")?.zip(git.find_revision("HEAD^2")?),
        };
        let Some((ours, theirs)) = sides else { return Ok(None) };
        if !git.status(&[plans])?.is_empty() {
            return Ok(None);
        }
        let base = git.merge_base(&ours, &theirs)?;
        Ok(base.map(|base| Self { ours, theirs, base, may_leave_out }))
    }
}
