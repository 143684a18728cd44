//! When steps were worked on, as SVG: a row a step, with spans of statuses and marks of attempts.

use maud::{Markup, html};

use super::look::Look;
use super::text;
use crate::api::views::StepShape;
use crate::plan::records::Attempt;
use crate::plan::time::Time;

/// A time during which a step had one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub look: Look,
    pub from: Time,
    /// None: it lasts to the end of the drawing.
    pub to: Option<Time>,
}

/// Something that happened at one moment, such as an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub at: Time,
    pub look: Look,
    /// What happened, for a tool tip and the table.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub number: String,
    pub title: String,
    pub look: Look,
    pub spans: Vec<Span>,
    pub marks: Vec<Mark>,
}

impl Row {
    /// What the step's file alone knows: its attempts, and when it was created and claimed.
    pub fn of_file(step: &StepShape) -> Self {
        let mut spans = Vec::new();
        let mut marks = Vec::new();
        let mut started = None;
        for attempt in &step.attempts {
            let Some(at) = attempt.at else { continue };
            let outcome = attempt.outcome.as_deref().unwrap_or_default();
            match (outcome, seconds(attempt)) {
                ("claimed" | "started", _) => started = Some(at),
                (_, Some(seconds)) => {
                    spans.push(Span {
                        look: Look::InProgress,
                        from: at.plus_seconds(-seconds),
                        to: Some(at),
                    });
                    started = None;
                }
                _ => spans.extend(started.take().filter(|it| *it < at).map(|from| Span {
                    look: Look::InProgress,
                    from,
                    to: Some(at),
                })),
            }
            marks.push(Mark { at, look: outcome_look(outcome), text: attempt_text(attempt) });
        }
        let is_held = step.status == "in_progress";
        let open = step.claim.as_ref().and_then(|it| it.at).or(started).filter(|_| is_held);
        spans.extend(open.map(|from| Span { look: Look::InProgress, from, to: None }));
        Self {
            id: step.id.clone(),
            number: step.number.clone(),
            title: step.title.clone(),
            look: Look::of(step),
            spans,
            marks,
        }
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        let spans = self.spans.iter().flat_map(|it| [Some(it.from), it.to]).flatten();
        spans.chain(self.marks.iter().map(|it| it.at))
    }
}

/// How long an attempt took, if it says so.
fn seconds(attempt: &Attempt) -> Option<i64> {
    let seconds = attempt.more.get("seconds").and_then(serde_json::Value::as_f64)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is below a year")]
    (0.5..=31_622_400.0).contains(&seconds).then(|| seconds.round() as i64)
}

/// How the outcome of an attempt looks.
pub fn outcome_look(outcome: &str) -> Look {
    match outcome {
        "completed" | "forced" | "partial" => Look::Completed,
        "failed" | "verify failed" | "timed out" | "no outcome reported" | "expired" => Look::Failed,
        "blocked" => Look::Blocked,
        "skipped" => Look::Skipped,
        "claimed" | "started" => Look::InProgress,
        "released" | "reopened" | "interrupted" => Look::Waiting,
        _ => Look::Unknown,
    }
}

fn attempt_text(attempt: &Attempt) -> String {
    let outcome = attempt.outcome.as_deref().unwrap_or("attempt");
    match &attempt.by {
        Some(by) => text::one_line(&format!("{outcome} by {by}")),
        None => text::one_line(outcome),
    }
}

const LABEL: i64 = 230;
const CHART: i64 = 670;
const WIDTH: i64 = LABEL + CHART + 20;
const ROW: i64 = 26;
const TOP: i64 = 26;

/// Draws rows that have something to show, from the first to the last time that is known. `None` if there is none.
///
/// Nothing depends on the present time: an open span ends where the drawing ends.
pub fn svg(rows: &[Row], label: &str, href: &dyn Fn(&Row) -> Option<String>) -> Option<Markup> {
    let shown: Vec<&Row> = rows.iter().filter(|it| it.times().next().is_some()).collect();
    let from = shown.iter().flat_map(|it| it.times()).min()?;
    let to = shown.iter().flat_map(|it| it.times()).max()?;
    let scale = Scale { from, seconds: to.seconds_since(from).max(60) };
    let height = TOP + ROW * i64::try_from(shown.len()).ok()? + 8;
    Some(html! {
        div.scroll.timeline-scroll tabindex="0" role="group" aria-label=(label) {
            svg.timeline xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH)
                height=(height) role="group" aria-label=(label) {
                g.axis aria-hidden="true" {
                    @for (x, at) in scale.ticks() {
                        line x1=(x) y1=(TOP - 4) x2=(x) y2=(height - 4) {}
                        text x=(x + 3) y="14" { (at) }
                    }
                }
                @for (nth, row) in (0_i64..).zip(&shown) {
                    (drawn(row, TOP + ROW * nth, &scale, href(row)))
                }
            }
        }
    })
}

fn drawn(row: &Row, y: i64, scale: &Scale, href: Option<String>) -> Markup {
    let label = html! {
        title { (text::one_line(&format!("{} {} ({})", row.number, row.title, row.look.words()))) }
        svg x="0" y=(y) width=(LABEL - 8) height=(ROW) {
            text.label y="17" x="4" { (text::clip(&format!("{} {}", row.number, row.title), 30)) }
        }
    };
    html! {
        @match href {
            Some(address) => { a href=(address) { (label) } }
            None => { g { (label) } }
        }
        @for span in &row.spans {
            @let (x, end) = (scale.x(span.from), span.to.map_or(LABEL + CHART, |it| scale.x(it)));
            rect class={ "span " (span.look.class()) } x=(x) y=(y + 7) width=((end - x).max(2)) height=(ROW - 14) rx="2" {
                title { (span_text(span)) }
            }
        }
        @for mark in &row.marks {
            circle class={ "mark " (mark.look.class()) } cx=(scale.x(mark.at)) cy=(y + ROW / 2) r="5" {
                title { (mark.at) ": " (text::one_line(&mark.text)) }
            }
        }
    }
}

fn span_text(span: &Span) -> String {
    match span.to {
        Some(to) => format!("{} from {} to {to}", span.look.words(), span.from),
        None => format!("{} since {}", span.look.words(), span.from),
    }
}

/// The same as a table: what happened to which step, in the order of time.
pub fn table(rows: &[Row], href: &dyn Fn(&Row) -> Option<String>) -> Markup {
    let mut marks: Vec<(&Row, &Mark)> =
        rows.iter().flat_map(|row| row.marks.iter().map(move |mark| (row, mark))).collect();
    marks.sort_by_key(|it| it.1.at);
    html! {
        table.events {
            thead { tr { th { "Time" } th { "Step" } th { "What" } } }
            tbody {
                @for (row, mark) in marks {
                    tr {
                        td.time { (shown_time(mark.at)) }
                        td {
                            @let name = text::isolated(&format!("{} {}", row.number, row.title));
                            @match href(row) {
                                Some(address) => { a href=(address) { (name) } }
                                None => (name),
                            }
                        }
                        td { span class={ "dot " (mark.look.class()) } aria-hidden="true" {} (text::isolated(&mark.text)) }
                    }
                }
            }
        }
    }
}

/// `2026-11-21 09:14`, in UTC.
pub fn shown_time(at: Time) -> String {
    let text = at.whole_seconds().to_string();
    text.get(..16).map_or_else(|| text.clone(), |it| it.replace('T', " "))
}

struct Scale {
    from: Time,
    seconds: i64,
}

impl Scale {
    fn x(&self, at: Time) -> i64 {
        let seconds = at.seconds_since(self.from).clamp(0, self.seconds);
        LABEL + seconds.saturating_mul(CHART) / self.seconds
    }

    /// At most seven lines, at whole days, hours or minutes of UTC.
    fn ticks(&self) -> Vec<(i64, String)> {
        const STEPS: [i64; 15] = [
            60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000,
            7_776_000, 15_552_000, 31_536_000,
        ];
        let last = STEPS[STEPS.len() - 1];
        let fitting = STEPS.into_iter().find(|it| self.seconds / it < 7);
        let step = fitting.unwrap_or_else(|| (self.seconds / 6 / last + 1) * last);
        // Midnight before the start, so that lines are at round times.
        let day: Option<Time> = self.from.to_string().get(..10).and_then(|it| it.parse().ok());
        let Some(day) = day else { return Vec::new() };
        let first = self.from.seconds_since(day).div_euclid(step);
        let places = (0..=8).map(|nth| day.plus_seconds((first + nth) * step));
        let inside = places.filter(|it| *it >= self.from && it.seconds_since(self.from) <= self.seconds);
        let is_daily = step >= 86_400;
        let text = |at: Time| {
            let text = shown_time(at);
            if is_daily { text[..10].to_owned() } else { text[5..].to_owned() }
        };
        inside.map(|it| (self.x(it), text(it))).collect()
    }
}
