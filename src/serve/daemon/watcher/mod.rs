//! Events of the file system.

pub(crate) mod event;
pub(crate) mod system;
