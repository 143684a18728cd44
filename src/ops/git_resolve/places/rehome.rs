//! Steps whose number is taken, but that the other side has under another number.

use std::path::{Path, PathBuf};

use super::{Places, is_archived, named_by, with_id_of};
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::ops::git_resolve::{Done, ResolvedFile, Resolving, Side, Stages, with_line_ends_of};
use crate::plan::merge::{self, Merged, Versions};
use crate::store::transaction::Transaction;

/// Merges a step into the file that the other side has for it, if the other side has another step at its path.
///
/// If git took two different steps for one renamed file, only one side has the file's path. The file gets the step of that
/// side. If both sides have the path, this happens only with `renumbers`: the file gets the step of OURS, and the step of
/// THEIRS is merged if OURS already has it under another number. An example is a rebase in which the step that one commit
/// adds was renumbered, and a later commit changes the step.
///
/// Returns the files that stay in conflict although they could get a new number, because that could leave a step in the plan
/// twice: both sides changed the same lines of a step that one of them moved, or the file of a step is not found.
pub(in crate::ops::git_resolve) fn rehome(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    taken: &[(PathBuf, Stages)],
    renumbers: bool,
    done: &mut Done,
) -> Result<Vec<PathBuf>, Error> {
    let mut stuck = Vec::new();
    if taken.is_empty() {
        return Ok(stuck);
    }
    let places = Places::read(resolving)?;
    for (path, stages) in taken {
        let [base, Some(ours), Some(theirs)] = stages else { continue };
        let owner = places.owner(path);
        if owner.is_none() && !renumbers {
            continue;
        }
        let sides = Sides {
            path,
            base: base.as_ref().map(|it| resolving.blob(it)).transpose()?,
            ours: resolving.own_version(path, ours, true)?.text,
            theirs: resolving.own_version(path, theirs, false)?.text,
        };
        let is_ours = owner != Some(Side::Theirs);
        let home = places.merge_home(writing, &sides, stages, is_ours, done)?;
        if home.is_none() && done.clean.contains(path) {
            continue;
        }
        let decided = if let Some(home) = home.as_ref().filter(|_| is_ours) {
            format!("their step is {} here, and {SAME_LINES}", resolving.shown(home))
        } else if let Some(home) = home.map_or_else(|| places.moved_by_theirs(&sides), |it| Ok(Some(it)))? {
            format!("your step is {} there, and {SAME_LINES}", resolving.shown(&home))
        } else if owner.is_some() {
            DIFFERENT.to_owned()
        } else {
            continue;
        };
        let decided = vec![decided];
        let shown = resolving.shown(path);
        done.report(ResolvedFile { path: shown, state: "conflict", decided, renumbered: None });
        stuck.push(path.clone());
    }
    Ok(stuck)
}

const SAME_LINES: &str = "both sides changed the same lines of it";

const DIFFERENT: &str = "one side has another step here, or has moved the step and changed its title; \
    keep the text that is right";

/// A file in which each side has another step.
struct Sides<'a> {
    path: &'a Path,
    base: Option<Vec<u8>>,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl Places<'_> {
    /// The side that has this path, if the other side lacks it.
    fn owner(&self, path: &Path) -> Option<Side> {
        // While a stash is applied, the files of THEIRS are not known.
        self.resolving.merging.as_ref()?;
        match (self.ours.contains_key(path), self.theirs.contains_key(path)) {
            (true, false) => Some(Side::Ours),
            (false, true) => Some(Side::Theirs),
            _ => None,
        }
    }

    /// Gives the file the step of OURS, or of THEIRS, and merges the other side's step into the file that the first side has
    /// for it. Returns this file if the two do not merge.
    fn merge_home(
        &self,
        writing: &mut Transaction<'_>,
        sides: &Sides<'_>,
        stages: &Stages,
        is_ours: bool,
        done: &mut Done,
    ) -> Result<Option<PathBuf>, Error> {
        let (resolving, Sides { path, base, ours, theirs }) = (self.resolving, sides);
        let (kept, moved, files) =
            if is_ours { (ours, theirs, &self.ours) } else { (theirs, ours, &self.theirs) };
        let is_known = |it: &Path| it != *path && files.contains_key(it);
        let Some((home, _)) = self.most_alike(path, [moved, moved], &is_known)? else { return Ok(None) };
        let plans = &resolving.context.plans;
        let (here, there) = (plans.read(path)?.bytes, plans.read(&home)?.bytes);
        resolving.check_as_left(path, stages, &here)?;
        let base = base.as_deref().filter(|it| merge::likeness(it, moved) > 0);
        let merged = self.merged_at(&home, base, &there, moved)?;
        if !merged.is_clean {
            return Ok(Some(home));
        }
        let kept = with_line_ends_of(&here, kept);
        let changes =
            [(path.to_path_buf(), here, kept), (home.clone(), there, named_by(&home, merged.bytes)?)];
        let changes = changes.into_iter().filter(|(_, before, after)| before != after);
        let ops = changes.map(|(path, before, after)| FileOp::Change { path, before, after });
        writing.batch("git resolve", ops.collect())?;
        let whose = if is_ours { "their step is already in" } else { "your step is now in" };
        let decided = format!("{whose} {}", resolving.shown(&home));
        done.set_resolved(&resolving.shown(path), Some(&decided), None);
        done.unpaired.extend(files.get(*path).map(|oid| (path.to_path_buf(), oid.clone())));
        done.own.push(path.to_path_buf());
        done.clean.extend([path.to_path_buf(), home]);
        Ok(None)
    }

    /// The file to which THEIRS moved the step of OURS, if the two do not merge. If they merge, `reunite` does it.
    fn moved_by_theirs(&self, sides: &Sides<'_>) -> Result<Option<PathBuf>, Error> {
        let Sides { path, base, ours, .. } = sides;
        let is_new =
            |it: &Path| !is_archived(it) && self.theirs.contains_key(it) && !self.ours.contains_key(it);
        let Some((home, there)) = self.most_alike(path, [ours, ours], &is_new)? else { return Ok(None) };
        let base = base.clone().filter(|it| merge::likeness(it, ours) > 0);
        let base = base.map_or_else(|| self.base_of(path, ours), |it| Ok(Some(Some(it))))?;
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
