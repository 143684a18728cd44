//! One plans directory while an editor works in it: its files, replaced by the open texts, and the resulting
//! plans.
//!
//! A text that changes is read and checked again with the few plans that it depends on, not with all of them.
//! Nothing here writes into the index: plans with unsaved texts are read from files and texts alone.

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
use crate::ops::check;
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

/// Makes the context of a request, with the plans that a command started in this directory would use.
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

/// A file that planwatch reads, by its place below the plans directory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanFile {
    pub(super) relative: String,
    pub(super) role: Role,
    /// `None` for a file that belongs to no plan.
    pub(super) key: Option<Key>,
}

impl PlanFile {
    /// None for a file that planwatch does not read.
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
    /// The problems of this plan, in the order of `check`.
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

    /// What was read of the plans, for reading them again.
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
    /// The real path of each open document and its place in the plans directory, by the path that the client uses.
    open: HashMap<PathBuf, (PathBuf, PlanFile)>,
    /// None until it is loaded.
    pub(super) catalog: Option<Catalog>,
    judged: HashMap<Key, Judged>,
    /// Plans with an open text that changed since they were checked. What was read of their other files is used again.
    outdated: HashMap<Key, Judged>,
    /// Open documents whose diagnostics may differ from those that the client has.
    dirty: BTreeSet<PathBuf>,
    /// Whether diagnostics of files that are not open may differ from those that the client has.
    pub(super) are_others_dirty: bool,
}

impl Tree {
    /// The plans directory that a command in `directory` would use.
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

    /// A context on the files, for commands.
    pub(super) fn context(&self) -> Result<Context, Error> {
        let context = (self.contexts)(&self.directory)?;
        let is_same = context.plans.root() == self.root;
        is_same.then_some(context).ok_or(Error::NoPlansDir)
    }

    /// Makes contexts on the files, in other threads.
    pub(super) fn contexts(&self) -> impl Fn() -> Result<Context, Error> + Send + use<> {
        let (contexts, directory) = (Arc::clone(&self.contexts), self.directory.clone());
        move || contexts(&directory)
    }

    /// A context on the open texts, in which nothing can be written.
    pub(super) fn reading(&self) -> Result<Context, Error> {
        let context = self.context()?;
        let plans = context.plans.with_open_texts(self.texts.clone());
        Ok(Context { plans, reading: Reading::Files, freshness: Freshness::Unknown, ..context })
    }

    /// Like [`Self::reading`], for a dry run whose changes are wanted.
    pub(super) fn planning(&self) -> Result<(Context, Planned), Error> {
        let planned = Planned::default();
        Ok((Context { planned: Some(planned.clone()), ..self.reading()? }, planned))
    }

    /// The place of a file that planwatch reads, below this plans directory.
    pub(super) fn file(&self, path: &Path) -> Option<PlanFile> {
        if let Some((_, file)) = self.open.get(path) {
            return Some(file.clone());
        }
        let relative = self.context().ok()?.plans.relative_of(path)?;
        PlanFile::at(&relative)
    }

    /// Stores the text of a document if planwatch reads that file; returns whether it does.
    pub(super) fn put(&mut self, document: &Document) -> bool {
        let known = self.open.get(&document.path).cloned();
        let Some((real, file)) = known.or_else(|| self.place(&document.path)) else { return false };
        // The time of the disk; 0 if there is no context.
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

    /// After this, the file on disk is used instead of the open text.
    pub(super) fn close(&mut self, path: &Path) -> Option<PlanFile> {
        let (real, file) = self.open.remove(path)?;
        self.texts.remove(&real);
        self.dirty.remove(path);
        self.are_others_dirty = true;
        self.touch(&file);
        Some(file)
    }

    /// Marks the plans that depend on a file, so that they are checked again; those without an open document are
    /// forgotten. The next check of a marked plan reads only its files that differ.
    fn touch(&mut self, file: &PlanFile) {
        let Some(id) = file.plan() else { return };
        for (key, judged) in self.take_dependent(&id) {
            if self.open.values().any(|(_, file)| file.key.as_ref() == Some(&key)) {
                self.outdated.insert(key, judged);
            }
        }
    }

    /// Forgets the plans that depend on one, with all that was read of them.
    fn forget(&mut self, id: &PlanId) {
        self.take_dependent(id);
        self.outdated.retain(|key, it| !it.depends_on(id) && key.name != id.as_str());
    }

    /// Removes and returns the checked plans that depend on one, and marks their open documents as dirty.
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

    /// The claim that the saved file of an open step has, if it is in force and the open text has another or none.
    pub(super) fn saved_claim(&self, file: &PlanFile, own: Option<&Claim>) -> Option<Claim> {
        let context = self.context().ok()?;
        let bytes = context.plans.read(Path::new(&file.relative)).ok()?.bytes;
        let content = Content::new(bytes, context.now);
        let alone = read::read_step_alone(&file.step()?, &file.relative, content, &context.config.words);
        // Most steps have no other claim, and need no more than their own file.
        alone.claim_in_force().filter(|it| own.is_none_or(|own| own.id != it.id))?;
        let context = Context { reading: Reading::Files, freshness: Freshness::Unknown, ..context };
        let judged = self.judge_in(&context, file.key.as_ref()?, KeptPlans::default()).ok()?;
        let (_, step) = judged.step(&file.relative)?;
        let is_lapsed = judged.plans.claims().lapse(step, judged.now).is_some();
        step.claim_in_force().filter(|_| !is_lapsed).cloned()
    }

    /// The plans that have open documents, as saved, by their directories.
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

    /// `kept` has what was read of the plan earlier.
    fn judge_in(&self, context: &Context, key: &Key, mut kept: KeptPlans) -> Result<Judged, Error> {
        let id = PlanId::new(&key.name);
        let known = self.catalog.as_ref().map(|it| it.dependents(&id));
        let own = || Dependents { spellings: catalog::own_keys(&id).into(), ..Dependents::default() };
        let plans = load::near(context, &id, known.unwrap_or_else(own), &mut kept);
        let plans = Leases::of(context).annotate(plans);
        let mut judged = Judged { plans, key: key.clone(), problems: Vec::new(), now: context.now, kept };
        if let Some(plan) = judged.plan() {
            let mut problems = check::problems_of_plan(context, &judged.plans, plan);
            problems.sort();
            problems.dedup();
            // An editor may still show the text from before the claim, so this problem is not reported for
            // open files.
            let is_open = |path: &str| self.open.values().any(|(_, file)| file.relative == path);
            problems.retain(|it| it.code != Code::TakenBack || !is_open(&it.path));
            judged.problems = problems;
        }
        Ok(judged)
    }

    /// Brings the catalog up to date with a plan.
    fn note(&mut self, key: &Key, judged: &Judged) {
        let Some(catalog) = &mut self.catalog else { return };
        match judged.plan() {
            Some(plan) => {
                catalog.put(key.clone(), (&judged.plans, plan, judged.now), judged.problems.clone());
            }
            None => catalog.remove(key),
        }
    }

    /// Takes the catalog when it is loaded. Plans with open texts are read again, because it knows only the files.
    pub(super) fn loaded(&mut self, catalog: Catalog) {
        self.catalog = Some(catalog);
        self.are_others_dirty = true;
        self.mark_all_dirty();
        let open: BTreeSet<_> = self.open.values().filter_map(|(_, file)| file.key.clone()).collect();
        for key in open {
            self.judged(&key).ok();
        }
    }

    /// Reads plans again that changed on disk, by the names of their directories, and those that depend on them.
    /// Returns false if the catalog has to be loaded again, because the plans are too many or cannot be read.
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
            // A directory that was never a plan and is none now need not be read.
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

    /// Reads the problems of files that belong to no plan again.
    pub(super) fn reread_outside_plans(&mut self) {
        let found = self.reading().map(|it| check::problems_outside_plans(&it));
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
                let all = self.reading().map(|it| check::problems_outside_plans(&it)).unwrap_or_default();
                all.iter().filter(is_own).cloned().collect()
            }
        }
    }

    /// Whether the file at this absolute path is open.
    pub(super) fn is_open(&self, path: &Path) -> bool {
        self.open.contains_key(path) || self.open.values().any(|(real, _)| real == path)
    }

    /// The open document of a file below this plans directory.
    pub(super) fn open_path(&self, relative: &str) -> Option<&PathBuf> {
        self.open.iter().find(|(_, (_, file))| file.relative == relative).map(|(path, _)| path)
    }
}
