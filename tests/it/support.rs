//! A plans directory of its own for each test, and the binary run in a closed environment.

#![expect(clippy::disallowed_methods, reason = "tests make and read their own files, and start the binary")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The time that the binary is told.
pub(crate) const NOW: &str = "2026-11-21T12:00:00Z";

/// The root of the package.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A directory that goes with the test, with a home and a state directory of its own.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        for below in ["home", "work"] {
            std::fs::create_dir(place.directory.path().join(below)).expect("it is new");
        }
        place
    }

    /// A place whose `plans/` is a copy of the example plans.
    pub(crate) fn with_examples() -> Self {
        let place = Self::new();
        copy(&root().join("plans-example"), &place.work().join("plans"));
        place
    }

    /// The working directory; it holds `plans/`.
    pub(crate) fn work(&self) -> PathBuf {
        self.directory.path().join("work")
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

    /// The binary with nothing of the machine's environment, at a fixed time.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwatch"));
        command.env_clear().current_dir(self.work()).stdin(Stdio::null());
        let home = self.directory.path().join("home");
        command.env("HOME", &home).env("XDG_STATE_HOME", home.join("state")).env("XDG_CONFIG_HOME", home.join("config"));
        command.env("PLANWATCH_NOW", NOW).env("PLANWATCH_BY", "ann").env("PATH", "/usr/bin:/bin");
        command
    }

    /// Runs the binary with arguments split at spaces.
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.run_with(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn run_with(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command().args(arguments).output().expect("the binary starts"))
    }
}

/// What a run of the binary came to.
#[must_use = "look at the answer, or at least at the exit code"]
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
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
