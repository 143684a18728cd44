//! Which steps can be handed out, first things first, and how those who ask at once, or one after the other, share one
//! look at the plans.
//!
//! A queue is a hint: each step of it is decided on anew under the lock. That nothing is ready only one's own look says.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::queue_cache;
use crate::api::context::{Context, Reading};
use crate::api::error::Error;
use crate::disk::{Answering, Question, Turn};
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::store::leases::Leases;
use crate::store::load;
use crate::store::resolve::NamedStep;
use crate::store::transaction::Mode;

/// The file of the question, in `.planwatch`.
const NAME: &str = "claimable";

/// More steps than this are not found at once: each one costs a count of those that wait for it.
const MOST: usize = 64;

/// As [`MOST`], where the queue serves many claims, one after the other.
pub(crate) const KEPT: usize = 192;

/// Of those so many are told: more do not ask at once.
const TOLD: usize = 32;

/// What was asked a second ago may be answered by who asked now: no lease is finer.
const SAME_TIME: i64 = 1;

/// A step that can be handed out.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) step: NamedStep,
    pub(crate) recorded: Recorded,
}

/// What is recorded of a claim on a step that can be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Recorded {
    Nothing,
    /// The claim has lapsed.
    Lapsed,
    /// The claim was being made; if it is not made under the lock, who made it is dead, and only a look says where the
    /// step's place is.
    Unfinished,
}

/// Where the first queue comes from.
pub(crate) enum Source {
    /// Somebody else has looked since this was asked, or what was found before is still so.
    Queue(Vec<Ready>),
    /// Who looks may tell the others.
    Look(Option<Answering>),
}

/// A queue as it is told, with what decides whether it is the same for who hears it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Told {
    reader: String,
    at: Time,
    /// Id, name of the file, and what is recorded.
    steps: Vec<(String, Option<String>, Recorded)>,
}

/// Notes that the steps of all plans are asked for now, if that can be told to others.
pub(crate) fn ask(context: &Context, mode: Mode) -> Option<Question> {
    let is_shared = mode == Mode::Write && context.reading == Reading::Index;
    is_shared.then(|| context.plans.ask(NAME)).flatten()
}

/// Waits for who is looking already.
pub(crate) fn source(context: &Context, question: Option<Question>) -> Source {
    // Who has an answer and claims by it asks again after that, and can then be answered with the others.
    match question.map(|it| it.turn(|| context.plans.wait_for_writers())) {
        Some(Turn::Answered(bytes)) => hear(context, &bytes).map_or(Source::Look(None), Source::Queue),
        Some(Turn::Yours(answering, last)) => match last.and_then(|it| still(context, &it)) {
            Some((queue, told)) => {
                answering.answer(&told);
                Source::Queue(queue)
            }
            None => Source::Look(Some(answering)),
        },
        Some(Turn::Alone) | None => Source::Look(None),
    }
}

/// The queue that was told last, if a look would find it so now, and how it is told.
fn still(context: &Context, last: &[u8]) -> Option<(Vec<Ready>, Vec<u8>)> {
    let (told, proof) = parts(last);
    let told: Told = serde_json::from_slice(told).ok().filter(|it: &Told| it.reader == reader_of(context))?;
    let queue = queue_cache::still(context, &serde_json::from_slice(proof).ok()?)?;
    let told = bytes_of(&Told { at: context.now, steps: told_of(&queue), ..told }, proof);
    (!queue.is_empty()).then_some((queue, told))
}

/// What all are told, and behind it what only who looks next has to read.
fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|it| *it == b'\n').unwrap_or(bytes.len());
    (&bytes[..at], bytes.get(at + 1..).unwrap_or_default())
}

fn bytes_of(told: &Told, proof: &[u8]) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(told).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend(proof);
    bytes
}

fn told_of(queue: &[Ready]) -> Vec<(String, Option<String>, Recorded)> {
    let step = |it: &Ready| (it.step.id.to_string(), it.step.file().map(str::to_owned), it.recorded);
    queue.iter().take(TOLD).map(step).collect()
}

fn hear(context: &Context, bytes: &[u8]) -> Option<Vec<Ready>> {
    let Told { reader, at, steps } = serde_json::from_slice(parts(bytes).0).ok()?;
    let is_near = |a: Time, b: Time| a <= b.plus_seconds(SAME_TIME);
    if reader != reader_of(context) || !is_near(at, context.now) || !is_near(context.now, at) {
        return None;
    }
    let ready = |(id, file, recorded): (String, Option<String>, Recorded)| {
        Some(Ready { step: NamedStep::in_file(read_step_id(&id)?, file), recorded })
    };
    steps.into_iter().map(ready).collect()
}

/// As [`look`], of all plans, and leaves the queue for those who asked before the look began, and for later ones as
/// long as it is known to be right.
pub(crate) fn look_for_all(context: &Context, answering: Answering) -> Vec<Ready> {
    let leases = Leases::of(context);
    let listed = leases.listed(&|_| true);
    let (plans, files) = load::as_filed_for_now_and_files(context);
    let begun = queue_cache::appeared(&listed, leases.listed(&|_| false));
    let plans = leases.tell_hopefully(plans);
    let turns: Vec<_> = rules::in_turn(&plans, context.now, |_| true).take(KEPT).collect();
    let queue: Vec<_> = turns.iter().map(|it| ready(&plans, it.step)).collect();
    let files = files.filter(|_| plans.is_steady(context.now, context.now.plus_seconds(queue_cache::HOLDS)));
    let proof =
        files.and_then(|files| queue_cache::proof(&leases, context.now, (listed, begun), &turns, files));
    let proof = proof.and_then(|it| serde_json::to_vec(&it).ok()).unwrap_or_default();
    let told = Told { reader: reader_of(context), at: context.now, steps: told_of(&queue) };
    answering.answer(&bytes_of(&told, &proof));
    drop(turns);
    load::let_go(plans);
    queue
}

/// What lets two processes read the same files in the same way.
pub(crate) fn reader_of(context: &Context) -> String {
    let how = format!("{} {:?}", env!("CARGO_PKG_VERSION"), context.config.words);
    blake3::hash(how.as_bytes()).to_hex()[..16].to_owned()
}

/// Lists steps that are ready, but for those that were tried, in the order in which they are handed out.
pub(crate) fn look(
    context: &Context,
    plan: Option<&PlanId>,
    tried: &HashSet<StepId>,
) -> Result<Vec<Ready>, Error> {
    let plans = match plan {
        Some(id) => load::some_for_now(context, id)?,
        None => load::as_filed_for_now(context),
    };
    let plans = Leases::of(context).tell_hopefully(plans);
    let queue = match plan {
        None => queue_of(&plans, context.now, tried, |_| true),
        Some(id) => {
            let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
            let is_program = plan.kind == PlanKind::Program && !plan.is_archived;
            let is_child = |it: &Plan| is_program && it.program.as_ref() == Some(id);
            queue_of(&plans, context.now, tried, |it| it.id == *id || is_child(it))
        }
    };
    load::let_go(plans);
    Ok(queue)
}

fn queue_of(
    plans: &Plans,
    now: Time,
    tried: &HashSet<StepId>,
    is_asked: impl Fn(&Plan) -> bool,
) -> Vec<Ready> {
    let steps = rules::in_turn(plans, now, is_asked).map(|it| it.step).filter(|it| !tried.contains(&it.id));
    steps.take(MOST).map(|it| ready(plans, it)).collect()
}

pub(crate) fn ready(plans: &Plans, step: &Step) -> Ready {
    let has_record = plans.claims().has_record(&step.id);
    Ready {
        step: NamedStep::of(step),
        recorded: if has_record { Recorded::Lapsed } else { Recorded::Nothing },
    }
}
