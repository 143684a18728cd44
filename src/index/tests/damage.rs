//! Damage of every kind, other releases, and other processes.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rusqlite::Connection;
use tempfile::TempDir;

use super::arbitrary;
use crate::index::{FileRow, Index, IndexError, Opened, Place, Query, Scope, Stamp};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;

/// A few plans, always the same, each with this word in its title and body.
fn plans(word: &str) -> Vec<Plan> {
    let mut runner = TestRunner::deterministic();
    let tree = arbitrary::plan().new_tree(&mut runner).expect("plans can be made");
    let plan = |n: u32| Plan {
        id: PlanId::new(format!("plan-{n}")),
        is_archived: false,
        title: format!("Plan {n} of {word}"),
        body: format!("{word} and more\n").repeat(20),
        ..tree.current()
    };
    (0..8).map(plan).collect()
}

fn files(word: &str) -> Vec<FileRow> {
    let row = |n: u64| {
        FileRow::new(format!("plan-{n}/plan.md"), Stamp::new(n, 2, 3, 4, 5), format!("{word} {n}"), 9)
    };
    (0..8).map(row).collect()
}

fn open(dir: &Path) -> (Index, Opened) {
    Index::open(Place::Directory(dir)).expect("the directory can be written")
}

/// A directory with a closed index of these plans.
fn with_index(word: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    let mut index = open(dir.path()).0;
    index.replace(&files(word), &plans(word)).expect("they fit");
    dir
}

fn file(dir: &Path) -> PathBuf {
    dir.join("index-v1.db")
}

/// All that can be asked of an index.
#[derive(Debug, PartialEq)]
struct Answers {
    files: Vec<FileRow>,
    plans: Vec<Plan>,
    hits: Vec<(String, String)>,
    titles: Vec<Vec<serde_json::Value>>,
}

fn ask(index: &Index) -> Result<Answers, IndexError> {
    let query = Query { scope: Scope::All, ..Query::new("more") };
    let hits = index.search(&query)?.into_iter().map(|it| (it.id, it.snippet)).collect();
    let titles = index.sql("SELECT id, title FROM plans ORDER BY id")?.rows;
    Ok(Answers { files: index.files()?, plans: index.load()?, hits, titles })
}

fn sound(index: &Index) -> Answers {
    ask(index).expect("the index is sound")
}

fn empty() -> Answers {
    sound(&Index::open(Place::Memory).expect("there is memory").0)
}

/// Asserts that the index can be filled again, and has what it was filled with.
#[track_caller]
fn check_mended(mut index: Index, dir: &Path) {
    index.replace(&files("mended"), &plans("mended")).expect("it gives way to a new one");
    if ask(&index).is_err() {
        // Damage that nobody had met, as in the list of free pages.
        index.replace(&files("mended"), &plans("mended")).expect("it gives way to a new one");
    }
    let expected = sound(&index);
    assert_eq!(
        expected.plans,
        plans("mended").into_iter().map(arbitrary::without_bodies).collect::<Vec<_>>()
    );
    drop(index);
    let (index, opened) = open(dir);
    assert_eq!((opened, sound(&index)), (Opened::Kept, expected));
}

#[test]
fn an_index_is_kept_from_one_opening_to_the_next() {
    let dir = tempfile::tempdir().expect("there is room");
    let (index, opened) = open(dir.path());
    assert_eq!((opened, sound(&index)), (Opened::Made, empty()));
    check_mended(index, dir.path());
}

/// Numbers that look random and are the same in every run (SplitMix64, Steele et al., OOPSLA 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).expect("it is there");
    file.seek(SeekFrom::Start(at)).expect("it can be sought");
    file.write_all(bytes).expect("it can be written");
}

#[test]
fn overwritten_bytes_are_an_error_or_change_nothing() {
    let whole = with_index("whole");
    let expected = sound(&open(whole.path()).0);
    let len = fs::metadata(file(whole.path())).expect("it is there").len();
    let mut state = 1;
    let (mut n_found, mut n_rebuilt) = (0, 0);
    for round in 0..64 {
        let dir = tempfile::tempdir().expect("there is room");
        fs::copy(file(whole.path()), file(dir.path())).expect("there is room");
        for _ in 0..=round % 16 {
            let bytes = random(&mut state).to_le_bytes();
            overwrite(&file(dir.path()), random(&mut state) % len, &bytes[..1 + round % 8]);
        }
        let (index, opened) = open(dir.path());
        match (opened, ask(&index)) {
            (Opened::Kept, Ok(answers)) => assert_eq!(answers, expected, "round {round}"),
            (Opened::Kept, Err(error)) => {
                assert_eq!(error.code(), "index-damaged", "round {round}: {error}");
                n_found += 1;
            }
            (_, answers) => {
                assert_eq!(answers.expect("a new index is sound"), empty(), "round {round}");
                n_rebuilt += 1;
            }
        }
        check_mended(index, dir.path());
    }
    assert!(n_found > 10 && n_rebuilt > 10, "{n_found} {n_rebuilt}");
}

#[test]
fn a_cut_file_is_an_error_or_new() {
    let whole = with_index("whole");
    let len = fs::metadata(file(whole.path())).expect("it is there").len();
    for part in 0..24 {
        let dir = tempfile::tempdir().expect("there is room");
        fs::copy(file(whole.path()), file(dir.path())).expect("there is room");
        let cut = OpenOptions::new().write(true).open(file(dir.path())).expect("it is there");
        cut.set_len(len * part / 24).expect("it can be cut");
        let (index, opened) = open(dir.path());
        match opened {
            Opened::Kept => assert_eq!(ask(&index).expect_err("rows are missing").code(), "index-damaged"),
            _ => assert_eq!(sound(&index), empty()),
        }
        check_mended(index, dir.path());
    }
}

#[test]
fn what_is_no_index_is_moved_aside_once() {
    let dir = tempfile::tempdir().expect("there is room");
    for text in ["first ".repeat(500), "second ".repeat(500)] {
        overwrite_all(&file(dir.path()), text.as_bytes());
        let (index, opened) = open(dir.path());
        assert!(matches!(opened, Opened::Rebuilt { .. }), "{opened:?}");
        assert_eq!(sound(&index), empty());
        assert_eq!(content(&dir.path().join("index-v1.db.bad")), text.as_bytes());
    }
}

#[expect(clippy::disallowed_methods, reason = "the test makes the damage that planwatch never would")]
fn overwrite_all(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("there is room");
}

#[expect(clippy::disallowed_methods, reason = "a plain file of the test's own")]
fn content(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it is there")
}

#[expect(clippy::disallowed_methods, reason = "the test deletes as a user would")]
fn delete(path: &Path) {
    fs::remove_file(path).expect("it is there");
}

/// Changes a closed index from outside and asserts that it gives way with a reason that holds this.
#[track_caller]
fn check_rebuilt(change: &str, reason: &str) {
    let dir = with_index("old");
    let foreign = Connection::open(file(dir.path())).expect("it is a database");
    foreign.execute_batch(change).expect("it can be changed");
    drop(foreign);
    let (index, opened) = open(dir.path());
    let Opened::Rebuilt { why } = opened else { panic!("{opened:?}") };
    assert!(why.contains(reason), "{why}");
    assert_eq!(sound(&index), empty());
    check_mended(index, dir.path());
}

#[test]
fn other_versions_and_schemas_give_way() {
    check_rebuilt("PRAGMA user_version = 2", "version 2");
    check_rebuilt("PRAGMA application_id = 7", "no index");
    check_rebuilt("UPDATE meta SET value = x'30' WHERE key = 'reader'", "release");
    check_rebuilt("DROP VIEW plans", "sqlite_schema");
    check_rebuilt("CREATE TRIGGER t AFTER DELETE ON file_row BEGIN SELECT 1; END", "sqlite_schema");
    check_rebuilt("DROP TABLE meta", "meta");
}

/// Changes rows from outside and asserts that every answer that goes by them is refused.
#[track_caller]
fn check_found(change: &str) {
    let dir = with_index("old");
    let foreign = Connection::open(file(dir.path())).expect("it is a database");
    foreign.execute_batch(change).expect("it can be changed");
    drop(foreign);
    let (mut index, opened) = open(dir.path());
    assert_eq!(opened, Opened::Kept);
    assert_eq!(ask(&index).expect_err("a row is not what was written").code(), "index-damaged", "{change}");
    assert_eq!(index.restamp(&files("old")).expect_err("nothing is written").code(), "index-damaged");
    check_mended(index, dir.path());
}

#[test]
fn rows_that_nobody_wrote_are_found() {
    check_found("UPDATE file_row SET racy = 1 - racy WHERE path = 'plan-1/plan.md'");
    check_found("DELETE FROM plan_data WHERE plan = 'plan-3'");
    check_found("UPDATE plan_row SET title = 'x' WHERE plan = 'plan-3'");
    check_found("DELETE FROM problem_row; DELETE FROM plan_row WHERE plan = 'plan-7'");
    check_found("UPDATE document SET body = 'more of it' WHERE id = 1");
    check_found("UPDATE search_docsize SET sz = x'01010101' WHERE id = 1");
    check_found("DELETE FROM meta WHERE key = 'sum of file_row'");
}

#[test]
fn names_that_are_no_files_give_way() {
    let dir = tempfile::tempdir().expect("there is room");
    fs::create_dir(file(dir.path())).expect("there is room");
    let (index, opened) = open(dir.path());
    assert!(matches!(opened, Opened::Rebuilt { .. }), "{opened:?}");
    check_mended(index, dir.path());
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_not_followed() {
    let (dir, other) = (tempfile::tempdir().expect("there is room"), with_index("other"));
    std::os::unix::fs::symlink(file(other.path()), file(dir.path())).expect("there is room");
    let (index, opened) = open(dir.path());
    assert!(matches!(opened, Opened::Rebuilt { .. }), "{opened:?}");
    check_mended(index, dir.path());
    assert_eq!(open(other.path()).0.files().expect("it is sound"), files("other"));
}

#[test]
fn a_file_deleted_while_open_is_made_again() {
    let dir = with_index("old");
    let mut index = open(dir.path()).0;
    delete(&file(dir.path()));
    assert_eq!(index.files().expect("the open file is still there"), files("old"));
    index.replace(&files("new"), &plans("new")).expect("a new one is made");
    let (other, opened) = open(dir.path());
    assert_eq!((opened, sound(&other)), (Opened::Kept, sound(&index)));
}

#[test]
fn a_directory_that_is_not_there_is_unwritable() {
    let dir = tempfile::tempdir().expect("there is room");
    let missing = dir.path().join("missing");
    let error = Index::open(Place::Directory(&missing)).expect_err("there is no directory");
    assert_eq!(error.code(), "index-unwritable");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn a_full_disk_changes_nothing() {
    let dir = with_index("old");
    let mut index = open(dir.path()).0;
    let before = sound(&index);
    let pages: i64 =
        index.connection.pragma_query_value(None, "page_count", |row| row.get(0)).expect("it has pages");
    index.connection.pragma_update(None, "max_page_count", pages).expect("it can be set");
    let much = plans(&"much ".repeat(5_000));
    assert_eq!(index.replace(&files("new"), &much).expect_err("there is no room").code(), "index-full");
    assert_eq!(sound(&index), before);
}

#[test]
fn a_writer_that_dies_leaves_the_index_as_it_was() {
    let dir = with_index("old");
    let (mut dying, index) = (open(dir.path()).0, open(dir.path()).0);
    let before = sound(&index);
    let died = dying.write(|transaction| {
        super::super::write::replace(transaction, &files("new"), &plans("new"))?;
        Err(IndexError::Busy)
    });
    assert_eq!(died.expect_err("it died").code(), "index-busy");
    drop(dying);
    assert_eq!(sound(&index), before);
    assert_eq!(sound(&open(dir.path()).0), before);
}

#[test]
fn a_log_that_a_crash_left_is_read() {
    let (dir, crashed) = (with_index("old"), tempfile::tempdir().expect("there is room"));
    let mut index = open(dir.path()).0;
    index.replace(&files("new"), &plans("new")).expect("they fit");
    let expected = sound(&index);
    for end in ["", "-wal"] {
        let name = format!("index-v1.db{end}");
        fs::copy(dir.path().join(&name), crashed.path().join(&name)).expect("there is room");
    }
    let (index, opened) = open(crashed.path());
    assert_eq!((opened, sound(&index)), (Opened::Kept, expected));
}

#[test]
fn a_snapshot_stays_while_another_connection_writes() {
    let dir = with_index("old");
    let (mut reader, mut writer) = (open(dir.path()).0, open(dir.path()).0);
    let seen = reader.snapshot().expect("it is readable");
    assert_eq!(seen.files().expect("it is sound"), files("old"));
    writer.replace(&files("new"), &plans("new")).expect("readers do not stop writers");
    assert_eq!(seen.load().expect("it is sound")[0].title, "Plan 0 of old");
    drop(seen);
    assert_eq!(sound(&reader), sound(&writer));
    assert_eq!(reader.files().expect("it is sound"), files("new"));
}

#[test]
fn every_reader_sees_one_writing_whole() {
    let dir = with_index("word 0");
    let path = dir.path();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut index = open(path).0;
                for _ in 0..30 {
                    let seen = index.snapshot().expect("it is readable");
                    let hash = seen.files().expect("it is sound")[0].hash.clone();
                    let word = hash.strip_suffix(" 0").expect("it is the first file");
                    assert_eq!(seen.load().expect("it is sound")[0].title, format!("Plan 0 of {word}"));
                }
            });
        }
        for writer in 0..2 {
            scope.spawn(move || {
                let mut index = open(path).0;
                for round in 0..5 {
                    let word = format!("word {writer}{round}");
                    index.replace(&files(&word), &plans(&word)).expect("writers wait for each other");
                }
            });
        }
    });
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

#[test]
fn an_index_can_go_to_another_thread() {
    let dir = with_index("old");
    let index = open(dir.path()).0;
    let asked = std::thread::spawn(move || index.files()).join().expect("it does not panic");
    assert_eq!(asked.expect("it is sound"), files("old"));
}

#[test]
fn sqlite_is_new_enough() {
    // Up to 3.51.2 two connections that write and checkpoint at once can destroy the file (WAL-reset bug).
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}
