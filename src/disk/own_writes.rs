//! Reads from the undo log what planwatch wrote to which file. Repeated reads of an [`OwnLog`] parse only the appended
//! lines.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use super::names::Content;
use super::path_text::Text;
use super::plans_dir::PlansDir;
use super::undo::{Record, What, leaves, records};

/// What a write by planwatch left at a path, according to the undo log.
#[derive(Clone, Debug, Eq)]
pub struct OwnWrite {
    /// The unit of `undo` that the write belongs to.
    pub unit: u64,
    /// Relative to the plans directory.
    pub path: PathBuf,
    pub left: Left,
    pub verb: String,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// A file. Contains the first 16 digits of the content's hash.
    Content(String),
    /// Nothing: the file or directory was removed or renamed.
    Nothing,
    /// A file or directory that was renamed to this path. The log does not contain the content.
    Renamed,
}

/// Compares paths as strings, because comparing their components would dominate the cost.
impl PartialEq for OwnWrite {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit
            && self.path.as_os_str() == other.path.as_os_str()
            && (&self.left, &self.verb, &self.by) == (&other.left, &other.verb, &other.by)
    }
}

/// Hashes only fields that distinguish most writes.
impl Hash for OwnWrite {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.unit, &self.left).hash(state);
    }
}

#[derive(Debug, Default)]
pub struct OwnLog {
    /// The log as last read, without an incomplete last line.
    bytes: Vec<u8>,
    log: Vec<Record>,
    writes: Vec<OwnWrite>,
}

impl OwnLog {
    /// The writes that the log still contains, including those that `undo` made, oldest first. If a file's content is in
    /// none of them, another program changed the file, or the log no longer contains the write.
    pub fn writes(&self) -> &[OwnWrite] {
        &self.writes
    }

    /// Reads what was appended; returns whether anything changed.
    pub fn read(&mut self, plans: &PlansDir) -> bool {
        let mut bytes =
            plans.runtime_dir().map(|_| plans.undo_log_bytes(&plans.state_dir())).unwrap_or_default();
        // A last line without a line end is still being written.
        bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
        let known = match bytes.strip_prefix(self.bytes.as_slice()) {
            Some([]) => return false,
            Some(added) => {
                let known = self.log.len();
                self.log.extend(records(added));
                known
            }
            // The log was truncated or deleted.
            None => {
                self.log = records(&bytes).collect();
                self.writes.clear();
                0
            }
        };
        self.bytes = bytes;
        match self.log.iter().any(Record::is_undone) {
            true => self.writes = leaves(&self.log),
            false => self.writes.extend(leaves(&self.log[known..])),
        }
        true
    }
}

/// The text of the log, as read at one moment, for queries about single files.
#[derive(Debug)]
pub(super) struct LastWrites(String);

impl PlansDir {
    pub(super) fn last_writes(&self) -> LastWrites {
        let bytes = self.undo_log_bytes(&self.known_state_dir());
        // `from_utf8_lossy` is called only for invalid text, because it would take a tenth of the time of a write
        // (benchmark T6).
        let text = String::from_utf8(bytes);
        LastWrites(text.unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()))
    }
}

/// What planwatch last did with a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// planwatch wrote the file. Contains the length and the content hash after the write. The length is not known after
    /// an `undo`, or if the record has no length.
    Written(Option<u64>, Content),
    /// planwatch renamed the file and has not written it. Contains the path from before the first rename.
    RenamedFrom(PathBuf),
    /// planwatch renamed the file to another path.
    RenamedAway,
}

impl LastWrites {
    /// `None` if the log has no write and no rename of this file. The undo of a removal counts as a write. Other removals do
    /// not count, and neither do creations and renames that were undone.
    pub(super) fn of(&self, relative: &Path) -> Option<Last> {
        // The newest line comes first. Only lines that contain the path, and lines that record an undo, are decoded.
        let mut path = relative.to_path_buf();
        let mut wanted = serde_json::to_string(&Text::of(&path)).ok()?;
        let mut undone = BTreeSet::new();
        // The text that `undo` restored: the text from before the oldest undone write found so far.
        let mut back = None;
        for line in self.0.rsplit('\n') {
            if !line.contains(&wanted) && !line.contains("\"undone\"") {
                continue;
            }
            let Ok(record) = serde_json::from_str::<Record>(line) else { continue };
            let is_undone = undone.contains(&record.unit);
            match record.what {
                What::Undone => {
                    undone.insert(record.unit);
                }
                What::Created { path: at, new, len } | What::Replaced { path: at, new, len, .. }
                    if at.path() == path && !is_undone =>
                {
                    return back.or(Some(Last::Written(len, Content(new))));
                }
                What::Replaced { path: at, base, .. } | What::Discarded { path: at, base, .. }
                    if at.path() == path && is_undone =>
                {
                    back = Some(Last::Written(None, Content(base)));
                }
                What::Renamed { from, .. } if from.path() == path && !is_undone => {
                    return back.or(Some(Last::RenamedAway));
                }
                What::Renamed { from, to } if to.path() == path && !is_undone => {
                    path = from.path();
                    wanted = serde_json::to_string(&from).ok()?;
                }
                _ => {}
            }
        }
        back.or_else(|| (path != relative).then_some(Last::RenamedFrom(path)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::FileOp;
    use crate::disk::model::Machine;
    use crate::disk::names::UNDO;
    use crate::disk::undo::LOG;

    fn change(plans: &PlansDir, n: usize) {
        let mut locked = plans.lock(&mut || {}).unwrap();
        locked.begin("set", "now");
        locked.change(Path::new("p/plan.md"), &mut |_, _| Some(format!("# {n}\n").into_bytes())).unwrap();
    }

    #[test]
    fn after_several_undos_the_text_before_all_of_them_is_the_last() {
        let plans = Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let last = || plans.last_writes().of(Path::new("p/plan.md"));
        for n in 0..3 {
            change(&plans, n);
        }
        for expected in ["# 1\n", "# 0\n", "# P\n"] {
            plans.lock(&mut || {}).unwrap().undo().unwrap();
            assert_eq!(last(), Some(Last::Written(None, Content::of(expected.as_bytes()))));
        }
        change(&plans, 7);
        assert_eq!(last(), Some(Last::Written(Some(4), Content::of(b"# 7\n"))));
    }

    #[test]
    fn after_a_rename_the_writes_of_the_renamed_file_count() {
        let plans =
            Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-2.md", "# Two\n")]).plans();
        let (one, two, new) = (Path::new("p/plan.md"), Path::new("p/step-2.md"), Path::new("p/new.md"));
        let rename = |from: &Path, to: &Path| {
            let (from, to) = (from.to_path_buf(), to.to_path_buf());
            plans.lock(&mut || {}).unwrap().batch("move", "now", vec![FileOp::Rename { from, to }]).unwrap();
        };
        let last = |path: &Path| plans.last_writes().of(path);
        change(&plans, 7);
        rename(one, new);
        let written = || Some(Last::Written(Some(4), Content::of(b"# 7\n")));
        assert_eq!((last(one), last(new)), (Some(Last::RenamedAway), written()));
        rename(two, one);
        assert_eq!(last(one), Some(Last::RenamedFrom(two.to_path_buf())));
        plans.lock(&mut || {}).unwrap().undo().unwrap();
        assert_eq!((last(one), last(two)), (Some(Last::RenamedAway), None));
        plans.lock(&mut || {}).unwrap().undo().unwrap();
        assert_eq!((last(one), last(new)), (written(), None));
    }

    #[test]
    fn appended_lines_are_read_and_removed_ones_are_dropped() {
        let plans = Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let mut kept = OwnLog::default();
        let log = plans.state_dir().join(UNDO).join(LOG);
        for n in 0..20 {
            change(&plans, n);
            if n == 12 {
                plans.disk.remove(&log).unwrap();
            }
            if n == 6 {
                plans.lock(&mut || {}).unwrap().undo().unwrap();
            }
            let mut fresh = OwnLog::default();
            let is_other = n != 12;
            assert_eq!((kept.read(&plans), fresh.read(&plans)), (true, is_other), "{n}");
            assert_eq!(kept.writes(), fresh.writes(), "{n}");
            let n_undone = usize::from(n >= 6);
            assert_eq!(fresh.writes().len(), if n < 12 { n + 1 + n_undone } else { n - 12 }, "{n}");
            assert!(!kept.read(&plans), "{n}: nothing was written");
            let last = match n {
                6 => Some("undo"),
                12 => None,
                _ => Some("set"),
            };
            assert_eq!(fresh.writes().last().map(|it| it.verb.as_str()), last, "{n}");
        }
    }
}
