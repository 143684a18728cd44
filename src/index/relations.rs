//! Plans and files as in-memory relations for user queries: the tables from which the documented views are made.

use rusqlite::types::ToSqlOutput;
use rusqlite::types::ValueRef::{self, Integer, Real};
use rusqlite::{CachedStatement, Connection};
use serde_json::{Map, Value};

use crate::index::error::IndexError;
use crate::index::freshness::FileRow;
use crate::index::knowledge::Knowledge;
use crate::plan::model::{Order, Plan, PlanKind, StatusSource, Step};
use crate::plan::problem::{Problem, Severity};
use crate::plan::records::{Note, Priority};
use crate::plan::time::Time;

const VIEWS: &str = include_str!("views.sql");

/// Creates a database with the views, and fills the tables that the query can read.
pub(super) fn connection<'a>(
    query: &str,
    files: impl Iterator<Item = (String, &'a FileRow)>,
    plans: impl Iterator<Item = &'a Plan>,
    knowledge: impl FnOnce() -> Knowledge,
) -> Result<Connection, IndexError> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch("PRAGMA journal_mode = OFF; BEGIN")?;
    connection.execute_batch(VIEWS)?;
    let query = query.to_ascii_lowercase();
    if reads(&query, "files") {
        let mut table = Table::new(&connection, "file_row")?;
        for (path, file) in files {
            table.put_file(&path, file)?;
        }
    }
    let mut rows = PlanRows::new(&connection, &query)?;
    for plan in plans {
        rows.put_plan(plan)?;
    }
    drop(rows);
    if Knowledge::VIEWS.iter().any(|it| reads(&query, it)) {
        knowledge().fill(&connection)?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(connection)
}

/// Whether a query, in lower case, may read a view: it contains the view's name, or `_row`, which is in the names of all
/// tables.
fn reads(query: &str, view: &str) -> bool {
    query.contains(view) || query.contains("_row")
}

pub(super) struct Table<'a> {
    insert: CachedStatement<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn new(connection: &'a Connection, name: &str) -> Result<Self, IndexError> {
        let columns = connection.prepare_cached(&format!("SELECT * FROM {name}"))?.column_count();
        let marks = vec!["?"; columns].join(", ");
        let insert = connection.prepare_cached(&format!("INSERT INTO {name} VALUES ({marks})"))?;
        Ok(Self { insert })
    }

    /// Inserts a row with all columns in the order of the schema.
    pub(super) fn put(&mut self, row: &[ValueRef<'_>]) -> Result<(), IndexError> {
        for (at, cell) in row.iter().enumerate() {
            self.insert.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(*cell))?;
        }
        self.insert.raw_execute()?;
        Ok(())
    }

    fn put_file(&mut self, path: &str, file: &FileRow) -> Result<(), IndexError> {
        let len = Integer(file.stamp.len.cast_signed());
        self.put(&[path.into(), len, Integer(file.stamp.mtime_ns), file.hash.as_str().into()])
    }
}

/// The plan or step to which inserted rows belong. It fills the first columns of their tables.
#[derive(Clone, Copy)]
struct Owner<'a> {
    archived: i64,
    plan: &'a str,
    /// The step's position in the plan; -1 for the plan itself.
    place: i64,
}

impl<'a> Owner<'a> {
    fn nth(self, at: usize) -> [ValueRef<'a>; 4] {
        [Integer(self.archived), self.plan.into(), Integer(self.place), int(at + 1)]
    }
}

/// The tables that plans are inserted into; `None` for a table that the query cannot read.
struct PlanRows<'a> {
    plans: Option<Table<'a>>,
    steps: Option<Table<'a>>,
    dependencies: Option<Table<'a>>,
    attempts: Option<Table<'a>>,
    notes: Option<Table<'a>>,
    tags: Option<Table<'a>>,
    problems: Option<Table<'a>>,
}

impl<'a> PlanRows<'a> {
    fn new(connection: &'a Connection, query: &str) -> Result<Self, IndexError> {
        let table = |views: &[&str], name: &str| {
            let is_read = views.iter().any(|it| reads(query, it));
            is_read.then(|| Table::new(connection, name)).transpose()
        };
        let of_steps = ["plans", "steps", "dependencies", "attempts", "notes", "tags", "problems"];
        Ok(Self {
            plans: table(&["plans"], "plan_row")?,
            steps: table(&of_steps, "step_row")?,
            dependencies: table(&["dependencies"], "dependency_row")?,
            attempts: table(&["attempts"], "attempt_row")?,
            notes: table(&["notes"], "note_row")?,
            tags: table(&["tags"], "tag_row")?,
            problems: table(&["problems"], "problem_row")?,
        })
    }

    fn put_plan(&mut self, plan: &Plan) -> Result<(), IndexError> {
        let owner = Owner { archived: plan.is_archived.into(), plan: plan.id.as_str(), place: -1 };
        self.put_plan_row(owner, plan)?;
        self.put_notes(owner, &plan.notes)?;
        self.put_tags(owner, &plan.tags)?;
        self.put_problems(owner, &plan.problems)?;
        for (place, step) in (0..).zip(&plan.steps) {
            self.put_step(Owner { place, ..owner }, step)?;
        }
        Ok(())
    }

    fn put_plan_row(&mut self, owner: Owner<'_>, plan: &Plan) -> Result<(), IndexError> {
        let Some(table) = &mut self.plans else { return Ok(()) };
        let (status, source) = plan.shown_status();
        let source = match source {
            StatusSource::File => "file",
            StatusSource::Steps => "steps",
        };
        let kind = match plan.kind {
            PlanKind::Plan => "plan",
            PlanKind::Program => "program",
        };
        let order = match plan.order {
            Order::Dependencies => "dependencies",
            Order::Sequential => "sequential",
        };
        let (created_at, modified) = (time(plan.created_at), time(plan.modified));
        let due = plan.due.map(|it| it.to_string());
        let (metadata, custom) = (json(&plan.metadata), json(&plan.custom));
        table.put(&[
            Integer(owner.archived),
            owner.plan.into(),
            plan.title.as_str().into(),
            status.word().into(),
            source.into(),
            text(&plan.description),
            kind.into(),
            plan.program.as_ref().map(|it| it.as_str()).into(),
            text(&plan.category),
            plan.priority.word().into(),
            text(&due),
            order.into(),
            text(&created_at),
            text(&modified),
            plan.path.as_str().into(),
            text(&plan.etag),
            metadata.as_str().into(),
            custom.as_str().into(),
        ])
    }

    fn put_step(&mut self, owner: Owner<'_>, step: &Step) -> Result<(), IndexError> {
        self.put_step_row(owner, step)?;
        self.put_dependencies(owner, step)?;
        self.put_attempts(owner, step)?;
        self.put_notes(owner, &step.notes)?;
        self.put_tags(owner, &step.tags)?;
        self.put_problems(owner, &step.problems)
    }

    fn put_step_row(&mut self, owner: Owner<'_>, step: &Step) -> Result<(), IndexError> {
        let Some(table) = &mut self.steps else { return Ok(()) };
        let number = step.id.number.to_string();
        let claim = step.claim.as_ref();
        let claim_at = time(claim.and_then(|it| it.at));
        let confirmed = step.confirmed.as_ref();
        let confirmed_at = time(confirmed.and_then(|it| it.at));
        let (created_at, modified) = (time(step.created_at), time(step.modified));
        let due = step.due.map(|it| it.to_string());
        let (metadata, custom) = (json(&step.metadata), json(&step.custom));
        table.put(&[
            Integer(owner.archived),
            owner.plan.into(),
            Integer(owner.place),
            number.as_str().into(),
            Real(number.parse().unwrap_or_default()),
            step.title.as_str().into(),
            step.standing().word().into(),
            claim.map(|it| it.id.as_str()).into(),
            claim.and_then(|it| it.by.as_deref()).into(),
            text(&claim_at),
            text(&step.phase),
            text(&step.kind),
            text(&step.assignee),
            step.priority.map(Priority::word).into(),
            text(&due),
            step.needs_confirmation.then_some("required").into(),
            confirmed.and_then(|it| it.by.as_deref()).into(),
            text(&confirmed_at),
            step.shown_result().into(),
            int(step.tasks_done),
            int(step.tasks_total),
            step.created_by.as_str().into(),
            text(&created_at),
            text(&modified),
            step.path.as_str().into(),
            text(&step.etag),
            metadata.as_str().into(),
            custom.as_str().into(),
        ])
    }

    fn put_dependencies(&mut self, owner: Owner<'_>, step: &Step) -> Result<(), IndexError> {
        let Some(table) = &mut self.dependencies else { return Ok(()) };
        for (at, id) in step.depends.iter().enumerate() {
            let number = id.number.to_string();
            let id = [id.plan.as_str().into(), number.as_str().into()];
            table.put(&[&owner.nth(at)[..], &id].concat())?;
        }
        Ok(())
    }

    fn put_attempts(&mut self, owner: Owner<'_>, step: &Step) -> Result<(), IndexError> {
        let Some(table) = &mut self.attempts else { return Ok(()) };
        for (at, it) in step.attempts.iter().enumerate() {
            let (when, more) = (time(it.at), json(&it.more));
            let record =
                [text(&when), text(&it.by), text(&it.outcome), text(&it.notes), more.as_str().into()];
            table.put(&[&owner.nth(at)[..], &record].concat())?;
        }
        Ok(())
    }

    fn put_notes(&mut self, owner: Owner<'_>, notes: &[Note]) -> Result<(), IndexError> {
        let Some(table) = &mut self.notes else { return Ok(()) };
        for (at, it) in notes.iter().enumerate() {
            let when = time(it.at);
            let record = [text(&when), it.kind.word().into(), text(&it.by), it.text.as_str().into()];
            table.put(&[&owner.nth(at)[..], &record].concat())?;
        }
        Ok(())
    }

    fn put_tags(&mut self, owner: Owner<'_>, tags: &[String]) -> Result<(), IndexError> {
        let Some(table) = &mut self.tags else { return Ok(()) };
        for (at, tag) in tags.iter().enumerate() {
            table.put(&[&owner.nth(at)[..], &[tag.as_str().into()]].concat())?;
        }
        Ok(())
    }

    fn put_problems(&mut self, owner: Owner<'_>, problems: &[Problem]) -> Result<(), IndexError> {
        let Some(table) = &mut self.problems else { return Ok(()) };
        for (at, it) in problems.iter().enumerate() {
            let severity = match it.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let record = [
                severity.into(),
                it.code.text().into(),
                it.message.as_str().into(),
                it.path.as_str().into(),
                Integer(i64::from(it.line)),
                Integer(i64::from(it.column)),
                it.hint.as_str().into(),
                Integer(i64::from(it.is_fixable)),
            ];
            table.put(&[&owner.nth(at)[..], &record].concat())?;
        }
        Ok(())
    }
}

pub(super) fn text(text: &Option<String>) -> ValueRef<'_> {
    text.as_deref().into()
}

pub(super) fn time(time: Option<Time>) -> Option<String> {
    time.map(|it| it.to_string())
}

pub(super) fn json(map: &Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

fn int(n: usize) -> ValueRef<'static> {
    Integer(i64::try_from(n).unwrap_or(i64::MAX))
}
