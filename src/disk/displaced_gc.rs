//! Looking after displaced versions when the lock is taken.
//!
//! Ages are measured by the file system's own clock, read off the lock file after writing
//! to it: a clock that was set, or another machine's, cannot make a version look old.
//!
//! A version goes only when no program has it open for writing: an editor may keep its file open
//! for hours and write into the inode that was displaced meanwhile. A lease shows that, and keeps
//! others out until the version is gone.

use std::path::Path;

use super::displaced::{Verdict, dir, in_doubt, keep, verdict};
use super::file_system::{Against, DiskFile, FileKind, Lease, Open, Stat};
use super::fs_ops::rename_new;
use super::names::{NamedPath, Origin, VersionName};
use super::write_lock::Locked;

const SECOND: i128 = 1_000_000_000;

/// How long a version must have been left alone before it goes.
const QUIET: i128 = 60 * SECOND;

/// The same where no lease can show whether a program has it open for writing.
const LONG_QUIET: i128 = 3600 * SECOND;

/// The same for versions beyond [`MOST_BYTES`] or [`MOST`]. Who was about to open the file when it was displaced
/// has done so by then.
const SHORT_QUIET: i128 = SECOND;

/// What the newest versions may come to; older ones go early.
const MOST_BYTES: u64 = 16 << 20;
const MOST: usize = 500;

/// Between two looks, so that a thousand writes a second do not each list the directory.
const BETWEEN: i128 = SECOND;

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
        let dir = dir(self.plans);
        let names = disk.names(&dir).unwrap_or_default();
        let mut versions: Vec<_> = names.iter().filter_map(|name| VersionName::parse(name)).collect();
        versions.sort_by_key(|version| version.id);
        if versions.is_empty() {
            return;
        }
        let Some(now) = self.file_system_now() else { return };
        let stats: Vec<_> = versions.iter().map(|it| disk.lstat(&dir.join(it.encode())).ok()).collect();
        let n_crowding = n_crowding(&stats);
        let mut needed = None;
        // Files with a save whose fate is still open: later versions show whether its text lives on.
        let mut raced: Vec<&NamedPath> = Vec::new();
        for (n, (version, stat)) in versions.iter().zip(&stats).enumerate() {
            let (at, Some(stat)) = (dir.join(version.encode()), stat) else { continue };
            let age = now - stat.ctime_ns;
            let (is_quiet, is_crowding) = (age >= QUIET, n < n_crowding);
            let may_go_early = version.origin != Origin::Race && !raced.contains(&&version.path);
            let is_due = is_quiet || (is_crowding && may_go_early && age >= SHORT_QUIET);
            if version.origin == Origin::Race && !is_quiet {
                raced.push(&version.path);
            }
            if stat.kind != FileKind::File || !(is_due || in_doubt(version, stat)) {
                continue;
            }
            // The lease lasts until the version is judged and gone.
            let held = if is_due { self.without_writers(&at) } else { None };
            let can_go = match &held {
                Some((_, Lease::Taken)) => true,
                Some((_, Lease::Unsupported)) => age >= LONG_QUIET || (is_quiet && is_crowding),
                _ => false,
            };
            match verdict(disk, &self.plans.root, &at, version, stat, &versions) {
                Verdict::Theirs(why) => self.news.push(keep(disk, &self.plans.root, &at, why)),
                Verdict::Replaced if can_go => {
                    self.retire(&at, version, needed.get_or_insert_with(|| self.needed()));
                }
                Verdict::Own if can_go => {
                    disk.remove(&at).ok();
                }
                Verdict::Replaced if is_quiet && version.origin == Origin::Race => {
                    // Its text lives on; from here on only a late write counts.
                    let clean = VersionName { origin: Origin::Clean, ..version.clone() };
                    rename_new(disk, &at, &dir.join(clean.encode())).ok();
                }
                _ => {}
            }
        }
        if let Some(needed) = needed {
            self.forget(&needed);
        }
    }

    /// Opens a file and asks for a lease that keeps writers out; none if it cannot be opened.
    pub(super) fn without_writers(&self, at: &Path) -> Option<(Box<dyn DiskFile>, Lease)> {
        let file = self.plans.disk.open(at, Open::Read).ok()?;
        let lease = file.lease(Against::Writers);
        Some((file, lease))
    }

    /// Reads the file system's clock by writing the process id, for whoever wonders.
    fn file_system_now(&self) -> Option<i128> {
        self.handle.write(format!("{:>10}\n", std::process::id()).as_bytes()).ok()?;
        Some(self.handle.stat().ok()?.mtime_ns)
    }
}

/// How many of the oldest versions are too many; the stats are sorted by age, oldest first.
fn n_crowding(stats: &[Option<Stat>]) -> usize {
    let mut bytes = 0;
    let fits = |it: &&Option<Stat>| {
        bytes += it.map_or(0, |it| it.len);
        bytes <= MOST_BYTES
    };
    let n_fitting = stats.iter().rev().take(MOST).take_while(fits).count();
    stats.len() - n_fitting
}
