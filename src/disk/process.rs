//! Checks whether a process still exists. A process is identified by its number, start time, boot and namespaces.
//!
//! The information comes from `/proc`, which only Linux has. On other systems, in another container or under
//! `hidepid`, processes cannot be seen. The result is then [`ProcessState::Unseen`], because a wrong guess could take a
//! claim from a live worker.
//!
//! A number is valid in one pid namespace, and a start time in one time namespace: the kernel adds the boot time offset of
//! the reader's namespace to field 22 of `/proc/PID/stat` (`time_namespaces(7)`). A namespace is identified by the target of
//! its link in `/proc/self/ns`, which contains the namespace's inode. The inode's device number is not needed, because it is
//! the same for all namespaces.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::file_system::{Disk, Open};
use super::fs_ops::is;

/// The identity of a process: numbers are reused, start times are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks after the boot (`proc_pid_stat(5)`, field 22).
    pub start: u64,
    pub boot: String,
    /// The pid namespace, as the kernel names it.
    pub space: String,
    /// The time namespace in which `start` was read; `None` in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

/// The boot and the namespaces of the process that reads `/proc`. Numbers and start times of processes are valid only
/// in these.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    boot: Option<String>,
    space: Option<String>,
    clock: Option<String>,
}

/// The value of [`Process::clock`] on kernels without time namespaces.
const ONLY_CLOCK: &str = "none";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    Running,
    Gone,
    /// It cannot be seen from here.
    Unseen,
}

impl Process {
    /// Finds a running process; `None` if it does not run or cannot be seen.
    pub fn find(disk: &dyn Disk, pid: u32) -> Option<Self> {
        let Sighting::Running { start } = sight(disk, pid) else { return None };
        let Place { boot, space, clock } = Place::of(disk);
        Some(Self { pid, start, boot: boot?, space: space?, clock: Some(clock?) })
    }

    pub fn can_be_seen(disk: &dyn Disk) -> bool {
        let Place { boot, space, clock } = Place::of(disk);
        boot.is_some() && space.is_some() && clock.is_some() && !matches!(sight(disk, 1), Sighting::Missing)
    }

    pub fn state(&self, disk: &dyn Disk) -> ProcessState {
        // Process 1 always exists. If it cannot be seen, other processes are hidden, too.
        let sees_others = || !matches!(sight(disk, 1), Sighting::Missing);
        self.judge(&Place::of(disk), || sight(disk, self.pid), sees_others)
    }

    /// Decides the state. `sight` looks up the process's number in the reader's `/proc`, and `sees_others` checks whether
    /// the reader sees other processes.
    fn judge(
        &self,
        reader: &Place,
        sight: impl FnOnce() -> Sighting,
        sees_others: impl FnOnce() -> bool,
    ) -> ProcessState {
        if reader.space.as_ref() != Some(&self.space) {
            // Even a different boot id would prove nothing: `systemd-nspawn` gives each container its own.
            return ProcessState::Unseen;
        }
        match &reader.boot {
            Some(boot) if *boot == self.boot => {}
            Some(_) => return ProcessState::Gone,
            None => return ProcessState::Unseen,
        }
        match (&self.clock, &reader.clock) {
            (Some(then), Some(now)) if then == now => {}
            // In a record of an earlier release, an equal start time proves that this is the same process. A different
            // start time proves nothing.
            (None, _) => {
                let is_same = matches!(sight(), Sighting::Running { start } if start == self.start);
                return if is_same { ProcessState::Running } else { ProcessState::Unseen };
            }
            _ => return ProcessState::Unseen,
        }
        match sight() {
            Sighting::Running { start } if start == self.start => ProcessState::Running,
            Sighting::Running { .. } | Sighting::Dead => ProcessState::Gone,
            Sighting::Missing if sees_others() => ProcessState::Gone,
            Sighting::Missing | Sighting::Hidden => ProcessState::Unseen,
        }
    }
}

impl Place {
    fn of(disk: &dyn Disk) -> Self {
        let link = |name: &str| disk.read_link(&Path::new("/proc/self/ns").join(name));
        let text = |path: PathBuf| path.into_os_string().into_string().ok();
        let space = link("pid").ok().and_then(text);
        let clock = match link("time") {
            Ok(path) => text(path),
            // If the kernel has pid namespaces but not this link, it has no time namespaces.
            Err(error) if is(&error, Errno::NOENT) && space.is_some() => Some(ONLY_CLOCK.to_owned()),
            Err(_) => None,
        };
        Self { boot: boot(disk), space, clock }
    }
}

#[derive(Clone, Copy, Debug)]
enum Sighting {
    Running {
        start: u64,
    },
    /// Ended, but not yet reaped by its parent.
    Dead,
    Missing,
    Hidden,
}

fn sight(disk: &dyn Disk, pid: u32) -> Sighting {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let bytes = match disk.open(&path, Open::Read).and_then(|file| file.read(4096, 512)) {
        Ok(bytes) => bytes,
        Err(error) if is(&error, Errno::NOENT) || is(&error, Errno::SRCH) => return Sighting::Missing,
        Err(_) => return Sighting::Hidden,
    };
    // The name of the process is in parentheses and may contain anything, including parentheses and blanks.
    let text = String::from_utf8_lossy(&bytes);
    let mut fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
    let state = fields.next();
    let start = fields.nth(18).and_then(|it| it.parse().ok());
    match (state, start) {
        (Some("Z" | "X" | "x"), _) => Sighting::Dead,
        (Some(_), Some(start)) => Sighting::Running { start },
        _ => Sighting::Hidden,
    }
}

/// The name of this machine in its network.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The time since the boot, including the time during which the system was suspended. Unlike the time of day, it cannot be
/// set.
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

/// The id of the machine's current boot; `None` if the system does not provide one.
pub fn boot(disk: &dyn Disk) -> Option<String> {
    let file = disk.open(Path::new("/proc/sys/kernel/random/boot_id"), Open::Read).ok()?;
    let text = String::from_utf8(file.read(64, 37).ok()?).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
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
        let elsewhere = Process { space: "pid:[1]".to_owned(), ..me.clone() };
        assert_eq!(elsewhere.state(&RealDisk), ProcessState::Unseen);
        let shifted = Process { clock: Some("time:[1]".to_owned()), start: me.start + 1, ..me };
        assert_eq!(shifted.state(&RealDisk), ProcessState::Unseen);
    }

    #[test]
    fn a_start_is_compared_in_one_time_namespace_and_a_number_in_one_pid_namespace() {
        use ProcessState::{Gone, Unseen};
        use Sighting::{Dead, Hidden, Missing, Running};
        let place = |boot: &str, space: &str, clock: &str| {
            let name = |it: &str| (!it.is_empty()).then(|| it.to_owned());
            Place { boot: name(boot), space: name(space), clock: name(clock) }
        };
        let here = || place("b", "p", "t");
        let (same, other) = (Running { start: 7 }, Running { start: 100_007 });
        let seen = [same, other, Dead, Missing, Hidden];
        let here_is = [ProcessState::Running, Gone, Gone, Gone, Unseen];
        let old_is = [ProcessState::Running, Unseen, Unseen, Unseen, Unseen];
        // The time namespace in the record, the reader's boot and namespaces, and the result for each of `seen`.
        let table = [
            (Some("t"), here(), here_is),
            (Some("t"), place("b", "p", "u"), [Unseen; 5]),
            (Some("t"), place("b", "p", ""), [Unseen; 5]),
            (Some(ONLY_CLOCK), here(), [Unseen; 5]),
            (Some(ONLY_CLOCK), place("b", "p", ONLY_CLOCK), here_is),
            (None, here(), old_is),
            (None, place("b", "p", ""), old_is),
            (Some("t"), place("b", "q", "t"), [Unseen; 5]),
            (Some("t"), place("b", "", "t"), [Unseen; 5]),
            (None, place("b", "q", "t"), [Unseen; 5]),
            (Some("t"), place("", "p", "t"), [Unseen; 5]),
            (Some("t"), place("c", "q", "t"), [Unseen; 5]),
            (Some("t"), place("c", "p", "u"), [Gone; 5]),
        ];
        for (clock, reader, expected) in table {
            let clock = clock.map(str::to_owned);
            let process = Process { pid: 5, start: 7, boot: "b".to_owned(), space: "p".to_owned(), clock };
            let judged = seen.map(|it| process.judge(&reader, || it, || true));
            assert_eq!(judged, expected, "{process:?} seen from {reader:?}");
        }
        let process =
            Process { pid: 5, start: 7, boot: "b".into(), space: "p".into(), clock: Some("t".into()) };
        assert_eq!(process.judge(&here(), || Missing, || false), Unseen);
    }

    #[test]
    fn a_record_of_an_earlier_release_is_read() {
        let old = r#"{"pid":5,"start":7,"boot":"b","space":"pid:[1]"}"#;
        let read: Process = serde_json::from_str(old).unwrap();
        assert_eq!(read.clock, None);
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
        let me = Process::find(&RealDisk, std::process::id()).unwrap();
        let again = serde_json::from_str::<Process>(&serde_json::to_string(&me).unwrap()).unwrap();
        assert_eq!(again, me);
    }

    #[test]
    fn an_unused_number_finds_no_process() {
        assert_eq!(Process::find(&RealDisk, u32::MAX), None);
        assert!(Process::can_be_seen(&RealDisk));
    }
}
