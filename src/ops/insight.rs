//! `insight`: records something that was learned, or lists the recorded insights, newest first.

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{codes, shown_path};
use crate::plan::entry::{self, folded};
use crate::plan::insight::{self, Insight, NewInsight};
use crate::plan::read::{Content, Source};
use crate::plan::time::Time;
use crate::plan::words::nearest;
use crate::store::knowledge::{self, Entry};
use crate::store::transaction::{self, ChangeReport};
use crate::text::placeholders::one_line;
use crate::text::typed::quoted;

pub use crate::api::requests::{InsightRequest, InsightsRequest};

pub fn insight(context: &Context, request: &InsightRequest) -> Result<ChangeReport, Error> {
    let title = one_line(&request.title);
    if title.is_empty() || request.text.trim().is_empty() {
        let message = if title.is_empty() { "the title is empty" } else { "the insight is empty" };
        return Err(Error::usage(message, "give the text of the insight, and a title"));
    }
    let (plan, _) = knowledge::about(context, request.plan.as_deref(), None)?;
    let by = request.by.clone().unwrap_or_else(|| context.by.clone());
    let new = NewInsight { title, text: request.text.clone(), by, plan, tags: request.tags.clone() };
    let make = |path: &str, at: Time| {
        let bytes = transaction::edit(path, new.body().as_bytes(), &new.changes(at), insight::KEYS)?;
        let content = Content { bytes: bytes.clone(), etag: String::new(), modified: at };
        let read = insight::read(&Source { path: path.to_owned(), content: Ok(content) });
        if !new.round_trips_as(&read) {
            let hint = "remove the conflict markers";
            return Err(Error::usage("the text would be parsed differently when it is read back", hint));
        }
        Ok((bytes, view(&context.root_name(), &read)))
    };
    let (directory, instead) = (insight::DIRECTORY, insight::INSTEAD);
    let entry = Entry { verb: "insight", directory, title: &new.title, instead, make: &make };
    let mut report = knowledge::create(context, &entry, request.mode)?;
    report.hints.push(format!("planwatch insight {}", quoted(&new.title)));
    Ok(report)
}

#[derive(Debug, Clone)]
pub struct InsightsReport {
    /// Newest first.
    pub insights: Vec<Insight>,
    /// The number of insights beyond the limit.
    pub n_more: usize,
    /// If no insight has the requested title, a similar title.
    pub nearest: Option<String>,
    root: String,
}

impl InsightsReport {
    pub fn to_json(&self) -> Value {
        let insights: Vec<_> = self.insights.iter().map(|it| view(&self.root, it)).collect();
        json!({"insights": insights, "more": self.n_more})
    }

    /// The first insight as a JSON object; null if there is none.
    pub fn first_to_json(&self) -> Value {
        self.insights.first().map(|it| view(&self.root, it)).unwrap_or_default()
    }

    pub fn path(&self, insight: &Insight) -> String {
        shown_path(&self.root, &insight.path)
    }
}

pub fn insights(context: &Context, request: &InsightsRequest) -> Result<InsightsReport, Error> {
    let since = request.since.as_deref().map(|it| knowledge::since(it, context.now)).transpose()?;
    let mut found = knowledge::insights(context);
    let title = request.title.as_deref().map(folded);
    let nearest = title.as_deref().and_then(|title| {
        let titles: Vec<_> = found.iter().map(|it| folded(&it.title)).collect();
        (!titles.iter().any(|it| it == title)).then(|| nearest(title, titles.iter().map(String::as_str)))?
    });
    let (plan, _) = knowledge::wanted(context, request.plan.as_deref(), None)?;
    found.retain(|it| {
        title.as_ref().is_none_or(|title| folded(&it.title) == *title)
            && since.is_none_or(|since| it.at.is_some_and(|at| at >= since))
            && request.tags.iter().all(|tag| it.tags.contains(tag))
            && plan.as_ref().is_none_or(|plan| it.plan.as_ref() == Some(plan))
    });
    found.reverse();
    let n_more = found.len().saturating_sub(request.limit);
    found.truncate(request.limit);
    Ok(InsightsReport { insights: found, n_more, nearest, root: context.root_name() })
}

pub(crate) fn one(context: &Context, name: &str) -> Option<InsightsReport> {
    let wanted = entry::named_in(name, insight::DIRECTORY)?;
    let found = knowledge::insights(context).into_iter().find(|it| it.id == wanted)?;
    Some(InsightsReport { insights: vec![found], n_more: 0, nearest: None, root: context.root_name() })
}

fn view(root: &str, it: &Insight) -> Value {
    json!({
        "id": it.id, "title": it.title, "text": it.text, "by": it.by, "at": it.at.map(Time::with_milliseconds),
        "plan": it.plan, "tags": it.tags, "custom": it.custom, "path": shown_path(root, &it.path),
        "problems": codes(&it.problems),
    })
}
