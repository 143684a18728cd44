//! Looking after displaced versions when the lock is taken.
//!
//! Ages are measured by the file system's own clock, read off the lock file after writing
//! to it: a clock that was set, or another machine's, cannot make a version look old.

use super::calls::{FileKind, Stat};
use super::displaced::{Verdict, dir, in_doubt, keep, verdict};
use super::locked::Locked;
use super::names::VersionName;

const SECOND: i128 = 1_000_000_000;

/// How long a version must have been left alone before it goes.
const QUIET: i128 = 60 * SECOND;

/// Between two looks, so that a thousand writes a second do not each list the directory.
const BETWEEN: i128 = 5 * SECOND;

impl Locked<'_> {
    /// Keeps what was written late, removes what has been quiet.
    ///
    /// Never fails: what cannot be judged stays for the next time.
    pub(super) fn sweep(&mut self, lock: &Stat) {
        let disk = &*self.plans.disk;
        let since = disk.now_ns() - lock.mtime_ns;
        if (0..BETWEEN).contains(&since) {
            return;
        }
        let dir = dir(&self.plans.root);
        let names = disk.names(&dir).unwrap_or_default();
        let mut versions: Vec<_> = names.iter().filter_map(|name| VersionName::parse(name)).collect();
        versions.sort_by_key(|version| version.id);
        if versions.is_empty() {
            return;
        }
        let Some(now) = self.file_system_now() else { return };
        let mut retired = Vec::new();
        for version in &versions {
            let at = dir.join(version.encode());
            let Ok(stat) = disk.lstat(&at) else { continue };
            let quiet = now - stat.ctime_ns >= QUIET;
            if stat.kind != FileKind::File || !(quiet || in_doubt(version, &stat)) {
                continue;
            }
            match verdict(disk, &self.plans.root, &at, version, &stat, &versions) {
                Verdict::Theirs(why) => self.news.push(keep(disk, &self.plans.root, &at, why)),
                Verdict::Replaced if quiet => retired.push((at, version.clone())),
                Verdict::Own if quiet => {
                    disk.remove(&at).ok();
                }
                _ => {}
            }
        }
        if !retired.is_empty() {
            self.retire(retired);
        }
    }

    /// Reads the file system's clock by writing the process id, for whoever wonders.
    fn file_system_now(&self) -> Option<i128> {
        self.handle.write(format!("{:>10}\n", std::process::id()).as_bytes()).ok()?;
        Some(self.handle.stat().ok()?.mtime_ns)
    }
}
