//! `export --format html`: a plan as one page without scripts. The same files give the same bytes.
//!
//! The page depends only on the contents of the files. It does not contain the time of the export, file times, or claims
//! that are recorded only on this machine.

mod index;
mod reach;
mod records;

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, html};

pub(super) use index::Index;
use reach::{Reach, Site};

use super::{lowered, readable_status, without_list};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{PlanShape, StepShape, Views};
use crate::ops::show::ShownPlan;
use crate::page::graph::{self, Graph, Kind, Node, View};
use crate::page::look::Look;
use crate::page::style;
use crate::page::text::{isolated, one_line, words};
use crate::page::timeline::{self, Row, shown_time};
use crate::plan::aims::{self, Aim};
use crate::plan::id::PlanId;
use crate::plan::insight::Insight;
use crate::plan::model::Order;
use crate::plan::records::{Attempt, Note};
use crate::store::knowledge;
use crate::store::load::LoadQuery;

/// The page runs no code and loads nothing, wherever it is opened.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Returns the page of a plan. `shown` contains the texts and decisions of the plan. `site` lists the plans whose pages
/// are in the same directory.
pub(super) fn page(
    context: &Context,
    shown: &ShownPlan,
    site: Option<&BTreeSet<String>>,
) -> Result<String, Error> {
    let id = PlanId::new(shown.plan.id.clone());
    let plans = LoadQuery::plan(&id).without_claims().load(context)?.plans;
    let views = Views::of(context, &plans);
    let is_archived = shown.plan.archived;
    let plan = if is_archived { plans.archived(&id) } else { plans.get(&id) };
    let steps = |plan: &crate::plan::model::Plan| plan.steps.iter().map(|it| views.step(plan, it)).collect();
    let steps: Vec<StepShape> = plan.map(steps).unwrap_or_default();
    let of_files = |it: &PlanShape| {
        let id = PlanId::new(it.id.clone());
        plans.get(&id).map_or_else(|| it.clone(), |it| views.plan(it))
    };
    let children = shown.children.iter().map(of_files).collect();
    let path = plan.map(|it| it.path.as_str()).unwrap_or_default();
    let file = context.plans.read(path.as_ref()).map(|it| it.bytes).unwrap_or_default();
    let directory = path.rsplit_once('/').map_or("", |it| it.0).to_owned();
    let mut insights = knowledge::insights(context);
    insights.retain(|it| it.plan.as_deref() == Some(id.as_str()));
    insights.reverse();
    let own = Some((shown.plan.id.clone(), steps.iter().map(|it| it.number.clone()).collect()));
    let reach = Reach { context, own, site: site.map(|plans| Site { plans, way: "" }) };
    let plan = plan.map_or_else(|| shown.plan.clone(), |it| views.plan(it));
    let page = Page { shown, plan, children, steps, directory, file, insights, reach };
    Ok(document(&page.plan.title, &page.main()).into_string())
}

struct Page<'a> {
    shown: &'a ShownPlan,
    /// `plan`, `children` and `steps` are as in the files, without this machine's records of claims.
    plan: PlanShape,
    children: Vec<PlanShape>,
    steps: Vec<StepShape>,
    /// The plan's directory, relative to the plans directory.
    directory: String,
    /// The plan's own file.
    file: Vec<u8>,
    insights: Vec<Insight>,
    reach: Reach<'a>,
}

/// A page with its style.
fn document(title: &str, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="und" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (one_line(title)) }
                (style::document())
            }
            body { main #top { (main) } }
        }
    }
}

impl Page<'_> {
    fn plan(&self) -> &PlanShape {
        &self.plan
    }

    fn main(&self) -> Markup {
        let plan = self.plan();
        html! {
            @if self.reach.site.is_some() { p.soft { a href="../index.html" { "All plans" } } }
            (self.header())
            (listed_aims("Goals", &aims::aims(&self.file, "goals"), &plan.goals))
            (listed_aims("Success criteria", &aims::aims(&self.file, "success_criteria"), &plan.success_criteria))
            (self.text(&lowered(&without_list(&self.shown.body), &plan.title, 0), "plan.", 1))
            (notes(&plan.notes))
            (self.children())
            (self.overview())
            (self.graph())
            (self.timeline())
            (records::decisions(&self.shown.decisions, &self.reach, false))
            (records::insights(&self.insights, &self.reach, false))
            (self.all_steps())
        }
    }

    /// The plans of a program.
    fn children(&self) -> Markup {
        html! {
            @if !self.children.is_empty() {
                h2 { "Plans" }
                (index::table(&self.children, &self.reach))
            }
        }
    }

    fn header(&self) -> Markup {
        let plan = self.plan();
        let count = |look: &[Look]| self.steps.iter().filter(|it| look.contains(&Look::of(it))).count();
        let closed = count(&[Look::Completed, Look::Skipped]);
        html! {
            header {
                h1 { (isolated(&plan.title)) }
                div.facts {
                    span class={ "badge " (plan_class(&plan.status)) } { (words(&plan.status)) }
                    span { (closed) " of " (self.steps.len()) " steps closed" }
                    @if !self.steps.is_empty() {
                        progress max=(self.steps.len()) value=(closed) aria-label="Closed steps" {}
                    }
                }
                div.facts.soft {
                    span { "Priority " (plan.priority.word()) }
                    @if let Some(due) = plan.due { span { "Due " (due) } }
                    @if plan.order == Order::Sequential { span { "Sequential order" } }
                    @if let Some(category) = &plan.category { span { "Category " (isolated(category)) } }
                    @if let Some(program) = &plan.program { span { "Part of " (records::linked(program, &self.reach)) } }
                    @if let Some(at) = plan.created_at { span { "Created " (shown_time(at)) } }
                    @if !plan.tags.is_empty() { span { "Tags " (listed(&plan.tags)) } }
                }
            }
        }
    }

    fn text(&self, body: &str, id_prefix: &str, top_heading: u8) -> Markup {
        records::text(body, id_prefix, top_heading, (&self.reach, &self.directory))
    }

    fn overview(&self) -> Markup {
        let has_phases = self.steps.iter().any(|it| it.phase.is_some());
        html! {
            @if !self.steps.is_empty() {
                h2 { "Steps" }
                div.scroll tabindex="0" role="group" aria-label="Steps" { table.steps {
                    thead { tr {
                        th scope="col" { "No." } th scope="col" { "Step" } th scope="col" { "Status" }
                        th scope="col" { "Depends on" }
                        @if has_phases { th scope="col" { "Phase" } }
                        th scope="col" { "Assignee" }
                    } }
                    tbody { @for step in &self.steps { tr {
                        td { (step.number) }
                        td.title { a href={ "#step-" (step.number) } { (isolated(&step.title)) } }
                        td { (badge(step)) }
                        td { (self.after(step)) }
                        @if has_phases { td { @if let Some(it) = &step.phase { (isolated(it)) } } }
                        td { @if let Some(it) = &step.assignee { (isolated(it)) } }
                    } } }
                } }
            }
        }
    }

    /// The steps that a step depends on, as links where the page can link to them.
    fn after(&self, step: &StepShape) -> Markup {
        let own = format!("{}:", step.plan);
        html! {
            @for (nth, id) in step.shown_depends().iter().enumerate() {
                @if nth > 0 { ", " }
                @let name = super::without_plan(id, &own);
                @match self.reach.step(id) {
                    Some(address) => { a href=(address) { (isolated(&name)) } }
                    None => (isolated(&name)),
                }
            }
        }
    }

    fn graph(&self) -> Markup {
        let has_depends = self.steps.iter().any(|it| !it.depends.is_empty() || !it.depends_ranges.is_empty());
        let is_drawn = has_depends || self.plan().order == Order::Sequential;
        let view = View::fitting(&self.steps).filter(|_| is_drawn);
        let graph = view.and_then(|view| Graph::of(self.plan(), &self.steps, view));
        let drawn = graph.and_then(|graph| Some((graph.layout_down()?, graph)));
        let href = |node: &Node| match node.kind {
            Kind::Step | Kind::Foreign => self.reach.step(&node.id),
            _ => None,
        };
        html! {
            @if let Some((layout, graph)) = &drawn {
                h2 { "Dependencies" }
                @if view == Some(View::Phases) { p.soft { "By phase: the plan has more steps than one picture can show." } }
                @let is_printed = layout.width <= graph::MOST_PRINTED.0 && layout.height <= graph::MOST_PRINTED.1;
                div class=[(!is_printed).then_some("screen")] { (graph::svg(graph, layout, "Dependencies of the steps", &href)) }
                @if !is_printed { p.soft.paper { "The graph is too large for paper. The table of the steps lists what each step depends on." } }
            }
        }
    }

    fn timeline(&self) -> Markup {
        let rows: Vec<Row> = self.steps.iter().map(Row::of_file).collect();
        let href = |row: &Row| self.reach.step(&row.id);
        html! {
            @if let Some(drawing) = timeline::svg(&rows, "Attempts over time", &href) {
                h2 { "Timeline" }
                (drawing)
                p.soft { "Times are in UTC." }
            }
        }
    }

    fn all_steps(&self) -> Markup {
        let bodies = self.shown.bodies.as_deref().unwrap_or_default();
        let body = |id: &str| {
            let found = self.shown.steps.iter().zip(bodies).find(|(it, _)| it.id == id);
            found.map_or("", |it| it.1.as_str())
        };
        html! {
            @for step in &self.steps { (self.step(step, body(&step.id))) }
        }
    }

    fn step(&self, step: &StepShape, body: &str) -> Markup {
        let after = step.shown_depends();
        let prefix = format!("step-{}.", step.number);
        html! {
            section.step id={ "step-" (step.number) } {
                h2 { (step.number) ". " (isolated(&step.title)) }
                div.facts {
                    (badge(step))
                    @if !after.is_empty() { span { "after " (self.after(step)) } }
                    @if let Some(it) = &step.phase { span { "Phase " (isolated(it)) } }
                    @if let Some(it) = &step.assignee { span { "Assignee " (isolated(it)) } }
                    @if let Some(it) = step.due { span { "Due " (it) } }
                    @if step.tasks_total > 0 { span { (step.tasks_done) " of " (step.tasks_total) " tasks" } }
                    @if step.confirm && step.confirmed.is_none() { span { "Needs a confirmation" } }
                    @if let Some(it) = &step.confirmed { span { "Confirmed" @if let Some(by) = &it.by { " by " (isolated(by)) } } }
                    @if let Some(it) = &step.claim { span { "Claimed" @if let Some(by) = &it.by { " by " (isolated(by)) } } }
                    @if !step.tags.is_empty() { span { "Tags " (listed(&step.tags)) } }
                }
                (self.text(&lowered(body, &step.title, 0), &prefix, 2))
                (notes(&step.notes))
                (attempts(&step.attempts))
            }
        }
    }
}

fn badge(step: &StepShape) -> Markup {
    let look = Look::of(step);
    html! {
        span class={ "badge " (look.class()) } {
            (look.mark()) " "
            @if look == Look::Unknown { (isolated(&readable_status(step))) } @else { (look.words()) }
        }
    }
}

fn plan_class(status: &str) -> &'static str {
    match status {
        "active" => Look::InProgress.class(),
        "completed" => Look::Completed.class(),
        "abandoned" => Look::Skipped.class(),
        _ => Look::Waiting.class(),
    }
}

fn listed(texts: &[String]) -> Markup {
    html! { @for (nth, it) in texts.iter().enumerate() { @if nth > 0 { ", " } (isolated(it)) } }
}

/// A list of goals or criteria. `aims` are the same entries as `items`, with their checkboxes, as read from the file. If the
/// two lists have different lengths, the plain `items` are shown.
fn listed_aims(heading: &str, aims: &[Aim], items: &[String]) -> Markup {
    html! {
        @if !items.is_empty() {
            h2 { (heading) }
            @if aims.len() == items.len() {
                ul.text { @for it in aims { li {
                    @if let Some(mark) = &it.mark {
                        input.task type="checkbox" checked[mark.ticked] disabled aria-label=(one_line(&it.text));
                        " "
                    }
                    (isolated(&it.text))
                } } }
            } @else { ul { @for it in items { li { (isolated(it)) } } } }
        }
    }
}

fn notes(all: &[Note]) -> Markup {
    html! {
        @for it in all {
            div class={ "note " (it.kind.word()) } {
                p.soft {
                    "Note"
                    @if let Some(by) = &it.by { " by " (isolated(by)) }
                    @if let Some(at) = it.at { ", " (shown_time(at)) }
                }
                p dir="auto" { (crate::page::text::visible(it.text.trim())) }
            }
        }
    }
}

fn attempts(all: &[Attempt]) -> Markup {
    html! {
        @if !all.is_empty() {
            h3 { "Attempts" }
            div.scroll tabindex="0" role="group" aria-label="Attempts" { table.events {
                thead { tr { th scope="col" { "Time" } th scope="col" { "By" } th scope="col" { "Outcome" } th scope="col" { "Notes" } } }
                tbody { @for it in all { tr {
                    td.time { @if let Some(at) = it.at { (shown_time(at)) } }
                    td { @if let Some(by) = &it.by { (isolated(by)) } }
                    td { @if let Some(outcome) = &it.outcome {
                        span class={ "dot " (timeline::outcome_look(outcome).class()) } aria-hidden="true" {}
                        (isolated(outcome))
                    } }
                    td { @if let Some(notes) = &it.notes { bdi { (crate::page::text::visible(notes.trim())) } } }
                } } }
            } }
        }
    }
}

#[cfg(test)]
mod tests;
