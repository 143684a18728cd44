//! The arguments of the verbs that serve, and of those for setup and diagnosis.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::Shell;

#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  planwatch watch
  planwatch watch --json | jq -r '.id // empty'
  planwatch watch --detach
  planwatch watch --detach --http
  planwatch watch --stop

Only one daemon watches a plans directory; another `watch` follows its events.")]
pub(crate) struct Watch {
    /// Watch in the background, and return when it is ready
    #[arg(long, conflicts_with = "stop")]
    pub(crate) detach: bool,
    /// Stop the daemon
    #[arg(long)]
    pub(crate) stop: bool,
    /// Also serve HTTP, on 127.0.0.1:4001 or at ADDR
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "", conflicts_with = "stop")]
    pub(crate) http: Option<String>,
    /// Allow HTTP requests without a token from every process on this machine
    #[arg(long, requires = "http")]
    pub(crate) no_token: bool,
    /// Replace the token of these plans; requests with the old token are refused
    #[arg(long, requires = "http", conflicts_with = "no_token")]
    pub(crate) new_token: bool,
    /// Run as the process that `--detach` starts
    #[arg(long, hide = true, conflicts_with_all = ["detach", "stop"])]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch browser
  planwatch browser feature-auth
  planwatch browser --print

The daemon serves the pages; if none runs, `browser` starts one on 127.0.0.1. `planwatch watch --stop` stops it. \
The address contains a one-time sign-in code that expires after a minute. Changes in the browser are recorded under your name.")]
pub(crate) struct Browser {
    /// Plan or step to show first
    #[arg(value_name = "PLAN")]
    pub(crate) plan: Option<String>,
    /// Print the address and open no browser
    #[arg(long)]
    pub(crate) print: bool,
    /// Serve read-only pages, for example for a wall display
    #[arg(long)]
    pub(crate) read_only: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch token
  curl -H \"Authorization: Bearer $(planwatch token)\" http://localhost:4001/api/plans

The first `watch --http` creates the token. It stays the same until `watch --http --new-token` replaces it.")]
pub(crate) struct Token {}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  claude mcp add planwatch -- planwatch mcp
  codex mcp add planwatch -- planwatch mcp
  planwatch mcp --tools executor

An agent starts this server and communicates with it over standard input and output. The server ends when its input ends.")]
pub(crate) struct Mcp {
    /// Tool set: `all`, `executor` (only tools to work on one step) or `compat` (tools with the names that other planning
    /// tools use)
    #[arg(long, value_name = "SET", default_value = "all")]
    pub(crate) tools: Tools,
    /// Offer only read-only tools
    #[arg(long)]
    pub(crate) read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tools {
    All,
    Executor,
    Compat,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch lsp
  planwatch --plans docs/plans lsp

An editor starts this server and communicates with it over standard input and output. docs/editors.md lists the settings \
for each editor.")]
pub(crate) struct Lsp {
    /// Accepted, because some editors add it; there is no other way to communicate
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch doctor
  planwatch -q doctor
  planwatch doctor --reindex

Exit code 6 means that there are problems.")]
pub(crate) struct Doctor {
    /// Rebuild the index from the files first
    #[arg(long)]
    pub(crate) reindex: bool,
    /// Discard an unfinished change, by the ID that `doctor` reports
    ///
    /// Shows the change and removes its journal, so that its files can be written again. The part that was done
    /// stays, and texts that are in no file are stored.
    #[arg(long, value_name = "ID")]
    pub(crate) discard_journal: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch sql \"select id, title from steps where status = 'failed'\"
  planwatch sql \"select plan, count(*) from steps where status = 'pending' group by plan\"")]
pub(crate) struct Sql {
    /// SQL query
    #[arg(value_name = "QUERY")]
    pub(crate) query: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch completions bash > ~/.local/share/bash-completion/completions/planwatch
  planwatch completions zsh > ~/.zfunc/_planwatch
  planwatch completions fish > ~/.config/fish/completions/planwatch.fish")]
pub(crate) struct Completions {
    /// Shell to complete for
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Directory to write to; created if necessary
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) into: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch instructions
  planwatch instructions executing")]
pub(crate) struct Instructions {
    /// Topic: overview, executing, planning, claims or files
    pub(crate) topic: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch help --all
  planwatch help done
  planwatch help git commit
  planwatch help exit-codes")]
pub(crate) struct Help {
    /// Verb or topic
    pub(crate) topic: Option<String>,
    /// Verb of `git`, `script` or `sync`
    pub(crate) verb: Option<String>,
    /// List every verb, option and topic
    #[arg(long)]
    pub(crate) all: bool,
}
