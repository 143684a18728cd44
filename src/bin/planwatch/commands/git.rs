//! `git`: the verbs that use git.

use planwatch::ops::git_commit::{self, CommitReport, GitCommitRequest, why_left};
use planwatch::ops::git_merge::{self, MergeDriverRequest};
use planwatch::ops::git_resolve::{self, GitResolveReport, GitResolveRequest, ResolvedFile};
use planwatch::ops::git_review::{self, GitReviewReport, ReviewedFile};
use planwatch::ops::git_setup::{self, GitSetupReport, GitSetupRequest, Overridden};
use planwatch::plan::words::Words;

use crate::args::git::{Git, GitCommit, GitMergeDriver, GitResolve, GitSetup, GitVerb};
use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::escaped;
use crate::screens::{BAD, BOLD, DIM, GOOD, count, text};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: Git) -> Result<u8, Failure> {
    match args.what {
        GitVerb::Commit(args) => commit(session, args),
        GitVerb::Setup(args) => setup(session, &args),
        GitVerb::Resolve(args) => resolve(session, args),
        GitVerb::MergeDriver(args) => merge_driver(session, args),
    }
}

fn setup(session: &Session, args: &GitSetup) -> Result<u8, Failure> {
    session.output.check_fields(fields::GIT_SETUP)?;
    let request = GitSetupRequest { is_undo: args.undo, mode: args.dry_run.mode() };
    let report = git_setup::git_setup(&session.context()?, &request)?;
    if session.output.is_json() {
        session.output.json("git-setup", report.to_json())?;
    } else {
        session.output.report(&set_up(&report))?;
    }
    if let Some(Overridden { path, merge }) = &report.overridden {
        session.output.warn(&format!(
            "git does not use the driver for `{path}`: another line gives it the attribute `merge: {merge}`"
        ));
        session.output.hint(
            "remove that line, or change it so that it does not match plan files; it is in a `.gitattributes` file or in `.git/info/attributes`",
        );
    }
    Ok(0)
}

fn set_up(report: &GitSetupReport) -> String {
    let line = |did: &str, what: &str| {
        let style = if did == "unchanged" { DIM } else { GOOD };
        format!("{}  {what}\n", paint(style, &format!("{did:<9}")))
    };
    let would = if report.dry_run { "would be " } else { "" };
    let mut said = line(&format!("{would}{}", report.driver), "merge driver in this clone's configuration");
    said += &line(&format!("{would}{}", report.attributes), ".gitattributes");
    if report.dry_run {
        said += &text::diff(&report.diff);
    } else if !report.jj.is_empty() {
        said.push_str("\nFor jj, add this to its configuration:\n");
        said.push_str(report.jj);
    }
    said
}

fn resolve(session: &Session, args: GitResolve) -> Result<u8, Failure> {
    if let Some(revision) = args.check.as_deref() {
        return review(session, revision);
    }
    session.output.check_fields(fields::GIT_RESOLVE)?;
    let GitResolve { paths, renumber, restore, dry_run, check: _ } = args;
    let directory = session.directory().to_path_buf();
    let request = GitResolveRequest { paths, directory, renumber, restore, mode: dry_run.mode() };
    let report = git_resolve::git_resolve(&session.context()?, &request)?;
    if session.output.is_json() {
        session.output.json("git-resolve", report.to_json())?;
    } else {
        session.output.report(&resolved(&report))?;
    }
    if !report.not_examined_because_of.is_empty() {
        let paths: Vec<_> = report.not_examined_because_of.iter().map(|it| format!("`{it}`")).collect();
        let files = "plan files have uncommitted changes";
        session.output.warn(&format!(
            "the last merge or rebase was not examined, because {files}: {}",
            paths.join(", ")
        ));
        session.output.hint(
            "`git stash -u` puts them aside; run `planwatch git resolve` again, commit what it changed, then run `git stash pop`",
        );
    }
    Ok(report.exit_code())
}

fn review(session: &Session, revision: &str) -> Result<u8, Failure> {
    let revision = (!revision.is_empty()).then_some(revision);
    let report = git_review::git_review(&session.context()?, revision)?;
    session.output.check_fields(fields::GIT_REVIEW)?;
    session.answer("git-review", || report.to_json(), |_| reviewed(&report))?;
    Ok(report.exit_code())
}

fn reviewed(report: &GitReviewReport) -> String {
    let merge = &report.merge[..report.merge.len().min(10)];
    if report.files.is_empty() {
        return format!("The merge {merge} equals a merge by meaning.\n");
    }
    let status = |it: &ReviewedFile| match it.status.as_slice() {
        [is, would_be] => format!("  status {}, in a merge by meaning {}\n", escaped(is), escaped(would_be)),
        _ => String::new(),
    };
    let file = |it: &ReviewedFile| {
        let lost: String = it.lost.iter().map(|it| format!("  lost {}\n", escaped(it))).collect();
        format!("{}  {}\n{}{lost}", paint(BAD, it.state), escaped(&it.path), status(it))
    };
    let files: String = report.files.iter().map(file).collect();
    format!("The merge {merge} differs from a merge by meaning:\n{files}")
}

fn resolved(report: &GitResolveReport) -> String {
    if report.files.is_empty() {
        return "No plan file is in conflict.\n".to_owned();
    }
    let lines: String = report.files.iter().map(|it| resolved_line(it, report.dry_run)).collect();
    if report.dry_run { lines + &text::diff(&report.diff) } else { lines }
}

fn resolved_line(file: &ResolvedFile, is_dry_run: bool) -> String {
    let (style, why) = match file.state {
        "resolved" | "restored" | "carried" => (GOOD, String::new()),
        "conflict" => (BAD, "edit the marked lines, then `git add` the file".to_owned()),
        "edited" => (BAD, "it was edited after the merge and stays as it is".to_owned()),
        "number-taken" => (
            BAD,
            "both sides added a step of this number; `planwatch git resolve --renumber` keeps both"
                .to_owned(),
        ),
        _ => (
            BAD,
            "both sides changed it, under two paths; edit one file, `git add` it, and `git rm` the other"
                .to_owned(),
        ),
    };
    let renumbered = file.renumbered.as_deref().map(|it| format!("their step is {} now", escaped(it)));
    let notes: Vec<String> = file.decided.iter().map(|it| escaped(it).to_string()).collect();
    let more: Vec<String> =
        [why].into_iter().chain(renumbered).chain(notes).filter(|it| !it.is_empty()).collect();
    let more = if more.is_empty() { String::new() } else { format!(": {}", more.join("; ")) };
    let would = if is_dry_run { "would be " } else { "" };
    let state = paint(style, &format!("{would}{}", file.state));
    format!("{state}  {}{more}\n", escaped(&file.path))
}

/// Merges one file for git. Uses the project's status words if its configuration can be read. An error has exit code 2;
/// then the command line that git runs as merge driver falls back to a merge by lines.
fn merge_driver(session: &Session, args: GitMergeDriver) -> Result<u8, Failure> {
    let words = session.context().map_or_else(|_| Words::default(), |it| it.config.words);
    let GitMergeDriver { base, ours, theirs, marker_size, path, output } = args;
    let request = MergeDriverRequest { base, ours, theirs, output, marker_size, path };
    let merged = git_merge::merge_driver(session.directory(), &request, &words);
    let merged = merged.map_err(|it| Failure::from(it).with_exit(2))?;
    Ok(u8::from(!merged.is_clean))
}

fn commit(session: &Session, args: GitCommit) -> Result<u8, Failure> {
    session.output.check_fields(fields::COMMIT)?;
    let GitCommit { ids, message, dry_run } = args;
    let request = GitCommitRequest { ids, message, mode: dry_run.mode() };
    let report = git_commit::git_commit(&session.context()?, &request)?;
    let output = &session.output;
    if output.is_json() {
        output.json("commit", report.to_json())?;
        return Ok(0);
    }
    output.report(&said(&report))?;
    for left in &report.left {
        output.note("left", &format!("not committed: {}", why_left(&left.path, left.why)));
    }
    Ok(0)
}

fn said(report: &CommitReport) -> String {
    let CommitReport { commit, branch, message, files, .. } = report;
    let branch = escaped(branch.as_deref().unwrap_or_default());
    let listed =
        || -> String { files.iter().map(|it| format!("  {:<8} {}\n", it.did, escaped(&it.path))).collect() };
    match (message, commit) {
        (Some(message), _) if report.dry_run => {
            format!("would commit to {branch}:\n{}\n{}", listed(), escaped_lines(message))
        }
        (Some(_), Some(commit)) => {
            let id = paint(BOLD, &commit[..commit.len().min(10)]);
            let n = paint(DIM, &format!("({}, {branch})", count(files.len(), "file")));
            format!("committed {id} {} {n}\n", escaped(report.subject().unwrap_or_default()))
        }
        _ => "Nothing to commit.\n".to_owned(),
    }
}

fn escaped_lines(message: &str) -> String {
    message.lines().map(|it| format!("  {}\n", escaped(it))).collect::<String>().replace("  \n", "\n")
}
