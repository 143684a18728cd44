//! Whether a process is still there: by its number, when it began, which boot, and which namespaces.
//!
//! Read from `/proc`, which Linux alone has. Where nothing can be seen, as on other systems, in another container or
//! under `hidepid`, the answer is that: a guess would take a claim from somebody who works.
//!
//! A number means something only in one pid namespace, and the time at which a process began only in one time namespace:
//! the kernel adds the boot time offset of the reader's namespace to field 22 (`time_namespaces(7)`). A namespace is named
//! by its link in `/proc/self/ns`, which holds its inode. Namespaces have one device, which is not in the link.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::file_system::{Disk, Open};
use super::fs_ops::is;

/// One process for all time: numbers are used again, beginnings are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks after the boot (`proc_pid_stat(5)`, field 22).
    pub start: u64,
    pub boot: String,
    /// The pid namespace, as the kernel names it.
    pub space: String,
    /// The time namespace in which `start` was read; none in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

/// Where a reader of `/proc` is: numbers and times of processes mean something only there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    boot: Option<String>,
    space: Option<String>,
    clock: Option<String>,
}

/// What a kernel without time namespaces has in the place of one.
const ONLY_CLOCK: &str = "none";

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
        let Place { boot, space, clock } = Place::of(disk);
        Some(Self { pid, start, boot: boot?, space: space?, clock: Some(clock?) })
    }

    /// Returns whether processes can be seen at all.
    pub fn can_be_seen(disk: &dyn Disk) -> bool {
        let Place { boot, space, clock } = Place::of(disk);
        boot.is_some() && space.is_some() && clock.is_some() && !matches!(look(disk, 1), Look::Missing)
    }

    pub fn state(&self, disk: &dyn Disk) -> ProcessState {
        // The first process is always there: without it others are hidden too.
        let sees_others = || !matches!(look(disk, 1), Look::Missing);
        self.judge(&Place::of(disk), || look(disk, self.pid), sees_others)
    }

    /// Decides from a reader's place, from what it sees of this number, and whether it sees other processes.
    fn judge(
        &self,
        reader: &Place,
        look: impl FnOnce() -> Look,
        sees_others: impl FnOnce() -> bool,
    ) -> ProcessState {
        if reader.space.as_ref() != Some(&self.space) {
            // The boot proves nothing either: `systemd-nspawn` gives each container a boot id of its own.
            return ProcessState::Unseen;
        }
        match &reader.boot {
            Some(boot) if *boot == self.boot => {}
            Some(_) => return ProcessState::Gone,
            None => return ProcessState::Unseen,
        }
        match (&self.clock, &reader.clock) {
            (Some(then), Some(now)) if then == now => {}
            // A record of an earlier release: the same time proves that it is the process, another one proves nothing.
            (None, _) => {
                let is_same = matches!(look(), Look::Running { start } if start == self.start);
                return if is_same { ProcessState::Running } else { ProcessState::Unseen };
            }
            _ => return ProcessState::Unseen,
        }
        match look() {
            Look::Running { start } if start == self.start => ProcessState::Running,
            Look::Running { .. } | Look::Dead => ProcessState::Gone,
            Look::Missing if sees_others() => ProcessState::Gone,
            Look::Missing | Look::Hidden => ProcessState::Unseen,
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
            // The kernel has no time namespaces if it has others.
            Err(error) if is(&error, Errno::NOENT) && space.is_some() => Some(ONLY_CLOCK.to_owned()),
            Err(_) => None,
        };
        Self { boot: boot(disk), space, clock }
    }
}

#[derive(Clone, Copy, Debug)]
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
        use Look::{Dead, Hidden, Missing, Running};
        use ProcessState::{Gone, Unseen};
        let place = |boot: &str, space: &str, clock: &str| {
            let name = |it: &str| (!it.is_empty()).then(|| it.to_owned());
            Place { boot: name(boot), space: name(space), clock: name(clock) }
        };
        let here = || place("b", "p", "t");
        let (same, other) = (Running { start: 7 }, Running { start: 100_007 });
        let seen = [same, other, Dead, Missing, Hidden];
        let here_is = [ProcessState::Running, Gone, Gone, Gone, Unseen];
        let old_is = [ProcessState::Running, Unseen, Unseen, Unseen, Unseen];
        // The claim's time namespace, where the reader is, and what each of `seen` is judged as.
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
    fn nobody_is_found_under_a_number_that_no_process_has() {
        assert_eq!(Process::find(&RealDisk, u32::MAX), None);
        assert!(Process::can_be_seen(&RealDisk));
    }
}
