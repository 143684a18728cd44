//! `trust`: what came with a repository runs only after somebody on this machine has said so.
//!
//! Said is it of a file's path and of the hash of exactly what would run, in records that lie in the user's state
//! directory; after any change of the command, its directory or the program that it names it has to be said again.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::disk::UserStore;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::plan::time::Time;

/// The kind of the records.
const KIND: &str = "trust";

/// Something that would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// For people: `the script `build``.
    pub what: String,
    /// What `planwatch trust` calls it.
    pub name: String,
    /// The file that says so, absolute.
    pub path: PathBuf,
    pub command: String,
    /// From the repository's root; `.` is that itself.
    pub directory: String,
    /// Of exactly what would run; the same in every copy of the repository.
    pub hash: String,
}

/// The file that a command begins with, as far as it belongs to the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program<'a> {
    /// None, or one that the system has.
    Elsewhere,
    Bytes(&'a [u8]),
    /// It is there and could not be read.
    Unread,
}

/// The hash of what would run: each part with its length, so that none can pass for the other.
pub fn hash(command: &str, directory: &str, program: Program<'_>) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("planwatch 2026 trust: command, directory, program");
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(command.as_bytes());
    part(directory.as_bytes());
    match program {
        Program::Elsewhere => part(b"elsewhere"),
        Program::Unread => part(b"unread"),
        Program::Bytes(bytes) => {
            part(b"bytes");
            part(bytes);
        }
    }
    let mut hash = hasher.finalize().to_hex().to_string();
    hash.truncate(32);
    hash
}

/// What somebody trusts on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    pub path: PathBuf,
    pub hash: String,
    pub command: String,
    pub directory: String,
    pub at: Option<Time>,
}

impl Trusted {
    pub fn to_json(&self) -> Value {
        let at = self.at.map(|it| it.to_string());
        let path = self.path.to_string_lossy();
        json!({"path": path, "hash": self.hash, "command": self.command, "directory": self.directory, "at": at})
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let record: Value = serde_json::from_slice(bytes).ok()?;
        let text = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
        let (path, at) = (PathBuf::from(text("path")?), text("at").and_then(|it| it.parse().ok()));
        Some(Self { path, hash: text("hash")?, command: text("command")?, directory: text("directory")?, at })
    }
}

/// The name of the record of a file and a hash.
fn record_name(path: &Path, hash: &str) -> String {
    let both = format!("{}\0{hash}", path.display());
    blake3::hash(both.as_bytes()).to_hex().to_string()
}

fn store(context: &Context) -> Option<UserStore> {
    context.plans.user_store(KIND, &context.here.root)
}

/// Returns whether somebody has said that exactly this may run.
pub fn is_trusted(context: &Context, subject: &Subject) -> bool {
    let record = store(context).and_then(|it| it.read(&record_name(&subject.path, &subject.hash)));
    // A record of another name than its own was put there by somebody else.
    record
        .and_then(|it| Trusted::read(&it))
        .is_some_and(|it| it.path == subject.path && it.hash == subject.hash)
}

/// Refuses what is not trusted; `given` is a hash that somebody typed for this once.
pub fn check(context: &Context, subject: &Subject, given: Option<&str>) -> Result<(), Error> {
    match given {
        Some(given) if given == subject.hash => Ok(()),
        Some(given) => Err(other_hash(subject, given)),
        None if is_trusted(context, subject) => Ok(()),
        None => Err(refused(subject)),
    }
}

/// The refusal, with everything that somebody has to read before saying yes.
pub fn refused(subject: &Subject) -> Error {
    let Subject { what, name, command, directory, hash, .. } = subject.clone();
    Error::NotTrusted { what, name, command, directory, hash }
}

fn other_hash(subject: &Subject, given: &str) -> Error {
    let Subject { what, name, hash, .. } = subject;
    Error::Conflict {
        code: "trust-hash-differs",
        message: format!("the hash of {what} is {hash}, not {given}"),
        hint: format!("read what would run: `planwatch script show {name}`"),
    }
}

/// Remembers that exactly this may run.
pub fn trust(context: &Context, subject: &Subject, given: Option<&str>) -> Result<(), Error> {
    if let Some(other) = given.filter(|it| *it != subject.hash) {
        return Err(other_hash(subject, other));
    }
    let store = store(context).ok_or_else(no_store)?;
    let trusted = Trusted {
        path: subject.path.clone(),
        hash: subject.hash.clone(),
        command: subject.command.clone(),
        directory: subject.directory.clone(),
        at: Some(context.now),
    };
    let record = format!("{}\n", trusted.to_json());
    Ok(store.put(&record_name(&subject.path, &subject.hash), record.as_bytes())?)
}

fn no_store() -> Error {
    let message = "there is no place outside the repository to remember it in";
    let hint = "set XDG_STATE_HOME to a directory of your own, or use --trust-hash each time";
    Error::Failed { code: "no-state-directory", message: message.to_owned(), hint: hint.to_owned() }
}

/// Lists everything that is trusted on this machine, by path.
pub fn list(context: &Context) -> Vec<Trusted> {
    let Some(store) = store(context) else { return Vec::new() };
    let read = |name: &String| store.read(name).as_deref().and_then(Trusted::read);
    let mut all: Vec<_> = store.names().iter().filter_map(read).collect();
    all.sort_by(|a, b| (&a.path, &a.hash).cmp(&(&b.path, &b.hash)));
    all
}

/// Forgets everything that was said of these files, whatever their hash was; returns what that was.
pub fn revoke(context: &Context, is_meant: &dyn Fn(&Path) -> bool) -> Result<Vec<Trusted>, Error> {
    let Some(store) = store(context) else { return Ok(Vec::new()) };
    let mut gone = Vec::new();
    for trusted in list(context).into_iter().filter(|it| is_meant(&it.path)) {
        if store.remove(&record_name(&trusted.path, &trusted.hash))? {
            gone.push(trusted);
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_would_run_otherwise_has_another_hash() {
        let all = [
            hash("make", ".", Program::Elsewhere),
            hash("make ", ".", Program::Elsewhere),
            hash("make", "web", Program::Elsewhere),
            hash("make.", "", Program::Elsewhere),
            hash("./b", ".", Program::Bytes(b"")),
            hash("./b", ".", Program::Bytes(b"unread")),
            hash("./b", ".", Program::Unread),
            hash("./b", ".", Program::Elsewhere),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(hash("make", ".", Program::Elsewhere), all[0]);
    }
}
