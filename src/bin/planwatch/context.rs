//! The environment: directories, the time, the user's name. Only this module and its submodules read environment
//! variables and the system clock.
#![expect(
    clippy::disallowed_methods,
    reason = "the command line is the layer that reads the environment and the clock"
)]

mod git_user;
mod pager;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use etcetera::BaseStrategy;
use planwatch::api::agents::Agents;
use planwatch::api::config::{CONFIG_FILE, Config};
use planwatch::api::context::{Context, Here, KeptSaves, Notice, Reading};
use planwatch::api::daemon::Freshness;
use planwatch::api::error::Error;
use planwatch::api::requests::is_blank;
use planwatch::api::sync_config::DatabaseLogin;
use planwatch::api::workspace::{self, Workspace, WorkspaceRequest};
use planwatch::disk::Process;
use planwatch::disk::{Disk, PlansDir, RealDisk, make_plans_dir, read_file};
use planwatch::ops::sync;
use planwatch::plan::time::{NotATime, Time};
use planwatch::serve::SocketDirs;
use planwatch::serve::daemon::context_factory::ContextFactory;
use planwatch::serve::ipc::client::Daemon;
use planwatch::serve::lsp::ContextsAt;
use planwatch::store::idempotency;
use planwatch::store::interrupted;
use serde_json::Value;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::work::Key;
use crate::args::{Everywhere, Verb};
use crate::completing;
use crate::failure::{self, Failure};
use crate::output::{Form, Loudness, Output, Pager};
use crate::spinner::Spinner;
use crate::typed::Typed;

/// One run of the command line: the directory in which it was started, its options, and its output.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) output: Output,
    directory: PathBuf,
    plans: Option<PathBuf>,
    reading: Reading,
    disk: Arc<dyn Disk>,
    /// The verb only reads and does not report interrupted changes itself, so the session reports them.
    is_looking: bool,
    /// The verb settles claims itself, so the session does not report unsettled ones.
    is_settling: bool,
    /// The errors in the configuration, and the details that `-v` adds, were printed already.
    are_problems_reported: Arc<AtomicBool>,
    /// The notice that the index is only in memory was printed already. It is printed once.
    is_memory_reported: Arc<AtomicBool>,
}

impl Session {
    /// Changes to the directory of `-C`; all relative paths start there.
    pub(crate) fn begin(everywhere: &Everywhere, output: Output) -> Result<Self, Failure> {
        // A time that cannot be read is refused here, so that no verb uses the clock instead.
        fixed_now()?;
        if let Some(directory) = &everywhere.directory {
            env::set_current_dir(directory).map_err(|error| {
                let why = failure::system(&error);
                let message = format!("the directory `{}` cannot be entered: {why}", directory.display());
                Failure::failed("not-found", message).with_exit(3)
            })?;
        }
        let directory = env::current_dir().map_err(|error| {
            Failure::failed(
                "not-found",
                format!("the working directory no longer exists: {}", failure::system(&error)),
            )
            .with_exit(3)
        })?;
        let reading = if everywhere.no_index { Reading::Files } else { Reading::Index };
        let plans = everywhere.plans.as_ref().map(|it| directory.join(it));
        Ok(Self {
            output,
            directory,
            plans,
            reading,
            disk: Arc::new(RealDisk),
            is_looking: false,
            is_settling: false,
            are_problems_reported: Arc::default(),
            is_memory_reported: Arc::default(),
        })
    }

    /// The same session, for a verb that only reads and whose answer does not report interrupted changes.
    pub(crate) fn looking(self, is_looking: bool) -> Self {
        Self { is_looking, ..self }
    }

    /// The same session, for a verb that settles claims with the other machines.
    pub(crate) fn settling(self, is_settling: bool) -> Self {
        Self { is_settling, ..self }
    }

    /// Finds the plans directory and the configuration. Errors in the configuration are reported once.
    pub(crate) fn workspace(&self) -> Result<Workspace, Failure> {
        let found = self.find()?;
        if !self.are_problems_reported.swap(true, Ordering::Relaxed) {
            found.problems.iter().for_each(|it| self.output.warning(it));
            self.report_surroundings(&found);
        }
        Ok(found)
    }

    /// Like [`Self::workspace`], for `check` and `doctor`, whose answers report errors in the configuration.
    pub(crate) fn workspace_to_check(&self) -> Result<Workspace, Failure> {
        let found = self.find()?;
        self.report_surroundings(&found);
        Ok(found)
    }

    /// With `--verbose`, reports the plans directory, the configuration, whether the index or the files are read, and
    /// the user's name.
    fn report_surroundings(&self, found: &Workspace) {
        if self.output.loudness < Loudness::Verbose {
            return;
        }
        let shown = |path: &Path| path.strip_prefix(&self.directory).unwrap_or(path).display().to_string();
        let plans = found.plans_dir.as_deref().map_or_else(|| "none".to_owned(), shown);
        let config = self.config_file(found).map_or_else(|| "none".to_owned(), |it| shown(&it));
        let read = if self.reading == Reading::Index { "the index" } else { "the files themselves" };
        let by = by(found);
        let said = format!("plans: {plans}; configuration: {config}; data from {read}; you are {by}");
        self.output.detail("surroundings", &said);
    }

    /// The configuration file that is in force: the nearest one at or above the working directory. In a repository, the
    /// search ends at its root; otherwise it ends at the home directory.
    fn config_file(&self, found: &Workspace) -> Option<PathBuf> {
        let end = found.repository.clone().or_else(home);
        let mut above = Vec::new();
        for directory in self.directory.ancestors() {
            above.push(directory.join(CONFIG_FILE));
            if end.as_deref() == Some(directory) {
                break;
            }
        }
        above.into_iter().find(|it| it.is_file())
    }

    fn find(&self) -> Result<Workspace, Error> {
        let env = variable("PLANS_DIR").map(|it| self.directory.join(it));
        let request =
            WorkspaceRequest { start: self.directory.clone(), plans: self.plans.clone(), env, home: home() };
        workspace::find(&self.disk, &request)
    }

    /// The context of a verb that needs plans.
    pub(crate) fn context(&self) -> Result<Context, Failure> {
        let workspace = self.workspace()?;
        let plans = self.plans_dir(&workspace)?;
        self.context_in(&workspace, &plans)
    }

    /// The plans directory that was found.
    pub(crate) fn plans_dir(&self, workspace: &Workspace) -> Result<PathBuf, Error> {
        workspace.plans_dir.clone().ok_or_else(|| workspace::missing(&*self.disk, workspace))
    }

    /// The context of a verb that makes the plans directory if there is none, such as `new`.
    pub(crate) fn context_to_make(&self) -> Result<Context, Failure> {
        let workspace = self.workspace()?;
        let plans = self.found_or_made(&workspace)?;
        self.context_in(&workspace, &plans)
    }

    fn found_or_made(&self, found: &Workspace) -> Result<PathBuf, Error> {
        found.plans_dir.clone().map_or_else(|| workspace::make(&self.disk, found), Ok)
    }

    /// Prints an answer as JSON, or else as a screen for the terminal's width. Returns exit code 0.
    pub(crate) fn answer(
        &self,
        kind: &str,
        json: impl FnOnce() -> Value,
        screen: impl FnOnce(Option<usize>) -> String,
    ) -> Result<u8, Failure> {
        if self.output.is_json() {
            self.output.json(kind, json())?;
        } else {
            self.output.long(&screen(self.output.width))?;
        }
        Ok(0)
    }

    /// The absolute path for a typed path, which may be relative to the working directory.
    pub(crate) fn path(&self, typed: &Path) -> PathBuf {
        self.directory.join(typed)
    }

    /// Runs a read that may need every plan, with a spinner if it takes long.
    pub(crate) fn with_spinner<T>(&self, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Failure> {
        let is_shown = self.output.loudness > Loudness::Quiet && !self.output.is_json();
        let spinner = is_shown.then(|| Spinner::with("reading the plans"));
        let answer = read();
        drop(spinner);
        Ok(answer?)
    }

    /// Like [`Self::context`], for a request that is carried out only once if it has a key.
    pub(crate) fn context_once(&self, key: &Key, request: &impl std::fmt::Debug) -> Result<Context, Failure> {
        let context = self.context()?;
        let Some(key) = &key.key else { return Ok(context) };
        let key = idempotency::begin(&context, key, &format!("{request:?}"))?;
        Ok(Context { key: Some(Arc::new(key)), ..context })
    }

    pub(crate) fn context_in(&self, workspace: &Workspace, plans: &Path) -> Result<Context, Failure> {
        let context = Context { kept: self.output.kept.clone(), ..self.look(workspace, plans)? };
        if self.is_looking {
            interrupted::report(&context);
        }
        if !self.is_settling && context.config.sync.is_some() {
            let steps = sync::unsettled(&context);
            if !steps.is_empty() {
                context.notify(Notice::UnsettledClaims { steps });
            }
        }
        Ok(context)
    }

    /// The file system, for verbs that need no plans directory.
    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.disk)
    }

    /// The repository's root, else the directory above the plans directory, else the working directory.
    pub(crate) fn root(&self) -> Result<PathBuf, Failure> {
        let found = self.workspace()?;
        let above = || found.plans_dir.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        Ok(found.repository.clone().or_else(above).unwrap_or_else(|| self.directory.clone()))
    }

    /// The directory where relative paths start.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// For long-running surfaces: makes a new context for each request, with the current configuration.
    pub(crate) fn contexts(&self, plans: &Path) -> ContextFactory {
        let own = Self {
            is_looking: false,
            are_problems_reported: Arc::new(AtomicBool::new(true)),
            ..self.clone()
        };
        let plans = plans.to_path_buf();
        Arc::new(move || own.look(&own.find()?, &plans))
    }

    /// Makes the process print a line for each request, if `-v` or `PLANWATCH_LOG` is given.
    pub(crate) fn log_requests(&self) {
        let is_verbose = self.output.loudness == Loudness::Verbose;
        let asked = text("PLANWATCH_LOG").or_else(|| is_verbose.then(|| "planwatch=info".to_owned()));
        let Some(filter) = asked.and_then(|it| it.parse::<Targets>().ok()) else { return };
        let lines = fmt::layer().with_target(false).with_ansi(false).with_writer(std::io::stderr);
        // This fails only if a subscriber is set already, that is, on a second call.
        tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().ok();
    }

    /// The arguments for a new process of this program that watches the same plans without a terminal.
    pub(crate) fn words_to_detach(&self, root: &Path) -> Vec<OsString> {
        let mut words = vec![OsString::from("--plans"), root.into(), "watch".into(), "--detached".into()];
        if self.reading == Reading::Files {
            words.push("--no-index".into());
        }
        if self.output.loudness == Loudness::Verbose {
            words.push("--verbose".into());
        }
        words
    }

    /// The agents of the user's own configuration. Errors in it are reported.
    pub(crate) fn own_agents(&self) -> Agents {
        let Some(path) = etcetera::choose_base_strategy().ok().map(|it| it.config_dir()) else {
            return Agents::new();
        };
        let path = path.join("planwatch").join(CONFIG_FILE);
        let shown = path.display().to_string();
        let Ok(bytes) = read_file(&*self.disk, &path) else { return Agents::new() };
        let (config, problems) = Config::read(&shown, &String::from_utf8_lossy(&bytes));
        problems.iter().for_each(|it| self.output.warning(it));
        config.agents
    }

    /// A context for repeated reads: with the current configuration, and without asking the daemon whether the index is
    /// current.
    pub(crate) fn look_again(&self, plans: &Path) -> Result<Context, Error> {
        Ok(Context { freshness: Freshness::Unknown, ..self.look(&self.find()?, plans)? })
    }

    /// For servers: makes a new context for each request, with the plans directory and the configuration at that time.
    pub(crate) fn contexts_found(&self) -> ContextFactory {
        let session = self.clone();
        Arc::new(move || {
            let found = session.find()?;
            let plans = found.plans_dir.clone().ok_or(Error::NoPlansDir)?;
            session.look(&found, &plans)
        })
    }

    /// Like [`Self::contexts_found`], but as if the command had been started in the given directory.
    pub(crate) fn contexts_at(&self) -> ContextsAt {
        let session = self.clone();
        Arc::new(move |directory| {
            let session = Self { directory: directory.to_path_buf(), ..session.clone() };
            let found = session.find()?;
            let plans = found.plans_dir.clone().ok_or(Error::NoPlansDir)?;
            session.look(&found, &plans)
        })
    }

    /// Like [`Self::contexts_found`], but makes the plans directory if there is none.
    pub(crate) fn contexts_to_make(&self) -> ContextFactory {
        let session = self.clone();
        Arc::new(move || {
            let found = session.find()?;
            session.look(&found, &session.found_or_made(&found)?)
        })
    }

    /// Like [`Self::contexts_found`]; if there is no plans directory, an empty one is read instead.
    pub(crate) fn contexts_to_look(&self) -> ContextFactory {
        let session = self.clone();
        let empty = Mutex::new(None);
        Arc::new(move || {
            let found = session.find()?;
            if let Some(plans) = &found.plans_dir {
                return session.look(&found, plans);
            }
            let mut empty = empty.lock().unwrap_or_else(PoisonError::into_inner);
            let there = empty.take().map_or_else(|| EmptyPlans::make(&*session.disk), Ok)?;
            session.look(&found, &empty.insert(there).path())
        })
    }

    fn look(&self, workspace: &Workspace, plans: &Path) -> Result<Context, Error> {
        let plans = PlansDir::open(Arc::clone(&self.disk), plans, state_home().as_deref())?
            .with_cache_home(cache_home().as_deref());
        plans.refuse_unreadable()?;
        let (output, is_memory_reported) = (self.output.clone(), Arc::clone(&self.is_memory_reported));
        // The steps that the notice at the start of the command has named as unsettled.
        let named: Mutex<BTreeSet<String>> = Mutex::default();
        let above = || plans.root().parent().unwrap_or(plans.root()).to_path_buf();
        let repository = workspace.repository.clone().unwrap_or_else(above);
        let freshness = Freshness::Attested(Box::new(Daemon::of(&plans, socket_dirs())));
        Ok(Context {
            plans,
            now: now(),
            by: by(workspace),
            config: workspace.config.clone(),
            reading: self.reading,
            freshness,
            here: Here {
                directory: self.directory.clone(),
                root: repository,
                repository: workspace.repository.clone(),
                config_file: self.config_file(workspace),
                config_problems: workspace.problems.clone(),
                plan: text("PLANWATCH_PLAN"),
                step: text("PLANWATCH_STEP"),
                claim: text("PLANWATCH_CLAIM"),
                database: DatabaseLogin {
                    url: text("PLANWATCH_CLAIMS_URL"),
                    password: text("PGPASSWORD"),
                    password_file: variable("PGPASSFILE").or_else(|| Some(home()?.join(".pgpass"))),
                },
            },
            expected: None,
            key: None,
            on_notice: Box::new(move |notice| {
                let mut named = named.lock().unwrap_or_else(PoisonError::into_inner);
                let is_repeated = match &notice {
                    Notice::IndexInMemory { .. } => is_memory_reported.swap(true, Ordering::Relaxed),
                    Notice::Unsettled { step, .. } => named.remove(step),
                    Notice::UnsettledClaims { steps } => {
                        named.extend(steps.iter().cloned());
                        false
                    }
                    _ => false,
                };
                drop(named);
                if !is_repeated {
                    output.notice(&notice);
                }
            }),
            kept: KeptSaves::default(),
            planned: None,
        })
    }
}

/// The directories for sockets that cannot be in `.planwatch`; the same for every process of a user.
pub(crate) fn socket_dirs() -> SocketDirs {
    SocketDirs { runtime: variable("XDG_RUNTIME_DIR"), temporary: PathBuf::from("/tmp") }
}

/// `XDG_CACHE_HOME`, else the system's directory for caches: `~/.cache`, on macOS `~/Library/Caches`.
fn cache_home() -> Option<PathBuf> {
    let native = || etcetera::base_strategy::choose_native_strategy().ok().map(|it| it.cache_dir());
    variable("XDG_CACHE_HOME").filter(|it| it.is_absolute()).or_else(native)
}

pub(crate) fn state_home() -> Option<PathBuf> {
    etcetera::choose_base_strategy().ok().and_then(|it| it.state_dir())
}

/// The shell that requests completions, if any.
pub(crate) fn completing_shell() -> Option<String> {
    text(completing::VARIABLE)
}

/// Whether `PLANWATCH_STEP` is set: this process runs for an agent that works on a step.
pub(crate) fn is_in_step() -> bool {
    text("PLANWATCH_STEP").is_some()
}

/// The output that the command line and the environment ask for.
pub(crate) fn output(typed: &Typed, loudness: Loudness) -> Output {
    let size = |name: &str| text(name).and_then(|it| it.parse().ok());
    Output::new(typed.form.clone(), loudness, typed.colour, (size("COLUMNS"), size("LINES")))
}

/// Like [`output`], for a command line that was parsed.
pub(crate) fn output_for(everywhere: &Everywhere, verb: Option<&Verb>) -> Output {
    let form = match &everywhere.json {
        Some(fields) => Form::Json(crate::fields::read(fields)),
        None => Form::Text,
    };
    let loudness = match (everywhere.quiet, everywhere.verbose) {
        (true, _) => Loudness::Quiet,
        (_, true) => Loudness::Verbose,
        _ => Loudness::Normal,
    };
    let output = output(&Typed { form, colour: everywhere.color.choice() }, loudness);
    if everywhere.no_pager || output.is_json() { output } else { output.with_pager(pager(verb)) }
}

/// The pager for long answers, and the variables that are added to its environment.
fn pager(verb: Option<&Verb>) -> Option<Pager> {
    // `log` and `diff` prefer git's own variable to `PAGER`.
    let is_of_git = matches!(verb, Some(Verb::Log(_) | Verb::Diff(_)));
    let of_git = env::var("GIT_PAGER").ok().filter(|_| is_of_git);
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let settings = pager::PagerSettings {
        own: env::var("PLANWATCH_PAGER").ok(),
        common: of_git.or_else(|| env::var("PAGER").ok()),
        terminal: text("TERM"),
        is_person: is_terminal && !is_in_step(),
    };
    // Git sets these variables, too. With them, a pager that is named without options shows colours.
    let options = [("LESS", "FRX"), ("LV", "-c")].into_iter().filter(|(name, _)| env::var_os(name).is_none());
    Some(Pager {
        command: pager::words(&settings)?,
        environment: options.map(|(name, value)| (name.into(), value.into())).collect(),
        is_named: settings.own.or(settings.common).is_some(),
    })
}

/// The variables that are set for processes that work on steps: a `PATH` on which they find `planwatch` itself.
pub(crate) fn environment_of_processes() -> Vec<(OsString, OsString)> {
    let own = env::current_exe().ok().and_then(|it| it.parent().map(Path::to_path_buf));
    let path = env::var_os("PATH").unwrap_or_default();
    // At the end, so that a planwatch on the user's PATH is preferred.
    let all = env::split_paths(&path).chain(own);
    env::join_paths(all).map(|it| vec![(OsString::from("PATH"), it)]).unwrap_or_default()
}

/// This process, for claims that hold as long as it runs. `None` if the system does not show processes.
pub(crate) fn own_process() -> Option<Process> {
    Process::find(&RealDisk, std::process::id())
}

/// The command line of the user's editor.
pub(crate) fn editor() -> Option<String> {
    text("VISUAL").or_else(|| text("EDITOR"))
}

/// An empty directory `plans` in a new temporary directory, for dry runs and reads without a plans directory. It is removed
/// on drop.
pub(crate) struct EmptyPlans {
    above: PathBuf,
}

impl EmptyPlans {
    pub(crate) fn path(&self) -> PathBuf {
        self.above.join("plans")
    }

    pub(crate) fn make(disk: &dyn Disk) -> Result<Self, Error> {
        let mut random = [0; 8];
        let at = env::temp_dir();
        disk.random(&mut random).map_err(|error| Error::Failed {
            code: "io-error",
            message: format!("no temporary directory could be made: {}", failure::system(&error)),
            hint: String::new(),
        })?;
        let above = at.join(format!("planwatch-{:016x}", u64::from_le_bytes(random)));
        let made = Self { above };
        make_plans_dir(disk, &made.path())?;
        Ok(made)
    }
}

impl Drop for EmptyPlans {
    fn drop(&mut self) {
        // If this fails, only empty directories remain among the temporary files.
        std::fs::remove_dir_all(&self.above).ok();
    }
}

/// The clock, or `PLANWATCH_NOW` for scripts whose output must be the same each time.
pub(crate) fn now() -> Time {
    if let Ok(Some(fixed)) = fixed_now() {
        return fixed;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanoseconds(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
}

/// The time in `PLANWATCH_NOW`, if it is set.
fn fixed_now() -> Result<Option<Time>, Failure> {
    let Some(typed) = variable("PLANWATCH_NOW") else { return Ok(None) };
    let parsed: Result<Time, NotATime> = typed.to_string_lossy().parse();
    parsed.map(Some).map_err(|it| {
        Failure::usage(format!("PLANWATCH_NOW: {it}"), "without this variable, the clock is used")
    })
}

/// The user's name: `PLANWATCH_BY`, else `by` in the configuration, else git's `user.name`, else the system's user, else
/// `unknown`.
fn by(workspace: &Workspace) -> String {
    let git = || {
        git_user::name(
            home().as_deref(),
            variable("XDG_CONFIG_HOME").as_deref(),
            workspace.repository.as_deref(),
        )
    };
    let system = || ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(text);
    let sources: [&dyn Fn() -> Option<String>; 4] =
        [&|| text("PLANWATCH_BY"), &|| workspace.config.by.clone(), &git, &system];
    // A blank name counts as not set.
    let named = sources.iter().find_map(|it| it().filter(|name| !is_blank(name)));
    named.unwrap_or_else(|| "unknown".to_owned())
}

fn home() -> Option<PathBuf> {
    variable("HOME").or_else(|| etcetera::home_dir().ok())
}

/// A variable that names a path; an empty one counts as not set.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from)
}

/// Whether this process can open a window.
pub(crate) fn has_screen() -> bool {
    let is_desktop = cfg!(any(target_os = "macos", target_os = "windows"));
    !is_remote() && (is_desktop || text("DISPLAY").is_some() || text("WAYLAND_DISPLAY").is_some())
}

/// Whether this runs in an SSH session from another machine.
pub(crate) fn is_remote() -> bool {
    text("SSH_CONNECTION").is_some() || text("SSH_TTY").is_some()
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.is_empty())
}
