//! Reads parts of the command line before clap parses it: the form and the colours of clap's error messages, the verb, and
//! the words of `search` that begin with `-`.

use std::ffi::OsString;

use anstream::ColorChoice;

use crate::fields;
use crate::output::Form;

/// The form and the colours of the output, as given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) form: Form,
    pub(crate) colour: ColorChoice,
}

/// Looks for `--json` and `--color` before any `--`.
pub(crate) fn look(typed: &[OsString]) -> Typed {
    let mut found = Typed { form: Form::Text, colour: ColorChoice::Auto };
    let words = typed.iter().skip(1).map(|it| it.to_string_lossy()).take_while(|it| it != "--");
    let words: Vec<_> = words.collect();
    for (at, word) in words.iter().enumerate() {
        match word.split_once('=') {
            None if word == "--json" => found.form = Form::Json(Vec::new()),
            Some(("--json", wanted)) => found.form = Form::Json(fields::read(wanted)),
            Some(("--color", colour)) => found.colour = choice(colour),
            None if word == "--color" => {
                found.colour = words.get(at + 1).map_or(ColorChoice::Auto, |it| choice(it));
            }
            _ => {}
        }
    }
    found
}

/// Precedes a word that begins with `-` but is not an option. An argument of a process cannot contain this character.
pub(crate) const TEXT_MARK: char = '\0';

/// Marks the words of `search` (or `recall`, its other name) that begin with `-` but are search text, such as the exclusion
/// `-token`.
///
/// Words that begin with `--` are not marked, so that clap reports a misspelled option.
pub(crate) fn with_texts_marked(typed: &[OsString]) -> Vec<OsString> {
    let mut words = typed.to_vec();
    let Some(verb) = verb_at(typed).filter(|at| ["search", "recall"].iter().any(|it| typed[*at] == *it))
    else {
        return words;
    };
    let mut is_value = false;
    for word in words.iter_mut().skip(verb + 1) {
        let Some(text) = word.to_str() else { continue };
        if text == "--" {
            break;
        }
        if !is_value && is_text(text) {
            *word = format!("{TEXT_MARK}{text}").into();
            continue;
        }
        is_value = !is_value && takes_value(text);
    }
    words
}

/// Returns the verb: the first word that is neither an option nor the value of an option.
pub(crate) fn verb(typed: &[OsString]) -> Option<String> {
    typed[verb_at(typed)?].to_str().map(str::to_owned)
}

fn verb_at(typed: &[OsString]) -> Option<usize> {
    let mut is_value = false;
    for (at, word) in typed.iter().enumerate().skip(1) {
        let word = word.to_string_lossy();
        if !is_value && !word.starts_with('-') {
            return Some(at);
        }
        is_value = !is_value && takes_value(&word);
    }
    None
}

/// Whether the word is an option whose value is the next word. Only the options of `search`, and those that every verb has,
/// are known here.
fn takes_value(word: &str) -> bool {
    matches!(word, "--plans" | "--color" | "--limit" | "--kind" | "--since" | "-C")
}

fn is_text(word: &str) -> bool {
    let Some(letters) = word.strip_prefix('-').filter(|it| !it.is_empty() && !it.starts_with('-')) else {
        return false;
    };
    !letters.starts_with('C') && !letters.chars().all(|it| "qvh".contains(it))
}

fn choice(word: &str) -> ColorChoice {
    match word {
        "always" => ColorChoice::Always,
        "never" => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, form: Form, colour: ColorChoice) {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        assert_eq!(look(&words), Typed { form, colour });
    }

    #[test]
    fn json_and_colour_are_found_before_a_double_dash() {
        check("planwatch lits --json", Form::Json(Vec::new()), ColorChoice::Auto);
        check(
            "planwatch --json=id,title list --color never",
            Form::Json(fields::read("id,title")),
            ColorChoice::Never,
        );
        check("planwatch --color=always new -- --json", Form::Text, ColorChoice::Always);
    }

    #[track_caller]
    fn check_marks(line: &str, expected: &str) {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        let marked: Vec<_> =
            with_texts_marked(&words).into_iter().map(|it| it.into_string().unwrap()).collect();
        assert_eq!(marked.join(" ").replace(TEXT_MARK, "<text>"), expected);
    }

    #[test]
    fn exclusions_of_a_search_are_text_and_options_stay_options() {
        check_marks("planwatch search hash -token", "planwatch search hash <text>-token");
        check_marks(
            "planwatch -q -C search recall -verbose -v",
            "planwatch -q -C search recall <text>-verbose -v",
        );
        check_marks(
            "planwatch search a --limit -1 -qv -query",
            "planwatch search a --limit -1 -qv <text>-query",
        );
        check_marks("planwatch search a -Cdir --nope -- -b", "planwatch search a -Cdir --nope -- -b");
        check_marks("planwatch list -token", "planwatch list -token");
        check_marks("planwatch --json search - -x", "planwatch --json search - <text>-x");
    }
}
