//! The only starter of processes.

pub mod daemon;
pub mod editor;
pub mod shell;
mod tree;
pub mod worker;
