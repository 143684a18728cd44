//! The arguments of `run`.

use clap::Args;
use planwatch::api::requests;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch run auth --agent claude
  planwatch run auth --command './work.sh' --max-steps 1
  planwatch run auth --agent codex --jobs 2 --timeout 30m --idle 5m
  planwatch run auth --agent claude --worktrees --jobs 4
  planwatch run auth --agent claude --dry-run

Agents: claude, codex, gemini, aider, shell (with --command), and those that your configuration or the repository's planwatch.toml defines.

The result of an attempt is the status in the step's file. The output and the exit code of the process do not decide it.

Exit codes: 0 complete, 1 halted by a step or a limit, 5 a person has to confirm a step or trust a command, 7 nothing is ready, 130 interrupted.")]
pub(crate) struct Run {
    /// Plan, or program
    pub(crate) plan: String,
    /// Agent that works on the steps
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Shell command that works on a step; it reads the prompt on standard input
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// Number of steps to work on in parallel (default: 1)
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Maximum number of steps
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<usize>,
    /// Maximum attempts per step (default: `max_attempts` of the configuration, else 3)
    #[arg(long, value_name = "N")]
    pub(crate) max_attempts: Option<u32>,
    /// Time limit for an attempt, for example 90s, 30m or 2h (default: 1h)
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Maximum time without output in an attempt
    #[arg(long, value_name = "TIME")]
    pub(crate) idle: Option<String>,
    /// Time limit for the run
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<String>,
    /// Cost limit for the run in US dollars; for agents that report their cost
    #[arg(long, value_name = "USD", value_parser = budget, allow_negative_numbers = true)]
    pub(crate) budget: Option<f64>,
    /// Name to record (default: the agent's)
    #[arg(long, value_name = "NAME", value_parser = requests::author_name)]
    pub(crate) by: Option<String>,
    /// Run commands with this hash without asking, in this run only (can be repeated)
    #[arg(long, value_name = "HASH")]
    pub(crate) trust_hash: Vec<String>,
    /// Work on each step in a git worktree of its own; verified work is merged, and your branch is updated at the end
    #[arg(long)]
    pub(crate) worktrees: bool,
    /// Keep the worktrees and branches of steps whose work is merged
    #[arg(long, requires = "worktrees")]
    pub(crate) keep_worktrees: bool,
    /// Commit each step's file to git after its attempt; with --worktrees, all of them at the end
    #[arg(long)]
    pub(crate) commit: bool,
    /// Print the first step with the command, the limits and the prompt that its agent would get; start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// With `nan` or `inf`, the cost would have no limit.
fn budget(text: &str) -> Result<f64, &'static str> {
    let amount = text.parse().ok().filter(|it: &f64| it.is_finite() && *it > 0.0);
    amount.ok_or("not an amount above 0")
}
