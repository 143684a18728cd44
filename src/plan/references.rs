//! Dependencies in prose: `(depends: …)` in a Steps list, `step-N` in a Dependencies section.

mod links;
mod mentions;
pub(crate) mod unread;

use std::collections::HashMap;
use std::ops::Range;

pub(crate) use links::{MovedFile, followed as followed_links, followed_step as followed_step_links};

use crate::plan::id::{PlanId, StepId, read_number, read_step_id};
use crate::plan::ranges::StepRange;
use crate::plan::step_number::StepNumber;
use crate::text::front_matter;
use crate::text::markdown::{self, Outline};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Section {
    /// The section is empty, or begins with `None`, `n/a`, `na`, `–` or `—`.
    None,
    Steps(Vec<StepId>, Vec<StepRange>),
    /// There is text, but no reference in it.
    Unclear,
}

/// Reads one item of a `depends` list or of a `(depends: …)`: a number, `step-N`, or a step of another plan.
pub(crate) fn read_item(plan: &PlanId, text: &str) -> Option<StepId> {
    let text = text.trim();
    let own = read_number(text).map(|number| StepId { plan: plan.clone(), number });
    own.or_else(|| read_step_id(text))
}

/// Reads the steps that a Dependencies section names, as single steps, ranges or `all previous steps`. `numbers` are the
/// numbers of the plan's steps, sorted.
///
/// Text in parentheses, the step itself and later steps of its plan are ignored. Names in code, comments and URLs are
/// ignored, too, but a code span that consists only of a name counts.
pub(crate) fn read_section(step: &StepId, section: &str, numbers: &[StepNumber]) -> Section {
    let said = markdown::prose(section, |it| read_target(it).map(|number| format!("step-{number}")));
    let text = without_parentheses(&said);
    let start =
        text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '+' | '_' | '`'));
    if means_none(start, &text) {
        return Section::None;
    }
    let found = mentions::find(step, &text, numbers);
    if found.is_empty() {
        return Section::Unclear;
    }
    let mut steps = found.steps;
    steps.retain(|it| it.plan != step.plan || it.number < step.number);
    Section::Steps(steps, found.ranges)
}

/// Returns whether a step's file names another step in its Dependencies section. A range counts only for the two steps
/// at its ends. "All previous steps" and "the previous step" do not count.
pub(crate) fn are_in_prose(step: &StepId, file: &[u8], named: &StepId) -> bool {
    let section = section_of(file).map(|it| read_section(step, it, &[]));
    matches!(section, Some(Section::Steps(steps, _)) if steps.contains(named))
}

/// Returns whether a step's text declares that it depends on all previous steps, without naming them.
pub(crate) fn say_all(step: &StepId, file: &[u8]) -> bool {
    section_of(file).is_some_and(|it| mentions::find(step, &without_parentheses(it), &[]).says_all)
}

fn section_of(file: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(&file[front_matter::split(file).body_start()..]).ok()?;
    section(&markdown::outline(body)).map(|it| &body[it])
}

pub(crate) fn section(outline: &Outline) -> Option<Range<usize>> {
    outline.section(|it| it.trim_end_matches(':').eq_ignore_ascii_case("dependencies"))
}

/// Reads the name of a step of the same plan in a code span or a link: `step-1`, `step-1.md`, `./step-1.md`.
pub(crate) fn read_target(text: &str) -> Option<StepNumber> {
    let name = text.trim().trim_start_matches("./");
    name.strip_suffix(".md").unwrap_or(name).strip_prefix("step-")?.parse().ok()
}

fn means_none(start: &str, whole: &str) -> bool {
    let folded = start.get(..start.len().min(8)).unwrap_or(start).to_lowercase();
    let word_ends = |len: usize| folded[len..].chars().next().is_none_or(|c| !c.is_alphanumeric());
    let is_word = ["none", "n/a", "na"].iter().any(|it| folded.starts_with(it) && word_ends(it.len()));
    is_word || start.is_empty() || whole.trim_start().starts_with(['–', '—'])
}

/// Returns the longest number at the start of a text; a point that ends a sentence is not part of it.
pub(crate) fn number_at(text: &str) -> &str {
    let digits = |it: &str| it.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 { &text[..whole + 1 + fraction] } else { &text[..whole] }
}

/// Returns the plan of a reference. `before` is the text before the reference. `None`: the reference is the end of another
/// word.
fn plan_before(own: &PlanId, before: &str) -> Option<PlanId> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    if before.chars().next_back().is_some_and(is_name) {
        return None;
    }
    let Some(before) = before.strip_suffix([':', '/']) else { return Some(own.clone()) };
    let name = before.rsplit(|c: char| !is_name(c)).next().unwrap_or_default();
    let is_plan = !name.is_empty() && !name.starts_with('.');
    Some(if is_plan { PlanId::new(name) } else { own.clone() })
}

/// Removes parentheses and the text in them; a parenthesis that is never closed stays.
fn without_parentheses(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut opened: Vec<usize> = Vec::new();
    for c in text.chars() {
        match c {
            '(' => {
                opened.push(kept.len());
                kept.push(c);
            }
            ')' if !opened.is_empty() => kept.truncate(opened.pop().unwrap_or_default()),
            _ => kept.push(c),
        }
    }
    kept
}

/// A `(depends: …)` in a text, such as a line of the Steps list. All ranges are byte ranges of that text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// With its parentheses.
    pub(crate) span: Range<usize>,
    pub(crate) items: Vec<Named>,
    /// Whether the closing parenthesis exists; without it, items may be missing.
    pub(crate) is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// Includes the marks of emphasis and code around the item.
    pub(crate) outer: Range<usize>,
    pub(crate) span: Range<usize>,
    /// `None`: the item names no step.
    pub(crate) step: Option<StepId>,
}

/// Finds every `(depends: …)` and `(depends on …)` of a text, such as a line of the Steps list. A group can contain line
/// breaks.
///
/// A group whose parenthesis is never closed ends at the end of the line in which it begins.
pub(crate) fn groups(plan: &PlanId, text: &str) -> Vec<Group> {
    let (folded, closings) = (on_one_line(text), closings(text));
    let mut found: Vec<Group> = Vec::new();
    for (open, _) in folded.match_indices('(') {
        let is_inside = found.last().is_some_and(|it| open < it.span.end);
        let Some(list) = list_start(&folded, open + 1).filter(|_| !is_inside) else { continue };
        let close = closings.get(&open).copied();
        let end = close.unwrap_or_else(|| text[open..].find(['\r', '\n']).map_or(text.len(), |it| open + it));
        let span = open..close.map_or(end, |it| it + 1);
        found.push(Group {
            span,
            items: named(plan, (text, &folded), &(list.min(end)..end)),
            is_closed: close.is_some(),
        });
    }
    found
}

/// Converts ASCII letters to lower case and line ends to spaces. Byte positions do not change.
fn on_one_line(text: &str) -> String {
    text.to_ascii_lowercase().replace(['\r', '\n'], " ")
}

/// Returns where the items begin, if the word after a parenthesis is `depends`, `depends on` or `depends:`.
fn list_start(folded: &str, from: usize) -> Option<usize> {
    let rest = folded[from..].trim_start().strip_prefix("depends")?;
    if rest.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t', '-', '_']);
    let on = rest.strip_prefix("on").filter(|it| !it.starts_with(|c: char| c.is_alphanumeric()));
    let rest = on.unwrap_or(rest).trim_start();
    Some(folded.len() - rest.strip_prefix(':').unwrap_or(rest).len())
}

/// Maps the position of each opening parenthesis that is closed to the position of its closing parenthesis.
fn closings(text: &str) -> HashMap<usize, usize> {
    let (mut open, mut closed) = (Vec::new(), HashMap::new());
    for (at, c) in text.match_indices(['(', ')']) {
        match c {
            "(" => open.push(at),
            _ => drop(open.pop().map(|it| closed.insert(it, at))),
        }
    }
    closed
}

fn named(plan: &PlanId, (text, folded): (&str, &str), list: &Range<usize>) -> Vec<Named> {
    let mut items = Vec::new();
    let mut start = list.start;
    let separators = folded[list.clone()].char_indices().filter_map(|(at, c)| {
        let at = list.start + at;
        let is_and = folded[at..list.end].starts_with(" and ");
        matches!(c, ',' | ';' | '&').then_some((at, 1)).or(is_and.then_some((at, 5)))
    });
    for (at, len) in separators.chain([(list.end, 0)]) {
        items.extend(item(plan, text, start.min(at)..at));
        start = at + len;
    }
    items
}

/// Reads one item; `None` for an empty item and for words such as `none`.
fn item(plan: &PlanId, text: &str, range: Range<usize>) -> Option<Named> {
    let outer = trimmed(text, range, char::is_whitespace);
    let span = trimmed(text, outer.clone(), |c| c.is_whitespace() || matches!(c, '`' | '*' | '_'));
    let it = &text[span.clone()];
    let means_none = ["none", "nothing", "n/a", "-", "–", "—"].iter().any(|no| it.eq_ignore_ascii_case(no));
    let step = read_named(plan, it);
    (!it.is_empty() && !means_none).then_some(Named { outer, span, step })
}

fn trimmed(text: &str, range: Range<usize>, is_mark: impl Fn(char) -> bool) -> Range<usize> {
    let it = text[range.clone()].trim_start_matches(&is_mark);
    let start = range.end - it.len();
    start..start + it.trim_end_matches(&is_mark).len()
}

/// Reads what [`read_item`] reads, and also `Step 1`, `step-1.md` and a link to a step's file.
fn read_named(plan: &PlanId, text: &str) -> Option<StepId> {
    if let Some((label, target)) = split_link(text) {
        let number = read_target(target);
        let file = number.map(|number| StepId { plan: plan.clone(), number });
        return file.or_else(|| read_named(plan, label));
    }
    let word = text.get(..4).filter(|it| it.eq_ignore_ascii_case("step"));
    let number = word.and_then(|_| text[4..].strip_prefix(['-', ' ']));
    let own = number.and_then(|it| it.trim_start().trim_end_matches(".md").parse().ok());
    own.map(|number| StepId { plan: plan.clone(), number }).or_else(|| read_item(plan, text))
}

fn split_link(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.strip_suffix(')')?.split_once("](")
}

/// Names a step in the form that `old` has: `step-2`, `2`, `p:2`, `p/step-2`, `[step-2](step-2.md)`.
pub(crate) fn respelled(own: &PlanId, old: &str, new: &StepId) -> String {
    if let Some((label, target)) = split_link(old) {
        if new.plan != *own {
            return new.to_string();
        }
        let is_name = read_named(own, label).is_some();
        let label = if is_name { respelled(own, label, new) } else { label.to_owned() };
        return format!("[{label}]({})", respelled(own, target, new));
    }
    let bare = old.strip_suffix(".md").unwrap_or(old);
    let head = bare.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let tail = &old[bare.len()..];
    let number = &new.number;
    match head.rfind([':', '/']).filter(|_| !head.starts_with('.')) {
        None if new.plan != *own => new.to_string(),
        Some(at) if PlanId::new(&head[..at]) != new.plan => {
            format!("{}{}{number}{tail}", new.plan, &head[at..])
        }
        _ => format!("{head}{number}{tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> StepId {
        read_item(&PlanId::new("p"), text).expect("it is a step")
    }

    fn named_steps(steps: Vec<StepId>) -> Section {
        Section::Steps(steps, Vec::new())
    }

    #[track_caller]
    fn check(section: &str, expected: &Section) {
        let numbers: Vec<StepNumber> = (1..9).map(StepNumber::whole).collect();
        assert_eq!(read_section(&step("5"), section, &numbers), *expected, "{section}");
    }

    #[test]
    fn a_section_names_steps_or_none() {
        check("None", &Section::None);
        check("\n- None (or: Requires step-1 to be completed first)\n", &Section::None);
        check("n/a", &Section::None);
        check("–", &Section::None);
        check("  \n", &Section::None);
        check("Requires step-1 and `step-2.5`.", &named_steps(vec![step("1"), step("2.5")]));
        check("- step-3: the schema (see step-4)", &named_steps(vec![step("3")]));
        check("step-5 itself, step-9 later, step-1", &named_steps(vec![step("1")]));
        check("other:step-9 and other/step-2.", &named_steps(vec![step("other:9"), step("other:2")]));
        check("the schema must be there", &Section::Unclear);
        check("Nonetheless step-1", &named_steps(vec![step("1")]));
        check("misstep-1", &Section::Unclear);
        check("before step-9", &named_steps(Vec::new()));
        let all = ["1", "2", "3", "4"].map(step).to_vec();
        check("Requires all previous steps (step-9 would be nice)", &named_steps(all.clone()));
        check("Steps 1-7", &named_steps(all));
        check("None of the previous steps", &Section::None);
    }

    #[test]
    fn names_in_code_comments_and_addresses_do_not_count() {
        check("`cp step-1.md x`, <!-- step-2 --> http://x/step-3 and <http://x/step-3>", &Section::Unclear);
        check("```\nstep-1\n```\n", &Section::Unclear);
        check("<!-- step-1 -->", &Section::None);
        check("`step-1.md`, [the schema](step-2.md)", &named_steps(vec![step("1"), step("2")]));
        check("- [step-1](./step-1.md)\n- http://x (y) step-2", &named_steps(vec![step("1"), step("2")]));
    }

    #[track_caller]
    fn check_groups(line: &str, expected: &[Option<&str>]) {
        let found = groups(&PlanId::new("p"), line);
        let found: Vec<_> = found.into_iter().flat_map(|it| it.items).map(|it| it.step).collect();
        assert_eq!(found, expected.iter().map(|it| it.map(step)).collect::<Vec<_>>(), "{line}");
    }

    #[test]
    fn a_steps_line_says_its_dependencies() {
        check_groups("A (b) (depends: step-0, 1.5)", &[Some("0"), Some("1.5")]);
        check_groups("A (depends on step-1 and other:3) (optional)", &[Some("1"), Some("other:3")]);
        check_groups(
            "A (Depends: `step-1`; Step 2 & [step-3](step-3.md))",
            &[Some("1"), Some("2"), Some("3")],
        );
        check_groups("A (depends: 1) (depends: 2)", &[Some("1"), Some("2")]);
        check_groups("A (depends: none)", &[]);
        check_groups("A (depends: )", &[]);
        check_groups("A (draft) (dependsable: 1)", &[]);
        for text in
            ["stpe-1", "foo", "step-1..step-3", "step-1–step-3", "1-3", "step-1 (x)", "step 1 2", "on"]
        {
            check_groups(&format!("A (depends: {text})"), &[None]);
        }
        check_groups("A (depends: step-1, foo", &[Some("1"), None]);
        assert!(!groups(&PlanId::new("p"), "A (depends: step-1")[0].is_closed);
    }

    #[test]
    fn a_step_is_named_again_in_the_same_way() {
        let own = PlanId::new("p");
        for (old, new, expected) in [
            ("2", "4", "4"),
            ("step-2", "4.5", "step-4.5"),
            ("p/step-2", "4", "p/step-4"),
            ("p:2.5", "4", "p:4"),
            ("step-2.md", "4", "step-4.md"),
            ("[step-2](./step-2.md)", "4", "[step-4](./step-4.md)"),
            ("[the schema](step-2.md)", "4", "[the schema](step-4.md)"),
            ("q:2", "q:3", "q:3"),
            ("q/step-2", "p:3", "p/step-3"),
            ("step-2", "q:3", "q:3"),
            ("[step-2](step-2.md)", "q:3", "q:3"),
        ] {
            assert_eq!(respelled(&own, old, &step(new)), expected, "{old}");
        }
    }
}
