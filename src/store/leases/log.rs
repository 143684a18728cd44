//! The log of ended claims, split into files by the first digits of the step's key. There is one line for each ended claim.
//! If the step or its plan was renamed, working trees may know the step under several ids; then there can be a line for each
//! of these ids. If the repository has several working trees, a step that was closed without a claim also gets a line.
//!
//! To look up a few steps, only the files of their keys are read, and only the lines about these steps are parsed: a
//! line begins with the key and the step, and the rest is parsed only if these match.
//!
//! # When a line is dropped
//! If the step was left open, its line is needed in case the claim is restored or a late result arrives. The line is
//! dropped a week after the lease has ended or, if another claim took the step over, a week after the old claim was made.
//!
//! If the step was closed, its line also prevents workers on other branches from repeating the step. The line is dropped
//! when its branch is deleted. It is also dropped after a week, once the step is closed or missing in every working tree
//! of the repository. If something cannot be read, the line stays.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::former::Same;
use super::locked::Locked;
use super::{Leases, Place};
use crate::disk::{self, DiskError, LockedRecords, Process};
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::Step;
use crate::plan::read;
use crate::plan::time::Time;

/// The file in which earlier releases had the whole log. It is split when the log is next used under the lock.
pub(crate) const UNSPLIT: &str = "closed";

/// Each time a file of the log has grown by this many bytes, lines that are no longer needed are removed.
const SHORTEN: u64 = 16 << 10;

/// For how long an ended claim is remembered after the end of its lease, in seconds: a week. A late result that arrives
/// during this time is still saved.
const REMEMBERED: i64 = 7 * 24 * 60 * 60;

pub(crate) fn is_log(name: &str) -> bool {
    name.strip_prefix(UNSPLIT).is_some_and(|it| it.is_empty() || it.starts_with('-'))
}

/// Whether, at `now`, a claim whose lease ended at `until` can no longer be restored.
pub(super) fn is_past(now: Time, until: Time) -> bool {
    now >= until.plus_seconds(REMEMBERED)
}

/// The log file with the lines of a step's key.
pub(crate) fn log_of(key: &str) -> String {
    format!("{UNSPLIT}-{}", key.get(..2).unwrap_or("00"))
}

/// A line of the log. [`head`] relies on the order of the first two fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Closed {
    pub(super) key: String,
    pub(super) step: String,
    pub(super) claim: String,
    pub(super) by: Option<String>,
    /// When the claim was made or, if no claim was recorded, when the step was closed.
    #[serde(default)]
    pub(super) at: Option<Time>,
    /// The end of the claim's lease; `None` if an undo or a checkout must not restore the claim.
    #[serde(default)]
    pub(super) until: Option<Time>,
    /// The length of the lease in seconds; none if there was no record, and in lines of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<i64>,
    #[serde(default)]
    pub(super) process: Option<Process>,
    /// Whether the step was left open, reopened or taken over. If so, the line does not keep workers on other branches from
    /// doing the step.
    #[serde(default)]
    pub(super) is_open: bool,
    /// The step's file, relative to the plans directory; none in lines of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// When the closed step was created. A step with another creation time is a new step with the same number, for example
    /// in a new plan with the name of a removed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) created_at: Option<Time>,
    /// Identifies the step, if it has received another number or was removed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) same: Option<Same>,
    /// The keys of the step's other numbers; the log has a line for this claim under each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) also: Vec<String>,
    #[serde(flatten)]
    pub(super) place: Place,
}

/// Finds the key and the step of a line without parsing it; `None` if the line does not begin with them, or if the step
/// contains an escape sequence.
fn head(line: &[u8]) -> Option<(&str, &str)> {
    let line = line.strip_prefix(br#"{"key":""#)?;
    let (key, line) = line.split_at_checked(line.iter().position(|it| *it == b'"')?)?;
    let line = line.strip_prefix(br#"","step":""#)?;
    let step = &line[..line.iter().position(|it| *it == b'"')?];
    if step.contains(&b'\\') {
        return None;
    }
    Some((std::str::from_utf8(key).ok()?, std::str::from_utf8(step).ok()?))
}

/// Parses the lines with a key and a step for which `may_be` returns true. A line in which [`head`] does not find them is
/// always parsed.
pub(super) fn lines_of<'a>(
    bytes: &'a [u8],
    mut may_be: impl FnMut(&str, &str) -> bool + 'a,
) -> impl Iterator<Item = Closed> + 'a {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|it| !it.is_empty());
    let wanted = lines.filter(move |it| head(it).is_none_or(|(key, step)| may_be(key, step)));
    wanted.filter_map(|it| serde_json::from_slice(it).ok())
}

fn line_of(closed: &Closed) -> Vec<u8> {
    let mut line = serde_json::to_vec(closed).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Results of branch and working tree checks, cached while lines are examined.
#[derive(Default)]
struct Seen {
    branches: HashMap<(Option<String>, PathBuf), bool>,
    worktrees: Option<Option<Vec<PathBuf>>>,
}

impl Leases<'_> {
    /// Whether this machine has a record of this claim, or a log line which says that the claim was on this step and can be
    /// restored (`until` is set).
    pub(crate) fn knows(&self, step: &StepId, claim: &str) -> bool {
        if self.find(claim).is_some() {
            return true;
        }
        let key = self.key(step);
        [&self.shared, &self.own].into_iter().flatten().any(|records| {
            [UNSPLIT.to_owned(), log_of(&key)].iter().any(|name| {
                let bytes = records.read_log(name).ok().flatten().unwrap_or_default();
                let mut lines = lines_of(&bytes, |it, _| it == key);
                lines.any(|it| it.claim == claim && it.until.is_some())
            })
        })
    }

    fn is_needed(&self, closed: &Closed, seen: &mut Seen) -> bool {
        let end = closed.until.or(closed.at);
        let is_recent = end.is_some_and(|it| !is_past(self.context.now, it));
        if closed.is_open {
            return is_recent;
        }
        let branch = (closed.place.branch.clone(), closed.place.worktree.clone());
        let is_there = seen.branches.entry(branch);
        let is_there = *is_there.or_insert_with_key(|(branch, root)| self.is_there(branch.as_deref(), root));
        is_there && (is_recent || !self.is_closed_everywhere(closed, seen))
    }

    /// Whether the step is closed or missing in every working tree. If that cannot be determined, the step counts as open.
    fn is_closed_everywhere(&self, closed: &Closed, seen: &mut Seen) -> bool {
        let known = || self.worktree.as_ref().and_then(|it| self.context.plans.worktrees(it));
        let Some(worktrees) = seen.worktrees.get_or_insert_with(known) else { return false };
        let Some((file, id)) = closed.file.as_ref().zip(read_step_id(&closed.step)) else { return false };
        worktrees.iter().all(|root| {
            let path = root.join(&closed.place.plans).join(file);
            match disk::read_file(self.context.plans.disk(), &path) {
                Ok(bytes) => {
                    let content = read::Content::new(bytes, self.context.now);
                    read::read_step_alone(&id, file, content, &self.context.config.words).is_closed()
                }
                Err(error) => matches!(error, DiskError::NotFound { .. }),
            }
        })
    }

    /// Whether this is the working tree and the branch of the context.
    pub(super) fn is_this_place(&self, place: &Place) -> bool {
        place.branch.is_some() && *place == self.place()
    }

    /// Whether the closing of `step`, which is open now, was discarded, for example by `git reset --hard`. `closed` is where
    /// the step was closed. If that is this working tree and branch, the closing was discarded. `git pull --autostash`
    /// removes changes and restores them some seconds later, so the file must also have been unchanged for a minute.
    pub(super) fn is_dropped(&self, closed: &Place, step: &Step) -> bool {
        let is_here = self.is_this_place(closed);
        self.is_uncacheable.fetch_or(is_here, Ordering::Relaxed);
        is_here && step.modified.is_none_or(|it| self.context.now.seconds_since(it) >= 60)
    }
}

impl Locked<'_> {
    /// Adds a line. Whenever the file has grown by another [`SHORTEN`] bytes, also removes lines that are no longer
    /// needed.
    pub(super) fn log(&self, closed: &Closed) {
        let Some(records) = self.log_records() else { return };
        let (name, line) = (log_of(&closed.key), line_of(closed));
        let Ok(before) = records.append(&name, &line) else { return };
        if before / SHORTEN != (before + line.len() as u64) / SHORTEN {
            let mut seen = Seen::default();
            self.rewrite(&name, |it| Some(it).filter(|it| self.leases.is_needed(it, &mut seen)));
        }
    }

    /// Changes the step's log file, so that cached queues of other processes become invalid.
    pub(super) fn touch_log(&self, key: &str) {
        if let Some(records) = self.log_records() {
            records.append(&log_of(key), b"\n").ok();
        }
    }

    /// Changes the lines with this key. A line for which `change` returns `None` is dropped.
    pub(super) fn relog(&self, key: &str, mut change: impl FnMut(Closed) -> Option<Closed>) {
        let Some(records) = self.log_records() else { return };
        let name = log_of(key);
        let bytes = records.records().read_log(&name).ok().flatten().unwrap_or_default();
        // Usually there is nothing to rewrite: most claims are the first of their step.
        if lines_of(&bytes, |it, _| it == key).next().is_some() {
            self.rewrite(&name, |it| if it.key == key { change(it) } else { Some(it) });
        }
    }

    /// Like [`Self::relog`]; if a line is dropped or its `is_open` changes, also changes the claim's lines under the
    /// step's other numbers.
    pub(super) fn relog_all(&self, key: &str, mut change: impl FnMut(Closed) -> Option<Closed>) {
        let mut others: Vec<(String, String)> = Vec::new();
        self.relog(key, |it| {
            let (claim, is_open) = (it.claim.clone(), it.is_open);
            let also: Vec<_> = it.also.iter().map(|it| (it.clone(), claim.clone())).collect();
            let changed = change(it);
            if changed.as_ref().is_none_or(|it| it.is_open != is_open) {
                others.extend(also);
            }
            changed
        });
        for (key, claim) in others {
            self.relog(&key, |it| if it.claim == claim { change(it) } else { Some(it) });
        }
    }

    pub(super) fn lines(&self, key: &str) -> Vec<Closed> {
        let Some(records) = self.log_records() else { return Vec::new() };
        let bytes = records.records().read_log(&log_of(key)).ok().flatten().unwrap_or_default();
        lines_of(&bytes, |it, _| it == key).filter(|it| it.key == key).collect()
    }

    fn rewrite(&self, name: &str, change: impl FnMut(Closed) -> Option<Closed>) {
        let Some(records) = &self.records else { return };
        let Ok(Some(bytes)) = records.records().read_log(name) else { return };
        let lines = lines_of(&bytes, |_, _| true).filter_map(change);
        let lines: Vec<_> = lines.flat_map(|it| line_of(&it)).collect();
        if lines != bytes {
            records.put(name, &lines).ok();
        }
    }

    /// Returns the records. Splits the log first if it is still in one file.
    fn log_records(&self) -> Option<&LockedRecords> {
        let records = self.records.as_ref()?;
        if records.records().has(UNSPLIT) {
            split(records);
        }
        Some(records)
    }
}

/// Splits the log of earlier releases. If the split is interrupted, some lines exist twice. This does no harm.
fn split(records: &LockedRecords) {
    let Ok(Some(bytes)) = records.records().read_log(UNSPLIT) else { return };
    let mut files: HashMap<String, Vec<u8>> = HashMap::new();
    for closed in lines_of(&bytes, |_, _| true) {
        files.entry(log_of(&closed.key)).or_default().extend(line_of(&closed));
    }
    if files.iter().all(|(name, lines)| records.append(name, lines).is_ok()) {
        records.remove(UNSPLIT).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::context::Context;
    use crate::disk::model::Machine;
    use crate::store::leases::Sharing;
    use crate::store::load::LoadQuery;

    const DAY: i64 = 24 * 60 * 60;

    const OPEN: Option<&str> = Some("---\nstatus: pending\n---\n# One\n");
    const DONE: Option<&str> = Some("---\nstatus: completed\n---\n# One\n");

    /// A repository at `/` on `main`, and a second working tree of it at `/other`. `here` and `other` are the contents of
    /// the step's file in the first and in the second working tree; `None` if the file is missing.
    fn machine(here: Option<&str>, other: Option<&str>, more: &[(&str, &str)]) -> Machine {
        let mut files = vec![
            ("/.git/HEAD", "ref: refs/heads/main\n"),
            ("/.git/refs/heads/main", "1\n"),
            ("/.git/objects/info", ""),
            ("/.git/worktrees/o/gitdir", "/other/.git\n"),
            ("/other/.git", "gitdir: /.git/worktrees/o\n"),
            ("/plans/p/plan.md", "# P\n"),
        ];
        files.extend(here.map(|it| ("/plans/p/step-1.md", it)));
        files.extend(other.map(|it| ("/other/plans/p/step-1.md", it)));
        files.extend(more);
        Machine::with(&files)
    }

    /// The line of a claim that ended `ago` seconds ago on a branch.
    fn ended(leases: &Leases<'_>, ago: i64, branch: &str) -> Closed {
        let until = leases.context.now.plus_seconds(-ago);
        Closed {
            key: leases.key(&read_step_id("p:1").unwrap()),
            step: "p:1".to_owned(),
            claim: "g0000000".to_owned(),
            by: None,
            at: Some(until),
            until: Some(until),
            lease: None,
            process: None,
            is_open: false,
            file: Some("p/step-1.md".to_owned()),
            created_at: None,
            same: None,
            also: Vec::new(),
            place: Place { branch: Some(format!("refs/heads/{branch}")), ..leases.place() },
        }
    }

    #[test]
    fn a_line_is_needed_until_its_branch_is_gone_or_every_working_tree_shows_the_step_closed() {
        let long_ago = REMEMBERED + DAY;
        let table = [
            (DONE, DONE, "main", DAY, true),
            (DONE, DONE, "main", long_ago, false),
            (DONE, OPEN, "main", long_ago, true),
            (OPEN, DONE, "main", long_ago, true),
            (DONE, None, "main", long_ago, false),
            (None, None, "main", long_ago, false),
            (OPEN, None, "main", long_ago, true),
            (OPEN, OPEN, "gone", DAY, false),
            (DONE, OPEN, "gone", long_ago, false),
        ];
        for (here, other, branch, ago, is_needed) in table {
            let machine = machine(here, other, &[]);
            let context = Context::on_model(&machine);
            let leases = Leases::of(&context);
            let closed = ended(&leases, ago, branch);
            let case = format!("{here:?} {other:?} {branch} {ago}");
            assert_eq!(leases.is_needed(&closed, &mut Seen::default()), is_needed, "{case}");
            let open = Closed { is_open: true, ..closed };
            assert_eq!(leases.is_needed(&open, &mut Seen::default()), ago == DAY, "{case}");
        }
    }

    #[test]
    fn log_lines_stay_if_a_working_tree_cannot_be_read() {
        let locked = [("/.git/worktrees/x/gitdir", "/away/.git\n"), ("/.git/worktrees/x/locked", "")];
        let removed = [("/.git/worktrees/x/gitdir", "/away/.git\n")];
        let unnamed = [("/.git/worktrees/x/HEAD", "")];
        let table: [(&[(&str, &str)], bool); 4] =
            [(&[], false), (&removed, false), (&locked, true), (&unnamed, true)];
        for (more, is_needed) in table {
            let machine = machine(DONE, DONE, more);
            let context = Context::on_model(&machine);
            let leases = Leases::of(&context);
            let closed = ended(&leases, REMEMBERED + DAY, "main");
            assert_eq!(leases.is_needed(&closed, &mut Seen::default()), is_needed, "{more:?}");
            // Lines of earlier releases do not contain the path of the step's file.
            let old = Closed { file: None, ..closed };
            assert!(leases.is_needed(&old, &mut Seen::default()), "{more:?}");
        }
    }

    #[test]
    fn a_growing_log_file_loses_only_lines_that_are_not_needed() {
        let machine = machine(DONE, DONE, &[]);
        let context = Context::on_model(&machine);
        let locked = Locked::take(&context, Sharing::Waived).unwrap();
        let needed = Closed { claim: "needed00".to_owned(), ..ended(&locked.leases, DAY, "main") };
        let old = ended(&locked.leases, REMEMBERED + DAY, "main");
        locked.log(&needed);
        let name = log_of(&needed.key);
        let read = || locked.records.as_ref().unwrap().records().read_log(&name).unwrap().unwrap();
        for _ in 0..500 {
            locked.log(&old);
            assert!(read().len() < SHORTEN as usize + line_of(&old).len());
        }
        assert_eq!(lines_of(&read(), |_, _| true).filter(|it| it.claim == "needed00").count(), 1);
    }

    #[test]
    fn only_the_lines_of_the_step_are_parsed_in_a_long_log() {
        let machine = machine(OPEN, OPEN, &[]);
        let context = Context::on_model(&machine);
        let leases = Leases::of(&context);
        let plans = LoadQuery::all().without_claims().load(&context).unwrap().plans;
        let mut files: HashMap<String, Vec<u8>> = HashMap::new();
        let id_of = |nth: u32| read_step_id(&if nth == 0 { "p:1".to_owned() } else { format!("q:{nth}") });
        for nth in 0..100_000 {
            let step = id_of(nth).unwrap();
            let closed =
                Closed { key: leases.key(&step), step: step.to_string(), ..ended(&leases, DAY, "main") };
            files.entry(log_of(&closed.key)).or_default().extend(line_of(&closed));
        }
        let records = leases.shared.as_ref().unwrap();
        let read: Vec<_> =
            leases.about(&plans, records).into_iter().filter_map(|it| files.get(&it)).collect();
        assert_eq!(read.len(), 1);
        // Less than a hundredth of all bytes is read, and only one of the lines in these bytes is parsed.
        let all: usize = files.values().map(Vec::len).sum();
        assert!(read[0].len() * 100 < all, "{} of {all}", read[0].len());
        let parsed = lines_of(read[0], |_, step| Leases::may_be_closed_elsewhere(&plans, step));
        assert_eq!(parsed.count(), 1);
        // Loading all plans parses only this one line, too.
        let looked = files
            .values()
            .flat_map(|it| lines_of(it, |_, step| Leases::may_be_closed_elsewhere(&plans, step)));
        assert_eq!(looked.count(), 1);
    }

    #[test]
    fn the_log_of_earlier_releases_is_read_and_split() {
        let machine = machine(OPEN, OPEN, &[]);
        let context = Context::on_model(&machine);
        let locked = Locked::take(&context, Sharing::Waived).unwrap();
        let ended = ended(&locked.leases, DAY, "main");
        let place = Place { worktree: PathBuf::from("/other"), ..ended.place.clone() };
        let closed = Closed { file: None, place, ..ended };
        let records = locked.records.as_ref().unwrap();
        records.put(UNSPLIT, &[b"\n".as_slice(), &line_of(&closed), b"{half"].concat()).unwrap();
        let id = read_step_id("p:1").unwrap();
        let is_held = || {
            Leases::of(&context)
                .annotate(LoadQuery::all().without_claims().load(&context).unwrap().plans)
                .claims()
                .has_record(&id)
        };
        assert!(is_held());
        locked.touch_log(&closed.key);
        assert_eq!(records.records().names(), [log_of(&closed.key)]);
        assert!(is_held());
        locked.relog(&closed.key, |_| None);
        assert!(!is_held());
    }

    #[test]
    fn the_key_and_the_step_of_a_line_are_found_without_parsing() {
        let machine = machine(OPEN, OPEN, &[]);
        let context = Context::on_model(&machine);
        let closed = ended(&Leases::of(&context), DAY, "main");
        assert_eq!(head(&line_of(&closed)), Some((closed.key.as_str(), "p:1")));
        let quoted = Closed { step: "a\"b:1".to_owned(), ..closed };
        assert_eq!(head(&line_of(&quoted)), None);
        assert_eq!(lines_of(&line_of(&quoted), |_, _| false).count(), 1);
        assert_eq!(head(b"{\"step\":\"p:1\"}"), None);
        assert_eq!(head(b"{\"key\":\"0"), None);
    }
}
