//! Tests of reads and writes on the machine's own file system.
#![expect(clippy::disallowed_methods, reason = "the tests play the editors and other programs")]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

mod half_saved;

/// A plans directory with one plan `p` of one step, and a state directory.
struct Place {
    dir: TempDir,
    plans: PlansDir,
}

fn place() -> Place {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("plans/p")).unwrap();
    fs::write(dir.path().join("plans/p/step-1.md"), "old\n").unwrap();
    let plans = open(dir.path());
    Place { dir, plans }
}

fn open(dir: &Path) -> PlansDir {
    PlansDir::open(Arc::new(RealDisk), &dir.join("plans"), Some(&dir.join("state"))).unwrap()
}

fn lock(plans: &PlansDir) -> Locked<'_> {
    plans.lock(&mut || panic!("no other process holds the lock")).unwrap()
}

impl Place {
    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join("plans").join(relative)
    }

    fn text(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }
}

fn step() -> &'static Path {
    Path::new("p/step-1.md")
}

/// Appends a line, and runs `meanwhile` after each read.
fn append(locked: &mut Locked<'_>, meanwhile: &mut dyn FnMut()) -> Result<Written, DiskError> {
    locked.change(step(), &mut |bytes, _| {
        meanwhile();
        Some([bytes, b"ours\n"].concat())
    })
}

#[test]
fn a_change_replaces_the_text_and_returns_the_result() {
    let it = place();
    let written = append(&mut lock(&it.plans), &mut || {}).unwrap();
    assert_eq!(it.text("p/step-1.md"), "old\nours\n");
    assert_eq!(written.done, Done::Replaced);
    assert_eq!(written.bytes, b"old\nours\n");
    assert_eq!(written.stat, it.plans.read(step()).unwrap().stat);
    assert_eq!(it.plans.kept(), []);
}

#[test]
fn a_change_that_changes_nothing_does_not_touch_the_file() {
    let it = place();
    let before = it.plans.read(step()).unwrap();
    let written = lock(&it.plans).change(step(), &mut |bytes, _| Some(bytes.to_vec())).unwrap();
    assert_eq!(written.done, Done::Nothing);
    assert_eq!(it.plans.read(step()).unwrap(), before);
}

#[test]
fn a_save_between_reading_and_replacing_becomes_the_new_base() {
    let it = place();
    let mut saves = 0;
    let path = it.path("p/step-1.md");
    let written = append(&mut lock(&it.plans), &mut || {
        saves += 1;
        if saves == 1 {
            fs::write(path.with_extension("tmp"), "theirs\n").unwrap();
            fs::rename(path.with_extension("tmp"), &path).unwrap();
        }
    })
    .unwrap();
    assert_eq!(it.text("p/step-1.md"), "theirs\nours\n");
    assert_eq!(written.kept, []);
    assert_eq!(saves, 2);
}

#[test]
fn a_file_that_replaces_a_symbolic_link_meanwhile_is_changed_and_the_file_behind_it_is_not() {
    for is_keyed in [false, true] {
        let it = place();
        fs::create_dir(it.path("behind")).unwrap();
        let (path, behind) = (it.path("p/step-1.md"), it.path("behind/one.md"));
        fs::rename(&path, &behind).unwrap();
        symlink("../behind/one.md", &path).unwrap();
        drop(lock(&it.plans));
        let mut saves = 0;
        let mut locked = lock(&it.plans);
        let key = Keyed::new("k", 1);
        key.note(Some(Vec::new()));
        locked.use_key(is_keyed.then_some(key));
        append(&mut locked, &mut || {
            saves += 1;
            if saves == 1 {
                fs::write(path.with_extension("tmp"), "theirs\n").unwrap();
                fs::rename(path.with_extension("tmp"), &path).unwrap();
            }
        })
        .unwrap();
        let texts = (it.text("p/step-1.md"), it.text("behind/one.md"));
        assert_eq!(texts, ("theirs\nours\n".into(), "old\n".into()));
        assert_eq!((saves, it.plans.kept(), it.plans.has_answer("k")), (2, vec![], is_keyed));
    }
}

#[test]
fn writes_into_a_new_file_that_is_undone_are_preserved_and_reported() {
    let it = place();
    let path = |it: &str| std::path::PathBuf::from(it);
    let mut locked = lock(&it.plans);
    // The second operation fails, so the first is undone.
    let ops = vec![
        FileOp::Create { path: path("p/step-4.md"), bytes: b"new\n".to_vec() },
        FileOp::Create { path: path(&format!("p/{}.md", "x".repeat(300))), bytes: b"newer\n".to_vec() },
    ];
    assert!(locked.batch("add", "2026-11-21T12:00:00Z", ops).is_err());
    drop(locked);
    assert!(!it.path("p/step-4.md").exists());
    let taken = fs::read_dir(it.path(".planwatch/displaced"))
        .unwrap()
        .flatten()
        .find(|it| fs::read(it.path()).unwrap() == b"new\n");
    fs::write(taken.unwrap().path(), "theirs\n").unwrap();
    drop(lock(&it.plans));
    let kept = it.plans.kept();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[test]
fn an_editor_that_saves_every_time_wins() {
    let it = place();
    let mut saves = 0;
    let path = it.path("p/step-1.md");
    let outcome = append(&mut lock(&it.plans), &mut || {
        saves += 1;
        fs::write(&path, format!("save {saves}\n")).unwrap();
    });
    assert!(matches!(outcome, Err(DiskError::FileChanged { .. })), "{outcome:?}");
    assert_eq!(it.text("p/step-1.md"), format!("save {saves}\n"));
}

#[test]
fn an_edit_that_fails_on_a_new_save_leaves_that_save() {
    let it = place();
    let path = it.path("p/step-1.md");
    let mut calls = 0;
    let outcome = lock(&it.plans).change(step(), &mut |_, _| {
        calls += 1;
        if calls == 2 {
            return None;
        }
        fs::write(&path, "theirs\n").unwrap();
        Some(b"ours\n".to_vec())
    });
    assert_eq!(outcome.unwrap().done, Done::Refused);
    assert_eq!(it.text("p/step-1.md"), "theirs\n");
    assert_eq!(it.plans.kept(), []);
}

#[test]
fn a_late_write_into_the_replaced_inode_is_kept_and_reported() {
    for mode in [0o644, 0o1644] {
        let it = place();
        fs::set_permissions(it.path("p/step-1.md"), fs::Permissions::from_mode(mode)).unwrap();
        let mut editor = fs::OpenOptions::new().append(true).open(it.path("p/step-1.md")).unwrap();
        append(&mut lock(&it.plans), &mut || {}).unwrap();
        std::io::Write::write_all(&mut editor, b"late\n").unwrap();
        let kept = it.plans.kept();
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].path.as_path(), kept[0].why), (step(), KeptWhy::Late));
        assert_eq!(fs::read_to_string(it.plans.root().join(&kept[0].kept)).unwrap(), "old\nlate\n");
    }
}

#[test]
fn mode_links_and_attributes_survive() {
    let it = place();
    let path = it.path("p/step-1.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let name = "user.planwatch.test";
    let with_attributes = rustix::fs::setxattr(&path, name, b"x", rustix::fs::XattrFlags::empty()).is_ok();
    append(&mut lock(&it.plans), &mut || {}).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    if with_attributes {
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(&path, name, &mut value[..]), Ok(1));
    }
    fs::hard_link(&path, it.path("p/other.md")).unwrap();
    append(&mut lock(&it.plans), &mut || {}).unwrap();
    assert_eq!(it.text("p/other.md"), "old\nours\nours\n");
    assert_eq!(it.plans.kept(), []);
}

#[test]
fn creating_never_replaces() {
    let it = place();
    let mut locked = lock(&it.plans);
    let refused = locked.create(step(), b"new\n").unwrap_err();
    assert!(matches!(refused, DiskError::Exists { .. }), "{refused:?}");
    assert_eq!(it.text("p/step-1.md"), "old\n");
    let written = locked.create(Path::new("_archive/q/removed-1/step-2.md"), b"new\n").unwrap();
    assert_eq!(it.text("_archive/q/removed-1/step-2.md"), "new\n");
    assert_eq!(written.stat.len, 4);
    assert_eq!(fs::read_dir(it.path(".planwatch/displaced")).unwrap().count(), 0);
}

#[test]
fn a_plan_appears_whole_or_not_at_all() {
    let it = place();
    let files = [("plan.md".to_string(), b"# Q\n".to_vec()), ("step-1.md".to_string(), b"# S\n".to_vec())];
    let mut locked = lock(&it.plans);
    locked.create_dir_with(Path::new("q"), &files).unwrap();
    assert_eq!(it.text("q/step-1.md"), "# S\n");
    let refused = locked.create_dir_with(Path::new("q"), &files).unwrap_err();
    assert_eq!(refused.code(), "plan-exists");
    assert!(!it.path(".planwatch/building").exists());
    let bad = [("../x".to_string(), Vec::new())];
    assert_eq!(locked.create_dir_with(Path::new("r"), &bad).unwrap_err().code(), "bad-path");
    assert!(!it.path("r").exists());
}

#[test]
fn a_file_with_two_hard_links_is_not_written_while_another_program_has_it_open() {
    let it = place();
    let link = it.dir.path().join("link.md");
    fs::hard_link(it.path("p/step-1.md"), &link).unwrap();
    let editor = fs::OpenOptions::new().append(true).open(&link).unwrap();
    let outcome = append(&mut lock(&it.plans), &mut || {});
    let Err(error) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(error, DiskError::InUse { .. }), "{error:?}");
    assert_eq!((error.code(), it.text("p/step-1.md").as_str()), ("file-changed", "old\n"));
    assert_eq!(fs::read_dir(it.path(".planwatch/displaced")).unwrap().count(), 0);
    drop(editor);
    append(&mut lock(&it.plans), &mut || {}).unwrap();
    assert_eq!(fs::read_to_string(&link).unwrap(), "old\nours\n");
}

#[test]
fn opening_a_leased_file_waits_until_the_lease_is_released() {
    let it = place();
    let path = it.path("p/step-1.md");
    let ours = RealDisk.open(&path, Open::InPlace).unwrap();
    assert_eq!(ours.lease(Against::Everyone), Lease::Taken);
    std::thread::scope(|scope| {
        let theirs = scope.spawn(|| fs::OpenOptions::new().append(true).open(&path).unwrap());
        let reader = scope.spawn(|| it.plans.read(step()).unwrap().bytes);
        // Opening the file sends a signal to the holder of the lease. The signal does not end the process.
        let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        let refused = fs::OpenOptions::new().read(true).custom_flags(nonblock).open(&path);
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        ours.write(b"new\n").unwrap();
        ours.release();
        drop(theirs.join().unwrap());
        assert_eq!(reader.join().unwrap(), b"new\n");
    });
}

#[test]
fn links_are_followed_inside_only() {
    let it = place();
    fs::write(it.dir.path().join("secret"), "secret\n").unwrap();
    fs::create_dir(it.path("q")).unwrap();
    symlink("../p/step-1.md", it.path("q/step-1.md")).unwrap();
    symlink(it.path("p/step-1.md").canonicalize().unwrap(), it.path("q/step-2.md")).unwrap();
    symlink("../../secret", it.path("q/step-3.md")).unwrap();
    symlink("/dev/zero", it.path("q/step-4.md")).unwrap();
    symlink("step-5.md", it.path("q/step-5.md")).unwrap();
    symlink("nowhere", it.path("q/step-6.md")).unwrap();
    symlink("p", it.path("linked")).unwrap();
    symlink("../.planwatch/lock", it.path("q/step-7.md")).unwrap();
    drop(lock(&it.plans));
    for inside in ["q/step-1.md", "q/step-2.md", "linked/step-1.md"] {
        let found = it.plans.read(Path::new(inside)).unwrap();
        assert_eq!((found.bytes.as_slice(), found.real.as_path()), (&b"old\n"[..], step()), "{inside}");
    }
    for n in 3..=7 {
        let error = it.plans.read(Path::new(&format!("q/step-{n}.md"))).unwrap_err();
        assert!(matches!(error, DiskError::LeadsOut { .. }), "{n}: {error:?}");
    }
    lock(&it.plans).change(Path::new("q/step-1.md"), &mut |_, _| Some(b"through\n".to_vec())).unwrap();
    assert_eq!(it.text("p/step-1.md"), "through\n");
    assert!(fs::symlink_metadata(it.path("q/step-1.md")).unwrap().is_symlink());
    assert_eq!(scan(&it.plans).trouble.len(), 5);
}

#[test]
fn special_files_are_reported_without_blocking() {
    let it = place();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        it.path("p/step-2.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(it.path("p/step-3.md")).unwrap();
    fs::create_dir(it.path("p/step-4.md")).unwrap();
    let big = fs::File::create(it.path("p/step-5.md")).unwrap();
    big.set_len(FILE_LIMIT + 1).unwrap();
    let code = |n| it.plans.read(Path::new(&format!("p/step-{n}.md"))).unwrap_err().code();
    assert_eq!(
        [2, 3, 4, 5, 6].map(code),
        ["not-a-file", "not-a-file", "not-a-file", "too-large", "not-found"]
    );
    let mut locked = lock(&it.plans);
    for n in 2..=4 {
        let edit = &mut |_: &[u8], _: &[Vec<u8>]| Some(Vec::new());
        assert!(locked.change(Path::new(&format!("p/step-{n}.md")), edit).is_err());
    }
}

#[test]
fn names_that_are_not_utf8_are_files_like_others() {
    let it = place();
    let name = PathBuf::from(std::ffi::OsStr::from_bytes(b"p/step-\xff.md"));
    fs::write(it.path("p").join(name.file_name().unwrap()), "x\n").unwrap();
    assert_eq!(it.plans.read(&name).unwrap().bytes, b"x\n");
    lock(&it.plans).change(&name, &mut |_, _| Some(b"y\n".to_vec())).unwrap();
    assert_eq!(it.plans.read(&name).unwrap().bytes, b"y\n");
    assert!(scan(&it.plans).entries.iter().any(|entry| entry.relative == name));
}

#[test]
fn a_scan_lists_plans_and_never_the_runtime_state() {
    let it = place();
    drop(lock(&it.plans));
    for dir in ["p/nested/deeper", "_archive/a/removed-1", "_decisions", ".hidden"] {
        fs::create_dir_all(it.path(dir)).unwrap();
    }
    for file in ["README.md", "p/nested/plan.md", "_archive/a/removed-1/step-1.md", "_decisions/d.md"] {
        fs::write(it.path(file), "").unwrap();
    }
    let scan = scan(&it.plans);
    let names: Vec<_> = scan.entries.iter().map(|it| it.relative.to_str().unwrap()).collect();
    let expected = [
        "_archive",
        "_archive/a",
        "_archive/a/removed-1",
        "_archive/a/removed-1/step-1.md",
        "_decisions",
        "_decisions/d.md",
        "p",
        "p/nested",
        "p/nested/deeper",
        "p/nested/plan.md",
        "p/step-1.md",
    ];
    assert_eq!(names, expected);
    let plan = it.plans.scan_plan(Path::new("p"));
    assert_eq!(plan.entries.len(), 5);
    assert_eq!(plan.entries.last().unwrap().stat, it.plans.read(step()).unwrap().stat);
}

#[test]
fn a_foreign_runtime_directory_is_unchanged_and_only_its_preserved_texts_are_reported() {
    let it = place();
    let late = ".planwatch/displaced/kept-late.0000000000000001.p%2Fstep-1.md";
    fs::create_dir_all(it.path(".planwatch/displaced")).unwrap();
    fs::write(it.path(".planwatch/stamp"), "0".repeat(64)).unwrap();
    fs::write(it.path(late), "theirs").unwrap();
    append(&mut lock(&it.plans), &mut || {}).unwrap();
    let kept: Vec<_> = it.plans.kept().into_iter().map(|it| it.kept).collect();
    assert_eq!(kept, [Path::new(late)], "it may belong to another state home");
    assert_eq!((it.text(".planwatch/stamp"), it.text(late)), ("0".repeat(64), "theirs".to_owned()));
    let own = it.plans.runtime_dir().unwrap();
    assert_eq!(own.parent(), Some(it.plans.root().join(".planwatch/by").as_path()));
    assert!(it.path(".planwatch/.gitignore").exists(), "git would list the lock");
    // The same user on the same machine finds the state directory again.
    let again = open(it.dir.path());
    drop(lock(&again));
    assert_eq!(again.runtime_dir(), Some(own));
    assert_eq!(fs::read_dir(it.path(".planwatch/by")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(it.path("")).unwrap().count(), 2);
}

#[test]
fn directories_of_others_are_not_followed() {
    let it = place();
    drop(lock(&it.plans));
    let elsewhere = it.dir.path().join("elsewhere");
    fs::rename(it.path(".planwatch"), &elsewhere).unwrap();
    let before = fs::read_dir(&elsewhere).unwrap().count();
    symlink("../elsewhere", it.path(".planwatch")).unwrap();
    append(&mut lock(&it.plans), &mut || {}).unwrap();
    assert!(fs::symlink_metadata(it.path(".planwatch")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), before);
    let own = it.plans.runtime_dir().unwrap();
    assert_eq!(own.parent(), Some(it.plans.root().join(".planwatch.by").as_path()));
    assert_eq!(own.metadata().unwrap().mode() & 0o777, 0o700);
    // A link in place of `.planwatch.by` is not followed either; then nothing is written.
    fs::rename(it.path(".planwatch.by"), it.dir.path().join("beside")).unwrap();
    symlink("../beside", it.path(".planwatch.by")).unwrap();
    assert!(it.plans.lock(&mut || {}).is_err());
    assert_eq!(it.text("p/step-1.md"), "old\nours\n");
}

#[test]
fn without_a_place_for_the_key_lock_and_changes_still_work() {
    let it = place();
    fs::write(it.dir.path().join("file"), "").unwrap();
    let plans = PlansDir::open(
        Arc::new(RealDisk),
        &it.dir.path().join("plans"),
        Some(&it.dir.path().join("file/below")),
    )
    .unwrap();
    assert_eq!(plans.runtime_dir(), None);
    append(&mut lock(&plans), &mut || {}).unwrap();
    assert_eq!(it.text("p/step-1.md"), "old\nours\n");
}

#[test]
fn a_deleted_lock_file_still_excludes_others() {
    let it = place();
    let first = std::cell::Cell::new(Some(lock(&it.plans)));
    fs::remove_dir_all(it.path(".planwatch")).unwrap();
    // The plans directory itself is locked, too.
    let mut waits = 0;
    let second = open(it.dir.path());
    let second = second.lock(&mut || {
        waits += 1;
        drop(first.take());
    });
    assert!(second.is_ok() && waits == 1, "{second:?}");
}

#[test]
fn changes_of_one_file_run_one_at_a_time() {
    let it = place();
    fs::write(it.path("p/step-1.md"), "0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let plans = open(it.dir.path());
                for _ in 0..25 {
                    let mut locked = plans.lock(&mut || {}).unwrap();
                    locked
                        .change(step(), &mut |bytes, _| {
                            let n: u32 = std::str::from_utf8(bytes).unwrap().parse().unwrap();
                            Some((n + 1).to_string().into_bytes())
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(it.text("p/step-1.md"), "100");
    assert_eq!(it.plans.kept(), []);
}

/// Scans the whole plans directory.
fn scan(plans: &PlansDir) -> Scan {
    let (dirs, mut scan) = plans.plan_dirs();
    for dir in &dirs {
        plans.scan_dir(dir, &mut scan);
    }
    scan.sorted()
}

fn whole_tree(plans: &PlansDir) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let text = |entry: &ScanEntry| match entry.stat.kind {
        FileKind::File => Some(plans.read(&entry.relative).unwrap().bytes),
        _ => None,
    };
    scan(plans).entries.iter().map(|entry| (entry.relative.clone(), text(entry))).collect()
}

fn restructuring() -> Vec<FileOp> {
    let path = PathBuf::from;
    vec![
        FileOp::Create { path: path("p/step-3.md"), bytes: b"third\n".to_vec() },
        FileOp::Change { path: path("p/step-1.md"), before: b"old\n".to_vec(), after: b"changed\n".to_vec() },
        FileOp::Rename { from: path("p/step-1.md"), to: path("p/step-4.md") },
        FileOp::Change {
            path: path("p/step-4.md"),
            before: b"changed\n".to_vec(),
            after: b"changed twice\n".to_vec(),
        },
        FileOp::Remove { path: path("q"), to: path("_archive/q") },
        FileOp::Discard { path: path("p/step-2.md"), before: b"second\n".to_vec() },
    ]
}

fn two_plans() -> Place {
    let it = place();
    fs::create_dir(it.path("q")).unwrap();
    fs::write(it.path("q/plan.md"), "q\n").unwrap();
    fs::write(it.path("p/step-2.md"), "second\n").unwrap();
    it
}

#[test]
fn a_batch_does_everything_and_undo_reverts_everything() {
    let it = two_plans();
    let before = whole_tree(&it.plans);
    let mut locked = lock(&it.plans);
    locked.batch("replace", "2026-11-21T09:14:03Z", restructuring()).unwrap();
    assert_eq!(it.text("p/step-4.md"), "changed twice\n");
    assert_eq!(it.text("p/step-3.md"), "third\n");
    assert_eq!(it.text("_archive/q/plan.md"), "q\n");
    assert!(!it.path("p/step-2.md").exists() && !it.path(".planwatch/journal").exists());
    let listed = it.plans.undo_list();
    assert_eq!((listed.len(), listed[0].verb.as_str()), (1, "replace"));
    locked.undo().unwrap();
    assert_eq!(whole_tree(&it.plans), before);
    assert!(matches!(locked.undo(), Err(UndoError::Nothing)));
    assert_eq!(it.plans.kept(), []);
}

#[test]
fn a_batch_whose_base_changed_changes_nothing() {
    for (changed, code) in
        [("p/step-1.md", "file-changed"), ("p/step-3.md", "plan-exists"), ("p/step-2.md", "file-changed")]
    {
        let it = two_plans();
        fs::write(it.path(changed), "theirs\n").unwrap();
        let before = whole_tree(&it.plans);
        let refused = lock(&it.plans).batch("replace", "", restructuring()).unwrap_err();
        assert_eq!(refused.code(), code, "{changed}");
        assert_eq!(whole_tree(&it.plans), before, "{changed}");
        assert!(it.plans.undo_list().is_empty());
    }
}

#[test]
fn a_batch_refuses_a_name_that_it_frees_itself() {
    let it = two_plans();
    let path = PathBuf::from;
    let swap = vec![
        FileOp::Rename { from: path("p/step-1.md"), to: path("p/step-9.md") },
        FileOp::Rename { from: path("p/step-2.md"), to: path("p/step-1.md") },
    ];
    assert_eq!(lock(&it.plans).batch("move", "", swap).unwrap_err().code(), "bad-path");
    assert_eq!(it.text("p/step-2.md"), "second\n");
}

#[test]
fn writes_of_several_threads_are_undone_as_a_whole() {
    let it = place();
    let mut locked = lock(&it.plans);
    locked.begin("done", "t1");
    let mut other = locked.for_thread(1, ("claim", "t1", "bob"));
    let create = |locked: &mut Locked<'_>, name: &str| locked.create(Path::new(name), b"x\n").unwrap();
    create(&mut other, "p/one.md");
    create(&mut locked, "p/two.md");
    create(&mut other, "p/three.md");
    assert_eq!(locked.undo().unwrap().verb, "done");
    assert!(it.path("p/one.md").exists() && !it.path("p/two.md").exists());
    assert_eq!(locked.undo().unwrap().verb, "claim");
    assert!(!it.path("p/one.md").exists() && !it.path("p/three.md").exists());
    assert!(it.plans.undo_list().is_empty());
}

#[test]
fn undo_goes_back_one_command_at_a_time() {
    let it = place();
    let mut locked = lock(&it.plans);
    locked.begin("new", "t1");
    locked.create_dir_with(Path::new("r"), &[("plan.md".to_string(), b"r\n".to_vec())]).unwrap();
    locked.begin("done", "t2");
    append(&mut locked, &mut || {}).unwrap();
    append(&mut locked, &mut || {}).unwrap();
    assert_eq!(locked.undo().unwrap().verb, "done");
    assert_eq!(it.text("p/step-1.md"), "old\n");
    fs::write(it.path("r/plan.md"), "edited\n").unwrap();
    assert_eq!(locked.undo().unwrap_err().code(), "file-changed");
    fs::write(it.path("r/plan.md"), "r\n").unwrap();
    assert_eq!(locked.undo().unwrap().verb, "new");
    assert!(!it.path("r").exists());
    assert!(it.plans.undo_list().is_empty());
}
