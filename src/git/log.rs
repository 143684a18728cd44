//! Reads commits and the files that they changed from `git log --raw -z`.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use super::call::Stream;
use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;
use super::trees::read_mode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub commit: Oid,
    pub parents: Vec<Oid>,
    /// As mapped by the repository's `.mailmap`.
    pub author: String,
    pub email: String,
    /// Seconds since 1970.
    pub authored_at: i64,
    pub committed_at: i64,
    pub subject: String,
    pub changes: Vec<RawChange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawChange {
    /// 0 if there was no file.
    pub old_mode: u32,
    pub new_mode: u32,
    /// Null if there was no file.
    pub old: Oid,
    pub new: Oid,
    /// `A`, `D`, `M`, `T` or `U`.
    pub status: u8,
    /// Relative to the repository's root.
    pub path: Vec<u8>,
}

/// Which commits are listed.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub of: Vec<Oid>,
    /// Commits that are reachable from these are left out.
    pub not: Vec<Oid>,
    /// Relative to the repository's root; all if empty.
    pub paths: Vec<PathBuf>,
    /// More options of `git log`; they are constants in planwatch's code, never input.
    pub options: Vec<&'static str>,
    /// As in [`Git::merging_by_lines`].
    pub merges_by_lines: bool,
}

/// The byte before each commit. Fields end with NUL, which no field can contain.
const START: u8 = 1;

const FORMAT: &str = "--format=tformat:%x01%H%x00%P%x00%aN%x00%aE%x00%at%x00%ct%x00%s";

/// The size limit of one field, in bytes.
const MOST: u64 = 1 << 20;

impl Git {
    /// Starts `git log`; the entries are read while it runs.
    pub fn log(&self, query: &LogQuery) -> Result<LogReader<BufReader<Stream>>, GitError> {
        let fixed =
            ["log", "--raw", "-z", "--no-renames", "--no-abbrev", "--root", "--encoding=UTF-8", FORMAT];
        let plain = ["--no-show-signature", "--no-notes", "--no-color", "--no-ext-diff", "--no-textconv"];
        let mut call = self.call(&[&fixed[..], &plain, &["--stdin"], &query.options].concat());
        if query.merges_by_lines {
            call = self.merging_by_lines(call)?;
        }
        // The revisions go to standard input, because the length of a command line is limited.
        let of = query.of.iter().map(|it| format!("{it}\n"));
        let call = call.input(of.chain(query.not.iter().map(|it| format!("^{it}\n"))).collect::<String>());
        let paths = query.paths.iter().filter(|it| !it.as_os_str().is_empty());
        let stream = call.paths(paths).stream()?;
        Ok(LogReader::new(BufReader::with_capacity(64 << 10, stream)))
    }
}

/// Reads the changes that `git diff --raw -z` and `git diff-tree --raw -z` print.
pub fn read_changes(bytes: &[u8]) -> Result<Vec<RawChange>, GitError> {
    let mut reader = LogReader { command: "diff", ..LogReader::new(bytes) };
    let mut found = Vec::new();
    while let Some(first) = reader.peek()? {
        if first != b':' {
            return Err(reader.bad("no change begins here"));
        }
        found.push(reader.change()?);
    }
    Ok(found)
}

/// Parses the output of `git log` in the format `FORMAT`.
pub struct LogReader<R> {
    from: R,
    /// The subcommand of git, for errors.
    command: &'static str,
    has_failed: bool,
}

impl<R: BufRead> LogReader<R> {
    pub fn new(from: R) -> Self {
        Self { from, command: "log", has_failed: false }
    }

    fn peek(&mut self) -> Result<Option<u8>, GitError> {
        match self.from.fill_buf() {
            Ok(bytes) => Ok(bytes.first().copied()),
            Err(error) => Err(self.bad(&error.to_string())),
        }
    }

    /// Reads a field without its NUL.
    fn field(&mut self) -> Result<Vec<u8>, GitError> {
        let mut field = Vec::new();
        let read = (&mut self.from).take(MOST).read_until(0, &mut field);
        match (read, field.pop()) {
            (Ok(_), Some(0)) => Ok(field),
            (Err(error), _) => Err(self.bad(&error.to_string())),
            _ => Err(self.bad("a field has no end")),
        }
    }

    fn entry(&mut self) -> Result<Option<LogEntry>, GitError> {
        match self.peek()? {
            None => return Ok(None),
            Some(START) => self.from.consume(1),
            Some(_) => return Err(self.bad("no commit begins here")),
        }
        let commit = self.oid()?;
        let parents = self.field()?;
        let parents = parents.split(|it| *it == b' ').filter(|it| !it.is_empty());
        let parents = parents.map(|it| self.read_oid(it)).collect::<Result<_, _>>()?;
        let (author, email) = (self.text()?, self.text()?);
        let (authored_at, committed_at) = (self.number()?, self.number()?);
        let subject = self.text()?;
        let mut changes = Vec::new();
        loop {
            match self.peek()? {
                None | Some(START) => break,
                // A line break, or for a merge commit an empty field, separates the commit from its changes.
                Some(b'\n' | 0) => self.from.consume(1),
                Some(b':') => changes.push(self.change()?),
                Some(_) => return Err(self.bad("no change begins here")),
            }
        }
        let entry = LogEntry { commit, parents, author, email, authored_at, committed_at, subject, changes };
        Ok(Some(entry))
    }

    fn change(&mut self) -> Result<RawChange, GitError> {
        let line = self.field()?;
        let words: Vec<_> = line[1..].split(|it| *it == b' ').collect();
        let [old_mode, new_mode, old, new, status] = words[..] else {
            return Err(self.bad("a change does not have five words"));
        };
        let mode = |word: &[u8]| read_mode(word).ok_or_else(|| self.bad("a mode does not have six digits"));
        let [status] = status[..] else { return Err(self.bad("the status of a change is not one letter")) };
        let (old, new) = (self.read_oid(old)?, self.read_oid(new)?);
        let (old_mode, new_mode) = (mode(old_mode)?, mode(new_mode)?);
        Ok(RawChange { old_mode, new_mode, old, new, status, path: self.field()? })
    }

    fn oid(&mut self) -> Result<Oid, GitError> {
        let field = self.field()?;
        self.read_oid(&field)
    }

    fn read_oid(&self, bytes: &[u8]) -> Result<Oid, GitError> {
        Oid::read(bytes).ok_or_else(|| self.bad("an object's name does not have 40 or 64 digits"))
    }

    fn bad(&self, what: &str) -> GitError {
        GitError::unexpected(self.command, what)
    }

    fn text(&mut self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.field()?).into_owned())
    }

    /// Reads a time. If the commit's date is damaged, the result is 0, which is in 1970.
    fn number(&mut self) -> Result<i64, GitError> {
        Ok(self.text()?.parse().unwrap_or_default())
    }
}

impl<R: Read> LogReader<BufReader<R>> {
    pub fn into_inner(self) -> R {
        self.from.into_inner()
    }
}

impl LogReader<BufReader<Stream>> {
    /// Reads all entries, and reports a failure of git itself.
    pub fn all(mut self) -> Result<Vec<LogEntry>, GitError> {
        let entries: Vec<_> = self.by_ref().collect::<Result<_, _>>()?;
        self.into_inner().finish()?;
        Ok(entries)
    }
}

impl<R: BufRead> Iterator for LogReader<R> {
    type Item = Result<LogEntry, GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let entry = self.entry().transpose();
        self.has_failed = matches!(entry, Some(Err(_)));
        entry
    }
}
