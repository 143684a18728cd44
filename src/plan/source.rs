//! Files as read from disk, split into front matter and body, or the reason why they are unreadable.

use crate::plan::problem::{Code, Problem};
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::text::front_matter::{self, Header};
use crate::text::markdown;
use crate::text::yaml::{self, Tree};

#[derive(Debug, Clone)]
pub struct Source {
    /// Relative to the plans directory, with `/`.
    pub path: String,
    pub content: Result<Content, Unread>,
}

#[derive(Debug, Clone)]
pub struct Content {
    pub bytes: Vec<u8>,
    /// Hexadecimal content hash.
    pub etag: String,
    pub modified: Time,
}

impl Content {
    pub fn new(bytes: Vec<u8>, modified: Time) -> Self {
        Self { etag: etag(&bytes), bytes, modified }
    }
}

pub fn etag(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub code: Code,
    pub message: String,
}

#[derive(Debug, Clone, Default)]
pub struct PlanSources {
    pub plan: Option<Source>,
    /// Files whose names are exactly those of steps.
    pub steps: Vec<(StepNumber, Source)>,
    /// Paths of files whose names resemble those of steps.
    pub near_misses: Vec<String>,
    /// Paths of subdirectories that look like plans.
    pub nested: Vec<String>,
    pub linked: Vec<String>,
}

/// A file's front matter and body, or the reason why it is unreadable.
pub(crate) struct Parsed<'a> {
    pub(crate) tree: Option<(Tree, usize)>,
    pub(crate) body: &'a str,
    pub(crate) problems: Vec<Problem>,
}

const SPLIT_HINT: &str = "split it, or move long logs elsewhere";

pub(crate) fn parse<'a>(path: &str, bytes: &'a [u8]) -> Parsed<'a> {
    let mut parsed = Parsed { tree: None, body: "", problems: Vec::new() };
    if bytes.len() > front_matter::MAX_FILE {
        let message = format!("the file has {} bytes; the limit is 4 MiB", bytes.len());
        parsed.problems.push(Problem::of_file(path, Code::TooLarge, message, SPLIT_HINT));
        return parsed;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (at, message) = (error.valid_up_to(), "the file is not UTF-8 from here on");
            let problem = Problem::at_byte(path, bytes, at, Code::NotUtf8, message, "save it as UTF-8");
            parsed.problems.push(problem);
            return parsed;
        }
    };
    let parts = front_matter::split(bytes);
    let body_start = parts.body_start();
    parsed.body = &text[body_start..];
    if let Some(at) = conflict_marker(text, body_start) {
        let message = "the file contains a merge conflict";
        let hint = "resolve it and save";
        parsed.problems.push(Problem::at_byte(path, bytes, at, Code::ConflictMarkers, message, hint));
        return parsed;
    }
    match &parts.header {
        Header::Absent => {}
        Header::Unclosed => {
            parsed.body = "";
            let message = "the front matter has no closing `---` line";
            let hint = "add a line `---` after the last key";
            parsed.problems.push(Problem::of_file(path, Code::FrontMatterUnclosed, message, hint));
        }
        Header::Present { yaml, .. } => match yaml::parse(&text[yaml.clone()]) {
            Ok(tree) => parsed.tree = Some((tree, yaml.start)),
            Err(error) => {
                let code = Code::from_text(error.code).unwrap_or(Code::FrontMatterInvalid);
                let at = yaml.start + error.at;
                parsed.problems.push(Problem::at_byte(path, bytes, at, code, error.message, hint_for(code)));
            }
        },
    }
    parsed
}

/// Returns the same body as [`parse`], but does not parse the front matter.
pub(crate) fn body(bytes: &[u8]) -> &str {
    let text = if bytes.len() > front_matter::MAX_FILE { None } else { std::str::from_utf8(bytes).ok() };
    let text = text.unwrap_or_default();
    let parts = front_matter::split(text.as_bytes());
    let start = parts.body_start();
    if parts.header == Header::Unclosed && conflict_marker(text, start).is_none() {
        return "";
    }
    &text[start..]
}

fn hint_for(code: Code) -> &'static str {
    match code {
        Code::DuplicateKey => "keep one of the two lines",
        Code::NotAMapping => "write `key: value` lines between the `---` lines",
        Code::TooLarge => "move long texts into the body",
        _ => "correct the YAML; values with `: ` or ` #` need quotes",
    }
}

/// Finds a conflict marker at a line's start, outside code.
fn conflict_marker(text: &str, body_start: usize) -> Option<usize> {
    // This loop does not stop early, so that the compiler can vectorize it.
    let may_be = text.bytes().fold(false, |any, it| any | (it == b'<') | (it == b'>'));
    if !may_be || (!text.contains("<<<<<<<") && !text.contains(">>>>>>>")) {
        return None;
    }
    let outline = markdown::outline(&text[body_start..]);
    let mut line_start = 0;
    let mut middle = false;
    for line in text.split_inclusive('\n') {
        let at = line_start;
        line_start += line.len();
        let line = line.trim_end();
        let is_marker =
            |mark: &str| line.strip_prefix(mark).is_some_and(|it| it.is_empty() || it.starts_with(' '));
        let in_code = at >= body_start && outline.is_code(at - body_start);
        middle |= line == "=======";
        if !in_code && (is_marker("<<<<<<<") || (middle && is_marker(">>>>>>>"))) {
            return Some(at);
        }
    }
    None
}

pub(crate) fn unread(source: &Source, unread: &Unread) -> Problem {
    let hint = match unread.code {
        Code::TooLarge => SPLIT_HINT,
        Code::Unreadable => "make it readable",
        _ => "rename it, or replace it with a regular file",
    };
    Problem::of_file(&source.path, unread.code, unread.message.clone(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(bytes: &[u8]) {
        assert_eq!(body(bytes), parse("plan.md", bytes).body, "{:?}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn a_body_is_the_same_without_its_front_matter_read() {
        for text in [
            "",
            "# x",
            "---\na: 1\n---\n# x\n",
            "---\na: [\n---\n# x\n",
            "---\na: 1\n# x\n",
            "\u{feff}---\n---\nb",
            "---\n<<<<<<< a\nb: 1\n=======\n>>>>>>> c\n",
            "---\n---\n<<<<<<< a\n",
            "---\r\na: 1\r\n...\r\nb",
        ] {
            check(text.as_bytes());
        }
        check(b"---\na: 1\n---\n\xff");
        check(&vec![b'x'; front_matter::MAX_FILE + 1]);
    }

    proptest! {
        #[test]
        fn of_any_lines(lines in prop::collection::vec(prop::sample::select(&["---", "a: 1", "# b", "<<<<<<< x", "=======", ">>>>>>> y", "```", "..."][..]), 0..9)) {
            let text = lines.join("\n");
            prop_assert_eq!(body(text.as_bytes()), parse("plan.md", text.as_bytes()).body);
        }
    }
}
