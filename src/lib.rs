//! planwatch: a plan engine over Markdown files.
//!
//! The modules are floors; each knows itself and those before it, never those after it.
//! `tests/it/tidy/imports.rs` checks that.

pub mod text;

pub mod plan;

pub mod disk;

pub mod git;

pub mod index;

pub mod api;

pub mod page;

pub mod store;

pub mod ops;

pub mod process;

pub mod serve;
