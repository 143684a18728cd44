//! Stores the state of plan drafts whose answers arrive in separate calls (`ops::draft`), in `.planwatch/drafts`.
//!
//! Nothing is synced. If a file is lost, the draft's next pass starts again from the plan's text.

use std::path::PathBuf;

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::Rename;
use super::fs_ops::{Safe, is, read_own, remove_oldest, write_new};
use super::plans_dir::PlansDir;

/// Before a file is stored, the oldest files beyond this number are removed.
const KEPT: usize = 100;

const LIMIT: u64 = 4 << 20;

impl PlansDir {
    /// Stores bytes under a name, and replaces earlier bytes of that name. A name consists of 1 to 32 ASCII letters and
    /// digits.
    pub fn put_draft(&self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let is_made = self.made_runtime_dir().is_some();
        let path = self.draft_file(name)?;
        let dir = path.parent().map(PathBuf::from).unwrap_or_default();
        if !is_made {
            return Err(DiskError::BadPath { path });
        }
        match self.disk.make_dir(&dir, 0o700) {
            Ok(()) => {}
            Err(error) if is(&error, Errno::EXIST) => {
                remove_oldest(&*self.disk, &dir, KEPT).unwrap_or_default();
            }
            Err(error) => return Err(DiskError::writing(&dir, error)),
        }
        let new = path.with_extension("new");
        self.disk.remove(&new).ok();
        let put = write_new(&*self.disk, &new, 0o600, bytes, Safe::No);
        put.and_then(|()| self.disk.rename(&new, &path, Rename::Replace))
            .map_err(|it| DiskError::writing(&path, it))
    }

    pub fn draft(&self, name: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let path = self.draft_file(name)?;
        read_own(&*self.disk, &path, LIMIT).map_err(|error| DiskError::reading(&path, error))
    }

    pub fn remove_draft(&self, name: &str) {
        if let Ok(path) = self.draft_file(name) {
            self.disk.remove(&path).ok();
        }
    }

    fn draft_file(&self, name: &str) -> Result<PathBuf, DiskError> {
        let path = self.state_dir().join("drafts").join(format!("{name}.json"));
        let is_name =
            !name.is_empty() && name.len() <= 32 && name.bytes().all(|it| it.is_ascii_alphanumeric());
        if is_name { Ok(path) } else { Err(DiskError::BadPath { path }) }
    }
}
