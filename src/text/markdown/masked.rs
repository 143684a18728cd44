//! Hides the code and the comments of a Markdown text without changing its length in bytes.

use std::ops::Range;

use super::{Event, Options, Parser, Tag};

/// How raw HTML that is hidden begins and ends.
const RAW: [(&str, &str); 6] = [
    ("<!--", "-->"),
    ("<pre", "</pre"),
    ("<script", "</script"),
    ("<style", "</style"),
    ("<textarea", "</textarea"),
    ("<code", "</code"),
];

/// Replaces code blocks, comments and, in HTML blocks, elements such as `<pre>` by spaces. Replaces the content of code
/// spans and of `<code>` elements in a paragraph by `x`. Line endings stay.
///
/// A code span stays as it is if `is_name` accepts its content. The result has as many bytes as the text, so a range refers
/// to the same position in both.
pub fn masked(text: &str, is_name: impl Fn(&str) -> bool) -> String {
    // Code and HTML cannot occur without one of these.
    if !text.contains(['`', '<', '~', '\t']) && !text.contains("    ") {
        return text.to_owned();
    }
    let mut bytes = text.as_bytes().to_vec();
    let mut code_from = None;
    for (event, span) in
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS).into_offset_iter()
    {
        match event {
            Event::Start(Tag::CodeBlock(_)) => hide(&mut bytes, span, b' '),
            Event::Start(Tag::HtmlBlock) => hide_raw(&mut bytes, text, span),
            Event::Code(code) if !is_name(code.trim()) => {
                let ticks = text[span.clone()].bytes().take_while(|it| *it == b'`').count();
                hide(&mut bytes, span.start + ticks..span.end.saturating_sub(ticks), b'x');
            }
            Event::InlineHtml(html) => {
                let html = html.to_ascii_lowercase();
                if html.starts_with("<!--") {
                    hide(&mut bytes, span, b' ');
                } else if html.starts_with("<code") {
                    code_from = Some(span.end);
                } else if let (true, Some(from)) = (html.starts_with("</code"), code_from.take()) {
                    hide(&mut bytes, from..span.start, b'x');
                }
            }
            _ => {}
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn hide(bytes: &mut [u8], range: Range<usize>, with: u8) {
    let hidden = bytes.get_mut(range).into_iter().flatten();
    hidden.filter(|it| !matches!(it, b'\n' | b'\r')).for_each(|it| *it = with);
}

fn hide_raw(bytes: &mut [u8], text: &str, block: Range<usize>) {
    let lower = text[block.clone()].to_ascii_lowercase();
    let mut from = 0;
    let next = |from: usize| {
        let found = RAW.iter().filter_map(|(open, close)| Some((from + lower[from..].find(open)?, close)));
        found.min_by_key(|it| it.0)
    };
    while let Some((at, close)) = next(from) {
        let end = lower[at..].find(close).map_or(lower.len(), |it| at + it + close.len());
        hide(bytes, block.start + at..block.start + end, b' ');
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(masked(text, |it| it == "step-1"), expected);
    }

    #[test]
    fn code_and_comments_are_hidden() {
        check("a `b c` `step-1` ``d`e``\n", "a `xxx` `step-1` ``xxx``\n");
        check("a\n```\nb: c\n```\nd\n", "a\n   \n    \n   \nd\n");
        check("a\n\n    b: c\n\nd\n", "a\n\n        \n\nd\n");
        check("- a\n  ~~~\n  b\n  ~~~\n", "- a\n     \n   \n     \n");
        check("<!-- a\nb -->\nc <!-- d --> e\n", "      \n     \nc            e\n");
        check("<div>\na\n<!-- b -->\n</div>\n", "<div>\na\n          \n</div>\n");
        check("a <code>b</code> c\n", "a <code>x</code> c\n");
        check("<pre>\na\n</pre>\nb\n", "     \n \n     >\nb\n");
    }

    proptest! {
        #[test]
        fn every_byte_keeps_its_place(text in "([a`~<!\\- >\n\t#\u{e4}]|    |<!--|-->|```\n|<pre>){0,40}") {
            let hidden = masked(&text, |_| false);
            prop_assert_eq!(hidden.len(), text.len());
            let ends = |it: &str| it.match_indices('\n').map(|it| it.0).collect::<Vec<_>>();
            prop_assert_eq!(ends(&hidden), ends(&text));
        }
    }
}
