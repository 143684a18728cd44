//! Imports the milestones and decisions of a store of Backlog.md.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::{plain, time};
use crate::plan::import::ImportedDecision;
use crate::text::front_matter;
use crate::text::markdown::{self, Outline};
use crate::text::placeholders::one_line;

/// A milestone. Its title becomes the phase of its tasks, or a tag of the tasks that have a parent task.
pub(super) struct Milestone {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) keys: Map<String, Value>,
    text: String,
}

impl Milestone {
    pub(super) fn read(keys: &Map<String, Value>, text: &str) -> Option<Self> {
        let id = keys.get("id").map(plain)?;
        let title = keys.get("title").map(plain).unwrap_or_else(|| id.clone());
        let body = &text[front_matter::split(text.as_bytes()).body_start()..];
        Some(Self { id, title: one_line(&title), keys: keys.clone(), text: body.trim().to_owned() })
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        [&self.id, &self.title].iter().any(|it| it.eq_ignore_ascii_case(name.trim()))
    }

    /// The milestone's section in the plan's text. In the milestone's text, headings that begin with `#` are lowered by two
    /// levels, but not below level 6.
    pub(super) fn section(&self) -> String {
        let outline = markdown::outline(&self.text);
        let text = lowered(&self.text, &outline, 0..self.text.len(), |level| (6 - level).min(2));
        format!("\n### {}\n\n{}", self.title, text).trim_end().to_owned() + "\n"
    }
}

/// Maps a decision. The section `Decision` becomes the text of the decision, and all other text becomes the reasoning. If
/// there is no such section, or it is empty, the whole body becomes the text of the decision.
///
/// `None`: the text of the decision is empty, or there is no title.
pub(super) fn decision(path: &str, keys: &Map<String, Value>, text: &str) -> Option<ImportedDecision> {
    let body = text[front_matter::split(text.as_bytes()).body_start()..].trim();
    // In planwatch's decisions, the sections have headings of level 2, so the headings in the reasoning get level 3 or
    // deeper.
    let up_to_3 = |level: u8| 3_u8.saturating_sub(level);
    let outline = markdown::outline(body);
    let title = keys.get("title").map(plain).or_else(|| outline.title().map(str::to_owned))?;
    let section = outline.section(|it| it.trim_end_matches(':').eq_ignore_ascii_case("decision"));
    let heading =
        section.as_ref().and_then(|it| outline.headings.iter().find(|own| own.span.end == it.start));
    let (text, reasoning) = match (section, heading) {
        (Some(section), Some(heading)) if !body[section.clone()].trim().is_empty() => {
            let before = lowered(body, &outline, 0..heading.span.start, up_to_3);
            let after = lowered(body, &outline, section.end..body.len(), up_to_3);
            (body[section].to_owned(), [before.trim(), after.trim()].join("\n\n").trim().to_owned())
        }
        _ => (body.to_owned(), String::new()),
    };
    if text.trim().is_empty() {
        return None;
    }
    let status = keys.get("status").map(plain).filter(|it| !it.trim().is_empty());
    let at = ["date", "decided_at", "created_date"].iter().find_map(|it| time(keys.get(*it)));
    Some(ImportedDecision {
        path: path.to_owned(),
        topic: one_line(&title),
        text: text.trim().to_owned(),
        reasoning: Some(reasoning).filter(|it| !it.is_empty()),
        by: keys.get("author").or_else(|| keys.get("deciders")).map(plain),
        at,
        tags: status.into_iter().collect(),
        metadata: json!({"backlog": keys}).as_object().cloned().unwrap_or_default(),
    })
}

/// Returns a range of the body with lowered headings. A heading of level `n` that begins with `#` is lowered by
/// `levels(n)` levels.
fn lowered(body: &str, outline: &Outline, range: Range<usize>, levels: impl Fn(u8) -> u8) -> String {
    let mut text = String::new();
    let mut from = range.start;
    for heading in outline.headings.iter().filter(|it| range.contains(&it.span.start)) {
        let is_marked = body[heading.span.start..].starts_with('#');
        text.push_str(&body[from..heading.span.start]);
        text.push_str(if is_marked { &"##"[..usize::from(levels(heading.level))] } else { "" });
        from = heading.span.start;
    }
    text + &body[from..range.end]
}
