//! `run`: starts a run and prints its progress.

mod screen;

use std::path::Path;
use std::time::{Duration, Instant};

use planwatch::api::agents::{self, AgentRequest};
use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::api::trust::Subject;
use planwatch::ops::run::{self as engine, Event, Preview, RunReport, RunRequest, Surface};
use planwatch::plan::time;
use planwatch::process::worker::Processes;

use clap::FromArgMatches;

use crate::args::run::Run;
use crate::args::{Cli, Verb};
use crate::commands::trust::{asked, may_ask};
use crate::context::{self, Session};
use crate::failure::{Failure, of_command_line};
use crate::fields;
use crate::signals;
use screen::Screen;

pub(crate) fn run(session: &Session, args: Run) -> Result<u8, Failure> {
    session.output.check_fields(fields::RUN)?;
    let is_dry_run = args.dry_run;
    let context = session.context()?;
    let request = request(session, &context, args)?;
    if is_dry_run {
        return show(session, &engine::preview(&context, &request)?);
    }
    let processes = Processes::default();
    let stop = processes.stopper();
    // A second signal ends this process at once. The next run repairs what this run left unfinished.
    let signals = signals::stop_at(move |is_first| {
        if is_first {
            stop.stop();
        }
        is_first
    });
    let plans = context.plans.root().to_path_buf();
    let screen = Screen::new(&session.output, request.jobs > 1);
    let surface = Terminal { session, plans: &plans, begun: Instant::now(), screen };
    let report = engine::run(&request, &surface, &processes)?;
    surface.screen.finish(&report)?;
    Ok(code(&report, signals.exit_code()))
}

/// The exit code of a run. If a signal interrupted the run, it is the exit code for that signal.
fn code(report: &RunReport, signal: Option<u8>) -> u8 {
    match (report.end, signal) {
        (engine::End::Interrupted, Some(code)) => code,
        (end, _) => end.exit_code(),
    }
}

fn request(session: &Session, context: &Context, args: Run) -> Result<RunRequest, Failure> {
    let asked = AgentRequest { agent: args.agent, command: args.command, own: session.own_agents() };
    let agent = agents::agent(context, &asked)?;
    if args.budget.is_some() && agent.cost.is_none() {
        let message = format!("the agent `{}` does not report its cost", agent.name);
        return Err(Failure::usage(message, "limit the run with --max-steps, --max-time or --max-attempts"));
    }
    let at_least_one = |name: &str, given: Option<usize>| match given {
        Some(0) => {
            Err(Failure::usage(format!("invalid value `0` for {name}"), "give a number of at least 1"))
        }
        given => Ok(given),
    };
    let max_attempts = at_least_one("--max-attempts", args.max_attempts.map(|it| it as usize))?;
    Ok(RunRequest {
        plan: args.plan,
        agent,
        by: args.by,
        jobs: at_least_one("--jobs", args.jobs)?.unwrap_or(1).min(64),
        max_steps: at_least_one("--max-steps", args.max_steps)?,
        max_attempts: max_attempts.and_then(|it| u32::try_from(it).ok()),
        timeout: span("--timeout", args.timeout)?,
        idle: span("--idle", args.idle)?,
        max_time: span("--max-time", args.max_time)?,
        budget: args.budget,
        trust_hashes: args.trust_hash,
        environment: context::environment_of_processes(),
        process: context::own_process(),
        commits: args.commit,
        has_worktrees: args.worktrees,
        keeps_worktrees: args.keep_worktrees,
    })
}

/// The request of a command line that was typed on the board, such as `run auth --agent claude`.
pub(crate) fn request_of_words(
    session: &Session,
    context: &Context,
    words: &[String],
) -> Result<RunRequest, Failure> {
    let line = std::iter::once("planwatch".to_owned()).chain(words.iter().cloned());
    let parsed = crate::args::command().try_get_matches_from(line);
    let parsed = parsed.and_then(|it| Cli::from_arg_matches(&it)).map_err(|it| of_command_line(&it))?;
    match parsed.verb {
        Some(Verb::Run(args)) if args.dry_run => {
            Err(Failure::usage("the board shows no dry runs", "run it in another terminal"))
        }
        Some(Verb::Run(args)) => request(session, context, args),
        _ => Err(Failure::usage("`run` needs a plan here", "for example `run auth --agent claude`")),
    }
}

fn span(option: &str, given: Option<String>) -> Result<Option<Duration>, Failure> {
    let read = |text: &String| time::read_seconds(text).and_then(|it| u64::try_from(it).ok());
    let wrong = |text: &str| {
        Failure::usage(
            format!("invalid value `{text}` for {option}"),
            "for example 90s, 30m, 2h or 1d, at most 366d",
        )
    };
    let seconds = given.map(|it| read(&it).ok_or_else(|| wrong(&it))).transpose()?;
    Ok(seconds.map(Duration::from_secs))
}

/// The surface of a run that was started on the command line.
struct Terminal<'a> {
    session: &'a Session,
    plans: &'a Path,
    begun: Instant,
    screen: Screen<'a>,
}

impl Surface for Terminal<'_> {
    fn context(&self) -> Result<Context, Error> {
        self.session.look_again(self.plans)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn report(&self, event: &Event<'_>) {
        self.screen.report(event);
    }

    fn may_trust(&self, subject: &Subject) -> bool {
        may_ask(self.session) && asked(subject, "Trust it?").unwrap_or(false)
    }
}

fn show(session: &Session, preview: &Preview) -> Result<u8, Failure> {
    if session.output.is_json() {
        session.output.json("run-preview", preview.to_json())?;
    } else {
        session.output.text(&screen::preview(preview, session.output.width))?;
    }
    Ok(if preview.step.is_some() { 0 } else { 7 })
}
