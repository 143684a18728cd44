//! A question that many processes ask at once, and that one of them answers for all.
//!
//! An answer is good for everybody who asked before it was begun: it tells how things were at a moment after that. So
//! whoever asks notes the number of the answer that was begun last, and takes any later one. Who finds none makes the
//! next, and the others wait for it.
//!
//! One file in `.planwatch` has it all: the number that was begun last, then the last answer, its own number, and a
//! hash, because who writes may be killed. It is the lock, too. Nothing is synced: no asker outlives a power cut.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::file_system::{Disk, DiskFile, FileKind, Open};
use super::plans_dir::PlansDir;

/// Beyond this nobody waits for another one's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// No answer is longer.
const LIMIT: u64 = 1 << 20;

/// The digits of a number and the end of its line.
const NUMBER: usize = 17;

/// The digits of a hash and the end of its line.
const HASH: usize = 65;

/// What was asked at a moment.
#[derive(Debug)]
pub struct Question {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// The last answer that had been begun by then.
    begun: u64,
}

/// What became of a question.
#[derive(Debug)]
pub enum Turn {
    /// Somebody has begun this answer after it was asked.
    Answered(Vec<u8>),
    /// Nobody has; others wait until it is answered or dropped. With it comes the last answer, if there is one: it was
    /// begun too early to be taken unseen.
    Yours(Answering, Option<Vec<u8>>),
    /// Nobody can wait or be waited for here.
    Alone,
}

/// The right to answer.
#[derive(Debug)]
pub struct Answering {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    number: u64,
    lock: Box<dyn DiskFile>,
}

impl PlansDir {
    /// Notes that this is asked now, for a change; none where planwatch can keep nothing.
    pub fn ask(&self, name: &str) -> Option<Question> {
        let path = self.made_runtime_dir()?.join(name);
        let bytes = read_beginning(&*self.disk, &path).ok()?;
        let begun = if bytes.is_empty() { 0 } else { read_number(&bytes)? };
        Some(Question { disk: Arc::clone(&self.disk), path, begun })
    }
}

impl Question {
    /// Waits for whoever is answering, and returns an answer that was begun after this was asked, if there is one.
    ///
    /// `wait` is called before an answer is begun: it is good for all who ask until that returns.
    pub fn turn(self, wait: impl FnOnce()) -> Turn {
        self.answered(wait).unwrap_or(Turn::Alone)
    }

    fn answered(self, wait: impl FnOnce()) -> Option<Turn> {
        let Self { disk, path, begun } = self;
        let lock = disk.lock(&path, PATIENCE).ok()??;
        if !is_at(&*disk, &*lock, &path) {
            return None;
        }
        let bytes = lock.read(LIMIT, lock.stat().ok()?.len).ok()?;
        let last = match read_answer(&bytes) {
            Some((number, answer)) if number > begun => return Some(Turn::Answered(answer.to_vec())),
            last => last.map(|(_, answer)| answer.to_vec()),
        };
        wait();
        // After the other numbers, also where the file was lost meanwhile.
        let number = read_number(&bytes).unwrap_or(0).max(begun).checked_add(1)?;
        lock.write(line(number).as_bytes()).ok()?;
        Some(Turn::Yours(Answering { disk, path, number, lock }, last))
    }
}

impl Answering {
    /// Leaves the answer for those who asked before it was begun; if that fails they find their own.
    pub fn answer(self, answer: &[u8]) {
        let Self { disk, path, number, lock } = self;
        let Ok(file) = disk.open(&path, Open::InPlace) else { return };
        if !is_same(&*lock, &*file) {
            return;
        }
        let mut bytes = line(number).into_bytes();
        bytes.extend(hash(number, answer).into_bytes());
        bytes.extend(line(number).into_bytes());
        bytes.extend(answer);
        if bytes.len() as u64 <= LIMIT && file.write(&bytes).is_ok() {
            file.set_len(bytes.len() as u64).ok();
        }
    }
}

/// Whether the lock still is on the file of this name.
fn is_at(disk: &dyn Disk, lock: &dyn DiskFile, path: &Path) -> bool {
    let (Ok(mine), Ok(there)) = (lock.stat(), disk.lstat(path)) else { return false };
    (mine.ino, mine.dev) == (there.ino, there.dev)
}

/// Reads the number that was begun last; nothing where there is no such file.
fn read_beginning(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    match disk.open(path, Open::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(file) if file.stat()?.kind != FileKind::File => Ok(Vec::new()),
        Ok(file) => file.read(NUMBER as u64, NUMBER as u64 - 1),
    }
}

fn is_same(one: &dyn DiskFile, other: &dyn DiskFile) -> bool {
    let (Ok(one), Ok(other)) = (one.stat(), other.stat()) else { return false };
    (one.ino, one.dev) == (other.ino, other.dev)
}

fn line(number: u64) -> String {
    format!("{number:016x}\n")
}

fn hash(number: u64, answer: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(answer);
    format!("{}\n", hasher.finalize().to_hex())
}

fn read_number(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes.get(..NUMBER)?).ok()?.strip_suffix('\n')?;
    u64::from_str_radix(text, 16).ok()
}

fn read_answer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (said, rest) = bytes.get(NUMBER..)?.split_at_checked(HASH)?;
    let number = read_number(rest)?;
    let answer = &rest[NUMBER..];
    (said == hash(number, answer).as_bytes()).then_some((number, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    fn plans() -> PlansDir {
        Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans()
    }

    fn ask(plans: &PlansDir) -> Question {
        plans.ask("q").unwrap()
    }

    fn answering(turn: Turn) -> Answering {
        match turn {
            Turn::Yours(it, _) => it,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check(turn: Turn, expected: Option<&str>) {
        match (turn, expected) {
            (Turn::Answered(bytes), Some(expected)) => {
                assert_eq!(String::from_utf8(bytes).unwrap(), expected);
            }
            (Turn::Yours(..), None) => {}
            (turn, expected) => panic!("{turn:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn an_answer_is_for_those_who_asked_before_it_was_begun() {
        let plans = plans();
        let (first, second) = (ask(&plans), ask(&plans));
        let mine = answering(first.turn(|| {}));
        let late = ask(&plans);
        mine.answer(b"one");
        let later = ask(&plans);
        check(second.turn(|| {}), Some("one"));
        // Begun before it was asked.
        let mine = answering(late.turn(|| {}));
        mine.answer(b"two, and longer");
        check(later.turn(|| {}), Some("two, and longer"));
        check(ask(&plans).turn(|| {}), None);
    }

    #[test]
    fn who_is_to_answer_is_given_the_last_answer() {
        let plans = plans();
        let given = || match ask(&plans).turn(|| {}) {
            Turn::Yours(answering, last) => (answering, last),
            other => panic!("{other:?}"),
        };
        let (mine, last) = given();
        assert_eq!(last, None);
        mine.answer(b"one");
        // Who dies without an answer takes none away.
        let (dropped, last) = given();
        assert_eq!(last.as_deref(), Some(&b"one"[..]));
        drop(dropped);
        assert_eq!(given().1.as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn a_shorter_answer_leaves_nothing_of_a_longer_one() {
        let plans = plans();
        for text in ["a long answer", "short", ""] {
            let (first, second) = (ask(&plans), ask(&plans));
            answering(first.turn(|| {})).answer(text.as_bytes());
            check(second.turn(|| {}), Some(text));
        }
    }

    #[test]
    fn an_answer_that_was_begun_and_not_given_is_nobodys() {
        let plans = plans();
        let (first, second) = (ask(&plans), ask(&plans));
        drop(answering(first.turn(|| {})));
        check(second.turn(|| {}), None);
    }

    #[test]
    fn what_was_cut_short_or_damaged_is_no_answer() {
        let mut whole = line(3).into_bytes();
        whole.extend(hash(3, b"text").into_bytes());
        whole.extend(line(3).into_bytes());
        whole.extend(b"text");
        assert_eq!(read_answer(&whole), Some((3, &b"text"[..])));
        for len in 0..whole.len() {
            assert_eq!(read_answer(&whole[..len]), None, "{len}");
        }
        for at in NUMBER..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(read_answer(&damaged), None, "{at}");
        }
    }
}
