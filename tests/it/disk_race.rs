//! Editors save at full speed while planwatch writes.
//!
//! Every save that succeeded for the editor must be in the file, or stored and reported.
//! `scripts/reliability` sets the size and the pace with environment variables.
#![expect(clippy::unwrap_used, reason = "a failed step of the test is a failed test")]
#![expect(clippy::print_stdout, reason = "the figures are what `scripts/reliability` shows")]
#![expect(clippy::disallowed_methods, reason = "the test plays the editors, sized by the environment")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use planwatch::disk::{DiskError, PlansDir, RealDisk};

#[derive(Clone, Copy, Debug)]
enum Editor {
    /// Temporary file, then rename.
    Rename,
    /// Truncate, then write.
    Truncate,
    /// Write at the end.
    Append,
    /// Rename away, then create, as vim does.
    Away,
}

#[derive(Debug, Default)]
struct Tally {
    changes: usize,
    refused: usize,
    saves: usize,
    not_in_file: usize,
    lost: usize,
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

/// Saves `token` into the file. Returns whether the save succeeded for the editor.
fn save(editor: Editor, path: &Path, token: &str) -> std::io::Result<()> {
    let beside = path.with_extension("md~");
    let line = format!("{token}\n");
    match editor {
        Editor::Append => fs::OpenOptions::new().append(true).open(path)?.write_all(line.as_bytes()),
        Editor::Rename => {
            let text = fs::read_to_string(path)? + &line;
            fs::write(&beside, text)?;
            fs::rename(&beside, path)
        }
        Editor::Truncate => {
            let text = fs::read_to_string(path)? + &line;
            fs::OpenOptions::new().write(true).truncate(true).open(path)?.write_all(text.as_bytes())
        }
        Editor::Away => {
            let text = fs::read_to_string(path)? + &line;
            fs::rename(path, &beside)?;
            fs::File::create_new(path)?.write_all(text.as_bytes())
        }
    }
}

/// planwatch's edit: sets the number in the first line.
fn set_number(bytes: &[u8], n: usize) -> Vec<u8> {
    let rest = if bytes.starts_with(b"engine: ") {
        bytes.iter().position(|&byte| byte == b'\n').map_or(&[][..], |end| &bytes[end + 1..])
    } else {
        bytes
    };
    [format!("engine: {n}\n").as_bytes(), rest].concat()
}

const SAVES_PER_CHANGE: usize = 10;

/// Stops the editor even if an assertion fails, so that the test ends.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The name under which the editor saves.
#[derive(Clone, Copy, Debug)]
enum Name {
    /// The file's only name.
    Own,
    /// A hard link outside the plans directory.
    Link,
}

/// Races one editor against `changes` changes of a fresh file.
fn round(editor: Editor, name: Name, changes: usize, pace: Duration, tally: &mut Tally) {
    let dir = crate::support::temporary();
    let root = dir.path().join("plans");
    let path = root.join("p/step-1.md");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "engine: 0\n").unwrap();
    let edited = match name {
        Name::Own => path.clone(),
        Name::Link => dir.path().join("link.md"),
    };
    if let Name::Link = name {
        fs::hard_link(&path, &edited).unwrap();
    }
    let plans = PlansDir::open(Arc::new(RealDisk), &root, Some(&dir.path().join("state"))).unwrap();
    let stop = AtomicBool::new(false);
    let done = AtomicUsize::new(0);
    let mut saved = Vec::new();
    std::thread::scope(|scope| {
        let saves = scope.spawn(|| {
            let mut saved = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                // The bound limits the size of the file while planwatch waits for the disk.
                if saved.len() > (done.load(Ordering::Relaxed) + 1) * SAVES_PER_CHANGE {
                    std::thread::yield_now();
                    continue;
                }
                let token = format!("save-{}.", saved.len());
                if save(editor, &edited, &token).is_ok() {
                    saved.push(token);
                }
                std::thread::sleep(pace);
            }
            saved
        });
        let _stop = StopAtEnd(&stop);
        for n in 1..=changes {
            done.store(n, Ordering::Relaxed);
            let mut locked = plans.lock(&mut || {}).unwrap();
            let changed = locked.change(Path::new("p/step-1.md"), &mut |bytes, _| Some(set_number(bytes, n)));
            match changed {
                Ok(_) => {}
                Err(
                    DiskError::FileChanged { .. }
                    | DiskError::HalfSaved { .. }
                    | DiskError::InUse { .. }
                    | DiskError::NotFound { .. },
                ) => tally.refused += 1,
                Err(error) => panic!("{error:?}"),
            }
            drop(locked);
            std::thread::sleep(pace);
        }
        stop.store(true, Ordering::Relaxed);
        saved = saves.join().unwrap();
    });
    let file = fs::read_to_string(&edited).unwrap();
    let kept: Vec<_> =
        plans.kept().iter().map(|it| fs::read_to_string(root.join(&it.kept)).unwrap()).collect();
    tally.changes += changes;
    tally.saves += saved.len();
    // The text is searched, not the lines, because a save may be based on a version that another save had truncated.
    for token in saved.iter().filter(|token| !file.contains(token.as_str())) {
        tally.not_in_file += 1;
        tally.lost += usize::from(!kept.iter().any(|text| text.contains(token.as_str())));
    }
}

/// An editor opens the file, waits while many large versions are displaced and removed, and then saves into its old inode.
#[test]
fn a_late_save_into_an_open_file_is_stored() {
    let dir = crate::support::temporary();
    let root = dir.path().join("plans");
    let path = root.join("p/step-1.md");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "engine: 0\n").unwrap();
    let plans = PlansDir::open(Arc::new(RealDisk), &root, Some(&dir.path().join("state"))).unwrap();
    let mut editor = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let displaced = root.join(".planwatch/displaced");
    // If there are too many displaced versions, all are removed early, except the one that the editor has open.
    let text = "x".repeat(1 << 20);
    let n_written = (1..1000).find(|n| {
        let mut locked = plans.lock(&mut || {}).unwrap();
        let edit = &mut |_: &[u8], _: &[Vec<u8>]| Some(format!("{n}\n{text}").into_bytes());
        locked.change(Path::new("p/step-1.md"), edit).unwrap();
        drop(locked);
        fs::read_dir(&displaced).unwrap().count() < *n
    });
    assert!(n_written > Some(16), "{n_written:?}");
    editor.write_all(b"late\n").unwrap();
    let kept = plans.kept();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(root.join(&kept[0].kept)).unwrap(), "engine: 0\nlate\n");
}

/// Runs at least the number of changes set by the environment, in rounds of up to 100: `PLANWATCH_R4` at full speed, or
/// `PLANWATCH_R5` at a person's pace.
#[track_caller]
fn race(editor: Editor) {
    const ROUND: usize = 100;
    let paced = number("PLANWATCH_R5", 0);
    let (figure, changes, pace) = match paced {
        0 => ("R4", number("PLANWATCH_R4", ROUND), Duration::ZERO),
        _ => ("R5", paced, Duration::from_millis(20)),
    };
    let mut tally = Tally::default();
    while tally.changes < changes {
        round(editor, Name::Own, ROUND.min(changes), pace, &mut tally);
    }
    // The newline ends a line in which the test runner has printed a dot.
    println!("\n{figure} {editor:?}: {tally:?}");
    assert!(tally.saves > 0, "the editor never saved");
    assert_eq!(tally.lost, 0, "saves that are neither in the file nor stored");
    if !pace.is_zero() {
        assert!(tally.not_in_file * 200 <= tally.saves, "more than 0.5 % of the saves are not in the file");
    }
}

/// As [`race`], on a file with two hard links; the editor uses the second. planwatch writes such a file in place, and the
/// editor waits until the file is written. The editor pauses between saves, because planwatch cannot write while the editor
/// has the file open.
#[track_caller]
fn race_through_a_link(editor: Editor) {
    let mut tally = Tally::default();
    let changes = number("PLANWATCH_R4", 100);
    round(editor, Name::Link, changes, Duration::from_millis(3), &mut tally);
    println!("\nR4 {editor:?} through a hard link: {tally:?}");
    assert!(tally.saves > 0, "the editor never saved");
    assert!(tally.refused < tally.changes, "planwatch never wrote");
    assert_eq!(tally.lost, 0, "saves that are neither in the file nor stored");
}

#[test]
fn no_save_by_truncation_through_a_hard_link_is_lost() {
    race_through_a_link(Editor::Truncate);
}

#[test]
fn no_save_at_the_end_through_a_hard_link_is_lost() {
    race_through_a_link(Editor::Append);
}

#[test]
fn no_save_by_rename_is_lost() {
    race(Editor::Rename);
}

#[test]
fn no_save_by_truncation_is_lost() {
    race(Editor::Truncate);
}

#[test]
fn no_save_at_the_end_is_lost() {
    race(Editor::Append);
}

#[test]
fn no_save_of_vim_is_lost() {
    race(Editor::Away);
}
