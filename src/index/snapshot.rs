//! Reading: all queries of a snapshot refer to one moment, even if other processes write meanwhile.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::index::error::IndexError;
use crate::index::generation::{self, Generation, Origin};
use crate::index::row::{Head, Key};
use crate::index::store::Store;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;

/// The index at one moment.
///
/// Callers that compare [`heads`](Self::heads) with the disk must read the plans from the same snapshot. Between two
/// snapshots, another process may write plans from an older scan.
#[derive(Debug)]
pub struct Snapshot<'a> {
    transaction: Transaction<'a>,
    store: &'a Store,
}

const HEADS: &str = "SELECT id, archived, name, steps, head FROM plan";

/// The encoded summaries of plans, in the order of the requested heads.
#[derive(Debug, Default)]
pub struct SummaryData {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SummaryData {
    /// Returns the data for the head at this position; [`Head::summary`] decodes it in any thread.
    pub fn of(&self, nth: usize) -> &[u8] {
        let from = nth.checked_sub(1).map_or(0, |it| self.ends[it]);
        &self.bytes[from..self.ends[nth]]
    }
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(store: &'a Store) -> Result<Self, IndexError> {
        Ok(Self { transaction: store.connection.unchecked_transaction()?, store })
    }

    /// Returns the heads of all plan directories, in the order of their row numbers.
    pub fn heads(&self) -> Result<Vec<Head>, IndexError> {
        self.record_damage(heads(&self.transaction))
    }

    /// Returns the heads of directories of this name: a live one, an archived one, both or none.
    pub fn heads_named(&self, name: &str) -> Result<Vec<Head>, IndexError> {
        self.record_damage(heads_named(&self.transaction, name))
    }

    /// Returns the plan of a head of this snapshot, without bodies and without the problems between plans.
    pub fn plan(&self, head: &Head) -> Result<Plan, IndexError> {
        self.record_damage(with_data(&self.transaction, head, |it| head.plan(it)))
    }

    /// Returns the data of a plan, which [`Head::plan`] decodes in any thread.
    pub fn data(&self, head: &Head) -> Result<Vec<u8>, IndexError> {
        self.record_damage(with_data(&self.transaction, head, |it| Ok(it.to_vec())))
    }

    /// Returns the summaries of these heads, which must be in the order of [`Self::heads`].
    pub fn summaries(&self, heads: &[Head]) -> Result<SummaryData, IndexError> {
        self.record_damage(summaries(&self.transaction, heads))
    }

    /// Returns the given result of decoding data of this snapshot. If it is an error that shows damage, the index is marked
    /// as damaged.
    pub fn with_damage_recorded<T>(&self, made: Result<T, IndexError>) -> Result<T, IndexError> {
        self.record_damage(made)
    }

    /// Returns all plans in the order of [`Plans`], without bodies and without the problems between plans.
    pub fn load(&self) -> Result<Vec<Plan>, IndexError> {
        let plans = self.heads()?.iter().map(|it| self.plan(it)).collect::<Result<Vec<_>, _>>()?;
        Ok(Plans::new(plans).into_vec())
    }

    /// Returns the name of the index's last commit in this snapshot; `None` if nothing was ever written.
    pub fn generation(&self) -> Result<Option<Generation>, IndexError> {
        self.record_damage(generation::read(&self.transaction))
    }

    /// Returns the origin of a full-text index that contains exactly these plans; `None` if nothing was ever written.
    pub fn origin(&self, reader: u64) -> Result<Option<Origin>, IndexError> {
        Ok(self.generation()?.map(|it| Origin::new(it, reader)))
    }

    /// Finds a plan by its name in any Unicode normal form. A live plan takes precedence over an archived one.
    pub fn load_plan(&self, id: &PlanId) -> Result<Option<Plan>, IndexError> {
        let mut heads = self.heads_named(id.as_str())?;
        if heads.is_empty() && !id.as_str().is_ascii() {
            heads = self.heads()?;
            heads.retain(|it| PlanId::new(it.key.name.clone()) == *id);
        }
        let first = heads.into_iter().min_by(|a, b| a.key.cmp(&b.key));
        first.map(|it| self.plan(&it)).transpose()
    }

    pub fn count(&self) -> Result<(usize, usize), IndexError> {
        let counted = "SELECT count(*), coalesce(sum(steps), 0) FROM plan";
        let counted = self.transaction.query_row(counted, [], |row| Ok((row.get(0)?, row.get(1)?)));
        let (plans, steps): (u32, u32) = self.record_damage(counted.map_err(IndexError::from))?;
        Ok((plans as usize, steps as usize))
    }

    fn record_damage<T>(&self, answer: Result<T, IndexError>) -> Result<T, IndexError> {
        self.store.record_damage(answer)
    }
}

pub(super) fn heads(connection: &Connection) -> Result<Vec<Head>, IndexError> {
    let mut statement = connection.prepare_cached(&format!("{HEADS} ORDER BY id"))?;
    let mut rows = statement.query([])?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        heads.push(head(row)?);
    }
    Ok(heads)
}

/// Reads the summaries in one pass, because seeking each row would cost as much as reading it.
fn summaries(connection: &Connection, heads: &[Head]) -> Result<SummaryData, IndexError> {
    let mut statement = connection.prepare_cached("SELECT id, light FROM plan_light ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut data = SummaryData::default();
    for head in heads {
        loop {
            let row = rows.next()?.ok_or_else(|| IndexError::damaged("a plan has no summary"))?;
            if row.get::<_, i64>(0)? == head.id {
                data.bytes.extend(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?);
                data.ends.push(data.bytes.len());
                break;
            }
        }
    }
    Ok(data)
}

fn heads_named(connection: &Connection, name: &str) -> Result<Vec<Head>, IndexError> {
    let mut statement = connection.prepare_cached(&format!("{HEADS} WHERE archived = ?1 AND name = ?2"))?;
    let mut heads = Vec::new();
    for is_archived in [false, true] {
        let found = statement.query_row(params![is_archived, name], |row| Ok(head(row))).optional()?;
        let found = found.transpose()?;
        if found.as_ref().is_some_and(|it| it.key.name != name || it.key.is_archived != is_archived) {
            return Err(IndexError::damaged("a name leads to another row"));
        }
        heads.extend(found);
    }
    Ok(heads)
}

fn head(row: &Row<'_>) -> Result<Head, IndexError> {
    let key = Key { is_archived: row.get(1)?, name: row.get(2)? };
    let bytes = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
    Head::proved(row.get(0)?, key, row.get(3)?, bytes)
}

fn with_data<T>(
    connection: &Connection,
    head: &Head,
    make: impl FnOnce(&[u8]) -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let mut statement = connection.prepare_cached("SELECT data FROM plan_data WHERE id = ?1")?;
    let mut rows = statement.query([head.id])?;
    let row = rows.next()?.ok_or_else(|| IndexError::damaged("a plan has no data"))?;
    make(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)
}
