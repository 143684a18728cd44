//! The arguments of `import`, `export` and `template`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use planwatch::ops::export::ExportForm;

use crate::args::work::DryRun;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch template list
  planwatch template show bugfix
  planwatch template render feature 'Sign in' --description 'With a password.'
  planwatch template render step auth:2

The project's own templates are directories in plans/_templates, its own prompts are files \
plans/_prompts/NAME.pmt; they take precedence over built-in ones of the same name.")]
pub(crate) struct Template {
    /// List templates and prompts, show one, or render one
    #[arg(value_name = "WHAT")]
    pub(crate) what: What,
    /// Template or prompt
    pub(crate) name: Option<String>,
    /// For render: title of the plan; for the prompt `step`, a step
    pub(crate) title: Option<String>,
    /// For render: description of the plan
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    List,
    Show,
    Render,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch import PLAN.md --dry-run
  planwatch import docs/plans
  planwatch import . --as tasks            (a store of Backlog.md or beads)

The source is not changed. Parts that cannot be imported are listed.")]
pub(crate) struct Import {
    /// Markdown file, directory of plans, or store of Backlog.md or beads
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,
    /// Name of the plan (default: made from its title)
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Title of the plan (default: the title in the source)
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Category of the plan
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Priority: low, medium, high or critical
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// Import the source even if it was imported before
    #[arg(long)]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planwatch export auth
  planwatch export auth --format json --output auth.json
  planwatch export auth --format adr --output docs/adr/auth.md
  planwatch export auth --format html --output auth.html
  planwatch export --all --format html --output site")]
pub(crate) struct Export {
    /// Plan to export
    #[arg(required_unless_present = "all")]
    pub(crate) plan: Option<String>,
    /// Export all plans that are not archived, as a directory of HTML pages
    #[arg(long, conflicts_with = "plan", requires = "output")]
    pub(crate) all: bool,
    /// Form of the document
    #[arg(long, default_value = "markdown")]
    pub(crate) format: Format,
    /// Write to a new file FILE, or into the directory FILE
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Markdown,
    Mermaid,
    Adr,
    Html,
}

impl Format {
    pub(crate) fn form(self) -> ExportForm {
        match self {
            Self::Json => ExportForm::Json,
            Self::Markdown => ExportForm::Markdown,
            Self::Mermaid => ExportForm::Mermaid,
            Self::Adr => ExportForm::Adr,
            Self::Html => ExportForm::Html,
        }
    }
}
