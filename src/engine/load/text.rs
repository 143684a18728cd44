//! The full text, brought up to date when it is asked: texts of plans that changed are read again for it alone.

use std::path::Path;
use std::sync::OnceLock;

use super::files::{How, read_whole};
use super::refresh::{Wanted, after, fresh, fresh_in};
use super::{etag, parallel};
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::knowledge;
use crate::engine::search::Hit;
use crate::engine::shape::last_activity;
use crate::index::{Document, Index, IndexError, Key, Kind, Match, Place, Query, Snapshot, Texts, snippets};
use crate::plan::read::body;
use crate::plan::time::Time;

/// Returns the best hits among the files as they are now, best first; only those that are not older than `since`.
pub(crate) fn search(context: &Context, query: &Query, since: Option<Time>) -> Result<Vec<Hit>, Error> {
    let asked = Asked { context, query, since, records: knowledge::records(context) };
    let mut index = fresh(context, Wanted::Nothing).index;
    for _ in 0..2 {
        let Some(it) = &mut index else { break };
        match ask(&asked, it) {
            Ok(hits) => return Ok(hits),
            Err(error) => {
                let another = after(context, index, &error);
                index = another.and_then(|it| fresh_in(context, Some(it), Wanted::Nothing).index);
            }
        }
    }
    let (memory, _) = Index::open(Place::Memory)?;
    let filled = fresh_in(context, Some(memory), Wanted::Nothing).index;
    let mut memory = filled.ok_or_else(|| Error::from(IndexError::Full))?;
    Ok(ask(&asked, &mut memory)?)
}

struct Asked<'a> {
    context: &'a Context,
    query: &'a Query,
    since: Option<Time>,
    /// Decisions and insights, which no plan holds.
    records: Vec<Record>,
}

fn ask(asked: &Asked<'_>, index: &mut Index) -> Result<Vec<Hit>, IndexError> {
    let texts: Vec<_> = asked.records.iter().map(|it| it.texts.clone()).collect();
    let state = index.snapshot()?.unsearched(&texts)?;
    if !state.missing.is_empty() || state.has_gone {
        fill(asked.context, index, &state.missing)?;
    }
    if !state.records.is_empty() || !state.gone_records.is_empty() {
        index.write_texts(&mut state.records.into_iter(), &state.gone_records)?;
    }
    // What is too old may be among the best, so all are looked at until there are enough.
    let limit = if asked.since.is_some() { usize::MAX } else { asked.query.limit };
    let query = Query { limit, ..asked.query.clone() };
    let snapshot = index.snapshot()?;
    let mut found = Vec::new();
    for it in snapshot.search(&query)? {
        if found.len() >= asked.query.limit {
            break;
        }
        found.extend(shown(asked, &snapshot, &it)?);
    }
    let (mut hits, documents): (Vec<Hit>, Vec<Document>) = found.into_iter().unzip();
    for (hit, snippet) in hits.iter_mut().zip(snippets(&query, &documents)?) {
        hit.snippet = snippet.unwrap_or_else(|| hit.title.clone());
    }
    Ok(hits)
}

fn fill(context: &Context, index: &mut Index, missing: &[Key]) -> Result<(), IndexError> {
    let clock = OnceLock::new();
    let how = How::new(context, &clock);
    let read = |key: &Key| read_whole(how, key).map(|(packed, plan)| Texts::new(&packed, &plan));
    parallel::each(missing, read, |texts| index.write_texts(&mut texts.flatten(), &[]))
}

/// A decision or an insight as it is found.
pub(crate) struct Record {
    pub(crate) texts: Texts,
    pub(crate) document: Document,
    pub(crate) hit: Hit,
    pub(crate) at: Option<Time>,
}

/// Finds what a match is of; none if it has gone since, or is too old. The text comes from the file.
fn shown(
    asked: &Asked<'_>,
    snapshot: &Snapshot<'_>,
    found: &Match,
) -> Result<Option<(Hit, Document)>, IndexError> {
    let is_wanted = |at: Option<Time>| asked.since.is_none_or(|since| at.is_some_and(|at| at >= since));
    if found.key.name.contains('/') {
        let record = asked.records.iter().find(|it| *it.texts.key() == found.key && is_wanted(it.at));
        return Ok(record.map(|it| (Hit { rank: found.rank, ..it.hit.clone() }, it.document.clone())));
    }
    let heads = snapshot.heads_named(&found.key.name)?;
    let Some(head) = heads.iter().find(|it| it.key == found.key) else { return Ok(None) };
    let mut plan = snapshot.plan(head)?;
    let hit = |kind, id: String, title: &str, path: &str| Hit {
        kind,
        id,
        plan: Some(found.key.name.clone()),
        is_archived: found.key.is_archived,
        title: title.to_owned(),
        path: path.to_owned(),
        snippet: String::new(),
        rank: found.rank,
    };
    let context = asked.context;
    let Some(place) = found.place else {
        if !is_wanted(last_activity(&plan).map(|(at, _)| at)) {
            return Ok(None);
        }
        plan.body = text_of(context, &plan.path, plan.etag.as_deref());
        let hit = hit(Kind::Plan, plan.id.to_string(), &plan.title, &plan.path);
        return Ok(Some((hit, Document::of_plan(&plan))));
    };
    let step = plan.steps.get_mut(place).filter(|it| is_wanted(it.last_activity().map(|(at, _)| at)));
    let Some(step) = step else { return Ok(None) };
    step.body = text_of(context, &step.path, step.etag.as_deref());
    Ok(Some((hit(Kind::Step, step.id.to_string(), &step.title, &step.path), Document::of_step(step))))
}

/// The text below the front matter; nothing if the file is not what it was.
fn text_of(context: &Context, path: &str, hash: Option<&str>) -> String {
    let read = context.plans.read(Path::new(path)).ok();
    let bytes = read.map(|it| it.bytes).filter(|it| Some(etag(it).as_str()) == hash);
    bytes.map(|it| body(path, &it)).unwrap_or_default()
}
