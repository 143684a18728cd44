//! References to steps with new numbers: dependencies, lines of Steps lists, and links, in all live plans.
//!
//! One side, [`Cause::referring`], knows the step under its old number. A reference that only this side has gets the new
//! number. A reference that the other side has means the other side's step and stays. If both sides added references to one
//! file, the file is merged again, with the new numbers in the referring side's version. References stay and are reported
//! if the file cannot be merged again. They also stay and are reported if both sides added a step with the number, and the
//! file referred to it before.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::places::is_archived;
use super::super::renamed::Renamed;
use super::super::{Done, Merging, Resolving, Side, Stages, with_line_ends_of};
use super::{Moved, plan_of};
use crate::api::error::Error;
use crate::git::Oid;
use crate::plan::file_name::{self, PLAN_FILE};
use crate::plan::id::{PlanId, StepId};
use crate::plan::merge::{self, TextMerge, Versions};
use crate::plan::model::Plan;
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::references::{self, MovedFile};
use crate::plan::steps_list;
use crate::store::changed_after_removal::number_of;
use crate::store::decision::Decision;
use crate::store::load;
use crate::store::relink::{self, Gone, Waits};
use crate::store::transaction::Transaction;
use crate::text::header_edit;

/// Why a step has a new number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::git_resolve) enum Cause {
    /// Both sides added a step with the number; the step of THEIRS got the new one.
    Added,
    MovedByOurs,
    MovedByTheirs,
    /// While the commits of THEIRS were rebased, a step that they add got another number. The commits after that one still
    /// have the old number.
    Rebased,
}

impl Cause {
    /// The side whose references to the old number mean the step.
    fn referring(self) -> Side {
        match self {
            Self::Added | Self::MovedByOurs | Self::Rebased => Side::Theirs,
            Self::MovedByTheirs => Side::Ours,
        }
    }
}

/// A step with its old and its new id.
pub(in crate::ops::git_resolve) struct Renumbered {
    pub(super) old: StepId,
    pub(super) new: StepId,
    file: MovedFile,
    /// The path of the file with the old number.
    pub(super) path: PathBuf,
    /// Whether the step's line in the Steps list has the new number already.
    is_listed: bool,
}

impl Renumbered {
    /// The steps with new numbers, in the order of their old ids.
    pub(super) fn all(moved: &[Moved]) -> Vec<Self> {
        let mut all: Vec<_> = moved.iter().filter_map(|it| Self::of(&it.path, &it.to)).collect();
        all.sort_by(|a, b| a.old.cmp(&b.old));
        all
    }

    /// None for a step in the archive: references to it are not changed.
    pub(in crate::ops::git_resolve) fn of(old: &Path, new: &Path) -> Option<Self> {
        let (from, to) = (number_of(old)?, number_of(new)?);
        let plan = plan_of(old.parent().filter(|it| !is_archived(it))?);
        let name = old.file_name()?.to_string_lossy().into_owned();
        let file = MovedFile { plan: plan.clone(), from: name, to: file_name::step_file(&to) };
        let id = |number| StepId { plan: plan.clone(), number };
        Some(Self { old: id(from), new: id(to), file, path: old.to_path_buf(), is_listed: false })
    }

    /// Like [`Self::of`], for a step that a rebase renumbered.
    pub(in crate::ops::git_resolve) fn in_rebase(old: &Path, new: &Path) -> Option<Self> {
        Some(Self { is_listed: true, ..Self::of(old, new)? })
    }

    /// The change from the new number to the old one.
    fn reversed(&self) -> Self {
        let file = MovedFile {
            plan: self.file.plan.clone(),
            from: self.file.to.clone(),
            to: self.file.from.clone(),
        };
        Self { old: self.new.clone(), new: self.old.clone(), file, path: self.path.clone(), ..*self }
    }

    fn gone(&self) -> Gone {
        Gone::moved(self.old.clone(), self.new.clone())
    }
}

/// The three versions of a file. A version is none if its commit has no such file, or if its commit is not known.
struct Known {
    base: Option<Vec<u8>>,
    ours: Option<Vec<u8>>,
    theirs: Option<Vec<u8>>,
    is_conflicted: bool,
}

/// The steps whose old numbers a file refers to, grouped by the sides that added the references.
struct Whose<'a> {
    referring: Vec<&'a Renumbered>,
    /// Both sides added references.
    both: Vec<&'a Renumbered>,
    unclear: Vec<&'a Renumbered>,
}

struct Edited<'a> {
    bytes: Vec<u8>,
    /// Whether the file has no conflict left; `None` if that has not changed.
    is_clean: Option<bool>,
    /// The steps whose references were changed.
    followed: Vec<&'a Renumbered>,
    unclear: Vec<&'a Renumbered>,
}

/// The steps in the order in which references to them can be changed one after the other. None if two steps have exchanged
/// their numbers.
fn in_order<'a>(steps: &[&'a Renumbered]) -> Option<Vec<&'a Renumbered>> {
    let (mut left, mut ordered) = (steps.to_vec(), Vec::new());
    while !left.is_empty() {
        // The highest number comes first, so that no line of a list moves past a line that still has to move. But a number
        // that another step gets must not be in use any more.
        let is_free = |it: &&Renumbered| left.iter().all(|other| other.old != it.new);
        ordered.push(left.remove(left.iter().rposition(is_free)?));
    }
    Some(ordered)
}

/// A file with the new numbers. `None` if it cannot be edited.
pub(super) fn followed(path: &Path, file: &[u8], steps: &[&Renumbered]) -> Option<Vec<u8>> {
    let plan = plan_of(path.parent()?);
    in_order(steps)?.into_iter().try_fold(file.to_vec(), |file, it| {
        let file = references::followed_step_links(&file, Some(&plan), &it.file).unwrap_or(file);
        let new = std::slice::from_ref(&it.new);
        match number_of(path) {
            Some(number) => {
                let own = StepId { plan: plan.clone(), number };
                header_edit::edit(&file, &relink::changes(&file, &own, &it.old, new), STEP_KEYS).ok()
            }
            None if plan == it.old.plan && !it.is_listed => {
                Some(steps_list::with_moved(&plan, &file, &it.old.number, &it.new.number))
            }
            None => Some(steps_list::relinked(&plan, &file, &it.old, new)),
        }
    })
}

/// Whether a file refers to the old number of a step. Also `true` if the file cannot be edited.
pub(super) fn refers(path: &Path, file: &[u8], to: &Renumbered) -> bool {
    followed(path, file, &[to]).is_none_or(|it| it != file) || is_in_section(path, file, to)
}

/// Whether a step waits for the old number because of the text of its Dependencies section.
fn is_in_section(path: &Path, file: &[u8], to: &Renumbered) -> bool {
    let (Some(number), Some(directory)) = (number_of(path), path.parent()) else { return false };
    let own = StepId { plan: plan_of(directory), number };
    !relink::has_key(file, "depends") && references::are_in_prose(&own, file, &to.old)
}

/// Reports the references of a file that were not changed.
pub(super) fn report_unclear(resolving: &Resolving<'_>, path: &Path, steps: &[&Renumbered], done: &mut Done) {
    let file = resolving.shown(path);
    for step in steps {
        let number = &step.old.number;
        let said = format!(
            "{file} refers to step {number}, which can now mean either step; the reference was not changed"
        );
        done.set_resolved(&resolving.shown(&step.path), Some(&said), None);
    }
}

/// The text of a step that OURS moved, with new numbers in the references that THEIRS added to it. None if there are no such
/// references. Also returns the steps to which references were not changed.
pub(super) fn followed_by_theirs<'s>(
    resolving: &Resolving<'_>,
    step: &Renamed,
    steps: &'s [Renumbered],
) -> (Option<Vec<u8>>, Vec<&'s Renumbered>) {
    let (path, theirs) = &step.other;
    let named = steps.iter().filter(|it| refers(path, theirs, it));
    let (mut unclear, named): (Vec<_>, Vec<_>) = named.partition(|it| refers(path, &step.base, it));
    if named.is_empty() {
        return (None, unclear);
    }
    let merged = followed(path, theirs, &named).map(|it| step.merged(resolving, &step.own, &it));
    let Some(merged) = merged.filter(|it| it.is_clean) else {
        unclear.extend(named);
        return (None, unclear);
    };
    unclear.extend(named.iter().filter(|it| is_in_section(path, &merged.bytes, it)));
    (Some(merged.bytes), unclear)
}

/// Updates the references in the files of all live plans, except in the files of `moved`.
pub(super) fn follow(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    moved: &[Moved],
    done: &mut Done,
) -> Result<(), Error> {
    let steps = Renumbered::all(moved);
    if steps.is_empty() {
        return Ok(());
    }
    let is_repeated = moved.iter().any(|it| it.is_made);
    let is_moved = |path: &PathBuf| moved.iter().any(|it| it.path == *path || it.to == *path);
    follow_all(resolving, writing, &steps, Cause::Added, (is_repeated, &is_moved), done)
}

/// Updates the references that a side added to the old numbers of steps that the other side moved.
pub(in crate::ops::git_resolve) fn follow_moved(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    mut steps: Vec<Renumbered>,
    cause: Cause,
    done: &mut Done,
) -> Result<(), Error> {
    if steps.is_empty() {
        return Ok(());
    }
    steps.sort_by(|a, b| a.old.cmp(&b.old));
    follow_all(resolving, writing, &steps, cause, (false, &|_| false), done)
}

/// Updates the references to steps, which must be in the order of their old ids, in the files of all live plans. `is_left`
/// excludes files. If `is_repeated`, also stages what an interrupted command has changed.
fn follow_all(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    steps: &[Renumbered],
    cause: Cause,
    (is_repeated, is_left): (bool, &dyn Fn(&PathBuf) -> bool),
    done: &mut Done,
) -> Result<(), Error> {
    let conflicted = resolving.conflicted()?;
    let plans = &resolving.context.plans;
    for plan in load::plan_names(resolving.context) {
        let names = plans.names(Path::new(&plan)).into_iter();
        let paths = names.map(|it| Path::new(&plan).join(it)).filter(|it| !is_left(it));
        let (lists, files): (Vec<_>, Vec<_>) =
            paths.partition(|it| it.file_name() == Some(OsStr::new(PLAN_FILE)));
        // `plan.md` comes first, because the steps are read together with the changed Steps list.
        for path in lists.into_iter().chain(files.into_iter().filter(|it| number_of(it).is_some())) {
            let Ok(now) = plans.read(&path).map(|it| it.bytes) else { continue };
            let named: Vec<&Renumbered> = steps.iter().filter(|it| may_name(&plan, &now, it)).collect();
            let stages = conflicted.get(&path);
            if named.is_empty() {
                continue;
            }
            let file = References { resolving, path: &path, stages, cause };
            file.follow(writing, &named, done)?;
            if is_repeated {
                file.stage_repeated(&named, done)?;
            }
        }
    }
    Ok(())
}

/// Whether a file of a plan can refer to a step. A file of another plan must contain the name of the step's plan, which may
/// be percent-encoded.
fn may_name(plan: &str, file: &[u8], step: &Renumbered) -> bool {
    let of = &step.old.plan;
    let has = |text: &[u8]| file.windows(text.len()).any(|it| it == text);
    PlanId::new(plan) == *of || !of.as_str().is_ascii() || file.contains(&b'%') || has(of.as_str().as_bytes())
}

struct References<'a> {
    resolving: &'a Resolving<'a>,
    path: &'a Path,
    stages: Option<&'a Stages>,
    cause: Cause,
}

impl<'a> References<'a> {
    fn follow(
        &self,
        writing: &mut Transaction<'_>,
        named: &[&'a Renumbered],
        done: &mut Done,
    ) -> Result<(), Error> {
        let path = self.path;
        let name = path.to_string_lossy();
        let known = self.known(&self.resolving.context.plans.read(path)?.bytes)?;
        let written = writing.change(&name, &|now: &[u8]| {
            let edited = self.edited(now, &known, named);
            Ok(match edited.bytes == now && edited.is_clean != Some(true) {
                true => Decision::Leave(edited.unclear),
                false => Decision::Write(edited.bytes, (edited.is_clean, edited.followed, edited.unclear)),
            })
        })?;
        let unclear = match written {
            Decision::Leave(unclear) => unclear,
            Decision::Write(_, (is_clean, followed, unclear)) => {
                if is_clean.unwrap_or(!known.is_conflicted || done.clean.iter().any(|it| it == path)) {
                    self.report_clean(&followed, done);
                    done.clean.push(path.to_path_buf());
                }
                unclear
            }
        };
        match self.cause {
            Cause::Added => report_unclear(self.resolving, path, &unclear, done),
            Cause::MovedByOurs | Cause::MovedByTheirs | Cause::Rebased => {
                self.report_unclear_moved(&unclear, done);
            }
        }
        Ok(())
    }

    fn report_clean(&self, followed: &[&Renumbered], done: &mut Done) {
        let file = self.resolving.shown(self.path);
        if self.cause == Cause::Added {
            return done.set_resolved(&file, None, None);
        }
        for step in followed {
            let (old, new) = (&step.old.number, &step.new.number);
            let said = format!("step {old} was moved and is now {new}; the reference to it was changed");
            done.decide(file.clone(), said);
        }
    }

    fn report_unclear_moved(&self, unclear: &[&Renumbered], done: &mut Done) {
        for step in unclear {
            let (old, new) = (&step.old.number, &step.new.number);
            let said =
                format!("step {old} was moved and is now {new}; the reference to step {old} was not changed");
            done.decide(self.resolving.shown(self.path), said);
        }
    }

    /// Marks the file to be staged if an earlier command changed it but was interrupted before it staged the file.
    fn stage_repeated(&self, named: &[&'a Renumbered], done: &mut Done) -> Result<(), Error> {
        let entries = self.resolving.git.index_entries(&[self.resolving.plans.join(self.path)])?;
        let Some(staged) = entries.iter().find(|it| it.stage == 0) else { return Ok(()) };
        let (staged, now) =
            (self.resolving.blob(&staged.oid)?, self.resolving.context.plans.read(self.path)?.bytes);
        let edited = self.edited(&staged, &self.known(&staged)?, named).bytes;
        if edited != staged && with_line_ends_of(&now, &edited) == now {
            done.clean.push(self.path.to_path_buf());
        }
        Ok(())
    }

    /// The file with the new numbers, and the steps whose references cannot be attributed to a side.
    fn edited<'s>(&self, now: &[u8], known: &Known, named: &[&'s Renumbered]) -> Edited<'s> {
        let Whose { referring, both, mut unclear } = match self.cause {
            Cause::Rebased => self.whose_after_rebase(now, known, named),
            _ => self.whose(now, known, named),
        };
        let mut wanted = [&referring[..], &both[..]].concat();
        wanted.sort_by(|a, b| a.old.cmp(&b.old));
        if (known.is_conflicted || !both.is_empty())
            && !wanted.is_empty()
            && let Some((bytes, is_clean)) = self.merged_again(now, known, &wanted)
        {
            unclear.extend(wanted.iter().filter(|it| is_in_section(self.path, &bytes, it)));
            return Edited { bytes, is_clean: Some(is_clean), followed: wanted, unclear };
        }
        unclear.extend(both);
        let edited =
            followed(self.path, now, &referring).and_then(|it| self.kept_waiting(now, it, &referring));
        let Some(bytes) = edited else {
            unclear.extend(referring);
            return Edited { bytes: now.to_vec(), is_clean: None, followed: Vec::new(), unclear };
        };
        // A number that a step left can be the new number of another one.
        let is_given = |it: &Renumbered| referring.iter().any(|other| other.new == it.old);
        let is_left = |it: &&Renumbered| refers(self.path, &bytes, it) && !is_given(it);
        let (left, followed): (Vec<_>, Vec<_>) = referring.iter().partition(|it| is_left(it));
        unclear.extend(left);
        Edited { bytes, is_clean: None, followed, unclear }
    }

    fn whose<'s>(&self, now: &[u8], known: &Known, named: &[&'s Renumbered]) -> Whose<'s> {
        let mut whose = Whose { referring: Vec::new(), both: Vec::new(), unclear: Vec::new() };
        let is_added = self.cause == Cause::Added;
        let (side, other) = match self.cause.referring() {
            Side::Ours => (&known.ours, &known.theirs),
            Side::Theirs => (&known.theirs, &known.ours),
        };
        for step in named {
            let has = |of: &Option<Vec<u8>>| of.as_ref().is_some_and(|it| refers(self.path, it, step));
            let is_in_side = has(side);
            let is_there = refers(self.path, now, step) || known.is_conflicted && is_in_side;
            if !is_there {
                continue;
            }
            match (has(&known.base), has(other)) {
                (true, _) if is_added => whose.unclear.push(*step),
                (_, false) if is_added || is_in_side => whose.referring.push(*step),
                (false, true) if is_in_side => whose.both.push(*step),
                // The side that moved the step changed the references of the base, so this one is to another step.
                _ => {}
            }
        }
        whose
    }

    /// The references of THEIRS that the rebase left as they were. If some of them have new numbers already, an old number
    /// can be the new one of another step, so the others are unclear.
    fn whose_after_rebase<'s>(&self, now: &[u8], known: &Known, named: &[&'s Renumbered]) -> Whose<'s> {
        let mut whose = Whose { referring: Vec::new(), both: Vec::new(), unclear: Vec::new() };
        let Some(theirs) = &known.theirs else { return whose };
        let has = |file: &[u8], step: &Renumbered| refers(self.path, file, step);
        let has_new = |file: &[u8], step: &Renumbered| has(file, &step.reversed());
        let named: Vec<_> = named.iter().copied().filter(|it| has(theirs, it)).collect();
        if named.iter().all(|it| has_new(now, it)) {
            return whose;
        }
        let is_left = |it: &&Renumbered| has(now, it) && (has_new(theirs, it) || !has_new(now, it));
        if !named.iter().all(is_left) {
            whose.unclear = named.into_iter().filter(|it| has(now, it)).collect();
            return whose;
        }
        for step in named {
            let [base, ours] =
                [&known.base, &known.ours].map(|it| it.as_ref().is_some_and(|it| has(it, step)));
            let of = if base {
                &mut whose.unclear
            } else if ours {
                &mut whose.both
            } else {
                &mut whose.referring
            };
            of.push(step);
        }
        whose
    }

    /// The merge with the new numbers in the referring side, and whether it has no conflict. `None` if the file is not as
    /// the merge left it, if a side has no such file, or if the version of the referring side cannot be edited.
    fn merged_again(&self, now: &[u8], known: &Known, steps: &[&Renumbered]) -> Option<(Vec<u8>, bool)> {
        let (Some(ours), Some(theirs)) = (&known.ours, &known.theirs) else { return None };
        let side = self.cause.referring();
        let moved = followed(self.path, if side == Side::Ours { ours } else { theirs }, steps)?;
        let named = format!("plans/{}", self.path.to_string_lossy());
        let before = Versions { path: &named, base: known.base.as_deref(), ours, theirs };
        let after = match side {
            Side::Ours => Versions { ours: &moved, ..before },
            Side::Theirs => Versions { theirs: &moved, ..before },
        };
        let (plain, merged) = (self.resolving.merge(before), self.resolving.merge(after));
        let base = known.base.as_deref().unwrap_or_default();
        let by_lines = || self.resolving.lines.merge(base, ours, theirs);
        let is_by_git =
            || by_lines().is_some_and(|it| it.is_clean && with_line_ends_of(&it.bytes, now) == it.bytes);
        // An interrupted command may have merged the file already.
        let is_done = || with_line_ends_of(&merged.bytes, now) == merged.bytes;
        let is_untouched = self.resolving.is_untouched(now, before, &plain) || is_by_git() || is_done();
        is_untouched.then(|| (with_line_ends_of(now, &merged.bytes), merged.is_clean))
    }

    /// A step whose Dependencies section names an old number gets a `depends` with the new number, as with `move`.
    fn kept_waiting(&self, before: &[u8], after: Vec<u8>, steps: &[&Renumbered]) -> Option<Vec<u8>> {
        let Some(number) =
            number_of(self.path).filter(|_| steps.iter().any(|it| is_in_section(self.path, before, it)))
        else {
            return Some(after);
        };
        let plan = load::existing_plan(self.resolving.context, &plan_of(self.path.parent()?)).ok()?;
        let id = StepId { plan: plan.id.clone(), number };
        waiting_as_before(
            self.resolving,
            (&plan, &plan),
            (&id, self.path, before),
            (&id, self.path, after),
            steps,
        )
    }

    fn known(&self, now: &[u8]) -> Result<Known, Error> {
        let resolving = self.resolving;
        if let Some([base, ours, theirs]) = self.stages {
            let side = |oid: &Option<Oid>, is_ours| {
                let version = oid.as_ref().map(|it| resolving.own_version(self.path, it, is_ours));
                version.transpose().map(|it| it.map(|it| it.text))
            };
            let base = base.as_ref().map(|it| resolving.blob(it)).transpose()?;
            let (ours, theirs) = (side(ours, true)?, side(theirs, false)?);
            return Ok(Known { base, ours, theirs, is_conflicted: true });
        }
        let [base, ours, theirs] = match &resolving.merging {
            Some(Merging { base, ours, theirs, .. }) => [base, ours, theirs].map(|it| Some(it.clone())),
            // While a stash is applied, no commit is merged.
            None => [None, resolving.git.head_commit()?, None],
        };
        let of = |commit: Option<Oid>| commit.map(|it| self.version(&it, now)).transpose();
        let (base, ours, theirs) = (of(base)?.flatten(), of(ours)?.flatten(), of(theirs)?.flatten());
        Ok(Known { base, ours, theirs, is_conflicted: false })
    }

    /// The file in a commit. The file of a step is found even if it has another name there.
    fn version(&self, commit: &Oid, now: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let resolving = self.resolving;
        let mut name = format!("{commit}:").into_bytes();
        name.extend(resolving.plans.join(self.path).as_os_str().as_bytes());
        let identity = merge::identity(now);
        let is_other =
            |it: &[u8]| identity.is_some() && merge::identity(it).is_some_and(|it| Some(it) != identity);
        let same = resolving.blobs.find(&name)?.filter(|it| !is_other(it));
        let (None, Some(_), Some(directory)) = (&same, &identity, self.path.parent()) else {
            return Ok(same);
        };
        for entry in resolving.git.tree_entries(commit, &[resolving.plans.join(directory)])? {
            if number_of(Path::new(OsStr::from_bytes(&entry.path))).is_some() {
                let text = resolving.blob(&entry.oid)?;
                if merge::identity(&text) == identity {
                    return Ok(Some(text));
                }
            }
        }
        Ok(None)
    }
}

type Placed<'a, T> = (&'a StepId, &'a Path, T);

/// The file of a step, with a `depends` if the step would otherwise wait for other steps than before.
fn waiting_as_before(
    resolving: &Resolving<'_>,
    (plan_before, plan): (&Plan, &Plan),
    (id_before, path_before, before): Placed<'_, &[u8]>,
    (id, path, after): Placed<'_, Vec<u8>>,
    steps: &[&Renumbered],
) -> Option<Vec<u8>> {
    let context = resolving.context;
    let [path_before, path] = [path_before, path].map(|it| it.to_string_lossy().into_owned());
    let content = read::Content::new(before.to_vec(), context.now);
    let step = read::read_step_of(plan_before, id_before, &path_before, content, &context.config.words);
    if step.unreadable().is_some() {
        return None;
    }
    let gone: Vec<Gone> = steps.iter().map(|it| it.gone()).collect();
    let wanted = relink::followed_depends(&step, &gone);
    let wanted = Waits { steps: &wanted, ranges: &step.ranges, gone: &gone };
    relink::kept_waiting(context, plan, (id, &path), after, &wanted).ok()
}

/// The text of a renumbered step with the new numbers, as in the commit of THEIRS. All of its references mean steps of THEIRS.
pub(super) fn renumbered_text(
    resolving: &Resolving<'_>,
    moved: &Moved,
    steps: &[&Renumbered],
    own: &Renumbered,
) -> Result<Vec<u8>, Error> {
    let theirs = moved.renamed.as_ref().map_or(&moved.theirs, |it| &it.own);
    let text = followed(&moved.path, theirs, steps).unwrap_or_else(|| theirs.clone());
    if relink::has_key(&text, "depends") {
        return Ok(text);
    }
    // Without `depends`, the Steps list of THEIRS says what the step waited for.
    let Some(plan) = load::one_plan(resolving.context, &own.old.plan)? else { return Ok(text) };
    let list = match &resolving.merging {
        Some(it) => {
            let mut name = format!("{}:", it.theirs).into_bytes();
            let path = resolving.plans.join(moved.path.with_file_name(PLAN_FILE));
            name.extend(path.as_os_str().as_bytes());
            resolving.blobs.find(&name)?
        }
        None => None,
    };
    let Some(list) = list else { return Ok(text) };
    let moved_list =
        followed(&moved.path.with_file_name(PLAN_FILE), &list, steps).unwrap_or_else(|| list.clone());
    let with = |file: &[u8]| Plan { body: read::body(file).to_owned(), ..plan.clone() };
    let (before, after) = (with(&list), with(&moved_list));
    let kept = waiting_as_before(
        resolving,
        (&before, &after),
        (&own.old, &moved.path, theirs),
        (&own.new, &moved.to, text.clone()),
        steps,
    );
    Ok(kept.unwrap_or(text))
}
