//! Plans and steps: parses them from bytes, applies the rules, and turns changes into edits.
//!
//! The functions are pure: they open no file and read no clock. A fault in a file becomes a [`problem::Problem`], never an
//! error.

pub mod aims;
pub mod binary;
pub mod change;
pub mod claims;
pub mod course;
pub mod decision;
pub mod entry;
pub mod file_name;
pub mod history;
pub mod id;
pub mod import;
pub mod insight;
pub mod merge;
pub mod model;
pub mod plans;
pub mod problem;
pub mod ranges;
pub mod read;
pub mod records;
pub(crate) mod reread;
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

pub(crate) use read_step::without_step_prefix;
