//! Two branches added a step with the same number: the step of OURS keeps it, and that of THEIRS gets a free one.
//! If THEIRS added dependencies on its own step, they are updated.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::merging::Merging;
use super::places::is_archived;
use super::{Done, Resolving, Stages, with_line_ends_of};
use crate::api::error::Error;
use crate::git::Oid;
use crate::plan::change::set_text;
use crate::plan::file_name::{self, PLAN_FILE};
use crate::plan::id::{PlanId, StepId};
use crate::plan::merge::{self, Versions, markers};
use crate::plan::read::STEP_KEYS;
use crate::plan::step_number::StepNumber;
use crate::plan::{references, steps_list};
use crate::store::changed_after_removal::number_of;
use crate::store::decision::Decision;
use crate::store::transaction::{self, Transaction};
use crate::text::header_edit::{Change, NewValue};
use crate::text::yaml::Tree;

/// A step of THEIRS with its new number. Paths are relative to the plans directory.
struct Moved {
    path: PathBuf,
    to: PathBuf,
    theirs: Vec<u8>,
    /// An interrupted command has made the file.
    is_made: bool,
}

/// The old and new numbers of steps of THEIRS, in one plan.
type Numbers = BTreeMap<StepNumber, StepNumber>;

pub(super) fn renumber(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    taken: &[(PathBuf, Stages)],
    done: &mut Done,
) -> Result<(), Error> {
    let mut by_plan: BTreeMap<PathBuf, Numbers> = BTreeMap::new();
    let mut moves = Vec::new();
    for (path, stages) in taken {
        let (Some(directory), Some(number)) = (path.parent(), number_of(path)) else { continue };
        let [_, _, Some(theirs)] = stages else { continue };
        let theirs = resolving.own_version(path, theirs, false)?;
        let numbers = by_plan.entry(directory.to_path_buf()).or_default();
        let made = made_before(resolving, directory, &theirs, numbers)?;
        let is_made = made.is_some();
        let new = made.map_or_else(|| free(resolving, directory, &number, numbers), Ok)?;
        let to = directory.join(file_name::step_file(&new));
        numbers.insert(number, new);
        moves.push(Moved { path: path.clone(), to, theirs, is_made });
    }
    for (path, stages) in taken {
        let [_, Some(ours), _] = stages else { continue };
        let own = resolving.own_version(path, ours, true)?;
        let written = writing.change(&path.to_string_lossy(), &|now: &[u8]| {
            resolving.check_as_left(path, stages, now)?;
            Ok(Decision::<_, (), ()>::Write(with_line_ends_of(now, &own), ()))
        });
        written.map(drop)?;
        done.own.push(path.clone());
    }
    for moved in &moves {
        let Some(numbers) = moved.path.parent().and_then(|it| by_plan.get(it)) else { continue };
        let (name, text) = (moved.to.to_string_lossy(), renamed(moved, numbers)?);
        if !moved.is_made {
            writing.create(&name, &text)?;
        } else if !resolving.context.plans.read(&moved.to).is_ok_and(|it| it.bytes == text) {
            // A person has edited it meanwhile.
            continue;
        }
        done.own.push(moved.to.clone());
    }
    for (directory, numbers) in by_plan.iter().filter(|(directory, _)| !is_archived(directory)) {
        dependents(resolving, writing, directory, numbers, done)?;
        steps_list_of(resolving, writing, directory, numbers, done)?;
    }
    for moved in moves {
        done.set_resolved(&resolving.shown(&moved.path), None, Some(&resolving.shown(&moved.to)));
        done.clean.extend([moved.path, moved.to]);
    }
    Ok(())
}

/// The text of a step of THEIRS with the new numbers.
fn renamed(moved: &Moved, numbers: &Numbers) -> Result<Vec<u8>, Error> {
    let parts = (moved.path.parent(), number_of(&moved.to));
    // A removed step only gets another file name.
    let ((Some(directory), Some(number)), false) = (parts, is_archived(&moved.path)) else {
        return Ok(moved.theirs.clone());
    };
    let plan = plan_of(directory);
    let mut changes = followed(&plan, &moved.theirs, &[], numbers);
    changes.insert(0, set_text("id", &StepId { plan, number }.to_string()));
    transaction::edit(&moved.to.to_string_lossy(), &moved.theirs, &changes, STEP_KEYS)
}

/// The number that a step of THEIRS got from an interrupted command, which had not staged the file yet.
fn made_before(
    resolving: &Resolving<'_>,
    directory: &Path,
    theirs: &[u8],
    given: &Numbers,
) -> Result<Option<StepNumber>, Error> {
    let Some(identity) = merge::identity(theirs) else { return Ok(None) };
    let is_step = |text: &[u8]| {
        merge::identity(text).as_ref() == Some(&identity) && merge::lost(theirs, text).is_empty()
    };
    let untracked = numbers_in(resolving, directory, &["--others"])?;
    Ok(untracked.into_iter().find(|number| {
        let path = directory.join(file_name::step_file(number));
        let is_given = given.values().any(|it| it == number);
        !is_given && resolving.context.plans.read(&path).is_ok_and(|it| is_step(&it.bytes))
    }))
}

/// The numbers of the files that `git ls-files` lists.
fn numbers_in(
    resolving: &Resolving<'_>,
    directory: &Path,
    which: &[&str],
) -> Result<BTreeSet<StepNumber>, Error> {
    let call = resolving.git.call(&[&["ls-files", "-z"], which].concat());
    let listed = call.paths([resolving.plans.join(directory)]).run()?;
    let paths = listed.split(|it| *it == 0).map(|it| Path::new(OsStr::from_bytes(it)));
    Ok(paths.filter_map(number_of).collect())
}

pub(super) fn plan_of(directory: &Path) -> PlanId {
    PlanId::new(directory.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default())
}

/// A number after this one that is free in the index and in the working tree, and not in `given`.
pub(super) fn free(
    resolving: &Resolving<'_>,
    directory: &Path,
    number: &StepNumber,
    given: &Numbers,
) -> Result<StepNumber, Error> {
    let mut used = numbers_in(resolving, directory, &["--cached", "--others"])?;
    used.extend(given.values().cloned());
    let next = used.range(number.clone()..).find(|it| *it != number);
    let new = next.map_or_else(|| number.successor(), |it| number.midpoint(it));
    new.map_err(|it| {
        Error::conflict("no-room", it.to_string(), "renumber the steps around it with `planwatch move`")
    })
}

/// The dependencies of a file as step numbers of its own plan; `None` for an item that names no step of this plan.
pub(super) fn own_depends(plan: &PlanId, file: &[u8]) -> Vec<Option<StepNumber>> {
    let Some(tree) = Tree::of_file(file) else { return Vec::new() };
    let Some(list) = tree.root().get("depends") else { return Vec::new() };
    let number = |text: &str| {
        let step = references::read_item(plan, text)?;
        (step.plan == *plan).then_some(step.number)
    };
    list.items().map(|it| it.text().and_then(number)).collect()
}

/// The changes that replace old numbers by new ones in the dependencies of a file. Dependencies on steps in `but` stay.
fn followed(plan: &PlanId, file: &[u8], but: &[Option<StepNumber>], numbers: &Numbers) -> Vec<Change> {
    let all = own_depends(plan, file);
    let change = |(index, number): (usize, &Option<StepNumber>)| {
        let new = numbers.get(number.as_ref()?).filter(|_| !but.contains(number))?;
        let value = NewValue::Word(new.to_string());
        Some(Change::SetItem { key: "depends".to_owned(), index, value })
    };
    all.iter().enumerate().filter_map(change).collect()
}

/// Updates the dependencies that THEIRS added on its renumbered steps, in the other steps of the plan.
fn dependents(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    directory: &Path,
    numbers: &Numbers,
    done: &mut Done,
) -> Result<(), Error> {
    let Some(Merging { ours, theirs: other, base, .. }) = &resolving.merging else { return Ok(()) };
    let plan = plan_of(directory);
    let depends = |commit: &Oid, path: &Path| -> Result<Vec<Option<StepNumber>>, Error> {
        let mut name = format!("{commit}:").into_bytes();
        name.extend(resolving.plans.join(path).as_os_str().as_bytes());
        Ok(resolving.blobs.find(&name)?.map(|it| own_depends(&plan, &it)).unwrap_or_default())
    };
    for entry in resolving.git.tree_entries(other, &[resolving.plans.join(directory)])? {
        let path = Path::new(OsStr::from_bytes(&entry.path));
        let Ok(path) = path.strip_prefix(&resolving.plans) else { continue };
        let is_own = number_of(path).is_some_and(|it| !numbers.contains_key(&it));
        if !is_own || path.parent() != Some(directory) {
            continue;
        }
        let mut before = depends(base, path)?;
        before.extend(depends(ours, path)?);
        let theirs = depends(other, path)?;
        if !theirs.iter().flatten().any(|it| numbers.contains_key(it) && !before.contains(&Some(it.clone())))
        {
            continue;
        }
        let name = path.to_string_lossy();
        let written = writing.change(&name, &|now: &[u8]| {
            let changes = followed(&plan, now, &before, numbers);
            let new = transaction::edit(&name, now, &changes, STEP_KEYS);
            let is_open = markers::pick(now, 7).is_some();
            Ok(new.map_or(Decision::Leave(()), |it| Decision::Write(it, is_open)))
        })?;
        if matches!(written, Decision::Write(_, false)) {
            done.set_resolved(&resolving.shown(path), None, None);
            done.clean.push(path.to_path_buf());
        }
    }
    Ok(())
}

/// Merges a conflicted `plan.md` again, with the new numbers in the Steps list of THEIRS.
fn steps_list_of(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    directory: &Path,
    numbers: &Numbers,
    done: &mut Done,
) -> Result<(), Error> {
    let path = directory.join(PLAN_FILE);
    let all = resolving.conflicted()?;
    let Some([base, Some(ours), Some(theirs)]) = all.get(&path) else { return Ok(()) };
    let base = base.as_ref().map(|it| resolving.blob(it)).transpose()?;
    let (ours, theirs) = (resolving.blob(ours)?, resolving.blob(theirs)?);
    let plan = plan_of(directory);
    let moved = numbers
        .iter()
        .rev()
        .fold(theirs.clone(), |file, (from, to)| steps_list::with_moved(&plan, &file, from, to));
    let named = format!("plans/{}", path.to_string_lossy());
    let words = &resolving.context.config.words;
    let before = Versions { path: &named, base: base.as_deref(), ours: &ours, theirs: &theirs };
    let after = Versions { theirs: &moved, ..before };
    let plain = merge::merge(before, words, &resolving.lines);
    let merged = merge::merge(after, words, &resolving.lines);
    let name = path.to_string_lossy();
    let written = writing.change(&name, &|now: &[u8]| {
        // An interrupted command may have merged it already.
        let is_done = with_line_ends_of(&merged.bytes, now) == merged.bytes;
        Ok(match is_done || resolving.is_untouched(now, before, &plain) {
            true => Decision::Write(with_line_ends_of(now, &merged.bytes), ()),
            false => Decision::Leave(()),
        })
    })?;
    if merged.is_clean && matches!(written, Decision::Write(..)) {
        done.set_resolved(&resolving.shown(&path), None, None);
        done.clean.push(path);
    }
    Ok(())
}
