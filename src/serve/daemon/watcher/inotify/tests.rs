#![expect(clippy::disallowed_methods, reason = "tests move directories as people do")]

use std::fs;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::disk::RealDisk;

/// What is seen up to the event about `last`.
fn seen(eyes: &mut Eyes, plans: &PlansDir, told: &Receiver<Vec<Raw>>, last: &str) -> Vec<Look> {
    let mut looks = Vec::new();
    loop {
        let batch = told.recv().expect("more is told");
        let is_last = batch.iter().any(|it| it.is_of(last));
        looks.extend(batch.iter().filter_map(|it| eyes.see(plans, it)));
        if is_last {
            return looks;
        }
    }
}

/// Eyes on a plans directory with these directories in it.
struct Rig {
    home: tempfile::TempDir,
    root: PathBuf,
    plans: PlansDir,
    told: Receiver<Vec<Raw>>,
    eyes: Eyes,
}

impl Rig {
    fn new(directories: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join("plans");
        for name in directories {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let plans = PlansDir::open(Arc::new(RealDisk), &root, None).unwrap();
        let (tell, told) = channel();
        let mut eyes = Eyes::open(&root, move |batch| tell.send(batch).is_ok()).unwrap();
        eyes.cover(&plans);
        Self { home, root, plans, told, eyes }
    }

    fn away(&self) -> PathBuf {
        self.home.path().join("away")
    }

    /// What is seen of what was done so far. Events come in their order: before that of a new directory came all others.
    fn looks(&mut self, last: &str) -> Vec<Look> {
        fs::create_dir(self.root.join(last)).unwrap();
        let mut looks = seen(&mut self.eyes, &self.plans, &self.told, last);
        assert_eq!(looks.pop(), Some(plan(last)));
        looks
    }

    /// Loses the events so far, as the system does when there are too many.
    fn overflow(&mut self) {
        fs::create_dir(self.root.join("last")).unwrap();
        while !self.told.recv().expect("more is told").iter().any(|it| it.is_of("last")) {}
        assert_eq!(self.eyes.see(&self.plans, &Raw::overflow()), Some(Look::Everything));
    }
}

fn plan(name: &str) -> Look {
    Look::Plan(name.to_owned())
}

#[test]
fn a_directory_that_was_moved_away_is_watched_no_longer() {
    let mut rig = Rig::new(&["a/notes"]);
    fs::rename(rig.root.join("a"), rig.away()).unwrap();
    let looks = rig.looks("y");
    assert!(looks.contains(&plan("a")), "{looks:?}");
    for name in ["step-1.md", "notes/step-2.md"] {
        fs::write(rig.away().join(name), "# Elsewhere\n").unwrap();
    }
    assert_eq!(rig.looks("z"), []);
}

#[test]
fn a_directory_whose_name_only_begins_like_that_of_one_that_goes_is_still_watched() {
    let mut rig = Rig::new(&["a", "a-2", "ab"]);
    fs::rename(rig.root.join("a"), rig.away()).unwrap();
    assert!(rig.looks("y").contains(&plan("a")));
    for name in ["a-2", "ab"] {
        fs::write(rig.root.join(name).join("step-1.md"), "# Here\n").unwrap();
    }
    let looks = rig.looks("z");
    assert!(looks.contains(&plan("a-2")) && looks.contains(&plan("ab")), "{looks:?}");
}

#[test]
fn a_directory_that_was_moved_unseen_is_watched_by_its_new_name_alone() {
    let mut rig = Rig::new(&["a"]);
    fs::rename(rig.root.join("a"), rig.root.join("b")).unwrap();
    rig.overflow();
    // Its old name is that of another one from here on.
    fs::create_dir(rig.root.join("a")).unwrap();
    assert!(rig.looks("y").contains(&plan("a")));
    fs::write(rig.root.join("b/step-1.md"), "# Here\n").unwrap();
    let looks = rig.looks("z");
    assert!(!looks.is_empty() && looks.iter().all(|it| *it == plan("b")), "{looks:?}");
}

#[test]
fn a_directory_that_was_replaced_unseen_is_known_by_no_name() {
    let mut rig = Rig::new(&["a"]);
    fs::rename(rig.root.join("a"), rig.away()).unwrap();
    fs::create_dir(rig.root.join("a")).unwrap();
    rig.overflow();
    fs::write(rig.away().join("step-1.md"), "# Elsewhere\n").unwrap();
    assert_eq!(rig.looks("y"), []);
    fs::write(rig.root.join("a/step-1.md"), "# Here\n").unwrap();
    assert!(rig.looks("z").contains(&plan("a")));
}

#[test]
fn what_is_saved_through_a_hard_link_elsewhere_is_seen() {
    let mut rig = Rig::new(&["a", "b", "_archive/c"]);
    let (before, after) = (rig.away(), rig.home.path().join("after"));
    fs::write(&before, "# One\n").unwrap();
    fs::hard_link(&before, rig.root.join("a/step-1.md")).unwrap();
    fs::write(rig.root.join("_archive/c/step-1.md"), "# Old\n").unwrap();
    fs::hard_link(rig.root.join("_archive/c/step-1.md"), &after).unwrap();
    rig.looks("y");
    // One came as a link; of the other it shows with the next event.
    fs::write(&before, "# Changed\n").unwrap();
    assert!(rig.looks("z").contains(&plan("a")));
    fs::write(rig.root.join("_archive/c/step-1.md"), "# Older\n").unwrap();
    rig.looks("x");
    fs::write(&after, "# Changed\n").unwrap();
    let looks = rig.looks("w");
    assert!(!looks.is_empty() && looks.iter().all(|it| *it == plan("c")), "{looks:?}");
}

#[test]
fn hard_links_that_were_there_before_or_come_with_a_directory_are_seen() {
    let mut rig = Rig::new(&["a"]);
    let away = rig.away();
    fs::write(rig.root.join("a/step-1.md"), "# One\n").unwrap();
    fs::hard_link(rig.root.join("a/step-1.md"), &away).unwrap();
    rig.overflow();
    fs::write(&away, "# Changed\n").unwrap();
    assert!(rig.looks("y").contains(&plan("a")));
    // A second plan with the same file: who is meant cannot be told from the event.
    let fresh = rig.home.path().join("fresh");
    fs::create_dir(&fresh).unwrap();
    fs::hard_link(&away, fresh.join("step-1.md")).unwrap();
    fs::rename(&fresh, rig.root.join("b")).unwrap();
    rig.looks("z");
    fs::write(&away, "# Changed again\n").unwrap();
    assert!(rig.looks("x").contains(&Look::Everything));
    // A directory that is taken for a file by mistake stays watched.
    rig.eyes.watch_file("a");
    fs::write(rig.root.join("a/step-2.md"), "# Two\n").unwrap();
    assert!(rig.looks("w").contains(&plan("a")));
}
