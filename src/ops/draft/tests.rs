use std::collections::VecDeque;

use serde_json::{Value, json};

use super::passes::{self, Work, at_most};
use super::*;
use crate::disk::model::Machine;

/// Gives prepared answers, and records how often it was asked and how long it waited.
#[derive(Default)]
struct Script {
    answers: VecDeque<AgentOutput>,
    waits: Vec<u64>,
    n_asked: usize,
}

impl Answerer for Script {
    fn ask(&mut self, _prompt: &str) -> AgentOutput {
        self.n_asked += 1;
        self.answers.pop_front().expect("an answer is left")
    }

    fn wait(&mut self, seconds: u64) -> Waited {
        self.waits.push(seconds);
        Waited::ToTheEnd
    }
}

/// A text in memory; `edited_at` is the pass that finds it edited.
struct Memory {
    text: Option<String>,
    first: u32,
    passes: u32,
    edited_at: Option<u32>,
    kept: Vec<(u32, String, bool)>,
}

impl Work for Memory {
    fn first(&self) -> u32 {
        self.first
    }

    fn passes(&self) -> u32 {
        self.passes
    }

    fn text(&self) -> Option<String> {
        self.text.clone()
    }

    fn prompt(&self, pass: u32) -> &'static str {
        if pass == 1 { "draft-requirements" } else { "draft-review" }
    }

    fn values(&self) -> Value {
        json!({})
    }

    fn accepted(&self, _: &Context, answer: &str) -> Result<String, String> {
        if answer == "chat" { Err("it is chat".to_owned()) } else { Ok(answer.to_owned()) }
    }

    fn keep(&mut self, _: &Context, pass: u32, text: &str, is_last: bool) -> Result<Option<String>, Error> {
        if self.edited_at == Some(pass) {
            return Ok(None);
        }
        self.kept.push((pass, text.to_owned(), is_last));
        Ok(Some("plans/a/plan.md".to_owned()))
    }

    fn put_beside(&mut self, _: &Context, pass: u32, text: &str) -> Result<String, Error> {
        Ok(format!("{pass}: {text}"))
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn report(&mut self, _: &Context, state: State, pass: u32) -> Result<DraftReport, Error> {
        let passes = self.passes;
        Ok(DraftReport { state, plan: None, path: None, pass, passes, kept: None, steps: None })
    }

    fn place(&self, _: &Context) -> (String, String) {
        (String::new(), String::new())
    }
}

/// The output of an agent that answers with this text. The texts `@late`, `@limit 20`, `@exit 3` and `@stop` stand for
/// agents that end without an answer.
fn asked(text: &str) -> AgentOutput {
    let of = |end: End, stderr: &str| AgentOutput { end, stdout: String::new(), stderr: stderr.to_owned() };
    match text.split_once(' ').unwrap_or((text, "")) {
        ("@late", _) => of(End::TimedOut, ""),
        ("@limit", seconds) => of(End::Exited(1), &format!("rate limit, retry after {seconds}s")),
        ("@exit", code) => of(End::Exited(code.parse().expect("a code")), "why"),
        ("@stop", _) => of(End::Interrupted, ""),
        _ => AgentOutput { end: End::Exited(0), stdout: text.to_owned(), stderr: String::new() },
    }
}

struct Ran {
    state: State,
    pass: u32,
    kept: Vec<(u32, String, bool)>,
    waits: Vec<u64>,
}

#[track_caller]
fn run_with(answers: &[&str], of: impl FnOnce(&mut Memory)) -> Ran {
    let mut work = Memory { text: None, first: 1, passes: at_most(None), edited_at: None, kept: Vec::new() };
    of(&mut work);
    let mut script = Script { answers: answers.iter().map(|it| asked(it)).collect(), ..Script::default() };
    let context = Context::on_model(&Machine::with(&[("/plans/p/plan.md", "# P\n")]));
    let report =
        passes::run(&context, &mut work, &mut script, &mut |_| {}, &Before::default()).expect("it runs");
    assert_eq!(script.n_asked, answers.len(), "{report:?}");
    Ran { state: report.state, pass: report.pass, kept: work.kept, waits: script.waits }
}

#[track_caller]
fn check(answers: &[&str], state: &State, pass: u32) -> Ran {
    let ran = run_with(answers, |_| {});
    assert_eq!((&ran.state, ran.pass), (state, pass), "{answers:?}");
    ran
}

fn incomplete(why: Why) -> State {
    State::Incomplete { why }
}

#[test]
fn as_many_passes_are_made_as_were_asked_for() {
    assert_eq!([None, Some(1), Some(4), Some(5), Some(9)].map(at_most), [6, 1, 4, 5, 9]);
}

#[test]
fn two_unchanged_passes_in_a_row_are_enough() {
    let ran = check(&["a", "b", "CONVERGED", "b"], &State::Converged, 4);
    assert_eq!(ran.kept.last(), Some(&(4, "b".to_owned(), true)));
    assert!(ran.kept.iter().rev().skip(1).all(|(_, _, is_last)| !is_last));
    check(&["a", "a", "a"], &State::Converged, 3);
    check(&["a", "CONVERGED", "b", "CONVERGED", "CONVERGED"], &State::Converged, 5);
}

#[test]
fn blanks_at_the_ends_of_lines_stay_as_they_were() {
    let ran = check(&["a  \nb", "a\nb ", "a\nb"], &State::Converged, 3);
    assert!(ran.kept.iter().all(|(_, text, _)| text == "a  \nb"), "{:?}", ran.kept);
}

#[test]
fn a_text_that_still_changes_is_reviewed_once_more_as_a_whole() {
    check(&["a", "b", "c", "d", "e", "f"], &State::Finished, 6);
    assert_eq!((focus(5), focus(6), focus(7)), ("clarity", "everything together", "everything together"));
    let two = run_with(&["a", "b"], |it| it.passes = at_most(Some(2)));
    assert_eq!((two.state, two.pass), (State::Finished, 2));
}

#[test]
fn a_text_that_comes_back_ends_it() {
    let ran = check(&["a", "b", "c", "a"], &State::Oscillates, 4);
    assert_eq!(ran.kept.last(), Some(&(4, "a".to_owned(), true)));
    check(&["a", "b", "a"], &State::Oscillates, 3);
}

#[test]
fn each_way_of_not_answering_has_its_patience() {
    check(&["a", "@late", "a", "a"], &State::Converged, 3);
    check(&["a", "@late", "@late"], &incomplete(Why::TimedOut), 1);
    check(&["", "", "a", "a", "a"], &State::Converged, 3);
    check(&["a", "", "", ""], &incomplete(Why::Nothing), 1);
    check(&["a", "chat", "", "a", "a"], &State::Converged, 3);
    check(&["chat", "chat", "chat"], &incomplete(Why::Failed("it is chat".to_owned())), 0);
    check(&["a", "@stop"], &incomplete(Why::Interrupted), 1);
    let why = "the agent ended with exit code 3: why".to_owned();
    check(&["a", "@exit 3"], &incomplete(Why::Failed(why)), 1);
    // The limits hold for each pass separately.
    check(&["", "", "a", "", "", "b", "@late", "b", "@late", "b"], &State::Converged, 4);
}

#[test]
fn a_limit_is_waited_for_but_not_for_ever() {
    let ran = check(&["@limit 20", "@limit 30", "a", "a", "a"], &State::Converged, 3);
    assert_eq!(ran.waits, [20, 30]);
    let ran = check(&["a", "@limit 600", "@limit 600"], &incomplete(Why::Limited { seconds: 600 }), 1);
    assert_eq!(ran.waits, [600]);
    check(&["@limit 7200"], &incomplete(Why::Limited { seconds: 7200 }), 0);
}

#[test]
fn an_edited_draft_is_not_overwritten() {
    let edited = |answers: &[&str]| run_with(answers, |it| it.edited_at = Some(2));
    let ran = edited(&["a", "b"]);
    assert_eq!((ran.state, ran.pass), (State::Edited { beside: Some("2: b".to_owned()) }, 1));
    assert_eq!(edited(&["a", "CONVERGED"]).state, State::Edited { beside: None });
}

#[test]
fn going_on_begins_behind_the_last_pass() {
    let ran =
        run_with(&["b", "CONVERGED", "CONVERGED"], |it| (it.text, it.first) = (Some("a".to_owned()), 4));
    assert_eq!((ran.state, ran.pass, ran.kept[0].0), (State::Converged, 6, 4));
}

#[test]
fn text_below_converged_is_the_first_text() {
    let ran = check(&["CONVERGED\na", "a", "a"], &State::Converged, 3);
    assert_eq!(ran.kept[0].1, "a");
}

#[test]
fn without_an_answer_there_is_nothing_to_copy() {
    let hint = |beside: Option<&str>| {
        let state = State::Edited { beside: beside.map(str::to_owned) };
        let plan = Some("p".to_owned());
        let report = DraftReport { state, plan, path: None, pass: 1, passes: 6, kept: None, steps: None };
        report.error().and_then(|it| it.hint()).unwrap()
    };
    assert_eq!(hint(None), "`planwatch draft p --continue` continues");
    assert!(hint(Some("plans/p/answer.md")).starts_with("copy what you need from it"));
}
