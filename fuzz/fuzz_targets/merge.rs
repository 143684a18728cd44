//! Three versions of a plan file, separated by zero bytes, are merged without a panic and by the laws of the tests.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/it/merge_laws/law.rs"]
mod law;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |it| *it == 0);
    let mut next = || parts.next().unwrap_or_default();
    let (base, ours, theirs) = (next(), next(), next());
    for path in ["plans/a/step-1.md", "plans/a/plan.md", "plans/a/notes.md"] {
        if let Err(why) = law::check(path, base, ours, theirs) {
            panic!("{path}: {why}");
        }
    }
});
