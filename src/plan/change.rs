//! Changes to plan and step files as edits of their front matter, and the text of new files.

use crate::plan::id::StepId;
use crate::plan::records::{Attempt, NoteType, Priority};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Status};
use crate::text::header_edit::{Change, NewValue};
use crate::text::markdown::heading;
use crate::text::placeholders::one_line;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttempt {
    pub at: Time,
    pub by: String,
    pub outcome: String,
    pub notes: Option<String>,
    /// The claim that the attempt ends or belongs to.
    pub claim: Option<EndedClaim>,
}

/// The part of an attempt that describes its claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedClaim {
    pub id: String,
    pub seconds: Option<i64>,
    /// The exit code of a run's process, as a shell reports it.
    pub exit_code: Option<i32>,
    /// The cost of the claim's run in US dollars, as the agent wrote it.
    pub cost: Option<String>,
    /// The file with the output of a run, relative to the plans directory.
    pub log: Option<String>,
}

impl EndedClaim {
    fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![text("claim", &self.id)];
        entries.extend(self.seconds.map(|it| word("seconds", &it.max(0).to_string())));
        entries.extend(self.exit_code.map(|it| word("exit_code", &it.to_string())));
        entries.extend(self.cost.iter().map(|it| word("cost", it)));
        entries.extend(self.log.iter().map(|it| text("log", it)));
        entries
    }
}

impl NewAttempt {
    /// An attempt without notes that ends no claim.
    pub fn new(at: Time, by: &str, outcome: &str) -> Self {
        Self { at, by: by.to_owned(), outcome: outcome.to_owned(), notes: None, claim: None }
    }

    pub fn change(&self) -> Change {
        self.change_with(None)
    }

    /// Like [`Self::change`], for an attempt that is recorded later than it was made. `at` is the time of the recording.
    pub fn change_recorded_at(&self, at: Time) -> Change {
        self.change_with(Some(word(Attempt::RECORDED_AT, &at.to_string())))
    }

    fn change_with(&self, more: Option<Entry>) -> Change {
        let mut item =
            vec![word("at", &self.at.to_string()), text("by", &self.by), text("outcome", &self.outcome)];
        item.extend(self.notes.iter().map(|it| text("notes", it)));
        item.extend(self.claim.iter().flat_map(EndedClaim::entries));
        item.extend(more);
        append("attempts", item)
    }
}

/// A person's confirmation of a step or a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConfirmation {
    pub phase: Option<String>,
    pub by: String,
    pub at: Time,
    pub note: Option<String>,
}

impl NewConfirmation {
    fn entries(&self) -> NewValue {
        let mut entries: Vec<_> = self.phase.iter().map(|it| text("phase", it)).collect();
        entries.push(text("by", &self.by));
        entries.push(word("at", &self.at.to_string()));
        entries.extend(self.note.iter().map(|it| text("note", it)));
        NewValue::Map(entries)
    }

    pub fn of_step(&self) -> Change {
        set("confirmed", self.entries())
    }

    pub fn of_phase(&self) -> Change {
        Change::Append { key: "confirmations".to_owned(), item: self.entries() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNote {
    pub at: Time,
    pub kind: NoteType,
    pub by: String,
    pub text: String,
}

impl NewNote {
    pub fn change(&self) -> Change {
        let (at, kind) = (word("at", &self.at.to_string()), word("type", self.kind.word()));
        append("notes", vec![at, kind, text("by", &self.by), text("text", &self.text)])
    }
}

pub fn set_status(status: impl Status) -> Change {
    set_word("status", status.word())
}

/// The edit that sets a step's claim, on one line.
pub fn set_claim(id: &str, by: &str, at: Time) -> Change {
    let entries = vec![text("id", id), text("by", by), word("at", &at.to_string())];
    set("claim", NewValue::FlowMap(entries))
}

pub(crate) fn set(key: &str, value: NewValue) -> Change {
    Change::Set { key: key.to_owned(), value }
}

fn append(key: &str, item: Vec<Entry>) -> Change {
    Change::Append { key: key.to_owned(), item: NewValue::Map(item) }
}

type Entry = (String, NewValue);

fn word(key: &str, word: &str) -> Entry {
    (key.to_owned(), NewValue::Word(word.to_owned()))
}

fn text(key: &str, text: &str) -> Entry {
    (key.to_owned(), NewValue::Text(text.to_owned()))
}

pub fn set_word(key: &str, word: &str) -> Change {
    set(key, NewValue::Word(word.to_owned()))
}

pub fn set_text(key: &str, text: &str) -> Change {
    set(key, NewValue::Text(text.to_owned()))
}

pub fn remove(key: &str) -> Change {
    Change::Remove { key: key.to_owned() }
}

pub(crate) fn set_texts(key: &str, texts: &[String]) -> Option<Change> {
    let items = texts.iter().map(|it| NewValue::Text(it.clone())).collect();
    (!texts.is_empty()).then(|| set(key, NewValue::List(items)))
}

/// A dependency as an item of `depends`: only the number if the step is in the same plan.
pub fn dependency_item(plan: &crate::plan::id::PlanId, step: &StepId) -> NewValue {
    if step.plan == *plan {
        NewValue::Word(step.number.to_string())
    } else {
        NewValue::Text(step.to_string())
    }
}

#[derive(Debug, Clone, Default)]
pub struct NewPlan {
    pub title: String,
    pub is_draft: bool,
    pub is_program: bool,
    pub is_sequential: bool,
    pub description: Option<String>,
    pub program: Option<String>,
    pub category: Option<String>,
    pub priority: Option<Priority>,
    pub tags: Vec<String>,
    pub goals: Vec<String>,
    pub success_criteria: Vec<String>,
}

impl NewPlan {
    pub fn body(&self) -> String {
        // A line break in the title would end the heading.
        let heading = heading(1, &one_line(&self.title));
        match &self.description {
            Some(text) if !text.is_empty() => format!("{heading}\n\n{}\n", text.trim_end()),
            _ => format!("{heading}\n"),
        }
    }

    /// The front matter's keys, in the order in which they are written.
    pub fn changes(&self, created_at: Time) -> Vec<Change> {
        let status = if self.is_draft { PlanStatus::Draft } else { PlanStatus::Active };
        let mut changes = vec![set_status(status)];
        changes.extend(self.is_program.then(|| set_word("kind", "program")));
        changes.extend(self.program.as_ref().map(|it| set_text("program", it)));
        changes.extend(self.category.as_ref().map(|it| set_word("category", it)));
        changes.extend(self.priority.map(|it| set_word("priority", it.word())));
        changes.extend(set_texts("tags", &self.tags));
        changes.extend(set_texts("goals", &self.goals));
        changes.extend(set_texts("success_criteria", &self.success_criteria));
        changes.extend(self.is_sequential.then(|| set_word("order", "sequential")));
        changes.push(set_word("created_at", &created_at.to_string()));
        changes
    }
}

#[derive(Debug, Clone, Default)]
pub struct NewStep {
    pub title: String,
    pub depends: Vec<StepId>,
    pub phase: Option<String>,
    pub kind: Option<String>,
    pub touches: Vec<String>,
    pub verify: Vec<String>,
    /// A YAML mapping as it was typed.
    pub metadata: Option<String>,
    pub created_by: Option<String>,
    /// `None`: the body is only a heading with the title.
    pub body: Option<String>,
    pub is_gated: bool,
    /// The front matter in `body` is preserved, except for the id.
    pub keeps_own: bool,
}

impl NewStep {
    /// The text to which [`Self::changes`] are applied, and whether its heading is the title.
    pub fn body(&self) -> (String, bool) {
        let Some(body) = &self.body else {
            return (format!("{}\n", heading(1, &one_line(&self.title))), true);
        };
        let start = crate::text::front_matter::split(body.as_bytes()).body_start();
        let outline = crate::text::markdown::outline(&body[start..]);
        let says = outline.title() == Some(self.title.as_str());
        (body.clone(), says)
    }

    /// The front matter's keys. In the file they have the order of `STEP_KEYS`.
    pub fn changes(&self, id: &StepId, says_title: bool, created_at: Time) -> Vec<Change> {
        let mut changes = vec![set_text("id", &id.to_string()), set_word("status", "pending")];
        changes.extend((!says_title).then(|| set_text("title", &self.title)));
        if !self.depends.is_empty() {
            let items = self.depends.iter().map(|it| dependency_item(&id.plan, it)).collect();
            changes.push(set("depends", NewValue::List(items)));
        }
        changes.extend(self.phase.as_ref().map(|it| set_text("phase", it)));
        changes.extend(self.kind.as_ref().map(|it| set_text("type", it)));
        changes.extend(self.is_gated.then(|| set_word("confirm", "required")));
        changes.push(set_word("created_at", &created_at.to_string()));
        changes.extend(self.metadata.as_ref().map(|it| set("metadata", NewValue::Yaml(it.clone()))));
        changes.extend(self.created_by.as_ref().map(|it| set_text("created_by", it)));
        changes.extend(set_texts("verify", &self.verify));
        changes.extend(set_texts("touches", &self.touches));
        changes
    }
}
