//! `decide` and `insight`: with a text they record it, without one they list what is recorded.

use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::ops::decide::{self, DecideRequest, DecisionsRequest};
use planwatch::ops::insight::{self, InsightRequest, InsightsRequest};
use planwatch::store::transaction::Mode;

use crate::args::know::{Decide, Insight};
use crate::commands::new::{dry_run, in_plans_or_empty_dir};
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::named_text;
use crate::screens::{change, knowledge};

pub(crate) fn decide(session: &Session, args: Decide) -> Result<u8, Failure> {
    let Some(text) = args.text else { return decisions(session, args) };
    change::check_fields(session)?;
    let request = DecideRequest {
        topic: args.topic.unwrap_or_default(),
        text: typed_text(text)?,
        because: args.because,
        supersedes: args.supersedes,
        tags: args.tags,
        plan: args.plan,
        step: args.step,
        by: args.by.by,
        metadata: args.metadata,
        mode: args.dry_run.mode(),
    };
    let report = recorded(session, request.mode, |context| decide::decide(context, &request))?;
    change::print(session, &report)
}

fn decisions(session: &Session, args: Decide) -> Result<u8, Failure> {
    refuse_written(args.dry_run.mode(), args.by.by.as_ref(), "planwatch decide TOPIC TEXT")?;
    let limit = positive(args.limit)?;
    let now = context::now();
    if args.topics {
        let topics = in_plans_or_empty_dir(session, |context| Ok(decide::topics(context)))?;
        return session.answer(
            "topic-list",
            || decide::topics_to_json(&topics),
            |width| knowledge::topics(&topics, now, width),
        );
    }
    let Decide { topic, plan, step, tags, since, .. } = args;
    let request = DecisionsRequest { topic, plan, step, tags, since, limit };
    let report = in_plans_or_empty_dir(session, |context| decide::decisions(context, &request))?;
    let topic = request.topic.as_deref();
    session.answer(
        "decision-list",
        || report.to_json(),
        |width| knowledge::decisions(&report, topic, now, width),
    )
}

pub(crate) fn insight(session: &Session, args: Insight) -> Result<u8, Failure> {
    let Some(text) = args.text else { return insights(session, args) };
    change::check_fields(session)?;
    let request = InsightRequest {
        title: args.title.unwrap_or_default(),
        text: typed_text(text)?,
        plan: args.plan,
        tags: args.tags,
        by: args.by.by,
        mode: args.dry_run.mode(),
    };
    let report = recorded(session, request.mode, |context| insight::insight(context, &request))?;
    change::print(session, &report)
}

fn insights(session: &Session, args: Insight) -> Result<u8, Failure> {
    refuse_written(args.dry_run.mode(), args.by.by.as_ref(), "planwatch insight TITLE TEXT")?;
    let limit = positive(args.limit)?;
    let now = context::now();
    let Insight { title, plan, tags, since, .. } = args;
    let request = InsightsRequest { title, plan, tags, since, limit };
    let report = in_plans_or_empty_dir(session, |context| insight::insights(context, &request))?;
    let title = request.title.as_deref();
    session.answer(
        "insight-list",
        || report.to_json(),
        |width| knowledge::insights(&report, title, now, width),
    )
}

/// Calls `write`. If there is no plans directory, makes one first; a dry run makes none.
pub(crate) fn recorded<T>(
    session: &Session,
    mode: Mode,
    write: impl FnOnce(&Context) -> Result<T, Error>,
) -> Result<T, Failure> {
    match mode {
        Mode::Write => Ok(write(&session.context_to_make()?)?),
        Mode::DryRun => dry_run(session, write),
    }
}

/// Returns the text, or reads it from standard input if it is `-`.
fn typed_text(text: String) -> Result<String, Failure> {
    if text == "-" { named_text::standard_input() } else { Ok(text) }
}

/// Called if there is no text to record: refuses `--dry-run` and `--by`, which apply only to recording.
fn refuse_written(mode: Mode, by: Option<&String>, form: &str) -> Result<(), Failure> {
    if mode == Mode::Write && by.is_none() {
        return Ok(());
    }
    Err(Failure::usage("the text is missing", format!("write it as {form}")))
}

fn positive(limit: usize) -> Result<usize, Failure> {
    if limit > 0 {
        return Ok(limit);
    }
    Err(Failure::usage("invalid value `0` for --limit", "--limit must be at least 1"))
}
