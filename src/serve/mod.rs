//! What runs long: the watcher, the changes that it tells, and the socket where commands ask it.

pub mod changes;
mod clerk;
pub mod client;
pub mod contexts;
mod daemon;
mod door;
#[cfg(target_os = "linux")]
mod eyes;
#[cfg(any(test, not(target_os = "linux")))]
mod eyes_elsewhere;
pub mod feed;
mod hints;
pub mod http;
mod known;
mod look;
pub mod mcp;
pub mod memory;
mod place;
pub mod watch;
mod wire;

#[cfg(not(target_os = "linux"))]
use eyes_elsewhere as eyes;
pub use place::{Homes, Untrusted, untrusted};
pub use wire::Status;
