#![expect(clippy::disallowed_methods, reason = "tests move directories as people do")]

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::disk::RealDisk;

/// Returns the events up to the one about `last`.
fn seen(
    watcher: &mut Watcher,
    plans: &PlansDir,
    batches: &Receiver<Vec<Raw>>,
    last: &str,
) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    loop {
        let batch = batches.recv().expect("the queue is open");
        let is_last = batch.iter().any(|it| it.is_of(last));
        events.extend(batch.iter().filter_map(|it| watcher.interpret(plans, it)));
        if is_last {
            return events;
        }
    }
}

/// A watcher on a plans directory with the given directories.
struct Rig {
    home: tempfile::TempDir,
    root: PathBuf,
    plans: PlansDir,
    batches: Receiver<Vec<Raw>>,
    watcher: Watcher,
}

impl Rig {
    fn new(directories: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join("plans");
        for name in directories {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let plans = PlansDir::open(Arc::new(RealDisk), &root, Some(&home.path().join("state"))).unwrap();
        let (sender, batches) = channel();
        let mut watcher = Watcher::open(&root, move |batch| sender.send(batch).is_ok()).unwrap();
        watcher.cover(&plans);
        Self { home, root, plans, batches, watcher }
    }

    fn away(&self) -> PathBuf {
        self.home.path().join("away")
    }

    /// Returns the events of all changes so far. Events are ordered, so this creates the directory `last` and reads until
    /// its event arrives. Only removals in planwatch's own directory have a queue of their own.
    fn events(&mut self, last: &str) -> Vec<WatchEvent> {
        fs::create_dir(self.root.join(last)).unwrap();
        let mut events = seen(&mut self.watcher, &self.plans, &self.batches, last);
        let at = events.iter().rposition(|it| *it == plan(last)).expect("it is the last");
        events.remove(at);
        events
    }

    /// Drops the events so far and reports that events were lost, as the system does on overflow.
    fn overflow(&mut self) {
        fs::create_dir(self.root.join("last")).unwrap();
        while !self.batches.recv().expect("the queue is open").iter().any(|it| it.is_of("last")) {}
        assert_eq!(self.watcher.interpret(&self.plans, &Raw::overflow()), Some(WatchEvent::Everything));
    }
}

fn plan(name: &str) -> WatchEvent {
    WatchEvent::Plan(name.to_owned())
}

#[test]
fn a_directory_that_was_moved_away_is_no_longer_watched() {
    let mut rig = Rig::new(&["a/notes"]);
    fs::rename(rig.root.join("a"), rig.away()).unwrap();
    let events = rig.events("y");
    assert!(events.contains(&plan("a")), "{events:?}");
    for name in ["step-1.md", "notes/step-2.md"] {
        fs::write(rig.away().join(name), "# Elsewhere\n").unwrap();
    }
    assert_eq!(rig.events("z"), []);
}

#[test]
fn removing_a_directory_keeps_watches_with_a_common_name_prefix() {
    let mut rig = Rig::new(&["a", "a-2", "ab"]);
    fs::rename(rig.root.join("a"), rig.away()).unwrap();
    assert!(rig.events("y").contains(&plan("a")));
    for name in ["a-2", "ab"] {
        fs::write(rig.root.join(name).join("step-1.md"), "# Here\n").unwrap();
    }
    let events = rig.events("z");
    assert!(events.contains(&plan("a-2")) && events.contains(&plan("ab")), "{events:?}");
}

#[test]
fn after_lost_events_a_moved_directory_has_only_its_new_name() {
    let mut rig = Rig::new(&["a"]);
    fs::rename(rig.root.join("a"), rig.root.join("b")).unwrap();
    rig.overflow();
    // A new directory gets the name that the moved directory had before.
    fs::create_dir(rig.root.join("a")).unwrap();
    assert!(rig.events("y").contains(&plan("a")));
    fs::write(rig.root.join("b/step-1.md"), "# Here\n").unwrap();
    let events = rig.events("z");
    assert!(!events.is_empty() && events.iter().all(|it| *it == plan("b")), "{events:?}");
}

#[test]
fn after_lost_events_a_replaced_directory_has_no_name() {
    let mut rig = Rig::new(&["a"]);
    fs::rename(rig.root.join("a"), rig.away()).unwrap();
    fs::create_dir(rig.root.join("a")).unwrap();
    rig.overflow();
    fs::write(rig.away().join("step-1.md"), "# Elsewhere\n").unwrap();
    assert_eq!(rig.events("y"), []);
    fs::write(rig.root.join("a/step-1.md"), "# Here\n").unwrap();
    assert!(rig.events("z").contains(&plan("a")));
}

#[test]
fn a_save_through_a_hard_link_elsewhere_is_seen() {
    let mut rig = Rig::new(&["a", "b", "_archive/c"]);
    let (before, after) = (rig.away(), rig.home.path().join("after"));
    fs::write(&before, "# One\n").unwrap();
    fs::hard_link(&before, rig.root.join("a/step-1.md")).unwrap();
    fs::write(rig.root.join("_archive/c/step-1.md"), "# Old\n").unwrap();
    fs::hard_link(rig.root.join("_archive/c/step-1.md"), &after).unwrap();
    rig.events("y");
    // The first file was a hard link when it appeared. The hard link of the second file is noticed at that file's next
    // event.
    fs::write(&before, "# Changed\n").unwrap();
    assert!(rig.events("z").contains(&plan("a")));
    fs::write(rig.root.join("_archive/c/step-1.md"), "# Older\n").unwrap();
    rig.events("x");
    fs::write(&after, "# Changed\n").unwrap();
    let events = rig.events("w");
    assert!(!events.is_empty() && events.iter().all(|it| *it == plan("c")), "{events:?}");
}

#[test]
fn hard_links_that_were_there_before_or_come_with_a_directory_are_seen() {
    let mut rig = Rig::new(&["a"]);
    let away = rig.away();
    fs::write(rig.root.join("a/step-1.md"), "# One\n").unwrap();
    fs::hard_link(rig.root.join("a/step-1.md"), &away).unwrap();
    rig.overflow();
    let named = ["a/step-1.md", "a/plan.md"].map(str::to_owned);
    assert_eq!(rig.watcher.watch_hard_links(&rig.plans, &named), BTreeSet::from(["a".to_owned()]));
    assert_eq!(rig.watcher.watch_hard_links(&rig.plans, &named), BTreeSet::new(), "it is watched already");
    fs::write(&away, "# Changed\n").unwrap();
    assert!(rig.events("y").contains(&plan("a")));
    // If two plans contain the same file, the event does not tell which plan changed.
    let fresh = rig.home.path().join("fresh");
    fs::create_dir(&fresh).unwrap();
    fs::hard_link(&away, fresh.join("step-1.md")).unwrap();
    fs::rename(&fresh, rig.root.join("b")).unwrap();
    rig.events("z");
    fs::write(&away, "# Changed again\n").unwrap();
    assert!(rig.events("x").contains(&WatchEvent::Everything));
    // Watching a directory as a file by mistake does not end its watch.
    rig.watcher.watch_file("a");
    fs::write(rig.root.join("a/step-2.md"), "# Two\n").unwrap();
    assert!(rig.events("w").contains(&plan("a")));
}

#[test]
fn reading_files_causes_no_events() {
    let mut rig = Rig::new(&["a/notes", "_archive/b"]);
    let files =
        ["a/plan.md", "a/step-1.md", "a/notes/n.md", "_archive/b/plan.md"].map(|it| rig.root.join(it));
    for file in &files {
        fs::write(file, "# Text\n").unwrap();
    }
    rig.events("y");
    for file in &files {
        assert_eq!(fs::read_to_string(file).unwrap(), "# Text\n");
        assert!(fs::read_dir(file.parent().unwrap()).unwrap().count() > 0);
        fs::metadata(file).unwrap();
    }
    fs::create_dir(rig.root.join("z")).unwrap();
    let first = rig.batches.recv().expect("the queue is open");
    assert!(first[0].is_of("z"), "{first:?}");
}

#[test]
fn a_directory_that_replaces_an_empty_one_is_watched() {
    let mut rig = Rig::new(&["first"]);
    for round in 0..20 {
        for name in ["a", "b"] {
            fs::create_dir_all(rig.root.join(name)).unwrap();
        }
        rig.events(&format!("made-{round}"));
        fs::rename(rig.root.join("b"), rig.root.join("a")).unwrap();
        rig.events(&format!("moved-{round}"));
        // The end of the replaced directory is reported last.
        rig.events(&format!("ended-{round}"));
        fs::write(rig.root.join("a/step-1.md"), "# Here\n").unwrap();
        let events = rig.events(&format!("written-{round}"));
        assert!(events.contains(&plan("a")), "{round}: {events:?}");
        fs::remove_dir_all(rig.root.join("a")).unwrap();
    }
}

#[test]
fn a_hard_linked_file_that_replaces_another_is_watched() {
    let mut rig = Rig::new(&["a", "c"]);
    let (one, two) = (rig.away(), rig.home.path().join("two"));
    fs::write(&one, "# One\n").unwrap();
    fs::write(&two, "# Two\n").unwrap();
    fs::hard_link(&one, rig.root.join("a/step-1.md")).unwrap();
    rig.events("w");
    let beside = rig.root.join("c/step-1.md");
    fs::hard_link(&two, &beside).unwrap();
    fs::rename(&beside, rig.root.join("a/step-1.md")).unwrap();
    rig.events("x");
    fs::write(&two, "# Changed\n").unwrap();
    let events = rig.events("y");
    assert!(events.iter().any(|it| [plan("a"), WatchEvent::Everything].contains(it)), "{events:?}");
}

#[test]
fn cookies_whose_events_were_lost_are_reported_after_the_scan() {
    let mut rig = Rig::new(&["a"]);
    rig.plans.made_runtime_dir().unwrap();
    rig.plans.clear_cookies().unwrap();
    rig.watcher.cover_own(&rig.plans);
    rig.plans.make_cookie("0", "1").unwrap();
    rig.plans.make_cookie("1", "2").unwrap();
    rig.overflow();
    let events = rig.events("y");
    let is_there = |name: &str| events.contains(&WatchEvent::Cookie(name.to_owned()));
    assert!(is_there("1") && is_there("2") && !is_there("3"), "{events:?}");
    rig.plans.make_cookie("2", "3").unwrap();
    assert!(rig.events("z").contains(&WatchEvent::Cookie("3".to_owned())));
}

#[test]
fn recreated_runtime_files_are_watched_again() {
    let mut rig = Rig::new(&["a"]);
    for round in ["y", "z"] {
        let state = rig.plans.made_runtime_dir().unwrap();
        rig.plans.clear_cookies().unwrap();
        rig.watcher.cover_own(&rig.plans);
        rig.plans.make_cookie("0", round).unwrap();
        assert!(rig.events(&format!("before-{round}")).contains(&WatchEvent::Cookie(round.to_owned())));
        fs::rename(&state, rig.home.path().join(round)).unwrap();
        let events = rig.events(&format!("after-{round}"));
        assert!(events.contains(&WatchEvent::RuntimeFiles), "{events:?}");
    }
}

#[test]
fn the_plans_directory_that_is_moved_away_is_gone() {
    let mut rig = Rig::new(&["a"]);
    fs::rename(&rig.root, rig.away()).unwrap();
    let mut events = std::iter::from_fn(|| rig.batches.recv().ok()).flatten();
    assert!(events.any(|it| rig.watcher.interpret(&rig.plans, &it) == Some(WatchEvent::Gone)));
}

#[test]
fn one_recursive_watch_reports_the_same() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    fs::create_dir(root.join("linked")).unwrap();
    fs::write(root.join("linked/step-1.md"), "# One\n").unwrap();
    fs::hard_link(root.join("linked/step-1.md"), root.join("linked/step-2.md")).unwrap();
    let plans = PlansDir::open(Arc::new(RealDisk), &root, None).unwrap();
    let (sender, batches) = channel();
    let mut watcher = Watcher::open_as(&root, true, move |it| sender.send(it).is_ok()).unwrap();
    watcher.watch_file("kept/step-1.md");
    watcher.cover(&plans);
    watcher.cover_own(&plans);
    watcher.watch_hard_links(&plans, &["linked/step-1.md".to_owned()]);
    assert_eq!(watcher.coverage_gap(), None);
    assert_eq!(watcher.linked().iter().collect::<Vec<_>>(), ["kept", "linked"]);
    fs::create_dir(root.join("auth")).unwrap();
    assert!(seen(&mut watcher, &plans, &batches, "auth").contains(&plan("auth")));
    let raw = |path: &str, kind| Raw { source: 0, change: Some((kind, root.join(path))) };
    let created = EventKind::Create(CreateKind::Any);
    for (path, kind, expected) in [
        (".planwatch/cookies/7", created, Some(WatchEvent::Cookie("7".to_owned()))),
        (".planwatch/daemon.sock", EventKind::Remove(RemoveKind::Any), Some(WatchEvent::RuntimeFiles)),
        (".planwatch/index.db", EventKind::Remove(RemoveKind::Any), None),
        (".git/index", created, None),
        ("", created, Some(WatchEvent::Everything)),
    ] {
        assert_eq!(watcher.interpret(&plans, &raw(path, kind)), expected, "{path}");
    }
    assert_eq!(watcher.interpret(&plans, &Raw::overflow()), Some(WatchEvent::Everything));
}
