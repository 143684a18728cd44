//! Whether a process is still there: by its number, when it began, which boot, and which number space.
//!
//! Read from `/proc`, which Linux alone has. Where nothing can be seen, as on other systems, in another container or
//! under `hidepid`, the answer is that: a guess would take a claim from somebody who works.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::calls::{Disk, Open};
use super::moves::is;

/// One process for all time: numbers are used again, beginnings are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks after the boot (`proc_pid_stat(5)`, field 22).
    pub start: u64,
    pub boot: String,
    /// The number space, as the kernel names it.
    pub space: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    Running,
    Gone,
    /// It cannot be seen from here.
    Unseen,
}

impl Process {
    /// Finds a running process; none if there is no such process, or nothing can be seen.
    pub fn find(disk: &dyn Disk, pid: u32) -> Option<Self> {
        let Look::Running { start } = look(disk, pid) else { return None };
        Some(Self { pid, start, boot: boot(disk)?, space: space(disk)? })
    }

    /// Returns whether processes can be seen at all.
    pub fn can_be_seen(disk: &dyn Disk) -> bool {
        boot(disk).is_some() && space(disk).is_some() && !matches!(look(disk, 1), Look::Missing)
    }

    pub fn state(&self, disk: &dyn Disk) -> ProcessState {
        match (boot(disk), space(disk)) {
            (Some(boot), _) if boot != self.boot => return ProcessState::Gone,
            (Some(_), Some(space)) if space == self.space => {}
            _ => return ProcessState::Unseen,
        }
        match look(disk, self.pid) {
            Look::Running { start } if start == self.start => ProcessState::Running,
            Look::Running { .. } | Look::Dead => ProcessState::Gone,
            // The first process is always there: without it others are hidden too.
            Look::Missing if !matches!(look(disk, 1), Look::Missing) => ProcessState::Gone,
            Look::Missing | Look::Hidden => ProcessState::Unseen,
        }
    }
}

enum Look {
    Running {
        start: u64,
    },
    /// Ended, and its parent has not asked how.
    Dead,
    Missing,
    Hidden,
}

fn look(disk: &dyn Disk, pid: u32) -> Look {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let bytes = match disk.open(&path, Open::Read).and_then(|file| file.read(4096, 512)) {
        Ok(bytes) => bytes,
        Err(error) if is(&error, Errno::NOENT) || is(&error, Errno::SRCH) => return Look::Missing,
        Err(_) => return Look::Hidden,
    };
    // The name stands in brackets and may hold anything, brackets and blanks too.
    let text = String::from_utf8_lossy(&bytes);
    let mut fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
    let state = fields.next();
    let start = fields.nth(18).and_then(|it| it.parse().ok());
    match (state, start) {
        (Some("Z" | "X" | "x"), _) => Look::Dead,
        (Some(_), Some(start)) => Look::Running { start },
        _ => Look::Hidden,
    }
}

/// Which boot of the machine this is; none where the system does not tell.
pub fn boot(disk: &dyn Disk) -> Option<String> {
    let file = disk.open(Path::new("/proc/sys/kernel/random/boot_id"), Open::Read).ok()?;
    let text = String::from_utf8(file.read(64, 37).ok()?).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn space(disk: &dyn Disk) -> Option<String> {
    let name = disk.read_link(Path::new("/proc/self/ns/pid")).ok()?;
    name.into_os_string().into_string().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let me = Process::find(&RealDisk, std::process::id()).unwrap();
        assert_eq!(me.state(&RealDisk), ProcessState::Running);
        let before = Process { start: me.start.wrapping_sub(1), ..me.clone() };
        assert_eq!(before.state(&RealDisk), ProcessState::Gone);
        let last_boot = Process { boot: "0".to_owned(), ..me.clone() };
        assert_eq!(last_boot.state(&RealDisk), ProcessState::Gone);
        let elsewhere = Process { space: "pid:[1]".to_owned(), ..me };
        assert_eq!(elsewhere.state(&RealDisk), ProcessState::Unseen);
    }

    #[test]
    fn nobody_is_found_under_a_number_that_no_process_has() {
        assert_eq!(Process::find(&RealDisk, u32::MAX), None);
        assert!(Process::can_be_seen(&RealDisk));
    }
}
