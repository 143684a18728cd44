//! Makes the allocator of a long-running process return free memory to the system.
//!
//! glibc gives each new thread an arena of its own, until there are eight arenas per processor. In the first arena,
//! `malloc_trim` returns free memory both between used blocks and at the arena's end. In all arenas but the first, glibc
//! retains free memory at the end, and even `malloc_trim` does not return it. The amount grows with the size of the freed
//! blocks: an answer about ten thousand plans leaves about 60 MiB in each arena that it used. A short command can ignore
//! this, but a daemon cannot. Therefore a daemon uses only one arena. The calls of `mallopt` and `malloc_trim` need `unsafe`
//! because no safe function exists.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::serve::daemon::times::TRIM_DELAY;

/// Whether a trim is scheduled.
static IS_DUE: AtomicBool = AtomicBool::new(false);

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use libc::{M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, c_int};

    /// A single arena, whose end is trimmed. Threads cache small blocks, so they rarely contend for it.
    const ARENAS: c_int = 1;

    /// The number of free bytes that may remain at the end of the arena.
    const KEPT: c_int = 4 << 20;

    /// A block of at least this many bytes gets its own mapping, which is unmapped when the block is freed. If a
    /// program does not set this limit, glibc raises the limit and the trim threshold whenever a large block is freed.
    const LARGE: c_int = 1 << 20;

    #[expect(unsafe_code, reason = "rustix and std have no function for it")]
    pub(crate) fn give_back() {
        for (what, value) in [(M_ARENA_MAX, ARENAS), (M_MMAP_THRESHOLD, LARGE), (M_TRIM_THRESHOLD, KEPT)] {
            // SAFETY: `mallopt` takes two numbers and refuses unknown ones.
            unsafe { libc::mallopt(what, value) };
        }
    }

    #[expect(unsafe_code, reason = "rustix and std have no function for it")]
    pub(crate) fn trim() {
        // SAFETY: `malloc_trim` takes a number and does not touch used memory.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Makes this process return free memory. Long-running processes call this before they start threads, because the call does
/// not remove the arenas of existing threads. Only the board and the language server call it later, because it would slow
/// down their first load.
///
/// Without glibc, this does nothing: other allocators return memory on their own.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::give_back();
}

/// Schedules a trim after [`TRIM_DELAY`]; further calls before the trim do nothing. Call it in a tokio runtime after
/// work that may have used much memory.
pub(crate) fn trim_soon() {
    if !IS_DUE.swap(true, Ordering::Relaxed) {
        tokio::spawn(async {
            tokio::time::sleep(TRIM_DELAY).await;
            IS_DUE.store(false, Ordering::Relaxed);
            tokio::task::spawn_blocking(trim).await.ok();
        });
    }
}

/// Returns free memory to the system now.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::trim();
}
