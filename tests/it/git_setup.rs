//! `git setup` where other attributes keep git from using the merge driver.

use crate::git_merge::{BASE, Driver, LIST, PLAN, Repository, STEP};

#[test]
fn setup_warns_if_git_does_not_use_the_driver() {
    for (path, text) in [
        ("plans/.gitattributes", "*.md merge=union\n"),
        ("plans/auth/.gitattributes", "step-2.md -merge\n"),
        (".git/info/attributes", "*.md merge=union\n"),
    ] {
        let repository = Repository::new(Driver::Configured, &[(PLAN, LIST), (STEP, BASE)]);
        assert_eq!(repository.planwatch("git setup").stderr, "");
        repository.place.write(path, text);
        let ran = repository.planwatch("git setup");
        assert_eq!(
            (ran.code, ran.stderr.contains("git does not use the driver for `plans/")),
            (0, true),
            "{ran:?}"
        );
        let json = repository.planwatch("git setup --dry-run --json").json();
        assert!(json["overridden"]["path"].as_str().is_some_and(|it| it.starts_with("plans/")), "{json}");
        assert_eq!(repository.planwatch("git setup --undo").stderr, "");
    }
}
