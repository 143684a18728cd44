//! The lock of the plans directory between processes.
#![expect(clippy::disallowed_methods, reason = "the test starts itself again as the other process")]
#![expect(clippy::unwrap_used, reason = "a failed step of the test is a failed test")]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use planwatch::disk::{PlansDir, RealDisk};

const HOLD: &str = "PLANWATCH_TEST_HOLD";

fn open(dir: &Path) -> PlansDir {
    PlansDir::open(Arc::new(RealDisk), &dir.join("plans"), Some(&dir.join("state"))).unwrap()
}

/// If the environment variable [`HOLD`] is set, this is the other process. It holds the lock until it is killed.
#[test]
fn a_killed_process_frees_the_lock() {
    if let Some(dir) = std::env::var_os(HOLD) {
        let plans = open(Path::new(&dir));
        let _held = plans.lock(&mut || {}).unwrap();
        println!("held");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let dir = crate::support::temporary();
    std::fs::create_dir(dir.path().join("plans")).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "disk_lock::a_killed_process_frees_the_lock", "--nocapture"])
        .env(HOLD, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = String::new();
    let mut out = other.stdout.take().unwrap();
    while !output.contains("held") {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).unwrap(), 1, "the other process ended: {output}");
        output.push(char::from(byte[0]));
    }
    let plans = open(dir.path());
    let mut waits = 0;
    let held = plans.lock(&mut || {
        // The wait is reported once, while the other process holds the lock. Then that process is killed.
        waits += 1;
        other.kill().unwrap();
        other.wait().unwrap();
    });
    assert!(held.is_ok(), "{held:?}");
    drop(held);
    assert_eq!(waits, 1);
}
