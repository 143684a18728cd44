//! The current texts of the documents that are open in the client.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use super::positions::{Encoding, Lines};
use super::protocol::{Position, Range as LspRange};
use super::uri;

/// The maximum length of a stored text in bytes. Plan files have at most 4 MiB.
const LONGEST: usize = 64 << 20;

#[derive(Debug, Clone)]
pub(super) struct Document {
    /// As the client spells it.
    pub(super) uri: String,
    /// Where the file is or will be.
    pub(super) path: PathBuf,
    pub(super) version: i32,
    pub(super) text: String,
    lines: Lines,
    encoding: Encoding,
}

/// One change of a document. Without a range, `text` replaces the whole text.
#[derive(Debug, Clone)]
pub(super) struct TextChange {
    pub(super) range: Option<LspRange>,
    pub(super) text: String,
}

impl Document {
    pub(super) fn new(uri: String, path: PathBuf, version: i32, text: String, encoding: Encoding) -> Self {
        let lines = Lines::of(&text);
        Self { uri, path, version, text, lines, encoding }
    }

    pub(super) fn offset(&self, position: Position) -> usize {
        self.lines.offset(&self.text, self.encoding, position)
    }

    pub(super) fn offsets(&self, range: &LspRange) -> Range<usize> {
        self.lines.offsets(&self.text, self.encoding, range)
    }

    pub(super) fn position(&self, at: usize) -> Position {
        self.lines.position(&self.text, self.encoding, at)
    }

    pub(super) fn range(&self, range: &Range<usize>) -> LspRange {
        self.lines.range(&self.text, self.encoding, range)
    }

    pub(super) fn line_of(&self, at: usize) -> usize {
        self.lines.line_of(at)
    }

    /// A line without its end.
    pub(super) fn line(&self, nth: usize) -> Range<usize> {
        self.lines.line(&self.text, nth)
    }

    /// Makes changes in order. The range of each one refers to the text after the previous change.
    fn change(&mut self, version: i32, changes: Vec<TextChange>) {
        for TextChange { range, text } in changes {
            match range {
                None => self.text = text,
                Some(range) => {
                    let range = self.offsets(&range);
                    self.text.replace_range(range, &text);
                }
            }
            self.lines = Lines::of(&self.text);
        }
        self.version = version;
    }

    /// Whether the text is the content of a file. CRLF and LF count as equal, and a byte order mark is ignored, because
    /// some editors do not send them as they are in the file.
    pub(super) fn is_saved_as(&self, file: &[u8]) -> bool {
        let Ok(file) = std::str::from_utf8(file) else { return false };
        let plain = |it: &str| it.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        self.text == file || plain(&self.text) == plain(file)
    }
}

/// The open documents, by their paths.
#[derive(Debug, Default)]
pub(super) struct Documents {
    by_path: HashMap<PathBuf, Document>,
}

impl Documents {
    /// Opens a text. Returns its path, or `None` if the URI does not name a file or the text is too long.
    pub(super) fn open(
        &mut self,
        uri: String,
        version: i32,
        text: String,
        encoding: Encoding,
    ) -> Option<PathBuf> {
        let path = uri::to_path(&uri).filter(|_| text.len() <= LONGEST)?;
        self.by_path.insert(path.clone(), Document::new(uri, path.clone(), version, text, encoding));
        Some(path)
    }

    /// Changes a text. Returns its path, or `None` if it is not open.
    pub(super) fn change(&mut self, uri: &str, version: i32, changes: Vec<TextChange>) -> Option<PathBuf> {
        let path = uri::to_path(uri)?;
        self.by_path.get_mut(&path)?.change(version, changes);
        Some(path)
    }

    pub(super) fn close(&mut self, uri: &str) -> Option<Document> {
        self.by_path.remove(&uri::to_path(uri)?)
    }

    pub(super) fn get(&self, uri: &str) -> Option<&Document> {
        self.by_path.get(&uri::to_path(uri)?)
    }

    pub(super) fn at(&self, path: &std::path::Path) -> Option<&Document> {
        self.by_path.get(path)
    }

    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = &Document> {
        self.by_path.values()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn opened(text: &str, encoding: Encoding) -> Documents {
        let mut documents = Documents::default();
        documents.open("file:///p/plan.md".to_owned(), 1, text.to_owned(), encoding).unwrap();
        documents
    }

    #[test]
    fn changes_are_made_in_their_order() {
        let mut documents = opened("a\nb\n", Encoding::Utf16);
        let at = |line, character| Position { line, character };
        let change = |start, end, text: &str| TextChange {
            range: Some(LspRange { start, end }),
            text: text.to_owned(),
        };
        let changes = vec![change(at(0, 0), at(0, 1), "x\ny"), change(at(2, 0), at(2, 1), "z")];
        assert!(documents.change("file:///p/plan.md", 2, changes).is_some());
        let document = documents.get("file:///p/pl%61n.md").unwrap();
        assert_eq!((document.text.as_str(), document.version), ("x\ny\nz\n", 2));
        assert!(documents.change("file:///p/other.md", 2, Vec::new()).is_none());
        assert!(documents.open("untitled:1".to_owned(), 1, String::new(), Encoding::Utf8).is_none());
        let whole = vec![TextChange { range: None, text: "new".to_owned() }];
        documents.change("file:///p/plan.md", 3, whole);
        assert_eq!(documents.close("file:///p/plan.md").unwrap().text, "new");
        assert!(documents.get("file:///p/plan.md").is_none());
    }

    #[test]
    fn line_ends_and_a_mark_do_not_make_a_text_unsaved() {
        let documents = opened("a\nb\n", Encoding::Utf16);
        let document = documents.iter().next().unwrap();
        for (file, expected) in
            [("a\nb\n", true), ("\u{feff}a\r\nb\r\n", true), ("a\nb", false), ("a\nc\n", false)]
        {
            assert_eq!(document.is_saved_as(file.as_bytes()), expected, "{file:?}");
        }
    }

    proptest! {
        /// After the changes that an editor sends, the document has the editor's text.
        #[test]
        fn pieces_make_the_whole(
            start in "[aé🚀\r\n]{0,12}",
            edits in prop::collection::vec((0.0..1.0, 0.0..1.0, "[bö💡\r\n]{0,4}"), 0..6),
            encoding in prop::sample::select(&[Encoding::Utf8, Encoding::Utf16, Encoding::Utf32][..]),
        ) {
            let mut documents = opened(&start, encoding);
            let mut text = start;
            for (from, to, new) in edits {
                let document = documents.iter().next().unwrap();
                let at = |share: f64| {
                    let mut at = (share * text.len() as f64) as usize;
                    while !text.is_char_boundary(at) || text[..at].ends_with('\r') && text[at..].starts_with('\n') {
                        at -= 1;
                    }
                    at
                };
                let [a, b] = [at(from), at(to)];
                let range = a.min(b)..a.max(b);
                let change = TextChange { range: Some(document.range(&range)), text: new.clone() };
                text.replace_range(range, &new);
                documents.change("file:///p/plan.md", 2, vec![change]);
                prop_assert_eq!(&documents.iter().next().unwrap().text, &text);
            }
        }
    }
}
