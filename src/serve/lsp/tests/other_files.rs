//! Tests responses that depend on files that are not open, or on the saved version of an open file.

use std::path::Path;

use serde_json::Value;

use super::{applied, tree_of, tree_on};
use crate::plan::problem::Problem;
use crate::serve::lsp::actions;
use crate::serve::lsp::catalog::Catalog;
use crate::serve::lsp::client::Client;
use crate::serve::lsp::documents::Documents;
use crate::serve::lsp::positions::Encoding;
use crate::serve::lsp::protocol::{Position, Range, RenamedFile};
use crate::serve::lsp::{publish, rename};

/// If the saved file has a claim in force that the open text lacks, no action changes the status in this text.
#[test]
fn a_claim_that_only_the_saved_file_has_is_respected() {
    let files = [("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# One\n")];
    let claimed = |at: &str| {
        format!("---\nstatus: in_progress\nclaim: {{id: \"h4f09a21\", by: bob, at: {at}}}\n---\n# One\n")
    };
    let offered = |saved: &str, shows_disabled: bool| {
        let (mut tree, machine) = tree_on(&files);
        let mut documents = Documents::default();
        let uri = "file:///plans/p/step-1.md";
        documents.open(uri.to_owned(), 1, "# One\n\ntyped\n".to_owned(), Encoding::Utf16).unwrap();
        tree.put(documents.get(uri).unwrap());
        machine.save("/plans/p/step-1.md", saved);
        let file = tree.file(Path::new("/plans/p/step-1.md")).unwrap();
        let client = Client {
            has_action_literals: true,
            has_disabled_actions: shows_disabled,
            has_document_changes: true,
            ..Client::default()
        };
        let start = Position { line: 0, character: 0 };
        let range = Range { start, end: start };
        let of = (documents.get(uri).unwrap(), &file);
        let found = actions::actions(&mut tree, &documents, of, &client, (&range, None)).unwrap();
        let shown = |it: &Value| {
            assert!(it["disabled"].is_null() || it["edit"].is_null() && it["command"].is_null(), "{it}");
            format!(
                "{}{}",
                it["title"].as_str().unwrap(),
                it["disabled"]["reason"].as_str().unwrap_or_default()
            )
        };
        found.as_array().unwrap().iter().map(shown).collect::<Vec<_>>()
    };
    let why = "the saved file has a claim of bob, which this text lacks; load the file again";
    let disabled = ["Complete step", "Record attempt…"].map(|it| format!("{it}{why}"));
    let live = claimed("2026-11-21T11:00:00Z");
    let all = offered(&live, true);
    assert!(disabled.iter().all(|it| all.contains(it)), "{all:?}");
    assert_eq!(offered(&live, false), ["Add step after…"]);
    for saved in ["# One\n\nsaved\n", &claimed("2026-11-01T11:00:00Z")] {
        let all = offered(saved, true);
        assert!(all.contains(&"Complete step".to_owned()), "{all:?}");
    }
}

/// Diagnostics of files that are not open have related locations, too.
#[test]
fn problems_of_files_that_are_not_open_have_other_places() {
    let files = [
        ("/plans/a/plan.md", "# A\n\n## Steps\n- step-3: Three (depends: step-1)\n"),
        ("/plans/a/step-1.md", "---\ndepends: [2, \"gone:1\"]\n---\n# One\n"),
        ("/plans/a/step-2.md", "---\ndepends: [1]\n---\n# Two\n"),
        ("/plans/a/step-3.md", "# Three\n\n## Dependencies\n\nstep-2\n"),
    ];
    let (mut tree, context) = tree_of(&files);
    tree.loaded(Catalog::load(&context).unwrap());
    let mut said = Vec::new();
    for (path, _) in files {
        let catalog = tree.catalog.as_ref().unwrap();
        let is_own = |it: &&Problem| path.strip_prefix("/plans/") == Some(&it.path);
        let problems: Vec<_> = catalog.problems().filter(is_own).cloned().collect();
        for it in publish::of_file(&tree, Encoding::Utf16, Path::new(path), &problems).1 {
            for other in it["relatedInformation"].as_array().unwrap() {
                let uri = other["location"]["uri"].as_str().unwrap().trim_start_matches("file:///plans/");
                said.push(format!("{path}: {uri} {}", other["message"].as_str().unwrap()));
            }
        }
    }
    assert_eq!(
        said,
        [
            "/plans/a/step-1.md: a/step-2.md `a:2` waits for `a:1`",
            "/plans/a/step-1.md: gone/plan.md there is no plan `gone` here",
            "/plans/a/step-2.md: a/step-1.md `a:1` waits for `a:2`",
            "/plans/a/step-3.md: a/plan.md the Steps list of `a` is here",
        ]
    );
}

/// A rename in an editor changes the links to a step, also in unsaved texts.
#[test]
fn links_follow_a_step_that_an_editor_renames() {
    let text = "# Other\n\nSee [it](../p/step-1.md#x).\n";
    let files =
        [("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# One\n"), ("/plans/q/plan.md", "# Q\n")];
    let (mut tree, _) = tree_on(&files);
    let mut documents = Documents::default();
    documents.open("file:///plans/q/plan.md".to_owned(), 1, text.to_owned(), Encoding::Utf16).unwrap();
    assert!(tree.put(documents.get("file:///plans/q/plan.md").unwrap()));
    let client = Client { has_document_changes: true, renames_files: true, ..Client::default() };
    let renamed = RenamedFile {
        old_uri: "file:///plans/p/step-1.md".to_owned(),
        new_uri: "file:///plans/p/step-2.5.md".to_owned(),
    };
    let edit = rename::will_rename(std::slice::from_ref(&tree), &documents, &client, &[renamed]).unwrap();
    let changes = edit["documentChanges"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{edit}");
    let after = applied(text, Encoding::Utf16, changes[0]["edits"].as_array().unwrap());
    assert_eq!(after, text.replace("step-1", "step-2.5"));
}
