use proptest::prelude::*;

use super::*;

const ENTRY: Entry<'static> =
    Entry { outer: "mcpServers", key: "planwatch", value: r#"{ "command": "planwatch", "args": ["mcp"] }"# };

#[track_caller]
fn check(before: &str, after: &str) {
    assert_eq!(ENTRY.find(before), Ok(EntryState::Nothing));
    let put = ENTRY.put(before).unwrap();
    assert_eq!(put.escape_debug().to_string(), after.escape_debug().to_string());
    assert_eq!(ENTRY.find(&put), Ok(EntryState::Same));
    let taken = ENTRY.take(&put).unwrap();
    assert_eq!(taken.escape_debug().to_string(), before.escape_debug().to_string());
}

const OWN: &str = r#""planwatch": { "command": "planwatch", "args": ["mcp"] }"#;

#[test]
fn an_entry_is_one_line_more_and_goes_without_a_trace() {
    check("{}", &format!("{{\"mcpServers\": {{ {OWN} }}}}"));
    check("{\n}\n", &format!("{{\n  \"mcpServers\": {{ {OWN} }}\n}}\n"));
    check("{\"mcpServers\":{}}", &format!("{{\"mcpServers\":{{{OWN}}}}}"));
    check("{\n  \"mcpServers\": {\n  }\n}", &format!("{{\n  \"mcpServers\": {{\n    {OWN}\n  }}\n}}"));
    check(
        "{\r\n  \"theme\" : \"x\"\r\n}\r\n",
        &format!("{{\r\n  \"mcpServers\": {{ {OWN} }},\r\n  \"theme\" : \"x\"\r\n}}\r\n"),
    );
    check(
        "\u{feff}{\n\t\"mcpServers\": {\n\t\t\"a\": {\"b\": [1, \"}\\\"\"]}\n\t}\n}",
        &format!(
            "\u{feff}{{\n\t\"mcpServers\": {{\n\t\t{OWN},\n\t\t\"a\": {{\"b\": [1, \"}}\\\"\"]}}\n\t}}\n}}"
        ),
    );
    check(
        r#"{"a":1,"mcpServers":{ "b" : {} }}"#,
        &format!(r#"{{"a":1,"mcpServers":{{ {OWN}, "b" : {{}} }}}}"#),
    );
}

#[test]
fn a_moved_or_rewritten_entry_is_removed_as_well() {
    let take = |text: &str| ENTRY.take(text).unwrap();
    let last = format!("{{\"mcpServers\": {{\n  \"a\": 1 ,\n  {OWN}\n}}}}");
    assert_eq!(take(&last), "{\"mcpServers\": {\n  \"a\": 1 \n}}");
    let middle = format!("{{\"mcpServers\": {{\"a\": 1, {OWN}, \"b\": 2}}}}");
    assert_eq!(take(&middle), "{\"mcpServers\": {\"a\": 1, \"b\": 2}}");
    let other_form = "{\"mcpServers\": {\"planwatch\": {\"args\":[\"mcp\"],\n\"command\":\"planwatch\"}}}";
    assert_eq!(ENTRY.find(other_form), Ok(EntryState::Same));
    assert_eq!(take(other_form), "{\"mcpServers\": {}}");
    assert_eq!(take("{\"mcpServers\": {}}"), "{\"mcpServers\": {}}");
    // The object was created with the entry and contains a foreign entry by now.
    let shared = format!("{{\"mcpServers\": {{ {OWN}, \"a\": 1 }}}}");
    assert_eq!(take(&shared), "{\"mcpServers\": { \"a\": 1 }}");
}

#[test]
fn the_file_that_is_made_is_known_again() {
    let alone = ENTRY.alone();
    assert!(ENTRY.is_alone(&alone) && ENTRY.is_alone(&alone.replace('\n', "\r\n")), "{alone}");
    assert_eq!(ENTRY.find(&alone), Ok(EntryState::Same));
    let with_more = alone.replace("\"planwatch\": {", "\"a\": 1,\n    \"planwatch\": {");
    assert!(!ENTRY.is_alone(&with_more));
    assert_eq!(ENTRY.find(&with_more), Ok(EntryState::Same));
    // If the entry is inserted into an existing empty object with the same layout, the result is a different text.
    assert!(!ENTRY.is_alone(&ENTRY.put("{\n  \"mcpServers\": {\n  }\n}\n").unwrap()));
}

#[track_caller]
fn check_refused(text: &str, line: u32, column: u32, reason: &str) {
    let refused = ENTRY.put(text).unwrap_err();
    assert_eq!(
        (refused.place, ENTRY.take(text)),
        (Place { line, column }, Err(refused.clone())),
        "{refused:?}"
    );
    assert!(refused.reason.contains(reason), "{refused:?}");
}

#[test]
fn text_that_is_not_strict_json_is_refused_with_its_place() {
    check_refused("{\n  // ours\n  \"a\": 1\n}", 2, 3, "comment");
    check_refused("{\n  \"a\": 1, /* x */\n  \"b\": 2\n}", 2, 11, "comment");
    check_refused("{\n  \"a\": 1,\n}\n", 3, 1, "trailing comma");
    check_refused("", 1, 1, "empty");
    check_refused("[]", 1, 1, "not a JSON object");
    check_refused("{\"mcpServers\": []}", 1, 16, "`mcpServers` is not an object");
    check_refused("{\"mcpServers\": {},\n \"mcpServers\": {}}", 2, 2, "twice");
    check_refused("{\"mcpServers\": {\"planwatch\": 1, \"planwatch\": 2}}", 1, 33, "twice");
    check_refused("{\"ä\": 'x'}", 1, 7, "expected value");
}

/// JSON values with any blanks between their tokens.
fn any_json(depth: u32) -> impl Strategy<Value = String> {
    let blank = "[ \t]{0,2}(\r?\n[ \t]{0,3})?";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.5e3".to_owned()),
        "[a-z{}\\[\\],:ä ]{0,6}".prop_map(|it| format!("\"{it}\\\"\\\\\"")),
        blank.prop_map(|it| format!("{{{it}}}")),
    ];
    leaf.prop_recursive(depth, 16, 4, move |inner| {
        let member = (blank, "[a-z]{1,3}", blank, inner.clone(), blank);
        let member =
            member.prop_map(|(a, key, b, value, c)| (key.clone(), format!("{a}\"{key}\"{b}:{b}{value}{c}")));
        prop_oneof![
            prop::collection::vec(member, 1..4).prop_map(|of| {
                let mut of = of;
                of.sort_unstable();
                of.dedup_by(|a, b| a.0 == b.0);
                let of: Vec<_> = of.into_iter().map(|(_, it)| it).collect();
                format!("{{{}}}", of.join(","))
            }),
            prop::collection::vec(inner, 0..3).prop_map(|of| format!("[{}]", of.join(","))),
        ]
    })
}

/// Settings files with up to three members that have any values; most of the files have `mcpServers`.
fn any_settings() -> impl Strategy<Value = String> {
    let blank = "[ \t]{0,2}(\r?\n[ \t]{0,3})?";
    let servers =
        prop_oneof![Just(None), blank.prop_map(|it| Some(format!("{{{it}}}"))), any_json(2).prop_map(Some),];
    let around = ("\u{feff}?", blank, prop::option::of(any_json(2)), prop::option::of(any_json(1)), blank);
    (around, servers).prop_map(|((bom, a, first, last, b), servers)| {
        let members = [
            first.map(|it| format!("\"a\"{a}:{it}{b}")),
            servers.map(|it| format!("{a}\"mcpServers\":{b}{it}")),
            last.map(|it| format!("{b}\"z\":{it}")),
        ];
        let members: Vec<_> = members.into_iter().flatten().collect();
        let inside = if members.is_empty() { a.clone() } else { format!("{a}{}{b}", members.join(",")) };
        format!("{bom}{a}{{{inside}}}{b}")
    })
}

proptest! {
    /// For any file: inserting an entry and removing it restores the exact bytes.
    #[test]
    fn put_and_take_is_nothing(text in any_settings()) {
        if let Ok(put) = ENTRY.put(&text) {
            prop_assert_eq!(ENTRY.find(&put), Ok(EntryState::Same));
            prop_assert_eq!(ENTRY.take(&put).unwrap(), text);
        } else {
            let value: Value = serde_json::from_str(text.trim_start_matches(BOM)).unwrap();
            prop_assert!(value.get("mcpServers").is_some_and(|it| !it.is_object()), "{}", text);
        }
    }

    /// Any text is handled without a panic, and what is inserted can be removed again.
    #[test]
    fn any_text_gets_an_answer(text in "[ -~\\n\u{feff}ä]{0,40}") {
        if let Ok(put) = ENTRY.put(&text) {
            prop_assert_eq!(ENTRY.take(&put).unwrap(), text);
        }
    }
}
