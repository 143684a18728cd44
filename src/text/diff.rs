//! Compares texts: unified diffs as `--dry-run` prints them, words that differ in a line, minimal edits, counts of lines.

use std::fmt::Write as _;
use std::ops::Range;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag, group_diff_ops};

/// How many equal lines are shown before and after a change.
const CONTEXT: usize = 3;

/// Finds the differences with Myers' algorithm (1986), as git does. `TextDiff` of `similar` is not used, because it would
/// compile the library's other algorithms into the binary.
fn ops(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff(&mut found, old, 0..old.len(), new, 0..new.len());
    found.into_inner().into_inner().into_ops()
}

/// Returns a longest common subsequence as pairs of indices in `old` and `new`.
pub fn in_common(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let mut found = Capture::new();
    let Ok(()) = myers::diff(&mut found, old, 0..old.len(), new, 0..new.len());
    let equal = found.into_ops().into_iter().filter_map(|it| match it {
        DiffOp::Equal { old_index, new_index, len } => Some((old_index..old_index + len).zip(new_index..)),
        _ => None,
    });
    equal.flatten().collect()
}

/// The lines of a text, with their ends. Only LF ends a line, as in git.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the unified diff between two versions of a file; empty if they are equal.
///
/// `None` means that the file does not exist. The diff has git's format and can be applied with `git apply` if both
/// versions are UTF-8. Other bytes are shown as replacement characters.
pub fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    if before == after {
        return String::new();
    }
    let old = String::from_utf8_lossy(before.unwrap_or_default());
    let new = String::from_utf8_lossy(after.unwrap_or_default());
    let old_name = before.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
    let new_name = after.map_or_else(|| "/dev/null".to_owned(), |_| format!("b/{path}"));
    let mode = match (before, after) {
        (None, _) => "new file mode 100644\n",
        (_, None) => "deleted file mode 100644\n",
        _ => "",
    };
    let head = format!("diff --git a/{path} b/{path}\n{mode}");
    if old.is_empty() && new.is_empty() {
        return head;
    }
    let (old, new) = (split(&old), split(&new));
    let hunks = group_diff_ops(ops(&old, &new), CONTEXT);
    let mut diff = head;
    if !hunks.is_empty() {
        let _ = writeln!(diff, "--- {old_name}\n+++ {new_name}");
    }
    for hunk in hunks {
        let _ = writeln!(diff, "{}", UnifiedHunkHeader::new(&hunk));
        for change in hunk.iter().flat_map(|it| it.iter_changes(&old[..], &new[..])) {
            let end = if change.value().ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            let _ = write!(diff, "{}{}{end}", change.tag(), change.value());
        }
    }
    diff
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The header of a hunk, such as `@@ -1,3 +1,4 @@`.
    Head,
    Same,
    Removed,
    Added,
}

/// A line of a diff, without its line ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// The text in parts. The flag of a part is true if its words differ from the other side of the change.
    pub parts: Vec<(bool, String)>,
}

/// Returns the lines of a unified diff. In changed lines, the words that differ are marked.
pub fn lines(old: &str, new: &str) -> Vec<DiffLine> {
    let (old, new) = (split(old), split(new));
    let mut found = Vec::new();
    for hunk in group_diff_ops(ops(&old, &new), CONTEXT) {
        let head = UnifiedHunkHeader::new(&hunk).to_string();
        found.push(DiffLine { kind: LineKind::Head, parts: vec![(false, head)] });
        for op in &hunk {
            let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
            if op.tag() == DiffTag::Equal {
                let same = |it: &&str| vec![(false, without_end(it).to_owned())];
                found.extend(new.iter().map(same).map(|parts| DiffLine { kind: LineKind::Same, parts }));
                continue;
            }
            for (kind, lines) in [LineKind::Removed, LineKind::Added].into_iter().zip(marked(old, new)) {
                found.extend(lines.into_iter().map(|parts| DiffLine { kind, parts }));
            }
        }
    }
    found
}

/// For each line, its parts as in [`DiffLine::parts`].
type Marked = Vec<Vec<(bool, String)>>;

/// Marks the words that differ. No word is marked:
/// - if fewer than half of all words are equal, because the marks would be hard to read;
/// - if there are more than [`MAX_PAIRS`] pairs of words.
fn marked(old: &[&str], new: &[&str]) -> [Marked; 2] {
    let lines = [old, new].map(|it| it.iter().map(|it| words(without_end(it))).collect::<Vec<_>>());
    let [a, b] = lines.each_ref().map(|it| it.concat());
    let is_short = a.len().saturating_mul(b.len()) <= MAX_PAIRS;
    let ops = if is_short { ops(&a, &b) } else { Vec::new() };
    let equal = || ops.iter().filter(|it| it.tag() == DiffTag::Equal);
    let n_words = |it: &[&str]| it.iter().filter(|it| !it.trim().is_empty()).count();
    let n_equal: usize = equal().map(|it| n_words(&a[it.old_range()])).sum();
    let is_alike = n_equal * 4 >= n_words(&a) + n_words(&b);
    let mut differs = [vec![is_alike; a.len()], vec![is_alike; b.len()]];
    for op in equal() {
        differs[0][op.old_range()].fill(false);
        differs[1][op.new_range()].fill(false);
    }
    let [old, new] = lines;
    let [of_old, of_new] = differs.map(Vec::into_iter);
    [(old, of_old), (new, of_new)].map(|(lines, mut differs)| {
        let line = |words: Vec<&str>| {
            let words: Vec<_> = differs.by_ref().take(words.len()).zip(words).collect();
            let parts = words.chunk_by(|a, b| a.0 == b.0);
            parts.map(|it| (it[0].0, it.iter().map(|it| it.1).collect())).collect()
        };
        lines.into_iter().map(line).collect()
    })
}

fn without_end(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

/// Splits a line into words and the blanks between them.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|it: char| it.is_whitespace() != first.is_whitespace()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// Returns the edits that turn `old` into `new`: ranges of `old` in ascending order, each with the text that replaces it.
///
/// The texts are compared line by line. Each edit is then shortened by the start and the end that its old and its new text
/// share.
pub fn edits(old: &str, new: &str) -> Vec<(Range<usize>, String)> {
    let [old_lines, new_lines] = [old, new].map(split);
    let starts = |lines: &[&str]| -> Vec<usize> {
        let ends = lines.iter().scan(0, |at, line| {
            *at += line.len();
            Some(*at)
        });
        std::iter::once(0).chain(ends).collect()
    };
    let (old_at, new_at) = (starts(&old_lines), starts(&new_lines));
    if old_lines.len().saturating_mul(new_lines.len()) > MAX_PAIRS {
        return trimmed(old, new, (0..old.len(), 0..new.len())).into_iter().collect();
    }
    let ops = ops(&old_lines, &new_lines);
    let changed = ops.iter().filter(|it| it.tag() != DiffTag::Equal);
    let bytes = |at: &[usize], lines: Range<usize>| at[lines.start]..at[lines.end];
    // If a region has as many new lines as old ones, each line gets an edit of its own.
    let regions = changed.flat_map(|it| {
        let (old, new) = (it.old_range(), it.new_range());
        match old.len() == new.len() {
            true => old.zip(new).map(|(old, new)| (old..old + 1, new..new + 1)).collect(),
            false => vec![(old, new)],
        }
    });
    regions.filter_map(|(from, to)| trimmed(old, new, (bytes(&old_at, from), bytes(&new_at, to)))).collect()
}

/// The replacement of a region, without the start and the end that its old and its new text share; `None` if the two
/// texts are equal.
fn trimmed(
    old: &str,
    new: &str,
    (mut from, mut to): (Range<usize>, Range<usize>),
) -> Option<(Range<usize>, String)> {
    let same = |a: &str, b: &str| {
        let pairs = a.char_indices().zip(b.chars()).take_while(|((_, a), b)| a == b);
        pairs.last().map_or(0, |((at, c), _)| at + c.len_utf8())
    };
    let first = same(&old[from.clone()], &new[to.clone()]);
    (from.start, to.start) = (from.start + first, to.start + first);
    let tail = |it: &str| it.chars().rev().collect::<Vec<_>>();
    let (a, b) = (tail(&old[from.clone()]), tail(&new[to.clone()]));
    let last: usize = a.iter().zip(&b).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    (from.end, to.end) = (from.end - last, to.end - last);
    // A CRLF is never divided, because editors have no position between its two characters.
    if old[..from.start].ends_with('\r') && old[from.start..].starts_with('\n') {
        (from.start, to.start) = (from.start - 1, to.start - 1);
    }
    if old[..from.end].ends_with('\r') && old[from.end..].starts_with('\n') {
        (from.end, to.end) = (from.end + 1, to.end + 1);
    }
    (!from.is_empty() || !to.is_empty()).then(|| (from, new[to].to_owned()))
}

/// The maximum number of pairs of lines that [`edits`] and [`line_counts`] compare, and of pairs of words that [`marked`]
/// compares. With more pairs of lines, everything between the common start and the common end counts as replaced. With
/// more pairs of words, no word is marked.
const MAX_PAIRS: usize = 4_000_000;

/// Counts the lines that were added and removed. Lines that differ only in their line endings count as equal.
pub fn line_counts(old: &str, new: &str) -> (u64, u64) {
    if old == new {
        return (0, 0);
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let n_before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[n_before..], &new[n_before..]);
    let n_behind = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - n_behind], &new[..new.len() - n_behind]);
    if old.is_empty() || new.is_empty() || old.len().saturating_mul(new.len()) > MAX_PAIRS {
        return (new.len() as u64, old.len() as u64);
    }
    let ops = ops(old, new);
    let changed = ops.iter().filter(|it| it.tag() != DiffTag::Equal);
    changed.fold((0, 0), |sum, it| (sum.0 + it.new_range().len() as u64, sum.1 + it.old_range().len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_words_of_a_line_are_marked() {
        let found = lines("a\nsome words here\n", "a\nsome other words here\n");
        let kinds: Vec<_> = found.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [LineKind::Head, LineKind::Same, LineKind::Removed, LineKind::Added]);
        assert!(found[3].parts.iter().any(|(differs, text)| *differs && text.contains("other")), "{found:?}");
        assert!(
            found[3].parts.iter().any(|(differs, text)| !*differs && text.contains("words")),
            "{found:?}"
        );
        let found = lines("alpha beta gamma delta same\n", "one two three four same\n");
        assert!(found.iter().all(|it| it.parts.len() == 1 && !it.parts[0].0), "{found:?}");
    }

    #[test]
    fn the_range_of_an_empty_side_begins_at_line_0() {
        let head = |old: &str, new: &str| lines(old, new)[0].parts[0].1.clone();
        assert_eq!(head("", "a\nb\n"), "@@ -0,0 +1,2 @@");
        assert_eq!(head("a\nb\n", ""), "@@ -1,2 +0,0 @@");
        assert_eq!(head("a\n", "b\n"), "@@ -1 +1 @@");
    }

    #[test]
    fn lines_are_counted_without_their_endings() {
        for (old, new, expected) in [
            ("a\nb\n", "a\r\nb", (0, 0)),
            ("", "a\nb\n", (2, 0)),
            ("a\nb\nc\nd\n", "a\nx\nc\ny\nz\n", (3, 2)),
            ("a\n", "", (0, 1)),
        ] {
            assert_eq!(line_counts(old, new), expected, "{old:?} {new:?}");
        }
    }

    fn applied(old: &str, edits: &[(Range<usize>, String)]) -> String {
        let mut text = old.to_owned();
        edits.iter().rev().for_each(|(range, new)| text.replace_range(range.clone(), new));
        text
    }

    #[test]
    fn edits_are_as_small_as_a_person_would_make_them() {
        let edits = |old: &str, new: &str| edits(old, new);
        let one = |range: Range<usize>, new: &str| vec![(range, new.to_owned())];
        assert_eq!(edits("a: pending\nb\n", "a: completed\nb\n"), one(3..10, "completed"));
        assert_eq!(edits("a\nc\n", "a\nb\nc\n"), one(2..2, "b\n"));
        assert_eq!(edits("a\nb\nc\n", "a\nc\n"), one(2..4, ""));
        assert_eq!(edits("é\n", "è\n"), one(0..2, "è"));
        assert_eq!(edits("a\r\n", "a\n"), one(1..3, "\n"));
        assert_eq!(edits("x", "x"), []);
        assert_eq!(edits("", "x"), one(0..0, "x"));
    }

    proptest::proptest! {
        #[test]
        fn edits_make_the_new_text(old in "[ab\r\né]{0,24}", new in "[ab\r\né]{0,24}") {
            let edits = edits(&old, &new);
            proptest::prop_assert_eq!(applied(&old, &edits), new);
            proptest::prop_assert!(edits.windows(2).all(|it| it[0].0.end <= it[1].0.start));
        }
    }

    #[test]
    fn equal_files_have_no_diff() {
        assert_eq!(unified("a.md", Some(b"x\n"), Some(b"x\n")), "");
    }

    #[test]
    fn a_change_is_one_hunk_with_context() {
        let diff = unified(
            "p/step-1.md",
            Some(b"---\nstatus: pending\n---\n"),
            Some(b"---\nstatus: completed\n---\n"),
        );
        assert_eq!(
            diff,
            "diff --git a/p/step-1.md b/p/step-1.md\n--- a/p/step-1.md\n+++ b/p/step-1.md\n@@ -1,3 +1,3 @@\n ---\n-status: pending\n+status: completed\n ---\n"
        );
    }

    #[test]
    fn lines_end_at_lf_alone_as_in_git() {
        let diff = unified("a.md", Some(b"a\rb\nc"), Some(b"a\rB\nc\n"));
        let hunk = "@@ -1,2 +1,2 @@\n-a\rb\n-c\n\\ No newline at end of file\n+a\rB\n+c\n";
        assert!(diff.ends_with(hunk), "{diff:?}");
    }

    #[test]
    fn a_new_file_comes_from_nothing() {
        assert!(
            unified("a.md", None, Some(b"x\n"))
                .starts_with("diff --git a/a.md b/a.md\nnew file mode 100644\n--- /dev/null\n+++ b/a.md\n")
        );
    }
}
