use crate::disk::model::Machine;

use super::*;
use crate::disk::journal::FileOp;

const FILES: &[(&str, &str)] = &[
    ("/plans/p/plan.md", "# P\n"),
    ("/plans/p/step-1.md", "one\n"),
    ("/plans/p/step-2.md", "two\n"),
    ("/plans/p/step-3.md", "three\n"),
    ("/plans/q/plan.md", "# Q\n"),
];

fn ops() -> Vec<FileOp> {
    let path = PathBuf::from;
    vec![
        FileOp::Create { path: path("p/step-4.md"), bytes: b"four\n".to_vec() },
        FileOp::Change { path: path("p/step-1.md"), before: b"one\n".to_vec(), after: b"new\n".to_vec() },
        FileOp::Discard { path: path("p/step-3.md"), before: b"three\n".to_vec() },
        FileOp::Rename { from: path("p/step-2.md"), to: path("p/step-5.md") },
    ]
}

const NAMED: [&str; 5] = ["p/step-1.md", "p/step-2.md", "p/step-3.md", "p/step-4.md", "p/step-5.md"];

fn batch(plans: &PlansDir) -> Result<(), DiskError> {
    plans.lock(&mut || {})?.batch("move", "then", ops())
}

/// Changes a file as a command does, or creates the file if it is missing.
fn write(plans: &PlansDir, path: &str) -> Result<(), DiskError> {
    let mut locked = plans.lock(&mut || {})?;
    if plans.disk.lstat(&plans.root.join(path)).is_err() {
        return locked.create(Path::new(path), b"mine\n").map(drop);
    }
    locked.change(Path::new(path), &mut |bytes, _| Some([bytes, b"mine\n"].concat())).map(drop)
}

/// Each state that a process leaves when it dies within a batch; the state home is `/state`.
fn killed() -> impl Iterator<Item = Machine> {
    let whole = Machine::with(FILES);
    let plans = whole.plans();
    drop(plans.lock(&mut || {}).unwrap());
    let start = whole.after_kill();
    let n = {
        let whole = start.after_kill();
        batch(&whole.plans()).unwrap();
        whole.calls()
    };
    (1..n).filter_map(move |call| {
        let dying = start.dying_before(call);
        batch(&dying.plans()).ok();
        dying.has_died().then(|| dying.after_long())
    })
}

fn texts(machine: &Machine) -> Vec<Option<String>> {
    NAMED.iter().map(|it| machine.text(&format!("/plans/{it}"))).collect()
}

#[test]
fn only_files_of_anothers_unfinished_batch_are_refused() {
    let (mut n_refused, mut n_free) = (0, 0);
    for machine in killed() {
        let other = machine.plans_at("/plans", "/other");
        let before = texts(&machine);
        let is_begun = other.unfinished().unwrap().len() == 1;
        for name in NAMED {
            // If `is_begun` is false, there is no whole journal: the batch was not begun, or it is complete.
            let beside = machine.after_kill();
            match write(&beside.plans_at("/plans", "/other"), name) {
                Err(error) if is_begun => {
                    assert!(matches!(error, DiskError::BegunElsewhere { .. }), "{error:?}");
                    assert_eq!(error.code(), "locked");
                    let id = &other.unfinished().unwrap()[0].id;
                    assert!(error.hint().unwrap().contains(&format!("doctor --discard-journal {id}")));
                    n_refused += 1;
                }
                done => {
                    done.unwrap();
                    assert!(!is_begun, "{name}");
                    n_free += 1;
                }
            }
        }
        assert_eq!(texts(&machine), before, "nothing was completed or undone");
        if is_begun {
            let taken = other.lock(&mut || {}).unwrap().batch(
                "archive",
                "now",
                vec![FileOp::Rename { from: "p".into(), to: "_archive/p".into() }],
            );
            assert!(matches!(taken, Err(DiskError::BegunElsewhere { .. })), "{taken:?}");
        }
        write(&other, "q/plan.md").unwrap();
        write(&other, "p/plan.md").unwrap();
        // The owner completes the batch. Then all files can be written.
        let own = machine.plans();
        drop(own.lock(&mut || {}).unwrap());
        if is_begun {
            let done = ["new\n", "", "", "four\n", "two\n"].map(|it| (!it.is_empty()).then(|| it.to_owned()));
            assert_eq!(texts(&machine), done);
        }
        assert_eq!(other.unfinished().unwrap(), []);
        write(&other, "p/step-1.md").unwrap();
    }
    assert!(n_refused > 50 && n_free > 10, "{n_refused}, {n_free}");
}

/// Whether a text is the content of a plan file, or of a version that `kept` reports.
fn is_somewhere(machine: &Machine, plans: &PlansDir, text: &str) -> bool {
    let is_there = |path: &str| machine.text(path).is_some_and(|it| it == text);
    NAMED.iter().any(|it| is_there(&format!("/plans/{it}")))
        || plans.kept().iter().any(|it| is_there(&format!("/plans/{}", it.kept.display())))
}

#[test]
fn giving_up_preserves_every_text_whenever_it_dies() {
    for machine in killed() {
        let other = machine.plans_at("/plans", "/other");
        drop(other.lock(&mut || {}).unwrap());
        let Some(unfinished) = other.unfinished().unwrap().pop() else { continue };
        let discard = |plans: &PlansDir| {
            let mut locked = plans.lock(&mut || {})?;
            assert_eq!(locked.discard_unfinished("0000000000000000")?, None);
            locked.discard_unfinished(&unfinished.id)
        };
        let whole = machine.after_kill();
        let discarded = discard(&whole.plans_at("/plans", "/other")).unwrap().unwrap();
        assert_eq!((discarded.unfinished.verb.as_str(), discarded.unfinished.ops.len()), ("move", 4));
        for call in 1..whole.calls() {
            let dying = machine.dying_before(call);
            discard(&dying.plans_at("/plans", "/other")).ok();
            let mut left = dying.after_power_cut();
            left.push(dying.after_kill());
            for machine in left {
                let other = machine.plans_at("/plans", "/other");
                let is_begun = !other.unfinished().unwrap().is_empty();
                for text in ["one\n", "two\n", "three\n", "four\n", "new\n"] {
                    assert!(is_begun || is_somewhere(&machine, &other, text), "{text} before call {call}");
                }
            }
        }
        let other = whole.plans_at("/plans", "/other");
        assert_eq!(other.unfinished().unwrap(), []);
        for text in ["one\n", "two\n", "three\n", "four\n", "new\n"] {
            assert!(is_somewhere(&whole, &other, text), "{text}");
        }
        // The owner finds no batch to complete, and all texts stay unchanged.
        let before = texts(&whole);
        drop(whole.plans().lock(&mut || {}).unwrap());
        assert_eq!(texts(&whole), before);
        write(&other, "p/step-5.md").unwrap();
    }
}
