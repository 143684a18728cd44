//! Answers to "is everything indexed that was saved before I asked?".
//!
//! A file gets a name in the directory of cookies. When the system tells of that, it has told of every change before it,
//! so that whatever was saved before the question is indexed before the answer (Watchman's method). One name is enough
//! for all who asked before it was given.

use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use super::event_loop::Daemon;
use crate::api::context::{Context, Reading};
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::serve::daemon::listener::Asked;
use crate::serve::ipc::protocol::{Answer, Ask};

/// An event that did not come in this time does not come.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Waiting {
    cookie: String,
    pub(crate) deadline: Instant,
    pub(crate) has_come: bool,
    /// Nobody: it is only tried whether events come at all.
    asked: Vec<Asker>,
}

/// Who waits for a cookie.
pub(crate) enum Asker {
    /// A command.
    Command(Asked),
    /// Who claims in this process, and asks in which plans anything has happened.
    Clerk(SyncSender<Option<BTreeSet<String>>>),
}

/// In which plans anything has happened; none: in any.
#[derive(Debug)]
pub(crate) struct Happened(Option<BTreeSet<String>>);

/// Of more plans than this it is not told which.
const MOST: usize = 256;

impl Default for Happened {
    fn default() -> Self {
        Self(Some(BTreeSet::new()))
    }
}

impl Happened {
    pub(crate) fn add(&mut self, name: &str) {
        let Some(names) = &mut self.0 else { return };
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
        if names.len() > MOST {
            self.0 = None;
        }
    }

    pub(crate) fn add_all(&mut self) {
        self.0 = None;
    }
}

impl Daemon<'_> {
    /// Tries whether events come at all; if not it is polled.
    pub(crate) fn try_events(&mut self, now: &Context) {
        if self.own.is_some() && self.eyes.is_some() {
            self.put_cookie(now, Vec::new());
        }
    }

    /// Gives those who have asked since the last time a cookie to wait for.
    pub(crate) fn wait_for_cookie(&mut self) {
        let asked = std::mem::take(&mut self.asking);
        if asked.is_empty() {
            return;
        }
        if let Ok(now) = self.now() {
            self.look_at_mounts(&now);
        }
        let can_know = self.own.is_some()
            && self.polling.is_none()
            && self.mounts.below().is_empty()
            && self.eyes.as_ref().is_some_and(|it| it.linked().is_empty());
        match self.now() {
            Ok(now) if can_know && now.reading == Reading::Index => self.put_cookie(&now, asked),
            _ => refuse(asked),
        }
    }

    fn put_cookie(&mut self, now: &Context, asked: Vec<Asker>) {
        let last = self.n_cookies.to_string();
        self.n_cookies += 1;
        let cookie = self.n_cookies.to_string();
        if now.plans.identity() != self.identity || now.plans.make_cookie(&last, &cookie).is_err() {
            return refuse(asked);
        }
        let deadline = Instant::now() + PATIENCE;
        self.waiting.push(Waiting { cookie, deadline, has_come: false, asked });
    }

    pub(crate) fn cookie_came(&mut self, name: &str) {
        if let Some(it) = self.waiting.iter_mut().find(|it| it.cookie == name) {
            it.has_come = true;
        }
    }

    /// Whether somebody whose cookie came waits for the index.
    pub(crate) fn is_index_asked(&self) -> bool {
        let needs_index = |it: &Asker| match it {
            Asker::Command(it) => !matches!(it.ask, Ask::Around(_)) || self.around.is_none(),
            Asker::Clerk(_) => false,
        };
        self.waiting.iter().any(|it| it.has_come && it.asked.iter().any(needs_index))
    }

    /// Answers those whose cookies came; everything before them is indexed by now.
    pub(crate) fn answer(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if !self.waiting.iter().any(|it| it.has_come || it.deadline <= now) {
            return Ok(());
        }
        let context = self.now()?;
        if self.is_index_asked() {
            self.make_sure(&context)?;
        }
        for it in std::mem::take(&mut self.waiting) {
            if it.has_come {
                if it.asked.is_empty() {
                    self.events_come(&context);
                }
                it.asked.into_iter().for_each(|it| self.answer_one(&context, it));
            } else if it.deadline > now {
                self.waiting.push(it);
            } else {
                refuse(it.asked);
                self.poll("the system does not report changes here");
            }
        }
        Ok(())
    }

    fn answer_one(&mut self, context: &Context, it: Asker) {
        let it = match it {
            Asker::Command(asked) => asked,
            Asker::Clerk(reply) => return drop(reply.try_send(std::mem::take(&mut self.happened).0)),
        };
        let answer = match it.ask {
            Ask::Around(plan) => {
                let around = self.around.as_mut().and_then(|it| it.told(context, &PlanId::new(plan)));
                Answer::Around { around }
            }
            Ask::Next => {
                let generation = self.sure.map(|it| it.to_string());
                Answer::Next { generation, cached: self.next_answer.clone() }
            }
            _ => {
                let generation = self.sure.map(|it| it.to_string());
                Answer::Sync { fresh: generation.is_some(), generation }
            }
        };
        it.reply.try_send(answer).ok();
    }

    fn events_come(&mut self, context: &Context) {
        if self.polling.is_some() && self.sees_everything(context) {
            self.polling = None;
            self.listener.polling(None);
        }
    }

    fn sees_everything(&self, context: &Context) -> bool {
        self.eyes.as_ref().is_some_and(|it| it.blind().is_none()) && !context.plans.file_system().is_remote
    }

    /// If somebody else wrote into the index, what it holds is looked through again.
    fn make_sure(&mut self, context: &Context) -> Result<(), Error> {
        if self.sure.is_none() || self.generation(context) != self.sure {
            self.dirty.is_everything = true;
            self.index()?;
        }
        Ok(())
    }

    pub(crate) fn refuse_waiting(&mut self) {
        for it in self.waiting.drain(..) {
            refuse(it.asked);
        }
    }
}

fn refuse(asked: Vec<Asker>) {
    for it in asked {
        match it {
            Asker::Command(it) => drop(it.reply.try_send(Answer::Sync { fresh: false, generation: None })),
            Asker::Clerk(reply) => drop(reply.try_send(None)),
        }
    }
}
