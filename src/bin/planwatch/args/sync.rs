//! The arguments of `sync` and its verbs.

use clap::{Args, Subcommand};

use crate::args::work::DryRun;

#[derive(Debug, Args)]
#[command(
    subcommand_help_heading = "Verbs",
    subcommand_value_name = "VERB",
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  planwatch sync init
  planwatch sync
  planwatch sync status

Without a verb, `sync` sends unsent changes of claims, renews the claims of this clone, and fetches those of others. It \
pushes nothing but claims."
)]
pub(crate) struct Sync {
    #[command(subcommand)]
    pub(crate) what: Option<SyncVerb>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SyncVerb {
    /// Find out where the remote allows claims, and write it into planwatch.toml
    Init(SyncInit),
    /// List the claims of all machines
    Status(SyncStatus),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch sync init
  planwatch sync init --remote upstream --branch develop

Commit planwatch.toml afterwards: it is the same for everyone.")]
pub(crate) struct SyncInit {
    /// Remote of this clone (default: origin, or the only one)
    #[arg(long, value_name = "NAME")]
    pub(crate) remote: Option<String>,
    /// Branch into which finished work is merged (default: the remote's default branch)
    #[arg(long, value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// PostgreSQL database for the claims, instead of the remote: postgres://USER@HOST/NAME, without a password
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch sync status
  planwatch sync status --json

If the remote does not answer, the claims are listed as they were last known.")]
pub(crate) struct SyncStatus {}
