//! Steps whose number is taken, but that the other side has under another number.

use std::path::{Path, PathBuf};

use super::{Files, Places, files_of, is_archived, named_by, with_id_of};
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::ops::git_resolve::{Done, ResolvedFile, Resolving, Stages, with_line_ends_of};
use crate::plan::merge::{self, Merged, Versions};
use crate::store::transaction::Transaction;

/// For each step of THEIRS whose number is taken: if OURS already has the step under another number, merges the step into
/// that file of OURS.
///
/// An example is a rebase in which the step that one commit adds was renumbered, and a later commit changes the step.
///
/// Returns the files that stay in conflict, because both sides changed the same lines of a step that one of them moved. A
/// new number for the step of THEIRS would leave that step in the plan twice.
pub(in crate::ops::git_resolve) fn rehome(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    taken: &[(PathBuf, Stages)],
    done: &mut Done,
) -> Result<Vec<PathBuf>, Error> {
    let mut stuck = Vec::new();
    if taken.is_empty() {
        return Ok(stuck);
    }
    let places = Places::read(resolving)?;
    let base = resolving.merging.as_ref().map(|it| &it.base);
    let before = files_of(resolving.git, base, &resolving.plans)?;
    for (path, stages) in taken {
        let [base, Some(ours), Some(theirs)] = stages else { continue };
        let sides = Sides {
            path,
            base: base.as_ref().map(|it| resolving.blob(it)).transpose()?,
            ours: resolving.own_version(path, ours, true)?.text,
            theirs: resolving.own_version(path, theirs, false)?.text,
        };
        let open = match places.moved_by_ours(writing, &sides, stages, done)? {
            Some(home) => Some(format!("their step is {} here", resolving.shown(&home))),
            None => {
                let home = places.moved_by_theirs(&before, &sides)?;
                home.map(|it| format!("your step is {} there", resolving.shown(&it)))
            }
        };
        let Some(home) = open else { continue };
        let decided = vec![format!("{home}, and both sides changed the same lines of it")];
        let shown = resolving.shown(path);
        done.report(ResolvedFile { path: shown, state: "conflict", decided, renumbered: None });
        stuck.push(path.clone());
    }
    Ok(stuck)
}

/// A file in which each side has another step.
struct Sides<'a> {
    path: &'a Path,
    base: Option<Vec<u8>>,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl Places<'_> {
    /// Merges the step of THEIRS into the file that OURS has for it. Returns this file if they do not merge.
    fn moved_by_ours(
        &self,
        writing: &mut Transaction<'_>,
        sides: &Sides<'_>,
        stages: &Stages,
        done: &mut Done,
    ) -> Result<Option<PathBuf>, Error> {
        let (resolving, Sides { path, base, ours, theirs }) = (self.resolving, sides);
        let is_known = |it: &Path| it != *path && self.ours.contains_key(it);
        let Some((home, _)) = self.most_alike(path, [theirs, theirs], &is_known)? else { return Ok(None) };
        let plans = &resolving.context.plans;
        let (here, there) = (plans.read(path)?.bytes, plans.read(&home)?.bytes);
        resolving.check_as_left(path, stages, &here)?;
        let base = base.as_deref().filter(|it| merge::likeness(it, theirs) > 0);
        let merged = self.merged_at(&home, base, &there, theirs)?;
        if !merged.is_clean {
            return Ok(Some(home));
        }
        let kept = with_line_ends_of(&here, ours);
        let changes =
            [(path.to_path_buf(), here, kept), (home.clone(), there, named_by(&home, merged.bytes)?)];
        let changes = changes.into_iter().filter(|(_, before, after)| before != after);
        let ops = changes.map(|(path, before, after)| FileOp::Change { path, before, after });
        writing.batch("git resolve", ops.collect())?;
        let decided = format!("their step is already in {}", resolving.shown(&home));
        done.set_resolved(&resolving.shown(path), Some(&decided), None);
        done.clean.extend([path.to_path_buf(), home]);
        Ok(None)
    }

    /// The file to which THEIRS moved the step of OURS, if the two do not merge. If they merge, `reunite` does it.
    fn moved_by_theirs(&self, before: &Files, sides: &Sides<'_>) -> Result<Option<PathBuf>, Error> {
        let Sides { path, base, ours, .. } = sides;
        let is_new =
            |it: &Path| !is_archived(it) && self.theirs.contains_key(it) && !self.ours.contains_key(it);
        let Some((home, there)) = self.most_alike(path, [ours, ours], &is_new)? else { return Ok(None) };
        let base = base.clone().filter(|it| merge::likeness(it, ours) > 0);
        let base = base.map_or_else(|| self.base_of(before, path, ours), |it| Ok(Some(Some(it))))?;
        let merged = self.merged_at(&home, base.flatten().as_deref(), &there, ours)?;
        Ok((!merged.is_clean).then_some(home))
    }

    /// A file merged with another version of its step. The versions differ in the number, so the base and the other version
    /// get the id of the file.
    pub(super) fn merged_at(
        &self,
        home: &Path,
        base: Option<&[u8]>,
        now: &[u8],
        other: &[u8],
    ) -> Result<Merged, Error> {
        let named = format!("plans/{}", home.to_string_lossy());
        let base = base.map(|it| with_id_of(now, it.to_vec())).transpose()?;
        let theirs = with_id_of(now, other.to_vec())?;
        let of = Versions { path: &named, base: base.as_deref(), ours: now, theirs: &theirs };
        Ok(self.resolving.merge(of))
    }
}
