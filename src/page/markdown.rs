//! Renders a body, which is CommonMark with GFM, as HTML.
//!
//! There are two protections against HTML of the author. First, raw HTML in the body becomes text. Second, the result is
//! parsed again as a browser would parse it, and everything is removed except the elements, attributes and addresses that
//! the renderer makes.

mod renderer;
mod sanitize;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Options, Parser, html};

use renderer::Renderer;

/// The addresses of the links and images of a text. Each method returns an address that is put into the page as it is.
pub trait Addresses {
    /// Returns the address of a plan, a step or another file. `target` is what the author wrote;
    /// [`super::address::read`] interprets it. With `None`, the link's text stays as plain text. This method is not called
    /// for links to other sites or within the text.
    fn link(&self, target: &str) -> Option<String>;

    /// Returns the address from which an image is loaded. With `None`, a link or plain text replaces the image.
    fn image(&self, target: &str) -> Option<String>;
}

/// For a page without links to files.
#[derive(Debug, Clone, Copy)]
pub struct NoAddresses;

impl Addresses for NoAddresses {
    fn link(&self, _: &str) -> Option<String> {
        None
    }

    fn image(&self, _: &str) -> Option<String> {
        None
    }
}

/// The attributes of a task box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    Plain,
    /// `data-line`, the number of its line in the file, and `data-hash`, the [`line_hash`] of that line. Boxes are
    /// disabled until a script enables them.
    Located {
        /// The line of the file where the body begins, from 1.
        first_line: usize,
    },
}

/// How a body is made into HTML.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    /// A prefix for every id in the text, different for every text of a page, so that no two elements have the same id.
    pub id_prefix: &'a str,
    /// The HTML level of a heading with one `#`. Each further `#` adds one level, up to 6.
    pub top_heading: u8,
    pub tasks: Tasks,
    pub addresses: &'a dyn Addresses,
}

/// Returns a body as sanitized HTML.
pub fn render(body: &str, form: Form<'_>) -> Markup {
    // Heading attributes are not enabled, so that an author cannot choose the ids and classes of headings.
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM;
    let events = Parser::new_ext(body, options).into_offset_iter().collect();
    let mut renderer = Renderer::new(body, form, events);
    let events = renderer.events();
    let mut text = String::with_capacity(body.len() * 2);
    html::push_html(&mut text, events.into_iter());
    PreEscaped(sanitize::clean(&text, form.id_prefix, renderer.addresses()))
}

/// The hash by which a task's line is found again, even if lines were added above it.
pub fn line_hash(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    blake3::hash(line.as_bytes()).to_hex()[..16].to_owned()
}
