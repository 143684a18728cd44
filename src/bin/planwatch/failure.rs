//! Errors as the command line prints them for people and as JSON, and the exit code.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use planwatch::api::error::Error;
use serde_json::{Value, json};

use anstyle::{AnsiColor, Style};

use crate::args;
use crate::output::{escaped_lines, hint_line};
use crate::screens::text::hanging;
use crate::table::paint;

const ERROR: Style = AnsiColor::Red.on_default().bold();

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Boxed, so that a `Result` with this error type stays small.
    pub(crate) details: Box<Value>,
    pub(crate) exit: u8,
}

impl Failure {
    /// The command line itself is wrong.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        let hint = (!hint.is_empty()).then_some(hint);
        Self { code: "usage", message: message.into(), hint, details: Box::new(json!({})), exit: 2 }
    }

    pub(crate) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: Box::new(json!({})), exit: 1 }
    }

    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub(crate) fn with_exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    pub(crate) fn of(error: &Error) -> Self {
        Self {
            code: error.code(),
            message: message(error),
            hint: error.hint(),
            details: Box::new(error.details()),
            exit: error.exit_code(),
        }
    }

    pub(crate) fn to_text(&self, width: Option<usize>) -> String {
        let head = paint(ERROR, &format!("error[{}]:", self.code));
        let hint = self.hint.as_deref().map(|it| hint_line(it, width)).unwrap_or_default();
        hanging(&format!("{head} {}\n", escaped_lines(&self.message)), width, 2) + &hint
    }

    pub(crate) fn to_json(&self) -> Value {
        let Self { code, message, hint, details, .. } = self;
        json!({"error": {"code": code, "message": message, "hint": hint, "details": details}})
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

/// The error's message, and after it the cause that the system reported, unless the message contains it.
fn message(error: &Error) -> String {
    let mut message = plain_system(&error.to_string());
    let source = std::error::Error::source(error);
    if let Some(said) =
        source.map(|it| system(it.source().unwrap_or(it))).filter(|it| !message.contains(it.as_str()))
    {
        message = format!("{message}: {said}");
    }
    message
}

/// A message without the error number that the standard library appends to messages of the system.
fn plain_system(message: &str) -> String {
    let Some((before, after)) = message.split_once(" (os error ") else { return message.to_owned() };
    format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest))
}

/// The system's message as a part of a sentence: without the error number, and with its first letter in lower case,
/// except in an abbreviation.
pub(crate) fn system(error: &dyn std::error::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error ").next().unwrap_or_default();
    let mut letters = said.chars();
    let first = letters.next().filter(|_| !letters.as_str().starts_with(char::is_uppercase));
    first.map_or_else(|| said.to_owned(), |it| it.to_lowercase().chain(letters).collect())
}

/// Turns clap's error about a wrong command line into the form of every other error.
pub(crate) fn of_command_line(error: &clap::Error) -> Failure {
    let named = |kind| error.get(kind).map(text).unwrap_or_default();
    let near = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let near = near.into_iter().find_map(|it| error.get(it)).map(nearest_of);
    let near = near.and_then(|it| args::visible(&it)).map(|it| format!("did you mean `{it}`?"));
    let (message, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let verb = named(ContextKind::InvalidSubcommand);
            let meant = args::meant_by(&verb).map(|it| format!("did you mean `{it}`?"));
            let near = meant.or(near);
            (
                format!("there is no verb `{verb}`"),
                near.unwrap_or_else(|| "`planwatch help --all` lists the verbs".to_owned()),
            )
        }
        ErrorKind::UnknownArgument => unknown_argument(&named(ContextKind::InvalidArg), near, error),
        ErrorKind::MissingRequiredArgument => {
            let missing = plain(&named(ContextKind::InvalidArg)).replace('|', " or ");
            let many = if missing.contains(", ") { "s" } else { "" };
            (format!("missing argument{many}: {missing}"), usage(error))
        }
        ErrorKind::InvalidValue => {
            let (value, option) = (named(ContextKind::InvalidValue), named(ContextKind::InvalidArg));
            let valid = error.get(ContextKind::ValidValue).map(text).unwrap_or_default();
            let message = if value.is_empty() {
                format!("{} needs a value", option_name(&option))
            } else {
                format!("invalid value `{value}` for {}", option_name(&option))
            };
            let known = if valid.is_empty() { usage(error) } else { format!("one of {valid}") };
            (message, near.map_or(known.clone(), |it| format!("{it} {known}")))
        }
        ErrorKind::ValueValidation => {
            let option = option_name(&named(ContextKind::InvalidArg));
            let hint = match option.as_str() {
                "--by" => "give a name, or leave --by out".to_owned(),
                "--budget" => "give an amount in US dollars above 0, as in --budget 2.50".to_owned(),
                _ => format!("{option} takes a whole number, as in {option} 7"),
            };
            (format!("invalid value `{}` for {option}", named(ContextKind::InvalidValue)), hint)
        }
        ErrorKind::ArgumentConflict => {
            let (one, other) = (named(ContextKind::InvalidArg), named(ContextKind::PriorArg));
            let message = if one == other || other.is_empty() {
                format!("{} is given twice", option_name(&one))
            } else {
                format!("{} and {} contradict each other", option_name(&one), option_name(&other))
            };
            (message, "use only one of them".to_owned())
        }
        _ => (first_line(error), usage(error)),
    };
    Failure::usage(message, hint)
}

fn unknown_argument(argument: &str, near: Option<String>, error: &clap::Error) -> (String, String) {
    if argument.starts_with('-') {
        let as_text = || {
            format!(
                "`planwatch {} --help` lists the options; a text that begins with `-` goes after `--`",
                verb_of(error)
            )
        };
        (format!("there is no option `{argument}`"), near.unwrap_or_else(as_text))
    } else {
        let quote = if usage(error).contains("TITLE") || usage(error).contains("TEXT") {
            "put a text of several words in quotes; "
        } else {
            ""
        };
        (
            format!("`{argument}` is one argument too many"),
            near.unwrap_or_else(|| format!("{quote}{}", usage(error))),
        )
    }
}

/// The verb in an error's usage line; `help` if it names none.
fn verb_of(error: &clap::Error) -> String {
    let usage = usage(error);
    let verb = usage.split_whitespace().nth(2).filter(|it| it.starts_with(|c: char| c.is_ascii_lowercase()));
    verb.unwrap_or("help").to_owned()
}

fn usage(error: &clap::Error) -> String {
    let usage = error.get(ContextKind::Usage).map(|it| it.to_string()).unwrap_or_default();
    let usage = usage.lines().next().unwrap_or_default().trim().replace("Usage: ", "usage: ");
    plain(&usage)
}

/// Removes the angle brackets that clap puts around names, and its `[OPTIONS]`; replaces `...` by `…`.
fn plain(text: &str) -> String {
    text.replace(['<', '>'], "").replace("...", "…").replace(" [OPTIONS]", "")
}

fn option_name(text: &str) -> String {
    let name = text.split([' ', '=']).next().unwrap_or_default();
    if name.starts_with('-') { name.trim_end_matches('[').to_owned() } else { plain(text) }
}

fn first_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let line = rendered.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).replace('\'', "`")
}

fn text(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(all) => all.join(", "),
        other => other.to_string(),
    }
}

/// The best of clap's suggestions, which is the last one.
fn nearest_of(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(all) => all.last().cloned().unwrap_or_default(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, message: &str, hint: &str) {
        let error = crate::args::command().try_get_matches_from(line.split(' ')).unwrap_err();
        let failure = of_command_line(&error);
        assert_eq!(
            (failure.message.as_str(), failure.hint.as_deref(), failure.exit),
            (message, Some(hint), 2),
            "{line}"
        );
    }

    #[test]
    fn a_wrong_command_line_names_what_was_meant() {
        check("planwatch lsit", "there is no verb `lsit`", "did you mean `list`?");
        check("planwatch xyzzy", "there is no verb `xyzzy`", "`planwatch help --all` lists the verbs");
        check("planwatch list --stat pending", "there is no option `--stat`", "did you mean `--status`?");
        check("planwatch new", "missing argument: TITLE", "usage: planwatch new TITLE [STEP]…");
        check(
            "planwatch move a:1",
            "missing argument: --after N or --before N or --to NEW",
            "usage: planwatch move --after N|--before N|--to NEW ID",
        );
        check(
            "planwatch list --color pink",
            "invalid value `pink` for --color",
            "one of auto, always, never",
        );
        check(
            "planwatch list --xyzzy",
            "there is no option `--xyzzy`",
            "`planwatch list --help` lists the options; a text that begins with `-` goes after `--`",
        );
        check("planwatch steps-x", "there is no verb `steps-x`", "did you mean `list`?");
        check("planwatch complet", "there is no verb `complet`", "did you mean `done`?");
        check("planwatch create", "there is no verb `create`", "did you mean `new`?");
        check("planwatch Finish", "there is no verb `Finish`", "did you mean `done`?");
        check("planwatch statsu", "there is no verb `statsu`", "did you mean `stats`?");
        check(
            "planwatch status --days x",
            "invalid value `x` for --days",
            "--days takes a whole number, as in --days 7",
        );
        check(
            "planwatch search a --limit -1",
            "invalid value `-1` for --limit",
            "--limit takes a whole number, as in --limit 7",
        );
        check("planwatch show a b", "`b` is one argument too many", "usage: planwatch show ID");
    }

    #[test]
    fn the_numbers_of_a_system_are_not_shown() {
        let error = std::io::Error::from_raw_os_error(2);
        assert!(error.to_string().ends_with("(os error 2)"));
        assert_eq!(system(&error), "no such file or directory");
        assert_eq!(plain_system("`a`: No such file (os error 2); so"), "`a`: No such file; so");
    }

    #[test]
    fn an_error_is_one_object_for_machines() {
        let failure = Failure::usage("no", "yes");
        assert_eq!(
            failure.to_json(),
            json!({"error": {"code": "usage", "message": "no", "hint": "yes", "details": {}}})
        );
    }
}
