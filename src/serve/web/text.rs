//! The text of a step's or a plan's file as it is now, with its tasks.

use std::path::Path;

use maud::{Markup, html};

use super::layout::Visit;
use super::{forms, links};
use crate::api::context::Context;
use crate::page::markdown::{self, Form, Tasks};
use crate::page::text::one_line;
use crate::store::step_file;
use crate::text::front_matter;
use crate::text::markdown::outline;

/// A file of a plan, and its text.
pub(super) struct FileText {
    pub(super) bytes: Vec<u8>,
    /// The part of the file below the title; all text if something is written above the title.
    pub(super) text: String,
    /// The part below the title, which the editor changes.
    below_title: String,
    /// The line of the file at which the text begins, from 1.
    first_line: usize,
    /// The file's directory, relative to the plans directory.
    directory: String,
}

impl FileText {
    /// `path` begins with the plans directory's name. `otherwise` replaces the body if the file is empty or cannot be read.
    pub(super) fn read(context: &Context, path: &str, otherwise: &str) -> Self {
        let root = format!("{}/", context.root_name());
        let path = path.strip_prefix(&root).unwrap_or(path);
        let bytes = context.plans.read(Path::new(path)).map(|it| it.bytes).unwrap_or_default();
        let start = front_matter::split(&bytes).body_start();
        let body = if bytes.is_empty() {
            otherwise.to_owned()
        } else {
            String::from_utf8_lossy(&bytes[start..]).into_owned()
        };
        let n_above = bytes[..start].iter().filter(|it| **it == b'\n').count();
        let title = step_file::heading_lines(&body);
        let shown = if body[..title.start].trim().is_empty() { title.end } else { 0 };
        let n_title = body[..shown].matches('\n').count();
        let (text, below_title) = (body[shown..].to_owned(), body[title.end..].to_owned());
        let directory = path.rsplit_once('/').map_or("", |it| it.0).to_owned();
        Self { bytes, text, below_title, first_line: n_above + n_title + 1, directory }
    }

    /// The text for the editor, without line breaks at its start and end.
    pub(super) fn edited(&self) -> &str {
        self.below_title.trim_matches(['\r', '\n'])
    }

    /// The text with check boxes that can be ticked, and a link to edit it. `here` is the page of the step or plan.
    pub(super) fn shown(&self, visit: &Visit, id: &str, here: &str, path: &str, none: &str) -> Markup {
        let addresses = links::InText { directory: &self.directory, known: None };
        let tasks = Tasks::Located { first_line: self.first_line };
        let form = Form { id_prefix: "doc-", top_heading: 1, tasks, addresses: &addresses };
        html! {
            section class="text" aria-label="Text" {
                @if self.text.trim().is_empty() { p class="none" { (none) } }
                @else {
                    article class="prose text" id="text" data-tick=[(!visit.is_read_only()).then_some(id)]
                        data-page=(visit.session.page_token) { (markdown::render(&self.text, form)) }
                }
                @if !visit.is_read_only() {
                    p class="text-actions" {
                        a class="button" href={(here) "/edit"} id="edit" { "Edit the text" }
                        button type="button" class="script" data-copy=(path) { "Copy the path for an editor" }
                    }
                    noscript { (self.ticks(visit, id)) }
                }
            }
        }
    }

    /// The tasks as forms, for browsers without script. In these browsers, the check boxes in the text do nothing.
    fn ticks(&self, visit: &Visit, id: &str) -> Markup {
        let tasks = outline(&self.text).tasks;
        let lines = tasks.iter().map(|it| {
            let nth = self.text[..it.at].matches('\n').count();
            (nth, self.text.lines().nth(nth).unwrap_or_default(), it.ticked)
        });
        html! {
            @for (nth, line, ticked) in lines {
                @let place = (self.first_line + nth, markdown::line_hash(line));
                (tick(visit, id, &place, ticked, line.trim_start_matches(['-', '*', '+', ' '])))
            }
        }
    }
}

/// A form that ticks or clears one check box.
pub(super) fn tick(visit: &Visit, id: &str, place: &(usize, String), ticked: bool, label: &str) -> Markup {
    html! {
        form class="inline tick" method="post" action="/do" {
            (forms::hidden(visit, "tick", id))
            input type="hidden" name="line" value=(place.0);
            input type="hidden" name="hash" value=(place.1);
            input type="hidden" name="ticked" value=(!ticked);
            button { (if ticked { "Clear" } else { "Tick" }) ": " (one_line(label)) }
        }
    }
}
