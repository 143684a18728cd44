//! `completions`, `man` and `instructions`. The manual pages are generated from the definition of the command line.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use planwatch::api::instructions as texts;

use crate::args;
use crate::args::setup::{Completions, Instructions, Man};
use crate::completing;
use crate::context::Session;
use crate::failure::{self, Failure};
use crate::help;

pub(crate) fn completions(session: &Session, args: &Completions) -> Result<u8, Failure> {
    session.output.bytes(&completing::script(args.shell)?)?;
    Ok(0)
}

pub(crate) fn instructions(session: &Session, args: &Instructions) -> Result<u8, Failure> {
    let found = texts::instructions(args.topic.as_deref())?;
    session.answer("instructions", || found.to_json(), |_| found.text.to_owned())
}

pub(crate) fn man(session: &Session, args: &Man) -> Result<u8, Failure> {
    let directory = &args.into;
    let written = std::fs::create_dir_all(directory).and_then(|()| write_pages(directory));
    written.map_err(|error| {
        let why = failure::system(&error);
        Failure::failed("io-error", format!("`{}` cannot be written: {why}", directory.display()))
    })?;
    session.output.hint(&format!("man -l {}", directory.join("planwatch.1").display()));
    Ok(0)
}

fn write_pages(directory: &Path) -> io::Result<()> {
    let mut command = args::visible_command();
    command.build();
    let verbs = command.get_subcommands().map(|it| (format!("planwatch-{}", it.get_name()), it));
    for (name, of) in verbs.chain([("planwatch".to_owned(), &command)]) {
        let mut file = File::create(directory.join(format!("{name}.1")))?;
        file.write_all(&page(&name, of)?)?;
    }
    Ok(())
}

/// One manual page, built from single sections. The complete page that clap_mangen makes has a section without a name and
/// a footer that names no program.
fn page(name: &str, of: &Command) -> io::Result<Vec<u8>> {
    let source = concat!("planwatch ", env!("CARGO_PKG_VERSION"));
    // An empty date would be left out, and the next argument would be taken for the date.
    let page = Page::new(of.clone()).title(name).date(" ").source(source).manual("planwatch");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopses(of).to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if of.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    verbs_below(of).to_writer(&mut text)?;
    let help = of.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, notes) = examples_and_notes(&help);
    let mut more = Roff::new();
    if !examples.is_empty() {
        more.control("SH", ["EXAMPLES"]).control("nf", []);
        for it in examples {
            more.text([roman(it)]);
        }
        more.control("fi", []);
    }
    if !notes.is_empty() {
        more.control("SH", ["NOTES"]);
        for it in notes {
            more.text([roman(it)]);
        }
    }
    if of.get_name() == "planwatch" {
        exit_codes(&mut more);
    }
    more.to_writer(&mut text)?;
    Ok(text)
}

/// The synopsis, with a line for each subcommand. The synopsis of clap_mangen does not name the values of options.
fn synopses(of: &Command) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    if of.get_name() == "planwatch" {
        section.text([bold("planwatch"), roman(" [OPTION]... "), italic("VERB"), roman(" ...")]);
        return section;
    }
    let below = below(of);
    if below.is_empty() {
        section.text(synopsis(&format!("planwatch {}", of.get_name()), of));
    }
    for (nth, it) in below.iter().enumerate() {
        if nth > 0 {
            section.control("br", []);
        }
        section.text(synopsis(&format!("planwatch {} {}", of.get_name(), it.get_name()), it));
    }
    section
}

/// One line: the verb, its own options, `[OPTION]...` for the options of every verb, and the verb's arguments.
fn synopsis(name: &str, of: &Command) -> Vec<Inline> {
    let mut line = vec![bold(name)];
    let is_own = |it: &&Arg| !it.is_positional() && !it.is_global_set() && !it.is_hide_set();
    let own = of.get_arguments().filter(is_own).filter(|it| it.get_id() != "help");
    for it in own {
        let name = it.get_long().map_or_else(
            || it.get_short().map(|it| format!("-{it}")).unwrap_or_default(),
            |it| format!("--{it}"),
        );
        let takes = it.get_action().takes_values();
        let is_optional = it.get_num_args().is_some_and(|it| it.min_values() == 0);
        let value = match (takes, is_optional) {
            (false, _) => String::new(),
            (true, false) => format!(" {}", value_name(it)),
            (true, true) if it.is_require_equals_set() => format!("[={}]", value_name(it)),
            (true, true) => format!(" [{}]", value_name(it)),
        };
        line.extend(bracketed(it, vec![bold(name), italic(value)]));
    }
    line.push(roman(" [OPTION]..."));
    for it in of.get_positionals() {
        line.extend(bracketed(it, vec![italic(value_name(it))]));
    }
    line
}

/// Adds square brackets around an optional argument, and dots after an argument that can be repeated.
fn bracketed(it: &Arg, what: Vec<Inline>) -> Vec<Inline> {
    let (open, close) = if it.is_required_set() { (" ", "") } else { (" [", "]") };
    let is_many = matches!(it.get_action(), clap::ArgAction::Append);
    let end = format!("{close}{}", if is_many { "..." } else { "" });
    std::iter::once(roman(open)).chain(what).chain([roman(end)]).collect()
}

fn value_name(it: &Arg) -> String {
    let named = it.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    named.unwrap_or_else(|| it.get_id().to_string().to_uppercase())
}

/// The subcommands of a verb, such as those of `script`.
fn below(of: &Command) -> Vec<Command> {
    let whole = args::whole_command();
    let verb = whole.find_subcommand(of.get_name());
    verb.map(|it| it.get_subcommands().filter(|it| !it.is_hide_set()).cloned().collect()).unwrap_or_default()
}

/// What each subcommand of a verb does, with its options.
fn verbs_below(of: &Command) -> Roff {
    let mut section = Roff::new();
    let below = if of.get_name() == "planwatch" { Vec::new() } else { below(of) };
    if below.is_empty() {
        return section;
    }
    section.control("SH", ["COMMANDS"]);
    let help = |it: Option<&StyledStr>| it.map(ToString::to_string).unwrap_or_default();
    for it in below {
        section.control("TP", []).text(synopsis(it.get_name(), &it));
        section.text([roman(help(it.get_about()))]);
        for option in it.get_arguments().filter(|it| !it.is_hide_set() && it.get_id() != "help") {
            let name = option.get_long().map_or_else(|| value_name(option), |it| format!("--{it}"));
            section.control("br", []).text([italic(name), roman(format!(": {}", help(option.get_help())))]);
        }
    }
    section
}

/// The table of `help exit-codes`.
fn exit_codes(page: &mut Roff) {
    page.control("SH", ["EXIT STATUS"]);
    let table = help::topic("exit-codes").unwrap_or_default();
    for line in table.lines() {
        if let Some((code, what)) = line.trim_start().split_once("  ").filter(|_| line.starts_with(' ')) {
            page.control("TP", []).text([bold(code)]).text([roman(what.trim_start())]);
        }
    }
}

/// Splits the text after a verb's help: indented lines are examples, the others are notes.
fn examples_and_notes(help: &str) -> (Vec<&str>, Vec<&str>) {
    let lines = help.lines().filter(|it| !it.trim().is_empty() && !it.starts_with("Example"));
    let (examples, notes): (Vec<_>, Vec<_>) = lines.partition(|it| it.starts_with("  "));
    (examples.into_iter().map(str::trim_start).collect(), notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(name: &str) -> String {
        let mut command = args::visible_command();
        command.build();
        let verb = command.find_subcommand(name).unwrap();
        String::from_utf8(page(&format!("planwatch-{name}"), verb).unwrap()).unwrap()
    }

    #[test]
    fn a_page_has_a_footer_descriptions_and_examples() {
        let page = page_of("next");
        let title =
            format!(".TH planwatch-next 1 \" \" \"planwatch {}\" planwatch\n", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&title), "{page}");
        assert!(page.contains("Run as if started in DIR"), "{page}");
        assert!(page.contains(".SH EXAMPLES\n.nf\nplanwatch next\n"), "{page}");
        assert!(page.contains(".SH NOTES\nExit code 7"), "{page}");
        assert!(!page.contains("no\\-index") && !page.contains("EXTRA"), "{page}");
    }

    #[test]
    fn a_synopsis_names_values_and_the_verbs_below() {
        let line = |name: &str| {
            let page = page_of(name);
            let (_, behind) = page.split_once(".SH SYNOPSIS\n").unwrap();
            let text = behind.split(".SH").next().unwrap().replace("\\-", "-");
            ["\\fB", "\\fI", "\\fR"].iter().fold(text, |text, it| text.replace(it, ""))
        };
        let list = line("list");
        assert!(
            list.contains(
                "planwatch list [--status STATUS]... [--program PLAN] [--tag TAG] [--stale] [--archived]"
            ),
            "{list}"
        );
        assert!(list.contains("[OPTION]... [PLAN]"), "{list}");
        assert!(line("new").contains("TITLE [STEP]..."), "{}", line("new"));
        assert!(line("watch").contains("[--http [ADDR]]"), "{}", line("watch"));
        let script = line("script");
        assert!(
            script.contains("planwatch script run ") && script.contains("planwatch script add "),
            "{script}"
        );
    }

    #[test]
    fn the_first_page_has_the_exit_codes() {
        let mut command = args::visible_command();
        command.build();
        let page = String::from_utf8(page("planwatch", &command).unwrap()).unwrap();
        let (_, codes) = page.split_once(".SH \"EXIT STATUS\"").unwrap();
        assert!(codes.contains("\\fB8\\fR\n`watch`"), "{codes}");
    }
}
