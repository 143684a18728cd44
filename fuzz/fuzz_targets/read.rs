//! Arbitrary bytes are split, parsed and converted to JSON without a panic, and every span is within the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planwatch::text::yaml::View;
use planwatch::text::{front_matter, yaml};

fuzz_target!(|bytes: &[u8]| {
    let parts = front_matter::split(bytes);
    assert!(parts.body_start() <= bytes.len());
    let Ok(text) = std::str::from_utf8(parts.yaml().unwrap_or(bytes)) else { return };
    match yaml::parse_node(text) {
        Err(error) => assert!(error.at <= text.len() && !error.message.is_empty()),
        Ok(tree) => {
            assert_eq!(tree.source(), text);
            check(tree.root(), text);
            assert!(yaml::same(tree.root(), tree.root()));
            drop(tree.root().to_json());
        }
    }
});

fn check(view: View<'_>, text: &str) {
    let span = view.span();
    assert!(text.get(span.clone()).is_some(), "{span:?} is not within the text");
    if view.is_alias() {
        return;
    }
    let mut end = span.start;
    for (key, value) in view.own_entries() {
        for part in [key, value] {
            assert!(part.span().start >= end && part.span().end <= span.end, "{part:?} in {view:?}");
            end = part.span().end;
            check(part, text);
        }
    }
    for item in view.items() {
        assert!(item.span().start >= end && item.span().end <= span.end, "{item:?} in {view:?}");
        end = item.span().end;
        check(item, text);
    }
    assert!(view.entries().count() >= view.own_entries().count().saturating_sub(1));
}
