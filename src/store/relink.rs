//! Updates dependencies when a step is renumbered or removed. Prose is not changed, except links to a
//! renamed plan or step.

mod links;
mod orphans;

use std::collections::HashSet;
use std::path::PathBuf;

pub(crate) use links::{Renamed, follow_links};
pub(crate) use orphans::{MOST_NAMED, Orphans, may_name_plan, quoted, waiting_for_plan};

use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::api::views::shown_path;
use crate::disk::FileOp;
use crate::plan::change::dependency_item;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::Problem;
use crate::plan::ranges::StepRange;
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::references::{self, MovedFile};
use crate::store::{load, steps_list_line, transaction};
use crate::text::header_edit::{Change, NewValue};
use crate::text::scalar::{self, Place};
use crate::text::yaml::{Kind, Style, Tree, View};

/// The edits that replace a dependency, and hints about what a person has to do.
#[derive(Default)]
pub(crate) struct Relinked {
    pub(crate) ops: Vec<FileOp>,
    pub(crate) hints: Vec<String>,
}

/// A step that was renumbered or removed, and the steps that replace it as a dependency.
pub(crate) struct Gone {
    pub(crate) id: StepId,
    pub(crate) heirs: Vec<StepId>,
    /// Why the heirs are unknown.
    unclear: Option<Problem>,
    /// The old and the new name of the step's file, if the file is renamed.
    file: Option<MovedFile>,
}

impl Gone {
    /// The step has another id, and its dependants wait for that id.
    pub(crate) fn moved(id: StepId, to: StepId) -> Self {
        Self { id, heirs: vec![to], unclear: None, file: None }
    }

    /// Also changes the links to the step's file, if it is renamed.
    pub(crate) fn with_file(self, file: Option<MovedFile>) -> Self {
        Self { file, ..self }
    }

    /// The step is removed. Its dependants then wait for `heirs`. If not all heirs are known, the dependants keep waiting
    /// for the removed step.
    pub(crate) fn removed(id: StepId, heirs: Vec<StepId>, unclear: Option<&Problem>) -> Self {
        let heirs = if unclear.is_some() { vec![id.clone()] } else { heirs };
        Self { id, heirs, unclear: unclear.cloned(), file: None }
    }
}

/// Makes every step that waits for a gone step wait for the gone step's heirs instead.
///
/// `own` is the plan of the gone steps with its new Steps list. The files of `rewritten` steps are not changed here,
/// because the caller writes them. The files of `left` steps and of archived plans are not changed at all.
///
/// The `depends` of the dependants and the Steps lists of other plans are edited item by item. If a Dependencies section
/// names a gone step, the section's text stays, except for links to a renamed file. If a dependant would then wait for the
/// wrong steps, its file gets a `depends`, which takes precedence over the section.
pub(crate) fn dependants(
    context: &Context,
    plans: &Plans,
    own: &Plan,
    gone: &[Gone],
    (rewritten, left): (&[StepId], &Orphans),
) -> Result<Relinked, Error> {
    let mut done = Relinked::default();
    let is_gone = |it: &Step| gone.iter().any(|gone| gone.id == it.id);
    let is_other = |it: &Step| !is_gone(it) && !rewritten.contains(&it.id) && !left.has(&it.id);
    let waits = |it: &Step| gone.iter().any(|gone| it.depends_on(&gone.id));
    for plan in plans.live() {
        let waiting: Vec<_> = plan.steps.iter().filter(|it| is_other(it) && waits(it)).collect();
        if waiting.is_empty() {
            continue;
        }
        let plan = if plan.id == own.id { own.clone() } else { other(context, &plan.id, gone, &mut done)? };
        for step in waiting.into_iter().filter(|it| it.has_file()) {
            done.take(context, &plan, step, gone)?;
        }
    }
    let archived = plans.iter().filter(|it| it.is_archived).flat_map(|it| &it.steps);
    let waiting: Vec<_> =
        archived.filter(|it| !it.is_closed() && waits(it)).map(|it| it.id.clone()).collect();
    if !waiting.is_empty() {
        let named = few(&quoted(&waiting), MOST_NAMED);
        done.hints
            .push(format!("`depends` of {named} in the archive was not changed; correct it after a restore"));
    }
    Ok(done)
}

fn other(context: &Context, id: &PlanId, gone: &[Gone], done: &mut Relinked) -> Result<Plan, Error> {
    let plan = load::existing_plan(context, id)?;
    let edited = steps_list_line::relinked(context, &plan, gone)?;
    done.ops.extend(edited.op);
    Ok(edited.plan)
}

impl Relinked {
    fn take(&mut self, context: &Context, plan: &Plan, step: &Step, gone: &[Gone]) -> Result<(), Error> {
        transaction::check_writable(context, &step.problems)?;
        let path = PathBuf::from(&step.path);
        let before = context.plans.read(&path)?.bytes;
        // Some Dependencies sections name the step only in a link.
        let follow = |text: Vec<u8>, it: &MovedFile| {
            references::followed_step_links(&text, Some(&step.id.plan), it).unwrap_or(text)
        };
        let linked = gone.iter().filter_map(|it| it.file.as_ref()).fold(before.clone(), follow);
        let after = followed(step, linked, gone)?;
        let wanted = Waits { steps: &followed_depends(step, gone), ranges: &step.ranges, gone };
        let after = kept_waiting(context, plan, (&step.id, &step.path), after, &wanted)?;
        let shown = shown_path(&context.root_name(), &step.path);
        for Gone { id, .. } in gone.iter().filter(|it| references::are_in_prose(&step.id, &after, &it.id)) {
            self.hints.push(format!("the text of {shown} still names {}", named(&step.id.plan, id)));
        }
        if before != after {
            self.ops.push(FileOp::Change { path, before, after });
        }
        Ok(())
    }
}

/// Returns a step's file with the heirs in its `depends`, edited item by item.
pub(crate) fn followed(step: &Step, file: Vec<u8>, gone: &[Gone]) -> Result<Vec<u8>, Error> {
    gone.iter().try_fold(file, |file, it| {
        let changes = changes(&file, &step.id, &it.id, &it.heirs);
        transaction::edit(&step.path, &file, &changes, STEP_KEYS)
    })
}

fn named(own: &PlanId, step: &StepId) -> String {
    if step.plan == *own { format!("step-{}", step.number) } else { step.to_string() }
}

/// The dependencies of a step other than its ranges, after gone steps are replaced by their heirs. Steps that only its
/// ranges contain are not included.
pub(crate) fn followed_depends(step: &Step, gone: &[Gone]) -> Vec<StepId> {
    let mut depends = step.depends.clone();
    let held = gone.iter().map(|it| &it.id).filter(|it| step.has_in_range(it) && !step.depends.contains(it));
    depends.extend(held.cloned());
    gone.iter().fold(depends, |depends, it| {
        let is_new = |heir: &&StepId| !step.has_in_range(heir) || **heir == it.id;
        let heirs: Vec<_> = it.heirs.iter().filter(is_new).cloned().collect();
        inherited(&step.id, &depends, &it.id, &heirs)
    })
}

pub(crate) struct Waits<'a> {
    pub(crate) steps: &'a [StepId],
    pub(crate) ranges: &'a [StepRange],
    /// The steps that the ranges no longer contain.
    pub(crate) gone: &'a [Gone],
}

impl Waits<'_> {
    /// Whether a step waits for exactly these steps.
    fn are_of(&self, read: &Step) -> bool {
        if self.ranges.is_empty() && read.ranges.is_empty() {
            let steps = &read.depends;
            return steps.len() == self.steps.len() && steps.iter().all(|it| self.steps.contains(it));
        }
        // A gone step at the end of a range does not count as known: the text still names it, and it would be reported
        // as missing.
        let is_gone = |it: &StepId| self.gone.iter().any(|gone| gone.id == *it);
        let is_known = |it: &StepId| self.steps.contains(it) || read.has_in_range(it) && !is_gone(it);
        self.ranges == read.ranges
            && self.steps.iter().all(|it| read.depends_on(it))
            && read.depends.iter().all(is_known)
    }

    /// All steps as single items: first those of the ranges, without gone steps and without `own`, then `steps`.
    fn spelled_out(&self, plan: &Plan, own: &StepId) -> Vec<StepId> {
        let gone: HashSet<&StepId> = self.gone.iter().map(|it| &it.id).chain([own]).collect();
        let held = self.ranges.iter().flat_map(|it| &plan.steps[plan.places_in(it)]).map(|it| &it.id);
        let mut seen = HashSet::new();
        let all = held.filter(|it| !gone.contains(it)).chain(self.steps);
        all.filter(|it| seen.insert(*it)).cloned().collect()
    }
}

/// The dependencies of a step after `heirs` replace `old`, without the step itself.
pub(crate) fn inherited(own: &StepId, depends: &[StepId], old: &StepId, heirs: &[StepId]) -> Vec<StepId> {
    let mut wanted: Vec<StepId> = Vec::new();
    for id in depends.iter().flat_map(|it| if it == old { heirs } else { std::slice::from_ref(it) }) {
        if id != own && !wanted.contains(id) {
            wanted.push(id.clone());
        }
    }
    wanted
}

/// Returns a step's file. If the file has no `depends` and the step would wait for the wrong steps, the file gets a
/// `depends`.
pub(crate) fn kept_waiting(
    context: &Context,
    plan: &Plan,
    (id, path): (&StepId, &str),
    file: Vec<u8>,
    wanted: &Waits<'_>,
) -> Result<Vec<u8>, Error> {
    if has_key(&file, "depends") {
        return Ok(file);
    }
    let content = read::Content { bytes: file.clone(), etag: String::new(), modified: context.now };
    let read = read::read_step_of(plan, id, path, content, &context.config.words);
    if wanted.are_of(&read) {
        return Ok(file);
    }
    // "All previous steps" means the steps that exist after the change.
    let is_before = |it: &StepId| it.plan == id.plan && it.number < id.number;
    let are_before = wanted.ranges.iter().all(|it| it.last < id.number)
        && wanted.steps.iter().all(|it| is_before(it) || read.depends_on(it));
    if are_before && references::say_all(id, &file) {
        return Ok(file);
    }
    let items = wanted.spelled_out(plan, id).iter().map(|it| dependency_item(&id.plan, it)).collect();
    let change = Change::Set { key: "depends".to_owned(), value: NewValue::List(items) };
    transaction::edit(path, &file, &[change], STEP_KEYS)
}

/// The text of a front matter's `id`.
pub(crate) fn written_id(file: &[u8]) -> Option<String> {
    Tree::of_file(file)?.root().get("id")?.text().map(|it| it.to_string())
}

pub(crate) fn has_key(file: &[u8], key: &str) -> bool {
    Tree::of_file(file).is_some_and(|it| it.root().get(key).is_some())
}

/// Returns the items of a front matter's `depends` that are texts and name no step.
pub(crate) fn unread_items(file: &[u8], own: &StepId) -> Vec<NewValue> {
    let Some(tree) = Tree::of_file(file) else { return Vec::new() };
    let texts = tree.root().get("depends").into_iter().flat_map(|it| it.items()).filter_map(|it| it.text());
    let unread = texts.filter(|it| references::read_item(&own.plan, it).is_none());
    unread.map(|it| NewValue::Text(it.to_owned())).collect()
}

/// The changes that replace a step in `depends`. The first new heir replaces the old item, and the others are appended
/// to the list. Without a new heir the item is removed. If the old step is itself an heir, its item stays.
pub(crate) fn changes(file: &[u8], own: &StepId, old: &StepId, heirs: &[StepId]) -> Vec<Change> {
    let Some(tree) = Tree::of_file(file) else { return Vec::new() };
    let Some(list) = tree.root().get("depends") else { return Vec::new() };
    let read = |it: View<'_>| it.text().and_then(|it| references::read_item(&own.plan, it));
    let items: Vec<_> = list.items().map(|it| (read(it), it)).collect();
    let is_old = |(_, (step, _)): &(usize, &(Option<StepId>, View<'_>))| step.as_ref() == Some(old);
    let mut old_items = items.iter().enumerate().filter(is_old);
    let Some((index, (_, first))) = old_items.next() else { return Vec::new() };
    let is_listed = |it: &StepId| items.iter().any(|(step, _)| step.as_ref() == Some(it));
    let new =
        heirs.iter().filter(|it| *it != own && !is_listed(it)).map(|it| respelled(&own.plan, *first, it));
    let key = || "depends".to_owned();
    let mut gone: Vec<_> = old_items.map(|(index, _)| index).collect();
    let mut changes = Vec::new();
    // The old step can be an heir itself: another step has its number now, or the heirs are unknown. Then its item
    // stays.
    let mut new = new.peekable();
    match new.next_if(|_| !heirs.contains(old)) {
        None if heirs.contains(old) => {}
        Some(value) => changes.push(Change::SetItem { key: key(), index, value }),
        None => gone.insert(0, index),
    }
    changes.extend(gone.into_iter().rev().map(|index| Change::RemoveItem { key: key(), index }));
    changes.extend(new.map(|item| Change::Append { key: key(), item }));
    changes
}

/// Sets `depends`. A step that is in the `depends` of one of the files keeps the spelling from there.
pub(crate) fn set_depends<T: AsRef<[u8]>>(files: &[T], own: &PlanId, items: Vec<NewValue>) -> Change {
    let trees: Vec<Tree> = files.iter().filter_map(|it| Tree::of_file(it.as_ref())).collect();
    let lists = trees.iter().filter_map(|it| it.root().get("depends"));
    let written: Vec<(StepId, NewValue)> = lists
        .flat_map(View::items)
        .filter_map(|it| Some((references::read_item(own, it.text()?)?, NewValue::as_written(it))))
        .collect();
    let spelled = |item: NewValue| {
        let step = match &item {
            NewValue::Text(text) | NewValue::Word(text) => references::read_item(own, text),
            _ => None,
        };
        let known = step.and_then(|step| written.iter().find(|it| it.0 == step));
        known.map_or(item, |it| it.1.clone())
    };
    let value = NewValue::List(items.into_iter().map(spelled).collect());
    Change::Set { key: "depends".to_owned(), value }
}

/// Writes a step in the form of the item that it replaces, for example as `step-2`, `"p/step-2"` or `2`.
fn respelled(own: &PlanId, item: View<'_>, new: &StepId) -> NewValue {
    let Some(old) = item.text() else { return dependency_item(own, new) };
    let is_of_same_plan = references::read_item(own, old).is_some_and(|it| it.plan == new.plan);
    let text = references::respelled(own, old, new);
    let is_plain = item.style() == Style::Plain;
    let is_simple = scalar::is_plain(new.plan.as_str(), Place::Flow);
    match item.kind() {
        // If the item was a plain scalar, the same text with another number or another simple name can be one, too.
        Kind::Text if is_plain && (is_of_same_plan || is_simple) => NewValue::Word(text),
        Kind::Text => NewValue::Text(text),
        _ => dependency_item(own, new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(depends: &str, heirs: &[&str], expected: &str) {
        let own = PlanId::new("p");
        let step = |it: &str| references::read_item(&own, it).expect("it is a step");
        let heirs: Vec<_> = heirs.iter().map(|it| step(it)).collect();
        let file = format!("---\ndepends: {depends}\n---\n");
        let changes = changes(file.as_bytes(), &step("9"), &step("2"), &heirs);
        let after =
            transaction::edit("p/step-9.md", file.as_bytes(), &changes, STEP_KEYS).expect("it can be edited");
        assert_eq!(String::from_utf8_lossy(&after), format!("---\ndepends: {expected}\n---\n"));
    }

    #[test]
    fn items_keep_their_spelling() {
        check("[2]", &["4"], "[4]");
        check("[step-2]", &["4"], "[step-4]");
        check("[\"p/step-2\", 'step-1']", &["4"], "[\"p/step-4\", 'step-1']");
        check("[p:2]", &["4"], "[p:4]");
        check("['2']", &["4"], "['4']");
        check("[\"2\"]", &["q:4"], "[\"q:4\"]");
        check("[p:2]", &["q:4"], "[q:4]");
        check("[p:2]", &["1a:4"], "[\"1a:4\"]");
        check("[ 2 ]", &[], "[ ]");
        check(
            "\n  - |-\n    a\n    b:3\n  - |-\n    p:2",
            &["4"],
            "\n  - |-\n    a\n    b:3\n  - |-\n    p:4",
        );
        check("\n  - step-2   # first\n  - p:1", &["2.5"], "\n  - step-2.5   # first\n  - p:1");
        check("\n- 2\n- 3", &["q:4"], "\n- q:4\n- 3");
    }

    #[test]
    fn heirs_come_once_and_nothing_waits_for_itself() {
        check("[2, 1]", &["1"], "[1]");
        check("[step-2]", &["1", "0"], "[step-1, step-0]");
        check("[2, step-2, 3]", &["4"], "[4, 3]");
        check("[2]", &[], "[]");
        check("[2, 3]", &["9"], "[3]");
    }
}
