//! Watches a plans directory with inotify, one watch per directory.
//!
//! An event only says what to read again. A new directory is watched first and listed afterwards, so that files
//! created before the watch are found. After lost events everything is listed again. Reading files causes no events,
//! so a `grep` through the plans does not wake the daemon.
//!
//! A thread of its own empties the kernel's queue (`inotify(7)`), so that it overflows only in extreme cases. All
//! directories share this queue: events before a cookie's belong to changes before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::disk::PlansDir;
use crate::serve::daemon::watcher::event::{RuntimePaths, WatchEvent, WriteKind, event_for, is_needed};

/// One event of the system.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    watch: i32,
    flags: ReadFlags,
    name: Option<String>,
}

/// Classifies the write behind an event. It is a heuristic that affects only when the plan is indexed.
pub(crate) fn write_kind(batch: &[Raw], at: usize) -> WriteKind {
    let is_pair = |came: usize| {
        let (Some(came), Some(went)) = (batch.get(came), batch.get(came + 1)) else { return false };
        came.flags.contains(ReadFlags::MOVED_TO)
            && went.flags.contains(ReadFlags::MOVED_FROM)
            && (came.watch, &came.name) == (went.watch, &went.name)
    };
    if is_pair(at) || at.checked_sub(1).is_some_and(is_pair) {
        return WriteKind::Exchanged;
    }
    let is_closed = batch.get(at).is_some_and(|it| it.flags.contains(ReadFlags::CLOSE_WRITE));
    if is_closed { WriteKind::Closed } else { WriteKind::Other }
}

impl Raw {
    /// Whether a directory or a Markdown file was deleted, not moved.
    pub(crate) fn is_deletion(&self) -> bool {
        let is_markdown = || self.name.as_deref().is_some_and(|it| it.ends_with(".md"));
        self.flags.contains(ReadFlags::DELETE) && (self.flags.contains(ReadFlags::ISDIR) || is_markdown())
    }
}

#[cfg(test)]
impl Raw {
    pub(crate) fn overflow() -> Self {
        Self { watch: -1, flags: ReadFlags::QUEUE_OVERFLOW, name: None }
    }

    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

/// Everything that can change a name or content. Opening, reading and closing a file without writing is not included.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

/// The events of a single watched file.
const FILE_CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DONT_FOLLOW)
    // If the path is a watched directory after all, its events remain.
    .union(WatchFlags::MASK_ADD);

const COME: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO).union(ReadFlags::ATTRIB);
const GONE: ReadFlags = ReadFlags::DELETE.union(ReadFlags::MOVED_FROM);
const SELF_GONE: ReadFlags = ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT);

/// The watches on one plans directory.
#[derive(Debug)]
pub(crate) struct Watcher {
    queue: Arc<OwnedFd>,
    root: PathBuf,
    /// Directories by watch, relative to the root and separated by `/`; the root is empty.
    dirs: HashMap<i32, Arc<str>>,
    watches: BTreeMap<Arc<str>, i32>,
    /// Plans by the watches on their hard-linked files: a save through the other name causes no event in the plan's
    /// directory.
    files: HashMap<i32, BTreeSet<String>>,
    /// Plans that contain a symbolic link: its target may change without an event here.
    linked: BTreeSet<String>,
    /// Why the watch is incomplete.
    coverage_gap: Option<String>,
    own: RuntimePaths,
}

impl Watcher {
    /// Opens a queue; nothing is watched before [`Self::cover`]. `on_events` receives each batch until it returns false.
    pub(crate) fn open(
        root: &Path,
        mut on_events: impl FnMut(Vec<Raw>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
        let source = Arc::clone(&queue);
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            let mut buffer = [MaybeUninit::uninit(); 64 << 10];
            let mut reader = inotify::Reader::new(&*source, &mut buffer);
            let mut batch = Vec::new();
            loop {
                match reader.next() {
                    Ok(event) => batch.push(Raw {
                        watch: event.wd(),
                        flags: event.events(),
                        name: event.file_name().map(|it| it.to_string_lossy().into_owned()),
                    }),
                    Err(Errno::INTR) => continue,
                    // No more events will come; requests that wait for a cookie time out.
                    Err(_) => return,
                }
                if reader.is_buffer_empty() && !on_events(std::mem::take(&mut batch)) {
                    return;
                }
            }
        })?;
        Ok(Self {
            queue,
            root: root.to_path_buf(),
            dirs: HashMap::new(),
            watches: BTreeMap::new(),
            files: HashMap::new(),
            linked: BTreeSet::new(),
            coverage_gap: None,
            own: RuntimePaths::default(),
        })
    }

    /// Why the watch is incomplete, after [`Self::cover`].
    pub(crate) fn coverage_gap(&self) -> Option<&str> {
        self.coverage_gap.as_deref()
    }

    /// Plans to reread with every change, because they contain links to places that are not watched.
    pub(crate) fn linked(&self) -> &BTreeSet<String> {
        &self.linked
    }

    /// Adds all missing watches.
    pub(crate) fn cover(&mut self, plans: &PlansDir) {
        self.coverage_gap = None;
        self.linked.clear();
        self.watch_planwatchs(plans);
        self.cover_below(plans, "");
    }

    /// Watches planwatch's own directory again after it was recreated.
    pub(crate) fn cover_own(&mut self, plans: &PlansDir) {
        let before = std::mem::take(&mut self.own);
        self.forget(&before.dir);
        self.watch_planwatchs(plans);
    }

    fn watch_planwatchs(&mut self, plans: &PlansDir) {
        let own = RuntimePaths::of(plans);
        // In a shared state directory it may be recreated while the directory around it stays.
        if let Some((among, _)) = own.among() {
            self.watch_own(among, WatchFlags::CREATE | WatchFlags::MOVED_TO);
        }
        self.watch_own(&own.dir, WatchFlags::DELETE | WatchFlags::MOVED_FROM);
        self.watch_own(&own.cookies, WatchFlags::CREATE | WatchFlags::MOVED_TO);
        self.own = own;
    }

    fn watch_own(&mut self, relative: &str, flags: WatchFlags) {
        self.watch(relative, flags | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW);
    }

    /// Watches a directory, then lists it. In the opposite order, files created in between would be missed.
    fn cover_below(&mut self, plans: &PlansDir, relative: &str) {
        let own = if relative.is_empty() {
            WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF
        } else {
            WatchFlags::DONT_FOLLOW
        };
        if !self.watch(relative, CHANGES | own) {
            return;
        }
        if depth(relative) >= deepest(relative) {
            return;
        }
        let found = plans.directories(Path::new(relative));
        for name in &found.links {
            self.follow(plans, &join(relative, name));
        }
        for name in &found.names {
            self.cover_below(plans, &join(relative, name));
        }
        if !relative.is_empty() {
            for name in plans.hard_linked(Path::new(relative)) {
                self.watch_file(&join(relative, &name));
            }
        }
    }

    /// Watches a single file of a plan: one with several hard links, or a mount point.
    pub(crate) fn watch_file(&mut self, relative: &str) {
        let WatchEvent::Plan(plan) = event_for(relative) else { return };
        match inotify::add_watch(&*self.queue, self.root.join(relative), FILE_CHANGES) {
            Ok(watch) if self.dirs.contains_key(&watch) => {}
            Ok(watch) => {
                self.files.entry(watch).or_default().insert(plan);
            }
            Err(error) => self.note(error),
        }
    }

    /// Watches the target of a link as part of the plan that contains the link.
    fn follow(&mut self, plans: &PlansDir, link: &str) {
        if let WatchEvent::Plan(name) = event_for(link) {
            self.linked.insert(name);
        }
        let Some(behind) = plans.directory_behind(Path::new(link)) else { return };
        match inotify::add_watch(&*self.queue, &behind, CHANGES) {
            // A directory that is already watched under its own name returns the same watch.
            Ok(watch) => drop(self.dirs.entry(watch).or_insert_with(|| Arc::from(link))),
            Err(error) => self.note(error),
        }
    }

    fn watch(&mut self, relative: &str, flags: WatchFlags) -> bool {
        let path = self.root.join(relative);
        let watch = match inotify::add_watch(&*self.queue, &path, flags) {
            Ok(watch) => watch,
            Err(error) => {
                self.note(error);
                return false;
            }
        };
        let name: Arc<str> = Arc::from(relative);
        // A directory whose move was not reported yet still has its old name here.
        if let Some(old) = self.dirs.insert(watch, Arc::clone(&name))
            && old != name
            && self.watches.get(&old) == Some(&watch)
        {
            self.watches.remove(&old);
        }
        if let Some(before) = self.watches.insert(name, watch)
            && before != watch
        {
            self.dirs.remove(&before);
        }
        true
    }

    /// A missing path, or one that is no directory, needs no watch. Any other error makes the watch incomplete.
    fn note(&mut self, error: Errno) {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => {}
            Errno::NOSPC => {
                let why = "the system's limit of watched directories is reached (sysctl fs.inotify.max_user_watches)";
                self.coverage_gap = Some(why.to_owned());
            }
            other => self.coverage_gap = Some(format!("a directory cannot be watched: {other}")),
        }
    }

    /// Removes the watches on a directory and those below it.
    fn forget(&mut self, relative: &str) {
        let inside = format!("{relative}/");
        let names: Vec<_> = self
            .watches
            .range::<str, _>((std::ops::Bound::Included(relative), std::ops::Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(relative))
            .filter(|(name, _)| &***name == relative || name.starts_with(&inside))
            .map(|(name, watch)| (Arc::clone(name), *watch))
            .collect();
        for (name, watch) in names {
            self.watches.remove(&name);
            self.dirs.remove(&watch);
            // The watch of a deleted directory is already gone.
            inotify::remove_watch(&*self.queue, watch).ok();
        }
    }

    /// Interprets an event, and watches what is new.
    pub(crate) fn interpret(&mut self, plans: &PlansDir, event: &Raw) -> Option<WatchEvent> {
        if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.cover(plans);
            return Some(WatchEvent::Everything);
        }
        if let Some(of) = self.files.get(&event.watch) {
            let meaning = match of.first() {
                Some(plan) if of.len() == 1 => WatchEvent::Plan(plan.clone()),
                _ => WatchEvent::Everything,
            };
            if event.flags.contains(ReadFlags::IGNORED) {
                self.files.remove(&event.watch);
            }
            return Some(meaning);
        }
        let dir = Arc::clone(self.dirs.get(&event.watch)?);
        if event.flags.contains(ReadFlags::IGNORED) {
            self.dirs.remove(&event.watch);
            if self.watches.get(&dir) == Some(&event.watch) {
                self.watches.remove(&dir);
            }
            return [&self.own.dir, &self.own.cookies]
                .iter()
                .any(|it| ***it == *dir)
                .then_some(WatchEvent::RuntimeFiles);
        }
        if dir.is_empty() && event.flags.intersects(SELF_GONE) {
            return Some(WatchEvent::Gone);
        }
        let name = event.name.as_deref()?;
        match &*dir {
            it if it == self.own.cookies => return Some(WatchEvent::Cookie(name.to_owned())),
            it if it == self.own.dir => return is_needed(name).then_some(WatchEvent::RuntimeFiles),
            it if self.own.among().is_some_and(|(among, _)| among == it) => {
                return self.own.among().filter(|(_, own)| *own == name).map(|_| WatchEvent::RuntimeFiles);
            }
            "" if name == self.own.top() => {
                return event.flags.intersects(GONE | COME).then_some(WatchEvent::RuntimeFiles);
            }
            "" if name.starts_with('.') => return None,
            _ => {}
        }
        self.see_inside(plans, &dir, name, event.flags)
    }

    fn see_inside(
        &mut self,
        plans: &PlansDir,
        dir: &str,
        name: &str,
        flags: ReadFlags,
    ) -> Option<WatchEvent> {
        let path = join(dir, name);
        let is_dir = flags.contains(ReadFlags::ISDIR);
        if flags.intersects(GONE) {
            self.forget(&path);
        } else if is_dir && flags.intersects(COME) && depth(&path) <= deepest(&path) {
            self.cover_below(plans, &path);
        } else if flags.intersects(COME)
            && plans.directory_behind(Path::new(&path)).is_some_and(|it| it != self.root.join(dir))
        {
            self.follow(plans, &path);
        } else if !is_dir && path.ends_with(".md") && plans.is_hard_linked(Path::new(&path)) {
            self.watch_file(&path);
        }
        // A file next to the plans belongs to no plan, unless it is a link to one.
        let is_beside = dir.is_empty() && !is_dir && !flags.intersects(COME | GONE);
        (!is_beside).then(|| event_for(&path))
    }
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

fn depth(relative: &str) -> usize {
    relative.split('/').filter(|it| !it.is_empty()).count()
}

/// How deep directories matter: a plan's directory and one level in it; `_` directories contain plans.
fn deepest(relative: &str) -> usize {
    if relative.starts_with('_') { 3 } else { 2 }
}

#[cfg(test)]
mod tests;
