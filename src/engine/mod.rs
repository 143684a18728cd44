//! One file per verb: a request in, a report out, the same for every surface.
//!
//! Nothing here prints, reads the environment or asks for the time: all of that is in the [`context::Context`].
//! Reading verbs take all plans as they are now; writing verbs look only at the plan that they change.

pub mod add;
pub mod address;
pub mod agents;
pub mod archive;
pub mod check;
pub mod claim;
pub mod config;
pub mod confirm;
pub mod context;
pub mod create;
pub mod decide;
pub mod doctor;
pub mod draft;
pub mod edit;
pub mod error;
pub mod expected;
pub mod export;
pub mod import;
pub mod insight;
pub mod instructions;
pub mod list;
pub mod next;
pub mod note;
pub(crate) mod outline;
pub mod patch;
pub mod prompt;
pub mod refresh;
pub mod release;
pub mod remove;
pub mod renumber;
pub mod replace;
pub mod run;
pub mod schema;
pub mod script;
pub mod search;
pub mod set;
pub mod shape;
pub mod show;
pub mod squash;
pub mod status;
pub mod template;
pub mod texts;
pub mod trust;
pub mod undo;
pub mod update;
pub mod verify;
pub mod workspace;
pub mod write;

mod attention;
mod graph;
pub(crate) mod knowledge;
mod leases;
pub(crate) mod load;
mod owner;
mod plan_file;
mod plan_status;
mod program;
mod repoint;
mod resolve;
mod step_file;
mod steps_line;
