//! Arguments that name a workspace by id or path. The only workspace is the directory that is served.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::plan::id::slug;
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::tool::Call;

/// Refuses the id or path of another workspace.
pub(super) fn check(call: &Call, id: Option<&str>, path: Option<&str>) -> Result<(), Refusal> {
    let is_other_id = |it: &&str| !is_own_id(call, it);
    let is_other_path = |it: &&str| !is_own_path(call, it);
    let Some(other) = id.filter(is_other_id).or(path.filter(is_other_path)) else { return Ok(()) };
    let message = format!("`{other}` is another workspace; this server serves {}", root(call).display());
    Err(Refusal::new(
        "other-workspace",
        message,
        "leave workspace_id and workspace_path out, or use the server of that workspace",
    ))
}

/// The description of the workspace in results.
pub(super) fn described(call: &Call) -> Value {
    let root = root(call);
    json!({"workspace_id": name(&root), "workspace_path": root.display().to_string()})
}

/// The root of the repository. Without a repository, the parent of the plans directory.
fn root(call: &Call) -> PathBuf {
    lexical(&call.context.here.root)
}

fn name(path: &Path) -> String {
    path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The directories that count as this workspace: the repository, the plans directory, its parent, and the working
/// directory.
fn own_paths(call: &Call) -> Vec<PathBuf> {
    let (here, plans) = (&call.context.here, call.context.plans.root());
    let all = [Some(here.root.as_path()), Some(here.directory.as_path()), Some(plans), plans.parent()];
    all.into_iter().flatten().map(lexical).collect()
}

fn is_own_path(call: &Call, typed: &str) -> bool {
    own_paths(call).contains(&lexical(&call.context.here.root.join(typed)))
}

/// Whether an id is the name, the slug or the path of one of [`own_paths`]. A hash can follow the slug, as in
/// `my-project-652c624f8f59`.
fn is_own_id(call: &Call, typed: &str) -> bool {
    let bare = match typed.rsplit_once('-') {
        Some((name, sum)) if sum.len() >= 6 && sum.bytes().all(|it| it.is_ascii_hexdigit()) => name,
        _ => typed,
    };
    let names = own_paths(call).iter().map(|it| name(it)).filter(|it| !it.is_empty()).collect::<Vec<_>>();
    let slugged = |it: &str| slug(it, &|_| false);
    let is_it = |it: &String| it == typed || slugged(it) == typed || slugged(it) == bare;
    names.iter().any(is_it) || typed.contains('/') && is_own_path(call, typed)
}

/// Removes `.` and `..` without accessing the file system.
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
