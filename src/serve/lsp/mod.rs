//! The language server, for editors that support the Language Server Protocol.
//!
//! It reads the texts of open documents and, for other files, the files themselves. It uses the same parsers and rules as
//! the commands. It changes plan files only when the user runs a command. The only process that it starts is `git`.
//!
//! - `frames`, `queues`: reading messages from the client and writing messages to it, in a thread each
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
