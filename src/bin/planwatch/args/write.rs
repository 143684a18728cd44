//! The words of the verbs that write plans and steps.

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
    /// Title of the plan; its id is made from it
    pub(crate) title: String,
    /// Titles of its steps
    #[arg(value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    /// Begin with a template; `planwatch template list` names them
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Say what the plan is about
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Name a goal (can be repeated)
    #[arg(long = "goal", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) goals: Vec<String>,
    /// Say when it is a success (can be repeated)
    #[arg(long = "criterion", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) criteria: Vec<String>,
    /// Give it a tag (can be repeated)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Put it into a category
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Say how urgent it is: low, medium, high or critical (default: medium)
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// Put it into a program
    #[arg(long, value_name = "PLAN")]
    pub(crate) program: Option<String>,
    /// Make a plan, or a program that other plans belong to
    #[arg(long, default_value = "plan")]
    pub(crate) kind: Kind,
    /// Let plans that are there belong to the new program (can be repeated)
    #[arg(long, value_name = "PLAN", value_delimiter = ',')]
    pub(crate) children: Vec<String>,
    /// Hand out nothing until `start` makes it active
    #[arg(long)]
    pub(crate) draft: bool,
    /// Let each step wait for the one before (`order: sequential`)
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
    /// Put it right after step N, as 2.5 after 2 (default: last)
    #[arg(long, value_name = "N", conflicts_with = "at")]
    pub(crate) after: Option<String>,
    /// Give it the number N
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<String>,
    /// Let it wait for a step (can be repeated)
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub(crate) depends: Vec<String>,
    /// Put it into a phase
    #[arg(long)]
    pub(crate) phase: Option<String>,
    /// Say what kind of step it is
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Name a file that it will change (can be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) touches: Vec<String>,
    /// Name a command that has to succeed before it is done (can be repeated)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) verify: Vec<String>,
    /// Keep own data with it, as a YAML or JSON mapping
    #[arg(long, value_name = "YAML")]
    pub(crate) metadata: Option<String>,
    /// Take its text from FILE, or from standard input with -
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, allow_hyphen_values = true)]
    pub(crate) body: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) by: By,
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

VALUE is text, whatever it looks like; --yaml takes it as YAML.")]
pub(crate) struct Set {
    /// Plan or step
    pub(crate) id: String,
    /// Field; KEY+=VALUE adds to a list, KEY-=VALUE takes from it
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// New value
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: Option<String>,
    /// Remove the field
    #[arg(long, conflicts_with = "value")]
    pub(crate) unset: bool,
    /// Take VALUE as YAML, not as text
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
    /// Do it whatever stands against it; this is recorded
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

Steps that wait for it keep waiting for it: their `depends` are changed with its number.")]
#[command(group(ArgGroup::new("place").args(["after", "before"]).required(true)))]
pub(crate) struct Move {
    /// Step to move
    #[arg(value_name = "STEP")]
    pub(crate) id: String,
    /// Put it right after step N
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<String>,
    /// Put it right before step N
    #[arg(long, value_name = "N")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) of: SetOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch remove auth:3
  planwatch remove auth --yes

What is removed is kept in _archive; steps that waited for a removed one wait for what it waited for.")]
pub(crate) struct Remove {
    /// Steps or plans (can be repeated)
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Remove plans as well; without it only steps are removed
    #[arg(long)]
    pub(crate) yes: bool,
    /// Remove also what is in progress, what others wait for, and unknown files
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
#[command(after_help = "Examples:
  planwatch squash auth 2 3 4 --title 'Middleware and routes'

The new step stands where the first one stood and keeps the texts, attempts and notes of all; what waited for one of them \
waits for it. The files as they were are kept in _archive.")]
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
    /// Do it although somebody works on one of them; this is recorded
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

The list is Markdown, or JSON as `list --json` has it. Steps that it names, by title or as step-N, keep their file and \
history; open steps that it does not name go to _archive; closed ones stay. What waited for a step that goes waits for the \
new ones in its place.")]
pub(crate) struct Replace {
    /// Plan of the steps
    pub(crate) plan: String,
    /// Take the list from FILE, or from standard input with -
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath, allow_hyphen_values = true)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) by: By,
    /// Do it although somebody works on a step that goes or moves; this is recorded
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch archive auth
  planwatch archive --restore auth

An archived plan hands out nothing; it still answers `show`, and what waits for its closed steps goes on. A plan whose \
steps somebody works on stays.")]
pub(crate) struct Archive {
    /// Plans (can be repeated)
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) ids: Vec<String>,
    /// Bring them back
    #[arg(long)]
    pub(crate) restore: bool,
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
    /// Change to take back, as --list names it; the last one if it is left out
    pub(crate) id: Option<String>,
    /// List the changes that can be taken back, newest first
    #[arg(long, conflicts_with = "id")]
    pub(crate) list: bool,
    /// Take back also the claim of another owner
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) by: By,
    /// Claim that is given back with the change
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}
