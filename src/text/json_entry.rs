//! Inserts and removes one entry of an object in a JSON file of another program. Other bytes do not change.
//!
//! The text around an entry shows how the entry was inserted. Removing the entry can therefore restore the old bytes without
//! a record of them:
//! - In an object with members, the entry is inserted before the first member, after a copy of the whitespace before that
//!   member.
//! - In an empty object, the entry is inserted directly after the brace. If the object has more than one line, a line end
//!   and an indentation are inserted before the entry.
//! - If the object for the entry is missing, it is inserted into the file's object in one of these two ways. It holds the
//!   entry and is on one line, with spaces inside the braces: `{ "a": … }`. Inserting an entry into an existing object never
//!   results in exactly this text.
//!
//! A file that is not strict JSON, such as one with comments, is refused with the position of the error and never written.

use std::ops::Range;

use serde_json::Value;

use crate::text::line_index::{self, Place};

const BOM: &str = "\u{feff}";

/// The entry `"outer": { "key": value }`.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub outer: &'a str,
    pub key: &'a str,
    /// The value as single-line JSON.
    pub value: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJson {
    pub place: Place,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    Nothing,
    /// The entry exists and has this value, in any notation.
    Same,
    Other,
}

#[derive(Debug)]
struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
}

/// The range between the braces of an object, and the members in it.
struct Object {
    inside: Range<usize>,
    members: Vec<Member>,
}

impl Entry<'_> {
    /// The whole text of a file that contains only this entry.
    pub fn alone(&self) -> String {
        let value: Value = serde_json::from_str(self.value).unwrap_or_default();
        let inner = Value::Object([(self.key.to_owned(), value)].into_iter().collect());
        let whole = Value::Object([(self.outer.to_owned(), inner)].into_iter().collect());
        serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
    }

    /// Whether a file equals [`Self::alone`]; git may have changed its line endings.
    pub fn is_alone(&self, text: &str) -> bool {
        text.replace("\r\n", "\n") == self.alone()
    }

    pub fn find(&self, text: &str) -> Result<EntryState, NotJson> {
        let root = read(text)?;
        let Some(found) = root.get(self.outer).and_then(|it| it.get(self.key)) else {
            return Ok(EntryState::Nothing);
        };
        let own: Value = serde_json::from_str(self.value).unwrap_or_default();
        Ok(if *found == own { EntryState::Same } else { EntryState::Other })
    }

    /// Inserts the entry; the key must not exist.
    pub fn put(&self, text: &str) -> Result<String, NotJson> {
        read(text)?;
        let root = root(text);
        let member = format!("\"{}\": {}", self.key, self.value);
        let (object, member, depth) = match self.outer_of(text, &root)? {
            Some(outer) => (object(text, outer.value.start), member, 2),
            None => (root, format!("\"{}\": {{ {member} }}", self.outer), 1),
        };
        let at = object.inside.start;
        let splice = match object.members.first() {
            Some(first) => format!("{}{member},", &text[at..first.start]),
            None => match line_end(&text[object.inside]) {
                Some(end) => format!("{end}{}{member}", "  ".repeat(depth)),
                None => member,
            },
        };
        let put = format!("{}{splice}{}", &text[..at], &text[at..]);
        self.proven(text, put, EntryState::Same)
    }

    /// Removes the entry, and also the object around it if the object was inserted together with the entry.
    pub fn take(&self, text: &str) -> Result<String, NotJson> {
        read(text)?;
        let root = root(text);
        let Some(outer) = self.outer_of(text, &root)? else { return Ok(text.to_owned()) };
        let own = object(text, outer.value.start);
        let Some(nth) = own.members.iter().position(|it| it.key == self.key) else {
            return Ok(text.to_owned());
        };
        let came_along = format!("\"{}\": {{ \"{}\": {} }}", self.outer, self.key, self.value);
        let gone = if text[outer.start..outer.value.end] == came_along {
            let nth = root.members.iter().position(|it| it.start == outer.start).unwrap_or_default();
            span(text, &root, nth)
        } else {
            span(text, &own, nth)
        };
        let taken = format!("{}{}", &text[..gone.start], &text[gone.end..]);
        self.proven(text, taken, EntryState::Nothing)
    }

    fn outer_of<'a>(&self, text: &str, root: &'a Object) -> Result<Option<&'a Member>, NotJson> {
        let mut all = root.members.iter().filter(|it| it.key == self.outer);
        let Some(outer) = all.next() else { return Ok(None) };
        if let Some(second) = all.next() {
            return Err(not(text, second.start, format!("`{}` occurs twice", self.outer)));
        }
        if !text[outer.value.clone()].starts_with('{') {
            return Err(not(text, outer.value.start, format!("`{}` is not an object", self.outer)));
        }
        let own = object(text, outer.value.start);
        let twice = own.members.iter().filter(|it| it.key == self.key).nth(1);
        match twice {
            Some(it) => Err(not(text, it.start, format!("`{}` occurs twice", self.key))),
            None => Ok(Some(outer)),
        }
    }

    /// Returns the new text after verifying that it differs from the old one only in the entry.
    fn proven(&self, before: &str, after: String, expected: EntryState) -> Result<String, NotJson> {
        let without = |text: &str| {
            let mut value = read(text)?;
            if let Some(outer) = value.get_mut(self.outer).and_then(Value::as_object_mut) {
                outer.shift_remove(self.key);
                if outer.is_empty() {
                    value.as_object_mut().and_then(|it| it.shift_remove(self.outer));
                }
            }
            Ok(value)
        };
        if self.find(&after)? == expected && without(before)? == without(&after)? {
            return Ok(after);
        }
        Err(not(before, 0, "the entry could not be changed reliably".to_owned()))
    }
}

fn read(text: &str) -> Result<Value, NotJson> {
    let start = start(text);
    match serde_json::from_str::<Value>(&text[start..]) {
        Ok(it) if it.is_object() => Ok(it),
        Ok(_) => Err(not(text, start, "the file is not a JSON object".to_owned())),
        Err(error) => {
            let at = start + offset(&text[start..], error.line(), error.column());
            let is_comment = text[at..].starts_with('/') || text[..at].ends_with('/');
            let said = error.to_string();
            let reason = match said.split(" at line ").next() {
                _ if is_comment => "JSON does not allow comments",
                _ if text[start..].trim().is_empty() => "the file is empty",
                Some(reason) => reason,
                None => said.as_str(),
            };
            Err(not(text, at, reason.to_owned()))
        }
    }
}

fn start(text: &str) -> usize {
    if text.starts_with(BOM) { BOM.len() } else { 0 }
}

/// Converts the parser's position to an offset. The parser's columns count bytes from 1. The parser reports a line feed as
/// column 0 of the next line.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let mut at = (before + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn not(text: &str, at: usize, reason: String) -> NotJson {
    NotJson { place: line_index::place(text.as_bytes(), at), reason }
}

/// The range to remove for a member. It includes the blanks before the member and, if there is one, a comma: the comma after
/// the member or, for the last member, the comma before it.
fn span(text: &str, object: &Object, nth: usize) -> Range<usize> {
    let member = &object.members[nth];
    let before = match nth.checked_sub(1).and_then(|it| object.members.get(it)) {
        None => object.inside.start,
        Some(previous) => {
            // Other tools may write blanks before a comma.
            let comma = previous.value.end + text[previous.value.end..].find(',').unwrap_or_default();
            if object.members.len() == nth + 1 { comma } else { comma + 1 }
        }
    };
    match object.members.get(nth + 1) {
        Some(_) => before..member.value.end + text[member.value.end..].find(',').map_or(0, |it| it + 1),
        None => before..member.value.end,
    }
}

/// The line ending of the first line, if there is more than one line.
fn line_end(text: &str) -> Option<&'static str> {
    let at = text.find('\n')?;
    Some(if text[..at].ends_with('\r') { "\r\n" } else { "\n" })
}

fn root(text: &str) -> Object {
    object(text, skip_blanks(text, start(text)))
}

/// The object whose brace is at `at`. The text is valid JSON, so it is enough to find where each key and value ends.
fn object(text: &str, at: usize) -> Object {
    let bytes = text.as_bytes();
    let inside = at + 1;
    let mut members = Vec::new();
    let mut next = skip_blanks(text, inside);
    while bytes.get(next) == Some(&b'"') {
        let key_end = skip_value(text, next);
        let key = serde_json::from_str(&text[next..key_end]).unwrap_or_default();
        let value = skip_blanks(text, skip_blanks(text, key_end) + 1);
        let end = skip_value(text, value);
        members.push(Member { key, start: next, value: value..end });
        next = skip_blanks(text, end);
        if bytes.get(next) == Some(&b',') {
            next = skip_blanks(text, next + 1);
        }
    }
    Object { inside: inside..next, members }
}

fn skip_blanks(text: &str, at: usize) -> usize {
    let is_blank = |it: &u8| matches!(it, b' ' | b'\t' | b'\n' | b'\r');
    at + text.as_bytes().get(at..).unwrap_or_default().iter().take_while(|it| is_blank(it)).count()
}

fn skip_value(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for (n, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => {
                in_text = !in_text;
                if !in_text && depth == 0 {
                    return n + 1;
                }
            }
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    return n + 1;
                }
            }
            b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return n,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
