//! Three versions of a step, separated by zero bytes, are merged without a panic. A clean result has the
//! attempts, notes and confirmations of both sides.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planwatch::plan::merge::{TextMerge, TextMerged, Versions, lost, merge};
use planwatch::plan::words::Words;
use planwatch::text::yaml::Tree;

/// Marks every difference as a whole; git's own merge would start a process.
struct Whole;

impl TextMerge for Whole {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<TextMerged> {
        let clean = |it: &[u8]| Some(TextMerged { bytes: it.to_vec(), is_clean: true });
        match (ours == theirs || theirs == base, ours == base) {
            (true, _) => clean(ours),
            (_, true) => clean(theirs),
            _ => {
                let parts = [b"<<<<<<< ours\n", ours, b"\n=======\n", theirs, b"\n>>>>>>> theirs\n"];
                Some(TextMerged { bytes: parts.concat(), is_clean: false })
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |it| *it == 0);
    let mut next = || parts.next().unwrap_or_default();
    let (base, ours, theirs) = (next(), next(), next());
    for path in ["plans/a/step-1.md", "plans/a/plan.md", "plans/a/notes.md"] {
        let of = Versions { path, base: Some(base), ours, theirs };
        let merged = merge(of, &Words::default(), &Whole);
        // What only one side changed is taken as it is.
        let is_one = ours == theirs || base == ours || base == theirs;
        if merged.is_clean && !is_one && [base, ours, theirs].into_iter().all(|it| Tree::of_file(it).is_some()) {
            for side in [ours, theirs] {
                assert!(lost(side, &merged.bytes).is_empty());
            }
        }
    }
});
