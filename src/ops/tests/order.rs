//! Tests the order in which `list` returns plans and steps.

use proptest::prelude::*;

use crate::api::context::Context;
use crate::api::sort::*;
use crate::disk::model::Machine;
use crate::ops::list::{self, ListReport, ListRequest};

fn context() -> Context {
    let files = [
        ("/plans/a/plan.md", "---\npriority: high\ndue: 2026-12-01\ncreated_at: 2026-11-02\n---\n# beta\n"),
        ("/plans/b/plan.md", "---\nstatus: draft\n---\n# Alpha\n"),
        ("/plans/c/plan.md", "---\npriority: low\ncreated_at: 2026-11-01\n---\n# gamma\n"),
        ("/plans/c/step-2.md", "---\nstatus: completed\n---\n# X\n"),
        ("/plans/c/step-10.md", "# Y\n"),
    ];
    Context::on_model(&Machine::with(&files))
}

#[track_caller]
fn check(plan: Option<&str>, sort: &str, expected: &str) {
    let sort = Sort::read(sort).unwrap();
    let request = ListRequest { plan: plan.map(str::to_owned), sort, ..ListRequest::default() };
    let found: Vec<_> = match list::list(&context(), &request).unwrap() {
        ListReport::Plans { plans, .. } => plans.into_iter().map(|it| it.id).collect(),
        ListReport::Steps { steps, .. } => steps.into_iter().map(|it| it.id).collect(),
    };
    assert_eq!(found.join(" "), expected);
}

#[test]
fn sort_keys_apply_in_order_and_missing_values_come_last() {
    check(None, "", "a b c");
    check(None, "-id", "c b a");
    check(None, "title", "b a c");
    check(None, "-priority", "a b c");
    check(None, "created", "c a b");
    check(None, "-due", "a b c");
    check(None, "-created", "a c b");
    check(None, "status, -id", "b c a");
    check(Some("c"), "id", "c:2 c:10");
    check(Some("c"), "-id", "c:10 c:2");
    check(Some("c"), "status", "c:10 c:2");
}

#[test]
fn an_unknown_key_names_the_known_ones() {
    let error = |text| Sort::read(text).unwrap_err().hint().unwrap_or_default();
    assert_eq!(error("titel"), "did you mean `title`?");
    assert!(error("xyzzy").starts_with("known keys: id, title"), "{}", error("xyzzy"));
}

proptest! {
    #[test]
    fn sorting_is_stable_and_the_other_way_round_is_the_other_way_round(
        priorities in proptest::collection::vec(0..4_usize, 1..12),
    ) {
        let words = ["low", "medium", "high", "critical"];
        let files: Vec<_> = (0..).zip(&priorities).map(|(at, it): (usize, _)| {
            (format!("/plans/p{at:02}/plan.md"), format!("---\npriority: {}\n---\n# P\n", words[*it]))
        }).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let context = Context::on_model(&Machine::with(&files));
        for (text, is_descending) in [("priority", false), ("-priority", true)] {
            let request = ListRequest { sort: Sort::read(text).unwrap(), ..ListRequest::default() };
            let Ok(ListReport::Plans { plans, .. }) = list::list(&context, &request) else { panic!() };
            for pair in plans.windows(2) {
                let order = if is_descending { pair[1].priority.cmp(&pair[0].priority) } else { pair[0].priority.cmp(&pair[1].priority) };
                prop_assert!(order.is_lt() || (order.is_eq() && pair[0].id < pair[1].id));
            }
        }
    }
}
