//! Reads the output of a run's worker from the log of its claim, so that other processes can show it.

use crate::api::context::Context;
use crate::plan::time::Time;
use crate::store::leases::Leases;

/// The maximum number of bytes that are read from the end of a log.
const MOST: u64 = 32 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOutput {
    pub by: Option<String>,
    pub since: Option<Time>,
    /// The end of the output.
    pub tail: Vec<u8>,
}

/// The output of the worker of a claim; `None` if no live run of this working tree made the claim.
pub fn worker_output(context: &Context, claim: &str) -> Option<WorkerOutput> {
    let runs = Leases::of(context).runs();
    let (record, _) = runs.into_iter().find(|(it, is_live)| *is_live && it.claim == claim)?;
    let log = record.run?.log;
    // Before its process is started, a worker may have no log.
    let tail = context.plans.end_of_run_log(&log, MOST).unwrap_or_default();
    Some(WorkerOutput { by: record.by, since: record.at, tail })
}
