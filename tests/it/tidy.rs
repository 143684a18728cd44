//! Rules for the source code that the compiler does not check.

use std::path::{Path, PathBuf};

use crate::support::{read, root};

mod imports;

/// The layers from the bottom up. `src/bin` is above all of them; it is a separate crate, so the compiler checks it.
const LAYERS: [&str; 11] =
    ["text", "plan", "disk", "git", "index", "api", "page", "store", "ops", "process", "serve"];

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

/// Each word may occur only in files whose path starts with the second text, or with one of several texts separated by `|`.
const PLACES: [(&str, &str); 31] = [
    ("ratatui", "src/bin/planwatch/board"),
    ("tui_markdown", "src/bin/planwatch/board/view/"),
    ("granit_parser", "src/text/yaml/parse"),
    ("rusqlite", "src/index/"),
    ("notify::", "src/serve/daemon/watcher/"),
    ("tokio_io_timeout", "src/serve/http/"),
    ("walkdir::", "src/disk/"),
    ("process::Command", "src/process/|src/git/"),
    ("Command::new(\"git\")", "src/git/"),
    ("pulldown_cmark", "src/text/markdown.rs|src/page/markdown"),
    ("ammonia::", "src/page/markdown/sanitize.rs"),
    ("PreEscaped", "src/page/markdown.rs|src/page/style.rs"),
    ("dagre::", "src/page/graph/layout.rs"),
    ("similar::", "src/text/diff.rs"),
    ("serde_yaml::", "src/text/data.rs"),
    ("handlebars::", "src/text/placeholders"),
    ("gray_matter::", "src/text/foreign.rs"),
    ("brush_parser", "src/text/shell.rs"),
    ("axum", "src/serve/"),
    ("hyper::", "src/serve/http/"),
    ("tower", "src/serve/http/"),
    ("tokio::", "src/serve/|src/store/registry/postgres/"),
    ("tokio_postgres", "src/store/registry/postgres"),
    ("rustls::", "src/store/registry/postgres/address.rs"),
    ("tracing::", "src/serve/"),
    ("tracing_subscriber", "src/bin/planwatch/context.rs"),
    ("clap", "src/bin/"),
    ("rmcp", "src/serve/mcp/"),
    ("lsp_server", "src/serve/lsp/"),
    ("gen_lsp_types", "src/serve/lsp/protocol.rs"),
    ("println!", "src/bin/"),
];

fn is_in(name: &str, place: &str) -> bool {
    place.split('|').any(|it| name.starts_with(it))
}

/// The words of [`PLACES`] that a file contains outside their place. Models and tests are not checked.
fn misplaced(name: &str, source: &str) -> Vec<String> {
    if name.contains("/model/") || name.contains("tests") {
        return Vec::new();
    }
    let of = PLACES.iter().filter(|(word, place)| source.contains(word) && !is_in(name, place));
    of.map(|(word, place)| format!("{name} names {word}; its place is {place}")).collect()
}

#[test]
fn each_library_is_used_in_one_place() {
    let no_safe_form = ["src/serve/daemon/malloc.rs", "src/disk/lease.rs"];
    for path in files("src", ".rs") {
        let (source, name) = (read(&path), shown(&path));
        for word in ["libc::", "unsafe {"] {
            let is_allowed = no_safe_form.contains(&name.as_str());
            assert!(is_allowed || !source.contains(word), "{name} names {word}");
        }
        assert_eq!(misplaced(&name, &source), [""; 0]);
    }
}

#[test]
fn every_listed_library_is_used_in_its_place() {
    // The binary may print, but writes through `output`.
    for (word, place) in PLACES.into_iter().filter(|it| it.0 != "println!") {
        let is_used =
            files("src", ".rs").iter().any(|it| is_in(&shown(it), place) && read(it).contains(word));
        assert!(is_used, "nothing below {place} names {word}");
    }
}

#[test]
fn a_misplaced_library_is_found() {
    let found = misplaced("src/index/row.rs", "use rusqlite::Row;\nuse tokio::task;");
    assert_eq!(
        found,
        ["src/index/row.rs names tokio::; its place is src/serve/|src/store/registry/postgres/"]
    );
    for (word, _) in PLACES {
        assert_eq!(misplaced("src/plan/id.rs", word).len(), 1, "{word}");
    }
}

/// Files outside `disk` that access files, with reasons. An entry that is no longer needed is an error.
const ACCESS_FILES: [(&str, &str); 16] = [
    (
        "src/bin/planwatch/commands/draft.rs",
        "removes the plans directory that a draft without a plan created",
    ),
    ("src/bin/planwatch/commands/export.rs", "writes the file that the user names"),
    ("src/bin/planwatch/commands/setup.rs", "writes man pages into a directory that the user names"),
    ("src/bin/planwatch/context/git_user.rs", "reads git's configuration"),
    ("src/bin/planwatch/context.rs", "removes a temporary directory with an empty plans directory"),
    ("src/bin/planwatch/named_text.rs", "reads devices and pipes that the user names"),
    ("src/index/file.rs", "the index's own files, which SQLite opens by name"),
    ("src/index/verified_stamp.rs", "as above"),
    ("src/ops/init.rs", "accesses no files; its `File` is not `std::fs::File`"),
    ("src/ops/run/attempt.rs", "passes the log to a process"),
    ("src/ops/run.rs", "passes the log to a process"),
    ("src/process/daemon.rs", "opens /dev/null for a process"),
    ("src/process/orphans.rs", "reads /proc"),
    ("src/process/worker.rs", "opens the input of a process"),
    ("src/serve/daemon/listener.rs", "the socket's permissions and identity"),
    ("src/serve/ipc/socket_path.rs", "creates and checks the directory of the socket"),
];

/// Whether the code of a file, without its inline tests, accesses files.
fn accesses_files(source: &str) -> bool {
    let code = source.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_word = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let has = |word: &str| code.match_indices(word).any(|(at, _)| is_word(at));
    ["std::fs", "rustix::fs", "unix::fs", "tokio::fs", "File::", "OpenOptions"].iter().any(|it| has(it))
}

#[test]
fn only_disk_accesses_files() {
    let is_checked = |it: &String| !it.starts_with("src/disk/") && !it.contains("/tests");
    let found: Vec<_> =
        files("src", ".rs").iter().filter(|it| accesses_files(&read(it))).map(|it| shown(it)).collect();
    let found: Vec<_> = found.into_iter().filter(is_checked).collect();
    assert_eq!(found, ACCESS_FILES.map(|it| it.0), "the files that access files, and the exceptions");
}

#[test]
fn an_access_to_files_is_found() {
    for planted in [
        "use std::fs;",
        "use std::{io, fs}; fs::read(x)",
        "let it = File::open(path)?;",
        "rustix::fs::stat(x)",
    ] {
        assert_eq!(accesses_files(planted), !planted.contains("{io"), "{planted}");
    }
    assert!(!accesses_files(
        "IndexFile::in_dir(dir)\n#[cfg(test)]\nmod tests {\n    std::fs::write(x, y)\n}"
    ));
}

#[test]
fn only_the_binary_and_disk_read_the_clock_and_the_environment() {
    for path in files("src", ".rs") {
        let (source, name) = (read(&path), shown(&path));
        // A test reads from the environment how much it tests (`PLANWATCH_G8`).
        let is_edge =
            ["src/bin/", "src/disk/"].iter().any(|it| name.starts_with(it)) || name.contains("/tests/");
        for word in ["SystemTime::now", "env::var", "env::current_dir"] {
            assert!(is_edge || !source.contains(word), "{name} uses {word}");
        }
    }
}

#[test]
fn files_are_short_and_start_with_a_module_comment() {
    for path in files("src", ".rs").into_iter().chain(files("tests", ".rs")) {
        let (source, name) = (read(&path), shown(&path));
        let n_lines = source.lines().count();
        assert!(n_lines <= 600, "{name} has {n_lines} lines; 600 is the limit");
        let is_test_module = name.ends_with("tests.rs");
        assert!(is_test_module || source.starts_with("//!"), "{name} does not start with //!");
    }
}

#[test]
fn every_test_file_is_run() {
    let tests = root().join("tests/it");
    for path in files("tests/it", ".rs").into_iter().filter(|it| *it != tests.join("main.rs")) {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let directory = path.parent().expect("it is in a directory");
        let of = if directory == tests { tests.join("main.rs") } else { directory.with_extension("rs") };
        assert!(read(&of).contains(&format!("mod {name};")), "{} is not in {}", shown(&path), shown(&of));
    }
}

#[test]
fn every_dependency_has_a_comment() {
    let manifest = read(&root().join("Cargo.toml"));
    let mut is_dependency = false;
    let mut is_explained = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency = line.contains("dependencies");
        } else if is_dependency && line.contains(" = ") {
            assert!(is_explained, "`{line}` has no comment above it");
        }
        // One comment may apply to a group of lines.
        is_explained = line.starts_with('#') || (is_explained && !line.is_empty());
    }
}

#[test]
fn no_code_is_unfinished() {
    let words = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
        // These check nothing in the tests and in a release, because `debug-assertions` is off there.
        concat!("debug_ass", "ert!("),
        concat!("debug_ass", "ert_eq!("),
        concat!("debug_ass", "ert_ne!("),
        concat!("FIX", "ME"),
        concat!("#[ign", "ore"),
        concat!("allow(dead", "_code"),
    ];
    for path in files("src", ".rs").into_iter().chain(files("tests", ".rs")) {
        let (source, name) = (read(&path), shown(&path));
        for word in words {
            assert!(!source.contains(word), "{name} contains {word}");
        }
    }
}

/// Paths in backticks on a page that do not exist.
fn missing_paths(page: &str) -> Vec<&str> {
    const TOP: [&str; 10] =
        ["src", "tests", "docs", "scripts", "benches", "fuzz", "templates", "plugin", "editors", "README.md"];
    let is_path = |it: &&str| TOP.contains(&it.split('/').next().unwrap_or_default());
    let words = page.split('`').skip(1).step_by(2).filter(is_path);
    words.filter(|it| !it.contains([' ', '<', '*']) && !root().join(it).exists()).collect()
}

#[test]
fn pages_for_developers_name_paths_that_exist() {
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(&root().join(page));
        assert!(text.contains("`src/"), "{page} names no source");
        assert_eq!(missing_paths(&text), [""; 0], "{page}");
    }
}

#[test]
fn a_path_that_does_not_exist_is_found() {
    let page = "See `src/lib.rs`, `src/engine/mod.rs`, `plan.md` and `docs/none.md`; `src/<name>` is none.";
    assert_eq!(missing_paths(page), ["src/engine/mod.rs", "docs/none.md"]);
}
