//! The words of the verbs that keep what was decided and learned, and commands by their name.

use clap::{Args, Subcommand};

use crate::args::work::{By, DryRun};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch decide authentication 'Use JWT' --because 'No session store to run'
  planwatch decide authentication
  planwatch decide --since 7d
  planwatch decide --topics

A decision is never changed: another one takes its place with --supersedes ID.")]
pub(crate) struct Decide {
    /// What it is about; without TEXT the decisions on it are listed, newest first
    pub(crate) topic: Option<String>,
    /// What was decided; - reads it from standard input
    #[arg(requires = "topic")]
    pub(crate) text: Option<String>,
    /// Say why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "text")]
    pub(crate) because: Option<String>,
    /// Take the place of an earlier decision
    #[arg(long, value_name = "ID", requires = "text")]
    pub(crate) supersedes: Option<String>,
    /// Give it a tag, or list what has it (can be repeated)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Say that it is about a plan, or list what is
    #[arg(long)]
    pub(crate) plan: Option<String>,
    /// Say that it is about a step, or list what is
    #[arg(long, conflicts_with = "plan")]
    pub(crate) step: Option<String>,
    /// Keep a YAML mapping with it
    #[arg(long, value_name = "YAML", requires = "text")]
    pub(crate) metadata: Option<String>,
    /// List at most N decisions
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// List what was decided since a time, as 2026-11-21 or 7d
    #[arg(long, value_name = "TIME", conflicts_with = "text")]
    pub(crate) since: Option<String>,
    /// List the topics
    #[arg(long, conflicts_with = "topic")]
    pub(crate) topics: bool,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch insight 'The cache is cold after a restart' 'Warm it before the first request.'
  planwatch insight 'How sessions end' - --plan auth < notes.md
  planwatch insight --tag cache")]
pub(crate) struct Insight {
    /// What to find it by; without TEXT the insights of that title are listed, newest first
    pub(crate) title: Option<String>,
    /// What was learned; - reads it from standard input
    #[arg(requires = "title")]
    pub(crate) text: Option<String>,
    /// Say that it is about a plan, or list what is
    #[arg(long)]
    pub(crate) plan: Option<String>,
    /// Give it a tag, or list what has it (can be repeated)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// List at most N insights
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// List what was learned since a time, as 2026-11-21 or 7d
    #[arg(long, value_name = "TIME", conflicts_with = "text")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(
    subcommand_help_heading = "Verbs",
    subcommand_value_name = "VERB",
    after_help = "Examples:
  planwatch script add build 'make all' --directory server
  planwatch script list
  planwatch script show build --json
  planwatch script run build
  planwatch script remove build --dry-run

A script that came with the repository runs once `planwatch trust` was told so."
)]
pub(crate) struct Script {
    #[command(subcommand)]
    pub(crate) what: Option<ScriptVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptVerb {
    /// Keep a command under a name
    Add(ScriptAdd),
    /// List the scripts
    List(ScriptList),
    /// Show a script, with the paths that it means here
    Show(ScriptName),
    /// Run a script
    Run(ScriptRun),
    /// Take a script away; `undo` takes it back
    Remove(ScriptRemove),
}

#[derive(Debug, Args)]
pub(crate) struct ScriptAdd {
    /// Name; the script's id is made from it
    pub(crate) name: String,
    /// One line for a shell
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: String,
    /// Run it in a directory of the repository (default: its root)
    #[arg(long = "directory", value_name = "DIR")]
    pub(crate) runs_in: Option<String>,
    /// Say that it belongs to a plan
    #[arg(long)]
    pub(crate) plan: Option<String>,
    /// Say what it does
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Name the handle that MCP clients know it by
    #[arg(long, value_name = "NAME")]
    pub(crate) mcp_handle: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptList {
    /// List the scripts of a plan
    #[arg(long)]
    pub(crate) plan: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptName {
    /// Script
    #[arg(value_name = "SCRIPT")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptRun {
    /// Script
    #[arg(value_name = "SCRIPT")]
    pub(crate) id: String,
    /// Run it this once without asking, if this is the hash of what would run
    #[arg(long, value_name = "HASH")]
    pub(crate) trust_hash: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptRemove {
    /// Script
    #[arg(value_name = "SCRIPT")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch trust
  planwatch trust build
  planwatch trust auth:2
  planwatch trust --list
  planwatch trust --revoke build

What is trusted is remembered outside the repository, for exactly what would run.")]
pub(crate) struct Trust {
    /// Scripts, steps or plans whose commands to trust; without any, everything that wants trust here is listed
    #[arg(value_name = "NAME")]
    pub(crate) scripts: Vec<String>,
    /// Do not ask, if this is the hash of what would run
    #[arg(long, value_name = "HASH", conflicts_with_all = ["list", "revoke"])]
    pub(crate) trust_hash: Option<String>,
    /// List what is trusted on this machine
    #[arg(long, conflicts_with_all = ["scripts", "revoke"])]
    pub(crate) list: bool,
    /// Trust them no more; without a name, nothing of this repository
    #[arg(long)]
    pub(crate) revoke: bool,
}
