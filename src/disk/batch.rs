//! Several file operations as one unit.
//!
//! The journal is on disk before the first operation. (A state directory that is not verified as our own gets no journal.)
//! After a crash the next holder of the lock finishes the batch. It undoes the batch instead if an earlier attempt to undo
//! it failed, or if finishing fails, for example because another program changed a file. The progress of each operation is
//! derived from the files and from the versions in `displaced/`, so it is not recorded while the batch runs. A name that is
//! freed and reused in one batch would make the progress ambiguous; such a batch is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::change::{Put, Raced, SaveCheck};
use super::displaced::{KeptWhy, dir, keep};
use super::error::DiskError;
use super::file_system::Open;
use super::fs_ops::{Safe, is, is_one_file, read_own, rename_new, write_new};
use super::half_saved::Known;
use super::journal::{BACK, Direction, FileOp, ID_STEP, JOURNAL, Journal, Link, Outcome, Recovered};
use super::names::{Content, NamedPath, Origin, VersionName, checked};
use super::plans_dir::Snapshot;
use super::runtime::Trust;
use super::undo::Record;
use super::write_lock::{Locked, Version, Withdrawn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    /// A file has both its old and its new name.
    Half,
    Done,
    /// A file or directory has its new name, and another program has created one with the old name.
    Doubled,
    /// The operation was not done, and its precondition no longer holds.
    Impossible,
}

/// Why a batch was not carried out, and how many of its operations were done.
struct Stopped {
    n_done: usize,
    error: DiskError,
}

/// Whether a batch runs for the first time, or again after a crash. In the second case, operations may already be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    First,
    Again,
}

impl Locked<'_> {
    /// Carries out all operations or none.
    ///
    /// They run in order and form one unit for `undo`. If a file is not as its operation expects, everything is
    /// restored and the error is `file-changed`, `plan-exists` or `not-found`. After a crash the next holder of the
    /// lock finishes or undoes the batch.
    pub fn batch(&mut self, verb: &str, at: &str, ops: Vec<FileOp>) -> Result<(), DiskError> {
        self.batch_emptying(verb, at, ops, Vec::new())
    }

    /// Like [`Self::batch`]. At the end, removes the directories of `emptied` that are empty, in the given order. The
    /// caller must list the deepest directories first.
    pub fn batch_emptying(
        &mut self,
        verb: &str,
        at: &str,
        ops: Vec<FileOp>,
        emptied: Vec<PathBuf>,
    ) -> Result<(), DiskError> {
        self.run((verb, at), ops, emptied, None)
    }

    /// Carries out a batch and records it for undo. If the batch is itself an undo, `undoes` is the unit of the undo
    /// log that it undoes.
    pub(super) fn run(
        &mut self,
        (verb, at): (&str, &str),
        ops: Vec<FileOp>,
        emptied: Vec<PathBuf>,
        undoes: Option<u64>,
    ) -> Result<(), DiskError> {
        let (ops, links) = self.real_ops(ops)?;
        for name in ops.iter().flat_map(|op| <[_; 2]>::from(op.names())).flatten() {
            self.check_finished(name)?;
        }
        self.precheck(&ops, &links)?;
        let (verb, at, by, made) =
            (verb.to_string(), at.to_string(), self.by.clone(), self.missing_dirs(&ops));
        let (id, direction) = (self.fresh_id(), Direction::Forward);
        let (due, unit) = (self.due(), self.unit.as_ref().map(|it| it.id).filter(|_| self.is_keyed()));
        let sources = self.sources(&ops);
        let journal =
            Journal { id, verb, at, ops, sources, links, made, emptied, by, undoes, unit, due, direction };
        self.write_journal(&journal)?;
        match self.forward(&journal, Pass::First) {
            Ok(records) => {
                // The undo log is written before the journal is removed. After a crash between the two, the next
                // holder of the lock finds the journal, adds the missing records to the log, and removes the journal.
                self.note(&journal, records, Pass::First);
                // An error is ignored. If the journal remains, the next holder of the lock finds all operations done,
                // stores the answer for `--key`, if any, and removes the journal.
                self.record_key(journal.due.as_ref()).and_then(|()| self.remove_journal()).ok();
                Ok(())
            }
            Err(stopped) => self.give_up(&journal, stopped),
        }
    }

    /// Records a finished batch for undo as one unit. Records that are already in the log are not repeated.
    fn note(&mut self, journal: &Journal, records: Vec<Record>, pass: Pass) {
        let known = if pass == Pass::Again { self.plans.undo_log() } else { Vec::new() };
        let made = journal.made.iter().map(|it| Record::created_dir(it));
        let records = match journal.undoes {
            Some(unit) => vec![Record::undone(unit, &journal.by)],
            None => made.chain(records).map(|it| it.of_batch(journal)).collect(),
        };
        if journal.unit.is_some() {
            // Other batches may have records of the same unit, so records are compared instead of counted.
            self.log(&records.into_iter().filter(|it| !known.contains(it)).collect::<Vec<_>>());
        } else {
            let n_known = known.iter().filter(|it| it.is_of_unit_of(&records)).count();
            self.log(&records[n_known.min(records.len())..]);
        }
        self.end_unit();
    }

    /// The directories that the operations will create, parents first.
    fn missing_dirs(&self, ops: &[FileOp]) -> Vec<PathBuf> {
        let root = &self.plans.root;
        let is_missing =
            |it: &&Path| self.plans.disk.lstat(&root.join(it)).is_err_and(|error| is(&error, Errno::NOENT));
        let above = |path: &Path| {
            let above = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
            above.take_while(is_missing).map(Path::to_path_buf).collect::<Vec<_>>()
        };
        let all: BTreeSet<_> = ops.iter().filter_map(|it| it.names().1).flat_map(above).collect();
        all.into_iter().collect()
    }

    fn give_up<T>(&mut self, journal: &Journal, stopped: Stopped) -> Result<T, DiskError> {
        let Stopped { n_done, error } = stopped;
        if self.back(journal, Some(n_done)).and_then(|()| self.remove_journal()).is_ok() {
            return Err(error);
        }
        let path = self.journal_path();
        // Without this mark, the next holder of the lock would finish the batch that is reported as failed here.
        let marked = self.plans.disk.open(&path, Open::Append).and_then(|file| {
            file.write(BACK)?;
            file.sync()
        });
        Err(DiskError::Unfinished {
            path: error.path().to_path_buf(),
            goes_back: marked.is_ok(),
            error: Box::new(error),
        })
    }

    pub(super) fn recover(&mut self) -> Result<(), DiskError> {
        if self.trust != Trust::Own {
            return Ok(());
        }
        let path = self.journal_path();
        let disk = &*self.plans.disk;
        match disk.lstat(&path) {
            Err(error) if is(&error, Errno::NOENT) => return Ok(()),
            other => other.map_err(|error| DiskError::reading(&path, error))?,
        };
        let bytes = read_own(disk, &path, u64::MAX).map_err(|error| DiskError::reading(&path, error))?;
        let Some(journal) = bytes.as_deref().and_then(Journal::decode) else {
            // The journal is truncated, so nothing was begun.
            return self.remove_journal();
        };
        let finished = match journal.direction {
            Direction::Forward => self.forward(&journal, Pass::Again).ok(),
            Direction::Back => None,
        };
        let outcome = if finished.is_some() { Outcome::Finished } else { Outcome::TakenBack };
        if finished.is_none() {
            self.back(&journal, None)?;
        }
        if let Some(records) = finished {
            self.note(&journal, records, Pass::Again);
            self.record_key(journal.due.as_ref())?;
        }
        self.remove_journal()?;
        self.recovered = Some(Recovered { verb: journal.verb, at: journal.at, outcome });
        Ok(())
    }

    fn journal_path(&self) -> PathBuf {
        self.plans.known_state_dir().join(JOURNAL)
    }

    fn write_journal(&self, journal: &Journal) -> Result<(), DiskError> {
        if self.trust != Trust::Own {
            // In a state directory that is not verified as our own, a journal could not be distinguished from a
            // foreign one. If an operation fails in this process, the batch is still undone.
            return Ok(());
        }
        let path = self.journal_path();
        let runtime = self.plans.known_state_dir();
        let disk = &*self.plans.disk;
        let written = write_new(disk, &path, 0o600, &journal.encode(), Safe::Yes).and_then(|()| {
            disk.sync_dir(&runtime).inspect_err(|_| {
                disk.remove(&path).ok();
            })
        });
        written.map_err(|error| DiskError::writing(&path, error))
    }

    fn remove_journal(&self) -> Result<(), DiskError> {
        let path = self.journal_path();
        let removed = match self.plans.disk.remove(&path) {
            Err(error) if is(&error, Errno::NOENT) => return Ok(()),
            other => other.and_then(|()| self.plans.disk.sync_dir(&self.plans.known_state_dir())),
        };
        removed.map_err(|error| DiskError::writing(&path, error))
    }

    /// Resolves symbolic links in the paths of the operations. The last name of a path is resolved only for a
    /// [`FileOp::Change`]. Also returns the requested path of each [`FileOp::Change`] whose path contained a link.
    fn real_ops(&self, ops: Vec<FileOp>) -> Result<(Vec<FileOp>, Vec<Link>), DiskError> {
        let (mut real, mut links) = (Vec::new(), Vec::new());
        for (n, op) in ops.into_iter().enumerate() {
            let asked = match &op {
                FileOp::Change { path, .. } => Some(path.clone()),
                _ => None,
            };
            let op = self.real_op(op)?;
            let asked = asked.filter(|it| op.names().0 != Some(it));
            links.extend(asked.map(|asked| Link { n: n as u64, asked }));
            real.push(op);
        }
        Ok((real, links))
    }

    fn real_op(&self, op: FileOp) -> Result<FileOp, DiskError> {
        let place = |path: PathBuf| {
            checked(&path)?;
            self.real_place(&path)
        };
        let file = |path: PathBuf| {
            checked(&path)?;
            match self.plans.resolve(&path) {
                // An earlier operation of the batch may create the file.
                Err(DiskError::NotFound { .. }) => self.real_place(&path),
                other => other,
            }
        };
        Ok(match op {
            FileOp::Create { path, bytes } => FileOp::Create { path: place(path)?, bytes },
            FileOp::Change { path, before, after } => FileOp::Change { path: file(path)?, before, after },
            FileOp::Rename { from, to } => FileOp::Rename { from: place(from)?, to: place(to)? },
            FileOp::Remove { path, to } => FileOp::Remove { path: place(path)?, to: place(to)? },
            FileOp::Discard { path, before } => FileOp::Discard { path: place(path)?, before },
        })
    }

    /// Checks the batch before it begins, so that most errors are found before anything is changed.
    fn precheck(&self, ops: &[FileOp], links: &[Link]) -> Result<(), DiskError> {
        let mut freed: Vec<&Path> = Vec::new();
        let mut made: Vec<&Path> = Vec::new();
        let mut changed: Vec<&PathBuf> = Vec::new();
        for (n, op) in ops.iter().enumerate() {
            let (needed, taken) = op.names();
            if let Some(path) = taken {
                if freed.iter().any(|it| path.starts_with(it)) {
                    return Err(DiskError::BadPath { path: path.to_path_buf() });
                }
                if self.plans.disk.lstat(&self.plans.root.join(path)).is_ok() {
                    return Err(DiskError::Exists { path: self.plans.root.join(path) });
                }
            }
            if let Some(path) = needed
                && !made.iter().any(|it| path.starts_with(it))
                && self.progress_of(op) == Progress::Impossible
            {
                return Err(self.impossible(op));
            }
            self.refuse_mounted(op)?;
            self.refuse_broken_link(op)?;
            if let Some(path) = needed {
                let asked = links.iter().find(|it| it.n == n as u64).map_or(path, |it| &it.asked);
                self.refuse_cut_short(path, asked)?;
            }
            made.extend(taken);
            match op {
                FileOp::Change { path, .. } if changed.contains(&path) => {
                    return Err(DiskError::BadPath { path: path.clone() });
                }
                FileOp::Change { path, .. } => changed.push(path),
                _ => freed.extend(needed),
            }
        }
        Ok(())
    }

    fn forward(&mut self, journal: &Journal, pass: Pass) -> Result<Vec<Record>, Stopped> {
        let mut records = Vec::new();
        for n in 0..journal.ops.len() {
            let record = self.forward_op(journal, n, pass);
            records.push(record.map_err(|error| Stopped { n_done: n, error })?);
        }
        let ended = self.check_old_names(&journal.ops).and_then(|()| self.sync_all(&journal.ops));
        ended.map_err(|error| Stopped { n_done: journal.ops.len(), error })?;
        self.remove_empty(journal.emptied.iter());
        Ok(records)
    }

    fn forward_op(&mut self, journal: &Journal, n: usize, pass: Pass) -> Result<Record, DiskError> {
        let op = &journal.ops[n];
        let version = self.version(journal.id, n, op);
        let progress = match pass {
            Pass::First => Progress::Open,
            Pass::Again => self.progress_after_crash(journal, n, &version),
        };
        match progress {
            Progress::Impossible | Progress::Doubled => Err(self.impossible(op)),
            Progress::Done => {
                self.check_link(journal, n, &version)?;
                Ok(Self::record_of(journal, n, &version))
            }
            Progress::Open | Progress::Half => {
                let version = self.carry_out(journal, n, version)?;
                Ok(Self::record_of(journal, n, &version))
            }
        }
    }

    fn record_of(journal: &Journal, n: usize, version: &Version) -> Record {
        let record = Record::of(&journal.ops[n], version);
        match journal.asked(n) {
            Some(asked) => record.asked_as(asked),
            None => record,
        }
    }

    /// Refuses a change that a killed process made through a symbolic link, if another program has replaced the link.
    ///
    /// If the change is in the undo log, it was complete before the link was replaced. Such a change is not refused.
    fn check_link(&self, journal: &Journal, n: usize, version: &Version) -> Result<(), DiskError> {
        let (Some(asked), Some(real)) = (journal.asked(n), journal.ops[n].names().0) else { return Ok(()) };
        let path = self.plans.root.join(asked);
        // If the link is missing, a later operation may have renamed it.
        let is_replaced = self.plans.disk.lstat(&path).is_ok() && !self.still_leads_to(asked, real);
        let record = || match journal.undoes {
            Some(unit) => Record::undone(unit, &journal.by),
            None => Self::record_of(journal, n, version).of_batch(journal),
        };
        let is_noted = || self.plans.undo_log().contains(&record());
        if is_replaced && !is_noted() { Err(DiskError::FileChanged { path }) } else { Ok(()) }
    }

    pub(super) fn remove_empty<'a>(&self, dirs: impl Iterator<Item = &'a PathBuf>) {
        for dir in dirs {
            self.plans.disk.remove_dir(&self.plans.root.join(dir)).ok();
        }
    }

    fn impossible(&self, op: &FileOp) -> DiskError {
        let path = op.names().0.or(op.names().1).map(|it| self.plans.root.join(it)).unwrap_or_default();
        match self.plans.disk.lstat(&path) {
            Err(error) => DiskError::reading(&path, error),
            Ok(_) => DiskError::FileChanged { path },
        }
    }

    pub(super) fn version(&self, id: u64, n: usize, op: &FileOp) -> Version {
        let (path, base, new) = match op {
            FileOp::Create { path, bytes } => (path, Content::NOTHING, Content::of(bytes)),
            FileOp::Change { path, before, after } => (path, Content::of(before), Content::of(after)),
            FileOp::Discard { path, before } => (path, Content::of(before), Content::of(before)),
            FileOp::Rename { from, .. } | FileOp::Remove { path: from, .. } => {
                (from, Content::NOTHING, Content::NOTHING)
            }
        };
        let id = id + n as u64 * ID_STEP;
        let path = NamedPath::Whole(path.clone());
        let name = VersionName { origin: Origin::Clean, id, base, new, path };
        Version { path: dir(self.plans).join(name.encode()), name }
    }

    pub(super) fn progress(&self, journal: &Journal, n: usize, version: &Version) -> Progress {
        let (op, disk) = (&journal.ops[n], &*self.plans.disk);
        match op {
            FileOp::Change { path, before, .. } if self.holds(&self.plans.root.join(path), before) => {
                Progress::Open
            }
            // The new text is first written to `version.path`. An exchange swaps it with the plan file, so this path then
            // leads to the old file, even if the plan file has changed since. Where names cannot be exchanged, the old
            // file gets a second name. If that name exists and `version.path` does not, the plan file was replaced.
            FileOp::Change { path, before, after } => match read_own(disk, &version.path, u64::MAX) {
                // The exchange displaced another program's version, and that version was put back into the file.
                Ok(Some(found))
                    if found != *before
                        && !is_part_of(&found, after)
                        && self.holds(&self.plans.root.join(path), &found) =>
                {
                    Progress::Impossible
                }
                Ok(Some(found)) if found == *before || !is_part_of(&found, after) => Progress::Done,
                Ok(None) if disk.lstat(&self.second_version(version).path).is_ok() => Progress::Done,
                _ => self.progress_of(op),
            },
            FileOp::Create { path, .. } if is_one_file(disk, &version.path, &self.plans.root.join(path)) => {
                Progress::Half
            }
            FileOp::Create { .. } if disk.lstat(&version.path).is_ok() => Progress::Open,
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to }
                if self.is_doubled(from, to) && self.is_renamed(journal, n, from, to) =>
            {
                Progress::Doubled
            }
            _ => self.progress_of(op),
        }
    }

    /// Like [`Self::progress`], for use after a crash, when it is not known how many operations were begun.
    ///
    /// A [`FileOp::Create`] is [`Progress::Impossible`] if its file exists with another text and no later operation has
    /// begun: another program created the file.
    pub(super) fn progress_after_crash(&self, journal: &Journal, n: usize, version: &Version) -> Progress {
        let is_others = |op: &FileOp| match op {
            FileOp::Create { path, bytes } => !self.holds(&self.plans.root.join(path), bytes),
            _ => false,
        };
        let is_open = |op: &FileOp| self.progress_of(op) == Progress::Open;
        match self.progress(journal, n, version) {
            Progress::Done if is_others(&journal.ops[n]) && journal.ops[n + 1..].iter().all(is_open) => {
                Progress::Impossible
            }
            other => other,
        }
    }

    /// Determines an operation's progress from the names and texts of the plan files alone.
    fn progress_of(&self, op: &FileOp) -> Progress {
        let there = |path: &Path| self.plans.disk.lstat(&self.plans.root.join(path)).is_ok();
        let holds = |path: &Path, bytes: &[u8]| self.holds(&self.plans.root.join(path), bytes);
        match op {
            FileOp::Create { path, .. } if there(path) => Progress::Done,
            FileOp::Create { .. } => Progress::Open,
            FileOp::Change { path, before, .. } if holds(path, before) => Progress::Open,
            FileOp::Change { path, after, .. } if holds(path, after) => Progress::Done,
            FileOp::Change { .. } => Progress::Impossible,
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => match (there(from), there(to))
            {
                (true, false) => Progress::Open,
                (false, true) => Progress::Done,
                (true, true)
                    if is_one_file(
                        &*self.plans.disk,
                        &self.plans.root.join(from),
                        &self.plans.root.join(to),
                    ) =>
                {
                    Progress::Half
                }
                _ => Progress::Impossible,
            },
            FileOp::Discard { path, before } if holds(path, before) => Progress::Open,
            FileOp::Discard { path, .. } if there(path) => Progress::Impossible,
            FileOp::Discard { .. } => Progress::Done,
        }
    }

    pub(super) fn holds(&self, path: &Path, bytes: &[u8]) -> bool {
        read_own(&*self.plans.disk, path, u64::MAX).is_ok_and(|found| found.as_deref() == Some(bytes))
    }

    /// Carries out one operation. Returns the version that it displaced, or `version` if it displaced none.
    fn carry_out(&mut self, journal: &Journal, n: usize, version: Version) -> Result<Version, DiskError> {
        let root = &self.plans.root;
        let op = &journal.ops[n];
        match op {
            FileOp::Create { path, bytes } => {
                let path = root.join(path);
                if is_one_file(&*self.plans.disk, &version.path, &path) {
                    self.rename_into(&version.path, &path)?;
                    return Ok(version);
                }
                self.clear_draft(&version);
                self.clear_near(&path, version.name.id, bytes);
                let like = journal.copied_from(bytes);
                self.make_parents(path.parent().unwrap_or(root), like)?;
                let NamedPath::Whole(real) = &version.name.path else { return Ok(version) };
                let like = like.and_then(|it| self.plans.read(it).ok());
                let draft = self.draft(version.name.id, real, Content::NOTHING, bytes, like.as_ref())?;
                self.place(draft, &path, bytes)?;
            }
            FileOp::Change { path, before, after } => {
                self.clear_draft(&version);
                let base = self.plans.read(path)?;
                let changed = || DiskError::FileChanged { path: root.join(path) };
                // The file itself may have become a link by now.
                if base.bytes != *before || base.real != *path {
                    return Err(changed());
                }
                let asked = journal.asked(n).unwrap_or(path).to_path_buf();
                let base = Snapshot { asked, ..base };
                return self.put_or_leave(version.name.id, &base, after);
            }
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
                let to = root.join(to);
                self.make_parents(to.parent().unwrap_or(root), Some(from))?;
                self.rename_into(&root.join(from), &to)?;
            }
            FileOp::Discard { path, before } => {
                let path = root.join(path);
                if !self.holds(&path, before) {
                    return Err(self.impossible(op));
                }
                self.rename_into(&path, &version.path)?;
                if !self.holds(&version.path, before) {
                    // Another program saved between the check and the rename. If the name is in use again by now, there
                    // was a second save.
                    if self.rename_into(&version.path, &path).is_err() {
                        let disk = &*self.plans.disk;
                        self.kept.push(keep(disk, root, &version.path, KeptWhy::Overtaken));
                    }
                    return Err(DiskError::FileChanged { path });
                }
            }
        }
        Ok(version)
    }

    /// Replaces the text of a file. If another program saved meanwhile, its text stays. If another program replaced a
    /// symbolic link that led to the file, the file gets its old text back. Both cases are errors.
    pub(super) fn put_or_leave(
        &mut self,
        id: u64,
        base: &Snapshot,
        new: &[u8],
    ) -> Result<Version, DiskError> {
        let error = DiskError::FileChanged { path: self.plans.root.join(&base.asked) };
        let withdrawn = |theirs| Withdrawn { ours: new.to_vec(), theirs };
        let raced = match self.put(id, base, new, None, SaveCheck::First)? {
            Put::Clean(draft) if self.still_leads_to(&base.asked, &base.real) => return Ok(draft.version),
            Put::Clean(draft) => {
                self.withdrawn.push(withdrawn(None));
                let (real, text) = (base.real.clone(), base.bytes.clone());
                Raced { real, theirs: draft.version, text, ours: new.to_vec() }
            }
            Put::Stale => return Err(error),
            Put::Withdrawn => {
                self.withdrawn.push(withdrawn(None));
                return Err(error);
            }
            Put::Raced(raced, theirs) => {
                let mut known = Known::default();
                known.has_read(&base.bytes);
                if self.is_cut_short(&theirs, known) {
                    // The displaced inode itself is put back, because its editor has it open and is still writing.
                    let mut kept = Vec::new();
                    let back = self.exchange_back(&raced, &mut kept);
                    self.kept.append(&mut kept);
                    return Err(back
                        .err()
                        .unwrap_or(DiskError::HalfSaved { path: error.path().to_path_buf() }));
                }
                self.withdrawn.push(withdrawn(Some(theirs.bytes)));
                raced
            }
        };
        let mut kept = Vec::new();
        let withdrawn = self.withdraw(raced, false, &mut kept);
        self.kept.append(&mut kept);
        Err(withdrawn.err().unwrap_or(error))
    }

    /// Removes the unused draft of an earlier attempt, because the new draft needs its name.
    fn clear_draft(&self, version: &Version) {
        self.plans.disk.remove(&version.path).ok();
    }

    pub(super) fn rename_into(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        rename_new(&*self.plans.disk, from, to).map_err(|error| DiskError::writing(to, error))
    }

    pub(super) fn sync_all(&self, ops: &[FileOp]) -> Result<(), DiskError> {
        let names = ops.iter().flat_map(|op| <[_; 2]>::from(op.names())).flatten();
        let dirs: BTreeSet<_> =
            names.filter_map(|name| self.plans.root.join(name).parent().map(Path::to_path_buf)).collect();
        for dir in dirs {
            match self.plans.disk.sync_dir(&dir) {
                // The directory was never created, or it was renamed. A renamed directory's new parent is in `dirs`, too.
                Err(_) if self.plans.disk.lstat(&dir).is_err_and(|error| is(&error, Errno::NOENT)) => {}
                other => other.map_err(|error| DiskError::writing(&dir, error))?,
            }
        }
        Ok(())
    }
}

/// Whether `draft` may be a draft of `whole` that a power cut truncated or partly replaced with zeros.
fn is_part_of(draft: &[u8], whole: &[u8]) -> bool {
    draft.len() <= whole.len() && draft.iter().zip(whole).all(|(have, want)| have == want || *have == 0)
}
