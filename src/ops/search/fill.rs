//! Fills the full-text index. For plans that are in the index of plans, only the texts below the front matter are needed
//! from the files. Several threads read these texts, while another thread splits them into words. If the index of plans is
//! empty, the files are read once to fill both indexes.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use super::full_text::Trouble;
use crate::api::context::Context;
use crate::index::{FullText, Head, Index, IndexError, Origin, Seen, Snapshot, Texts, Unsearched};
use crate::plan::model::Plan;
use crate::plan::read::{body, etag};
use crate::store::load::parallel::{in_order, taken};
use crate::store::load::refresh::is_commit;
use crate::store::load::scan::{ReadContext, read_whole, reader};
use crate::store::load::{Fresh, IndexCheck, Refresh, Wanted};

/// The capacity of the queue of plans to read, and of the queue of plans to write. This limits the use of memory.
const WAITING: usize = 16;

/// The capacity of the queue of texts in [`fill_while_read`], as a number of plans. This limits the use of memory. While
/// the queue is full, the reading of the files waits, and the index of plans stays locked for writing.
const AHEAD: usize = 64;

/// A plan whose texts are to be read: its position among these plans, its row in the index, and the data of the row.
type Job<'a> = (usize, &'a Head, Vec<u8>);

type Jobs<'a> = Mutex<Receiver<Job<'a>>>;

/// The position of a plan, its row, and its texts. `None`: the plan no longer exists.
type Read<'a> = (usize, (&'a Head, Result<Option<Texts>, IndexError>));

/// Adds missing texts to the full-text index, and removes the texts of plans, decisions and insights that no longer exist.
/// If the files of every added plan still matched its row, the full-text index then counts as filled from `origin`. Returns
/// [`Trouble::Unknown`] if another process wrote into the full-text index meanwhile.
pub(crate) fn fill(
    context: &Context,
    snapshot: &Snapshot<'_>,
    texts: &mut FullText,
    state: &Unsearched<'_>,
    seen: Seen,
    origin: Option<&Origin>,
) -> Result<(), Trouble> {
    let (jobs, taken) = sync_channel(WAITING);
    let (done, read) = sync_channel(WAITING);
    // When the last receiving thread has ended, the receiver is dropped, so the sender does not wait forever.
    let taken = Arc::new(Mutex::new(taken));
    let n_threads =
        thread::available_parallelism().map_or(2, |it| it.get().clamp(1, 8)).min(state.missing.len());
    let clock = OnceLock::new();
    let how = ReadContext::new(context, &clock);
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

/// Updates an index that may be out of date. If the index has no commit yet and the full-text index is empty, fills the
/// full-text index, too. If this call makes the first commit of the index, and each text was sent once, the full-text index
/// then counts as filled from that commit ([`first_commit`]).
///
/// An error in the full-text index is ignored here; the next search finds it again.
pub(crate) fn fill_while_read(
    context: &Context,
    mut index: Index,
    texts: &mut FullText,
    records: &[Texts],
) -> Fresh {
    let is_new = index.snapshot().and_then(|it| it.generation()).is_ok_and(|it| it.is_none());
    let seen = if is_new { seen_empty(texts).unwrap_or_default() } else { None };
    let Some(seen) = seen else { return scanned(context, Some(index)) };
    let (send, read) = sync_channel(AHEAD);
    let (tell, told) = sync_channel(1);
    // The closure owns the senders, so that a panic drops them and the writer ends.
    thread::scope(move |scope| {
        let writer = scope.spawn(move || {
            // The full-text index must be locked after the index. When the first text arrives, the index is locked.
            let Ok(first) = read.recv() else { return };
            let mut all = std::iter::once(first).chain(read).chain(records.iter().cloned());
            let mut origin = || told.recv().ok().flatten();
            texts.write(&mut all, &[], seen, &mut origin).ok();
        });
        let n_sent = Cell::new(0);
        let send_text = |it| {
            n_sent.set(n_sent.get() + 1);
            // Sending fails only if the receiver has ended after an error.
            send.send(it).ok();
        };
        let mut found = Refresh::with_texts(&send_text).run_in(context, Some(index));
        drop(send);
        tell.send(first_commit(context, &mut found, n_sent.get())).ok();
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        found
    })
}

pub(crate) fn scanned(context: &Context, index: Option<Index>) -> Fresh {
    Refresh::new(Wanted::Nothing, IndexCheck::Scan).run_in(context, index)
}

/// The state of the full-text index if it is empty. `None`: it is not empty.
fn seen_empty(texts: &mut FullText) -> Result<Option<Seen>, IndexError> {
    let look = texts.look()?;
    let is_empty = look.unsearched(Some(&[]), &[])?.is_nothing();
    Ok(is_empty.then_some(look.seen()?))
}

/// The commit from which a full-text index was filled. `None`: the commit is not the first of its index, or it is no longer
/// current, or the number of sent texts is not the number of plans. More texts than plans were sent if the reading of the
/// files began again, because some texts were then sent twice.
fn first_commit(context: &Context, found: &mut Fresh, n_sent: usize) -> Option<Origin> {
    let snapshot = found.index.as_mut()?.snapshot().ok()?;
    let is_first = found.before.is_none() && is_commit(&snapshot, found.commit);
    let origin = snapshot.origin(reader(context)).ok()?;
    origin.filter(|_| is_first && [n_sent, found.n_texts] == [found.n_plans; 2])
}

/// Sends the plans to the threads that read the texts. Sending fails only if these have ended after an error of the writer.
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

fn run<'a>(how: ReadContext<'_>, jobs: &Jobs<'a>, done: &SyncSender<Read<'a>>) {
    for (nth, head, data) in taken(jobs) {
        if done.send((nth, (head, texts_of(how, head, &data)))).is_err() {
            return;
        }
    }
}

fn write(
    texts: &mut FullText,
    read: Receiver<Read<'_>>,
    state: &Unsearched<'_>,
    seen: Seen,
    origin: Option<&Origin>,
) -> Result<(), Trouble> {
    let (n_exact, mut damage) = (Cell::new(0), None);
    // If the full-text index is filled in the order of the plans, a search finds the first of many matches faster.
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
    let is_as_seen = written.map_err(Trouble::Texts)?;
    damage.map_or(Ok(()), |error| Err(Trouble::Index(error)))?;
    if is_as_seen { Ok(()) } else { Err(Trouble::Unknown) }
}

/// The texts of a plan: the data in the index, and the bodies in the files. If a file has changed, the whole plan is read
/// again. `None`: the plan no longer exists.
fn texts_of(how: ReadContext<'_>, head: &Head, data: &[u8]) -> Result<Option<Texts>, IndexError> {
    let mut plan = head.plan(data)?;
    if add_bodies(how.context, &mut plan).is_some() {
        return Ok(Some(Texts::of_head(head, &plan)));
    }
    Ok(read_whole(how, &head.key).map(|(packed, plan)| Texts::of_head(&packed.head, &plan)))
}

fn add_bodies(context: &Context, plan: &mut Plan) -> Option<()> {
    plan.body = body_of(context, &plan.path, plan.etag.as_deref())?;
    for step in &mut plan.steps {
        step.body = body_of(context, &step.path, step.etag.as_deref())?;
    }
    Some(())
}

/// The text below the front matter. `None`: the file has changed, or cannot be read. A step or plan without a file has no
/// `hash`, and its text is empty.
pub(crate) fn body_of(context: &Context, path: &str, hash: Option<&str>) -> Option<String> {
    let Some(hash) = hash else { return Some(String::new()) };
    let bytes = context.plans.read(Path::new(path)).ok()?.bytes;
    (etag(&bytes) == hash).then(|| body(&bytes).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::index::{Change, Document, Key, Place, Query};

    fn machine() -> Machine {
        Machine::with(&[
            ("/plans/quay/plan.md", "# Quay\n\nOf granite.\n"),
            ("/plans/quay/step-1.md", "# Piles\n\nUntil they hold.\n"),
            ("/plans/pier/plan.md", "# Pier\n\nOf oak.\n"),
        ])
    }

    fn empty() -> (Index, FullText) {
        (Index::open(Place::Memory).unwrap().0, FullText::open(Place::Memory).unwrap().0)
    }

    fn is_filled(context: &Context, index: &mut Index, texts: &mut FullText) -> bool {
        let origin = index.snapshot().unwrap().origin(reader(context)).unwrap().unwrap();
        texts.look().unwrap().is_filled_from(&origin).unwrap()
    }

    fn names(texts: &mut FullText, query: &str) -> Vec<String> {
        let found = texts.look().unwrap().search(&Query::new(query)).unwrap();
        found.into_iter().map(|it| it.key.name).collect()
    }

    #[test]
    fn an_empty_full_text_is_filled_at_once() {
        let context = Context::on_model(&machine());
        let (index, mut texts) = empty();
        let records = [Texts::of_record("decisions/1.md", Document::of_record("1", "Granite it is", "", ""))];
        let mut found = fill_while_read(&context, index, &mut texts, &records);
        assert_eq!((found.n_plans, found.n_steps), (2, 1));
        assert!(is_filled(&context, found.index.as_mut().unwrap(), &mut texts));
        assert_eq!(names(&mut texts, "granite"), ["decisions/1.md", "quay"]);
        assert_eq!(names(&mut texts, "hold"), ["quay"]);
        assert_eq!(names(&mut texts, "oak"), ["pier"]);
    }

    #[test]
    fn an_index_that_was_filled_before_does_not_fill_the_full_text() {
        let machine = machine();
        let context = Context::on_model(&machine);
        let (index, mut texts) = empty();
        let mut found = scanned(&context, Some(index));
        let mut found = fill_while_read(&context, found.index.take().unwrap(), &mut texts, &[]);
        assert!(!is_filled(&context, found.index.as_mut().unwrap(), &mut texts));
        assert_eq!(names(&mut texts, "oak"), [""; 0]);
    }

    #[test]
    fn a_filled_full_text_is_compared_with_the_plans() {
        let context = Context::on_model(&machine());
        let (first, mut texts) = empty();
        fill_while_read(&context, first, &mut texts, &[]);
        let (index, _) = empty();
        let mut found = fill_while_read(&context, index, &mut texts, &[]);
        assert!(!is_filled(&context, found.index.as_mut().unwrap(), &mut texts));
        assert_eq!(names(&mut texts, "oak"), ["pier"]);
    }

    #[test]
    fn texts_are_filled_only_from_the_first_commit_of_exactly_the_plans_that_were_sent() {
        let context = Context::on_model(&machine());
        let commit = |n_more: usize| {
            let mut found = Refresh::with_texts(&drop).run_in(&context, Some(empty().0));
            let n_sent = found.n_texts + n_more;
            let commit = first_commit(&context, &mut found, n_sent);
            (found.index.unwrap(), commit)
        };
        let (index, of_all) = commit(0);
        assert!(of_all.is_some());
        assert_eq!(commit(1).1, None, "an earlier attempt sent a text, too");
        let mut again = Refresh::with_texts(&drop).run_in(&context, Some(index));
        assert_eq!(first_commit(&context, &mut again, 2), None, "the commit is not the first of its index");
        let key = Key { is_archived: false, name: "pier".to_owned() };
        let (mut index, _) = commit(0);
        let shown = index.snapshot().unwrap().generation().unwrap();
        index.write(&mut [Change::Remove(key)].into_iter()).unwrap();
        let mut later =
            Fresh { index: Some(index), commit: shown, n_plans: 2, n_texts: 2, ..Fresh::default() };
        assert_eq!(first_commit(&context, &mut later, 2), None, "there was another commit since");
    }
}
