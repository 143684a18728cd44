//! What runs long: the watcher, and the changes that it tells.

pub mod changes;
pub mod watch;
