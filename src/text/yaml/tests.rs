//! Tests of spans and meanings, and of limits for hostile input.

use super::*;

/// Checks each node's indicator, properties and span, in the order of the text.
#[track_caller]
fn check(yaml: &str, nodes: &[&str]) {
    let tree = parse_node(yaml).unwrap_or_else(|it| panic!("{it} in {yaml:?}"));
    let mut found = Vec::new();
    list_nodes(tree.root(), yaml, &mut found);
    assert_eq!(found, nodes, "{yaml:?}");
}

fn list_nodes(view: View<'_>, yaml: &str, found: &mut Vec<String>) {
    let lead = view.lead().map_or(String::new(), |it| yaml[it..=it].to_owned());
    let properties = &yaml[view.outer_span().start..view.span().start];
    found.push(format!("{lead}{properties}<{}>", &yaml[view.span()]));
    if view.is_alias() {
        return;
    }
    for (key, value) in view.own_entries() {
        list_nodes(key, yaml, found);
        list_nodes(value, yaml, found);
    }
    view.items().for_each(|it| list_nodes(it, yaml, found));
}

#[test]
fn spans_are_exact() {
    check("a: 'x'  # c\n", &["<a: 'x'>", "<a>", ":<'x'>"]);
    check(
        "a : \"x\n y\" \nb: p\n q\n\n r # c\n",
        &["<a : \"x\n y\" \nb: p\n q\n\n r>", "<a>", ":<\"x\n y\">", "<b>", ":<p\n q\n\n r>"],
    );
    check("a:  # c\n# d\nb: ~\n", &["<a:  # c\n# d\nb: ~>", "<a>", ":<>", "<b>", ":<~>"]);
    check("? a\n? b\n: c\n", &["<? a\n? b\n: c>", "?<a>", "<>", "?<b>", ":<c>"]);
    check("? a\n:: c\n", &["<? a\n:: c>", "?<a>", "<>", "<:>", ":<c>"]);
    check("a: &x !!str b\nc: *x\n", &["<a: &x !!str b\nc: *x>", "<a>", ":&x !!str <b>", "<c>", ":<*x>"]);
    check("a: !t\nb: &y # c\n", &["<a: !t\nb: &y>", "<a>", ":!t<>", "<b>", ":&y<>"]);
    check("a: &x{b: c}\n", &["<a: &x{b: c}>", "<a>", ":&x<{b: c}>", "<b>", ":<c>"]);
    check("&r !!map\n&k a: 1\n", &["&r !!map\n<&k a: 1>", "&k <a>", ":<1>"]);
}

#[test]
fn spans_of_lists_are_exact() {
    check(
        "a:\n- 1\n-\n- # c\n  x\n",
        &["<a:\n- 1\n-\n- # c\n  x>", "<a>", ":<- 1\n-\n- # c\n  x>", "-<1>", "-<>", "-<x>"],
    );
    check(
        "- - 1\n  - &x\n    a: b\n- [c,]\n",
        &[
            "<- - 1\n  - &x\n    a: b\n- [c,]>",
            "-<- 1\n  - &x\n    a: b>",
            "-<1>",
            "-&x\n    <a: b>",
            "<a>",
            ":<b>",
            "-<[c,]>",
            "<c>",
        ],
    );
}

#[test]
fn spans_in_brackets_are_exact() {
    check(
        "{a, b: , \"c\":d, ? e : f, g: [h: i, *x ]}".replace(", *x", "").as_str(),
        &[
            "<{a, b: , \"c\":d, ? e : f, g: [h: i ]}>",
            "<a>",
            "<>",
            "<b>",
            ":<>",
            "<\"c\">",
            ":<d>",
            "?<e>",
            ":<f>",
            "<g>",
            ":<[h: i ]>",
            "<h: i>",
            "<h>",
            ":<i>",
        ],
    );
    check("[ # c\n &a x, # d, e\n !t {}\n]\n", &["<[ # c\n &a x, # d, e\n !t {}\n]>", "&a <x>", "!t <{}>"]);
}

#[test]
fn spans_of_block_scalars_end_with_their_content() {
    check(
        "a: |\n  x\n\n   \nb: 1\n",
        &["<a: |\n  x\n\n   \nb: 1>", "<a>", ":<|\n  x\n\n   >", "<b>", ":<1>"],
    );
    check("a: | # h\n  x\n\n# c\n", &["<a: | # h\n  x>", "<a>", ":<| # h\n  x>"]);
    check(
        "a: |+\r\n  x\r\n\r\n\r\nb: 1\r\n",
        &["<a: |+\r\n  x\r\n\r\n\r\nb: 1>", "<a>", ":<|+\r\n  x\r\n\r\n>", "<b>", ":<1>"],
    );
    check("a: >1-\n  x\n # c\nb:\n", &["<a: >1-\n  x\n # c\nb:>", "<a>", ":<>1-\n  x\n # c>", "<b>", ":<>"]);
    check("a: |\nb: |-\n\n", &["<a: |\nb: |->", "<a>", ":<|>", "<b>", ":<|->"]);
}

#[test]
fn texts_that_other_readers_accept_are_read() {
    check(
        "t: \"one\ntwo\n\nthree\" # c\nu:\n  v: 'a\n b\nc'\nw: x\n",
        &[
            "<t: \"one\ntwo\n\nthree\" # c\nu:\n  v: 'a\n b\nc'\nw: x>",
            "<t>",
            ":<\"one\ntwo\n\nthree\">",
            "<u>",
            ":<v: 'a\n b\nc'>",
            "<v>",
            ":<'a\n b\nc'>",
            "<w>",
            ":<x>",
        ],
    );
    check("t: >4-\n\n  # c\nu: x\n", &["<t: >4-\n\n  # c\nu: x>", "<t>", ":<>4->", "<u>", ":<x>"]);
    check("t: [a]# c\nu: 'x'#d\n", &["<t: [a]# c\nu: 'x'>", "<t>", ":<[a]>", "<a>", "<u>", ":<'x'>"]);
    let tree = parse("t: \"one\ntwo\n\nthree\"\nu: x\n").expect("repaired");
    assert_eq!(tree.root().get("t").and_then(View::text), Some("one two\nthree"));
    assert_eq!(tree.root().get("u").and_then(View::text), Some("x"));
}

#[test]
fn plain_scalars_keep_their_text() {
    let tree = parse("v: 2.10\nn: no\nq: \"1\\u0065\"\nt: !!str 5\nd: 2026-01-01\nz: ~\nl: |\n  a\n  b\n")
        .expect("valid");
    let root = tree.root();
    let get = |key: &str| root.get(key).map(|it| (it.kind(), it.text()));
    assert_eq!(get("v"), Some((Kind::Number, Some("2.10"))));
    assert_eq!(get("n"), Some((Kind::Text, Some("no"))));
    assert_eq!(get("q"), Some((Kind::Text, Some("1e"))));
    assert_eq!(get("t"), Some((Kind::Text, Some("5"))));
    assert_eq!(get("d"), Some((Kind::Text, Some("2026-01-01"))));
    assert_eq!(get("z"), Some((Kind::Null, None)));
    assert_eq!(get("l"), Some((Kind::Text, Some("a\nb\n"))));
    assert_eq!(get("x"), None);
}

#[test]
fn merges_add_only_keys_that_the_mapping_lacks() {
    let tree =
        parse("a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2, z: 2}\nc:\n  <<: [*b, *a]\n  z: 3\n").expect("valid");
    let c = tree.root().get("c").expect("c is there");
    let entries: Vec<_> =
        c.entries().map(|(key, value)| format!("{:?} {:?}", key.text(), value.text())).collect();
    assert_eq!(entries, [r#"Some("z") Some("3")"#, r#"Some("y") Some("2")"#, r#"Some("x") Some("1")"#]);
    assert_eq!(c.get("x").and_then(View::text), Some("1"));
    assert!(c.find_entry("x").is_none());
    let json = tree.root().to_json().expect("small");
    assert_eq!(json["c"], serde_json::json!({"z": 3, "y": 2, "x": 1}));
}

#[test]
fn values_that_json_cannot_represent_become_texts() {
    let tree =
        parse("a: 0x1F\nb: 1.50\nc: .inf\nd: 123456789012345678901234567890\ne: [~, True]\n1: x\nf: 014\n")
            .expect("valid");
    let json = tree.root().to_json().expect("small");
    let expected = serde_json::json!({
        "a": 31, "b": 1.5, "c": ".inf", "d": "123456789012345678901234567890", "e": [null, true], "1": "x", "f": "014"
    });
    assert_eq!(json, expected);
}

#[track_caller]
fn refuses(yaml: &str, code: &str, at: usize) {
    let error = parse(yaml).expect_err("refused");
    assert_eq!((error.code, error.at), (code, at), "{error} in {:?}", &yaml[..yaml.len().min(80)]);
}

#[test]
fn invalid_front_matters_have_a_code_and_a_place() {
    refuses("a: 1\nb: 2\na: 3\n", "duplicate-key", 10);
    refuses("a: {b: 1, \"b\": 2}\n", "duplicate-key", 10);
    refuses("- a\n", "not-a-mapping", 0);
    refuses("# c\nstatus:pending\n", "not-a-mapping", 4);
    refuses("~\n", "not-a-mapping", 0);
    refuses("a: 1\n<<<<<<< HEAD\nb: 1\n", "conflict-markers", 5);
    refuses("a: [1\n", "front-matter-invalid", 3);
    refuses("a: &x [*x]\n", "front-matter-invalid", 7);
    refuses("a: 1\n--- # x\nb: 1\n", "front-matter-invalid", 5);
    for yaml in ["", "# only\n", "\n\n"] {
        assert!(parse(yaml).expect("an empty text is valid").root().is_null());
    }
}

#[test]
fn keys_that_differ_in_kind_are_two() {
    assert!(parse("1: a\n\"1\": b\n~: c\n\"~\": d\n").is_ok());
    assert!(parse("1: a\n1: b\n").is_err());
    let many: String = (0..100).map(|it| format!("k{it}: 1\n")).collect();
    assert!(parse(&many).is_ok());
    assert_eq!(parse(&format!("{many}k7: 2\n")).map_err(|it| it.code).err(), Some("duplicate-key"));
}

#[test]
fn hostile_shapes_are_rejected_quickly() {
    let wide: String = (0..100_000).map(|it| format!("k{it}: 1\n")).collect();
    assert_eq!(parse(&wide).expect("wide").root().len(), 100_000);
    for deep in [
        "[".repeat(100_000),
        "- ".repeat(50_000),
        "a: {".repeat(50_000),
        "? ".repeat(50_000),
        "!a ".repeat(9),
    ] {
        assert!(parse_node(&deep).is_err());
    }
    let nested: String = (0..300).map(|it| format!("{}a:\n", " ".repeat(it))).collect();
    assert_eq!(parse(&nested).map_err(|it| it.code).err(), Some("too-large"));
    let allowed: String = (0..64).map(|it| format!("{}a:\n", " ".repeat(it))).collect();
    assert!(parse(&allowed).is_ok());
    assert_eq!(parse(&"x".repeat(MAX_FRONT)).map_err(|it| it.code).err(), Some("too-large"));
}

const MAX_FRONT: usize = crate::text::front_matter::MAX_FRONT_MATTER + 1;

#[test]
fn aliases_do_not_blow_up() {
    let laughs: String = (0..40)
        .map(|it| format!("a{}: &a{} [{}]\n", it + 1, it + 1, vec![format!("*a{it}"); 9].join(", ")))
        .collect();
    let laughs = format!("a0: &a0 [x]\n{laughs}");
    let tree = parse(&laughs).expect("360 aliases");
    assert_eq!(tree.root().to_json(), Err(JsonError));
    assert!(same(tree.root(), parse(&laughs).expect("as before").root()));
    let quad = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(","));
    assert_eq!(parse(&quad).expect("900 aliases").root().to_json(), Err(JsonError));
    let many = format!("a: &a x\nb: [{}]\n", vec!["*a"; 1001].join(","));
    assert_eq!(parse(&many).map_err(|it| it.code).err(), Some("too-large"));
    let deep: String = (0..99).map(|it| format!("a{}: &a{} [*a{it}]\n", it + 1, it + 1)).collect();
    assert_eq!(parse(&format!("a0: &a0 x\n{deep}")).map_err(|it| it.code).err(), Some("too-large"));
    let merges: String =
        (0..30).map(|it| format!("m{}: &m{} {{<<: [*m{it}, *m{it}], k{it}: 1}}\n", it + 1, it + 1)).collect();
    let tree = parse(&format!("m0: &m0 {{x: 1}}\n{merges}")).expect("60 aliases");
    assert_eq!(tree.root().get("m30").expect("there").entries().count(), 31);
}
