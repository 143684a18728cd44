//! `planwatch.toml`: everything in it is optional, and what is wrong in it is reported, not fatal.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::plan::model::Order;
use crate::plan::problem::{Code, Problem};
use crate::plan::words::{Words, nearest};

/// The name of the configuration file, beside the plans directory or at the repository's root.
pub const CONFIG_FILE: &str = "planwatch.toml";

/// The configuration in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Where the plans are, relative to the file's own directory.
    pub plans_dir: Option<String>,
    pub by: Option<String>,
    /// Days without activity after which a step counts as stale.
    pub stale_days: Option<u32>,
    /// For plans that `new` makes.
    pub order: Option<Order>,
    /// Own status words.
    pub words: Words,
}

/// Days after which a step is stale, if nothing else is said.
pub const STALE_DAYS: u32 = 7;

/// The file as it is written; keys of other parts of planwatch are read by those.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    plans_dir: Option<String>,
    by: Option<String>,
    stale_days: Option<u32>,
    order: Option<Order>,
    words: BTreeMap<String, String>,
}

/// The keys that are read.
const KEYS: [&str; 5] = ["plans_dir", "by", "stale_days", "order", "words"];

impl Config {
    pub fn stale_days(&self) -> u32 {
        self.stale_days.unwrap_or(STALE_DAYS)
    }

    /// Reads a file; what cannot be read is a problem of `path`, and its default holds.
    pub fn read(path: &str, text: &str) -> (Self, Vec<Problem>) {
        let table: toml::Table = match toml::from_str(text) {
            Ok(table) => table,
            Err(error) => return (Self::default(), vec![problem(path, text, &error)]),
        };
        let mut problems: Vec<_> = table
            .keys()
            .filter(|it| !KEYS.contains(&it.as_str()))
            .map(|it| unknown(path, text, it))
            .collect();
        let file = match toml::from_str::<File>(text) {
            Ok(file) => file,
            Err(error) => {
                problems.push(problem(path, text, &error));
                return (Self::default(), problems);
            }
        };
        let File { plans_dir, by, stale_days, order, words } = file;
        let read = Self { plans_dir, by, stale_days, order, words: Words::with_own(words) };
        (read, problems)
    }
}

fn problem(path: &str, text: &str, error: &toml::de::Error) -> Problem {
    let at = error.span().map_or(0, |it| it.start);
    let message = error.message().to_owned();
    Problem::at_byte(
        path,
        text.as_bytes(),
        at,
        Code::WrongType,
        message,
        "the defaults hold until this is mended",
    )
}

fn unknown(path: &str, text: &str, key: &str) -> Problem {
    let at = text.lines().scan(0, |at, line| Some((std::mem::replace(at, *at + line.len() + 1), line)));
    let at =
        at.filter(|(_, line)| line.trim_start_matches(['[', ' ']).starts_with(key)).map(|(at, _)| at).next();
    let hint = nearest(key, KEYS)
        .map_or_else(|| format!("known keys: {}", KEYS.join(", ")), |it| format!("did you mean `{it}`?"));
    let message = format!("the key `{key}` is not known");
    Problem::at_byte(path, text.as_bytes(), at.unwrap_or(0), Code::WrongType, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::words::StepStatus;

    #[test]
    fn everything_is_optional() {
        assert_eq!(Config::read("planwatch.toml", ""), (Config::default(), Vec::new()));
    }

    #[test]
    fn own_words_and_defaults_are_read() {
        let text = "by = \"ann\"\nstale_days = 3\norder = \"sequential\"\n[words]\n\"in review\" = \"in_progress\"\n";
        let (config, problems) = Config::read("planwatch.toml", text);
        assert_eq!(problems, []);
        assert_eq!(
            (config.by.as_deref(), config.stale_days(), config.order),
            (Some("ann"), 3, Some(Order::Sequential))
        );
        assert_eq!(config.words.read("In Review"), Some(StepStatus::InProgress));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let (_, problems) = Config::read("planwatch.toml", "by = \"a\"\nstale_day = 3\n");
        assert_eq!((problems[0].line, problems[0].hint.as_str()), (2, "did you mean `stale_days`?"));
        let (config, problems) = Config::read("planwatch.toml", "by = [\n");
        assert_eq!((config, problems.len()), (Config::default(), 1));
    }
}
