//! The prompts and logs of a run's processes, in `logs` of the state directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::error::DiskError;
use super::fs_ops::{is, remove_oldest};
use super::plans_dir::PlansDir;

/// How many files stay after a cleanup, which removes the oldest.
const KEPT: usize = 2_000;

/// How many more files may exist before the next cleanup.
const SLACK: usize = 200;

impl PlansDir {
    /// Opens the log of a claim for appending; `relative` is the path in the plans directory, and leads to `logs` of the
    /// state directory.
    pub fn run_log(&self, relative: &str) -> Result<File, DiskError> {
        let path = self.run_file(relative)?;
        self.open_own(&path, OpenOptions::new().append(true).create(true))
    }

    /// Opens the log of an earlier claim; `None` if it was removed or cannot be opened.
    pub fn kept_run_log(&self, relative: &str) -> Option<File> {
        let path = self.place_of(relative).ok()?;
        self.open_own(&path, OpenOptions::new().read(true).write(true)).ok()
    }

    /// The last bytes of the log of a claim, at most `most`.
    pub fn end_of_run_log(&self, relative: &str, most: u64) -> io::Result<Vec<u8>> {
        let path = self.place_of(relative).map_err(io::Error::other)?;
        let mut file = self.open_own(&path, OpenOptions::new().read(true)).map_err(io::Error::other)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut end = Vec::new();
        file.take(most).read_to_end(&mut end)?;
        Ok(end)
    }

    /// Writes the prompt of a claim's process beside its log; returns the path.
    pub fn run_prompt(&self, log: &str, bytes: &[u8]) -> Result<PathBuf, DiskError> {
        let name = format!("{}.prompt", log.strip_suffix(".log").unwrap_or(log));
        let path = self.run_file(&name)?;
        let mut file = self.open_own(&path, OpenOptions::new().write(true).create(true).truncate(true))?;
        file.write_all(bytes).map_err(|error| DiskError::writing(&path, error))?;
        Ok(path)
    }

    fn open_own(&self, path: &Path, how: &mut OpenOptions) -> Result<File, DiskError> {
        let nofollow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let opened = how.mode(0o600).custom_flags(nofollow).open(path);
        opened.map_err(|error| DiskError::writing(path, error))
    }

    /// Returns the path of a file in `logs` of the state directory, and creates `logs`.
    fn run_file(&self, relative: &str) -> Result<PathBuf, DiskError> {
        let path = self.place_of(relative)?;
        let dir = path.parent().unwrap_or(&self.root);
        match self.disk.make_dir(dir, 0o700) {
            Ok(()) => {}
            Err(error) if is(&error, Errno::EXIST) => self.sweep_logs(dir).unwrap_or_default(),
            Err(error) => return Err(DiskError::writing(dir, error)),
        }
        Ok(path)
    }

    fn place_of(&self, relative: &str) -> Result<PathBuf, DiskError> {
        let path = self.root.join(relative);
        let is_inside = path.parent() == Some(&self.state_dir().join("logs"));
        let is_ours = is_inside && self.runtime_dir().is_some();
        if is_ours { Ok(path) } else { Err(DiskError::BadPath { path }) }
    }

    fn sweep_logs(&self, dir: &Path) -> io::Result<()> {
        if self.disk.names(dir)?.len() <= KEPT + SLACK {
            return Ok(());
        }
        remove_oldest(&*self.disk, dir, KEPT)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn logs_are_appended_to_in_one_directory() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("plans")).unwrap();
        let state = top.path().join("state");
        let plans = PlansDir::open(Arc::new(RealDisk), &top.path().join("plans"), Some(&state)).unwrap();
        // A run takes the lock before it opens a log, because it claims the step first.
        drop(plans.lock(&mut || {}).unwrap());
        for word in ["a", "b"] {
            plans.run_log(".planwatch/logs/p-1-x.log").unwrap().write_all(word.as_bytes()).unwrap();
        }
        let mut text = String::new();
        File::open(plans.root().join(".planwatch/logs/p-1-x.log"))
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "ab");
        assert!(plans.run_log("p/plan.md").is_err() && plans.run_log(".planwatch/logs/../lock").is_err());
        assert_eq!(plans.end_of_run_log(".planwatch/logs/p-1-x.log", 1).unwrap(), b"b");
        assert_eq!(plans.end_of_run_log(".planwatch/logs/p-1-x.log", 9).unwrap(), b"ab");
        assert!(plans.end_of_run_log("p/plan.md", 9).is_err());
        let prompt = plans.run_prompt(".planwatch/logs/p-1-x.log", b"do it").unwrap();
        assert!(prompt.ends_with(".planwatch/logs/p-1-x.prompt"));
    }
}
