//! Any JSON value is written to a front matter, or refused with a reason. planwatch, and a YAML reader that shares no code
//! with it, read a written value back unchanged. `PROPTEST_CASES=100000` sets the number of cases.

use planwatch::text::front_matter;
use planwatch::text::header_edit::{self, Change, NewValue};
use planwatch::text::{scalar, yaml};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::front_matter_gen::{Counts, sample};
use crate::random::Random;

/// Texts that need escapes or quotes somewhere, or that some reader misinterprets.
const PIECES: &[&str] = &[
    "a",
    "Z",
    "é",
    "漢",
    "🎉",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    ":",
    ": ",
    " #",
    "#",
    "-",
    "- ",
    "---",
    "...",
    "?",
    "? ",
    ",",
    "[",
    "]",
    "{",
    "}",
    "'",
    "\"",
    "\\",
    "&x",
    "*x",
    "!t",
    "!!str ",
    "|",
    ">",
    "%",
    "@",
    "`",
    "~",
    "<<",
    "=",
    "\0",
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{b}",
    "\u{c}",
    "\u{1b}",
    "\u{1f}",
    "\u{7f}",
    "\u{80}",
    "\u{84}",
    "\u{85}",
    "\u{8d}",
    "\u{9c}",
    "\u{9f}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{200e}",
    "\u{202e}",
    "\u{2028}",
    "\u{2029}",
    "\u{2060}",
    "\u{3000}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{fdd0}",
    "\u{feff}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{10000}",
    "\u{1fffe}",
    "\u{c7ea3}",
    "\u{10ffff}",
    "\n---\n",
    "\n...\n",
    "<<<<<<< x\n",
    ">>>>>>> ",
];

const WORDS: &[&str] = &[
    "",
    "null",
    "Null",
    "~",
    "true",
    "FALSE",
    "yes",
    "No",
    "on",
    "y",
    "1",
    "-1",
    "+1",
    "014",
    "0o17",
    "0x1F",
    "0b1",
    "1_000",
    "1.5",
    "1e5",
    "1e+5",
    ".5",
    "5.",
    ".inf",
    "-.INF",
    ".nan",
    "NaN",
    "2026-01-01",
    "2026-11-21T09:14:03Z",
    "12:30:45",
    "-1.5024920540636636e+102",
    "# c",
    "a: b",
    "- a",
    "{}",
    "[]",
    "[a",
    "\"q\"",
    "'q'",
    "|-",
    ">",
    "%TAG",
    "status",
    "id",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(PIECES), 0..8).prop_map(|it| it.concat()),
        3 => prop::sample::select(WORDS).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => "[a-z]{1,8}( [a-z]{1,8}){0,5}",
    ]
}

/// Keys, some of them around the length limit.
fn key() -> impl Strategy<Value = String> {
    let long = (prop::sample::select(PIECES), 80..1200_usize).prop_map(|(it, times)| it.repeat(times));
    prop_oneof![30 => text(), 10 => "[a-z]{1,6}", 1 => long, 1 => (990..1030_usize).prop_map(|it| "k".repeat(it))]
}

fn number() -> impl Strategy<Value = Value> {
    let of_any_size = (any::<i64>(), 0..64_u32).prop_map(|(it, by)| json!(it >> by));
    let float = prop_oneof![
        any::<f64>(),
        (any::<i32>(), -330..330_i32).prop_map(|(it, power)| f64::from(it) * 10_f64.powi(power)),
        prop::sample::select(vec![
            0.0,
            -0.0,
            1e16,
            1e-7,
            1e300,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            -1.5024920540636636e+102
        ]),
    ];
    prop_oneof![
        of_any_size,
        any::<u64>().prop_map(|it| json!(it)),
        prop::sample::select(vec![0, 1, u64::MAX, i64::MAX as u64 + 1]).prop_map(|it| json!(it)),
        // JSON readers represent integers beyond 64 bits as floats.
        any::<u128>().prop_map(|it| serde_json::from_str(&it.to_string()).expect("it is readable")),
        float.prop_filter_map("JSON has no infinities", |it| serde_json::Number::from_f64(it)
            .map(Value::Number)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => prop::sample::select(vec![json!([]), json!({})]),
        2 => number(),
        4 => text().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), value()), 0..4)
        .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>()))
}

/// Documents with all layouts of front matters.
fn document() -> impl Strategy<Value = Vec<u8>> {
    let shapes = prop::sample::select(vec![
        "",
        "# Step\n",
        "\u{feff}---\r\nstatus: pending\r\n---\r\n# Step\r\n",
        "---\nstatus: pending\n---\n",
        "---\n{status: pending, metadata: {a: [b]}}\n---\n",
        "---\nmetadata: {} # c\nstatus: pending\n---\n",
        "---\nmetadata:\n  a:\n  - 1\n  b: |\n    x\n# c\n\nnotes:\n- x\n---\n",
        "---\n  metadata:\n\n  # c\n  status: pending\n---\n",
        "---\nmetadata: &m [a] # c\n---\n",
        "---\nmetadata: |+\n  x\n\n # c\n---\n",
        "---\nmetadata: 'one\n  two' # c\n---\n",
        "---\na: >+\n  x\n\n---\n",
    ]);
    prop_oneof![
        shapes.prop_map(|it| it.as_bytes().to_vec()),
        any::<u64>().prop_map(|seed| sample(&mut Random::new(seed), &mut Counts::new()).bytes),
    ]
}

fn yaml_of(file: &[u8]) -> String {
    String::from_utf8(front_matter::split(file).yaml().unwrap_or_default().to_vec()).expect("it is readable")
}

/// The value of a key, read by planwatch.
fn read(file: &[u8], key: &str) -> Option<Value> {
    let tree = yaml::parse(&yaml_of(file)).ok()?;
    tree.root().get(key).map(|it| it.to_json().expect("it is readable"))
}

/// Sets a value and reads it back.
fn round_trips(file: &[u8], new: NewValue, value: &Value) -> Result<(), TestCaseError> {
    let change = Change::Set { key: "metadata".to_owned(), value: new };
    let after = match header_edit::edit(file, std::slice::from_ref(&change), &["status", "metadata"]) {
        Ok(after) => after,
        Err(error) => {
            let is_readable = read(file, "metadata").is_some() || yaml::parse(&yaml_of(file)).is_ok();
            let is_known = match error.code {
                "bug" => false,
                "value-invalid" => has_long_key(value),
                "anchor-in-use" | "alias" | "layout" => true,
                _ => !is_readable,
            };
            prop_assert!(is_known, "{} {error}", error.code);
            prop_assert!(!error.reason.is_empty() && !error.by_hand.is_empty());
            return Ok(());
        }
    };
    let shown = String::from_utf8_lossy(&after);
    prop_assert_eq!(read(&after, "metadata"), Some(value.clone()), "{}", shown);
    let again = header_edit::edit(&after, &[change], &["status", "metadata"]);
    prop_assert_eq!(again.as_ref(), Ok(&after), "repeated");
    if let Ok(other) = serde_yaml::from_str::<serde_yaml::Value>(&yaml_of(&after)) {
        let other = serde_json::to_value(other.get("metadata")).expect("it is readable");
        let is_same = other == *value || without_tag(&other) == Some(value);
        prop_assert!(is_same, "{} is not {} in {}", other, value, shown);
    } else {
        // If the other reader cannot read the result, it could not read the original either.
        prop_assert!(serde_yaml::from_str::<serde_yaml::Value>(&yaml_of(file)).is_err(), "{}", shown);
    }
    Ok(())
}

/// A new value can keep the tag of the value that it replaces. The other reader shows this tag as a key.
fn without_tag(value: &Value) -> Option<&Value> {
    let map = value.as_object().filter(|it| it.len() == 1)?;
    map.iter().next().filter(|(key, _)| key.starts_with('!')).map(|(_, it)| it)
}

/// Whether an escaped key may exceed the length that every YAML reader accepts.
fn has_long_key(value: &Value) -> bool {
    let is_long = |key: &str| scalar::double(key).len() > 1000 || scalar::json(&json!(key)).len() > 1000;
    match value {
        Value::Array(items) => items.iter().any(has_long_key),
        Value::Object(map) => map.iter().any(|(key, it)| is_long(key) || has_long_key(it)),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_json_object_round_trips_in_block_style(file in document(), value in object()) {
        round_trips(&file, NewValue::of_json(&value), &value)?;
    }

    #[test]
    fn any_json_value_round_trips(file in document(), value in value()) {
        round_trips(&file, NewValue::of_json(&value), &value)?;
    }

    #[test]
    fn json_on_one_line_round_trips(file in document(), value in object()) {
        round_trips(&file, NewValue::Yaml(scalar::json(&value)), &value)?;
    }
}
