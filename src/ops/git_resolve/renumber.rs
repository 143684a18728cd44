//! Gives steps new numbers if two branches each added a step with the same number. The step of OURS keeps the number, and
//! that of THEIRS gets a free one. If THEIRS added a reference to the old number, this reference gets the new number.

pub(super) mod relinking;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use relinking::Renumbered;

use super::renamed::Renamed;
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
    /// The versions of the step, if THEIRS moved it to `path` and git merged the work of OURS into it.
    renamed: Option<Renamed>,
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
        let renamed = resolving.renamed(path, theirs, false)?;
        let theirs = resolving.own_version(path, theirs, false)?.text;
        let numbers = by_plan.entry(directory.to_path_buf()).or_default();
        let made = made_before(resolving, directory, &theirs, numbers)?;
        let is_made = made.is_some();
        let new = made.map_or_else(|| free(resolving, directory, &number, numbers), Ok)?;
        let to = directory.join(file_name::step_file(&new));
        numbers.insert(number, new);
        moves.push(Moved { path: path.clone(), to, theirs, renamed, is_made });
    }
    let steps = Renumbered::all(&moves);
    let kept = kept(resolving, taken, &steps)?;
    for it in &kept {
        it.write(resolving, writing, &it.text)?;
        done.own.push(it.path.to_path_buf());
    }
    for moved in &moves {
        let name = moved.to.to_string_lossy();
        let (text, unclear) = with_new_numbers(resolving, moved, &steps)?;
        relinking::report_unclear(resolving, &moved.to, &unclear, done);
        if !moved.is_made {
            writing.create(&name, &text)?;
        } else if !resolving.context.plans.read(&moved.to).is_ok_and(|it| it.bytes == text) {
            // A person has edited the new file meanwhile.
            continue;
        }
        done.own.push(moved.to.clone());
    }
    relinking::follow(resolving, writing, &moves, done)?;
    for it in &kept {
        if let Some(text) = &it.followed {
            it.write(resolving, writing, text)?;
        }
        relinking::report_unclear(resolving, it.path, &it.unclear, done);
    }
    for moved in moves {
        done.set_resolved(&resolving.shown(&moved.path), None, Some(&resolving.shown(&moved.to)));
        done.clean.extend([moved.path, moved.to]);
    }
    Ok(())
}

/// A step of OURS, which keeps its number.
struct Kept<'a> {
    path: &'a Path,
    stages: &'a Stages,
    text: Vec<u8>,
    /// The text with the new numbers, if OURS moved the step, and THEIRS added references to it.
    followed: Option<Vec<u8>>,
    /// The steps that THEIRS refers to in this step, and whose new numbers the text cannot get.
    unclear: Vec<&'a Renumbered>,
}

impl Kept<'_> {
    fn write(
        &self,
        resolving: &Resolving<'_>,
        writing: &mut Transaction<'_>,
        text: &[u8],
    ) -> Result<(), Error> {
        // If the command is repeated, the file may have the new numbers already.
        let is_done = |now: &[u8]| self.followed.as_ref().is_some_and(|it| with_line_ends_of(now, it) == now);
        let written = writing.change(&self.path.to_string_lossy(), &|now: &[u8]| {
            if is_done(now) {
                return Ok(Decision::<_, (), ()>::Leave(()));
            }
            resolving.check_as_left(self.path, self.stages, now)?;
            Ok(Decision::Write(with_line_ends_of(now, text), ()))
        });
        written.map(drop)
    }
}

fn kept<'a>(
    resolving: &Resolving<'_>,
    taken: &'a [(PathBuf, Stages)],
    steps: &'a [Renumbered],
) -> Result<Vec<Kept<'a>>, Error> {
    let mut all = Vec::new();
    for (path, stages) in taken {
        let [_, Some(ours), _] = stages else { continue };
        let text = resolving.own_version(path, ours, true)?.text;
        let renamed = resolving.renamed(path, ours, true)?;
        let found = renamed.map(|it| relinking::followed_by_theirs(resolving, &it, steps));
        let (followed, unclear) = found.unwrap_or_default();
        all.push(Kept { path, stages, text, followed, unclear });
    }
    Ok(all)
}

/// The text of a step of THEIRS with the new numbers. Also returns the steps to which its references were not changed.
fn with_new_numbers<'s>(
    resolving: &Resolving<'_>,
    moved: &Moved,
    steps: &'s [Renumbered],
) -> Result<(Vec<u8>, Vec<&'s Renumbered>), Error> {
    // A step in the archive only gets another file name. References to it, for example from a live plan that depends on a
    // step of an archived plan, are not changed.
    let Some(own) = steps.iter().find(|it| it.path == moved.path) else {
        return Ok((moved.theirs.clone(), Vec::new()));
    };
    let all: Vec<_> = steps.iter().collect();
    let text = relinking::renumbered_text(resolving, moved, &all, own)?;
    // The references that OURS added to the step mean steps of OURS.
    let merged = moved.renamed.as_ref().map(|it| it.merged(resolving, &text, &it.other.1));
    let (text, unclear) = match merged {
        None => (text, Vec::new()),
        Some(merged) if merged.is_clean => (merged.bytes, Vec::new()),
        Some(_) => {
            let named = all.into_iter().filter(|it| relinking::refers(&moved.path, &moved.theirs, it));
            (moved.theirs.clone(), named.collect())
        }
    };
    let id = set_text("id", &own.new.to_string());
    Ok((transaction::edit(&moved.to.to_string_lossy(), &text, &[id], STEP_KEYS)?, unclear))
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

/// A number after this one that is free in the index and in the working tree, and not in `given`. During a rebase, the
/// number is also free in the branch's own last commit, so that no later commit adds a step with it.
pub(super) fn free(
    resolving: &Resolving<'_>,
    directory: &Path,
    number: &StepNumber,
    given: &Numbers,
) -> Result<StepNumber, Error> {
    let mut used = numbers_in(resolving, directory, &["--cached", "--others"])?;
    used.extend(given.values().cloned());
    let git = resolving.git;
    let mut of_branch = BTreeSet::new();
    if git.operation()? == Some("rebase")
        && let Some(branch) = git.find_revision("ORIG_HEAD")?
    {
        let entries = git.tree_entries(&branch, &[resolving.plans.join(directory)])?;
        of_branch.extend(entries.iter().filter_map(|it| number_of(Path::new(OsStr::from_bytes(&it.path)))));
    }
    loop {
        let new = free_after(&used, number, &directory.file_name().unwrap_or_default().to_string_lossy())?;
        if !of_branch.contains(&new) {
            return Ok(new);
        }
        used.insert(new);
    }
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
