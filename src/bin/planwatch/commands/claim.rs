//! `claim` and `release`.

use std::fmt::Write;

use planwatch::api::daemon::Granted;
use planwatch::ops::claim::{self, ClaimReport, ClaimRequest, RenewRequest};
use planwatch::ops::release::{self, ReleaseRequest};
use planwatch::plan::rules::State;
use planwatch::plan::time;
use planwatch::store::transaction::Mode;
use serde_json::Value;

use crate::args::work::{Claim, Release};
use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::escaped;
use crate::screens::text::{self, fitted, hanging};
use crate::screens::{BOLD, BUSY, DIM, change, own_title, to_type, typed};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: Claim) -> Result<u8, Failure> {
    session.output.check_fields(fields::CLAIM)?;
    let Claim { target, lease, pid, renew, by, force, offline, key, dry_run } = args;
    let lease = lease.map(|it| read_lease(&it)).transpose()?;
    let mode = dry_run.mode();
    let report = match renew {
        Some(claim) => claim::renew(&session.context()?, &RenewRequest { claim, lease, mode })?,
        None => {
            let request =
                ClaimRequest { target, by: by.by, lease, pid, force, offline, is_renewed: false, mode };
            let context = session.context_once(&key, &request)?;
            session.with_spinner(|| claim::claim(&context, &request))?
        }
    };
    print(session, &report)?;
    Ok(report.exit_code())
}

fn read_lease(text: &str) -> Result<i64, Failure> {
    let hint = "for example 90s, 30m, 2h or 1d, at most 366d";
    time::read_seconds(text)
        .ok_or_else(|| Failure::usage(format!("invalid value `{text}` for --lease"), hint))
}

fn print(session: &Session, report: &ClaimReport) -> Result<(), Failure> {
    let output = &session.output;
    if output.is_json() {
        return output.json("claim", report.to_json()).map(drop);
    }
    let (Some(claim), Some(step)) = (&report.claim, &report.step) else {
        let said = format!("No step was claimed: {}\n\n", escaped(&report.why));
        let list = report.plan.as_deref().map_or_else(
            || ("planwatch status".to_owned(), "to see what needs attention"),
            |it| match report.state == State::Draft.word() {
                true => (format!("planwatch start {}", typed(it)), "to make the plan active"),
                false => (format!("planwatch list {}", typed(it)), "to list its steps"),
            },
        );
        return output.text(&fitted(&(said + &to_type(&[list])), output.width)).map(drop);
    };
    if report.is_dry_run {
        let nothing = || format!("{}\n", paint(DIM, "nothing would change"));
        let diff = if report.diff.is_empty() { nothing() } else { text::diff(&report.diff) };
        return output.long(&diff).map(drop);
    }
    let screen = granted(report, claim, step);
    output.report(&hanging(&screen, output.width, 4)).map(drop)
}

/// The claimed step, the reason for the choice, and the commands to read, complete or release the step.
fn granted(report: &ClaimReport, claim: &Granted, step: &Value) -> String {
    let field = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
    let (id, title) = (field("id"), field("title"));
    let until = match claim.until {
        Some(until) => format!("until {until}"),
        None => "while its process runs".to_owned(),
    };
    let mut text =
        format!("{} {} {}", paint(BUSY, "claimed"), paint(BOLD, &escaped(id)), escaped(own_title(id, title)));
    text.truncate(text.trim_end().len());
    let elsewhere = match (report.is_offline, report.until_elsewhere) {
        (true, _) => ", on this machine alone until `planwatch sync`".to_owned(),
        (false, Some(until)) => format!(", on other machines until {until}"),
        (false, None) => String::new(),
    };
    writeln!(text, " as {} {until}{elsewhere}", paint(BOLD, &claim.id)).ok();
    writeln!(text, "{}", paint(DIM, &escaped(field("path")))).ok();
    writeln!(text, "why: {}\n", escaped(&report.why)).ok();
    let with = format!("{} --claim {}", typed(id), claim.id);
    text.push_str(&to_type(&[
        (format!("planwatch show {}", typed(id)), "to read it"),
        (format!("planwatch done {with}"), "to complete it"),
        (format!("planwatch release {with}"), "to release it"),
    ]));
    text
}

pub(crate) fn release(session: &Session, args: Release) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Release { ids, expired, message, by, claim, force, key, dry_run } = args;
    let mode = dry_run.mode();
    let request = ReleaseRequest { ids, message, by: by.by, claim, expired, force, mode };
    let report = release::release(&session.context_once(&key, &request)?, &request)?;
    let is_nothing = report.changes.is_empty() && report.refused.is_empty();
    if is_nothing && mode == Mode::Write && !session.output.is_json() {
        session.output.report("no claim has lapsed\n")?;
        return Ok(0);
    }
    change::print(session, &report)
}
