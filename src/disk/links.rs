//! Symbolic links that a rename would break.

use std::path::{Component, Path, PathBuf};

use super::error::DiskError;
use super::file_system::FileKind;
use super::journal::FileOp;
use super::write_lock::Locked;

/// How deep a renamed directory is searched for links: its entries, and the entries of the directories in it.
const DEPTH: usize = 2;

impl Locked<'_> {
    /// Refuses a rename after which a relative link would lead elsewhere: the renamed link itself, or a link in the
    /// renamed directory.
    pub(super) fn refuse_broken_link(&self, op: &FileOp) -> Result<(), DiskError> {
        let FileOp::Rename { from, to } = op else { return Ok(()) };
        let root = &self.plans.root;
        let mut links = Vec::new();
        self.find_links(&root.join(from), DEPTH, &mut links);
        match links.into_iter().find(|it| self.is_broken_by(it, from, to)) {
            Some(path) => Err(DiskError::LinkBreaks { path, to: root.join(to) }),
            None => Ok(()),
        }
    }

    fn find_links(&self, path: &Path, depth: usize, links: &mut Vec<PathBuf>) {
        let disk = &self.plans.disk;
        match disk.lstat(path).map(|it| it.kind) {
            Ok(FileKind::Symlink) => links.push(path.to_path_buf()),
            Ok(FileKind::Dir) if depth > 0 => {
                for name in disk.names(path).unwrap_or_default() {
                    self.find_links(&path.join(name), depth - 1, links);
                }
            }
            _ => {}
        }
    }

    /// Whether the target of a link exists now, and the link would lead to another path after `from` was renamed to `to`. A
    /// link to a target in `from` is not broken, because the target moves with the link.
    fn is_broken_by(&self, link: &Path, from: &Path, to: &Path) -> bool {
        let (disk, root) = (&self.plans.disk, &self.plans.root);
        let (from, to) = (root.join(from), root.join(to));
        let (Ok(target), Ok(_)) = (disk.read_link(link), disk.canonical(link)) else { return false };
        let Ok(inside) = link.strip_prefix(&from) else { return false };
        let [now, then] =
            [link.to_path_buf(), if inside.as_os_str().is_empty() { to } else { to.join(inside) }]
                .map(|it| without_dots(&it.parent().unwrap_or(&it).join(&target)));
        target.is_relative() && !now.starts_with(&from) && now != then
    }
}

/// Removes `.` and `..` lexically.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
