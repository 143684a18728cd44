//! The first page: what needs attention, who works on what, what is ready, what was finished, and all plans.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place, Visit};
use super::memory::Memory;
use super::{Web, links, words};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::sort::Sort;
use crate::api::views::{PlanShape, Reason};
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::status::{self, Attention, Finished, Standing, StatusReport, StatusRequest};
use crate::page::look::Look;
use crate::page::text::{clip, isolated};
use crate::plan::entry::folded;
use crate::plan::model::PlanKind;
use crate::plan::time::Time;

/// The number of plans on a page.
const PAGE: usize = 50;

/// The largest number of items in a panel before *Show all*. The panel's heading has the number of all items.
const FEW: usize = 8;

/// The largest number of items in a panel after *Show all*.
const MOST: usize = 500;

/// How the plans are listed.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct OverviewQuery {
    #[serde(default)]
    q: String,
    /// A status, `archived`, or `all` for every plan; empty for the open ones.
    #[serde(default)]
    status: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    sort: String,
    /// The number of the page, from 1.
    #[serde(default)]
    page: Option<usize>,
    /// The panel that shows up to [`MOST`] items.
    #[serde(default)]
    all: String,
}

/// The answers that are cached between requests.
#[derive(Debug, Default)]
pub(super) struct Kept {
    status: Memory<Brief>,
    plans: Memory<Plans>,
}

#[derive(Debug)]
struct Plans {
    found: Vec<PlanShape>,
    total: usize,
    page: usize,
    n_pages: usize,
    hidden: usize,
}

pub(super) async fn page(
    State(web): State<Web>,
    visit: Visit,
    Query(asked): Query<OverviewQuery>,
) -> Response {
    let kept = Arc::clone(&web.overview);
    let shown = move |context: &Context| -> Result<_, Error> {
        let report = kept.status.get(context, &asked.all, || brief(context, &asked))?;
        let plans = kept.plans.get(context, &asked.key(), || plans(context, &asked))?;
        let main = main(&visit, &asked, (&report, &plans), context.now);
        let place = if asked.is_filtered() { Place::Plans } else { Place::Overview };
        Ok(visit.show(&Page { title: "Overview", place, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

impl OverviewQuery {
    /// Whether the query selects only some plans, another order or another page.
    fn is_filtered(&self) -> bool {
        let Self { q, status, tag, sort, page, all: _ } = self;
        [q, status, tag, sort].into_iter().any(|it| !it.is_empty()) || page.is_some_and(|it| it > 1)
    }

    fn key(&self) -> String {
        let Self { q, status, tag, sort, page, all: _ } = self;
        format!("{:?}", (q, status, tag, sort, page))
    }
}

/// The content of the panels: the first items of each panel, and how many items the panel has in total.
#[derive(Debug)]
struct Brief {
    report: StatusReport,
    has_plans: bool,
}

fn brief(context: &Context, asked: &OverviewQuery) -> Result<Brief, Error> {
    let mut report = status::with_most(context, &StatusRequest::default(), MOST)?;
    let has_plans = !report.plans.is_empty();
    let most = |panel: &str| if asked.all == panel { MOST } else { FEW };
    report.plans = Vec::new();
    cut(&mut report.attention, most("attention"));
    cut(&mut report.in_progress, most("working"));
    cut(&mut report.ready, most("ready"));
    cut(&mut report.finished, most("finished"));
    Ok(Brief { report, has_plans })
}

/// Keeps the first items, and frees the memory of the others.
fn cut<T>(list: &mut Vec<T>, most: usize) {
    list.truncate(most);
    list.shrink_to_fit();
}

fn plans(context: &Context, asked: &OverviewQuery) -> Result<Plans, Error> {
    let is_all = asked.status == "all";
    let is_archived = asked.status == "archived";
    let word = (!asked.status.is_empty() && !is_all && !is_archived).then(|| asked.status.clone());
    let request = ListRequest {
        status: word.into_iter().collect(),
        tag: (!asked.tag.is_empty()).then(|| asked.tag.clone()),
        all: is_all,
        archived: is_archived,
        sort: Sort::read(&asked.sort)?,
        ..ListRequest::default()
    };
    let ListReport::Plans { plans: mut found, hidden } = list::list(context, &request)? else {
        return Ok(Plans { found: Vec::new(), total: 0, page: 1, n_pages: 1, hidden: 0 });
    };
    let wanted = folded(&asked.q);
    if !wanted.is_empty() {
        found.retain(|it| folded(&it.title).contains(&wanted) || folded(&it.id).contains(&wanted));
    }
    let total = found.len();
    let n_pages = total.div_ceil(PAGE).max(1);
    let page = asked.page.unwrap_or(1).clamp(1, n_pages);
    let found = found.into_iter().skip((page - 1) * PAGE).take(PAGE).collect();
    Ok(Plans { found, total, page, n_pages, hidden })
}

fn main(visit: &Visit, asked: &OverviewQuery, (brief, plans): (&Brief, &Plans), now: Time) -> Markup {
    let (report, totals) = (&brief.report, brief.report.totals);
    html! {
        h1 class="unseen" { "Overview" }
        // If the list of plans is filtered, it comes before the other parts.
        @let is_first = asked.is_filtered();
        @if is_first { (table(visit, asked, plans, now)) }
        @if report.interrupted.is_some() {
            p class="banner warn" { "A change of several files was interrupted. The " a href="/problems" { "problems" } " page shows what remains." }
        }
        @if !brief.has_plans && plans.total == 0 && asked.q.is_empty() && asked.status.is_empty() {
            (nothing(plans.hidden))
        } @else {
            div class="panels" {
                (panel("attention", "Needs attention", (totals.attention, report.attention.len()), ("Nothing needs attention.", ""), || html! {
                    @for it in &report.attention { (attention(it, now)) }
                }))
                (panel("working", "In progress", (totals.in_progress, report.in_progress.len()), ("No step is in progress.", ""), || html! {
                    @for it in &report.in_progress { (standing(it, now, true)) }
                }))
                (panel("ready", "Ready next", (totals.ready, report.ready.len()), ("No step is ready.", "The next step of each plan, sorted by priority, then by the number of open steps that wait for it."), || html! {
                    @for it in &report.ready { (standing(it, now, false)) }
                }))
                (panel("finished", "Finished", (totals.finished, report.finished.len()), ("Nothing was finished recently.", ""), || html! {
                    @for it in &report.finished { (finished(it, now)) }
                }))
            }
        }
        @if !is_first && (brief.has_plans || plans.total > 0 || plans.hidden > 0 || visit.here != "/") { (table(visit, asked, plans, now)) }
    }
}

fn nothing(hidden: usize) -> Markup {
    html! {
        div class="empty" {
            @if hidden > 0 {
                p { "All plans are closed." }
                p { a href="/?status=all" { "Show all of them" } }
            } @else {
                p { "There are no plans yet." }
                p { "In a terminal, " code { "planwatch new \"Title\" \"First step\" \"Second step\"" } " creates one." }
            }
        }
    }
}

fn panel(
    id: &str,
    title: &str,
    (n, n_shown): (usize, usize),
    (none, note): (&str, &str),
    items: impl Fn() -> Markup,
) -> Markup {
    html! {
        section class="panel" id={"panel-" (id)} aria-labelledby={"head-" (id)} {
            h2 id={"head-" (id)} { (title) " " span class="count" { (n) } }
            @if n > 0 && !note.is_empty() { p class="note" { (note) } }
            @if n == 0 { p class="none" { (none) } } @else { ul class="rows" { (items()) } }
            @if n > n_shown && n_shown < MOST {
                p class="more-link" { a href={"/?all=" (id) "#panel-" (id)} {
                    @if n > MOST { "Show the first " (MOST) } @else { "Show all " (n) }
                } }
            }
            @if n > n_shown && n_shown >= MOST { p class="note" { "The first " (MOST) " are shown." } }
        }
    }
}

fn row(key: &str, look: Look, id: &str, title: &str, beside: &Markup) -> Markup {
    html! {
        li data-key=(key) {
            (words::mark(look))
            div class="what" {
                a class="title" href=(links::step(id)) { (isolated(title)) }
                div class="facts" { span class="id" { (isolated(id)) } (beside) }
            }
        }
    }
}

fn attention(it: &Attention, now: Time) -> Markup {
    let class = if matches!(it.reason, Reason::Failed | Reason::Blocked | Reason::Faulty) {
        "fact bad"
    } else {
        "fact warn"
    };
    let beside = html! {
        span class=(class) { (it.reason.word()) }
        @if let Some(since) = it.since { (words::ago(since, now)) }
        @if let Some(last) = &it.last { span class="last" { bdi { (clip(last, 90)) } } }
    };
    row(&format!("a-{}", it.step.id), Look::of(&it.step), &it.step.id, &it.step.title, &beside)
}

fn standing(it: &Standing, now: Time, is_working: bool) -> Markup {
    let held = it.held.as_ref().and_then(|it| it.by.as_deref());
    let who = words::worker(&it.step).or(held);
    let claimed = it.step.claim.as_ref().and_then(|it| it.at).or_else(|| it.since.filter(|_| held.is_some()));
    let beside = html! {
        @if let Some(who) = who { span class="who" { (isolated(who)) } }
        @if is_working && let Some(at) = claimed { span { "claimed " (words::ago(at, now)) } }
        @else if let Some(since) = it.since { span { @if is_working { "last change " } (words::ago(since, now)) } }
    };
    row(&format!("s-{}", it.step.id), Look::of(&it.step), &it.step.id, &it.step.title, &beside)
}

fn finished(it: &Finished, now: Time) -> Markup {
    let beside = html! {
        @if let Some(by) = &it.by { span class="who" { (isolated(by)) } }
        (words::ago(it.at, now))
    };
    row(&format!("f-{}", it.step.id), Look::of(&it.step), &it.step.id, &it.step.title, &beside)
}

const STATUSES: [(&str, &str); 7] = [
    ("", "open"),
    ("active", "active"),
    ("draft", "draft"),
    ("completed", "completed"),
    ("abandoned", "abandoned"),
    ("archived", "archived"),
    ("all", "all"),
];

const SORTS: [(&str, &str); 6] = [
    ("", "id"),
    ("-updated", "last change"),
    ("title", "title"),
    ("-priority", "priority"),
    ("due", "due date"),
    ("-created", "newest"),
];

fn table(visit: &Visit, asked: &OverviewQuery, plans: &Plans, now: Time) -> Markup {
    html! {
        section class="plans" id="plans" aria-labelledby="head-plans" {
            div class="list-head" {
                h2 id="head-plans" { "Plans " span class="count" { (plans.total) } }
                form class="filter" action="/#plans" method="get" data-filter="" id="filter" {
                    input type="search" name="q" value=(asked.q) aria-label="Filter by title" placeholder="Filter by title";
                    select name="status" aria-label="Status" {
                        @for (value, word) in STATUSES { option value=(value) selected[asked.status == value] { (word) } }
                    }
                    select name="sort" aria-label="Sort by" {
                        @for (value, word) in SORTS { option value=(value) selected[asked.sort == value] { (word) } }
                    }
                    @if !asked.tag.is_empty() { input type="hidden" name="tag" value=(asked.tag); }
                    button { "Show" }
                }
            }
            @if !asked.tag.is_empty() {
                p class="quiet" { "With the tag " span class="tag" { (isolated(&asked.tag)) } " · " a href="/#plans" { "show all" } }
            }
            @if plans.found.is_empty() {
                p class="none" { "No plan matches." }
            } @else {
                ul class="plan-rows" { @for it in &plans.found { (plan_row(it, now)) } }
            }
            (pager(visit, plans))
        }
    }
}

pub(super) fn plan_row(plan: &PlanShape, now: Time) -> Markup {
    html! {
        li data-key={"p-" (plan.id) (if plan.archived { "-a" } else { "" })} {
            div class="what" {
                a class="title" href=(links::plan(&plan.id)) { (isolated(&plan.title)) }
                div class="facts" {
                    span class="id" { (isolated(&plan.id)) }
                    @if plan.status != "active" { (words::plan_status(plan)) }
                    @if plan.kind == PlanKind::Program { span class="fact" { "program" } }
                    @if plan.steps_failed + plan.steps_blocked > 0 {
                        span class="fact bad" { (plan.steps_failed + plan.steps_blocked) " failed or blocked" }
                    }
                    @for (n, word) in plan.counts().iter().filter(|it| !matches!(it.1, "failed" | "blocked")) { span class="fact" { (n) " " (word) } }
                    @if let Some(due) = plan.due { span class="fact" { "due " (due) } }
                    @for tag in plan.tags.iter().take(4) {
                        a class="tag" href={"/?tag=" (query(tag))} { (isolated(tag)) }
                    }
                }
            }
            (words::progress(plan))
            span class="when" { @if let Some(at) = plan.last_activity { (words::ago(at, now)) } }
        }
    }
}

/// A text, percent-encoded for a query.
pub(super) fn query(text: &str) -> String {
    crate::page::address::encoded(text)
}

fn pager(visit: &Visit, plans: &Plans) -> Markup {
    let at = |page: usize| {
        let (path, query) = visit.here.split_once('?').unwrap_or((&visit.here, ""));
        let rest = query.split('&').filter(|it| !it.is_empty() && !it.starts_with("page="));
        let parts: Vec<_> = rest.map(str::to_owned).chain([format!("page={page}")]).collect();
        format!("{path}?{}#plans", parts.join("&"))
    };
    html! {
        @if plans.n_pages > 1 {
            nav class="pager" aria-label="Pages" {
                @if plans.page > 1 { a rel="prev" href=(at(plans.page - 1)) { "Previous" } }
                span { "Page " (plans.page) " of " (plans.n_pages) }
                @if plans.page < plans.n_pages { a rel="next" href=(at(plans.page + 1)) { "Next" } }
            }
        }
        @if plans.hidden > 0 {
            p class="quiet" { a href="/?status=all#plans" { "Show " (words::count(plans.hidden, "closed or archived plan")) ", too" } }
        }
    }
}
