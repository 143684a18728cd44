//! What has to be known of a command line before it is understood: how to say that it is wrong.

use std::ffi::OsString;

use anstream::ColorChoice;

use crate::fields;
use crate::output::Form;

/// How errors of the command line itself are to be told.
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
}
