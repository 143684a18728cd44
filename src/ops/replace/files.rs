//! The changes of a plan's files when a list replaces its steps.

use super::Wanted;

use std::path::{Path, PathBuf};

use crate::api::error::Error;
use crate::disk::FileOp;
use crate::plan::change::{NewAttempt, NewNote, dependency_item, set_text, set_word};
use crate::plan::file_name;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::records::{Note, NoteType};
use crate::plan::step_items::StepItem;
use crate::store::fencing::{self, Caller, Owner};
use crate::store::relink::{self, Gone, Orphans, Waits};
use crate::store::step_moves::{self, MoveRequest};
use crate::store::steps_list_line::{self, LineEdit};
use crate::store::transaction::{self, Mode};
use crate::store::{load, new_step, removed, step_file};
use crate::text::front_matter;
use crate::text::header_edit::{Change, NewValue};
use crate::text::markdown::heading;
use crate::text::placeholders::one_line;

/// The changes of files, and the plan that would be read after them.
pub(super) struct Made {
    pub(super) ops: Vec<FileOp>,
    pub(super) hints: Vec<String>,
    pub(super) plan: Plan,
}

/// Collects the changes of files. `goal` contains the plans with the statuses of the list. The changes of status are checked
/// against them. Without `goal`, these changes are not checked, and the files of existing steps keep their statuses.
pub(super) fn make(
    wanted: &Wanted<'_>,
    left: &Orphans,
    is_forced: bool,
    goal: Option<&Plans>,
) -> Result<Made, Error> {
    let directory = removed::removed_dir(wanted.context, &wanted.plan.id);
    let mut making =
        Making { wanted, left, directory, ops: Vec::new(), is_forced, goal, in_text: Vec::new() };
    let (line, removed) = steps_list_line::replaced(wanted.context, wanted.plan, &line_edits(wanted))?;
    let mut steps = Vec::new();
    for item in 0..wanted.items.len() {
        let step = match wanted.step(item) {
            Some(step) => making.keep(&line.plan, item, step)?,
            None => making.add(&line.plan, item, &[])?,
        };
        steps.push(step);
    }
    making.take_away()?;
    making.ops.extend(line.op);
    if !removed.is_empty() {
        let path = making.archived("steps-lines.md");
        making.ops.push(FileOp::Create { path, bytes: removed.into_bytes() });
    }
    let Wanted { context, plans, gone, .. } = wanted;
    let named: Vec<StepId> =
        (0..wanted.items.len()).filter_map(|it| Some(wanted.step(it)?.id.clone())).collect();
    let relinked = relink::dependants(context, plans, &line.plan, gone, (&named, left))?;
    making.ops.extend(relinked.ops);
    steps.extend(wanted.left_out().map(|it| wanted.followed(it)));
    steps.sort_unstable_by(|a, b| a.id.number.cmp(&b.id.number));
    let plan = making.read_again(Plan { steps, ..line.plan });
    Ok(Made { ops: making.ops, hints: relinked.hints, plan })
}

fn line_edits<'a>(wanted: &'a Wanted<'_>) -> Vec<LineEdit<'a>> {
    let is_removed = |it: &&Gone| wanted.plan.find(&it.id).is_some_and(|it| wanted.item_of(it).is_none());
    let out = wanted.gone.iter().filter(is_removed);
    let mut edits: Vec<_> = out.map(|it| LineEdit::Out { number: &it.id.number, heirs: &it.heirs }).collect();
    for (nth, item) in wanted.items.iter().enumerate() {
        let (number, depends) = (&wanted.places.numbers[nth], wanted.depends[nth].as_deref());
        let Some(step) = wanted.step(nth) else {
            edits.push(LineEdit::New { number, title: &item.title, depends: depends.unwrap_or_default() });
            continue;
        };
        if step.id.number != *number {
            edits.push(LineEdit::Moved { from: &step.id.number, to: number });
        }
        let is_other =
            depends.is_some_and(|it| !is_same(it, &wanted.plan.spelled_out(&wanted.followed(step))));
        if is_other || (one_line(&step.title) != one_line(&item.title) && item.number.is_some()) {
            edits.push(LineEdit::Anew { number, title: &item.title, depends });
        }
    }
    edits
}

fn is_same(one: &[StepId], other: &[StepId]) -> bool {
    one.len() == other.len() && one.iter().all(|it| other.contains(it))
}

struct Making<'a> {
    wanted: &'a Wanted<'a>,
    left: &'a Orphans,
    /// The archive directory for removed steps and replaced texts.
    directory: PathBuf,
    ops: Vec<FileOp>,
    is_forced: bool,
    goal: Option<&'a Plans>,
    /// The steps whose files have no key `depends`, with the bytes of these files. The text below the front matter may name
    /// dependencies.
    in_text: Vec<(StepId, Vec<u8>)>,
}

impl Making<'_> {
    fn archived(&self, name: &str) -> PathBuf {
        removed::free_name(self.wanted.context, &self.directory, name)
    }

    fn copy(&mut self, step: &Step, bytes: Vec<u8>) {
        let path = self.archived(&file_name::step_file(&step.id.number));
        self.ops.push(FileOp::Create { path, bytes });
    }

    fn read(&self, step: &Step) -> Result<Vec<u8>, Error> {
        Ok(self.wanted.context.plans.read(Path::new(&step.path))?.bytes)
    }

    /// Writes a file for a step that has none. If the file of a removed step is at the same path, that file is copied to the
    /// archive and replaced.
    fn add(&mut self, plan: &Plan, item: usize, moved: &[Change]) -> Result<Step, Error> {
        let path = self.wanted.path(item);
        let after = self.new_file(item, moved)?;
        let old = self.wanted.removed().find(|it| it.path == path && it.has_file());
        match old {
            Some(old) => {
                let before = self.read(old)?;
                let kept = self.marked(old, &before)?;
                self.copy(old, kept);
                self.ops.push(FileOp::Change { path: path.clone().into(), before, after: after.clone() });
            }
            None => self.ops.push(FileOp::Create { path: path.clone().into(), bytes: after.clone() }),
        }
        Ok(self.as_read(plan, item, &path, after))
    }

    fn new_file(&self, item: usize, moved: &[Change]) -> Result<Vec<u8>, Error> {
        let Wanted { context, plan, items, .. } = self.wanted;
        let StepItem { title, text, keys, .. } = &items[item];
        let id = self.wanted.id(item);
        let heading = heading(1, title);
        let body = if text.is_empty() { format!("{heading}\n") } else { format!("{heading}\n\n{text}\n") };
        let mut changes = vec![set_text("id", &id.to_string())];
        let (status, rest): (Vec<_>, Vec<_>) =
            moved.iter().chain(keys).cloned().partition(|it| it.key() == "status");
        changes.push(status.into_iter().next().unwrap_or_else(|| set_word("status", "pending")));
        changes.extend(rest);
        let depends = self.wanted.depends[item].as_ref().filter(|it| !it.is_empty());
        changes.extend(depends.map(|it| set_depends(&[], &id, it)));
        changes.push(set_word("created_at", &context.now.to_string()));
        changes.extend(self.notes(item, &[]));
        changes
            .extend(new_step::maker(context, self.wanted.created_by).map(|it| set_text("created_by", &it)));
        let bytes = transaction::edit(&self.wanted.path(item), body.as_bytes(), &changes, STEP_KEYS)?;
        Ok(new_step::in_line_endings_of(plan, bytes))
    }

    /// Changes an existing step. A step without a file gets one only if the list gives it a text, notes, keys or
    /// another status.
    fn keep(&mut self, plan: &Plan, item: usize, step: &Step) -> Result<Step, Error> {
        let path = self.wanted.path(item);
        if !step.has_file() {
            let StepItem { text, keys, notes, .. } = &self.wanted.items[item];
            let has_keys = keys.iter().any(|it| it.key() != "status");
            let is_bare =
                text.is_empty() && notes.is_empty() && !has_keys && self.wanted.verb(item).is_none();
            if is_bare {
                return Ok(Step { id: self.wanted.id(item), path, ..self.wanted.followed(step) });
            }
            let moved = self.moved(item, step)?;
            return self.add(plan, item, &moved);
        }
        let before = self.read(step)?;
        let after = self.edited(plan, item, step, &before)?;
        if before != after {
            if body_of(&before) != body_of(&after) {
                self.copy(step, before.clone());
            }
            let old = PathBuf::from(&step.path);
            self.ops.push(FileOp::Change { path: old, before, after: after.clone() });
        }
        if path != step.path {
            self.ops.push(FileOp::Rename { from: step.path.clone().into(), to: path.clone().into() });
        }
        Ok(self.as_read(plan, item, &path, after))
    }

    fn edited(&self, plan: &Plan, item: usize, step: &Step, before: &[u8]) -> Result<Vec<u8>, Error> {
        let wanted = self.wanted;
        let StepItem { title, text, number, .. } = &wanted.items[item];
        let id = wanted.id(item);
        let followed = wanted.followed(step);
        let all = wanted.plan.spelled_out(&followed);
        let said = wanted.depends[item].as_ref().filter(|it| !is_same(it, &all));
        let mut changes = self.moved(item, step)?;
        changes.extend(self.changes(item, step));
        changes.extend(said.map(|it| set_depends(&[before], &id, it)));
        changes.extend(self.notes(item, &step.notes));
        let is_renamed = number.is_some() && one_line(&step.title) != one_line(title);
        changes.extend(is_renamed.then(|| set_text("title", title)));
        if id != step.id {
            let text = format!("moved with --force from {} to {}", step.id.number, id.number);
            let who = self.overriding(step)?;
            changes.extend(who.map(|it| fencing::override_record(wanted.context, &it, before, text)));
        }
        let has_id = id != step.id && relink::has_key(before, "id");
        changes.extend(has_id.then(|| set_text("id", &id.to_string())));
        let mut file = transaction::edit(&step.path, before, &changes, STEP_KEYS)?;
        if !text.is_empty() {
            file = step_file::with_text(&file, text);
        }
        let is_left = self.left.has(&step.id);
        if said.is_none() && !is_left {
            file = relink::followed(step, file, &wanted.gone)?;
        }
        if file != before {
            transaction::check_writable(wanted.context, &step.problems)?;
        }
        if is_left {
            return Ok(file);
        }
        let gone = &wanted.gone;
        let waits = match said {
            Some(steps) => Waits { steps, ranges: &[], gone },
            None => Waits { steps: &followed.depends, ranges: &followed.ranges, gone },
        };
        relink::kept_waiting(wanted.context, plan, (&id, &step.path), file, &waits)
    }

    /// The list's notes that the step does not have yet.
    fn notes(&self, item: usize, known: &[Note]) -> Vec<Change> {
        let Wanted { context, by, items, .. } = self.wanted;
        let new = items[item].notes.iter().filter(|text| known.iter().all(|it| it.text != **text));
        let note = |text: &String| {
            let by = by.map_or_else(|| context.by.clone(), str::to_owned);
            NewNote { at: context.now, kind: NoteType::Info, by, text: text.clone() }.change()
        };
        new.map(note).collect()
    }

    /// The changes that give a step the status in the list, as the verb for that status would make them. Fails if the verb
    /// would be refused.
    fn moved(&self, item: usize, step: &Step) -> Result<Vec<Change>, Error> {
        let Wanted { context, by, .. } = self.wanted;
        let Some((verb, goal)) = self.wanted.verb(item).zip(self.goal) else { return Ok(Vec::new()) };
        // The message contains the present number of the step, because that is the number to type in a command.
        if let Some(error) = step_moves::not_allowed(step, verb).filter(|_| !self.is_forced) {
            return Err(error);
        }
        let id = self.wanted.id(item);
        let Some((plan, then)) = goal.get(&id.plan).and_then(|it| Some((it, it.find(&id)?))) else {
            return Err(load::missing(context, &id.plan));
        };
        let (status, claim, run) = (step.status.clone(), step.claim.clone(), step.run.clone());
        let now = Step { status, claim, run, ..then.clone() };
        let who = self.wanted.caller(step, self.is_forced);
        let request = MoveRequest {
            is_signed: false,
            verb,
            ids: Vec::new(),
            message: None,
            by: by.map(str::to_owned),
            claim: None,
            force: self.is_forced,
            mode: Mode::Write,
        };
        let update = step_moves::decide_move(context, (goal, plan, &now), &request, &who)?;
        let changes = update.changes(&now);
        update.refusal.map_or(Ok(changes), Err)
    }

    /// The keys to which the list gives a new value, except the status, which [`Self::moved`] writes.
    fn changes(&self, item: usize, step: &Step) -> Vec<Change> {
        let text = |it: &Option<String>| it.clone().map(NewValue::Text);
        let texts = |it: &[String]| NewValue::List(it.iter().cloned().map(NewValue::Text).collect());
        let is_new = |change: &&Change| {
            let Change::Set { key, value } = change else { return false };
            let has = match key.as_str() {
                "status" => return false,
                "phase" => text(&step.phase),
                "type" => text(&step.kind),
                "assignee" => text(&step.assignee),
                "due" => step.due.map(|it| NewValue::Word(it.to_string())),
                "priority" => {
                    let shown = step.priority.unwrap_or(self.wanted.plan.priority);
                    Some(NewValue::Text(shown.word().to_owned()))
                }
                "confirm" => step.needs_confirmation.then(|| NewValue::Word("required".to_owned())),
                "tags" => Some(texts(&step.tags)),
                "touches" => step.touches.as_deref().map(texts),
                "verify" => match value {
                    NewValue::Yaml(json) => is_json(json, &step.verify).then(|| value.clone()),
                    _ => {
                        let is_plain = step.verify.iter().all(|it| it.dir.is_none() && it.timeout.is_none());
                        is_plain
                            .then(|| texts(&step.verify.iter().map(|it| it.run.clone()).collect::<Vec<_>>()))
                    }
                },
                "metadata" => match value {
                    NewValue::Yaml(json) => is_json(json, &step.metadata).then(|| value.clone()),
                    _ => None,
                },
                _ => None,
            };
            has.as_ref() != Some(value)
        };
        self.wanted.items[item].keys.iter().filter(is_new).cloned().collect()
    }

    /// Moves the files of removed steps to the archive. The files that [`Self::add`] has replaced are there already.
    fn take_away(&mut self) -> Result<(), Error> {
        let taken: Vec<String> = (0..self.wanted.items.len()).map(|it| self.wanted.path(it)).collect();
        let wanted = self.wanted;
        for step in wanted.removed().filter(|it| it.has_file() && !taken.contains(&it.path)) {
            let (path, before) = (PathBuf::from(&step.path), self.read(step)?);
            let after = self.marked(step, &before)?;
            if before != after {
                self.ops.push(FileOp::Change { path: path.clone(), before, after });
            }
            let to = self.archived(&file_name::step_file(&step.id.number));
            self.ops.push(FileOp::Rename { from: path, to });
        }
        Ok(())
    }

    /// The content of a removed step's file for the archive. If another worker had claimed the step, and `--force` allowed
    /// the removal, the content records that.
    fn marked(&self, step: &Step, before: &[u8]) -> Result<Vec<u8>, Error> {
        if step.unreadable().is_some() {
            return Ok(before.to_vec());
        }
        let forced = self.overriding(step)?.map(|it| {
            let attempt = NewAttempt::new(self.wanted.context.now, &it.by, "forced");
            NewAttempt { notes: Some("replaced".to_owned()), ..attempt }.change()
        });
        transaction::edit(&step.path, before, forced.as_slice(), STEP_KEYS)
    }

    /// The caller, if `--force` overrides the claim of another worker on the step.
    fn overriding(&self, step: &Step) -> Result<Option<Caller>, Error> {
        let Wanted { context, plans, by, .. } = self.wanted;
        let who = Caller::of(context, &step.id, *by, None, self.is_forced);
        let owner = removed::refuse_worked_on(plans, step, &who)?;
        Ok((owner == Owner::Forced).then_some(who))
    }

    fn as_read(&mut self, plan: &Plan, item: usize, path: &str, bytes: Vec<u8>) -> Step {
        let context = self.wanted.context;
        let id = self.wanted.id(item);
        // The text may name "all previous steps" as dependencies, and not all of these are known yet.
        if !relink::has_key(&bytes, "depends") {
            self.in_text.push((id.clone(), bytes.clone()));
        }
        let content = read::Content::new(bytes, context.now);
        read::read_step_of(plan, &id, path, content, &context.config.words)
    }

    /// Parses the files of `in_text` again. Now that all new numbers are known, their texts may mean other dependencies.
    fn read_again(&self, mut plan: Plan) -> Plan {
        let context = self.wanted.context;
        for (id, bytes) in &self.in_text {
            let Some(nth) = plan.steps.iter().position(|it| it.id == *id) else { continue };
            let content = read::Content::new(bytes.clone(), context.now);
            let path = plan.steps[nth].path.clone();
            plan.steps[nth] = read::read_step_of(&plan, id, &path, content, &context.config.words);
        }
        plan
    }
}

fn is_json(json: &str, value: &impl serde::Serialize) -> bool {
    let said = serde_json::from_str::<serde_json::Value>(json).ok();
    said.is_some() && said == serde_json::to_value(value).ok()
}

fn set_depends(files: &[&[u8]], own: &StepId, depends: &[StepId]) -> Change {
    let items = depends.iter().map(|it| dependency_item(&own.plan, it)).collect();
    relink::set_depends(files, &own.plan, items)
}

fn body_of(file: &[u8]) -> &[u8] {
    &file[front_matter::split(file).body_start()..]
}
