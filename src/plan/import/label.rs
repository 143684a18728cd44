//! Labels, ids and statuses in headings and items of plans: `Task 3:`, `Phase 1 –`, `T001`, `(done)`, `[~]`.

use std::ops::Range;

use crate::plan::references;
use crate::plan::words::{StepStatus, Words};
use crate::text::markdown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    Step,
    Phase,
    /// A number without a word.
    Bare,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub(super) rank: Rank,
    pub(super) number: &'a str,
    pub(super) rest: &'a str,
}

/// Words, separated by spaces.
const STEP_WORDS: &str =
    "step task todo story ticket action passo tarefa paso tarea schritt aufgabe tâche item";
const PHASE_WORDS: &str = "phase stage milestone sprint week part chunk iteration wave epic etapa fase day \
                           batch round étape track";

/// Hides code and comments in a text, because they cannot describe a step. The result has as many bytes as the text, so
/// positions in both are the same.
///
/// A code span that contains only a name or a status is not hidden, because `` Depends on: `Task 1` `` names a task.
pub(super) fn visible(text: &str) -> String {
    markdown::masked(text, |it| {
        let is_label = || label_in(it).is_some_and(|found| found.2 == it.len());
        let is_status = || Words::default().read::<StepStatus>(it).is_some();
        references::read_target(it).is_some()
            || is_label()
            || is_status()
            || id(it).is_some_and(|id| id.len() == it.len())
    })
}

/// Reads the label of a heading or an item, if it has one. Text that [`visible`] hides is ignored.
pub(super) fn label(text: &str) -> Option<Label<'_>> {
    let (rank, number, rest) = label_in(&visible(text))?;
    Some(Label { rank, number: text.get(number)?, rest: text.get(rest..)? })
}

/// The id in front of a title. It consists of letters and a number: `T001`, `TASK-12`, `[US-3]`.
pub(super) fn id(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || "*_[(`".contains(c));
    let letters = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let number = text[letters..].strip_prefix('-').unwrap_or(&text[letters..]);
    let digits = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let id = text[..text.len() - number.len() + digits].trim_end_matches('.');
    let is_cut = !text[id.len()..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/'));
    let is_word = |of: &str| of.split(' ').any(|it| it == text[..letters].to_lowercase());
    let is_id = (1..=12).contains(&letters) && number.starts_with(|c: char| c.is_ascii_digit());
    (is_id && is_cut && !is_word(STEP_WORDS) && !is_word(PHASE_WORDS)).then_some(id)
}

/// The rank of a label that begins with this word, which is in lower case.
pub(super) fn rank_of(word: &str) -> Option<Rank> {
    let ranks = [(STEP_WORDS, Rank::Step), (PHASE_WORDS, Rank::Phase)];
    ranks.into_iter().find(|(words, _)| words.split(' ').any(|it| it == word)).map(|it| it.1)
}

/// Finds a label. Returns its rank, the range of its number, and the position of the text after the label.
fn label_in(whole: &str) -> Option<(Rank, Range<usize>, usize)> {
    let boxed = own_box(whole).map_or(0, |it| whole.len() - it.1.len());
    let start = boxed + whole[boxed..].find(char::is_alphanumeric)?;
    // If a backtick precedes the label, a backtick after the label ends the same code span. Otherwise a backtick after the
    // label belongs to the title.
    let is_marked = whole[..start].contains('`');
    let text = &whole[start..];
    let word_end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    let word = text[..word_end].to_lowercase();
    let rank = if word.is_empty() { Rank::Bare } else { rank_of(&word)? };
    let behind = text[word_end..].trim_start_matches([' ', '-', '#', '\u{a0}']);
    let end = behind.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(behind.len());
    let number = behind[..end].trim_end_matches('.');
    if number.is_empty() || number.len() > 12 || number.starts_with('.') {
        return None;
    }
    let after = &behind[number.len()..];
    let is_cut = after.is_empty() || after.starts_with([':', '.', ')', ' ', '*', ']', '—', '–', '`', '\t']);
    // `3 days` and `2026-11-21` are not labels.
    let is_bare_label = after.starts_with(['.', ')', ':']) || number.contains('.');
    if !is_cut || (rank == Rank::Bare && (!is_bare_label || number.split('.').next()?.len() > 3)) {
        return None;
    }
    let is_mark = |c: char| c.is_whitespace() || ".):—–-*]".contains(c) || (c == '`' && is_marked);
    // The target of a link whose text is the label, as in `[step-1](step-1.md): Title`.
    let target =
        after.strip_prefix("](").filter(|_| whole[..start].ends_with('[')).and_then(|it| it.split_once(')'));
    let after = target.map_or(after, |it| it.1);
    let rest = whole.len() - after.trim_start_matches(is_mark).len();
    let at = whole.len() - behind.len();
    Some((rank, at..at + number.len(), rest))
}

pub(super) fn clean(text: &str) -> String {
    let text = crate::text::placeholders::one_line(text);
    let text = text.trim_matches(|c: char| c == '*' || c.is_whitespace());
    // `**` in code is not a mark of emphasis.
    let mut cleaned = String::new();
    let mut from = 0;
    for (at, marks) in visible(text).match_indices("**") {
        cleaned.push_str(&text[from..at]);
        from = at + marks.len();
    }
    cleaned.push_str(&text[from..]);
    cleaned.trim_end_matches([':', '.']).trim().to_owned()
}

/// The status of a heading or an item, from a word at its end, such as `(done)`, or from a sign, such as `✅` or `~~`.
pub(super) fn status(text: &str, words: &Words) -> Option<StepStatus> {
    let text = visible(text);
    let text = text.trim();
    if let Some((status, _)) = own_box(text) {
        return Some(status);
    }
    if text.contains(['✅', '✔', '☑']) {
        return Some(StepStatus::Completed);
    }
    if text.contains('🚧') {
        return Some(StepStatus::InProgress);
    }
    if text.starts_with("~~") && text.trim_end_matches('.').ends_with("~~") {
        return Some(StepStatus::Skipped);
    }
    let text = text.trim_end_matches(['*', '_', '`', '.']);
    let last = match text.chars().next_back()? {
        ')' => &text[text.rfind('(')? + 1..text.len() - 1],
        ']' => {
            let at = text.rfind('[')?;
            if let Some((status, _)) = own_box(&text[at..]).filter(|_| text[..at].ends_with(' ')) {
                return Some(status);
            }
            &text[at + 1..text.len() - 1]
        }
        _ => text.rsplit_once(['—', '–']).map(|it| it.1)?,
    };
    words.read(last.trim())
}

/// A title without the status or the signs that [`status`] reads.
pub(super) fn without_status(title: &str, words: &Words) -> String {
    let title = own_box(title).map_or(title, |it| it.1);
    let title =
        title.trim_matches(|c: char| matches!(c, '✅' | '✔' | '☑' | '🚧' | '\u{fe0f}') || c.is_whitespace());
    let cut = visible(title).rfind(['(', '[', '—', '–']).map(|it| title[..it].trim_end());
    let is_said = status(title, words).is_some() && !title.starts_with("~~");
    clean(cut.filter(|it| is_said && !it.is_empty()).unwrap_or(title).trim_matches('~'))
}

/// Reads a box at the beginning of a heading. Returns its status and the text after it.
fn own_box(text: &str) -> Option<(StepStatus, &str)> {
    let text = text.trim_start();
    let boxes =
        [("[x]", StepStatus::Completed), ("[X]", StepStatus::Completed), ("[ ]", StepStatus::Pending)];
    let read = |(mark, status)| Some((status, text.strip_prefix(mark)?));
    let found = boxes.into_iter().find_map(read).or_else(|| odd_box(text))?;
    (!found.1.starts_with('(')).then(|| (found.0, found.1.trim_start()))
}

/// Reads a mark in brackets that is not a task box of GFM, and returns its status and the text after it. `[~]`, `[/]` and
/// `[>]` mean in progress, `[-]` means skipped, `[!]` means blocked.
pub(super) fn odd_box(text: &str) -> Option<(StepStatus, &str)> {
    let (mark, rest) = text.strip_prefix('[')?.split_once(']')?;
    let status = match mark {
        "~" | "/" | ">" => StepStatus::InProgress,
        "-" => StepStatus::Skipped,
        "!" => StepStatus::Blocked,
        _ => return None,
    };
    Some((status, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Rank, &str, &str)>) {
        assert_eq!(label(text).map(|it| (it.rank, it.number, it.rest)), expected, "{text}");
    }

    #[test]
    fn labels_are_read_and_dates_are_not() {
        check("Task 1: Set up", Some((Rank::Step, "1", "Set up")));
        check("**Step 2.5** — Go", Some((Rank::Step, "2.5", "Go")));
        check("✅ Phase 3 (week 1)", Some((Rank::Phase, "3", "(week 1)")));
        check("step-0: Begin", Some((Rank::Step, "0", "Begin")));
        check("3.1 Models", Some((Rank::Bare, "3.1", "Models")));
        check("1. Models", Some((Rank::Bare, "1", "Models")));
        check("Task 10", Some((Rank::Step, "10", "")));
        check("[step-1](step-1.md): One", Some((Rank::Step, "1", "One")));
        check("**[Step 2](step-2.md)**: Two", Some((Rank::Step, "2", "Two")));
        check("step-3: [Three](x.md)", Some((Rank::Step, "3", "[Three](x.md)")));
        check("`Task 1`: Set up", Some((Rank::Step, "1", "Set up")));
        check("Task 1: `a` and `b`", Some((Rank::Step, "1", "`a` and `b`")));
        check("`3.1 a` Models", None);
        check("[x] Step 2: Two", Some((Rank::Step, "2", "Two")));
        for text in ["3 days", "2026-11-21", "2026. A year", "Tasks", "Step by step", "Part of it", "v1.2"] {
            check(text, None);
        }
    }

    #[test]
    fn ids_are_letters_and_a_number() {
        for (text, expected) in [
            ("T001 [P] Create it", Some("T001")),
            ("**FEAT-12.3**: Create it", Some("FEAT-12.3")),
            ("[US-3] Create it", Some("US-3")),
            ("Phase 1", None),
            ("step-1", None),
            ("v2beta it", None),
            ("Create T001", None),
            ("2026-01-02", None),
        ] {
            assert_eq!(id(text), expected, "{text}");
        }
    }

    #[test]
    fn a_suffix_or_a_sign_states_the_status() {
        let words = Words::default();
        for (text, expected) in [
            ("Set up (done)", Some(StepStatus::Completed)),
            ("Set up [IN PROGRESS]", Some(StepStatus::InProgress)),
            ("Set up — blocked", Some(StepStatus::Blocked)),
            ("✅ Set up", Some(StepStatus::Completed)),
            ("Set up [x]", Some(StepStatus::Completed)),
            ("Set up [-]", Some(StepStatus::Skipped)),
            ("[ ] Set up", Some(StepStatus::Pending)),
            ("[x](link.md) and more", None),
            ("Sort a[x]", None),
            ("~~Set up~~", Some(StepStatus::Skipped)),
            ("Set up (two days)", None),
            ("Print `(done)`", None),
            ("Print `✅` — `done`", None),
            ("Set up <!-- ✅ -->", None),
            ("Print `(wip)` (done)", Some(StepStatus::Completed)),
            ("Set up", None),
        ] {
            assert_eq!(status(text, &words), expected, "{text}");
        }
        assert_eq!(without_status("Use `a (b)` (done)", &words), "Use `a (b)`");
        assert_eq!(without_status("Use `a (done)`", &words), "Use `a (done)`");
        assert_eq!(clean("**Use** `a ** b`:"), "Use `a ** b`");
        assert_eq!(odd_box("[~] go"), Some((StepStatus::InProgress, "go")));
    }
}
