//! What headings and items of plans begin and end with: `Task 3:`, `Phase 1 –`, `(done)`, `depends on 2`.

use crate::plan::words::{StepStatus, Words};

/// What a heading says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    Step,
    Phase,
    /// A number without a word.
    Bare,
}

/// The beginning of a heading or item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub(super) rank: Rank,
    pub(super) number: &'a str,
    /// What stands behind it.
    pub(super) rest: &'a str,
}

const STEP_WORDS: [&str; 14] = [
    "step", "task", "todo", "story", "ticket", "action", "passo", "tarefa", "paso", "tarea", "schritt",
    "aufgabe", "tâche", "item",
];

const PHASE_WORDS: [&str; 17] = [
    "phase",
    "stage",
    "milestone",
    "sprint",
    "week",
    "part",
    "chunk",
    "iteration",
    "wave",
    "epic",
    "etapa",
    "fase",
    "day",
    "batch",
    "round",
    "étape",
    "track",
];

/// Reads the label of a heading or an item, if it has one.
pub(super) fn label(text: &str) -> Option<Label<'_>> {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let word_end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    let word = text[..word_end].to_lowercase();
    let rank = match word.as_str() {
        "" => Rank::Bare,
        it if STEP_WORDS.contains(&it) => Rank::Step,
        it if PHASE_WORDS.contains(&it) => Rank::Phase,
        _ => return None,
    };
    let behind = text[word_end..].trim_start_matches([' ', '-', '#', '\u{a0}']);
    let end = behind.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(behind.len());
    let number = behind[..end].trim_end_matches('.');
    if number.is_empty() || number.len() > 12 || number.starts_with('.') {
        return None;
    }
    let after = &behind[number.len()..];
    let is_cut = after.is_empty() || after.starts_with([':', '.', ')', ' ', '*', ']', '—', '–', '`', '\t']);
    // `3 days` is no label, and neither is `2026-11-21`.
    let is_bare_label = after.starts_with(['.', ')', ':']) || number.contains('.');
    if !is_cut || (rank == Rank::Bare && (!is_bare_label || number.split('.').next()?.len() > 3)) {
        return None;
    }
    let rest = after.trim_start_matches(|c: char| c.is_whitespace() || ".):—–-*]`".contains(c));
    Some(Label { rank, number, rest })
}

/// A title without marks of emphasis around it.
pub(super) fn clean(text: &str) -> String {
    let text = crate::text::placeholders::one_line(text);
    let text = text.trim_matches(|c: char| c == '*' || c.is_whitespace());
    text.replace("**", "").trim_end_matches([':', '.']).trim().to_owned()
}

/// What a heading or an item says at its end, or with a sign, about where it stands.
pub(super) fn status(text: &str, words: &Words) -> Option<StepStatus> {
    let text = text.trim();
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
        ']' => &text[text.rfind('[')? + 1..text.len() - 1],
        _ => text.rsplit_once(['—', '–']).map(|it| it.1)?,
    };
    words.read(last.trim())
}

/// A title without what [`status`] read at its end, or the signs.
pub(super) fn without_status(title: &str, words: &Words) -> String {
    let title =
        title.trim_matches(|c: char| matches!(c, '✅' | '✔' | '☑' | '🚧' | '\u{fe0f}') || c.is_whitespace());
    let cut = title.rfind(['(', '[', '—', '–']).map(|it| title[..it].trim_end());
    let is_said = status(title, words).is_some() && !title.starts_with("~~");
    clean(cut.filter(|it| is_said && !it.is_empty()).unwrap_or(title).trim_matches('~'))
}

/// A mark in brackets that is no task box of GFM: `[~]` under way, `[-]` left out, `[!]` stuck.
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

/// The status that a line `Status: …` of a text says.
pub(super) fn stated(text: &str, words: &Words) -> Option<StepStatus> {
    let values = text.lines().filter_map(|it| value_of(it, &["status"]));
    values
        .filter_map(|it| {
            let it = it.trim_start_matches(|c: char| !c.is_alphanumeric());
            let end =
                it.find(|c: char| !c.is_alphanumeric() && !matches!(c, ' ' | '-' | '_')).unwrap_or(it.len());
            words.read(it[..end].trim())
        })
        .next()
}

/// The labels that a text says it waits for, as they are written: `Depends on: Task 1, 2`.
pub(super) fn waits_for(text: &str) -> Vec<String> {
    const KEYS: [&str; 6] = ["depends on", "depends", "dependencies", "dependency", "blocked by", "requires"];
    text.lines().filter_map(|it| value_of(it, &KEYS)).flat_map(numbers).collect()
}

/// What stands behind a line's key and colon, if it has one of these keys.
fn value_of<'a>(line: &'a str, keys: &[&str]) -> Option<&'a str> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*_>(|".contains(c));
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end_matches(['*', '_', ' ']).to_lowercase();
    keys.contains(&key.as_str()).then_some(value)
}

/// The numbers behind words of steps; where there is no word at all, all numbers.
fn numbers(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_named = false;
    let lower = value.to_lowercase();
    let has_words = lower.chars().any(char::is_alphabetic);
    for token in lower.split(|c: char| !(c.is_alphanumeric() || c == '.')).filter(|it| !it.is_empty()) {
        let singular = token.trim_end_matches('s');
        let token = token.trim_matches('.');
        if STEP_WORDS.contains(&singular) || PHASE_WORDS.contains(&singular) {
            is_named = true;
        } else if token.starts_with(|c: char| c.is_ascii_digit()) {
            let is_number = token.chars().all(|c| c.is_ascii_digit() || c == '.');
            found.extend((is_number && (is_named || !has_words)).then(|| token.to_owned()));
        } else if !matches!(token, "and" | "to" | "e" | "y" | "und") {
            is_named = false;
        }
    }
    found
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
        for text in ["3 days", "2026-11-21", "2026. A year", "Tasks", "Step by step", "Part of it", "v1.2"] {
            check(text, None);
        }
    }

    #[test]
    fn an_end_or_a_sign_says_where_it_stands() {
        let words = Words::default();
        for (text, expected) in [
            ("Set up (done)", Some(StepStatus::Completed)),
            ("Set up [IN PROGRESS]", Some(StepStatus::InProgress)),
            ("Set up — blocked", Some(StepStatus::Blocked)),
            ("✅ Set up", Some(StepStatus::Completed)),
            ("~~Set up~~", Some(StepStatus::Skipped)),
            ("Set up (two days)", None),
            ("Set up", None),
        ] {
            assert_eq!(status(text, &words), expected, "{text}");
        }
        assert_eq!(stated("a\n**Status:** ✅ Complete (b)\n", &words), Some(StepStatus::Completed));
        assert_eq!(odd_box("[~] go"), Some((StepStatus::InProgress, "go")));
    }

    #[test]
    fn what_is_waited_for_is_named() {
        assert_eq!(waits_for("**Depends on:** Task 1, 2 and Step 3.5\n"), ["1", "2", "3.5"]);
        assert_eq!(waits_for("- Dependencies: 1, 2"), ["1", "2"]);
        assert_eq!(waits_for("Dependencies: node 20, none\nThis depends on 3"), Vec::<String>::new());
    }
}
