//! `search`: what the words were found in, best first.

use planwatch::engine::search::{self, SearchReport, SearchRequest};
use planwatch::index::{MATCH_END, MATCH_START};

use crate::args::look::Search;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::{BOLD, DIM, READY, to_type};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: &Search) -> Result<u8, Failure> {
    let context = session.context()?;
    let request = SearchRequest { query: args.query.join(" "), limit: args.limit };
    let report = search::search(&context, &request)?;
    if session.output.is_json() {
        session.output.json("search", report.to_json())?;
    } else {
        session.output.text(&screen(&report, args.limit))?;
    }
    Ok(0)
}

fn screen(report: &SearchReport, limit: usize) -> String {
    if report.hits.is_empty() {
        let fewer = ("planwatch search WORD".to_owned(), "with fewer words, to find more");
        return format!("Nothing was found for: {}\n{}", escaped(&report.query), to_type(&[fewer]));
    }
    let mut said = String::new();
    for hit in &report.hits {
        said.push_str(&format!("{}  {}\n", paint(BOLD, &escaped(&hit.id)), escaped(&hit.title)));
        let snippet = snippet(&hit.snippet);
        if hit.snippet != hit.title && !snippet.trim().is_empty() {
            said.push_str(&format!("    {snippet}\n"));
        }
    }
    if report.hits.len() >= limit {
        said.push_str(&format!("\n{}\n", paint(DIM, &format!("the best {limit}; --limit shows more"))));
    }
    said
}

/// A snippet with its matches in colour.
fn snippet(marked: &str) -> String {
    let mut said = String::new();
    for (nth, part) in marked.trim().split(MATCH_START).enumerate() {
        let (found, rest) =
            if nth == 0 { ("", part) } else { part.split_once(MATCH_END).unwrap_or((part, "")) };
        said.push_str(&paint(READY.bold(), &escaped(found)));
        said.push_str(&escaped(rest));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_painted_and_marks_are_gone() {
        let said = snippet("a \u{2}token\u{3} of \u{2}two\u{3}\u{1b}");
        assert_eq!(anstream::adapter::strip_str(&said).to_string(), "a token of two\\u{1b}");
        assert!(said.contains("\u{1b}["));
    }
}
