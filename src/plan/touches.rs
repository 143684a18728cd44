//! Whether two steps may change the same files, by the patterns of their `touches`.

use unicode_normalization::UnicodeNormalization;

/// The characters that make a path a pattern.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// Returns whether two lists of patterns may match the same file. `None` overlaps everything except an empty list.
///
/// Only the part before the first wildcard is compared, so a false positive is possible, but never a false negative.
pub fn overlap(a: Option<&[String]>, b: Option<&[String]>) -> bool {
    let is_nothing = |it: Option<&[String]>| it.is_some_and(<[String]>::is_empty);
    match (a, b) {
        _ if is_nothing(a) || is_nothing(b) => false,
        (Some(a), Some(b)) => a.iter().any(|a| b.iter().any(|b| may_meet(&Pattern::of(a), &Pattern::of(b)))),
        _ => true,
    }
}

struct Pattern {
    start: String,
    is_wild: bool,
    /// Whether the text does not tell which files the pattern means, as in `../a`.
    is_unclear: bool,
}

impl Pattern {
    fn of(text: &str) -> Self {
        // Some file systems ignore differences in case and in the encoding of accents.
        let text: String = text.trim().to_lowercase().nfc().collect();
        let text = text.split('/').filter(|it| *it != ".").collect::<Vec<_>>().join("/");
        let is_unclear = text.starts_with(['/', '!', '~']) || text.split('/').any(|it| it == "..");
        let (start, is_wild) = match text.find(WILD) {
            Some(at) => (&text[..at], true),
            None => (text.trim_end_matches('/'), false),
        };
        Self { start: start.to_owned(), is_wild, is_unclear: is_unclear || text.contains("//") }
    }

    /// Whether this pattern may match a path that begins with the literal start of `other`.
    fn may_hold(&self, other: &Self) -> bool {
        let Some(rest) = other.start.strip_prefix(&self.start) else { return false };
        // A path without wildcards means the file, or the directory and everything below it.
        self.is_wild || self.start.is_empty() || rest.is_empty() || rest.starts_with('/')
    }
}

fn may_meet(a: &Pattern, b: &Pattern) -> bool {
    a.is_unclear || b.is_unclear || a.may_hold(b) || b.may_hold(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &[&str], b: &[&str], expected: bool) {
        let owned = |it: &[&str]| it.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (a, b) = (owned(a), owned(b));
        assert_eq!(overlap(Some(&a), Some(&b)), expected, "{a:?} {b:?}");
        assert_eq!(overlap(Some(&b), Some(&a)), expected, "{b:?} {a:?}");
    }

    #[test]
    fn paths_overlap_where_one_may_be_in_the_other() {
        check(&["src/**"], &["src/a.rs"], true);
        check(&["src/a/**"], &["src/b/**"], false);
        check(&["src"], &["src/a.rs"], true);
        check(&["src/"], &["src2/a.rs"], false);
        check(&["src/a*"], &["src/abc/d"], true);
        check(&["src/ab"], &["src/abc"], false);
        check(&["**/*.rs"], &["docs"], true);
        check(&["./docs/x.md"], &["DOCS/X.md"], true);
        check(&["docs/./x.md"], &["docs/x.md"], true);
        check(&["."], &["docs/x.md"], true);
        check(&["./"], &["docs/**"], true);
        check(&["gr\u{f6}\u{df}e/a"], &["Gro\u{308}\u{df}e"], true);
        check(&["docs/x.md"], &["docs/y.md", "src"], false);
        check(&["../a"], &["b"], true);
        check(&["/a"], &["b"], true);
        check(&["a/../b"], &["c"], true);
        check(&["."], &["c"], true);
        check(&[], &["a"], false);
        check(&[], &[], false);
        check(&["a/b"], &["a/[bc]"], true);
        check(&["a/b/c"], &["a"], true);
    }

    #[test]
    fn unknown_touches_overlap_everything_except_an_empty_list() {
        let some = ["a".to_owned()];
        assert!(overlap(None, None) && overlap(None, Some(&some)) && overlap(Some(&some), None));
        assert!(!overlap(None, Some(&[])) && !overlap(Some(&[]), None));
    }
}
