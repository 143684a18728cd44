//! The parts of the style sheet that the exported page and the pages for the browser share.

use maud::{Markup, PreEscaped, html};

/// Colours (light or dark, as the reader's system is set), text, tables, badges and links.
pub const BASE: &str = include_str!("style/base.css");

/// Bodies: headings, code, quotations, alerts, task boxes, footnotes.
pub const MARKDOWN: &str = include_str!("style/markdown.css");

/// Graphs, timelines and charts.
pub const DRAWINGS: &str = include_str!("style/drawings.css");

/// The changes for printing: light colours, no page breaks inside elements, no scrolling.
pub const PRINT: &str = include_str!("style/print.css");

/// The parts above, in the order that the cascade needs.
pub const ALL: &str = concat!(
    include_str!("style/base.css"),
    include_str!("style/markdown.css"),
    include_str!("style/drawings.css"),
    include_str!("style/print.css"),
);

/// The style sheet of a self-contained page, as a `style` element, in which no character may be escaped.
pub fn document() -> Markup {
    let parts = [BASE, MARKDOWN, DRAWINGS, include_str!("style/document.css"), PRINT];
    html! { style { (PreEscaped(parts.concat())) } }
}
