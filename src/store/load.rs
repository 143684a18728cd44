//! Loads plans into memory: all of them through the index, or a few from their files.
//!
//! [`LoadQuery`] loads plans together with everything on which an answer about them depends; [`one_plan`] reads one
//! directory.

mod again;
mod collect;
mod decode;
mod lengths;
pub(crate) mod parallel;
mod plan_scope;
mod query;
pub(crate) mod refresh;
pub(crate) mod scan;
mod settled;
mod state;
mod step_scope;

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::Views;
use crate::disk::{self, DiskError, FileKind, ScanEntry};
use crate::index::{Key, Stamp};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::read::{self, Bodies, Content, PlanSources, Source, Unread};
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;

pub(crate) use again::KeptPlans;
pub(crate) use parallel::{at_once, map};
pub(crate) use plan_scope::near;
pub(crate) use query::{LoadQuery, Loaded};
pub(crate) use refresh::{Fresh, IndexCheck, Refresh, Wanted};
pub(crate) use scan::hashes_in;
pub(crate) use settled::{DecisionFiles, settled_all, settled_plan};
pub(crate) use state::{IndexState, index_state, reindex};
pub(crate) use step_scope::Overlay;

impl<'a> Views<'a> {
    /// Views of loaded plans.
    pub(crate) fn of(context: &Context, plans: &'a Plans) -> Self {
        let stale_seconds = context.config.stale_seconds();
        Self { plans, now: context.now, stale_seconds, root: context.root_name() }
    }
}

/// Which of two plans with the same name is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The live plan, or else the archived plan.
    LiveFirst,
    /// The archived plan, for example because the user named it by a path into the archive.
    Archived,
}

/// Frees large data in another thread, so that the answer does not wait for it.
pub(crate) fn drop_in_background(data: impl Send + 'static) {
    // If no thread can be started, the data are freed here.
    std::thread::Builder::new().name("drop".to_owned()).spawn(move || drop(data)).ok();
}

/// An entry of a plan's directory that is loaded or reported: a file of the plan, a file whose name looks like a
/// step's, or a file of a nested plan.
struct PlanEntry {
    path: String,
    meaning: Meaning,
    stamp: Stamp,
    kind: FileKind,
    /// The error, if the scan found that the file cannot be read.
    trouble: Option<Unread>,
}

enum Meaning {
    Plan,
    Step(StepNumber),
    NearMiss,
    /// A file of a plan inside another plan's directory; the string is the path of the inner directory.
    Nested(String),
}

impl Meaning {
    fn is_of_plan(&self) -> bool {
        matches!(self, Self::Plan | Self::Step(_))
    }
}

/// The entries of a scan that belong to plans, sorted by path, including plan files that cannot be read.
fn found_in(context: &Context, scan: &mut disk::Scan) -> Vec<PlanEntry> {
    let mut all: Vec<_> = scan.entries.drain(..).filter_map(found).collect();
    all.extend(scan.trouble.iter().filter_map(|it| found_trouble(context, it)));
    // Usually all entries are in one directory, so only the rest of their paths is compared.
    let shared = shared_directory(&all);
    all.sort_unstable_by(|a, b| a.path.as_bytes()[shared..].cmp(&b.path.as_bytes()[shared..]));
    all
}

/// The length of the directory that all paths share, or 0.
fn shared_directory(all: &[PlanEntry]) -> usize {
    let directory = all.first().map_or("", |it| &it.path[..it.path.rfind('/').map_or(0, |at| at + 1)]);
    if all.iter().all(|it| it.path.starts_with(directory)) { directory.len() } else { 0 }
}

/// Returns the entry for a path that could not be read, if it belongs to a plan. A plan's directory that cannot be listed
/// counts as a plan with an unreadable `plan.md`.
fn found_trouble(context: &Context, trouble: &disk::Trouble) -> Option<PlanEntry> {
    let mut path = trouble.relative.to_str()?.to_owned();
    let name = path.strip_prefix("_archive/").unwrap_or(&path);
    if PlanId::is_plan_name(name) && matches!(trouble.error, DiskError::Unreadable { .. }) {
        path.push_str("/plan.md");
    }
    let meaning = meaning_of(behind_plan(&path)?, &path)?;
    let stamp = Stamp::new(0, 0, 0, 0, 0);
    let trouble =
        matches!(meaning, Meaning::Plan | Meaning::Step(_)).then(|| unread(context, &trouble.error));
    Some(PlanEntry { path, meaning, stamp, kind: FileKind::Other, trouble })
}

fn found(entry: ScanEntry) -> Option<PlanEntry> {
    let path = entry.relative.into_os_string().into_string().ok()?;
    let meaning = meaning_of(behind_plan(&path)?, &path)?;
    let stamp = stamp_of(&meaning, &entry.stat);
    Some(PlanEntry { path, meaning, stamp, kind: entry.stat.kind, trouble: None })
}

fn stamp_of(meaning: &Meaning, stat: &disk::Stat) -> Stamp {
    match meaning.is_of_plan() {
        true => Stamp::new(stat.len, stat.mtime_ns, stat.ctime_ns, stat.ino, stat.dev),
        // The content of such an entry does not matter, only its name.
        false => Stamp::new(0, 0, 0, 0, 0),
    }
}

fn meaning_of(rest: &str, path: &str) -> Option<Meaning> {
    if let Some((directory, name)) = rest.split_once('/') {
        let is_plan = matches!(file_name::classify(name), FileName::Plan | FileName::Step(_));
        let nested = path.trim_end_matches(name).trim_end_matches('/');
        let is_nested = is_plan && !directory.starts_with("removed-");
        return is_nested.then(|| Meaning::Nested(nested.to_owned()));
    }
    match file_name::classify(rest) {
        FileName::Plan => Some(Meaning::Plan),
        FileName::Step(number) => Some(Meaning::Step(number)),
        FileName::LooksLikeStep => Some(Meaning::NearMiss),
        FileName::Other => None,
    }
}

/// The part of a path after the plan's directory; `None` if the path is not in one.
fn behind_plan(path: &str) -> Option<&str> {
    let (plan, rest) = path.strip_prefix("_archive/").unwrap_or(path).split_once('/')?;
    PlanId::is_plan_name(plan).then_some(rest)
}

/// Appended to the hash of a file with several hard links; `views.sql` removes it.
const LINKED: &str = "+";

/// Adds an entry to its plan's sources and returns its content hash, which is empty if the file could not be read. For
/// an entry that is not a file of the plan, returns the text `name` instead of a hash.
fn take(context: &Context, found: &PlanEntry, sources: &mut PlanSources) -> String {
    let name_only = || "name".to_owned();
    match &found.meaning {
        Meaning::NearMiss => {
            sources.near_misses.push(found.path.clone());
            name_only()
        }
        Meaning::Nested(directory) => {
            if sources.nested.last() != Some(directory) {
                sources.nested.push(directory.clone());
            }
            name_only()
        }
        Meaning::Plan => {
            let (source, hash) = source(context, found, &mut sources.linked);
            sources.plan = Some(source);
            hash
        }
        Meaning::Step(number) => {
            let (source, hash) = source(context, found, &mut sources.linked);
            sources.steps.push((number.clone(), source));
            hash
        }
    }
}

/// Returns the same hash as [`take`].
fn hash_of(context: &Context, found: &PlanEntry) -> String {
    take(context, found, &mut PlanSources::default())
}

/// Reads a file. If the file has several hard links, its path is added to `linked`, and its hash ends in [`LINKED`].
///
/// The suffix is needed because the file's problems depend on its number of links. When the number changes, the file must
/// be read again.
fn source(context: &Context, found: &PlanEntry, linked: &mut Vec<String>) -> (Source, String) {
    let mut is_linked = false;
    let content = match (&found.trouble, found.kind) {
        (Some(trouble), _) => Err(trouble.clone()),
        (None, FileKind::File | FileKind::Symlink) => read_snapshot(context, &found.path).map(|it| {
            is_linked = it.stat.nlink > 1;
            content(it)
        }),
        (None, kind) => Err(unread(context, &DiskError::NotAFile { path: PathBuf::from(&found.path), kind })),
    };
    let mut hash = content.as_ref().map(|it| it.etag.clone()).unwrap_or_default();
    if is_linked {
        hash.push_str(LINKED);
        linked.push(found.path.clone());
    }
    (Source { path: found.path.clone(), content }, hash)
}

pub(crate) fn read_source(context: &Context, path: &str) -> Result<Content, Unread> {
    read_snapshot(context, path).map(content)
}

fn read_snapshot(context: &Context, path: &str) -> Result<disk::Snapshot, Unread> {
    context.plans.read(Path::new(path)).map_err(|error| unread(context, &error))
}

fn content(read: disk::Snapshot) -> Content {
    Content::new(read.bytes, Time::from_nanoseconds(read.stat.mtime_ns))
}

/// Why a path could not be read. The path in the message is relative to the plans directory.
fn unread(context: &Context, error: &DiskError) -> Unread {
    let code = Code::from_text(error.code()).unwrap_or(Code::Unreadable);
    let root = format!("{}/", context.plans.root().display());
    Unread { code, message: error.to_string().replace(&root, "") }
}

/// Reads one plan directory: the live one, or else the archived one; none if there is no such plan.
pub(crate) fn one_plan(context: &Context, id: &PlanId) -> Result<Option<Plan>, Error> {
    plan_at(context, id, Side::LiveFirst)
}

/// Like [`one_plan`]; an error if there is no such plan.
pub(crate) fn existing_plan(context: &Context, id: &PlanId) -> Result<Plan, Error> {
    one_plan(context, id)?.ok_or_else(|| missing(context, id))
}

/// Like [`one_plan`], for the plan that `side` selects.
pub(crate) fn plan_at(context: &Context, id: &PlanId, side: Side) -> Result<Option<Plan>, Error> {
    let Some((directory, is_archived)) = directory_of(context, id, side) else { return Ok(None) };
    let name = directory.file_name().and_then(|it| it.to_str()).unwrap_or(id.as_str()).to_owned();
    let mut sources = PlanSources::default();
    for found in found_in(context, &mut context.plans.scan_plan(&directory)) {
        take(context, &found, &mut sources);
    }
    if sources.plan.is_none() && sources.steps.is_empty() {
        return Ok(None);
    }
    Ok(Some(read::read_plan(&PlanId::new(name), is_archived, &sources, &context.config.words, Bodies::Keep)))
}

/// Reads one plan directory by its exact name, without bodies; none if there is no plan in it.
pub(crate) fn in_directory(context: &Context, key: &Key) -> Option<Plan> {
    PlanId::is_plan_name(&key.name).then(|| scan::read_plan(context, key, Bodies::Drop)).flatten()
}

/// Finds the directory of the plan that `side` selects, and returns whether it is archived. The directory's name may be
/// spelled in another Unicode normal form.
fn directory_of(context: &Context, id: &PlanId, side: Side) -> Option<(PathBuf, bool)> {
    if !PlanId::is_plan_name(id.as_str()) {
        return None;
    }
    let is_asked = |it: &(&str, bool)| side == Side::LiveFirst || it.1;
    for (parent, is_archived) in [("", false), ("_archive", true)].into_iter().filter(is_asked) {
        let exact = Path::new(parent).join(id.as_str());
        if context.plans.is_dir(&exact) {
            return Some((exact, is_archived));
        }
        if !id.as_str().is_ascii() {
            let names = context.plans.names(Path::new(parent));
            let other = names.into_iter().find(|it| PlanId::new(it.clone()) == *id);
            if let Some(name) = other {
                return Some((Path::new(parent).join(name), is_archived));
            }
        }
    }
    None
}

/// Whether there is a directory with the plan's name; nothing in it is read.
pub(crate) fn exists(context: &Context, id: &PlanId) -> bool {
    exists_at(context, id, Side::LiveFirst)
}

pub(crate) fn exists_at(context: &Context, id: &PlanId, side: Side) -> bool {
    directory_of(context, id, side).is_some()
}

/// Whether the id means a live plan.
pub(crate) fn is_live(context: &Context, id: &PlanId) -> bool {
    directory_of(context, id, Side::LiveFirst).is_some_and(|(_, is_archived)| !is_archived)
}

/// The error for a plan that does not exist, with the nearest name.
pub(crate) fn missing(context: &Context, id: &PlanId) -> Error {
    let mut names = plan_names(context);
    names.retain(|it| it != id.as_str());
    let nearest = crate::plan::words::nearest(id.as_str(), names.iter().map(String::as_str));
    Error::NotFound { what: "plan", name: id.to_string(), nearest }
}

/// The names of the directories that may be live plans.
pub(crate) fn plan_names(context: &Context) -> Vec<String> {
    let names = context.plans.names(Path::new(""));
    names.into_iter().filter(|it| PlanId::is_plan_name(it) && context.plans.is_dir(Path::new(it))).collect()
}

/// Names that a new plan cannot have: everything in the plans directory, and archived plans.
pub(crate) fn taken_names(context: &Context) -> Vec<String> {
    let mut names = context.plans.names(Path::new(""));
    names.extend(context.plans.names(Path::new("_archive")));
    names
}

/// Makes problems for the paths that a scan could not read, unless a plan reports them: broken links, unreadable
/// directories, and special files with a plan's name.
fn scan_problems(context: &Context, trouble: Vec<disk::Trouble>) -> Vec<Problem> {
    let is_reported = |it: &disk::Trouble| found_trouble(context, it).is_some_and(|it| it.trouble.is_some());
    let problem = |it: disk::Trouble| {
        let Unread { code, message } = unread(context, &it.error);
        Problem::of_file(&it.relative.to_string_lossy(), code, message, it.error.hint().unwrap_or_default())
    };
    trouble.into_iter().filter(|it| !is_reported(it)).map(problem).collect()
}

#[cfg(test)]
mod tests;
