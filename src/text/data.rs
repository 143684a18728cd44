//! Reads YAML that users give as data. This is the only file outside of tests that uses `serde_yaml`.
//!
//! Comments and positions are not needed for data, so a library that loses them is sufficient. Front matter, whose
//! bytes must not change, is read by [`yaml`].

use serde_json::Value;

use crate::text::front_matter::MAX_FRONT_MATTER;
use crate::text::line_index::{Place, place};
use crate::text::yaml;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotData {
    pub place: Place,
    pub reason: String,
}

/// Reads one YAML document and returns the equivalent JSON value.
///
/// A duplicate key in a mapping is an error, and so are aliases that expand to too many values. The limits of size and
/// nesting are the same as for front matter.
pub fn read(text: &str) -> Result<Value, NotData> {
    let at_start = |reason: String| NotData { place: Place::START, reason };
    let text = text.trim_start_matches('\u{feff}');
    if text.len() > MAX_FRONT_MATTER {
        return Err(at_start(format!("it has more than {MAX_FRONT_MATTER} bytes")));
    }
    // planwatch's own parser checks the text first, because the library needs quadratic time for nested brackets and
    // reports some errors without a position.
    yaml::parse_node(text)
        .map_err(|error| NotData { place: place(text.as_bytes(), error.at), reason: error.message })?;
    let value: serde_yaml::Value = serde_yaml::from_str(text).map_err(|error| at_start(error.to_string()))?;
    serde_json::to_value(value).map_err(|error| at_start(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_means_json() {
        for (text, expected) in [
            ("", json!(null)),
            ("- A\r\n- B\r\n", json!(["A", "B"])),
            (
                "\u{feff}# all\nsteps:\n- title: A # first\n  depends: [1, 2.50]\n",
                json!({"steps": [{"title": "A", "depends": [1, 2.5]}]}),
            ),
            // The boolean words of YAML 1.1 (`no`, `on`, `yes`) are texts, and so are dates.
            ("[no, on, yes, 2026-11-21, ~, true]", json!(["no", "on", "yes", "2026-11-21", null, true])),
            ("a: |\n  1\n  2\nb: &x [1]\nc: *x\n", json!({"a": "1\n2\n", "b": [1], "c": [1]})),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_have_a_place() {
        for (text, line, column) in [("- a: 1\n  a: 2\n", 2, 3), ("\u{feff}a: {b: 1, b: 2}\n", 1, 11)] {
            let error = read(text).expect_err(text);
            assert_eq!(error.place, Place { line, column }, "{text}: {}", error.reason);
        }
    }

    #[test]
    fn hostile_shapes_end_with_an_error() {
        let alias = |n: usize| format!("*a{}", n - 1);
        let bomb = |n: usize| format!("a{n}: &a{n} [{0}, {0}, {0}, {0}]\n", alias(n));
        for text in [
            std::iter::once("a0: &a0 x\n".to_owned()).chain((1..30).map(bomb)).collect(),
            "[".repeat(100_000),
            "{a: ".repeat(100_000),
            format!("{}1{}", "{a: ".repeat(100_000), "}".repeat(100_000)),
            "- ".repeat(100_000),
            "? ".repeat(100_000),
            (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
            "a: &a [*a, *a]\n".to_owned(),
            format!("a: {}", "\"".repeat(100_001)),
            "a: 1\n".repeat(100_000),
            " ".repeat(MAX_FRONT_MATTER + 1),
        ] {
            read(&text).expect_err(&text[..text.len().min(40)]);
        }
    }
}
