//! Queries the full-text index. Only a query updates it: before the search, the texts of changed plans are read again.

use super::fill::{body_of, fill, fill_while_read, scanned};

use crate::api::context::{Context, Notice};
use crate::api::error::Error;
use crate::api::views::last_activity;
use crate::index::{
    Document, FullText, Generation, Index, IndexError, Kind, Match, Place, Query, Snapshot, Texts,
    TextsSnapshot, snippets,
};
use crate::ops::search::{Hit, records};
use crate::plan::time::Time;
use crate::store::load::refresh::{after, attested_commit, is_commit, open_index, opened};
use crate::store::load::scan::reader;
use crate::store::load::{IndexCheck, Refresh, Wanted};

/// The maximum number of tries of a search in the stored indexes. A try fails if another process writes into them meanwhile.
const MOST_ASKED: usize = 8;

/// Searches the files as they are now. Returns the best hits that are not older than `since`, best first.
pub(crate) fn search(context: &Context, query: &Query, since: Option<Time>) -> Result<Vec<Hit>, Error> {
    let asked = FullTextSearch { context, query, since, records: records::records(context) };
    let mut index = open_index(context);
    let dir = index.as_ref().and_then(|_| context.plans.index_dir());
    let told = index.as_ref().and_then(|_| attested_commit(context));
    let mut texts = dir.as_deref().and_then(|it| opened(context, FullText::open(Place::Directory(it))));
    if let (Some(index), Some(texts), Some(_)) = (&mut index, &mut texts, told)
        && let Ok(hits) = ask(&asked, (index, told), texts)
    {
        return Ok(hits);
    }
    // If an error occurred above, it occurs again below, and is handled there.
    let mut found = match (index, &mut texts) {
        (Some(index), Some(texts)) if told.is_none() => {
            fill_while_read(context, index, texts, &asked.texts())
        }
        (index, _) => Refresh::new(Wanted::Nothing, IndexCheck::AttestedBy(told)).run_in(context, index),
    };
    for _ in 0..MOST_ASKED {
        let (Some(index), Some(kept)) = (&mut found.index, &mut texts) else { break };
        match ask(&asked, (index, found.commit), kept) {
            Ok(hits) => return Ok(hits),
            // The index is unchanged, so only the full-text index can have changed.
            Err(Trouble::Unknown) if index.snapshot().is_ok_and(|it| is_commit(&it, found.commit)) => {}
            Err(Trouble::Unknown) => found = scanned(context, found.index),
            Err(Trouble::Texts(error)) => texts = texts_after(context, texts, &error),
            Err(Trouble::Index(error)) => {
                let Some(another) = after(context, found.index, &error) else { break };
                found = scanned(context, Some(another));
            }
        }
    }
    in_memory(&asked)
}

/// Searches without the stored indexes: fills new ones in memory.
fn in_memory(asked: &FullTextSearch<'_>) -> Result<Vec<Hit>, Error> {
    let (memory, _) = Index::open(Place::Memory)?;
    let (mut texts, _) = FullText::open(Place::Memory)?;
    let filled = fill_while_read(asked.context, memory, &mut texts, &asked.texts());
    let mut memory = filled.index.ok_or_else(|| Error::from(IndexError::Full))?;
    ask(asked, (&mut memory, filled.commit), &mut texts).map_err(|it| match it {
        Trouble::Index(error) | Trouble::Texts(error) => Error::from(error),
        Trouble::Unknown => Error::from(IndexError::Busy),
    })
}

/// Reports what is wrong with a full-text index, and replaces it with a new one if it is damaged.
fn texts_after(context: &Context, texts: Option<FullText>, error: &IndexError) -> Option<FullText> {
    let (mut texts, why) = (texts?, error.to_string());
    let is_damaged = matches!(error, IndexError::Damaged { .. });
    if is_damaged && texts.reopen().is_ok() {
        (context.on_notice)(Notice::IndexRebuilt { why });
        return Some(texts);
    }
    (context.on_notice)(Notice::IndexInMemory { why });
    None
}

struct FullTextSearch<'a> {
    context: &'a Context,
    query: &'a Query,
    since: Option<Time>,
    /// Decisions and insights. They are not part of a plan, so the index does not contain them.
    records: Vec<Record>,
}

/// Why a search failed: an error of the index or of the full-text index, or a concurrent write.
pub(crate) enum Trouble {
    Index(IndexError),
    Texts(IndexError),
    /// Another process wrote into one of the two indexes meanwhile, perhaps from older versions of files.
    Unknown,
}

/// Updates the full-text index from the index, and searches. If the full-text index was filled from the current
/// [`Generation`] of the index, the plans of the two indexes are not compared.
///
/// `commit` is the generation of the index that matches the current files. The search fails if the index has another one.
fn ask(
    asked: &FullTextSearch<'_>,
    (index, commit): (&mut Index, Option<Generation>),
    texts: &mut FullText,
) -> Result<Vec<Hit>, Trouble> {
    let snapshot = index.snapshot().map_err(Trouble::Index)?;
    if !is_commit(&snapshot, commit) {
        return Err(Trouble::Unknown);
    }
    let reader = reader(asked.context);
    let origin = snapshot.origin(reader).map_err(Trouble::Index)?;
    let records = asked.texts();
    let look = texts.look().map_err(Trouble::Texts)?;
    let is_filled = match &origin {
        Some(it) => look.is_filled_from(it).map_err(Trouble::Texts)?,
        None => false,
    };
    let heads = if is_filled { None } else { Some(snapshot.heads().map_err(Trouble::Index)?) };
    if heads.iter().flatten().any(|it| it.reader() != reader) {
        return Err(Trouble::Unknown);
    }
    let state = look.unsearched(heads.as_deref(), &records).map_err(Trouble::Texts)?;
    if is_filled && state.is_nothing() {
        return found(asked, &snapshot, &look);
    }
    let seen = look.seen().map_err(Trouble::Texts)?;
    drop(look);
    fill(asked.context, &snapshot, texts, &state, seen, origin.as_ref())?;
    let look = texts.look().map_err(Trouble::Texts)?;
    found(asked, &snapshot, &look)
}

/// Searches, and returns the best matches as hits with snippets.
fn found(
    asked: &FullTextSearch<'_>,
    snapshot: &Snapshot<'_>,
    look: &TextsSnapshot<'_>,
) -> Result<Vec<Hit>, Trouble> {
    // With `since`, some of the best matches may be too old. So matches are read until there are enough hits.
    let limit = if asked.since.is_some() { usize::MAX } else { asked.query.limit };
    let query = Query { limit, ..asked.query.clone() };
    let matches = look.search(&query).map_err(Trouble::Texts)?;
    let mut found = Vec::new();
    for it in matches {
        if found.len() >= asked.query.limit {
            break;
        }
        found.extend(shown(asked, snapshot, &it).map_err(Trouble::Index)?);
    }
    let (mut hits, documents): (Vec<_>, Vec<_>) =
        found.into_iter().map(|it| ((it.hit, it.is_whole), it.document)).unzip();
    let snippets = snippets(&query, &documents).map_err(Trouble::Texts)?;
    if hits.iter().zip(&snippets).any(|((_, is_whole), snippet)| *is_whole && snippet.is_none()) {
        look.doubt().map_err(Trouble::Texts)?;
    }
    for ((hit, _), snippet) in hits.iter_mut().zip(snippets) {
        hit.snippet = snippet.unwrap_or_else(|| hit.title.clone());
    }
    Ok(hits.into_iter().map(|(hit, _)| hit).collect())
}

impl FullTextSearch<'_> {
    fn texts(&self) -> Vec<Texts> {
        self.records.iter().map(|it| it.texts.clone()).collect()
    }
}
pub(crate) struct Record {
    pub(crate) texts: Texts,
    pub(crate) document: Document,
    pub(crate) hit: Hit,
    pub(crate) at: Option<Time>,
}

struct Shown {
    hit: Hit,
    document: Document,
    /// Whether the document contains the text that was indexed. If the file has changed since, or cannot be read, the
    /// document has no text.
    is_whole: bool,
}

/// Finds the plan, step or record of a match. `None`: it no longer exists, or is too old. The text of a plan or step is read
/// from its file; if the file has changed, the text is left empty.
fn shown(
    asked: &FullTextSearch<'_>,
    snapshot: &Snapshot<'_>,
    found: &Match,
) -> Result<Option<Shown>, IndexError> {
    let is_wanted = |at: Option<Time>| asked.since.is_none_or(|since| at.is_some_and(|at| at >= since));
    if found.key.name.contains('/') {
        let record = asked.records.iter().find(|it| *it.texts.key() == found.key && is_wanted(it.at));
        return Ok(record.map(|it| Shown {
            hit: Hit { rank: found.rank, ..it.hit.clone() },
            document: it.document.clone(),
            is_whole: true,
        }));
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
        let body = body_of(context, &plan.path, plan.etag.as_deref());
        let is_whole = body.is_some();
        plan.body = body.unwrap_or_default();
        let hit = hit(Kind::Plan, plan.id.to_string(), &plan.title, &plan.path);
        return Ok(Some(Shown { hit, document: Document::of_plan(&plan), is_whole }));
    };
    let step = plan.steps.get_mut(place).filter(|it| is_wanted(it.last_activity().map(|(at, _)| at)));
    let Some(step) = step else { return Ok(None) };
    let body = body_of(context, &step.path, step.etag.as_deref());
    let is_whole = body.is_some();
    step.body = body.unwrap_or_default();
    let hit = hit(Kind::Step, step.id.to_string(), &step.title, &step.path);
    Ok(Some(Shown { hit, document: Document::of_step(step), is_whole }))
}
