//! What decisions, insights and scripts have in common: their files, names and problems.

use std::path::Path;

use serde_json::Value;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::DiskError;
use crate::plan::decision::{self, Decision};
use crate::plan::entry;
use crate::plan::id::{PlanId, read_step_id};
use crate::plan::insight::{self, Insight};
use crate::plan::problem::{Code, Problem};
use crate::plan::read::Source;
use crate::plan::script::{self, Script};
use crate::plan::time::{Time, read_seconds};
use crate::store::resolve::{self, Target};
use crate::store::transaction::{ChangeReport, Changed, Mode, Transaction};
use crate::store::{idempotency, load};

/// How many names [`create`] tries. The time in each name is a millisecond later than in the one before.
const MAX_TRIES: usize = 1000;

/// Reads the Markdown files of a directory below the plans directory, sorted by name.
pub(crate) fn sources(context: &Context, directory: &str) -> Vec<Source> {
    let names = context.plans.names(Path::new(directory)).into_iter();
    let is_file = |it: &String| it.ends_with(".md") && !it.starts_with('.');
    let paths = names.filter(is_file).map(|it| format!("{directory}/{it}"));
    paths.map(|path| Source { content: load::read_source(context, &path), path }).collect()
}

/// Reads all decisions, oldest first; those without a time come first.
pub(crate) fn decisions(context: &Context) -> Vec<Decision> {
    let mut found: Vec<_> = sources(context, decision::DIRECTORY).iter().map(decision::read).collect();
    found.sort_by(|a, b| (a.decided_at, &a.id).cmp(&(b.decided_at, &b.id)));
    found
}

/// Reads all insights, oldest first; those without a time come first.
pub(crate) fn insights(context: &Context) -> Vec<Insight> {
    let mut found: Vec<_> = sources(context, insight::DIRECTORY).iter().map(insight::read).collect();
    found.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    found
}

/// Reads all scripts, sorted by file name. Adds a problem to each script whose directory is outside the repository.
pub(crate) fn scripts(context: &Context) -> Vec<Script> {
    let read = |source: &_| {
        let mut script = script::read(source);
        if script::inside(&context.here.root, &script.directory).is_none() {
            let message = format!("the directory `{}` is outside the repository", script.directory);
            let (at, hint) =
                (script.directory_at, "name a directory inside the repository, relative to its root");
            script.problems.push(Problem::at(&script.path, at, Code::WrongType, message, hint));
        }
        script
    };
    sources(context, script::DIRECTORY).iter().map(read).collect()
}

/// All problems of decisions, insights and scripts.
pub(crate) fn problems(context: &Context) -> Vec<Problem> {
    let decisions = decisions(context);
    let mut problems = links(&decisions);
    problems.extend(decisions.into_iter().flat_map(|it| it.problems));
    problems.extend(insights(context).into_iter().flat_map(|it| it.problems));
    problems.extend(scripts(context).into_iter().flat_map(|it| it.problems));
    problems
}

/// Reports each decision that supersedes a missing decision. planwatch never removes decisions, so this is a problem.
fn links(decisions: &[Decision]) -> Vec<Problem> {
    let is_there = |id: &str| decisions.iter().any(|it| it.id == id);
    let problem = |it: &Decision| {
        let gone = it.supersedes.as_deref().filter(|id| !is_there(id))?;
        let message = format!("the decision `{gone}`, which this one supersedes, is missing");
        Some(Problem::of_file(&it.path, Code::DecisionRewritten, message, "restore its file"))
    };
    decisions.iter().filter_map(problem).collect()
}

/// A file that planwatch creates once and then never changes.
pub(crate) struct Entry<'a> {
    pub(crate) verb: &'static str,
    pub(crate) directory: &'a str,
    pub(crate) title: &'a str,
    /// Used in the file's name if the title has no usable letters.
    pub(crate) instead: &'a str,
    pub(crate) make: &'a Make<'a>,
}

/// Makes the bytes of a file and the JSON that a surface shows, from the file's path and its time.
pub(crate) type Make<'a> = dyn Fn(&str, Time) -> Result<(Vec<u8>, Value), Error> + 'a;

/// Creates the file under a unique name. If a file with the present millisecond in its name exists, the next free
/// millisecond is used.
pub(crate) fn create(context: &Context, entry: &Entry<'_>, mode: Mode) -> Result<ChangeReport, Error> {
    let mut writing = Transaction::begin(context, entry.verb, mode)?;
    let names = context.plans.names(Path::new(entry.directory));
    let mut at = context.now.whole_milliseconds();
    for _ in 0..MAX_TRIES {
        let path = format!("{}/{}.md", entry.directory, entry::name(at, entry.title, entry.instead));
        let (bytes, now) = (entry.make)(&path, at)?;
        idempotency::record(context, || vec![changed(context, entry, &path, now.clone())]);
        let is_taken = names.iter().any(|it| it.starts_with(&at.stamp()));
        let made = if is_taken { None } else { Some(writing.create(&path, &bytes)) };
        match made {
            // The lock stops only other planwatch processes. A checkout, for example, may just have created the file.
            None | Some(Err(Error::Disk(DiskError::Exists { .. }))) => at = at.next_millisecond(),
            Some(Err(error)) => return Err(error),
            Some(Ok(())) => {
                let mut report = ChangeReport::new(entry.verb, mode);
                report.changes.push(changed(context, entry, &path, now));
                report.diff = writing.diff;
                return Ok(report);
            }
        }
    }
    let hint = "try again in a moment";
    Err(Error::failed("no-room", format!("no name is free in `{}`", entry.directory), hint))
}

fn changed(context: &Context, entry: &Entry<'_>, path: &str, now: Value) -> Changed {
    Changed::new(context, &entry::id_of(path), (entry.title, path), "recorded", now)
}

/// Returns the ids of the named plan and step in the form in which files name them. If neither is named, returns the ids of
/// the plan and step that this process works on.
pub(crate) fn about(
    context: &Context,
    plan: Option<&str>,
    step: Option<&str>,
) -> Result<(Option<String>, Option<String>), Error> {
    if plan.is_none() && step.is_none() {
        return Ok(about_here(context));
    }
    if let Some(step) = step {
        return match resolve::target(context, step)? {
            Target::Step(named) if load::exists(context, &named.id.plan) => {
                Ok((Some(named.id.plan.to_string()), Some(named.id.to_string())))
            }
            target => Err(no_step(step, target.plan().as_str())),
        };
    }
    let Some(plan) = plan else { return Ok((None, None)) };
    match resolve::target(context, plan)? {
        Target::Plan(id) if load::exists(context, &id) => Ok((Some(id.to_string()), None)),
        target => Err(load::missing(context, target.plan())),
    }
}

/// Returns the plan and step that the environment names. Values that are not valid are ignored, so that the decision or
/// insight can be recorded anyway.
fn about_here(context: &Context) -> (Option<String>, Option<String>) {
    if let Some(step) = context.here.step.as_deref().and_then(read_step_id) {
        return (Some(step.plan.to_string()), Some(step.to_string()));
    }
    let plan = context.here.plan.as_ref().map(PlanId::new);
    (plan.filter(|it| load::exists(context, it)).map(|it| it.to_string()), None)
}

/// Like [`about`], for filters: if neither is named, there is no filter, even if this process works on a step.
pub(crate) fn wanted(
    context: &Context,
    plan: Option<&str>,
    step: Option<&str>,
) -> Result<(Option<String>, Option<String>), Error> {
    if plan.is_none() && step.is_none() { Ok((None, None)) } else { about(context, plan, step) }
}

fn no_step(step: &str, plan: &str) -> Error {
    Error::usage(format!("`{step}` is not a step"), format!("name it with its number, as in {plan}:2"))
}

/// Parses the value of `--since`: a time, a date, or a duration before `now` such as `7d`, `12h` or `2w`.
pub(crate) fn since(text: &str, now: Time) -> Result<Time, Error> {
    let trimmed = text.trim();
    let hours = match trimmed.chars().last() {
        Some('h') => 1,
        Some('d') => 24,
        Some('w') => 24 * 7,
        _ => 0,
    };
    let n = trimmed.get(..trimmed.len().saturating_sub(1)).and_then(|it| it.parse::<u32>().ok());
    if let Some(n) = n.filter(|_| hours > 0) {
        let ago = i128::from(n) * hours * 3600 * 1_000_000_000;
        return Ok(Time::from_nanoseconds(now.as_nanoseconds() - ago));
    }
    if let Some(seconds) = read_seconds(trimmed) {
        let ago = i128::from(seconds) * 1_000_000_000;
        return Ok(Time::from_nanoseconds(now.as_nanoseconds() - ago));
    }
    let not_a_time = |_| {
        let hint = "write it as 2026-11-21, 2026-11-21T09:14:03Z, 7d or 12h";
        Error::usage(format!("`{text}` is not a time"), hint)
    };
    trimmed.parse().map_err(not_a_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_time_or_how_long_ago() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let since = |it: &str| since(it, now).map(|it| it.to_string()).map_err(|it| it.exit_code());
        assert_eq!(since("7d"), Ok("2026-11-14T12:00:00Z".to_owned()));
        assert_eq!(since(" 12h "), Ok("2026-11-21T00:00:00Z".to_owned()));
        assert_eq!(since("2w"), Ok("2026-11-07T12:00:00Z".to_owned()));
        assert_eq!(since("1h30m"), Ok("2026-11-21T10:30:00Z".to_owned()));
        assert_eq!(since("2026-11-01"), Ok("2026-11-01T00:00:00Z".to_owned()));
        for text in ["", "d", "-1d", "é", "yesterday", "7", "99999999999d"] {
            assert_eq!(since(text), Err(2), "{text}");
        }
    }
}
