//! Reads the words that users type for statuses, priorities and categories.

use crate::api::error::Error;
use crate::plan::read::CATEGORIES;
use crate::plan::records::Priority;
use crate::plan::words::{Status, Words};

pub(crate) fn read_words<S: Status>(words: &Words, typed: &[String]) -> Result<Vec<S>, Error> {
    typed.iter().map(|it| read_word(words, it)).collect()
}

pub(crate) fn read_word<S: Status>(words: &Words, typed: &str) -> Result<S, Error> {
    words.read(typed).ok_or_else(|| {
        let known = S::ALL.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ");
        let hint = words
            .nearest::<S>(typed)
            .map_or_else(|| format!("known words: {known}"), |it| format!("did you mean `{it}`?"));
        Error::usage(format!("the status `{typed}` is not known"), hint)
    })
}

pub(crate) fn priority(typed: &str) -> Result<Priority, Error> {
    let unknown = || {
        let hint = "known words: low, medium, high, critical";
        Error::usage(format!("the priority `{typed}` is not known"), hint)
    };
    Priority::read(typed).ok_or_else(unknown)
}

pub(crate) fn category(typed: &str) -> Result<String, Error> {
    let known = CATEGORIES.iter().find(|known| known.eq_ignore_ascii_case(typed));
    let hint = || format!("known words: {}", CATEGORIES.join(", "));
    let unknown = || Error::usage(format!("the category `{typed}` is not known"), hint());
    known.map(|it| (*it).to_owned()).ok_or_else(unknown)
}
