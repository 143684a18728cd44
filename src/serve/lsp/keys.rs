//! A short description of each key of the front matter, and the words that keys allow.

use crate::ops::completion;
use crate::plan::read::{PLAN_KEYS, STEP_KEYS};

use super::tree::Role;

const OF_PLANS: [(&str, &str); 19] = [
    (
        "status",
        "The plan's status: `draft`, `active`, `completed` or `abandoned`. Without it the plan is active.",
    ),
    ("title", "The plan's title. Without it the first heading of level 1 is the title."),
    ("description", "What the plan is about. Without it the first paragraph is the description."),
    ("kind", "`plan`, or `program` for a plan whose children are plans."),
    ("program", "The id of the program that the plan belongs to."),
    ("category", "`feature`, `bug`, `change`, `analysis`, `debug`, `refactor` or `documentation`."),
    ("priority", "`low`, `medium`, `high` or `critical`. Steps without a priority have their plan's."),
    ("due", "The date when the plan is due, such as 2026-11-21."),
    ("tags", "Words by which lists can be filtered."),
    ("files", "Files that the plan is about."),
    ("goals", "What the plan should achieve. A goal may begin with a box: `[ ]` or `[x]`."),
    (
        "success_criteria",
        "How to tell that the plan succeeded. A criterion may begin with a box: `[ ]` or `[x]`.",
    ),
    ("order", "`dependencies`, or `sequential`: each step waits for the one before it."),
    ("confirm_phases", "Phases that a person must confirm before their steps can be claimed."),
    (
        "confirmations",
        "The phases that were confirmed: `{phase, by, at, note}` each. `planwatch confirm` writes them.",
    ),
    ("draft", "How far the draft has been refined. `planwatch draft` writes it."),
    ("created_at", "When the plan was created."),
    ("metadata", "Keys of your own; they are kept as they are."),
    ("notes", "Notes: `{at, type, by, text}` each. `planwatch note` adds one at the end."),
];

const OF_STEPS: [(&str, &str); 21] = [
    ("id", "The step's id. If it differs from the file's name, the file's name counts."),
    (
        "status",
        "`pending`, `in_progress`, `completed`, `failed`, `blocked` or `skipped`. Without it the step is pending.",
    ),
    ("claim", "Who works on the step now. `planwatch claim` writes it."),
    ("title", "The step's title. Without it the first heading of level 1 is the title."),
    (
        "depends",
        "The steps that must be completed or skipped first: numbers, or ids such as `plan:2` of other plans. If the key is present, \
         dependencies in the text below are ignored.",
    ),
    ("phase", "The part of the plan that the step belongs to."),
    (
        "type",
        "`standard`, `analysis`, `validation`, `user_validation` (a person confirms it), or a word of your own.",
    ),
    ("assignee", "The person whom the step is assigned to."),
    ("priority", "`low`, `medium`, `high` or `critical`. Without it the step has its plan's."),
    ("due", "The date when the step is due, such as 2026-11-21."),
    ("tags", "Words by which lists can be filtered."),
    ("created_at", "When the step was created."),
    ("metadata", "Keys of your own; they are kept as they are."),
    ("created_by", "`user`, `agent`, or a name."),
    ("confirm", "`required`: a person must confirm the step before it can be claimed."),
    ("confirmed", "The confirmation: `{by, at, note}`. `planwatch confirm` writes it."),
    ("verify", "Commands that must succeed before a run counts the step as completed."),
    ("touches", "Globs of the files that the work changes. Without it they are unknown; `[]` means none."),
    ("result", "The outcome, as other tools write it. planwatch changes it only with `set`."),
    ("notes", "Notes: `{at, type, by, text}` each. `planwatch note` adds one at the end."),
    (
        "attempts",
        "What was tried: `{at, by, outcome, notes}` each. New entries are added at the end; entries are never changed.",
    ),
];

/// The keys of a file with their descriptions, in the order in which planwatch writes them.
pub(super) fn all(role: &Role) -> Vec<(&'static str, &'static str)> {
    let (order, meanings): (&[&str], &[(&str, &str)]) = match role {
        Role::Plan => (PLAN_KEYS, &OF_PLANS),
        Role::Step(_) => (STEP_KEYS, &OF_STEPS),
        Role::OutsidePlans => return Vec::new(),
    };
    let meaning = |key: &&'static str| Some((*key, meanings.iter().find(|it| it.0 == *key)?.1));
    order.iter().filter_map(meaning).collect()
}

pub(super) fn meaning(role: &Role, key: &str) -> Option<&'static str> {
    all(role).into_iter().find(|it| it.0 == key).map(|it| it.1)
}

/// Keys whose values are lists.
pub(super) fn is_list(key: &str) -> bool {
    [
        "depends",
        "tags",
        "files",
        "goals",
        "success_criteria",
        "confirm_phases",
        "verify",
        "touches",
        "notes",
        "attempts",
        "confirmations",
    ]
    .contains(&key)
}

/// Keys that people do not write by hand. They are not offered as completions.
pub(super) fn is_written_by_planwatch(key: &str) -> bool {
    ["id", "claim", "confirmations", "confirmed", "draft", "result", "created_at"].contains(&key)
}

/// The fixed words that a key allows. Statuses are not included.
pub(super) fn words(key: &str) -> Vec<&'static str> {
    match key {
        "type" => vec!["standard", "analysis", "validation", "user_validation"],
        "created_by" => vec!["user", "agent"],
        "status" => Vec::new(),
        other => completion::values(other),
    }
}

/// The outcomes that are offered as completions.
pub(super) const OUTCOMES: [&str; 5] = ["completed", "failed", "blocked", "skipped", "interrupted"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::step_number::StepNumber;

    #[test]
    fn each_key_has_a_meaning() {
        assert_eq!(all(&Role::Plan).len(), PLAN_KEYS.len());
        assert_eq!(all(&Role::Step(StepNumber::whole(1))).len(), STEP_KEYS.len());
    }
}
