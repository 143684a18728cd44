//! Merges bodies: checkboxes and the Steps list item by item, the rest by lines.
//!
//! The merged form of each item is first written into all three versions, so that it cannot conflict in the merge
//! by lines.

use std::collections::{BTreeMap, BTreeSet};

use super::squashed;
use super::{FileKind, TextMerge, TextMerged};
use crate::plan::id::PlanId;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::text::markdown;

/// Base, OURS and THEIRS.
type Three = [String; 3];

pub(super) fn merge(
    kind: FileKind,
    plan: &PlanId,
    bodies: [&str; 3],
    lines: &dyn TextMerge,
) -> Option<TextMerged> {
    let [base, ours, theirs] = bodies;
    if let Some(text) = one_of(base, ours, theirs) {
        return Some(TextMerged { bytes: text.as_bytes().to_vec(), is_clean: true });
    }
    let mut three = bodies.map(str::to_owned);
    tick_alike(&mut three);
    if kind == FileKind::Plan {
        list_alike(plan, &mut three);
    }
    let [base, ours, theirs] = &three;
    if let Some(text) = one_of(base, ours, theirs) {
        return Some(TextMerged { bytes: text.as_bytes().to_vec(), is_clean: true });
    }
    let merged = lines.merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())?;
    match squashed::alike(&three) {
        Some([ours, theirs]) if !merged.is_clean => {
            lines.merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())
        }
        _ => Some(merged),
    }
}

/// The result of a three-way merge if at most one side changed, or both in the same way; `None` otherwise.
pub(super) fn one_of<'a, T: PartialEq + ?Sized>(base: &T, ours: &'a T, theirs: &'a T) -> Option<&'a T> {
    if ours == theirs || theirs == base { Some(ours) } else { (ours == base).then_some(theirs) }
}

/// Identifies a checkbox by its item's text and its position among equal items.
type BoxName = (String, usize);

/// Maps each checkbox to the byte position of its mark, and to whether it is ticked.
fn boxes(body: &str) -> BTreeMap<BoxName, (usize, bool)> {
    let outline = markdown::outline(body);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut boxes = BTreeMap::new();
    for item in &outline.items {
        let found = outline.tasks.iter().find(|it| (item.span.start..item.at).contains(&it.at));
        let (Some(ticked), Some(task)) = (item.ticked, found) else { continue };
        let count = seen.entry(item.text.as_str()).or_default();
        boxes.insert((item.text.clone(), *count), (task.at + 1, ticked));
        *count += 1;
    }
    boxes
}

/// Writes the merged marks of checkboxes into all three versions.
fn tick_alike(three: &mut Three) {
    let [base, ours, theirs] = [0, 1, 2].map(|it| boxes(&three[it]));
    for (name, (_, own)) in &ours {
        let Some((_, other)) = theirs.get(name) else { continue };
        let is_ticked = match base.get(name) {
            Some((_, before)) => {
                if own == before {
                    *other
                } else {
                    *own
                }
            }
            None => *own || *other,
        };
        for (text, boxes) in three.iter_mut().zip([&base, &ours, &theirs]) {
            let Some((at, ticked)) = boxes.get(name).copied() else { continue };
            let is_mark =
                text.is_char_boundary(at) && matches!(text.as_bytes().get(at), Some(b' ' | b'x' | b'X'));
            if ticked != is_ticked && is_mark {
                text.replace_range(at..=at, if is_ticked { "x" } else { " " });
            }
        }
    }
}

/// Writes the merged items of the Steps list into all three versions.
fn list_alike(plan: &PlanId, three: &mut Three) {
    let lists = [0, 1, 2].map(|it| steps_list::blocks(plan, &three[it]));
    let has_twice = |list: &Vec<(StepNumber, String)>| {
        list.len() != list.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len()
    };
    if lists.iter().any(has_twice) || lists.iter().any(Vec::is_empty) {
        return;
    }
    if let Some(alike) = with_merged_items(plan, three, &lists.map(|it| it.into_iter().collect())) {
        *three = alike;
    }
}

/// The versions with the merged items. `None` if a version has no list to which an item could be added.
fn with_merged_items(
    plan: &PlanId,
    three: &Three,
    lists: &[BTreeMap<StepNumber, String>; 3],
) -> Option<Three> {
    let numbers: BTreeSet<&StepNumber> = lists.iter().flat_map(BTreeMap::keys).collect();
    let merged = numbers.into_iter().filter_map(|number| {
        let [base, ours, theirs] = lists.each_ref().map(|it| it.get(number));
        Some((number, one_of(&base, &ours, &theirs)?.map(String::as_str)))
    });
    // Items are removed last: a version that has lost all of its items has no list any more, and an added item would have
    // no neighbour.
    let (kept, removed): (Vec<_>, Vec<_>) = merged.partition(|(_, block)| block.is_some());
    let mut alike = three.clone();
    for (number, block) in kept.into_iter().chain(removed) {
        for (text, list) in alike.iter_mut().zip(lists) {
            if list.get(number).map(String::as_str) != block {
                *text = steps_list::with_block(plan, text, number, block)?;
            }
        }
    }
    Some(alike)
}
