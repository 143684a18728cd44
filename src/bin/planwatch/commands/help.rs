//! `help`: the first screen, the whole help, a verb, a verb of a verb, or a topic.

use planwatch::plan::words::nearest;

use crate::args;
use crate::args::setup::Help;
use crate::context::Session;
use crate::failure::Failure;
use crate::help;
use crate::screens::text::fitted;

pub(crate) fn run(session: &Session, args: &Help) -> Result<u8, Failure> {
    let text = match (&args.topic, &args.verb) {
        (Some(above), Some(verb)) => about_part(above, verb)?,
        (Some(topic), None) => about(topic)?,
        (None, _) if args.all => help::whole_screen(&args::command()),
        (None, _) => help::first_screen(&args::command()).ansi().to_string(),
    };
    session.output.long(&fitted(&text, session.output.width))?;
    Ok(0)
}

/// Help on a verb or a topic. For a name that is both, such as `sql`, both texts are printed. In this example, the topic
/// lists the views that the verb can query; the help of the verb does not.
fn about(topic: &str) -> Result<String, Failure> {
    let mut command = args::command();
    command.build();
    let verb = command.find_subcommand_mut(topic).map(|it| it.render_help().ansi().to_string());
    match (verb, help::topic(topic)) {
        (Some(verb), Some(topic)) => Ok(format!("{verb}\n{topic}")),
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) => {
            let verbs = command.get_subcommands().filter(|it| !it.is_hide_set());
            let verbs: Vec<_> = verbs.map(clap::Command::get_name).collect();
            let known = verbs.into_iter().chain(help::names().map(|(it, _)| it));
            let hint = nearest(topic, known).map(|it| format!("did you mean `{it}`?"));
            let hint = hint.unwrap_or_else(|| "`planwatch help --all` lists the verbs and topics".to_owned());
            Err(Failure::usage(format!("there is no help on `{topic}`"), hint))
        }
    }
}

/// Help on a verb of a verb, such as `git commit`.
fn about_part(above: &str, verb: &str) -> Result<String, Failure> {
    let mut command = args::command();
    command.build();
    let Some(parts) = command.find_subcommand_mut(above).filter(|it| it.has_subcommands()) else {
        about(above)?;
        let hint = format!("`planwatch help {above}` explains it");
        return Err(Failure::usage(format!("`{above}` has no verbs of its own"), hint));
    };
    match parts.find_subcommand_mut(verb) {
        Some(found) => Ok(found.render_help().ansi().to_string()),
        None => {
            let known: Vec<_> = parts.get_subcommands().map(clap::Command::get_name).collect();
            let near = nearest(verb, known.iter().copied());
            let hint = near.map_or_else(
                || format!("its verbs are {}", known.join(", ")),
                |it| format!("did you mean `{above} {it}`?"),
            );
            Err(Failure::usage(format!("there is no help on `{above} {verb}`"), hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_on_a_nested_verb_equals_its_help_option() {
        let whole = args::command();
        let mut count = 0;
        for above in whole.get_subcommands() {
            for verb in above.get_subcommands() {
                let words = ["planwatch", above.get_name(), verb.get_name(), "--help"];
                let printed = args::command().try_get_matches_from(words).unwrap_err();
                let text = about_part(above.get_name(), verb.get_name()).unwrap();
                assert_eq!(text, printed.render().ansi().to_string(), "{words:?}");
                count += 1;
            }
        }
        assert!(count >= 11, "{count}");
    }
}
