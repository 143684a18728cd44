//! planwatch under measurement: the command line, and the library in a resident process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use planwatch::api::config::Config;
use planwatch::api::context::{Context, Here, KeptSaves, Reading};
use planwatch::api::daemon::Freshness;
use planwatch::disk::{PlansDir, RealDisk};
use planwatch::plan::time::Time;
use planwatch::serve::SocketDirs;
use planwatch::serve::ipc::client;

use super::corpus::Corpus;

/// The programs, and the directory of planwatch's own state.
pub(crate) struct Ours {
    pub(crate) binary: PathBuf,
    pub(crate) hello: PathBuf,
    pub(crate) state: PathBuf,
}

impl Ours {
    pub(crate) fn find(place: &Path) -> Self {
        let program = |name: &str| PathBuf::from(std::env::var_os(name).expect("scripts/bench sets it"));
        Self {
            binary: program("PLANWATCH_BIN"),
            hello: program("PLANWATCH_HELLO"),
            state: place.join("state"),
        }
    }

    fn prepared(&self, program: &Path, arguments: &[&str], directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory);
        command.env("XDG_STATE_HOME", &self.state).env("PLANWATCH_BY", "bench");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_OPTIONAL_LOCKS", "0");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn seconds(&self, program: &Path, arguments: &[&str], directory: &Path) -> f64 {
        let mut command = self.prepared(program, arguments, directory);
        let started = Instant::now();
        let status = command.status().expect("it starts");
        let took = started.elapsed().as_secs_f64();
        assert!(status.success(), "{} {arguments:?} failed in {}", program.display(), directory.display());
        took
    }

    /// The page faults of a command, and those of `benches/hello.rs`.
    pub(crate) fn faults(&self, corpus: &Corpus, arguments: &[&str]) -> (f64, f64) {
        let so_far = || {
            let text = fs::read_to_string("/proc/self/stat").expect("it can be read");
            // `cminflt` in proc_pid_stat(5): of children that have ended. The fields begin after the program's name.
            let mut fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
            fields.nth(8).and_then(|it| it.parse::<f64>().ok()).expect("a number")
        };
        let before = so_far();
        self.cli(corpus, arguments);
        let between = so_far();
        self.hello(&["list", "x"]);
        (between - before, so_far() - between)
    }

    /// The seconds that a command takes.
    pub(crate) fn cli(&self, corpus: &Corpus, arguments: &[&str]) -> f64 {
        self.seconds(&self.binary, arguments, &corpus.home)
    }

    /// The seconds that `benches/hello.rs` takes: floor P, or floors P and F together with `save`.
    pub(crate) fn hello(&self, arguments: &[&str]) -> f64 {
        self.seconds(&self.hello, arguments, Path::new("/"))
    }

    pub(crate) fn git_status(&self, directory: &Path) -> f64 {
        self.seconds(Path::new("git"), &["status", "--porcelain"], directory)
    }

    pub(crate) fn output(&self, corpus: &Corpus, arguments: &[&str]) -> String {
        let mut command = self.prepared(&self.binary, arguments, &corpus.home);
        let output = command.stdout(Stdio::piped()).output().expect("it starts");
        assert!(output.status.success(), "{arguments:?} failed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The peak memory of a command, in MiB. It is read every half millisecond, because the kernel discards it at the end.
    pub(crate) fn peak(&self, corpus: &Corpus, arguments: &[&str]) -> f64 {
        let mut child = self.prepared(&self.binary, arguments, &corpus.home).spawn().expect("it starts");
        let mut peak = 0.0;
        while child.try_wait().expect("it is ours").is_none() {
            peak = memory(child.id(), "VmHWM").map_or(peak, |it| it.max(peak));
            std::thread::sleep(Duration::from_micros(500));
        }
        peak
    }
}

/// A line of `/proc/PID/status`, in MiB; `None` once the process has ended.
pub(crate) fn memory(pid: u32, line: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|it| it / 1024.0)
}

/// The directories for sockets, as on the command line.
pub(crate) fn socket_dirs() -> SocketDirs {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|it| !it.is_empty());
    SocketDirs { runtime: runtime.map(PathBuf::from), temporary: PathBuf::from("/tmp") }
}

/// Whether a resident process uses the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonUse {
    NoDaemon,
    Daemon,
}

/// The context of one request of a resident process.
pub(crate) fn context(plans: &Path, state: &Path, by: &str, daemon_use: DaemonUse) -> Context {
    let plans = PlansDir::open(Arc::new(RealDisk), plans, Some(state)).expect("it is there");
    // The real time, as in the daemon. If claims had the time of an earlier day, the daemon would treat them as lapsed.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let freshness = match daemon_use {
        DaemonUse::NoDaemon => Freshness::Unknown,
        DaemonUse::Daemon => Freshness::Attested(Box::new(client::Daemon::of(&plans, socket_dirs()))),
    };
    Context {
        plans,
        now: Time::from_nanoseconds(i128::try_from(since.as_nanos()).expect("it fits")),
        by: by.to_owned(),
        config: Config::default(),
        reading: Reading::Index,
        freshness,
        here: Here::default(),
        expected: None,
        key: None,
        on_notice: Box::new(|_| {}),
        kept: KeptSaves::default(),
        planned: None,
    }
}
