//! What planwatch's own log says of files, for whoever asks again and again: only what was added is read.

use std::path::PathBuf;

use super::moves::read_own;
use super::names::RUNTIME;
use super::plans_dir::PlansDir;
use super::undo::{DIR, LOG, Record, leaves, records};

/// What planwatch left in a file, by its log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnWrite {
    /// The step of `undo` that it belongs to.
    pub unit: u64,
    /// Relative to the plans directory.
    pub path: PathBuf,
    /// The first 16 digits of the content's hash; none if the path went.
    pub left: Option<String>,
    pub verb: String,
    pub by: String,
}

/// The log as it was read last.
#[derive(Debug, Default)]
pub struct OwnLog {
    /// Whole lines.
    bytes: Vec<u8>,
    log: Vec<Record>,
}

impl OwnLog {
    /// Lists what the last writes left, newest last; a file that holds something else was changed by somebody else.
    pub fn writes(&mut self, plans: &PlansDir) -> Vec<OwnWrite> {
        if plans.runtime_dir().is_none() {
            return Vec::new();
        }
        let path = plans.root.join(RUNTIME).join(DIR).join(LOG);
        let mut bytes = read_own(&*plans.disk, &path, u64::MAX).ok().flatten().unwrap_or_default();
        // A line without an end is still being written.
        bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
        match bytes.strip_prefix(self.bytes.as_slice()) {
            Some(added) => self.log.extend(records(added)),
            // It was shortened, or deleted.
            None => self.log = records(&bytes).collect(),
        }
        self.bytes = bytes;
        leaves(&self.log)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::model::Machine;

    fn change(plans: &PlansDir, n: usize) {
        let mut locked = plans.lock(&mut || {}).unwrap();
        locked.begin("set", "now");
        locked.change::<()>(Path::new("p/plan.md"), &mut |_| Ok(format!("# {n}\n").into_bytes())).unwrap();
    }

    #[test]
    fn what_was_added_is_found_and_what_was_taken_away_is_gone() {
        let plans = Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let mut kept = OwnLog::default();
        let log = plans.root.join(RUNTIME).join(DIR).join(LOG);
        for n in 0..20 {
            change(&plans, n);
            if n == 12 {
                plans.disk.remove(&log).unwrap();
            }
            let fresh = OwnLog::default().writes(&plans);
            assert_eq!(kept.writes(&plans), fresh, "{n}");
            assert_eq!(fresh.len(), if n < 12 { n + 1 } else { n - 12 }, "{n}");
        }
    }
}
