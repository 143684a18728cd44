//! Communication between commands and the daemon through a local socket.

pub mod client;
pub mod event;
pub(crate) mod protocol;
pub(crate) mod socket_path;
