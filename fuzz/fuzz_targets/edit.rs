//! Laws for edits of arbitrary bytes: the internal check finds no bug, only the front matter changes, repeating an edit
//! changes nothing, and adding and removing a key restores the original bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planwatch::text::front_matter::split;
use planwatch::text::header_edit::{Change, NewValue, edit};
use planwatch::text::yaml;

const ORDER: [&str; 4] = ["id", "status", "title", "attempts"];

fuzz_target!(|input: (u8, String, &[u8])| {
    let (choice, text, bytes) = input;
    let file = if bytes.starts_with(b"---") {
        bytes.to_vec()
    } else {
        [b"---\n", bytes, b"\n---\n# Step\n"].concat()
    };
    let change = change(choice, text);
    let after = match edit(&file, std::slice::from_ref(&change), &ORDER) {
        Ok(after) => after,
        Err(error) => {
            assert_ne!(error.code, "bug", "{error:?} for {change:?}");
            assert!(error.at <= file.len() && !error.by_hand.is_empty());
            return;
        }
    };
    let (old, new) = (split(&file), split(&after));
    assert_eq!(old.body(), new.body());
    assert_eq!(old.has_bom, new.has_bom);
    repeat(&after, &change);
    undo(&file, &after, &change);
});

fn change(choice: u8, text: String) -> Change {
    let key = ["status", "id", "attempts", "a", "title"][usize::from(choice >> 4) % 5].to_owned();
    let map = |text| {
        NewValue::Map(vec![("at".to_owned(), NewValue::Word("x".to_owned())), ("notes".to_owned(), text)])
    };
    let index = usize::from(choice >> 6);
    match choice % 8 {
        0 => Change::Set { key, value: NewValue::Word("in_progress".to_owned()) },
        1 => Change::Set { key, value: NewValue::Text(text) },
        2 => Change::Append { key, item: map(NewValue::Text(text)) },
        3 => Change::Remove { key },
        4 => Change::RemoveItem { key, index },
        5 => Change::SetItem { key, index, value: map(NewValue::Text(text)) },
        6 => Change::Append { key, item: NewValue::Text(text) },
        _ => Change::Set { key, value: NewValue::List(vec![NewValue::Text(text)]) },
    }
}

fn repeat(after: &[u8], change: &Change) {
    if matches!(change, Change::Append { .. } | Change::RemoveItem { .. }) {
        return;
    }
    match edit(after, std::slice::from_ref(change), &ORDER) {
        Ok(again) => assert_eq!(again, after, "repeating {change:?}"),
        Err(error) => assert_eq!(error.code, "alias", "repeating {change:?}"),
    }
}

fn undo(file: &[u8], after: &[u8], change: &Change) {
    let Some(text) = split(file).yaml().and_then(|it| std::str::from_utf8(it).ok()) else { return };
    let is_new = yaml::parse(text).is_ok_and(|it| it.root().get(change.key()).is_none());
    if !is_new || after == file {
        return;
    }
    let back = edit(after, &[Change::Remove { key: change.key().to_owned() }], &ORDER);
    assert_eq!(back.as_deref(), Ok(file), "{change:?} and back");
}
