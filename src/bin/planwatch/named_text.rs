//! Reads texts by path: files, pipes, and `-` for standard input. `disk::Reach` decides which files may be read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use planwatch::api::error::Error;
use planwatch::disk::{DiskError, FileKind, Origin, Reach};

use crate::context::{Session, state_home};
use crate::failure::{self, Failure};

/// The largest text that is read, in bytes. A device could be endless.
const LIMIT: u64 = 64 << 20;

/// Reads a text that the user names.
pub(crate) fn read(session: &Session, path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return standard_input();
    }
    with_reach(session, path, |reach| {
        let whole = session.path(path);
        match reach.find(&whole, Origin::User) {
            // A path that a person names is refused only because of a link that leads out of the repository.
            Err(DiskError::OutsideRepository { .. }) => Err(Unread::LeadsOut),
            Err(error @ DiskError::Secret { .. }) => Err(error.into()),
            Ok(real) if is_file(session, &real) => Ok(reach.read_found(&real, path, LIMIT)?),
            // A pipe has no path that can be resolved. For a missing file, opening it returns the error.
            _ => bounded(File::open(&whole)?, path),
        }
    })
}

/// Reads a file of the repository whose path was read from another file of the repository.
pub(crate) fn read_inside(session: &Session, path: &Path) -> Result<String, Failure> {
    with_reach(session, path, |reach| Ok(reach.read(path, Origin::Elsewhere, LIMIT)?))
}

pub(crate) fn standard_input() -> Result<String, Failure> {
    let path = Path::new("-");
    text(path, bounded(io::stdin(), path))
}

enum Unread {
    LeadsOut,
    Disk(DiskError),
    System(io::Error),
}

impl From<DiskError> for Unread {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

fn with_reach(
    session: &Session,
    path: &Path,
    read: impl FnOnce(&Reach<'_>) -> Result<Vec<u8>, Unread>,
) -> Result<String, Failure> {
    let (disk, root) = (session.disk(), session.root()?);
    text(path, read(&Reach::of(&*disk, &root, state_home().as_deref())))
}

fn is_file(session: &Session, real: &Path) -> bool {
    session.disk().lstat(real).is_ok_and(|it| it.kind == FileKind::File)
}

fn bounded(from: impl Read, path: &Path) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    from.take(LIMIT + 1).read_to_end(&mut bytes)?;
    let len = bytes.len() as u64;
    if len > LIMIT {
        return Err(DiskError::TooLarge { path: path.to_path_buf(), len, limit: LIMIT }.into());
    }
    Ok(bytes)
}

fn text(path: &Path, read: Result<Vec<u8>, Unread>) -> Result<String, Failure> {
    let said = |code, exit, why: &str| {
        let message = format!("`{}` cannot be read: {why}", path.display());
        Failure::failed(code, message).with_exit(exit)
    };
    let missing = || said("not-found", 3, "no such file or directory");
    match read {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| said("unreadable", 1, "it is not UTF-8")),
        Err(Unread::LeadsOut) => Err(Error::leads_out(path.display()).into()),
        Err(Unread::Disk(DiskError::NotFound { .. })) => Err(missing()),
        Err(Unread::Disk(error)) => Err(Error::Disk(as_typed(error, path)).into()),
        Err(Unread::System(error)) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
        Err(Unread::System(error)) => Err(said("unreadable", 1, &failure::system(&error))),
    }
}

/// The same error, with the path as it was typed.
fn as_typed(error: DiskError, path: &Path) -> DiskError {
    let path = path.to_path_buf();
    match error {
        DiskError::OutsideRepository { .. } => DiskError::OutsideRepository { path },
        DiskError::Secret { .. } => DiskError::Secret { path },
        other => other,
    }
}
