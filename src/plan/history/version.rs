//! One version of a file, parsed by the functions that every verb uses.

use crate::plan::decision::{self, Decision};
use crate::plan::history::Place;
use crate::plan::insight::{self, Insight};
use crate::plan::model::{Plan, Step};
use crate::plan::problem::Problem;
use crate::plan::read::{self, Bodies, Content, PlanSources, Source};
use crate::plan::time::Time;
use crate::plan::words::Words;

/// A file as it was at one time.
#[derive(Debug)]
pub struct Version {
    bytes: Vec<u8>,
    pub(super) read: Read,
}

#[derive(Debug)]
pub(super) enum Read {
    Plan(Box<Plan>),
    Step(Box<Step>),
    Decision(Box<Decision>),
    Insight(Box<Insight>),
}

impl Version {
    /// Parses the bytes of a file. `place` determines whether it is a plan, a step, a decision or an insight.
    pub fn read(place: &Place, path: &str, bytes: Vec<u8>, words: &Words) -> Self {
        // The modification time is not used.
        let content = Content::new(bytes.clone(), Time::from_nanoseconds(0));
        let source = |content| Source { path: path.to_owned(), content: Ok(content) };
        let read = match place {
            Place::Step { id, .. } => Read::Step(Box::new(read::read_step_alone(id, path, content, words))),
            Place::Plan { id, is_archived } => {
                let sources = PlanSources { plan: Some(source(content)), ..PlanSources::default() };
                Read::Plan(Box::new(read::read_plan(id, *is_archived, &sources, words, Bodies::Drop)))
            }
            Place::Decision => Read::Decision(Box::new(decision::read(&source(content)))),
            Place::Insight => Read::Insight(Box::new(insight::read(&source(content)))),
        };
        Self { bytes, read }
    }

    /// The problem that makes the whole file unreadable, if there is one.
    pub fn unreadable(&self) -> Option<&Problem> {
        self.problems().iter().find(|it| it.code.refuses_writing())
    }

    fn problems(&self) -> &[Problem] {
        match &self.read {
            Read::Plan(it) => &it.problems,
            Read::Step(it) => &it.problems,
            Read::Decision(it) => &it.problems,
            Read::Insight(it) => &it.problems,
        }
    }

    pub(super) fn body(&self) -> &str {
        read::body(&self.bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn title(&self) -> &str {
        match &self.read {
            Read::Plan(it) => &it.title,
            Read::Step(it) => &it.title,
            Read::Decision(it) => &it.topic,
            Read::Insight(it) => &it.title,
        }
    }

    pub(super) fn created_at(&self) -> Option<Time> {
        match &self.read {
            Read::Plan(it) => it.created_at,
            Read::Step(it) => it.created_at,
            Read::Decision(it) => it.decided_at,
            Read::Insight(it) => it.at,
        }
    }

    /// The status word; `None` for a decision or an insight.
    pub(super) fn status(&self) -> Option<&str> {
        match &self.read {
            Read::Plan(it) => Some(it.status.word()),
            Read::Step(it) => Some(it.status.word()),
            Read::Decision(_) | Read::Insight(_) => None,
        }
    }
}
