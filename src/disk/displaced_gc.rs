//! Removes old displaced versions when the lock is taken.
//!
//! Ages are measured with the file system's clock: the sweep writes to the lock file and reads its modification time.
//! On a network file system, this machine's clock may differ from the clock that sets the time stamps.
//!
//! An editor may keep a file open for hours and write into the displaced inode. So a version is removed only if a lease
//! shows that no program has it open for writing. Until the version is removed, the lease also delays programs that open it
//! for writing. Without leases, a version must be unmodified for longer instead.

use std::path::Path;

use super::displaced::{Verdict, dir, in_doubt, keep, verdict};
use super::file_system::{Against, DiskFile, FileKind, Lease, Open, Stat};
use super::fs_ops::rename_new;
use super::names::{NamedPath, Origin, VersionName};
use super::write_lock::Locked;

const SECOND: i128 = 1_000_000_000;

/// How long a version must be unmodified before it is removed, in nanoseconds.
const QUIET: i128 = 60 * SECOND;

/// Like [`QUIET`], if there are no file leases, so that it is unknown whether a program has the version open for
/// writing.
const LONG_QUIET: i128 = 3600 * SECOND;

/// Like [`QUIET`], for versions beyond [`MOST_BYTES`] or [`MOST`], if there are leases. It is long enough for a program that
/// was about to open the file when the version was displaced. Without leases, such versions stay for [`QUIET`].
const SHORT_QUIET: i128 = SECOND;

/// The newest versions within these limits, in bytes and in number, stay for the usual time; older ones are removed
/// early.
const MOST_BYTES: u64 = 16 << 20;
const MOST: usize = 500;

/// The shortest interval between sweeps. Without it, each of many quick writes would list the directory.
const BETWEEN: i128 = SECOND;

impl Locked<'_> {
    /// Preserves late writes, and removes versions that have been unmodified long enough.
    ///
    /// Never fails. A version that cannot be classified stays until the next sweep.
    pub(super) fn sweep(&mut self, lock: &Stat) {
        let disk = &*self.plans.disk;
        let since = disk.now_ns() - lock.mtime_ns;
        if (0..BETWEEN).contains(&since) {
            return;
        }
        let dir = dir(self.plans);
        let names = disk.names(&dir).unwrap_or_default();
        let mut versions: Vec<_> = names.iter().filter_map(|name| VersionName::parse(name)).collect();
        versions.sort_unstable_by_key(|version| version.id);
        if versions.is_empty() {
            return;
        }
        let Some(now) = self.file_system_now() else { return };
        let stats: Vec<_> = versions.iter().map(|it| disk.lstat(&dir.join(it.encode())).ok()).collect();
        let n_crowding = n_crowding(&stats);
        let mut needed = None;
        // Files with a recent save that raced with a write. The later versions of such a file are not removed early,
        // because they show whether the file's present text was made from that save.
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
            // The lease lasts until the version is examined and removed.
            let held = if is_due { self.without_writers(&at) } else { None };
            let can_go = match &held {
                Some((_, Lease::Taken)) => true,
                Some((_, Lease::Unsupported)) => age >= LONG_QUIET || (is_quiet && is_crowding),
                _ => false,
            };
            match verdict(disk, &self.plans.root, &at, version, stat, &versions) {
                Verdict::Theirs(why) => self.kept.push(keep(disk, &self.plans.root, &at, why)),
                Verdict::Replaced if can_go => {
                    self.retire(&at, version, needed.get_or_insert_with(|| self.needed()));
                }
                Verdict::Own if can_go => {
                    disk.remove(&at).ok();
                }
                Verdict::Replaced if is_quiet && version.origin == Origin::Race => {
                    // The file's present text was made from this save, so the save is not lost. From now on only a
                    // late write has to be detected.
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

    /// Opens a file and requests a lease that excludes writers. `None` if the file cannot be opened.
    pub(super) fn without_writers(&self, at: &Path) -> Option<(Box<dyn DiskFile>, Lease)> {
        let file = self.plans.disk.open(at, Open::Read).ok()?;
        let lease = file.lease(Against::Writers);
        Some((file, lease))
    }

    /// Reads the file system's clock by writing to the lock file. The text is this process's id, as a hint for readers
    /// of the file.
    fn file_system_now(&self) -> Option<i128> {
        self.handle.write(format!("{:>10}\n", std::process::id()).as_bytes()).ok()?;
        Some(self.handle.stat().ok()?.mtime_ns)
    }
}

/// How many of the oldest versions exceed the limits; the stats are sorted by age, oldest first.
fn n_crowding(stats: &[Option<Stat>]) -> usize {
    let mut bytes = 0;
    let fits = |it: &&Option<Stat>| {
        bytes += it.map_or(0, |it| it.len);
        bytes <= MOST_BYTES
    };
    let n_fitting = stats.iter().rev().take(MOST).take_while(fits).count();
    stats.len() - n_fitting
}
