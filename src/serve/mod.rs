//! Long-running parts: the daemon and its socket, HTTP, MCP, the pages for browsers, and the language server.

pub mod daemon;
mod hints;
pub mod http;
pub mod ipc;
pub mod lsp;
pub mod mcp;
pub mod web;

pub use daemon::malloc;
pub use ipc::protocol::{Opener, Status};
pub use ipc::socket_path::{SocketDirs, Untrusted, untrusted};
