//! The actions of the pages' forms. Each one runs an operation in the name of the user who opened the pages.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Form};

use super::session::{Notice, Session};
use super::sign_in::{Redirect, own_path};
use super::{Web, edit, forms, guard, layout, ways};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition::Expected;
use crate::ops::add::{self, AddRequest};
use crate::ops::archive::{self, ArchiveRequest};
use crate::ops::claim::{self, ClaimRequest};
use crate::ops::confirm::{self, Answer, ConfirmRequest, Confirmer};
use crate::ops::note::{self, NoteRequest};
use crate::ops::patch::{self, PatchRequest, PlanTextRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::tick::{self, Boxes, TickRequest};
use crate::ops::undo::{self, UndoRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::ops::upsert;
use crate::plan::transitions::Verb;
use crate::serve::hints;
use crate::serve::http::etag::IfMatch;
use crate::serve::http::extract::{plan_named, step_named};
use crate::serve::http::problem::Problem;
use crate::store::transaction::{ChangeReport, Changed, Mode};
use crate::text::header_edit::NewValue;

/// The fields of a form by name. If a name occurs twice, the last value counts.
#[derive(Debug, Clone)]
pub(super) struct Submission {
    fields: BTreeMap<String, String>,
    by: String,
    confirmer: Confirmer,
}

impl Submission {
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The value of a field, or `None` if it is blank. Browsers end lines with CR LF; the returned lines end with LF.
    fn some(&self, name: &str) -> Option<String> {
        let text = self.text(name).replace("\r\n", "\n");
        (!text.trim().is_empty()).then_some(text)
    }

    /// The names and values of the fields. The values are as the browser sent them.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether the user forces the action.
    fn is_forced(&self) -> bool {
        self.text("force") == "true"
    }

    fn by(&self) -> Option<String> {
        Some(self.by.clone())
    }

    /// The id of the form's plan or step, as the requests of operations expect it.
    fn id(&self) -> Result<String, Problem> {
        let id = self.text("id");
        if id.contains(':') { step_named(id) } else { plan_named(id) }
    }
}

pub(super) async fn act(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let is_part = headers.contains_key(guard::PART);
    let fields: BTreeMap<_, _> = fields.into_iter().collect();
    let confirmer = if session.opener.is_person { Confirmer::Person } else { Confirmer::Unknown };
    let asked = Submission { fields, by: session.opener.by.clone(), confirmer };
    if let Err(problem) = may_change(&session, &asked) {
        return ways::of_action(&session, &asked, &problem, is_part);
    }
    let condition = match condition(&web, &asked).await {
        Ok(condition) => condition,
        Err(problem) => return ways::of_action(&session, &asked, &problem, is_part),
    };
    let to_do = asked.clone();
    let done = web.app.ask_if(IfMatch(condition), move |context| done(context, &to_do)).await;
    match done {
        Ok(notice) => {
            let back = own_path(asked.some("back"));
            let nth = web.sessions.note(&session, notice.clone());
            let (path, place) = back.split_once('#').map_or((back.as_str(), None), |it| (it.0, Some(it.1)));
            let joint = if path.contains('?') { '&' } else { '?' };
            let place = place.map(|it| format!("#{it}")).unwrap_or_default();
            let to = format!("{path}{joint}notice={nth}{place}");
            if is_part {
                let visit = layout::Visit { here: back, is_part, notice: None, session };
                return layout::html(&visit.notice_before(&notice, Some(&to)));
            }
            Redirect { to, cookie: None }.into_response()
        }
        Err(problem) if asked.text("do") == "text" => edit::not_saved(&web, session, &asked, problem).await,
        Err(problem) => ways::of_action(&session, &asked, &problem, is_part),
    }
}

/// What must be true when the change is made: the file is the one that the page showed, or a field has the value that the
/// page showed.
async fn condition(web: &Web, asked: &Submission) -> Result<Option<Expected>, Problem> {
    if asked.fields.contains_key("was") {
        let asked = asked.clone();
        let etag = web.app.ask_if(IfMatch(None), move |context| unchanged(context, &asked)).await?;
        return Ok(Some(Expected::new(vec![etag])));
    }
    // The form's etag is empty if there was no file when the text was shown. In this case, the text is saved only if there
    // is still no file.
    Ok(match asked.some("etag") {
        Some(etag) => Some(Expected::new(vec![etag])),
        None => asked.fields.contains_key("etag").then(Expected::no_file),
    })
}

/// Returns the etag of the step, if the detail still has the value that the form showed.
fn unchanged(context: &Context, asked: &Submission) -> Result<String, Problem> {
    let (step, _) = upsert::step(context, &asked.id()?)?;
    let key = asked.text("key");
    let now = forms::detail(&step, key).ok_or_else(|| unread("key"))?;
    if now == asked.text("was") {
        return Ok(step.etag.unwrap_or_default());
    }
    let message = format!("`{key}` was changed while the form was open; it is `{now}` now");
    Err(Error::conflict("value-changed", message, "load the page again, then repeat what you did").into())
}

fn may_change(session: &Session, asked: &Submission) -> Result<(), Problem> {
    let refused = |code, detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, code, detail));
    if session.opener.is_read_only {
        return refused("read-only", "these pages are read-only");
    }
    if !session.is_of_page(asked.text("page")) {
        let detail = "this page is from another session";
        let problem = Problem::new(StatusCode::FORBIDDEN, "page-token", detail);
        return Err(problem.hint("load the page again, then repeat what you did"));
    }
    Ok(())
}

fn done(context: &Context, asked: &Submission) -> Result<Notice, Problem> {
    let report = match asked.text("do") {
        "claim" => return claimed(context, asked),
        "undo" => {
            let (id, by, force) = (asked.some("id"), asked.by(), asked.is_forced());
            let report = undo::undo(context, &UndoRequest { id, by, force, ..UndoRequest::default() })?;
            return Ok(Notice { undo: None, ..notice_of(context, &report) });
        }
        "add" => added(context, asked)?,
        "text" => saved(context, asked)?,
        "tick" => {
            let line = asked.text("line").parse().map_err(|_| unread("line"))?;
            let boxes = Boxes::Shown { line, hash: asked.text("hash").to_owned() };
            let (ticked, by) = (asked.text("ticked") == "true", asked.by());
            tick::tick(context, &TickRequest { id: asked.id()?, boxes, ticked, by, mode: Mode::Write })?
        }
        "set" => set::set(context, &setting(asked)?)?,
        "archive" | "restore" => {
            let restores = asked.text("do") == "restore";
            let request = ArchiveRequest { plans: vec![asked.id()?], restores, ..ArchiveRequest::default() };
            archive::archive(context, &request)?
        }
        "note" => {
            let (text, kind) = (asked.some("text").unwrap_or_default(), asked.some("kind"));
            let request =
                NoteRequest { id: asked.id()?, text, kind, by: asked.by(), ..NoteRequest::default() };
            note::note(context, &request)?
        }
        "confirm" | "reject" => {
            let answer = if asked.text("do") == "reject" { Answer::No } else { Answer::Yes };
            let (phase, note, confirmer) = (asked.some("phase"), asked.some("note"), asked.confirmer);
            let request = ConfirmRequest {
                id: asked.id()?,
                phase,
                answer,
                note,
                by: asked.by(),
                confirmer,
                ..Default::default()
            };
            confirm::confirm(context, &request)?
        }
        other => on_step(context, asked, other)?,
    };
    Ok(notice_of(context, &report))
}

fn on_step(context: &Context, asked: &Submission, act: &str) -> Result<ChangeReport, Problem> {
    let (id, by, force) = (asked.id()?, asked.by(), asked.is_forced());
    Ok(match act {
        "release" => {
            let message = asked.some("message");
            release::release(
                context,
                &ReleaseRequest { ids: vec![id], message, by, force, ..ReleaseRequest::default() },
            )?
        }
        "attempt" => {
            let (outcome, notes) = (asked.text("outcome").trim().to_owned(), asked.some("notes"));
            update::attempt(
                context,
                &AttemptRequest { id, outcome, notes, by, force, ..AttemptRequest::default() },
            )?
        }
        "renumber" => {
            let after = asked.text("after").trim().to_owned();
            renumber::renumber(
                context,
                &RenumberRequest { id, after, by, force, ..RenumberRequest::default() },
            )?
        }
        other => {
            let verb = Verb::ALL.into_iter().find(|it| it.word() == other).ok_or_else(|| unread("do"))?;
            let message = asked.some("message");
            // A page shows who did what. So the file records who ended a step, even if there is no message.
            let request = MoveRequest {
                verb,
                ids: vec![id],
                is_signed: true,
                message,
                by,
                force,
                ..MoveRequest::default()
            };
            update::move_steps(context, &request)?
        }
    })
}

fn unread(name: &str) -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "usage",
        format!("the form's field `{name}` is not understood"),
    )
}

/// Replaces the text of a step or a plan.
fn saved(context: &Context, asked: &Submission) -> Result<ChangeReport, Problem> {
    let (id, text) = (asked.id()?, asked.text("text").replace("\r\n", "\n"));
    Ok(if asked.text("id").contains(':') {
        patch::patch(
            context,
            &PatchRequest { id, text: Some(text), by: asked.by(), ..PatchRequest::default() },
        )?
    } else {
        patch::plan_text(context, &PlanTextRequest { id, text })?
    })
}

/// The request that changes one of the details of a step.
fn setting(asked: &Submission) -> Result<SetRequest, Problem> {
    let (key, value) = (asked.text("key").to_owned(), asked.text("value").trim().to_owned());
    let op = match key.as_str() {
        // An empty list is written as such. If the key were removed instead, the dependencies in the text or the order of
        // the steps would apply again.
        "depends" => SetOp::List(dependencies(&value)),
        "title" => SetOp::Text(value),
        "assignee" | "priority" | "due" if value.is_empty() => SetOp::Unset,
        "assignee" | "priority" | "due" => SetOp::Text(value),
        _ => return Err(unread("key")),
    };
    let (id, by, force) = (asked.id()?, asked.by(), asked.is_forced());
    Ok(SetRequest { id, key, op, by, claim: None, force, mode: Mode::Write })
}

/// Parses the numbers and ids of steps that a person typed.
fn dependencies(typed: &str) -> Vec<NewValue> {
    let names =
        typed.split([',', ' ', ';']).map(|it| it.trim().trim_start_matches('#')).filter(|it| !it.is_empty());
    let item = |it: &str| match it.bytes().all(|it| it.is_ascii_digit()) {
        true => NewValue::Word(it.to_owned()),
        false => NewValue::Text(it.to_owned()),
    };
    names.map(item).collect()
}

fn added(context: &Context, asked: &Submission) -> Result<ChangeReport, Problem> {
    let request = AddRequest {
        plan: asked.id()?,
        title: asked.text("title").trim().to_owned(),
        after: asked.some("after"),
        depends: asked.some("waits").into_iter().collect(),
        body: asked.some("body"),
        by: asked.by(),
        may_confirm: asked.confirmer == Confirmer::Person,
        ..AddRequest::default()
    };
    Ok(add::add(context, &request)?)
}

fn claimed(context: &Context, asked: &Submission) -> Result<Notice, Problem> {
    let (target, by, force) = (Some(asked.id()?), asked.by(), asked.is_forced());
    let request = ClaimRequest { target, by, force, ..ClaimRequest::default() };
    let report = claim::claim(context, &request)?;
    let Some(step) = report.step.as_ref().filter(|_| report.claim.is_some()) else {
        return Err(Error::conflict("nothing-ready", report.why, "").into());
    };
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let undo = undo_of(context, "claim", text("path"));
    Ok(Notice { text: with_kept(context, format!("`{}`: claimed by {}", text("id"), asked.by)), undo })
}

/// The notice for a report: its changes and hints as one text, and the change that can be undone.
fn notice_of(context: &Context, report: &ChangeReport) -> Notice {
    let said: Vec<_> = report.changes.iter().map(|it| sentence(report.verb, it)).collect();
    let hints = report.hints.iter().filter_map(|it| hints::on_page(it)).map(|it| format!(". Note: {it}"));
    let said = said.join("; ") + &hints.collect::<String>();
    let changed = report.changes.iter().find(|it| it.was_written);
    let undo = changed.and_then(|it| undo_of(context, report.verb, &it.path));
    Notice { text: with_kept(context, said), undo }
}

/// Describes a change. If the id between backticks is that of a step, the page turns it into a link.
fn sentence(verb: &str, change: &Changed) -> String {
    match change.did.strip_suffix(" undone") {
        Some(undone) if verb == "undo" => format!("“{undone}” of `{}` is undone", change.id),
        _ => format!("`{}`: {}", change.id, change.did),
    }
}

/// Appends a sentence for each version of a file that another program saved at the same time. The sentence says where that
/// version is kept.
fn with_kept(context: &Context, said: String) -> String {
    let kept = context.kept.to_json();
    let places = kept.iter().flat_map(|it| it.as_array().into_iter().flatten());
    let places = places.map(|it| {
        let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        format!(
            ". Another program saved {} at the same time; that version is kept as {}",
            text("path"),
            text("kept")
        )
    });
    said + &places.collect::<String>()
}

/// The id of the newest change by this verb to this file or to a directory that contains it. `None` if there is no such
/// change, or if it cannot be undone.
fn undo_of(context: &Context, verb: &str, path: &str) -> Option<String> {
    let wrote =
        |it: &String| path.strip_prefix(it.as_str()).is_some_and(|it| it.is_empty() || it.starts_with('/'));
    // For `archive --restore`, the report has the verb `archive`, but the undo log has the verb `restore`.
    let is_verb = |it: &str| it == verb || (verb == "archive" && it == "restore");
    let changes = undo::undo_list(context);
    let found = changes.into_iter().find(|it| is_verb(&it.verb) && it.paths.iter().any(wrote))?;
    found.blocked.is_none().then_some(found.id)
}
