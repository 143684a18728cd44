//! Decisions and insights in the form in which the full-text index stores them.

use std::collections::BTreeSet;

use crate::api::context::Context;
use crate::index::{Document, Kind, Texts};
use crate::ops::search::Hit;
use crate::ops::search::full_text::Record;
use crate::plan::decision::Decision;
use crate::plan::insight::Insight;
use crate::store::knowledge;

/// The records that `search` covers in addition to the plans.
///
/// If a decision is not superseded, its topic is also the `name` of its document. So a match in that topic ranks higher than
/// a match in the topic of a superseded decision.
pub(super) fn records(context: &Context) -> Vec<Record> {
    let decisions = knowledge::decisions(context);
    let superseded: BTreeSet<_> = decisions.iter().filter_map(|it| it.supersedes.clone()).collect();
    let decision = |it: Decision| {
        let name = if superseded.contains(&it.id) { "" } else { it.topic.as_str() };
        let text = [it.decision.as_str(), it.reasoning.as_deref().unwrap_or_default()].join("\n\n");
        let document = Document::of_record(name, &it.topic, &text, &it.tags.join("\n"));
        (Kind::Decision, document, it.id, it.plan, it.topic, it.path, it.decided_at)
    };
    let insight = |it: Insight| {
        let document = Document::of_record("", &it.title, &it.text, &it.tags.join("\n"));
        (Kind::Insight, document, it.id, it.plan, it.title, it.path, it.at)
    };
    let decisions = decisions.into_iter().map(decision);
    let all = decisions.chain(knowledge::insights(context).into_iter().map(insight));
    let record = |(kind, document, id, plan, title, path, at): (Kind, Document, _, _, _, String, _)| {
        let texts = Texts::of_record(&path, document.clone());
        let (is_archived, snippet, rank) = (false, String::new(), 0.0);
        Record { texts, document, hit: Hit { kind, id, plan, is_archived, title, path, snippet, rank }, at }
    };
    all.map(record).collect()
}
