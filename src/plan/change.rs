//! Changes to plan and step files as edits of their front matter, and the text of new files.

use crate::plan::id::StepId;
use crate::plan::records::{Attempt, NoteType, Priority};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Status};
use crate::text::header_edit::{Change, NewValue};

/// An attempt to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttempt {
    pub at: Time,
    pub by: String,
    pub outcome: String,
    pub notes: Option<String>,
    /// The claim that it ends or belongs to.
    pub claim: Option<EndedClaim>,
}

/// The part of an attempt that describes the ended claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedClaim {
    pub id: String,
    /// How long it took.
    pub seconds: Option<i64>,
    /// The exit code of a run's process, as a shell reports it.
    pub exit_code: Option<i32>,
    /// What it did cost in US dollars, as its agent wrote it.
    pub cost: Option<String>,
    /// Where the output of a run went, relative to the plans directory.
    pub log: Option<String>,
}

impl EndedClaim {
    fn entries(&self) -> Vec<(String, NewValue)> {
        let word = |key: &str, word: Option<String>| word.map(|it| (key.to_owned(), NewValue::Word(it)));
        let mut entries = vec![("claim".to_owned(), NewValue::Text(self.id.clone()))];
        entries.extend(word("seconds", self.seconds.map(|it| it.max(0).to_string())));
        entries.extend(word("exit_code", self.exit_code.map(|it| it.to_string())));
        entries.extend(word("cost", self.cost.clone()));
        entries.extend(self.log.iter().map(|it| ("log".to_owned(), NewValue::Text(it.clone()))));
        entries
    }
}

impl NewAttempt {
    /// The edit that appends it.
    pub fn change(&self) -> Change {
        self.change_with(None)
    }

    /// As [`Self::change`], of an attempt that is written down at another time than it was made.
    pub fn change_recorded_at(&self, at: Time) -> Change {
        self.change_with(Some((Attempt::RECORDED_AT.to_owned(), NewValue::Word(at.to_string()))))
    }

    fn change_with(&self, more: Option<(String, NewValue)>) -> Change {
        let mut item = vec![
            ("at".to_owned(), NewValue::Word(self.at.to_string())),
            ("by".to_owned(), NewValue::Text(self.by.clone())),
            ("outcome".to_owned(), NewValue::Text(self.outcome.clone())),
        ];
        if let Some(notes) = &self.notes {
            item.push(("notes".to_owned(), NewValue::Text(notes.clone())));
        }
        item.extend(self.claim.iter().flat_map(EndedClaim::entries));
        item.extend(more);
        Change::Append { key: "attempts".to_owned(), item: NewValue::Map(item) }
    }
}

/// A person's yes, to a step or to a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConfirmation {
    pub phase: Option<String>,
    pub by: String,
    pub at: Time,
    pub note: Option<String>,
}

impl NewConfirmation {
    fn entries(&self) -> NewValue {
        let text = |key: &str, text: &String| (key.to_owned(), NewValue::Text(text.clone()));
        let mut entries: Vec<_> = self.phase.iter().map(|it| text("phase", it)).collect();
        entries.push(text("by", &self.by));
        entries.push(("at".to_owned(), NewValue::Word(self.at.to_string())));
        entries.extend(self.note.iter().map(|it| text("note", it)));
        NewValue::Map(entries)
    }

    /// The edit that confirms a step.
    pub fn of_step(&self) -> Change {
        Change::Set { key: "confirmed".to_owned(), value: self.entries() }
    }

    /// The edit that confirms a phase of a plan.
    pub fn of_phase(&self) -> Change {
        Change::Append { key: "confirmations".to_owned(), item: self.entries() }
    }
}

/// A note to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNote {
    pub at: Time,
    pub kind: NoteType,
    pub by: String,
    pub text: String,
}

impl NewNote {
    /// The edit that appends it.
    pub fn change(&self) -> Change {
        let item = vec![
            ("at".to_owned(), NewValue::Word(self.at.to_string())),
            ("type".to_owned(), NewValue::Word(self.kind.word().to_owned())),
            ("by".to_owned(), NewValue::Text(self.by.clone())),
            ("text".to_owned(), NewValue::Text(self.text.clone())),
        ];
        Change::Append { key: "notes".to_owned(), item: NewValue::Map(item) }
    }
}

/// The edit that sets a status to its canonical word.
pub fn set_status(status: impl Status) -> Change {
    set_word("status", status.word())
}

/// The edit that sets a step's claim, on one line.
pub fn set_claim(id: &str, by: &str, at: Time) -> Change {
    let entries = vec![
        ("id".to_owned(), NewValue::Text(id.to_owned())),
        ("by".to_owned(), NewValue::Text(by.to_owned())),
        ("at".to_owned(), NewValue::Word(at.to_string())),
    ];
    Change::Set { key: "claim".to_owned(), value: NewValue::FlowMap(entries) }
}

pub fn set_word(key: &str, word: &str) -> Change {
    Change::Set { key: key.to_owned(), value: NewValue::Word(word.to_owned()) }
}

pub fn set_text(key: &str, text: &str) -> Change {
    Change::Set { key: key.to_owned(), value: NewValue::Text(text.to_owned()) }
}

pub fn remove(key: &str) -> Change {
    Change::Remove { key: key.to_owned() }
}

pub(crate) fn set_texts(key: &str, texts: &[String]) -> Option<Change> {
    let items = texts.iter().map(|it| NewValue::Text(it.clone())).collect();
    (!texts.is_empty()).then(|| Change::Set { key: key.to_owned(), value: NewValue::List(items) })
}

/// A dependency as an item of `depends`: the number alone within a plan.
pub fn dependency_item(plan: &crate::plan::id::PlanId, step: &StepId) -> NewValue {
    if step.plan == *plan {
        NewValue::Word(step.number.to_string())
    } else {
        NewValue::Text(step.to_string())
    }
}

/// What a new plan is made of.
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
    /// The text below the front matter.
    pub fn body(&self) -> String {
        let heading = one_line(&self.title);
        match &self.description {
            Some(text) if !text.is_empty() => format!("# {heading}\n\n{}\n", text.trim_end()),
            _ => format!("# {heading}\n"),
        }
    }

    /// The front matter, key by key in the order in which they are written.
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

/// What a new step is made of.
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
    /// The given text; `None`: the heading alone.
    pub body: Option<String>,
    /// A person has to confirm it.
    pub is_gated: bool,
    /// The text's own front matter is preserved, except for the id.
    pub keeps_own: bool,
}

impl NewStep {
    /// The text after the front matter, and whether it contains the title itself.
    pub fn body(&self) -> (String, bool) {
        let Some(body) = &self.body else { return (format!("# {}\n", one_line(&self.title)), true) };
        let start = crate::text::front_matter::split(body.as_bytes()).body_start();
        let outline = crate::text::markdown::outline(&body[start..]);
        let says = outline.title() == Some(self.title.as_str());
        (body.clone(), says)
    }

    /// The front matter, key by key in the order in which they are written.
    pub fn changes(&self, id: &StepId, says_title: bool, created_at: Time) -> Vec<Change> {
        let mut changes = vec![set_text("id", &id.to_string()), set_word("status", "pending")];
        changes.extend((!says_title).then(|| set_text("title", &self.title)));
        if !self.depends.is_empty() {
            let items = self.depends.iter().map(|it| dependency_item(&id.plan, it)).collect();
            changes.push(Change::Set { key: "depends".to_owned(), value: NewValue::List(items) });
        }
        changes.extend(self.phase.as_ref().map(|it| set_text("phase", it)));
        changes.extend(self.kind.as_ref().map(|it| set_text("type", it)));
        changes.extend(self.is_gated.then(|| set_word("confirm", "required")));
        changes.push(set_word("created_at", &created_at.to_string()));
        if let Some(yaml) = &self.metadata {
            changes.push(Change::Set { key: "metadata".to_owned(), value: NewValue::Yaml(yaml.clone()) });
        }
        changes.extend(self.created_by.as_ref().map(|it| set_text("created_by", it)));
        changes.extend(set_texts("verify", &self.verify));
        changes.extend(set_texts("touches", &self.touches));
        changes
    }
}

/// A title in a heading must not end it.
fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}
