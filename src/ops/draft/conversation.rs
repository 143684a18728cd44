//! A conversation as it is given to an agent: all of it or, if it is too long, its last turns. If even the last turn is too
//! long, only the end of this turn is given. A turn is usually a message of a person and the answers to it; see [`turns`].

use std::collections::HashMap;
use std::ops::Range;

/// The maximum number of turns that are kept of a conversation that is too long.
const TURNS: usize = 10;

/// Names that transcripts use for the person. A line with such a name as its label (see [`label`]) begins a turn.
const PERSONS: [&str; 4] = ["user", "human", "you", "me"];

/// Names that transcripts use for the assistant.
const OTHERS: [&str; 10] =
    ["assistant", "ai", "agent", "model", "bot", "system", "claude", "codex", "gemini", "chatgpt"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) text: String,
    /// A sentence about what was left out; none if nothing was.
    pub(super) left_out: Option<String>,
}

/// Cuts a conversation down to `limit` bytes.
pub(super) fn fitted(text: &str, limit: usize) -> Conversation {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.len() <= limit {
        return Conversation { text: text.to_owned(), left_out: None };
    }
    let turns = turns(text);
    let kept = turns.iter().rev().take(TURNS).take_while(|it| text.len() - it.start <= limit);
    let (mut n, mut start) = (0, text.len());
    for turn in kept {
        (n, start) = (n + 1, turn.start);
    }
    let said = if n == 0 {
        start = line_start(text, text.len() - limit);
        format!("the last {} of its {} bytes are used", text.len() - start, text.len())
    } else {
        format!("the last {n} of its {} turns are used", turns.len())
    };
    let left_out = Some(format!("the conversation is too long for the agent; {said}"));
    Conversation { text: text[start..].to_owned(), left_out }
}

/// The start of the first line that begins after an offset; if there is none, the first character boundary at or after the
/// offset.
fn line_start(text: &str, at: usize) -> usize {
    let at = (at..=text.len()).find(|it| text.is_char_boundary(*it)).unwrap_or(text.len());
    let behind = text[at..].find('\n').map(|it| at + it + 1);
    behind.filter(|it| *it < text.len()).unwrap_or(at)
}

/// The turns. Each begins at a line that names the person as the speaker. Text before the first one is a turn, too.
///
/// If only assistants are named, each line that names one begins a turn. If fewer than two lines name the person or an
/// assistant, a turn begins at each line that starts with a repeated name and a colon. If several names are repeated, only
/// the first of them in the text counts. If there is no such name, each paragraph is a turn.
///
/// Code, quotations and indented lines are searched for speakers only if no other line has a known name.
fn turns(text: &str) -> Vec<Range<usize>> {
    let is_in = |names: &[&str], line: &str| {
        label(line).is_some_and(|it| names.contains(&it.to_lowercase().as_str()))
    };
    let is_message = |line: &str, _: &str| is_in(&PERSONS, line) || is_in(&OTHERS, line);
    let marks = quoted(text);
    let own = without(text, &marks);
    let text = if starts(&own, &is_message).is_empty() { text } else { &own };
    let messages = starts(text, &is_message);
    let mut starts = self::starts(text, &|line, _| is_in(&PERSONS, line));
    if messages.len() > 1 && starts.is_empty() {
        starts = messages;
    } else if messages.len() < 2 {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        text.lines().filter_map(colon_label).for_each(|it| *counts.entry(it).or_default() += 1);
        let is_often = |label: &str| counts.get(label).is_some_and(|it| *it > 1);
        let first = text.lines().filter_map(colon_label).find(|it| is_often(it));
        starts = self::starts(text, &|line, _| first.is_some() && colon_label(line) == first);
    }
    if starts.is_empty() {
        starts = self::starts(text, &|line, before| !line.trim().is_empty() && before.trim().is_empty());
    }
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

/// Returns for each line whether it is code, a quotation or indented. A code fence that is never closed does not count.
fn quoted(text: &str) -> Vec<bool> {
    let mut marks: Vec<bool> = Vec::new();
    let mut fence: Option<(usize, &str)> = None;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim();
        marks.push(line.starts_with([' ', '\t', '>']));
        match fence {
            Some((from, mark))
                if bare.starts_with(mark) && bare.trim_start_matches(&mark[..1]).is_empty() =>
            {
                marks[from..=at].fill(true);
                fence = None;
            }
            Some(_) => {}
            None => {
                let run = |c: char| &bare[..bare.len() - bare.trim_start_matches(c).len()];
                let mark = ['`', '~'].into_iter().map(run).find(|it| it.len() >= 3);
                fence = mark.map(|mark| (at, mark));
            }
        }
    }
    marks
}

/// The text with hyphens in place of the marked lines, so that all lines keep their offsets.
fn without(text: &str, marks: &[bool]) -> String {
    let mut kept = String::with_capacity(text.len());
    for (line, is_marked) in text.split_inclusive('\n').zip(marks) {
        let bare = line.trim_end_matches('\n');
        kept.push_str(&if *is_marked { "-".repeat(bare.len()) } else { bare.to_owned() });
        kept.push_str(&line[bare.len()..]);
    }
    kept
}

/// The offsets of the lines that `is_first` accepts. `is_first` gets each line and the line before it.
fn starts(text: &str, is_first: &dyn Fn(&str, &str) -> bool) -> Vec<usize> {
    let (mut at, mut before, mut starts) = (0, "", Vec::new());
    for line in text.split_inclusive('\n') {
        if is_first(line, before) {
            starts.push(at);
        }
        (at, before) = (at + line.len(), line);
    }
    starts
}

/// The name in `## User`, `**User:**`, `[User]` or `User: …`.
fn label(line: &str) -> Option<&str> {
    let is_mark = |c: char| "#*_[]<>`".contains(c) || c.is_whitespace();
    let is_heading = line.starts_with('#');
    let bare = line.trim_matches(is_mark);
    match bare.split_once(':') {
        Some((name, _)) => Some(name.trim_matches(is_mark)),
        None => (is_heading || line.starts_with(['*', '['])).then_some(bare),
    }
}

/// A short name before a colon: `Anna Berg: …`.
fn colon_label(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let name = name.trim_matches(|c: char| "#*_ ".contains(c));
    let is_name = name.starts_with(char::is_uppercase) && name.split(' ').count() <= 3 && name.len() <= 40;
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_turns(text: &str, n: usize) {
        assert_eq!(turns(text).len(), n, "{text}");
    }

    #[test]
    fn turns_are_split_by_their_speakers() {
        check_turns("User: a\nb\n\nAssistant: c\n\nUser: d", 2);
        check_turns("## User\na\n## Assistant\n\n### Why\nb", 1);
        check_turns("**Human:** a\n**AI:** b\n**AI:** c\n**Human:** d", 2);
        check_turns("A talk\n\nUser: a\nAssistant: b", 2);
        check_turns("Anna: a\nBerg: b\nAnna: c\nBerg: d\nNote: e", 2);
        check_turns("Assistant: a\nAssistant: b", 2);
        check_turns("one\n\ntwo\nmore\n\n\nthree", 3);
        check_turns("one line", 1);
        check_turns("User: use this\n\n    user: root\n    image: x\n\nAssistant: ok\nUser: thanks", 2);
        check_turns("User: use this\n```yaml\nuser: root\nmodel: x\n```\nAssistant: ok\nUser: thanks", 2);
        check_turns("User: use this\n> user: root\n> human: yes\n\nAssistant: ok\nUser: thanks", 2);
        check_turns("User: a\n```\nAssistant: no end\nUser: b", 2);
        check_turns("> User: a\n> Assistant: b\n> User: c", 2);
    }

    #[test]
    fn the_last_ten_turns_are_kept() {
        let talk: String = (1..=30).map(|n| format!("User: wish {n}\nAssistant: noted {n}\n")).collect();
        let whole = fitted(&talk, 100_000);
        assert_eq!((whole.text.as_str(), whole.left_out), (talk.trim(), None));
        let cut = fitted(&talk, 400);
        assert!(cut.text.starts_with("User: wish 21\n") && cut.text.ends_with("noted 30"), "{}", cut.text);
        let said = cut.left_out.unwrap();
        assert_eq!(said, "the conversation is too long for the agent; the last 10 of its 30 turns are used");
    }

    #[test]
    fn fewer_are_kept_if_ten_are_too_long_and_a_part_of_one() {
        let talk: String = (1..=20).map(|n| format!("User: {n} {}\n", "ä".repeat(40))).collect();
        let cut = fitted(&talk, 300);
        assert!(cut.text.len() <= 300 && cut.text.starts_with("User: 18 "), "{}", cut.text);
        let cut = fitted(&format!("User: {}", "ä".repeat(500)), 101);
        assert!(cut.text.len() <= 101 && cut.text.chars().all(|it| it == 'ä'), "{}", cut.text);
    }
}
