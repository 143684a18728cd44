//! The commits whose changes are merged.

use std::path::Path;

use crate::api::error::Error;
use crate::git::{Git, Oid};

pub(super) struct Merging {
    pub(super) ours: Oid,
    pub(super) theirs: Oid,
    /// What the changes of both count from.
    pub(super) base: Oid,
}

impl Merging {
    /// Those of the merge, the rebase or the cherry-pick that is under way.
    pub(super) fn under_way(git: &Git) -> Result<Option<Self>, Error> {
        let Some(ours) = git.head_commit()? else { return Ok(None) };
        if let Some(theirs) = git.find_revision("MERGE_HEAD")? {
            let base = git.merge_base(&ours, &theirs)?;
            return Ok(base.map(|base| Self { ours, theirs, base }));
        }
        for name in ["REBASE_HEAD", "CHERRY_PICK_HEAD"] {
            let commits = (git.find_revision(name)?, git.find_revision(&format!("{name}^"))?);
            if let (Some(theirs), Some(base)) = commits {
                return Ok(Some(Self { ours, theirs, base }));
            }
        }
        Ok(None)
    }

    /// Those of the merge that `HEAD` is, which git may have committed without a conflict. None if a plan file has
    /// changed since: the change may be about what the merge did.
    pub(super) fn finished(git: &Git, plans: &Path) -> Result<Option<Self>, Error> {
        let parents = (git.find_revision("HEAD^1")?, git.find_revision("HEAD^2")?);
        let (Some(ours), Some(theirs)) = parents else { return Ok(None) };
        let is_of_more = git.find_revision("HEAD^3")?.is_some();
        if is_of_more || !git.status(&[plans])?.is_empty() {
            return Ok(None);
        }
        let base = git.merge_base(&ours, &theirs)?;
        Ok(base.map(|base| Self { ours, theirs, base }))
    }
}
