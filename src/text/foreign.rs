//! Reads the front matter of other tools' files as JSON, with the library `gray_matter`.
//!
//! The library is used only for reading, because it does not preserve bytes. Our own parser checks the text first,
//! because on hostile input the library may never finish.

use gray_matter::Matter;
use gray_matter::engine::YAML;
use serde_json::{Map, Value};

use crate::text::front_matter;
use crate::text::yaml::{self, Kind, Tree};

/// The largest front matter that is read here, in bytes.
const LIMIT: usize = 256 << 10;

/// Returns the keys of a front matter with their values. `None` if there is no front matter, or if it is too large, is
/// not a valid mapping, or contains aliases or document markers.
pub fn keys(bytes: &[u8]) -> Option<Map<String, Value>> {
    let yaml = front_matter::split(bytes).yaml()?;
    let text = std::str::from_utf8(yaml).ok().filter(|it| it.len() <= LIMIT)?;
    let quoted = yaml::parse(text).is_err().then(|| with_quoted_names(text));
    let text = quoted.as_deref().unwrap_or(text);
    let tree = yaml::parse(text).ok()?;
    let is_sane =
        tree.root().kind() == Kind::Map && tree.aliases().next().is_none() && !tree.has_document_marks();
    if !is_sane {
        return None;
    }
    // The library does not recognize a front matter after a byte order mark, and searches the body for an excerpt. Therefore
    // it receives only the front matter.
    let plain = format!("---\n{}\n---\n", text.replace("\r\n", "\n"));
    let parsed = Matter::<YAML>::new().parse::<Value>(&plain).ok()?;
    match parsed.data {
        Some(Value::Object(keys)) => Some(in_order(keys, &tree)),
        _ => None,
    }
}

/// Quotes values such as `@ann`. YAML reserves `@` at the start of a value, but other tools do not quote such values.
fn with_quoted_names(yaml: &str) -> String {
    let mut quoted = String::with_capacity(yaml.len() + 16);
    let mut rest = yaml;
    while let Some(at) = rest.find('@') {
        let (before, from) = rest.split_at(at);
        quoted.push_str(before);
        let begins = before.trim_end_matches(' ').ends_with([':', '-', '[', ',']);
        let end = from.find([',', ']', '\n', '\r', '"']).unwrap_or(from.len());
        let (name, behind) = from.split_at(end);
        match begins && !behind.starts_with('"') {
            true => quoted.extend(["\"", name.trim_end(), "\""]),
            false => quoted.push_str(name),
        }
        rest = behind;
    }
    quoted + rest
}

/// Orders the keys, because the library's mappings have no order. Top-level keys get the order of the file, and nested keys
/// are sorted by name.
fn in_order(mut keys: Map<String, Value>, tree: &Tree) -> Map<String, Value> {
    keys.sort_keys();
    keys.values_mut().for_each(Value::sort_all_objects);
    let names = tree.root().own_entries().filter_map(|(key, _)| key.text().map(str::to_owned));
    let mut ordered: Map<String, Value> = names.filter_map(|it| keys.remove_entry(&it)).collect();
    ordered.extend(keys);
    ordered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(keys(text.as_bytes()).map(Value::Object), Some(expected).filter(|it| !it.is_null()));
    }

    #[test]
    fn sound_keys_are_read_whatever_the_line_ends() {
        check(
            "---\r\nid: A-1\r\nlabels: [x, 'y']\r\n---\r\nbody\n---\n",
            json!({"id": "A-1", "labels": ["x", "y"]}),
        );
        check("\u{feff}---\na: 1\n---\n", json!({"a": 1}));
    }

    #[test]
    fn names_with_a_mark_are_texts() {
        check(
            "---\nreporter: @ann\nassignee: [@bob, '@c d',@eve]\nwatchers:\n  - @fay\nmail: a@b.c\n---\n",
            json!({
                "reporter": "@ann", "assignee": ["@bob", "@c d", "@eve"], "watchers": ["@fay"], "mail": "a@b.c",
            }),
        );
        check("---\na: \"x @ y\nb: @c\n---\n", Value::Null);
    }

    #[test]
    fn keys_have_the_order_of_the_file() {
        let keys = keys(b"---\nz: {y: 1, b: 2}\nc: 3\na: 4\n---\n").expect("it is sound");
        assert_eq!(Value::Object(keys).to_string(), r#"{"z":{"b":2,"y":1},"c":3,"a":4}"#);
    }

    #[test]
    fn what_is_not_sane_is_not_read() {
        check("no front matter", Value::Null);
        check("---\na: [\n---\n", Value::Null);
        check("---\n- list\n---\n", Value::Null);
        check("---\na: &x [1]\nb: [*x, *x]\n---\n", Value::Null);
        check(&format!("---\na: {}\n---\n", "x".repeat(LIMIT)), Value::Null);
        check(&format!("---\na: {}\n---\n", "[".repeat(100_000)), Value::Null);
    }
}
