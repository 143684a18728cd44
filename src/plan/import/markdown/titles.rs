//! Makes the title of a step. If the step was a list item, removes the item's indentation from the text.

use super::super::label;
use crate::plan::id::PlanId;
use crate::text::placeholders;

/// The maximum number of characters in the title of a list item or a todo; a longer one is shortened.
const LONG: usize = 100;

/// Returns the title of an item and the beginning of the step's text. The text begins with a heading. If the item is too
/// long for a heading, the whole item follows.
pub(super) fn titled(text: &str) -> (String, String) {
    let line = placeholders::one_line(text);
    let behind = label::label(&line).map_or(line.as_str(), |it| it.rest);
    let bold = behind.strip_prefix("**").or_else(|| line.strip_prefix("**"));
    // `**` in code does not end the bold text.
    let bold = bold.and_then(|it| it.get(..label::visible(it).find("**")?));
    let title = match bold {
        Some(title) if title.len() > 2 => label::label(title).map_or(title, |it| it.rest),
        _ => behind,
    };
    let title = without_parentheses(title, &line);
    if line.chars().count() <= LONG {
        return (title, format!("# {line}\n"));
    }
    let title = shortened(&title);
    (title.clone(), format!("# {title}\n\n{}\n", text.trim()))
}

/// Shortens a long title to its first sentence. If that sentence is also too long, cuts the title between words.
fn shortened(title: &str) -> String {
    if title.chars().count() <= LONG {
        return title.to_owned();
    }
    let sentence =
        label::visible(title).find(". ").map(|it| &title[..it]).filter(|it| it.chars().count() <= LONG);
    let cut = || {
        let end = title.char_indices().nth(LONG - 1).map_or(title.len(), |it| it.0);
        let end = title[..end].rfind(' ').unwrap_or(end);
        format!("{}…", title[..end].trim_end_matches([',', ';', ':', ' ']))
    };
    sentence.map_or_else(cut, str::to_owned)
}

/// Removes each `(depends: …)` from a title and cleans what is left ([`label::clean`]). If nothing is left, only cleans
/// `whole` and returns it.
pub(super) fn without_parentheses(title: &str, whole: &str) -> String {
    let plan = PlanId::new("plan");
    let mut text = title.to_owned();
    for group in crate::plan::references::groups(&plan, &label::visible(title)).into_iter().rev() {
        text.replace_range(group.span, "");
    }
    let text = label::clean(&text);
    if text.is_empty() { label::clean(whole) } else { text }
}

/// Removes the common indentation from the text that follows an item's title.
pub(super) fn dedented(text: &str) -> String {
    let blank = |it: &&str| !it.trim().is_empty();
    let indent = |it: &str| it.len() - it.trim_start_matches([' ', '\t']).len();
    let lines = text.lines().skip(usize::from(!text.starts_with('\n')));
    let least = lines.clone().filter(blank).map(indent).min().unwrap_or(0);
    let first = text.lines().next().unwrap_or_default().trim();
    let rest: Vec<_> = lines.map(|it| it.get(least..).unwrap_or_default()).collect();
    let rest = rest.join("\n");
    if first.is_empty() { rest } else { format!("{first}\n{rest}") }
}

/// The column where the text of an item begins, by the rules of CommonMark. `at` is the byte position of the item's list
/// marker.
pub(super) fn content_column(body: &str, at: usize) -> usize {
    let line = body[..at].rfind('\n').map_or(0, |it| it + 1);
    let indent = body[line..].len() - body[line..].trim_start_matches(' ').len();
    let item = body[line + indent..].lines().next().unwrap_or_default();
    let mark = item.find([' ', '\t']).unwrap_or(item.len());
    let spaces = item[mark..].len() - item[mark..].trim_start_matches(' ').len();
    // Five or more spaces are one space and the indentation of a code block.
    indent + mark + if (1..=4).contains(&spaces) { spaces } else { 1 }
}

/// Like [`dedented`], for a text with indented code blocks. Lines in the first `paragraph` bytes continue the item's own
/// paragraph, so all their indentation is removed. From each later line, at most `column` columns of indentation are
/// removed.
pub(super) fn with_code(text: &str, column: usize, paragraph: usize) -> String {
    let mut result = Vec::new();
    let mut at = 0;
    for (nth, line) in text.split('\n').enumerate() {
        let start = at;
        at += line.len() + 1;
        let line = line.trim_end_matches('\r');
        let bare = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - bare.len()];
        let columns = indent.chars().fold(0, |it, c| if c == '\t' { it / 4 * 4 + 4 } else { it + 1 });
        let left = if nth == 0 || start < paragraph { 0 } else { columns - columns.min(column) };
        if !indent.contains('\t') || left == 0 {
            result.push(line[indent.len() - left..].to_owned());
        } else {
            result.push(" ".repeat(left) + bare);
        }
    }
    if result.first().is_some_and(String::is_empty) {
        result.remove(0);
    }
    result.join("\n")
}
