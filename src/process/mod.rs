//! Starts all processes except git and the browser: [`crate::git`] starts git, and the binary opens the browser.

#![expect(clippy::disallowed_methods, reason = "this is the layer that the ban points to")]

pub mod answer;
pub mod daemon;
pub mod editor;
pub mod foreground;
mod orphans;
pub mod pager;
pub mod shell;
pub mod worker;
