//! Tests of the index: damage of every kind, files of other releases, and access by other processes.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rusqlite::Connection;
use tempfile::TempDir;

use super::arbitrary;
use crate::index::{Change, FileRow, Head, Index, IndexError, Key, Opened, Packed, Place, Stamp};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;

/// A few plans, always the same, each with this word in its title and body.
pub(super) fn plans(word: &str) -> Vec<Plan> {
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

pub(super) fn files(word: &str) -> Vec<FileRow> {
    vec![FileRow::new("plan.md", Stamp::new(1, 2, 3, 4, 5), word, 9)]
}

pub(super) fn packed(word: &str) -> impl Iterator<Item = Packed> {
    let key = |it: &Plan| Key { is_archived: it.is_archived, name: it.id.to_string() };
    let word = word.to_owned();
    plans(&word).into_iter().map(move |it| Packed::new(key(&it), 1, &files(&word), &it))
}

/// Stores `plans(word)`.
pub(super) fn fill(index: &mut Index, word: &str) -> Result<(), IndexError> {
    index.write(&mut packed(word).map(Change::Put)).map(drop)
}

pub(super) fn open(dir: &Path) -> (Index, Opened) {
    Index::open(Place::Directory(dir)).expect("the directory can be written")
}

/// Creates a directory with an index of `plans(word)`, and closes the index.
pub(super) fn with_index(word: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    let mut index = open(dir.path()).0;
    fill(&mut index, word).expect("they fit");
    dir
}

pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join(Index::file_name())
}

/// Everything that an index can return.
#[derive(Debug, PartialEq)]
pub(super) struct Answers {
    pub(super) files: Vec<Vec<FileRow>>,
    plans: Vec<Plan>,
    summaries: Vec<Plan>,
}

fn ask(index: &Index) -> Result<Answers, IndexError> {
    let seen = crate::index::Snapshot::new(&index.store)?;
    let mut heads = seen.heads()?;
    let data = seen.summaries(&heads)?;
    let summaries =
        heads.iter().enumerate().map(|(at, head)| seen.with_damage_recorded(head.summary(data.of(at))));
    let stored = summaries.map(|it| it.map(|it| it.plan().clone()));
    let summaries = Plans::new(stored.collect::<Result<_, _>>()?).into_vec();
    heads.sort_by(|a, b| a.key.cmp(&b.key));
    let files = heads.iter().map(Head::files).collect::<Result<_, _>>()?;
    Ok(Answers { files, plans: seen.load()?, summaries })
}

pub(super) fn sound(index: &Index) -> Answers {
    ask(index).expect("the index is sound")
}

pub(super) fn empty() -> Answers {
    sound(&Index::open(Place::Memory).expect("there is memory").0)
}

/// Fills an index again as callers do: an index that is found damaged is first replaced by a new one.
fn refill(index: &mut Index, word: &str) {
    let filled = fill(index, word).and_then(|()| ask(index).map(drop));
    if filled.is_err() {
        index.reopen().expect("it is replaced by a new one");
        fill(index, word).expect("it is new");
    }
}

/// Asserts that the index can be filled again, and then contains what was stored.
#[track_caller]
pub(super) fn check_mended(mut index: Index, dir: &Path) {
    refill(&mut index, "refilled");
    let expected = sound(&index);
    let plans = plans("refilled").into_iter().map(arbitrary::without_bodies);
    assert_eq!(expected.plans, plans.collect::<Vec<_>>());
    drop(index);
    let (index, opened) = open(dir);
    assert_eq!((opened, sound(&index)), (Opened::Kept, expected));
}

/// Asserts that an answer contains only what was stored. Plans may be missing, because missing plans are read from their
/// files again.
#[track_caller]
fn check_true(answers: &Answers, expected: &Answers, round: impl std::fmt::Debug) {
    let is_put = |it: &Plan| expected.plans.contains(it);
    assert!(answers.plans.iter().all(is_put), "{round:?}: {answers:?}");
    assert!(answers.summaries.iter().all(|it| expected.summaries.contains(it)), "{round:?}: {answers:?}");
    assert!(answers.files.iter().all(|it| expected.files.contains(it)), "{round:?}: {answers:?}");
}

#[test]
fn an_index_is_kept_from_one_opening_to_the_next() {
    let dir = tempfile::tempdir().expect("there is room");
    let (index, opened) = open(dir.path());
    assert_eq!((opened, sound(&index)), (Opened::Made, empty()));
    check_mended(index, dir.path());
}

/// Numbers that look random and are the same in every run (SplitMix64, Steele et al., OOPSLA 2014).
pub(super) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

pub(super) fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
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
    for round in 0..40 {
        let dir = with_index("whole");
        for _ in 0..=round % 16 {
            let bytes = random(&mut state).to_le_bytes();
            overwrite(&file(dir.path()), random(&mut state) % len, &bytes[..1 + round % 8]);
        }
        let (index, opened) = open(dir.path());
        match (opened, ask(&index)) {
            (Opened::Kept, Ok(answers)) => check_true(&answers, &expected, round),
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
    assert!(n_found > 10 && n_rebuilt > 5, "{n_found} {n_rebuilt}");
}

#[test]
fn a_cut_file_is_an_error_or_new() {
    let whole = with_index("whole");
    let len = fs::metadata(file(whole.path())).expect("it is there").len();
    for part in 0..24 {
        let dir = with_index("whole");
        let cut = OpenOptions::new().write(true).open(file(dir.path())).expect("it is there");
        cut.set_len(len * part / 24).expect("it can be cut");
        let (index, opened) = open(dir.path());
        match opened {
            Opened::Kept => assert_eq!(ask(&index).expect_err("pages are missing").code(), "index-damaged"),
            _ => assert_eq!(sound(&index), empty()),
        }
        check_mended(index, dir.path());
    }
}

#[test]
fn a_file_that_is_no_index_is_moved_aside() {
    let dir = tempfile::tempdir().expect("there is room");
    for text in ["first ".repeat(500), "second ".repeat(500)] {
        overwrite_all(&file(dir.path()), text.as_bytes());
        let (index, opened) = open(dir.path());
        assert!(matches!(opened, Opened::Rebuilt { .. }), "{opened:?}");
        assert_eq!(sound(&index), empty());
        assert_eq!(content(&dir.path().join(format!("{}.bad", Index::file_name()))), text.as_bytes());
    }
}

#[expect(clippy::disallowed_methods, reason = "the test causes damage as other programs do")]
pub(super) fn overwrite_all(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("there is room");
}

#[expect(clippy::disallowed_methods, reason = "a plain file of the test's own")]
pub(super) fn content(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it is there")
}

#[expect(clippy::disallowed_methods, reason = "the test deletes as a user would")]
pub(super) fn delete(path: &Path) {
    fs::remove_file(path).expect("it is there");
}

/// Changes a closed index from outside, and asserts that it is replaced and that the reported reason contains
/// `reason`.
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
fn an_index_of_another_version_or_schema_is_replaced() {
    check_rebuilt("PRAGMA user_version = 1", "version 1");
    check_rebuilt("PRAGMA application_id = 7", "not an index");
    check_rebuilt("UPDATE meta SET value = x'30' WHERE key = 'reader'", "release");
    check_rebuilt("DROP TABLE plan_data", "sqlite_schema");
    check_rebuilt("CREATE TRIGGER t AFTER DELETE ON plan BEGIN SELECT 1; END", "sqlite_schema");
    check_rebuilt("DROP TABLE meta", "meta");
}

/// Changes rows from outside, and asserts that reading them fails with `index-damaged`, and that nothing is written
/// afterwards.
#[track_caller]
fn check_found(change: &str) {
    let dir = with_index("old");
    let foreign = Connection::open(file(dir.path())).expect("it is a database");
    foreign.execute_batch(change).expect("it can be changed");
    drop(foreign);
    let (mut index, opened) = open(dir.path());
    assert_eq!(opened, Opened::Kept);
    assert_eq!(ask(&index).expect_err("a row is not what was written").code(), "index-damaged", "{change}");
    let error = fill(&mut index, "old").expect_err("nothing is written into it");
    assert_eq!(error.code(), "index-damaged", "{change}");
    check_mended(index, dir.path());
}

#[test]
fn rows_that_planwatch_did_not_write_are_detected() {
    check_found("UPDATE plan SET steps = steps + 1 WHERE name = 'plan-3'");
    check_found("UPDATE plan SET name = 'plan-33' WHERE name = 'plan-3'");
    check_found("UPDATE plan SET archived = 1 WHERE name = 'plan-3'");
    check_found("UPDATE plan SET head = (SELECT head FROM plan WHERE name = 'plan-1') WHERE name = 'plan-3'");
    check_found("UPDATE plan SET head = x'00' WHERE name = 'plan-3'");
    check_found("UPDATE plan_data SET data = (SELECT max(data) FROM plan_data) WHERE id = 3");
    check_found("DELETE FROM plan_data WHERE id = 3");
    check_found("UPDATE plan_light SET light = (SELECT max(light) FROM plan_light) WHERE id = 3");
    check_found("DELETE FROM plan_light WHERE id = 3");
}

#[test]
fn a_deleted_row_is_missing_in_the_answers() {
    let dir = with_index("old");
    let expected = sound(&open(dir.path()).0);
    let foreign = Connection::open(file(dir.path())).expect("it is a database");
    foreign.execute_batch("DELETE FROM plan WHERE name = 'plan-3'").expect("it can be changed");
    drop(foreign);
    let index = open(dir.path()).0;
    let answers = sound(&index);
    assert_eq!(answers.plans.len(), expected.plans.len() - 1);
    check_true(&answers, &expected, "deleted");
    check_mended(index, dir.path());
}

#[test]
fn a_directory_in_place_of_the_index_is_replaced() {
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
    assert_eq!(sound(&open(other.path()).0).files[0], files("other"));
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
    let pages: i64 = index
        .store
        .connection
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .expect("it has pages");
    index.store.connection.pragma_update(None, "max_page_count", pages).expect("it can be set");
    let much = "much ".repeat(50_000);
    assert_eq!(fill(&mut index, &much).expect_err("there is no room").code(), "index-full");
    assert_eq!(sound(&index), before);
}

#[test]
fn a_writer_that_dies_leaves_the_index_as_it_was() {
    let dir = with_index("old");
    let (mut dying, index) = (open(dir.path()).0, open(dir.path()).0);
    let before = sound(&index);
    let died = dying.store.put(|transaction| {
        super::super::write::write(transaction, &mut packed("new").map(Change::Put))?;
        Err::<(), _>(IndexError::Busy)
    });
    assert_eq!(died.expect_err("it died").code(), "index-busy");
    drop(dying);
    assert_eq!(sound(&index), before);
    assert_eq!(sound(&open(dir.path()).0), before);
}

#[test]
fn a_log_that_a_crash_left_is_read() {
    let dir = with_index("old");
    let mut index = open(dir.path()).0;
    fill(&mut index, "new").expect("they fit");
    let expected = sound(&index);
    let files = ["", "-wal"].map(|end| dir.path().join(format!("{}{end}", Index::file_name())));
    let left = files.each_ref().map(|it| content(it));
    drop(index);
    files.iter().zip(left).for_each(|(file, left)| overwrite_all(file, &left));
    let (index, opened) = open(dir.path());
    assert_eq!((opened, sound(&index)), (Opened::Kept, expected));
}

#[test]
fn an_error_of_the_disk_is_not_reported_as_damage() {
    use rusqlite::ffi;
    for (code, expected) in [
        (ffi::SQLITE_IOERR_READ, "index-damaged"),
        (ffi::SQLITE_IOERR_SHORT_READ, "index-damaged"),
        (ffi::SQLITE_CORRUPT, "index-damaged"),
        (ffi::SQLITE_NOTADB, "index-damaged"),
        (ffi::SQLITE_FULL, "index-full"),
        (ffi::SQLITE_IOERR_SHMSIZE, "index-full"),
        (ffi::SQLITE_IOERR_SHMMAP, "index-unwritable"),
        (ffi::SQLITE_IOERR_WRITE, "index-unwritable"),
        (ffi::SQLITE_IOERR_LOCK, "index-unwritable"),
        (ffi::SQLITE_CANTOPEN, "index-unwritable"),
        (ffi::SQLITE_BUSY, "index-busy"),
    ] {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert_eq!(IndexError::from(error).code(), expected, "{code}");
    }
}

#[test]
fn a_snapshot_stays_while_another_connection_writes() {
    let dir = with_index("old");
    let (mut reader, mut writer) = (open(dir.path()).0, open(dir.path()).0);
    let seen = reader.snapshot().expect("it is readable");
    let head = seen.heads().expect("it is sound").remove(0);
    fill(&mut writer, "new").expect("readers do not stop writers");
    assert_eq!(seen.plan(&head).expect("it is sound").title, "Plan 0 of old");
    drop(seen);
    assert_eq!(sound(&reader), sound(&writer));
    assert_eq!(sound(&reader).files[0], files("new"));
}

#[test]
fn every_reader_sees_one_write_as_a_whole() {
    let dir = with_index("word 0");
    let path = dir.path();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut index = open(path).0;
                for _ in 0..30 {
                    let seen = index.snapshot().expect("it is readable");
                    for head in seen.heads().expect("it is sound") {
                        let word = head.files().expect("it is sound").remove(0).hash;
                        let title = seen.plan(&head).expect("it is sound").title;
                        assert!(title.ends_with(&format!(" of {word}")), "{title} {word}");
                    }
                }
            });
        }
        for writer in 0..2 {
            scope.spawn(move || {
                let mut index = open(path).0;
                for round in 0..5 {
                    let word = format!("word {writer}{round}");
                    fill(&mut index, &word).expect("writers wait for each other");
                }
            });
        }
    });
}

#[test]
fn an_index_can_go_to_another_thread() {
    let dir = with_index("old");
    let mut index = open(dir.path()).0;
    let load = move || index.snapshot().and_then(|it| it.load());
    let asked = std::thread::spawn(load).join().expect("it does not panic");
    assert_eq!(asked.expect("it is sound").len(), 8);
}

#[test]
fn sqlite_is_new_enough() {
    // Up to version 3.51.2, two connections that write and checkpoint at once can destroy the file (WAL-reset bug).
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn each_release_has_its_own_file_and_removes_unused_ones() {
    let digits: String = crate::index::schema::reader_digits();
    assert_eq!(Index::file_name(), format!("index-v{}{digits}.db", crate::index::VERSION));
    let dir = tempfile::tempdir().expect("there is room");
    let now = dir.path().metadata().and_then(|it| it.modified()).expect("it was made just now");
    let days = |n: u64| now - std::time::Duration::from_secs(n * 24 * 60 * 60);
    let make = |name: &str, age: u64| {
        let file = fs::File::create(dir.path().join(name)).expect("there is room");
        file.set_modified(days(age)).expect("it is ours");
    };
    // `index-v1.db` is old, but its log is recent, so it is in use. The files of `v2` and `v2-0.0.1-9` were last written
    // more than 30 days ago. `notes.db` is not an index.
    make("index-v1.db", 90);
    make("index-v1.db-wal", 2);
    make("index-v2.db", 40);
    make("index-v2.db.bad", 50);
    make("index-v2-0.0.1-9.db", 31);
    make("notes.db", 90);
    let (index, opened) = open(dir.path());
    assert_eq!(opened, Opened::Made);
    drop(index);
    let names: Vec<_> =
        fs::read_dir(dir.path()).expect("it is there").flatten().map(|it| it.file_name()).collect();
    let mut left: Vec<_> =
        names.iter().filter_map(|it| it.to_str()).filter(|it| !it.starts_with(&Index::file_name())).collect();
    left.sort_unstable();
    assert_eq!(left, ["index-v1.db", "index-v1.db-wal", "notes.db"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test creates and removes files as other programs do")]
fn directories_in_place_of_the_index_are_moved_aside_every_time() {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join(Index::file_name());
    for _ in 0..3 {
        fs::create_dir(&path).expect("nothing is there");
        fs::write(path.join("text"), "mine").expect("there is room");
        let (mut index, opened) = open(dir.path());
        assert!(matches!(opened, Opened::Rebuilt { .. }), "{opened:?}");
        fill(&mut index, "apple").expect("it can be written");
        drop(index);
        fs::remove_file(&path).expect("it is a file");
    }
    let is_kept = |it: &fs::DirEntry| it.path().join("text").exists();
    let kept = fs::read_dir(dir.path()).expect("it is there").flatten().filter(is_kept).count();
    assert_eq!(kept, 3, "no file of another program is lost");
}
