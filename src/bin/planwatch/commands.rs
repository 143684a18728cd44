//! Parses the command line and runs its verb. The module of a verb makes the request of the operation and prints its
//! report.

mod add;
mod archive;
mod check;
mod claim;
mod confirm;
mod doctor;
mod draft;
pub(crate) mod edit;
mod export;
mod git;
mod help;
mod import;
mod init;
mod know;
mod list;
mod log;
mod lsp;
mod mcp;
mod moves;
mod new;
mod next;
pub(crate) mod run;
mod script;
mod search;
mod set;
mod setup;
mod show;
mod sql;
mod stats;
mod status;
mod sync;
mod tasks;
mod template;
mod token;
mod trust;
mod undo;
mod watch;
mod welcome;

use std::ffi::OsString;

use clap::FromArgMatches;
use clap::error::ErrorKind;
use planwatch::plan::transitions::Verb as Move;

use crate::args::{self, Cli, Verb};
use crate::board;
use crate::context::{self, Session};
use crate::failure::{self, Failure};
use crate::output::Loudness;
use crate::typed;

/// Runs a command line and returns its exit code.
pub(crate) fn run(words: &[OsString]) -> u8 {
    let marked = typed::with_texts_marked(words);
    let parse = |command: clap::Command| {
        command.try_get_matches_from(&marked).and_then(|it| Cli::from_arg_matches(&it))
    };
    // Most command lines are valid, so only the clap command of the typed verb is built first. If it does not parse the
    // line, the commands of all verbs are built.
    let quick = typed::verb(words).and_then(|it| args::command_of(&it));
    let cli = quick.and_then(|it| parse(it).ok()).map_or_else(|| parse(args::command()), Ok);
    let Cli { everywhere, verb } = match cli {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error, words),
    };
    let output = context::output_for(&everywhere, verb.as_ref());
    let is_looking = verb.as_ref().is_none_or(is_looking);
    let is_settling = matches!(verb, Some(Verb::Sync(_)));
    let session = Session::begin(&everywhere, output.clone());
    let session = session.map(|it| it.looking(is_looking).settling(is_settling));
    let done = session.and_then(|session| dispatch(&session, verb));
    done.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit
    })
}

/// Prints the help or the version if that was requested; any other error means that the command line is invalid.
fn not_understood(error: &clap::Error, words: &[OsString]) -> u8 {
    let output = context::output(&typed::look(words), Loudness::Normal);
    let failure = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match output.text(&error.render().ansi().to_string()) {
                Ok(_) => return 0,
                Err(failure) => failure,
            }
        }
        _ => failure::of_command_line(error),
    };
    output.failure(&failure);
    failure.exit
}

/// Whether a verb only reads and does not itself report interrupted changes. For such a verb, the session reports them.
fn is_looking(verb: &Verb) -> bool {
    match verb {
        Verb::List(_) | Verb::Steps(_) | Verb::Stale(_) | Verb::Show(_) | Verb::Next(_) | Verb::Search(_) => {
            true
        }
        Verb::Export(_) | Verb::Sql(_) | Verb::Doctor(_) | Verb::Log(_) | Verb::Diff(_) | Verb::Stats(_) => {
            true
        }
        Verb::Undo(args) => args.list,
        _ => false,
    }
}

fn dispatch(session: &Session, verb: Option<Verb>) -> Result<u8, Failure> {
    let Some(verb) = verb else { return welcome::run(session) };
    match verb {
        Verb::Status(args) => status::run(session, &args),
        Verb::Board(args) => board::run(session, &args),
        Verb::List(args) => list::run(session, args),
        Verb::Steps(args) => list::steps(session, args),
        Verb::Stale(args) => list::stale(session, args),
        Verb::Stats(args) => stats::run(session, args),
        Verb::Show(args) => show::run(session, args),
        Verb::Next(args) => next::run(session, args),
        Verb::Search(args) => search::run(session, &args),
        Verb::Log(args) => log::run(session, args),
        Verb::Diff(args) => log::diff(session, args),
        Verb::Check(args) => check::run(session, &args),
        Verb::Claim(args) => claim::run(session, args),
        Verb::Release(args) => claim::release(session, args),
        Verb::Start(args) => moves::run(session, Move::Start, args.of),
        Verb::Done(args) => moves::run(session, Move::Done, args.of),
        Verb::Fail(args) => moves::run(session, Move::Fail, args.of),
        Verb::Block(args) => moves::run(session, Move::Block, args.of),
        Verb::Skip(args) => moves::run(session, Move::Skip, args.of),
        Verb::Reopen(args) => moves::run(session, Move::Reopen, args.of),
        Verb::Attempt(args) => moves::attempt(session, args),
        Verb::Note(args) => moves::note(session, args),
        Verb::Tick(args) => tasks::tick(session, args),
        Verb::Confirm(args) => confirm::run(session, args),
        Verb::New(args) => new::run(session, args),
        Verb::Add(args) => add::run(session, args),
        Verb::Edit(args) => edit::run(session, &args),
        Verb::Set(args) => set::run(session, args),
        Verb::Unset(args) => set::unset(session, args),
        Verb::Move(args) => set::renumber(session, args),
        Verb::Split(args) => tasks::split(session, args),
        Verb::Squash(args) => set::squash(session, args),
        Verb::Replace(args) => set::replace(session, args),
        Verb::StepsList(args) => tasks::steps_list(session, args),
        Verb::Remove(args) => set::remove(session, args),
        Verb::Archive(args) => archive::run(session, args),
        Verb::Restore(args) => archive::restore(session, args),
        Verb::Undo(args) => undo::run(session, &args),
        Verb::Decide(args) => know::decide(session, args),
        Verb::Insight(args) => know::insight(session, args),
        Verb::Script(args) => script::run(session, args),
        Verb::Run(args) => run::run(session, args),
        Verb::Draft(args) => draft::run(session, &args),
        Verb::Trust(args) => trust::run(session, &args),
        Verb::Watch(args) => watch::run(session, &args),
        Verb::Browser(args) => watch::browser::run(session, &args),
        Verb::Token(args) => token::run(session, &args),
        Verb::Mcp(args) => mcp::run(session, &args),
        Verb::Lsp(_) => lsp::run(session),
        Verb::Init(args) => init::run(session, &args),
        Verb::Hook(args) => init::hook(session, &args),
        Verb::Doctor(args) => doctor::run(session, &args),
        Verb::Import(args) => import::run(session, args),
        Verb::Export(args) => export::run(session, args),
        Verb::Template(args) => template::run(session, args),
        Verb::Git(args) => git::run(session, args),
        Verb::Sync(args) => sync::run(session, args),
        Verb::Sql(args) => sql::run(session, &args),
        Verb::Completions(args) => setup::completions(session, &args),
        Verb::Man(args) => setup::man(session, &args),
        Verb::Instructions(args) => setup::instructions(session, &args),
        Verb::Help(args) => help::run(session, &args),
    }
}
