//! The goals and success criteria of a plan, with their check boxes.

use maud::{Markup, html};

use super::layout::Visit;
use super::text;
use crate::api::views::PlanShape;
use crate::page::markdown::line_hash;
use crate::page::text::isolated;
use crate::plan::aims::{self, Aim};

/// The list of goals and the list of success criteria. A list that the plan does not have is empty.
pub(super) struct Aims<'a> {
    plan: &'a PlanShape,
    lists: [(&'static str, Vec<Aim>); 2],
}

impl<'a> Aims<'a> {
    /// `file` is the content of `plan.md`.
    pub(super) fn of(plan: &'a PlanShape, file: &[u8]) -> Self {
        // A value that is not written as a list has no check boxes.
        let plain = |it: &String| Aim { text: it.clone(), mark: None };
        let list = |key: &str, all: &[String]| {
            let found = aims::aims(file, key);
            if found.len() == all.len() { found } else { all.iter().map(plain).collect() }
        };
        let goals = ("Goals", list("goals", &plan.goals));
        let criteria = ("Success criteria", list("success_criteria", &plan.success_criteria));
        Self { plan, lists: [goals, criteria] }
    }

    fn all(&self) -> impl Iterator<Item = &Aim> {
        self.lists.iter().flat_map(|it| &it.1)
    }

    /// Both lists, folded under a line that says how many boxes are ticked. Nothing if both lists are empty.
    pub(super) fn folded(&self, visit: &Visit) -> Markup {
        let marks = || self.all().filter_map(|it| it.mark.as_ref());
        let (n, n_ticked) = (marks().count(), marks().filter(|it| it.ticked).count());
        html! {
            @if self.all().next().is_some() {
                details class="more aims" id="aims" {
                    summary {
                        "Goals and success criteria "
                        @if n > 0 { span class="count" { (n_ticked) " of " (n) " ticked" } }
                    }
                    div class="aim-lists" { (self.lists(visit)) }
                }
            }
        }
    }

    pub(super) fn lists(&self, visit: &Visit) -> Markup {
        let may_tick = !visit.is_read_only();
        html! {
            @for (title, list) in self.lists.iter().filter(|it| !it.1.is_empty()) {
                section {
                    h2 { (title) }
                    ul class="plain" data-tick=[may_tick.then_some(&self.plan.id)] data-page=(visit.session.page_token) {
                        @for it in list { li { (self.aim(visit, it)) } }
                    }
                }
            }
        }
    }

    fn aim(&self, visit: &Visit, it: &Aim) -> Markup {
        let Some(mark) = &it.mark else { return isolated(&it.text) };
        let place = mark.place.as_ref().map(|it| (it.0, line_hash(&it.1)));
        let place = place.as_ref();
        html! {
            label class="aim" {
                input class="task" type="checkbox" checked[mark.ticked] disabled data-line=[place.map(|it| it.0)]
                    data-hash=[place.map(|it| &it.1)];
                span { (isolated(&it.text)) }
            }
            @if let Some(place) = place.filter(|_| !visit.is_read_only()) {
                noscript { (text::tick(visit, &self.plan.id, place, mark.ticked, &it.text)) }
            }
        }
    }
}
