//! `list`: the plans, or one plan's steps.

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::staleness;
use crate::api::views::{PlanShape, StepShape, Views, value};
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Stated, StepStatus};
use crate::store::load::{self, LoadQuery, Side};
use crate::store::{knowledge, resolve, typed_words};

pub use crate::api::requests::ListRequest;

#[derive(Debug, Clone)]
pub enum ListReport {
    /// `hidden` is the number of further plans that the same request with `all` would list. If the request filters by
    /// status, `hidden` is 0.
    Plans {
        plans: Vec<PlanShape>,
        hidden: usize,
    },
    Steps {
        plan: Box<PlanShape>,
        steps: Vec<StepShape>,
    },
}

impl ListReport {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plans { .. } => "plan-list",
            Self::Steps { .. } => "step-list",
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::Plans { plans, hidden } => json!({"plans": value(plans), "hidden": hidden}),
            Self::Steps { plan, steps } => json!({"plan": value(plan), "steps": value(steps)}),
        }
    }
}

/// Without a plan, lists the plans; without filters, these are the plans that are neither closed nor archived. With a plan,
/// lists its steps; without filters, these are all its steps. For a program without steps, lists the program's plans.
pub fn list(context: &Context, request: &ListRequest) -> Result<ListReport, Error> {
    match &request.plan {
        Some(plan) => steps(context, request, &resolve::plan_for_reading(context, plan)?),
        None => plans(context, request),
    }
}

fn plans(context: &Context, request: &ListRequest) -> Result<ListReport, Error> {
    let statuses = typed_words::read_words::<PlanStatus>(&context.config.words, &request.status)?;
    let since = since(context, request)?;
    // These filters read fields that the reduced steps of a summary may lack, such as the time at which a step was closed.
    if request.stale || request.assignee.is_some() {
        let plans = LoadQuery::all().load(context)?.plans;
        let report = listed(context, request, (&plans, &statuses, since), |it| {
            has_assignee(it, request) && (!request.stale || has_stale_step(context, &plans, it))
        });
        load::drop_in_background(plans);
        report
    } else {
        let plans = LoadQuery::all().load_summaries(context).plans;
        let all = (plans.with_reduced_steps(), statuses.as_slice(), since);
        let report = listed(context, request, all, |_| true);
        load::drop_in_background(plans);
        report
    }
}

/// Lists the plans with these statuses. `fits` applies the filters that need all fields of steps.
fn listed(
    context: &Context,
    request: &ListRequest,
    (plans, statuses, since): (&Plans, &[PlanStatus], Option<Time>),
    fits: impl Fn(&Plan) -> bool,
) -> Result<ListReport, Error> {
    if let Some(program) = request.program.as_ref().map(|it| PlanId::new(it.clone()))
        && plans.get(&program).is_none()
    {
        return Err(load::missing(context, &program));
    }
    let views = Views::of(context, plans);
    let (shown, hidden): (Vec<_>, Vec<_>) = plans
        .iter()
        .filter(|it| is_asked_for(it, request) && fits(it))
        .partition(|it| is_shown(it, request, statuses));
    let within = |plans: &[&Plan]| {
        let mut found = load::map(plans, |it| views.plan(it));
        found.retain(|it| is_since(it.last_activity, since));
        found
    };
    let mut shown = within(&shown);
    request.sort.plans(&mut shown);
    let hidden = match (request.status.is_empty(), since) {
        (false, _) => 0,
        (true, None) => hidden.len(),
        (true, Some(_)) => within(&hidden).len(),
    };
    Ok(ListReport::Plans { plans: shown, hidden })
}

/// Whether a plan passes the filters by tag and program. Plans that fail these filters are not counted as hidden.
fn is_asked_for(plan: &Plan, request: &ListRequest) -> bool {
    let is_tagged = request.tag.as_ref().is_none_or(|tag| plan.tags.contains(tag));
    let is_child =
        request.program.as_ref().is_none_or(|it| plan.program.as_ref() == Some(&PlanId::new(it.clone())));
    is_tagged && is_child
}

fn has_assignee(plan: &Plan, request: &ListRequest) -> bool {
    let is_theirs = |who: &String| plan.steps.iter().any(|it| it.assignee.as_ref() == Some(who));
    request.assignee.as_ref().is_none_or(is_theirs)
}

fn has_stale_step(context: &Context, plans: &Plans, plan: &Plan) -> bool {
    let seconds = context.config.stale_seconds();
    plan.steps.iter().any(|it| staleness::stale(plans, plan, it, context.now, seconds).is_some())
}

fn since(context: &Context, request: &ListRequest) -> Result<Option<Time>, Error> {
    request.updated_since.as_deref().map(|it| knowledge::since(it, context.now)).transpose()
}

fn is_since(at: Option<Time>, since: Option<Time>) -> bool {
    since.is_none_or(|since| at.is_some_and(|at| at >= since))
}

fn is_shown(plan: &Plan, request: &ListRequest, statuses: &[PlanStatus]) -> bool {
    let (status, _) = plan.shown_status();
    let is_open = !matches!(status, Stated::Known(PlanStatus::Completed | PlanStatus::Abandoned));
    let by_status = status.known().is_some_and(|it| statuses.contains(&it));
    match (request.all, request.archived, statuses.is_empty()) {
        (true, _, true) => true,
        (true, _, false) => by_status,
        (_, true, empty) => plan.is_archived && (empty || by_status),
        (_, false, true) => !plan.is_archived && is_open,
        (_, false, false) => !plan.is_archived && by_status,
    }
}

fn steps(context: &Context, request: &ListRequest, (id, side): &(PlanId, Side)) -> Result<ListReport, Error> {
    let (ready, words): (Vec<_>, Vec<_>) = request.status.iter().cloned().partition(|it| is_ready_word(it));
    let statuses = typed_words::read_words::<StepStatus>(&context.config.words, &words)?;
    let since = since(context, request)?;
    let plans = LoadQuery::plan(id).load(context)?.plans;
    let plan = resolve::plan_at(&plans, id, *side).ok_or_else(|| load::missing(context, id))?;
    if plan.kind == PlanKind::Program && plan.steps.is_empty() {
        return children(context, request, (&plans, plan), since);
    }
    let views = Views::of(context, &plans);
    let seconds = context.config.stale_seconds();
    let is_wanted = |it: &&Step| {
        request.status.is_empty()
            || it.standing().known().is_some_and(|it| statuses.contains(&it))
            || !ready.is_empty() && rules::is_ready(&plans, plan, it, context.now)
    };
    let wanted = plan.steps.iter().filter(is_wanted);
    let wanted = wanted.filter(|it| request.tag.as_ref().is_none_or(|tag| it.tags.contains(tag)));
    let is_stale = |it: &Step| staleness::stale(&plans, plan, it, context.now, seconds).is_some();
    let wanted = wanted.filter(|it| !request.stale || is_stale(it));
    let wanted = wanted.filter(|it| request.assignee.is_none() || it.assignee == request.assignee);
    let mut steps = load::map(&wanted.collect::<Vec<_>>(), |it| views.step(plan, it));
    steps.retain(|it| is_since(it.last_activity, since));
    request.sort.steps(&mut steps);
    let plan = Box::new(views.plan(plan));
    load::drop_in_background(plans);
    Ok(ListReport::Steps { plan, steps })
}

/// Whether a status word requests the steps that are ready. In a file, `ready` only means pending, and a pending step may
/// still wait for other steps.
fn is_ready_word(typed: &str) -> bool {
    typed.trim().eq_ignore_ascii_case("ready")
}

/// Lists the plans of a program, including closed plans, in place of its steps. Archived plans are hidden, except with
/// `--all` or `--archived`.
fn children(
    context: &Context,
    request: &ListRequest,
    (plans, program): (&Plans, &Plan),
    since: Option<Time>,
) -> Result<ListReport, Error> {
    let statuses = typed_words::read_words::<PlanStatus>(&context.config.words, &request.status)?;
    let views = Views::of(context, plans);
    let is_wanted = |it: &&Plan| {
        let status = it.shown_status().0.known();
        (statuses.is_empty() || status.is_some_and(|it| statuses.contains(&it)))
            && request.tag.as_ref().is_none_or(|tag| it.tags.contains(tag))
            && has_assignee(it, request)
            && (!request.stale || has_stale_step(context, plans, it))
    };
    let within = |plans: &mut dyn Iterator<Item = &Plan>| {
        let found = plans.filter(is_wanted).map(|it| views.plan(it));
        found.filter(|it| is_since(it.last_activity, since)).collect::<Vec<_>>()
    };
    let live = within(&mut plans.children(&program.id));
    let archived = within(&mut plans.archived_children(&program.id));
    let (mut shown, hidden) = match (request.all, request.archived) {
        (true, _) => ([live, archived].concat(), 0),
        (false, true) => (archived, 0),
        (false, false) => (live, if request.status.is_empty() { archived.len() } else { 0 }),
    };
    request.sort.plans(&mut shown);
    Ok(ListReport::Plans { plans: shown, hidden })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    const FILES: [(&str, &str); 7] = [
        ("/plans/a/plan.md", "---\nstatus: draft\n---\n# beta\n"),
        ("/plans/b/plan.md", "---\nstatus: active\n---\n# Alpha\n"),
        ("/plans/c/plan.md", "---\nstatus: completed\n---\n# gamma\n"),
        (
            "/plans/a/step-2.md",
            "---\nassignee: ann\nattempts:\n  - at: 2026-11-20T09:00:00Z\n    outcome: ok\n---\n# Two\n",
        ),
        (
            "/plans/a/step-10.md",
            "---\nstatus: completed\nattempts:\n  - at: 2026-11-21T09:00:00Z\n    outcome: ok\n---\n# ten\n",
        ),
        ("/plans/a/step-2.5.md", "---\nstatus: odd\nassignee: bo\n---\n# between\n"),
        ("/plans/b/step-1.md", "---\nassignee: bo\n---\n# One\n"),
    ];

    #[track_caller]
    fn check(request: ListRequest, expected: &str) {
        let context = Context::on_model(&Machine::with(&FILES));
        let ids = match list(&context, &ListRequest { all: true, ..request }).unwrap() {
            ListReport::Plans { plans, .. } => plans.into_iter().map(|it| it.id).collect::<Vec<_>>(),
            ListReport::Steps { steps, .. } => steps.into_iter().map(|it| it.number).collect(),
        };
        assert_eq!(ids.join(" "), expected);
    }

    fn of(plan: Option<&str>) -> ListRequest {
        ListRequest { plan: plan.map(str::to_owned), ..ListRequest::default() }
    }

    #[test]
    fn awaited_steps_are_read_back_from_json_and_only_some_are_shown() {
        let files = [
            ("/plans/a/plan.md", "# A\n"),
            ("/plans/a/step-1.md", "# One\n"),
            ("/plans/a/step-2.md", "# Two\n"),
            ("/plans/a/step-3.md", "---\ndepends: [1, 2, b:1]\nconfirm: required\n---\n# Three\n"),
            ("/plans/b/step-1.md", "# One\n"),
        ];
        let context = Context::on_model(&Machine::with(&files));
        let Ok(ListReport::Steps { steps, .. }) = list(&context, &of(Some("a"))) else { panic!("no steps") };
        let mut json = value(&steps[2]);
        assert_eq!(json["waits_for"], json!(["a:1", "a:2", "b:1", "confirmation"]));
        let read: StepShape = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(read.waits_for, steps[2].waits_for);
        assert_eq!(read.shown_waits(8), "1, 2, b:1, confirmation");
        assert_eq!(read.shown_waits(2), "1, 2 and 2 more");
        json["waits_for"] = json!(["anything"]);
        assert!(serde_json::from_value::<StepShape>(json).is_err());
    }

    #[test]
    fn filters_hold_for_the_plans_of_a_program_and_for_the_number_of_hidden_ones() {
        let old = "---\nstatus: in_progress\nclaim: {id: k1, by: bo, at: 2020-01-01T00:00:00Z}\n---\n# One\n";
        let files = [
            ("/plans/all/plan.md", "---\nkind: program\n---\n# All\n"),
            ("/plans/a/plan.md", "---\nprogram: all\n---\n# A\n"),
            ("/plans/a/step-1.md", old),
            ("/plans/b/plan.md", "---\nprogram: all\n---\n# B\n"),
            ("/plans/c/plan.md", "---\nstatus: abandoned\n---\n# C\n"),
        ];
        let context = Context::on_model(&Machine::with(&files));
        let request = ListRequest { stale: true, ..of(Some("all")) };
        let Ok(ListReport::Plans { plans, .. }) = list(&context, &request) else { panic!("no plans") };
        assert_eq!(plans.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["a"]);
        for (since, hidden) in [(None, 1), (Some("2999-01-01".to_owned()), 0)] {
            let request = ListRequest { updated_since: since, ..of(None) };
            let Ok(ListReport::Plans { hidden: found, .. }) = list(&context, &request) else {
                panic!("no plans")
            };
            assert_eq!(found, hidden);
        }
    }

    #[test]
    fn archived_plans_of_a_program_are_hidden_and_their_closed_steps_count() {
        let child = "---\nprogram: all\n---\n# Child\n";
        let closed = "---\nstatus: completed\n---\n# One\n";
        let files = [
            ("/plans/all/plan.md", "---\nkind: program\n---\n# All\n"),
            ("/plans/a/plan.md", child),
            ("/plans/a/step-1.md", "# One\n"),
            ("/plans/_archive/b/plan.md", child),
            ("/plans/_archive/b/step-1.md", closed),
            ("/plans/_archive/b/step-2.md", "# Two\n"),
            // The live plan has this id.
            ("/plans/_archive/a/plan.md", child),
            ("/plans/_archive/a/step-1.md", closed),
        ];
        let context = Context::on_model(&Machine::with(&files));
        let found = |request: ListRequest| match list(&context, &request) {
            Ok(ListReport::Plans { plans, hidden }) => {
                (plans.iter().map(|it| it.id.clone()).collect::<Vec<_>>().join(" "), hidden)
            }
            _ => panic!("no plans"),
        };
        let program = || of(Some("all"));
        assert_eq!(found(program()), ("a".to_owned(), 1));
        assert_eq!(found(ListRequest { all: true, ..program() }), ("a b".to_owned(), 0));
        assert_eq!(found(ListRequest { archived: true, ..program() }), ("b".to_owned(), 0));
        let only = |status: &str| ListRequest { status: vec![status.to_owned()], ..program() };
        assert_eq!(found(only("active")), ("a".to_owned(), 0));
        let Ok(ListReport::Plans { plans, .. }) = list(&context, &of(None)) else { panic!("no plans") };
        let all = plans.iter().find(|it| it.id == "all").unwrap();
        assert_eq!((all.steps_total, all.steps_completed), (2, 1));
    }

    #[test]
    fn an_assignee_and_a_time_leave_out_the_others() {
        let assigned = |plan, who: &str| ListRequest { assignee: Some(who.to_owned()), ..of(plan) };
        check(assigned(None, "bo"), "a b");
        check(assigned(None, "ann"), "a");
        check(assigned(None, "eve"), "");
        check(assigned(Some("a"), "bo"), "2.5");
        let since = |at: &str| ListRequest { updated_since: Some(at.to_owned()), ..of(Some("a")) };
        // Step 2.5 has no activity yet.
        check(since("2000-01-01"), "2 10");
        check(since("2999-01-01"), "");
        let wrong = list(&Context::on_model(&Machine::with(&FILES)), &since("2026-02-30"));
        assert_eq!(wrong.unwrap_err().code(), "usage");
    }
}
