//! The arguments of the verbs that write plans and steps.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use crate::args::work::{By, DryRun};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch new auth Schema Migrations Tests
  planwatch new 'Sign in with a password' 'Design the schema' --tag web --priority high
  planwatch new 'Ideas for spring' --draft
  planwatch new 'Sign in' --template feature --goal 'People have accounts'
  planwatch new Launch --kind program --children auth,billing")]
pub(crate) struct New {
    /// Title of the plan, from which its id is made
    pub(crate) title: String,
    /// Titles of its steps
    #[arg(value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    /// Template to start from; `planwatch template list` lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Description of the plan
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Goal (can be repeated)
    #[arg(long = "goal", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) goals: Vec<String>,
    /// Success criterion (can be repeated)
    #[arg(long = "criterion", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) criteria: Vec<String>,
    /// Tag (can be repeated)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Category of the plan
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Priority: low, medium, high or critical (default: medium)
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// Program that the plan belongs to
    #[arg(long, value_name = "PLAN")]
    pub(crate) program: Option<String>,
    /// Kind: a plan, or a program that other plans belong to
    #[arg(long, default_value = "plan")]
    pub(crate) kind: Kind,
    /// Existing plan to add to the new program (can be repeated)
    #[arg(long, value_name = "PLAN", value_delimiter = ',')]
    pub(crate) children: Vec<String>,
    /// Create a draft; its steps cannot be claimed until `start` makes it active
    #[arg(long)]
    pub(crate) draft: bool,
    /// Make each step wait for the one before (`order: sequential`)
    #[arg(long)]
    pub(crate) sequential: bool,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Plan,
    Program,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch add auth 'Write the tests'
  planwatch add auth 'Back up the table' --after 2
  planwatch add auth Deploy --depends 3 --depends billing:4
  planwatch add auth 'Port the data' --body - < port.md")]
pub(crate) struct Add {
    /// Plan that gets the step
    pub(crate) plan: String,
    /// Title of the step
    pub(crate) title: String,
    /// Insert the step directly after step N, for example as 2.5 after 2 (default: last)
    #[arg(long, value_name = "N", conflicts_with = "at")]
    pub(crate) after: Option<String>,
    /// Number of the step
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<String>,
    /// Step that the new step depends on (can be repeated)
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub(crate) depends: Vec<String>,
    /// Phase of the step
    #[arg(long)]
    pub(crate) phase: Option<String>,
    /// Type of the step
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// File that the work will change (can be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) touches: Vec<String>,
    /// Command that must succeed before a run completes the step (can be repeated)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) verify: Vec<String>,
    /// Additional data, as a YAML or JSON mapping
    #[arg(long, value_name = "YAML")]
    pub(crate) metadata: Option<String>,
    /// Read the text of the step from FILE, or from standard input with -
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, allow_hyphen_values = true)]
    pub(crate) body: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) by: By,
    /// Also use numbers that other branches or working trees already use
    #[arg(long)]
    pub(crate) no_branches: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch edit auth:2
  EDITOR='code --wait' planwatch edit auth")]
pub(crate) struct Edit {
    /// Plan or step
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch set auth:2 title 'Move the data'
  planwatch set auth priority high
  planwatch set auth tags+=web
  planwatch set auth:2 depends-=1
  planwatch set auth:2 assignee --unset
  planwatch set auth:2 metadata '{rows: 40}' --yaml
  planwatch set auth:2 'verify+={run: make, dir: web}' --yaml

VALUE is text, or with --yaml a YAML value.")]
pub(crate) struct Set {
    /// Plan or step
    pub(crate) id: String,
    /// Field; KEY+=VALUE adds to a list, KEY-=VALUE removes from it
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// New value
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: Option<String>,
    /// Remove the field
    #[arg(long, conflicts_with = "value")]
    pub(crate) unset: bool,
    /// Read VALUE as YAML, not as text
    #[arg(long, conflicts_with = "unset")]
    pub(crate) yaml: bool,
    #[command(flatten)]
    pub(crate) of: SetOptions,
}

#[derive(Debug, Args)]
pub(crate) struct SetOptions {
    #[command(flatten)]
    pub(crate) by: By,
    /// Claim that this update belongs to
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    /// Override the checks (an overridden claim is recorded)
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch unset auth:2 assignee")]
pub(crate) struct Unset {
    /// Plan or step
    pub(crate) id: String,
    /// Field
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) of: SetOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch move auth:5 --after 2
  planwatch move auth:5 --before 1
  planwatch move auth:5 --to 2.5
  planwatch move auth --to sign-in

If the number of a step changes, the `depends` of other steps are updated.")]
#[command(group(ArgGroup::new("place").args(["after", "before", "to"]).required(true)))]
pub(crate) struct Move {
    /// Step to move, or with --to a plan
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Move the step directly after step N
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<String>,
    /// Move the step directly before step N
    #[arg(long, value_name = "N")]
    pub(crate) before: Option<String>,
    /// New number of the step, which must be free, or new name of the plan
    #[arg(long, value_name = "NEW")]
    pub(crate) to: Option<String>,
    /// Also use numbers that other branches or working trees already use
    #[arg(long)]
    pub(crate) no_branches: bool,
    #[command(flatten)]
    pub(crate) of: SetOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch remove auth:3
  planwatch remove auth --yes

Removed files are moved to _archive. A step that depended on a removed step then depends on the dependencies of the removed step.")]
pub(crate) struct Remove {
    /// Steps or plans (can be repeated)
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Also remove plans; without this option, plans are refused
    #[arg(long)]
    pub(crate) yes: bool,
    /// Also remove steps that are claimed or in progress, steps whose dependents cannot be updated, and files that are not
    /// part of the plan
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) by: By,
    /// Claim that this update belongs to
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  planwatch split auth:2 3

The new step is placed directly after STEP, and has its dependencies and phase. The text of the task becomes a link to the new step. Tasks are \
numbered from 1, in the order of the file.")]
pub(crate) struct Split {
    /// Step with the task
    #[arg(value_name = "STEP")]
    pub(crate) id: String,
    /// Number of the task
    #[arg(value_name = "TASK")]
    pub(crate) task: usize,
    #[command(flatten)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  planwatch steps-list auth

The list has a line for each step, with its dependencies, below the heading `## Steps`. `add`, `set`, `move` and `remove` keep it up to date.")]
pub(crate) struct StepsList {
    /// Plan
    pub(crate) plan: String,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch squash auth 2 3 4 --title 'Middleware and routes'

The new step has the lowest of the numbers, and contains the texts, attempts and notes of all these steps. Steps that depended on \
one of them depend on the new step. The original texts of the files are kept in _archive.")]
pub(crate) struct Squash {
    /// Plan of the steps
    pub(crate) plan: String,
    /// Numbers of the steps, two or more
    #[arg(required = true, value_name = "N")]
    pub(crate) steps: Vec<String>,
    /// Title of the new step
    #[arg(long, value_name = "TITLE", required = true)]
    pub(crate) title: String,
    #[command(flatten)]
    pub(crate) by: By,
    /// Override the check for steps in progress (an overridden claim is recorded)
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch replace auth --file steps.md --dry-run
  planwatch list auth --json > steps.json; planwatch replace auth --file steps.json
  printf -- '- Schema\\n- Routes (depends: 1)\\n' | planwatch replace auth --file -

The list is Markdown, or JSON as `list --json` has it, or YAML with the same fields if FILE ends in .yaml or .yml. Steps that it names, by title or as step-N, keep their file and \
history; open steps that it does not name are moved to _archive; closed steps stay. A step that depended on a removed step depends on the \
new steps at the removed step's position and on the removed step's dependencies.")]
pub(crate) struct Replace {
    /// Plan of the steps
    pub(crate) plan: String,
    /// Read the list from FILE, or from standard input with -
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath, allow_hyphen_values = true)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) by: By,
    /// Override the check for steps in progress (an overridden claim is recorded)
    #[arg(long)]
    pub(crate) force: bool,
    /// Also use numbers that other branches or working trees already use
    #[arg(long)]
    pub(crate) no_branches: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch archive auth
  planwatch archive --restore auth

The steps of an archived plan cannot be claimed, but `show` displays them, and its closed steps still count for steps that \
depend on them. A plan with a claimed step is not archived; --force ignores only the claims of other machines.")]
pub(crate) struct Archive {
    /// Plans (can be repeated)
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) ids: Vec<String>,
    /// Restore archived plans
    #[arg(long)]
    pub(crate) restore: bool,
    /// Also archive plans with steps that other machines have claimed
    #[arg(long, conflicts_with = "restore")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  planwatch restore auth")]
pub(crate) struct Restore {
    /// Plans (can be repeated)
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch undo
  planwatch undo --list
  planwatch undo u3f9a2c")]
pub(crate) struct Undo {
    /// Id of the change to undo, as shown by --list (default: the last change)
    pub(crate) id: Option<String>,
    /// List the last changes and whether they can be undone, newest first
    #[arg(long, conflicts_with = "id")]
    pub(crate) list: bool,
    /// Also undo the claim of another owner
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) by: By,
    /// Id of the claim, if the undo ends a claim
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}
