//! Prints a run: a line when an attempt begins, the output of its process, a line when it ends, and the progress of the
//! plan.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use planwatch::ops::run::{EndedStep, Event, Preview, RunReport, TreesReport};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{Output, escaped, escaped_lines};
use crate::screens::text::fitted;
use crate::screens::{BAD, BOLD, BUSY, DIM, GOOD, STUCK, bar, colour, count, own_title, to_type, typed};
use crate::table::paint;

/// Shared by all threads of a run, so that lines of different steps do not mix.
pub(super) struct Screen<'a> {
    output: &'a Output,
    /// Several steps run in parallel, so each line names its step.
    is_shared: bool,
    /// For each step, the unfinished last line of its process.
    open: Mutex<HashMap<String, Vec<u8>>>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(output: &'a Output, is_shared: bool) -> Self {
        Self { output, is_shared, open: Mutex::default() }
    }

    /// Prints an event. If the output is closed, the run continues without it.
    pub(super) fn report(&self, event: &Event<'_>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.output.is_json() {
            self.output.json("run-event", event_json(event)).ok();
            return;
        }
        match event {
            Event::Output { step, bytes } => self.hear(&mut open, step, bytes),
            Event::Note { text } => self.output.stderr_line(text),
            event => {
                self.close_lines(&mut open);
                self.output.report(&line(event)).ok();
            }
        }
    }

    /// Prints output of a step's process. If only one step runs at a time, the output is printed unchanged; otherwise it is
    /// printed line by line with the id of the step.
    fn hear(&self, open: &mut HashMap<String, Vec<u8>>, step: &str, bytes: &[u8]) {
        if self.output.loudness < crate::output::Loudness::Normal {
            return;
        }
        let said = open.entry(step.to_owned()).or_default();
        if !self.is_shared {
            self.output.bytes(bytes).ok();
            // `said` only records whether the last line is unfinished.
            said.clear();
            said.extend(bytes.last().filter(|it| **it != b'\n'));
            return;
        }
        said.extend(bytes);
        let Some(end) = said.iter().rposition(|it| *it == b'\n') else { return };
        let whole: Vec<u8> = said.drain(..=end).collect();
        self.output.text(&of_step(step, &whole)).ok();
    }

    fn close_lines(&self, open: &mut HashMap<String, Vec<u8>>) {
        let mut left: Vec<_> = open.drain().filter(|(_, said)| !said.is_empty()).collect();
        left.sort_unstable();
        for (step, said) in left {
            if self.is_shared { self.output.text(&of_step(&step, &said)) } else { self.output.bytes(b"\n") }
                .ok();
        }
    }

    /// Prints the result of the run, and what to type next.
    pub(super) fn finish(&self, report: &RunReport) -> Result<(), Failure> {
        self.close_lines(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner));
        if self.output.is_json() {
            return self.output.json("run", report.to_json()).map(drop);
        }
        let style = match report.end.exit_code() {
            0 => GOOD,
            1 => BAD,
            _ => STUCK,
        };
        let mut text =
            format!("{}: {}\n", paint(style, &report.end.word().replace('-', " ")), escaped(&report.why));
        let mut done =
            format!("{} closed in {}", count(report.closed, "step"), count(report.attempts, "attempt"));
        if let Some(cost) = report.cost {
            write!(done, ", for {cost:.2} US dollars").ok();
        }
        writeln!(text, "{}\n", paint(DIM, &done)).ok();
        text.push_str(&report.trees.as_ref().map(trees).unwrap_or_default());
        text.push_str(&to_type(&report.hints));
        self.output.report(&fitted(&text, self.output.width)).map(drop)
    }
}

/// For a run with worktrees: the branches that were not merged or were kept.
fn trees(report: &TreesReport) -> String {
    let mut text = String::new();
    if let Some(branch) = &report.unmerged {
        writeln!(text, "not merged into {}: {}", escaped(&report.branch), escaped(branch)).ok();
    }
    for kept in &report.kept {
        let tree = kept.worktree.as_ref().map(|it| format!("  {}", escaped(it))).unwrap_or_default();
        writeln!(text, "kept {}{}", escaped(&kept.branch), paint(DIM, &tree)).ok();
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn of_step(step: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = |it: &str| format!("{} {}\n", paint(DIM, &format!("{} │", escaped(step))), escaped(it));
    text.lines().map(line).collect()
}

fn line(event: &Event<'_>) -> String {
    match event {
        Event::Started { step, title, attempt, of, .. } => {
            let (step, title) = (paint(BOLD, &escaped(step)), escaped(own_title(step, title)));
            let which = paint(DIM, &format!("attempt {attempt} of {of}"));
            format!("{} {step} {title}  {which}\n", paint(BUSY, "▶"))
        }
        Event::Verifying { step, command } => {
            format!("{} {} {}\n", paint(BUSY, "verifying"), paint(BOLD, &escaped(step)), escaped(command))
        }
        Event::Ended(ended) => ended_line(ended),
        Event::Progress { closed, total } => format!("{}\n\n", bar(*closed, *total)),
        Event::Waiting { why } => format!("{}\n", paint(DIM, &format!("waiting: {}", escaped(why)))),
        Event::Output { .. } | Event::Note { .. } => String::new(),
    }
}

fn ended_line(ended: &EndedStep) -> String {
    let EndedStep { step, outcome, status, seconds, exit_code, log, .. } = ended;
    let mark = match status.as_str() {
        "completed" | "skipped" => paint(GOOD, "✓"),
        "blocked" => paint(STUCK, "■"),
        _ => paint(BAD, "✗"),
    };
    let mut facts = vec![format!("{seconds} s")];
    facts.extend(exit_code.filter(|it| *it != 0).map(|it| format!("exit code {it}")));
    facts.extend(ended.cost.map(|it| format!("{it:.2} US dollars")));
    let is_good = matches!(status.as_str(), "completed" | "skipped");
    // The status is empty if the step's file is gone.
    let now = if status.is_empty() { String::new() } else { format!("now {status}; ") };
    facts.extend((!is_good).then(|| format!("{now}log: {}", escaped(log))));
    let notes = ended.notes.as_deref().filter(|it| !is_good && !it.is_empty());
    let notes = notes.map(|it| format!(": {}", escaped(it))).unwrap_or_default();
    let outcome = paint(colour(status), &escaped(outcome));
    format!(
        "{mark} {} {outcome}{notes}  {}\n",
        paint(BOLD, &escaped(step)),
        paint(DIM, &format!("({})", facts.join(", ")))
    )
}

fn event_json(event: &Event<'_>) -> Value {
    match event {
        Event::Started { step, title, attempt, of, why, log } => json!({
            "event": "started", "step": step, "title": title, "attempt": attempt, "of": of, "why": why, "log": log,
        }),
        Event::Output { step, bytes } => {
            json!({"event": "output", "step": step, "text": String::from_utf8_lossy(bytes)})
        }
        Event::Verifying { step, command } => json!({"event": "verifying", "step": step, "command": command}),
        Event::Ended(ended) => ended.to_json(),
        Event::Progress { closed, total } => json!({"event": "progress", "closed": closed, "total": total}),
        Event::Waiting { why } => json!({"event": "waiting", "why": why}),
        Event::Note { text } => json!({"event": "note", "text": text}),
    }
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        s if s % 3_600 == 0 => format!("{} h", s / 3_600),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

/// The preview of a run: its first step, with the command, the limits and the prompt.
pub(super) fn preview(preview: &Preview, width: Option<usize>) -> String {
    let Some(step) = &preview.step else {
        let list = (format!("planwatch list {}", typed(&preview.plan)), "to list its steps");
        return fitted(
            &format!("No step can be started: {}\n\n{}", escaped(&preview.why), to_type(&[list])),
            width,
        );
    };
    let mut text = format!(
        "{} {}\nwhy: {}\n\n",
        paint(BOLD, &escaped(step)),
        escaped(own_title(step, &preview.title)),
        escaped(&preview.why)
    );
    let mut fact =
        |name: &str, value: &str| writeln!(text, "{} {}", paint(DIM, &format!("{name:<12}")), value).ok();
    if preview.is_verify {
        fact("agent", "none: only the `verify` commands of the step would be run");
    } else {
        fact("command", &escaped(&preview.command));
        if let Some(checked) = preview.checked {
            fact("", checked);
        }
        fact("directory", &escaped(&preview.directory));
        for (at, (name, value)) in preview.environment.iter().enumerate() {
            fact(if at == 0 { "environment" } else { "" }, &format!("{name}={}", escaped(value)));
        }
        let idle = preview.idle.map(|it| format!(", {} without output", shown(it))).unwrap_or_default();
        let limits =
            format!("{} an attempt{idle}, {} attempts", shown(preview.timeout), preview.max_attempts);
        fact("limits", &limits);
    }
    for (at, command) in preview.verify.iter().enumerate() {
        fact(if at == 0 { "verify" } else { "" }, &escaped(command));
    }
    for name in &preview.untrusted {
        fact("not trusted", &format!("planwatch trust {}", escaped(&typed(name))));
    }
    for note in &preview.notes {
        fact("note", &escaped(note));
    }
    if !preview.is_verify {
        write!(text, "\n{}\n\n{}", paint(DIM, "prompt"), escaped_lines(&preview.prompt)).ok();
    }
    text
}
