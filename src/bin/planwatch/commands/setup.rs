//! `completions` and `man`, made from the same definition as the command line itself; `instructions`.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};
use planwatch::engine::instructions as texts;

use crate::args;
use crate::args::setup::{Completions, Instructions, Man};
use crate::completing;
use crate::context::Session;
use crate::failure::{self, Failure};

pub(crate) fn completions(session: &Session, args: &Completions) -> Result<u8, Failure> {
    session.output.bytes(&completing::script(args.shell)?)?;
    Ok(0)
}

pub(crate) fn instructions(session: &Session, args: &Instructions) -> Result<u8, Failure> {
    let found = texts::instructions(args.topic.as_deref())?;
    if session.output.is_json() {
        session.output.json("instructions", found.to_json())?;
    } else {
        session.output.long(found.text)?;
    }
    Ok(0)
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

/// One manual page; clap's own ends in a section without a name and in a footer that names no program.
fn page(name: &str, of: &Command) -> io::Result<Vec<u8>> {
    let source = concat!("planwatch ", env!("CARGO_PKG_VERSION"));
    // An empty date would be left out, and what follows it taken for it.
    let page = Page::new(of.clone()).title(name).date(" ").source(source).manual("planwatch");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if of.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
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
    more.to_writer(&mut text)?;
    Ok(text)
}

/// The examples of a verb's help are its indented lines; what else it says follows them.
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
}
