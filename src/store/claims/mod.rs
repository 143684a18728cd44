//! The steps that a claim may choose from.

pub(crate) mod candidates;
pub(crate) mod daemon_queue;

/// A lease of at least this many seconds outlasts a cached queue and any wait for a lock. A decision made before the
/// lock is taken is then still valid under it.
pub(crate) const LONG_LEASE: i64 = 60;
