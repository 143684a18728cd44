//! Watches a plans directory through the `notify` crate: on Linux with one watch per directory, elsewhere with one
//! recursive watch.
//!
//! An event only says what to read again. A new directory is watched first and listed afterwards, so that files
//! created before the watch are found. After lost events everything is watched and listed again. Opening and reading
//! files causes no events, so a `grep` through the plans does not wake the daemon.
//!
//! On Linux, one inotify instance (`inotify(7)`) watches the directories of the plans and that of the cookies. Its events
//! are in one queue, so the events of all changes before a cookie come before the event of the cookie. A thread of
//! `notify` empties that queue, so that it overflows only in extreme cases.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind, RenameMode};
use notify::{
    Config, ErrorKind, Event, EventKind, EventKindMask, PathOp, RecommendedWatcher, RecursiveMode,
    WatchPathConfig, Watcher as _,
};
use rustix::io::Errno;

use crate::disk::{FileId, Named, PlansDir};
use crate::serve::daemon::watcher::event::{RuntimePaths, WatchEvent, WriteKind, event_for, is_needed};

/// All events that can mean a changed name or changed content. Opening a file, reading it, and closing it without
/// writing are not included.
const CHANGES: EventKindMask = EventKindMask::CORE.union(EventKindMask::ACCESS_CLOSE);

/// In planwatch's own directory only removals and renames matter; its files are written all the time.
const REMOVALS: EventKindMask = EventKindMask::REMOVE.union(EventKindMask::MODIFY_NAME);

/// Cookies are in a directory named `COOKIES` in planwatch's own directory, which is usually `STATE` or a directory below
/// it. If the user cannot write to `STATE`, planwatch's own directory is in `.planwatch.by`. `is_old_cookie` does not
/// recognize cookies there, so the daemon also wakes when such a cookie is removed or closed.
const STATE: &str = ".planwatch";
const COOKIES: &str = "cookies";

/// How long to wait for the end of a source that is replaced.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The maximum number of events in a batch, not counting the first one.
const LONGEST_BATCH: usize = 1024;

/// After lost events, `Watcher::recover` sends events for the newest cookie and for this many cookies before it.
const MOST_COOKIES: u64 = 64;

/// One event of the system.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    /// The number of the source that reported it.
    source: u64,
    /// `None` if events were lost or the source reported an error.
    change: Option<(EventKind, PathBuf)>,
}

/// Guesses how the file of an event was written. The result only decides how soon the plan is indexed.
pub(crate) fn write_kind(batch: &[Raw], at: usize) -> WriteKind {
    let renamed = |at: usize, mode: RenameMode| match &batch.get(at)?.change {
        Some((EventKind::Modify(ModifyKind::Name(it)), path)) if *it == mode => Some(path),
        _ => None,
    };
    // An exchange is reported as a rename to a name, directly followed by a rename from the same name.
    let is_pair = |came: usize| {
        renamed(came, RenameMode::To).is_some_and(|it| renamed(came + 1, RenameMode::From) == Some(it))
    };
    if is_pair(at) || at.checked_sub(1).is_some_and(is_pair) {
        return WriteKind::Exchanged;
    }
    match batch.get(at).and_then(|it| it.change.as_ref()) {
        Some((EventKind::Access(AccessKind::Close(AccessMode::Write)), _)) => WriteKind::Closed,
        _ => WriteKind::Other,
    }
}

impl Raw {
    fn all((source, event): (u64, notify::Result<Event>)) -> Vec<Self> {
        match event {
            // The two halves of the rename were reported before.
            Ok(it) if it.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => Vec::new(),
            Ok(it) if !it.need_rescan() => {
                let raw = |path| Self { source, change: Some((it.kind, path)) };
                it.paths.into_iter().map(raw).collect()
            }
            _ => vec![Self { source, change: None }],
        }
    }

    /// Whether the event reports that a cookie was removed, written or closed. The daemon waits only for cookies that
    /// appear, so it does not wake for such an event.
    fn is_old_cookie(&self, root: &Path) -> bool {
        let Some((kind, path)) = &self.change else { return false };
        let dir = path.strip_prefix(root).ok().and_then(Path::parent);
        (is_content(*kind) || is_gone(*kind))
            && dir.is_some_and(|it| it.starts_with(STATE) && it.ends_with(COOKIES))
    }

    /// Whether a directory or a Markdown file was deleted. A move is not a deletion.
    pub(crate) fn is_deletion(&self) -> bool {
        match &self.change {
            Some((EventKind::Remove(RemoveKind::Folder), _)) => true,
            Some((EventKind::Remove(_), path)) => path.extension().is_some_and(|it| it == "md"),
            _ => false,
        }
    }
}

#[cfg(test)]
impl Raw {
    pub(crate) fn overflow() -> Self {
        Self { source: u64::MAX, change: None }
    }

    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.change.as_ref().is_some_and(|(_, path)| path.file_name().is_some_and(|it| it == name))
    }
}

/// A set of watches whose events come in order.
#[derive(Debug)]
struct Source {
    watcher: RecommendedWatcher,
    /// Closed when the source has ended.
    ended: Receiver<()>,
}

type Reported = (u64, notify::Result<Event>);

impl Source {
    fn open(sender: &Sender<Reported>, number: u64, kinds: EventKindMask) -> io::Result<Self> {
        let sender = sender.clone();
        let (is_open, ended) = channel();
        let pass = move |event| {
            let _held = &is_open;
            // If the receiver is gone, the daemon is ending.
            sender.send((number, event)).ok();
        };
        let config = Config::default().with_event_kinds(kinds).with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(pass, config).map_err(io::Error::other)?;
        Ok(Self { watcher, ended })
    }

    /// Ends the source, so that its watches no longer count towards the system's limit.
    fn end(self) {
        drop(self.watcher);
        self.ended.recv_timeout(LONGEST_END).ok();
    }

    /// Applies all operations that can be applied, and returns the errors.
    fn apply(&mut self, mut ops: Vec<PathOp>) -> Vec<notify::Error> {
        let mut errors = Vec::new();
        while !ops.is_empty() {
            let Err(failed) = self.watcher.update_paths(ops) else { break };
            // The remaining operations would fail in the same way.
            let is_last = failed.origin.is_none() || matches!(failed.source.kind, ErrorKind::MaxFilesWatch);
            errors.push(failed.source);
            ops = if is_last { Vec::new() } else { failed.remaining };
        }
        errors
    }
}

/// The watches on one plans directory.
#[derive(Debug)]
pub(crate) struct Watcher {
    root: PathBuf,
    is_recursive: bool,
    sender: Sender<Reported>,
    /// The number of the current sources. Events of sources with a lower number are ignored.
    number: u64,
    plans: Source,
    /// The source of removals in planwatch's own directory; `None` if the watch of the plans is recursive.
    removals: Option<Source>,
    /// Whether events were lost and the sources have not been replaced yet.
    is_stale: bool,
    /// The hard-linked files. Each has its own watch, because a save through another name of the file causes no event in
    /// the plan's directory.
    files: BTreeMap<String, FileId>,
    /// The plans that contain each hard-linked file. `notify` reports only one of the file's names.
    sharing: HashMap<FileId, BTreeSet<String>>,
    /// The directories that are watched because of a symbolic link, each with the link.
    target_directories: HashMap<PathBuf, String>,
    /// Plans that may change without an event. Such a plan contains a symbolic link or, if the watch is recursive, a
    /// hard-linked file or a mount point.
    linked: BTreeSet<String>,
    /// Plans that contain a mount point; empty unless the watch is recursive.
    shared: BTreeSet<String>,
    /// Why the watch is incomplete.
    coverage_gap: Option<String>,
    own: RuntimePaths,
}

impl Watcher {
    /// Opens the sources; nothing is watched before [`Self::cover`]. `on_events` receives each batch until it returns
    /// false.
    pub(crate) fn open(
        root: &Path,
        on_events: impl FnMut(Vec<Raw>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        Self::open_as(root, !cfg!(target_os = "linux"), on_events)
    }

    fn open_as(
        root: &Path,
        is_recursive: bool,
        mut on_events: impl FnMut(Vec<Raw>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = channel::<Reported>();
        let own_root = root.to_path_buf();
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            while let Ok(first) = receiver.recv() {
                let more = receiver.try_iter().take(LONGEST_BATCH);
                let batch = std::iter::once(first).chain(more).flat_map(Raw::all);
                let batch: Vec<_> = batch.filter(|it| !it.is_old_cookie(&own_root)).collect();
                if !batch.is_empty() && !on_events(batch) {
                    return;
                }
            }
        })?;
        let plans = Source::open(&sender, 0, CHANGES)?;
        let removals = if is_recursive { None } else { Some(Source::open(&sender, 0, REMOVALS)?) };
        Ok(Self {
            root: root.to_path_buf(),
            is_recursive,
            sender,
            number: 0,
            plans,
            removals,
            is_stale: false,
            files: BTreeMap::new(),
            sharing: HashMap::new(),
            target_directories: HashMap::new(),
            linked: BTreeSet::new(),
            shared: BTreeSet::new(),
            coverage_gap: None,
            own: RuntimePaths::default(),
        })
    }

    /// Why the watch is incomplete, after [`Self::cover`].
    pub(crate) fn coverage_gap(&self) -> Option<&str> {
        self.coverage_gap.as_deref()
    }

    /// Plans that may change without an event. They are indexed again whenever any plan is indexed.
    pub(crate) fn linked(&self) -> &BTreeSet<String> {
        &self.linked
    }

    /// Adds all missing watches. After lost events, first replaces the sources.
    pub(crate) fn cover(&mut self, plans: &PlansDir) {
        self.coverage_gap = None;
        self.linked.clone_from(&self.shared);
        if self.is_stale
            && let Err(error) = self.replace_sources()
        {
            self.coverage_gap = Some(format!("the system reports no events: {error}"));
        }
        self.watch_own(plans, false);
        self.cover_below(plans, "");
    }

    /// Watches planwatch's own directory again after it was recreated.
    pub(crate) fn cover_own(&mut self, plans: &PlansDir) {
        self.watch_own(plans, true);
    }

    /// Replaces the sources with new ones that watch nothing yet. After lost events another directory may be at a watched
    /// path, and `notify` does not set a second watch on a path.
    fn replace_sources(&mut self) -> io::Result<()> {
        let number = self.number + 1;
        let plans = Source::open(&self.sender, number, CHANGES)?;
        let removals = Source::open(&self.sender, number, REMOVALS)?;
        std::mem::replace(&mut self.plans, plans).end();
        self.removals.replace(removals).into_iter().for_each(Source::end);
        self.number = number;
        self.is_stale = false;
        self.files.clear();
        self.sharing.clear();
        self.target_directories.clear();
        Ok(())
    }

    /// Watches planwatch's own directory. `is_new` means that another directory may be at the same path now.
    fn watch_own(&mut self, plans: &PlansDir, is_new: bool) {
        let own = RuntimePaths::of(plans);
        let before = std::mem::replace(&mut self.own, own.clone());
        if self.is_recursive {
            return;
        }
        let is_new = is_new || before != own;
        // If `.planwatch` contains the state of another user, planwatch uses a deeper directory. That directory may be
        // recreated while its parent directory stays, so the parent directory is watched, too.
        let among = own.among().map(|it| it.0);
        for relative in among.into_iter().chain([own.cookies.as_str()]) {
            self.watch(vec![self.root.join(relative)], is_new);
        }
        let mut ops = vec![watch_op(self.root.join(&own.dir), RecursiveMode::NonRecursive)];
        if is_new {
            let old = [&before.dir, &own.dir].map(|it| PathOp::unwatch(self.root.join(it)));
            ops.splice(0..0, old);
        }
        let errors = self.removals.as_mut().map(|it| it.apply(ops)).unwrap_or_default();
        errors.iter().for_each(|it| self.note(it));
    }

    /// Watches a directory and those below it, level by level. A directory is watched before it is listed. In the
    /// opposite order, files created in between would be missed.
    fn cover_below(&mut self, plans: &PlansDir, top: &str) {
        let mut level = vec![top.to_owned()];
        while !level.is_empty() {
            if !self.is_recursive || top.is_empty() {
                let path = |it: &String| if it.is_empty() { self.root.clone() } else { self.root.join(it) };
                let is_covered = |it: &&String| !self.is_recursive || it.is_empty();
                let paths = level.iter().filter(is_covered).map(path).collect();
                self.watch(paths, false);
            }
            let mut next = Vec::new();
            for dir in level.iter().filter(|it| depth(it) < deepest(it)) {
                let found = plans.directories(Path::new(dir));
                for name in &found.links {
                    self.follow(plans, &join(dir, name));
                }
                next.extend(found.names.iter().map(|it| join(dir, it)));
                // If `top` is the plans directory, the daemon indexes everything and calls `watch_hard_links` afterwards.
                if !top.is_empty() {
                    for (name, id) in plans.hard_linked(Path::new(dir)) {
                        self.watch_hard_link(&join(dir, &name), id);
                    }
                }
            }
            level = next;
        }
    }

    /// Watches a path that has become a mount point, and watches again what was watched below it. If the watch is
    /// recursive, only records that the plan may change without an event.
    pub(crate) fn watch_file(&mut self, relative: &str) {
        if self.is_recursive {
            if let WatchEvent::Plan(name) = event_for(relative) {
                self.shared.insert(name.clone());
                self.linked.insert(name);
            }
            return;
        }
        let path = self.root.join(relative);
        let watched = self.plans.watcher.watched_paths().unwrap_or_default().into_iter().map(|it| it.0);
        let hidden = watched.filter(|it| it.starts_with(&path) && *it != path);
        let paths = std::iter::once(path.clone()).chain(hidden).collect();
        self.watch(paths, true);
    }

    /// Watches each of these files that is hard-linked now. Returns the plans of the files that were not watched before.
    pub(crate) fn watch_hard_links(&mut self, plans: &PlansDir, files: &[String]) -> BTreeSet<String> {
        let watched = files.iter().filter_map(|relative| match plans.named(Path::new(relative)) {
            Named::HardLink(id) => self.watch_hard_link(relative, id),
            _ => None,
        });
        watched.collect()
    }

    /// Returns the file's plan if the file was not watched before. If the watch is recursive, returns the plan if it was not
    /// in `linked` before.
    fn watch_hard_link(&mut self, relative: &str, id: FileId) -> Option<String> {
        let WatchEvent::Plan(plan) = event_for(relative) else { return None };
        if self.is_recursive {
            return self.linked.insert(plan.clone()).then_some(plan);
        }
        if self.files.get(relative) == Some(&id) {
            return None;
        }
        let is_other = self.files.insert(relative.to_owned(), id).is_some();
        self.sharing.entry(id).or_default().insert(plan.clone());
        self.watch(vec![self.root.join(relative)], is_other);
        Some(plan)
    }

    /// Watches the target of a link as part of the plan that contains the link.
    fn follow(&mut self, plans: &PlansDir, link: &str) {
        if let WatchEvent::Plan(name) = event_for(link) {
            self.linked.insert(name);
        }
        if self.is_recursive {
            return;
        }
        let Some(directory) = plans.directory_of_target(Path::new(link)) else { return };
        self.target_directories.insert(directory.clone(), link.to_owned());
        self.watch(vec![directory], false);
    }

    /// Watches paths. With `is_new`, paths that are watched already are watched again, because another file may be there
    /// now.
    fn watch(&mut self, paths: Vec<PathBuf>, is_new: bool) {
        let mode = if self.is_recursive { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        let ops = paths.into_iter().flat_map(|path| {
            let before = is_new.then(|| PathOp::unwatch(path.clone()));
            before.into_iter().chain([watch_op(path, mode)])
        });
        let errors = self.plans.apply(ops.collect());
        errors.iter().for_each(|it| self.note(it));
    }

    /// Handles an error of a watch. A path that does not lead to a file or directory needs no watch. Any other error is
    /// recorded as a gap.
    fn note(&mut self, error: &notify::Error) {
        let is_missing = |it: &io::Error| {
            matches!(Errno::from_io_error(it), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
        };
        match &error.kind {
            ErrorKind::PathNotFound | ErrorKind::WatchNotFound => {}
            ErrorKind::Io(it) if is_missing(it) => {}
            ErrorKind::MaxFilesWatch => {
                let why = "the system's limit of watched directories is reached (sysctl fs.inotify.max_user_watches)";
                self.coverage_gap = Some(why.to_owned());
            }
            _ => self.coverage_gap = Some(format!("a directory cannot be watched: {error}")),
        }
    }

    /// Covers everything again after lost events.
    ///
    /// The lost events may include events of cookies. The newest cookie that exists now, and all cookies before it, were
    /// created before the daemon indexes everything again, so this function sends events for them.
    fn recover(&mut self, plans: &PlansDir) {
        self.is_stale = !self.is_recursive;
        self.cover(plans);
        let Some(last) = plans.cookies().iter().filter_map(|it| it.parse::<u64>().ok()).max() else { return };
        for cookie in last.saturating_sub(MOST_COOKIES)..=last {
            let path = self.root.join(&self.own.cookies).join(cookie.to_string());
            let event = Event::new(EventKind::Create(CreateKind::File)).add_path(path);
            self.sender.send((self.number, Ok(event))).ok();
        }
    }

    /// Interprets an event, and watches what is new.
    pub(crate) fn interpret(&mut self, plans: &PlansDir, event: &Raw) -> Option<WatchEvent> {
        if event.source < self.number {
            return None;
        }
        let Some((kind, path)) = &event.change else {
            self.recover(plans);
            return Some(WatchEvent::Everything);
        };
        let relative = path.strip_prefix(&self.root).ok()?.to_string_lossy().into_owned();
        if relative.is_empty() {
            return self.of_root(*kind);
        }
        let is_content = is_content(*kind);
        let (dir, name) = relative.rsplit_once('/').unwrap_or(("", &relative));
        let is_runtime = match dir {
            _ if relative == self.own.cookies || relative == self.own.dir || relative == self.own.top() => {
                true
            }
            it if it == self.own.cookies => {
                let has_come = !is_content && !is_gone(*kind);
                return has_come.then(|| WatchEvent::Cookie(name.to_owned()));
            }
            it if it == self.own.dir => is_needed(name),
            it if self.own.among().is_some_and(|(among, _)| among == it) => {
                self.own.among().is_some_and(|(_, own)| own == name)
            }
            _ if relative.starts_with('.') => {
                return self.target_directories.get(path.parent()?).map(|link| event_for(link));
            }
            _ => return self.see_inside(plans, &relative, is_content),
        };
        (is_runtime && !is_content).then_some(WatchEvent::RuntimeFiles)
    }

    fn of_root(&self, kind: EventKind) -> Option<WatchEvent> {
        match self.is_recursive {
            false => is_gone(kind).then_some(WatchEvent::Gone),
            // Systems with recursive watches do not report exactly what happened to the root.
            true if self.root.is_dir() => Some(WatchEvent::Everything),
            true => Some(WatchEvent::Gone),
        }
    }

    /// Interprets an event about the plans. The file that has the name now may be newer than the event.
    fn see_inside(&mut self, plans: &PlansDir, relative: &str, is_content: bool) -> Option<WatchEvent> {
        // The content of a file directly in the plans directory belongs to no plan.
        if is_content && !relative.contains('/') {
            return None;
        }
        if !is_content || relative.ends_with(".md") {
            match plans.named(Path::new(relative)) {
                Named::HardLink(id) => drop(self.watch_hard_link(relative, id)),
                _ if is_content => {}
                Named::Directory if depth(relative) <= deepest(relative) => self.cover_below(plans, relative),
                Named::Link => self.follow(plans, relative),
                _ => self.forget(relative),
            }
        }
        let shared = self.files.get(relative).and_then(|it| self.sharing.get(it));
        if shared.is_some_and(|it| it.len() > 1) {
            return Some(WatchEvent::Everything);
        }
        let event = event_for(relative);
        if self.is_recursive
            && let WatchEvent::Plan(name) = &event
            && has_links(plans, name)
        {
            self.linked.insert(name.clone());
        }
        Some(event)
    }

    /// Forgets hard-linked files at or below a path. `notify` has removed their watches.
    fn forget(&mut self, relative: &str) {
        if !self.files.is_empty() {
            self.files.retain(|it, _| {
                it.strip_prefix(relative).is_none_or(|rest| !rest.is_empty() && !rest.starts_with('/'))
            });
        }
    }
}

fn watch_op(path: PathBuf, mode: RecursiveMode) -> PathOp {
    PathOp::Watch(path, WatchPathConfig::new(mode).with_dereference_symlinks(false))
}

/// Whether an event is about a file's content, not about its name or attributes.
fn is_content(kind: EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Data(_)) | EventKind::Access(_))
}

fn is_gone(kind: EventKind) -> bool {
    matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)))
}

/// Whether a plan's directory contains symbolic links or hard-linked files.
fn has_links(plans: &PlansDir, name: &str) -> bool {
    let directory = Path::new(name);
    !plans.directories(directory).links.is_empty() || !plans.hard_linked(directory).is_empty()
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

fn depth(relative: &str) -> usize {
    relative.split('/').filter(|it| !it.is_empty()).count()
}

/// The depth down to which directories are watched: a plan's directory and its subdirectories. If the name of a top
/// directory begins with `_`, that directory contains the plans' directories.
fn deepest(relative: &str) -> usize {
    if relative.starts_with('_') { 3 } else { 2 }
}

#[cfg(test)]
mod tests;
