//! Queries that match very many documents, such as a single common word.
//!
//! BM25 examines every match, and a word that occurs almost everywhere carries little information. So if there are more than
//! [`MANY`] matches, the result has two groups. The first group has the matches whose name and title together contain all
//! words of the query. They are ranked by BM25, or are in listing order if there are more than [`MANY`] of them, too. The
//! second group has all other matches, in listing order. The order does not depend on the document numbers, so every index
//! gives the same result.
//!
//! Most documents are numbered in listing order, because the full-text index is filled in that order. So the matches below
//! the [border](Listing) are read in listing order, and SQLite can stop as soon as it has enough of them. Changed plans get
//! numbers from the border on. If there are enough matches below the border, a changed plan is searched only if it comes
//! before the last of these matches in listing order. If more than [`FEW_OWNERS`] changed plans come before it, all matches
//! from the border on are read instead.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};

use crate::index::error::IndexError;
use crate::index::row::Key;
use crate::index::search::{self, Match, Query, Scope};

/// With more matches than this, not all are ranked.
pub(super) const MANY: usize = 1000;

/// Up to this many changed plans are searched one by one. If there are more, all matches from the border on are read.
const FEW_OWNERS: usize = 16;

/// Which documents are numbered in the order of [`search::order`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// Live documents with smaller numbers are numbered in listing order. They all belong to plans, which are listed
    /// before decisions and insights.
    border: i64,
    /// The name of the last plan below the border.
    last: String,
    /// Whether a plan out of order, a decision or an insight was added. After that, the border no longer moves.
    is_broken: bool,
}

impl Listing {
    pub(super) fn read(connection: &Connection) -> Result<Self, IndexError> {
        let mut listing = connection.prepare_cached("SELECT value FROM meta WHERE key = 'listing'")?;
        let bytes = listing.query_row([], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let read = bytes.as_deref().and_then(|it| {
            let (border, rest) = it.split_first_chunk::<8>()?;
            let (is_broken, last) = rest.split_first()?;
            let last = String::from_utf8(last.to_vec()).ok()?;
            Some(Self { border: i64::from_le_bytes(*border), last, is_broken: *is_broken != 0 })
        });
        Ok(read.unwrap_or(Self { border: 1, last: String::new(), is_broken: false }))
    }

    pub(super) fn note(&mut self, first: i64, n: i64, key: &Key) {
        if key.is_archived || self.is_broken {
            return;
        }
        if key.name.contains('/') || key.name <= self.last {
            self.is_broken = true;
        } else {
            self.border = first + n;
            self.last.clone_from(&key.name);
        }
    }

    pub(super) fn border(&self) -> i64 {
        self.border
    }

    pub(super) fn keep(&self, connection: &Connection) -> Result<(), IndexError> {
        let bytes =
            [&self.border.to_le_bytes()[..], &[u8::from(self.is_broken)], self.last.as_bytes()].concat();
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('listing', ?1)", params![bytes])?;
        Ok(())
    }
}

/// Searches live documents of all kinds if too many match to rank all of them. `None` if there are fewer matches, if the
/// query names a kind or includes archived plans, or if its limit is above [`MANY`].
///
/// `wanted` is the query in FTS5's syntax, without exclusions. If the query's last word may be a prefix, the caller first
/// searches for it as a whole word.
pub(super) fn search(
    connection: &Connection,
    query: &Query,
    wanted: &str,
) -> Result<Option<Vec<Match>>, IndexError> {
    if query.kind.is_some() || query.scope != Scope::Live || query.limit > MANY {
        return Ok(None);
    }
    let of = CommonTermQuery { connection, wanted, border: Listing::read(connection)?.border() };
    let texts = of.matches("search")?;
    if texts.len() <= MANY {
        return Ok(None);
    }
    let titles = of.matches("titles")?;
    let mut found = match titles.len() {
        0..=MANY => of.ranked()?,
        _ => of.listed(&titles, query.limit)?,
    };
    if found.len() < query.limit {
        let more = of.listed(&texts, query.limit + found.len())?;
        let more: Vec<_> =
            more.into_iter().filter(|it| !found.iter().any(|known| is_same(known, it))).collect();
        found.extend(more);
    }
    found.truncate(query.limit);
    Ok(Some(found))
}

fn is_same(a: &Match, b: &Match) -> bool {
    (&a.key, a.place) == (&b.key, b.place)
}

struct CommonTermQuery<'a> {
    connection: &'a Connection,
    wanted: &'a str,
    border: i64,
}

struct Matches {
    table: &'static str,
    /// Below the border, in listing order; at most [`MANY`] + 1.
    listed: Vec<i64>,
    /// From the border on; `None` if they were not read, because there are enough below the border.
    others: Option<Vec<i64>>,
}

impl Matches {
    /// The number of matches: exact up to [`MANY`], and a lower bound above that.
    fn len(&self) -> usize {
        self.listed.len() + self.others.as_ref().map_or(0, Vec::len)
    }
}

impl CommonTermQuery<'_> {
    fn matches(&self, table: &'static str) -> Result<Matches, IndexError> {
        let listed = self.numbers(table, 1..self.border, MANY + 1)?;
        let others = match listed.len() {
            0..=MANY => Some(self.others(table)?),
            _ => None,
        };
        Ok(Matches { table, listed, others })
    }

    /// The first matches whose document numbers are in this range, ascending.
    fn numbers(&self, table: &str, range: Range<i64>, most: usize) -> Result<Vec<i64>, IndexError> {
        let select = format!(
            "SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid >= ?2 AND rowid < ?3 LIMIT ?4"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = select.query_map(params![self.wanted, range.start, range.end, most], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// All matches from the border on.
    fn others(&self, table: &str) -> Result<Vec<i64>, IndexError> {
        let has_others = "SELECT 1 FROM searched WHERE first >= ?1 LIMIT 1";
        let has_others = self.connection.prepare_cached(has_others)?.exists([self.border])?;
        if has_others { self.numbers(table, self.border..i64::MAX, usize::MAX) } else { Ok(Vec::new()) }
    }

    /// The first matches of each changed plan that comes before `plan` in listing order. If there are more than
    /// [`FEW_OWNERS`] such plans, all matches from the border on.
    fn listed_before(&self, table: &str, plan: &str, most: usize) -> Result<Vec<Match>, IndexError> {
        let owners = format!(
            "SELECT first, first + n FROM searched WHERE archived = 0 AND name < ?1 AND instr(name, '/') = 0
                AND first >= ?2 ORDER BY name LIMIT {FEW_OWNERS} + 1"
        );
        let mut owners = self.connection.prepare_cached(&owners)?;
        let owners = owners.query_map(params![plan, self.border], |row| Ok(row.get(0)?..row.get(1)?))?;
        let owners = owners.collect::<Result<Vec<Range<i64>>, _>>()?;
        if owners.len() > FEW_OWNERS {
            return self.owned(&self.others(table)?);
        }
        let mut found = Vec::new();
        for range in owners {
            for id in self.numbers(table, range, most)? {
                found.push(search::found(self.connection, 0.0, id)?);
            }
        }
        Ok(found)
    }

    /// The matches with all words in name and title, best first.
    fn ranked(&self) -> Result<Vec<Match>, IndexError> {
        let all = "SELECT rowid, bm25(titles) FROM titles WHERE titles MATCH ?1 AND rowid > 0";
        let mut all = self.connection.prepare_cached(all)?;
        let all = all.query_map([self.wanted], |row| Ok((row.get(1)?, row.get(0)?)))?;
        let all = all.collect::<Result<Vec<(f64, i64)>, _>>()?;
        let found = all.into_iter().map(|(rank, id)| search::found(self.connection, rank, id));
        let mut found = found.collect::<Result<Vec<_>, _>>()?;
        found.sort_unstable_by(|a, b| a.rank.total_cmp(&b.rank).then_with(|| search::order(a, b)));
        Ok(found)
    }

    /// The first `most` of the matches in listing order.
    fn listed(&self, matches: &Matches, most: usize) -> Result<Vec<Match>, IndexError> {
        let first = matches.listed.iter().take(most).map(|id| search::found(self.connection, 0.0, *id));
        let mut found = first.collect::<Result<Vec<_>, _>>()?;
        let others = match (&matches.others, found.last()) {
            (Some(others), _) => self.owned(others)?,
            (None, Some(last)) if found.len() == most => {
                self.listed_before(matches.table, &last.key.name, most)?
            }
            (None, _) => self.owned(&self.others(matches.table)?)?,
        };
        found.extend(others);
        found.sort_unstable_by(search::order);
        found.truncate(most);
        Ok(found)
    }

    /// Finds the owners of these documents in one pass. The numbers must be ascending, and not be below the border.
    fn owned(&self, numbers: &[i64]) -> Result<Vec<Match>, IndexError> {
        let owners = "SELECT first, n, archived, name FROM searched WHERE first >= ?1 ORDER BY first";
        let mut owners = self.connection.prepare_cached(owners)?;
        let mut owners = owners.query([self.border])?;
        let (mut found, mut left) = (Vec::new(), numbers);
        while let Some(row) = owners.next()?.filter(|_| !left.is_empty()) {
            let (first, n): (i64, i64) = (row.get(0)?, row.get(1)?);
            let own = left.partition_point(|it| *it < first.saturating_add(n));
            let (these, rest) = left.split_at(own);
            left = rest;
            for id in these {
                let key = Key { is_archived: row.get(2)?, name: row.get(3)? };
                let place = id.checked_sub(first + 1).and_then(|it| usize::try_from(it).ok());
                found.push(Match { key, place, rank: 0.0 });
            }
        }
        match left {
            [] => Ok(found),
            _ => Err(IndexError::damaged("a text belongs to no plan")),
        }
    }
}
