//! The same work on many items, in several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

/// Doing up to this many items takes less time than starting a thread.
const FEW: usize = 8;

/// How many threads wait for the disk at once.
const FEW_THREADS: usize = 4;

/// How many items a thread takes at once, if there are many. Waking the consuming thread costs more than most items do
/// (benchmark T3).
const SHARE: usize = 32;

/// How many shares may wait to be consumed; this limits the memory.
const WAITING: usize = 8;

/// From this many items on, each thread reserves memory first if the results are [`Results::Plans`].
const MANY: usize = 512;

/// How much memory such a thread reserves, in bytes.
const ROOM: usize = 30 << 20;

/// The size of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    Little,
    /// Many small allocations that outlive the thread.
    Plans,
}

/// Reserves memory for many small allocations of this thread.
///
/// glibc gives each thread an arena that grows page by page. Each growth is a system call, and all threads of the
/// process wait for it. Therefore the loop below allocates [`ROOM`] bytes once and frees them, which makes the arena
/// that large. glibc takes such a large allocation from the arena only after a larger one has been freed, so the loop
/// begins with a larger one. The memory is never touched, so it is not resident. With other allocators, this has no
/// effect.
fn make_room() {
    for room in [ROOM + (1 << 20), ROOM] {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(room)));
    }
}

/// Works on each item, in several threads if there are many items. Returns the results in the order of the items.
///
/// Each thread takes the next few items when it has finished its last ones, because some items can take much longer than
/// others: the later steps of a plan have more dependencies (benchmark T16).
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() <= FEW * FEW {
        return items.iter().map(work).collect();
    }
    shared_out(items, n_threads(), FEW, |_, it| work(it))
}

/// Works on a few I/O-bound items in several threads, or in fewer if not all of them can be started; returns the
/// results in the order of the items.
pub(crate) fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    shared_out(items, items.len().min(FEW_THREADS), 1, work)
}

/// Works on the items in up to `n_threads` threads, one of them this one. Each thread takes `share` items at once.
fn shared_out<T: Sync, R: Send>(
    items: &[T],
    n_threads: usize,
    share: usize,
    work: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let shares = Mutex::new(items.chunks(share).zip(results.chunks_mut(share)).enumerate());
    let take = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
    let some = || {
        while let Some((nth, (items, results))) = take() {
            for (at, (item, result)) in items.iter().zip(results).enumerate() {
                *result = Some(work(nth * share + at, item));
            }
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> =
            (1..n_threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, some).ok()).collect();
        some();
        for other in others {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    results.into_iter().map(|it| it.expect("the threads take all shares")).collect()
}

/// How many threads to use. The number is cached, because determining it reads system files.
pub(crate) fn n_threads() -> usize {
    static N: OnceLock<usize> = OnceLock::new();
    *N.get_or_init(|| thread::available_parallelism().map_or(2, |it| it.get().clamp(1, 8)))
}

/// Works on each item, in several threads unless there are only a few items. `consume` runs in this thread and gets the
/// results in the order of the items.
///
/// Items whose results are not consumed may be skipped.
pub(super) fn each<T: Sync, R: Send, O>(
    items: &[T],
    kind: Results,
    work: impl Fn(&T) -> R + Sync,
    consume: impl FnOnce(&mut dyn Iterator<Item = R>) -> O,
) -> O {
    if items.len() <= FEW {
        return consume(&mut items.iter().map(work));
    }
    let n_threads = n_threads().max(2);
    let share = (items.len() / (4 * n_threads)).clamp(FEW, SHARE);
    let next = AtomicUsize::new(0);
    let run = |results: mpsc::SyncSender<(usize, Vec<R>)>| {
        if kind == Results::Plans && items.len() >= MANY {
            make_room();
        }
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let share: Vec<_> = items.iter().skip(nth * share).take(share).map(&work).collect();
            if share.is_empty() || results.send((nth, share)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let (sender, results) = mpsc::sync_channel(WAITING);
        for _ in 0..n_threads {
            let sender = sender.clone();
            scope.spawn(|| run(sender));
        }
        drop(sender);
        consume(&mut in_order(results).flatten())
    })
}

/// Takes jobs from a channel that several threads share, until the channel is closed and empty.
pub(crate) fn taken<T>(jobs: &Mutex<mpsc::Receiver<T>>) -> impl Iterator<Item = T> {
    std::iter::from_fn(|| jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok())
}

/// Yields the received items in the order of their numbers, which begin with 0.
pub(crate) fn in_order<T>(read: mpsc::Receiver<(usize, T)>) -> impl Iterator<Item = T> {
    let (mut early, mut next) = (BTreeMap::new(), 0_usize);
    std::iter::from_fn(move || {
        while !early.contains_key(&next) {
            match read.recv() {
                Ok((nth, it)) => early.insert(nth, it),
                // The channel is closed. If a number is missing, the items after it still follow.
                Err(_) => break,
            };
        }
        let (nth, it) = early.pop_first()?;
        next = nth + 1;
        Some(it)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_whichever_is_done_first() {
        let items: Vec<_> = (0..SHARE * 6).collect();
        let (tell, told) = mpsc::channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let work = |it: &usize| {
            // The first share is finished only after another thread has begun a later share.
            if *it == 0 {
                told.lock().unwrap().recv().unwrap();
            } else if *it == SHARE * 2 {
                tell.lock().unwrap().send(()).unwrap();
            }
            *it
        };
        let found = each(&items, Results::Little, work, |all| all.collect::<Vec<_>>());
        assert_eq!(found, items);
    }

    #[test]
    fn shared_items_are_each_worked_on_once_and_keep_their_order() {
        for (n_items, n_threads, share) in [(0, 2, 8), (1, 4, 8), (65, 2, 8), (71, 3, 8), (5, 4, 1)] {
            let items: Vec<_> = (0..n_items).collect();
            let done = shared_out(&items, n_threads, share, |nth, it| (nth, *it));
            assert_eq!(done, items.iter().map(|it| (*it, *it)).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "item 70")]
    fn a_panic_of_the_work_is_passed_on() {
        let items: Vec<_> = (0..71).collect();
        map(&items, |it| assert!(*it < 70, "item {it}"));
    }
}
