//! Tests the reports of `status` with a limit: the steps of each part are the first ones of the report without a limit.

use crate::api::context::Context;
use crate::disk::model::Machine;
use crate::ops::status::{self, StatusReport, StatusRequest, Totals};

#[test]
fn only_the_first_steps_are_described_and_all_are_counted() {
    let plans = ["a", "b", "c"];
    let steps = [
        "status: failed",
        "status: in_progress",
        "status: completed\nattempts:\n  - {at: 2026-11-20T12:00:00Z, outcome: completed}",
        "status: pending",
    ];
    let mut files = Vec::new();
    for plan in plans {
        files.push((format!("/plans/{plan}/plan.md"), "# P\n".to_owned()));
        files.extend((1..).zip(steps).map(|(n, it)| {
            (
                format!("/plans/{plan}/step-{n}.md"),
                format!("---\ncreated_at: 2026-11-20T12:00:00Z\n{it}\n---\n"),
            )
        }));
    }
    let files: Vec<_> = files.iter().map(|(at, text)| (at.as_str(), text.as_str())).collect();
    let machine = Machine::with(&files);
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let context = Context { now, ..Context::on_model(&machine) };
    let whole = status::status(&context, &StatusRequest::default()).unwrap();
    // The files are from 1970, so the steps in progress are stale and need attention, too.
    let totals = Totals { attention: 6, in_progress: 3, ready: 3, finished: 3 };
    for most in 0..=4 {
        let part = status::with_most(&context, &StatusRequest::default(), most).unwrap();
        assert_eq!(part.totals, totals);
        let ids = |report: &StatusReport, most: usize| {
            let attention = report.attention.iter().map(|it| &it.step).take(most);
            let ready = report.ready.iter().map(|it| &it.step).take(most);
            let finished = report.finished.iter().map(|it| &it.step).take(most);
            let all = attention.chain(ready).chain(finished);
            all.map(|it| it.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&part, usize::MAX), ids(&whole, most));
        // The limit does not apply to steps in progress. The hint of `status` names the first one that is not claimed
        // elsewhere, and that one can come after the limit.
        assert_eq!(part.in_progress.len(), 3);
    }
}
