//! planwatch: a plan engine over Markdown files.
//!
//! The modules are layers: each imports only from itself and from the modules above it in this file.
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
