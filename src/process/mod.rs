//! Starts all processes but git, which [`crate::git`] starts, and the browser, which the binary opens.

#![expect(clippy::disallowed_methods, reason = "this is the layer that the ban points to")]

pub mod answer;
pub mod daemon;
pub mod editor;
pub mod foreground;
mod orphans;
pub mod pager;
pub mod shell;
pub mod worker;
