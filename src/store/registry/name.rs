//! The names of records: `claims/<plans directory>/<plan>/<step>`.
//!
//! The parts are encoded by `store::ref_name`, because a git server may store refs as files on a file system that
//! ignores case. All names of claims have the same depth, so no name is also the directory of another name.

use std::fmt;

use crate::plan::id::StepId;
use crate::store::ref_name::{LONGEST, part};

const CLAIMS: &str = "claims/";

/// The name of a record below the registry's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Name(String);

impl Name {
    /// The name of a step's record. `dir` is the plans directory, relative to the repository.
    pub(crate) fn of(dir: &str, step: &StepId) -> Self {
        Self(format!("{CLAIMS}{}/{}", dir_part(dir), of_step(step)))
    }

    /// Whether this names a record of `step`, in any plans directory.
    pub(crate) fn is_of(&self, step: &StepId) -> bool {
        self.0.split_once('/').and_then(|it| it.1.split_once('/')).is_some_and(|it| it.1 == of_step(step))
    }

    /// Whether this names the record of a step of the plans directory `dir`.
    pub(crate) fn is_in(&self, dir: &str) -> bool {
        self.0.strip_prefix(CLAIMS).and_then(|it| it.split_once('/')).is_some_and(|it| it.0 == dir_part(dir))
    }

    /// The name of the record that describes the registry.
    pub(crate) fn registry() -> Self {
        Self("registry".to_owned())
    }

    /// Reads a name from a listing; `None` if the text does not have the form of planwatch's names.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let is_name = text == "registry"
            || text
                .strip_prefix(CLAIMS)
                .is_some_and(|it| it.split('/').count() == 3 && it.split('/').all(is_part));
        is_name.then(|| Self(text.to_owned()))
    }

    pub(crate) fn is_claim(&self) -> bool {
        self.0.starts_with(CLAIMS)
    }

    /// The name of this clone's file for the record, in `planwatch/sync`.
    pub(crate) fn key(&self) -> String {
        blake3::hash(self.0.as_bytes()).to_hex()[..16].to_owned()
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text).ok_or_else(|| format!("`{text}` is not the name of a record"))
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn dir_part(dir: &str) -> String {
    part(if dir.is_empty() { "." } else { dir })
}

fn of_step(step: &StepId) -> String {
    format!("{}/{}", part(step.plan.as_str()), part(&step.number.to_string()))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

fn is_part(text: &str) -> bool {
    if let Some(hash) = text.strip_prefix('=') {
        return hash.len() == 40 && hash.bytes().all(is_digit);
    }
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'%', [high, low, after @ ..]) if is_digit(*high) && is_digit(*low) => after,
            (first, after) if is_plain(*first) => after,
            _ => return false,
        };
    }
    !text.is_empty() && text.len() <= LONGEST
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::id::{PlanId, read_step_id};

    fn name(dir: &str, plan: &str, number: &str) -> String {
        let step = StepId { plan: PlanId::new(plan), number: number.parse().unwrap() };
        Name::of(dir, &step).to_string()
    }

    #[test]
    fn names_are_safe_on_every_file_system_and_in_git() {
        let table = [
            (("plans", "auth", "1"), "claims/plans/auth/1"),
            (("plans", "auth", "2.50"), "claims/plans/auth/2%2e5"),
            (("plans", "auth", "02"), "claims/plans/auth/2"),
            (("docs/plans", "Auth", "1"), "claims/docs%2fplans/%41uth/1"),
            (("", "a b..lock@{~^:", "1"), "claims/%2e/a%20b%2e%2elock%40%7b%7e%5e%3a/1"),
            (("plans", "e\u{301}té", "1"), "claims/plans/%c3%a9t%c3%a9/1"),
            (("plans", "100%", "1"), "claims/plans/100%25/1"),
        ];
        for ((dir, plan, number), expected) in table {
            assert_eq!(name(dir, plan, number), expected);
        }
        let long = name("plans", &"é".repeat(100), "1");
        assert!(long.len() < 80 && long.contains("/="), "{long}");
        assert_ne!(long, name("plans", &"é".repeat(101), "1"));
    }

    #[test]
    fn only_names_that_planwatch_makes_are_read() {
        for good in ["registry", "claims/plans/auth/2%2e5"] {
            assert!(Name::read(good).is_some(), "{good}");
        }
        let bad = [
            "",
            "probe",
            "claims/plans/auth",
            "claims/plans/auth/1/2",
            "claims//auth/1",
            "claims/plans/Auth/1",
            "claims/plans/au%2Fth/1",
            "claims/plans/au%2/1",
            "claims/plans/a.b/1",
            "claims/../../1",
            "claims/plans/=12/1",
            "claims/plans/a\nb/1",
        ];
        for bad in bad {
            assert_eq!(Name::read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn different_steps_have_different_names(a in "\\PC{1,90}", b in "\\PC{1,90}") {
            let step = |it: &str| StepId { plan: PlanId::new(it), number: "1".parse().unwrap() };
            let (one, other) = (step(&a), step(&b));
            prop_assert_eq!(one == other, Name::of("plans", &one) == Name::of("plans", &other));
            let name = Name::of(&a, &read_step_id("p:1").unwrap());
            prop_assert!(name.is_in(&a) && name.is_of(&read_step_id("p:1").unwrap()));
            prop_assert!(!name.is_in("other/dir") && !name.is_of(&read_step_id("p:2").unwrap()));
            prop_assert_eq!(Name::read(&name.0), Some(name));
        }
    }
}
