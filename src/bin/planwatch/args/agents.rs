//! The arguments of `init` and `hook`.

use clap::{Args, ValueEnum};

use crate::args::work::DryRun;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch init
  planwatch init --agent claude
  planwatch init --agent codex --agent cursor --dry-run
  planwatch init --editor neovim
  planwatch init --undo

Without --agent and --editor, `init` creates the plans directory. With --agent, it installs the skills /ps-plan, /ps-plans and \
/ps-execute, and adds five lines (instructions between two markers) to CLAUDE.md, AGENTS.md or GEMINI.md, and \
planwatch's MCP server to the agent's configuration of this project. With --editor, it adds planwatch's settings to the \
editor's files in this project.

Nothing else in your files changes. --undo does not remove text that you changed.")]
pub(crate) struct Init {
    /// Agent to set up (can be repeated)
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Vec<Named>,
    /// Editor to set up (can be repeated)
    #[arg(long, value_name = "EDITOR")]
    pub(crate) editor: Vec<NamedEditor>,
    /// Undo the setup, for these agents and editors or for all
    #[arg(long)]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Named {
    Claude,
    Codex,
    Cursor,
    Gemini,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamedEditor {
    #[value(name = "vscode")]
    VsCode,
    Neovim,
    Helix,
    Zed,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch hook session-start
  planwatch hook stop

It prints nothing if there are no plans. It also prints nothing in a process that works on a step.")]
pub(crate) struct Hook {
    /// Event of the agent
    #[arg(value_name = "WHEN")]
    pub(crate) when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    SessionStart,
    Stop,
}
