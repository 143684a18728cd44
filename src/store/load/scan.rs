//! One plan directory at a time: lists its files, compares them with its row of the index, and reads them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::parallel;
use super::{Meaning, PlanEntry, found_in, hash_of, meaning_of, stamp_of, take};
use crate::api::context::{Context, Reading};
use crate::disk::{FileKind, PlanDir, Scan, Stat, Trouble};
use crate::index::{FileRow, Head, Key, Packed, Stamp, stamps};
use crate::plan::file_name::{FileName, classify};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::read::{self, Bodies, PlanSources};
use crate::plan::time::Time;

/// Returns a hash of the `[words]` in the configuration. If the configured words change, the same files can give a different
/// plan.
pub(crate) fn reader(context: &Context) -> u64 {
    ReadContext::new(context, &OnceLock::new()).reader
}

/// The listing of a directory that contains at least one file of a plan.
pub(super) struct Walked {
    pub(super) key: Key,
    listed: Listed,
}

/// The files of a directory, sorted by path.
enum Listed {
    /// Only regular files, each by its name.
    Files(Vec<(String, Meaning, Stamp)>),
    Entries(Vec<PlanEntry>),
}

/// The result of comparing a directory with its row.
pub(super) enum RowState {
    /// The row is current.
    Same,
    /// The row is current except for its stamps.
    Restamped(Head),
    /// The new row and the plan. The plan is `None` after the caller has taken it.
    Read(Packed, Option<Box<Plan>>),
}

#[derive(Clone, Copy)]
pub(crate) struct ReadContext<'a> {
    pub(crate) context: &'a Context,
    /// See the function [`reader`].
    pub(super) reader: u64,
    /// The time just before the first file was read, by the file system's own clock if the index is used.
    read_at: &'a OnceLock<i64>,
}

impl<'a> ReadContext<'a> {
    pub(crate) fn new(context: &'a Context, read_at: &'a OnceLock<i64>) -> Self {
        let hash = blake3::hash(format!("{:?}", context.config.words).as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        Self { context, reader: u64::from_le_bytes([a, b, c, d, e, f, g, h]), read_at }
    }

    fn read_at(self) -> i64 {
        let now = || match self.context.reading {
            Reading::Index => self.context.plans.stamp_ns(),
            // Nothing is stored, so no stamp is compared with this time later. Any clock will do.
            Reading::Files => self.context.plans.now_ns(),
        };
        *self.read_at.get_or_init(|| i64::try_from(now()).unwrap_or(i64::MAX))
    }
}

/// The path of the directory relative to the plans directory.
pub(super) fn directory(key: &Key) -> String {
    if key.is_archived { format!("_archive/{}", key.name) } else { key.name.clone() }
}

fn key(directory: &Path) -> Option<Key> {
    let inside = directory.strip_prefix("_archive");
    let is_archived = inside.is_ok();
    let name = inside.unwrap_or(directory).to_str()?;
    PlanId::is_plan_name(name).then(|| Key { is_archived, name: name.to_owned() })
}

/// Lists a directory; none if there is no plan in it.
pub(super) fn walk(context: &Context, dir: &PlanDir) -> (Option<Walked>, Vec<Trouble>) {
    if let Some(files) = context.plans.plain_files(dir) {
        let mut files: Vec<_> = files.into_iter().filter_map(|(name, stat)| plain(name, &stat)).collect();
        files.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
        let is_plan = files.iter().any(|(_, it, _)| it.is_of_plan());
        let key = key(&dir.relative).filter(|_| is_plan);
        return (key.map(|key| Walked { key, listed: Listed::Files(files) }), Vec::new());
    }
    let mut scan = Scan::default();
    context.plans.scan_dir(dir, &mut scan);
    let walked = key(&dir.relative).and_then(|key| walked(context, key, &mut scan));
    (walked, scan.trouble)
}

/// Like [`walk`], for a directory that is given by its name and need not exist.
pub(super) fn walk_named(context: &Context, key: &Key) -> (Option<Walked>, Vec<Trouble>) {
    let mut scan = context.plans.scan_plan(&PathBuf::from(directory(key)));
    (walked(context, key.clone(), &mut scan), scan.trouble)
}

/// The files of a plan, each with its hash and modification time, sorted by path. `None` if the directory contains no
/// plan, or if it contains a nested plan, a file whose name only looks like a step's, or anything that cannot be read.
pub(crate) fn hashes_in(context: &Context, key: &Key) -> Option<Vec<(String, String, Time)>> {
    let mut scan = context.plans.scan_plan(&PathBuf::from(directory(key)));
    let found = walked(context, key.clone(), &mut scan).filter(|_| scan.trouble.is_empty())?.into_found();
    let hash = |it: PlanEntry| {
        let hash = it.meaning.is_of_plan().then(|| hash_of(context, &it)).filter(|it| !it.is_empty());
        Some((it.path, hash?, Time::from_nanoseconds(it.stamp.mtime_ns.into())))
    };
    found.into_iter().map(hash).collect()
}

fn walked(context: &Context, key: Key, scan: &mut Scan) -> Option<Walked> {
    let found = found_in(context, scan);
    let is_plan = found.iter().any(|it| it.meaning.is_of_plan());
    is_plan.then_some(Walked { key, listed: Listed::Entries(found) })
}

/// Converts a file that is directly in a plan's directory; none if its name has no meaning for a plan.
fn plain(name: OsString, stat: &Stat) -> Option<(String, Meaning, Stamp)> {
    let name = name.into_string().ok()?;
    let meaning = meaning_of(&name, &name)?;
    let stamp = stamp_of(&meaning, stat);
    Some((name, meaning, stamp))
}

impl Walked {
    /// The stamps, encoded as in a row.
    fn stamps(&self) -> Vec<u8> {
        match &self.listed {
            Listed::Files(files) => stamps(files.iter().map(|(name, _, stamp)| (name.as_str(), *stamp))),
            Listed::Entries(found) => {
                let names = directory(&self.key).len() + 1;
                stamps(found.iter().map(|it| (&it.path[names..], it.stamp)))
            }
        }
    }

    pub(super) fn into_found(self) -> Vec<PlanEntry> {
        let directory = directory(&self.key);
        let found = |(name, meaning, stamp)| {
            let path = format!("{directory}/{name}");
            PlanEntry { path, meaning, stamp, kind: FileKind::File, trouble: None }
        };
        match self.listed {
            Listed::Files(files) => files.into_iter().map(found).collect(),
            Listed::Entries(found) => found,
        }
    }
}

/// Compares a directory with its row. If they differ or a stamp is doubtful, [`same_content`] first checks whether only
/// stamps have changed. If not, reads all files of the plan. `bodies` says whether texts are loaded.
pub(super) fn look(how: ReadContext<'_>, walked: Walked, head: Option<&Head>, bodies: Bodies) -> RowState {
    if head.is_some_and(|it| it.is_current_for(how.reader, &walked.stamps())) {
        return RowState::Same;
    }
    let key = walked.key.clone();
    let found = walked.into_found();
    let same = head.and_then(|it| Some((it, same_content(how, &key, &found, it)?)));
    if let Some((head, files)) = same {
        return restamped(head, head.restamped(how.reader, &files));
    }
    let (sources, files) = read_sources(how, &key, &found);
    let files = after(files, head, how.read_at());
    let plan = plan_of(how.context, &key, &sources, bodies);
    let packed = Packed::new(key, how.reader, &files, &plan);
    match head {
        Some(head) if head.is_of_the_same_plan(&packed.head) => {
            restamped(head, head.restamped(how.reader, &files))
        }
        _ => RowState::Read(packed, Some(Box::new(plan))),
    }
}

/// Computes `len_before` of each file from its old row. Adds rows for plan files that disappeared a moment ago. The
/// result is sorted by name.
fn after(files: Vec<FileRow>, head: Option<&Head>, now: i64) -> Vec<FileRow> {
    let Some(old) = head.and_then(|it| it.files().ok()) else { return files };
    let earlier = |it: FileRow| match old.binary_search_by(|old| old.name.cmp(&it.name)) {
        Ok(at) => it.after(&old[at]),
        Err(_) => it,
    };
    let mut files: Vec<_> = files.into_iter().map(earlier).collect();
    let is_missing = |it: &&FileRow| files.binary_search_by(|new| new.name.cmp(&it.name)).is_err();
    let is_of_plan = |it: &&FileRow| matches!(classify(&it.name), FileName::Plan | FileName::Step(_));
    let vanished: Vec<_> =
        old.iter().filter(is_of_plan).filter(is_missing).filter_map(|it| it.vanished(now)).collect();
    if !vanished.is_empty() {
        files.extend(vanished);
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    }
    files
}

fn restamped(head: &Head, new: Head) -> RowState {
    if *head == new { RowState::Same } else { RowState::Restamped(new) }
}

/// Reads a plan with its texts, and packs it as [`look`] does.
pub(crate) fn read_whole(how: ReadContext<'_>, key: &Key) -> Option<(Packed, Plan)> {
    let found = walk_named(how.context, key).0?.into_found();
    let (sources, files) = read_sources(how, key, &found);
    let plan = plan_of(how.context, key, &sources, Bodies::Keep);
    Some((Packed::new(key.clone(), how.reader, &files, &plan), plan))
}

/// Reads the plan in a directory; none if the directory contains no plan.
pub(super) fn read_plan(context: &Context, key: &Key, bodies: Bodies) -> Option<Plan> {
    let walked = walk_named(context, key).0?;
    let mut sources = PlanSources::default();
    for it in walked.into_found() {
        take(context, &it, &mut sources);
    }
    // Only one plan is read, so its steps are parsed in several threads. Parsing their dependencies can be most of the
    // work.
    let id = PlanId::new(key.name.clone());
    let words = &context.config.words;
    Some(read::read_plan_by(
        |steps, read| parallel::map(steps, read),
        (&id, key.is_archived),
        &sources,
        words,
        bodies,
    ))
}

fn read_sources(how: ReadContext<'_>, key: &Key, found: &[PlanEntry]) -> (PlanSources, Vec<FileRow>) {
    let names = directory(key).len() + 1;
    let read_at = how.read_at();
    let mut sources = PlanSources::default();
    let files = found.iter().map(|it| {
        let hash = take(how.context, it, &mut sources);
        FileRow::new(&it.path[names..], it.stamp, hash, read_at)
    });
    let files = files.collect();
    (sources, files)
}

fn plan_of(context: &Context, key: &Key, sources: &PlanSources, bodies: Bodies) -> Plan {
    let id = PlanId::new(key.name.clone());
    read::read_plan(&id, key.is_archived, sources, &context.config.words, bodies)
}

/// Returns the files with their stamps if their names, contents and modification times match the row. Only files with a
/// changed or doubtful stamp are read.
fn same_content(how: ReadContext<'_>, key: &Key, found: &[PlanEntry], head: &Head) -> Option<Vec<FileRow>> {
    let old = head.files().ok().filter(|_| head.reader() == how.reader)?;
    let names = directory(key).len() + 1;
    let of_same_name = |(old, it): (&FileRow, &PlanEntry)| {
        (old.name.as_str(), old.stamp.mtime_ns) == (&it.path[names..], it.stamp.mtime_ns)
    };
    if old.len() != found.len() || !old.iter().zip(found).all(of_same_name) {
        return None;
    }
    let read_at = how.read_at();
    let same = old.into_iter().zip(found).map(|(old, it)| {
        if old.stamp == it.stamp && !old.is_in_doubt() {
            return Some(old);
        }
        let hash = hash_of(how.context, it);
        let is_same = !hash.is_empty() && hash == old.hash;
        is_same.then(|| FileRow::new(old.name.clone(), it.stamp, hash, read_at).after(&old))
    });
    same.collect()
}
