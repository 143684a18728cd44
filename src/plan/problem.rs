//! The problems that a file can have, and which of them prevent claiming or writing.

use borsh::{BorshDeserialize, BorshSerialize};
use schemars::JsonSchema;
use serde::Serialize;

use crate::text::line_index::{self, Place};

/// How serious a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Severity {
    Error,
    Warning,
}

macro_rules! codes {
    ($($variant:ident $text:literal $severity:ident $refusal:ident),* $(,)?) => {
        /// The kinds of problems; the text form is stable and appears in every surface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),* }
            }

            fn writing(self) -> Writing {
                match self { $(Self::$variant => Writing::$refusal),* }
            }
        }
    };
}

#[derive(PartialEq, Eq)]
enum Writing {
    Refused,
    Allowed,
}

codes! {
    NotUtf8 "not-utf8" Error Refused,
    FrontMatterUnclosed "front-matter-unclosed" Error Refused,
    FrontMatterInvalid "front-matter-invalid" Error Refused,
    NotAMapping "not-a-mapping" Error Refused,
    DuplicateKey "duplicate-key" Error Refused,
    ConflictMarkers "conflict-markers" Error Refused,
    TooLarge "too-large" Error Refused,
    NotAFile "not-a-file" Error Refused,
    Unreadable "unreadable" Error Refused,
    DuplicateStepNumber "duplicate-step-number" Error Allowed,
    UnknownStatus "unknown-status" Error Allowed,
    DependencyMissing "dependency-missing" Error Allowed,
    DependencyCycle "dependency-cycle" Error Allowed,
    WrongType "wrong-type" Error Allowed,
    IdDiffers "id-differs" Warning Allowed,
    LooksLikeAStep "looks-like-a-step" Warning Allowed,
    LooksLikeAVersion "looks-like-a-version" Warning Allowed,
    MissingPlanFile "missing-plan-file" Warning Allowed,
    MissingStepFile "missing-step-file" Warning Allowed,
    DependenciesDisagree "dependencies-disagree" Warning Allowed,
    DependenciesUnclear "dependencies-unclear" Warning Allowed,
    StaleClaim "stale-claim" Warning Allowed,
    NestedPlan "nested-plan" Warning Allowed,
    ProgramMissing "program-missing" Warning Allowed,
    PhaseMissing "phase-missing" Warning Allowed,
    NameClash "name-clash" Warning Allowed,
    DecisionRewritten "decision-rewritten" Warning Allowed,
    ClaimedTwice "claimed-twice" Warning Allowed,
    WaitsForOpen "waits-for-open" Warning Allowed,
    ChangedAfterRemoval "changed-after-removal" Warning Allowed,
    NotChecked "not-checked" Warning Allowed,
    EndedNowhere "ended-nowhere" Warning Allowed,
    TimeInFuture "time-in-future" Warning Allowed,
    TakenBack "taken-back" Warning Allowed,
    HardLinked "hard-linked" Warning Allowed,
    UnknownKey "unknown-key" Warning Allowed,
    UnknownWord "unknown-word" Warning Allowed,
    InvalidDate "invalid-date" Warning Allowed,
    PromptInvalid "prompt-invalid" Warning Allowed,
    NameNotUtf8 "name-not-utf8" Warning Allowed,
}

impl Code {
    /// Returns the code with this text. The errors of `src/text` contain such texts.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|it| it.text() == text).copied()
    }

    /// Returns whether planwatch refuses to write a file that has this problem.
    pub fn refuses_writing(self) -> bool {
        self.writing() == Writing::Refused
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Problem {
    /// Relative to the plans directory, with `/` as separator.
    pub path: String,
    pub line: u32,
    pub column: u32,
    pub code: Code,
    /// One sentence. It does not end with a full stop.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// Whether `check --fix` can fix it without losing anything.
    pub is_fixable: bool,
}

impl Problem {
    pub fn of_file(path: &str, code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::at(path, Place::START, code, message, hint)
    }

    pub fn at(
        path: &str,
        place: Place,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let Place { line, column } = place;
        let (message, hint) = (message.into(), hint.into());
        Self { path: path.to_owned(), line, column, code, message, hint, is_fixable: false }
    }

    pub fn at_byte(
        path: &str,
        bytes: &[u8],
        at: usize,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::at(path, line_index::place(bytes, at), code, message, hint)
    }

    #[must_use]
    pub fn fixable(self) -> Self {
        Self { is_fixable: true, ..self }
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back_and_only_errors_refuse_writing() {
        for code in Code::ALL {
            assert_eq!(Code::from_text(code.text()), Some(*code));
            assert!(!code.refuses_writing() || code.severity() == Severity::Error);
        }
    }
}
