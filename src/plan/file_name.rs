//! Classifies the names of files in a plan's directory.

use crate::plan::step_number::StepNumber;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileName {
    /// `plan.md`.
    Plan,
    /// `step-<number>.md`.
    Step(StepNumber),
    /// A name that resembles a step's name, such as `step_3.md`. It is reported, and the file is not read.
    LooksLikeStep,
    /// Any other name. planwatch ignores the file.
    Other,
}

pub const PLAN_FILE: &str = "plan.md";

/// Classifies a name. The names of editors' own files (`step-1.md~`, `.#step-1.md`) are [`FileName::Other`].
pub fn classify(name: &str) -> FileName {
    if name == PLAN_FILE {
        return FileName::Plan;
    }
    let exact = name.strip_prefix("step-").and_then(|it| it.strip_suffix(".md"));
    if let Some(Ok(number)) = exact.map(str::parse) {
        return FileName::Step(number);
    }
    if looks_like_step(name) { FileName::LooksLikeStep } else { FileName::Other }
}

/// Returns whether the number in a step's file name looks like a version, such as `1.10`.
pub fn looks_like_version(name: &str) -> bool {
    let number = name.strip_prefix("step-").and_then(|it| it.strip_suffix(".md"));
    let fraction = number.and_then(|it| it.split_once('.')).map(|(_, fraction)| fraction);
    fraction.is_some_and(|it| it.len() > 1 && it.ends_with('0'))
}

pub fn step_file(number: &StepNumber) -> String {
    format!("step-{number}.md")
}

/// Whether a name begins with `step` or `steps` and ends with the extension of a Markdown or text file. The part between
/// them must consist of punctuation, or begin with a number after optional punctuation. Case is ignored.
fn looks_like_step(name: &str) -> bool {
    let folded = name.trim().to_lowercase();
    let stem = [".md", ".markdown", ".mdown", ".mkd", ".md.txt", ".txt"]
        .iter()
        .find_map(|it| folded.strip_suffix(it));
    let Some(rest) = stem.and_then(|it| it.strip_prefix("step")) else { return false };
    let marked = rest.trim_start_matches('s');
    let number = marked.trim_start_matches(['-', '–', '—', '_', ' ', '.', '#', '+']);
    number.starts_with(char::is_numeric) || (number.is_empty() && !marked.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_the_exact_grammar() {
        let step = |text: &str| FileName::Step(text.parse().expect("a number"));
        let cases = [
            ("plan.md", FileName::Plan),
            ("step-0.md", step("0")),
            ("step-03.md", step("3")),
            ("step-2.50.md", step("2.5")),
            ("step_3.md", FileName::LooksLikeStep),
            ("Step-3.MD", FileName::LooksLikeStep),
            ("step-3b.md", FileName::LooksLikeStep),
            ("step3.md", FileName::LooksLikeStep),
            ("step-1234567890.md", FileName::LooksLikeStep),
            ("step-1 (copy).md", FileName::LooksLikeStep),
            ("step-.md", FileName::LooksLikeStep),
            ("step-+1.md", FileName::LooksLikeStep),
            ("step-1.md~", FileName::Other),
            (".#step-1.md", FileName::Other),
            ("steps.md", FileName::Other),
            ("step.md", FileName::Other),
            ("stepping.md", FileName::Other),
            ("notes.md", FileName::Other),
            ("step-one.md", FileName::Other),
        ];
        for (name, meaning) in cases {
            assert_eq!(classify(name), meaning, "{name}");
        }
    }

    #[test]
    fn a_trailing_zero_looks_like_a_version() {
        assert!(looks_like_version("step-1.10.md"));
        assert!(!looks_like_version("step-1.1.md"));
        assert!(!looks_like_version("step-3.0.md"));
        assert!(!looks_like_version("step-10.md"));
    }
}
