//! `watch --detach` and `--stop`: starts and stops a process that watches without a terminal.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use planwatch::api::error::Error;
use planwatch::process::daemon::{self, Started};
use planwatch::serve::daemon::api::{End, Observer};
use planwatch::serve::daemon::event_loop;
use planwatch::serve::http::Serving;
use planwatch::serve::ipc::event::Event;
use planwatch::serve::{Status, Untrusted, untrusted};
use serde_json::json;

use super::http::{self, Http};
use super::{
    SILENCE, answering, answers_on, end_giving_way, ended, in_the_way, just_begun, no_answer, polling,
    stop_at_signals, who, within, without_answer, without_socket,
};
use crate::args::setup::Watch;
use crate::context::{self, Session};
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::screens::count;

/// Starts a process that watches, unless one is running. Returns once that process sees all further changes.
pub(super) fn start(session: &Session, plans: &Path, args: &Watch) -> Result<u8, Failure> {
    let Begun { state, status, said } = begin(session, plans, args)?;
    if state == RUNNING {
        http::check_options(args, http::address(session, args)?, &status)?;
    }
    print_state(session, state, &status, &said)
}

/// The state of a process that watched already.
const RUNNING: &str = "running";

/// A process that watches, and the message about it.
pub(super) struct Begun {
    state: &'static str,
    status: Status,
    said: String,
}

/// Like [`start`], but prints nothing.
pub(super) fn begin(session: &Session, plans: &Path, args: &Watch) -> Result<Begun, Failure> {
    let running = |status: Status| {
        let said = who(&status);
        Begun { state: RUNNING, status, said }
    };
    let address = http::address(session, args)?;
    let context = session.look_again(plans)?;
    let root = context.plans.root();
    if let Some((_, status)) = in_the_way(session, plans, address.is_some())? {
        http::check_running(args, &status)?;
        return Ok(running(status));
    }
    if context.plans.made_runtime_dir().is_none() {
        let message = "a daemon cannot run here, because `.planwatch` cannot be used";
        // A process in the foreground has the pages and the API only without a token.
        let hint = if address.is_some() { "`planwatch doctor` explains why" } else { "planwatch watch" };
        return Err(Failure::failed("no-daemon", message).with_hint(hint).with_exit(8));
    }
    let (log_path, log) = context.plans.daemon_log().map_err(|error| cannot(&error))?;
    let logged = log.metadata().map_err(|error| cannot(&error))?.len();
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let mut words = session.words_to_detach(root);
    words.extend(address.map(|it| format!("--http={it}").into()));
    words.extend(args.no_token.then(|| "--no-token".into()));
    words.extend(args.new_token.then(|| "--new-token".into()));
    match daemon::start(&program, &words, log).map_err(|error| cannot(&error))? {
        Started::Ready(line) => {
            if let Some(why) = untrusted(&context.plans, &context::socket_dirs()) {
                session.output.stderr_line(&without_socket(&why));
            }
            let status: Status = serde_json::from_str(&line).map_err(|error| cannot(&error))?;
            let log = shown(session, &log_path);
            let Status { pid, plans, steps, .. } = status;
            let (plans, steps) = (count(plans, "plan"), count(steps, "step"));
            let on = answers_on(&status);
            let said = format!("process {pid} watches {plans} with {steps}{on}; its log is {log}");
            Ok(Begun { state: "started", status, said })
        }
        // The exit code 4 means that another process started first. That process is about to answer.
        Started::Failed(Some(4)) => {
            let (_, status) = just_begun(&context.plans)?;
            http::check_running(args, &status)?;
            Ok(running(status))
        }
        Started::Failed(_) => {
            let text = context.plans.daemon_log_since(logged).unwrap_or_default();
            let error = last_error(&text);
            let why = error.map(|it| format!(": {}", it.0)).unwrap_or_default();
            let message =
                format!("the daemon ended immediately{why}; its log is {}", shown(session, &log_path));
            let failure = Failure::failed("no-daemon", message).with_exit(8);
            Err(match error.and_then(|it| it.1) {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            })
        }
    }
}

/// The message and the hint of the last error in the log of a command.
fn last_error(log: &str) -> Option<(&str, Option<&str>)> {
    let error = log.lines().rev().find_map(|it| it.strip_prefix("error[")?.split_once("]: "))?.1;
    Some((error, log.lines().rev().find_map(|it| it.strip_prefix("hint: "))))
}

/// Stops the process that watches, and returns when it has ended. A process that has other work stops watching, but
/// continues to run.
pub(super) fn stop(session: &Session, plans: &Path) -> Result<u8, Failure> {
    let context = session.look_again(plans)?;
    let Some((client, status)) = answering(&context.plans)? else {
        // A killed process still holds the lock for a moment.
        if within(SILENCE, || context.plans.daemon_lock().map_or(Some(()), |it| it.map(drop))).is_none() {
            return Err(without_answer());
        }
        let failure = Failure::failed("no-daemon", "no daemon watches these plans");
        return Err(failure.with_hint("planwatch watch --detach").with_exit(8));
    };
    let ended = if status.gives_way { end_giving_way(client, &context.plans)? } else { client.stop() };
    let Some(status) = ended else {
        return Err(Failure::failed("no-daemon", "the process that watches does not end").with_exit(8));
    };
    print_state(
        session,
        "stopped",
        &status,
        &format!(
            "process {} {}",
            status.pid,
            if status.gives_way { "no longer watches" } else { "has ended" }
        ),
    )
}

fn print_state(session: &Session, state: &str, status: &Status, said: &str) -> Result<u8, Failure> {
    if session.output.is_json() {
        let Status { pid, release, since, plans, steps, http, .. } = status;
        let report = json!({
            "state": state, "pid": pid, "release": release, "since": since, "plans": plans, "steps": steps,
            "http": http,
        });
        session.output.json("daemon", report)?;
    } else {
        session.output.report(&format!("{said}\n"))?;
    }
    Ok(0)
}

fn shown(session: &Session, path: &Path) -> String {
    path.strip_prefix(session.directory())
        .map_or_else(|_| path.to_path_buf(), PathBuf::from)
        .display()
        .to_string()
}

fn cannot(error: &dyn std::error::Error) -> Failure {
    Failure::failed("no-daemon", format!("no process can be started: {}", failure::system(error)))
        .with_exit(8)
}

/// The process that `watch --detach` starts: prints its status once, and after that only writes to its log.
pub(super) fn run(session: &Session, plans: &Path, args: &Watch) -> Result<u8, Failure> {
    daemon::leave_terminal();
    let (inbox, http) = http::prepare(session, plans, args, http::address(session, args)?)?;
    let signals = stop_at_signals(inbox.stopper());
    let mut log = Log { session, plans, http, failure: None };
    let end = event_loop::watch(&|| session.look_again(plans), &context::socket_dirs(), inbox, &mut log);
    log.http.end();
    if let Some(error) = log.failure.take() {
        return Err(error.into());
    }
    match end? {
        End::Another => Err(no_answer(None)),
        end => {
            log.line(&format!("ended: {}", end.why()));
            ended(&end, signals.exit_code_of_service())
        }
    }
}

struct Log<'a> {
    session: &'a Session,
    plans: &'a Path,
    http: Http,
    failure: Option<Error>,
}

impl Log<'_> {
    fn line(&self, text: &str) {
        let now = self.session.look_again(self.plans).map(|it| it.now.to_string()).unwrap_or_default();
        let output: &Output = &self.session.output;
        output.stderr_line(format!("{now} {text}").trim_start());
    }
}

impl Observer for Log<'_> {
    fn ready(&mut self, status: &Status) -> ControlFlow<()> {
        if let Err(error) = self.http.start() {
            self.failure = Some(error);
            return ControlFlow::Break(());
        }
        self.line(&who(status));
        let line = serde_json::to_string(status).unwrap_or_default();
        let said = self.session.output.bytes(format!("{line}\n").as_bytes());
        // The process that started this one may be gone. This one continues to run for other commands.
        if said.is_err() || daemon::close_output().is_err() {
            self.line("the process that started this daemon has ended");
        }
        ControlFlow::Continue(())
    }

    fn event(&mut self, _event: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn polling(&mut self, why: Option<&str>) {
        self.line(&polling(why));
    }

    fn without_socket(&mut self, why: &Untrusted) {
        self.line(&without_socket(why));
    }

    fn ending(&mut self) {
        self.http.serving().into_iter().for_each(Serving::close);
    }

    fn mended(&mut self) {
        self.http.serving().into_iter().for_each(Serving::put_token);
    }
}
