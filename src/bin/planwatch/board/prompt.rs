//! The prompt at the foot of the screen: a line of text with a cursor, or a question.

use ratatui::crossterm::event::KeyCode;

use super::engine::Request;

/// What the line is used for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptKind {
    /// The line is the text of the request. If the line is empty, the request has no text.
    Words(Request),
    /// As above, but the line must not be empty.
    Needed(Request),
    Command,
    Search,
    /// Enter makes the request, and nothing can be typed.
    Yes(Request),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) label: String,
    /// What the keys do, shown after a question. If there is too little room, the question is shortened first.
    pub(super) keys: String,
    text: String,
    /// The cursor, as a byte offset into the text.
    at: usize,
    pub(crate) kind: PromptKind,
}

impl Prompt {
    pub(crate) fn new(label: impl Into<String>, kind: PromptKind) -> Self {
        Self { label: label.into(), keys: String::new(), text: String::new(), at: 0, kind }
    }

    pub(crate) fn question(label: String, keys: String, request: Request) -> Self {
        Self { keys, ..Self::new(label, PromptKind::Yes(request)) }
    }

    pub(crate) fn with_text(self, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { at: text.len(), text, ..self }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before and after the cursor.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.at)
    }

    pub(crate) fn insert(&mut self, text: &str) {
        if !matches!(self.kind, PromptKind::Yes(_)) {
            self.text.insert_str(self.at, text);
            self.at += text.len();
        }
    }

    pub(crate) fn press(&mut self, code: KeyCode, is_control: bool) {
        match code {
            KeyCode::Char('a') if is_control => self.at = 0,
            KeyCode::Char('e') if is_control => self.at = self.text.len(),
            KeyCode::Char('u') if is_control => self.remove_before(0),
            KeyCode::Char('k') if is_control => self.text.truncate(self.at),
            KeyCode::Char('w') if is_control => {
                let word = self.parts().0.trim_end().rfind(' ').map_or(0, |it| it + 1);
                self.remove_before(word);
            }
            KeyCode::Char(c) if !is_control => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            KeyCode::Left => self.at = self.before(),
            KeyCode::Right => self.at = self.after(),
            KeyCode::Backspace => self.remove_before(self.before()),
            KeyCode::Delete => drop(self.text.drain(self.at..self.after())),
            _ => {}
        }
    }

    fn before(&self) -> usize {
        self.parts().0.char_indices().next_back().map_or(0, |it| it.0)
    }

    fn after(&self) -> usize {
        self.at + self.parts().1.chars().next().map_or(0, char::len_utf8)
    }

    fn remove_before(&mut self, from: usize) {
        self.text.drain(from..self.at);
        self.at = from;
    }
}
