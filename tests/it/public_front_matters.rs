//! Front matters of public repositories, from the directory `PLANWATCH_FRONT_MATTERS`.
//!
//! planwatch must read every front matter that another YAML reader can read, and setting a status must change exactly one
//! line. Without the variable, the test's own files are used. `scripts/front-matters` prints the figures.

#![expect(clippy::disallowed_methods, reason = "reads a directory given by the environment")]

use planwatch::text::front_matter::{self, Header, MAX_FILE};
use planwatch::text::header_edit::{self, Change, EditError, NewValue};
use planwatch::text::yaml;
use std::path::Path;

#[derive(Default)]
struct Figures {
    files: usize,
    front_matters: usize,
    read_by_both: usize,
    read_by_planwatch_only: usize,
    read_by_neither: usize,
    edited: usize,
    appended: usize,
    refused: usize,
    failures: Vec<String>,
}

#[test]
fn public_front_matters_are_read_and_edited() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frontmatter/files");
    let folder = std::env::var_os("PLANWATCH_FRONT_MATTERS").unwrap_or_else(|| own.into());
    let mut figures = Figures::default();
    let entries = walkdir::WalkDir::new(&folder).into_iter().filter_map(Result::ok);
    for entry in entries.filter(|it| it.file_type().is_file()) {
        let is_text =
            entry.path().extension().is_some_and(|it| it == "md" || it == "mdx" || it == "markdown");
        if is_text {
            figures.try_file(entry.path());
        }
    }
    println!(
        "files {} front matters {} read by both {} by planwatch only {} by neither {} status set {} appended {} refused {} failures {}",
        figures.files,
        figures.front_matters,
        figures.read_by_both,
        figures.read_by_planwatch_only,
        figures.read_by_neither,
        figures.edited,
        figures.appended,
        figures.refused,
        figures.failures.len(),
    );
    assert!(figures.front_matters > 0, "no front matter below {}", folder.display());
    assert!(figures.failures.is_empty(), "{}", figures.failures[..figures.failures.len().min(40)].join("\n"));
}

impl Figures {
    fn try_file(&mut self, path: &Path) {
        let bytes = std::fs::read(path).expect("a file of the folder is readable");
        self.files += 1;
        let Header::Present { yaml: range, .. } = front_matter::split(&bytes).header else { return };
        let Ok(text) = std::str::from_utf8(&bytes[range]) else { return };
        if bytes.len() > MAX_FILE {
            return;
        }
        self.front_matters += 1;
        let other: Result<serde_yaml::Value, _> = serde_yaml::from_str(text);
        let is_map = other.as_ref().is_ok_and(|it| it.is_mapping() || it.is_null() && !text.contains('~'));
        let own = yaml::parse(text);
        match (is_map, &own) {
            (true, Ok(_)) => self.read_by_both += 1,
            (false, Ok(_)) => self.read_by_planwatch_only += 1,
            (false, Err(_)) => self.read_by_neither += 1,
            (true, Err(error)) => self.failures.push(format!("{}: not read: {error}", path.display())),
        }
        if own.is_ok() {
            for outcome in [self.set_status(&bytes), self.append_attempt(&bytes)] {
                outcome.unwrap_or_else(|it| self.failures.push(format!("{}: {it}", path.display())));
            }
        }
    }

    fn set_status(&mut self, bytes: &[u8]) -> Result<(), String> {
        let set =
            |word: &str| Change::Set { key: "status".to_owned(), value: NewValue::Word(word.to_owned()) };
        let after = header_edit::edit(bytes, &[set("in_progress")], &["title", "status"]);
        let Some(after) = self.unless_refused(after)? else { return Ok(()) };
        let (removed, added) = changed_lines(bytes, &after);
        if removed > 1 || added != 1 {
            return Err(format!("set: {removed} lines became {added}"));
        }
        self.edited += 1;
        let again = header_edit::edit(&after, &[set("in_progress")], &[]).map_err(|it| it.to_string())?;
        (again == after).then_some(()).ok_or_else(|| "set: repeating it changes bytes".to_owned())
    }

    /// The edited bytes. `None` if the edit was refused because of an anchor, an alias or the type of a value, which a
    /// readable file can contain.
    fn unless_refused(&mut self, edited: Result<Vec<u8>, EditError>) -> Result<Option<Vec<u8>>, String> {
        match edited {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.code, "anchor-in-use" | "alias" | "wrong-type") => {
                self.refused += 1;
                Ok(None)
            }
            Err(error) => Err(format!("{}: {error}", error.code)),
        }
    }

    /// Appends an attempt and removes the key again.
    fn append_attempt(&mut self, bytes: &[u8]) -> Result<(), String> {
        let key = || "attempts".to_owned();
        let note = NewValue::Text("tests: 2 failed\nsee log".to_owned());
        let item = NewValue::Map(vec![("outcome".to_owned(), note)]);
        let after = header_edit::edit(bytes, &[Change::Append { key: key(), item }], &[]);
        let Some(after) = self.unless_refused(after)? else { return Ok(()) };
        let back =
            header_edit::edit(&after, &[Change::Remove { key: key() }], &[]).map_err(|it| it.to_string())?;
        self.appended += 1;
        let had_list =
            yaml::parse(&String::from_utf8_lossy(front_matter::split(bytes).yaml().unwrap_or_default()))
                .is_ok_and(|it| it.root().get("attempts").is_some());
        (had_list || back == bytes)
            .then_some(())
            .ok_or_else(|| "append and remove do not restore the bytes".to_owned())
    }
}

/// The numbers of removed and added lines.
fn changed_lines(before: &[u8], after: &[u8]) -> (usize, usize) {
    let lines = |it: &[u8]| it.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (before, after) = (lines(before), lines(after));
    let head = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let most = before.len().min(after.len()) - head;
    let tail = before.iter().rev().zip(after.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    (before.len() - head - tail, after.len() - head - tail)
}
