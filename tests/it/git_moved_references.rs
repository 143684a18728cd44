//! `git resolve` where one side moved a step, and the other side added references to the step's old number.

use crate::git_merge::{Driver, PLAN, Repository, with};

const ONE: &str = "plans/auth/step-1.md";
const TWO: &str = "plans/auth/step-2.md";
const FOUR: &str = "plans/auth/step-4.md";
const OTHER: &str = "plans/billing/step-1.md";

fn step(id: &str, title: &str) -> String {
    let front_matter = format!("---\nid: {id}\nstatus: pending\ncreated_at: 2026-01-01T00:00:00Z\n---\n");
    format!("{front_matter}# {title}\n\nThe words about {title}.\n")
}

/// Two branches of a plan with the steps One, Two, Three and Four, which run verbs of planwatch, and their merge.
struct Merge {
    repository: Repository,
    said: String,
}

impl Merge {
    /// Each line is the command line of a verb, or a path and a text that the file gets.
    fn of(driver: Driver, ours: &[&str], theirs: &[&str]) -> Self {
        let steps = ["One", "Two", "Three", "Four"].map(|it| it.to_owned());
        let texts: Vec<_> = (1..).zip(&steps).map(|(n, it)| step(&format!("auth:{n}"), it)).collect();
        let paths: Vec<_> = (1..=steps.len()).map(|n| format!("plans/auth/step-{n}.md")).collect();
        let other = step("billing:1", "Invoice");
        let plan = "---\nstatus: active\n---\n# Plan\n";
        let mut files = vec![(PLAN, plan), ("plans/billing/plan.md", plan), (OTHER, &other)];
        files.extend(paths.iter().zip(&texts).map(|(path, text)| (path.as_str(), text.as_str())));
        let repository = Repository::new(driver, &files);
        let change = |lines: &[&str]| {
            for line in lines {
                match line.split_once('=') {
                    Some((path, text)) if path.ends_with(".md") => repository.place.write(path, text),
                    _ => {
                        let ran = repository.planwatch(line);
                        assert_eq!(ran.code, 0, "{line}: {ran:?}");
                    }
                }
            }
            repository.commit(&[]);
        };
        repository.git("checkout -q -b theirs");
        change(theirs);
        repository.git("checkout -q main");
        change(ours);
        let _ran = repository.try_git("merge -q --no-edit theirs");
        let ran = repository.planwatch("git resolve --renumber");
        assert_eq!(ran.code, 0, "{ran:?}");
        Self { repository, said: ran.stdout }
    }

    fn depends(&self, step: &str) -> String {
        let shown = self.repository.planwatch(&format!("show {step} --json")).json();
        let all = shown["depends"].as_array().unwrap_or_else(|| panic!("{shown}"));
        all.iter().map(|it| it.as_str().expect("it is text")).collect::<Vec<_>>().join(" ")
    }

    /// The files are staged, and a second run changes nothing.
    fn is_complete(&self) {
        let status = self.repository.git("status --porcelain");
        assert!(status.lines().all(|it| &it[1..2] == " "), "{status}");
        self.repository.git("commit -q --no-edit --allow-empty -m merged");
        let _ran = self.repository.planwatch("git resolve --renumber");
        assert_eq!(self.repository.git("status --porcelain"), "");
    }
}

/// Merges in both directions, with and without the driver.
fn merges(mover: &[&str], worker: &[&str]) -> Vec<Merge> {
    let of = |driver| [Merge::of(driver, mover, worker), Merge::of(driver, worker, mover)];
    [Driver::None, Driver::Configured].into_iter().flat_map(of).collect()
}

#[test]
fn an_added_dependency_follows_the_moved_step() {
    let with_new = ["move auth:4 --to 1.5", "add auth New --at 4"];
    for (mover, worker, waiting, expected) in [
        // The old number is free.
        (&with_new[..1], &["set auth:2 depends+=4"][..], "auth:2", "auth:1.5"),
        // A new step has it.
        (&with_new, &["set auth:2 depends+=4"], "auth:2", "auth:1.5"),
        (&with_new, &["add auth Last --at 5 --depends 4"], "auth:5", "auth:1.5"),
        (&with_new, &["set billing:1 depends+=auth:4"], "billing:1", "auth:1.5"),
        // The dependency is older than both branches, or the mover added it.
        (
            &["move auth:4 --to 1.5", "add auth New --at 4", "set auth:2 depends+=4"],
            &["note auth:2 Hm"],
            "auth:2",
            "auth:4",
        ),
        // A number that one step left is the new number of another one.
        (
            &["move auth:3 --to 2.5", "move auth:4 --to 3"],
            &["set auth:1 depends+=3", "set auth:1 depends+=4"],
            "auth:1",
            "auth:2.5 auth:3",
        ),
        (
            &["move auth:1 --to 5", "move auth:2 --to 1"],
            &["set auth:3 depends+=1", "set auth:3 depends+=2"],
            "auth:3",
            "auth:5 auth:1",
        ),
    ] {
        for merge in merges(mover, worker) {
            assert_eq!(merge.depends(waiting), expected, "{mover:?} {worker:?} {}", merge.said);
            merge.is_complete();
        }
    }
}

#[test]
fn dependencies_that_both_sides_added_to_one_step_mean_two_steps() {
    let mover = ["move auth:4 --to 1.5", "add auth New --at 4", "set auth:2 depends+=4"];
    for merge in merges(&mover, &["set auth:2 depends+=4"]) {
        let depends = merge.depends("auth:2");
        let both = ["auth:1.5", "auth:4"].iter().all(|it| depends.split(' ').any(|other| other == *it));
        assert!(both, "{depends}: {}", merge.said);
        merge.is_complete();
    }
}

#[test]
fn links_and_dependencies_sections_follow_the_moved_step() {
    let mover = ["move auth:4 --to 1.5", "add auth New --at 4"];
    let linked = with(&step("auth:2", "Two"), &[("# Two\n", "# Two\n\nSee [four](step-4.md).\n")]);
    for merge in merges(&mover, &[&format!("{TWO}={linked}")]) {
        assert_eq!(merge.repository.place.text(TWO), with(&linked, &[("step-4.md", "step-1.5.md")]));
        merge.is_complete();
    }
    let text = format!("{}\n## Dependencies\n\nStep 1.\n", step("auth:4", "Four"));
    for merge in merges(&["move auth:1 --to 2.5", "add auth New --at 1"], &[&format!("{FOUR}={text}")]) {
        assert_eq!(merge.depends("auth:4"), "auth:2.5", "{}", merge.said);
        assert!(merge.repository.place.text(FOUR).ends_with("Step 1.\n"));
        merge.is_complete();
    }
}

#[test]
fn references_to_both_of_two_steps_that_exchanged_their_numbers_are_reported() {
    let mover = ["move auth:3 --to 9", "move auth:4 --to 3", "move auth:9 --to 4"];
    for merge in merges(&mover, &["set auth:1 depends+=3"]) {
        assert_eq!(merge.depends("auth:1"), "auth:4", "{}", merge.said);
        let said = format!("{ONE}: step 3 was moved and is now 4; the reference to it was changed\n");
        assert!(merge.said.contains(&said), "{}", merge.said);
        merge.is_complete();
    }
    for merge in merges(&mover, &["set auth:1 depends+=3", "set auth:1 depends+=4"]) {
        assert_eq!(merge.depends("auth:1"), "auth:3 auth:4");
        let said = "step 3 was moved and is now 4; the reference to step 3 was not changed";
        assert!(merge.said.contains(said), "{}", merge.said);
        merge.is_complete();
    }
}

#[test]
fn if_both_sides_moved_a_step_references_get_the_number_of_ours() {
    for driver in [Driver::None, Driver::Configured] {
        let theirs = ["move auth:4 --to 2.5", "set auth:1 depends+=2.5"];
        let merge = Merge::of(driver, &["move auth:4 --to 1.5"], &theirs);
        assert_eq!(merge.depends("auth:1"), "auth:1.5", "{}", merge.said);
        let ours = ["move auth:4 --to 2.5", "set auth:1 depends+=2.5"];
        let merge = Merge::of(driver, &ours, &["move auth:4 --to 1.5"]);
        assert_eq!(merge.depends("auth:1"), "auth:2.5", "{}", merge.said);
    }
}

#[test]
fn a_dependency_that_a_person_added_after_the_merge_stays() {
    let mover = ["move auth:4 --to 1.5", "add auth New --at 4"];
    for merge in merges(&mover, &["note auth:3 Hm"]) {
        merge.is_complete();
        assert_eq!(merge.repository.planwatch("set auth:2 depends+=4").code, 0);
        let _ran = merge.repository.planwatch("git resolve");
        assert_eq!(merge.depends("auth:2"), "auth:4");
    }
}

/// Each element of `commits` is one commit of the branch that is rebased.
fn rebased(driver: Driver, ours: &str, commits: &[&[&str]]) -> Merge {
    let texts: Vec<_> =
        (1..).zip(["One", "Two", "Three"]).map(|(n, it)| step(&format!("auth:{n}"), it)).collect();
    let list = step("auth", "Plan") + "\n## Steps\n\n- step-1: One\n- step-2: Two\n- step-3: Three\n";
    let list = with(&list, &[("status: pending", "status: active")]);
    let files =
        [(PLAN, list.as_str()), (ONE, &texts[0]), (TWO, &texts[1]), ("plans/auth/step-3.md", &texts[2])];
    let repository = Repository::new(driver, &files);
    let change = |line: &str| assert_eq!(repository.planwatch(line).code, 0, "{line}");
    repository.git("checkout -q -b theirs");
    for commit in commits {
        commit.iter().for_each(|it| change(it));
        repository.commit(&[]);
    }
    repository.git("checkout -q main");
    change(ours);
    repository.commit(&[]);
    repository.git("checkout -q theirs");
    let mut ran = repository.try_git("rebase -q main");
    for _ in commits {
        if ran.code == 0 {
            break;
        }
        let resolved = repository.planwatch("git resolve --renumber");
        assert_eq!(resolved.code, 0, "{resolved:?}");
        ran = repository.try_git("-c core.editor=true rebase --continue");
    }
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    Merge { repository, said: ran.stdout }
}

#[test]
fn a_dependency_in_a_later_commit_follows_a_step_that_the_rebase_renumbered() {
    let ours = "add auth Ours --at 4";
    let four = &["add auth Four --at 4"][..];
    for driver in [Driver::None, Driver::Configured] {
        for (commits, expected) in [
            (&[four, &["add auth Last --at 9 --depends 4"]][..], &[("auth:9", "auth:5")][..]),
            (&[four, &["set auth:1 depends+=4"], &["set auth:2 depends+=4"]], &[("auth:1", "auth:5")]),
            (
                &[&["add auth Four --at 4", "set auth:1 depends+=4"], &["note auth:1 Hm"]],
                &[("auth:1", "auth:5")],
            ),
            (
                &[four, &["add auth Five --at 5 --depends 4"], &["add auth Six --at 6 --depends 4,5"]],
                &[("auth:5", "auth:4.5"), ("auth:6", "auth:4.5 auth:5")],
            ),
        ] {
            let rebased = rebased(driver, ours, commits);
            for (step, depends) in expected {
                assert_eq!(rebased.depends(step), *depends, "{commits:?} {}", rebased.said);
            }
            let said = rebased.repository.planwatch("check").stdout;
            assert_eq!(said, "no problems\n", "{commits:?} {}", rebased.said);
            rebased.is_complete();
        }
    }
}

#[test]
fn an_operation_is_not_examined_while_plan_files_have_uncommitted_changes() {
    for operation in ["merge -q --no-edit theirs", "rebase -q theirs --autostash"] {
        let [one, two, four] =
            [("1", "One"), ("2", "Two"), ("4", "Four")].map(|(n, it)| step(&format!("auth:{n}"), it));
        let plan = "---\nstatus: active\n---\n# Plan\n";
        let repository =
            Repository::new(Driver::Configured, &[(PLAN, plan), (ONE, &one), (TWO, &two), (FOUR, &four)]);
        repository.git("checkout -q -b theirs");
        repository.planwatch("move auth:2 --to 7").ok();
        repository.commit(&[]);
        repository.git("checkout -q main");
        repository.planwatch("set auth:4 depends+=2").ok();
        repository.commit(&[]);
        repository.planwatch("note auth:1 early").ok();
        repository.git(operation);
        let ran = repository.planwatch("git resolve");
        assert_eq!((ran.code, ran.stdout.as_str()), (1, "No plan file is in conflict.\n"), "{ran:?}");
        assert!(
            ran.stderr.contains("not examined") && ran.stderr.contains("`plans/auth/step-1.md`"),
            "{ran:?}"
        );
        let json = repository.planwatch("git resolve --json");
        assert_eq!(json.code, 1, "{json:?}");
        assert!(json.stdout.contains("\"not_examined_because_of\":[\"plans/auth/step-1.md\"]"), "{json:?}");
        // The steps of the hint.
        repository.git("stash -q -u");
        assert!(
            repository.planwatch("git resolve").ok().contains("step 2 was moved and is now 7"),
            "{operation}"
        );
        assert_eq!(repository.planwatch("git resolve").ok(), "No plan file is in conflict.\n", "only staged");
        repository.commit(&[]);
        repository.git("stash pop -q");
        assert!(repository.place.text(ONE).contains("early"));
        assert!(repository.place.text(FOUR).contains("7"), "{operation}");
        assert_eq!(
            repository.planwatch("git resolve").ok(),
            "No plan file is in conflict.\n",
            "no merge is the last"
        );
    }
}
