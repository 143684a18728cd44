//! Declares the command line: verbs and options, with their help and examples. Executes nothing.

pub(crate) mod agents;
pub(crate) mod draft;
pub(crate) mod git;
pub(crate) mod import;
pub(crate) mod know;
pub(crate) mod look;
pub(crate) mod run;
pub(crate) mod setup;
pub(crate) mod sync;
pub(crate) mod work;
pub(crate) mod write;

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};

use crate::help;

/// Plans as Markdown files, with steps for people and agents
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
    /// Plans directory (default: PLANS_DIR, else `plans_dir` of the configuration, else the nearest plans/ at or above here)
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub(crate) plans: Option<PathBuf>,
    /// Run as if started in DIR
    #[arg(short = 'C', global = true, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print one JSON object, or only the given FIELDS, separated by commas
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
    /// Print only the result
    #[arg(short, long, global = true, conflicts_with = "verbose", hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) verbose: bool,
    /// Read the files instead of the index
    #[arg(long, global = true, hide = true)]
    pub(crate) no_index: bool,
    /// Print long output directly, without a pager
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_pager: bool,
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

/// The verbs, each with the name that help shows and its aliases.
macro_rules! verbs {
    ($($(#[$about:meta])* $verb:ident($arguments:ty) = $name:literal $(| $alias:literal)*;)*) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $($(#[$about])* #[command(name = $name $(, alias = $alias)*)] $verb($arguments),)*
        }

        /// The command of the verb with this name or alias. Its arguments are the same as in the whole command line.
        fn verb_alone(name: &str) -> Option<clap::Command> {
            let (name, aliases, arguments): (_, &[&str], fn(clap::Command) -> clap::Command) = match name {
                $($name $(| $alias)* => ($name, &[$($alias),*], <$arguments>::augment_args),)*
                _ => return None,
            };
            Some(arguments(clap::Command::new(name)).aliases(aliases))
        }
    };
}

verbs! {
    /// Show what needs attention, is in progress or is ready
    Status(look::Status) = "status" | "briefing";
    /// Show a live board of the plans in the terminal
    Board(look::Board) = "board";
    /// List the plans, or the steps of one
    List(look::List) = "list" | "ls";
    /// List the steps of a plan
    #[command(hide = true)]
    Steps(look::Steps) = "steps";
    /// List the steps that have been ready or in progress for a while
    Stale(look::Stale) = "stale";
    /// Show statistics: closed steps, attempts, outcomes and durations
    Stats(look::Stats) = "stats";
    /// Show a plan or a step with its text
    Show(look::Show) = "show";
    /// Show the next ready step, and why it is next
    Next(look::Next) = "next";
    /// Search plans, steps, decisions and insights
    Search(look::Search) = "search" | "recall";
    /// Show the history of plans and steps, from git commits
    Log(look::Log) = "log";
    /// Show how plans differ between commits and the working tree
    Diff(look::Diff) = "diff";
    /// Report problems in the files, with line and column
    Check(look::Check) = "check";
    /// Claim a step exclusively
    Claim(work::Claim) = "claim";
    /// Release claimed steps without finishing them
    Release(work::Release) = "release";
    /// Start steps, or activate a draft plan
    Start(work::Start) = "start";
    /// Complete steps, or a plan
    Done(work::Done) = "done" | "complete";
    /// Mark steps as failed, with the reason
    Fail(work::Fail) = "fail";
    /// Mark steps as blocked, with the reason
    Block(work::Block) = "block";
    /// Skip steps, or abandon a plan
    Skip(work::Skip) = "skip";
    /// Reopen closed, failed or blocked steps, or a closed plan
    Reopen(work::Reopen) = "reopen";
    /// Record an attempt at a step and its outcome
    Attempt(work::Attempt) = "attempt";
    /// Add a note to a plan or a step
    Note(work::Note) = "note";
    /// Tick tasks of a step, or goals and tasks of a plan
    Tick(work::Tick) = "tick";
    /// Approve or reject a step, or a phase of a plan
    Confirm(work::Confirm) = "confirm";
    /// Create a plan with its steps
    New(write::New) = "new";
    /// Add a step to a plan
    Add(write::Add) = "add";
    /// Edit a plan or a step in your editor, and check it afterwards
    Edit(write::Edit) = "edit";
    /// Change a field of a plan or a step
    Set(write::Set) = "set";
    /// Remove a field of a plan or a step
    #[command(hide = true)]
    Unset(write::Unset) = "unset";
    /// Move a step to another place in its plan
    Move(write::Move) = "move";
    /// Make a task of a step a step of its own
    Split(write::Split) = "split";
    /// Merge several steps into one
    Squash(write::Squash) = "squash" | "consolidate";
    /// Replace the steps of a plan with those of a list
    Replace(write::Replace) = "replace" | "restructure";
    /// Write the Steps list of a plan that has none
    StepsList(write::StepsList) = "steps-list";
    /// Remove steps or plans; `undo` brings them back
    Remove(write::Remove) = "remove" | "delete" | "rm";
    /// Archive plans, or restore them
    Archive(write::Archive) = "archive";
    /// Restore archived plans
    #[command(hide = true)]
    Restore(write::Restore) = "restore";
    /// Undo the last change, or an older one by its id
    Undo(write::Undo) = "undo";
    /// Record a decision and its reason, or show decisions
    Decide(know::Decide) = "decide";
    /// Record an insight, or show insights
    Insight(know::Insight) = "insight";
    /// Save commands under a name, and run them
    Script(know::Script) = "script";
    /// Run an agent on a plan's steps, one process per attempt
    Run(run::Run) = "run";
    /// Draft a plan from a conversation, in several passes
    Draft(draft::Draft) = "draft";
    /// Choose which commands of this repository may run
    Trust(know::Trust) = "trust";
    /// Create plans from Markdown documents and other tools' data
    Import(import::Import) = "import";
    /// Print a plan as one document
    Export(import::Export) = "export";
    /// List, show or try the plan templates and prompts
    Template(import::Template) = "template";
    /// Print changes as they happen
    Watch(setup::Watch) = "watch";
    /// Show the plans in a browser
    Browser(setup::Browser) = "browser";
    /// Print the token that requests over HTTP need
    Token(setup::Token) = "token";
    /// Commit plan files, and merge them by meaning
    Git(git::Git) = "git";
    /// Share claims with other machines through the git remote
    Sync(sync::Sync) = "sync";
    /// Serve tools for agents (Model Context Protocol)
    Mcp(setup::Mcp) = "mcp";
    /// Serve editors (Language Server Protocol)
    Lsp(setup::Lsp) = "lsp";
    /// Set up a project for plans, and for agents
    Init(agents::Init) = "init";
    /// Print the context for an agent's session
    #[command(hide = true)]
    Hook(agents::Hook) = "hook";
    /// Diagnose this setup: index, locks, file system, watching
    Doctor(setup::Doctor) = "doctor";
    /// Run a read-only SQL query on the index
    Sql(setup::Sql) = "sql";
    /// Print the completion script of a shell
    Completions(setup::Completions) = "completions";
    /// Write the manual pages into a directory
    Man(setup::Man) = "man";
    /// Print instructions for agents
    Instructions(setup::Instructions) = "instructions";
    /// Explain a verb or a topic
    Help(setup::Help) = "help";
}

const VERB_HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

{all-args}{after-help}

Options of every verb: planwatch help --all
";

/// Like [`VERB_HELP`], for verbs that have neither arguments nor options.
const BARE_VERB_HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}{after-help}

Options of every verb: planwatch help --all
";

/// The whole command line, with the first help screen instead of clap's own.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let screen = help::first_screen(&command);
    command.override_help(screen).mut_subcommands(|it| {
        let is_bare = it.get_arguments().next().is_none() && !it.has_subcommands();
        it.help_template(if is_bare { BARE_VERB_HELP } else { VERB_HELP })
    })
}

/// The command line with only this verb; `None` if the word is not a verb.
///
/// It exists to save time. Many verbs run in less time than it takes to build the commands of all verbs.
pub(crate) fn command_of(verb: &str) -> Option<clap::Command> {
    let own = verb_alone(verb)?;
    let root = clap::Command::new("planwatch").disable_help_subcommand(true).disable_help_flag(true);
    Some(Everywhere::augment_args(root).subcommand(own))
}

/// Like [`command`], but without planwatch's own help screens: for completions and manual pages.
pub(crate) fn whole_command() -> clap::Command {
    Cli::command()
}

/// The command line without hidden verbs and options, and without the subcommands of verbs: for manual pages and for
/// completions of `help`.
pub(crate) fn visible_command() -> clap::Command {
    let whole = Cli::command();
    let shown = |it: &clap::Command, own: clap::Command| {
        let arguments = it.get_arguments().filter(|it| !it.is_hide_set());
        let own = own.args(arguments.map(|it| it.clone().hide_short_help(false)));
        own.about(it.get_about().cloned().unwrap_or_default())
            .after_help(it.get_after_help().cloned().unwrap_or_default())
    };
    let root = clap::Command::new("planwatch")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .disable_help_flag(true);
    let verbs = help::GROUPS.iter().flat_map(|(_, of)| of.iter().copied());
    let verbs = verbs.filter_map(|name| Some(shown(whole.find_subcommand(name)?, clap::Command::new(name))));
    shown(&whole, root).subcommands(verbs)
}

/// The hidden verbs, each with the verb to suggest instead.
const INSTEAD: [(&str, &str); 4] =
    [("steps", "list"), ("unset", "set"), ("restore", "archive"), ("hook", "status")];

/// Words that people type instead of a verb, listed with the verb that they mean. A suggestion by spelling would not find
/// the verb: for `create`, it would be `reopen` or nothing.
const SYNONYMS: [(&str, &[&str]); 39] = [
    ("board", &["kanban", "tui", "dashboard", "ui"]),
    ("status", &["info", "overview", "summary", "state", "st", "stat", "report"]),
    ("list", &["all", "plans", "dir", "index"]),
    ("show", &["view", "cat", "get", "print", "read", "display", "describe", "open", "inspect"]),
    ("next", &["ready", "todo", "what", "queue"]),
    ("search", &["find", "grep", "query", "lookup"]),
    ("log", &["history", "timeline", "events", "changes", "activity"]),
    ("diff", &["compare", "changed", "delta"]),
    ("check", &["lint", "validate", "fsck", "verify", "test"]),
    ("claim", &["take", "grab", "lock", "acquire", "assign", "pick", "checkout"]),
    ("release", &["unclaim", "unlock", "give", "drop", "unassign"]),
    ("start", &["begin", "activate", "work", "resume", "continue"]),
    ("done", &["finish", "finished", "completed", "close", "end", "resolve", "ok"]),
    ("fail", &["failed", "error", "broken"]),
    ("block", &["blocked", "pause", "hold", "wait", "suspend"]),
    ("skip", &["skipped", "cancel", "abandon", "ignore", "omit", "abort"]),
    ("reopen", &["reset", "retry", "unblock", "redo", "undone"]),
    ("attempt", &["try", "record"]),
    ("note", &["comment", "remark", "annotate"]),
    ("tick", &["untick", "toggle"]),
    ("confirm", &["approve", "accept", "yes", "allow", "sign"]),
    ("new", &["create", "make", "plan", "generate"]),
    ("add", &["insert", "append", "step", "task"]),
    ("edit", &["change", "modify", "vi", "vim", "editor"]),
    ("set", &["update", "assignee", "field", "priority", "due"]),
    ("move", &["mv", "rename", "renumber", "reorder", "order"]),
    ("squash", &["merge", "join", "combine", "fold"]),
    ("remove", &["del", "destroy", "trash", "erase"]),
    ("undo", &["revert", "rollback", "back"]),
    ("decide", &["decision", "decisions", "adr"]),
    ("insight", &["insights", "learn", "learned", "memory", "remember"]),
    ("run", &["execute", "exec", "go", "agent", "drive"]),
    ("draft", &["refine", "brainstorm", "outline"]),
    ("import", &["convert", "load", "migrate"]),
    ("watch", &["serve", "daemon", "follow", "monitor", "server", "tail", "http"]),
    ("init", &["setup", "install", "configure"]),
    ("git", &["commit", "merge-driver"]),
    ("lsp", &["language-server", "vscode", "neovim"]),
    ("help", &["man-page", "manual", "usage", "commands", "topics"]),
];

/// The verb that a word from `SYNONYMS` stands for.
pub(crate) fn meant_by(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    SYNONYMS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(verb, _)| *verb)
}

/// Converts a suggestion of clap into the one that is shown. An alias becomes the main name of its verb, and a hidden verb
/// becomes the visible verb to use instead. Returns `None` for a hidden option.
pub(crate) fn visible(name: &str) -> Option<String> {
    let command = Cli::command();
    if let Some(option) = name.strip_prefix("--") {
        let verbs = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let is_hidden = |it: &clap::Arg| it.get_long() == Some(option) && it.is_hide_set();
        return (!command.get_arguments().chain(verbs).any(is_hidden)).then(|| name.to_owned());
    }
    // A value, such as one of `--color`, is not a verb and stays as it is.
    let verb = command.find_subcommand(name).map_or(name, clap::Command::get_name);
    let instead = INSTEAD.iter().find(|(it, _)| *it == verb).map_or(verb, |(_, instead)| instead);
    Some(instead.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_valid() {
        command().debug_assert();
        visible_command().debug_assert();
    }

    #[test]
    fn each_verb_defined_alone_has_the_same_arguments() {
        let arguments = |it: &clap::Command| it.get_arguments().cloned().collect::<Vec<_>>();
        let whole = Cli::command();
        for verb in whole.get_subcommands() {
            for name in std::iter::once(verb.get_name()).chain(verb.get_all_aliases()) {
                let command = command_of(name).unwrap_or_else(|| panic!("`{name}` is missing"));
                let alone = command.find_subcommand(name).unwrap();
                assert_eq!(alone.get_name(), verb.get_name());
                assert_eq!(format!("{:?}", arguments(alone)), format!("{:?}", arguments(verb)), "{name}");
                assert_eq!(format!("{:?}", arguments(&command)), format!("{:?}", arguments(&whole)));
            }
        }
        assert!(command_of("no-verb").is_none());
    }

    #[test]
    fn no_verb_records_a_blank_name() {
        let takes = |it: &&clap::Command| it.get_arguments().any(|it| it.get_long() == Some("by"));
        let whole = Cli::command();
        // `log --by` is a filter.
        let verbs = whole.get_subcommands().filter(takes).filter(|it| it.get_name() != "log");
        let mut n_checked = 0;
        for verb in verbs {
            for name in ["", " ", "\t\n"] {
                let refused = Cli::try_parse_from(["planwatch", verb.get_name(), "--by", name]);
                let kind = refused.map(|_| ()).map_err(|it| it.kind());
                assert_eq!(kind, Err(ErrorKind::ValueValidation), "{}: {name:?}", verb.get_name());
            }
            n_checked += 1;
        }
        assert!(n_checked > 20, "{n_checked}");
    }

    #[test]
    fn each_synonym_stands_for_one_visible_verb_and_is_no_verb_itself() {
        let command = visible_command();
        let mut seen = std::collections::BTreeSet::new();
        for (verb, words) in SYNONYMS {
            assert!(command.find_subcommand(verb).is_some(), "{verb}");
            for word in words {
                assert!(Cli::command().find_subcommand(word).is_none(), "{word} is a verb");
                assert!(seen.insert(word), "{word} stands for two verbs");
            }
        }
        assert_eq!(meant_by("Create"), Some("new"));
    }

    #[test]
    fn what_is_hidden_is_not_offered() {
        let hidden: Vec<_> =
            Cli::command().get_subcommands().filter(|it| it.is_hide_set()).cloned().collect();
        assert_eq!(hidden.len(), INSTEAD.len());
        for verb in hidden {
            let instead = visible(verb.get_name()).unwrap();
            assert!(visible_command().find_subcommand(&instead).is_some(), "{instead}");
            assert!(visible_command().find_subcommand(verb.get_name()).is_none());
        }
        assert_eq!(visible("--no-index"), None);
        assert_eq!(visible("--status").as_deref(), Some("--status"));
        assert_eq!(visible("rm").as_deref(), Some("remove"));
    }
}
