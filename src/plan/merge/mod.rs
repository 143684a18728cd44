//! Merges two versions of a plan file: known parts by meaning, the rest by lines.
//!
//! The functions are pure: the caller passes the function that merges by lines. Where nothing has to change, the result has
//! the bytes of OURS. If one side cannot be parsed, or the result would lose an entry, the whole file is merged by lines.

mod body;
mod entries;
mod header;
#[cfg(test)]
mod list_tests;
pub mod markers;
mod squashed;
mod status;
#[cfg(test)]
mod tests;

use crate::plan::file_name::{self, FileName};
use crate::plan::id::PlanId;
use crate::plan::read::STEP_KEYS;
use crate::plan::source;
use crate::plan::time::Time;
use crate::plan::words::{StepStatus, Words};
use crate::text::front_matter::{self, Header, Parts};
use crate::text::header_edit::{self, Pieces};
use crate::text::markdown;
use crate::text::yaml::{Tree, View};

use status::Winner;

/// Merges texts by lines, as `git merge-file` does.
pub trait TextMerge {
    /// `None`: they are not texts, or the merge failed.
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<TextMerged>;
}

/// A merged text. If it is not clean, it has conflict markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMerged {
    pub bytes: Vec<u8>,
    pub is_clean: bool,
}

/// If both sides claimed the step, one claim is kept, and the other becomes an attempt with this note.
pub const CLAIMED_TWICE: &str = "claimed twice";

/// The kind of a file, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Plan,
    Step,
    Other,
}

impl FileKind {
    /// The kind of a file, and the plan that its directory names. The path is separated by `/`.
    pub fn of(path: &str) -> (Self, PlanId) {
        let mut parts = path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let plan = parts.next().unwrap_or_default();
        let kind = match file_name::classify(name) {
            _ if !PlanId::is_plan_name(plan) => Self::Other,
            FileName::Plan => Self::Plan,
            FileName::Step(_) => Self::Step,
            _ => Self::Other,
        };
        (kind, PlanId::new(plan))
    }
}

/// The versions of one file. If both sides added the file, `base` is `None`.
#[derive(Debug, Clone, Copy)]
pub struct Versions<'a> {
    pub path: &'a str,
    pub base: Option<&'a [u8]>,
    pub ours: &'a [u8],
    pub theirs: &'a [u8],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub bytes: Vec<u8>,
    pub is_clean: bool,
    /// The decisions of the merge, as texts for people. Empty if the file was merged by lines.
    pub decided: Vec<String>,
    /// Whether OURS and THEIRS are two different files with the same name, instead of versions of one file.
    pub is_other_file: bool,
}

impl Merged {
    fn clean(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), is_clean: true, decided: Vec::new(), is_other_file: false }
    }
}

/// Merges the versions of a file. If only one side changed the file, the result is that side.
///
/// Conflicts get markers. If both sides changed the file and one of them is not a text, the result is OURS and not clean.
pub fn merge(of: Versions<'_>, words: &Words, lines: &dyn TextMerge) -> Merged {
    let Versions { path, base, ours, theirs } = of;
    if ours == theirs || base == Some(theirs) {
        return Merged::clean(ours);
    }
    if base == Some(ours) {
        return Merged::clean(theirs);
    }
    let merged = by_meaning(path, base, ours, theirs, words, lines);
    merged.unwrap_or_else(|| by_lines_with_entries(of, lines))
}

/// Merges by lines. If that would lose an entry without a conflict, the result is both versions between conflict markers.
fn by_lines_with_entries(of: Versions<'_>, lines: &dyn TextMerge) -> Merged {
    let merged = by_lines(of.base, of.ours, of.theirs, lines);
    let has_entries = FileKind::of(of.path).0 != FileKind::Other;
    let result = std::slice::from_ref(&merged.bytes);
    let loses = |side: &[u8]| missing_logs(side, result);
    if !has_entries || !merged.is_clean || !loses(of.ours) && !loses(of.theirs) {
        return merged;
    }
    let TextMerged { bytes, is_clean } = both(of.ours, of.theirs);
    Merged { bytes, is_clean, ..merged }
}

fn by_lines(base: Option<&[u8]>, ours: &[u8], theirs: &[u8], lines: &dyn TextMerge) -> Merged {
    let merged = lines.merge(base.unwrap_or_default(), ours, theirs);
    let TextMerged { bytes, is_clean } = merged.unwrap_or_else(|| both(ours, theirs));
    Merged { bytes, is_clean, decided: Vec::new(), is_other_file: false }
}

/// Both sides between conflict markers. If one side is not a text, the result is OURS.
fn both(ours: &[u8], theirs: &[u8]) -> TextMerged {
    if [ours, theirs].iter().any(|it| std::str::from_utf8(it).is_err() || it.contains(&0)) {
        return TextMerged { bytes: ours.to_vec(), is_clean: false };
    }
    let mut bytes = b"<<<<<<< ours\n".to_vec();
    for (side, mark) in [(ours, &b"=======\n"[..]), (theirs, b">>>>>>> theirs\n")] {
        bytes.extend(side);
        bytes.extend((!side.is_empty() && !side.ends_with(b"\n")).then_some(b'\n'));
        bytes.extend(mark);
    }
    TextMerged { bytes, is_clean: false }
}

/// One version of a file, split into the parts that the merge needs.
struct Side<'a> {
    parts: Parts<'a>,
    tree: Option<Tree>,
    pieces: Pieces,
    body: &'a str,
}

impl<'a> Side<'a> {
    /// `None`: the file cannot be parsed, or its front matter cannot be divided into keys.
    fn read(path: &str, bytes: &'a [u8]) -> Option<Self> {
        let parsed = source::parse(path, bytes);
        if !parsed.problems.is_empty() || bytes.contains(&0) {
            return None;
        }
        let parts = front_matter::split(bytes);
        let tree = parsed.tree.map(|(tree, _)| tree);
        let pieces = match &tree {
            Some(tree) => header_edit::pieces(&parts, tree)?,
            None => Pieces::default(),
        };
        Some(Self { parts, tree, pieces, body: parsed.body })
    }

    fn get(&self, key: &str) -> Option<View<'_>> {
        self.tree.as_ref()?.root().get(key)
    }

    fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    fn title(&self) -> Option<String> {
        self.text_of("title").map(str::to_owned).or_else(|| heading(self.body))
    }

    /// The lines of a key with the comments above it. Empty if the key is missing.
    fn piece(&self, key: &str) -> &'a [u8] {
        let found = self.pieces.entries.iter().find(|it| it.key == key);
        found.map_or(&[][..], |it| &self.parts.bytes[it.range.clone()])
    }

    fn header(&self) -> &'a [u8] {
        &self.parts.bytes[..self.parts.body_start()]
    }

    fn has_header(&self) -> bool {
        matches!(self.parts.header, Header::Present { .. })
    }
}

fn by_meaning(
    path: &str,
    base: Option<&[u8]>,
    ours: &[u8],
    theirs: &[u8],
    words: &Words,
    lines: &dyn TextMerge,
) -> Option<Merged> {
    // After a criss-cross merge, git's base is itself a merge and may contain conflict markers.
    let picked = base.and_then(|it| markers::SIZES.into_iter().find_map(|size| markers::pick(it, size)));
    let base = picked.as_ref().map(|it| it.ours.as_slice()).or(base);
    let eol = line_end(ours).or_else(|| line_end(base?));
    let base = base.map(|it| with_line_ends(it, eol)).transpose().ok()?;
    let theirs = with_line_ends(theirs, eol).ok()?;
    let own = Side::read(path, ours)?;
    let other = Side::read(path, &theirs)?;
    let empty = Side::read(path, b"")?;
    let common = match &base {
        Some(base) => Side::read(path, base)?,
        None => empty,
    };
    let (has_base, is_base_merged) = (base.is_some(), picked.is_some());
    let sides = Sides { base: &common, ours: &own, theirs: &other, has_base, is_base_merged };
    if !sides.are_one_file() {
        // Never clean: the result may mix lines of two different files, so a person must check it.
        let merged = by_lines(None, ours, &theirs, lines);
        return Some(Merged { is_clean: false, is_other_file: true, ..merged });
    }
    let (kind, plan) = FileKind::of(path);
    let header = header::merge(&sides, kind, words, lines)?;
    let bodies = [common.body, own.body, other.body];
    let body = body::merge(kind, &plan, bodies, lines)?;
    let bytes = [&header.bytes[..], &body.bytes].concat();
    let is_clean = header.is_clean && body.is_clean;
    if is_clean && Side::read(path, &bytes).is_none() {
        return None;
    }
    Some(Merged { bytes, is_clean, decided: header.decided, is_other_file: false })
}

struct Sides<'a> {
    base: &'a Side<'a>,
    ours: &'a Side<'a>,
    theirs: &'a Side<'a>,
    has_base: bool,
    /// Whether the base had conflict markers. Then it is itself a merge.
    is_base_merged: bool,
}

impl Sides<'_> {
    /// Whether both sides have the same new title.
    fn are_retitled(&self) -> bool {
        let [base, ours, theirs] = [self.base, self.ours, self.theirs].map(Side::title);
        self.has_base && ours == theirs && ours != base
    }

    /// If only one side squashed other steps into the step, and the other side closed the step, the side that squashed. The
    /// other side closed only a part of the squashed step.
    fn of_squash(&self, words: &Words) -> Option<Winner> {
        let is_squashed = |side: &Side<'_>| {
            side.title() != self.base.title()
                && has_heading(side, self.base)
                && has_more_parts(side.body, self.base.body)
        };
        let is_closed = |side: &Side<'_>| {
            side.text_of("status")
                .and_then(|it| words.read::<StepStatus>(it))
                .is_some_and(StepStatus::is_closed)
        };
        let sides = [(Winner::Ours, self.ours, self.theirs), (Winner::Theirs, self.theirs, self.ours)];
        let of_one = |it: &(Winner, &Side<'_>, &Side<'_>)| is_squashed(it.1) && !is_squashed(it.2);
        let found = sides.into_iter().find(of_one).filter(|it| self.has_base && is_closed(it.2));
        found.map(|it| it.0)
    }

    /// Whether the versions belong to one file. Sometimes they belong to two: git's rename detection pairs similar files,
    /// and two branches can use one name for two files.
    ///
    /// A moved step has another id, but the same time of creation. Steps that one command created have the same time, too,
    /// so a version with another id must still have the title of the base, or its heading if `squash` made the version.
    fn are_one_file(&self) -> bool {
        let all = [self.base, self.ours, self.theirs];
        let [base, ours, theirs] = all.map(|it| it.text_of("created_at"));
        let [named, own_name, their_name] = all.map(Side::title);
        let [id, own_id, their_id] = all.map(|it| it.text_of("id"));
        let is_step_of_base = |side: &Side<'_>| {
            side.text_of("id") == id || side.title() == named || first_part(side.body) == named
        };
        let is_moved = self.has_base
            && (named == own_name || named == their_name)
            && [self.ours, self.theirs].into_iter().all(is_step_of_base);
        let ids_agree = own_id.is_none() || their_id.is_none() || own_id == their_id;
        let is_squashed =
            ids_agree && (has_heading(self.ours, self.theirs) || has_heading(self.theirs, self.ours));
        let created_alike = ours.is_some()
            && ours == theirs
            && (base == ours || !self.has_base)
            && (own_name == their_name || is_moved || is_squashed);
        // A file that was removed and created again has the same name and id, but another time of creation. If the removed
        // file had no such time, the new file is recognized by its title.
        let is_new_file = |side: &Side<'_>, created: Option<&str>| {
            created.is_some()
                && base.is_none()
                && named.is_some()
                && side.title() != named
                && first_part(side.body) != named
        };
        let is_replaced = is_new_file(self.ours, ours) || is_new_file(self.theirs, theirs);
        let may_be_one = ours == theirs || (ours.is_none() || theirs.is_none()) && !is_replaced;
        if self.has_base && ids_agree { may_be_one } else { created_alike }
    }
}

/// The line ending of a file. `None`: the file has mixed line endings, or none.
pub fn line_end(bytes: &[u8]) -> Option<&'static str> {
    let (mut crlf, mut lf) = (false, false);
    for (at, _) in bytes.iter().enumerate().filter(|(_, it)| **it == b'\n') {
        *(if bytes[..at].ends_with(b"\r") { &mut crlf } else { &mut lf }) = true;
    }
    match (crlf, lf) {
        (true, false) => Some("\r\n"),
        (false, true) => Some("\n"),
        _ => None,
    }
}

/// Converts the line endings of a version to `eol`. A version whose first line already has this ending is not changed.
fn with_line_ends(bytes: &[u8], eol: Option<&str>) -> Result<Vec<u8>, std::str::Utf8Error> {
    let text = std::str::from_utf8(bytes)?;
    let first = bytes.iter().position(|it| *it == b'\n');
    let own = first.map(|it| if bytes[..it].ends_with(b"\r") { "\r\n" } else { "\n" });
    match eol.filter(|_| own != eol) {
        Some(eol) => Ok(text.replace("\r\n", "\n").replace('\n', eol).into_bytes()),
        None => Ok(bytes.to_vec()),
    }
}

/// Converts line ends to those of `model`, another version of the file, because git may convert line ends in the working
/// tree. With `core.autocrlf` or `text=auto`, git does not convert files with mixed line ends, so such files stay as they
/// are.
pub fn with_line_ends_of(model: &[u8], bytes: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(bytes) else { return bytes.to_vec() };
    match (line_end(model), line_end(bytes)) {
        (Some("\r\n"), Some("\n")) => text.replace('\n', "\r\n").into_bytes(),
        (Some("\n"), Some("\r\n")) => text.replace("\r\n", "\n").into_bytes(),
        _ => bytes.to_vec(),
    }
}

/// Whether a version has attempts, notes or confirmations that are in no version of `later`.
pub fn missing_logs(version: &[u8], later: &[Vec<u8>]) -> bool {
    let Some(of) = Tree::of_file(version) else { return false };
    let later: Vec<Tree> = later.iter().filter_map(|it| Tree::of_file(it)).collect();
    entries::LOGS.iter().any(|key| {
        let read = |tree: &Tree| entries::read(tree.root().get(key)).unwrap_or_default();
        let among: Vec<_> = later.iter().flat_map(read).collect();
        !entries::missing(&read(&of), &among).is_empty()
    })
}

fn heading(body: &str) -> Option<String> {
    markdown::sections(body).title().map(str::to_owned)
}

/// The title of the step whose text comes first in a body that `squash` made: the second heading of level 1.
fn first_part(body: &str) -> Option<String> {
    let headings = markdown::sections(body).headings.into_iter().filter(|it| it.level == 1);
    headings.map(|it| it.text).nth(1)
}

/// Identifies a step even if it gets another number, until `squash` or a person changes its title.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    created_at: String,
    title: String,
}

impl Identity {
    /// Whether the time of creation is the same. Steps that one command made have the same time, too.
    pub fn is_made_with(&self, other: &Self) -> bool {
        self.created_at == other.created_at
    }
}

/// `None`: the file has no time of creation or no title, or it cannot be parsed.
pub fn identity(file: &[u8]) -> Option<Identity> {
    let side = Side::read("", file)?;
    Some(Identity { created_at: side.text_of("created_at")?.to_owned(), title: side.title()? })
}

/// Rates from 0 to 4 how likely two files are versions of the same step. 0: they are not.
///
/// A renumbered step keeps its time of creation and its title. The step that `squash` makes keeps the time of creation
/// and the id of its first part, whose title becomes a heading above its text.
pub fn likeness(one: &[u8], other: &[u8]) -> u32 {
    let (Some(a), Some(b)) = (Side::read("", one), Side::read("", other)) else { return 0 };
    let is_same = |key: &str| a.text_of(key).is_some() && a.text_of(key) == b.text_of(key);
    let is_made_alike = is_same("created_at");
    if !is_made_alike && a.text_of("created_at").is_some() && b.text_of("created_at").is_some() {
        return 0;
    }
    let (is_named_alike, has_one_id) = (a.title().is_some() && a.title() == b.title(), is_same("id"));
    match (is_named_alike, has_one_id) {
        (true, true) => 4,
        (true, false) if is_made_alike => 3,
        (false, true) if is_made_alike && (has_heading(&a, &b) || has_heading(&b, &a)) => 2,
        _ => 0,
    }
}

/// Whether two files have the same id and time of creation. A step keeps both if its title changes.
pub fn are_named_alike(one: &[u8], other: &[u8]) -> bool {
    let word = |key: &str| (word_of(one, key), word_of(other, key));
    ["id", "created_at"].into_iter().map(word).all(|(one, other)| one.is_some() && one == other)
}

/// Whether a file contains another step's text or title, as `squash` writes them.
pub fn holds_step(file: &[u8], step: &[u8]) -> bool {
    let (Some(file), Some(step)) = (Side::read("", file), Side::read("", step)) else { return false };
    let text = step.body.trim().replace("\r\n", "\n");
    !text.is_empty() && file.body.replace("\r\n", "\n").contains(&text) || has_heading(&file, &step)
}

/// Whether `squash` added parts to a version since an earlier one. Such a part has a heading of level 1, which is below the
/// title and which the earlier version lacks.
pub fn holds_more_steps(file: &[u8], earlier: &[u8]) -> bool {
    let Some(file) = Side::read("", file) else { return false };
    has_more_parts(file.body, Side::read("", earlier).map_or("", |it| it.body))
}

fn has_more_parts(body: &str, earlier: &str) -> bool {
    let headings = |body: &str| -> Vec<String> {
        let all = markdown::sections(body).headings.into_iter();
        all.filter(|it| it.level == 1).map(|it| it.text).collect()
    };
    let known = headings(earlier);
    headings(body).iter().skip(1).any(|it| !known.contains(it))
}

/// Whether a file has the title of another one as a heading of level 1.
fn has_heading(file: &Side<'_>, of: &Side<'_>) -> bool {
    let title = of.title().map(|it| format!("# {it}"));
    title.is_some_and(|it| file.body.lines().any(|line| line == it))
}

/// Adds to `file` the attempts, notes and confirmations of `other` that `file` lacks, except those that `known` has.
/// `None` if there are none to add, or if they cannot be added.
pub fn with_logs_of(file: &[u8], other: &[u8], known: Option<&[u8]>) -> Option<Vec<u8>> {
    let (tree, from) = (Tree::of_file(file)?, Tree::of_file(other)?);
    let known = known.and_then(Tree::of_file);
    let mut merged = file.to_vec();
    for key in entries::LOGS {
        let (own, other) = (entries::read(tree.root().get(key))?, entries::read(from.root().get(key))?);
        let known = known.as_ref().and_then(|it| entries::read(it.root().get(key))).unwrap_or_default();
        let wanted: Vec<_> = entries::missing(&other, &known).into_iter().cloned().collect();
        let new = entries::missing(&wanted, &own);
        if !new.is_empty() {
            // If the comments of the entries cannot be written into the list, the entries are added without comments.
            let plain = || new.iter().map(|it| (*it).clone().without_comments()).collect::<Vec<_>>();
            merged = entries::add(&merged, key, &own, &new, STEP_KEYS).or_else(|| {
                entries::add(&merged, key, &own, &plain().iter().collect::<Vec<_>>(), STEP_KEYS)
            })?;
        }
    }
    (merged != file).then_some(merged)
}

/// Returns the front matter of `file`, followed by the body of `other`.
pub fn with_body_of(file: &[u8], other: &[u8]) -> Vec<u8> {
    let [header, body] = [file, other].map(|it| (it, front_matter::split(it).body_start()));
    [&header.0[..header.1], &body.0[body.1..]].concat()
}

/// The attempts, notes and confirmations of a version that are later than a time, each as a short text.
pub fn logs_since(version: &[u8], time: Time) -> Vec<String> {
    let Some(tree) = Tree::of_file(version) else { return Vec::new() };
    let of = |key: &str| {
        let entries = entries::read(tree.root().get(key)).unwrap_or_default().into_iter();
        entries
            .filter(|it| it.at() > Some(time))
            .map(|it| format!("{key}: {}", it.brief()))
            .collect::<Vec<_>>()
    };
    entries::LOGS.iter().flat_map(|key| of(key)).collect()
}

/// The attempts, notes and confirmations of a version that a later version lacks, each as a short text.
pub fn lost(version: &[u8], later: &[u8]) -> Vec<String> {
    let (of, now) = (Tree::of_file(version), Tree::of_file(later));
    let read = |tree: &Option<Tree>, key: &str| {
        entries::read(tree.as_ref().and_then(|it| it.root().get(key))).unwrap_or_default()
    };
    let mut lost = Vec::new();
    for key in entries::LOGS {
        let (of, now) = (read(&of, key), read(&now, key));
        lost.extend(entries::missing(&of, &now).into_iter().map(|it| format!("{key}: {}", it.brief())));
    }
    lost
}

/// The text of a version's key `status`.
pub fn status_of(version: &[u8]) -> Option<String> {
    word_of(version, "status")
}

/// The text of a version's key `id`.
pub fn id_of(version: &[u8]) -> Option<String> {
    word_of(version, "id")
}

fn word_of(version: &[u8], key: &str) -> Option<String> {
    Tree::of_file(version)?.root().get(key)?.text().map(str::to_owned)
}
