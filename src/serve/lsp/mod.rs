//! The language server: plans in every editor that speaks the Language Server Protocol.
//!
//! It answers from the texts as they are typed, and from the files where no text is open, with the same readers and rules
//! as every command. It changes the plans only when a person runs a command, and starts no process but `git`.
//!
//! - `frames`, `queues`: bytes from and to the client, with a thread for each direction
//! - `server`, `requests`: the main loop, and the dispatch of requests
//! - `documents`, `positions`, `uri`: the open texts, and positions in them
//! - `tree`, `catalog`: the plans with the open texts in place of their files
//! - `anatomy`, `references`: the parts of a text, and its references
//! - `protocol`, `client`: the parameters of messages, and what the client supports
//! - `edits`, `keys`: the changes of a dry run as edits, and the meanings of the keys
//! - the rest: one module for each capability, and `capabilities`, which announces them to the client

mod actions;
mod anatomy;
mod capabilities;
mod catalog;
mod client;
mod commands;
mod completion;
mod diagnostics;
mod documents;
mod edits;
mod frames;
mod hints;
mod hover;
mod keys;
mod navigation;
mod positions;
mod protocol;
mod publish;
mod queues;
mod references;
mod rename;
mod requests;
mod server;
mod symbols;
mod tree;
mod uri;

pub use server::serve;
pub use tree::ContextsAt;

#[cfg(test)]
mod tests;
