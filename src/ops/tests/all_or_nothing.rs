//! Tests of verbs that write several files while one call to the disk fails: either all changes of the verb are made, or
//! none. A plain `cargo test` tries every seventh fault; with `PLANWATCH_R3=full`, all faults are tried.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::DiskError;
use crate::disk::model::{Fault, Machine, sample};
use crate::ops::add::{AddRequest, add};
use crate::ops::archive::{ArchiveRequest, archive};
use crate::ops::create::{NewRequest, new};
use crate::ops::import::{ImportRequest, import};
use crate::ops::remove::{RemoveRequest, remove};
use crate::ops::renumber::{RenumberRequest, renumber};
use crate::ops::replace::{ReplaceRequest, replace};
use crate::ops::squash::{SquashRequest, squash};
use crate::store::transaction::*;

const FILES: &[(&str, &str)] = &[
    (
        "/plans/p/plan.md",
        "# P\n\n## Steps\n- step-1: One\n- step-2: Two (depends: step-1)\n- step-3: Three\n",
    ),
    ("/plans/p/step-1.md", "# One\n"),
    ("/plans/p/step-2.md", "---\ndepends: [1]\n---\n# Two\n"),
    ("/plans/p/step-3.md", "---\ndepends: [2]\n---\n# Three\n"),
    ("/plans/q/step-1.md", "---\ndepends: [p:2]\n---\n# Other\n"),
    ("/plans/_archive/o/plan.md", "# O\n"),
    ("/plans/_archive/o/step-1.md", "# O\n"),
    ("/plans/_archive/o/removed-1/step-2.md", "# O\n"),
    ("/documents/a.md", "# A\n\n- [ ] one\n"),
];

type Verb = fn(&Context) -> Result<(), Error>;

const VERBS: &[(&str, Verb)] = &[
    ("add", |it| {
        let (plan, title) = ("p".to_owned(), "New".to_owned());
        add(it, &AddRequest { plan, title, ..AddRequest::default() }).map(drop)
    }),
    ("remove", |it| {
        refused(remove(it, &RemoveRequest { ids: vec!["p:2".to_owned()], ..RemoveRequest::default() }))
    }),
    ("squash", |it| {
        let (plan, title, steps) = ("p".to_owned(), "T".to_owned(), vec!["1".to_owned(), "2".to_owned()]);
        squash(it, &SquashRequest { plan, title, steps, ..SquashRequest::default() }).map(drop)
    }),
    ("move", |it| {
        let (id, after) = ("p:2".to_owned(), "3".to_owned());
        renumber(it, &RenumberRequest { id, after, ..RenumberRequest::default() }).map(drop)
    }),
    ("replace", |it| {
        let (plan, list) = ("p".to_owned(), "- step-3: Three\n- New\n".to_owned());
        replace(it, &ReplaceRequest { plan, list, ..ReplaceRequest::default() }).map(drop)
    }),
    ("archive", |it| {
        refused(archive(it, &ArchiveRequest { plans: vec!["p".to_owned()], ..ArchiveRequest::default() }))
    }),
    ("archive --restore", |it| {
        let request =
            ArchiveRequest { plans: vec!["o".to_owned()], restores: true, force: false, mode: Mode::Write };
        refused(archive(it, &request))
    }),
    ("new", |it| {
        let (title, steps) = ("New".to_owned(), vec!["One".to_owned().into(), "Two".to_owned().into()]);
        new(it, &NewRequest { title, steps, ..NewRequest::default() }).map(drop)
    }),
    ("new --children", |it| {
        let (title, children) = ("Program".to_owned(), vec!["p".to_owned(), "q".to_owned()]);
        new(it, &NewRequest { title, children, is_program: true, ..NewRequest::default() }).map(drop)
    }),
    ("import", |it| {
        import(it, &ImportRequest { source: "/documents/a.md".into(), ..ImportRequest::default() }).map(drop)
    }),
    ("undo", |it| crate::ops::undo::undo(it, &crate::ops::undo::UndoRequest::default()).map(drop)),
];

/// Turns the first refusal in a report into an error.
fn refused(report: Result<ChangeReport, Error>) -> Result<(), Error> {
    report?.refused.into_iter().next().map_or(Ok(()), |it| Err(it.error))
}

/// The machine before a verb runs on it.
fn start(verb: &str) -> Machine {
    let machine = Machine::with(FILES);
    drop(machine.plans().lock(&mut || {}).unwrap());
    if verb == "undo" {
        VERBS[1].1(&Context::on_model(&machine)).unwrap();
    }
    machine
}

fn is_in_doubt(error: &Error) -> bool {
    let (Error::Disk(disk) | Error::Undo(crate::disk::UndoError::Disk(disk))) = error else { return false };
    matches!(
        disk,
        DiskError::Uncertain { .. }
            | DiskError::Unsynced { .. }
            | DiskError::Unfinished { goes_back: false, .. }
    )
}

#[test]
fn a_verb_writes_all_of_its_files_or_none_whatever_call_fails() {
    for (name, verb) in VERBS {
        let start = start(name);
        let before = start.tree();
        let whole = start.after_kill();
        verb(&Context::on_model(&whole)).unwrap();
        let after = whole.tree();
        assert_ne!(before, after, "{name}");
        let (mut n_refused, mut faults) = (0, sample(7));
        let all = (1..=whole.calls()).flat_map(|it| [(it, Fault::Full), (it, Fault::Broken)]);
        for (call, fault) in all.filter(|_| faults.takes()) {
            let machine = start.failing_at(call, fault);
            let answer = verb(&Context::on_model(&machine));
            // The next command undoes or finishes what the failed command left.
            let next = machine.after_kill();
            drop(next.plans().lock(&mut || {}).unwrap());
            let found = next.tree();
            let what = format!("{name}: {fault:?} at {call}: {answer:?}");
            match answer {
                // A document whose path cannot be resolved is imported without the path.
                Ok(()) if *name == "import" => assert!(found.keys().eq(after.keys()), "{what}"),
                Ok(()) => assert_eq!(without_empty(&found), without_empty(&after), "{what}"),
                Err(error) if is_in_doubt(&error) => assert!(found == before || found == after, "{what}"),
                Err(_) => {
                    n_refused += 1;
                    assert_eq!(found, before, "{what}");
                }
            }
        }
        assert!(n_refused > 0, "{name}");
    }
}

/// Texts by path. `None`: a directory.
type Tree = std::collections::BTreeMap<String, Option<String>>;

/// A tree without directories: a verb succeeds even if it cannot remove an empty directory.
fn without_empty(tree: &Tree) -> Vec<(&String, &Option<String>)> {
    tree.iter().filter(|(_, text)| text.is_some()).collect()
}

/// The command is killed. If it has not created the new step's file, another program creates a file with this name before
/// the next command runs.
#[test]
fn a_file_that_another_program_made_after_a_kill_is_not_taken_for_the_new_step() {
    const NEW: &str = "/plans/p/step-4.md";
    const THEIRS: &str = "---\nstatus: completed\n---\n# Theirs\n";
    let (mut n_taken_back, mut n_finished) = (0, 0);
    for call in 1.. {
        let dying = start("add").dying_before(call);
        VERBS[0].1(&Context::on_model(&dying)).ok();
        if !dying.has_died() {
            break;
        }
        let after = dying.after_kill();
        let is_made = after.text(NEW).is_some();
        if !is_made {
            after.save(NEW, THEIRS);
        }
        drop(after.plans().lock(&mut || {}).unwrap());
        let list = after.text("/plans/p/plan.md").unwrap();
        let text = after.text(NEW).unwrap();
        assert_eq!(list.contains("step-4: New"), text.contains("# New"), "{call}: {list}{text}");
        assert_eq!(text == THEIRS, !is_made, "{call}: {text}");
        n_taken_back += usize::from(!is_made);
        n_finished += usize::from(is_made);
    }
    assert!(n_taken_back > 5 && n_finished > 3, "{n_taken_back} {n_finished}");
}
