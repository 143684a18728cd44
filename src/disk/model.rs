//! A file system in memory that separates durable from visible state.
//!
//! It can crash before any call, fail any call, and let an editor act before any call. After a crash it enumerates
//! every state that a power cut may leave. Such a state contains the first n unsynced changes of names (for each n),
//! and all, half or none of the unsynced bytes.

mod beside;
mod cases;
mod exhaustive;
mod linked;
mod machine;
mod meddled;
mod mounted;
mod old_names;
mod project;
mod quiet;
mod replaced_link;
mod sample;
mod state;
mod undone;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::file_system::{Against, Disk, DiskFile, FileKind, Lease, Open, Rename, Stat};
pub(crate) use machine::{Fault, Machine};
pub(crate) use meddled::When;
use sample::Sample;
pub(crate) use sample::sample;
use state::State;

/// What goes wrong, and when; calls are counted from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Script {
    /// The process dies before this call: this call and all later ones fail.
    crash: Option<u64>,
    /// This call fails with this error. It does nothing, except that a write writes half of its bytes.
    fault: Option<(u64, Errno)>,
    editor: Option<Editor>,
    /// The number of bytes by which all files together can still grow. A larger write is truncated.
    room: Option<usize>,
    /// The file that the editor changes; `None` means [`EDITED`].
    edited: Option<&'static str>,
    /// Saves of other programs. The saved file need not exist.
    saves: [Option<BlindSave>; 2],
    /// Before this call, a program renames a directory.
    moved: Option<(u64, &'static str, &'static str)>,
    /// The file system cannot exchange names.
    lacks_exchange: bool,
    /// The system has no leases.
    lacks_leases: bool,
    /// This directory is a mount point.
    mounted: Option<&'static str>,
}

/// A save by rename. Its text does not depend on what the file contains at that moment.
#[derive(Clone, Copy, Debug)]
struct BlindSave {
    path: &'static str,
    text: &'static str,
    /// The save happens before this call.
    call: u64,
}

/// An editor's save in two parts. Each part happens before a call.
#[derive(Clone, Copy, Debug)]
struct Editor {
    how: Save,
    /// Before this call the editor reads or opens the file.
    begins: u64,
    /// Before this call it reads the file again, for the second save of [`Save::RenameTwice`].
    again: u64,
    /// Before this call it writes.
    ends: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Save {
    /// Reads; later puts a new file in place by a rename.
    Rename,
    /// Opens and truncates; later writes everything.
    Truncate,
    /// Opens; later writes at the end.
    Append,
    /// Renames the file away; later creates it again.
    Away,
    /// Renames the file away and creates it empty; later writes into it.
    AwayAndCreate,
    /// Saves at once by a rename, then reads, and later saves again.
    RenameTwice,
}

#[derive(Clone, Debug)]
struct ModelDisk(Arc<Mutex<World>>);

#[derive(Clone, Debug)]
struct World {
    state: State,
    script: Script,
    calls: u64,
    crashed: bool,
    /// The inode and the text that the editor has read and not yet saved.
    in_hand: Option<(u64, Vec<u8>)>,
    /// The lines that the editor's completed saves added, [`TOKEN`] or [`FIRST`].
    saved: Vec<String>,
    /// The editor saved over a text that it had not read.
    overwrote: bool,
    /// The inode that the editor cannot open now, because planwatch has a lease on it.
    leased: Option<u64>,
    /// Inodes that another program has open for writing all the time.
    open: BTreeSet<u64>,
    /// The locked inodes. A power cut releases them, and so does killing the process.
    locked: BTreeSet<u64>,
    /// Every path that was opened for reading or writing, and how often.
    opened: BTreeMap<PathBuf, usize>,
    kills: Kills,
}

/// Records what the process would leave if it were killed before a call.
#[derive(Clone, Debug)]
struct Kills {
    /// The first call that is considered.
    from: u64,
    /// Selects some of the calls from `from` on.
    sample: Sample,
    left: Vec<(u64, Left)>,
}

impl Kills {
    fn none() -> Self {
        Self { from: u64::MAX, sample: Sample::all(), left: Vec::new() }
    }
}

/// What a process leaves when it ends or is killed.
#[derive(Clone, Debug)]
struct Left {
    state: State,
    /// The lines that the editor's completed saves added.
    saved: Vec<String>,
    /// The editor has begun a save and not ended it.
    is_saving: bool,
}

/// The file that the editor changes by default, and the lines that it adds.
const EDITED: &str = "/plans/p/step-1.md";
const TOKEN: &[u8] = b"token\n";
const FIRST: &[u8] = b"first\n";

#[derive(Debug)]
struct ModelFile {
    disk: ModelDisk,
    ino: u64,
    at_end: bool,
    is_lock: bool,
}

impl Drop for ModelFile {
    fn drop(&mut self) {
        let mut world = self.disk.world();
        world.leased = world.leased.filter(|it| *it != self.ino);
        if self.is_lock {
            world.locked.remove(&self.ino);
        }
    }
}

impl ModelDisk {
    fn new(state: State, script: Script) -> Self {
        let world = World {
            state,
            script,
            calls: 0,
            crashed: false,
            in_hand: None,
            saved: Vec::new(),
            overwrote: false,
            leased: None,
            open: BTreeSet::new(),
            locked: BTreeSet::new(),
            opened: BTreeMap::new(),
            kills: Kills::none(),
        };
        Self(Arc::new(Mutex::new(world)))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and lets the script act before it.
    fn enter(&self) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.world();
        world.turn()?;
        Ok(world)
    }
}

impl World {
    fn edited(&self) -> &'static str {
        self.script.edited.unwrap_or(EDITED)
    }

    fn turn(&mut self) -> io::Result<()> {
        if self.crashed {
            return Err(Errno::IO.into());
        }
        self.calls += 1;
        self.state.clock += 1_000_000;
        for save in self.script.saves.iter().flatten().filter(|it| it.call == self.calls) {
            self.state.save(save.path, save.text.as_bytes());
        }
        if let Some((_, from, to)) = self.script.moved.filter(|it| it.0 == self.calls) {
            self.state.rename(Path::new(from), Path::new(to), Rename::NoReplace).ok();
        }
        self.hold_editor_back();
        if let Some(editor) = self.script.editor {
            if editor.begins == self.calls {
                self.editor_begins(editor.how);
            }
            if editor.how == Save::RenameTwice && editor.again == self.calls {
                self.editor_reads();
            }
            if editor.ends == self.calls {
                self.editor_saves(editor.how, TOKEN);
            }
        }
        if self.calls >= self.kills.from && self.kills.sample.takes() {
            let left = self.left();
            self.kills.left.push((self.calls, left));
        }
        if self.script.crash == Some(self.calls) {
            self.crashed = true;
            return Err(Errno::IO.into());
        }
        match self.script.fault {
            Some((call, errno)) if call == self.calls => Err(errno.into()),
            _ => Ok(()),
        }
    }

    fn left(&self) -> Left {
        Left { state: self.state.clone(), saved: self.saved.clone(), is_saving: self.in_hand.is_some() }
    }

    /// Postpones the editor's action to the next call if a lease prevents the editor from opening the file.
    fn hold_editor_back(&mut self) {
        let is_held = self.leased.is_some() && self.state.find(Path::new(self.edited())).ok() == self.leased;
        let Some(editor) = self.script.editor.as_mut().filter(|_| is_held) else { return };
        let opens = editor.begins == self.calls || editor.again == self.calls;
        if !opens {
            return;
        }
        for at in [&mut editor.begins, &mut editor.again, &mut editor.ends] {
            *at += u64::from(*at == self.calls);
        }
    }

    /// A number that identifies the mount of a path.
    fn mount_of(&self, path: &Path) -> u64 {
        u64::from(self.script.mounted.is_some_and(|it| path.starts_with(it)))
    }

    /// Whether another program has an inode open.
    fn is_open(&self, ino: u64) -> bool {
        let keeps_open = |how| matches!(how, Save::Truncate | Save::Append | Save::AwayAndCreate);
        let editor = self.script.editor.filter(|it| keeps_open(it.how));
        let in_hand = editor.and(self.in_hand.as_ref()).map(|it| it.0);
        in_hand == Some(ino) || self.open.contains(&ino)
    }

    fn editor_begins(&mut self, how: Save) {
        self.editor_reads();
        if self.in_hand.is_none() {
            return;
        }
        let away = PathBuf::from(format!("{}~", self.edited()));
        match how {
            Save::Rename | Save::Append => {}
            Save::RenameTwice => self.editor_saves(how, FIRST),
            Save::Truncate => {
                let ino = self.in_hand.as_ref().map_or(0, |it| it.0);
                self.state.write(ino, Vec::new());
            }
            Save::Away => {
                self.state.rename(Path::new(self.edited()), &away, Rename::Replace).ok();
            }
            Save::AwayAndCreate => {
                self.state.rename(Path::new(self.edited()), &away, Rename::Replace).ok();
                let made = self.state.create(Path::new(self.edited()), FileKind::File, 0o644);
                self.in_hand = made.ok().zip(self.in_hand.take()).map(|(ino, (_, text))| (ino, text));
            }
        }
    }

    fn editor_reads(&mut self) {
        let found = self.state.find(Path::new(self.edited())).ok();
        self.in_hand = found.map(|ino| (ino, self.state.inode(ino).live.to_vec()));
    }

    fn editor_saves(&mut self, how: Save, token: &[u8]) {
        let Some((ino, text)) = self.in_hand.take() else { return };
        let whole = [&text, token].concat();
        self.overwrote |= self.state.text(self.edited()).is_some_and(|it| it != text);
        let ino = match how {
            Save::Truncate | Save::AwayAndCreate => {
                self.state.write(ino, whole);
                ino
            }
            Save::Append => {
                let now = self.state.inode(ino).live.to_vec();
                self.state.write(ino, [&now, token].concat());
                ino
            }
            Save::Rename | Save::Away | Save::RenameTwice => {
                let fresh = PathBuf::from(format!("{}.tmp", self.edited()));
                let Ok(made) = self.state.create(&fresh, FileKind::File, 0o644) else { return };
                self.state.write(made, whole);
                self.state.rename(&fresh, Path::new(self.edited()), Rename::Replace).ok();
                made
            }
        };
        self.state.sync(ino);
        if let Ok(dir) = self.state.find(Path::new("/plans/p")) {
            self.state.sync_names(dir);
        }
        self.saved.push(String::from_utf8_lossy(token).trim().to_string());
    }
}

impl Disk for ModelDisk {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.enter()?.state.find(path)?;
        Ok(path.to_path_buf())
    }

    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        let world = self.enter()?;
        Ok(world.state.stat(world.state.find(path)?))
    }

    fn mount(&self, path: &Path) -> io::Result<u64> {
        let world = self.enter()?;
        world.state.find(path)?;
        Ok(world.mount_of(path))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let world = self.enter()?;
        let inode = world.state.inode(world.state.find(path)?);
        match inode.kind {
            FileKind::Symlink => Ok(PathBuf::from(OsStr::from_bytes(&inode.live))),
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        let world = self.enter()?;
        let dir = world.state.find(dir)?;
        Ok(world.state.names_in(dir).map(|(name, ino)| (name.clone(), Ok(world.state.stat(ino)))).collect())
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let world = self.enter()?;
        let dir = world.state.find(dir)?;
        Ok(world.state.names_in(dir).map(|(name, _)| name.clone()).collect())
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.enter()?;
        *world.opened.entry(path.to_owned()).or_default() += 1;
        let ino = match (how, world.state.find(path)) {
            (Open::New(_), Ok(_)) => return Err(Errno::EXIST.into()),
            (Open::New(mode), Err(_)) => world.state.create(path, FileKind::File, mode)?,
            (Open::Append, Err(_)) => world.state.create(path, FileKind::File, 0o600)?,
            (_, found) => found?,
        };
        if world.state.inode(ino).kind == FileKind::Symlink {
            return Err(Errno::LOOP.into());
        }
        Ok(Box::new(ModelFile { disk: self.clone(), ino, at_end: how == Open::Append, is_lock: false }))
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.enter()?.state.create(path, FileKind::Dir, mode).map(|_| ())
    }

    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        let mut world = self.enter()?;
        if how == Rename::Exchange && world.script.lacks_exchange {
            return Err(Errno::INVAL.into());
        }
        if world.mount_of(from) != world.mount_of(to) {
            return Err(Errno::XDEV.into());
        }
        world.state.rename(from, to, how)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter()?.state.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.enter()?.state.remove(path, FileKind::File)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.enter()?.state.remove(path, FileKind::Dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.enter()?;
        let dir = world.state.find(dir)?;
        world.state.sync_names(dir);
        Ok(())
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut world = self.enter()?;
        let ino = world.state.find(path)?;
        world.state.set_mode(ino, mode);
        Ok(())
    }

    fn lock(&self, path: &Path, _patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        let mut world = self.enter()?;
        let ino = match world.state.find(path) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::NOENT) => return Err(error),
            Err(_) => world.state.create(path, FileKind::File, 0o600)?,
            Ok(ino) => ino,
        };
        // There is only one thread, so waiting would not help.
        let is_free = world.locked.insert(ino);
        let taken = || Box::new(ModelFile { disk: self.clone(), ino, at_end: false, is_lock: true });
        Ok(is_free.then(|| taken() as Box<dyn DiskFile>))
    }

    fn now_ns(&self) -> i128 {
        self.world().state.clock
    }

    fn pause(&self, _time: Duration) {
        // Time passes, so an editor may act.
        drop(self.enter());
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        // The bytes are the same in each run of a script, but different for each call.
        let mut world = self.world();
        world.state.clock += 1;
        let seed = world.state.clock.to_le_bytes();
        blake3::Hasher::new().update(&seed).finalize_xof().fill(bytes);
        Ok(())
    }
}

impl DiskFile for ModelFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(self.disk.enter()?.state.stat(self.ino))
    }

    fn read(&self, limit: u64, _expected: u64) -> io::Result<Vec<u8>> {
        let world = self.disk.enter()?;
        let live = &world.state.inode(self.ino).live;
        Ok(live.iter().copied().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.disk.world();
        let turn = world.turn();
        if world.crashed {
            return turn;
        }
        let old = world.state.inode(self.ino).live.to_vec();
        let mut turn = turn;
        let mut bytes = if turn.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        let end = if self.at_end { old.len() + bytes.len() } else { bytes.len() };
        if let Some(room) = &mut world.script.room {
            let too_much = end.saturating_sub(old.len()).saturating_sub(*room);
            if too_much > 0 {
                bytes = &bytes[..bytes.len() - too_much];
                turn = Err(Errno::NOSPC.into());
            }
            *room = room.saturating_sub(end.saturating_sub(old.len()));
        }
        let tail = old.get(bytes.len()..).unwrap_or_default();
        let live = if self.at_end { [&old, bytes].concat() } else { [bytes, tail].concat() };
        world.state.write(self.ino, live);
        turn
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.disk.enter()?;
        let mut live = world.state.inode(self.ino).live.to_vec();
        live.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        world.state.write(self.ino, live);
        Ok(())
    }

    fn copy_attributes_from(&self, like: &Stat, _path: &Path) -> io::Result<()> {
        self.disk.enter()?.state.set_mode(self.ino, like.mode);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.enter()?.state.sync(self.ino);
        Ok(())
    }

    fn lease(&self, against: Against) -> Lease {
        let mut world = self.disk.world();
        // A scripted fault is ignored here. It would mean that the system has no leases, and `lacks_leases` covers that.
        world.turn().ok();
        if world.script.lacks_leases {
            return Lease::Unsupported;
        }
        if world.is_open(self.ino) {
            return Lease::Busy;
        }
        if against == Against::Everyone {
            world.leased = Some(self.ino);
        }
        Lease::Taken
    }

    fn release(&self) {
        let mut world = self.disk.world();
        world.leased = world.leased.filter(|it| *it != self.ino);
    }
}
