//! `search` and `sql`: questions that the index answers.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::engine::load::Wanted;
use crate::index::{self, Kind, MATCH_END, MATCH_START, Query, Table};
use crate::plan::plans::Plans;

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Words, `"phrases"`, and `-word` for what must not be there.
    pub query: String,
    pub limit: usize,
}

/// A plan or step that a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub kind: Kind,
    /// `feature-auth`, or `feature-auth:2.5`.
    pub id: String,
    pub plan: String,
    pub is_archived: bool,
    pub title: String,
    /// The best place in one line, every match between [`MATCH_START`] and
    /// [`MATCH_END`].
    pub snippet: String,
    /// The smaller, the better.
    pub rank: f64,
}

#[derive(Debug, Clone)]
pub struct SearchReport {
    pub query: String,
    pub hits: Vec<Hit>,
}

impl SearchReport {
    pub fn to_json(&self) -> Value {
        let hits = self.hits.iter().map(|it| json!({"kind": it.kind.word(), "id": it.id, "plan": it.plan, "title": it.title, "snippet": plain(&it.snippet)}));
        json!({"query": self.query, "hits": hits.collect::<Vec<_>>()})
    }
}

/// Searches the full text of plans and steps, best first.
pub fn search(context: &Context, request: &SearchRequest) -> Result<SearchReport, Error> {
    let query = Query { limit: request.limit, ..Query::new(request.query.clone()) };
    let hits = load::search(context, &query)?;
    Ok(SearchReport { query: request.query.clone(), hits })
}

/// Runs a reading SQL query on the documented views of the index.
pub fn sql(context: &Context, query: &str) -> Result<Table, Error> {
    let found = load::fresh(context, Wanted::PlansAndFiles);
    let plans = Plans::judged(found.plans);
    let files = found.files.iter().map(|(path, row)| (path.clone(), row));
    Ok(index::sql(query, files, plans.iter())?)
}

/// A snippet without the marks around its matches.
fn plain(snippet: &str) -> String {
    snippet.chars().filter(|it| !matches!(*it, MATCH_START | MATCH_END)).collect()
}
