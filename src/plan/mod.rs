//! What a plan is: bytes to plans and steps, their rules, and changes back to edits.
//!
//! Pure: no file is opened here and no clock is read. A broken file is data, a [`problem::Problem`], never an error.

pub mod binary;
pub mod bring;
pub mod change;
pub mod claims;
pub mod decision;
pub mod entry;
pub mod file_name;
pub mod history;
pub mod id;
pub mod insight;
pub mod merge;
pub mod model;
pub mod plans;
pub mod problem;
pub mod ranges;
pub mod read;
pub mod records;
pub mod rules;
pub mod script;
pub mod step_number;
pub mod time;
pub mod touches;
pub mod transitions;
pub mod words;

mod fields;
mod read_step;
pub(crate) mod references;
mod source;
pub(crate) mod step_items;
pub(crate) mod steps_list;
pub mod summary;
