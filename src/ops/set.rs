//! `set`: changes one key of a plan or a step, as a person would do in an editor.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::{NewAttempt, NewNote, dependency_item};
use crate::plan::id::{self, PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::hint_for_cycle;
use crate::plan::problem::{Code, Problem, Severity};
use crate::plan::read::{self, PLAN_KEYS, STEP_KEYS};
use crate::plan::records::NoteType;
use crate::plan::time::{Day, NotADay};
use crate::plan::transitions::Verb;
use crate::plan::words::{PlanStatus, Status, StepStatus, nearest};
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::decision::Decision;
use crate::store::fencing::{self, Caller, Owner};
use crate::store::load::{self, DecisionFiles, LoadQuery, Overlay};
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::resolve::{self, Target};
use crate::store::step_file::{self, Current, StepUpdate};
use crate::store::sync::ending::{self, Fences, StatusChange};
use crate::store::transaction::{self, ChangeReport, Mode};
use crate::store::{cycles, new_step, plan_status, program, relink, steps_list_line, typed_words};
use crate::text::header_edit::{Change, NewValue};
use crate::text::{scalar, yaml};

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetOp {
    /// Text, which may be empty or have several lines.
    Text(String),
    /// One YAML value.
    Yaml(String),
    /// All items of a list.
    List(Vec<NewValue>),
    /// Adds an item to a list, unless the list has it already.
    Add(String),
    /// Like [`SetOp::Add`], with the item as YAML.
    AddYaml(String),
    /// Removes an item from a list.
    Take(String),
    /// Like [`SetOp::Take`], with the item as YAML.
    TakeYaml(String),
    Unset,
}

impl SetOp {
    /// The operation that sets a list or another value that is not a text.
    pub(crate) fn of_json(value: &Value) -> Self {
        match NewValue::of_json(value) {
            NewValue::List(items) => Self::List(items),
            _ => Self::Yaml(scalar::json(value)),
        }
    }
}

#[derive(Debug, Clone)]
pub struct SetRequest {
    pub id: String,
    pub key: String,
    pub op: SetOp,
    pub by: Option<String>,
    pub claim: Option<String>,
    pub force: bool,
    pub mode: Mode,
}

/// Keys that cannot be set, each with the hint of the error. Most of them are written by other verbs.
const REFUSED: [(&str, &str); 8] = [
    ("id", "the file's name is the id; `planwatch move` changes it"),
    ("claim", "it is written by `claim` and removed when the work ends"),
    ("attempts", "`planwatch attempt` adds one; they are never changed"),
    ("notes", "`planwatch note` adds one; they are never changed"),
    ("confirmed", "a person types `planwatch confirm STEP`"),
    ("confirmations", "a person types `planwatch confirm PLAN --phase NAME`"),
    ("draft", "`draft` maintains it"),
    ("<<", "write merge keys in an editor"),
];

/// Keys whose value is a list. They cannot be set to a text.
pub const LISTS: [&str; 8] =
    ["tags", "files", "goals", "success_criteria", "confirm_phases", "depends", "verify", "touches"];

/// Keys whose value is one of a fixed set of words. The word is written in lower case.
const CLOSED: [&str; 5] = ["priority", "category", "kind", "order", "confirm"];

/// Keys that any caller may change. A change of any other key of a step that another worker has claimed needs `force`.
const FREE: [&str; 5] = ["title", "priority", "due", "tags", "metadata"];

/// Whether [`set`] accepts a key.
pub(crate) fn is_set_by_hand(key: &str) -> bool {
    REFUSED.iter().all(|(refused, _)| *refused != key)
}

/// Sets, extends, shrinks or removes a key. A change that would cause an error, an unknown word or an invalid date in the
/// file is refused.
pub fn set(context: &Context, request: &SetRequest) -> Result<ChangeReport, Error> {
    check_key(request)?;
    let status = match (&request.op, request.key.as_str()) {
        (SetOp::Text(word), "status") => {
            typed_words::read_word::<StepStatus>(&context.config.words, word).ok()
        }
        _ => None,
    };
    let may_end = |_: &StepId| {
        let dry = || SetRequest { mode: Mode::DryRun, ..request.clone() };
        context.key.is_some() || write(context, &dry(), &Fences::default()).is_ok()
    };
    let ids = std::slice::from_ref(&request.id);
    let of = (status, request.claim.as_deref());
    let change = StatusChange::of(context, request.mode, ids, of, &may_end);
    ending::fenced(context, change.as_ref(), |fences| write(context, request, fences))
}

/// Makes several changes of one plan's keys in one write: all of them, or none.
pub(crate) fn set_in_one_write(
    context: &Context,
    plan: &str,
    requests: &[SetRequest],
    mode: Mode,
) -> Result<ChangeReport, Error> {
    requests.iter().try_for_each(check_key)?;
    change_one_by_one(context, "set", &[plan.to_owned()], mode, |writing, id| {
        let plan = resolve::plan(context, id)?;
        plan_file::update(context, writing, &plan, &|now, bytes| set_all(context, requests, now, bytes))
    })
}

/// Decides on each change with the text that results from the earlier changes.
fn set_all(
    context: &Context,
    requests: &[SetRequest],
    plan: &Plan,
    bytes: &[u8],
) -> Result<PlanUpdate, Error> {
    let mut all = PlanUpdate::default();
    let (mut now, mut text, mut did) = (plan.clone(), bytes.to_vec(), Vec::new());
    for request in requests {
        let update = set_in_plan(context, request, &now, &text)?;
        text = transaction::edit(&plan.path, &text, &update.changes(&now), PLAN_KEYS)?;
        now =
            read::read_plan_again(plan, read::Content::new(text.clone(), context.now), &context.config.words);
        all.status = update.status.or(all.status);
        all.keys.extend(update.keys);
        all.notes.extend(update.notes);
        did.push(update.did);
    }
    all.did = did.join("; ");
    Ok(all)
}

fn check_key(request: &SetRequest) -> Result<(), Error> {
    if let Some((key, hint)) = REFUSED.iter().find(|(key, _)| *key == request.key) {
        return Err(Error::usage(format!("`{key}` cannot be set with `set`"), *hint));
    }
    if matches!(request.op, SetOp::Text(_)) && LISTS.contains(&request.key.as_str()) {
        let message = format!("`{}` is a list", request.key);
        let hint = format!("{0}+=ITEM adds one, {0}-=ITEM removes one, --yaml sets all", request.key);
        return Err(Error::usage(message, hint));
    }
    if request.key == "title" && matches!(&request.op, SetOp::Text(text) if text.trim().is_empty()) {
        return Err(Error::usage("the title is empty", "give a title"));
    }
    if let SetOp::Yaml(text) | SetOp::AddYaml(text) | SetOp::TakeYaml(text) = &request.op
        // If the text is JSON, the cause is a long key, which the editor reports.
        && serde_json::from_str::<Value>(text).is_err()
    {
        yaml_value(text)?;
    }
    if request.key.is_empty() {
        let hint = "name a key, as in `planwatch set 1 title \"New title\"`";
        return Err(Error::usage("the key is empty", hint));
    }
    Ok(())
}

fn write(context: &Context, request: &SetRequest, fences: &Fences) -> Result<ChangeReport, Error> {
    change_one_by_one(context, "set", std::slice::from_ref(&request.id), request.mode, |writing, id| {
        let target = resolve::target(context, id)?;
        refuse_other_kind(&target, &request.key)?;
        refuse_status_without_word(&target, request)?;
        match target {
            Target::Plan(plan) => plan_file::update(context, writing, &plan, &|now, bytes| {
                set_in_plan(context, request, now, bytes)
            }),
            Target::Step(step) => {
                let (by, claim) = (request.by.as_deref(), request.claim.as_deref());
                let who = fences.caller(&step.id, Caller::of(context, &step.id, by, claim, request.force));
                let decide =
                    |now: Current<'_>| Ok(Decision::Write(set_in_step(context, request, &who, now)?, ()));
                let written: Decision<_> = step_file::update_with(context, writing, &step, &decide)?;
                let Decision::Write(done, ()) = written;
                if request.key == "depends" && request.op != SetOp::Unset {
                    steps_list_line::follow_depends(context, writing, &done.before, &done.after);
                }
                Ok(done.changed)
            }
        }
    })
}

/// Refuses to set a key of plans on a step, or a key of steps on a plan, because it would never be read.
fn refuse_other_kind(target: &Target, key: &str) -> Result<(), Error> {
    let (own, other, of) = match target {
        Target::Plan(_) => (PLAN_KEYS, STEP_KEYS, "steps"),
        Target::Step(_) => (STEP_KEYS, PLAN_KEYS, "plans"),
    };
    if own.contains(&key) || !other.contains(&key) {
        return Ok(());
    }
    let hint = format!("name one of the {of}, or give your own key another name");
    Err(Error::usage(format!("`{key}` is a key of {of}"), hint))
}

/// Refuses to set a step's status as YAML, or to remove it. That would not end the claim of the step.
fn refuse_status_without_word(target: &Target, request: &SetRequest) -> Result<(), Error> {
    if !matches!(target, Target::Step(_)) || request.key != "status" || matches!(request.op, SetOp::Text(_)) {
        return Ok(());
    }
    let hint = format!("for example `planwatch set {} status pending`", request.id);
    Err(Error::usage("the status of a step can only be set to a word", hint))
}

fn set_in_plan(
    context: &Context,
    request: &SetRequest,
    plan: &Plan,
    bytes: &[u8],
) -> Result<PlanUpdate, Error> {
    if let SetOp::Text(value) = &request.op {
        program::check_set(context, plan, &request.key, value)?;
    }
    let mut update = PlanUpdate { did: did(request), ..PlanUpdate::default() };
    match (&request.op, request.key.as_str()) {
        (SetOp::Text(word), "status") => {
            let status = typed_words::read_word::<PlanStatus>(&context.config.words, word)?;
            let (shown, own) = written_status(context, word, status);
            update.did = format!("status = {shown}");
            match own {
                Some(own) => update.keys = vec![own],
                None => update.status = Some(status),
            }
        }
        _ => update.keys = changes(request, bytes, &plan.id)?,
    }
    let after = transaction::edit(&plan.path, bytes, &update.keys, PLAN_KEYS)?;
    let content = read::Content::new(after, context.now);
    let again = read::read_plan_again(plan, content, &context.config.words);
    refuse_new_problems(&plan.problems, &again.problems)?;
    if again.order != plan.order {
        let (settled, hint) = (DecisionFiles::PlanFile(&plan.id), hint_for_cycle(again.order));
        cycles::refuse_in(context, &plan.path, settled, hint, |it| it.order = again.order)?;
    }
    let completed = PlanStatus::Completed;
    let completes = update.status.map_or_else(|| again.status.is(completed), |it| it == completed);
    if !completes || plan.status.is(completed) {
        return Ok(update);
    }
    match plan_status::check_completion(context, plan)? {
        Ok(()) => {}
        Err(error) if !request.force => return Err(error),
        Err(_) => {
            let by = request.by.clone().unwrap_or_else(|| context.by.clone());
            let text = plan_status::forced(completed);
            update.notes.push(NewNote { at: context.now, kind: NoteType::Info, by, text });
        }
    }
    Ok(update)
}

fn set_in_step(
    context: &Context,
    request: &SetRequest,
    who: &Caller,
    Current { plans, step, bytes, .. }: Current<'_>,
) -> Result<StepUpdate, Error> {
    let mut update =
        StepUpdate { did: did(request), renews: fencing::is_owner(step, who), ..StepUpdate::default() };
    let mut is_forced = false;
    if !FREE.contains(&request.key.as_str()) {
        match fencing::check(plans, step, who)? {
            Owner::Late => {
                return Ok(fencing::late_result(context, step, who, &format!("set {}", request.key), None));
            }
            owner => is_forced = owner == Owner::Forced,
        }
    }
    match (&request.op, request.key.as_str()) {
        (SetOp::Text(word), "status") => {
            let status = typed_words::read_word::<StepStatus>(&context.config.words, word)?;
            let (shown, own) = written_status(context, word, status);
            update.did = format!("status = {shown}");
            let mut update = status_update(context, step, (who, is_forced), status, update);
            if let Some(own) = own {
                (update.status, update.keys) = (None, vec![own]);
                let is_changed = transaction::edit(&step.path, bytes, &update.keys, STEP_KEYS)? != bytes;
                if is_forced && is_changed && update.attempts.is_empty() {
                    update.keys.push(overridden(context, who, bytes, &update.did));
                }
            }
            return Ok(update);
        }
        (SetOp::Add(text), "depends") => {
            update.keys = add_dependency(context, step, bytes, text)?;
        }
        (SetOp::AddYaml(yaml), "depends") => {
            let value = yaml::parse_node(yaml).ok();
            let text = value.as_ref().and_then(|it| it.root().text()).unwrap_or(yaml);
            update.keys = add_dependency(context, step, bytes, text)?;
        }
        _ => update.keys = changes(request, bytes, &step.id.plan)?,
    }
    let after = transaction::edit(&step.path, bytes, &update.keys, STEP_KEYS)?;
    // Whether a dependency is missing or closes a cycle depends on other files, so the plans are loaded with the new text.
    let own = Overlay { path: &step.path, bytes: &after };
    let plans =
        LoadQuery::step_with(&step.id, own).settled(DecisionFiles::Others(&step.path)).load(context)?.plans;
    let (around, again) = resolve::same_file(&plans, step)?;
    refuse_new_problems(&step.problems, &again.problems)?;
    if again.depends != step.depends || again.ranges != step.ranges {
        cycles::refuse_through_others(context, around, again, hint_for_cycle(around.order))?;
    }
    if is_forced && after != bytes {
        update.keys.push(overridden(context, who, bytes, &update.did));
    }
    Ok(update)
}

fn overridden(context: &Context, who: &Caller, file: &[u8], did: &str) -> Change {
    fencing::override_record(context, who, file, format!("changed with --force: {did}"))
}

/// The word that is written for a status: the project's own word as it was typed, or else the canonical word. For the
/// project's own word, also returns the change that writes it.
fn written_status(context: &Context, typed: &str, status: impl Status) -> (String, Option<Change>) {
    let typed = typed.trim();
    if !context.config.words.is_own(typed) {
        return (status.word().to_owned(), None);
    }
    let value = NewValue::Text(typed.to_owned());
    (typed.to_owned(), Some(Change::Set { key: "status".to_owned(), value }))
}

/// Sets any status, as a person can do in an editor. If this ends a claim, or changes the status against the claim of
/// another worker (`is_forced`), an attempt is recorded.
fn status_update(
    context: &Context,
    step: &Step,
    (who, is_forced): (&Caller, bool),
    status: StepStatus,
    update: StepUpdate,
) -> StepUpdate {
    let ends = fencing::ended_claim(step, context.now).filter(|_| status != StepStatus::InProgress);
    let is_recorded = ends.is_some() || (is_forced && !step.status.is(status));
    let outcome = if is_forced { "forced" } else { Verb::giving(status).outcome() };
    let notes = is_forced.then(|| status.word().to_owned());
    let attempt = NewAttempt { notes, claim: ends, ..NewAttempt::new(context.now, &who.by, outcome) };
    let removes_claim = step.claim.is_some() && status != StepStatus::InProgress;
    StepUpdate {
        status: Some(status),
        removes_claim,
        attempts: is_recorded.then_some(attempt).into_iter().collect(),
        ends_others: is_forced && is_recorded,
        ..update
    }
}

fn refuse_new_problems(before: &[Problem], after: &[Problem]) -> Result<(), Error> {
    let is_new = |it: &&Problem| !before.iter().any(|old| old.code == it.code && old.message == it.message);
    let counts = |it: &&Problem| {
        it.severity() == Severity::Error || matches!(it.code, Code::UnknownWord | Code::InvalidDate)
    };
    let Some(problem) = after.iter().filter(counts).find(is_new) else { return Ok(()) };
    Err(Error::failed(problem.code.text(), format!("refused: {}", problem.message), problem.hint.clone()))
}

fn did(request: &SetRequest) -> String {
    match &request.op {
        SetOp::Unset => format!("{} removed", request.key),
        SetOp::Add(value) | SetOp::AddYaml(value) => format!("{} += {value}", request.key),
        SetOp::Take(value) | SetOp::TakeYaml(value) => format!("{} -= {value}", request.key),
        SetOp::Text(value) => format!("{} = {}", request.key, value.lines().next().unwrap_or_default()),
        SetOp::Yaml(_) | SetOp::List(_) => format!("{} set", request.key),
    }
}

fn changes(request: &SetRequest, bytes: &[u8], plan: &PlanId) -> Result<Vec<Change>, Error> {
    let key = request.key.clone();
    let change = match &request.op {
        SetOp::Text(text) if CLOSED.contains(&key.as_str()) => {
            Change::Set { key, value: NewValue::Text(text.trim().to_lowercase()) }
        }
        SetOp::Text(text) if key == "due" => {
            let day: Day = text.parse().map_err(|it: NotADay| {
                Error::usage(it.to_string(), "for example 2026-11-21; `--unset` removes it")
            })?;
            Change::Set { key, value: NewValue::Word(day.to_string()) }
        }
        SetOp::Text(text) => Change::Set { key, value: NewValue::Text(text.clone()) },
        SetOp::Yaml(text) => Change::Set { key, value: NewValue::Yaml(text.clone()) },
        SetOp::List(items) if key == "depends" => relink::set_depends(&[bytes], plan, items.clone()),
        SetOp::List(items) => Change::Set { key, value: NewValue::List(items.clone()) },
        SetOp::Unset => Change::Remove { key },
        SetOp::Add(text) => {
            if items(bytes, &key).contains(text) {
                return Ok(Vec::new());
            }
            Change::Append { key, item: NewValue::Text(text.clone()) }
        }
        SetOp::Take(text) => Change::RemoveItem { index: index_of(bytes, &key, text, plan)?, key },
        SetOp::AddYaml(text) => {
            if place_of(bytes, &key, text)?.is_some() {
                return Ok(Vec::new());
            }
            Change::Append { key, item: NewValue::Yaml(text.clone()) }
        }
        SetOp::TakeYaml(text) => {
            let name = format!("{text}` in `{key}");
            let missing = || Error::NotFound { what: "item", name, nearest: None };
            let index = place_of(bytes, &key, text)?.ok_or_else(missing)?;
            Change::RemoveItem { index, key }
        }
    };
    Ok(vec![change])
}

fn yaml_value(text: &str) -> Result<yaml::Tree, Error> {
    yaml::parse_node(text)
        .map_err(|it| Error::usage(format!("`{text}` is not a YAML value: {it}"), "put texts in quotes"))
}

/// Finds the position of an item by its YAML value. Fails if `text` is not one YAML value.
fn place_of(bytes: &[u8], key: &str, text: &str) -> Result<Option<usize>, Error> {
    let wanted = yaml_value(text)?;
    let Some(tree) = yaml::Tree::of_file(bytes) else { return Ok(None) };
    let Some(list) = tree.root().get(key) else { return Ok(None) };
    Ok(list.items().position(|it| yaml::same(it, wanted.root())))
}

fn add_dependency(context: &Context, step: &Step, bytes: &[u8], text: &str) -> Result<Vec<Change>, Error> {
    let plan = &step.id.plan;
    // Loaded only to know which steps exist; the content of this step's file is in `step` and `bytes`.
    let whole = load::existing_plan(context, plan)?;
    let new = new_step::dependencies(context, &whole, &[text.to_owned()])?;
    let append = |it: &StepId| Change::Append { key: "depends".to_owned(), item: dependency_item(plan, it) };
    let is_written = yaml::Tree::of_file(bytes).is_some_and(|it| it.root().get("depends").is_some());
    if is_written {
        return Ok(new.iter().filter(|it| !step.depends.contains(it)).map(append).collect());
    }
    // Once the key exists, dependencies in the text no longer count, so they are copied into the key.
    let said = whole.spelled_out(step);
    let all: Vec<_> = said.iter().chain(new.iter().filter(|it| !said.contains(it))).collect();
    let items = all.into_iter().map(|it| dependency_item(plan, it)).collect();
    Ok(vec![Change::Set { key: "depends".to_owned(), value: NewValue::List(items) }])
}

fn items(bytes: &[u8], key: &str) -> Vec<String> {
    let Some(tree) = yaml::Tree::of_file(bytes) else { return Vec::new() };
    let Some(list) = tree.root().get(key) else { return Vec::new() };
    list.items().map(|it| it.text().unwrap_or_default().to_owned()).collect()
}

/// Finds the position of an item by its text. A dependency is also found by another spelling of the step.
fn index_of(bytes: &[u8], key: &str, text: &str, plan: &PlanId) -> Result<usize, Error> {
    let items = items(bytes, key);
    let step = |it: &str| {
        id::read_number(it)
            .map(|number| StepId { plan: plan.clone(), number })
            .or_else(|| id::read_step_id(it))
    };
    let is_same =
        |it: &String| it == text || (key == "depends" && step(it).is_some() && step(it) == step(text));
    items.iter().position(is_same).ok_or_else(|| {
        let nearest = nearest(text, items.iter().map(String::as_str));
        Error::NotFound { what: "item", name: format!("{text}` in `{key}"), nearest }
    })
}
