//! Plans into memory: all of them, through the index or from the files, or the few that a write needs.

mod around;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::disk::{self, DiskError, FileKind, ScanEntry};
use crate::engine::context::{Context, Notice, Reading};
use crate::engine::error::Error;
use crate::engine::resolve::Side;
use crate::index::freshness::{self, Freshness, Stamp};
use crate::index::{FileRow, Index, IndexError, Opened, Place, Snapshot};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::read::{self, Bodies, Content, PlanSources, Source, Unread};
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;

pub(crate) use around::{Own, around};

/// Loads all plans as they are now, live and archived, with every problem between them.
///
/// The index answers if no file changed since it was made; if anything differs it is made anew first.
pub(crate) fn all(context: &Context) -> Result<Plans, Error> {
    match context.reading {
        Reading::Files => Ok(from_files(context, Bodies::Drop).plans),
        // Whatever the index cannot hold, the files still say.
        Reading::Index => Ok(ask(context, |index| index.load())
            .map_or_else(|_| from_files(context, Bodies::Drop).plans, Plans::new)),
    }
}

/// A question to an index, which may be asked twice.
type Question<'a, T> = &'a dyn Fn(&Snapshot<'_>) -> Result<T, IndexError>;

/// Asks an index that holds what the files hold now: the kept one, or with `--no-index` one in memory.
///
/// An index that cannot be kept, or fails on the way, is told of and replaced by one in memory for this answer.
pub(crate) fn ask<T>(
    context: &Context,
    question: impl Fn(&Snapshot<'_>) -> Result<T, IndexError>,
) -> Result<T, Error> {
    let directory = match context.reading {
        Reading::Index => context.plans.runtime_dir(),
        Reading::Files => None,
    };
    let Some(directory) = directory else { return Ok(ask_memory(context, &question)?) };
    match ask_kept(context, &directory, &question) {
        Err(error) if !error.is_the_askers() => {
            (context.tell)(Notice::IndexInMemory { why: error.to_string() });
            Ok(ask_memory(context, &question)?)
        }
        answer => Ok(answer?),
    }
}

fn ask_memory<T>(context: &Context, question: Question<'_, T>) -> Result<T, IndexError> {
    let (mut index, _) = Index::open(Place::Memory)?;
    fill(context, &mut index)?;
    question(&index.snapshot()?)
}

fn ask_kept<T>(context: &Context, directory: &Path, question: Question<'_, T>) -> Result<T, IndexError> {
    let (mut index, opened) = Index::open(Place::Directory(directory))?;
    if let Opened::Rebuilt { why } = opened {
        (context.tell)(Notice::IndexRebuilt { why });
    }
    match ask_fresh(context, &mut index, question) {
        Ok(Some((answer, settled))) => {
            // The contents are the same, so the next look need not read them again; if it cannot be said, it will.
            index.restamp(&settled).ok();
            return Ok(answer);
        }
        Ok(None) => {}
        Err(IndexError::Damaged { what }) => (context.tell)(Notice::IndexRebuilt { why: what }),
        Err(error) => return Err(error),
    }
    fill(context, &mut index)?;
    question(&index.snapshot()?)
}

fn fill(context: &Context, index: &mut Index) -> Result<(), IndexError> {
    let loaded = from_files(context, Bodies::Keep);
    index.replace(&loaded.rows, &loaded.plans.into_vec())
}

/// Answers from the index if it speaks of the files as they are; contents are read only where a stamp leaves a doubt.
///
/// Rows and answer come from one snapshot, so that another process's writing cannot fall between them.
fn ask_fresh<T>(
    context: &Context,
    index: &mut Index,
    question: Question<'_, T>,
) -> Result<Option<(T, Vec<FileRow>)>, IndexError> {
    let read_at = clock(context);
    let snapshot = index.snapshot()?;
    let rows = snapshot.files()?;
    let mut found: Vec<_> = plan_files(context).into_iter().map(|it| (it.path, it.stamp)).collect();
    found.push(words_row(context));
    let doubtful = match freshness::compare(&rows, &found) {
        Freshness::Same => Vec::new(),
        Freshness::Differs => return Ok(None),
        Freshness::Doubt(paths) => paths,
    };
    let mut settled = Vec::new();
    for path in doubtful {
        let Some(row) = rows.iter().find(|it| it.path == path) else { return Ok(None) };
        let hash = context.plans.read(Path::new(&path)).map(|it| etag(&it.bytes)).unwrap_or_default();
        if hash != row.hash {
            return Ok(None);
        }
        let stamp = found.iter().find(|(it, _)| *it == path).map(|(_, stamp)| *stamp);
        settled.extend(stamp.map(|it| FileRow::new(path, it, hash, read_at)));
    }
    Ok(Some((question(&snapshot)?, settled)))
}

fn clock(context: &Context) -> i64 {
    i64::try_from(context.plans.now_ns()).unwrap_or(i64::MAX)
}

/// The project's own status words decide how files are read, so they stand among the files.
fn words_row(context: &Context) -> (String, Stamp) {
    let hash = blake3::hash(format!("{:?}", context.config.words).as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
    ("planwatch.toml".to_owned(), Stamp::new(u64::from_le_bytes([a, b, c, d, e, f, g, h]) >> 1, 0, 0, 0, 0))
}

/// A content hash as files and surfaces show it.
pub(crate) fn etag(bytes: &[u8]) -> String {
    let mut hash = blake3::hash(bytes).to_hex().to_string();
    hash.truncate(32);
    hash
}

/// Everything that was read, and what the index remembers of each file.
struct Loaded {
    plans: Plans,
    rows: Vec<FileRow>,
}

/// A path that says something about a plan: a file of one, a near miss, a nested plan.
struct Found {
    path: String,
    meaning: Meaning,
    stamp: Stamp,
    kind: FileKind,
    /// Why nothing can be said of what the name leads to.
    trouble: Option<Unread>,
}

enum Meaning {
    Plan,
    Step(StepNumber),
    NearMiss,
    /// A file of a plan inside a plan; the path is that directory's.
    Nested(String),
}

/// Lists what the plans directory holds of plans, sorted by path.
fn plan_files(context: &Context) -> Vec<Found> {
    found_in(context, &context.plans.scan())
}

/// What a scan says of plans, sorted by path; a plan file that cannot be looked at is there all the same.
fn found_in(context: &Context, scan: &disk::Scan) -> Vec<Found> {
    let mut all: Vec<_> = scan.entries.iter().filter_map(found).collect();
    all.extend(scan.trouble.iter().filter_map(|it| found_trouble(context, it)));
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

fn found_trouble(context: &Context, trouble: &disk::Trouble) -> Option<Found> {
    let path = trouble.relative.to_str()?.to_owned();
    let meaning = meaning_of(place_of(&path)?.rest, &path)?;
    let stamp = Stamp::new(0, 0, 0, 0, 0);
    let trouble =
        matches!(meaning, Meaning::Plan | Meaning::Step(_)).then(|| unread(context, &trouble.error));
    Some(Found { path, meaning, stamp, kind: FileKind::Other, trouble })
}

fn found(entry: &ScanEntry) -> Option<Found> {
    let path = entry.relative.to_str()?.to_owned();
    let meaning = meaning_of(place_of(&path)?.rest, &path)?;
    let stat = entry.stat;
    let stamp = match meaning {
        Meaning::Plan | Meaning::Step(_) => {
            Stamp::new(stat.len, stat.mtime_ns, stat.ctime_ns, stat.ino, stat.dev)
        }
        // Only the name counts, whatever is in it.
        Meaning::NearMiss | Meaning::Nested(_) => Stamp::new(0, 0, 0, 0, 0),
    };
    Some(Found { path, meaning, stamp, kind: stat.kind, trouble: None })
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

/// Where a path stands: its plan, whether that is archived, and the names behind it.
struct PlaceOf<'a> {
    plan: &'a str,
    is_archived: bool,
    rest: &'a str,
}

fn place_of(path: &str) -> Option<PlaceOf<'_>> {
    let (is_archived, inside) = match path.strip_prefix("_archive/") {
        Some(inside) => (true, inside),
        None => (false, path),
    };
    let (plan, rest) = inside.split_once('/')?;
    PlanId::is_plan_name(plan).then_some(PlaceOf { plan, is_archived, rest })
}

fn from_files(context: &Context, bodies: Bodies) -> Loaded {
    let read_at = clock(context);
    let mut directories: BTreeMap<(bool, String), PlanSources> = BTreeMap::new();
    let (words, stamp) = words_row(context);
    let mut rows = vec![FileRow::new(words, stamp, "words", read_at)];
    for found in plan_files(context) {
        let Some(place) = place_of(&found.path) else { continue };
        let sources = directories.entry((place.is_archived, place.plan.to_owned())).or_default();
        let hash = take(context, &found, sources);
        rows.push(FileRow::new(found.path, found.stamp, hash, read_at));
    }
    let is_plan = |it: &PlanSources| it.plan.is_some() || !it.steps.is_empty();
    let plans = directories.into_iter().filter(|(_, it)| is_plan(it));
    let plans = plans.map(|((archived, id), it)| {
        read::read_plan(&PlanId::new(id), archived, &it, &context.config.words, bodies)
    });
    Loaded { plans: Plans::judged(plans.collect()), rows }
}

/// Reads a file into its plan's sources and returns its content hash; empty if it could not be read.
fn take(context: &Context, found: &Found, sources: &mut PlanSources) -> String {
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
            let (source, hash) = source(context, found);
            sources.plan = Some(source);
            hash
        }
        Meaning::Step(number) => {
            let (source, hash) = source(context, found);
            sources.steps.push((number.clone(), source));
            hash
        }
    }
}

fn source(context: &Context, found: &Found) -> (Source, String) {
    let content = match (&found.trouble, found.kind) {
        (Some(trouble), _) => Err(trouble.clone()),
        (None, FileKind::File | FileKind::Symlink) => read_source(context, &found.path),
        (None, kind) => Err(unread(context, &DiskError::NotAFile { path: PathBuf::from(&found.path), kind })),
    };
    let hash = content.as_ref().map(|it| it.etag.clone()).unwrap_or_default();
    (Source { path: found.path.clone(), content }, hash)
}

pub(crate) fn read_source(context: &Context, path: &str) -> Result<Content, Unread> {
    context.plans.read(Path::new(path)).map(content).map_err(|error| unread(context, &error))
}

fn content(read: disk::Snapshot) -> Content {
    let modified = Time::from_nanoseconds(read.stat.mtime_ns);
    Content { etag: etag(&read.bytes), bytes: read.bytes, modified }
}

/// Says what is wrong with a path below the plans directory as it is called there.
fn unread(context: &Context, error: &DiskError) -> Unread {
    let code = Code::from_text(error.code()).unwrap_or(Code::Unreadable);
    let root = format!("{}/", context.plans.root().display());
    Unread { code, message: error.to_string().replace(&root, "") }
}

/// Loads one plan from its files, and with it the plans that its dependencies and its program name.
///
/// A live plan wins over an archived one. Problems that only all plans together show are left out.
pub(crate) fn plan_with_dependencies(context: &Context, id: &PlanId) -> Result<Plans, Error> {
    let plan = one_plan(context, id)?.ok_or_else(|| missing(context, id))?;
    with_named(context, plan)
}

/// Adds the plans that a plan's steps and its program line name.
fn with_named(context: &Context, plan: Plan) -> Result<Plans, Error> {
    let mut wanted: BTreeSet<PlanId> =
        plan.steps.iter().flat_map(|it| &it.depends).map(|it| it.plan.clone()).collect();
    wanted.extend(plan.program.clone());
    wanted.remove(&plan.id);
    let mut plans = vec![plan];
    for id in wanted {
        plans.extend(one_plan(context, &id)?);
    }
    Ok(Plans::judged(plans))
}

/// Reads one plan directory, live before archived; none if there is no such plan.
pub(crate) fn one_plan(context: &Context, id: &PlanId) -> Result<Option<Plan>, Error> {
    plan_at(context, id, Side::LiveFirst)
}

/// As [`one_plan`], of the side that was named.
pub(crate) fn plan_at(context: &Context, id: &PlanId, side: Side) -> Result<Option<Plan>, Error> {
    let Some((directory, is_archived)) = directory_of(context, id, side) else { return Ok(None) };
    let name = directory.file_name().and_then(|it| it.to_str()).unwrap_or(id.as_str()).to_owned();
    let mut sources = PlanSources::default();
    for found in found_in(context, &context.plans.scan_plan(&directory)) {
        take(context, &found, &mut sources);
    }
    if sources.plan.is_none() && sources.steps.is_empty() {
        return Ok(None);
    }
    Ok(Some(read::read_plan(&PlanId::new(name), is_archived, &sources, &context.config.words, Bodies::Keep)))
}

/// Finds a plan's directory, live before archived, also where its name is spelled in another normal form.
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

/// Returns whether there is a directory that can be the plan; nothing in it is read.
pub(crate) fn exists(context: &Context, id: &PlanId) -> bool {
    exists_at(context, id, Side::LiveFirst)
}

/// As [`exists`], of the side that was named.
pub(crate) fn exists_at(context: &Context, id: &PlanId, side: Side) -> bool {
    directory_of(context, id, side).is_some()
}

/// Returns whether the id means a live plan.
pub(crate) fn is_live(context: &Context, id: &PlanId) -> bool {
    directory_of(context, id, Side::LiveFirst).is_some_and(|(_, is_archived)| !is_archived)
}

/// The error for a plan that is not there, with the nearest name.
pub(crate) fn missing(context: &Context, id: &PlanId) -> Error {
    let mut names = plan_names(context);
    names.retain(|it| it != id.as_str());
    let nearest = crate::plan::words::nearest(id.as_str(), names.iter().map(String::as_str));
    Error::NotFound { what: "plan", name: id.to_string(), nearest }
}

/// The names of directories that may be plans, live ones only.
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

/// What the scan could not look at: broken links, unreadable directories, special files with a plan's name.
pub(crate) fn scan_problems(context: &Context) -> Vec<Problem> {
    let trouble = context.plans.scan().trouble;
    let is_told = |it: &disk::Trouble| found_trouble(context, it).is_some_and(|it| it.trouble.is_some());
    let problem = |it: disk::Trouble| {
        let Unread { code, message } = unread(context, &it.error);
        Problem::of_file(&it.relative.to_string_lossy(), code, message, it.error.hint().unwrap_or_default())
    };
    trouble.into_iter().filter(|it| !is_told(it)).map(problem).collect()
}
