//! The arguments of `git` and its verbs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::args::work::DryRun;

#[derive(Debug, Args)]
#[command(
    subcommand_help_heading = "Verbs",
    subcommand_value_name = "VERB",
    after_help = "Examples:
  planwatch git commit
  planwatch git commit auth:2 --dry-run
  planwatch git setup
  planwatch git resolve

Nothing is committed unless you ask for it."
)]
pub(crate) struct Git {
    #[command(subcommand)]
    pub(crate) what: GitVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GitVerb {
    /// Commit the plan files that planwatch wrote
    Commit(GitCommit),
    /// Let git merge plan files by meaning in this clone
    Setup(GitSetup),
    /// Merge conflicted plan files by meaning
    Resolve(GitResolve),
    /// Merge one file; git and jj run this
    MergeDriver(GitMergeDriver),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch git commit
  planwatch git commit auth -m 'Close the schema step'
  planwatch git commit auth:2 --dry-run

Your later edits of these files, and what you have staged, stay as they are.")]
pub(crate) struct GitCommit {
    /// Plans and steps (default: all)
    #[arg(value_name = "PLAN|STEP")]
    pub(crate) ids: Vec<String>,
    /// Message in place of the generated subject
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch git setup
  planwatch git setup --dry-run
  planwatch git setup --undo

The driver is a setting of this clone. Commit `.gitattributes` to share the attribute. In a clone without the driver, git \
merges as usual.")]
pub(crate) struct GitSetup {
    /// Remove the driver and the attribute
    #[arg(long)]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch git resolve
  planwatch git resolve plans/auth/step-2.md
  planwatch git resolve --renumber
  planwatch git resolve --check
  planwatch git resolve --restore auth:2

Files in which no conflict is left are staged. A file that you have edited since the merge is not merged again; attempts and notes \
that git dropped may still be added to it by this command. \
Exit code 1 means that a file is still unresolved; with --check, exit code 6 means that entries were lost or that a status differs.")]
pub(crate) struct GitResolve {
    /// Files in conflict (default: all plan files in conflict)
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Compare a finished merge with a merge by meaning (default: the last merge)
    #[arg(long, value_name = "REV", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = ["renumber", "paths", "is_dry_run"])]
    pub(crate) check: Option<String>,
    /// If both sides added a step with the same number, give the other side's step a free number
    #[arg(long)]
    pub(crate) renumber: bool,
    /// Bring back a removed step whose file changed after the removal; `check --git` lists such steps
    #[arg(long, value_name = "STEP", conflicts_with_all = ["renumber", "paths", "check"])]
    pub(crate) restore: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch git merge-driver %O %A %B %L %P

`planwatch git setup` makes git run this. The result replaces OURS. Exit code 1 means that the result has conflict markers.")]
pub(crate) struct GitMergeDriver {
    /// The common ancestor; empty if both sides added the file
    #[arg(value_name = "BASE")]
    pub(crate) base: PathBuf,
    /// Our version
    #[arg(value_name = "OURS")]
    pub(crate) ours: PathBuf,
    /// Their version
    #[arg(value_name = "THEIRS")]
    pub(crate) theirs: PathBuf,
    /// Length of conflict markers
    #[arg(value_name = "SIZE")]
    pub(crate) marker_size: u32,
    /// Path of the file in the repository
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    /// Write the result to this file instead
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}
