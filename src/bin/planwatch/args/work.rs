//! The arguments of the verbs that report work.

use clap::Args;
use planwatch::api::requests;
use planwatch::store::transaction::Mode;

/// The option `--dry-run` of the verbs that write.
#[derive(Debug, Clone, Args)]
pub(crate) struct DryRun {
    /// Print the changes as a diff and write nothing
    #[arg(long = "dry-run")]
    is_dry_run: bool,
}

impl DryRun {
    pub(crate) fn mode(&self) -> Mode {
        if self.is_dry_run { Mode::DryRun } else { Mode::Write }
    }
}

/// The key that makes it safe to send a request again if its answer was lost.
#[derive(Debug, Clone, Args)]
pub(crate) struct Key {
    /// Idempotency key: a repetition within a day changes nothing
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// The name to record.
#[derive(Debug, Clone, Args)]
pub(crate) struct By {
    /// Name to record (default: PLANWATCH_BY, planwatch.toml or git's user.name)
    #[arg(long, value_name = "NAME", value_parser = requests::author_name)]
    pub(crate) by: Option<String>,
}

/// Arguments of `start`, `done`, `fail`, `block`, `skip` and `reopen`.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Steps (`auth:2`, or `2` in the current plan) or plans (`auth`), one or more; fail and block take only steps
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Message, recorded as an attempt (for a plan: as a note)
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
    /// Claim that this update belongs to
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    /// Override the checks (recorded as an attempt; for a plan: as a note)
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) key: Key,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

macro_rules! moves {
    ($($name:ident $examples:literal),* $(,)?) => {
        $(
            #[derive(Debug, Args)]
            #[command(after_help = $examples)]
            pub(crate) struct $name {
                #[command(flatten)]
                pub(crate) of: Move,
            }
        )*
    };
}

moves! {
    Start "Examples:\n  planwatch start auth:2\n  planwatch start auth          (a draft becomes active)",
    Done "Examples:\n  planwatch done 1\n  planwatch done auth:1 auth:2 -m 'reviewed and merged'\n  planwatch done auth          (the plan itself)",
    Fail "Example:\n  planwatch fail auth:2 -m 'the migration locks the table'",
    Block "Example:\n  planwatch block auth:2 -m 'waits for the new host'",
    Skip "Examples:\n  planwatch skip auth:2 -m 'the library does it'\n  planwatch skip auth          (the plan is abandoned)",
    Reopen "Examples:\n  planwatch reopen auth:2 -m 'a test was missing'\n  planwatch reopen auth",
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch claim
  planwatch claim auth --lease 2h
  planwatch claim auth:2 --pid 4711
  planwatch claim --renew h4f09a21

Exit code 7 means that no step was claimed. Pass the claim's id with --claim to the command that ends the work. \
`planwatch help claims` says when a claim lapses.")]
pub(crate) struct Claim {
    /// Plan from which to claim the next step, or the step to claim (default: PLANWATCH_PLAN, else all active plans)
    #[arg(value_name = "PLAN|STEP")]
    pub(crate) target: Option<String>,
    /// Claim duration, for example 90s, 30m, 2h or 1d (default: `lease` of the configuration, else 30m)
    #[arg(long, value_name = "TIME")]
    pub(crate) lease: Option<String>,
    /// Process ID; the claim ends when this process ends
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u32>,
    /// Restart the duration of this claim from now
    #[arg(long, value_name = "CLAIM", conflicts_with_all = ["target", "pid", "force", "by", "key"])]
    pub(crate) renew: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
    /// Override the checks (recorded as an attempt)
    #[arg(long)]
    pub(crate) force: bool,
    /// Claim on this machine only, without the remote; `sync` sends the claim later
    #[arg(long, conflicts_with = "renew")]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) key: Key,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch release auth:2
  planwatch release auth:2 -m 'needs the staging host'
  planwatch release --expired")]
pub(crate) struct Release {
    /// Steps to release (can be repeated)
    #[arg(value_name = "STEP", required_unless_present = "expired")]
    pub(crate) ids: Vec<String>,
    /// Release only lapsed claims; without STEP, all of them
    #[arg(long, conflicts_with_all = ["message", "key"])]
    pub(crate) expired: bool,
    /// Message, recorded as an attempt
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
    /// Claim that this update belongs to
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    /// Override the checks (recorded as an attempt)
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) key: Key,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch attempt auth:2 'partly done' --notes 'tables made, data not moved'
  planwatch attempt auth:2 failed --status failed

A pending, failed or blocked step becomes in progress, unless --status or --keep-status is given.")]
pub(crate) struct Attempt {
    /// Step that was tried
    #[arg(value_name = "STEP")]
    pub(crate) id: String,
    /// Outcome, in a word or two
    pub(crate) outcome: String,
    /// Details
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) notes: Option<String>,
    /// Time of the attempt, for example 2026-11-21T09:14:03Z (default: now)
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Also set the status of the step
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Do not change the status of the step
    #[arg(long, conflicts_with = "status")]
    pub(crate) keep_status: bool,
    #[command(flatten)]
    pub(crate) by: By,
    /// Claim that this attempt belongs to
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    /// Override the checks (recorded as an attempt)
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) key: Key,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch note auth:2 'the old table has 40 million rows'
  planwatch note auth 'ask before every release' --type instruction")]
pub(crate) struct Note {
    /// Plan or step
    pub(crate) id: String,
    /// Text of the note
    pub(crate) text: String,
    /// Kind of note: info, warning or instruction (default: info)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) key: Key,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch tick auth:2 1 3
  planwatch tick auth:2 3 --untick

Tasks are numbered from 1, in the order of the file. In a plan, the goals and success criteria that have a box are counted, too. The \
status does not change.")]
pub(crate) struct Tick {
    /// Step or plan
    pub(crate) id: String,
    /// Numbers of the tasks
    #[arg(required = true, value_name = "N")]
    pub(crate) tasks: Vec<usize>,
    /// Clear the boxes
    #[arg(long)]
    pub(crate) untick: bool,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch confirm auth:3
  planwatch confirm auth --phase rollout --note 'after the backup'
  planwatch confirm auth:3 --reject --note 'the numbers are wrong'

Only a person can confirm, and this command needs a terminal. Agents and scripts get an error with the command for a person to run. This stops \
an agent that follows the rules. It does not stop a program that writes a confirmation into the file itself. A confirmation \
records the name of the person.")]
pub(crate) struct Confirm {
    /// Step, or the plan of a phase
    pub(crate) id: String,
    /// Confirm this phase of the plan
    #[arg(long, value_name = "NAME")]
    pub(crate) phase: Option<String>,
    /// Reject: revoke an earlier confirmation and, without --phase, block the step
    #[arg(long)]
    pub(crate) reject: bool,
    /// Reason
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}
