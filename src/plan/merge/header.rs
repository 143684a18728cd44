//! Merges front matters, key by key.

use std::collections::BTreeMap;

use super::body::one_of;
use super::entries::{self, Entry, LOGS, SETS};
use super::status::{self, Tries, Winner, WrittenClaim, WrittenStatus};
use super::{CLAIMED_TWICE, FileKind, Side, Sides, TextMerge, TextMerged, both};
use crate::plan::read::{PLAN_KEYS, STEP_KEYS};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Words};
use crate::text::front_matter::{self, Header};
use crate::text::header_edit::{self, NewValue, Piece, Pieces, Written};
use crate::text::yaml::{self, Kind, Tree, View};

/// A merged front matter with its delimiter lines.
pub(super) struct MergedHeader {
    pub(super) bytes: Vec<u8>,
    pub(super) is_clean: bool,
    pub(super) decided: Vec<String>,
}

/// Keys with the time of the last change; the later time is kept.
const CHANGED_AT: [&str; 4] = ["updated", "updated_at", "last_updated", "modified"];

/// `None`: the whole file must be merged by lines.
pub(super) fn merge(
    sides: &Sides<'_>,
    kind: FileKind,
    words: &Words,
    lines: &dyn TextMerge,
) -> Option<MergedHeader> {
    let Sides { base, ours, theirs, .. } = *sides;
    let clean =
        |bytes: &[u8]| Some(MergedHeader { bytes: bytes.to_vec(), is_clean: true, decided: Vec::new() });
    let order = if kind == FileKind::Plan { PLAN_KEYS } else { STEP_KEYS };
    let of_squash = sides.of_squash(words).filter(|_| kind == FileKind::Step);
    let one = one_of(base.header(), ours.header(), theirs.header());
    if let Some(one) = one.filter(|_| of_squash.is_none()) {
        let side = if one == ours.header() { ours } else { theirs };
        let may_lack_entries = kind != FileKind::Other && ours.header() != theirs.header();
        let whole = if may_lack_entries { with_entries_of(base, side, order) } else { Ok(None) };
        if let Ok(whole) = whole {
            return clean(whole.as_deref().unwrap_or(one));
        }
        // The entries that `side` lacks could not be added to its list. So the code below merges the keys one by one. It
        // adds missing entries to the list of OURS.
    }
    match [base, ours, theirs].map(Side::has_header) {
        [_, true, true] => {}
        [false, true, false] => return clean(ours.header()),
        [false, false, true] => return clean(theirs.header()),
        _ => return None,
    }
    let mut merge = Merge {
        disputed: Vec::new(),
        sides,
        order,
        file: ours.header().to_vec(),
        taken: BTreeMap::new(),
        settled: Vec::new(),
        decided: Vec::new(),
    };
    if kind != FileKind::Other {
        let more = merge.status(kind, words, of_squash)?;
        merge.logs(&more)?;
    }
    merge.sets();
    merge.assemble(lines)
}

/// Missing entries cannot be added to a list.
struct CannotTake;

/// Returns the front matter of `side`, the only side that changed it, with the entries of the base that `side` lacks. So if
/// an `undo` or a revert changes the status back, the attempt is preserved. `None`: no entry is missing.
fn with_entries_of(base: &Side<'_>, side: &Side<'_>, order: &[&str]) -> Result<Option<Vec<u8>>, CannotTake> {
    let mut file = None;
    for key in LOGS {
        let Some(mut before) = entries::read(base.get(key)).filter(|it| !it.is_empty()) else { continue };
        entries::drop_heading(&mut before, side.piece(key));
        // If the value is not a list, or the side has no front matter, no entries can be added.
        let own = entries::read(side.get(key)).filter(|_| side.has_header()).ok_or(CannotTake)?;
        let lacking = entries::missing(&before, &own);
        if !lacking.is_empty() {
            let header = file.as_deref().unwrap_or(side.header());
            file = Some(entries::add(header, key, &own, &lacking, order).ok_or(CannotTake)?);
        }
    }
    Ok(file)
}

/// Entries that the merge itself creates, each with the key of its list.
type More = Vec<(&'static str, Entry)>;

struct Merge<'a> {
    sides: &'a Sides<'a>,
    order: &'static [&'static str],
    /// The front matter of OURS with the edits so far.
    file: Vec<u8>,
    /// Keys whose piece is taken unchanged from one side.
    taken: BTreeMap<String, Winner>,
    /// Keys whose merged value is in `file`.
    settled: Vec<String>,
    /// Keys whose entries could not be merged. They are in conflict.
    disputed: Vec<String>,
    decided: Vec<String>,
}

impl<'a> Merge<'a> {
    fn all(&self) -> [&'a Side<'a>; 3] {
        let Sides { base, ours, theirs, .. } = self.sides;
        [base, ours, theirs]
    }

    /// Decides on status, claim and confirmation. Returns the entries that record a claim or a confirmation that was
    /// not taken. `of_squash` is the result of [`Sides::of_squash`].
    fn status(&mut self, kind: FileKind, words: &Words, of_squash: Option<Winner>) -> Option<More> {
        let statuses = self.all().map(|it| it.text_of("status"));
        if kind == FileKind::Plan {
            let [base, ours, theirs] = statuses.map(|it| it.and_then(|it| words.read::<PlanStatus>(it)));
            if statuses[1] != statuses[2]
                && let Some(winner) = status::of_plan(base, ours, theirs)
            {
                self.take("status", winner);
            }
            return Some(Vec::new());
        }
        let statuses =
            statuses.map(|word| WrittenStatus { word, status: word.and_then(|it| words.read(it)) });
        let [base, ours, theirs] = self.all().map(|it| entries::read(it.get("attempts")));
        let base = base?;
        // If `attempts` is not a list in the base, the whole file is merged by lines. If it is not a list in a side, and the
        // base has no entries, the whole file is merged by lines, too. If it is not a list in a side, but the base has
        // entries, that side counts as having no attempts here, and `logs` decides about the key.
        let or_none = |it: Option<Vec<Entry>>| it.or_else(|| (!base.is_empty()).then(Vec::new));
        let (ours, theirs) = (or_none(ours)?, or_none(theirs)?);
        let brief = |of: Vec<&Entry>| {
            let part = |it: &Entry, key: &str| it.text(key).unwrap_or_default().to_owned();
            of.into_iter().map(|it| (part(it, "at"), part(it, "outcome"))).collect()
        };
        let tries = Tries {
            ours: brief(entries::missing(&ours, &theirs)),
            theirs: brief(entries::missing(&theirs, &ours)),
            are_new: [&ours, &theirs].map(|it| !entries::missing(it, &base).is_empty()),
            are_older: [&ours, &theirs].map(|it| !entries::missing(&base, it).is_empty()),
            is_base_merged: self.sides.is_base_merged,
            are_retitled: self.sides.are_retitled(),
        };
        let winner = of_squash.or_else(|| status::of_step(statuses[0], statuses[1], statuses[2], &tries));
        let mut more = More::new();
        if let Some(winner) = winner {
            let is_same = status::word(statuses[1]) == status::word(statuses[2]);
            if !is_same {
                let words = [status::word(statuses[1]), status::word(statuses[2])];
                let word = if winner == Winner::Ours { words[0] } else { words[1] };
                let of_part = if winner == Winner::Ours { words[1] } else { words[0] };
                if of_squash.is_some() {
                    self.decided
                        .push(format!("status {word} (only a part of the squashed step is {of_part})"));
                } else if status::word(statuses[0]) != words[0] && status::word(statuses[0]) != words[1] {
                    self.decided.push(format!("status {word} ({} and {})", words[0], words[1]));
                }
            }
            // If both wrote the same status, the key is merged like any other, except that two words for it are no conflict.
            let [before, own, other] = statuses.map(|it| it.word);
            let is_respelled =
                own.is_some() && other.is_some() && own != other && own != before && other != before;
            if !is_same || is_respelled {
                self.take("status", winner);
            }
            more.extend(self.claim(winner, is_same, [&base, &ours, &theirs]));
        }
        more.extend(self.confirmed());
        Some(more)
    }

    fn take(&mut self, key: &str, winner: Winner) {
        self.taken.insert(key.to_owned(), winner);
    }

    /// Takes the claim of the side whose status wins; if both sides have the same status, decides between their claims.
    /// A new claim that is dropped becomes an attempt, unless an attempt with this claim exists already.
    fn claim(
        &mut self,
        status: Winner,
        is_same: bool,
        attempts: [&[Entry]; 3],
    ) -> Option<(&'static str, Entry)> {
        let [base, ours, theirs] = self.all().map(|it| claim_of(it.get("claim")));
        if ours == theirs {
            return None;
        }
        let winner = match (&ours, &theirs) {
            _ if !is_same => status,
            _ if theirs == base => Winner::Ours,
            _ if ours == base => Winner::Theirs,
            (Some(ours), Some(theirs)) => status::of_claims(ours, theirs),
            (Some(_), None) => Winner::Ours,
            (None, _) => Winner::Theirs,
        };
        self.take("claim", winner);
        let (kept, lost) = if winner == Winner::Ours { (&ours, &theirs) } else { (&theirs, &ours) };
        let lost = lost.as_ref().filter(|it| Some(*it) != base.as_ref())?;
        let is_known = |it: &Entry| it.text("claim") == Some(lost.id.as_str());
        if attempts.iter().any(|of| of.iter().any(is_known)) {
            return None;
        }
        let winners = attempts[if winner == Winner::Ours { 1 } else { 2 }];
        let new = entries::missing(winners, attempts[0]);
        let had_claim = kept.is_some() || new.iter().any(|it| it.text("claim").is_some());
        let note = if had_claim { CLAIMED_TWICE } else { "the step was changed on another branch" };
        self.decided.push(format!("claim {} ended ({note})", lost.id));
        let parts = [("at", lost.at.as_deref()), ("by", lost.by.as_deref()), ("outcome", Some("expired"))];
        let parts = parts.into_iter().chain([("notes", Some(note)), ("claim", Some(lost.id.as_str()))]);
        Some(("attempts", new_entry(parts)?))
    }

    /// Of two confirmations of a step the earlier one stays, and the other becomes a note.
    fn confirmed(&mut self) -> Option<(&'static str, Entry)> {
        let all = self.all();
        let read = |it: &Side<'_>| it.get("confirmed").filter(|it| it.kind() == Kind::Map)?.to_json().ok();
        let [base, ours, theirs] = all.map(read);
        let (ours, theirs) = (ours?, theirs?);
        if one_of(&base, &Some(ours.clone()), &Some(theirs.clone())).is_some() {
            return None;
        }
        let part =
            |it: &serde_json::Value, key: &str| it.get(key).and_then(|it| it.as_str()).map(str::to_owned);
        let is_ours = (part(&ours, "at"), part(&ours, "by")) <= (part(&theirs, "at"), part(&theirs, "by"));
        self.take("confirmed", if is_ours { Winner::Ours } else { Winner::Theirs });
        let other = if is_ours { &theirs } else { &ours };
        let (at, by, note) = (part(other, "at"), part(other, "by"), part(other, "note"));
        let text = note.map_or_else(|| "also confirmed".to_owned(), |it| format!("also confirmed: {it}"));
        let parts = [("at", at.as_deref()), ("type", Some("info")), ("by", by.as_deref())];
        Some(("notes", new_entry(parts.into_iter().chain([("text", Some(text.as_str()))]))?))
    }

    fn logs(&mut self, more: &[(&str, Entry)]) -> Option<()> {
        let [base, ours, theirs] = self.all();
        for key in LOGS {
            let extra: Vec<&Entry> = more.iter().filter(|(of, _)| *of == key).map(|(_, it)| it).collect();
            let read = [base, ours, theirs].map(|it| entries::read(it.get(key)));
            let had_entries = read[0].as_ref().is_some_and(|it| !it.is_empty());
            let [Some(before), Some(own), Some(mut other)] = read else {
                // At least one value is not a list. If the merge itself must add entries (`extra`), the whole file is merged
                // by lines. Otherwise, if the base has entries, the key is in conflict. If the base has no entries, the key
                // is merged like any other key.
                if !extra.is_empty() {
                    return None;
                }
                self.disputed.extend(had_entries.then(|| key.to_owned()));
                continue;
            };
            entries::drop_heading(&mut other, base.piece(key));
            let one = one_of(base.piece(key), ours.piece(key), theirs.piece(key));
            let lacking = entries::missing(&before, if one == Some(ours.piece(key)) { &own } else { &other });
            if one.is_some() && extra.is_empty() && lacking.is_empty() {
                continue;
            }
            let mut new = entries::missing(&other, &own);
            new.extend(extra.iter().copied().filter(|it| !own.iter().any(|own| own.value == it.value)));
            if !new.is_empty() {
                let Some(file) = entries::add(&self.file, key, &own, &new, self.order) else {
                    if !extra.is_empty() {
                        return None;
                    }
                    self.disputed.push(key.to_owned());
                    continue;
                };
                self.file = file;
                self.decided.push(format!("{key}: {} added", new.len()));
            }
            self.settled.push(key.to_owned());
        }
        Some(())
    }

    fn sets(&mut self) {
        let [base, ours, theirs] = self.all();
        for key in SETS {
            if one_of(base.piece(key), ours.piece(key), theirs.piece(key)).is_some() {
                continue;
            }
            let lists = [base, ours, theirs].map(|it| it.get(key));
            if let Some(file) = entries::set_of(&self.file, key, lists, base.piece(key), self.order) {
                self.file = file;
                self.settled.push(key.to_owned());
            }
        }
    }

    /// Joins the pieces. Those of OURS stay in their order. Each piece that only THEIRS has is inserted at the index that
    /// [`Self::place_of`] returns.
    fn assemble(mut self, lines: &dyn TextMerge) -> Option<MergedHeader> {
        let file = std::mem::take(&mut self.file);
        let own = Own::read(&file)?;
        let [base, _, theirs] = self.all();
        let mut out: Vec<(String, Vec<u8>)> = Vec::new();
        let mut is_clean = true;
        for piece in &own.pieces.entries {
            let text = self.piece(&piece.key, &file[piece.range.clone()], lines)?;
            is_clean &= text.is_clean;
            out.push((piece.key.clone(), text.bytes));
        }
        for (nth, piece) in theirs.pieces.entries.iter().enumerate() {
            if own.pieces.entries.iter().any(|it| it.key == piece.key) {
                continue;
            }
            let text = self.piece(&piece.key, b"", lines)?;
            is_clean &= text.is_clean;
            let place = self.place_of(&out, &theirs.pieces.entries[..nth], &piece.key);
            out.insert(place, (piece.key.clone(), text.bytes));
        }
        let rest = [(base, &base.pieces), (theirs, &theirs.pieces)];
        let [before, other] = rest.map(|(side, of)| &side.parts.bytes[of.rest.clone()]);
        let rest = merged_lines(before, &file[own.pieces.rest.clone()], other, lines)?;
        is_clean &= rest.is_clean;
        let inner: Vec<u8> = out.iter().flat_map(|(_, it)| it.iter().copied()).chain(rest.bytes).collect();
        let bytes = [&file[..own.yaml.start], &inner, &file[own.yaml.end..]].concat();
        if is_clean && (!self.is_meant(&bytes, &own.tree) || self.loses_comments(&bytes)) {
            return None;
        }
        Some(MergedHeader { bytes, is_clean, decided: self.decided })
    }

    /// Returns the index at which a key that only THEIRS has is inserted. This is after the nearest key that precedes it in
    /// `order`. If there is none, it is after the nearest key that precedes it in THEIRS, or else at the beginning.
    fn place_of(&self, out: &[(String, Vec<u8>)], before: &[Piece], key: &str) -> usize {
        let find = |name: &str| out.iter().position(|(it, _)| it == name);
        let rank = self.order.iter().position(|it| *it == key);
        let known = rank.and_then(|it| self.order[..it].iter().rev().find_map(|it| find(it)));
        let neighbour = || before.iter().rev().find_map(|it| find(&it.key));
        known.or_else(neighbour).map_or(0, |it| it + 1)
    }

    /// The text of one key in the result.
    fn piece(&self, key: &str, own: &[u8], lines: &dyn TextMerge) -> Option<TextMerged> {
        let [base, ours, theirs] = self.all();
        let clean = |bytes: &[u8]| Some(TextMerged { bytes: bytes.to_vec(), is_clean: true });
        if self.settled.iter().any(|it| it == key) {
            // The comments above the key are merged by lines.
            let texts = [base.piece(key), own, theirs.piece(key)].map(|it| it.split_at(comments_above(it)));
            let above = merged_lines(texts[0].0, texts[1].0, texts[2].0, lines)?;
            return Some(TextMerged { bytes: [&above.bytes, texts[1].1].concat(), ..above });
        }
        if self.disputed.iter().any(|it| it == key) {
            let merged = merged_lines(base.piece(key), own, theirs.piece(key), lines)?;
            return Some(if merged.is_clean { both(own, theirs.piece(key)) } else { merged });
        }
        match self.taken.get(key) {
            Some(Winner::Ours) => return clean(own),
            Some(Winner::Theirs) => return clean(theirs.piece(key)),
            None => {}
        }
        let (before, other) = (base.piece(key), theirs.piece(key));
        if let Some(one) = one_of(before, own, other) {
            return clean(one);
        }
        if let (Some(own_value), Some(other_value)) = (ours.get(key), theirs.get(key)) {
            // If both sides moved the step, OURS has the right id, because the file has the name that OURS gave it.
            if yaml::same(own_value, other_value) || key == "id" {
                return clean(own);
            }
            let time = |it: View<'_>| it.text().and_then(|it| it.parse::<Time>().ok());
            if CHANGED_AT.contains(&key)
                && let (Some(one), Some(two)) = (time(own_value), time(other_value))
            {
                return clean(if one >= two { own } else { other });
            }
        }
        merged_lines(before, own, other, lines)
    }

    /// Whether a comment that one side has added or changed is not in the merged front matter. A comment on the line of an
    /// item may go with the item.
    fn loses_comments(&self, bytes: &[u8]) -> bool {
        let [base, ours, theirs] = self.all().map(|it| comments(it.header()));
        let merged = comments(bytes);
        let count = |of: &Comments, comment: &String| of.get(comment).map_or(0, Vec::len);
        let text = String::from_utf8_lossy(bytes);
        let is_line = |line: &str, item: &str| {
            let rest = line.trim().strip_prefix(item).map(str::trim_start);
            rest.is_some_and(|it| it.is_empty() || it.starts_with('#'))
        };
        let is_kept = |before: &str| !before.starts_with("- ") || text.lines().any(|it| is_line(it, before));
        ours.iter().chain(&theirs).any(|(comment, befores)| {
            let is_new = befores.len() > count(&base, comment);
            is_new && befores.len() > count(&merged, comment) && befores.iter().any(|it| is_kept(it))
        })
    }

    /// Checks the merged front matter. Each key must have the value of THEIRS or the edited value of OURS; only a map, a
    /// list or a text can have parts of both. Every entry that was merged into the edited OURS must be there.
    fn is_meant(&self, bytes: &[u8], edited: &Tree) -> bool {
        let Some(tree) = Tree::of_file(bytes) else { return false };
        let [_, ours, theirs] = self.all();
        let is_alike = |a: Option<View<'_>>, b: Option<View<'_>>| match (a, b) {
            (Some(a), Some(b)) => yaml::same(a, b),
            (None, None) => true,
            _ => false,
        };
        let known = ours.pieces.entries.iter().chain(&theirs.pieces.entries).map(|it| it.key.as_str());
        known.chain(LOGS).all(|key| {
            let now = tree.root().get(key);
            let is_side = is_alike(now, edited.root().get(key)) || is_alike(now, theirs.get(key));
            is_side || now.is_some_and(|it| matches!(it.kind(), Kind::Map | Kind::List | Kind::Text))
        }) && LOGS.iter().all(|key| {
            let Some(now) = entries::read(tree.root().get(key)) else { return true };
            let edited = entries::read(edited.root().get(key)).unwrap_or_default();
            !self.settled.iter().any(|it| it == key) || entries::missing(&edited, &now).is_empty()
        })
    }
}

/// The edited front matter of OURS, read again.
struct Own {
    tree: Tree,
    pieces: Pieces,
    yaml: std::ops::Range<usize>,
}

impl Own {
    fn read(file: &[u8]) -> Option<Self> {
        let parts = front_matter::split(file);
        let Header::Present { yaml, .. } = parts.header.clone() else { return None };
        let tree = Tree::of_file(file)?;
        let pieces = header_edit::pieces(&parts, &tree)?;
        Some(Self { tree, pieces, yaml })
    }
}

/// Comments, each with the text before it on its line, for each place of the comment.
type Comments = BTreeMap<String, Vec<String>>;

fn comments(header: &[u8]) -> Comments {
    let parts = front_matter::split(header);
    let yaml = parts.yaml().map(String::from_utf8_lossy).unwrap_or_default();
    let mut found = Comments::new();
    for at in yaml::comments(&yaml) {
        let line = yaml[..at.start].rfind('\n').map_or(0, |it| it + 1);
        let before = yaml[line..at.start].trim().to_owned();
        found.entry(yaml[at].trim_end().to_owned()).or_default().push(before);
    }
    found
}

/// The length of the comments and blank lines above a key.
fn comments_above(piece: &[u8]) -> usize {
    let is_above = |line: &&[u8]| {
        let text = line.trim_ascii_start();
        text.is_empty() || text.starts_with(b"#")
    };
    piece.split_inclusive(|it| *it == b'\n').take_while(is_above).map(<[u8]>::len).sum()
}

fn merged_lines(base: &[u8], ours: &[u8], theirs: &[u8], lines: &dyn TextMerge) -> Option<TextMerged> {
    match one_of(base, ours, theirs) {
        Some(one) => Some(TextMerged { bytes: one.to_vec(), is_clean: true }),
        None => lines.merge(base, ours, theirs),
    }
}

fn claim_of(value: Option<View<'_>>) -> Option<WrittenClaim> {
    let part = |key: &str| Some(value?.get(key)?.text()?.to_owned());
    Some(WrittenClaim { id: part("id")?, by: part("by"), at: part("at") })
}

/// An entry with these keys and texts in this order, without the keys that have no text.
fn new_entry<'a>(parts: impl Iterator<Item = (&'static str, Option<&'a str>)>) -> Option<Entry> {
    let (mut value, mut new) = (serde_json::Map::new(), Vec::new());
    for (key, text) in parts {
        let Some(text) = text else { continue };
        value.insert(key.to_owned(), text.into());
        let is_time = key == "at" && text.parse::<Time>().is_ok();
        let value = if is_time { NewValue::Word(text.to_owned()) } else { NewValue::Text(text.to_owned()) };
        new.push((key.to_owned(), value));
    }
    (!new.is_empty()).then(|| Entry {
        value: value.into(),
        new: NewValue::Map(new),
        written: Written::default(),
    })
}
