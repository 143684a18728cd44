//! What the undo log says about files. Repeated reads only parse what was appended.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use super::names::Content;
use super::path_text::Text;
use super::plans_dir::PlansDir;
use super::undo::{Record, What, leaves, records};

/// What planwatch left in a file, according to the undo log.
#[derive(Clone, Debug, Eq)]
pub struct OwnWrite {
    /// The unit of `undo` that it belongs to.
    pub unit: u64,
    /// Relative to the plans directory.
    pub path: PathBuf,
    /// The first 16 digits of the content's hash; `None` if the path was removed.
    pub left: Option<String>,
    pub verb: String,
    pub by: String,
}

/// Comparing paths by their components would dominate the cost; they are compared as written.
impl PartialEq for OwnWrite {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit
            && self.path.as_os_str() == other.path.as_os_str()
            && (&self.left, &self.verb, &self.by) == (&other.left, &other.verb, &other.by)
    }
}

/// These fields distinguish most writes.
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
    /// Lists what the last writes left, newest last. A file with other content was changed by another program.
    pub fn writes(&self) -> &[OwnWrite] {
        &self.writes
    }

    /// Reads what was appended; returns whether anything changed.
    pub fn read(&mut self, plans: &PlansDir) -> bool {
        let mut bytes =
            plans.runtime_dir().map(|_| plans.undo_log_bytes(&plans.state_dir())).unwrap_or_default();
        // A line without an end is still being written.
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

/// The log at one moment, for queries about single files.
#[derive(Debug)]
pub(super) struct LastWrites(String);

impl PlansDir {
    pub(super) fn last_writes(&self) -> LastWrites {
        let bytes = self.undo_log_bytes(&self.known_state_dir());
        // `from_utf8_lossy` alone would take a tenth of the time of a write (benchmark T6).
        let text = String::from_utf8(bytes);
        LastWrites(text.unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()))
    }
}

impl LastWrites {
    /// The length of the file after planwatch's last write, and the hash of its content; after an `undo` only the hash
    /// is known.
    pub(super) fn of(&self, relative: &Path) -> Option<(Option<u64>, Content)> {
        // Only lines that contain the path are decoded, and all lines of `undo`, newest first.
        let wanted = serde_json::to_string(&Text::of(relative)).ok()?;
        let lines = self.0.rsplit('\n').filter(|line| line.contains(&wanted) || line.contains("\"undone\""));
        let mut undone = BTreeSet::new();
        // The text that the oldest undone write found so far had replaced; `undo` has put it back.
        let mut back = None;
        for record in lines.filter_map(|line| serde_json::from_str::<Record>(line).ok()) {
            let is_undone = undone.contains(&record.unit);
            match record.what {
                What::Undone => {
                    undone.insert(record.unit);
                }
                What::Created { path, new, len } | What::Replaced { path, new, len, .. }
                    if path.path() == relative && !is_undone =>
                {
                    return back.or(Some((len, Content(new))));
                }
                What::Replaced { path, base, .. } | What::Discarded { path, base, .. }
                    if path.path() == relative && is_undone =>
                {
                    back = Some((None, Content(base)));
                }
                _ => {}
            }
        }
        back
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::model::Machine;
    use crate::disk::names::UNDO;
    use crate::disk::undo::LOG;

    fn change(plans: &PlansDir, n: usize) {
        let mut locked = plans.lock(&mut || {}).unwrap();
        locked.begin("set", "now");
        locked.change::<()>(Path::new("p/plan.md"), &mut |_, _| Ok(format!("# {n}\n").into_bytes())).unwrap();
    }

    #[test]
    fn after_several_undos_the_text_before_all_of_them_is_the_last() {
        let plans = Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let last = || plans.last_writes().of(Path::new("p/plan.md")).map(|it| it.1);
        for n in 0..3 {
            change(&plans, n);
        }
        for expected in ["# 1\n", "# 0\n", "# P\n"] {
            plans.lock(&mut || {}).unwrap().undo().unwrap();
            assert_eq!(last(), Some(Content::of(expected.as_bytes())));
        }
        change(&plans, 7);
        assert_eq!(last(), Some(Content::of(b"# 7\n")));
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
        }
    }
}
