//! Names of plans and steps, and how people refer to them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io::{Error as IoError, Read};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;

use crate::plan::file_name::{self, FileName};
use crate::plan::step_number::StepNumber;
use crate::text::typed::without_dot;

/// A plan's id: the name of its directory, as on disk.
///
/// Ids are compared in Unicode normalization form C, because file systems encode accents differently. The id itself keeps
/// the spelling of the directory's name.
///
/// The text is in an [`Arc`], because every dependency on a step contains a plan's id, and a plan can have hundreds of
/// thousands of dependencies.
#[derive(Debug, Clone, BorshSerialize)]
pub struct PlanId(Arc<str>);

impl BorshDeserialize for PlanId {
    /// Ids that follow each other share the text if it is the same. In a plan's row of the index, each step and each
    /// dependency has its plan's id (benchmark T3).
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<Self, IoError> {
        thread_local! {
            static LAST: RefCell<Option<PlanId>> = const { RefCell::new(None) };
        }
        let text = String::deserialize_reader(from)?;
        LAST.with_borrow_mut(|last| match last {
            Some(last) if *last.0 == *text => Ok(last.clone()),
            _ => Ok(last.insert(Self(text.into())).clone()),
        })
    }
}

impl PlanId {
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(name.as_ref().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a directory of this name below the plans directory can be a plan.
    pub fn is_plan_name(name: &str) -> bool {
        !name.is_empty() && !name.starts_with(['_', '.']) && !name.contains(['/', '\0'])
    }

    /// Returns whether both ids have the same spelling. Equal ids can have different ones.
    pub(crate) fn is_spelled_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }

    fn folded(&self) -> Cow<'_, str> {
        if self.0.is_ascii() { Cow::Borrowed(&self.0) } else { Cow::Owned(self.0.nfc().collect()) }
    }
}

impl PartialEq for PlanId {
    fn eq(&self, other: &Self) -> bool {
        let is_ascii = || self.0.is_ascii() && other.0.is_ascii();
        self.is_spelled_as(other) || (!is_ascii() && self.folded() == other.folded())
    }
}

impl Eq for PlanId {}

impl Hash for PlanId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded().hash(state);
    }
}

impl Ord for PlanId {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0.is_ascii() && other.0.is_ascii() {
            return self.0.cmp(&other.0);
        }
        self.folded().cmp(&other.folded())
    }
}

impl PartialOrd for PlanId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A step's id, `<plan>:<number>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct StepId {
    pub plan: PlanId,
    pub number: StepNumber,
}

impl Serialize for StepId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <String as Deserialize>::deserialize(from)?;
        read_step_id(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not the id of a step")))
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() || f.precision().is_some() {
            return f.pad(&format!("{}:{}", self.plan, self.number));
        }
        write!(f, "{}:{}", self.plan.0, self.number)
    }
}

/// A plan or a step as a user named it. Whether it exists is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A bare number or `step-N`: a step of the current plan.
    Number(StepNumber),
    /// `whole` is the whole text as the name of a plan. If there is no plan with this name, the text means `step`.
    Name { whole: PlanId, step: Option<StepId> },
    /// A path to a file or directory: begins with `./`, `../` or `/`, or ends in `.md`.
    Path(String),
}

/// Reads a reference: `plan`, `plan:2.5`, `plan/2.5`, `plan/step-2.5`, `2.5`, `step-2.5`, `./plans/p/step-2.md`. `./` may
/// precede a name that begins with `-`: `./-plan:2.5`.
pub fn read_reference(text: &str) -> Reference {
    let text = if text.ends_with(".md") { text } else { without_dot(text) };
    let is_path = ["./", "../", "/"].iter().any(|it| text.starts_with(it));
    if is_path || text.ends_with(".md") {
        return Reference::Path(text.to_owned());
    }
    if let Some(number) = read_number(text) {
        return Reference::Number(number);
    }
    Reference::Name { whole: PlanId::new(text.trim_end_matches('/')), step: read_step_id(text) }
}

/// Reads `plan:2.5`, `plan/2.5` or `plan/step-2.5`. The last `:` or `/` separates the plan from the number.
pub fn read_step_id(text: &str) -> Option<StepId> {
    let (plan, number) = text.rsplit_once([':', '/'])?;
    let number = read_number(number)?;
    (!plan.is_empty()).then(|| StepId { plan: PlanId::new(plan), number })
}

/// Reads the path of a step's file, such as `plans/auth/step-2.md`. Returns the name of the file's directory, which is the
/// plan's id, and the step's number.
///
/// The plan is `None` if the path names no directory that can be a plan, as in `step-2.md` and `./step-2.md`.
pub fn read_step_path(text: &str) -> Option<(Option<PlanId>, StepNumber)> {
    let (directory, name) = text.rsplit_once('/').map_or((None, text), |(it, name)| (Some(it), name));
    let FileName::Step(number) = file_name::classify(name) else { return None };
    let plan = directory.and_then(|it| it.rsplit('/').next()).filter(|it| PlanId::is_plan_name(it));
    Some((plan.map(PlanId::new), number))
}

/// Reads `2.5` or `step-2.5`.
pub fn read_number(text: &str) -> Option<StepNumber> {
    text.strip_prefix("step-").unwrap_or(text).parse().ok()
}

const MAX_SLUG: usize = 64;

/// Makes a directory name from a title: `[a-z0-9]+(-[a-z0-9]+)*`, at most 64 characters.
///
/// Accents and apostrophes are dropped, and letters such as `ß` are spelled in ASCII. Any other characters between letters
/// and digits become one `-`. If nothing is left, the name is `plan`. A number, `step-N` and a name that Windows reserves
/// get the prefix `plan-`. If `is_taken` returns true for the name, `-2`, `-3` … is appended.
pub fn slug(title: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    let base = plain_slug(title);
    let base = if is_reserved(&base) { format!("plan-{base}") } else { base };
    let base = cut(&base, MAX_SLUG);
    if !is_taken(base) {
        return base.to_owned();
    }
    let numbered =
        (2_u32..).map(|n| format!("-{n}")).map(|end| format!("{}{end}", cut(base, MAX_SLUG - end.len())));
    numbered.into_iter().find(|it| !is_taken(it)).unwrap_or_else(|| base.to_owned())
}

fn plain_slug(title: &str) -> String {
    let slug = letters_and_digits(title);
    if slug.is_empty() { "plan".to_owned() } else { slug }
}

/// Converts a text to the characters `[a-z0-9-]`. The result may be empty.
pub(crate) fn letters_and_digits(title: &str) -> String {
    let mut slug = String::new();
    let mut gap = false;
    for c in spelled_out(title).nfkd().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            if gap && !slug.is_empty() {
                slug.push('-');
            }
            gap = false;
            slug.push(c);
        } else if !unicode_normalization::char::is_combining_mark(c) && c != '\'' && c != '’' {
            gap = true;
        }
    }
    slug
}

/// Replaces letters that Unicode normalization does not decompose, such as `ß`, by ASCII letters.
fn spelled_out(title: &str) -> String {
    let groups = [("ß", "ss"), ("æÆ", "ae"), ("œŒ", "oe"), ("øØ", "o"), ("łŁ", "l"), ("đĐ", "d")];
    groups
        .iter()
        .fold(title.to_owned(), |text, (letters, plain)| text.replace(|c: char| letters.contains(c), plain))
}

pub(crate) fn cut(slug: &str, most: usize) -> &str {
    slug.get(..most).unwrap_or(slug).trim_end_matches('-')
}

/// Whether a name would be read as a step (a number, or `step-` and a number), or is a device name of Windows.
fn is_reserved(slug: &str) -> bool {
    const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
    let numbered = ["com", "lpt"]
        .iter()
        .any(|it| slug.strip_prefix(it).is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit()));
    slug.bytes().all(|it| it.is_ascii_digit())
        || DEVICES.contains(&slug)
        || numbered
        || slug.strip_prefix("step-").is_some_and(|it| it.parse::<StepNumber>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> StepNumber {
        text.parse().expect("it is a number")
    }

    #[test]
    fn references_are_read_in_all_their_forms() {
        let step = |plan: &str, n: &str| Some(StepId { plan: PlanId::new(plan), number: number(n) });
        let name = |whole: &str, step| Reference::Name { whole: PlanId::new(whole), step };
        let cases = [
            ("2.5", Reference::Number(number("2.5"))),
            ("step-3", Reference::Number(number("3"))),
            ("auth", name("auth", None)),
            ("auth:2.5", name("auth:2.5", step("auth", "2.5"))),
            ("auth/2", name("auth/2", step("auth", "2"))),
            ("auth/step-2.50", name("auth/step-2.50", step("auth", "2.5"))),
            ("a:b:2", name("a:b:2", step("a:b", "2"))),
            ("auth/", name("auth", None)),
            ("./plans/auth", Reference::Path("./plans/auth".to_owned())),
            ("plans/auth/step-2.md", Reference::Path("plans/auth/step-2.md".to_owned())),
        ];
        for (text, meaning) in cases {
            assert_eq!(read_reference(text), meaning, "{text}");
        }
    }

    #[test]
    fn a_path_names_a_step() {
        let of = |text: &str| {
            read_step_path(text).map(|(plan, number)| (plan.map(|it| it.to_string()), number.to_string()))
        };
        assert_eq!(of("./plans/auth/step-2.md"), Some((Some("auth".to_owned()), "2".to_owned())));
        assert_eq!(of("auth/step-02.50.md"), Some((Some("auth".to_owned()), "2.5".to_owned())));
        assert_eq!(of("./step-3.md"), Some((None, "3".to_owned())));
        assert_eq!(of("auth/plan.md"), None);
    }

    #[test]
    fn names_compare_by_nfc_and_keep_their_spelling() {
        let (composed, decomposed) = (PlanId::new("caf\u{e9}"), PlanId::new("cafe\u{301}"));
        assert_eq!(composed, decomposed);
        assert_eq!(decomposed.as_str(), "cafe\u{301}");
    }

    #[test]
    fn slugs_are_plain_names() {
        let free = |_: &str| false;
        for (title, expected) in [
            ("Feature: User Authentication", "feature-user-authentication"),
            ("Café — crème", "cafe-creme"),
            ("Straße", "strasse"),
            ("日本語", "plan"),
            ("2026", "plan-2026"),
            ("1.5", "1-5"),
            ("CON", "plan-con"),
            ("step 3", "plan-step-3"),
            ("Don't panic.md", "dont-panic-md"),
            ("  ", "plan"),
        ] {
            assert_eq!(slug(title, &free), expected, "{title}");
        }
        assert_eq!(slug("a", &|it| it == "a" || it == "a-2"), "a-3");
        assert_eq!(slug(&"x".repeat(99), &|it| it.len() == 64 && !it.contains('-')).len(), 64);
    }

    proptest! {
        #[test]
        fn every_slug_is_a_plan_name(title in ".*") {
            let slug = slug(&title, &|_| false);
            prop_assert!(PlanId::is_plan_name(&slug));
            prop_assert!(slug.len() <= 64 && !slug.ends_with('-') && read_number(&slug).is_none());
        }
    }
}
