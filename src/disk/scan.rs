//! Scans a plans directory with `stat` alone; opens no file.
//!
//! Relies on the layout of a plans directory: plans with their files, and planwatch's directories, which begin with `_`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{FileKind, Stat};
use super::fs_ops::is;
use super::names::checked;
use super::plans_dir::PlansDir;
use crate::plan::file_name::PLAN_FILE;

#[derive(Debug, Default)]
pub struct Scan {
    /// Sorted by path in the result of [`PlansDir::scan_plan`], otherwise unordered.
    pub entries: Vec<ScanEntry>,
    /// The names that could not be examined, and the directories that could not be listed.
    pub trouble: Vec<Trouble>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEntry {
    pub relative: PathBuf,
    /// The stat of the file. For a symbolic link, that of its target; for a symbolic link in a nested directory, that of
    /// the link itself.
    pub stat: Stat,
}

#[derive(Debug)]
pub struct Trouble {
    pub relative: PathBuf,
    pub error: DiskError,
}

/// A name that may be a plan: a directory, a symbolic link, or any name in `_archive` or `_templates`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanDir {
    pub relative: PathBuf,
    /// The stat of the name itself, even if it is a symbolic link.
    stat: Stat,
}

type Listing = Vec<(OsString, io::Result<Stat>)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// The names in a directory.
    Names,
    /// Also the names one level deeper.
    Nested,
}

impl PlansDir {
    /// Lists the directories that may be plans, sorted. Each can then be scanned separately, in any thread. The
    /// returned scan contains entries for `_archive` and `_templates` themselves, and the names that could not be
    /// examined. Hidden directories such as `.planwatch` are left out.
    pub fn plan_dirs(&self) -> (Vec<PlanDir>, Scan) {
        let (mut scan, mut dirs) = (Scan::default(), Vec::new());
        match self.disk.list(&self.root) {
            Err(error) => scan.trouble(PathBuf::new(), DiskError::reading(&self.root, error)),
            Ok(names) => {
                for (name, stat) in names {
                    self.list_top(&name, stat, &mut dirs, &mut scan);
                }
            }
        }
        // Comparing bytes is faster than comparing paths. The order is the same if `/` comes before all other bytes.
        dirs.sort_unstable_by(|a, b| in_path_order(&a.relative).cmp(in_path_order(&b.relative)));
        (dirs, scan)
    }

    /// Lists one plan's directory: its files and one level of nested directories, unordered.
    pub fn scan_dir(&self, dir: &PlanDir, scan: &mut Scan) {
        self.scan_entry(dir.relative.clone(), dir.stat, Depth::Nested, scan);
    }

    /// Lists a directory that contains only files, unordered. This is a fast path for the usual case.
    ///
    /// `None` if `dir` is a symbolic link or a file, contains anything but files, or cannot be listed; then
    /// [`Self::scan_dir`] is needed.
    pub fn plain_files(&self, dir: &PlanDir) -> Option<Vec<(OsString, Stat)>> {
        if dir.stat.kind != FileKind::Dir {
            return None;
        }
        let listed = self.disk.list(&self.root.join(&dir.relative)).ok()?;
        let file = |(name, stat): (OsString, io::Result<Stat>)| {
            stat.ok().filter(|it| it.kind == FileKind::File).map(|stat| (name, stat))
        };
        listed.into_iter().map(file).collect()
    }

    /// Whether a directory was modified a moment ago and is empty, or contains only the temporary files that an editor
    /// creates while it saves `plan.md`.
    pub fn is_just_emptied(&self, dir: &PlanDir) -> bool {
        let is_beside = |name: &OsString| name != PLAN_FILE && name.to_string_lossy().contains(PLAN_FILE);
        let is_empty = || self.plain_files(dir).is_some_and(|it| it.iter().all(|it| is_beside(&it.0)));
        self.is_young(dir.stat.mtime_ns) && is_empty()
    }

    /// Lists one plan's directory: its files and one level of nested directories. If the directory is missing, the
    /// result is empty.
    pub fn scan_plan(&self, plan_dir: &Path) -> Scan {
        let mut scan = Scan::default();
        if let Err(error) = checked(plan_dir) {
            scan.trouble(plan_dir.to_path_buf(), error);
            return scan;
        }
        let path = self.root.join(plan_dir);
        match self.disk.lstat(&path) {
            Err(error) if is(&error, Errno::NOENT) => {}
            Err(error) => scan.trouble(plan_dir.to_path_buf(), DiskError::reading(&path, error)),
            Ok(stat) => self.scan_entry(plan_dir.to_path_buf(), stat, Depth::Nested, &mut scan),
        }
        scan.sorted()
    }

    fn list_top(&self, name: &OsStr, stat: io::Result<Stat>, dirs: &mut Vec<PlanDir>, scan: &mut Scan) {
        if name.as_bytes().starts_with(b".") {
            return;
        }
        let relative = PathBuf::from(name);
        let stat = match stat {
            Err(error) => return scan.trouble(relative, DiskError::reading(Path::new(name), error)),
            // Files beside the plans belong to no plan.
            Ok(stat) if !matches!(stat.kind, FileKind::Dir | FileKind::Symlink) => return,
            Ok(stat) => stat,
        };
        if name != "_archive" && name != "_templates" {
            return dirs.push(PlanDir { relative, stat });
        }
        for (name, stat) in self.enter(&relative, stat, scan) {
            let relative = relative.join(name);
            match stat {
                Ok(stat) => dirs.push(PlanDir { relative, stat }),
                Err(error) => {
                    let error = DiskError::reading(&self.root.join(&relative), error);
                    scan.trouble(relative, error);
                }
            }
        }
    }

    fn scan_entry(&self, relative: PathBuf, stat: Stat, depth: Depth, scan: &mut Scan) {
        if stat.kind == FileKind::File {
            scan.entries.push(ScanEntry { relative, stat });
            return;
        }
        for (name, stat) in self.enter(&relative, stat, scan) {
            self.scan_inside(&relative, &name, stat, depth, scan);
        }
    }

    /// Resolves a name that may be a symbolic link, adds an entry for it, and lists the directory that it leads to. The
    /// list is empty if it leads to no directory, or if the directory cannot be listed.
    fn enter(&self, relative: &Path, stat: Stat, scan: &mut Scan) -> Listing {
        let (real, stat) = match self.behind_link(relative, stat) {
            Ok(found) => found,
            Err(error) => {
                scan.trouble(relative.to_path_buf(), error);
                return Listing::new();
            }
        };
        scan.entries.push(ScanEntry { relative: relative.to_path_buf(), stat });
        if stat.kind != FileKind::Dir {
            return Listing::new();
        }
        let path = self.root.join(real);
        self.disk.list(&path).unwrap_or_else(|error| {
            scan.trouble(relative.to_path_buf(), DiskError::reading(&path, error));
            Listing::new()
        })
    }

    fn scan_inside(
        &self,
        above: &Path,
        name: &OsString,
        stat: io::Result<Stat>,
        depth: Depth,
        scan: &mut Scan,
    ) {
        let relative = above.join(name);
        let stat = match stat {
            Ok(stat) => stat,
            Err(error) => {
                let error = DiskError::reading(&self.root.join(&relative), error);
                return scan.trouble(relative, error);
            }
        };
        let deeper = match depth {
            Depth::Nested => Depth::Names,
            Depth::Names => {
                // At this level only the names count: links are not resolved, and directories are not listed.
                scan.entries.push(ScanEntry { relative, stat });
                return;
            }
        };
        self.scan_entry(relative, stat, deeper, scan);
    }

    fn behind_link(&self, relative: &Path, stat: Stat) -> Result<(PathBuf, Stat), DiskError> {
        if stat.kind != FileKind::Symlink {
            return Ok((relative.to_path_buf(), stat));
        }
        let real = self.resolve(relative)?;
        let path = self.root.join(&real);
        let stat = self.disk.lstat(&path).map_err(|error| DiskError::reading(&path, error))?;
        Ok((real, stat))
    }
}

fn in_path_order(path: &Path) -> impl Iterator<Item = u8> + '_ {
    path.as_os_str().as_bytes().iter().map(|it| if *it == b'/' { 0 } else { *it })
}

impl Scan {
    fn trouble(&mut self, relative: PathBuf, error: DiskError) {
        self.trouble.push(Trouble { relative, error });
    }

    pub(super) fn sorted(mut self) -> Self {
        self.entries.sort_unstable_by(|a, b| a.relative.cmp(&b.relative));
        self.trouble.sort_by(|a, b| a.relative.cmp(&b.relative));
        self
    }
}
