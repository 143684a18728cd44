//! The arguments of the verbs that only read.

use clap::{Args, ValueEnum};
use planwatch::ops::show::GraphForm;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch status
  planwatch status --days 30
  planwatch status --all
  planwatch status --markdown > briefing.md")]
pub(crate) struct Status {
    /// Steps unchanged for N days are stale; steps completed in the last N days are listed (default: `stale_days` of the
    /// configuration, else 7)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) days: Option<u32>,
    /// Show all lines of each section
    #[arg(long)]
    pub(crate) all: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Also show steps whose status differs on unmerged git branches
    #[arg(long)]
    pub(crate) branches: bool,
}

impl Status {
    /// The command that shows the lines that do not fit on the screen; `None` if this command has `--all`.
    pub(crate) fn more(&self) -> Option<String> {
        let days = self.days.map(|it| format!(" --days {it}")).unwrap_or_default();
        let branches = if self.branches { " --branches" } else { "" };
        (!self.all).then(|| format!("planwatch status{days}{branches} --all"))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch board
  planwatch board auth

`?` shows the keys, `q` quits.")]
pub(crate) struct Board {
    /// Plan to open first
    pub(crate) plan: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch list
  planwatch list auth
  planwatch list auth --status failed --status blocked
  planwatch list --sort -priority,updated
  planwatch list --all --json=id,status")]
pub(crate) struct List {
    /// Plan whose steps to list
    pub(crate) plan: Option<String>,
    /// List only this status (can be repeated)
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub(crate) status: Vec<String>,
    /// List the plans of this program
    #[arg(long, value_name = "PLAN", conflicts_with = "plan")]
    pub(crate) program: Option<String>,
    /// List only this tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// List only what is stale
    #[arg(long)]
    pub(crate) stale: bool,
    /// List archived plans
    #[arg(long)]
    pub(crate) archived: bool,
    /// List every plan: open, closed and archived
    #[arg(long)]
    pub(crate) all: bool,
    /// Sort by id, title, status, updated, created, due or priority; -KEY reverses the order
    #[arg(long, value_name = "KEY[,KEY]", allow_hyphen_values = true)]
    pub(crate) sort: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch steps auth")]
pub(crate) struct Steps {
    /// Plan whose steps to list
    pub(crate) plan: String,
    /// List only this status (can be repeated)
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub(crate) status: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch stale
  planwatch stale auth --days 3
  planwatch stale --days 36h")]
pub(crate) struct Stale {
    /// Plan whose steps to list (default: all)
    pub(crate) plan: Option<String>,
    /// List steps without a change for N days, or for a duration such as 36h or 2w (default: `stale_days` of the configuration, else 7)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) days: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch stats
  planwatch stats auth --since 26w
  planwatch stats --by-agent")]
pub(crate) struct Stats {
    /// Plan whose steps to count (default: all, also archived ones)
    pub(crate) plan: Option<String>,
    /// Count only what was recorded since TIME, for example 2026-11-21 or 7d
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// Also count the attempts of each worker
    #[arg(long)]
    pub(crate) by_agent: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch show auth
  planwatch show auth:2.5
  planwatch show auth --graph mermaid")]
pub(crate) struct Show {
    /// Plan or step, as in `auth`, `auth:2.5`, or `2.5` in the current plan
    pub(crate) id: String,
    /// Include the text of every step
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the dependency graph
    #[arg(long, value_name = "FORM", conflicts_with = "full")]
    pub(crate) graph: Option<Graph>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Graph {
    Text,
    Mermaid,
    Dot,
}

impl Graph {
    pub(crate) fn form(self) -> GraphForm {
        match self {
            Self::Text => GraphForm::Text,
            Self::Mermaid => GraphForm::Mermaid,
            Self::Dot => GraphForm::Dot,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch next
  planwatch next auth
  planwatch start $(planwatch next --json auth | jq -r .step.id)

Exit code 7 means that nothing is ready. If the plan is complete, the exit code is 0.")]
pub(crate) struct Next {
    /// Plan (default: PLANWATCH_PLAN, else all active plans)
    pub(crate) plan: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch search token
  planwatch search hash -token
  planwatch search '\"refresh token\" -draft'
  planwatch search cache --kind insight --since 30d")]
pub(crate) struct Search {
    /// Words to find; "…" for a phrase, -word to exclude a word
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) query: Vec<String>,
    /// Find only this kind: plan, step, decision or insight
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Find only what changed since a time, for example 2026-11-21 or 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Print at most N results
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch check
  planwatch check --fix --dry-run
  planwatch check --git

Exit code 6 means that there are errors. If there are only warnings, the exit code is 0.")]
pub(crate) struct Check {
    /// Fix what can be fixed without losing data
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also report removed and archived steps whose files changed later, for example through a merge
    #[arg(long)]
    pub(crate) git: bool,
    /// Print the changes as a diff and write nothing
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch log
  planwatch log auth:2
  planwatch log auth --timeline
  planwatch log --what status,attempt --by ann --since 7d
  planwatch log main..feature

The history is read from the commits of the git repository around the plans.")]
pub(crate) struct Log {
    /// Plan or step (default: all), and a range of commits such as main..feature
    #[arg(value_name = "PLAN|STEP|RANGE", num_args = 0..=2)]
    pub(crate) of: Vec<String>,
    /// Show only changes since a time, for example 2026-11-21 or 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Show only changes until a time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Show only changes that this person or agent made or committed
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Show only these changes, for example status,attempt
    #[arg(long, value_name = "CHANGE", value_delimiter = ',')]
    pub(crate) what: Vec<String>,
    /// Show at most N changes
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Revision, or range of commits; always means a revision, even if a plan has that name
    #[arg(long, value_name = "REV")]
    pub(crate) rev: Option<String>,
    /// Show for each step of a plan when it waited, was worked on, and was closed
    #[arg(long, conflicts_with_all = ["since", "until", "by", "what", "limit", "rev"])]
    pub(crate) timeline: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch diff
  planwatch diff auth -p
  planwatch diff main...
  planwatch diff --staged
  planwatch diff main...feature --markdown")]
pub(crate) struct Diff {
    /// Plan (default: all), and one or two revisions: REV, REV REV, REV..REV or REV...REV (default: HEAD)
    #[arg(value_name = "PLAN|REV", num_args = 0..=2)]
    pub(crate) of: Vec<String>,
    /// Compare with what is staged, not with the working tree
    #[arg(long)]
    pub(crate) staged: bool,
    /// Also print the text that differs
    #[arg(short, long)]
    pub(crate) patch: bool,
    /// Revision; always means a revision, even if a plan has that name
    #[arg(long, value_name = "REV")]
    pub(crate) rev: Option<String>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}
