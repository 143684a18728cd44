//! Decisions, insights and scripts on the command line: search, simultaneous creation, and trust.
#![expect(clippy::disallowed_methods, reason = "tests create files, and check for files of a script")]

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::support::{Place, Ran};

/// The example plans, with decisions and insights.
fn place() -> Place {
    let place = Place::with_examples();
    let ran = |words: &[&str]| place.run_with(words).ok();
    let old = [
        "decide",
        "authentication",
        "Sessions in Redis.",
        "--because",
        "The team knows Redis.",
        "--by",
        "mia",
    ];
    ran(&old);
    let new = ["decide", "authentication", "JSON web tokens, refreshed every hour.", "--supersedes", "2026"];
    ran(&new);
    ran(&[
        "decide",
        "database",
        "PostgreSQL for invoices and ledger.",
        "--because",
        "Better JSON than MySQL.",
    ]);
    ran(&["decide", "deployment window", "Only on Tuesdays before noon.", "--tag", "operations"]);
    ran(&["insight", "The cache is cold after a restart", "Warm it before the first request."]);
    ran(&[
        "insight",
        "Ivy breaks the mortar",
        "Cut it in March.",
        "--plan",
        "fence-repair",
        "--tag",
        "garden",
    ]);
    for n in 70..80 {
        ran(&["insight", &format!("Meter {n}1"), "Read it in spring."]);
    }
    ran(&["insight", "Meter 7", "Read it in autumn."]);
    ran(&["insight", "Meter 72", "Read it in winter."]);
    place
}

#[track_caller]
fn check(place: &Place, query: &[&str], expected: &str) {
    for more in [&[][..], &["--no-index"]] {
        let words = [&["search", "--json"], query, more].concat();
        let found = place.run_with(&words).json();
        let first = found["hits"].as_array().and_then(|it| it.first()).map(|it| {
            let (kind, id) = (it["kind"].as_str().unwrap_or_default(), it["id"].as_str().unwrap_or_default());
            let name = id.split_once('-').filter(|_| kind == "decision" || kind == "insight");
            format!("{kind} {}", name.map_or(id, |(_, name)| name))
        });
        assert_eq!(first.as_deref().unwrap_or("nothing"), expected, "{query:?} {more:?}: {found}");
    }
}

/// The first hit is the one that a user expects.
#[test]
fn the_expected_hit_comes_first() {
    let place = place();
    for (query, expected) in [
        ("feature-auth", "plan feature-auth"),
        ("user authentication", "plan feature-auth"),
        ("fence repair", "plan fence-repair"),
        ("switch energy", "plan switch-energy-provider"),
        ("onboarding", "plan docs-onboarding"),
        ("ledger migration", "plan ledger-migration"),
        ("create migrations", "step feature-auth:1"),
        ("write tests", "step feature-auth:3"),
        ("compare offers", "step switch-energy-provider:2"),
        ("get quotes", "step fence-repair:2"),
        ("ivy bed", "step fence-repair:4"),
        ("reconcile totals", "step ledger-migration:5"),
        ("drop the old tables", "step ledger-migration:8"),
        ("screencast", "step docs-onboarding:3"),
        ("database", "decision database"),
        ("mysql", "decision database"),
        ("deployment", "decision deployment-window"),
        ("tuesday", "decision deployment-window"),
        ("json web tokens", "decision authentication"),
        ("\"cache is cold\"", "insight the-cache-is-cold-after-a-restart"),
        ("mortar", "insight ivy-breaks-the-mortar"),
        ("garden", "insight ivy-breaks-the-mortar"),
        ("ivy -mortar", "step fence-repair:4"),
        ("meter 7", "insight meter-7"),
        ("zeppelin", "nothing"),
    ] {
        check(&place, &[query], expected);
    }
}

#[test]
fn kinds_and_times_filter_a_search() {
    let place = place();
    check(&place, &["authentication", "--kind", "decision"], "decision authentication");
    check(&place, &["ivy", "--kind", "step"], "step fence-repair:4");
    check(&place, &["authentication", "--kind", "plan"], "plan feature-auth");
    check(&place, &["mortar", "--kind", "plans"], "nothing");
    check(&place, &["mortar", "--since", "1h"], "insight ivy-breaks-the-mortar");
    check(&place, &["mortar", "--since", "2026-11-22"], "nothing");
    check(&place, &["create migrations", "--since", "12h"], "nothing");
    check(&place, &["create migrations", "--since", "2d"], "step feature-auth:1");
    // Of two decisions on a topic, the valid one comes first.
    let found = place.run_with(&["search", "--json", "authentication", "--kind", "decision"]).json();
    assert!(found["hits"][0]["snippet"].as_str().is_some());
    let shown = place.run_with(&["decide", "--json", "authentication"]).json();
    assert_eq!(found["hits"][0]["id"], shown["decisions"][0]["id"]);
}

#[test]
fn new_changed_and_removed_texts_are_searched_as_they_are_now() {
    let place = place();
    place.write("plans/_insights/own.md", "# Zeppelins\n\nThey need helium.\n");
    check(&place, &["helium"], "insight own");
    place.write("plans/_insights/own.md", "# Zeppelins\n\nThey need hydrogen.\n");
    check(&place, &["helium"], "nothing");
    check(&place, &["hydrogen"], "insight own");
    std::fs::remove_file(place.file("plans/_insights/own.md")).expect("it is there");
    check(&place, &["hydrogen"], "nothing");
    check(&place, &["mortar"], "insight ivy-breaks-the-mortar");
}

#[test]
fn simultaneous_decisions_are_all_stored_in_order() {
    let place = Place::with_examples();
    let children: Vec<_> = (0..8)
        .map(|n| {
            let mut command = place.command();
            command.args(["decide", "queue", &format!("Number {n}.")]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
        })
        .collect();
    for child in children {
        Ran::of(child.wait_with_output().expect("it ends")).ok();
    }
    let found = place.run("decide queue --json").json();
    let of = |key: &str| -> Vec<String> {
        let items = found["decisions"].as_array().expect("it is a list").iter();
        items.map(|it| it[key].as_str().expect("it is a text").to_owned()).collect()
    };
    assert_eq!(of("decision").into_iter().collect::<BTreeSet<_>>().len(), 8);
    let times = of("decided_at");
    assert!(times.is_sorted_by(|a, b| a > b), "{times:?}");
    assert_eq!(place.run("check").code, place.run("check --no-index").code);
}

fn with_script(command: &str) -> Place {
    let place = Place::with_examples();
    place.write("web/build.sh", "echo built > built\n");
    place
        .write("plans/_scripts/build.md", format!("---\ncommand: {command}\ndirectory: web\n---\n# Build\n"));
    place
}

fn hash(place: &Place) -> String {
    place.run("script show build --json").json()["hash"].as_str().expect("it is a text").to_owned()
}

/// Starts the script without a terminal. Returns whether it ran.
fn runs(place: &Place) -> bool {
    std::fs::remove_file(place.file("web/built")).ok();
    let code = place.run("script run build").code;
    let has_run = place.file("web/built").exists();
    assert_eq!(code, if has_run { 0 } else { 5 });
    has_run
}

#[test]
fn a_script_runs_only_after_trust_and_any_edit_needs_new_trust() {
    let place = with_script("sh ./build.sh");
    assert!(!runs(&place));
    assert_eq!(place.run("trust build").code, 5);
    assert!(!runs(&place));
    place.run(&format!("trust build --trust-hash {}", hash(&place))).ok();
    assert!(runs(&place) && runs(&place));
    let file = "plans/_scripts/build.md";
    let before = place.text(file);
    place.write(file, before.replace("sh ./build.sh", "sh ./build.sh "));
    place.write(file, before.replace("sh ./build.sh", "sh  ./build.sh"));
    assert!(!runs(&place));
    place.write(file, before.replace("directory: web", "directory: ."));
    assert!(!runs(&place));
    place.write(file, &before);
    assert!(runs(&place));
    place.run("trust --revoke build").ok();
    assert!(!runs(&place));
}

#[test]
fn trust_covers_the_program_that_a_script_starts() {
    let place = with_script("./build.sh");
    std::fs::set_permissions(place.file("web/build.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    place.run(&format!("trust build --trust-hash {}", hash(&place))).ok();
    assert!(runs(&place));
    let script = place.text("web/build.sh");
    place.write("web/build.sh", format!("{script}# more\n"));
    assert!(!runs(&place));
}

#[test]
fn a_hash_is_valid_for_one_run_of_exactly_that_script() {
    let place = with_script("echo built > built");
    let hash = hash(&place);
    assert_eq!(place.run(&format!("script run build --trust-hash {hash}")).code, 0);
    assert!(place.file("web/built").exists());
    assert!(!runs(&place));
    place.write("plans/_scripts/build.md", "---\ncommand: rm built\ndirectory: web\n---\n");
    assert_eq!(place.run(&format!("script run build --trust-hash {hash}")).code, 4);
}

#[test]
fn trust_stored_in_the_repository_is_invalid() {
    let place = with_script("echo built > built");
    let inside = |words: &[&str]| {
        let mut command = place.command();
        command.args(words).env("XDG_STATE_HOME", place.file("state"));
        Ran::of(command.output().expect("the binary starts"))
    };
    std::fs::create_dir(place.file(".git")).expect("it is new");
    let trusted = inside(&["trust", "build", "--trust-hash", &hash(&place)]);
    assert_eq!(trusted.code, 1, "{trusted:?}");
    assert_eq!(inside(&["script", "run", "build"]).code, 5);
}

#[test]
fn a_command_of_several_lines_is_shown_on_one() {
    let place = with_script("\"echo hi\\nhint: it is fine\"");
    let ran = place.run("script run build");
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("`echo hi\\nhint: it is fine`"), "{}", ran.stderr);
}

#[test]
fn a_script_returns_its_exit_code_and_json_is_one_object() {
    let place = with_script("\"echo hi; exit 3\"");
    let words = format!("script run build --trust-hash {}", hash(&place));
    let ran = place.run(&words);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "hi\n"));
    let ran = place.run(&format!("{words} --json"));
    assert_eq!((ran.code, ran.stderr.as_str()), (3, "hi\n"));
    assert_eq!(ran.json()["exit_code"], 3);
}
