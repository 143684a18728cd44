//! One plans directory, with the open texts in place of their files.
//!
//! When a text changes, its plan is read and checked again with the few plans that it depends on, not with all plans.
//! These plans are read from files and open texts. They are never read from the index or written into it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalog::{self, Catalog, PlanEntry};
use super::documents::Document;
use crate::api::context::{Context, Planned, Reading};
use crate::api::daemon::{Dependents, Freshness};
use crate::api::error::Error;
use crate::disk::OpenTexts;
use crate::index::Key;
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::read::{self, Content};
use crate::plan::records::Claim;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::store::leases::Leases;
use crate::store::load::{self, KeptPlans};
use crate::store::problems;

/// Makes a context. Its plans directory is the one that a command would use if started in the given directory.
pub type ContextsAt = Arc<dyn Fn(&Path) -> Result<Context, Error> + Send + Sync>;

/// If more plans than this have to be read again, all plans are loaded again.
const MOST_REREAD: usize = 256;

/// The kind of a file in a plans directory.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Role {
    Plan,
    Step(StepNumber),
    /// A decision, an insight, a script or a prompt.
    OutsidePlans,
}

/// A file that planwatch reads. `relative` is its path below the plans directory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanFile {
    pub(super) relative: String,
    pub(super) role: Role,
    /// `None` for a file that belongs to no plan.
    pub(super) key: Option<Key>,
}

impl PlanFile {
    /// Returns `None` for a file that planwatch does not read.
    pub(super) fn at(relative: &Path) -> Option<Self> {
        let path = relative.to_str()?.to_owned();
        if let Some((key, file)) = catalog::place(relative) {
            let role = match file_name::classify(&file) {
                FileName::Plan => Role::Plan,
                FileName::Step(number) => Role::Step(number),
                FileName::LooksLikeStep | FileName::Other => return None,
            };
            return Some(Self { relative: path, role, key: Some(key) });
        }
        is_outside_plans(&path).then_some(Self { relative: path, role: Role::OutsidePlans, key: None })
    }

    pub(super) fn plan(&self) -> Option<PlanId> {
        self.key.as_ref().map(|it| PlanId::new(&it.name))
    }

    pub(super) fn step(&self) -> Option<StepId> {
        match &self.role {
            Role::Step(number) => Some(StepId { plan: self.plan()?, number: number.clone() }),
            _ => None,
        }
    }
}

/// The directories of files that belong to no plan.
pub(super) const DIRECTORIES_OUTSIDE_PLANS: [&str; 4] =
    ["_decisions/", "_insights/", "_scripts/", "_prompts/"];

fn is_outside_plans(path: &str) -> bool {
    DIRECTORIES_OUTSIDE_PLANS.iter().any(|it| path.starts_with(it))
}

/// A plan and its dependencies, read from the open texts and the files.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) plans: Plans,
    key: Key,
    /// The problems of the plan `key`, in the order of `check`.
    pub(super) problems: Vec<Problem>,
    pub(super) now: Time,
    kept: KeptPlans,
}

impl Judged {
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.plans.iter().find(|it| catalog::key_of(it).as_ref() == Some(&self.key))
    }

    pub(super) fn step(&self, relative: &str) -> Option<(&Plan, &Step)> {
        let plan = self.plan()?;
        plan.steps.iter().find(|it| it.path == relative).map(|it| (plan, it))
    }

    /// The parsed files of the plans. They are used when the plans are read again.
    fn into_kept(self) -> KeptPlans {
        let mut kept = self.kept;
        for plan in self.plans.into_vec() {
            if let Some(it) = catalog::key_of(&plan).and_then(|key| kept.get_mut(&key)) {
                it.take_back(plan);
            }
        }
        kept
    }

    fn depends_on(&self, id: &PlanId) -> bool {
        let names = |it: &Plan| {
            it.id == *id
                || it.program.as_ref() == Some(id)
                || it.steps.iter().flat_map(|it| &it.depends).any(|it| it.plan == *id)
        };
        self.plans.iter().any(names)
    }
}

pub(super) struct Tree {
    contexts: ContextsAt,
    /// The directory for which contexts are created.
    directory: PathBuf,
    pub(super) root: PathBuf,
    texts: OpenTexts,
    /// The real path and the [`PlanFile`] of each open document, by the path that the client uses.
    open: HashMap<PathBuf, (PathBuf, PlanFile)>,
    /// `None` until it is loaded.
    pub(super) catalog: Option<Catalog>,
    judged: HashMap<Key, Judged>,
    /// The plans that have open documents and must be checked again. Their parsed files are used again, except those whose
    /// stamps differ or are too young to be trusted.
    outdated: HashMap<Key, Judged>,
    /// Open documents whose diagnostics may differ from those that the client has.
    dirty: BTreeSet<PathBuf>,
    /// Whether diagnostics of files that are not open may differ from those that the client has.
    pub(super) are_others_dirty: bool,
}

impl Tree {
    /// Finds the plans directory that a command in `directory` would use.
    pub(super) fn find(contexts: &ContextsAt, directory: &Path) -> Result<Self, Error> {
        let root = contexts(directory)?.plans.root().to_path_buf();
        Ok(Self {
            contexts: Arc::clone(contexts),
            directory: directory.to_path_buf(),
            root,
            texts: OpenTexts::default(),
            open: HashMap::new(),
            catalog: None,
            judged: HashMap::new(),
            outdated: HashMap::new(),
            dirty: BTreeSet::new(),
            are_others_dirty: false,
        })
    }

    /// A context for commands, which work on the saved files.
    pub(super) fn context(&self) -> Result<Context, Error> {
        let context = (self.contexts)(&self.directory)?;
        let is_same = context.plans.root() == self.root;
        is_same.then_some(context).ok_or(Error::NoPlansDir)
    }

    /// A function that makes contexts on the saved files. Another thread can call it.
    pub(super) fn contexts(&self) -> impl Fn() -> Result<Context, Error> + Send + use<> {
        let (contexts, directory) = (Arc::clone(&self.contexts), self.directory.clone());
        move || contexts(&directory)
    }

    /// A context that reads the open texts in place of their files, and in which nothing can be written.
    pub(super) fn reading(&self) -> Result<Context, Error> {
        let context = self.context()?;
        let plans = context.plans.with_open_texts(self.texts.clone());
        Ok(Context { plans, reading: Reading::Files, freshness: Freshness::Unknown, ..context })
    }

    /// Like [`Self::reading`], for a dry run. The changes of the dry run are collected in the returned [`Planned`].
    pub(super) fn planning(&self) -> Result<(Context, Planned), Error> {
        let planned = Planned::default();
        Ok((Context { planned: Some(planned.clone()), ..self.reading()? }, planned))
    }

    /// Describes a file. Returns `None` if the file is not in this plans directory, or planwatch does not read it.
    pub(super) fn file(&self, path: &Path) -> Option<PlanFile> {
        if let Some((_, file)) = self.open.get(path) {
            return Some(file.clone());
        }
        let relative = self.context().ok()?.plans.relative_of(path)?;
        PlanFile::at(&relative)
    }

    /// Stores the text of a document. Returns false if the file is not in this plans directory, or planwatch does not read
    /// it.
    pub(super) fn put(&mut self, document: &Document) -> bool {
        let known = self.open.get(&document.path).cloned();
        let Some((real, file)) = known.or_else(|| self.place(&document.path)) else { return false };
        // The time by the disk's clock, or 0 if there is no context.
        let now = self.context().map_or(0, |it| it.plans.now_ns());
        self.texts.put(&real, &document.text, now);
        self.touch(&file);
        self.are_others_dirty |= !self.open.contains_key(&document.path);
        self.open.insert(document.path.clone(), (real, file));
        self.dirty.insert(document.path.clone());
        true
    }

    fn place(&self, path: &Path) -> Option<(PathBuf, PlanFile)> {
        let relative = self.context().ok()?.plans.relative_of(path)?;
        Some((self.root.join(&relative), PlanFile::at(&relative)?))
    }

    /// Closes a document, so that the file on disk is used instead of its text.
    pub(super) fn close(&mut self, path: &Path) -> Option<PlanFile> {
        let (real, file) = self.open.remove(path)?;
        self.texts.remove(&real);
        self.dirty.remove(path);
        self.are_others_dirty = true;
        self.touch(&file);
        Some(file)
    }

    /// Handles a change of a file. The change concerns the file's plan and the plans that depend on it. Those with an open
    /// document are marked as outdated, and the others are dropped from memory. The next check of an outdated plan reads
    /// only files whose stamps differ or are too young to be trusted.
    fn touch(&mut self, file: &PlanFile) {
        let Some(id) = file.plan() else { return };
        for (key, judged) in self.take_dependent(&id) {
            if self.open.values().any(|(_, file)| file.key.as_ref() == Some(&key)) {
                self.outdated.insert(key, judged);
            }
        }
    }

    /// Drops from memory a plan and the plans that depend on it, with their parsed files.
    fn forget(&mut self, id: &PlanId) {
        self.take_dependent(id);
        self.outdated.retain(|key, it| !it.depends_on(id) && key.name != id.as_str());
    }

    /// Removes and returns a plan and the plans that depend on it, if they are in `judged`. Marks the open documents of
    /// these plans as dirty.
    fn take_dependent(&mut self, id: &PlanId) -> HashMap<Key, Judged> {
        let is_gone = |key: &Key, it: &Judged| it.depends_on(id) || key.name == id.as_str();
        let gone: HashMap<_, _> = self.judged.extract_if(|key, it| is_gone(key, it)).collect();
        let is_concerned = |file: &PlanFile| {
            file.key.as_ref().is_some_and(|key| gone.contains_key(key) || key.name == id.as_str())
        };
        let concerned =
            self.open.iter().filter(|(_, (_, file))| is_concerned(file)).map(|(path, _)| path.clone());
        self.dirty.extend(concerned);
        gone
    }

    pub(super) fn open_files(&self) -> impl Iterator<Item = (&PathBuf, &PlanFile)> {
        self.open.iter().map(|(path, (_, file))| (path, file))
    }

    /// The open documents whose diagnostics may have changed since the last call.
    pub(super) fn take_dirty(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.dirty)
    }

    fn mark_all_dirty(&mut self) {
        self.judged.clear();
        self.outdated.clear();
        self.dirty.extend(self.open.keys().cloned());
    }

    /// A plan with its problems, read from the open texts.
    pub(super) fn judged(&mut self, key: &Key) -> Result<&Judged, Error> {
        if !self.judged.contains_key(key) {
            let kept = self.outdated.remove(key).map(Judged::into_kept).unwrap_or_default();
            let judged = self.judge_in(&self.reading()?, key, kept)?;
            self.note(key, &judged);
            self.judged.insert(key.clone(), judged);
        }
        self.judged.get(key).ok_or(Error::NoPlansDir)
    }

    /// The claim in the saved version of a step's open file. `own` is the claim in the open text. `None` if the saved file
    /// has no claim, if its claim has ended or lapsed, if the open text has the same claim, or if the file cannot be read.
    pub(super) fn saved_claim(&self, file: &PlanFile, own: Option<&Claim>) -> Option<Claim> {
        let context = self.context().ok()?;
        let bytes = context.plans.read(Path::new(&file.relative)).ok()?.bytes;
        let content = Content::new(bytes, context.now);
        let alone = read::read_step_alone(&file.step()?, &file.relative, content, &context.config.words);
        // For most steps the function ends here, so only the step's own file is read.
        alone.claim_in_force().filter(|it| own.is_none_or(|own| own.id != it.id))?;
        let context = Context { reading: Reading::Files, freshness: Freshness::Unknown, ..context };
        let judged = self.judge_in(&context, file.key.as_ref()?, KeptPlans::default()).ok()?;
        let (_, step) = judged.step(&file.relative)?;
        let is_lapsed = judged.plans.claims().lapse(step, judged.now).is_some();
        step.claim_in_force().filter(|_| !is_lapsed).cloned()
    }

    /// The saved versions of the plans that have open documents, by their keys.
    pub(super) fn saved(&self) -> HashMap<Key, PlanEntry> {
        let keys: BTreeSet<_> = self.open.values().filter_map(|(_, file)| file.key.clone()).collect();
        let Ok(context) = self.context() else { return HashMap::new() };
        let context = Context { reading: Reading::Files, freshness: Freshness::Unknown, ..context };
        let saved = |key: Key| {
            let judged = self.judge_in(&context, &key, KeptPlans::default()).ok()?;
            let entry = PlanEntry::of(&judged.plans, judged.plan()?, judged.now, judged.problems.clone());
            Some((key, entry))
        };
        keys.into_iter().filter_map(saved).collect()
    }

    /// Reads and checks a plan. `kept` contains the files that were parsed earlier.
    fn judge_in(&self, context: &Context, key: &Key, mut kept: KeptPlans) -> Result<Judged, Error> {
        let id = PlanId::new(&key.name);
        let known = self.catalog.as_ref().map(|it| it.dependents(&id));
        let own = || Dependents { spellings: catalog::own_keys(&id).into(), ..Dependents::default() };
        let plans = load::near(context, &id, known.unwrap_or_else(own), &mut kept);
        let plans = Leases::of(context).annotate(plans);
        let mut judged = Judged { plans, key: key.clone(), problems: Vec::new(), now: context.now, kept };
        if let Some(plan) = judged.plan() {
            let mut problems = problems::of_plan(context, &judged.plans, plan);
            problems.sort_unstable();
            problems.dedup();
            // `TakenBack`: the file no longer contains a claim that is still in force. An open text can be older than the
            // claim, so the problem is not reported for open files.
            let is_open = |path: &str| self.open.values().any(|(_, file)| file.relative == path);
            problems.retain(|it| it.code != Code::TakenBack || !is_open(&it.path));
            judged.problems = problems;
        }
        Ok(judged)
    }

    /// Updates a plan in the catalog.
    fn note(&mut self, key: &Key, judged: &Judged) {
        let Some(catalog) = &mut self.catalog else { return };
        match judged.plan() {
            Some(plan) => {
                catalog.put(key.clone(), (&judged.plans, plan, judged.now), judged.problems.clone());
            }
            None => catalog.remove(key),
        }
    }

    /// Stores the loaded catalog. Plans with open texts are read again, because the catalog was loaded from the files.
    pub(super) fn loaded(&mut self, catalog: Catalog) {
        self.catalog = Some(catalog);
        self.are_others_dirty = true;
        self.mark_all_dirty();
        let open: BTreeSet<_> = self.open.values().filter_map(|(_, file)| file.key.clone()).collect();
        for key in open {
            self.judged(&key).ok();
        }
    }

    /// Rereads the plans with the given directory names, which changed on disk, and the plans that depend on them. Returns
    /// false if the catalog has to be loaded again, because there are too many plans or one cannot be read. If there is no
    /// catalog yet, reads nothing and returns true.
    pub(super) fn reread(&mut self, names: &BTreeSet<String>) -> bool {
        self.are_others_dirty = true;
        let mut keys: BTreeSet<Key> = BTreeSet::new();
        for name in names.iter().filter(|it| PlanId::is_plan_name(it)) {
            let id = PlanId::new(name);
            self.forget(&id);
            keys.extend(catalog::own_keys(&id));
            keys.extend(self.catalog.iter().flat_map(|it| it.affected_by(&id)));
        }
        if keys.len() > MOST_REREAD || self.catalog.is_none() {
            self.mark_all_dirty();
            return self.catalog.is_none();
        }
        for key in &keys {
            let is_open = self.open.values().any(|(_, file)| file.key.as_ref() == Some(key));
            let known = self.catalog.as_ref().is_some_and(|it| it.at(key).is_some());
            // A directory that is not in the catalog and does not exist need not be read.
            if !is_open && !known && !self.is_dir(key) {
                continue;
            }
            match self.reading().and_then(|it| self.judge_in(&it, key, KeptPlans::default())) {
                Ok(judged) => self.note(key, &judged),
                Err(_) => return false,
            }
        }
        true
    }

    fn is_dir(&self, key: &Key) -> bool {
        self.reading().is_ok_and(|it| it.plans.is_dir(&catalog::directory(key)))
    }

    /// Checks again the files that belong to no plan.
    pub(super) fn reread_outside_plans(&mut self) {
        let found = self.reading().map(|it| problems::outside_plans(&it));
        if let (Some(catalog), Ok(found)) = (&mut self.catalog, found) {
            catalog.problems_outside_plans.retain(|it| !is_outside_plans(&it.path));
            catalog.problems_outside_plans.extend(found);
        }
        let outside = self.open.iter().filter(|(_, (_, file))| file.role == Role::OutsidePlans);
        self.dirty.extend(outside.map(|(path, _)| path.clone()));
    }

    /// The problems of a file, read from the open texts.
    pub(super) fn problems_of(&mut self, file: &PlanFile) -> Vec<Problem> {
        let is_own = |it: &&Problem| it.path == file.relative;
        match &file.key {
            Some(key) => {
                let judged = self.judged(key);
                judged.map(|it| it.problems.iter().filter(is_own).cloned().collect()).unwrap_or_default()
            }
            None => {
                let all = self.reading().map(|it| problems::outside_plans(&it)).unwrap_or_default();
                all.iter().filter(is_own).cloned().collect()
            }
        }
    }

    /// Whether the file at this absolute path is open.
    pub(super) fn is_open(&self, path: &Path) -> bool {
        self.open.contains_key(path) || self.open.values().any(|(real, _)| real == path)
    }

    /// Finds an open document by its path below this plans directory, and returns the path that the client uses.
    pub(super) fn open_path(&self, relative: &str) -> Option<&PathBuf> {
        self.open.iter().find(|(_, (_, file))| file.relative == relative).map(|(path, _)| path)
    }
}
