//! Tests that an independent reader reads back every text, in whichever style it is written.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, place: Place, written: &str) {
    assert_eq!(inline(text, place), written, "of {text:?}");
}

#[test]
fn ambiguous_texts_are_quoted() {
    for text in [
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "N",
        "true",
        "Null",
        "~",
        "",
        "1",
        "-1",
        "+1",
        ".5",
        "0x1F",
        "0o17",
        "017",
        "1_000",
        "12:30:45",
        "2026-01-01",
        ".nan",
        "<<",
        "=",
        " lead",
        "trail ",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "- a",
        "---",
        "...",
        "? a",
        "[a",
        "*x",
        "&x",
        "!x",
        "|",
        ">",
        "@x",
        "`x",
        "%x",
        "'q'",
        "tab\there",
        "line\nbreak",
    ] {
        check(text, Place::Block, &double(text));
    }
}

#[test]
fn safe_texts_stay_plain() {
    for text in [
        "in_progress",
        "left voicemail for Jim's Fencing",
        "a:b",
        "a#b",
        "é漢🎉",
        "a, b",
        "a]",
        "/x/y",
        "nbsp\u{a0}x",
    ] {
        check(text, Place::Block, text);
    }
}

#[test]
fn brackets_and_commas_are_quoted_inside_of_brackets() {
    for text in ["a, b", "a]", "a}", "a:b", "a[1]"] {
        check(text, Place::Flow, &double(text));
    }
    check("plain words", Place::Flow, "plain words");
}

#[test]
fn quotes_that_need_no_backslash_are_preferred() {
    check(r#"say "hi""#, Place::Flow, r#"say "hi""#);
    check(r#""hi", he said"#, Place::Flow, r#"'"hi", he said'"#);
    check(r"\d+: x", Place::Block, r"'\d+: x'");
    check("it's: x", Place::Block, r#""it's: x""#);
}

#[test]
fn unprintable_characters_are_escaped() {
    check(
        "a\u{85}\u{2028}\u{feff}\u{7f}\0\u{1b}b\u{ffff}",
        Place::Block,
        r#""a\x85\u2028\uFEFF\x7F\0\eb\uFFFF""#,
    );
    check("cr\r\nlf\t.", Place::Block, r#""cr\r\nlf\t.""#);
}

#[test]
fn json_that_is_yaml_too_is_still_json() {
    let value = serde_json::json!({"a\u{85}\u{7f}": ["\u{feff}\u{2028}é\u{ffff}🎉\0", -1.2e-100, null, {}]});
    let written = json(&value);
    assert_eq!(written, r#"{"a\u0085\u007f":["\ufeff\u2028é\uffff🎉\u0000",-1.2e-100,null,{}]}"#);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    let read: serde_yaml::Value = serde_yaml::from_str(&written).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), value);
}

#[test]
fn a_block_scalar_is_offered_only_where_it_is_exact() {
    assert_eq!(literal("a\nb"), Some(Literal { header: "|-", lines: vec!["a", "b"] }));
    assert_eq!(literal("a\n\nb\n"), Some(Literal { header: "|", lines: vec!["a", "", "b"] }));
    for text in ["one line", "\na", "a\n\n", "  a\nb", "a \nb", "\ta\nb", "a\r\nb", "a\u{85}\nb", "\n"] {
        assert_eq!(literal(text), None, "{text:?}");
    }
}

#[track_caller]
fn comes_back(yaml: &str, text: &str) {
    let read: serde_yaml::Value = serde_yaml::from_str(yaml).unwrap_or_else(|it| panic!("{it}: {yaml:?}"));
    let first = if read.is_mapping() { &read["k"] } else { &read[0] };
    assert_eq!(first.as_str(), Some(text), "{yaml:?}");
}

proptest! {
    #[test]
    fn every_way_to_write_a_text_reads_back(text in any_text()) {
        comes_back(&format!("k: {}\n", inline(&text, Place::Block)), &text);
        comes_back(&format!("[{}, x]\n", inline(&text, Place::Flow)), &text);
        comes_back(&format!("{{k: {}}}\n", inline(&text, Place::Flow)), &text);
        comes_back(&format!("k: {}\n", double(&text)), &text);
        if let Some(quoted) = single(&text) {
            comes_back(&format!("k: {quoted}\n"), &text);
        }
        if let Some(block) = any_literal(&text) {
            let lines: Vec<String> = block.lines.iter().map(|it| format!("  {it}")).collect();
            comes_back(&format!("k: {}\n{}\nl: 1\n", block.header, lines.join("\n")), &text);
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a", "B", " ", "  ", ":", "#", "-", "\n", "'", "\"", "\\", ",", "[", "]", "{", "}", "?", "!", "&",
        "*", "|", ">", "%", "@", "`", "~", "1", "0x", "é", "🎉", "\t", "\r", "\u{85}", "\u{2028}",
        "\u{feff}", "\0", "yes", "null", "<<",
    ]);
    prop_oneof![any::<String>(), prop::collection::vec(token, 0..8).prop_map(|it| it.concat())]
}
