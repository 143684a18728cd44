#![expect(clippy::disallowed_methods, reason = "tests make and read their own files")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;
use crate::disk::RealDisk;

struct Place {
    top: tempfile::TempDir,
    project: Project,
}

fn place() -> Place {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir_all(top.path().join("shop/.git")).unwrap();
    let (root, state) = (top.path().join("shop"), top.path().join("state"));
    let project = Project::open(Arc::new(RealDisk), &root, Some(&state), None).unwrap();
    Place { top, project }
}

impl Place {
    fn write(&self, path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Result<(), DiskError> {
        let path = self.project.place(Path::new(path))?;
        let op = match (before.map(<[u8]>::to_vec), after.map(<[u8]>::to_vec)) {
            (None, after) => FileOp::Create { path, bytes: after.unwrap_or_default() },
            (Some(before), None) => FileOp::Discard { path, before },
            (Some(before), Some(after)) => FileOp::Change { path, before, after },
        };
        self.project.write(("init", "now"), vec![op], &mut || {}, &mut ProjectReport::default())
    }

    fn text(&self, path: &str) -> Option<Vec<u8>> {
        self.project.read(Path::new(path)).unwrap()
    }
}

#[test]
fn a_file_is_created_replaced_and_removed_only_if_unchanged() {
    let it = place();
    let path = "a/b/c.md";
    it.write(path, None, Some(b"1")).unwrap();
    assert!(!it.project.root().join(HIDDEN).exists(), "nothing was displaced");
    assert!(matches!(it.write(path, None, Some(b"2")), Err(DiskError::FileChanged { .. })));
    assert!(matches!(it.write(path, Some(b"0"), Some(b"2")), Err(DiskError::FileChanged { .. })));
    assert!(matches!(it.write("none.md", Some(b"0"), Some(b"2")), Err(DiskError::FileChanged { .. })));
    assert_eq!(it.text(path).as_deref(), Some(&b"1"[..]));
    let real = it.project.root().join(path);
    fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    it.write(path, Some(b"1"), Some(b"2")).unwrap();
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(matches!(it.write(path, Some(b"1"), None), Err(DiskError::FileChanged { .. })));
    assert_eq!(it.text(path).as_deref(), Some(&b"2"[..]));
    it.write(path, Some(b"2"), None).unwrap();
    assert_eq!(it.text(path), None);
    assert_eq!(fs::read_dir(it.project.root().join("a/b")).unwrap().count(), 0);
    let remove = |path: &str| it.project.remove_empty_dir(Path::new(path));
    assert!(!remove("a") && remove("a/b"));
}

#[test]
fn a_file_with_two_hard_links_is_written_in_place() {
    let it = place();
    let (one, two) = (it.project.root().join("CLAUDE.md"), it.top.path().join("dotfile"));
    fs::write(&one, "a").unwrap();
    fs::hard_link(&one, &two).unwrap();
    it.write("CLAUDE.md", Some(b"a"), Some(b"b")).unwrap();
    assert_eq!((fs::read(&one).unwrap(), fs::read(&two).unwrap()), (b"b".to_vec(), b"b".to_vec()));
    assert_eq!(fs::metadata(&one).unwrap().nlink(), 2);
}

#[test]
fn displaced_versions_are_in_the_state_of_the_plans_if_there_is_one() {
    let it = place();
    let (root, state) = (it.project.root(), it.top.path().join("state"));
    let plans = root.join("plans");
    fs::create_dir(&plans).unwrap();
    let open = || Project::open(Arc::new(RealDisk), root, Some(&state), Some(&plans)).unwrap();
    assert_eq!(open().place, None, "the plans have no state yet");
    drop(PlansDir::open(Arc::new(RealDisk), &plans, Some(&state)).unwrap().lock(&mut || {}).unwrap());
    let in_plans = Place { project: open(), top: tempfile::tempdir().unwrap() };
    fs::write(root.join("CLAUDE.md"), "a").unwrap();
    in_plans.write("CLAUDE.md", Some(b"a"), Some(b"b")).unwrap();
    assert!(!root.join(HIDDEN).exists());
    let displaced = in_plans.project.place.as_ref().unwrap().join(DISPLACED);
    let version = fs::read_dir(displaced).unwrap().next().unwrap().unwrap().path();
    fs::write(version, "late").unwrap();
    let kept = open().kept();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read(root.join(&kept[0].kept)).unwrap(), b"late");
}

#[test]
fn links_are_followed_only_inside_the_project() {
    let it = place();
    let (top, project) = (&it.top, &it.project);
    let root = project.root().to_path_buf();
    std::fs::write(root.join("AGENTS.md"), "a").unwrap();
    std::fs::write(top.path().join("other"), "x").unwrap();
    for (link, to) in [
        ("CLAUDE.md", "AGENTS.md"),
        ("out.md", "../other"),
        ("none.md", "nowhere"),
        ("hook", ".git/hook"),
        (".cursor", ".."),
        ("git", ".git"),
    ] {
        symlink(to, root.join(link)).unwrap();
    }
    assert_eq!(project.place(Path::new("CLAUDE.md")).unwrap(), Path::new("AGENTS.md"));
    it.write("CLAUDE.md", Some(b"a"), Some(b"b")).unwrap();
    assert!(root.join("CLAUDE.md").is_symlink());
    assert_eq!(std::fs::read(root.join("AGENTS.md")).unwrap(), b"b");
    for path in ["out.md", "none.md", "hook", ".cursor/mcp.json", "git/hook"] {
        let refused = it.write(path, None, Some(b"b"));
        assert!(matches!(refused, Err(DiskError::LeadsOutOfProject { .. })), "{path}: {refused:?}");
    }
    assert_eq!(std::fs::read(top.path().join("other")).unwrap(), b"x");
}
