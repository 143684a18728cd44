//! Parses and edits the text of files.
//!
//! These modules do not depend on plans, open no file and do not read the clock.

pub mod data;
pub mod diff;
pub mod foreign;
pub mod front_matter;
pub mod header_edit;
pub mod includes;
pub mod json_entry;
pub mod line_index;
pub mod markdown;
pub mod marked_block;
pub mod placeholders;
pub mod scalar;
pub mod seal;
pub mod shell;
pub mod typed;
pub mod word_loss;
pub mod yaml;

/// `1 step`, `2 steps`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
