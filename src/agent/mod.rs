//! The only starter of processes.

pub mod editor;
pub mod shell;
