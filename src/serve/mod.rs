//! What runs long: the watcher, the changes that it tells, and the socket where commands ask it.

pub mod changes;
pub mod client;
mod daemon;
mod door;
#[cfg_attr(not(target_os = "linux"), path = "eyes_elsewhere.rs")]
mod eyes;
mod known;
mod place;
pub mod watch;
mod wire;

pub use place::Homes;
pub use wire::Status;
