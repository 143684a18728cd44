//! Files that contain one decision or one insight: how they are named, and how their titles are compared.

use unicode_normalization::UnicodeNormalization;

use crate::plan::id;
use crate::plan::time::Time;
use crate::text::placeholders::one_line;

/// The maximum number of bytes that a title has in a file name.
const MAX_WORDS: usize = 60;

/// Returns a file name without `.md`: the time with milliseconds, then the title as `[a-z0-9-]`.
///
/// `instead` is used for a title without such characters, for example one in Chinese characters.
pub fn name(at: Time, title: &str, instead: &str) -> String {
    format!("{}-{}", at.stamp(), words(title, instead))
}

fn words(title: &str, instead: &str) -> String {
    // Lower case first, because `letters_and_digits` spells out `ß` as `ss`, but does not know `ẞ`.
    let words = id::letters_and_digits(&title.to_lowercase());
    let words = id::cut(&words, MAX_WORDS);
    if words.is_empty() { instead.to_owned() } else { words.to_owned() }
}

/// Reads the time at the start of a file's name. `None`: there is no time, because a person chose the name.
pub fn time_of(name: &str) -> Option<Time> {
    Time::from_stamp(name.split_once('-').map_or(name, |(stamp, _)| stamp))
}

/// Returns whether a name contains the title as [`name`] writes it. `None`: the name does not begin with a time, because a
/// person chose it.
pub(crate) fn agrees(name: &str, title: &str, instead: &str) -> Option<bool> {
    let (stamp, rest) = name.split_once('-')?;
    Time::from_stamp(stamp)?;
    Some(rest == words(title, instead))
}

/// The name of a file without its directory and its `.md`.
pub fn id_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// A title in the form in which titles are compared: with single blanks, in one Unicode normal form, ignoring case.
pub fn folded(title: &str) -> String {
    let fold = |c: char| match c {
        // Letters that still differ in lower case.
        'ς' => "σ".to_owned(),
        'ß' | 'ẞ' => "ss".to_owned(),
        c => c.to_lowercase().collect(),
    };
    one_line(title).nfc().map(fold).collect::<String>().nfc().collect()
}

/// Returns the id that `name` means. `name` is an id, the name of a file, or the path of a file in `directory`. `None`: the
/// path is in another directory, or the name is empty.
pub fn named_in<'a>(name: &'a str, directory: &str) -> Option<&'a str> {
    let is_meant = match name.rsplit_once('/') {
        Some((parent, _)) => parent.rsplit('/').next() == Some(directory),
        None => true,
    };
    Some(id_of(name)).filter(|it| is_meant && !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(title: &str, expected: &str) {
        let at = "2026-11-21T09:14:03.25Z".parse().expect("it is a time");
        let name = name(at, title, "decision");
        assert_eq!(name, format!("20261121T091403.250Z-{expected}"));
        assert_eq!((time_of(&name), agrees(&name, title, "decision")), (Some(at), Some(true)));
    }

    #[test]
    fn names_are_a_time_and_plain_words() {
        check("Authentication", "authentication");
        check("API: which style?", "api-which-style");
        check("計画", "decision");
        check("OAuth vs. SAML f\u{fc}r \u{c4}mter \u{212a}", "oauth-vs-saml-fur-amter-k");
        check(&"ab ".repeat(40), &"ab-".repeat(20)[..59]);
    }

    #[test]
    fn a_name_that_a_person_chose_has_no_time() {
        assert_eq!((time_of("adr-7-queue"), agrees("adr-7-queue", "Cache", "decision")), (None, None));
        assert_eq!(agrees("20261121T091403.250Z-queue", "Cache", "decision"), Some(false));
    }

    #[test]
    fn titles_compare_without_case_and_outer_blanks() {
        for (one, other) in [
            ("  AUTH  ", "auth"),
            ("API  Design", "api design"),
            ("ΟΔΟΣ", "οδος"),
            ("STRASSE", "straße"),
            ("caf\u{e9}", "CAFE\u{301}"),
        ] {
            assert_eq!(folded(one), folded(other), "{one}");
        }
        assert_ne!(folded("auth"), folded("authentication"));
    }
}
