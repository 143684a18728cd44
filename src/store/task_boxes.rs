//! Finds the tasks of a file, and a task by its number.

use crate::api::error::Error;
use crate::text::typed::shell_word;
use crate::text::{count, front_matter, markdown};

/// The byte offset in the file of each task's `[`, ascending. A text that is not UTF-8 has no tasks.
pub(crate) fn in_text(file: &[u8]) -> Vec<usize> {
    let start = front_matter::split(file).body_start();
    let body = std::str::from_utf8(&file[start..]).unwrap_or_default();
    markdown::outline(body).tasks.iter().map(|it| it.at + start).collect()
}

/// The task with this number, counted from 1, of all tasks of the plan or step with this id.
pub(crate) fn nth(tasks: &[usize], number: usize, id: &str) -> Result<usize, Error> {
    let found = number.checked_sub(1).and_then(|it| tasks.get(it)).copied();
    found.ok_or_else(|| {
        let has = if tasks.is_empty() { "no tasks".to_owned() } else { count(tasks.len(), "task") };
        let hint = format!(
            "all checkboxes of the file are numbered from 1, in its order: planwatch show {}",
            shell_word(&id)
        );
        Error::failed("no-task", format!("`{id}` has {has}, so there is no task {number}"), hint)
    })
}
