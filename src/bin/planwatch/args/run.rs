//! The words of `run`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch run auth --agent claude
  planwatch run auth --command './work.sh' --max-steps 1
  planwatch run auth --agent codex --jobs 2 --timeout 30m --idle 5m
  planwatch run auth --agent claude --dry-run

Agents: claude, codex, gemini, aider, shell (with --command), and those of your own configuration.

What a process says counts for nothing: the step's file decides.

Exit codes: 0 complete, 1 halted, 5 a person has to confirm or to trust, 7 nothing is ready, 130 stopped.")]
pub(crate) struct Run {
    /// Plan, or program
    pub(crate) plan: String,
    /// Agent that works on the steps
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Line for a shell that works on a step; it reads the prompt on standard input
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// Work on so many steps side by side (default: 1)
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// End after so many steps
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<usize>,
    /// Try a step so often (default: `max_attempts` of the configuration, else 3)
    #[arg(long, value_name = "N")]
    pub(crate) max_attempts: Option<u32>,
    /// End an attempt after a while, as 90s, 30m or 2h (default: 1h)
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// End an attempt whose process says nothing for a while
    #[arg(long, value_name = "TIME")]
    pub(crate) idle: Option<String>,
    /// End the run after a while
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<String>,
    /// End the run when so many US dollars are spent; for agents that tell what they cost
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<f64>,
    /// Name to record (default: the agent's)
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Let commands run this once without asking, if this is the hash of what would run (can be repeated)
    #[arg(long, value_name = "HASH")]
    pub(crate) trust_hash: Vec<String>,
    /// Print the first step with the command, the limits and the prompt that its agent would get; start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
