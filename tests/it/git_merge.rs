//! Plan files merged by real git: with the driver, with a driver that is missing, and by `git resolve` after a plain merge.
#![expect(clippy::disallowed_methods, reason = "tests run git, and edit files as editors do")]
#![expect(clippy::print_stdout, reason = "`scripts/git-trials` prints the table of scenarios")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::support::{Place, Ran};

pub(crate) const STEP: &str = "plans/auth/step-2.md";
pub(crate) const PLAN: &str = "plans/auth/plan.md";
const MARKER: &str = "<<<<<<<";

pub(crate) const BASE: &str = "---
id: auth:2
status: pending
title: Schema
depends:
  - 1
tags: [db]
created_at: 2026-01-01T00:00:00Z
---
# Schema

First words.

## Tasks
- [ ] one
- [ ] two

Last words.
";

pub(crate) const LIST: &str = "---
status: active
created_at: 2026-01-01T00:00:00Z
---
# Auth

## Steps
- step-1: One
- step-2: Two

Notes.
";

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Driver {
    Configured,
    Missing,
    None,
}

pub(crate) struct Repository {
    pub(crate) place: Place,
    /// Whether git finds planwatch.
    has_program: bool,
}

impl Repository {
    pub(crate) fn new(driver: Driver, files: &[(&str, &str)]) -> Self {
        let place = Place::new();
        let programs = place.top().join("bin");
        std::fs::create_dir(&programs).expect("it is new");
        symlink(env!("CARGO_BIN_EXE_planwatch"), programs.join("planwatch")).expect("it is new");
        let mut repository = Self { place, has_program: true };
        repository.git("init -q -b main");
        for (path, text) in files {
            repository.place.write(path, text);
        }
        repository.place.write(".gitignore", "plans/.planwatch\n");
        if driver != Driver::None {
            assert_eq!(repository.planwatch("git setup").code, 0);
        }
        repository.git("add -A");
        repository.git("commit -q -m base");
        repository.has_program = driver != Driver::Missing;
        repository
    }

    fn closed(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.place.close_environment(&mut command);
        for (name, value) in [("NAME", "Ann"), ("EMAIL", "ann@example.org"), ("DATE", "2026-11-21T12:00:00Z")]
        {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        if self.has_program {
            command.env("PATH", format!("{}/bin:/usr/bin:/bin", self.place.top().display()));
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    pub(crate) fn try_git(&self, line: &str) -> Ran {
        Ran::of(self.closed("git").args(line.split(' ')).output().expect("git starts"))
    }

    #[track_caller]
    pub(crate) fn git(&self, line: &str) -> String {
        let ran = self.try_git(line);
        assert_eq!(ran.code, 0, "git {line}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    pub(crate) fn planwatch(&self, line: &str) -> Ran {
        self.place.run(line)
    }

    /// Two branches that change the files, and a merge of the second into the first.
    pub(crate) fn merge(&self, ours: &[(&str, &str)], theirs: &[(&str, &str)]) -> Ran {
        self.git("checkout -q -b theirs");
        self.commit(theirs);
        self.git("checkout -q main");
        self.commit(ours);
        self.try_git("merge -q --no-edit theirs")
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.place.write(path, text);
        }
        self.git("add -A");
        self.git("commit -q --allow-empty -m change");
    }

    pub(crate) fn conflicts(&self) -> String {
        self.git("diff --name-only --diff-filter=U")
    }
}

/// A text with some of its parts replaced.
pub(crate) fn with(text: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "`{from}` is in the text");
        text.replacen(from, to, 1)
    })
}

pub(crate) fn attempt(day: &str, by: &str, outcome: &str) -> String {
    format!("  - at: 2026-01-{day}T00:00:00Z\n    by: {by}\n    outcome: {outcome}\n")
}

pub(crate) fn attempts(of: &[&String]) -> String {
    let items: String = of.iter().map(|it| it.as_str()).collect();
    format!("attempts:\n{items}---\n# Schema")
}

struct Scenario {
    name: &'static str,
    path: &'static str,
    base: String,
    ours: String,
    theirs: String,
    /// The merged file. `Err`: a person has to decide, and both of these texts are in the file.
    expected: Result<String, [&'static str; 2]>,
}

fn scenario(
    name: &'static str,
    base: &str,
    [ours, theirs]: [&[(&str, &str)]; 2],
    expected: &[(&str, &str)],
) -> Scenario {
    let expected = Ok(with(base, expected));
    let path = if base.contains("## Steps") { PLAN } else { STEP };
    Scenario {
        name,
        path,
        base: base.to_owned(),
        ours: with(base, ours),
        theirs: with(base, theirs),
        expected,
    }
}

pub(crate) const END: &str = "---\n# Schema";
pub(crate) const STATUS: &str = "status: pending";
const CLAIM_1: &str = "status: in_progress\nclaim: {id: g0000001, by: ann, at: 2026-01-01T00:00:00Z}";
const CLAIM_2: &str = "status: in_progress\nclaim: {id: g0000002, by: bob, at: 2026-01-02T00:00:00Z}";

pub(crate) const DONE: &str = "status: completed";

fn attempts_and_claims() -> Vec<Scenario> {
    let (a, b, c) =
        (attempt("02", "ann", "completed"), attempt("03", "bob", "failed"), attempt("01", "cy", "failed"));
    let (end_a, end_b, end_ab) = (attempts(&[&a]), attempts(&[&b]), attempts(&[&a, &b]));
    let end_c = attempts(&[&c]);
    let with_c = with(BASE, &[(END, &end_c)]);
    let (end_ca, end_cb, end_cab) = (attempts(&[&c, &a]), attempts(&[&c, &b]), attempts(&[&c, &a, &b]));
    let twice = format!(
        "attempts:\n{}    notes: claimed twice\n    claim: g0000002\n{END}",
        attempt("02", "bob", "expired")
    );
    vec![
        scenario("attempts on an empty list", BASE, [&[(END, &end_a)], &[(END, &end_b)]], &[(END, &end_ab)]),
        scenario(
            "attempts on a list",
            &with_c,
            [&[(&end_c, &end_ca)], &[(&end_c, &end_cb)]],
            &[(&end_c, &end_cab)],
        ),
        scenario(
            "completed and failed",
            &with_c,
            [&[(STATUS, DONE), (&end_c, &end_ca)], &[(STATUS, "status: failed"), (&end_c, &end_cb)]],
            &[(STATUS, DONE), (&end_c, &end_cab)],
        ),
        scenario(
            "completed by both",
            BASE,
            [&[(STATUS, DONE), (END, &end_a)], &[(STATUS, DONE), (END, &end_b)]],
            &[(STATUS, DONE), (END, &end_ab)],
        ),
        scenario(
            "two claims",
            BASE,
            [&[(STATUS, CLAIM_1)], &[(STATUS, CLAIM_2)]],
            &[(STATUS, CLAIM_1), (END, &twice)],
        ),
        scenario(
            "one claim on both sides",
            BASE,
            [&[(STATUS, CLAIM_1)], &[(STATUS, CLAIM_1)]],
            &[(STATUS, CLAIM_1)],
        ),
    ]
}

fn dependencies() -> Vec<Scenario> {
    let flow = with(BASE, &[("depends:\n  - 1\n", "depends: [1, 1.5]\n")]);
    vec![
        scenario(
            "status and title",
            BASE,
            [&[(STATUS, DONE)], &[("title: Schema", "title: Tables")]],
            &[(STATUS, DONE), ("title: Schema", "title: Tables")],
        ),
        scenario(
            "status and depends",
            &with(BASE, &[("title: Schema\n", "")]),
            [&[(STATUS, DONE)], &[("  - 1\n", "  - 1\n  - 3\n")]],
            &[(STATUS, DONE), ("  - 1\n", "  - 1\n  - 3\n")],
        ),
        scenario(
            "dependencies in brackets",
            &flow,
            [&[("[1, 1.5]", "[1, 1.5, 3]")], &[("[1, 1.5]", "[1, 1.5, 4]")]],
            &[("[1, 1.5]", "[1, 1.5, 3, 4]")],
        ),
        scenario(
            "dependencies on lines",
            BASE,
            [&[("  - 1\n", "  - 1\n  - 3\n")], &[("  - 1\n", "  - 1\n  - 4\n")]],
            &[("  - 1\n", "  - 1\n  - 3\n  - 4\n")],
        ),
        scenario(
            "a dependency added and one removed",
            &flow,
            [&[("[1, 1.5]", "[1, 1.5, 3]")], &[("[1, 1.5]", "[1.5]")]],
            &[("[1, 1.5]", "[1.5, 3]")],
        ),
    ]
}

fn keys_and_text() -> Vec<Scenario> {
    let crlf = BASE.replace('\n', "\r\n");
    let updated = with(BASE, &[(END, "updated: 2026-01-01T00:00:00Z\n---\n# Schema")]);
    vec![
        scenario(
            "status and body",
            BASE,
            [&[(STATUS, DONE)], &[("Last words.", "Last words, edited.")]],
            &[(STATUS, DONE), ("Last words.", "Last words, edited.")],
        ),
        scenario(
            "two paragraphs",
            BASE,
            [&[("First words.", "The first words.")], &[("Last words.", "The last words.")]],
            &[("First words.", "The first words."), ("Last words.", "The last words.")],
        ),
        scenario(
            "the time of the last change",
            &updated,
            [
                &[("updated: 2026-01-01", "updated: 2026-01-02")],
                &[("updated: 2026-01-01", "updated: 2026-01-03")],
            ],
            &[("updated: 2026-01-01", "updated: 2026-01-03")],
        ),
        scenario(
            "tags and notes",
            BASE,
            [&[("tags: [db]", "tags: [db, sql]")], &[(END, "notes: look\n---\n# Schema")]],
            &[("tags: [db]", "tags: [db, sql]"), (END, "notes: look\n---\n# Schema")],
        ),
        scenario(
            "CRLF",
            &crlf,
            [&[(STATUS, DONE)], &[("title: Schema", "title: Tables")]],
            &[(STATUS, DONE), ("title: Schema", "title: Tables")],
        ),
        scenario(
            "status and a new key",
            BASE,
            [&[(STATUS, DONE)], &[("title: Schema", "estimate: 3\ntitle: Schema")]],
            &[(STATUS, DONE), ("title: Schema", "estimate: 3\ntitle: Schema")],
        ),
        scenario(
            "neighbouring task boxes",
            BASE,
            [&[("[ ] one", "[x] one")], &[("[ ] two", "[x] two")]],
            &[("[ ] one", "[x] one"), ("[ ] two", "[x] two")],
        ),
        scenario(
            "the Steps list",
            LIST,
            [&[("Two\n", "Two\n- step-3: Three\n")], &[("Two\n", "Two, edited\n- step-2.5: More\n")]],
            &[("Two\n", "Two, edited\n- step-2.5: More\n- step-3: Three\n")],
        ),
    ]
}

/// Contradictions that only a person can resolve.
fn contradictions() -> Vec<Scenario> {
    let mut sentence = scenario(
        "one sentence twice",
        BASE,
        [&[("Last words.", "Last words of ours.")], &[("Last words.", "Last words of theirs.")]],
        &[],
    );
    sentence.expected = Err(["Last words of ours.", "Last words of theirs."]);
    let mut title = scenario(
        "two titles",
        BASE,
        [&[("title: Schema", "title: Ours")], &[("title: Schema", "title: Theirs")]],
        &[],
    );
    title.expected = Err(["title: Ours", "title: Theirs"]);
    vec![sentence, title]
}

fn scenarios() -> Vec<Scenario> {
    [attempts_and_claims(), dependencies(), keys_and_text(), contradictions()].into_iter().flatten().collect()
}

#[track_caller]
fn check_result(scenario: &Scenario, how: &str, text: &str) {
    let is = if scenario.expected.is_ok() { "merged" } else { "a person decides" };
    println!("G1 {:<36} {how:<10} {is}", scenario.name);
    match &scenario.expected {
        Ok(expected) => assert_eq!(text, expected, "{}: {how}", scenario.name),
        Err(both) => {
            assert_eq!(text.matches(MARKER).count(), 1, "{}: {how}: {text}", scenario.name);
            assert!(both.iter().all(|it| text.contains(it)), "{}: {how}: {text}", scenario.name);
        }
    }
}

#[test]
fn the_driver_merges_every_scenario() {
    for scenario in scenarios() {
        let Scenario { path, base, ours, theirs, .. } = &scenario;
        let repository = Repository::new(Driver::Configured, &[(path, base)]);
        let merged = repository.merge(&[(path, ours)], &[(path, theirs)]);
        check_result(&scenario, "driver", &repository.place.text(path));
        assert_eq!(merged.code == 0, scenario.expected.is_ok(), "{}: {merged:?}", scenario.name);
    }
}

#[test]
fn resolve_gives_the_same_after_a_plain_merge_and_with_a_missing_driver() {
    for driver in [Driver::None, Driver::Missing] {
        for scenario in scenarios() {
            let Scenario { path, base, ours, theirs, .. } = &scenario;
            let repository = Repository::new(driver, &[(path, base)]);
            let merged = repository.merge(&[(path, ours)], &[(path, theirs)]);
            if merged.code == 0 {
                check_result(&scenario, "git alone", &repository.place.text(path));
                continue;
            }
            assert!(repository.place.text(path).contains(MARKER), "{}: no side is dropped", scenario.name);
            let resolved = repository.planwatch("git resolve");
            check_result(&scenario, "resolve", &repository.place.text(path));
            let is_solved = scenario.expected.is_ok();
            assert_eq!(resolved.code, i32::from(!is_solved), "{}: {resolved:?}", scenario.name);
            assert_eq!(
                repository.conflicts().is_empty(),
                is_solved,
                "{}: only clean files are staged",
                scenario.name
            );
            if is_solved {
                repository.git("commit -q --no-edit");
                assert_eq!(repository.git("status --porcelain"), "", "{}", scenario.name);
            }
        }
    }
}

#[test]
fn a_driver_that_fails_drops_no_side() {
    // A driver that is killed, a version without the verb, a driver that crashes, and one that cannot be started.
    for program in ["#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\nexit 2\n", "#!/bin/sh\nexit 139\n", "#!/missing\n"]
    {
        let repository = Repository::new(Driver::Configured, &[(STEP, BASE)]);
        let path = repository.place.top().join("bin/planwatch");
        std::fs::remove_file(&path).expect("it is there");
        std::fs::write(&path, program).expect("it is new");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        let (a, b) = (attempt("02", "ann", "completed"), attempt("03", "bob", "failed"));
        let merged = repository.merge(
            &[(STEP, &with(BASE, &[(END, &attempts(&[&a]))]))],
            &[(STEP, &with(BASE, &[(END, &attempts(&[&b])), ("Last words.", "Last words, edited.")]))],
        );
        assert_ne!(merged.code, 0, "{program}");
        let text = repository.place.text(STEP);
        let has = |it: &str| text.contains(it);
        assert!(has(MARKER) && has("by: ann") && has("by: bob") && has("edited"), "{program}: {text}");
        assert_eq!(repository.planwatch("git resolve").code, 0, "{program}");
        let expected = [(END, attempts(&[&a, &b])), ("Last words.", "Last words, edited.".to_owned())];
        let expected = expected.iter().fold(BASE.to_owned(), |text, (from, to)| with(&text, &[(from, to)]));
        assert_eq!(repository.place.text(STEP), expected, "{program}");
    }
}

#[test]
fn a_moved_step_gets_the_changes_of_the_other_side() {
    for driver in [Driver::Configured, Driver::Missing, Driver::None] {
        let repository = Repository::new(driver, &[(STEP, BASE)]);
        let moved = with(BASE, &[("id: auth:2", "id: auth:3")]);
        let done = with(
            BASE,
            &[(STATUS, "status: completed"), (END, &attempts(&[&attempt("02", "ann", "completed")]))],
        );
        repository.git("checkout -q -b theirs");
        repository.commit(&[(STEP, &done)]);
        repository.git("checkout -q main");
        repository.git("mv plans/auth/step-2.md plans/auth/step-3.md");
        repository.commit(&[("plans/auth/step-3.md", &moved)]);
        if repository.try_git("merge -q --no-edit theirs").code != 0 {
            assert_eq!(repository.planwatch("git resolve").code, 0);
        }
        assert_eq!(
            repository.place.text("plans/auth/step-3.md"),
            with(&done, &[("id: auth:2", "id: auth:3")])
        );
        assert!(!repository.place.file(STEP).exists());
    }
}

#[test]
fn two_steps_of_one_number_are_both_kept() {
    let ours = with(BASE, &[("id: auth:2", "id: auth:2.5"), ("title: Schema", "title: Ours")]);
    let theirs = with(
        BASE,
        &[
            ("id: auth:2", "id: auth:2.5"),
            ("title: Schema", "title: Theirs"),
            ("created_at: 2026-01-01", "created_at: 2026-01-02"),
        ],
    );
    let third = with(BASE, &[("id: auth:2", "id: auth:3"), ("  - 1\n", "  - 1\n")]);
    let waits = with(&third, &[("  - 1\n", "  - 1\n  - 2.5\n")]);
    let added = "plans/auth/step-2.5.md";
    let after = "plans/auth/step-3.md";
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE), (after, &third)]);
    let list = |title: &str| with(LIST, &[("Two\n", &format!("Two\n- step-2.5: {title}\n"))]);
    let merged = repository.merge(
        &[(added, &ours), (PLAN, &list("Ours"))],
        &[(added, &theirs), (PLAN, &list("Theirs")), (after, &waits)],
    );
    assert_ne!(merged.code, 0);
    let refused = repository.planwatch("git resolve --json");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.contains("number-taken"), "{refused:?}");
    let resolved = repository.planwatch("git resolve --renumber");
    assert_eq!(resolved.code, 0, "{resolved:?}");
    assert_eq!(repository.place.text(added), ours);
    assert_eq!(repository.place.text("plans/auth/step-2.75.md"), with(&theirs, &[("auth:2.5", "auth:2.75")]));
    assert_eq!(repository.place.text(after), with(&third, &[("  - 1\n", "  - 1\n  - 2.75\n")]));
    let lines = "Two\n- step-2.5: Ours\n- step-2.75: Theirs\n";
    assert_eq!(repository.place.text(PLAN), with(LIST, &[("Two\n", lines)]));
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn an_edited_file_of_two_steps_with_one_number_is_not_changed() {
    let added = "plans/auth/step-2.5.md";
    let step = |title: &str, day: &str| {
        format!(
            "---\nid: auth:2.5\nstatus: pending\ncreated_at: 2026-02-{day}T00:00:00Z\n---\n# {title}\n\n{title} {day}.\n"
        )
    };
    let (ours, theirs) = (step("Ours", "01"), step("Theirs", "02"));
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    assert_ne!(repository.merge(&[(added, &ours)], &[(added, &theirs)]).code, 0);
    let marked = repository.place.text(added);
    for edited in [format!("{marked}\nMine.\n"), with(&ours, &[("Ours 01.", "Mine.")])] {
        repository.place.write(added, &edited);
        let kept = repository.planwatch("git resolve --renumber");
        assert_eq!((kept.code, repository.place.text(added)), (1, edited), "{kept:?}");
        assert!(kept.stdout.contains("edited after the merge"), "{kept:?}");
    }
    repository.place.write(added, &marked);
    assert_eq!(repository.planwatch("git resolve --renumber").code, 0);
    assert_eq!(repository.place.text(added), ours);
    assert_eq!(repository.place.text("plans/auth/step-2.75.md"), with(&theirs, &[("auth:2.5", "auth:2.75")]));
}

#[test]
fn a_file_that_was_edited_after_the_merge_is_not_changed() {
    let title = |title: &str| with(BASE, &[(STATUS, "status: completed"), ("title: Schema", title)]);
    let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
    let merged = repository.merge(
        &[(STEP, &title("title: Ours"))],
        &[(STEP, &with(BASE, &[("title: Schema", "title: Theirs")]))],
    );
    assert_ne!(merged.code, 0);
    let edited = with(&repository.place.text(STEP), &[("First words.", "My words.")]);
    repository.place.write(STEP, &edited);
    let resolved = repository.planwatch("git resolve");
    assert_eq!((resolved.code, repository.place.text(STEP)), (1, edited));
    assert!(resolved.stdout.contains("edited after the merge"), "{resolved:?}");
}

/// The editor saves after the file was merged, and before git reads it.
#[test]
fn a_text_with_markers_that_an_editor_saves_meanwhile_is_not_staged() {
    let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
    let ours = with(BASE, &[(STATUS, "status: completed")]);
    let merged =
        repository.merge(&[(STEP, &ours)], &[(STEP, &with(BASE, &[("title: Schema", "title: Tables")]))]);
    assert_ne!(merged.code, 0);
    let marked = repository.place.text(STEP);
    assert!(marked.contains(MARKER));
    let (bin, step) = (repository.place.top().join("slow"), repository.place.file(STEP));
    let saved = bin.join("saved");
    std::fs::create_dir(&bin).expect("it is new");
    std::fs::copy(&step, &saved).expect("both are files");
    let script = format!(
        "#!/bin/sh\nfor word; do test \"$word\" = add && cp {} {}; done\nPATH=/usr/bin:/bin exec git \"$@\"\n",
        saved.display(),
        step.display()
    );
    std::fs::write(bin.join("git"), script).expect("the folder is there");
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).expect("it is there");
    let mut command = repository.place.command();
    command.args(["git", "resolve"]).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let resolved = Ran::of(command.output().expect("planwatch starts"));
    assert_eq!(resolved.code, 0, "{resolved:?}");
    assert_eq!(repository.place.text(STEP), marked, "the save stays");
    assert_eq!(repository.conflicts(), "");
    let staged = repository.git(&format!("show :{STEP}"));
    assert!(!staged.contains(MARKER) && staged.contains("title: Tables"), "{staged}");
}

#[test]
fn a_dry_run_writes_and_stages_nothing() {
    let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
    let ours = with(BASE, &[(STATUS, "status: completed")]);
    let merged =
        repository.merge(&[(STEP, &ours)], &[(STEP, &with(BASE, &[("title: Schema", "title: Tables")]))]);
    assert_ne!(merged.code, 0);
    let before = repository.place.text(STEP);
    let shown = repository.planwatch("git resolve --dry-run");
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stdout.contains("+title: Tables") || shown.stdout.contains("-<<<<<<<"), "{shown:?}");
    assert_eq!(repository.place.text(STEP), before);
    assert_eq!(repository.conflicts(), format!("{STEP}\n"));
}

#[test]
fn setup_is_undone_byte_for_byte() {
    for attributes in [None, Some("*.png binary\n"), Some("*.png binary"), Some("")] {
        let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
        if let Some(text) = attributes {
            repository.place.write(".gitattributes", text);
            repository.place.date_fixture();
        }
        let config = repository.place.text(".git/config");
        let setup = repository.planwatch("git setup");
        assert_eq!(setup.code, 0, "{setup:?}");
        assert!(setup.stdout.contains("[merge-tools.planwatch]"), "{setup:?}");
        let checked = repository.git("check-attr merge plans/auth/step-2.md plans/a.md src/a.md");
        let expected = "plans/auth/step-2.md: merge: planwatch\nplans/a.md: merge: planwatch\nsrc/a.md: merge: unspecified\n";
        assert_eq!(checked, expected);
        let again = (repository.place.text(".gitattributes"), repository.place.text(".git/config"));
        assert!(repository.planwatch("git setup").stdout.contains("unchanged"));
        assert_eq!((repository.place.text(".gitattributes"), repository.place.text(".git/config")), again);
        assert_eq!(repository.planwatch("git setup --undo").code, 0);
        assert_eq!(repository.place.text(".git/config"), config);
        let left = repository.place.file(".gitattributes");
        assert_eq!(left.exists().then(|| repository.place.text(".gitattributes")).as_deref(), attributes);
    }
}
