//! The help screens: the first screen, the whole help, and the topics. The first two are made from the definition of the
//! command line.

mod topics;

use anstyle::Style;
use clap::builder::StyledStr;
use clap::{Arg, Command};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

use crate::screens::{BOLD, DIM};
use crate::table::paint;

pub(crate) use topics::{names, topic};

pub(crate) const GROUPS: [(&str, &[&str]); 8] = [
    (
        "Look",
        &["status", "board", "list", "show", "stale", "stats", "next", "search", "log", "diff", "check"],
    ),
    (
        "Work",
        &[
            "claim", "release", "start", "done", "fail", "block", "skip", "reopen", "attempt", "note",
            "tick", "confirm",
        ],
    ),
    (
        "Write",
        &[
            "new",
            "add",
            "edit",
            "set",
            "move",
            "split",
            "squash",
            "replace",
            "steps-list",
            "remove",
            "archive",
            "undo",
            "import",
            "export",
        ],
    ),
    ("Know", &["decide", "insight", "script", "template"]),
    ("Git", &["git", "sync"]),
    ("Agents", &["run", "draft", "trust"]),
    ("Serve", &["watch", "browser", "token", "mcp", "lsp"]),
    ("Set up", &["init", "doctor", "sql", "completions", "man", "instructions", "help"]),
];

/// The verbs on the first screen.
const FIRST: [&str; 12] =
    ["status", "board", "list", "show", "next", "diff", "check", "claim", "done", "new", "add", "run"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbs {
    First,
    All,
}

/// The first help screen, which `planwatch help` and `planwatch --help` print.
pub(crate) fn first_screen(command: &Command) -> StyledStr {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n{}\n", verbs(command, Verbs::First));
    let more = [
        ("Begin", "planwatch new auth Schema Migrations Tests"),
        ("More", "planwatch help --all, planwatch help VERB, planwatch help ids"),
    ];
    for (name, what) in more {
        writeln!(text, "{}  {what}", paint(BOLD, &format!("{name:<5}"))).ok();
    }
    StyledStr::from(text)
}

/// All verbs, the options that every verb takes, and all topics.
pub(crate) fn whole_screen(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\nplanwatch [OPTIONS] VERB …\n{}", verbs(command, Verbs::All));
    write!(text, "\n{}\n{}", paint(BOLD, "Options of every verb"), options(command)).ok();
    write!(text, "\n{}\n", paint(BOLD, "Topics")).ok();
    for (name, about) in names() {
        writeln!(text, "  help {name:<11}  {}", paint(DIM, about)).ok();
    }
    text
}

fn verbs(command: &Command, which: Verbs) -> String {
    let verbs = |of: &[&'static str]| -> Vec<(String, String)> {
        let shown = of.iter().filter(|it| which == Verbs::All || FIRST.contains(*it));
        let found = shown.filter_map(|name| command.find_subcommand(name));
        found.map(|it| (synopsis(it), it.get_about().map(ToString::to_string).unwrap_or_default())).collect()
    };
    let groups: Vec<_> =
        GROUPS.iter().map(|(name, of)| (name, verbs(of))).filter(|(_, it)| !it.is_empty()).collect();
    let widest =
        groups.iter().flat_map(|(_, it)| it).map(|(synopsis, _)| synopsis.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, verbs) in groups {
        writeln!(text, "\n{}", paint(BOLD, name)).ok();
        for (synopsis, about) in verbs {
            let pad = " ".repeat(widest - synopsis.width());
            writeln!(text, "  {synopsis}{pad}  {}", paint(Style::new(), &about)).ok();
        }
    }
    text
}

/// A verb with its arguments and required options: `new TITLE [STEP…]`.
fn synopsis(verb: &Command) -> String {
    let place = |it: &Arg| {
        let name = it.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        let name = name.unwrap_or_else(|| it.get_id().to_string().to_uppercase());
        let many = if matches!(it.get_action(), clap::ArgAction::Append) { "…" } else { "" };
        if it.is_required_set() { format!(" {name}{many}") } else { format!(" [{name}{many}]") }
    };
    let named = |it: &Arg| {
        let value = it.get_value_names().and_then(|names| names.first()).map(|it| format!(" {it}"));
        format!(" --{}{}", it.get_long().unwrap_or_default(), value.unwrap_or_default())
    };
    let wanted = verb.get_arguments().filter(|it| it.is_required_set() && !it.is_positional());
    let places = verb.get_positionals().map(place).chain(wanted.map(named));
    format!("{}{}", verb.get_name(), places.collect::<String>())
}

/// The options that every verb takes.
fn options(command: &Command) -> String {
    let shown = command.get_arguments().filter(|it| !it.is_hide_set() && !it.is_positional());
    let line = |it: &Arg| {
        let short = it.get_short().map(|it| format!("-{it}"));
        let long = it.get_long().map(|it| format!("--{it}"));
        let takes = it.get_action().takes_values();
        let value = it.get_value_names().filter(|_| takes).and_then(|it| it.first()).map(ToString::to_string);
        let value = match (value, it.is_require_equals_set()) {
            (Some(value), true) => format!("[={value}]"),
            (Some(value), false) => format!(" {value}"),
            (None, _) => String::new(),
        };
        let names = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let help = it.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<_> = if takes { it.get_possible_values() } else { Vec::new() };
        let values = values.iter().map(|it| it.get_name().to_owned()).collect::<Vec<_>>().join(", ");
        let values = if values.is_empty() { values } else { format!(": {values}") };
        format!("  {:<18}  {help}{values}\n", format!("{names}{value}"))
    };
    shown.map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{args, typed};

    #[test]
    fn every_verb_is_in_one_group() {
        let command = args::command();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, of)| of.iter().copied()).collect();
        let known: BTreeSet<_> =
            command.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len());
    }

    #[test]
    fn every_verb_says_what_it_does_and_gives_an_example() {
        for verb in args::command().get_subcommands() {
            let name = verb.get_name();
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{name}: {about}");
            assert!(about.starts_with(char::is_uppercase), "{name}: {about}");
            let example = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(example.contains(&format!("planwatch {name}")) || name == "next", "{name}: {example}");
            for arg in verb.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty() && !help.ends_with('.'), "{name} {}: {help}", arg.get_id());
            }
        }
    }

    #[test]
    fn no_line_ends_within_a_paragraph() {
        for verb in args::command().get_subcommands() {
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_prose = |it: &str| !it.is_empty() && !it.starts_with(' ') && !it.starts_with("Example");
            for (line, next) in text.lines().zip(text.lines().skip(1)) {
                assert!(!is_prose(line) || !is_prose(next), "{}: {line}", verb.get_name());
            }
        }
    }

    #[test]
    fn examples_are_understood() {
        for verb in args::command().get_subcommands() {
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in
                text.lines().map(str::trim).filter(|it| it.starts_with("planwatch ") && !it.contains("$("))
            {
                // Pipes, redirections and the explanation after three spaces are not part of the command line.
                let ends = [" | ", " > ", " < ", "   "].iter().filter_map(|it| line.find(it));
                let line = &line[..ends.min().unwrap_or(line.len())];
                let words = shell_words::split(line).unwrap();
                let words: Vec<_> = words.into_iter().map(std::ffi::OsString::from).collect();
                let read = args::command().try_get_matches_from(typed::with_texts_marked(&words));
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
            }
        }
    }

    /// The command lines of a Markdown text: in code blocks, and in inline code.
    fn command_lines(text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut is_in_block = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("```") {
                is_in_block = !is_in_block;
            } else if is_in_block && line.starts_with("planwatch ") {
                lines.push(line.split("   ").next().unwrap_or_default().to_owned());
            } else if !is_in_block {
                let code = line.split('`').skip(1).step_by(2);
                lines.extend(code.filter(|it| it.starts_with("planwatch ")).map(str::to_owned));
            }
        }
        lines
    }

    #[test]
    fn instructions_name_only_existing_verbs_and_options() {
        use planwatch::api::instructions;
        use planwatch::ops::skills;
        use planwatch::store::prompt;
        let topics = instructions::topics().map(|it| instructions::instructions(Some(it)).unwrap().text);
        let plans = [None, Some("auth"), Some("it's mine")];
        let prompts = skills::ALL.iter().flat_map(|it| plans.map(|plan| it.prompt(plan).unwrap()));
        let prompts: Vec<_> = prompts.chain(prompt::sample_text("step")).collect();
        let texts = topics.chain(prompts.iter().map(String::as_str));
        let lines: Vec<_> = texts.flat_map(command_lines).collect();
        assert!(lines.len() > 150, "{lines:#?}");
        for line in lines {
            let words = shell_words::split(line.split(" # ").next().unwrap_or_default()).unwrap();
            let words: Vec<_> = words.into_iter().map(std::ffi::OsString::from).collect();
            let read = args::command().try_get_matches_from(typed::with_texts_marked(&words));
            assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
        }
    }

    #[test]
    fn the_first_screen_is_short() {
        let screen = first_screen(&args::command()).ansi().to_string();
        let screen = anstream::adapter::strip_str(&screen).to_string();
        assert!(screen.lines().count() <= 24, "{screen}");
        assert!(screen.lines().all(|it| it.width() <= 80), "{screen}");
    }
}
