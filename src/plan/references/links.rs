//! Links in prose that lead to the files of a plan: they follow when its directory gets another name.

use crate::plan::id::PlanId;
use crate::text::front_matter;
use crate::text::markdown;

/// Returns a file with its links to a plan's files leading to its new name; none if it has no such link.
///
/// The file is in a directory beside the plan's. Only destinations such as `../old/step-2.md` count, by the name of the
/// directory; other words of the text may mean something else.
pub(crate) fn followed(file: &[u8], old: &PlanId, new: &PlanId) -> Option<Vec<u8>> {
    let start = front_matter::split(file).body_start();
    let body = std::str::from_utf8(&file[start..]).ok()?;
    let bytes = body.as_bytes();
    let mut after = file[..start].to_vec();
    let mut from = 0;
    for range in markdown::destinations(body) {
        if let Some((at, len)) = name_in(&body[range.clone()], old) {
            let name = range.start + at;
            after.extend_from_slice(&bytes[from..name]);
            after.extend_from_slice(written(new.as_str()).as_bytes());
            from = name + len;
        }
    }
    after.extend_from_slice(&bytes[from..]);
    (from > 0).then_some(after)
}

/// Where a destination has the name of a plan's directory, and how long the name is there.
fn name_in(destination: &str, plan: &PlanId) -> Option<(usize, usize)> {
    let mut path = destination;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    let path = path.strip_prefix("../")?;
    let name = path.split(['/', '#', '?']).next().unwrap_or_default();
    let is_named = !name.is_empty() && decoded(name).is_some_and(|it| PlanId::new(&it) == *plan);
    is_named.then_some((destination.len() - path.len(), name.len()))
}

/// Undoes the percent-encoding; none if it is none.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok().filter(|it| !it.starts_with('+'))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// A name as a destination may have it, with and without `<>` around it.
fn written(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') {
            text.push(c);
        } else {
            let mut bytes = [0; 4];
            text.extend(c.encode_utf8(&mut bytes).bytes().map(|it| format!("%{it:02X}")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let after = followed(text.as_bytes(), &PlanId::new("old one"), &PlanId::new("new (2)"));
        assert_eq!(after.map(|it| String::from_utf8(it).unwrap()).as_deref(), expected, "{text}");
    }

    #[test]
    fn only_the_name_in_a_destination_changes() {
        check(
            "\u{feff}---\nx: [a](<../old one/>)\n---\r\n# é [a](../old%20one/step-2.md#x \"../old%20one/\") `[b](../old%20one/)`\r\n",
            Some(
                "\u{feff}---\nx: [a](<../old one/>)\n---\r\n# é [a](../new%20%282%29/step-2.md#x \"../old%20one/\") `[b](../old%20one/)`\r\n",
            ),
        );
        check(
            "[a](<./../old one>)\n\n[r]: <../old one/plan.md>",
            Some("[a](<./../new%20%282%29>)\n\n[r]: <../new%20%282%29/plan.md>"),
        );
        for text in [
            "old one, ../old%20one/step-2.md, old one:2",
            "[old one](step-2.md) [b](../old%20one-2/) [c](old%20one/) [d](../../old%20one/) [e](/old%20one/)",
            "[a](http://x/../old%20one/) [b](../x/../old%20one/) [c](..) [d](../%) [e](../%ff/)",
        ] {
            check(text, None);
        }
        assert_eq!(followed(b"[a](../old\xff)", &PlanId::new("old"), &PlanId::new("new")), None);
    }
}
