//! `sync` and its verbs.

use std::fmt::Write;

use planwatch::ops::sync::init::{self, SyncInitReport, SyncInitRequest};
use planwatch::ops::sync::{self, SharedClaim, SyncReport, SyncRequest};
use planwatch::plan::time;

use crate::args::sync::{Sync, SyncInit, SyncVerb};
use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::escaped;
use crate::screens::{BAD, BOLD, DIM, GOOD, count, text};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: Sync) -> Result<u8, Failure> {
    match args.what {
        Some(SyncVerb::Init(args)) => set_up(session, args),
        Some(SyncVerb::Status(_)) => {
            session.output.check_fields(fields::SYNC)?;
            let context = session.context()?;
            let report = sync::status(&context)?;
            session.answer("sync", || report.to_json(), |_| listed(&report, context.now))
        }
        None => {
            session.output.check_fields(fields::SYNC)?;
            let context = session.context()?;
            let report = sync::sync(&context, &SyncRequest { mode: args.dry_run.mode() })?;
            session.answer("sync", || report.to_json(), |_| done(&report) + &listed(&report, context.now))?;
            Ok(report.exit_code())
        }
    }
}

fn set_up(session: &Session, args: SyncInit) -> Result<u8, Failure> {
    session.output.check_fields(fields::SYNC_INIT)?;
    let SyncInit { remote, branch, database, dry_run } = args;
    let request = SyncInitRequest { remote, branch, database, mode: dry_run.mode() };
    let report = init::sync_init(&session.context()?, &request)?;
    if session.output.is_json() {
        session.output.json("sync-init", report.to_json())?;
    } else {
        session.output.report(&made(&report))?;
    }
    Ok(0)
}

fn made(report: &SyncInitReport) -> String {
    let SyncInitReport { did, remote, claims_at, branch, refused, path, diff, .. } = report;
    let mut said = String::new();
    for it in refused {
        let (place, why) = (escaped(&it.claims_at), escaped(&it.why));
        writeln!(said, "{}  {place}: {why}", paint(BAD, "not allowed")).ok();
    }
    let remote = escaped(remote);
    let branch =
        branch.as_deref().map_or_else(String::new, |it| format!(", finished work on {}", escaped(it)));
    writeln!(said, "{}  claims at {remote} in {}{branch}", paint(GOOD, did), escaped(claims_at)).ok();
    if claims_at.starts_with("refs/heads/") {
        said.push_str(
            "Each claim is a branch there. Exclude planwatch-claims/** from continuous integration.\n",
        );
    }
    if report.dry_run {
        said.push_str("A dry run does not ask the remote which refs it allows.\n");
        said.push_str(&text::diff(diff));
    } else if !diff.is_empty() {
        writeln!(said, "\nCommit {}: it is the same for everyone.", escaped(path)).ok();
    }
    said
}

/// What `sync` did.
fn done(report: &SyncReport) -> String {
    let mut said = String::new();
    for it in &report.settled {
        let style = if matches!(it.what, "lost" | "unsettled") { BAD } else { GOOD };
        let why = it.why.as_deref().map_or_else(String::new, |it| format!(": {}", escaped(it)));
        writeln!(said, "{}  {}{why}", paint(style, it.what), escaped(&it.step)).ok();
    }
    if report.removed > 0 {
        writeln!(said, "{}  {} no longer needed", paint(GOOD, "removed"), count(report.removed, "record"))
            .ok();
    }
    said
}

fn listed(report: &SyncReport, now: time::Time) -> String {
    let mut said = String::new();
    if let Some(error) = &report.error {
        let since = report.listed_at.map_or_else(|| "never".to_owned(), |it| time::ago(now, it));
        writeln!(said, "{}  {} (last answer: {since})", paint(BAD, "unreachable"), escaped(error)).ok();
    }
    if report.claims.is_empty() {
        let place = match report.claims_at.as_str() {
            "postgres" => "in the claims database".to_owned(),
            _ => format!("at {}", escaped(&report.remote)),
        };
        writeln!(said, "No step is claimed {place}.").ok();
    }
    for claim in &report.claims {
        said.push_str(&line(claim, now));
    }
    said
}

fn line(claim: &SharedClaim, now: time::Time) -> String {
    let state = claim.state.unwrap_or("unreadable");
    let by = claim.by.as_deref().unwrap_or("unknown");
    let whose = match (claim.own, &claim.host) {
        (true, _) => "this clone".to_owned(),
        (false, Some(host)) => escaped(host).into_owned(),
        (false, None) => "unknown".to_owned(),
    };
    let at = claim.at.map_or_else(String::new, |it| format!(", {}", time::ago(now, it)));
    let ended = claim.state.is_some_and(|it| it != "claimed");
    let marks = [
        (claim.unsettled, "unsettled"),
        (claim.lost, "taken over"),
        (claim.lapsed, "lapsed"),
        (claim.ended_nowhere, "its branch is not at the remote"),
        (ended && !claim.ended_nowhere && !claim.unsettled, "not merged"),
    ];
    let marks: String = marks.iter().filter(|it| it.0).map(|it| format!(", {}", paint(BAD, it.1))).collect();
    let place = paint(DIM, &format!("{} ({whose}{at})", escaped(by)));
    format!("{}  {state} by {place}{marks}\n", paint(BOLD, &escaped(&claim.step)))
}
