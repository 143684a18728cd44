//! A temporary plans directory for each test, and the binary run in a closed environment.

#![expect(clippy::disallowed_methods, reason = "tests create and read files, and start the binary")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, SystemTime};

/// The current time for the binary.
pub(crate) const NOW: &str = "2026-11-21T12:00:00Z";

/// [`NOW`] as the modification time of files that a command has written.
pub(crate) const NOW_SECONDS: u64 = 1_795_262_400;

/// The modification time of a fixture's files, a day before [`NOW`].
const BEFORE_SECONDS: u64 = NOW_SECONDS - 24 * 60 * 60;

/// The root of the package.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A new directory, which is removed when all tests have ended.
///
/// ext4 without a journal does not reuse the inode number of a removed file for some minutes, and skips all of these numbers
/// for each new file. If the directories were removed at once, the tests would take a quarter longer there.
pub(crate) fn temporary() -> tempfile::TempDir {
    static ALL: OnceLock<(PathBuf, ChildStdin)> = OnceLock::new();
    let (all, _) = ALL.get_or_init(|| {
        let all = tempfile::Builder::new().prefix("planwatch-it-").tempdir();
        let all = all.expect("a temporary directory").keep();
        // The shell's input ends with this process, however the process ends.
        let remove = "trap '' INT TERM HUP QUIT; cat; rm -rf \"$1\"";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", remove, "sh"]).arg(&all).stdin(Stdio::piped()).stdout(Stdio::null());
        let input = shell.stderr(Stdio::null()).spawn().expect("there is a shell").stdin.take();
        (all, input.expect("it is piped"))
    });
    let new = tempfile::Builder::new().disable_cleanup(true).tempdir_in(all);
    new.expect("a temporary directory")
}

/// A temporary directory with a separate home and state directory.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { directory: temporary() };
        for below in ["home", "project"] {
            std::fs::create_dir(place.directory.path().join(below)).expect("it is new");
        }
        place
    }

    /// A place whose `plans/` is a copy of the example plans.
    pub(crate) fn with_examples() -> Self {
        let place = Self::new();
        copy_examples(&place.work().join("plans"));
        place.date_fixture();
        place
    }

    /// The directory around the working directory and the home.
    pub(crate) fn top(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it is there")
    }

    /// The working directory, which contains `plans/`.
    pub(crate) fn work(&self) -> PathBuf {
        self.top().join("project")
    }

    /// Sets the modification time of every file to that of a fixture.
    pub(crate) fn date_fixture(&self) {
        for path in files_below(&self.work()) {
            set_modified(&path, BEFORE_SECONDS);
        }
    }

    /// Sets the modification time of files written since [`Self::date_fixture`] to [`NOW`], so that no answer
    /// depends on the clock of the machine.
    pub(crate) fn date_changes(&self) {
        let before = SystemTime::UNIX_EPOCH + Duration::from_secs(BEFORE_SECONDS);
        for path in files_below(&self.work()) {
            let modified = path.metadata().and_then(|it| it.modified()).expect("the file system keeps times");
            if modified != before {
                set_modified(&path, NOW_SECONDS);
            }
        }
    }

    pub(crate) fn file(&self, relative: &str) -> PathBuf {
        self.work().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.file(relative);
        std::fs::create_dir_all(path.parent().expect("it has a parent")).expect("directories can be made");
        std::fs::write(path, text).expect("it can be written");
    }

    pub(crate) fn bytes(&self, relative: &str) -> Vec<u8> {
        std::fs::read(self.file(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
    }

    pub(crate) fn text(&self, relative: &str) -> String {
        String::from_utf8(self.bytes(relative)).expect("it is UTF-8")
    }

    /// The binary, without the machine's environment, at a fixed time.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwatch"));
        self.close_environment(&mut command);
        command
    }

    /// Sets a command's environment to this place and a fixed time only.
    pub(crate) fn close_environment(&self, command: &mut Command) {
        command.env_clear().current_dir(self.work()).stdin(Stdio::null());
        let home = self.top().join("home");
        command
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CONFIG_HOME", home.join("config"));
        command.env("PLANWATCH_NOW", NOW).env("PLANWATCH_BY", "ann").env("PATH", "/usr/bin:/bin");
    }

    /// git with a fixed author and a fixed time, without the machine's configuration.
    pub(crate) fn git_command(&self) -> Command {
        self.git_dated(NOW)
    }

    /// git without the machine's configuration, sample hooks and maintenance, which would take a tenth of the time of
    /// these tests.
    fn git_dated(&self, date: &str) -> Command {
        let mut command = Command::new("git");
        self.close_environment(&mut command);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ann").env(format!("GIT_{who}_EMAIL"), "ann@example.org");
            command.env(format!("GIT_{who}_DATE"), date);
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TEMPLATE_DIR", "");
        command.args(["-c", "maintenance.auto=false"]);
        command
    }

    /// Runs git, which must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn git_with<T: AsRef<std::ffi::OsStr>>(&self, words: &[T]) -> String {
        let ran = Ran::of(self.git_command().args(words).output().expect("git starts"));
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Runs git in the working directory with arguments split at spaces, at a fixed time, and returns what it printed.
    pub(crate) fn git(&self, line: &str) -> String {
        self.git_at(&self.work(), 0, &line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs git as ann, `minutes` after a fixed time, so that ids of commits are the same each time.
    #[track_caller]
    pub(crate) fn git_at(&self, directory: &Path, minutes: u32, words: &[impl AsRef<str>]) -> String {
        let ran = self.ran_git(directory, minutes, words);
        let shown: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        assert_eq!(ran.code, 0, "git {}: {}{}", shown.join(" "), ran.stdout, ran.stderr);
        ran.stdout
    }

    /// As [`Self::git`], for a command that has to fail.
    pub(crate) fn git_fails(&self, line: &str) -> String {
        let ran = self.ran_git(&self.work(), 0, &line.split_whitespace().collect::<Vec<_>>());
        assert_ne!(ran.code, 0, "git {line} did not fail");
        ran.stdout + &ran.stderr
    }

    fn ran_git(&self, directory: &Path, minutes: u32, words: &[impl AsRef<str>]) -> Ran {
        let mut command = self.git_dated(&format!("{} +0000", BEFORE_SECONDS + 60 * u64::from(minutes)));
        command.current_dir(directory).args(["-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]);
        command.args(words.iter().map(AsRef::as_ref));
        Ran::of(command.output().expect("git starts"))
    }

    /// Runs the binary with arguments split at spaces.
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.run_with(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn run_with(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command().args(arguments).output().expect("the binary starts"))
    }
}

/// The result of a run of the binary.
#[must_use = "check the answer, or at least the exit code"]
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    #[track_caller]
    pub(crate) fn ok_code(&self) {
        assert_eq!(self.code, 0, "{self:?}");
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Copies the example plans without planwatch's own state, which exists once a command has read them.
pub(crate) fn copy_examples(to: &Path) {
    for entry in std::fs::read_dir(root().join("plans-example")).expect("it is there").flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(".planwatch") {
            copy(&entry.path(), &to.join(name));
        }
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("directories can be made");
    for entry in std::fs::read_dir(from).expect("it is there").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("it can be copied");
        }
    }
}

/// Files by their path below the root, with their bytes. An empty directory is included as `name/`.
pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

/// All files below a directory, except those of planwatch and git.
pub(crate) fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        let mut is_empty = true;
        for entry in std::fs::read_dir(&directory).expect("it is there").flatten() {
            is_empty = false;
            let (path, kind) = (entry.path(), entry.file_type().expect("it is there"));
            if kind.is_dir() {
                if !is_private(&path) {
                    open.push(path);
                }
            } else if kind.is_file() {
                tree.insert(below(root, &path), std::fs::read(&path).expect("it can be read"));
            } else {
                tree.insert(below(root, &path), format!("{kind:?}").into_bytes());
            }
        }
        if is_empty && directory != root {
            tree.insert(below(root, &directory) + "/", Vec::new());
        }
    }
    tree
}

fn is_private(directory: &Path) -> bool {
    directory
        .file_name()
        .is_some_and(|it| [".planwatch", ".planwatch-init", ".git"].iter().any(|own| it == *own))
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("it is below").to_string_lossy().into_owned()
}

/// Regular files outside `.planwatch`, whose modification times planwatch uses.
fn files_below(root: &Path) -> Vec<PathBuf> {
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|it| it.is_file());
    tree(root).into_keys().map(|it| root.join(it)).filter(is_file).collect()
}

fn set_modified(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let set = std::fs::File::open(path).and_then(|it| it.set_modified(time));
    set.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The longest wait. Only a process that hangs takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// The lines of a running process, as they arrive.
pub(crate) struct Lines(mpsc::Receiver<String>);

/// Reads a stream line by line in a thread.
pub(crate) fn lines_of(stream: impl Read + Send + 'static) -> Lines {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        // A test that has dropped the receiver needs no further lines.
        lines.take_while(|it| sender.send(it.clone()).is_ok()).for_each(drop);
    });
    Lines(receiver)
}

impl Lines {
    /// The next line, which must arrive.
    #[track_caller]
    pub(crate) fn next(&mut self) -> String {
        self.0.recv_timeout(DEADLINE).unwrap_or_else(|error| panic!("no further line: {error}"))
    }

    /// Waits for the stream to end, and returns the lines until there.
    #[track_caller]
    pub(crate) fn end(self) -> Vec<String> {
        let mut rest = Vec::new();
        loop {
            match self.0.recv_timeout(DEADLINE) {
                Ok(line) => rest.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return rest,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end: {rest:?}"),
            }
        }
    }
}
