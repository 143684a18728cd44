//! Leases on open files (`fcntl(2)`, `F_SETLEASE`): the kernel delays other programs that open the file.
//!
//! Such a program waits until the lease ends, by default at most 45 seconds. The kernel also sends a signal to the
//! holder of the lease; this signal is ignored, because every lease here is short.

use std::fs::File;

use super::file_system::{Against, Lease};

#[cfg(target_os = "linux")]
pub(super) use linux::{release, take};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsRawFd;

    use libc::{EAGAIN, F_RDLCK, F_SETLEASE, F_UNLCK, F_WRLCK, SIGURG, c_int};

    use super::{Against, File, Lease};

    /// Sets the signal for the holder of the lease. The `libc` crate lacks this constant for most targets.
    const F_SETSIG: c_int = 10;

    pub(in crate::disk) fn take(file: &File, against: Against) -> Lease {
        let kind = match against {
            Against::Writers => F_RDLCK,
            Against::Everyone => F_WRLCK,
        };
        // The signal is set before the lease is taken, because the default signal, SIGIO, would end the process. SIGURG
        // is ignored by default.
        let taken = control(file, F_SETSIG, SIGURG).and_then(|()| control(file, F_SETLEASE, kind));
        match taken {
            Ok(()) => Lease::Taken,
            Err(error) if error.raw_os_error() == Some(EAGAIN) => Lease::Busy,
            Err(_) => Lease::Unsupported,
        }
    }

    pub(in crate::disk) fn release(file: &File) {
        // If this fails, the lease ends when the file is closed.
        control(file, F_SETLEASE, F_UNLCK).ok();
    }

    #[expect(unsafe_code, reason = "rustix and std have no function for leases")]
    fn control(file: &File, command: c_int, argument: c_int) -> io::Result<()> {
        // SAFETY: both commands take a number and no pointer, and the descriptor stays open while
        // `file` is borrowed.
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn take(_file: &File, _against: Against) -> Lease {
    Lease::Unsupported
}

#[cfg(not(target_os = "linux"))]
pub(super) fn release(_file: &File) {}
