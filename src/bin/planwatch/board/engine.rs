//! Calls the operations for the board, on threads of its own: one reads what the screen shows, the other makes the
//! changes that keys request.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::api::precondition::Expected;
use planwatch::api::views::{PlanShape, StepShape};
use planwatch::ops::add::{self, AddRequest};
use planwatch::ops::claim::{self, ClaimRequest};
use planwatch::ops::confirm::{self, ConfirmRequest, Confirmer};
use planwatch::ops::list::{self, ListReport, ListRequest};
use planwatch::ops::note::{self, NoteRequest};
use planwatch::ops::release::{self, ReleaseRequest};
use planwatch::ops::run::{WorkerOutput, worker_output};
use planwatch::ops::show::{self, ShowReport, ShowRequest, ShownPlan, ShownStep};
use planwatch::ops::undo::{self, UndoRequest};
use planwatch::ops::update::{self, AttemptRequest, MoveRequest};
use planwatch::plan::time::{self, Time};
use planwatch::plan::transitions::Verb;
use planwatch::serve::daemon::context_factory::ContextFactory;
use planwatch::store::transaction::ChangeReport;
use serde_json::Value;

use super::event_loop::Input;
use super::prompt::Prompt;
use super::questions;
use crate::failure::Failure;
use crate::screens::change;

/// What to read for the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) plans: bool,
    pub(crate) all: bool,
    pub(crate) plan: Option<String>,
    pub(crate) step: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) now: Time,
    pub(crate) plans: Option<Vec<PlanShape>>,
    /// The plan that the request named.
    pub(crate) plan_asked: Option<String>,
    pub(crate) plan: Option<Box<ShownPlan>>,
    pub(crate) step: Option<Box<ShownStep>>,
    /// The worker's output, if a run works on the step.
    pub(crate) output: Option<WorkerOutput>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Claim,
    Move(Verb),
    Release,
    Attempt,
    Note,
    /// Adds a step: after the step that the request names, or at the end of the plan if it names a plan.
    Add,
    Confirm,
    /// Finds the change that an undo would revert, and asks whether to undo it.
    FindUndo,
    Undo,
}

/// A change that a key requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) action: Action,
    /// The id of a step or a plan; for `Undo`, of a change; for `FindUndo`, empty.
    pub(crate) id: String,
    pub(crate) text: Option<String>,
    /// The version that the screen showed. `with_expected` defines which actions are refused if the file has changed since.
    pub(crate) etag: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Reply {
    Done {
        text: String,
        steps: Vec<StepShape>,
    },
    Refused {
        text: String,
        /// The step as it is now, if it changed since it was shown.
        step: Option<Box<StepShape>>,
        /// The request, if it had a text, so that the text can be corrected or sent again.
        again: Option<Request>,
    },
    Ask(Prompt),
}

impl Reply {
    fn refused(text: String) -> Self {
        Self::Refused { text, step: None, again: None }
    }
}

/// Starts the thread that reads for the screen. Requests that wait are merged into one.
pub(crate) fn reader(contexts: ContextFactory, inbox: Sender<Input>) -> Sender<ReadRequest> {
    let (sender, wanted) = channel::<ReadRequest>();
    let read = move || {
        while let Ok(mut next) = wanted.recv() {
            while let Ok(later) = wanted.try_recv() {
                // If the later request names no plan, the plan of the earlier one must still be read.
                let (plans, plan) = (next.plans || later.plans, later.plan.clone().or(next.plan));
                next = ReadRequest { plans, plan, ..later };
            }
            if inbox.send(Input::Loaded(Box::new(load(&contexts, &next)))).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("reading".to_owned()).spawn(read).ok();
    sender
}

fn load(contexts: &ContextFactory, wanted: &ReadRequest) -> Loaded {
    let now = crate::context::now();
    let (plan_asked, step) = (wanted.plan.clone(), None);
    let mut loaded = Loaded { now, plans: None, plan_asked, plan: None, step, output: None, error: None };
    let context = match contexts() {
        Ok(context) => context,
        Err(error) => return Loaded { error: Some(sentence(&Failure::of(&error))), ..loaded },
    };
    let mut fail = |error: Error| {
        // A plan or step that was just removed is no longer shown, and needs no message.
        if error.code() != "not-found" {
            loaded.error = Some(sentence(&Failure::of(&error)));
        }
    };
    if wanted.plans {
        let request = ListRequest { all: wanted.all, ..ListRequest::default() };
        match list::list(&context, &request) {
            Ok(ListReport::Plans { plans, .. }) => loaded.plans = Some(plans),
            Ok(ListReport::Steps { .. }) => {}
            Err(error) => fail(error),
        }
    }
    let show = |id: &String| show::show(&context, &ShowRequest { id: id.clone(), ..ShowRequest::default() });
    match wanted.plan.as_ref().map(show) {
        Some(Ok(ShowReport::Plan(plan))) => loaded.plan = Some(plan),
        Some(Err(error)) => fail(error),
        _ => {}
    }
    match wanted.step.as_ref().map(show) {
        Some(Ok(ShowReport::Step(step))) => {
            let held = step.held.as_ref();
            loaded.output = held.and_then(|it| worker_output(&context, &it.claim));
            loaded.step = Some(step);
        }
        Some(Err(error)) => fail(error),
        _ => {}
    }
    loaded
}

/// The error message and its hint, with the keys for the commands that the hint names.
pub(crate) fn sentence(failure: &Failure) -> String {
    let with_keys = |it: &str| format!(" · {it}{}", questions::keys_of(it));
    let hint = failure.hint.as_deref().map(with_keys).unwrap_or_default();
    format!("{}{hint}", failure.message)
}

/// Starts the thread that makes changes, one after the other.
pub(crate) fn actor(contexts: ContextFactory, inbox: Sender<Input>) -> Sender<Request> {
    let (sender, requests) = channel();
    let serve = move || serve(&contexts, &requests, &inbox);
    std::thread::Builder::new().name("acting".to_owned()).spawn(serve).ok();
    sender
}

fn serve(contexts: &ContextFactory, requests: &Receiver<Request>, inbox: &Sender<Input>) {
    // Maps the id and etag of a version to the etag of the version that the board itself made from it. If the user
    // presses a key before the screen shows the newer version, the request is meant for the newer version.
    let mut own: HashMap<(String, String), String> = HashMap::new();
    while let Ok(mut request) = requests.recv() {
        while let Some(later) =
            request.etag.as_ref().and_then(|it| own.get(&(request.id.clone(), it.clone())))
        {
            request.etag = Some(later.clone());
        }
        let reply = contexts().and_then(|context| perform(context, &request));
        let reply = with_words(reply.unwrap_or_else(|error| refused(&error)), &request);
        match (request.etag, &reply) {
            // After a refusal or an undo, the map may be outdated.
            (_, Reply::Refused { .. }) => own.clear(),
            _ if request.action == Action::Undo => own.clear(),
            (Some(before), Reply::Done { steps, .. }) => {
                let after = steps.iter().find(|it| it.id == request.id).and_then(|it| it.etag.clone());
                if let Some(after) = after.filter(|it| *it != before) {
                    // If the file is back at an earlier version, that version must no longer be mapped to a later one.
                    own.remove(&(request.id.clone(), after.clone()));
                    own.insert((request.id, before), after);
                }
            }
            _ => {}
        }
        if inbox.send(Input::Reply(reply)).is_err() {
            return;
        }
    }
}

fn refused(error: &Error) -> Reply {
    if let Error::NotExpected { id, now, .. } = error {
        let step = serde_json::from_value((**now).clone()).ok();
        let text = format!("`{id}` was changed by another program; it is shown as it is now");
        return Reply::Refused { text, step, again: None };
    }
    Reply::refused(sentence(&Failure::of(error)))
}

/// Adds the request to a refusal if the request had a text, so that the text is not lost. If the refusal contains the
/// current step, the added request has that step's etag.
fn with_words(reply: Reply, request: &Request) -> Reply {
    let Reply::Refused { text, step, .. } = reply else { return reply };
    let now = step.as_ref().and_then(|it| it.etag.clone());
    let again = Request { etag: now.or_else(|| request.etag.clone()), ..request.clone() };
    let again = Some(again).filter(|it| it.text.is_some());
    let hint = match (&step, &again) {
        (None, _) => "",
        (Some(_), None) => " · press the key again to change it",
        (Some(_), Some(_)) => " · press Enter to send your text again",
    };
    Reply::Refused { text: format!("{text}{hint}"), step, again }
}

fn perform(context: Context, asked: &Request) -> Result<Reply, Error> {
    let context = &with_expected(context, asked);
    let (id, text) = (asked.id.clone(), asked.text.clone());
    let report = match asked.action {
        Action::Claim => {
            let request = ClaimRequest { target: Some(id), ..ClaimRequest::default() };
            let report = claim::claim(context, &request)?;
            let steps: Vec<_> = report.step.iter().filter_map(read_step).collect();
            let text = match &report.claim {
                Some(granted) => format!("claimed {} (claim {})", asked.id, granted.id),
                None => format!("no step was claimed: {}", report.why),
            };
            return Ok(Reply::Done { text, steps });
        }
        Action::Move(verb) => {
            let request = MoveRequest { verb, ids: vec![id], message: text, ..MoveRequest::default() };
            update::move_steps(context, &request)?
        }
        Action::Release => {
            release::release(context, &ReleaseRequest { ids: vec![id], ..ReleaseRequest::default() })?
        }
        Action::Attempt => {
            let (outcome, notes) = outcome_and_notes(text.as_deref().unwrap_or_default());
            update::attempt(context, &AttemptRequest { id, outcome, notes, ..AttemptRequest::default() })?
        }
        Action::Note => note::note(
            context,
            &NoteRequest { id, text: text.unwrap_or_default(), ..NoteRequest::default() },
        )?,
        Action::Add => {
            let (plan, after) = id
                .rsplit_once(':')
                .map_or((id.as_str(), None), |(plan, number)| (plan, Some(number.to_owned())));
            let title = text.unwrap_or_default();
            add::add(context, &AddRequest { plan: plan.to_owned(), title, after, ..AddRequest::default() })?
        }
        Action::Confirm => {
            // The key was pressed at a terminal, so a person confirms.
            let request =
                ConfirmRequest { id, note: text, confirmer: Confirmer::Person, ..ConfirmRequest::default() };
            confirm::confirm(context, &request)?
        }
        Action::FindUndo => return Ok(undo_question(context)),
        Action::Undo => undo::undo(context, &UndoRequest { id: Some(id), ..UndoRequest::default() })?,
    };
    Ok(reply_of(&report))
}

/// The context of a request. Most requests change a step or a plan only if it is still the version that was shown.
/// `claim` and `add` need no such check: they check under the lock whether they are possible, and overwrite no text of
/// the user. A request for an undo names no version.
fn with_expected(context: Context, asked: &Request) -> Context {
    let is_checked = matches!(
        asked.action,
        Action::Move(_) | Action::Release | Action::Attempt | Action::Note | Action::Confirm
    );
    let etag = asked.etag.clone().filter(|_| is_checked);
    Context { expected: etag.map(|it| Expected::new(vec![it])), ..context }
}

/// Splits a text such as `partly: the index is missing` into the outcome and its notes.
pub(crate) fn outcome_and_notes(text: &str) -> (String, Option<String>) {
    match text.split_once(':') {
        Some((outcome, notes)) if !notes.trim().is_empty() => {
            (outcome.trim().to_owned(), Some(notes.trim().to_owned()))
        }
        _ => (text.trim().to_owned(), None),
    }
}

fn read_step(value: &Value) -> Option<StepShape> {
    serde_json::from_value(value.clone()).ok()
}

fn reply_of(report: &ChangeReport) -> Reply {
    let steps = report.changes.iter().filter_map(|it| read_step(&it.now)).collect();
    if let Some(refused) = report.refused.first() {
        return self::refused(&refused.error);
    }
    let lines = report.changes.iter().map(|it| change::line(report.verb, it));
    let text: String = lines.map(|it| anstream::adapter::strip_str(it.trim_end()).to_string()).collect();
    Reply::Done { text, steps }
}

fn undo_question(context: &Context) -> Reply {
    let all = undo::undo_list(context);
    let Some(item) = all.into_iter().find(|it| it.blocked.is_none()) else {
        return Reply::refused("there is nothing to undo".to_owned());
    };
    let at = item.at.parse().ok().map(|it| time::ago(context.now, it)).unwrap_or_default();
    let what = match (item.of, item.paths.as_slice()) {
        (Some(id), _) => id,
        (None, [one]) => one.clone(),
        (None, all) => format!("{} files", all.len()),
    };
    let label = match item.by.as_str() {
        // The question names the other person, so that their work is not undone by mistake.
        by if !by.is_empty() && by != context.by => {
            format!("{by} {} {what}, {at}: undo it?", undo::done_words(&item.verb))
        }
        _ => format!("undo `{}` of {what}, {at}?", item.verb),
    };
    let request = Request { action: Action::Undo, id: item.id, text: None, etag: None };
    Reply::Ask(Prompt::question(label, "Enter undoes it, Esc cancels".to_owned(), request))
}
