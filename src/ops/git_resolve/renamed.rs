//! Steps that one side moved to a path at which the other side has another step. Git merges the other side's work into the
//! moved file, and stages the result as the version of the side that moved the step.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Resolving;
use super::places::{Files, files_in};
use crate::api::error::Error;
use crate::git::Oid;
use crate::plan::merge::{self, Identity, Merged, Versions, markers};
use crate::store::changed_after_removal::number_of;

/// A side's version of a file.
pub(super) struct Version {
    pub(super) text: Vec<u8>,
    /// If not, both sides changed the same lines of a step that this side moved.
    pub(super) is_clean: bool,
}

/// The versions of a step that one side moved.
pub(super) struct Renamed {
    /// The path to which the side moved the step.
    path: PathBuf,
    is_ours: bool,
    pub(super) base: Vec<u8>,
    /// The version of the side that moved the step.
    pub(super) own: Vec<u8>,
    /// The version of the other side, and its path.
    pub(super) other: (PathBuf, Vec<u8>),
}

impl Renamed {
    /// The merged step, with `own` and `other` in place of the versions of the two sides.
    pub(super) fn merged(&self, resolving: &Resolving<'_>, own: &[u8], other: &[u8]) -> Merged {
        let path = format!("plans/{}", self.path.to_string_lossy());
        let (ours, theirs) = if self.is_ours { (own, other) } else { (other, own) };
        resolving.merge(Versions { path: &path, base: Some(&self.base), ours, theirs })
    }
}

impl Resolving<'_> {
    /// A side's version of a file: normally the staged text. If the side renamed the file, and git could not merge the work
    /// of the other side into it, the staged text has longer conflict markers. The two are then merged by meaning. If git
    /// took another step for the renamed one, the version is that of the side's commit. If that commit is not known or has
    /// no such file, the version is picked from the staged text.
    pub(super) fn own_version(&self, path: &Path, staged: &Oid, is_ours: bool) -> Result<Version, Error> {
        let text = self.blob(staged)?;
        let longer = markers::SIZES.skip(1);
        let Some(picked) = longer.into_iter().find_map(|size| markers::pick(&text, size)) else {
            return Ok(Version { text, is_clean: true });
        };
        if let Some(it) = self.renamed(path, staged, is_ours)? {
            let merged = it.merged(self, &it.own, &it.other.1);
            return Ok(Version { text: merged.bytes, is_clean: merged.is_clean });
        }
        let own = self.commit_of(is_ours)?.map(|it| self.committed(&it, path)).transpose()?.flatten();
        let text = own.unwrap_or(if is_ours { picked.ours } else { picked.theirs });
        Ok(Version { text, is_clean: true })
    }

    /// The versions of the step at `path`, if a side moved it there and git staged a merged text as the side's version.
    pub(super) fn renamed(&self, path: &Path, staged: &Oid, is_ours: bool) -> Result<Option<Renamed>, Error> {
        let (Some(merging), Some(directory)) = (&self.merging, path.parent()) else { return Ok(None) };
        let (own, other) = match is_ours {
            true => (&merging.ours, &merging.theirs),
            false => (&merging.theirs, &merging.ours),
        };
        let own = self.steps_in(own, directory)?;
        let Some(oid) = own.get(path).filter(|it| *it != staged) else { return Ok(None) };
        let text = self.blob(oid)?;
        let Some(identity) = merge::identity(&text) else { return Ok(None) };
        let base = self.steps_in(&merging.base, directory)?;
        let Some((from, known)) = self.single_changed(&base, &own, &identity)?.filter(|it| it.0 != path)
        else {
            return Ok(None);
        };
        let others = self.steps_in(other, directory)?;
        // The other side may have changed the title of the step, or moved it, too.
        let same = others.get(&from).map(|it| self.blob(it)).transpose()?;
        let same = same.filter(|it| merge::likeness(it, &known) > 0 || merge::are_named_alike(it, &known));
        let other = match same {
            Some(text) => Some((from, text)),
            None => self.single_changed(&others, &base, &identity)?,
        };
        let path = path.to_path_buf();
        Ok(other.map(|other| Renamed { path, is_ours, base: known, own: text, other }))
    }

    fn commit_of(&self, is_ours: bool) -> Result<Option<Oid>, Error> {
        match is_ours {
            true => Ok(self.git.head_commit()?),
            false => Ok(self.merging.as_ref().map(|it| it.theirs.clone())),
        }
    }

    fn committed(&self, commit: &Oid, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        let path = self.plans.join(path);
        let name = [commit.as_str().as_bytes(), b":", path.as_os_str().as_bytes()].concat();
        Ok(self.blobs.find(&name)?)
    }

    /// The files of a plan's steps in a commit.
    fn steps_in(&self, commit: &Oid, directory: &Path) -> Result<Files, Error> {
        let mut files = files_in(self.git, commit, &self.plans, directory)?;
        files.retain(|path, _| path.parent() == Some(directory) && number_of(path).is_some());
        Ok(files)
    }

    /// The step with this identity, among the files that another commit lacks or has with another text. None if there are
    /// several.
    fn single_changed(
        &self,
        among: &Files,
        than: &Files,
        identity: &Identity,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, Error> {
        let mut found = Vec::new();
        for (path, oid) in among.iter().filter(|(path, oid)| than.get(*path) != Some(oid)) {
            let text = self.blob(oid)?;
            if merge::identity(&text).as_ref() == Some(identity) {
                found.push((path.clone(), text));
            }
        }
        let one = found.pop().filter(|_| found.is_empty());
        Ok(one)
    }
}
