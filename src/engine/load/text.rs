//! The full text, brought up to date when it is asked: texts of plans that changed are read again for it alone.

use std::path::Path;
use std::sync::OnceLock;

use super::files::{How, read_whole};
use super::refresh::{Wanted, after, fresh, fresh_in};
use super::{etag, parallel};
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::search::Hit;
use crate::index::{Document, Index, IndexError, Key, Kind, Match, Place, Query, Snapshot, Texts, snippets};
use crate::plan::read::body;

/// Returns the best hits among the files as they are now, best first.
pub(crate) fn search(context: &Context, query: &Query) -> Result<Vec<Hit>, Error> {
    let mut index = fresh(context, Wanted::Nothing).index;
    for _ in 0..2 {
        let Some(it) = &mut index else { break };
        match ask(context, it, query) {
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
    Ok(ask(context, &mut memory, query)?)
}

fn ask(context: &Context, index: &mut Index, query: &Query) -> Result<Vec<Hit>, IndexError> {
    let state = index.snapshot()?.unsearched()?;
    if !state.missing.is_empty() || state.has_gone {
        fill(context, index, &state.missing)?;
    }
    let snapshot = index.snapshot()?;
    let mut found = Vec::new();
    for it in snapshot.search(query)? {
        found.extend(shown(context, &snapshot, it)?);
    }
    let (mut hits, documents): (Vec<Hit>, Vec<Document>) = found.into_iter().unzip();
    for (hit, snippet) in hits.iter_mut().zip(snippets(query, &documents)?) {
        hit.snippet = snippet.unwrap_or_else(|| hit.title.clone());
    }
    Ok(hits)
}

fn fill(context: &Context, index: &mut Index, missing: &[Key]) -> Result<(), IndexError> {
    let clock = OnceLock::new();
    let how = How::new(context, &clock);
    let read = |key: &Key| read_whole(how, key).map(|(packed, plan)| Texts::new(&packed, &plan));
    parallel::each(missing, read, |texts| index.write_texts(&mut texts.flatten()))
}

/// Finds what a match is of; none if it has gone since. The text comes from the file.
fn shown(
    context: &Context,
    snapshot: &Snapshot<'_>,
    found: Match,
) -> Result<Option<(Hit, Document)>, IndexError> {
    let heads = snapshot.heads_named(&found.key.name)?;
    let Some(head) = heads.iter().find(|it| it.key == found.key) else { return Ok(None) };
    let mut plan = snapshot.plan(head)?;
    let hit = |kind, id: String, title: &str| Hit {
        kind,
        id,
        plan: found.key.name.clone(),
        is_archived: found.key.is_archived,
        title: title.to_owned(),
        snippet: String::new(),
        rank: found.rank,
    };
    let Some(place) = found.place else {
        plan.body = text_of(context, &plan.path, plan.etag.as_deref());
        return Ok(Some((hit(Kind::Plan, plan.id.to_string(), &plan.title), Document::of_plan(&plan))));
    };
    let Some(step) = plan.steps.get_mut(place) else { return Ok(None) };
    step.body = text_of(context, &step.path, step.etag.as_deref());
    Ok(Some((hit(Kind::Step, step.id.to_string(), &step.title), Document::of_step(step))))
}

/// The text below the front matter; nothing if the file is not what it was.
fn text_of(context: &Context, path: &str, hash: Option<&str>) -> String {
    let read = context.plans.read(Path::new(path)).ok();
    let bytes = read.map(|it| it.bytes).filter(|it| Some(etag(it).as_str()) == hash);
    bytes.map(|it| body(path, &it)).unwrap_or_default()
}
