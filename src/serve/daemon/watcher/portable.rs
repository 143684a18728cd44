//! What the file system tells of a plans directory where there is no inotify: the system watches the whole tree.
//!
//! The same as `eyes` for its caller. FSEvents and its like tell late and coarsely, so that an event is only ever the
//! name of a plan to look at, and doubt is a look at everything.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::disk::PlansDir;
use crate::serve::daemon::watcher::event::{Look, Own, Sign, is_needed, look_at};

/// One event as the system tells it: a path, or none if some were lost.
#[derive(Debug, Clone)]
pub(crate) struct Raw(Option<PathBuf>);

/// Here nothing tells an exchange from other changes.
pub(crate) fn sign(_batch: &[Raw], _at: usize) -> Sign {
    Sign::Other
}

impl Raw {
    /// Whether something is gone from where it was.
    pub(crate) fn is_deletion(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.symlink_metadata().is_err())
    }
}

/// The watch on one plans directory.
#[derive(Debug)]
pub(crate) struct Eyes {
    watcher: RecommendedWatcher,
    root: PathBuf,
    linked: BTreeSet<String>,
    /// Plans with files that are also reached by a name elsewhere, of which nothing tells here.
    files: BTreeSet<String>,
    blind: Option<String>,
    is_covered: bool,
    own: Own,
}

impl Eyes {
    /// Opens a source of events; nothing is watched before [`Self::cover`]. `tell` is called with what comes.
    pub(crate) fn open(
        root: &Path,
        mut tell: impl FnMut(Vec<Raw>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let pass = move |event: notify::Result<notify::Event>| {
            let raws = match event {
                Ok(event) if event.need_rescan() => vec![Raw(None)],
                Ok(event) if event.kind.is_access() => return,
                Ok(event) => event.paths.into_iter().map(|it| Raw(Some(it))).collect(),
                Err(_) => vec![Raw(None)],
            };
            // Whoever listened has ended, and this ends with it.
            tell(raws);
        };
        let watcher = notify::recommended_watcher(pass).map_err(io::Error::other)?;
        let (linked, files, blind) = (BTreeSet::new(), BTreeSet::new(), None);
        Ok(Self {
            watcher,
            root: root.to_path_buf(),
            linked,
            files,
            blind,
            is_covered: false,
            own: Own::default(),
        })
    }

    /// Why something is not watched, after [`Self::cover`].
    pub(crate) fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }

    /// Plans to look at whenever anything changed, because they hold links.
    pub(crate) fn linked(&self) -> &BTreeSet<String> {
        &self.linked
    }

    pub(crate) fn cover(&mut self, plans: &PlansDir) {
        if !self.is_covered {
            let watched = self.watcher.watch(&self.root, RecursiveMode::Recursive);
            self.is_covered = watched.is_ok();
            self.blind = watched.err().map(|it| it.to_string());
        }
        self.own = Own::of(plans);
        let tops = plans.directories(Path::new(""));
        self.linked = tops.links.into_iter().collect();
        let has_links = |it: &String| has_links(plans, it);
        self.linked.extend(tops.names.into_iter().filter(has_links));
        self.linked.extend(self.files.iter().cloned());
    }

    /// Notes a file of a plan that is a mount point.
    pub(crate) fn watch_file(&mut self, relative: &str) {
        if let Look::Plan(name) = look_at(relative) {
            self.files.insert(name.clone());
            self.linked.insert(name);
        }
    }

    /// The whole tree is watched, with what is made in it.
    pub(crate) fn cover_own(&mut self, plans: &PlansDir) {
        self.own = Own::of(plans);
    }

    /// Says what an event means.
    pub(crate) fn see(&mut self, plans: &PlansDir, event: &Raw) -> Option<Look> {
        let Some(path) = &event.0 else { return Some(Look::Everything) };
        if path == &self.root {
            return Some(if self.root.is_dir() { Look::Everything } else { Look::Gone });
        }
        let relative = path.strip_prefix(&self.root).ok()?.to_string_lossy().into_owned();
        if let Some(cookie) = relative.strip_prefix(&self.own.cookies).and_then(|it| it.strip_prefix('/')) {
            return Some(Look::Cookie(cookie.to_owned()));
        }
        match relative.strip_prefix(&self.own.dir) {
            Some("") => return Some(Look::Own),
            None if relative == self.own.top() => return Some(Look::Own),
            Some(rest) => return is_needed(rest.trim_start_matches('/')).then_some(Look::Own),
            None if relative.starts_with('.') => return None,
            None => {}
        }
        let look = look_at(&relative);
        if let Look::Plan(name) = &look
            && has_links(plans, name)
        {
            self.linked.insert(name.clone());
        }
        Some(look)
    }
}

/// Whether a plan's directory holds symbolic links, or files with several hard links.
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
    fn a_new_plan_is_pointed_to() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let plans = PlansDir::open(Arc::new(RealDisk), &root, None).unwrap();
        let (sender, seen) = mpsc::channel();
        let mut eyes = Eyes::open(&root, move |it| sender.send(it).is_ok()).unwrap();
        eyes.cover(&plans);
        assert_eq!((eyes.blind(), eyes.linked().len()), (None, 0));
        eyes.cover_own(&plans);
        eyes.watch_file("kept/step-1.md");
        eyes.cover(&plans);
        assert_eq!(eyes.linked().iter().collect::<Vec<_>>(), ["kept"]);
        std::fs::create_dir(root.join("auth")).unwrap();
        let expected = Look::Plan("auth".to_owned());
        let mut looks = std::iter::from_fn(|| seen.recv_timeout(Duration::from_secs(60)).ok()).flatten();
        assert!(looks.any(|it| eyes.see(&plans, &it).as_ref() == Some(&expected)));
        assert_eq!(eyes.see(&plans, &Raw(None)), Some(Look::Everything));
        assert_eq!(sign(&[Raw(None)], 0), Sign::Other);
        assert!(Raw(Some(root.join("gone"))).is_deletion() && !Raw(Some(root.join("auth"))).is_deletion());
        assert_eq!(eyes.see(&plans, &Raw(Some(root.join(".git/x")))), None);
        assert_eq!(
            eyes.see(&plans, &Raw(Some(root.join(".planwatch/cookies/7")))),
            Some(Look::Cookie("7".into()))
        );
    }
}
