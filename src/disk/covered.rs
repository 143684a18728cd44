//! Hashes the paths and contents of the files that a command names in a repository.
//!
//! Symbolic links are followed within the repository. For a link that leads out of it, only the target path is hashed.
//! When a directory is hashed, git's and planwatch's own directories are left out. So are the files of plans and steps,
//! because planwatch changes them often, for example when a step is claimed. A file that the command names directly is
//! always hashed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::file_system::{Disk, FileKind, Open};
use super::names::is_closed_name;
use super::plans_dir::PlansDir;

/// Limits per command, because hashing happens at every check of trust.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 << 20;
const MAX_DEPTH: usize = 64;

/// The maximum number of directories to which the words of a command may be relative.
const MAX_BASES: usize = 64;

#[derive(Debug)]
pub struct Covered<'a> {
    disk: &'a dyn Disk,
    /// The repository's root, without symbolic links.
    root: PathBuf,
    plans: PathBuf,
    /// The content hash of each path.
    found: BTreeMap<PathBuf, [u8; 32]>,
    directories: BTreeSet<PathBuf>,
    named: BTreeSet<String>,
    n_bytes: u64,
    fault: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// The same in every copy of the repository.
    pub hash: [u8; 32],
    /// The paths that were named, relative to the repository's root; directories end with `/`.
    pub named: Vec<String>,
    /// The reason, if something could not be hashed.
    pub fault: Option<String>,
}

impl PlansDir {
    pub fn covered(&self, repository: &Path) -> Covered<'_> {
        let root = self.disk.canonical(repository).unwrap_or_else(|_| repository.to_path_buf());
        Covered {
            disk: &*self.disk,
            root,
            plans: self.root.clone(),
            found: BTreeMap::new(),
            directories: BTreeSet::new(),
            named: BTreeSet::new(),
            n_bytes: 0,
            fault: None,
        }
    }
}

impl Covered<'_> {
    /// Returns the directories to which words may be relative: `first`, the repository's root, and each directory that
    /// a word names relative to one of these. Directories above the repository are included, because a command may
    /// change to such a directory and back.
    pub fn bases<'w>(
        &mut self,
        first: impl IntoIterator<Item = PathBuf>,
        words: &(impl Iterator<Item = &'w str> + Clone),
    ) -> Vec<PathBuf> {
        let mut bases: Vec<PathBuf> = Vec::new();
        let mut open: Vec<PathBuf> = first.into_iter().chain([self.root.clone()]).collect();
        while let Some(base) = open.pop() {
            if bases.contains(&base) {
                continue;
            }
            for word in words.clone() {
                let found = self.disk.canonical(&base.join(word)).ok();
                let leads_inside = |it: &PathBuf| it.starts_with(&self.root) || self.root.starts_with(it);
                open.extend(found.filter(|it| leads_inside(it) && self.kind(it) == Some(FileKind::Dir)));
            }
            bases.push(base);
            if bases.len() > MAX_BASES {
                self.fault("it names too many directories".to_owned());
                break;
            }
        }
        bases
    }

    /// Adds the files that a word names relative to one of `bases`, if they are in the repository.
    ///
    /// A command may make a directory, change to it, and name a file outside it:
    /// `mkdir -p build && cd build && ../c.sh`. The directory does not exist yet. Therefore each `..` of a word is also
    /// resolved lexically, and the result is added relative to `bases` and to each directory above them.
    pub fn add(&mut self, bases: &[PathBuf], word: &str, with_directories: bool) {
        if word.as_bytes().contains(&0) {
            return;
        }
        let rest = without_parents(Path::new(word));
        for base in bases {
            self.add_path(&base.join(word), with_directories);
            for above in base.ancestors() {
                rest.iter().for_each(|it| self.add_path(&above.join(it), with_directories));
            }
        }
    }

    fn add_path(&mut self, path: &Path, with_directories: bool) {
        self.links(path);
        // If nothing exists at this path, no file is added. If a file is created here later, the hash changes.
        let Ok(real) = self.disk.canonical(path) else { return };
        if !real.starts_with(&self.root) {
            return;
        }
        let kind = self.kind(&real);
        match kind {
            Some(FileKind::Dir) if with_directories => {
                self.named.insert(shown(&self.inside(&real), "/"));
                self.directory(&real, 0);
            }
            Some(FileKind::Dir) | None => {}
            Some(kind) => {
                self.named.insert(shown(&self.inside(&real), ""));
                self.file(&real, kind);
            }
        }
    }

    pub fn add_everything(&mut self) {
        let root = self.root.clone();
        self.named.insert("./".to_owned());
        self.directory(&root, 0);
    }

    pub fn end(self) -> Coverage {
        let mut hasher = blake3::Hasher::new();
        for (path, content) in &self.found {
            let path = path.as_os_str().as_bytes();
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path).update(content);
        }
        Coverage {
            hash: *hasher.finalize().as_bytes(),
            named: self.named.into_iter().collect(),
            fault: self.fault,
        }
    }

    fn fault(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        self.disk.lstat(path).ok().map(|it| it.kind)
    }

    fn inside(&self, real: &Path) -> PathBuf {
        real.strip_prefix(&self.root).unwrap_or(real).to_path_buf()
    }

    /// Adds the target path of each symbolic link through which `path` leads, if the link itself is in the repository. The
    /// target may be outside.
    fn links(&mut self, path: &Path) {
        for at in path.ancestors() {
            let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { continue };
            let Ok(parent) = self.disk.canonical(parent) else { continue };
            let link = parent.join(name);
            if parent.starts_with(&self.root) && self.kind(&link) == Some(FileKind::Symlink) {
                let target = self.disk.read_link(&link).unwrap_or_default();
                self.named.insert(shown(&self.inside(&link), ""));
                self.note(&link, content(b"link", target.as_os_str().as_bytes()));
            }
        }
    }

    /// Adds everything below a directory. Its path must not contain symbolic links.
    fn directory(&mut self, real: &Path, depth: usize) {
        if self.fault.is_some() || !self.directories.insert(real.to_path_buf()) {
            return;
        }
        let inside = self.inside(real);
        let Ok(names) = self.disk.names(real) else {
            return self.fault(format!("the directory `{}` cannot be read", shown(&inside, "")));
        };
        if depth > MAX_DEPTH {
            return self.fault(format!("`{}` is nested too deeply", shown(&inside, "")));
        }
        let is_plans = real == self.plans;
        let is_plan = real.parent().is_some_and(|it| it == self.plans || it == self.plans.join("_archive"));
        for name in names {
            let path = real.join(&name);
            if is_closed_name(&name) || is_plan && is_plan_text(&name) {
                continue;
            }
            match self.kind(&path) {
                Some(FileKind::Dir) => {
                    // The path of a directory is hashed even if the directory is empty, because a command may check
                    // whether it exists. The directories directly in the plans directory are an exception, because a new
                    // plan must not change the hash.
                    if !is_plans {
                        self.note(&path, content(b"directory", b""));
                    }
                    self.directory(&path, depth + 1);
                }
                Some(FileKind::Symlink) => self.link(&path, depth),
                Some(kind) => self.file(&path, kind),
                None => {}
            }
        }
    }

    /// Adds a link in a directory: its target path and, if the target is in the repository, the target's content.
    fn link(&mut self, path: &Path, depth: usize) {
        let target = self.disk.read_link(path).unwrap_or_default();
        self.note(path, content(b"link", target.as_os_str().as_bytes()));
        let Ok(real) = self.disk.canonical(path) else { return };
        let inside = self.inside(&real);
        if !real.starts_with(&self.root) || inside.iter().any(is_closed_name) {
            return;
        }
        match self.kind(&real) {
            Some(FileKind::Dir) => self.directory(&real, depth + 1),
            Some(kind) => self.file(&real, kind),
            None => {}
        }
    }

    fn file(&mut self, real: &Path, kind: FileKind) {
        if self.fault.is_some() || self.found.contains_key(&self.inside(real)) {
            return;
        }
        if kind != FileKind::File {
            return self.note(real, content(b"special", kind.word().as_bytes()));
        }
        match self.read(real) {
            Ok(Some(bytes)) => self.note(real, content(b"file", &bytes)),
            Ok(None) => self.fault(format!("it covers more than {} MiB of files", MAX_BYTES >> 20)),
            Err(_) => self.fault(format!("`{}` cannot be read", shown(&self.inside(real), ""))),
        }
    }

    /// Reads a file; `None` if [`MAX_BYTES`] would be exceeded.
    fn read(&mut self, real: &Path) -> io::Result<Option<Vec<u8>>> {
        let file = self.disk.open(real, Open::Read)?;
        let room = MAX_BYTES - self.n_bytes;
        let len = file.stat()?.len;
        if len > room {
            return Ok(None);
        }
        let bytes = file.read(room + 1, len)?;
        self.n_bytes += bytes.len() as u64;
        Ok((bytes.len() as u64 <= room).then_some(bytes))
    }

    fn note(&mut self, real: &Path, content: [u8; 32]) {
        if self.found.len() >= MAX_FILES && !self.found.contains_key(&self.inside(real)) {
            return self.fault(format!("it covers more than {MAX_FILES} files"));
        }
        self.found.insert(self.inside(real), content);
    }
}

/// A path with each `..` resolved lexically; `None` if it has no `..`.
fn without_parents(path: &Path) -> Option<PathBuf> {
    path.components().any(|it| it == Component::ParentDir).then(|| {
        let mut rest = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(rest.pop()),
                part => rest.push(part),
            }
        }
        rest
    })
}

fn content(kind: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(kind.len() as u64).to_le_bytes()).update(kind).update(bytes);
    *hasher.finalize().as_bytes()
}

/// Whether a name is that of a plan's or step's file.
fn is_plan_text(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b"plan.md" || name.starts_with(b"step-") && name.ends_with(b".md")
}

fn shown(path: &Path, end: &str) -> String {
    let path = path.to_string_lossy();
    if path.is_empty() { format!(".{end}") } else { format!("{path}{end}") }
}
