//! A step's bytes, which may be taken back as [`Step::lighten`] leaves them without making the rest of them first.

use serde_json::{Map, Value};

use super::{Input, Stored, take_text};
use crate::plan::model::Step;
use crate::plan::records::{Attempt, Claim, Note, NoteType};
use crate::plan::time::Time;
use crate::plan::words::{Stated, StepStatus};

/// The fields in their order; a forgotten one does not compile. The body is left behind, and what only the machine knows of its claim.
macro_rules! put_all {
    ($step:ident, $out:ident, $($field:ident),*) => {
        let Step { $($field,)* body: _, run: _ } = $step;
        $($field.put($out);)*
    };
}

impl Stored for Step {
    fn put(&self, out: &mut Vec<u8>) {
        put_all!(
            self,
            out,
            id,
            path,
            etag,
            modified,
            title,
            status,
            claim,
            depends,
            depends_at,
            phase,
            kind,
            assignee,
            priority,
            tags,
            created_at,
            created_by,
            needs_confirmation,
            confirmed,
            verify,
            touches,
            result,
            notes,
            attempts,
            metadata,
            custom,
            tasks_done,
            tasks_total,
            problems
        );
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        let (id, path) = (Stored::take(from)?, Stored::take(from)?);
        let etag = if bool::take(from)? { Some(take_text(from)?) } else { None };
        let (modified, title) = (Stored::take(from)?, Stored::take(from)?);
        let status: Stated<StepStatus> = Stored::take(from)?;
        let claim: Option<Box<Claim>> = Stored::take(from)?;
        let is_light = from.is_light && Self::may_be_light(&status, claim.as_deref());
        let etag = etag.map(|it| if is_light { String::new() } else { it.to_owned() });
        // In the order in which they were put.
        Some(Self {
            id,
            path,
            etag,
            modified,
            title,
            status,
            claim,
            depends: Stored::take(from)?,
            depends_at: Stored::take(from)?,
            phase: Stored::take(from)?,
            kind: unless(is_light, from)?,
            assignee: unless(is_light, from)?,
            priority: Stored::take(from)?,
            tags: unless(is_light, from)?,
            created_at: Stored::take(from)?,
            created_by: unless(is_light, from)?,
            needs_confirmation: Stored::take(from)?,
            confirmed: Stored::take(from)?,
            verify: unless(is_light, from)?,
            touches: unless(is_light, from)?,
            result: unless(is_light, from)?,
            notes: if is_light { newest_note(from)? } else { Stored::take(from)? },
            attempts: if is_light { newest_attempt(from)? } else { Stored::take(from)? },
            metadata: unless(is_light, from)?,
            custom: unless(is_light, from)?,
            tasks_done: Stored::take(from)?,
            tasks_total: Stored::take(from)?,
            problems: Stored::take(from)?,
            body: String::new(),
            run: None,
        })
    }
}

/// A value, or its default in place of it.
fn unless<T: Stored + Default>(is_light: bool, from: &mut Input<'_>) -> Option<T> {
    if is_light { T::skip(from).map(|()| T::default()) } else { T::take(from) }
}

fn newest_note(from: &mut Input<'_>) -> Option<Vec<Note>> {
    let at = newest(from, |from| {
        NoteType::skip(from)?;
        Option::<String>::skip(from)?;
        String::skip(from)
    })?;
    Some(at.map(|at| Note { at: Some(at), ..Note::default() }).into_iter().collect())
}

fn newest_attempt(from: &mut Input<'_>) -> Option<Vec<Attempt>> {
    let at = newest(from, |from| {
        (0..3).try_for_each(|_| Option::<String>::skip(from))?;
        Map::<String, Value>::skip(from)
    })?;
    Some(at.map(|at| Attempt { at: Some(at), ..Attempt::default() }).into_iter().collect())
}

/// The newest of the times with which the items of a list begin.
fn newest(from: &mut Input<'_>, rest: impl Fn(&mut Input<'_>) -> Option<()>) -> Option<Option<Time>> {
    let mut newest = None;
    for _ in 0..from.len()? {
        let at: Option<Time> = Stored::take(from)?;
        newest = newest.max(at);
        rest(from)?;
    }
    Some(newest)
}
