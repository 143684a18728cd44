//! Dependencies as prose says them: `(depends: …)` in a Steps list, `step-N` in a Dependencies section.

use crate::plan::id::{PlanId, StepId, read_number, read_step_id};
use crate::plan::step_number::StepNumber;

/// What a Dependencies section says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Section {
    /// It is empty or begins with None.
    None,
    Steps(Vec<StepId>),
    /// There is text, but no reference in it.
    Unclear,
}

/// Reads one item of a `depends` list or of a `(depends: …)`: a number, `step-N`, or a step of another plan.
pub(crate) fn read_item(plan: &PlanId, text: &str) -> Option<StepId> {
    let text = text.trim();
    let own = read_number(text).map(|number| StepId { plan: plan.clone(), number });
    own.or_else(|| read_step_id(text))
}

/// Reads the `step-N` references of a Dependencies section.
///
/// Text in parentheses, the step itself and later steps of its plan do not count.
pub(crate) fn read_section(step: &StepId, section: &str) -> Section {
    let text = without_parentheses(section);
    let start =
        text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '+' | '_' | '`'));
    if says_none(start, &text) {
        return Section::None;
    }
    let mut steps = references(&step.plan, &text);
    let n_found = steps.len();
    steps.retain(|it| it.plan != step.plan || it.number < step.number);
    if n_found == 0 { Section::Unclear } else { Section::Steps(steps) }
}

fn says_none(start: &str, whole: &str) -> bool {
    let folded = start.get(..start.len().min(8)).unwrap_or(start).to_lowercase();
    let word_ends = |len: usize| folded[len..].chars().next().is_none_or(|c| !c.is_alphanumeric());
    let is_word = ["none", "n/a", "na"].iter().any(|it| folded.starts_with(it) && word_ends(it.len()));
    is_word || start.is_empty() || whole.trim_start().starts_with(['–', '—'])
}

/// Finds `step-N`, `plan:step-N` and `plan/step-N` in a text, in order, each once.
pub(crate) fn references(plan: &PlanId, text: &str) -> Vec<StepId> {
    let folded = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, word) in folded.match_indices("step-") {
        let digits = number_at(&text[at + word.len()..]);
        let Ok(number) = digits.parse::<StepNumber>() else { continue };
        let Some(plan) = plan_before(plan, &text[..at]) else { continue };
        let id = StepId { plan, number };
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// Returns the longest number at the start of a text; a point that ends a sentence is not part of it.
pub(crate) fn number_at(text: &str) -> &str {
    let digits = |it: &str| it.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 { &text[..whole + 1 + fraction] } else { &text[..whole] }
}

/// Returns the plan that a reference belongs to; none if it is the tail of another word.
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

/// Cuts the outermost parentheses with what is in them; an open one without an end stays.
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

/// Takes the `(depends: …)` at the end of a Steps line apart: the text before it, and its references.
pub(crate) fn split_depends<'a>(plan: &PlanId, line: &'a str) -> (&'a str, Option<Vec<StepId>>) {
    let Some(open) = line.rfind('(').filter(|_| line.trim_end().ends_with(')')) else { return (line, None) };
    let inner = line[open + 1..].trim_end().trim_end_matches(')').trim();
    let folded = inner.to_ascii_lowercase();
    let Some(head) = ["depends on", "depends"].iter().find(|it| folded.starts_with(**it)) else {
        return (line, None);
    };
    let list = inner[head.len()..].trim_start().trim_start_matches(':');
    let parts = list
        .split([',', ';', '&'])
        .flat_map(|it| it.split(" and "))
        .map(|it| it.trim_matches(|c: char| c.is_whitespace() || c == '`'));
    let items = parts.filter(|it| !it.is_empty() && !it.eq_ignore_ascii_case("none"));
    (line[..open].trim_end(), Some(items.filter_map(|it| read_item(plan, it)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> StepId {
        read_item(&PlanId::new("p"), text).expect("it is a step")
    }

    #[track_caller]
    fn check(section: &str, expected: &Section) {
        assert_eq!(read_section(&step("5"), section), *expected, "{section}");
    }

    #[test]
    fn a_section_names_steps_or_none() {
        check("None", &Section::None);
        check("\n- None (or: Requires step-1 to be completed first)\n", &Section::None);
        check("n/a", &Section::None);
        check("–", &Section::None);
        check("  \n", &Section::None);
        check("Requires step-1 and `step-2.5`.", &Section::Steps(vec![step("1"), step("2.5")]));
        check("- step-3: the schema (see step-4)", &Section::Steps(vec![step("3")]));
        check("step-5 itself, step-9 later, step-1", &Section::Steps(vec![step("1")]));
        check("other:step-9 and other/step-2.", &Section::Steps(vec![step("other:9"), step("other:2")]));
        check("the schema must be there", &Section::Unclear);
        check("Nonetheless step-1", &Section::Steps(vec![step("1")]));
        check("misstep-1", &Section::Unclear);
        check("before step-9", &Section::Steps(Vec::new()));
    }

    #[test]
    fn a_steps_line_ends_with_its_dependencies() {
        let plan = PlanId::new("p");
        assert_eq!(
            split_depends(&plan, "A (b) (depends: step-0, 1.5)"),
            ("A (b)", Some(vec![step("0"), step("1.5")]))
        );
        assert_eq!(
            split_depends(&plan, "A (depends on step-1 and other:3)"),
            ("A", Some(vec![step("1"), step("other:3")]))
        );
        assert_eq!(split_depends(&plan, "A (depends: none)"), ("A", Some(Vec::new())));
        assert_eq!(split_depends(&plan, "A (draft)"), ("A (draft)", None));
    }
}
