//! `squash PLAN N N…`: merges several steps into the first.
//!
//! The first step's file keeps its name. It gets the texts, attempts and notes of the others, in order, and their
//! dependencies, `tags` and `verify`. It has `touches` only if all steps have the key. The earlier versions of the steps'
//! files go to `_archive/<plan>/removed-<time>/`.

mod lists;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, shown_path, value};
use crate::disk::{DiskError, FileOp, Snapshot};
use crate::plan::change::{self, NewAttempt, dependency_item};
use crate::plan::file_name;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::words::StepStatus;
use crate::store::fencing::{Caller, Owner};
use crate::store::relink::{self, Gone, Orphans, Waits};
use crate::store::sync::foreign;
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{cycles, leases, load, new_step, removed, resolve, step_file, steps_list_line};
use crate::text::header_edit::{Change, NewValue};
use crate::text::typed::shell_word;
use crate::text::{front_matter, markdown};

pub use crate::api::requests::SquashRequest;

/// Merges steps in one change. After a crash, either the whole change is made or none of it.
pub fn squash(context: &Context, request: &SquashRequest) -> Result<ChangeReport, Error> {
    if request.title.trim().is_empty() {
        return Err(Error::usage("the title is empty", "give the new step a title"));
    }
    let id = resolve::plan(context, &request.plan)?;
    foreign::refresh(context, request.mode);
    let mut writing = Transaction::begin(context, "squash", request.mode)?;
    let ((plans, troubles), plan) = load::settled_all(context, &id)?;
    transaction::check_live(&plan)?;
    transaction::check_writable(context, &plan.problems)?;
    precondition::check_plan(context, &plans, &plan)?;
    let steps = chosen(context, &plan, &request.steps)?;
    foreign::refuse_live(context, steps.iter().map(|it| &it.id), request.force)?;
    let forced = check_free(context, &plans, &steps, request)?;
    let depends = depends_of_all(&plan, &steps);
    refuse_cycle(&plans, &steps, &depends)?;
    let kept = steps[0].id.clone();
    let gone: Vec<_> = steps[1..].iter().map(|it| Gone::moved(it.id.clone(), kept.clone())).collect();
    let mut left = Orphans::of(context, (&plans, &troubles), &gone, std::slice::from_ref(&kept));
    // If one of the steps does not name its dependencies clearly, the new step could lack a dependency.
    steps.iter().filter_map(|it| it.unclear_dependencies()).for_each(|it| left.add(&kept, it));
    left.allow(context, request.force)?;
    let files = steps.iter().map(|it| file_of(context, it)).collect::<Result<Vec<_>, _>>()?;
    let (texts, modes): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    refuse_disclosure(context, &steps, &modes)?;
    let (steps, depends, gone) = (&steps, &depends, &gone);
    let merged = Merged { context, plan: &plan, steps, texts: &texts, depends, request, gone, left: &left };
    let Edits { bytes, ops, hints, archived } = merged.ops(&plans, forced.as_ref())?;
    writing.batch("squash", ops)?;
    for (step, place, read) in archived {
        writing.report_save(&step, &place, &read);
    }
    if request.mode == Mode::Write {
        steps.iter().for_each(|it| leases::removed(context, &plan, it));
    }
    let mut report = ChangeReport::new("squash", request.mode);
    report.changes.push(changed(context, plans, &plan, steps, bytes));
    report.diff = std::mem::take(&mut writing.diff);
    report.hints = hints;
    report.hints.extend(steps[1..].iter().filter_map(|it| not_copied(steps[0], it)));
    report.hints.extend(left.hint());
    report.not_repointed = left.names();
    Ok(report)
}

/// Names the fields of a squashed step that the new step, which has the fields of the first one, does not get.
fn not_copied(first: &Step, squashed: &Step) -> Option<String> {
    fn is_lost<T: PartialEq>(kept: &Option<T>, other: &Option<T>) -> bool {
        other.is_some() && other != kept
    }
    let fields = [
        ("priority", is_lost(&first.priority, &squashed.priority)),
        ("assignee", is_lost(&first.assignee, &squashed.assignee)),
        ("due", is_lost(&first.due, &squashed.due)),
        ("phase", is_lost(&first.phase, &squashed.phase)),
        ("type", is_lost(&first.kind, &squashed.kind)),
        ("result", is_lost(&first.result, &squashed.result)),
    ];
    let fields = fields.into_iter().filter(|it| it.1).map(|it| it.0.to_owned());
    let metadata = squashed.metadata.iter().filter(|it| first.metadata.get(it.0) != Some(it.1));
    let custom = squashed.custom.iter().filter(|it| first.custom.get(it.0) != Some(it.1));
    let own = metadata.map(|it| format!("metadata.{}", it.0)).chain(custom.map(|it| it.0.clone()));
    let names: Vec<_> = fields.chain(own).map(|it| format!("`{it}`")).collect();
    let (names, number) = (names.join(", "), &squashed.id.number);
    (!names.is_empty()).then(|| format!("not copied from step {number}: {names}; its file is in `_archive`"))
}

/// The text of a step, and the mode of its file if it has one. Fails if the file changed since the plan was loaded.
fn file_of(context: &Context, step: &Step) -> Result<(Vec<u8>, Option<u32>), Error> {
    let Some(etag) = &step.etag else { return Ok((step_file::missing_file(step, context), None)) };
    let Snapshot { bytes, stat, .. } = context.plans.read(Path::new(&step.path))?;
    if read::etag(&bytes) != *etag {
        let path = context.plans.root().join(&step.path);
        return Err(DiskError::FileChanged { path }.into());
    }
    Ok((bytes, Some(stat.mode)))
}

/// Refuses to put the text of a file into a file that more users may read.
fn refuse_disclosure(context: &Context, steps: &[&Step], modes: &[Option<u32>]) -> Result<(), Error> {
    /// The read permissions of the group and of all other users.
    const READ: u32 = 0o044;
    let mut files = steps.iter().zip(modes);
    let Some((kept, open)) = files.next() else { return Ok(()) };
    // A step that has no file gets one with the usual permissions.
    let open = open.unwrap_or(READ);
    let is_closer = |(_, mode): &(_, &Option<u32>)| mode.is_some_and(|mode| open & READ & !mode != 0);
    let Some((other, _)) = files.find(is_closer) else { return Ok(()) };
    let shown = |step: &Step| shown_path(&context.root_name(), &step.path);
    let message = format!("more people may read `{}` than `{}`", shown(kept), shown(other));
    let hint = "give both files the same permissions with `chmod` first";
    Err(Error::conflict("permissions-differ", message, hint))
}

/// The steps that `texts` name, in the plan's order.
fn chosen<'a>(context: &Context, plan: &'a Plan, texts: &[String]) -> Result<Vec<&'a Step>, Error> {
    let mut steps: Vec<&Step> = Vec::new();
    for text in texts {
        let number = new_step::own_number(plan, text)?;
        let step = plan.find(&StepId { plan: plan.id.clone(), number }).ok_or_else(|| Error::NoSuchStep {
            name: text.clone(),
            steps: plan.steps.iter().map(|it| it.id.number.to_string()).collect(),
        })?;
        transaction::check_writable(context, &step.problems)?;
        if plan.is_doubled(step) {
            let message = format!("two files have the number {}", step.id.number);
            let hint = "rename one of them first".to_owned();
            return Err(Error::Failed { code: "duplicate-step-number", message, hint });
        }
        if !steps.iter().any(|it| it.id == step.id) {
            steps.push(step);
        }
    }
    steps.sort_unstable_by(|a, b| a.id.number.cmp(&b.id.number));
    if steps.len() < 2 {
        let hint =
            format!("name two or more, as in `planwatch squash {} 2 3 --title TITLE`", shell_word(&plan.id));
        return Err(Error::usage("one step alone cannot be squashed", hint));
    }
    Ok(steps)
}

/// Refuses steps in progress, unless the caller owns their claim or uses `--force`. If `--force` overrode a claim, returns
/// the attempt with which the merged step records this.
fn check_free(
    context: &Context,
    plans: &Plans,
    steps: &[&Step],
    request: &SquashRequest,
) -> Result<Option<NewAttempt>, Error> {
    let mut forced = None;
    for step in steps {
        let who = Caller::of(context, &step.id, request.by.as_deref(), None, request.force);
        let owner = removed::refuse_worked_on(plans, step, &who).map_err(Error::without_claim_option)?;
        if owner == Owner::Late {
            return Err(Error::ClaimLost { id: step.id.to_string(), claim: who.claim.unwrap_or_default() });
        }
        if owner == Owner::Forced {
            let notes = Some("squashed".to_owned());
            forced = Some(NewAttempt { notes, ..NewAttempt::new(context.now, &who.by, "forced") });
        }
    }
    Ok(forced)
}

/// The dependencies of the steps on other steps, each once.
fn depends_of_all(plan: &Plan, steps: &[&Step]) -> Vec<StepId> {
    let mut seen: HashSet<StepId> = steps.iter().map(|it| it.id.clone()).collect();
    let mut all: Vec<StepId> = steps.iter().flat_map(|it| plan.spelled_out(it)).collect();
    all.retain(|it| seen.insert(it.clone()));
    all
}

/// Refuses the steps if they would make a cycle: another step would depend on the new step, and the new step on it.
fn refuse_cycle(plans: &Plans, steps: &[&Step], depends: &[StepId]) -> Result<(), Error> {
    let kept = &steps[0].id;
    let is_gone = |it: &StepId| steps[1..].iter().any(|step| step.id == *it);
    let mut all = plans.clone().into_vec();
    for plan in all.iter_mut().filter(|it| !it.is_archived) {
        plan.steps.retain(|it| !is_gone(&it.id));
        for step in &mut plan.steps {
            if step.id == *kept {
                step.depends = depends.to_vec();
                step.ranges.clear();
            }
            if steps[1..].iter().any(|it| step.has_in_range(&it.id)) {
                step.depends.push(kept.clone());
            }
            step.depends.iter_mut().filter(|it| is_gone(it)).for_each(|it| it.clone_from(kept));
        }
    }
    let hint = "squash the steps between them as well, or remove a dependency first";
    // A cycle that existed before is accepted, unless the new step would be in it.
    cycles::refuse_new(all, |it| it != kept && cycles::has(plans, it), hint)
}

/// The file operations of the merge.
struct Edits {
    /// The new text of the first file.
    bytes: Vec<u8>,
    ops: Vec<FileOp>,
    /// What a person has to do.
    hints: Vec<String>,
    /// For each file of the other steps: its path, its new path, and its bytes, from which the new text was made.
    archived: Vec<(String, PathBuf, Vec<u8>)>,
}

struct Merged<'a> {
    context: &'a Context,
    plan: &'a Plan,
    steps: &'a [&'a Step],
    /// The text of each step.
    texts: &'a [Vec<u8>],
    depends: &'a [StepId],
    request: &'a SquashRequest,
    gone: &'a [Gone],
    left: &'a Orphans,
}

impl Merged<'_> {
    fn ops(&self, plans: &Plans, forced: Option<&NewAttempt>) -> Result<Edits, Error> {
        let (kept, others) = (self.steps[0], &self.steps[1..]);
        let gone: Vec<_> = others.iter().map(|it| it.id.clone()).collect();
        let line = (&kept.id, self.request.title.as_str(), self.depends);
        let (line, removed) = steps_list_line::squashed(self.context, self.plan, line, &gone)?;
        let directory = removed::removed_dir(self.context, &self.plan.id);
        let archived = |step: &Step| {
            removed::free_name(self.context, &directory, &file_name::step_file(&step.id.number))
        };
        let mut ops = Vec::new();
        let before = self.texts[0].clone();
        let after = self.text(&line.plan, &before, forced)?;
        // The merged text may be too large for planwatch to read.
        let content = read::Content::new(after.clone(), self.context.now);
        let made = read::read_step_alone(&kept.id, &kept.path, content, &self.context.config.words);
        transaction::check_writable(self.context, &made.problems)?;
        let path = PathBuf::from(&kept.path);
        if kept.has_file() {
            ops.push(FileOp::Create { path: archived(kept), bytes: before.clone() });
            ops.push(FileOp::Change { path, before, after: after.clone() });
        } else {
            ops.push(FileOp::Create { path, bytes: after.clone() });
        }
        let mut moved = Vec::new();
        for (step, text) in others.iter().zip(&self.texts[1..]).filter(|it| it.0.has_file()) {
            let to = archived(step);
            moved.push((step.path.clone(), to.clone(), text.clone()));
            ops.push(FileOp::Rename { from: PathBuf::from(&step.path), to });
        }
        ops.extend(line.op);
        if !removed.is_empty() {
            let path = removed::free_name(self.context, &directory, "steps-lines.md");
            ops.push(FileOp::Create { path, bytes: removed.into_bytes() });
        }
        let rewritten = std::slice::from_ref(&kept.id);
        let relinked =
            relink::dependants(self.context, plans, &line.plan, self.gone, (rewritten, self.left))?;
        ops.extend(relinked.ops);
        Ok(Edits { bytes: after, ops, hints: relinked.hints, archived: moved })
    }

    /// The new text of the first file: the first step's front matter with values of the other steps, and the texts of all
    /// steps below the new title.
    fn text(&self, plan: &Plan, before: &[u8], forced: Option<&NewAttempt>) -> Result<Vec<u8>, Error> {
        let kept = self.steps[0];
        let edited = transaction::edit(&kept.path, before, &self.changes(before), STEP_KEYS)?;
        let edited = self.with_lists(edited)?;
        let forced: Vec<_> = forced.into_iter().map(NewAttempt::change).collect();
        let edited = transaction::edit(&kept.path, &edited, &forced, STEP_KEYS)?;
        let header = &edited[..front_matter::split(&edited).body_start()];
        let body = self.body();
        let eol = if before.windows(2).any(|it| it == b"\r\n") { "\r\n" } else { "\n" };
        let body = body.replace("\r\n", "\n").replace('\n', eol);
        let body = if header.is_empty() { body.trim_start() } else { &body };
        let file = [header, body.as_bytes()].concat();
        let wanted = Waits { steps: self.depends, ranges: &[], gone: self.gone };
        relink::kept_waiting(self.context, plan, (&kept.id, &kept.path), file, &wanted)
    }

    fn body(&self) -> String {
        let title = self.request.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut body = format!("\n{}\n", markdown::heading(1, &title));
        for (step, bytes) in self.steps.iter().zip(self.texts).filter(|it| it.0.has_file()) {
            let text = String::from_utf8_lossy(front_matter::split(bytes).body()).into_owned();
            let text = text.trim_matches(['\r', '\n']);
            // A title that is only in the front matter becomes a heading. Otherwise it would be lost: the new title replaces
            // that of the first step, and the front matter's titles of the other steps are not copied.
            if markdown::outline(text).title().is_none() {
                body.extend(["\n", &markdown::heading(1, &step.title), "\n"]);
            }
            if !text.is_empty() {
                body.extend(["\n", text, "\n"]);
            }
        }
        body
    }

    /// The edits of the first step's front matter. They add values of the other steps, and change or remove values that
    /// are no longer true.
    fn changes(&self, before: &[u8]) -> Vec<Change> {
        let (kept, others) = (self.steps[0], &self.steps[1..]);
        let own = &kept.id.plan;
        let status = status_of_all(self.steps);
        let mut changes = Vec::new();
        changes.extend((!kept.status.is(status)).then(|| change::set_status(status)));
        changes.extend(kept.claim.as_ref().map(|_| change::remove("claim")));
        if relink::has_key(before, "title") {
            changes.push(change::set_text("title", &self.request.title));
        }
        let unread = self.unread_items();
        if relink::has_key(before, "depends") || !unread.is_empty() {
            let items = self.depends.iter().map(|it| dependency_item(own, it));
            changes.push(relink::set_depends(self.texts, own, items.chain(unread).collect()));
        }
        let is_confirmed = self.steps.iter().all(|it| !it.needs_confirmation || it.confirmed.is_some());
        if others.iter().any(|it| it.needs_confirmation) && !kept.needs_confirmation {
            changes.push(change::set_word("confirm", "required"));
        }
        changes.extend((!is_confirmed && kept.confirmed.is_some()).then(|| change::remove("confirmed")));
        // A missing `touches` counts as overlapping with every `touches` that is not empty. So if one of the steps has no
        // `touches`, the new step gets none.
        let loses_touches = kept.touches.is_some() && others.iter().any(|it| it.touches.is_none());
        changes.extend(loses_touches.then(|| change::remove("touches")));
        changes
    }

    /// Items of the steps' `depends` that cannot be read as references to steps. They are kept, so that the new step is not
    /// ready.
    fn unread_items(&self) -> Vec<NewValue> {
        let of = |(step, text): (&&Step, &Vec<u8>)| relink::unread_items(text, &step.id);
        let mut items: Vec<NewValue> = Vec::new();
        for item in self.steps.iter().zip(self.texts).filter(|it| it.0.has_file()).flat_map(of) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items
    }
}

/// The status of the new step. If any step is open: blocked if any step is blocked, else failed if any has failed, else in
/// progress if any is in progress, else pending. If all are closed: completed if any is completed, else skipped.
fn status_of_all(steps: &[&Step]) -> StepStatus {
    use StepStatus::{Blocked, Completed, Failed, InProgress, Pending, Skipped};
    let any = |status| steps.iter().any(|it| it.status.is(status));
    let all_closed = steps.iter().all(|it| it.is_closed());
    match () {
        () if all_closed && any(Completed) => Completed,
        () if all_closed => Skipped,
        () if any(Blocked) => Blocked,
        () if any(Failed) => Failed,
        () if any(InProgress) => InProgress,
        () => Pending,
    }
}

fn changed(context: &Context, plans: Plans, plan: &Plan, steps: &[&Step], bytes: Vec<u8>) -> Changed {
    let kept = steps[0];
    let content = read::Content::new(bytes, context.now);
    let now = read::read_step_of(plan, &kept.id, &kept.path, content, &context.config.words);
    let is_gone = |it: &Step| steps[1..].iter().any(|gone| gone.id == it.id);
    let mut own = plan.clone();
    own.steps.retain(|it| !is_gone(it));
    own.steps.iter_mut().filter(|it| it.id == kept.id).for_each(|it| it.clone_from(&now));
    let mut all = plans.into_vec();
    all.iter_mut().filter(|it| it.path == own.path).for_each(|it| it.clone_from(&own));
    let plans = Plans::new(all);
    let numbers: Vec<_> = steps.iter().map(|it| it.id.number.to_string()).collect();
    let did = format!("squashed from {}", numbers.join(", "));
    let (was, status) = (Some(kept.status.word().to_owned()), Some(now.status.word().to_owned()));
    let shape = value(&Views::of(context, &plans).step(&own, &now));
    Changed { was, status, ..Changed::new(context, &kept.id, (&now.title, &kept.path), did, shape) }
}

#[cfg(test)]
mod saves;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    /// Each step can be read, but all of them together are too large.
    #[test]
    fn a_step_that_no_command_could_read_is_not_made() {
        let long = |title: &str| format!("# {title}\n\n{}\n", "word ".repeat(500_000));
        let attempts: String = (0..7)
            .map(|n| format!("  - {{at: 2026-01-0{}T00:00:00Z, outcome: {}}}\n", n + 1, "x".repeat(90_000)))
            .collect();
        let logged = |title: &str| format!("---\nattempts:\n{attempts}---\n# {title}\n");
        for text in [&long as &dyn Fn(&str) -> String, &logged] {
            let machine = Machine::with(&[
                ("/plans/p/plan.md", "# P\n"),
                ("/plans/p/step-1.md", &text("One")),
                ("/plans/p/step-2.md", &text("Two")),
            ]);
            let before = machine.tree();
            let (plan, steps, title) =
                ("p".to_owned(), vec!["1".to_owned(), "2".to_owned()], "Both".to_owned());
            let request = SquashRequest { plan, steps, title, ..SquashRequest::default() };
            let refused = squash(&Context::on_model(&machine), &request).unwrap_err();
            assert!(["too-large", "file-full"].contains(&refused.code()), "{refused:?}");
            assert_eq!(machine.tree(), before);
        }
    }
}
