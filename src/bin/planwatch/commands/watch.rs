//! `watch`: a line for each change, until somebody stops it or nobody reads it any more.

use std::ops::ControlFlow;

use planwatch::engine::error::Error;
use planwatch::serve::changes::{Event, What};
use planwatch::serve::watch::{self, Listener};

use serde_json::json;

use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::{Output, Reader, escaped};
use crate::screens::{BOLD, DIM, colour, count, mark};
use crate::table::paint;

pub(crate) fn run(session: &Session) -> Result<u8, Failure> {
    session.output.check_fields(&fields::EVENT)?;
    let workspace = session.workspace()?;
    let plans = workspace.plans_dir.clone().ok_or(Error::NoPlansDir)?;
    let mut teller = Teller { output: &session.output, failure: None };
    watch::watch(&|| session.look(&workspace, &plans), &mut teller)?;
    teller.failure.map_or(Ok(0), Err)
}

struct Teller<'a> {
    output: &'a Output,
    failure: Option<Failure>,
}

impl Teller<'_> {
    fn go_on(&mut self, told: Result<Reader, Failure>) -> ControlFlow<()> {
        match told {
            Ok(Reader::There) => ControlFlow::Continue(()),
            Ok(Reader::Gone) => ControlFlow::Break(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}

impl Listener for Teller<'_> {
    fn ready(&mut self, plans: usize, steps: usize) -> ControlFlow<()> {
        if self.output.is_json() {
            let told = self.output.json("ready", json!({"plans_total": plans, "steps_total": steps}));
            return self.go_on(told);
        }
        self.output.aside_line(&format!(
            "watching {} with {}; Ctrl-C ends it",
            count(plans, "plan"),
            count(steps, "step")
        ));
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: &Event) -> ControlFlow<()> {
        let told = if self.output.is_json() {
            self.output.json("event", event.to_json())
        } else {
            self.output.text(&line(event))
        };
        self.go_on(told)
    }

    fn polling(&mut self, why: &str) {
        self.output.aside_line(&format!("looking every two seconds: {why}"));
    }
}

fn line(event: &Event) -> String {
    let at = event.at.to_string();
    let time = at.get(11..19).unwrap_or(&at);
    let word = |status: &str| paint(colour(status), &escaped(status));
    let (status, said) = match &event.what {
        What::Status { old, new } => (new.as_str(), format!("{} → {}", escaped(old), word(new))),
        What::Added { status } => (status.as_str(), format!("added, {}", word(status))),
        What::Removed { .. } => ("", "removed".to_owned()),
        What::Attempt(attempt) => {
            let outcome = attempt.outcome.as_deref().unwrap_or("attempt");
            let notes = attempt.notes.as_deref().and_then(|it| it.lines().next()).unwrap_or_default();
            let by = attempt.by.as_deref().map(|it| format!(" by {it}")).unwrap_or_default();
            let notes = if notes.is_empty() { String::new() } else { format!(": {notes}") };
            (outcome, escaped(&format!("attempt {outcome}{by}{notes}")).into_owned())
        }
    };
    let mark = match (&event.what, event.is_plan) {
        (What::Attempt(_), _) => '+',
        (_, true) => '▪',
        (What::Removed { .. }, _) => '-',
        _ => mark(status),
    };
    let mark = paint(colour(status), &mark.to_string());
    format!(
        "{} {mark} {} {}  {said}\n",
        paint(DIM, time),
        paint(BOLD, &escaped(&event.id)),
        escaped(&event.title)
    )
}
