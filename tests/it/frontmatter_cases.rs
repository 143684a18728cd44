//! Front matters that are difficult to edit: each row of `tests/frontmatter/INDEX.tsv`, checked with its byte rule.
//!
//! A YAML reader that shares no code with planwatch checks the data.

#![expect(clippy::disallowed_methods, reason = "the test reads fixtures")]

use planwatch::text::front_matter::{self, Header};
use planwatch::text::header_edit::{self, Change, NewValue};
use planwatch::text::yaml;
use serde_json::Value as Json;
use serde_yaml::Value as Yaml;
use std::path::Path;

const INDEX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frontmatter/INDEX.tsv");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frontmatter/files");

const ORDER: [&str; 6] = ["id", "status", "title", "depends", "priority", "attempts"];

#[test]
fn every_row_holds_under_its_byte_rule() {
    let mut failures = Vec::new();
    let rows = rows();
    for (file, op, args, rule) in &rows {
        if let Err(why) = run(&fixture(file), op, args, rule) {
            failures.push(format!("{file} {op} {args} [{rule}]\n    {why}"));
        }
    }
    assert_eq!(rows.len(), 485);
    assert!(failures.is_empty(), "{} of the rows failed:\n{}", failures.len(), failures.join("\n"));
}

/// The rows of the file `90-values-block.md`, with other layouts of that file. An append to an empty list has the rule
/// `safe`, all other rules are the same.
#[test]
fn the_value_table_holds_in_other_layouts() {
    let block = fixture("90-values-block.md");
    let text = String::from_utf8(block).expect("UTF-8");
    let (_, body) = text.split_once("owner: bob\n").expect("the last entry");
    let layouts = [
        text.replace('\n', "\r\n"),
        text.replace("\n- at: a\n  notes: b", "\n    -   at: a\n        notes: b"),
        text.replace("\n- at: a\n  notes: b", "\n  -\n    at: a\n    notes: b"),
        text.replace("\n- at: a\n  notes: b", ""),
        text.replace("\n- at: a\n  notes: b", " ~ # none"),
        text.replace("\n- at: a\n  notes: b", " [ ] # none"),
        text.replace("\n- at: a\n  notes: b", " [\n  {at: a, notes: b}, # c\n  ]"),
        text.replace("plain #", "&p !!str plain #").replace("'single' #", "\n  # above\n  'single' #"),
        format!(
            "---\n{{title: plain, sq: 'single', dq: \"double\", attempts: [{{at: a}}], owner: bob}}\n{body}"
        ),
        format!(
            "---\n{{title: plain, # c\n  sq: 'single',\n dq: \"double\", attempts: [\n    x,\n  ]\n}}\n{body}"
        ),
    ];
    let mut failures = Vec::new();
    for (op, args, rule) in
        rows().iter().filter(|it| it.0 == "90-values-block.md").map(|it| (&it.1, &it.2, &it.3))
    {
        for layout in &layouts {
            let was_empty = op == "append" && !layout.contains("at: a") && !layout.contains("    x,");
            let rule = if was_empty { "safe" } else { rule };
            if let Err(why) = run(layout.as_bytes(), op, args, rule) {
                failures.push(format!("{op} {args} [{rule}]\n    {why}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(FIXTURES).join(name)).expect("the file of the row is there")
}

/// File, operation, arguments and byte rule of each row.
fn rows() -> Vec<(String, String, Json, String)> {
    let index = std::fs::read_to_string(INDEX).expect("the index is there");
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [file, op, args, rule, ..] = columns[..] else { panic!("a row of the index: {line}") };
        let args = serde_json::from_str(args).expect("arguments are JSON");
        (file.to_owned(), op.to_owned(), args, unescape(rule))
    };
    index.lines().skip(1).map(row).collect()
}

fn run(before: &[u8], op: &str, args: &Json, rule: &str) -> Result<(), String> {
    let change = change(op, args);
    let after = header_edit::edit(before, std::slice::from_ref(&change), &ORDER);
    let (kind, rest) = rule.split_once('|').unwrap_or((rule, ""));
    match (kind, after) {
        ("refuse", Err(error)) if !error.by_hand.is_empty() => Ok(()),
        ("safe", Err(error)) if error.code != "bug" => Ok(()),
        ("refuse", Ok(_)) => Err("should have been refused".to_owned()),
        (_, Err(error)) => Err(format!("{}: {error}", error.code)),
        (_, Ok(after)) => {
            bytes_obey(kind, rest, before, &after).map_err(|it| format!("{it}: {}", show(&after)))?;
            data_is(before, &after, op, args).map_err(|it| format!("{it}: {}", show(&after)))?;
            let again = header_edit::edit(&after, &[change], &ORDER).map_err(|it| it.to_string())?;
            let repeats = op == "append" || again == after;
            repeats.then_some(()).ok_or_else(|| "repeating the edit changes bytes".to_owned())
        }
    }
}

fn change(op: &str, args: &Json) -> Change {
    let key = args["key"].as_str().expect("a key").to_owned();
    match op {
        "append" => Change::Append { key, item: value(&args["item"]) },
        "remove" => Change::Remove { key },
        _ => Change::Set { key, value: value(&args["value"]) },
    }
}

fn value(json: &Json) -> NewValue {
    match json {
        Json::Object(entries) => {
            NewValue::Map(entries.iter().map(|(key, it)| (key.clone(), value(it))).collect())
        }
        _ => NewValue::Text(json.as_str().expect("values are texts").to_owned()),
    }
}

fn bytes_obey(kind: &str, rest: &str, before: &[u8], after: &[u8]) -> Result<(), String> {
    match kind {
        "span" => only_the_token_changes(rest, before, after),
        "insert" => one_insertion(before, after).map(drop),
        "delete" => {
            let gone: String = serde_json::from_str(rest).expect("a JSON text");
            (one_insertion(after, before)? == gone.as_bytes())
                .then_some(())
                .ok_or_else(|| "deletes other bytes".into())
        }
        "keep" => {
            let may_go: Vec<String> = serde_json::from_str(rest).expect("JSON lines");
            other_lines_stay(&may_go, before, after)
        }
        "create" => {
            let body = front_matter::split(before).body();
            after.ends_with(body).then_some(()).ok_or_else(|| "the body changed".to_owned())
        }
        "safe" => Ok(()),
        _ => Err(format!("unknown rule `{kind}`")),
    }
}

/// Only the given occurrence of a token in the front matter is different.
fn only_the_token_changes(rest: &str, before: &[u8], after: &[u8]) -> Result<(), String> {
    let (token, nth) = rest.rsplit_once('|').expect("token and number");
    let yaml = yaml_of(before);
    let nth: usize = nth.parse().expect("a number");
    let (at, _) = yaml.match_indices(token).nth(nth).expect("the token is there");
    let start = before.len() - front_matter::split(before).body().len();
    let Header::Present { yaml: range, .. } = front_matter::split(before).header else { panic!("no header") };
    assert!(start >= range.end);
    let (head, tail) = (&before[..range.start + at], &before[range.start + at + token.len()..]);
    let fits = after.len() >= head.len() + tail.len() && after.starts_with(head) && after.ends_with(tail);
    fits.then_some(()).ok_or_else(|| "bytes outside of the token changed".to_owned())
}

fn one_insertion(before: &[u8], after: &[u8]) -> Result<Vec<u8>, String> {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let grown = after.len().checked_sub(before.len()).ok_or("bytes were removed")?;
    // The same insertion can be attributed to several places. Any of them is right for this check.
    if before[head..] != after[head + grown..] {
        return Err("more than one insertion".to_owned());
    }
    Ok(after[head..head + grown].to_vec()).map(|it| rotated(before, head, &it))
}

/// Moves an insertion to the start of its line, if the text is then the same.
fn rotated(before: &[u8], mut at: usize, inserted: &[u8]) -> Vec<u8> {
    let mut text = inserted.to_vec();
    while at > 0 && text.last() == Some(&before[at - 1]) && before[at - 1] != b'\n' {
        text.rotate_right(1);
        at -= 1;
    }
    text
}

fn other_lines_stay(may_go: &[String], before: &[u8], after: &[u8]) -> Result<(), String> {
    let after = String::from_utf8_lossy(after);
    let mut rest = after.split_inclusive('\n');
    for line in String::from_utf8_lossy(before).split_inclusive('\n') {
        if !may_go.iter().any(|it| it == line.trim_end()) && !rest.any(|it| it == line) {
            return Err(format!("the line {line:?} is gone"));
        }
    }
    Ok(())
}

fn data_is(before: &[u8], after: &[u8], op: &str, args: &Json) -> Result<(), String> {
    let mut expected = data(before)?;
    let map = expected.as_mapping_mut().ok_or("no mapping")?;
    let key = Yaml::from(args["key"].as_str().expect("a key"));
    let to_yaml = |it: &Json| serde_yaml::to_value(it).expect("JSON is YAML");
    match op {
        "remove" => drop(map.remove(&key)),
        "append" => {
            let list = map.entry(key).or_insert(Yaml::Null);
            if list.is_null() {
                *list = Yaml::Sequence(Vec::new());
            }
            list.as_sequence_mut().ok_or("no list")?.push(to_yaml(&args["item"]));
        }
        _ => drop(map.insert(key, to_yaml(&args["value"]))),
    }
    let is = data(after)?;
    (is == expected).then_some(()).ok_or_else(|| format!("data is {is:?}, not {expected:?}"))
}

/// The data as the other reader reads it. That reader splits texts at YAML 1.1's line endings; for texts with these,
/// planwatch's own reader is used.
fn data(file: &[u8]) -> Result<Yaml, String> {
    let parts = front_matter::split(file);
    let text = std::str::from_utf8(parts.yaml().unwrap_or_default()).map_err(|it| it.to_string())?;
    let data: Yaml = if text.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        let own = yaml::parse(text).map_err(|it| it.to_string())?.root().to_json();
        serde_yaml::to_value(own.map_err(|it| it.to_string())?).map_err(|it| it.to_string())?
    } else {
        serde_yaml::from_str(text).map_err(|it| it.to_string())?
    };
    Ok(if data.is_null() { Yaml::Mapping(serde_yaml::Mapping::new()) } else { data })
}

fn yaml_of(file: &[u8]) -> &str {
    std::str::from_utf8(front_matter::split(file).yaml().expect("a front matter")).expect("UTF-8")
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(it) = rest.next() {
        match (it, it == '\\') {
            (_, true) => match rest.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            _ => out.push(it),
        }
    }
    out
}

fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().chars().take(400).collect()
}
