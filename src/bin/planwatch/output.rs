//! Prints answers as text or JSON on stdout, and everything else on stderr.
//!
//! If the reader has closed the pipe, that is not an error. Every other failure to write to stdout is an error. Failures
//! to write to stderr are ignored.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use planwatch::api::context::{KeptSaves, Notice};
use planwatch::api::views;
use planwatch::plan::problem::Problem;
use planwatch::process;
pub(crate) use planwatch::text::typed::{acts_on_terminal, escaped, escaped_lines};
use serde_json::{Value, json};

use crate::failure::{self, Failure};
use crate::fields;
use crate::screens::DIM;
use crate::screens::text::{self, hanging};
use crate::table::paint;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    /// The fields that are kept; all if none is named.
    Json(Vec<String>),
}

/// How much is printed in addition to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loudness {
    Quiet,
    Normal,
    Verbose,
}

/// Whether the output still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) form: Form,
    pub(crate) loudness: Loudness,
    /// The terminal's width. `None` if stdout is no terminal; then nothing is cut.
    pub(crate) width: Option<usize>,
    /// The terminal's number of lines. `None` if stdout is no terminal.
    pub(crate) height: Option<usize>,
    /// Like `width`, for stderr.
    stderr_width: Option<usize>,
    stdout: ColorChoice,
    stderr: ColorChoice,
    /// The saves that were stored in `.planwatch/displaced` since the start, for answers in JSON.
    pub(crate) kept: KeptSaves,
    /// Shows answers that are longer than the terminal.
    pager: Option<Pager>,
    /// Whether [`Self::check_fields`] was called.
    are_fields_checked: Arc<AtomicBool>,
}

/// The program that shows long answers on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pager {
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The user named this pager, so an error is reported if it cannot be started.
    pub(crate) is_named: bool,
}

impl Output {
    /// `columns` and `lines` are the size according to the environment, for terminals that do not report it.
    pub(crate) fn new(
        form: Form,
        loudness: Loudness,
        colour: ColorChoice,
        (columns, lines): (Option<usize>, Option<usize>),
    ) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let known = |told: Option<(terminal_size::Width, terminal_size::Height)>| {
            let told = told.map(|(it, _)| usize::from(it.0)).filter(|it| *it > 0);
            told.or(columns).unwrap_or(80)
        };
        let width = stdout.is_terminal().then(|| known(terminal_size::terminal_size_of(&stdout)));
        let rows = terminal_size::terminal_size_of(&stdout).map(|(_, it)| usize::from(it.0));
        let height = stdout.is_terminal().then(|| rows.filter(|it| *it > 0).or(lines).unwrap_or(24));
        let stderr_width = stderr.is_terminal().then(|| known(terminal_size::terminal_size_of(&stderr)));
        let choice = |auto: ColorChoice| if colour == ColorChoice::Auto { auto } else { colour };
        Self {
            form,
            loudness,
            width,
            height,
            stderr_width,
            stdout: choice(AutoStream::choice(&stdout)),
            stderr: choice(AutoStream::choice(&stderr)),
            kept: KeptSaves::default(),
            pager: None,
            are_fields_checked: Arc::default(),
        }
    }

    #[must_use]
    pub(crate) fn with_pager(self, pager: Option<Pager>) -> Self {
        Self { pager, ..self }
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.form, Form::Json(_))
    }

    /// Refuses fields of `--json` that are not among the known ones, before anything is done. After this check, it is no
    /// error if the answer lacks a requested field.
    pub(crate) fn check_fields(&self, known: &str) -> Result<(), Failure> {
        self.are_fields_checked.store(true, Ordering::Relaxed);
        match &self.form {
            Form::Json(wanted) => fields::known(wanted, &known.split(' ').collect::<Vec<_>>()),
            Form::Text => Ok(()),
        }
    }

    /// Whether stdout gets colours.
    pub(crate) fn is_coloured(&self) -> bool {
        self.stdout != ColorChoice::Never
    }

    /// Prints an answer for people.
    pub(crate) fn text(&self, text: &str) -> Result<Reader, Failure> {
        // Written at once; the standard library would write line by line.
        let mut text_out = AutoStream::new(Vec::with_capacity(text.len()), self.stdout);
        let written = text_out.write_all(text.as_bytes());
        self.delivered(written.and_then(|()| whole(&text_out.into_inner())))
    }

    /// Prints a document. A terminal gets control characters as escapes; a file or a program gets the document as it is.
    pub(crate) fn document(&self, text: &str) -> Result<Reader, Failure> {
        match self.width {
            Some(_) => self.long(&escaped_lines(text)),
            None => self.delivered(whole(text.as_bytes())),
        }
    }

    /// Like [`Self::text`], but uses the pager if the text has too many lines for the terminal.
    pub(crate) fn long(&self, text: &str) -> Result<Reader, Failure> {
        let Some(pager) = self.pager.as_ref().filter(|_| self.is_too_long(text)) else {
            return self.text(text);
        };
        let mut painted = AutoStream::new(Vec::with_capacity(text.len()), self.stdout);
        self.delivered(painted.write_all(text.as_bytes()))?;
        // The pager handles Ctrl-C. If this process ended before the pager, the shell and the pager would share the
        // terminal.
        let is_interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGINT, is_interrupted).ok();
        let Err(error) = process::pager::show(&pager.command, &pager.environment, &painted.into_inner())
        else {
            return Ok(Reader::There);
        };
        if pager.is_named {
            let name = pager.command.first().map_or("", String::as_str);
            let why = failure::system(&error);
            self.note("pager", &format!("the pager `{name}` could not be started: {why}"));
        }
        self.text(text)
    }

    /// Whether a text has too many lines for the terminal. The terminal's last line is for the prompt.
    fn is_too_long(&self, text: &str) -> bool {
        self.height.is_some_and(|height| text::rows(text, self.width) >= height)
    }

    /// Prints what a verb did; nothing with `--quiet`.
    pub(crate) fn report(&self, text: &str) -> Result<Reader, Failure> {
        if self.loudness == Loudness::Quiet { Ok(Reader::There) } else { self.text(text) }
    }

    /// Prints an answer for machines, with the requested fields, on one line.
    pub(crate) fn json(&self, kind: &str, mut report: Value) -> Result<Reader, Failure> {
        self.kept.put_into_answer(kind, &mut report);
        let wanted = match &self.form {
            Form::Json(wanted) => wanted.as_slice(),
            Form::Text => &[],
        };
        let are_checked = self.are_fields_checked.load(Ordering::Relaxed);
        let object = fields::keep(views::envelope(kind, report), wanted, are_checked)?;
        self.bytes(format!("{}\n", printable(&object)).as_bytes())
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<Reader, Failure> {
        self.delivered(whole(bytes))
    }

    fn delivered(&self, written: io::Result<()>) -> Result<Reader, Failure> {
        let error = match written {
            Ok(()) => return Ok(Reader::There),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Reader::Gone),
            Err(error) => failure::system(&error),
        };
        let has_changed = self.kept.has_changed();
        let failure = if has_changed {
            let message = format!("the change was made, but the answer could not be written: {error}");
            let hint = "`planwatch undo --list` names the last changes and their files";
            Failure::failed("output", message).with_hint(hint)
        } else {
            Failure::failed("output", format!("the answer could not be written: {error}"))
        };
        Err(Failure { details: Box::new(json!({"changed": has_changed})), ..failure })
    }

    /// Prints why a verb failed. An error of this output is ignored.
    pub(crate) fn failure(&self, failure: &Failure) {
        let said = if self.is_json() {
            let mut error = failure.to_json();
            self.kept.put_into(&mut error["error"]["details"]);
            format!("{}\n", printable(&error))
        } else {
            failure.to_text(self.stderr_width)
        };
        self.stderr_text(&said);
    }

    /// Prints a hint in addition to the answer: what to do next, or what was left out.
    pub(crate) fn hint(&self, hint: &str) {
        if self.loudness > Loudness::Quiet && !self.is_json() {
            self.stderr_text(&hint_line(hint, self.stderr_width));
        }
    }

    /// Prints a notice at once, if the loudness is high enough for it.
    pub(crate) fn notice(&self, notice: &Notice) {
        let (code, least, message) = sentence(notice);
        if self.loudness >= least {
            self.note(code, &message);
        }
    }

    /// Prints details that only `--verbose` shows.
    pub(crate) fn detail(&self, code: &str, message: &str) {
        if self.loudness == Loudness::Verbose {
            self.note(code, message);
        }
    }

    /// Prints a note in addition to the answer, even with `--quiet`.
    pub(crate) fn note(&self, code: &str, message: &str) {
        if self.is_json() {
            self.stderr_text(&format!(
                "{}\n",
                printable(&json!({"notice": {"code": code, "message": message}}))
            ));
        } else {
            let line = format!("{} {}\n", paint(NOTE, "note:"), escaped(message));
            self.stderr_text(&hanging(&line, self.stderr_width, 6));
        }
    }

    /// Prints a warning that the answer may be incomplete.
    pub(crate) fn warn(&self, message: &str) {
        if self.loudness > Loudness::Quiet && !self.is_json() {
            let line = format!("{} {}\n", paint(WARNING, "warning:"), escaped(message));
            self.stderr_text(&hanging(&line, self.stderr_width, 2));
        }
    }

    /// Reports an error in the configuration. The command continues without the faulty entry.
    pub(crate) fn warning(&self, problem: &Problem) {
        if self.loudness == Loudness::Quiet || self.is_json() {
            return;
        }
        let Problem { path, line, column, message, hint, .. } = problem;
        let head = paint(WARNING, "warning:");
        let hint = if hint.is_empty() { String::new() } else { format!("; {}", escaped(hint)) };
        let line = format!("{head} {}:{line}:{column}: {}{hint}\n", escaped(path), escaped(message));
        self.stderr_text(&hanging(&line, self.stderr_width, 2));
    }

    /// Prints what a long-running verb is doing.
    pub(crate) fn stderr_line(&self, text: &str) {
        if self.loudness > Loudness::Quiet && !self.is_json() {
            self.stderr_text(&format!("{}\n", paint(DIM, &escaped(text))));
        }
    }

    fn stderr_text(&self, text: &str) {
        let mut stderr = AutoStream::new(io::stderr().lock(), self.stderr);
        stderr.write_all(text.as_bytes()).ok();
    }
}

const NOTE: Style = AnsiColor::Cyan.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

pub(crate) fn hint_line(hint: &str, width: Option<usize>) -> String {
    hanging(&format!("{} {}\n", paint(NOTE, "hint:"), escaped(hint)), width, 6)
}

/// Writes everything at once.
fn whole(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::BufWriter::with_capacity(bytes.len().clamp(1, 1 << 16), io::stdout().lock());
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// The code of a notice, the least loudness at which it is printed, and its message.
pub(crate) fn sentence(notice: &Notice) -> (&'static str, Loudness, String) {
    match notice {
        Notice::WaitingForLock => {
            ("waiting-for-lock", Loudness::Normal, "waiting for another planwatch process".to_owned())
        }
        Notice::IndexRebuilt { why } => {
            ("index-rebuilt", Loudness::Normal, format!("the index was rebuilt: {why}"))
        }
        Notice::IndexInMemory { why } => {
            ("index-in-memory", Loudness::Normal, format!("the index is in memory for this answer: {why}"))
        }
        Notice::Kept { path, kept, why } => (
            "kept",
            Loudness::Normal,
            format!(
                "{path} was saved while planwatch wrote it, and the file does not contain that save; it is stored in {kept} ({why})"
            ),
        ),
        Notice::NotRecorded => (
            "not-recorded",
            Loudness::Normal,
            "the change was made, but its record could not be written, so `undo` cannot undo it".to_owned(),
        ),
        Notice::ClaimsNotShared { path, why } => (
            "claims-not-shared",
            Loudness::Normal,
            format!("other working trees of this repository will not see claims: `{path}`: {why}"),
        ),
        Notice::Interrupted { what } => ("interrupted", Loudness::Normal, what.clone()),
        Notice::Unsettled { step, why } => (
            "unsettled",
            Loudness::Normal,
            format!(
                "the claim of `{step}` or its end is not confirmed by the registry yet: {why}; `planwatch sync` tries again"
            ),
        ),
        Notice::UnsettledClaims { steps } => (
            "unsettled",
            Loudness::Normal,
            format!("not confirmed by the registry yet: {}; `planwatch sync` tries again", steps.join(", ")),
        ),
        Notice::Recovered { what } => ("recovered", Loudness::Normal, what.clone()),
    }
}

/// Writes JSON so that no character of it acts on a terminal.
fn printable(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(acts_on_terminal) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if acts_on_terminal(c) {
            write!(out, "\\u{:04x}", u32::from(c)).ok();
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_acts_on_no_terminal_and_means_the_same() {
        let value = json!({"title": "a\u{1b}\u{9b}\u{7f}\u{202e}b"});
        let text = printable(&value);
        assert!(!text.contains(acts_on_terminal), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
