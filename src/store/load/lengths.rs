//! Reads from the index the lengths that files had when planwatch last read them.
//!
//! If a file had just lost more than half of its length at that time, or if it disappeared a moment ago, the length before
//! this loss is returned. For a file that looks half saved, git is asked whether it has just written the file.

use std::collections::HashMap;
use std::path::{Component, Path};

use super::refresh::open_index;
use crate::api::context::Context;
use crate::disk::FileRecords;
use crate::git::Git;
use crate::index::{FileRow, Index, Key};

/// The files of a plan's directory by name, each with its length in bytes.
pub(super) type LengthsOf = HashMap<String, u64>;

impl FileRecords for Context {
    fn length(&self, relative: &Path) -> Option<u64> {
        let (key, name) = place(relative)?;
        lengths_of(self, &key).remove(&name)
    }

    fn is_checked_out(&self, relative: &Path, bytes: &[u8]) -> bool {
        let is = || {
            let git = Git::at(self.plans.root()).ok()?;
            let path = git.relative(&self.plans.root().join(relative))?;
            git.is_checked_out(&path, bytes).ok()
        };
        is().unwrap_or(false)
    }
}

/// Reads the lengths of a plan's files from the index. Does not create an index if there is none.
pub(super) fn lengths_of(context: &Context, key: &Key) -> LengthsOf {
    let files = || {
        context.plans.index_dir().filter(|it| Index::len_in(it).is_some())?;
        let mut index = open_index(context)?;
        let heads = index.snapshot().ok()?.heads_named(&key.name).ok()?;
        heads.into_iter().find(|it| it.key == *key)?.files().ok()
    };
    let is_current = |it: &FileRow| !it.is_vanished() || context.plans.is_young(it.stamp.mtime_ns.into());
    let length = |it: FileRow| (it.name, it.stamp.len.max(it.len_before));
    files().unwrap_or_default().into_iter().filter(is_current).map(length).collect()
}

/// The plan's directory in a path, and the rest of the path.
pub(super) fn place(relative: &Path) -> Option<(Key, String)> {
    let mut parts = relative.components().map(|it| match it {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let first = parts.next()??;
    let is_archived = first == "_archive";
    let name = if is_archived { parts.next()?? } else { first };
    let rest = parts.collect::<Option<Vec<_>>>()?;
    (!rest.is_empty()).then(|| (Key { is_archived, name: name.to_owned() }, rest.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_plan_and_its_file() {
        let found = |path: &str| place(Path::new(path)).map(|(key, rest)| (key.is_archived, key.name, rest));
        let some =
            |is_archived, name: &str, rest: &str| Some((is_archived, name.to_owned(), rest.to_owned()));
        assert_eq!(found("p/step-1.md"), some(false, "p", "step-1.md"));
        assert_eq!(found("_archive/p/plan.md"), some(true, "p", "plan.md"));
        assert_eq!(found("p/more/step-1.md"), some(false, "p", "more/step-1.md"));
        assert_eq!(found("p"), None);
        assert_eq!(found("_archive/p"), None);
    }
}
