//! Events of the file system, from inotify on Linux and from `notify` elsewhere.

pub(crate) mod event;
#[cfg(target_os = "linux")]
pub(crate) mod inotify;
#[cfg(any(test, not(target_os = "linux")))]
pub(crate) mod portable;

#[cfg(target_os = "linux")]
pub(super) use inotify as system;
#[cfg(not(target_os = "linux"))]
pub(super) use portable as system;
