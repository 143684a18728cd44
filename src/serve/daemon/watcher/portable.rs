//! Watches a plans directory where there is no inotify, with one recursive watch of the `notify` crate.
//!
//! It has the same interface as `inotify`. FSEvents and similar systems report late and imprecisely, so an event only
//! names a plan to reread, and anything unclear means a full scan.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::disk::PlansDir;
use crate::serve::daemon::watcher::event::{RuntimePaths, WatchEvent, WriteKind, event_for, is_needed};

/// One event of the system: a path, or `None` if events were lost.
#[derive(Debug, Clone)]
pub(crate) struct Raw(Option<PathBuf>);

/// Exchanges cannot be recognized here.
pub(crate) fn write_kind(_batch: &[Raw], _at: usize) -> WriteKind {
    WriteKind::Other
}

impl Raw {
    /// Whether the path no longer exists.
    pub(crate) fn is_deletion(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.symlink_metadata().is_err())
    }
}

/// The watch on one plans directory.
#[derive(Debug)]
pub(crate) struct Watcher {
    watcher: RecommendedWatcher,
    root: PathBuf,
    linked: BTreeSet<String>,
    /// Plans with files that also have a name elsewhere; changes through it are not reported.
    files: BTreeSet<String>,
    coverage_gap: Option<String>,
    is_covered: bool,
    own: RuntimePaths,
}

impl Watcher {
    /// Opens a source of events; nothing is watched before [`Self::cover`]. `on_events` receives each batch.
    pub(crate) fn open(
        root: &Path,
        mut on_events: impl FnMut(Vec<Raw>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let pass = move |event: notify::Result<notify::Event>| {
            let raws = match event {
                Ok(event) if event.need_rescan() => vec![Raw(None)],
                Ok(event) if event.kind.is_access() => return,
                Ok(event) => event.paths.into_iter().map(|it| Raw(Some(it))).collect(),
                Err(_) => vec![Raw(None)],
            };
            // If the receiver is gone, the daemon is ending.
            on_events(raws);
        };
        let watcher = notify::recommended_watcher(pass).map_err(io::Error::other)?;
        let (linked, files, coverage_gap) = (BTreeSet::new(), BTreeSet::new(), None);
        Ok(Self {
            watcher,
            root: root.to_path_buf(),
            linked,
            files,
            coverage_gap,
            is_covered: false,
            own: RuntimePaths::default(),
        })
    }

    /// Why the watch is incomplete, after [`Self::cover`].
    pub(crate) fn coverage_gap(&self) -> Option<&str> {
        self.coverage_gap.as_deref()
    }

    /// Plans to reread with every change, because they contain links.
    pub(crate) fn linked(&self) -> &BTreeSet<String> {
        &self.linked
    }

    pub(crate) fn cover(&mut self, plans: &PlansDir) {
        if !self.is_covered {
            let watched = self.watcher.watch(&self.root, RecursiveMode::Recursive);
            self.is_covered = watched.is_ok();
            self.coverage_gap = watched.err().map(|it| it.to_string());
        }
        self.own = RuntimePaths::of(plans);
        let tops = plans.directories(Path::new(""));
        self.linked = tops.links.into_iter().collect();
        let has_links = |it: &String| has_links(plans, it);
        self.linked.extend(tops.names.into_iter().filter(has_links));
        self.linked.extend(self.files.iter().cloned());
    }

    /// Adds a file of a plan that is a mount point.
    pub(crate) fn watch_file(&mut self, relative: &str) {
        if let WatchEvent::Plan(name) = event_for(relative) {
            self.files.insert(name.clone());
            self.linked.insert(name);
        }
    }

    /// The recursive watch covers recreated directories.
    pub(crate) fn cover_own(&mut self, plans: &PlansDir) {
        self.own = RuntimePaths::of(plans);
    }

    /// Interprets an event.
    pub(crate) fn interpret(&mut self, plans: &PlansDir, event: &Raw) -> Option<WatchEvent> {
        let Some(path) = &event.0 else { return Some(WatchEvent::Everything) };
        if path == &self.root {
            return Some(if self.root.is_dir() { WatchEvent::Everything } else { WatchEvent::Gone });
        }
        let relative = path.strip_prefix(&self.root).ok()?.to_string_lossy().into_owned();
        if let Some(cookie) = relative.strip_prefix(&self.own.cookies).and_then(|it| it.strip_prefix('/')) {
            return Some(WatchEvent::Cookie(cookie.to_owned()));
        }
        match relative.strip_prefix(&self.own.dir) {
            Some("") => return Some(WatchEvent::RuntimeFiles),
            None if relative == self.own.top() => return Some(WatchEvent::RuntimeFiles),
            Some(rest) => return is_needed(rest.trim_start_matches('/')).then_some(WatchEvent::RuntimeFiles),
            None if relative.starts_with('.') => return None,
            None => {}
        }
        let event = event_for(&relative);
        if let WatchEvent::Plan(name) = &event
            && has_links(plans, name)
        {
            self.linked.insert(name.clone());
        }
        Some(event)
    }
}

/// Whether a plan's directory contains symbolic links or hard-linked files.
fn has_links(plans: &PlansDir, name: &str) -> bool {
    let directory = Path::new(name);
    !plans.directories(directory).links.is_empty() || !plans.hard_linked(directory).is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn a_new_plan_causes_an_event() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let plans = PlansDir::open(Arc::new(RealDisk), &root, None).unwrap();
        let (sender, seen) = mpsc::channel();
        let mut watcher = Watcher::open(&root, move |it| sender.send(it).is_ok()).unwrap();
        watcher.cover(&plans);
        assert_eq!((watcher.coverage_gap(), watcher.linked().len()), (None, 0));
        watcher.cover_own(&plans);
        watcher.watch_file("kept/step-1.md");
        watcher.cover(&plans);
        assert_eq!(watcher.linked().iter().collect::<Vec<_>>(), ["kept"]);
        std::fs::create_dir(root.join("auth")).unwrap();
        let expected = WatchEvent::Plan("auth".to_owned());
        let mut events = std::iter::from_fn(|| seen.recv_timeout(Duration::from_secs(60)).ok()).flatten();
        assert!(events.any(|it| watcher.interpret(&plans, &it).as_ref() == Some(&expected)));
        assert_eq!(watcher.interpret(&plans, &Raw(None)), Some(WatchEvent::Everything));
        assert_eq!(write_kind(&[Raw(None)], 0), WriteKind::Other);
        assert!(Raw(Some(root.join("gone"))).is_deletion() && !Raw(Some(root.join("auth"))).is_deletion());
        assert_eq!(watcher.interpret(&plans, &Raw(Some(root.join(".git/x")))), None);
        assert_eq!(
            watcher.interpret(&plans, &Raw(Some(root.join(".planwatch/cookies/7")))),
            Some(WatchEvent::Cookie("7".into()))
        );
    }
}
