//! Gives steps new numbers if two branches each added a step with the same number. The step of OURS keeps the number, and
//! that of THEIRS gets a free one. If THEIRS added a reference to the old number, this reference gets the new number.

mod relinking;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use relinking::Renumbered;

use super::{Done, Resolving, Stages, with_line_ends_of};
use crate::api::error::Error;
use crate::plan::change::set_text;
use crate::plan::file_name;
use crate::plan::id::PlanId;
use crate::plan::merge;
use crate::plan::read::STEP_KEYS;
use crate::plan::references;
use crate::plan::step_number::StepNumber;
use crate::store::changed_after_removal::number_of;
use crate::store::decision::Decision;
use crate::store::transaction::{self, Transaction};
use crate::text::yaml::Tree;

/// A step of THEIRS with its new number. Paths are relative to the plans directory.
struct Moved {
    path: PathBuf,
    to: PathBuf,
    theirs: Vec<u8>,
    /// An earlier command, which was interrupted, has created the file at `to`.
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
        let theirs = resolving.own_version(path, theirs, false)?.text;
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
        let own = resolving.own_version(path, ours, true)?.text;
        let written = writing.change(&path.to_string_lossy(), &|now: &[u8]| {
            resolving.check_as_left(path, stages, now)?;
            Ok(Decision::<_, (), ()>::Write(with_line_ends_of(now, &own), ()))
        });
        written.map(drop)?;
        done.own.push(path.clone());
    }
    let steps = Renumbered::all(&moves);
    for moved in &moves {
        let (name, text) = (moved.to.to_string_lossy(), renamed(resolving, moved, &steps)?);
        if !moved.is_made {
            writing.create(&name, &text)?;
        } else if !resolving.context.plans.read(&moved.to).is_ok_and(|it| it.bytes == text) {
            // A person has edited the new file meanwhile.
            continue;
        }
        done.own.push(moved.to.clone());
    }
    relinking::follow(resolving, writing, &moves, done)?;
    for moved in moves {
        done.set_resolved(&resolving.shown(&moved.path), None, Some(&resolving.shown(&moved.to)));
        done.clean.extend([moved.path, moved.to]);
    }
    Ok(())
}

/// The text of a step of THEIRS with the new numbers.
fn renamed(resolving: &Resolving<'_>, moved: &Moved, steps: &[Renumbered]) -> Result<Vec<u8>, Error> {
    // A step in the archive only gets another file name. References to it, for example from a live plan that depends on a
    // step of an archived plan, are not changed.
    let Some(own) = steps.iter().find(|it| it.path == moved.path) else { return Ok(moved.theirs.clone()) };
    let text = relinking::renumbered_text(resolving, moved, &steps.iter().collect::<Vec<_>>(), own)?;
    let id = set_text("id", &own.new.to_string());
    transaction::edit(&moved.to.to_string_lossy(), &text, &[id], STEP_KEYS)
}

/// The number that a step of THEIRS got from an earlier command. That command was interrupted before it staged the file.
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

/// The numbers of the steps whose files `git ls-files` lists with these options.
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
    free_after(&used, number, &directory.file_name().unwrap_or_default().to_string_lossy())
}

/// A number after `number` and before the next one in `used`.
pub(super) fn free_after(
    used: &BTreeSet<StepNumber>,
    number: &StepNumber,
    plan: &str,
) -> Result<StepNumber, Error> {
    let next = used.range(number.clone()..).find(|it| *it != number);
    let new = next.map_or_else(|| number.successor(), |it| number.midpoint(it));
    new.map_err(|_| {
        let message = format!("there is no free number after step {number} of `{plan}`");
        Error::conflict("no-room", message, "give the next step another number with `planwatch move`")
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
