//! The laws that hold for every merge of a plan file. The generated merges and the fuzz target share them.

use std::collections::BTreeSet;

use planwatch::plan::merge::{FileKind, TextMerge, TextMerged, Versions, lost, merge};
use planwatch::plan::words::Words;
use planwatch::text::front_matter;
use planwatch::text::yaml::{self, Kind, Tree, View};

/// Keys whose values are merged by meaning.
const BY_MEANING: [&str; 13] = [
    "id",
    "status",
    "claim",
    "confirmed",
    "attempts",
    "notes",
    "confirmations",
    "depends",
    "tags",
    "goals",
    "success_criteria",
    "files",
    "touches",
];

/// A clean result has the attempts, notes and confirmations of both sides, the values that only one side changed, and each
/// line of the body that only one side has. Returns whether both sides changed the file and the result is clean.
pub(crate) fn check(path: &str, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<bool, String> {
    let merged = merge(Versions { path, base: Some(base), ours, theirs }, &Words::default(), &Ranges);
    // If only one side changed the file, its version is the result. Equal versions of both sides are the result, too.
    if ours == theirs || base == ours || base == theirs {
        let expected = if base == ours { theirs } else { ours };
        let is_taken = merged.is_clean && merged.bytes == expected;
        return if is_taken { Ok(false) } else { Err("the only change is not taken".to_owned()) };
    }
    if !merged.is_clean {
        return Ok(false);
    }
    let versions = [base, ours, theirs, merged.bytes.as_slice()];
    lines_stay(versions.map(body))?;
    let trees = versions.map(header);
    let [Some(before), Some(own), Some(other), now] = &trees else { return Ok(true) };
    let Some(now) = now else { return Err("the result cannot be read".to_owned()) };
    // Attempts, notes and confirmations are merged as lists only in the files of plans and steps; in other files, they are
    // ordinary values. An entry that a person removed from a list is gone if the other side changed nothing in the front
    // matter.
    let is_log =
        FileKind::of(path).0 != FileKind::Other && [ours, theirs].iter().all(|it| !has_header_of(it, base));
    let sides = if is_log { &[ours, theirs][..] } else { &[] };
    // A person may write a text instead of such a list; it is then merged as an ordinary value.
    let is_list = |key: &str| {
        [before, own, other].iter().all(|it| it.root().get(key).is_none_or(|it| it.kind() == Kind::List))
    };
    for side in sides {
        let lost = lost(side, &merged.bytes);
        if let Some(entry) = lost.iter().find(|it| it.split(':').next().is_some_and(is_list)) {
            return Err(format!("lost {entry:?}"));
        }
    }
    values_stay(before, own, other, now)?;
    Ok(true)
}

fn lines_stay([base, ours, theirs, now]: [BTreeSet<String>; 4]) -> Result<(), String> {
    for (side, other) in [(&ours, &theirs), (&theirs, &ours)] {
        let mut only = side.iter().filter(|it| !base.contains(*it) && !other.contains(*it));
        if let Some(line) = only.find(|it| !now.contains(*it)) {
            return Err(format!("the line {line:?} is lost"));
        }
    }
    Ok(())
}

fn values_stay(base: &Tree, ours: &Tree, theirs: &Tree, now: &Tree) -> Result<(), String> {
    let keys = ours.root().entries().chain(theirs.root().entries()).filter_map(|(key, _)| key.text());
    for key in keys.filter(|it| !BY_MEANING.contains(it)) {
        let [old, one, two, new] = [base, ours, theirs, now].map(|it| it.root().get(key));
        let expected = match (is_same(old, one), is_same(old, two)) {
            (true, _) => two,
            (false, true) => one,
            _ => continue,
        };
        if !is_same(new, expected) {
            return Err(format!("`{key}` does not have the value of the side that changed it"));
        }
    }
    Ok(())
}

fn is_same(a: Option<View<'_>>, b: Option<View<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => yaml::same(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn header(file: &[u8]) -> Option<Tree> {
    yaml::parse(std::str::from_utf8(front_matter::split(file).yaml()?).ok()?).ok()
}

fn has_header_of(file: &[u8], other: &[u8]) -> bool {
    let header = |it: &[u8]| {
        String::from_utf8_lossy(front_matter::split(it).yaml().unwrap_or_default()).replace('\r', "")
    };
    header(file) == header(other)
}

/// The lines of a body, without line ends and the marks of task boxes.
fn body(file: &[u8]) -> BTreeSet<String> {
    let body = String::from_utf8_lossy(front_matter::split(file).body()).into_owned();
    let plain = |line: &str| line.replace("[x]", "[ ]").replace("[X]", "[ ]").trim().to_owned();
    body.split('\n').map(plain).filter(|it| !it.is_empty()).collect()
}

/// Takes each side's change if the changed ranges of lines do not touch. Git's own merge would start a process.
struct Ranges;

impl TextMerge for Ranges {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<TextMerged> {
        let clean = |bytes: Vec<u8>| Some(TextMerged { bytes, is_clean: true });
        if ours == theirs || theirs == base {
            return clean(ours.to_vec());
        }
        if ours == base {
            return clean(theirs.to_vec());
        }
        let [base, own, other] = [base, ours, theirs].map(lines);
        let changes = [Change::of(&base, &own), Change::of(&base, &other)];
        let [first, second] =
            if changes[0].from <= changes[1].from { changes } else { [changes[1], changes[0]] };
        if first.to < second.from {
            let parts = [
                &base[..first.from],
                first.new,
                &base[first.to..second.from],
                second.new,
                &base[second.to..],
            ];
            return clean(parts.concat().concat());
        }
        let parts = [b"<<<<<<< ours\n", ours, b"\n=======\n", theirs, b"\n>>>>>>> theirs\n"];
        Some(TextMerged { bytes: parts.concat(), is_clean: false })
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|it| *it == b'\n').collect()
}

/// The lines of the base that a side replaced, and what it put there.
#[derive(Clone, Copy)]
struct Change<'a> {
    from: usize,
    to: usize,
    new: &'a [&'a [u8]],
}

impl<'a> Change<'a> {
    fn of(base: &[&[u8]], side: &'a [&'a [u8]]) -> Self {
        let from = base.iter().zip(side).take_while(|(a, b)| a == b).count();
        let ends = base[from..].iter().rev().zip(side[from..].iter().rev());
        let same = ends.take_while(|(a, b)| a == b).count();
        Self { from, to: base.len() - same, new: &side[from..side.len() - same] }
    }
}
