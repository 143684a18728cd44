//! `search` and `sql`: questions that the index answers.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::index::{Hit, Query, Table};

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Words, `"phrases"`, and `-word` for what must not be there.
    pub query: String,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct SearchReport {
    pub query: String,
    pub hits: Vec<Hit>,
}

impl SearchReport {
    pub fn to_json(&self) -> Value {
        let hits = self.hits.iter().map(|it| json!({"kind": it.kind, "id": it.id, "plan": it.plan, "title": it.title, "snippet": it.plain_snippet()}));
        json!({"query": self.query, "hits": hits.collect::<Vec<_>>()})
    }
}

/// Searches the full text of plans and steps, best first.
pub fn search(context: &Context, request: &SearchRequest) -> Result<SearchReport, Error> {
    let index = load::fresh_index(context)?;
    let hits = index.search(&Query { text: request.query.clone(), limit: request.limit })?;
    Ok(SearchReport { query: request.query.clone(), hits })
}

/// Runs a reading SQL query on the documented views of the index.
pub fn sql(context: &Context, query: &str) -> Result<Table, Error> {
    Ok(load::fresh_index(context)?.sql(query)?)
}
