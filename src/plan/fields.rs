//! Reads the keys of a front matter into values, and reports wrong types with their position.

use serde_json::{Map, Value};

use crate::plan::problem::{Code, Problem};
use crate::plan::records::{Attempt, Claim, Confirmation, Note, NoteType, Priority, Verify};
use crate::plan::source::{Parsed, Source, parse, unread};
use crate::plan::time::{Day, Time};
use crate::plan::words::nearest;
use crate::text::line_index::{self, Place};
use crate::text::yaml::{Budget, Kind, View};

/// A front matter being read: its values, and the problems found on the way.
pub(crate) struct Fields<'a> {
    pub(crate) path: &'a str,
    pub(crate) file: &'a [u8],
    /// The byte offset in the file at which the YAML begins.
    pub(crate) offset: usize,
    /// `None`: there is no front matter, so every key has its default.
    pub(crate) root: Option<View<'a>>,
    pub(crate) problems: Vec<Problem>,
    /// The remaining budget for this front matter's aliases.
    pub(crate) budget: Option<Budget>,
}

/// Reads the file of a decision, an insight or a script. Calls `take` with the front matter and the body, and returns its
/// result and the problems in the file.
///
/// An unreadable file is treated as empty.
pub(crate) fn read_file<T>(
    source: &Source,
    take: impl FnOnce(&mut Fields<'_>, &str) -> T,
) -> (T, Vec<Problem>) {
    let bytes = source.content.as_ref().map_or(&[][..], |it| &it.bytes);
    let parsed = parse(&source.path, bytes);
    let mut fields = Fields::of(&source.path, bytes, &parsed);
    let taken = take(&mut fields, parsed.body);
    let mut problems = fields.problems;
    problems.extend(parsed.problems);
    problems.extend(source.content.as_ref().err().map(|why| unread(source, why)));
    (taken, problems)
}

impl<'a> Fields<'a> {
    pub(crate) fn of(path: &'a str, file: &'a [u8], parsed: &'a Parsed<'_>) -> Self {
        let tree = parsed.tree.as_ref();
        let (root, budget) = (tree.map(|it| it.0.root()), tree.map(|it| Budget::of(&it.0)));
        Self { path, file, offset: tree.map_or(0, |it| it.1), root, problems: Vec::new(), budget }
    }

    /// A value as JSON; null if its aliases exceed the budget.
    fn json_of(&mut self, value: View<'a>) -> Value {
        self.budget.as_mut().and_then(|it| it.to_json(value).ok()).unwrap_or(Value::Null)
    }

    /// Returns the value of a key. `None`: the key is missing or null.
    pub(crate) fn get(&self, key: &str) -> Option<View<'a>> {
        self.root?.get(key).filter(|it| !it.is_null())
    }

    pub(crate) fn place(&self, value: View<'a>) -> Place {
        line_index::place(self.file, self.offset + value.span().start)
    }

    /// The position of a value, counted from the known position of an earlier value.
    pub(crate) fn place_after(&self, known: Option<(View<'a>, Place)>, value: View<'a>) -> Place {
        let at = |it: View<'a>| self.offset + it.span().start;
        known.map_or_else(
            || self.place(value),
            |(before, place)| line_index::place_after(self.file, (at(before), place), at(value)),
        )
    }

    pub(crate) fn wrong_type(&mut self, value: View<'a>, message: String, hint: &str) {
        self.report(value, Code::WrongType, message, hint);
    }

    /// Reports a problem, unless the file has a hundred problems already. More of them would not help the user, and each
    /// problem costs a scan of the lines before it.
    pub(crate) fn report(&mut self, value: View<'a>, code: Code, message: String, hint: &str) {
        if self.problems.len() >= 100 {
            return;
        }
        self.report_at(self.offset + value.span().start, code, message, hint);
    }

    /// Reports a problem that `check --fix` can fix.
    pub(crate) fn report_fixable(&mut self, value: View<'a>, code: Code, message: String, hint: &str) {
        let known = self.problems.len();
        self.report(value, code, message, hint);
        self.problems.iter_mut().skip(known).for_each(|it| it.is_fixable = true);
    }

    /// Reports a problem at a byte of the file.
    pub(crate) fn report_at(&mut self, at: usize, code: Code, message: impl Into<String>, hint: &str) {
        self.problems.push(Problem::at_byte(self.path, self.file, at, code, message, hint));
    }

    /// The text of a scalar of any YAML type. Numbers and truth values keep their spelling. A list or a mapping is reported.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let value = self.get(key)?;
        if let Some(text) = value.text() {
            return Some(text.to_owned());
        }
        let message = format!("`{key}` is a {}, not a text", kind_name(value));
        self.wrong_type(value, message, "write it on one line, quoted if needed");
        None
    }

    /// Reads one of a closed set of words. Another word is an error, because the values of these keys decide which actions
    /// are allowed.
    pub(crate) fn word<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Option<T> {
        self.word_or(Code::WrongType, key, read, known)
    }

    fn word_or<T>(
        &mut self,
        code: Code,
        key: &str,
        read: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Option<T> {
        let value = self.get(key)?;
        let found = value.text().and_then(read);
        if found.is_none() {
            let text = value.text().unwrap_or(kind_name(value));
            let message = format!("`{key}: {}` is not one of {}", shorten(text), known.join(", "));
            let near = nearest(text, known.iter().copied());
            let hint = near
                .map_or_else(|| "use one of these words".to_owned(), |it| format!("did you mean `{it}`?"));
            let code = if value.text().is_some() { code } else { Code::WrongType };
            self.report(value, code, message, &hint);
        }
        found
    }

    /// An unknown priority is only a warning, and the default applies.
    pub(crate) fn priority(&mut self) -> Option<Priority> {
        let known = Priority::ALL.map(Priority::word);
        self.word_or(Code::UnknownWord, "priority", Priority::read, &known)
    }

    /// As with the priority, an unknown word is only a warning.
    pub(crate) fn category(&mut self, known: &[&str]) -> Option<String> {
        let read =
            |word: &str| known.iter().find(|it| it.eq_ignore_ascii_case(word)).map(|it| (*it).to_owned());
        self.word_or(Code::UnknownWord, "category", read, known)
    }

    pub(crate) fn time(&mut self, key: &str) -> Option<Time> {
        let value = self.get(key)?;
        self.time_of(value, key)
    }

    /// As with the priority, an invalid date is only a warning.
    pub(crate) fn day(&mut self, key: &str) -> Option<Day> {
        let value = self.get(key).filter(|it| !it.is_null())?;
        let day = value.text().and_then(|it| it.parse().ok());
        if day.is_none() {
            let said = value
                .text()
                .map_or_else(|| format!("a {}", kind_name(value)), |it| format!("`{}`", shorten(it)));
            let message = format!("`{key}` is not a date, but {said}");
            self.report(value, Code::InvalidDate, message, "write it as 2026-11-21");
        }
        day
    }

    fn time_of(&mut self, value: View<'a>, key: &str) -> Option<Time> {
        let time = value.text().and_then(|it| it.parse().ok());
        if time.is_none() && !value.is_null() {
            let message = format!("`{key}` is not a time");
            self.wrong_type(value, message, "write it as 2026-11-21T09:14:03Z or 2026-11-21");
        }
        time
    }

    /// The items of a list. `None`: the key is missing or null, or its value is a scalar or a mapping, which is reported.
    pub(crate) fn items(&mut self, key: &str) -> Option<Vec<View<'a>>> {
        let value = self.get(key)?;
        if value.kind() == Kind::List {
            return Some(value.items().collect());
        }
        let message = format!("`{key}` is a {}, not a list", kind_name(value));
        self.wrong_type(value, message, "write a list, one `- item` a line");
        None
    }

    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let mut texts = Vec::new();
        for item in self.items(key)? {
            match item.text() {
                Some(text) => texts.push(text.to_owned()),
                None if item.is_null() => {}
                None => {
                    let message = format!("an item of `{key}` is a {}, not a text", kind_name(item));
                    self.wrong_type(item, message, "write each item as a text");
                }
            }
        }
        Some(texts)
    }

    /// A mapping as JSON. A value of another type, or one whose aliases exceed the budget, is reported, and the result
    /// is empty.
    pub(crate) fn mapping(&mut self, key: &str) -> Map<String, Value> {
        let Some(value) = self.get(key) else { return Map::new() };
        let (message, hint) = match self.json_of(value) {
            Value::Object(map) => return map,
            _ if value.kind() == Kind::Map => {
                let message = format!(
                    "`{key}` is not read, because the aliases of the front matter expand to too much data"
                );
                (message, "write the values in place of the aliases")
            }
            _ => {
                let message = format!("`{key}` is a {}, not a mapping", kind_name(value));
                (message, "write `key: value` lines below it")
            }
        };
        self.wrong_type(value, message, hint);
        Map::new()
    }

    /// The keys that planwatch does not define.
    pub(crate) fn custom(&mut self, known: &[&str]) -> Map<String, Value> {
        let Some(root) = self.root else { return Map::new() };
        let entries = root.entries().filter_map(|(key, value)| Some((key.text()?.to_owned(), value)));
        let unknown = entries.filter(|(key, _)| !known.contains(&key.as_str()));
        unknown.map(|(key, value)| (key, self.json_of(value))).collect()
    }

    fn maps(&mut self, key: &str) -> Vec<View<'a>> {
        let items = self.items(key).unwrap_or_default();
        let (maps, others): (Vec<_>, Vec<_>) = items.into_iter().partition(|it| it.kind() == Kind::Map);
        for item in others.into_iter().filter(|it| !it.is_null()) {
            let message = format!("an item of `{key}` is a {}, not a mapping", kind_name(item));
            self.wrong_type(item, message, "write `key: value` lines after the dash");
        }
        maps
    }

    fn text_in(&mut self, map: View<'a>, key: &str) -> Option<String> {
        map.get(key).and_then(|it| it.text()).map(str::to_owned)
    }

    fn time_in(&mut self, map: View<'a>, key: &str) -> Option<Time> {
        let value = map.get(key).filter(|it| !it.is_null())?;
        self.time_of(value, key)
    }

    pub(crate) fn attempts(&mut self) -> Vec<Attempt> {
        let maps = self.maps("attempts");
        let read = |map: View<'a>| {
            let known = ["at", "by", "outcome", "notes"];
            let more = map.entries().filter_map(|(key, value)| Some((key.text()?.to_owned(), value)));
            let more = more.filter(|(key, _)| !known.contains(&key.as_str()));
            let more = more.map(|(key, value)| (key, self.json_of(value))).collect();
            let (at, by) = (self.time_in(map, "at"), self.text_in(map, "by"));
            Attempt { at, by, outcome: self.text_in(map, "outcome"), notes: self.text_in(map, "notes"), more }
        };
        maps.into_iter().map(read).collect()
    }

    /// If `notes` is a text instead of a list, the text is one note.
    pub(crate) fn notes(&mut self) -> Vec<Note> {
        let plain = |text: &str| Note { text: text.to_owned(), ..Note::default() };
        if let Some(text) = self.get("notes").and_then(|it| it.text()) {
            return vec![plain(text)];
        }
        let items = self.items("notes").unwrap_or_default();
        let read = |item: View<'a>| match (item.kind(), item.text()) {
            (Kind::Map, _) => {
                let kind =
                    item.get("type").and_then(|it| it.text()).and_then(NoteType::read).unwrap_or_default();
                let (at, by) = (self.time_in(item, "at"), self.text_in(item, "by"));
                Some(Note { at, kind, by, text: self.text_in(item, "text").unwrap_or_default() })
            }
            (_, Some(text)) => Some(plain(text)),
            _ => None,
        };
        items.into_iter().filter_map(read).collect()
    }

    pub(crate) fn claim(&mut self) -> Option<Claim> {
        let value = self.get("claim")?;
        let id = value.get("id").and_then(|it| it.text()).filter(|_| value.kind() == Kind::Map);
        let Some(id) = id.map(str::to_owned) else {
            let message = "`claim` is not a mapping with an `id`".to_owned();
            self.wrong_type(value, message, "write it as `{id: …, by: …, at: …}`, or remove the line");
            return None;
        };
        Some(Claim { id, by: self.text_in(value, "by"), at: self.time_in(value, "at") })
    }

    pub(crate) fn confirmations(&mut self) -> Vec<Confirmation> {
        let maps = self.maps("confirmations");
        maps.into_iter().map(|it| self.confirmation_of(it)).collect()
    }

    pub(crate) fn confirmed(&mut self) -> Option<Confirmation> {
        let value = self.get("confirmed")?;
        if value.kind() != Kind::Map {
            self.wrong_type(value, "`confirmed` is not a mapping".to_owned(), "write `{by: NAME, at: TIME}`");
            return None;
        }
        let confirmation = self.confirmation_of(value);
        if confirmation.by.as_deref().unwrap_or_default().is_empty() {
            let message = "`confirmed` has no `by`".to_owned();
            self.wrong_type(value, message, "write `{by: NAME, at: TIME}`");
            return None;
        }
        Some(confirmation)
    }

    fn confirmation_of(&mut self, map: View<'a>) -> Confirmation {
        let (phase, by) = (self.text_in(map, "phase"), self.text_in(map, "by"));
        Confirmation { phase, by, at: self.time_in(map, "at"), note: self.text_in(map, "note") }
    }

    pub(crate) fn verify(&mut self) -> Vec<Verify> {
        let items = self.items("verify").unwrap_or_default();
        let mut verify = Vec::new();
        for item in items {
            let map = Some(item).filter(|it| it.kind() == Kind::Map);
            let run = map.map_or(item.text(), |it| it.get("run").and_then(|run| run.text()));
            let Some(run) = run.map(str::to_owned) else {
                let message = "an item of `verify` has no command".to_owned();
                self.wrong_type(item, message, "write a command, or `{run, dir, timeout}`");
                continue;
            };
            let of = |key: &str| map.and_then(|it| it.get(key)).and_then(|it| it.text()).map(str::to_owned);
            verify.push(Verify { run, dir: of("dir"), timeout: of("timeout") });
        }
        verify
    }
}

pub(crate) fn kind_name(value: View<'_>) -> &'static str {
    match value.kind() {
        Kind::Null => "null",
        Kind::Bool => "truth value",
        Kind::Number => "number",
        Kind::Text => "text",
        Kind::List => "list",
        Kind::Map => "mapping",
    }
}

/// Shortens a text from a file for a message, to at most 60 characters of its first line.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 60 && line.len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", line.chars().take(60).collect::<String>())
}
