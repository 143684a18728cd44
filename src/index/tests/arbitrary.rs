//! Random plans in many of the forms that the model allows, even unlikely ones. `depends_at`, `run`, `program_at` and
//! `waits_inside` always have the same value.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::index::{FileRow, Stamp};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::ranges::StepRange;
use crate::plan::records::{Attempt, Claim, Confirmation, Note, NoteType, Priority, Verify};
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::plan::words::{Stated, Status};

/// Short texts with characters that careless code handles wrongly: quotes, NUL, a control character, an accented letter,
/// another script.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zé \"'\\-:;%_\0\u{2}漢\n]{0,12}", 1 => any::<String>()]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        4 => (0..4_000_000_000_000_000_000_i128).prop_map(Time::from_nanoseconds),
        1 => any::<i128>().prop_map(Time::from_nanoseconds),
    ]
}

fn number() -> impl Strategy<Value = StepNumber> {
    prop_oneof![
        4 => (0..20_u32).prop_map(StepNumber::whole),
        1 => "[0-9]{1,9}\\.[0-9]{1,30}".prop_map(|it| it.parse().expect("it is built as one")),
    ]
}

fn plan_id() -> impl Strategy<Value = PlanId> {
    prop_oneof![4 => "[a-d]{1,2}", 1 => "[^/\0._][^/\0]{0,8}"].prop_map(PlanId::new)
}

fn step_id() -> impl Strategy<Value = StepId> {
    (plan_id(), number()).prop_map(|(plan, number)| StepId { plan, number })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((text(), inner), 0..3).prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn map() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), value()), 0..3).prop_map(|it| it.into_iter().collect())
}

fn stated<S: Status + std::fmt::Debug>() -> impl Strategy<Value = Stated<S>> {
    prop_oneof![3 => select(S::ALL).prop_map(Stated::Known), 1 => text().prop_map(Stated::Unknown)]
}

fn problem() -> impl Strategy<Value = Problem> {
    let code = select(Code::ALL);
    (code, text(), text(), text(), any::<(u32, u32, bool)>()).prop_map(
        |(code, path, message, hint, (line, column, is_fixable))| Problem {
            path,
            line,
            column,
            code,
            message,
            hint,
            is_fixable,
        },
    )
}

fn attempt() -> impl Strategy<Value = Attempt> {
    (of(time()), of(text()), of(text()), of(text()), map())
        .prop_map(|(at, by, outcome, notes, more)| Attempt { at, by, outcome, notes, more })
}

fn note() -> impl Strategy<Value = Note> {
    let kind = select(&[NoteType::Info, NoteType::Warning, NoteType::Instruction][..]);
    (of(time()), kind, of(text()), text()).prop_map(|(at, kind, by, text)| Note { at, kind, by, text })
}

fn claim() -> impl Strategy<Value = Claim> {
    (text(), of(text()), of(time())).prop_map(|(id, by, at)| Claim { id, by, at })
}

fn confirmation() -> impl Strategy<Value = Confirmation> {
    (of(text()), of(text()), of(time()), of(text())).prop_map(|(phase, by, at, note)| Confirmation {
        phase,
        by,
        at,
        note,
    })
}

fn verify() -> impl Strategy<Value = Verify> {
    (text(), of(text()), of(text())).prop_map(|(run, dir, timeout)| Verify { run, dir, timeout })
}

fn priority() -> impl Strategy<Value = Priority> {
    select(&Priority::ALL[..])
}

fn step() -> impl Strategy<Value = Step> {
    let who = (step_id(), text(), of(text()), of(time()), text(), stated(), of(claim()));
    let how = (vec(step_id(), 0..3), of(text()), of(text()), of(text()), of(priority()), texts());
    let origin = (of(time()), text(), any::<bool>(), of(confirmation()), vec(verify(), 0..2), of(texts()));
    let records = (of(text()), vec(note(), 0..2), vec(attempt(), 0..3), map(), map());
    let range = (number(), number()).prop_map(|(first, last)| StepRange { first, last });
    let rest = (0..9_usize, 0..9_usize, vec(range, 0..2), text(), vec(problem(), 0..2));
    (who, how, origin, records, rest).prop_map(|(who, how, origin, records, rest)| {
        let (id, path, etag, modified, title, status, claim) = who;
        let (depends, phase, kind, assignee, priority, tags) = how;
        let (created_at, created_by, needs_confirmation, confirmed, verify, touches) = origin;
        let (result, notes, attempts, metadata, custom) = records;
        let (tasks_done, tasks_total, ranges, body, problems) = rest;
        Step {
            id,
            path,
            etag,
            modified,
            title,
            status,
            claim: claim.map(Box::new),
            depends,
            phase,
            kind,
            assignee,
            priority,
            due: (tasks_done % 2 == 0).then(|| "2026-11-21".parse().unwrap()),
            tags,
            created_at,
            created_by,
            needs_confirmation,
            confirmed: confirmed.map(Box::new),
            verify,
            touches,
            result,
            notes,
            attempts,
            metadata,
            custom,
            tasks_done,
            tasks_total,
            ranges,
            depends_at: Vec::new(),
            body,
            problems,
            run: None,
        }
    })
}

/// A plan with up to four steps.
pub(in crate::index) fn plan() -> impl Strategy<Value = Plan> {
    let who = (plan_id(), any::<bool>(), text(), of(text()), of(time()), stated(), text(), of(text()));
    let kinds = select(&[PlanKind::Plan, PlanKind::Program][..]);
    let orders = select(&[Order::Dependencies, Order::Sequential][..]);
    let what = (kinds, of(plan_id()), of(text()), priority(), texts(), texts(), texts(), texts(), orders);
    let records = (texts(), vec(confirmation(), 0..2), value(), of(time()), map(), vec(note(), 0..2), map());
    let rest = (text(), vec(step(), 0..4), vec(problem(), 0..2));
    (who, what, records, rest).prop_map(|(who, what, records, rest)| {
        let (id, is_archived, path, etag, modified, status, title, description) = who;
        let (kind, program, category, priority, tags, files, goals, success_criteria, order) = what;
        let (confirm_phases, confirmations, draft, created_at, metadata, notes, custom) = records;
        let (body, mut steps, problems) = rest;
        for step in &mut steps {
            step.id.plan = id.clone();
        }
        steps.sort_by(|a, b| a.id.number.cmp(&b.id.number));
        Plan {
            id,
            is_archived,
            path,
            etag,
            modified,
            status,
            title,
            description,
            kind,
            program,
            program_at: None,
            category,
            priority,
            due: is_archived.then(|| "2028-02-29".parse().unwrap()),
            tags,
            files,
            goals,
            success_criteria,
            order,
            confirm_phases,
            confirmations,
            draft,
            created_at,
            metadata,
            notes,
            custom,
            body,
            steps,
            problems,
            waits_inside: false,
        }
    })
}

/// Plans that one plans directory can hold: each name at most once live and at most once archived.
pub(in crate::index) fn plans() -> impl Strategy<Value = Vec<Plan>> {
    vec(plan(), 0..6).prop_map(|mut plans| {
        let mut seen = std::collections::HashSet::new();
        plans.retain(|it| seen.insert((it.is_archived, it.id.as_str().to_owned())));
        plans
    })
}

/// Files in any order, each name once.
pub(in crate::index) fn files() -> impl Strategy<Value = Vec<FileRow>> {
    let stamp = any::<(u64, i64, i64, u64, u64)>().prop_map(|(len, mtime_ns, ctime_ns, ino, dev)| Stamp {
        len,
        mtime_ns,
        ctime_ns,
        ino,
        dev,
    });
    let row = (text(), stamp, text(), any::<i64>())
        .prop_map(|(name, stamp, hash, now)| FileRow::new(name, stamp, hash, now));
    vec(row, 0..6).prop_map(|mut files| {
        let mut seen = std::collections::HashSet::new();
        files.retain(|it| seen.insert(it.name.clone()));
        files
    })
}

/// The plan as the index returns it.
pub(in crate::index) fn without_bodies(mut plan: Plan) -> Plan {
    plan.body.clear();
    plan.steps.iter_mut().for_each(|it| it.body.clear());
    plan
}
