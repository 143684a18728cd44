//! Each module implements one verb, or several similar verbs. A verb takes a request and returns a report, and these are the
//! same for every surface.
//!
//! Nothing here prints. The environment and the time come from the [`Context`](crate::api::context::Context).
//! Each verb loads only the plans that it needs, in their present state.

pub mod add;
pub mod archive;
pub mod check;
pub mod claim;
pub mod completion;
pub mod confirm;
pub mod create;
pub mod decide;
pub mod diff;
pub mod doctor;
pub mod draft;
pub mod edit;
pub mod export;
pub mod git_commit;
pub mod git_merge;
pub mod git_resolve;
pub mod git_review;
pub mod git_setup;
pub mod hook;
pub mod import;
pub mod init;
pub mod insight;
pub mod list;
pub mod log;
pub mod next;
pub mod note;
pub mod patch;
pub mod release;
pub mod remove;
pub mod rename;
pub mod renumber;
pub mod replace;
pub mod run;
pub mod script;
pub mod search;
pub mod set;
pub mod show;
pub mod skills;
pub mod split;
pub mod squash;
pub mod stale;
pub mod stats;
pub mod status;
pub mod steps_list;
pub mod sync;
pub mod template;
pub mod tick;
pub mod token;
pub mod undo;
pub mod update;
pub mod upsert;

#[cfg(test)]
mod tests;
