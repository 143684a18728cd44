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

#[test]
fn a_directory_that_was_moved_away_is_watched_no_longer() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap().join("plans");
    fs::create_dir_all(root.join("a/notes")).unwrap();
    let plans = PlansDir::open(Arc::new(RealDisk), &root, None).unwrap();
    let (tell, told) = channel();
    let mut eyes = Eyes::open(&root, move |batch| tell.send(batch).is_ok()).unwrap();
    eyes.cover(&plans);
    let away = home.path().join("away");
    fs::rename(root.join("a"), &away).unwrap();
    let looks = seen(&mut eyes, &plans, &told, "a");
    assert!(looks.contains(&Look::Plan("a".to_owned())), "{looks:?}");
    for name in ["step-1.md", "notes/step-2.md"] {
        fs::write(away.join(name), "# Elsewhere\n").unwrap();
    }
    // Events come in their order: before this one came whatever was told of the two.
    fs::create_dir(root.join("z")).unwrap();
    let looks = seen(&mut eyes, &plans, &told, "z");
    assert_eq!(looks, [Look::Plan("z".to_owned())]);
}
