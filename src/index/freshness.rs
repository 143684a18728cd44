//! Whether the index matches the files. Stamps only decide which files need not be read.
//!
//! The method is that of git for its own index ("racy git", Documentation/technical/racy-git). A file that was modified
//! just before it was read may change again without a new stamp, so its content is compared once more.

use borsh::{BorshDeserialize, BorshSerialize};

/// The stat of a file, with times in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Stamp {
    pub len: u64,
    pub mtime_ns: i64,
    /// 0 if the system has none.
    pub ctime_ns: i64,
    pub ino: u64,
    pub dev: u64,
}

/// A file that a plan in the index was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// Relative to the plan's directory, with `/`.
    pub name: String,
    pub stamp: Stamp,
    /// The hash of the content. It is empty for a file that cannot be read or has just disappeared. Such a file is always in
    /// doubt.
    pub hash: String,
    /// Whether the stamp is too young to be trusted.
    pub racy: bool,
    /// The file's length before it lost more than half of its bytes, if that happened a moment ago; otherwise 0.
    pub len_before: u64,
}

/// The coarsest stamps in use, those of FAT, are 2 seconds apart.
const COARSEST_NS: i64 = 2_000_000_000;

impl Stamp {
    /// Times that do not fit into 64 bits become the smallest or largest value, and are never trusted.
    pub fn new(len: u64, mtime_ns: i128, ctime_ns: i128, ino: u64, dev: u64) -> Self {
        Self { len, mtime_ns: saturate(mtime_ns), ctime_ns: saturate(ctime_ns), ino, dev }
    }

    /// Returns whether a file that had this stamp when it was read at `read_at_ns` may change without a new stamp.
    ///
    /// `read_at_ns` is a time of the file system's own clock, such as the mtime of a file that was just written there.
    pub fn is_racy(&self, read_at_ns: i64) -> bool {
        let trusted_before = read_at_ns.saturating_sub(COARSEST_NS);
        let is_young = |ns: i64| ns >= trusted_before || ns == i64::MIN;
        is_young(self.mtime_ns) || is_young(self.ctime_ns)
    }
}

impl FileRow {
    pub fn new(name: impl Into<String>, stamp: Stamp, hash: impl Into<String>, read_at_ns: i64) -> Self {
        Self { name: name.into(), stamp, hash: hash.into(), racy: stamp.is_racy(read_at_ns), len_before: 0 }
    }

    /// Returns this row with `len_before`, the file's length before a save that is still in progress. It is computed from an
    /// earlier row of the same file.
    #[must_use]
    pub fn after(self, old: &Self) -> Self {
        let known = if old.racy { old.stamp.len.max(old.len_before) } else { old.stamp.len };
        let is_cut = self.racy && self.stamp.len < known.div_ceil(2);
        Self { len_before: if is_cut { known } else { 0 }, ..self }
    }

    /// Returns the row of a file that has just disappeared: an editor may be about to write it again. `None` once the file
    /// has been missing for two seconds, or if it was empty and had not just lost its content.
    #[must_use]
    pub fn vanished(&self, now_ns: i64) -> Option<Self> {
        if self.is_vanished() {
            return (now_ns.saturating_sub(self.stamp.mtime_ns) < COARSEST_NS).then(|| self.clone());
        }
        let len_before = if self.racy { self.stamp.len.max(self.len_before) } else { self.stamp.len };
        let stamp = Stamp { len: 0, mtime_ns: now_ns, ctime_ns: 0, ino: 0, dev: 0 };
        let row = Self { name: self.name.clone(), stamp, hash: String::new(), racy: true, len_before };
        (len_before > 0).then_some(row)
    }

    pub fn is_vanished(&self) -> bool {
        self.stamp.ino == 0 && self.stamp.dev == 0
    }

    /// Returns whether only the content can show if the file is unchanged.
    pub fn is_in_doubt(&self) -> bool {
        self.racy || self.hash.is_empty()
    }
}

fn saturate(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const NOW: i64 = 1_000 * S;

    #[test]
    fn the_length_before_a_save_in_progress_is_remembered_while_young() {
        let row = |len, read_at| FileRow::new("a", Stamp { len, ..stamp(1_000) }, "h", read_at);
        let whole = row(100, NOW * 2);
        let empty = row(0, NOW).after(&whole);
        assert_eq!(empty.len_before, 100);
        assert_eq!(row(10, NOW).after(&empty).len_before, 100);
        assert_eq!(row(50, NOW).after(&empty).len_before, 0);
        assert_eq!(row(49, NOW).after(&whole).len_before, 100);
        assert_eq!(row(49, NOW * 2).after(&whole).len_before, 0);
        assert_eq!(row(20, NOW).after(&row(49, NOW * 2).after(&empty)).len_before, 49);
    }

    fn stamp(mtime_s: i64) -> Stamp {
        Stamp { len: 10, mtime_ns: mtime_s * S, ctime_ns: mtime_s * S, ino: 7, dev: 1 }
    }

    #[test]
    fn stamps_as_young_as_the_read_or_in_the_future_are_in_doubt() {
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
                assert_eq!((row.racy, row.is_in_doubt()), (racy, racy), "{mtime_ns}");
            }
        }
    }

    #[test]
    fn a_file_that_could_not_be_read_is_in_doubt() {
        assert!(FileRow::new("a", stamp(5), "", NOW).is_in_doubt());
    }

    #[test]
    fn times_beyond_the_range_are_never_trusted() {
        let far = Stamp::new(10, i128::MIN, 5, 7, 1);
        assert!(far.is_racy(NOW) && Stamp::new(10, 5, i128::MAX, 7, 1).is_racy(NOW));
    }
}
