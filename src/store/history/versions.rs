//! Reads the versions of files. Git prints them and several threads parse them, while the caller already uses the versions
//! that it requested first.

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::git::{Git, GitError};
use crate::plan::history::{FileChange, Place, Version};
use crate::plan::words::Words;
use crate::store::history::repository::{RawChange, Repository, content, unexpected};
use crate::store::load::parallel::{in_order, n_threads, taken};

/// How many versions one git process prints. Starting a process takes as long as printing a hundred versions.
const AT_ONCE: usize = 1_000;

/// How many versions a thread parses at once. Waking another thread takes longer than parsing most versions.
const SHARE: usize = 16;

/// The largest number of shares that wait to be parsed, and of parsed shares that wait to be used. This limits the memory.
const WAITING: usize = 16;

/// A slot for a version. It is filled after the slots of all versions that were requested before.
type Slot = Rc<OnceCell<Rc<Version>>>;

/// A changed file whose versions were requested.
pub(super) struct FileVersions {
    place: Place,
    path: String,
    old: Option<Slot>,
    new: Option<Slot>,
}

/// Returns versions in the order in which they were requested.
pub(super) struct Versions<'a> {
    context: &'a Context,
    repository: &'a Repository,
    /// Versions that were not requested from git yet.
    wanted: Vec<Wanted>,
    /// Versions that have not arrived yet, the next one first.
    expected: VecDeque<Slot>,
    /// For each path, the old version of the change that was requested last. It is usually the new version of the next
    /// older change. All other versions are dropped when the caller no longer uses them.
    last: HashMap<String, (String, Slot)>,
    parser: Option<Parser>,
}

impl<'a> Versions<'a> {
    pub(super) fn new(context: &'a Context, repository: &'a Repository) -> Self {
        let (last, expected) = (HashMap::new(), VecDeque::new());
        Self { context, repository, wanted: Vec::new(), expected, last, parser: None }
    }

    /// Requests the versions of files, and waits for them.
    pub(super) fn read(mut self, files: &[RawChange]) -> Result<Vec<FileChange>, Error> {
        let asked = self.ask(files);
        self.get(asked)
    }

    /// Requests the versions of one change. Newer changes have to be requested before older ones, so that a version that two
    /// changes share is requested once.
    pub(super) fn ask(&mut self, files: &[RawChange]) -> Vec<FileVersions> {
        let mut asked = Vec::with_capacity(files.len());
        for file in files {
            let Some((place, path)) = place(self.repository, file) else { continue };
            let new = file.new.as_ref().map(|oid| self.slot(oid, &place, &path));
            let old = file.old.as_ref().map(|oid| self.slot(oid, &place, &path));
            if let Some((oid, slot)) = file.old.as_ref().zip(old.as_ref()) {
                self.last.insert(path.clone(), (oid.clone(), Rc::clone(slot)));
            }
            if old.is_some() || new.is_some() {
                asked.push(FileVersions { place, path, old, new });
            }
        }
        asked
    }

    fn slot(&mut self, oid: &str, place: &Place, path: &str) -> Slot {
        if let Some((_, slot)) = self.last.get(path).filter(|it| it.0 == oid) {
            return Rc::clone(slot);
        }
        let slot = Slot::default();
        self.expected.push_back(Rc::clone(&slot));
        self.wanted.push(Wanted { oid: oid.to_owned(), place: place.clone(), path: path.to_owned() });
        if self.wanted.len() >= AT_ONCE {
            self.send();
        }
        slot
    }

    fn send(&mut self) {
        let start = || Parser::start(self.repository.git(), &self.context.config.words);
        let parser = self.parser.get_or_insert_with(start);
        // If the parser has ended, its error is in `parsed`.
        parser.ask.send(std::mem::take(&mut self.wanted)).ok();
    }

    /// Returns the files of a change with their versions. Waits until the versions are parsed.
    pub(super) fn get(&mut self, asked: Vec<FileVersions>) -> Result<Vec<FileChange>, Error> {
        let mut found = Vec::with_capacity(asked.len());
        for FileVersions { place, path, old, new } in asked {
            let new = new.map(|it| self.version(&it)).transpose()?;
            let old = old.map(|it| self.version(&it)).transpose()?;
            found.push(FileChange { path, place, old, new });
        }
        Ok(found)
    }

    fn version(&mut self, slot: &Slot) -> Result<Rc<Version>, Error> {
        loop {
            if let Some(version) = slot.get() {
                return Ok(Rc::clone(version));
            }
            // A request for fewer than `AT_ONCE` versions is sent only when everything that was sent before has arrived.
            // If it were sent earlier, each version could need its own git process.
            if !self.wanted.is_empty() && self.wanted.len() == self.expected.len() {
                self.send();
            }
            let next = self.parser.as_mut().and_then(|it| it.parsed.next()).zip(self.expected.pop_front());
            let Some((version, next)) = next else {
                return Err(unexpected("its output ended early".to_owned()).into());
            };
            next.set(Rc::new(version?)).ok();
        }
    }
}

/// The kind of a file of the repository, and its path below the plans directory.
pub(super) fn place(repository: &Repository, file: &RawChange) -> Option<(Place, String)> {
    let path = repository.inside(&file.path)?;
    Some((Place::of(&path)?, path))
}

/// A blob, and the kind and path of its file.
struct Wanted {
    oid: String,
    place: Place,
    path: String,
}

/// The versions that a thread parses at once. An error is always the last item.
type Share = Vec<Result<(Wanted, Vec<u8>), GitError>>;

/// The threads that read and parse versions.
struct Parser {
    ask: mpsc::Sender<Vec<Wanted>>,
    parsed: Box<dyn Iterator<Item = Result<Version, GitError>>>,
}

impl Parser {
    fn start(git: &Git, words: &Words) -> Self {
        let (ask, asked) = mpsc::channel();
        let (give, given) = mpsc::sync_channel(WAITING);
        let (tell, told) = mpsc::sync_channel(WAITING);
        let git = git.clone();
        thread::spawn(move || print(&git, &asked, &give));
        let given = Arc::new(Mutex::new(given));
        for _ in 0..n_threads() {
            let (given, tell, words) = (Arc::clone(&given), tell.clone(), words.clone());
            thread::spawn(move || {
                for (nth, share) in taken(&given) {
                    if tell.send((nth, parse(share, &words))).is_err() {
                        return;
                    }
                }
            });
        }
        Self { ask, parsed: Box::new(in_order(told).flatten()) }
    }
}

/// Reads the requested blobs from git. Ends after an error, or if the sender or the receiver is gone.
fn print(git: &Git, asked: &mpsc::Receiver<Vec<Wanted>>, give: &mpsc::SyncSender<(usize, Share)>) {
    let (mut nth, mut share) = (0, Share::new());
    for wanted in asked {
        let oids: Vec<String> = wanted.iter().map(|it| it.oid.clone()).collect();
        let mut wanted = wanted.into_iter();
        let printed = git.objects(&oids, |at, found| {
            let bytes = content(&oids[at], found)?;
            share.extend(wanted.next().map(|it| Ok((it, bytes))));
            if share.len() < SHARE {
                return Ok(());
            }
            let sent = give.send((nth, std::mem::take(&mut share)));
            nth += 1;
            sent.map_err(|_| unexpected(String::new()))
        });
        let is_over = printed.is_err();
        share.extend(printed.err().map(Err));
        if !share.is_empty() {
            if give.send((nth, std::mem::take(&mut share))).is_err() {
                return;
            }
            nth += 1;
        }
        if is_over {
            return;
        }
    }
}

fn parse(share: Share, words: &Words) -> Vec<Result<Version, GitError>> {
    let read = |(wanted, bytes): (Wanted, Vec<u8>)| Version::read(&wanted.place, &wanted.path, bytes, words);
    share.into_iter().map(|it| it.map(read)).collect()
}
