//! Ranked full-text search over plans, steps, decisions and insights: which of their texts are searched, and what a
//! query means. Decisions and insights are called records, except in the field `records` of a [`Document`].
//!
//! A query is never used as FTS5 syntax: its words become quoted strings, so that no text is a syntax error or an
//! operator.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension, params};

use crate::index::common_terms::{self, Listing};
use crate::index::error::IndexError;
use crate::index::row::{Head, Key, Version, half};
use crate::plan::model::{Plan, Step};
use crate::plan::records::Note;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Each `word` and `"a phrase"` must occur, and no `-word` or `-"a phrase"` may occur. If the last wanted term is a
    /// word, it also matches longer words that begin with it. Case does not matter, nor do accents of Latin letters.
    pub text: String,
    pub kind: Option<Kind>,
    pub scope: Scope,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Plan,
    Step,
    Decision,
    Insight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Live,
    /// Live and archived plans.
    All,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub key: Key,
    /// The position of a step in its plan; `None` for a plan itself and for a record.
    pub place: Option<usize>,
    /// BM25 (Robertson and Zaragoza 2009) as SQLite computes it: the smaller, the better. 0 for a match that was not
    /// ranked because there are too many (`common_terms.rs`).
    pub rank: f64,
}

/// Marks the start of a match in a snippet. If a text contains this character, it is shown as a space.
pub const MATCH_START: char = '\u{2}';
/// Marks the end of a match in a snippet. If a text contains this character, it is shown as a space.
pub const MATCH_END: char = '\u{3}';

/// More terms than a person types, but few enough for SQLite's limit on the depth of an expression.
const MAX_TERMS: usize = 64;

impl Query {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: None, scope: Scope::Live, limit: 20 }
    }
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Plan, Self::Step, Self::Decision, Self::Insight];

    pub fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step => "step",
            Self::Decision => "decision",
            Self::Insight => "insight",
        }
    }

    /// The SQL condition for matches of this kind. The names of records are paths; the names of plans contain no `/`.
    fn condition(self) -> &'static str {
        match self {
            Self::Plan => "AND rowid IN (SELECT first FROM searched NOT INDEXED WHERE instr(name, '/') = 0)",
            Self::Step => "AND rowid NOT IN (SELECT first FROM searched NOT INDEXED)",
            Self::Decision => {
                "AND rowid IN (SELECT first FROM searched NOT INDEXED WHERE name LIKE '^_decisions/%' ESCAPE '^')"
            }
            Self::Insight => {
                "AND rowid IN (SELECT first FROM searched NOT INDEXED WHERE name LIKE '^_insights/%' ESCAPE '^')"
            }
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// A plan's id, whose words are often searched for, or the topic of a decision that is not superseded. Empty for other
    /// decisions and for insights. Also empty for a step, because its name would repeat its plan's id.
    name: String,
    title: String,
    body: String,
    /// Some values of the front matter, such as tags, notes and attempts, one on each line.
    records: String,
}

impl Document {
    /// The searched texts of a decision or insight; matches in `name` and `title` rank higher.
    pub fn of_record(name: &str, title: &str, body: &str, records: &str) -> Self {
        Self { name: plain(name), title: plain(title), body: plain(body), records: plain(records) }
    }

    fn version(&self) -> Version {
        let mut hasher = blake3::Hasher::new();
        for part in [&self.name, &self.title, &self.body, &self.records] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        half(&hasher.finalize())
    }

    /// The searched texts of a plan itself, whose body must be loaded.
    pub fn of_plan(plan: &Plan) -> Self {
        let lists = [&plan.tags, &plan.goals, &plan.success_criteria].into_iter().flatten();
        let records = plan.description.iter().chain(lists).map(String::as_str).chain(note_texts(&plan.notes));
        Self {
            name: plain(plan.id.as_str()),
            title: plain(&plan.title),
            body: plain(&plan.body),
            records: plain(&records.collect::<Vec<_>>().join("\n")),
        }
    }

    /// The searched texts of a step, whose body must be loaded.
    pub fn of_step(step: &Step) -> Self {
        let attempts = step.attempts.iter().flat_map(|it| it.outcome.iter().chain(&it.notes));
        let own = step.tags.iter().chain(&step.phase).chain(&step.result).chain(attempts);
        let records = own.map(String::as_str).chain(note_texts(&step.notes));
        Self {
            name: String::new(),
            title: plain(&step.title),
            body: plain(&step.body),
            records: plain(&records.collect::<Vec<_>>().join("\n")),
        }
    }
}

fn note_texts(notes: &[Note]) -> impl Iterator<Item = &str> {
    notes.iter().map(|it| it.text.as_str())
}

/// Replaces the marks of matches by spaces, and NUL as well, because SQLite would end the text there. Puts [`BETWEEN`]
/// around characters of scripts without spaces.
fn plain(text: &str) -> String {
    // Almost no text contains NUL or a match mark. Finding the smallest byte is several times as fast as searching for
    // each of them.
    let (smallest, largest) = text.bytes().fold((u8::MAX, 0), |(a, b), it| (a.min(it), b.max(it)));
    let text = if largest < FIRST_BYTE_WITHOUT_SPACES { text.to_owned() } else { apart(text) };
    if smallest > 3 { text } else { text.replace(['\0', MATCH_START, MATCH_END], " ") }
}

/// A zero-width space, put before and after each character of a script that is written without spaces. SQLite splits
/// words there, so each of these characters is a word, and a word of several characters is a phrase.
const BETWEEN: char = '\u{200b}';

/// The first UTF-8 byte of the smallest character for which [`is_without_spaces`] is true.
const FIRST_BYTE_WITHOUT_SPACES: u8 = 0xe3;

/// Han, Hiragana and Katakana.
fn is_without_spaces(it: char) -> bool {
    matches!(it, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

/// Puts [`BETWEEN`] around each character for which [`is_without_spaces`] is true.
fn apart(text: &str) -> String {
    let mut apart = String::with_capacity(text.len() * 2);
    for it in text.chars() {
        if is_without_spaces(it) {
            apart.extend([BETWEEN, it, BETWEEN]);
        } else {
            apart.push(it);
        }
    }
    apart
}

/// The documents of a plan (its own, then those of its steps in order), or the single document of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    pub(super) key: Key,
    /// The version of the plan's data when the texts were read; for a record, the version of its document.
    pub(super) version: Version,
    pub(super) documents: Vec<Document>,
}

impl Texts {
    /// The text of a file that belongs to no plan, such as a decision. `path` is relative to the plans directory and
    /// contains a `/`.
    pub fn of_record(path: &str, document: Document) -> Self {
        let key = Key { is_archived: false, name: path.to_owned() };
        Self { key, version: document.version(), documents: vec![document] }
    }

    /// The texts of the plan that `head` describes. The bodies of `plan` must be loaded.
    pub fn of_head(head: &Head, plan: &Plan) -> Self {
        let steps = plan.steps.iter().map(Document::of_step);
        let documents = std::iter::once(Document::of_plan(plan)).chain(steps).collect();
        Self { key: head.key.clone(), version: head.version, documents }
    }

    /// Returns whether these are the texts of the plan that `head` describes.
    pub fn are_of(&self, head: &Head) -> bool {
        self.key == head.key && self.version == head.version
    }

    pub fn key(&self) -> &Key {
        &self.key
    }
}

/// Stores texts in place of earlier texts of the same plans and records, and removes the texts of `gone`.
pub(super) fn put(
    connection: &Connection,
    texts: &mut dyn Iterator<Item = Texts>,
    gone: &[Key],
) -> Result<(), IndexError> {
    let last = "SELECT coalesce(max(abs(first) + n), 1) FROM searched";
    let mut next: i64 = connection.query_row(last, [], |row| row.get(0))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO search (rowid, name, title, body, records) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut title =
        connection.prepare_cached("INSERT INTO titles (rowid, name, title) VALUES (?1, ?2, ?3)")?;
    let mut listing = Listing::read(connection)?;
    let mut note = connection.prepare_cached("INSERT INTO searched VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for Texts { key, version, documents } in texts {
        if !take_out(connection, &key, Some(version))? {
            continue;
        }
        let n = i64::try_from(documents.len()).unwrap_or(i64::MAX);
        // The documents of an archived plan get the numbers up to `-next`, so that all of them are below zero.
        let first = if key.is_archived { -(next + n - 1) } else { next };
        note.execute(params![first, n, key.is_archived, key.name, version])?;
        for (id, it) in (first..).zip(&documents) {
            insert.execute(params![id, it.name, it.title, it.body, it.records])?;
            title.execute(params![id, it.name, it.title])?;
        }
        listing.note(first, n, &key);
        next += n;
    }
    for key in gone {
        take_out(connection, key, None)?;
    }
    listing.keep(connection)?;
    // FTS5 keeps its last rows in memory until a savepoint or the commit. They are written now, because the checksums are
    // computed before the commit.
    Ok(connection.execute_batch("SAVEPOINT flushed; RELEASE flushed")?)
}

/// Removes the texts of a key and returns true. If another process has already stored the wanted version, nothing is
/// removed and the result is false.
fn take_out(connection: &Connection, key: &Key, wanted: Option<Version>) -> Result<bool, IndexError> {
    let place = "SELECT first, n, version FROM searched WHERE archived = ?1 AND name = ?2";
    let mut place = connection.prepare_cached(place)?;
    let place = place.query_row(params![key.is_archived, key.name], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, Version>(2)?))
    });
    let Some((first, n, version)) = place.optional()? else { return Ok(true) };
    let (first, n): (i64, i64) = (first, n);
    if wanted == Some(version) {
        return Ok(false);
    }
    for delete in ["DELETE FROM search WHERE rowid = ?1", "DELETE FROM titles WHERE rowid = ?1"] {
        let mut delete = connection.prepare_cached(delete)?;
        for id in first..first.saturating_add(n) {
            delete.execute([id])?;
        }
    }
    connection.prepare_cached("DELETE FROM searched WHERE first = ?1")?.execute([first])?;
    Ok(true)
}

/// Lists the plans and records whose current texts are not in the full-text index, and the deleted ones whose texts are
/// still in it.
///
/// Without heads, only records are compared.
pub(super) fn unsearched<'h>(
    connection: &Connection,
    heads: Option<&'h [Head]>,
    records: &[Texts],
) -> Result<Unsearched<'h>, IndexError> {
    let only_records = if heads.is_some() { "" } else { "WHERE instr(name, '/') > 0" };
    let known = format!("SELECT archived, name, version FROM searched {only_records}");
    let mut known = connection.prepare_cached(&known)?;
    let known =
        known.query_map([], |row| Ok((Key { is_archived: row.get(0)?, name: row.get(1)? }, row.get(2)?)))?;
    let mut known = known.collect::<Result<HashMap<Key, Version>, _>>()?;
    let mut missing: Vec<_> = heads.unwrap_or_default().iter().collect();
    missing.retain(|it| known.remove(&it.key) != Some(it.version));
    missing.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let other = |it: &&Texts| known.remove(&it.key) != Some(it.version);
    let records = records.iter().filter(other).cloned().collect();
    let mut gone: Vec<_> = known.into_keys().collect();
    gone.sort_unstable();
    Ok(Unsearched { missing, gone, records })
}

/// What has to be done before the full-text index can be searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsearched<'h> {
    /// Plans whose current texts are not in the full-text index.
    pub missing: Vec<&'h Head>,
    /// Deleted plans and records whose texts are still in it.
    pub gone: Vec<Key>,
    /// Records whose current texts are not in it.
    pub records: Vec<Texts>,
}

impl Unsearched<'_> {
    pub fn is_nothing(&self) -> bool {
        self.missing.is_empty() && self.gone.is_empty() && self.records.is_empty()
    }
}

/// Returns the best matches, best first; matches of equal rank are ordered by [`order`]. If very many documents match, the
/// order is that of `common_terms.rs`. An empty query has no results.
pub(super) fn search(connection: &Connection, query: &Query) -> Result<Vec<Match>, IndexError> {
    let Some(wanted) = expression(&query.text).filter(|_| query.limit > 0) else { return Ok(Vec::new()) };
    if !terms(&query.text).iter().any(|it| it.is_excluded) {
        // If more than `MANY` documents match with the whole last word, longer words are not searched.
        let whole = expression_of(&query.text, LastWord::Whole).filter(|it| *it != wanted);
        for wanted in whole.iter().chain([&wanted]) {
            if let Some(found) = common_terms::search(connection, query, wanted)? {
                return Ok(found);
            }
        }
    }
    let kind = query.kind.map_or("", Kind::condition);
    let all = format!(
        "SELECT rowid, bm25(search, 8.0, 8.0, 1.0, 1.0) FROM search WHERE search MATCH ?1 AND (?2 OR rowid > 0) {kind}"
    );
    let mut all = connection.prepare_cached(&all)?;
    let all =
        all.query_map(params![wanted, query.scope == Scope::All], |row| Ok((row.get(1)?, row.get(0)?)))?;
    let mut all = all.collect::<Result<Vec<(f64, i64)>, _>>()?;
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Matches of equal rank are ordered by `order`, not by row id. So all matches with the rank of the last one stay until
    // they are sorted.
    if let Some((last, _)) = all.get(query.limit - 1).copied() {
        all.truncate(all.partition_point(|(rank, _)| *rank <= last));
    }
    let mut found =
        all.into_iter().map(|(rank, id)| found(connection, rank, id)).collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable_by(|a, b| a.rank.total_cmp(&b.rank).then_with(|| order(a, b)));
    found.truncate(query.limit);
    Ok(found)
}

/// The order of matches of equal rank. Plans and their steps come first, in listing order: live plans before archived ones,
/// then by name and position. Then come insights, and then decisions, each with the newest first.
pub(super) fn order(a: &Match, b: &Match) -> Ordering {
    match (a.key.name.contains('/'), b.key.name.contains('/')) {
        (true, true) => b.key.cmp(&a.key),
        (false, false) => (&a.key, a.place).cmp(&(&b.key, b.place)),
        (is_record, _) => is_record.cmp(&!is_record),
    }
}

pub(super) fn found(connection: &Connection, rank: f64, id: i64) -> Result<Match, IndexError> {
    let owner = "SELECT first, archived, name FROM searched WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
    let mut owner = connection.prepare_cached(owner)?;
    let owner = owner.query_row([id], |row| {
        Ok((row.get::<_, i64>(0)?, Key { is_archived: row.get(1)?, name: row.get(2)? }))
    });
    let (first, key) = owner.optional()?.ok_or_else(|| IndexError::damaged("a text belongs to no plan"))?;
    Ok(Match { key, place: usize::try_from(id - first - 1).ok(), rank })
}

/// Returns the best snippet of each document in one line, with every match between [`MATCH_START`] and [`MATCH_END`];
/// `None` for a document that does not match.
pub fn snippets(query: &Query, documents: &[Document]) -> Result<Vec<Option<String>>, IndexError> {
    let Some(wanted) = expression(&query.text) else { return Ok(vec![None; documents.len()]) };
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(
        "CREATE VIRTUAL TABLE shown USING fts5 (
            name, title, body, records, tokenize = 'unicode61 remove_diacritics 2'
        )",
    )?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO shown (rowid, name, title, body, records) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (id, it) in (0_i64..).zip(documents) {
        insert.execute(params![id, it.name, it.title, it.body, it.records])?;
    }
    // In scripts without spaces, each character counts as a word.
    let words = if query.text.contains(is_without_spaces) { 48 } else { 16 };
    let snippet = format!(
        "SELECT snippet(shown, -1, ?1, ?2, '…', {words}) FROM shown WHERE shown MATCH ?3 AND rowid = ?4"
    );
    let mut snippet = connection.prepare_cached(&snippet)?;
    let marks = (MATCH_START.to_string(), MATCH_END.to_string());
    let of = |id: usize| {
        let id = i64::try_from(id).unwrap_or(i64::MAX);
        let text = snippet.query_row(params![marks.0, marks.1, wanted, id], |row| row.get::<_, String>(0));
        let in_one_line =
            |it: String| it.replace(BETWEEN, "").split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(text.optional()?.map(in_one_line))
    };
    (0..documents.len()).map(of).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Term<'a> {
    text: &'a str,
    is_excluded: bool,
    is_phrase: bool,
}

/// Whether a query has words to exclude and no words to find.
pub fn only_excludes(text: &str) -> bool {
    let terms = terms(text);
    !terms.is_empty() && terms.iter().all(|it| it.is_excluded)
}

/// Writes a query in FTS5's language; `None` if it has no wanted terms.
///
/// The last word also matches longer words. If it contains a digit, as in `step 7`, exact matches rank higher than longer
/// words. Without a digit, they do not rank higher: otherwise `token` in a text would come before `tokens` in a title.
fn expression(text: &str) -> Option<String> {
    expression_of(text, LastWord::MayBePrefix)
}

/// How the last word of a query is matched if it is not in a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastWord {
    MayBePrefix,
    Whole,
}

fn expression_of(text: &str, last_word: LastWord) -> Option<String> {
    let terms = terms(text);
    let (excluded, wanted): (Vec<_>, Vec<_>) = terms.iter().partition(|it| it.is_excluded);
    let is_prefix = !wanted.last()?.is_phrase && last_word == LastWord::MayBePrefix;
    let (excluded, mut wanted) = (all_quoted(&excluded).join(" OR "), all_quoted(&wanted));
    if let Some(last) = wanted.last_mut().filter(|_| is_prefix) {
        let has_digit = last.contains(|c: char| c.is_ascii_digit());
        *last = if has_digit { format!("({last} OR {last}*)") } else { format!("{last}*") };
    }
    let mut expression = format!("({})", wanted.join(" AND "));
    if !excluded.is_empty() {
        let _ = write!(expression, " NOT ({excluded})");
    }
    Some(expression)
}

/// Writes terms as quoted strings. FTS5 splits these into words like any text, and never reads them as operators.
fn all_quoted(terms: &[&Term<'_>]) -> Vec<String> {
    terms.iter().map(|it| format!("\"{}\"", apart(it.text).replace('"', "\"\"").replace('\0', " "))).collect()
}

/// Splits a query at whitespace and quotes. A phrase without a closing quote extends to the end of the query. Terms without
/// a letter or digit are left out.
fn terms(text: &str) -> Vec<Term<'_>> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() && terms.len() < MAX_TERMS {
        let bare = rest.strip_prefix('-');
        let from = bare.unwrap_or(rest);
        let quoted = from.strip_prefix('"');
        let (text, behind) = match quoted {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => from.split_at(from.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(from.len())),
        };
        rest = behind.trim_start();
        if text.contains(char::is_alphanumeric) {
            terms.push(Term { text, is_excluded: bare.is_some(), is_phrase: quoted.is_some() });
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(expression(text).as_deref(), expected, "{text}");
    }

    #[test]
    fn words_phrases_and_exclusions_are_quoted_strings() {
        check("", None);
        check("  -- \"\" ", None);
        check("-only", None);
        check("auth", Some("(\"auth\"*)"));
        check("auth token", Some("(\"auth\" AND \"token\"*)"));
        check("\"login page\" user", Some("(\"login page\" AND \"user\"*)"));
        check("user \"login page", Some("(\"user\" AND \"login page\")"));
        check("auth -oauth -\"a b\"", Some("(\"auth\"*) NOT (\"oauth\" OR \"a b\")"));
        check("step 7", Some("(\"step\" AND (\"7\" OR \"7\"*))"));
        check("say\"hi\"", Some("(\"say\" AND \"hi\")"));
    }

    #[test]
    fn operators_of_the_full_text_are_words() {
        check("a OR b", Some("(\"a\" AND \"OR\" AND \"b\"*)"));
        check("title:x NEAR(a,b) ^c", Some("(\"title:x\" AND \"NEAR(a,b)\" AND \"^c\"*)"));
        check("a\0b", Some("(\"a b\"*)"));
    }

    #[test]
    fn words_of_scripts_without_spaces_are_phrases_of_characters() {
        check("翻译x", Some("(\"\u{200b}翻\u{200b}\u{200b}译\u{200b}x\"*)"));
        assert_eq!(plain("公開a"), "\u{200b}公\u{200b}\u{200b}開\u{200b}a");
        assert_eq!(plain("naïve — “한국어”"), "naïve — “한국어”");
    }
}
