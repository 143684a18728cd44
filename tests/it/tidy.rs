//! The rules of the house that a compiler does not check.

use std::path::{Path, PathBuf};

use crate::support::{read, root};

/// The floors from the ground up; `bin` stands on all of them, walled off by the compiler.
const FLOORS: [&str; 9] = ["text", "plan", "disk", "index", "api", "store", "ops", "process", "serve"];

fn files(below: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(below)];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).expect("the directory is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no *{ending} below {below}");
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).expect("it is inside").display().to_string()
}

/// The floor of a library file; `lib.rs` has none.
fn floor(path: &Path) -> Option<usize> {
    let inside = path.strip_prefix(root().join("src")).expect("it is inside");
    let first = inside.components().next()?.as_os_str().to_str()?;
    FLOORS.iter().position(|it| *it == first)
}

/// Every floor that a source names through `crate::`, grouped imports included.
fn floors_named(source: &str) -> Vec<usize> {
    let mut named = Vec::new();
    for part in source.split("crate::").skip(1) {
        let names = match part.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default(),
        };
        let names = names.split(',').map(|it| it.trim().split("::").next().unwrap_or_default());
        named.extend(names.filter_map(|name| FLOORS.iter().position(|it| *it == name)));
    }
    named
}

#[test]
fn imports_go_down() {
    for path in files("src", ".rs") {
        let Some(own) = floor(&path) else { continue };
        for named in floors_named(&read(&path)) {
            assert!(
                named <= own,
                "{} is on the floor {}, but names {}",
                shown(&path),
                FLOORS[own],
                FLOORS[named]
            );
        }
    }
}

#[test]
fn an_upward_import_would_be_seen() {
    assert_eq!(floors_named("use crate::serve::daemon::api;"), [8]);
    assert_eq!(floors_named("use crate::{text::yaml, ops::list};"), [0, 6]);
    assert_eq!(floors_named("fn f() { crate::disk::x() }"), [2]);
}

/// What only one place may name.
#[test]
fn each_outside_library_has_one_place() {
    let places = [
        ("granit_parser", "src/text/yaml/parse"),
        ("rusqlite", "src/index/"),
        ("notify::", "src/serve/"),
        ("process::Command", "src/process/"),
        ("pulldown_cmark", "src/text/markdown.rs"),
        ("similar::", "src/text/diff.rs"),
        ("handlebars::", "src/text/placeholders"),
        ("gray_matter::", "src/text/foreign.rs"),
        ("brush_parser", "src/text/shell.rs"),
        ("axum", "src/serve/"),
        ("hyper::", "src/serve/http/"),
        ("tower", "src/serve/http/"),
        ("tokio::", "src/serve/"),
        ("utoipa", "src/serve/http"),
        ("tracing::", "src/serve/"),
        ("tracing_subscriber", "src/bin/planwatch/context.rs"),
        ("clap", "src/bin/"),
        ("rmcp", "src/serve/mcp/"),
        ("schemars", "src/serve/mcp/"),
        ("println!", "src/bin/"),
        ("SystemTime::now", "src/"),
    ];
    let no_safe_form = ["src/serve/daemon/malloc.rs", "src/disk/lease.rs"];
    for path in files("src", ".rs") {
        let (source, name) = (read(&path), shown(&path));
        for word in ["libc::", "unsafe {"] {
            let is_allowed = no_safe_form.contains(&name.as_str());
            assert!(is_allowed || !source.contains(word), "{name} names {word}");
        }
        // Models and tests say what they found.
        if name.contains("/model/") || name.contains("tests") {
            continue;
        }
        for (word, place) in places {
            assert!(
                !source.contains(word) || name.starts_with(place),
                "{name} names {word}; its place is {place}"
            );
        }
    }
}

#[test]
fn the_clock_and_the_environment_are_read_at_the_edge_alone() {
    for path in files("src", ".rs") {
        let (source, name) = (read(&path), shown(&path));
        let is_edge = name.starts_with("src/bin/") || name.starts_with("src/disk/");
        for word in ["SystemTime::now", "env::var", "env::current_dir"] {
            assert!(is_edge || !source.contains(word), "{name} asks for {word}");
        }
    }
}

#[test]
fn files_are_short_and_open_with_what_they_are() {
    for path in files("src", ".rs").into_iter().chain(files("tests", ".rs")) {
        let (source, name) = (read(&path), shown(&path));
        let n_lines = source.lines().count();
        assert!(n_lines <= 600, "{name} has {n_lines} lines; 600 is the limit");
        let is_test_module = name.ends_with("tests.rs");
        assert!(is_test_module || source.starts_with("//!"), "{name} does not open with //!");
    }
}

#[test]
fn every_test_file_is_run() {
    let main = read(&root().join("tests/it/main.rs"));
    for path in files("tests/it", ".rs") {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let is_nested = path.parent() != Some(&root().join("tests/it"));
        assert!(
            name == "main" || is_nested || main.contains(&format!("mod {name};")),
            "{} is not in main.rs",
            shown(&path)
        );
    }
}

#[test]
fn every_dependency_says_why() {
    let manifest = read(&root().join("Cargo.toml"));
    let mut is_dependency = false;
    let mut is_explained = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency = line.contains("dependencies");
        } else if is_dependency && line.contains(" = ") {
            assert!(is_explained, "`{line}` has no comment above it");
        }
        // One comment may stand above a group of lines.
        is_explained = line.starts_with('#') || (is_explained && !line.is_empty());
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let words = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
        concat!("FIX", "ME"),
        concat!("#[ign", "ore"),
        concat!("allow(dead", "_code"),
    ];
    for path in files("src", ".rs").into_iter().chain(files("tests", ".rs")) {
        let (source, name) = (read(&path), shown(&path));
        for word in words {
            assert!(!source.contains(word), "{name} holds {word}");
        }
    }
}
