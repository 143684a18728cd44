//! `import`: makes plans from documents and the data of other tools.

use planwatch::ops::import::{self, ImportReport, ImportRequest};
use planwatch::plan::import::Unmapped;
use planwatch::store::transaction::Mode;

use crate::args::import::Import;
use crate::commands::new::in_plans_or_empty_dir;
use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::escaped;
use crate::screens::problems::problem;
use crate::screens::{DIM, change, count, heading, text};
use crate::table::paint;

/// The maximum number of parts that are listed as not imported. The others are only counted.
const MOST: usize = 20;

pub(crate) fn run(session: &Session, args: Import) -> Result<u8, Failure> {
    session.output.check_fields(fields::IMPORT)?;
    let source = session.path(&args.path);
    let shown = args.path.display().to_string();
    let mode = args.dry_run.mode();
    let Import { name, title, category, priority, again, .. } = args;
    let request = ImportRequest {
        source,
        shown,
        name,
        title,
        category,
        priority,
        again,
        mode,
        ..ImportRequest::default()
    };
    if session.workspace()?.plans_dir.is_none() {
        // If the source contains no plan, this fails before a plans directory is made.
        let trial = ImportRequest { mode: Mode::DryRun, ..request.clone() };
        in_plans_or_empty_dir(session, |context| import::import(context, &trial))?;
    }
    let report = match request.mode {
        Mode::Write => import::import(&session.context_to_make()?, &request)?,
        Mode::DryRun => in_plans_or_empty_dir(session, |context| import::import(context, &request))?,
    };
    if session.output.is_json() {
        session.output.json("import", report.to_json())?;
        return Ok(0);
    }
    if report.change.is_dry_run {
        session.output.long(&tree(&report))?;
    }
    let code = change::print(session, &report.change)?;
    for (path, plan) in &report.already {
        session.output.report(&format!("{}  already imported as {plan}\n", escaped(path)))?;
    }
    for it in &report.unread {
        session.output.report(&problem(it, &it.path, None, session.output.width))?;
    }
    let unmapped = unmapped(&report.unmapped);
    session.output.report(&text::hanging(&unmapped, session.output.width, 4))?;
    Ok(code)
}

/// The plans that would be made, with the names of their files.
fn tree(report: &ImportReport) -> String {
    let mut drawn = String::new();
    for ((id, files), change) in report.plans.iter().zip(&report.change.changes) {
        let title = change.now.get("title").and_then(serde_json::Value::as_str).unwrap_or_default();
        drawn.push_str(&heading(id.as_str(), title));
        let files: String = files.iter().map(|(name, _)| format!("  {}\n", escaped(name))).collect();
        drawn.push_str(&files);
    }
    drawn + "\n"
}

fn unmapped(all: &[Unmapped]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let one = |it: &Unmapped| {
        let line = it.line.map(|it| format!(":{it}")).unwrap_or_default();
        let place = format!("{}{line}", escaped(&it.path));
        let first = it.text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
        let said: String = first.chars().take(60).collect();
        let said = if said.is_empty() { said } else { format!(": {}", escaped(said.trim())) };
        format!("  {place}  {}{said}\n", paint(DIM, it.why))
    };
    let lines: String = all.iter().take(MOST).map(one).collect();
    let more = all.len().saturating_sub(MOST);
    let more =
        if more > 0 { format!("  … and {more} more; --json lists them all\n") } else { String::new() };
    format!("{} not imported:\n{lines}{more}", count(all.len(), "part"))
}
