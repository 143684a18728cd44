//! `log`: what happened to plans and steps, from the commits that changed their files.

pub mod timeline;

use std::panic::resume_unwind;
use std::thread;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{shown_path, value};
use crate::plan::history::{Change, Followed, What, changes};
use crate::plan::id::{PlanId, Reference, read_reference};
use crate::plan::time::Time;
use crate::plan::words::nearest;
use crate::store::history::{self, Commit, Differing, Repository, Sides};
use crate::store::knowledge;
use crate::store::load;
use crate::store::resolve::{self, Target};

pub use crate::api::requests::LogRequest;

/// One change in the history, as every surface shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEvent {
    /// The time of the change as the file records it, else the time of the commit or of the save.
    pub at: Option<Time>,
    /// Who made the change, if the file records that.
    pub by: Option<String>,
    /// The author of the commit.
    pub author: Option<String>,
    /// `None`: the change is not committed yet.
    pub commit: Option<String>,
    /// When the author made the commit.
    pub committed_at: Option<Time>,
    pub plan: Option<String>,
    pub step: Option<String>,
    pub what: What,
    pub from: Option<String>,
    pub to: Option<String>,
    pub outcome: Option<String>,
    pub notes: Option<String>,
    /// The first line of the commit's message.
    pub subject: Option<String>,
    pub path: String,
    /// The number of lines that were added to the text; `lines_removed` is the number of lines that were removed.
    pub lines_added: Option<u64>,
    pub lines_removed: Option<u64>,
    /// For [`What::Text`]: the changed keys of the front matter that no other event reports.
    pub keys: Vec<String>,
}

impl LogEvent {
    /// What happened, in a few words.
    pub fn words(&self) -> String {
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        let (from, to) = (text(&self.from), text(&self.to));
        let with = |head: String, more: &Option<String>| match more {
            Some(more) => format!("{head}: {more}"),
            None => head,
        };
        match self.what {
            What::Created => with("created".to_owned(), &self.notes),
            What::Removed => with("removed".to_owned(), &self.notes),
            What::Moved => format!("moved, was {from}"),
            What::Archived | What::Restored if from == to => self.what.word().to_owned(),
            What::Archived | What::Restored => format!("{}, was {from}", self.what.word()),
            What::Status => format!("{from} → {to}"),
            What::Attempt => {
                with(format!("attempt {}", text(&self.outcome)).trim_end().to_owned(), &self.notes)
            }
            What::Claim => format!("claimed with id {to}"),
            What::Released => format!("released claim {from}"),
            What::Note => with("note".to_owned(), &self.notes),
            What::Depends => format!("depends on {}, was {}", or_nothing(&to), or_nothing(&from)),
            What::Title => format!("title `{to}`, was `{from}`"),
            What::Text => {
                changed(self.lines_added.zip(self.lines_removed), &self.keys, self.notes.as_deref())
            }
            What::Confirmed => with(format!("confirmed {to}").trim_end().to_owned(), &self.notes),
            What::Decision | What::Insight => with(format!("{} `{to}`", self.what.word()), &self.notes),
        }
    }
}

fn or_nothing(list: &str) -> &str {
    if list.is_empty() { "nothing" } else { list }
}

/// Describes a change of text and keys, for example as `text +12 −3, fields tags`.
pub fn changed(lines: Option<(u64, u64)>, keys: &[String], problem: Option<&str>) -> String {
    let lines = lines.filter(|it| *it != (0, 0)).map(|(added, removed)| format!("text +{added} −{removed}"));
    let (own, known): (Vec<_>, Vec<_>) = keys.iter().map(String::as_str).partition(|it| *it == "custom");
    let known = (!known.is_empty()).then(|| format!("fields {}", known.join(", ")));
    let own = (!own.is_empty()).then(|| "own fields".to_owned());
    let parts = [problem.map(str::to_owned), lines, known, own];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "text".to_owned() } else { parts.join(", ") }
}

#[derive(Debug, Clone)]
pub struct LogReport {
    /// Newest first.
    pub events: Vec<LogEvent>,
    /// One of the oldest commits of a shallow clone. `None`: the clone is not shallow.
    pub begins_at: Option<String>,
    /// There are more events than the limit.
    pub has_more: bool,
}

impl LogReport {
    pub fn to_json(&self) -> Value {
        json!({"events": value(&self.events), "begins_at": self.begins_at})
    }
}

/// The changes of one commit. If `commit` is `None`, the changes that are not committed yet.
pub(crate) struct Group {
    commit: Option<Commit>,
    pub(crate) changes: Vec<Change>,
    /// The paths of the uncommitted files, each with the time of its last save.
    saved: Vec<(String, Time)>,
}

/// Returns what happened, newest first.
pub fn log(context: &Context, request: &LogRequest) -> Result<LogReport, Error> {
    let filter = Filter::of(context, request)?;
    // Each commit has at least one event, so one commit more than the limit shows whether there are more events.
    let is_plain = request.id.is_none() && filter.is_empty();
    let most = request.limit.filter(|_| is_plain).map_or(usize::MAX, |it| it.saturating_add(1));
    let (groups, begins_at) = groups(context, request.rev.as_deref(), most)?;
    let report = |followed: Option<Followed>| {
        let mut events = events(context, &groups, followed, &filter);
        let limit = request.limit.unwrap_or(usize::MAX);
        let has_more = events.len() > limit;
        events.truncate(limit);
        LogReport { events, begins_at: begins_at.clone(), has_more }
    };
    let Some(id) = &request.id else { return Ok(report(None)) };
    let error = match followed(context, id) {
        Ok(followed) => return Ok(report(Some(followed))),
        Err(error) if error.code() != "not-found" => return Err(error),
        Err(error) => error,
    };
    // A plan or step that is gone still has a history.
    let is_known = |it: &Followed| groups.iter().flat_map(|it| &it.changes).any(|change| it.concerns(change));
    formerly(id).into_iter().find(is_known).map(|it| report(Some(it))).ok_or(error)
}

/// Reads the newest `most` commits that changed plans, and sometimes more, newest first. Without a `range`, the
/// uncommitted changes come before them. Also returns one of the oldest commits, if the clone is shallow.
pub(crate) fn groups(
    context: &Context,
    range: Option<&str>,
    most: usize,
) -> Result<(Vec<Group>, Option<String>), Error> {
    let repository = Repository::open(context)?;
    let mut groups = Vec::new();
    // The history and the uncommitted changes are read in parallel, because both wait for git most of the time.
    let found = thread::scope(|scope| {
        let found = scope.spawn(|| history::history(context, &repository, range, most));
        if range.is_none() {
            let sides = Sides::WorkingTree { since: repository.head() };
            groups.extend(uncommitted(history::between(context, &repository, &sides)?));
        }
        found.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let begins_at = found.begins_at.into_iter().next();
    groups.extend(found.commits.into_iter().map(|mut commit| {
        let changes = std::mem::take(&mut commit.changes);
        Group { changes, commit: Some(commit), saved: Vec::new() }
    }));
    Ok((groups, begins_at))
}

fn uncommitted(files: Vec<Differing>) -> Option<Group> {
    let saved = files.iter().filter_map(|it| Some((it.change.path.clone(), it.saved?))).collect();
    let files: Vec<_> = files.into_iter().map(|it| it.change).collect();
    let changes = changes(&files);
    (!changes.is_empty()).then_some(Group { commit: None, changes, saved })
}

impl Group {
    /// When a change was made: the time that the file records, else [`Self::known_at`].
    pub(crate) fn time_of(&self, change: &Change) -> Option<Time> {
        change.at.map(Time::whole_seconds).or_else(|| self.known_at(change))
    }

    /// When a change was committed, else when its file was saved.
    pub(crate) fn known_at(&self, change: &Change) -> Option<Time> {
        let saved = || self.saved.iter().find(|it| it.0 == change.path).map(|it| it.1);
        self.commit.as_ref().and_then(|it| it.at).or_else(saved).map(Time::whole_seconds)
    }

    fn event(&self, context: &Context, change: &Change) -> LogEvent {
        let change = change.clone();
        LogEvent {
            at: self.time_of(&change),
            by: change.by,
            author: self.commit.as_ref().map(|it| it.author.clone()),
            commit: self.commit.as_ref().map(|it| it.oid.clone()),
            committed_at: self.commit.as_ref().and_then(|it| it.at),
            plan: change.plan,
            step: change.step,
            what: change.what,
            from: change.from,
            to: change.to,
            outcome: change.outcome,
            notes: change.notes,
            subject: self.commit.as_ref().map(|it| it.subject.clone()),
            path: shown_path(&context.root_name(), &change.path),
            lines_added: change.lines.map(|it| it.0),
            lines_removed: change.lines.map(|it| it.1),
            keys: change.keys,
        }
    }
}

fn events(
    context: &Context,
    groups: &[Group],
    mut followed: Option<Followed>,
    filter: &Filter,
) -> Vec<LogEvent> {
    let mut found = Vec::new();
    for group in groups {
        for change in group.changes.iter().rev() {
            if followed.as_ref().is_some_and(|it| !it.concerns(change)) {
                continue;
            }
            found.extend(Some(group.event(context, change)).filter(|it| filter.lets(it)));
        }
        if let Some(followed) = &mut followed {
            followed.before(&group.changes);
        }
    }
    found
}

/// The plan or step that a reference means.
fn followed(context: &Context, id: &str) -> Result<Followed, Error> {
    Ok(match resolve::for_reading(context, id)? {
        (Target::Plan(plan), _) => Followed::plan(&plan),
        (Target::Step(step), side) => {
            if let Some(plan) = load::plan_at(context, &step.id.plan, side)? {
                resolve::shown_step(&plan, &step)?;
            }
            Followed::step(&step.id)
        }
    })
}

/// The plans and steps that a reference may mean if no existing plan or step is found for it, the most likely one first.
fn formerly(id: &str) -> Vec<Followed> {
    match read_reference(id) {
        Reference::Name { whole, step } => {
            let step = step.map(|it| Followed::step(&it));
            [Some(Followed::plan(&whole)), step].into_iter().flatten().collect()
        }
        Reference::Number(_) => vec![Followed::plan(&PlanId::new(id))],
        Reference::Path(_) => Vec::new(),
    }
}

struct Filter {
    since: Option<Time>,
    until: Option<Time>,
    by: Option<String>,
    what: Vec<What>,
    words: Vec<String>,
}

impl Filter {
    fn of(context: &Context, request: &LogRequest) -> Result<Self, Error> {
        let time =
            |it: &Option<String>| it.as_deref().map(|it| knowledge::since(it, context.now)).transpose();
        let words = request.what.iter().flat_map(|it| it.split(','));
        Ok(Self {
            since: time(&request.since)?,
            until: time(&request.until)?,
            by: request.by.as_ref().map(|it| it.to_lowercase()),
            what: words.map(what).collect::<Result<_, _>>()?,
            words: request.words.iter().map(|it| it.to_lowercase()).collect(),
        })
    }

    fn is_empty(&self) -> bool {
        let Self { since, until, by, what, words } = self;
        since.is_none() && until.is_none() && by.is_none() && what.is_empty() && words.is_empty()
    }

    fn lets(&self, event: &LogEvent) -> bool {
        let is_said = |who: &str| {
            let names = [&event.by, &event.author].into_iter().flatten();
            names.into_iter().any(|it| it.to_lowercase() == who)
        };
        (self.what.is_empty() || self.what.contains(&event.what))
            && self.by.as_deref().is_none_or(is_said)
            && self.since.is_none_or(|it| event.at.is_some_and(|at| at >= it))
            && self.until.is_none_or(|it| event.at.is_some_and(|at| at <= it))
            && self.has_words(event)
    }

    fn has_words(&self, event: &LogEvent) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let texts =
            [&event.plan, &event.step, &event.by, &event.to, &event.outcome, &event.notes, &event.subject];
        let texts: Vec<String> = texts.into_iter().flatten().map(|it| it.to_lowercase()).collect();
        self.words.iter().all(|word| texts.iter().any(|it| it.contains(word)))
    }
}

fn what(word: &str) -> Result<What, Error> {
    What::read(word).ok_or_else(|| {
        let known = What::ALL.map(What::word);
        let near = nearest(word, known).map(|it| format!("did you mean `{it}`?"));
        let hint = near.unwrap_or_else(|| format!("one of {}", known.join(", ")));
        Error::usage(format!("unknown change `{word}`"), hint)
    })
}
