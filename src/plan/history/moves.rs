//! Pairs the old and new files of one commit, including those that moved, and compares each pair.
//!
//! A step that moved is recognized by its `id` key, or by its title and its time of creation. A step without a time of
//! creation is recognized by its title and its body. A similar body is not sufficient, because steps from the same template
//! have similar bodies.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::plan::history::compare::Comparison;
use crate::plan::history::version::Version;
use crate::plan::history::{Change, Place, What};
use crate::plan::id::{PlanId, read_number, read_step_id};
use crate::plan::time::Time;
use crate::text::yaml::Tree;

/// A file before and after a commit; at least one of the two versions exists.
#[derive(Debug, Clone)]
pub struct FileChange {
    pub path: String,
    pub place: Place,
    pub old: Option<Rc<Version>>,
    pub new: Option<Rc<Version>>,
}

impl FileChange {
    /// Whether the two versions may belong to different steps, because the titles differ.
    pub fn may_be_two_steps(&self) -> bool {
        let both = self.old.as_deref().zip(self.new.as_deref());
        matches!(self.place, Place::Step { .. }) && both.is_some_and(|(old, new)| old.title() != new.title())
    }

    /// Whether the two versions certainly belong to different steps, because the times of creation differ, too.
    pub fn are_two_steps(&self) -> bool {
        let made = |it: &Option<Rc<Version>>| it.as_deref().and_then(Version::created_at);
        self.may_be_two_steps() && made(&self.old).zip(made(&self.new)).is_some_and(|(old, new)| old != new)
    }
}

/// Returns the changes of plans, steps, decisions and insights that result from these changes of files. Each path must
/// occur only once.
pub fn changes(files: &[FileChange]) -> Vec<Change> {
    let mut pairing = Pairing::new(files);
    pairing.plans();
    pairing.steps();
    let mut found = pairing.plan_changes();
    let mut pairs = pairing.pairs();
    pairs.sort_by_key(|it| it.order());
    for pair in pairs {
        found.extend(pair.changes());
    }
    found
}

/// A directory of a plan: its name, and whether it is in the archive.
type Directory = (PlanId, bool);

struct Pairing<'a> {
    files: &'a [FileChange],
    /// Maps the index in `files` of each new version to the index of its old version.
    before: HashMap<usize, usize>,
    /// The indices in `files` of the old versions that are paired.
    used: HashSet<usize>,
    /// The old and the new directory of each plan that moved.
    moved: Vec<(Directory, Directory)>,
}

impl<'a> Pairing<'a> {
    fn new(files: &'a [FileChange]) -> Self {
        Self { files, before: HashMap::new(), used: HashSet::new(), moved: Vec::new() }
    }

    fn pair(&mut self, old: usize, new: usize) {
        if !self.used.contains(&old) && !self.before.contains_key(&new) {
            self.used.insert(old);
            self.before.insert(new, old);
        }
    }

    /// The indices of the files for which a condition holds.
    fn having(&self, is_wanted: impl Fn(&FileChange) -> bool) -> Vec<usize> {
        (0..self.files.len()).filter(|it| is_wanted(&self.files[*it])).collect()
    }

    /// Finds plans that were archived, restored or renamed, and pairs their files by name.
    fn plans(&mut self) {
        let gone = self.having(|it| it.new.is_none() && directory(&it.place).is_some());
        let made = self.having(|it| it.old.is_none() && directory(&it.place).is_some());
        if gone.is_empty() || made.is_empty() {
            return;
        }
        let mut by_identity: HashMap<Identity<'_>, Vec<usize>> = HashMap::new();
        let is_plan = |it: &FileChange| matches!(it.place, Place::Plan { .. });
        for at in gone.iter().filter(|it| is_plan(&self.files[**it])) {
            if let Some(identity) = Identity::of(self.files[*at].old.as_deref()) {
                by_identity.entry(identity).or_default().push(*at);
            }
        }
        let old_directories: HashSet<Directory> =
            gone.iter().filter_map(|it| directory(&self.files[*it].place)).collect();
        let mut moved: HashMap<Directory, Directory> = HashMap::new();
        for at in &made {
            let file = &self.files[*at];
            let Some(new) = directory(&file.place) else { continue };
            let other_side = (new.0.clone(), !new.1);
            let same_name = old_directories.contains(&other_side).then_some(other_side);
            let identical = || {
                let found = by_identity.get(&Identity::of(file.new.as_deref())?)?;
                let [only] = found[..] else { return None };
                directory(&self.files[only].place).filter(|_| is_plan(file))
            };
            if let Some(old) = same_name.or_else(identical).filter(|_| !moved.contains_key(&new)) {
                moved.insert(new, old);
            }
        }
        let by_name: HashMap<(Directory, &str), usize> =
            gone.iter().filter_map(|it| Some((self.in_directory(*it)?, *it))).collect();
        for at in made {
            let Some((new, name)) = self.in_directory(at) else { continue };
            let old = moved.get(&new).and_then(|it| by_name.get(&(it.clone(), name)));
            if let Some(old) = old {
                self.pair(*old, at);
            }
        }
        self.moved = moved.into_iter().map(|(new, old)| (old, new)).collect();
        self.moved.sort_by(|a, b| a.1.cmp(&b.1));
    }

    fn in_directory(&self, at: usize) -> Option<(Directory, &'a str)> {
        let file = &self.files[at];
        Some((directory(&file.place)?, file.path.rsplit('/').next().unwrap_or_default()))
    }

    /// Pairs the remaining files. A step whose `id` or [`Identity`] shows that it came from another path is paired with the
    /// old version at that path. Then every other file is paired with the old version at its own path, if there is one and
    /// no other file is paired with it.
    fn steps(&mut self) {
        let is_step = |it: &FileChange| matches!(it.place, Place::Step { .. });
        let is_other = |it: &FileChange| {
            is_step(it) && it.old.is_none() != it.new.is_none()
                || is_step(it) && Identity::of(it.old.as_deref()) != Identity::of(it.new.as_deref())
        };
        let open: Vec<usize> = self.having(is_other);
        let (mut by_identity, mut by_id) = (HashMap::<Identity<'_>, Vec<usize>>::new(), HashMap::new());
        for at in open.iter().copied().filter(|it| !self.used.contains(it)) {
            let Some(old) = self.files[at].old.as_deref() else { continue };
            if let Some(identity) = Identity::of(Some(old)) {
                by_identity.entry(identity).or_default().push(at);
            }
            by_id.insert(self.files[at].place.id(), at);
        }
        for at in open {
            let file = &self.files[at];
            let Some(new) = file.new.as_deref().filter(|_| !self.before.contains_key(&at)) else { continue };
            // If the old version at this path has the same wrong `id`, the `id` is not a sign of a move in this commit.
            let written = written_id(file, new);
            let written = written
                .filter(|it| file.old.as_deref().and_then(|old| written_id(file, old)).as_ref() != Some(it));
            let named = written.and_then(|it| by_id.get(&Some(it))).copied();
            let identical = Identity::of(Some(new)).and_then(|it| by_identity.get(&it));
            let identical = identical.and_then(|it| it.iter().find(|it| !self.used.contains(it))).copied();
            if let Some(old) = named.filter(|it| *it != at && !self.used.contains(it)).or(identical) {
                self.pair(old, at);
            }
        }
        for at in self.having(|it| it.old.is_some() && it.new.is_some()) {
            self.pair(at, at);
        }
    }

    fn plan_changes(&self) -> Vec<Change> {
        let change = |(old, new): &(Directory, Directory)| {
            let what = match (old.1, new.1) {
                (false, true) => What::Archived,
                (true, false) => What::Restored,
                _ => What::Moved,
            };
            let place = Place::Plan { id: new.0.clone(), is_archived: new.1 };
            let path =
                if new.1 { format!("_archive/{}/plan.md", new.0) } else { format!("{}/plan.md", new.0) };
            let (from, to) = (Some(old.0.to_string()), Some(new.0.to_string()));
            Change { from, to, ..Change::of(what, &place, &path) }
        };
        self.moved.iter().map(change).collect()
    }

    fn pairs(&self) -> Vec<Pair<'a>> {
        let files = self.files;
        let news = self.having(|it| it.new.is_some()).into_iter();
        let news = news.map(|at| Pair {
            old: self.before.get(&at).and_then(|old| Some((&files[*old], files[*old].old.as_deref()?))),
            new: files[at].new.as_deref().map(|it| (&files[at], it)),
            is_with_plan: self.is_with_plan(at),
        });
        let olds = self.having(|it| it.old.is_some()).into_iter().filter(|it| !self.used.contains(it));
        let olds = olds.map(|at| Pair {
            old: files[at].old.as_deref().map(|it| (&files[at], it)),
            new: None,
            is_with_plan: false,
        });
        news.chain(olds).collect()
    }

    /// Whether a file moved together with its plan.
    fn is_with_plan(&self, at: usize) -> bool {
        let Some(before) = self.before.get(&at) else { return false };
        let directories = directory(&self.files[*before].place).zip(directory(&self.files[at].place));
        directories.is_some_and(|it| self.moved.contains(&it))
    }
}

struct Pair<'a> {
    old: Option<(&'a FileChange, &'a Version)>,
    new: Option<(&'a FileChange, &'a Version)>,
    is_with_plan: bool,
}

impl Pair<'_> {
    fn file(&self) -> Option<&FileChange> {
        self.new.or(self.old).map(|it| it.0)
    }

    /// The sort key: by plan, a plan before its steps, and the steps by number.
    fn order(&self) -> impl Ord + use<> {
        let file = self.file();
        let place = file.map(|it| &it.place);
        let number = place.and_then(Place::step).map(|it| it.number.clone());
        (place.and_then(Place::plan).cloned(), number, file.map(|it| it.path.clone()))
    }

    fn changes(&self) -> Vec<Change> {
        let Some(file) = self.file() else { return Vec::new() };
        let mut comparison = Comparison { place: &file.place, path: &file.path, found: Vec::new() };
        match (self.old, self.new) {
            (Some((old_file, old)), Some((_, new))) => {
                if old_file.place != file.place && !self.is_with_plan {
                    let (from, to) = (old_file.place.id(), file.place.id());
                    comparison.found.push(Change {
                        from,
                        to,
                        ..Change::of(What::Moved, &file.place, &file.path)
                    });
                }
                comparison.changed(old, new);
            }
            (Some((_, old)), None) => comparison.removed(old),
            (None, Some((_, new))) => comparison.created(new),
            (None, None) => {}
        }
        comparison.found
    }
}

/// The properties by which a file that moved is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Identity<'a> {
    /// The title and the time of creation. planwatch writes this time.
    Made(&'a str, Time),
    /// The title and the body of a file without a time of creation.
    Written(&'a str, &'a str),
}

impl<'a> Identity<'a> {
    /// `None`: there is no version, the file is unreadable, or it has neither a time of creation nor a body.
    fn of(version: Option<&'a Version>) -> Option<Self> {
        let version = version.filter(|it| it.unreadable().is_none())?;
        match version.created_at() {
            Some(at) => Some(Self::Made(version.title(), at)),
            None if version.body().trim().is_empty() => None,
            None => Some(Self::Written(version.title(), version.body())),
        }
    }
}

fn directory(place: &Place) -> Option<Directory> {
    Some((place.plan()?.clone(), place.is_archived()))
}

/// The id in a file's `id` key, if it differs from the id that results from the file's path.
fn written_id(file: &FileChange, version: &Version) -> Option<String> {
    let place = file.place.step()?;
    let tree = Tree::of_file(version.bytes())?;
    let text = tree.root().get("id")?.text()?;
    let number = read_number(text).map(|it| format!("{}:{it}", place.plan));
    let id = number.or_else(|| read_step_id(text).map(|it| it.to_string()))?;
    (id != place.to_string()).then_some(id)
}
