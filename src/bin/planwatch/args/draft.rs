//! The arguments of `draft`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::work::By;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch draft sign-in --from CONVERSATION.md --agent claude
  planwatch draft 'Sign in' --from - --command './ask.sh' --show-diff
  planwatch draft sign-in --continue --agent claude
  planwatch draft sign-in --steps --agent claude

Agents: claude, codex, gemini, each in a read-only mode. Your own command reads the prompt on standard \
input and answers on standard output. The plan stays a draft until `planwatch start`. Exit codes: 0 done, 1 no answer, \
4 edited meanwhile, 124 time limit exceeded, 130 interrupted. After an error, `--continue` continues.")]
pub(crate) struct Draft {
    /// Name or title of the draft
    pub(crate) name: String,
    /// Read the conversation from FILE, or from standard input with -
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, allow_hyphen_values = true, conflicts_with = "steps")]
    pub(crate) from: Option<PathBuf>,
    /// Agent to use: claude, codex or gemini
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub(crate) agent: Option<String>,
    /// Shell command to use as the agent
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// Maximum number of passes (default: 6)
    #[arg(long, value_name = "N")]
    pub(crate) passes: Option<u32>,
    /// Continue an unfinished draft
    #[arg(long = "continue", conflicts_with = "steps")]
    pub(crate) go_on: bool,
    /// Create the steps of a finished draft
    #[arg(long)]
    pub(crate) steps: bool,
    /// Show what each pass changes
    #[arg(long)]
    pub(crate) show_diff: bool,
    /// Time limit for a pass, for example 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) by: By,
    /// Show what the agent would be asked; start and write nothing
    #[arg(long = "dry-run")]
    pub(crate) is_dry_run: bool,
}
