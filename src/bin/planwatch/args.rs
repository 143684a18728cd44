//! The command line's words: verbs, options, their help and their examples. Does nothing with them.

pub(crate) mod look;
pub(crate) mod setup;
pub(crate) mod work;
pub(crate) mod write;

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};

use crate::help;

/// Plans as Markdown files, with steps that people and agents take one by one
#[derive(Debug, Parser)]
#[command(name = "planwatch", version, disable_help_subcommand = true, disable_help_flag = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub(crate) struct Everywhere {
    /// Plans directory (default: PLANS_DIR, else the nearest plans/ at or above here)
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub(crate) plans: Option<PathBuf>,
    /// Run as if started in DIR
    #[arg(short = 'C', global = true, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print one JSON object, or of it the FIELDS, separated by commas
    #[arg(
        long,
        global = true,
        value_name = "FIELDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        hide_short_help = true
    )]
    pub(crate) json: Option<String>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub(crate) color: Colour,
    /// Say nothing beside the answer
    #[arg(short, long, global = true, conflicts_with = "verbose", hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Say more about what happens
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) verbose: bool,
    /// Read the files themselves, not the index
    #[arg(long, global = true, hide = true)]
    pub(crate) no_index: bool,
    /// Print help
    #[arg(short, long, global = true, action = ArgAction::HelpShort, hide_short_help = true)]
    help: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

impl Colour {
    pub(crate) fn choice(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say what needs attention, who does what, and what is ready
    #[command(alias = "briefing")]
    Status(look::Status),
    /// List the plans, or the steps of one
    #[command(alias = "ls")]
    List(look::List),
    /// List the steps of a plan
    #[command(hide = true)]
    Steps(look::Steps),
    /// List the plans that nobody has touched for a while
    #[command(hide = true)]
    Stale(look::Stale),
    /// Show a plan or a step with its text
    Show(look::Show),
    /// Name the step to do now, and why
    Next(look::Next),
    /// Search the text of all plans and steps
    #[command(alias = "recall")]
    Search(look::Search),
    /// Report what is wrong in the files, and where
    Check(look::Check),
    /// Begin steps, or activate a draft plan
    Start(work::Start),
    /// Complete steps, or a plan
    #[command(alias = "complete")]
    Done(work::Done),
    /// Say that steps failed, and why
    Fail(work::Fail),
    /// Say that steps cannot go on, and why
    Block(work::Block),
    /// Leave steps out, or abandon a plan
    Skip(work::Skip),
    /// Open steps again, or a plan that was over
    Reopen(work::Reopen),
    /// Record a try at a step and its outcome
    Attempt(work::Attempt),
    /// Add a remark to a plan or a step
    Note(work::Note),
    /// Make a plan with its steps
    New(write::New),
    /// Add a step to a plan
    Add(write::Add),
    /// Open a plan or a step in your editor, and check it afterwards
    Edit(write::Edit),
    /// Change a field of a plan or a step
    Set(write::Set),
    /// Remove a field of a plan or a step
    #[command(hide = true)]
    Unset(write::Unset),
    /// Move a step to another place in its plan
    Move(write::Move),
    /// Remove steps or a plan; what is removed is kept in the archive
    #[command(alias = "delete", alias = "rm")]
    Remove(write::Remove),
    /// Take back the last change, if nothing has changed since
    Undo(write::Undo),
    /// Print what changes, as it happens
    Watch(setup::Watch),
    /// Ask the index with a SQL query that only reads
    Sql(setup::Sql),
    /// Print the completions of a shell
    Completions(setup::Completions),
    /// Write the manual pages into a directory
    Man(setup::Man),
    /// Explain a verb or a topic
    Help(setup::Help),
}

const VERB_HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

{all-args}{after-help}

Options of every verb: planwatch help --all
";

/// The whole command line, with the first help screen in place of clap's own.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let screen = help::first_screen(&command);
    command.override_help(screen).mut_subcommands(|it| it.help_template(VERB_HELP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        command().debug_assert();
    }
}
