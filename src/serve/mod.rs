//! What runs long: the watcher.
