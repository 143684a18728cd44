//! Tests the parts of a plan that are cached between two keystrokes.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::tree_on;
use crate::api::context::Context;
use crate::plan::model::Plan;
use crate::serve::lsp::documents::Documents;
use crate::serve::lsp::positions::Encoding;
use crate::serve::lsp::tree::{ContextsAt, Tree};

/// Opens a text in the tree, or changes the open text.
fn open(tree: &mut Tree, path: &str, text: &str) {
    let mut documents = Documents::default();
    let uri = format!("file://{path}");
    documents.open(uri.clone(), 1, text.to_owned(), Encoding::Utf16).unwrap();
    assert!(tree.put(documents.get(&uri).unwrap()));
}

/// The plan of a file and the plans that it depends on, as they are now.
fn plans_at(tree: &mut Tree, path: &str) -> Vec<Plan> {
    let key = tree.file(Path::new(path)).unwrap().key.unwrap();
    tree.judged(&key).unwrap().plans.iter().cloned().collect()
}

const PLAN: &str = "---\nstatus: active\n---\n# P\n\n## Steps\n- step-1: One\n- step-2: Two (depends: step-1)\n- step-7: Seven\n";

/// After a keystroke, another file is read again only if it was saved in the meantime.
#[test]
fn a_key_reads_only_the_files_that_differ() {
    let files = [
        ("/plans/p/plan.md", PLAN),
        ("/plans/p/step-1.md", "# One\n"),
        ("/plans/p/step-2.md", "# Two\n\n## Dependencies\n\nAll previous steps\n"),
        ("/plans/p/step-3.md", "---\ndepends: [\"q:1\"]\n---\n# Three\n"),
        ("/plans/q/step-1.md", "# Q\n"),
    ];
    let (mut tree, machine) = tree_on(&files);
    open(&mut tree, files[1].0, "# One\n");
    plans_at(&mut tree, files[1].0);
    let n_opened = || machine.n_opened("/plans/p/step-2.md") + machine.n_opened("/plans/q/step-1.md");
    let before = n_opened();
    assert_eq!(before, 2);
    for text in ["# On\n", "# Ons\n", "---\nstatus: done\n---\n# One\n"] {
        open(&mut tree, files[1].0, text);
        plans_at(&mut tree, files[1].0);
    }
    open(&mut tree, files[0].0, &PLAN.replace("# P", "# Plan"));
    plans_at(&mut tree, files[1].0);
    assert_eq!(n_opened(), before);
    machine.save("/plans/q/step-1.md", "---\nstatus: nonsense\n---\n# Q\n");
    open(&mut tree, files[1].0, "# One!\n");
    let plans = plans_at(&mut tree, files[1].0);
    assert_eq!(n_opened(), before + 1);
    assert!(plans.iter().flat_map(|it| &it.steps).any(|it| it.status.word() == "nonsense"));
}

proptest! {
    /// After any keystrokes, saves by other programs and closed documents, the cached plans equal plans that are read
    /// without a cache.
    #[test]
    fn plans_cached_between_keys_equal_plans_read_anew(
        edits in prop::collection::vec((0..7_usize, 0..9_usize, 0..4_u8), 1..12),
    ) {
        let paths = ["p/plan.md", "p/step-1.md", "p/step-2.md", "p/step-02.md", "p/step-3.md", "q/step-1.md", "p/step-9"]
            .map(|it| format!("/plans/{it}"));
        let texts = [
            "# One\n",
            "# Two\n\n## Dependencies\n\nAll previous steps\n",
            "---\nclaim: {id: \"h4f09a21\", by: bob, at: 2026-11-20T12:00:00Z}\n---\n# Three\n",
            "---\nstatus: completed\ndepends: [\"q:1\", 1, 7]\n---\n# Four\n",
            "---\nstatus: [\n---\n",
            "",
            PLAN,
            "# P\n\n- one\n\n## Steps\n- step-1: One (depends: step-9)\n- step-2: Two\n",
            "---\nkind: program\n---\n# P\n\n## Steps\n- step-10: One\n",
        ];
        let files = [(paths[0].as_str(), PLAN), (paths[1].as_str(), texts[0]), (paths[2].as_str(), texts[1])];
        let (mut tree, machine) = tree_on(&files);
        let mut typed: Vec<(String, &str)> = vec![(paths[1].clone(), texts[0])];
        open(&mut tree, &paths[1], texts[0]);
        for (path, text, how) in edits {
            let (path, text) = (&paths[path], texts[text]);
            if how == 3 {
                // After the wait, an unchanged stamp of a saved file means unchanged content.
                machine.wait();
            }
            match how {
                0 => machine.save(path, text),
                1 if *path != paths[1] => {
                    typed.retain(|it| it.0 != *path);
                    tree.close(Path::new(path));
                }
                _ if tree.file(Path::new(path)).is_some() => {
                    typed.retain(|it| it.0 != *path);
                    typed.push((path.clone(), text));
                    open(&mut tree, path, text);
                }
                _ => {}
            }
            // Simulates a keystroke, after which files that were saved in the meantime are read again, too.
            let own = typed.iter().find(|it| it.0 == paths[1]).unwrap().1;
            open(&mut tree, &paths[1], own);
            let own = Arc::clone(&machine);
            let contexts: ContextsAt = Arc::new(move |_| Ok(Context::on_model(&own)));
            let mut fresh = Tree::find(&contexts, Path::new("/plans")).unwrap();
            typed.iter().for_each(|(path, text)| open(&mut fresh, path, text));
            let strip = |plans: Vec<Plan>| plans.into_iter().map(without_times).collect::<Vec<_>>();
            prop_assert_eq!(strip(plans_at(&mut tree, &paths[1])), strip(plans_at(&mut fresh, &paths[1])));
        }
    }
}

/// Removes the modification times, because an open text has the time of the last keystroke.
fn without_times(mut plan: Plan) -> Plan {
    plan.modified = None;
    plan.steps.iter_mut().for_each(|it| it.modified = None);
    plan
}
