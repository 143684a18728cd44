//! The only floor that reads and writes files.
//!
//! [`PlansDir`] reads and scans; [`Locked`], got from [`PlansDir::lock`], is the only way
//! to write. Both run on [`Disk`], a list of primitive calls with two implementations:
//! [`RealDisk`], and for tests a model that keeps what is durable apart from what is not,
//! and can crash or fail at any call. Knows files, never what is written in them.

mod back;
mod batch;
mod beyond;
mod calls;
mod change;
mod covered;
mod daemon;
mod displaced;
mod draft_files;
mod error;
mod facts;
mod fallback;
mod git_dir;
mod half_saved;
mod index_place;
mod journal;
mod keyed;
mod lease;
mod locked;
mod look;
mod mounts;
mod moves;
mod names;
mod near;
mod outside;
mod own_writes;
mod path_text;
mod pending;
mod plans_dir;
mod process;
mod project;
mod question;
mod reach;
mod real;
mod records;
mod remarks;
mod run_files;
mod runtime;
mod scan;
mod sweep;
mod undo;
mod unfinished;

pub use batch::{Outcome, Recovered};
pub use beyond::UserStore;
pub use calls::{Against, Disk, DiskFile, FileKind, Lease, Open, Rename, Stat};
pub use change::Edit;
pub use covered::{Coverage, Covered};
pub use daemon::{DaemonLock, Directories};
pub use displaced::{Kept, KeptWhy};
pub use error::{ChangeError, DiskError};
pub use facts::{Abilities, FileSystem, watch_limit};
pub use git_dir::{Head, Worktree};
pub use half_saved::Saves;
pub use journal::FileOp;
pub use keyed::{Answers, KeyLock, Keyed};
pub use locked::{Done, Lengths, Locked, Written};
pub use look::{make_plans_dir, read_file};
pub use mounts::Mounts;
pub use outside::{OutsideFile, OutsideFiles};
pub use own_writes::{OwnLog, OwnWrite};
pub use pending::Pending;
pub use plans_dir::{FILE_LIMIT, PlansDir, Snapshot};
pub use process::{Process, ProcessState, boot};
pub use project::Project;
pub use question::{Answering, Question, Turn};
pub use reach::{Origin, Reach};
pub use real::RealDisk;
pub use records::{LockedRecords, Records};
pub use scan::{PlanDir, Scan, ScanEntry, Trouble};
pub use undo::{UndoChange, UndoEntry, UndoError, Undone};
pub use unfinished::{Discarded, Unfinished};

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
