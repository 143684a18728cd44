//! `git resolve --check`: merges the parents of a merge commit by meaning, and compares the result with the commit. Writes
//! nothing.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::git::{Git, Head, LineMerge, Oid, UNSHALLOW};
use crate::plan::merge::{self, Versions};

#[derive(Debug, Clone, Serialize)]
pub struct GitReviewReport {
    pub merge: String,
    /// The files that a person should check; [`ReviewedFile::state`] lists the reasons.
    pub files: Vec<ReviewedFile>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ReviewedFile {
    pub path: String,
    /// `lost`: entries of a side are missing; `differs`: the text is not that of a merge by meaning; `conflict`: a merge by
    /// meaning has a conflict, which only a person can resolve.
    pub state: &'static str,
    /// The attempts, notes and confirmations that are missing.
    pub lost: Vec<String>,
    /// The status that the file has, and the one that a merge by meaning gives. Empty if they are the same, if one is
    /// missing, or if the merge by meaning has a conflict.
    pub status: Vec<String>,
}

impl GitReviewReport {
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// 6 if entries were lost, or if a status is not the one that a merge by meaning gives.
    pub fn exit_code(&self) -> u8 {
        let is_wrong = |it: &ReviewedFile| !it.lost.is_empty() || !it.status.is_empty();
        if self.files.iter().any(is_wrong) { 6 } else { 0 }
    }
}

type Files = BTreeMap<Vec<u8>, Oid>;

/// Checks the merge that a revision names. Without a revision, checks the last merge in the history of `HEAD`, which may be
/// `HEAD` itself.
pub fn git_review(context: &Context, revision: Option<&str>) -> Result<GitReviewReport, Error> {
    let (git, Head { is_shallow, .. }) = Git::with_head(context.plans.root())?;
    let merge = match revision {
        Some(revision) => git.revision(revision)?,
        None => last_merge(&git, is_shallow)?,
    };
    let parent = |nth: u32| git.find_revision(&format!("{merge}^{nth}"));
    let (ours, theirs) = (parent(1)?, parent(2)?);
    if is_shallow && ours.is_none() {
        return Err(cut_off(&format!("lacks the parents of `{merge}`")));
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Err(Error::usage(format!("`{merge}` is not a merge"), "name a commit with two parents"));
    };
    let base = git.merge_base(&ours, &theirs)?;
    if is_shallow && base.is_none() {
        return Err(cut_off(&format!("lacks the common ancestor of the parents of `{merge}`")));
    }
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    let files = |commit: &Oid| -> Result<Files, Error> {
        let below = if plans.as_os_str().is_empty() { Vec::new() } else { vec![&plans] };
        let entries = git.tree_entries(commit, &below)?.into_iter();
        let is_plan_file = |path: &[u8]| path.ends_with(b".md");
        Ok(entries
            .filter(|it| it.kind == "blob" && is_plan_file(&it.path))
            .map(|it| (it.path, it.oid))
            .collect())
    };
    let before = base.as_ref().map(files).transpose()?.unwrap_or_default();
    let (ours, theirs, now) = (files(&ours)?, files(&theirs)?, files(&merge)?);
    let (lines, blobs) = (LineMerge::new(&git.root, &git.git_dir, 7), git.blobs());
    let mut report = GitReviewReport { merge: merge.to_string(), files: Vec::new() };
    for (path, own) in &ours {
        let (Some(other), Some(result)) = (theirs.get(path), now.get(path)) else { continue };
        let common = before.get(path);
        if own == other || common == Some(own) || common == Some(other) {
            continue;
        }
        let common = common.map(|it| blobs.read(it)).transpose()?;
        let (own, other, result) = (&blobs.read(own)?, &blobs.read(other)?, &blobs.read(result)?);
        let name = String::from_utf8_lossy(path);
        let versions = Versions { path: &name, base: common.as_deref(), ours: own, theirs: other };
        let merged = merge::merge(versions, &context.config.words, &lines);
        let mut lost = merge::lost(own, result);
        lost.extend(
            merge::lost(other, result).into_iter().filter(|it| !lost.contains(it)).collect::<Vec<_>>(),
        );
        let status = [result, &merged.bytes].map(|it| merge::status_of(it));
        let status = match status {
            [Some(is), Some(would_be)] if merged.is_clean && is != would_be => vec![is, would_be],
            _ => Vec::new(),
        };
        let state = match (lost.is_empty(), merged.is_clean) {
            (false, _) => "lost",
            (true, false) => "conflict",
            (true, true) if merged.bytes != *result => "differs",
            (true, true) => continue,
        };
        let path = Path::new(name.as_ref()).strip_prefix(&plans).unwrap_or(Path::new(name.as_ref()));
        let path = shown_path(&context.root_name(), &path.to_string_lossy());
        report.files.push(ReviewedFile { path, state, lost, status });
    }
    Ok(report)
}

fn cut_off(how: &str) -> Error {
    Error::conflict("not-checked", format!("the clone is shallow and {how}"), UNSHALLOW)
}

fn last_merge(git: &Git, is_shallow: bool) -> Result<Oid, Error> {
    let none = || match is_shallow {
        true => cut_off("its part of the history contains no merge with parents"),
        false => Error::usage("the history of HEAD contains no merge", "name a merge commit"),
    };
    let Some(head) = git.head_commit()? else { return Err(none()) };
    let line = git.call(&["rev-list", "--merges", "--max-count=1"]).oids([&head]).line()?;
    Oid::read(line.as_bytes()).ok_or_else(none)
}
