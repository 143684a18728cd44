//! `instructions`: how agents use planwatch, as Markdown.

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::plan::words::nearest;

/// The default topic.
pub const FIRST: &str = "overview";

const TOPICS: [(&str, &str); 5] = [
    (FIRST, include_str!("instructions/overview.md")),
    ("executing", include_str!("instructions/executing.md")),
    ("planning", include_str!("instructions/planning.md")),
    ("claims", include_str!("instructions/claims.md")),
    ("files", include_str!("instructions/files.md")),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instructions {
    pub topic: &'static str,
    /// In Markdown.
    pub text: &'static str,
}

impl Instructions {
    pub fn to_json(self) -> Value {
        json!({"topic": self.topic, "text": self.text, "topics": topics().collect::<Vec<_>>()})
    }
}

/// The names of all topics. [`FIRST`], which should be read first, is the first item.
pub fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, _)| *name)
}

pub fn instructions(topic: Option<&str>) -> Result<Instructions, Error> {
    let wanted = topic.unwrap_or(FIRST);
    let found = TOPICS.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let (topic, text) = found.ok_or_else(|| {
        let near = nearest(wanted, topics()).map(|it| format!("did you mean `{it}`?"));
        let all = || format!("the topics are {}", topics().collect::<Vec<_>>().join(", "));
        Error::usage(format!("there are no instructions on `{wanted}`"), near.unwrap_or_else(all))
    })?;
    Ok(Instructions { topic, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_topic_names_all_others() {
        let first = instructions(None).unwrap();
        assert_eq!(first.topic, FIRST);
        for topic in topics().skip(1) {
            assert!(first.text.contains(&format!("- `{topic}`: ")), "{topic}");
        }
    }

    #[test]
    fn each_topic_is_short() {
        for topic in topics() {
            let text = instructions(Some(topic)).unwrap().text;
            assert!(text.lines().count() <= 70 && text.starts_with("# ") && text.ends_with('\n'), "{topic}");
            assert!(text.lines().all(|it| it.chars().count() <= 132), "{topic}");
        }
    }
}
