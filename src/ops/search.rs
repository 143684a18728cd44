//! `search` and `sql`: queries of the index.

pub(crate) mod fill;
pub(crate) mod full_text;
pub mod people;
mod records;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::index::{self, Kind, Knowledge, MATCH_END, MATCH_START, Query, Table};
use crate::plan::plans::Plans;
use crate::plan::words::nearest;
use crate::store::knowledge;
use crate::store::load::{IndexCheck, Refresh, Wanted};

pub use crate::api::requests::SearchRequest;

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub kind: Kind,
    /// The id of a plan or a step, such as `feature-auth` or `feature-auth:2.5`. For a decision or an insight, the name of
    /// its file without `.md`.
    pub id: String,
    /// The plan itself, the plan of a step, or the plan that a decision or an insight is about.
    pub plan: Option<String>,
    pub is_archived: bool,
    /// The title; for a decision, its topic.
    pub title: String,
    /// Relative to the plans directory.
    pub path: String,
    /// The best part of the text, on one line, with every match between [`MATCH_START`] and
    /// [`MATCH_END`].
    pub snippet: String,
    /// The quality of the match. Smaller values are better.
    pub rank: f64,
}

#[derive(Debug, Clone)]
pub struct SearchReport {
    pub query: String,
    pub hits: Vec<Hit>,
    root: String,
}

impl SearchReport {
    pub fn to_json(&self) -> Value {
        let hits = self.hits.iter().map(|it| json!({"kind": it.kind.word(), "id": it.id, "plan": it.plan, "title": it.title, "path": shown_path(&self.root, &it.path), "snippet": plain(&it.snippet)}));
        json!({"query": self.query, "hits": hits.collect::<Vec<_>>()})
    }
}

/// Searches the full text of plans, steps, decisions and insights, best first.
pub fn search(context: &Context, request: &SearchRequest) -> Result<SearchReport, Error> {
    let kind = request.kind.as_deref().map(kind).transpose()?;
    let since = request.since.as_deref().map(|it| knowledge::since(it, context.now)).transpose()?;
    let query = Query { limit: request.limit, kind, ..Query::new(request.query.clone()) };
    let mut hits = full_text::search(context, &query, since)?;
    for hit in &mut hits {
        hit.snippet = without_marks(&hit.snippet, &hit.title);
    }
    Ok(SearchReport { query: request.query.clone(), hits, root: context.root_name() })
}

fn kind(word: &str) -> Result<Kind, Error> {
    let found = Kind::ALL.into_iter().find(|it| it.word().eq_ignore_ascii_case(word.trim_end_matches('s')));
    found.ok_or_else(|| {
        let known = Kind::ALL.map(Kind::word);
        let near = nearest(word, known).map(|it| format!("did you mean `{it}`?"));
        let hint = near.unwrap_or_else(|| format!("one of {}", known.join(", ")));
        Error::usage(format!("unknown kind `{word}`"), hint)
    })
}

/// Runs a read-only SQL query on the documented views of the index.
pub fn sql(context: &Context, query: &str) -> Result<Table, Error> {
    let found = Refresh::new(Wanted::PlansAndFiles, IndexCheck::Attested).run(context);
    let plans = Plans::judged(found.plans);
    let files = found.files.iter().map(|(path, row)| (path.clone(), row));
    let known = || Knowledge {
        decisions: knowledge::decisions(context),
        insights: knowledge::insights(context),
        scripts: knowledge::scripts(context),
    };
    Ok(index::sql(query, index::SQL_LIMIT, files, plans.iter(), known)?)
}

/// Each row as an object. If several columns have the same name, the later ones get a number after it.
pub fn table_to_json(answer: &Table) -> Value {
    let mut taken = HashSet::new();
    let names: Vec<_> = answer
        .columns
        .iter()
        .map(|name| {
            let numbered = (2..).map(|n| format!("{name}_{n}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|it| taken.insert(it.clone()));
            free.unwrap_or_default()
        })
        .collect();
    let row = |row: &Vec<Value>| names.iter().cloned().zip(row.iter().cloned()).collect::<Map<_, _>>();
    json!({"columns": names, "rows": answer.rows.iter().map(row).collect::<Vec<_>>()})
}

/// A snippet without the Markdown of headings and task boxes, and without a heading that only repeats the title.
fn without_marks(snippet: &str, title: &str) -> String {
    let is_heading = |it: &str| !it.is_empty() && it.len() <= 6 && it.chars().all(|c| c == '#');
    let mut words = snippet.split(' ').peekable();
    let begins_with_heading = words.peek().is_some_and(|it| is_heading(it));
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        match (word, words.peek().copied()) {
            (word, _) if is_heading(word) => {}
            // `split` has divided an empty box `[ ]` into two words.
            ("[", Some("]")) => drop(words.next()),
            ("[x]" | "[X]", _) | ("-" | "*" | "+", Some("[" | "[x]" | "[X]")) => {}
            (word, _) => kept.push(word),
        }
    }
    let of_title: Vec<_> = title.split_whitespace().collect();
    let is_title = |kept: &[&str]| kept.iter().zip(&of_title).all(|(it, title)| plain(it) == **title);
    if begins_with_heading && kept.len() >= of_title.len() && is_title(&kept) {
        kept.drain(..of_title.len());
    }
    kept.join(" ")
}

/// A snippet without the marks around its matches.
fn plain(snippet: &str) -> String {
    snippet.chars().filter(|it| !matches!(*it, MATCH_START | MATCH_END)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(snippet: &str, title: &str, expected: &str) {
        assert_eq!(without_marks(snippet, title), expected);
    }

    #[test]
    fn structure_and_the_title_are_left_out_of_a_snippet() {
        check(
            "# Schema Make \u{2}tables\u{3}. ## Tasks - [ ] One - [x] Two",
            "Schema",
            "Make \u{2}tables\u{3}. Tasks One Two",
        );
        check("# \u{2}Schema\u{3} of users", "Schema of users", "");
        check("Schema - first of all", "Schema", "Schema - first of all");
        check("…and a [ link ] #4 * b", "Schema", "…and a [ link ] #4 * b");
        check("# Other Schema", "Schema", "Other Schema");
    }

    #[test]
    fn rows_are_objects_and_equal_names_are_distinguished() {
        let columns = ["id", "id", "n"].map(str::to_owned).to_vec();
        let answer = Table { columns, rows: vec![vec![json!("a"), json!("b"), json!(1)]] };
        assert_eq!(table_to_json(&answer)["rows"], json!([{"id": "a", "id_2": "b", "n": 1}]));
    }
}
