//! `export --all --format html`: the first page of a directory of pages. It lists the plans that are not archived, the
//! decisions that are not superseded, and the insights.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::reach::{Reach, Site};
use super::{document, records};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{PlanShape, Views};
use crate::page::text::{isolated, words};
use crate::store::knowledge;
use crate::store::load::LoadQuery;

/// The plans that have pages, in the order in which the first page lists them: active, draft, completed, then the others.
#[derive(Debug)]
pub(in crate::ops::export) struct Index {
    plans: Vec<PlanShape>,
    pub(in crate::ops::export) known: BTreeSet<String>,
}

impl Index {
    /// All plans except archived ones, without this machine's records of claims.
    pub(in crate::ops::export) fn of(context: &Context) -> Result<Self, Error> {
        let all = LoadQuery::all().without_claims().load(context)?.plans;
        let views = Views::of(context, &all);
        let mut plans: Vec<PlanShape> = all.live().map(|it| views.plan(it)).collect();
        let place = |it: &PlanShape| match it.status.as_str() {
            "active" => 0,
            "draft" => 1,
            "completed" => 2,
            _ => 3,
        };
        plans.sort_unstable_by(|a, b| (place(a), &a.id).cmp(&(place(b), &b.id)));
        let known = plans.iter().map(|it| it.id.clone()).collect();
        Ok(Self { plans, known })
    }

    pub(in crate::ops::export) fn ids(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().map(|it| it.id.as_str())
    }

    pub(in crate::ops::export) fn page(&self, context: &Context) -> String {
        let mut decisions = knowledge::decisions(context);
        let superseded: BTreeSet<String> = decisions.iter().filter_map(|it| it.supersedes.clone()).collect();
        decisions.retain(|it| !superseded.contains(&it.id));
        decisions.reverse();
        let mut insights = knowledge::insights(context);
        insights.reverse();
        let reach = Reach { context, own: None, site: Some(Site { plans: &self.known, way: "plans/" }) };
        let main = html! {
            header { h1 { "Plans" } }
            @if self.plans.is_empty() { p.soft { "There are no plans." } } @else { (table(&self.plans, &reach)) }
            (records::decisions(&decisions, &reach, true))
            (records::insights(&insights, &reach, true))
        };
        document("Plans", &main).into_string()
    }
}

/// Plans as a table, with a link to each plan that has a page.
pub(super) fn table(plans: &[PlanShape], reach: &Reach<'_>) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Plans" { table.plans {
            thead { tr {
                th scope="col" { "Plan" } th scope="col" { "Status" } th.number scope="col" { "Closed" }
                th scope="col" { "Priority" } th scope="col" { "Due" } th scope="col" { "Part of" }
            } }
            tbody { @for plan in plans { (row(plan, reach)) } }
        } }
    }
}

fn row(plan: &PlanShape, reach: &Reach<'_>) -> Markup {
    let closed = plan.steps_completed + plan.steps_skipped;
    let stuck = plan.steps_failed + plan.steps_blocked;
    html! {
        tr {
            td.title {
                @match reach.plan(&plan.id) {
                    Some(address) => { a href=(address) { (isolated(&plan.title)) } },
                    None => (isolated(&plan.title)),
                }
                @if stuck > 0 { " " span.is-failed { (stuck) " failed or blocked" } }
            }
            td { span class={ "badge " (super::plan_class(&plan.status)) } { (words(&plan.status)) } }
            td.number { (closed) "/" (plan.steps_total) }
            td { (plan.priority.word()) }
            td.time { @if let Some(due) = plan.due { (due) } }
            td { @if let Some(program) = &plan.program { (records::linked(program, reach)) } }
        }
    }
}
