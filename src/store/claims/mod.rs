//! The steps that a claim may choose from.

pub(crate) mod candidates;
pub(crate) mod daemon_queue;

/// A lease of at least this many seconds outlasts a cached queue and any wait for a lock. So a decision that was made
/// before the lock was taken is still valid under the lock.
pub(crate) const LONG_LEASE: i64 = 60;
