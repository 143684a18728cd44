//! After any change of the files or the index, every reading verb answers the same with the index as without it.
#![expect(clippy::disallowed_methods, reason = "tests create and remove files")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use planwatch::api::config::Config;
use planwatch::api::context::{Context, Here, KeptSaves, Notice, Reading};
use planwatch::api::daemon::Freshness;
use planwatch::disk::{Against, Disk, DiskFile, Lease, Open, PlansDir, RealDisk, Rename, Stat};
use planwatch::index::{Change, FullText, Index, Place};
use planwatch::ops::check::{CheckRequest, check};
use planwatch::ops::claim::{ClaimRequest, claim};
use planwatch::ops::list::{ListRequest, list};
use planwatch::ops::next::{NextRequest, next};
use planwatch::ops::search::{SearchRequest, search, sql};
use planwatch::ops::show::{ShowRequest, show};
use planwatch::ops::status::{StatusRequest, status};
use planwatch::store::live_index::LiveIndex;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

/// The real file system with timestamps of two seconds and no change time, as on FAT: after a rewrite of the same size only
/// the content differs. The second field records the paths that are opened for reading. The third field stops the clock.
#[derive(Debug, Default)]
struct Coarse(RealDisk, Arc<Mutex<Vec<PathBuf>>>, Option<i128>, OnceInList);

/// An action that happens once while plan `a` is listed.
#[derive(Default)]
struct OnceInList(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl OnceInList {
    fn in_dir(&self, dir: &Path) {
        let is_there = dir.ends_with("plans/a");
        if let Some(act) = self.0.lock().expect("no thread panicked").take_if(|_| is_there) {
            act();
        }
    }
}

impl std::fmt::Debug for OnceInList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnceInList")
    }
}

#[derive(Debug)]
struct CoarseFile(Box<dyn DiskFile>);

fn coarse(stat: Stat) -> Stat {
    let round = |ns: i128| ns - ns.rem_euclid(2_000_000_000);
    Stat { mtime_ns: round(stat.mtime_ns), ctime_ns: 0, ..stat }
}

impl Disk for Coarse {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.canonical(path)
    }
    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        self.0.lstat(path).map(coarse)
    }
    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.read_link(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        self.3.in_dir(dir);
        let found = self.0.list(dir)?;
        Ok(found.into_iter().map(|(name, stat)| (name, stat.map(coarse))).collect())
    }
    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.3.in_dir(dir);
        self.0.names(dir)
    }
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        if how == Open::Read {
            self.1.lock().expect("no thread panicked").push(path.to_owned());
        }
        self.0.open(path, how).map(|it| Box::new(CoarseFile(it)) as Box<dyn DiskFile>)
    }
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.make_dir(path, mode)
    }
    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        self.0.rename(from, to, how)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.set_mode(path, mode)
    }
    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        self.0.lock(path, patience)
    }
    fn now_ns(&self) -> i128 {
        self.2.unwrap_or_else(|| self.0.now_ns())
    }
    fn pause(&self, time: Duration) {
        self.0.pause(time);
    }
    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.random(bytes)
    }
}

impl DiskFile for CoarseFile {
    fn stat(&self) -> io::Result<Stat> {
        self.0.stat().map(coarse)
    }
    fn read(&self, limit: u64, expected: u64) -> io::Result<Vec<u8>> {
        self.0.read(limit, expected)
    }
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn copy_attributes_from(&self, like: &Stat, path: &Path) -> io::Result<()> {
        self.0.copy_attributes_from(like, path)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn lease(&self, against: Against) -> Lease {
        self.0.lease(against)
    }
    fn release(&self) {
        self.0.release();
    }
}

/// A plans directory, and the state directory of its user.
struct Tree {
    top: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Tree {
    fn new(disk: Arc<dyn Disk>) -> Self {
        let top = crate::support::temporary();
        fs::create_dir_all(top.path().join("plans")).expect("there is room");
        Self { top, disk, notices: Arc::default() }
    }

    fn context(&self, reading: Reading) -> Context {
        let (root, notices) = (self.top.path().join("plans"), Arc::clone(&self.notices));
        let state = self.top.path().join("state");
        Context {
            plans: PlansDir::open(Arc::clone(&self.disk), &root, Some(&state)).expect("it is there"),
            now: "2026-11-21T12:00:00Z".parse().expect("it is a time"),
            by: "ann".to_owned(),
            config: Config::default(),
            reading,
            here: Here { directory: root, ..Here::default() },
            freshness: Freshness::Unknown,
            expected: None,
            key: None,
            on_notice: Box::new(move |notice| notices.lock().expect("no thread panicked").push(notice)),
            kept: KeptSaves::default(),
            planned: None,
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.top.path().join("plans").join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("it is below the top")).expect("there is room");
        fs::write(path, text).expect("there is room");
    }

    /// The answers of every reading verb, as texts.
    fn answers(&self, reading: Reading, ids: &[String]) -> Vec<String> {
        let context = self.context(reading);
        let shown = |it: Result<serde_json::Value, planwatch::api::error::Error>| {
            it.map_or_else(|error| error.to_string(), |it| it.to_string())
        };
        let all = ListRequest { all: true, ..ListRequest::default() };
        let mut answers = vec![
            shown(list(&context, &all).map(|it| it.to_json())),
            shown(check(&context, &CheckRequest::default()).map(|it| it.to_json())),
            shown(next(&context, &NextRequest::default()).map(|it| it.to_json())),
            shown(status(&context, &StatusRequest::default()).map(|it| it.to_json())),
        ];
        for view in ["plans", "steps", "dependencies", "notes", "problems", "files"] {
            let found = sql(&context, &format!("SELECT * FROM {view} ORDER BY 1, 2, 3, 4"));
            answers.push(found.map_or_else(|it| it.to_string(), |it| format!("{:?}", it.rows)));
        }
        answers.extend(searched(&context));
        for id in ids {
            let plan = Some(id.clone());
            let of = ListRequest { plan: plan.clone(), ..ListRequest::default() };
            answers.push(shown(list(&context, &of).map(|it| it.to_json())));
            answers.push(shown(next(&context, &NextRequest { plan, most: None }).map(|it| it.to_json())));
            for id in [id.clone(), format!("{id}:1"), format!("{id}:2")] {
                let request = ShowRequest { id, full: true, ..ShowRequest::default() };
                answers.push(shown(show(&context, &request).map(|it| it.to_json())));
            }
        }
        answers
    }

    fn check(&self, ids: &[String], what: &dyn std::fmt::Debug) {
        let (by_index, by_files) = (self.answers(Reading::Index, ids), self.answers(Reading::Files, ids));
        for (nth, (index, files)) in by_index.iter().zip(&by_files).enumerate() {
            assert_eq!(index, files, "answer {nth} after {what:?}");
        }
        let attested = self.attested();
        assert_eq!(searched(&attested), searched(&self.context(Reading::Files)), "attested after {what:?}");
    }

    /// The context of a caller to whom the daemon attests that the index is current.
    fn attested(&self) -> Context {
        let context = self.context(Reading::Index);
        let mut index = LiveIndex::default();
        index.refresh(&context);
        let commit = index.verified();
        Context { freshness: Freshness::Attested(Box::new(move || commit)), ..context }
    }
}

fn searched(context: &Context) -> Vec<String> {
    let answer = |query: &str| {
        let request = SearchRequest { query: query.to_owned(), limit: 5, ..SearchRequest::default() };
        search(context, &request).map_or_else(|error| error.to_string(), |it| it.to_json().to_string())
    };
    ["alpha", "beta -gamma", "\"alpha beta\"", "o"].map(answer).to_vec()
}

const PLANS: [&str; 5] = ["a", "b", "A", "_archive/a", "_archive/c"];
const FILES: [&str; 7] =
    ["plan.md", "step-1.md", "step-2.md", "step-01.md", "step_3.md", "deep/step-1.md", "notes.txt"];
const WORDS: [&str; 4] = ["alpha", "beta", "gamma", "omega"];

/// Which file of the index.
#[derive(Debug, Clone, Copy)]
enum Of {
    Plans,
    Texts,
}

/// A change by an editor, a person or a version control system.
#[derive(Debug, Clone)]
enum Edit {
    Write(String, String),
    /// Rewrites the file in place with the same size and modification time.
    SameSize(String),
    Replace(String, String),
    Truncate(String),
    Rename(String, String),
    Swap(String, String),
    Delete(String),
    Link(String, String),
    DeleteIndex(Of),
    /// Changes a byte at this position.
    Damage(Of, u16, u8),
}

fn text() -> impl Strategy<Value = String> {
    let word = || select(&WORDS[..]);
    let status = select(&["pending", "completed", "in_progress", "wip", "odd"][..]);
    let depends =
        select(&["", "depends: [1]\n", "depends: [2]\n", "depends: [b:1]\n", "depends: [a:2, c:1]\n"][..]);
    let program = select(&["", "program: b\n", "kind: program\n", "program: gone\n"][..]);
    let header =
        (status, depends, program, word(), word()).prop_map(|(status, depends, program, title, body)| {
            format!("---\nstatus: {status}\n{depends}{program}---\n# {title}\n\n{body} {title}\n")
        });
    prop_oneof![
        6 => header,
        1 => Just("---\nstatus: pending\nno end\n".to_owned()),
        1 => (word(), word()).prop_map(|(a, b)| format!("# {a}\n\n## Steps\n- step-1: {b}\n- step-2: {a} (depends: step-1)\n")),
    ]
}

fn path() -> impl Strategy<Value = String> {
    (select(&PLANS[..]), select(&FILES[..])).prop_map(|(plan, file)| format!("{plan}/{file}"))
}

fn edit() -> impl Strategy<Value = Edit> {
    let plan = || select(&PLANS[..]).prop_map(str::to_owned);
    prop_oneof![
        8 => (path(), text()).prop_map(|(path, text)| Edit::Write(path, text)),
        4 => path().prop_map(Edit::SameSize),
        2 => (path(), text()).prop_map(|(path, text)| Edit::Replace(path, text)),
        1 => path().prop_map(Edit::Truncate),
        2 => (path(), path()).prop_map(|(from, to)| Edit::Rename(from, to)),
        2 => (plan(), plan()).prop_map(|(from, to)| Edit::Rename(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Edit::Swap(from, to)),
        1 => (plan(), plan()).prop_map(|(from, to)| Edit::Swap(from, to)),
        1 => path().prop_map(Edit::Delete),
        1 => plan().prop_map(Edit::Delete),
        1 => (path(), path()).prop_map(|(from, to)| Edit::Link(from, to)),
        1 => select(&[Of::Plans, Of::Texts][..]).prop_map(Edit::DeleteIndex),
        2 => (select(&[Of::Plans, Of::Texts][..]), any::<(u16, u8)>())
            .prop_map(|(of, (at, byte))| Edit::Damage(of, at, byte)),
    ]
}

/// Makes the edit, if the file system allows it.
fn make(tree: &Tree, edit: &Edit) -> io::Result<()> {
    let file = |of: &Of| match of {
        Of::Plans => tree.path(&format!(".planwatch/{}", Index::file_name())),
        Of::Texts => tree.path(&format!(".planwatch/{}", FullText::file_name())),
    };
    match edit {
        Edit::Write(path, text) => tree.write(path, text),
        Edit::SameSize(path) => return same_size(&tree.path(path)),
        Edit::Replace(path, text) => {
            tree.write("new.tmp", text);
            fs::rename(tree.path("new.tmp"), tree.path(path))?;
        }
        Edit::Truncate(path) => File::options().write(true).open(tree.path(path))?.set_len(20)?,
        Edit::Rename(from, to) => fs::rename(tree.path(from), tree.path(to))?,
        Edit::Swap(a, b) => {
            fs::rename(tree.path(a), tree.path("swap.tmp"))?;
            let moved = fs::rename(tree.path(b), tree.path(a));
            let back = if moved.is_ok() { b } else { a };
            fs::rename(tree.path("swap.tmp"), tree.path(back))?;
        }
        Edit::Delete(path) => {
            let path = tree.path(path);
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        Edit::Link(at, to) => std::os::unix::fs::symlink(tree.path(to), tree.path(at))?,
        Edit::DeleteIndex(of) => fs::remove_file(file(of))?,
        Edit::Damage(of, at, byte) => {
            let mut bytes = fs::read(file(of))?;
            let at = usize::from(*at) * 7 % bytes.len().max(1);
            if let Some(it) = bytes.get_mut(at) {
                *it ^= byte | 1;
            }
            fs::write(file(of), bytes)?;
        }
    }
    Ok(())
}

fn same_size(path: &Path) -> io::Result<()> {
    let (text, modified) = (fs::read_to_string(path)?, fs::metadata(path)?.modified()?);
    let other = if text.contains("alpha") {
        text.replace("alpha", "omega")
    } else {
        text.replace("omega", "alpha").replace("pending", "blocked")
    };
    fs::write(path, other)?;
    File::options().write(true).open(path)?.set_modified(modified)
}

fn ids() -> Vec<String> {
    ["a", "b", "A", "c"].map(str::to_owned).to_vec()
}

#[track_caller]
fn check_edits(disk: fn() -> Arc<dyn Disk>, n_cases: u32) {
    let scripts = proptest::collection::vec(edit(), 1..14);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n_cases) };
    let done = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    )
    .run(&scripts, |script| {
        let tree = Tree::new(disk());
        for (path, word) in [("a/plan.md", "alpha"), ("a/step-1.md", "beta"), ("b/step-1.md", "omega")] {
            tree.write(path, &format!("---\nstatus: pending\n---\n# {word}\n\n{word}\n"));
        }
        tree.check(&ids(), &"nothing");
        for edit in &script {
            make(&tree, edit).ok();
            tree.check(&ids(), edit);
        }
        Ok(())
    });
    if let Err(error) = done {
        panic!("{error}");
    }
}

#[test]
fn after_any_edits_the_index_matches_the_files() {
    check_edits(|| Arc::new(RealDisk), 4);
}

#[test]
fn after_any_edits_with_coarse_timestamps_the_index_matches_the_files() {
    check_edits(|| Arc::new(Coarse::default()), 4);
}

#[test]
fn a_rewrite_with_the_same_size_and_timestamp_is_detected() {
    let before = SystemTime::now();
    // The clock is stopped, so the file counts as new however long the test takes.
    let tree =
        Tree::new(Arc::new(Coarse(RealDisk, Arc::default(), Some(RealDisk.now_ns()), OnceInList::default())));
    tree.write("a/plan.md", "# A\n");
    for round in 0..40 {
        let status = ["pending", "blocked"][round % 2];
        tree.write("a/step-1.md", &format!("---\nstatus: {status}\n---\n"));
        File::open(tree.path("a/step-1.md")).and_then(|it| it.set_modified(before)).expect("it is there");
        let listed = list(&tree.context(Reading::Index), &ListRequest::default()).expect("it is listed");
        let blocked = &listed.to_json()["plans"][0]["steps_blocked"];
        assert_eq!(*blocked, round % 2, "round {round}");
    }
}

#[test]
fn only_files_that_may_have_changed_are_read() {
    let read = Arc::default();
    let tree = Tree::new(Arc::new(Coarse(RealDisk, Arc::clone(&read), None, OnceInList::default())));
    let names = ["plan.md", "step-1.md", "step-2.md", "step-3.md", "step-03x.md"];
    let files: Vec<_> = names.iter().map(|it| format!("a/{it}")).collect();
    for (path, hours) in files.iter().zip(1..) {
        tree.write(path, "---\nstatus: pending\n---\n# A\n");
        let time = SystemTime::now() - Duration::from_secs(hours * 3600);
        File::options()
            .write(true)
            .open(tree.path(path))
            .and_then(|it| it.set_modified(time))
            .expect("it is there");
    }
    let listed = || list(&tree.context(Reading::Index), &ListRequest::default()).expect("it is listed");
    let read_of = |what: &dyn Fn()| {
        what();
        read.lock().expect("no thread panicked").clear();
        listed();
        let read: Vec<PathBuf> = read.lock().expect("no thread panicked").clone();
        files.iter().filter(|it| read.contains(&tree.path(it))).cloned().collect::<Vec<_>>()
    };
    listed();
    assert!(read_of(&|| {}).is_empty());
    let save = || tree.write("a/step-2.md", "---\nstatus: blocked\n---\n# A\n");
    assert!(
        read_of(&save).contains(&"a/plan.md".to_owned()),
        "a changed file is read together with its plan"
    );
    // Only a file with a timestamp that is still too new may be read.
    let again = read_of(&|| {});
    assert!(again.is_empty() || again == ["a/step-2.md"], "{again:?}");
    // A new inode with the same bytes and modification time.
    let copy = || {
        let time = fs::metadata(tree.path("a/step-1.md")).and_then(|it| it.modified()).expect("it is there");
        fs::copy(tree.path("a/step-1.md"), tree.path("a/new")).expect("there is room");
        fs::rename(tree.path("a/new"), tree.path("a/step-1.md")).expect("it is there");
        File::options()
            .write(true)
            .open(tree.path("a/step-1.md"))
            .and_then(|it| it.set_modified(time))
            .expect("it is there");
    };
    let again = read_of(&copy);
    assert!(again == ["a/step-1.md"] || again == ["a/step-1.md", "a/step-2.md"], "{again:?}");
}

#[test]
fn a_claim_detects_a_rewrite_with_the_same_size_and_timestamp() {
    let tree = Tree::new(Arc::new(Coarse::default()));
    tree.write("a/plan.md", "# A\n");
    let step = |status: &str| format!("---\nstatus: {status}\n---\n# Step\n");
    for (number, status) in [(1, "pending"), (2, "blocked"), (3, "pending"), (4, "pending")] {
        tree.write(&format!("a/step-{number}.md"), &step(status));
    }
    assert_eq!(claimed(&tree), "a:1");
    tree.write("a/step-2.md", &step("pending"));
    assert_eq!(claimed(&tree), "a:2");
    // Step 3 is next in the queue.
    tree.write("a/step-3.md", &step("skipped"));
    assert_eq!(claimed(&tree), "a:4");
}

/// The step that a claim on all plans gets.
fn claimed(tree: &Tree) -> String {
    let report = claim(&tree.context(Reading::Index), &ClaimRequest::default()).expect("a step is claimed");
    report.step.expect("one is ready")["id"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_claim_takes_the_most_urgent_step_from_files_or_index() {
    // The changed plan is read from its files, the others from the index.
    for changed in [None, Some("a"), Some("b"), Some("c")] {
        let tree = Tree::new(Arc::new(RealDisk));
        for (plan, priority) in [("a", "low"), ("b", "high"), ("c", "medium")] {
            tree.write(&format!("{plan}/plan.md"), &format!("---\npriority: {priority}\n---\n# Plan\n"));
            tree.write(&format!("{plan}/step-1.md"), "# Step\n");
        }
        list(&tree.context(Reading::Index), &ListRequest::default()).expect("it is listed");
        if let Some(plan) = changed {
            tree.write(&format!("{plan}/step-2.md"), "# Step\n");
        }
        let order = if changed == Some("b") { ["b:1", "b:2", "c:1"] } else { ["b:1", "c:1", ""] };
        for step in order.iter().filter(|it| !it.is_empty()) {
            assert_eq!(&claimed(&tree), step, "{changed:?}");
        }
    }
}

#[test]
fn a_change_of_the_index_during_the_scan_changes_no_answer() {
    let disk = Arc::new(Coarse::default());
    let tree = Tree::new(Arc::clone(&disk) as Arc<dyn Disk>);
    for plan in ["a", "b", "c"] {
        tree.write(&format!("{plan}/step-1.md"), &format!("# alpha\n\nbeta of {plan}\n"));
    }
    let ids = ["a", "b"].map(str::to_owned);
    tree.check(&ids, &"nothing");
    let runtime = tree.context(Reading::Index).plans.index_dir().expect("there is a place");
    let file = |of| match of {
        Of::Plans => Index::file_name(),
        Of::Texts => FullText::file_name(),
    };
    type Act = Box<dyn FnOnce() + Send>;
    let delete = |of| -> Act {
        let path = runtime.join(file(of));
        Box::new(move || fs::remove_file(path).expect("it is there"))
    };
    // An index that was created again and is still empty.
    let empty = || -> Act {
        let dir = runtime.clone();
        Box::new(move || {
            let (mut index, _) = Index::open(Place::Directory(&dir)).expect("it can be opened");
            let heads = index.snapshot().and_then(|it| it.heads()).expect("it is sound");
            index.write(&mut heads.into_iter().map(|it| Change::Remove(it.key))).expect("there is room");
        })
    };
    for round in 0..8 {
        let (of_edited, act): (_, Act) = match round % 4 {
            0 => ("nothing", empty()),
            1 => ("b/step-1.md", empty()),
            2 => ("b/step-1.md", delete(Of::Plans)),
            _ => ("b/step-1.md", delete(Of::Texts)),
        };
        if of_edited != "nothing" {
            tree.write(of_edited, &format!("# alpha {round}\n\ngamma of b\n"));
        }
        *disk.3.0.lock().expect("no thread panicked") = Some(act);
        // In the first rounds the search is the first reader.
        if round < 4 {
            assert_eq!(searched(&tree.context(Reading::Index)), searched(&tree.context(Reading::Files)));
        } else {
            tree.check(&ids, &round);
        }
        assert!(disk.3.0.lock().expect("no thread panicked").is_none(), "the action has happened");
    }
}

#[test]
fn a_refresh_returns_the_changed_plans() {
    let tree = Tree::new(Arc::new(RealDisk));
    let context = tree.context(Reading::Index);
    let mut index = LiveIndex::default();
    let mut changed = |names: Option<&[&str]>| {
        let changed = match names.map(|it| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()) {
            None => index.refresh(&context),
            Some(names) => index.refresh_plans(&context, &names),
        };
        assert!(index.verified().is_some());
        changed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    for path in ["a/plan.md", "a/step-1.md", "b/step-1.md", "_archive/c/plan.md"] {
        tree.write(path, "# One\n");
    }
    assert_eq!(changed(None), "a b c".to_owned());
    assert_eq!(changed(None), String::new());
    tree.write("a/step-2.md", "# Two\n");
    tree.write("b/step-1.md", "# Another\n");
    assert_eq!(changed(Some(&["a", "c", "gone"])), "a".to_owned());
    assert_eq!(changed(Some(&["a"])), String::new());
    fs::rename(tree.path("a"), tree.path("_archive/a")).expect("it can be moved");
    assert_eq!(changed(Some(&["a"])), "a".to_owned());
    assert_eq!(changed(None), "b".to_owned());
    fs::remove_dir_all(tree.path("b")).expect("it is there");
    assert_eq!(changed(Some(&["b"])), "b".to_owned());
    assert_eq!(*tree.notices.lock().expect("no thread panicked"), []);
}
