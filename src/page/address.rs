//! What the address in a Markdown link refers to: a plan, a step, another file of the plans directory, an anchor in the
//! same text, or another site.

use std::fmt::Write;

use crate::plan::id::{PlanId, StepId, read_step_id, read_step_path};

/// The directory of archived plans.
const ARCHIVE: &str = "_archive";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An address with the scheme `http`, `https` or `mailto`, without the white space around it.
    Outside(String),
    /// An anchor in the same text, without the `#`.
    Here(String),
    Plan(PlanId),
    Step(StepId),
    /// Any other file, as a path relative to the plans directory, with `/` between the names.
    File(String),
}

/// Reads an address in a file of `directory`, which is relative to the plans directory.
///
/// Returns `None` for addresses that must not become links: empty addresses, other schemes, absolute paths, paths that
/// leave the plans directory or name the directory itself, and addresses with control characters, backslashes or bytes
/// that are not UTF-8.
///
/// The caller checks whether the plan, step or file exists.
pub fn read(directory: &str, address: &str) -> Option<Target> {
    let address = address.trim();
    if address.contains(|c: char| c.is_control() || c == '\\') {
        return None;
    }
    if let Some(name) = address.strip_prefix('#') {
        return (!name.is_empty()).then(|| Target::Here(name.to_owned()));
    }
    if let Some(scheme) = scheme(address) {
        let is_known = ["http", "https", "mailto"].iter().any(|it| it.eq_ignore_ascii_case(scheme));
        return if is_known {
            Some(Target::Outside(address.to_owned()))
        } else {
            read_step_id(address).map(Target::Step)
        };
    }
    let path = address.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || path.starts_with('/') {
        return None;
    }
    let decoded = decoded(path)?;
    let path = joined(directory, &decoded)?;
    Some(meaning(path, decoded.ends_with('/')))
}

fn meaning(path: String, is_directory: bool) -> Target {
    let inside = path.strip_prefix(&format!("{ARCHIVE}/")).unwrap_or(&path);
    let plan = |name: &str| {
        let is_plan = !name.contains('/') && PlanId::is_plan_name(name);
        is_plan.then(|| Target::Plan(PlanId::new(name)))
    };
    let found = if let Some((directory, "plan.md")) = inside.rsplit_once('/') {
        plan(directory)
    } else if let Some((Some(plan), number)) = read_step_path(inside) {
        Some(Target::Step(StepId { plan, number }))
    } else if is_directory || !inside.contains('.') {
        plan(inside)
    } else {
        None
    };
    found.unwrap_or(Target::File(path))
}

fn scheme(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
    is_scheme.then_some(scheme)
}

/// Percent-encodes a name as a segment of a URL's path. `:` is not encoded, because steps' ids contain it.
pub fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").ok();
        }
    }
    text
}

/// Decodes percent-encoding, such as `%2e`. `None`: the result is not UTF-8, or contains a control character or a backslash.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let [first, after @ ..] = rest {
        let (byte, more) = match rest {
            [b'%', a, b, more @ ..] => {
                let byte = digit(*a).zip(digit(*b)).and_then(|(a, b)| u8::try_from(16 * a + b).ok());
                byte.map_or((*first, after), |it| (it, more))
            }
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = more;
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains(|c: char| c.is_control() || c == '\\')).then_some(text)
}

/// The path relative to the plans directory. `None`: the path leaves the plans directory, or is that directory itself.
fn joined(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|it| !it.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_meaning_and_never_leave_the_plans_directory() {
        let step = |text: &str| Some(Target::Step(read_step_id(text).unwrap()));
        let plan = |name: &str| Some(Target::Plan(PlanId::new(name)));
        let file = |path: &str| Some(Target::File(path.to_owned()));
        let outside = |path: &str| Some(Target::Outside(path.to_owned()));
        for (address, expected) in [
            ("step-2.md", step("auth:2")),
            ("./step-2.5.md#tasks", step("auth:2.5")),
            ("../billing/step-1.md", step("billing:1")),
            ("billing:1", step("billing:1")),
            ("../_archive/old/step-1.md", step("old:1")),
            ("plan.md", plan("auth")),
            ("../billing/plan.md", plan("billing")),
            ("../billing/", plan("billing")),
            ("../billing", plan("billing")),
            ("img/a%20b.png?x", file("auth/img/a b.png")),
            ("100%€.md", file("auth/100%€.md")),
            ("a%+f.png", file("auth/a%+f.png")),
            ("../_decisions/x.md", file("_decisions/x.md")),
            ("https://example.org/a?b#c", outside("https://example.org/a?b#c")),
            ("MAILTO:a@b", outside("MAILTO:a@b")),
            ("#goals", Some(Target::Here("goals".to_owned()))),
            ("../../etc/passwd", None),
            ("..%2f..%2fetc", None),
            ("%2e%2e/%2e%2e/etc", None),
            ("/etc/passwd", None),
            ("//example.org/x", None),
            ("\\\\host\\x", None),
            ("a%5cb", None),
            ("a%00b", None),
            ("%ff", None),
            ("javascript:alert(1)", None),
            ("java\nscript:alert(1)", None),
            ("data:text/html,x", None),
            ("file:///etc/passwd", None),
            ("vbscript:x", None),
            ("..", None),
            ("#", None),
            ("", None),
        ] {
            assert_eq!(read("auth", address), expected, "{address}");
        }
    }
}
