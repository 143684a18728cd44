//! Joins the lists in the front matter of the squashed steps. Where possible, the text of an item is copied unchanged.

use super::Merged;
use crate::api::error::Error;
use crate::plan::change::NewNote;
use crate::plan::model::Step;
use crate::plan::read::STEP_KEYS;
use crate::plan::records::Verify;
use crate::store::transaction;
use crate::text::header_edit::{self, Change, NewValue};
use crate::text::yaml::{Kind, Tree};

impl Merged<'_> {
    /// Adds items of the other steps' lists to the first step's file: all notes and attempts, and those items of `tags`,
    /// `verify` and `touches` that the file lacks. If one of the steps has no `touches`, items of `touches` are not added.
    pub(super) fn with_lists(&self, file: Vec<u8>) -> Result<Vec<u8>, Error> {
        let texts = |it: &[String]| it.iter().cloned().map(NewValue::Text).collect::<Vec<_>>();
        let file = self.with_missing(file, "tags", |it| texts(&it.tags))?;
        let mut file = self.with_missing(file, "verify", verify_items)?;
        if self.steps.iter().all(|it| it.touches.is_some()) {
            file =
                self.with_missing(file, "touches", |it| texts(it.touches.as_deref().unwrap_or_default()))?;
        }
        for (step, text) in self.others() {
            file = match item_count(text, "notes") {
                Some(count) => (0..count).try_fold(file, |file, nth| self.copied(&file, "notes", text, nth)),
                // `notes` is missing, or is a single text. Such a note has no time, so it gets the present time.
                None => self.edited(
                    &file,
                    step.notes.iter().map(|it| {
                        let at = it.at.unwrap_or(self.context.now);
                        let by = it.by.clone().unwrap_or_default();
                        NewNote { at, kind: it.kind, by, text: it.text.clone() }.change()
                    }),
                ),
            }?;
            let count = item_count(text, "attempts").unwrap_or_default();
            file = (0..count).try_fold(file, |file, nth| self.copied(&file, "attempts", text, nth))?;
        }
        Ok(file)
    }

    fn others(&self) -> impl Iterator<Item = (&Step, &[u8])> {
        self.steps.iter().copied().zip(self.texts).skip(1).map(|(step, text)| (step, text.as_slice()))
    }

    fn with_missing(
        &self,
        file: Vec<u8>,
        key: &str,
        items: impl Fn(&Step) -> Vec<NewValue>,
    ) -> Result<Vec<u8>, Error> {
        let mut known = items(self.steps[0]);
        let mut file = file;
        for (step, text) in self.others() {
            let own = items(step);
            let is_whole = item_count(text, key) == Some(own.len());
            for (nth, item) in own.into_iter().enumerate() {
                if known.contains(&item) {
                    continue;
                }
                known.push(item.clone());
                file = match is_whole {
                    true => self.copied(&file, key, text, nth),
                    false => self.edited(&file, [Change::Append { key: key.to_owned(), item }].into_iter()),
                }?;
            }
        }
        Ok(file)
    }

    fn copied(&self, file: &[u8], key: &str, of: &[u8], nth: usize) -> Result<Vec<u8>, Error> {
        header_edit::append_from(file, key, (of, nth), STEP_KEYS)
            .map_err(|it| Error::edit(&self.steps[0].path, file, it))
    }

    fn edited(&self, file: &[u8], changes: impl Iterator<Item = Change>) -> Result<Vec<u8>, Error> {
        transaction::edit(&self.steps[0].path, file, &changes.collect::<Vec<_>>(), STEP_KEYS)
    }
}

/// The number of items of a key's list. `None` if the file has no such list.
fn item_count(file: &[u8], key: &str) -> Option<usize> {
    let tree = Tree::of_file(file)?;
    let (_, list) = tree.root().find_entry(key).filter(|it| it.1.kind() == Kind::List)?;
    Some(list.len())
}

fn verify_items(step: &Step) -> Vec<NewValue> {
    let item = |it: &Verify| {
        let more = [("dir", &it.dir), ("timeout", &it.timeout)];
        let more =
            more.into_iter().filter_map(|(key, it)| Some((key.to_owned(), NewValue::Text(it.clone()?))));
        let more: Vec<_> = more.collect();
        if more.is_empty() {
            return NewValue::Text(it.run.clone());
        }
        NewValue::Map([vec![("run".to_owned(), NewValue::Text(it.run.clone()))], more].concat())
    };
    step.verify.iter().map(item).collect()
}
