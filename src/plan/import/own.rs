//! Reads the document that `export` prints. Below each step's heading is a line that describes the step's state.

use std::ops::Range;

use super::Unmapped;
use super::label;
use super::pieces::{From, Piece, Pieces};
use crate::plan::change::{set_status, set_word};
use crate::plan::id::{StepId, read_number, read_step_id};
use crate::plan::records::Priority;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Day;
use crate::plan::words::{PlanStatus, StepStatus, Words};
use crate::text::header_edit::Change;
use crate::text::line_index;
use crate::text::markdown::Outline;

/// The text that `export` writes instead of the status of a step whose file has an error.
pub const FILE_ERROR: &str = "file has an error";

/// The heading above steps without a phase.
pub const STEPS: &str = "Steps";

/// The values in the line below a step's heading.
pub(super) struct State {
    pub(super) status: StepStatus,
    /// Numbers of steps of the same plan.
    pub(super) waits_for: Vec<String>,
    pub(super) elsewhere: Vec<StepId>,
    pub(super) due: Option<Day>,
    pub(super) assignee: Option<String>,
    /// The position in the document's body where the step's text begins.
    pub(super) body: usize,
}

pub(super) struct Exported {
    pub(super) pieces: Pieces,
    /// The states of the pieces, in the same order.
    pub(super) states: Vec<State>,
    /// The plan's summary line.
    sum: Range<usize>,
}

/// Recognizes an export by the summary line below the title. The steps are recognized by the lines below their headings. An
/// export without steps is recognized, too.
pub(super) fn find(body: &str, outline: &Outline, words: &Words) -> Option<Exported> {
    let title = outline.headings.first().filter(|it| it.level == 1)?;
    let sum = first_line(body, title.span.end).filter(|it| !outline.is_code(it.start))?;
    let text = &body[sum.clone()];
    if !text.starts_with("Status: ") || !text.contains(" steps. Priority: ") {
        return None;
    }
    let steps: Vec<_> = (0..outline.headings.len())
        .filter_map(|nth| Some((nth, state(body, outline, nth, words)?)))
        .collect();
    // A phase is written directly above its first step.
    let is_phase = |nth: usize| outline.headings[nth].level == 2 && steps.iter().any(|it| it.0 == nth + 1);
    let mut phase: Option<String> = None;
    let mut pieces = Vec::new();
    for (at, (nth, _)) in steps.iter().enumerate() {
        if nth.checked_sub(1).is_some_and(is_phase) {
            phase = Some(label::clean(&outline.headings[nth - 1].text)).filter(|it| it != STEPS);
        }
        let end = steps.get(at + 1).map_or(body.len(), |(next, _)| {
            let above = next.checked_sub(1).filter(|it| is_phase(*it)).unwrap_or(*next);
            outline.headings[above].span.start
        });
        let span = outline.headings[*nth].span.start..end;
        pieces.push(Piece { span, from: From::Heading(*nth), phase: phase.clone() });
    }
    let pieces = Pieces { pieces, are_numbered: false, is_own_list: false };
    Some(Exported { pieces, states: steps.into_iter().map(|it| it.1).collect(), sum })
}

/// The first line after `from` that is not blank.
fn first_line(body: &str, from: usize) -> Option<Range<usize>> {
    let rest = &body[from..];
    let start = from + rest.len() - rest.trim_start().len();
    let end = body[start..].find('\n').map_or(body.len(), |it| start + it);
    (start < end).then_some(start..end)
}

/// Reads `2.5. Title`.
pub(super) fn numbered(heading: &str) -> Option<(&str, &str)> {
    let (number, title) = heading.split_once(". ").or_else(|| Some((heading.strip_suffix('.')?, "")))?;
    number.parse::<StepNumber>().is_ok().then(|| (number, title.trim()))
}

/// Reads a line such as `- [x] completed, after 1, 2, ruth`, below `### 3. Title`. `ruth` is the assignee.
fn state(body: &str, outline: &Outline, nth: usize, words: &Words) -> Option<State> {
    let heading = &outline.headings[nth];
    let is_step = heading.level == 3 && numbered(&heading.text).is_some();
    let line = first_line(body, heading.span.end).filter(|it| is_step && !outline.is_code(it.start))?;
    let text = body[line.clone()].trim_end();
    let mut parts =
        text.strip_prefix("- [x] ").or_else(|| text.strip_prefix("- [ ] "))?.split(", ").peekable();
    let first = parts.next()?;
    // The status of a file with an error is not known. The line then stays in the step's text.
    let is_faulty = first.starts_with(FILE_ERROR);
    let status = if is_faulty { StepStatus::Pending } else { words.read(first)? };
    let (mut waits_for, mut elsewhere, mut has_range) = (Vec::new(), Vec::new(), false);
    if let Some(first) = parts.next_if(|it| it.starts_with("after ")) {
        let mut one = Some(first.trim_start_matches("after "));
        while let Some(name) = one {
            match (read_number(name), read_step_id(name)) {
                (Some(number), _) => waits_for.push(number.to_string()),
                (None, Some(id)) => elsewhere.push(id),
                (None, None) if is_range(name) => has_range = true,
                (None, None) => return None,
            }
            let is_name = |it: &&str| read_number(it).is_some() || read_step_id(it).is_some() || is_range(it);
            one = parts.next_if(is_name);
        }
        if has_range {
            // The Dependencies section of the step's text contains the range and all other dependencies, so the names in
            // this line are not needed.
            (waits_for, elsewhere) = (Vec::new(), Vec::new());
        }
    }
    let day = |it: &&str| it.strip_prefix("due ").is_some_and(|it| it.parse::<Day>().is_ok());
    let due = parts.next_if(day).and_then(|it| it.trim_start_matches("due ").parse().ok());
    let assignee = parts.collect::<Vec<_>>().join(", ");
    let assignee = Some(assignee).filter(|it| !it.is_empty());
    let body = if is_faulty { line.start } else { line.end };
    Some(State { status, waits_for, elsewhere, due, assignee, body })
}

/// Whether a text is a range such as `1 to 130`. `export` writes the range of a Dependencies section in this form if it has
/// many steps.
fn is_range(text: &str) -> bool {
    text.split_once(" to ")
        .is_some_and(|(first, last)| read_number(first).is_some() && read_number(last).is_some())
}

impl Exported {
    /// Returns three values: the plan's text without its summary line; the keys that result from this line; and the line as
    /// unmapped text. The unmapped text also has the word `after` for each step that waits.
    pub(super) fn plan(&self, path: &str, body: &str, rest: &str) -> (String, Vec<Change>, Unmapped) {
        let sum = body[self.sum.clone()].trim_end();
        let value = |key: &str| {
            let (_, behind) = sum.split_once(key)?;
            Some(behind.split([',', '.']).next().unwrap_or_default().trim())
        };
        let words = Words::default();
        let status = value("Status: ").and_then(|it| words.read::<PlanStatus>(it));
        // `export` shows an active plan as completed if all its steps are closed. So `completed` is imported as `active` if
        // all steps are closed.
        let is_closed = |it: &State| it.status.is_closed();
        let is_by_steps = !self.states.is_empty() && self.states.iter().all(is_closed);
        let status = status.filter(|it| *it != PlanStatus::Completed || !is_by_steps);
        let mut changes = vec![set_status(status.unwrap_or(PlanStatus::Active))];
        let priority = value("Priority: ").and_then(Priority::read).filter(|it| *it != Priority::Medium);
        changes.extend(priority.map(|it| set_word("priority", it.word())));
        let due = value("Due: ").and_then(|it| it.parse::<Day>().ok());
        changes.extend(due.map(|it| set_word("due", &it.to_string())));
        let is_sequential = value("Order: ") == Some("sequential");
        changes.extend(is_sequential.then(|| set_word("order", "sequential")));
        let mut said = format!("{sum}\n");
        self.states.iter().filter(|it| !it.waits_for.is_empty() || !it.elsewhere.is_empty()).for_each(|_| {
            said.push_str("after\n");
        });
        let line = Some(line_index::place(body.as_bytes(), self.sum.start).line);
        let why = "the summary line of the export";
        let ends = ["\r\n\r\n", "\n\n", "\r\n", "\n", ""].map(|it| format!("{sum}{it}"));
        let whole = ends.iter().find(|it| rest.contains(it.as_str()));
        let rest = whole.map_or_else(|| rest.to_owned(), |it| rest.replacen(it, "", 1));
        (rest, changes, Unmapped { path: path.to_owned(), line, why, text: said })
    }
}
