//! Overlays the files of a disk with the texts that are open in an editor.
//!
//! Code that reads through the overlay sees the texts as if they were saved. The overlay is for reading and for dry runs:
//! every call that would change something fails with `EROFS`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::file_system::{Against, Disk, DiskFile, FileKind, Lease, Open, Rename, Stat};
use super::fs_ops::is;
use super::plans_dir::PlansDir;

/// The age of an open text at the time of [`OpenTexts::put`], according to its stat. The text is complete, so it must not
/// look like a file that is being saved at this moment.
const AGE_NS: i128 = 10_000_000_000;

#[derive(Clone, Debug)]
struct OpenText {
    bytes: Arc<[u8]>,
    modified_ns: i128,
    /// The change time in the text's stat. It is a counter, so that no two texts have the same stat.
    changed_ns: i128,
}

/// The open texts, by absolute path. Their files need not exist. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct OpenTexts {
    by_path: Arc<BTreeMap<PathBuf, OpenText>>,
    n_put: i128,
}

impl OpenTexts {
    /// Sets the text of a file; `now_ns` is the disk's clock.
    pub fn put(&mut self, path: &Path, text: &str, now_ns: i128) {
        self.n_put += 1;
        let (modified_ns, changed_ns) = (now_ns - AGE_NS, self.n_put);
        let text = OpenText { bytes: text.as_bytes().into(), modified_ns, changed_ns };
        Arc::make_mut(&mut self.by_path).insert(path.to_path_buf(), text);
    }

    /// Removes the text of a file. Afterwards, reads return the file's own content.
    pub fn remove(&mut self, path: &Path) {
        if self.by_path.contains_key(path) {
            Arc::make_mut(&mut self.by_path).remove(path);
        }
    }

    fn below(&self, dir: &Path) -> impl Iterator<Item = (&Path, &OpenText)> {
        let inside =
            self.by_path.range(dir.to_path_buf()..).take_while(move |(path, _)| path.starts_with(dir));
        inside.map(|(path, text)| (path.as_path(), text)).filter(move |(path, _)| *path != dir)
    }
}

impl PlansDir {
    /// Returns this directory overlaid with `texts`. The result cannot be written to.
    #[must_use]
    pub fn with_open_texts(self, texts: OpenTexts) -> Self {
        let disk = Arc::new(Overlay { below: Arc::clone(&self.disk), texts });
        self.on(disk)
    }

    /// Returns a file's path relative to the plans directory, with symbolic links resolved. `None` if the file is not in
    /// the plans directory. The file need not exist. If neither the file nor its directory can be resolved, `path` is
    /// taken as it is.
    pub fn relative_of(&self, path: &Path) -> Option<PathBuf> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        let real = match self.disk.canonical(path) {
            Ok(real) => real,
            Err(_) => match self.disk.canonical(parent) {
                Ok(parent) => parent.join(name),
                Err(_) => path.to_path_buf(),
            },
        };
        real.strip_prefix(&self.root).ok().map(Path::to_path_buf)
    }
}

#[derive(Debug)]
struct Overlay {
    below: Arc<dyn Disk>,
    texts: OpenTexts,
}

fn read_only<T>() -> io::Result<T> {
    Err(Errno::ROFS.into())
}

impl Overlay {
    /// The stat of an open text: the stat of its file, if there is one, but with the length and the times of the text.
    fn stat(&self, path: &Path, text: &OpenText, below: Option<Stat>) -> Stat {
        let below = below
            .filter(|it| it.kind == FileKind::File)
            .unwrap_or_else(|| self.made_up(path, FileKind::File));
        let len = text.bytes.len() as u64;
        Stat { len, mtime_ns: text.modified_ns, ctime_ns: text.changed_ns, ..below }
    }

    /// The stat of a file or directory that exists only because of open texts.
    fn made_up(&self, path: &Path, kind: FileKind) -> Stat {
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
        let ino = u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default());
        let mode = if kind == FileKind::Dir { 0o755 } else { 0o644 };
        Stat { len: 0, mtime_ns: 0, ctime_ns: 0, ino, dev: 0, mode, nlink: 1, kind, uid: 0, gid: 0 }
    }

    /// The names of entries of `dir` that have an open text, or are directories with open texts below them.
    fn own_names(&self, dir: &Path) -> BTreeSet<OsString> {
        let name =
            |path: &Path| Some(path.strip_prefix(dir).ok()?.components().next()?.as_os_str().to_os_string());
        self.texts.below(dir).filter_map(|(path, _)| name(path)).collect()
    }
}

impl Disk for Overlay {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        match self.below.canonical(path) {
            Err(error) if is(&error, Errno::NOENT) && self.lstat(path).is_ok() => Ok(path.to_path_buf()),
            found => found,
        }
    }

    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        let below = self.below.lstat(path);
        if let Some(text) = self.texts.by_path.get(path) {
            return match below {
                // An editor saves only to regular files, so anything else keeps its own stat.
                Ok(stat) if stat.kind != FileKind::File => Ok(stat),
                found => Ok(self.stat(path, text, found.ok())),
            };
        }
        match below {
            Err(error) if is(&error, Errno::NOENT) && self.texts.below(path).next().is_some() => {
                Ok(self.made_up(path, FileKind::Dir))
            }
            found => found,
        }
    }

    fn mount(&self, path: &Path) -> io::Result<u64> {
        self.below.mount(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.read_link(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        let own = self.own_names(dir);
        if own.is_empty() {
            return self.below.list(dir);
        }
        let mut listed = match self.below.list(dir) {
            Err(error) if !is(&error, Errno::NOENT) => return Err(error),
            found => found.unwrap_or_default(),
        };
        listed.retain(|(name, _)| !own.contains(name));
        listed.extend(own.into_iter().map(|name| {
            let stat = self.lstat(&dir.join(&name));
            (name, stat)
        }));
        Ok(listed)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut own = self.own_names(dir);
        let mut names = match self.below.names(dir) {
            Err(error) if own.is_empty() || !is(&error, Errno::NOENT) => return Err(error),
            found => found.unwrap_or_default(),
        };
        own.retain(|it| !names.contains(it));
        names.extend(own);
        Ok(names)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        if how != Open::Read {
            return read_only();
        }
        match self.texts.by_path.get(path) {
            Some(text) => match self.lstat(path)? {
                stat if stat.kind == FileKind::File => {
                    Ok(Box::new(TextFile { bytes: Arc::clone(&text.bytes), stat }))
                }
                _ => self.below.open(path, how),
            },
            None => self.below.open(path, how),
        }
    }

    fn make_dir(&self, _: &Path, _: u32) -> io::Result<()> {
        read_only()
    }

    fn rename(&self, _: &Path, _: &Path, _: Rename) -> io::Result<()> {
        read_only()
    }

    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn set_mode(&self, _: &Path, _: u32) -> io::Result<()> {
        read_only()
    }

    fn lock(&self, _: &Path, _: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        read_only()
    }

    fn now_ns(&self) -> i128 {
        self.below.now_ns()
    }

    fn pause(&self, time: Duration) {
        self.below.pause(time);
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.below.random(bytes)
    }
}

/// An open text as a file.
#[derive(Debug)]
struct TextFile {
    bytes: Arc<[u8]>,
    stat: Stat,
}

impl DiskFile for TextFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(self.stat)
    }

    fn read(&self, limit: u64, _: u64) -> io::Result<Vec<u8>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.bytes[..self.bytes.len().min(limit)].to_vec())
    }

    fn write(&self, _: &[u8]) -> io::Result<()> {
        read_only()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        read_only()
    }

    fn copy_attributes_from(&self, _: &Stat, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync(&self) -> io::Result<()> {
        read_only()
    }

    fn lease(&self, _: Against) -> Lease {
        Lease::Unsupported
    }

    fn release(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    fn overlaid(open: &[(&str, &str)]) -> PlansDir {
        let machine = Machine::with(&[("/plans/a/plan.md", "# A\n"), ("/plans/a/step-1.md", "# One\n")]);
        let mut texts = OpenTexts::default();
        for (path, text) in open {
            texts.put(Path::new(path), text, 0);
        }
        machine.plans().with_open_texts(texts)
    }

    fn text(plans: &PlansDir, path: &str) -> String {
        let read = plans.read(Path::new(path)).map(|it| String::from_utf8(it.bytes).unwrap());
        read.unwrap_or_else(|error| error.code().to_owned())
    }

    #[test]
    fn an_open_text_counts_before_its_file() {
        let plans = overlaid(&[("/plans/a/step-1.md", "# Won\n"), ("/plans/a/step-2.md", "# Two\n")]);
        assert_eq!(text(&plans, "a/step-1.md"), "# Won\n");
        assert_eq!(text(&plans, "a/step-2.md"), "# Two\n");
        assert_eq!(text(&plans, "a/plan.md"), "# A\n");
        assert_eq!(text(&plans, "a/step-3.md"), "not-found");
        let mut names = plans.names(Path::new("a"));
        names.sort_unstable();
        assert_eq!(names, ["plan.md", "step-1.md", "step-2.md"]);
        let scanned = plans.scan_plan(Path::new("a")).entries;
        let lens: Vec<_> = scanned.iter().map(|it| it.stat.len).collect();
        assert_eq!(lens, [0, 4, 6, 6], "the directory, then its files");
    }

    #[test]
    fn each_text_has_a_stat_of_its_own() {
        let machine = Machine::with(&[("/plans/a/step-1.md", "# One\n")]);
        let mut texts = OpenTexts::default();
        let mut stats = Vec::new();
        for text in ["# Won\n", "# Two\n", "# Won\n"] {
            texts.put(Path::new("/plans/a/step-1.md"), text, 0);
            let plans = machine.plans().with_open_texts(texts.clone());
            stats.push(plans.read(Path::new("a/step-1.md")).unwrap().stat);
        }
        assert!(stats[0] != stats[1] && stats[1] != stats[2] && stats[0] != stats[2], "{stats:?}");
    }

    #[test]
    fn a_directory_is_there_as_soon_as_it_has_a_text() {
        let plans = overlaid(&[("/plans/new/plan.md", "# New\n")]);
        assert!(plans.is_dir(Path::new("new")));
        assert_eq!(plans.names(Path::new("new")), ["plan.md"]);
        assert!(plans.names(Path::new("")).contains(&"new".to_owned()));
        assert!(!overlaid(&[]).is_dir(Path::new("new")));
    }

    #[test]
    fn nothing_is_written() {
        let plans = overlaid(&[("/plans/a/step-1.md", "# Won\n")]);
        let disk = plans.disk();
        let step = Path::new("/plans/a/step-1.md");
        assert!(is(&disk.open(step, Open::InPlace).unwrap_err(), Errno::ROFS));
        assert!(is(&disk.remove(step).unwrap_err(), Errno::ROFS));
        assert!(is(&disk.lock(step, Duration::ZERO).unwrap_err(), Errno::ROFS));
        assert!(plans.lock(&mut || {}).is_err());
    }

    #[test]
    fn a_place_is_below_the_plans() {
        let plans = overlaid(&[]);
        let place = |path: &str| plans.relative_of(Path::new(path));
        assert_eq!(place("/plans/a/step-1.md"), Some(PathBuf::from("a/step-1.md")));
        assert_eq!(place("/plans/a/step-9.md"), Some(PathBuf::from("a/step-9.md")));
        assert_eq!(place("/elsewhere/x.md"), None);
    }
}
