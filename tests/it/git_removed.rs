//! Steps that were removed, squashed or archived while another branch worked on them: git merges that work into the moved
//! copy and reports no conflict.

use serde_json::Value;

use crate::git_merge::{BASE, Driver, LIST, PLAN, Repository, STEP, with};
use crate::support::Ran;

const FIRST: &str = "plans/auth/step-1.md";
const COPY: &str = "plans/_archive/auth/removed-20261121T120000Z/step-2.md";
const LATER: &str = "2026-11-21T13:00:00Z";

fn first() -> String {
    with(
        BASE,
        &[
            ("id: auth:2", "id: auth:1"),
            ("depends:\n  - 1\n", ""),
            ("title: Schema", "title: Server"),
            ("# Schema", "# Server"),
            ("First words.", "What the server is for."),
        ],
    )
}

/// A step without dependencies.
fn second() -> String {
    with(BASE, &[("depends:\n  - 1\n", "")])
}

fn repository(driver: Driver) -> Repository {
    let (first, second) = (first(), second());
    Repository::new(driver, &[(PLAN, LIST), (FIRST, &first), (STEP, &second)])
}

/// A merge without a conflict: THEIRS completed the step, OURS ran the command `ours`.
fn merged(driver: Driver, ours: &str) -> Repository {
    let repository = repository(driver);
    repository.git("checkout -q -b theirs");
    repository.planwatch("done auth:2 -m Tables").ok_code();
    repository.commit(&[]);
    repository.git("checkout -q main");
    repository.planwatch(ours).ok_code();
    repository.commit(&[]);
    assert_eq!(problems(&repository), Vec::<Value>::new(), "{ours}: there is no change to report yet");
    repository.git("merge -q --no-edit theirs");
    assert_eq!(repository.git("status --porcelain"), "", "{ours}: git sees no conflict");
    repository
}

fn problems(repository: &Repository) -> Vec<Value> {
    let of = |line: &str| {
        let found = repository.planwatch(line).json()["problems"].as_array().cloned().unwrap_or_default();
        found.into_iter().filter(|it| it["code"] == "changed-after-removal").collect::<Vec<_>>()
    };
    assert_eq!(of("check --json"), Vec::<Value>::new(), "only git's history shows it");
    of("check --git --json")
}

#[track_caller]
fn is_reported(repository: &Repository, path: &str, words: &[&str]) {
    let found = problems(repository);
    let [problem] = found.as_slice() else { panic!("{found:?}") };
    let said = format!("{} {}", problem["message"], problem["hint"]);
    assert_eq!(problem["path"], path, "{said}");
    assert!(words.iter().all(|it| said.contains(it)), "{said}");
}

#[track_caller]
fn restored(repository: &Repository, state: &str) {
    let dry = repository.planwatch("git resolve --restore auth:2 --dry-run");
    assert_eq!((dry.code, dry.stdout.contains(state)), (0, true), "{dry:?}");
    assert_eq!(repository.git("status --porcelain"), "", "a dry run writes nothing");
    let ran = repository.planwatch("git resolve --restore auth:2");
    assert_eq!((ran.code, ran.stdout.contains(state)), (0, true), "{ran:?}");
    assert_eq!(problems(repository), Vec::<Value>::new());
}

const NEWS: [&str; 3] =
    ["status `completed`, was `pending`", "ann completed", "git resolve --restore auth:2"];

#[test]
fn a_removed_step_that_another_branch_completed_is_reported_and_can_be_restored() {
    for driver in [Driver::None, Driver::Configured] {
        let repository = merged(driver, "remove auth:2");
        is_reported(&repository, COPY, &NEWS);
        let done = repository.place.text(COPY);
        restored(&repository, "restored");
        assert_eq!(repository.place.text(STEP), done);
        assert!(done.contains("notes: Tables"), "{done}");
        assert_eq!(repository.place.text(PLAN), LIST, "its line in the Steps list is back, too");
        assert!(!repository.place.file("plans/_archive/auth").exists());
        // The restoration is one change: all its moves and edits are undone together.
        repository.planwatch("undo").ok_code();
        assert_eq!(repository.git("status --porcelain"), "");
        is_reported(&repository, COPY, &NEWS);
    }
}

#[test]
fn a_removed_step_whose_plan_was_archived_later_is_restored_after_its_plan() {
    let repository = merged(Driver::None, "remove auth:2");
    repository.planwatch("archive auth --force").ok_code();
    repository.commit(&[]);
    let hint = "first `planwatch restore auth`, then `planwatch git resolve --restore auth:2`";
    is_reported(&repository, COPY, &[hint]);
    repository.planwatch("restore auth").ok_code();
    repository.commit(&[]);
    restored(&repository, "restored");
}

#[test]
fn a_squashed_step_gives_its_attempts_to_the_step_that_replaced_it() {
    for driver in [Driver::None, Driver::Configured] {
        let repository = merged(driver, "squash auth 1 2 --title Both");
        is_reported(
            &repository,
            COPY,
            &["squashed", "ann completed", "adds its attempts and notes to step 1"],
        );
        let copy = repository.place.text(COPY);
        restored(&repository, "carried");
        assert_eq!(repository.place.text(COPY), copy, "the removed file stays as it is");
        let both = repository.place.text(FIRST);
        assert!(both.contains("notes: Tables") && both.contains("status: pending"), "{both}");
        repository.commit(&[]);
        assert_eq!(problems(&repository), Vec::<Value>::new());
    }
}

#[test]
fn a_step_that_was_squashed_into_a_moved_step_is_not_called_removed() {
    let third = with(
        &second(),
        &[("id: auth:2", "id: auth:3"), ("title: Schema", "title: Login"), ("# Schema", "# Login")],
    );
    let plan = "---\nstatus: active\n---\n# Auth\n";
    let files = [(PLAN, plan), (FIRST, &first()), (STEP, &second()), ("plans/auth/step-3.md", &third)];
    let repository = Repository::new(Driver::None, &files);
    repository.git("checkout -q -b theirs");
    repository.planwatch("squash auth 2 3 --title Both").ok_code();
    repository.commit(&[]);
    repository.git("checkout -q main");
    repository.planwatch("move auth:2 --to 7").ok_code();
    repository.planwatch("note auth:3 late").ok_code();
    repository.commit(&[]);
    repository.git("merge -q --no-edit theirs");
    repository.planwatch("git resolve").ok_code();
    let both = repository.place.text("plans/auth/step-7.md");
    assert!(both.contains("# Both") && !both.contains("late"), "{both}");
    let copy = "plans/_archive/auth/removed-20261121T120000Z/step-3.md";
    is_reported(&repository, copy, &["squashed", "adds its attempts and notes to step 7"]);
    repository.planwatch("git resolve --restore auth:3").ok_code();
    assert!(repository.place.text("plans/auth/step-7.md").contains("late"));
    assert!(!repository.place.file("plans/auth/step-3.md").exists());
}

#[test]
fn a_change_of_a_squashed_step_is_reported_until_its_copy_is_set_back() {
    let edited = with(&second(), &[("First words.", "First words, as Bob asked.")]);
    let changes = [
        ("", "the text changed"),
        ("done auth:2", "status `completed`, was `pending`"),
        ("claim auth:2", "status `in_progress`, was `pending`"),
        ("set auth:2 verify+=make", "the front matter changed"),
        ("fail auth:2 -m late", "the text changed"),
    ];
    for (line, change) in changes {
        let repository = repository(Driver::None);
        repository.git("checkout -q -b theirs");
        if change == "the text changed" {
            repository.place.write(STEP, &edited);
        }
        if !line.is_empty() {
            repository.planwatch(line).ok_code();
        }
        repository.commit(&[]);
        repository.git("checkout -q main");
        repository.planwatch("squash auth 1 2 --title Both").ok_code();
        repository.commit(&[]);
        repository.git("merge -q --no-edit theirs");
        if line.starts_with("fail") {
            is_reported(&repository, COPY, &["ann failed", change, "--restore"]);
            repository.planwatch("git resolve --restore auth:2").ok_code();
        }
        is_reported(&repository, COPY, &["`auth:2` changed after it was squashed", change, "to step 1"]);
        let refused = repository.planwatch("git resolve --restore auth:2");
        assert_eq!((refused.code, refused.stderr.contains(change)), (4, true), "{line}: {refused:?}");
        let problems_found = problems(&repository);
        let hint = problems_found[0]["hint"].as_str().expect("it is a text");
        let commands: Vec<_> = hint.split('`').filter(|it| it.starts_with("git ")).collect();
        let [diff, checkout] = commands[..] else { panic!("{hint}") };
        assert!(repository.git(&diff["git ".len()..]).contains("@@"), "{hint}");
        repository.git(&checkout["git ".len()..]);
        assert_eq!(problems(&repository), Vec::<Value>::new(), "{line}");
    }
}

#[test]
fn a_step_of_an_archived_or_removed_plan_is_restored_with_its_plan() {
    let archived = ("archive auth", "plans/_archive/auth/step-2.md");
    for (line, path) in [archived, ("remove auth --yes", COPY)] {
        let repository = merged(Driver::None, line);
        is_reported(&repository, path, &NEWS);
        let done = repository.place.text(path);
        restored(&repository, "restored");
        assert_eq!(
            (repository.place.text(STEP), repository.place.text(PLAN)),
            (done, LIST.to_owned()),
            "{line}"
        );
        // A second removal or archiving moves the restored texts, so nothing is reported.
        repository.commit(&[]);
        later(&repository, line);
        repository.commit(&[]);
        assert_eq!(problems(&repository), Vec::<Value>::new(), "{line}");
    }
}

fn later(repository: &Repository, line: &str) {
    let mut command = repository.place.command();
    command.args(line.split(' ')).env("PLANWATCH_NOW", LATER);
    Ran::of(command.output().expect("the binary starts")).ok_code();
}

#[test]
fn work_that_is_later_than_the_removal_is_reported_after_a_rebase() {
    let repository = repository(Driver::None);
    repository.git("checkout -q -b theirs");
    later(&repository, "done auth:2 -m Tables");
    repository.commit(&[]);
    repository.git("checkout -q main");
    repository.planwatch("remove auth:2").ok_code();
    repository.commit(&[]);
    // The rebase repeats the removal on top of the work, as if the step had been completed before it was removed.
    repository.git("rebase -q theirs");
    is_reported(&repository, COPY, &["ann completed", "restores it"]);
    restored(&repository, "restored");
}

#[test]
fn a_restored_step_gets_a_new_number_if_its_own_is_taken() {
    let repository = merged(Driver::None, "remove auth:2");
    let other = with(
        BASE,
        &[("title: Schema", "title: Other"), ("# Schema", "# Other"), ("2026-01-01", "2026-01-02")],
    );
    repository.commit(&[(STEP, &other)]);
    let copy = repository.place.text(COPY);
    restored(&repository, "plans/auth/step-3.md");
    assert_eq!(repository.place.text(STEP), other);
    assert_eq!(repository.place.text("plans/auth/step-3.md"), with(&copy, &[("id: auth:2", "id: auth:3")]));
    assert!(repository.place.text(PLAN).contains("- step-3: Schema"), "{}", repository.place.text(PLAN));
}

#[test]
fn only_a_step_that_changed_after_its_removal_is_restored() {
    let repository = merged(Driver::None, "remove auth:2");
    for (name, can_be) in
        [("auth:1", false), ("auth:2", true), (COPY, true), ("../x", false), ("auth", false)]
    {
        let ran = repository.planwatch(&format!("git resolve --restore {name} --dry-run"));
        assert_eq!(ran.code, if can_be { 0 } else { 4 }, "{name}: {ran:?}");
    }
    let outside = crate::support::Place::new();
    outside.write("plans/auth/plan.md", LIST);
    let ran = outside.run("check --git");
    assert_eq!((ran.code, ran.stderr.contains("not-a-repository")), (3, true), "{ran:?}");
}

#[test]
fn a_step_that_was_added_to_a_plan_that_another_branch_archived_or_removed_is_reported() {
    let new =
        with(BASE, &[("id: auth:2", "id: auth:3"), ("title: Schema", "title: Fix"), ("# Schema", "# Fix")]);
    let archived = ("archive auth", "plans/_archive/auth/step-3.md", "archived");
    let removed = ("remove auth --yes", "plans/_archive/auth/removed-20261121T120000Z/step-3.md", "removed");
    for (line, path, closed) in [archived, removed] {
        for is_adder_ours in [true, false] {
            let repository = repository(Driver::None);
            repository.git("checkout -q -b closer");
            repository.planwatch(line).ok_code();
            repository.commit(&[]);
            repository.git("checkout -q -b adder main");
            repository.commit(&[("plans/auth/step-3.md", &new)]);
            let (ours, theirs) = if is_adder_ours { ("adder", "closer") } else { ("closer", "adder") };
            repository.git(&format!("checkout -q {ours}"));
            assert_eq!(repository.try_git(&format!("merge -q --no-edit {theirs}")).code, 1);
            let ran = repository.planwatch("git resolve");
            assert_eq!((ran.code, ran.stdout.contains("git resolve --restore auth:3")), (0, true), "{ran:?}");
            assert_eq!(repository.place.text(path), new);
            repository.git("commit -q --no-edit");
            let words = format!("`auth:3` was added after its plan was {closed}");
            is_reported(&repository, path, &[&words, "git resolve --restore auth:3` restores the plan"]);
            repository.planwatch("git resolve --restore auth:3").ok_code();
            assert_eq!(repository.place.text("plans/auth/step-3.md"), new);
            assert_eq!(problems(&repository), Vec::<Value>::new());
            // Nothing is reported if the plan is archived or removed again, committed or not.
            repository.commit(&[]);
            later(&repository, line);
            assert_eq!(problems(&repository), Vec::<Value>::new());
            repository.commit(&[]);
            assert_eq!(problems(&repository), Vec::<Value>::new());
        }
    }
}

#[test]
fn steps_that_a_clone_cannot_check_are_named() {
    for line in ["remove auth:2", "archive auth"] {
        let repository = repository(Driver::None);
        repository.git("commit -q --allow-empty -m more");
        repository.git("checkout -q -b theirs");
        repository.planwatch("done auth:2 -m Tables").ok_code();
        repository.commit(&[]);
        repository.git("checkout -q main");
        later(&repository, line);
        repository.commit(&[]);
        repository.git("merge -q --no-edit theirs");
        repository.git("config uploadpack.allowFilter true");
        let origin = format!("file://{}", repository.place.work().display());
        let clones: [(&str, &[&str], &str); 4] = [
            ("--depth 1", &["fetch", "-q", "--unshallow"], "git fetch --unshallow"),
            ("--filter=blob:none", &["log", "-p", "--quiet", "--all"], "git log -p --all -- plans/_archive"),
            (
                "--sparse",
                &["sparse-checkout", "add", "plans/_archive"],
                "git sparse-checkout add plans/_archive",
            ),
            // The history is complete for the removal.
            ("--depth 3", &["status"], ""),
        ];
        for (options, mend, command) in clones {
            let name = options.replace(' ', "");
            repository.git(&format!("clone -q {options} {origin} ../{name}"));
            let clone = repository.place.work().join(format!("../{name}"));
            let git = |words: &[&str]| repository.place.git_at(&clone, 0, words);
            if options == "--sparse" {
                git(&["sparse-checkout", "set", "plans/auth"]);
                repository.place.write(&format!("../{name}/plans/new/plan.md"), LIST);
            }
            let check = || repository.planwatch(&format!("-C ../{name} check --git --json"));
            let restore =
                || repository.planwatch(&format!("-C ../{name} git resolve --restore auth:2 --dry-run"));
            if !command.is_empty() {
                let (found, refused) = (check(), restore());
                assert_eq!(found.code, 0, "{found:?}");
                assert!(found.stdout.contains("not-checked") && found.stdout.contains(command), "{found:?}");
                assert!(found.stdout.contains("auth:2"), "{found:?}");
                assert!(
                    refused.stderr.contains("not-checked") && refused.stderr.contains(command),
                    "{refused:?}"
                );
            }
            git(mend);
            let found = check();
            assert!(!found.stdout.contains("not-checked"), "{line} {options}: {found:?}");
            assert!(found.stdout.contains("changed-after-removal"), "{line} {options}: {found:?}");
            assert_eq!(restore().code, 0, "{line} {options}");
        }
    }
}

#[test]
fn a_merge_whose_parents_a_shallow_clone_lacks_is_not_compared() {
    let repository = merged(Driver::None, "remove auth:2");
    let origin = format!("file://{}", repository.place.work().display());
    repository.git(&format!("clone -q --depth 1 {origin} ../shallow"));
    for (line, words) in [("", "contains no merge"), (" HEAD", "lacks the parents of")] {
        let refused = repository.planwatch(&format!("-C ../shallow git resolve --check{line}"));
        assert_eq!(refused.code, 4, "{refused:?}");
        assert!(refused.stderr.contains(words) && refused.stderr.contains("--unshallow"), "{refused:?}");
    }
    repository.place.git_at(&repository.place.work().join("../shallow"), 0, &["fetch", "-q", "--unshallow"]);
    repository.planwatch("-C ../shallow git resolve --check").ok_code();
}

#[test]
fn a_merge_whose_files_a_partial_clone_lacks_is_not_compared() {
    let repository = merged(Driver::Configured, "note auth:2 later");
    repository.git("config uploadpack.allowFilter true");
    let origin = format!("file://{}", repository.place.work().display());
    repository.git(&format!("clone -q --filter=blob:none {origin} ../partial"));
    let refused = repository.planwatch("-C ../partial git resolve --check");
    assert_eq!(refused.code, 1, "{refused:?}");
    let has = |words: &str| refused.stderr.contains(words);
    assert!(has("is not in this clone") && has("`git log -p --all -- plans` fetches"), "{refused:?}");
    let clone = repository.place.work().join("../partial");
    repository.place.git_at(&clone, 0, &["log", "-p", "--quiet", "--all", "--", "plans"]);
    repository.planwatch("-C ../partial git resolve --check").ok_code();
}
