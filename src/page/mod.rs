//! HTML and SVG of plans and steps, for the exported page and for the browser.
//!
//! The functions turn data into text: nothing here opens a file or reads the clock. Text that people wrote enters HTML
//! through `maud`, which escapes it. Only [`markdown`], which sanitizes its result, and [`style`] make HTML without
//! escaping.

pub mod address;
pub mod chart;
pub mod graph;
pub mod images;
pub mod look;
pub mod markdown;
pub mod style;
pub mod text;
pub mod timeline;

#[cfg(test)]
mod tests;
