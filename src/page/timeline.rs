//! A timeline of the steps as SVG: one row per step, with a bar for each status and a mark for each attempt.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::look::Look;
use super::text;
use crate::api::views::StepShape;
use crate::plan::course::{self, Records};
use crate::plan::time::Time;

/// A time during which a step had one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub look: Look,
    pub from: Time,
    /// `None` if it lasts to the end of the drawing.
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
    /// A row made from the step's file alone, without the commits.
    pub fn of_file(step: &StepShape) -> Self {
        let (status, created_at) = (step.status.as_str(), step.created_at);
        let records = Records { status, created_at, claim: step.claim.as_ref(), attempts: &step.attempts };
        let marks = step
            .attempts
            .iter()
            .filter_map(|it| Some(Mark::of(it.at?, it.outcome.as_deref(), it.by.as_deref())));
        Self::of(step, &course::spans(&records, &[]), marks.collect())
    }

    /// `course` contains the statuses of the step. A time during which the step was closed has no bar, but a mark at its
    /// beginning.
    pub fn of(step: &StepShape, course: &[course::Span], mut marks: Vec<Mark>) -> Self {
        let mut spans = Vec::new();
        for it in course {
            let look = Look::of_status(&it.status);
            if !matches!(look, Look::Completed | Look::Skipped) {
                spans.push(Span { look, from: it.from, to: it.to });
            } else if !marks.iter().any(|mark| mark.at.whole_seconds() == it.from.whole_seconds()) {
                marks.push(Mark { at: it.from, look, text: look.words().to_owned() });
            }
        }
        Self {
            id: step.id.clone(),
            number: step.number.clone(),
            title: step.title.clone(),
            look: Look::of(step),
            spans,
            marks,
        }
    }

    /// Whether the row has a mark, or a bar of another status than waiting.
    fn has_begun(&self) -> bool {
        !self.marks.is_empty() || self.spans.iter().any(|it| it.look != Look::Waiting)
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        let spans = self.spans.iter().flat_map(|it| [Some(it.from), it.to]).flatten();
        spans.chain(self.marks.iter().map(|it| it.at))
    }
}

/// How the outcome of an attempt looks.
pub fn outcome_look(outcome: &str) -> Look {
    match outcome {
        "completed" | "forced" => Look::Completed,
        "partial" | "partly done" => Look::Partial,
        "failed" | "verify failed" | "timed out" | "no outcome reported" | "expired" => Look::Failed,
        "blocked" => Look::Blocked,
        "skipped" => Look::Skipped,
        "claimed" | "started" => Look::InProgress,
        "released" | "reopened" | "interrupted" => Look::Waiting,
        _ => Look::Unknown,
    }
}

impl Mark {
    /// The mark of an attempt.
    pub fn of(at: Time, outcome: Option<&str>, by: Option<&str>) -> Self {
        let outcome = outcome.unwrap_or("attempt");
        let text = match by {
            Some(by) => text::one_line(&format!("{outcome} by {by}")),
            None => text::one_line(outcome),
        };
        Self { at, look: outcome_look(outcome), text }
    }
}

const LABEL: i64 = 230;
const CHART: i64 = 670;
const WIDTH: i64 = LABEL + CHART + 20;
const ROW: i64 = 26;
const TOP: i64 = 26;

/// The width of a label of the axis, in pixels.
const TICK: i64 = 70;

/// Draws the rows that have something to show, from the first to the last known time, with a legend below. `None` if the
/// rows have no marks, and no bars other than those for waiting.
///
/// The drawing does not depend on the current time. A span without an end lasts to the end of the drawing.
pub fn svg(rows: &[Row], label: &str, href: &dyn Fn(&Row) -> Option<String>) -> Option<Markup> {
    if !rows.iter().any(Row::has_begun) {
        return None;
    }
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
                        @if x + TICK > WIDTH { text x=(WIDTH - 2) y="14" text-anchor="end" { (at) } }
                        @else { text x=(x + 3) y="14" { (at) } }
                    }
                }
                @for (nth, row) in (0_i64..).zip(&shown) {
                    (drawn(row, TOP + ROW * nth, &scale, href(row)))
                }
            }
        }
        (legend(&shown))
    })
}

/// The meaning of the bars and signs that are drawn.
fn legend(rows: &[&Row]) -> Markup {
    let bars: BTreeSet<Look> = rows.iter().flat_map(|it| &it.spans).map(|it| it.look).collect();
    let marks: BTreeSet<Look> = rows.iter().flat_map(|it| &it.marks).map(|it| it.look).collect();
    let item = |word: &str, drawing: Markup| {
        html! {
            span.item {
                svg.timeline-key viewBox="0 0 16 14" width="16" height="14" aria-hidden="true" { (drawing) }
                " " (word)
            }
            " "
        }
    };
    html! {
        p.legend {
            @for look in bars {
                (item(look.words(), html! { rect class={ "span " (look.class()) } x="1" y="2" width="14" height="10" rx="2" {} }))
            }
            @for look in marks { (item(sign_words(look), sign(look, 8, 7, &html! {}))) }
        }
    }
}

/// The meaning of the sign of an attempt.
fn sign_words(look: Look) -> &'static str {
    match look {
        Look::InProgress => "started",
        Look::Waiting | Look::Ready => "released, reopened or interrupted",
        Look::Unknown => "another outcome",
        _ => look.words(),
    }
}

/// The sign of an attempt. Looks differ in shape, because not everyone can tell the colours apart; only
/// [`Look::InProgress`], [`Look::Waiting`] and [`Look::Ready`] have the same shape.
fn sign(look: Look, x: i64, y: i64, title: &Markup) -> Markup {
    let class = format!("mark {}", look.class());
    let (left, right, top, bottom) = (x - 5, x + 5, y - 5, y + 5);
    html! {
        @match look {
            Look::Completed => circle class=(class) cx=(x) cy=(y) r="5" { (title) },
            Look::Partial => path class=(class) d={
                "M" (x) " " (top) "A5 5 0 0 0 " (x) " " (bottom) "ZM" (x) " " (top) "A5 5 0 0 1 " (x) " " (bottom)
                "L" (x) " " (bottom - 2) "A3 3 0 0 0 " (x) " " (top + 2) "Z"
            } { (title) },
            Look::Failed => path class={ (class) " cross" } d={
                "M" (left + 1) " " (top + 1) "L" (right - 1) " " (bottom - 1) "M" (left + 1) " " (bottom - 1) "L" (right - 1) " " (top + 1)
            } { (title) },
            Look::Blocked => rect class=(class) x=(left) y=(top) width="10" height="10" { (title) },
            Look::Skipped => rect class=(class) x=(left - 1) y=(y - 2) width="12" height="4" { (title) },
            Look::Unknown => path class=(class) d={
                "M" (x) " " (top - 1) "L" (right + 1) " " (y) "L" (x) " " (bottom + 1) "L" (left - 1) " " (y) "Z"
            } { (title) },
            Look::InProgress | Look::Waiting | Look::Ready => circle class={ (class) " ring" } cx=(x) cy=(y) r="4" { (title) },
        }
    }
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
            @let title = html! { title { (mark.at) ": " (text::one_line(&mark.text)) } };
            (sign(mark.look, scale.x(mark.at), y + ROW / 2, &title))
        }
    }
}

fn span_text(span: &Span) -> String {
    match span.to {
        Some(to) => format!("{} from {} to {to}", span.look.words(), span.from),
        None => format!("{} since {}", span.look.words(), span.from),
    }
}

/// The marks as a table: what happened to which step, in chronological order.
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

/// A time in UTC, such as `2026-11-21 09:14`.
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
        // Ticks are counted from the midnight before the start, so that lines are at round times.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        text.parse().unwrap()
    }

    fn row(status: &str, attempts: &[(&str, &str)], created_at: Option<&str>) -> Row {
        let attempts: Vec<_> =
            attempts.iter().map(|(at, outcome)| serde_json::json!({"at": at, "outcome": outcome})).collect();
        let step = serde_json::json!({
            "id": "a:3", "plan": "a", "number": "3", "step_number": 3, "title": "Three", "status": status, "unverified": false,
            "ready": false, "depends": [], "waits_for": [], "phase": null, "type": null, "assignee": null, "priority": "medium",
            "due": null, "tags": [], "created_at": created_at, "created_by": "user", "claim": null, "lapsed": false,
            "confirm": false, "confirmed": null, "verify": [], "touches": null, "result": null, "attempts": attempts,
            "notes": [], "metadata": {}, "tasks_done": 0, "tasks_total": 0, "last_activity": null,
            "last_activity_source": null, "path": "plans/a/step-3.md", "etag": null, "problems": [], "custom": {},
        });
        Row::of_file(&serde_json::from_value(step).unwrap())
    }

    #[test]
    fn the_bar_of_a_closed_step_ends_where_it_was_closed() {
        let (made, done, later) = ("2026-10-10T00:00:00Z", "2026-10-14T00:00:00Z", "2026-11-26T00:00:00Z");
        let closed = row("completed", &[(done, "completed")], Some(made));
        assert_eq!(closed.spans, [Span { look: Look::Waiting, from: time(made), to: Some(time(done)) }]);
        assert_eq!(
            closed.marks.iter().map(|it| (it.at, it.look)).collect::<Vec<_>>(),
            [(time(done), Look::Completed)]
        );
        let rows = [closed, row("in_progress", &[(later, "started")], None)];
        let drawn = svg(&rows, "Timeline", &|_| None).unwrap().into_string();
        assert!(drawn.contains("waiting from 2026-10-10T00:00:00Z to 2026-10-14T00:00:00Z"), "{drawn}");
        assert!(
            !drawn.contains("completed since") && drawn.contains("in progress since 2026-11-26"),
            "{drawn}"
        );
        assert!(svg(&[row("pending", &[], Some(made))], "Timeline", &|_| None).is_none());
    }

    #[test]
    fn each_outcome_has_a_form_and_a_word() {
        let at = "2026-10-14T00:00:00Z";
        let outcomes = ["completed", "partial", "failed", "blocked", "skipped", "started", "of a person"];
        let mut forms = BTreeSet::new();
        for outcome in outcomes {
            let drawn = svg(&[row("pending", &[(at, outcome)], None)], "T", &|_| None).unwrap().into_string();
            let look = outcome_look(outcome);
            let key = drawn.split("timeline-key").last().unwrap().split(look.class()).nth(1).unwrap();
            assert!(key.contains(sign_words(look)), "{drawn}");
            // The form is the name of the element, which precedes the class, and everything that follows the class.
            forms.insert(
                drawn
                    .split(&format!("mark {}", look.class()))
                    .next()
                    .unwrap()
                    .rsplit('<')
                    .next()
                    .unwrap()
                    .to_owned()
                    + key,
            );
            assert!(outcome == "completed" || look != Look::Completed, "{outcome}");
        }
        assert_eq!(forms.len(), outcomes.len());
    }

    #[test]
    fn the_labels_of_the_axis_are_inside_the_drawing() {
        let rows = [row(
            "completed",
            &[("2026-10-10T00:00:00Z", "started"), ("2026-10-15T00:00:00Z", "completed")],
            None,
        )];
        let drawn = svg(&rows, "Timeline", &|_| None).unwrap().into_string();
        assert!(
            drawn.contains(&format!("x=\"{}\" y=\"14\" text-anchor=\"end\">2026-10-15", WIDTH - 2)),
            "{drawn}"
        );
        assert!(drawn.contains("y=\"14\">2026-10-10"), "{drawn}");
    }
}
