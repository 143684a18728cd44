//! Finds texts of a step that look like a dependency but are in a form that planwatch does not read.
//!
//! Only names of earlier steps and of steps of other plans are reported, and only in these places:
//! - directly after a word such as "depends on" at the beginning of a line;
//! - in a section whose heading resembles `Dependencies`;
//! - in a line of the Dependencies section that Markdown parses as HTML;
//! - as an id such as `auth:2` in the Dependencies section.

use std::ops::Range;

use super::{Section, means_none, mentions, read_section, read_target, section, without_parentheses};
use crate::plan::id::{StepId, read_step_id};
use crate::plan::step_number::StepNumber;
use crate::text::markdown::{self, Outline};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Line,
    /// A section with a heading like `Dependencies` that is not the Dependencies section.
    Heading,
    /// A line of the Dependencies section that Markdown parses as HTML.
    Html,
    /// An id such as `auth:2` in the Dependencies section.
    Id,
}

/// A part of the body that looks like a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) form: Form,
    /// The range of its first line in the body, without the blanks around the line.
    pub(crate) text: Range<usize>,
}

/// The maximum number of findings that are reported; a file with more is probably about something else.
const MOST: usize = 10;

/// Words at the beginning of a line, and whether a number or an id such as `plan:3` may follow without the word "step".
const LABELS: [(&str, bool); 11] = [
    ("depends on", true),
    ("depends-on", true),
    ("depends_on", true),
    ("depends", true),
    ("dependencies", true),
    ("dependency", true),
    ("blocked by", true),
    ("requires", false),
    ("waits for", false),
    ("waiting for", false),
    ("needs", false),
];

/// Headings that mean the same as `Dependencies`.
const HEADINGS: [&str; 8] = [
    "dependencies",
    "dependency",
    "depends",
    "depends on",
    "step dependencies",
    "task dependencies",
    "prerequisites",
    "blocked by",
];

/// Blanks and marks that may be around a label and before a name: those of emphasis, lists, tables, headings, links and
/// code.
const MARKS: [char; 12] = [' ', '\t', '*', '_', '`', '|', '#', '-', '+', ':', '[', '\u{a0}'];

/// Finds text that looks like a dependency on a step for which `is_known` returns false.
pub(crate) fn find(
    step: &StepId,
    (body, outline): (&str, &Outline),
    numbers: &[StepNumber],
    is_known: &dyn Fn(&StepId) -> bool,
) -> Vec<Unread> {
    let own = section(outline);
    let has_html = own.clone().is_some_and(|it| body[it].contains('<'));
    let has_colon = own.clone().is_some_and(|it| body[it].contains(':'));
    let is_like = |text: &str| HEADINGS.iter().any(|it| it.eq_ignore_ascii_case(bare(text)));
    let is_read = |at: usize| own.as_ref().is_some_and(|it| it.start == at || it.contains(&at));
    let like = |nth: &usize| {
        let heading = &outline.headings[*nth];
        is_like(&heading.text) && !is_read(heading.span.end)
    };
    let headings: Vec<_> = (0..outline.headings.len()).filter(like).collect();
    // For nearly every text the search ends here.
    if headings.is_empty() && !has_html && !has_colon && !body.lines().any(|it| label(it).is_some()) {
        return Vec::new();
    }
    let finder = Finder { step, numbers, is_known };
    let text = markdown::masked(body, |it| read_target(it).is_some() || read_step_id(it).is_some());
    let is_own = |at: usize| own.as_ref().is_some_and(|it| it.contains(&at));
    let mut found = Vec::new();
    for nth in headings {
        let heading = &outline.headings[nth];
        let after = &outline.headings[nth + 1..];
        let end = after.iter().find(|it| it.level <= heading.level).map_or(body.len(), |it| it.span.start);
        if finder.names_in_section(&body[heading.span.end..end]) {
            found.push(Unread { form: Form::Heading, text: trimmed(body, heading.span.clone()) });
        }
    }
    let has_steps = own.clone().is_some_and(|it| !begins_with_none(&text[it]));
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let span = at..at + line.len();
        at = span.end;
        let is_html = || body[span.clone()].contains('<') && finder.names(line);
        let form = match is_own(span.start) {
            true if !has_steps => None,
            true if is_html() => Some(Form::Html),
            true => finder.has_id(line).then_some(Form::Id),
            false => finder.is_dependency(line).then_some(Form::Line),
        };
        found.extend(form.map(|form| Unread { form, text: trimmed(body, span) }));
    }
    found.truncate(MOST);
    found
}

struct Finder<'a> {
    step: &'a StepId,
    numbers: &'a [StepNumber],
    is_known: &'a dyn Fn(&StepId) -> bool,
}

impl Finder<'_> {
    /// Whether a step could be a dependency (it is an earlier step or is in another plan) but is not known as one.
    fn is_unread(&self, id: &StepId) -> bool {
        (id.plan != self.step.plan || id.number < self.step.number) && !(self.is_known)(id)
    }

    fn names(&self, text: &str) -> bool {
        let found = mentions::find(self.step, &without_parentheses(text), self.numbers);
        found.steps.iter().any(|it| self.is_unread(it))
    }

    /// Whether a line contains the id of a step, such as `auth:2`. A large number is taken for a port.
    fn has_id(&self, line: &str) -> bool {
        let text = without_parentheses(line);
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let ids = words.map(|it| it.trim_matches(|c: char| !c.is_alphanumeric()));
        let mut ids = ids.filter(|it| it.contains(':') && it.starts_with(char::is_alphabetic));
        ids.any(|it| {
            read_step_id(it).is_some_and(|it| it.number < StepNumber::whole(1000) && self.is_unread(&it))
        })
    }

    fn names_in_section(&self, text: &str) -> bool {
        match read_section(self.step, text, self.numbers) {
            Section::Steps(steps, _) => steps.iter().any(|it| self.is_unread(it)),
            Section::None | Section::Unclear => false,
        }
    }

    fn is_dependency(&self, line: &str) -> bool {
        let Some((rest, is_strong)) = label(line) else { return false };
        let is_list =
            rest.starts_with(':') || rest.trim_start_matches(['*', '_', ' ']).starts_with([':', '[', '|']);
        let rest = rest.trim_start_matches(MARKS).trim_end();
        let word =
            rest.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).next().unwrap_or_default();
        let word = word.trim_end_matches(['.', '`', '*', '_', ')', ']', '|']);
        let folded = word.to_ascii_lowercase();
        match folded.as_str() {
            "all" | "every" | "each" | "the" | "previous" | "preceding" | "prior" | "earlier" => {
                let found = mentions::find(self.step, &without_parentheses(line), self.numbers);
                found.says_all && found.steps.iter().any(|it| self.is_unread(it))
            }
            it if it.starts_with("step") => self.names(rest),
            it if it.contains("/step-") || it.contains(":step-") => self.names(rest),
            _ if !is_strong => false,
            it if it.starts_with(|c: char| c.is_ascii_digit()) => is_list && self.names(&bare_list(rest)),
            _ => read_step_id(word).is_some_and(|it| self.is_unread(&it)),
        }
    }
}

/// Whether a Dependencies section is empty or says that there are no dependencies. `masked` is the section in the form
/// that `markdown::masked` returns.
fn begins_with_none(masked: &str) -> bool {
    means_none(masked.trim_start_matches(MARKS).trim_start(), masked)
}

/// The text after one of the [`LABELS`] at the beginning of a line, and the flag of that label. Marks and a number may
/// precede the label.
fn label(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start_matches(MARKS);
    let rest = rest.strip_prefix("x] ").or_else(|| rest.strip_prefix("] ")).unwrap_or(rest);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start_matches(['.', ')']).trim_start_matches(MARKS);
    // Most lines need no comparison with the labels.
    if !rest.starts_with(['d', 'D', 'b', 'B', 'r', 'R', 'w', 'W', 'n', 'N']) {
        return None;
    }
    LABELS.iter().find_map(|(label, is_strong)| {
        let head = rest.get(..label.len()).filter(|it| it.eq_ignore_ascii_case(label))?;
        let rest = &rest[head.len()..];
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        ends.then_some((rest, *is_strong))
    })
}

/// A heading without its number and its marks, up to the first parenthesis, bracket or colon.
fn bare(heading: &str) -> &str {
    let text = heading.trim_start_matches(|c: char| !c.is_alphabetic());
    let text = text.split(['(', '[', ':']).next().unwrap_or_default();
    text.trim_end_matches(|c: char| !c.is_alphabetic())
}

/// A list of numbers without the marks after it: `1, 2` for `1, 2]`.
fn bare_list(rest: &str) -> String {
    rest.trim_end_matches([']', ')', '|', '*', '_', '.', ' ']).to_owned()
}

fn trimmed(body: &str, span: Range<usize>) -> Range<usize> {
    let text = body[span.clone()].trim_start();
    let start = span.end - text.len();
    start..start + text.lines().next().unwrap_or_default().trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::PlanId;
    use crate::plan::references::read_item;

    fn step(text: &str) -> StepId {
        read_item(&PlanId::new("p"), text).expect("it is a step")
    }

    /// What is found in a text of step 5.
    fn found(body: &str) -> Vec<(Form, &str)> {
        let numbers: Vec<StepNumber> = (1..9).map(StepNumber::whole).collect();
        let outline = markdown::sections(body);
        let read = section(&outline).map(|it| read_section(&step("5"), &body[it], &numbers));
        let is_read = |it: &StepId| matches!(&read, Some(Section::Steps(steps, _)) if steps.contains(it));
        let found = find(&step("5"), (body, &outline), &numbers, &is_read);
        found.into_iter().map(|it| (it.form, &body[it.text])).collect()
    }

    #[test]
    fn forms_that_are_not_read_are_found() {
        for line in [
            "Depends: step-1",
            "depends on step 2",
            "**Depends on** step-1",
            "**Depends on:** step-1 and step-2",
            "- Depends on: `step-1`",
            "* [ ] Depends on [step-1](step-1.md)",
            "1. Depends on step-3.",
            "Dependencies: 1, 2",
            "_Dependencies_: steps 1-3",
            "depends: [1, 2]",
            "depends_on: 1",
            "Depends-On: step-1",
            "Depends on all previous steps",
            "Blocked by: other:3",
            "Blocked by other/step-2",
            "Requires step-2 to be completed first.",
            "Needs step 3 (the schema).",
            "Waits for step-1",
            "| Depends on | step-1 |",
            "### Depends on step-1",
        ] {
            for body in [format!("{line}\n"), format!("# Five\n\nText.\n{line}\n\n## Tasks\n- one\n")] {
                assert_eq!(found(&body), [(Form::Line, line)], "{body}");
            }
        }
        for heading in [
            "## 2. Dependencies",
            "## 2) Dependencies",
            "#### Dependencies",
            "# Dependencies",
            "## **Dependencies**",
            "## Dependencies (steps)",
            "## Dependency",
            "## Depends on",
            "### Step dependencies:",
            "## 🔗 Dependencies",
            "## Prerequisites",
        ] {
            let body = format!("# Five\n\n{heading}\n\n- step-1\n- step-2\n\n## Tasks\n");
            assert_eq!(found(&body), [(Form::Heading, heading)]);
        }
        let second = "## Dependencies\nstep-1\n\n## More\n\n## Dependencies\nstep-2\n";
        assert_eq!(found(second), [(Form::Heading, "## Dependencies")]);
        for line in ["<!-- none --> step-1", "<p>Requires step-1 and step-2</p>"] {
            assert_eq!(found(&format!("## Dependencies\n\n{line}\n")), [(Form::Html, line)]);
        }
        assert_eq!(
            found("## Dependencies\nstep-1\n\n<!-- and --> step-2\n"),
            [(Form::Html, "<!-- and --> step-2")]
        );
        for line in ["other:3 and step-1", "- step-1, `p:2`.", "step-1 and [other:2.5](x.md)"] {
            assert_eq!(found(&format!("## Dependencies\n\n{line}\n")), [(Form::Id, line)]);
        }
    }

    #[test]
    fn other_texts_are_not_found() {
        for body in [
            "Depends on the schema",
            "Depends on how step-1 went",
            "It depends: step-1 may fail",
            "This depends on step-1",
            "Depends on step-7",
            "Depends on step-5",
            "Depends: none",
            "Dependencies: Node 18, Python 3",
            "Dependencies: 3 packages",
            "dependencies: 2024-11-03",
            "depends on 3 services",
            "depends on 2 to 3 days of work",
            "Requires Node 18",
            "Requires node:18",
            "Requires 2 reviewers",
            "Requires: 1",
            "Needs steps to reproduce",
            "After step-1, run the tests",
            "See step-1",
            "> Depends on step-1",
            "`Depends: step-1`",
            "```yaml\ndepends: [1]\n```",
            "    depends: [1]",
            "<!-- Depends: step-1 -->",
            "dependsOn: step-1",
            "Depends on (step-1 was dropped)",
            "## Dependencies\n\nstep-1\n\nDepends on: step-1\n",
            "## Dependencies\n\nNone, <b>step-1</b> is separate\n",
            "## Dependencies\n\nNone, other:3 is separate\n",
            "## Dependencies\n\nstep-1 (other:3 would be nice), and localhost:8080\n",
            "## Dependencies\n\nstep-1, p:1, p:7: later\n",
            "## Dependencies\n\n<!-- step-1 -->\n",
            "## Dependencies\n\n<b>step-1</b>\n",
            "## Dependencies\n\n<!-- a comment -->\nstep-1\n",
            "## Dependencies:\n\n- step-1\n",
            "## 2. Dependencies\n\n- react 18\n- vite\n",
            "## Prerequisites\n\n- Node 18\n- 2 GB of memory\n",
            "## 2. Dependencies\n\nNone\n",
            "## Dependencies between modules\n\nstep-1 made them\n",
        ] {
            assert_eq!(found(body), [], "{body}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "depends", " on ", "Dependencies", "## ", "step-1", "1", "\n", ":", "<!--", "-->", "<b>", "*", "`", "ß", "İ", "(", ")",
                    "[", "]", "|", "p:", "2.5", " ", "all previous steps", "\r\n", "\u{a0}",
                ]),
                0..24,
            ),
        ) {
            found(&words.concat());
        }
    }
}
