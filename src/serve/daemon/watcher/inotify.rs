//! What the file system tells of a plans directory: each directory is watched by itself.
//!
//! An event only says where to look. A new directory is watched first and listed then, so that what was put into it
//! before the watch was on is found; after lost events everything is listed again. Reading is no event: somebody who
//! greps through the plans wakes nobody.
//!
//! The kernel's queue (`inotify(7)`) is emptied by a thread of its own, so that it overflows only in a storm. It is one
//! queue for all directories: a cookie that came out of it came after every change before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::disk::PlansDir;
use crate::serve::daemon::watcher::event::{Look, Own, Sign, is_needed, look_at};

/// One event as the system tells it.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    watch: i32,
    flags: ReadFlags,
    name: Option<String>,
}

/// What an event looks like; a hint: nothing but the moment of looking depends on it.
pub(crate) fn sign(batch: &[Raw], at: usize) -> Sign {
    let is_pair = |came: usize| {
        let (Some(came), Some(went)) = (batch.get(came), batch.get(came + 1)) else { return false };
        came.flags.contains(ReadFlags::MOVED_TO)
            && went.flags.contains(ReadFlags::MOVED_FROM)
            && (came.watch, &came.name) == (went.watch, &went.name)
    };
    if is_pair(at) || at.checked_sub(1).is_some_and(is_pair) {
        return Sign::Exchanged;
    }
    let is_closed = batch.get(at).is_some_and(|it| it.flags.contains(ReadFlags::CLOSE_WRITE));
    if is_closed { Sign::Closed } else { Sign::Other }
}

impl Raw {
    /// Whether a directory or a Markdown file is gone for good, and was not moved.
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

/// Everything that can change a name or a content; reading, opening and closing what was read can not.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

/// What changes a file that is watched by itself.
const FILE_CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DONT_FOLLOW)
    // A directory that is named here by mistake keeps what it is watched for.
    .union(WatchFlags::MASK_ADD);

const COME: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO).union(ReadFlags::ATTRIB);
const GONE: ReadFlags = ReadFlags::DELETE.union(ReadFlags::MOVED_FROM);
const SELF_GONE: ReadFlags = ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT);

/// The watches on one plans directory.
#[derive(Debug)]
pub(crate) struct Eyes {
    queue: Arc<OwnedFd>,
    root: PathBuf,
    /// Directories by watch, relative to the root with `/`; the root is the empty one.
    dirs: HashMap<i32, Arc<str>>,
    watches: BTreeMap<Arc<str>, i32>,
    /// Plans by the watches on files of theirs that are also reached by a name elsewhere: what is saved under that is no
    /// event of the plan's directory.
    files: HashMap<i32, BTreeSet<String>>,
    /// Plans in which a symbolic link was met: what it leads to may change without an event here.
    linked: BTreeSet<String>,
    /// Why some directory is not watched.
    blind: Option<String>,
    own: Own,
}

impl Eyes {
    /// Opens a queue; nothing is watched before [`Self::cover`]. `tell` is called with what comes, until it says false.
    pub(crate) fn open(
        root: &Path,
        mut tell: impl FnMut(Vec<Raw>) -> bool + Send + 'static,
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
                    // Nothing more will come; whoever waits for a cookie learns it by waiting.
                    Err(_) => return,
                }
                if reader.is_buffer_empty() && !tell(std::mem::take(&mut batch)) {
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
            blind: None,
            own: Own::default(),
        })
    }

    /// Why some directory is not watched, after [`Self::cover`].
    pub(crate) fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }

    /// Plans to look at whenever anything changed, because links lead out of what is watched for them.
    pub(crate) fn linked(&self) -> &BTreeSet<String> {
        &self.linked
    }

    /// Watches everything that is not watched yet.
    pub(crate) fn cover(&mut self, plans: &PlansDir) {
        self.blind = None;
        self.linked.clear();
        self.watch_planwatchs(plans);
        self.cover_below(plans, "");
    }

    /// Watches planwatch's own directory again, after it was made anew.
    pub(crate) fn cover_own(&mut self, plans: &PlansDir) {
        let before = std::mem::take(&mut self.own);
        self.forget(&before.dir);
        self.watch_planwatchs(plans);
    }

    fn watch_planwatchs(&mut self, plans: &PlansDir) {
        let own = Own::of(plans);
        // Among others' it may be made again while what is around it stays.
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

    /// Watches a directory, then lists it: in this order, because what is made between the two would be missed.
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

    /// Watches a file of a plan by itself: one with several hard links, or that is a mount point.
    pub(crate) fn watch_file(&mut self, relative: &str) {
        let Look::Plan(plan) = look_at(relative) else { return };
        match inotify::add_watch(&*self.queue, self.root.join(relative), FILE_CHANGES) {
            Ok(watch) if self.dirs.contains_key(&watch) => {}
            Ok(watch) => {
                self.files.entry(watch).or_default().insert(plan);
            }
            Err(error) => self.note(error),
        }
    }

    /// Watches what a link leads to as a part of the plan that the link is in.
    fn follow(&mut self, plans: &PlansDir, link: &str) {
        if let Look::Plan(name) = look_at(link) {
            self.linked.insert(name);
        }
        let Some(behind) = plans.directory_behind(Path::new(link)) else { return };
        match inotify::add_watch(&*self.queue, &behind, CHANGES) {
            // A directory that is watched by its own name has the same watch.
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
        // A directory that was moved, and of which that is not told yet, is known by its old name.
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

    /// What is no directory, or not there any more, needs no watch; anything else makes blind.
    fn note(&mut self, error: Errno) {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => {}
            Errno::NOSPC => {
                let why = "the system's limit of watched directories is reached (sysctl fs.inotify.max_user_watches)";
                self.blind = Some(why.to_owned());
            }
            other => self.blind = Some(format!("a directory cannot be watched: {other}")),
        }
    }

    /// Ends the watches on a directory and those in it.
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
            // It is gone by itself if the directory is.
            inotify::remove_watch(&*self.queue, watch).ok();
        }
    }

    /// Says what an event means, and watches what is new.
    pub(crate) fn see(&mut self, plans: &PlansDir, event: &Raw) -> Option<Look> {
        if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.cover(plans);
            return Some(Look::Everything);
        }
        if let Some(of) = self.files.get(&event.watch) {
            let look = match of.first() {
                Some(plan) if of.len() == 1 => Look::Plan(plan.clone()),
                _ => Look::Everything,
            };
            if event.flags.contains(ReadFlags::IGNORED) {
                self.files.remove(&event.watch);
            }
            return Some(look);
        }
        let dir = Arc::clone(self.dirs.get(&event.watch)?);
        if event.flags.contains(ReadFlags::IGNORED) {
            self.dirs.remove(&event.watch);
            if self.watches.get(&dir) == Some(&event.watch) {
                self.watches.remove(&dir);
            }
            return [&self.own.dir, &self.own.cookies].iter().any(|it| ***it == *dir).then_some(Look::Own);
        }
        if dir.is_empty() && event.flags.intersects(SELF_GONE) {
            return Some(Look::Gone);
        }
        let name = event.name.as_deref()?;
        match &*dir {
            it if it == self.own.cookies => return Some(Look::Cookie(name.to_owned())),
            it if it == self.own.dir => return is_needed(name).then_some(Look::Own),
            it if self.own.among().is_some_and(|(among, _)| among == it) => {
                return self.own.among().filter(|(_, own)| *own == name).map(|_| Look::Own);
            }
            "" if name == self.own.top() => return event.flags.intersects(GONE | COME).then_some(Look::Own),
            "" if name.starts_with('.') => return None,
            _ => {}
        }
        self.see_inside(plans, &dir, name, event.flags)
    }

    fn see_inside(&mut self, plans: &PlansDir, dir: &str, name: &str, flags: ReadFlags) -> Option<Look> {
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
        // A file beside the plans is nobody's plan, unless it is a link to one.
        let is_beside = dir.is_empty() && !is_dir && !flags.intersects(COME | GONE);
        (!is_beside).then(|| look_at(&path))
    }
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

fn depth(relative: &str) -> usize {
    relative.split('/').filter(|it| !it.is_empty()).count()
}

/// How deep directories say something: a plan's own, and one level in it; `_` directories hold plans.
fn deepest(relative: &str) -> usize {
    if relative.starts_with('_') { 3 } else { 2 }
}

#[cfg(test)]
mod tests;
