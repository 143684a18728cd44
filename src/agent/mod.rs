//! The only starter of processes.

pub mod answer;
pub mod daemon;
pub mod editor;
pub mod shell;
