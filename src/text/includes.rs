//! Checks whether a text already includes a change that was made to another version of the text.
//!
//! When planwatch replaces a file, an editor may read the new version and save its own text over it. The editor's text
//! then contains planwatch's change. Making the change again would, for example, append an attempt twice or remove two
//! items. Therefore this module searches the editor's text for the difference between the text before and after the change:
//! keys and items of the front matter, and lines of the body.

use std::collections::HashMap;

use super::front_matter;
use super::yaml::{self, Kind, View};

/// Returns whether `theirs` contains what changed from `base` to `ours`.
///
/// `unique` names the keys whose new values no other change can produce, such as lists of entries with a time and an author.
/// If the change sets such keys, only these are compared, because an editor may have changed other keys since. Returns false
/// for an empty change, and if one of the three front matters cannot be read.
pub fn includes(base: &[u8], ours: &[u8], theirs: &[u8], unique: &[&str]) -> bool {
    let (Some(was), Some(is), Some(now)) = (Header::of(base), Header::of(ours), Header::of(theirs)) else {
        return false;
    };
    let keys = is.changed_keys(&was);
    let is_decisive = |key: &&String| unique.contains(&key.as_str()) && is.get(key).is_some();
    let decisive: Vec<_> = keys.iter().filter(is_decisive).collect();
    if !decisive.is_empty() {
        return decisive.into_iter().all(|key| holds(was.get(key), is.get(key), now.get(key)));
    }
    let bodies = [base, ours, theirs].map(|it| front_matter::split(it).body());
    let is_body_changed = bodies[0] != bodies[1];
    if keys.is_empty() && !is_body_changed {
        return false;
    }
    keys.iter().all(|key| holds(was.get(key), is.get(key), now.get(key)))
        && (!is_body_changed || holds_lines(bodies))
}

/// A front matter; a file without one has no keys.
struct Header(Option<yaml::Tree>);

impl Header {
    fn of(bytes: &[u8]) -> Option<Self> {
        match front_matter::split(bytes) {
            front_matter::Parts { header: front_matter::Header::Unclosed, .. } => None,
            parts => match parts.yaml() {
                None => Some(Self(None)),
                Some(text) => Some(Self(Some(yaml::parse(std::str::from_utf8(text).ok()?).ok()?))),
            },
        }
    }

    fn get(&self, key: &str) -> Option<View<'_>> {
        self.0.as_ref()?.root().get(key)
    }

    /// The keys whose values differ, each once.
    fn changed_keys(&self, before: &Self) -> Vec<String> {
        let mut keys = Vec::new();
        for tree in [&self.0, &before.0].into_iter().flatten() {
            for key in tree.root().own_entries().filter_map(|(key, _)| key.text()) {
                if !is_same(self.get(key), before.get(key)) && !keys.iter().any(|it| it == key) {
                    keys.push(key.to_owned());
                }
            }
        }
        keys
    }
}

fn is_same(one: Option<View<'_>>, other: Option<View<'_>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => yaml::same(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Whether the value `now` includes the change from `was` to `is`. For lists, the occurrences of each changed item are
/// counted.
fn holds(was: Option<View<'_>>, is: Option<View<'_>>, now: Option<View<'_>>) -> bool {
    let is_list = |it: Option<View<'_>>| it.is_none_or(|it| matches!(it.kind(), Kind::List | Kind::Null));
    if is_same(is, now) {
        return true;
    }
    if ![was, is, now].into_iter().all(is_list) {
        return false;
    }
    let [was, is, now] =
        [was, is, now].map(|it| it.map(|it| it.items().collect::<Vec<_>>()).unwrap_or_default());
    // The common start is skipped, because most changes append one item to a long list.
    let start = was.iter().zip(&is).take_while(|(a, b)| yaml::same(**a, **b)).count();
    let count = |list: &[View<'_>], item: View<'_>| list.iter().filter(|it| yaml::same(**it, item)).count();
    let mut is_any = false;
    for &item in was[start..].iter().chain(&is[start..]) {
        let (before, after) = (count(&was, item), count(&is, item));
        let there = count(&now, item);
        is_any |= before != after;
        if after > before && there < after || after < before && there > after {
            return false;
        }
    }
    // If no count differs, the items were only reordered. Such a change is included only in an equal list (see above).
    is_any
}

/// Like [`holds`], for the lines of a body, except that a change that only reorders lines is never included.
fn holds_lines([was, is, now]: [&[u8]; 3]) -> bool {
    fn counts(text: &[u8]) -> HashMap<&[u8], usize> {
        let mut counts = HashMap::new();
        for line in text.split(|it| *it == b'\n').map(|it| it.strip_suffix(b"\r").unwrap_or(it)) {
            *counts.entry(line).or_default() += 1;
        }
        counts
    }
    let (was, is, now) = (counts(was), counts(is), counts(now));
    let count = |text: &HashMap<&[u8], usize>, line: &[u8]| text.get(line).copied().unwrap_or_default();
    let mut is_any = false;
    for line in was.keys().chain(is.keys()) {
        let (before, after, there) = (count(&was, line), count(&is, line), count(&now, line));
        is_any |= before != after;
        if after > before && there < after || after < before && there > after {
            return false;
        }
    }
    is_any
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIQUE: [&str; 2] = ["claim", "attempts"];

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, expected: bool) {
        let file = |text: &str| format!("---\n{text}---\nbody\n").into_bytes();
        assert_eq!(includes(&file(base), &file(ours), &file(theirs), &UNIQUE), expected, "{theirs}");
    }

    #[test]
    fn scalars_are_included_by_their_value() {
        let (base, ours) = ("status: pending\n", "status: completed\n");
        check(base, ours, "status: pending\nx: 1\n", false);
        check(base, ours, "x: 1\nstatus: \"completed\" # by hand\n", true);
        check(base, ours, "status: blocked\n", false);
        check(base, ours, "x: 1\n", false);
        check("status: a\nclaim: {id: g1}\n", "status: b\n", "status: b\n", true);
        check("status: a\ntitle: x\n", "status: b\n", "status: b\ntitle: x\n", false);
        check(base, base, base, false);
    }

    #[test]
    fn items_are_counted() {
        check("tags: [b, x, b]\n", "tags: [x, b]\n", "tags: [x, b, more]\n", true);
        check("tags: [b, x, b]\n", "tags: [x, b]\n", "tags: [b, x, b, more]\n", false);
        check("tags: [b]\n", "{}\n", "tags: [b]\n", false);
        check("a: 1\n", "a: 1\ntags:\n  - x\n", "a: 1\ntags: [y, x]\n", true);
        check("a: 1\n", "a: 1\ntags:\n  - x\n", "a: 1\ntags: [y]\n", false);
        check("tags: [x]\n", "tags: [x, x]\n", "tags: [x, y]\n", false);
        check("tags: [x]\n", "tags: [x, x]\n", "tags: [x, y, x]\n", true);
        check("tags: [x, y]\n", "tags: [y, x]\n", "tags: [x, y, z]\n", false);
    }

    #[test]
    fn unique_keys_decide_alone() {
        let attempt = "attempts:\n  - at: 2026-11-21T09:14:03Z\n    outcome: failed\n";
        let (base, ours) = ("status: pending\n", format!("status: failed\n{attempt}"));
        check(base, &ours, &format!("status: pending\n{attempt}"), true);
        check(base, &ours, "status: failed\n", false);
        let one = format!("status: pending\n{attempt}");
        let two = format!("{one}  - at: 2026-11-21T09:14:03Z\n    outcome: failed\n");
        check(&one, &two, &format!("{one}x: 1\n"), false);
        check(&one, &two, &format!("x: 1\n{two}"), true);
        check("a: 1\n", "a: 1\nclaim: {id: g1}\n", "a: 2\nclaim: {id: g1}\n", true);
        check("a: 1\n", "a: 1\nclaim: {id: g1}\n", "a: 2\nclaim: {id: g2}\n", false);
        // Other edits may remove a claim, too, so a missing claim does not show that this change was made.
        check("status: a\nclaim: {id: g1}\n", "status: b\n", "status: a\n", false);
    }

    #[test]
    fn bodies_are_compared_by_their_lines() {
        for (theirs, expected) in
            [("one\ntwo\nthree\n", true), ("one\r\nnew\r\ntwo\r\n", true), ("one\nnew\n", false), ("", false)]
        {
            assert_eq!(includes(b"one\n", b"one\ntwo\n", theirs.as_bytes(), &UNIQUE), expected, "{theirs}");
        }
        assert!(includes(b"x\n", b"---\na: 1\n---\nx\n", b"---\na: 1\n---\nx\ny\n", &UNIQUE));
        assert!(!includes(b"x\n", b"---\na: 1\n---\nx\n", b"x\ny\n", &UNIQUE));
    }

    #[test]
    fn unreadable_texts_include_nothing() {
        check("a: 1\n", "a: 2\n", "a: [\n", false);
        assert!(!includes(b"a\n", b"a\nb\n", b"---\na: 1\na\nb\n", &UNIQUE));
    }
}
