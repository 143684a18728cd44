//! The model for tests of other modules: a machine whose processes can be killed and whose power can be cut.

use std::collections::BTreeMap;

use super::state::Unsynced;
use super::*;
use crate::disk::PlansDir;

/// The file that identifies the boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The number of calls that [`PlansDir::open`] makes.
const OPENING: u64 = 2;

/// The error of a failing call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No space is left.
    Full,
    /// Input or output failed.
    Broken,
}

/// A machine with a plans directory, `/plans`.
pub(crate) struct Machine(ModelDisk);

impl Machine {
    /// A machine with these files, all durable.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let mut state = State::new();
        state.plant("/state/planwatch/key", &[7; 32]);
        state.plant(BOOT, b"first\n");
        for (path, text) in files {
            state.plant(path, text.as_bytes());
        }
        state.settle();
        Self(ModelDisk::new(state, Script::default()))
    }

    pub(crate) fn plans(&self) -> PlansDir {
        PlansDir::open(Arc::new(self.0.clone()), Path::new("/plans"), Some(Path::new("/state"))).unwrap()
    }

    /// The plans directory under another path, or for a process with another state home.
    pub(crate) fn plans_at(&self, root: &str, state_home: &str) -> PlansDir {
        PlansDir::open(Arc::new(self.0.clone()), Path::new(root), Some(Path::new(state_home))).unwrap()
    }

    /// Gives the plans directory a second path, like a bind mount.
    pub(crate) fn bind(&self, path: &str) {
        let mut world = self.0.world();
        world.state.link(Path::new("/plans"), Path::new(path)).unwrap();
        world.state.settle();
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, path: &str, target: &str) {
        self.0.world().state.plant_link(path, target);
    }

    /// Changes the owner to another user.
    pub(crate) fn give_away(&self, path: &str) {
        self.0.world().state.give_away(Path::new(path));
    }

    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        let world = self.0.world();
        let Ok(dir) = world.state.find(Path::new(dir)) else { return Vec::new() };
        world.state.names_in(dir).map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        let world = self.0.world();
        world.state.stat(world.state.find(Path::new(path)).unwrap()).mode
    }

    pub(super) fn disk(&self) -> ModelDisk {
        self.0.clone()
    }

    /// The same machine, for another process on it.
    pub(crate) fn another_process(&self) -> Self {
        Self(self.0.clone())
    }

    /// A copy of the machine whose process dies before this call. Calls are counted from 1 after the plans directory was
    /// opened.
    pub(crate) fn dying_before(&self, call: u64) -> Self {
        let script = Script { crash: Some(OPENING + call), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// A copy of the machine on which this call fails. Calls are counted as for [`Self::dying_before`].
    pub(crate) fn failing_at(&self, call: u64, fault: Fault) -> Self {
        let errno = match fault {
            Fault::Full => Errno::NOSPC,
            Fault::Broken => Errno::IO,
        };
        let script = Script { fault: Some((OPENING + call, errno)), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// A copy of the machine on which all files together can grow by this many bytes. Freed space is not reused.
    pub(crate) fn with_room(&self, bytes: usize) -> Self {
        let script = Script { room: Some(bytes), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// The remaining room.
    pub(crate) fn room(&self) -> usize {
        self.0.world().script.room.unwrap_or(0)
    }

    /// Every file and directory below the plans directory except planwatch's own, with the text of files.
    pub(crate) fn tree(&self) -> BTreeMap<String, Option<String>> {
        self.0.world().state.tree()
    }

    /// A copy of the machine on which an editor saves step 1 of `p` with an additional line before this call. Calls are
    /// counted as for [`Self::dying_before`].
    pub(crate) fn saved_before(&self, call: u64) -> Self {
        let call = OPENING + call;
        let editor = Editor { how: Save::Rename, begins: call, again: 0, ends: call };
        let script = Script { editor: Some(editor), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// A copy of the machine on which a program replaces a file with this text before this call, without reading the
    /// file. Calls are counted as for [`Self::dying_before`].
    pub(crate) fn replaced_before(&self, call: u64, path: &'static str, text: &'static str) -> Self {
        let save = BlindSave { path, text, call: OPENING + call };
        let script = Script { saves: [Some(save), None], ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// A copy of the machine on which a program renames a directory before this call. Calls are counted as for
    /// [`Self::dying_before`].
    pub(crate) fn directory_renamed_before(&self, call: u64, from: &'static str, to: &'static str) -> Self {
        let script = Script { moved: Some((OPENING + call, from, to)), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// A copy of the machine on which an editor saves step 1 of `p` twice, before call `first` and before call `second`.
    /// Each save adds a line. Before call `again`, the editor reads the file for the second save.
    pub(crate) fn saved_twice(&self, first: u64, again: u64, second: u64) -> Self {
        let [begins, again, ends] = [first, again, second].map(|it| OPENING + it);
        let editor = Editor { how: Save::RenameTwice, begins, again, ends };
        let script = Script { editor: Some(editor), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// A copy of the machine on which an editor truncates step 1 of `p` before call `truncated` and writes it before call
    /// `written`.
    pub(crate) fn saved_slowly(&self, truncated: u64, written: u64) -> Self {
        self.edited(Save::Truncate, EDITED, truncated, written)
    }

    /// Like [`Self::saved_slowly`], for another file.
    pub(crate) fn saved_slowly_at(&self, path: &'static str, truncated: u64, written: u64) -> Self {
        self.edited(Save::Truncate, path, truncated, written)
    }

    /// Like [`Self::saved_slowly_at`], but the editor renames the file away instead of truncating it.
    pub(crate) fn renamed_away_at(&self, path: &'static str, renamed: u64, written: u64) -> Self {
        self.edited(Save::Away, path, renamed, written)
    }

    /// Like [`Self::replaced_before`]. In addition, an editor saves another file with an additional line before call
    /// `saved`, if that file exists.
    pub(crate) fn replaced_and_saved(
        &self,
        (path, text, call): (&'static str, &'static str, u64),
        (other, saved): (&'static str, u64),
    ) -> Self {
        let save = BlindSave { path, text, call: OPENING + call };
        let [begins, ends] = [OPENING + saved; 2];
        let editor = Some(Editor { how: Save::Rename, begins, again: 0, ends });
        let script = Script { editor, edited: Some(other), saves: [Some(save), None], ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    fn edited(&self, how: Save, path: &'static str, begins: u64, ends: u64) -> Self {
        let [begins, ends] = [begins, ends].map(|it| OPENING + it);
        let editor = Editor { how, begins, again: 0, ends };
        let script = Script { editor: Some(editor), edited: Some(path), ..Script::default() };
        Self(ModelDisk::new(self.0.world().state.clone(), script))
    }

    /// Completes a save that the editor has begun.
    pub(crate) fn finish_saves(&self) {
        let mut world = self.0.world();
        if let Some(editor) = world.script.editor
            && world.in_hand.is_some()
        {
            world.editor_saves(editor.how, TOKEN);
        }
    }

    /// Whether the editor has overwritten, during or after the command, a text that it had not read.
    pub(crate) fn has_overwritten(&self) -> bool {
        self.0.world().overwrote
    }

    /// The number of calls, counted as for [`Self::dying_before`].
    pub(crate) fn calls(&self) -> u64 {
        self.0.world().calls.saturating_sub(OPENING)
    }

    /// The opened Markdown files of plans, each listed once, as paths relative to the plans directory.
    pub(crate) fn opened(&self) -> Vec<String> {
        let world = self.0.world();
        let files = world.opened.keys().filter(|it| it.extension().is_some_and(|it| it == "md"));
        let below = files.filter_map(|it| it.strip_prefix("/plans").ok()?.to_str());
        below.filter(|it| !it.starts_with('.')).map(str::to_owned).collect()
    }

    /// How often a file was opened.
    pub(crate) fn n_opened(&self, path: &str) -> usize {
        self.0.world().opened.get(Path::new(path)).copied().unwrap_or_default()
    }

    /// Whether the editor has saved.
    pub(crate) fn has_saved(&self) -> bool {
        !self.0.world().saved.is_empty()
    }

    /// The lines that the editor has saved.
    pub(crate) fn saves(&self) -> Vec<String> {
        self.0.world().saved.clone()
    }

    pub(crate) fn has_died(&self) -> bool {
        self.0.world().crashed
    }

    /// The machine after a process was killed: all its writes are visible.
    pub(crate) fn after_kill(&self) -> Self {
        Self(ModelDisk::new(self.0.world().state.clone(), Script::default()))
    }

    /// Like [`Self::after_kill`], but so much later that everything is durable.
    pub(crate) fn after_long(&self) -> Self {
        let mut state = self.0.world().state.clone();
        state.settle();
        Self(ModelDisk::new(state, Script::default()))
    }

    /// Half a minute passes.
    pub(crate) fn wait(&self) {
        self.0.world().state.clock += 30_000_000_000;
    }

    /// The machine after a power cut, in each possible state.
    pub(crate) fn after_power_cut(&self) -> Vec<Self> {
        let state = self.0.world().state.clone();
        let bytes = [Unsynced::All, Unsynced::Half, Unsynced::Nothing];
        let cuts = (0..=state.pending()).flat_map(|names| bytes.map(|it| state.after_cut(names, it)));
        cuts.map(|mut it| {
            it.remove(Path::new(BOOT), FileKind::File).unwrap();
            it.plant(BOOT, b"second\n");
            Self(ModelDisk::new(it, Script::default()))
        })
        .collect()
    }

    /// An editor writes into the newest displaced version, which it had open before the version was replaced. Half a minute
    /// passes before the write and after it.
    pub(crate) fn save_late(&self, text: &str) {
        let directory = Path::new("/plans/.planwatch/displaced");
        let mut world = self.0.world();
        let dir = world.state.find(directory).unwrap();
        let newest = world.state.names_in(dir).map(|(_, ino)| ino).max().unwrap();
        world.state.clock += 30_000_000_000;
        world.state.write(newest, text.as_bytes().to_vec());
        world.state.clock += 30_000_000_000;
    }

    /// Another program saves a file.
    pub(crate) fn save(&self, path: &str, text: &str) {
        let mut world = self.0.world();
        world.state.remove(Path::new(path), FileKind::File).ok();
        world.state.plant(path, text.as_bytes());
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.0.world().state.text(path).map(|it| String::from_utf8_lossy(&it).into_owned())
    }
}
