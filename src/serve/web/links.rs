//! The addresses of pages. They are stable, and the same for everyone.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::page::address::{self, Target, encoded};
use crate::page::markdown::Addresses;
use crate::page::text::isolated;
use crate::plan::id::read_step_id;

pub(super) fn plan(id: &str) -> String {
    format!("/plan/{}", encoded(id))
}

pub(super) fn step(id: &str) -> String {
    format!("/step/{}", encoded(id))
}

/// A link to a step or plan, with the id as its text.
pub(super) fn to(id: &str) -> Markup {
    let path = if id.contains(':') { step(id) } else { plan(id) };
    html! { a href=(path) { (isolated(id)) } }
}

/// Formats a message of an operation. The id of a step in backticks becomes a link; all backticks are removed.
pub(super) fn in_sentence(text: &str) -> Markup {
    html! {
        @for (nth, part) in text.split('`').enumerate() {
            @if nth % 2 == 1 && read_step_id(part).is_some() { (to(part)) }
            @else {
                @if part.starts_with(' ') { " " }
                @if !part.trim().is_empty() { (isolated(part)) @if part.ends_with(' ') { " " } }
            }
        }
    }
}

/// The addresses of the links and images in a text: pages of steps and plans, other sites, and images under `/image/`.
pub(super) struct InText<'a> {
    /// The directory of the file, relative to the plans directory.
    pub(super) directory: &'a str,
    /// The plans and steps that exist; only these are linked. If `None`, every plan and step is linked.
    pub(super) known: Option<&'a BTreeSet<String>>,
}

impl Addresses for InText<'_> {
    fn link(&self, address: &str) -> Option<String> {
        let is_known = |id: &str| self.known.is_none_or(|it| it.contains(id));
        match address::read(self.directory, address)? {
            Target::Outside(it) => Some(it),
            Target::Here(name) => Some(format!("#{name}")),
            Target::Plan(id) => is_known(id.as_str()).then(|| plan(id.as_str())),
            Target::Step(id) => is_known(&id.to_string()).then(|| step(&id.to_string())),
            Target::File(path) => is_image(&path).then(|| image(&path)),
        }
    }

    fn image(&self, address: &str) -> Option<String> {
        match address::read(self.directory, address)? {
            Target::File(path) => Some(image(&path)),
            _ => None,
        }
    }
}

fn is_image(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    ["png", "jpg", "jpeg", "gif", "webp", "svg"].contains(&ending.as_str())
}

fn image(path: &str) -> String {
    let parts: Vec<_> = path.split('/').map(encoded).collect();
    format!("/image/{}", parts.join("/"))
}
