//! What is put in comes out, exactly.

use proptest::prelude::*;

use super::arbitrary;
use crate::index::{FileRow, Index, Place, Stamp};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;

/// Plans and files as they come out: in order, without bodies.
fn expected(plans: Vec<Plan>, mut files: Vec<FileRow>) -> (Vec<Plan>, Vec<FileRow>) {
    let plans = plans.into_iter().map(arbitrary::without_bodies).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    (Plans::new(plans).into_vec(), files)
}

fn memory() -> Index {
    Index::open(Place::Memory).expect("there is memory").0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn what_is_put_in_comes_out(
        before in arbitrary::plans(),
        plans in arbitrary::plans(),
        files in arbitrary::files(),
    ) {
        let mut index = memory();
        index.replace(&[], &before).expect("any plans fit");
        index.replace(&files, &plans).expect("any plans fit");
        let seen = index.snapshot().expect("it is readable");
        let (plans, files) = expected(plans, files);
        prop_assert_eq!(seen.files().expect("it is sound"), files);
        for plan in &plans {
            let found = seen.load_plan(&plan.id).expect("it is sound");
            prop_assert_eq!(found.map(|it| it.id), Some(plan.id.clone()));
        }
        prop_assert_eq!(seen.load().expect("it is sound"), plans);
        seen.sql("SELECT * FROM steps").expect("it is sound");
    }

    #[test]
    fn new_stamps_take_the_place_of_old_ones_of_the_same_content(files in arbitrary::files(), mtime_ns: i64) {
        let mut index = memory();
        index.replace(&files, &[]).expect("any files fit");
        let restamped = files.iter().map(|it| FileRow { mtime_ns, racy: false, ..it.clone() }).collect::<Vec<_>>();
        let changed = restamped.iter().map(|it| FileRow { hash: format!("{} ", it.hash), ..it.clone() });
        index.restamp(&changed.collect::<Vec<_>>()).expect("it is sound");
        prop_assert_eq!(index.files().expect("it is sound"), expected(Vec::new(), files).1);
        index.restamp(&restamped).expect("it is sound");
        prop_assert_eq!(index.files().expect("it is sound"), expected(Vec::new(), restamped).1);
    }
}

#[test]
fn a_live_plan_wins_and_a_name_is_found_in_any_normal_form() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let tree = arbitrary::plan().new_tree(&mut runner).expect("plans can be made");
    let of = |name: &str, is_archived| Plan {
        id: PlanId::new(name),
        is_archived,
        title: format!("{name} {is_archived}"),
        ..proptest::strategy::ValueTree::current(&tree)
    };
    let mut index = memory();
    let plans = [of("a", true), of("a", false), of("b", true), of("caf\u{e9}", false)];
    index.replace(&[], &plans).expect("they fit");
    let title = |name: &str| index.load_plan(&PlanId::new(name)).expect("it is sound").map(|it| it.title);
    assert_eq!(title("a").as_deref(), Some("a false"));
    assert_eq!(title("b").as_deref(), Some("b true"));
    assert_eq!(title("cafe\u{301}").as_deref(), Some("caf\u{e9} false"));
    assert_eq!(title("c"), None);
}

#[test]
fn two_plans_of_one_name_are_refused_and_change_nothing() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let tree = arbitrary::plan().new_tree(&mut runner).expect("plans can be made");
    let plan = proptest::strategy::ValueTree::current(&tree);
    let mut index = memory();
    let file = FileRow::new("a/plan.md", Stamp::new(1, 2, 3, 4, 5), "h", 9);
    index.replace(std::slice::from_ref(&file), std::slice::from_ref(&plan)).expect("it fits");
    let error = index.replace(&[], &[plan.clone(), plan.clone()]).expect_err("one name");
    assert_eq!(error.code(), "index-unfit");
    assert_eq!(index.files().expect("it is sound"), [file]);
    assert_eq!(index.load().expect("it is sound"), [arbitrary::without_bodies(plan)]);
}
