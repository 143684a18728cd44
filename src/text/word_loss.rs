//! The words of a file in any format, to check that a conversion loses none.

use std::collections::HashMap;

use crate::text::front_matter;
use crate::text::yaml::{self, Kind, View};

/// A word that occurs more often in the source than in all kept texts together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostWord {
    pub word: String,
    /// Where it begins in the source.
    pub at: usize,
}

/// The text of a Markdown file: keys, values and comments of the front matter, and the body.
pub fn text_of(bytes: &[u8]) -> String {
    let parts = front_matter::split(bytes);
    let body = String::from_utf8_lossy(parts.body());
    let Some(header) = parts.yaml().map(String::from_utf8_lossy) else { return body.into_owned() };
    let Ok(tree) = yaml::parse(&header) else { return format!("{header}\n{body}") };
    let mut text = String::new();
    collect(tree.root(), &mut text);
    for line in header.lines() {
        let comment = if line.trim_start().starts_with('#') {
            Some(line)
        } else {
            line.split_once(" #").map(|it| it.1)
        };
        text.extend(comment.into_iter().flat_map(|it| [it, "\n"]));
    }
    text + &body
}

fn collect(view: View<'_>, text: &mut String) {
    match view.kind() {
        _ if view.is_alias() => {}
        Kind::List => view.items().for_each(|it| collect(it, text)),
        Kind::Map => view.own_entries().for_each(|(key, value)| {
            collect(key, text);
            collect(value, text);
        }),
        _ => text.extend([view.text().unwrap_or_default(), "\n"]),
    }
}

/// The words of a text with their offsets. A word is a run of letters and digits.
///
/// The mark in a task box and the number of a list item (up to three digits) are not words.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += text[at..].find(is_word)?;
            let start = at;
            at += text[start..].find(|c| !is_word(c)).unwrap_or(text.len() - start);
            let word = &text[start..at];
            if !is_mark(text, start, at) {
                return Some((start, word));
            }
        }
    })
}

fn is_mark(text: &str, start: usize, end: usize) -> bool {
    let (word, behind) = (&text[start..end], &text[end..]);
    if word.eq_ignore_ascii_case("x") {
        return text[..start].ends_with('[') && behind.starts_with(']');
    }
    let is_number = word.len() <= 3 && word.bytes().all(|it| it.is_ascii_digit());
    if !is_number || !behind.starts_with(". ") && !behind.starts_with(") ") {
        return false;
    }
    // Only blanks and `>` are skipped. Searching for the start of the line could read the whole text for each number.
    let before = text[..start].trim_end_matches(|c: char| c.is_whitespace() && c != '\n' || c == '>');
    before.is_empty() || before.ends_with('\n')
}

/// The words of `source` that occur less often in all of `kept` together.
pub fn lost<'a>(source: &str, kept: impl IntoIterator<Item = &'a str>) -> Vec<LostWord> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, word) in kept.into_iter().flat_map(words) {
        *counts.entry(word).or_default() += 1;
    }
    let mut lost = Vec::new();
    for (at, word) in words(source) {
        match counts.get_mut(word) {
            Some(count) if *count > 0 => *count -= 1,
            _ => lost.push(LostWord { word: word.to_owned(), at }),
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, kept: &[&str], expected: &[&str]) {
        let found: Vec<_> = lost(source, kept.iter().copied()).into_iter().map(|it| it.word).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn repeated_words_are_counted() {
        check("a b a", &["a", "b"], &["a"]);
        check("- [x] Größe_2 [y]", &["größe 2 y"], &["Größe"]);
        check("x [X] x", &["x"], &["x"]);
        check("1. a\n  12) b 3. c\n2.5 d\n> 4. e\n\n5. f", &["a b 3 c 2 5 d e f"], &[]);
        check("\t6. a", &["a"], &[]);
        check("", &[], &[]);
    }

    #[test]
    fn front_matter_values_and_comments_are_text() {
        let text = text_of(b"---\na: \"b\\nc\" # d\nl: [e, 'f']\n---\ng\n");
        check("a b c d l e f g", &[&text], &[]);
        assert_eq!(text_of(b"---\nno end"), "---\nno end");
    }
}
