//! The arguments of `decide`, `insight`, `script` and `trust`.

use clap::{Args, Subcommand};

use crate::args::work::{By, DryRun};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch decide authentication 'Use JWT' --because 'No session store to run'
  planwatch decide authentication
  planwatch decide --since 7d
  planwatch decide --topics

A decision is never changed. To replace it, record another one with --supersedes ID.")]
pub(crate) struct Decide {
    /// Topic; without TEXT, list the decisions on it, newest first
    pub(crate) topic: Option<String>,
    /// The decision; - reads it from standard input
    #[arg(requires = "topic")]
    pub(crate) text: Option<String>,
    /// Reason
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "text")]
    pub(crate) because: Option<String>,
    /// Supersede an earlier decision
    #[arg(long, value_name = "ID", requires = "text")]
    pub(crate) supersedes: Option<String>,
    /// Tag to add, or to list by (can be repeated)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Plan that the decision concerns, or whose decisions to list
    #[arg(long)]
    pub(crate) plan: Option<String>,
    /// Step that the decision concerns, or whose decisions to list
    #[arg(long, conflicts_with = "plan")]
    pub(crate) step: Option<String>,
    /// Additional data, as a YAML mapping
    #[arg(long, value_name = "YAML", requires = "text")]
    pub(crate) metadata: Option<String>,
    /// List at most N decisions
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// List only decisions since a time, for example 2026-11-21 or 7d
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
    /// Title; without TEXT, list the insights with that title, newest first
    pub(crate) title: Option<String>,
    /// The insight; - reads it from standard input
    #[arg(requires = "title")]
    pub(crate) text: Option<String>,
    /// Plan that the insight concerns, or whose insights to list
    #[arg(long)]
    pub(crate) plan: Option<String>,
    /// Tag to add, or to list by (can be repeated)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// List at most N insights
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// List only insights since a time, for example 2026-11-21 or 7d
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

A script that came with the repository runs only after `planwatch trust`."
)]
pub(crate) struct Script {
    #[command(subcommand)]
    pub(crate) what: Option<ScriptVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptVerb {
    /// Add a named command
    Add(ScriptAdd),
    /// List the scripts
    List(ScriptList),
    /// Show a script, with its paths resolved
    Show(ScriptName),
    /// Run a script
    Run(ScriptRun),
    /// Remove a script; `undo` restores it
    Remove(ScriptRemove),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch script add build 'make all' --directory server")]
pub(crate) struct ScriptAdd {
    /// Name of the script; its id is made from the name
    pub(crate) name: String,
    /// Shell command, on one line
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: String,
    /// Directory to run the command in (default: the root of the repository)
    #[arg(long = "directory", value_name = "DIR")]
    pub(crate) runs_in: Option<String>,
    /// Plan that the script belongs to
    #[arg(long)]
    pub(crate) plan: Option<String>,
    /// What the script does, shown by `script list`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Name of the script for MCP clients
    #[arg(long, value_name = "NAME")]
    pub(crate) mcp_handle: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch script list --plan auth")]
pub(crate) struct ScriptList {
    /// List only the scripts of this plan
    #[arg(long)]
    pub(crate) plan: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch script show build --json")]
pub(crate) struct ScriptName {
    /// Name or id of the script
    #[arg(value_name = "SCRIPT")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch script run build")]
pub(crate) struct ScriptRun {
    /// Name or id of the script
    #[arg(value_name = "SCRIPT")]
    pub(crate) id: String,
    /// Run the script once without asking, if this is the hash of what would run
    #[arg(long, value_name = "HASH")]
    pub(crate) trust_hash: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch script remove build --dry-run")]
pub(crate) struct ScriptRemove {
    /// Name or id of the script
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

Trust is stored outside the repository, for exactly the command that would run.")]
pub(crate) struct Trust {
    /// Scripts, steps, plans or agents (`agent:NAME`) whose commands to trust (default: list everything that needs trust)
    #[arg(value_name = "NAME")]
    pub(crate) scripts: Vec<String>,
    /// Trust without asking, if this is the hash of what would run
    #[arg(long, value_name = "HASH", conflicts_with_all = ["list", "revoke"])]
    pub(crate) trust_hash: Option<String>,
    /// List what is trusted on this machine
    #[arg(long, conflicts_with_all = ["scripts", "revoke"])]
    pub(crate) list: bool,
    /// Revoke trust; without a name, for everything in this repository
    #[arg(long)]
    pub(crate) revoke: bool,
}
