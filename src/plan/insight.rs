//! Insights. An insight is a file that records something learned, so that it can be found again. Its text has no fixed
//! form.

use serde_json::{Map, Value};

use crate::plan::change::{set_text, set_texts, set_word};
use crate::plan::decision::trimmed;
use crate::plan::entry::{id_of, time_of};
use crate::plan::fields::{Fields, read_file};
use crate::plan::problem::Problem;
use crate::plan::source::Source;
use crate::plan::time::Time;
use crate::text::header_edit::Change;
use crate::text::markdown;
use crate::text::placeholders::one_line;

/// The directory of insights, below the plans directory.
pub const DIRECTORY: &str = "_insights";

/// Replaces the title in the file name if no letter or digit of the title can be written in ASCII.
pub const INSTEAD: &str = "insight";

/// The keys of an insight in the order in which they are written.
pub const KEYS: &[&str] = &["title", "by", "at", "plan", "tags"];

#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    /// The file's name without `.md`.
    pub id: String,
    /// Relative to the plans directory.
    pub path: String,
    pub title: String,
    /// The text without the heading at its beginning, if that heading is the title.
    pub text: String,
    pub by: Option<String>,
    /// From the front matter, else from the file's name.
    pub at: Option<Time>,
    pub plan: Option<String>,
    pub tags: Vec<String>,
    pub custom: Map<String, Value>,
    pub problems: Vec<Problem>,
}

/// Reads an insight. Faults in the file become its `problems`.
pub fn read(source: &Source) -> Insight {
    let (mut insight, problems) = read_file(source, |fields, body| insight_of(&source.path, fields, body));
    insight.problems = problems;
    insight
}

fn insight_of(path: &str, fields: &mut Fields<'_>, body: &str) -> Insight {
    let id = id_of(path).to_owned();
    let outline = markdown::outline(body);
    let heading =
        outline.headings.first().filter(|it| it.level == 1 && body[..it.span.start].trim().is_empty());
    let title = fields.text("title").map(|it| one_line(&it)).filter(|it| !it.is_empty());
    let is_title = |it: &&markdown::Heading| title.as_ref().is_none_or(|title| *title == one_line(&it.text));
    let start = heading.filter(is_title).map_or(0, |it| it.span.end);
    let own = heading.map(|it| it.text.clone()).filter(|it| !it.is_empty());
    Insight {
        text: trimmed(&body[start..]).to_owned(),
        by: fields.text("by"),
        at: fields.time("at").or_else(|| time_of(&id)),
        plan: fields.text("plan"),
        tags: fields.texts("tags").unwrap_or_default(),
        custom: fields.custom(KEYS),
        path: path.to_owned(),
        problems: Vec::new(),
        title: title.or(own).unwrap_or_else(|| id.clone()),
        id,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewInsight {
    /// On one line.
    pub title: String,
    pub text: String,
    pub by: String,
    pub plan: Option<String>,
    pub tags: Vec<String>,
}

impl NewInsight {
    pub fn body(&self) -> String {
        format!("# {}\n\n{}\n", self.title, trimmed(&self.text))
    }

    /// The front matter's keys, in the order in which they are written.
    pub fn changes(&self, at: Time) -> Vec<Change> {
        let mut changes = vec![set_text("title", &self.title), set_text("by", &self.by)];
        changes.push(set_word("at", &at.with_milliseconds()));
        changes.extend(self.plan.as_ref().map(|it| set_text("plan", it)));
        changes.extend(set_texts("tags", &self.tags));
        changes
    }

    /// Returns whether `read`, which was read from the written file, has the title and the text of this insight. A conflict
    /// marker in the text, for example, would make the file unreadable.
    pub fn round_trips_as(&self, read: &Insight) -> bool {
        read.problems.iter().all(|it| !it.code.refuses_writing())
            && read.title == self.title
            && read.text.ends_with(trimmed(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source::Content;
    use crate::text::header_edit;

    #[track_caller]
    fn check(text: &str, title: &str, body: &str) {
        let modified = "2026-11-21".parse().unwrap();
        let content = Content { bytes: text.as_bytes().to_vec(), etag: String::new(), modified };
        let source = Source { path: "_insights/cache.md".to_owned(), content: Ok(content) };
        let read = read(&source);
        assert_eq!((read.title.as_str(), read.text.as_str()), (title, body), "{text}");
    }

    #[test]
    fn files_that_people_write_are_read_as_they_are() {
        check("# The cache is cold\n\nWarm it.\n", "The cache is cold", "Warm it.");
        check("Warm it.\n", "cache", "Warm it.");
        check("---\ntitle: Cold\n---\n# Other\nWarm it.\n", "Cold", "# Other\nWarm it.");
        check("---\ntitle: Cold\n---\n\n# Cold\nWarm it.\n", "Cold", "Warm it.");
        check("Before\n# Cold\n", "cache", "Before\n# Cold");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let new = NewInsight {
            title: "The cache is cold: why".to_owned(),
            text: "\nAfter a restart.\n\n# Details\nx  \n".to_owned(),
            by: "ann".to_owned(),
            plan: Some("auth".to_owned()),
            tags: vec!["cache".to_owned()],
        };
        let at = "2026-11-21T10:15:00Z".parse().unwrap();
        let bytes = header_edit::edit(new.body().as_bytes(), &new.changes(at), KEYS).unwrap();
        let content = Content { bytes, etag: String::new(), modified: at };
        let read = read(&Source { path: "_insights/x.md".to_owned(), content: Ok(content) });
        assert!(new.round_trips_as(&read), "{read:?}");
        assert_eq!(
            (read.problems.len(), read.at, read.tags.as_slice()),
            (0, Some(at), &["cache".to_owned()][..])
        );
    }
}
