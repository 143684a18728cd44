//! A decision: one file that is written once, with what was decided and why. Decisions are ordered by their file names.

use serde_json::{Map, Value};

use crate::plan::change::{set, set_text, set_texts, set_word};
use crate::plan::entry::{agrees, folded, id_of, time_of};
use crate::plan::fields::{Fields, read_file};
use crate::plan::problem::{Code, Problem};
use crate::plan::source::Source;
use crate::plan::time::Time;
use crate::text::header_edit::{Change, NewValue};
use crate::text::markdown;
use crate::text::placeholders::one_line;

/// The directory of decisions, below the plans directory.
pub const DIRECTORY: &str = "_decisions";

/// Replaces the topic in the file name if no letter or digit of the topic can be written in ASCII.
pub const INSTEAD: &str = "decision";

/// The keys of a decision in the order in which they are written.
pub const KEYS: &[&str] = &["topic", "decided_at", "by", "plan", "step", "supersedes", "tags", "metadata"];

/// The maximum number of characters in a topic.
const MAX_TOPIC: usize = 255;

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The file's name without `.md`.
    pub id: String,
    /// Relative to the plans directory.
    pub path: String,
    /// The key `topic`; else the heading, else the id. If the key is in lower case, as planwatch writes it, and the
    /// heading is the same topic, the heading's spelling is used.
    pub topic: String,
    /// The text below the heading `Decision`, or else below the title; it ends at the heading `Reasoning`.
    pub decision: String,
    pub reasoning: Option<String>,
    pub by: Option<String>,
    /// From the front matter, else from the file's name.
    pub decided_at: Option<Time>,
    pub plan: Option<String>,
    pub step: Option<String>,
    /// The id of the decision that this one replaces.
    pub supersedes: Option<String>,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    pub custom: Map<String, Value>,
    pub problems: Vec<Problem>,
}

/// Reads a decision. Faults in the file become problems of the decision.
pub fn read(source: &Source) -> Decision {
    let (mut decision, problems) = read_file(source, |fields, body| decision_of(&source.path, fields, body));
    let is_readable = problems.iter().all(|it| !it.code.refuses_writing());
    decision.problems.extend(problems);
    if is_readable {
        report_rewritten(&mut decision);
    }
    decision
}

fn decision_of(path: &str, fields: &mut Fields<'_>, body: &str) -> Decision {
    let id = id_of(path).to_owned();
    let sections = sections(body);
    let topic = fields.text("topic").map(|it| one_line(&it));
    if let (Some(topic), Some(value)) = (&topic, fields.get("topic"))
        && !is_topic(topic)
    {
        fields.wrong_type(value, "the topic is empty or too long".to_owned(), TOPIC_HINT);
    }
    // If the key `topic` has capitals, a person wrote it, and its spelling is used.
    let is_folded = topic.as_ref().is_some_and(|it| *it == it.to_lowercase());
    let heading = sections.title.as_deref().map(one_line);
    let spelled = heading.filter(|it| is_folded && topic.as_deref().map(folded) == Some(folded(it)));
    Decision {
        topic: spelled.or(topic).or(sections.title).unwrap_or_else(|| id.clone()),
        decision: sections.decision,
        reasoning: sections.reasoning,
        by: fields.text("by"),
        decided_at: fields.time("decided_at").or_else(|| time_of(&id)),
        plan: fields.text("plan"),
        step: fields.text("step"),
        supersedes: fields.text("supersedes").map(|it| id_of(&it).to_owned()),
        tags: fields.texts("tags").unwrap_or_default(),
        metadata: fields.mapping("metadata"),
        custom: fields.custom(KEYS),
        path: path.to_owned(),
        problems: Vec::new(),
        id,
    }
}

const TOPIC_HINT: &str = "a topic has 1 to 255 characters";

fn is_topic(topic: &str) -> bool {
    (1..=MAX_TOPIC).contains(&topic.chars().count())
}

/// Reports a decision whose topic or time no longer matches its file's name. The name was made from the original topic and
/// time.
///
/// A change of the text alone cannot be detected here; version control shows it.
fn report_rewritten(decision: &mut Decision) {
    let hint = "undo the change, and record another decision with --supersedes";
    let mut report = |what: &str| {
        let message = format!("the decision was rewritten: its {what} differs from its file's name");
        decision.problems.push(Problem::of_file(&decision.path, Code::DecisionRewritten, message, hint));
    };
    if agrees(&decision.id, &decision.topic, INSTEAD) == Some(false) {
        report("topic");
    }
    let named = time_of(&decision.id);
    if named.is_some() && named != decision.decided_at.map(Time::whole_milliseconds) {
        report("time");
    }
}

struct Sections {
    title: Option<String>,
    decision: String,
    reasoning: Option<String>,
}

/// Splits a text at the headings `Decision` and `Reasoning`; other headings belong to the section around them.
fn sections(body: &str) -> Sections {
    let outline = markdown::outline(body);
    let title = outline.headings.iter().find(|it| it.level == 1);
    let named = |name: &str, from: usize| {
        let is_it = |it: &&markdown::Heading| {
            it.level == 2 && it.span.start >= from && it.text.eq_ignore_ascii_case(name)
        };
        outline.headings.iter().find(is_it).map(|it| it.span.clone())
    };
    let begin = named("Decision", 0).map(|it| it.end);
    let reasoning = named("Reasoning", begin.unwrap_or(0));
    let end = reasoning.as_ref().map_or(body.len(), |it| it.start);
    let begin = begin.unwrap_or_else(|| title.map_or(0, |it| it.span.end).min(end));
    let text = |text: Option<&str>| trimmed(text.unwrap_or_default()).to_owned();
    Sections {
        title: title.map(|it| it.text.clone()).filter(|it| !it.is_empty()),
        decision: text(body.get(begin..end)),
        reasoning: reasoning.map(|it| text(body.get(it.end..))).filter(|it| !it.is_empty()),
    }
}

/// Removes empty lines at the start of a text, and all white space at its end.
pub(crate) fn trimmed(text: &str) -> &str {
    let text = text.trim_end();
    let mut start = 0;
    for line in text.split_inclusive('\n').take_while(|it| it.trim().is_empty()) {
        start += line.len();
    }
    &text[start..]
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewDecision {
    pub topic: String,
    pub text: String,
    pub reasoning: Option<String>,
    pub by: String,
    pub plan: Option<String>,
    pub step: Option<String>,
    /// The file name of the decision that this one replaces.
    pub supersedes: Option<String>,
    pub tags: Vec<String>,
    /// A YAML mapping as it was typed.
    pub metadata: Option<String>,
}

impl NewDecision {
    /// Normalizes a topic to one line, or returns why it is invalid. Both spellings that the file will contain are checked:
    /// the heading has the case of the topic, and the key is in lower case.
    pub fn check_topic(topic: &str) -> Result<String, &'static str> {
        let topic = one_line(topic);
        if is_topic(&topic) && is_topic(&topic.to_lowercase()) { Ok(topic) } else { Err(TOPIC_HINT) }
    }

    pub fn body(&self) -> String {
        let (topic, text) = (&self.topic, trimmed(&self.text));
        let mut body = format!("# {topic}\n\n## Decision\n\n{text}\n");
        if let Some(reasoning) = self.reasoning() {
            body.push_str("\n## Reasoning\n\n");
            body.push_str(reasoning);
            body.push('\n');
        }
        body
    }

    fn reasoning(&self) -> Option<&str> {
        self.reasoning.as_deref().map(trimmed).filter(|it| !it.is_empty())
    }

    /// The front matter's keys, in the order in which they are written.
    pub fn changes(&self, decided_at: Time) -> Vec<Change> {
        let text = |key: &str, value: &Option<String>| value.as_ref().map(|it| set_text(key, it));
        let mut changes = vec![set_text("topic", &self.topic.to_lowercase())];
        changes.push(set_word("decided_at", &decided_at.with_milliseconds()));
        changes.push(set_text("by", &self.by));
        changes.extend(text("plan", &self.plan));
        changes.extend(text("step", &self.step));
        changes.extend(text("supersedes", &self.supersedes));
        changes.extend(set_texts("tags", &self.tags));
        changes.extend(self.metadata.as_ref().map(|it| set("metadata", NewValue::Yaml(it.clone()))));
        changes
    }

    /// Returns whether `read`, which was read from the file of this decision, has the same topic, text and reasoning. A
    /// heading in the text, for example, could end the section of the text too early.
    pub fn round_trips_as(&self, read: &Decision) -> bool {
        read.problems.iter().all(|it| !it.code.refuses_writing())
            && folded(&read.topic) == folded(&self.topic)
            && read.decision == trimmed(&self.text)
            && read.reasoning.as_deref() == self.reasoning()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::entry;
    use crate::plan::source::Content;
    use crate::text::header_edit;

    fn source(path: &str, text: &str) -> Source {
        let modified = "2026-11-21".parse().unwrap();
        let content = Content { bytes: text.as_bytes().to_vec(), etag: String::new(), modified };
        Source { path: path.to_owned(), content: Ok(content) }
    }

    fn new(topic: &str, text: &str, reasoning: Option<&str>) -> NewDecision {
        NewDecision {
            topic: topic.to_owned(),
            text: text.to_owned(),
            reasoning: reasoning.map(str::to_owned),
            by: "ann".to_owned(),
            plan: None,
            step: None,
            supersedes: None,
            tags: Vec::new(),
            metadata: None,
        }
    }

    fn written(new: &NewDecision) -> Decision {
        let at = "2026-11-21T09:14:03.25Z".parse().unwrap();
        let bytes = header_edit::edit(new.body().as_bytes(), &new.changes(at), KEYS).unwrap();
        let path = format!("{DIRECTORY}/{}.md", entry::name(at, &new.topic, INSTEAD));
        read(&source(&path, &String::from_utf8(bytes).unwrap()))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut new = new("authentication", "Guardian\n\n### How\nBy token.", Some("Pow is\n\n# old"));
        new.tags = vec!["web".to_owned()];
        new.supersedes = Some("20261120T000000.000Z-authentication.md".to_owned());
        new.metadata = Some("{alternatives: [Pow]}".to_owned());
        let read = written(&new);
        assert!(new.round_trips_as(&read), "{read:?}");
        assert_eq!(read.problems, []);
        assert_eq!(read.supersedes.as_deref(), Some("20261120T000000.000Z-authentication"));
        assert_eq!(read.metadata["alternatives"][0], "Pow");
        assert_eq!(read.decided_at.unwrap().with_milliseconds(), "2026-11-21T09:14:03.250Z");
    }

    #[test]
    fn a_text_that_ends_its_own_section_is_seen() {
        for text in ["a\n\n## Reasoning\n\nb", "```\nopen", "<<<<<<< ours\n=======\n>>>>>>> theirs"] {
            let new = new("x", text, Some("because"));
            assert!(!new.round_trips_as(&written(&new)), "{text}");
        }
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: (&str, &str, Option<&str>), codes: &[&str]) {
        let read = read(&source(&format!("{DIRECTORY}/{name}.md"), text));
        let is = (read.topic.as_str(), read.decision.as_str(), read.reasoning.as_deref());
        assert_eq!(is, expected, "{text}");
        let found: Vec<_> = read.problems.iter().map(|it| it.code.text()).collect();
        assert_eq!(found, codes, "{text}");
    }

    #[test]
    fn files_that_people_write_are_read_as_they_are() {
        check("adr-1", "# Queue\n\nUse NATS.\n", ("Queue", "Use NATS.", None), &[]);
        check("adr-2", "Use NATS.\n", ("adr-2", "Use NATS.", None), &[]);
        check(
            "adr-3",
            "---\ntopic:  Queue \n---\n# Queue\n\n## Context\nx\n\n## Decision\nUse NATS.\n\n## Reasoning\nFast.\n",
            ("Queue", "Use NATS.", Some("Fast.")),
            &[],
        );
        check("adr-4", "## Reasoning\nFast.\n", ("adr-4", "", Some("Fast.")), &[]);
        check("adr-5", "---\ntopic: \"\"\n---\nx\n", ("", "x", None), &["wrong-type"]);
        check("adr-6", "---\ntopic: [a\n---\nx\n", ("adr-6", "x", None), &["front-matter-invalid"]);
        check("adr-7", "", ("adr-7", "", None), &[]);
    }

    #[test]
    fn another_topic_or_time_than_the_names_is_a_rewrite() {
        let name = "20261121T091403.250Z-queue";
        check(name, "---\ntopic: QUEUE\n---\nx\n", ("QUEUE", "x", None), &[]);
        check(name, "---\ntopic: cache\n---\nx\n", ("cache", "x", None), &["decision-rewritten"]);
        let other = "---\ntopic: queue\ndecided_at: 2026-11-22\n---\nx\n";
        check(name, other, ("queue", "x", None), &["decision-rewritten"]);
    }

    proptest! {
        /// A text without code fences, conflict markers and a heading `Reasoning` is read back completely.
        #[test]
        fn texts_are_read_back_as_they_were_given(topic in "\\PC{1,40}", text in "[a-zé#*: \n=-]{0,80}", why in "[a-z# \n]{0,40}") {
            let Ok(topic) = NewDecision::check_topic(&topic) else { return Ok(()) };
            let new = new(&topic, &text, Some(&why));
            let read = written(&new);
            prop_assert!(new.round_trips_as(&read), "{read:?}");
            prop_assert_eq!(read.problems, []);
        }
    }
}
