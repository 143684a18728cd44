//! Fills the full text: of plans that the index holds only the texts below the front matters are read again, in several
//! threads, while another one splits them into words.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use super::etag;
use super::files::{How, read_whole};
use super::text::Trouble;
use crate::engine::context::Context;
use crate::index::{FullText, Head, IndexError, Origin, Seen, Snapshot, Texts, Unsearched};
use crate::plan::model::Plan;
use crate::plan::read::body;

/// How many plans may wait on either side; it bounds the memory.
const WAITING: usize = 16;

/// A plan to be read: which of them it is, its row, and its data.
type Job<'a> = (usize, &'a Head, Vec<u8>);

type Jobs<'a> = Mutex<Receiver<Job<'a>>>;

/// Which of them it is, and what was read of the plan; none if it has gone.
type Read<'a> = (usize, (&'a Head, Result<Option<Texts>, IndexError>));

/// Puts in what is missing, and takes out what is gone. In the end the full text counts as filled from `origin` if every
/// plan was still as its row says.
pub(super) fn fill(
    context: &Context,
    snapshot: &Snapshot<'_>,
    texts: &mut FullText,
    state: &Unsearched<'_>,
    seen: Seen,
    origin: Option<&Origin>,
) -> Result<(), Trouble> {
    let (jobs, taken) = sync_channel(WAITING);
    let (done, read) = sync_channel(WAITING);
    // Gone with the last thread that takes from it, so that nobody waits for none.
    let taken = Arc::new(Mutex::new(taken));
    let n_threads =
        thread::available_parallelism().map_or(2, |it| it.get().clamp(1, 8)).min(state.missing.len());
    let clock = OnceLock::new();
    let how = How::new(context, &clock);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(texts, read, state, seen, origin));
        for _ in 0..n_threads {
            let (taken, done) = (Arc::clone(&taken), done.clone());
            scope.spawn(move || run(how, &taken, &done));
        }
        drop((taken, done));
        let fed = feed(snapshot, &state.missing, jobs);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        fed.map_err(Trouble::Index).and(written)
    })
}

/// Hands the plans out; who takes them ends early only over an error of its own.
fn feed<'a>(
    snapshot: &Snapshot<'_>,
    missing: &[&'a Head],
    jobs: SyncSender<Job<'a>>,
) -> Result<(), IndexError> {
    for (nth, head) in missing.iter().enumerate() {
        if jobs.send((nth, head, snapshot.data(head)?)).is_err() {
            break;
        }
    }
    drop(jobs);
    Ok(())
}

fn run<'a>(how: How<'_>, jobs: &Jobs<'a>, done: &SyncSender<Read<'a>>) {
    while let Some((nth, head, data)) = next(jobs) {
        if done.send((nth, (head, texts_of(how, head, &data)))).is_err() {
            return;
        }
    }
}

fn next<'a>(jobs: &Jobs<'a>) -> Option<Job<'a>> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Hands on in the order of their numbers what came in another: a full text that is filled in the order of the plans finds
/// the first of many matches soonest.
fn in_order<T>(read: Receiver<(usize, T)>) -> impl Iterator<Item = T> {
    let (mut early, mut next) = (BTreeMap::new(), 0_usize);
    std::iter::from_fn(move || {
        while !early.contains_key(&next) {
            match read.recv() {
                Ok((nth, it)) => early.insert(nth, it),
                // One was not read, or all have come.
                Err(_) => break,
            };
        }
        let (nth, it) = early.pop_first()?;
        next = nth + 1;
        Some(it)
    })
}

fn write(
    texts: &mut FullText,
    read: Receiver<Read<'_>>,
    state: &Unsearched<'_>,
    seen: Seen,
    origin: Option<&Origin>,
) -> Result<(), Trouble> {
    let (n_exact, mut damage) = (Cell::new(0), None);
    let read = in_order(read).filter_map(|(head, read)| {
        let texts = read.unwrap_or_else(|error| {
            damage = Some(error);
            None
        })?;
        n_exact.set(n_exact.get() + usize::from(texts.are_of(head)));
        Some(texts)
    });
    let mut all = read.chain(state.records.iter().cloned());
    let mut is_exact = || origin.cloned().filter(|_| n_exact.get() == state.missing.len());
    let written = texts.write(&mut all, &state.gone, seen, &mut is_exact);
    drop(all);
    written.map_err(Trouble::Texts)?;
    damage.map_or(Ok(()), |error| Err(Trouble::Index(error)))
}

/// Adds the bodies to what the index holds of a plan; where a file is not what it was, all of them are read as the plan
/// is now. None if there is no plan any more.
fn texts_of(how: How<'_>, head: &Head, data: &[u8]) -> Result<Option<Texts>, IndexError> {
    let mut plan = head.plan(data)?;
    if add_bodies(how.context, &mut plan).is_some() {
        return Ok(Some(Texts::of_head(head, &plan)));
    }
    Ok(read_whole(how, &head.key).map(|(packed, plan)| Texts::new(&packed, &plan)))
}

fn add_bodies(context: &Context, plan: &mut Plan) -> Option<()> {
    plan.body = body_of(context, &plan.path, plan.etag.as_deref())?;
    for step in &mut plan.steps {
        step.body = body_of(context, &step.path, step.etag.as_deref())?;
    }
    Some(())
}

/// The text below the front matter; none if the file is not what it was. What had no file has no text.
pub(super) fn body_of(context: &Context, path: &str, hash: Option<&str>) -> Option<String> {
    let Some(hash) = hash else { return Some(String::new()) };
    let bytes = context.plans.read(Path::new(path)).ok()?.bytes;
    (etag(&bytes) == hash).then(|| body(&bytes).to_owned())
}
