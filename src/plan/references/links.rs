//! Updates links in prose to the files of plans when a plan's directory or a step's file gets another name.

use std::ops::Range;

use crate::plan::id::PlanId;
use crate::text::front_matter;
use crate::text::markdown;

/// In a file's links to the files of a plan, replaces the plan's old name by its new one. Returns the changed file, or
/// `None` if there is no such link or the file's body is not UTF-8.
///
/// The file must be in a directory next to the plan's directory. Only link destinations such as `../old/step-2.md`
/// change, because the plan's name may mean something else in other text.
pub(crate) fn followed(file: &[u8], old: &PlanId, new: &PlanId) -> Option<Vec<u8>> {
    rewritten(file, new.as_str(), |destination| {
        let (rest, name) = outside(destination)?;
        is_plan(name, old).then(|| rest..rest + name.len())
    })
}

/// A step's file that gets another name in its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MovedFile {
    pub(crate) plan: PlanId,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// In a file's links to a moved step's file, replaces the old name by the new one. Returns the changed file, or `None` if
/// there is no such link or the file's body is not UTF-8.
///
/// `own` is the plan whose directory contains `file`. It is `None` if `file` is in another directory next to the
/// directories of the plans.
pub(crate) fn followed_step(file: &[u8], own: Option<&PlanId>, moved: &MovedFile) -> Option<Vec<u8>> {
    rewritten(file, &moved.to, |destination| {
        let start = match outside(destination) {
            Some((at, name)) if is_plan(name, &moved.plan) => {
                let behind = at + name.len();
                destination[behind..].starts_with('/').then_some(behind + 1)?
            }
            Some(_) => return None,
            None if own == Some(&moved.plan) => destination.len() - inside(destination).len(),
            None => return None,
        };
        let name = destination[start..].split(['#', '?']).next().unwrap_or_default();
        (decoded(name)? == moved.from).then(|| start..start + name.len())
    })
}

/// Returns a file in which `name` replaces each range that `find` returns for a link destination; `None` if nothing is
/// replaced.
fn rewritten(file: &[u8], name: &str, find: impl Fn(&str) -> Option<Range<usize>>) -> Option<Vec<u8>> {
    let start = front_matter::split(file).body_start();
    let body = std::str::from_utf8(&file[start..]).ok()?;
    let mut after = file[..start].to_vec();
    let mut from = 0;
    for range in markdown::destinations(body) {
        if let Some(found) = find(&body[range.clone()]) {
            after.extend_from_slice(&body.as_bytes()[from..range.start + found.start]);
            after.extend_from_slice(written(name).as_bytes());
            from = range.start + found.end;
        }
    }
    after.extend_from_slice(&body.as_bytes()[from..]);
    (from > 0).then_some(after)
}

/// Removes each `./` at the beginning of a destination.
fn inside(destination: &str) -> &str {
    let mut path = destination;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    path
}

/// The name after `../` in a destination, and its offset.
fn outside(destination: &str) -> Option<(usize, &str)> {
    let path = inside(destination).strip_prefix("../")?;
    let name = path.split(['/', '#', '?']).next().unwrap_or_default();
    Some((destination.len() - path.len(), name))
}

fn is_plan(name: &str, plan: &PlanId) -> bool {
    !name.is_empty() && decoded(name).is_some_and(|it| PlanId::new(&it) == *plan)
}

/// Decodes percent-encoding; `None` if it is invalid.
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

/// Percent-encodes a name. The result is valid in a link destination both with and without `<>` around it.
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

    #[test]
    fn only_links_to_the_moved_file_change() {
        let moved = MovedFile { plan: PlanId::new("p"), from: "step-3.md".into(), to: "step-2.5.md".into() };
        let after = |own: Option<&str>, text: &str| {
            let followed = followed_step(text.as_bytes(), own.map(PlanId::new).as_ref(), &moved);
            followed.map(|it| String::from_utf8(it).unwrap())
        };
        let text = "\u{feff}---\nx: [a](step-3.md)\n---\r\n[é](step-3.md#x) [b](./step%2D3.md?y) `[c](step-3.md)` <../p/step-3.md>\r\n\n[r]: <../p/step-3.md> 'step-3.md'\n";
        let beside = text.replace("<../p/step-3.md> '", "<../p/step-2.5.md> '");
        let own = beside.replace("(step-3.md#x) [b](./step%2D3.md", "(step-2.5.md#x) [b](./step-2.5.md");
        assert_eq!(after(Some("p"), text), Some(own));
        assert_eq!(after(Some("q"), text), Some(beside.clone()));
        assert_eq!(after(None, text), Some(beside));
        for text in [
            "step-3.md p:3 [step-3.md](step-30.md) [a](step-03.md) [b](x/step-3.md) [c](/step-3.md)",
            "[a](../p) [b](../p/) [c](../q/step-3.md) [d](../p/x/step-3.md) [e](../../p/step-3.md) [f](step-3)",
            "[a](http://x/step-3.md) [b](../step-3.md) [c](step-3.md/x)",
        ] {
            assert_eq!(after(Some("p"), text), None, "{text}");
        }
    }
}
