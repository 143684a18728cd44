//! Errors of reading and writing files; every variant names the path.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::file_system::FileKind;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    #[error("`{}` does not exist", path.display())]
    NotFound { path: PathBuf },
    #[error("`{}` is a {}, not a file", path.display(), kind.word())]
    NotAFile { path: PathBuf, kind: FileKind },
    #[error("`{}` is a {}, not a directory", path.display(), kind.word())]
    NotADirectory { path: PathBuf, kind: FileKind },
    /// A symbolic link leads out of the plans directory, into git's or planwatch's own directories, in a circle, or to
    /// nothing.
    #[error("`{}` is a symbolic link that does not lead to a file inside the plans directory", path.display())]
    LeadsOut { path: PathBuf },
    /// A symbolic link leads out of the project, into git's own directory, or to nothing.
    #[error("`{}` is a symbolic link that does not lead to a file inside the project", path.display())]
    LeadsOutOfProject { path: PathBuf },
    /// The path leads out of the repository, or into git's or planwatch's own directories.
    #[error("`{}` is not a file of this repository", path.display())]
    OutsideRepository { path: PathBuf },
    /// The file contains a token or a key of planwatch, or the stamp of a state directory (see `runtime`).
    #[error("`{}` contains a planwatch token or key, so it is not read", path.display())]
    Secret { path: PathBuf },
    /// The path is absolute or empty, contains `..` or a zero byte, or is one of planwatch's own paths; or a batch uses it
    /// twice in a way that [`FileOp`](super::FileOp) forbids.
    #[error("`{}` is not a path inside the plans directory", path.display())]
    BadPath { path: PathBuf },
    #[error("`{}` has {len} bytes, more than {limit}", path.display())]
    TooLarge { path: PathBuf, len: u64, limit: u64 },
    #[error("`{}` could not be read", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` cannot be written", path.display())]
    ReadOnly { path: PathBuf, source: io::Error },
    #[error("no space left for `{}`", path.display())]
    NoSpace { path: PathBuf, source: io::Error },
    /// The name is taken; nothing was changed.
    #[error("`{}` already exists", path.display())]
    Exists { path: PathBuf },
    /// Another program changed the file meanwhile. That program's text is in the file.
    #[error("`{}` changed while it was being written", path.display())]
    FileChanged { path: PathBuf },
    /// The file was modified a moment ago, and it is empty or has lost more than half of its text. planwatch did not
    /// change it.
    #[error("`{}` looks half saved: it was modified a moment ago and is empty or has lost more than half of its text", path.display())]
    HalfSaved { path: PathBuf },
    /// A file that is in the undo log or in the index is missing, and its directory changed a moment ago. Another program
    /// may be about to write the file again. planwatch did not create it.
    #[error("`{}` is missing, and its directory changed a moment ago: a save may be under way", path.display())]
    Vanished { path: PathBuf },
    /// The file cannot be replaced or moved to `displaced/`. It can only be overwritten in place, or removed immediately.
    /// Both are unsafe while another program has it open.
    #[error("`{}` seems to be open in another program, and it cannot be replaced, because it has several hard links or is on another mount", path.display())]
    InUse { path: PathBuf },
    /// Detected before anything was written.
    #[error("`{}` cannot be moved to `{}`, because they are on different mounts", path.display(), to.display())]
    Mounted { path: PathBuf, to: PathBuf },
    /// Detected before anything was written.
    #[error("`{}` is a relative symbolic link, and would lead elsewhere after a move to `{}`", path.display(), to.display())]
    LinkBreaks { path: PathBuf, to: PathBuf },
    #[error("`{}` is locked by another planwatch process", path.display())]
    Locked { path: PathBuf },
    /// The file is part of an unfinished change, begun by another user or with another state directory.
    #[error("`{}` is part of an unfinished `{verb}`, begun at {at} by another user or with another state directory", path.display())]
    BegunElsewhere { path: PathBuf, verb: String, at: String, id: String },
    /// The change is visible but may not survive a power cut, or the file was written in place only partly. The earlier text
    /// is preserved.
    #[error("`{}` may not be safely on disk; the previous version is in `{}`", path.display(), kept.display())]
    Uncertain { path: PathBuf, kept: PathBuf, source: io::Error },
    /// A new file or directory exists, but its name may not survive a power cut.
    #[error("`{}` was created, but may not be safely on disk", path.display())]
    Unsynced { path: PathBuf, source: io::Error },
    /// A change of several files failed and could not be undone completely.
    #[error("{error}, and the changes made before the error could not be undone yet")]
    Unfinished {
        path: PathBuf,
        /// If true, the next command that takes the lock undoes the change. Otherwise it finishes or undoes the change.
        goes_back: bool,
        #[source]
        error: Box<Self>,
    },
    #[error("`{}`: input or output failed", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl DiskError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::NotAFile { .. }
            | Self::LeadsOut { .. }
            | Self::LeadsOutOfProject { .. }
            | Self::LinkBreaks { .. } => "not-a-file",
            Self::NotADirectory { .. } => "not-a-directory",
            Self::BadPath { .. } | Self::OutsideRepository { .. } | Self::Secret { .. } => "bad-path",
            Self::TooLarge { .. } => "too-large",
            Self::Unreadable { .. } => "unreadable",
            Self::ReadOnly { .. } => "read-only",
            Self::NoSpace { .. } => "no-space",
            Self::Exists { .. } => "plan-exists",
            Self::FileChanged { .. }
            | Self::HalfSaved { .. }
            | Self::Vanished { .. }
            | Self::InUse { .. } => "file-changed",
            Self::Locked { .. } | Self::BegunElsewhere { .. } => "locked",
            Self::Unfinished { .. } => "unfinished",
            Self::Mounted { .. } | Self::Uncertain { .. } | Self::Unsynced { .. } | Self::Io { .. } => {
                "io-error"
            }
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path }
            | Self::NotAFile { path, .. }
            | Self::NotADirectory { path, .. }
            | Self::LeadsOut { path }
            | Self::LeadsOutOfProject { path }
            | Self::OutsideRepository { path }
            | Self::Secret { path }
            | Self::BadPath { path }
            | Self::TooLarge { path, .. }
            | Self::Unreadable { path, .. }
            | Self::ReadOnly { path, .. }
            | Self::NoSpace { path, .. }
            | Self::Exists { path }
            | Self::FileChanged { path }
            | Self::HalfSaved { path }
            | Self::Vanished { path }
            | Self::InUse { path }
            | Self::Mounted { path, .. }
            | Self::LinkBreaks { path, .. }
            | Self::Locked { path }
            | Self::BegunElsewhere { path, .. }
            | Self::Uncertain { path, .. }
            | Self::Unsynced { path, .. }
            | Self::Unfinished { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::BegunElsewhere { id, .. } => {
                return Some(format!(
                    "the next command that writes completes that change or rolls it back, if it is run by the user \
                     who began the change, with the same XDG_STATE_HOME, in the same container; \
                     `planwatch doctor --discard-journal {id}` gives that change up: the part that was done stays, and the rest is not done"
                ));
            }
            Self::NotAFile { .. } => "rename it, or replace it with a regular file",
            Self::NotADirectory { .. } => "name a directory",
            Self::LeadsOut { .. } => "copy the file into the plans directory instead of linking to it",
            Self::LeadsOutOfProject { .. } => "remove the link, or replace it with a file of the project",
            Self::OutsideRepository { .. } => {
                "name a file of the repository outside `.git` and `.planwatch`; symbolic links that lead out of the repository are not followed"
            }
            Self::TooLarge { .. } => "move what is not plan text into a file of its own",
            Self::Unreadable { .. } => "make it readable",
            Self::FileChanged { .. } => "save the file in the editor, then try again",
            Self::HalfSaved { .. } | Self::Vanished { .. } => {
                "nothing was written; try again when the editor has finished, or after two seconds"
            }
            Self::InUse { .. } => "close the file in the other program, then try again",
            Self::Mounted { .. } => {
                "nothing was written; unmount the directory, or run the command where it is not mounted, for example outside the container, then try again"
            }
            Self::LinkBreaks { .. } => {
                "nothing was changed; put the file itself in the link's place, then try again"
            }
            Self::Locked { .. } => "try again when the other command has ended",
            Self::NoSpace { .. } => "make room and try again",
            Self::Unfinished { goes_back: true, .. } => {
                "correct the cause; the next command that writes rolls the change back first"
            }
            Self::Unfinished { .. } => {
                "correct the cause; the next command that writes completes the change or rolls it back"
            }
            Self::Unsynced { .. } => "check the disk, then check whether the file is there",
            Self::Uncertain { .. } => "check the file and the disk, then try again",
            _ => return None,
        };
        Some(hint.to_string())
    }

    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::NotFound { path },
            Some(Errno::LOOP) => Self::LeadsOut { path },
            Some(Errno::NXIO) => Self::NotAFile { path, kind: FileKind::Other },
            _ => Self::Unreadable { path, source },
        }
    }

    pub(super) fn writing(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::NotFound { path },
            Some(Errno::EXIST | Errno::NOTEMPTY) => Self::Exists { path },
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Self::ReadOnly { path, source },
            Some(Errno::NOSPC | Errno::DQUOT) => Self::NoSpace { path, source },
            _ => Self::Io { path, source },
        }
    }
}
