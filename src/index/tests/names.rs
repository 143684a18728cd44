//! Files that are deleted, replaced or created while they are open.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::damage::{check_mended, delete, empty, file, files, fill, open, overwrite_all, sound, with_index};
use crate::index::file::IndexFile;
use crate::index::schema::Content;
use crate::index::{Index, Opened};

#[test]
fn a_file_deleted_while_open_is_made_again() {
    let dir = with_index("old");
    let mut index = open(dir.path()).0;
    delete(&file(dir.path()));
    assert_eq!(sound(&index).files[0], files("old"), "the open file is still there");
    fill(&mut index, "new").expect("a new one is made");
    let (other, opened) = open(dir.path());
    assert_eq!((opened, sound(&other)), (Opened::Kept, sound(&index)));
}

#[test]
fn a_deleted_file_stays_readable_while_a_new_one_is_made() {
    let dir = with_index("old");
    let indexes = [open(dir.path()).0, open(dir.path()).0];
    let before = indexes.each_ref().map(sound);
    // Its log and shared memory stay, as when a user deletes only the database file.
    delete(&file(dir.path()));
    let (mut new, opened) = open(dir.path());
    fill(&mut new, "new").expect("it is new");
    assert_eq!((opened, indexes.each_ref().map(sound)), (Opened::Made, before));
    drop(indexes);
    assert_eq!(sound(&open(dir.path()).0), sound(&new));
}

/// Replaces a file by a copy of itself, as restoring a backup does.
fn replace_by_a_copy(file: &Path) {
    let copy = file.with_extension("copy");
    fs::copy(file, &copy).and_then(|_| rename(&copy, file)).expect("there is room");
}

#[expect(clippy::disallowed_methods, reason = "the test replaces as a user would")]
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::rename(from, to)
}

#[test]
fn a_copy_is_rebuilt_because_its_log_may_belong_to_another_file() {
    let dir = with_index("old");
    let mut index = open(dir.path()).0;
    replace_by_a_copy(&file(dir.path()));
    fill(&mut index, "new").expect("a new one is made");
    let other = with_index("other");
    replace_by_a_copy(&file(other.path()));
    for (dir, expected) in [(dir, Opened::Kept), (other, Opened::Rebuilt { why: "it is a copy".to_owned() })]
    {
        let (index, opened) = open(dir.path());
        assert_eq!(opened, expected);
        check_mended(index, dir.path());
    }
}

#[test]
fn a_replaced_file_stays_readable_beside_its_successor() {
    let dir = with_index("old");
    let index = open(dir.path()).0;
    let before = sound(&index);
    replace_by_a_copy(&file(dir.path()));
    let (mut new, opened) = open(dir.path());
    assert_eq!(opened, Opened::Rebuilt { why: "one of its files was replaced while it was open".to_owned() });
    fill(&mut new, "new").expect("it is new");
    assert_eq!(sound(&index), before);
}

#[test]
fn an_open_file_that_lost_its_log_is_replaced() {
    for (end, is_first) in [("-wal", true), ("-shm", true), ("-wal", false), ("-shm", false)] {
        let dir = with_index("old");
        let (mut index, others) = (open(dir.path()).0, open(dir.path()).0);
        delete(&dir.path().join(format!("{}{end}", Index::file_name())));
        assert!(!index.has_its_name());
        // The file must be replaced, by `index` or by `new`: other processes no longer see this process's locks, so they
        // may have written into it since the deletion.
        if is_first {
            index.ready().expect("a new one is made");
        }
        let (mut new, opened) = open(dir.path());
        assert_eq!(opened == Opened::Kept, is_first, "{opened:?}");
        fill(&mut new, "new").expect("it is new");
        index.ready().expect("there is a new one");
        assert_eq!(sound(&index), sound(&new), "{end}");
        assert_eq!(sound(&others).files[0], files("old"), "{end}");
        check_mended(index, dir.path());
    }
}

#[test]
fn an_empty_file_in_the_place_of_one_that_others_have_open_is_filled() {
    let dir = with_index("old");
    // A connection that is not registered in this process, like a connection of another process.
    let other = Connection::open(file(dir.path())).expect("it is a database");
    let n_plans = || other.query_row("SELECT count(*) FROM plan", [], |row| row.get::<_, i64>(0));
    assert_eq!(n_plans(), Ok(8));
    let names = || IndexFile::in_dir(dir.path(), Content::Plans).names();
    let before = names();
    delete(&file(dir.path()));
    overwrite_all(&file(dir.path()), b"");
    let (new, opened) = open(dir.path());
    assert_eq!((opened, sound(&new)), (Opened::Made, empty()));
    assert_ne!(
        names().shared,
        before.shared,
        "with the same shared memory, the old connection would damage the new file"
    );
    check_mended(new, dir.path());
    assert_eq!(n_plans(), Ok(8));
}

#[test]
fn closing_keeps_the_log_and_shared_memory_files() {
    let dir = with_index("old");
    let beside = ["-wal", "-shm"].map(|end| dir.path().join(format!("{}{end}", Index::file_name())));
    assert!(
        beside.iter().all(|it| it.exists()),
        "closing removes no file by name, because the name may refer to another file"
    );
    assert_eq!(fs::metadata(&beside[0]).expect("it is there").len(), 0);
}

#[test]
fn many_openings_at_once_find_one_index() {
    let dir = tempfile::tempdir().expect("there is room");
    overwrite_all(&file(dir.path()), &b"damage ".repeat(500));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(sound(&open(dir.path()).0), empty()));
        }
    });
    let (index, opened) = open(dir.path());
    assert_eq!(opened, Opened::Kept);
    check_mended(index, dir.path());
}
