//! What a process that stays tells the system's allocator: to give back what is free.
//!
//! glibc gives each thread an arena of its own, up to eight for each processor. Of all but the first it keeps what is
//! free at their ends, `malloc_trim` included, and it keeps more the larger the pieces were that somebody once freed: an
//! answer about ten thousand plans leaves some 60 MiB in each arena that worked on it. That is right for a command,
//! which ends. In the first arena what is free between pieces in use is given back when that is asked for. It takes
//! `unsafe`, as `disk::lease` does, because no safe function does this.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long after an answer: what it was made from is let go in other threads.
const MOMENT: Duration = Duration::from_secs(1);

/// Whether somebody has asked who is still to be served.
static IS_DUE: AtomicBool = AtomicBool::new(false);

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use libc::{M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, c_int};

    /// One arena, whose end is given back. Threads keep small pieces at hand, so they seldom meet at it.
    const ARENAS: c_int = 1;

    /// So many bytes may stay free at its end.
    const KEPT: c_int = 4 << 20;

    /// A piece of so many bytes is a mapping of its own, and is given back when it is freed. To say so also keeps glibc
    /// from raising both limits with each large piece that is freed.
    const LARGE: c_int = 1 << 20;

    #[expect(unsafe_code, reason = "rustix and std have no function for it")]
    pub(crate) fn give_back() {
        for (what, value) in [(M_ARENA_MAX, ARENAS), (M_MMAP_THRESHOLD, LARGE), (M_TRIM_THRESHOLD, KEPT)] {
            // SAFETY: it takes two numbers, and refuses those that it does not know.
            unsafe { libc::mallopt(what, value) };
        }
    }

    #[expect(unsafe_code, reason = "rustix and std have no function for it")]
    pub(crate) fn trim() {
        // SAFETY: it takes a number, and touches nothing that is in use.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Makes this process give memory back when it is free. To be called by whoever stays, before there are other threads.
///
/// Where the allocator is not glibc's nothing is done: others give back by themselves.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::give_back();
}

/// Gives back in a moment what is free then, once for all who ask until then. To be called where tokio runs, by who may
/// have worked on much.
pub(crate) fn trim_soon() {
    if !IS_DUE.swap(true, Ordering::Relaxed) {
        tokio::spawn(async {
            tokio::time::sleep(MOMENT).await;
            IS_DUE.store(false, Ordering::Relaxed);
            tokio::task::spawn_blocking(trim).await.ok();
        });
    }
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::trim();
}
