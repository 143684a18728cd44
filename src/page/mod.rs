//! HTML and SVG of plans and steps, for the exported page and for the browser.
//!
//! Functions from data to text: nothing here opens a file, asks for the time or decides anything. Text of people enters
//! HTML through `maud`, which escapes it; only [`markdown`], which sanitizes it, and [`style`] make HTML without that.

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
