//! `tick`: ticks or clears one task box of a step's text. One character of the file changes.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::page::markdown::line_hash;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller};
use crate::store::resolve;
use crate::store::step_file::{self, StepUpdate};
use crate::store::transaction::{ChangeReport, Mode};
use crate::text::{front_matter, markdown};

/// Ticks a task of a step.
#[derive(Debug, Clone, Default)]
pub struct TickRequest {
    pub id: String,
    /// The line of the file, from 1.
    pub line: usize,
    /// The hash of the line that was shown, as `page::markdown::line_hash` makes it.
    pub hash: String,
    pub ticked: bool,
    pub by: Option<String>,
}

/// Ticks the task if its line is still the one that was shown. A box that is already so stays.
pub fn tick(context: &Context, request: &TickRequest) -> Result<ChangeReport, Error> {
    change_one_by_one(context, "tick", std::slice::from_ref(&request.id), Mode::Write, |writing, id| {
        let named = resolve::step(context, id)?;
        let who = Caller::of(context, &named.id, request.by.as_deref(), None, false);
        step_file::update(context, writing, &named, &|now| {
            let at = place(now.bytes, request)?;
            let did = if request.ticked { "task ticked" } else { "task cleared" }.to_owned();
            let mark = if request.ticked { b'x' } else { b' ' };
            let renews = fencing::is_owner(now.step, &who);
            Ok(StepUpdate { mark: Some((at, mark)), renews, did, ..StepUpdate::default() })
        })
    })
}

/// Where the character between the brackets is, in the bytes of the file.
fn place(file: &[u8], request: &TickRequest) -> Result<usize, Error> {
    let changed = || {
        let hint = "look at the step again: its text is different now";
        Error::conflict(
            "task-changed",
            format!("line {} is no longer the task that was shown", request.line),
            hint,
        )
    };
    let mut start = 0;
    let mut lines = file.split_inclusive(|it| *it == b'\n');
    for _ in 1..request.line {
        start += lines.next().ok_or_else(changed)?.len();
    }
    let line = lines.next().and_then(|it| std::str::from_utf8(it).ok()).ok_or_else(changed)?;
    // A box that was ticked meanwhile, and is otherwise the same, is what was asked for.
    let other =
        |mark: &str| ["[ ]", "[x]", "[X]"].iter().map(|it| line.replacen(it, mark, 1)).collect::<Vec<_>>();
    let is_same = line_hash(line) == request.hash
        || (request.ticked
            && line.contains("[x]")
            && other("[ ]").iter().any(|it| line_hash(it) == request.hash))
        || (!request.ticked
            && line.contains("[ ]")
            && other("[x]").iter().any(|it| line_hash(it) == request.hash));
    if !is_same {
        return Err(changed());
    }
    let body_start = front_matter::split(file).body_start();
    let body = std::str::from_utf8(&file[body_start..]).map_err(|_| changed())?;
    let tasks = markdown::outline(body).tasks;
    let inside =
        tasks.iter().map(|it| it.at + body_start).find(|it| (start..start + line.len()).contains(it));
    let open = inside.ok_or_else(changed)?;
    // `at` is the bracket.
    let is_box = file.get(open) == Some(&b'[') && file.get(open + 2) == Some(&b']');
    if is_box { Ok(open + 1) } else { Err(changed()) }
}
