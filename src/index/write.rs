//! Inserting and removing rows, plan by plan.

use rusqlite::{Connection, params};

use crate::index::error::IndexError;
use crate::index::generation::{self, Generation};
use crate::index::row::{Change, Head, Key, Packed};

/// Makes the changes in order, and returns the new generation.
pub(super) fn write(
    connection: &Connection,
    changes: &mut dyn Iterator<Item = Change>,
) -> Result<Generation, IndexError> {
    for change in changes {
        match change {
            Change::Put(packed) => put(connection, &packed)?,
            Change::Restamp(head) => restamp(connection, &head)?,
            Change::Remove(key) => remove(connection, &key)?,
        }
    }
    generation::raise(connection)
}

fn put(connection: &Connection, packed: &Packed) -> Result<(), IndexError> {
    let Packed { head: Head { key, steps, bytes, .. }, data, summary } = packed;
    let put = "INSERT INTO plan (archived, name, steps, head) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (archived, name) DO UPDATE SET steps = ?3, head = ?4 RETURNING id";
    let mut put = connection.prepare_cached(put)?;
    let id: i64 = put.query_row(params![key.is_archived, key.name, steps, bytes], |row| row.get(0))?;
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO plan_data VALUES (?1, ?2)")?;
    put.execute(params![id, data])?;
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO plan_light VALUES (?1, ?2)")?;
    put.execute(params![id, summary])?;
    Ok(())
}

/// Replaces the stamps in a row. If another scan has stored another plan in the row meanwhile, the row stays.
fn restamp(connection: &Connection, head: &Head) -> Result<(), IndexError> {
    let mut old = connection.prepare_cached("SELECT archived, name, steps, head FROM plan WHERE id = ?1")?;
    let mut rows = old.query([head.id])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let key = Key { is_archived: row.get(0)?, name: row.get(1)? };
    let old =
        Head::proved(head.id, key, row.get(2)?, row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?)?;
    drop(rows);
    if old.key == head.key && old.is_of_the_same_plan(head) {
        let mut update = connection.prepare_cached("UPDATE plan SET head = ?2 WHERE id = ?1")?;
        update.execute(params![head.id, head.bytes])?;
    }
    Ok(())
}

fn remove(connection: &Connection, key: &Key) -> Result<(), IndexError> {
    for table in ["plan_data", "plan_light"] {
        let of = "(SELECT id FROM plan WHERE archived = ?1 AND name = ?2)";
        let mut data = connection.prepare_cached(&format!("DELETE FROM {table} WHERE id = {of}"))?;
        data.execute(params![key.is_archived, key.name])?;
    }
    let plan = "DELETE FROM plan WHERE archived = ?1 AND name = ?2";
    connection.prepare_cached(plan)?.execute(params![key.is_archived, key.name])?;
    Ok(())
}
