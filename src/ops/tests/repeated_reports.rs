//! Tests which reports count as repetitions. Most tests send a report, and later the same or another report.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::model::Machine;
use crate::ops::claim::{self, ClaimRequest};
use crate::ops::patch::{self, PatchRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::plan::transitions::Verb;
use crate::store::repeat::*;
use crate::store::transaction::{ChangeReport, Mode};

const FILE: &str = "/plans/p/step-1.md";

fn context(machine: &Machine, by: &str, seconds: i64) -> Context {
    let now = Context::on_model(machine).now.plus_seconds(seconds);
    Context { now, by: by.to_owned(), ..Context::on_model(machine) }
}

/// A report. The verb `update` stands for a `patch`, which scripts send.
#[derive(Debug, Clone, Copy)]
struct Report {
    verb: &'static str,
    message: Option<&'static str>,
    /// Whether it names the claim.
    is_claimed: bool,
}

const fn by_claim(verb: &'static str, message: Option<&'static str>) -> Report {
    Report { verb, message, is_claimed: true }
}

const fn by_name(verb: &'static str, message: Option<&'static str>) -> Report {
    Report { verb, message, is_claimed: false }
}

impl Report {
    fn send(self, context: &Context, claim: &str) -> Result<ChangeReport, Error> {
        let message = self.message.map(str::to_owned);
        let claim = self.is_claimed.then(|| claim.to_owned());
        let (id, ids, mode) = ("p:1".to_owned(), vec!["p:1".to_owned()], Mode::Write);
        let verb = match self.verb {
            "done" => Verb::Done,
            "fail" => Verb::Fail,
            "block" => Verb::Block,
            "skip" => Verb::Skip,
            "attempt" => {
                let (outcome, notes) = ("partly".to_owned(), message);
                let request = AttemptRequest { id, outcome, notes, claim, ..AttemptRequest::default() };
                return update::attempt(context, &request);
            }
            "update" => {
                let (status, result) = (Some("completed".to_owned()), message);
                return patch::patch(
                    context,
                    &PatchRequest { id, status, result, claim, ..PatchRequest::default() },
                );
            }
            "release" => {
                return release::release(
                    context,
                    &ReleaseRequest { ids, message, claim, ..ReleaseRequest::default() },
                );
            }
            other => panic!("{other}"),
        };
        update::move_steps(
            context,
            &MoveRequest { is_signed: false, verb, ids, message, by: None, claim, force: false, mode },
        )
    }
}

/// Sends one report of ann's claim, and `seconds` later the other. Returns what the second report did, or the code of its
/// refusal. Checks that the file stays unchanged if and only if the second report is a repetition.
fn second((first, second): (Report, Report), seconds: i64) -> String {
    let machine =
        Machine::with(&[("/plans/p/plan.md", "# P\n"), (FILE, "---\nstatus: pending\n---\n# One\n")]);
    let claimed = claim::claim(&context(&machine, "ann", 0), &ClaimRequest::default()).unwrap();
    let claim = claimed.claim.unwrap().id;
    first.send(&context(&machine, "ann", 10), &claim).unwrap();
    let before = machine.text(FILE);
    let said = match second.send(&context(&machine, "ann", 10 + seconds), &claim) {
        Ok(report) => report.changes[0].did.clone(),
        Err(error) => error.code().to_owned(),
    };
    assert_eq!(machine.text(FILE) == before, said == REPEATED, "{first:?} {second:?}");
    said
}

#[test]
fn the_end_of_a_claim_is_reported_twice_at_any_time() {
    for verb in ["done", "fail", "block", "skip", "release", "update"] {
        for message in [None, Some("so it was")] {
            let report = by_claim(verb, message);
            assert_eq!(second((report, report), 100_000), REPEATED, "{report:?}");
        }
    }
}

#[test]
fn another_report_is_a_late_result() {
    let rows = [
        (by_claim("done", Some("one")), by_claim("done", Some("two"))),
        (by_claim("done", None), by_claim("done", Some("two"))),
        (by_claim("done", None), by_claim("fail", None)),
        (by_claim("fail", None), by_claim("release", None)),
        (by_claim("release", None), by_claim("done", None)),
        (by_claim("release", None), by_claim("release", Some("why"))),
        (by_claim("done", None), by_claim("attempt", None)),
    ];
    for row in rows {
        assert_eq!(second(row, 1), "claim-lost", "{row:?}");
    }
}

#[test]
fn an_attempt_is_the_same_for_a_minute() {
    for report in
        [by_claim("attempt", Some("half")), by_name("attempt", Some("half")), by_name("attempt", None)]
    {
        assert_eq!(second((report, report), 0), REPEATED, "{report:?}");
        assert_eq!(second((report, report), 59), REPEATED, "{report:?}");
        assert_eq!(second((report, report), 60), "attempt recorded", "{report:?}");
    }
    let other = (by_claim("attempt", Some("half")), by_claim("attempt", Some("all")));
    assert_eq!(second(other, 1), "attempt recorded");
    let ended = by_name("done", Some("merged"));
    assert_eq!(second((ended, ended), 59), REPEATED);
    assert_eq!(second((ended, ended), 60), "completed");
}

/// If another claim has taken the step over, each report of the first claim is late.
#[test]
fn a_claim_that_was_taken_over_has_not_reported() {
    let machine =
        Machine::with(&[("/plans/p/plan.md", "# P\n"), (FILE, "---\nstatus: pending\n---\n# One\n")]);
    let first = claim::claim(&context(&machine, "ann", 0), &ClaimRequest::default()).unwrap().claim.unwrap();
    claim::claim(&context(&machine, "bob", 100_000), &ClaimRequest::default()).unwrap().claim.unwrap();
    for report in [by_claim("release", None), by_claim("done", None), by_claim("attempt", None)] {
        let error = report.send(&context(&machine, "ann", 100_001), &first.id).unwrap_err();
        assert_eq!(error.code(), "claim-lost", "{report:?}");
    }
}

/// Without a claim, nothing shows that two reports are about the same attempt.
#[test]
fn without_a_claim_each_attempt_counts() {
    let machine =
        Machine::with(&[("/plans/p/plan.md", "# P\n"), (FILE, "---\nstatus: pending\n---\n# One\n")]);
    for n in 1..=3 {
        let report = by_name("attempt", Some("half")).send(&context(&machine, "ann", 0), "").unwrap();
        assert_eq!(report.changes[0].did, "attempt recorded");
        assert_eq!(machine.text(FILE).unwrap().matches("half").count(), n);
    }
}

/// An attempt is recorded under a claim. Its report is repeated after the end of the claim.
#[test]
fn an_attempt_is_repeated_after_the_end_of_its_claim() {
    let machine =
        Machine::with(&[("/plans/p/plan.md", "# P\n"), (FILE, "---\nstatus: pending\n---\n# One\n")]);
    let claim =
        claim::claim(&context(&machine, "ann", 0), &ClaimRequest::default()).unwrap().claim.unwrap().id;
    let attempt = by_claim("attempt", Some("half"));
    attempt.send(&context(&machine, "ann", 5), &claim).unwrap();
    by_claim("done", None).send(&context(&machine, "ann", 10), &claim).unwrap();
    let before = machine.text(FILE);
    let again = attempt.send(&context(&machine, "ann", 500), &claim).unwrap();
    assert_eq!((again.changes[0].did.as_str(), machine.text(FILE)), (REPEATED, before));
}
