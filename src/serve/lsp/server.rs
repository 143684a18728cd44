//! The main loop: handles messages in order, applies file changes between them, and shuts down.
//!
//! The main loop's thread handles events in order. Other threads read and write messages, load all plans, and run the
//! commands that change files. Diagnostics are sent when no event waits, or after a limited number of events.
//! Therefore fast typing does not trigger a check for each key.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lsp_server::{ErrorCode, Message, Notification, Request};
use serde_json::Value;

use super::capabilities;
use super::catalog::Catalog;
use super::client::Client;
use super::documents::{Document, Documents, TextChange};
use super::frames::Frame;
use super::protocol::{self, Answer, DidChange, DidChangeFolders, DidOpen, Failed, OfDocument};
use super::publish::Published;
use super::queues::{Outbox, Pending, read_all};
use super::tree::{ContextsAt, PlanFile, Tree};
use super::uri;
use crate::api::error::Error;
use crate::serve::daemon::malloc;
use crate::serve::daemon::watcher::event::WatchEvent;
use crate::serve::daemon::watcher::system::{Raw, Watcher};

/// The delay from the first event of a change on disk until the plans are read again. One save often causes several
/// events.
const SETTLE: Duration = Duration::from_millis(50);

/// After one event, at most this many more are handled before diagnostics are sent.
const MOST_AT_ONCE: usize = 64;

pub(super) enum Event {
    /// A frame from the client. `None` is the end of the input.
    Frame(Option<Frame>),
    Loaded {
        root: PathBuf,
        catalog: Result<Catalog, Error>,
        watcher: Option<Box<Watcher>>,
    },
    /// The watcher reported events in a plans directory.
    Seen {
        root: PathBuf,
        batch: Vec<Raw>,
    },
    /// A command has ended. It may have changed a plan.
    Changed {
        root: PathBuf,
        plan: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`.
    Ending,
}

/// Changes of a plans directory that are not applied yet.
#[derive(Default)]
struct Changes {
    /// The directory names of the changed plans.
    plans: BTreeSet<String>,
    is_everything: bool,
    since: Option<Instant>,
}

pub(super) struct Server {
    contexts: ContextsAt,
    pub(super) outbox: Outbox,
    pub(super) pending: Pending,
    pub(super) events: Sender<Event>,
    phase: Phase,
    pub(super) client: Client,
    pub(super) documents: Documents,
    pub(super) trees: Vec<Tree>,
    pub(super) published: Published,
    watchers: HashMap<PathBuf, Box<Watcher>>,
    /// Plans directories whose catalog is being loaded.
    loading: HashSet<PathBuf>,
    /// File system events that came before the `Loaded` event with their watcher.
    early: Vec<(PathBuf, Vec<Raw>)>,
    changes: HashMap<PathBuf, Changes>,
    /// Requests that wait until the catalogs are loaded.
    waiting: Vec<Request>,
    working: Vec<JoinHandle<()>>,
    n_requests: u64,
}

/// Serves one client until the client sends `exit` or the input ends. Returns the exit code: 0 after `shutdown`,
/// otherwise 1.
///
/// Nothing else may be written to `output` in the meantime.
pub fn serve(
    contexts: ContextsAt,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> u8 {
    let (events, receiver) = channel();
    let pending = Pending::default();
    let outbox = Outbox::new(pending.clone());
    outbox.write_to(output);
    if read_all(input, pending.clone(), events.clone(), Event::Frame).is_err() {
        // Without a reading thread, the server ends as at the end of the input.
        events.send(Event::Frame(None)).ok();
    }
    let mut server = Server::new(contexts, outbox, pending, events);
    let code = server.run(&receiver);
    // Waits until running commands have changed their files and sent their responses.
    server.working.drain(..).for_each(|it| drop(it.join()));
    server.outbox.finish();
    code
}

impl Server {
    fn new(contexts: ContextsAt, outbox: Outbox, pending: Pending, events: Sender<Event>) -> Self {
        Self {
            contexts,
            outbox,
            pending,
            events,
            phase: Phase::New,
            client: Client::default(),
            documents: Documents::default(),
            trees: Vec::new(),
            published: Published::default(),
            watchers: HashMap::new(),
            loading: HashSet::new(),
            early: Vec::new(),
            changes: HashMap::new(),
            waiting: Vec::new(),
            working: Vec::new(),
            n_requests: 0,
        }
    }

    fn run(&mut self, events: &Receiver<Event>) -> u8 {
        loop {
            let first = match self.next_change() {
                Some(within) => events.recv_timeout(within),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match first {
                Ok(event) => {
                    let more = events.try_iter().take(MOST_AT_ONCE);
                    for event in std::iter::once(event).chain(more) {
                        if let Some(code) = self.take(event) {
                            return code;
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return 1,
            }
            self.apply_changes();
            self.publish();
        }
    }

    /// Handles an event. Returns the exit code if the server has to end.
    fn take(&mut self, event: Event) -> Option<u8> {
        match event {
            Event::Frame(None) => return Some(self.exit_code()),
            Event::Frame(Some(Frame::Broken { id, code, why })) => {
                self.outbox.refuse(&id, code.number(), why);
            }
            Event::Frame(Some(Frame::Message(Message::Request(request)))) => self.take_request(request),
            Event::Frame(Some(Frame::Message(Message::Notification(it)))) if it.method == "exit" => {
                return Some(self.exit_code());
            }
            Event::Frame(Some(Frame::Message(Message::Notification(it)))) => self.take_notification(it),
            // The server ignores responses to its own requests.
            Event::Frame(Some(Frame::Message(Message::Response(_)))) => {}
            Event::Loaded { root, catalog, watcher } => self.loaded(&root, catalog, watcher),
            Event::Seen { root, batch } => self.seen(root, batch),
            Event::Changed { root, plan } => self.note_plan(&root, plan),
        }
        None
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.phase != Phase::Ending)
    }

    fn take_request(&mut self, request: Request) {
        if self.pending.is_cancelled(&request.id) {
            return self.outbox.reply(&request.id, Err(Failed::cancelled()));
        }
        let refused = |code, why: &str| Err(Failed::new(code, why));
        let answer = match (self.phase, request.method.as_str()) {
            (Phase::New, "initialize") => Ok(self.initialize(&request.params)),
            (Phase::New, _) => refused(ErrorCode::ServerNotInitialized, "`initialize` must come first"),
            (Phase::Ending, _) => refused(ErrorCode::InvalidRequest, "the server was shut down"),
            (Phase::Running, "initialize") => {
                refused(ErrorCode::InvalidRequest, "`initialize` was already called")
            }
            (Phase::Running, "shutdown") => {
                self.phase = Phase::Ending;
                Ok(Value::Null)
            }
            (Phase::Running, _) => return self.carry_out(request),
        };
        self.outbox.reply(&request.id, answer);
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.phase = Phase::Running;
        self.client = Client::of(params);
        capabilities::result(&self.client)
    }

    fn carry_out(&mut self, request: Request) {
        let is_loading = !self.loading.is_empty();
        if is_loading && Self::needs_all_plans(&request.method) {
            self.waiting.push(request);
            return;
        }
        let Request { id, method, params } = request;
        let work = AssertUnwindSafe(|| self.answer(&id, &method, params));
        let failed = || Some(Err(Failed::new(ErrorCode::InternalError, "the request failed; this is a bug")));
        // A command answers from its own thread.
        if let Some(answer) = catch_unwind(work).unwrap_or_else(|_| failed()) {
            self.outbox.reply(&id, answer);
        }
    }

    fn take_notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        if self.phase != Phase::Running {
            return;
        }
        // A notification that cannot be read is ignored, because there is no reply that could report it.
        let work = AssertUnwindSafe(|| self.notified(&method, params).ok());
        drop(catch_unwind(work));
    }

    fn notified(&mut self, method: &str, params: Value) -> Result<(), Failed> {
        match method {
            "initialized" => {
                let folders = self.client.folders.clone();
                folders.iter().for_each(|it| self.add_folder(it));
            }
            "textDocument/didOpen" => {
                let DidOpen { text_document: it } = protocol::read(params)?;
                let path = self.documents.open(it.uri, it.version, it.text, self.client.encoding);
                path.into_iter().for_each(|it| self.take_text(&it));
            }
            "textDocument/didChange" => {
                let DidChange { text_document: of, content_changes } = protocol::read(params)?;
                let change = |it: protocol::ContentChange| TextChange { range: it.range, text: it.text };
                let changes = content_changes.into_iter().map(change).collect();
                let path = self.documents.change(&of.uri, of.version.unwrap_or_default(), changes);
                path.into_iter().for_each(|it| self.take_text(&it));
            }
            "textDocument/didClose" => {
                let OfDocument { text_document: of, .. } = protocol::read(params)?;
                self.close(&of.uri);
            }
            "textDocument/didSave" => {
                let OfDocument { text_document: of, .. } = protocol::read(params)?;
                let path = self.documents.get(&of.uri).map(|it| it.path.clone());
                path.into_iter().for_each(|it| self.saved(&it));
            }
            "workspace/didChangeWorkspaceFolders" => {
                let DidChangeFolders { event } = protocol::read(params)?;
                let path = |it: &protocol::FolderId| uri::to_path(&it.uri);
                event.removed.iter().filter_map(path).for_each(|it| self.remove_folder(&it));
                event.added.iter().filter_map(path).for_each(|it| self.add_folder(&it));
            }
            // Other notifications are ignored. `workspace/didChangeWatchedFiles` is not needed, because the server's own
            // watcher reports more than clients do.
            _ => {}
        }
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path) {
        if let Ok(tree) = Tree::find(&self.contexts, folder) {
            self.add_tree(tree);
        }
    }

    fn add_tree(&mut self, tree: Tree) {
        if self.trees.iter().all(|it| it.root != tree.root) {
            let root = tree.root.clone();
            self.trees.push(tree);
            self.load(&root);
        }
    }

    fn remove_folder(&mut self, folder: &Path) {
        let is_used = |tree: &Tree| tree.open_files().next().is_some();
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.trees.drain(..).partition(|it| it.root.starts_with(folder) && !is_used(it));
        self.trees = kept;
        for tree in gone {
            self.watchers.remove(&tree.root);
            self.changes.remove(&tree.root);
            self.published.removed(&self.outbox, &tree);
        }
    }

    /// Starts a thread that loads all plans of a directory. If the directory is not watched, the thread first starts a
    /// watcher.
    fn load(&mut self, root: &Path) {
        let Some(tree) = self.trees.iter().find(|it| it.root == root) else { return };
        if !self.loading.insert(root.to_path_buf()) {
            return;
        }
        let (make, events, loaded) = (tree.contexts(), self.events.clone(), root.to_path_buf());
        let root = loaded.clone();
        let is_watched = self.watchers.contains_key(&root);
        let load = move || {
            let mut watcher = None;
            let catalog = make().and_then(|context| {
                if !is_watched {
                    let (events, root) = (events.clone(), root.clone());
                    let seen = move |batch| events.send(Event::Seen { root: root.clone(), batch }).is_ok();
                    watcher = Watcher::open(context.plans.root(), seen).ok().map(Box::new);
                    watcher.iter_mut().for_each(|it| it.cover(&context.plans));
                }
                Catalog::load(&context)
            });
            events.send(Event::Loaded { root, catalog, watcher }).ok();
            // Trimming takes some milliseconds, so the event is sent first.
            malloc::trim();
        };
        if thread::Builder::new().name("lsp-load".to_owned()).spawn(load).is_err() {
            self.loading.remove(&loaded);
        }
    }

    fn loaded(&mut self, root: &Path, catalog: Result<Catalog, Error>, watcher: Option<Box<Watcher>>) {
        self.loading.remove(root);
        // If this were called earlier, the first load would take 1.4 times as long.
        malloc::give_back();
        // The folder may have been removed in the meantime.
        if let Some(tree) = self.trees.iter_mut().find(|it| it.root == root) {
            // If the plans cannot be loaded, the catalog is empty, and the server knows only the plans of open documents.
            tree.loaded(catalog.unwrap_or_default());
            self.watchers.extend(watcher.map(|it| (root.to_path_buf(), it)));
        }
        let (early, later) = std::mem::take(&mut self.early).into_iter().partition(|it| it.0 == root);
        self.early = later;
        if self.watchers.contains_key(root) {
            for (root, batch) in Vec::from_iter::<Vec<(PathBuf, Vec<Raw>)>>(early) {
                self.seen(root, batch);
            }
        }
        self.refresh_client();
        for request in std::mem::take(&mut self.waiting) {
            self.take_request(request);
        }
    }

    fn seen(&mut self, root: PathBuf, batch: Vec<Raw>) {
        let Some(watcher) = self.watchers.get_mut(&root) else {
            self.early.push((root, batch));
            return;
        };
        let Some(Ok(context)) = self.trees.iter().find(|it| it.root == root).map(Tree::context) else {
            return;
        };
        let seen: Vec<_> = batch.iter().filter_map(|it| watcher.interpret(&context.plans, it)).collect();
        for event in seen {
            match event {
                WatchEvent::Plan(name) => self.note_plan(&root, name),
                WatchEvent::Everything => self.note_change(&root, |it| it.is_everything = true),
                WatchEvent::Gone => {
                    // The plans directory was deleted or replaced. The next load of its plans starts a new watcher.
                    self.watchers.remove(&root);
                    self.note_change(&root, |it| it.is_everything = true);
                }
                WatchEvent::Cookie(_) | WatchEvent::RuntimeFiles => {}
            }
        }
    }

    fn note_plan(&mut self, root: &Path, plan: String) {
        self.note_change(root, |it| {
            it.plans.insert(plan);
        });
    }

    fn note_change(&mut self, root: &Path, note: impl FnOnce(&mut Changes)) {
        let changes = self.changes.entry(root.to_path_buf()).or_default();
        note(changes);
        changes.since.get_or_insert_with(Instant::now);
    }

    /// The time until the next changes are due. `None` if there are no changes, or all of them wait for a catalog.
    fn next_change(&self) -> Option<Duration> {
        let due = self.changes.iter().filter(|(root, _)| !self.loading.contains(*root));
        due.filter_map(|(_, it)| Some(SETTLE.saturating_sub(it.since?.elapsed()))).min()
    }

    fn apply_changes(&mut self) {
        let is_due = |(root, it): &(&PathBuf, &Changes)| {
            !self.loading.contains(*root) && it.since.is_some_and(|since| since.elapsed() >= SETTLE)
        };
        let due: Vec<_> = self.changes.iter().filter(is_due).map(|(root, _)| root.clone()).collect();
        for root in due {
            let Some(changes) = self.changes.remove(&root) else { continue };
            let Some(tree) = self.trees.iter_mut().find(|it| it.root == root) else { continue };
            let is_reread = !changes.is_everything && tree.reread(&changes.plans);
            tree.reread_outside_plans();
            if !is_reread {
                self.load(&root);
            }
            self.notify_of_changes(&root, &changes);
            self.refresh_client();
        }
    }

    fn notify_of_changes(&self, root: &Path, changes: &Changes) {
        if self.client.follows_plans {
            let params = serde_json::json!({"folder": uri::of_path(root), "plans": changes.plans});
            self.outbox.notify("planwatch/didChange", &params);
        }
    }

    /// Asks the client to request diagnostics, inlay hints and code lenses again.
    fn refresh_client(&mut self) {
        let client = &self.client;
        let wanted = [
            (client.pulls_diagnostics, "workspace/diagnostic/refresh"),
            (client.refreshes_hints, "workspace/inlayHint/refresh"),
            (client.refreshes_lenses, "workspace/codeLens/refresh"),
        ];
        for (_, method) in wanted.into_iter().filter(|it| it.0) {
            self.n_requests += 1;
            self.outbox.request(self.n_requests, method);
        }
    }

    fn take_text(&mut self, path: &Path) {
        let Some(document) = self.documents.at(path) else { return };
        if self.trees.iter_mut().any(|it| it.put(document)) {
            return;
        }
        // The document may be in a plans directory outside of the workspace folders, or in a new one.
        let Some(mut tree) = path.parent().and_then(|it| Tree::find(&self.contexts, it).ok()) else { return };
        if tree.put(document) {
            self.add_tree(tree);
        }
    }

    fn close(&mut self, uri: &str) {
        let Some(Document { path, uri, .. }) = self.documents.close(uri) else { return };
        for tree in &mut self.trees {
            if let Some(file) = tree.close(&path) {
                self.published.closed(&self.outbox, &self.client, &uri);
                let root = tree.root.clone();
                if let Some(key) = file.key {
                    self.note_plan(&root, key.name);
                }
                return;
            }
        }
    }

    fn saved(&mut self, path: &Path) {
        let found = self.trees.iter().find_map(|it| Some((it.root.clone(), it.file(path)?)));
        if let Some((root, PlanFile { key: Some(key), .. })) = found {
            self.note_plan(&root, key.name);
        }
    }

    /// Runs `work` in a thread. The server waits for this thread before it ends. Returns false if no thread can be started.
    pub(super) fn work(&mut self, work: impl FnOnce() + Send + 'static) -> bool {
        self.working.retain(|it| !it.is_finished());
        let started = thread::Builder::new().name("lsp-command".to_owned()).spawn(work);
        started.map(|it| self.working.push(it)).is_ok()
    }

    fn publish(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        let work = AssertUnwindSafe(|| {
            for tree in &mut self.trees {
                self.published.publish(&self.outbox, &self.client, &self.documents, tree);
            }
        });
        drop(catch_unwind(work));
    }

    /// Calls `act` for an open document that planwatch reads. For any other document, returns null.
    pub(super) fn with_document(
        &mut self,
        uri: &str,
        act: impl FnOnce(&mut Tree, &Document, &PlanFile, &Client) -> Answer,
    ) -> Answer {
        let Some(document) = self.documents.get(uri) else { return Ok(Value::Null) };
        let found = self.trees.iter_mut().find_map(|it| it.file(&document.path).map(|file| (it, file)));
        let Some((tree, file)) = found else { return Ok(Value::Null) };
        act(tree, document, &file, &self.client)
    }
}
