//! Plans and files to rows: what the tables hold, and their sums.

use rusqlite::types::ToSqlOutput;
use rusqlite::types::ValueRef::{self, Integer, Real};
use rusqlite::{CachedStatement, Connection, Transaction, params};
use serde_json::{Map, Value};

use crate::index::error::IndexError;
use crate::index::freshness::FileRow;
use crate::index::sums::{self, Sum};
use crate::index::{data, schema, search};
use crate::plan::model::{Order, Plan, PlanKind, StatusSource, Step};
use crate::plan::problem::{Problem, Severity};
use crate::plan::records::{Note, Priority};
use crate::plan::time::Time;

/// Takes everything out and puts the files and plans in.
pub(super) fn replace(
    transaction: &Transaction<'_>,
    files: &[FileRow],
    plans: &[Plan],
) -> Result<(), IndexError> {
    for table in schema::ROWS.iter().chain(&["file_row"]) {
        transaction.execute(&format!("DELETE FROM {table}"), [])?;
    }
    let mut table = Table::new(transaction, "file_row")?;
    files.iter().try_for_each(|it| table.put_file(it))?;
    table.finish()?;
    let mut rows = PlanRows::new(transaction)?;
    plans.iter().try_for_each(|it| rows.put_plan(it))?;
    rows.finish()?;
    transaction.execute("INSERT INTO search(search) VALUES ('rebuild')", [])?;
    // The full text keeps its last part in memory until a savepoint or the commit.
    transaction.execute_batch("SAVEPOINT flushed; RELEASE flushed")?;
    // SQLite wrote these itself, so their rows have to be read for their sums.
    schema::FULL_TEXT.iter().try_for_each(|it| sums::keep(transaction, it, sums::of_table(transaction, it)?))
}

/// Puts rows in the place of those with the same path, length and hash, and leaves the rest.
pub(super) fn restamp(transaction: &Transaction<'_>, files: &[FileRow]) -> Result<(), IndexError> {
    let mut old =
        transaction.prepare_cached("SELECT * FROM file_row WHERE path = ?1 AND len = ?2 AND hash = ?3")?;
    let mut delete = transaction.prepare_cached("DELETE FROM file_row WHERE path = ?1")?;
    let sum = sums::kept(transaction, "file_row")?;
    let mut table = Table { sum, ..Table::new(transaction, "file_row")? };
    for file in files {
        let mut old = old.query(params![file.path, file.len.cast_signed(), file.hash])?;
        let Some(row) = old.next()? else { continue };
        table.sum.take_out(&(0..8).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>()?);
        drop(old);
        delete.execute([&file.path])?;
        table.put_file(file)?;
    }
    table.finish()
}

/// A table being filled, with the sum of what went in.
struct Table<'a> {
    connection: &'a Connection,
    name: &'static str,
    insert: CachedStatement<'a>,
    sum: Sum,
}

impl<'a> Table<'a> {
    fn new(connection: &'a Connection, name: &'static str) -> Result<Self, IndexError> {
        let columns = connection.prepare_cached(&format!("SELECT * FROM {name}"))?.column_count();
        let marks = vec!["?"; columns].join(", ");
        let insert = connection.prepare_cached(&format!("INSERT INTO {name} VALUES ({marks})"))?;
        Ok(Self { connection, name, insert, sum: Sum::default() })
    }

    /// Inserts a row with all columns in the order of the schema.
    fn put(&mut self, row: &[ValueRef<'_>]) -> Result<(), IndexError> {
        for (at, cell) in row.iter().enumerate() {
            self.insert.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(*cell))?;
        }
        self.insert.raw_execute()?;
        self.sum.add(row);
        Ok(())
    }

    fn put_file(&mut self, file: &FileRow) -> Result<(), IndexError> {
        self.put(&[
            file.path.as_str().into(),
            Integer(file.len.cast_signed()),
            Integer(file.mtime_ns),
            Integer(file.ctime_ns),
            Integer(file.ino.cast_signed()),
            Integer(file.dev.cast_signed()),
            file.hash.as_str().into(),
            Integer(i64::from(file.racy)),
        ])
    }

    fn finish(self) -> Result<(), IndexError> {
        sums::keep(self.connection, self.name, self.sum)
    }
}

/// Whose rows are being put: the first columns of the tables of records.
#[derive(Clone, Copy)]
struct Owner<'a> {
    archived: i64,
    plan: &'a str,
    /// -1 for the plan itself.
    place: i64,
}

impl<'a> Owner<'a> {
    fn nth(self, at: usize) -> [ValueRef<'a>; 4] {
        [Integer(self.archived), self.plan.into(), Integer(self.place), int(at + 1)]
    }
}

/// The tables that plans go to.
struct PlanRows<'a> {
    data: Table<'a>,
    plans: Table<'a>,
    steps: Table<'a>,
    dependencies: Table<'a>,
    attempts: Table<'a>,
    notes: Table<'a>,
    tags: Table<'a>,
    problems: Table<'a>,
    documents: Table<'a>,
    n_documents: i64,
}

impl<'a> PlanRows<'a> {
    fn new(connection: &'a Connection) -> Result<Self, IndexError> {
        let table = |name| Table::new(connection, name);
        Ok(Self {
            data: table("plan_data")?,
            plans: table("plan_row")?,
            steps: table("step_row")?,
            dependencies: table("dependency_row")?,
            attempts: table("attempt_row")?,
            notes: table("note_row")?,
            tags: table("tag_row")?,
            problems: table("problem_row")?,
            documents: table("document")?,
            n_documents: 0,
        })
    }

    fn finish(self) -> Result<(), IndexError> {
        let Self { data, plans, steps, dependencies, attempts, notes, tags, problems, documents, .. } = self;
        let all = [data, plans, steps, dependencies, attempts, notes, tags, problems, documents];
        all.into_iter().try_for_each(Table::finish)
    }

    fn put_plan(&mut self, plan: &Plan) -> Result<(), IndexError> {
        let owner = Owner { archived: plan.is_archived.into(), plan: plan.id.as_str(), place: -1 };
        self.data.put(&[Integer(owner.archived), owner.plan.into(), ValueRef::Blob(&data::encode(plan))])?;
        self.put_plan_row(owner, plan)?;
        self.put_notes(owner, &plan.notes)?;
        self.put_tags(owner, &plan.tags)?;
        self.put_problems(owner, &plan.problems)?;
        self.put_document(owner, "", &search::document_of_plan(plan))?;
        for (place, step) in (0..).zip(&plan.steps) {
            self.put_step(Owner { place, ..owner }, step)?;
        }
        Ok(())
    }

    fn put_plan_row(&mut self, owner: Owner<'_>, plan: &Plan) -> Result<(), IndexError> {
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
        let (metadata, custom) = (json(&plan.metadata), json(&plan.custom));
        self.plans.put(&[
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
        self.put_problems(owner, &step.problems)?;
        self.put_document(owner, &step.id.number.to_string(), &search::document_of_step(step))
    }

    fn put_step_row(&mut self, owner: Owner<'_>, step: &Step) -> Result<(), IndexError> {
        let number = step.id.number.to_string();
        let claim = step.claim.as_ref();
        let claim_at = time(claim.and_then(|it| it.at));
        let confirmed = step.confirmed.as_ref();
        let confirmed_at = time(confirmed.and_then(|it| it.at));
        let (created_at, modified) = (time(step.created_at), time(step.modified));
        let (metadata, custom) = (json(&step.metadata), json(&step.custom));
        self.steps.put(&[
            Integer(owner.archived),
            owner.plan.into(),
            Integer(owner.place),
            number.as_str().into(),
            Real(number.parse().unwrap_or_default()),
            step.title.as_str().into(),
            step.status.word().into(),
            claim.map(|it| it.id.as_str()).into(),
            claim.and_then(|it| it.by.as_deref()).into(),
            text(&claim_at),
            text(&step.phase),
            text(&step.kind),
            text(&step.assignee),
            step.priority.map(Priority::word).into(),
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
        for (at, id) in step.depends.iter().enumerate() {
            let number = id.number.to_string();
            let id = [id.plan.as_str().into(), number.as_str().into()];
            self.dependencies.put(&[&owner.nth(at)[..], &id].concat())?;
        }
        Ok(())
    }

    fn put_attempts(&mut self, owner: Owner<'_>, step: &Step) -> Result<(), IndexError> {
        for (at, it) in step.attempts.iter().enumerate() {
            let (when, more) = (time(it.at), json(&it.more));
            let record =
                [text(&when), text(&it.by), text(&it.outcome), text(&it.notes), more.as_str().into()];
            self.attempts.put(&[&owner.nth(at)[..], &record].concat())?;
        }
        Ok(())
    }

    fn put_notes(&mut self, owner: Owner<'_>, notes: &[Note]) -> Result<(), IndexError> {
        for (at, it) in notes.iter().enumerate() {
            let when = time(it.at);
            let record = [text(&when), it.kind.word().into(), text(&it.by), it.text.as_str().into()];
            self.notes.put(&[&owner.nth(at)[..], &record].concat())?;
        }
        Ok(())
    }

    fn put_tags(&mut self, owner: Owner<'_>, tags: &[String]) -> Result<(), IndexError> {
        for (at, tag) in tags.iter().enumerate() {
            self.tags.put(&[&owner.nth(at)[..], &[tag.as_str().into()]].concat())?;
        }
        Ok(())
    }

    fn put_problems(&mut self, owner: Owner<'_>, problems: &[Problem]) -> Result<(), IndexError> {
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
            self.problems.put(&[&owner.nth(at)[..], &record].concat())?;
        }
        Ok(())
    }

    fn put_document(
        &mut self,
        owner: Owner<'_>,
        number: &str,
        document: &search::Document,
    ) -> Result<(), IndexError> {
        self.n_documents += 1;
        self.documents.put(&[
            Integer(self.n_documents),
            Integer(owner.archived),
            owner.plan.into(),
            Integer(owner.place),
            document.kind.word().into(),
            number.into(),
            document.name.as_str().into(),
            document.title.as_str().into(),
            document.body.as_str().into(),
            document.records.as_str().into(),
        ])
    }
}

fn text(text: &Option<String>) -> ValueRef<'_> {
    text.as_deref().into()
}

fn time(time: Option<Time>) -> Option<String> {
    time.map(|it| it.to_string())
}

fn json(map: &Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

fn int(n: usize) -> ValueRef<'static> {
    Integer(i64::try_from(n).unwrap_or(i64::MAX))
}
