//! Decides which files outside the plans a path may name, depending on the origin of the path.
//!
//! The user may name any file except planwatch's own secrets. A path that a client sent or that a file of the
//! repository contains may lead only to files of the repository, except those of git and planwatch. The same applies to
//! any path that goes through a symbolic link in the repository. A path is resolved first and then opened without
//! following links ([`Disk::open`]), so a link that appears in between is an error.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::error::DiskError;
use super::file_system::{Disk, FileKind, Open};
use super::git_dir::Worktree;
use super::names::{is_closed_name, is_runtime};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// The user typed it.
    #[default]
    User,
    /// A client sent it, or a file of the repository contains it.
    Elsewhere,
}

/// A repository, and the directories whose files only the user may name.
#[derive(Debug)]
pub struct Reach<'a> {
    pub(super) disk: &'a dyn Disk,
    /// Without symbolic links.
    root: PathBuf,
    /// Git's directories of this working tree, and the directory with this user's key and records.
    closed: Vec<PathBuf>,
}

impl<'a> Reach<'a> {
    /// `state_home` is the user's state directory, which contains the key.
    pub fn of(disk: &'a dyn Disk, repository: &Path, state_home: Option<&Path>) -> Self {
        // If the repository does not exist, no file is inside it, and its path need not be resolved.
        let root = disk.canonical(repository).unwrap_or_else(|_| repository.to_path_buf());
        let git = Worktree::at(disk, &root).map(Worktree::directories).into_iter().flatten();
        let state = state_home.and_then(|it| disk.canonical(it).ok()).map(|it| it.join("planwatch"));
        let closed = git.chain(state).collect();
        Self { disk, root, closed }
    }

    /// Resolves a path. A relative path starts at the repository's root.
    ///
    /// Fails with [`DiskError::OutsideRepository`] or [`DiskError::Secret`] if the path is not allowed.
    /// `OutsideRepository` does not show whether the file exists.
    pub fn find(&self, path: &Path, origin: Origin) -> Result<PathBuf, DiskError> {
        let outside = || DiskError::OutsideRepository { path: path.to_path_buf() };
        let whole = self.root.join(path);
        if whole.as_os_str().as_bytes().contains(&0) {
            return Err(outside());
        }
        let found = self.disk.canonical(&whole).map_err(|error| DiskError::reading(path, error));
        let is_bound = origin == Origin::Elsewhere || self.follows_own_link(&whole);
        match found {
            Ok(real) if is_bound && !self.is_open(&real) => Err(outside()),
            Ok(real) if is_secret(&real, &self.closed) => Err(DiskError::Secret { path: path.to_path_buf() }),
            // Outside the repository, missing files give the same error as existing ones.
            Err(_) if is_bound && (self.follows_own_link(&whole) || !self.is_open(&lexical(&whole))) => {
                Err(outside())
            }
            other => other,
        }
    }

    pub fn read(&self, path: &Path, origin: Origin, limit: u64) -> Result<Vec<u8>, DiskError> {
        let real = self.find(path, origin)?;
        self.read_found(&real, path, limit)
    }

    /// Reads a file whose path contains no symbolic link; errors name `shown`.
    pub fn read_found(&self, real: &Path, shown: &Path, limit: u64) -> Result<Vec<u8>, DiskError> {
        let unread = |error: io::Error| match DiskError::reading(shown, error) {
            // A link appeared after the path was resolved.
            DiskError::LeadsOut { path } => DiskError::OutsideRepository { path },
            error => error,
        };
        let kind = self.disk.lstat(real).map_err(unread)?.kind;
        let not_a_file = |kind| DiskError::NotAFile { path: shown.to_path_buf(), kind };
        // Opening some devices has side effects.
        if !matches!(kind, FileKind::File | FileKind::Symlink) {
            return Err(not_a_file(kind));
        }
        let file = self.disk.open(real, Open::Read).map_err(unread)?;
        let stat = file.stat().map_err(unread)?;
        if stat.kind != FileKind::File {
            return Err(not_a_file(stat.kind));
        }
        let too_large = |len| DiskError::TooLarge { path: shown.to_path_buf(), len, limit };
        if stat.len > limit {
            return Err(too_large(stat.len));
        }
        let bytes = file.read(limit + 1, stat.len).map_err(unread)?;
        let len = bytes.len() as u64;
        if len > limit { Err(too_large(len)) } else { Ok(bytes) }
    }

    /// Whether a resolved path is in the repository, and is neither in a closed directory nor one of git's or planwatch's
    /// own paths.
    pub fn is_open(&self, real: &Path) -> bool {
        let Ok(inside) = real.strip_prefix(&self.root) else { return false };
        inside.components().all(|it| !is_closed_name(it.as_os_str()))
            && self.closed.iter().all(|it| !real.starts_with(it))
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a path goes through a symbolic link in the repository. Such a link may have come with the repository.
    fn follows_own_link(&self, path: &Path) -> bool {
        let mut at = PathBuf::new();
        for part in path.components() {
            if let Component::Normal(name) = part
                && self.disk.canonical(&at).is_ok_and(|it| self.is_own_link(&it, name))
            {
                return true;
            }
            at.push(part);
        }
        false
    }

    fn is_own_link(&self, directory: &Path, name: &OsStr) -> bool {
        let is_link = || self.disk.lstat(&directory.join(name)).is_ok_and(|it| it.kind == FileKind::Symlink);
        directory.starts_with(&self.root) && is_link()
    }
}

/// Whether this is a token or a key of planwatch, or the stamp of a state directory (see `runtime`). All of them must stay
/// secret.
fn is_secret(real: &Path, closed: &[PathBuf]) -> bool {
    let name = |it: Option<&OsStr>| it.unwrap_or_default().to_ascii_lowercase();
    let file = name(real.file_name());
    let is_in_runtime = real.ancestors().skip(1).any(|it| it.file_name().is_some_and(is_runtime));
    let is_key = file.as_bytes().starts_with(b"key") && closed.iter().any(|it| real.parent() == Some(it));
    is_in_runtime && matches!(file.as_bytes(), b"token" | b"stamp") || is_key
}

/// Removes `.` and `..` lexically.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::disk::{FILE_LIMIT, RealDisk};

    struct Place {
        top: tempfile::TempDir,
    }

    impl Place {
        /// A repository `shop` with everything that a path could target, and files beside it.
        fn new() -> Self {
            let place = Self { top: tempfile::tempdir().unwrap() };
            for (path, text) in [
                ("shop/.git/HEAD", "ref: refs/heads/main\n"),
                ("shop/.git/config", "secret"),
                ("shop/.git/objects/x", ""),
                ("shop/plans/.planwatch/token", "secret"),
                ("shop/plans/.planwatch/displaced/1.md", "# Mine\n"),
                ("shop/plans/.planwatch.foreign-1/token", "secret"),
                ("shop/plans/a/plan.md", "# A\n"),
                ("shop/docs/doc.md", "# Doc\n"),
                ("shop/.github/doc.md", "# Doc\n"),
                ("other/secret.md", "secret"),
                ("state/planwatch/key", "secret"),
            ] {
                let path = place.at(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            for (to, link) in [
                ("../other/secret.md", "shop/out.md"),
                ("../other", "shop/outdir"),
                (".git/config", "shop/config.md"),
                (".git", "shop/gitdir"),
                ("plans/.planwatch/token", "shop/token.md"),
                ("docs/doc.md", "shop/in.md"),
                ("docs", "shop/indir"),
                ("loop.md", "shop/loop.md"),
                ("nowhere.md", "shop/broken.md"),
                ("shop/docs/doc.md", "own.md"),
            ] {
                symlink(to, place.at(link)).unwrap();
            }
            place
        }

        fn at(&self, path: &str) -> PathBuf {
            self.top.path().canonicalize().unwrap().join(path)
        }

        fn read(&self, path: &str, origin: Origin) -> Result<String, &'static str> {
            let disk = RealDisk;
            let reach = Reach::of(&disk, &self.at("shop"), Some(&self.at("state")));
            let path = path.replace("TOP", self.at("").to_str().unwrap().trim_end_matches('/'));
            let read = reach.read(Path::new(&path), origin, FILE_LIMIT);
            read.map(|it| String::from_utf8(it).unwrap()).map_err(|it| match it {
                DiskError::OutsideRepository { .. } => "outside",
                DiskError::Secret { .. } => "secret",
                other => other.code(),
            })
        }
    }

    #[test]
    fn a_path_from_elsewhere_may_only_name_files_of_the_repository() {
        let place = Place::new();
        for (path, expected) in [
            ("docs/doc.md", Ok("# Doc\n")),
            ("./docs/../docs//doc.md", Ok("# Doc\n")),
            ("TOP/shop/docs/doc.md", Ok("# Doc\n")),
            ("in.md", Ok("# Doc\n")),
            ("indir/doc.md", Ok("# Doc\n")),
            (".github/doc.md", Ok("# Doc\n")),
            ("plans/a/plan.md", Ok("# A\n")),
            ("docs/none.md", Err("not-found")),
            ("docs", Err("not-a-file")),
            ("", Err("not-a-file")),
            ("loop.md", Err("outside")),
            ("broken.md", Err("outside")),
            ("out.md", Err("outside")),
            ("outdir/secret.md", Err("outside")),
            ("outdir/none.md", Err("outside")),
            ("config.md", Err("outside")),
            ("gitdir/config", Err("outside")),
            ("token.md", Err("outside")),
            (".git/config", Err("outside")),
            (".git/none", Err("outside")),
            (".GIT/config", Err("outside")),
            ("docs/.Git/none", Err("outside")),
            ("plans/.planwatch/token", Err("outside")),
            ("plans/.Planwatch/none", Err("outside")),
            ("plans/.planwatch.foreign-1/token", Err("outside")),
            ("../other/secret.md", Err("outside")),
            ("docs/../../other/secret.md", Err("outside")),
            ("../none.md", Err("outside")),
            ("TOP/other/secret.md", Err("outside")),
            ("TOP/shop2", Err("outside")),
            ("/etc/passwd", Err("outside")),
            ("/proc/self/exe", Err("outside")),
            ("/proc/self/environ", Err("outside")),
            ("/dev/zero", Err("outside")),
            ("a\0b", Err("outside")),
        ] {
            assert_eq!(place.read(path, Origin::Elsewhere), expected.map(str::to_owned), "{path}");
        }
    }

    #[test]
    fn the_user_may_name_any_file_but_secrets_and_links_of_the_repository() {
        let place = Place::new();
        for (path, expected) in [
            ("docs/doc.md", Ok("# Doc\n")),
            ("TOP/other/secret.md", Ok("secret")),
            ("../other/secret.md", Ok("secret")),
            ("TOP/own.md", Ok("# Doc\n")),
            (".git/config", Ok("secret")),
            ("plans/.planwatch/displaced/1.md", Ok("# Mine\n")),
            ("in.md", Ok("# Doc\n")),
            ("out.md", Err("outside")),
            ("outdir/secret.md", Err("outside")),
            ("config.md", Err("outside")),
            ("token.md", Err("outside")),
            ("plans/.planwatch/token", Err("secret")),
            ("plans/.planwatch.foreign-1/token", Err("secret")),
            ("TOP/state/planwatch/key", Err("secret")),
            ("none.md", Err("not-found")),
        ] {
            assert_eq!(place.read(path, Origin::User), expected.map(str::to_owned), "{path}");
        }
    }

    #[test]
    fn the_directories_of_another_working_tree_are_closed_too() {
        let place = Place::new();
        // The git directory is in the working tree under another name, as with `--separate-git-dir`.
        fs::rename(place.at("shop/.git"), place.at("shop/meta")).unwrap();
        fs::write(place.at("shop/.git"), "gitdir: meta\n").unwrap();
        for path in ["meta/config", ".git", "META/../meta/config"] {
            assert!(place.read(path, Origin::Elsewhere).is_err(), "{path}");
        }
        fs::create_dir_all(place.at("shop/own")).unwrap();
        fs::write(place.at("shop/own/commondir"), "../meta\n").unwrap();
        fs::write(place.at("shop/own/config.worktree"), "secret").unwrap();
        fs::write(place.at("shop/.git"), "gitdir: own\n").unwrap();
        for path in ["meta/config", "own/config.worktree"] {
            assert_eq!(place.read(path, Origin::Elsewhere), Err("outside"), "{path}");
        }
        assert_eq!(place.read("docs/doc.md", Origin::Elsewhere), Ok("# Doc\n".to_owned()));
    }

    #[test]
    fn only_regular_files_of_limited_size_are_read() {
        let place = Place::new();
        let fifo = place.at("shop/fifo.md");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        let huge = fs::File::create(place.at("shop/huge.md")).unwrap();
        huge.set_len(1 << 40).unwrap();
        for origin in [Origin::User, Origin::Elsewhere] {
            assert_eq!(place.read("fifo.md", origin), Err("not-a-file"));
            assert_eq!(place.read("huge.md", origin), Err("too-large"));
        }
    }

    #[test]
    fn a_link_that_appears_after_resolving_is_not_followed() {
        let place = Place::new();
        let disk = RealDisk;
        let reach = Reach::of(&disk, &place.at("shop"), None);
        let (file, directory) = (Path::new("docs/doc.md"), place.at("shop/docs"));
        let found = reach.find(file, Origin::Elsewhere).unwrap();
        fs::remove_file(&found).unwrap();
        symlink(place.at("other/secret.md"), &found).unwrap();
        assert!(matches!(
            reach.read_found(&found, file, FILE_LIMIT),
            Err(DiskError::OutsideRepository { .. })
        ));
        fs::remove_dir_all(&directory).unwrap();
        symlink(place.at("other"), &directory).unwrap();
        fs::write(place.at("other/doc.md"), "secret").unwrap();
        assert!(reach.read_found(&found, file, FILE_LIMIT).is_err());
    }
}
