//! Stores records as rows of a PostgreSQL table, for teams with too many claims for a git host.
//!
//! Each change is one statement, so the check and the change are atomic. The isolation level is READ COMMITTED: if a
//! take-over waits for a concurrent renewal, PostgreSQL checks the take-over's condition again on the renewed row. Only
//! the server's clock determines the age of a record. `synchronous_commit` is on: without it, a killed server can lose
//! claims that it has acknowledged.
//!
//! `address` reads the URL and decides whether TLS is used. `session` manages the connection; a process has one for
//! each URL.

mod address;
mod session;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, GenericClient};

use super::record::{LONGEST, Record, State};
use super::{
    Answer, Change, ClaimRegistry, Listed, Name, RegistryError, Revision, Standing, Together, Value,
};
use crate::api::sync_config::DatabaseLogin;
use crate::disk::Disk;
use session::Session;

/// The table that [`ClaimRegistry::prepare`] creates. A record lapses `ttl` seconds after `seen`.
const TABLE: &str = "
create schema if not exists planwatch;
create table if not exists planwatch.record (
  repo text not null,
  name text not null,
  body text not null check (octet_length(body) <= 4096),
  rev text not null,
  seen timestamptz not null default clock_timestamp(),
  ttl integer not null,
  primary key (repo, name)
)";

const CREATE: &str = "insert into planwatch.record (repo, name, body, rev, ttl) values ($1, $2, $3, $4, $5) \
    on conflict do nothing";
const REPLACE: &str = "update planwatch.record set body = $3, rev = $4, ttl = $5, seen = clock_timestamp() \
    where repo = $1 and name = $2 and rev = $6 \
    and (not $7 or seen + make_interval(secs => ttl) < clock_timestamp())";
const DELETE: &str = "delete from planwatch.record where repo = $1 and name = $2 and rev = $3";
const CURRENT: &str = "select rev from planwatch.record where repo = $1 and name = $2";
const LIST: &str = "select name, body, rev, extract(epoch from clock_timestamp() - seen)::float8, \
    seen + make_interval(secs => ttl) < clock_timestamp() from planwatch.record where repo = $1 limit 100000";
const NOTIFY: &str = "select pg_notify($1, $2)";

pub(crate) struct Postgres {
    /// The id of the registry: several repositories can share a database.
    repo: String,
    session: Arc<Session>,
}

/// A job that a session runs for a registry.
#[derive(Debug, Clone)]
enum Job {
    Prepare,
    Change { repo: String, changes: Vec<Change>, together: Together },
    List { repo: String },
}

#[derive(Debug)]
enum Done {
    Prepared,
    Changed(Vec<Answer>),
    Listed(Vec<Listed>),
}

/// The channel of the notifications about one registry. The names of channels are global to a database.
fn channel(repo: &str) -> String {
    format!("planwatch_{}", &blake3::hash(repo.as_bytes()).to_hex()[..16])
}

impl Postgres {
    /// Opens no connection; the first call does. Returns an error if the URL cannot be used.
    pub(crate) fn new(url: &str, repo: &str, login: &DatabaseLogin, disk: &dyn Disk) -> Result<Self, String> {
        Ok(Self { repo: repo.to_owned(), session: Session::of(url, login, disk)? })
    }
}

impl ClaimRegistry for Postgres {
    fn value(&self, body: String, ttl: i64) -> Result<Value, RegistryError> {
        if body.len() > LONGEST {
            return Err(RegistryError::Local("the record is too long".to_owned()));
        }
        let revision = Revision(blake3::hash(body.as_bytes()).to_hex().to_string());
        Ok(Value { revision, body, ttl })
    }

    fn change(&self, changes: &[Change], together: Together) -> Result<Vec<Answer>, RegistryError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let job = Job::Change { repo: self.repo.clone(), changes: changes.to_vec(), together };
        match self.session.call(job)? {
            Done::Changed(answers) => Ok(answers),
            _ => Err(RegistryError::Local("the answer belongs to another request".to_owned())),
        }
    }

    fn list(&self) -> Result<Vec<Listed>, RegistryError> {
        match self.session.call(Job::List { repo: self.repo.clone() })? {
            Done::Listed(all) => Ok(all),
            _ => Err(RegistryError::Local("the answer belongs to another request".to_owned())),
        }
    }

    fn prepare(&self) -> Result<(), RegistryError> {
        self.session.call(Job::Prepare).map(drop)
    }

    fn watch(&self, on_change: Box<dyn Fn() + Send + Sync>) -> bool {
        self.session.listen(channel(&self.repo), on_change);
        true
    }
}

/// The parameters of a statement and their types. With the types, the client needs no prepared statement. Some
/// connection poolers do not support prepared statements.
type Typed<'a> = [(&'a (dyn ToSql + Sync), Type)];

async fn affects(
    client: &impl GenericClient,
    statement: &str,
    of: &Typed<'_>,
) -> Result<bool, tokio_postgres::Error> {
    Ok(client.execute_typed(statement, of).await? > 0)
}

/// Makes one change. If the record already has the new value, or the record to delete is already absent, the change
/// counts as done, because it may be a repetition.
async fn make(
    client: &impl GenericClient,
    repo: &str,
    change: &Change,
) -> Result<Answer, tokio_postgres::Error> {
    let name = change.name().to_string();
    let seconds = |it: &Value| i32::try_from(it.ttl).unwrap_or(i32::MAX);
    let is_done = match change {
        Change::Create { new, .. } => {
            let ttl = seconds(new);
            let of: &Typed<'_> = &[
                (&repo, Type::TEXT),
                (&name, Type::TEXT),
                (&new.body, Type::TEXT),
                (&new.revision.0, Type::TEXT),
                (&ttl, Type::INT4),
            ];
            affects(client, CREATE, of).await?
        }
        Change::Replace { old, new, is_take_over, .. } => {
            let ttl = seconds(new);
            let of: &Typed<'_> = &[
                (&repo, Type::TEXT),
                (&name, Type::TEXT),
                (&new.body, Type::TEXT),
                (&new.revision.0, Type::TEXT),
                (&ttl, Type::INT4),
                (&old.0, Type::TEXT),
                (is_take_over, Type::BOOL),
            ];
            affects(client, REPLACE, of).await?
        }
        Change::Delete { old, .. } => {
            let of: &Typed<'_> = &[(&repo, Type::TEXT), (&name, Type::TEXT), (&old.0, Type::TEXT)];
            affects(client, DELETE, of).await?
        }
    };
    if is_done {
        return Ok(Answer::Done);
    }
    // This new statement also sees what was committed meanwhile, by another connection or by an earlier attempt whose
    // answer was lost.
    let found = client.query_typed(CURRENT, &[(&repo, Type::TEXT), (&name, Type::TEXT)]).await?;
    let current: Option<String> = found.first().map(|row| row.try_get(0)).transpose()?;
    let has_wanted = match change {
        Change::Create { new, .. } | Change::Replace { new, .. } => current.as_ref() == Some(&new.revision.0),
        Change::Delete { .. } => current.is_none(),
    };
    Ok(if has_wanted { Answer::Done } else { Answer::Lost })
}

async fn make_each(
    client: &Client,
    repo: &str,
    changes: &[Change],
) -> Result<Vec<Answer>, tokio_postgres::Error> {
    let mut answers = Vec::new();
    for change in changes {
        answers.push(make(client, repo, change).await?);
    }
    Ok(answers)
}

async fn make_all(
    client: &mut Client,
    repo: &str,
    changes: &[Change],
) -> Result<Vec<Answer>, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let mut answers = vec![Answer::NotTried; changes.len()];
    // The changes are made in the order of their names, so that two such calls cannot deadlock.
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_unstable_by_key(|nth| changes[*nth].name().clone());
    for nth in order {
        let answer = make(&transaction, repo, &changes[nth]).await?;
        let is_lost = answer == Answer::Lost;
        answers[nth] = answer;
        if is_lost {
            transaction.rollback().await?;
            let undone = |it: Answer| if it == Answer::Done { Answer::NotTried } else { it };
            return Ok(answers.into_iter().map(undone).collect());
        }
    }
    transaction.commit().await?;
    Ok(answers)
}

/// Whether other clients are notified of a change, so that they list the records at once. They are not notified of
/// renewals: these are frequent, and commits with a notification wait for a single lock of the server.
fn must_notify(change: &Change) -> bool {
    match change {
        Change::Create { .. } | Change::Delete { .. } => true,
        Change::Replace { name, new, is_take_over, .. } => {
            let has_ended = Record::read(name, &new.body).is_none_or(|it| it.state != State::Claimed);
            *is_take_over || has_ended
        }
    }
}

async fn notify(client: &Client, repo: &str, changes: &[Change], answers: &[Answer]) {
    let to_notify =
        changes.iter().zip(answers).find(|(change, answer)| **answer == Answer::Done && must_notify(change));
    if let Some((change, _)) = to_notify {
        let (channel, name) = (channel(repo), change.name().to_string());
        // An error is ignored: the change is committed, and other clients see it in their next listing.
        client.query_typed(NOTIFY, &[(&channel, Type::TEXT), (&name, Type::TEXT)]).await.ok();
    }
}

async fn list(client: &Client, repo: &str) -> Result<Vec<Listed>, tokio_postgres::Error> {
    let mut all = Vec::new();
    for row in client.query_typed(LIST, &[(&repo, Type::TEXT)]).await? {
        let (name, body): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let Some(name) = Name::read(&name) else { continue };
        let age = Duration::try_from_secs_f64(row.try_get::<_, f64>(3)?).unwrap_or_default();
        let standing = Standing { age, has_lapsed: row.try_get(4)? };
        let body = (body.len() <= LONGEST).then_some(body);
        all.push(Listed { name, revision: Revision(row.try_get(2)?), body, standing: Some(standing) });
    }
    Ok(all)
}

async fn prepare(client: &Client) -> Result<(), tokio_postgres::Error> {
    // If two clients create the schema at the same time, one of them gets an error. Its second attempt finds the
    // schema.
    match client.batch_execute(TABLE).await {
        Ok(()) => Ok(()),
        Err(_) => client.batch_execute(TABLE).await,
    }
}

/// Does a job on a connection.
async fn perform(client: &mut Client, job: &Job) -> Result<Done, tokio_postgres::Error> {
    match job {
        Job::Prepare => prepare(client).await.map(|()| Done::Prepared),
        Job::List { repo } => list(client, repo).await.map(Done::Listed),
        Job::Change { repo, changes, together } => {
            let answers = match together {
                Together::AllOrNone => make_all(client, repo, changes).await?,
                Together::Each => make_each(client, repo, changes).await?,
            };
            notify(client, repo, changes, &answers).await;
            Ok(Done::Changed(answers))
        }
    }
}
