//! Finds the destinations of links in a Markdown text, so that a destination can be replaced without any other change.

use std::ops::Range;

use super::{Event, LinkType, Options, Parser, Tag};

/// Returns the destinations of inline links, inline images and link definitions, in the order of the text.
///
/// A destination with escapes or entities is left out, because its bytes differ from the address that it means.
pub fn destinations(text: &str) -> Vec<Range<usize>> {
    if !text.contains("](") && !text.contains("]:") {
        return Vec::new();
    }
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    let definitions = parser.reference_definitions().iter();
    let mut found: Vec<_> = definitions
        .filter_map(|(_, it)| {
            let mark = it.span.start + text[it.span.clone()].find("]:")?;
            written(text, mark, it.span.end, &it.dest)
        })
        .collect();
    // For each open link: its range, its destination, and the end of the text in its brackets so far.
    let mut open: Vec<(Range<usize>, String, usize)> = Vec::new();
    for (event, span) in parser.into_offset_iter() {
        let ended = match &event {
            Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) => {
                let dest = if *link_type == LinkType::Inline { dest_url.to_string() } else { String::new() };
                let is_image = text[span.start..].starts_with('!');
                open.push((span.clone(), dest, span.start + 1 + usize::from(is_image)));
                continue;
            }
            Event::End(_) if open.last().is_some_and(|it| it.0 == span) => open.pop(),
            _ => None,
        };
        if let Some((_, _, end)) = open.last_mut() {
            *end = span.end.max(*end);
        }
        let ended = ended.filter(|it| !it.1.is_empty());
        found.extend(ended.and_then(|(span, dest, end)| written(text, end, span.end, &dest)));
    }
    found.sort_by_key(|it| it.start);
    found
}

/// The range of the destination `dest` after the closing bracket at `bracket`. If the destination is in `<>`, these are not
/// part of the range. `None` if the source differs from `dest`.
fn written(text: &str, bracket: usize, end: usize, dest: &str) -> Option<Range<usize>> {
    let rest = text.get(bracket..end)?;
    let inner = rest.strip_prefix("](").or_else(|| rest.strip_prefix("]:"))?.trim_start();
    let inner = inner.strip_prefix('<').unwrap_or(inner);
    let start = end - inner.len();
    let is_end = |c: char| c.is_whitespace() || matches!(c, ')' | '>');
    let is_whole = inner.strip_prefix(dest).is_some_and(|it| it.is_empty() || it.starts_with(is_end));
    (!dest.is_empty() && is_whole).then(|| start..start + dest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_found_where_they_are_written() {
        let text = "[a](../o/x.md) [`b`]( <../o p/y.md> \"t\") ![c](z.png) [![d](i.png)](../o/#h \"../o/\") [](e)\n\
                    `[no](q)` <http://x> [r] [f\\]](g) [h](a\\_b) [[i]](j(k)) [k](l&amp;)\n\n> [q](w)\n\n[r]: ../o/r.md 'T'\n\n    [code](c)\n";
        let found: Vec<_> = destinations(text).into_iter().map(|it| &text[it]).collect();
        assert_eq!(
            found,
            ["../o/x.md", "../o p/y.md", "z.png", "i.png", "../o/#h", "e", "g", "j(k)", "w", "../o/r.md"]
        );
        assert!(destinations("no links").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn a_destination_written_over_changes_nothing_else(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "[", "]", "](", "a", "../o/x", ")", "<", ">", "!", "\n", "\r\n", "`", "\\", " ", "[r]: ", "> ", "é", "&amp;",
                ]),
                0..24,
            ),
        ) {
            let text = words.concat();
            let found = destinations(&text);
            for (nth, range) in found.iter().enumerate() {
                let mut new = text.clone();
                new.replace_range(range.clone(), "new");
                let said = |of: &str, it: Vec<Range<usize>>| it.into_iter().map(|it| of[it].to_owned()).collect::<Vec<_>>();
                let mut expected = said(&text, found.clone());
                expected[nth] = "new".to_owned();
                proptest::prop_assert_eq!(said(&new, destinations(&new)), expected);
            }
        }
    }
}
