//! The `## Steps` list of a plan's body: which steps it names, and lines added or removed in its own style.

use std::ops::Range;

use crate::plan::id::{PlanId, StepId};
use crate::plan::references;
use crate::plan::step_number::StepNumber;
use crate::text::front_matter;
use crate::text::markdown::{self, Item, Outline};

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) number: StepNumber,
    pub(crate) title: String,
    /// None: the line says nothing about dependencies.
    pub(crate) depends: Option<Vec<StepId>>,
    /// The item in the body, from its list mark to the end of its children.
    pub(crate) span: Range<usize>,
}

/// Returns whether a body has a Steps list that names a step.
pub(crate) fn names_steps(plan: &PlanId, body: &str) -> bool {
    !read(plan, &markdown::outline(body)).is_empty()
}

/// Returns a `plan.md` whose list also names this step; one without a list, or that names it already, as it is.
pub(crate) fn with_step(
    plan: &PlanId,
    file: &[u8],
    number: &StepNumber,
    title: &str,
    depends: Option<Vec<StepId>>,
) -> Vec<u8> {
    let Some((start, body)) = body_of(file) else { return file.to_vec() };
    let listed = read(plan, &markdown::outline(body));
    let step = Listed { number: number.clone(), title: title.to_owned(), depends, span: 0..0 };
    let is_named = listed.iter().any(|it| it.number == *number);
    match insertion(plan, body, &listed, &step).filter(|_| !is_named) {
        Some((at, text)) => [&file[..start + at], text.as_bytes(), &file[start + at..]].concat(),
        None => file.to_vec(),
    }
}

/// Returns a `plan.md` whose list no longer names this step.
pub(crate) fn without_step(plan: &PlanId, file: &[u8], number: &StepNumber) -> Vec<u8> {
    let Some((start, body)) = body_of(file) else { return file.to_vec() };
    let listed = read(plan, &markdown::outline(body));
    let Some(line) = listed.iter().find(|it| it.number == *number) else { return file.to_vec() };
    let range = deletion(body, line);
    [&file[..start + range.start], &file[start + range.end..]].concat()
}

fn body_of(file: &[u8]) -> Option<(usize, &str)> {
    let start = front_matter::split(file).body_start();
    Some((start, std::str::from_utf8(&file[start..]).ok()?))
}

/// Reads the list below the heading Steps; items that name no step are not planwatch's.
pub(crate) fn read(plan: &PlanId, outline: &Outline) -> Vec<Listed> {
    let is_steps = |it: &str| it.trim_end_matches(':').eq_ignore_ascii_case("steps");
    let Some(section) = outline.section(is_steps) else { return Vec::new() };
    let inside = outline.items.iter().filter(|it| section.contains(&it.span.start));
    inside.filter_map(|it| read_item(plan, it)).collect()
}

fn read_item(plan: &PlanId, item: &Item) -> Option<Listed> {
    let (text, depends) = references::split_depends(plan, &item.text);
    let (number, title) = read_link(text).or_else(|| read_plain(text))?;
    let title = title
        .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '-' | '–' | '—' | '*' | '_'));
    Some(Listed { number, title: title.trim().to_owned(), depends, span: item.span.clone() })
}

/// `step-1: Title`, `**step-1** – Title`, `` `step-1` Title ``.
fn read_plain(text: &str) -> Option<(StepNumber, String)> {
    let is_mark = |c: char| matches!(c, '*' | '_' | '`' | '[');
    let bare = text.trim_start_matches(is_mark);
    let rest = bare.get(..5).filter(|it| it.eq_ignore_ascii_case("step-")).map(|_| &bare[5..])?;
    let digits = references::number_at(rest);
    let behind = &rest[digits.len()..];
    if behind.starts_with(char::is_alphanumeric) {
        return None;
    }
    let title = behind.trim_start_matches(".md").trim_start_matches(['*', '_', '`', ']']);
    Some((digits.parse().ok()?, title.to_owned()))
}

/// `[step-1](step-1.md): Title` and `[Title](step-1.md)`.
fn read_link(text: &str) -> Option<(StepNumber, String)> {
    let (label, rest) = text.trim_start_matches(['*', '_']).strip_prefix('[')?.split_once("](")?;
    let (target, behind) = rest.split_once(')')?;
    let name = target.trim_start_matches("./");
    let number = name.strip_prefix("step-")?.strip_suffix(".md")?.parse().ok()?;
    let title = match read_plain(label) {
        Some((_, title)) if title.is_empty() => behind.to_owned(),
        Some((_, title)) => title,
        None => label.to_owned(),
    };
    Some((number, title))
}

/// Returns the bytes to insert, and where, so that the list names a new step, in the style of its neighbour.
///
/// None if the body has no list. `body` is the text that `listed` was read from.
fn insertion(plan: &PlanId, body: &str, listed: &[Listed], step: &Listed) -> Option<(usize, String)> {
    let before = listed.iter().rfind(|it| it.number < step.number);
    let model = before.or_else(|| listed.first())?;
    let source = &body[model.span.clone()];
    let first_line = source.lines().next().unwrap_or_default();
    let line = format!("{}{}", restyle(first_line, model, step), depends_text(plan, step));
    let eol = if body.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = indent_before(body, model.span.start);
    match before {
        None => Some((model.span.start - indent.len(), format!("{indent}{line}{eol}"))),
        Some(_) => {
            let end = model.span.start + source.trim_end().len();
            Some((end, format!("{eol}{indent}{line}")))
        }
    }
}

/// Returns the bytes to delete so that the list no longer names a step.
fn deletion(body: &str, listed: &Listed) -> Range<usize> {
    let start = listed.span.start - indent_before(body, listed.span.start).len();
    let item = &body[listed.span.clone()];
    let end = listed.span.start + item.trim_end().len();
    let eol = body[end..].find('\n').map_or(body.len(), |it| end + it + 1);
    if eol == body.len() && !body.ends_with('\n') {
        let start = body[..start].trim_end_matches(['\r', '\n']).len();
        return start..body.len();
    }
    start..eol
}

fn indent_before(body: &str, at: usize) -> &str {
    let start = body[..at].rfind('\n').map_or(0, |it| it + 1);
    &body[start..at]
}

/// Writes a new line with the list mark, the task box and the form of a neighbour's.
fn restyle(model_line: &str, model: &Listed, step: &Listed) -> String {
    let mark_end = model_line.find(|c: char| c.is_alphabetic() || matches!(c, '[' | '*' | '`')).unwrap_or(0);
    let mark_end = if model_line.starts_with(['*', '-', '+']) {
        model_line.len() - model_line[1..].trim_start().len()
    } else {
        mark_end
    };
    let (mark, rest) = model_line.split_at(mark_end.min(model_line.len()));
    let is_box = |it: &str| it.len() >= 4 && it.starts_with('[') && &it[2..4] == "] ";
    let task = if is_box(rest) { "[ ] " } else { "" };
    let link = rest.contains(&format!("](step-{}.md)", model.number)) || rest.contains("](./step-");
    let number = &step.number;
    let titled_link = link && !rest.to_ascii_lowercase().contains("[step-");
    let head = match (titled_link, link, rest.contains("**step-")) {
        (true, ..) => format!("[{}](step-{number}.md)", step.title),
        (_, true, _) => format!("[step-{number}](step-{number}.md): {}", step.title),
        (_, _, true) => format!("**step-{number}**: {}", step.title),
        _ => format!("step-{number}: {}", step.title),
    };
    format!("{}{task}{head}", next_mark(mark))
}

/// An ordered list goes on with the next number.
fn next_mark(mark: &str) -> String {
    let digits = mark.bytes().take_while(u8::is_ascii_digit).count();
    match mark[..digits].parse::<u64>() {
        Ok(n) => format!("{}{}", n + 1, &mark[digits..]),
        Err(_) => mark.to_owned(),
    }
}

fn depends_text(plan: &PlanId, step: &Listed) -> String {
    let name = |it: &StepId| if it.plan == *plan { format!("step-{}", it.number) } else { it.to_string() };
    let names = step.depends.iter().flatten().map(name).collect::<Vec<_>>();
    if names.is_empty() { String::new() } else { format!(" (depends: {})", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::markdown::outline;

    fn listed(body: &str) -> Vec<Listed> {
        read(&PlanId::new("p"), &outline(body))
    }

    fn new_step(number: &str, title: &str) -> Listed {
        Listed {
            number: number.parse().expect("a number"),
            title: title.to_owned(),
            depends: None,
            span: 0..0,
        }
    }

    #[test]
    fn lines_are_read_in_all_their_forms() {
        let body = "# P\n\n## Steps\n- step-0: Set up\n- [x] step-1: Create (depends: step-0)\n* [step-2](step-2.md): Link\n\
                    * [Titled link](step-2.5.md)\n1. **step-3** – Bold\n- a remark\n\n## Else\n- step-9: not here\n";
        let found: Vec<_> = listed(body).into_iter().map(|it| (it.number.to_string(), it.title)).collect();
        let expected =
            [("0", "Set up"), ("1", "Create"), ("2", "Link"), ("2.5", "Titled link"), ("3", "Bold")];
        assert_eq!(found, expected.map(|(n, title)| (n.to_owned(), title.to_owned())));
    }

    #[track_caller]
    fn check_insert(body: &str, step: &Listed, expected: &str) {
        let (at, text) = insertion(&PlanId::new("p"), body, &listed(body), step).expect("there is a list");
        let after = format!("{}{text}{}", &body[..at], &body[at..]);
        assert_eq!(after, expected);
    }

    #[test]
    fn a_line_is_added_in_the_lists_own_style() {
        check_insert(
            "## Steps\n- step-0: A\n- step-2: C\n\nend\n",
            &new_step("1", "B"),
            "## Steps\n- step-0: A\n- step-1: B\n- step-2: C\n\nend\n",
        );
        check_insert(
            "## Steps\r\n* [x] step-0: A\r\n",
            &new_step("1", "B"),
            "## Steps\r\n* [x] step-0: A\r\n* [ ] step-1: B\r\n",
        );
        check_insert(
            "## Steps\n- [A](step-1.md)",
            &new_step("2", "B"),
            "## Steps\n- [A](step-1.md)\n- [B](step-2.md)",
        );
        check_insert("## Steps\n- step-1: A\n", &new_step("0", "Z"), "## Steps\n- step-0: Z\n- step-1: A\n");
        check_insert(
            "## Steps\n- step-1: A\n  more\n- other\n",
            &new_step("2", "B"),
            "## Steps\n- step-1: A\n  more\n- step-2: B\n- other\n",
        );
        let mut step = new_step("2", "B");
        step.depends = Some(vec![StepId { plan: PlanId::new("p"), number: StepNumber::whole(1) }]);
        check_insert(
            "## Steps\n1. step-1: A\n",
            &step,
            "## Steps\n1. step-1: A\n2. step-2: B (depends: step-1)\n",
        );
    }

    #[track_caller]
    fn check_delete(body: &str, nth: usize, expected: &str) {
        let range = deletion(body, &listed(body)[nth]);
        assert_eq!(format!("{}{}", &body[..range.start], &body[range.end..]), expected);
    }

    #[test]
    fn a_line_goes_with_its_end_alone() {
        check_delete("## Steps\n- step-0: A\n- step-1: B\n\nend\n", 1, "## Steps\n- step-0: A\n\nend\n");
        check_delete("## Steps\n- step-0: A\n- step-1: B", 1, "## Steps\n- step-0: A");
        check_delete(
            "## Steps\r\n- step-0: A\r\n  more\r\n- step-1: B\r\n",
            0,
            "## Steps\r\n- step-1: B\r\n",
        );
    }
}
