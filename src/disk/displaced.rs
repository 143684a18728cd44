//! Replaced versions of plan files, which a write leaves in `displaced/` of the state directory.
//!
//! An exchange leaves the old inode here under a [`VersionName`]. An editor that has it open may still write into it.
//! So a version stays until no program has it open for writing and it has been unmodified for a minute. Without file
//! leases, the time is an hour. If there are many versions, the oldest are removed earlier.
//!
//! A version is another program's text in two cases: it is not empty and matches neither content hash in its name, or it is
//! a save that raced with the write and is no longer in the file. Such a version is renamed to a name that begins with
//! `kept-`. It is reported, and planwatch never removes it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::file_system::{Disk, FileKind, Stat};
use super::fs_ops::{is, read_own, rename_new};
use super::names::{
    Content, DISPLACED, NamedPath, Origin, RUNTIME, VersionName, hex_field, parse_path, with_path,
};
use super::plans_dir::PlansDir;
use super::runtime;

/// A mode bit that marks the draft of a new version of an existing file until all bytes of the draft are written.
///
/// The bit distinguishes a truncated draft of a killed process from a late write of an editor.
pub(super) const DRAFT: u32 = 0o1000;

/// A text that is preserved because it is in no plan file, or a foreign `.planwatch` directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The plan file that the text belongs to, relative to the plans directory; `.planwatch` for a foreign directory.
    pub path: PathBuf,
    /// The location of the text or the directory, relative to the plans directory.
    pub kept: PathBuf,
    pub why: KeptWhy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptWhy {
    /// An editor wrote into a version that had just been replaced.
    Late,
    /// Another program saved at the same time, and the file now contains a different text from this one. Usually two saves
    /// raced with a write, and this is the earlier one.
    Overtaken,
    /// The text from before an interrupted write, usually a write in place; or a text from the journal of an unfinished
    /// batch, after `doctor --discard-journal` discarded that batch.
    Interrupted,
    /// A whole `.planwatch` directory that this machine did not make.
    Foreign,
}

impl KeptWhy {
    /// The word in the names of kept files, and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Overtaken => "overtaken",
            Self::Interrupted => "interrupted",
            Self::Foreign => "foreign",
        }
    }
}

impl PlansDir {
    /// Lists preserved texts that are in no plan file, and foreign `.planwatch` directories that an earlier release
    /// moved aside. Changes nothing.
    pub fn kept(&self) -> Vec<Kept> {
        let mut found = kept(self);
        let foreign_dirs =
            if self.is_project() { Vec::new() } else { runtime::foreign_dirs(&*self.disk, &self.root) };
        for dir in foreign_dirs {
            found.push(Kept { path: PathBuf::from(RUNTIME), kept: dir, why: KeptWhy::Foreign });
        }
        found
    }
}

pub(super) fn dir(plans: &PlansDir) -> PathBuf {
    plans.known_state_dir().join(DISPLACED)
}

pub(super) fn kept_name(why: KeptWhy, id: u64, path: &NamedPath) -> OsString {
    with_path(format!("kept-{}.{id:016x}.", why.word()), path)
}

fn parse_kept(name: &OsStr) -> Option<(KeptWhy, PathBuf)> {
    let rest = name.as_bytes().strip_prefix(b"kept-")?;
    let dot = rest.iter().position(|&byte| byte == b'.')?;
    let why = [KeptWhy::Late, KeptWhy::Overtaken, KeptWhy::Interrupted]
        .into_iter()
        .find(|why| why.word().as_bytes() == &rest[..dot])?;
    let (_, path) = hex_field(&rest[dot + 1..])?;
    Some((why, parse_path(path)?.shown()))
}

/// Marks a version as a preserved text by renaming it, and returns the entry to report.
///
/// If the rename fails, the version keeps its old name, which the entry then contains. The next sweep usually recognizes the
/// version by its content.
pub(super) fn keep(disk: &dyn Disk, root: &Path, version: &Path, why: KeptWhy) -> Kept {
    let name = version.file_name().unwrap_or_default();
    // A version that is stored for undo is in another directory next to `displaced`.
    let dir = version.parent().and_then(Path::parent).unwrap_or(root).join(DISPLACED);
    let parsed = VersionName::parse(name);
    let path = parsed.as_ref().map_or_else(|| PathBuf::from(name), |it| it.path.shown());
    let mut kept = version.to_path_buf();
    if let Some(parsed) = parsed {
        for id in parsed.id..parsed.id + 100 {
            let wanted = dir.join(kept_name(why, id, &parsed.path));
            match rename_new(disk, version, &wanted) {
                Err(error) if is(&error, Errno::EXIST) => continue,
                Ok(()) => kept = wanted,
                Err(_) => {}
            }
            break;
        }
    }
    Kept { path, kept: kept.strip_prefix(root).unwrap_or(&kept).to_path_buf(), why }
}

/// Lists preserved texts, including readable ones of other users and of other state homes. Changes nothing.
///
/// Reads every version, because time stamps do not reveal a long write that began before the exchange and ended after
/// it.
pub(super) fn kept(plans: &PlansDir) -> Vec<Kept> {
    let (disk, root) = (&*plans.disk, &plans.root);
    let own = plans.state_dir();
    let others = plans.state_dirs().unwrap_or_default().into_iter().filter(|it| *it != own);
    // A link would lead to files that are not planwatch's.
    let is_dir = |it: &PathBuf| disk.lstat(it).is_ok_and(|it| it.kind == FileKind::Dir);
    let others = others.map(|it| it.join(DISPLACED)).filter(is_dir);
    let dirs: Vec<_> = [own.join(DISPLACED)].into_iter().chain(others).collect();
    let listed = dirs.iter().flat_map(|dir| {
        let listed = disk.list(dir).unwrap_or_default();
        listed.into_iter().filter_map(move |(name, stat)| Some((dir.join(&name), name, stat.ok()?)))
    });
    let listed: Vec<_> = listed.collect();
    // Later versions show whether the file's present text was made from an earlier save.
    let versions: Vec<_> = listed.iter().filter_map(|(_, name, _)| VersionName::parse(name)).collect();
    let mut found = Vec::new();
    for (path, name, stat) in &listed {
        let at = path.strip_prefix(root).unwrap_or(path).to_path_buf();
        if let Some((why, path)) = parse_kept(name) {
            found.push(Kept { path, kept: at, why });
        } else if let Some(version) = VersionName::parse(name)
            && stat.kind == FileKind::File
            && let Verdict::Theirs(why) = verdict(disk, root, path, &version, stat, &versions)
        {
            found.push(Kept { path: version.path.shown(), kept: at, why });
        }
    }
    found.sort_unstable_by(|a, b| a.kept.cmp(&b.kept));
    found
}

/// Whether a version should be examined before it is old enough to be removed.
///
/// This is a heuristic. An exchange sets only the change time, and a write sets both times. So a modification time that
/// is not earlier than the change time means that the version was written after the exchange. A second rename hides
/// such a write, because it sets the change time again.
pub(super) fn in_doubt(version: &VersionName, stat: &Stat) -> bool {
    version.origin != Origin::Clean || stat.kind != FileKind::File || stat.mtime_ns >= stat.ctime_ns
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The content of the plan file before planwatch replaced it.
    Replaced,
    /// planwatch's own text: a text that was never put into the plan file, or whose change was undone. An empty
    /// version counts as planwatch's own, too.
    Own,
    /// Another program's text, possibly in no file.
    Theirs(KeptWhy),
    /// The version could not be read, so it stays.
    Unknown,
}

/// Classifies a version by its name, its bytes and the mode bit [`DRAFT`]. `all` contains the names of all versions.
pub(super) fn verdict(
    disk: &dyn Disk,
    root: &Path,
    at: &Path,
    version: &VersionName,
    stat: &Stat,
    all: &[VersionName],
) -> Verdict {
    // The draft of a new file is renamed, not exchanged, so it displaces nothing. A version without earlier content is
    // therefore planwatch's own draft.
    if version.base == Content::NOTHING || stat.mode & 0o7777 == DRAFT | 0o600 {
        return Verdict::Own;
    }
    let Ok(Some(bytes)) = read_own(disk, at, u64::MAX) else { return Verdict::Unknown };
    let content = Content::of(&bytes);
    if content == version.base {
        let overtaken = version.origin == Origin::Race && !is_still_in_file(disk, root, version, all);
        if overtaken { Verdict::Theirs(KeptWhy::Overtaken) } else { Verdict::Replaced }
    } else if content == version.new || bytes.is_empty() {
        Verdict::Own
    } else {
        Verdict::Theirs(KeptWhy::Late)
    }
}

/// Whether the file's text was made from this version by planwatch's own writes only.
fn is_still_in_file(disk: &dyn Disk, root: &Path, version: &VersionName, all: &[VersionName]) -> bool {
    let NamedPath::Whole(path) = &version.path else { return false };
    let Ok(Some(bytes)) = read_own(disk, &root.join(path), u64::MAX) else { return false };
    let now = Content::of(&bytes);
    let mut made = version.new;
    let mut later: Vec<_> = all.iter().filter(|it| it.path == version.path && it.id > version.id).collect();
    later.sort_unstable_by_key(|it| it.id);
    for next in later {
        if made == now {
            break;
        }
        if next.base == made {
            made = next.new;
        }
    }
    made == now
}
