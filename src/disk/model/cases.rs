//! The protocols that are tested with every crash, every fault and every moment of a save. Each has a start, an action
//! and allowed results.

use super::state::State;
use super::*;
use crate::disk::{DiskError, FileOp, PlansDir, UndoError};

/// One protocol: its start, its action, and the allowed results.
pub(super) struct Case {
    pub name: &'static str,
    pub plant: fn(&mut State),
    /// An action before the run. Its result is durable.
    pub earlier: fn(&PlansDir) -> Result<(), DiskError>,
    pub act: fn(&PlansDir) -> Result<(), DiskError>,
    /// The relevant files, each with its path and its text before and after the action.
    pub files: &'static [(&'static str, Option<&'static str>, Option<&'static str>)],
    pub lacks_exchange: bool,
    /// Whether a torn text is allowed if the earlier text was preserved.
    pub in_place: bool,
}

pub(super) const OLD: &str = "old\n";
pub(super) const NEW: &str = "old\nours\n";
pub(super) const STEP: &str = "/plans/p/step-1.md";

pub(super) fn plant_step(state: &mut State) {
    state.plant(STEP, OLD.as_bytes());
}

fn plant_linked(state: &mut State) {
    plant_step(state);
    state.link(Path::new(STEP), Path::new("/plans/p/other.md")).unwrap();
    state.settle();
}

pub(super) fn edit(plans: &PlansDir) -> Result<(), DiskError> {
    let mut locked = plans.lock(&mut || {})?;
    locked.change(Path::new("p/step-1.md"), &mut |bytes, _| {
        let ours = bytes.windows(5).any(|it| it == b"ours\n");
        Some(if ours { bytes.to_vec() } else { [bytes, b"ours\n"].concat() })
    })?;
    Ok(())
}

fn create(plans: &PlansDir) -> Result<(), DiskError> {
    plans.lock(&mut || {})?.create(Path::new("p/step-2.md"), b"made\n").map(|_| ())
}

fn create_plan(plans: &PlansDir) -> Result<(), DiskError> {
    let files = [("plan.md".to_string(), b"plan\n".to_vec()), ("step-1.md".to_string(), b"step\n".to_vec())];
    plans.lock(&mut || {})?.create_dir_with(Path::new("q"), &files)
}

pub(super) fn nothing(plans: &PlansDir) -> Result<(), DiskError> {
    plans.lock(&mut || {}).map(drop)
}

pub(super) fn plant_two_plans(state: &mut State) {
    plant_step(state);
    state.plant("/plans/p/step-2.md", b"second\n");
    state.plant("/plans/q/plan.md", b"q\n");
}

pub(super) fn restructure(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let (old, new) = (OLD.as_bytes().to_vec(), NEW.as_bytes().to_vec());
    let ops = vec![
        FileOp::Create { path: path("p/step-3.md"), bytes: b"third\n".to_vec() },
        FileOp::Change { path: path("p/step-1.md"), before: old, after: new },
        FileOp::Discard { path: path("p/step-2.md"), before: b"second\n".to_vec() },
        FileOp::Rename { from: path("p/step-1.md"), to: path("p/step-4.md") },
        FileOp::Remove { path: path("q"), to: path("_archive/q") },
    ];
    plans.lock(&mut || {})?.batch("replace", "", ops)
}

fn undo(plans: &PlansDir) -> Result<(), DiskError> {
    match plans.lock(&mut || {})?.undo() {
        Ok(_) => Ok(()),
        Err(UndoError::Disk(error)) => Err(error),
        Err(_) => Err(DiskError::FileChanged { path: PathBuf::from(STEP) }),
    }
}

pub(super) const RESTRUCTURED: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, Some(OLD), None),
    ("/plans/p/step-2.md", Some("second\n"), None),
    ("/plans/p/step-3.md", None, Some("third\n")),
    ("/plans/p/step-4.md", None, Some(NEW)),
    ("/plans/q/plan.md", Some("q\n"), None),
    ("/plans/_archive/q/plan.md", None, Some("q\n")),
];

const TAKEN_BACK: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, None, Some(OLD)),
    ("/plans/p/step-2.md", None, Some("second\n")),
    ("/plans/p/step-3.md", Some("third\n"), None),
    ("/plans/p/step-4.md", Some(NEW), None),
    ("/plans/q/plan.md", None, Some("q\n")),
    ("/plans/_archive/q/plan.md", Some("q\n"), None),
];

/// Like `squash`: the text of the first step grows, a file with its old text is created in the archive, the file of the
/// second step moves to the archive, and another plan changes.
fn squash(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let (old, new) = (OLD.as_bytes().to_vec(), NEW.as_bytes().to_vec());
    let ops = vec![
        FileOp::Create { path: path("_archive/p/removed-1/step-1.md"), bytes: old.clone() },
        FileOp::Change { path: path("p/step-1.md"), before: old, after: new },
        FileOp::Rename { from: path("p/step-2.md"), to: path("_archive/p/removed-1/step-2.md") },
        FileOp::Change { path: path("q/plan.md"), before: b"q\n".to_vec(), after: b"q 1\n".to_vec() },
    ];
    plans.lock(&mut || {})?.batch("squash", "", ops)
}

const SQUASHED: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, Some(OLD), Some(NEW)),
    ("/plans/p/step-2.md", Some("second\n"), None),
    ("/plans/_archive/p/removed-1/step-1.md", None, Some(OLD)),
    ("/plans/_archive/p/removed-1/step-2.md", None, Some("second\n")),
    ("/plans/q/plan.md", Some("q\n"), Some("q 1\n")),
];

/// Like `archive` if part of the plan is already in the archive: moves each file separately.
fn archive(plans: &PlansDir) -> Result<(), DiskError> {
    let names = ["step-1.md", "step-2.md"];
    let to = Path::new("_archive/p");
    let op = |it: &&str| FileOp::Rename { from: Path::new("p").join(it), to: to.join(it) };
    plans.lock(&mut || {})?.batch_emptying(
        "archive",
        "",
        names.iter().map(op).collect(),
        vec![PathBuf::from("p")],
    )
}

fn plant_with_removed(state: &mut State) {
    plant_two_plans(state);
    state.plant("/plans/_archive/p/removed-0/step-3.md", b"third\n");
}

const ARCHIVED: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, Some(OLD), None),
    ("/plans/p/step-2.md", Some("second\n"), None),
    ("/plans/_archive/p/step-1.md", None, Some(OLD)),
    ("/plans/_archive/p/step-2.md", None, Some("second\n")),
    ("/plans/_archive/p/removed-0/step-3.md", Some("third\n"), Some("third\n")),
];

pub(super) const STEP_CHANGES: &[(&str, Option<&str>, Option<&str>)] = &[(STEP, Some(OLD), Some(NEW))];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "the first lock of a directory",
        plant: plant_step,
        earlier: |_| Ok(()),
        act: nothing,
        files: &[(STEP, Some(OLD), Some(OLD))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "the first change in a directory",
        plant: plant_step,
        earlier: |_| Ok(()),
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "change",
        plant: plant_step,
        earlier: nothing,
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "change without exchange",
        plant: plant_step,
        earlier: nothing,
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: true,
        in_place: false,
    },
    Case {
        name: "change in place",
        plant: plant_linked,
        earlier: nothing,
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: false,
        in_place: true,
    },
    Case {
        name: "create",
        plant: plant_step,
        earlier: nothing,
        act: create,
        files: &[("/plans/p/step-2.md", None, Some("made\n"))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "create plan",
        plant: plant_step,
        earlier: nothing,
        act: create_plan,
        files: &[("/plans/q/plan.md", None, Some("plan\n")), ("/plans/q/step-1.md", None, Some("step\n"))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "batch",
        plant: plant_two_plans,
        earlier: nothing,
        act: restructure,
        files: RESTRUCTURED,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "batch without exchange",
        plant: plant_two_plans,
        earlier: nothing,
        act: restructure,
        files: RESTRUCTURED,
        lacks_exchange: true,
        in_place: false,
    },
    Case {
        name: "squash",
        plant: plant_two_plans,
        earlier: nothing,
        act: squash,
        files: SQUASHED,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "archive file by file",
        plant: plant_with_removed,
        earlier: nothing,
        act: archive,
        files: ARCHIVED,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "undo of a change",
        plant: plant_step,
        earlier: edit,
        act: undo,
        files: &[(STEP, Some(NEW), Some(OLD))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "undo of a batch",
        plant: plant_two_plans,
        earlier: restructure,
        act: undo,
        files: TAKEN_BACK,
        lacks_exchange: false,
        in_place: false,
    },
];
