//! The only module that starts processes.

pub mod answer;
pub mod daemon;
pub mod editor;
mod orphans;
pub mod pager;
pub mod shell;
mod tree;
pub mod worker;
