//! The process that watches the plans, keeps the index current and publishes every change.

pub mod api;
pub(crate) mod baseline;
pub(crate) mod claim_batcher;
pub mod context_factory;
pub(crate) mod cookies;
pub(crate) mod dependents;
pub mod diff;
pub(crate) mod dirty;
pub(crate) mod dirty_notices;
pub mod event_loop;
pub mod feed;
pub(crate) mod indexing;
pub(crate) mod listener;
pub mod malloc;
pub(crate) mod messages;
pub(crate) mod publish;
pub(crate) mod remote_claims;
pub(crate) mod runtime_files;
pub(crate) mod subscribers;
pub(crate) mod times;
pub(crate) mod turns;
pub(crate) mod watcher;
pub(crate) mod watching;
