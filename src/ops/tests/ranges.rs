//! Tests the removal of a step from a long range of dependencies.

use crate::api::context::Context;
use crate::disk::model::Machine;
use crate::ops::remove::{self, RemoveRequest};
use crate::plan::id::PlanId;
use crate::store::load;

/// Removes a step from a plan of 120 steps. The last step has the text `section` below "Dependencies". Returns the steps
/// that the last step depends on; `None` if its file has no key `depends` after the removal.
fn depends_after(section: &str, removed: &str) -> Option<Vec<String>> {
    let step = |n: u32| {
        let text = if n == 120 {
            format!("# Last\n\n## Dependencies\n\n{section}\n")
        } else {
            "# Step\n".to_owned()
        };
        (format!("/plans/p/step-{n}.md"), text)
    };
    let files: Vec<_> =
        (1..=120).map(step).chain([("/plans/p/plan.md".to_owned(), "# P\n".to_owned())]).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let machine = Machine::with(&files);
    let context = Context::on_model(&machine);
    let request = RemoveRequest { ids: vec![removed.to_owned()], ..RemoveRequest::default() };
    remove::remove(&context, &request).expect("it is removed");
    let plan = load::one_plan(&context, &PlanId::new("p")).expect("it is read").expect("it is there");
    let last = plan.steps.last().expect("it has steps");
    let all: Vec<_> = plan.spelled_out(last).iter().map(|it| it.number.to_string()).collect();
    let expected = (1..120).map(|it| it.to_string()).filter(|it| format!("p:{it}") != removed);
    assert_eq!(all, expected.collect::<Vec<_>>(), "{section}, without {removed}");
    let text = machine.text("/plans/p/step-120.md").expect("it is there");
    text.contains("\ndepends:").then_some(all)
}

#[test]
fn a_long_range_without_one_of_its_steps_holds_the_others() {
    assert_eq!(depends_after("Requires all previous steps", "p:50"), None);
    assert_eq!(depends_after("Requires all previous steps", "p:1"), None);
    assert_eq!(depends_after("Requires all previous steps", "p:119"), None);
    assert_eq!(depends_after("steps 1-119", "p:50"), None);
    // The text names the removed step as the end of the range.
    assert!(depends_after("steps 1-119", "p:119").is_some());
}
