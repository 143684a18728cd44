//! The types that all operations share: the context, configuration, requests, errors, and the JSON shapes of answers.

pub mod address;
pub mod agent_config;
pub mod agents;
pub(crate) mod attention;
pub mod columns;
pub mod config;
pub mod context;
pub mod daemon;
pub mod error;
pub(crate) mod graph;
pub mod instructions;
pub mod precondition;
pub mod request_key;
pub mod requests;
pub mod schema;
pub mod sort;
pub(crate) mod staleness;
pub mod sync_config;
pub mod trust;
pub mod views;
pub mod workspace;
