//! Arbitrary bytes in place of git's output are read without a panic, and what is accepted is well formed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planwatch::git::{
    LogReader, Version, read_branches, read_changes, read_index_entries, read_info, read_status,
    read_tree_entries,
};

fuzz_target!(|bytes: &[u8]| {
    let mut n_entries = 0;
    for entry in LogReader::new(bytes) {
        n_entries += 1;
        let Ok(entry) = entry else { continue };
        assert!(entry.changes.iter().all(|it| !it.path.contains(&0)));
        assert!(!entry.subject.contains('\0'));
    }
    // Each entry takes some bytes, so that reading ends.
    assert!(n_entries <= bytes.len());
    for change in read_changes(bytes).unwrap_or_default() {
        assert!(!change.path.contains(&0));
    }
    for branch in read_branches(bytes).unwrap_or_default() {
        assert!(!branch.name.contains('\n'));
    }
    for entry in read_tree_entries(bytes).unwrap_or_default() {
        assert!(!entry.path.is_empty() && !entry.path.contains(&0));
    }
    for entry in read_index_entries(bytes).unwrap_or_default() {
        assert!(entry.stage <= 3 && !entry.path.contains(&0));
    }
    for file in read_status(bytes).unwrap_or_default() {
        assert!(!file.path.is_empty() && !file.path.contains(&0));
    }
    if let Some(info) = read_info(bytes) {
        assert!(matches!(info.oid.as_str().len(), 40 | 64));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let version = Version::read(text);
        assert!(version.is_none() || text.trim().starts_with("git version "));
    }
});
