//! Ranked full text over plans and steps: what of them is searched, and what a person's query means.
//!
//! The query is never SQLite's: its words become quoted strings, so that no text is a syntax error or a command.

use std::fmt::Write as _;

use rusqlite::{Connection, params};

use crate::index::error::IndexError;
use crate::plan::model::{Plan, Step};
use crate::plan::records::Note;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Words that all must be there, `"a phrase"`, `-word` and `-"a phrase"` that must not; the last wanted word may be
    /// the beginning of one. Case and accents do not matter.
    pub text: String,
    /// Only hits of this kind.
    pub kind: Option<Kind>,
    pub scope: Scope,
    /// At most so many hits.
    pub limit: usize,
}

/// What a hit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Plan,
    Step,
}

/// Which plans are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Live,
    /// Archived ones too.
    All,
}

/// A plan or step that the query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub kind: Kind,
    /// `feature-auth`, or `feature-auth:2.5`.
    pub id: String,
    pub plan: String,
    pub is_archived: bool,
    pub title: String,
    /// The best place in one line, every match between [`MATCH_START`] and [`MATCH_END`].
    pub snippet: String,
    /// BM25 (Robertson and Zaragoza 2009) as SQLite has it: the smaller, the better.
    pub rank: f64,
}

/// Stands before a match in a snippet; a text's own is a space there.
pub const MATCH_START: char = '\u{2}';
/// Stands behind a match in a snippet; a text's own is a space there.
pub const MATCH_END: char = '\u{3}';

/// More words than a person types, fewer than SQLite's limit of an expression's depth.
const MAX_TERMS: usize = 64;

impl Query {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: None, scope: Scope::Live, limit: 20 }
    }
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step => "step",
        }
    }
}

/// The searched texts of a plan or a step.
pub(super) struct Document {
    pub(super) kind: Kind,
    /// A plan's id, whose words are often looked for; nothing for a step, which would share its plan's.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) body: String,
    /// What stands in the front matter, a line each.
    pub(super) records: String,
}

pub(super) fn document_of_plan(plan: &Plan) -> Document {
    let lists = [&plan.tags, &plan.goals, &plan.success_criteria].into_iter().flatten();
    let records = plan.description.iter().chain(lists).map(String::as_str).chain(note_texts(&plan.notes));
    Document {
        kind: Kind::Plan,
        name: plain(plan.id.as_str()),
        title: plain(&plan.title),
        body: plain(&plan.body),
        records: plain(&records.collect::<Vec<_>>().join("\n")),
    }
}

pub(super) fn document_of_step(step: &Step) -> Document {
    let attempts = step.attempts.iter().flat_map(|it| it.outcome.iter().chain(&it.notes));
    let own = step.tags.iter().chain(&step.phase).chain(&step.result).chain(attempts);
    let records = own.map(String::as_str).chain(note_texts(&step.notes));
    Document {
        kind: Kind::Step,
        name: String::new(),
        title: plain(&step.title),
        body: plain(&step.body),
        records: plain(&records.collect::<Vec<_>>().join("\n")),
    }
}

fn note_texts(notes: &[Note]) -> impl Iterator<Item = &str> {
    notes.iter().map(|it| it.text.as_str())
}

/// A text without the marks of matches, and without NUL, where SQLite's full text would end it.
fn plain(text: &str) -> String {
    text.replace(['\0', MATCH_START, MATCH_END], " ")
}

/// Returns the best hits, best first; those of one rank by id. Nothing wanted finds nothing.
pub(super) fn search(connection: &Connection, query: &Query) -> Result<Vec<Hit>, IndexError> {
    let Some(wanted) = expression(&query.text) else { return Ok(Vec::new()) };
    // The snippets are made for the best hits only; SQLite would make them for all before sorting.
    let best =
        "SELECT d.id, d.kind, d.plan, d.step, d.archived, d.title, bm25(search, 8.0, 8.0, 1.0, 1.0) AS score
        FROM search JOIN document d ON d.id = search.rowid
        WHERE search MATCH ?1 AND (?2 IS NULL OR d.kind = ?2) AND (?3 OR NOT d.archived)
        ORDER BY score, d.archived, d.plan, d.place LIMIT ?4";
    let mut best = connection.prepare_cached(best)?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut rows =
        best.query(params![wanted, query.kind.map(Kind::word), query.scope == Scope::All, limit])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let (kind, plan, step) =
            (row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?);
        let is_plan = kind == Kind::Plan.word();
        hits.push(Hit {
            kind: if is_plan { Kind::Plan } else { Kind::Step },
            id: if is_plan { plan.clone() } else { format!("{plan}:{step}") },
            plan,
            is_archived: row.get(4)?,
            title: row.get(5)?,
            snippet: snippet(connection, &wanted, row.get(0)?)?,
            rank: row.get(6)?,
        });
    }
    Ok(hits)
}

fn snippet(connection: &Connection, wanted: &str, id: i64) -> Result<String, IndexError> {
    let snippet =
        "SELECT snippet(search, -1, ?1, ?2, '…', 16) FROM search WHERE search MATCH ?3 AND rowid = ?4";
    let mut snippet = connection.prepare_cached(snippet)?;
    let marks = (MATCH_START.to_string(), MATCH_END.to_string());
    let text: String = snippet.query_row(params![marks.0, marks.1, wanted, id], |row| row.get(0))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A word or phrase of a query.
#[derive(Debug, PartialEq, Eq)]
struct Term<'a> {
    text: &'a str,
    is_excluded: bool,
    is_phrase: bool,
}

/// Writes a query in FTS5's language; none if nothing is wanted.
fn expression(text: &str) -> Option<String> {
    let terms = terms(text);
    let (excluded, wanted): (Vec<_>, Vec<_>) = terms.iter().partition(|it| it.is_excluded);
    let is_begun = !wanted.last()?.is_phrase;
    let (excluded, wanted) = (all_quoted(&excluded).join(" OR "), all_quoted(&wanted).join(" AND "));
    let mut expression = format!("({wanted}{})", if is_begun { "*" } else { "" });
    if !excluded.is_empty() {
        let _ = write!(expression, " NOT ({excluded})");
    }
    Some(expression)
}

/// Strings of FTS5: split into words by its tokenizer like any text, never read as operators.
fn all_quoted(terms: &[&Term<'_>]) -> Vec<String> {
    terms.iter().map(|it| format!("\"{}\"", it.text.replace('"', "\"\"").replace('\0', " "))).collect()
}

/// Splits a query at blanks and quotes; an open quote reaches to the end, and what has no letter or digit is left out.
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
        check("say\"hi\"", Some("(\"say\" AND \"hi\")"));
    }

    #[test]
    fn operators_of_the_full_text_are_words() {
        check("a OR b", Some("(\"a\" AND \"OR\" AND \"b\"*)"));
        check("title:x NEAR(a,b) ^c", Some("(\"title:x\" AND \"NEAR(a,b)\" AND \"^c\"*)"));
        check("a\0b", Some("(\"a b\"*)"));
    }
}
