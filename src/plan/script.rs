//! A script: a named command, and the directory that it runs in.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::plan::change::set_text;
use crate::plan::entry::id_of;
use crate::plan::fields::{Fields, read_file};
use crate::plan::problem::{Code, Problem};
use crate::plan::source::Source;
use crate::text::header_edit::Change;
use crate::text::line_index::Place;
use crate::text::markdown;
use crate::text::placeholders::one_line;

/// The directory of scripts, below the plans directory.
pub const DIRECTORY: &str = "_scripts";

/// The keys of a script in the order in which they are written.
pub const KEYS: &[&str] = &["command", "directory", "plan", "description", "mcp_handle"];

#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The file's name without `.md`.
    pub id: String,
    /// Relative to the plans directory.
    pub path: String,
    /// The first heading of level 1; else the id.
    pub name: String,
    /// One shell command line. If the file has none, this is empty or blank, and there is at least one problem.
    pub command: String,
    /// As written in the file; `.` by default.
    pub directory: String,
    pub directory_at: Place,
    pub plan: Option<String>,
    pub description: Option<String>,
    pub mcp_handle: Option<String>,
    pub custom: Map<String, Value>,
    pub problems: Vec<Problem>,
}

/// Reads a script. Faults in the file become its `problems`.
pub fn read(source: &Source) -> Script {
    let (mut script, mut problems) = read_file(source, |fields, body| script_of(&source.path, fields, body));
    if script.command.trim().is_empty() && problems.is_empty() {
        let message = "the script has no command";
        let hint = "write a line `command: …` between two `---` lines at the file's beginning";
        problems.push(Problem::of_file(&source.path, Code::WrongType, message, hint));
    }
    script.problems = problems;
    script
}

fn script_of(path: &str, fields: &mut Fields<'_>, body: &str) -> Script {
    let id = id_of(path).to_owned();
    let outline = markdown::outline(body);
    Script {
        name: outline.title().filter(|it| !it.is_empty()).unwrap_or(&id).to_owned(),
        command: fields.text("command").unwrap_or_default(),
        directory: fields.text("directory").filter(|it| !it.is_empty()).unwrap_or_else(|| ".".to_owned()),
        directory_at: fields.get("directory").map_or(Place::START, |it| fields.place(it)),
        plan: fields.text("plan"),
        description: fields.text("description").or_else(|| outline.description.clone()),
        mcp_handle: fields.text("mcp_handle"),
        custom: fields.custom(KEYS),
        path: path.to_owned(),
        problems: Vec::new(),
        id,
    }
}

/// Returns a directory relative to `root`, without `.` and `..`; `None` if the directory is not in `root`.
///
/// Purely lexical: symbolic links are checked by `src/disk`.
pub fn inside(root: &Path, directory: &str) -> Option<PathBuf> {
    let directory = Path::new(directory);
    let relative = if directory.is_absolute() { directory.strip_prefix(root).ok()? } else { directory };
    let mut found = PathBuf::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::ParentDir if !found.pop() => return None,
            Component::CurDir | Component::ParentDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// Returns the path at the beginning of a command, if there is one: `./build.sh` for `./build.sh --fast`.
pub fn program_path(command: &str) -> Option<&str> {
    let word = command.split_whitespace().next()?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+');
    (word.contains('/') && word.chars().all(is_plain)).then_some(word)
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewScript {
    pub name: String,
    pub command: String,
    /// Relative to the repository.
    pub directory: Option<String>,
    pub plan: Option<String>,
    pub description: Option<String>,
    pub mcp_handle: Option<String>,
}

impl NewScript {
    pub fn body(&self) -> String {
        format!("# {}\n", one_line(&self.name))
    }

    /// The front matter's keys, in the order in which they are written.
    pub fn changes(&self) -> Vec<Change> {
        let text = |key: &str, value: &Option<String>| value.as_ref().map(|it| set_text(key, it));
        let mut changes = vec![set_text("command", &self.command)];
        changes.extend(text("directory", &self.directory));
        changes.extend(text("plan", &self.plan));
        changes.extend(text("description", &self.description));
        changes.extend(text("mcp_handle", &self.mcp_handle));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source::Content;

    #[track_caller]
    fn check(text: &str, expected: (&str, &str, &str), codes: &[&str]) {
        let modified = "2026-11-21".parse().unwrap();
        let content = Content { bytes: text.as_bytes().to_vec(), etag: String::new(), modified };
        let read = read(&Source { path: "_scripts/build.md".to_owned(), content: Ok(content) });
        assert_eq!((read.name.as_str(), read.command.as_str(), read.directory.as_str()), expected, "{text}");
        assert_eq!(read.problems.iter().map(|it| it.code.text()).collect::<Vec<_>>(), codes, "{text}");
    }

    #[test]
    fn a_script_without_a_command_is_a_problem() {
        check("---\ncommand: make all\ndirectory: web\n---\n# Build\n", ("Build", "make all", "web"), &[]);
        check("---\ncommand: make\n---\n", ("build", "make", "."), &[]);
        check("# Build\n", ("Build", "", "."), &["wrong-type"]);
        check("---\ncommand: [make]\n---\n", ("build", "", "."), &["wrong-type"]);
        check("---\ncommand: \" \"\n---\n", ("build", " ", "."), &["wrong-type"]);
    }

    #[test]
    fn a_directory_outside_is_none() {
        let inside = |it: &str| inside(Path::new("/home/ann/shop"), it).map(|it| it.display().to_string());
        for (directory, expected) in [
            (".", Some("")),
            ("web", Some("web")),
            ("./web/../api/", Some("api")),
            ("/home/ann/shop/web", Some("web")),
            ("/home/ann/shop", Some("")),
            ("..", None),
            ("web/../../x", None),
            ("/home/ann/shop2", None),
            ("/home/ann/shop/../x", None),
            ("/", None),
        ] {
            assert_eq!(inside(directory).as_deref(), expected, "{directory}");
        }
    }

    #[test]
    fn a_program_that_is_named_by_a_path_is_known() {
        assert_eq!(program_path("./build.sh --fast"), Some("./build.sh"));
        assert_eq!(program_path("scripts/b && rm x"), Some("scripts/b"));
        for command in ["make", "", "$HOME/x", "'./a b'", "FOO=a/b make"] {
            assert_eq!(program_path(command), None, "{command}");
        }
    }
}
