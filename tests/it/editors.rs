//! The extension for VS Code in `editors/` has the version of planwatch. `PLANWATCH_BLESS=1` writes this version into the
//! extension's manifest and lock file.
//!
//! `scripts/vscode-extension --check` lints, tests and packs the extension; `scripts/editor-check` uses real editors.
#![expect(
    clippy::disallowed_methods,
    reason = "tests create files, and read the environment for PLANWATCH_BLESS"
)]

use serde_json::Value;

use crate::support::{read, root};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MANIFEST: &str = "editors/vscode/package.json";
const LOCK: &str = "editors/vscode/package-lock.json";

fn json(path: &str) -> Value {
    serde_json::from_str(&read(&root().join(path))).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Replaces the first `count` versions of a file, which are those of the extension itself.
fn stamp(path: &str, count: usize) {
    let old = json(path)["version"].as_str().unwrap_or_default().to_owned();
    let entry = |version: &str| format!("\"version\": \"{version}\"");
    let text = read(&root().join(path)).replacen(&entry(&old), &entry(VERSION), count);
    std::fs::write(root().join(path), text).expect("it can be written");
}

#[test]
fn the_extension_has_this_version() {
    if std::env::var_os("PLANWATCH_BLESS").is_some() {
        stamp(MANIFEST, 1);
        stamp(LOCK, 2);
    }
    let (manifest, lock) = (json(MANIFEST), json(LOCK));
    assert_eq!(manifest["version"], VERSION, "{MANIFEST}");
    assert_eq!(lock["version"], VERSION, "{LOCK}");
    assert_eq!(lock["packages"][""]["version"], VERSION, "{LOCK}");
}

#[test]
fn the_extension_has_the_name_and_the_licence_of_the_project() {
    let (manifest, lock) = (json(MANIFEST), json(LOCK));
    assert_eq!(manifest["name"], env!("CARGO_PKG_NAME"));
    assert_eq!(manifest["license"], env!("CARGO_PKG_LICENSE"));
    let dependencies = &lock["packages"][""]["dependencies"];
    assert_eq!(&manifest["dependencies"], dependencies, "{LOCK} is out of date");
}
