//! Tests with files that are being saved, or that were removed a moment ago and may be written again.
#![expect(clippy::disallowed_methods, reason = "the test makes files as editors do")]

use super::*;

/// Returns lengths as the index does: by the requested path, even if that is a symbolic link.
struct Longer;

impl FileRecords for Longer {
    fn length(&self, relative: &Path) -> Option<u64> {
        (relative == step()).then_some(1000)
    }

    fn is_checked_out(&self, relative: &Path, bytes: &[u8]) -> bool {
        relative == Path::new("p/step-1.md") && bytes == b"checked out\n"
    }
}

#[test]
fn a_file_behind_a_symbolic_link_that_is_being_saved_is_not_written_to() {
    let it = place();
    fs::create_dir(it.path("behind")).unwrap();
    fs::rename(it.path("p/step-1.md"), it.path("behind/one.md")).unwrap();
    symlink("../behind/one.md", it.path("p/step-1.md")).unwrap();
    let mut locked = lock(&it.plans);
    locked.use_records(&Longer);
    let refused = append(&mut locked, &mut || {});
    assert!(matches!(refused, Err(DiskError::HalfSaved { .. })), "{refused:?}");
    let (before, after) = (b"old\n".to_vec(), b"new\n".to_vec());
    let ops = vec![FileOp::Change { path: step().to_path_buf(), before, after }];
    let refused = locked.batch("replace", "1", ops);
    assert!(matches!(refused, Err(DiskError::HalfSaved { .. })), "{refused:?}");
    assert_eq!(it.text("behind/one.md"), "old\n");
}

#[test]
fn a_short_file_that_git_has_just_written_is_not_half_saved() {
    let it = place();
    let mut locked = lock(&it.plans);
    locked.use_records(&Longer);
    fs::write(it.path("p/step-1.md"), "checked out\n").unwrap();
    append(&mut locked, &mut || {}).unwrap();
    assert_eq!(it.text("p/step-1.md"), "checked out\nours\n");
}

#[test]
fn a_file_removed_a_moment_ago_is_not_recreated() {
    let it = place();
    append(&mut lock(&it.plans), &mut || {}).unwrap();
    fs::remove_file(it.path("p/step-1.md")).unwrap();
    let refused = lock(&it.plans).refuse_vanished(step());
    assert!(matches!(refused, Err(DiskError::Vanished { .. })), "{refused:?}");
    // Neither the undo log nor the index contains this file.
    lock(&it.plans).refuse_vanished(Path::new("p/step-7.md")).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3);
    fs::File::open(it.path("p")).unwrap().set_modified(long_ago).unwrap();
    lock(&it.plans).refuse_vanished(step()).unwrap();
}
