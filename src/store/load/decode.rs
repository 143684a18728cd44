//! Decodes plans from the index's data in separate threads, while other threads still compare directories.

use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use super::parallel;
use crate::index::{Head, IndexError};
use crate::plan::model::Plan;

/// Decoding up to this many plans takes less time than starting a thread.
const FEW: usize = 64;

/// How many plans may wait to be decoded; this limits the memory.
const WAITING: usize = 64;

type Job<'a> = (&'a Head, Vec<u8>);

/// Decodes data in the calling thread or in threads of its own.
pub(super) enum Decoding<'scope, 'a> {
    Here(Vec<Plan>),
    InThreads {
        jobs: SyncSender<Job<'a>>,
        threads: Vec<ScopedJoinHandle<'scope, Result<Vec<Plan>, IndexError>>>,
    },
}

impl<'scope, 'a: 'scope> Decoding<'scope, 'a> {
    /// `n` is the approximate number of plans.
    pub(super) fn of(n: usize, scope: &'scope Scope<'scope, '_>) -> Self {
        if n <= FEW {
            return Self::Here(Vec::new());
        }
        let (jobs, taken) = sync_channel::<Job<'a>>(WAITING);
        let taken = std::sync::Arc::new(Mutex::new(taken));
        let n_threads = thread::available_parallelism().map_or(2, |it| it.get().clamp(1, 4));
        let run = |_| {
            let taken = std::sync::Arc::clone(&taken);
            scope.spawn(move || parallel::taken(&taken).map(|(head, data)| head.plan(&data)).collect())
        };
        let threads = (0..n_threads).map(run).collect();
        Self::InThreads { jobs, threads }
    }

    pub(super) fn put(&mut self, head: &'a Head, data: Vec<u8>) -> Result<(), IndexError> {
        match self {
            Self::Here(plans) => plans.push(head.plan(&data)?),
            // Sending fails only if all threads have found damage and ended. `finish` returns their error.
            Self::InThreads { jobs, .. } => drop(jobs.send((head, data))),
        }
        Ok(())
    }

    /// Waits for all plans, which come in no particular order.
    pub(super) fn finish(self) -> Result<Vec<Plan>, IndexError> {
        let (jobs, threads) = match self {
            Self::Here(plans) => return Ok(plans),
            Self::InThreads { jobs, threads } => (jobs, threads),
        };
        drop(jobs);
        let mut all = Vec::new();
        for thread in threads {
            let made = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.append(&mut made?);
        }
        Ok(all)
    }
}
