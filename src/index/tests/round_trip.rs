//! The index returns exactly what was stored.

use proptest::prelude::*;

use super::arbitrary;
use crate::index::{Change, FileRow, Head, Index, Key, Packed, Place, Stamp, stamps};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;

/// Plans as the index returns them: in order, without bodies.
fn expected(plans: Vec<Plan>) -> Vec<Plan> {
    Plans::new(plans.into_iter().map(arbitrary::without_bodies).collect()).into_vec()
}

fn memory() -> Index {
    Index::open(Place::Memory).expect("there is memory").0
}

fn key(plan: &Plan) -> Key {
    Key { is_archived: plan.is_archived, name: plan.id.as_str().to_owned() }
}

fn put(index: &mut Index, files: &[FileRow], plans: &[Plan]) {
    let mut changes = plans.iter().map(|it| Change::Put(Packed::new(key(it), 1, files, it)));
    index.write(&mut changes).expect("any plans fit");
}

fn heads(index: &mut Index) -> Vec<Head> {
    index.snapshot().expect("it is readable").heads().expect("it is sound")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn stored_plans_are_returned_unchanged(
        before in arbitrary::plans(),
        plans in arbitrary::plans(),
        files in arbitrary::files(),
    ) {
        let mut index = memory();
        put(&mut index, &[], &before);
        let gone = before.iter().map(key).filter(|it| plans.iter().all(|plan| key(plan) != *it));
        index.write(&mut gone.map(Change::Remove)).expect("they are there");
        put(&mut index, &files, &plans);
        let plans = expected(plans);
        for head in heads(&mut index) {
            prop_assert_eq!(head.files().expect("it is sound"), files.clone());
        }
        let seen = index.snapshot().expect("it is readable");
        for plan in &plans {
            let found = seen.load_plan(&plan.id).expect("it is sound");
            prop_assert_eq!(found.map(|it| it.id), Some(plan.id.clone()));
        }
        let heads = seen.heads().expect("it is sound");
        let data = seen.summaries(&heads).expect("it is sound");
        let summaries = heads.iter().enumerate().map(|(at, it)| it.summary(data.of(at)).expect("it is sound"));
        let stored = summaries.map(|it| it.plan().clone()).collect();
        let expected = plans.iter().map(|it| it.summary().plan().clone()).collect::<Vec<_>>();
        prop_assert_eq!(Plans::new(stored).into_vec(), expected);
        let n_steps = plans.iter().map(|it| it.steps.len()).sum::<usize>();
        prop_assert_eq!(seen.count().expect("it is sound"), (plans.len(), n_steps));
        prop_assert_eq!(seen.load().expect("it is sound"), plans);
    }

    #[test]
    fn a_row_is_current_only_for_the_files_it_was_made_from(
        plan in arbitrary::plan(),
        files in arbitrary::files(),
        others in arbitrary::files(),
    ) {
        let of = |files: &[FileRow]| stamps(files.iter().map(|it| (it.name.as_str(), it.stamp)));
        let head = Packed::new(key(&plan), 7, &files, &plan).head;
        let is_sure = !files.iter().any(FileRow::is_in_doubt);
        prop_assert_eq!(head.is_current_for(7, &of(&files)), is_sure);
        prop_assert!(!head.is_current_for(8, &of(&files)));
        let named = |files: &[FileRow]| files.iter().map(|it| (it.name.clone(), it.stamp)).collect::<Vec<_>>();
        prop_assert_eq!(head.is_current_for(7, &of(&others)), is_sure && named(&files) == named(&others));
    }

    #[test]
    fn new_stamps_take_the_place_of_old_ones_of_the_same_plan(
        plan in arbitrary::plan(),
        other in arbitrary::plan(),
        files in arbitrary::files(),
    ) {
        let mut index = memory();
        put(&mut index, &[], std::slice::from_ref(&plan));
        let head = heads(&mut index).remove(0);
        index.write(&mut [Change::Restamp(head.restamped(1, &files))].into_iter()).expect("it is sound");
        prop_assert_eq!(&heads(&mut index)[0].files().expect("it is sound"), &files);
        let other = Plan { id: plan.id.clone(), is_archived: plan.is_archived, ..other };
        put(&mut index, &[], std::slice::from_ref(&other));
        let old = head.restamped(1, &files);
        index.write(&mut [Change::Restamp(old)].into_iter()).expect("it is sound");
        let is_same = arbitrary::without_bodies(other) == arbitrary::without_bodies(plan);
        let left = if is_same { files } else { Vec::new() };
        prop_assert_eq!(heads(&mut index)[0].files().expect("it is sound"), left);
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
    put(&mut index, &[], &[of("a", true), of("a", false), of("b", true), of("caf\u{e9}", false)]);
    let mut title = |name: &str| {
        let found = index.snapshot().and_then(|it| it.load_plan(&PlanId::new(name)));
        found.expect("it is sound").map(|it| it.title)
    };
    assert_eq!(title("a").as_deref(), Some("a false"));
    assert_eq!(title("b").as_deref(), Some("b true"));
    assert_eq!(title("cafe\u{301}").as_deref(), Some("caf\u{e9} false"));
    assert_eq!(title("c"), None);
}

#[test]
fn a_doubtful_row_is_never_current() {
    let plan = super::sample::plans().remove(0);
    let stamp = Stamp::new(1, 2, 3, 4, 5);
    for (file, is_sure) in [
        (FileRow::new("plan.md", stamp, "h", i64::MAX), true),
        (FileRow::new("plan.md", stamp, "h", 9), false),
        (FileRow::new("plan.md", stamp, "", i64::MAX), false),
    ] {
        let head = Packed::new(key(&plan), 1, &[file], &plan).head;
        assert_eq!(head.is_current_for(1, &stamps([("plan.md", stamp)].into_iter())), is_sure);
    }
}
