//! Simultaneous processes: nothing is lost or done twice, and no process waits for a killed one.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do, and start processes")]

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Place, Ran, lines_of, tree};

const N: usize = 8;

/// Starts all command lines at the same time and waits for all of them.
fn at_once<'a>(place: &Place, lines: impl IntoIterator<Item = Vec<&'a str>>) -> Vec<Ran> {
    let start = |words: Vec<&str>| {
        let mut command = place.command();
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary starts")
    };
    let children: Vec<Child> = lines.into_iter().map(start).collect();
    children.into_iter().map(|it| Ran::of(it.wait_with_output().expect("it ends"))).collect()
}

#[track_caller]
fn all_succeed(ran: &[Ran]) {
    assert!(ran.iter().all(|it| it.code == 0), "{ran:#?}");
}

fn texts(value: &serde_json::Value, key: &str) -> Vec<String> {
    let mut found: Vec<_> = value
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it[key].as_str().unwrap_or_default().to_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn attempts_and_notes_of_eight_processes_are_all_recorded() {
    let place = Place::with_examples();
    let words: Vec<_> = (0..N).map(|n| (format!("outcome {n}"), format!("note {n}"))).collect();
    let attempts = words.iter().map(|(outcome, _)| vec!["attempt", "feature-auth:0", outcome.as_str()]);
    let notes = words.iter().map(|(_, note)| vec!["note", "feature-auth:0", note.as_str()]);
    all_succeed(&at_once(&place, attempts.chain(notes)));
    let step = place.run("show feature-auth:0 --json").json();
    assert_eq!(texts(&step["attempts"], "outcome"), words.iter().map(|it| it.0.clone()).collect::<Vec<_>>());
    assert_eq!(texts(&step["notes"], "text"), words.iter().map(|it| it.1.clone()).collect::<Vec<_>>());
    assert_eq!((step["status"].as_str(), place.run("check").code), (Some("in_progress"), 0));
}

#[test]
fn a_step_done_by_eight_processes_changes_once() {
    let (place, alone) = (Place::with_examples(), Place::with_examples());
    all_succeed(&at_once(&place, (0..N).map(|_| vec!["done", "switch-energy-provider:3"])));
    let only = alone.run("done switch-energy-provider:3");
    assert_eq!(only.code, 0);
    assert_eq!(tree(&place.work()), tree(&alone.work()));
    let undo = place.run("undo --list --json").json();
    assert_eq!(undo["changes"].as_array().map(Vec::len), Some(1), "{undo}");
}

#[test]
fn eight_processes_create_eight_plans_with_one_title() {
    let place = Place::with_examples();
    let before = tree(&place.work());
    all_succeed(&at_once(&place, (0..N).map(|_| vec!["new", "Sign in", "Schema"])));
    let after = tree(&place.work());
    let mut made: Vec<_> = after.keys().filter(|it| !before.contains_key(*it)).cloned().collect();
    let ids = (1..=N).map(|n| if n == 1 { "sign-in".to_owned() } else { format!("sign-in-{n}") });
    let mut expected: Vec<_> =
        ids.flat_map(|id| [format!("plans/{id}/plan.md"), format!("plans/{id}/step-1.md")]).collect();
    made.sort();
    expected.sort();
    assert_eq!(made, expected);
    assert_eq!(place.run("check").code, 0);
}

#[test]
fn steps_added_by_eight_processes_get_different_numbers() {
    let place = Place::with_examples();
    let titles: Vec<_> = (0..N).map(|n| format!("Step from {n}")).collect();
    all_succeed(&at_once(&place, titles.iter().map(|it| vec!["add", "fence-repair", it.as_str()])));
    let steps = place.run("list fence-repair --json").json();
    let added: Vec<_> =
        texts(&steps["steps"], "title").into_iter().filter(|it| it.starts_with("Step from")).collect();
    assert_eq!(added, titles);
    let plan = place.text("plans/fence-repair/plan.md");
    assert!(titles.iter().all(|it| plan.contains(it.as_str())), "{plan}");
    assert_eq!(place.run("check").code, 0, "{}", place.run("check").stdout);
}

#[test]
fn simultaneous_requests_with_one_key_are_carried_out_once() {
    let place = Place::with_examples();
    assert_eq!(place.run("new q a b c d e f g h i j k l m n o p").code, 0);
    for n in 0..N {
        let key = format!("key-{n}");
        let line = || vec!["claim", "q", "--json", "--key", key.as_str()];
        let claims = at_once(&place, [line(), line()]);
        all_succeed(&claims);
        assert_eq!(claims[0].json()["claim"]["id"], claims[1].json()["claim"]["id"], "{claims:#?}");
        let note = || vec!["note", "q", key.as_str(), "--key", key.as_str()];
        let refused = at_once(&place, [note(), note()]);
        assert!(refused.iter().all(|it| it.stderr.contains("idempotency-key-reused")), "{refused:#?}");
        let other = format!("other-{n}");
        let note = || vec!["note", "q", other.as_str(), "--key", other.as_str()];
        all_succeed(&at_once(&place, [note(), note()]));
        assert_eq!(place.text("plans/q/plan.md").matches(&other).count(), 1);
    }
}

#[test]
fn an_editor_that_saves_continuously_loses_nothing() {
    let place = Place::with_examples();
    let step = place.file("plans/fence-repair/step-4.md");
    let original = place.text("plans/fence-repair/step-4.md");
    let is_over = AtomicBool::new(false);
    let saves = std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut n_saves = 0;
            // The editor never reads the file. It has its text in memory, and the text grows with each save.
            let mut text = original.clone();
            while !is_over.load(Ordering::Relaxed) {
                n_saves += 1;
                text.extend(["save ", &n_saves.to_string(), "\n"]);
                if n_saves % 2 == 0 {
                    std::fs::write(&step, &text).expect("it can be saved");
                } else {
                    let beside = step.with_extension("md~");
                    std::fs::write(&beside, &text).expect("it can be saved");
                    std::fs::rename(&beside, &step).expect("it can be saved");
                }
            }
            n_saves
        });
        let attempt = |n| place.run_with(&["attempt", "fence-repair:4", &format!("try {n}")]);
        let all: Vec<_> = (0..N).map(attempt).collect();
        is_over.store(true, Ordering::Relaxed);
        for ran in all {
            let is_refused = ["[file-changed]", "[front-matter"].iter().any(|it| ran.stderr.contains(it));
            assert!(ran.code == 0 || is_refused, "{ran:?}");
        }
        editor.join().expect("it does not panic")
    });
    let last = format!("save {saves}\n");
    let kept = std::fs::read_dir(place.file("plans/.planwatch/displaced")).expect("it is there").flatten();
    let kept: Vec<_> = kept.map(|it| std::fs::read_to_string(it.path()).unwrap_or_default()).collect();
    let text = place.text("plans/fence-repair/step-4.md");
    assert!(text.contains(&last) || kept.iter().any(|it| it.contains(&last)), "{last} is lost: {text}");
}

/// `flock` of util-linux holds the lock as another planwatch process would.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_holder_releases_the_lock() {
    let place = Place::with_examples();
    assert_eq!(place.run("note feature-auth:0 first").code, 0, "this creates the lock file");
    let mut holder = std::process::Command::new("flock");
    place.close_environment(&mut holder);
    holder.args(["--no-fork", "plans/.planwatch/lock", "sh", "-c", "echo held; read line"]);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("flock is there");
    let mut held = lines_of(holder.stdout.take().expect("it is piped"));
    assert_eq!(held.next(), "held");
    let mut done = place.command();
    let mut done = done
        .args(["done", "feature-auth:0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut messages = lines_of(done.stderr.take().expect("it is piped"));
    // The message shows that the command waits.
    let waits = messages.next();
    assert!(waits.contains("wait"), "{waits}");
    assert!(place.text("plans/feature-auth/step-0.md").contains("first"));
    assert!(!place.text("plans/feature-auth/step-0.md").contains("completed"));
    holder.kill().expect("it runs");
    holder.wait().expect("it has ended");
    let ran = Ran::of(done.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.text("plans/feature-auth/step-0.md").contains("status: completed"));
}

#[test]
fn readers_never_see_a_partial_change() {
    let place = Place::with_examples();
    let queries = [
        "list feature-auth --json",
        "next feature-auth --json",
        "check",
        "list feature-auth --no-index --json",
    ];
    let reads = (0..2 * N).map(|n| queries[n % queries.len()].split(' ').collect());
    let writes = (0..N).map(|n| {
        let verb = if n % 2 == 0 { "done" } else { "reopen" };
        vec![verb, "feature-auth:0", "--force"]
    });
    let ran = at_once(&place, writes.chain(reads));
    for it in &ran {
        assert!(it.code == 0 || it.code == 4, "{it:?}");
        assert!(!it.stderr.contains("panicked") && !it.stdout.contains("front-matter"), "{it:?}");
    }
}

/// Writes an empty file, as an editor does at the start of a save. Its modification time stays recent during the whole test.
fn begin_save(place: &Place, relative: &str) {
    place.write(relative, "");
    let soon = std::time::SystemTime::now() + std::time::Duration::from_millis(1900);
    let file = std::fs::File::open(place.file(relative)).expect("it is there");
    file.set_modified(soon).expect("it can be set");
}

#[test]
fn no_step_is_claimed_while_the_plan_that_holds_it_back_is_being_saved() {
    let words = "These words make the file longer than what planwatch adds to it.\n";
    for (header, step) in [
        ("---\norder: sequential\n---\n# P\n", "p:3"),
        ("---\nstatus: draft\n---\n# P\n", "p:1"),
        ("---\nconfirm_phases: [cut]\n---\n# P\n", "p:1"),
        ("# P\n\n## Steps\n\n- step-3: Three (depends: step-2)\n", "p:3"),
    ] {
        let place = Place::new();
        let plan = format!("{header}\n{words}");
        place.write("plans/p/plan.md", &plan);
        for n in 1..=3 {
            place.write(&format!("plans/p/step-{n}.md"), "---\nphase: cut\n---\n# A step\n");
        }
        let refused = place.run(&format!("claim {step}"));
        assert_ne!(refused.code, 0, "{header}");
        // The index records the size of the file.
        place.run("list").ok();
        let before = place.text(&format!("plans/{}.md", step.replace(':', "/step-")));
        for claim in [format!("claim {step}"), "claim p".to_owned(), "claim".to_owned()] {
            begin_save(&place, "plans/p/plan.md");
            let refused = place.run(&format!("{claim} --json"));
            assert_eq!(
                (refused.code, refused.stderr.contains("file-changed")),
                (4, true),
                "{header}: {refused:?}"
            );
        }
        std::fs::remove_file(place.file("plans/p/plan.md")).expect("it is there");
        assert_eq!(place.text(&format!("plans/{}.md", step.replace(':', "/step-"))), before);
        place.write("plans/p/plan.md", &plan);
        assert_eq!(place.run(&format!("claim {step}")).code, refused.code, "{header}");
    }
}
