//! Makes the passes one after another, until two in a row change nothing, an earlier text comes back, or all are made.

use serde_json::{Value, json};

use super::reply::{self, Reply};
use super::{Answerer, Before, Change, DraftReport, Event, PASSES, Preview, State, Why};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::with;
use crate::store::prompt::{self, Rendered};
use crate::text::diff;

/// The focus of each pass, in order.
pub const FOCI: [&str; 5] = ["completeness", "correctness", "edge cases", "scope", "clarity"];

/// The focus of later passes.
const TOGETHER: &str = "everything together";

/// The maximum number of tries of a pass whose answers come too late.
const TIMES: u32 = 2;

/// The maximum number of tries of a pass whose answers are empty or cannot be used.
const TIMES_EMPTY: u32 = 3;

/// The maximum number of seconds that one pass waits in total for an agent's usage limits to end.
const MAX_LIMIT_WAIT: u64 = 15 * 60;

/// After this many passes in a row without a change, the draft has converged.
const ENOUGH: u32 = 2;

/// The focus of a pass; passes are counted from 1.
pub fn focus(pass: u32) -> &'static str {
    let nth = usize::try_from(pass).unwrap_or(0).wrapping_sub(1);
    FOCI.get(nth).copied().unwrap_or(TOGETHER)
}

/// The maximum number of passes: the requested number, else one pass for each focus and one more that reviews
/// everything together.
pub(super) fn at_most(asked_for: Option<u32>) -> u32 {
    asked_for.unwrap_or(PASSES + 1)
}

/// What the passes work on.
pub(super) trait Work {
    /// The first pass that is left to make.
    fn first(&self) -> u32;
    fn passes(&self) -> u32;
    fn text(&self) -> Option<String>;
    fn prompt(&self, pass: u32) -> &'static str;
    /// The values for the prompt, in addition to those that the prompt of every pass gets.
    fn values(&self) -> Value;
    /// Brings an answer into the form that is stored, or says why it cannot be used.
    fn accepted(&self, context: &Context, answer: &str) -> Result<String, String>;
    /// Replaces the previous text with this one and returns its path. Returns none if the previous text was edited.
    fn keep(
        &mut self,
        context: &Context,
        pass: u32,
        text: &str,
        is_last: bool,
    ) -> Result<Option<String>, Error>;
    /// Puts the text in a file next to the edited one; returns its path.
    fn put_beside(&mut self, context: &Context, pass: u32, text: &str) -> Result<String, Error>;
    /// The notices to report before the first pass.
    fn notes(&self) -> Vec<String>;
    fn report(&mut self, context: &Context, state: State, pass: u32) -> Result<DraftReport, Error>;
    fn place(&self, context: &Context) -> (String, String);
}

pub(super) fn preview(context: &Context, work: &dyn Work) -> Result<Preview, Error> {
    let Rendered { text, mut notes } = rendered(context, work, work.first(), work.text().as_deref())?;
    notes.splice(0..0, work.notes());
    let (plan, path) = work.place(context);
    let passes = (work.first()..=work.passes()).map(|it| (it, focus(it))).collect();
    Ok(Preview { plan, path, passes, prompt: text, notes })
}

fn rendered(context: &Context, work: &dyn Work, pass: u32, text: Option<&str>) -> Result<Rendered, Error> {
    let is = |it: &str| focus(pass) == it || focus(pass) == TOGETHER;
    let values = json!({
        "pass_number": pass,
        "passes": work.passes(),
        "is_first_pass": pass == 1,
        "focus_area": focus(pass),
        "focus_completeness": is("completeness"),
        "focus_correctness": is("correctness"),
        "focus_edge_cases": is("edge cases"),
        "focus_scope": is("scope"),
        "focus_clarity": is("clarity"),
        "previous_output": text.unwrap_or_default(),
    });
    prompt::render(context, work.prompt(pass), &with(&work.values(), values))
}

pub(super) fn run(
    context: &Context,
    work: &mut dyn Work,
    answerer: &mut dyn Answerer,
    tell: &mut dyn FnMut(&Event),
    before: &Before,
) -> Result<DraftReport, Error> {
    let mut notes = Vec::new();
    report_new_notes(&mut notes, work.notes(), tell);
    let passes = work.passes();
    let mut text = work.text();
    let mut left: Vec<String> = Vec::new();
    let mut n_unchanged = before.n_unchanged;
    for pass in work.first()..=passes {
        let Rendered { text: prompt, notes: of_prompt } = rendered(context, work, pass, text.as_deref())?;
        report_new_notes(&mut notes, of_prompt, tell);
        tell(&Event::Asking { pass, passes, focus: focus(pass) });
        let answer = match answer(context, work, (pass, &prompt), text.as_deref(), answerer, tell) {
            Ok(answer) => answer,
            Err(why) => return work.report(context, State::Incomplete { why }, pass - 1),
        };
        let (answer, change) = match &text {
            None => (answer, Change::Made),
            Some(text) if is_same(text, &answer) => (text.clone(), Change::Unchanged),
            Some(_) if left.iter().any(|it| is_same(it, &answer)) || before.left.contains(&mark(&answer)) => {
                (answer, Change::CameBack)
            }
            Some(_) => (answer, Change::Changed),
        };
        n_unchanged = if change == Change::Unchanged { n_unchanged + 1 } else { 0 };
        let state = match change {
            Change::CameBack => Some(State::Oscillates),
            _ if n_unchanged >= ENOUGH => Some(State::Converged),
            _ if pass == passes => Some(State::Finished),
            _ => None,
        };
        let Some(path) = work.keep(context, pass, &answer, state.is_some())? else {
            let is_new = change != Change::Unchanged;
            let beside = if is_new { Some(work.put_beside(context, pass, &answer)?) } else { None };
            return work.report(context, State::Edited { beside }, pass - 1);
        };
        let before = text.as_ref().map(|it| format!("{it}\n"));
        let diff = diff::unified(
            &path,
            before.as_deref().map(str::as_bytes),
            Some(format!("{answer}\n").as_bytes()),
        );
        let (added, removed) = stat(&diff);
        tell(&Event::Pass { pass, passes, focus: focus(pass), change, added, removed, diff });
        left.extend(text.replace(answer));
        if let Some(state) = state {
            return work.report(context, state, pass);
        }
    }
    work.report(context, State::Finished, passes)
}

/// A short hash of a text, for callers that cannot store whole texts. Blanks at the ends of lines do not matter.
pub(super) fn mark(text: &str) -> String {
    let lines = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    blake3::hash(lines.as_bytes()).to_hex()[..16].to_owned()
}

/// Blanks at the ends of lines do not count as a change, because agents drop and add them.
fn is_same(one: &str, other: &str) -> bool {
    one.lines().map(str::trim_end).eq(other.lines().map(str::trim_end))
}

fn report_new_notes(reported: &mut Vec<String>, notes: Vec<String>, tell: &mut dyn FnMut(&Event)) {
    for note in notes {
        if !reported.contains(&note) {
            tell(&Event::Note { text: note.clone() });
            reported.push(note);
        }
    }
}

/// The numbers of added and removed lines of a diff, without its header.
fn stat(diff: &str) -> (usize, usize) {
    let lines = || diff.lines().skip_while(|it| !it.starts_with("@@"));
    (lines().filter(|it| it.starts_with('+')).count(), lines().filter(|it| it.starts_with('-')).count())
}

/// Asks until there is an answer, up to the limits of time and tries.
fn answer(
    context: &Context,
    work: &dyn Work,
    (pass, prompt): (u32, &str),
    text: Option<&str>,
    answerer: &mut dyn Answerer,
    tell: &mut dyn FnMut(&Event),
) -> Result<String, Why> {
    let (mut n_late, mut n_empty, mut waited) = (0, 0, 0);
    loop {
        let asked = answerer.ask(prompt);
        let reply = match (reply::read_reply(&asked), text) {
            (Reply::Converged, None) => reply::below_converged(&asked.stdout),
            (reply, _) => reply,
        };
        let why = match reply {
            Reply::Interrupted => return Err(Why::Interrupted),
            Reply::Failed(why) => return Err(Why::Failed(why)),
            Reply::Converged => return Ok(text.unwrap_or_default().to_owned()),
            Reply::Text(text) => match work.accepted(context, &text) {
                Ok(answer) => return Ok(answer),
                Err(why) if n_empty + 1 >= TIMES_EMPTY => return Err(Why::Failed(why)),
                Err(why) => {
                    n_empty += 1;
                    why
                }
            },
            Reply::Nothing => {
                n_empty += 1;
                if n_empty >= TIMES_EMPTY {
                    return Err(Why::Nothing);
                }
                "the agent gave an empty answer".to_owned()
            }
            Reply::TimedOut => {
                n_late += 1;
                if n_late >= TIMES {
                    return Err(Why::TimedOut);
                }
                "the agent took too long".to_owned()
            }
            Reply::Limited(seconds) => {
                waited += seconds;
                if waited > MAX_LIMIT_WAIT {
                    return Err(Why::Limited { seconds });
                }
                tell(&Event::Waiting { pass, seconds });
                if answerer.wait(seconds) == super::Waited::Interrupted {
                    return Err(Why::Interrupted);
                }
                continue;
            }
        };
        tell(&Event::Again { pass, why });
    }
}
