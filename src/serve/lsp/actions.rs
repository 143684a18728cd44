//! Code actions: fixes of problems, moves of a step (complete, fail, record an attempt), and small edits of a file.
//!
//! Most actions are workspace edits of the open text. Most of these edits are made by a dry run of the operation that a
//! command would run. If a step has a claim and its text is saved, a move of the step is a command instead, because changing
//! the claim needs the lock of the plans directory and the claim's record. New files are always made by a command. An editor
//! would create an empty file first, and others could claim that file as a step.

use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use super::client::Client;
use super::diagnostics::{Extents, line_ends};
use super::documents::{Document, Documents};
use super::edits::{Renames, workspace_edit};
use super::hints::may;
use super::positions::{lone_return, with_equal_ends};
use super::protocol::{Answer, Range as LspRange};
use super::tree::{PlanFile, Role, Tree};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::check;
use crate::ops::steps_list::{self, StepsListRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::plan::problem::{Code, Problem};
use crate::plan::transitions::Verb;
use crate::plan::words::{PlanStatus, Status, StepStatus, Words};
use crate::store::transaction::{ChangeReport, Mode};

const QUICKFIX: &str = "quickfix";
const REWRITE: &str = "refactor.rewrite";

const COMPLETE: &str = "Complete step";
const FAIL: &str = "Fail…";
const ATTEMPT: &str = "Record attempt…";

/// Placeholders for texts that a person has to write, for editors that cannot ask for them.
const WHY_FAILED: &str = "describe what failed";
const WHAT_TRIED: &str = "describe what was tried";

struct ActionContext<'a> {
    tree: &'a Tree,
    documents: &'a Documents,
    document: &'a Document,
    file: &'a PlanFile,
    client: &'a Client,
}

pub(super) fn actions(
    tree: &mut Tree,
    documents: &Documents,
    (document, file): (&Document, &PlanFile),
    client: &Client,
    (range, only): (&LspRange, Option<&[String]>),
) -> Answer {
    let is_wanted = |kind: &str| {
        let is_of =
            |it: &String| kind == it || kind.strip_prefix(it.as_str()).is_some_and(|it| it.starts_with('.'));
        only.is_none_or(|only| only.iter().any(is_of))
    };
    let mut found = Vec::new();
    let problems = tree.problems_of(file);
    let possible = possible_moves(tree, file);
    let asked = ActionContext { tree, documents, document, file, client };
    let chosen = document.offsets(range);
    if is_wanted(QUICKFIX) {
        let extents = Extents::of(&document.text);
        found.extend(problems.iter().flat_map(|it| asked.fixes(it, &extents, &chosen)));
        found.extend(asked.convert_line_ends(&chosen));
    }
    if is_wanted(REWRITE) {
        found.extend(asked.moves(&possible));
        found.extend(asked.insert_list());
        found.extend(asked.split_task(&chosen).filter(|_| possible.is_some()));
    }
    if !client.has_action_literals {
        // Such a client only supports commands.
        found = found.into_iter().filter_map(|it| it.get("command").cloned()).collect();
    }
    Ok(found.into())
}

/// The moves that a step's text allows.
struct Possible {
    verbs: Vec<Verb>,
    has_claim: bool,
    /// Why no verb may change the open text: the saved file has a claim that the text lacks.
    why_not: Option<String>,
}

fn possible_moves(tree: &mut Tree, file: &PlanFile) -> Option<Possible> {
    let key = file.key.as_ref().filter(|_| matches!(file.role, Role::Step(_)))?;
    let judged = tree.judged(key).ok()?;
    let (plan, step) = judged.step(&file.relative)?;
    let verbs = Verb::ALL.into_iter().filter(|it| may(judged, plan, step, *it)).collect();
    step.unreadable().is_none().then_some(())?;
    let own = step.claim.clone();
    let why_not = tree.saved_claim(file, own.as_deref()).map(|it| {
        let by = it.by.as_deref().unwrap_or("another worker");
        format!("the saved file has a claim of {by}, which this text lacks; load the file again")
    });
    Some(Possible { verbs, has_claim: own.is_some(), why_not })
}

impl ActionContext<'_> {
    fn edit_action(&self, title: &str, kind: &str, edit: &Value) -> Value {
        json!({"title": title, "kind": kind, "edit": edit})
    }

    fn command_action(&self, title: &str, kind: &str, command: &str, more: Value) -> Value {
        let mut argument = json!({"uri": self.document.uri});
        if let (Value::Object(argument), Value::Object(more)) = (&mut argument, more) {
            argument.extend(more);
        }
        let command = json!({"title": title, "command": command, "arguments": [argument]});
        json!({"title": title, "kind": kind, "command": command})
    }

    /// The edit that results from a dry run of an operation. `None` if the operation is refused or makes no change, or if
    /// an edit cannot express the change, for example because it creates or removes a file.
    fn dry_run(&self, act: impl FnOnce(&Context) -> Result<ChangeReport, Error>) -> Option<Value> {
        let (context, planned) = self.tree.planning().ok()?;
        let report = act(&context).ok()?;
        let ops = planned.take();
        if !report.refused.is_empty() || ops.is_empty() {
            return None;
        }
        workspace_edit(self.tree, self.documents, self.client, &ops, (Renames::Included, "check --fix")).ok()
    }

    /// The name of the open file in requests to operations. It is the path, because two files can have the same number.
    fn id(&self) -> String {
        self.tree.root.join(&self.file.relative).to_string_lossy().into_owned()
    }

    fn is_saved(&self) -> bool {
        let context = self.tree.context();
        let saved = context.ok().and_then(|it| it.plans.read(Path::new(&self.file.relative)).ok());
        saved.is_some_and(|it| self.document.is_saved_as(&it.bytes))
    }

    fn fixes(&self, problem: &Problem, extents: &Extents<'_>, chosen: &Range<usize>) -> Vec<Value> {
        let extent = extents.at(problem);
        let lines = |it: &Range<usize>| self.document.line_of(it.start)..=self.document.line_of(it.end);
        let (here, there) = (lines(&extent), lines(chosen));
        if here.end() < there.start() || there.end() < here.start() {
            return Vec::new();
        }
        let of_problem = |mut action: Value, is_preferred: bool| {
            let range = self.document.range(&extent);
            let severity = if problem.severity() == crate::plan::problem::Severity::Error { 1 } else { 2 };
            let message = &problem.message;
            let code = problem.code.text();
            let diagnostic = json!({"range": range, "severity": severity, "code": code, "source": "planwatch", "message": message});
            action["diagnostics"] = json!([diagnostic]);
            action["isPreferred"] = is_preferred.into();
            action
        };
        match problem.code {
            Code::UnknownStatus => {
                let words = self.words();
                let edit = |(nth, word): (usize, String)| {
                    let edit = json!({"range": self.document.range(&extent), "newText": word});
                    let edit = self.edit_of(&[edit]);
                    of_problem(self.edit_action(&format!("Change to `{word}`"), QUICKFIX, &edit), nth == 0)
                };
                let typed = &self.document.text[extent.clone()];
                known_words(typed, &words, &self.file.role).into_iter().enumerate().map(edit).collect()
            }
            Code::IdDiffers | Code::StaleClaim => {
                let title =
                    if problem.code == Code::IdDiffers { "Correct the id" } else { "Remove the claim" };
                let edit = self.dry_run(|it| check::fix_one(it, &self.id(), Mode::DryRun));
                edit.map(|it| of_problem(self.edit_action(title, QUICKFIX, &it), true)).into_iter().collect()
            }
            Code::MissingStepFile | Code::MissingPlanFile => {
                let title = if problem.code == Code::MissingStepFile {
                    "Make the step's file"
                } else {
                    "Make plan.md"
                };
                let more = self.missing(extents.offset(problem));
                vec![of_problem(self.command_action(title, QUICKFIX, "planwatch.fix", more), true)]
            }
            _ => Vec::new(),
        }
    }

    /// On the first line that ends with a carriage return alone, offers to make all line ends equal.
    fn convert_line_ends(&self, chosen: &Range<usize>) -> Option<Value> {
        let text = &self.document.text;
        let line = self.document.line_of(lone_return(text)?);
        let there = self.document.line_of(chosen.start)..=self.document.line_of(chosen.end);
        let hint = line_ends(self.document).filter(|_| there.contains(&line))?;
        // Editors count the lines of such a text differently. Only an edit of the whole text has the same result in all.
        let edit = json!({"range": self.document.range(&(0..text.len())), "newText": with_equal_ends(text)});
        let mut action = self.edit_action("Convert line ends", QUICKFIX, &self.edit_of(&[edit]));
        action["diagnostics"] = json!([hint]);
        Some(action)
    }

    /// The target of a command that makes a missing file. It is the step that is named in the line with the offset `at`. If
    /// no step is named there, it is this file.
    fn missing(&self, at: usize) -> Value {
        let line = self.document.line(self.document.line_of(at));
        let named = super::references::all(&self.document.text, self.file);
        let here = named.iter().find(|it| line.contains(&it.range.start));
        match here.map(|it| &it.target) {
            Some(super::references::Target::Step(id)) => json!({"uri": null, "id": id.to_string()}),
            _ => json!({}),
        }
    }

    fn words(&self) -> Words {
        self.tree.context().map(|it| it.config.words).unwrap_or_default()
    }

    fn edit_of(&self, edits: &[Value]) -> Value {
        if !self.client.has_document_changes {
            return json!({"changes": {(self.document.uri.clone()): edits}});
        }
        let of = json!({"uri": self.document.uri, "version": self.document.version});
        json!({"documentChanges": [{"textDocument": of, "edits": edits}]})
    }

    /// The moves of a step that are possible now, and the action that adds a step after this one. If the saved file has a
    /// claim that the text lacks, the moves are disabled or left out.
    fn moves(&self, possible: &Option<Possible>) -> Vec<Value> {
        let Some(Possible { verbs, has_claim, why_not }) = possible else { return Vec::new() };
        let mut found = match why_not {
            None => self.status_moves(verbs, *has_claim && self.is_saved()),
            Some(why) => self.disabled_moves(verbs, why),
        };
        if let Role::Step(number) = &self.file.role {
            let more = json!({"after": number.to_string(), "title": "New step"});
            let command = if self.client.asks_for_texts { "planwatch.ui.add" } else { "planwatch.add" };
            found.push(self.command_action("Add step after…", REWRITE, command, more));
        }
        found
    }

    /// The moves that would be possible without the claim in the saved file, as disabled actions. Empty if the client
    /// cannot show disabled actions.
    fn disabled_moves(&self, verbs: &[Verb], why: &str) -> Vec<Value> {
        let titles = [(Some(Verb::Done), COMPLETE), (Some(Verb::Fail), FAIL), (None, ATTEMPT)];
        let possible = titles.into_iter().filter(|(verb, _)| verb.is_none_or(|it| verbs.contains(&it)));
        let shown = possible.filter(|_| self.client.has_disabled_actions);
        shown.map(|(_, it)| json!({"title": it, "kind": REWRITE, "disabled": {"reason": why}})).collect()
    }

    fn status_moves(&self, verbs: &[Verb], by_command: bool) -> Vec<Value> {
        let mut found = Vec::new();
        if verbs.contains(&Verb::Done) {
            let title = COMPLETE;
            found.extend(match by_command {
                true => Some(self.command_action(title, REWRITE, "planwatch.done", json!({}))),
                false => self.moving(Verb::Done, None).map(|it| self.edit_action(title, REWRITE, &it)),
            });
        }
        if verbs.contains(&Verb::Fail) {
            found.extend(self.action_with_text(
                FAIL,
                ("planwatch.ui.fail", "planwatch.fail"),
                by_command,
                json!({"message": WHY_FAILED}),
                || self.moving(Verb::Fail, Some(WHY_FAILED)),
            ));
        }
        let attempt = || {
            let notes = Some(WHAT_TRIED.to_owned());
            let (id, outcome) = (self.id(), "tried".to_owned());
            let request =
                AttemptRequest { id, outcome, notes, mode: Mode::DryRun, ..AttemptRequest::default() };
            self.dry_run(|it| update::attempt(it, &request))
        };
        let commands = ("planwatch.ui.attempt", "planwatch.attempt");
        found.extend(self.action_with_text(
            ATTEMPT,
            commands,
            by_command,
            json!({"outcome": "tried", "message": WHAT_TRIED}),
            attempt,
        ));
        found
    }

    /// In a `plan.md` without a Steps list, offers to insert one.
    fn insert_list(&self) -> Option<Value> {
        let plan = self.file.key.as_ref().filter(|_| self.file.role == Role::Plan)?.name.clone();
        let request = StepsListRequest { plan, mode: Mode::DryRun };
        let edit = self.dry_run(|it| steps_list::insert(it, &request))?;
        let is_empty =
            edit["documentChanges"].as_array().is_some_and(Vec::is_empty) || edit["changes"] == json!({});
        (!is_empty).then(|| self.edit_action("Insert Steps list", REWRITE, &edit))
    }

    /// On a line with a task, offers to turn the task into a step.
    fn split_task(&self, chosen: &Range<usize>) -> Option<Value> {
        let line = self.document.line_of(chosen.start);
        let said = self.document.text[self.document.line(line)].trim_start();
        let rest = said.strip_prefix(['-', '*', '+'])?.trim_start();
        let is_task = ["[ ]", "[x]", "[X]"].iter().any(|it| rest.starts_with(it)) && !rest.contains("](");
        is_task.then(|| {
            self.command_action(
                "Split task into a step",
                REWRITE,
                "planwatch.splitTask",
                json!({"line": line}),
            )
        })
    }

    fn moving(&self, verb: Verb, message: Option<&str>) -> Option<Value> {
        let (ids, message) = (vec![self.id()], message.map(str::to_owned));
        let request = MoveRequest { verb, ids, message, mode: Mode::DryRun, ..MoveRequest::default() };
        self.dry_run(|it| update::move_steps(it, &request))
    }

    /// An action that needs a text from a person. If the editor cannot ask for the text, a placeholder is inserted.
    fn action_with_text(
        &self,
        title: &str,
        (asking, command): (&str, &str),
        by_command: bool,
        more: Value,
        edit: impl FnOnce() -> Option<Value>,
    ) -> Option<Value> {
        if self.client.asks_for_texts {
            return Some(self.command_action(title, REWRITE, asking, json!({})));
        }
        if by_command {
            return Some(self.command_action(title, REWRITE, command, more));
        }
        edit().map(|it| self.edit_action(title, REWRITE, &it))
    }
}

/// The words that can replace an unknown status, the nearest one first.
fn known_words(typed: &str, words: &Words, role: &Role) -> Vec<String> {
    fn of<S: Status>(typed: &str, words: &Words) -> Vec<String> {
        let typed = typed.trim_matches(['"', '\'']);
        // The nearest word can be a synonym of a status.
        let nearest = words.nearest::<S>(typed);
        let meant = nearest.as_deref().and_then(|it| words.read::<S>(it)).map(|it| it.word().to_owned());
        let mut found: Vec<String> =
            nearest.into_iter().filter(|it| S::ALL.iter().any(|known| known.word() == it)).collect();
        found.extend(meant);
        found.extend(S::ALL.iter().map(|it| it.word().to_owned()));
        let mut seen = std::collections::HashSet::new();
        found.retain(|it| seen.insert(it.clone()));
        found
    }
    match role {
        Role::Plan => of::<PlanStatus>(typed, words),
        _ => of::<StepStatus>(typed, words),
    }
}
