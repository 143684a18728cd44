//! A merge of a branch that completed a claimed step with a branch that changed the step with `--force` meanwhile.

use crate::git_merge::{Driver, PLAN, Repository};

const LIST: &str = "---\nstatus: active\n---\n# Auth\n\n## Steps\n- step-1: One\n- step-2: Two\n";
const ONE: &str = "---\nid: auth:1\nstatus: completed\n---\n# One\n";

const TWO: &str =
    "---\nid: auth:2\nstatus: pending\ncreated_at: 2026-01-01T00:00:00Z\n---\n# Two\n\nText of the step.\n";

/// Another worker's change, the path of the step's file after it, and what the merged file contains of the change.
const FORCED: [(&str, &str, &str); 4] = [
    ("set auth:2 phase build --force", "plans/auth/step-2.md", "phase: build\n"),
    ("set auth:2 tags+=db --force", "plans/auth/step-2.md", "- db\n"),
    ("unset auth:2 created_at --force", "plans/auth/step-2.md", "created_at removed"),
    ("move auth:2 --to 5 --force", "plans/auth/step-5.md", "id: auth:5\n"),
];

#[test]
fn the_completion_wins_over_a_forced_change_of_the_other_side() {
    for driver in [Driver::Configured, Driver::None] {
        for (line, path, content) in FORCED {
            let files = [(PLAN, LIST), ("plans/auth/step-1.md", ONE), ("plans/auth/step-2.md", TWO)];
            let repository = Repository::new(driver, &files);
            let claimed = repository.planwatch("claim auth:2 --by ann --json").json();
            repository.commit(&[]);
            repository.git("branch theirs");
            repository.planwatch(&format!("{line} --by bo")).ok();
            repository.commit(&[]);
            repository.git("checkout -q theirs");
            let claim = claimed["claim"]["id"].as_str().unwrap();
            repository.planwatch(&format!("done auth:2 --by ann --claim {claim} --message built")).ok();
            repository.commit(&[]);
            repository.git("checkout -q main");
            if repository.try_git("merge -q --no-edit theirs").code != 0 {
                repository.planwatch("git resolve").ok();
            }
            let merged = repository.place.text(path);
            assert!(merged.contains("status: completed\n"), "{line}: {merged}");
            assert!(merged.contains("built") && merged.contains(content), "{line}: {merged}");
            assert!(!merged.contains("claim: {") && !merged.contains("<<<"), "{line}: {merged}");
            assert_eq!(repository.conflicts(), "", "{line}");
            repository.planwatch("check").ok();
        }
    }
}
