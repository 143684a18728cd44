//! Escapes and quotes texts from files, so that they are safe to print on a terminal and to use as words of a command.

use std::borrow::Cow;
use std::fmt::Display;

/// Whether a character is a control character, changes the direction of writing, or breaks a line. Such characters can
/// make a terminal show a different text.
pub fn acts_on_terminal(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || turns
}

/// Shows a text in one line, with escapes for characters that would act on the terminal.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Like [`escaped`], but line feeds and tabs stay, and CRLF becomes a line feed.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let acts = |c: char| acts_on_terminal(c) && !is_kept(c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let shown = text.chars().map(|c| if acts(c) { c.escape_default().to_string() } else { c.to_string() });
    Cow::Owned(shown.collect())
}

/// Quotes a word for a shell, so that it can be shown and typed as it is.
///
/// Characters that act on a terminal are written byte by byte in `$'…'`, as bash, zsh and ksh read it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    if word.contains(acts_on_terminal) {
        return format!("$'{}'", word.chars().map(in_ansi_quotes).collect::<String>());
    }
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Like [`quoted`], for an id or a path. A word that begins with `-` would be read as an option, so `./` precedes it;
/// [`without_dot`] removes it.
pub fn shell_word(of: &(impl Display + ?Sized)) -> String {
    let word = of.to_string();
    quoted(&if word.starts_with('-') { format!("./{word}") } else { word })
}

/// The id that [`shell_word`] wrote, without the `./` before a `-`.
pub fn without_dot(word: &str) -> &str {
    word.strip_prefix("./").filter(|it| it.starts_with('-')).unwrap_or(word)
}

/// Splits a command into its words. Removes the quotes around a text, and each backslash that escapes a character: any
/// character outside of quotes, and `"` and `\` in double quotes. Nothing is expanded, so `$HOME` stays as it is. `None` if a
/// quote is not closed, if the last character is a backslash that escapes nothing, or if the command contains `$'`, which
/// begins a text with other escapes.
pub fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut rest = command.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let (quote, word) = (c, word.get_or_insert_default());
                loop {
                    match rest.next()? {
                        c if c == quote => break,
                        '\\' if quote == '"' && rest.peek().is_some_and(|it| matches!(it, '"' | '\\')) => {
                            word.extend(rest.next());
                        }
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            '$' if rest.peek() == Some(&'\'') => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn in_ansi_quotes(c: char) -> String {
    match c {
        '\'' | '\\' => format!("\\{c}"),
        c if acts_on_terminal(c) => {
            // Always three digits, so that a following digit is not read as part of the escape.
            c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect()
        }
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_on_a_terminal_are_shown_as_escapes() {
        for (text, expected) in [
            ("plain é 計画", "plain é 計画"),
            ("red \u{1b}[31m", "red \\u{1b}[31m"),
            ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
            ("bell \u{7} and \u{9b}31m", "bell \\u{7} and \\u{9b}31m"),
            ("evil \u{202e}dm.", "evil \\u{202e}dm."),
            ("\u{61c}\u{200e}\u{200f}\u{2066}\u{2069}", "\\u{61c}\\u{200e}\\u{200f}\\u{2066}\\u{2069}"),
        ] {
            assert_eq!(escaped(text), expected);
        }
        assert_eq!(escaped_lines("a\r\n\tb\u{1b}"), "a\n\tb\\u{1b}");
    }

    #[test]
    fn a_quoted_word_is_the_word_to_a_shell() {
        for (word, expected) in [
            ("auth:2.5", "auth:2.5"),
            ("größe", "größe"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", "'it'\\''s'"),
            ("$(rm)", "'$(rm)'"),
            ("a\u{202e}7'\\", "$'a\\342\\200\\2567\\'\\\\'"),
            ("a\nb\u{1b}\u{9b}", "$'a\\012b\\033\\302\\233'"),
        ] {
            let quoted = quoted(word);
            assert_eq!(quoted, expected);
            assert!(!quoted.contains(acts_on_terminal));
        }
    }

    #[test]
    fn quoted_words_are_read_back() {
        for (id, word) in [("-x:1", "./-x:1"), ("-x y", "'./-x y'"), ("auth", "auth")] {
            assert_eq!(shell_word(id), word);
            assert_eq!(without_dot(&words(word).unwrap()[0]), id);
        }
        assert_eq!(without_dot("./plans/p"), "./plans/p");
        for word in ["auth:2.5", "two words", "it's", "'", "a, b; c", "$(rm)", "{id}", "\\"] {
            let command = format!("reopen {} --force", quoted(word));
            assert_eq!(words(&command).unwrap(), ["reopen", word, "--force"], "{command}");
        }
        for (command, expected) in [
            ("note p:1 costs $5 #7", ["note", "p:1", "costs", "$5", "#7"].as_slice()),
            (r#"set p:1 assignee "ann 'b' \"c\" \\ \d""#, &["set", "p:1", "assignee", r#"ann 'b' "c" \ \d"#]),
            (r#"a "" b"c d"e"#, &["a", "", "bc de"]),
        ] {
            assert_eq!(words(command).unwrap(), expected, "{command}");
        }
        assert_eq!(words("a 'b"), None);
        assert_eq!(words("a \"b'"), None);
        assert_eq!(words("a $'\\012'"), None);
    }
}
