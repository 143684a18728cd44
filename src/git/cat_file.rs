//! Reads objects with one `git cat-file` process.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read};

use super::call::Stream;
use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;

/// The size limit of objects, in bytes. Larger objects are not plan files.
const MOST: u64 = 64 << 20;

/// The line that git prints before an object's bytes. With `--batch-check`, git prints only this line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub oid: Oid,
    pub kind: String,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub oid: Oid,
    /// `blob`, `tree`, `commit` or `tag`.
    pub kind: String,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Object(Object),
    /// The bytes of the object were skipped.
    TooLarge(Info),
    Missing,
}

impl Found {
    /// The bytes, if the object is a blob and not too large.
    pub fn blob(self) -> Option<Vec<u8>> {
        match self {
            Self::Object(it) if it.kind == "blob" => Some(it.bytes),
            _ => None,
        }
    }
}

/// Parses a line of `cat-file`; `None` if there is no such object, or if it is not a blob, a tree, a commit or a tag.
pub fn read_info(line: &[u8]) -> Option<Info> {
    let mut words = line.split(|it| *it == b' ');
    let (oid, kind, size) = (words.next()?, words.next()?, words.next()?);
    let is_known = [&b"blob"[..], b"tree", b"commit", b"tag"].contains(&kind);
    let size = std::str::from_utf8(size).ok().filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?;
    let info = Info {
        oid: Oid::read(oid)?,
        kind: String::from_utf8_lossy(kind).into_owned(),
        size: size.parse().ok()?,
    };
    (is_known && words.next().is_none()).then_some(info)
}

/// A running `git cat-file --batch`.
pub struct CatFile {
    stream: BufReader<Stream>,
    most: u64,
    /// Whether the line of an object could not be read, usually because git's output has ended.
    has_ended: bool,
}

impl CatFile {
    pub fn open(git: &Git) -> Result<Self, GitError> {
        let stream = git.call(&["cat-file", "--batch"]).open()?;
        Ok(Self::of(stream))
    }

    /// Reads one object by a name such as an oid, `OID:path` or `:2:path`. A name that is empty or contains a line break
    /// or NUL counts as missing, because the protocol cannot express it.
    pub fn read(&mut self, name: &[u8]) -> Result<Found, GitError> {
        if !is_sendable(name) {
            return Ok(Found::Missing);
        }
        let pipes = &mut self.stream.get_mut().pipes;
        pipes.send(name);
        pipes.send(b"\n");
        self.answer()
    }

    /// Reads many objects, and calls `each` in the order of the names.
    pub fn read_all(
        &mut self,
        names: &[impl AsRef<[u8]>],
        each: impl FnMut(usize, Found) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        self.stream.get_mut().pipes.send(&lines(names));
        self.answers(names, each)
    }

    fn answers(
        &mut self,
        names: &[impl AsRef<[u8]>],
        mut each: impl FnMut(usize, Found) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        for (at, name) in names.iter().enumerate() {
            let found = if is_sendable(name.as_ref()) { self.answer()? } else { Found::Missing };
            each(at, found)?;
        }
        Ok(())
    }

    fn of(stream: Stream) -> Self {
        Self { stream: BufReader::with_capacity(64 << 10, stream), most: MOST, has_ended: false }
    }

    fn answer(&mut self) -> Result<Found, GitError> {
        let line = line(&mut self.stream);
        self.has_ended = line.is_err();
        let Some(info) = read_info(&line?) else { return Ok(Found::Missing) };
        let is_kept = info.size <= self.most;
        let mut bytes = Vec::new();
        let mut object = (&mut self.stream).take(info.size);
        let read = match is_kept {
            true => object.read_to_end(&mut bytes).map(|it| it as u64),
            false => std::io::copy(&mut object, &mut std::io::sink()),
        };
        let mut end = [0];
        let is_whole = read.is_ok_and(|it| it == info.size) && self.stream.read_exact(&mut end).is_ok();
        if !is_whole || end != *b"\n" {
            return Err(GitError::unexpected("cat-file", "an object ended early"));
        }
        let Info { oid, kind, size } = info;
        Ok(match is_kept {
            true => Found::Object(Object { oid, kind, bytes }),
            false => Found::TooLarge(Info { oid, kind, size }),
        })
    }
}

/// Reads files by the names of their objects. One process reads all of them; it starts with the first read.
pub struct Blobs<'a> {
    git: &'a Git,
    running: RefCell<Option<CatFile>>,
}

impl Blobs<'_> {
    /// The bytes of a file. An object that is not a file or is too large is an error, and so is a missing one
    /// ([`GitError::NotFetched`]): the repository names it, so only a partial clone lacks it.
    pub fn read(&self, oid: &Oid) -> Result<Vec<u8>, GitError> {
        match self.look_up(oid.as_str().as_bytes())? {
            Found::Missing => Err(GitError::NotFetched { oid: oid.to_string() }),
            found => found.blob().ok_or_else(|| GitError::NoRevision { revision: oid.to_string() }),
        }
    }

    /// Like [`Self::read`], by any name such as `OID:path`; `None` if there is no such file, if it is too large, or if a
    /// partial clone lacks it.
    pub fn find(&self, name: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        self.look_up(name).map(Found::blob)
    }

    fn look_up(&self, name: &[u8]) -> Result<Found, GitError> {
        let running = self.running.take();
        let mut objects = running.map_or_else(|| CatFile::open(self.git), Ok)?;
        let found = match objects.read(name) {
            Err(_) if objects.has_ended => {
                return match objects.stream.into_inner().finish().map_err(not_fetched) {
                    Err(GitError::NotFetched { .. }) => Ok(Found::Missing),
                    ended => ended.and(Err(GitError::unexpected("cat-file", "an answer ended early"))),
                };
            }
            found => found?,
        };
        // After an error this line is not reached, and the process is not used again: its next output could belong to
        // another object.
        self.running.replace(Some(objects));
        Ok(found)
    }
}

impl Git {
    pub fn blobs(&self) -> Blobs<'_> {
        Blobs { git: self, running: RefCell::new(None) }
    }

    /// Reads many objects with one process, and calls `each` in the order of the names.
    pub fn objects(
        &self,
        names: &[impl AsRef<[u8]>],
        each: impl FnMut(usize, Found) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        if names.is_empty() {
            return Ok(());
        }
        let call = self.call(&["cat-file", "--batch", "--buffer"]);
        let stream = call.input(lines(names)).stream()?;
        let mut objects = CatFile::of(stream);
        let answered = objects.answers(names, each);
        if objects.has_ended || answered.is_ok() {
            // If git failed, its own error message is more specific.
            objects.stream.into_inner().finish().map_err(not_fetched)?;
        }
        answered
    }

    /// Finds the object that each name refers to, without reading its bytes. One process finds all of them.
    pub fn object_infos(&self, names: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Info>>, GitError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.call(&["cat-file", "--batch-check", "--buffer"]).input(lines(names)).run()?;
        let mut answers = answers.split(|it| *it == b'\n');
        let mut answer = || {
            let line = answers.next().filter(|it| !it.is_empty());
            line.map(read_info).ok_or_else(|| GitError::unexpected("cat-file", "fewer lines than names"))
        };
        names.iter().map(|it| if is_sendable(it.as_ref()) { answer() } else { Ok(None) }).collect()
    }
}

/// Git before 2.45 fails with an error for an object that is not fetched; later versions report it as missing.
fn not_fetched(error: GitError) -> GitError {
    match error {
        GitError::Failed { text, .. } if text.contains("from promisor remote") => {
            let oid = text.split_whitespace().find(|it| Oid::read(it.as_bytes()).is_some());
            GitError::NotFetched { oid: oid.unwrap_or_default().to_owned() }
        }
        error => error,
    }
}

fn is_sendable(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|it| matches!(it, b'\n' | 0))
}

/// The names that the protocol can express, one per line.
fn lines(names: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let sendable = names.iter().map(AsRef::as_ref).filter(|it| is_sendable(it));
    sendable.flat_map(|it| [it, &b"\n"[..]].concat()).collect()
}

fn line(from: &mut impl BufRead) -> Result<Vec<u8>, GitError> {
    let mut line = Vec::new();
    let read = from.take(64 << 10).read_until(b'\n', &mut line);
    match (read, line.pop()) {
        (Ok(_), Some(b'\n')) => Ok(line),
        _ => Err(GitError::unexpected("cat-file", "an answer ended early")),
    }
}
