//! `doctor`: a diagnosis of this setup, one line for each check.

use planwatch::ops::doctor::{self, Check, DiscardReport, DoctorRequest, State};

use crate::args::setup::Doctor;
use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::{Loudness, escaped};
use crate::screens::text::{self, hanging};
use crate::screens::{BAD, BUSY, DIM, GOOD, count};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: &Doctor) -> Result<u8, Failure> {
    session.output.check_fields(fields::CHECK)?;
    let workspace = session.workspace_to_check()?;
    let plans = session.plans_dir(&workspace)?;
    let context = session.context_in(&workspace, &plans)?;
    let request = DoctorRequest { reindex: args.reindex, discard: args.discard_journal.clone() };
    let report = session.with_spinner(|| doctor::examine(&context, &request))?;
    let output = &session.output;
    if output.is_json() {
        output.json("doctor", report.to_json())?;
        return Ok(report.exit_code());
    }
    let is_shown = |it: &&Check| it.state != State::Ok || output.loudness > Loudness::Quiet;
    let mut screen = report.discarded.as_ref().map(discarded).unwrap_or_default();
    screen.extend(report.checks.iter().filter(is_shown).map(|it| line(it, output.width)));
    if report.n_problems() > 0 {
        screen += &count(report.n_problems(), "problem");
        screen.push('\n');
    }
    output.long(&screen)?;
    Ok(report.exit_code())
}

fn discarded(it: &DiscardReport) -> String {
    let kept =
        it.kept.iter().map(|path| format!("a text of the discarded change is stored in {}\n", escaped(path)));
    let said = format!(
        "`{}` of {} is discarded; the part that was done stays\n",
        escaped(&it.verb),
        escaped(&it.at)
    );
    text::diff(&it.diff) + &said + &kept.collect::<String>()
}

fn line(check: &Check, width: Option<usize>) -> String {
    let (mark, style) = match check.state {
        State::Ok => ('●', GOOD),
        State::Note => ('!', BUSY),
        State::Problem => ('✗', BAD),
    };
    let hint = if check.hint.is_empty() {
        String::new()
    } else {
        paint(DIM, &format!("; {}", escaped(&check.hint)))
    };
    let line =
        format!("{} {:<21} {}{hint}\n", paint(style, &mark.to_string()), check.name, escaped(&check.value));
    hanging(&line, width, 24)
}
