#![expect(clippy::disallowed_methods, reason = "the test reads fixtures")]

mod keys;
mod other_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::client::Client;
use super::diagnostics;
use super::documents::Documents;
use super::edits::{Renames, workspace_edit};
use super::positions::Encoding;
use super::protocol::Position;
use super::rename;
use super::symbols;
use super::tree::{ContextsAt, Tree};
use crate::api::context::Context;
use crate::disk::model::Machine;
use crate::ops::check::{CheckRequest, check};
use crate::plan::problem::Problem;
use crate::store::decision::Decision;
use crate::store::transaction::{Mode, Transaction};
use crate::text::header_edit::{self, Change, NewValue};

fn tree_of(files: &[(&str, &str)]) -> (Tree, Context) {
    let (tree, machine) = tree_on(files);
    (tree, Context::on_model(&machine))
}

/// A tree on a machine whose files are so old that an unchanged stamp means unchanged content.
fn tree_on(files: &[(&str, &str)]) -> (Tree, Arc<Machine>) {
    let machine = Arc::new(Machine::with(files));
    machine.wait();
    let own = Arc::clone(&machine);
    let contexts: ContextsAt = Arc::new(move |_| Ok(Context::on_model(&own)));
    (Tree::find(&contexts, Path::new("/plans")).unwrap(), machine)
}

/// Applies the edits of one document as a client does. As the protocol defines, all ranges refer to the text before
/// the edits.
fn applied(text: &str, encoding: Encoding, edits: &[Value]) -> String {
    let offset = |it: &Value| {
        let (line, wanted) =
            (it["line"].as_u64().unwrap() as usize, it["character"].as_u64().unwrap() as usize);
        // Lines are counted independently of the server: they end at LF, CRLF and CR.
        let mut start = 0;
        for _ in 0..line {
            let end = start + text[start..].find(['\r', '\n']).unwrap();
            start = end + if text[end..].starts_with("\r\n") { 2 } else { 1 };
        }
        let units = |c: char| match encoding {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        };
        let (mut at, mut seen) = (start, 0);
        while seen < wanted {
            let c = text[at..].chars().next().unwrap();
            (at, seen) = (at + c.len_utf8(), seen + units(c));
        }
        at
    };
    let mut edits: Vec<_> = edits
        .iter()
        .map(|it| {
            (offset(&it["range"]["start"])..offset(&it["range"]["end"]), it["newText"].as_str().unwrap())
        })
        .collect();
    edits.sort_by_key(|it| (it.0.start, it.0.end));
    let mut new = text.to_owned();
    edits.iter().rev().for_each(|(range, text)| new.replace_range(range.clone(), text));
    new
}

fn change(op: &str, args: &Value) -> Change {
    let key = args["key"].as_str().unwrap().to_owned();
    fn value(json: &Value) -> NewValue {
        match json {
            Value::Object(entries) => {
                NewValue::Map(entries.iter().map(|(key, it)| (key.clone(), value(it))).collect())
            }
            _ => NewValue::Text(json.as_str().unwrap().to_owned()),
        }
    }
    match op {
        "append" => Change::Append { key, item: value(&args["item"]) },
        "remove" => Change::Remove { key },
        _ => Change::Set { key, value: value(&args["value"]) },
    }
}

/// For each case of `tests/frontmatter`, the edits of an unsaved text result in the bytes that a command would write.
#[test]
fn edits_of_an_open_text_give_the_bytes_of_the_command() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frontmatter"));
    let index = std::fs::read_to_string(folder.join("INDEX.tsv")).unwrap();
    let order = ["id", "status", "title", "depends", "priority", "attempts"];
    let (mut n, mut n_edited) = (0, 0);
    for line in index.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let change = change(columns[1], &serde_json::from_str(columns[2]).unwrap());
        let bytes = std::fs::read(folder.join("files").join(columns[0])).unwrap();
        n += 1;
        // A text that is not UTF-8 cannot be open.
        let Ok(text) = String::from_utf8(bytes.clone()) else { continue };
        let Ok(expected) = header_edit::edit(&bytes, std::slice::from_ref(&change), &order) else { continue };
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            let edits = planned(&text, encoding, &change, &order);
            assert_eq!(applied(&text, encoding, &edits).as_bytes(), expected, "{line}");
        }
        n_edited += 1;
    }
    assert_eq!(n, 485);
    assert!(n_edited > 400, "{n_edited}");
}

fn planned(text: &str, encoding: Encoding, change: &Change, order: &[&str]) -> Vec<Value> {
    let (mut tree, _) = tree_of(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# saved before\n")]);
    let mut documents = Documents::default();
    let uri = "file:///plans/p/step-1.md";
    documents.open(uri.to_owned(), 7, text.to_owned(), encoding).unwrap();
    assert!(tree.put(documents.get(uri).unwrap()));
    let (context, planned) = tree.planning().unwrap();
    let mut writing = Transaction::begin(&context, "set", Mode::DryRun).unwrap();
    let decided: Decision<_, ()> = writing
        .change("p/step-1.md", &|bytes| {
            Ok(Decision::Write(header_edit::edit(bytes, std::slice::from_ref(change), order).unwrap(), ()))
        })
        .unwrap();
    let Decision::Write(_, ()) = decided;
    let client = Client { encoding, has_document_changes: true, ..Client::default() };
    let edit =
        workspace_edit(&tree, &documents, &client, &planned.take(), (Renames::Included, "set")).unwrap();
    let changes = edit["documentChanges"].as_array().unwrap().clone();
    for it in &changes {
        assert_eq!(it["textDocument"], json!({"uri": uri, "version": 7}));
    }
    changes.iter().flat_map(|it| it["edits"].as_array().unwrap().clone()).collect()
}

/// The problems of one plan are those that `check` finds with all plans loaded.
#[test]
fn a_plan_is_judged_as_by_check() {
    let files = [
        (
            "/plans/a/plan.md",
            "---\nprogram: big\n---\n# A\n\n## Steps\n- step-1: One\n- step-4: Four (depends: step-9)\n",
        ),
        ("/plans/a/step-1.md", "---\nid: x:1\nstatus: completed\ndepends: [2]\n---\n# One\n"),
        ("/plans/a/step-2.md", "---\nstatus: pendign\ndepends: [1, \"b:1\", \"b:7\"]\n---\n# Two\n"),
        (
            "/plans/a/step-3.md",
            "---\nclaim: {id: \"h4f09a21\", by: bob, at: 2026-11-20T12:00:00Z}\n---\n# Three\n",
        ),
        ("/plans/A/step-1.md", "# Other spelling\n"),
        ("/plans/b/step-1.md", "---\ndepends: [\"c:1\"]\n---\n# B\n"),
        ("/plans/c/plan.md", "---\nkind: program\n---\n# C\n"),
        ("/plans/c/step-1.md", "---\ndepends: [\"a:2\"]\n---\n# C\n"),
        ("/plans/_archive/d/step-1.md", "---\ndepends: [5]\n---\n# D\n"),
        ("/plans/e/step-1.md", "---\nstatus: [\n---\n# E\n"),
    ];
    let (mut tree, context) = tree_of(&files);
    let all = check(&context, &CheckRequest::default()).unwrap().problems;
    assert!(all.len() > 10, "{all:?}");
    tree.loaded(super::catalog::Catalog::load(&context).unwrap());
    let of_catalog: Vec<Problem> = tree.catalog.as_ref().unwrap().problems().cloned().collect();
    assert_eq!(sorted(of_catalog), all);
    let mut found = Vec::new();
    for (path, _) in files {
        let file = tree.file(Path::new(path)).unwrap();
        found.extend(tree.problems_of(&file));
    }
    let is_of_file =
        |it: &&Problem| files.iter().any(|(path, _)| path.strip_prefix("/plans/") == Some(&it.path));
    assert_eq!(sorted(found), all.iter().filter(is_of_file).cloned().collect::<Vec<_>>());
}

fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_unstable();
    problems.dedup();
    problems
}

/// The problems of a plan depend on the unsaved texts of the plans that it depends on.
#[test]
fn an_open_text_changes_the_problems_of_other_files() {
    let files = [
        ("/plans/a/step-1.md", "# One\n"),
        ("/plans/b/step-1.md", "---\ndepends: [\"a:1\"]\nstatus: completed\n---\n# B\n"),
    ];
    let (mut tree, context) = tree_of(&files);
    tree.loaded(super::catalog::Catalog::load(&context).unwrap());
    let mut documents = Documents::default();
    let codes = |tree: &mut Tree| {
        let file = tree.file(Path::new("/plans/b/step-1.md")).unwrap();
        let codes = tree.problems_of(&file).into_iter().map(|it| it.code.text());
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes(&mut tree), ["missing-plan-file", "waits-for-open"][1..]);
    documents.open(
        "file:///plans/a/step-1.md".to_owned(),
        1,
        "---\nstatus: done\n---\n".to_owned(),
        Encoding::Utf8,
    );
    tree.put(documents.get("file:///plans/a/step-1.md").unwrap());
    assert_eq!(codes(&mut tree), [""; 0]);
    tree.close(Path::new("/plans/a/step-1.md"));
    assert_eq!(codes(&mut tree), ["waits-for-open"]);
}

/// Related locations are, for example, the steps of a cycle, the plan that lacks a step, and the other file of a step.
#[test]
fn problems_have_the_places_that_they_are_about() {
    let files = [
        ("/plans/a/plan.md", "---\nprogram: none\n---\n# A\n\n## Steps\n- step-4: Four (depends: step-3)\n"),
        ("/plans/a/step-1.md", "---\ndepends: [2, \"b:7\", \"gone:1\", 9]\n---\n# One\n"),
        ("/plans/a/step-2.md", "---\ndepends: [1]\n---\n# Two\n"),
        (
            "/plans/a/step-3.md",
            "---\nstatus: completed\ndepends: [\"b:1\"]\n---\n# Three\n\n## Dependencies\n\nstep-1\n",
        ),
        ("/plans/a/step-4.md", "# Four\n\n## Dependencies\n\nstep-1\n"),
        ("/plans/a/step-5.md", "# Five\n"),
        ("/plans/a/step-05.md", "# Five\n"),
        ("/plans/A/plan.md", "# Other spelling\n"),
        ("/plans/b/plan.md", "---\nprogram: A\n---\n# B\n"),
        ("/plans/b/step-1.md", "# B\n"),
    ];
    let (mut tree, context) = tree_of(&files);
    tree.loaded(super::catalog::Catalog::load(&context).unwrap());
    let mut said = Vec::new();
    for (path, text) in files {
        let mut documents = Documents::default();
        let uri = format!("file://{path}");
        documents.open(uri.clone(), 1, text.to_owned(), Encoding::Utf16).unwrap();
        let document = documents.get(&uri).unwrap();
        let file = tree.file(Path::new(path)).unwrap();
        let problems = tree.problems_of(&file);
        let judged = tree.judged(file.key.as_ref().unwrap()).unwrap();
        let plan = judged.plan().unwrap();
        let related = |it: &Problem| {
            let in_text = diagnostics::in_text(&document.text, (&plan.path, &plan.id), it);
            diagnostics::related(&judged.plans, plan, it).into_iter().chain(in_text).collect()
        };
        for it in diagnostics::all(document, Path::new("/plans"), &problems, related) {
            let places = it["relatedInformation"].as_array().into_iter().flatten();
            let place = |place: &Value| {
                let (of, line) = (&place["location"]["uri"], &place["location"]["range"]["start"]["line"]);
                format!(
                    " {}:{line} {}",
                    of.as_str().unwrap().trim_start_matches("file:///plans/"),
                    place["message"].as_str().unwrap()
                )
            };
            let code = it["code"].as_str().unwrap();
            let name = path.trim_start_matches("/plans/");
            said.push(format!("{name} {code}:{}", places.map(place).collect::<Vec<_>>().join(",")));
        }
    }
    assert_eq!(
        said,
        [
            "a/plan.md name-clash: A/plan.md:0 `A` is here",
            "a/plan.md program-missing: none/plan.md:0 there is no plan `none` here",
            "a/step-1.md dependency-cycle: a/step-2.md:1 `a:2` waits for `a:1`",
            "a/step-1.md dependency-missing: b/plan.md:0 the plan `b` has no step 7",
            "a/step-1.md dependency-missing: gone/plan.md:0 there is no plan `gone` here",
            "a/step-1.md dependency-missing: a/plan.md:0 the plan `a` has no step 9",
            "a/step-2.md dependency-cycle: a/step-1.md:1 `a:1` waits for `a:2`",
            "a/step-3.md waits-for-open: b/step-1.md:0 `b:1` is open",
            "a/step-3.md dependencies-disagree: a/step-3.md:7 the Dependencies section is here",
            "a/step-4.md dependencies-disagree: a/plan.md:0 the Steps list of `a` is here",
            "a/step-5.md duplicate-step-number: a/step-05.md:0 `a:5` is here, too",
            "a/step-05.md duplicate-step-number: a/step-5.md:0 `a:5` is here, too",
            "A/plan.md name-clash: a/plan.md:0 `a` is here",
            "b/plan.md program-missing: A/plan.md:0 the plan `A` is here",
        ]
    );
}

/// In the symbols of a plan, a step is a child of the phase that the step's file names. The symbols of a step's file
/// contain the step's phase.
#[test]
fn phases_are_symbols_around_their_steps() {
    let files = [
        (
            "/plans/p/plan.md",
            "# P\n\n## Steps\n- step-1: One\n- step-2: Two\n  more\n- step-3: Three\n- step-4: Four\n\n## End\n",
        ),
        ("/plans/p/step-1.md", "---\nphase: build\n---\n# One\n"),
        ("/plans/p/step-2.md", "---\nphase: build\n---\n# Two\n"),
        ("/plans/p/step-4.md", "---\nphase: build\n---\n# Four\n"),
    ];
    let (mut tree, _) = tree_of(&files);
    let client = Client { nests_symbols: true, ..Client::default() };
    let mut said = |nth: usize| {
        let (path, text) = files[nth];
        let mut documents = Documents::default();
        let uri = format!("file://{path}");
        documents.open(uri.clone(), 1, text.to_owned(), Encoding::Utf16).unwrap();
        let file = tree.file(Path::new(path)).unwrap();
        let found =
            symbols::document_symbols(&mut tree, documents.get(&uri).unwrap(), &file, &client).unwrap();
        names(&found)
    };
    assert_eq!(
        said(0),
        "P 0-10 (Steps 2-9 (build 3-5 (1: One 3-3, 2: Two 4-5), 3: Three 6-6, build 7-7 (4: Four 7-7)), End 9-10)"
    );
    assert_eq!(said(1), "build 1-1, One 3-4");
}

/// Symbols with their lines and children.
fn names(symbols: &Value) -> String {
    let one = |it: &Value| {
        let line = |of: &str| it["range"][of]["line"].as_u64().unwrap();
        let below = names(&it["children"]);
        let below = if below.is_empty() { below } else { format!(" ({below})") };
        format!("{} {}-{}{below}", it["name"].as_str().unwrap(), line("start"), line("end"))
    };
    symbols.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A rename in an editor also changes links in unsaved texts.
#[test]
fn links_follow_a_plan_that_an_editor_renames() {
    let files = [
        ("/plans/old/plan.md", "# Old\n"),
        ("/plans/old/step-1.md", "# One\n\n[up](../old/plan.md)\n"),
        ("/plans/other/plan.md", "# Other\n"),
    ];
    let (mut tree, _) = tree_of(&files);
    let mut documents = Documents::default();
    for (uri, text) in [
        ("file:///plans/old/plan.md", "# Old\n"),
        ("file:///plans/other/plan.md", "# Other\n\nSee [it](../old/step-1.md).\n"),
    ] {
        documents.open(uri.to_owned(), 1, text.to_owned(), Encoding::Utf16).unwrap();
        assert!(tree.put(documents.get(uri).unwrap()));
    }
    let client = Client { has_document_changes: true, renames_files: true, ..Client::default() };
    let file = tree.file(Path::new("/plans/old/plan.md")).unwrap();
    let document = documents.get("file:///plans/old/plan.md").unwrap();
    let asked = (Position { line: 0, character: 2 }, "new");
    let edit = rename::rename(&mut tree, &documents, (document, &file), &client, asked).unwrap();
    let shown = |it: &Value| match it["kind"].as_str() {
        Some(kind) => format!("{kind} {}", it["newUri"].as_str().unwrap()),
        None => {
            let uri = it["textDocument"]["uri"].as_str().unwrap();
            let before = documents.get(uri).map_or(files[1].1, |it| it.text.as_str());
            format!("{uri} {}", applied(before, Encoding::Utf16, it["edits"].as_array().unwrap()))
        }
    };
    let mut changes: Vec<_> = edit["documentChanges"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(changes.pop().unwrap(), "rename file:///plans/new");
    changes.sort_unstable();
    assert_eq!(
        changes,
        [
            "file:///plans/old/step-1.md # One\n\n[up](../new/plan.md)\n",
            "file:///plans/other/plan.md # Other\n\nSee [it](../new/step-1.md).\n",
        ]
    );
}

#[test]
fn many_problems_of_a_file_are_marked_each_at_its_place() {
    let listed: String = (1..=300).map(|it| format!("- step-{it}: É (depends: no{it})\n")).collect();
    let plan = format!("# P\n\n## Steps\n\n{listed}");
    let waits: Vec<_> = (401..=480).map(|it| it.to_string()).collect();
    let step = format!("---\ndepends:\n  - {}\n---\n# One\n", waits.join("\n  - "));
    let files = [("/plans/p/plan.md", plan.as_str()), ("/plans/p/step-1.md", step.as_str())];
    let (mut tree, _) = tree_of(&files);
    for ((path, text), n) in files.into_iter().zip([299, 80]) {
        let mut documents = Documents::default();
        let uri = format!("file://{path}");
        documents.open(uri.clone(), 1, text.to_owned(), Encoding::Utf8).unwrap();
        let file = tree.file(Path::new(path)).unwrap();
        let problems = tree.problems_of(&file);
        let found =
            diagnostics::all(documents.get(&uri).unwrap(), Path::new("/plans"), &problems, |_| Vec::new());
        let marked = |it: &Value| {
            let place = |of: &str, what: &str| it["range"][of][what].as_u64().unwrap() as usize;
            let line = text.lines().nth(place("start", "line")).unwrap();
            line[place("start", "character")..place("end", "character")].to_owned()
        };
        let missing = found.iter().filter(|it| it["code"] == "dependency-missing");
        let marks: Vec<_> = missing.map(marked).collect();
        let number = |it: &String| it.trim_start_matches("no").parse::<usize>().ok();
        let numbers: Vec<_> = marks.iter().map(number).collect();
        assert!(numbers.windows(2).all(|it| it[0].map(|it| it + 1) == it[1]), "{marks:?}");
        assert!(marks.len() >= n, "{marks:?}");
    }
}
