//! `help`: the first screen, all of it, a verb, or a topic.

use planwatch::plan::words::nearest;

use crate::args;
use crate::args::setup::Help;
use crate::context::Session;
use crate::failure::Failure;
use crate::help;
use crate::screens::text::fitted;

pub(crate) fn run(session: &Session, args: &Help) -> Result<u8, Failure> {
    let text = match &args.topic {
        Some(topic) => about(topic)?,
        None if args.all => help::whole_screen(&args::command()),
        None => help::first_screen(&args::command()).ansi().to_string(),
    };
    session.output.long(&fitted(&text, session.output.width))?;
    Ok(0)
}

/// Help on a topic, else on a verb: `sql` is both, and its views are what its own help does not tell.
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
