//! `next`: finds the step to do now, and the reason for it. It changes no file.

mod cache;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{StepShape, Views, value};
use crate::plan::model::{Plan, PlanKind};
use crate::plan::plans::Plans;
use crate::plan::rules::{self, Next, Ranked, State};
use crate::plan::time::Time;
use crate::store::leases::Leases;
use crate::store::load::{self, LoadQuery};
use crate::store::resolve;

use cache::CacheReply;

pub use crate::api::requests::NextRequest;

#[derive(Debug, Clone)]
pub struct NextReport {
    pub state: State,
    pub step: Option<StepShape>,
    pub why: String,
    /// The candidate of each plan, most urgent first. Set only if all plans, or the plans of a program, were searched.
    pub candidates: Option<Vec<Candidate>>,
    /// The number of candidates, including those beyond the limit.
    pub n_candidates: usize,
    /// The plan that was searched. It is used in the suggested commands.
    pub plan: Option<String>,
    pub is_archived: bool,
}

#[derive(Debug, Clone)]
pub struct Candidate {
    pub step: StepShape,
    pub why: String,
}

impl NextReport {
    pub fn to_json(&self) -> Value {
        let mut object = json!({"state": self.state.word(), "step": value(&self.step), "why": self.why});
        if let (Some(candidates), Some(map)) = (&self.candidates, object.as_object_mut()) {
            let candidates = candidates.iter().map(|it| json!({"step": value(&it.step), "why": it.why}));
            map.insert("candidates".to_owned(), candidates.collect());
        }
        object
    }

    fn cut(mut self, most: Option<usize>) -> Self {
        if let (Some(candidates), Some(most)) = (&mut self.candidates, most) {
            candidates.truncate(most);
        }
        self
    }

    /// 0 if a step is ready or the state is [`State::Complete`], otherwise 7.
    pub fn exit_code(&self) -> u8 {
        if matches!(self.state, State::Next | State::Complete) { 0 } else { 7 }
    }
}

pub fn next(context: &Context, request: &NextRequest) -> Result<NextReport, Error> {
    let named = request.plan.as_ref().or(context.here.plan.as_ref());
    let plan = named.map(|it| resolve::plan(context, it)).transpose()?;
    let Some(id) = plan else { return Ok(of_all(context, request.most)) };
    let plans = LoadQuery::plan(&id).load(context)?.plans;
    let views = Views::of(context, &plans);
    let plan = plans.get(&id).ok_or_else(|| load::missing(context, &id))?;
    if plan.kind == PlanKind::Program && !plan.is_archived {
        let is_child = |it: &Plan| it.id == id || it.program.as_ref() == Some(&id);
        let candidates = rules::candidates(&plans, context.now).into_iter().filter(|it| is_child(it.plan));
        let asked: Vec<_> = plans.live().filter(|it| is_child(it) && it.may_have_steps()).collect();
        let mut report = among(&views, &asked, &candidates.collect::<Vec<_>>(), request.most);
        if asked.is_empty() {
            report.state = rules::state(&plans, plan, context.now);
            let why = match (plans.children(&id).next(), plans.archived_children(&id).next()) {
                (Some(_), _) => "the program's plans have no steps",
                (None, Some(_)) => "all plans of the program are archived",
                (None, None) => "the program has no plans",
            };
            why.clone_into(&mut report.why);
        }
        report.plan = Some(id.to_string());
        return Ok(report);
    }
    let Next { state, step, why, .. } = rules::next(&plans, plan, context.now);
    let step = step.map(|it| views.step(plan, it));
    Ok(NextReport {
        state,
        step,
        why,
        candidates: None,
        n_candidates: 0,
        plan: Some(id.to_string()),
        is_archived: plan.is_archived,
    })
}

fn of_all(context: &Context, most: Option<usize>) -> NextReport {
    let (told, records) = match cache::ask(context, most) {
        CacheReply::Cached(report) => return report.cut(most),
        CacheReply::Look(told, records) => (told, records),
    };
    let loaded = LoadQuery::all().attested_by(told).without_claims().load_summaries(context);
    // The report is cached only if a daemon attests that this commit of the index is current.
    let commit = loaded.commit.filter(|_| told.is_some());
    let leases = Leases::of(context);
    let summaries = loaded.plans.map(|it| leases.annotate(it));
    let plans = summaries.with_reduced_steps();
    let views = Views::of(context, plans);
    let live: Vec<_> = plans.live().collect();
    let made = most.map(|it| it.max(cache::FEW));
    let report = among(&views, &live, &rules::candidates(plans, context.now), made);
    cache::keep(context, records, commit, (&leases, plans), &report);
    load::drop_in_background(summaries);
    report.cut(most)
}

/// Reports the most urgent candidate of several plans, or why there is none. The list has at most `most` candidates, but
/// always the most urgent one.
fn among(views: &Views<'_>, asked: &[&Plan], found: &[Ranked<'_>], most: Option<usize>) -> NextReport {
    let n_candidates = found.len();
    let shown = &found[..most.map_or(n_candidates, |it| it.max(1).min(n_candidates))];
    let candidates: Vec<_> =
        load::map(shown, |it| Candidate { step: views.step(it.plan, it.step), why: it.why.clone() });
    let (state, why) = match candidates.first() {
        Some(first) => {
            let parts = [Some(first.why.clone()), rules::why_first(found)];
            (State::Next, parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
        None => why_none(views.plans, asked, views.now),
    };
    let step = candidates.first().map(|it| it.step.clone());
    NextReport {
        state,
        step,
        why,
        candidates: Some(candidates),
        n_candidates,
        plan: None,
        is_archived: false,
    }
}

/// The state and the reason if no plan has a ready step. The state is the first of waiting, blocked, draft, complete,
/// abandoned and empty that any plan has. If there are no plans, the state is empty.
fn why_none(plans: &Plans, asked: &[&Plan], now: Time) -> (State, String) {
    let states: Vec<_> = asked.iter().map(|it| rules::next(plans, it, now)).collect();
    let Some(best) = states.iter().map(|it| it.state).min() else {
        return (State::Empty, "there are no plans".to_owned());
    };
    let reasons = states.iter().filter(|it| it.state == best).map(|it| format!("{}: {}", it.plan.id, it.why));
    let reasons: Vec<_> = reasons.collect();
    let why = match best {
        State::Complete => {
            let has = |state: State| states.iter().any(|it| it.state == state);
            let why = match (has(State::Abandoned), has(State::Empty)) {
                (false, false) => "every plan is complete",
                (true, false) => "every plan is complete or abandoned",
                (false, true) => "every plan is complete or has no steps",
                (true, true) => "every plan is complete or abandoned, or has no steps",
            };
            why.to_owned()
        }
        _ if reasons.len() > 3 => {
            format!("{}; and {} more plans", reasons[..3].join("; "), reasons.len() - 3)
        }
        _ => reasons.join("; "),
    };
    (best, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[test]
    fn a_program_without_steps_says_whether_it_has_plans() {
        let program = ("/plans/a/plan.md", "---\nkind: program\n---\n# A\n");
        let child = ("/plans/b/plan.md", "---\nprogram: a\n---\n# B\n");
        let archived = ("/plans/_archive/b/plan.md", "---\nprogram: a\n---\n# B\n");
        let open = ("/plans/_archive/b/step-1.md", "# One\n");
        let closed = ("/plans/_archive/b/step-2.md", "---\nstatus: done\n---\n# Two\n");
        let (none, empty, gone) = (
            "the program has no plans",
            "the program's plans have no steps",
            "all plans of the program are archived",
        );
        for (files, state, expected) in [
            (vec![program], State::Empty, none),
            (vec![program, child], State::Empty, empty),
            (vec![program, archived, open], State::Empty, gone),
            (vec![program, archived, open, closed], State::Complete, gone),
        ] {
            let context = Context::on_model(&Machine::with(&files));
            let request = NextRequest { plan: Some("a".to_owned()), most: None };
            let report = next(&context, &request).unwrap();
            assert_eq!((report.state, report.why.as_str()), (state, expected));
            let plans = LoadQuery::all().load(&context).unwrap().plans;
            let program = plans.iter().next().unwrap();
            assert_eq!(rules::state(&plans, program, context.now), state);
        }
    }

    #[test]
    fn abandoned_and_empty_plans_are_not_called_complete() {
        let done = ("/plans/a/step-1.md", "---\nstatus: done\n---\n# One\n");
        let abandoned = ("/plans/b/plan.md", "---\nstatus: abandoned\n---\n# B\n");
        let empty = ("/plans/c/plan.md", "# C\n");
        for (files, expected) in [
            (vec![done], "every plan is complete"),
            (vec![done, abandoned], "every plan is complete or abandoned"),
            (vec![done, empty], "every plan is complete or has no steps"),
            (vec![done, abandoned, empty], "every plan is complete or abandoned, or has no steps"),
        ] {
            let context = Context::on_model(&Machine::with(&files));
            assert_eq!(next(&context, &NextRequest::default()).unwrap().why, expected);
        }
    }
}
