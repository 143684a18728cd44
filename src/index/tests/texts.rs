//! Tests of the full-text index: which rows it was filled from, and damage to its file.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use super::damage::{content, delete, overwrite, overwrite_all, packed, plans, random};
use crate::index::file::IndexFile;
use crate::index::schema::Content;
use crate::index::{
    Change, FullText, Head, Index, IndexError, Key, Match, Opened, Origin, Place, Query, Scope, Texts,
    checksums, verified_stamp,
};

fn open(dir: &Path) -> (FullText, Opened) {
    FullText::open(Place::Directory(dir)).expect("the directory can be written")
}

fn texts(word: &str) -> Vec<Texts> {
    packed(word).zip(plans(word)).map(|(packed, plan)| Texts::of_head(&packed.head, &plan)).collect()
}

fn heads(word: &str) -> Vec<Head> {
    packed(word).map(|it| it.head).collect()
}

/// Inserts texts and removes those of `gone`. No other process may write meanwhile.
pub(super) fn put(index: &mut FullText, texts: Vec<Texts>, gone: &[Key]) -> Result<(), IndexError> {
    let seen = index.looked()?.seen()?;
    assert!(index.write(&mut texts.into_iter(), gone, seen, &mut || None)?, "no other process writes");
    Ok(())
}

/// Creates a directory with a full-text index of `plans(word)`, and closes the index.
fn with_texts(word: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    put(&mut open(dir.path()).0, texts(word), &[]).expect("they fit");
    dir
}

fn file(dir: &Path) -> PathBuf {
    dir.join(FullText::file_name())
}

fn index_file(dir: &Path) -> IndexFile {
    IndexFile::in_dir(dir, Content::Texts)
}

/// Returns the matches of a search. Also compares the index with `plans(word)`, and returns the plans whose texts are
/// missing, outdated or left over.
fn ask(index: &FullText, word: &str) -> Result<(Vec<Match>, Vec<Key>), IndexError> {
    let look = index.looked()?;
    let found = look.search(&Query { scope: Scope::All, ..Query::new("more") })?;
    let heads = heads(word);
    let state = look.unsearched(Some(&heads), &[])?;
    Ok((found, state.missing.iter().map(|it| it.key.clone()).chain(state.gone).collect()))
}

#[track_caller]
fn check_mended(mut index: FullText, dir: &Path) {
    let filled = put(&mut index, texts("mended"), &[]).and_then(|()| ask(&index, "mended").map(drop));
    if filled.is_err() {
        index.reopen().expect("it is replaced by a new one");
        put(&mut index, texts("mended"), &[]).expect("it is new");
    }
    let expected = ask(&index, "mended").expect("it is sound");
    assert_eq!(expected.1, []);
    drop(index);
    let (index, opened) = open(dir);
    assert_eq!((opened, ask(&index, "mended").expect("it is sound")), (Opened::Kept, expected));
}

fn copy_of(whole: &Path) -> TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    for name in [FullText::file_name(), format!("{}.proved", FullText::file_name())] {
        fs::copy(whole.join(&name), dir.path().join(&name)).expect("there is room");
    }
    dir
}

#[test]
fn overwritten_bytes_are_an_error_or_change_nothing() {
    let whole = with_texts("whole");
    let expected = ask(&open(whole.path()).0, "whole").expect("it is sound");
    let len = fs::metadata(file(whole.path())).expect("it is there").len();
    let mut state = 1;
    let (mut n_found, mut n_rebuilt) = (0, 0);
    for round in 0..40 {
        let dir = copy_of(whole.path());
        // The file is verified and recorded as intact before it is damaged.
        assert_eq!(ask(&open(dir.path()).0, "whole").expect("it is sound"), expected);
        assert!(verified_stamp::is_recorded(&index_file(dir.path())));
        for _ in 0..=round % 16 {
            let bytes = random(&mut state).to_le_bytes();
            overwrite(&file(dir.path()), random(&mut state) % len, &bytes[..1 + round % 8]);
        }
        let (index, opened) = open(dir.path());
        match (opened, ask(&index, "whole")) {
            (Opened::Kept, Ok(answers)) => assert_eq!(answers, expected, "round {round}"),
            (Opened::Kept, Err(error)) => {
                assert_eq!(error.code(), "index-damaged", "round {round}: {error}");
                n_found += 1;
            }
            (_, answers) => {
                assert_eq!(answers.expect("a new one is sound").0, [], "round {round}");
                n_rebuilt += 1;
            }
        }
        check_mended(index, dir.path());
    }
    assert!(n_found > 5 && n_rebuilt > 5, "{n_found} {n_rebuilt}");
}

#[test]
fn a_cut_file_is_an_error_or_new() {
    let whole = with_texts("whole");
    let len = fs::metadata(file(whole.path())).expect("it is there").len();
    for part in 0..24 {
        let dir = copy_of(whole.path());
        let cut = fs::OpenOptions::new().write(true).open(file(dir.path())).expect("it is there");
        cut.set_len(len * part / 24).expect("it can be cut");
        let (index, opened) = open(dir.path());
        let answers = ask(&index, "whole");
        match opened {
            Opened::Kept => assert_eq!(answers.expect_err("pages are missing").code(), "index-damaged"),
            _ => assert_eq!(answers.expect("it is new").0, []),
        }
        check_mended(index, dir.path());
    }
}

/// Changes rows from outside, and asserts that searching and writing fail with `index-damaged`.
#[track_caller]
fn check_found(change: &str) {
    let dir = with_texts("old");
    ask(&open(dir.path()).0, "old").expect("it is sound");
    let foreign = Connection::open(file(dir.path())).expect("it is a database");
    foreign.execute_batch(change).expect("it can be changed");
    drop(foreign);
    let (mut index, opened) = open(dir.path());
    assert_eq!(opened, Opened::Kept);
    let put = put(&mut index, texts("new"), &[]).expect_err("nothing is written into it");
    assert_eq!(put.code(), "index-damaged", "{change}");
    let (index, _) = open(dir.path());
    assert_eq!(ask(&index, "old").expect_err("some rows were changed").code(), "index-damaged", "{change}");
    check_mended(index, dir.path());
}

#[test]
fn rows_that_planwatch_did_not_write_are_detected() {
    check_found("UPDATE searched SET name = 'plan-9' WHERE name = 'plan-3'");
    check_found("UPDATE searched SET first = first + 100 WHERE name = 'plan-3'");
    check_found("DELETE FROM searched WHERE name = 'plan-3'");
    check_found("UPDATE search_docsize SET sz = x'01010101' WHERE id = 1");
    check_found("DELETE FROM search_docsize WHERE id = 1");
    check_found("UPDATE search_data SET block = zeroblob(length(block)) WHERE id > 1000");
    check_found("UPDATE search_idx SET pgno = pgno + 2");
    check_found("DELETE FROM part WHERE source = 'search_data'");
    check_found("INSERT INTO part VALUES ('search_data', 77, x'00')");
    check_found("INSERT INTO search (search, rank) VALUES ('automerge', 4)");
}

#[test]
fn a_file_that_was_found_whole_is_read_again_once_it_is_written() {
    let dir = with_texts("old");
    let noted = index_file(dir.path());
    assert!(verified_stamp::is_recorded(&noted), "the writer has recorded the file as intact");
    let foreign = Connection::open(file(dir.path())).expect("it is a database");
    let change = "UPDATE search_docsize SET sz = x'01010101' WHERE id = 1";
    foreign.execute_batch(change).expect("it can be changed");
    drop(foreign);
    assert!(!verified_stamp::is_recorded(&noted));
    // While the stamps equal the recorded ones, the file is trusted until a caller doubts an answer.
    verified_stamp::record(&noted);
    let index = open(dir.path()).0;
    let look = index.looked().expect("it is readable");
    look.search(&Query::new("more")).expect("the file is trusted");
    assert_eq!(look.doubt().expect_err("all of it is read").code(), "index-damaged");
}

#[test]
fn a_truncated_stamp_or_one_of_another_file_is_not_accepted() {
    let dir = with_texts("old");
    let (noted, expected) = (index_file(dir.path()), ask(&open(dir.path()).0, "old"));
    let path = dir.path().join(format!("{}.proved", FullText::file_name()));
    let whole = content(&path);
    for end in 0..whole.len() {
        overwrite_all(&path, &whole[..end]);
        assert!(!verified_stamp::is_recorded(&noted), "{end}");
    }
    overwrite_all(&path, &whole);
    assert!(verified_stamp::is_recorded(&noted));
    delete(&path);
    assert_eq!(ask(&open(dir.path()).0, "old").ok(), expected.ok());
    assert!(verified_stamp::is_recorded(&noted), "the file is recorded as intact again");
    let copy = copy_of(dir.path());
    assert!(!verified_stamp::is_recorded(&index_file(copy.path())));
}

fn parts(index: &FullText) -> Vec<(String, i64, Vec<u8>)> {
    let mut all = index.store.connection.prepare("SELECT * FROM part ORDER BY 1, 2").expect("it is there");
    let all = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("it is readable");
    all.collect::<Result<_, _>>().expect("it is sound")
}

#[test]
fn checksums_updated_for_changed_rows_equal_newly_computed_ones() {
    let dir = with_texts("word 0");
    let mut index = open(dir.path()).0;
    let mut state = 7;
    // There are enough rounds for segments to be merged more than once.
    for round in 1..60 {
        let mut texts = texts(&format!("word {round}"));
        let n = random(&mut state) % 8;
        let gone = texts.split_off(usize::try_from(n).expect("it is small"));
        let gone: Vec<_> = gone.into_iter().take(2).map(|it| it.key).collect();
        put(&mut index, texts, &gone).expect("there is room");
        let kept = parts(&index);
        index.store.put(|it| checksums::keep_all(it)).expect("there is room");
        assert_eq!(kept, parts(&index), "round {round}");
    }
}

/// An index in this directory with one commit.
fn index_in(dir: &Path) -> Index {
    let mut index = Index::open(Place::Directory(dir)).expect("the directory can be written").0;
    index.write(&mut packed("old").map(Change::Put)).expect("they fit");
    index
}

#[test]
fn it_is_filled_from_one_commit_of_one_file_with_one_reader() {
    let (dir, other) = (tempfile::tempdir().expect("room"), tempfile::tempdir().expect("room"));
    let (mut index, mut made_anew) = (index_in(dir.path()), index_in(other.path()));
    let origin = |index: &mut Index, reader| {
        let seen = index.snapshot().expect("it is readable");
        (
            seen.generation().expect("it is sound"),
            seen.origin(reader).expect("it is sound").expect("it has one"),
        )
    };
    let (commit, first) = origin(&mut index, 1);
    let mut texts_of = open(dir.path()).0;
    let seen = texts_of.look().and_then(|it| it.seen()).expect("it is sound");
    let mut all = texts("old").into_iter();
    texts_of.write(&mut all, &[], seen, &mut || Some(first.clone())).expect("they fit");
    let is_from =
        |it: &Origin| texts_of.looked().and_then(|look| look.is_filled_from(it)).expect("it is sound");
    assert!(is_from(&first));
    assert!(!is_from(&origin(&mut index, 2).1));
    let (other, another) = origin(&mut made_anew, 1);
    assert_ne!(other, commit, "of another file");
    assert!(!is_from(&another));
    index.write(&mut packed("new").map(Change::Put)).expect("they fit");
    assert!(!is_from(&origin(&mut index, 1).1));
}

#[test]
fn a_write_without_a_current_origin_changes_nothing() {
    let dir = tempfile::tempdir().expect("room");
    let mut index = index_in(dir.path());
    let origin = index.snapshot().and_then(|it| it.origin(1)).expect("it is sound").expect("it has one");
    let mut texts_of = open(dir.path()).0;
    let seen = texts_of.look().and_then(|it| it.seen()).expect("it is sound");
    let mut write = |origin: Option<&Origin>| {
        let mut texts = texts("old").into_iter();
        texts_of.write(&mut texts, &[], seen, &mut || origin.cloned()).expect("there is room")
    };
    assert_eq!([write(Some(&origin)), write(None)], [true, false]);
    assert!(texts_of.look().and_then(|it| it.is_filled_from(&origin)).expect("it is sound"));
}

#[test]
fn a_failed_fill_leaves_the_earlier_texts() {
    let dir = with_texts("old");
    let mut index = open(dir.path()).0;
    let before = ask(&index, "old").expect("it is sound");
    let pages: i64 =
        index.store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).expect("n");
    index.store.connection.pragma_update(None, "max_page_count", pages).expect("it can be set");
    let much = (0..200).map(|n| format!("much{n} ")).collect::<String>().repeat(50);
    assert_eq!(put(&mut index, texts(&much), &[]).expect_err("there is no room").code(), "index-full");
    assert_eq!(ask(&index, "old").expect("it is sound"), before);
    drop(index);
    assert_eq!(ask(&open(dir.path()).0, "old").expect("it is sound"), before);
}
