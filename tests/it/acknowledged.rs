//! Commands run while an editor saves the same file: each acknowledged change is in the file, and no refused one is.
//!
//! The environment sets the time between saves, by default 1.5 ms. An editor that replaces a version without having read it
//! can remove an acknowledged change, or restore a refused one that was undone. The editor of this test exchanges the file
//! for its new one, and compares the replaced text with the text that it had read. In this way, such cases are detected, and
//! they are not counted against planwatch.
#![expect(clippy::unwrap_used, reason = "a failed step of the test is a failed test")]
#![expect(clippy::print_stdout, reason = "the figures are what `scripts/reliability` shows")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test plays the editors, and its size comes from the environment"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Place, Ran};

const STEP: &str = "---\nstatus: pending\n---\n# One\n\nWhat is to be done is said here, in more words than planwatch writes.\n";

/// Commands on one file. With more, the file would grow and slow them down.
const ROUND: usize = 60;

/// At most this many saves per command, which limits the size of the file.
const SAVES: usize = 40;

#[derive(Clone, Copy, Debug)]
enum Editor {
    /// Appends to the file at the path.
    Append,
    /// Exchanges the file for a new one.
    Exchange,
}

#[derive(Debug, Default)]
struct Tally {
    acknowledged: usize,
    refused: usize,
    saves: usize,
    overwritten: usize,
    brought_back: usize,
    missing: usize,
    doubled: usize,
    refused_but_there: usize,
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

/// A save over a version that the editor had not read.
struct Blind {
    read: String,
    overwritten: String,
}

/// Appends a line and saves.
fn save(editor: Editor, path: &Path, line: &str) -> Option<Blind> {
    if let Editor::Append = editor {
        fs::OpenOptions::new().append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
        return None;
    }
    let read = fs::read_to_string(path).unwrap();
    let beside = path.with_extension("md~");
    fs::write(&beside, format!("{read}{line}")).unwrap();
    renameat_with(CWD, &beside, CWD, path, RenameFlags::EXCHANGE).unwrap();
    let overwritten = fs::read_to_string(&beside).unwrap();
    (overwritten != read).then_some(Blind { read, overwritten })
}

/// A command, and the text that it writes into the file.
struct Change {
    token: String,
    words: Vec<String>,
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&it| it.to_owned()).collect()
}

fn change(n: usize) -> Change {
    let token = format!("word-{n}.");
    let words = match n % 4 {
        0 => words(&["set", "p:1", &format!("tags+={token}")]),
        1 => words(&["attempt", "p:1", &token, "--keep-status"]),
        2 => words(&["note", "p:1", &token]),
        _ => words(&["set", "p:1", &format!("goal-{n}"), &token]),
    };
    Change { token, words }
}

fn run(place: &Place, words: &[String]) -> Ran {
    Ran::of(place.command().args(words).output().unwrap())
}

/// Claims the step and fails it. Returns the message's token if both succeeded, `None` if one of the two was refused. An
/// error says what is wrong.
fn claim_and_fail(place: &Place, n: usize) -> Result<Option<String>, String> {
    let has_claim = |file: &str| file.contains("claim: {");
    // The claim stays if `fail` and `release` were refused.
    let had_claim = has_claim(&place.text("plans/p/step-1.md"));
    let claimed = run(place, &words(&["claim", "p:1", "--by", "worker", "--json"]));
    if claimed.code != 0 {
        let file = place.text("plans/p/step-1.md");
        return match has_claim(&file) && !had_claim {
            true => Err(format!("refused, but claimed: {claimed:?}\n{file}")),
            false => Ok(None),
        };
    }
    let id = claimed.json()["claim"]["id"].as_str().unwrap().to_owned();
    let token = format!("end-{n}.");
    let failed = run(place, &words(&["fail", "p:1", "--claim", &id, "-m", &token]));
    let file = place.text("plans/p/step-1.md");
    if failed.code != 0 {
        // The refused `fail` is not tried again. Instead, the claim is released. If the release fails, too, the claim stays
        // until the end of the round.
        place.command().args(["release", "p:1", "--claim", &id]).output().unwrap();
    }
    place.command().args(["set", "p:1", "status", "pending"]).output().unwrap();
    match failed.code {
        0 => Ok(Some(token)),
        _ if file.contains(&token) => Err(format!("refused, but done: {failed:?}\n{file}")),
        _ => Ok(None),
    }
}

fn round(editor: Editor, commands: usize, pace: Duration, tally: &mut Tally) {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", STEP);
    let path = place.file("plans/p/step-1.md");
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut given, mut refused, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let (blind, saves) = std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let (mut blind, mut saves) = (Vec::new(), 0);
            while !stop.load(Ordering::Relaxed) {
                if saves < (done.load(Ordering::Relaxed) + 1) * SAVES {
                    blind.extend(save(editor, &path, &format!("save-{saves}.\n")));
                    saves += 1;
                }
                std::thread::sleep(pace);
            }
            (blind, saves)
        });
        for n in 0..commands {
            if n % 5 == 4 {
                match claim_and_fail(&place, n) {
                    Ok(token) => given.extend(token),
                    Err(error) => wrong.push(error),
                }
            } else {
                let Change { token, words } = change(n);
                match run(&place, &words).code {
                    0 => given.push(token),
                    _ => refused.push(token),
                }
            }
            done.store(n + 1, Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
        editor.join().unwrap()
    });
    let file = fs::read_to_string(&path).unwrap();
    let is_overwritten = |token: &str| blind.iter().any(|it| it.overwritten.contains(token));
    let is_brought_back =
        |token: &str| blind.iter().any(|it| it.read.contains(token) && !it.overwritten.contains(token));
    for token in &given {
        match file.matches(token.as_str()).count() {
            0 if is_overwritten(token) => tally.overwritten += 1,
            0 => {
                tally.missing += 1;
                println!("missing {token}");
            }
            1 => {}
            _ => tally.doubled += 1,
        }
    }
    for token in refused.iter().filter(|it| file.contains(it.as_str())) {
        if is_brought_back(token) {
            tally.brought_back += 1;
        } else {
            tally.refused_but_there += 1;
            println!("refused but there {token}");
        }
    }
    tally.acknowledged += given.len();
    tally.refused += refused.len();
    tally.saves += saves;
    // A save over an unread version may have removed a claim from the file. After such a save, the errors of
    // `claim_and_fail` do not count.
    if blind.is_empty() {
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}

#[track_caller]
fn race(editor: Editor) {
    let commands = number("PLANWATCH_R4", ROUND);
    let pace = Duration::from_micros(number("PLANWATCH_R4_PACE", 1500) as u64);
    let (mut tally, mut left) = (Tally::default(), commands);
    while left > 0 {
        round(editor, left.min(ROUND), pace, &mut tally);
        left -= left.min(ROUND);
    }
    // The newline ends a line in which the test runner has printed a dot.
    println!("\nR4 acknowledged, {editor:?}, {pace:?} between saves: {tally:?}");
    // With 100 ms between saves, about one command in twenty meets a save.
    assert!(
        tally.saves > commands / 30 && tally.acknowledged > commands / 3,
        "too few commands met a save: {tally:?}"
    );
    assert_eq!((tally.missing, tally.doubled, tally.refused_but_there), (0, 0, 0), "{tally:?}");
}

#[test]
fn acknowledged_changes_are_in_a_file_that_an_editor_appends_to() {
    race(Editor::Append);
}

#[test]
fn acknowledged_changes_are_in_a_file_that_an_editor_replaces() {
    race(Editor::Exchange);
}

#[test]
fn edit_names_a_change_that_the_editor_has_overwritten() {
    let edit = |again: &str| {
        let place = Place::new();
        place.write("plans/p/step-1.md", STEP);
        let planwatch = env!("CARGO_BIN_EXE_planwatch");
        let script = format!(
            "cp \"$1\" old\n{planwatch} done p:1 -q\nif [ \"$AGAIN\" ]; then cp \"$1\" old; fi\necho more >> old\ncp old \"$1\"\n"
        );
        place.write("editor", script);
        let mut command = place.command();
        command.args(["edit", "p:1"]).env("EDITOR", "sh editor").env("AGAIN", again);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "edited p:1\n"), "{}", ran.stderr);
        (ran.stderr, place.text("plans/p/step-1.md").contains("status: completed"))
    };
    let (message, is_completed) = edit("");
    assert!(!is_completed && message.starts_with("note: `done` changed the file while"), "{message}");
    assert_eq!(edit("read it again"), (String::new(), true));
}
