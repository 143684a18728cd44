//! The steps that a claim may choose from.

pub(crate) mod candidates;
pub(crate) mod daemon_queue;

/// A claim with a lease of so many seconds outlasts a cached queue and every wait for a lock: what a claim beside it
/// decides before it has the lock still holds when it has it.
pub(crate) const LONG_LEASE: i64 = 60;
