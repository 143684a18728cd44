//! Prepares people's text for a page: makes characters visible that would hide or reorder the text, and clips long text.

use std::borrow::Cow;
use std::fmt::Write;

use maud::{Markup, html};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Makes bidirectional controls and other control characters visible. Line breaks and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| is_bidi_control(c) || (c.is_control() && c != '\n' && c != '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if is_bidi_control(c) => write!(shown, "[U+{:04X}]", u32::from(c)).unwrap_or_default(),
            '\n' | '\t' => shown.push(c),
            '\u{7f}' => shown.push('\u{2421}'),
            // Unicode has a symbol for each of these characters.
            '\0'..='\u{1f}' => shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or(' ')),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Like [`visible`], on one line.
pub fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A title or a name within other text, isolated so that its writing direction does not affect that text.
pub fn isolated(text: &str) -> Markup {
    html! { bdi { (one_line(text)) } }
}

/// The number of columns that a text takes in a font of fixed width.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Cuts a text to at most `most` columns; a text that was cut ends in `…`.
pub fn clip(text: &str, most: usize) -> String {
    let text = one_line(text);
    if text.width() <= most {
        return text;
    }
    let mut clipped = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > most {
            break;
        }
        clipped.push(c);
    }
    clipped.truncate(clipped.trim_end().len());
    clipped.push('…');
    clipped
}

/// A status word as people read it: `in progress`.
pub fn words(word: &str) -> String {
    one_line(&word.replace('_', " "))
}

/// Whether a character is a bidirectional mark, embedding, override or isolate. These change the order in which other
/// characters are shown.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_and_other_scripts_stay() {
        for (text, expected) in [
            ("a\u{202e}b", "a[U+202E]b"),
            ("\u{2066}x\u{2069}", "[U+2066]x[U+2069]"),
            ("a\u{1b}[31m", "a\u{241b}[31m"),
            ("\0\u{7f}\u{85}", "\u{2400}\u{2421}\u{fffd}"),
            ("a\u{1b} b c", "a\u{241b} b c"),
            ("a\tb\nc", "a\tb\nc"),
            ("שלום 計画 Größe", "שלום 計画 Größe"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(one_line(" a\n\tb "), "a b");
        assert_eq!(isolated("<b>\u{202e}").into_string(), "<bdi>&lt;b&gt;[U+202E]</bdi>");
    }

    #[test]
    fn text_is_clipped_by_columns() {
        for (text, most, expected) in [
            ("short", 5, "short"),
            ("longer text", 8, "longer…"),
            ("設計を文書化する", 9, "設計を文…"),
            ("設計", 4, "設計"),
            ("abc", 1, "…"),
        ] {
            let clipped = clip(text, most);
            assert_eq!(clipped, expected);
            assert!(columns(&clipped) <= most);
        }
    }
}
