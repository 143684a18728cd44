//! Whether the index speaks of the files as they are: stamps decide only what need not be read.
//!
//! The method is git's for its own index ("racy git", Documentation/technical/racy-git): a file whose stamp is as young
//! as the moment it was read may change again without its stamp moving, so its content is looked at once more.

use std::collections::HashMap;

/// What a file system says of a file without opening it, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub len: u64,
    pub mtime_ns: i64,
    /// 0 where the system has none.
    pub ctime_ns: i64,
    pub ino: u64,
    pub dev: u64,
}

/// A file that the plans in the index were read from.
///
/// Whatever else decides how files are read, as the configuration with the project's own status words, is a row too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// Relative to the plans directory, with `/`.
    pub path: String,
    pub len: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub ino: u64,
    pub dev: u64,
    /// Content hash; empty for a file that could not be read, which is then always in doubt.
    pub hash: String,
    /// The stamp is too young to be trusted.
    pub racy: bool,
}

/// How the rows stand to the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// No file has changed since it was read.
    Same,
    /// A file came, went, or has another length.
    Differs,
    /// These may have changed: if all their contents have the hashes of their rows, nothing has.
    Doubt(Vec<String>),
}

/// The coarsest stamps in use, those of FAT, are 2 seconds apart.
const COARSEST_NS: i64 = 2_000_000_000;

impl Stamp {
    /// Takes times of any size; those that do not fit lie in the future or the far past, and are never trusted.
    pub fn new(len: u64, mtime_ns: i128, ctime_ns: i128, ino: u64, dev: u64) -> Self {
        Self { len, mtime_ns: saturate(mtime_ns), ctime_ns: saturate(ctime_ns), ino, dev }
    }

    /// Returns whether a file with this stamp, read at this moment, may change without the stamp moving.
    ///
    /// `read_at_ns` is the file system's own clock, as the mtime of a file just written there.
    pub fn is_racy(&self, read_at_ns: i64) -> bool {
        let trusted_before = read_at_ns.saturating_sub(COARSEST_NS);
        let is_young = |ns: i64| ns >= trusted_before || ns == i64::MIN;
        is_young(self.mtime_ns) || is_young(self.ctime_ns)
    }
}

impl FileRow {
    pub fn new(path: impl Into<String>, stamp: Stamp, hash: impl Into<String>, read_at_ns: i64) -> Self {
        let Stamp { len, mtime_ns, ctime_ns, ino, dev } = stamp;
        let racy = stamp.is_racy(read_at_ns);
        Self { path: path.into(), len, mtime_ns, ctime_ns, ino, dev, hash: hash.into(), racy }
    }

    pub fn stamp(&self) -> Stamp {
        let Self { len, mtime_ns, ctime_ns, ino, dev, .. } = *self;
        Stamp { len, mtime_ns, ctime_ns, ino, dev }
    }
}

/// Compares the rows of the index with the files that a walk found, both in any order.
///
/// A file that a walk finds but nobody reads must not be among them. Paths in doubt are in the order of `rows`.
pub fn compare(rows: &[FileRow], found: &[(String, Stamp)]) -> Freshness {
    let found: HashMap<&str, &Stamp> = found.iter().map(|(path, stamp)| (path.as_str(), stamp)).collect();
    if found.len() != rows.len() {
        return Freshness::Differs;
    }
    let mut doubt = Vec::new();
    for row in rows {
        let Some(stamp) = found.get(row.path.as_str()) else { return Freshness::Differs };
        let is_unread = row.hash.is_empty();
        if stamp.len != row.len && !is_unread {
            return Freshness::Differs;
        }
        if **stamp != row.stamp() || row.racy || is_unread {
            doubt.push(row.path.clone());
        }
    }
    if doubt.is_empty() { Freshness::Same } else { Freshness::Doubt(doubt) }
}

fn saturate(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const NOW: i64 = 1_000 * S;

    fn stamp(mtime_s: i64) -> Stamp {
        Stamp { len: 10, mtime_ns: mtime_s * S, ctime_ns: mtime_s * S, ino: 7, dev: 1 }
    }

    fn row(path: &str, mtime_s: i64) -> FileRow {
        FileRow::new(path, stamp(mtime_s), "h", NOW)
    }

    #[track_caller]
    fn check(rows: &[FileRow], found: &[(&str, Stamp)], expected: &Freshness) {
        let found: Vec<_> = found.iter().map(|(path, stamp)| ((*path).to_owned(), *stamp)).collect();
        assert_eq!(&compare(rows, &found), expected);
    }

    fn doubt(paths: &[&str]) -> Freshness {
        Freshness::Doubt(paths.iter().map(|it| (*it).to_owned()).collect())
    }

    #[test]
    fn old_equal_stamps_are_the_same() {
        check(&[], &[], &Freshness::Same);
        check(&[row("a", 5), row("b", 6)], &[("b", stamp(6)), ("a", stamp(5))], &Freshness::Same);
    }

    #[test]
    fn files_that_come_go_or_grow_differ() {
        check(&[row("a", 5)], &[], &Freshness::Differs);
        check(&[], &[("a", stamp(5))], &Freshness::Differs);
        check(&[row("a", 5)], &[("b", stamp(5))], &Freshness::Differs);
        check(&[row("a", 5)], &[("a", Stamp { len: 11, ..stamp(5) })], &Freshness::Differs);
    }

    #[test]
    fn any_other_part_of_a_stamp_is_doubt() {
        for other in [
            Stamp { mtime_ns: 4 * S, ..stamp(5) },
            Stamp { ctime_ns: 6 * S, ..stamp(5) },
            Stamp { ino: 8, ..stamp(5) },
            Stamp { dev: 2, ..stamp(5) },
        ] {
            check(&[row("a", 5), row("b", 5)], &[("a", stamp(5)), ("b", other)], &doubt(&["b"]));
        }
    }

    #[test]
    fn stamps_as_young_as_the_reading_or_of_the_future_are_doubt() {
        for (mtime_ns, racy) in [
            (NOW - 2 * S - 1, false),
            (NOW - 2 * S, true),
            (NOW, true),
            (NOW + 3_600 * S, true),
            (i64::MAX, true),
            (i64::MIN, true),
        ] {
            let (by_mtime, by_ctime) =
                (Stamp { mtime_ns, ..stamp(5) }, Stamp { ctime_ns: mtime_ns, ..stamp(5) });
            for stamp in [by_mtime, by_ctime] {
                let row = FileRow::new("a", stamp, "h", NOW);
                assert_eq!(row.racy, racy, "{mtime_ns}");
                check(&[row], &[("a", stamp)], &if racy { doubt(&["a"]) } else { Freshness::Same });
            }
        }
    }

    #[test]
    fn a_file_that_could_not_be_read_is_doubt_whatever_its_length() {
        let unread = FileRow { hash: String::new(), ..row("a", 5) };
        check(std::slice::from_ref(&unread), &[("a", stamp(5))], &doubt(&["a"]));
        check(&[unread], &[("a", Stamp { len: 11, ..stamp(5) })], &doubt(&["a"]));
    }

    #[test]
    fn times_beyond_the_range_are_never_trusted() {
        let far = Stamp::new(10, i128::MIN, 5, 7, 1);
        assert!(far.is_racy(NOW) && Stamp::new(10, 5, i128::MAX, 7, 1).is_racy(NOW));
    }
}
