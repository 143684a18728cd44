//! `board`: a full-screen view of the plans in the terminal. It shows changes as they happen, and keys run the verbs.
//!
//! The board has no rules of its own. A key makes the same request as the verb on the command line. If the request is
//! refused, the board shows the error message of the operation. `model`, `prompt`, `questions` and `keys` are pure,
//! `view` draws the model, `event_loop` waits for messages, `engine` reads and writes on its own threads, `live` follows
//! the changes, `worker` runs an agent, and `terminal` sets up and restores the terminal.

mod engine;
mod event_loop;
mod keys;
mod live;
mod model;
mod prompt;
mod questions;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
mod worker;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use planwatch::api::context::Context;
use planwatch::ops::show::{self, ShowReport, ShowRequest};

use crate::args::look::Board as Arguments;
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::output;
use event_loop::{Board, End, Input};
use model::Model;

pub(crate) fn run(session: &Session, args: &Arguments) -> Result<u8, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() || session.output.is_json() {
        let hint = "`planwatch list` and `planwatch status` print without a terminal";
        return Err(Failure::usage("the board needs a terminal", hint));
    }
    let context = session.context()?;
    let plan = args.plan.as_deref().map(|id| plan_of(&context, id)).transpose()?;
    let plans = context.plans.root().to_path_buf();
    let (inbox, messages) = channel();
    let (inner, notices) = (session.contexts(&plans), inbox.clone());
    let contexts = Arc::new(move || Ok(quiet(inner()?, &notices)));
    let signals = event_loop::signals(inbox.clone());
    let failed = |error: std::io::Error| {
        terminal::leave();
        Failure::failed("terminal", format!("the terminal cannot be used: {error}"))
    };
    let terminal = terminal::take(inbox.clone()).map_err(failed)?;
    let model = Model::new(plan, context.by, context::now());
    let is_coloured = session.output.is_coloured();
    let end =
        Board { session, plans, contexts, model, terminal, inbox, messages, is_coloured, signals }.run();
    match end {
        // The terminal is gone: nothing may be written to it, not even by threads that are ending.
        End::Lost => std::process::exit(129),
        End::Quit => terminal::leave(),
        End::Signal(signal) => {
            terminal::leave();
            return Ok(u8::try_from(128 + signal).unwrap_or(1));
        }
        End::Panic => return Ok(101),
    }
    Ok(0)
}

/// The full id of the named plan, or of the named step's plan.
fn plan_of(context: &Context, id: &str) -> Result<String, Failure> {
    match show::show(context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() })? {
        ShowReport::Plan(it) => Ok(it.plan.id),
        ShowReport::Step(it) => Ok(it.step.plan),
        _ => Err(Failure::usage(format!("`{id}` is not a plan"), "`planwatch list` lists the plans")),
    }
}

/// A context that sends notices to the board as messages; on stderr they would disturb the screen.
fn quiet(context: Context, inbox: &Sender<Input>) -> Context {
    let inbox = inbox.clone();
    let on_notice = Box::new(move |notice| {
        let (_, least, text) = output::sentence(&notice);
        if least <= output::Loudness::Normal {
            inbox.send(Input::Notice(text)).ok();
        }
    });
    Context { on_notice, ..context }
}
