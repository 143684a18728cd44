//! Finds mount points below a plans directory.
//!
//! Two changes cause no event in the directory that contains a mount point: a mount on that point, and a save of the
//! mounted file through another path. The kernel's mount table is read again only after it has changed.

use std::fs::File;
use std::path::Path;

use super::names::is_runtime;

/// The mount table of this process.
const TABLE: &str = "/proc/self/mountinfo";

#[derive(Debug, Default)]
pub struct Mounts {
    table: Option<File>,
    below: Vec<String>,
}

impl Mounts {
    /// Mount points below the plans directory, relative to it. Bytes that are not UTF-8 are shown as replacement
    /// characters.
    pub fn below(&self) -> &[String] {
        &self.below
    }

    /// Checks for mounts and unmounts; returns whether [`Self::below`] changed.
    ///
    /// Afterwards the list includes all mounts made before the call. If the system has no mount table, the list is empty.
    pub fn look(&mut self, root: &Path) -> bool {
        if self.table.as_ref().is_some_and(|it| !has_changed(it)) {
            return false;
        }
        let below = read(&mut self.table).map(|it| below(&it, root)).unwrap_or_default();
        let is_other = below != self.below;
        self.below = below;
        is_other
    }
}

#[cfg(target_os = "linux")]
fn has_changed(table: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let changed = PollFlags::PRI | PollFlags::ERR;
    let mut fds = [PollFd::new(table, changed)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // After an error the table is read.
    poll(&mut fds, Some(&now)).is_err() || fds[0].revents().intersects(changed)
}

#[cfg(not(target_os = "linux"))]
fn has_changed(_table: &File) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn read(table: &mut Option<File>) -> Option<Vec<u8>> {
    use std::io::{Read, Seek};
    let file = match table {
        Some(file) => file,
        None => table.insert(File::open(TABLE).ok()?),
    };
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(not(target_os = "linux"))]
fn read(_table: &mut Option<File>) -> Option<Vec<u8>> {
    None
}

/// The mount points in `table` that are below `root`, except those in planwatch's own directories.
fn below(table: &[u8], root: &Path) -> Vec<String> {
    let point = |line: &[u8]| {
        let escaped = line.split(|it| *it == b' ').nth(4)?;
        let point = String::from_utf8_lossy(&unescaped(escaped)).into_owned();
        let relative = Path::new(&point).strip_prefix(root).ok()?;
        let first = relative.iter().next()?;
        (!is_runtime(first)).then(|| relative.to_string_lossy().into_owned())
    };
    let mut below: Vec<_> = table.split(|it| *it == b'\n').filter_map(point).collect();
    below.sort_unstable();
    below.dedup();
    below
}

/// Decodes blanks, line ends and backslashes, which the table escapes as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| byte == b'\\').and_then(|it| std::str::from_utf8(it).ok());
        let escaped = digits.and_then(|it| u8::from_str_radix(it, 8).ok());
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_below_the_plans_are_found() {
        let table = b"22 1 0:21 / / rw - ext4 /dev/vda rw\n\
            23 22 0:21 /x /home/my\\040plans rw - ext4 /dev/vda rw\n\
            24 22 0:21 /x /home/my\\040plans/a/step-1.md rw - ext4 /dev/vda rw\n\
            25 22 0:21 /x /home/my\\040plans/b rw - ext4 /dev/vda rw\n\
            26 22 0:21 /x /home/my\\040plans/.planwatch rw - tmpfs tmpfs rw\n\
            27 22 0:21 /x /home/my\\040plans-2/b rw - ext4 /dev/vda rw\n\
            broken\n";
        assert_eq!(below(table, Path::new("/home/my plans")), ["a/step-1.md", "b"]);
        assert_eq!(below(table, Path::new("/home/my plans/b")), [""; 0]);
    }

    #[test]
    fn the_table_of_this_machine_is_read_once() {
        let mut mounts = Mounts::default();
        let is_other = mounts.look(Path::new("/"));
        assert_eq!(is_other, !mounts.below().is_empty());
        assert!(!mounts.look(Path::new("/")), "nothing was mounted");
    }
}
