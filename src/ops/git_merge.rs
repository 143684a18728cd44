//! `git merge-driver`: merges one file as git asks for it, and writes the result where git expects it.

use std::path::{Path, PathBuf};

use crate::api::error::Error;
use crate::disk::{RealDisk, read_file, replace_temporary};
use crate::git::LineMerge;
use crate::plan::merge::{self, Merged, Versions};
use crate::plan::words::Words;

/// What git passes to a merge driver.
#[derive(Debug, Clone)]
pub struct MergeDriverRequest {
    /// `%O`, `%A` and `%B`; the result goes to `ours`.
    pub base: PathBuf,
    pub ours: PathBuf,
    pub theirs: PathBuf,
    /// Where the result goes instead; `ours` then stays as it is.
    pub output: Option<PathBuf>,
    /// `%L`.
    pub marker_size: u32,
    /// `%P`, relative to the repository's root.
    pub path: String,
}

/// Merges the files. A result that is not clean has conflict markers or, if a side is not a text, equals OURS.
pub fn merge_driver(directory: &Path, request: &MergeDriverRequest, words: &Words) -> Result<Merged, Error> {
    let full = |path: &Path| directory.join(path);
    let target = full(&request.ours);
    let read = |path: &Path| read_file(&RealDisk, &full(path));
    let (base, ours, theirs) = (read(&request.base)?, read(&request.ours)?, read(&request.theirs)?);
    let lines = LineMerge::new(directory, target.parent().unwrap_or(directory), request.marker_size);
    // git passes an empty file as the base if both sides added the path.
    let base = (!base.is_empty()).then_some(base.as_slice());
    let versions = Versions { path: &request.path, base, ours: &ours, theirs: &theirs };
    let merged = merge::merge(versions, words, &lines);
    let output = request.output.as_deref().map(full);
    if output.is_some() || merged.bytes != ours {
        replace_temporary(&output.unwrap_or(target), &merged.bytes)?;
    }
    Ok(merged)
}
