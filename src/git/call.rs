//! One call of git: its command line, its environment and its limits.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::error::GitError;
use super::oid::Oid;
use super::pipes::Pipes;

/// The default time limit of a call.
const LIMIT: Duration = Duration::from_secs(60);

/// The default output limit of a call, in bytes.
const MOST: usize = 256 << 20;

/// Variables that select another repository, index or rules for paths, or change what git reads, prints or logs. Git sets
/// some of them for hooks and aliases, so planwatch may inherit them; every call removes all of them.
pub const INHERITED: [&str; 23] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_ATTR_SOURCE",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_REFLOG_ACTION",
];

#[derive(Debug)]
pub struct Call {
    name: String,
    directory: PathBuf,
    global: Vec<OsString>,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    input: Vec<u8>,
    limit: Duration,
    /// Whether the limit is for the time without output, not for the whole call.
    is_silence_limit: bool,
    most: usize,
    is_shielded: bool,
}

/// The exit code and the output of a call that ended.
#[derive(Debug)]
pub struct Output {
    /// −1 if a signal ended git.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Call {
    /// A call in a directory, which need not be in a repository. `words` are the command of git and options that are
    /// hard-coded in planwatch. Everything else is added with the methods below.
    pub fn new(directory: &Path, words: &[&str]) -> Self {
        let global = ["--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        Self {
            name: words.first().copied().unwrap_or_default().to_owned(),
            directory: directory.to_path_buf(),
            global: global.map(OsString::from).to_vec(),
            arguments: words.iter().map(OsString::from).collect(),
            variables: Vec::new(),
            input: Vec::new(),
            limit: LIMIT,
            is_silence_limit: false,
            most: MOST,
            is_shielded: false,
        }
    }

    /// Puts the command into a process group of its own, so that Ctrl-C at the terminal does not interrupt it.
    #[must_use]
    pub fn shielded(mut self) -> Self {
        self.is_shielded = true;
        self
    }

    /// Makes git read the attributes of files from this tree instead of the working tree. Git 2.41 or newer is required; the
    /// caller checks it.
    #[must_use]
    pub fn attributes_of(mut self, tree: &Oid) -> Self {
        self.global.push(format!("--attr-source={tree}").into());
        self
    }

    /// Sets a key of git's configuration for this call.
    #[must_use]
    pub fn config(mut self, key: &'static str, value: impl AsRef<OsStr>) -> Self {
        let mut pair = OsString::from(key);
        pair.push("=");
        pair.push(value);
        self.global.extend(["-c".into(), pair]);
        self
    }

    /// For calls that write the user's index: removes the option that disables the file system monitor, so that git
    /// preserves the data of the monitor in the index.
    #[must_use]
    pub fn writes_index(mut self) -> Self {
        if let Some(at) = self.global.iter().position(|it| it == "core.fsmonitor=false") {
            self.global.drain(at - 1..=at);
        }
        self
    }

    /// Adds one argument. Text from a user or a repository must not begin with `-`, because git would take it for an
    /// option.
    #[must_use]
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.arguments.push(word.as_ref().to_owned());
        self
    }

    /// Adds the names of objects. They must be added before the paths.
    #[must_use]
    pub fn oids<'a>(mut self, oids: impl IntoIterator<Item = &'a Oid>) -> Self {
        self.arguments.extend(oids.into_iter().map(|it| it.as_str().into()));
        self
    }

    /// The paths of the command, relative to the call's directory. They are taken literally.
    #[must_use]
    pub fn paths<T: AsRef<OsStr>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        self.global.push("--literal-pathspecs".into());
        self.pathspecs(paths)
    }

    /// Patterns for paths, with git's pathspec magic.
    #[must_use]
    pub fn pathspecs<T: AsRef<OsStr>>(mut self, specs: impl IntoIterator<Item = T>) -> Self {
        self.arguments.push("--".into());
        self.arguments.extend(specs.into_iter().map(|it| it.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// Sets the standard input of the command.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Makes the time limit start again whenever the command prints something, such as its progress.
    #[must_use]
    pub fn limit_silence(mut self) -> Self {
        self.is_silence_limit = true;
        self
    }

    /// The most bytes of standard output that [`Self::output`], [`Self::run`] and [`Self::line`] accept.
    #[must_use]
    pub fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    fn command(&self) -> Command {
        let mut git = Command::new("git");
        git.args(&self.global).args(&self.arguments).current_dir(&self.directory);
        for name in INHERITED {
            git.env_remove(name);
        }
        git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        git.env("LC_ALL", "C").env("LANGUAGE", "C");
        if self.is_shielded {
            git.process_group(0);
        }
        git.envs(self.variables.iter().map(|(name, value)| (name, value)));
        git
    }

    /// Starts the command. Its output is read while it runs. Each read with [`Read`] restarts the time limit.
    pub fn stream(self) -> Result<Stream, GitError> {
        let mut stream = self.open()?;
        stream.pipes.end_input();
        Ok(stream)
    }

    /// Like [`Self::stream`], but standard input stays open.
    pub(super) fn open(self) -> Result<Stream, GitError> {
        let started = Pipes::start(&mut self.command(), self.limit, self.is_silence_limit);
        let mut pipes = started.map_err(|error| match error.kind() {
            // A missing working directory causes the same error.
            ErrorKind::NotFound if self.directory.is_dir() => GitError::Missing,
            _ => GitError::NotStarted(error),
        })?;
        pipes.send(&self.input);
        Ok(Stream { pipes, name: self.name, limit: self.limit, most: self.most })
    }

    /// Runs the command to its end. An exit code other than 0 is not an error.
    pub fn output(self) -> Result<Output, GitError> {
        self.stream()?.output()
    }

    /// Runs the command. An exit code other than 0 is an error that contains git's message.
    pub fn run(self) -> Result<Vec<u8>, GitError> {
        self.stream()?.run()
    }

    /// Like [`Self::run`], for a command that prints one line.
    pub fn line(self) -> Result<String, GitError> {
        let bytes = self.run()?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }
}

/// The output of a command that still runs. Dropping it ends the command.
pub struct Stream {
    pub(super) pipes: Pipes,
    name: String,
    limit: Duration,
    most: usize,
}

impl Stream {
    /// Reads all output until the command ends.
    pub fn output(mut self) -> Result<Output, GitError> {
        let mut stdout = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.pipes.read(&mut buffer).map_err(|it| self.failed(it))? {
                0 => break,
                n => stdout.extend_from_slice(&buffer[..n]),
            }
            if stdout.len() > self.most {
                return Err(GitError::TooMuch { command: self.name, most: self.most });
            }
        }
        let (code, stderr) = self.end()?;
        Ok(Output { code, stdout, stderr })
    }

    /// Like [`Self::output`], but an exit code other than 0 is an error that contains git's message.
    pub fn run(self) -> Result<Vec<u8>, GitError> {
        let command = self.name.clone();
        let Output { code, stdout, stderr } = self.output()?;
        if code == 0 { Ok(stdout) } else { Err(GitError::Failed { command, exit_code: code, text: stderr }) }
    }

    pub(super) fn failed(&self, error: io::Error) -> GitError {
        match error.kind() {
            ErrorKind::TimedOut => GitError::TimedOut { command: self.name.clone(), limit: self.limit },
            _ => GitError::Unread { command: self.name.clone(), source: error },
        }
    }

    fn end(self) -> Result<(i32, String), GitError> {
        let Self { pipes, name, limit, .. } = self;
        let (status, stderr) = pipes.end().map_err(|error| match error.kind() {
            ErrorKind::TimedOut => GitError::TimedOut { command: name, limit },
            _ => GitError::Unread { command: name, source: error },
        })?;
        Ok((status.code().unwrap_or(-1), stderr))
    }

    /// Waits for the end of a command whose output was read to the end.
    pub fn finish(self) -> Result<(), GitError> {
        let command = self.name.clone();
        match self.end()? {
            (0, _) => Ok(()),
            (exit_code, text) => Err(GitError::Failed { command, exit_code, text }),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pipes.begin_part();
        self.pipes.read(buffer)
    }
}
