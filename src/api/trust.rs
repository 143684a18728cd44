//! `trust`: commands that came with a repository run only after a user of this machine has trusted them.
//!
//! A record in the user's state directory contains the path of the command's file and the hash of exactly what would run. If
//! the command, its directory or a file that it names changes, the user has to trust the command again.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::UserStore;
use crate::plan::time::Time;
use crate::text::shell::{self, Role};
use crate::text::typed::shell_word;

const KIND: &str = "trust";

/// A command that runs only if it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its name for people, such as ``the script `build` ``.
    pub what: String,
    /// Its name as an argument of `planwatch trust`.
    pub name: String,
    /// The absolute path of the file with the command. For an agent, the configuration's path followed by `agents/NAME`.
    pub path: PathBuf,
    pub command: String,
    /// Relative to the repository's root; `.` is the root itself.
    pub directory: String,
    /// A hash of exactly what would run; the same in every copy of the repository.
    pub hash: String,
    /// The files and directories of the repository that the hash covers ([`Covered::files`]).
    pub files: Vec<String>,
    /// Why the command cannot be trusted; `None` if it can be trusted.
    pub fault: Option<String>,
}

/// What trust in a command covers: the files, and a hash of the command, its directory and these files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    pub hash: String,
    /// The files and directories that the hash covers, relative to the repository's root. Directories end with `/`, and `./`
    /// is the whole repository.
    pub files: Vec<String>,
    /// Why the command cannot be trusted; `None` if it can be trusted.
    pub fault: Option<String>,
}

/// Finds out what a command line for a shell would run in a directory of the repository. `real` is that directory's path;
/// `None` if it cannot be resolved inside the repository.
///
/// The hash covers the line, the directory, and the contents of all files and directories of the repository that a word of
/// the line names. A word can name a path relative to the directory, to the repository's root, or to a directory that
/// another word names. [`shell::read`] leaves out files that the line only writes or tests. A word that is probably the name
/// of a task, such as `build` in `make build`, is not taken for a directory.
///
/// If some words are known only when the line runs, the hash covers the whole repository, except git's and planwatch's own
/// directories and the files of plans and steps.
pub(crate) fn covered(context: &Context, line: &str, directory: &str, real: Option<&Path>) -> Covered {
    let root = &context.here.root;
    let read = shell::read(line);
    let mut covered = context.plans.covered(root);
    let names: Vec<(&str, Role)> =
        read.words.iter().flat_map(|word| word.names().into_iter().map(|it| (it, word.role))).collect();
    let directories = names.iter().filter(|(_, role)| *role != Role::File).map(|(name, _)| *name);
    let bases = covered.bases(real.map(Path::to_path_buf), &directories);
    for (name, role) in &names {
        covered.add(&bases, name, *role == Role::Any);
    }
    if read.unknown.is_some() {
        covered.add_everything();
    }
    let coverage = covered.end();
    let unknown = read.unknown.map(|it| format!("{it}, so all files of the repository are covered, and "));
    let fault = coverage.fault.map(|it| format!("{}{it}", unknown.unwrap_or_default()));
    let real = real.map(|it| it.strip_prefix(root).unwrap_or(it).to_string_lossy().into_owned());
    let parts = [line.as_bytes(), directory.as_bytes(), real.unwrap_or_default().as_bytes(), &coverage.hash]
        .map(<[u8]>::to_vec);
    Covered { hash: hash(&parts), files: coverage.named, fault }
}

/// The hash of several parts. The length of each part is hashed, too, so that `ab`, `c` and `a`, `bc` give different hashes.
pub(crate) fn hash(parts: &[impl AsRef<[u8]>]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("planwatch 2026-12 trust: command, directory, files");
    for part in parts.iter().map(AsRef::as_ref) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut hash = hasher.finalize().to_hex().to_string();
    hash.truncate(32);
    hash
}

/// The record of a command that is trusted on this machine.
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

fn record_name(path: &Path, hash: &str) -> String {
    let both = format!("{}\0{hash}", path.display());
    blake3::hash(both.as_bytes()).to_hex().to_string()
}

fn store(context: &Context) -> Option<UserStore> {
    context.plans.user_store(KIND, &context.here.root)
}

pub fn is_trusted(context: &Context, subject: &Subject) -> bool {
    if subject.fault.is_some() {
        return false;
    }
    let record = store(context).and_then(|it| it.read(&record_name(&subject.path, &subject.hash)));
    // planwatch names each record after its path and hash, so a record with another path or hash is not from planwatch.
    record
        .and_then(|it| Trusted::read(&it))
        .is_some_and(|it| it.path == subject.path && it.hash == subject.hash)
}

/// Returns whether a command may run now: it can be trusted, and it is trusted or its hash was given with the request.
pub(crate) fn may_run(context: &Context, subject: &Subject, given: &[String]) -> bool {
    subject.fault.is_none() && (given.contains(&subject.hash) || is_trusted(context, subject))
}

/// Refuses a command that may not run. If `given` is a hash, the command may run only if its hash is the same. If `given` is
/// `None`, the command may run only if it is trusted.
pub fn check(context: &Context, subject: &Subject, given: Option<&str>) -> Result<(), Error> {
    match given {
        _ if subject.fault.is_some() => Err(refused(subject)),
        Some(given) if given == subject.hash => Ok(()),
        Some(given) => Err(other_hash(subject, given)),
        None if is_trusted(context, subject) => Ok(()),
        None => Err(refused(subject)),
    }
}

/// The error for a command that is not trusted. The error contains what a person has to read before trusting the command.
pub fn refused(subject: &Subject) -> Error {
    Error::NotTrusted(Box::new(subject.clone()))
}

fn other_hash(subject: &Subject, given: &str) -> Error {
    let Subject { what, name, hash, .. } = subject;
    // The names of agents (`agent:NAME`) and steps (`PLAN:NUMBER`) contain a colon, those of scripts do not.
    let command = match name.contains(':') {
        true => "planwatch trust".to_owned(),
        false => format!("planwatch script show {}", shell_word(name)),
    };
    Error::Conflict {
        code: "trust-hash-differs",
        message: format!("the hash of {what} is {hash}, not {given}"),
        hint: format!("read what would run: `{command}`"),
    }
}

/// Stores that exactly this command is trusted. If `given` is another hash, nothing is stored.
pub fn trust(context: &Context, subject: &Subject, given: Option<&str>) -> Result<(), Error> {
    if subject.fault.is_some() {
        return Err(refused(subject));
    }
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
    let message = "trust cannot be stored: there is no state directory outside the repository";
    let hint = "set XDG_STATE_HOME to a directory of your own, or use --trust-hash each time";
    Error::Failed { code: "no-state-directory", message: message.to_owned(), hint: hint.to_owned() }
}

/// Lists everything that is trusted on this machine, sorted by path.
pub fn list(context: &Context) -> Vec<Trusted> {
    let Some(store) = store(context) else { return Vec::new() };
    let read = |name: &String| store.read(name).as_deref().and_then(Trusted::read);
    let mut all: Vec<_> = store.names().iter().filter_map(read).collect();
    all.sort_unstable_by(|a, b| (&a.path, &a.hash).cmp(&(&b.path, &b.hash)));
    all
}

/// Removes the trust in all versions of the files for which `is_meant` returns true, and returns what was removed.
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
mod tests;
