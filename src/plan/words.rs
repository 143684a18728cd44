//! The words for a status: canonical ones, the common ones that are understood, and a project's own.

use std::collections::BTreeMap;
use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum StepStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
    Blocked,
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum PlanStatus {
    Draft,
    Active,
    Completed,
    Abandoned,
}

/// A status with a closed set of canonical words.
pub trait Status: Copy + Eq + 'static {
    const ALL: &'static [Self];

    fn word(self) -> &'static str;

    /// Other words for a status, in the form that `fold` returns.
    const COMMON: &'static [(&'static str, Self)];
}

impl Status for StepStatus {
    const ALL: &'static [Self] =
        &[Self::Pending, Self::InProgress, Self::Completed, Self::Failed, Self::Blocked, Self::Skipped];

    const COMMON: &'static [(&'static str, Self)] = &[
        ("done", Self::Completed),
        ("complete", Self::Completed),
        ("closed", Self::Completed),
        ("finished", Self::Completed),
        ("active", Self::InProgress),
        ("doing", Self::InProgress),
        ("wip", Self::InProgress),
        ("started", Self::InProgress),
        ("todo", Self::Pending),
        ("open", Self::Pending),
        ("ready", Self::Pending),
        ("cancelled", Self::Skipped),
        ("canceled", Self::Skipped),
        ("wontfix", Self::Skipped),
        ("error", Self::Failed),
        ("waiting", Self::Blocked),
        ("onhold", Self::Blocked),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
        }
    }
}

impl StepStatus {
    /// A closed step needs no more work and lets its dependants go on.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

impl Status for PlanStatus {
    const ALL: &'static [Self] = &[Self::Draft, Self::Active, Self::Completed, Self::Abandoned];

    const COMMON: &'static [(&'static str, Self)] = &[
        ("done", Self::Completed),
        ("complete", Self::Completed),
        ("closed", Self::Completed),
        ("finished", Self::Completed),
        ("inprogress", Self::Active),
        ("cancelled", Self::Abandoned),
        ("canceled", Self::Abandoned),
        ("wontfix", Self::Abandoned),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A file's status: recognized, or shown as written.
#[derive(Debug, Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Stated<S> {
    Known(S),
    /// Counts as open and is never ready.
    Unknown(String),
}

impl<S: Status> Stated<S> {
    pub fn known(&self) -> Option<S> {
        match self {
            Self::Known(status) => Some(*status),
            Self::Unknown(_) => None,
        }
    }

    pub fn is(&self, status: S) -> bool {
        self.known() == Some(status)
    }

    /// Returns the canonical word, or the file's own word if the status is unknown.
    pub fn word(&self) -> &str {
        match self {
            Self::Known(status) => status.word(),
            Self::Unknown(word) => word,
        }
    }
}

/// The status words of one project: the common ones, and its own from `planwatch.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    own: BTreeMap<String, String>,
    /// The project's own words, in the spelling of its configuration.
    spelled: Vec<String>,
}

impl Words {
    /// Makes the words of a project from its own words, each with the canonical or common word that it means.
    pub fn with_own(own: impl IntoIterator<Item = (String, String)>) -> Self {
        let own: Vec<_> = own.into_iter().collect();
        let spelled = own.iter().map(|(word, _)| word.clone()).collect();
        Self { own: own.into_iter().map(|(word, means)| (fold(&word), fold(&means))).collect(), spelled }
    }

    /// Returns the status that a word means, ignoring case, `-`, `_` and spaces.
    pub fn read<S: Status>(&self, word: &str) -> Option<S> {
        let folded = fold(word);
        read_folded(&folded).or_else(|| read_folded(self.own.get(&folded)?))
    }

    /// Returns the project's own words, in the spelling of its configuration, each with the status that it means.
    pub fn own<S: Status>(&self) -> impl Iterator<Item = (&str, S)> {
        self.spelled.iter().filter_map(|it| Some((it.as_str(), self.read(it)?)))
    }

    /// Whether a word is one of the project's own and not one of the built-in words.
    pub fn is_own(&self, word: &str) -> bool {
        let folded = fold(word);
        let is_known =
            read_folded::<StepStatus>(&folded).is_some() || read_folded::<PlanStatus>(&folded).is_some();
        !is_known && self.own.contains_key(&folded)
    }

    /// Returns the known word nearest to an unknown one, if any is near.
    pub fn nearest<S: Status>(&self, word: &str) -> Option<String> {
        let canonical = S::ALL.iter().map(|it| it.word());
        let common = S::COMMON.iter().map(|(it, _)| *it);
        let own = self.own.keys().map(String::as_str);
        nearest(&fold(word), canonical.chain(common).chain(own))
    }
}

/// Returns the candidate that a person most likely meant, if one is near enough. Used for "did you mean" hints.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    let scored =
        candidates.into_iter().map(|it| (strsim::damerau_levenshtein(&word, &it.to_lowercase()), it));
    // An empty candidate is near each word of one letter, but suggests nothing.
    let scored: Vec<_> = scored.filter(|it| !it.1.trim().is_empty()).collect();
    let most = (word.chars().count() / 3).max(1);
    let near = scored.iter().filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance);
    // People often remember only a part of a name.
    let is_part = |it: &&(usize, &str)| word.len() >= 3 && it.1.to_lowercase().contains(&word);
    let part = || scored.iter().filter(is_part).min_by_key(|(distance, _)| *distance);
    near.or_else(part).map(|(_, best)| (*best).to_owned())
}

/// Returns the names that a person may have meant, best first: names that are nearly equal to `words`, then names that
/// share a word with it. Words count as shared even if one is only the beginning of the other.
pub fn near<'a>(words: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const LONGEST: usize = 64;
    let split = |it: &str| -> Vec<String> {
        let folded = it.to_lowercase();
        folded
            .split(|c: char| !c.is_alphanumeric())
            .filter(|it| it.chars().count() >= 3)
            .map(str::to_owned)
            .collect()
    };
    if words.len() > LONGEST {
        return Vec::new();
    }
    let (whole, wanted) = (words.to_lowercase(), split(words));
    let most = (whole.chars().count() / 3).max(1);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|it| !it.trim().is_empty())
        .filter_map(|it| {
            let distance = strsim::damerau_levenshtein(&whole, &it.to_lowercase());
            let own = split(it);
            let is_common =
                |a: &String| own.iter().any(|b| a.starts_with(b.as_str()) || b.starts_with(a.as_str()));
            let n_common = wanted.iter().filter(|it| is_common(it)).count();
            match (distance <= most, n_common) {
                (true, _) => Some((distance, it)),
                (false, 0) => None,
                (false, n) => Some((2 * LONGEST - n.min(LONGEST), it)),
            }
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, it)| it.to_owned()).collect()
}

fn read_folded<S: Status>(folded: &str) -> Option<S> {
    let canonical = S::ALL.iter().find(|it| fold(it.word()) == folded).copied();
    canonical.or_else(|| S::COMMON.iter().find(|(it, _)| *it == folded).map(|(_, status)| *status))
}

/// Lower case, without `-`, `_` and space.
fn fold(word: &str) -> String {
    let kept = word.chars().filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace());
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_are_understood_whatever_their_case() {
        let words = Words::default();
        for (word, status) in [
            ("done", StepStatus::Completed),
            ("In-Progress", StepStatus::InProgress),
            ("IN PROGRESS", StepStatus::InProgress),
            ("on_hold", StepStatus::Blocked),
            ("Wontfix", StepStatus::Skipped),
            ("todo", StepStatus::Pending),
            ("to-do", StepStatus::Pending),
            ("wont fix", StepStatus::Skipped),
            ("onhold", StepStatus::Blocked),
            ("active", StepStatus::InProgress),
        ] {
            assert_eq!(words.read(word), Some(status), "{word}");
        }
        assert_eq!(words.read("active"), Some(PlanStatus::Active));
        assert_eq!(words.read("in_progress"), Some(PlanStatus::Active));
        assert_eq!(words.read("cancelled"), Some(PlanStatus::Abandoned));
        assert_eq!(words.read::<StepStatus>("nope"), None);
        assert_eq!(words.read::<PlanStatus>("pending"), None);
    }

    #[test]
    fn a_project_has_its_own_words() {
        let words = Words::with_own([("In Review".to_owned(), "in_progress".to_owned())]);
        assert_eq!(words.read("in-review"), Some(StepStatus::InProgress));
        assert!(words.is_own("IN_REVIEW"));
        let words = Words::with_own([("done".to_owned(), "failed".to_owned())]);
        assert!(!words.is_own("done") && !words.is_own("in review"));
    }

    #[test]
    fn the_nearest_word_is_found() {
        let words = Words::default();
        assert_eq!(words.nearest::<StepStatus>("complted").as_deref(), Some("completed"));
        assert_eq!(words.nearest::<StepStatus>("pendng").as_deref(), Some("pending"));
        assert_eq!(words.nearest::<StepStatus>("xyzzy"), None);
        assert_eq!(nearest("auth", ["fence-repair", "feature-auth"]).as_deref(), Some("feature-auth"));
        assert_eq!(nearest("2", ["", " ", "3"]).as_deref(), Some("3"));
        assert_eq!((nearest("2", ["", " "]), near("2", ["", " "])), (None, vec![]));
    }

    #[test]
    fn near_names_are_found_by_words_beginnings_and_slips() {
        let topics = ["authentication", "database choice", "auth tokens", "logging", "authentcation"];
        for (typed, expected) in [
            ("auth", vec!["auth tokens", "authentcation", "authentication"]),
            ("authentication flow", vec!["authentication", "authentcation", "auth tokens"]),
            ("autentication", vec!["authentication", "authentcation"]),
            ("database", vec!["database choice"]),
            ("loging", vec!["logging"]),
            ("deploy", vec![]),
        ] {
            assert_eq!(near(typed, topics)[..], expected[..], "{typed}");
        }
    }
}
