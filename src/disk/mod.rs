//! Reads and writes files. `tests/it/tidy.rs` lists the few other source files that access files.
//!
//! [`PlansDir`] reads and scans. [`Locked`], returned by [`PlansDir::lock`], is the only way to write plan files. Both
//! use [`Disk`], the trait of all primitive calls. [`RealDisk`] implements it with system calls. An overlay implements
//! it for texts that are open in an editor. For tests there is a model that separates durable from visible state and
//! can crash or fail at any call. The content of plan files is not interpreted here.

mod batch;
mod capabilities;
mod change;
mod covered;
mod create;
mod daemon;
mod displaced;
mod displaced_gc;
mod draft_files;
mod error;
mod external_files;
mod fallback;
mod file_system;
mod fs_ops;
mod git_dir;
mod half_saved;
mod in_mount;
mod index_place;
mod journal;
mod keyed;
mod lease;
mod links;
mod locking;
mod mounts;
mod names;
mod overlay;
mod own_writes;
mod path_text;
mod pending;
mod plans_dir;
mod process;
mod project;
mod queries;
mod reach;
mod real;
mod records;
mod request_key;
mod rollback;
mod run_files;
mod runtime;
mod scan;
mod scratch;
mod undo;
mod unfinished;
mod user_state;
mod write_lock;

pub use capabilities::{Abilities, FileSystem, watch_limit};
pub use change::Edit;
pub use covered::{Coverage, Covered};
pub use daemon::{DaemonLock, Directories, FileId, Named};
pub use displaced::{Kept, KeptWhy};
pub use error::DiskError;
pub use external_files::{OutsideFile, OutsideFiles};
pub use file_system::{Against, Disk, DiskFile, FileKind, Lease, Open, Rename, Stat};
pub use git_dir::{Head, Worktree};
pub use half_saved::Saves;
pub use journal::{FileOp, Outcome, Recovered, Unfinished};
pub use keyed::{Answers, KeyLock};
pub use mounts::Mounts;
pub use overlay::OpenTexts;
pub use own_writes::{Left, OwnLog, OwnWrite};
pub use pending::Pending;
pub use plans_dir::{FILE_LIMIT, PlansDir, Snapshot};
pub use process::{Process, ProcessState, boot, host_name, since_boot};
pub use project::{Project, ProjectReport};
pub use queries::{make_plans_dir, read_file};
pub use reach::{Origin, Reach};
pub use real::RealDisk;
pub use records::{HeldRecord, LockedRecords, Records};
pub use request_key::Keyed;
pub use scan::{PlanDir, Scan, ScanEntry, Trouble};
pub use scratch::{ScratchFiles, replace_temporary};
pub use undo::{UndoChange, UndoCheck, UndoEntry, UndoError, Undone};
pub use unfinished::Discarded;
pub use user_state::UserStore;
pub use write_lock::{Done, FileRecords, Locked, Written};

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
