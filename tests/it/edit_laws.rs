//! Laws of edits, tested with random front matters. `PLANWATCH_EDITS=100000` sets the number of edits.
//!
//! If another YAML reader, which shares no code with planwatch, can read the original, it checks the data. The generator's
//! positions of the entries are used to check the bytes.

#![expect(clippy::disallowed_methods, reason = "the number of edits comes from the environment")]

use crate::front_matter_gen::{Counts, Sample, sample};
use crate::random::Random;
use planwatch::text::front_matter;
use planwatch::text::header_edit::{self, Change, EditError, EntryChange, NewValue};
use planwatch::text::scalar::{self, Place};
use planwatch::text::yaml::{self, Kind, Style, View};
use serde_yaml::Value as Yaml;
use std::ops::Range;

const ORDER: [&str; 9] =
    ["id", "status", "claim", "title", "depends", "priority", "tags", "notes", "attempts"];

const EDITS: &str = "= edits made";

#[test]
fn random_edits_keep_the_laws() {
    let wanted: usize = std::env::var("PLANWATCH_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(2000);
    let mut counts = Counts::new();
    let mut failures = Vec::new();
    let mut seed = 0;
    while counts.get(EDITS).is_none_or(|it| *it < wanted) {
        seed += 1;
        let mut random = Random::new(seed);
        let file = sample(&mut random, &mut counts);
        let change = random_change(&mut random, &file);
        let mut trial = Trial { file, change, counts: &mut counts };
        if let Err(why) = trial.run() {
            let text = String::from_utf8_lossy(&trial.file.bytes).into_owned();
            failures.push(format!("seed {seed}: {:?}\n{text}\n{text:?}\n{why}\n", trial.change));
        }
    }
    for (construct, count) in &counts {
        println!("{count:>9}  {construct}");
    }
    let shown = failures.iter().take(5).cloned().collect::<String>();
    assert!(failures.is_empty(), "{} of {seed} files failed\n{shown}", failures.len());
}

struct Trial<'a> {
    file: Sample,
    change: Change,
    counts: &'a mut Counts,
}

impl Trial<'_> {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn run(&mut self) -> Result<(), String> {
        let other = data(&self.file.bytes);
        let text = yaml_of(&self.file.bytes);
        let own = yaml::parse(&text);
        match (&other, &own) {
            (Ok(_), Err(error)) => return Err(format!("only the other reader can read it: {error}")),
            (Err(_), Ok(_)) => self.count("= read by planwatch only"),
            (Err(_), Err(_)) => self.count("= read by neither"),
            (Ok(_), Ok(_)) => self.count("= read by both"),
        }
        self.setting_the_present_values_changes_nothing()?;
        let after = match header_edit::edit(&self.file.bytes, std::slice::from_ref(&self.change), &ORDER) {
            Ok(after) => after,
            Err(error) => return self.refused(&error, own.is_ok()),
        };
        if own.is_err() {
            return Err("edited although it is unreadable".to_owned());
        }
        self.count(EDITS);
        self.changes_only_its_entry(&after)?;
        if let Ok(before) = &other {
            expect_data(before, &after, &self.change)?;
            self.count("= data checked by the other reader");
        }
        self.repeating_changes_nothing(&after)?;
        self.undoing_restores_the_bytes(&after)
    }

    fn refused(&mut self, error: &EditError, is_readable: bool) -> Result<(), String> {
        self.count(match error.code {
            "anchor-in-use" => "= refused: anchor in use",
            "alias" => "= refused: alias or merge",
            "wrong-type" => "= refused: not a list",
            "no-such-item" => "= refused: no such item",
            "layout" => "= refused: layout",
            _ if is_readable => return Err(format!("refused: {} {error}", error.code)),
            _ => "= refused: not readable",
        });
        let is_placed =
            error.at <= self.file.bytes.len() && !error.by_hand.is_empty() && !error.reason.is_empty();
        is_placed.then_some(()).ok_or_else(|| format!("a refusal without place or help: {error:?}"))
    }

    /// The body and the delimiters stay the same, only the entry changes, and a new key is one insertion.
    fn changes_only_its_entry(&mut self, after: &[u8]) -> Result<(), String> {
        let before = &self.file.bytes;
        let (old, new) = (front_matter::split(before), front_matter::split(after));
        if old.body() != new.body() || old.has_bom != new.has_bom {
            return Err(format!("the body changed: {}", String::from_utf8_lossy(after)));
        }
        let entry = self.file.entries.iter().find(|it| it.0 == self.change.key());
        let fits = match entry {
            Some((_, range)) => differ_only_in(before, after, range),
            None if self.file.entries.is_empty() => true,
            None => is_one_insertion(before, after),
        };
        self.count("= places checked");
        fits.then_some(()).ok_or_else(|| format!("other bytes changed: {}", String::from_utf8_lossy(after)))
    }

    fn setting_the_present_values_changes_nothing(&mut self) -> Result<(), String> {
        let text = yaml_of(&self.file.bytes);
        let Ok(tree) = yaml::parse(&text) else { return Ok(()) };
        let mut same = Vec::new();
        for (key, value) in
            tree.root().own_entries().filter(|(key, _)| key.text().is_some_and(|it| it != "<<"))
        {
            let Some(value) = as_new_value(value) else { continue };
            same.push(Change::Set { key: key.text().unwrap_or_default().to_owned(), value });
        }
        let after = header_edit::edit(&self.file.bytes, &same, &ORDER).map_err(|it| format!("same: {it}"))?;
        self.count("= settings of present values");
        (after == self.file.bytes)
            .then_some(())
            .ok_or_else(|| "setting the present values changes bytes".to_owned())
    }

    fn repeating_changes_nothing(&mut self, after: &[u8]) -> Result<(), String> {
        if !matches!(self.change, Change::Set { .. } | Change::Remove { .. } | Change::SetItem { .. }) {
            return Ok(());
        }
        let again = header_edit::edit(after, std::slice::from_ref(&self.change), &ORDER);
        // Removing a key can reveal the same key of a merge.
        if again.as_ref().is_err_and(|it| it.code == "alias") {
            return Ok(());
        }
        let again = again.map_err(|it| format!("repeated: {} {it}", it.code))?;
        self.count("= repeated edits");
        (again == after).then_some(()).ok_or_else(|| "repeating the edit changes bytes".to_owned())
    }

    fn undoing_restores_the_bytes(&mut self, after: &[u8]) -> Result<(), String> {
        let text = yaml_of(&self.file.bytes);
        let tree = yaml::parse(&text).map_err(|it| it.to_string())?;
        let Some(back) = undo(tree.root(), &self.change) else { return Ok(()) };
        let is = header_edit::edit(after, std::slice::from_ref(&back), &ORDER)
            .map_err(|it| format!("back: {} {it}", it.code))?;
        self.count("= edits undone");
        let show = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        (is == self.file.bytes)
            .then_some(())
            .ok_or_else(|| format!("{back:?} gives {}\n from {}", show(&is), show(after)))
    }
}

fn differ_only_in(before: &[u8], after: &[u8], range: &Range<usize>) -> bool {
    let (head, tail) = (&before[..range.start], &before[range.end..]);
    after.len() >= head.len() + tail.len() && after.starts_with(head) && after.ends_with(tail)
}

fn is_one_insertion(before: &[u8], after: &[u8]) -> bool {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    after.len() >= before.len() && after.ends_with(&before[head..])
}

/// The change that restores the original bytes, if there is one.
fn undo(root: View<'_>, change: &Change) -> Option<Change> {
    let key = change.key().to_owned();
    let old = root.find_entry(&key).map(|it| it.1);
    match (change, old) {
        (Change::Set { .. } | Change::Append { .. }, None) if root.get(&key).is_none() => {
            Some(Change::Remove { key })
        }
        (Change::Append { .. }, Some(list)) if !list.is_empty() => {
            Some(Change::RemoveItem { key, index: list.len() })
        }
        (Change::Set { value: NewValue::Text(text) | NewValue::Word(text), .. }, Some(old)) => {
            let is_simple = matches!(text.as_str(), "in_progress" | "completed");
            let value = as_new_value(old).filter(|_| is_simple && has_planwatch_form(old))?;
            Some(Change::Set { key, value })
        }
        _ => None,
    }
}

/// Whether a scalar has the form in which planwatch would write it.
fn has_planwatch_form(old: View<'_>) -> bool {
    let is_one_line = old.kind() == Kind::Text
        && old.text().is_some_and(|it| it.chars().all(|it| !it.is_control() && it != '\\' && it != '"'));
    let source_len = old.span().len();
    let text_len = old.text().map_or(0, str::len);
    match old.style() {
        Style::Plain => is_one_line && old.text().is_some_and(|it| scalar::is_plain(it, Place::Flow)),
        Style::Single => {
            is_one_line && source_len == text_len + 2 + old.text().map_or(0, |it| it.matches('\'').count())
        }
        Style::Double => is_one_line && source_len == text_len + 2,
        _ => false,
    }
}

/// The value of a node, for setting it again.
fn as_new_value(view: View<'_>) -> Option<NewValue> {
    let text = || view.text().unwrap_or_default().to_owned();
    Some(match view.kind() {
        Kind::Null => NewValue::Word("~".to_owned()),
        Kind::Bool | Kind::Number => NewValue::Word(text()),
        Kind::Text => NewValue::Text(text()),
        Kind::List => NewValue::List(view.items().map(as_new_value).collect::<Option<_>>()?),
        Kind::Map => {
            let entry = |(key, value): (View<'_>, View<'_>)| {
                let is_text = key.kind() == Kind::Text;
                is_text.then(|| Some((key.text()?.to_owned(), as_new_value(value)?)))?
            };
            NewValue::Map(view.own_entries().map(entry).collect::<Option<_>>()?)
        }
    })
}

fn random_change(random: &mut Random, file: &Sample) -> Change {
    let keys: Vec<&str> = file.entries.iter().map(|it| it.0.as_str()).filter(|it| *it != "<<").collect();
    let known = !keys.is_empty() && !random.one_in(4);
    let key = if known {
        random.pick(&keys)
    } else {
        random.pick(&["status", "id", "attempts", "new", "claim", "tags"])
    };
    let key = key.to_owned();
    if let Some(value) = random_items(random, file, &key) {
        return Change::Set { key, value };
    }
    match random.below(13) {
        10.. => Change::SetEntries { entries: random_entries(random, file, &key), key },
        0..=3 => Change::Set { key, value: random_value(random, 2) },
        4..=6 => Change::Append { key, item: random_value(random, 2) },
        7 => Change::Remove { key },
        8 => Change::SetItem { key, index: random.below(4), value: random_value(random, 1) },
        _ => Change::RemoveItem { key, index: random.below(4) },
    }
}

/// Changes of entries of the mapping at `key`. At least one entry is set.
fn random_entries(random: &mut Random, file: &Sample, key: &str) -> Vec<EntryChange> {
    let tree = yaml::parse(&yaml_of(&file.bytes)).ok();
    let map = tree.as_ref().and_then(|it| it.root().find_entry(key)).map(|it| it.1);
    let own = map.into_iter().flat_map(|it| it.own_entries()).filter_map(|it| it.0.text().map(str::to_owned));
    let mut keys: Vec<String> = own.filter(|it| it != "<<" && !random.one_in(2)).collect();
    keys.extend(["new", "b c"].iter().take(1 + random.below(2)).map(|it| (*it).to_owned()));
    keys.dedup();
    let last = keys.len() - 1;
    let change = |(nth, key): (usize, String)| {
        let is_removed = nth < last && random.one_in(3);
        (key, (!is_removed).then(|| random_value(random, 1)))
    };
    keys.into_iter().enumerate().map(change).collect()
}

/// The items of the list at `key` after up to two changes: an item is removed, two items are exchanged, or a new one is
/// inserted.
fn random_items(random: &mut Random, file: &Sample, key: &str) -> Option<NewValue> {
    let tree = yaml::parse(&yaml_of(&file.bytes)).ok()?;
    let (_, list) = tree.root().find_entry(key).filter(|it| it.1.kind() == Kind::List)?;
    // The other reader compares tags, which `as_new_value` leaves out.
    if random.one_in(2) || tree.source()[list.span()].contains(['!', '*']) {
        return None;
    }
    let mut items: Vec<NewValue> = list.items().map(as_new_value).collect::<Option<_>>()?;
    for _ in 0..random.below(3) {
        let (from, to) = (random.below(items.len() + 1), random.below(items.len() + 1));
        match random.below(3) {
            0 if from < items.len() => drop(items.remove(from)),
            1 if from < items.len() && to < items.len() => items.swap(from, to),
            _ => items.insert(to, random_value(random, 1)),
        }
    }
    Some(NewValue::List(items))
}

const TEXTS: [&str; 26] = [
    "in_progress",
    "in_progress",
    "completed",
    "completed",
    "yes",
    "2.5",
    "",
    " lead",
    "trail ",
    "a: b",
    "a #b",
    "it's",
    "\"q\"",
    "line1\nline2",
    "a\n\nb\n",
    "\nlead",
    "x\n\n",
    "  deep\nflat",
    "a\r\nb",
    "nel\u{85}ls\u{2028}",
    "bom\u{feff}",
    "nul\0esc\u{1b}",
    "a\n---\nb",
    "# c\n# d",
    "back\\slash",
    "é漢🎉\u{10ffff}",
];

const TYPED: [&str; 10] = [
    "x",
    "[a, {b: c}]",
    "{a: 1, b: [2]}",
    "\"q\"",
    "- a\n- b: c\n  d: e",
    "k: v\nl:\n- 1",
    "|\n  lit\n   deep\n",
    "~",
    "[a,\n b]",
    "'two\n  lines'",
];

fn random_value(random: &mut Random, depth: usize) -> NewValue {
    let entries = |random: &mut Random| {
        let keys = ["at", "by", "outcome: x"].iter().take(random.below(4));
        keys.map(|key| ((*key).to_owned(), random_value(random, depth - 1))).collect::<Vec<_>>()
    };
    match random.below(if depth == 0 { 6 } else { 12 }) {
        0..=3 => NewValue::Text(random.pick(&TEXTS).to_owned()),
        4 => NewValue::Word(
            random.pick(&["in_progress", "2026-11-21T09:14:03Z", "2.10", "7", "true", "~"]).to_owned(),
        ),
        5 | 6 => NewValue::Yaml(random.pick(&TYPED).to_owned()),
        7 | 8 => NewValue::List((0..random.below(4)).map(|_| random_value(random, depth - 1)).collect()),
        9 | 10 => NewValue::Map(entries(random)),
        _ => NewValue::FlowMap(entries(random)),
    }
}

fn expect_data(before: &Yaml, after: &[u8], change: &Change) -> Result<(), String> {
    let mut expected = before.clone();
    let map = expected.as_mapping_mut().ok_or("no mapping")?;
    let key = key_of(map, change.key());
    let item = |list: Option<&mut Yaml>, index: usize| -> Result<Option<Yaml>, String> {
        let list = list.ok_or("no list")?;
        untag(list);
        let list = list.as_sequence_mut().ok_or("no list")?;
        Ok((index < list.len()).then(|| list.remove(index)))
    };
    match change {
        Change::Set { value, .. } => drop(map.insert(key.clone(), as_yaml(value)?)),
        Change::Remove { .. } => drop(map.remove(&key)),
        Change::Append { item, .. } => {
            let list = map.entry(key.clone()).or_insert(Yaml::Null);
            untag(list);
            if list.is_null() {
                *list = Yaml::Sequence(Vec::new());
            }
            list.as_sequence_mut().ok_or("no list")?.push(as_yaml(item)?);
        }
        Change::SetItem { index, value, .. } => {
            item(map.get_mut(&key), *index)?;
            let list = map.get_mut(&key).and_then(Yaml::as_sequence_mut).ok_or("no list")?;
            list.insert(*index, as_yaml(value)?);
        }
        Change::RemoveItem { index, .. } => drop(item(map.get_mut(&key), *index)?),
        Change::SetEntries { entries, .. } => {
            let value = map.entry(key.clone()).or_insert(Yaml::Null);
            untag(value);
            if !value.is_mapping() {
                *value = Yaml::Mapping(serde_yaml::Mapping::new());
            }
            let of_key = value.as_mapping_mut().ok_or("no mapping")?;
            for (name, new) in entries {
                let name = key_of(of_key, name);
                match new {
                    Some(new) => drop(of_key.insert(name, as_yaml(new)?)),
                    None => drop(of_key.remove(&name)),
                }
            }
        }
    }
    let mut is = data(after).map_err(|it| format!("unreadable: {it}\n{}", String::from_utf8_lossy(after)))?;
    for value in [&mut expected, &mut is].into_iter().filter_map(|it| it.get_mut(&key)) {
        untag(value);
        value.as_sequence_mut().into_iter().flatten().for_each(untag);
        value.as_mapping_mut().into_iter().flat_map(|it| it.values_mut()).for_each(untag);
    }
    let show = || format!("data is {is:?}\n  not {expected:?}\n{}", String::from_utf8_lossy(after));
    (is == expected).then_some(()).ok_or_else(show)
}

/// The key with the type that it has in this mapping: a key such as `1` can be a number there.
fn key_of(map: &serde_yaml::Mapping, key: &str) -> Yaml {
    let number: Yaml = serde_yaml::from_str(key).unwrap_or(Yaml::Null);
    if !map.contains_key(key) && map.contains_key(&number) { number } else { Yaml::from(key) }
}

/// An edited value may keep or lose its tag.
fn untag(value: &mut Yaml) {
    if let Yaml::Tagged(tagged) = value {
        *value = std::mem::take(&mut tagged.value);
    }
}

fn as_yaml(value: &NewValue) -> Result<Yaml, String> {
    let read = |text: &str| serde_yaml::from_str::<Yaml>(text).map_err(|it| it.to_string());
    Ok(match value {
        NewValue::Text(text) => Yaml::from(text.as_str()),
        NewValue::Word(text) | NewValue::Yaml(text) => read(text)?,
        NewValue::List(items) => Yaml::Sequence(items.iter().map(as_yaml).collect::<Result<_, _>>()?),
        NewValue::Map(entries) | NewValue::FlowMap(entries) => {
            let entries = entries.iter().map(|(key, it)| Ok((Yaml::from(key.as_str()), as_yaml(it)?)));
            Yaml::Mapping(entries.collect::<Result<_, String>>()?)
        }
    })
}

fn data(file: &[u8]) -> Result<Yaml, String> {
    let data: Yaml = serde_yaml::from_str(&yaml_of(file)).map_err(|it| it.to_string())?;
    Ok(if data.is_null() { Yaml::Mapping(serde_yaml::Mapping::new()) } else { data })
}

fn yaml_of(file: &[u8]) -> String {
    String::from_utf8(front_matter::split(file).yaml().unwrap_or_default().to_vec())
        .expect("generated as UTF-8")
}
