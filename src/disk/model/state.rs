//! The content of the model's file system: inodes, visible names, and durable names.
//!
//! Also models what survives a power cut. Does not count calls or inject faults.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::io::Errno;

use crate::disk::file_system::{FileKind, Rename, Stat};
use crate::disk::names::is_runtime;

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub kind: FileKind,
    /// Shared, because tests copy the state thousands of times.
    pub live: Arc<[u8]>,
    /// The content when it was last made durable; `None` if it never was.
    durable: Option<Arc<[u8]>>,
    mode: u32,
    uid: u32,
    mtime: i128,
    ctime: i128,
}

type Name = (u64, OsString);

#[derive(Clone, Debug)]
pub(super) struct State {
    pub clock: i128,
    /// The effective user, read only once, because each part of each path is checked against it.
    user: u32,
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<Name, u64>,
    durable: BTreeMap<Name, u64>,
    /// Changes of names that are not durable yet, oldest first; each is atomic.
    pending: Vec<Vec<(Name, Option<u64>)>>,
}

/// How much of a file's unsynced content survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsynced {
    All,
    Half,
    Nothing,
}

const ROOT: u64 = 1;

impl State {
    pub(super) fn new() -> Self {
        let clock = 1_000_000_000_000;
        let user = rustix::process::geteuid().as_raw();
        let root = Inode {
            kind: FileKind::Dir,
            live: Arc::default(),
            durable: None,
            mode: 0o755,
            uid: user,
            mtime: clock,
            ctime: clock,
        };
        Self {
            clock,
            user,
            inodes: BTreeMap::from([(ROOT, root)]),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    /// Creates a durable file, for the start of a test.
    pub(super) fn plant(&mut self, path: &str, bytes: &[u8]) {
        let path = Path::new(path);
        for above in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if self.find(above).is_err() {
                self.create(above, FileKind::Dir, 0o755).unwrap();
            }
        }
        let ino = self.create(path, FileKind::File, 0o644).unwrap();
        self.write(ino, bytes.to_vec());
        self.settle();
    }

    /// Creates or replaces a file, and creates its directory if it is missing, as some editors do.
    pub(super) fn save(&mut self, path: &str, bytes: &[u8]) {
        let (path, fresh) = (Path::new(path), format!("{path}.tmp"));
        let dir = path.parent().unwrap();
        if self.find(dir).is_err() {
            self.create(dir, FileKind::Dir, 0o755).unwrap();
            self.sync_names(self.find(dir.parent().unwrap()).unwrap());
        }
        let ino = self.create(Path::new(&fresh), FileKind::File, 0o644).unwrap();
        self.write(ino, bytes.to_vec());
        self.rename(Path::new(&fresh), path, Rename::Replace).unwrap();
        self.sync(ino);
        self.sync_names(self.find(dir).unwrap());
    }

    /// Creates a durable symbolic link, for the start of a test.
    pub(super) fn plant_link(&mut self, path: &str, target: &str) {
        let ino = self.create(Path::new(path), FileKind::Symlink, 0o777).unwrap();
        self.write(ino, target.into());
        self.settle();
    }

    /// Makes everything durable.
    pub(super) fn settle(&mut self) {
        self.durable = self.names.clone();
        self.pending.clear();
        for inode in self.inodes.values_mut() {
            inode.durable = Some(inode.live.clone());
        }
    }

    /// How many name changes a power cut may revert.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether a power cut may remove bytes.
    pub(super) fn has_unsynced(&self) -> bool {
        self.inodes.values().any(|it| it.kind == FileKind::File && it.durable.as_ref() != Some(&it.live))
    }

    /// The state after a power cut that preserved the first `names` pending changes.
    pub(super) fn after_cut(&self, names: usize, unsynced: Unsynced) -> Self {
        let mut next = self.clone();
        for change in &self.pending[..names] {
            apply(&mut next.durable, change);
        }
        next.names = next.durable.clone();
        next.pending.clear();
        for inode in next.inodes.values_mut() {
            let durable = inode.durable.take().unwrap_or_default();
            if inode.live != durable {
                inode.live = match unsynced {
                    Unsynced::All => inode.live.clone(),
                    Unsynced::Half => inode.live[..inode.live.len() / 2].into(),
                    Unsynced::Nothing => durable,
                };
            }
            inode.durable = Some(inode.live.clone());
        }
        next.clock += 10_000_000_000;
        next
    }

    /// A hash of everything that a later process can see, with the clock in whole seconds.
    pub(super) fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(self.clock / 1_000_000_000).to_le_bytes());
        for ((dir, name), ino) in &self.names {
            hasher.update(&dir.to_le_bytes()).update(&ino.to_le_bytes());
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_encoded_bytes());
        }
        for ino in self.names.values().collect::<BTreeSet<_>>() {
            let it = &self.inodes[ino];
            hasher.update(&[it.kind as u8]).update(&it.mode.to_le_bytes()).update(&it.uid.to_le_bytes());
            hasher.update(&it.mtime.to_le_bytes()).update(&it.ctime.to_le_bytes());
            hasher.update(&(it.live.len() as u64).to_le_bytes()).update(&it.live);
        }
        hasher.finalize()
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        let mut at = ROOT;
        for part in path.components() {
            if let Component::Normal(name) = part {
                self.look_into(at)?;
                if self.inodes[&at].kind == FileKind::Symlink {
                    return Err(Errno::LOOP.into());
                }
                at = *self.names.get(&(at, name.to_os_string())).ok_or(Errno::NOENT)?;
            }
        }
        Ok(at)
    }

    /// Fails for another user's directory whose mode gives access to no one but its owner.
    fn look_into(&self, dir: u64) -> io::Result<()> {
        let it = &self.inodes[&dir];
        let is_closed = it.uid != self.user && it.mode & 0o077 == 0;
        if is_closed { Err(Errno::ACCESS.into()) } else { Ok(()) }
    }

    /// Changes the owner to another user.
    pub(super) fn give_away(&mut self, path: &Path) {
        let ino = self.find(path).unwrap();
        self.inodes.get_mut(&ino).unwrap().uid += 1;
    }

    pub(super) fn inode(&self, ino: u64) -> &Inode {
        &self.inodes[&ino]
    }

    pub(super) fn text(&self, path: &str) -> Option<Vec<u8>> {
        self.find(Path::new(path)).ok().map(|ino| self.inodes[&ino].live.to_vec())
    }

    /// The texts of all files of a directory, concatenated.
    pub(super) fn texts_in(&self, dir: &str) -> String {
        let Ok(dir) = self.find(Path::new(dir)) else { return String::new() };
        let texts = self.names_in(dir).map(|(_, ino)| String::from_utf8_lossy(&self.inodes[&ino].live));
        texts.collect()
    }

    pub(super) fn names_in(&self, dir: u64) -> impl Iterator<Item = (&OsString, u64)> {
        self.names.iter().filter(move |((at, _), _)| *at == dir).map(|((_, name), ino)| (name, *ino))
    }

    pub(super) fn stat(&self, ino: u64) -> Stat {
        let inode = &self.inodes[&ino];
        Stat {
            len: inode.live.len() as u64,
            mtime_ns: inode.mtime,
            ctime_ns: inode.ctime,
            ino,
            dev: 1,
            mode: inode.mode,
            nlink: self.names.values().filter(|it| **it == ino).count() as u64,
            kind: inode.kind,
            uid: inode.uid,
            gid: 0,
        }
    }

    pub(super) fn write(&mut self, ino: u64, live: Vec<u8>) {
        let clock = self.clock;
        let inode = self.inodes.get_mut(&ino).unwrap();
        (inode.live, inode.mtime, inode.ctime) = (live.into(), clock, clock);
    }

    /// All files and directories below the plans directory, except planwatch's own. The values are the texts of files;
    /// directories and links have none.
    pub(super) fn tree(&self) -> BTreeMap<String, Option<String>> {
        let mut found = BTreeMap::new();
        let Ok(plans) = self.find(Path::new("/plans")) else { return found };
        let mut left = vec![(String::from("/plans"), plans)];
        while let Some((path, dir)) = left.pop() {
            for (name, ino) in self.names_in(dir).filter(|(name, _)| !is_runtime(name)) {
                let path = format!("{path}/{}", name.to_string_lossy());
                let inode = self.inode(ino);
                if inode.kind == FileKind::Dir {
                    left.push((path.clone(), ino));
                }
                let text = || String::from_utf8_lossy(&inode.live).into_owned();
                found.insert(path, (inode.kind == FileKind::File).then(text));
            }
        }
        found
    }

    /// The empty directories below the plans directory.
    pub(super) fn empty_dirs(&self) -> Vec<String> {
        let tree = self.tree();
        let is_empty = |dir: &str| !tree.keys().any(|it| it.starts_with(&format!("{dir}/")));
        let dirs = tree.iter().filter(|(_, text)| text.is_none()).map(|(dir, _)| dir);
        dirs.filter(|it| is_empty(it)).cloned().collect()
    }

    pub(super) fn set_mode(&mut self, ino: u64, mode: u32) {
        let clock = self.clock;
        let inode = self.inodes.get_mut(&ino).unwrap();
        (inode.mode, inode.ctime) = (mode, clock);
    }

    pub(super) fn sync(&mut self, ino: u64) {
        let inode = self.inodes.get_mut(&ino).unwrap();
        inode.durable = Some(inode.live.clone());
    }

    /// Makes the pending name changes in a directory durable, together with the changes that they depend on.
    pub(super) fn sync_names(&mut self, dir: u64) {
        let mut dirs = BTreeSet::from([dir]);
        let mut covered = vec![false; self.pending.len()];
        for (at, change) in self.pending.iter().enumerate().rev() {
            if change.iter().any(|((dir, _), _)| dirs.contains(dir)) {
                dirs.extend(change.iter().map(|((dir, _), _)| *dir));
                covered[at] = true;
            }
        }
        let mut covered = covered.into_iter();
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let now = covered.next().unwrap();
            if now {
                apply(durable, change);
            }
            !now
        });
    }

    fn record(&mut self, change: Vec<(Name, Option<u64>)>) {
        apply(&mut self.names, &change);
        for ino in change.iter().filter_map(|(_, ino)| *ino) {
            self.inodes.get_mut(&ino).unwrap().ctime = self.clock;
        }
        self.pending.push(change);
    }

    fn name(&self, path: &Path) -> io::Result<Name> {
        let parent = self.find(path.parent().ok_or(Errno::INVAL)?)?;
        self.look_into(parent)?;
        Ok((parent, path.file_name().ok_or(Errno::INVAL)?.to_os_string()))
    }

    pub(super) fn create(&mut self, path: &Path, kind: FileKind, mode: u32) -> io::Result<u64> {
        let name = self.name(path)?;
        if self.names.contains_key(&name) {
            return Err(Errno::EXIST.into());
        }
        let ino = self.inodes.len() as u64 + 1;
        let clock = self.clock;
        let uid = self.user;
        let inode =
            Inode { kind, live: Arc::default(), durable: None, mode, uid, mtime: clock, ctime: clock };
        self.inodes.insert(ino, inode);
        self.record(vec![(name, Some(ino))]);
        Ok(ino)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        let (old, new) = (self.name(from)?, self.name(to)?);
        let ino = *self.names.get(&old).ok_or(Errno::NOENT)?;
        let there = self.names.get(&new).copied();
        let left = match (how, there) {
            (Rename::Exchange, None) => return Err(Errno::NOENT.into()),
            (Rename::NoReplace, Some(_)) => return Err(Errno::EXIST.into()),
            (Rename::Exchange, there) => there,
            _ => None,
        };
        self.record(vec![(old, left), (new, Some(ino))]);
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let new = self.name(to)?;
        let ino = self.find(from)?;
        if self.names.contains_key(&new) {
            return Err(Errno::EXIST.into());
        }
        self.record(vec![(new, Some(ino))]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path, kind: FileKind) -> io::Result<()> {
        let name = self.name(path)?;
        let ino = *self.names.get(&name).ok_or(Errno::NOENT)?;
        let is_dir = |kind| kind == FileKind::Dir;
        if is_dir(self.inodes[&ino].kind) != is_dir(kind) {
            return Err(Errno::PERM.into());
        }
        if self.names_in(ino).next().is_some() {
            return Err(Errno::NOTEMPTY.into());
        }
        self.record(vec![(name, None)]);
        Ok(())
    }
}

fn apply(names: &mut BTreeMap<Name, u64>, change: &[(Name, Option<u64>)]) {
    for (name, ino) in change {
        match ino {
            Some(ino) => names.insert(name.clone(), *ino),
            None => names.remove(name),
        };
    }
}
