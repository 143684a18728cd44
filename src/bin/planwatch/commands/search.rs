//! `search`: the results, best first.

use std::fmt::Write;

use planwatch::index::{MATCH_END, MATCH_START, only_excludes};
use planwatch::ops::search::{self, SearchReport, SearchRequest};
use unicode_width::UnicodeWidthStr;

use crate::args::look::Search;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::text::{fitted, hanging};
use crate::screens::{BOLD, DIM, PLAIN, READY, to_type};
use crate::table::{cut, paint};
use crate::typed::TEXT_MARK;

pub(crate) fn run(session: &Session, args: &Search) -> Result<u8, Failure> {
    let words: Vec<_> = args.query.iter().map(|it| it.strip_prefix(TEXT_MARK).unwrap_or(it)).collect();
    let query = words.join(" ");
    if query.trim().is_empty() {
        return Err(Failure::usage(
            "there is nothing to search for",
            "name a word, for example planwatch search token",
        ));
    }
    if only_excludes(&query) {
        return Err(Failure::usage(
            "the query only excludes words",
            "add at least one word to find, for example planwatch search -- token -cookie",
        ));
    }
    if args.limit == 0 {
        return Err(Failure::usage(
            "the number of results must be at least 1",
            "--limit takes a whole number from 1 on",
        ));
    }
    let context = session.context()?;
    let request =
        SearchRequest { query, kind: args.kind.clone(), since: args.since.clone(), limit: args.limit };
    let report = session.with_spinner(|| search::search(&context, &request))?;
    session.answer("search", || report.to_json(), |width| screen(&report, args.limit, width))
}

fn screen(report: &SearchReport, limit: usize, width: Option<usize>) -> String {
    if report.hits.is_empty() {
        let fewer = ("planwatch search WORD".to_owned(), "with fewer words, to find more");
        let said = format!("No results for: {}\n{}", escaped(&report.query), to_type(&[fewer]));
        return fitted(&said, width);
    }
    let mut said = String::new();
    for hit in &report.hits {
        let kind = format!("  {}", paint(DIM, hit.kind.word()));
        let head = format!("{}  {}{kind}\n", paint(BOLD, &escaped(&hit.id)), escaped(&hit.title));
        said.push_str(&hanging(&head, width, 4));
        let snippet = snippet(&hit.snippet, width.map_or(usize::MAX, |it| it.saturating_sub(4)));
        if hit.snippet != hit.title && !snippet.trim().is_empty() {
            writeln!(said, "    {snippet}").ok();
        }
    }
    if report.hits.len() >= limit {
        writeln!(said, "\n{}", paint(DIM, &format!("the best {limit}; --limit shows more"))).ok();
    }
    said
}

/// A snippet with its matches in colour, not wider than `left` columns.
fn snippet(marked: &str, mut left: usize) -> String {
    let mut said = String::new();
    for (nth, part) in marked.trim().split(MATCH_START).enumerate() {
        let (found, rest) =
            if nth == 0 { ("", part) } else { part.split_once(MATCH_END).unwrap_or((part, "")) };
        for (style, text) in [(READY.bold(), found), (PLAIN, rest)] {
            let text = escaped(text);
            let shown = if left > 0 { cut(&text, left) } else { String::new() };
            left = if shown == text { left.saturating_sub(text.width()) } else { 0 };
            said.push_str(&paint(style, &shown));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_painted_and_marks_are_gone() {
        let said = snippet("a \u{2}token\u{3} of \u{2}two\u{3}\u{1b}", 80);
        assert_eq!(anstream::adapter::strip_str(&said).to_string(), "a token of two\\u{1b}");
        assert!(said.contains("\u{1b}["));
        let said = snippet("a \u{2}token\u{3} of \u{2}two\u{3}", 9);
        assert_eq!(anstream::adapter::strip_str(&said).to_string(), "a token…");
    }
}
